"""What ``comperdial compare`` shows: each metric's correlation, and in a sentence a pair which of two is better."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import pandas as pd

from comperdial.report.correlations import (
    COEFFICIENTS,
    LEGEND,
    MARK,
    MEASURES,
    halved,
    is_few,
    is_halved,
    left_out_notes,
    level_pairs,
    level_title,
    lowest,
    over_tests,
)
from comperdial.report.render import Section, Table, number, records_by, rows_frame
from comperdial.schema.tables import OVER
from comperdial.stats.correlation import ALPHA

Name = tuple[str, str]
_SAMPLE = ["dataset", "target", "level", "against"]
# How a corrected p is called; Holm's is the default.
_CORRECTED = {"holm": "Holm", "fdr": "FDR"}
_GIVEN_NOTE = (
    "Over contexts, these systems: the systems count as given, and contexts (those of a dialogue together) as sampled. "
    "Nothing is claimed of other systems. Two or three systems always count so; with more, --systems fixed asks for it"
)
_CORRECTION_NOTES = {
    "holm": "Holm: p after Holm's correction for {}",
    "fdr": "FDR: p after Benjamini and Hochberg's correction for {}; of the differences found, at most 5 % are expected to be "
    "false",
    "none": "No p is corrected for the number of pairs: of 100 pairs that do not differ, about 5 will seem to",
}


def comparison_document(
    correlations: pd.DataFrame,
    differences: pd.DataFrame,
    ceilings: pd.DataFrame,
    labels: Mapping[Name, str],
    coefficients: Sequence[str],
    *,
    caption: str,
    notes: Sequence[str] = (),
    correction: str = "holm",
    contrasted: Name | None = None,
) -> Table:
    """Render how well metrics correlate with ratings and which of them differ.

    Parameters
    ----------
    correlations, ceilings
        Tables of these names.
    differences
        As :func:`comperdial.evaluation.differences` gives them.
    labels
        What to call each (metric, output), in the order of the table.
    coefficients
        Which coefficients; those of pairs of systems exist at system level only.
    caption, notes
        What to say above the tables; what was left out, below.
    correction
        What made ``p_adjusted`` of the differences, and the ranks: ``holm``, ``fdr`` or ``none``.
    contrasted
        The one that the others are compared with; ``differences`` has no other pairs then.
    """
    pooled = correlations[correlations["grouping"] == "pooled"]
    sections = []
    tested: dict[str, int] = {}
    several = pooled["dataset"].nunique() > 1
    for dataset, target in pooled[["dataset", "target"]].drop_duplicates().itertuples(index=False, name=None):
        of_target = pooled[(pooled["dataset"] == dataset) & (pooled["target"] == target)]
        for level, against in level_pairs(of_target):
            key = {"dataset": dataset, "target": target, "level": level, "against": against}
            heading = f"{dataset}, {target}" if several else str(target)
            title = f"{heading}: {level_title(level, against)}"
            parts = [_of(frame, key) for frame in (pooled, differences, ceilings)]
            if _these_systems(*parts[:2]):
                title += f" (over {OVER[1]})"
            there = [name for name in coefficients if name in set(parts[0]["coefficient"])]
            sections.append(_metrics(title, parts[0], parts[2], labels, there, correction))
            if len(labels) > 1:
                pairs = f"{title}, pairs"
                sections.append(_pairs(pairs, parts[0], parts[1], labels, there, correction, contrasted))
                counts = parts[1].groupby("coefficient")["p"].count()
                tested |= {f"{title}, {MEASURES[name]}": int(counts.get(name, 0)) for name in there}
    made = pooled.drop_duplicates(["metric", "output"])
    signatures = {(row["metric"], row["output"]): row["signature"] for row in made.to_dict("records")}
    marked = halved(pooled[pooled["coefficient"].isin(list(coefficients))]).fillna(False).any()
    return Table(
        title="Metrics compared",
        caption=f"{caption} {LEGEND}" if marked else caption,
        sections=sections,
        frame=_tidy(pooled, differences, labels, coefficients, correction),
        notes=[
            *notes,
            "The p of a correlation is the papers': it takes responses as independent, which those of one system or "
            "dialogue are not. Over eight systems or fewer it is exact: the share of all orders of the systems that would "
            "correlate as strongly or more. The intervals and the tests of pairs take systems and dialogues as what was sampled"
            + (
                ", where they are not over contexts, these systems"
                if _these_systems(pooled, differences, every=False)
                else ""
            ),
            *([_GIVEN_NOTE] if _these_systems(pooled, differences, every=False) else []),
            *(
                [f"The interval of a difference leaves out 0 just where its p is below {ALPHA}"]
                if len(labels) > 1
                else []
            ),
            *([_corrected(correction, tested, labels[contrasted] if contrasted else None)] if len(labels) > 1 else []),
            *(["A pair is compared over what both metrics have scored"] if (pooled["coverage"] < 1).any() else []),
            *left_out_notes(pooled[pooled["value"].notna()], {} if several else None),
            *(f"{label}: {name[1]}, {signatures[name]}" for name, label in labels.items() if name in signatures),
        ],
    )


def _these_systems(*frames: pd.DataFrame, every: bool = True) -> bool:
    """Return whether the intervals and tests, every one or any, are over contexts with the systems given."""
    over = pd.concat([frame["over"] for frame in frames if "over" in frame] or [pd.Series(dtype=str)]).dropna()
    given = over == OVER[1]
    return bool(len(given) and (given.all() if every else given.any()))


def _corrected(correction: str, tested: Mapping[str, int], against: str | None) -> str:
    """Say over how many tests p-values were corrected."""
    if max(tested.values(), default=0) < 2:
        return "No p is corrected: no block has more than one tested pair by a coefficient"
    which = f"comparisons with {against}, and no others," if against else "all pairs"
    return _CORRECTION_NOTES[correction].format(f"{which} of a block and coefficient: {over_tests(tested)}")


def _of(frame: pd.DataFrame, key: Mapping[str, str]) -> pd.DataFrame:
    chosen = pd.Series(True, index=frame.index)
    for column, value in key.items():
        chosen &= frame[column] == value
    return frame[chosen]


def _metrics(
    title: str,
    found: pd.DataFrame,
    ceilings: pd.DataFrame,
    labels: Mapping[Name, str],
    coefficients: Sequence[str],
    correction: str,
) -> Section:
    cells = records_by(found, ["metric", "output", "coefficient"])
    partial = bool((found["coverage"] < 1).any())
    robust = bool(found["loso_system"].notna().any())
    # Two metrics are one pair, which a sentence says all of.
    ranked = len(labels) > 2 and bool(found["rank"].notna().any())
    rows = []
    for name, label in labels.items():
        of_metric = [cells.get((*name, coefficient)) for coefficient in coefficients]
        row = [label]
        for coefficient, cell in zip(coefficients, of_metric, strict=True):
            row += [_value(cell) if cell else "–"]
            if coefficient in COEFFICIENTS:
                row += [_interval(cell)] if cell else ["–"]
                row += [lowest(cell) if cell else "–"] if robust else []
                row += [_p(_known_p(cell)) if cell else "–"]
            row += [_rank(cell)] if ranked else []
        some = next((cell for cell in of_metric if cell), None)
        row += [str(some["n"]) if some else "0"]
        rows.append(row + ([f"{some['coverage']:.0%}" if some else "0%"] if partial else []))
    pooled = ceilings[ceilings["grouping"] == "pooled"]
    means = pooled.groupby("coefficient")["value"].mean()
    if means.reindex(list(coefficients)).notna().any():
        row = ["(one rater)"]
        for coefficient in coefficients:
            row += [
                number(means.get(coefficient)),
                *["–"] * ((2 + robust) * (coefficient in COEFFICIENTS) + ranked),
            ]
        rows.append([*row, "–", *(["–"] if partial else [])])
    columns = [("", "Metric")]
    shown = ("value", "95 % interval", *(["without one system"] if robust else []), "p")
    shown += (_rank_name(correction),) if ranked else ()
    for coefficient in coefficients:
        # Of pairs of systems there is neither an interval nor a p of the value.
        has = shown if coefficient in COEFFICIENTS else [name for name in shown if name.startswith(("value", "rank"))]
        columns += [(MEASURES[coefficient], name) for name in has]
    columns += [("", "n"), *([("", "scored")] if partial else [])]
    return Section(title, rows_frame(columns, rows))


def _value(cell: Mapping[str, Any]) -> str:
    return number(cell["value"], digits=2 if is_few(cell) else 3) + (MARK if is_halved(cell) else "")


def _pairs(
    title: str,
    correlations: pd.DataFrame,
    differences: pd.DataFrame,
    labels: Mapping[Name, str],
    coefficients: Sequence[str],
    correction: str,
    contrasted: Name | None,
) -> Section:
    rows = []
    here = set(correlations[["metric", "output"]].itertuples(index=False, name=None))
    for coefficient in coefficients:
        of_coefficient = differences[differences["coefficient"] == coefficient]
        records = records_by(of_coefficient, ["metric_a", "output_a", "metric_b", "output_b"])
        found = {frozenset([_name(pair, "a"), _name(pair, "b")]): pair for pair in records.values()}
        for one, other in combinations([name for name in labels if name in here], 2):
            if contrasted and contrasted not in (one, other):
                continue
            pair = found.get(frozenset([one, other]))
            said = (
                sentence(pair, labels[_name(pair, "a")], labels[_name(pair, "b")], len(found), correction)
                if pair
                else f"{labels[one]} and {labels[other]} cannot be compared: too few shared points, or one is constant"
            )
            rows.append([MEASURES[coefficient], said])
    return Section(title, rows_frame(["Coefficient", "Pair"], rows))


def _name(pair: Mapping[str, Any], side: str) -> Name:
    return str(pair[f"metric_{side}"]), str(pair[f"output_{side}"])


def _rank(cell: Mapping[str, Any] | None) -> str:
    return "–" if cell is None or pd.isna(cell["rank"]) else f"#{cell['rank']}"


def _rank_name(correction: str) -> str:
    return f"rank ({_CORRECTED.get(correction, 'not corrected')})"


def sentence(pair: Mapping[str, Any], a: str, b: str, pairs: int, correction: str = "holm") -> str:
    """Say what was found of a pair, a being the one with the higher coefficient; no more than its p allows."""
    difference = f"{number(pair['difference'], digits=2, sign=True)}{_interval(pair, space=' ')}"
    if pd.isna(pair["p"]):
        return f"no test of {a} and {b}: {difference}, n = {pair['n']}"
    tested = f"{difference}, p {_p(pair['p'], equals=True)}"
    found = pair["p"] < ALPHA
    if pairs > 1 and correction in _CORRECTED:
        lost = ", not significant" if found and not pair["p_adjusted"] < ALPHA else ""
        tested += f" ({_CORRECTED[correction]}: {_p(pair['p_adjusted'])}{lost})"
    if not found:
        return f"no significant difference between {a} and {b}: {tested}"
    return f"{a} correlates better than {b}: {tested}"


def _interval(cell: Mapping[str, Any], *, space: str = "") -> str:
    if pd.isna(cell["low"]) or pd.isna(cell["high"]):
        return "" if space else "–"
    return f"{space}[{_end(cell['low'])}, {_end(cell['high'])}]"


def _end(value: float) -> str:
    # An end near 0 says by its sign on which side it lies.
    text = number(value, digits=2)
    return f"{value:.1g}" if text == "0.00" and value else text


def _known_p(cell: Mapping[Any, Any]) -> float:
    """Return the exact p where there is one."""
    exact = cell.get("p_exact")
    return float(cell["p"] if exact is None or math.isnan(exact) else exact)


def _p(p: float, *, equals: bool = False) -> str:
    if math.isnan(p):
        return "–"
    if p < 0.001:
        return "< 0.001"
    # Rounding must not carry p over the line.
    digits = next((digits for digits in (3, 4) if (round(p, digits) < ALPHA) == (p < ALPHA)), 6)
    return f"{'= ' if equals else ''}{p:.{digits}f}"


def _tidy(
    correlations: pd.DataFrame,
    differences: pd.DataFrame,
    labels: Mapping[Name, str],
    coefficients: Sequence[str],
    correction: str,
) -> pd.DataFrame:
    """Return one row a metric and coefficient, then one a pair, whose value is the difference from ``minus``."""
    named = correlations.assign(
        metric=correlations["metric"] + ":" + correlations["output"], minus=None, loso_halved=halved(correlations)
    )
    pairs = differences.assign(
        metric=differences["metric_a"] + ":" + differences["output_a"],
        minus=differences["metric_b"] + ":" + differences["output_b"],
        value=differences["difference"],
        correction=correction,
        tests=differences.groupby([*_SAMPLE, "coefficient"])["p"].transform("count"),
    )
    columns = [*_SAMPLE, "coefficient", "metric", "minus", "value", "low", "high", "over"]
    columns += [
        "loso_value",
        "loso_system",
        "loso_halved",
        "p",
        "p_adjusted",
        "correction",
        "tests",
        "rank",
        "n",
        "coverage",
    ]
    chosen = {":".join(name) for name in labels}
    frames = [
        frame[frame["coefficient"].isin(list(coefficients)) & frame["metric"].isin(chosen)].reindex(columns=columns)
        for frame in (named, pairs)
    ]
    return pd.concat([frame for frame in frames if len(frame)], ignore_index=True)
