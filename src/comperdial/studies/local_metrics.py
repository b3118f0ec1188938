"""Local metrics on every data set with human ratings of responses, next to recorded judges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.core.errors import NothingToShowError, UnknownNameError
from comperdial.evaluation.fitting import WHOLE, variants, weights_frame
from comperdial.metrics.local import Coefficients
from comperdial.report import correlations, ranking
from comperdial.report.about import About, Inputs, Study
from comperdial.report.plots import style
from comperdial.report.render import (
    Section,
    Table,
    arranged,
    described,
    estimate,
    grouped_notes,
    number,
    small_p,
    spread,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = ("spearman", "pearson")
# The responses behind a row's values.
ALL, WITHIN, AGENTS = "all responses", "within systems", "without human responses"
_RESPONSES = {"pooled": ALL, "system": WITHIN, "agents": AGENTS}


def table(inputs: Inputs, study: Study) -> Table:
    """Return the agreement of local metrics with people, and their cost."""
    about, made = About.read(inputs["about"]), frame(inputs, study)
    titles, whole = about.titles, made[made["responses"] == ALL]
    lost = dict.fromkeys(row["metric"] for row in study["entry"]["rows"] if row["metric"] not in {*made["metric"]})
    counts = whole.groupby("dataset")["n"].max()
    costs = whole.drop_duplicates("label")[["label", "metric"]].merge(_costs(inputs), on="metric").set_index("label")
    texts = {
        ("Cost", "CPU seconds"): costs["seconds"].map(number, digits=1),
        ("Cost", "US dollars"): costs["usd"].map(number, digits=2),
        ("Cost", "How"): costs["how"],
    }
    parts = [made[made["coefficient"] == name] for name in SHOWN]
    sections = [_section(_by_mean(part, study), "Metric", study, titles) for part in parts if len(part)]
    sections.append(Section("1,000 responses", pd.DataFrame(texts).rename_axis(index="Metric")))
    notes = [
        *correlations.READING,
        *_corrected(made, titles),
        *correlations.left_out_notes(made[made["responses"] != WITHIN]),
        *correlations.partial_notes(made),
        *grouped_notes((name, about.not_run.get(name, "no scores")) for name in lost),
    ]
    sizes = "; ".join(f"{titles[name]} {counts[name]:,}" for name in study["datasets"] if name in counts)
    return described(study, made, sections, *notes, sizes=sizes, legend=_legend(made))


def frame(inputs: Inputs, study: Study) -> pd.DataFrame:
    """Return one record per row, data set and coefficient that has a value.

    Ranks are corrected over the pairs of the rows. Values within systems and without human responses, available for ``local``,
    are separate records (``responses``) below its row. ``seconds`` and ``usd`` are for 1,000 responses.
    """
    entry = study["tables"]["local_metrics"]
    rows = pd.DataFrame(entry["rows"])
    rows = rows.assign(place=range(len(rows)), figure=rows["figure"].eq(True))
    result = _of_turns(inputs, "correlations")
    result = ranking.of_outputs(result[result["n"] > 0], [*rows["metric"] + ":" + rows["output"]])
    if result.empty:
        raise NothingToShowError("no score of any row")
    whole = ranking.with_ranks(correlations.pooled(result), _of_turns(inputs, "pairs"))
    # With a single system there is nothing to average.
    parts = result[(result["grouping"] == "agents") | ((result["grouping"] == "system") & (result["n"] > 1))]
    parts = parts[parts["metric"] == "local"].assign(rank=np.nan, tests=np.nan)
    # Within systems, `n` counts systems: show their number of responses instead.
    key = ["dataset", "metric", "output", "coefficient"]
    responses = parts[key].merge(whole[[*key, "n"]], on=key, how="left")["n"].to_numpy()
    parts = parts.assign(n=parts["n"].where(parts["grouping"] != "system", responses))
    made = rows.merge(pd.concat([whole, parts], ignore_index=True), on=["metric", "output"])
    made = made.merge(_costs(inputs)[["metric", "seconds", "usd"]], on="metric", how="left")
    made["responses"] = made["grouping"].map(_RESPONSES)
    made["label"] = made["label"].where(made["responses"] == ALL, made["label"] + ", " + made["responses"])
    orders = {"part": ("responses", [*_RESPONSES.values()]), "set": ("dataset", study["datasets"])}
    made = made.assign(**{name: made[column].map(order.index) for name, (column, order) in orders.items()})
    made = made.sort_values(["place", "part", "set", "coefficient"], kind="stable", ignore_index=True)
    made = made.assign(lacking=None, loso_halved=correlations.halved(made))
    return made[entry["columns"]].astype({"rank": "Int32", "tests": "Int32"})


def _of_turns(inputs: Inputs, name: str) -> pd.DataFrame:
    """Return results on single responses, in the dimension of each data set, by Pearson and Spearman."""
    result = correlations.results({"about": inputs["about"], name: inputs[name]}, About.read(inputs["about"]), name)
    return result[(result["level"] == "turn") & result["coefficient"].isin(SHOWN)]


def _costs(inputs: Inputs) -> pd.DataFrame:
    return correlations.read_reported(inputs["costs"], ("metric", "how"), ("seconds", "usd"))


def _by_mean(shown: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Sort by the mean over data sets of all responses; outputs without a value on every set come last."""
    whole = shown[shown["responses"] == ALL].groupby(["metric", "output"])["value"].agg(["mean", "count"])
    placed = shown.join(whole.assign(few=whole["count"] < len(study["datasets"])), on=["metric", "output"])
    # Rows of some responses stay below their main row.
    placed = placed.sort_values(["few", "mean"], ascending=[True, False], kind="stable")
    return placed[[*shown]]


