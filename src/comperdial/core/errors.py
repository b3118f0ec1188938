"""The errors a user can meet: what is wrong, where, what was expected, what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def shown(text: str, *, at_most: int = 500) -> str:
    """Return a text fit for one line of a log: control characters escaped, a long text cut in its middle."""
    if len(text) > at_most:
        kept = at_most // 2
        text = f"{text[:kept]} … ({len(text) - 2 * kept:,} characters) … {text[-kept:]}"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


class ComperdialError(Exception):
    """Base of all errors that the user's input or surroundings can cause.

    Parameters
    ----------
    problem
        What is wrong, in one clause.
    where
        File, line or item at fault.
    expected
        What would have been right.
    hint
        What to do about it.
    """

    status = 1
    """The exit status of a command that it ends."""

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
            # Our own words, which may be several lines: a map to paste, for one.
            text += ". " + "\n".join(shown(line, at_most=2000) for line in self.hint.split("\n"))
        return text


class FileError(ComperdialError):
    """A file cannot be read or written as what it should be."""


class SchemaError(ComperdialError):
    """A table or a record breaks the rules of its schema."""


class ItemError(SchemaError):
    """One item of a list breaks a rule; ``index`` counts from 0, so that a caller can name the item by file and key."""

    def __init__(self, index: int, problem: str, *, expected: str) -> None:
        self.index = index
        super().__init__(problem, where=f"response {index + 1}", expected=expected)

    def at(self, where: str) -> SchemaError:
        """Return the same error with the item named as the caller knows it."""
        return SchemaError(self.problem, where=where, expected=self.expected)


class ConfigError(ComperdialError):
    """``params.yaml`` or an option on the command line is wrong."""


class UnknownNameError(ConfigError):
    """A metric, dataset, table or column name that does not exist, with the nearest ones that do."""

    def __init__(self, kind: str, name: str, known: Iterable[str], *, where: str | None = None) -> None:
        names = sorted(known)
        near = " or ".join(map(repr, difflib.get_close_matches(name, names, n=3, cutoff=0.5)))
        expected = "one of " + ", ".join(names or ["(none)"])
        hint = f"Did you mean {near}?" if near else None
        super().__init__(f"unknown {kind} {name!r}", where=where, expected=expected, hint=hint)


class SourceError(ComperdialError):
    """A public file is missing, unreachable or altered."""


class MissingResourceError(ComperdialError):
    """Something that is needed (a lexicon, a model, a result) is not on this machine."""

    def _render_traceback_(self) -> list[str]:
        # IPython's hook: in a notebook the sentence is all that helps, since no code is at fault.
        return [str(self)]


class NothingToShowError(ComperdialError):
    """The data lack what a table or figure shows; ``comperdial table`` writes a note in its place."""
