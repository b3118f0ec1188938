"""Options of an analysis: which units, what a missing score counts as, which systems stay."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial import schema
from comperdial.core.errors import ConfigError, SchemaError, UnknownNameError
from comperdial.core.names import LEVELS, RATED_LEVELS
from comperdial.data.own_files import identifier, is_missing
from comperdial.evaluation import aggregate
from comperdial.evaluation.aggregate import without_references
from comperdial.evaluation.samples import FEWEST_SYSTEMS, Sample, samples
from comperdial.stats.means import TIED, system_means

Floats = npt.NDArray[np.float64]

Missing = Literal["left-out", "worst", "error"]
Outliers = Literal["none", "mad"]
Systems = Literal["sampled", "fixed"]
MISSING: tuple[Missing, ...] = get_args(Missing)
OUTLIERS: tuple[Outliers, ...] = get_args(Outliers)
SYSTEMS: tuple[Systems, ...] = get_args(Systems)

# A system further from the median than this many median absolute deviations is an outlier. The factor makes the deviation
# of a normal sample its standard deviation.
FARTHEST, NORMAL = 2.5, 1.483

_UNIT = ["dataset", "item_id", "system_id"]
_KEYS = ["dataset", "context_id", "dialogue_id", "system_id"]
_OF_CONTEXT, _OF_SYSTEM = ["dataset", "context_id", "dialogue_id", "turn"], ["dataset", "system_id", "kind", "track"]
_AT_MOST = 20


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
        scores = aggregate.read_scores(score_files) if score_files else schema.empty("scores")
        return cls(
            scores, schema.ratings_in(folder), aggregate.read_contexts(folder / "contexts.parquet"),
            schema.read(systems, "systems") if systems.is_file() else None, source,
        )  # fmt: skip

    def samples(
        self, levels: Sequence[str] = LEVELS, targets: Sequence[str] | None = None, *, allow_missing: bool = False
    ) -> list[Sample]:
        """Return all samples of these tables."""
        found = samples(
            self.scores, self.ratings, contexts=self.contexts, systems=self.systems, source=self.source,
            levels=levels, targets=targets, allow_missing=allow_missing,
        )  # fmt: skip
        return list(found)

    def rated(self, level: str, targets: Sequence[str] | None = None) -> pd.DataFrame:
        """Return the units of a level (dataset, item_id, system_id) that the source rated, references left out."""
        chosen = without_references(self.ratings, self.systems)
        chosen = chosen[(chosen["level"] == level) & (chosen["source"] == self.source)]
        if targets is not None:
            chosen = chosen[chosen["dimension"].isin(list(targets))]
        return chosen[_UNIT].drop_duplicates(ignore_index=True)

    def with_dialogue(self, units: pd.DataFrame, item: str = "item_id") -> pd.Series:
        """Return the dialogue of each context; without a table of contexts, each is a dialogue of its own."""
        if self.contexts is None:
            return units[item]
        names = self.contexts.set_index(["dataset", "context_id"])["dialogue_id"]
        found = names.reindex(pd.MultiIndex.from_frame(units[["dataset", item]])).to_numpy()
        return pd.Series(found, index=units.index).fillna(units[item])


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
    missing: Missing = "left-out"
    outliers: Outliers = "none"
    systems: Systems = "sampled"


class Analysed(NamedTuple):
    """Samples, and what is to be said of how they were made."""

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
    """Make samples with options; signatures of all scores say those that are not the default.

    Parameters
    ----------
    tables
        Scores and ratings.
    options
        What is done otherwise than by default.
    attributes
        Beside the tables ``contexts`` and ``systems``: what else subsets can be chosen by, as :func:`subset` takes it.
    levels, targets, allow_missing
        As in :func:`comperdial.evaluation.samples`.
    """
    notes: list[str] = []
    chosen = tables
    if options.subset:
        chosen, notes = subset(tables, options.subset, attributes)
    filled = chosen
    if options.missing == "error":
        check_complete(chosen, targets)
    elif options.missing == "worst":
        filled, more = with_worst(chosen, targets, given=tables.scores)
        notes += more
    marks = [f"subset:{column}={value}" for column, value in options.subset]
    marks += ["missing:worst"] if options.missing == "worst" else []
    marks += ["systems:fixed"] if options.systems == "fixed" else []
    found, tried = [], False
    for sample in _covered(chosen, filled, levels, targets, allow_missing):
        if options.outliers == "none" or not sample.design.average:
            found.append(_marked(sample, marks))
            continue
        tried = True
        far, why = outlying(sample)
        notes.append(f"{sample.target}, system level, ratings of {sample.against}s: {why}")
        rest: Sample | None = sample
        if far:
            part = _without(chosen, sample.dataset, far)
            other = part if filled is chosen else _without(filled, sample.dataset, far)
            again = _covered(part, other, ["system"], [sample.target], allow_missing=True)
            rest = next((one for one in again if one.key == sample.key), None)
        if rest is None:
            notes[-1] += f"; too few are left: below {FEWEST_SYSTEMS} there is no system level"
        else:
            found.append(_marked(rest, [*marks, f"outliers:mad:{','.join(far) or 'none'}"]))
    if options.outliers != "none" and not tried:
        notes.append("Outliers are left out at system level alone, which is not here: nothing was left out")
    if options.systems == "fixed":
        found = [sample.with_systems_given() for sample in found]
    return Analysed(found, notes)


def _marked(sample: Sample, marks: Sequence[str]) -> Sample:
    return replace(sample, signatures=tuple("|".join([made, *marks]) for made in sample.signatures))


def _covered(
    plain: Tables, filled: Tables, levels: Sequence[str], targets: Sequence[str] | None, allow_missing: bool
) -> Iterator[Sample]:
    """Yield the samples of filled tables, with the coverage that the scores themselves have."""
    made = filled.samples(levels, targets, allow_missing=allow_missing)
    if filled is plain:
        yield from made
        return
    before = {tuple(one.key.values()): one for one in plain.samples(levels, targets, allow_missing=True)}
    for sample in made:
        own = before.get(tuple(sample.key.values()))
        shares = dict(zip(own.names, own.coverage, strict=True)) if own else {}
        yield replace(sample, coverage=tuple(shares.get(name, 0.0) for name in sample.names))


# Subsets


def subset(
    tables: Tables, wanted: Sequence[tuple[str, str]], attributes: Iterable[pd.DataFrame] = ()
) -> tuple[Tables, list[str]]:
    """Keep what belongs to some units: responses, and dialogues all of whose responses do.

    Means over dialogues and systems are then made of what is left.

    Parameters
    ----------
    tables
        Scores and ratings; ``systems`` and ``contexts`` say kind, track, dialogue_id and turn.
    wanted
        (column, value), the value as text. Of one column any of several values, of several columns all.
    attributes
        Tables with further columns, and some of dataset, context_id, dialogue_id and system_id, which say whose they
        are. What a table says nothing of (missing cells) is in no subset.

    Returns
    -------
    tuple
        The tables, and for each column how many of the rated units it kept.

    Raises
    ------
    UnknownNameError
        When there is no such column.
    ConfigError
        When no unit has the value, or the rows of one response differ.
    """
    units = {level: _units(tables, level) for level in RATED_LEVELS}
    frames = [*attributes, *_own_attributes(tables, units)]
    known = {str(column) for frame in frames for column in frame} - {"dataset"}
    notes = []
    kept = {level: np.ones(len(frame), dtype=np.bool_) for level, frame in units.items()}
    for column in dict.fromkeys(column for column, _ in wanted):
        if column not in known:
            raise UnknownNameError("column", column, sorted(known), where="--subset")
        values = list(dict.fromkeys(_plain(value) for name, value in wanted if name == column))
        there: set[str] = set()
        for level, frame in units.items():
            found = _values(tables, frame, level, column, frames)
            there |= set().union(*found)
            kept[level] &= np.array([bool(one) and one <= set(values) for one in found], dtype=np.bool_)
        if lost := [value for value in values if value not in there]:
            shown = sorted(there)
            some = ", ".join(shown[:_AT_MOST]) + (f", … ({len(shown)} in all)" if len(shown) > _AT_MOST else "")
            raise ConfigError(
                f"no row has {column}={lost[0]}", where="--subset", expected=f"one of: {some or '(no value at all)'}"
            )
    said = ", ".join(f"{column} = {value}" for column, value in _grouped(wanted))
    left = {level: frame[kept[level]] for level, frame in units.items()}
    for level, what in zip(RATED_LEVELS, ("responses", "dialogues"), strict=True):
        rated = tables.rated(level)
        if len(rated):
            count = int(_among(rated, left[level]).sum())
            notes.append(f"Subset {said}: {count:,} of {len(rated):,} rated {what}")
    if all(frame.empty for frame in left.values()):
        raise ConfigError(f"no unit has {said}", where="--subset", expected="values that occur together")
    scores, ratings = (_of_units(frame, left) for frame in (tables.scores, tables.ratings))
    return replace(tables, scores=scores, ratings=ratings), notes


def _grouped(wanted: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for column in dict.fromkeys(column for column, _ in wanted):
        yield column, " or ".join(dict.fromkeys(value for name, value in wanted if name == column))


def _among(rows: pd.DataFrame, units: pd.DataFrame) -> npt.NDArray[np.bool_]:
    return np.asarray(pd.MultiIndex.from_frame(rows[_UNIT]).isin(pd.MultiIndex.from_frame(units[_UNIT])))


def _of_units(frame: pd.DataFrame, units: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the scores or ratings of some units of each level."""
    here = np.zeros(len(frame), dtype=np.bool_)
    for level, chosen in units.items():
        here |= (frame["level"] == level).to_numpy() & _among(frame, chosen)
    return frame[here]


