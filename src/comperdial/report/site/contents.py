"""Everything that one page carries, put together from a data set's tables and results."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial.report.site import dialogues, statistics
from comperdial.report.site.packing import Packer
from comperdial.report.systems import systems_frame
from comperdial.report.tables import why_no_scores

_FIXED = ["system_id", "kind", "track", "description", "responses", "turn_rating", "dialogue_rating"]


@dataclass(frozen=True)
class Tables:
    """A data set's tables and results; None where there are none."""

    systems: pd.DataFrame
    contexts: pd.DataFrame
    responses: pd.DataFrame
    scores: pd.DataFrame
    correlations: pd.DataFrame | None = None
    ceilings: pd.DataFrame | None = None
    comparisons: pd.DataFrame | None = None
    personas: pd.DataFrame | None = None
    turn_ratings: pd.DataFrame | None = None
    dialogue_ratings: pd.DataFrame | None = None
    judgements: Sequence[pd.DataFrame] = ()


@dataclass(frozen=True)
class Settings:
    """What a page is told: its title, whose ratings are meant, which scores to show, what could not run.

    ``main`` are the scores of the table of systems and ``outputs`` those of the browser, as ``metric:output``; None
    stands for all. ``figures`` are paths as the page links to them, ``labels`` names of judges' metrics, ``note`` what
    is to be said of the data (for example that they are simulated).
    """

    title: str
    target: str = "Overall"
    source: str = "human"
    main: Sequence[str] = ()
    outputs: Sequence[str] | None = None
    not_run: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    figures: Sequence[str] = ()
    alpha: Path | None = None
    note: str = ""


def pack(tables: Tables, settings: Settings) -> str:
    """Return the page's data as one text, which :class:`comperdial.report.site.packing.Unpacked` reads."""
    packer = Packer()
    names = tables.systems.sort_values("system_id")
    content: dict[str, Any] = {
        "dataset": str(names["dataset"].iloc[0]),
        "title": settings.title,
        "note": settings.note,
        "target": settings.target,
        "source": settings.source,
        "counts": _counts(tables, settings),
        "alpha": statistics.alphas(settings.alpha),
        "not_run": dict(sorted({**settings.not_run, **_without_scores(tables)}.items())),
        "labels": dict(sorted(settings.labels.items())),
        "figures": [{"src": path, "name": Path(path).stem} for path in settings.figures],
        "systems": _systems(packer, tables, settings),
        "browser": _browser(packer, tables, settings),
    }
    if tables.correlations is not None and len(tables.correlations):
        content |= {
            "correlations": statistics.correlations(packer, tables.correlations[tables.correlations["coverage"] > 0]),
            "ceilings": statistics.ceilings(packer, tables.ceilings),
            "comparisons": statistics.comparisons(packer, tables.comparisons),
            "signatures": statistics.signatures(tables.correlations),
        }
    return packer.text(content)


def _without_scores(tables: Tables) -> dict[str, str]:
    """Return the outputs of which no response has a score, and why."""
    if tables.correlations is None:
        return {}
    outputs = tables.correlations.groupby(["metric", "output"], sort=True)
    reasons = {f"{metric} {output}": why_no_scores(rows) for (metric, output), rows in outputs}
    return {name: why for name, why in reasons.items() if why is not None}


def relative(path: Path, page: Path) -> str:
    """Return a path as a page links to it, from the folder that the page lies in."""
    return Path(os.path.relpath(path, page.parent)).as_posix()


def _counts(tables: Tables, settings: Settings) -> dict[str, Any]:
    found: dict[str, Any] = {
        "systems": {str(kind): int(n) for kind, n in tables.systems["kind"].value_counts().sort_index().items()},
        "dialogues": int(tables.contexts["dialogue_id"].nunique()),
        "contexts": len(tables.contexts),
        "responses": len(tables.responses),
        "ratings": [],
    }
    for level, frame in (("turn", tables.turn_ratings), ("dialogue", tables.dialogue_ratings)):
        if frame is not None:
            chosen = frame[frame["source"] == settings.source]
            for dimension, rows in chosen.groupby("dimension", sort=True):
                found["ratings"].append(
                    {
                        "level": level,
                        "dimension": str(dimension),
                        "raters": int(rows["annotator_id"].nunique()),
                        "ratings": len(rows),
                        "low": float(rows["scale_min"].min()),
                        "high": float(rows["scale_max"].max()),
                    }
                )
    return found


def _systems(packer: Packer, tables: Tables, settings: Settings) -> dict[str, Any]:
    frame = systems_frame(
        tables.systems,
        tables.scores,
        tables.turn_ratings,
        tables.dialogue_ratings,
        outputs=settings.main,
        dimension=settings.target,
        source=settings.source,
    )
    shown = {name: name.replace(":", " ", 1) for name in settings.main if name in frame}
    return statistics.systems(packer, frame, _FIXED, shown)


def _browser(packer: Packer, tables: Tables, settings: Settings) -> dict[str, Any]:
    found, personas = dialogues.contexts(tables.contexts, tables.personas)
    names = sorted(tables.systems["system_id"].astype("str"))
    kinds = dict(zip(tables.systems["system_id"], tables.systems["kind"], strict=True))
    turns = [(context["id"], name) for context in found for name in names]
    by_dialogue = [(name, system) for name in dict.fromkeys(c["dialogue"] for c in found) for system in names]
    said = tables.responses.set_index(["context_id", "system_id"])["response"]
    said = said.reindex(pd.MultiIndex.from_tuples(turns, names=said.index.names))
    responses = [text if isinstance(text, str) else None for text in said]
    shown = dialogues.chosen_outputs(tables.scores, settings.outputs)
    scores = dialogues.of_level(tables.scores, shown, "turn", turns)
    judged, cut = dialogues.judgements(tables.judgements, "turn", turns)
    columns: dict[Any, Any] = {"response": responses, **scores}
    columns |= {
        (place, name): entry[name]
        for place, entry in enumerate(judged)
        for name in ("rationale", "failure", "value")
        if name in entry
    }
    units = dialogues.Units(turns, columns)
    judged_dialogues, cut_dialogues = dialogues.judgements(tables.judgements, "dialogue", by_dialogue)
    every = range(len(by_dialogue))
    return {
        "systems": names,
        "kinds": [str(kinds[name]) for name in names],
        "contexts": found,
        "personas": personas,
        "starts": units.starts,
        "unit": packer.numbers(units.of, 0),
        "response": packer.texts([responses[row] for row in units.rows]),
        "scores": dialogues.pack_scores(packer, scores, units.rows),
        "judgements": dialogues.pack_judgements(packer, judged, units.rows.tolist()),
        "ratings": dialogues.ratings(packer, tables.turn_ratings, turns, source=settings.source),
        "dialogue_scores": dialogues.pack_scores(
            packer, dialogues.of_level(tables.scores, shown, "dialogue", by_dialogue), slice(None)
        ),
        "dialogue_judgements": dialogues.pack_judgements(packer, judged_dialogues, every),
        "dialogue_ratings": dialogues.ratings(packer, tables.dialogue_ratings, by_dialogue, source=settings.source),
        "all": settings.outputs is None,
        "cut": min((most for most in (cut, cut_dialogues) if most is not None), default=None),
    }
