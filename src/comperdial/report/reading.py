"""Access to a data set's results and tables for notebooks, with readable names."""

from __future__ import annotations

import html
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial.config import load_yaml
from comperdial.config.registry import completed
from comperdial.core.errors import MissingResourceError
from comperdial.core.files import read_json
from comperdial.core.plugins import load_class
from comperdial.metrics import Metric, kinds
from comperdial.report.about import label as called
from comperdial.report.dataset import main_results
from comperdial.report.render import SIMULATED
from comperdial.report.showing import Page, say

DATASET_VARIABLE, TARGET_VARIABLE, SOURCE_VARIABLE = "COMPERDIAL_DATASET", "COMPERDIAL_TARGET", "COMPERDIAL_SOURCE"
CELLS = {
    ("turn", "turn"): "turns",
    ("dialogue", "dialogue"): "dialogues",
    ("dialogue", "turn"): "dialogues, rated by turn",
    ("system", "turn"): "systems, rated by turn",
    ("system", "dialogue"): "systems, rated by dialogue",
}
# Default rated dimension in notebooks.
TARGET = "Overall"
# Kinds of metrics by cost, cheapest first; people are not a metric, and recorded scores cost nothing.
COSTS = ("counts words", "small encoder", "large model", "asks a judge", "recorded")
_MAKERS = {"cpdscore": "asks a judge", "recorded-judge": "recorded", "recorded": "recorded", "human": "people"}
# A metric on this encoder runs anywhere.
_SMALL = "all-MiniLM-L6-v2"


@dataclass(frozen=True)
class Reading:
    """A data set in a repository, ``root``, where the workflow has run.

    ``target`` is the rated dimension to compare with; ``chosen_source`` the source of ratings (:attr:`source`).
    """

    root: Path
    dataset: str
    target: str = TARGET
    chosen_source: str | None = None

    def result(self, kind: str = "correlations") -> pd.DataFrame:
        """Return a result table: correlations with ranks, corrected ``pairs`` of main outputs, or another one."""
        if kind not in ("correlations", "pairs"):
            return self._read(f"results/{self.dataset}/{kind}.parquet")
        needed = ("correlations.parquet", "pairs.parquet", "about.json")
        *_, about = (self._path(f"results/{self.dataset}/{name}") for name in needed)
        return main_results(about.parent, read_json(about))[kind == "pairs"]

    def correlations(self, coefficient: str = "spearman", grouping: str = "pooled") -> pd.DataFrame:
        """Return the correlations with the target, with ``label`` and ``cell`` for display and the metric's traits."""
        chosen = self._of_target(self.result(), coefficient, grouping).dropna(subset=["value"])
        return chosen.assign(label=labels(chosen), cell=cells(chosen)).join(traits(chosen)).reset_index(drop=True)

    def ceiling(self, coefficient: str = "spearman") -> pd.Series[float]:
        """Return the human ceiling by cell: the mean over raters of one's correlation with the mean of the others."""
        chosen = self._of_target(self.result("ceilings"), coefficient, "pooled")
        return chosen.assign(cell=cells(chosen)).groupby("cell")["value"].mean()

    def _of_target(self, frame: pd.DataFrame, coefficient: str, grouping: str) -> pd.DataFrame:
        asked = (frame["coefficient"] == coefficient) & (frame["grouping"] == grouping)
        return frame[asked & (frame["target"] == self.target)]

    def table(self, name: str) -> pd.DataFrame:
        """Return one of the data set's tables."""
        return self._read(f"data/tables/{self.dataset}/{name}.parquet")

    def scores(self, metric: str) -> pd.DataFrame:
        """Return a metric's scores."""
        return self._read(f"results/{self.dataset}/scores/{metric}.parquet")

    def rendered(self, name: str, *, study: str | None = None, **options: Any) -> pd.DataFrame:  # noqa: ANN401 - pandas'
        """Return a rendered table of the data set, or of a study; ``options`` are passed to pandas."""
        folder = f"studies/{study}" if study else self.dataset
        return pd.read_csv(self._path(f"results/{folder}/tables/{name}.csv"), **options)

    def ratings(self, level: str = "turn") -> pd.DataFrame:
        """Return the source's ratings of the target, without those of references; empty if there are none."""
        ratings = self.table("ratings")
        wanted = {"level": level, "dimension": self.target, "source": self.source}
        ratings = ratings[(ratings[[*wanted]] == pd.Series(wanted)).all(axis=1)]
        systems = self.table("systems").set_index("system_id")["kind"]
        return ratings[ratings["system_id"].map(systems) != "reference"]

    @cached_property
    def source(self) -> str:
        """Return the source of ratings: the chosen one, else ``simulated`` if there are such ratings, else ``human``."""
        known = {*self.table("ratings")["source"]}
        return self.chosen_source or ("simulated" if "simulated" in known else "human")

    @property
    def simulated(self) -> bool:
        """Return whether the ratings are simulated."""
        return self.source == "simulated"

    def opening(self) -> Page:
        """Return the opening of a page: the data set, and a warning if its ratings are SIMULATED."""
        if self.simulated:
            rest = "Read it for the method; its numbers are not findings."
            about = f"<b>Data set: {self.dataset}. {SIMULATED}</b> Its judge is a program that counts words. {rest}"
        else:
            count = self.ratings()["annotator_id"].nunique()
            raters = f"{count} people" if self.source == "human" else html.escape(self.source)
            about = f"Data set: <b>{self.dataset}</b>, rated by {raters}."
        target = "" if self.target == TARGET else f" Scores are compared with: <b>{html.escape(self.target)}</b>."
        return say(about + target)

    def _read(self, name: str) -> pd.DataFrame:
        return pd.read_parquet(self._path(name))

    def _path(self, name: str) -> Path:
        path = self.root / name
        if not path.is_file():
            demo = self.dataset == "demo"
            made = "`make reproduce`, or `dvc pull`" if demo else f"`make reproduce DATASETS={self.dataset}`"
            raise MissingResourceError(f"{name} is missing", where=str(self.root), hint=f"Run {made} there")
        return path


