"""One dialogue of one system as judges saw it: utterances, turn scores, dialogue score, rationales."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial import schema
from comperdial.core.errors import UnknownNameError

_WIDTH = 100


def show(folder: str | Path, scores: Sequence[Path], judgements: Sequence[Path], *, system: str, dialogue: str) -> str:
    """Return the dialogue with every judge's turn scores, dialogue scores and rationales, as text.

    Parameters
    ----------
    folder
        The data set's tables.
    scores, judgements
        Tables of judges' metrics.
    system, dialogue
        Which.

    Raises
    ------
    UnknownNameError
        When there is no such dialogue, or the system did not answer in it.
    """
    folder = Path(folder)
    contexts = schema.read(folder / "contexts.parquet", "contexts")
    responses = schema.read(folder / "responses.parquet", "responses")
    if dialogue not in set(contexts["dialogue_id"]):
        raise UnknownNameError("dialogue", dialogue, contexts["dialogue_id"].unique(), where=str(folder))
    turns = contexts[contexts["dialogue_id"] == dialogue].sort_values("turn")
    answered = responses[responses["context_id"].isin(turns["context_id"])]
    if system not in set(answered["system_id"]):
        raise UnknownNameError("system", system, answered["system_id"].unique(), where=f"{folder}, {dialogue}")
    said = answered[answered["system_id"] == system].set_index("context_id")["response"]
    found = _of(scores, "scores", system)
    made = _of(judgements, "judgements", system)
    lines = [f"{dialogue} by {system}", ""]
    if facts := list(turns["facts"].iloc[0]):
        lines += ["Persona and facts:", *(f"  - {fact}" for fact in facts), ""]
    heard = 0
    for turn in turns.to_dict("records"):
        history = list(turn["history"])
        # Each turn's history holds the ones before: what was heard since is what is new.
        lines += [f"{u['speaker']}: {u['text']}" for u in history[heard:]]
        heard = len(history) + 1
        context = turn["context_id"]
        lines.append(f">> {said[context]}" if context in said.index else ">> (no response)")
        lines += [*_judged(found, made, "turn", context), ""]
    lines += ["The dialogue as a whole:", *(_judged(found, made, "dialogue", dialogue) or ["   not judged"])]
    return "\n".join(lines)


def _of(paths: Sequence[Path], name: str, system: str) -> pd.DataFrame:
    frames = [schema.read(path, name) for path in paths]
    content = pd.concat(frames, ignore_index=True) if frames else schema.empty(name)
    return content[content["system_id"] == system]


def _judged(scores: pd.DataFrame, judgements: pd.DataFrame, level: str, item: str) -> list[str]:
    of_item = scores[(scores["level"] == level) & (scores["item_id"] == item)]
    made = judgements[(judgements["level"] == level) & (judgements["item_id"] == item)]
    lines: list[str] = []
    for metric, group in made.groupby("metric", sort=True):
        values = of_item[of_item["metric"] == metric]
        ratings = ", ".join(f"{o} {v:.2f}" for o, v in zip(values["output"], values["value"], strict=True))
        lines.append(f"   {metric}: {ratings or 'no score'}")
        lines += _reasons(group.sort_values("sample").to_dict("records"))
    return lines


def _reasons(records: list[dict[Any, Any]]) -> Iterator[str]:
    for record in records:
        number = f"sample {record['sample'] + 1}" if len(records) > 1 else "rationale"
        if isinstance(record["failure"], str):
            yield f"      {number}: could not be read: {record['failure']}"
        elif isinstance(record["rationale"], str):
            yield f"      {number}: {record['rationale']}"
