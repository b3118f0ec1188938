"""Read files of rated records through column maps; a map that does not fit is shown one to paste instead."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from comperdial.core.errors import SchemaError
from comperdial.core.files import read_json
from comperdial.data.readers._columns import NOTHING, ColumnMap, Record, find, said
from comperdial.data.readers._proposal import Content, examples_of, flat, ordered, propose

_SHOWN = 40


def read_rated(
    files: Mapping[str, Path],
    columns: Mapping[str, Any],
    *,
    turns: Mapping[str, int],
    counts: Mapping[str, int] | None = None,
    own: bool = False,
) -> dict[str, tuple[ColumnMap, list[tuple[str, Record]]]]:
    """Read the rated files, after checking that the maps fit them.

    Parameters
    ----------
    files
        Level -> file.
    columns
        Level -> column map.
    turns
        Dialogue -> how many turns it has; by these a proposed map is told.
    counts
        What stands beside ``columns`` in ``params.yaml``, for the proposal to have it too.
    own
        Whether the maps are those that the data set itself names, not those of ``params.yaml``.

    Returns
    -------
    dict
        Level -> the map, and (where, record) of each record.

    Raises
    ------
    SchemaError
        One for all files, when a field that a map names is in no record: lists what is missing, the fields there are
        and a map to paste.
    """
    maps = {level: ColumnMap(level, columns.get(level, {})) for level in files}
    contents = {level: _content(path, maps[level]) for level, path in files.items()}
    wrong = {level: found.problem for level, found in contents.items() if found.problem}
    if wrong:
        first, *others = [(files[level], problem) for level, problem in wrong.items()]
        shown = "".join(_shown(files[level], contents[level].records) for level in wrong)
        proposal: dict[str, Any] = {
            level: propose(contents[level], found, turns) if level in wrong else ordered(found.columns)
            for level, found in maps.items()
        }
        block = {"comperdial": {"columns": proposal, **({"counts": dict(counts)} if counts else {})}}
        text = yaml.safe_dump(block, sort_keys=False, allow_unicode=True, width=10_000)
        raise SchemaError(
            "; ".join([first[1], *(f"{path}: {problem}" for path, problem in others)]),
            where=str(first[0]),
            expected="the fields that "
            + ("`columns` in the file of systems" if own else f"comperdial.columns.{'/'.join(wrong)} in params.yaml")
            + " names",
            hint=f"What there is:\n{shown}"
            "This map is made from names and values alone. Put it in place of `comperdial` in params.yaml, check it, "
            f"and fill in each ???{', and take `columns` out of the file of systems' if own else ''}:\n{text}",
        )
    return {
        level: (
            maps[level],
            [(f"{path}, record {number}", record) for number, record in enumerate(contents[level].records, start=1)],
        )
        for level, path in files.items()
    }


def _content(path: Path, columns: ColumnMap) -> Content:
    content = read_json(path)
    found = content if columns.records is None else find(content, columns.records)
    if not isinstance(found, list):
        lists = {"": content} if isinstance(content, list) else dict(flat(content)) if isinstance(content, dict) else {}
        good = {place: value for place, value in lists.items() if _are_records(value)}
        place = max(good, key=lambda name: len(good[name]), default="")
        alone = [content] if isinstance(content, dict) and content else []
        records: list[Record] = good.get(place, alone)
        if columns.records is not None:
            problem = f"no list of records in {columns.records!r}"
        else:
            problem = f"{_kind(content)} and no list of records, and the map names no `records`"
        missing = _lacking(records, columns)
        return Content(records, place or None, "; ".join([problem, *_no_fields(missing)]), set(missing))
    for number, record in enumerate(found, start=1):
        if not isinstance(record, dict):
            raise SchemaError(f"holds {said(record)}", where=f"{path}, record {number}", expected="a JSON object")
    if not found:
        raise SchemaError("no records", where=str(path), expected="a list of records")
    missing = _lacking(found, columns)
    return Content(found, columns.records, "".join(_no_fields(missing)), set(missing))


def _no_fields(missing: Mapping[str, list[str]]) -> list[str]:
    fields = [repr(field) for lacking in missing.values() for field in lacking]
    return [f"no field {', '.join(fields)}"] if fields else []


def _kind(value: Any) -> str:  # noqa: ANN401
    return "an object" if isinstance(value, dict) else said(value)


def _are_records(value: Any) -> bool:  # noqa: ANN401
    return isinstance(value, list) and bool(value) and all(isinstance(record, dict) for record in value)


def _lacking(records: list[Record], columns: ColumnMap) -> dict[str, list[str]]:
    """Return our name -> the fields that the map names for it and no record has."""
    found = {
        name: [field for field in fields if all(find(record, field) is NOTHING for record in records)]
        for name, fields in columns.named().items()
    }
    return {name: fields for name, fields in found.items() if fields}


def _shown(path: Path, records: list[Record]) -> str:
    examples = examples_of(records)
    lines = [f"  {name}: {said(value)}" for name, value in list(examples.items())[:_SHOWN]]
    if len(examples) > _SHOWN:
        lines.append(f"  … and {len(examples) - _SHOWN} more")
    return f"{path.name}, each field with an example:\n" + "".join(f"{line}\n" for line in lines or ["  (none)"])
