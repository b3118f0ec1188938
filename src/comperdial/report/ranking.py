"""Corrected tests, ranks and planned contrasts, all over what a table shows: made of tables ``correlations`` and ``pairs``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial.core.names import Output, output_name
from comperdial.stats.multiple import benjamini_hochberg, holm, rank_clusters

Floats = npt.NDArray[np.float64]
Correction = Literal["holm", "fdr", "none"]
CORRECTIONS: tuple[Correction, ...] = get_args(Correction)

OF = ["dataset", "level", "against", "target", "grouping", "coefficient"]
"""What tests are corrected over: each by itself."""
_NAME = ["metric", "output"]


def of_outputs(frame: pd.DataFrame, outputs: Collection[str]) -> pd.DataFrame:
    """Return the rows of table ``correlations`` or ``pairs`` about some outputs (METRIC:OUTPUT), of pairs both."""
    sides = ("",) if "metric" in frame else ("_a", "_b")
    kept = np.ones(len(frame), dtype=np.bool_)
    for side in sides:
        kept &= (frame[f"metric{side}"] + ":" + frame[f"output{side}"]).isin(list(outputs)).to_numpy(np.bool_)
    return frame[kept]


def corrected(pairs: pd.DataFrame, correction: Correction = "holm") -> pd.DataFrame:
    """Add ``p_adjusted`` and ``p_fdr`` to pairs, corrected over those given.

    ``holm`` bounds the chance of any false finding; ``fdr``, which is always ``p_fdr``, is Benjamini and Hochberg's and bounds
    the share of false ones among the findings; ``none`` leaves p as it is.
    """
    rules = {"holm": holm, "fdr": benjamini_hochberg, "none": np.asarray}
    by = pairs.groupby(OF, sort=False, observed=True)["p"]
    wanted = {"p_adjusted": rules[correction], "p_fdr": benjamini_hochberg}
    return pairs.assign(
        **{
            name: by.transform(lambda p, rule=rule: rule(p.to_numpy(np.float64))) if len(pairs) else np.empty(0)
            for name, rule in wanted.items()
        }
    )


def with_ranks(correlations: pd.DataFrame, pairs: pd.DataFrame, correction: Correction = "holm") -> pd.DataFrame:
    """Add ``rank``, ``rank_wmt`` and ``tests`` to table ``correlations``: clusters of outputs that do not differ significantly.

    ``rank`` is by the corrected p of the paired test, ``rank_wmt`` by the p of WMT's permutation test, as WMT ranks.

    Parameters
    ----------
    correlations
        The rows that a table ranks.
    pairs
        Table ``pairs`` of any outputs: those between rows that are given are corrected together. ``tests`` is their number.
    correction
        As in :func:`corrected`.
    """
    known = pd.MultiIndex.from_frame(correlations[[*OF, *_NAME]])
    kept = np.ones(len(pairs), dtype=np.bool_)
    for side in "ab":
        columns = [*OF, *(f"{name}_{side}" for name in _NAME)]
        kept &= pd.MultiIndex.from_frame(pairs[columns]).isin(known)
    tests = dict(iter(corrected(pairs[kept], correction).groupby(OF, sort=False, observed=True)))
    rows = correlations.reset_index(drop=True)
    rank = pd.Series(pd.NA, index=rows.index, dtype="Int32")
    wmt, count = rank.copy(), rank.copy()
    for key, group in rows.groupby(OF, sort=False, observed=True):
        if key not in tests or (tested := tests[key])["p_adjusted"].isna().all():
            continue
        ends = [pd.MultiIndex.from_frame(tested[[f"metric_{side}", f"output_{side}"]]) for side in "ab"]
        compared = group[pd.MultiIndex.from_frame(group[_NAME]).isin(ends[0].append(ends[1]))]
        place = {name: at for at, name in enumerate(compared[_NAME].itertuples(index=False, name=None))}
        one, other = ([place[name] for name in side] for side in ends)
        values = compared["value"].to_numpy(np.float64, na_value=np.nan)
        for clusters, column in ((rank, "p_adjusted"), (wmt, "p_wmt")):
            if tested[column].isna().all():
                continue
            p = np.full((len(compared), len(compared)), np.nan)
            p[one, other] = p[other, one] = tested[column].to_numpy(np.float64)
            ranks = rank_clusters(values, p)
            ranked = compared.index[ranks > 0]
            clusters[ranked] = ranks[ranks > 0]
            if column == "p_adjusted":
                count[ranked] = int(tested[column].notna().sum())
    return correlations.assign(rank=rank.array, rank_wmt=wmt.array, tests=count.array)


def signed(pairs: pd.DataFrame, output: Output) -> pd.DataFrame:
    """Return the pairs of one output, as its difference from the other: metric_a and output_a are it everywhere."""
    sides = {side: (pairs[f"metric_{side}"] == output[0]) & (pairs[f"output_{side}"] == output[1]) for side in "ab"}
    turned = pairs[sides["b"]]
    ends = {f"{name}_{one}": turned[f"{name}_{other}"] for name in _NAME for one, other in ("ab", "ba")}
    turned = turned.assign(**ends, difference=-turned["difference"], low=-turned["high"], high=-turned["low"])
    return pd.concat([pairs[sides["a"]], turned]).sort_index()


def against(pairs: pd.DataFrame, output: Output) -> pd.DataFrame:
    """Return the pairs of one output with each other one: planned contrasts, which are corrected by themselves."""
    kept = np.zeros(len(pairs), dtype=np.bool_)
    for side in "ab":
        kept |= ((pairs[f"metric_{side}"] == output[0]) & (pairs[f"output_{side}"] == output[1])).to_numpy(np.bool_)
    return pairs[kept]


def contrasts(pairs: pd.DataFrame, planned: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return planned contrasts in order, by each coefficient, corrected by Holm over all of them.

    Parameters
    ----------
    pairs
        Table ``pairs`` of all data sets, of one level and dimension each.
    planned
        As ``study.yaml`` has them: ``metric`` and ``against`` (METRIC:OUTPUT), and ``datasets``.

    Returns
    -------
    DataFrame
        metric, against, dataset, coefficient, difference (metric's correlation minus that of ``against``), low, high, p,
        p_adjusted, tests, n, test. A contrast that could not be tested has no p, and counts as no test.
    """
    found = {}
    for entry in planned:
        one, other = output_name(entry["metric"]), output_name(entry["against"])
        own = signed(pairs[pairs["grouping"] == "pooled"], one)
        for row in own[(own["metric_b"] == other[0]) & (own["output_b"] == other[1])].to_dict("records"):
            found[entry["metric"], entry["against"], row["dataset"], row["coefficient"]] = row
    coefficients = [name for name in ("pearson", "spearman", "kendall") if name in {key[3] for key in found}]
    rows = [
        {"metric": entry["metric"], "against": entry["against"], "dataset": dataset, "coefficient": coefficient}
        | {
            name: found.get((entry["metric"], entry["against"], dataset, coefficient), {}).get(name)
            for name in ("difference", "low", "high", "p", "n", "test")
        }
        for entry in planned
        for dataset in entry["datasets"]
        for coefficient in coefficients or ("pearson", "spearman")
    ]
    frame = pd.DataFrame(rows).astype(dict.fromkeys(("difference", "low", "high", "p"), "float64") | {"n": "Int32"})
    p = frame.groupby("coefficient", sort=False)["p"]
    frame.insert(7, "p_adjusted", p.transform(lambda one: holm(one.to_numpy(np.float64))))
    frame.insert(8, "tests", p.transform("count"))
    return frame
