"""DEnsity (Park et al. 2023): paired tests, the paper's examples, response selection, and degraded answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import product
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.core.errors import NothingToShowError
from comperdial.core.files import read_json
from comperdial.core.names import PERTURBATIONS, output_name
from comperdial.report import correlations, ranking
from comperdial.report.about import About, Inputs, Study
from comperdial.report.correlations import COEFFICIENTS, groups, read_reported
from comperdial.report.plots import style
from comperdial.report.plots.style import short
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
from comperdial.stats import Coefficient
from comperdial.stats.correlation import ALPHA
from comperdial.stats.multiple import holm

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN: tuple[Coefficient, ...] = ("pearson", "spearman")


# Table 2, and the paired tests


def ablation(inputs: Inputs, study: Study) -> Table:
    """Return the effects of the contrastive loss and the distance (Table 2), with paired tests of the two models."""
    entry, about = study["entry"], About.read(inputs["about"])
    frame = correlations.frame(inputs, study, entry["rows"])
    # Our models differ from the paper's, so there is no difference from its values and no rank.
    frame[["difference", "rank", "tests"]] = np.nan
    made = correlations.table(frame, study, about)
    rows = pd.DataFrame(entry["rows"]).drop_duplicates("output").assign(section="with minus without")
    rows["metric"], rows["against"] = (model + ":" + rows["output"] for model in entry["models"])
    gains = _tested(inputs, study, rows)
    tidy = gains[["dataset", "section", "label", "coefficient", "difference", "low", "high", "p", "n"]]
    sections = [*made.sections]
    if len(gains):
        cells = {"with minus without": _difference, "p": small_p()}
        texts = spread(gains, {"title": "Data set", "label": "Score"}, "group", cells)
        sections.append(Section("What the contrastive loss changes", texts))
    return replace(made, frame=pd.concat([made.frame, tidy], ignore_index=True), sections=sections)


def tests(inputs: Inputs, study: Study) -> Table:
    """Return how much higher DEnsity correlates than each other metric, with paired tests.

    Holm's correction is over the metrics of one kind (``section``), data set and coefficient.
    """
    about, rows = About.read(inputs["about"]), pd.DataFrame(study["entry"]["rows"]).dropna(subset="metric")
    rows = rows.assign(metric="density:density", against=rows["metric"] + ":" + rows["output"])
    frame, why = _tested(inputs, study, rows), about.not_run.get("density", "it was not run there")
    if frame.empty:
        raise NothingToShowError(f"there are no scores of DEnsity ({why})")
    frame["kind"] = frame["section"].map([*rows["section"].unique()].index)
    frame = frame.sort_values(["place", "kind", "coefficient"], kind="stable", ignore_index=True)
    by = frame.groupby(["dataset", "section", "coefficient"], sort=False)["p"]
    frame["holm_p"] = by.transform(lambda one: holm(one.to_numpy(np.float64)))
    cells = {"DEnsity minus this": _difference, "p": small_p(), "Holm": small_p("holm_p")}
    sections = [_summary(frame)]
    for (title,), part in groups(frame, "title"):
        sections.append(Section(title, spread(part, {"section": "Kind", "label": "Metric"}, "group", cells)))
    lost = [about.titles[name] for name in study["datasets"] if name not in {*frame["dataset"]}]
    columns = ["dataset", "section", "label", "coefficient", "difference", "low", "high", "p", "holm_p", "n"]
    return described(study, frame[columns], sections, *(f"{title} has no scores of DEnsity: {why}" for title in lost))


def _tested(inputs: Inputs, study: Study, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the paired tests of rows (``metric`` and ``against``, METRIC:OUTPUT) on responses, in the order of the sets."""
    about, sets = About.read(inputs["about"]), study["datasets"]
    pairs = correlations.results(inputs, about, "pairs")
    pairs = pairs[(pairs["level"] == "turn") & pairs["coefficient"].isin(SHOWN)]
    planned = [
        {"metric": a, "against": b, "datasets": sets} for a, b in zip(rows["metric"], rows["against"], strict=True)
    ]
    made = ranking.contrasts(pairs, planned).dropna(subset="difference")
    made = rows[["section", "label", "metric", "against"]].merge(made, on=["metric", "against"])
    made = made.assign(title=made["dataset"].map(about.titles), group=made["coefficient"].map(COEFFICIENTS))
    return made.assign(place=made["dataset"].map(sets.index)).sort_values("place", kind="stable")


def _difference(record: Mapping[Any, Any]) -> str:
    return estimate(record, "difference", sign=True)


