# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Where does my system stand?
#
# A dialogue system takes part with one file of responses. This page makes such a file for the simulated challenge `demo`,
# checks it, scores it and ranks it among the other systems, all in a temporary folder. In the repository: put the file into
# `data/demo/submissions/` (or your own challenge's folder) and run `snakemake`. More: `docs/adding-a-system.md`.

# %%
import logging
import tempfile
from pathlib import Path

import pandas as pd

from comperdial import metric, schema
from comperdial.challenge.agents import load, run_agent
from comperdial.challenge.dialogues import make_tables, read_dialogues
from comperdial.challenge.submissions import read_submissions, write_submission
from comperdial.core.errors import ComperdialError
from comperdial.metrics.scoring import score_tables
from comperdial.report.reading import here, label
from comperdial.report.render import number
from comperdial.report.showing import items, quoted, say, show, span

logging.disable(logging.WARNING)
bench = here("demo")
bench.opening()

# %% [markdown]
# ## 1. An agent
#
# A class with one method. It gets conversations, each with the persona and the history, and returns one response for each. It
# never sees the reference. Responses that were made elsewhere go straight into the file of step 2.

# %% tags=["shown"]
agent = """
class UserAgent:
    def generate_responses(self, test_data):
        return [self.answer(conversation) for conversation in test_data]

    def answer(self, conversation):
        about_me = conversation["persona B"]
        last = conversation["dialogue"][-1]["text"]
        fact = max(about_me, key=lambda sentence: len(set(sentence.split()) & set(last.lower().split())))
        return f"{fact.rstrip('.').capitalize()}. {'What about you?' if '?' in last else 'Tell me more!'}"
"""
temporary = tempfile.TemporaryDirectory()
folder = Path(temporary.name)
(folder / "my_agent.py").write_text(agent)
dialogues = read_dialogues(bench.root / "data/demo/dialogues.json")
responses = run_agent(load(str(folder / "my_agent.py")), dialogues)
first = dialogues[0]
rows = [
    {"A said": first.history(turn)[-1]["text"], "my_system answered": responses[first.dialogue_id, turn]}
    for turn in range(3)
]
show(pd.DataFrame(rows), index=False)

# %% [markdown]
# As a command: `comperdial challenge run
# data/demo/dialogues.json --agent my_agent.py --output data/demo/submissions/my_system.jsonl`.
#
# ## 2. The file
#
# One JSON object per line, one line for each turn of each dialogue; turns are counted from 0.

# %% tags=["shown"]
submissions = folder / "submissions"
write_submission(submissions / "my_system.jsonl", responses)
lines = (submissions / "my_system.jsonl").read_text().splitlines()
say(f"{len(lines)} lines, the first: <code>{quoted(lines[0])}</code>")

# %% [markdown]
# An invalid or incomplete file is left out, with the reason. Here the last line is missing:

# %%
(submissions / "unfinished.jsonl").write_text("\n".join(lines[:-1]) + "\n")
submitted = read_submissions([submissions], dialogues)
items(
    [f"taken: {name}" for name in submitted.responses]
    + [f"left out: {name} ({quoted(why.replace(f'{folder}/', ''))})" for name, why in submitted.problems.items()]
)

# %% [markdown]
# ## 3. Scores
#
# The file and the dialogues become tables, and a metric scores tables. `snakemake` does this with every metric of
# `params.yaml`; here are four fast ones. The scores of the other systems are in `results/demo/scores/`.

# %% tags=["shown"]
tables = make_tables("demo", dialogues, submitted.systems, submitted.responses, where="this page")
for name, table in tables.items():
    schema.write(folder / f"{name}.parquet", table, name)
chosen = {"f1": "f1", "chrf": "chrf", "bleu": "bleu-1", "rouge": "rougeL-f"}
mine = {name: score_tables(metric(name), name, folder) for name in chosen}
theirs = {name: bench.scores(name).query("system_id != 'my_system'") for name in chosen}
same = [name for name in chosen if set(mine[name]["signature"]) == set(theirs[name]["signature"])]
if not same:
    raise ComperdialError("no metric of this page has the settings with which results/demo/scores was made")
all_scores = pd.concat(pd.concat([theirs[name], mine[name]]).query(f"output == '{chosen[name]}'") for name in same)
show(mine[same[-1]][["item_id", "output", "value", "signature"]].head(3), index=False)

# %% [markdown]
# Scores compare only if they were made with the same settings, which are in the *signature*.

# %%
odd = [name for name in chosen if name not in same]
say(f"Left out, because the others' scores have another signature: {', '.join(odd) or 'none'}.")

# %% [markdown]
# ## 4. Its rank
#
# The mean over all turns, and the rank among all systems. The last column says how far to trust that rank: how well the metric
# ranks the other systems as the (simulated) raters do, Spearman at system level with its 95 % interval.

# %%
means = all_scores.groupby(["metric", "output", "system_id"])["value"].mean().unstack("system_id")
places = means.rank(axis=1, ascending=False, method="min")["my_system"].astype(int)
trusted = bench.correlations().query("cell == 'systems, rated by turn'").set_index(["metric", "output"])
standing = pd.DataFrame(
    {
        "metric": [label(*key) for key in means.index],
        "my_system": means["my_system"],
        "rank": places,
        "best": [f"{row.idxmax()} ({number(row.max(), digits=2)})" for _, row in means.iterrows()],
        "median": means.median(axis=1),
        "Spearman with the raters": [span(*trusted.loc[key, ["value", "low", "high"]]) for key in means.index],
    }
)
show(standing, index=False)

# %%
say(
    f"By these metrics my_system has rank {places.min()} to {places.max()} of {means.shape[1]}. "
    "<b>Nobody has rated it</b>, so this is not how good it is. In your own challenge, people rate it: "
    "<code>docs/annotation.md</code>."
)

# %% [markdown]
# The systems nearest to it, by their mean rank:

# %%
overall = means.rank(axis=1, ascending=False).mean().rank(method="min").astype(int).sort_values()
at = overall.index.get_loc("my_system")
near = overall.iloc[max(0, at - 2) : at + 3].rename("rank").to_frame()
about = bench.table("systems").set_index("system_id")["description"]
show(near.join(about).fillna({"description": "this page's agent"}).rename_axis("system"))

# %% [markdown]
# ## 5. Add it to the repository
#
# ```sh
# cp my_system.jsonl data/demo/submissions/
# snakemake
# ```
#
# scores it with every metric, asks the judges of `params.yaml`, and adds it to `results/demo/tables/systems.*`.
