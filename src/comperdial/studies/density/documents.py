"""The study's tables: ours next to what Park et al. (2023) report, and the paired tests of DEnsity."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial.core.errors import NothingToShowError
from comperdial.report import leave_out
from comperdial.report.document import (
    Column,
    Document,
    Section,
    interval,
    listed,
    number,
    pivot,
    records_by,
    value_of,
)
from comperdial.report.labels import not_run_notes
from comperdial.report.tables import COEFFICIENT_NAMES, no_scores, over_tests, partial_notes, pooled, with_interval
from comperdial.stats.comparison import holm
from comperdial.stats.correlation import ALPHA
from comperdial.studies.density.results import DIALOGUES, SCATTERED, samples

CITED = "Park et al. 2023, DEnsity: Open-domain Dialogue Evaluation Metric using Density Estimation"
OURS = ("density", "density")
ONE_MODEL = (
    "The paper trains its models on the corpus that a data set is from, one a corpus, all of them BERT. Ours is one model on "
    "MiniLM, trained on all corpora together (docs/density.md): it has rows of its own, without a difference"
)
INTERVALS = (
    "In brackets the 95 % interval, which takes systems and dialogues as what was sampled; an asterisk marks p >= 0.05, all "
    "responses taken as independent. The paper's asterisks are not in the text that its numbers were taken from"
)
FEW_SYSTEMS = (
    "USR-Persona has four systems: what holds for other systems, so few can hardly say, and intervals are wide. "
    "GRADE-DailyDialog and GRADE-EmpatheticDialogues have two, FED three, which count as given: intervals and tests are over "
    "contexts, these systems"
)
REFERENCES = (
    "Reference-based metrics have no score of DailyDialog-Zhao's own human responses, which are their references: they are of "
    "800 of the 900 responses"
)
_COEFFICIENTS = ("pearson", "spearman")
_NOT_RUN = "not run"


def _read(paths: Sequence[Path]) -> pd.DataFrame:
    from comperdial.report.inputs import read_correlations

    return pooled(read_correlations(paths))


def reported_values(path: Path, place: str) -> pd.DataFrame:
    """Return what the paper reports in one of its tables; ``place`` is ``Table 1`` and so on."""
    from comperdial.report.inputs import read_reported

    columns = ("source", "place", "dataset", "level", "metric", "contrastive", "coefficient")
    found = read_reported(path, columns, given=("value",))
    return found[found["place"] == place]


def frame_of(
    correlations: pd.DataFrame,
    reported: pd.DataFrame,
    sections: Sequence[Mapping[str, Any]],
    *,
    datasets: Sequence[str],
    metrics: Sequence[str],
    not_run: Mapping[str, str],
) -> pd.DataFrame:
    """Put our correlations next to the reported ones.

    Parameters
    ----------
    correlations
        Table ``correlations``, pooled, one level and dimension a data set.
    reported
        Of :func:`reported_values`.
    sections
        Of ``rows.yaml``.
    datasets
        Which, in this order.
    metrics
        The names of metrics in ``params.yaml``.
    not_run
        Metrics that could not run here, and why.

    Returns
    -------
    DataFrame
        One row a table row, data set and coefficient: ours with interval and its lowest value without a system, reported,
        their difference where the row is of the same metric, why there is no value. Rows about a reported metric alone are
        left out where nothing is reported.
    """
    numbers = ["value", "low", "high", "loso_value", "loso_system", "p", "n", "coverage", "cut"]
    columns = ["level", *numbers, "lacking", "signature"]
    ours = records_by(correlations, ["dataset", "coefficient", "metric", "output"])
    theirs = records_by(reported, ["dataset", "coefficient", "metric"])
    records = []
    for dataset in datasets:
        of_set = correlations[correlations["dataset"] == dataset]
        for section, row in ((part["section"], row) for part in sections for row in part["rows"]):
            printed = {
                name: theirs.get((dataset, name, row.get("reported")), {}).get("value") for name in _COEFFICIENTS
            }
            if "metric" not in row and set(printed.values()) == {None}:
                continue
            why = _why_not(row, of_set, dataset, metrics, not_run)
            for coefficient, other in printed.items():
                mine = ours.get((dataset, coefficient, row.get("metric"), row.get("output")), {})
                value = mine.get("value")
                records.append(
                    {"dataset": dataset, "section": section, "label": row["label"], "coefficient": coefficient}
                    | {"metric": row.get("metric"), "output": row.get("output")}
                    | {name: mine.get(name) for name in columns}
                    | {"reported": other, "not_run": why, "note": row.get("note")}
                    | {"difference": None if pd.isna(value) or other is None else value - other}
                )
    frame = pd.DataFrame(records).rename(columns={"value": "ours"})
    numeric = ["ours", "low", "high", "loso_value", "p", "coverage", "cut", "reported", "difference"]
    return leave_out.with_halved(frame.astype(dict.fromkeys(numeric, "float64") | {"n": "Int32"}), "ours")


def _why_not(
    row: Mapping[str, Any],
    of_set: pd.DataFrame,
    dataset: str,
    metrics: Sequence[str],
    not_run: Mapping[str, str],
) -> str | None:
    """Say why a row has no value of ours for a data set; None where it has one."""
    metric = row.get("metric")
    if metric is None:
        return str(row["not_run"])
    mine = of_set[(of_set["metric"] == metric) & (of_set["output"] == row["output"])]
    if len(mine):
        return no_scores(mine.iloc[0].to_dict()) if (mine["coverage"] == 0).all() else None
    if metric not in metrics:
        return f"no metric {metric!r} in params.yaml"
    return not_run.get(metric, f"no scores of {dataset}")


def _ours(record: Mapping[Any, Any]) -> str:
    if isinstance(record["not_run"], str):
        return _NOT_RUN
    return with_interval({**record, "value": record["ours"], "rank": None}, starred=pd.notna(record["p"]))


def _columns(dataset: str, reported: Collection[str], *, difference: bool = True) -> list[Column]:
    """Return the columns of a data set: for each coefficient ours, and what is reported of it where anything is."""
    columns = []
    for coefficient in _COEFFICIENTS:
        group, key = COEFFICIENT_NAMES[coefficient], (dataset, coefficient)
        columns.append(Column(group, "ours", _ours, key))
        if coefficient in reported:
            columns.append(Column(group, "paper", value_of("reported"), key))
        if coefficient in reported and difference:
            columns.append(Column(group, "difference", value_of("difference", sign=True), key))
    return columns


def _sections(frame: pd.DataFrame, titles: Mapping[str, str], *, difference: bool = True) -> list[Section]:
    made = []
    for dataset, of_set in frame.groupby("dataset", sort=False):
        cells = records_by(of_set, ["section", "label", "dataset", "coefficient"])
        lines = {key[:2]: key[:2] for key in cells}
        reported = set(of_set.loc[of_set["reported"].notna(), "coefficient"])
        columns = _columns(str(dataset), reported, difference=difference)
        made.append(pivot(titles.get(str(dataset), str(dataset)), cells, lines, ["Kind", "Metric"], columns))
    return made


def _notes(frame: pd.DataFrame, titles: Mapping[str, str]) -> list[str]:
    """Say what is partial, what the rows are, and why some were not run: each reason once."""
    there = frame[frame["ours"].notna()]
    # References are what the reference-based lack, which is said of all of them at once.
    others = there[(there["section"] != "Reference-based") | (there["dataset"] != SCATTERED)]
    about = frame.drop_duplicates("label").set_index("label")["note"].dropna()
    notes = [*leave_out.notes(there, titles, "ours"), *partial_notes(others, "label")]
    notes += [f"{'; '.join(group.index)}: {note}" for note, group in about.groupby(about, sort=False)]
    absent = frame[frame["not_run"].notna()].drop_duplicates(["label", "not_run"])
    return notes + not_run_notes(zip(absent["label"], absent["not_run"], strict=True))


def table_1(
    *,
    correlations: Sequence[Path],
    reported: Path,
    sections: Sequence[Mapping[str, Any]],
    datasets: Sequence[str],
    titles: Mapping[str, str],
    metrics: Sequence[str],
    not_run: Mapping[str, str],
) -> Document:
    """Show how metrics of single responses correlate with ratings."""
    known = reported_values(reported, "Table 1")
    found = _read(correlations)
    frame = frame_of(found, known, sections, datasets=datasets, metrics=metrics, not_run=not_run)
    targets = found.groupby("dataset")["target"].first()
    return Document(
        title="Table 1. Metrics and people's ratings of responses",
        caption=leave_out.with_legend(
            "Pearson's and Spearman's correlation with the mean rating of a response, ours next to what the paper reports. "
            f"Rated: {'; '.join(f'{titles[name]} {targets[name]}' for name in datasets if name in targets)}.",
            frame,
            "ours",
        ),
        sections=_sections(frame, titles),
        tidy=frame,
        notes=[
            ONE_MODEL,
            INTERVALS,
            FEW_SYSTEMS,
            REFERENCES,
            "On ConvAI2-GRADE the paper prints the same two numbers for METEOR and BERTScore; one of them is a slip",
            "Difference is ours minus the paper's, where both are of the same metric",
            "GRADE-EmpatheticDialogues is our addition: the paper has no such column",
            f"Paper: {CITED}",
            *_notes(frame, titles),
        ],
    )


# Paired tests


def difference_frame(
    differences: pd.DataFrame, sections: Sequence[Mapping[str, Any]], datasets: Sequence[str]
) -> pd.DataFrame:
    """Return how much higher DEnsity correlates than each other metric of the rows, with the paired test.

    Parameters
    ----------
    differences
        As :func:`comperdial.evaluation.differences` gives them, of all data sets.
    sections
        Of ``rows.yaml``.
    datasets
        Which, in this order.

    Returns
    -------
    DataFrame
        dataset, section, label, coefficient, difference (DEnsity minus the other), low, high, p, holm_p, perm_both_p,
        perm_both_holm_p, n. Holm's correction is over the metrics of one section, data set and coefficient. Without
        DEnsity's scores no rows.
    """
    pairs = {}
    for row in differences.to_dict("records"):
        names = [(row["metric_a"], row["output_a"]), (row["metric_b"], row["output_b"])]
        if OURS in names:
            # The better one comes first; here it is DEnsity's turn.
            sign = 1.0 if names[0] == OURS else -1.0
            low, high = sorted((sign * row["low"], sign * row["high"]))
            other = names[1] if names[0] == OURS else names[0]
            found = {"difference": sign * row["difference"], "low": low, "high": high, "p": row["p"], "n": row["n"]}
            pairs[row["dataset"], row["coefficient"], *other] = found | {"perm_both_p": row["p_perm_both"]}
    records = []
    for dataset in datasets:
        for part in sections:
            named = [row for row in part["rows"] if "metric" in row]
            for coefficient in _COEFFICIENTS:
                there = [
                    (row["label"], pair)
                    for row in named
                    if (pair := pairs.get((dataset, coefficient, row["metric"], row["output"])))
                ]
                corrected = [holm([pair[name] for _, pair in there]) for name in ("p", "perm_both_p")]
                records += [
                    {"dataset": dataset, "section": part["section"], "label": label, "coefficient": coefficient}
                    | pair
                    | {"holm_p": ours, "perm_both_holm_p": theirs}
                    for (label, pair), ours, theirs in zip(there, *corrected, strict=True)
                ]
    columns = ["dataset", "section", "label", "coefficient", "difference", "low", "high"]
    return pd.DataFrame(records, columns=[*columns, "p", "holm_p", "perm_both_p", "perm_both_holm_p", "n"])


def _difference(record: Mapping[Any, Any]) -> str:
    return number(record["difference"], sign=True) + interval(record["low"], record["high"])


def _p(name: str) -> Callable[[Mapping[Any, Any]], str]:
    """Return what writes a p."""
    return lambda record: "< 0.001" if record[name] < 0.001 else number(record[name])


def paired_tests(
    *,
    differences: Sequence[Path],
    sections: Sequence[Mapping[str, Any]],
    datasets: Sequence[str],
    titles: Mapping[str, str],
    why: str | None,
) -> Document:
    """Show DEnsity's differences from other metrics, with paired tests."""
    from comperdial.core.files import read_table

    found = pd.concat([read_table(path) for path in differences], ignore_index=True)
    frame = difference_frame(found, sections, datasets)
    if frame.empty:
        raise NothingToShowError(f"there are no scores of DEnsity ({why or 'no such metric in params.yaml'})")
    counts: dict[str, int] = {}
    for section, of_kind in frame.groupby("section", sort=False):
        tested = of_kind.groupby(["dataset", "coefficient"], sort=False)["p"].count().reset_index()
        whole = tested["p"].nunique() == 1
        for row in tested.to_dict("records"):
            place = f", {titles[row['dataset']]}, {COEFFICIENT_NAMES[row['coefficient']]}"
            counts[str(section) if whole else f"{section}{place}"] = int(row["p"])
    columns = [
        column
        for coefficient in _COEFFICIENTS
        for column in (
            Column(COEFFICIENT_NAMES[coefficient], "DEnsity minus this", _difference, (coefficient,)),
            Column(COEFFICIENT_NAMES[coefficient], "p", _p("p"), (coefficient,)),
            Column(COEFFICIENT_NAMES[coefficient], "Holm", _p("holm_p"), (coefficient,)),
            Column(COEFFICIENT_NAMES[coefficient], "PERM-BOTH", _p("perm_both_p"), (coefficient,)),
        )
    ]
    made = []
    for dataset, of_set in frame.groupby("dataset", sort=False):
        cells = records_by(of_set, ["section", "label", "coefficient"])
        made.append(
            pivot(titles[str(dataset)], cells, {key[:2]: key[:2] for key in cells}, ["Kind", "Metric"], columns)
        )
    return Document(
        title="Paired tests of DEnsity against each other metric",
        caption="How much higher DEnsity (MiniLM, one model) correlates with the mean rating than another metric does, over "
        "the responses that both have a score of.",
        sections=[_summary(frame, titles), *made],
        tidy=frame,
        notes=[
            "In brackets the 95 % interval, which leaves out 0 just where p < 0.05. The test takes systems and dialogues as "
            "what was sampled; two or three systems count as given (docs/meta-evaluation.md)",
            "Holm: p after Holm's correction for the metrics of one kind, on one data set, by one coefficient: "
            + over_tests(counts),
            "Significantly: p < 0.05 after Holm's correction, by our test and by PERM-BOTH",
            "PERM-BOTH: the p of a test that takes all responses as independent, as the literature does; it calls too many "
            "differences significant",
            FEW_SYSTEMS,
            REFERENCES,
            *(
                f"{titles[name]} has no scores of DEnsity: {why or 'it was not run there'}"
                for name in datasets
                if name not in set(frame["dataset"])
            ),
        ],
    )


