"""The study's tables, each made from results and reported numbers alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pandas as pd

from comperdial.core.errors import UnknownNameError
from comperdial.core.names import Output
from comperdial.report import few, leave_out
from comperdial.report.captions import with_suffix
from comperdial.report.document import (
    Column,
    Document,
    Ranked,
    interval,
    number,
    number_of,
    pivot,
    records_by,
    value_of,
)
from comperdial.report.labels import label, metrics_not_run, not_run_notes
from comperdial.stats.correlation import ALPHA, is_starred

STAR = (
    f"An asterisk marks p >= {ALPHA}; with the few systems of the system level, p is an approximation that is too "
    "small for Spearman"
)
# How to read a cell with an interval and a rank.
READING = (
    f"An asterisk marks p >= {ALPHA}, as in the papers: a p that takes all units as independent, which those of one "
    "system or dialogue are not. With few systems it is too small for Spearman",
    "In brackets the 95 % interval, which takes systems and dialogues as what was sampled; two or three "
    "systems count as given, and the interval is over contexts, these systems",
    f"#1 is the first rank: outputs share a rank that the paired test does not tell apart at {ALPHA}, after Holm's "
    "correction; those without a rank were not compared. The best cluster (#1) is bold, where a column has other ranks "
    "too",
)
COEFFICIENT_NAMES = {"pearson": "Pearson", "spearman": "Spearman", "kendall": "Kendall"}
MEASURE_NAMES = COEFFICIENT_NAMES | {
    "tau_c": "tau-c",
    "tau_23": "tau-23",
    "pairwise_pearson": "Pearson of differences",
    "accuracy": "accuracy",
    "acc_eq": "acc_eq",
    "spa": "SPA",
}
LEVEL_NAMES = {"turn": "Turn level", "dialogue": "Dialogue level", "system": "System level"}


def of_target(correlations: pd.DataFrame, target: str) -> pd.DataFrame:
    """Return the correlations with one rated dimension, or raise :class:`UnknownNameError`."""
    if target not in set(correlations["target"]):
        raise UnknownNameError("dimension", target, correlations["target"].unique())
    return correlations[correlations["target"] == target]


def beside(
    group: str,
    key: tuple[str, ...],
    ours: Callable[[Mapping[Any, Any]], str],
    *,
    reported: str = "reported",
    digits: int = 3,
    difference: bool = True,
) -> list[Column]:
    """Return columns of what is ours, of the reported value beside it, and of the difference of the two."""

    def theirs(cell: Mapping[Any, Any]) -> str:
        return with_star(cell["reported"], cell.get("reported_starred") is True, digits=digits)

    columns = [Column(group, "ours", ours, key), Column(group, reported, theirs, key)]
    more = Column(group, "difference", value_of("difference", digits=digits, sign=True), key)
    return [*columns, more] if difference else columns


def with_star(value: float, marked: bool, *, digits: int = 3) -> str:
    """Write a value and, if it is marked, an asterisk; a dash when it is missing."""
    text = number(value, digits=digits)
    return f"{text}*" if marked and text != "–" else text


# What a record of table ``correlations`` counts, by level and level of ratings, from what says most to what says least.
_COUNTED = {
    ("turn", "turn"): "responses",
    ("dialogue", "dialogue"): "dialogues",
    ("dialogue", "turn"): "dialogues",
    ("system", "dialogue"): "dialogues",
    ("system", "turn"): "responses",
}


def partial_notes(frame: pd.DataFrame, name: str) -> list[str]:
    """Return a note for each row that has scores of a part of what was rated only, or scores of cut inputs.

    Responses are counted where a row has a turn level, and dialogues where it has none: a score of a whole dialogue
    belongs to no single response, and counts once a turn at system level.
    """
    order = list(_COUNTED)
    against = frame["against"] if "against" in frame else ["turn"] * len(frame)
    place = [order.index(pair) for pair in zip(frame["level"], against, strict=True)]
    best = frame.assign(place=place).reset_index(drop=True)
    best = best.sort_values("place", kind="stable").drop_duplicates(["dataset", name]).sort_index()
    records = [(record, _COUNTED[order[record["place"]]]) for record in best.to_dict("records")]
    return [
        *not_run_notes((record[name], no_scores(record)) for record, _ in records if record["coverage"] == 0),
        *(_coverage_note(record, name, what) for record, what in records if 0 < record["coverage"] < 1),
        *(_cut_note(record, name, what) for record, what in records if record["cut"] > 0),
    ]


def _coverage_note(record: Mapping[Any, Any], name: str, what: str) -> str:
    others = f"; the others lack {record['lacking']}" if isinstance(record["lacking"], str) else ""
    # Rounded down: what lacks one score is not whole.
    share = f"{math.floor(record['coverage'] * 1000 + 1e-9) / 10:.1f}%"
    if what == "responses":
        return f"{record[name]}: {share} of the rated responses of {record['dataset']} have a score{others}"
    return f"{record[name]}: of the rated dialogues of {record['dataset']}, {share} is scored, on average{others}"


def _cut_note(record: Mapping[Any, Any], name: str, what: str) -> str:
    whose = f"the input of {record['cut']:.0f} {what} of {record['dataset']}"
    return f"{record[name]}: {whose} did not fit the model and was cut" + (
        "" if what == "responses" else ", in one turn or more"
    )


def no_scores(row: Mapping[Any, Any]) -> str:
    """Say why a row of table ``correlations`` that covers nothing does: what the data set lacks."""
    if isinstance(row["lacking"], str):
        return f"{row['dataset']} has no {row['lacking'].replace(' and ', ' and no ')} where {row['target']} was rated"
    return f"no rated response of {row['dataset']} has a score"


def why_no_scores(rows: pd.DataFrame) -> str | None:
    """Say why rows of table ``correlations`` about one output have no value; None where one of them covers anything."""
    return no_scores(rows.iloc[0].to_dict()) if len(rows) and (rows["coverage"] == 0).all() else None


def pooled(correlations: pd.DataFrame, against: str | None = None) -> pd.DataFrame:
    """Return the correlations over all units together, by the three coefficients of the papers' tables.

    ``against``: only those with ratings of this level (``turn`` or ``dialogue``).
    """
    chosen = correlations["coefficient"].isin(list(COEFFICIENT_NAMES)) & (correlations["grouping"] == "pooled")
    if against is not None:
        chosen &= correlations["against"] == against
    return correlations[chosen]


def level_pairs(frame: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the pairs of a level and the level of its ratings that a frame has, in the order of turn to system."""
    order = list(LEVEL_NAMES)
    found = set(zip(frame["level"].astype(str), frame["against"].astype(str), strict=True))
    return sorted(found, key=lambda pair: (order.index(pair[0]), order.index(pair[1])))


