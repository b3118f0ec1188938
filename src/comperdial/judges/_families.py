"""What a family's folder says of itself."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from comperdial.core.errors import FileError
from comperdial.core.files import read_json
from comperdial.judges import _parts
from comperdial.judges._disk import write_durably
from comperdial.judges.base import Family

_FAMILY = {field.name: dict if field.name == "parameters" else str for field in dataclasses.fields(Family)}


_HALF = (".part-*.parquet", ".family-*.json", ".journal-*.jsonl")


def settle(folder: Path, family: Family, *, alone: bool) -> None:
    """Write down what a new folder is for, or check it; if nobody else writes, remove what was left half written."""
    for path in [path for pattern in _HALF for path in folder.glob(pattern)] if alone else []:
        path.unlink()
    if in_use(folder):
        read_family(folder)
        return
    content = {name: getattr(family, name) for name in _FAMILY} | {"parameters": dict(family.parameters)}
    text = json.dumps({"id": family.id, **content}, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    write_durably(folder / "family.json", text.encode())


def in_use(folder: Path) -> bool:
    """Say whether a folder is a family's; a process that was killed early leaves one with a lock and nothing else."""
    return (folder / "family.json").exists() or any(_parts.listing(folder))


def read_family(folder: Path) -> Family:
    """Read what a folder is for, and hold it against the folder's name."""
    path = folder / "family.json"
    content = read_json(path)
    if not isinstance(content, dict) or content.keys() != {"id", *_FAMILY}:
        raise FileError("not the description of a family", where=str(path), expected="id, " + ", ".join(_FAMILY))
    for name, kind in _FAMILY.items():
        if not isinstance(content[name], kind):
            raise FileError(f"{name!r} is {content[name]!r}", where=str(path), expected=f"a {kind.__name__}")
    family = Family(**{name: content[name] for name in _FAMILY})
    if (family.judge, family.id, content["id"]) != (folder.parent.name, folder.name, folder.name):
        raise FileError(
            f"the file describes family {family.judge}/{family.id}",
            where=str(path),
            expected=f"{folder.parent.name}/{folder.name}, as the folder is named",
            hint="Restore the file; a folder of the ledger is never renamed",
        )
    return family
