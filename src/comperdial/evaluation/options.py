"""Options of an analysis: which units, what a missing score counts as, which systems stay."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial import schema
from comperdial.core.errors import ConfigError, SchemaError, UnknownNameError
from comperdial.core.names import LEVELS, RATED_LEVELS, plain_name
from comperdial.data.own_files import is_missing
from comperdial.evaluation import aggregate
from comperdial.evaluation.samples import FEWEST_SYSTEMS, Sample, samples
from comperdial.stats.means import TIED, system_means

# A system further from the median than this many median absolute deviations is an outlier. The factor makes the deviation
# of a normal sample its standard deviation.
FARTHEST, NORMAL = 2.5, 1.483
_UNIT = ["dataset", "item_id", "system_id"]
_OUTPUT = ["dataset", "level", "metric", "output"]
_KEYS = ["dataset", "context_id", "dialogue_id", "system_id"]


@dataclass(frozen=True)
class Tables:
    """What samples are made of, as :func:`comperdial.evaluation.samples` takes it."""

    scores: pd.DataFrame
    ratings: pd.DataFrame
    contexts: pd.DataFrame | None = None
    systems: pd.DataFrame | None = None
    source: str = "human"

    @classmethod
    def read(cls, folder: Path, score_files: Sequence[str | Path], source: str = "human") -> Tables:
        """Read the tables of a data set, and its scores from any number of files."""
        systems = folder / "systems.parquet"
        return cls(
            aggregate.read_scores(score_files) if score_files else schema.empty("scores"),
            schema.ratings_in(folder),
            aggregate.read_contexts(folder / "contexts.parquet"),
            schema.read(systems, "systems") if systems.is_file() else None,
            source,
        )

    def samples(
        self, levels: Sequence[str] = LEVELS, targets: Sequence[str] | None = None, *, allow_missing: bool = False
    ) -> list[Sample]:
        """Return all samples of these tables."""
        made = samples(
            self.scores, self.ratings, contexts=self.contexts, systems=self.systems, source=self.source,
            levels=levels, targets=targets, allow_missing=allow_missing,
        )  # fmt: skip
        return list(made)

    def rated(self, level: str, targets: Sequence[str] | None = None) -> pd.DataFrame:
        """Return the units of a level (dataset, item_id, system_id) that the source rated, references left out."""
        chosen = aggregate.without_references(self.ratings, self.systems)
        chosen = chosen[(chosen["level"] == level) & (chosen["source"] == self.source)]
        if targets is not None:
            chosen = chosen[chosen["dimension"].isin(list(targets))]
        return chosen[_UNIT].drop_duplicates(ignore_index=True)

    def with_dialogue(self, units: pd.DataFrame, item: str = "item_id") -> pd.Series:
        """Return the dialogue of each context; without a table of contexts, each is a dialogue of its own."""
        if self.contexts is None:
            return units[item]
        names = self.contexts.set_index(["dataset", "context_id"])["dialogue_id"]
        dialogues = names.reindex(pd.MultiIndex.from_frame(units[["dataset", item]])).to_numpy()
        return pd.Series(dialogues, index=units.index).fillna(units[item])

    def of_units(self, chosen: pd.DataFrame) -> Tables:
        """Return the scores and ratings of some units: level, dataset, item_id and system_id."""
        scores, ratings = (frame[_among(frame, chosen)] for frame in (self.scores, self.ratings))
        return replace(self, scores=scores, ratings=ratings)


def _among(rows: pd.DataFrame, others: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Return which rows are of the same units as others, and of the same level if the others have one."""
    key = [*(["level"] if "level" in others else []), *_UNIT]
    return np.asarray(pd.MultiIndex.from_frame(rows[key]).isin(pd.MultiIndex.from_frame(others[key])))


@dataclass(frozen=True)
class Options:
    """What an analysis does otherwise than by default.

    Attributes
    ----------
    subset
        (column, value): only units that have it. Of one column any of several values, of several columns all.
    missing
        What becomes of a rated unit without a score: it is ``left-out`` of that metric; it has the ``worst`` (lowest)
        score that the metric gave in its data set; or it is an ``error``.
    outliers
        ``mad``: systems that people rate far off the others (:func:`outlying`) are left out at system level.
    systems
        ``fixed``: intervals and tests are over contexts, these systems. Two or three systems always count so.
    """

    subset: tuple[tuple[str, str], ...] = ()
    missing: Literal["left-out", "worst", "error"] = "left-out"
    outliers: Literal["none", "mad"] = "none"
    systems: Literal["sampled", "fixed"] = "sampled"


