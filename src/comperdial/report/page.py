"""The page of a data set: one HTML file with its results, and every response with its ratings, scores and judgements."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import os
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.core.files import read_table
from comperdial.core.names import RATED_LEVELS
from comperdial.report.about import About
from comperdial.report.correlations import halved, why_no_scores
from comperdial.report.dataset import main_results, systems_frame
from comperdial.report.render import ending, number
from comperdial.schema.dimensions import OVERALL
from comperdial.stats.correlation import ALPHA, is_starred

# In the order in which they are run: each uses those before it.
SCRIPTS = ("dom.js", "data.js", "grid.js", "overview.js", "lists.js", "browser.js", "compare.js", "main.js")
# Characters of judges' texts that a page carries at most, and what each is cut to if all of them are more.
MOST_CHARACTERS = 1_500_000
_CUTS = (400, 200, 100, 0)
# Samples of a judgement whose texts are shown.
_SAMPLES = 3
_CELL = ["level", "against", "target", "grouping", "coefficient"]


def page(dataset: str, output: str | Path) -> str:
    """Return the page of a data set, whose tables are in ``data/tables`` and whose results are in ``results``.

    ``output`` is where the page will be: it links to figures from there.
    """
    content = contents(dataset, output)
    code = '"use strict";\n(() => {\n' + "\n".join(map(_part, SCRIPTS)) + "\n})();\n"
    style, note = _part("style.css"), content["note"]
    body = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    return Template(_part("page.html")).substitute(
        title=html.escape(content["title"]),
        note=f'<p class="note" role="note">{html.escape(note)}</p>' if note else "",
        policy=f"default-src 'none'; script-src {_hash(code)}; style-src {_hash(style)}; img-src 'self' file: data:; "
        "base-uri 'none'; form-action 'none'",
        style=style,
        script=code,
        data=base64.b64encode(zlib.compress(body, 9)).decode("ascii"),
    )


def _part(name: str) -> str:
    return (Path(__file__).parent / "site" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def contents(dataset: str, output: str | Path) -> dict[str, Any]:
    """Return everything that a page carries; numbers are rounded as it shows them, and missing ones are None."""
    tables, results = Path("data/tables", dataset), Path("results", dataset)
    about = About.read([results / "about.json"])
    one = about[dataset]
    systems, texts, responses, personas, ratings = (
        schema.read(tables / f"{name}.parquet", name)
        for name in ("systems", "contexts", "responses", "personas", "ratings")
    )
    ratings = ratings[ratings["source"] == one["source"]]
    target = about.dimension(dataset, ratings["dimension"])
    paths = [results / "scores" / f"{name}.parquet" for name in one["scorers"] if name not in one["apart"]]
    scores = pd.concat([schema.read(path, "scores") for path in paths], ignore_index=True)
    judgements = [schema.read(results / "judgements" / f"{name}.parquet", "judgements") for name in one["judged"]]
    figures = sorted((results / "figures").glob("*.png"))
    outputs = one["systems_outputs"]
    frame = systems_frame(systems, responses, scores, ratings, outputs=outputs, dimension=target)
    shown = [name for name in outputs if name in frame]
    digits = {"responses": 0, **dict.fromkeys(("turn_rating", "dialogue_rating", *shown), 3)}
    content: dict[str, Any] = {
        **{name: one[name] for name in ("dataset", "title", "source", "labels")},
        "main": one["outputs"],
        "note": ending(one["source"]),
        "target": target,
        "counts": _counts(systems, texts, responses, ratings),
        "figures": [
            {"src": Path(os.path.relpath(path, Path(output).parent)).as_posix(), "name": path.stem} for path in figures
        ],
        "systems": {"scores": shown, "rows": records(frame, digits)},
        "browser": _browser(systems, texts, responses, personas, ratings, scores, judgements, one["outputs"], target),
        "not_run": dict(one["not_run"]),
        "alpha": [],
    }
    if one["levels"]:
        correlations, pairs = main_results(results, one)
        ceilings = schema.read(results / "ceilings.parquet", "ceilings")
        means = ceilings.groupby(_CELL)["value"].agg(value="mean", annotators="count")
        content |= {
            "alpha": alphas(results / "tables" / "alpha.csv"),
            "not_run": content["not_run"] | without_scores(correlations),
            "correlations": _correlations(correlations[correlations["coverage"] > 0]),
            "ceilings": records(means.reset_index(), {"value": 3, "annotators": 0}),
            "comparisons": _comparisons(pairs),
            "signatures": dict(sorted(zip(correlations["metric"], correlations["signature"], strict=True))),
        }
    return content | {"not_run": dict(sorted(content["not_run"].items()))}


# Tables


def records(frame: pd.DataFrame, digits: Mapping[str, int]) -> list[dict[Any, Any]]:
    """Return the rows of a frame with numbers rounded; ``digits`` has those of the columns of numbers."""
    made = frame.assign(**{name: rounded(frame[name], of) for name, of in digits.items()}).astype(object)
    return made.where(made.notna(), None).to_dict("records")


def rounded(values: Any, digits: int) -> pd.Series:  # noqa: ANN401 - an array or a series
    """Round as tables do (:func:`comperdial.report.render.number`); a missing number is None."""
    cells = pd.Series(values).astype("float64")
    made = [None if math.isnan(value) else round(value, digits) + 0.0 for value in cells]
    whole = [int(value) if value is not None and value == int(value) else value for value in made]
    return pd.Series(whole, index=cells.index, dtype=object)


def numbers(values: Any, digits: int | None = None) -> dict[str, Any]:  # noqa: ANN401
    """Return a column of numbers as the page's code reads it."""
    digits = decimals_of(np.asarray(values, dtype=np.float64)) if digits is None else digits
    return {"decimals": digits, "values": rounded(values, digits).tolist()}


