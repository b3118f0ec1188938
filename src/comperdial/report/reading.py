"""What the notebooks read: one data set's results and tables, under names that a reader can take in."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial.config import load_yaml
from comperdial.errors import MissingResourceError
from comperdial.metrics import kinds
from comperdial.plugins import load_class
from comperdial.report import compact
from comperdial.report.document import SIMULATED, number

DATASET_VARIABLE = "COMPERDIAL_DATASET"
CELLS = {
    ("turn", "turn"): "turns",
    ("dialogue", "dialogue"): "dialogues",
    ("dialogue", "turn"): "dialogues, rated by turn",
    ("system", "turn"): "systems, rated by turn",
    ("system", "dialogue"): "systems, rated by dialogue",
}
# What notebooks hold scores against.
TARGET = "Overall"
# What kinds of metrics cost, from the cheapest: people are no metric, and recorded scores cost nothing any more.
COSTS = ("counts words", "small encoder", "large model", "asks a judge", "recorded")
_MAKERS = {"cpdscore": "asks a judge", "recorded-judge": "recorded", "recorded": "recorded", "human": "people"}
# What a metric on this encoder runs anywhere with.
_SMALL = "all-MiniLM-L6-v2"


# Text stands to the left, numbers to the right.
_STYLE = "<style>.text {text-align: left !important}</style>"
_FIT = "max-width:100%;height:auto;background:white"


class Page(str):
    """A piece of HTML that a notebook shows."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(self)


@dataclass(frozen=True)
class Reading:
    """One data set in a repository where the workflow has run.

    Attributes
    ----------
    root
        The repository.
    dataset
        The data set's name.
    """

    root: Path
    dataset: str

    def result(self, kind: str = "") -> pd.DataFrame:
        """Return what was computed: the correlations, or the table ``kind`` (``ceilings``, ``comparisons``, …)."""
        suffix = f"_{kind}" if kind else ""
        return self._read(f"results/correlations/{self.dataset}{suffix}.parquet")

    def correlations(self, coefficient: str = "spearman", grouping: str = "pooled") -> pd.DataFrame:
        """Return the correlations with the target, with ``label`` and ``cell`` to show and the metric's traits."""
        chosen = self._of_target(self.result(), coefficient, grouping).dropna(subset=["value"])
        return chosen.assign(label=labels(chosen), cell=cells(chosen)).join(traits(chosen)).reset_index(drop=True)

    def ceiling(self, coefficient: str = "spearman") -> pd.Series[float]:
        """Return the human ceiling by cell: the mean over raters of one's correlation with the mean of the others."""
        chosen = self._of_target(self.result("ceilings"), coefficient, "pooled")
        return chosen.assign(cell=cells(chosen)).groupby("cell")["value"].mean()

    @staticmethod
    def _of_target(frame: pd.DataFrame, coefficient: str, grouping: str) -> pd.DataFrame:
        chosen = (frame["target"] == TARGET) & (frame["coefficient"] == coefficient) & (frame["grouping"] == grouping)
        return frame[chosen]

    def table(self, name: str) -> pd.DataFrame:
        """Return one of the data set's tables."""
        return self._read(f"data/tables/{self.dataset}/{name}.parquet")

    def scores(self, metric: str) -> pd.DataFrame:
        """Return a metric's scores."""
        return self._read(f"results/scores/{self.dataset}/{metric}.parquet")

    def ratings(self, level: str = "turn", target: str = TARGET) -> pd.DataFrame:
        """Return single ratings of one dimension, without those of references; empty if nothing was rated so."""
        path = self.root / f"data/tables/{self.dataset}/{level}_ratings.parquet"
        if not path.is_file():
            return pd.DataFrame(columns=["system_id", "annotator_id", "rating"])
        found = pd.read_parquet(path)
        systems = self.table("systems").set_index("system_id")["kind"]
        return found[(found["dimension"] == target) & (found["system_id"].map(systems) != "reference")]

    @cached_property
    def simulated(self) -> bool:
        """Return whether the ratings are simulated."""
        return bool((self.ratings()["source"] == "simulated").any())

    def opening(self) -> Page:
        """Return what a page begins with: the data set, and where nothing is real, that it is SIMULATED."""
        if self.simulated:
            rest = "So read here how such an evaluation is done, and none of its numbers as a result."
            about = f"<b>Data set: {self.dataset}. {SIMULATED}</b> Its judge is a program that counts words. {rest}"
        else:
            about = f"Data set: <b>{self.dataset}</b>, rated by {self.ratings()['annotator_id'].nunique()} people."
        return say(about)

    def _read(self, name: str) -> pd.DataFrame:
        path = self.root / name
        if not path.is_file():
            raise MissingResourceError(
                f"{name} is missing", where=str(self.root), hint="run `snakemake` first, or `dvc pull`"
            )
        return pd.read_parquet(path)