class Analysed(NamedTuple):
    """Samples, and notes on how they were made."""

    samples: list[Sample]
    notes: list[str]


def analysed(
    tables: Tables,
    options: Options,
    *,
    attributes: Iterable[pd.DataFrame] = (),
    levels: Sequence[str] = LEVELS,
    targets: Sequence[str] | None = None,
    allow_missing: bool = False,
) -> Analysed:
    """Make samples with options; signatures of all scores name those that are not the default.

    ``attributes`` are further tables that subsets can be chosen by, as :func:`subset` takes them; ``levels``, ``targets``
    and ``allow_missing`` are as in :func:`comperdial.evaluation.samples`.
    """
    plain, notes = subset(tables, options.subset, attributes) if options.subset else (tables, [])
    filled = plain
    if options.missing == "error":
        check_complete(plain, targets)
    elif options.missing == "worst":
        filled, more = with_worst(plain, targets, given=tables.scores)
        notes += more
    marks = [f"subset:{column}={value}" for column, value in options.subset]
    marks += ["missing:worst"] if options.missing == "worst" else []
    marks += ["systems:fixed"] if options.systems == "fixed" else []
    made: list[Sample] = []
    averaged = False
    for sample in _covered(plain, filled, levels, targets, allow_missing):
        if options.outliers == "none" or not sample.design.average:
            made.append(_marked(sample, marks))
            continue
        averaged = True
        far, why = outlying(sample)
        note = f"{sample.target}, system level, ratings of {sample.against}s: {why}"
        kept = [sample]
        if far:
            part = _without(plain, sample.dataset, far)
            other = part if filled is plain else _without(filled, sample.dataset, far)
            again = _covered(part, other, ["system"], [sample.target], allow_missing=True)
            kept = [one for one in again if one.key == sample.key]
        if not kept:
            note += f"; too few are left: below {FEWEST_SYSTEMS} there is no system level"
        notes.append(note)
        made += [_marked(one, [*marks, f"outliers:mad:{','.join(far) or 'none'}"]) for one in kept]
    if options.outliers != "none" and not averaged:
        notes.append("Outliers are left out at system level alone, which is not here: nothing was left out")
    if options.systems == "fixed":
        made = [sample.with_systems_given() for sample in made]
    return Analysed(made, notes)


def _marked(sample: Sample, marks: Sequence[str]) -> Sample:
    return replace(sample, signatures=tuple("|".join([made, *marks]) for made in sample.signatures))


def _covered(
    plain: Tables, filled: Tables, levels: Sequence[str], targets: Sequence[str] | None, allow_missing: bool
) -> Iterator[Sample]:
    """Yield the samples of filled tables, with the coverage that the scores themselves have."""
    own = {}
    if filled is not plain:
        own = {tuple(one.key.values()): one for one in plain.samples(levels, targets, allow_missing=True)}
    for sample in filled.samples(levels, targets, allow_missing=allow_missing):
        if filled is not plain:
            before = own.get(tuple(sample.key.values()))
            shares = dict(zip(before.names, before.coverage, strict=True)) if before else {}
            sample = replace(sample, coverage=tuple(shares.get(name, 0.0) for name in sample.names))
        yield sample


def _without(tables: Tables, dataset: str, systems: Sequence[str]) -> Tables:
    """Return the tables of one data set without some systems."""
    scores, ratings = (
        frame[(frame["dataset"] == dataset) & ~frame["system_id"].isin(list(systems))]
        for frame in (tables.scores, tables.ratings)
    )
    return replace(tables, scores=scores, ratings=ratings)


