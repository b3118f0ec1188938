"""The command that tells what a table or figure was made of."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from comperdial.core.errors import FileError

# Where records are looked for when a name has none.
_RESULTS = Path("results")
# An option of more entries than these is counted and not spelled out.
_SHOWN = 4


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's commands."""
    command = commands.add_parser("pack-records", help="pack Snakemake's records for DVC (`make publish` does it)")
    command.set_defaults(run=_pack)
    command = commands.add_parser("why", help="tell what a table or figure was made of, and whether that is still so")
    command.add_argument("path", type=Path, help="a form of the table or figure, or its name without suffix")
    command.add_argument("--json", action="store_true", help="print the record itself")
    command.set_defaults(run=_why)


def _why(options: argparse.Namespace) -> None:
    from comperdial.core import provenance
    from comperdial.core.files import read_text

    path = find(options.path)
    record = provenance.read(path)
    if options.json:
        print(read_text(path), end="")
        return
    try:
        said = "\n".join(describe(path, record))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise FileError(
            "the record is damaged", where=str(path), expected="what `comperdial render` writes", hint="Make it again"
        ) from error
    print(said)


def _pack(_: argparse.Namespace) -> None:
    from comperdial.jobs import records

    print(f"{records.pack()}: the records of this folder's results")


def find(path: Path) -> Path:
    """Return the record that belongs to a table or figure.

    Raises
    ------
    FileError
        When there is none; names the nearest that there are, and what would make one.
    """
    from comperdial.core.files import form_path
    from comperdial.core.provenance import SUFFIX, record_path

    candidates = dict.fromkeys([record_path(path), path.with_name(path.name + SUFFIX)])
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    folders = [folder for folder in (path.parent, _RESULTS) if folder.is_dir()]
    known = {
        found.with_name(found.name.removesuffix(SUFFIX)).as_posix() for f in folders for found in f.rglob(f"*{SUFFIX}")
    }
    near = difflib.get_close_matches(form_path(path, "").as_posix(), sorted(known), n=3, cutoff=0.4)
    hint = f"Did you mean {' or '.join(near)}? " if near else ""
    raise FileError(
        "no record of what it was made of" if path.exists() else "no such table or figure, and no record of one",
        where=str(path),
        expected=f"{record_path(path).name} beside it",
        hint=f"{hint}`snakemake` and `comperdial render` make tables with their records",
    )


