"""Combine tables of scores and ratings into samples: one per level, level of ratings and dimension."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api.typing import DataFrameGroupBy

from comperdial import schema
from comperdial.core.errors import FileError, SchemaError, UnknownNameError
from comperdial.core.names import LEVELS, RATED_LEVELS, Output
from comperdial.evaluation.aggregate import read_contexts, read_scores
from comperdial.stats.design import Design
from comperdial.stats.means import merge_ties

log = logging.getLogger(__name__)

Floats = npt.NDArray[np.float64]

# Items and systems: a MultiIndex, which pandas' type stubs do not support.
Units = Any
NAME, UNIT = ["metric", "output"], ["item_id", "system_id"]
# The paper's ``Human`` row: a dialogue's mean turn rating as its score.
HUMAN = ("human", "turns")
# With fewer systems there is no system level: two always correlate perfectly.
FEWEST_SYSTEMS = 3
# The unit of each level, and the ratings to compare with; systems are averaged over their units.
_PLACES = {
    "turn": [("turn", "turn")],
    "dialogue": [("dialogue", "turn"), ("dialogue", "dialogue")],
    "system": [("turn", "turn"), ("dialogue", "dialogue")],
}


@dataclass(frozen=True)
class Sample:
    """Scores and ratings of the same units, for one level, one level of ratings and one rated dimension.

    A unit is a response (with ratings of turns, at turn and system level) or a dialogue of a system. At system level the units
    are those that systems are averaged over.

    ``scores`` has shape (outputs, units), NaN if missing, in the order of ``names``: (metric, output), sorted. ``single``,
    (annotators, units), are the ratings by each of ``annotators``, and ``ratings``, (units,), their means. Scores and ratings
    that differ only by rounding are made equal. ``design`` has the codes of each unit's system and dialogue, and averages units
    at system level; ``systems`` are the systems' names. ``items`` are codes of the context at turn level, of the dialogue at
    the others, ``units`` (context or dialogue, system). For each output, ``coverage`` is the share of rated units (for
    dialogues: of their turns) with a score, ``cut`` the number of units whose input was truncated, and ``signatures`` its
    signature.
    """

    dataset: str
    level: str
    against: str
    target: str
    names: tuple[Output, ...]
    scores: Floats
    annotators: tuple[str, ...]
    single: Floats
    ratings: Floats
    design: Design
    items: npt.NDArray[np.intp]
    units: tuple[tuple[str, str], ...]
    systems: tuple[str, ...]
    coverage: tuple[float, ...]
    cut: tuple[int, ...]
    signatures: tuple[str, ...]

    def __post_init__(self) -> None:
        # 0.1 + 0.2 and 0.3 are a tie, over all units, within items and over means.
        for name in ("scores", "ratings"):
            object.__setattr__(self, name, merge_ties(getattr(self, name)))

    @property
    def of_turns(self) -> bool:
        """Return whether a unit is a response; otherwise it is a dialogue of a system."""
        return self.against == "turn" and self.level != "dialogue"

    @property
    def key(self) -> dict[str, str]:
        """Return the first columns of every record about this sample."""
        return {"dataset": self.dataset, "level": self.level, "against": self.against, "target": self.target}

    def with_systems_given(self) -> Sample:
        """Return the sample with fixed systems: only contexts count as sampled."""
        return replace(self, design=replace(self.design, fixed=True))

    def only(self, names: Sequence[Output]) -> Sample:
        """Return the sample with some of its outputs, in its own order."""
        rows = [row for row, name in enumerate(self.names) if name in set(names)]
        columns = ("names", "coverage", "cut", "signatures")
        chosen = {column: tuple(getattr(self, column)[row] for row in rows) for column in columns}
        return Sample(**(self.__dict__ | chosen | {"scores": self.scores[rows]}))


@dataclass(frozen=True)
class Tables:
    """The tables of one or several data sets, and the source of ratings to use.

    Without ``contexts``, which give the dialogue of each context, every context is its own dialogue; with ``systems``, ratings
    of references, which are never scored, are ignored. ``attributes`` are further columns of responses (dataset, item_id,
    system_id), such as those of a user's own file.
    """

    scores: pd.DataFrame
    ratings: pd.DataFrame
    contexts: pd.DataFrame | None = None
    systems: pd.DataFrame | None = None
    source: str = "human"
    attributes: pd.DataFrame | None = None

    @classmethod
    def read(cls, folder: str | Path, score_files: Sequence[str | Path] = (), source: str = "human") -> Tables:
        """Read the tables of a data set, and its scores from any number of files."""
        folder = Path(folder)
        if not folder.is_dir():
            raise FileError("no such folder", where=str(folder), expected="a folder of one data set's tables")
        systems = folder / "systems.parquet"
        return cls(
            read_scores(score_files) if score_files else schema.empty("scores"),
            schema.ratings_in(folder),
            read_contexts(folder / "contexts.parquet"),
            schema.read(systems, "systems") if systems.is_file() else None,
            source,
        )

    @property
    def sources(self) -> list[str]:
        """Return the sources of ratings, sorted."""
        return sorted(self.ratings["source"].unique())

    def of_level(self, level: str) -> pd.DataFrame:
        """Return the source's ratings of a level, without references."""
        rows = (self.ratings["level"] == level) & (self.ratings["source"] == self.source)
        if self.systems is not None:
            references = self.systems.loc[self.systems["kind"] == "reference", ["dataset", "system_id"]]
            rated = pd.MultiIndex.from_frame(self.ratings[["dataset", "system_id"]])
            rows &= ~rated.isin(pd.MultiIndex.from_frame(references))
        return self.ratings[rows]

    def rated(self, level: str, targets: Sequence[str] | None = None) -> pd.DataFrame:
        """Return the rated units of a level (dataset, item_id, system_id), in some dimensions or in any."""
        chosen = self.of_level(level)
        chosen = chosen if targets is None else chosen[chosen["dimension"].isin(list(targets))]
        return chosen[["dataset", *UNIT]].drop_duplicates(ignore_index=True)

    def single(self, level: str) -> pd.DataFrame:
        """Return single ratings of one data set: one row per item, system and dimension (index), one column per annotator."""
        return self.of_level(level).pivot(index=[*UNIT, "dimension"], columns="annotator_id", values="rating")

    def samples(
        self,
        levels: Sequence[str] = LEVELS,
        targets: Sequence[str] | None = None,
        *,
        allow_missing: bool = False,
        lowest: pd.Series | None = None,
    ) -> list[Sample]:
        """Pair scores with ratings at each level that the tables allow.

        As ComperDial defines them (appendix C.1.2): a turn metric's dialogue score is its mean over the dialogue's turns; a
        system's score its mean over turns, or over dialogues if dialogues were rated; the same for ratings. With fewer than
        three systems there is no system level.

        With ``allow_missing`` a data set without scores has samples without outputs, and an unrated one has no samples;
        otherwise a SchemaError is raised, as for scores of unrated units or with clashing names. ``lowest`` is the score, by
        dataset, metric and output, of units without one that were rated or that another metric scored; ``coverage`` does not
        count it.
        """
        result: list[Sample] = []
        frames = {name: getattr(self, name) for name in ("scores", "ratings", "contexts", "systems")}
        for dataset in sorted((self.scores if len(self.scores) else self.ratings)["dataset"].unique()):
            own = {name: frame[frame["dataset"] == dataset] for name, frame in frames.items() if frame is not None}
            if allow_missing and own["ratings"].empty:
                continue
            scored = lowest is not None and dataset in lowest.index.get_level_values("dataset")
            given = lowest[dataset] if lowest is not None and scored else None
            made = list(_samples(replace(self, **own), dataset, levels, targets, allow_missing, given))
            if not made and not allow_missing:
                raise SchemaError(
                    f"nothing to correlate at the levels {', '.join(levels)}",
                    where=f"dataset {dataset!r}",
                    expected="scores and ratings of the same turns or dialogues",
                )
            result += made
        return result


