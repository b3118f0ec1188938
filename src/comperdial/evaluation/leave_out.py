"""Which system a correlation hangs on: its lowest value when one system is left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from comperdial.evaluation.samples import Sample
from comperdial.stats import Coefficient
from comperdial.stats.leave_out import lowest_without
from comperdial.stats.means import paired_means

Floats = npt.NDArray[np.float64]

# How many systems must be left. Over units, two: of one alone, the differences between systems are gone. Over the means
# of systems, four: three points correlate at random.
FEWEST_LEFT = {False: 2, True: 4}


def leave_one_system_out(sample: Sample, name: Coefficient, values: Floats) -> dict[str, npt.NDArray[Any]]:
    """Return columns ``loso_value`` and ``loso_system`` of each output: the lowest value without a system, and which.

    Parameters
    ----------
    sample
        Scores and ratings. Which system a unit is of is taken from ``units``: a design may put systems together.
    name
        The coefficient.
    values
        Its values with all systems, shape (outputs,).

    Returns
    -------
    dict
        Lowest is towards 0 and beyond: the smallest value where all systems give a positive one, the largest where they
        give a negative one. A system without which no coefficient is left is named, and the value missing. Both are
        missing where fewer than three systems (at system level: five) have scores.
    """
    systems = np.searchsorted(np.asarray(sample.systems), [system for _, system in sample.units])
    fewest = FEWEST_LEFT[sample.design.average]
    lowest, at = np.full(len(values), np.nan), np.full(len(values), -1)
    if not sample.design.average:
        lowest, at = lowest_without(values, sample.scores, sample.ratings, systems, name, fewest=fewest)
    elif len(values):
        scores, ratings = paired_means(sample.scores, sample.ratings, sample.design)
        every = np.arange(len(sample.systems))
        # Outputs that scored the same units have the same mean ratings.
        _, first, same = np.unique(np.nan_to_num(ratings, nan=np.inf), axis=0, return_index=True, return_inverse=True)
        for number, one in enumerate(first):
            rows = same.reshape(-1) == number
            found = lowest_without(values[rows], scores[rows], ratings[one], every, name, fewest=fewest)
            lowest[rows], at[rows] = found
    names = np.array([*sample.systems, None], dtype=object)
    return {"loso_value": lowest, "loso_system": names[at]}
