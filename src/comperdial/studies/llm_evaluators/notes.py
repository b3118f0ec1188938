"""Notes under the study's tables: what an evaluator is, what was not scored and why, what a scale does to a drop."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from comperdial.core.names import Output
from comperdial.studies.llm_evaluators.common import LEVELS, called, in_order

Bounds = Mapping[Output, tuple[float, float]]
Needs = Mapping[str, Sequence[str]]
_IN_WORDS = {"histories": "text before the response"}


def has_part(signature: object, part: str) -> bool:
    """Say whether a signature has a part, as ``service:rules``; its first part is the metric's kind."""
    return part in str(signature).split("|")


def is_kind(signature: object, kind: str) -> bool:
    """Say whether a signature is of a kind of metric."""
    return str(signature).partition("|")[0] == kind


def labels_of(frame: pd.DataFrame, chosen: Iterable[bool], labels: Mapping[str, str]) -> list[str]:
    """Return what the outputs of chosen rows are called, in the order of ``labels``."""
    rows = frame[pd.Series(list(chosen), index=frame.index, dtype=bool)]
    names = zip(rows["metric"].astype(str), rows["output"].astype(str), strict=True)
    return in_order([called(*name, labels) for name in dict.fromkeys(names)], labels)


def evaluator_notes(frame: pd.DataFrame, labels: Mapping[str, str]) -> list[str]:
    """Say what has to be known of some evaluators: programs that are asked as judges are, samples, and distinct-2.

    Parameters
    ----------
    frame
        The rows shown: columns metric, output and signature.
    labels
        What a metric is called.
    """
    notes = [
        f"{name}: it counts words by fixed rules and is no language model; its numbers say nothing on language models"
        for name in labels_of(frame, (has_part(one, "service:rules") for one in frame["signature"]), labels)
    ]
    parts = dict.fromkeys(part for one in frame["signature"] for part in str(one).split("|"))
    for part in (part for part in parts if part.startswith("items:")):
        names = labels_of(frame, (has_part(one, part) for one in frame["signature"]), labels)
        notes.append(
            f"{', '.join(names)}: asked about {part.removeprefix('items:')} responses or dialogues of a set (all where there "
            "are fewer), drawn by the hash of their names"
        )
    pairs = (
        is_kind(signature, "distinct") and has_part(signature, "over:words") and output == "distinct-2"
        for signature, output in zip(frame["signature"], frame["output"], strict=True)
    )
    return notes + [
        f"{name}: different pairs of neighbouring words over the number of words: n different words have (n - 1) / n, "
        "so that it is partly a measure of length"
        for name in labels_of(frame, pairs, labels)
    ]


def not_asked_notes(not_asked: Sequence[str]) -> list[str]:
    """Return a note for each thing that nobody was asked."""
    return [f"Not asked: {one}" for one in not_asked]


def lacking_notes(
    frame: pd.DataFrame,
    outputs: Sequence[Output],
    labels: Mapping[str, str],
    *,
    needs: Needs,
    where: str = "",
) -> list[str]:
    """Name the evaluators among ``outputs`` that have no row at a level of a frame, and what they need.

    Parameters
    ----------
    frame
        The rows shown: columns level, metric and output.
    outputs
        (metric, output) of what was scored.
    needs
        What a metric needs of a text, as ``{"f1": ["references"]}``; may be empty.
    where
        The data set, if the note is of one.
    """
    found: dict[str, list[str]] = {}
    for level, title in LEVELS.items():
        there = labels_of(frame, frame["level"] == level, labels)
        lacking = [name for name in outputs if called(*name, labels) not in there]
        if not there or not lacking:
            continue
        parts = [
            f"{', '.join(in_order([called(*name, labels) for name in names], labels))}{why}"
            for why, names in _by_need(lacking, needs).items()
        ]
        found.setdefault("; ".join(parts), []).append(title)
    return [
        (f"{where}: " if where else "")
        + f"{' and '.join(levels).capitalize()}, no row, as the texts lack what is needed: {parts}"
        for parts, levels in found.items()
    ]


def _by_need(names: Sequence[Output], needs: Needs) -> dict[str, list[Output]]:
    found: dict[str, list[Output]] = {}
    for name in names:
        wanted = wanted_by([name[0]], needs)
        found.setdefault(f" ({wanted})" if wanted else "", []).append(name)
    return found


def wanted_by(metrics: Iterable[object], needs: Needs) -> str:
    """Return what metrics need of a text, in words; nothing where it is not known."""
    wanted = sorted({_IN_WORDS.get(one, one) for metric in metrics for one in needs.get(str(metric), ())})
    return " and ".join(wanted)


def coverage_notes(frame: pd.DataFrame, *, needs: Needs, labels: Mapping[str, str]) -> list[str]:
    """Say what has scores of a part of the pairs only: one note for all that have the same share.

    Parameters
    ----------
    frame
        Columns label, metric and coverage.
    needs
        What a metric needs of a text; may be empty.
    """
    shares: dict[tuple[int, str], list[str]] = {}
    partial = frame[frame["coverage"] < 1]
    for label, rows in partial.groupby("label", sort=True):
        # Rounded down: "or more" has to be true.
        share = math.floor(float(rows["coverage"].min()) * 100 + 1e-9)
        shares.setdefault((share, wanted_by(rows["metric"].unique(), needs)), []).append(str(label))
    return [
        f"Scores of {share}% or more of the pairs of each perturbation: {', '.join(in_order(names, labels))}; the "
        + (f"others have no {wanted}" if wanted else "others lack what these need, as references or a text before")
        for (share, wanted), names in shares.items()
    ]


def bounds_notes(frame: pd.DataFrame, bounds: Bounds, labels: Mapping[str, str]) -> list[str]:
    """Say from which bounds scores were brought to 0 to 1, and what that means for a drop above δ.

    Parameters
    ----------
    frame
        Table ``ratios`` as shown.
    bounds
        The lowest and the highest score of each (metric, output); empty: not known here.
    """
    notes = [
        "Ratios above δ are not comparable between evaluators: a drop is taken after scores were brought to 0 to 1 "
        "from their lowest and highest possible value, and evaluators that use a small part of that range seldom drop "
        "by δ. Ratios for any drop do not depend on it"
    ]
    if not bounds:
        return notes
    groups: dict[tuple[float, float], list[str]] = {}
    for metric, output in dict.fromkeys(zip(frame["metric"].astype(str), frame["output"].astype(str), strict=True)):
        if ends := bounds.get((metric, output)):
            groups.setdefault(ends, []).append(called(metric, output, labels))
    parts = [f"{low:g} to {high:g}: {', '.join(in_order(groups[low, high], labels))}" for low, high in sorted(groups)]
    return [*notes, f"Lowest and highest possible score. {'; '.join(parts)}"] if parts else notes
