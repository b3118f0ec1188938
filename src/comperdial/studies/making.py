"""The last step of every table and figure: expand its inputs, call its function, write all formats."""

from __future__ import annotations

import importlib
import textwrap
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial.config.studies import DATASET, entry_of, function_of, inputs_of, read_study
from comperdial.core.errors import ConfigError, FileError, NothingToShowError
from comperdial.core.files import read_json
from comperdial.report import render
from comperdial.report.about import About, Inputs, Study

_NAMES = {"scorer": "scorers", "judge": "judged", "recorded_judge": "recorded_judges"}


def make(kind: str, study: str, name: str, output: str | Path, *, dataset: str | None = None) -> None:
    """Make a table or a figure of a study, or a note that there is nothing to show.

    ``study`` is ``dataset`` for those that every data set has, which then requires ``dataset``. ``output`` is the files' common
    name, without suffix. Raises UnknownNameError if the study, table or figure does not exist, ConfigError if no data set is
    given or the entry names no function, FileError if an input file is missing.
    """
    if study == DATASET and not dataset:
        raise ConfigError("no --dataset", where=f"{kind} {name}", expected="the data set that it is made of")
    spec = read_study(study)
    entry = entry_of(spec, kind, name, where=f"study {study}")
    datasets = [dataset] if dataset else list(entry.get("datasets") or spec.get("datasets") or [])
    inputs = {key: [_existing(path) for path in paths] for key, paths in inputs_of(entry, datasets, _names_of).items()}
    context = {**spec, "name": study, "entry": {"name": name, **entry}, "datasets": datasets}
    function = _function(study, kind, entry)
    (write_table if kind == "table" else write_figure)(function, inputs, context, output)


def write_table(function: Any, inputs: Inputs, study: Study, stem: str | Path) -> None:  # noqa: ANN401
    """Write a function's table as CSV, Markdown, LaTeX and HTML."""
    try:
        made = function(inputs, study)
    except NothingToShowError as error:
        title, simulated = _about(inputs, study)
        made = render.nothing(title, str(error), simulated=simulated)
    render.write(made, stem)


def write_figure(function: Any, inputs: Inputs, study: Study, stem: str | Path) -> None:  # noqa: ANN401
    """Write a function's figure as PNG, SVG and PDF, and its numbers as CSV."""
    from comperdial.report.plots import style

    title, simulated = _about(inputs, study)
    try:
        drawn, frame = function(inputs, study)
    except NothingToShowError as error:
        frame = pd.DataFrame({"note": [f"Nothing to show: {error}"]})
        with style.drawing():
            drawn, axes = style.figure_and_axes(1, 1, (7.0, 0.8))
            axes[0, 0].set_axis_off()
            axes[0, 0].text(0.0, 0.5, textwrap.fill(frame["note"][0], 110), va="center", parse_math=False)
            style.titled(drawn, "Nothing to show", title, "", simulated=simulated)
    style.save(drawn, frame, stem, simulated=simulated)


def _about(inputs: Inputs, study: Study) -> tuple[str, bool]:
    about = About.read(inputs.get("about", ()))
    return study.get("title") or ", ".join(about.titles.values()) or study["entry"]["name"], about.simulated


def _names_of(dataset: str, what: str) -> list[str]:
    """Return a data set's scorers, judges or recorded judges, from its ``about.json``."""
    return list(read_json(_existing(f"results/{dataset}/about.json"))[_NAMES[what]])


def _existing(path: str) -> Path:
    if not Path(path).is_file():
        raise FileError("no such file", where=path, hint="Make it with Snakemake, or see docs/workflow.md")
    return Path(path)


def _function(study: str, kind: str, entry: dict[str, Any]) -> Any:  # noqa: ANN401
    """Import the function that an entry names."""
    module, name = function_of(study, kind, entry)
    result = getattr(importlib.import_module(f"comperdial.{module}"), name, None)
    if result is None:
        raise ConfigError(
            f"no function {name!r}", where=f"study {study}", expected=f"a function of comperdial.{module}"
        )
    return result
