# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # The benchmark at a glance
#
# What was rated, how far the raters agree, which systems are best, what a dialogue looks like, and how the metrics do.
# Every number is computed from `results/` and `data/tables/` when this page is made.

# %%
import matplotlib.pyplot as plt
import pandas as pd

from comperdial.report.reading import here
from comperdial.report.render import number
from comperdial.report.showing import drawn, quoted, say, show, span

bench = here()
bench.opening()

# %% [markdown]
# ## What was rated
#
# A *turn* is one response of one system to one context. A *dialogue* is all turns of one system in one dialogue.

# %%
contexts, systems, responses = (bench.table(name) for name in ("contexts", "systems", "responses"))
dialogue_of = contexts.set_index("context_id")["dialogue_id"]
ratings = {level: found for level in ("turn", "dialogue") if len(found := bench.ratings(level))}
rows = [
    {
        "what": f"{level}s",
        "systems": found["system_id"].nunique(),
        "dialogues": found["item_id"].map(dialogue_of).fillna(found["item_id"]).nunique(),
        "rated items": found.drop_duplicates(["item_id", "system_id"]).shape[0],
        "raters": found["annotator_id"].nunique(),
        "ratings": len(found),
        "scale": f"{found['scale_min'].min():.0f} to {found['scale_max'].max():.0f}",
        "mean": found["rating"].mean(),
    }
    for level, found in ratings.items()
]
show(pd.DataFrame(rows), index=False)

# %%
kinds = systems["kind"].value_counts()
turns = contexts.groupby("dialogue_id").size()
say(
    f"The {len(systems)} systems by kind: {', '.join(f'{n} {kind}' for kind, n in kinds.items())}. "
    f"Rated turns in a dialogue: {' to '.join(map(str, sorted({turns.min(), turns.max()})))}. "
    "The history before a turn is that of the written dialogue, whatever a system said earlier."
)

# %% [markdown]
# ## How far the raters agree
#
# Krippendorff's alpha: 1 is full agreement, 0 what chance gives. Its 95 % interval resamples whole dialogues of a
# system.

# %%
agreement = bench.rendered("alpha")
alpha = agreement[agreement["statistic"].str.startswith("alpha")]
alpha = alpha.assign(alpha=[span(*row) for row in alpha[["value", "low", "high"]].to_numpy()])
show(alpha.pivot(index=["level", "dimension"], columns="statistic", values="alpha").rename_axis(columns=None))

# %% [markdown]
# One rater against the others: the mean difference from them on what both rated. A kind rater is above zero.

# %%
bias = agreement[(agreement["statistic"] == "bias") & (agreement["dimension"] == bench.target)]
show(bias.pivot(index="annotator_id", columns="level", values="value").rename_axis(index="rater", columns=None))

# %% [markdown]
# ## The best and the worst systems
#
# By the mean rating of their turns, and of their dialogues where these were rated.

# %%
mean = pd.DataFrame(
    {f"by {level}": found.groupby("system_id")["rating"].mean() for level, found in ratings.items()}
).sort_values("by turn", ascending=False)
mean = mean.join(systems.set_index("system_id")[["kind", "description"]])
ends = mean if len(mean) <= 12 else pd.concat([mean.head(5), mean.tail(5)])
show(ends.rename_axis("system"))

# %%
figure, ax = plt.subplots(figsize=(7, 2.4))
places = range(1, len(mean) + 1)
for column, style in zip(mean.columns[: len(ratings)], ["-", ":"], strict=False):
    ax.plot(places, mean[column], style, color="black", label=f"rated {column}")
people = mean[mean["kind"] == "human"]
ax.plot(mean.index.get_indexer(people.index) + 1, people["by turn"], "o", mfc="none", label="a person answers")
ax.set(xlabel="systems, the best by turn first", ylabel="mean rating")
ax.legend(frameon=False, fontsize=8)
ax.spines[["top", "right"]].set_visible(False)
drawn(figure)

# %% [markdown]
# ## One dialogue
#
# The one in which the best and the worst system differ most: A's utterances, and what each of the two answered,
# with its mean rating.

# %%
best, worst = mean.index[0], mean.index[-1]
turn = ratings["turn"].groupby(["item_id", "system_id"])["rating"].mean().unstack()
gap = (turn[best] - turn[worst]).groupby(dialogue_of).mean()
chosen = contexts[contexts["dialogue_id"] == gap.idxmax()].sort_values("turn")
said = responses.set_index(["context_id", "system_id"])["response"]
rows = [
    {"A said": quoted(history[-1]["text"], 160)}
    | {
        f"{name} answered": f"{quoted(said[context, name], 160)} ({number(turn.loc[context, name], digits=1)})"
        for name in (best, worst)
    }
    for context, history in zip(chosen["context_id"], chosen["history"], strict=True)
]
show(pd.DataFrame(rows), index=False, escape=False)

# %%
say(f"What each of them was told of itself: <i>{quoted(' '.join(chosen['facts'].iloc[0]), 2000) or 'nothing'}</i>")

# %% [markdown]
# ## How the metrics do
#
# Spearman correlation with the mean rating, and its 95 % interval, for the best metric of each level. The *human
# ceiling* is the same correlation for one rater against the mean of the others: a metric that reaches it agrees with
# people as a single one of them does.

# %%
correlations, ceiling = bench.correlations(), bench.ceiling()
metrics = correlations[correlations["metric"] != "human"]
top = metrics.loc[metrics.groupby("cell")["value"].idxmax()]
top = top.assign(
    spearman=[span(*row) for row in top[["value", "low", "high"]].to_numpy()],
    ceiling=top["cell"].map(ceiling).astype(float),
)
columns = {"cell": "level", "label": "best metric", "spearman": "Spearman", "ceiling": "human ceiling", "n": "n"}
show(top[list(columns)].rename(columns=columns), index=False)

# %% [markdown]
# The best at turn level, at the other levels too:

# %%
wide = metrics.pivot(index="label", columns="cell", values="value").rename_axis(index="metric", columns=None)
show(wide.sort_values("turns", ascending=False).head(8))

# %%
middle = metrics.groupby("cell")["value"].median()
say(
    "The median over all metrics: "
    + "; ".join(f"{cell} {number(value, digits=2)}" for cell, value in middle.items())
    + ". Means over many ratings carry less noise than single ones, for people as for metrics, so these levels do not "
    "compare with each other. A metric may rank systems well and still say little of a single response."
)

# %% [markdown]
# Which of these differences are real, and how many systems and dialogues it takes to see them:
# `02_which_metric_to_trust`.