def _summary(frame: pd.DataFrame, titles: Mapping[str, str]) -> Section:
    """Return a section that counts, of each kind of metrics, how many DEnsity is above."""
    records = []
    for (dataset, section, coefficient), group in frame.groupby(["dataset", "section", "coefficient"], sort=False):
        nearest = group.sort_values("difference").iloc[0]
        records.append(
            {"title": titles[str(dataset)], "section": section, "coefficient": coefficient}
            | {"above": f"{int((group['difference'] > 0).sum())} of {len(group)}"}
            | {
                name: str(int(((group["difference"] > 0) & (group[p] < ALPHA)).sum()))
                for name, p in (("significant", "holm_p"), ("perm_both", "perm_both_holm_p"))
            }
            | {"nearest": f"{nearest['label']} ({number(nearest['difference'], sign=True)})"}
        )
    columns = [
        Column(COEFFICIENT_NAMES[coefficient], name, itemgetter(key), (coefficient,))
        for coefficient in _COEFFICIENTS
        for key, name in (
            ("above", "above"),
            ("significant", "significantly"),
            ("perm_both", "by PERM-BOTH"),
            ("nearest", "least difference"),
        )
    ]
    cells = records_by(pd.DataFrame(records), ["title", "section", "coefficient"])
    return pivot("DEnsity above", cells, {key[:2]: key[:2] for key in cells}, ["Data set", "Kind"], columns)


