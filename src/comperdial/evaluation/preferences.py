"""What preferences say: who wins against whom, how strong each system is, whether people agree, which metrics choose alike.

One question and one source at a time. Pairs with a known answer (``control``) test annotators and take no part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from comperdial.challenge.pairs.dialogues import Dialogue
from comperdial.core.errors import ConfigError, SchemaError, UnknownNameError
from comperdial.metrics.text import normalise
from comperdial.stats import bradley_terry
from comperdial.stats.agreement import alpha_interval
from comperdial.stats.comparison import holm
from comperdial.stats.correlation import ALPHA, correlate
from comperdial.stats.proportions import Share, share
from comperdial.stats.win_rate import binomial_p, flip_p

Floats = npt.NDArray[np.float64]
Unit = Literal["annotator", "dialogue"]
# Below so many annotators, intervals of strengths are by dialogue: a few people say little about people.
FEWEST_ANNOTATORS = 10
# Ties added to each pair of systems where plain strengths are infinite.
_PRIOR = 0.1
_CODES = {"first": 1.0, "tie": 0.5, "second": 0.0}


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
    dataset, question, source
        What they are of.
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
    def strict(self) -> pd.DataFrame:
        """Return the votes for one of two different systems."""
        return self.frame[(self.frame["won"] != 0.5) & (self.frame["a"] != self.frame["b"])]

    def without(self, system: str) -> Votes:
        """Return the votes on the other systems."""
        return replace(self, frame=self.frame[(self.frame["a"] != system) & (self.frame["b"] != system)])


def votes_of(table: pd.DataFrame, *, question: str | None = None, source: str | None = None) -> Votes:
    """Take the votes on one question by one source from table ``preferences``.

    Parameters
    ----------
    table
        Of one data set.
    question, source
        Which; need not be said where there is one. Of several sources, ``human`` is taken.

    Raises
    ------
    ConfigError, UnknownNameError
        Where it must be said, or there is none such.
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
    names = sorted(table["dataset"].unique())
    if len(names) > 1:
        raise SchemaError(f"preferences of {', '.join(names)}", expected="one data set")
    kept = table[table["control"].isna()]
    if kept.empty:
        raise SchemaError("no vote", where="table preferences", expected="a vote on a pair that is no control")
    swap = (kept["first_system_id"] > kept["second_system_id"]).to_numpy()
    sides = [kept["first_system_id"], kept["second_system_id"], kept["first_dialogue_id"], kept["second_dialogue_id"]]
    first, second, first_dialogue, second_dialogue = (side.to_numpy(dtype=object) for side in sides)
    won, left = kept["choice"].map(_CODES).to_numpy(float), kept["left"].map(_CODES).to_numpy(float)
    frame = pd.DataFrame(
        {
            "a": np.where(swap, second, first),
            "b": np.where(swap, first, second),
            "won": np.where(swap, 1 - won, won),
            "a_dialogue_id": np.where(swap, second_dialogue, first_dialogue),
            "b_dialogue_id": np.where(swap, first_dialogue, second_dialogue),
            "pair_id": kept["pair_id"].to_numpy(dtype=object),
            "annotator_id": kept["annotator_id"].to_numpy(dtype=object),
            "seconds": kept["seconds"].to_numpy(dtype=np.float64, na_value=np.nan),
            "left": np.where(swap, 1 - left, left),
        }
    )
    frame["cluster"] = _clusters(frame, ["a", "b"])
    told = kept.iloc[0]
    return Votes(frame, names[0], str(told["question"]), str(told["source"]), len(table) - len(kept))


def _clusters(frame: pd.DataFrame, within: Sequence[str] = ()) -> npt.NDArray[np.intp]:
    """Number the groups of votes that share a dialogue, however indirectly, within the same values of columns."""
    nodes = [
        pd.MultiIndex.from_frame(frame[[*within, side, f"{side}_dialogue_id"]], names=[*within, "system", "dialogue"])
        for side in ("a", "b")
    ]
    codes = pd.factorize(nodes[0].append(nodes[1]))[0]
    ends, others = codes[: len(frame)], codes[len(frame) :]
    size = int(codes.max()) + 1
    links = coo_array((np.ones(len(frame)), (ends, others)), shape=(size, size))
    return np.asarray(connected_components(links, directed=False)[1][ends], dtype=np.intp)