def here(dataset: str | None = None) -> Reading:
    """Return the data set that a notebook reads.

    Parameters
    ----------
    dataset
        Its name. Default: what the environment variable ``COMPERDIAL_DATASET`` says, else ``tables.benchmark`` of
        ``params.yaml``, else ``demo``.
    """
    places = [Path.cwd(), *Path.cwd().parents]
    root = next((place for place in places if (place / "params.yaml").is_file()), None)
    if root is None:
        raise MissingResourceError("no params.yaml", where=str(places[0]), hint="start the notebook in the repository")
    chosen = dataset or os.environ.get(DATASET_VARIABLE)
    return Reading(root, chosen or load_yaml(root / "params.yaml").get("tables", {}).get("benchmark", "demo"))


def labels(frame: pd.DataFrame, suffix: str = "") -> pd.Series[str]:
    """Return a name for each row's metric and output (columns ``metric`` and ``output`` with a suffix)."""
    pairs = zip(frame[f"metric{suffix}"], frame[f"output{suffix}"], strict=True)
    return pd.Series([label(metric, output) for metric, output in pairs], index=frame.index, dtype=object)


def label(metric: str, output: str) -> str:
    """Return one name for a metric's output."""
    if metric == "human":
        return "people, turn by turn"
    return output if output == metric or output.startswith(f"{metric}-") else f"{metric} {output}"


def traits(frame: pd.DataFrame) -> pd.DataFrame:
    """Say of each row's metric what makes it and whether it reads a reference, by its signature.

    Returns
    -------
    DataFrame
        With the rows' index: ``cost``, one of :data:`COSTS` or ``people``; ``reference``, ``with`` or ``without``, or a
        dash where the signature does not tell.
    """
    known = {signature: _traits(signature) for signature in frame["signature"].unique()}
    rows = [known[signature] for signature in frame["signature"]]
    return pd.DataFrame(rows, columns=["cost", "reference"], index=frame.index)


def _traits(signature: str) -> tuple[str, str]:
    kind, *parts = signature.split("|")
    if kind in _MAKERS:
        prompt = next((part for part in parts if part.startswith("prompt:")), "")
        told = {"cpdscore": "with" if "_ref@" in prompt else "without", "recorded-judge": "without"}
        return _MAKERS[kind], told.get(kind, "–")
    if kind not in kinds():
        return "–", "–"
    from comperdial.metrics import Metric

    helpers = frozenset({"base", "options", "text"})
    found = load_class("comperdial.metrics", kind, Metric, kind="metric", helpers=helpers)  # type: ignore[type-abstract]
    model = next((part for part in parts if part.startswith("model:")), None)
    cost = "counts words" if model is None else "small encoder" if _SMALL in model else "large model"
    return cost, "with" if "references" in found.needs else "without"


def cells(frame: pd.DataFrame) -> pd.Series[Any]:
    """Name each row's ``level`` of scores and level of ratings (``against``); the names sort as in :data:`CELLS`."""
    named = [CELLS[level, against] for level, against in zip(frame["level"], frame["against"], strict=True)]
    return pd.Series(pd.Categorical(named, list(CELLS.values()), ordered=True), index=frame.index)


def say(text: str) -> Page:
    """Return a paragraph; ``text`` is HTML."""
    return Page(f"<p>{text}</p>")


