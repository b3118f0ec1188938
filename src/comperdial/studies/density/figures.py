"""The study's figures: accuracy on worse answers (3), scores against ratings (4), scores of answers and random ones (5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from comperdial.core.artifact import figure
from comperdial.core.errors import NothingToShowError
from comperdial.core.names import output_name
from comperdial.studies.density.results import (
    RECORDED,
    RESULTS,
    SCATTERED,
    STRATEGIES,
    paired,
    rated,
    rows,
    samples,
    scores,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from comperdial.jobs.plan import Plan

_CATEGORY = "DEnsity"
_LOSSES = {"density": "with the contrastive loss", "density-selection": "without it"}
_SIDES = {"original": ("Answer", "#0072b2", "-"), "perturbed": ("Random response", "#d55e00", "--")}
_NOISE = 0.03


def _once(plan: Plan) -> list[dict[str, str]]:
    return [{}] if paired(plan) else []


def adversarial_frame(ratios: pd.DataFrame, labels: Mapping[str, str]) -> pd.DataFrame:
    """Return how often the answer scores higher than a worse version of it, by kind of worse version.

    Parameters
    ----------
    ratios
        Table ``ratios`` of sets of pairs.
    labels
        The outputs to show, as METRIC:OUTPUT, and what to call each.

    Returns
    -------
    DataFrame
        dataset, label, metric, output, kind (the paper's name), accuracy, low, high, ties, n; in the order of sets, labels and
        kinds.
    """
    of_drops = ratios[ratios["threshold"] == 0]
    records = []
    for dataset in dict.fromkeys(of_drops["dataset"]):
        for name, label in labels.items():
            metric, output = output_name(name)
            for strategy, kind in STRATEGIES.items():
                found = of_drops[
                    (of_drops["dataset"] == dataset)
                    & (of_drops["perturbation"] == strategy)
                    & (of_drops["metric"] == metric)
                    & (of_drops["output"] == output)
                ]
                records += [
                    {"dataset": dataset, "label": label, "metric": metric, "output": output, "kind": kind}
                    | {"accuracy": row["ratio"], **{key: row[key] for key in ("low", "high", "ties", "n")}}
                    for row in found.to_dict("records")
                ]
    columns = ["dataset", "label", "metric", "output", "kind", "accuracy", "low", "high", "ties", "n"]
    return pd.DataFrame(records, columns=columns)


@figure(
    "studies/density/figures/density_figure_3",
    of=_once,
    inputs=lambda plan: {"ratios": [f"{RESULTS}/pairs/{name}_ratios.parquet" for name in paired(plan)]},
    settings=lambda plan: {"wanted": rows()["adversarial"]},
    caption="DEnsity's Figure 3: how often an answer scores higher than a worse version of it.",
    category=_CATEGORY,
)
def figure_3(*, ratios: Sequence[Path], wanted: Sequence[tuple[str, str]]) -> tuple[Figure, pd.DataFrame]:
    """Draw the accuracy on worse answers."""
    from comperdial import schema
    from comperdial.report.plots.style import drawing, figure_and_axes, lines_behind, titled

    labels = dict(wanted)
    frame = adversarial_frame(pd.concat([schema.read(path, "ratios") for path in ratios]), labels)
    if frame.empty:
        raise NothingToShowError("none of the metrics that the figure shows was run")
    names = {RECORDED: "Khalid and Lee's pairs, of DailyDialog and PersonaChat"}
    panels = list(dict.fromkeys(frame["dataset"]))
    there = {name: label for name, label in labels.items() if label in set(frame["label"])}
    with drawing():
        from matplotlib.lines import Line2D

        drawn, axes = figure_and_axes(1, len(panels), (3.9 * len(panels) + 0.3, 2.7), sharey=True)
        for ax, dataset in zip(axes[0], panels, strict=True):
            of_panel = frame[frame["dataset"] == dataset]
            kinds = [kind for kind in STRATEGIES.values() if kind in set(of_panel["kind"])]
            for place, (name, label) in enumerate(there.items()):
                own = of_panel[of_panel["label"] == label]
                x = own["kind"].map(kinds.index).to_numpy(dtype=float) + (place - (len(there) - 1) / 2) * 0.15
                reach = [own["accuracy"] - own["low"], own["high"] - own["accuracy"]]
                ax.errorbar(x, own["accuracy"], yerr=reach, ls="", elinewidth=1.0, **_style(name))
            ax.axhline(0.5, color="0.6", lw=0.8, zorder=0)
            ax.set_xticks(range(len(kinds)), [kind.replace(" ", "\n").replace("-", "-\n") for kind in kinds])
            ax.set_ylim(0, 1.02)
            ax.set_title(f"{names.get(dataset, 'Made here of DailyDialog-Zhao')}\n{_counted(of_panel)}", loc="left")
            lines_behind(ax, "y")
            ax.set_xlim(-0.5, len(kinds) - 0.5)
        axes[0][0].set_ylabel("Answer scores higher\n(share of pairs)")
        handles = [Line2D([], [], ls="", label=label, **_style(name)) for name, label in there.items()]
        titled(
            drawn,
            "Figure 3. Answers and worse versions of them",
            "DEnsity",
            "Marks: the share of pairs whose answer scores higher, with the 95 % interval; the line at 0.5 is chance. Left: "
            "pairs of Khalid and Lee (2022), whose data the paper used, as Zhang et al. (2024) published them; which of them the "
            "paper took is not known. Right: pairs that our perturbations made of good responses of DailyDialog-Zhao, without "
            "speaker-sensitiveness (the history's last utterance before the answer). Our model is one on MiniLM, trained on all "
            "corpora; the paper's is BERT on DailyDialog, and its values are in no text.",
            handles=handles,
            columns=2,
        )
    return drawn, frame


def _style(name: str) -> dict[str, Any]:
    """Return the mark of an output: its form says which score, its filling which loss."""
    metric, output = output_name(name)
    colour, marker = {"density": ("#0072b2", "o"), "classifier": ("#d55e00", "s")}.get(output, ("#000000", "X"))
    return {"color": colour, "marker": marker, "mfc": "white" if metric == "density-selection" else colour, "ms": 4.5}


def _counted(frame: pd.DataFrame) -> str:
    sizes = frame.groupby("kind")["n"].max()
    return f"n = {sizes.min()}" + (f" to {sizes.max()}" if sizes.max() > sizes.min() else "") + " a kind"


@figure(
    "studies/density/figures/density_figure_4",
    of=_once,
    inputs=lambda plan: {
        **rated(plan, SCATTERED),
        "scores": scores(plan, SCATTERED, [name for name, _ in rows()["scatter"]]),
    },
    settings=lambda plan: {
        **plan.rated_by(SCATTERED),
        **plan.target(SCATTERED),
        "title": plan.title(SCATTERED),
        "wanted": rows()["scatter"],
        "seed": plan.config["evaluation"]["seed"],
    },
    caption="DEnsity's Figure 4: scores of responses against people's ratings on DailyDialog-Zhao.",
    category=_CATEGORY,
)
def figure_4(
    *,
    scores: Sequence[Path],
    wanted: Sequence[tuple[str, str]],
    title: str,
    seed: int,
    **about: Any,  # noqa: ANN401 - what samples() takes
) -> tuple[Figure, pd.DataFrame]:
    """Draw scores against ratings, a panel for each metric."""
    from comperdial.report.plots.style import drawing, figure_and_axes, short, titled
    from comperdial.stats.correlation import correlate

    labels = dict(wanted)
    sample = samples(scores, list(labels), **about)[0]
    known = {":".join(name): values for name, values in zip(sample.names, sample.scores, strict=True)}
    there = {name: label for name, label in labels.items() if name in known}
    if not there:
        raise NothingToShowError("none of the metrics that the figure shows was run")
    absent = [label for name, label in labels.items() if name not in there]
    ratings = _normalised(sample.ratings)
    noisy = ratings + np.random.default_rng(seed).normal(0.0, _NOISE, len(ratings))
    records = []
    columns = min(4, len(there))
    lines = -(-len(there) // columns)
    with drawing():
        drawn, axes = figure_and_axes(
            lines, columns, (1.75 * columns + 0.5, 1.85 * lines + 0.2), sharex=True, sharey=True
        )
        for ax in axes.flat[len(there) :]:
            ax.set_axis_off()
        for ax, (name, label) in zip(axes.flat, there.items(), strict=False):
            kept = ~np.isnan(known[name])
            x, y = ratings[kept], _normalised(known[name][kept])
            slope, intercept = np.polyfit(x, y, 1)
            found = {one: correlate(x, y, one).value for one in ("pearson", "spearman")}
            metric, output = output_name(name)
            records.append(
                {"metric": metric, "output": output, "label": label, "n": int(kept.sum()), **found}
                | {"slope": slope, "intercept": intercept}
            )
            # Single responses' ratings are not ours to pass on: an image in the vector forms too.
            ax.plot(noisy[kept], y, ".", ms=2.2, color="#0072b2", alpha=0.35, mew=0, rasterized=True)
            ax.plot([0, 1], [intercept, intercept + slope], color="#c00000", lw=1.3)
            said = f"r = {short(found['pearson'])}, ρ = {short(found['spearman'])}, n = {kept.sum()}"
            ax.set_title(f"{label}\n{said}", loc="left", fontsize=6.5, parse_math=False)
            ax.set_ylim(-0.03, 1.03)
        for ax in axes[:, 0]:
            ax.set_ylabel("Score")
        for column in range(columns):
            last = axes[(len(there) - 1 - column) // columns][column]
            last.set_xlabel(f"Mean rating ({sample.target})")
            last.tick_params(labelbottom=True)
        titled(
            drawn,
            "Figure 4. Scores against ratings",
            title,
            f"Each point: a response. Both sides are normalised to 0 to 1; as in the paper, the ratings have noise of {_NOISE} "
            "added so that points do not hide each other. Red: linear regression, without that noise. Reference-based metrics "
            "have no score of the references themselves. " + (f"Not run: {'; '.join(absent)}." if absent else ""),
        )
    return drawn, pd.DataFrame(records)


def _normalised(values: Any) -> Any:  # noqa: ANN401 - arrays
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high > low else np.full(len(values), 0.5)


def histogram_frame(scores: pd.DataFrame, bins: int = 40) -> pd.DataFrame:
    """Count the scores of answers and of random responses in cells, which models of one output share.

    Parameters
    ----------
    scores
        Table ``scores`` of pairs: metrics of :data:`_LOSSES`, output ``density``, kind ``random_response``.
    bins
        How many cells a model's range is cut into.

    Returns
    -------
    DataFrame
        metric, side (``original`` or ``perturbed``), low and high (a cell's ends), count, n (of the side), mean, sd, and
        ``overlap``, the share that both sides' histograms have in common.
    """
    chosen = scores[
        (scores["output"] == "density")
        & scores["metric"].isin(list(_LOSSES))
        & scores["item_id"].str.startswith("random_response-")
    ]
    records = []
    for metric in (name for name in _LOSSES if name in set(chosen["metric"])):
        own = chosen[chosen["metric"] == metric]
        edges = np.histogram_bin_edges(own["value"], bins)
        sides = {side: own.loc[own["system_id"] == side, "value"] for side in _SIDES}
        counts = {side: np.histogram(values, edges)[0] for side, values in sides.items()}
        shares = [count / max(count.sum(), 1) for count in counts.values()]
        overlap = float(np.minimum(*shares).sum())
        for side, values in sides.items():
            about = {"n": len(values), "mean": values.mean(), "sd": values.std(), "overlap": overlap}
            records += [
                {"metric": metric, "side": side, "low": low, "high": high, "count": int(count), **about}
                for low, high, count in zip(edges[:-1], edges[1:], counts[side], strict=True)
            ]
    columns = ["metric", "side", "low", "high", "count", "n", "mean", "sd", "overlap"]
    return pd.DataFrame(records, columns=columns)


@figure(
    "studies/density/figures/density_figure_5",
    of=lambda plan: _once(plan) if RECORDED in paired(plan) else [],
    inputs=lambda plan: {"scores": f"{RESULTS}/pairs/{RECORDED}.parquet"},
    caption="DEnsity's Figure 5: scores of answers and of random responses, with and without the contrastive loss.",
    category=_CATEGORY,
)
def figure_5(*, scores: Path) -> tuple[Figure, pd.DataFrame]:
    """Draw the scores of answers and of random responses."""
    from comperdial import schema
    from comperdial.report.plots.style import drawing, figure_and_axes, lines_behind, short, titled

    frame = histogram_frame(schema.read(scores, "scores"))
    if frame.empty:
        raise NothingToShowError("there are no scores of DEnsity: its model was not run")
    panels = list(dict.fromkeys(frame["metric"]))
    with drawing():
        from matplotlib.patches import Patch

        drawn, axes = figure_and_axes(1, len(panels), (3.3 * len(panels) + 0.3, 2.3), sharey=True)
        for ax, metric in zip(axes[0], panels, strict=True):
            of_panel = frame[frame["metric"] == metric]
            for side, (_, colour, line) in _SIDES.items():
                own = of_panel[of_panel["side"] == side]
                edges = [*own["low"], own["high"].iloc[-1]]
                shares = own["count"] / own["n"]
                ax.stairs(shares, edges, fill=True, color=colour, alpha=0.35)
                ax.stairs(shares, edges, color=colour, lw=1.2, ls=line)
            overlap = short(float(of_panel["overlap"].iloc[0]))
            ax.set_title(f"{_LOSSES[metric].capitalize()}\noverlap {overlap}", loc="left")
            ax.set_xlabel("Score (minus the distance)")
            lines_behind(ax, "y")
        axes[0][0].set_ylabel("Share of responses")
        sizes = frame.groupby("side")["n"].max()
        titled(
            drawn,
            "Figure 5. Answers and random responses",
            "DEnsity",
            f"Scores of {sizes['original']} answers between people and of a random response in the place of each: Khalid and "
            "Lee's pairs of DailyDialog and PersonaChat (the paper: the validation set of DailyDialog). Scales differ: "
            "each model has a space of its own. Overlap: the share that both histograms have in common.",
            handles=[Patch(color=colour, alpha=0.6, label=label) for label, colour, _ in _SIDES.values()],
        )
    return drawn, frame
