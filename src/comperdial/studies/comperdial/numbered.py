"""The paper's tables of correlations (3, 4, 5, 6, 15, 16): ours, with interval and rank, beside the reported values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial.config import load_yaml
from comperdial.core.errors import ConfigError, FileError, SchemaError, UnknownNameError
from comperdial.report import leave_out
from comperdial.report.captions import SIMULATED, with_suffix
from comperdial.report.document import Column, Document, number, pivot, records_by
from comperdial.report.labels import not_run_notes
from comperdial.report.tables import (
    COEFFICIENT_NAMES,
    READING,
    beside,
    corrected_over,
    few_notes,
    level_title,
    of_target,
    partial_notes,
    pooled,
    why_no_scores,
    with_interval,
)

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
                    text = entry["label"]
                    label = text.replace("{output}", output) if "{output}" in text else f"{text}, {output}"
                    yield Row("Recorded answers", label, metric, output, optional=True, judge=entry["judge"])


# The data set that the paper's Tables 3, 4, 5 and 15 are about.
PAPERS = "comperdial"
CEILING = "One rater against the mean of the others"
REPORTED = (
    "what the paper reports of its own data is in docs/reproduction-notes.md and src/comperdial/studies/comperdial/"
    "correlations.csv"
)
"""Where reported values are that do not stand next to simulated ones."""
_REPORTED = ["reported", "reported_starred", "reported_of", "place", "difference"]
_SECTION_OF_RATERS = "Raters"
_NOT_RUN = "not run"


def paper_frame(
    layout: Layout,
    correlations: pd.DataFrame,
    ceilings: pd.DataFrame,
    reported: pd.DataFrame,
    *,
    datasets: Sequence[str],
    target: str,
    not_run: Mapping[str, str],
    judges: Mapping[str, Mapping[str, Any]],
) -> pd.DataFrame:
    """Put our values beside the reported ones, in the rows of one of the paper's tables.

    Parameters
    ----------
    layout
        The table (:func:`read_layout`).
    correlations, ceilings
        Tables of these names, of all the data sets.
    reported
        Reported correlations; without a column ``against`` they are taken to be with ratings of turns.
    datasets
        Which data sets, in this order.
    target
        The rated dimension.
    not_run
        Metrics that could not run, and why.
    judges
        What each metric of a judge is (:func:`expand`).

    Returns
    -------
    DataFrame
        One row a table row, data set, level and coefficient: section, label, metric, output; ours (value, low, high,
        loso_value, loso_system, loso_halved, p, n, rank, tests, coverage, cut); reported, its data set, starred and place; the
        difference ours - reported where both are of one data set; why there are no scores; a note. The ceiling's
        ``low`` and ``high`` are the lowest and the highest rater. Missing is missing.
    """
    for name in datasets:
        if name not in set(correlations["dataset"]):
            raise UnknownNameError("dataset", name, correlations["dataset"].unique())
    found = of_target(pooled(correlations), target)
    # The tables are of the overall rating; another dimension is not held against it.
    theirs = reported[(reported["target"] == target) & (reported["source"] == layout.source)]
    theirs = theirs.assign(against=theirs["against"].fillna("turn") if "against" in theirs else "turn")
    key = ["dataset", "level", "against", "coefficient", "metric"]
    published = records_by(theirs, key)
    if len(published) < len(theirs):
        raise SchemaError("two reported values of one thing", where=layout.source, expected="each value once")
    ours = records_by(found, [*key, "output"])
    cells = [
        {"dataset": dataset, "level": level, "against": against, "coefficient": coefficient}
        for level, against in layout.levels.items()
        for dataset in datasets
        for coefficient in layout.coefficients
    ]
    known = set(theirs["dataset"])
    records = []
    for row in expand(layout, correlations, judges):
        reasons = {name: _why_not(row, correlations, name, not_run, judges) for name in datasets}
        if row.optional and all(reasons.values()):
            continue
        for cell in cells:
            place = tuple(cell.values())
            of = cell["dataset"] if cell["dataset"] in known else PAPERS
            mine = ours.get((*place, row.metric or "", row.output or ""), {})
            other = published.get((of, *place[1:], row.reported or ""), {})
            records.append(_record(cell, row, mine, other, reasons[cell["dataset"]] if not row.optional else None))
    records += _ceiling_records(cells, ceilings[ceilings["target"] == target] if len(ceilings) else ceilings)
    numbers = ("ours", "low", "high", "loso_value", "p", "coverage", "cut", "reported", "difference")
    columns = dict.fromkeys(numbers, "float64")
    return leave_out.with_halved(
        pd.DataFrame(records).astype(columns | {"n": "Int32", "rank": "Int32", "tests": "Int32"}), "ours"
    )


_OURS = ("low", "high", "loso_value", "loso_system", "p", "n", "rank", "tests", "coverage", "cut", "lacking")


def _record(
    cell: Mapping[str, str], row: Row, mine: Mapping[str, Any], other: Mapping[str, Any], why: str | None
) -> dict[str, Any]:
    value, theirs = mine.get("value"), other.get("value")
    same = other.get("dataset") == cell["dataset"]
    return {
        "section": row.section,
        "label": row.label,
        **cell,
        "metric": row.metric,
        "output": row.output,
        "ours": value,
        **{name: mine.get(name) for name in _OURS},
        "reported": theirs,
        "reported_starred": other.get("starred"),
        "reported_of": other.get("dataset"),
        "place": other.get("place"),
        "difference": None if value is None or theirs is None or not same else value - theirs,
        "not_run": why,
        "note": row.note,
    }


def _ceiling_records(cells: Sequence[Mapping[str, str]], ceilings: pd.DataFrame) -> list[dict[str, Any]]:
    """Average over the raters how well each of them agrees with the others."""
    if ceilings.empty:
        return []
    chosen = ceilings[ceilings["grouping"] == "pooled"]
    keys = ["dataset", "level", "against", "coefficient"]
    of_cell = dict(iter(chosen.groupby(keys)))
    records = []
    for cell in cells:
        group = of_cell.get(tuple(cell.values()))
        # A rater without a value (too few ratings, all the same) is left out.
        values = group["value"].dropna() if group is not None else pd.Series(dtype="float64")
        if group is None or values.empty:
            continue
        records.append(
            {"section": _SECTION_OF_RATERS, "label": CEILING, **cell, "ours": values.mean()}
            | {"low": values.min(), "high": values.max(), "raters": len(values)}
        )
    return records


def _why_not(
    row: Row,
    correlations: pd.DataFrame,
    dataset: str,
    not_run: Mapping[str, str],
    judges: Mapping[str, Mapping[str, Any]],
) -> str | None:
    if row.metric is None:
        return row.not_run
    present = correlations[(correlations["metric"] == row.metric) & (correlations["dataset"] == dataset)]
    if row.output in set(present["output"]):
        return why_no_scores(present[present["output"] == row.output])
    if len(present):
        return f"metric {row.metric!r} has no output {row.output!r}"
    if row.metric in not_run:
        return not_run[row.metric]
    if row.metric in judges:
        return f"{row.judge} is no judge of {dataset} (params.yaml, judging.judges)"
    return f"no scores of {dataset}"


def paper_document(
    frame: pd.DataFrame, layout: Layout, titles: Mapping[str, str], target: str, *, suffix: str = ""
) -> Document:
    """Render the frame of :func:`paper_frame`: a section a level, for each coefficient ours and what is reported.

    Parameters
    ----------
    frame, layout
        The values and the table.
    titles
        A title for each data set.
    target
        The rated dimension.
    suffix
        Ends the caption, for example to say that the data are simulated. Reported values do not stand next to
        simulated ones: :data:`REPORTED` says where they are.
    """
    simulated = suffix == SIMULATED
    if simulated:
        frame = frame[frame["ours"].notna() | frame["not_run"].notna()].drop(columns=_REPORTED)
    datasets = list(dict.fromkeys(frame["dataset"]))
    elsewhere = [] if simulated else _elsewhere(frame, datasets)
    columns = []
    for name in datasets:
        reported = "paper, on ComperDial" if name in elsewhere else "paper"
        for coefficient in layout.coefficients:
            group = f"{titles.get(name, name) if len(datasets) > 1 else ''} {COEFFICIENT_NAMES[coefficient]}".strip()
            key, compared = (name, coefficient), name not in elsewhere
            if simulated:
                columns.append(Column(group if len(datasets) > 1 else "", COEFFICIENT_NAMES[coefficient], _ours, key))
            else:
                columns += beside(group, key, _ours, reported=reported, difference=compared)
    sections = []
    for level, against in layout.levels.items():
        of_level = frame[(frame["level"] == level) & (frame["against"] == against)]
        # Two rows may be called alike: what they show tells them apart.
        of_level = of_level.assign(**{name: of_level[name].fillna("") for name in ("metric", "output")})
        cells = records_by(of_level, ["section", "label", "metric", "output", "dataset", "coefficient"])
        rows = {place[:4]: place[:2] for place in cells}
        empty = ("–", _NOT_RUN) if simulated else ("–",)
        sections.append(pivot(level_title(level, against), cells, rows, ["Part", "Metric"], columns, empty=empty))
    shown = ", ".join(titles.get(name, name) for name in datasets)
    return Document(
        title=f"Table {int(layout.number)}. {layout.title}: {shown}",
        caption=with_suffix(
            leave_out.with_legend(
                f"{layout.caption} {shown}; rated dimension: {target}. Rows stand in the paper's order. "
                + (f"Ours alone: {REPORTED}." if simulated else "Beside ours, what the ComperDial paper reports")
                + ("" if simulated else ", of its own data: not to be compared with ours." if elsewhere else "."),
                frame,
                "ours",
            ),
            suffix,
        ),
        sections=sections,
        tidy=frame,
        notes=_notes(frame, elsewhere, titles, simulated=simulated),
    )


def _elsewhere(frame: pd.DataFrame, datasets: Sequence[str]) -> list[str]:
    """Return the data sets that the paper reports nothing of."""
    return [name for name in datasets if not (frame.loc[frame["dataset"] == name, "reported_of"] == name).any()]


def _ours(record: Mapping[Any, Any]) -> str:
    if record["label"] == CEILING:
        return number(record["ours"])
    return _NOT_RUN if isinstance(record["not_run"], str) else with_interval({**record, "value": record["ours"]})


def _notes(frame: pd.DataFrame, elsewhere: Sequence[str], titles: Mapping[str, str], *, simulated: bool) -> list[str]:
    notes = [*READING, *corrected_over(frame, titles), *few_notes(frame[frame["ours"].notna()])]
    if simulated:
        pass
    elif elsewhere:
        names = ", ".join(titles.get(name, name) for name in elsewhere)
        notes.append(f"What the paper reports is of ComperDial and not of {names}: no difference is given")
    else:
        notes.append("Difference is ours minus the paper's, before rounding; a dash means that there is no such value")
    scored = frame[frame["coverage"].notna() & frame["ours"].notna()]
    notes += leave_out.notes(scored, titles if scored["dataset"].nunique() > 1 else None, "ours")
    notes += partial_notes(scored, "label")
    notes += [
        f"{label}: {note}" for label, note in frame.drop_duplicates("label").set_index("label")["note"].dropna().items()
    ]
    notes += _ceiling_notes(frame, titles)
    absent = frame[frame["not_run"].notna()]
    return notes + not_run_notes(zip(absent["label"], absent["not_run"], strict=True))


def _ceiling_notes(frame: pd.DataFrame, titles: Mapping[str, str]) -> list[str]:
    ceiling = frame[frame["label"] == CEILING]
    notes = []
    for (dataset, level, against), group in ceiling.groupby(["dataset", "level", "against"], sort=False):
        ranges = ", ".join(
            f"{COEFFICIENT_NAMES[cell['coefficient']]} {number(cell['low'])} to {number(cell['high'])}"
            for cell in group.to_dict("records")
        )
        where = f"{titles.get(str(dataset), str(dataset))}, {level_title(str(level), str(against)).lower()}"
        notes.append(
            f"{CEILING}, {where}: mean of "
            f"{int(group['raters'].max())} raters; the lowest and the highest of them: {ranges}"
        )
    return notes
