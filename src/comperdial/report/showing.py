"""Display text, tables and figures in notebooks as small HTML without scripts."""

from __future__ import annotations

import html
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import pandas as pd

from comperdial.report.render import interval, number, p_value

# Text is left-aligned, numbers right-aligned.
_STYLE = "<style>.text {text-align: left !important}</style>"
_FIT = "max-width:100%;height:auto;background:white"


class Page(str):
    """HTML that a notebook displays."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(self)


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
    """Format a value with its interval, if there is one."""
    # Prevent line breaks within it.
    return (number(value, digits=digits) + interval(low, high, digits=digits)).replace(" ", "\u00a0")


def chance(p: float) -> str:
    """Format a p-value, which is never 0."""
    return f"p {p_value(p)}"


def show(frame: pd.DataFrame, *, digits: int = 2, index: bool = True, escape: bool = True) -> Page:
    """Return a frame as an HTML table: rounded numbers, dashes for missing values, left-aligned text.

    Integer columns have no decimals; ``escape=False`` treats texts as HTML.
    """

    def written(value: Any) -> str:  # noqa: ANN401 - what a frame holds
        if isinstance(value, str):
            return html.escape(value) if escape else value
        return f"{value:,}" if isinstance(value, Integral) else number(value, digits=digits)

    columns = []
    for name, column in (frame.reset_index() if index else frame).items():
        kind = "" if pd.api.types.is_numeric_dtype(column) else ' class="text"'
        cells = [f"<td{kind}>{written(value)}</td>" for value in column]
        columns.append([f"<th{kind}>{html.escape(str(name))}</th>", *cells])
    head, *rows = map("".join, zip(*columns, strict=True))
    body = "".join(f"<tr>{row}</tr>\n" for row in rows)
    return Page(f'{_STYLE}<table class="dataframe"><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>')


def drawn(figure: Any) -> Page:  # noqa: ANN401 - matplotlib has no types
    """Return a matplotlib figure as inline SVG, and close it."""
    from comperdial.report.plots.style import svg_text

    return Page(svg_text(figure).replace("<svg", f'<svg style="{_FIT}"', 1))
