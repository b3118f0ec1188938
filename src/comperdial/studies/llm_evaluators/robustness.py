"""Table 8, and the table of robustness on any data set: how often a score falls when a text was made worse."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from comperdial.core.errors import SchemaError, UnknownNameError
from comperdial.core.names import Output, unperturbed
from comperdial.perturbations import Perturbation
from comperdial.report.document import Column, Document, Section, pivot, records_by, value_of
from comperdial.report.labels import metrics_not_run
from comperdial.studies.llm_evaluators.common import (
    AVERAGE,
    LEVELS,
    NOT_OURS,
    PAPER,
    SHORT,
    average,
    in_order,
    labelled,
    standing,
    titled,
    wide,
    with_interval,
)
from comperdial.studies.llm_evaluators.notes import (
    Bounds,
    Needs,
    bounds_notes,
    coverage_notes,
    evaluator_notes,
    lacking_notes,
)

RATIO_COLUMNS = ("source", "place", "level", "perturbation", "dimension", "metric")
Aim = tuple[str, str]
_KEY = ["dataset", "label", "perturbation", "dimension"]
PAIRS = "Pairs"

READING = (
    "A ratio is the share of pairs whose score falls from the original to the perturbed version; in brackets the 95 % "
    "interval, which knows which pairs were made of the same original"
)
DELTA = (
    "The threshold δ of a perturbation is the drop that counts, of scores on a scale of 0 to 1 (Table 7). A score "
    "without a lowest and a highest value has no such scale: a dash, and a ratio for any drop alone"
)

SIZES = f"{PAIRS}: those that an evaluator has scores of, the most that one of the rows has"
MADE_HERE = (
    "Both versions of a pair come from the data set: the worse one was made by our rules, which are described with the "
    "perturbations (Table 7), so that these ratios are no reproduction of the paper's Table 8"
)


def table_8(
    ratios: pd.DataFrame,
    reported: pd.DataFrame,
    known: Mapping[str, Perturbation],
    *,
    outputs: Sequence[Output],
    labels: Mapping[str, str],
    not_run: Mapping[str, str],
    bounds: Bounds | None = None,
    needs: Needs | None = None,
) -> Document:
    """Render Table 8: robustness ratios on the recorded perturbations, with intervals, beside the reported ones.

    Parameters
    ----------
    ratios
        Table ``ratios`` of the recorded pairs.
    reported
        ``src/comperdial/studies/llm_evaluators/robustness.csv``.
    known
        The perturbations by name.
    outputs, labels, not_run
        Which output stands for a metric; what a metric is called; metrics that could not run, and why.
    bounds, needs
        The lowest and highest score of each (metric, output); what a metric needs of a text.
    """
    found = _named(ratios, known, outputs, labels)
    if (twice := found.duplicated([*_KEY[1:], "threshold"])).any():
        row = found[twice].iloc[0]
        raise SchemaError(
            f"two ratios of {row['label']!r}", where=f"{row['dataset']}, {row['perturbation']}",
            expected="the recorded pairs alone, and labels that tell metrics apart",
        )  # fmt: skip
    sections = []
    for level, title in LEVELS.items():
        printed = reported[(reported["level"] == level) & (reported["perturbation"] != AVERAGE)]
        aims = _aims(printed)
        more = [aim for aim in _aims(found[found["level"] == level]) if aim not in aims]
        for drop in ("a drop above δ", "any drop"):
            chosen = _threshold(found, known, any_drop=drop == "any drop")
            if section := _section(f"{title}, ours: {drop}", chosen, aims, known, labels, mean=True):
                sections.append(section)
        cells = records_by(reported[reported["level"] == level], ["metric", "perturbation", "dimension"])
        names = {(metric,): [metric] for metric in dict.fromkeys(printed["metric"])}
        columns = _columns([*aims, (AVERAGE, "")], known, value_of("ratio"))
        sections.append(pivot(f"{title}, reported: a drop above δ", cells, names, ["Evaluator"], columns))
        for drop in ("a drop above δ [ours]", "any drop"):
            chosen = _threshold(found, known, any_drop=drop == "any drop")
            if section := _section(f"{title}, suites that the paper lacks: {drop}", chosen, more, known, labels):
                sections.append(section)
    theirs = reported.rename(columns={"metric": "label"}).assign(origin="reported")
    return Document(
        title="Table 8. Robustness to perturbations",
        caption="The share of pairs of which an evaluator scores the original higher than the perturbed version, on "
        f"the dimension that the perturbation aims at, ours beside what {PAPER} report.",
        sections=sections,
        tidy=_tidy(found, known, theirs[["origin", "label", "perturbation", "dimension", "ratio"]]),
        notes=[
            READING,
            DELTA,
            "Avg is the mean of the columns before it, and a dash where one of them has no value",
            SIZES,
            *_called(_aims(found), known),
            *_notes(found, outputs, labels, bounds, needs),
            NOT_OURS,
            *metrics_not_run(not_run, labels),
        ],
    )


def robustness_document(
    ratios: pd.DataFrame,
    known: Mapping[str, Perturbation],
    *,
    outputs: Sequence[Output],
    labels: Mapping[str, str],
    titles: Mapping[str, str],
    suffix: str = "",
    bounds: Bounds | None = None,
    needs: Needs | None = None,
) -> Document:
    """Render the robustness ratios of any data sets' pairs: sections for a drop above δ and for any drop a data set.

    Parameters are those of :func:`table_8`; ``suffix`` is what the caption ends with.
    """
    found = _named(ratios, known, outputs, labels)
    chosen = _threshold(found, known, any_drop=False)
    drops = _threshold(found, known, any_drop=True)
    sections = []
    order = list(titles)
    base = {name: unperturbed(name) for name in sorted(set(found["dataset"]))}
    for dataset in sorted(base, key=lambda name: order.index(base[name]) if base[name] in order else len(order)):
        aims = _aims(found[found["dataset"] == dataset])
        for drop, rows in (("a drop above δ", chosen), ("any drop", drops)):
            of_set = rows[rows["dataset"] == dataset]
            if section := _section(f"{titled(dataset, titles)}: {drop}", of_set, aims, known, labels):
                sections.append(section)
    caption = (
        "The share of pairs of which an evaluator scores the original higher than a version of it that was made worse, "
        "on the dimension aimed at, for each data set."
    )
    return Document(
        title="Robustness to perturbations, by data set",
        caption=f"{caption} {suffix}".strip(),
        sections=sections,
        tidy=_tidy(found, known, None),
        notes=[
            MADE_HERE,
            READING,
            DELTA,
            SIZES,
            *_called(_aims(found), known),
            *_notes(found, outputs, labels, bounds, needs, titles),
        ],
    )


def _notes(
    found: pd.DataFrame,
    outputs: Sequence[Output],
    labels: Mapping[str, str],
    bounds: Bounds | None,
    needs: Needs | None,
    titles: Mapping[str, str] | None = None,
) -> list[str]:
    """Say what scales do to ratios, what the evaluators of the rows are, and which have none or a part of the pairs."""
    named = {} if titles is None else {str(name): titled(str(name), titles) for name in found["dataset"].unique()}
    parts = [(titled_as, found[found["dataset"] == name]) for name, titled_as in named.items()] or [("", found)]
    lacking = [lacking_notes(rows, outputs, labels, needs=needs or {}, where=where) for where, rows in parts]
    return [
        *bounds_notes(found, bounds or {}, labels),
        *evaluator_notes(found, labels),
        *(note for notes in lacking for note in notes),
        *coverage_notes(found, needs=needs or {}, labels=labels),
    ]


def _named(
    ratios: pd.DataFrame, known: Mapping[str, Perturbation], outputs: Sequence[Output], labels: Mapping[str, str]
) -> pd.DataFrame:
    """Return one output a metric with its label, in the order of known perturbations; all are to be known."""
    for name in ratios["perturbation"].unique():
        if name not in known:
            raise UnknownNameError("perturbation", str(name), known)
    found = labelled(standing(ratios, outputs), labels)
    place = {name: at for at, name in enumerate(known)}
    return found.sort_values("perturbation", key=lambda names: names.map(place), kind="stable")


def _aims(frame: pd.DataFrame) -> list[Aim]:
    """Return perturbations with the dimension aimed at, in the order in which they come."""
    return list(dict.fromkeys(zip(frame["perturbation"].astype(str), frame["dimension"].astype(str), strict=True)))


def _columns(
    aims: Sequence[Aim], known: Mapping[str, Perturbation], write: Callable[[Mapping[Any, Any]], str]
) -> list[Column]:
    def named(name: str, dimension: str) -> str:
        short = known[name].short if name in known else name
        return SHORT[AVERAGE] if name == AVERAGE else f"{short} ({SHORT[dimension]})"

    return [Column("Perturbation", named(*aim), write, aim) for aim in aims]


def _called(aims: Sequence[Aim], known: Mapping[str, Perturbation]) -> list[str]:
    names = dict.fromkeys(name for name, _ in aims if name in known)
    return [
        "Perturbations: " + ", ".join(f"{known[n].short} {known[n].title} (δ {known[n].threshold:.1f})" for n in names)
    ]


def _threshold(frame: pd.DataFrame, known: Mapping[str, Perturbation], *, any_drop: bool) -> pd.DataFrame:
    wanted = [0.0 if any_drop else known[name].threshold for name in frame["perturbation"]]
    return frame[(frame["threshold"] - pd.Series(wanted, index=frame.index, dtype="float64")).abs() < 1e-9]


def _section(
    title: str,
    frame: pd.DataFrame,
    aims: Sequence[Aim],
    known: Mapping[str, Perturbation],
    labels: Mapping[str, str],
    *,
    mean: bool = False,
) -> Section | None:
    """Return a section with a row an evaluator; None if there is nothing to show."""
    of = records_by(frame, ["label", "perturbation", "dimension"])
    # An evaluator without a score of a pair has fewer: the row is of all pairs that one of them has.
    sizes = [max((int(r["n"]) for key, r in of.items() if key[1:] == aim), default=None) for aim in aims]
    heading = [PAIRS, *("–" if size is None else f"{size:,}" for size in sizes), *(["–"] if mean else [])]
    rows = {(label,): [label] for label in in_order(list(frame["label"]), labels)}
    for label in rows if mean else ():
        whole = average([of.get((*label, *aim), {"ratio": float("nan")})["ratio"] for aim in aims])
        of[*label, AVERAGE, ""] = {"ratio": whole, "low": None, "high": None}
    columns = _columns([*aims, *([(AVERAGE, "")] if mean else [])], known, with_interval("ratio"))
    made = pivot(title, of, rows, ["Evaluator"], columns, first=[heading], empty="–")
    return made if len(made.rows) > 1 else None


def _tidy(found: pd.DataFrame, known: Mapping[str, Perturbation], reported: pd.DataFrame | None) -> pd.DataFrame:
    """Return one row an evaluator and data set, its columns ``<perturbation>_<dimension>_above_delta`` and so on."""
    ends = ("", "_low", "_high")
    above, drop = (
        dict(zip(("ratio", "low", "high"), (f"{kind}{end}" for end in ends), strict=True))
        for kind in ("above_delta", "any_drop")
    )
    at_delta = _threshold(found, known, any_drop=False)[[*_KEY, *above]].rename(columns=above)
    drops = _threshold(found, known, any_drop=True)[[*_KEY, *drop, "ties", "n"]].rename(columns=drop)
    # In the order of the rows, with one of the two ratios or both.
    places = found[_KEY].drop_duplicates()
    joined = places.merge(drops, on=_KEY, how="left").merge(at_delta, on=_KEY, how="left").round(3)
    joined = joined.assign(origin="ours")
    if reported is not None:
        theirs = reported[reported["perturbation"] != AVERAGE].assign(dataset=None).rename(columns=above)
        joined = pd.concat([joined, theirs], ignore_index=True)
    values = [*above.values(), *drop.values(), "ties", "n"]
    # The first value's columns bear the place alone: here all are named.
    return wide(
        joined.rename(columns={"label": "evaluator"}).assign(none=None),
        ["origin", "dataset", "evaluator"],
        ["perturbation", "dimension"],
        ["none", *values],
    )
