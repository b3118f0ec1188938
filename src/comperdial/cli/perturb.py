"""Commands that make responses and dialogues worse on purpose."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

from comperdial.cli.common import output_folder


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
    command.add_argument("--sample", type=int, default=200, metavar="N", help="pairs for each strategy; default: 200")
    command.add_argument("--seed", type=int, default=0, metavar="N", help="of the draw and the changes; default: 0")
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

    if not re.fullmatch("[A-Za-z0-9_-]+", options.dataset):
        raise ConfigError(f"data set name {options.dataset!r}", expected='letters (a to z), digits, "_" and "-" only')
    if options.sample < 1 or options.seed < 0:
        expected = "a sample of at least 1, a seed of at least 0"
        raise ConfigError(f"sample {options.sample}, seed {options.seed}", expected=expected)
    _check_output(options.folder, options.output, options.dataset)
    made = perturb(
        options.folder, options.dataset, options.strategy, options.sample, options.seed, good=not options.all_items
    )
    # All tables are made and checked before the first is written.
    for name, frame in made.tables.items():
        schema.write(options.output / f"{name}.parquet", frame, name)
    write_table(options.output / "pairs.csv", made.pairs)
    for name, count in made.counts.items():
        print(f"{name}: {count.pairs} pairs, drawn from {count.items} items; {count.unchanged} tried cannot be changed")
    for name, why in made.left_out.items():
        print(f"{name}: left out: {why}")


def _check_output(folder: Path, output: Path, dataset: str) -> None:
    """Refuse a folder whose tables would be lost: those that are read, or another data set's."""
    from comperdial import schema
    from comperdial.core.errors import ConfigError

    expected = "a folder of its own for the pairs"
    if output.resolve() == folder.resolve():
        raise ConfigError(f"{output} holds the tables that are perturbed", where="--output", expected=expected)
    if (systems := output / "systems.parquet").is_file():
        others = set(schema.read(systems, "systems")["dataset"]) - {dataset}
        if others:
            raise ConfigError(
                f"{output} holds the tables of {', '.join(sorted(others))}", where="--output", expected=expected
            )
