# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Where judges and people disagree
#
# A correlation says how often a judge and people agree, and not about what they disagree. This page takes the judge
# that agrees best with people, finds the responses that it rates most differently, shows them with its reasons, and
# looks for what they have in common.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from comperdial.report.reading import here, label, recorded_answers
from comperdial.report.render import number
from comperdial.report.showing import drawn, items, quoted, say, show, span

bench = here()
bench.opening()

# %%
correlations = bench.correlations()
judges = correlations[
    (correlations["cell"] == "turns")
    & correlations["signature"].str.match(r"cpdscore\||recorded-judge\|")
    # G-Eval's prompts ask for a bare number, without a reason.
    & ~correlations["signature"].str.contains("prompt:geval")
]
metric = output = ""
text = (
    f"<b>What is missing: a judge that says why</b> and whose ratings of turns can be held against {bench.target}. "
    "So there is no disagreement to show here, and the tables below are empty."
)
if len(judges):
    best = judges.loc[judges["value"].idxmax()]
    metric, output = best["metric"], best["output"]
    origin = [part[5:] for part in best["signature"].split("|") if part.startswith("from:") and "/" in part]
    recorded = f"Its answers were recorded by others: {', '.join(origin)}." if origin else ""
    text = (
        f"The judge: <b>{label(metric, output)}</b>, whose Spearman correlation with people at turn level is "
        f"{span(best['value'], best['low'], best['high'])}, the highest of {len(judges)} ratings by judges that say "
        f"why. {recorded}"
    )
say(text)

# %% [markdown]
# ## The largest disagreements
#
# The judge and people use different scales, and both have favourite numbers. So what is compared is a response's
# *place* among all responses, from 0 (the worst) to 1 (the best), by the judge and by the mean rating. Ties share a
# place.

# %%
key = ["context_id", "system_id"]
scores = bench.scores(metric) if metric else pd.DataFrame(columns=["item_id", "system_id", "output", "value"])
scores = scores.query("output == @output").rename(columns={"item_id": "context_id", "value": "judge"})
single = bench.ratings().rename(columns={"item_id": "context_id"})
people = single.groupby(key)["rating"].agg(people="mean", ratings=lambda found: " ".join(f"{r:g}" for r in found))
both = scores.set_index(key)[["judge"]].join(people, how="inner").reset_index()
both = both.merge(bench.table("responses")[[*key, "response"]], on=key)
both = both.merge(bench.table("contexts")[["context_id", "history", "facts"]], on="context_id")
both["gap"] = both["judge"].rank(pct=True) - both["people"].rank(pct=True)
say(f"{len(both):,} responses have both. Above zero, the judge likes a response better than people do.")


# %%
def reasons(cases):
    """Return the judge's rationale for each case, where it gave one."""
    if cases.empty:
        return cases
    path = bench.root / f"results/{bench.dataset}/judgements/{metric}.parquet"
    given = pd.read_parquet(path) if path.is_file() else recorded_answers(bench, metric, output)
    given = given.rename(columns={"item_id": "context_id"}).drop_duplicates(key)
    return cases.merge(given[[*key, "rationale"]], on=key, how="left")


# Real dialogues are not ours to pass on: of those only what is needed to judge a response is quoted.
heard = 3 if bench.simulated else 1


def told(case):
    """Return one disagreement as lines of HTML."""
    about = f"judge {number(case.judge, digits=2)}, people {number(case.people, digits=2)} ({case.ratings})"
    lines = [f"{turn['speaker']}: {quoted(turn['text'], 200)}" for turn in list(case.history)[-heard:]]
    lines.append(f"<b>{quoted(case.system_id)}: {quoted(case.response, 300)}</b>")
    if bench.simulated and len(case.facts):
        lines.append(f"<small>told of itself: {quoted(' '.join(case.facts), 240)}</small>")
    why = case.rationale if isinstance(case.rationale, str) else "no reason given"
    return "<br>".join([*lines, f"<i>{about}. The judge: {quoted(why, 240)}</i>"])


def largest(cases, count=3):
    """Return the first cases, no context and no response twice."""
    return reasons(cases.drop_duplicates("context_id").drop_duplicates("response").head(count)).itertuples()


by_gap = both.sort_values(["gap", *key], ascending=[False, True, True], kind="stable")
items([told(case) for case in largest(by_gap)])

# %% [markdown]
# Above: the judge is kinder than people. Below: people are kinder than the judge.

