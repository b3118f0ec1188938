"""From tables of scores and ratings to what is correlated: one sample a level, a level of ratings and a dimension."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api.typing import DataFrameGroupBy

from comperdial.core.errors import SchemaError, UnknownNameError
from comperdial.core.names import LEVELS, RATED_LEVELS
from comperdial.evaluation.aggregate import rated_dimensions, without_references
from comperdial.stats.design import Design
from comperdial.stats.means import merge_ties

log = logging.getLogger(__name__)

Floats = npt.NDArray[np.float64]

NAME = ["metric", "output"]
# The paper's ``Human`` row: how well turn-level ratings say what the dialogue-level rating is.
HUMAN = ("human", "turns")
# Of fewer systems there is no system level: two always correlate perfectly.
FEWEST_SYSTEMS = 3


@dataclass(frozen=True)
class Sample:
    """Scores and ratings of the same units, for one level, one level of ratings and one rated dimension.

    A unit is a response (against ratings of turns, at turn and system level) or a dialogue of a system. At system level
    the units are those that systems are averaged over.

    Attributes
    ----------
    names
        (metric, output) of each row of ``scores``, sorted.
    scores
        Shape (outputs, units), NaN where there is no score. Scores, and ratings, that differ by rounding only are equal.
    annotators
        Who rated, in the order of the rows of ``single``.
    single
        Shape (annotators, units): single ratings, NaN where an annotator did not rate a unit.
    ratings
        Shape (units,): their mean over annotators.
    design
        Which system and dialogue a unit belongs to; it says that units are averaged at system level.
    items
        Shape (units,): codes of the context at turn level, of the dialogue at the others.
    units
        (context or dialogue, system) of each unit.
    systems
        The system's name for each code in ``design.systems``.
    coverage, cut, signatures
        One each output: the share of the rated units (of dialogues: of their turns) that it has a score of; how many of
        its units' inputs did not fit the metric's model; what made it.
    """

    dataset: str
    level: str
    against: str
    target: str
    names: tuple[tuple[str, str], ...]
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
        # A score of 0.1 + 0.2 and one of 0.3 are a tie, over all units as within items and over means.
        for name in ("scores", "ratings"):
            object.__setattr__(self, name, merge_ties(getattr(self, name)))

    @property
    def of_turns(self) -> bool:
        """Say whether a unit is a response; else it is a dialogue of a system."""
        return self.against == "turn" and self.level != "dialogue"

    @property
    def key(self) -> dict[str, str]:
        """Return what every record made of this sample begins with."""
        return {"dataset": self.dataset, "level": self.level, "against": self.against, "target": self.target}

    def with_systems_given(self) -> Sample:
        """Return the sample with systems that are those of interest: contexts alone count as sampled."""
        return replace(self, design=replace(self.design, fixed=True))

    def only(self, names: Sequence[tuple[str, str]]) -> Sample:
        """Return the sample with some of its outputs, in the sample's own order."""
        chosen = [row for row, name in enumerate(self.names) if name in set(names)]
        values = self.__dict__ | {
            "names": tuple(self.names[row] for row in chosen),
            "scores": self.scores[chosen],
            "coverage": tuple(self.coverage[row] for row in chosen),
            "cut": tuple(self.cut[row] for row in chosen),
            "signatures": tuple(self.signatures[row] for row in chosen),
        }
        return Sample(**values)


def samples(
    scores: pd.DataFrame,
    ratings: pd.DataFrame,
    *,
    contexts: pd.DataFrame | None = None,
    systems: pd.DataFrame | None = None,
    source: str = "human",
    levels: Sequence[str] = LEVELS,
    targets: Sequence[str] | None = None,
    allow_missing: bool = False,
) -> Iterator[Sample]:
    """Pair scores with ratings at each level that the tables allow.

    As the paper defines them (appendix C.1.2): a turn metric's dialogue score is its mean over the dialogue's turns; a
    system's score its mean over turns, or over dialogues where dialogues were rated; the ratings likewise.

    Parameters
    ----------
    scores, ratings
        Tables of these names, of any number of data sets.
    contexts
        Table ``contexts``: which dialogue a context belongs to; without it each context is a dialogue of its own.
    systems
        Table ``systems``: with it, the ratings of references, which are never scored, do not count.
    source
        Whose ratings.
    levels, targets
        Which levels and rated dimensions; default: all. Of fewer than three systems there is no system level.
    allow_missing
        Whether there may be nothing to correlate: a data set without any score has samples without outputs, one that
        nobody rated has none.

    Raises
    ------
    SchemaError
        When a metric's scores belong to nothing that was rated.
    UnknownNameError
        When no rating has the source or the dimension.
    """
    if not allow_missing and not scores["level"].isin(RATED_LEVELS).any():
        raise SchemaError("no scores at turn level", expected="a table `scores` with records of level turn or dialogue")
    for dataset in sorted((scores if len(scores) else ratings)["dataset"].unique()):
        rated = ratings[ratings["dataset"] == dataset]
        if rated.empty:
            if allow_missing:
                continue
            raise SchemaError(
                "scores, and no ratings",
                where=f"dataset {dataset!r}",
                expected="the same dataset, item_id and system_id in scores and ratings",
            )
        _check_targets(targets, source, dataset, rated)
        own = scores[scores["dataset"] == dataset]
        check_scores(own, dataset)
        single = {level: single_ratings(rated, level, systems, source) for level in RATED_LEVELS}
        of_dataset = None if contexts is None else contexts[contexts["dataset"] == dataset]
        result = list(_of_dataset(dataset, own, single, of_dataset, levels, targets, allow_missing))
        if not result and not allow_missing:
            raise SchemaError(
                f"nothing to correlate at the levels {', '.join(levels)}",
                where=f"dataset {dataset!r}",
                expected="scores and ratings of the same turns or dialogues",
            )
        yield from result


