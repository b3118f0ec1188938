"""Preferences: who wins against whom, how strong each system is, whether people agree, which metrics choose alike.

One question and one source at a time. Pairs with a known answer (``control``) test annotators and are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from comperdial.challenge.pairs import Dialogue
from comperdial.core.errors import ConfigError, SchemaError, UnknownNameError
from comperdial.metrics.text import normalise
from comperdial.stats import bradley_terry
from comperdial.stats.agreement import alpha_interval
from comperdial.stats.classification import cluster_weights, interval
from comperdial.stats.correlation import ALPHA, correlate
from comperdial.stats.multiple import holm
from comperdial.stats.proportions import Share, share
from comperdial.stats.win_rate import binomial_p, flip_p

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.intp]
Unit = Literal["annotator", "dialogue"]
# With fewer annotators, intervals of strengths are by dialogue: a few people say little about people.
FEWEST_ANNOTATORS = 10
# Ties added to each pair of systems where plain strengths are infinite.
_PRIOR = 0.1
_CODES = {"first": 1.0, "tie": 0.5, "second": 0.0}
_EITHER = ["a", "b"]


@dataclass(frozen=True)
class Votes:
    """Votes on one question, by one source, in one data set.

    Attributes
    ----------
    frame
        A row for each vote: ``a`` and ``b`` (systems, in alphabetical order), ``won`` (1 where a is preferred, 0.5 for
        a tie, 0 where b is), ``a_dialogue_id``, ``b_dialogue_id``, ``pair_id``, ``annotator_id``, ``seconds``;
        ``cluster``: votes on the same two systems that share a dialogue, however indirectly; ``left`` (1 where a was
        shown left, 0 where b was, NaN where that is not known).
    controls
        How many votes on control pairs were left out.
    """

    frame: pd.DataFrame
    dataset: str
    question: str
    source: str
    controls: int = 0

    @property
    def systems(self) -> list[str]:
        """Return the systems, in alphabetical order."""
        return sorted({*self.frame["a"], *self.frame["b"]})

    @property
    def apart(self) -> pd.DataFrame:
        """Return the votes on two different systems."""
        return self.frame[self.frame["a"] != self.frame["b"]]

    @property
    def strict(self) -> pd.DataFrame:
        """Return the votes for one of two different systems."""
        return self.apart[self.apart["won"] != 0.5]

    def without(self, system: str) -> Votes:
        """Return the votes on the other systems."""
        return replace(self, frame=self.frame[(self.frame[_EITHER] != system).all(axis=1)])


def votes_of(table: pd.DataFrame, *, question: str | None = None, source: str | None = None) -> Votes:
    """Take the votes on one question by one source from table ``preferences``, of one data set.

    ``question`` and ``source`` are needed only if there are several; of several sources ``human`` is the default.

    Raises
    ------
    ConfigError, UnknownNameError
        When one is needed, or unknown.
    SchemaError
        When there are several data sets, or no vote.
    """
    for column, wanted in (("source", source), ("question", question)):
        there = sorted(table[column].unique())
        if wanted is None and column == "source" and "human" in there:
            wanted = "human"
        if wanted is None and len(there) > 1:
            raise ConfigError(
                f"preferences of {len(there)} {column}s", where=f"--{column}", expected=f"one of {', '.join(there)}"
            )
        if wanted is not None and wanted not in there:
            raise UnknownNameError(column, wanted, there)
        table = table if wanted is None else table[table[column] == wanted]
    if table["dataset"].nunique() > 1:
        raise SchemaError(f"preferences of {', '.join(sorted(table['dataset'].unique()))}", expected="one data set")
    kept = table[table["control"].isna()].reset_index(drop=True)
    if kept.empty:
        raise SchemaError("no vote", where="table preferences", expected="a vote on a pair that is no control")
    swap = kept["first_system_id"] > kept["second_system_id"]
    frame = kept[["pair_id", "annotator_id"]].astype(object).assign(seconds=kept["seconds"].astype(float))
    for name, one, other in (("a", "first", "second"), ("b", "second", "first")):
        for column, kind in ((name, "system_id"), (f"{name}_dialogue_id", "dialogue_id")):
            frame[column] = kept[f"{one}_{kind}"].where(~swap, kept[f"{other}_{kind}"]).astype(object)
    for name, column in (("won", "choice"), ("left", "left")):
        code = kept[column].map(_CODES).astype(float)
        frame[name] = code.where(~swap, 1 - code)
    frame["cluster"] = _clusters(frame, _EITHER)
    first = kept.iloc[0]
    return Votes(frame, str(first["dataset"]), str(first["question"]), str(first["source"]), len(table) - len(kept))


def _clusters(frame: pd.DataFrame, within: Sequence[str] = ()) -> Integers:
    """Number the groups of votes that share a dialogue, however indirectly, within the same values of columns."""
    columns = [*within, "system", "dialogue"]
    sides = [frame[[*within, side, f"{side}_dialogue_id"]].set_axis(range(len(columns)), axis=1) for side in _EITHER]
    codes = pd.factorize(pd.MultiIndex.from_frame(pd.concat(sides)))[0]
    ends, others = np.split(codes, 2)
    links = coo_array((np.ones(len(frame)), (ends, others)), shape=(codes.max() + 1,) * 2)
    return np.asarray(connected_components(links, directed=False)[1][ends], dtype=np.intp)


def win_matrix(votes: Votes) -> pd.DataFrame:
    """Return who wins against whom.

    Returns
    -------
    DataFrame
        A row for each two systems that were compared: ``a``, ``b``, ``votes``, ``wins`` and ``losses`` of a, ``ties``,
        ``win_rate`` (of a, ties left out) with an interval that allows for votes that share a dialogue, ``low`` and
        ``high``; two-sided p of a win rate of one half, each followed by Holm's correction over all rows:
        ``p`` (binomial, as if each vote were independent), ``p_dialogue`` and ``p_annotator`` (exact, the votes of a
        dialogue or an annotator counting as one cluster); ``left``, how many votes showed a left, and ``sided``, of
        how many that is known.
    """
    rows = []
    for (a, b), group in votes.apart.groupby(_EITHER, sort=True):
        strict = group[group["won"] != 0.5]
        wins, margin = int((strict["won"] == 1).sum()), 2 * strict["won"] - 1
        rate = share(strict["won"] == 1, strict["cluster"])
        rows.append(
            {
                "a": a, "b": b, "votes": len(group), "wins": wins, "losses": len(strict) - wins,
                "ties": len(group) - len(strict), "win_rate": rate.value, "low": rate.low, "high": rate.high,
                "p": float(binomial_p(wins, len(strict))),
                "p_dialogue": flip_p(margin.groupby(strict["cluster"]).sum()),
                "p_annotator": flip_p(margin.groupby(strict["annotator_id"]).sum()),
                "left": int((group["left"] == 1).sum()), "sided": int(group["left"].notna().sum()),
            }
        )  # fmt: skip
    if not rows:
        raise SchemaError("no two systems were compared", where="table preferences", expected="votes on two systems")
    made = pd.DataFrame(rows)
    for name in ("p", "p_dialogue", "p_annotator"):
        made.insert([*made].index(name) + 1, f"{name}_holm", holm(made[name]))
    return made


def strengths(votes: Votes, *, by: Unit | None = None, matrix: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return the systems' Bradley-Terry strengths, ties half a win for each, the strongest first.

    ``by`` is what votes may share: an annotator, or (the default for fewer than ten of them) a dialogue; ``matrix`` is
    :func:`win_matrix`'s, if it was made already.

    Returns
    -------
    DataFrame
        ``system``, ``votes``, ``won`` (share, ties half), ``strength`` (logarithm, mean 0), ``low`` and ``high`` (95 %,
        :func:`comperdial.stats.bradley_terry.uncertainty`, by annotators or groups of votes that share dialogues),
        ``rank`` (any two systems of different ranks differ significantly), ``by`` (what votes may share) and ``prior``
        (ties added to each pair, where plain strengths are infinite). The ends and ranks are missing if there is one unit.
    """
    names, ballots, unit = _ballots(votes, by)
    wins, games = ballots.wins, ballots.wins + ballots.wins.T
    values, prior = _fitted(wins)
    low, high, p = bradley_terry.uncertainty(ballots)
    table = pd.DataFrame(
        {
            "system": names,
            "votes": games.sum(axis=1).astype(int),
            "won": wins.sum(axis=1) / games.sum(axis=1),
            "strength": values,
            "low": np.minimum(low, values),
            "high": np.maximum(high, values),
            "rank": pd.array([None] * len(names), dtype="Int64"),
            "by": unit,
            "prior": prior,
        }
    )
    if np.isfinite(low).all():
        table["rank"] = _ranks(table, win_matrix(votes) if matrix is None else matrix, p, unit)
    return table.sort_values("strength", ascending=False, kind="stable", ignore_index=True)


