"""The ``key.csv`` that is written with tasks: what each item of them is."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from comperdial.core.errors import SchemaError
from comperdial.core.files import read_table


def read_key(
    path: Path, columns: Sequence[str], written_by: str, *, may_be_empty: Collection[str] = ()
) -> dict[str, dict[str, str]]:
    """Return the rows of a key by their ``item``.

    Parameters
    ----------
    columns
        That it must have, in order.
    written_by
        What writes such a key, for messages.
    may_be_empty
        The columns that need not hold a name.

    Raises
    ------
    SchemaError
        Names the record at fault: another column, a cell without a name, an item that stands there twice.
    """
    frame = read_table(path)
    if list(frame.columns) != list(columns):
        raise SchemaError(
            f"the columns are {', '.join(map(str, frame.columns))}",
            where=str(path),
            expected=f"the key.csv of {written_by}: {', '.join(columns)}",
        )
    items: dict[str, dict[str, str]] = {}
    for number, row in enumerate(frame.to_dict("records"), start=1):
        where = f"{path}, record {number}"
        named = {str(name): value for name, value in row.items()}
        for name, value in named.items():
            if not isinstance(value, str) or not (value.strip() or name in may_be_empty):
                raise SchemaError(f"column {name!r} holds {value!r}", where=where, expected="a name")
        if named["item"] in items:
            raise SchemaError(f"item {named['item']!r} a second time", where=where, expected="each item once")
        items[named["item"]] = named
    return items