def _summary(frame: pd.DataFrame) -> Section:
    """Return a section that counts, by kind of metric, how many DEnsity exceeds."""
    heads, records = ("above", "significantly", "least difference"), []
    for key, of in groups(frame, "title", "section", "group"):
        above, nearest = of[of["difference"] > 0], of.nsmallest(1, "difference")
        least = f"{nearest['label'].item()} ({number(nearest['difference'].item(), sign=True)})"
        records.append([*key, f"{len(above)} of {len(of)}", str((above["holm_p"] < ALPHA).sum()), least])
    counts = pd.DataFrame(records, columns=["title", "section", "group", *heads])
    labels = {"title": "Data set", "section": "Kind"}
    return Section("DEnsity above", spread(counts, labels, "group", {head: itemgetter(head) for head in heads}))


# Table 3 and Figure 4: scores of single responses


def _responses(inputs: Inputs, study: Study, outputs: Collection[str]) -> pd.DataFrame:
    """Return the responses of the only data set: mean human rating (``people``), and the scores, by METRIC:OUTPUT."""
    about, (dataset,), unit = About.read(inputs["about"]), study["datasets"], ["item_id", "system_id"]
    ratings = schema.read(inputs["ratings"][0], "ratings")
    ratings = ratings[(ratings["level"] == "turn") & (ratings["source"] == about[dataset]["source"])]
    ratings = ratings[ratings["dimension"] == about.dimension(dataset, {*ratings["dimension"]})]
    scores = pd.concat([schema.read(path, "scores") for path in inputs["scores"]])
    scores["name"] = scores["metric"] + ":" + scores["output"]
    wide = scores[scores["name"].isin([*outputs])].pivot(index=unit, columns="name", values="value")
    people = ratings.groupby(unit)["rating"].mean()
    return pd.DataFrame({"people": people, **{name: wide[name] for name in outputs if name in wide}}, people.index)


def examples(inputs: Inputs, study: Study) -> Table:
    """Return the scores of the paper's examples (Table 3): normalized to 0 to 1, and ranks divided by their number."""
    one, key = About.read(inputs["about"]).only, ["example", "context_id", "system_id"]
    rows = pd.DataFrame(study["entry"]["rows"]).rename(columns={"reported": "theirs"})
    rows["name"] = (rows["metric"] + ":" + rows["output"]).where(rows["label"] != "People", "people")
    known = read_reported(inputs["reported"], ("source", "place", *key, "metric"), ("score", "rank"))
    known = known.rename(columns={"metric": "theirs", "score": "reported", "rank": "reported_rank"})
    frame = known[key].drop_duplicates().merge(rows, how="cross").merge(known, how="left", on=[*key, "theirs"])
    scores = _responses(inputs, study, rows["name"].dropna())
    units = list(zip(frame["name"], frame["context_id"], frame["system_id"], strict=True))
    # Missing if all scores are equal.
    scaled = (scores - scores.min()) / (scores.max() - scores.min()).replace(0, np.nan)
    for name, of in {"ours": scaled, "rank": scores.rank(pct=True)}.items():
        frame[name] = [of[column].get((item, system)) if column in of else None for column, item, system in units]
    frame["example"] += ": " + frame["context_id"] + ", " + frame["system_id"]
    frame = frame[["example", "label", "reported", "reported_rank", "ours", "rank"]]
    sections = []
    for (example,), part in groups(frame, "example"):
        texts = part.set_index("label").drop(columns="example").map(number, digits=2)
        texts.columns = pd.MultiIndex.from_product([["Paper", "Ours"], ["score", "rank"]])
        sections.append(Section(f"Example {example}", texts.rename_axis(index="Metric")))
    absent = rows[rows["name"].notna() & ~rows["name"].isin([*scores])]
    why = absent["metric"].map(one["not_run"]).fillna("no scores")
    return described(study, frame, sections, *grouped_notes(zip(absent["label"], why, strict=True)), title=one["title"])