def samples(
    scores: pd.DataFrame,
    ratings: pd.DataFrame,
    *,
    contexts: pd.DataFrame | None = None,
    systems: pd.DataFrame | None = None,
    source: str = "human",
    **choice: Any,  # noqa: ANN401 - as Tables.samples takes it
) -> Iterator[Sample]:
    """Pair scores with ratings: :meth:`Tables.samples` of these tables, with its options."""
    yield from Tables(scores, ratings, contexts, systems, source).samples(**choice)


def _samples(
    tables: Tables,
    dataset: str,
    levels: Sequence[str],
    targets: Sequence[str] | None,
    allow_missing: bool,
    lowest: pd.Series | None,
) -> Iterator[Sample]:
    """Pair the scores and ratings of one data set."""
    where = f"dataset {dataset!r}"
    if tables.ratings.empty:
        expected = "scores and ratings with the same dataset, item_id and system_id; scores of a file are named after that file"
        raise SchemaError("scores, and no ratings", where=where, expected=expected)
    if tables.source not in tables.sources:
        raise UnknownNameError("source of ratings", tables.source, tables.sources, where=where)
    dimensions = tables.ratings.loc[tables.ratings["source"] == tables.source, "dimension"].unique()
    for target in targets or ():
        if target not in dimensions:
            raise UnknownNameError("dimension", target, sorted(dimensions), where=where)
    check_scores(tables.scores, dataset)
    dialogue_of = _dialogue_of(tables, where)
    single = {level: tables.single(level) for level in RATED_LEVELS}
    units = {level: _units(of) for level, of in single.items()}
    scored = {level: _Scores.of_level(tables.scores, level) for level in RATED_LEVELS}
    for level, scores in scored.items():
        if len(units[level]):
            _check_rated(scores.values, units[level], level, dataset, allow_missing)
        if lowest is not None:
            also = units["dialogue"].union(_dialogues(units["turn"], dialogue_of).unique())
            scored[level] = scores.filled(also if level == "dialogue" else units["turn"], lowest)
    parts = {"turn": scored["turn"], **_averaged_scores(scored["turn"], scored["dialogue"], units["turn"], dialogue_of)}

    # By unit and level of ratings: single ratings and their means.
    means = {level: _mean_ratings(of) for level, of in single.items()}
    # If not all raters rated a dialogue as a whole, the mean over raters is not its mean rating.
    by_turns, of_turns = (_by_dialogue(frame, dialogue_of) for frame in (single["turn"], means["turn"]))
    rated = {(level, level): (single[level], means[level]) for level in RATED_LEVELS}
    rated["dialogue", "turn"] = by_turns, of_turns
    has_several = _has_several(units["turn"], tables.contexts, dialogue_of)
    signatures = tables.scores.drop_duplicates(NAME).set_index(NAME)["signature"].to_dict()
    signatures[HUMAN] = f"human|ratings:turn|annotators:{single['turn'].columns.size}"

    for level in dict.fromkeys(levels):
        for unit, against in _PLACES[level]:
            ratings, mean = rated[unit, against]
            part = parts[level if unit == "turn" else "dialogue"]
            wanted = [] if unit != against and not has_several else sorted(ratings.index.unique("dimension"))
            for target in (name for name in wanted if targets is None or name in targets):
                one = _of_target(ratings, target).dropna(axis="columns", how="all").sort_index()
                systems = one.index.get_level_values("system_id")
                if level == "system" and systems.nunique() < FEWEST_SYSTEMS:
                    continue
                values = part.values.reindex(one.index).dropna(axis="columns", how="all")
                if values.empty and not allow_missing:
                    if against == "dialogue" and not part.values.empty:
                        raise SchemaError(
                            "no score belongs to a rated dialogue",
                            where=where,
                            expected="contexts of the rated dialogues",
                            hint="Pass the table `contexts`, which names the dialogue of each context",
                        )
                    continue
                if against == "dialogue":
                    human = _of_target(of_turns, target).reindex(one.index).dropna(axis="columns", how="all")
                    values = values.join(
                        human.set_axis(pd.MultiIndex.from_tuples([HUMAN] * human.shape[1], names=NAME), axis=1)
                    )
                values = values.sort_index(axis=1)
                share, cut = (
                    frame.reindex(index=values.index, columns=values.columns).where(values.notna(), 0)
                    for frame in (part.share, part.cut)
                )
                items, names = pd.factorize(one.index.get_level_values("item_id"))
                dialogues = (dialogue_of.reindex(names).to_numpy() if unit == "turn" else names)[items]
                codes, system_names = pd.factorize(systems, sort=True)
                outputs = tuple(_named(values))
                yield Sample(
                    dataset=dataset,
                    level=level,
                    against=against,
                    target=str(target),
                    names=outputs,
                    scores=values.to_numpy(dtype=np.float64).T,
                    annotators=tuple(map(str, one.columns)),
                    single=one.to_numpy(dtype=np.float64).T,
                    ratings=_of_target(mean, target)["rating"].reindex(one.index).to_numpy(dtype=np.float64),
                    design=Design(codes, pd.factorize(dialogues, sort=True)[0], average=level == "system"),
                    items=items,
                    units=tuple(zip(*(one.index.get_level_values(name).astype(str) for name in UNIT), strict=True)),
                    systems=tuple(map(str, system_names)),
                    # The human row has no turns to score.
                    coverage=tuple(share.fillna(1.0).mean().tolist()),
                    cut=tuple((cut > 0).sum().tolist()),
                    signatures=tuple(signatures[name] for name in outputs),
                )


