"""The commands that fetch public files, and read data and scores that were made elsewhere."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from comperdial import schema
from comperdial.cli.common import rated_file_options
from comperdial.config import load_yaml
from comperdial.config.studies import params_file
from comperdial.core.errors import ConfigError, UnknownNameError
from comperdial.core.files import TABLE_SUFFIXES
from comperdial.data import readers, recorded, sources, wordnet
from comperdial.data.catalogue import load_catalogue, lock_path
from comperdial.data.export import published_files
from comperdial.selection import file_name


def list_sources(options: argparse.Namespace) -> int:
    """List the public files; 1 if one is altered."""
    states = set()
    for name, source in load_catalogue(options.catalogue).files.items():
        state, size = sources.status(source, sources.raw_path(source)), source.bytes or 0
        print(f"{state:8} {size:>10,} bytes  {name}  ({source.relative}; licence: {source.licence})")
        states.add(state)
    return int("altered" in states)


def fetch(options: argparse.Namespace) -> None:
    """Fetch public files."""
    catalogue = load_catalogue(options.catalogue)
    # Without names: all that is pinned. A first download is a decision, and is asked for by name.
    for name in options.names or [name for name, source in catalogue.files.items() if source.pinned]:
        dataset = catalogue.datasets.get(name)
        for source in dataset.files.values() if dataset else [catalogue.file(name)]:
            sources.fetch(source, sources.raw_path(source), lock_file=lock_path(options.catalogue))


def set_up_wordnet(_: argparse.Namespace) -> None:
    """Find WordNet or set it up."""
    corpus = wordnet.set_up()
    print(f"WordNet {corpus.version} in {corpus.path} ({corpus.source})")


def take_scores(options: argparse.Namespace) -> None:
    """Write scores that were computed elsewhere as a table."""
    source = load_catalogue(options.catalogue).file(options.source) if options.source else None
    scores = recorded.import_scores(
        options.name, options.folder, sources.require(source) if source else options.path, format=options.format,
        origin=recorded.origin(source or options.path), about=options.about, ratings=options.ratings,
    )  # fmt: skip
    schema.write(options.output, scores, "scores")


def read(options: argparse.Namespace) -> None:
    """Read a data set into tables."""
    name, tables = _tables(options)
    folder = options.output or Path("data/tables") / name
    # All tables are read and checked before the first is written.
    for table, frame in tables.items():
        schema.write(folder / f"{table}.parquet", frame, table)


def _tables(options: argparse.Namespace) -> tuple[str, Mapping[str, Any]]:
    """Return the name and the tables of a user's file, or of a data set of params.yaml or the catalogue."""
    params = load_yaml(params_file()) if params_file().is_file() else {}
    challenges, catalogue = params.get("challenges") or {}, Path(params.get("catalogue", "data/sources.yaml"))
    given, path, name = rated_file_options(options), Path(options.dataset), options.dataset
    if path.suffix in TABLE_SUFFIXES or path.is_file():
        name = options.name or path.stem
        known = load_catalogue(catalogue).datasets if catalogue.is_file() and not options.output else {}
        if not options.output and name in {*challenges, *known}:
            problem = f"there is a data set {name!r}, whose tables would be replaced"
            raise ConfigError(problem, where=str(path), expected="another name: --name")
        return name, readers.read("table", name, {"table": path}, given)
    if options.name or given:
        where = "--name" if options.name else "--columns, --scale"
        raise ConfigError(f"{name} is no file", where=where, expected="a file of yours")
    files = [Path(file) for file in params.get("datasets") or [] if Path(file).suffix]
    own = {**{file_name(file): {"file": file} for file in files}, **(params.get("own_data") or {})}
    if name in own:
        kept = {key: own[name][key] for key in ("columns", "scale") if key in own[name]}
        return name, readers.read("table", name, {"table": Path(own[name]["file"])}, kept)
    if "comperdial" in challenges.get(name, {}):
        columns = {"columns": params["comperdial"]["columns"]}
        return name, readers.read("comperdial", name, published_files(challenges[name]["comperdial"]), columns)
    published = load_catalogue(catalogue)
    if name not in published.datasets:
        raise UnknownNameError("dataset", name, [*own, *published.datasets])
    entry = published.dataset(name)
    return name, readers.read(entry.reader, name, sources.require_all(entry.files), params.get(entry.reader, {}))
