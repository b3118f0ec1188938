"""Which wording of a question annotators agree on most (Li, Weston and Roller 2019, "Question Optimization")."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from comperdial.core.errors import SchemaError, UnknownNameError
from comperdial.stats.proportions import Share, share


@dataclass(frozen=True)
class Tried:
    """How far annotators agreed on a question.

    Attributes
    ----------
    question
        Its name.
    agreement
        Share of votes for the better system, or for the majority's, with Wilson's interval. A tie agrees with none.
    """

    question: str
    agreement: Share

    @property
    def hits(self) -> int:
        """Return how many votes agree."""
        return round(self.agreement.value * self.agreement.n)


def try_questions(preferences: pd.DataFrame, better: str | None = None) -> list[Tried]:
    """Return the agreement on each question, the best first.

    Parameters
    ----------
    preferences
        Table ``preferences``: each annotator one vote a question, as ``comperdial annotate try-questions`` has it.
        Controls are left out.
    better
        The system that is known to be better. Default: of each pair, the one that most chose for this question, which
        makes the agreement at least a half, and too high where votes are few.

    Raises
    ------
    ComperdialError
        When there is no vote, an annotator has two on one question, or a pair lacks the better system.
    """
    votes = preferences[preferences["control"].isna()]
    if votes.empty:
        raise SchemaError("no vote that is not a control's", expected="votes on questions")
    if (twice := votes[votes.duplicated(["question", "annotator_id"])]).size:
        row = twice.iloc[0]
        raise SchemaError(
            f"annotator {row['annotator_id']!r} has two votes on question {row['question']!r}",
            expected="one: votes of one person do not tell independently how a question is understood",
        )
    if better is None:
        agrees = votes["choice"] == _majority(votes)
    else:
        systems = votes[["first_system_id", "second_system_id"]]
        if better not in set(systems.to_numpy().ravel()):
            raise UnknownNameError("system", better, set(systems.to_numpy().ravel()))
        has = (systems == better).sum(axis=1)
        if (has != 1).any():
            row = votes[has != 1].iloc[0]
            raise SchemaError(f"pair {row['pair_id']!r} does not compare {better!r} with another", expected="it once")
        agrees = votes["choice"] == (systems["first_system_id"] == better).map({True: "first", False: "second"})
    found = [
        Tried(str(question), share(hits, range(len(hits)))) for question, hits in agrees.groupby(votes["question"])
    ]
    return sorted(found, key=lambda tried: (-tried.agreement.value, tried.question))


def _majority(votes: pd.DataFrame) -> pd.Series:
    """Return what most chose of the same pair for the same question; of equal numbers, the first."""
    counts = votes.assign(is_first=votes["choice"] == "first", is_second=votes["choice"] == "second")
    sums = counts.groupby(["question", "pair_id"])[["is_first", "is_second"]].transform("sum")
    return (sums["is_first"] >= sums["is_second"]).map({True: "first", False: "second"})


def difference(one: Tried, other: Tried) -> float:
    """Return the two-sided p of equal agreement on two questions, by Fisher's exact test: different people answered."""
    table = np.array([[tried.hits, tried.agreement.n - tried.hits] for tried in (one, other)])
    return float(stats.fisher_exact(table).pvalue)