def _section(shown: pd.DataFrame, head: str, study: Study, titles: dict[str, str]) -> Section:
    """Return a section of one coefficient: a row per label, a column per data set, and the overall mean."""
    # A mean of coefficients has no p of its own, so no asterisk.
    texts = [
        correlations.with_interval(record, starred=record["responses"] != WITHIN) for record in shown.to_dict("records")
    ]
    placed = shown.assign(text=texts, group="Data set", head=shown["dataset"].map(titles))
    order = [("Data set", titles[name]) for name in study["datasets"]]
    wide = arranged(placed, {"label": head}, ["group", "head"], order=order)
    means = shown.groupby("label")["value"].agg(["mean", "count"])
    full = means["mean"].where(means["count"] == len(study["datasets"]))
    wide.insert(0, ("Data set", "Mean"), [number(full[label]) for label in wide.index])
    return Section(correlations.COEFFICIENTS[shown["coefficient"].iloc[0]], wide)


def _corrected(made: pd.DataFrame, titles: dict[str, str]) -> list[str]:
    """Return the note on the number of tests in the correction of ranks."""
    tests = made.dropna(subset="tests").groupby("dataset")["tests"].max()
    counts = {titles[str(name)]: int(n) for name, n in tests.items()}
    note = f"Ranks of a column are corrected over all pairs of its rows: {correlations.over_tests(counts)}"
    return [note] if counts else []


def _legend(made: pd.DataFrame) -> str:
    return f" {correlations.LEGEND}" if made["loso_halved"].any() else ""