# The ablation


def table_2(
    *,
    correlations: Sequence[Path],
    differences: Sequence[Path],
    reported: Path,
    ablation: Mapping[str, Any],
    datasets: Sequence[str],
    titles: Mapping[str, str],
    metrics: Sequence[str],
    not_run: Mapping[str, str],
) -> Document:
    """Show the ablation of loss and distance."""
    from comperdial.core.files import read_table

    known = reported_values(reported, "Table 2")
    # A row is a loss and a distance; as frame_of() has it, both are the reported metric's name.
    known = known.assign(metric=known["contrastive"] + known["metric"])
    sections = [
        {
            "section": _loss(loss),
            "rows": [
                {"label": distance, "metric": metric, "output": output, "reported": loss + distance}
                for distance, output in ablation["outputs"]
            ],
        }
        for loss, metric in ablation["metrics"]
    ]
    found = _read(correlations)
    frame = frame_of(found, known, sections, datasets=datasets, metrics=metrics, not_run=not_run)
    frame = frame.drop(columns="difference")
    pairs = pd.concat([read_table(path) for path in differences], ignore_index=True)
    gains = _gains(pairs, ablation, datasets)
    made = [*_sections(frame, titles, difference=False)]
    if len(gains):
        columns = [
            column
            for coefficient in _COEFFICIENTS
            for column in (
                Column(COEFFICIENT_NAMES[coefficient], "with minus without", _difference, (coefficient,)),
                Column(COEFFICIENT_NAMES[coefficient], "p", _p("p"), (coefficient,)),
            )
        ]
        cells = records_by(gains, ["dataset", "label", "coefficient"])
        lines = {key[:2]: [titles[key[0]], key[1]] for key in cells}
        made.append(pivot("What the contrastive loss changes", cells, lines, ["Data set", "Score"], columns))
    return Document(
        title="Table 2. Loss and distance",
        caption=leave_out.with_legend(
            "Correlation with the mean rating of a response, for a model trained with the contrastive loss and one without, by "
            "Mahalanobis' and Euclidean distance from human responses and by the selection score.",
            frame,
            "ours",
        ),
        sections=made,
        tidy=pd.concat([frame, gains.assign(section="with minus without")], ignore_index=True),
        notes=[
            "The paper's numbers are of BERT trained on DailyDialog, ours of one MiniLM trained on all corpora: no differences "
            "are given; what to compare is the order of the rows",
            INTERVALS,
            f"p: the paired test of the two models, without a correction; {ALPHA:.2f} is its level",
            f"Paper: {CITED}",
            *_notes(frame, titles),
        ],
    )


