"""Options of an analysis: subset of units, treatment of missing scores, fixed systems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import pandas as pd

from comperdial.core.errors import ConfigError, UnknownNameError
from comperdial.core.names import LEVELS, RATED_LEVELS, plain_name
from comperdial.data.own_files import is_missing
from comperdial.evaluation.samples import NAME, Sample, Tables

_KEY = ["level", "dataset", "item_id", "system_id"]
_RESPONSE = ["dataset", "context_id", "system_id"]


@dataclass(frozen=True)
class Options:
    """Deviations of an analysis from the defaults.

    ``subset`` lists (column, value) pairs that units must match: any value of a column, and all columns. A rated
    unit without a score is ``left-out`` for that metric, or gets the metric's ``worst`` (lowest) score in its data set. With
    ``fixed`` systems, intervals and tests are over contexts; two or three systems are always fixed.
    """

    subset: tuple[tuple[str, str], ...] = ()
    missing: Literal["left-out", "worst"] = "left-out"
    systems: Literal["sampled", "fixed"] = "sampled"


def analysed(
    tables: Tables,
    options: Options,
    *,
    levels: Sequence[str] = LEVELS,
    targets: Sequence[str] | None = None,
    allow_missing: bool = False,
) -> tuple[list[Sample], list[str]]:
    """Make samples (:meth:`Tables.samples`) whose signatures name non-default options; also return notes."""
    lowest, notes = None, list[str]()
    marks = [f"subset:{column}={value}" for column, value in options.subset]
    if options.missing == "worst":
        # Over the whole data set, not the subset.
        lowest = tables.scores.groupby(["dataset", *NAME])["value"].min()
        marks.append("missing:worst")
        notes.append("A rated unit without a score counts as the lowest score of the metric in the data set")
    if options.subset:
        tables, more = subset(tables, options.subset)
        notes += more
    samples = tables.samples(levels, targets, allow_missing=allow_missing, lowest=lowest)
    if options.systems == "fixed":
        marks.append("systems:fixed")
        samples = [sample.with_systems_given() for sample in samples]
    marked = [tuple("|".join([one, *marks]) for one in sample.signatures) for sample in samples]
    return [replace(sample, signatures=made) for sample, made in zip(samples, marked, strict=True)], notes


def parsed_subset(texts: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return (column, value) of each ``COLUMN=VALUE``."""
    parts = [text.partition("=") for text in texts]
    for text, part in zip(texts, parts, strict=True):
        if not all(part):
            raise ConfigError(f"{text!r}", where="--subset", expected="COLUMN=VALUE, such as turn=1")
    return tuple((column.strip(), value.strip()) for column, _, value in parts)


def subset(tables: Tables, wanted: Sequence[tuple[str, str]]) -> tuple[Tables, list[str]]:
    """Restrict tables to matching responses, and to dialogues whose responses all match.

    Means over dialogues and systems then cover only these. ``wanted`` is (column, value as text); columns are those of the
    tables (context_id, dialogue_id, turn, system_id, kind, track) and of their ``attributes``. A response matches if it has a
    value and all its non-empty cells have a wanted one.

    Returns the tables, and the numbers of rated responses and dialogues kept. Raises an UnknownNameError if a column does not
    exist, a ConfigError if no unit matches.
    """
    scored = tables.scores[tables.scores["level"].isin(RATED_LEVELS)]
    units = pd.concat([scored[_KEY], tables.ratings[_KEY]]).drop_duplicates(ignore_index=True)
    responses = _responses(tables, units)
    known = responses.columns.drop(["unit", "dataset"])
    kept = pd.Series(True, index=units.index)
    chosen: dict[str, list[str]] = {}
    for column, value in dict.fromkeys(wanted):
        chosen.setdefault(column, []).append(str(plain_name(value)))
    for column, values in chosen.items():
        if column not in known:
            raise UnknownNameError("column", column, sorted(known), where="--subset")
        cells = responses.loc[~responses[column].map(is_missing), ["unit", column]]
        texts = cells[column].map(plain_name).astype(str)
        if lost := [value for value in values if value not in {*texts}]:
            expected = f"one of: {', '.join(sorted({*texts})[:20])}"
            raise ConfigError(f"no row has {column}={lost[0]}", where="--subset", expected=expected)
        inside = texts.isin(values).groupby(cells["unit"]).all()
        kept &= inside.reindex(units.index, fill_value=False)
    which = ", ".join(f"{column} = {' or '.join(values)}" for column, values in chosen.items())
    if not kept.any():
        raise ConfigError(f"no unit has {which}", where="--subset", expected="values that occur together")
    notes = []
    for level, what in zip(RATED_LEVELS, ("responses", "dialogues"), strict=True):
        if len(rated := tables.rated(level).assign(level=level)):
            count = len(rated.merge(units[kept], on=_KEY))
            notes.append(f"Subset {which}: {count:,} of {len(rated):,} rated {what}")
    index = pd.MultiIndex.from_frame(units[kept])
    scores, ratings = (one[pd.MultiIndex.from_frame(one[_KEY]).isin(index)] for one in (tables.scores, tables.ratings))
    return replace(tables, scores=scores, ratings=ratings), notes


def _responses(tables: Tables, units: pd.DataFrame) -> pd.DataFrame:
    """Return the responses of each unit, itself or all of a dialogue, with all their columns."""
    rows = units.rename_axis("unit").reset_index()
    turns = rows[rows["level"] == "turn"].rename(columns={"item_id": "context_id"})
    dialogues = rows[rows["level"] == "dialogue"].rename(columns={"item_id": "dialogue_id"})
    if tables.contexts is None:
        turns = turns.assign(dialogue_id=turns["context_id"])
    else:
        turns, dialogues = (frame.merge(tables.contexts, how="left") for frame in (turns, dialogues))
    result = pd.concat([turns, dialogues], ignore_index=True).drop(columns="level")
    if tables.systems is not None:
        columns = tables.systems.columns.intersection(["dataset", "system_id", "kind", "track"])
        result = result.merge(tables.systems[columns], how="left")
    if tables.attributes is not None:
        more = tables.attributes.rename(columns={"item_id": "context_id"})
        more = more.drop(columns=more.columns.intersection(result.columns).difference(_RESPONSE))
        result = result.merge(more, on=_RESPONSE, how="left")
    return result
