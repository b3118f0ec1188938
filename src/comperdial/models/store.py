"""Models on this machine: find them by name or folder, name them by their bytes, check them before they run.

:func:`find` is cheap for named models, since a workflow calls it for every metric at every start: it compares sizes of
files. :func:`verified` reads every byte, once a process; models are loaded through it.
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
# How a GGUF file is converted. A change that moves a score gets the next number.
CONVERSION = "gguf conversion 1"
# The files that transformers reads; only they are in a model's digest.
_COUNTED = re.compile(
    r"(config|generation_config|tokenizer|tokenizer_config|special_tokens_map|added_tokens|vocab)\.json"
    r"|model\.safetensors\.index\.json|vocab\.txt|merges\.txt|\w[\w.-]*\.(model|safetensors)"
)


@dataclass(frozen=True)
class Model:
    """A model on this machine: name, folder, 12 hex digits of its files' checksums, and what its files should be."""

    name: str
    path: Path
    digest: str
    files: Mapping[str, Pin] = field(compare=False, repr=False, default_factory=dict)


class Manifest(BaseModel):
    """What ``models fetch`` records in a model's folder: where it is from, and its files."""

    repository: str = ""
    revision: str = ""
    files: dict[str, Pin] = {}


def home() -> Path:
    """Return the folder of fetched models: ``COMPERDIAL_MODELS``, or ``comperdial/models`` in the user's cache folder."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(os.environ.get(STORE_VARIABLE) or Path(caches, "comperdial/models"))


def find(name: str) -> Model:
    """Return a model that is on this machine.

    Parameters
    ----------
    name
        A name that ``comperdial models`` lists, or a folder: a name with a separator or that begins with . or ~, or any
        other name of a folder with ``config.json``.

    Raises
    ------
    UnknownNameError
        If it is neither.
    MissingResourceError
        If the model is not present or not whole, or its files are not the recorded ones.
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
    """Return the repository and the revision that a manifest names; of a GGUF file, how it is converted."""
    return entry.repository, CONVERSION if entry.weights == "gguf" else entry.revision


def package_folder(entry: Entry) -> Path | None:
    """Return the folder of a model inside a package, which is located and never imported; None if it is not installed."""
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
    """Return the digest of a package's model, the same on every machine and known without it; None of other models."""
    if _is_folder(name) or not (entry := registry.entry(name)).package:
        return None
    prefix = f"{CONVERSION} " if entry.weights == "gguf" else ""
    return _digest({f"{prefix}{file}": pin for file, pin in entry.pins.items()})


def label(name: str) -> str:
    """Return how a signature names a model: ``roberta-large@5f2c…``, by its bytes; ``…@absent`` if it is not present."""
    try:
        model = find(name)
    except MissingResourceError:
        return f"{Path(name).name}@absent"
    return f"{model.name}@{model.digest}"


def verified(name: str) -> Model:
    """Return :func:`find`'s model after reading every byte of it; raise as it does, or if a checksum is wrong."""
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
    """Return the model of a user's folder."""
    folder = Path(name).expanduser()
    present = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    # transformers would make up an empty tokenizer without a message.
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
    """Return the names of a folder's safetensors, as transformers looks for them: one file, else the shards of an index."""
    index = folder / "model.safetensors.index.json"
    if (folder / "model.safetensors").is_file():
        return ["model.safetensors"]
    try:
        return sorted({*json.loads(index.read_bytes())["weight_map"].values()}) if index.is_file() else []
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise MissingResourceError(f"{index} cannot be read ({error})", hint="Fetch or copy the model again") from error


def pins_of(folder: Path) -> dict[str, Pin]:
    """Return the checksums of all files in a folder that are in a model's digest."""
    return {path.name: pin_of(path) for path in sorted(folder.iterdir()) if _COUNTED.fullmatch(path.name)}


def pin_of(path: Path) -> Pin:
    """Return a file's checksum and size; its bytes are read once a process, unless size or time change."""
    stat = path.stat()
    return _read_pin(path.resolve(), stat.st_size, stat.st_mtime_ns)


@cache
def _read_pin(path: Path, size: int, _: int) -> Pin:
    return Pin(sha256=sha256(path), bytes=size)


def _digest(files: Mapping[str, Pin]) -> str:
    """Return the first 12 hex digits of a SHA-256 over names and checksums of files."""
    lines = "".join(f"{name} {files[name].sha256}\n" for name in sorted(files))
    return hashlib.sha256(lines.encode()).hexdigest()[:12]
