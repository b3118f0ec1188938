"""The paper's tables of correlations (3, 4, 5, 6, 15, 16): ours, with interval and rank, beside the reported values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from comperdial.errors import SchemaError, UnknownNameError
from comperdial.report.document import Document, Section, number, records_by, with_suffix
from comperdial.report.paper_rows import Layout, Row, expand
from comperdial.report.tables import (
    COEFFICIENT_NAMES,
    READING,
    level_title,
    of_target,
    partial_notes,
    pooled,
    why_no_scores,
    with_interval,
    with_star,
)

# The data set that the paper's Tables 3, 4, 5 and 15 are about.
PAPERS = "comperdial"
CEILING = "One rater against the mean of the others"
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
        The table (:func:`comperdial.report.paper_rows.read_layout`).
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
        What each metric of a judge is (:func:`comperdial.report.paper_rows.expand`).

    Returns
    -------
    DataFrame
        One row a table row, data set, level and coefficient: section, label, metric, output; ours (value, low, high, p,
        n, rank, coverage, cut); reported, its data set, starred and place; the difference ours - reported where both
        are of one data set; why there are no scores; a note. The ceiling's ``low`` and ``high`` are the lowest and the
        highest rater. Missing is missing.
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
    columns = dict.fromkeys(("ours", "low", "high", "p", "coverage", "cut", "reported", "difference"), "float64")
    return pd.DataFrame(records).astype(columns | {"n": "Int32", "rank": "Int32"})


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
        **{name: mine.get(name) for name in ("low", "high", "p", "n", "rank", "coverage", "cut", "lacking")},
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
        Ends the caption, for example to say that the data are simulated.
    """
    datasets = list(dict.fromkeys(frame["dataset"]))
    elsewhere = [name for name in datasets if not (frame.loc[frame["dataset"] == name, "reported_of"] == name).any()]
    columns = [("", "Part"), ("", "Metric")]
    for name in datasets:
        for coefficient in layout.coefficients:
            group = (
                COEFFICIENT_NAMES[coefficient]
                if len(datasets) == 1
                else f"{titles.get(name, name)} {COEFFICIENT_NAMES[coefficient]}"
            )
            columns += [(group, "ours"), (group, "paper" if name not in elsewhere else "paper, on ComperDial")]
            columns += [] if name in elsewhere else [(group, "difference")]
    sections = []
    for level, against in layout.levels.items():
        of_level = frame[(frame["level"] == level) & (frame["against"] == against)]
        # Two rows may be called alike: what they show tells them apart.
        key = ["section", "label", "metric", "output"]
        of_level = of_level.assign(**{name: of_level[name].fillna("") for name in ("metric", "output")})
        cells = records_by(of_level, [*key, "dataset", "coefficient"])
        rows = []
        for place in dict.fromkeys(of_level[key].itertuples(index=False, name=None)):
            row = [*place[:2]]
            for name in datasets:
                for coefficient in layout.coefficients:
                    row += _cells(cells.get((*place, name, coefficient)), name in elsewhere)
            if set(row[2:]) != {"–"}:
                rows.append(row)
        sections.append(Section(level_title(level, against), columns, rows))
    shown = ", ".join(titles.get(name, name) for name in datasets)
    return Document(
        title=f"Table {int(layout.number)}. {layout.title}: {shown}",
        caption=with_suffix(
            f"{layout.caption} {shown}; rated dimension: {target}. Beside ours, what the ComperDial paper reports"
            + (", of its own data: not to be compared with ours." if elsewhere else "."),
            suffix,
        ),
        sections=sections,
        tidy=frame,
        notes=_notes(frame, elsewhere, titles),
    )


def _cells(record: Mapping[str, Any] | None, elsewhere: bool) -> list[str]:
    if record is None:
        return ["–"] * (2 if elsewhere else 3)
    if record["label"] == CEILING:
        ours = number(record["ours"])
    elif isinstance(record["not_run"], str):
        ours = _NOT_RUN
    else:
        ours = with_interval({**record, "value": record["ours"]})
    texts = [ours, with_star(record["reported"], record["reported_starred"] is True)]
    return texts if elsewhere else [*texts, number(record["difference"], sign=True)]


def _notes(frame: pd.DataFrame, elsewhere: Sequence[str], titles: Mapping[str, str]) -> list[str]:
    notes = list(READING)
    if elsewhere:
        names = ", ".join(titles.get(name, name) for name in elsewhere)
        notes.append(f"What the paper reports is of ComperDial and not of {names}: no difference is given")
    else:
        notes.append("Difference is ours minus the paper's; a dash means that there is no such value")
    scored = frame[frame["coverage"].notna() & frame["ours"].notna()]
    notes += partial_notes(scored, "label")
    notes += [
        f"{label}: {note}" for label, note in frame.drop_duplicates("label").set_index("label")["note"].dropna().items()
    ]
    notes += _ceiling_notes(frame, titles)
    # Many rows share a reason: it is said once.
    absent = frame[frame["not_run"].notna()].drop_duplicates(["label", "dataset"])
    for why, group in absent.groupby("not_run", sort=False):
        notes.append(f"{_NOT_RUN}: {'; '.join(dict.fromkeys(group['label']))}: {why}")
    return notes


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
