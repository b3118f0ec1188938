"""What ``comperdial compare`` shows: each metric's correlation, and in a sentence a pair which of two is better."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
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
from comperdial.report.render import NOTES, Section, Table, number, records_by, rows_frame
from comperdial.schema.tables import OVER
from comperdial.stats.correlation import ALPHA

Name = tuple[str, str]
_SAMPLE = ["dataset", "target", "level", "against"]
# How a corrected p is called; Holm's is the default.
_CORRECTED = {"holm": "Holm", "fdr": "FDR"}


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
    """Return how well metrics correlate with ratings, and which of them differ.

    Takes tables ``correlations``, with ranks, and ``ceilings``, and the corrected :func:`comperdial.evaluation.pairs`.
    ``labels`` has what to call each (metric, output), in the order of the table. If one is ``contrasted``, the differences are
    those from it. The notes begin with ``notes``: what was left out.
    """
    pooled = correlations[correlations["grouping"] == "pooled"]
    several, pairwise = pooled["dataset"].nunique() > 1, len(labels) > 1
    sections: list[Section] = []
    tested: dict[str, int] = {}
    for dataset, target in pooled[["dataset", "target"]].drop_duplicates().itertuples(index=False, name=None):
        of_target = pooled[(pooled["dataset"] == dataset) & (pooled["target"] == target)]
        for level, against in level_pairs(of_target):
            key = {"dataset": dataset, "target": target, "level": level, "against": against}
            result, pairs, raters = (
                frame[(frame[[*key]] == pd.Series(key)).all(axis=1)] for frame in (pooled, differences, ceilings)
            )
            title = f"{f'{dataset}, {target}' if several else target}: {level_title(level, against)}"
            if _systems_given(result, pairs).all() and len(_systems_given(result, pairs)):
                title += f" (over {OVER[1]})"
            there = [name for name in coefficients if name in set(result["coefficient"])]
            sections.append(Section(title, _metrics(result, raters, labels, there, correction)))
            if pairwise:
                sections.append(
                    Section(f"{title}, pairs", _pairs(result, pairs, labels, there, correction, contrasted))
                )
                counts = pairs.groupby("coefficient")["p"].count()
                tested |= {f"{title}, {MEASURES[name]}": int(counts.get(name, 0)) for name in there}
    signatures = {(row["metric"], row["output"]): row["signature"] for row in pooled.to_dict("records")}
    marked = halved(pooled[pooled["coefficient"].isin(list(coefficients))]).fillna(False).any()
    given = _systems_given(pooled, differences).any()
    return Table(
        title="Metrics compared",
        caption=f"{caption} {LEGEND}" if marked else caption,
        sections=sections,
        frame=_tidy(pooled, differences, labels, coefficients, correction),
        notes=[
            *notes,
            NOTES["p"] + (", where they are not over contexts, these systems" if given else ""),
            *([NOTES["given"]] if given else []),
            *([f"The interval of a difference leaves out 0 just where its p is below {ALPHA}"] if pairwise else []),
            *([_corrected(correction, tested, labels[contrasted] if contrasted else None)] if pairwise else []),
            *(["A pair is compared over what both metrics have scored"] if (pooled["coverage"] < 1).any() else []),
            *left_out_notes(pooled[pooled["value"].notna()], {} if several else None),
            *(f"{label}: {name[1]}, {signatures[name]}" for name, label in labels.items() if name in signatures),
        ],
    )


def _systems_given(*frames: pd.DataFrame) -> pd.Series:
    """Return of each interval and test whether it is over contexts with the systems given."""
    over = pd.concat([frame["over"] for frame in frames if "over" in frame] or [pd.Series(dtype=str)])
    return over.dropna() == OVER[1]


def _corrected(correction: str, tested: Mapping[str, int], against: str | None) -> str:
    """Say over how many tests p-values were corrected."""
    if max(tested.values(), default=0) < 2:
        return "No p is corrected: no block has more than one tested pair by a coefficient"
    which = f"comparisons with {against}, and no others," if against else "all pairs"
    return NOTES["corrected"][correction].format(f"{which} of a block and coefficient: {over_tests(tested)}")


def _metrics(
    result: pd.DataFrame,
    ceilings: pd.DataFrame,
    labels: Mapping[Name, str],
    coefficients: Sequence[str],
    correction: str,
) -> pd.DataFrame:
    cells = records_by(result, ["metric", "output", "coefficient"])
    robust = result["loso_system"].notna().any()
    # Two metrics are one pair, which a sentence says all of.
    ranked = len(labels) > 2 and result["rank"].notna().any()
    writers: dict[str, Callable[[Mapping[str, Any]], str]] = {"95 % interval": _interval}
    writers |= {"without one system": lowest} if robust else {}
    writers["p"] = _known_p
    means = ceilings[ceilings["grouping"] == "pooled"].groupby("coefficient")["value"].mean()
    texts: dict[tuple[str, str], list[str]] = {}
    for coefficient in coefficients:
        # Of pairs of systems there is neither an interval nor a p of the value.
        columns = {"value": _value, **(writers if coefficient in COEFFICIENTS else {})}
        columns |= {f"rank ({_CORRECTED.get(correction, 'not corrected')})": _rank} if ranked else {}
        own = [cells.get((*name, coefficient)) for name in labels]
        for head, write in columns.items():
            texts[MEASURES[coefficient], head] = [write(cell) if cell else "–" for cell in own]
    some = [next((cells[*name, one] for one in coefficients if (*name, one) in cells), {}) for name in labels]
    texts["", "n"] = [str(cell.get("n", 0)) for cell in some]
    if (result["coverage"] < 1).any():
        texts["", "scored"] = [f"{cell.get('coverage', 0):.0%}" for cell in some]
    made = pd.DataFrame(texts, index=[*labels.values()], dtype=object)
    known = {(MEASURES[one], "value"): number(means[one]) for one in coefficients if pd.notna(means.get(one))}
    made = pd.concat([made, pd.DataFrame(known, index=["(one rater)"], dtype=object)]) if known else made
    return made.rename_axis(index="Metric")


def _value(cell: Mapping[str, Any]) -> str:
    return number(cell["value"], digits=2 if is_few(cell) else 3) + (MARK if is_halved(cell) else "")


def _pairs(
    correlations: pd.DataFrame,
    differences: pd.DataFrame,
    labels: Mapping[Name, str],
    coefficients: Sequence[str],
    correction: str,
    contrasted: Name | None,
) -> pd.DataFrame:
    rows = []
    here = set(correlations[["metric", "output"]].itertuples(index=False, name=None))
    for coefficient in coefficients:
        tests: list[dict[Any, Any]] = differences[differences["coefficient"] == coefficient].to_dict("records")
        result = {frozenset([_name(pair, "a"), _name(pair, "b")]): pair for pair in tests}
        for one, other in combinations([name for name in labels if name in here], 2):
            if contrasted and contrasted not in (one, other):
                continue
            text = f"{labels[one]} and {labels[other]} cannot be compared: too few shared points, or one is constant"
            if pair := result.get(frozenset([one, other])):
                text = sentence(pair, labels[_name(pair, "a")], labels[_name(pair, "b")], len(result), correction)
            rows.append([MEASURES[coefficient], text])
    return rows_frame(["Coefficient", "Pair"], rows)


def _name(pair: Mapping[str, Any], side: str) -> Name:
    return str(pair[f"metric_{side}"]), str(pair[f"output_{side}"])


def _rank(cell: Mapping[str, Any]) -> str:
    return "–" if pd.isna(cell["rank"]) else f"#{cell['rank']}"


def sentence(pair: Mapping[str, Any], a: str, b: str, pairs: int, correction: str = "holm") -> str:
    """Say what was found of a pair, a being the one with the higher coefficient; no more than its p allows."""
    difference = f"{number(pair['difference'], digits=2, sign=True)}{_interval(pair, space=' ')}"
    if pd.isna(pair["p"]):
        return f"no test of {a} and {b}: {difference}, n = {pair['n']}"
    tested = f"{difference}, p {_p(pair['p'], equals=True)}"
    result = pair["p"] < ALPHA
    if pairs > 1 and correction in _CORRECTED:
        lost = ", not significant" if result and not pair["p_adjusted"] < ALPHA else ""
        tested += f" ({_CORRECTED[correction]}: {_p(pair['p_adjusted'])}{lost})"
    if not result:
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


def _known_p(cell: Mapping[Any, Any]) -> str:
    """Write the exact p if there is one."""
    exact = cell.get("p_exact")
    return _p(float(cell["p"] if exact is None or math.isnan(exact) else exact))


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
    columns = [
        *_SAMPLE, "coefficient", "metric", "minus", "value", "low", "high", "over", "loso_value", "loso_system", "loso_halved",
        "p", "p_adjusted", "correction", "tests", "rank", "n", "coverage",
    ]  # fmt: skip
    chosen = {":".join(name) for name in labels}
    frames = [
        frame[frame["coefficient"].isin(list(coefficients)) & frame["metric"].isin(chosen)].reindex(columns=columns)
        for frame in (named, pairs)
    ]
    return pd.concat([frame for frame in frames if len(frame)], ignore_index=True)
