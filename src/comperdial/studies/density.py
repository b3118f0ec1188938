"""DEnsity (Park et al. 2023): our values next to the paper's, paired tests, examples, and answers made worse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial import schema
from comperdial.core.errors import NothingToShowError
from comperdial.core.files import read_json
from comperdial.core.names import PERTURBATIONS, output_name
from comperdial.evaluation.samples import Sample, Tables
from comperdial.report import correlations, ranking
from comperdial.report.about import About, Inputs, Study
from comperdial.report.correlations import COEFFICIENTS, LEGEND, Record, groups, over_tests, read_reported
from comperdial.report.plots import style
from comperdial.report.plots.style import short
from comperdial.report.render import (
    Section,
    Table,
    as_number,
    described,
    estimate,
    grouped_notes,
    number,
    small_p,
    spread,
)
from comperdial.stats.correlation import ALPHA
from comperdial.stats.multiple import holm

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = npt.NDArray[np.float64]

SHOWN: tuple[Literal["pearson", "spearman"], ...] = ("pearson", "spearman")
OURS = ("density", "density")
STRATEGIES = {
    "random_response": "Random response",
    "repetition": "Repetition",
    "speaker": "Speaker-sensitiveness",
    "contradiction": "Contradiction",
}
"""The paper's kinds of worse answers, by our names, with its own."""


# Tables 1, 2 and 4: correlations next to the paper's


def responses(inputs: Inputs, study: Study) -> Table:
    """Show how metrics of single responses correlate with ratings (Table 1)."""
    return _compared(inputs, study, _frame(inputs, study))


def dialogues(inputs: Inputs, study: Study) -> Table:
    """Show how metrics correlate with ratings of dialogues, and how raters agree (Table 4)."""
    frame = _frame(inputs, study)
    single = schema.read(inputs["ceilings"][0], "ceilings")
    key = {"level": "dialogue", "against": "dialogue", "target": frame["target"].iloc[0], "grouping": "pooled"}
    agreed = single[(single[[*key]] == pd.Series(key)).all(axis=1)].groupby("coefficient")["value"].mean()
    known = read_reported(inputs["reported"]).query("metric == 'Human'").set_index("coefficient")["value"]
    people = pd.DataFrame({"coefficient": SHOWN}).assign(
        dataset=frame["dataset"].iloc[0], level="dialogue", against="dialogue", target=frame["target"].iloc[0],
        section="People", label="One rater and the mean of the others",
        value=lambda rows: rows["coefficient"].map(agreed), reported=lambda rows: rows["coefficient"].map(known),
    )  # fmt: skip
    return _compared(inputs, study, pd.concat([frame, people], ignore_index=True))


def ablation(inputs: Inputs, study: Study) -> Table:
    """Show what the contrastive loss and the distance do (Table 2)."""
    about, frame = About.read(inputs["about"]), _frame(inputs, study).assign(difference=np.nan)
    gains = _gains(_pairs(inputs, about), study["entry"], study["datasets"])
    shown = gains.assign(title=gains["dataset"].map(about.titles), group=gains["coefficient"].map(COEFFICIENTS))
    more = []
    if len(gains):
        cells = {"with minus without": _difference, "p": small_p()}
        texts = spread(shown, {"title": "Data set", "label": "Score"}, "group", cells)
        more.append(Section("What the contrastive loss changes", texts))
    made = _compared(inputs, study, frame, more)
    tidy = pd.concat([made.frame, gains.assign(section="with minus without")], ignore_index=True)
    return replace(made, frame=tidy)


def _frame(inputs: Inputs, study: Study) -> pd.DataFrame:
    """Return :func:`comperdial.report.correlations.frame` without ranks.

    Rows about a metric of the paper alone are left out of a data set of which the paper reports nothing.
    """
    frame = correlations.frame(inputs, study, study["entry"]["rows"]).assign(rank=np.nan, tests=np.nan)
    printed = frame["reported"].notna().groupby([frame["dataset"], frame["section"], frame["label"]]).transform("any")
    return frame[frame["metric"].notna() | printed].reset_index(drop=True)


