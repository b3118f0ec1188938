"""Table 1: the twelve data sets, what was rated by whom, and how the raters agree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial import schema
from comperdial.evaluation.dimensions import RatedSet
from comperdial.report.document import Column, Document, count_of, listed, number, value_of
from comperdial.schema.evaluated import DIMENSIONS
from comperdial.studies.llm_evaluators.common import LEVELS, PAPER, RATERS, SHORT
from comperdial.studies.llm_evaluators.rounds import SOURCES, agreement

REPORTED_COLUMNS = ("source", "place", "dataset", "level", "human", "gpt-4")
_BY = {"ours": "", "reported": "_reported"}
Agreed = Mapping[tuple[str, str], tuple[float, float]]
NUMERIC = ("items", "utterances", "words_before", "words")


def count(folder: Path) -> dict[str, object]:
    """Count one data set.

    Parameters
    ----------
    folder
        Its folder of tables.

    Returns
    -------
    dict
        dataset, level, items (rated responses or dialogues), utterances (mean an item), words_before and words (mean an
        item, split at white space: of a response's context and of the response, or of a dialogue), and for each source
        the dimensions that it rated, in one text.
    """
    rated = RatedSet.read(folder)
    contexts, responses = (schema.read(folder / f"{name}.parquet", name) for name in ("contexts", "responses"))
    texts = responses.merge(contexts[["context_id", "dialogue_id", "history"]], on="context_id")
    texts = texts.assign(
        item_id=texts["context_id" if rated.level == "turn" else "dialogue_id"],
        utterances=texts["history"].map(len) + 1,
        words_before=[sum(len(one["text"].split()) for one in history) for history in texts["history"]],
        words=texts["response"].str.split().map(len),
    )
    rated_items = rated.ratings[["item_id", "system_id"]].drop_duplicates()
    if rated.level == "dialogue":
        # The last response of a dialogue has all of it before it.
        texts = texts.sort_values("utterances", kind="stable").drop_duplicates(["item_id", "system_id"], keep="last")
        texts = texts.assign(words=texts["words_before"] + texts["words"], words_before=float("nan"))
    counted = rated_items.merge(texts, on=["item_id", "system_id"], how="left")
    return {
        "dataset": rated.dataset,
        "level": rated.level,
        "items": len(rated_items),
        **{name: float(counted[name].mean()) for name in ("utterances", "words_before", "words")},
        **{
            source: " ".join(
                name
                for name in DIMENSIONS[rated.level]
                if name in set(rated.ratings.loc[rated.ratings["source"] == source, "dimension"])
            )
            for source in SOURCES
        },
    }


def table_1(
    counted: pd.DataFrame, rounds: pd.DataFrame, reported: pd.DataFrame, *, titles: Mapping[str, str]
) -> Document:
    """Render Table 1.

    Parameters
    ----------
    counted
        Rows of :func:`count`.
    rounds
        Table ``rounds`` of all sets.
    reported
        ``src/comperdial/studies/llm_evaluators/data_sets.csv``.
    titles
        A title for each set; rows are in the order of ``counted``.
    """
    pairs = agreement(rounds).groupby(["dataset", "source"], observed=True)["mean"].agg(["min", "max"]).reset_index()
    agreed = {(row["dataset"], row["source"]): (row["min"], row["max"]) for row in pairs.to_dict("records")}
    theirs = {row["dataset"]: row for row in reported.to_dict("records")}
    ours = {row["dataset"]: row for row in counted.to_dict("records")}
    records = [
        {**_record(mine, theirs.get(name, {}), agreed, name), "level": level}
        for level in LEVELS
        for name, mine in ours.items()
        if mine["level"] == level
    ]
    frame = pd.DataFrame(records)
    sections = []
    for level, title in LEVELS.items():
        of_turns = [("Words before", "words_before"), ("Words of the response", "words")]
        measured = [("Utterances", "utterances"), *(of_turns if level == "turn" else [("Words", "words")])]
        columns = [Column("", "Data set", lambda row: titles.get(row["dataset"], row["dataset"]))]
        for by, end in _BY.items():
            columns.append(Column("Items", by, count_of(f"items{end}")))
        for name, column in measured:
            columns += [Column(name, by, value_of(column + end, digits=1)) for by, end in _BY.items()]
        for source, who in RATERS.items():
            columns += [Column(f"Rated by {who}", by, _short(source + end)) for by, end in _BY.items()]
        columns += [Column("Agreement, ours", who, _range(f"agreement_{source}")) for source, who in RATERS.items()]
        made = listed(title, frame[frame["level"] == level], columns)
        sections += [made] if made.rows else []
    return Document(
        title="Table 1. The data sets of the study",
        caption=f"What the twelve data sets hold and which dimensions people or GPT-4 rated, ours beside what {PAPER} "
        "report.",
        sections=sections,
        tidy=frame,
        notes=[
            "Items: rated responses, or rated dialogues. Utterances: mean number an item, the response among them. "
            "Words: mean number an item, split at white space, without the names of speakers; of a dialogue, up to the "
            "chatbot's last utterance, which is where a dialogue ends in our tables",
            "Agreement: the mean Pearson correlation over pairs of annotators, lowest to highest over the dimensions: "
            "of GPT-4's five rounds, and of people where single ratings are public in the study's files. A dash: the "
            "means alone are there. A pair of people is a pair of places: other dialogues have other people there",
            "The ranges of agreement that the paper reports are not in the text of it that the numbers were taken from",
            "Reported of FED-Dial: rated by people alone; GPT-4's five rounds are there too, and are the GPT-4 of "
            "Tables 3 and 4",
            *_differences(ours, titles),
        ],
    )


# Why our numbers are not the reported ones: a reason, and the sets that it holds for.
_DIFFERENCES = (
    ("the reported words differ from ours for a reason that we do not know", ("fed_turn", "topical_usr")),
    (
        "the reported lengths are of all dialogues of the source, ours of the 500 that GPT-4 rated",
        ("ieval_dial", "persona_see", "reliable_dial"),
    ),
    ("our tables leave out utterances that are the mark <EMPTY> and no text", ("conture_dial",)),
)


def _differences(ours: Mapping[str, object], titles: Mapping[str, str]) -> list[str]:
    """Return a note for each known reason of a difference, of the sets that are rows."""
    there = [(why, [titles.get(name, name) for name in names if name in ours]) for why, names in _DIFFERENCES]
    return [f"{', '.join(names)}: {why}" for why, names in there if names]


def _short(column: str) -> Callable[[Mapping[Any, Any]], str]:
    def write(row: Mapping[Any, Any]) -> str:
        names = row[column].split() if isinstance(row[column], str) else []
        return ", ".join(SHORT[name] for name in DIMENSIONS[row["level"]] if name in names) or "–"

    return write


def _range(name: str) -> Callable[[Mapping[Any, Any]], str]:
    def write(row: Mapping[Any, Any]) -> str:
        low, high = (row[f"{name}_{end}"] for end in ("lowest", "highest"))
        return "–" if pd.isna(low) else f"{number(low, digits=2)} to {number(high, digits=2)}"

    return write


def _record(mine: Mapping[Any, Any], printed: Mapping[Any, Any], agreed: Agreed, name: str) -> dict[str, object]:
    record: dict[str, object] = {"dataset": name}
    for column in (*NUMERIC, *SOURCES):
        record |= {column: mine[column], f"{column}_reported": printed.get(column)}
    for source in SOURCES:
        low, high = agreed.get((name, source), (None, None))
        record |= {f"agreement_{source}_lowest": low, f"agreement_{source}_highest": high}
    return record
