"""What a model's folder holds: its weights, whole or in shards; the files that count and their checksums; its manifest.

Checksums of files in a user's folder are kept in a small file, by path, size and time, since a workflow asks for them
at every start. Whatever is wrong with that file costs time and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from comperdial.core.errors import FileError
from comperdial.core.files import read_json, sha256, write_json

CACHE = "checksums.json"
MANIFEST = "comperdial-model.json"

# What transformers reads of a folder: configuration, tokenizer, weights. Not pickles, which are never read.
_COUNTED = re.compile(
    r"(config|generation_config|tokenizer|tokenizer_config|special_tokens_map|added_tokens|vocab)\.json"
    r"|model\.safetensors\.index\.json|vocab\.txt|merges\.txt|\w[\w.-]*\.(model|safetensors)"
)
# A file may change twice within one tick of its file system's clock; younger ones are not remembered.
_SETTLED = 2 * 10**9

Kind = Literal["safetensors", "pickle"]

WHOLE: dict[Kind, str] = {"safetensors": "model.safetensors", "pickle": "pytorch_model.bin"}
INDEX: dict[Kind, str] = {kind: f"{name}.index.json" for kind, name in WHOLE.items()}
_SHARD: dict[Kind, str] = {"safetensors": r"\w[\w-]*\.safetensors", "pickle": r"\w[\w-]*\.bin"}


def is_weights(name: str) -> bool:
    """Return whether a file of that name holds weights, or says where they are."""
    return name in INDEX.values() or name.endswith(".gguf") or any(re.fullmatch(rule, name) for rule in _SHARD.values())


def shards(index: Path, kind: Kind) -> dict[str, str]:
    """Read an index: which file holds each tensor.

    Raises
    ------
    FileError
        When it is no index, or names a file that is no shard in the same folder.
    """
    content = read_json(index)
    places = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(places, dict) or not places:
        raise FileError("no weight_map", where=str(index), expected="an index of shards")
    for file in places.values():
        if not isinstance(file, str) or not re.fullmatch(_SHARD[kind], file):
            raise FileError(f"shard {file!r}", where=str(index), expected=f"a plain name that matches {_SHARD[kind]}")
    return places


def weights(folder: Path, kind: Kind) -> list[str]:
    """Return the names of a folder's weight files of one kind, shards included; empty when it has none.

    transformers looks in the same order: a whole file first, then an index.
    """
    if (folder / WHOLE[kind]).is_file():
        return [WHOLE[kind]]
    if (folder / INDEX[kind]).is_file():
        return sorted(set(shards(folder / INDEX[kind], kind).values()))
    return []


@dataclass(frozen=True)
class Checksum:
    """What the bytes of a file are: hex SHA-256 and size."""

    sha256: str
    bytes: int

    def __post_init__(self) -> None:
        if not re.fullmatch("[0-9a-f]{64}", str(self.sha256)) or type(self.bytes) is not int or self.bytes < 0:
            raise ValueError(f"no checksum: {self}")


def counts(name: str) -> bool:
    """Return whether a file of that name can change what a model gives."""
    return isinstance(name, str) and re.fullmatch(_COUNTED, name) is not None


def counted(folder: Path) -> list[str]:
    """Return the sorted names of the files in a folder that count."""
    return sorted(path.name for path in folder.iterdir() if counts(path.name) and path.is_file())


def combine(files: Mapping[str, Checksum]) -> str:
    """Return the first 12 hex digits of a SHA-256 over the files' names and checksums, wherever they lie."""
    lines = "".join(f"{name} {files[name].sha256}\n" for name in sorted(files))
    return hashlib.sha256(lines.encode()).hexdigest()[:12]


def checksum(path: Path) -> Checksum:
    """Read a file and return what its bytes are."""
    return Checksum(sha256(path), path.stat().st_size)


def fresh(folder: Path) -> dict[str, Checksum]:
    """Read all files of a folder that count and return what their bytes are."""
    return {name: checksum(folder / name) for name in counted(folder)}


def remembered(folder: Path, cache: Path) -> dict[str, Checksum]:
    """Return what :func:`fresh` does, reading only files whose path, size and time ``cache`` does not hold."""
    known = _read(cache)
    found, new = {}, {}
    for name in counted(folder):
        # The cache is about bytes: links to one file, as in the hub's own cache, share an entry.
        path = (folder / name).resolve()
        stat = path.stat()
        stamp = f"{path}:{stat.st_size}:{stat.st_mtime_ns}"
        found[name] = known.get(stamp) or checksum(path)
        if stamp not in known and time.time_ns() - stat.st_mtime_ns > _SETTLED:
            new[stamp] = found[name]
    if new:
        _write(cache, known, new)
    return found


def forget(folder: Path, cache: Path) -> None:
    """Drop what the cache holds of a folder's files."""
    places = tuple(f"{(folder / name).resolve()}:" for name in counted(folder))
    _write(cache, {stamp: kept for stamp, kept in _read(cache).items() if not stamp.startswith(places)}, {})


def _read(cache: Path) -> dict[str, Checksum]:
    try:
        return {stamp: Checksum(**entry) for stamp, entry in json.loads(cache.read_bytes()).items()}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}


def _write(cache: Path, known: Mapping[str, Checksum], new: Mapping[str, Checksum]) -> None:
    kept = {stamp: entry for stamp, entry in known.items() if Path(stamp.rsplit(":", 2)[0]).is_file()}
    with suppress(OSError, FileError):
        write_json(cache, {stamp: asdict(entry) for stamp, entry in {**kept, **new}.items()})


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What lies in a model's folder.

    Attributes
    ----------
    name, repository, revision
        As the registry has them; empty for a folder of a user's own.
    commit
        The commit that the files are of; None when they came from a mirror.
    files
        The files that count, and what their bytes are.
    converted
        The pickles, or the GGUF file, that the weights among them were made from.
    """

    name: str
    repository: str = ""
    revision: str = ""
    commit: str | None = None
    files: Mapping[str, Checksum]
    converted: Mapping[str, Checksum] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        """Write the manifest into the model's folder."""
        write_json(folder / MANIFEST, asdict(self))


def read_manifest(folder: Path) -> Manifest | None:
    """Read a folder's manifest; None when there is none.

    Raises
    ------
    FileError
        When it is there and is no manifest.
    """
    path = folder / MANIFEST
    if not path.is_file():
        return None
    content = read_json(path)
    try:
        parts = {part: {f: Checksum(**pin) for f, pin in content[part].items()} for part in ("files", "converted")}
        found = Manifest(**{**content, **parts})
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise FileError("no manifest of a model", where=str(path), expected="what `models fetch` writes") from error
    if not all(map(counts, found.files)) or not all(map(is_weights, found.converted)):
        raise FileError("a file that no model has", where=str(path), expected="what `models fetch` writes")
    return found