def contrasts(inputs: Inputs, study: Study) -> Table:
    """Return the planned contrasts, corrected over these only.

    Raises UnknownNameError if a contrast names no row or no data set of the study.
    """
    labels = {f"{row['metric']}:{row['output']}": row["label"] for row in study["tables"]["local_metrics"]["rows"]}
    planned, where = study["planned_contrasts"], f"study {study['name']}, planned_contrasts"
    for entry in planned:
        names: Any = {
            "row": ([entry["metric"], entry["against"]], labels),
            "dataset": (entry["datasets"], study["datasets"]),
        }
        for what, (asked, known) in names.items():
            if unknown := [name for name in asked if name not in known]:
                raise UnknownNameError(what, unknown[0], known, where=where)
    made = ranking.contrasts(_of_turns(inputs, "pairs"), planned).rename(
        columns={"metric": "label", "against": "minus"}
    )
    made = made.assign(label=made["label"].map(labels), minus=made["minus"].map(labels))
    shown = made.assign(
        pair=made["label"] + " minus " + made["minus"],
        title=made["dataset"].map(About.read(inputs["about"]).titles),
        group=made["coefficient"].map(correlations.COEFFICIENTS),
    ).sort_values("coefficient", ascending=False, kind="stable")
    # Three digits show on which side of 0 a close interval end is.
    cells = {
        "difference": lambda record: estimate(record, "difference", sign=True, ends=3),
        "p": small_p(),
        "p corrected": small_p("p_adjusted"),
    }
    texts = spread(shown, {"pair": "Difference", "title": "Data set"}, "group", cells)
    tests = made.groupby(made["coefficient"].map(correlations.COEFFICIENTS), sort=False)["tests"].max()
    lost = shown[shown["p"].isna()].drop_duplicates(["pair", "dataset"])
    notes = [
        f"p corrected by Holm over the planned contrasts alone, by each coefficient: {correlations.over_tests(dict(tests))}",
        *(f"{one['metric']} against {one['against']}: {one['note']}" for one in planned if "note" in one),
        *(
            f"{one['pair']}: not tested on {one['title']}, where one of the two has no scores"
            for one in lost.to_dict("records")
        ),
    ]
    return described(study, made, [Section("Planned contrasts", texts)], *notes)


def ablation(inputs: Inputs, study: Study) -> Table:
    """Return `local` without each of its parts and with each alone, held out, and the weights of its features."""
    known, titles = Coefficients.read(inputs["coefficients"][0]), About.read(inputs["about"]).titles
    result = schema.read(inputs["correlations"][0], "correlations")
    result = ranking.with_ranks(result, schema.read(inputs["pairs"][0], "pairs"))
    order = list(variants(known.features))
    made = result.sort_values("output", key=lambda one: one.map(order.index), kind="stable")
    made = made.rename(columns={"output": "variant"}).assign(loso_halved=correlations.halved(made))
    shown = made.assign(label=made["variant"], responses=ALL)
    weights = weights_frame(known).set_index(["part", "feature"]).rename_axis(index=["Part", "Feature"])
    texts = weights.rename(columns={"weight": "all sets"}).map(number, sign=True)
    sections = [_section(shown[shown["coefficient"] == name], "Variant", study, titles) for name in SHOWN]
    sections.append(Section("Weights of what ships", pd.concat({"Weight": texts}, axis=1)))
    notes = [*correlations.READING[1:], *_corrected(made, titles), *correlations.left_out_notes(made)]
    unused = made.columns.intersection(["signature", "grouping", "metric", "p_exact"])
    about: dict[str, Any] = {"variants": len(order), "whole": WHOLE, "legend": _legend(made)}
    return described(study, made.drop(columns=unused), sections, *notes, **about)


def figure(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw Spearman's coefficient of the marked rows with intervals, one panel per data set."""
    titles, made, entry = About.read(inputs["about"]).titles, frame(inputs, study), study["entry"]
    shown = made[made["figure"] & (made["coefficient"] == "spearman") & (made["responses"] == ALL)]
    labels, datasets = list(shown["label"].unique()), [n for n in study["datasets"] if n in {*shown["dataset"]}]
    kind = np.select([shown["metric"] == "local", shown["label"].str.contains("recorded")], [1, 2], 0)
    lowest = min(0.0, float(np.nanmin(shown[["value", "low"]].to_numpy(np.float64))))
    with style.drawing():
        columns = min(3, len(datasets))
        size = 7.6 / columns, 0.155 * len(labels) + 0.45
        drawn, axes = style.panels([titles[name] for name in datasets], columns, *size, sharex=True, sharey=True)
        for ax, dataset in zip(axes, datasets, strict=True):
            style.forest(ax, shown.assign(style=kind)[shown["dataset"] == dataset], labels)
            ax.set_xlim(max(-1.0, lowest - 0.05), 1.0)
        style.titled(drawn, study["tables"]["local_metrics"]["title"], entry["title"], entry["notes"])
    return drawn, shown.drop(columns=["figure", "responses", "loso_halved"])
