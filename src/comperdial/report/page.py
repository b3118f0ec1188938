"""The page of a data set: an HTML file with its results, and every response with its ratings, scores and judgements."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.core.files import read_table
from comperdial.report.about import HUMAN, About, label
from comperdial.report.correlations import halved, why_no_scores
from comperdial.report.dataset import main_results
from comperdial.report.headline import headline
from comperdial.report.render import ending, not_run
from comperdial.report.systems import systems_frame
from comperdial.schema.dimensions import OVERALL
from comperdial.stats.correlation import ALPHA, is_starred

# In execution order: each uses earlier ones.
SCRIPTS = ("core.js", "grid.js", "overview.js", "lists.js", "dialogues.js", "main.js")
# Maximum characters of a judge's rationale on a page.
MOST_CHARACTERS = 1000
# Samples of a judgement with rationales.
_SAMPLES = 3
_CELL = ["level", "against", "target", "grouping", "coefficient"]
_UNIT = ["item_id", "system_id"]

Data = dict[str, Any]


def page(dataset: str, output: str | Path) -> str:
    """Return the page of a data set, from ``data/tables`` and ``results``.

    ``output`` is the page's path, for relative links to figures.
    """
    content = contents(dataset, output)
    code = '"use strict";\n(() => {\n' + "\n".join(map(_part, SCRIPTS)) + "\n})();\n"
    style = _part("style.css")
    # Also show the result without JavaScript.
    first = {name: f'<p class="{name}" role="note">{html.escape(content[name])}</p>' for name in ("note", "headline")}
    body = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    return Template(_part("page.html")).substitute(
        {name: text if content[name] else "" for name, text in first.items()},
        title=html.escape(content["title"]),
        policy=f"default-src 'none'; script-src {_hash(code)}; style-src {_hash(style)}; img-src 'self' file: data:; "
        "base-uri 'none'; form-action 'none'",
        style=style,
        script=code,
        data=base64.b64encode(zlib.compress(body)).decode("ascii"),
    )


def _part(name: str) -> str:
    return (Path(__file__).parent / "site" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def contents(dataset: str, output: str | Path) -> Data:
    """Return all data on a page; numbers are rounded as shown, and missing ones are None."""
    folder, results = Path("data/tables", dataset), Path("results", dataset)
    about = About.read([results / "about.json"])
    one = about[dataset]
    kinds = ("systems", "contexts", "responses", "personas", "ratings")
    tables = {name: schema.read(folder / f"{name}.parquet", name) for name in kinds}
    ratings = tables["ratings"] = tables["ratings"][tables["ratings"]["source"] == one["source"]]
    target, outputs = about.dimension(dataset, ratings["dimension"]), one["systems_outputs"]
    paths = [results / "scores" / f"{name}.parquet" for name in one["scorers"] if name not in one["apart"]]
    scores = pd.concat([schema.read(path, "scores") for path in paths], ignore_index=True)
    judged = [schema.read(results / "judgements" / f"{name}.parquet", "judgements") for name in one["judged"]]
    rated = ratings[ratings["dimension"] == target]
    of_systems = (tables["systems"], tables["responses"], scores, rated, tables["contexts"])
    frame = systems_frame(*of_systems, outputs=outputs)
    ends = {str(name): 2 for name in frame if str(name).endswith(("_low", "_high"))}
    names = {HUMAN, *scores[["metric", "output"]].drop_duplicates().itertuples(index=False, name=None)}
    figures, beside = sorted((results / "figures").glob("*.png")), Path(output).parent
    content: Data = {
        **{name: one[name] for name in ("dataset", "title", "source", "labels")},
        "called": {":".join(name): label(name, one["labels"]) for name in sorted(names)},
        "main": one["outputs"],
        "note": ending(one["source"]),
        "headline": "",
        "target": target,
        "counts": _counts(tables),
        "figures": [{"src": Path(os.path.relpath(p, beside)).as_posix(), "name": p.stem} for p in figures],
        "systems": {"scores": [name for name in outputs if name in frame], "rows": records(frame, ends)},
        "browser": _browser(tables, scores, judged, one["outputs"], target),
        "alpha": [],
    }
    lost = dict(one["not_run"])
    if one["levels"]:
        correlations, pairs = main_results(results, one)
        ceilings = schema.read(results / "ceilings.parquet", "ceilings")
        means = ceilings.groupby(_CELL)["value"].agg(value="mean", annotators="count")
        lost |= without_scores(correlations)
        main, tests = (of[of["target"] == target] for of in (correlations, pairs))
        content |= {
            "headline": headline(main, tests, one["labels"], source=one["source"]),
            "alpha": alphas(results / "tables" / "alpha.csv"),
            "correlations": _correlations(correlations[correlations["coverage"] > 0]),
            "ceilings": records(means.reset_index()),
            "comparisons": _comparisons(pairs),
            "signatures": dict(sorted(zip(correlations["metric"], correlations["signature"], strict=True))),
        }
    return content | {"not_run": dict(sorted(lost.items())), "not_run_line": not_run(lost)}


# Tables


def records(frame: pd.DataFrame, digits: Mapping[str, int] | None = None) -> list[Data]:
    """Return the rows of a frame, with numbers rounded to three decimals or by ``digits``."""
    made = frame.copy(deep=False)
    for name in frame.select_dtypes("float"):
        most = (digits or {}).get(str(name), 3)
        made[name] = [round(value, most) for value in frame[name].astype("float64").tolist()]
    result: list[Data] = json.loads(made.to_json(orient="records"))
    return result


def numbers(values: Any, digits: int | None = None) -> Data:  # noqa: ANN401 - an array or a series
    """Return a numeric column for the page's JavaScript: number of decimals, and rounded values."""
    cells = np.asarray(values, dtype=np.float64)
    digits = decimals_of(cells) if digits is None else digits
    return {"decimals": digits, "values": [None if math.isnan(one) else round(one, digits) for one in cells.tolist()]}