# %%
items([told(case) for case in largest(by_gap.iloc[::-1])])

# %% [markdown]
# ## What do they have in common?
#
# For each trait of a response: its correlation with the disagreement. Above zero, the judge overrates responses that
# have more of it. *Dull* means short or said again: fewer than six words, or a text that the same system gives in
# several contexts.


# %%
def words(text):
    return {word.strip(".,!?;:'\"") for word in text.lower().split() if len(word) > 3}


length = both["response"].str.split().str.len()
again = both.groupby(["system_id", "response"])["context_id"].transform("size") > 1
last = [words(history[-1]["text"]) for history in both["history"]]
used = [words(text) for text in both["response"]]
known = [words(" ".join(facts)) for facts in both["facts"]]
features = pd.DataFrame(
    {
        "words": length,
        "dull": ((length < 6) | again).astype(float),
        "asks a question": both["response"].str.contains("?", regex=False).astype(float),
        "words shared with what was said last": [len(a & b) for a, b in zip(used, last, strict=True)],
        "words shared with persona or facts": [len(a & b) for a, b in zip(used, known, strict=True)],
        "first person": both["response"].str.lower().str.count(r"\b(?:i|my|me|i'm)\b"),
    }
)
traits = pd.DataFrame(
    {
        "with the judge": features.corrwith(both["judge"], method="spearman"),
        "with people": features.corrwith(both["people"], method="spearman"),
        "with the disagreement": features.corrwith(both["gap"], method="spearman"),
    }
)
show(traits.sort_values("with the disagreement", key=abs, ascending=False).rename_axis("trait"))

# %%
text = "No trait goes with the disagreement: there are too few responses with both, or they are all alike."
if traits["with the disagreement"].notna().any():
    strongest = traits["with the disagreement"].abs().idxmax()
    value = traits.loc[strongest, "with the disagreement"]
    text = (
        f"The trait that goes most with the disagreement is <b>{strongest}</b>: the judge "
        f"{'over' if value > 0 else 'under'}rates responses that have more of it "
        f"({number(value, digits=2, sign=True)})."
    )
say(text)

# %% [markdown]
# Length and dull answers in detail. The line is the mean disagreement of responses of about the same length.

# %%
groups = pd.qcut(length, 10, duplicates="drop") if len(both) else length
means = pd.DataFrame({"words": length, "gap": both["gap"]}).groupby(groups)[["words", "gap"]].mean()
by_judge, by_people = (both[name].rank(pct=True) for name in ("judge", "people"))
counts = np.histogram2d(by_judge, by_people, bins=12, range=[[0, 1], [0, 1]])[0]
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 2.8), layout="constrained")
left.plot(means["words"], means["gap"], "-o", color="black", mfc="white", ms=4)
left.axhline(0, color="0.6", lw=0.8)
left.set(xlabel="words in the response", ylabel="judge's place - people's")
right.imshow(counts, origin="lower", cmap="Greys", extent=(0, 1, 0, 1))
right.set(xlabel="place by people", ylabel="place by the judge")
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
drawn(figure)

# %%
named = features["dull"].map({1.0: "dull", 0.0: "not dull"})
dull = both.groupby(named)[["judge", "people", "gap"]].mean()
dull.insert(0, "responses", named.value_counts())
show(dull.rename_axis("response").rename(columns={"gap": "judge's place - people's"}))

# %% [markdown]
# ## Which systems does the judge favour?
#
# The mean disagreement of a system: the systems that a leaderboard by this judge would lift most, and lower most.

# %%
favour = both.groupby("system_id")[["judge", "people", "gap"]].mean().sort_values("gap", ascending=False)
places = favour[["people", "judge"]].rank(ascending=False, method="min").astype(int)
favour = favour.assign(**{"place by people": places["people"], "place by the judge": places["judge"]})
ends = favour if len(favour) <= 8 else pd.concat([favour.head(4), favour.tail(4)])
show(ends.rename_axis("system").rename(columns={"gap": "judge's place - people's"}))

# %%
spread = both.groupby("system_id")["gap"].transform("mean").var() / both["gap"].var()
say(
    f"Of the variance of the disagreement, {number(100 * spread, digits=0)} % lies between systems: this part does not "
    "average out when a system's scores are averaged, and moves it on a leaderboard. The rest lies within systems: "
    "noise of the judge, noise of the few raters of each response, and what only some responses have."
)
