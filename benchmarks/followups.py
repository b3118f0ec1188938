"""FED by SmolLM2: the likelihood of the whole string, as in the paper's code, beside that of the follow-up alone.

snakemake data/tables/fed_turn/contexts.parquet data/tables/fed_dial/contexts.parquet
python benchmarks/followups.py

The score is `fed`, the mean of all qualities; the rating, the mean of five people's overall one. A dialogue is scored after
its last response. Intervals resample the 375 turns or the 125 dialogues (percentiles of 2,000).
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from comperdial.metrics import Batch, create

RESAMPLES, SEED = 2_000, 2024
COEFFICIENTS = {"Pearson": stats.pearsonr, "Spearman": stats.spearmanr}


def main() -> None:
    for name, level in (("fed_turn", "turn"), ("fed_dial", "dialogue")):
        frame = read(Path("data/tables") / name, level)
        batch = Batch(list(frame["response"]), list(frame["references"]), list(frame["history"]), list(frame["facts"]))
        # The whole string's scores are small differences, which bf16 would drown.
        for scored, dtype in (("follow-up", "bf16"), ("whole", "fp32")):
            metric = create("fed", model="smollm2-135m-instruct", scored=scored, dtype=dtype)
            start = time.perf_counter()
            scores = metric.compute(batch)["fed"]
            seconds = time.perf_counter() - start
            print(f"{name}, n = {len(frame)}, {scored}, {seconds:.0f} s")
            for coefficient in COEFFICIENTS:
                value, low, high = interval(scores, frame["rating"].to_numpy(), coefficient)
                print(f"  {coefficient} {value:.3f} [{low:.3f}, {high:.3f}]")


def read(tables: Path, level: str) -> pd.DataFrame:
    """Return the rated responses, or the last response of each rated dialogue, with the mean overall rating."""
    contexts = pd.read_parquet(tables / "contexts.parquet")
    frame = pd.read_parquet(tables / "responses.parquet").merge(contexts, on="context_id")
    if level == "dialogue":
        frame = frame.sort_values("turn").groupby(["dialogue_id", "system_id"]).tail(1)
    ratings = pd.read_parquet(tables / "ratings.parquet")
    ratings = ratings.query("level == @level and dimension == 'overall' and source == 'human'")
    keys = ["item_id", "system_id"]
    frame = frame.assign(item_id=frame["context_id" if level == "turn" else "dialogue_id"])
    return frame.merge(ratings.groupby(keys)["rating"].mean().reset_index(), on=keys)


def interval(scores: np.ndarray, ratings: np.ndarray, coefficient: str) -> tuple[float, float, float]:
    correlate = COEFFICIENTS[coefficient]
    drawn = np.random.default_rng(SEED).integers(0, len(scores), (RESAMPLES, len(scores)))
    values = [correlate(scores[row], ratings[row])[0] for row in drawn]
    return (correlate(scores, ratings)[0], *np.percentile(values, [2.5, 97.5]))


if __name__ == "__main__":
    main()