def _units(tables: Tables, level: str) -> pd.DataFrame:
    """Return the units of a level that were rated, by whomever, or scored."""
    found = [frame.loc[frame["level"] == level, _UNIT] for frame in (tables.scores, tables.ratings)]
    return pd.concat(found).drop_duplicates(ignore_index=True)


def _own_attributes(tables: Tables, units: Mapping[str, pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Yield what the tables say of contexts and systems, and the names of the units themselves."""
    for frame, columns in ((tables.contexts, _OF_CONTEXT), (tables.systems, _OF_SYSTEM)):
        if frame is not None:
            yield frame[[name for name in columns if name in frame]]
    if len(turns := units["turn"]):
        yield turns.assign(dialogue_id=tables.with_dialogue(turns)).rename(columns={"item_id": "context_id"})
    yield units["dialogue"].rename(columns={"item_id": "dialogue_id"})


def _values(
    tables: Tables, units: pd.DataFrame, level: str, column: str, frames: Sequence[pd.DataFrame]
) -> list[set[str]]:
    """Return the values that each unit has: one for a response, those of all its responses for a dialogue."""
    found: list[set[str]] = [set() for _ in range(len(units))]
    if units.empty:
        return found
    named = units.rename(columns={"item_id": "context_id" if level == "turn" else "dialogue_id"})
    if level == "turn":
        named["dialogue_id"] = tables.with_dialogue(named, "context_id")
    for frame in frames:
        if column not in frame:
            continue
        said = frame[~frame[column].map(is_missing)]
        keys = [key for key in _KEYS if key in frame]
        if level == "dialogue" and "context_id" in keys:
            said = said.assign(dialogue_id=tables.with_dialogue(said, "context_id"))
            keys = [key for key in keys if key != "context_id"] + ["dialogue_id"] * ("dialogue_id" not in keys)
        if not set(keys) <= set(named) or said.empty:
            continue
        texts: dict[tuple[object, ...], set[str]] = {}
        cells = said[column].map(_plain)
        for key, text in zip(said[keys].itertuples(index=False, name=None), cells, strict=True):
            texts.setdefault(key, set()).add(text)
        for place, key in enumerate(named[keys].itertuples(index=False, name=None)):
            found[place] |= texts.get(key, set())
    if (
        level == "turn"
        and (differ := next((place for place, one in enumerate(found) if len(one) > 1), None)) is not None
    ):
        row = units.iloc[differ]
        raise ConfigError(
            f"column {column!r} says {' and '.join(sorted(found[differ]))} of one response: context {row['item_id']}, "
            f"system {row['system_id']}",
            where="--subset",
            expected="a column that says the same in all rows of a response",
        )
    return found


def _plain(cell: object) -> str:
    """Return a cell as text, and 1.0 as 1: programs add and drop the point."""
    try:
        return identifier(cell, "") or ""
    except SchemaError:
        return str(cell)


# Missing scores


def _unscored(tables: Tables, targets: Sequence[str] | None) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Yield the scores of each data set, level, metric and output, and the units to which it gave none.

    A metric of responses is to score what was rated, and what other metrics scored in rated dialogues.
    """
    turns, dialogues = (tables.rated(level, targets) for level in RATED_LEVELS)
    of_turns = tables.scores.loc[tables.scores["level"] == "turn", _UNIT].drop_duplicates(ignore_index=True)
    theirs = of_turns.assign(item_id=tables.with_dialogue(of_turns))
    of_rated = theirs.assign(item_id=of_turns["item_id"])[_among(theirs, dialogues)]
    whole = [dialogues, turns.assign(item_id=tables.with_dialogue(turns))]
    expected = {"turn": [turns, of_rated], "dialogue": whole}
    units = {level: pd.concat(parts).drop_duplicates(ignore_index=True) for level, parts in expected.items()}
    scored = tables.scores[tables.scores["level"].isin(RATED_LEVELS)]
    for (dataset, level, _, _), group in scored.groupby(["dataset", "level", "metric", "output"], sort=True):
        own = units[str(level)]
        own = own[own["dataset"] == dataset]
        yield group, own[~_among(own, group)]


def check_complete(tables: Tables, targets: Sequence[str] | None = None) -> None:
    """Refuse scores that lack a rated unit.

    Raises
    ------
    SchemaError
        Names the first unit without a score, and counts the others.
    """
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

    A metric that gave none at all stays without. ``coverage`` of samples made of these tables counts what was added:
    :func:`analysed` keeps the coverage of the scores themselves.

    Parameters
    ----------
    tables, targets
        What was scored; units count as rated if they were in one of these dimensions.
    given
        The scores among which the lowest is looked for; default: those of the tables.

    Returns
    -------
    tuple
        The tables, and what was added to which metric.
    """
    given = tables.scores if given is None else given
    key = ["dataset", "level", "metric", "output"]
    lowest = given.groupby(key)["value"].min()
    added, notes = [], []
    for group, lost in _unscored(tables, targets):
        if lost.empty:
            continue
        name = tuple(group[key].iloc[0])
        same = dict(zip(key, name, strict=True)) | {"signature": group["signature"].iloc[0]}
        rows = lost.assign(**same, value=lowest[name])
        added.append((rows.assign(cut=0) if "cut" in tables.scores else rows)[list(tables.scores.columns)])
        where = f" of {name[0]}" if given["dataset"].nunique() > 1 else ""
        notes.append(
            f"{name[2]}:{name[3]}: {len(lost):,} without a score{where} count as its lowest, {lowest[name]:.4g}"
        )
    filled = pd.concat([tables.scores, *added], ignore_index=True) if added else tables.scores
    return replace(tables, scores=filled), notes


# Outliers


def outlying(sample: Sample) -> tuple[tuple[str, ...], str]:
    """Return the systems whose mean rating is far off the others', and a sentence on it.

    Far is more than 2.5 median absolute deviations, each multiplied by 1.483, from the median (Mathur, Baldwin and Cohn
    2020, Tangled up in BLEU, section 4). Where that deviation is 0, as where most systems are rated alike, none is.
    """
    means = system_means(sample.ratings, sample.design)
    middle = float(np.median(means))
    apart = np.abs(means - middle)
    spread = float(np.median(apart))
    if spread <= TIED * float(np.max(np.abs(means), initial=0.0)):
        return (), "no outliers, since the median absolute deviation of the systems' ratings is 0"
    far = tuple(np.asarray(sample.systems, dtype=object)[apart / (NORMAL * spread) > FARTHEST])
    rule = f"rated more than {FARTHEST} median absolute deviations from the median"
    return far, f"left out as outliers ({rule}): {', '.join(far)}" if far else f"no outliers ({rule})"


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
