"""Writes what a table's or figure's function returned, or that there is nothing to show."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial.core.errors import NothingToShowError
from comperdial.report.about import About

Inputs = Mapping[str, Sequence[Path]]
Study = Mapping[str, Any]


def table(function: Callable[[Inputs, Study], Any], inputs: Inputs, study: Study, stem: str | Path) -> None:
    """Write a table: CSV, Markdown, LaTeX and HTML."""
    from comperdial.report import render

    try:
        made = function(inputs, study)
    except NothingToShowError as error:
        title, simulated = _about(inputs, study)
        made = render.nothing(title, str(error), simulated=simulated)
    render.write(made, stem)


def figure(function: Callable[[Inputs, Study], Any], inputs: Inputs, study: Study, stem: str | Path) -> None:
    """Write a figure: PNG, SVG and PDF, and its numbers as CSV."""
    from comperdial.report.plots import style

    title, simulated = _about(inputs, study)
    try:
        drawn, frame = function(inputs, study)
    except NothingToShowError as error:
        text = f"Nothing to show: {error}"
        with style.drawing():
            drawn, axes = style.figure_and_axes(1, 1, (7.0, 0.8))
            axes[0, 0].set_axis_off()
            axes[0, 0].text(0.0, 0.5, textwrap.fill(text, 110), va="center", parse_math=False)
            style.titled(drawn, "Nothing to show", title, "", simulated=simulated)
            frame = pd.DataFrame({"note": [text]})
    style.finish(drawn, frame, str(stem), simulated=simulated)


def _about(inputs: Inputs, study: Study) -> tuple[str, bool]:
    """Return the title of what is shown, and whether its ratings are simulated."""
    about = About.read(inputs.get("about", ()))
    return study.get("title") or ", ".join(about.titles.values()) or study["entry"]["name"], about.simulated
