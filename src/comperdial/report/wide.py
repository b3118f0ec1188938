"""Frames of many pairs in the form in which their CSV files are small."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from comperdial.report.tables import significant


def wide_comparisons(pairs: pd.DataFrame, tests: Sequence[str], coefficients: Sequence[str]) -> pd.DataFrame:
    """Return one row a pair, its columns once for each coefficient: half the bytes of one row each.

    ``pairs`` has the metrics' names as a and b; in what is returned, a comes first in the alphabet.
    """
    turned = pairs["a"] > pairs["b"]
    found = pairs.assign(
        a=pairs["a"].where(~turned, pairs["b"]),
        b=pairs["b"].where(~turned, pairs["a"]),
        difference=pairs["difference"].where(~turned, -pairs["difference"]).round(3) + 0.0,
        **{test: significant(pairs[test], 2) for test in tests},
    )
    index = ["level", "against", "a", "b"]
    columns = ["difference", *tests]
    wide = found.pivot_table(index=index, columns="coefficient", values=columns, observed=True, dropna=False)
    order = [(column, c) for c in coefficients if c in set(pairs["coefficient"].astype(str)) for column in columns]
    wide = wide.reindex(columns=order).dropna(how="all")
    wide.columns = pd.Index([f"{coefficient}_{column}" for column, coefficient in order])
    return wide.reset_index()


def wide_power(power: pd.DataFrame) -> pd.DataFrame:
    """Return one row a pair, with its power or without, one column a size: a quarter of the bytes of one row each."""
    index = ["level", "against", "coefficient", "varied", "a", "b", "difference"]
    rounded = power.round({"power": 3, "difference": 5})
    # A pivot table would leave out pairs without any power, or have a row of every combination.
    wide = rounded.groupby([*index, "size"], observed=True)["power"].mean().unstack("size")
    return wide.rename(columns="power_{}".format).rename_axis(columns=None).reset_index()
