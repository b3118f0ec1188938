"""What ``comperdial compare`` shows: each metric's correlation, and in a sentence a pair which of two is better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from comperdial.report.correlations import (
    LEGEND,
    MARK,
    MEASURES,
    Record,
    groups,
    halved,
    is_few,
    is_halved,
    left_out_notes,
    level_pairs,
    level_title,
    lowest,
    over_tests,
)
from comperdial.report.render import NOTES, Section, Table, count, interval, number, p_value, rows_frame, spread
from comperdial.schema.tables import OVER
from comperdial.stats.correlation import ALPHA

Name = tuple[str, str]
_SAMPLE = ["dataset", "target", "level", "against"]
_COLUMNS = [
    *_SAMPLE, "coefficient", "metric", "minus", "value", "low", "high", "over", "loso_value", "loso_system", "loso_halved",
    "p", "p_adjusted", "correction", "tests", "rank", "n", "coverage",
]  # fmt: skip
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
    names = {":".join(name): label for name, label in labels.items()}
    metrics = _chosen(correlations, names, coefficients, metric="")
    pairs = _chosen(differences, names, coefficients, metric="_a", minus="_b")
    pairs["tests"] = pairs.groupby([*_SAMPLE, "coefficient"])["p"].transform("count")
    pairs["text"] = [
        sentence(one, names[one["metric"]], names[one["minus"]], one["tests"], correction)
        for one in pairs.to_dict("records")
    ]
    raters = ceilings[(ceilings["grouping"] == "pooled") & ceilings["coefficient"].isin(list(coefficients))]
    raters = raters.groupby([*_SAMPLE, "coefficient"], observed=True)["value"].mean().reset_index()
    rank = f"rank ({_CORRECTED.get(correction, 'not corrected')})"
    several, pairwise, sections = metrics["dataset"].nunique() > 1, len(labels) > 1, []
    for (dataset, target), of_target in groups(metrics, "dataset", "target"):
        for level, against in level_pairs(of_target):
            key = dict(zip(_SAMPLE, (dataset, target, level, against), strict=True))
            result, tests, known = (
                frame[(frame[[*key]] == pd.Series(key)).all(axis=1)] for frame in (metrics, pairs, raters)
            )
            title = f"{f'{dataset}, {target}' if several else target}: {level_title(level, against)}"
            over = {*result["over"].dropna(), *tests["over"].dropna()}
            title += f" (over {OVER[1]})" if over == {OVER[1]} else ""
            # Two metrics are one pair, which a sentence says all of.
            sections.append(Section(title, _block(result, known, names, rank if len(labels) > 2 else None)))
            if pairwise:
                rows = [[MEASURES[one["coefficient"]], one["text"]] for one in tests.to_dict("records")]
                sections.append(Section(f"{title}, pairs", rows_frame(["Coefficient", "Pair"], rows)))
    signatures = dict(zip(metrics["metric"], metrics["signature"], strict=True))
    given = OVER[1] in {*metrics["over"], *pairs["over"]}
    reading = [NOTES["p"] + (", where they are not over contexts, these systems" if given else "")]
    reading += [NOTES["given"]] if given else []
    if pairwise:
        reading.append(f"The interval of a difference leaves out 0 just where its p is below {ALPHA}")
        reading.append(_corrected(correction, pairs, labels[contrasted] if contrasted else None))
    reading += ["A pair is compared over what both metrics have scored"] if (metrics["coverage"] < 1).any() else []
    tidy = [metrics, pairs.assign(value=pairs["difference"], correction=correction)]
    return Table(
        title="Metrics compared",
        caption=f"{caption} {LEGEND}" if metrics["loso_halved"].fillna(False).any() else caption,
        sections=sections,
        frame=pd.concat([one.reindex(columns=_COLUMNS) for one in tidy if len(one)], ignore_index=True),
        notes=[
            *notes,
            *reading,
            *left_out_notes(metrics),
            *(f"{label}: {name.split(':')[1]}, {signatures[name]}" for name, label in names.items() if name in signatures),
        ],
    )  # fmt: skip


def _chosen(frame: pd.DataFrame, names: Mapping[str, str], coefficients: Sequence[str], **sides: str) -> pd.DataFrame:
    """Return the rows over all units of some outputs by some coefficients, in their order, with METRIC:OUTPUT of each side."""
    sided = frame.assign(
        **{name: frame[f"metric{side}"] + ":" + frame[f"output{side}"] for name, side in sides.items()}
    )
    if "grouping" in sided:
        sided = sided[sided["grouping"] == "pooled"]
    if "loso_system" in sided:
        sided = sided.assign(loso_halved=halved(sided))
    chosen = sided[sided["coefficient"].isin(list(coefficients)) & sided[[*sides]].isin([*names]).all(axis=1)]
    orders = {"coefficient": list(coefficients), "metric": [*names]}
    return chosen.sort_values([*orders], key=lambda of: of.map(orders[str(of.name)].index), kind="stable")


def _block(result: pd.DataFrame, raters: pd.DataFrame, names: Mapping[str, str], rank: str | None) -> pd.DataFrame:
    """Return the rows of metrics, and what one rater reaches; columns without any value are left out."""
    cells = {"value": _value, "95 % interval": _interval, "without one system": lowest, "p": _p}
    if rank:
        cells[rank] = lambda cell: "–" if pd.isna(cell["rank"]) else f"#{cell['rank']:.0f}"
    both = pd.concat([result.assign(label=result["metric"].map(names)), raters.assign(label="(one rater)")])
    both["group"] = both["coefficient"].map(MEASURES)
    made = spread(both, {"label": "Metric"}, "group", cells)
    made = made.loc[:, ~made.isin(["–"]).all()].copy()
    first = both.drop_duplicates("label").set_index("label")
    made["", "n"] = first["n"].map(count)
    if (result["coverage"] < 1).any():
        made["", "scored"] = first["coverage"].map("{:.0%}".format, na_action="ignore")
    return made


def _value(cell: Record) -> str:
    return number(cell["value"], digits=2 if is_few(cell) else 3) + (MARK if is_halved(cell) else "")


def _interval(cell: Record) -> str:
    return interval(cell["low"], cell["high"]).strip() or "–"


def _p(cell: Record) -> str:
    # Exact if it can be.
    return p_value(cell["p"] if pd.isna(cell["p_exact"]) else cell["p_exact"])


def _corrected(correction: str, pairs: pd.DataFrame, against: str | None) -> str:
    """Say over how many tests p-values were corrected."""
    if pairs["tests"].max() < 2 or pairs.empty:
        return "No p is corrected: no block has more than one tested pair by a coefficient"
    which = f"comparisons with {against}, and no others," if against else "all pairs"
    text = f"{which} of a block and coefficient: {over_tests(pairs['tests'].to_dict())}"
    return str(NOTES["corrected"][correction].format(text))


def sentence(pair: Mapping[Any, Any], a: str, b: str, tests: int, correction: str = "holm") -> str:
    """Say what was found of a pair, a being the one with the higher coefficient; no more than its p allows."""
    difference = number(pair["difference"], digits=2, sign=True) + interval(pair["low"], pair["high"])
    if pd.isna(pair["p"]):
        return f"no test of {a} and {b}: {difference}, n = {pair['n']}"
    result, p = pair["p"] < ALPHA, p_value(pair["p"])
    tested = f"{difference}, p {p if p.startswith('<') else f'= {p}'}"
    if tests > 1 and correction in _CORRECTED:
        lost = ", not significant" if result and not pair["p_adjusted"] < ALPHA else ""
        tested += f" ({_CORRECTED[correction]}: {p_value(pair['p_adjusted'])}{lost})"
    if not result:
        return f"no significant difference between {a} and {b}: {tested}"
    return f"{a} correlates better than {b}: {tested}"
