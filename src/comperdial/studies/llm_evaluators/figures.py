"""Figures 3 and 4: how the dimensions of one who rates go together, a panel each for people, GPT-4 and judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from comperdial.core.errors import SchemaError
from comperdial.report.plots.style import drawing, figure_and_axes, ink_on, sequential, short, titled
from comperdial.schema.evaluated import DIMENSIONS
from comperdial.studies.llm_evaluators.common import PAPER, RATERS, SHORT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PANEL = (2.15, 2.35)


def interdimensional_figure(
    frame: pd.DataFrame,
    *,
    title: str,
    labels: Mapping[str, str],
    missing: Sequence[str] = (),
    programs: Sequence[str] = (),
    name: str = "",
) -> Figure:
    """Draw the frame of :func:`comperdial.evaluation.interdimensional.interdimensional`, a panel for each who rates.

    Parameters
    ----------
    frame
        Columns dataset, who, dimension_a, dimension_b, value, n.
    title
        Of the data set.
    labels
        What a source of ratings or a metric is called.
    missing
        Sentences on who has no panel, and why.
    programs
        Those who rate by fixed rules and are no language model.
    name
        ``Figure 3``, the paper's; empty: none.

    Raises
    ------
    SchemaError
        When nobody rated all dimensions.
    """
    if frame.empty:
        raise SchemaError("nobody rated all dimensions", where=title, expected="ratings or scores of every dimension")
    known = {"human": "People", "gpt-4": "GPT-4 (recorded)"} | dict(labels)
    panels = sorted(set(frame["who"]), key=lambda who: (list(RATERS).index(who) if who in RATERS else len(RATERS), who))
    with drawing():
        from matplotlib.colors import Normalize

        colours = sequential()
        scale = Normalize(min(0.0, float(np.floor(np.nanmin(frame["value"]) * 10) / 10)), 1.0)
        figure, axes = figure_and_axes(1, len(panels), (_PANEL[0] * len(panels) + 0.6, _PANEL[1]))
        for ax, who in zip(axes[0], panels, strict=True):
            of_panel = frame[frame["who"] == who]
            _draw(ax, of_panel, colours, scale)
            ax.set_title(f"{known.get(who, who)}\nn = {int(of_panel['n'].max())}", loc="left", parse_math=False)
        _bar(figure, axes[0], scale, colours)
        titled(
            figure,
            f"{name}. How dimensions go together" if name else "How dimensions go together",
            title,
            " ".join(
                [
                    "Pearson correlation between the mean ratings, or the scores, of two dimensions over the n rated "
                    f"items. {_means(panels)}",
                    *missing,
                    *([f"The panels of language models in {PAPER}'s {name} are not here."] if name else []),
                    *_programs([known.get(who, who) for who in panels if who in programs]),
                ]
            ),
        )
    return figure


def _means(panels: Sequence[str]) -> str:
    """Say what a rating is the mean of, of those who have a panel."""
    over = [what for who, what in (("human", "people"), ("gpt-4", "GPT-4's recorded rounds")) if who in panels]
    return f"Ratings are means over {' or '.join(over)}." if over else ""


def _programs(names: Sequence[str]) -> list[str]:
    return [
        f"{name}: fixed rules that count words, no language model; its overall score is the mean of its other four, so "
        "that its row Ovr is high by construction."
        for name in names
    ]


def _draw(ax: Any, frame: pd.DataFrame, colours: Any, scale: Any) -> None:  # noqa: ANN401
    """Draw the lower triangle: the upper says the same, and the diagonal is 1."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    rated = set(frame["dimension_a"])
    names = next((list(own) for own in DIMENSIONS.values() if rated <= set(own)), sorted(rated))
    names = [name for name in names if name in rated]
    of = frame.set_index(["dimension_a", "dimension_b"])["value"]
    cells, faces = [], []
    for row, one in enumerate(names[1:]):
        for column, other in enumerate(names[: row + 1]):
            value = float(of[one, other])
            face = (1.0, 1.0, 1.0, 1.0) if np.isnan(value) else colours(scale(value))
            cells.append(Rectangle((column - 0.48, row - 0.48), 0.96, 0.96))
            faces.append(face)
            ink = "#777777" if np.isnan(value) else ink_on(face)
            ax.text(column, row, short(value), ha="center", va="center", color=ink, fontsize=7.5)
    ax.add_collection(PatchCollection(cells, facecolors=faces, edgecolors="none"))
    count = len(names) - 1
    ax.set_xticks(range(count), [SHORT.get(name, name) for name in names[:-1]])
    ax.set_yticks(range(count), [SHORT.get(name, name) for name in names[1:]])
    ax.set_xlim(-0.55, count - 0.45)
    ax.set_ylim(count - 0.45, -0.55)
    ax.set_aspect("equal")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def _bar(figure: Figure, axes: Any, scale: Any, colours: Any) -> None:  # noqa: ANN401
    from matplotlib.cm import ScalarMappable

    bar = figure.colorbar(ScalarMappable(scale, colours), ax=list(axes), fraction=0.03, pad=0.01, aspect=20)
    bar.set_label("Pearson")
    bar.outline.set_visible(False)
