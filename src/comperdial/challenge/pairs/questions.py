"""Questions that annotators are asked of two dialogues, by family, with the texts of their choices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, RootModel, model_validator

from comperdial.config.checking import Expected, Maybe, Strict, Text, read_checked, rule
from comperdial.core.errors import UnknownNameError


class _Question(Strict):
    name: Annotated[str, Field(pattern="^[A-Za-z0-9][A-Za-z0-9_-]*$"), Expected("letters, digits, - and _")]
    question: Text
    left: Text
    right: Text
    source: Maybe[Literal["paper", "ours"]] = None


class _Bank(RootModel[dict[str, list[_Question]]]):
    @model_validator(mode="after")
    def _have_names(self) -> _Bank:
        names: set[str] = set()
        for family, questions in self.root.items():
            if not questions:
                raise rule("no question", "at least one", family)
            for number, question in enumerate(questions):
                if question.name in names:
                    raise rule(f"question {question.name!r} is there already", "each name once", family, number, "name")
                names.add(question.name)
        return self


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
        The question; what the choice of the left dialogue (Speaker 1) and of the right one (Speaker 2) says.
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
    bank = read_checked(_Bank, path or str(resources.files(__package__) / "questions.yaml"))
    return {
        family: [Question(q.name, family, q.question, q.left, q.right) for q in questions]
        for family, questions in bank.root.items()
    }


def chosen(bank: Mapping[str, Sequence[Question]], names: Sequence[str]) -> list[Question]:
    """Return questions by name.

    Raises
    ------
    UnknownNameError
        When the bank has no such question.
    """
    known = {question.name: question for questions in bank.values() for question in questions}
    for name in names:
        if name not in known:
            raise UnknownNameError("question", name, known)
    return [known[name] for name in dict.fromkeys(names)]
