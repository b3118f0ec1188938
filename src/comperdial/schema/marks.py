"""What a shard's file says of itself, so that shards that do not belong together are never merged for a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow.parquet as pq

from comperdial.errors import SchemaError
from comperdial.schema.parts import readable
from comperdial.sharding import Shard

_SHARD, _MADE = b"comperdial.shard", b"comperdial.made"
# The most missing shards that a message names.
_NAMED = 10


def mark(shard: Shard, made: str) -> Mapping[bytes, bytes]:
    """Return what a file's metadata say of a shard and of what made it; nothing of a whole, which is no shard."""
    return {} if shard.count == 1 else {_SHARD: str(shard).encode(), _MADE: made.encode()}


def check_complete(paths: Sequence[Path], name: str) -> None:
    """Raise when files are shards, and not all those of one thing, each once; tables that say nothing may be anything.

    Raises
    ------
    SchemaError
        Names the shards that are missing, or the two files that do not belong together.
    """
    found = [_marks(path, name) for path in paths]
    if not any(found):
        return
    for path, marks in zip(paths, found, strict=True):
        if not marks:
            raise SchemaError("no shard", where=str(path), expected=f"one, as {_first(paths, found)} is")
    made = {marks[_MADE]: path for path, marks in reversed(list(zip(paths, found, strict=True)))}
    if len(made) > 1:
        (one, here), (other, there) = list(made.items())[-2:]
        raise SchemaError(
            f"shards of different things: {other.decode()}, and {one.decode()}",
            where=f"{there} and {here}",
            expected="shards of one metric with the same options, of the same responses",
        )
    shards = [Shard.parse(marks[_SHARD].decode()) for marks in found]
    count = shards[0].count
    for shard, path in zip(shards, paths, strict=True):
        if shard.count != count:
            raise SchemaError(f"shard {shard}", where=str(path), expected=f"one of {count}, as {paths[0]} is")
    if missing := sorted(set(range(1, count + 1)) - {shard.number for shard in shards}):
        named = ", ".join(map(str, missing[:_NAMED])) + (", …" if len(missing) > _NAMED else "")
        raise SchemaError(
            f"{len(missing)} of {count} shards missing: {named}",
            where=f"{paths[0]} and {len(paths) - 1} more",
            expected="all shards: what they lack would be lost",
        )


def _marks(path: Path, name: str) -> dict[bytes, bytes]:
    with readable(path, name):
        said = pq.read_metadata(path).metadata or {}
    return {key: said[key] for key in (_SHARD, _MADE) if key in said}


def _first(paths: Sequence[Path], found: Sequence[Mapping[bytes, bytes]]) -> Path:
    return next(path for path, marks in zip(paths, found, strict=True) if marks)
