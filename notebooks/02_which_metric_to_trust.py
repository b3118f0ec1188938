# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Which metric should you trust, and for what?
#
# The best metric for single responses, dialogues and systems, what it costs, and whether its lead is more than chance.
# Every number is computed from `results/` when the page is made. `COMPERDIAL_DATASET` chooses another data set.

# %%
import os

import matplotlib.pyplot as plt
import pandas as pd

from comperdial.report.reading import COSTS, cells, here, labels
from comperdial.report.render import number
from comperdial.report.showing import chance, drawn, items, say, show, span

bench = here(os.environ.get("COMPERDIAL_DATASET") or "usr_persona")
bench.opening()

# %% [markdown]
# ## The best at each level
#
# Metrics are sorted by Spearman's correlation with people. A *rank cluster* ends before the first metric that is
# significantly worse than any of its members. The *human ceiling* is the mean correlation of one rater with the mean of the
# others.

# %%
correlations, ceiling = bench.correlations(), bench.ceiling()
# Trained metrics run models that their signatures do not name as such.
for kind, cost in {"local|": "large model", "density|": "small encoder"}.items():
    correlations.loc[correlations["signature"].str.startswith(kind), "cost"] = cost
metrics = correlations[correlations["metric"] != "human"]
compared = metrics[metrics["rank"].notna()]
rows = []
for cell, group in compared.groupby("cell"):
    best = group.loc[group["value"].idxmax()]
    first = group[group["rank"] == group["rank"].min()].sort_values("value", ascending=False)
    rows.append(
        {
            "level": cell,
            "best": best["label"],
            "Spearman": span(best["value"], best["low"], best["high"]),
            "ceiling": ceiling.get(cell, float("nan")),
            "n": best["n"],
            "compared": len(group),
            "in its cluster": len(first),
            "lowest value in it": first["value"].min(),
        }
    )
none = say(
    "<b>What is missing: compared metrics.</b> No metric has a rank here, because no pair of metrics was tested."
)
show(pd.DataFrame(rows), index=False) if rows else none


# %% [markdown]
# The ten best with 95 % intervals. Filled marks are the first cluster; the dashed line is the human ceiling. Overlapping
# intervals do not mean that two metrics are equal: the paired test below uses that both scored the same responses.

# %%
panels = [cell for cell in ("turns", "dialogues", "systems, rated by turn") if cell in set(metrics["cell"])]
figure, axes = plt.subplots(1, len(panels), figsize=(4.2 * len(panels), 3.4), squeeze=False, layout="constrained")
for ax, cell in zip(axes[0], panels, strict=True):
    shown = compared[compared["cell"] == cell].nlargest(10, "value")[::-1]
    lead = shown["rank"] == shown["rank"].min()
    ends = shown[["low", "high"]].assign(gap=float("nan")).to_numpy().ravel()
    ax.plot(ends, [row for row in range(len(shown)) for _ in range(3)], color="0.6")
    ax.plot(shown["value"], range(len(shown)), "o", mfc="white", mec="black", ms=5)
    ax.plot(shown["value"][lead], lead.to_numpy().nonzero()[0], "o", color="black", ms=5)
    if cell in ceiling:
        ax.axvline(ceiling[cell], color="black", ls="--", lw=1)
    ax.set_yticks(range(len(shown)), shown["label"], fontsize=8)
    ax.yaxis.set_ticks_position("none")
    ax.set_title(cell, fontsize=10, loc="left")
    ax.spines[["top", "right"]].set_visible(False)
page = drawn(figure)
page if rows else none

# %% [markdown]
# ## What does it cost?
#
# The best metric of each kind, with and without a reference response, from cheap to expensive. Recorded scores were
# published by others and cannot be computed for new responses.

# %%
kinds = metrics.loc[metrics.groupby(["cell", "cost", "reference"])["value"].idxmax()]
kinds = kinds.assign(best=[f"{row.label}: {span(row.value, row.low, row.high)}" for row in kinds.itertuples()])
wide = kinds.pivot(index=["cost", "reference"], columns="cell", values="best")[panels].fillna("–")
order = sorted(wide.index, key=lambda key: (COSTS.index(key[0]) if key[0] in COSTS else len(COSTS), key[1]))
show(wide.loc[order].rename_axis(columns=None))

# %% [markdown]
# Is the best metric better than the best one that only counts words? The paired test:

# %%
comparisons = bench.result("pairs")
comparisons = comparisons.assign(
    cell=cells(comparisons), a=labels(comparisons, "_a"), b=labels(comparisons, "_b")
).query("metric_a != 'human' and metric_b != 'human' and coefficient == 'spearman' and grouping == 'pooled'")


