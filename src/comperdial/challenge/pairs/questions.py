"""Questions that annotators are asked of two dialogues, with the texts of their choices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from comperdial.config.checking import Expected, Maybe, Strict, Text, read_checked
from comperdial.core.errors import ConfigError, UnknownNameError


class Question(Strict):
    """A question with the texts beside its choices.

    Attributes
    ----------
    name
        What column ``question`` of table ``preferences`` holds.
    text, left, right
        The question; the texts of the choice of the left dialogue (Speaker 1) and of the right one (Speaker 2).
    source
        Whose words they are, if that is known.
    """

    name: Annotated[str, Field(pattern="^[A-Za-z0-9][A-Za-z0-9_-]*$"), Expected("letters, digits, - and _")]
    text: Text = Field(alias="question")
    left: Text
    right: Text
    source: Maybe[Literal["paper", "ours"]] = None


def read_questions(path: str | Path | None = None) -> dict[str, Question]:
    """Read a bank of questions, by name.

    Parameters
    ----------
    path
        A YAML file in the form of ``questions.yaml`` beside this module. Default: that file. Two of its questions are
        in the paper's text (Li, Weston and Roller 2019), the others are ours: the file says which.

    Raises
    ------
    ConfigError
        Names the entry at fault.
    """
    path = path or str(resources.files(__package__) / "questions.yaml")
    families = read_checked(dict[str, Annotated[list[Question], Field(min_length=1)]], path)
    bank: dict[str, Question] = {}
    for question in (question for family in families.values() for question in family):
        if question.name in bank:
            raise ConfigError(
                f"question {question.name!r} is there already", where=str(path), expected="each name once"
            )
        bank[question.name] = question
    return bank


def chosen(bank: Mapping[str, Question], names: Sequence[str]) -> list[Question]:
    """Return questions by name, or raise :class:`UnknownNameError`."""
    for name in names:
        if name not in bank:
            raise UnknownNameError("question", name, bank)
    return [bank[name] for name in dict.fromkeys(names)]
