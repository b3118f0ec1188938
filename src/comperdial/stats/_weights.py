"""How often what was sampled was drawn: resamples as weights."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Weights:
    """How often each system and each dialogue was drawn: shapes (resamples, systems) and (resamples, dialogues).

    ``cells``, shape (resamples, systems, dialogues), is how often a dialogue was drawn for one system by itself. None
    means that this was not resampled; the weight of a unit is the product of the others.
    """

    systems: Floats | None = None
    dialogues: Floats | None = None
    cells: npt.NDArray[np.uint16] | None = None

    @property
    def count(self) -> int:
        """Number of resamples."""
        sides = [len(side) for side in (self.systems, self.dialogues, self.cells) if side is not None]
        return sides[0] if sides else 1

    def rows(self, start: int, stop: int) -> Weights:
        """Return some of the resamples."""
        sides = {field.name: getattr(self, field.name) for field in fields(self)}
        return Weights(**{name: None if side is None else side[start:stop] for name, side in sides.items()})

    def of(self, systems: Integers, dialogues: Integers) -> Floats:
        """Return the weights of units, given their systems and dialogues: shape (units, resamples)."""
        found = np.ones((len(systems), 1)) if self.systems is None else self.systems.T[systems]
        if self.dialogues is not None:
            found = found * self.dialogues.T[dialogues]
        if self.cells is not None:
            found = found * self.cells.transpose(1, 2, 0)[systems, dialogues]
        return found