def tested(cell, a, b):
    """Return the paired test of two metrics, the difference as a minus b."""
    pairs = comparisons[comparisons["cell"] == cell]
    matching = pairs[((pairs["a"] == a) & (pairs["b"] == b)) | ((pairs["a"] == b) & (pairs["b"] == a))]
    return None if matching.empty else matching.iloc[0]


lines = []
for cell, group in compared.groupby("cell"):
    best, words = group.loc[group["value"].idxmax()], group[group["cost"] == "counts words"]
    cheap = words.loc[words["value"].idxmax(), "label"] if len(words) else best["label"]
    pair = tested(cell, best["label"], cheap)
    if cheap == best["label"]:
        lines.append(f"{cell}: the best metric, {cheap}, counts words itself.")
    elif pair is not None:
        verdict = "significant" if pair["p_adjusted"] < 0.05 else "not significant"
        lines.append(
            f"{cell}: {best['label']} is {number(abs(pair['difference']))} above {cheap}; {chance(pair['p'])}, "
            f"{chance(pair['p_adjusted'])} after Holm's correction over all pairs of the level: {verdict}."
        )
items(lines) if lines else none

# %% [markdown]
# How many pairs of metrics differ significantly at 5 %, before and after the correction:

# %%
tests = {"p": "our test", "p_adjusted": "after Holm"}
# Without a test the number is missing, not zero.
counts = comparisons.groupby("cell")[list(tests)].agg(lambda p: (p <= 0.05).sum() if p.notna().any() else None)
differing = counts.astype("Int64").rename(columns=tests)
differing.insert(0, "pairs", comparisons.groupby("cell").size())
untested = say("<b>What is missing: tested pairs.</b> No two metrics were compared on this data set.")
show(differing.rename_axis("level")) if len(differing) else untested

# %% [markdown]
# ## How much data does it take?
#
# If only some of the systems, dialogues or raters are used, how well does the ranking of metrics agree with the full one?
# Kendall's tau, averaged over many draws; 1 is the same order.

# %%
curves = bench.result("curves")
curves = curves.assign(cell=cells(curves)).drop_duplicates(["cell", "varied", "size"]).dropna(subset=["agreement"])
# Without curves an empty figure is made and not shown.
varied = list(dict.fromkeys(curves["varied"])) or ["data"]
styles = dict(zip(curves["cell"].cat.categories, ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1))), strict=True))
figure, axes = plt.subplots(
    1, len(varied), figsize=(3.2 * len(varied), 2.4), sharey=True, squeeze=False, layout="constrained"
)
for ax, name in zip(axes[0], varied, strict=True):
    for cell, group in curves[curves["varied"] == name].groupby("cell"):
        ax.plot(group["size"], group["agreement"], ls=styles[cell], color="black", label=cell)
    ax.set(xlabel=f"number of {name}")
    ax.spines[["top", "right"]].set_visible(False)
axes[0][0].set_ylabel("agreement with all data")
if len(curves):
    axes[0][-1].legend(frameon=False, fontsize=7)
page = drawn(figure)
page if len(curves) else say("No learning curves were computed on this data set.")

# %% [markdown]
# ## What these data cannot show

# %%
lines = []
for cell, group in compared.groupby("cell"):
    pairs = comparisons[comparisons["cell"] == cell]
    open_pairs = int((pairs["p_adjusted"] >= 0.05).sum() + pairs["p_adjusted"].isna().sum())
    width = (group["high"] - group["low"]).median()
    near = int((group["high"] >= ceiling[cell]).sum()) if cell in ceiling else 0
    lines.append(
        f"{cell}: {open_pairs} of {len(pairs)} pairs do not differ significantly; the median interval is "
        f"{number(width, digits=2)} wide; {near} of {len(group)} metrics reach the human ceiling with their "
        "interval."
    )
n = metrics.groupby("cell")["n"].max()
lines += [
    f"{cell}: only {count} systems. A rank correlation can take few values, and no test has power."
    for cell, count in n.items()
    if cell.startswith("systems") and count < 10
]
if not any("dialogue" in cell for cell in n.index):
    lines.append("Dialogues were not rated as a whole, so nothing here is about the quality of a dialogue.")
part = metrics[metrics["coverage"] < 1]["label"].unique()
if len(part):
    lines.append(f"Not comparable, because they scored only some of the responses: {', '.join(part)}.")
lines.append("Metrics whose models were not available are missing.")
lines.append(f"Other systems, dialogues and raters may give other results. The raters judged: {bench.target}.")
items(lines)
