# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Do the statistics find what the simulation put in? (SIMULATED)
#
# Nothing in `demo` is real: its systems are programs, and its six raters are formulas with noise (`docs/demo.md`). So its true
# values are known, and this page compares the statistics with them. It says nothing about people or metrics.

# %%
import pandas as pd
import yaml

from comperdial.report.reading import here
from comperdial.report.showing import show

bench = here("demo")
root = bench.root
systems = bench.rendered("systems", index_col="system_id")
agreement = bench.rendered("alpha")
truth = bench.table("truth")
bench.opening()

# %% [markdown]
# ## Do mean ratings find the true order of systems?
#
# The rank correlation over systems of the mean rating with the mean true quality. It should be close to 1, because many turns
# and six raters average most of the noise away.

# %%
true = truth.groupby(["level", "system_id"])["value"].mean().unstack("level")
correlations = {
    level: systems[f"{level}_rating"].corr(true[level].reindex(systems.index), method="spearman")
    for level in ("turn", "dialogue")
}
show(pd.Series(correlations, name="Spearman, mean rating with mean truth").rename_axis("level").to_frame(), digits=4)

# %% [markdown]
# ## Does the agreement table find each rater's bias?
#
# The bias that was put in (`data/demo/raters.yaml`, centred, in standard deviations of quality), and the mean difference from
# the other raters (on the scale of 1 to 5).

# %%
model = yaml.safe_load((root / "data/demo/raters.yaml").read_text())
raters = pd.DataFrame(model["raters"]).set_index("id")["bias"]
rows = agreement[(agreement["statistic"] == "bias") & (agreement["dimension"] == "Overall")]
bias = rows.pivot(index="annotator_id", columns="level", values="value")
bias.insert(0, "put in", raters - raters.mean())
show(bias[["put in", "turn", "dialogue"]], digits=3)

# %% [markdown]
# ## Does it find bad habits?
#
# Long, dull and always alike answers were made to cost little per turn and much per dialogue, as in Table 13 of the paper. So
# systems with such habits should come first.

# %%
gap = (systems["dialogue_rating"] - systems["turn_rating"]).sort_values()
show(gap.head(8).to_frame("dialogue rating - turn rating").join(systems["description"]))