def decimals_of(values: np.ndarray) -> int:
    """Return how many decimals show three digits of the largest value, at most 6 and no more than the values have."""
    known = np.unique(values[~np.isnan(values)])
    largest = float(np.abs(known).max(initial=0.0))
    magnitude = math.floor(math.log10(largest)) if largest else 0
    most = min(max(3 - max(magnitude, 0), 0) if magnitude >= -1 else 2 - magnitude, 6)
    return next((n for n in range(most) if np.array_equal(known.round(n), known.round(6))), most)


def _counts(
    systems: pd.DataFrame, texts: pd.DataFrame, responses: pd.DataFrame, ratings: pd.DataFrame
) -> dict[str, Any]:
    rated = [
        {"level": level, "dimension": dimension, "raters": rows["annotator_id"].nunique(), "ratings": len(rows)}
        | {"low": float(rows["scale_min"].min()), "high": float(rows["scale_max"].max())}
        for level in RATED_LEVELS
        for dimension, rows in ratings[ratings["level"] == level].groupby("dimension")
    ]
    kinds = {str(kind): int(n) for kind, n in systems["kind"].value_counts().sort_index().items()}
    counts = {"dialogues": texts["dialogue_id"].nunique(), "contexts": len(texts), "responses": len(responses)}
    return {"systems": kinds, **counts, "ratings": rated}


def _correlations(frame: pd.DataFrame) -> list[dict[Any, Any]]:
    # A p that is shown rounded could not say on which side of the limit it is.
    rows = frame.assign(starred=frame["p"].map(is_starred), loso_halved=halved(frame).fillna(False).astype(bool))
    texts = [*_CELL, "metric", "output", "loso_system", "starred", "loso_halved"]
    digits = dict.fromkeys(("value", "low", "high", "loso_value", "p_exact", "coverage"), 3)
    digits |= dict.fromkeys(("rank", "n", "cut"), 0)
    return records(rows.sort_values([*_CELL, "metric", "output"])[[*texts, *digits]], digits)


