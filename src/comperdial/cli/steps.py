"""Commands that the workflow's rules run, and a person can type: read tables, make tables, figures and pages."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from comperdial.cli import common
from comperdial.cli.common import READ, Commands, add_command
from comperdial.core.errors import ConfigError, UnknownNameError
from comperdial.core.files import TABLE_SUFFIXES, form_path, write_json, write_text


def add_commands(commands: Commands) -> None:
    """Add this module's commands."""
    html: Any = {"type": common.output_file, "required": True, "help": "a .html file"}
    folder: Any = {"type": common.output_folder, "metavar": "FOLDER"}

    command = add_command(commands, "read", _read, "read a data set, or one file of your own, into tables")
    add = command.add_argument
    add("dataset", help="a name of params.yaml or the catalogue, or a CSV, JSONL or Parquet file")
    add("--name", help="what to call the data set of a file; default: the file's name without suffix")
    add("--output", **folder, help="default: data/tables/NAME")
    common.add_rated_file(command)

    for kind in ("table", "figure"):
        about = f"make a {kind} of a study, from results that are here"
        add = add_command(commands, kind, partial(_make, kind), about).add_argument
        add("study", help="a folder of studies/; `dataset`: what every data set has")
        add("name", help=f"a {kind} in its study.yaml")
        add("--dataset", help="with `dataset`: which one")
        add("--output", type=common.output_stem, required=True, help="the files' common name; a suffix is not needed")

    add = add_command(commands, "describe", _describe, "write a data set's configuration, for its tables").add_argument
    add("dataset")
    add("--params", **READ, help="default: params.yaml")
    add("--output", type=common.output_file, required=True, help="a .json file")

    add = add_command(commands, "notebook", _notebook, "execute a notebook, and write its page").add_argument
    add("notebook", type=Path, help="a jupytext file of notebooks/")
    add("--dataset", required=True)
    add("--source", default="human", help="whose ratings (default: human)")
    add("--target", default="Overall", help="the rated dimension (default: Overall)")
    add("--output", **html)

    add = add_command(commands, "page", _page, "make the page of a data set, from results that are here").add_argument
    add("dataset")
    add("--output", **html)

    add = add_command(commands, "summary", _summary, "write the numbers that DVC compares between commits").add_argument
    add("dataset")
    add("--output", **folder, required=True)

    add_command(commands, "pack-records", _pack, "pack Snakemake's records for DVC (`make publish` does it)")


def _read(options: argparse.Namespace) -> None:
    from comperdial import schema

    name, tables = _tables(options)
    folder = options.output or Path("data/tables") / name
    # All tables are read and checked before the first is written.
    for table, frame in tables.items():
        schema.write(folder / f"{table}.parquet", frame, table)


def _tables(options: argparse.Namespace) -> tuple[str, Mapping[str, Any]]:
    """Return the name and the tables of a user's file, or of a data set of params.yaml or the catalogue."""
    from comperdial.config import load_yaml
    from comperdial.config.studies import params_file
    from comperdial.data import readers, sources
    from comperdial.data.catalogue import load_catalogue
    from comperdial.data.export import published_files
    from comperdial.selection import file_name

    params = load_yaml(params_file()) if params_file().is_file() else {}
    challenges, catalogue = params.get("challenges") or {}, Path(params.get("catalogue", "data/sources.yaml"))
    given, path, name = common.rated_file_options(options), Path(options.dataset), options.dataset
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
    files = [Path(file) for file in params.get("datasets") or [] if Path(file).suffix in TABLE_SUFFIXES]
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


def _make(kind: str, options: argparse.Namespace) -> None:
    from comperdial.studies.making import make

    make(kind, options.study, options.name, form_path(options.output, ""), dataset=options.dataset)


def _describe(options: argparse.Namespace) -> None:
    from comperdial.selection import Selection, describe

    write_json(options.output, describe(Selection.read(options.params), options.dataset))


def _notebook(options: argparse.Namespace) -> None:
    from comperdial.report.notebook import execute

    for name in ("dataset", "source", "target"):
        os.environ[f"COMPERDIAL_{name.upper()}"] = getattr(options, name)
    write_text(options.output, execute(options.notebook))


def _page(options: argparse.Namespace) -> None:
    from comperdial.report.page import page

    write_text(options.output, page(options.dataset, options.output))


def _summary(options: argparse.Namespace) -> None:
    from comperdial import schema
    from comperdial.report import summary
    from comperdial.report.about import About

    results = Path("results", options.dataset)
    about = About.read([results / "about.json"])
    correlations = schema.read(results / "correlations.parquet", "correlations")
    target = about.dimension(options.dataset, correlations["target"])
    summary.summarise(correlations, target, options.output, simulated=about.simulated)


def _pack(_: argparse.Namespace) -> None:
    from comperdial.config import records

    print(f"{records.pack()}: the records of this folder's results")
