"""Benchmarks drawn at random from the model behind the embedded one, with metrics whose quality is known.

`data/demo/raters.yaml` says how the simulated raters rate; here nothing else is kept of the demo: no texts, systems
drawn anew from the skills of its agents, dialogues drawn anew, and metrics that are the truth and noise in known
shares. So a thousand benchmarks can be drawn, and what an interval or a test claims can be counted. Also here: what the
scripts that count have in common, options, processes and tables.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from comperdial.challenge.simulation import Rater, Raters, read_raters

ROOT = Path(__file__).resolve().parents[1]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Metric:
    """A metric as a sum: how much of the truth of a turn it sees, and the standard deviations of what else it sees.

    ``system``, ``dialogue`` and ``cell`` are its own likes and dislikes of a system, a dialogue, and a system in a
    dialogue; ``noise`` is of the turn. ``skewed`` takes the exponential: ranks stay, the shape becomes that of word
    overlap.
    """

    truth: float = 1.0
    system: float = 0.3
    dialogue: float = 0.3
    cell: float = 0.3
    noise: float = 1.0
    skewed: bool = False


@dataclass(frozen=True)
class Benchmark:
    """What was drawn: ``scores`` (metrics, systems, dialogues, turns), ``turn`` (systems, dialogues, turns) and
    ``dialogue`` (systems, dialogues): mean ratings; ``raters`` (raters, systems, dialogues, turns): the single ones
    of turns.
    """

    scores: Floats
    turn: Floats
    dialogue: Floats
    raters: Floats


HELP = {
    "benchmarks": "how many are drawn, of each kind",
    "resamples": "of an interval; swaps of a test",
    "truths": "large benchmarks that the truth is a mean of",
    "systems": "their systems",
    "processes": "at work at a time",
}


def options(
    about: str | None, more: Mapping[str, str] | None = None, **defaults: int | list[int]
) -> argparse.Namespace:
    """Read whole numbers from the command line: by name, their defaults; ``more`` says what is not in ``HELP``."""
    parser = argparse.ArgumentParser(description=about)
    for name, default in (defaults | {"processes": 2}).items():
        several = {"nargs": "+"} if isinstance(default, list) else {}
        parser.add_argument(f"--{name}", type=int, default=default, help=(HELP | dict(more or {})).get(name), **several)
    return parser.parse_args()


@contextmanager
def workers(count: int) -> Iterator[Callable[..., Iterator[Any]]]:
    """Give a function that calls another for 0, 1, ..., n - 1 in several processes, and yields what it returns."""
    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:

        def each(work: Callable[..., Any], n: int, **settings: object) -> Iterator[Any]:
            return pool.map(partial(work, **settings), range(n), chunksize=4)

        yield each


def shares(
    work: Callable[..., Mapping[Any, float]], options: argparse.Namespace, **settings: object
) -> dict[Any, list[float]]:
    """Return by key what ``work`` returned for each of the benchmarks that the options ask for, and say how far it is."""
    start, result = time.perf_counter(), defaultdict[Any, list[float]](list)
    with workers(options.processes) as each:
        for number, shown in enumerate(each(work, options.benchmarks, seed=options.seed, **settings), 1):
            for key, share in shown.items():
                result[key].append(share)
            if number % 50 == 0:
                print(f"{number} benchmarks, {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
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
    # A habit (long, dull or always alike answers) costs little turn by turn and much over a dialogue; a fifth of
    # systems has one.
    habit = rng.random(systems) < 0.2
    whole = model.dialogue
    as_whole = whole.spread * truth.mean(axis=2) + whole.dull * habit[:, None]
    as_whole += rng.normal(0, whole.noise, (systems, dialogues))
    turn = np.stack([_rate(truth, rater, "turn_noise", model.thresholds, rng) for rater in model.raters])
    dialogue = np.stack([_rate(as_whole, rater, "dialogue_noise", model.thresholds, rng) for rater in model.raters])
    scores = np.stack([_score(truth, metric, rng) for metric in metrics])
    return Benchmark(scores, turn.mean(axis=0), dialogue.mean(axis=0), turn)


def _rate(truth: Floats, rater: Rater, noise: str, thresholds: Sequence[float], rng: np.random.Generator) -> Floats:
    seen = rater.slope * truth + rater.bias + rng.normal(0, getattr(rater, noise), truth.shape)
    return 1.0 + np.searchsorted(np.asarray(thresholds), seen)


def _score(truth: Floats, metric: Metric, rng: np.random.Generator) -> Floats:
    systems, dialogues, _ = truth.shape
    value = metric.truth * truth
    value = value + rng.normal(0, metric.system, (systems, 1, 1)) + rng.normal(0, metric.dialogue, (1, dialogues, 1))
    value = value + rng.normal(0, metric.cell, (systems, dialogues, 1)) + rng.normal(0, metric.noise, truth.shape)
    return np.exp(value) if metric.skewed else value
