"""Strict pydantic models of YAML files; errors give the file, line, value and what was expected.

Values are not converted: 1 stays an integer even where 1.0 is allowed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator
from pydantic import GetCoreSchemaHandler as Core
from pydantic import GetJsonSchemaHandler as Json
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError, core_schema

from comperdial.config import line_of, load_yaml
from comperdial.config.secrets import is_secret
from comperdial.core.errors import ComperdialError, ConfigError, UnknownNameError

T = TypeVar("T")


@dataclass(frozen=True)
class Expected:
    """Describes a valid value in words, with a regular expression for texts; ``hidden`` if it may be a secret."""

    words: str
    pattern: str | None = None
    hidden: bool = False

    def __get_pydantic_core_schema__(self, source: Any, handler: Core) -> CoreSchema:  # noqa: ANN401
        schema = handler(source)
        if self.pattern:
            schema = core_schema.str_schema(pattern=self.pattern, strict=True)
        return core_schema.custom_error_schema(
            schema,
            custom_error_type="hidden" if self.hidden else "expected",
            custom_error_message="{words}",
            custom_error_context={"words": self.words},
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: Json) -> dict[str, Any]:
        return {**handler(schema), "$comment": self.words}


class _NotNull:
    def __get_pydantic_core_schema__(self, source: Any, handler: Core) -> CoreSchema:  # noqa: ANN401
        return handler(source)["schema"]


class _EmptyIfNull:
    def __get_pydantic_core_schema__(self, source: Any, handler: Core) -> CoreSchema:  # noqa: ANN401
        return core_schema.no_info_before_validator_function(lambda v: {} if v is None else v, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: Json) -> dict[str, Any]:
        return {"anyOf": [handler(schema), {"type": "null"}]}


def _distinct(values: list[T]) -> list[T]:
    if twice := [value for number, value in enumerate(values) if value in values[:number]]:
        raise rule(f"{twice[0]!r} is given twice", "each once")
    return values


Maybe = Annotated[T | None, _NotNull()]
"""Optional, None by default; an explicit null is an error."""
Section = Annotated[T, _EmptyIfNull()]
"""A mapping that may be null, meaning empty, so that all of its entries can be commented out."""
Distinct = Annotated[list[T], AfterValidator(_distinct), Field(json_schema_extra={"uniqueItems": True})]
Text = Annotated[str, Field(min_length=1), Expected("a text")]
Flag = Annotated[bool, Expected("true or false")]
Count = Annotated[int, Field(ge=1), Expected("a positive whole number")]
Seed = Annotated[int, Field(ge=0), Expected("a whole number of 0 or more")]
Number = Annotated[int | float, Expected("a finite number")]
FromZero = Annotated[int | float, Field(ge=0), Expected("a number of 0 or more")]
AboveZero = Annotated[int | float, Field(gt=0), Expected("a number above 0")]
Share = Annotated[int | float, Field(ge=0, le=1), Expected("a number from 0 to 1")]
DatasetName = Annotated[str, Expected("lower-case letters, digits and underscores", "^[a-z0-9_]+$")]


class Strict(BaseModel):
    """A mapping with exactly these keys; values are not converted. Docstrings of fields describe them in the JSON schema."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )

    @model_validator(mode="before")
    @classmethod
    def _suggest_keys(cls, given: Any) -> Any:  # noqa: ANN401
        if isinstance(given, Mapping) and cls.model_config["extra"] == "forbid":
            known = {field.alias or name for name, field in cls.model_fields.items()}
            for key in map(str, given):
                if key not in known:
                    raise unknown("key", key, known, key)
        return given


def rule(problem: str, expected: str, *at: str | int) -> PydanticCustomError:
    """Return a validator's error; ``at`` is the path from the validated value to the faulty one."""
    return PydanticCustomError("rule", "", {"error": ConfigError(problem, expected=expected), "at": at})


