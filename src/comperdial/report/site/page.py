"""The page itself: one HTML file with its style, its code and its data inside, allowed to load nothing but figures."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from comperdial import schema
from comperdial.core.errors import FileError
from comperdial.report.about import About
from comperdial.report.render import ending
from comperdial.report.site import contents

# In the order in which they are run: each uses those before it.
SCRIPTS = ("dom.js", "data.js", "grid.js", "overview.js", "lists.js", "browser.js", "compare.js", "main.js")
_DATA = re.compile(r'<script type="text/plain" id="data">([^<]*)</script>')


def of_dataset(dataset: str, output: str | Path) -> str:
    """Return the page of a data set: its results, and every response with its ratings, scores and judgements.

    Parameters
    ----------
    dataset
        Its tables are in ``data/tables`` and its results in ``results``.
    output
        Where the page will be: it links to figures from there.
    """
    import pandas as pd

    tables, results = Path("data/tables", dataset), Path("results", dataset)
    about = About.read([results / "about.json"])
    one = about[dataset]
    found: dict[str, Any] = {
        name: schema.read(tables / f"{name}.parquet", name) for name in ("systems", "contexts", "responses", "personas")
    }
    ratings = schema.read(tables / "ratings.parquet", "ratings")
    found["ratings"] = ratings = ratings[ratings["source"] == one["source"]]
    if one["levels"]:
        from comperdial.report.dataset import main_results

        found["correlations"], found["comparisons"] = main_results(results, one)
        found["ceilings"] = schema.read(results / "ceilings.parquet", "ceilings")
    scorers = [name for name in one["scorers"] if name not in one["apart"]]
    scores = [schema.read(results / "scores" / f"{name}.parquet", "scores") for name in scorers]
    figures = sorted((results / "figures").glob("*.png"))
    alpha, note = results / "tables" / "alpha.csv", ending(one["source"])
    settings = contents.Settings(
        title=one["title"],
        target=about.dimension(dataset, ratings["dimension"]),
        source=one["source"],
        main=one["systems_outputs"],
        # In the browser of dialogues: the main ones, so that the page stays small.
        outputs=one["outputs"] or None,
        not_run=one["not_run"],
        labels=one["labels"],
        figures=[contents.relative(path, Path(output)) for path in figures],
        alpha=alpha if one["levels"] else None,
        note=note,
    )
    judgements = [schema.read(results / "judgements" / f"{name}.parquet", "judgements") for name in one["judged"]]
    shown = contents.Tables(**found, scores=pd.concat(scores, ignore_index=True), judgements=judgements)
    return page(one["title"], contents.pack(shown, settings), note=note)


def page(title: str, data: str, *, note: str = "") -> str:
    """Return a page that shows what was packed.

    Parameters
    ----------
    title
        The data set's title.
    data
        What :func:`comperdial.report.site.contents.pack` returned.
    note
        What is to be said of the data in a line that is always in view.
    """
    code = '"use strict";\n(() => {\n' + "\n".join(map(_part, SCRIPTS)) + "\n})();\n"
    style = _part("style.css")
    return Template(_part("page.html")).substitute(
        title=html.escape(title),
        note=f'<p class="note" role="note">{html.escape(note)}</p>' if note else "",
        policy=f"default-src 'none'; script-src {_hash(code)}; style-src {_hash(style)}; img-src 'self' file: data:; "
        "base-uri 'none'; form-action 'none'",
        style=style,
        script=code,
        data=data,
    )


def data_of(text: str) -> str:
    """Return the packed data of a page, or raise :class:`FileError` when it has none."""
    if not (found := _DATA.search(text)):
        raise FileError("no packed data in the page", expected="a page that `comperdial page` wrote")
    return found.group(1)


def _part(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
