"""Commands that fetch public files, and import data and scores."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from comperdial.cli import options as o
from comperdial.core.errors import ConfigError, UnknownNameError


@o.command("sources")
def list_sources(catalogue: o.Catalogue = o.CATALOGUE) -> int:
    """List the public files: present, missing or altered.

    Exit status 1 if one is altered.
    """
    from comperdial.data import sources
    from comperdial.data.catalogue import load_catalogue

    states = set()
    for name, source in load_catalogue(catalogue).files.items():
        state, size = sources.status(source, sources.raw_path(source)), source.bytes or 0
        print(f"{state:8} {size:>10,} bytes  {name}  ({source.relative}; licence: {source.licence})")
        states.add(state)
    return int("altered" in states)


@o.command()
def fetch(
    names: Annotated[o.Names, Argument(help="Files or data sets; default: all pinned files.")] = None,
    catalogue: o.Catalogue = o.CATALOGUE,
) -> None:
    """Fetch public files from the mirror or over HTTPS, and verify them."""
    from comperdial.data import sources
    from comperdial.data.catalogue import load_catalogue, lock_path

    known = load_catalogue(catalogue)
    # By default everything pinned; a first download must be requested by name.
    for name in names or [name for name, source in known.files.items() if source.pinned]:
        dataset = known.datasets.get(name)
        for source in dataset.files.values() if dataset else [known.file(name)]:
            sources.fetch(source, sources.raw_path(source), lock_file=lock_path(catalogue))


@o.command("wordnet")
def set_up_wordnet() -> None:
    """Find WordNet for METEOR, or install it."""
    from comperdial.data import wordnet

    corpus = wordnet.set_up()
    print(f"WordNet {corpus.version} in {corpus.path} ({corpus.source})")


@o.command()
def read(
    dataset: Annotated[str, Argument(help="A data set of params.yaml or the catalogue, or your own file.")],
    name: Annotated[o.Name, Option(help="Name of the data set for your own file; default: the file's name.")] = None,
    output: Annotated[o.File, o.written("Default: data/tables/NAME.", o.output_folder)] = None,
    columns: o.Columns = None,
    scale: o.Scale = None,
    labels: o.Labels = None,
    lower_is_better: o.LowerIsBetter = None,
    sheet: o.Sheet = None,
    strip_markup: o.StripMarkup = False,
) -> None:
    """Read a data set, or a file of your own, into tables."""
    from comperdial import schema
    from comperdial.data import readers

    how = o.given(locals(), o.READING)
    name, reader, files, settings = _source(dataset, name, how, kept=output is not None)
    # Read and validate all tables before writing the first.
    for table, frame in readers.read(reader, name, files, settings).items():
        schema.write((output or Path("data/tables") / name) / f"{table}.parquet", frame, table)


def _source(
    dataset: str, name: o.Name, how: dict[str, Any], *, kept: bool
) -> tuple[str, str, Mapping[str, Path], dict[str, Any]]:
    """Return name, reader, files and reader settings of a file or a configured data set."""
    from comperdial.config import load_yaml
    from comperdial.config.studies import params_file
    from comperdial.core.files import TABLE_SUFFIXES
    from comperdial.data import sources
    from comperdial.data.catalogue import load_catalogue
    from comperdial.data.export import published_files
    from comperdial.selection import file_name

    params = load_yaml(params_file()) if params_file().is_file() else {}
    challenges, catalogue = params.get("challenges") or {}, Path(params.get("catalogue", o.CATALOGUE))
    path = Path(dataset)
    if path.suffix in TABLE_SUFFIXES or path.is_file():
        name = name or path.stem
        known = load_catalogue(catalogue).datasets if catalogue.is_file() and not kept else {}
        if not kept and name in {*challenges, *known}:
            problem = f"the data set {name!r} exists, and its tables would be replaced"
            raise ConfigError(problem, where=dataset, expected="another name: --name")
        return name, "table", {"table": path}, how
    if name or how:
        where = "--name" if name else "--columns, --scale"
        raise ConfigError(f"{dataset} is not a file", where=where, expected="your own file")
    files = [Path(file) for file in params.get("datasets") or [] if Path(file).suffix]
    own = {**{file_name(file): {"file": file} for file in files}, **(params.get("own_data") or {})}
    if dataset in own:
        settings = {key: own[dataset][key] for key in ("columns", "scale") if key in own[dataset]}
        return dataset, "table", {"table": Path(own[dataset]["file"])}, settings
    if "comperdial" in challenges.get(dataset, {}):
        folder = published_files(challenges[dataset]["comperdial"])
        return dataset, "comperdial", folder, {"columns": params["comperdial"]["columns"]}
    published = load_catalogue(catalogue)
    if dataset not in published.datasets:
        raise UnknownNameError("dataset", dataset, [*own, *published.datasets])
    entry = published.dataset(dataset)
    return dataset, entry.reader, sources.require_all(entry.files), params.get(entry.reader, {})


@o.command()
def recorded(
    folder: Annotated[Path, Argument(help="Folder of the data set's tables.")],
    name: Annotated[str, Option(help="Name of the metric in the table.")],
    format: Annotated[str, Option(help="`table`, or the name of a project-specific format (unieval).")],
    about: Annotated[str, Option(help="Who computed the scores, and how; part of the signature.")],
    output: Annotated[Path, o.written("Table `scores`: a .jsonl, .csv or .parquet file.")],
    source: Annotated[o.Name, Option(help="File of the catalogue with the scores.")] = None,
    path: Annotated[o.File, Option(help="Local file with the scores.")] = None,
    ratings: Annotated[o.File, Option(help="Table `ratings`, to check which items were rated.")] = None,
    catalogue: o.Catalogue = o.CATALOGUE,
) -> None:
    """Import scores that were computed elsewhere."""
    from comperdial import schema
    from comperdial.data import recorded, sources
    from comperdial.data.catalogue import load_catalogue

    origin = load_catalogue(catalogue).file(source) if source else path
    if origin is None or (source and path):
        raise ConfigError("no scores" if origin is None else "two files", expected="either --source or --path")
    file = origin if isinstance(origin, Path) else sources.require(origin)
    made = recorded.import_scores(
        name, folder, file, format=format, origin=recorded.origin(origin), about=about, ratings=ratings
    )
    schema.write(output, made, "scores")
