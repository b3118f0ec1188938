"""Commands of judges: what they would cost, asking them, and what they said."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from comperdial.cli import judge_batch, judge_file, judge_pairs
from comperdial.cli.judge_choice import (
    add_choice,
    add_paying,
    add_shard,
    chosen_tasks,
    levels_of,
    read_choice,
    refusals,
)
from comperdial.core.terminal import harmless, money


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's command."""
    command = commands.add_parser("judge", help="have responses and dialogues rated by a language model (or by rules)")
    what = command.add_subparsers(title="what", metavar="WHAT", required=True)
    kind = what.add_parser("list", help="judges and variants of params.yaml, and which can run here")
    add_choice(kind)
    kind.add_argument("--signatures", action="store_true", help="all that decides the scores of each")
    kind.set_defaults(run=_list)
    kind = what.add_parser("plan", help="calls, tokens and money of what is not in the ledger yet; asks nothing")
    add_choice(kind)
    kind.set_defaults(run=_plan)
    kind = what.add_parser("run", help="ask for what is not in the ledger yet, within the budget")
    add_choice(kind)
    add_paying(kind)
    add_shard(kind)
    kind.set_defaults(run=_run)
    kind = what.add_parser("show", help="a dialogue of a system with its scores and rationales")
    kind.add_argument("system")
    kind.add_argument("dialogue")
    kind.add_argument("--dataset", default="demo", help="default: demo")
    kind.add_argument("--metrics", nargs="*", help="default: all that judges made")
    kind.add_argument("--results", type=Path, default=Path("results"), help="default: results")
    kind.add_argument("--tables", type=Path, default=Path("data/tables"), help="default: data/tables")
    kind.set_defaults(run=_show)
    judge_file.add_kinds(what)
    judge_pairs.add_kinds(what)
    judge_batch.add_kinds(what)
    ledger = commands.add_parser("ledger", help="the answers that judges gave")
    what = ledger.add_subparsers(title="what", metavar="WHAT", required=True)
    kind = what.add_parser("export", help="move answers from SQLite into Parquet: for DVC, and for whoever reads them")
    kind.add_argument("--ledger", type=Path, default=Path("data/ledger"), help="default: data/ledger")
    kind.set_defaults(run=_export)
    kind = what.add_parser("publish", help="write answers that are labels into one file, without the prompts: for DVC")
    kind.add_argument("--ledger", type=Path, default=Path("data/ledger"), help="default: data/ledger")
    kind.set_defaults(run=_publish)


def _list(options: argparse.Namespace) -> None:
    from comperdial.judges.tasks import known_signature, unasked, unavailable

    judging, datasets = read_choice(options)
    for dataset in datasets:
        for _, task in chosen_tasks(options, judging, dataset):
            why = unavailable(judging, task, dataset)
            print(f"{dataset}  {task.name}: {'not run: ' + why if why else 'ready'}")
            if options.signatures:
                print(f"    {known_signature(judging, task) or 'no signature can be said here'}")
        for judge in judging.judges_of(dataset):
            reasons: dict[str, list[str]] = {}
            levels = levels_of(options, dataset)
            for variant in judging.variants_of(dataset):
                if not levels[f"{variant.level}s"]:
                    continue
                if variant.labels and (why := unasked(variant, judge)):
                    reasons.setdefault(why, []).append(variant.name)
            for why, names in reasons.items():
                print(f"{dataset}  {judge.name} is not asked {', '.join(names)}: {why}")
    asked = {judge.name for dataset in datasets for judge in judging.judges_of(dataset)}
    idle = [name for name in judging.judges if name not in asked]
    if idle and not options.judges:
        print(f"Not asked of these data sets: {', '.join(idle)}. See them with --judges NAME, or --datasets.")


