"""Commands for OpenAI's Batch API: answers within a day, at a lower price."""

from __future__ import annotations

import argparse
import datetime
from pathlib import Path
from time import sleep as _sleep
from typing import TYPE_CHECKING, Any

from comperdial.cli.common import seconds
from comperdial.cli.judge_choice import add_choice, chosen_tasks, read_choice
from comperdial.core.terminal import harmless, money

if TYPE_CHECKING:
    from comperdial.judges.ledger import Submission
    from comperdial.judges.services.openai import OpenAI
    from comperdial.judges.tasks import Judging, Task

_POLL = 60.0


def add_kinds(what: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add ``batch`` to the commands of ``judge``."""
    batch = what.add_parser("batch", help="OpenAI's Batch API: submit requests, collect the answers")
    steps = batch.add_subparsers(title="steps", metavar="STEP", required=True)
    for name, run, about in (
        ("submit", _submit, "have batches made of what the ledger lacks, within the budget"),
        ("status", _status, "ask how far the batches are that are under way"),
        ("collect", _collect, "put the answers of batches that have ended into the ledger"),
    ):
        step = steps.add_parser(name, help=about)
        add_choice(step)
        step.set_defaults(run=run)
        if name == "submit":
            step.add_argument(
                "--budget", type=float, help="US dollars, as `judge run` takes it; default: params.yaml's"
            )
        if name == "collect":
            step.add_argument("--wait", action="store_true", help="until all batches have ended; without it, ask once")
            step.add_argument(
                "--interval",
                type=seconds,
                default=_POLL,
                help=f"seconds from one look to the next (default: {_POLL:g})",
            )
            step.add_argument(
                "--skip-broken",
                action="store_true",
                help="take lines that cannot be read for requests without an answer",
            )
            step.add_argument("--accept-refused", action="store_true", help="keep refusals however many there are")


def _submit(options: argparse.Namespace) -> None:
    from comperdial.judges.batch import settle
    from comperdial.judges.ledger import Ledger

    judging, datasets = read_choice(options)
    for submission in _chosen(options, judging):
        if submission.id is None:
            found = settle(_service(judging, submission), Ledger(judging.ledger), submission)
            if found is None:
                print(f"{submission.name}: was never made")
            else:
                known = f"is with the service as {found.id}" if found.id else "another process is submitting it"
                print(f"{submission.name}: {known}")
    for dataset in datasets:
        for folder, task in chosen_tasks(options, judging, dataset):
            if why := _submit_task(judging, task, folder, dataset):
                print(f"{dataset}  {task.name}: nothing submitted: {why}")


def _submit_task(judging: Judging, task: Task, folder: Path, dataset: str) -> str | None:
    """Submit what the ledger lacks of a task; return why there is nothing."""
    from comperdial.judges.batch import submit
    from comperdial.judges.items import items_of
    from comperdial.judges.ledger import Ledger
    from comperdial.judges.prices import Prices
    from comperdial.judges.scores import turns_to_count
    from comperdial.judges.services.openai import OpenAI
    from comperdial.judges.tasks import family_of, reader, service_of

    service = service_of(task)
    if not isinstance(service, OpenAI):
        return f"the service {service.name} has no Batch API"
    if not task.judge.model:
        return "no model is named"
    turns = None
    if task.variant.turns:
        turns, whole = turns_to_count(judging, task, folder, dataset=dataset)
        if not whole:
            return f"the ledger does not hold all answers of {task.turns} yet, whose scores the prompt is given"
    ledger, family = Ledger(judging.ledger), family_of(judging, task)
    made = submit(
        service,
        ledger,
        dataset,
        family,
        task.variant.name,
        (item.messages for item in items_of(judging, task, folder, turns) if item.messages is not None),
        read=reader(task),
        samples=task.samples,
        stride=task.stride,
        retries=task.retries,
        price=Prices.read(judging.prices).find(task.judge.model) if service.paid else None,
        budget=judging.budget,
    )
    nothing = True
    for submission in made:
        nothing = False
        print(
            f"{submission.name}: submitted as {submission.id}: {submission.requests:,} requests, at most "
            f"{money(submission.worst)}",
            flush=True,
        )
    if not nothing:
        return None
    under_way = [made for made in ledger.submissions() if (made.dataset, made.family) == (dataset, family)]
    waiting = sum(made.requests for made in under_way)
    return f"{waiting:,} requests are with the service already" if waiting else "the ledger lacks nothing"


def _chosen(options: argparse.Namespace, judging: Judging) -> list[Submission]:
    """Return the batches under way that the options choose: all of them, without any."""
    from comperdial.judges.ledger import Ledger

    return [
        made
        for made in Ledger(judging.ledger).submissions()
        if (not options.datasets or made.dataset in options.datasets)
        and (not options.judges or made.family.judge in options.judges)
        and (not options.variants or made.variant in options.variants)
    ]


def _task(judging: Judging, submission: Submission) -> Task:
    """Return the task that a batch was submitted for, as it is asked today."""
    from comperdial.core.errors import ConfigError
    from comperdial.judges.tasks import Task

    family = submission.family
    judge, variant = judging.judges.get(family.judge), judging.variants.get(submission.variant)
    if judge is None or variant is None or judge.model != family.model:
        raise ConfigError(
            f"there is no judge {family.judge} with model {family.model} and variant {submission.variant}",
            where="params.yaml",
            expected=f"those that {submission.name} was submitted for",
            hint="They say where the batch is to be had",
        )
    return Task(judge, variant, variant.samples[0])


def _service(judging: Judging, submission: Submission) -> OpenAI:
    from comperdial.core.errors import ConfigError
    from comperdial.judges.services.openai import OpenAI
    from comperdial.judges.tasks import service_of

    service = service_of(_task(judging, submission))
    if not isinstance(service, OpenAI):
        raise ConfigError(f"{submission.name}: service {service.name!r} has no Batch API", expected="'openai'")
    return service


def _status(options: argparse.Namespace) -> None:
    from comperdial.judges.batch import progress

    judging, _ = read_choice(options)
    chosen = _chosen(options, judging)
    if not chosen:
        print(f"{judging.ledger}: no batch is under way")
    for submission in chosen:
        print(harmless(progress(_service(judging, submission), submission)), flush=True)


def _collect(options: argparse.Namespace) -> None:
    from comperdial.core.errors import FileError
    from comperdial.judges.base import JudgeError
    from comperdial.judges.batch import LaterError, Outcome, collect
    from comperdial.judges.ledger import Ledger
    from comperdial.judges.prices import Prices
    from comperdial.judges.tasks import reader

    judging, _ = read_choice(options)
    ledger, chosen = Ledger(judging.ledger), _chosen(options, judging)
    for submission in chosen:
        if submission.id is None:
            print(Outcome(submission))
    waiting = [submission for submission in chosen if submission.id is not None]
    if not waiting:
        print(f"{judging.ledger}: nothing to collect")
    broken: list[str] = []
    suspicious: list[str] = []
    while waiting:
        for submission in list(waiting):
            service = _service(judging, submission)
            day = datetime.datetime.fromtimestamp(submission.tried or 0, datetime.UTC).date()
            try:
                outcome = collect(
                    service,
                    ledger,
                    submission,
                    read=reader(_task(judging, submission)),
                    price=Prices.read(judging.prices).find(submission.family.model, day) if service.paid else None,
                    skip_broken=options.skip_broken,
                    accept_refused=options.accept_refused,
                )
            except LaterError as error:
                if not options.wait:
                    raise
                print(harmless(f"{submission.name}: {error.problem}"), flush=True)
                continue
            print(harmless(outcome), flush=True)
            broken += [] if options.skip_broken else outcome.broken
            suspicious += [submission.name] if outcome.suspicious else []
            if outcome.collected:
                waiting.remove(submission)
        if not options.wait or not waiting:
            break
        _sleep(options.interval)
    if broken:
        raise FileError(
            f"{len(broken):,} lines that cannot be read",
            where=broken[0],
            expected="what came of a request on each line",
            hint="All other lines are in the ledger. Collect again; if it stays so, `--skip-broken` gives these up",
        )
    if suspicious:
        raise JudgeError(
            "the service refused too many requests for their content to be the reason",
            where=", ".join(suspicious),
            hint="None of these refusals is kept. Submit again; if these requests cannot be answered, collect with "
            "--accept-refused",
        )
