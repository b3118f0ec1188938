"""One dialogue of one system with its judgements: utterances, turn scores, dialogue scores, rationales."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from comperdial import schema
from comperdial.core.errors import UnknownNameError


def show(folder: Path, scores: Sequence[Path], judgements: Sequence[Path], *, system: str, dialogue: str) -> str:
    """Return the dialogue with every judge's turn scores, dialogue scores and rationales, as text.

    Parameters
    ----------
    folder
        The data set's tables.
    scores, judgements
        Tables of judges' metrics.

    Raises
    ------
    UnknownNameError
        When there is no such dialogue, or the system did not answer in it.
    """
    contexts = schema.read(folder / "contexts.parquet", "contexts")
    responses = schema.read(folder / "responses.parquet", "responses")
    if dialogue not in set(contexts["dialogue_id"]):
        raise UnknownNameError("dialogue", dialogue, contexts["dialogue_id"].unique(), where=str(folder))
    turns = contexts[contexts["dialogue_id"] == dialogue].sort_values("turn")
    answered = responses[responses["context_id"].isin(turns["context_id"])]
    if system not in set(answered["system_id"]):
        raise UnknownNameError("system", system, answered["system_id"].unique(), where=f"{folder}, {dialogue}")
    texts = answered[answered["system_id"] == system].set_index("context_id")["response"]
    values, made = (
        pd.concat([schema.empty(name), *(schema.read(path, name) for path in paths)], ignore_index=True)
        for name, paths in (("scores", scores), ("judgements", judgements))
    )
    values, made = values[values["system_id"] == system], made[made["system_id"] == system]
    lines = [f"{dialogue} by {system}", ""]
    if facts := list(turns["facts"].iloc[0]):
        lines += ["Persona and facts:", *(f"  - {fact}" for fact in facts), ""]
    shown = 0
    for context, history in zip(turns["context_id"], turns["history"], strict=True):
        # Each turn's history holds the ones before.
        lines += [f"{utterance['speaker']}: {utterance['text']}" for utterance in list(history)[shown:]]
        shown = len(history) + 1
        lines.append(f">> {texts[context]}" if context in texts.index else ">> (no response)")
        lines += [*_judged(values, made, "turn", context), ""]
    lines += ["The dialogue as a whole:", *(list(_judged(values, made, "dialogue", dialogue)) or ["   not judged"])]
    return "\n".join(lines)


def _judged(scores: pd.DataFrame, judgements: pd.DataFrame, level: str, item: str) -> Iterator[str]:
    made = judgements[(judgements["level"] == level) & (judgements["item_id"] == item)]
    for metric, group in made.groupby("metric", sort=True):
        of = scores[(scores["level"] == level) & (scores["item_id"] == item) & (scores["metric"] == metric)]
        ratings = ", ".join(f"{output} {value:.2f}" for output, value in zip(of["output"], of["value"], strict=True))
        yield f"   {metric}: {ratings or 'no score'}"
        for sample, failure, rationale in group.sort_values("sample")[["sample", "failure", "rationale"]].to_numpy():
            name = f"sample {sample + 1}" if len(group) > 1 else "rationale"
            if isinstance(failure, str):
                yield f"      {name}: could not be read: {failure}"
            elif isinstance(rationale, str):
                yield f"      {name}: {rationale}"
