"""What Snakemake asks: which files can be made, what each is made of, and what its job is told.

A job is told one canonical JSON of the settings that it uses, its code's hash and its libraries' versions included: Snakemake
makes a file again when its inputs or that JSON change. ``comperdial do`` takes the same JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from comperdial.config.checking import Lines
from comperdial.config.parameters import read_parameters
from comperdial.config.registry import completed
from comperdial.core.artifact import Artifact
from comperdial.core.closure import code_version
from comperdial.core.errors import ConfigError, UnknownNameError
from comperdial.core.files import sha256
from comperdial.jobs import discover
from comperdial.jobs.plan import Plan
from comperdial.studies import ALONE


class Jobs:
    """The jobs of a plan.

    Parameters
    ----------
    config
        ``params.yaml`` as Snakemake has it.
    lines
        Where the lines of settings are looked up, for messages.

    Raises
    ------
    ConfigError
        As :func:`~comperdial.config.parameters.read_parameters` and :class:`Plan`.
    """

    def __init__(self, config: Mapping[str, Any], *, lines: Lines | None = None) -> None:
        read_parameters(config, lines=lines)
        self.plan = Plan(completed(config), lines)
        found = list(discover().values())
        # Rules name files' makers by their functions; what is rendered goes by its path.
        self.artifacts = {artifact.make.__name__: artifact for artifact in found if artifact.kind == "files"}
        self.rendered = [artifact for artifact in found if artifact.kind != "files"]
        self._hashes: dict[str, str] = {}
        self._check_outputs()

    @cached_property
    def stems(self) -> dict[str, tuple[Artifact, Mapping[str, str]]]:
        """Each table, figure and page that can be made by its path without suffix: its declaration and its names."""
        found: dict[str, tuple[Artifact, Mapping[str, str]]] = {}
        for artifact in self.rendered:
            for names in self._names_of(artifact):
                found[artifact.outputs["stem"].format(**names)] = (artifact, names)
        return found

    def targets(self, *, category: str | None = None, study: str | None = None) -> list[str]:
        """Return the tables, figures and pages of a category or a study; of neither, what `snakemake` alone makes."""
        return [
            stem + artifact.suffix
            for stem, (artifact, names) in self.stems.items()
            if not artifact.on_request(self.plan, **names)
            and (artifact.study == study if study else {*self._shown(artifact, names)} <= {*self.plan.chosen})
            and (category is None or artifact.category == category)
        ]

    def _shown(self, artifact: Artifact, names: Mapping[str, str]) -> Iterable[str]:
        """Return the data sets that an artifact shows."""
        if artifact.datasets:
            return artifact.datasets(self.plan, **names)
        if "dataset" in names and artifact.study != ALONE:
            return [names["dataset"]]
        # A study that scores by itself is made whole, or when it is asked for.
        return self.plan.config["studies"].get(artifact.study, {}).get("datasets", [])

    @property
    def studies(self) -> list[str]:
        """The studies that have something to show, by name."""
        return sorted({artifact.study for artifact in self.rendered if artifact.study})

    def _names_of(self, artifact: Artifact) -> Iterable[Mapping[str, str]]:
        """Return the names of what can be made of an artifact."""
        try:
            return artifact.of(self.plan)
        except KeyError:
            where = f"src/comperdial/studies/{artifact.study}/study.yaml"
            for name in self.plan.config["studies"].get(artifact.study, {}).get("datasets", []):
                if name not in self.plan.names:
                    raise UnknownNameError("dataset", name, self.plan.names, where=f"{where}, datasets") from None
            raise

    def _check_outputs(self) -> None:
        """Refuse names of data sets by which two results would be one file: ``x`` and ``x_ceilings``."""
        seen: set[str] = set()
        for artifact in [*self.artifacts.values(), *self.rendered]:
            for names in self._names_of(artifact):
                for pattern in artifact.outputs.values():
                    if (path := f"{artifact.kind} {pattern.format(**names)}") in seen:
                        raise ConfigError(
                            f"two results have the name {path.partition(' ')[2]}",
                            where="params.yaml",
                            expected="names of data sets that no other result has",
                            hint=f"Rename {' or '.join(map(str, names.values()))}",
                        )
                    seen.add(path)

    # What rules are made of

    def constraints(self, artifact: Artifact) -> dict[str, str]:
        """Return the constraints of a rule's wildcards: what can be made and nothing else."""
        found: dict[str, dict[str, None]] = {wildcard: {} for wildcard in artifact.wildcards}
        for names in artifact.of(self.plan):
            for wildcard in found:
                found[wildcard][names[wildcard]] = None
        return {wildcard: one_of(values) for wildcard, values in found.items()}

    def inputs(self, artifact: Artifact) -> Callable[[Any], dict[str, Any]]:
        """Return the input function of a rule."""
        return lambda wildcards: dict(artifact.inputs(self.plan, **_names(artifact, wildcards)))

    def job(self, artifact: Artifact) -> Callable[[Any], str]:
        """Return the function that says what a rule's job is told."""
        return lambda wildcards: self.told(artifact, _names(artifact, wildcards))

    def stems_of(self, kind: str) -> str:
        """Return the constraint of the wildcard of a rule that renders: all of a kind, below results."""
        stems = (stem for stem, (artifact, _) in self.stems.items() if artifact.kind == kind)
        return one_of(stem.removeprefix("results/") for stem in stems)

    def inputs_of(self, stem: str) -> dict[str, Any]:
        """Return what a table, figure or page is made of."""
        artifact, names = self.stems[stem]
        return dict(artifact.inputs(self.plan, **names))

    def job_of(self, stem: str) -> str:
        """Return what the job of a table, figure or page is told."""
        return self.told(*self.stems[stem])

    def caption_of(self, stem: str) -> str:
        """Return what the report says of a table, figure or page, in which Snakemake looks for reStructuredText."""
        artifact, names = self.stems[stem]
        return re.sub(r"([!-/:-@[-`{-~])", r"\\\1", artifact.caption(self.plan, **names))

    def category_of(self, stem: str) -> str:
        """Return the place of a table, figure or page in the report."""
        return self.stems[stem][0].category

    def told(self, artifact: Artifact, names: Mapping[str, str]) -> str:
        """Return the canonical JSON of one job."""
        job = {
            "make": artifact.name,
            "inputs": artifact.inputs(self.plan, **names),
            "outputs": {name: pattern.format(**names) for name, pattern in artifact.outputs.items()},
            "settings": artifact.settings(self.plan, **names),
            "code": code_version(
                artifact.name,
                *artifact.code(self.plan, **names),
                *([] if artifact.kind == "files" else [f"report.rendering:{artifact.kind}"]),
            ),
            "libraries": {name: version(name) for name in artifact.libraries},
        }
        # Snakemake looks at times first: a file that an older one replaced (`cp -p`, `mv`, `tar x`) would pass for unchanged.
        if content := {path: self._sha256(path) for path in _flat(job["inputs"]) if self._is_own(path)}:
            job["content"] = content
        return json.dumps(job, sort_keys=True, separators=(",", ":"))

    def _is_own(self, path: str) -> bool:
        """Return whether an input is a file that no job makes."""
        made = {path, str(Path(path).with_suffix(""))} & self._outputs
        return not made and Path(path).is_file()

    @cached_property
    def _outputs(self) -> frozenset[str]:
        """All that jobs can make; of a table, figure or page its path without suffix."""
        return frozenset(
            pattern.format(**names)
            for artifact in [*self.artifacts.values(), *self.rendered]
            for names in self._names_of(artifact)
            for pattern in artifact.outputs.values()
        )

    def _sha256(self, path: str) -> str:
        """Return the hash of a file's content, which is read once while the workflow is planned."""
        if path not in self._hashes:
            self._hashes[path] = sha256(path)
        return self._hashes[path]


def _flat(value: Any) -> Iterator[str]:  # noqa: ANN401
    """Yield the paths among the inputs of a job."""
    if isinstance(value, Mapping):
        value = value.values()
    if isinstance(value, str):
        yield value
    elif value is not None:
        for part in value:
            yield from _flat(part)


def one_of(names: Iterable[str]) -> str:
    """Return the constraint of a wildcard: one of these names and nothing else."""
    return "|".join(map(re.escape, dict.fromkeys(names))) or "(?!)"


def _names(artifact: Artifact, wildcards: Any) -> dict[str, str]:  # noqa: ANN401 - Snakemake's
    return {name: getattr(wildcards, name) for name in artifact.wildcards}
