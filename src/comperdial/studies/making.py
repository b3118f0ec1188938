"""The last step of every table and figure: expand its inputs, call its function, write all forms."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from comperdial.config.studies import DATASET, entry_of, inputs_of, read_study
from comperdial.core.errors import ConfigError, FileError
from comperdial.core.files import read_json

DEFAULT = "correlations"
"""The function of a table that names none."""


def make(kind: str, study: str, name: str, output: str | Path, *, dataset: str | None = None) -> None:
    """Make a table or a figure.

    Parameters
    ----------
    kind
        ``table`` or ``figure``.
    study, name
        The study, and the table's or figure's name in its ``study.yaml``; ``dataset``: what every data set has.
    output
        The files' common name, without suffix.
    dataset
        The data set, where ``study`` is ``dataset``.

    Raises
    ------
    UnknownNameError
        When there is no such study, table or figure.
    ConfigError
        When ``study`` is ``dataset``, and there is no data set.
    FileError
        When a file that it is made of is missing.
    """
    if study == DATASET and not dataset:
        raise ConfigError("no --dataset", where=f"{kind} {name}", expected="the data set that it is made of")
    spec = read_study(study)
    entry = entry_of(spec, kind, name, where=f"study {study}")
    datasets = [dataset] if dataset else list(entry.get("datasets") or spec.get("datasets") or [])
    inputs = {key: [_existing(path) for path in paths] for key, paths in inputs_of(entry, datasets, _names_of).items()}
    function = _function(study, kind, entry)
    context = {**spec, "name": study, "entry": {"name": name, **entry}, "datasets": datasets}
    from comperdial.report import writing

    (writing.table if kind == "table" else writing.figure)(function, inputs, context, output)


def _names_of(dataset: str, what: str) -> list[str]:
    """Return what a data set has several of, from its ``about.json``."""
    about = read_json(_existing(f"results/{dataset}/about.json"))
    return list(
        {"scorer": about["scorers"], "judge": about["judged"], "recorded_judge": about["recorded_judges"]}[what]
    )


def _existing(path: str) -> Path:
    if not Path(path).is_file():
        raise FileError("no such file", where=path, hint="Make it with Snakemake, or see docs/workflow.md")
    return Path(path)


def _function(study: str, kind: str, entry: Mapping[str, Any]) -> Any:  # noqa: ANN401
    of, _, name = str(entry.get("function", DEFAULT)).rpartition(".")
    modules = ["comperdial.report.correlations"] if name == DEFAULT and kind == "table" and study != DATASET else []
    of_dataset = f"comperdial.report.{'dataset' if kind == 'table' else 'plots.drawn'}"
    modules.append(of_dataset if study == DATASET and not of else f"comperdial.studies.{of or study}")
    for module in modules:
        try:
            found = importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
            continue
        if hasattr(found, name):
            return getattr(found, name)
    raise ConfigError(f"no function {name!r}", where=f"study {study}", expected=f"one of {', '.join(modules)}")
