"""The rows of the paper's tables of correlations: read from ``data/paper/comperdial_rows.yaml``, judges filled in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial.config import load_yaml
from comperdial.errors import ConfigError, FileError, UnknownNameError

_TABLE_KEYS = {"title", "caption", "levels", "coefficients", "sections", "judges", "once", "recorded", "reported"}
_ROW_KEYS = {"label", "metric", "output", "reported", "note", "not_run"}
_JUDGED_KEYS = {"label", "variant", "output", "name", "judges", "reported"}
_KINDS = ("rows", "judged", "further")


@dataclass(frozen=True)
class Row:
    """One row: what it is called, which score of ours it shows, which reported metric stands beside.

    ``metric`` is None where there is no such score here; ``not_run`` then says why. ``optional`` rows are left out
    where there are no scores. ``judge`` is who judged, of a row of a judge.
    """

    section: str
    label: str
    metric: str | None
    output: str | None = None
    reported: str | None = None
    note: str | None = None
    not_run: str | None = None
    optional: bool = False
    judge: str | None = None


@dataclass(frozen=True)
class Layout:
    """What one table of the paper shows.

    ``levels`` maps a level to the level of the ratings; ``reported`` names the file of the reported values, of which
    those of ``source`` count; ``recorded`` says whether recorded answers of judges have rows.
    """

    number: str
    source: str
    reported: str
    title: str
    caption: str
    levels: Mapping[str, str]
    coefficients: tuple[str, ...]
    once: bool
    recorded: bool
    sections: Sequence[Mapping[str, Any]]
    judges: Mapping[str, str]
    papers_judges: frozenset[str]


def read_layout(path: str | Path, number: str) -> Layout:
    """Read one table's rows.

    Raises
    ------
    FileError, ConfigError
        When the file is not in its form.
    UnknownNameError
        When there is no such table.
    """
    content = load_yaml(path)
    tables, judges = content.get("tables"), content.get("judges", {})
    if not isinstance(tables, dict) or not {"source", "reported"} <= set(content):
        raise FileError("no `source`, `reported` and mapping `tables`", where=str(path), expected="tables by number")
    if number not in tables:
        raise UnknownNameError("table", number, tables, where=str(path))
    table, where = tables[number], f"{path}, table {number}"
    if unknown := sorted(set(table) - _TABLE_KEYS):
        raise UnknownNameError("setting", unknown[0], _TABLE_KEYS, where=where)
    for section in table["sections"]:
        _check_section(section, f"{where}, section {section.get('section')!r}")
    asked = table.get("judges", list(judges))
    if strange := [name for name in asked if name not in judges]:
        raise UnknownNameError("judge", strange[0], judges, where=where)
    return Layout(
        number=number,
        source=content["source"],
        reported=table.get("reported", content["reported"]),
        title=table["title"],
        caption=table["caption"],
        levels=dict(table["levels"]),
        coefficients=tuple(table["coefficients"]),
        once=bool(table.get("once")),
        recorded=bool(table.get("recorded")),
        sections=table["sections"],
        judges={name: judges[name] for name in asked},
        papers_judges=frozenset(judges),
    )


def _check_section(section: Mapping[str, Any], where: str) -> None:
    kinds = [kind for kind in _KINDS if kind in section]
    if "section" not in section or len(kinds) != 1:
        raise ConfigError(
            "the section is half defined", where=where, expected="`section` and one of rows, judged, further"
        )
    known = _JUDGED_KEYS if kinds == ["judged"] else _ROW_KEYS
    for row in section[kinds[0]]:
        if unknown := sorted(set(row) - known):
            raise UnknownNameError("setting", unknown[0], known, where=where)
        of_judge = kinds == ["judged"] and "variant" in row
        ours = ("metric" in row) != ("not_run" in row) and ("metric" in row) == ("output" in row)
        if "label" not in row or not (of_judge or (kinds != ["judged"] and ours)):
            raise ConfigError(
                f"the row {row!r} is half defined",
                where=where,
                expected="`label` and `variant`"
                if kinds == ["judged"]
                else "`label`, and `metric` and `output` or `not_run`",
            )


def expand(layout: Layout, correlations: pd.DataFrame, judges: Mapping[str, Mapping[str, Any]]) -> list[Row]:
    """Return the rows of a table, in order.

    Parameters
    ----------
    layout
        The table.
    correlations
        Table ``correlations`` of what it is made for: which scores of other judges there are.
    judges
        What each metric of a judge is: ``variant``, ``judge``, ``label``, ``output`` (the main rating), ``main`` and
        ``once`` (whether it is the mean of all answers that the variant asks for, or of a single one). One without a
        variant is of recorded answers.

    Returns
    -------
    list of Row
        The paper's rows, one a judge of the paper where it is of a judge. After the sections of judges: rows of the
        other judges that have scores, of the same variants; then those of recorded answers, each output in a row.
    """
    found: list[Row] = []
    variants: list[str] = []
    for section in layout.sections:
        name = section["section"]
        found += [Row(name, **{"metric": None, **row}) for row in section.get("rows", [])]
        found += [Row(name, **row, optional=True) for row in section.get("further", [])]
        for row in section.get("judged", []):
            variants.append(row["variant"])
            found += [
                _of_judge(layout, name, row, judge, judges)
                for judge in layout.judges
                if judge in row.get("judges", layout.judges)
            ]
    own = [*_others(layout, variants, correlations, judges)]
    after = max((place for place, row in enumerate(found) if row.judge), default=len(found) - 1) + 1
    return [*found[:after], *own, *found[after:]]


def _of_judge(
    layout: Layout, section: str, row: Mapping[str, Any], judge: str, judges: Mapping[str, Mapping[str, Any]]
) -> Row:
    called = layout.judges[judge]
    label = f"{row['label']} ({called})"
    reported = row["reported"].format(judge=called) if "reported" in row else label
    if "name" in row:
        label = reported = f"{label}, {row['name']}"
    wanted = "once" if layout.once else "main"
    for metric, entry in judges.items():
        if entry.get("variant") == row["variant"] and entry["judge"] == judge and entry[wanted]:
            return Row(section, label, metric, row.get("output", entry["output"]), reported, judge=judge)
    why = f"params.yaml has no judge {judge!r} that is asked {row['variant']!r}"
    return Row(section, label, None, None, reported, not_run=why, judge=judge)


def _others(
    layout: Layout, variants: Sequence[str], correlations: pd.DataFrame, judges: Mapping[str, Mapping[str, Any]]
) -> Iterator[Row]:
    outputs: dict[str, list[str]] = {}
    for metric, output in sorted(set(zip(correlations["metric"], correlations["output"], strict=True))):
        outputs.setdefault(metric, []).append(output)
    wanted = "once" if layout.once else "main"
    # The outputs that the table has of a variant: the main one, and those that its rows name.
    named: dict[str, dict[str | None, str]] = {}
    for section in layout.sections:
        for row in section.get("judged", []):
            named.setdefault(row["variant"], {})[row.get("output")] = row.get("name", "")
    for judge in dict.fromkeys(entry["judge"] for entry in judges.values() if entry.get("variant")):
        if judge in layout.papers_judges:
            continue
        for variant in dict.fromkeys(variants):
            for metric, entry in judges.items():
                if (entry.get("variant"), entry["judge"]) != (variant, judge) or not entry[wanted]:
                    continue
                part = f"CPDScore, judged by {judge}"
                row = Row(part, entry["label"], metric, entry["output"], optional=True, judge=judge)
                for output, name in named[variant].items():
                    label = f"{row.label}, {name}" if name else row.label
                    yield replace(row, label=label, output=output or row.output)
    if layout.recorded:
        for metric, entry in judges.items():
            if not entry.get("variant"):
                for output in outputs.get(metric, []):
                    label = f"{entry['label']}, {output}"
                    yield Row("Recorded answers", label, metric, output, optional=True, judge=entry["judge"])
