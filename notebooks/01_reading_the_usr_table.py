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
# three things: do we reproduce the published values, which metric agrees best, and how far should a number at system
# level be trusted?

# %%
from pathlib import Path

import pandas as pd

root = next(folder for folder in [Path.cwd(), *Path.cwd().parents] if (folder / "params.yaml").is_file())
table = pd.read_csv(root / "results/tables/usr.csv")
run = table.dropna(subset=["ours"])
run.groupby(["dataset", "level"])["n"].max().astype(int).rename("responses or systems").to_frame()

# %% [markdown]
# Rows of the table without a value of ours, and why. Which these are depends on the models that were at hand; nothing
# stands in for them.

# %%
absent = table.dropna(subset=["not_run"]).drop_duplicates(["label", "dataset"])
absent.groupby(["label", "not_run"], sort=False)["dataset"].agg(", ".join).rename("no value on").to_frame()

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
# ## Which metric agrees best?
#
# Spearman at turn level, and its mean over the data sets. A metric that has a value on one set only has no mean: a mean
# over fewer sets is another number. Nor is it comparable when a metric has scores of a part of the responses; the
# column `coverage` says of how many, where it is lowest.

# %%
turn = run[(run["level"] == "turn") & (run["coefficient"] == "spearman")]
ranking = turn.pivot(index="label", columns="dataset", values="ours")
ranking["mean"] = ranking.mean(axis=1, skipna=False)
ranking["coverage"] = turn.groupby("label")["coverage"].min()
ranking.dropna(subset=["mean"]).sort_values("mean", ascending=False).round(3)

# %% [markdown]
# On one set only:

# %%
ranking[ranking["mean"].isna()].drop(columns="mean").round(3)

# %% [markdown]
# As published with this repository, the order differs between the two sets. First comes the cosine of the response with
# its context and facts, untrained and without a reference, on fewer responses of USR-Topical than the others
# (`docs/reproduction-notes.md`). Of the metrics that compare with a reference, chrF leads: it counts parts of words and
# favours recall. The other vectors of a small encoder come next, and shared words (METEOR, ROUGE, F1, BLEU), which
# papers print first, come last. The recorded predictions of UniEval are well above all of these on the one set that
# they exist for. What the papers' large models would give here is not known: their rows were not run.
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