def _plan(options: argparse.Namespace) -> None:
    from comperdial.judges.ledger import Ledger
    from comperdial.judges.plan import as_text, plan
    from comperdial.judges.tasks import known_signature, unavailable

    judging, datasets = read_choice(options)
    plans, skipped = [], []
    for dataset in datasets:
        for folder, task in chosen_tasks(options, judging, dataset):
            if known_signature(judging, task) is None:
                skipped.append(f"{dataset}  {task.name}: not counted: {unavailable(judging, task, dataset)}")
            else:
                plans.append(plan(judging, task, folder, dataset=dataset))
    print("\n".join([*([as_text(plans)] if plans else []), *skipped]))
    spent = Ledger(judging.ledger).spent()
    print(f"\nThe ledger's answers have cost {money(spent)} so far; the budget is {money(judging.budget)}.")
    print("At most: a token a byte in, and answers as long as `max_tokens` allows: what the budget sets aside.")
    print("Tokens are estimates, without a model's own tokenizer. Prices and their dates: " + str(judging.prices))


def _run(options: argparse.Namespace) -> None:
    from comperdial.core.errors import ConfigError
    from comperdial.judges.scores import ask_or_skip
    from comperdial.judges.together import ask_together, groups

    judging, datasets = read_choice(options)
    done = 0
    skipped: dict[tuple[str, str | None], str] = {}
    for dataset in datasets:
        chosen = list(chosen_tasks(options, judging, dataset))
        # A shard is a part of each task's requests: what is asked of one item is of several shards.
        for group in groups(judging, (task for _, task in chosen)) if options.shard.count == 1 else ():
            new = ask_together(judging, group, chosen[0][0], dataset=dataset)
            print(
                f"{dataset}  {len(group)} questions to {group[0].judge.name} together: {new:,} new answers", flush=True
            )
        for folder, task in chosen:
            if lost := skipped.get((dataset, task.turns)):
                why, said = f"its turns are not judged: {lost}", ""
            else:
                why, said = ask_or_skip(
                    judging, task, folder, dataset=dataset, shard=options.shard, refusals=refusals(options)
                )
            print(harmless(f"{dataset}  {task.name}: {f'not run: {why}' if why else said}"), flush=True)
            if why:
                skipped[dataset, task.name] = why
            else:
                done += 1
    if skipped and not done:
        raise ConfigError(
            f"nothing could be asked: none of {len(skipped)} tasks can run here",
            where=str(options.params),
            expected="a judge that can be reached",
            hint=f"The first reason: {next(iter(skipped.values()))}",
        )


def _show(options: argparse.Namespace) -> None:
    from comperdial.core.errors import FileError, UnknownNameError
    from comperdial.judges.show import show

    folder = options.results / options.dataset / "judgements"
    known = {path.stem: path for path in sorted(folder.glob("*.parquet"))}
    if not known:
        raise FileError(
            "no judgements have been made of this data set",
            where=str(folder),
            expected="METRIC.parquet for each metric of a judge",
            hint="`snakemake` makes them; `judge run` only asks",
        )
    for name in options.metrics or ():
        if name not in known:
            raise UnknownNameError("metric", name, known, where=str(folder))
    chosen = options.metrics or [name for name in known if "-once_" not in name]
    shown = show(
        options.tables / options.dataset,
        [options.results / options.dataset / "scores" / f"{name}.parquet" for name in chosen],
        [known[name] for name in chosen],
        system=options.system,
        dialogue=options.dialogue,
    )
    print(harmless(shown))


def _export(options: argparse.Namespace) -> None:
    from comperdial.judges.ledger import Ledger

    ledger = Ledger(options.ledger)
    moved = ledger.export()
    for dataset, family, added in moved:
        print(f"{ledger.folder(dataset, family)}: {added:,} answers")
    if not moved:
        print(f"{options.ledger}: nothing to move")


def _publish(options: argparse.Namespace) -> None:
    from comperdial.judges.ledger import PUBLISHED, Ledger

    count = Ledger(options.ledger).publish()
    print(
        f"{options.ledger / PUBLISHED}: {count:,} answers" if count else f"{options.ledger}: no answers that are labels"
    )
