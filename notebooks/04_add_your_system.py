# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Add your system
#
# A dialogue system takes part with its responses: one file, `my_system.jsonl`. This page makes one, checks it, scores
# it beside the others and says where it stands. All of it runs here, in a temporary folder. In the repository it is two
# steps: put the file into `data/demo/submissions/` (or your own challenge's folder) and run `snakemake`.
# `docs/adding-a-system.md` has the rest.

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
# A class with one method. It gets conversations at the same turn, each with the persona and the history that people
# wrote, and returns one text for each. It is never shown the reference. (No program needed: responses made elsewhere go
# straight into the file of step 2.)

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
# One JSON object a line, one line for each turn of each dialogue, turns counted from 0.

# %% tags=["shown"]
submissions = folder / "submissions"
write_submission(submissions / "my_system.jsonl", responses)
lines = (submissions / "my_system.jsonl").read_text().splitlines()
say(f"{len(lines)} lines, the first: <code>{quoted(lines[0])}</code>")

# %% [markdown]
# A file that is wrong or incomplete is left out and named. Here, one with its last line missing:

# %%
(submissions / "unfinished.jsonl").write_text("\n".join(lines[:-1]) + "\n")
found = read_submissions([submissions], dialogues)
items(
    [f"taken: {name}" for name in found.responses]
    + [f"left out: {name} ({quoted(why.replace(f'{folder}/', ''))})" for name, why in found.problems.items()]
)

# %% [markdown]
# ## 3. Scores
#
# The file and the dialogues become tables, and a metric scores tables. `snakemake` does this with every metric of
# `params.yaml`; here are four that take no time. The other systems' scores are those in `results/demo/scores/`.

# %% tags=["shown"]
tables = make_tables("demo", dialogues, found.systems, found.responses, where="this page")
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
# Scores compare only if they were made with the same settings, which the *signature* names.

# %%
odd = [name for name in chosen if name not in same]
say(f"Left out, because the others' scores have another signature: {', '.join(odd) or 'none'}.")

# %% [markdown]
# ## 4. Where it stands
#
# The mean over all turns, and the place among all systems. How much to make of a place? The last column is how well the
# metric ranks the other systems by their (simulated) ratings: Spearman at system level with its 95 % interval.

# %%
means = all_scores.groupby(["metric", "output", "system_id"])["value"].mean().unstack("system_id")
places = means.rank(axis=1, ascending=False, method="min")["my_system"].astype(int)
trusted = bench.correlations().query("cell == 'systems, rated by turn'").set_index(["metric", "output"])
standing = pd.DataFrame(
    {
        "metric": [label(*key) for key in means.index],
        "my_system": means["my_system"],
        "place": places,
        "best": [f"{row.idxmax()} ({number(row.max(), digits=2)})" for _, row in means.iterrows()],
        "median": means.median(axis=1),
        "ranks the others like the raters": [span(*trusted.loc[key, ["value", "low", "high"]]) for key in means.index],
    }
)
show(standing, index=False)

# %%
say(
    f"By these metrics my_system stands between place {places.min()} and place {places.max()} of {means.shape[1]}. "
    "<b>Nobody has rated it</b>, so this is what metrics say and not how good it is. On <i>demo</i> nobody can: its "
    "raters are simulated and rate only systems for which somebody wrote down a skill. In your own challenge, people "
    "rate it: <code>docs/annotation.md</code>."
)

# %% [markdown]
# The systems nearest to it, by the mean of their places:

# %%
overall = means.rank(axis=1, ascending=False).mean().rank(method="min").astype(int).sort_values()
at = overall.index.get_loc("my_system")
near = overall.iloc[max(0, at - 2) : at + 3].rename("place").to_frame()
about = bench.table("systems").set_index("system_id")["description"]
show(near.join(about).fillna({"description": "this page's agent"}).rename_axis("system"))

# %% [markdown]
# ## 5. For good
#
# ```sh
# cp my_system.jsonl data/demo/submissions/
# snakemake
# ```
#
# scores it with every metric, lets the judges of `params.yaml` judge it, and puts it into
# `results/demo/tables/systems.*`. Nothing that was computed for the other systems' ratings changes.
