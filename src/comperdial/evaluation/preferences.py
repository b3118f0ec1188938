"""Preferences: win rates, strengths of systems, agreement of raters, and metrics that predict the choices.

Analyses cover one question and one source. Pairs with a known answer (``control``) test annotators and are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from comperdial.challenge.pairs import Dialogue
from comperdial.core.errors import ConfigError, SchemaError, UnknownNameError
from comperdial.data.votes import SHARES
from comperdial.metrics.text import normalise
from comperdial.stats import bradley_terry
from comperdial.stats.agreement import alpha_interval
from comperdial.stats.classification import cluster_weights, interval
from comperdial.stats.correlation import ALPHA, correlate
from comperdial.stats.multiple import holm
from comperdial.stats.proportions import share
from comperdial.stats.win_rate import binomial_p, flip_p

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.intp]
# With fewer annotators, intervals of strengths are by dialogue, since so few people are not a sample.
FEWEST_ANNOTATORS = 10
TESTS = {"p": "binomial", "p_dialogue": "by dialogue", "p_annotator": "by annotator"}
"""The tests of a pair of systems, by their columns of p-values."""
# Ties added to each pair of systems if plain strengths are infinite.
_PRIOR = 0.1
_EITHER = ["a", "b"]


def votes_of(table: pd.DataFrame, *, question: str | None = None, source: str | None = None) -> pd.DataFrame:
    """Select the votes on one question by one source, on two systems, from table ``preferences`` of one data set.

    ``question`` and ``source`` are required only if there are several; the default source is ``human``. Raises ConfigError or
    UnknownNameError if one is required or unknown, SchemaError if there are several data sets or no votes.

    There is one row per vote: ``question``, ``source``, ``pair_id``, ``annotator_id``, ``seconds``, ``a`` and ``b`` (systems,
    in alphabetical order), ``a_dialogue_id``, ``b_dialogue_id``, ``won`` (1 if a is preferred, 0.5 for a tie, 0 if b is),
    ``share`` (``won``, or a's share of a weighted vote), ``left`` (1 if a was shown left, 0 if b was, NaN if unknown),
    ``swapped`` (whether b is listed first) and ``cluster``: votes on the same two systems linked by shared dialogues.
    """
    table = _chosen(_chosen(table, "question", question), "source", source, default="human")
    if table["dataset"].nunique() > 1:
        raise SchemaError(f"preferences of {', '.join(sorted(table['dataset'].unique()))}", expected="one data set")
    frame = _oriented(table)
    if (frame["won"] == 0.5).all():
        expected = "votes on two systems that are no controls, and not all ties"
        raise SchemaError("no vote is for one of two systems", where="table preferences", expected=expected)
    return frame.assign(cluster=_clusters(frame, within=_EITHER))


def _chosen(table: pd.DataFrame, column: str, wanted: str | None, default: str | None = None) -> pd.DataFrame:
    there = sorted(table[column].unique())
    wanted = default if wanted is None and default in there else wanted
    if wanted is None and len(there) > 1:
        problem = f"preferences of {len(there)} {column}s"
        raise ConfigError(problem, where=f"--{column}", expected=f"one of {', '.join(there)}")
    if wanted is not None and wanted not in there:
        raise UnknownNameError(column, wanted, there)
    return table if wanted is None else table[table[column] == wanted]


def _oriented(table: pd.DataFrame) -> pd.DataFrame:
    """Return votes on two systems, without controls, as :func:`votes_of` but without clusters."""
    two = table["first_system_id"] != table["second_system_id"]
    kept = table[table["control"].isna() & two].reset_index(drop=True)
    swap = kept["first_system_id"] > kept["second_system_id"]
    frame = kept[["question", "source", "pair_id", "annotator_id"]].astype(object)
    frame["seconds"] = kept["seconds"].astype(float)
    for side, one, other in (("a", "first", "second"), ("b", "second", "first")):
        for column, kind in ((side, "system_id"), (f"{side}_dialogue_id", "dialogue_id")):
            frame[column] = kept[f"{one}_{kind}"].where(~swap, kept[f"{other}_{kind}"]).astype(object)
    codes = {"won": kept["choice"].map(SHARES), "left": kept["left"].map(SHARES)}
    codes["share"] = kept.get("first_share", codes["won"])
    for name, code in codes.items():
        frame[name] = code.astype(float).where(~swap, 1 - code.astype(float))
    return frame.assign(swapped=swap)


def _as_listed(frame: pd.DataFrame, pair: str) -> pd.Series:
    """Return ``won`` for the system listed first in the pair's first vote, so that no measure depends on systems' names."""
    return frame["won"].where(~frame.groupby(pair)["swapped"].transform("first"), 1 - frame["won"])


def _codes(frame: pd.DataFrame, names: list[str]) -> Integers:
    """Return the numbers of both systems of each row: shape (2, rows)."""
    return np.stack([pd.Index(names).get_indexer(pd.Index(frame[side])) for side in _EITHER])


def _without(votes: pd.DataFrame, system: str) -> pd.DataFrame:
    return votes[(votes[_EITHER] != system).all(axis=1)]


def _parts(ends: Integers) -> Integers:
    """Return the connected part of each node of a graph; ``ends`` has shape (2, edges)."""
    links = coo_array((np.ones(ends.shape[1]), tuple(ends)), shape=(ends.max() + 1,) * 2)
    return np.asarray(connected_components(links, directed=False)[1], dtype=np.intp)


def _clusters(frame: pd.DataFrame, within: list[str]) -> Integers:
    """Number groups of votes linked by shared dialogues, directly or indirectly, with equal values of some columns."""
    sides = [frame[[*within, side, f"{side}_dialogue_id"]].to_numpy() for side in _EITHER]
    ends = pd.factorize(pd.MultiIndex.from_frame(pd.DataFrame(np.concatenate(sides))))[0].reshape(2, -1)
    return _parts(ends)[ends[0]]


def win_matrix(votes: pd.DataFrame) -> pd.DataFrame:
    """Return the results of each compared pair of systems.

    The columns are ``a``, ``b``, ``votes``, ``wins`` and ``losses`` of a, ``ties``, ``win_rate`` (of a, without ties) with an
    interval that allows for votes on shared dialogues, ``low`` and ``high``; two-sided p of a win rate of one half, each
    followed by Holm's correction over all rows: ``p`` (binomial, assuming independent votes), ``p_dialogue`` and
    ``p_annotator`` (exact, with the votes of a dialogue or annotator as one cluster).
    """
    rows = []
    for (a, b), group in votes.groupby(_EITHER, sort=True):
        strict = group[group["won"] != 0.5]
        wins, margin, rate = int(strict["won"].sum()), 2 * strict["won"] - 1, share(strict["won"], strict["cluster"])
        counts = [len(group), wins, len(strict) - wins, len(group) - len(strict)]
        ps = [flip_p(margin.groupby(strict[name]).sum()) for name in ("cluster", "annotator_id")]
        rows.append([a, b, *counts, rate.value, rate.low, rate.high, float(binomial_p(wins, len(strict))), *ps])
    columns = [*_EITHER, "votes", "wins", "losses", "ties", "win_rate", "low", "high", *TESTS]
    made = pd.DataFrame(rows, columns=columns)
    for name in TESTS:
        made.insert([*made].index(name) + 1, f"{name}_holm", holm(made[name]))
    return made


def strengths(votes: pd.DataFrame) -> pd.DataFrame:
    """Return the systems' Bradley-Terry strengths, strongest first; ties are half a win for each.

    The columns are ``system``, ``votes``, ``won`` (share, ties half), ``strength`` (logarithm, mean 0), ``low`` and ``high``
    (95 %, :func:`comperdial.stats.bradley_terry.uncertainty`), ``rank`` (any two systems of different ranks differ
    significantly), ``by`` (the clusters of dependent votes: ``annotator``, or with fewer than ten of them ``dialogue``) and
    ``prior`` (ties added to each pair if plain strengths are infinite). Interval ends and ranks are missing if all votes form
    one cluster. If votes do not link all systems, strengths and ranks are within each linked group: column ``group``, from 1,
    the largest first.
    """
    by = "annotator" if votes["annotator_id"].nunique() >= FEWEST_ANNOTATORS else "dialogue"
    groups = linked_groups(votes)
    parts = [_strengths(votes[votes["a"].isin(names)], names, by) for names in groups]
    if len(groups) > 1:
        parts = [part.assign(group=number) for number, part in enumerate(parts, start=1)]
    return pd.concat(parts, ignore_index=True)


def linked_groups(votes: pd.DataFrame) -> list[list[str]]:
    """Return the groups of systems linked by votes, directly or indirectly: the largest first, names sorted."""
    names = sorted({*votes["a"], *votes["b"]})
    groups = pd.Series(names).groupby(_parts(_codes(votes, names))).agg(list)
    return sorted(groups, key=lambda group: (-len(group), group))


def _strengths(votes: pd.DataFrame, names: list[str], by: str) -> pd.DataFrame:
    """Return the strengths of systems linked by votes."""
    units = votes["annotator_id"].to_numpy() if by == "annotator" else _clusters(votes, within=[])
    (a, b), shares = _codes(votes, names), votes["share"].to_numpy(np.float64)
    ballots = bradley_terry.Ballots(a, b, shares, pd.factorize(units)[0])
    wins, games = ballots.wins, ballots.wins + ballots.wins.T
    prior = 0.0 if bradley_terry.has_strengths(wins) else _PRIOR
    values = bradley_terry.strengths(wins, prior=prior)
    low, high, p = bradley_terry.uncertainty(ballots)
    counts = {"votes": np.rint(games.sum(axis=1)).astype(int), "won": wins.sum(axis=1) / games.sum(axis=1)}
    ends = {"strength": values, "low": np.minimum(low, values), "high": np.maximum(high, values)}
    ranks = _ranks(names, values, win_matrix(votes), p, by) if np.isfinite(low).all() else [None] * len(names)
    about = {"rank": pd.array(ranks, dtype="Int64"), "by": by, "prior": prior}
    table = pd.DataFrame({"system": names} | counts | ends | about)
    return table.sort_values("strength", ascending=False, kind="stable", ignore_index=True)


def _ranks(names: list[str], strength: Floats, matrix: pd.DataFrame, p_of_all: Floats, by: str) -> list[int]:
    """Rank systems so that any two of different ranks differ significantly.

    From the strongest down, a new rank begins if every system above is significantly preferred to every system below, at 5 %
    after Holm's correction over all pairs. A pair is tested by its own votes, with the binomial or the clustered test,
    whichever p is larger; a pair that was never compared, by the difference of strengths.
    """
    (a, b), p = _codes(matrix, names), p_of_all.copy()
    agrees = (matrix["wins"] - matrix["losses"]).to_numpy() * (strength[a] - strength[b]) > 0
    p[a, b] = p[b, a] = np.where(agrees, matrix[["p", f"p_{by}"]].max(axis=1), 1.0)
    above = np.triu_indices(len(strength), 1)
    differ = np.zeros(p.shape, dtype=bool)
    differ[above] = holm(p[above]) < ALPHA
    differ |= differ.T
    order = np.argsort(-strength, kind="stable")
    new = [0, *(bool(differ[np.ix_(order[:cut], order[cut:])].all()) for cut in range(1, len(order)))]
    ranks = np.empty(len(strength), dtype=int)
    ranks[order] = 1 + np.cumsum(new)
    return [int(rank) for rank in ranks]


@dataclass(frozen=True)
class Analysis:
    """The results of an analysis: :func:`win_matrix`, :func:`strengths`, and a summary.

    ``summary`` counts ``votes``, ``ties``, ``systems``, ``pairs``, those that differ significantly by each column of p-values,
    and ``circles`` (A beats B beats C beats A, by majority). With ``_low`` and ``_high`` (95 %) and NaN if unknown: ``left``,
    how often the left side is preferred; ``agreement``, the share of annotator pairs with the same choice, averaged over pairs
    of dialogues, and ``alpha``, Krippendorff's, nominal.
    """

    votes: pd.DataFrame
    matrix: pd.DataFrame
    strengths: pd.DataFrame
    summary: dict[str, float]

    @property
    def dominant(self) -> str:
        """Return the strongest system."""
        return str(self.strengths["system"].iloc[0])


def analyse(votes: pd.DataFrame, *, resamples: int = 1000, seed: int = 2024) -> Analysis:
    """Analyse votes; ``resamples`` and ``seed`` are for the intervals of agreement."""
    matrix, names = win_matrix(votes), sorted({*votes["a"], *votes["b"]})
    # Count majority circles: three steps lead back to the start, from each of the three systems.
    beats = np.zeros((len(names),) * 2, dtype=int)
    a, b = _codes(matrix, names)
    beats[a, b], beats[b, a] = matrix["wins"] > matrix["losses"], matrix["losses"] > matrix["wins"]
    summary: dict[str, float] = {"votes": len(votes), "ties": int((votes["won"] == 0.5).sum())}
    summary |= {"systems": len(names), "pairs": len(matrix), "circles": int(np.trace(beats @ beats @ beats)) // 3}
    summary |= {p: int((matrix[p] < ALPHA).sum()) for name in TESTS for p in (name, f"{name}_holm")}
    sided = votes[(votes["won"] != 0.5) & votes["left"].notna()]
    left = share(sided["won"] == sided["left"], sided["annotator_id"])
    summary |= {"left": left.value, "left_low": left.low, "left_high": left.high}
    return Analysis(votes, matrix, strengths(votes), summary | _agreement(votes, resamples, seed))


def analyses(votes: pd.DataFrame, *, resamples: int = 1000, seed: int = 2024) -> dict[str, Analysis]:
    """Analyse ``All`` votes, and those ``Without`` the strongest system if they still link the others."""
    whole = analyse(votes, resamples=resamples, seed=seed)
    rest = _without(votes, whole.dominant)
    # The strongest system may be the only link between the others.
    if not (rest["won"] != 0.5).any() or not len(linked_groups(rest)) == len(linked_groups(votes)) == 1:
        return {"All": whole}
    return {"All": whole, f"Without {whole.dominant}": analyse(rest, resamples=resamples, seed=seed)}


def _agreement(frame: pd.DataFrame, resamples: int, seed: int) -> dict[str, float]:
    """Return the agreement of annotators on the same pair, with intervals over groups of votes that share dialogues."""
    # Annotators' identity does not matter: one column per vote on a pair.
    numbered = frame.assign(number=frame.groupby("pair_id").cumcount(), choice=_as_listed(frame, "pair_id"))
    table = numbered.pivot(index="pair_id", columns="number", values="choice")
    table = table[table.notna().sum(axis=1) >= 2]
    names = [name + end for name in ("agreement", "alpha") for end in ("", "_low", "_high")]
    if table.empty:
        return dict.fromkeys(names, float("nan"))
    counts = np.stack([(table == code).sum(axis=1) for code in SHARES.values()])
    n = counts.sum(axis=0)
    alike = (counts * (counts - 1)).sum(axis=0) / (n * (n - 1))
    clusters = frame.groupby("pair_id")["cluster"].first().reindex(table.index).to_numpy()
    rng = np.random.default_rng(seed)
    ends = _mean_interval(alike, clusters, resamples, rng)
    alpha = alpha_interval(table.to_numpy(), "nominal", rng=rng, resamples=resamples, clusters=clusters)
    return dict(zip(names, (float(alike.mean()), *ends, *alpha), strict=True))


def _mean_interval(
    values: Floats, clusters: npt.NDArray[np.generic], resamples: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the 95 % percentile interval of a mean over resampled clusters; NaN for fewer than two."""
    if len(np.unique(clusters)) < 2:
        return np.nan, np.nan
    weights = cluster_weights(clusters, resamples, rng)
    return interval(weights @ values / weights.sum(axis=1))


# Agreement of judges with people


def agreement_with_people(
    table: pd.DataFrame, *, question: str | None = None, resamples: int = 1000, seed: int = 2024
) -> pd.DataFrame:
    """Compare each judge's votes with the human majority on the same pair, and each person's with that of the others.

    Without a majority, the human choice is a tie. A pair is the same two dialogues, in either order. The columns are ``source``
    (``human`` for people among themselves), numbers of compared ``votes`` and ``pairs``, ``accuracy`` (if both choose one of the
    two; over ``strict`` votes), ``accuracy_ties`` (a tie is a third choice) and Cohen's ``kappa`` of the three choices, each
    with ``_low`` and ``_high``: 95 % percentile intervals over resampled pairs. Sources without common pairs are left out;
    without people or judges, the result is empty.
    """
    votes = _oriented(_chosen(table, "question", question))
    votes["pair"] = pd.factorize(pd.MultiIndex.from_frame(votes[["a", "a_dialogue_id", "b", "b_dialogue_id"]]))[0]
    votes["code"] = (2 - 2 * _as_listed(votes, "pair")).astype(int)
    people = votes[votes["source"] == "human"]
    counts = np.zeros((votes["pair"].nunique(), 3))
    np.add.at(counts, (people["pair"], people["code"]), 1)
    judges, rows = sorted({*votes["source"]} - {"human"}), []
    for source in ["human", *judges] if judges else []:
        pair, code = votes.loc[votes["source"] == source, ["pair", "code"]].to_numpy().T
        others = counts[pair] - (np.eye(3)[code] if source == "human" else 0)
        compared, most = others.sum(axis=1) > 0, others == others.max(axis=1, keepdims=True)
        majority = np.where(most.sum(axis=1) == 1, most.argmax(axis=1), 1)
        if compared.any():
            pair, majority, code = pair[compared], majority[compared], code[compared]
            rows.append({"source": source} | _confusion(pair, majority, code, resamples, seed))
    return pd.DataFrame(rows)


def _confusion(pairs: Integers, truth: Integers, given: Integers, resamples: int, seed: int) -> dict[str, float]:
    """Return accuracies and kappa of choices (0, 1 for a tie, 2), with intervals over resampled pairs."""
    count = len(np.unique(pairs))
    weights = np.vstack([np.ones(len(pairs)), cluster_weights(pairs, resamples, np.random.default_rng(seed))])
    tables = (weights @ np.eye(9)[3 * truth + given]).reshape(-1, 3, 3)
    n, strict = tables.sum(axis=(1, 2)), tables[:, ::2, ::2]
    observed = np.trace(tables, axis1=1, axis2=2) / n
    expected = (tables.sum(axis=1) * tables.sum(axis=2)).sum(axis=1) / n**2
    with np.errstate(invalid="ignore", divide="ignore"):
        measures = {
            "accuracy": np.trace(strict, axis1=1, axis2=2) / strict.sum(axis=(1, 2)),
            "accuracy_ties": observed,
            "kappa": np.where(expected < 1, (observed - expected) / (1 - expected), np.nan),
        }
    result: dict[str, float] = {"votes": len(given), "pairs": count, "strict": int(strict[0].sum())}
    for name, values in measures.items():
        low, high = interval(values[1:]) if count > 1 else (np.nan, np.nan)
        result |= {name: float(values[0]), f"{name}_low": low, f"{name}_high": high}
    return result


# Metrics as predictors of choices


def dialogue_scores(scores: pd.DataFrame, contexts: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return one score per dialogue: its own, or the mean over the judged speaker's turns.

    ``scores`` is table ``scores``; scores of turns require ``contexts`` (``context_id`` and ``dialogue_id``). The result has
    the columns ``metric``, ``output``, ``dialogue_id``, ``system_id`` and ``value``.
    """
    key = ["metric", "output", "dialogue_id", "system_id"]
    whole = scores[scores["level"] == "dialogue"].rename(columns={"item_id": "dialogue_id"})[[*key, "value"]]
    turns = scores[scores["level"] == "turn"]
    if turns.empty:
        return whole
    if contexts is None:
        needed = "--contexts, which dialogue each belongs to, or scores of dialogues"
        raise ConfigError("scores of turns", where="--scores", expected=needed)
    of = contexts.drop_duplicates("context_id").set_index("context_id")["dialogue_id"]
    means = turns.assign(dialogue_id=turns["item_id"].map(of)).groupby(key)["value"].mean().reset_index()
    return pd.concat([whole, means], ignore_index=True).drop_duplicates(key)


def properties(dialogue: Dialogue) -> dict[str, float]:
    """Return counts of the judged speaker's utterances."""
    texts = dialogue.judged_texts()
    theirs = [text for speaker, text in dialogue.utterances if speaker != dialogue.judged]
    words, partner = normalise(" ".join(texts)).split(), {*normalise(" ".join(theirs)).split()}
    of_words, of_texts = len(words) or np.nan, len(texts) or np.nan
    return {
        "words": sum(len(text.split()) for text in texts),
        "words, normalised": len(words),
        "different words": len(set(words)),
        "share of different words": len(set(words)) / of_words,
        "share of words the partner said too": sum(word in partner for word in words) / of_words,
        "share of utterances with a question": sum("?" in text for text in texts) / of_texts,
        "utterances that are not a repetition": len(set(texts)) / of_texts,
    }


def metric_choices(
    votes: pd.DataFrame,
    scores: pd.DataFrame,
    *,
    dominant: str,
    ratings: pd.DataFrame | None = None,
    resamples: int = 1000,
    seed: int = 2024,
) -> pd.DataFrame:
    """Return how often the dialogue with the higher score is the preferred one; equal scores count half.

    Votes for a tie are ignored. ``scores`` come from :func:`dialogue_scores`; ``ratings`` (``dialogue_id``, ``system_id`` and
    ``rating``) are for the correlation; the 95 % percentile intervals are by annotator. The columns are ``metric``, ``output``,
    ``of`` (``all``, ``others``: without the ``dominant`` system, or ``pair``: two systems, ``a`` and ``b``), ``value``, ``low``,
    ``high``, ``n`` (votes), ``lacking`` (votes without both scores), and for ``all`` and ``others`` ``spearman`` with ratings of
    the same systems.
    """
    rows, strict, item = [], votes[votes["won"] != 0.5], ["dialogue_id", "system_id"]
    sides = [pd.MultiIndex.from_frame(strict[[f"{side}_dialogue_id", side]]) for side in _EITHER]
    for (metric, output), own in scores.groupby(["metric", "output"], sort=False):
        known = own.set_index(item)["value"]
        a, b = (known.reindex(side).to_numpy(float) for side in sides)
        hit = np.where(a == b, 0.5, (a > b) == (strict["won"] == 1))
        frame = strict.assign(hit=np.where(np.isnan(a) | np.isnan(b), np.nan, hit))
        parts = {("all", "", ""): frame, ("others", "", ""): _without(frame, dominant)}
        parts |= {("pair", str(x), str(y)): part for (x, y), part in frame.groupby(_EITHER)}
        rated = None if ratings is None else own.merge(ratings, on=item)
        for (of, x, y), part in parts.items():
            there, spearman = part[part["hit"].notna()], np.nan
            hits, rng = there["hit"].to_numpy(float), np.random.default_rng(seed)
            low, high = _mean_interval(hits, there["annotator_id"].to_numpy(), resamples, rng)
            if rated is not None and of != "pair":
                some = rated if of == "all" else rated[rated["system_id"] != dominant]
                spearman = correlate(some["value"], some["rating"], "spearman").value
            about = {"metric": metric, "output": output, "of": of, "a": x, "b": y}
            numbers = {"value": there["hit"].mean(), "low": low, "high": high, "n": len(there)}
            rows.append(about | numbers | {"lacking": len(part) - len(there), "spearman": spearman})
    return pd.DataFrame(rows)
