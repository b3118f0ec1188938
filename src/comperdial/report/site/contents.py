"""Everything that one page carries, put together from a data set's tables and results."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial.core.errors import SchemaError
from comperdial.core.files import read_table
from comperdial.core.names import RATED_LEVELS
from comperdial.report.correlations import is_halved, why_no_scores
from comperdial.report.dataset import systems_frame
from comperdial.report.render import number
from comperdial.report.site.packing import Packer, Spec, decimals_of, table
from comperdial.schema.dimensions import OVERALL
from comperdial.stats.correlation import ALPHA, is_starred

_CELL = ["level", "against", "target", "grouping", "coefficient"]
_ALPHA_COLUMNS = ("level", "dimension", "annotator_id", "statistic", "value", "low", "high")
# Characters of judges' texts that a page carries at most, and what each is cut to when all of them are more.
MOST_CHARACTERS = 1_500_000
_CUTS = (400, 200, 100, 0)
# Samples of a judgement whose texts are shown.
_SAMPLES = 3

Key = list[tuple[str, str]]


@dataclass(frozen=True)
class Tables:
    """A data set's tables, with the ratings of one source, and its results; None where there are none."""

    systems: pd.DataFrame
    contexts: pd.DataFrame
    responses: pd.DataFrame
    scores: pd.DataFrame
    ratings: pd.DataFrame
    correlations: pd.DataFrame | None = None
    ceilings: pd.DataFrame | None = None
    comparisons: pd.DataFrame | None = None
    personas: pd.DataFrame | None = None
    judgements: Sequence[pd.DataFrame] = ()


