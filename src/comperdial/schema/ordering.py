"""The order of a table's rows: that of its key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from comperdial.errors import SchemaError
from comperdial.schema.fields import Table

Key = tuple[Any, ...]


def in_order(parts: Sequence[tuple[str, pa.Table]], spec: Table) -> pa.Table:
    """Return the rows of several tables sorted, after a look for keys that stand twice."""
    filled = [(where, part) for where, part in parts if part.num_rows]
    if not filled:
        return spec.arrow().empty_table()
    content = pa.concat_tables([part for _, part in filled]).combine_chunks()
    if rising(content, spec).all():
        return content
    content = content.take(_order(content, spec))
    after = rising(content, spec)
    if not after.all():
        twice = key(content, int(after.argmin()), spec)
        named = ", ".join(f"{column}={value}" for column, value in zip(spec.key, twice, strict=True))
        holders = [where for where, part in filled if _has(part, twice, spec)]
        raise SchemaError(
            f"the same key a second time ({named})",
            where=" and ".join(dict.fromkeys(holders)),
            expected="each (" + ", ".join(spec.key) + ") once",
        )
    return content


def _order(content: pa.Table, spec: Table) -> pa.Array:
    """Return the places of a table's rows in the order of its key: texts by code point, as pandas sorts them."""
    # A column of one value, as most of a key's are, says nothing about the order and takes as long as another.
    keys = [name for name in spec.key if not pc.all(pc.equal(content[name], content[name][0])).as_py()]
    return pc.sort_indices(content, [(name, "ascending") for name in keys or spec.key[:1]])


def rising(content: pa.Table, spec: Table) -> np.ndarray:
    """Say for each row but the first whether its key comes after the one before it."""
    after = np.zeros(max(0, content.num_rows - 1), dtype=bool)
    for name in reversed(spec.key):
        column = content[name].combine_chunks()
        before, here = column[:-1], column[1:]
        equal = pc.equal(before, here).to_numpy(zero_copy_only=False)
        less = pc.less(before, here).to_numpy(zero_copy_only=False)
        after = less | (equal & after)
    return after


def _has(content: pa.Table, wanted: Key, spec: Table) -> bool:
    same = [pc.equal(content[name], pa.scalar(value)) for name, value in zip(spec.key, wanted, strict=True)]
    found = same[0]
    for column in same[1:]:
        found = pc.and_(found, column)
    return bool(pc.any(found).as_py())


def key(content: pa.Table, row: int, spec: Table) -> Key:
    """Return the key of a row, counted from the end if below 0; keys compare as :func:`in_order` sorts."""
    row %= content.num_rows
    return tuple(content[name][row].as_py() for name in spec.key)
