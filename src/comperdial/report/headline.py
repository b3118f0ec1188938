"""The answer in one sentence: which metric agrees best with people, and how many others the tests cannot separate from it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pandas as pd

from comperdial.report.about import HUMAN, label
from comperdial.report.correlations import MEASURES, is_few, is_halved, level_pairs
from comperdial.report.ranking import Correction
from comperdial.report.render import count, interval, number
from comperdial.schema.tables import OVER
from comperdial.stats.correlation import ALPHA

_SAMPLE = ["level", "against", "coefficient"]
_NAME = ["metric", "output"]
_NOUNS = {"turn": "response", "dialogue": "dialogue", "system": "system"}
_SYMBOLS = {"pearson": "Pearson's r", "spearman": "Spearman's ρ", "kendall": "Kendall's τ"}
_CORRECTED = {
    "holm": "Holm-corrected paired tests",
    "fdr": "paired tests, FDR corrected",
    "none": "uncorrected paired tests",
}
# Reasons that name one model or judge each, by what they have in common.
_KINDS = (
    (r"^model .* is not present", "their model is not on this machine"),
    (r"costs? money", "they cost money, and the budget does not cover them"),
    (r"^no scores of|is no judge of", "not configured for this data set"),
    (r"^there are recorded scores of", "recorded for another data set"),
    (r" has no .* where ", "the data lack what they need"),
    (r"^no rated response", "no rated response has a score"),
)
# A longer reason does not belong in a line of all.
_LONG = 80


def headline(
    correlations: pd.DataFrame,
    pairs: pd.DataFrame,
    labels: Mapping[str, str] | None = None,
    *,
    source: str = "human",
    coefficient: str = "spearman",
    correction: Correction = "holm",
) -> str:
    """Return the answer of an evaluation in one sentence.

    The level is the finest that was rated; the metrics are those that were tested there, or all if none was.

    Parameters
    ----------
    correlations
        Table ``correlations`` of one data set and rated dimension; people's own ratings (``human:turns``) count as no metric.
    pairs
        Table ``pairs`` of the same, with ``p_adjusted`` (:func:`comperdial.report.ranking.corrected`).
    labels
        What to call outputs, by METRIC:OUTPUT or METRIC.
    source
        Who rated: ``human``, ``simulated`` or a judge's name.
    coefficient
        The coefficient, if it was computed; else the first that was.
    correction
        How ``p_adjusted`` was made.
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
    tests = pairs[(pairs["grouping"] == "pooled") & (pairs[_SAMPLE].astype(str) == sample).all(axis=1)]
    names = pd.Series([*zip(rows["metric"], rows["output"], strict=True)], rows.index, dtype=object)
    tested = {*zip(tests["metric_a"], tests["output_a"], strict=True)} | {
        *zip(tests["metric_b"], tests["output_b"], strict=True)
    }
    if names.isin(tested).any():
        rows, names = rows[names.isin(tested)], names[names.isin(tested)]
    best = rows.assign(name=names).sort_values(["value", *_NAME], ascending=[False, True, True], kind="stable").iloc[0]
    called = label(best["name"], labels or {})
    rated = f"{who} ratings of {against}s ({best['target']})"
    over = f"Over {count(best['n'], _NOUNS[level])}"
    value = f"{_SYMBOLS.get(chosen, MEASURES.get(chosen, chosen))} {_estimate(best)}"
    first = f"{over}, {called} has the highest correlation with {rated}: {value}"
    if best["value"] <= 0:
        first = f"{over}, no metric correlates positively with {rated}: the highest is {called}, {value}"
    others = len(rows) - 1
    if not others:
        return f"{first}; no other metric was compared with it."
    return f"{first}; {_others(tests, best['name'], others)} ({_CORRECTED[correction]} at {ALPHA})."


def _estimate(row: pd.Series) -> str:
    """Write the value with all that limits what it says."""
    few = is_few(row)
    text = number(row["value"], digits=2 if few else 3) + interval(row["low"], row["high"])
    exact = row.get("p_exact")
    p = row["p"] if exact is None or pd.isna(exact) else exact
    if row["low"] <= 0 <= row["high"]:
        text += ", an interval that includes 0"
    elif pd.isna(row["low"]) and p >= ALPHA:
        text += ", not significant"
    if row.get("over") == OVER[1]:
        text += ", for these systems only"
    if is_halved(row):
        left = "none" if pd.isna(row["loso_value"]) else number(row["loso_value"], digits=2 if few else 3)
        text += f" (without {row['loso_system']}: {left})"
    return text + (f", on {100 * row['coverage']:.0f} % of them" if row["coverage"] < 0.995 else "")


def _others(tests: pd.DataFrame, best: tuple[str, str], others: int) -> str:
    """Say what the tests found between the best metric and each of the others."""
    first = (tests["metric_a"] == best[0]) & (tests["output_a"] == best[1])
    own = tests[first | ((tests["metric_b"] == best[0]) & (tests["output_b"] == best[1]))]
    difference = own["difference"].where(first[own.index], -own["difference"])
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
    # A pair is compared over what both have scored.
    parts += [f"{better} correlate{'s' if better == 1 else ''} better where both have scores"] if better else []
    parts += [f"{untested} {'was' if untested == 1 else 'were'} not tested against it"] if untested else []
    return ", ".join(parts)


def not_run(reasons: Mapping[Any, str]) -> str:
    """Return one line on what was not run, counted by reason, given the reason of each; empty if nothing is missing.

    Reasons that differ in a model's or judge's name only count as one; a long one is left to the list of all.
    """
    if len(reasons) < 2:
        return "".join(f"Not run: {name}: {why}" for name, why in reasons.items())
    kinds = Counter(map(_kind, reasons.values())).most_common()
    return f"Not run: {len(reasons)} metrics and judges: " + ", ".join(f"{n} ({kind})" for kind, n in kinds)


def _kind(why: str) -> str:
    known = next((kind for pattern, kind in _KINDS if re.search(pattern, why)), why)
    return known if len(known) <= _LONG else "other reasons"