def level_title(level: str, against: str) -> str:
    """Return the heading of a pair of levels: ``System level, ratings of turns``."""
    return f"{LEVEL_NAMES[level]}, ratings of {against}s"


def significant(values: pd.Series, digits: int = 3) -> pd.Series:
    """Round numbers to significant digits: p-values need no more, and files of many are half as large."""
    return values.map(lambda value: float(f"{value:.{digits}g}"), na_action="ignore")


def coefficient_of(cell: Mapping[Any, Any], value: str = "value", *, starred: bool = True) -> str:
    """Write a coefficient with its marks: ``0.397*‡``, and of a few systems ``0.80‡ (n 5, p 0.08)``.

    An exact p stands in the place of the asterisk, which goes by an approximate one.
    """
    if not few.is_few(cell):
        return with_star(cell[value], starred and is_starred(cell["p"])) + leave_out.mark(cell, value)
    exact = pd.notna(cell.get("p_exact"))
    text = with_star(cell[value], starred and not exact and is_starred(cell["p"]), digits=2)
    return text if text == "–" else text + leave_out.mark(cell, value) + few.size(cell)


def with_interval(cell: Mapping[str, Any], *, starred: bool = True) -> str:
    """Write a record of table ``correlations``: ``0.397*‡ [0.36, 0.43] #2``, without what it does not have."""
    if pd.isna(cell["value"]):
        return "not run" if cell["coverage"] == 0 else "–"
    text = coefficient_of(cell, starred=starred) + interval(cell["low"], cell["high"])
    return text if pd.isna(cell["rank"]) else Ranked(f"{text} #{cell['rank']:.0f}", int(cell["rank"]))


