"""Commands that the workflow's rules run, and a person can type: read, execute a notebook, make a page."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from comperdial.cli.common import add_rated_file, output_file, output_folder, rated_file_options
from comperdial.core.errors import ConfigError, UnknownNameError
from comperdial.core.files import TABLE_SUFFIXES


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's commands."""
    command = commands.add_parser("read", help="read a data set, or one file of your own, into tables")
    command.add_argument("dataset", help="a name of params.yaml or the catalogue, or a CSV, JSONL or Parquet file")
    command.add_argument("--name", help="what to call the data set of a file; default: the file's name without suffix")
    command.add_argument("--output", type=output_folder, metavar="FOLDER", help="default: data/tables/NAME")
    add_rated_file(command)
    command.set_defaults(run=_read)

    command = commands.add_parser("notebook", help="execute a notebook, and write its page")
    command.add_argument("notebook", type=Path, help="a jupytext file of notebooks/")
    command.add_argument("--dataset", required=True)
    command.add_argument("--source", default="human", help="whose ratings (default: human)")
    command.add_argument("--target", default="Overall", help="the rated dimension (default: Overall)")
    command.add_argument("--output", type=output_file, required=True, help="a .html file")
    command.set_defaults(run=_notebook)
    command = commands.add_parser("page", help="make the page of a data set, from results that are here")
    command.add_argument("dataset")
    command.add_argument("--output", type=output_file, required=True, help="a .html file")
    command.set_defaults(run=_page)
    command = commands.add_parser("summary", help="write the numbers that DVC compares between commits")
    command.add_argument("dataset")
    command.add_argument("--output", type=output_folder, required=True, metavar="FOLDER")
    command.set_defaults(run=_summary)
    command = commands.add_parser("pack-records", help="pack Snakemake's records for DVC (`make publish` does it)")
    command.set_defaults(run=_pack)


def _read(options: argparse.Namespace) -> None:
    from comperdial import schema

    name, tables = _tables(options)
    folder = options.output or Path("data/tables") / name
    # All tables are read and checked before the first is written.
    for table, frame in tables.items():
        schema.write(folder / f"{table}.parquet", frame, table)


def _tables(options: argparse.Namespace) -> tuple[str, Mapping[str, Any]]:
    from comperdial.config.registry import completed
    from comperdial.data import readers, sources
    from comperdial.data.catalogue import load_catalogue
    from comperdial.data.export import published_files

    given, path = rated_file_options(options), Path(options.dataset)
    if path.suffix in TABLE_SUFFIXES or path.is_file():
        name = options.name or path.stem
        if not options.output and name in _taken():
            raise ConfigError(
                f"there is a data set {name!r}, whose tables would be replaced",
                where=str(path),
                expected="another name: --name",
            )
        return name, readers.read("table", name, {"table": path}, given)
    if options.name or given:
        where = "--name" if options.name else "--columns, --scale"
        raise ConfigError(f"{options.dataset} is no file", where=where, expected="a file of yours")
    name, params = options.dataset, completed(_params())
    own = {**_chosen_files(params), **(params.get("own_data") or {})}
    if name in own:
        kept = {key: own[name][key] for key in ("columns", "scale") if key in own[name]}
        return name, readers.read("table", name, {"table": Path(own[name]["file"])}, kept)
    challenge = (params.get("challenges") or {}).get(name, {})
    if "comperdial" in challenge:
        columns = {"columns": params["comperdial"]["columns"]}
        return name, readers.read("comperdial", name, published_files(challenge["comperdial"]), columns)
    catalogue = load_catalogue(params.get("catalogue", "data/sources.yaml"))
    if name not in catalogue.datasets:
        raise UnknownNameError("dataset", name, [*own, *catalogue.datasets])
    entry = catalogue.dataset(name)
    return name, readers.read(entry.reader, name, sources.require_all(entry.files), params.get(entry.reader, {}))


def _params() -> Mapping[str, Any]:
    from comperdial.config import load_yaml
    from comperdial.config.studies import params_file

    path = params_file()
    return load_yaml(path) if path.is_file() else {}


def _taken() -> set[str]:
    """Return the names of challenges and of the catalogue's data sets."""
    from comperdial.data.catalogue import load_catalogue

    params = _params()
    catalogue = Path(params.get("catalogue", "data/sources.yaml"))
    return {*(params.get("challenges") or {}), *(load_catalogue(catalogue).datasets if catalogue.is_file() else ())}


def _chosen_files(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the files that `datasets` names, by the data sets' names."""
    from comperdial.selection import file_name

    return {
        file_name(path): {"file": path} for path in params.get("datasets") or [] if Path(path).suffix in TABLE_SUFFIXES
    }


def _notebook(options: argparse.Namespace) -> None:
    from comperdial.core.files import write_text
    from comperdial.report.notebook import execute

    for name in ("dataset", "source", "target"):
        os.environ[f"COMPERDIAL_{name.upper()}"] = getattr(options, name)
    write_text(options.output, execute(options.notebook))


def _page(options: argparse.Namespace) -> None:
    from comperdial.core.files import write_text
    from comperdial.report.page import page

    write_text(options.output, page(options.dataset, options.output))


def _summary(options: argparse.Namespace) -> None:
    from comperdial import schema
    from comperdial.report import summary
    from comperdial.report.about import About

    results = Path("results", options.dataset)
    about = About.read([results / "about.json"])
    found = schema.read(results / "correlations.parquet", "correlations")
    target = about.dimension(options.dataset, found["target"])
    summary.summarise(found, target, options.output, simulated=about.simulated)


def _pack(_: argparse.Namespace) -> None:
    from comperdial.config import records

    print(f"{records.pack()}: the records of this folder's results")
