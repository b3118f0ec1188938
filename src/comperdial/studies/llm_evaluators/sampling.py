"""What intervals resample in each data set, and rated responses that are a mark and no text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from comperdial import schema
from comperdial.evaluation.dimensions import RatedSet

# What ConTurE's files have where the chatbot said nothing.
EMPTY = "<EMPTY>"
_WHY = {
    "systems and dialogues": "at least four systems, with dialogues or contexts in common",
    "systems": "at least four systems, each dialogue of one of them",
    "dialogues": "fewer than four systems, or it is not known which system a dialogue is of",
}


def resampled(rated: RatedSet, source: str) -> str:
    """Say what the intervals of a data set resample: systems and dialogues, systems, or dialogues.

    It is asked of :meth:`comperdial.evaluation.dimensions.RatedSet.samples` itself, with a score of every rated item.
    """
    unit = ["dataset", "level", "item_id", "system_id"]
    items = rated.ratings.loc[rated.ratings["source"] == source, unit].drop_duplicates()
    scores = items.assign(metric="any", output="any", value=0.0, cut=0, signature="any|v:1")
    scores = schema.validate(scores[list(schema.table("scores").columns)].astype({"value": "float32"}), "scores")
    designs = [sample.design for sample in rated.samples(scores, source)]
    systems = any(one.systems.max() > 0 for one in designs)
    dialogues = any(one.dialogues.max() > 0 for one in designs)
    return "systems and dialogues" if systems and dialogues else "systems" if systems else "dialogues"


def marked(folder: Path, rated: RatedSet) -> tuple[int, int]:
    """Count the rated responses that are the mark of an empty one, and all rated responses; 0 of dialogues."""
    if rated.level != "turn":
        return 0, 0
    key = ["context_id", "system_id"]
    responses = schema.read(folder / "responses.parquet", "responses")
    rated_items = rated.ratings.rename(columns={"item_id": "context_id"})[key].drop_duplicates()
    texts = rated_items.merge(responses[[*key, "response"]], on=key)["response"]
    return int((texts.str.strip() == EMPTY).sum()), len(texts)


def sampling_notes(folders: Sequence[Path], titles: Mapping[str, str]) -> list[str]:
    """Return notes on what was resampled, and on rated responses that are a mark, of any number of data sets."""
    by_design: dict[str, list[str]] = {name: [] for name in _WHY}
    marks = []
    for folder in folders:
        rated = RatedSet.read(folder)
        title = titles.get(rated.dataset, rated.dataset)
        designs = {source: resampled(rated, source) for source in rated.sources}
        for design in dict.fromkeys(designs.values()):
            by_design[design].append(title)
        found, total = marked(folder, rated)
        if found:
            marks.append(
                f"{title}: {found} of the {total:,} rated responses are the mark {EMPTY}, where the chatbot said "
                "nothing; they were rated and are scored as that text, and what counts words depends on them"
            )
    parts = [f"{name}, in {', '.join(sets)} ({_WHY[name]})" for name, sets in by_design.items() if sets]
    return [f"An interval resamples {'; '.join(parts)}", *marks] if parts else marks