def decimals_of(values: np.ndarray) -> int:
    """Return the decimals that show three digits of the largest value, at most 6 and at most those of the values."""
    known = np.unique(values[~np.isnan(values)])
    largest = float(np.abs(known).max(initial=0.0))
    magnitude = math.floor(math.log10(largest)) if largest else 0
    most = min(max(3 - max(magnitude, 0), 0) if magnitude >= -1 else 2 - magnitude, 6)
    return next((n for n in range(most) if np.array_equal(known.round(n), known.round(6))), most)


def _counts(tables: Mapping[str, pd.DataFrame]) -> Data:
    ratings, contexts = tables["ratings"], tables["contexts"]
    columns = {"raters": ("annotator_id", "nunique"), "ratings": ("rating", "size")}
    columns |= {"low": ("scale_min", "min"), "high": ("scale_max", "max")}
    rated = ratings.groupby(["level", "dimension"], observed=True).agg(**columns).reset_index()
    return {
        "systems": tables["systems"]["kind"].value_counts().sort_index().to_dict(),
        "dialogues": contexts["dialogue_id"].nunique(),
        "contexts": len(contexts),
        "responses": len(tables["responses"]),
        "ratings": records(rated.sort_values("level", ascending=False, kind="stable")),
    }


def _correlations(frame: pd.DataFrame) -> list[Data]:
    # A rounded p could hide on which side of the limit it is.
    rows = frame.assign(starred=frame["p"].map(is_starred), loso_halved=halved(frame).fillna(False).astype(bool))
    texts = [*_CELL, "metric", "output", "loso_system", "starred", "loso_halved"]
    numbers = ["value", "low", "high", "loso_value", "p_exact", "coverage", "rank", "n", "cut"]
    return records(rows.sort_values([*_CELL, "metric", "output"])[[*texts, *numbers]])


def _comparisons(frame: pd.DataFrame) -> list[Data]:
    """Return the tests; ``significant`` means that the corrected p is below 0.05."""
    names = ["level", "against", "target", "coefficient", "metric_a", "output_a", "metric_b", "output_b"]
    rows = frame[frame["grouping"] == "pooled"].sort_values(names).assign(significant=frame["p_adjusted"] < ALPHA)
    return records(
        rows[[*names, "test", "difference", "p", "p_adjusted", "n", "significant"]], {"p": 4, "p_adjusted": 4}
    )


def without_scores(correlations: pd.DataFrame) -> dict[str, str]:
    """Return the outputs without scores of responses, with the reason."""
    outputs = correlations.groupby(["metric", "output"])
    reasons = {f"{metric} {output}": why_no_scores(rows) for (metric, output), rows in outputs}
    return {name: why for name, why in reasons.items() if why is not None}


def alphas(path: Path) -> list[Data]:
    """Return Krippendorff's ordinal alpha by level and dimension from its table's CSV file, if it has any."""
    frame, numeric = read_table(path), ["value", "low", "high"]
    if "statistic" not in frame:
        return []
    chosen = frame.loc[frame["statistic"] == "alpha_ordinal", ["level", "dimension", *numeric]]
    return records(chosen.assign(**chosen[numeric].apply(pd.to_numeric)))


