# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Which metric to trust, and for what
#
# This page asks what a table of correlations can show: which metrics
# do not differ significantly, how close they are to what people reach, whether the coefficient matters, and how
# much data it takes. Every number is computed from `results/` when this page is made.

# %%
from itertools import pairwise

import matplotlib.pyplot as plt
import pandas as pd

from comperdial.report.reading import COSTS, cells, here, labels
from comperdial.report.render import number
from comperdial.report.showing import chance, drawn, items, say, show, span

bench = here()
bench.opening()

# %% [markdown]
# ## The best at each level
#
# A *rank cluster*: from the best value down, a new one begins at the metric that differs, by a paired test, from any of
# the one before. So a metric of the second cluster need not differ from the best: the list of pairs says which.
# The *human ceiling* is the mean correlation of one rater with
# the mean of the others.

# %%
correlations, ceiling = bench.correlations(), bench.ceiling()
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
# The metrics that were compared, the best first, with 95 % intervals. Filled marks are the first cluster; the dashed
# line is the human ceiling. Intervals that overlap do not mean that two metrics are equal: both saw the same dialogues,
# and the paired test below knows that.

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
# ## For what, and at what cost
#
# The best metric of each kind. *Without* a reference a metric can be used on dialogues that nobody wrote an answer for.
# From cheap to dear: counting words; a small encoder, which runs on any machine; a large model; a judge that is asked;
# scores that others recorded, which cannot be computed for new responses here.

# %%
kinds = metrics.loc[metrics.groupby(["cell", "cost", "reference"])["value"].idxmax()]
kinds = kinds.assign(best=[f"{row.label}: {span(row.value, row.low, row.high)}" for row in kinds.itertuples()])
wide = kinds.pivot(index=["cost", "reference"], columns="cell", values="best")[panels].fillna("–")
order = sorted(wide.index, key=lambda key: (COSTS.index(key[0]) if key[0] in COSTS else len(COSTS), key[1]))
show(wide.loc[order].rename_axis(columns=None))

# %% [markdown]
# Each level's best metric against the best of those that only count words, by the paired test:

# %%
comparisons = bench.result("pairs")
comparisons = comparisons.assign(
    cell=cells(comparisons), a=labels(comparisons, "_a"), b=labels(comparisons, "_b")
).query("metric_a != 'human' and metric_b != 'human'")


def tested(cell, a, b):
    """Return the paired test of two metrics, the difference as a minus b."""
    pairs = comparisons[comparisons["cell"] == cell]
    found = pairs[((pairs["a"] == a) & (pairs["b"] == b)) | ((pairs["a"] == b) & (pairs["b"] == a))]
    return None if found.empty else found.iloc[0]


lines = []
for cell, group in compared.groupby("cell"):
    best, words = group.loc[group["value"].idxmax()], group[group["cost"] == "counts words"]
    cheap = words.loc[words["value"].idxmax(), "label"] if len(words) else best["label"]
    pair = tested(cell, best["label"], cheap)
    if cheap == best["label"]:
        lines.append(f"{cell}: the best of those compared, {cheap}, counts words itself.")
    elif pair is not None:
        verdict = "told apart" if pair["p_adjusted"] < 0.05 else "not told apart"
        lines.append(
            f"{cell}: {best['label']} is {number(abs(pair['difference']))} above {cheap}; {chance(pair['p'])}, "
            f"{chance(pair['p_adjusted'])} after Holm's correction for all pairs of the level: {verdict}."
        )
items(lines) if lines else none

# %% [markdown]
# Of all pairs at a level, by Spearman's correlation, how many differ by our test at 5 %, before and after the
# correction. `docs/validation.md` shows how often the test finds a difference where there is none.

# %%
tests = {"p": "our test", "p_adjusted": "after Holm"}
ranks = comparisons[comparisons["coefficient"] == "spearman"]
# Where a test was not made, none told apart would be untrue.
told = ranks.groupby("cell")[list(tests)].agg(lambda p: (p <= 0.05).sum() if p.notna().any() else None)
found = told.astype("Int64").rename(columns=tests)
found.insert(0, "pairs", ranks.groupby("cell").size())
untested = say("<b>What is missing: tested pairs.</b> No two metrics were compared on this data set.")
show(found.rename_axis("level")) if len(found) else untested

# %% [markdown]
# ## Does the grouping matter?
#
# **Pooled or by item.** Pooled correlations put all responses together; a metric gains by knowing which *contexts* are
# easy. By item, systems are compared within one context (or dialogue), and the values are averaged. Where the two
# disagree about a metric, it sees contexts rather than answers, or the other way round.

