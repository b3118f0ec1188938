"""Questions that implicit scoring asks: one a dimension, to be answered with a label such as Yes or No.

Ours lie in ``prompts/questions.yaml``; the paper's own (Zhang et al. 2024, Table 9), once they are imported, in a file
of the same form beside the imported prompts. Every question is worded so that the first label is the good answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from comperdial.config import load_yaml
from comperdial.core.errors import ConfigError, MissingResourceError, UnknownNameError
from comperdial.core.names import RATED_LEVELS

FILE = "questions.yaml"
_OURS = Path(__file__).parent / "prompts" / FILE


@dataclass(frozen=True)
class Question:
    """A question and whose words it is in: ``ours`` (the user's own too) or ``paper's question``."""

    text: str
    source: str


def find(question: str, level: str, source: str, folder: Path) -> Question:
    """Return a question by name, or the user's own, which is known by its spaces.

    Parameters
    ----------
    question
        A dimension, such as ``relevance``; or a text.
    level
        ``turn`` or ``dialogue``.
    source
        ``ours`` or ``paper``.
    folder
        Where what is imported lies.

    Raises
    ------
    UnknownNameError
        When there is no question of that name.
    MissingResourceError
        When the paper's have not been imported.
    """
    if len(question.split()) > 1:
        return Question(question, "ours")
    path = _OURS if source == "ours" else folder / FILE
    if source != "ours" and not path.is_file():
        raise MissingResourceError(
            "the paper's questions are not here",
            where=str(path),
            expected="the questions of Table 9 in appendix B of Zhang et al. 2024",
            hint="Run `comperdial prompts import PAPER` with that paper's text or HTML, or use `prompts: ours`",
        )
    known = read(path)[level]
    if question not in known:
        raise UnknownNameError(f"question at {level} level", question, known, where=str(path))
    return Question(known[question], "ours" if source == "ours" else "paper's question")


def read(path: Path = _OURS) -> dict[str, dict[str, str]]:
    """Return the questions of a file, ours without one, by level and dimension."""
    content = load_yaml(path)
    for level in RATED_LEVELS:
        asked = content.get(level)
        texts = asked.values() if isinstance(asked, dict) else [None]
        if not all(isinstance(text, str) and text.strip() for text in texts):
            raise ConfigError(f"no questions at {level} level", where=str(path), expected="a text for each dimension")
    return content
