# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Add your metric
#
# A metric is a class with one method. This page writes one, scores all of `demo` with it, asks how well it agrees with
# the ratings, with intervals, and whether it really differs from the metrics that are there. In the repository it is
# one file in `src/comperdial/metrics/` and one line in `params.yaml`; `docs/adding-a-metric.md` has the rest.

# %%
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from comperdial.evaluation import samples
from comperdial.metrics import Batch, Metric, Scores
from comperdial.metrics.scoring import score_tables
from comperdial.report.reading import here, label
from comperdial.report.render import number
from comperdial.report.showing import chance, items, say, show, span
from comperdial.stats.comparison import compare
from comperdial.stats.intervals import intervals
from comperdial.stats.multiple import holm

bench = here("demo")
bench.opening()

# %% [markdown]
# ## The metric
#
# Which share of a response's longer words takes up what was said last? It needs the history and no reference. A
# response that has no longer word gets no score (NaN): it is left out and counted, never zero.


# %% tags=["shown"]
def longer_words(text):
    return {word.strip(".,!?;:") for word in text.lower().split() if len(word) > 3}


@dataclass(frozen=True, kw_only=True)
class TakesUp(Metric):
    """Share of the response's longer words that stand in the last utterance."""

    kind: ClassVar[str] = "takes_up"
    needs: ClassVar[tuple[str, ...]] = ("histories",)

    @property
    def outputs(self):
        return ("takes-up",)

    def compute(self, batch: Batch) -> Scores:
        said = [longer_words(response) for response in batch.responses]
        heard = [longer_words(history[-1]["text"]) for history in batch.histories]
        shares = [len(a & b) / len(a) if a else np.nan for a, b in zip(said, heard, strict=True)]
        return Scores({"takes-up": np.array(shares)})


TakesUp().score(["I love trains!"], histories=[["Do you like trains or planes?"]])["takes-up"]

# %% [markdown]
# ## Its scores

# %% tags=["shown"]
scores = score_tables(TakesUp(), "takes_up", bench.root / "data/tables/demo")
responses = len(bench.table("responses"))
say(
    f"{len(scores):,} of {responses:,} responses have a score; the mean is {number(scores['value'].mean())}. "
    f"Signature: <code>{scores['signature'].iloc[0]}</code>"
)

# %% [markdown]
# ## How well does it agree, and how sure is that?
#
# `samples` pairs scores with ratings at each level; `intervals` resamples systems and dialogues, which is what was
# sampled, and not responses. Beside it are some metrics whose scores are in `results/demo/scores/`.

# %% tags=["shown"]
others = {"f1": "f1", "chrf": "chrf", "grounded-cosine-minilm": "sum", "cpds-d_rules": "humanness"}
known = [bench.scores(name).query("output == @output") for name, output in others.items()]
found = samples(
    pd.concat([scores, *known]),
    bench.table("ratings").query("level == 'turn'"),
    contexts=bench.table("contexts"),
    systems=bench.table("systems"),
    source=bench.source,
    levels=["turn", "system"],
    targets=[bench.target],
)
at = {sample.level: sample for sample in found}
columns = {}
for level, sample in at.items():
    agree = intervals(sample.scores, sample.ratings, sample.design, ["spearman"], resamples=300, seed=1)
    columns[f"{level}s"] = [
        span(*row) for row in zip(agree.value[:, 0], agree.low[:, 0], agree.high[:, 0], strict=True)
    ]
show(pd.DataFrame(columns, index=[label(*name) for name in at["turn"].names]).rename_axis("Spearman with the ratings"))

# %% [markdown]
# ## Does it differ from the others?
#
# The paired test asks whether the difference could be chance, given that both metrics saw the same responses. Several
# tests at once need a correction (Holm's).

# %% tags=["shown"]
sample = at["turn"]
tested = compare(sample.scores, sample.ratings, sample.design, "spearman", resamples=300, seed=1)
row = sample.names.index(("takes_up", "takes-up"))
rest = [place for place in range(len(sample.names)) if place != row]
p = holm(tested.p[row, rest])
items(
    [
        f"against {label(*sample.names[place])}: {number(tested.difference[row, place], sign=True)}, "
        f"{chance(corrected)}: {'told apart' if corrected < 0.05 else 'not told apart'}"
        for place, corrected in zip(rest, p, strict=True)
    ]
)

# %% [markdown]
# **What this says, and what it does not.** The simulated raters were given a weight for words that a response shares
# with the last utterance (`docs/demo.md`), so a metric that counts such words finds what was put in. On people's
# ratings, try it with `datasets: [usr_persona, usr_topical]` in `params.yaml`.
#
# ## For good
#
# Put the class into `src/comperdial/metrics/takes_up.py`, and into `params.yaml`, under `metrics`:
#
# ```yaml
#   takes_up: {kind: takes_up, main: takes-up}
# ```
#
# `snakemake` then scores every data set with it and correlates; its `main` output also gets intervals, tests and a rank
# cluster, and is in *Which metric to trust*. No other metric is scored again.
