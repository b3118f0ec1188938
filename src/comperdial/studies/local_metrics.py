"""Metrics that run here on every data set that people rated response by response, next to recorded judges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.core.errors import NothingToShowError, UnknownNameError
from comperdial.evaluation.fitting import WHOLE, variants, weights_frame
from comperdial.metrics.local import Coefficients
from comperdial.report import correlations, ranking
from comperdial.report.about import About, Inputs, Study
from comperdial.report.plots import style
from comperdial.report.render import Section, Table, described, estimate, grouped_notes, number, small_p, spread

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = ("spearman", "pearson")
MEAN = "Mean"
# Which responses of a data set a row's values are of.
ALL, WITHIN, AGENTS = "all responses", "within systems", "without human responses"
_RESTRICTED = {"system": WITHIN, "agents": AGENTS}


def table(inputs: Inputs, study: Study) -> Table:
    """Show how well metrics that run here agree with people, and what they cost."""
    about, made = About.read(inputs["about"]), frame(inputs, study)
    titles, whole = about.titles, made[made["responses"] == ALL]
    lost = dict.fromkeys(row["metric"] for row in study["entry"]["rows"] if row["metric"] not in {*made["metric"]})
    counts = whole.groupby("dataset")["n"].max()
    costs = _costs(inputs)
    costs = costs[costs["metric"].isin(made["metric"])]
    planned, notes = _contrasts(inputs, study, about)
    return described(
        study,
        made.drop(columns=["signature", "not_run"]),
        [
            *(_section(made, "label", "Metric", study, titles, name, ranked=True) for name in SHOWN),
            planned,
            _cost_section(whole, costs),
        ],
        *correlations.READING,
        *_corrected(whole, titles),
        f"{WITHIN.capitalize()}: the mean of the coefficients within each system, where there are several. "
        f"{AGENTS.capitalize()}: where some systems are human (kind, in the table of systems)",
        f"{MEAN} is over all data sets, of the metrics that have a value on each",
        "With fewer than four systems, intervals and tests resample dialogues alone",
        *correlations.left_out_notes(made[made["responses"] != WITHIN]),
        *correlations.partial_notes(made),
        *grouped_notes((name, about.not_run.get(name, "no scores")) for name in lost),
        *(
            f"Cost, {how}: {', '.join(part['metric'])} ({'; '.join(dict.fromkeys(part['machine']))}, "
            f"{'; '.join(dict.fromkeys(part['date']))})"
            for how, part in costs.groupby("how", sort=False)
        ),
        *notes,
        sizes="; ".join(f"{titles[name]} {counts[name]:,}" for name in study["datasets"] if name in counts),
        legend=f" {correlations.LEGEND}" if made["loso_halved"].any() else "",
    )


def frame(inputs: Inputs, study: Study) -> pd.DataFrame:
    """Return one record per row, data set and coefficient that has a value.

    Ranks are corrected over the pairs of the rows. Values within systems and without human responses, which the row of
    ``local`` has, are records of their own (``responses``) below it. ``seconds`` and ``usd`` are for 1,000 responses.
    """
    rows = pd.DataFrame(study["tables"]["local_metrics"]["rows"])
    rows = rows.assign(place=range(len(rows)), figure=rows["figure"].eq(True))
    result = _of_turns(inputs, "correlations")
    result = ranking.of_outputs(result[result["n"] > 0], [*rows["metric"] + ":" + rows["output"]])
    if result.empty:
        raise NothingToShowError("no score of any row")
    whole = ranking.with_ranks(correlations.pooled(result), _of_turns(inputs, "pairs"))
    key = ["dataset", "metric", "output", "coefficient"]
    parts = result[result["grouping"].isin([*_RESTRICTED])].assign(rank=np.nan, tests=np.nan)
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
    made["loso_halved"] = correlations.halved(made)
    columns = [
        "label", "metric", "output", "figure", "responses", "dataset", "target", "level", "against", "coefficient", "value", "p",
        "low", "high", "rank", "tests", "n", "coverage", "cut", "lacking", "loso_value", "loso_system", "seconds", "usd",
        "loso_halved", "signature", "not_run",
    ]  # fmt: skip
    return made[columns].astype({"rank": "Int32", "tests": "Int32"})


def _of_turns(inputs: Inputs, name: str) -> pd.DataFrame:
    """Return the rows of results on single responses, in the dimension of each data set, by Pearson and Spearman."""
    result = correlations.results({"about": inputs["about"], name: inputs[name]}, About.read(inputs["about"]), name)
    return result[(result["level"] == "turn") & result["coefficient"].isin(SHOWN)]


def _costs(inputs: Inputs) -> pd.DataFrame:
    return correlations.read_reported(inputs["costs"], ("metric", "how", "machine", "date"), ("seconds", "usd"))


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
    shown = made[made["coefficient"] == coefficient]
    groups = shown[shown["value"].notna()].groupby(row, sort=False)
    means = groups["value"].mean()
    full = means[groups["dataset"].nunique() == len(study["datasets"])]
    order = [*dict.fromkeys(made[row])]
    if ranked:
        # What is restricted to some responses is below the row that it belongs to.
        output = ["metric", "output"]
        above = made[made["responses"] == ALL].drop_duplicates(output).set_index(output)[row]
        first = {name: above[metric, output] for name, metric, output in made[[row, *output]].to_numpy()}
        order.sort(key=lambda name: (first[name] not in full, -means.get(first[name], -np.inf)))
    cells = {(record[row], record["dataset"]): _cell(record) for record in shown.to_dict("records")}
    order = [name for name in order if any((name, dataset) in cells for dataset in study["datasets"])]
    texts = [[number(full.get(name)), *(cells.get((name, one), "–") for one in study["datasets"])] for name in order]
    columns = pd.MultiIndex.from_product([["Data set"], [MEAN, *(titles[name] for name in study["datasets"])]])
    made = pd.DataFrame(texts, index=pd.Index(order, name=head), columns=columns, dtype=object)
    return Section(correlations.COEFFICIENTS[coefficient], made)


def _cell(record: correlations.Record) -> str:
    # A mean of coefficients has no p of its own, so nothing that an asterisk would say.
    return correlations.with_interval(record, starred=record.get("responses") != WITHIN)


def _corrected(made: pd.DataFrame, titles: Mapping[str, str]) -> list[str]:
    """Return the note that says over how many tests ranks were corrected."""
    tests = made.dropna(subset="tests").groupby("dataset")["tests"].max()
    counts = {titles[str(name)]: int(n) for name, n in tests.items()}
    note = f"Ranks of a column are corrected over all pairs of its rows: {correlations.over_tests(counts)}"
    return [note] if counts else []


def _cost_section(whole: pd.DataFrame, costs: pd.DataFrame) -> Section:
    first = whole.drop_duplicates("label")[["label", "metric"]].merge(costs, on="metric").set_index("label")
    texts = {
        ("Cost", "CPU seconds"): first["seconds"].map(number, digits=1),
        ("Cost", "US dollars"): first["usd"].map(number, digits=2),
        ("Cost", "How"): first["how"],
    }
    return Section("1,000 responses", pd.DataFrame(texts).rename_axis(index="Metric"))


# Planned contrasts


def contrasts(inputs: Inputs, study: Study) -> Table:
    """Show the planned contrasts, corrected over these alone."""
    section, notes = _contrasts(inputs, study, About.read(inputs["about"]))
    return described(study, contrast_frame(inputs, study), [section], *notes)


def contrast_frame(inputs: Inputs, study: Study) -> pd.DataFrame:
    """Return :func:`comperdial.report.ranking.contrasts` of the study, with the labels of its rows.

    Raises UnknownNameError if a contrast names no row or no data set of the study.
    """
    labels = {f"{row['metric']}:{row['output']}": row["label"] for row in study["tables"]["local_metrics"]["rows"]}
    where = f"study {study['name']}, planned_contrasts"
    for entry in study["planned_contrasts"]:
        for what, names, known in (
            ("row", (entry["metric"], entry["against"]), labels),
            ("dataset", entry["datasets"], study["datasets"]),
        ):
            if unknown := [name for name in names if name not in known]:
                raise UnknownNameError(what, unknown[0], known, where=where)
    result = ranking.contrasts(_of_turns(inputs, "pairs"), study["planned_contrasts"])
    named = result.assign(metric=result["metric"].map(labels), against=result["against"].map(labels))
    return named.rename(columns={"metric": "label", "against": "minus"})


def _contrasts(inputs: Inputs, study: Study, about: About) -> tuple[Section, list[str]]:
    """Return the section of planned contrasts, and how to read it."""
    made = contrast_frame(inputs, study)
    shown = made.assign(
        pair=made["label"] + " minus " + made["minus"],
        title=made["dataset"].map(about.titles),
        group=made["coefficient"].map(correlations.COEFFICIENTS),
    ).sort_values("coefficient", ascending=False, kind="stable")
    # With three digits an end near 0 says on which side it is.
    cells = {
        "difference": lambda record: estimate(record, "difference", sign=True, ends=3),
        "p": small_p(),
        "p corrected": small_p("p_adjusted"),
    }
    texts = spread(shown, {"pair": "Difference", "title": "Data set"}, "group", cells)
    counts = {
        correlations.COEFFICIENTS[str(name)]: int(of["tests"].max())
        for name, of in made.groupby("coefficient", sort=False)
    }
    lost = shown[shown["p"].isna()].drop_duplicates(["pair", "dataset"])
    return Section("Planned contrasts", texts), [
        "Planned contrasts: p corrected by Holm over these alone, by each coefficient: "
        f"{correlations.over_tests(counts)}. Next to each difference its 95 % interval, which is not corrected",
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


# What each part of `local` contributes


def ablation(inputs: Inputs, study: Study) -> Table:
    """Show `local` without each of its parts and with each alone, held out, and the weights of its features."""
    known, titles = Coefficients.read(inputs["coefficients"][0]), About.read(inputs["about"]).titles
    result = schema.read(inputs["correlations"][0], "correlations")
    result = ranking.with_ranks(result, schema.read(inputs["pairs"][0], "pairs"))
    order = list(variants(known.features))
    made = result.assign(place=result["output"].map(order.index)).sort_values("place", kind="stable")
    made = made.assign(loso_halved=correlations.halved(made), responses=ALL)
    weights = weights_frame(known).set_index(["part", "feature"]).rename_axis(index=["Part", "Feature"])
    texts = weights.rename(columns={"weight": "all sets"})[["all sets", "lowest", "highest"]]
    texts = texts.map(number, sign=True)
    texts.columns = pd.MultiIndex.from_product([["Weight"], texts.columns])
    unused = ["place", "responses", "signature", "grouping", "metric", "p_exact"]
    return described(
        study,
        made.drop(columns=[name for name in unused if name in made]).rename(columns={"output": "variant"}),
        [
            *(_section(made, "output", "Variant", study, titles, name) for name in SHOWN),
            Section("Weights of what ships", texts),
        ],
        *correlations.READING[1:],
        *_corrected(made, titles),
        *correlations.left_out_notes(made),
        variants=len(order),
        whole=WHOLE,
        legend=f" {correlations.LEGEND}" if made["loso_halved"].any() else "",
    )


def figure(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw Spearman's coefficient of the rows marked for it with intervals, a panel for each data set."""
    titles, made = About.read(inputs["about"]).titles, frame(inputs, study)
    shown = made[made["figure"] & (made["coefficient"] == "spearman") & made["value"].notna()]
    shown = shown[shown["responses"] == ALL]
    labels, datasets = (
        list(shown["label"].unique()),
        [name for name in study["datasets"] if name in {*shown["dataset"]}],
    )
    kind = np.select([shown["metric"] == "local", shown["label"].str.contains("recorded")], [1, 2], 0)
    lowest = min(0.0, float(np.nanmin(shown[["value", "low"]].to_numpy(np.float64))))
    with style.drawing():
        columns = min(3, len(datasets))
        size = 7.6 / columns, 0.155 * len(labels) + 0.45
        drawn, axes = style.panels([titles[name] for name in datasets], columns, *size, sharex=True, sharey=True)
        for ax, dataset in zip(axes, datasets, strict=True):
            style.forest(ax, shown.assign(style=kind)[shown["dataset"] == dataset], labels)
            ax.set_xlim(max(-1.0, lowest - 0.05), 1.0)
        entry = study["entry"]
        style.titled(drawn, study["tables"]["local_metrics"]["title"], entry["title"], entry["notes"])
    return drawn, shown.drop(columns=["figure", "responses", "signature", "not_run", "loso_halved"])
