"""The command line: arguments in, library calls out."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from comperdial.errors import ComperdialError, ConfigError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``comperdial`` and return its exit status: 0, 1 for an error of the user's or the data's, 2 for usage."""
    parser = _parser()
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s: %(message)s", stream=sys.stderr)
    if not hasattr(options, "run"):
        parser.print_help()
        return 2
    try:
        status: int | None = options.run(options)
    except ComperdialError as error:
        if options.debug:
            raise
        print(f"comperdial: error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader of a pipe has seen enough; keep the interpreter from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status or 0


def _parser() -> argparse.ArgumentParser:
    from comperdial import __version__

    parser = argparse.ArgumentParser(
        prog="comperdial", description="Which automatic metric of dialogue quality agrees with people?"
    )
    parser.add_argument("--version", action="version", version=f"comperdial {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    command = commands.add_parser("metrics", help="list the metrics, their outputs and whether they can run here")
    command.set_defaults(run=_metrics)

    command = commands.add_parser("score", help="score a file of responses, or a folder of tables, with a metric")
    command.add_argument("input", type=Path, help="JSONL, CSV or Parquet with `response`, `references`, …; or a folder")
    command.add_argument("--metric", required=True, metavar="KIND", help="see `comperdial metrics`")
    command.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="an option of the metric")
    command.add_argument("--options", default="{}", metavar="JSON", help="all options as one JSON object")
    command.add_argument("--name", help="what to call the metric in the table; default: its kind")
    _output(command)
    command.set_defaults(run=_score)

    command = commands.add_parser("correlate", help="correlate scores with human ratings")
    command.add_argument("scores", type=Path, nargs="+", help="tables `scores`, as `comperdial score` writes them")
    command.add_argument("--ratings", type=Path, required=True, help="context_id, system_id, rating, …")
    command.add_argument("--source", default="human", help="whose ratings (default: human)")
    command.add_argument("--level", action="append", choices=["turn", "system"], help="default: both")
    command.add_argument("--target", action="append", help="a rated dimension; default: all")
    _output(command)
    command.set_defaults(run=_correlate)

    command = commands.add_parser("validate", help="check files against the tables' schemas")
    command.add_argument("files", type=Path, nargs="+")
    command.add_argument("--table", help="the table's name; default: the file's name without its suffix")
    command.set_defaults(run=_validate)

    command = commands.add_parser("sources", help="list the public files: present, missing or altered")
    _catalogue(command)
    command.set_defaults(run=_sources)

    command = commands.add_parser("fetch", help="fetch public files from the mirror or over HTTPS, checked")
    command.add_argument("names", nargs="*", help="names of sources or datasets; default: everything")
    _catalogue(command)
    command.set_defaults(run=_fetch)

    command = commands.add_parser("ingest", help="turn a dataset's files into tables")
    command.add_argument("dataset")
    command.add_argument("--output", type=Path, help="a folder; default: data/tables/DATASET")
    _catalogue(command)
    command.set_defaults(run=_ingest)

    command = commands.add_parser("wordnet", help="find WordNet for METEOR, or set it up")
    command.set_defaults(run=_wordnet)

    command = commands.add_parser("render", help="make a table, a figure or a notebook from results")
    _render(command.add_subparsers(title="what", metavar="WHAT", required=True))
    return parser


def _output(command: argparse.ArgumentParser) -> None:
    command.add_argument("--output", type=Path, help="a .jsonl, .csv or .parquet file; default: CSV on standard output")


def _catalogue(command: argparse.ArgumentParser) -> None:
    command.add_argument("--catalogue", type=Path, default=Path("data/sources.yaml"), help="default: data/sources.yaml")


def _render(kinds: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    for name, run, about in (
        ("usr", _render_usr, "the published USR table, ours beside theirs, with its figure"),
        ("correlations", _render_correlations, "everything computed for one dataset"),
        ("agreement", _render_agreement, "agreement between the annotators beside the published one"),
        ("summary", _render_summary, "the numbers that dvc compares between commits"),
        ("notebook", _render_notebook, "an executed notebook as HTML"),
    ):
        kind = kinds.add_parser(name, help=about)
        kind.add_argument("inputs", type=Path, nargs="+")
        kind.add_argument("--output", type=Path, required=True, help="the files' common name, without suffix")
        kind.add_argument("--figure", type=Path, help="the figure's name, without suffix")
        kind.add_argument("--datasets", nargs="+", default=[])
        kind.add_argument("--target", default="Overall", help="a rated dimension")
        kind.add_argument("--not-run", type=_json_object, default={}, metavar="JSON", help="metrics that could not run")
        kind.add_argument("--paper", type=Path, default=Path("data/paper"), help="folder of reported numbers")
        _catalogue(kind)
        kind.set_defaults(run=run)


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise argparse.ArgumentTypeError(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError("expected a JSON object")
    return value


def _metrics(_: argparse.Namespace) -> None:
    from comperdial.metrics import create, kinds

    for kind in kinds():
        metric = create(kind)
        print(f"{kind}: {', '.join(metric.outputs)}")
        print(f"    {metric.signature()}")
        if reason := metric.unavailable():
            print(f"    cannot run here: {reason}")


def _metric_options(options: argparse.Namespace) -> dict[str, Any]:
    import yaml

    found = _json_object(options.options)
    for pair in options.option:
        name, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(f"option {pair!r}", where="--option", expected="NAME=VALUE")
        found[name] = yaml.safe_load(value)
    return found


def _emit(frame: Any, output: Path | None, table: str) -> None:  # noqa: ANN401
    from comperdial import schema

    if output:
        schema.write(output, frame, table)
    else:
        frame.to_csv(sys.stdout, index=False, lineterminator="\n")


def _score(options: argparse.Namespace) -> None:
    from comperdial import scoring
    from comperdial.metrics import create

    metric = create(options.metric, **_metric_options(options))
    run = scoring.score_tables if options.input.is_dir() else scoring.score_file
    _emit(run(metric, options.name or options.metric, options.input), options.output, "scores")


def _correlate(options: argparse.Namespace) -> None:
    import pandas as pd

    from comperdial import aggregate, schema, scoring

    scores = pd.concat([schema.read(path, "scores") for path in options.scores], ignore_index=True)
    found = aggregate.correlations(
        scores,
        scoring.read_ratings(options.ratings),
        source=options.source,
        levels=options.level or aggregate.LEVELS,
        targets=options.target,
    )
    _emit(found, options.output, "correlations")


def _validate(options: argparse.Namespace) -> None:
    from comperdial import schema

    for path in options.files:
        frame = schema.read(path, options.table or path.stem)
        print(f"{path}: {len(frame)} records of table {options.table or path.stem!r}, all valid")


def _sources(options: argparse.Namespace) -> int:
    from comperdial import sources

    states = {}
    for name, source in sources.load_catalogue(options.catalogue).files.items():
        states[name] = sources.status(source, sources.raw_path(source))
        print(f"{states[name]:8} {source.bytes:>10,} bytes  {name}  ({source.relative}; licence: {source.licence})")
    return int("altered" in states.values())


def _fetch(options: argparse.Namespace) -> None:
    from comperdial import sources

    catalogue = sources.load_catalogue(options.catalogue)
    wanted = []
    for name in options.names or catalogue.files:
        dataset = catalogue.datasets.get(name)
        wanted += list(dataset.files.values()) if dataset else [catalogue.file(name)]
    for source in wanted:
        sources.fetch(source, sources.raw_path(source))


def _ingest(options: argparse.Namespace) -> None:
    from comperdial import datasets, schema, sources

    entry = sources.load_catalogue(options.catalogue).dataset(options.dataset)
    files = {role: sources.raw_path(source) for role, source in entry.files.items()}
    folder = options.output or Path("data/tables") / entry.name
    # All tables are read and checked before the first is written.
    tables = datasets.read(entry.reader, entry.name, files)
    for name, frame in tables.items():
        schema.write(folder / f"{name}.parquet", frame, name)


def _wordnet(_: argparse.Namespace) -> None:
    from comperdial import wordnet

    found = wordnet.set_up()
    print(f"WordNet {found.version} in {found.path} ({found.source})")


def _titles(options: argparse.Namespace) -> dict[str, str]:
    from comperdial.sources import load_catalogue

    return {name: dataset.title for name, dataset in load_catalogue(options.catalogue).datasets.items()}


def _render_usr(options: argparse.Namespace) -> None:
    from comperdial.files import read_table
    from comperdial.report import document, figures, tables

    frame = tables.usr_frame(
        tables.read_correlations(options.inputs),
        tables.read_reported(options.paper / "usr_correlations.csv", tables.REPORTED_COLUMNS),
        options.paper / "usr_rows.yaml",
        datasets=options.datasets,
        target=options.target,
        not_run=options.not_run,
    )
    titles = _titles(options)
    document.write(tables.usr_document(frame, titles, read_table(options.paper / "sources.csv")), options.output)
    if options.figure:
        figures.save(figures.usr_figure(frame, titles), options.figure)


def _render_correlations(options: argparse.Namespace) -> None:
    from comperdial.report import document, tables

    found = tables.read_correlations(options.inputs)
    title = _titles(options).get(found["dataset"].iloc[0], found["dataset"].iloc[0])
    document.write(tables.correlation_document(found, title, options.target, options.not_run), options.output)


def _render_agreement(options: argparse.Namespace) -> None:
    import pandas as pd

    from comperdial import aggregate, schema
    from comperdial.report import document, tables

    found = pd.concat([aggregate.agreement(schema.read(path, "turn_ratings")) for path in options.inputs])
    reported = tables.read_reported(options.paper / "usr_agreement.csv", ("dataset", "dimension", "coefficient", "value"))
    document.write(tables.agreement_document(found, reported, _titles(options)), options.output)


def _render_summary(options: argparse.Namespace) -> None:
    from comperdial.report import summary, tables

    summary.summarise(tables.read_correlations(options.inputs), options.target, options.output)


def _render_notebook(options: argparse.Namespace) -> None:
    from comperdial.report import notebook

    notebook.execute(options.inputs[0], options.output)


if __name__ == "__main__":
    sys.exit(main())
