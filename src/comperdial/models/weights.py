"""The names that files of weights have, whole or in shards."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from comperdial.errors import FileError
from comperdial.files import read_json

Kind = Literal["safetensors", "pickle"]

WHOLE: dict[Kind, str] = {"safetensors": "model.safetensors", "pickle": "pytorch_model.bin"}
INDEX: dict[Kind, str] = {kind: f"{name}.index.json" for kind, name in WHOLE.items()}
_SHARD: dict[Kind, str] = {"safetensors": r"\w[\w-]*\.safetensors", "pickle": r"\w[\w-]*\.bin"}


def is_weights(name: str) -> bool:
    """Return whether a file of that name holds weights, or says where they are."""
    return name in INDEX.values() or any(re.fullmatch(rule, name) for rule in _SHARD.values())


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


def files(folder: Path, kind: Kind) -> list[str]:
    """Return the names of a folder's weight files of one kind, shards included; empty when it has none.

    transformers looks in the same order: a whole file first, then an index.
    """
    if (folder / WHOLE[kind]).is_file():
        return [WHOLE[kind]]
    if (folder / INDEX[kind]).is_file():
        return sorted(set(shards(folder / INDEX[kind], kind).values()))
    return []