def describe(path: Path, record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines that tell a record to a reader, held against what lies there now.

    Parameters
    ----------
    path
        The record's file. The inputs are looked for below the current folder, or else the nearest folder above the
        record that has one of them.
    record
        Its content.
    """
    from comperdial.core import provenance
    from comperdial.report.captions import SIMULATED

    root = _root(path, record)
    yield path.as_posix().removesuffix(provenance.SUFFIX)
    if record["parameters"].get("source") == "simulated":
        yield SIMULATED
    yield f"made by {record['command']}"
    yield from _parameters(record)
    yield from _outputs(path, record)
    yield from _inputs(root, record)
    yield from _code(root, record)
    yield from _signatures(path, record)
    yield "versions"
    now = provenance.versions()
    for name, version in record["versions"].items():
        other = "" if now.get(name) == version else f" (here: {now.get(name, 'absent')})"
        yield f"  {name} {version}{other}"


def _parameters(record: Mapping[str, Any]) -> Iterator[str]:
    told = {name: _spell(value) for name, value in record["parameters"].items()}
    others = {name: seeds for name, seeds in record["seeds"].items() if name not in told}
    told |= {f"seeds in {name}": ", ".join(map(str, seeds)) for name, seeds in others.items()}
    width = max(map(len, told), default=0)
    yield from (f"  {name:<{width}}  {value}" for name, value in told.items())


def _outputs(path: Path, record: Mapping[str, Any]) -> Iterator[str]:
    from comperdial.core.provenance import forms

    found = {form.suffix: form for form in forms(path)}
    states = {suffix: _state(found.get(suffix), digest) for suffix, digest in record["outputs"].items()}
    yield f"files ({_counts(states.values())})"
    for suffix, state in states.items():
        yield f"  {state:<9} {path.name.removesuffix('.provenance.json')}{suffix}"


def _inputs(root: Path, record: Mapping[str, Any]) -> Iterator[str]:
    from comperdial.core import provenance

    states = {name: _state(root / name, entry["sha256"]) for name, entry in record["inputs"].items()}
    yield f"inputs ({_counts(states.values())})"
    for name, entry in record["inputs"].items():
        yield f"  {states[name]:<9} {name} ({entry['size']:,} bytes, sha256 {entry['sha256'][:12]})"
        below = provenance.record_path(root / name)
        if below.is_file():
            made = provenance.read(below)
            inputs = _counts(_state(root / file, item["sha256"]) for file, item in made["inputs"].items())
            code = _counts(_states_of_code(root, made).values())
            yield f"            made by {made['command']}; its inputs: {inputs}; its code: {code}"


def _code(root: Path, record: Mapping[str, Any]) -> Iterator[str]:
    states = _states_of_code(root, record)
    if not states:
        yield "code: not recorded"
        return
    yield f"code, sha256 {record['code']['sha256'][:12]} ({_counts(states.values())})"
    for name, state in states.items():
        if state != "same":
            yield f"  {state:<9} {name}"


def _signatures(path: Path, record: Mapping[str, Any]) -> Iterator[str]:
    signatures = record["signatures"]
    shown = _in_table(path, signatures) or list(signatures)
    if shown:
        others = len(signatures) - len(shown)
        yield "metrics" + (f" ({others} more in the inputs, see --json)" if others else "")
    for metric in shown:
        for signature in signatures[metric]:
            yield f"  {metric}: {signature}"
    if record["tests"]:
        yield "tests"
        yield from (f"  {test}" for test in record["tests"])


def _in_table(path: Path, names: Iterable[str]) -> list[str]:
    """Return those of the names that stand in the table's CSV: as a cell, or in its header before a colon."""
    from comperdial.core.files import read_table
    from comperdial.core.provenance import SUFFIX

    table = path.with_name(path.name.removesuffix(SUFFIX) + ".csv")
    if not table.is_file():
        return []
    frame = read_table(table)
    cells = {str(column).partition(":")[0] for column in frame.columns}
    for column in ("metric", "metric_a", "metric_b", "label"):
        if column in frame:
            cells |= set(frame[column])
    return [name for name in names if name in cells]


def _state(path: Path | None, recorded: str) -> str:
    """Say whether a file still has the bytes that were recorded, by the beginning of their hash."""
    from comperdial.core.files import sha256

    return _compared(path, recorded, sha256)


def _states_of_code(root: Path, record: Mapping[str, Any]) -> dict[str, str]:
    """Say of each file of code whether it still does what was recorded."""
    from comperdial.core.closure import digest_of

    found = {name: (digest_of(name, root), recorded) for name, recorded in record["code"]["files"].items()}
    return {
        name: "not here" if now is None else "same" if now.startswith(recorded) else "changed"
        for name, (now, recorded) in found.items()
    }


def _compared(path: Path | None, recorded: str, digest: Callable[[Path], str]) -> str:
    if path is None or not path.is_file():
        return "not here"
    return "same" if digest(path).startswith(recorded) else "changed"


def _counts(states: Iterable[str]) -> str:
    found = list(states)
    kinds = [(kind, found.count(kind)) for kind in ("same", "changed", "not here") if kind in found]
    if len(kinds) == 1 and kinds[0][0] == "same":
        return "all the same now" if len(found) > 1 else "the same now"
    return ", ".join(f"{count} {kind}" for kind, count in kinds) or "none"


def _root(path: Path, record: Mapping[str, Any]) -> Path:
    names = [*record["inputs"], *record["code"]["files"]]
    for folder in (Path(), *path.resolve().parents):
        if any((folder / name).is_file() for name in names):
            return folder
    return Path()


def _spell(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "–"
    if isinstance(value, dict):
        if len(value) > _SHOWN:
            return f"{len(value)} entries, see --json"
        return ", ".join(f"{name}: {item}" for name, item in value.items()) or "–"
    return "–" if value in (None, "") else str(value)
