"""Corrected tests, ranks and planned contrasts over the rows of a table, from tables ``correlations`` and ``pairs``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from comperdial.core.names import Output, output_name
from comperdial.stats.multiple import benjamini_hochberg, holm, rank_clusters

Correction = Literal["holm", "fdr", "none"]

OF = ["dataset", "level", "against", "target", "grouping", "coefficient"]
"""What tests are corrected over: each by itself."""


def _names(frame: pd.DataFrame, side: str = "") -> pd.Series[str]:
    """Return METRIC:OUTPUT of each row."""
    return frame[f"metric{side}"] + ":" + frame[f"output{side}"]


def of_outputs(frame: pd.DataFrame, outputs: Collection[str]) -> pd.DataFrame:
    """Return the rows of table ``correlations`` about some outputs (METRIC:OUTPUT), or of ``pairs`` about two of them."""
    sides = ("",) if "metric" in frame else ("_a", "_b")
    return frame[np.all([_names(frame, side).isin(list(outputs)) for side in sides], axis=0)]


def against(pairs: pd.DataFrame, output: Output) -> pd.DataFrame:
    """Return the pairs of one output with each other one: planned contrasts, corrected separately."""
    return pairs[np.any([_names(pairs, side) == ":".join(output) for side in ("_a", "_b")], axis=0)]


def signed(pairs: pd.DataFrame, output: Output) -> pd.DataFrame:
    """Return the pairs of one output as its difference from the other: metric_a and output_a are always this output."""
    result = against(pairs, output)
    turned = result[_names(result, "_b") == ":".join(output)]
    ends = {f"{name}_{one}": turned[f"{name}_{other}"] for name in ("metric", "output") for one, other in ("ab", "ba")}
    turned = turned.assign(**ends, difference=-turned["difference"], low=-turned["high"], high=-turned["low"])
    return pd.concat([result.drop(turned.index), turned]).sort_index()


def corrected(pairs: pd.DataFrame, correction: Correction = "holm") -> pd.DataFrame:
    """Add ``p_adjusted`` and ``p_fdr`` to pairs, corrected over the given ones.

    ``holm`` bounds the probability of any false positive; ``fdr``, which is always ``p_fdr``, is Benjamini and Hochberg's and
    bounds the share of false positives among significant results; ``none`` keeps p.
    """
    rules = {"holm": holm, "fdr": benjamini_hochberg, "none": np.asarray}
    wanted = {"p_adjusted": rules[correction], "p_fdr": benjamini_hochberg}
    if pairs.empty:
        return pairs.assign(**dict.fromkeys(wanted, np.empty(0)))
    by = pairs.groupby(OF, sort=False, observed=True)["p"]
    return pairs.assign(**{n: by.transform(lambda p, of=of: of(p.to_numpy(np.float64))) for n, of in wanted.items()})


def with_ranks(correlations: pd.DataFrame, pairs: pd.DataFrame, correction: Correction = "holm") -> pd.DataFrame:
    """Add ``rank`` and ``tests`` to table ``correlations``: clusters of outputs that do not differ significantly.

    ``pairs`` may include other outputs: those between the given rows are corrected together, ``tests`` is their number.
    """
    rows = correlations.reset_index(drop=True)
    made = pd.DataFrame(index=rows.index, columns=["rank", "tests"], dtype="Int32")
    groups = dict(iter(pairs.groupby(OF, sort=False, observed=True)))
    for key, group in rows.groupby(OF, sort=False, observed=True):
        if key not in groups:
            continue
        tested = corrected(of_outputs(groups[key], _names(group)), correction)
        a, b = _names(tested, "_a"), _names(tested, "_b")
        compared = group[_names(group).isin([*a, *b])]
        if tested["p_adjusted"].notna().any():
            place = {name: at for at, name in enumerate(_names(compared))}
            p = np.full((len(compared), len(compared)), np.nan)
            p[a.map(place), b.map(place)] = p[b.map(place), a.map(place)] = tested["p_adjusted"].to_numpy(np.float64)
            ranks = rank_clusters(compared["value"].to_numpy(np.float64, na_value=np.nan), p)
            ranked = compared.index[ranks > 0]
            made.loc[ranked, "rank"] = ranks[ranks > 0]
            made.loc[ranked, "tests"] = int(tested["p_adjusted"].notna().sum())
    return correlations.assign(rank=made["rank"].array, tests=made["tests"].array)


def contrasts(pairs: pd.DataFrame, planned: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return planned contrasts in order, by coefficient, corrected by Holm over all of them.

    ``pairs`` cover all data sets, with one level and dimension each; ``planned`` has ``metric`` and ``against`` (METRIC:OUTPUT)
    and ``datasets``. Returns metric, against, dataset, coefficient, difference (``metric`` minus ``against``), low, high, p,
    p_adjusted, tests, n, test. A contrast that could not be tested has no p, and does not count as a test.
    """
    plan = pd.DataFrame(list(planned))[["metric", "against", "datasets"]].explode("datasets", ignore_index=True)
    plan = plan.rename(columns={"datasets": "dataset"})
    pooled = pairs[pairs["grouping"] == "pooled"]
    own = pd.concat([signed(pooled, output_name(name)) for name in plan["metric"].unique()])
    own = own.assign(metric=_names(own, "_a"), against=_names(own, "_b"))
    key, columns = ["metric", "against", "dataset", "coefficient"], ["difference", "low", "high", "p", "n", "test"]
    there = {*plan.merge(own, on=key[:3])["coefficient"]}
    coefficients = [name for name in ("pearson", "spearman", "kendall") if name in there] or ["pearson", "spearman"]
    frame = plan.merge(pd.DataFrame({"coefficient": coefficients}), how="cross")
    frame = frame.merge(own[[*key, *columns]], on=key, how="left")
    frame = frame.astype(dict.fromkeys(columns[:4], "float64") | {"n": "Int32"})
    p = frame.groupby("coefficient", sort=False)["p"]
    frame.insert(7, "p_adjusted", p.transform(lambda one: holm(one.to_numpy(np.float64))))
    frame.insert(8, "tests", p.transform("count"))
    return frame
