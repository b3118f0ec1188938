"""From tables of scores and ratings to what is correlated: one sample a level, a level of ratings and a dimension."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
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
        check_targets(targets, source, dataset, rated)
        own = scores[scores["dataset"] == dataset]
        check_scores(own, dataset)
        tables = _Tables(dataset, own, rated, contexts, systems, source, allow_missing)
        none = True
        for sample in tables.samples(levels, targets):
            none = False
            yield sample
        if none and not allow_missing:
            raise SchemaError(
                f"nothing to correlate at the levels {', '.join(levels)}",
                where=f"dataset {dataset!r}",
                expected="scores and ratings of the same turns or dialogues",
            )


class _Tables:
    """One data set's scores and ratings, by unit."""

    def __init__(
        self,
        dataset: str,
        scores: pd.DataFrame,
        ratings: pd.DataFrame,
        contexts: pd.DataFrame | None,
        systems: pd.DataFrame | None,
        source: str,
        allow_missing: bool,
    ) -> None:
        self.dataset = dataset
        self.allow_missing = allow_missing
        made = scores[[*NAME, "signature"]].drop_duplicates().to_numpy(dtype=str)
        self.signatures = {(row[0], row[1]): row[2] for row in made.tolist()}
        self.turn, self.dialogue = (single_ratings(ratings, level, systems, source) for level in RATED_LEVELS)
        names = dialogue_names(contexts, dataset, self.turn, scores)
        self.dialogue_of = names
        self.turn_of = None
        if contexts is not None and "turn" in contexts:
            self.turn_of = contexts[contexts["dataset"] == dataset].set_index("context_id")["turn"]
        scores = scores if "cut" in scores else scores.assign(cut=0)
        # What is chosen is copied: long texts, such as signatures, are known by now.
        scores = scores[[*NAME, "level", "item_id", "system_id", "value", "cut"]]
        of_turns, of_dialogues = (scores[scores["level"] == level] for level in RATED_LEVELS)
        self._check_rated(of_turns, self.turn, "response")
        self._check_rated(of_dialogues, self.dialogue, "dialogue")
        self.turn_scores, self.turn_cut = wide(of_turns, "value"), wide(of_turns, "cut")
        own, own_cut = wide(of_dialogues, "value"), wide(of_dialogues, "cut")
        both = (mean_scores(self.turn_scores, names), by_dialogue(self.turn_cut, names).max())
        self.dialogue_scores, self.dialogue_cut = (
            mean.join(other, how="outer") for mean, other in zip(both, (own, own_cut), strict=True)
        )
        # A score of a whole dialogue counts for each of its turns, where systems are averaged over turns.
        self.spread, self.spread_cut = own, own_cut
        self.turn_means = None if self.turn is None else mean_by_dialogue(self.turn, names)
        raters = 0 if self.turn is None else self.turn.columns.size
        self.human_signature = f"human|ratings:turn|annotators:{raters}"
        self.share = share_of_turns(self.turn_scores, self.turn, names).join(
            own.notna().astype(np.float64), how="outer"
        )

    def _check_rated(self, scores: pd.DataFrame, rated: pd.DataFrame | None, what: str) -> None:
        """Refuse scores of which none was rated, and warn of those that were not."""
        if rated is None or rated.empty:
            return
        known = units_of(rated)
        for (metric, output), group in scores[[*NAME, "item_id", "system_id"]].groupby(NAME, sort=True):
            found = pd.MultiIndex.from_frame(group[["item_id", "system_id"]]).isin(known)
            if not found.any() and not self.allow_missing:
                raise SchemaError(
                    f"no score of metric {metric!r} belongs to a rated {what}",
                    where=f"dataset {self.dataset!r}",
                    expected="the same dataset, item and system_id in scores and ratings",
                )
            if lost := int((~found).sum()):
                log.warning("%s, %s: %d of %d scores belong to no rated %s", metric, output, lost, len(group), what)

    def samples(self, levels: Sequence[str], targets: Sequence[str] | None) -> Iterator[Sample]:
        """Go through what there is at each level."""
        for level in dict.fromkeys(levels):
            if level in ("turn", "system") and self.turn is not None:
                yield from self._of_ratings(level, "turn", self.turn, mean_ratings(self.turn), targets)
            if level == "dialogue" and self.turn is not None and self.turn_means is not None and self._has_several():
                single = ratings_by_dialogue(self.turn, self.dialogue_of)
                yield from self._of_ratings(level, "turn", single, self.turn_means, targets)
            if level in ("dialogue", "system") and self.dialogue is not None:
                means = mean_ratings(self.dialogue)
                yield from self._of_ratings(level, "dialogue", self.dialogue, means, targets)

    def _has_several(self) -> bool:
        """Say whether any system was rated in several turns of a dialogue: else dialogues are turns once more."""
        if self.turn is None:
            return False
        units = units_of(self.turn)
        contexts = units.get_level_values(0)
        # A turn that a system answered several times is one turn, of which each answer has a context.
        turns = contexts if self.turn_of is None else self.turn_of.reindex(contexts).to_numpy()
        found = pd.DataFrame(
            {
                "dialogue": self.dialogue_of.reindex(contexts).to_numpy(),
                "system": units.get_level_values(1),
                "turn": turns,
            }
        ).drop_duplicates()
        return bool(found.duplicated(["dialogue", "system"]).any())

    def _scores(self, level: str, against: str) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the scores of a level's units, and how many of each were cut."""
        if level == "dialogue" or against == "dialogue":
            return self.dialogue_scores, self.dialogue_cut
        if level == "turn":
            return self.turn_scores, self.turn_cut
        return self._with_spread(self.turn_scores, self.spread), self._with_spread(self.turn_cut, self.spread_cut)

    def _with_spread(self, frame: pd.DataFrame, spread: pd.DataFrame) -> pd.DataFrame:
        """Add what whole dialogues have: where systems are averaged over turns, it counts once a turn."""
        if spread.empty or self.turn is None:
            return frame
        units = units_of(self.turn)
        items = self.dialogue_of.reindex(units.get_level_values(0)).to_numpy()
        at = pd.MultiIndex.from_arrays([items, units.get_level_values(1)])
        by_turn = pd.DataFrame(spread.reindex(at).to_numpy(), index=units, columns=spread.columns)
        return frame.join(by_turn, how="outer")

    def _of_ratings(
        self, level: str, against: str, single: pd.DataFrame, means: pd.Series, targets: Sequence[str] | None
    ) -> Iterator[Sample]:
        """Pair the scores of a level with the ratings of each dimension, given one by one and as their means."""
        scores, cut = self._scores(level, against)
        for target in sorted(single.index.get_level_values("dimension").unique()):
            if targets is not None and target not in targets:
                continue
            rated = of_target(single, target).dropna(axis="columns", how="all")
            units = pd.MultiIndex.from_tuples(rated.index, names=["item_id", "system_id"])
            values = scores.reindex(units).dropna(axis="columns", how="all")
            if level == "system" and units.get_level_values(1).nunique() < FEWEST_SYSTEMS:
                continue
            if values.empty and not self.allow_missing:
                if against == "dialogue" and not scores.empty:
                    raise SchemaError(
                        "no score belongs to a rated dialogue",
                        where=f"dataset {self.dataset!r}",
                        expected="contexts of the rated dialogues",
                        hint="Hand in the table `contexts`, which says what dialogue a context belongs to",
                    )
                continue
            if against == "dialogue":
                values = self._with_human(values, target)
            mean = of_target(means.to_frame("rating"), target)["rating"]
            yield self._sample(level, against, target, rated, mean, values.sort_index(axis=1), cut.reindex(units))

    def _with_human(self, values: pd.DataFrame, target: str) -> pd.DataFrame:
        if self.turn_means is None or target not in self.turn_means.index.get_level_values("dimension"):
            return values
        means = of_target(self.turn_means.to_frame("rating"), target)["rating"]
        human = pd.DataFrame({HUMAN: means.reindex(values.index)}, index=values.index)
        human.columns = pd.MultiIndex.from_tuples([HUMAN], names=NAME)
        return values.join(human.dropna(axis="columns", how="all"))

    def _sample(
        self,
        level: str,
        against: str,
        target: str,
        rated: pd.DataFrame,
        means: pd.Series,
        values: pd.DataFrame,
        cut: pd.DataFrame,
    ) -> Sample:
        items, item_names = pd.factorize(rated.index.get_level_values(0))
        codes, names = pd.factorize(rated.index.get_level_values(1), sort=True)
        of_turns = against == "turn" and level != "dialogue"  # as Sample.of_turns
        dialogues = self.dialogue_of.reindex(item_names).to_numpy()[items] if of_turns else item_names[items]
        matrix = values.to_numpy(dtype=np.float64).T
        chosen = tuple((str(name[0]), str(name[1])) for name in values.columns)
        was_cut = cut.reindex(columns=values.columns).fillna(0).to_numpy() > 0
        return Sample(
            dataset=self.dataset,
            level=level,
            against=against,
            target=str(target),
            names=chosen,
            scores=matrix,
            annotators=tuple(map(str, rated.columns)),
            single=rated.to_numpy(dtype=np.float64).T,
            ratings=means.to_numpy(dtype=np.float64),
            design=Design(codes, pd.factorize(dialogues, sort=True)[0], average=level == "system"),
            items=items,
            units=tuple((str(unit[0]), str(unit[1])) for unit in rated.index),
            systems=tuple(map(str, names)),
            coverage=tuple(float(share) for share in self._coverage(values, of_turns)),
            cut=tuple(int(count) for count in (was_cut & ~np.isnan(matrix.T)).sum(axis=0)),
            signatures=tuple(self.signatures.get(name, self.human_signature) for name in chosen),
        )

    def _coverage(self, values: pd.DataFrame, of_turns: bool) -> pd.Series:
        """Return the share of rated units with a score; of a dialogue of which some turns have one, that share."""
        there = values.notna().astype(np.float64)
        if not of_turns:
            there *= self.share.reindex(index=values.index, columns=values.columns).fillna(1.0)
        return there.mean()


