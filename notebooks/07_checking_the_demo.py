# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Checking the statistics on the demo (SIMULATED)
#
# `demo` has ComperDial's size, and nothing in it is real: its systems are small programs and texts that we wrote, its
# six raters a formula with noise (`docs/demo.md`). So this notebook asks nothing about people or metrics. It asks
# whether the *statistics* find what was put in: the truth behind the simulated ratings is kept, and here they are held
# against it.

# %%
import pandas as pd
import yaml

from comperdial.report.reading import here
from comperdial.report.render import number
from comperdial.report.showing import say, show, span

bench = here("demo")
root = bench.root
systems = bench.rendered("systems", index_col="system_id")
agreement = bench.rendered("alpha")
truth = bench.table("truth")
bench.opening()

# %% [markdown]
# ## Do mean ratings find the true order of systems?
#
# Correlation over the systems between the mean of the simulated ratings and the mean of the truth that the raters saw
# through their noise. It should be close to 1: 105 turns and 15 dialogues by six raters average most of the noise away.

# %%
true = truth.groupby(["level", "system_id"])["value"].mean().unstack("level")
found = {
    level: systems[f"{level}_rating"].corr(true[level].reindex(systems.index), method="spearman")
    for level in ("turn", "dialogue")
}
show(pd.Series(found, name="Spearman, mean rating with mean truth").rename_axis("level").to_frame(), digits=4)

# %% [markdown]
# ## Does the bias table find each rater's bias?
#
# What was put in (`data/demo/raters.yaml`, in standard deviations of quality, centred) beside the mean difference from
# the other raters (on the scale of 1 to 5).

# %%
model = yaml.safe_load((root / "data/demo/raters.yaml").read_text())
raters = pd.DataFrame(model["raters"]).set_index("id")["bias"]
rows = agreement[(agreement["statistic"] == "bias") & (agreement["dimension"] == "Overall")]
bias = rows.pivot(index="annotator_id", columns="level", values="value")
bias.insert(0, "put in", raters - raters.mean())
show(bias[["put in", "turn", "dialogue"]], digits=3)

# %% [markdown]
# ## How much do the raters agree?
#
# Krippendorff's alpha with its bootstrap interval. The noise was chosen so that the demo lies near what ComperDial
# reports for its own six raters; it says nothing about them.

# %%
alpha = agreement[agreement["statistic"].str.startswith("alpha") & (agreement["dimension"] == "Overall")]
alpha = alpha.assign(alpha=[span(*row, digits=3) for row in alpha[["value", "low", "high"]].to_numpy()])
show(alpha[["level", "statistic", "alpha", "items", "ratings"]].astype({"ratings": int}), index=False)

# %%
reported = pd.read_csv(root / "studies/comperdial/benchmarks.csv")
reported = reported[(reported["benchmark"] == "ComperDial") & reported["property"].str.startswith("Krippendorff")]
values = [f"{row.property}: {number(float(row.value), digits=2)}" for row in reported.itertuples()]
say(f"What the paper reports for ComperDial. {'; '.join(values)}.")

# %% [markdown]
# ## Which systems does the dialogue level judge differently?
#
# Long answers, dull ones and ones that always open alike cost little turn by turn and much over a dialogue: that is put
# in, after the paper's Table 13. So verbose systems and those that answer by a few rules should come first.

# %%
gap = (systems["dialogue_rating"] - systems["turn_rating"]).sort_values()
show(gap.head(8).to_frame("dialogue rating - turn rating").join(systems["description"]))