def _of_dataset(
    dataset: str,
    scores: pd.DataFrame,
    single: Mapping[str, pd.DataFrame | None],
    contexts: pd.DataFrame | None,
    levels: Sequence[str],
    targets: Sequence[str] | None,
    allow_missing: bool,
) -> Iterator[Sample]:
    """Pair the scores of one data set with its single ratings of turns and of dialogues."""
    made = scores[[*NAME, "signature"]].drop_duplicates().to_numpy(dtype=str)
    signatures = {(metric, output): signature for metric, output, signature in made.tolist()}
    turn, dialogue = (single[level] for level in RATED_LEVELS)
    raters = 0 if turn is None else turn.columns.size
    signatures[HUMAN] = f"human|ratings:turn|annotators:{raters}"
    dialogue_of = _dialogue_names(contexts, dataset, turn, scores)
    scores = scores if "cut" in scores else scores.assign(cut=0)
    scores = scores[[*NAME, "level", "item_id", "system_id", "value", "cut"]]
    for level, what in zip(RATED_LEVELS, ("response", "dialogue"), strict=True):
        _check_rated(scores[scores["level"] == level], single[level], what, dataset, allow_missing)
    tables = _Scores.of(scores, turn, dialogue_of)
    of_turns = None if turn is None else _by_dialogue(_mean_ratings(turn), dialogue_of)
    for level in dict.fromkeys(levels):
        rated: list[tuple[str, pd.DataFrame, pd.DataFrame]] = []
        if turn is not None and level != "dialogue":
            rated.append(("turn", turn, _mean_ratings(turn)))
        if (
            turn is not None
            and of_turns is not None
            and level == "dialogue"
            and _has_several(turn, contexts, dialogue_of)
        ):
            # Of a dialogue that not all rated as a whole, the mean over raters is not its mean rating.
            rated.append(("turn", _by_dialogue(turn, dialogue_of), of_turns))
        if dialogue is not None and level != "turn":
            rated.append(("dialogue", dialogue, _mean_ratings(dialogue)))
        for against, of_level, means in rated:
            of_units = against == "turn" and level != "dialogue"  # as Sample.of_turns
            values, cut = tables.turn if level == "turn" else tables.system if of_units else tables.dialogue
            for target in sorted(of_level.index.get_level_values("dimension").unique()):
                one = _of_target(of_level, target).dropna(axis="columns", how="all")
                systems = one.index.get_level_values("system_id")
                few = level == "system" and systems.nunique() < FEWEST_SYSTEMS
                if few or (targets is not None and target not in targets):
                    continue
                mine = values.reindex(one.index).dropna(axis="columns", how="all")
                if mine.empty and not allow_missing:
                    if against == "dialogue" and not values.empty:
                        raise SchemaError(
                            "no score belongs to a rated dialogue",
                            where=f"dataset {dataset!r}",
                            expected="contexts of the rated dialogues",
                            hint="Pass the table `contexts`, which names the dialogue of each context",
                        )
                    continue
                if against == "dialogue" and of_turns is not None:
                    mine = _with_human(mine, of_turns, target)
                mine = mine.sort_index(axis=1)
                names = tuple((str(name[0]), str(name[1])) for name in mine.columns)
                items, item_names = pd.factorize(one.index.get_level_values("item_id"))
                codes, system_names = pd.factorize(systems, sort=True)
                dialogues = dialogue_of.reindex(item_names).to_numpy()[items] if of_units else item_names[items]
                there = mine.notna()
                was_cut = cut.reindex(index=mine.index, columns=mine.columns).fillna(0) > 0
                # Of a dialogue of which some turns have a score, that share.
                share = 1.0 if of_units else tables.share.reindex(index=mine.index, columns=mine.columns).fillna(1.0)
                yield Sample(
                    dataset=dataset,
                    level=level,
                    against=against,
                    target=str(target),
                    names=names,
                    scores=mine.to_numpy(dtype=np.float64).T,
                    annotators=tuple(map(str, one.columns)),
                    single=one.to_numpy(dtype=np.float64).T,
                    ratings=_of_target(means, target)["rating"].to_numpy(dtype=np.float64),
                    design=Design(codes, pd.factorize(dialogues, sort=True)[0], average=level == "system"),
                    items=items,
                    units=tuple((str(unit[0]), str(unit[1])) for unit in one.index),
                    systems=tuple(map(str, system_names)),
                    coverage=tuple((there * share).mean().tolist()),
                    cut=tuple((was_cut & there).sum().tolist()),
                    signatures=tuple(signatures[name] for name in names),
                )


