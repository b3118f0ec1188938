# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What was rated, and how far do the raters agree?
#
# How many responses, systems and raters a data set has, how reliable its ratings are, and whether they separate the systems.
# Every number is computed from `results/` and `data/tables/` when the page is made. `COMPERDIAL_DATASET` chooses another
# data set.

# %%
import os

import matplotlib.pyplot as plt
import pandas as pd

from comperdial.report.reading import here
from comperdial.report.render import number
from comperdial.report.showing import drawn, say, show, span

bench = here(os.environ.get("COMPERDIAL_DATASET") or "usr_persona")
bench.opening()

# %% [markdown]
# ## What was rated
#
# A *turn* is one response of one system to one context. A *dialogue* is all turns of one system in one dialogue.

# %%
contexts, systems = bench.table("contexts"), bench.table("systems")
dialogue_of = contexts.set_index("context_id")["dialogue_id"]
ratings = {level: rated for level in ("turn", "dialogue") if len(rated := bench.ratings(level))}
rows = [
    {
        "what": f"{level}s",
        "systems": rated["system_id"].nunique(),
        "dialogues": rated["item_id"].map(dialogue_of).fillna(rated["item_id"]).nunique(),
        "rated items": rated.drop_duplicates(["item_id", "system_id"]).shape[0],
        "raters": rated["annotator_id"].nunique(),
        "ratings": len(rated),
        "scale": f"{rated['scale_min'].min():.0f} to {rated['scale_max'].max():.0f}",
        "mean": rated["rating"].mean(),
    }
    for level, rated in ratings.items()
]
show(pd.DataFrame(rows), index=False)

# %%
kinds = systems["kind"].value_counts()
turns = contexts.groupby("dialogue_id").size()
say(
    f"The {len(systems)} systems by kind: {', '.join(f'{n} {kind}' for kind, n in kinds.items())}. "
    f"Rated turns in a dialogue: {' to '.join(map(str, sorted({turns.min(), turns.max()})))}. "
    "All systems continue the same history, which people wrote."
)

# %% [markdown]
# ## How far the raters agree
#
# Krippendorff's alpha is 1 for full agreement and 0 for agreement by chance. Its 95 % interval comes from a bootstrap of
# whole dialogues.

# %%
agreement = bench.rendered("alpha")
alpha = agreement[agreement["statistic"].str.startswith("alpha")]
alpha = alpha.assign(alpha=[span(*row) for row in alpha[["value", "low", "high"]].to_numpy()])
show(alpha.pivot(index=["level", "dimension"], columns="statistic", values="alpha").rename_axis(columns=None))

# %% [markdown]
# Is any rater much kinder or stricter than the others? The mean difference from the others on the same items:

# %%
bias = agreement[(agreement["statistic"] == "bias") & (agreement["dimension"] == bench.target)]
show(bias.pivot(index="annotator_id", columns="level", values="value").rename_axis(index="rater", columns=None))

# %% [markdown]
# No metric can be expected to agree with people better than people do. The *human ceiling* is the Spearman correlation of
# one rater with the mean of the others:

# %%
show(bench.ceiling().dropna().rename("human ceiling").rename_axis("level").to_frame())

# %% [markdown]
# ## Do the ratings separate the systems?

# %%
mean = pd.DataFrame(
    {f"by {level}": rated.groupby("system_id")["rating"].mean() for level, rated in ratings.items()}
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

# %%
spread = ratings["turn"].groupby("system_id")["rating"].mean().std() / ratings["turn"]["rating"].std()
say(
    f"The means of systems vary {number(spread, digits=2)} times as much as single ratings. "
    "Which metrics recover this order: <code>02_which_metric_to_trust</code>."
)
