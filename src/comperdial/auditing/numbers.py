"""Shared by the audit sections: numbers with intervals over clusters, and how to format them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]
Row = tuple[str, float, float, float, float]
PEARSON = "Pearson with people's mean"
KAPPA, KAPPA_NOMINAL = "Weighted kappa of the judge with a rater", "Cohen's kappa of the judge with a rater"
# Most names listed in a sentence, and fewest clusters for an interval.
MOST_NAMES, FEWEST_CLUSTERS = 3, 3


@dataclass(frozen=True)
class Section:
    """A section of an audit: sentences and their numbers (what, value, low, high, n).

    ``reason`` explains why there are no numbers; ``lines`` appear only in text output; the page shows ``frames`` instead,
    tables by title.
    """

    title: str
    sentences: Sequence[str] = ()
    numbers: pd.DataFrame | None = None
    reason: str = ""
    lines: Sequence[str] = ()
    frames: Mapping[str, pd.DataFrame] = field(default_factory=dict)

    def number(self, what: str) -> dict[str, float]:
        """Return value, low, high and n of one number; NaN if it is missing."""
        rows = pd.DataFrame(columns=["what"]) if self.numbers is None else self.numbers[self.numbers["what"] == what]
        return dict(rows.iloc[0][1:]) if len(rows) else dict.fromkeys(("value", "low", "high", "n"), np.nan)


# Statistics with intervals over clusters


def over_clusters(sums: Floats, value_of: Callable[[Floats], Any]) -> tuple[float, float, float]:
    """Return a statistic of cluster sums, (clusters, k), with a jackknife interval over clusters."""
    sums = sums[sums.any(axis=1)]
    count, total = len(sums), sums.sum(axis=0)
    value = float(value_of(total[np.newaxis])[0])
    without = np.asarray(value_of(total - sums), dtype=np.float64)
    if count < FEWEST_CLUSTERS or np.isnan(value) or np.isnan(without).any():
        return value, np.nan, np.nan
    error = np.sqrt((count - 1) / count * ((without - without.mean()) ** 2).sum())
    reach = stats.t.ppf(0.975, count - 1) * error
    return value, value - reach, value + reach


def summed(columns: Floats, codes: Integers) -> Floats:
    """Sum columns, (n, k), over the items of each cluster."""
    return np.stack([np.bincount(codes, column) for column in columns.T], axis=1)


def _pearson(sums: Floats) -> Floats:
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((xy - x * y / n) / np.sqrt((xx - x * x / n) * (yy - y * y / n)))


def correlation_of(x: Floats, y: Floats, codes: Integers) -> tuple[float, float, float]:
    """Return Pearson's coefficient with an interval on the Fisher z scale."""
    x, y = x - x.mean(), y - y.mean()
    sums = summed(np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1), codes)
    value = float(_pearson(sums.sum(axis=0)[np.newaxis])[0])
    if not abs(value) < 1 - 1e-9:
        return value, np.nan, np.nan
    _, low, high = over_clusters(sums, lambda part: np.arctanh(np.clip(_pearson(part), -1 + 1e-9, 1 - 1e-9)))
    return value, float(np.tanh(low)), float(np.tanh(high))


def mean_of(values: Floats, codes: Integers) -> tuple[float, float, float]:
    """Return a mean with its interval over clusters; NaN without values."""
    if not len(values):
        return np.nan, np.nan, np.nan
    sums = summed(np.stack([np.ones_like(values), values], axis=1), codes)
    with np.errstate(invalid="ignore", divide="ignore"):
        return over_clusters(sums, lambda part: part[..., 1] / part[..., 0])


def difference_of(values: Floats, one: Flags, other: Flags, codes: Integers) -> tuple[float, float, float]:
    """Return the difference between the means of two groups of items."""
    kept = one | other
    columns = np.stack([one, one * values, other, other * values], axis=1)[kept].astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        return over_clusters(
            summed(columns, codes[kept]), lambda sums: sums[..., 1] / sums[..., 0] - sums[..., 3] / sums[..., 2]
        )


# Words


def tidy(rows: Sequence[Row]) -> pd.DataFrame:
    """Return rows as a frame."""
    return pd.DataFrame(rows, columns=["what", "value", "low", "high", "n"])


def listed(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others."""
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def written(row: Mapping[str, float] | Sequence[Any], *, sign: bool = False) -> str:
    """Format a value with its interval, from a row of numbers or from (value, low, high)."""
    if isinstance(row, Mapping):
        value, low, high = row["value"], row["low"], row["high"]
    else:
        value, low, high = row[1:4] if isinstance(row[0], str) else row[:3]
    if np.isnan(value):
        return "not defined"
    plus = "+" if sign else ""
    return f"{value:{plus}.2f}" + ("" if np.isnan(low) else f" [{low:{plus}.2f}, {high:{plus}.2f}]")