def win_matrix(votes: Votes) -> pd.DataFrame:
    """Return who wins against whom.

    Returns
    -------
    DataFrame
        A row for each two systems that were compared: ``a``, ``b``, ``votes``, ``wins`` and ``losses`` of a, ``ties``,
        ``win_rate`` (of a, ties left out) with an interval that knows which votes share a dialogue, ``low`` and
        ``high``; two-sided p of a win rate of one half, each followed by Holm's correction over all rows:
        ``p`` (binomial, as if each vote were independent), ``p_dialogue`` and ``p_annotator`` (exact, votes that share
        a dialogue or an annotator stand or fall together); ``left``, how many votes showed a left, and ``sided``, in
        how many that is known.
    """
    rows = []
    frame = votes.frame[votes.frame["a"] != votes.frame["b"]]
    for (a, b), group in frame.groupby(["a", "b"], sort=True):
        strict = group[group["won"] != 0.5]
        wins = int((strict["won"] == 1).sum())
        rate = share(strict["won"] == 1, strict["cluster"])
        margin = 2 * strict["won"] - 1
        rows.append(
            {
                "a": a,
                "b": b,
                "votes": len(group),
                "wins": wins,
                "losses": len(strict) - wins,
                "ties": len(group) - len(strict),
                "win_rate": rate.value,
                "low": rate.low,
                "high": rate.high,
                "p": float(binomial_p(wins, len(strict))),
                "p_dialogue": flip_p(margin.groupby(strict["cluster"]).sum()),
                "p_annotator": flip_p(margin.groupby(strict["annotator_id"]).sum()),
                "left": int((group["left"] == 1).sum()),
                "sided": int(group["left"].notna().sum()),
            }
        )
    if not rows:
        raise SchemaError("no two systems were compared", where="table preferences", expected="votes on two systems")
    made = pd.DataFrame(rows)
    for name in ("p", "p_dialogue", "p_annotator"):
        made.insert([*made].index(name) + 1, f"{name}_holm", holm(made[name]))
    return made


