"""The result in one sentence: the metric that agrees best with people, and how many others do not differ significantly."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from comperdial.report.about import HUMAN, label
from comperdial.report.correlations import MEASURES, NOUNS, is_few, is_halved, level_pairs
from comperdial.report.ranking import Correction
from comperdial.report.render import count, interval, not_run, number
from comperdial.schema.tables import OVER
from comperdial.stats.correlation import ALPHA

__all__ = ["headline", "not_run"]
_SAMPLE = ["level", "against", "coefficient"]
# Smaller differences of coefficients are rounding.
_SAME = 1e-9
_NAME = ["metric", "output"]
_SYMBOLS = {"pearson": "Pearson's r", "spearman": "Spearman's ρ", "kendall": "Kendall's τ"}
_CORRECTED = {
    "holm": "Holm-corrected paired tests",
    "fdr": "paired tests, FDR corrected",
    "none": "uncorrected paired tests",
}


def headline(
    correlations: pd.DataFrame,
    pairs: pd.DataFrame,
    labels: Mapping[str, str] | None = None,
    *,
    source: str = "human",
    coefficient: str = "spearman",
    correction: Correction = "holm",
) -> str:
    """Return the result of an evaluation in one sentence.

    The level is the finest rated one; the metrics are those tested there, or all if none was.

    Parameters
    ----------
    correlations
        Table ``correlations`` of one data set and rated dimension; human ratings (``human:turns``) do not count as a metric.
    pairs
        Table ``pairs`` of the same, with ``p_adjusted`` (:func:`comperdial.report.ranking.corrected`).
    labels
        Labels of outputs, by METRIC:OUTPUT or METRIC.
    source
        Source of the ratings: ``human``, ``simulated`` or a judge's name.
    coefficient
        The preferred coefficient; otherwise the first one computed.
    correction
        The correction behind ``p_adjusted``.
    """
    rows = correlations[correlations["grouping"] == "pooled"].dropna(subset="value")
    rows = rows[rows["metric"] != HUMAN[0]]
    who = {"human": "people's", "simulated": "SIMULATED"}.get(source, f"{source}'s (no person's)")
    if rows.empty:
        return f"No metric has a correlation with {who} ratings."
    level, against = level_pairs(rows)[0]
    rows = rows[(rows["level"] == level) & (rows["against"] == against)]
    chosen = coefficient if coefficient in {*rows["coefficient"]} else rows["coefficient"].iloc[0]
    sample = pd.Series([level, against, chosen], _SAMPLE)
    rows = rows[rows["coefficient"] == chosen]
    names = pd.Series([*zip(rows["metric"], rows["output"], strict=True)], rows.index, dtype=object)
    tests = pairs[(pairs["grouping"] == "pooled") & (pairs[_SAMPLE].astype(str) == sample).all(axis=1)]
    sides = [pd.Series([*zip(tests[f"metric_{x}"], tests[f"output_{x}"], strict=True)], tests.index) for x in "ab"]
    tests = tests.assign(a=sides[0], b=sides[1])[sides[0].isin(names) & sides[1].isin(names)]
    tested = {*tests["a"], *tests["b"]}
    compared = names.isin(tested) if names.isin(tested).any() else names.notna()
    ranked = rows.assign(name=names).sort_values(["value", *_NAME], ascending=[False, True, True], kind="stable")
    best, others = ranked[compared[ranked.index]].iloc[0], int(compared.sum()) - 1
    higher = ranked[~compared[ranked.index] & (ranked["value"] > best["value"])]
    called = label(best["name"], labels or {})
    level_with = ranked[compared[ranked.index] & ((ranked["value"] - best["value"]).abs() < _SAME)]["name"]
    if same := [label(name, labels or {}) for name in level_with if name != best["name"]]:
        called += f" (like {', '.join(same)})"
    rated = f"{who} ratings of {against}s ({best['target']})"
    over = f"Over {count(best['n'], NOUNS[level])}"
    over += f" ({100 * best['coverage']:.0f} % of those rated)" if best["coverage"] < 0.995 else ""
    over += "" if compared.all() else f", of the {others + 1} metrics that were tested"
    value = f"{_SYMBOLS.get(chosen, MEASURES.get(chosen, chosen))} {_estimate(best)}"
    first = f"{over}, {called} has the highest correlation with {rated}: {value}"
    if best["value"] <= 0:
        first = f"{over}, none correlates positively with {rated}: the highest is {called}, {value}"
    if others:
        first += f"; {_others(tests, best['name'], others)} ({_CORRECTED[correction]} at {ALPHA})"
    else:
        first += "; no other metric was compared with it"
    if len(higher):
        most, more = higher.iloc[0], f" and {len(higher) - 1} more" if len(higher) > 1 else ""
        first += f"; higher, but not tested: {label(most['name'], labels or {})} with {number(most['value'])}{more}"
    return f"{first}."


def _estimate(row: pd.Series) -> str:
    """Format the value with all qualifications."""
    few = is_few(row.to_dict())
    text = number(row["value"], digits=2 if few else 3) + interval(row["low"], row["high"])
    exact = row.get("p_exact")
    p = row["p"] if exact is None or pd.isna(exact) else exact
    if row["low"] <= 0 <= row["high"]:
        text += ", an interval that includes 0"
    elif pd.isna(row["low"]) and p >= ALPHA:
        text += ", not significant"
    if row.get("over") == OVER[1]:
        text += ", for these systems only"
    if is_halved(row.to_dict()):
        left = "none" if pd.isna(row["loso_value"]) else number(row["loso_value"], digits=2 if few else 3)
        text += f" (without {row['loso_system']}: {left})"
    return text


def _others(tests: pd.DataFrame, best: tuple[str, str], others: int) -> str:
    """Summarize the tests between the best metric and each of the others."""
    own = tests[(tests["a"] == best) | (tests["b"] == best)]
    difference = own["difference"].where(own["a"] == best, -own["difference"])
    significant = own["p_adjusted"] < ALPHA
    worse, better = int((significant & (difference > 0)).sum()), int((significant & (difference < 0)).sum())
    same = int(own["p_adjusted"].notna().sum()) - worse - better
    untested = others - worse - better - same
    if worse == others:
        return f"it is significantly better than {'the other' if others == 1 else f'all {others} others'}"
    if same == others:
        many = f"none of the {others} others can be separated from it"
        return "the other metric cannot be separated from it" if others == 1 else many
    parts = [f"{same} of the {others} others cannot be separated from it"] if same or not untested else []
    parts += [f"{worse} correlate{'s' if worse == 1 else ''} significantly worse"] if worse else []
    # A pair is compared over the units that both scored.
    parts += [f"{better} correlate{'s' if better == 1 else ''} better where both have scores"] if better else []
    parts += [f"{untested} {'was' if untested == 1 else 'were'} not tested against it"] if untested else []
    return ", ".join(parts)
