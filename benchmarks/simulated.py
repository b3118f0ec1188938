"""Supports the simulated numbers of docs/validation.md: draws benchmarks and metrics whose quality is known.

The model is that of `data/demo/raters.yaml`, without texts. The module also has the scripts' options, loop and tables.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from comperdial.challenge.simulation import Rater, Raters, read_raters
from comperdial.stats.design import Design

ROOT = Path(__file__).resolve().parents[1]
Floats = npt.NDArray[np.float64]
Sample = tuple[Floats, Floats, Design]
Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class Metric:
    """A metric as a sum: its weight for a turn's true quality, and standard deviations of its errors.

    ``system``, ``dialogue`` and ``cell`` are biases for a system, a dialogue, and a system in a dialogue; ``noise`` is per
    turn. ``skewed`` takes the exponential, which keeps the ranks.
    """

    truth: float = 1.0
    system: float = 0.3
    dialogue: float = 0.3
    cell: float = 0.3
    noise: float = 1.0
    skewed: bool = False


@dataclass(frozen=True)
class Benchmark:
    """Scores (metrics, systems, dialogues, turns), mean ratings of turns (without metrics) and of dialogues."""

    scores: Floats
    turn: Floats
    dialogue: Floats


def options(about: str | None, cases: Sequence[str] = (), **defaults: int | None) -> argparse.Namespace:
    """Read the case and whole numbers from the command line."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    if cases:
        parser.add_argument("case", nargs="?", choices=cases, default=cases[0], help="default: %(default)s")
    for name, default in (defaults | {"processes": 2}).items():
        parser.add_argument(f"--{name}", type=int, default=default)
    return parser.parse_args()


def each(work: Callable[..., Outcome], count: int, processes: int, **settings: object) -> list[Outcome]:
    """Return what ``work`` returns for 0, 1, ..., count - 1, in several processes."""
    start, result = time.perf_counter(), []
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for outcome in pool.map(partial(work, **settings), range(count), chunksize=4):
            result.append(outcome)
            if len(result) % 50 == 0:
                print(f"{len(result)} of {count}, {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    return result


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table in Markdown."""
    for line in (head, ["---"] * len(head), *rows):
        print("| " + " | ".join(line) + " |")
    print()


def demo() -> tuple[Floats, Raters]:
    """Return the skills of the demo's systems and the parameters of its raters."""
    model = read_raters(ROOT / "data/demo/raters.yaml")
    return np.array([*model.skill.values()]), model


def draw(
    rng: np.random.Generator,
    metrics: Sequence[Metric],
    skills: Floats,
    model: Raters,
    *,
    systems: int = 99,
    dialogues: int = 15,
    turns: int = 7,
) -> Benchmark:
    """Draw systems (from the skills, with replacement) and dialogues, have them rated, and score them."""
    skill = rng.choice(skills, systems)
    shape = (systems, dialogues, turns)
    part = model.turn
    truth = np.broadcast_to(part.skill_weight * (2 * skill - 1)[:, None, None], shape).copy()
    relevance = rng.normal(size=shape)
    truth += part.relevance_weight * (relevance - relevance.mean(axis=0)) / relevance.std(axis=0)
    truth += rng.normal(0, part.dialogue_noise, (1, dialogues, 1))
    truth += rng.normal(0, part.system_dialogue_noise, (systems, dialogues, 1))
    truth += rng.normal(0, part.turn_noise, shape)
    # A bad habit (long, dull or repeated answers) costs little per turn and much per dialogue; a fifth of systems has one.
    habit = rng.random(systems) < 0.2
    whole = model.dialogue
    as_whole = whole.spread * truth.mean(axis=2) + whole.dull * habit[:, None]
    as_whole += rng.normal(0, whole.noise, (systems, dialogues))
    turn = np.stack([_rate(truth, rater, "turn_noise", model.thresholds, rng) for rater in model.raters])
    dialogue = np.stack([_rate(as_whole, rater, "dialogue_noise", model.thresholds, rng) for rater in model.raters])
    return Benchmark(
        np.stack([_score(truth, metric, rng) for metric in metrics]), turn.mean(axis=0), dialogue.mean(axis=0)
    )


def _rate(truth: Floats, rater: Rater, noise: str, thresholds: Sequence[float], rng: np.random.Generator) -> Floats:
    seen = rater.slope * truth + rater.bias + rng.normal(0, getattr(rater, noise), truth.shape)
    return 1.0 + np.searchsorted(np.asarray(thresholds), seen)


def _score(truth: Floats, metric: Metric, rng: np.random.Generator) -> Floats:
    systems, dialogues, _ = truth.shape
    value = metric.truth * truth
    value = value + rng.normal(0, metric.system, (systems, 1, 1)) + rng.normal(0, metric.dialogue, (1, dialogues, 1))
    value = value + rng.normal(0, metric.cell, (systems, dialogues, 1)) + rng.normal(0, metric.noise, truth.shape)
    return np.exp(value) if metric.skewed else value


def units(scores: Floats, ratings: Floats, *, average: bool = False) -> Sample:
    """Return scores (metrics, units), ratings and the design of all units."""
    systems, dialogues, *_ = (axis.ravel() for axis in np.indices(ratings.shape))
    return scores.reshape(len(scores), -1), ratings.ravel(), Design(systems, dialogues, average)


def levels(drawn: Benchmark) -> dict[str, Sample]:
    """Return scores, ratings and design of each level."""
    by_dialogue = drawn.scores.mean(axis=3)
    return {
        "turn": units(drawn.scores, drawn.turn),
        "dialogue": units(by_dialogue, drawn.dialogue),
        "system": units(drawn.scores, drawn.turn, average=True),
        "system, dialogue ratings": units(by_dialogue, drawn.dialogue, average=True),
    }
