"""Commands that make responses and dialogues worse on purpose."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

from comperdial.cli.common import output_folder, whole


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's commands."""
    command = commands.add_parser("perturbations", help="list the perturbations and what each should lower")
    command.set_defaults(run=_perturbations)

    command = commands.add_parser("perturb", help="make a data set of pairs, original and perturbed, of another's")
    command.add_argument("folder", type=Path, help="holds systems, contexts, responses (and ratings) as Parquet")
    command.add_argument("--dataset", required=True, metavar="NAME", help="what to call the new data set")
    command.add_argument("--output", type=output_folder, required=True, metavar="FOLDER", help="gets its tables")
    command.add_argument(
        "--strategy", action="append", metavar="STRATEGY", help="see `comperdial perturbations`; may be repeated"
    )
    command.add_argument(
        "--sample", type=whole(1), default=200, metavar="N", help="pairs for each strategy; default: 200"
    )
    command.add_argument(
        "--seed", type=whole(0), default=0, metavar="N", help="of the draw and the changes; default: 0"
    )
    command.add_argument(
        "--all-items", action="store_true", help="draw among all items, and not only those rated above the median"
    )
    command.set_defaults(run=_perturb)


def _perturbations(_: argparse.Namespace) -> None:
    from comperdial.core.errors import MissingResourceError
    from comperdial.perturbations import PERTURBATIONS, require

    for name, entry in PERTURBATIONS.items():
        ours = "" if entry.paper else ", not in the paper's tables"
        print(f"{name} ({entry.short}, {entry.title}{ours})")
        print(f"    {entry.level}: lowers {', '.join(entry.dimensions)} by more than {entry.threshold:g}")
        print(f"    {entry.about}" + ("" if entry.change else "; recorded pairs only"))
        try:
            require(name)
        except MissingResourceError as error:
            print(f"    cannot run here: {error.problem}; expected {error.expected}")


def _perturb(options: argparse.Namespace) -> None:
    from comperdial import schema
    from comperdial.core.errors import ConfigError
    from comperdial.core.files import write_table
    from comperdial.perturbations import perturb

    folder, output, dataset = options.folder, options.output, options.dataset
    if not re.fullmatch("[A-Za-z0-9_-]+", dataset):
        raise ConfigError(f"data set name {dataset!r}", expected='letters (a to z), digits, "_" and "-" only')
    # The tables that are read, or another data set's, would be lost.
    there = output / "systems.parquet"
    others = set(schema.read(there, "systems")["dataset"]) - {dataset} if there.is_file() else set()
    if output.resolve() == folder.resolve() or others:
        problem = f"{output} holds the tables " + (
            f"of {', '.join(sorted(others))}" if others else "that are perturbed"
        )
        raise ConfigError(problem, where="--output", expected="a folder of its own for the pairs")
    made = perturb(folder, dataset, options.strategy, options.sample, options.seed, good=not options.all_items)
    # All tables are made and checked before the first is written.
    for name, frame in made.tables.items():
        schema.write(output / f"{name}.parquet", frame, name)
    write_table(output / "pairs.csv", made.pairs)
    for name, count in made.counts.items():
        print(f"{name}: {count.pairs} pairs, drawn from {count.items} items; {count.unchanged} tried cannot be changed")
    for name, why in made.left_out.items():
        print(f"{name}: left out: {why}")