@dataclass(frozen=True)
class _Scores:
    """Scores as (values, how many were cut): one row a unit (item_id, system_id), one column a (metric, output).

    Attributes
    ----------
    turn, dialogue
        Of responses, and of dialogues: the means over their turns, and the scores of whole dialogues.
    system
        Of responses, with the scores of whole dialogues for each rated turn: systems are averaged over turns.
    share
        The share of a dialogue's turns, rated ones if there are any, that have a score.
    """

    turn: tuple[pd.DataFrame, pd.DataFrame]
    dialogue: tuple[pd.DataFrame, pd.DataFrame]
    system: tuple[pd.DataFrame, pd.DataFrame]
    share: pd.DataFrame

    @classmethod
    def of(cls, scores: pd.DataFrame, rated: pd.DataFrame | None, dialogue_of: pd.Series) -> _Scores:
        """Lay out the scores of one data set; ``rated`` are the single ratings of turns."""

        def wide(level: str, column: str) -> pd.DataFrame:
            rows = scores[scores["level"] == level]
            return rows.pivot(index=["item_id", "system_id"], columns=NAME, values=column).astype(np.float64)

        turn, whole = ((wide(level, "value"), wide(level, "cut")) for level in RATED_LEVELS)
        means = _by_dialogue(turn[0], dialogue_of).join(whole[0], how="outer")
        cut = _grouped(turn[1], dialogue_of).max().join(whole[1], how="outer")
        system = turn
        if rated is None:
            counts = _grouped(turn[0].notna(), dialogue_of).sum()
            share = counts.div(counts.max(axis="columns"), axis="index")
        else:
            units = _units(rated)
            share = _grouped(turn[0].reindex(units).notna(), dialogue_of).mean()
            if not whole[0].empty:
                items = dialogue_of.reindex(units.get_level_values("item_id")).to_numpy()
                at = pd.MultiIndex.from_arrays([items, units.get_level_values("system_id")])
                values, was_cut = (frame.reindex(at).set_axis(units) for frame in whole)
                system = turn[0].join(values, how="outer"), turn[1].join(was_cut, how="outer")
        share = share.join(whole[0].notna().astype(np.float64), how="outer")
        return cls(turn, (means, cut), system, share)


def _with_human(scores: pd.DataFrame, turns: pd.DataFrame, target: str) -> pd.DataFrame:
    """Add the mean ratings of a dialogue's turns as scores of the dialogue."""
    human = _of_target(turns, target)["rating"].reindex(scores.index)
    if human.isna().all():
        return scores
    columns = pd.MultiIndex.from_tuples([HUMAN], names=NAME)
    return scores.join(pd.DataFrame(human.to_numpy(), index=scores.index, columns=columns))


def _has_several(turn: pd.DataFrame, contexts: pd.DataFrame | None, dialogue_of: pd.Series) -> bool:
    """Return whether any system was rated in several turns of a dialogue: else dialogues are turns once more."""
    units = _units(turn).to_frame(index=False)
    units["dialogue"] = units["item_id"].map(dialogue_of)
    if contexts is not None and "turn" in contexts:
        # A turn that a system answered several times is one turn, of which each answer has a context.
        units["item_id"] = units["item_id"].map(contexts.set_index("context_id")["turn"])
    return bool(units.drop_duplicates().duplicated(["dialogue", "system_id"]).any())


def _check_targets(targets: Sequence[str] | None, source: str, dataset: str, ratings: pd.DataFrame) -> None:
    """Refuse a source that no ratings of a data set have, and a dimension."""
    sources = set(ratings["source"].unique())
    if source not in sources:
        raise UnknownNameError("source of ratings", source, sources, where=f"dataset {dataset!r}")
    known = rated_dimensions(ratings, source)
    for target in targets or ():
        if target not in known:
            raise UnknownNameError("dimension", target, known, where=f"dataset {dataset!r}")