# Tables by unit: one row a unit, one column an output or an annotator.


def check_targets(targets: Sequence[str] | None, source: str, dataset: str, ratings: pd.DataFrame) -> None:
    """Refuse a source that no ratings of a data set have, and a dimension."""
    sources = set(ratings["source"].unique())
    if source not in sources:
        raise UnknownNameError("source of ratings", source, sources, where=f"dataset {dataset!r}")
    known = rated_dimensions(ratings, source)
    for target in targets or ():
        if target not in known:
            raise UnknownNameError("dimension", target, known, where=f"dataset {dataset!r}")


def check_scores(scores: pd.DataFrame, dataset: str) -> None:
    """Refuse scores that would stand in one column, and warn of those that no level takes."""
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


def single_ratings(ratings: pd.DataFrame, level: str, systems: pd.DataFrame | None, source: str) -> pd.DataFrame | None:
    """Return single ratings of a level: one row an item, system and dimension (index), one column an annotator."""
    chosen = without_references(ratings, systems)
    chosen = chosen[(chosen["level"] == level) & (chosen["source"] == source)]
    if chosen.empty:
        return None
    return chosen.pivot(index=["item_id", "system_id", "dimension"], columns="annotator_id", values="rating")


def units_of(single: pd.DataFrame) -> pd.MultiIndex:
    """Return the units, (item_id, system_id), that have a rating."""
    return pd.MultiIndex.from_frame(single.index.to_frame(index=False)[["item_id", "system_id"]].drop_duplicates())


