"""Whom a file of requests is meant for, as the configuration has it today."""

from __future__ import annotations

from comperdial.core.errors import ConfigError
from comperdial.judges.batch_files import State
from comperdial.judges.services.base import Service
from comperdial.judging.base import Judging, Task
from comperdial.judging.tasks import service_of


def service_for(judging: Judging, state: State) -> Service:
    """Return the service that a file of requests is meant for, as the judge is reached today."""
    task = task_of(judging, state)
    if task is None:
        raise ConfigError(
            f"there is no judge {state.family.judge} with model {state.family.model} and variant {state.variant}",
            where="params.yaml",
            expected=f"those that {state.path} was written for",
            hint="Without them nobody knows where the batch is to be had",
        )
    return service_of(task)


def task_of(judging: Judging, state: State) -> Task | None:
    """Return the task that a file of requests was written for, if it is there still."""
    judge, variant = judging.judges.get(state.family.judge), judging.variants.get(state.variant)
    if judge is None or variant is None or judge.model != state.family.model:
        return None
    return Task(judge, variant, variant.samples[0])