def _comparisons(frame: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return the tests; ``found`` is 2 if the corrected p is below 0.05, 1 if only the plain one is."""
    names = ["level", "against", "target", "coefficient", "metric_a", "output_a", "metric_b", "output_b"]
    rows = frame[frame["grouping"] == "pooled"].sort_values(names)
    result = (rows["p"] < ALPHA).astype(int) + ((rows["p"] < ALPHA) & (rows["p_adjusted"] < ALPHA)).astype(int)
    digits = {"difference": 3, "p": 4, "p_adjusted": 4, "n": 0}
    return records(rows.assign(found=result.where(rows["p"].notna()))[[*names, "test", *digits, "found"]], digits)


def without_scores(correlations: pd.DataFrame) -> dict[str, str]:
    """Return the outputs of which no response has a score, and why."""
    outputs = correlations.groupby(["metric", "output"])
    reasons = {f"{metric} {output}": why_no_scores(rows) for (metric, output), rows in outputs}
    return {name: why for name, why in reasons.items() if why is not None}


def alphas(path: Path) -> list[dict[str, Any]]:
    """Return Krippendorff's alpha of each level and dimension from the CSV file of its table; nothing if that has none."""
    frame = read_table(path)
    if "statistic" not in frame:
        return []
    chosen = frame[(frame["annotator_id"] == "") & frame["statistic"].str.startswith("alpha_")]
    return [
        {"level": row["level"], "dimension": row["dimension"], "kind": row["statistic"].removeprefix("alpha_")}
        | {name: number(float(row[name]) if row[name] else None) for name in ("value", "low", "high")}
        for row in chosen.to_dict("records")
    ]


# Dialogues


def _browser(
    systems: pd.DataFrame, texts: pd.DataFrame, responses: pd.DataFrame, personas: pd.DataFrame, ratings: pd.DataFrame,
    scores: pd.DataFrame, judged: Sequence[pd.DataFrame], outputs: Sequence[str], target: str,
) -> dict[str, Any]:  # fmt: skip
    """Return what is shown of each response: columns with a place for each context and system, and dialogue and system."""
    texts = texts.sort_values(["dialogue_id", "turn", "context_id"])
    systems = systems.sort_values("system_id")
    cells = pd.MultiIndex.from_product([texts["context_id"], systems["system_id"]])
    whole = pd.MultiIndex.from_product([texts["dialogue_id"].unique(), systems["system_id"]])
    answers = responses.set_index(["context_id", "system_id"])["response"].reindex(cells)
    who: dict[str, Any] = {}
    for row in personas.sort_values(["dialogue_id", "speaker"]).to_dict("records"):
        who.setdefault(row["dialogue_id"], {})[row["speaker"]] = list(row["sentences"])
    places = {"turn": ("", cells), "dialogue": ("dialogue_", whole)}
    columns: dict[str, Any] = {}
    for level, (prefix, index) in places.items():
        columns[f"{prefix}scores"] = _scores(scores[scores["level"] == level], index, outputs, answers.notna())
        columns[f"{prefix}ratings"] = _ratings(ratings[ratings["level"] == level], index)
        columns[f"{prefix}judgements"] = _judgements(judged, level, index)
    overall = ratings[(ratings["level"] == "turn") & (ratings["dimension"] == target)]
    mean = overall.groupby(["item_id", "system_id"])["rating"].mean().reindex(cells).where(answers.notna().to_numpy())
    return {
        "systems": systems["system_id"].tolist(),
        "kinds": systems["kind"].tolist(),
        "contexts": [
            {"id": row["context_id"], "dialogue": row["dialogue_id"], "turn": int(row["turn"])}
            | {"history": [[part["speaker"], part["text"]] for part in row["history"]]}
            | {name: list(row[name]) for name in ("references", "facts")}
            for row in texts.to_dict("records")
        ],
        "personas": who,
        "response": [text if isinstance(text, str) else None for text in answers],
        "mean": numbers(mean, 3) if mean.notna().any() else None,
        "mean_percent": percentiles(mean),
        "all": not outputs,
        "cut": _cut([*columns["judgements"], *columns["dialogue_judgements"]]),
        **columns,
    }


def percentiles(values: pd.Series) -> dict[str, Any]:
    """Return the share of values below each, those equal to it counted half, in per cent."""
    return numbers(100 * (values.rank() - 0.5) / values.count(), 1)


def _scores(
    scores: pd.DataFrame, index: pd.MultiIndex, outputs: Sequence[str], answered: pd.Series
) -> list[dict[str, Any]]:
    result = []
    for (metric, output), rows in scores.groupby(["metric", "output"]):
        if outputs and f"{metric}:{output}" not in outputs:
            continue
        column = numbers(rows.set_index(["item_id", "system_id"])["value"].reindex(index))
        entry = {"metric": metric, "output": output, "of": column}
        if len(index) == len(answered):
            shown = pd.Series(column["values"], dtype="float64").where(answered.to_numpy())
            entry["percent"] = percentiles(shown)
        result.append(entry)
    return result


def _ratings(ratings: pd.DataFrame, index: pd.MultiIndex) -> list[dict[str, Any]]:
    """Return every rating: for each dimension, the overall one first, a column an annotator."""
    result = []
    for dimension in sorted(ratings["dimension"].unique(), key=lambda name: (name != OVERALL, name)):
        rows = ratings[ratings["dimension"] == dimension]
        wide = rows.pivot(index=["item_id", "system_id"], columns="annotator_id", values="rating").reindex(index)
        raters = [{"id": name, "of": numbers(wide[name])} for name in wide]
        scale = {"low": float(rows["scale_min"].min()), "high": float(rows["scale_max"].max())}
        result.append({"dimension": dimension, **scale, "annotators": raters})
    return result


def _judgements(frames: Sequence[pd.DataFrame], level: str, index: pd.MultiIndex) -> list[dict[str, Any]]:
    """Return what judges wrote, for each output and sample: rationale, failure, and the value if there are several samples."""
    result: list[dict[str, Any]] = []
    for frame in frames:
        chosen = frame[frame["level"] == level]
        for (metric, output), judged in chosen.groupby(["metric", "output"]):
            for sample, rows in judged.groupby("sample"):
                entry: dict[str, Any] = {"metric": metric, "output": output, "sample": int(str(sample))}
                placed = rows.set_index(["item_id", "system_id"]).reindex(index)
                for name in ("rationale", "failure"):
                    if placed[name].notna().any() and entry["sample"] < _SAMPLES:
                        entry[name] = placed[name].astype(object).where(placed[name].notna(), None).tolist()
                if judged["sample"].nunique() > 1:
                    entry["value"] = numbers(placed["value"])
                result.append(entry)
    return result


def _cut(entries: Sequence[dict[str, Any]]) -> int | None:
    """Cut rationales so that all together are short enough, and return to what length; None if nothing was cut."""
    texts = {text for entry in entries for text in entry.get("rationale", ()) if text}
    if sum(map(len, texts)) <= MOST_CHARACTERS:
        return None
    most = next(most for most in _CUTS if sum(min(len(text), most) for text in texts) <= MOST_CHARACTERS)
    for entry in entries:
        if "rationale" in entry and most:
            entry["rationale"] = [t and (t if len(t) <= most else t[:most] + "…") for t in entry["rationale"]]
        elif "rationale" in entry:
            del entry["rationale"]
    return most