def _gains(pairs: pd.DataFrame, ablation: Mapping[str, Any], datasets: Sequence[str]) -> pd.DataFrame:
    """Return what the model with the contrastive loss correlates more than the one without, by data set and score."""
    records = []
    both = dict(ablation["metrics"])
    for row in pairs.to_dict("records"):
        for label, output in ablation["outputs"]:
            names = ((row["metric_a"], row["output_a"]), (row["metric_b"], row["output_b"]))
            wanted = ((both["yes"], output), (both["no"], output))
            if names in (wanted, wanted[::-1]):
                sign = 1.0 if names == wanted else -1.0
                low, high = sorted((sign * row["low"], sign * row["high"]))
                records.append(
                    {"dataset": row["dataset"], "label": label, "coefficient": row["coefficient"]}
                    | {"difference": sign * row["difference"], "low": low, "high": high, "p": row["p"], "n": row["n"]}
                )
    columns = ["dataset", "label", "coefficient", "difference", "low", "high", "p", "n"]
    found = pd.DataFrame(records, columns=columns)
    order = {name: place for place, name in enumerate(datasets)}
    return found.sort_values("dataset", key=lambda names: names.map(order), kind="stable")


# Examples


def table_3(
    *,
    scores: Sequence[Path],
    reported: Path,
    rows: Sequence[Mapping[str, Any]],
    title: str,
    metrics: Sequence[str],
    not_run: Mapping[str, str],
    **about: Any,  # noqa: ANN401 - what samples() takes
) -> Document:
    """Show the scores of the paper's examples."""
    from comperdial.report.inputs import read_reported

    columns = ("source", "place", "example", "context_id", "system_id", "metric")
    known = read_reported(reported, columns, given=("score", "rank"))
    named = [f"{row['metric']}:{row['output']}" for row in rows if "metric" in row]
    found = samples(scores, named, **about)[0]
    ours = dict(zip(found.names, found.scores, strict=True))
    of_unit = {unit: place for place, unit in enumerate(found.units)}
    records, absent = [], {}
    for (example, context, system), group in known.groupby(["example", "context_id", "system_id"], sort=False):
        theirs = {row["metric"]: row for row in group.to_dict("records")}
        place = of_unit.get((context, system))
        people = {"label": "People", "reported": "Human"}
        for row in [people, *rows]:
            values = found.ratings if row is people else ours.get((row.get("metric"), row.get("output")))
            if values is None and "metric" in row:
                absent[row["label"]] = _missing(row["metric"], metrics, not_run)
            printed = theirs.get(row.get("reported", ""), {})
            records.append(
                {"example": f"{example}: {context}, {system}", "label": row["label"]}
                | {"reported": printed.get("score"), "reported_rank": printed.get("rank")}
                | dict(zip(("ours", "rank"), _placed(values, place), strict=True))
            )
    frame = pd.DataFrame(records)
    columns_of = [
        Column("", "Metric", lambda record: record["label"]),
        *(
            Column(group, name, _scored(column, absent))
            for group, score, rank in (("Paper", "reported", "reported_rank"), ("Ours", "ours", "rank"))
            for name, column in (("score", score), ("rank", rank))
        ),
    ]
    return Document(
        title="Table 3. What metrics say of four responses",
        caption=f"Scores of the paper's four examples, which are responses of {title}: normalised to 0 to 1 over all its "
        "responses, with the rank divided by their number; people's ratings likewise.",
        sections=[
            listed(f"Example {example}", of_example, columns_of)
            for example, of_example in frame.groupby("example", sort=False)
        ],
        tidy=frame,
        notes=[
            "The texts are not ours to pass on: the paper prints them, and the data set's tables hold them under these names",
            "Of equal scores ours have the mean rank; what the paper does with them, it does not say",
            "People's ratings of the examples differ between the paper and our file of DailyDialog-Zhao (Zhang et al. 2024: "
            "means of four raters): the paper's correlations are with ratings that are not quite ours",
            *not_run_notes(absent.items()),
        ],
    )


