"""Models on this machine: find them by name or folder, name them by their bytes, check them before they run.

:func:`find` is cheap, since a workflow calls it for every metric at every start: it looks at names and sizes and takes
checksums from the registry, from what a fetch recorded, or from a cache. :func:`verified` reads every byte, once a
process, and is what a model is loaded through.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from comperdial.core.errors import FileError, MissingResourceError
from comperdial.models import contents, registry
from comperdial.models.contents import Checksum

STORE_VARIABLE = "COMPERDIAL_MODELS"
# How a GGUF file is converted; a change that moves a score gets the next number.
CONVERSION = "gguf conversion 1"

State = Literal["present", "not present", "altered"]


@dataclass(frozen=True)
class Model:
    """A model that is on this machine: its name, its folder, and 12 hex digits that its files' checksums come to."""

    name: str
    path: Path
    digest: str


def home() -> Path:
    """Return the folder that fetched models lie in, each in one of its own.

    ``COMPERDIAL_MODELS``, or ``comperdial/models`` below ``XDG_CACHE_HOME`` or ``~/.cache``.
    """
    if chosen := os.environ.get(STORE_VARIABLE):
        return Path(chosen)
    caches = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (caches if caches.is_absolute() else Path("~/.cache").expanduser()) / "comperdial/models"


def find(name: str) -> Model:
    """Return a model that is on this machine.

    Parameters
    ----------
    name
        A name that ``comperdial models`` lists, or a folder: a path with a separator, or any other that holds
        ``config.json``. A folder that is called like a listed model is ``./name``.

    Raises
    ------
    UnknownNameError
        When it is neither.
    MissingResourceError
        When the model is not there, lacks a file, has one of another size, or has a pickle for weights.
    """
    if is_folder(name):
        return _own(name)
    found = _installed(name)
    entry = registry.entry(name)
    if found is None:
        raise MissingResourceError(f"model {name!r} is not present", hint=entry.remedy)
    if problem := _misfit(found):
        raise _altered(name, found, problem)
    return Model(name, found.folder, found.digest)


def missing(name: str) -> str | None:
    """Say why a model cannot be had on this machine; None when it can."""
    try:
        find(name)
    except MissingResourceError as error:
        return error.problem
    return None


def pinned(name: str) -> str | None:
    """Return the digest of a named model that is the same on every machine, present or not; None of others."""
    entry = None if is_folder(name) else registry.entry(name)
    if isinstance(entry, registry.Quantised):
        return contents.combine({f"{CONVERSION} {entry.gguf}": entry.pin})
    return contents.combine(entry.files) if isinstance(entry, registry.Packaged) else None


def label(name: str) -> str:
    """Return how a signature names a model: ``roberta-large@5f2c…``, by its bytes; ``…@absent`` where it is not."""
    try:
        model = find(name)
    except MissingResourceError:
        return f"{Path(name).name}@absent"
    return f"{model.name}@{model.digest}"


def verified(name: str) -> Model:
    """Return what :func:`find` does, with every byte of it read and found right, once a process.

    Raises
    ------
    UnknownNameError
        As :func:`find`.
    MissingResourceError
        As :func:`find`; or when a file's bytes are not the ones recorded: names the file and both checksums.
    """
    model = find(name)
    stats = [(file, (model.path / file).stat()) for file in contents.counted(model.path)]
    # A file that is touched after the check is read again.
    _verify(name, model, tuple((file, stat.st_size, stat.st_mtime_ns) for file, stat in stats))
    return model


@cache
def _verify(name: str, model: Model, stamp: tuple[tuple[str, int, int], ...]) -> None:
    if is_folder(name):
        if contents.combine(contents.fresh(model.path)) != model.digest:
            contents.forget(model.path, home() / contents.CACHE)
            raise MissingResourceError(
                f"model {name!r} changed since its checksums were taken, though its files' times did not",
                where=str(model.path),
                expected=f"files that come to {model.digest}",
                hint="They are taken anew now: run the command again",
            )
        return
    found = _installed(name)
    if found and (problem := _other_bytes(found)):
        raise _altered(name, found, problem)


def status(name: str) -> tuple[State, str]:
    """Compare names and sizes of a named model's files; return what is wrong too, or the digest."""
    found = _installed(name)
    if found is None:
        return "not present", ""
    if problem := _misfit(found):
        return "altered", problem
    return "present", found.digest


def size(name: str) -> int:
    """Return the bytes that a named model's files should have; 0 when it is not there."""
    found = _installed(name)
    return sum(pin.bytes for pin in found.files.values()) if found else 0


def audit(name: str) -> tuple[State, str]:
    """Read every byte of a model, named or in a folder; return what is wrong too, or the digest."""
    if not is_folder(name):
        state, detail = status(name)
        found = _installed(name) if state == "present" else None
        problem = _other_bytes(found) if found else None
        return ("altered", problem) if problem else (state, detail)
    try:
        folder = _own(name).path
    except MissingResourceError as error:
        return "not present", error.problem
    contents.forget(folder, home() / contents.CACHE)
    recorded = contents.read_manifest(folder)
    found = _Found(folder, recorded.files, None) if recorded else None
    wrong = (_misfit(found) or _other_bytes(found)) if found else None
    return ("altered", wrong) if wrong else ("present", contents.combine(contents.fresh(folder)))


