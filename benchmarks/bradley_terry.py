"""Supports docs/validation.md, "Strengths from preferences": coverage of Bradley-Terry intervals, and wrong ranks; SIMULATED.

`python benchmarks/bradley_terry.py --draws 600` takes a few minutes. Votes are drawn from known strengths, by annotators who
are alike or have preferences of their own. Coverage for two systems with independent votes is exact, over all possible counts.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import simulated
from scipy import stats
from simulated import Floats, table

from comperdial.core.errors import SchemaError
from comperdial.evaluation.preferences import strengths, votes_of
from comperdial.stats.bradley_terry import Ballots, uncertainty
from comperdial.stats.bradley_terry import strengths as fitted

RATES, VOTES = (0.5, 0.6, 0.75, 0.9, 0.97), (5, 12, 20, 40, 100)
EQUAL = (2, 3, 5, 12, 40)  # votes on each pair of equal systems
# Strengths, votes on each pair, annotators (0: one per vote) and the spread of their preferences.
DRAWN = (
    ((0, 0, 0), 4, 0, 0.0), ((0, 1, 2), 4, 0, 0.0), ((0, 1, 2), 12, 0, 0.0), ((0, 0, 0, 3), 8, 0, 0.0),
    ((0, 0.3, 0.6, 0.9, 1.2, 2), 6, 0, 0.0), ((0, 1), 40, 10, 0.0), ((0, 1), 40, 10, 0.5), ((0, 1, 2), 60, 20, 0.5),
)  # fmt: skip


def exact(rate: float, votes: int) -> float:
    """Return the coverage for two systems if one is preferred at this rate."""
    true, covered, numbers = np.log(rate / (1 - rate)) / 2, 0.0, np.arange(votes)
    for wins in range(votes + 1):
        chance = float(stats.binom.pmf(wins, votes, rate))
        if chance > 1e-9:
            low, high, _ = uncertainty(Ballots(0 * numbers, 0 * numbers + 1, (numbers < wins) * 1.0, numbers))
            covered += chance * bool(low[0] <= true <= high[0])
    return covered


def draw(rng: np.random.Generator, known: tuple[float, ...], votes: int, annotators: int, spread: float) -> Ballots:
    """Return votes on each pair."""
    pairs = np.repeat(list(combinations(range(len(known)), 2)), votes, axis=0)
    count = annotators or len(pairs)
    who = rng.integers(count, size=len(pairs)) if annotators else np.arange(len(pairs))
    preferences = np.asarray(known) + rng.normal(0, spread, (count, len(known)))
    one, other = pairs.T
    chance = 1 / (1 + np.exp(preferences[who, other] - preferences[who, one]))
    return Ballots(one, other, (rng.random(len(pairs)) < chance) * 1.0, np.unique(who, return_inverse=True)[1])


def marginal(known: tuple[float, ...], spread: float) -> Floats:
    """Return the strengths implied by the votes of very many annotators."""
    points, weights = np.polynomial.hermite_e.hermegauss(60)
    apart = np.subtract.outer(known, known)[..., None] + np.sqrt(2) * spread * points
    chance = (1 / (1 + np.exp(-apart))) @ (weights / weights.sum())
    np.fill_diagonal(chance, 0.0)
    return fitted(chance)


def coverage(setting: tuple[tuple[float, ...], int, int, float], draws: int, seed: int) -> tuple[float, float]:
    """Return the share of intervals that cover the truth, and their median width."""
    known, votes, _, spread = setting
    rng, true = np.random.default_rng([seed, len(known), votes]), marginal(known, spread)
    ends = np.array([uncertainty(draw(rng, *setting))[:2] for _ in range(draws)])
    hits = (ends[:, 0] <= true) & (true <= ends[:, 1])
    return float(hits.mean()), float(np.median(ends[:, 1] - ends[:, 0]))


def wrongly_ranked(systems: int, votes: int, draws: int, seed: int) -> float:
    """Return the share of draws of equal systems in which ranks differ."""
    rng, ranks = np.random.default_rng([seed, 2, systems, votes]), []
    while len(ranks) < draws:
        made = draw(rng, (0.0,) * systems, votes, 0, 0.0)
        numbers = np.arange(len(made.won)).astype(str)
        frame = pd.DataFrame(
            {
                "dataset": "m", "question": "q", "source": "simulated", "control": None, "left": None, "seconds": np.nan,
                "pair_id": numbers, "annotator_id": numbers,
                "first_dialogue_id": [f"{n}a" for n in numbers], "second_dialogue_id": [f"{n}b" for n in numbers],
                "first_system_id": made.first.astype(str), "second_system_id": made.second.astype(str),
                "choice": np.where(made.won == 1, "first", "second"),
            }
        )  # fmt: skip
        try:
            ranks.append(strengths(votes_of(frame))["rank"].nunique())
        except SchemaError:
            continue
    return float(np.mean(np.array(ranks) > 1))


def main() -> None:
    options = simulated.options(__doc__, draws=600, ranks=400, seed=16)
    print("Coverage in %, two systems, independent votes, exact\n")
    votes = [f"{number} votes" for number in VOTES]
    table(["preferred at", *votes], [[f"{rate:g}", *(f"{100 * exact(rate, n):.1f}" for n in VOTES)] for rate in RATES])
    print(f"Coverage in %, {options.draws} draws, seed {options.seed}\n")
    rows = []
    for setting in DRAWN:
        share, width = coverage(setting, options.draws, options.seed)
        rows.append([*map(str, setting), f"{100 * share:.1f}", f"{width:.2f}"])
    table(["strengths", "votes on a pair", "annotators", "spread of preferences", "coverage", "median width"], rows)
    print(f"Equal systems with different ranks, in % of {options.ranks} draws, seed {options.seed}\n")
    rows = [
        [f"{n}", *(f"{100 * wrongly_ranked(n, of, options.ranks, options.seed):.1f}" for of in EQUAL)] for n in (2, 3)
    ]
    table(["systems", *(f"{number} votes" for number in EQUAL)], rows)


if __name__ == "__main__":
    main()
