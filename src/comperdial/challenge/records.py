"""Validation of external records: files, and the output of agents."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

from pydantic import AfterValidator, TypeAdapter, ValidationError

from comperdial.core.errors import SchemaError
from comperdial.core.names import plain_name


def _filled(text: str) -> str:
    if not text.strip():
        raise ValueError("a text that is not empty")
    # Raises a ValueError for a lone surrogate.
    text.encode()
    return text


Filled = Annotated[str, AfterValidator(_filled)]
Name = Annotated[int | str, AfterValidator(lambda value: _filled(str(plain_name(value))))]
"""A name, or a number, which becomes a text as in all tables."""


def checked(kind: Any, value: object, where: str) -> Any:  # noqa: ANN401
    """Validate a value as a pydantic type; a :class:`SchemaError` names the first invalid part."""
    try:
        return _adapter(kind).validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    at = ".".join(str(part) for part in first["loc"]) or "it"
    if first["type"] == "missing":
        raise SchemaError(f"{at} is missing", where=where, expected="it")
    expected = first["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    raise SchemaError(f"{at} is {first['input']!r:.80}", where=where, expected=expected)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:  # noqa: ANN401
    return TypeAdapter(kind)