class _Scores(NamedTuple):
    """Scores of units: one row per item and system (index), one column per metric and output.

    ``cut`` counts a unit's truncated inputs, ``share`` is the scored share of the unit (of its turns, if it is a dialogue).
    """

    values: pd.DataFrame
    cut: pd.DataFrame
    share: pd.DataFrame

    @classmethod
    def of_level(cls, scores: pd.DataFrame, level: str) -> _Scores:
        rows = scores[scores["level"] == level].assign(cut=lambda frame: frame.get("cut", 0))
        values, cut = (
            rows.pivot(index=UNIT, columns=NAME, values=part).astype(np.float64) for part in ("value", "cut")
        )
        return cls(values, cut, values.notna().astype(np.float64))

    def filled(self, units: Units, lowest: pd.Series) -> _Scores:
        """Return scores in which each output covers all units that another one has, or the given ones."""
        index = self.values.index.union(units)
        share = self.share.reindex(index, fill_value=0.0)
        return self._replace(values=self.values.reindex(index).fillna(lowest), share=share)


def _averaged_scores(turn: _Scores, whole: _Scores, rated: Units, dialogue_of: pd.Series) -> dict[str, _Scores]:
    """Return the scores of dialogues, and those of rated turns for system means, each from scores of both levels.

    A dialogue's score is its own or the mean over its turns; its own counts for each of its rated turns.
    """
    some = _grouped(turn.share, dialogue_of).max()
    if len(rated):
        share = _grouped(turn.share.reindex(rated, fill_value=0.0), dialogue_of).mean().reindex(some.index)
    else:
        counts = _grouped(turn.share, dialogue_of).sum()
        share = counts.div(counts.max(axis="columns"), axis="index")
    means = _Scores(_by_dialogue(turn.values, dialogue_of), _grouped(turn.cut, dialogue_of).max(), share.fillna(some))
    at = _dialogues(rated, dialogue_of)
    spread = [frame.reindex(at).set_axis(rated) for frame in whole]
    return {
        name: _Scores(*(one.join(other, how="outer") for one, other in zip(own, others, strict=True)))
        for name, own, others in (("dialogue", means, whole), ("system", turn, spread))
    }