def here(dataset: str | None = None) -> Reading:
    """Return the data set of a notebook.

    Its name is the argument, the environment variable ``COMPERDIAL_DATASET``, ``tables.benchmark`` of ``params.yaml``, or
    ``demo``, in this order. ``COMPERDIAL_TARGET`` (default: Overall) and ``COMPERDIAL_SOURCE`` select the ratings to compare
    with.
    """
    # Jupyter starts a notebook in its own folder; a copy elsewhere uses the installed package's repository.
    places = [Path.cwd(), *Path.cwd().parents, *Path(__file__).resolve().parents]
    root = next((place for place in places if (place / "params.yaml").is_file()), None)
    if root is None:
        raise MissingResourceError("no params.yaml", where=str(places[0]), hint="start the notebook in the repository")
    chosen = dataset or os.environ.get(DATASET_VARIABLE)
    chosen = chosen or load_yaml(root / "params.yaml").get("tables", {}).get("benchmark", "demo")
    return Reading(root, chosen, os.environ.get(TARGET_VARIABLE) or TARGET, os.environ.get(SOURCE_VARIABLE))


def labels(frame: pd.DataFrame, suffix: str = "") -> pd.Series[str]:
    """Return a name for each row's metric and output (columns ``metric`` and ``output`` with a suffix)."""
    texts = map(label, frame[f"metric{suffix}"], frame[f"output{suffix}"])
    return pd.Series(list(texts), index=frame.index, dtype=object)


def label(metric: str, output: str) -> str:
    """Return one name for a metric's output."""
    return called((metric, output), {})


def traits(frame: pd.DataFrame) -> pd.DataFrame:
    """Return each metric's cost and use of references, from its signature.

    Returns columns ``cost``, one of :data:`COSTS` or ``people``, and ``reference``: ``with``, ``without``, or a dash if
    unknown.
    """
    known = {signature: _traits(signature) for signature in frame["signature"].unique()}
    rows = [known[signature] for signature in frame["signature"]]
    return pd.DataFrame(rows, columns=["cost", "reference"], index=frame.index)


def _traits(signature: str) -> tuple[str, str]:
    kind, *parts = signature.split("|")
    if kind == "cpdscore":
        return _MAKERS[kind], "with" if any(
            "_ref@" in part for part in parts if part.startswith("prompt:")
        ) else "without"
    if kind in _MAKERS or kind not in kinds():
        return _MAKERS.get(kind, "–"), "without" if kind == "recorded-judge" else "–"
    helpers = frozenset({"base", "options", "text"})
    maker = load_class("comperdial.metrics", kind, Metric, kind="metric", helpers=helpers)  # type: ignore[type-abstract]
    model = next((part for part in parts if part.startswith("model:")), None)
    cost = "counts words" if model is None else "small encoder" if _SMALL in model else "large model"
    return cost, "with" if "references" in maker.needs else "without"


def cells(frame: pd.DataFrame) -> pd.Series[Any]:
    """Name each row's ``level`` of scores and level of ratings (``against``); the names sort as in :data:`CELLS`."""
    named = [CELLS[pair] for pair in zip(frame["level"], frame["against"], strict=True)]
    return pd.Series(pd.Categorical(named, list(CELLS.values()), ordered=True), index=frame.index)


def recorded_answers(reading: Reading, metric: str, output: str) -> pd.DataFrame:
    """Return a judge's answers; for recorded answers, the first to each item, as ``rationale``."""
    from comperdial.data.catalogue import load_catalogue
    from comperdial.data.recorded import Rated
    from comperdial.data.sources import raw_path
    from comperdial.judges.recorded import FORMATS

    params = completed(load_yaml(reading.root / "params.yaml"))
    entry = (params.get("recorded_judges") or {}).get(metric)
    if entry is None:
        # A judge that was asked here has its answers in the results.
        return reading.result(f"judgements/{metric}")
    source = load_catalogue(reading.root / params["catalogue"]).file(entry["sources"][output])
    path = raw_path(source, reading.root / "data/raw")
    rated = Rated(reading.table("contexts"), reading.table("responses"), reading.table("systems"))
    first = FORMATS[entry["format"]].read({output: path}, rated).drop_duplicates(["item_id", "system_id"])
    return first[["item_id", "system_id", "answer"]].rename(columns={"answer": "rationale"})