def _compared(inputs: Inputs, study: Study, frame: pd.DataFrame, more: Sequence[Section] = ()) -> Table:
    about = About.read(inputs["about"])
    titles = {name: about.titles[name] for name in study["datasets"]}
    rated = frame.dropna(subset="target").drop_duplicates("dataset").set_index("dataset")["target"]
    people = frame["section"] == "People"
    there = frame[frame["value"].notna() & ~people]
    cells = {"ours": _ours, "paper": as_number("reported")}
    if frame["difference"].notna().any():
        cells["difference"] = as_number("difference", sign=True)
    # References are what the reference-based lack, which a note says of all of them.
    partial = there[(there["section"] != "Reference-based") | (there["dataset"] != "dailydialog_zhao")]
    columns = [
        "dataset", "section", "label", "coefficient", "metric", "output", "level", "value", "low", "high", "loso_value",
        "loso_system", "p", "n", "coverage", "cut", "lacking", "signature", "reported", "not_run", "note", "difference",
        "loso_halved",
    ]  # fmt: skip
    made = described(
        study,
        frame[columns].rename(columns={"value": "ours"}).assign(level=frame["level"].where(frame["n"].notna())),
        [*map(_filled, correlations.sections(frame, study["entry"], titles, cells)), *more],
        *correlations.left_out_notes(there),
        *correlations.partial_notes(partial),
        *correlations.row_notes(frame[~people]),
    )
    caption = f"{made.caption} Rated: {'; '.join(f'{titles[name]} {of}' for name, of in rated.items())}."
    return replace(made, caption=f"{caption} {LEGEND}" if frame["loso_halved"].eq(True).any() else caption)


def _filled(section: Section) -> Section:
    """Return a section without the columns that have no value: of a data set of which the paper reports nothing."""
    return replace(section, frame=section.frame.loc[:, ~(section.frame == "–").all()])


def _difference(record: Record) -> str:
    return estimate(record, "difference", sign=True)


def _ours(record: Record) -> str:
    # What is averaged over raters has neither an interval nor a p.
    return number(record["value"]) if record["section"] == "People" else correlations.with_interval(record)


# Paired tests


def tests(inputs: Inputs, study: Study) -> Table:
    """Show DEnsity's differences from other metrics, with paired tests."""
    about = About.read(inputs["about"])
    titles, why = about.titles, about.not_run.get(OURS[0], "it was not run there")
    frame = difference_frame(_pairs(inputs, about), study["entry"]["rows"], study["datasets"])
    if frame.empty:
        raise NothingToShowError(f"there are no scores of DEnsity ({why})")
    counts: dict[str, int] = {}
    for (section,), of_kind in groups(frame, "section"):
        several = {key: int(one["p"].count()) for key, one in groups(of_kind, "dataset", "coefficient")}
        for (dataset, coefficient), n in several.items():
            place = f", {titles[dataset]}, {COEFFICIENTS[coefficient]}" if len({*several.values()}) > 1 else ""
            counts[f"{section}{place}"] = n
    cells = {
        "DEnsity minus this": _difference, "p": small_p(), "Holm": small_p("holm_p"),
    }  # fmt: skip
    shown = frame.assign(group=frame["coefficient"].map(COEFFICIENTS))
    labels = {"section": "Kind", "label": "Metric"}
    parts = {name: of for (name,), of in groups(shown, "dataset")}
    return described(
        study,
        frame,
        [
            _summary(frame, titles),
            *(Section(titles[name], spread(of, labels, "group", cells)) for name, of in parts.items()),
        ],
        *(f"{titles[name]} has no scores of DEnsity: {why}" for name in study["datasets"] if name not in parts),
        tests=over_tests(counts),
    )


def _pairs(inputs: Inputs, about: About) -> pd.DataFrame:
    """Return the tests of single responses in the dimension of each data set, by Pearson and Spearman."""
    result = correlations.results(inputs, about, "pairs")
    return result[(result["level"] == "turn") & (result["grouping"] == "pooled") & result["coefficient"].isin(SHOWN)]


