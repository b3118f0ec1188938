"""Commands for OpenAI's Batch API: answers within a day, at a lower price."""

from __future__ import annotations

import argparse
from time import sleep as _sleep
from typing import TYPE_CHECKING, Any

from comperdial.cli.common import seconds
from comperdial.cli.judge_choice import add_choice, chosen_tasks, read_choice

if TYPE_CHECKING:
    from comperdial.judges.batch_files import State
    from comperdial.judges.tasks import Judging

_POLL = 60.0


def add_kinds(what: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add ``batch`` to the commands of ``judge``."""
    batch = what.add_parser("batch", help="OpenAI's Batch API: write requests, submit them, collect the answers")
    steps = batch.add_subparsers(title="steps", metavar="STEP", required=True)
    for name, run, about in (
        ("write", _write, "write what the ledger lacks to files of requests; asks nothing"),
        ("submit", _submit, "have batches made of the files that were written, within the budget"),
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


def _write(options: argparse.Namespace) -> None:
    from comperdial.judges.batch import write

    judging, datasets = read_choice(options)
    for dataset in datasets:
        for folder, task in chosen_tasks(options, judging, dataset):
            states, skipped = write(judging, task, folder, dataset=dataset)
            if skipped:
                print(f"{dataset}  {task.name}: nothing written: {skipped}")
            for state in states:
                worst = "no price is known" if state.worst is None else f"at most ${state.worst:,.2f}"
                size = f"{state.requests:,} requests, {state.bytes / 1e6:.1f} MB"
                print(f"{dataset}  {task.name}: {state.file()}: {size}, {worst}")


def _chosen(options: argparse.Namespace) -> tuple[Judging, list[State]]:
    """Return the configuration and the files of requests that the options choose: all of them, without any."""
    from comperdial.judges.batch_files import read_states

    judging, _ = read_choice(options)
    chosen = [
        state
        for state in read_states()
        if (not options.datasets or state.dataset in options.datasets)
        and (not options.judges or state.family.judge in options.judges)
        and (not options.variants or state.variant in options.variants)
    ]
    return judging, chosen


def _submit(options: argparse.Namespace) -> None:
    from comperdial.judges.batch import submit
    from comperdial.judges.batch_files import BATCHES, SUBMITTING, WRITTEN

    judging, chosen = _chosen(options)
    waiting = [state for state in chosen if state.status in (WRITTEN, SUBMITTING)]
    if not waiting:
        print(f"{BATCHES}: nothing to submit")
    for state in waiting:
        made, found = submit(judging, state)
        print(f"{made.name}: {'known to the service already, as' if found else 'submitted as'} {made.batch}")


def _collect(options: argparse.Namespace) -> None:
    from comperdial.core.errors import FileError
    from comperdial.judges.batch_files import BATCHES, SUBMITTED, SUBMITTING
    from comperdial.judges.batch_results import collect
    from comperdial.judges.batches import LaterError

    judging, chosen = _chosen(options)
    for state in chosen:
        if state.status == SUBMITTING:
            print(f"{state.name}: may be with the service; `comperdial judge batch submit` finds out")
    waiting = [state for state in chosen if state.status == SUBMITTED]
    if not waiting:
        print(f"{BATCHES}: nothing to collect")
    broken: list[str] = []
    while waiting:
        for state in list(waiting):
            try:
                outcome = collect(judging, state, skip_broken=options.skip_broken)
            except LaterError as error:
                if not options.wait:
                    raise
                print(f"{state.name}: {error.problem}", flush=True)
                continue
            print(outcome, flush=True)
            broken += [] if options.skip_broken else outcome.broken
            if outcome.ended:
                waiting.remove(state)
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