def strengths(votes: Votes, *, by: Unit | None = None, matrix: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return the systems' Bradley-Terry strengths, ties half a win for each, the strongest first.

    Parameters
    ----------
    votes
        On one question, by one source.
    by
        What votes may share: an annotator, or (the default where there are fewer than ten of them) a dialogue.
    matrix
        As :func:`win_matrix` returns it, if it is there already.

    Returns
    -------
    DataFrame
        ``system``, ``votes``, ``won`` (share, ties half), ``strength`` (logarithm, mean 0), ``low`` and ``high`` (95 %,
        :func:`comperdial.stats.bradley_terry.uncertainty`, by annotators or groups of votes that share dialogues),
        ``rank`` (:func:`_ranks`), ``by`` (whose votes may be alike) and ``prior`` (ties added to each pair, where plain
        strengths are infinite). The ends and ranks are missing where there is one unit only.
    """
    names, ballots, unit = _ballots(votes, by)
    wins = ballots.wins
    found, prior = _fitted(wins)
    sure = bradley_terry.uncertainty(ballots)
    games = wins + wins.T
    table = pd.DataFrame(
        {
            "system": names,
            "votes": games.sum(axis=1).astype(int),
            "won": wins.sum(axis=1) / games.sum(axis=1),
            "strength": found,
            "low": np.fmin(sure.low, found),
            "high": np.fmax(sure.high, found),
            "rank": pd.array([None] * len(names), dtype="Int64"),
            "by": unit,
            "prior": prior,
        }
    )
    if np.isfinite(sure.low).all():
        table["rank"] = _ranks(table, win_matrix(votes) if matrix is None else matrix, sure.p, unit)
    else:
        table[["low", "high"]] = np.nan
    return table.sort_values("strength", ascending=False, kind="stable", ignore_index=True)


def strongest_first(votes: Votes) -> list[str]:
    """Return the systems by their strengths."""
    names, ballots, _ = _ballots(votes, None)
    found = _fitted(ballots.wins)[0]
    return [names[at] for at in np.argsort(-found, kind="stable")]


def _ballots(votes: Votes, by: Unit | None) -> tuple[list[str], bradley_terry.Ballots, Unit]:
    """Return the systems, the votes on two of them, and what a unit is."""
    frame = votes.frame[votes.frame["a"] != votes.frame["b"]]
    names = sorted({*frame["a"], *frame["b"]})
    place = {name: at for at, name in enumerate(names)}
    unit: Unit = by or ("annotator" if frame["annotator_id"].nunique() >= FEWEST_ANNOTATORS else "dialogue")
    units = pd.factorize(frame["annotator_id"])[0] if unit == "annotator" else _clusters(frame)
    a, b = (frame[side].map(place).to_numpy(dtype=np.intp) for side in ("a", "b"))
    codes = np.unique(units, return_inverse=True)[1].astype(np.intp)
    return names, bradley_terry.Ballots(a, b, frame["won"].to_numpy(dtype=np.float64), codes), unit


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
    """Rank systems so that those of different ranks differ significantly, each from each, whichever two one takes.

    From the strongest down, a new rank begins where every system above is significantly preferred to every system below,
    at 5 % after Holm's correction over all pairs. The test of a pair is that of its own votes, the binomial one and the
    one in which votes of a unit stand or fall together, whichever p is larger; a pair that was never compared is tested
    by the difference of strengths.
    """
    place = {name: at for at, name in enumerate(table["system"])}
    strength = table["strength"].to_numpy()
    p = p_of_all.copy()
    for row in matrix.to_dict("records"):
        a, b = place[row["a"]], place[row["b"]]
        agrees = (row["wins"] - row["losses"]) * (strength[a] - strength[b]) > 0
        p[a, b] = p[b, a] = max(row["p"], row[f"p_{unit}"]) if agrees else 1.0
    above = np.triu_indices(len(strength), 1)
    differ = np.zeros(p.shape, dtype=bool)
    differ[above] = holm(p[above]) < ALPHA
    differ |= differ.T
    ranks, rank = np.ones(len(strength), dtype=int), 1
    order = np.argsort(-strength, kind="stable")
    for cut in range(1, len(order)):
        rank += bool(differ[np.ix_(order[:cut], order[cut:])].all())
        ranks[order[cut]] = rank
    return ranks.tolist()


def circles(matrix: pd.DataFrame, *, significant: bool = False) -> list[tuple[str, str, str]]:
    """Return the triples of systems that beat each other in a circle: by majority, or by significant wins alone."""
    names = sorted({*matrix["a"], *matrix["b"]})
    place = {name: at for at, name in enumerate(names)}
    beats = np.zeros((len(names), len(names)), dtype=bool)
    for row in matrix.to_dict("records"):
        if row["wins"] != row["losses"] and not (significant and row["p_dialogue"] > ALPHA):
            winner, loser = (row["a"], row["b"]) if row["wins"] > row["losses"] else (row["b"], row["a"])
            beats[place[winner], place[loser]] = True
    return [(names[i], names[j], names[k]) for i, j, k in bradley_terry.cycles(beats)]


def left_chosen(votes: Votes) -> Share:
    """Return how often what was shown left is preferred, ties left out, with an interval by annotator."""
    frame = votes.frame[(votes.frame["won"] != 0.5) & votes.frame["left"].notna()]
    return share(frame["won"] == frame["left"], frame["annotator_id"])


@dataclass(frozen=True)
class Agreement:
    """How far annotators of the same pair agree.

    Attributes
    ----------
    pairs, annotator_pairs
        How many pairs have two annotators or more, and how many pairs of annotators that makes.
    value, low, high
        Share of pairs of annotators that chose alike, a tie being a choice: 0 where two differ, one third where two of
        three agree. The mean over pairs; 95 %, percentiles of resamples of groups of votes that share dialogues.
    alpha, alpha_low, alpha_high
        Krippendorff's alpha, nominal: 0 is what chance would give.
    """

    pairs: int
    annotator_pairs: int
    value: float
    low: float
    high: float
    alpha: float
    alpha_low: float
    alpha_high: float


def agreement(votes: Votes, *, ties: bool = True, resamples: int = 1000, seed: int = 2024) -> Agreement:
    """Return how far annotators of the same pair agree; with ``ties`` False only votes for one of the two count."""
    frame = votes.frame if ties else votes.frame[votes.frame["won"] != 0.5]
    table = frame.pivot(index="pair_id", columns="annotator_id", values="won")
    table = table[table.notna().sum(axis=1) >= 2]
    if table.empty:
        return Agreement(0, 0, *(float("nan"),) * 6)
    values = table.to_numpy(float)
    counts = np.stack([(values == code).sum(axis=1) for code in _CODES.values()])
    n = counts.sum(axis=0)
    alike = (counts * (counts - 1)).sum(axis=0) / (n * (n - 1))
    clusters = frame.drop_duplicates("pair_id").set_index("pair_id")["cluster"].reindex(table.index).to_numpy()
    rng = np.random.default_rng(seed)
    low, high = _mean_interval(alike, clusters, resamples, rng)
    # Columns are annotators of a row, in any order: a table as wide as the most that judged a pair is enough.
    packed = np.full((len(values), int(n.max())), np.nan)
    packed[np.arange(int(n.max())) < n[:, np.newaxis]] = values[~np.isnan(values)]
    alpha = alpha_interval(packed, "nominal", rng=rng, resamples=resamples, clusters=clusters)
    return Agreement(len(values), int((n * (n - 1) // 2).sum()), float(alike.mean()), low, high, *alpha)


def _mean_interval(
    values: Floats, clusters: npt.NDArray[np.generic], resamples: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the ends of the 95 % percentile interval of a mean, whole clusters drawn; NaN for a single one."""
    codes = np.unique(clusters, return_inverse=True)[1].reshape(-1)
    sums, sizes = np.bincount(codes, weights=values), np.bincount(codes)
    if len(sums) < 2:
        return float("nan"), float("nan")
    drawn = rng.multinomial(len(sums), np.full(len(sums), 1 / len(sums)), size=resamples)
    low, high = np.quantile((drawn @ sums) / (drawn @ sizes), [0.025, 0.975])
    return float(low), float(high)


@dataclass(frozen=True)
class Analysis:
    """All that is said of some votes."""

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
    matrix = win_matrix(votes)
    return Analysis(
        votes,
        matrix,
        strengths(votes, by=by, matrix=matrix),
        left_chosen(votes),
        agreement(votes, resamples=resamples, seed=seed),
    )


def dialogue_scores(scores: pd.DataFrame, contexts: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return one score for each dialogue: those of dialogues, else the mean over the judged speaker's turns.

    Parameters
    ----------
    scores
        Table ``scores``.
    contexts
        ``context_id`` and ``dialogue_id``: which dialogue a turn belongs to; for scores of turns.

    Returns
    -------
    DataFrame
        ``metric``, ``output``, ``dialogue_id``, ``system_id``, ``value``.
    """
    key = ["metric", "output", "dialogue_id", "system_id"]
    whole = scores[scores["level"] == "dialogue"].rename(columns={"item_id": "dialogue_id"})[[*key, "value"]]
    turns = scores[scores["level"] == "turn"]
    if len(turns):
        if contexts is None:
            raise ConfigError(
                "scores of turns",
                where="--scores",
                expected="--contexts, which dialogue each belongs to, or scores of dialogues",
            )
        of = contexts.drop_duplicates("context_id").set_index("context_id")["dialogue_id"]
        named = turns.assign(dialogue_id=turns["item_id"].map(of))
        if named["dialogue_id"].isna().any():
            lost = named.loc[named["dialogue_id"].isna(), "item_id"].iloc[0]
            raise SchemaError(f"context {lost!r} is not known", where="--scores", expected="a context of --contexts")
        means = named.groupby(key, as_index=False)["value"].mean()
        done = set(zip(whole["metric"], whole["output"], strict=True))
        new = [pair not in done for pair in zip(means["metric"], means["output"], strict=True)]
        whole = pd.concat([whole, means[new]])
    return whole.reset_index(drop=True)


def properties(dialogue: Dialogue) -> dict[str, float]:
    """Return what can be counted of the judged speaker's utterances."""
    texts = dialogue.said_by_judged()
    words = normalise(" ".join(texts)).split()
    partner = normalise(" ".join(text for speaker, text in dialogue.utterances if speaker != dialogue.judged)).split()
    shares = {
        "share of different words": len(set(words)) / len(words) if words else np.nan,
        "share of words the partner said too": np.mean([word in {*partner} for word in words]) if words else np.nan,
        "share of utterances with a question": sum("?" in text for text in texts) / len(texts) if texts else np.nan,
        "utterances that are not a repetition": len(set(texts)) / len(texts) if texts else np.nan,
    }
    number = sum(len(text.split()) for text in texts)
    return {"words": number, "words, normalised": len(words), "different words": len(set(words))} | shares


def metric_choices(
    votes: Votes,
    scores: pd.DataFrame,
    *,
    dominant: str,
    ratings: pd.DataFrame | None = None,
    resamples: int = 1000,
    seed: int = 2024,
) -> pd.DataFrame:
    """Return how often the dialogue with the higher score is the preferred one.

    Parameters
    ----------
    votes
        Votes for a tie take no part. Equal scores are half a hit.
    scores
        As :func:`dialogue_scores` returns them.
    dominant
        The system without which ``others`` is.
    ratings
        ``dialogue_id``, ``system_id`` and ``rating``, to correlate the scores with (Spearman).
    resamples, seed
        Of the 95 % percentile intervals, which are by annotator.

    Returns
    -------
    DataFrame
        ``metric``, ``output``, ``of`` (``all``, ``others``: without the dominant system, or two systems, ``a`` and
        ``b``), ``value``, ``low``, ``high``, ``n`` (votes), ``lacking`` (votes without both scores), and for ``all``
        and ``others`` ``spearman`` with ratings of the same systems.
    """
    rows = []
    strict = votes.strict
    for (metric, output), group in scores.groupby(["metric", "output"], sort=False):
        known = group.set_index(["dialogue_id", "system_id"])["value"]
        a, b = (
            known.reindex(pd.MultiIndex.from_frame(strict[[f"{side}_dialogue_id", side]])).to_numpy(float)
            for side in ("a", "b")
        )
        higher = np.where(a == b, 0.5, (a > b).astype(float))
        frame = strict.assign(
            hit=np.where(higher == 0.5, 0.5, higher == strict["won"]), lacks=np.isnan(a) | np.isnan(b)
        )
        others = (frame["a"] != dominant) & (frame["b"] != dominant)
        samples = {("all", "", ""): frame, ("others", "", ""): frame[others]}
        samples |= {("pair", str(x), str(y)): part for (x, y), part in frame.groupby(["a", "b"])}
        for (of, x, y), part in samples.items():
            there = part[~part["lacks"]]
            low, high = (
                _mean_interval(
                    there["hit"].to_numpy(float),
                    there["annotator_id"].to_numpy(),
                    resamples,
                    np.random.default_rng(seed),
                )
                if len(there)
                else (float("nan"), float("nan"))
            )
            rows.append(
                {
                    "metric": metric,
                    "output": output,
                    "of": of,
                    "a": x,
                    "b": y,
                    "value": float(there["hit"].mean()) if len(there) else float("nan"),
                    "low": low,
                    "high": high,
                    "n": len(there),
                    "lacking": int(part["lacks"].sum()),
                    "spearman": _correlation(group, ratings, dominant if of == "others" else None)
                    if of != "pair"
                    else float("nan"),
                }
            )
    return pd.DataFrame(rows)


def _correlation(scores: pd.DataFrame, ratings: pd.DataFrame | None, without: str | None) -> float:
    if ratings is None:
        return float("nan")
    both = scores.merge(ratings, on=["dialogue_id", "system_id"])
    both = both[both["system_id"] != without]
    return float(correlate(both["value"].to_numpy(float), both["rating"].to_numpy(float), "spearman").value)


def significance(
    votes: Votes, a: str, b: str, sizes: Sequence[int], *, draws: int = 2000, seed: int = 2024
) -> pd.DataFrame:
    """Return how likely studies of so many votes on two systems are to find a difference (binomial test, 5 %).

    Votes, ties among them, are drawn at random from those that there are, with replacement. A vote costs the median
    time of those whose time is known.

    Returns
    -------
    DataFrame
        ``votes``, ``hours`` (missing where no time is known) and ``probability``.
    """
    frame = votes.frame[(votes.frame["a"] == a) & (votes.frame["b"] == b)]
    if frame.empty:
        raise SchemaError(
            f"no vote on {a} and {b}", where="table preferences", expected="two systems that were compared"
        )
    shares = [float((frame["won"] == code).mean()) for code in (1.0, 0.0, 0.5)]
    rng = np.random.default_rng(seed)
    rows = []
    for size in sizes:
        wins, losses, _ = rng.multinomial(size, shares, size=draws).T
        hit = binomial_p(wins, wins + losses) <= ALPHA
        hours = size * float(frame["seconds"].median()) / 3600
        rows.append({"votes": int(size), "hours": hours, "probability": float(hit.mean())})
    return pd.DataFrame(rows)
