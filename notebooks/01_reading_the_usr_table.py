# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Reading the USR table
#
# Two small sets of rated responses, USR-Topical and USR-Persona, have been used for years to say how well an automatic
# metric agrees with people. This notebook reads what the workflow computed on them (`results/tables/usr.csv`) and asks
# three things: do we reproduce the published values, which word-overlap metric agrees best, and how far should a number
# at system level be trusted?

# %%
from pathlib import Path

import pandas as pd

root = next(folder for folder in [Path.cwd(), *Path.cwd().parents] if (folder / "params.yaml").is_file())
table = pd.read_csv(root / "results/tables/usr.csv")
run = table.dropna(subset=["ours"])
run.groupby(["dataset", "level"])["n"].max().astype(int).rename("responses or systems").to_frame()

# %% [markdown]
# ## Do we reproduce the published values?
#
# For each metric that was run and has a published value: the largest absolute difference over datasets, levels and the
# two coefficients.

# %%
compared = table.dropna(subset=["ours", "reported"])
worst = compared.assign(gap=compared["difference"].abs()).groupby("label", sort=False)["gap"].max()
worst.round(4).rename("largest |ours - reported|").to_frame()

# %% [markdown]
# A gap of 0.0005 is what rounding to three digits can make. METEOR is another implementation (nltk's of 2005 against
# the Java METEOR 1.5), and the gaps of the BLEU orders come from how the zeros are ranked; `docs/reproduction-notes.md`
# explains each of them.
#
# ## Which word-overlap metric agrees best?

# %%
turn = run[(run["level"] == "turn") & (run["coefficient"] == "spearman")]
ranking = turn.pivot(index="label", columns="dataset", values="ours")
ranking["mean"] = ranking.mean(axis=1)
ranking.sort_values("mean", ascending=False).round(3)

# %% [markdown]
# As published with this repository, the order of metrics differs between the two sets, and what leads are the metrics
# that reward recall and partial matches (chrF, METEOR), not the BLEU and F1 that papers print first.
#
# ## How far to trust a system-level number?
#
# There are only a handful of systems, one of which is a person. With so few points a rank correlation can take few
# values, and what looks like a strong correlation often comes with a p-value above 0.05: the asterisks of the table.
# Even these are too few: the p of Spearman is an approximation (Student's t, as in the papers) that is too small for
# four or five points. A perfect ranking of four systems has an exact two-sided p of 2/24 = 0.083, and gets no asterisk.

# %%
system = run[run["level"] == "system"]
share = system.assign(starred=~(system["p"] < 0.05)).groupby(["dataset", "coefficient"])["starred"].mean()
share.rename("share of system-level values with p >= 0.05").round(2).to_frame()

# %% [markdown]
# The possible values of Spearman's coefficient that occur at system level:

# %%
spearman = system[system["coefficient"] == "spearman"]
spearman.groupby("dataset")["ours"].unique().map(lambda values: sorted({round(v, 2) for v in values})).to_frame()