def parsed_subset(texts: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return (column, value) of each ``COLUMN=VALUE``."""
    for text in texts:
        if not re.fullmatch(r"[^=]+=.+", text, flags=re.DOTALL):
            raise ConfigError(f"{text!r}", where="--subset", expected="COLUMN=VALUE, such as turn=1")
    return tuple((column.strip(), value.strip()) for column, _, value in (text.partition("=") for text in texts))


def subset(
    tables: Tables, wanted: Sequence[tuple[str, str]], attributes: Iterable[pd.DataFrame] = ()
) -> tuple[Tables, list[str]]:
    """Keep what belongs to some units: responses, and dialogues all of whose responses do.

    Means over dialogues and systems are then made of what is left.

    Parameters
    ----------
    wanted
        (column, value), the value as text. Of one column any of several values, of several columns all.
    attributes
        Beside the tables themselves, which hold ids, kind, track and turn: tables with further columns, and some of
        dataset, context_id, dialogue_id and system_id, which name the unit. One whose cell is missing is in no subset.

    Returns
    -------
    tuple
        The tables, and how many of the rated responses and dialogues were kept. An UnknownNameError is raised if there is
        no such column, a ConfigError if no unit has the value, or the rows of one response differ.
    """
    units = pd.concat(
        [frame.loc[frame["level"].isin(RATED_LEVELS), ["level", *_UNIT]] for frame in (tables.scores, tables.ratings)]
    )
    units = units.drop_duplicates(ignore_index=True)
    of_turns = units["level"] == "turn"
    dialogues = units["item_id"].mask(of_turns, tables.with_dialogue(units))
    units = units.assign(context_id=units["item_id"].where(of_turns), dialogue_id=dialogues)
    frames = [*attributes, units[_KEYS]]
    for frame, columns in (
        (tables.contexts, [*_KEYS[:3], "turn"]),
        (tables.systems, ["dataset", "system_id", "kind", "track"]),
    ):
        if frame is not None:
            frames.append(frame[[name for name in columns if name in frame]])
    known = {str(column) for frame in frames for column in frame} - {"dataset"}
    chosen: dict[str, list[str]] = {}
    for column, value in dict.fromkeys(wanted):
        chosen.setdefault(column, []).append(value)
    kept = np.ones(len(units), dtype=np.bool_)
    for column, values in chosen.items():
        if column not in known:
            raise UnknownNameError("column", column, sorted(known), where="--subset")
        cells = pd.concat([_cells(tables, units, column, frame) for frame in frames if column in frame])
        cells = cells.drop_duplicates()
        _check_same(cells[cells["unit"].isin(units.index[of_turns])], units, column)
        texts = [_text(value) for value in values]
        if lost := [text for text in texts if text not in set(cells["text"])]:
            there = sorted(cells["text"].unique())
            some = ", ".join(there[:20]) + (f", … ({len(there)} in all)" if len(there) > 20 else "")
            raise ConfigError(
                f"no row has {column}={lost[0]}", where="--subset", expected=f"one of: {some or '(no value at all)'}"
            )
        inside = cells["text"].isin(texts).groupby(cells["unit"]).all()
        kept &= inside.reindex(units.index, fill_value=False).to_numpy()
    which = ", ".join(f"{column} = {' or '.join(values)}" for column, values in chosen.items())
    if not kept.any():
        raise ConfigError(f"no unit has {which}", where="--subset", expected="values that occur together")
    notes = []
    for level, what in zip(RATED_LEVELS, ("responses", "dialogues"), strict=True):
        if len(rated := tables.rated(level).assign(level=level)):
            count = int(_among(rated, units[kept]).sum())
            notes.append(f"Subset {which}: {count:,} of {len(rated):,} rated {what}")
    return tables.of_units(units[kept]), notes


def _cells(tables: Tables, units: pd.DataFrame, column: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the values, as ``text``, that a table has for each ``unit``: of a dialogue, those of all its responses."""
    there = frame[~frame[column].map(is_missing)]
    cells = there[[key for key in _KEYS if key in frame]].map(_text).assign(text=there[column].map(_text))
    parts = []
    for level in RATED_LEVELS:
        rows = units[units["level"] == level]
        if level == "dialogue" and "context_id" in cells:
            cells = cells.assign(dialogue_id=tables.with_dialogue(cells, "context_id")).drop(columns="context_id")
        parts.append(rows.rename_axis("unit").reset_index().merge(cells.drop_duplicates())[["unit", "text"]])
    return pd.concat(parts)


def _check_same(cells: pd.DataFrame, units: pd.DataFrame, column: str) -> None:
    if len(several := cells.loc[cells.duplicated("unit"), "unit"]):
        unit = units.loc[several.min()]
        texts = sorted(cells.loc[cells["unit"] == several.min(), "text"])
        raise ConfigError(
            f"column {column!r} says {' and '.join(texts)} of one response: context {unit['item_id']}, "
            f"system {unit['system_id']}",
            where="--subset",
            expected="a column that says the same in all rows of a response",
        )


def _text(cell: object) -> str:
    """Return a cell as text, and 1.0 as 1: programs add and drop the point."""
    return str(plain_name(cell))


def _unscored(tables: Tables, targets: Sequence[str] | None) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Yield the scores of each data set, level, metric and output, and the units to which it gave none.

    A metric of responses is to score what was rated, and what other metrics scored in rated dialogues.
    """
    turns, dialogues = (tables.rated(level, targets) for level in RATED_LEVELS)
    scored = tables.scores[tables.scores["level"].isin(RATED_LEVELS)]
    others = scored.loc[scored["level"] == "turn", _UNIT].drop_duplicates(ignore_index=True)
    others = others[_among(others.assign(item_id=tables.with_dialogue(others)), dialogues)]
    whole = turns.assign(item_id=tables.with_dialogue(turns))
    parts = {"turn": [turns, others], "dialogue": [dialogues, whole]}
    expected = {level: pd.concat(of_level).drop_duplicates(ignore_index=True) for level, of_level in parts.items()}
    for (dataset, level, _, _), group in scored.groupby(_OUTPUT, sort=True):
        own = expected[str(level)][expected[str(level)]["dataset"] == dataset]
        yield group, own[~_among(own, group[_UNIT])]


def check_complete(tables: Tables, targets: Sequence[str] | None = None) -> None:
    """Refuse scores that lack a rated unit: a SchemaError names the first one, and counts the others."""
    for group, lost in _unscored(tables, targets):
        if len(lost):
            first, unit = group.iloc[0], lost.iloc[0]
            what = "context" if first["level"] == "turn" else "dialogue"
            raise SchemaError(
                f"{first['metric']}:{first['output']} has no score of {what} {unit['item_id']!r}, system "
                f"{unit['system_id']!r}" + (f", and of {len(lost) - 1:,} more" if len(lost) > 1 else ""),
                where=f"dataset {unit['dataset']!r}",
                expected="a score of all that was rated, since --missing is error",
            )


def with_worst(
    tables: Tables, targets: Sequence[str] | None = None, *, given: pd.DataFrame | None = None
) -> tuple[Tables, list[str]]:
    """Give rated units without a score the lowest one that the metric gave in the data set.

    A metric that gave none at all stays without. Units count as rated if they were in one of the dimensions ``targets``; the
    lowest score is looked for among those ``given`` (default: the tables'). What is returned is the tables, and what was
    added to which metric. ``coverage`` of samples made of these tables counts what was added: :func:`analysed` keeps the
    coverage of the scores themselves.
    """
    given = tables.scores if given is None else given
    lowest = given.groupby(_OUTPUT)["value"].min()
    frames, notes = [tables.scores], []
    for group, lost in _unscored(tables, targets):
        if len(lost):
            name = tuple(group[_OUTPUT].iloc[0])
            dataset, level, metric, output = name
            same = {"level": level, "metric": metric, "output": output, "signature": group["signature"].iloc[0]}
            frames.append(lost.assign(**same, value=lowest[name], cut=0)[list(tables.scores.columns)])
            where = f" of {dataset}" if given["dataset"].nunique() > 1 else ""
            notes.append(
                f"{metric}:{output}: {len(lost):,} without a score{where} count as its lowest, {lowest[name]:.4g}"
            )
    return replace(tables, scores=pd.concat(frames, ignore_index=True)), notes


def outlying(sample: Sample) -> tuple[tuple[str, ...], str]:
    """Return the systems whose mean rating is far off the others', and a sentence on it.

    Far is more than 2.5 median absolute deviations, each multiplied by 1.483, from the median (Mathur, Baldwin and Cohn
    2020, Tangled up in BLEU, section 4). Where that deviation is 0, as where most systems are rated alike, none is.
    """
    means = system_means(sample.ratings, sample.design)
    apart = np.abs(means - np.median(means))
    spread = float(np.median(apart))
    if spread <= TIED * float(np.max(np.abs(means), initial=0.0)):
        return (), "no outliers, since the median absolute deviation of the systems' ratings is 0"
    far = tuple(np.asarray(sample.systems, dtype=object)[apart / (NORMAL * spread) > FARTHEST])
    rule = f"rated more than {FARTHEST} median absolute deviations from the median"
    return far, f"left out as outliers ({rule}): {', '.join(far)}" if far else f"no outliers ({rule})"
