"""Questions that annotators are asked of two dialogues, by family, with the texts of their choices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from comperdial.config.checking import Expected, Maybe, Strict, Text, read_checked
from comperdial.core.errors import ConfigError, UnknownNameError


class _Question(Strict):
    name: Annotated[str, Field(pattern="^[A-Za-z0-9][A-Za-z0-9_-]*$"), Expected("letters, digits, - and _")]
    question: Text
    left: Text
    right: Text
    source: Maybe[Literal["paper", "ours"]] = None


@dataclass(frozen=True)
class Question:
    """A question with the texts beside its choices.

    Attributes
    ----------
    name
        What column ``question`` of table ``preferences`` holds.
    family
        What it measures, such as ``engagingness``.
    text, left, right
        The question; the texts of the choice of the left dialogue (Speaker 1) and of the right one (Speaker 2).
    """

    name: str
    family: str
    text: str
    left: str
    right: str


def read_questions(path: str | Path | None = None) -> dict[str, list[Question]]:
    """Read a bank of questions, by family.

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
    bank = read_checked(dict[str, Annotated[list[_Question], Field(min_length=1)]], path)
    names = [question.name for questions in bank.values() for question in questions]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ConfigError(f"question {twice[0]!r} is there already", where=str(path), expected="each name once")
    return {
        family: [Question(q.name, family, q.question, q.left, q.right) for q in questions]
        for family, questions in bank.items()
    }


def chosen(bank: Mapping[str, Sequence[Question]], names: Sequence[str]) -> list[Question]:
    """Return questions by name, or raise :class:`UnknownNameError`."""
    known = {question.name: question for questions in bank.values() for question in questions}
    for name in names:
        if name not in known:
            raise UnknownNameError("question", name, known)
    return [known[name] for name in dict.fromkeys(names)]
