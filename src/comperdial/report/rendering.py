"""Writes what an artifact's function returned: a table, a figure or a page in all forms.

What writes one kind is no code of the others: an edited style of figures makes no table stale.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial.core.artifact import Artifact
from comperdial.core.errors import NothingToShowError
from comperdial.core.files import FORMS, form_path, write_text
from comperdial.report.captions import SIMULATED, with_suffix

Inputs = Mapping[str, Path | list[Path]]


def render(artifact: Artifact, job: Mapping[str, Any], inputs: Inputs) -> list[Path]:
    """Make one table, figure or page; where the data lack what it shows, one that says so.

    Parameters
    ----------
    artifact
        What to make.
    job
        What its job is told.
    inputs
        Its files by name.

    Returns
    -------
    list of Path
        The files that were written.
    """
    return {"table": table, "figure": figure, "page": page}[artifact.kind](artifact, job, inputs)


def table(artifact: Artifact, job: Mapping[str, Any], inputs: Inputs) -> list[Path]:
    """Write a table."""
    from comperdial.report import document

    try:
        made = artifact.run(**inputs, **job["settings"])
    except NothingToShowError as error:
        title, text, simulated = _nothing(job, error)
        caption = with_suffix(f"{text}.", SIMULATED if simulated else "")
        made = document.Document(title, caption, [], pd.DataFrame({"note": [text]}))
    stem = job["outputs"]["stem"]
    document.write(made, stem)
    return _written(stem)


def figure(artifact: Artifact, job: Mapping[str, Any], inputs: Inputs) -> list[Path]:
    """Write a figure and its numbers."""
    from comperdial.report.plots import style

    stem, simulated = job["outputs"]["stem"], job["settings"].get("source") == "simulated"
    try:
        drawn, frame = artifact.run(**inputs, **job["settings"])
        style.finish(drawn, frame, stem, simulated=simulated)
    except NothingToShowError as error:
        title, text, simulated = _nothing(job, error)
        with style.drawing():
            drawn, axes = style.figure_and_axes(1, 1, (7.0, 0.8))
            axes[0, 0].set_axis_off()
            axes[0, 0].text(0.0, 0.5, textwrap.fill(text, 110), va="center", parse_math=False)
            style.titled(drawn, "Nothing to show", title, "", simulated=simulated)
            style.finish(drawn, pd.DataFrame({"note": [text]}), stem, simulated=simulated)
    return _written(stem)


def page(artifact: Artifact, job: Mapping[str, Any], inputs: Inputs) -> list[Path]:
    """Write a page."""
    stem = job["outputs"]["stem"]
    write_text(f"{stem}.html", artifact.run(**inputs, **job["settings"]))
    return _written(stem)


def _nothing(job: Mapping[str, Any], error: NothingToShowError) -> tuple[str, str, bool]:
    """Return the title of what cannot be shown, what stands in its place, and whether its data are simulated."""
    settings = job["settings"]
    title = settings.get("title") or ", ".join(settings.get("titles", {}).values()) or Path(job["outputs"]["stem"]).name
    return title, f"Nothing to show: {error}", settings.get("source") == "simulated"


def _written(stem: str) -> list[Path]:
    return [path for suffix in FORMS if (path := form_path(f"{stem}.html", suffix)).is_file()]