def best_first(names: Iterable[Output], cells: Mapping[Any, Mapping[Any, Any]], *column: str) -> list[Output]:
    """Return outputs by what their cells of a column have for ``value``, the highest first, those without one last."""

    def place(name: Output) -> tuple[float, Output]:
        value = cells.get((*name, *column), {}).get("value")
        return (math.inf if value is None or pd.isna(value) else -float(value), name)

    return sorted(names, key=place)


def over_tests(counts: Mapping[str, int]) -> str:
    """Say over how many tests each of several things was corrected: ``253 (one; other), 190 (third) tests``."""
    named: dict[int, list[str]] = {}
    for name, count in counts.items():
        named.setdefault(count, []).append(name)
    if len(named) < 2:
        return number_of(next(iter(named), 0), "test")
    return ", ".join(f"{count:,} ({'; '.join(names)})" for count, names in named.items()) + " tests"


def corrected_over(frame: pd.DataFrame, titles: Mapping[str, str] | None = None) -> list[str]:
    """Return the note that says over how many tests the ranks of a frame were corrected; none without ranks.

    Parameters
    ----------
    frame
        Records of table ``correlations``, with the columns of its key that vary.
    titles
        A title for each data set, where there are several.
    """
    if "tests" not in frame or (ranked := frame[frame["tests"].notna()]).empty:
        return []
    places = [name for name in ("dataset", "level", "against") if name in ranked]
    several = {name for name in places if ranked[name].nunique() > 1}
    counts: dict[str, int] = {}
    for key, group in ranked.groupby(places, sort=False, observed=True):
        of = dict(zip(places, map(str, key), strict=True))
        parts = [(titles or {}).get(of["dataset"], of["dataset"])] if "dataset" in several else []
        if several - {"dataset"}:
            parts.append(level_title(of["level"], of["against"]) if "against" in of else LEVEL_NAMES[of["level"]])
        named = group["coefficient"].map(lambda name: COEFFICIENT_NAMES.get(name, str(name)))
        if "grouping" in group:
            named += group["grouping"].map(lambda grouping: "" if grouping == "pooled" else f" by {grouping}")
        by_measure = group.groupby(named, sort=False)["tests"].max()
        if by_measure.nunique() == 1:
            counts[", ".join(parts)] = int(by_measure.iloc[0])
        else:
            counts |= {", ".join([*parts, str(name)]): int(count) for name, count in by_measure.items()}
    return [
        "Ranks of a column are corrected over all pairs of outputs that were tested in it, shown here or not: "
        + over_tests(counts)
    ]


def few_notes(frame: pd.DataFrame) -> list[str]:
    """Return the note on values of a few systems, where a frame has one."""
    return [few.NOTE] if any(few.is_few(record) for record in frame.to_dict("records")) else []


_WITHIN = (
    "Within systems: the mean of the coefficients within each system, of metrics with `main`. `local` is weaker there, and among "
    "responses of programs alone, than over all (docs/local-metric.md): `comperdial compare --subset kind=agent` leaves human "
    "systems out"
)


def _with_within(chosen: pd.DataFrame, correlations: pd.DataFrame) -> pd.DataFrame:
    """Add the coefficients within systems where a table has the learned metric `local`, which is weaker there."""
    if not chosen["signature"].str.startswith("local|").any():
        return chosen
    key = ["dataset", "level", "against", "target", "metric", "output", "coefficient"]
    within = correlations.loc[correlations["grouping"] == "system", [*key, "value"]]
    return chosen.merge(within.rename(columns={"value": "within_systems"}), on=key, how="left")


