"""ComperDial's own form: dialogues with personas, and two files of rated records whose fields a column map names.

The published files' field names are not known to us (docs/comperdial-format.md), so nothing is guessed: a map that does
not fit is one message that shows the fields there are and a map to paste.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from comperdial.challenge.dialogues import Dialogue, context_id, make_tables, read_dialogues
from comperdial.core.errors import SchemaError
from comperdial.core.files import read_json
from comperdial.data.readers import base
from comperdial.data.readers._columns import NOTHING, ColumnMap, Record, find, said
from comperdial.data.readers._proposal import Content, examples_of, flat, ordered, propose
from comperdial.data.readers.base import Files, Row, Tables, get
from comperdial.schema.dimensions import AXIS_SCALE, OVERALL, OVERALL_SCALE

log = logging.getLogger(__name__)

# In a record of ours: whose ratings it holds, if they are not people's. So simulated ratings are known as such without the
# file of systems too.
SOURCE_FIELD = "ratings_source"
_LEVELS = {"turn": "turn_level", "dialogue": "dialogue_level"}
# How many fields a message shows.
_SHOWN = 40

# Where a record is, and its fields.
_Records = list[tuple[str, Record]]


def read(dataset: str, files: Files, options: Mapping[str, Any] = MappingProxyType({})) -> Tables:
    """Read the published four files, or anybody's own set written by ``comperdial export``.

    Files: ``data`` and ``dialogue_data`` (dialogues), ``turn_level`` and ``dialogue_level`` (rated records);
    ``systems`` (ours) if there is one. Options: ``columns`` with a map for ``turn`` and one for ``dialogue``, unless
    ``systems`` has them; ``counts``, what the paper counts. Contexts and personas are those of the dialogues that were
    answered.
    """
    about = _about(files)
    known = _dialogues(files)
    rated = _read_rated(files, about, options, {name: dialogue.turns for name, dialogue in known.items()})
    responses: dict[str, dict[tuple[str, int], str]] = {}
    ratings = list(_turns(*rated["turn"], about.get("source"), known, responses))
    answered = {(dialogue, system) for system, answers in responses.items() for dialogue, _ in answers}
    ratings += _whole_dialogues(*rated["dialogue"], about.get("source"), answered)
    names = {dialogue for dialogue, _ in answered}
    tables = make_tables(
        dataset,
        [dialogue for name, dialogue in known.items() if name in names],
        {name: {"kind": "agent", "track": None, "description": ""} for name in responses} | _systems(about, files),
        responses,
        where=str(files["turn_level"]),
    )
    tables |= base.make_tables(dataset, {"turn_level": files["turn_level"]}, ratings=ratings)
    _report_counts(dataset, tables, options.get("counts", {}))
    return tables


def _about(files: Files) -> Mapping[str, Any]:
    """Return what the file of systems holds: whose ratings they are, how the rated files call things, the systems."""
    if "systems" not in files:
        return {}
    path = files["systems"]
    content: Mapping[str, Any] = read_json(path)
    get(content, "source", str, str(path))
    get(content, "systems", list, str(path))
    if "columns" in content:
        get(content, "columns", dict, str(path))
    return content


def _systems(about: Mapping[str, Any], files: Files) -> dict[str, dict[str, Any]]:
    systems = {}
    for number, entry in enumerate(about.get("systems", []), start=1):
        where = f"{files['systems']}, system {number}"
        systems[get(entry, "system_id", str, where)] = {
            "kind": get(entry, "kind", str, where),
            "track": entry.get("track"),
            "description": get(entry, "description", str, where),
        }
    return systems


def _dialogues(files: Files) -> dict[str, Dialogue]:
    found: dict[str, Dialogue] = {}
    for role in ("data", "dialogue_data"):
        for dialogue in read_dialogues(files[role]) if role in files else []:
            if found.get(dialogue.dialogue_id, dialogue) != dialogue:
                log.warning(
                    "%s: dialogue %r is another one than in %s; this one is taken",
                    files[role], dialogue.dialogue_id, files["data"],
                )  # fmt: skip
            found[dialogue.dialogue_id] = dialogue
    return found


def _source(record: Record, source: str | None, where: str) -> str:
    """Return whose ratings a record holds; simulated ones must never be read as people's."""
    given = find(record, SOURCE_FIELD)
    if given is NOTHING:
        return source or "human"
    if not isinstance(given, str) or source not in (None, given):
        raise SchemaError(
            f"{SOURCE_FIELD} is {given!r}", where=where, expected=f"{source!r}, as in the file of systems"
        )
    return given


