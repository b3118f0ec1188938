"""The jobs of the DAG: what there is to make, and the making of it."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from comperdial.core.artifact import ARTIFACTS, Artifact
from comperdial.core.errors import ConfigError

# Where artifacts are declared.
_ROOMS = ("jobs", "report", "studies")


def discover() -> dict[str, Artifact]:
    """Import every module that declares artifacts, and return these by name."""
    for room in _ROOMS:
        package = importlib.import_module(f"comperdial.{room}")
        folder = Path(str(package.__file__)).parent
        for path in sorted(folder.rglob("*.py")):
            # Others are not imported to see whether they do: most need libraries that planning does not.
            if "from comperdial.core.artifact import" in path.read_text(encoding="utf-8") and path != Path(__file__):
                name = ".".join(path.relative_to(folder).with_suffix("").parts)
                importlib.import_module(f"{package.__name__}.{name}")
    return ARTIFACTS


def do(job: Mapping[str, Any]) -> None:
    """Make what a job says.

    Parameters
    ----------
    job
        As :meth:`Jobs.told` writes it.

    Raises
    ------
    ConfigError
        When it names no artifact of this package, or not what that takes.
    """
    for key, kind in {"make": str, "inputs": dict, "outputs": dict, "settings": dict}.items():
        if not isinstance(job.get(key), kind):
            raise ConfigError(f"no {key!r}", **_WRONG)
    module = job["make"].partition(":")[0]
    if module.partition(".")[0] in _ROOMS:
        try:
            importlib.import_module(f"comperdial.{module}")
        except ModuleNotFoundError as error:
            if not str(error.name).startswith("comperdial."):
                raise
    if job["make"] not in ARTIFACTS:
        raise ConfigError(f"no artifact {job['make']!r}", **_WRONG)
    artifact = ARTIFACTS[job["make"]]
    _check(artifact, job)
    inputs = {name: _paths(value) for name, value in job["inputs"].items()}
    if artifact.kind == "files":
        outputs = {name: Path(path) for name, path in job["outputs"].items()}
        artifact.run(outputs=outputs, **inputs, **job["settings"])
        return
    from comperdial.report.rendering import render

    render(artifact, job, inputs)


_WRONG = {"where": "the job's JSON", "expected": "a job as the workflow writes it"}


def _check(artifact: Artifact, job: Mapping[str, Any]) -> None:
    """Refuse a job whose files or settings are not the artifact's."""
    if {*job["outputs"]} != {*artifact.outputs}:
        raise ConfigError(f"{job['make']}: outputs {', '.join(job['outputs']) or 'none'}", **_WRONG)
    for files in ("inputs", "outputs"):
        for name, value in job[files].items():
            if not all(isinstance(path, str) for path in (value if isinstance(value, list) else [value])):
                raise ConfigError(f"{job['make']}: {files[:-1]} {name!r} is no path", **_WRONG)
    takes = {name: one for name, one in artifact.parameters.items() if name != "outputs" or artifact.kind != "files"}
    said = {*job["inputs"], *job["settings"]}
    if any(one.kind is one.VAR_KEYWORD for one in takes.values()):
        return
    needed = {name for name, one in takes.items() if one.default is one.empty}
    if wrong := sorted((said - takes.keys()) | (needed - said)):
        what = "no" if wrong[0] in needed else "unknown"
        raise ConfigError(f"{job['make']}: {what} {wrong[0]!r}", **_WRONG)


def _paths(value: str | list[str]) -> Path | list[Path]:
    return Path(value) if isinstance(value, str) else [Path(path) for path in value]
