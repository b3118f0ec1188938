"""What the tasks ask and how the answers are called, in one place for the export and the import."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from comperdial.core.errors import UnknownNameError

#: The points of the overall score, in the words that stand beside the buttons (paper, section A.7.1).
SCORES: Mapping[int, str] = {1: "very bad", 2: "rather bad", 3: "in between", 4: "rather good", 5: "very good"}

#: Names of the tags in the labeling configuration, which Label Studio's export repeats.
OVERALL_TAG = "overall"
REASONS_TAG = "reasons"


@dataclass(frozen=True)
class Level:
    """What is rated at once: ``item`` is the column of the key file that names it."""

    name: str
    item: str

    @property
    def key(self) -> list[str]:
        """Return the columns of the key file."""
        return ["item", "dataset", self.item, "system_id"]

    def guidelines(self) -> str:
        """Return the guidelines for annotators as Markdown."""
        folder = resources.files("comperdial.challenge.annotation") / "guidelines"
        return (folder / f"{self.name}.md").read_text(encoding="utf-8")


LEVELS: Mapping[str, Level] = {
    level.name: level
    for level in (
        Level("turn", "context_id"),
        Level("dialogue", "dialogue_id"),
    )
}


def get_level(name: str) -> Level:
    """Return a level by name, or raise :class:`UnknownNameError`."""
    if name not in LEVELS:
        raise UnknownNameError("level", name, LEVELS)
    return LEVELS[name]
