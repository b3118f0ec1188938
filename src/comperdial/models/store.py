"""Models on this machine: find them by name or folder, identify them by checksum, and verify them before use.

:func:`find` is cheap, since a workflow calls it for every metric at every start: it only compares file sizes. :func:`verified`
reads every byte, once per process; models are loaded through it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from pydantic import BaseModel, ValidationError

from comperdial.core.errors import MissingResourceError
from comperdial.core.files import sha256
from comperdial.models import registry
from comperdial.models.registry import Entry, Pin

STORE_VARIABLE = "COMPERDIAL_MODELS"
MANIFEST = "comperdial-model.json"
# Version of the GGUF conversion; increased by changes that affect a score.
CONVERSION = "gguf conversion 1"
# The files that transformers reads; only these are in a model's digest.
_COUNTED = re.compile(
    r"(config|generation_config|tokenizer|tokenizer_config|special_tokens_map|added_tokens|vocab)\.json"
    r"|model\.safetensors\.index\.json|vocab\.txt|merges\.txt|\w[\w.-]*\.(model|safetensors)"
)


@dataclass(frozen=True)
class Model:
    """A model on this machine: name, folder, 12 hex digits of its files' checksums, and the expected files."""

    name: str
    path: Path
    digest: str
    files: Mapping[str, Pin] = field(compare=False, repr=False, default_factory=dict)


class Manifest(BaseModel):
    """Written to a model's folder by ``models fetch``: its origin and files."""

    repository: str = ""
    revision: str = ""
    files: dict[str, Pin] = {}


def home() -> Path:
    """Return the folder of fetched models: ``COMPERDIAL_MODELS``, or ``comperdial/models`` in the user's cache folder."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(os.environ.get(STORE_VARIABLE) or Path(caches, "comperdial/models"))


def find(name: str) -> Model:
    """Return a model on this machine.

    Parameters
    ----------
    name
        A name listed by ``comperdial models``, or a folder: a path with a separator or starting with . or ~, or any other
        folder with ``config.json``.

    Raises
    ------
    UnknownNameError
        If it is neither.
    MissingResourceError
        If the model is missing or incomplete, or its files differ from the recorded ones.
    """
    if _is_folder(name):
        return _own(name)
    entry = registry.entry(name)
    folder = home() / name
    if entry.ready:
        folder, present, files = package_folder(entry) or folder, package_folder(entry) is not None, entry.pins
    else:
        try:
            manifest = Manifest.model_validate_json((folder / MANIFEST).read_bytes())
        except (ValidationError, OSError):
            manifest = Manifest()
        files, present = manifest.files, (manifest.repository, manifest.revision) == origin(entry)
    if not present:
        raise MissingResourceError(f"model {name!r} is not present", hint=entry.remedy(name))
    for file, pin in files.items():
        path = folder / file
        if not path.is_file() or path.stat().st_size != pin.bytes:
            problem = f"{file} is missing or has another size than {pin.bytes:,} bytes"
            raise MissingResourceError(
                f"model {name!r} is altered: {problem}", where=str(folder), hint=entry.remedy(name)
            )
    return Model(name, folder, pinned(name) or _digest(files), files)


def origin(entry: Entry) -> tuple[str, str]:
    """Return repository and revision for a manifest; for a GGUF file, its conversion."""
    return entry.repository, CONVERSION if entry.weights == "gguf" else entry.revision


def package_folder(entry: Entry) -> Path | None:
    """Return a model's folder in a package, located without importing it; None if it is not installed."""
    spec = find_spec(entry.package)
    folder = Path(spec.origin).parent / entry.folder if spec and spec.origin else None
    return folder if folder and folder.is_dir() else None


def missing(name: str) -> str | None:
    """Return why a model cannot be used on this machine; None if it can."""
    try:
        find(name)
    except MissingResourceError as error:
        return error.problem
    return None


def pinned(name: str) -> str | None:
    """Return the digest of a package's model, known even if it is missing; None for other models."""
    if _is_folder(name) or not (entry := registry.entry(name)).package:
        return None
    prefix = f"{CONVERSION} " if entry.weights == "gguf" else ""
    return _digest({f"{prefix}{file}": pin for file, pin in entry.pins.items()})


def label(name: str) -> str:
    """Return a model's name in signatures: ``roberta-large@5f2c…``, by checksum; ``…@absent`` if missing."""
    try:
        model = find(name)
    except MissingResourceError:
        return f"{Path(name).name}@absent"
    return f"{model.name}@{model.digest}"


def verified(name: str) -> Model:
    """Return the result of :func:`find` after verifying all checksums; raises the same errors."""
    model = find(name)
    for file, pin in model.files.items():
        if (actual := pin_of(model.path / file)) != pin:
            raise MissingResourceError(
                f"model {name!r} is altered: {file} has sha256 {actual.sha256}",
                where=str(model.path),
                expected=f"sha256 {pin.sha256}",
                hint=registry.entry(name).remedy(name),
            )
    return model


def _is_folder(name: str) -> bool:
    if "/" in name or os.sep in name or name.startswith((".", "~")):
        return True
    return name != "" and name not in registry.names() and Path(name, "config.json").is_file()


def _own(name: str) -> Model:
    """Return the model in a user's folder."""
    folder = Path(name).expanduser()
    present = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    # transformers would silently create an empty tokenizer.
    tokenizers = ({"tokenizer.json"}, {"vocab.txt"}, {"vocab.json", "merges.txt"})
    problem = None
    if "config.json" not in present:
        problem = "is not present"
    elif not (weights := weight_files(folder)):
        problem = "has no weights as safetensors"
    elif lacking := {*weights} - present:
        problem = f"lacks {', '.join(sorted(lacking))}"
    elif not any(present >= files for files in tokenizers) and not any(file.endswith(".model") for file in present):
        problem = "has no tokenizer: none of tokenizer.json, vocab.txt, vocab.json with merges.txt, *.model"
    if problem:
        expected = "a folder with config.json, a tokenizer and safetensors"
        raise MissingResourceError(f"model folder {name!r} {problem}", expected=expected)
    files = pins_of(folder)
    return Model(folder.resolve().name, folder, _digest(files), files)


def weight_files(folder: Path) -> list[str]:
    """Return a folder's safetensors files as transformers looks for them: a single file, else the shards of an index."""
    index = folder / "model.safetensors.index.json"
    if (folder / "model.safetensors").is_file():
        return ["model.safetensors"]
    try:
        return sorted({*json.loads(index.read_bytes())["weight_map"].values()}) if index.is_file() else []
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise MissingResourceError(f"{index} cannot be read ({error})", hint="Fetch or copy the model again") from error


def pins_of(folder: Path) -> dict[str, Pin]:
    """Return the checksums of all files in a model's digest."""
    return {path.name: pin_of(path) for path in sorted(folder.iterdir()) if _COUNTED.fullmatch(path.name)}


def pin_of(path: Path) -> Pin:
    """Return a file's checksum and size, cached per process until size or time change."""
    stat = path.stat()
    return _read_pin(path.resolve(), stat.st_size, stat.st_mtime_ns)


@cache
def _read_pin(path: Path, size: int, _: int) -> Pin:
    return Pin(sha256=sha256(path), bytes=size)


def _digest(files: Mapping[str, Pin]) -> str:
    """Return the first 12 hex digits of the SHA-256 over file names and checksums."""
    lines = "".join(f"{name} {files[name].sha256}\n" for name in sorted(files))
    return hashlib.sha256(lines.encode()).hexdigest()[:12]