@dataclass(frozen=True)
class Settings:
    """What a page is told: its title, whose ratings are meant, which scores to show, what could not run.

    ``main`` are the scores of the table of systems and ``outputs`` those of the browser, as ``metric:output``; None
    stands for all. ``figures`` are paths as the page links to them, ``labels`` names of metrics and outputs, ``note`` what
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
        "counts": _counts(tables),
        "alpha": alphas(settings.alpha),
        "not_run": dict(sorted({**settings.not_run, **_without_scores(tables)}.items())),
        "labels": dict(sorted(settings.labels.items())),
        "figures": [{"src": path, "name": Path(path).stem} for path in settings.figures],
        "systems": _systems(packer, tables, settings),
        "browser": _browser(packer, tables, settings),
    }
    if tables.correlations is not None and len(tables.correlations):
        content |= {
            "correlations": correlations(packer, tables.correlations[tables.correlations["coverage"] > 0]),
            "ceilings": ceilings(packer, tables.ceilings),
            "comparisons": comparisons(packer, tables.comparisons),
            "signatures": signatures(tables.correlations),
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


def _counts(tables: Tables) -> dict[str, Any]:
    found: dict[str, Any] = {
        "systems": {str(kind): int(n) for kind, n in tables.systems["kind"].value_counts().sort_index().items()},
        "dialogues": int(tables.contexts["dialogue_id"].nunique()),
        "contexts": len(tables.contexts),
        "responses": len(tables.responses),
        "ratings": [],
    }
    for level in RATED_LEVELS:
        chosen = tables.ratings[tables.ratings["level"] == level]
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
        tables.responses,
        tables.scores,
        tables.ratings,
        outputs=settings.main,
        dimension=settings.target,
    )
    numbers = {"responses": 0, "turn_rating": 3, "dialogue_rating": 3}
    columns: dict[str, Any] = {
        name: [value if isinstance(value, str) and value else None for value in frame[name]]
        for name in ("system_id", "kind", "track", "description")
    }
    columns |= {name: frame[name].to_numpy(dtype=np.float64) for name in numbers}
    found = table(packer, columns, numbers)
    scores = [
        {"name": name.replace(":", " ", 1), "of": packer.numbers(frame[name].to_numpy(dtype=np.float64), 3)}
        for name in settings.main
        if name in frame
    ]
    return found | {"scores": scores}


def _browser(packer: Packer, tables: Tables, settings: Settings) -> dict[str, Any]:
    found, personas = contexts(tables.contexts, tables.personas)
    names = sorted(tables.systems["system_id"].astype("str"))
    kinds = dict(zip(tables.systems["system_id"], tables.systems["kind"], strict=True))
    turns = [(context["id"], name) for context in found for name in names]
    by_dialogue = [(name, system) for name in dict.fromkeys(c["dialogue"] for c in found) for system in names]
    said = tables.responses.set_index(["context_id", "system_id"])["response"]
    said = said.reindex(pd.MultiIndex.from_tuples(turns, names=said.index.names))
    responses = [text if isinstance(text, str) else None for text in said]
    shown = chosen_outputs(tables.scores, settings.outputs)
    scores = of_level(tables.scores, shown, "turn", turns)
    judged, cut = judgements(tables.judgements, "turn", turns)
    columns: dict[Any, Any] = {"response": responses, **scores}
    columns |= {
        (place, name): entry[name]
        for place, entry in enumerate(judged)
        for name in ("rationale", "failure", "value")
        if name in entry
    }
    units = Units(turns, columns)
    judged_dialogues, cut_dialogues = judgements(tables.judgements, "dialogue", by_dialogue)
    every = range(len(by_dialogue))
    return {
        "systems": names,
        "kinds": [str(kinds[name]) for name in names],
        "contexts": found,
        "personas": personas,
        "starts": units.starts,
        "unit": packer.numbers(units.of, 0),
        "response": packer.texts([responses[row] for row in units.rows]),
        "scores": pack_scores(packer, scores, units.rows),
        "judgements": pack_judgements(packer, judged, units.rows.tolist()),
        "ratings": ratings(packer, tables.ratings, "turn", turns),
        "dialogue_scores": pack_scores(packer, of_level(tables.scores, shown, "dialogue", by_dialogue), slice(None)),
        "dialogue_judgements": pack_judgements(packer, judged_dialogues, every),
        "dialogue_ratings": ratings(packer, tables.ratings, "dialogue", by_dialogue),
        "all": settings.outputs is None,
        "cut": min((most for most in (cut, cut_dialogues) if most is not None), default=None),
    }


def correlations(packer: Packer, frame: pd.DataFrame) -> Spec:
    """Pack table ``correlations``: values with three decimals, and which of them are marked."""
    rows = frame.sort_values([*_CELL, "metric", "output"])
    numbers = ["value", "low", "high", "loso_value", "rank", "n", "coverage", "cut"]
    rows = rows if "p_exact" in rows else rows.assign(p_exact=float("nan"))
    columns: dict[str, Any] = {name: rows[name].astype("str").tolist() for name in [*_CELL, "metric", "output"]}
    columns |= {name: rows[name].astype("float64").to_numpy() for name in [*numbers, "p_exact"]}
    # A p that is shown rounded could not say on which side of the limit it lies.
    starred = [float(is_starred(p)) for p in rows["p"].astype("float64")]
    halved = [float(bool(is_halved(record))) for record in rows.to_dict("records")]
    columns |= {"loso_system": rows["loso_system"].fillna("").tolist(), "starred": starred, "loso_halved": halved}
    digits = {"value": 3, "low": 3, "high": 3, "loso_value": 3, "rank": 0, "n": 0, "coverage": 3, "cut": 0}
    return table(packer, columns, digits | {"starred": 0, "loso_halved": 0, "p_exact": 3})


def ceilings(packer: Packer, frame: pd.DataFrame | None) -> Spec | None:
    """Pack the mean over the annotators of table ``ceilings``, and how many there are, for each cell of a table."""
    if frame is None or frame.empty:
        return None
    means = frame.groupby(_CELL)["value"].agg(["mean", "count"]).reset_index()
    columns: dict[str, Any] = {name: means[name].astype("str").tolist() for name in _CELL}
    values = {"value": means["mean"].to_numpy(), "annotators": means["count"].to_numpy()}
    return table(packer, columns | values, {"value": 3, "annotators": 0})


def comparisons(packer: Packer, frame: pd.DataFrame | None) -> Spec | None:
    """Pack table ``comparisons``; ``told`` is 2 where the corrected p is below 0.05, 1 where only the plain one is."""
    if frame is None or frame.empty:
        return None
    names = ["level", "against", "target", "coefficient", "metric_a", "output_a", "metric_b", "output_b"]
    rows = frame[frame["grouping"] == "pooled"].sort_values(names)
    columns: dict[str, Any] = {name: rows[name].astype("str").tolist() for name in [*names, "test"]}
    columns |= {name: rows[name].to_numpy(dtype=np.float64) for name in ("difference", "p", "p_adjusted", "n")}
    told = (rows["p"] < ALPHA).astype(int) + ((rows["p"] < ALPHA) & (rows["p_adjusted"] < ALPHA)).astype(int)
    columns["told"] = told.where(rows["p"].notna()).to_numpy(dtype=np.float64)
    return table(packer, columns, {"difference": 3, "p": 4, "p_adjusted": 4, "n": 0, "told": 0})


def signatures(frame: pd.DataFrame) -> dict[str, str]:
    """Return how each metric was made, by its name."""
    return dict(sorted(zip(frame["metric"].astype("str"), frame["signature"].astype("str"), strict=True)))


def alphas(path: Path | None) -> list[dict[str, Any]]:
    """Return Krippendorff's alpha of each level and dimension from the CSV file of its table."""
    if path is None:
        return []
    frame = read_table(path)
    if list(frame.columns) == ["note"]:
        # There was nothing to measure.
        return []
    if missing := [column for column in _ALPHA_COLUMNS if column not in frame]:
        raise SchemaError(f"no column {', '.join(missing)}", where=str(path), expected=", ".join(_ALPHA_COLUMNS))
    chosen = frame[(frame["annotator_id"] == "") & frame["statistic"].str.startswith("alpha_")]
    return [
        {
            "level": row["level"],
            "dimension": row["dimension"],
            "kind": str(row["statistic"]).removeprefix("alpha_"),
            **{name: number(float(row[name]) if row[name] else None) for name in ("value", "low", "high")},
        }
        for row in chosen.to_dict("records")
    ]


