"""ComperDial's descriptive tables: the benchmarks compared, and how much of each was rated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from comperdial import schema
from comperdial.core.errors import SchemaError
from comperdial.core.names import RATED_LEVELS
from comperdial.report.captions import with_suffix
from comperdial.report.document import Document, Section, records_by
from comperdial.report.tables import LEVEL_NAMES

BENCHMARK_COLUMNS = ("source", "place", "benchmark", "group", "property", "value", "note")
COUNT_COLUMNS = ("source", "place", "benchmark", "dialogue_dataset", "dataset", "turn", "dialogue", "system", "note")
_NONE = "–"
_NOT_APPLICABLE = "N/A"


def benchmarks_document(frame: pd.DataFrame) -> Document:
    """Render ``benchmarks.csv``: Table 7, which holds Table 1, and how ComperDial was collected."""
    in_table = frame["place"].str.startswith("Table")
    compared, collected = frame[in_table], frame[~in_table]
    benchmarks = list(dict.fromkeys(compared["benchmark"]))
    cells = records_by(compared, ["group", "property", "benchmark"])
    properties = list(dict.fromkeys(zip(compared["group"], compared["property"], strict=True)))
    rows = [
        [group, name, *(str(cells.get((group, name, b), {"value": _NONE})["value"]) for b in benchmarks)]
        for group, name in properties
    ]
    columns = [("", "Group"), ("", "Property"), *(("", name) for name in benchmarks)]
    sections = [Section("Benchmarks of dialogue evaluation", columns, rows)]
    if len(collected):
        facts = [[str(r["property"]), str(r["place"]), str(r["value"])] for r in collected.to_dict("records")]
        columns = [("", "Fact"), ("", "Where it is said"), ("", " and ".join(collected["benchmark"].unique()))]
        sections.append(Section("Collection", columns, facts))
    return Document(
        title="Benchmarks of dialogue evaluation",
        caption=(
            "What the benchmarks take their dialogues from, who answered, and how the answers were rated, as Tables 1 "
            "and 7 of the ComperDial paper report it. A dash stands where the paper's cell is empty."
        ),
        sections=sections,
        tidy=frame.reset_index(drop=True),
        notes=_notes(frame, ["benchmark", "property"]),
    )


def count_tables(folder: str | Path, *, source: str = "human") -> dict[str, int | None]:
    """Count what a dataset's tables hold, as the paper's Table 8 counts it.

    Parameters
    ----------
    folder
        Folder with ``systems.parquet`` and ``ratings.parquet``.
    source
        Whose ratings count: ``human`` or the name of a judge.

    Returns
    -------
    dict
        ``turn``: rated responses; ``dialogue``: rated pairs of a dialogue and a system; ``system``: systems rated at
        either level, of which ``agents`` and ``humans``. None of them takes in references: ``references`` counts the
        rated responses that are one. A level without ratings is None.
    """
    folder = Path(folder)
    systems = schema.read(folder / "systems.parquet", "systems")
    kinds = dict(zip(systems["system_id"], systems["kind"], strict=True))
    ratings = schema.ratings_in(folder)
    rated: dict[str, set[tuple[str, str]] | None] = dict.fromkeys(RATED_LEVELS)
    for level, of_level in ratings.groupby("level"):
        of_level = of_level[of_level["source"] == source]
        rated[str(level)] = set(zip(of_level["item_id"], of_level["system_id"], strict=True))
    names = {system for pairs in rated.values() for _, system in pairs or ()}
    if unknown := sorted(names - set(kinds)):
        raise SchemaError(
            f"ratings of {unknown[0]!r}, which is no system", where=str(folder), expected="a known system"
        )
    references = {name for name in names if kinds[name] == "reference"}

    def without_references(pairs: set[tuple[str, str]] | None) -> int | None:
        return None if pairs is None else sum(system not in references for _, system in pairs)

    return {
        "turn": without_references(rated["turn"]),
        "dialogue": without_references(rated["dialogue"]),
        "system": len(names - references),
        "agents": sum(kinds[name] == "agent" for name in names),
        "humans": sum(kinds[name] == "human" for name in names),
        "references": sum(system in references for _, system in rated["turn"] or ()),
    }


def counts_document(reported: pd.DataFrame, ours: pd.DataFrame, suffix: str = "") -> Document:
    """Render the counts of annotations that the paper reports (its Table 8) beside those of our tables.

    Parameters
    ----------
    reported
        ``src/comperdial/studies/comperdial/annotation_counts.csv``, as :func:`comperdial.core.files.read_table` reads it.
    ours
        Columns dataset, title, turn, dialogue, system (missing where there is no such rating), and, if known,
        references; one row a dataset. A dataset that the paper does not have gets a row of its own.
    suffix
        Text appended to the caption, for example that data are simulated.
    """
    mine = records_by(ours, ["dataset"])
    if len(mine) < len(ours):
        raise SchemaError("two counts of one dataset", where="counts of our tables", expected="each dataset once")
    blank: dict[str, Any] = {
        "source": None,
        "place": None,
        "note": "",
        "dialogue_dataset": _NONE,
        **dict.fromkeys(LEVEL_NAMES),
    }
    more: list[dict[str, Any]] = [
        blank | {"benchmark": str(count["title"]), "dataset": name}
        for (name,), count in mine.items()
        if name not in set(reported["dataset"])
    ]
    rows, tidy, differences = [], [], []
    for record in [*_records(reported), *more]:
        count = mine.get((record["dataset"],))
        place = f"{record['benchmark']}, {record['dialogue_dataset']}".removesuffix(f", {_NONE}")
        row = [record["benchmark"], record["dialogue_dataset"], str(count["title"]) if count else _NONE]
        for level, title in LEVEL_NAMES.items():
            theirs = _count(record[level], place)
            found = _count(count[level], place) if count else None
            difference = None if theirs is None or found is None else found - theirs
            row += [
                _NONE if record["source"] is None else _text(theirs),
                _text(found) if count else _NONE,
                _NONE if difference is None else f"{difference:+d}" if difference else "0",
            ]
            if difference:
                differences.append(f"{place}, {title.lower()}: {found} counted, {theirs} reported")
            tidy.append(
                {key: record[key] for key in ("benchmark", "dialogue_dataset", "dataset")}
                | {"level": level, "reported": theirs, "ours": found, "difference": difference}
                | {"source": record["source"], "note": record["note"]}
            )
        rows.append(row)
        if count and pd.notna(count.get("references")) and count["references"]:
            differences.append(f"{place}: {int(count['references'])} rated references are not in our count of turns")
    columns = [("", "Benchmark"), ("", "Dialogue dataset"), ("", "Our tables")]
    columns += [(title, name) for title in LEVEL_NAMES.values() for name in ("reported", "ours", "difference")]
    return Document(
        title="How much was rated",
        caption=with_suffix(
            "Rated responses (turn level), rated dialogues and systems, as Table 8 of the ComperDial paper has them "
            "and as counted from our tables: references left out, a dialogue counted once for each system.",
            suffix,
        ),
        sections=[Section("Annotation counts", columns, rows)],
        tidy=pd.DataFrame(tidy).astype(dict.fromkeys(("reported", "ours", "difference"), "Int64")),
        notes=[
            "N/A: not rated at this level. A dash: we have no tables of the dataset, or nothing to compare with. "
            "Difference is ours minus reported",
            *differences,
            *_notes(reported, ["benchmark", "dialogue_dataset"]),
        ],
    )


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in record.items()} for record in frame.to_dict("records")]


def _count(value: Any, where: str) -> int | None:  # noqa: ANN401
    """Return a count, or None for ``N/A`` and for a missing value."""
    if value is None or pd.isna(value) or value in ("", _NOT_APPLICABLE):
        return None
    number = pd.to_numeric(value, errors="coerce")
    if pd.isna(number) or number < 0 or number != int(number):
        raise SchemaError(f"the count is {value!r}", where=where, expected=f"a whole number or {_NOT_APPLICABLE}")
    return int(number)


def _text(count: int | None) -> str:
    return _NOT_APPLICABLE if count is None else str(count)


def _notes(frame: pd.DataFrame, names: list[str]) -> list[str]:
    """Return each note once, after the row that it is about; one that several rows share stands for itself."""
    noted = frame[frame["note"].fillna("") != ""]
    return [
        f"{', '.join(group[names].iloc[0])}: {note}" if len(group) == 1 else f"{str(note)[0].upper()}{str(note)[1:]}"
        for note, group in noted.groupby("note", sort=False)
    ]