def difference_frame(pairs: pd.DataFrame, rows: Sequence[Mapping[str, Any]], datasets: Sequence[str]) -> pd.DataFrame:
    """Return how much higher DEnsity correlates than each other metric of the rows, with the paired test.

    ``pairs`` are of one level and dimension each; ``rows`` are of ``study.yaml``, ``datasets`` which, in this order. Returns
    dataset, section, label, coefficient, difference (DEnsity minus the other), low, high, p, holm_p, n.
    Holm's correction is over the metrics of one section, data set and coefficient.
    """
    named = pd.DataFrame([row for row in rows if "metric" in row])[["section", "label", "metric", "output"]]
    named = named.rename(columns={"metric": "metric_b", "output": "output_b"}).assign(place=range(len(named)))
    result = named.merge(ranking.signed(pairs, OURS), on=["metric_b", "output_b"])
    result = result.assign(
        order=result["dataset"].map(list(datasets).index),
        kind=result["section"].map([*dict.fromkeys(named["section"])].index),
    ).sort_values(["order", "kind", "coefficient", "place"], kind="stable", ignore_index=True)
    groups = result.groupby(["dataset", "section", "coefficient"], sort=False)["p"]
    result["holm_p"] = groups.transform(lambda one: holm(one.to_numpy(np.float64))) if len(result) else result["p"]
    columns = ["dataset", "section", "label", "coefficient", "difference", "low", "high"]
    return result[[*columns, "p", "holm_p", "n"]]


def _summary(frame: pd.DataFrame, titles: Mapping[str, str]) -> Section:
    """Return a section that counts, of each kind of metrics, how many DEnsity is above."""
    records = []
    for (dataset, section, coefficient), group in groups(frame, "dataset", "section", "coefficient"):
        nearest = group.sort_values("difference").iloc[0]
        above = group[group["difference"] > 0]
        records.append(
            {
                "title": titles[dataset], "section": section, "group": COEFFICIENTS[coefficient],
                "above": f"{len(above)} of {len(group)}", "significantly": str((above["holm_p"] < ALPHA).sum()),
                "least difference": f"{nearest['label']} ({number(nearest['difference'], sign=True)})",
            }
        )  # fmt: skip
    heads = ("above", "significantly", "least difference")
    cells = {head: itemgetter(head) for head in heads}
    labels = {"title": "Data set", "section": "Kind"}
    return Section("DEnsity above", spread(pd.DataFrame(records), labels, "group", cells))


def _gains(pairs: pd.DataFrame, entry: Mapping[str, Any], datasets: Sequence[str]) -> pd.DataFrame:
    """Return what the model with the contrastive loss correlates more than the one without, by data set and score."""
    with_loss, without = entry["models"]
    parts = []
    for label, output in {row["label"]: row["output"] for row in entry["rows"]}.items():
        result = ranking.signed(pairs, (with_loss, output))
        parts.append(result[(result["metric_b"] == without) & (result["output_b"] == output)].assign(label=label))
    result = pd.concat(parts, ignore_index=True)
    result = result.sort_values("dataset", key=lambda names: names.map(list(datasets).index), kind="stable")
    return result[["dataset", "label", "coefficient", "difference", "low", "high", "p", "n"]]


# Table 3 and Figure 4: scores of single responses


def _sample(inputs: Inputs, study: Study, outputs: Sequence[str]) -> Sample:
    """Return some scores of the only data set next to its ratings of responses."""
    (dataset,) = study["datasets"]
    about = About.read(inputs["about"])
    tables = Tables.read(inputs["contexts"][0].parent, inputs["scores"], about[dataset]["source"])
    some = replace(tables, scores=ranking.of_outputs(tables.scores, outputs))
    samples = some.samples(["turn"], allow_missing=True)
    target = about.dimension(dataset, {sample.target for sample in samples})
    return next(sample for sample in samples if sample.target == target)