def ratings_by_dialogue(single: pd.DataFrame, dialogue_of: pd.Series) -> pd.DataFrame:
    """Average each annotator's ratings of turns over a dialogue.

    Of a dialogue that not all rated as a whole, the mean of these is not its mean rating: :func:`mean_by_dialogue`.
    """
    units = single.index.to_frame(index=False)
    keys = [units["item_id"].map(dialogue_of).to_numpy(), units["system_id"].to_numpy(), units["dimension"].to_numpy()]
    found = _with_ties(single.groupby(keys).mean(), single.abs().groupby(keys).mean())
    found.index.names = ["item_id", "system_id", "dimension"]
    return found


def mean_by_dialogue(single: pd.DataFrame, dialogue_of: pd.Series) -> pd.Series:
    """Average the mean ratings of turns over a dialogue: one row an item, a system and a dimension."""
    return ratings_by_dialogue(mean_ratings(single).to_frame("rating"), dialogue_of)["rating"]


def mean_ratings(single: pd.DataFrame) -> pd.Series:
    """Average single ratings over annotators."""
    means, sizes = (frame.mean(axis="columns").to_frame("rating") for frame in (single, single.abs()))
    return _with_ties(means, sizes)["rating"]


def mean_scores(scores: pd.DataFrame, dialogue_of: pd.Series) -> pd.DataFrame:
    """Average scores of turns over each dialogue of each system."""
    means, sizes = (by_dialogue(frame, dialogue_of).mean() for frame in (scores, scores.abs()))
    return _with_ties(means, sizes)