def is_folder(name: str) -> bool:
    """Return whether a model's name stands for a folder."""
    if "/" in name or os.sep in name or name.startswith((".", "~")):
        return True
    return name != "" and name not in registry.names() and Path(name, "config.json").is_file()


@dataclass(frozen=True)
class _Found:
    folder: Path
    files: Mapping[str, Checksum]
    problem: str | None
    origin: Mapping[str, Checksum] | None = None

    @property
    def digest(self) -> str:
        """Return what names the model: of a converted GGUF by that file, so that it is the same on every machine."""
        return contents.combine(self.origin or self.files)


def _installed(name: str) -> _Found | None:
    """Return where a named model lies and what its files should be; None when it is not there at all."""
    entry = registry.entry(name)
    if isinstance(entry, registry.Packaged):
        # Found, never imported: the package's own code is not needed, and may pull in libraries that are not there.
        spec = find_spec(entry.package)
        return _Found(Path(spec.origin).parent / entry.folder, entry.files, None) if spec and spec.origin else None
    folder = home() / name
    try:
        recorded = contents.read_manifest(folder)
    except FileError as error:
        return _Found(folder, {}, f"{contents.MANIFEST}: {error.problem}")
    if recorded is None:
        return None
    problem = None
    if isinstance(entry, registry.Quantised):
        if recorded.converted != {entry.gguf: entry.pin} or recorded.revision != CONVERSION:
            problem = f"it was not made from {entry.gguf}, or by another version of this program"
        return _Found(folder, recorded.files, problem, {f"{CONVERSION} {entry.gguf}": entry.pin})
    if recorded.repository != entry.repository:
        problem = f"it is of {recorded.repository}, not of {entry.repository}"
    elif entry.commit and recorded.commit not in (None, entry.commit):
        problem = f"it is of commit {recorded.commit}, not {entry.commit}"
    elif lacking := sorted(set(entry.files) - set(recorded.files)):
        problem = f"{', '.join(lacking)} is not there"
    return _Found(folder, recorded.files, problem)


def _misfit(found: _Found) -> str | None:
    """Say what is wrong by names and sizes; None when nothing is."""
    if found.problem:
        return found.problem
    there = set(contents.counted(found.folder)) if found.folder.is_dir() else set()
    for file in sorted(there ^ set(found.files)):
        return f"{file} is {'there, and should not be' if file in there else 'not there'}"
    for file, pin in found.files.items():
        size = (found.folder / file).stat().st_size
        if size != pin.bytes:
            return f"{file} has {size:,} bytes, not {pin.bytes:,}"
    lacking = _lacks_tokenizer(found.folder)
    return f"it has {lacking}" if lacking else None


def _other_bytes(found: _Found) -> str | None:
    """Say which file's bytes are not the ones recorded; None when all are."""
    for file, pin in found.files.items():
        if (checksum := contents.checksum(found.folder / file)) != pin:
            return f"{file} has sha256 {checksum.sha256}, not {pin.sha256}"
    return None


def _altered(name: str, found: _Found, problem: str) -> MissingResourceError:
    return MissingResourceError(
        f"model {name!r} is altered: {problem}",
        where=str(found.folder),
        expected=f"the files of its origin ({registry.entry(name).origin})",
        hint=registry.entry(name).remedy,
    )


def _own(name: str) -> Model:
    folder = Path(name).expanduser()
    expected = "a folder with config.json, a tokenizer and safetensors"
    if (folder / "adapter_config.json").is_file():
        raise MissingResourceError(
            f"model folder {name!r} is an adapter, which is not read",
            expected="a whole model: merge the adapter into it",
        )
    if not (folder / "config.json").is_file():
        raise MissingResourceError(f"model folder {name!r} is not present", expected=expected)
    try:
        files = contents.weights(folder, "safetensors")
    except FileError as error:
        raise MissingResourceError(f"model folder {name!r}: {error.problem}", where=error.where) from error
    if lacking := [file for file in files if not (folder / file).is_file()]:
        raise MissingResourceError(f"model folder {name!r} lacks {', '.join(lacking)}", expected=expected)
    if not files and (list(folder.glob("*.bin")) or list(folder.glob("*.pt"))):
        raise MissingResourceError(
            f"the weights of model folder {name!r} are a pickle, which is not read",
            expected="model.safetensors",
            hint=f"If you trust where it comes from, run `comperdial models convert {name} --allow-pickle`",
        )
    if not files:
        raise MissingResourceError(f"model folder {name!r} has no weights", expected=expected)
    if without := _lacks_tokenizer(folder):
        raise MissingResourceError(f"model folder {name!r} has {without}", expected=expected)
    return Model(folder.resolve().name, folder, contents.combine(contents.remembered(folder, home() / contents.CACHE)))


def _lacks_tokenizer(folder: Path) -> str | None:
    """Say what a tokenizer cannot be made without; transformers would make up an empty one, and say nothing."""
    ways = (("tokenizer.json",), ("vocab.txt",), ("vocab.json", "merges.txt"))
    if any(all((folder / file).is_file() for file in way) for way in ways) or list(folder.glob("*.model")):
        return None
    return f"no tokenizer: none of {', '.join(' with '.join(way) for way in ways)}, *.model"