def check_scores(scores: pd.DataFrame, dataset: str) -> None:
    """Refuse an output with scores of both levels and a metric with the raters' name; warn of scores that no level takes."""
    levels = scores[[*NAME, "level"]].drop_duplicates()
    clash = levels[levels["level"].isin(RATED_LEVELS)]
    clash = clash[clash.duplicated(NAME)]
    if len(clash):
        metric, output = clash.iloc[0][NAME]
        raise SchemaError(
            f"metric {metric!r}, output {output!r} has scores of turns and of dialogues",
            where=f"dataset {dataset!r}",
            expected="one level for each output; a dialogue's score is made of its turns' by itself",
        )
    if (scores["metric"] == HUMAN[0]).any():
        raise SchemaError(
            f"a metric is called {HUMAN[0]!r}",
            where=f"dataset {dataset!r}",
            expected="another name: this one is the raters'",
        )
    if count := int((scores["level"] == "system").sum()):
        log.warning("%s: %d scores of whole systems are not used: systems are averaged here", dataset, count)


def _check_rated(
    scores: pd.DataFrame, rated: pd.DataFrame | None, what: str, dataset: str, allow_missing: bool
) -> None:
    """Refuse scores of a metric of which none was rated, and warn of those that were not."""
    if rated is None:
        return
    known = pd.MultiIndex.from_frame(scores[["item_id", "system_id"]]).isin(_units(rated))
    for (metric, output), own in pd.Series(known, scores.index).groupby([scores[name] for name in NAME]):
        if not own.any() and not allow_missing:
            raise SchemaError(
                f"no score of metric {metric!r} belongs to a rated {what}",
                where=f"dataset {dataset!r}",
                expected="the same dataset, item and system_id in scores and ratings",
            )
        if lost := int((~own).sum()):
            log.warning("%s, %s: %d of %d scores belong to no rated %s", metric, output, lost, len(own), what)


def single_ratings(ratings: pd.DataFrame, level: str, systems: pd.DataFrame | None, source: str) -> pd.DataFrame | None:
    """Return single ratings of a level: one row an item, system and dimension (index), one column an annotator."""
    chosen = without_references(ratings, systems)
    chosen = chosen[(chosen["level"] == level) & (chosen["source"] == source)]
    if chosen.empty:
        return None
    return chosen.pivot(index=["item_id", "system_id", "dimension"], columns="annotator_id", values="rating")


def _dialogue_names(
    contexts: pd.DataFrame | None, dataset: str, rated: pd.DataFrame | None, scores: pd.DataFrame
) -> pd.Series:
    """Return the dialogue of each context; without a table, each context is a dialogue of its own."""
    result = set(scores.loc[scores["level"] == "turn", "item_id"].unique())
    if rated is not None:
        result |= set(rated.index.get_level_values("item_id").unique())
    names = pd.Series({name: name for name in sorted(result)}, dtype=object)
    if contexts is not None:
        known = contexts.set_index("context_id")["dialogue_id"]
        if unknown := sorted(result - set(known.index)):
            raise SchemaError(
                f"{len(unknown)} contexts are in no table, the first: {unknown[0]!r}",
                where=f"dataset {dataset!r}",
                expected="each context that was rated or scored, in the table `contexts`",
            )
        names.update(known)
    return names


# Frames whose index begins with item_id and system_id.


def _units(single: pd.DataFrame) -> pd.MultiIndex:
    return pd.MultiIndex.from_frame(single.index.to_frame(index=False)[["item_id", "system_id"]].drop_duplicates())


def _of_target(frame: pd.DataFrame, target: str) -> pd.DataFrame:
    rows = frame.index.get_level_values("dimension") == target
    return frame[rows].reset_index("dimension", drop=True).sort_index()


def _mean_ratings(single: pd.DataFrame) -> pd.DataFrame:
    """Average single ratings over annotators: column ``rating``."""
    return _with_ties(*(frame.mean(axis="columns").to_frame("rating") for frame in (single, single.abs())))


def _grouped(frame: pd.DataFrame, dialogue_of: pd.Series) -> DataFrameGroupBy:
    """Group turns by their dialogue and the other levels of the index."""
    items, *others = (frame.index.get_level_values(at) for at in range(frame.index.nlevels))
    return frame.groupby([pd.Index(dialogue_of.reindex(items).to_numpy(), name="item_id"), *others])


def _by_dialogue(frame: pd.DataFrame, dialogue_of: pd.Series) -> pd.DataFrame:
    """Average over the turns of each dialogue."""
    return _with_ties(*(_grouped(one, dialogue_of).mean() for one in (frame, frame.abs())))


def _with_ties(means: pd.DataFrame, sizes: pd.DataFrame) -> pd.DataFrame:
    """Make means ties, column by column, that differ only in the order of adding."""
    values = merge_ties(means.to_numpy(dtype=np.float64).T, sizes.to_numpy(dtype=np.float64).T).T
    return pd.DataFrame(values, index=means.index, columns=means.columns)
