"""Tables about the ratings themselves: agreement, bias of annotators, and ComperDial's Table 13."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from comperdial.core.errors import SchemaError
from comperdial.evaluation.ratings import OVERALL
from comperdial.report.captions import with_suffix
from comperdial.report.document import Column, Document, Section, count_of, number, pivot, records_by, value_of
from comperdial.report.tables import LEVEL_NAMES

REPORTED = (
    "ComperDial reports a Krippendorff's alpha of 0.56 at turn level and 0.62 at dialogue level (section 5), of six "
    "annotators and its own responses; it does not say with which level of measurement"
)
METRIC_NAMES = {"ordinal": "Ordinal", "interval": "Interval", "nominal": "Nominal", "ratio": "Ratio"}
# Characters in a line of a text: longer texts go on in the next row, because cells do not wrap in HTML and LaTeX.
WIDTH = 90

_COUNTS = ("items", "clusters", "annotators", "ratings")


def agreement_document(
    alphas: pd.DataFrame, bias: pd.DataFrame, title: str, *, simulated: bool, suffix: str = ""
) -> Document:
    """Render Krippendorff's alpha with its intervals, then each annotator against the others.

    Parameters
    ----------
    alphas
        From :func:`comperdial.evaluation.ratings.alphas`, of one data set.
    bias
        From :func:`comperdial.evaluation.ratings.annotator_bias`, of the same data set; both levels may be joined.
    title
        The data set's title.
    simulated
        Whether the ratings are simulated; then ``suffix`` must say so.
    suffix
        A sentence that ends the caption; of simulated ratings it begins with "SIMULATED:".

    Returns
    -------
    Document
        Its tidy frame has one row a statistic: alphas as ``alpha_<metric>`` and, of each annotator, ``mean``, ``bias``,
        ``spread`` and ``spearman``.
    """
    if simulated and not suffix.startswith("SIMULATED:"):
        raise ValueError("a table of simulated ratings needs a suffix that begins with 'SIMULATED:'")
    _one_dataset(alphas, bias)
    confidences = " and ".join(f"{confidence:.0%}" for confidence in sorted(alphas["confidence"].unique()))
    resamples = " and ".join(f"{count:,}" for count in sorted(alphas["resamples"].unique()))
    simulation = ". The raters here are simulated: no value of theirs is to be held against these" if simulated else ""
    return Document(
        title=f"Agreement between the annotators of {title}",
        caption=with_suffix(
            f"Krippendorff's alpha of every rated dimension of {title}, with {confidences} bootstrap intervals, and "
            "each annotator against the others.",
            suffix,
        ),
        sections=[_alpha_section(alphas), _bias_section(bias)],
        tidy=_agreement_tidy(alphas, bias),
        notes=[
            REPORTED + simulation,
            f"Intervals are percentiles of {resamples} resamples; at turn level whole dialogues of one system are "
            "resampled, at dialogue level the rated dialogues",
            "Counts are of items with two ratings or more, and their ratings; clusters are what was resampled",
            "Bias is the mean difference from the mean of the other annotators of the same item; spread is the "
            "standard deviation over that of the others; Spearman is the correlation with the mean of the others",
        ],
    )


def _alpha_section(alphas: pd.DataFrame) -> Section:
    metrics = [metric for metric in METRIC_NAMES if metric in set(alphas["metric"])]
    columns = []
    for metric in metrics:
        group = f"{METRIC_NAMES[metric]} alpha"
        columns += [Column(group, "value", value_of("value"), (metric,)), Column(group, "interval", _range, (metric,))]
    columns += [Column("Counts", name, count_of(name), (metrics[0],)) for name in _COUNTS]
    cells = records_by(alphas, ["level", "dimension", "metric"])
    return pivot("Krippendorff's alpha", cells, _labels(alphas), ["Level", "Dimension"], columns)


def _range(cell: Mapping[Any, Any]) -> str:
    return f"{number(cell['low'])} to {number(cell['high'])}"


def _bias_section(bias: pd.DataFrame) -> Section:
    values = {"mean": value_of("mean"), "bias": value_of("bias", sign=True), "spread": value_of("spread")}
    shown = {"items": count_of("n"), **values, "Spearman": value_of("spearman")}
    columns = [Column("Against the others", name, write) for name, write in shown.items()]
    cells = records_by(bias, ["level", "dimension", "annotator_id"])
    rows = {key: [*label, str(key[2])] for place, label in _labels(bias).items() for key in cells if key[:2] == place}
    return pivot("Annotators", cells, rows, ["Level", "Dimension", "Annotator"], columns)


def _agreement_tidy(alphas: pd.DataFrame, bias: pd.DataFrame) -> pd.DataFrame:
    long = bias.melt(
        id_vars=["dataset", "level", "dimension", "annotator_id", "n"],
        value_vars=["mean", "bias", "spread", "spearman"],
        var_name="statistic",
    ).rename(columns={"n": "items"})
    ours = alphas.assign(statistic="alpha_" + alphas["metric"])
    first = ["dataset", "level", "dimension", "annotator_id", "statistic", "value", "low", "high", "confidence"]
    both = pd.concat([ours, long], ignore_index=True).reindex(columns=[*first, *_COUNTS, "resamples"])
    # Counts stay whole numbers beside the gaps of the other kind.
    return both.astype(dict.fromkeys([*_COUNTS, "resamples"], "Int64"))


def level_difference_document(
    cases: pd.DataFrame,
    ratings: pd.DataFrame,
    contexts: pd.DataFrame,
    responses: pd.DataFrame,
    systems: pd.DataFrame,
    title: str,
    *,
    suffix: str = "",
    source: str = "human",
) -> Document:
    """Render one dialogue side by side, as ComperDial's Table 13, after the figures of its cases.

    Parameters
    ----------
    cases
        From :func:`comperdial.evaluation.ratings.table13_cases`: several systems in one dialogue.
    ratings, contexts, responses, systems
        Tables of these names. Dimensions of ratings of dialogues that go from 0 to 1 are axes, and 0 is a mark.
    title
        The data set's title.
    suffix
        A sentence that ends the caption; of simulated data it begins with "SIMULATED:".
    source
        Whose ratings.

    Returns
    -------
    Document
        Its tidy frame is the dialogue, one row an utterance or response, with the figures of the case beside its
        responses and ``marks_<axis>``, the number of raters who marked the axis.
    """
    _one_dataset(cases)
    if cases.empty or len(set(cases["dialogue_id"])) != 1:
        raise SchemaError(
            "the cases are not of one dialogue", where="cases", expected="several systems in one dialogue"
        )
    dataset, dialogue = str(cases["dataset"].iloc[0]), str(cases["dialogue_id"].iloc[0])
    letters = {str(system): f"({chr(ord('a') + n)})" for n, system in enumerate(cases["system_id"])}
    ratings = ratings[(ratings["dataset"] == dataset) & (ratings["source"] == source)]
    marks = _marks(ratings[(ratings["level"] == "dialogue") & (ratings["item_id"] == dialogue)])
    kinds = systems[systems["dataset"] == dataset].set_index("system_id")["kind"]
    humans = [str(system) for system in sorted(kinds.index[kinds == "human"]) if system not in letters]
    labels = letters | {system: "Human" if len(humans) == 1 else f"Human {n}" for n, system in enumerate(humans, 1)}
    of_dialogue = contexts[(contexts["dataset"] == dataset) & (contexts["dialogue_id"] == dialogue)]
    transcript = _transcript(of_dialogue, responses[responses["dataset"] == dataset], ratings, labels)
    tidy = transcript.merge(cases.drop(columns=["turns"]), on=["dataset", "dialogue_id", "system_id"], how="left")
    for axis, counts in marks.items():
        tidy[f"marks_{axis}"] = tidy["system_id"].map({s: counts[s][0] for s in counts if s in letters}).astype("Int64")
    people = [f"{label} is {system}" for system, label in labels.items() if system in humans]
    return Document(
        title=f"Rated lower as a dialogue than turn by turn: {title}",
        caption=with_suffix(
            f"Dialogue {dialogue} of {title}, in which {len(cases)} systems are rated lowest as dialogues relative to "
            "their single turns, side by side as in ComperDial's Table 13.",
            suffix,
        ),
        sections=[_case_section(cases, letters, marks), *_turn_sections(transcript)],
        tidy=tidy,
        notes=[
            f"Difference is the mean dialogue rating ({OVERALL}) minus the mean over turns of the mean turn rating; "
            "nothing is standardised",
            "The dialogue is the one whose systems have the lowest mean difference, the systems are the lowest in it",
            "Systems answer each turn after the gold history: the utterances of A and, of earlier turns, the gold "
            "responses",
            *(
                ["Marked axes: raters of the dialogue who marked the axis as a reason, of those who rated"]
                if marks
                else []
            ),
            *people,
        ],
    )


def _marks(ratings: pd.DataFrame) -> dict[str, dict[str, tuple[int, int]]]:
    """Return, for each axis and system, how many raters marked it (rating 0 of 0 to 1) and how many rated."""
    is_axis = (ratings["dimension"] != OVERALL) & (ratings["scale_min"] == 0) & (ratings["scale_max"] == 1)
    found: dict[str, dict[str, tuple[int, int]]] = {}
    for (axis, system), group in ratings[is_axis].groupby(["dimension", "system_id"], sort=True):
        found.setdefault(str(axis), {})[str(system)] = (int((group["rating"] == 0).sum()), len(group))
    return found


def _case_section(
    cases: pd.DataFrame, letters: dict[str, str], marks: dict[str, dict[str, tuple[int, int]]]
) -> Section:
    columns = [("", "Which"), ("", "Dialogue"), ("", "System")]
    columns += [("Mean rating", name) for name in ("turns", "dialogue", "difference")]
    columns += [("Marked axes", axis) for axis in marks]
    rows = []
    for case in cases.to_dict("records"):
        system = str(case["system_id"])
        means = [number(case[name], digits=2) for name in ("turn_rating", "dialogue_rating")]
        found = [counts.get(system) for counts in marks.values()]
        marked = [f"{pair[0]} of {pair[1]}" if pair else "–" for pair in found]
        difference = number(case["difference"], digits=2, sign=True)
        rows.append([letters[system], str(case["dialogue_id"]), system, *means, difference, *marked])
    return Section("Cases", columns, rows)


def _transcript(
    contexts: pd.DataFrame, responses: pd.DataFrame, ratings: pd.DataFrame, labels: dict[str, str]
) -> pd.DataFrame:
    """Return one dialogue, one row an utterance: what is new in the history, then the responses and the gold ones."""
    texts = responses.set_index(["context_id", "system_id"])["response"]
    overall = ratings[(ratings["level"] == "turn") & (ratings["dimension"] == OVERALL)]
    means = overall.groupby(["item_id", "system_id"])["rating"].mean()
    rows: list[dict[str, Any]] = []
    before: list[dict[str, str]] = []
    gold: list[str] = []
    for context in contexts.sort_values("turn").to_dict("records"):
        same = {name: context[name] for name in ("dataset", "dialogue_id", "context_id", "turn")}
        history = list(context["history"])
        new = history[len(before) :] if history[: len(before)] == before else history
        if len(new) < len(history) and new and new[0]["text"] in gold:
            # The last turn's gold response stands there already.
            new = new[1:]
        rows += [same | {"speaker": said["speaker"], "which": "", "text": said["text"]} for said in new]
        before, gold = history, [str(text) for text in context["references"]]
        answers = [(label, system, texts.get((context["context_id"], system))) for system, label in labels.items()]
        shown = [answer for answer in answers if answer[0].startswith("(")]
        people = [answer for answer in answers if answer not in shown and answer[2] is not None]
        for label, system, text in [*shown, *(("Gold", None, text) for text in gold), *people]:
            rating = means.get((context["context_id"], system))
            rows.append(same | {"speaker": "B", "which": label, "system_id": system, "text": text, "rating": rating})
    columns = ["dataset", "dialogue_id", "context_id", "turn", "speaker", "which", "system_id", "text", "rating"]
    return pd.DataFrame(rows, columns=columns).astype({"rating": "float64"})


def _turn_sections(transcript: pd.DataFrame) -> list[Section]:
    columns = [("", "Turn"), ("", "Speaker"), ("", "Which"), ("", "Text"), ("Turn rating", "mean")]
    sections = []
    for turn, of_turn in transcript.groupby("turn", sort=True):
        name = str(int(str(turn)) + 1)
        rows: list[Sequence[str]] = []
        for row in of_turn.to_dict("records"):
            text = row["text"] if isinstance(row["text"], str) else "–"
            first, *rest = textwrap.wrap(" ".join(text.split()), WIDTH) or ["–"]
            rows.append([name, str(row["speaker"]), str(row["which"]), first, number(row["rating"], digits=2)])
            rows += [["", "", "", line, ""] for line in rest]
        sections.append(Section(f"Turn {name}", columns, rows))
    return sections


def _labels(frame: pd.DataFrame) -> dict[tuple[str, str], list[str]]:
    """Return the labels of each level and dimension, turn first and the overall rating before its parts."""
    pairs = {(str(level), str(dimension)) for level, dimension in zip(frame["level"], frame["dimension"], strict=True)}
    levels = list(LEVEL_NAMES)
    ordered = sorted(pairs, key=lambda pair: (levels.index(pair[0]), pair[1] != OVERALL, pair[1]))
    return {(level, dimension): [LEVEL_NAMES[level], dimension] for level, dimension in ordered}


def _one_dataset(*frames: pd.DataFrame) -> None:
    names = sorted({str(name) for frame in frames for name in frame["dataset"].unique()})
    if len(names) != 1:
        raise SchemaError(
            f"{len(names)} data sets in one table", where=", ".join(names) or None, expected="rows of one data set"
        )
