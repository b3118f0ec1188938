# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Is my new metric better than the others?
#
# A metric is a class with one method. This page writes one, scores a data set with it, correlates the scores with people's
# ratings, and tests whether it differs from other metrics. `docs/adding-a-metric.md` says how to add it to the repository;
# `COMPERDIAL_DATASET` chooses another data set.

# %%
import os
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

bench = here(os.environ.get("COMPERDIAL_DATASET") or "usr_persona")
bench.opening()

# %% [markdown]
# ## The metric
#
# The share of a response's longer words that occur in the last utterance. It needs the history and no reference. A response
# without longer words gets no score (NaN): it is left out and counted, never zero.


# %% tags=["shown"]
def longer_words(text):
    return {word.strip(".,!?;:") for word in text.lower().split() if len(word) > 3}


@dataclass(frozen=True, kw_only=True)
class TakesUp(Metric):
    """Share of the response's longer words that occur in the last utterance."""

    kind: ClassVar[str] = "takes_up"
    needs: ClassVar[tuple[str, ...]] = ("histories",)

    @property
    def outputs(self):
        return ("takes-up",)

    def compute(self, batch: Batch) -> Scores:
        own = [longer_words(response) for response in batch.responses]
        last = [longer_words(history[-1]["text"]) for history in batch.histories]
        shares = [len(a & b) / len(a) if a else np.nan for a, b in zip(own, last, strict=True)]
        return Scores({"takes-up": np.array(shares)})


TakesUp().score(["I love trains!"], histories=[["Do you like trains or planes?"]])["takes-up"]

# %% [markdown]
# ## Its scores

# %% tags=["shown"]
scores = score_tables(TakesUp(), "takes_up", bench.root / "data/tables" / bench.dataset)
responses = len(bench.table("responses"))
say(
    f"{len(scores):,} of {responses:,} responses have a score; the mean is {number(scores['value'].mean())}. "
    f"Signature: <code>{scores['signature'].iloc[0]}</code>"
)

# %% [markdown]
# ## How well does it agree with people?
#
# `samples` pairs scores with ratings at each level. `intervals` resamples systems and dialogues instead of single responses,
# since responses of one system are alike. The other metrics' scores are in `results/`.

# %% tags=["shown"]
others = {"f1": "f1", "chrf": "chrf", "bleu": "bleu-1", "grounded-cosine-minilm": "sum"}
known = [bench.scores(name).query("output == @output") for name, output in others.items()]
combined = samples(
    pd.concat([scores, *known]),
    bench.table("ratings").query("level == 'turn'"),
    contexts=bench.table("contexts"),
    systems=bench.table("systems"),
    source=bench.source,
    levels=["turn", "system"],
    targets=[bench.target],
)
at = {sample.level: sample for sample in combined}
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
# The paired test uses that all metrics scored the same responses. Several tests need a correction (Holm's).

# %% tags=["shown"]
sample = at["turn"]
tested = compare(sample.scores, sample.ratings, sample.design, "spearman", resamples=300, seed=1)
row = sample.names.index(("takes_up", "takes-up"))
rest = [place for place in range(len(sample.names)) if place != row]
p = holm(tested.p[row, rest])
items(
    [
        f"against {label(*sample.names[place])}: {number(tested.difference[row, place], sign=True)}, "
        f"{chance(corrected)}: {'significant' if corrected < 0.05 else 'not significant'}"
        for place, corrected in zip(rest, p, strict=True)
    ]
)

# %% [markdown]
# ## Add it to the repository
#
# Put the class into `src/comperdial/metrics/takes_up.py`, and this into `params.yaml`, under `metrics`:
#
# ```yaml
#   takes_up: {kind: takes_up, main: takes-up}
# ```
#
# `snakemake` then scores every data set with it and shows its `main` output, with intervals and tests, beside the others.
# No other metric is scored again.