def _turns(
    columns: ColumnMap,
    records: _Records,
    source: str | None,
    known: Mapping[str, Dialogue],
    responses: dict[str, dict[tuple[str, int], str]],
) -> Iterator[Row]:
    """Yield the ratings of the turns, and put the responses into ``responses``."""
    for where, record in records:
        dialogue, system = columns.name(record, "dialogue_id", where), columns.name(record, "system_id", where)
        written = columns.whole(record, "turn", where)
        turn = written - columns.first_turn
        if dialogue not in known or not 0 <= turn < known[dialogue].turns:
            from_one = "If turns are counted from 1, say so: `first_turn: 1` in the column map"
            raise SchemaError(
                f"dialogue {dialogue!r}, turn {written}",
                where=where,
                expected=f"a dialogue of the dialogue files and a turn counted from {columns.first_turn}",
                hint=from_one if dialogue in known and turn == known[dialogue].turns else None,
            )
        answers = responses.setdefault(system, {})
        if (dialogue, turn) in answers:
            raise SchemaError(
                f"dialogue {dialogue!r}, turn {written}, system {system!r} twice", where=where, expected="once"
            )
        answers[dialogue, turn] = columns.text(record, "response", where)
        yield from _ratings(columns, record, ("turn", context_id(dialogue, turn), system), source, where)


def _whole_dialogues(
    columns: ColumnMap, records: _Records, source: str | None, answered: set[tuple[str, str]]
) -> Iterator[Row]:
    """Yield the ratings of the dialogues, and the marks on axes."""
    seen = set()
    for where, record in records:
        dialogue, system = columns.name(record, "dialogue_id", where), columns.name(record, "system_id", where)
        if (dialogue, system) not in answered:
            raise SchemaError(
                f"dialogue {dialogue!r}, system {system!r}",
                where=where,
                expected="one that has responses in the turn-level file",
            )
        if (dialogue, system) in seen:
            raise SchemaError(f"dialogue {dialogue!r}, system {system!r} twice", where=where, expected="once")
        seen.add((dialogue, system))
        item = ("dialogue", dialogue, system)
        yield from _ratings(columns, record, item, source, where)
        whose = _source(record, source, where)
        for annotator, place, axis, marked in columns.marked(record, where):
            mark = 0.0 if marked else 1.0
            yield base.rating(*item, annotator, axis, mark, AXIS_SCALE, position=place, source=whose)


def _ratings(
    columns: ColumnMap, record: Record, item: tuple[str, str, str], source: str | None, where: str
) -> Iterator[Row]:
    whose = _source(record, source, where)
    for annotator, place, rating in columns.ratings(record, where):
        yield base.rating(*item, annotator, OVERALL, rating, OVERALL_SCALE, position=place, source=whose)


def _report_counts(dataset: str, tables: Tables, counts: Mapping[str, int]) -> None:
    """Log how the counts differ from the paper's, if the options have these."""
    rated = tables["ratings"][tables["ratings"]["level"] == "dialogue"]
    found = {
        "systems": len(tables["systems"]),
        "dialogues": tables["contexts"]["dialogue_id"].nunique(),
        "turns": len(tables["responses"]),
        "rated_dialogues": len(rated[["item_id", "system_id"]].drop_duplicates()),
    }
    for name, expected in counts.items():
        level = logging.INFO if found[name] == expected else logging.WARNING
        log.log(level, "%s: %d %s, the paper counts %d", dataset, found[name], name.replace("_", " "), expected)


def _read_rated(
    files: Files, about: Mapping[str, Any], options: Mapping[str, Any], turns: Mapping[str, int]
) -> dict[str, tuple[ColumnMap, _Records]]:
    """Return the column map and the records of each level, after checking that the maps fit the files.

    Raises
    ------
    SchemaError
        One for both files, when a field that a map names is in no record: lists what is missing, the fields there are
        and a map to paste, made with ``turns`` (how many turns each dialogue has).
    """
    columns = about.get("columns") or options.get("columns", {})
    paths = {level: files[role] for level, role in _LEVELS.items()}
    maps = {level: ColumnMap(level, columns.get(level, {})) for level in paths}
    contents = {level: _content(path, maps[level]) for level, path in paths.items()}
    if any(content.problem for content in contents.values()):
        counts = dict(options.get("counts") or {})
        raise _misfit(paths, maps, contents, turns, counts, own="columns" in about)
    return {
        level: (maps[level], [(f"{path}, record {n}", record) for n, record in enumerate(contents[level].records, 1)])
        for level, path in paths.items()
    }


