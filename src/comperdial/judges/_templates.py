"""The jinja2 of prompts: placeholders, ``if``, ``for`` and filters, of which none can run or grow without bound."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import jinja2
from jinja2 import filters, meta, nodes
from jinja2.runtime import LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment, SecurityError

from comperdial.core.errors import ConfigError

# Characters of a prompt, more than any judge reads; and the largest number that a template reckons with.
_LONGEST = 1_000_000
_STATEMENTS = (nodes.Output, nodes.If, nodes.For)
_NAMES = {"assign": "set", "assignblock": "set", "callblock": "call"}
# None of them makes long text of short.
_FILTERS = (
    "abs", "capitalize", "count", "d", "default", "first", "float", "int", "last", "length", "list", "lower", "max",
    "min", "reject", "reverse", "round", "select", "sort", "string", "striptags", "title", "trim", "truncate", "unique",
    "upper", "wordcount",
)  # fmt: skip
# Methods of texts that do.
_GROWING = frozenset(
    {"center", "expandtabs", "format", "format_map", "join", "ljust", "replace", "rjust", "translate", "zfill"}
)


@functools.cache
def parse(template: str, where: str) -> nodes.Template:
    """Return a template's syntax tree.

    Raises
    ------
    ConfigError
        When it is not valid, takes in another template, or holds what could run or grow without bound: a macro, a
        variable of its own, a loop within a loop.
    """
    try:
        tree = _environment().parse(template)
        # Finds what parsing does not: filters that there are none of, and what Python will not nest.
        compiled(template)
    except jinja2.TemplateSyntaxError as error:
        is_filter = (error.message or "").startswith("No filter")
        expected = f"one of {', '.join(sorted((*_FILTERS, 'join')))}" if is_filter else "valid jinja2"
        raise ConfigError(
            f"not a jinja2 template ({error.message})", where=f"{where}, line {error.lineno}", expected=expected
        ) from error
    except (RecursionError, MemoryError, SyntaxError) as error:
        raise ConfigError("the template is nested too deeply", where=where, expected="fewer brackets or ifs") from error
    if any(True for _ in meta.find_referenced_templates(tree)):
        raise ConfigError("the template takes in another one", where=where, expected="all of the prompt in one file")
    for node in tree.find_all(nodes.Stmt):
        if found := _refused(node):
            raise ConfigError(
                f"the template has a {found}",
                where=f"{where}, line {node.lineno}",
                expected="placeholders, `if`, `for` and filters alone",
            )
    return tree


def _refused(node: nodes.Stmt) -> str | None:
    if not isinstance(node, _STATEMENTS):
        name = type(node).__name__.lower()
        return f"`{_NAMES.get(name, name)}`"
    if isinstance(node, nodes.For):
        if node.recursive:
            return "recursive `for`"
        if node.find(nodes.For):
            return "`for` within a `for`"
    return None


@functools.lru_cache(maxsize=64)
def compiled(template: str) -> jinja2.Template:
    """Return a template, ready to be filled."""
    return _environment().from_string(template)


def fill(template: str, values: dict[str, Any]) -> str:
    """Fill a template.

    Raises
    ------
    jinja2.TemplateError, ArithmeticError, LookupError, TypeError, ValueError
        When it fails on the values, or what it makes of them is too long.
    """
    parts, length = [], 0
    for part in compiled(template).generate(values):
        length = _bounded(length + len(part))
        parts.append(part)
    return "".join(parts)


def _bounded(length: int) -> int:
    if length > _LONGEST:
        raise SecurityError(f"it makes more than {_LONGEST:,} characters")
    return length


def _join(value: Iterable[Any], separator: str = "") -> str:
    """Return the items as text with a separator between them."""
    parts = [str(item) for item in value]
    _bounded(sum(map(len, parts)) + len(separator) * len(parts))
    return separator.join(parts)


class _Environment(ImmutableSandboxedEnvironment):
    # What is listed here is not computed while a template is compiled, either.
    intercepted_binops = frozenset({"*", "**", "%"})

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:  # noqa: ANN401
        for value in (left, right):
            if not isinstance(value, int | float) or abs(value) > _LONGEST:
                raise SecurityError(f"`{operator}` is for numbers up to {_LONGEST:,}")
        return super().call_binop(context, operator, left, right)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:  # noqa: ANN401
        if not isinstance(obj, str | tuple | list | LoopContext) or attr in _GROWING:
            return False
        return super().is_safe_attribute(obj, attr, value)

    def wrap_str_format(self, value: Any) -> None:  # noqa: ANN401
        return None


@functools.cache
def _environment() -> _Environment:
    """Return jinja2 without its global functions, so that whatever a template names is a placeholder."""
    # No escaping: a prompt is no HTML, and the values are guarded by `inline`.
    environment = _Environment(undefined=jinja2.StrictUndefined, autoescape=False)
    environment.globals.clear()
    environment.filters = {name: filters.FILTERS[name] for name in _FILTERS} | {"join": _join}
    return environment
