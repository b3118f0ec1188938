"""What is correlated: scores and ratings of the same units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from comperdial.stats.design import Design

Floats = npt.NDArray[np.float64]


# Of fewer systems there is no system level: two always correlate perfectly.
FEWEST_SYSTEMS = 3


@dataclass(frozen=True)
class Sample:
    """Scores and ratings of the same units, for one level, one level of ratings and one rated dimension.

    A unit is a response (against ratings of turns, at turn and system level) or a dialogue of a system. At system level
    the units are those that systems are averaged over.

    Attributes
    ----------
    names
        (metric, output) of each row of ``scores``, sorted.
    scores
        Shape (outputs, units), NaN where there is no score.
    annotators
        Who rated, in the order of the rows of ``single``.
    single
        Shape (annotators, units): single ratings, NaN where an annotator did not rate a unit.
    ratings
        Shape (units,): their mean over annotators.
    design
        Which system and dialogue a unit belongs to; it says that units are averaged at system level.
    items
        Shape (units,): codes of the context at turn level, of the dialogue at the others.
    units
        (context or dialogue, system) of each unit.
    systems
        The system's name for each code in ``design.systems``.
    coverage, cut, signatures
        One each output: the share of the rated units (of dialogues: of their turns) that it has a score of; how many of
        its units' inputs did not fit the metric's model; what made it.
    """

    dataset: str
    level: str
    against: str
    target: str
    names: tuple[tuple[str, str], ...]
    scores: Floats
    annotators: tuple[str, ...]
    single: Floats
    ratings: Floats
    design: Design
    items: npt.NDArray[np.intp]
    units: tuple[tuple[str, str], ...]
    systems: tuple[str, ...]
    coverage: tuple[float, ...]
    cut: tuple[int, ...]
    signatures: tuple[str, ...]

    @property
    def of_turns(self) -> bool:
        """Say whether a unit is a response; else it is a dialogue of a system."""
        return self.against == "turn" and self.level != "dialogue"

    @property
    def key(self) -> dict[str, str]:
        """Return what every record made of this sample begins with."""
        return {"dataset": self.dataset, "level": self.level, "against": self.against, "target": self.target}

    def only(self, names: Sequence[tuple[str, str]]) -> Sample:
        """Return the sample with some of its outputs, in the sample's own order."""
        chosen = [row for row, name in enumerate(self.names) if name in set(names)]
        values = self.__dict__ | {
            "names": tuple(self.names[row] for row in chosen),
            "scores": self.scores[chosen],
            "coverage": tuple(self.coverage[row] for row in chosen),
            "cut": tuple(self.cut[row] for row in chosen),
            "signatures": tuple(self.signatures[row] for row in chosen),
        }
        return Sample(**values)
