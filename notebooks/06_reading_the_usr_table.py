# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Do we reproduce the published values on USR?
#
# USR-Topical and USR-Persona have been used for years to evaluate dialogue metrics. This page compares our correlations
# with the published ones (`results/studies/usr/tables/usr.csv`), and asks how much a value over a handful of systems means.

# %%
from comperdial.report.reading import here
from comperdial.report.render import number
from comperdial.report.showing import show

table = here("usr_topical").rendered("usr", study="usr")
run = table.dropna(subset=["ours"])
show(run.groupby(["dataset", "level"])["n"].max().astype(int).rename("responses or systems").to_frame())

# %% [markdown]
# ## The largest differences
#
# For each metric with a published value: the largest absolute difference over data sets, levels and coefficients.

# %%
compared = table.dropna(subset=["ours", "reported"])
worst = compared.assign(gap=compared["difference"].abs()).groupby("label", sort=False)["gap"].max()
show(worst.rename("largest |ours - reported|").to_frame(), digits=4)

# %% [markdown]
# Published values are rounded to three digits. METEOR is another implementation (nltk's instead of the Java one), and BLEU's
# ranks depend on the tenth digit of its scores; `docs/reproduction-notes.md` explains each larger difference.
#
# ## What is missing
#
# Metrics without a value of ours, and why. Which these are depends on the models at hand.

# %%
absent = table.dropna(subset=["not_run"]).drop_duplicates(["label", "dataset"])
show(absent.groupby(["label", "not_run"], sort=False)["dataset"].agg(", ".join).rename("no value on").to_frame())

# %% [markdown]
# ## How much does a system-level value mean?
#
# There are only a handful of systems, one of which is a person. Many correlations over them are not significant, although
# the p of the papers (Student's t) is too small for so few points.

# %%
system = run[run["level"] == "system"]
share = system.assign(starred=~(system["p"] < 0.05)).groupby(["dataset", "coefficient"])["starred"].mean()
show(share.rename("share of system-level values with p of 5 % or more").to_frame())

# %% [markdown]
# Spearman's coefficient has few different values at system level:

# %%
spearman = system[system["coefficient"] == "spearman"]
values = spearman.groupby("dataset")["ours"].unique()
listed = values.map(lambda values: ", ".join(sorted({number(v, digits=2) for v in values}, key=float)))
show(listed.rename("values").to_frame())
