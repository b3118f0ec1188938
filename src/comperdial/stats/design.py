"""How units were sampled: what resampling has to respect."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]
# Fewer systems say nothing about others: they count as given, and contexts alone as sampled.
FEWEST_SAMPLED = 4


def codes_of(values: npt.NDArray[np.generic]) -> Integers:
    """Number the values that occur from 0 on, in their order."""
    return np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.intp)


def by_units(scores: Floats) -> Iterator[tuple[Integers, Flags]]:
    """Group metrics by the units that they scored: the rows of each group, and these units; none without units."""
    groups: dict[bytes, list[int]] = {}
    for row, kept in enumerate(~np.isnan(scores)):
        groups.setdefault(kept.tobytes(), []).append(row)
    for key, rows in groups.items():
        if (kept := np.frombuffer(key, dtype=np.bool_)).any():
            yield np.array(rows, dtype=np.intp), kept


@dataclass(frozen=True)
class Design:
    """Which system and which dialogue each unit belongs to, and whether units are averaged before correlating.

    A unit is a response, or a dialogue of a system. Systems and dialogues are crossed: what was sampled are these two,
    not the units.

    Attributes
    ----------
    systems, dialogues
        Shape (n,), codes from 0 on, every code in use.
    average
        True: the statistic is over the means of systems; False: over units.
    fixed
        True: the systems are those of interest, and dialogues alone were sampled, however many systems there are.
    """

    systems: Integers
    dialogues: Integers
    average: bool = False
    fixed: bool = False

    @property
    def counts(self) -> tuple[int, int]:
        """Return how many systems and how many dialogues there are."""
        return int(self.systems.max(initial=-1)) + 1, int(self.dialogues.max(initial=-1)) + 1

    @property
    def cells(self) -> Integers:
        """Return for each unit the code of its dialogue of its system, in order of system, then dialogue."""
        return codes_of(self.systems * self.counts[1] + self.dialogues)

    @property
    def given(self) -> bool:
        """Return whether systems count as given: asked for, or two or three of them."""
        return self.fixed or 1 < self.counts[0] < FEWEST_SAMPLED

    def of(self, kept: Flags) -> Design:
        """Return the design of some of the units, coded anew."""
        return Design(codes_of(self.systems[kept]), codes_of(self.dialogues[kept]), self.average, self.fixed)