def _scored(column: str, absent: Collection[str]) -> Callable[[Mapping[Any, Any]], str]:
    """Return what writes a score or rank, and of ours that it was not run."""
    ours = column in ("ours", "rank")
    return lambda record: _NOT_RUN if ours and record["label"] in absent else number(record[column], digits=2)


def _missing(metric: str, metrics: Sequence[str], not_run: Mapping[str, str]) -> str:
    return not_run.get(metric, "it was not run there") if metric in metrics else f"no metric {metric!r} in params.yaml"


def _placed(values: Any, place: int | None) -> tuple[float, float]:  # noqa: ANN401 - an array or None
    """Return a value normalised to 0 to 1 over all, and its rank divided by their number."""
    if values is None or place is None or pd.isna(values[place]):
        return float("nan"), float("nan")
    known = pd.Series(values).dropna()
    span = known.max() - known.min()
    normalised = (values[place] - known.min()) / span if span else float("nan")
    return float(normalised), float(known.rank()[place] / len(known))


# Dialogues


def table_4(
    *,
    correlations: Sequence[Path],
    ceilings: Path,
    reported: Path,
    sections: Sequence[Mapping[str, Any]],
    datasets: Sequence[str],
    titles: Mapping[str, str],
    metrics: Sequence[str],
    not_run: Mapping[str, str],
) -> Document:
    """Show how metrics correlate with ratings of dialogues."""
    from comperdial import schema

    known = reported_values(reported, "Table 4")
    found = _read(correlations)
    frame = frame_of(found, known, sections, datasets=datasets, metrics=metrics, not_run=not_run)
    single = schema.read(ceilings, "ceilings")
    agreed = single[single["grouping"] == "pooled"].groupby("coefficient")["value"].mean()
    people = {"dataset": DIALOGUES, "section": "People", "label": "One rater and the mean of the others"}
    human = known[known["metric"] == "Human"].set_index("coefficient")["value"]
    frame = pd.concat(
        [
            frame,
            pd.DataFrame(
                [
                    people | {"coefficient": name, "ours": agreed.get(name), "reported": human.get(name)}
                    for name in _COEFFICIENTS
                ]
            ),
        ],
        ignore_index=True,
    )
    counted = int(frame["n"].max()) if frame["n"].notna().any() else 0
    return Document(
        title="Table 4. Metrics and people's ratings of dialogues",
        caption=leave_out.with_legend(
            f"Correlation with the mean overall rating of the {counted} dialogues of {', '.join(titles.values())}. The score of "
            "a dialogue is the mean over the chatbot's responses in it.",
            frame,
            "ours",
        ),
        sections=_sections(frame, titles),
        tidy=frame,
        notes=[
            ONE_MODEL,
            INTERVALS,
            "The paper averages over every turn of a dialogue, ours over those of the chatbot, which was rated",
            "People: the paper's 0.830 is cited from Zhang et al. 2021, counted in a way of their own; ours is the mean "
            "over the five columns of raters, and no upper bound",
            f"Paper: {CITED}",
            *_notes(frame[frame["section"] != "People"], titles),
        ],
    )