def strongest_first(votes: Votes) -> list[str]:
    """Return the systems by their strengths."""
    names, ballots, _ = _ballots(votes, None)
    return [names[at] for at in np.argsort(-_fitted(ballots.wins)[0], kind="stable")]


def _ballots(votes: Votes, by: Unit | None) -> tuple[list[str], bradley_terry.Ballots, Unit]:
    """Return the systems, the votes on two of them, and what a unit is."""
    frame = votes.apart
    names = sorted({*frame["a"], *frame["b"]})
    unit: Unit = by or ("annotator" if frame["annotator_id"].nunique() >= FEWEST_ANNOTATORS else "dialogue")
    units = frame["annotator_id"].to_numpy() if unit == "annotator" else _clusters(frame)
    a, b = (pd.Index(names).get_indexer(frame[side]).astype(np.intp) for side in _EITHER)
    return names, bradley_terry.Ballots(a, b, frame["won"].to_numpy(np.float64), pd.factorize(units)[0]), unit


def _fitted(wins: Floats) -> tuple[Floats, float]:
    """Return strengths, and the ties that were added to each pair to make them finite."""
    prior = 0.0 if bradley_terry.has_strengths(wins) else _PRIOR
    try:
        return bradley_terry.strengths(wins, prior=prior), prior
    except ValueError as error:
        raise SchemaError(
            "the systems fall into groups that were never compared with each other",
            where="table preferences",
            expected="pairs that link all systems",
        ) from error


