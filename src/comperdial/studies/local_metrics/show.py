"""How the tables of local metrics and their figure look."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from comperdial.metrics.local import Coefficients
from comperdial.report import leave_out
from comperdial.report.document import Column, Document, Section, number, pivot, records_by
from comperdial.report.labels import not_run_notes
from comperdial.report.tables import (
    COEFFICIENT_NAMES,
    READING,
    corrected_over,
    over_tests,
    partial_notes,
    with_interval,
)
from comperdial.studies.local_metrics.frame import AGENTS, ALL, COEFFICIENTS, WHOLE, WITHIN, variants, weights_frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MEAN = "Mean"
_HELD_OUT = (
    "local is scored held out: the coefficients that score a data set saw neither its ratings nor those of another set of "
    "the same source (docs/local-metric.md)"
)


def with_means(frame: pd.DataFrame, row: str, datasets: Sequence[str]) -> pd.DataFrame:
    """Add, as a data set ``Mean``, the mean over data sets of the rows that have a value on each of them."""
    there = frame[frame["value"].notna()]
    groups = there.groupby([row, "coefficient"], sort=False)
    means = groups.agg(value=("value", "mean"), sets=("dataset", "nunique")).reset_index()
    means = means[means["sets"] == len(datasets)].drop(columns="sets")
    rows = [
        {"low": np.nan, "high": np.nan, "p": 0.0, "rank": None, "coverage": 1.0, "dataset": _MEAN, **mean}
        for mean in means.to_dict("records")
    ]
    return pd.DataFrame([*frame.to_dict("records"), *rows], columns=frame.columns)


def _cell(cell: Mapping[str, Any]) -> str:
    # A mean of coefficients has no p of its own, so nothing that an asterisk would say.
    return with_interval(cell, starred=cell.get("responses") != WITHIN)


def _columns(titles: Mapping[str, str]) -> list[Column]:
    mean = Column("Data set", _MEAN, lambda cell: number(cell["value"]), (_MEAN,))
    return [mean, *(Column("Data set", title, _cell, (dataset,)) for dataset, title in titles.items())]


def _sections(
    frame: pd.DataFrame, row: str, head: str, titles: Mapping[str, str], *, ranked: bool = False
) -> list[Section]:
    """Return a section a coefficient; ``ranked``: the rows by their means, those without one on every set below."""
    whole = with_means(frame, row, list(titles))
    names = [str(name) for name in dict.fromkeys(frame[row])]
    found = []
    for coefficient in reversed(COEFFICIENTS):
        cells = records_by(whole[whole["coefficient"] == coefficient], [row, "dataset"])
        means = frame[frame["coefficient"] == coefficient].groupby(row)["value"].mean()
        first = _first_of(frame, row)
        order = sorted(
            names,
            key=lambda name: ((first[name], _MEAN) not in cells, -means.get(first[name], -np.inf), names.index(name)),
        )
        rows = {(name,): [name] for name in (order if ranked else names)}
        found.append(pivot(COEFFICIENT_NAMES[coefficient], cells, rows, [head], _columns(titles), empty=("–",)))
    return found


def _first_of(frame: pd.DataFrame, row: str) -> dict[str, str]:
    """Return for each row the one that it is printed below: itself, or the row of all responses that it is a part of."""
    names = {str(name): str(name) for name in frame[row]}
    if "responses" not in frame:
        return names
    whole = frame[frame["responses"] == ALL].drop_duplicates(["metric", "output"])
    above = whole.set_index(["metric", "output"])[row]
    parts = frame[frame["responses"] != ALL].drop_duplicates(row)
    return names | {
        str(name): str(above.get((metric, output), name))
        for name, metric, output in parts[[row, "metric", "output"]].itertuples(index=False, name=None)
    }


def local_document(
    frame: pd.DataFrame,
    rows: Sequence[Mapping[str, Any]],
    titles: Mapping[str, str],
    not_run: Mapping[str, str],
    costs: pd.DataFrame,
) -> Document:
    """Render the frame of :func:`comperdial.studies.local_metrics.frame.local_frame`."""
    there = set(frame["metric"])
    absent = {row["metric"]: not_run.get(row["metric"], "no scores") for row in rows if row["metric"] not in there}
    whole = frame[frame["responses"] == ALL]
    spans = whole.groupby("dataset")["n"].max()
    shown = costs[costs["metric"].isin(there)]
    return Document(
        title="Metrics that run here, next to recorded judges",
        caption=leave_out.with_legend(
            "Correlation with the mean rating by people of single responses, in the dimension nearest to overall quality: "
            + "; ".join(f"{title} {spans[name]:,}" for name, title in titles.items() if name in spans)
            + " responses. Sorted by the mean over all data sets; below, metrics that have no value on some, by the mean of "
            "what they have. Rows marked recorded were computed by others; rows marked reference compare with a reference, "
            "which some data sets lack.",
            frame,
        ),
        sections=[*_sections(frame, "label", "Metric", titles, ranked=True), _cost_section(whole, shown)],
        tidy=leave_out.with_halved(frame).drop(columns="signature"),
        notes=[
            _HELD_OUT,
            *READING,
            *corrected_over(frame, titles),
            f"{WITHIN.capitalize()}: the mean of the coefficients within each system, where there are several: what it says of "
            f"responses of one system. {AGENTS.capitalize()}: where some systems are human (kind, in the table of systems)",
            "Mean is over all data sets, of the metrics that have a value on each",
            "With fewer than four systems an interval takes dialogues alone as what was sampled",
            *leave_out.notes(frame, titles),
            *partial_notes(frame, "label"),
            *not_run_notes(absent.items()),
            *(
                f"Cost, {how}: {', '.join(part['metric'])} ({'; '.join(dict.fromkeys(part['machine']))}, "
                f"{'; '.join(dict.fromkeys(part['date']))})"
                for how, part in shown.groupby("how", sort=False)
            ),
        ],
    )


def with_contrasts(
    document: Document, frame: pd.DataFrame, planned: Sequence[Mapping[str, Any]], titles: Mapping[str, str]
) -> Document:
    """Return the table of local metrics with the planned contrasts below it."""
    section, notes = _contrasts(frame, planned, titles)
    *values, costs = document.sections
    return replace(document, sections=[*values, section, costs], notes=[*document.notes, *notes])


def contrasts_document(
    frame: pd.DataFrame, planned: Sequence[Mapping[str, Any]], titles: Mapping[str, str]
) -> Document:
    """Render the frame of :func:`comperdial.studies.local_metrics.frame.contrast_frame`."""
    section, notes = _contrasts(frame, planned, titles)
    return Document(
        title="Planned contrasts of metrics that run here and recorded judges",
        caption="Whether two metrics correlate alike with the mean rating by people of single responses. The pairs are those "
        "that study.yaml names; no others are tested here.",
        sections=[section],
        tidy=frame,
        notes=[
            _HELD_OUT,
            "The interval of a difference is not corrected, and leaves out 0 just where p < 0.05. Test and interval take "
            "systems and dialogues as what was sampled, with fewer than four systems dialogues alone",
            *notes,
        ],
    )


def _contrasts(
    frame: pd.DataFrame, planned: Sequence[Mapping[str, Any]], titles: Mapping[str, str]
) -> tuple[Section, list[str]]:
    """Return the section of planned contrasts, and how to read it."""
    cells = records_by(frame, ["label", "minus", "dataset", "coefficient"])
    rows = {key[:3]: [f"{key[0]} minus {key[1]}", titles[str(key[2])]] for key in cells}
    columns = [
        column
        for coefficient in reversed(COEFFICIENTS)
        for column in (
            Column(COEFFICIENT_NAMES[coefficient], "difference", _difference, (coefficient,)),
            Column(COEFFICIENT_NAMES[coefficient], "p", _p("p"), (coefficient,)),
            Column(COEFFICIENT_NAMES[coefficient], "p corrected", _p("p_adjusted"), (coefficient,)),
        )
    ]
    counts = {
        COEFFICIENT_NAMES[str(name)]: int(of["tests"].max()) for name, of in frame.groupby("coefficient", sort=False)
    }
    lost = frame[frame["p"].isna()].drop_duplicates(["label", "minus", "dataset"])
    return pivot("Planned contrasts", cells, rows, ["Difference", "Data set"], columns), [
        f"Planned contrasts: p corrected by Holm over these alone, by each coefficient: {over_tests(counts)}. Next to each "
        "difference its 95 % interval, which is not corrected",
        *(
            f"Planned contrast {row['metric']} against {row['against']}: {row['note']}"
            for row in planned
            if "note" in row
        ),
        *(
            f"Planned contrast {row['label']} minus {row['minus']}: not tested on {titles[row['dataset']]}, where one of the "
            "two has no scores"
            for row in lost.to_dict("records")
        ),
    ]


def _difference(record: Mapping[Any, Any]) -> str:
    # With three digits an end near 0 says on which side it lies.
    ends = "" if pd.isna(record["low"]) else f" [{number(record['low'])}, {number(record['high'])}]"
    return number(record["difference"], sign=True) + ends


def _p(name: str) -> Callable[[Mapping[Any, Any]], str]:
    return lambda record: "< 0.001" if record[name] < 0.001 else number(record[name])


def _cost_section(frame: pd.DataFrame, costs: pd.DataFrame) -> Section:
    known = costs.set_index("metric")
    rows = []
    for label, metric in frame.drop_duplicates("label")[["label", "metric"]].itertuples(index=False, name=None):
        if metric in known.index:
            cost = known.loc[metric]
            rows.append([label, number(cost["seconds"], digits=1), number(cost["usd"], digits=2), str(cost["how"])])
    return Section(
        "1,000 responses", [("", "Metric"), ("Cost", "CPU seconds"), ("Cost", "US dollars"), ("Cost", "How")], rows
    )


def ablation_document(correlations: pd.DataFrame, known: Coefficients, titles: Mapping[str, str]) -> Document:
    """Render the correlations of the variants of `local`, held out, and the weights of what ships."""
    order = list(variants(known.features))
    frame = correlations.assign(place=correlations["output"].map(order.index)).sort_values("place", kind="stable")
    weights = weights_frame(known)
    tidy = (
        leave_out.with_halved(frame)
        .drop(columns=["place", "signature", "grouping", "metric"])
        .rename(columns={"output": "variant"})
    )
    rows = [
        [row["part"], row["feature"], *(number(row[name], sign=True) for name in ("weight", "lowest", "highest"))]
        for row in weights.to_dict("records")
    ]
    heads = [("", "Part"), ("", "Feature"), ("Weight", "all sets"), ("Weight", "lowest"), ("Weight", "highest")]
    return Document(
        title="The learned metric without its parts",
        caption=leave_out.with_legend(
            "Held-out correlation of `local` with people's ratings: with all parts, without each, with each alone. Each "
            "variant was fitted anew, its penalty chosen among the sets that it may see.",
            frame,
        ),
        sections=[*_sections(frame, "output", "Variant", titles), Section("Weights", heads, rows)],
        tidy=tidy,
        notes=[
            _HELD_OUT,
            f"{len(order)} variants were tried; what ships is the first, {WHOLE}, whatever the others give",
            "Weights are of standardised features: what one standard deviation within a data set adds, in standard "
            "deviations of the rating; lowest and highest are of the fits without one group",
            *READING[1:],
            *corrected_over(frame, titles),
            *leave_out.notes(frame, titles),
        ],
    )


def local_figure(frame: pd.DataFrame, titles: Mapping[str, str]) -> tuple[Figure, pd.DataFrame]:
    """Draw Spearman's coefficient of the rows marked for it with intervals, a panel for each data set."""
    from comperdial.report.plots.style import QUIET, SERIES, drawing, figure_and_axes, lines_behind, titled

    shown = frame[frame["figure"] & (frame["coefficient"] == "spearman") & frame["value"].notna()]
    shown = shown[shown["responses"] == ALL]
    labels = list(dict.fromkeys(shown["label"]))
    datasets = [name for name in titles if name in set(shown["dataset"])]
    columns = min(3, len(datasets))
    height = {label: len(labels) - 1 - place for place, label in enumerate(labels)}
    lowest = min(0.0, float(np.nanmin(shown[["value", "low"]].to_numpy(np.float64))))
    with drawing():
        lines = -(-len(datasets) // columns)
        drawn, axes = figure_and_axes(
            lines, columns, (7.6, lines * (0.155 * len(labels) + 0.45)), sharex=True, sharey=True
        )
        for place, dataset in enumerate(datasets):
            ax = axes[place // columns][place % columns]
            part = shown[shown["dataset"] == dataset]
            ax.axvline(0, color=QUIET, lw=0.8, zorder=1)
            lines_behind(ax, "both")
            for record in part.to_dict("records"):
                recorded, own = "recorded" in record["label"], record["metric"] == "local"
                colour, mark, _ = SERIES[1 if own else 2 if recorded else 0]
                y = height[record["label"]]
                if pd.notna(record["low"]):
                    ax.plot([record["low"], record["high"]], [y, y], color=colour, lw=1.1, zorder=2)
                ax.plot([record["value"]], [y], mark, color=colour, ms=4, zorder=3)
            ax.set_title(titles[dataset], loc="left", fontweight="bold")
            ax.set_yticks(np.arange(len(labels)), labels[::-1])
            ax.set_ylim(-0.7, len(labels) - 0.3)
            ax.set_xlim(max(-1.0, lowest - 0.05), 1.0)
        for ax in axes.flat[len(datasets) :]:
            ax.set_axis_off()
        titled(
            drawn,
            "Metrics that run here, next to recorded judges",
            "Spearman with people's ratings of responses",
            "Lines are 95 % intervals. Squares: local, the learned metric, by coefficients that never saw the data set or "
            "another of its source. Triangles: judges that others ran and recorded. A metric that needs a reference has no "
            "mark where there is none.",
        )
    return drawn, shown.drop(columns=["figure", "responses", "signature"])