def examples(inputs: Inputs, study: Study) -> Table:
    """Show the scores of the paper's examples (Table 3): normalised to 0 to 1, and ranks divided by their number."""
    one, rows = About.read(inputs["about"]).only, study["entry"]["rows"]
    columns = ("source", "place", "example", "context_id", "system_id", "metric")
    known = read_reported(inputs["reported"], columns, ("score", "rank"))
    labels = {f"{row['metric']}:{row['output']}": row["label"] for row in rows if "metric" in row}
    sample = _sample(inputs, study, [*labels])
    ours = {"People": sample.ratings} | {
        labels[":".join(name)]: scores for name, scores in zip(sample.names, sample.scores, strict=True)
    }
    units = pd.MultiIndex.from_tuples(sample.units)
    score = pd.DataFrame({name: _normalised(pd.Series(values, units)) for name, values in ours.items()})
    rank = pd.DataFrame({name: pd.Series(values, units).rank(pct=True) for name, values in ours.items()})
    absent = {}
    for name in (name for name in labels if labels[name] not in ours):
        metric = output_name(name)[0]
        none = "it was not run there" if metric in one["metrics"] else f"no metric {metric!r} in params.yaml"
        absent[labels[name]] = one["not_run"].get(metric, none)
    records = []
    for (example, context, system), group in groups(known, "example", "context_id", "system_id"):
        printed = group.set_index("metric")[["score", "rank"]]
        for row in [{"label": "People", "reported": "Human"}, *rows]:
            name, theirs = row["label"], printed.reindex([row.get("reported")]).iloc[0]
            unit = (context, system)
            own = (score.at[unit, name], rank.at[unit, name]) if name in score else (np.nan, np.nan)
            records.append([f"{example}: {context}, {system}", name, theirs["score"], theirs["rank"], *own])
    names = ["example", "label", "reported", "reported_rank", "ours", "rank"]
    frame = pd.DataFrame(records, columns=names)
    sections = []
    for (example,), part in groups(frame, "example"):
        texts = part.set_index("label")[names[2:]].map(number, digits=2)
        texts.loc[texts.index.isin([*absent]), ["ours", "rank"]] = "not run"
        texts.columns = pd.MultiIndex.from_product([["Paper", "Ours"], ["score", "rank"]])
        sections.append(Section(f"Example {example}", texts.rename_axis(index="Metric")))
    notes = grouped_notes([*absent.items()])
    return described(study, frame, sections, *notes, title=one["title"])


def _normalised(values: pd.Series) -> pd.Series:
    """Scale values to 0 to 1; missing if all are equal."""
    return (values - values.min()) / ((values.max() - values.min()) or np.nan)


