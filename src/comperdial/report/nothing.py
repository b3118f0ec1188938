"""What stands in the place of a table or figure where the data lack what it shows."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pandas as pd

from comperdial.report.document import SIMULATED, Document, with_suffix, write


def write_table(stem: str | Path, title: str, reason: str, *, simulated: bool = False) -> None:
    """Write a table's four forms, which say that there is nothing to show and why."""
    text = f"Nothing to show: {reason}"
    write(
        Document(
            title=title or Path(stem).name,
            caption=with_suffix(f"{text}.", SIMULATED if simulated else ""),
            sections=[],
            tidy=pd.DataFrame({"note": [text]}),
        ),
        stem,
    )


def write_figure(stem: str | Path, title: str, reason: str, *, simulated: bool = False) -> None:
    """Write a figure's forms, which say that there is nothing to show and why."""
    from comperdial.report.plots.style import drawing, figure_and_axes, finish, titled

    text = f"Nothing to show: {reason}"
    with drawing():
        figure, axes = figure_and_axes(1, 1, (7.0, 0.8))
        axes[0, 0].set_axis_off()
        axes[0, 0].text(0.0, 0.5, textwrap.fill(text, 110), va="center", parse_math=False)
        titled(figure, "Nothing to show", title or Path(stem).name, "", simulated=simulated)
        finish(figure, pd.DataFrame({"note": [text]}), stem, simulated=simulated)
