"""Every system of a data set side by side: how it was rated, how the metrics score it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter

import pandas as pd

from comperdial.core.errors import SchemaError
from comperdial.core.names import RATED_LEVELS, output_name
from comperdial.report.captions import with_suffix
from comperdial.report.document import Column, Document, listed, number, value_of
from comperdial.report.labels import label, metrics_not_run


def systems_frame(
    systems: pd.DataFrame,
    responses: pd.DataFrame,
    scores: pd.DataFrame,
    ratings: pd.DataFrame,
    *,
    outputs: Sequence[str],
    dimension: str,
) -> pd.DataFrame:
    """Average ratings and scores over a system's turns and dialogues.

    Parameters
    ----------
    systems, responses, scores, ratings
        The tables of one data set; the ratings of one source.
    outputs
        Which scores, as ``metric:output``; one without any is left out and named in ``attrs["unscored"]``.
    dimension
        Which ratings.

    Returns
    -------
    DataFrame
        One row a system, references left out: kind, track, description, responses, ratings of turns and
        dialogues, then one column an output. The best rated first; without ratings, by name. Its
        ``attrs`` say for each output how many responses have a score and of how many of these the input was cut
        (``partial``).
    """
    frame = systems[systems["kind"] != "reference"].set_index("system_id")[["kind", "track", "description"]]
    of_dimension = ratings[ratings["dimension"] == dimension]
    # Items first, so that one with more raters does not weigh more.
    rated = (
        of_dimension.groupby(["level", "system_id", "item_id"])["rating"].mean().groupby(["level", "system_id"]).mean()
    )
    for level in RATED_LEVELS:
        frame[f"{level}_rating"] = rated[rated.index.get_level_values(0) == level].droplevel(0).reindex(frame.index)
    of_turns = scores[scores["level"] == "turn"]
    frame.insert(3, "responses", responses.groupby("system_id").size().reindex(frame.index).fillna(0).astype(int))
    for name in outputs:
        metric, output = output_name(name, where="tables.systems")
        chosen = of_turns[(of_turns["metric"] == metric) & (of_turns["output"] == output)]
        if len(chosen):
            frame.attrs.setdefault("partial", {})[name] = (len(chosen), int((chosen["cut"] > 0).sum()))
            frame[name] = chosen.groupby("system_id")["value"].mean().astype("float64").reindex(frame.index)
        else:
            frame.attrs.setdefault("unscored", []).append(name)
    if frame.empty:
        raise SchemaError("no systems", expected="at least one that is no reference")
    order = ["turn_rating", "dialogue_rating"]
    return frame.sort_index().sort_values(order, ascending=False, kind="stable").reset_index()


def systems_document(
    frame: pd.DataFrame,
    title: str,
    *,
    failed: Mapping[str, str],
    not_run: Mapping[str, str],
    labels: Mapping[str, str] | None = None,
    suffix: str = "",
) -> Document:
    """Render the frame of :func:`systems_frame`.

    ``failed`` names submissions that were left out and why, ``not_run`` metrics that could not run and why; ``labels``
    are what scores are called (:func:`comperdial.report.labels.label`).
    """
    labels = labels or {}
    fixed = ["system_id", "kind", "track", "description", "responses", "turn_rating", "dialogue_rating"]
    outputs = [column for column in frame.columns if column not in fixed]
    columns = [
        Column("", "System", itemgetter("system_id")),
        Column("", "Kind", itemgetter("kind")),
        Column("", "Track", lambda row: (row["track"] or "–") if isinstance(row["track"], str) else "–"),
        Column("", "Responses", lambda row: str(row["responses"])),
        Column("Mean rating", "of turns", lambda row: _rating(row["turn_rating"])),
        Column("Mean rating", "of dialogues", lambda row: _rating(row["dialogue_rating"])),
        *(Column("Mean score", label(output_name(name), labels), value_of(name)) for name in outputs),
    ]
    return Document(
        title=f"Systems of {title}",
        caption=with_suffix(
            f"Every system of {title}: its mean rating and its mean scores over all turns that have one. "
            "The best rated stand first. Scores do not compare between columns.",
            suffix,
        ),
        sections=[listed(f"Systems of {title}", frame, columns)],
        tidy=frame,
        notes=[
            "The CSV file has a description of each system",
            *_partial_notes(frame, not_run, labels),
            *(f"{system} has no valid submission and was left out: {why}" for system, why in sorted(failed.items())),
            *metrics_not_run(not_run, labels),
        ],
    )


def _rating(value: float) -> str:
    return number(value) if pd.notna(value) else "not rated"


def _partial_notes(frame: pd.DataFrame, not_run: Mapping[str, str], labels: Mapping[str, str]) -> list[str]:
    everything = frame["responses"].sum()
    unscored = [output_name(name) for name in frame.attrs.get("unscored", [])]
    notes = [f"{label(name, labels)}: no response has a score" for name in unscored if name[0] not in not_run]
    for output, (scored, cut) in frame.attrs.get("partial", {}).items():
        name = label(output_name(output), labels)
        if scored < everything:
            notes.append(f"{name}: {scored} of {everything} responses have a score")
        if cut:
            notes.append(f"{name}: the input of {cut} responses did not fit the model and was cut")
    return notes