def check_scores(scores: pd.DataFrame, dataset: str) -> None:
    """Reject an output with scores at both levels and a metric with the raters' name; warn about scores of systems."""
    where = f"dataset {dataset!r}"
    levels = scores.loc[scores["level"].isin(RATED_LEVELS), [*NAME, "level"]].drop_duplicates()
    if len(clash := levels[levels.duplicated(NAME)]):
        metric, output = clash.iloc[0][NAME]
        raise SchemaError(
            f"metric {metric!r}, output {output!r} has scores of turns and of dialogues",
            where=where,
            expected="one level for each output; a dialogue's score is made of its turns' by itself",
        )
    if (scores["metric"] == HUMAN[0]).any():
        raise SchemaError(f"a metric is called {HUMAN[0]!r}", where=where, expected="another name")
    if count := int((scores["level"] == "system").sum()):
        log.warning("%s: %d scores of whole systems are not used: systems are averaged here", dataset, count)


def _check_rated(values: pd.DataFrame, rated: Units, level: str, dataset: str, allow_missing: bool) -> None:
    """Reject a metric without any rated unit, and warn about unrated ones."""
    what = "response" if level == "turn" else level
    for metric, output in _named(values):
        own = values[metric, output].dropna().index
        lost = own.difference(rated)
        if len(lost) == len(own) and not allow_missing:
            raise SchemaError(
                f"no score of metric {metric!r} belongs to a rated {what}; the first is of {lost[0][0]!r}, system "
                f"{lost[0][1]!r}",
                where=f"dataset {dataset!r}",
                expected=f"the names of the ratings, such as {rated[0][0]!r}, system {rated[0][1]!r}",
            )
        if len(lost):
            log.warning("%s, %s: %d of %d scores belong to no rated %s", metric, output, len(lost), len(own), what)


