"""Metrics that run here on every data set that people rated response by response, next to recorded judges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.core.errors import NothingToShowError, UnknownNameError
from comperdial.evaluation.fitting import WHOLE, variants, weights_frame
from comperdial.metrics.local import Coefficients
from comperdial.report import ranking
from comperdial.report.about import About
from comperdial.report.correlations import (
    COEFFICIENTS,
    LEGEND,
    READING,
    halved,
    left_out_notes,
    over_tests,
    partial_notes,
    pooled,
    read_reported,
    with_interval,
)
from comperdial.report.render import Section, Table, grouped_notes, number, spread

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Inputs = Mapping[str, Sequence[Path]]
Study = Mapping[str, Any]
Record = Mapping[Any, Any]

SHOWN = ("spearman", "pearson")
MEAN = "Mean"
# Which responses of a data set a row's values are of.
ALL, WITHIN, AGENTS = "all responses", "within systems", "without human responses"
_RESTRICTED = {"system": WITHIN, "agents": AGENTS}
_HELD_OUT = (
    "local is scored held out: the coefficients that score a data set saw neither its ratings nor those of another set of "
    "the same source (docs/local-metric.md)"
)
_SAMPLED = "With fewer than four systems, intervals and tests resample dialogues alone"


def table(inputs: Inputs, study: Study) -> Table:
    """Show how well metrics that run here agree with people, and what they cost."""
    about, made = About.read(inputs["about"]), frame(inputs, study)
    rows, titles = study["entry"]["rows"], about.titles
    there, whole = set(made["metric"]), made[made["responses"] == ALL]
    absent = {
        row["metric"]: about.not_run.get(row["metric"], "no scores") for row in rows if row["metric"] not in there
    }
    counts = whole.groupby("dataset")["n"].max()
    costs = _costs(inputs)
    costs = costs[costs["metric"].isin(there)]
    planned, notes = _contrasts(inputs, study, about)
    caption = (
        "Correlation with the mean rating by people of single responses, in the dimension nearest to overall quality: "
        + "; ".join(f"{titles[name]} {counts[name]:,}" for name in study["datasets"] if name in counts)
        + " responses. Sorted by the mean over all data sets, and below them, without a value on some, by the mean of the "
        "others. Rows marked recorded were computed by others; rows marked reference compare with a reference, which some "
        "data sets lack."
    )
    return Table(
        title="Metrics that run here, next to recorded judges",
        caption=f"{caption} {LEGEND}" if made["loso_halved"].any() else caption,
        frame=made.drop(columns=["signature", "not_run"]),
        sections=[
            *(_section(made, "label", "Metric", study, titles, name, ranked=True) for name in SHOWN),
            planned,
            _cost_section(whole, costs),
        ],
        notes=[
            _HELD_OUT,
            *READING,
            *_corrected(whole, titles),
            f"{WITHIN.capitalize()}: the mean of the coefficients within each system, where there are several. "
            f"{AGENTS.capitalize()}: where some systems are human (kind, in the table of systems)",
            f"{MEAN} is over all data sets, of the metrics that have a value on each",
            _SAMPLED,
            *left_out_notes(made[made["responses"] != WITHIN], titles),
            *partial_notes(made),
            *grouped_notes([*absent.items()]),
            *(
                f"Cost, {how}: {', '.join(part['metric'])} ({'; '.join(dict.fromkeys(part['machine']))}, "
                f"{'; '.join(dict.fromkeys(part['date']))})"
                for how, part in costs.groupby("how", sort=False)
            ),
            *notes,
        ],
    )


def frame(inputs: Inputs, study: Study) -> pd.DataFrame:
    """Return one record per row, data set and coefficient that has a value.

    Ranks are corrected over the pairs of the rows. Values within systems and without human responses, which the row of
    ``local`` has, are records of their own (``responses``) below it. ``seconds`` and ``usd`` are for 1,000 responses.
    """
    rows = pd.DataFrame(study["tables"]["local_metrics"]["rows"])
    rows = rows.assign(place=range(len(rows)), figure=rows["figure"].eq(True))
    outputs = [*rows["metric"] + ":" + rows["output"]]
    about = About.read(inputs["about"])
    found = _of_turns(inputs["correlations"], "correlations", about)
    found = ranking.of_outputs(found[found["n"] > 0], outputs)
    if found.empty:
        raise NothingToShowError("no score of any row")
    whole = ranking.with_ranks(pooled(found), _of_turns(inputs["pairs"], "pairs", about))
    key = ["dataset", "metric", "output", "coefficient"]
    parts = found[found["grouping"].isin([*_RESTRICTED])].assign(rank=np.nan, tests=np.nan)
    # Within the only system there is nothing to average.
    parts = parts[(parts["metric"] == "local") & ((parts["grouping"] != "system") | (parts["n"] > 1))]
    # Within systems, what is averaged are systems: the responses are those of all of them.
    responses = parts[key].merge(whole[[*key, "n"]], on=key, how="left")["n"].to_numpy()
    parts = parts.assign(n=parts["n"].where(parts["grouping"] != "system", responses))
    both = pd.concat([whole, parts], ignore_index=True)
    both["responses"] = both["grouping"].map({"pooled": ALL, **_RESTRICTED})
    made = rows.merge(both, on=["metric", "output"])
    made = made.merge(_costs(inputs)[["metric", "seconds", "usd"]], on="metric", how="left")
    made["label"] = made["label"].where(made["responses"] == ALL, made["label"] + ", " + made["responses"])
    part = made["responses"].map([ALL, WITHIN, AGENTS].index)
    made = made.assign(part=part, set=made["dataset"].map(study["datasets"].index), lacking=None, not_run=None)
    made = made.sort_values(["place", "part", "set", "coefficient"], kind="stable").reset_index(drop=True)
    made["loso_halved"] = halved(made)
    columns = [
        "label", "metric", "output", "figure", "responses", "dataset", "target", "level", "against", "coefficient", "value", "p",
        "low", "high", "rank", "tests", "n", "coverage", "cut", "lacking", "loso_value", "loso_system", "seconds", "usd",
        "loso_halved", "signature", "not_run",
    ]  # fmt: skip
    return made[columns].astype({"rank": "Int32", "tests": "Int32"})


def _of_turns(paths: Sequence[Path], name: str, about: About) -> pd.DataFrame:
    """Return the rows of results on single responses, in the dimension of each data set, by Pearson and Spearman."""
    found = pd.concat([schema.read(path, name) for path in paths], ignore_index=True)
    found = found[(found["level"] == "turn") & found["coefficient"].isin(SHOWN)]
    chosen = {str(name): about.dimension(str(name), set(of["target"])) for name, of in found.groupby("dataset")}
    return found[found["target"] == found["dataset"].map(chosen)]


def _costs(inputs: Inputs) -> pd.DataFrame:
    return read_reported(inputs["costs"], ("metric", "how", "machine", "date"), ("seconds", "usd"))


def _section(
    made: pd.DataFrame,
    row: str,
    head: str,
    study: Study,
    titles: Mapping[str, str],
    coefficient: str,
    *,
    ranked: bool = False,
) -> Section:
    """Return a section: rows by data sets, with their mean; ``ranked``: by the mean, rows without one on every set below."""
    of = made[(made["coefficient"] == coefficient) & made["value"].notna()]
    groups = of.groupby(row, sort=False)
    means, counts = groups["value"].mean(), groups["dataset"].nunique()
    full = means[counts == len(study["datasets"])]
    order = [*dict.fromkeys(made[row])]
    if ranked:
        # What is restricted to some responses stands below the row that it belongs to.
        above = (
            made[made["responses"] == ALL].drop_duplicates(["metric", "output"]).set_index(["metric", "output"])[row]
        )
        first = {name: above[metric, output] for name, metric, output in made[[row, "metric", "output"]].to_numpy()}
        order = sorted(order, key=lambda name: (first[name] not in full, -means.get(first[name], -np.inf)))
    shown = made[made["coefficient"] == coefficient]
    cells = {(record[row], record["dataset"]): _cell(record) for record in shown.to_dict("records")}
    texts = [
        [number(full.get(name)), *(cells.get((name, dataset), "–") for dataset in study["datasets"])]
        for name in order
        if any((name, dataset) in cells for dataset in study["datasets"])
    ]
    index = pd.Index([name for name in order if any((name, one) in cells for one in study["datasets"])], name=head)
    columns = pd.MultiIndex.from_product([["Data set"], [MEAN, *(titles[name] for name in study["datasets"])]])
    return Section(COEFFICIENTS[coefficient], pd.DataFrame(texts, index=index, columns=columns, dtype=object))


def _cell(record: Record) -> str:
    # A mean of coefficients has no p of its own, so nothing that an asterisk would say.
    return with_interval(record, starred=record.get("responses") != WITHIN)


def _corrected(made: pd.DataFrame, titles: Mapping[str, str]) -> list[str]:
    """Return the note that says over how many tests ranks were corrected."""
    tests = made.dropna(subset="tests").groupby("dataset", sort=False)["tests"].max()
    counts = {titles[str(name)]: int(tests[name]) for name in sorted(tests.index)}
    return [f"Ranks of a column are corrected over all pairs of its rows: {over_tests(counts)}"] if counts else []


def _cost_section(whole: pd.DataFrame, costs: pd.DataFrame) -> Section:
    known = costs.set_index("metric")
    first = whole.drop_duplicates("label").set_index("label")["metric"]
    first = first[first.isin(known.index)]
    texts = pd.DataFrame(
        {
            ("Cost", "CPU seconds"): [number(known["seconds"][name], digits=1) for name in first],
            ("Cost", "US dollars"): [number(known["usd"][name], digits=2) for name in first],
            ("Cost", "How"): [known["how"][name] for name in first],
        },
        index=first.index.rename("Metric"),
    )
    return Section("1,000 responses", texts)


# Planned contrasts


def contrasts(inputs: Inputs, study: Study) -> Table:
    """Show the planned contrasts, corrected over these alone."""
    section, notes = _contrasts(inputs, study, About.read(inputs["about"]))
    return Table(
        title="Planned contrasts of metrics that run here and recorded judges",
        caption="Whether two metrics correlate alike with the mean rating by people of single responses. The pairs are those "
        "that study.yaml names; no others are tested here.",
        frame=contrast_frame(inputs, study),
        sections=[section],
        notes=[
            _HELD_OUT,
            "The interval of a difference is not corrected, and leaves out 0 just where p < 0.05. Test and interval resample "
            f"systems and dialogues. {_SAMPLED}",
            *notes,
        ],
    )


def contrast_frame(inputs: Inputs, study: Study) -> pd.DataFrame:
    """Return :func:`comperdial.report.ranking.contrasts` of the study, with the labels of its rows.

    Raises
    ------
    UnknownNameError
        When a contrast names no row or no data set of the study.
    """
    labels = {f"{row['metric']}:{row['output']}": row["label"] for row in study["tables"]["local_metrics"]["rows"]}
    where = f"study {study['name']}, planned_contrasts"
    for entry in study["planned_contrasts"]:
        for name in (entry["metric"], entry["against"]):
            if name not in labels:
                raise UnknownNameError("row", name, labels, where=where)
        for dataset in entry["datasets"]:
            if dataset not in study["datasets"]:
                raise UnknownNameError("dataset", dataset, study["datasets"], where=where)
    found = ranking.contrasts(
        _of_turns(inputs["pairs"], "pairs", About.read(inputs["about"])), study["planned_contrasts"]
    )
    named = found.assign(metric=found["metric"].map(labels), against=found["against"].map(labels))
    return named.rename(columns={"metric": "label", "against": "minus"})


def _contrasts(inputs: Inputs, study: Study, about: About) -> tuple[Section, list[str]]:
    """Return the section of planned contrasts, and how to read it."""
    made = contrast_frame(inputs, study)
    shown = made.assign(
        pair=made["label"] + " minus " + made["minus"],
        title=made["dataset"].map(about.titles),
        group=made["coefficient"].map(COEFFICIENTS),
    ).sort_values("coefficient", ascending=False, kind="stable")
    cells = {"difference": _difference, "p": _p("p"), "p corrected": _p("p_adjusted")}
    texts = spread(shown, {"pair": "Difference", "title": "Data set"}, "group", cells)
    counts = {COEFFICIENTS[str(name)]: int(of["tests"].max()) for name, of in made.groupby("coefficient", sort=False)}
    lost = shown[shown["p"].isna()].drop_duplicates(["pair", "dataset"])
    return Section("Planned contrasts", texts), [
        f"Planned contrasts: p corrected by Holm over these alone, by each coefficient: {over_tests(counts)}. Next to each "
        "difference its 95 % interval, which is not corrected",
        *(
            f"Planned contrast {one['metric']} against {one['against']}: {one['note']}"
            for one in study["planned_contrasts"]
            if "note" in one
        ),
        *(
            f"Planned contrast {one['pair']}: not tested on {one['title']}, where one of the two has no scores"
            for one in lost.to_dict("records")
        ),
    ]


def _difference(record: Record) -> str:
    # With three digits an end near 0 says on which side it is.
    ends: str = "" if pd.isna(record["low"]) else f" [{number(record['low'])}, {number(record['high'])}]"
    return number(record["difference"], sign=True) + ends


def _p(name: str) -> Callable[[Record], str]:
    return lambda record: "< 0.001" if record[name] < 0.001 else number(record[name])


# What each part of `local` contributes


def ablation(inputs: Inputs, study: Study) -> Table:
    """Show `local` without each of its parts and with each alone, held out, and the weights of its features."""
    known, titles = Coefficients.read(inputs["coefficients"][0]), About.read(inputs["about"]).titles
    found = schema.read(inputs["correlations"][0], "correlations")
    found = ranking.with_ranks(found, schema.read(inputs["pairs"][0], "pairs"))
    order = list(variants(known.features))
    made = found.assign(place=found["output"].map(order.index)).sort_values("place", kind="stable")
    made = made.assign(loso_halved=halved(made), responses=ALL)
    weights = weights_frame(known)
    columns = {"weight": "all sets", "lowest": "lowest", "highest": "highest"}
    texts = weights.set_index(["part", "feature"]).rename_axis(index=["Part", "Feature"])
    texts = texts.map(lambda value: number(value, sign=True)).rename(columns=columns)
    texts.columns = pd.MultiIndex.from_product([["Weight"], texts.columns])
    caption = (
        "Held-out correlation of `local` with people's ratings: with all parts, without each, with each alone. Each variant "
        "was fitted anew, its penalty chosen among the sets that it may see."
    )
    unused = ["place", "responses", "signature", "grouping", "metric", "p_exact"]
    return Table(
        title="The learned metric without its parts",
        caption=f"{caption} {LEGEND}" if made["loso_halved"].any() else caption,
        frame=made.drop(columns=[name for name in unused if name in made]).rename(columns={"output": "variant"}),
        sections=[
            *(_section(made, "output", "Variant", study, titles, name) for name in SHOWN),
            Section("Weights of what ships", texts),
        ],
        notes=[
            _HELD_OUT,
            f"{len(order)} variants were tried; what ships is the first, {WHOLE}, whatever the others give",
            "Weights are of standardised features: what one standard deviation within a data set adds, in standard "
            "deviations of the rating; lowest and highest are of the fits without one group",
            *READING[1:],
            *_corrected(made, titles),
            *left_out_notes(made, titles),
        ],
    )


def figure(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw Spearman's coefficient of the rows marked for it with intervals, a panel for each data set."""
    from comperdial.report.plots.style import QUIET, SERIES, drawing, figure_and_axes, lines_behind, titled

    titles, made = About.read(inputs["about"]).titles, frame(inputs, study)
    shown = made[made["figure"] & (made["coefficient"] == "spearman") & made["value"].notna()]
    shown = shown[shown["responses"] == ALL]
    labels = list(dict.fromkeys(shown["label"]))
    datasets = [name for name in study["datasets"] if name in set(shown["dataset"])]
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
            ax.axvline(0, color=QUIET, lw=0.8, zorder=1)
            lines_behind(ax, "both")
            for record in shown[shown["dataset"] == dataset].to_dict("records"):
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
    return drawn, shown.drop(columns=["figure", "responses", "signature", "not_run", "loso_halved"])