def unknown(kind: str, name: str, known: Iterable[str], *at: str | int) -> PydanticCustomError:
    """Like :func:`rule`, for an unknown name; the message suggests the closest known ones."""
    return PydanticCustomError("rule", "", {"error": UnknownNameError(kind, name, known), "at": at})


class Lines:
    """Locates settings in files, listed in merge order; values in none of them came from ``option``."""

    def __init__(self, *paths: str | Path, option: str = "--config") -> None:
        self.paths = paths
        self.option = option

    @cached_property
    def _contents(self) -> list[tuple[str | Path, dict[str, Any]]]:
        return [(path, load_yaml(path)) for path in self.paths]

    def place(self, keys: Sequence[str | int], value: object) -> str:
        """Return the file and line of a setting, or the option that set this value, and the key's path."""
        files = (path for path, content in reversed(self._contents) if _reached(content, keys) == ([*keys], value))
        path = next(files, None)
        where = f"{path}, line {line_of(path, keys)}" if path else self.option
        names = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys).removeprefix(".")
        return f"{where}, {names}" if names else where


def checked(kind: type[T], content: object, where: str | Path = "params.yaml", *, lines: Lines | None = None) -> T:
    """Validate a mapping against a model, or any type that pydantic supports, and return the result.

    Parameters
    ----------
    kind, content
        The model, and the content of a file or of several merged files.
    where, lines
        For messages: the file or entry name; or a lookup that gives the file and line.

    Raises
    ------
    ConfigError
        For the first mistake: where it is, the value and what was expected. A value that may be a secret is not shown.
    UnknownNameError
        If the mistake is an unknown key.
    """
    try:
        return TypeAdapter(kind).validate_python(content)
    except ValidationError as error:
        mistake = error.errors(include_url=False)[0]
    keys, value = _reached(content, [*mistake["loc"], *mistake.get("ctx", {}).get("at", ())])
    problem = _problem(mistake, value)
    problem.where = (lines or Lines(option=str(where))).place(keys, value)
    raise problem


def read_checked(kind: type[T], path: str | Path) -> T:
    """Read and validate a YAML file: :func:`~comperdial.config.load_yaml`, then :func:`checked`."""
    return checked(kind, load_yaml(path), path, lines=Lines(path))


_WORDS = {"dict_type": "a mapping", "model_type": "a mapping", "list_type": "a list", "too_short": "at least one entry"}
_KINDS = {type(None): "null", str: "a text", dict: "a mapping", list: "a list"}


def _problem(mistake: ErrorDetails, value: object) -> ComperdialError:
    """Convert a pydantic error to ours, without its location."""
    kind, context = mistake["type"], mistake.get("ctx", {})
    if kind == "rule":
        error: ComperdialError = context["error"]
        return error
    if kind == "missing":
        return ConfigError(f"no {mistake['loc'][-1]!r}")
    expected = context.get("words") or _WORDS.get(kind) or mistake["msg"].removeprefix("Input should be ")
    numbers = isinstance(value, list) and value and all(isinstance(entry, int | float) for entry in value)
    if "[key]" in mistake["loc"]:
        problem = f"the name {mistake['input']!r:.60}"
    elif kind == "hidden":
        problem = "got a value that is not shown because it may be a secret"
    # Never show a mapping or a list of texts: it could contain a secret key.
    elif (isinstance(value, str | int | float | date) or numbers) and not is_secret(value) and kind not in _WORDS:
        problem = f"got {value!r}"
    else:
        name = _KINDS.get(type(value), f"a {type(value).__name__}")
        problem = f"got {name.replace('a ', 'an empty ', 1) if value in ({}, []) else name}"
    return ConfigError(problem, expected=expected)


def _reached(content: Any, keys: Sequence[str | int]) -> tuple[list[str | int], Any]:  # noqa: ANN401
    """Return the path up to a missing setting, or up to names that pydantic adds, and the value there."""
    for number, key in enumerate(keys):
        try:
            content = getattr(content, str(key)) if isinstance(content, BaseModel) else content[key]
        except (LookupError, TypeError, AttributeError):
            return [*keys[:number]], content
    return [*keys], content