def scatter(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw scores against ratings, one panel per metric (Figure 4)."""
    one, labels = About.read(inputs["about"]).only, study["entry"]["outputs"]
    scores = _responses(inputs, study, labels)
    scaled = (scores - scores.min()) / (scores.max() - scores.min()).replace(0, np.nan)
    there = [name for name in labels if name in scaled]
    if not there:
        raise NothingToShowError("none of the metrics that the figure shows was run")
    noise = np.random.default_rng(study["entry"]["seed"]).normal(0.0, study["entry"]["noise"], len(scaled))
    records = []
    for name in there:
        x, y = (column for _, column in scaled[["people", name]].dropna().items())
        slope, intercept = np.polyfit(x, y, 1)
        metric, output = output_name(name)
        record: dict[str, Any] = {"metric": metric, "output": output, "label": labels[name], "n": len(x)}
        record |= {kind: float(x.corr(y, method=kind)) for kind in SHOWN}
        records.append(record | {"slope": slope, "intercept": intercept})
    titles = ["{label}\nr = {0}, ρ = {1}, n = {n}".format(*(short(r[kind]) for kind in SHOWN), **r) for r in records]
    absent, columns = [labels[name] for name in labels if name not in there], min(4, len(there))
    with style.drawing():
        drawn, axes = style.panels(titles, columns, 1.75 + 0.5 / columns, 1.9, sharex=True, sharey=True)
        for place, (ax, name, record) in enumerate(zip(axes, there, records, strict=True)):
            # We may not redistribute ratings of single responses: use an image in the vector formats too.
            x = scaled["people"] + noise
            ax.plot(x, scaled[name], ".", ms=2.2, color="#0072b2", alpha=0.35, mew=0, rasterized=True)
            ax.axline((0, record["intercept"]), slope=record["slope"], color="#c00000", lw=1.3)
            ax.set_title(ax.get_title(loc="left"), loc="left", fontsize=6.5, parse_math=False)
            ax.set(xlim=(-0.05, 1.05), ylim=(-0.03, 1.03), ylabel="" if place % columns else "Score")
            ax.set_xlabel("Mean rating" if place + columns >= len(there) else "")
        notes = study["entry"]["notes"] + (f" Not run: {'; '.join(absent)}." if absent else "")
        style.titled(drawn, study["entry"]["title"], one["title"], notes)
    return drawn, pd.DataFrame(records)


# Table 5: selecting responses


def selection(inputs: Inputs, study: Study) -> Table:
    """Return how well the models select responses (Table 5)."""
    known = read_reported(inputs["reported"], ("source", "place", "corpus", "contrastive", "measure"))
    measures = {"recall@1": "recall_at_1", "MRR": "mrr"}
    ours = [
        ("ours", corpus, loss, measure, result[key], result["n"])
        for loss, path in zip(("yes", "no"), inputs["cards"], strict=True)
        for corpus, result in read_json(path)["held-out"].items()
        for measure, key in measures.items()
    ]
    columns = ["source", "corpus", "contrastive", "measure", "value", "n"]
    frame = pd.concat([known.assign(source="paper"), pd.DataFrame(ours, columns=columns)], ignore_index=True)[columns]
    sizes = frame["n"].map(" (n = {:.0f})".format).where(frame["n"].notna(), "")
    losses = {"yes": "with contrastive loss", "no": "without contrastive loss"}
    texts = frame.assign(
        corpus=frame["corpus"].str.replace("_", " ") + sizes,
        trained=frame["contrastive"].map(losses),
        text=frame["value"].map(number),
    ).sort_values("trained", kind="stable")
    sections = []
    for source, title in study["entry"]["parts"].items():
        part = texts[texts["source"] == source]
        order = product(part["corpus"].unique(), measures)
        sections.append(Section(title, arranged(part, {"trained": "Trained"}, ["corpus", "measure"], order=order)))
    return described(study, frame, sections)


# Figures 3 and 5: degraded answers


def adversarial(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw how often an answer scores higher than a degraded version (Figure 3)."""
    entry = study["entry"]
    labels, kinds = entry["outputs"], entry["kinds"]
    frame = pd.concat([schema.read(path, "ratios") for path in inputs["ratios"]], ignore_index=True)
    frame["name"] = frame["metric"] + ":" + frame["output"]
    frame = frame[(frame["threshold"] == 0) & frame["name"].isin([*labels]) & frame["perturbation"].isin([*kinds])]
    if frame.empty:
        raise NothingToShowError("none of the metrics that the figure shows was run")
    frame = frame.assign(
        set=pd.factorize(frame["dataset"])[0],
        row=frame["name"].map([*labels].index),
        column=frame["perturbation"].map([*kinds].index),
    ).sort_values(["set", "row", "column"], kind="stable", ignore_index=True)
    frame = frame.rename(columns={"ratio": "accuracy"})
    frame = frame.assign(label=frame["name"].map(labels), kind=frame["perturbation"].map(kinds))
    there, parts, titles = [name for name in labels if name in {*frame["name"]}], [], []
    for (dataset,), part in groups(frame, "dataset"):
        parts.append(part)
        sizes = part.groupby("kind")["n"].max()
        most = f" to {sizes.max()}" if sizes.max() > sizes.min() else ""
        title = entry["panels"]["recorded" if dataset == PERTURBATIONS[0] else "made"]
        titles.append(f"{title}\nn = {sizes.min()}{most} a kind")
    with style.drawing():
        drawn, axes = style.panels(titles, len(parts), 4.0, 2.7, sharey=True)
        for ax, part in zip(axes, parts, strict=True):
            shown = part.drop_duplicates("column").sort_values("column")["kind"].tolist()
            for place, name in enumerate(there):
                own = part[part["name"] == name]
                x = own["kind"].map(shown.index).to_numpy(dtype=float) + (place - (len(there) - 1) / 2) * 0.15
                ax.vlines(x, own["low"], own["high"], color=_style(name)["color"], lw=1.0)
                ax.plot(x, own["accuracy"], ls="", **_style(name))
            ax.axhline(0.5, color="0.6", lw=0.8, zorder=0)
            ax.set_xticks(range(len(shown)), [kind.replace(" ", "\n").replace("-", "-\n") for kind in shown])
            ax.set_ylim(0, 1.02)
            ax.grid(axis="y")
            ax.set_xlim(-0.5, len(shown) - 0.5)
        axes[0].set_ylabel("Answer scores higher\n(share of pairs)")
        handles = [style.handle(labels[name], ls="", **_style(name)) for name in there]
        style.titled(drawn, entry["title"], "DEnsity", entry["notes"], handles=handles, columns=2)
    return drawn, frame[["dataset", "label", "metric", "output", "kind", "accuracy", "low", "high", "ties", "n"]]


def _style(name: str) -> dict[str, Any]:
    """Return the marker of an output: its shape shows the score, its fill the loss."""
    metric, output = output_name(name)
    colour, marker = {"density": ("#0072b2", "o"), "classifier": ("#d55e00", "s")}.get(output, ("#000000", "X"))
    return {"color": colour, "marker": marker, "mfc": "white" if metric == "density-selection" else colour, "ms": 4.5}


_LOSSES = {"density": "With the contrastive loss", "density-selection": "Without it"}
_SIDES = {"original": ("Answer", "#0072b2", "-"), "perturbed": ("Random response", "#d55e00", "--")}


def histograms(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw the scores of answers and of random responses (Figure 5).

    The frame has a row per bin, shared by both groups of a model: its edges, ``count``, the group's ``n``, ``mean`` and ``sd``,
    and ``overlap``, the common share of both histograms.
    """
    scores, parts = schema.read(inputs["scores"][0], "scores"), {}
    scores = scores[(scores["output"] == "density") & scores["item_id"].str.startswith("random_response-")]
    for metric in [name for name in _LOSSES if name in {*scores["metric"]}]:
        own = scores[scores["metric"] == metric]
        edges = np.histogram_bin_edges(own["value"], study["entry"]["bins"])
        sides = {side: own.loc[own["system_id"] == side, "value"] for side in _SIDES}
        counts = {side: np.histogram(values, edges)[0] for side, values in sides.items()}
        overlap = np.minimum(*(count / max(count.sum(), 1) for count in counts.values())).sum()
        cells = []
        for side, values in sides.items():
            cell = pd.DataFrame({"metric": metric, "side": side, "low": edges[:-1], "high": edges[1:]})
            cell["count"] = counts[side]
            cells.append(cell.assign(n=len(values), mean=values.mean(), sd=values.std(), overlap=overlap))
        parts[metric] = pd.concat(cells)
    if not parts:
        raise NothingToShowError("there are no scores of DEnsity: its model was not run")
    frame = pd.concat(list(parts.values()), ignore_index=True)
    titles = [f"{_LOSSES[name]}\noverlap {short(float(part['overlap'].iloc[0]))}" for name, part in parts.items()]
    with style.drawing():
        drawn, axes = style.panels(titles, len(parts), 3.4, 2.3, sharey=True)
        for ax, part in zip(axes, parts.values(), strict=True):
            for side, (_, colour, line) in _SIDES.items():
                own = part[part["side"] == side]
                heights, ends = own["count"] / own["n"], [*own["low"], own["high"].iloc[-1]]
                ax.stairs(heights, ends, fill=True, color=colour, alpha=0.35)
                ax.stairs(heights, ends, color=colour, lw=1.2, ls=line)
            ax.set_xlabel("Score (minus the distance)")
            ax.grid(axis="y")
        axes[0].set_ylabel("Share of responses")
        notes = study["entry"]["notes"].format(answers=frame.loc[frame["side"] == "original", "n"].max())
        handles = [style.handle(label, color=colour, ls="", marker="s", ms=7) for label, colour, _ in _SIDES.values()]
        style.titled(drawn, study["entry"]["title"], "DEnsity", notes, handles=handles)
    return drawn, frame
