"""The errors that users see: what is wrong, where, what was expected, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def shown(text: str, *, at_most: int = 500) -> str:
    """Format text for one log line: escape control characters and cut long text in the middle."""
    if len(text) > at_most:
        kept = at_most // 2
        text = f"{text[:kept]} … ({len(text) - 2 * kept:,} characters) … {text[-kept:]}"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


class ComperdialError(Exception):
    """Base class of all errors caused by the user's input or environment.

    Parameters
    ----------
    problem
        What is wrong, in one clause.
    where
        The file, line or item at fault.
    expected
        What would be valid.
    hint
        How to fix it.
    """

    status = 1
    """Exit status of the command."""

    def __init__(
        self, problem: str, *, where: str | None = None, expected: str | None = None, hint: str | None = None
    ) -> None:
        self.problem = problem
        self.where = where
        self.expected = expected
        self.hint = hint
        super().__init__(str(self))

    def __str__(self) -> str:
        text = shown(self.problem)
        if self.where:
            text = f"{shown(self.where)}: {text}"
        if self.expected:
            text += f"; expected {shown(self.expected, at_most=2000)}"
        if self.hint:
            # Hints are our own text and may span several lines, for example a column map to paste.
            text += ". " + "\n".join(shown(line, at_most=2000) for line in self.hint.split("\n"))
        return text


class FileError(ComperdialError):
    """A file cannot be read or written, or has the wrong format."""


class SchemaError(ComperdialError):
    """A table or record violates its schema."""


class ItemError(SchemaError):
    """An item of a list is invalid; ``index`` starts at 0, so that a caller can name the item by file and key."""

    def __init__(self, index: int, problem: str, *, expected: str) -> None:
        self.index = index
        super().__init__(problem, where=f"response {index + 1}", expected=expected)

    def at(self, where: str) -> SchemaError:
        """Return the same error with the caller's name for the item."""
        return SchemaError(self.problem, where=where, expected=self.expected)


class ConfigError(ComperdialError):
    """``params.yaml`` or an option on the command line is wrong."""


class UnknownNameError(ConfigError):
    """A metric, data set, table or column does not exist; suggests the closest names."""

    def __init__(self, kind: str, name: str, known: Iterable[str], *, where: str | None = None) -> None:
        names = sorted(known)
        near = " or ".join(map(repr, difflib.get_close_matches(name, names, n=3, cutoff=0.5)))
        expected = "one of " + ", ".join(names or ["(none)"])
        hint = f"Did you mean {near}?" if near else None
        super().__init__(f"unknown {kind} {name!r}", where=where, expected=expected, hint=hint)


class SourceError(ComperdialError):
    """A public file is missing, unreachable or altered."""


class MissingResourceError(ComperdialError):
    """A required resource (lexicon, model, result) is not on this machine."""

    def _render_traceback_(self) -> list[str]:
        # Hook for IPython: in notebooks, show only the message, since the user's code is not at fault.
        return [str(self)]


class NothingToShowError(ComperdialError):
    """The data lack what a table or figure shows; ``comperdial table`` writes a note instead."""
