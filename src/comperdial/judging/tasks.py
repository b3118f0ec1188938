"""What a task's answers and scores depend on, and whether it can run here. The workflow asks each time it starts."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping

from comperdial.core.errors import ComperdialError, ConfigError
from comperdial.judges.base import Family, canonical
from comperdial.judges.parse import PARSER_VERSION
from comperdial.judges.services import find
from comperdial.judges.services.base import Connection, Service, address
from comperdial.judges.weighting import scale_labels
from comperdial.judging.base import Judging, Task, sample_counts

VERSION = 1
"""Raised when a change of the code changes scores made from the same answers."""


def service_of(task: Task) -> Service:
    """Make the service that answers a task."""
    judge = task.judge
    connection = Connection(
        judge.service,
        model=judge.model,
        base_url=judge.connection.get("base_url"),
        key_variable=judge.connection.get("key"),
        timeout=judge.connection.get("timeout"),
        options={**judge.parameters, "mode": judge.mode},
        identity=judge.identity,
    )
    service = find(judge.service)(connection)
    if "free" in judge.connection:
        service.paid = not judge.connection["free"]
    return service


def unpaid(judging: Judging, task: Task) -> str | None:
    """Say why a judge is not asked for lack of money, in a few words; None if it is free or there is a budget."""
    if not service_of(task).paid or judging.budget:
        return None
    return f"{task.judge.model} costs money, and the budget is 0"


def to_pay(judging: Judging, task: Task) -> str:
    """Say what lets a judge be asked that is taken for one that costs money."""
    priced = f"a price of {task.judge.model} in {judging.prices} and a budget (`judging.budget`, --budget)"
    url = task.judge.connection.get("base_url")
    if url is None or "free" in task.judge.connection:
        return f"It needs {priced}"
    return (
        f"{address(url)} is not on this machine, and may charge: if it is free, say so (`--free` on the command line, "
        f"`free: true` in params.yaml); if not, it needs {priced}"
    )


def family_of(judging: Judging, task: Task) -> Family:
    """Return what the answers to a task depend on, beside the item: their family in the ledger."""
    judge, service = task.judge, service_of(task)
    prompt = judging.prompt(task)
    parameters = {**judge.parameters, **service.identity()}
    if judge.mode == "probabilities":
        parameters |= service.weighting(labels(task))
    return Family(judge.name, judge.service, judge.model, parameters, prompt.name, prompt.hash)


def labels(task: Task) -> tuple[str, ...]:
    """Return the texts whose probability is asked for: a variant's labels, or the whole numbers of its scale.

    Raises
    ------
    ConfigError
        When a variant asks for several ratings, or its scale is not of whole numbers: one token cannot hold that.
    """
    if task.variant.labels:
        return tuple(task.variant.labels)
    form = task.variant.form
    if len(form.dimensions) > 1:
        raise ConfigError(
            f"{task.variant.name} asks for {len(form.dimensions)} ratings at once",
            where=f"params.yaml, judges.{task.judge.name}",
            expected="one rating a prompt with `mode: probabilities`",
            hint="Use `mode: generate` for such variants",
        )
    return scale_labels(form.low, form.high)


def signature(judging: Judging, task: Task) -> str:
    """Return all that determines the scores, in sacrebleu's manner."""
    family, form = family_of(judging, task), task.variant.form
    prompt = judging.prompt(task)
    parts = {
        "prompt": f"{prompt.name}@{prompt.hash[:12]}",
        "from": prompt.source,
        "judge": task.judge.name,
        "service": family.service,
        "model": family.model or task.judge.service,
        **{name: _spelled(value) for name, value in sorted(family.parameters.items())},
        "rating": f"{form.main} of {len(form.dimensions)}, {form.low:g}-{form.high:g}",
        "form": _digest(canonical(dataclasses.asdict(form))),
        **({"labels": _worth(task.variant.labels)} if task.variant.labels else {}),
        **({"turns": f"{task.turns}@{_digest(signature(judging, step_of(judging, task)))}"} if task.turns else {}),
        "samples": str(task.samples),
        "retries": str(task.retries),
        "parser": str(PARSER_VERSION),
        "v": str(VERSION),
    }
    return "|".join(["cpdscore", *(f"{name}:{value}".replace("|", "/") for name, value in parts.items())])


def known_signature(judging: Judging, task: Task) -> str | None:
    """Return :func:`signature`, or None where it cannot be said here: a model is not present, or cannot be asked this.

    For whoever looks for scores made elsewhere; why there is none, :func:`unavailable` says.
    """
    try:
        return signature(judging, task)
    except ComperdialError:
        return None


def step_of(judging: Judging, task: Task) -> Task:
    """Return the task that judges the turns of a task at dialogue level."""
    variant = judging.variants[str(task.variant.turns)]
    return Task(task.judge, variant, sample_counts(variant, task.judge)[0])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _worth(labels: Mapping[str, float]) -> str:
    return ",".join(f"{label}={value:g}" for label, value in labels.items())


def _spelled(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def unavailable(judging: Judging, task: Task, dataset: str) -> str | None:
    """Say why a task cannot run here, in a few words; None if it can.

    A service that costs money is asked within a budget only; without one, what lies in the ledger is used.
    """
    try:
        family = family_of(judging, task)
    except ComperdialError as error:
        return str(error)
    service = service_of(task)
    if not service.paid:
        return service.unavailable()
    folder = judging.ledger / dataset / task.judge.name / family.id
    if any(folder.glob("part-*")) or any(folder.glob("journal-*")):
        return None
    # The same wherever there is no budget, whatever keys lie in the environment: the reason stands in tables.
    if why := unpaid(judging, task):
        return f"not asked: {why}"
    return service.unavailable()
