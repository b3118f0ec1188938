"""How a task's answers are read."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from comperdial.judges.base import Completion, Form, Parsed
from comperdial.judges.parse import parse
from comperdial.judges.weighting import UnweightedError, expected_score_of_logs
from comperdial.judging.base import Task
from comperdial.judging.scores import OUTSIDE
from comperdial.judging.tasks import labels

MOST_OUTSIDE = 0.5
"""With more of the probability than this outside the scale, an answer was about to be no rating."""


def reader(task: Task) -> Callable[[Completion], Parsed]:
    """Return what reads a task's answers: the text, or the probabilities of the scale's or the variant's labels."""
    form = task.variant.form
    if worth := task.variant.labels:
        # The paper's value is relative to the labels, however probable they are: how much is beside them is told apart.
        return functools.partial(_weighted, form=form, scale=worth, most_outside=1.0)
    if task.judge.mode == "probabilities":
        scale = {text: float(text) for text in labels(task)}
        return functools.partial(_weighted, form=form, scale=scale, most_outside=MOST_OUTSIDE)
    # Judges answer few different texts to thousands of prompts.
    cached = functools.lru_cache(maxsize=1 << 16)(functools.partial(parse, form=form))
    return lambda completion: cached(completion.text)


def _weighted(completion: Completion, form: Form, scale: Mapping[str, float], most_outside: float) -> Parsed:
    try:
        found = expected_score_of_logs(completion.logprobs or {}, scale)
    except UnweightedError as error:
        return Parsed({}, failure=error.problem)
    if found.outside > most_outside:
        return Parsed({}, failure=f"{found.outside:.0%} of the probability is outside the scale")
    return Parsed({form.main: found.value, OUTSIDE: found.outside})