def _with_ties(means: pd.DataFrame, sizes: pd.DataFrame) -> pd.DataFrame:
    """Make means ties, column by column, that differ only in the order of adding."""
    values = merge_ties(means.to_numpy(dtype=np.float64).T, sizes.to_numpy(dtype=np.float64).T).T
    return pd.DataFrame(values, index=means.index, columns=means.columns)


def share_of_turns(scores: pd.DataFrame, rated: pd.DataFrame | None, dialogue_of: pd.Series) -> pd.DataFrame:
    """Return the share of a dialogue's turns, rated ones where there are any, that each output has a score of."""
    counts = by_dialogue(scores.notna(), dialogue_of).sum()
    if rated is None:
        return counts.div(counts.max(axis="columns"), axis="index")
    units = units_of(rated)
    here = scores.reindex(units).notna()
    counts = by_dialogue(here, dialogue_of).sum()
    return counts.div(by_dialogue(pd.DataFrame({"n": 1}, index=units), dialogue_of).sum()["n"], axis="index")


def of_target(single: pd.DataFrame, target: str) -> pd.DataFrame:
    """Return one row a unit: the single ratings of one dimension."""
    rows = single.index.get_level_values("dimension") == target
    return single[rows].reset_index("dimension", drop=True).sort_index()


def wide(scores: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return one row a unit, one column a (metric, output)."""
    return scores.pivot(index=["item_id", "system_id"], columns=NAME, values=column).astype(np.float64)


def by_dialogue(frame: pd.DataFrame, dialogue_of: pd.Series) -> DataFrameGroupBy:
    """Group units of turns by dialogue and system."""
    dialogues = dialogue_of.reindex(frame.index.get_level_values(0)).to_numpy()
    keys = [pd.Index(dialogues, name="item_id"), pd.Index(frame.index.get_level_values(1), name="system_id")]
    return frame.groupby(keys)


def dialogue_names(
    contexts: pd.DataFrame | None, dataset: str, rated: pd.DataFrame | None, scores: pd.DataFrame
) -> pd.Series:
    """Return the dialogue of each context; without a table, each context is a dialogue of its own."""
    found = set(scores.loc[scores["level"] == "turn", "item_id"].unique())
    if rated is not None:
        found |= set(rated.index.get_level_values(0).unique())
    names = pd.Series({name: name for name in sorted(found)}, dtype=object)
    if contexts is not None:
        known = contexts[contexts["dataset"] == dataset].set_index("context_id")["dialogue_id"]
        if unknown := sorted(found - set(known.index)):
            raise SchemaError(
                f"{len(unknown)} contexts are in no table, the first: {unknown[0]!r}",
                where=f"dataset {dataset!r}",
                expected="each context that was rated or scored, in the table `contexts`",
            )
        names.update(known)
    return names
