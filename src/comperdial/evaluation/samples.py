"""From tables of scores and ratings to what is correlated: one sample a level, a level of ratings and a dimension."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from comperdial.errors import SchemaError
from comperdial.evaluation._frames import (
    HUMAN,
    NAME,
    by_dialogue,
    check_scores,
    check_targets,
    dialogue_names,
    mean_by_dialogue,
    mean_ratings,
    mean_scores,
    of_dataset,
    of_target,
    ratings_by_dialogue,
    share_of_turns,
    single_ratings,
    units_of,
    wide,
)
from comperdial.evaluation.sample import FEWEST_SYSTEMS, Sample
from comperdial.stats.design import Design

log = logging.getLogger(__name__)

LEVELS = ("turn", "dialogue", "system")


def samples(
    scores: pd.DataFrame,
    ratings: pd.DataFrame | None,
    *,
    contexts: pd.DataFrame | None = None,
    dialogue_ratings: pd.DataFrame | None = None,
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
        Tables ``scores`` and ``turn_ratings``, of any number of data sets; ratings of turns may be None where there are
        ratings of dialogues.
    contexts
        Table ``contexts``: which dialogue a context belongs to; without it each context is a dialogue of its own.
    dialogue_ratings
        Table ``dialogue_ratings``; without it nothing is held against ratings of dialogues.
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
    if not allow_missing and not scores["level"].isin(["turn", "dialogue"]).any():
        raise SchemaError("no scores at turn level", expected="a table `scores` with records of level turn or dialogue")
    tables_of = [scores] if len(scores) else [table for table in (ratings, dialogue_ratings) if table is not None]
    for dataset in sorted({name for table in tables_of for name in table["dataset"].unique()}):
        turn, dialogue = of_dataset(ratings, dataset), of_dataset(dialogue_ratings, dataset)
        if turn is None and dialogue is None:
            if allow_missing:
                continue
            raise SchemaError(
                "scores, and no ratings",
                where=f"dataset {dataset!r}",
                expected="the same dataset, context_id and system_id in scores and ratings",
            )
        check_targets(targets, source, dataset, turn, dialogue)
        own = scores[scores["dataset"] == dataset]
        check_scores(own, dataset)
        tables = _Tables(dataset, own, turn, contexts, dialogue, systems, source, allow_missing)
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
        turn: pd.DataFrame | None,
        contexts: pd.DataFrame | None,
        dialogue: pd.DataFrame | None,
        systems: pd.DataFrame | None,
        source: str,
        allow_missing: bool,
    ) -> None:
        self.dataset = dataset
        self.allow_missing = allow_missing
        made = scores[[*NAME, "signature"]].drop_duplicates().to_numpy(dtype=str)
        self.signatures = {(row[0], row[1]): row[2] for row in made.tolist()}
        self.turn = single_ratings(turn, "context_id", systems, source)
        self.dialogue = single_ratings(dialogue, "dialogue_id", systems, source)
        names = dialogue_names(contexts, dataset, self.turn, scores)
        self.dialogue_of = names
        self.turn_of = None
        if contexts is not None and "turn" in contexts:
            self.turn_of = contexts[contexts["dataset"] == dataset].set_index("context_id")["turn"]
        scores = scores if "cut" in scores else scores.assign(cut=0)
        of_turns, of_dialogues = (scores[scores["level"] == level] for level in ("turn", "dialogue"))
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
        for (metric, output), group in scores.groupby(NAME, sort=True):
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
