"""The command that makes a table or figure of somebody's own files, and the one that writes those of docs/results.md."""

from __future__ import annotations

import argparse
import glob
import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comperdial.cli.common import add_catalogue, output_file
from comperdial.config import parse_yaml
from comperdial.core.errors import ConfigError, UnknownNameError
from comperdial.core.files import check_input, form_path, read_table

if TYPE_CHECKING:
    from comperdial.core.artifact import Artifact


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's commands."""
    command = commands.add_parser(
        "render",
        help="make a table or figure of your own files, as the workflow makes it",
        description="Without NAME: lists what can be made, and what of.",
    )
    command.add_argument("what", nargs="?", metavar="NAME", help="correlations, heatmap, systems, …")
    command.add_argument(
        "said", nargs="*", metavar="KEY=VALUE", help="files and settings; several as [a,b], files also as *.parquet"
    )
    command.add_argument("--output", type=Path, help="the files' common name; a suffix is not needed")
    command.set_defaults(run=_render)
    command = commands.add_parser("readme", help="write the table of USR or of local metrics into a page")
    command.add_argument("table", type=Path, help="results/studies/usr/tables/usr.csv or the like of local_metrics")
    command.add_argument("--output", type=output_file, required=True, help="the page")
    add_catalogue(command)
    command.set_defaults(run=_readme)


def _known() -> dict[str, Any]:
    """Return tables and figures by the name to type: a function's, after its study's where there is one."""
    from comperdial.jobs import discover

    found = [artifact for artifact in discover().values() if artifact.kind in ("table", "figure")]
    # One that hands all it is told on to another says nothing of what it takes.
    found = [artifact for artifact in found if "said" not in artifact.parameters]
    return {f"{artifact.study}/{artifact.rule}" if artifact.study else artifact.rule: artifact for artifact in found}


def _render(options: argparse.Namespace) -> None:
    known = _known()
    if options.what is None:
        for name, artifact in known.items():
            print(f"{name}: {artifact.about}")
            print("    " + " ".join(_spelled(parameter) for parameter in _parameters(artifact).values()))
        return
    where = f"comperdial render {options.what}"
    if options.what not in known:
        raise UnknownNameError("table or figure", options.what, known, where="comperdial render")
    if options.output is None:
        raise ConfigError("no --output", where=where, expected="the files' common name, without suffix")
    from comperdial.report.rendering import render

    artifact = known[options.what]
    parameters = _parameters(artifact)
    said = {}
    for text in options.said:
        name, equals, said[name] = text.partition("=")
        if not equals:
            raise ConfigError(f"{text!r}", where=where, expected="KEY=VALUE")
        if name not in parameters:
            raise UnknownNameError("key", name, parameters, where=where)
    inputs: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    for name, parameter in parameters.items():
        kind = str(parameter.annotation)
        if name in said:
            value = _value(said[name], kind, f"{where}, {name}")
        elif (value := _default(parameter)) is _REQUIRED:
            raise ConfigError(f"no {name}", where=where, expected=f"{name}=…")
        (inputs if "Path" in kind and value is not None else settings)[name] = value
    written = render(artifact, {"outputs": {"stem": str(form_path(options.output, ""))}, "settings": settings}, inputs)
    print(*written, sep="\n")


# Where neither the function nor the kind of value says what it is if nobody does: as other commands have it.
_DEFAULTS = {"source": "human", "main_target": "Overall", "seed": 2024, "resamples": 1000, "coefficient": "spearman"}
_REQUIRED = object()


def _parameters(artifact: Artifact) -> dict[str, inspect.Parameter]:
    """Return what can be said, by name; what only passes by, as ``**_``, cannot."""
    return {name: one for name, one in artifact.parameters.items() if one.kind is not one.VAR_KEYWORD}


def _default(parameter: inspect.Parameter) -> Any:  # noqa: ANN401
    kind = str(parameter.annotation)
    if parameter.name in _DEFAULTS:
        return _DEFAULTS[parameter.name]
    if parameter.default is not parameter.empty:
        return list(parameter.default) if isinstance(parameter.default, tuple) else parameter.default
    return {} if kind.startswith("Mapping") else [] if kind == "Sequence[str]" else _REQUIRED


def _spelled(parameter: inspect.Parameter) -> str:
    """Return a key as the list shows it: in brackets if it need not be given."""
    return f"{parameter.name}=" if _default(parameter) is _REQUIRED else f"[{parameter.name}=]"


def _value(text: str, kind: str, where: str) -> Any:  # noqa: ANN401
    """Return a value as the function takes it: a path, several, a number, a text, or what YAML says."""
    if kind in ("str", "str | None"):
        return text
    if kind in ("Path", "Path | None"):
        return check_input(Path(text))
    value = parse_yaml(text, where)
    if kind.startswith("Sequence") and not isinstance(value, list):
        value = [value]
    if kind == "Sequence[Path]":
        return [check_input(Path(path)) for one in value for path in sorted(glob.glob(str(one))) or [str(one)]]  # noqa: PTH207
    wanted = {"int": int, "Mapping": dict}.get(kind.partition("[")[0], object)
    if not isinstance(value, wanted):
        raise ConfigError(repr(text), where=where, expected="a whole number" if wanted is int else "{a: b}")
    return value


def _readme(options: argparse.Namespace) -> None:
    from comperdial.data.catalogue import load_catalogue
    from comperdial.report import readme
    from comperdial.report.inputs import read_reported

    titles = {name: dataset.title for name, dataset in load_catalogue(options.catalogue).datasets.items()}
    texts = ("level", "label", "dataset", "coefficient")
    if "seconds" in read_table(options.table):
        found = read_reported(options.table, (*texts, "figure"), ("value", "seconds", "usd"))
        readme.update_local(options.output, found, titles)
        return
    found = read_reported(options.table, (*texts, "reported_starred"), ("ours", "p", "reported"))
    readme.update(options.output, found, titles)