def _ranks(table: pd.DataFrame, matrix: pd.DataFrame, p_of_all: Floats, unit: Unit) -> list[int]:
    """Rank systems so that any two of different ranks differ significantly.

    From the strongest down, a new rank begins where every system above is significantly preferred to every system below,
    at 5 % after Holm's correction over all pairs. The test of a pair is that of its own votes, the binomial one or the
    clustered one, whichever p is larger; a pair that was never compared is tested by the difference of strengths.
    """
    place = pd.Index(table["system"])
    strength, p = table["strength"].to_numpy(), p_of_all.copy()
    a, b = (place.get_indexer(matrix[side]) for side in _EITHER)
    agrees = (matrix["wins"] - matrix["losses"]).to_numpy() * (strength[a] - strength[b]) > 0
    p[a, b] = p[b, a] = np.where(agrees, matrix[["p", f"p_{unit}"]].max(axis=1), 1.0)
    above = np.triu_indices(len(strength), 1)
    differ = np.zeros(p.shape, dtype=bool)
    differ[above] = holm(p[above]) < ALPHA
    differ |= differ.T
    order = np.argsort(-strength, kind="stable")
    ranks, rank = np.ones(len(strength), dtype=int), 1
    for cut in range(1, len(order)):
        rank += bool(differ[np.ix_(order[:cut], order[cut:])].all())
        ranks[order[cut]] = rank
    return ranks.tolist()


def circles(matrix: pd.DataFrame, *, significant: bool = False) -> list[tuple[str, str, str]]:
    """Return the triples of systems that beat each other in a circle: by majority, or by significant wins alone."""
    names = pd.Index(sorted({*matrix["a"], *matrix["b"]}))
    kept = matrix[(matrix["wins"] != matrix["losses"]) & ~((matrix["p_dialogue"] > ALPHA) & significant)]
    a, b = (names.get_indexer(kept[side]) for side in _EITHER)
    won, beats = (kept["wins"] > kept["losses"]).to_numpy(), np.zeros((len(names),) * 2, dtype=bool)
    beats[np.where(won, a, b), np.where(won, b, a)] = True
    return [(names[i], names[j], names[k]) for i, j, k in bradley_terry.cycles(beats)]


class Agreement(NamedTuple):
    """How far annotators of the same pair agree.

    ``pairs`` counts those with two annotators or more; ``value`` is the share of pairs of annotators with the same choice, a
    tie being a choice, the mean over pairs; ``alpha`` is Krippendorff's, nominal: 0 is chance. The ends are of 95 %
    intervals over groups of votes that share dialogues.
    """

    pairs: int
    value: float
    low: float
    high: float
    alpha: float
    alpha_low: float
    alpha_high: float