# %%
item = bench.correlations(grouping="item")
both = metrics.merge(item[["cell", "label", "value"]], on=["cell", "label"], suffixes=("", "_item"))
both["change"] = both["value_item"] - both["value"]
for_cell = both[both["cell"] == panels[0]].dropna(subset=["change"]).set_index("label")
chosen = pd.concat([for_cell.nlargest(3, "change"), for_cell.nsmallest(3, "change")[::-1]]).drop_duplicates()
show(
    chosen[["value", "value_item", "change"]]
    .set_axis(["pooled", "by item", "by item - pooled"], axis=1)
    .rename_axis("metric")
)

# %%
agreeing = both.groupby("cell")[["value", "value_item"]].corr(method="kendall")["value"].xs("value_item", level=1)
say(
    f"Above: at the level of {panels[0]}, the metrics that gain and lose most. "
    "Agreement of the two orders of all metrics (Kendall's tau): "
    + "; ".join(f"{cell} {number(value, digits=2)}" for cell, value in agreeing.items())
    + "."
)

# %% [markdown]
# **At system level**: pairwise accuracy with tie calibration (acc_eq) is the share of pairs of systems that a metric
# orders as people do; soft pairwise accuracy (SPA) asks whether it is as sure of each pair as people are. Both are one
# half for a metric that knows nothing of systems without ties.

# %%
system = next(cell for cell in ("systems, rated by dialogue", "systems, rated by turn") if cell in set(metrics["cell"]))
measures = {"spearman": "Spearman", "kendall": "Kendall", "acc_eq": "acc_eq", "spa": "SPA"}
at_systems = {
    name: bench.correlations(key).query("cell == @system and metric != 'human'") for key, name in measures.items()
}
values = pd.DataFrame({name: found.set_index("label")["value"] for name, found in at_systems.items()})
show(
    values.loc[values.index.isin(compared["label"])].sort_values("SPA", ascending=False).head(10).rename_axis("metric")
)

# %%
orders = values.corr(method="kendall")["SPA"].drop("SPA")
count = int(metrics.loc[metrics["cell"] == system, "n"].max())
say(
    f"{system.capitalize()}, {count} of them. Agreement of SPA's order of all metrics with the order by "
    + ", ".join(f"{name}: {number(value, digits=2)}" for name, value in orders.items())
    + ". A metric that is first by one measure only is first by the choice of the measure."
)

# %% [markdown]
# ## How much data it takes
#
# The same study on fewer systems, dialogues or raters, drawn many times: how well its ranking of metrics agrees with
# the one on all the data (Kendall's tau; 1 is the same order).

# %%
curves = bench.result("curves")
curves = curves.assign(cell=cells(curves)).drop_duplicates(["cell", "varied", "size"]).dropna(subset=["agreement"])
# One empty figure where there are no curves; it is not shown.
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
# The chance that a test at 5 % finds a difference of two metrics (its power), by the size of the difference. The
# usual wish is four in five.

# %%
power = bench.result("power").dropna(subset=["power"])
edges = [0, 0.02, 0.05, 0.1, 0.2, 2]
names = [f"{low:g} to {high:g}" for low, high in pairwise(edges)]
power = power.assign(difference=pd.cut(power["difference"].abs(), edges, labels=names, right=False), cell=cells(power))
mean = power.pivot_table(index=["cell", "varied", "size"], columns="difference", values="power", observed=True)
show(mean.rename_axis(["level", "varied", "number"])) if len(mean) else say("No power was computed on this data set.")

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
        f"{cell}: {open_pairs} of {len(pairs)} pairs are not told apart; the median interval is "
        f"{number(width, digits=2)} wide; {near} of {len(group)} metrics have the human ceiling within or below "
        "their interval."
    )
n = metrics.groupby("cell")["n"].max()
lines += [
    f"{cell}: only {count} systems. A rank correlation of so few can take few values, and no test has power."
    for cell, count in n.items()
    if cell.startswith("systems") and count < 10
]
if not any("dialogue" in cell for cell in n.index):
    lines.append("Dialogues were not rated as a whole, so nothing here is about the quality of a dialogue.")
part = metrics[metrics["coverage"] < 1]["label"].unique()
if len(part):
    lines.append(
        f"Scored on a part of the responses only, and so not on the same data as the others: {', '.join(part)}."
    )
lines.append("Metrics whose models were not at hand are not here; <code>results/</code> names them.")
lines.append(
    "All of this is about these systems, these dialogues and these raters, and their rating of "
    + ("overall quality." if bench.target == "Overall" else f"one dimension, {bench.target}.")
)
items(lines)