# Dialogues


def _browser(
    tables: Mapping[str, pd.DataFrame],
    scores: pd.DataFrame,
    judged: Sequence[pd.DataFrame],
    outputs: Sequence[str],
    target: str,
) -> Data:
    """Return the data on each response: columns with an entry for each context and system, and dialogue and system."""
    texts = tables["contexts"].sort_values(["dialogue_id", "turn", "context_id"])
    systems = tables["systems"].sort_values("system_id")
    answers = tables["responses"].set_index(["context_id", "system_id"])["response"]
    personas = tables["personas"].sort_values(["dialogue_id", "speaker"])
    who: Data = {}
    for dialogue, speaker, sentences in personas[["dialogue_id", "speaker", "sentences"]].itertuples(index=False):
        who.setdefault(dialogue, {})[speaker] = list(sentences)
    if outputs:
        scores = scores[(scores["metric"] + ":" + scores["output"]).isin(outputs)]
    columns: Data = {}
    for level, prefix, items in (
        ("turn", "", texts["context_id"]),
        ("dialogue", "dialogue_", texts["dialogue_id"].unique()),
    ):
        index = pd.MultiIndex.from_product([items, systems["system_id"]])
        if level == "turn":
            columns["response"] = [text if isinstance(text, str) else None for text in answers.reindex(index)]
        own = [frame[frame["level"] == level] for frame in (scores, tables["ratings"], *judged)]
        columns[f"{prefix}scores"] = list(_scores(own[0], index))
        columns[f"{prefix}ratings"] = list(_ratings(own[1], index))
        columns[f"{prefix}judgements"] = list(_judgements(own[2:], index))
    overall = next((entry for entry in columns["ratings"] if entry["dimension"] == target), None)
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
        "mean": overall and overall["mean"],
        "mean_percent": overall and overall["percent"],
        "all": not outputs,
        "cut": MOST_CHARACTERS,
        **columns,
    }


def percentiles(values: Sequence[float | None]) -> Data:
    """Return the percentage of values below each one, counting equal ones half."""
    known = pd.Series(np.array(values, dtype=np.float64))
    return numbers(100 * (known.rank() - 0.5) / known.count(), 1)


def _scores(scores: pd.DataFrame, index: pd.MultiIndex) -> Iterable[Data]:
    for (metric, output), rows in scores.groupby(["metric", "output"]):
        column = numbers(rows.set_index(_UNIT)["value"].reindex(index))
        yield {"metric": metric, "output": output, "of": column, "percent": percentiles(column["values"])}


def _ratings(ratings: pd.DataFrame, index: pd.MultiIndex) -> Iterable[Data]:
    """Yield every rating: for each dimension, overall first, the mean and a column per annotator."""
    for dimension in sorted(ratings["dimension"].unique(), key=lambda name: (name != OVERALL, name)):
        rows = ratings[ratings["dimension"] == dimension]
        wide = rows.pivot(index=_UNIT, columns="annotator_id", values="rating").reindex(index)
        mean = wide.mean(axis=1)
        yield {
            "dimension": dimension,
            "low": float(rows["scale_min"].min()),
            "high": float(rows["scale_max"].max()),
            "mean": numbers(mean, 3),
            "percent": percentiles(mean.to_list()),
            "annotators": [{"id": name, "of": numbers(wide[name])} for name in wide],
        }


def _judgements(frames: Iterable[pd.DataFrame], index: pd.MultiIndex) -> Iterable[Data]:
    """Yield judges' answers by output and sample: rationale, failure, and the value if there are several samples."""
    for frame in frames:
        for (metric, output), judged in frame.groupby(["metric", "output"]):
            for number, (_, rows) in enumerate(judged.groupby("sample")):
                entry: Data = {"metric": metric, "output": output, "sample": number}
                placed = rows.set_index(_UNIT)[["rationale", "failure", "value"]].reindex(index)
                placed["rationale"] = placed["rationale"].str.slice(0, MOST_CHARACTERS)
                for name in ("rationale", "failure"):
                    if placed[name].notna().any() and number < _SAMPLES:
                        entry[name] = placed[name].astype(object).where(placed[name].notna(), None).tolist()
                if judged["sample"].nunique() > 1:
                    entry["value"] = numbers(placed["value"])
                yield entry