def items(lines: Sequence[str]) -> Page:
    """Return a list; ``lines`` are HTML."""
    return Page("<ul>" + "".join(f"<li>{line}</li>" for line in lines) + "</ul>")


def quoted(text: str, most: int = 400) -> str:
    """Return a text as HTML on one line, cut at ``most`` characters."""
    line = " ".join(str(text).split())
    return html.escape(line if len(line) <= most else f"{line[:most].rstrip()} …")


def span(value: float, low: float, high: float, digits: int = 2) -> str:
    """Write a value with its interval, as far as there is one."""
    # A line is never broken within it.
    inside = f" [{number(low, digits=digits)}, {number(high, digits=digits)}]" if pd.notna(low) else ""
    return (number(value, digits=digits) + inside).replace(" ", "\u00a0")


def chance(p: float) -> str:
    """Write a p-value, which is never 0."""
    return "p < 0.001" if p < 0.001 else f"p {number(p)}"


def show(frame: pd.DataFrame, *, digits: int = 2, index: bool = True, escape: bool = True) -> Page:
    """Return a frame as an HTML table: numbers rounded, a dash for what is missing, text to the left.

    Columns of whole numbers are written without decimals when their type says so; ``escape=False`` takes the texts of
    columns for HTML.
    """
    made = frame.reset_index() if index else frame
    columns = [made.iloc[:, at] for at in range(made.shape[1])]
    texts = [not pd.api.types.is_numeric_dtype(column) for column in columns]
    head = "".join(_cell("th", html.escape(str(name)), text) for name, text in zip(made.columns, texts, strict=True))
    rows = [
        "".join(_cell("td", _written(value, digits, escape), text) for value, text in zip(row, texts, strict=True))
        for row in zip(*columns, strict=True)
    ]
    body = "".join(f"<tr>{row}</tr>\n" for row in rows)
    return Page(f'{_STYLE}<table class="dataframe"><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>')


def _cell(tag: str, content: str, text: bool) -> str:
    return f'<{tag} class="text">{content}</{tag}>' if text else f"<{tag}>{content}</{tag}>"


def _written(value: Any, digits: int, escape: bool) -> str:  # noqa: ANN401 - what a frame holds
    if isinstance(value, str):
        return html.escape(value) if escape else value
    if pd.isna(value):
        return "–"
    return f"{value:,}" if isinstance(value, Integral) else number(value, digits=digits)


def drawn(figure: Any) -> Page:  # noqa: ANN401 - matplotlib has no types
    """Return a matplotlib figure as SVG within the page, the same bytes on every run, and close it."""
    import io

    import matplotlib as mpl
    import matplotlib.pyplot as plt

    style: Any = {"svg.hashsalt": "comperdial", "svg.fonttype": "none", "font.sans-serif": ["DejaVu Sans"]}
    with mpl.rc_context(style), io.StringIO() as file:
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None}, bbox_inches="tight")
        text = file.getvalue()
    plt.close(figure)
    # Of each text matplotlib says its font, and that it stands level.
    font = "font-family:'DejaVu Sans', sans-serif"
    short = re.sub(rf' transform="rotate\(-0 [^)]*\)"|{font};', "", compact.svg(text))
    return Page(short[short.index("<svg") :].replace("<svg", f'<svg style="{font};{_FIT}"', 1))


def recorded_answers(reading: Reading, metric: str, output: str) -> pd.DataFrame:
    """Return the first answer to each item of a judge whose answers others recorded: item_id, system_id, rationale."""
    from comperdial.catalogue import load_catalogue
    from comperdial.judging.answers import find
    from comperdial.recorded.base import Rated
    from comperdial.sources import raw_path

    params = load_yaml(reading.root / "params.yaml")
    entry = params["recorded_judges"][metric]
    source = load_catalogue(reading.root / params["catalogue"]).file(entry["sources"][output])
    path = raw_path(source, reading.root / "data/raw")
    rated = Rated(reading.table("contexts"), reading.table("responses"), reading.table("systems"))
    found = find(entry["format"])({output: path}).read(rated)
    first = found.drop_duplicates(["item_id", "system_id"])
    return first[["item_id", "system_id", "answer"]].rename(columns={"answer": "rationale"})