# Response selection


def table_5(
    *,
    reported: Path,
    cards: Sequence[Path],
    trained: Sequence[str],
    losses: Sequence[Sequence[str]],
    not_run: Mapping[str, str],
) -> Document:
    """Show how well the models select responses."""
    from comperdial.core.files import read_json
    from comperdial.report.inputs import read_reported

    known = read_reported(reported, ("source", "place", "corpus", "contrastive", "measure"), given=("value",))
    records = known.assign(source="paper").drop(columns="place").to_dict("records")
    for (loss, _), card in _paired(losses, trained, cards):
        for corpus, found in read_json(card)["held-out"].items():
            about = {"source": "ours", "corpus": corpus, "contrastive": loss, "n": found["n"]}
            records += [
                about | {"measure": measure, "value": found[key]}
                for measure, key in (("recall@1", "recall_at_1"), ("MRR", "mrr"))
            ]
    frame = pd.DataFrame(records).reindex(columns=["source", "corpus", "contrastive", "measure", "value", "n"])
    made = []
    for source, title in (
        ("paper", "The paper: BERT, a model for each corpus, on its test split"),
        ("ours", "Ours: MiniLM, one model, on held-out dialogues of the corpora it was trained on"),
    ):
        of_source = frame[frame["source"] == source]
        columns = [
            Column(_corpus(corpus, of_source), measure, value_of("value"), (corpus, measure))
            for corpus in dict.fromkeys(of_source["corpus"])
            for measure in ("recall@1", "MRR")
        ]
        cells = records_by(of_source, ["contrastive", "corpus", "measure"])
        lines = {
            (loss,): [_loss(loss) + (f", {_NOT_RUN}" if source == "ours" and name in not_run else "")]
            for loss, name in losses
        }
        made.append(pivot(title, cells, lines, ["Trained"], columns))
    return Document(
        title="Table 5. Selecting the right response",
        caption="The share of contexts whose right response has the highest selection score (recall@1), and the mean reciprocal "
        "rank of the right response (MRR).",
        sections=made,
        tidy=frame,
        notes=[
            "The two parts are not to be compared: other models, other dialogues, and among ours the right response is one of "
            "ten; how many the paper's is one of, its text does not say (it trains with 15 or 19 wrong ones)",
            "Ours are of dialogues by which the best checkpoint was chosen, so that they are somewhat too high",
            f"Paper: {CITED}",
            *(f"{_loss(loss)}: {_NOT_RUN}: {not_run[name]}" for loss, name in losses if name in not_run),
        ],
    )


def _paired(
    losses: Sequence[Sequence[str]], trained: Sequence[str], cards: Sequence[Path]
) -> list[tuple[tuple[str, str], Path]]:
    """Return each loss and metric with the card of its model, as far as there is one."""
    of = dict(zip(trained, cards, strict=True))
    return [((loss, name), of[name]) for loss, name in losses if name in of]


def _loss(contrastive: str) -> str:
    return f"{'with' if contrastive == 'yes' else 'without'} contrastive loss"


def _corpus(corpus: str, frame: pd.DataFrame) -> str:
    """Return what a corpus is called, with how many contexts its numbers are of where that is known."""
    counted = frame.loc[frame["corpus"] == corpus, "n"].dropna()
    return corpus.replace("_", " ") + (f" (n = {int(counted.iloc[0])})" if len(counted) else "")