def _dialogue_of(tables: Tables, where: str) -> pd.Series:
    """Return the dialogue of each context; without a table, each context is its own dialogue."""
    items = tables.of_level("turn")["item_id"].unique()
    if tables.contexts is None:
        items = np.union1d(items, tables.scores.loc[tables.scores["level"] == "turn", "item_id"].unique())
        return pd.Series(items, index=items, dtype=object)
    known = tables.contexts.set_index("context_id")["dialogue_id"].astype(object)
    if unknown := sorted({*items} - {*known.index}):
        problem = f"{len(unknown)} rated contexts are in no table, the first: {unknown[0]!r}"
        raise SchemaError(problem, where=where, expected="each context that was rated, in the table `contexts`")
    return known


def _has_several(turns: Units, contexts: pd.DataFrame | None, dialogue_of: pd.Series) -> bool:
    """Return whether any system was rated in several turns of a dialogue; otherwise dialogues equal turns."""
    units = turns.to_frame(index=False)
    units["dialogue"] = units["item_id"].map(dialogue_of)
    if contexts is not None and "turn" in contexts:
        # A turn that a system answered several times has a context per answer, but is one turn.
        units["item_id"] = units["item_id"].map(contexts.set_index("context_id")["turn"])
    return bool(units.drop_duplicates().duplicated(["dialogue", "system_id"]).any())


# Frames whose index begins with item_id and system_id.


def _named(values: pd.DataFrame) -> list[Output]:
    return list(zip(*(values.columns.get_level_values(part).astype(str) for part in NAME), strict=True))


def _units(single: pd.DataFrame) -> Units:
    index: Units = single.index
    return index.droplevel("dimension").unique()


def _of_target(frame: pd.DataFrame, target: str) -> pd.DataFrame:
    return frame[frame.index.get_level_values("dimension") == target].droplevel("dimension")


def _dialogues(turns: Units, dialogue_of: pd.Series) -> Units:
    items, systems = (turns.get_level_values(name) for name in UNIT)
    return pd.MultiIndex.from_arrays([dialogue_of.reindex(items).to_numpy(), systems], names=UNIT)


def _grouped(frame: pd.DataFrame, dialogue_of: pd.Series) -> DataFrameGroupBy:
    """Group turns by their dialogue and the other levels of the index."""
    items, *others = (frame.index.get_level_values(at) for at in range(frame.index.nlevels))
    return frame.groupby([pd.Index(dialogue_of.reindex(items).to_numpy(), name="item_id"), *others])


def _by_dialogue(frame: pd.DataFrame, dialogue_of: pd.Series) -> pd.DataFrame:
    return _averaged(frame, lambda values: _grouped(values, dialogue_of).mean())


def _mean_ratings(single: pd.DataFrame) -> pd.DataFrame:
    return _averaged(single, lambda values: values.mean(axis="columns").to_frame("rating"))


def _averaged(frame: pd.DataFrame, average: Callable[[pd.DataFrame], pd.DataFrame]) -> pd.DataFrame:
    """Average; a column's means that differ only in the order of addition are ties."""
    means, sizes = average(frame), average(frame.abs())
    values = merge_ties(means.to_numpy(dtype=np.float64).T, sizes.to_numpy(dtype=np.float64).T).T
    return pd.DataFrame(values, index=means.index, columns=means.columns)
