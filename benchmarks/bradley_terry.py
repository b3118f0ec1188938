"""What intervals of Bradley-Terry strengths cover, and how often systems get ranks that they should not have.

Votes are drawn from strengths that are known, of annotators who are alike or who have likes of their own. Coverage of two
systems whose votes are independent is exact, over all possible counts. Prints Markdown; everything is SIMULATED.
`python benchmarks/bradley_terry.py` takes some minutes.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import simulated
from scipy import stats
from simulated import table

from comperdial.core.errors import SchemaError
from comperdial.evaluation.preferences import strengths, votes_of
from comperdial.stats.bradley_terry import Ballots, uncertainty
from comperdial.stats.bradley_terry import strengths as fitted

RATES = (0.5, 0.6, 0.75, 0.9, 0.97)
VOTES = (5, 12, 20, 40, 100)
# Strengths, votes on each pair, annotators (0: each vote has its own) and the spread of their likes.
DRAWN = (
    ((0, 0, 0), 4, 0, 0.0), ((0, 1, 2), 4, 0, 0.0), ((0, 1, 2), 12, 0, 0.0), ((0, 0, 0, 3), 8, 0, 0.0),
    ((0, 0.3, 0.6, 0.9, 1.2, 2), 6, 0, 0.0), ((0, 1), 40, 10, 0.0), ((0, 1), 40, 10, 0.5), ((0, 1, 2), 60, 20, 0.5),
)  # fmt: skip
# Votes on a pair of equal systems.
EQUAL = (2, 3, 5, 12, 40)


def exact(rate: float, votes: int) -> float:
    """Return the coverage of the strength of one of two systems that is preferred at this rate."""
    true, covered = np.log(rate / (1 - rate)) / 2, 0.0
    none = np.zeros(votes, dtype=np.intp)
    for wins in range(votes + 1):
        chance = float(stats.binom.pmf(wins, votes, rate))
        if chance > 1e-9:
            low, high, _ = uncertainty(Ballots(none, none + 1, (np.arange(votes) < wins) * 1.0, np.arange(votes)))
            covered += chance * bool(low[0] <= true <= high[0])
    return covered


def draw(
    rng: np.random.Generator, known: tuple[float, ...], votes: int, annotators: int, spread: float
) -> tuple[Ballots, np.ndarray]:
    """Return votes on each pair, and the strengths in the mean over many annotators."""
    pairs = np.repeat(list(combinations(range(len(known)), 2)), votes, axis=0)
    count = annotators or len(pairs)
    who = rng.integers(count, size=len(pairs)) if annotators else np.arange(len(pairs))
    likes = np.asarray(known) + rng.normal(0, spread, (count, len(known)))
    one, other = pairs.T
    chance = 1 / (1 + np.exp(likes[who, other] - likes[who, one]))
    units = np.unique(who, return_inverse=True)[1]
    return Ballots(one, other, (rng.random(len(pairs)) < chance) * 1.0, units), np.asarray(known)


def marginal(known: tuple[float, ...], spread: float) -> np.ndarray:
    """Return the strengths that votes of very many annotators with likes of their own have."""
    apart = np.subtract.outer(known, known)
    points, weights = np.polynomial.hermite_e.hermegauss(60)
    chance = (1 / (1 + np.exp(-apart[..., None] - np.sqrt(2) * spread * points))) @ (weights / weights.sum())
    np.fill_diagonal(chance, 0.0)
    return fitted(chance)


def covered(known: tuple[float, ...], votes: int, annotators: int, spread: float, draws: int, seed: int) -> list[float]:
    """Return the share of intervals that cover, and their median width."""
    rng = np.random.default_rng([seed, len(known), votes])
    true, hits, widths = marginal(known, spread), [], []
    for _ in range(draws):
        low, high, _ = uncertainty(draw(rng, known, votes, annotators, spread)[0])
        hits.append((low <= true) & (true <= high))
        widths.append(high - low)
    return [float(np.mean(hits)), float(np.median(widths))]


def wrongly_ranked(systems: int, votes: int, draws: int, seed: int) -> float:
    """Return the share of draws of equal systems in which some rank differs."""
    rng = np.random.default_rng([seed, 2, systems, votes])
    wrong, done = 0, 0
    while done < draws:
        made, _ = draw(rng, (0.0,) * systems, votes, 0, 0.0)
        frame = pd.DataFrame(
            {
                "dataset": "m", "question": "q", "source": "simulated", "control": None, "left": None, "seconds": np.nan,
                "pair_id": np.arange(len(made.won)).astype(str), "annotator_id": np.arange(len(made.won)).astype(str),
                "first_system_id": made.first.astype(str), "second_system_id": made.second.astype(str),
                "choice": np.where(made.won == 1, "first", "second"),
            }
        )  # fmt: skip
        frame = frame.assign(first_dialogue_id=frame["pair_id"] + "a", second_dialogue_id=frame["pair_id"] + "b")
        try:
            wrong += strengths(votes_of(frame))["rank"].nunique() > 1
        except SchemaError:
            continue
        done += 1
    return wrong / draws


def main() -> None:
    options = simulated.options(
        __doc__, {"draws": "of strengths that are not counted exactly", "ranks": "draws of equal systems"},
        draws=1000, ranks=400, seed=16,
    )  # fmt: skip
    print("Coverage of the 95 % interval in %, two systems, independent votes, exact.\n")
    rows = [[f"{rate:g}", *(f"{100 * exact(rate, votes):.1f}" for votes in VOTES)] for rate in RATES]
    table(["A is preferred at", *(f"{votes} votes" for votes in VOTES)], rows)
    print(f"SIMULATED votes, {options.draws} draws, seed {options.seed}.\n")
    rows = []
    for known, votes, annotators, spread in DRAWN:
        share, width = covered(known, votes, annotators, spread, options.draws, options.seed)
        names = [", ".join(f"{one:g}" for one in known), str(votes), str(annotators or "one a vote"), f"{spread:g}"]
        rows.append([*names, f"{100 * share:.1f}", f"{width:.2f}"])
    table(["strengths", "votes on each pair", "annotators", "spread of their likes", "coverage", "median width"], rows)
    print(f"Equal systems with different ranks, in % of {options.ranks} draws, seed {options.seed}.\n")
    rows = [
        [str(systems), *(f"{100 * wrongly_ranked(systems, votes, options.ranks, options.seed):.1f}" for votes in EQUAL)]
        for systems in (2, 3)
    ]
    table(["systems", *(f"{votes} votes" for votes in EQUAL)], rows)


if __name__ == "__main__":
    main()
