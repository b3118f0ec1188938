# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Reading the USR table
#
# Two small sets of rated responses, USR-Topical and USR-Persona, have been used for years to say how well an automatic
# metric agrees with people. This notebook reads what the workflow computed on them
# (`results/studies/usr/tables/usr.csv`) and asks three things: do we reproduce the published values,
# which metric agrees best, and how far should a number at system level be trusted?

# %%
from comperdial.report.reading import here
from comperdial.report.render import number
from comperdial.report.showing import say, show

table = here("usr_topical").rendered("usr", study="usr")
run = table.dropna(subset=["ours"])
show(run.groupby(["dataset", "level"])["n"].max().astype(int).rename("responses or systems").to_frame())

# %% [markdown]
# Rows of the table without a value of ours, and why. Which these are depends on the models that were at hand; nothing
# stands in for them.

# %%
absent = table.dropna(subset=["not_run"]).drop_duplicates(["label", "dataset"])
show(absent.groupby(["label", "not_run"], sort=False)["dataset"].agg(", ".join).rename("no value on").to_frame())

# %% [markdown]
# ## Do we reproduce the published values?
#
# For each metric that was run and has a published value: the largest absolute difference over datasets, levels and the
# two coefficients.

# %%
compared = table.dropna(subset=["ours", "reported"])
worst = compared.assign(gap=compared["difference"].abs()).groupby("label", sort=False)["gap"].max()
show(worst.rename("largest |ours - reported|").to_frame(), digits=4)

# %% [markdown]
# A gap of half a thousandth is what rounding to three digits can make. METEOR is another implementation (nltk's of 2005
# against the Java one of the papers), and BLEU's ranks depend on the tenth digit of its scores;
# `docs/reproduction-notes.md` explains each of them.
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
means = ranking.dropna(subset=["mean"]).sort_values("mean", ascending=False)
show(means, digits=3)

# %% [markdown]
# On one set only:

# %%
show(ranking[ranking["mean"].isna()].drop(columns="mean"), digits=3)

# %%
order = ranking.drop(columns=["mean", "coverage"]).dropna().corr(method="kendall").to_numpy()
agreeing = order[0, -1] if len(order) > 1 else float("nan")
say(
    f"First by the mean: {', '.join(means.index[:3])}. Last: {', '.join(means.index[-3:])}. Agreement of the two sets' "
    f"orders (Kendall's tau): {number(agreeing, digits=2)}. How the rows above that "
    "were not run would do is not known."
)

# %% [markdown]
# ## How far to trust a system-level number?
#
# There are only a handful of systems, one of which is a person. With so few points a rank correlation can take few
# values, and what looks like a strong correlation often comes with a p-value above 5 %: the asterisks of the table.
# Even these are too few: the p of Spearman is an approximation (Student's t, as in the papers) that is too small for
# four or five points. A perfect ranking of four systems has an exact two-sided p of 2 in 24, and gets no asterisk all
# the same.

# %%
system = run[run["level"] == "system"]
share = system.assign(starred=~(system["p"] < 0.05)).groupby(["dataset", "coefficient"])["starred"].mean()
show(share.rename("share of system-level values with p of 5 % or more").to_frame())

# %% [markdown]
# The possible values of Spearman's coefficient that occur at system level:

# %%
spearman = system[system["coefficient"] == "spearman"]
found = spearman.groupby("dataset")["ours"].unique()
listed = found.map(lambda values: ", ".join(sorted({number(v, digits=2) for v in values}, key=float)))
show(listed.rename("values").to_frame())
