"""USR (Mehri and Eskenazi 2020): the agreement of its annotators, and the figure of its table of correlations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from comperdial import schema
from comperdial.core.errors import NothingToShowError
from comperdial.evaluation import ratings
from comperdial.report import correlations
from comperdial.report.about import About, Inputs, Study
from comperdial.report.correlations import COEFFICIENTS, FEW
from comperdial.report.plots import style
from comperdial.report.render import Section, Table, as_number, described, spread

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LEVELS = {"turn": "responses", "system": "systems"}
# Each coefficient's style and vertical offset.
_SHOWN = {"pearson": (style.SERIES[0], 0.18), "spearman": (style.SERIES[1], -0.18)}
# Maximum rows of a panel that is readable on a phone; the table has all.
_MOST_ROWS = 25


def agreement(inputs: Inputs, study: Study) -> Table:
    """Return the mean correlation between the positions of annotators, next to USR's Table 1."""
    result = pd.concat([ratings.agreement(schema.read(path, "ratings")) for path in inputs["ratings"]])
    if result.empty:
        raise NothingToShowError("this needs ratings by at least two annotators")
    titles, key = About.read(inputs["about"]).titles, ["dataset", "dimension", "coefficient"]
    known = correlations.read_reported(inputs["reported"], (*key, "note"))[[*key, "value", "note"]]
    frame = result.rename(columns={"value": "ours"})
    frame = frame.merge(known.rename(columns={"value": "reported"}), on=key, how="left")
    frame["difference"] = frame["ours"] - frame["reported"]
    shown = frame.assign(group=frame["dataset"].map(titles) + " " + frame["coefficient"].map(COEFFICIENTS))
    cells = {name: as_number(name, digits=4, sign=name == "difference") for name in ("ours", "reported", "difference")}
    section = Section("Inter-annotator agreement", spread(shown, {"dimension": "Dimension"}, "group", cells))
    noted = frame[frame["note"].fillna("") != ""]
    notes = noted["dataset"] + ", " + noted["dimension"] + ", " + noted["coefficient"] + ": " + noted["note"]
    return described(study, frame, [section], *notes)


def figure(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw the table ``usr``: ours as markers with 95 % intervals, hollow for few systems; reported values as ticks.

    A data set shows the rows with an interval or a reported value, at most 25, highest Spearman over responses first.
    """
    titles, entry, table = About.read(inputs["about"]).titles, study["entry"], study["tables"]["usr"]
    frame = correlations.frame(inputs, {**study, "entry": table}, table["rows"])
    run = frame[frame["value"].notna()]
    rows = {str(dataset): labels for dataset, of_set in run.groupby("dataset", sort=False) if (labels := _rows(of_set))}
    if not rows:
        raise NothingToShowError("no metric has an interval or a reported value")
    counts = [len(labels) for labels in rows.values()]
    with style.drawing():
        size = (6.6, 0.235 * sum(counts) + 0.6 * len(rows) + 0.7)
        drawn, axes = style.figure_and_axes(len(rows), 2, size, sharex="col", sharey="row", height_ratios=counts)
        for line, (dataset, labels) in enumerate(rows.items()):
            for ax, level in zip(axes[line], _LEVELS, strict=True):
                cells = run[(run["dataset"] == dataset) & (run["level"] == level) & run["label"].isin(labels)]
                n, y = cells["n"].max(), style.rows_of(ax, cells["label"], labels)
                for name, (look, above) in _SHOWN.items():
                    points = cells[cells["coefficient"] == name]
                    height, face = y[points.index] + above, "white" if pd.notna(n) and n <= FEW else look["color"]
                    style.marks(ax, points, height, **look, mfc=face, mec=look["color"], mew=1.1, ms=4.2)
                    ax.plot(points["reported"], height, "|", color="black", ms=7, mew=1.6, ls="")
                ax.axvline(0, color="0.6", lw=0.8, zorder=0)
                ax.grid(axis="y")
                many = "" if pd.isna(n) else f"{n} {_LEVELS[level]}"
                ax.set_title(f"{titles[dataset]}\n{many}", loc="left", fontweight="bold", fontsize=9)
                ax.set_xlabel("Correlation" if line == len(rows) - 1 else "")
        handles = [
            *(
                style.handle(f"{COEFFICIENTS[name]}, ours", **look | {"lw": 1, "ls": "-"})
                for name, (look, _) in _SHOWN.items()
            ),
            style.handle("Reported", marker="|", color="black", ms=7, mew=1.6, ls=""),
            style.handle(f"Hollow: {FEW} systems or fewer", marker="o", mfc="white", mec="0.3", ls=""),
        ]
        style.titled(drawn, entry["title"], "USR", entry["notes"], handles=handles)
    return drawn, frame.rename(columns={"value": "ours"})


def _rows(run: pd.DataFrame) -> list[str]:
    """Return the labels in a data set's panels, highest Spearman over responses first."""
    shown = run[(run["level"] == "turn") & (run["coefficient"] == "spearman")]
    shown = shown[shown["low"].notna() | shown["reported"].notna()].sort_values("value", ascending=False)
    # Rows with a reported value are always kept.
    kept = shown.sort_values("reported", key=pd.isna, kind="stable").head(_MOST_ROWS)
    return [str(label) for label in shown["label"] if label in {*kept["label"]}]
