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
        When it names no artifact of this package.
    """
    module = str(job["make"]).partition(":")[0]
    if module.partition(".")[0] in _ROOMS:
        importlib.import_module(f"comperdial.{module}")
    if job["make"] not in ARTIFACTS:
        raise ConfigError(f"no artifact {job['make']!r}", expected="a job as the workflow writes it")
    artifact = ARTIFACTS[job["make"]]
    inputs = {name: _paths(value) for name, value in job["inputs"].items()}
    if artifact.kind == "files":
        outputs = {name: Path(path) for name, path in job["outputs"].items()}
        artifact.make(outputs=outputs, **inputs, **job["settings"])
        return
    from comperdial.report.rendering import render

    render(artifact, job, inputs)


def _paths(value: str | list[str]) -> Path | list[Path]:
    return Path(value) if isinstance(value, str) else [Path(path) for path in value]