def _misfit(
    paths: Files,
    maps: Mapping[str, ColumnMap],
    contents: Mapping[str, Content],
    turns: Mapping[str, int],
    counts: Mapping[str, int],
    *,
    own: bool,
) -> SchemaError:
    wrong = {level: found.problem for level, found in contents.items() if found.problem}
    first, *others = [(paths[level], problem) for level, problem in wrong.items()]
    shown = "".join(_shown(paths[level], contents[level].records) for level in wrong)
    proposal = {
        level: propose(contents[level], found, turns) if level in wrong else ordered(found.columns)
        for level, found in maps.items()
    }
    block = {"comperdial": {"columns": proposal, **({"counts": counts} if counts else {})}}
    text = yaml.safe_dump(block, sort_keys=False, allow_unicode=True, width=10_000)
    return SchemaError(
        "; ".join([first[1], *(f"{path}: {problem}" for path, problem in others)]),
        where=str(first[0]),
        expected="the fields that "
        + ("`columns` in the file of systems" if own else f"comperdial.columns.{'/'.join(wrong)} in params.yaml")
        + " names",
        hint=f"What there is:\n{shown}"
        "This map is made from names and values alone. Put it in place of `comperdial` in params.yaml, check it, "
        f"and fill in each ???{', and take `columns` out of the file of systems' if own else ''}:\n{text}",
    )


def _content(path: Path, columns: ColumnMap) -> Content:
    """Return the records of a file; if the map does not fit, with what is wrong, and the list that is likely meant."""
    content = read_json(path)
    found = content if columns.records is None else find(content, columns.records)
    if isinstance(found, list):
        for number, record in enumerate(found, start=1):
            if not isinstance(record, dict):
                raise SchemaError(f"holds {said(record)}", where=f"{path}, record {number}", expected="a JSON object")
        if not found:
            raise SchemaError("no records", where=str(path), expected="a list of records")
        missing = _lacking(found, columns)
        return Content(found, columns.records, "".join(_no_fields(missing)), set(missing))
    lists = {"": content} if isinstance(content, list) else dict(flat(content)) if isinstance(content, dict) else {}
    good = {place: value for place, value in lists.items() if _are_records(value)}
    place = max(good, key=lambda name: len(good[name]), default="")
    records: list[Record] = good.get(place, [content] if isinstance(content, dict) and content else [])
    if columns.records is not None:
        problem = f"no list of records in {columns.records!r}"
    else:
        kind = "an object" if isinstance(content, dict) else said(content)
        problem = f"{kind} and no list of records, and the map names no `records`"
    missing = _lacking(records, columns)
    return Content(records, place or None, "; ".join([problem, *_no_fields(missing)]), set(missing))


def _are_records(value: Any) -> bool:  # noqa: ANN401
    return isinstance(value, list) and bool(value) and all(isinstance(record, dict) for record in value)


def _lacking(records: list[Record], columns: ColumnMap) -> dict[str, list[str]]:
    """Return our name -> the fields that the map names for it and no record has."""
    found = {
        name: [field for field in fields if all(find(record, field) is NOTHING for record in records)]
        for name, fields in columns.named().items()
    }
    return {name: fields for name, fields in found.items() if fields}


def _no_fields(missing: Mapping[str, list[str]]) -> list[str]:
    fields = [repr(field) for lacking in missing.values() for field in lacking]
    return [f"no field {', '.join(fields)}"] if fields else []


def _shown(path: Path, records: list[Record]) -> str:
    examples = examples_of(records)
    lines = [f"  {name}: {said(value)}" for name, value in list(examples.items())[:_SHOWN]]
    if len(examples) > _SHOWN:
        lines.append(f"  … and {len(examples) - _SHOWN} more")
    return f"{path.name}, each field with an example:\n" + "".join(f"{line}\n" for line in lines or ["  (none)"])
