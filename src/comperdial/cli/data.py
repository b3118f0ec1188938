"""Commands that fetch and read data."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from comperdial.cli.common import add_catalogue, add_rated_file, json_object, output_folder, rated_file_options
from comperdial.core.errors import ConfigError
from comperdial.core.files import TABLE_SUFFIXES


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's commands."""
    command = commands.add_parser("sources", help="list the public files: present, missing or altered")
    add_catalogue(command)
    command.set_defaults(run=_sources)

    command = commands.add_parser("fetch", help="fetch public files from the mirror or over HTTPS, checked")
    command.add_argument("names", nargs="*", help="names of sources or datasets; default: all that are pinned")
    add_catalogue(command)
    command.set_defaults(run=_fetch)

    command = commands.add_parser("ingest", help="turn a dataset's files, or one file of your own, into tables")
    command.add_argument("dataset", help="a name in the catalogue, or a CSV, JSONL or Parquet file of rated responses")
    command.add_argument("--name", help="what to call the data set of a file; default: the file's name without suffix")
    command.add_argument("--output", type=output_folder, help="a folder; default: data/tables/NAME")
    command.add_argument("--options", type=json_object, default={}, metavar="JSON", help="the reader's settings")
    add_rated_file(command)
    add_catalogue(command)
    command.set_defaults(run=_ingest)

    command = commands.add_parser("wordnet", help="find WordNet for METEOR, or set it up")
    command.set_defaults(run=_wordnet)


def _sources(options: argparse.Namespace) -> int:
    from comperdial.data import sources
    from comperdial.data.catalogue import load_catalogue

    states = {}
    for name, source in load_catalogue(options.catalogue).files.items():
        states[name] = sources.status(source, sources.raw_path(source))
        print(f"{states[name]:8} {source.bytes:>10,} bytes  {name}  ({source.relative}; licence: {source.licence})")
    return int("altered" in states.values())


def _fetch(options: argparse.Namespace) -> None:
    from comperdial.data import sources
    from comperdial.data.catalogue import load_catalogue, lock_path

    catalogue = load_catalogue(options.catalogue)
    wanted = []
    # Without names: all that is pinned. A first download is a decision, and is asked for by name.
    for name in options.names or [name for name, source in catalogue.files.items() if source.pinned]:
        dataset = catalogue.datasets.get(name)
        wanted += list(dataset.files.values()) if dataset else [catalogue.file(name)]
    for source in wanted:
        sources.fetch(source, sources.raw_path(source), lock_file=lock_path(options.catalogue))


def _ingest(options: argparse.Namespace) -> None:
    from comperdial import schema
    from comperdial.data import readers

    path = Path(options.dataset)
    # All tables are read and checked before the first is written.
    if path.suffix in TABLE_SUFFIXES or path.is_file():
        name = options.name or path.stem
        tables = readers.read("table", name, {"table": path}, {**options.options, **rated_file_options(options)})
    else:
        name, tables = _of_catalogue(options)
    folder = options.output or Path("data/tables") / name
    for table, frame in tables.items():
        schema.write(folder / f"{table}.parquet", frame, table)


def _of_catalogue(options: argparse.Namespace) -> tuple[str, Any]:
    from comperdial.data import readers, sources
    from comperdial.data.catalogue import load_catalogue

    entry = load_catalogue(options.catalogue).dataset(options.dataset)
    for name, value in (("--name", options.name), ("--columns", options.columns), ("--scale", options.scale)):
        if value is not None:
            raise ConfigError(f"{options.dataset} is no file", where=name, expected="a file of yours")
    files = {role: sources.require(source) for role, source in entry.files.items()}
    return entry.name, readers.read(entry.reader, entry.name, files, options.options)


def _wordnet(_: argparse.Namespace) -> None:
    from comperdial.data import wordnet

    found = wordnet.set_up()
    print(f"WordNet {found.version} in {found.path} ({found.source})")
