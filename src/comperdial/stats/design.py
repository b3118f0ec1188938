"""The sampling design of units, which resampling must respect."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]
# Fewer systems cannot represent others: they count as fixed, and only contexts as sampled.
FEWEST_SAMPLED = 4


def codes_of(values: npt.NDArray[np.generic]) -> Integers:
    """Number the occurring values from 0, in sorted order."""
    return np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.intp)


def by_units(scores: Floats) -> Iterator[tuple[Integers, Flags]]:
    """Group metrics by the units that they scored; yield the rows of each group and its units, skipping empty ones."""
    groups: dict[bytes, list[int]] = {}
    for row, kept in enumerate(~np.isnan(scores)):
        groups.setdefault(kept.tobytes(), []).append(row)
    for key, rows in groups.items():
        if (kept := np.frombuffer(key, dtype=np.bool_)).any():
            yield np.array(rows, dtype=np.intp), kept


@dataclass(frozen=True)
class Design:
    """The system and dialogue of each unit, and whether units are averaged before correlating.

    A unit is a response, or a dialogue of a system. Systems and dialogues are crossed: they were sampled, not the units.

    Attributes
    ----------
    systems, dialogues
        Shape (n,), consecutive codes from 0.
    average
        True: the statistic is over system means; False: over units.
    fixed
        True: the systems are those of interest, and only dialogues were sampled, however many systems there are.
    """

    systems: Integers
    dialogues: Integers
    average: bool = False
    fixed: bool = False

    @property
    def counts(self) -> tuple[int, int]:
        """Return the numbers of systems and dialogues."""
        return int(self.systems.max(initial=-1)) + 1, int(self.dialogues.max(initial=-1)) + 1

    @property
    def cells(self) -> Integers:
        """Return each unit's cell code (dialogue of a system), in order of system, then dialogue."""
        return codes_of(self.systems * self.counts[1] + self.dialogues)

    @property
    def given(self) -> bool:
        """Return whether systems count as fixed: requested, or only two or three of them."""
        return self.fixed or 1 < self.counts[0] < FEWEST_SAMPLED

    def of(self, kept: Flags) -> Design:
        """Return the design of a subset of the units, recoded."""
        return Design(codes_of(self.systems[kept]), codes_of(self.dialogues[kept]), self.average, self.fixed)