def contexts(frame: pd.DataFrame, personas: pd.DataFrame | None) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the contexts, in the order of dialogues and turns, and the personas by dialogue and speaker."""
    rows = frame.sort_values(["dialogue_id", "turn", "context_id"])
    found = [
        {
            "id": row["context_id"],
            "dialogue": row["dialogue_id"],
            "turn": int(row["turn"]),
            "history": [[said["speaker"], said["text"]] for said in row["history"]],
            "references": list(row["references"]),
            "facts": list(row["facts"]),
        }
        for row in rows.to_dict("records")
    ]
    who: dict[str, Any] = {}
    if personas is not None:
        for row in personas.sort_values(["dialogue_id", "speaker"]).to_dict("records"):
            who.setdefault(row["dialogue_id"], {})[row["speaker"]] = list(row["sentences"])
    return found, who


def ratings(packer: Packer, frame: pd.DataFrame, level: str, keys: Key) -> list[Spec]:
    """Pack every rating of a level: for each dimension one column an annotator, in the order of ``keys``.

    ``keys`` are (item, system); the overall rating comes first.
    """
    chosen = frame[frame["level"] == level]
    found = []
    for dimension in sorted(chosen["dimension"].unique(), key=lambda name: (name != OVERALL, name)):
        of_it = chosen[chosen["dimension"] == dimension]
        wide = _wide(of_it, ["item_id", "system_id"], "annotator_id", "rating", keys)
        found.append(
            {
                "dimension": dimension,
                "low": float(of_it["scale_min"].min()),
                "high": float(of_it["scale_max"].max()),
                "annotators": [{"id": str(name), "of": packer.numbers(wide[name])} for name in wide.columns],
            }
        )
    return found


def chosen_outputs(scores: pd.DataFrame, outputs: Sequence[str] | None) -> list[tuple[str, str, str]]:
    """Return (level, metric, output) of the scores to show, sorted; ``outputs`` are ``metric:output``, None for all."""
    columns = scores[["level", "metric", "output"]].drop_duplicates().astype("str")
    known = sorted(columns.itertuples(index=False, name=None))
    if outputs is None:
        return known
    return [(level, metric, output) for level, metric, output in known if f"{metric}:{output}" in outputs]


def of_level(
    scores: pd.DataFrame, shown: Sequence[tuple[str, str, str]], level: str, keys: Key
) -> dict[tuple[str, str], npt.NDArray[np.float64]]:
    """Return the scores of a level by (metric, output), each in the order of ``keys``, NaN where there is none."""
    chosen = scores[scores["level"] == level]
    groups = chosen.groupby(["metric", "output"], observed=True)
    index = pd.MultiIndex.from_tuples(keys, names=["item_id", "system_id"])
    found = {}
    for of_it, metric, output in shown:
        if of_it == level:
            values = groups.get_group((metric, output)).set_index(["item_id", "system_id"])["value"]
            found[metric, output] = values.reindex(index).to_numpy(dtype=np.float64)
    return found


def judgements(frames: Sequence[pd.DataFrame], level: str, keys: Key) -> tuple[list[dict[str, Any]], int | None]:
    """Return what judges wrote of a level: for each output and sample its value, its rationale, why it failed.

    Each is a list in the order of ``keys``. Values are given where there are several samples, since the score says it
    else. The second thing returned is what texts were cut to, None if they were not.
    """
    index = {key: place for place, key in enumerate(keys)}
    found: list[dict[str, Any]] = []
    for frame in frames:
        chosen = frame[frame["level"] == level]
        for (metric, output), rated in chosen.groupby(["metric", "output"], sort=True, observed=True):
            several = rated["sample"].nunique() > 1
            for sample, rows in rated.groupby("sample", sort=True):
                entry: dict[str, Any] = {"metric": str(metric), "output": str(output), "sample": int(str(sample))}
                places = [index.get(key) for key in zip(rows["item_id"], rows["system_id"], strict=True)]
                for name in ("rationale", "failure"):
                    if rows[name].notna().any() and entry["sample"] < _SAMPLES:
                        entry[name] = _put(places, rows[name], None, len(keys))
                if several:
                    entry["value"] = _put(places, rows["value"].astype("float64"), float("nan"), len(keys))
                found.append(entry)
    return found, _cut(found)


def _put(places: Sequence[int | None], values: pd.Series, missing: Any, length: int) -> list[Any]:  # noqa: ANN401
    out = [missing] * length
    for place, value in zip(places, values, strict=True):
        if place is not None and pd.notna(value):
            out[place] = value
    return out


def _cut(entries: list[dict[str, Any]]) -> int | None:
    """Cut the rationales so that all of them together are short enough, and say to what."""
    texts = {text for entry in entries for text in entry.get("rationale", ()) if text}
    if sum(map(len, texts)) <= MOST_CHARACTERS:
        return None
    most = next(most for most in _CUTS if sum(min(len(text), most) for text in texts) <= MOST_CHARACTERS)
    for entry in entries:
        if "rationale" in entry:
            cut = [text and (text if len(text) <= most else text[:most] + "…") for text in entry["rationale"]]
            if most:
                entry["rationale"] = cut
            else:
                del entry["rationale"]
    return most


class Units:
    """What differs between responses: systems that said the same in a context have the same scores, kept once."""

    def __init__(self, keys: Key, columns: Mapping[Any, Sequence[Any]]) -> None:
        """Group ``keys`` (item, system) by item and equal values in all ``columns``."""
        frame = pd.DataFrame({"item": pd.factorize(np.array([item for item, _ in keys], dtype=object))[0]})
        for place, values in enumerate(columns.values()):
            codes = pd.factorize(pd.Series(values, dtype=object), use_na_sentinel=True)[0]
            frame[place] = codes
        groups = frame.groupby(list(frame.columns), sort=True, dropna=False).ngroup().to_numpy()
        # By item first, since the items' codes are the first column: what is alike lies together.
        self.rows = np.unique(groups, return_index=True)[1]
        items = frame["item"].to_numpy()
        self.starts = np.searchsorted(items[self.rows], np.arange(items.max() + 1)).tolist()
        self.of = groups - np.asarray(self.starts)[items]


def pack_scores(packer: Packer, found: Mapping[tuple[str, str], npt.NDArray[np.float64]], rows: Any) -> list[Spec]:  # noqa: ANN401
    """Pack scores, of ``rows`` alone where equal ones are kept once."""
    return [
        {"metric": metric, "output": output, "of": packer.numbers(values[rows], decimals_of(values))}
        for (metric, output), values in found.items()
    ]


def pack_judgements(packer: Packer, entries: Sequence[Mapping[str, Any]], rows: Sequence[int]) -> list[Spec]:
    """Pack what :func:`judgements` returned."""
    out = []
    for entry in entries:
        spec: Spec = {name: entry[name] for name in ("metric", "output", "sample")}
        for name in ("rationale", "failure"):
            if name in entry:
                spec[name] = packer.texts([entry[name][row] for row in rows])
        if "value" in entry:
            spec["value"] = packer.numbers(np.array(entry["value"])[list(rows)])
        out.append(spec)
    return out


def _wide(frame: pd.DataFrame, index: list[str], columns: str, values: str, keys: Key) -> pd.DataFrame:
    wide = frame.pivot(index=index, columns=columns, values=values)
    return wide.reindex(pd.MultiIndex.from_tuples(keys, names=index)).astype("float64")