def scatter(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw scores against ratings, a panel for each metric (Figure 4)."""
    about, labels = About.read(inputs["about"]), study["entry"]["outputs"]
    sample = _sample(inputs, study, [*labels])
    known = dict(zip(map(":".join, sample.names), sample.scores, strict=True))
    there = {name: label for name, label in labels.items() if name in known}
    if not there:
        raise NothingToShowError("none of the metrics that the figure shows was run")
    absent = [label for name, label in labels.items() if name not in there]
    ratings = _normalised(pd.Series(sample.ratings))
    noisy = ratings + np.random.default_rng(study["entry"]["seed"]).normal(0.0, study["entry"]["noise"], len(ratings))
    records, columns = [], min(4, len(there))
    pairs = {name: pd.DataFrame({"x": ratings, "y": _normalised(pd.Series(known[name]))}).dropna() for name in there}
    for name, pair in pairs.items():
        slope, intercept = np.polyfit(pair["x"], pair["y"], 1)
        metric, output = output_name(name)
        record = {"metric": metric, "output": output, "label": there[name], "n": len(pair)}
        record |= {one: float(pair["x"].corr(pair["y"], method=one)) for one in SHOWN}
        records.append(record | {"slope": slope, "intercept": intercept})
    titles = ["{label}\nr = {0}, ρ = {1}, n = {n}".format(*(short(r[one]) for one in SHOWN), **r) for r in records]
    with style.drawing():
        drawn, axes = style.panels(titles, columns, 1.75 + 0.5 / columns, 1.9, sharex=True, sharey=True)
        for place, (ax, record, pair) in enumerate(zip(axes, records, pairs.values(), strict=True)):
            # Single responses' ratings are not ours to pass on: an image in the vector forms too.
            ax.plot(noisy[pair.index], pair["y"], ".", ms=2.2, color="#0072b2", alpha=0.35, mew=0, rasterized=True)
            ax.axline((0, record["intercept"]), slope=record["slope"], color="#c00000", lw=1.3)
            ax.set_title(ax.get_title(loc="left"), loc="left", fontsize=6.5, parse_math=False)
            ax.set_xlim(-0.05, 1.05)
            ax.set_ylim(-0.03, 1.03)
            ax.set_ylabel("" if place % columns else "Score")
            ax.set_xlabel(f"Mean rating ({sample.target})" if place + columns >= len(there) else "")
        notes = study["entry"]["notes"] + (f" Not run: {'; '.join(absent)}." if absent else "")
        style.titled(drawn, study["entry"]["title"], about.only["title"], notes)
    return drawn, pd.DataFrame(records)


# Table 5: selecting responses


def selection(inputs: Inputs, study: Study) -> Table:
    """Show how well the models select responses (Table 5)."""
    known = read_reported(inputs["reported"], ("source", "place", "corpus", "contrastive", "measure"))
    records = known.assign(source="paper").drop(columns="place").to_dict("records")
    for loss, path in zip(("yes", "no"), inputs["cards"], strict=True):
        for corpus, result in read_json(path)["held-out"].items():
            about = {"source": "ours", "corpus": corpus, "contrastive": loss, "n": result["n"]}
            measures = {"recall@1": "recall_at_1", "MRR": "mrr"}
            records += [about | {"measure": measure, "value": result[key]} for measure, key in measures.items()]
    frame = pd.DataFrame(records).reindex(columns=["source", "corpus", "contrastive", "measure", "value", "n"])
    sections = []
    for source, title in study["entry"]["parts"].items():
        part = frame[frame["source"] == source]
        sizes = ["" if pd.isna(n) else f" (n = {n:.0f})" for n in part["n"]]
        part = part.assign(
            corpus=part["corpus"].str.replace("_", " ") + sizes,
            trained=part["contrastive"].map({"yes": "with contrastive loss", "no": "without contrastive loss"}),
            text=part["value"].map(number),
        )
        columns = [(corpus, measure) for corpus in dict.fromkeys(part["corpus"]) for measure in ("recall@1", "MRR")]
        texts = part.pivot(index="trained", columns=["corpus", "measure"], values="text")[columns]
        texts.columns = pd.MultiIndex.from_tuples(columns)
        sections.append(Section(title, texts.rename_axis(index="Trained")))
    return described(study, frame, sections)


# Figures 3 and 5: answers made worse


def adversarial(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw how often an answer scores higher than a worse version of it (Figure 3)."""
    entry = study["entry"]
    labels = entry["outputs"]
    frame = adversarial_frame(pd.concat([schema.read(path, "ratios") for path in inputs["ratios"]]), labels)
    if frame.empty:
        raise NothingToShowError("none of the metrics that the figure shows was run")
    parts, there = (
        dict(iter(frame.groupby("dataset", sort=False))),
        [n for n in labels if labels[n] in {*frame["label"]}],
    )
    titles = []
    for dataset, of_panel in parts.items():
        sizes = of_panel.groupby("kind")["n"].max()
        most = f" to {sizes.max()}" if sizes.max() > sizes.min() else ""
        title = entry["panels"]["recorded" if dataset == PERTURBATIONS[0] else "made"]
        titles.append(f"{title}\nn = {sizes.min()}{most} a kind")
    with style.drawing():
        drawn, axes = style.panels(titles, len(parts), 4.0, 2.7, sharey=True)
        for ax, of_panel in zip(axes, parts.values(), strict=True):
            kinds = [kind for kind in STRATEGIES.values() if kind in {*of_panel["kind"]}]
            for place, name in enumerate(there):
                own = of_panel[of_panel["label"] == labels[name]]
                x = own["kind"].map(kinds.index).to_numpy(dtype=float) + (place - (len(there) - 1) / 2) * 0.15
                ax.vlines(x, own["low"], own["high"], color=_style(name)["color"], lw=1.0)
                ax.plot(x, own["accuracy"], ls="", **_style(name))
            ax.axhline(0.5, color="0.6", lw=0.8, zorder=0)
            ax.set_xticks(range(len(kinds)), [kind.replace(" ", "\n").replace("-", "-\n") for kind in kinds])
            ax.set_ylim(0, 1.02)
            style.lines_behind(ax, "y")
            ax.set_xlim(-0.5, len(kinds) - 0.5)
        axes[0].set_ylabel("Answer scores higher\n(share of pairs)")
        handles = [style.handle(labels[name], ls="", **_style(name)) for name in there]
        style.titled(drawn, entry["title"], "DEnsity", entry["notes"], handles=handles, columns=2)
    return drawn, frame


def adversarial_frame(ratios: pd.DataFrame, labels: Mapping[str, str]) -> pd.DataFrame:
    """Return how often the answer scores higher than a worse version of it, in the order of sets, labels and kinds.

    ``ratios`` is the table of sets of pairs; ``labels`` has the outputs to show, as METRIC:OUTPUT, and what to call each.
    """
    result = ratios.assign(name=ratios["metric"] + ":" + ratios["output"], of=pd.factorize(ratios["dataset"])[0])
    result = result[
        (result["threshold"] == 0) & result["name"].isin([*labels]) & result["perturbation"].isin([*STRATEGIES])
    ]
    result = result.assign(
        label=result["name"].map(labels), kind=result["perturbation"].map(STRATEGIES), accuracy=result["ratio"],
        place=result["name"].map([*labels].index), strategy=result["perturbation"].map([*STRATEGIES].index),
    ).sort_values(["of", "place", "strategy"], kind="stable", ignore_index=True)  # fmt: skip
    return result[["dataset", "label", "metric", "output", "kind", "accuracy", "low", "high", "ties", "n"]]


def _style(name: str) -> dict[str, Any]:
    """Return the mark of an output: its form says which score, its filling which loss."""
    metric, output = output_name(name)
    colour, marker = {"density": ("#0072b2", "o"), "classifier": ("#d55e00", "s")}.get(output, ("#000000", "X"))
    return {"color": colour, "marker": marker, "mfc": "white" if metric == "density-selection" else colour, "ms": 4.5}


_LOSSES = {"density": "With the contrastive loss", "density-selection": "Without it"}
_SIDES = {"original": ("Answer", "#0072b2", "-"), "perturbed": ("Random response", "#d55e00", "--")}


def histogram_frame(scores: pd.DataFrame, bins: int = 40) -> pd.DataFrame:
    """Count the scores of answers and of random responses in cells, which both sides of a model share.

    Returns metric, side (``original`` or ``perturbed``), low and high (a cell's ends), count, n (of the side), mean, sd, and
    ``overlap``, the share that both sides' histograms have in common.
    """
    chosen = scores[(scores["output"] == "density") & scores["item_id"].str.startswith("random_response-")]
    parts = [pd.DataFrame(columns=["metric", "side", "low", "high", "count", "n", "mean", "sd", "overlap"])]
    for metric in (name for name in _LOSSES if name in {*chosen["metric"]}):
        own = chosen[chosen["metric"] == metric]
        edges = np.histogram_bin_edges(own["value"], bins)
        sides = {side: own.loc[own["system_id"] == side, "value"] for side in _SIDES}
        counts = {side: np.histogram(values, edges)[0] for side, values in sides.items()}
        overlap = float(np.minimum(*(count / max(count.sum(), 1) for count in counts.values())).sum())
        for side, values in sides.items():
            about = {"n": len(values), "mean": values.mean(), "sd": values.std(), "overlap": overlap}
            cells = {"metric": metric, "side": side, "low": edges[:-1], "high": edges[1:], "count": counts[side]}
            parts.append(pd.DataFrame(cells | about))
    return pd.concat(parts[1:] or parts, ignore_index=True)


def histograms(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw the scores of answers and of random responses (Figure 5)."""
    frame = histogram_frame(schema.read(inputs["scores"][0], "scores"))
    if frame.empty:
        raise NothingToShowError("there are no scores of DEnsity: its model was not run")
    parts = dict(groups(frame, "metric"))
    titles = [f"{_LOSSES[m]}\noverlap {short(float(part['overlap'].iloc[0]))}" for (m,), part in parts.items()]
    with style.drawing():
        drawn, axes = style.panels(titles, len(parts), 3.4, 2.3, sharey=True)
        for ax, part in zip(axes, parts.values(), strict=True):
            for side, (_, colour, line) in _SIDES.items():
                own = part[part["side"] == side]
                edges, shares = [*own["low"], own["high"].iloc[-1]], own["count"] / own["n"]
                ax.stairs(shares, edges, fill=True, color=colour, alpha=0.35)
                ax.stairs(shares, edges, color=colour, lw=1.2, ls=line)
            ax.set_xlabel("Score (minus the distance)")
            style.lines_behind(ax, "y")
        axes[0].set_ylabel("Share of responses")
        notes = study["entry"]["notes"].format(answers=frame.groupby("side")["n"].max()["original"])
        sides = _SIDES.values()
        handles = [style.handle(label, color=colour, ls="", marker="s", ms=7) for label, colour, _ in sides]
        style.titled(drawn, study["entry"]["title"], "DEnsity", notes, handles=handles)
    return drawn, frame
