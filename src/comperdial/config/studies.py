"""Studies: ``studies/NAME/study.yaml`` lists what a paper needs, and the tables and figures to make."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from comperdial.config import load_yaml
from comperdial.config.checking import Lines, checked
from comperdial.config.parameters import Study
from comperdial.config.registry import completed
from comperdial.core.errors import ConfigError, UnknownNameError

FOLDER = Path("studies")
DATASET = "dataset"
"""Pseudo study name for the tables and figures that every data set has."""
DATASET_FILE = Path(__file__).parents[1] / "report" / "dataset.yaml"
"""The tables and figures of every data set, in the format of a study."""
KINDS = {"table": "tables", "figure": "figures"}
DEFAULT = "default"
PARAMS = Path("params.yaml")
VARIABLE = "COMPERDIAL_PARAMS"
"""Environment variable with the path of the ``params.yaml`` that the workflow merged with its command line."""

Entry = Mapping[str, Any]


def params_file(path: str | Path | None = None) -> Path:
    """Return the ``params.yaml`` to read: the given one, that of the environment variable, or the one in this folder."""
    return Path(path or os.environ.get(VARIABLE) or PARAMS)


def study_files() -> list[Path]:
    """Return the files of all studies, sorted by name."""
    return sorted(FOLDER.glob("*/study.yaml"))


def read_studies(own: Mapping[str, Any] | None = None) -> dict[str, dict[str, Any]]:
    """Return all studies by name; ``own``, the section ``studies`` of ``params.yaml``, overrides single settings.

    Raises
    ------
    UnknownNameError
        If a study or setting does not exist.
    """
    studies = {}
    for path in study_files():
        studies[path.parent.name] = load_yaml(path)
        checked(Study, studies[path.parent.name], lines=Lines(path))
    for name, changed in (own or {}).items():
        if name not in studies:
            raise UnknownNameError("study", name, studies, where="params.yaml, studies")
        studies[name] = {**studies[name], **changed}
        checked(Study, studies[name], where=f"study {name}, changed by params.yaml")
    return studies


def read_study(name: str) -> dict[str, Any]:
    """Return a study with the overrides of ``params.yaml``; ``dataset`` gives the tables and figures of every data set."""
    if name == DATASET:
        return load_yaml(DATASET_FILE)
    own = load_yaml(params_file()).get("studies") if params_file().is_file() else None
    known = read_studies(own)
    if name not in known:
        raise UnknownNameError("study", name, known)
    return known[name]


def entry_of(study: Entry, kind: str, name: str, *, where: str) -> dict[str, Any]:
    """Return a study's entry for a table or figure."""
    known = study.get(KINDS[kind]) or {}
    if name not in known:
        raise UnknownNameError(kind, name, known, where=where)
    return dict(known[name])


def function_of(study: str, kind: str, entry: dict[str, Any]) -> tuple[str, str]:
    """Return the module, below ``comperdial``, and the name of the function of a table or a figure.

    ``name`` is a function of the study's own module, ``module.name`` one of another study's.
    """
    module, _, name = str(entry.get("function", "correlations")).rpartition(".")
    if study == DATASET and not module:
        return ("report.dataset" if kind == "table" else "report.plots.dataset"), name
    return ("report.correlations" if name == "correlations" else f"studies.{module or study}"), name


def inputs_of(
    entry: Entry, datasets: Iterable[str], names_of: Callable[[str, str], Iterable[str]]
) -> dict[str, list[str]]:
    """Return the input files of a table or figure, keyed by the names that its function uses.

    Patterns in ``inputs`` contain ``{dataset}``, and ``{scorer}``, ``{judge}`` or ``{recorded_judge}``, each of which
    expands to everything that ``names_of`` returns for the data set.
    """
    inputs = {}
    for name, patterns in (entry.get("inputs") or {}).items():
        files: dict[str, None] = {}
        for pattern in [patterns] if isinstance(patterns, str) else patterns:
            several = [key for key in ("scorer", "judge", "recorded_judge") if f"{{{key}}}" in pattern]
            for dataset in datasets if "{dataset}" in pattern else [""]:
                for value in names_of(dataset, several[0]) if several else [""]:
                    files[pattern.format(dataset=dataset, **dict.fromkeys(several, value))] = None
        inputs[name] = list(files)
    return inputs


def shown_outputs(study: Any) -> Iterator[str]:  # noqa: ANN401
    """Yield each METRIC:OUTPUT in the rows of a study's tables and figures, and in its planned contrasts."""
    if isinstance(study, Mapping):
        if isinstance(study.get("metric"), str) and isinstance(study.get("output"), str):
            yield f"{study['metric']}:{study['output']}"
        elif isinstance(study.get("metric"), str) and isinstance(study.get("against"), str):
            yield from (study["metric"], study["against"])
        study = [value for key, value in study.items() if key != "metrics"]
    for part in study if isinstance(study, list) else ():
        yield from shown_outputs(part)


def with_studies(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``params.yaml`` with all studies under ``studies``, and with their metrics, judges and variants added.

    Raises
    ------
    UnknownNameError
        As :func:`read_studies`, or if a study names an unknown metric.
    ConfigError
        If a name is used twice.
    """
    config = completed(config)
    own = config.get("studies") or {}
    merged: dict[str, Any] = {**config, "studies": read_studies(own), "metrics": dict(config.get("metrics") or {})}
    judging: dict[str, Any] = dict(config.get("judging") or {})
    if judging:
        # Other data sets get a study's variants only if they ask for them.
        judging["asks"] = {DEFAULT: list(judging.get("variants") or ()), **(judging.get("asks") or {})}
        merged["judging"] = judging
    general = {*merged["metrics"]}
    for name, study in merged["studies"].items():
        _add_metrics(merged["metrics"], study, name, general)
        _add(merged, study, "recorded_judges", name)
        if judging:
            _add(judging, study, "variants", name)
            # A configuration may lack the judges that a study would ask.
            known = None if name in own else config.get("judges") or {}
            judges = [judge for judge in study.get("judges") or [] if known is None or judge in known]
            for key, values in (("judges", judges), ("asks", list(study.get("variants") or ()))):
                if values:
                    judging[key] = {**judging.get(key, {})}
                    judging[key].setdefault(name, values)
    return merged


def _add_metrics(known: dict[str, Any], study: Entry, name: str, general: set[str]) -> None:
    """Add a study's metrics for its data sets: its own, and existing ones that it uses unchanged."""
    about = ("datasets", "skip", "apart", "main", "label")
    for metric, entry in (study.get("metrics") or {}).items():
        own, there = {"datasets": list(study.get("datasets") or []), **(entry or {})}, known.get(metric)
        if there is None:
            if not entry:
                raise UnknownNameError("metric", metric, known, where=f"study {name}, metrics")
            known[metric] = own
            continue
        made, other = ({key: one[key] for key in one if key not in about} for one in (own, there))
        if entry and made != other:
            raise _taken(metric, name, "metrics")
        if metric not in general or "datasets" in there:
            datasets = list(dict.fromkeys([*there.get("datasets", []), *own["datasets"]]))
            known[metric] = {**(entry or {}), **there, "datasets": datasets}


def _add(section: dict[str, Any], study: Entry, key: str, name: str) -> None:
    known, more = section.get(key) or {}, study.get(key) or {}
    if both := sorted(known.keys() & more.keys()):
        raise _taken(both[0], name, key)
    section[key] = {**known, **more}


def _taken(name: str, study: str, key: str) -> ConfigError:
    where = f"study {study}, {key}"
    return ConfigError(f"the name {name!r} is already used", where=where, expected="its own name")
