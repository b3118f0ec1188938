"""Convert metric options from YAML or the command line to the types of the metric's fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, fields
from typing import Any

from comperdial.core.errors import ConfigError, FileError, UnknownNameError
from comperdial.core.files import parse_json
from comperdial.metrics.base import Metric

Options = tuple[tuple[str, str | bool | int | float], ...]
"""A mapping of names to values that does not change, as a metric's field can hold it: pairs, sorted by name."""

_WORDS = {"true": True, "yes": True, "false": False, "no": False}


def read_options(metric: type[Metric], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options converted to the types of the metric's fields.

    Numbers and booleans may be given as text, as on a command line. Nothing else is converted: 3.0 is not text, 1 is not
    a boolean.

    Raises
    ------
    UnknownNameError
        If the metric has no such option.
    ConfigError
        If a value does not have the option's type.
    """
    known: dict[str, Field[Any]] = {field.name: field for field in fields(metric)}
    found = {}
    for name, value in options.items():
        if name not in known:
            raise UnknownNameError(f"option of metric {metric.kind!r}:", name, known)
        try:
            # A class if the metric's module lacks `from __future__ import annotations`.
            kind = known[name].type
            found[name] = _convert(kind.__name__ if isinstance(kind, type) else str(kind), value)
        except ValueError as error:
            raise ConfigError(f"option {name!r} of metric {metric.kind!r} is {value!r}", expected=str(error)) from None
    return found


def _convert(kind: str, value: Any) -> Any:  # noqa: ANN401
    """Convert a value to a type, given as its annotation; the ValueError states what was expected."""
    if kind == "bool":
        value = _WORDS.get(value.lower(), value) if isinstance(value, str) else value
        return _of_type(value, bool, "yes or no")
    if kind in ("int", "float"):
        expected = "a whole number" if kind == "int" else "a number"
        if isinstance(value, str):
            try:
                value = int(value) if kind == "int" else float(value)
            except ValueError:
                raise ValueError(expected) from None
        if isinstance(value, bool):
            raise ValueError(expected)
        return _of_type(value, int, expected) if kind == "int" else float(_of_type(value, (int, float), expected))
    if kind == "Options":
        return _freeze(value)
    return _of_type(value, str, "a text (in quotes, if it looks like a number)")


def _freeze(value: Any) -> Options:  # noqa: ANN401
    """Convert a mapping, or its JSON text as on a command line, to sorted pairs."""
    expected = "a mapping of names to texts, numbers, yes or no"
    if isinstance(value, str):
        try:
            value = parse_json(value, "the option", expected=expected)
        except FileError as error:
            raise ValueError(f"{expected} ({error.problem})") from None
    pairs = sorted(_of_type(value, Mapping, expected).items())
    for name, entry in pairs:
        _of_type(name, str, expected)
        _of_type(entry, (str, bool, int, float), expected)
    return tuple(pairs)


def _of_type(value: Any, types: Any, expected: str) -> Any:  # noqa: ANN401
    if not isinstance(value, types):
        raise ValueError(expected)
    return value
