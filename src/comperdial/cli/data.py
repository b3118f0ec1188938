"""Commands that fetch and read data."""

from __future__ import annotations

import argparse
from typing import Any

from comperdial.cli.common import add_catalogue


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's commands."""
    command = commands.add_parser("sources", help="list the public files: present, missing or altered")
    add_catalogue(command)
    command.set_defaults(run=_sources)

    command = commands.add_parser("fetch", help="fetch public files from the mirror or over HTTPS, checked")
    command.add_argument("names", nargs="*", help="names of sources or datasets; default: all that are pinned")
    add_catalogue(command)
    command.set_defaults(run=_fetch)

    command = commands.add_parser("wordnet", help="find WordNet for METEOR, or set it up")
    command.set_defaults(run=_wordnet)


def _sources(options: argparse.Namespace) -> int:
    from comperdial.data import sources
    from comperdial.data.catalogue import load_catalogue

    states = {}
    for name, source in load_catalogue(options.catalogue).files.items():
        states[name] = sources.status(source, sources.raw_path(source))
        print(
            f"{states[name]:8} {source.bytes or 0:>10,} bytes  {name}  ({source.relative}; licence: {source.licence})"
        )
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


def _wordnet(_: argparse.Namespace) -> None:
    from comperdial.data import wordnet

    corpus = wordnet.set_up()
    print(f"WordNet {corpus.version} in {corpus.path} ({corpus.source})")
