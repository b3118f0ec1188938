"""Which system a correlation hangs on: its lowest value when one system is left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from comperdial.evaluation.samples import Sample
from comperdial.stats import Coefficient
from comperdial.stats.coefficients import without_each
from comperdial.stats.design import by_units
from comperdial.stats.means import paired_means

Floats = npt.NDArray[np.float64]

# How many systems must be left. Over units, two: of one alone, the differences between systems are gone. Over the means
# of systems, four: three points correlate at random.
FEWEST_LEFT = {False: 2, True: 4}
# Values nearer to each other than this are equally low: the first system is named, whatever the machine's rounding.
_SAME = 1e-12


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
        missing where fewer than three systems (at system level: five) have scores, and where the value is 0 or missing.
    """
    count = len(sample.systems)
    if sample.design.average:
        scores, ratings = paired_means(sample.scores, sample.ratings, sample.design)
        result = np.full(scores.shape, np.nan)
        # Outputs that scored the same units have the same mean ratings.
        for rows, _ in by_units(sample.scores):
            result[rows] = without_each(scores[rows], ratings[rows[0]], np.arange(count), name)
        scored = ~np.isnan(scores)
    else:
        systems = np.searchsorted(np.asarray(sample.systems), [system for _, system in sample.units])
        result = without_each(sample.scores, sample.ratings, systems, name)
        scored = np.array([np.bincount(systems[~np.isnan(row)], minlength=count) > 0 for row in sample.scores])
    lowest, named = np.full(len(values), np.nan), np.full(len(values), None, dtype=object)
    for row, sign in enumerate(np.sign(values)):
        if abs(sign) == 1 and scored[row].sum() > FEWEST_LEFT[sample.design.average]:
            from_above = np.where(np.isnan(result[row]), -np.inf, result[row] * sign)
            from_above = np.where(scored[row], from_above, np.inf)
            at = int(np.argmax(from_above <= from_above.min() + _SAME))
            lowest[row], named[row] = result[row, at], sample.systems[at]
    return {"loso_value": lowest, "loso_system": named}
