"""Checks of records that come from outside: files, and other people's agents."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

from pydantic import AfterValidator, TypeAdapter, ValidationError

from comperdial.core.errors import SchemaError
from comperdial.core.names import plain_name


def _filled(text: str) -> str:
    if not text.strip():
        raise ValueError("a text that is not empty")
    # Half of a surrogate pair is no character: a ValueError.
    text.encode()
    return text


def _name(value: int | str) -> str:
    return _filled(str(plain_name(value)))


Filled = Annotated[str, AfterValidator(_filled)]
Name = Annotated[int | str, AfterValidator(_name)]
"""A name, or a number, which becomes a text as in all tables."""


def checked(kind: Any, value: object, where: str) -> Any:  # noqa: ANN401
    """Return a value as a type that pydantic knows.

    Raises
    ------
    SchemaError
        Names the first part of the value at fault, what it is, and what was expected.
    """
    try:
        return _adapter(kind).validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    at = ".".join(str(part) for part in first["loc"])
    problem = "is missing" if first["type"] == "missing" else f"is {first['input']!r:.80}"
    expected = _expected(first["msg"])
    raise SchemaError(f"{at} {problem}" if at else f"it {problem}", where=where, expected=expected)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:  # noqa: ANN401
    return TypeAdapter(kind)


def _expected(message: str) -> str:
    message = message.removeprefix("Value error, ").removeprefix("Input should be ")
    return "it" if message == "Field required" else message


def refuse_repeated(seen: dict[Any, str], key: Any, where: str, what: str) -> None:  # noqa: ANN401
    """Refuse a key that was seen before; ``seen`` holds where each key was."""
    if key in seen:
        raise SchemaError(f"{what} a second time, first in {seen[key]}", where=where, expected="it once")
    seen[key] = where
