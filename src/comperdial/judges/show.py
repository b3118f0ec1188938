"""One dialogue of one system with its judgements: utterances, turn scores, dialogue scores, rationales."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from comperdial import schema
from comperdial.core.errors import FileError, UnknownNameError


def show(folder: Path, results: Path, system: str, dialogue: str, metrics: Sequence[str] | None = None) -> str:
    """Return the dialogue with judges' turn scores, dialogue scores and rationales, as text.

    ``folder`` has the data set's tables, ``results`` the folders of results by data set. Without ``metrics`` all judges'
    metrics but those of a single answer are shown.

    Raises
    ------
    FileError, UnknownNameError
        When there are no judgements, no such metric or dialogue, or the system did not answer in it.
    """
    made = results / folder.name / "judgements"
    known = {path.stem: path for path in sorted(made.glob("*.parquet"))}
    if not known:
        raise FileError(
            "no judgements have been made of this data set",
            where=str(made),
            expected="METRIC.parquet for each metric of a judge",
            hint="`judge run --output … --judgements …` or `snakemake` makes them",
        )
    chosen = metrics or [name for name in known if "-once_" not in name]
    for name in chosen:
        if name not in known:
            raise UnknownNameError("metric", name, known, where=str(results / folder.name))
    contexts = schema.read(folder / "contexts.parquet", "contexts")
    responses = schema.read(folder / "responses.parquet", "responses")
    if dialogue not in set(contexts["dialogue_id"]):
        raise UnknownNameError("dialogue", dialogue, contexts["dialogue_id"].unique(), where=str(folder))
    turns = contexts[contexts["dialogue_id"] == dialogue].sort_values("turn")
    answered = responses[responses["context_id"].isin(turns["context_id"])]
    if system not in set(answered["system_id"]):
        raise UnknownNameError("system", system, answered["system_id"].unique(), where=f"{folder}, {dialogue}")
    texts = answered[answered["system_id"] == system].set_index("context_id")["response"]
    scores, judgements = (
        pd.concat(
            [schema.empty(table), *(schema.read(made.parent / table / f"{name}.parquet", table) for name in chosen)]
        )
        for table in ("scores", "judgements")
    )
    scores, judgements = (table[table["system_id"] == system] for table in (scores, judgements))
    lines = [f"{dialogue} by {system}", ""]
    if facts := list(turns["facts"].iloc[0]):
        lines += ["Persona and facts:", *(f"  - {fact}" for fact in facts), ""]
    shown = 0
    for context, history in zip(turns["context_id"], turns["history"], strict=True):
        # Each turn's history holds the ones before.
        lines += [f"{utterance['speaker']}: {utterance['text']}" for utterance in list(history)[shown:]]
        shown = len(history) + 1
        lines.append(f">> {texts[context]}" if context in texts.index else ">> (no response)")
        lines += [*_judged(scores, judgements, "turn", context), ""]
    whole = list(_judged(scores, judgements, "dialogue", dialogue))
    return "\n".join([*lines, "The dialogue as a whole:", *(whole or ["   not judged"])])


def _judged(scores: pd.DataFrame, judgements: pd.DataFrame, level: str, item: str) -> Iterator[str]:
    scores, judgements = (
        table[(table["level"] == level) & (table["item_id"] == item)] for table in (scores, judgements)
    )
    for metric, group in judgements.groupby("metric", sort=True):
        own = scores[scores["metric"] == metric]
        ratings = ", ".join(f"{output} {value:.2f}" for output, value in zip(own["output"], own["value"], strict=True))
        yield f"   {metric}: {ratings or 'no score'}"
        for sample, failure, rationale in group.sort_values("sample")[["sample", "failure", "rationale"]].to_numpy():
            name = f"sample {sample + 1}" if len(group) > 1 else "rationale"
            if isinstance(failure, str):
                yield f"      {name}: could not be read: {failure}"
            elif isinstance(rationale, str):
                yield f"      {name}: {rationale}"
