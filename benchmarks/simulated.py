"""Benchmarks drawn at random from the model behind the embedded one, with metrics whose quality is known.

`data/demo/raters.yaml` says how the simulated raters rate; here nothing else is kept of the demo: no texts, systems
drawn anew from the skills of its agents, dialogues drawn anew, and metrics that are the truth and noise in known
shares. So a thousand benchmarks can be drawn, and what an interval or a test claims can be counted. Used by
coverage.py, paired.py and resampling.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import yaml

from comperdial.raters import Rater, Raters, read_raters

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


def demo() -> tuple[Floats, Raters]:
    """Return the skills of the demo's systems and the parameters of its raters."""
    model = read_raters(ROOT / "data/demo/raters.yaml")
    agents = yaml.safe_load((ROOT / "data/demo/agents.yaml").read_text())["agents"]
    return np.array([*(agent["skill"] for agent in agents if "skill" in agent), *model.skill.values()]), model


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