def correlation_document(
    correlations: pd.DataFrame,
    title: str,
    target: str,
    not_run: Mapping[str, str],
    *,
    labels: Mapping[str, str] | None = None,
    suffix: str = "",
) -> Document:
    """Render everything we computed for one dataset and one rated dimension: three coefficients at each level.

    The rows of a level are sorted by Spearman. ``labels`` are what outputs are called (:func:`label`); ``suffix`` ends
    the caption; with one, the ratings are not called human.
    """
    labels = labels or {}
    chosen = _with_within(of_target(pooled(correlations), target), of_target(correlations, target))
    sections = []
    for level, against in level_pairs(chosen):
        of_pair = chosen[(chosen["level"] == level) & (chosen["against"] == against)]
        cells = records_by(of_pair, ["metric", "output", "coefficient"])
        rows = {
            name: [label(name, labels)]
            for name in best_first({(str(key[0]), str(key[1])) for key in cells}, cells, "spearman")
        }
        ways: dict[str, Callable[[Mapping[Any, Any]], str]]
        ways = {"value": with_interval, "without one system": leave_out.lowest}
        shown = ways if of_pair["loso_system"].notna().any() else {"value": with_interval}
        if "within_systems" in of_pair and of_pair["within_systems"].notna().any():
            shown = {**shown, "within systems": lambda cell: number(cell["within_systems"])}
        columns = [
            Column(name, way, write, (coefficient,))
            for coefficient, name in COEFFICIENT_NAMES.items()
            for way, write in shown.items()
        ]
        sections.append(pivot(level_title(level, against), cells, rows, ["Metric"], columns))
    signatures = dict(sorted(zip(chosen["metric"], chosen["signature"], strict=True)))
    return Document(
        title=f"All metrics on {title}",
        caption=with_suffix(
            leave_out.with_legend(
                f"Correlation of every output of every metric with the mean {'' if suffix else 'human '}rating "
                f"({target}) on {title}, the highest Spearman first.",
                chosen,
            ),
            suffix,
        ),
        sections=sections,
        # The signatures stand in the notes: once a metric, not once a value.
        tidy=leave_out.with_halved(chosen)
        .drop(columns=["target", "grouping", "signature"])
        .round({"value": 4, "low": 3, "high": 3, "loso_value": 4, "within_systems": 4})
        .assign(p=lambda frame: significant(frame["p"], 2))
        .sort_values(["metric", "output", "level", "against", "coefficient"])
        .reset_index(drop=True),
        notes=[
            *READING,
            *corrected_over(chosen),
            *([_WITHIN] if "within_systems" in chosen else []),
            *few_notes(chosen),
            *leave_out.notes(chosen),
            *partial_notes(
                chosen.assign(
                    row=[label(name, labels) for name in zip(chosen["metric"], chosen["output"], strict=True)]
                ),
                "row",
            ),
            *metrics_not_run(not_run, labels),
            *(f"{_named(metric, labels)} is {signature}" for metric, signature in signatures.items()),
        ],
    )


def _named(metric: str, labels: Mapping[str, str]) -> str:
    """Return the metric's name with what it is called in the table."""
    called = labels.get(metric) or next(
        (text for name, text in labels.items() if name.startswith(f"{metric}:")), metric
    )
    return metric if called == metric else f"{called} ({metric})"


def agreement_document(agreement: pd.DataFrame, reported: pd.DataFrame, titles: Mapping[str, str]) -> Document:
    """Render inter-annotator agreement beside USR's Table 1."""
    keys = ["dataset", "dimension", "coefficient"]
    frame = agreement.merge(
        reported[[*keys, "value", "note"]].rename(columns={"value": "reported"}), on=keys, how="left"
    )
    frame = frame.rename(columns={"value": "ours"})
    frame["difference"] = frame["ours"] - frame["reported"]
    columns = [
        column
        for dataset in dict.fromkeys(frame["dataset"])
        for coefficient in ("spearman", "pearson")
        for column in beside(
            f"{titles.get(dataset, dataset)} {COEFFICIENT_NAMES[coefficient]}",
            (dataset, coefficient),
            value_of("ours", digits=4),
            digits=4,
        )
    ]
    cells = records_by(frame, ["dimension", "dataset", "coefficient"])
    rows = {(name,): [str(name)] for name in dict.fromkeys(frame["dimension"])}
    return Document(
        title="Agreement between the annotators of USR",
        caption=(
            "Mean correlation over the three pairs of rater positions, all responses included, beside Table 1 of Mehri "
            "and Eskenazi 2020. A position is a column of the data, not a person."
        ),
        sections=[pivot("Inter-annotator agreement", cells, rows, ["Dimension"], columns)],
        tidy=frame,
        notes=[
            f"{row['dataset']}, {row['dimension']}, {row['coefficient']}: {row['note']}"
            for row in frame.to_dict("records")
            if isinstance(row["note"], str) and row["note"]
        ],
    )