def agreement(votes: Votes, *, resamples: int = 1000, seed: int = 2024) -> Agreement:
    """Return how far annotators of the same pair agree."""
    frame = votes.frame
    table = frame.pivot(index="pair_id", columns="annotator_id", values="won")
    table = table[table.notna().sum(axis=1) >= 2]
    if table.empty:
        return Agreement(0, *(float("nan"),) * 6)
    values = table.to_numpy(float)
    counts = np.stack([(values == code).sum(axis=1) for code in _CODES.values()])
    n = counts.sum(axis=0)
    alike = (counts * (counts - 1)).sum(axis=0) / (n * (n - 1))
    clusters = frame.drop_duplicates("pair_id").set_index("pair_id")["cluster"].reindex(table.index).to_numpy()
    rng = np.random.default_rng(seed)
    low, high = _mean_interval(alike, clusters, resamples, rng)
    # Only which values a pair has matters: a table as wide as the most that judged a pair is enough.
    packed = np.full((len(values), int(n.max())), np.nan)
    packed[np.arange(int(n.max())) < n[:, np.newaxis]] = values[~np.isnan(values)]
    alpha = alpha_interval(packed, "nominal", rng=rng, resamples=resamples, clusters=clusters)
    return Agreement(len(values), float(alike.mean()), low, high, *alpha)


