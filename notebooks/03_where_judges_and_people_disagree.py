# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What does a judge overrate?
#
# A correlation says how often a judge and people agree, but not where they differ. For the judge that agrees best with
# people: the largest disagreements with its reasons, what they have in common, and which systems it favours.
# `COMPERDIAL_DATASET` chooses another data set.

# %%
import os

import pandas as pd

from comperdial.core.errors import ComperdialError
from comperdial.report.reading import here, label, recorded_answers
from comperdial.report.render import number
from comperdial.report.showing import items, quoted, say, show, span

bench = here(os.environ.get("COMPERDIAL_DATASET") or "usr_topical")
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
    f"<b>What is missing: a judge that gives reasons</b> for its ratings of {bench.target} at turn level. "
    "The tables below are empty."
)
if len(judges):
    best = judges.loc[judges["value"].idxmax()]
    metric, output = best["metric"], best["output"]
    origin = [part[5:] for part in best["signature"].split("|") if part.startswith("from:") and "/" in part]
    recorded = f"Its answers were recorded by others: {', '.join(origin)}." if origin else ""
    text = (
        f"The judge: <b>{label(metric, output)}</b>, whose Spearman correlation with people at turn level is "
        f"{span(best['value'], best['low'], best['high'])}, the highest of {len(judges)} ratings by judges that give "
        f"reasons. {recorded}"
    )
say(text)

# %% [markdown]
# ## The largest disagreements
#
# The judge and people use their scales differently. So we compare the *rank* of a response among all responses, from 0
# (worst) to 1 (best), by the judge and by the mean rating.

# %%
key = ["context_id", "system_id"]
scores = bench.scores(metric) if metric else pd.DataFrame(columns=["item_id", "system_id", "output", "value"])
scores = scores.query("output == @output").rename(columns={"item_id": "context_id", "value": "judge"})
single = bench.ratings().rename(columns={"item_id": "context_id"})
people = single.groupby(key)["rating"].agg(people="mean", ratings=lambda values: " ".join(f"{r:g}" for r in values))
both = scores.set_index(key)[["judge"]].join(people, how="inner").reset_index()
both = both.merge(bench.table("responses")[[*key, "response"]], on=key)
both = both.merge(bench.table("contexts")[["context_id", "history", "facts"]], on="context_id")
both["gap"] = both["judge"].rank(pct=True) - both["people"].rank(pct=True)
say(f"{len(both):,} responses have both. Above zero, the judge ranks a response higher than people do.")


# %%
def reasons(cases):
    """Return the judge's rationale for each case, where it gave one."""
    if cases.empty:
        return cases
    try:
        recorded = best["signature"].startswith("recorded-judge|")
        given = recorded_answers(bench, metric, output) if recorded else bench.result(f"judgements/{metric}")
    except ComperdialError:
        # Answers that others recorded are in data/raw, once `snakemake` has fetched them.
        return cases.assign(rationale=None)
    given = given.rename(columns={"item_id": "context_id"}).drop_duplicates(key)
    return cases.merge(given[[*key, "rationale"]], on=key, how="left")


# Of real dialogues, which are not ours to publish, only the last utterance is quoted.
shown = 3 if bench.simulated else 1


def described(case):
    """Return one disagreement as lines of HTML."""
    about = f"judge {number(case.judge, digits=2)}, people {number(case.people, digits=2)} ({case.ratings})"
    lines = [f"{turn['speaker']}: {quoted(turn['text'], 200)}" for turn in list(case.history)[-shown:]]
    lines.append(f"<b>{quoted(case.system_id)}: {quoted(case.response, 300)}</b>")
    if bench.simulated and len(case.facts):
        lines.append(f"<small>persona: {quoted(' '.join(case.facts), 240)}</small>")
    why = case.rationale if isinstance(case.rationale, str) else "no reason available"
    return "<br>".join([*lines, f"<i>{about}. The judge: {quoted(why, 240)}</i>"])


def largest(cases, count=3):
    """Return the first cases, no context and no response twice."""
    return reasons(cases.drop_duplicates("context_id").drop_duplicates("response").head(count)).itertuples()


by_gap = both.sort_values(["gap", *key], ascending=[False, True, True], kind="stable")
items([described(case) for case in largest(by_gap)])

# %% [markdown]
# Above, the judge is kinder than people; below, people are kinder than the judge.

# %%
items([described(case) for case in largest(by_gap.iloc[::-1])])

# %% [markdown]
# ## What do they have in common?
#
# The correlation of each trait of a response with the disagreement. Above zero, the judge overrates responses that have
# more of it. *Dull* is fewer than six words, or a text that the system gives in several contexts.


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
        "words shared with the last utterance": [len(a & b) for a, b in zip(used, last, strict=True)],
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
text = "No trait correlates with the disagreement: there are too few responses, or they are all alike."
if traits["with the disagreement"].notna().any():
    strongest = traits["with the disagreement"].abs().idxmax()
    value = traits.loc[strongest, "with the disagreement"]
    text = (
        f"The trait that correlates most with the disagreement is <b>{strongest}</b>: the judge "
        f"{'over' if value > 0 else 'under'}rates responses that have more of it "
        f"({number(value, digits=2, sign=True)})."
    )
say(text)

# %% [markdown]
# ## Which systems does the judge favour?
#
# Systems with the largest mean disagreement: those that a leaderboard by this judge would move up or down most.

# %%
favour = both.groupby("system_id")[["judge", "people", "gap"]].mean().sort_values("gap", ascending=False)
places = favour[["people", "judge"]].rank(ascending=False, method="min").astype(int)
favour = favour.assign(**{"rank by people": places["people"], "rank by the judge": places["judge"]})
ends = favour if len(favour) <= 8 else pd.concat([favour.head(4), favour.tail(4)])
show(ends.rename_axis("system").rename(columns={"gap": "judge's rank - people's"}))

# %%
spread = both.groupby("system_id")["gap"].transform("mean").var() / both["gap"].var()
say(
    f"Differences between systems are {number(100 * spread, digits=0)} % of the variance of the disagreement. This part does "
    "not average out over a system's responses: it is the bias of a leaderboard."
)