def _mean_interval(
    values: Floats, clusters: npt.NDArray[np.generic], resamples: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the ends of the 95 % percentile interval of a mean over resampled clusters; NaN for fewer than two."""
    if len(np.unique(clusters)) < 2:
        return np.nan, np.nan
    weights = cluster_weights(clusters, resamples, rng)
    return interval(weights @ values / weights.sum(axis=1))


class Analysis(NamedTuple):
    """All that is made of votes; ``left`` is how often what was shown left is preferred, with an interval by annotator."""

    votes: Votes
    matrix: pd.DataFrame
    strengths: pd.DataFrame
    left: Share
    agreement: Agreement

    @property
    def dominant(self) -> str:
        """Return the strongest system."""
        return str(self.strengths["system"].iloc[0])


def analyse(votes: Votes, *, by: Unit | None = None, resamples: int = 1000, seed: int = 2024) -> Analysis:
    """Analyse votes; ``by`` as in :func:`strengths`, what follows as in :func:`agreement`."""
    matrix, sided = win_matrix(votes), votes.frame[(votes.frame["won"] != 0.5) & votes.frame["left"].notna()]
    left = share(sided["won"] == sided["left"], sided["annotator_id"])
    return Analysis(
        votes, matrix, strengths(votes, by=by, matrix=matrix), left, agreement(votes, resamples=resamples, seed=seed)
    )


# Which metrics choose alike


def dialogue_scores(scores: pd.DataFrame, contexts: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return one score for each dialogue: those of dialogues, else the mean over the judged speaker's turns.

    ``scores`` is a table of this name; ``contexts`` (``context_id`` and ``dialogue_id``) is needed for scores of turns. The
    result has the columns ``metric``, ``output``, ``dialogue_id``, ``system_id`` and ``value``.
    """
    key = ["metric", "output", "dialogue_id", "system_id"]
    whole = scores[scores["level"] == "dialogue"].rename(columns={"item_id": "dialogue_id"})[[*key, "value"]]
    turns = scores[scores["level"] == "turn"]
    if turns.empty:
        return whole.reset_index(drop=True)
    if contexts is None:
        needed = "--contexts, which dialogue each belongs to, or scores of dialogues"
        raise ConfigError("scores of turns", where="--scores", expected=needed)
    of = contexts.drop_duplicates("context_id").set_index("context_id")["dialogue_id"]
    named = turns.assign(dialogue_id=turns["item_id"].map(of))
    if (unknown := named.loc[named["dialogue_id"].isna(), "item_id"]).any():
        text = f"context {unknown.iloc[0]!r} is not known"
        raise SchemaError(text, where="--scores", expected="a context of --contexts")
    means = named.groupby(key)["value"].mean().reset_index()
    done = pd.MultiIndex.from_frame(means[key[:2]]).isin(pd.MultiIndex.from_frame(whole[key[:2]]))
    return pd.concat([whole, means[~done]], ignore_index=True)


def properties(dialogue: Dialogue) -> dict[str, float]:
    """Return what can be counted of the judged speaker's utterances."""
    texts = dialogue.judged_texts()
    theirs = [text for speaker, text in dialogue.utterances if speaker != dialogue.judged]
    words, partner = normalise(" ".join(texts)).split(), {*normalise(" ".join(theirs)).split()}
    return {
        "words": sum(len(text.split()) for text in texts),
        "words, normalised": len(words),
        "different words": len(set(words)),
        "share of different words": len(set(words)) / len(words) if words else np.nan,
        "share of words the partner said too": float(np.mean([w in partner for w in words])) if words else np.nan,
        "share of utterances with a question": sum("?" in text for text in texts) / len(texts) if texts else np.nan,
        "utterances that are not a repetition": len(set(texts)) / len(texts) if texts else np.nan,
    }


def metric_choices(
    votes: Votes,
    scores: pd.DataFrame,
    *,
    dominant: str,
    ratings: pd.DataFrame | None = None,
    resamples: int = 1000,
    seed: int = 2024,
) -> pd.DataFrame:
    """Return how often the dialogue with the higher score is the preferred one; equal scores are half a hit.

    Votes for a tie are left out. ``scores`` are :func:`dialogue_scores`'s; ``ratings`` (``dialogue_id``, ``system_id`` and
    ``rating``) are for the correlation; the 95 % percentile intervals are by annotator.

    Returns
    -------
    DataFrame
        ``metric``, ``output``, ``of`` (``all``, ``others``: without the ``dominant`` system, or ``pair``: two systems, ``a`` and
        ``b``), ``value``, ``low``, ``high``, ``n`` (votes), ``lacking`` (votes without both scores), and for ``all``
        and ``others`` ``spearman`` with ratings of the same systems.
    """
    rows, strict, item = [], votes.strict, ["dialogue_id", "system_id"]
    for (metric, output), group in scores.groupby(["metric", "output"], sort=False):
        known = group.set_index(item)["value"]
        keys = (pd.MultiIndex.from_frame(strict[[f"{side}_dialogue_id", side]]) for side in _EITHER)
        a, b = (known.reindex(key).to_numpy(float) for key in keys)
        hit = np.where(a == b, 0.5, (a > b) == (strict["won"] == 1))
        frame = strict.assign(hit=np.where(np.isnan(a) | np.isnan(b), np.nan, hit))
        parts = {("all", "", ""): frame, ("others", "", ""): frame[(frame[_EITHER] != dominant).all(axis=1)]}
        parts |= {("pair", str(x), str(y)): part for (x, y), part in frame.groupby(_EITHER)}
        for (of, x, y), part in parts.items():
            there, spearman = part[part["hit"].notna()], np.nan
            rng = np.random.default_rng(seed)
            low, high = _mean_interval(there["hit"].to_numpy(float), there["annotator_id"].to_numpy(), resamples, rng)
            if ratings is not None and of != "pair":
                rated = group.merge(ratings, on=item)
                own = rated if of == "all" else rated[rated["system_id"] != dominant]
                value, rating = own["value"].to_numpy(float), own["rating"].to_numpy(float)
                spearman = float(correlate(value, rating, "spearman").value)
            about = {"metric": metric, "output": output, "of": of, "a": x, "b": y}
            numbers = {"value": there["hit"].mean(), "low": low, "high": high, "n": len(there)}
            rows.append(about | numbers | {"lacking": len(part) - len(there), "spearman": spearman})
    return pd.DataFrame(rows)


def significance(
    votes: Votes, a: str, b: str, sizes: Sequence[int], *, draws: int = 2000, seed: int = 2024
) -> pd.DataFrame:
    """Return how likely studies of several sizes on two systems are to find a difference (binomial test, 5 %).

    Votes, ties among them, are drawn at random from those given, with replacement. A vote costs the median time of those
    whose time is known. The columns are ``votes``, ``hours`` (missing if no time is known) and ``probability``.
    """
    frame = votes.frame[(votes.frame["a"] == a) & (votes.frame["b"] == b)]
    if frame.empty:
        text = f"no vote on {a} and {b}"
        raise SchemaError(text, where="table preferences", expected="two systems that were compared")
    shares = [float((frame["won"] == code).mean()) for code in (1.0, 0.0, 0.5)]
    rng = np.random.default_rng(seed)
    drawn = [rng.multinomial(size, shares, size=draws).T for size in sizes]
    significant = [float((binomial_p(wins, wins + losses) <= ALPHA).mean()) for wins, losses, _ in drawn]
    hours = np.array(sizes) * float(frame["seconds"].median()) / 3600
    return pd.DataFrame({"votes": list(sizes), "hours": hours, "probability": significant})
