"""Can I trust my judge, with the labels I have? Agreement with people, systems, biases, and means corrected by labels."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from comperdial.core.errors import SchemaError
from comperdial.stats.agreement import krippendorff_alpha
from comperdial.stats.alternative_test import EPSILONS, FEWEST_ITEMS, AlternativeTest, Scoring, alternative_test
from comperdial.stats.chance_agreement import category_weights
from comperdial.stats.corrected_means import Estimate, classical, corrected_mean, labels_needed

Floats = npt.NDArray[np.float64]
MOST_CATEGORIES = 11
_FEWEST = 10


@dataclass(frozen=True)
class Judged:
    """Labels of people and of one judge for the same items.

    Attributes
    ----------
    people
        One row an item, one column a rater; NaN where a rater gave no label.
    judge
        The judge's label of each item; NaN where it gave none.
    system, cluster
        Who wrote each item, and the dialogue or text that it is part of; None if unknown.
    length, time
        Words of each item's text, and when or in which order it was judged; None if unknown.
    scale
        The lowest and highest label possible; default: those that occur.
    """

    people: pd.DataFrame
    judge: pd.Series
    system: pd.Series | None = None
    cluster: pd.Series | None = None
    length: pd.Series | None = None
    time: pd.Series | None = None
    scale: tuple[float, float] | None = None
    name: str = "the judge"

    @property
    def mean(self) -> Floats:
        """Return people's mean label of each item, NaN where nobody gave one."""
        return self.people.mean(axis=1).to_numpy(np.float64)

    @property
    def labelled(self) -> npt.NDArray[np.bool_]:
        """Return which items both people and the judge labelled."""
        return np.asarray(~np.isnan(self.mean) & self.judge.notna().to_numpy())

    @property
    def clusters(self) -> npt.NDArray[Any]:
        """Return the cluster of each item: its dialogue, or the item itself."""
        return np.arange(len(self.people)).astype(str) if self.cluster is None else self.cluster.astype(str).to_numpy()

    @property
    def categories(self) -> Floats | None:
        """Return the values of the scale, if it is one of few whole numbers; None if it is not."""
        values = np.unique(self.people.to_numpy(np.float64)[~np.isnan(self.people.to_numpy(np.float64))])
        low, high = self.scale or (values.min(initial=0), values.max(initial=0))
        whole = np.all(values == np.round(values)) and float(low).is_integer() and float(high).is_integer()
        return np.arange(low, high + 1) if whole and 1 <= high - low < MOST_CATEGORIES else None

    def check(self) -> Judged:
        """Return it; raise a SchemaError if too little was labelled for any statement."""
        if (count := int(self.labelled.sum())) < _FEWEST:
            problem = f"{count} items with a label by people and one by {self.name}"
            raise SchemaError(problem, expected=f"{_FEWEST} or more, better 100 drawn at random")
        return self


@dataclass(frozen=True)
class Section:
    """One part of an audit: sentences, and the numbers behind them; ``reason`` says why there are none."""

    title: str
    sentences: list[str] = field(default_factory=list)
    table: pd.DataFrame | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Audit:
    """What an audit found; the first section is the verdict."""

    judge: str
    sections: list[Section]
    alternative: AlternativeTest | None

    @property
    def verdict(self) -> str:
        """Return the verdict, in a sentence or two."""
        return " ".join(self.sections[0].sentences)

    @property
    def table(self) -> pd.DataFrame:
        """Return all numbers, one row each: section, what, value, low, high, n."""
        parts = [section.table.assign(section=section.title) for section in self.sections if section.table is not None]
        columns = ["section", "what", "value", "low", "high", "n"]
        return pd.concat(parts, ignore_index=True).reindex(columns=columns) if parts else pd.DataFrame(columns=columns)

    def __str__(self) -> str:
        """Return the audit as text, a paragraph a section."""
        parts = []
        for section in self.sections:
            text = section.sentences or [f"Not said: {section.reason}."]
            parts.append("\n".join([section.title, *(f"  {sentence}" for sentence in text)]))
        return "\n\n".join(parts) + "\n"

    def to_json(self) -> str:
        """Return the audit as JSON, for machines."""
        sections = [
            {"title": one.title, "sentences": one.sentences, "reason": one.reason}
            | {"numbers": [] if one.table is None else json.loads(one.table.to_json(orient="records"))}
            for one in self.sections
        ]
        test = self.alternative
        passed = None if test is None else {"passed": test.passed, "winning_rate": test.winning_rate}
        return json.dumps({"judge": self.judge, "alternative_test": passed, "sections": sections}, indent=1) + "\n"


def audit(judged: Judged, *, raters: str = "crowd", seed: int = 2024) -> Audit:
    """Audit a judge.

    Parameters
    ----------
    judged
        The labels.
    raters
        Who the people are, which decides how much worse than one of them a judge may be: ``experts``, ``trained``, ``crowd``.
    seed
        Of what is drawn.

    Raises
    ------
    SchemaError
        When fewer than ten items have labels of both.
    """
    judged.check()
    epsilon = EPSILONS[raters]
    test, constant = _alternative(judged, epsilon)
    agreement = _agreement(judged)
    sections = [
        _verdict(judged, test, constant, agreement, epsilon), agreement, _systems(judged), _biases(judged),
        _corrected(judged), _more_labels(judged),
    ]  # fmt: skip
    return Audit(judged.name, sections, test)


# The verdict


def _alternative(judged: Judged, epsilon: float) -> tuple[AlternativeTest | None, AlternativeTest | None]:
    """Return the alternative annotator test of the judge, and of one that always says the commonest label."""
    people = {str(name): judged.people[name].to_numpy(np.float64) for name in judged.people}
    if len(people) < 2 or (judged.people.notna().sum(axis=1) >= 2).sum() < FEWEST_ITEMS:
        return None, None
    scoring: Scoring = "rmse" if judged.categories is None or len(judged.categories) > 2 else "accuracy"
    judge = judged.judge.to_numpy(np.float64)
    common = float(judged.people.stack().mode().iloc[0])
    tests = [
        alternative_test(labels, people, epsilon=epsilon, scoring=scoring)
        for labels in (judge, np.where(np.isnan(judge), np.nan, common))
    ]
    return (tests[0], tests[1]) if len(tests[0].annotators) else (None, None)


def _verdict(
    judged: Judged, test: AlternativeTest | None, constant: AlternativeTest | None, agreement: Section, epsilon: float
) -> Section:
    title = f"May {judged.name} stand in for one of your raters?"
    correlation = _row(agreement.table, "Pearson with people's mean")
    shown = f"its correlation with people is {_with_ends(correlation)}"
    if test is None or constant is None:
        why = f"that needs two raters or more with {FEWEST_ITEMS} common items"
        return Section(title, [f"Cannot be said: {why}. What can be: {shown}."])
    wins = f"it wins against {int(test.rejected.sum())} of {len(test.annotators)} raters (epsilon {epsilon:g})"
    advantage = f"average advantage probability {test.average_advantage:.2f}"
    table = pd.DataFrame(
        {"what": ["winning rate", "average advantage probability", "winning rate of a constant judge"],
         "value": [test.winning_rate, test.average_advantage, constant.winning_rate], "n": len(test.annotators)}
    )  # fmt: skip
    if not test.passed:
        answer = f"Not shown: in the alternative annotator test {wins}, {advantage}."
    elif constant.passed:
        answer = f"Not shown: {wins}, but so does a judge that always says the commonest label."
    elif correlation is not None and not correlation["low"] > 0:
        answer = f"Not shown: {wins}, but {shown}."
    else:
        answer = f"Yes: in the alternative annotator test {wins}, {advantage}, and a constant judge does not pass."
    more = [f"Also, {shown}."] if answer.startswith("Yes") or not test.passed else []
    few = min(test.n.tolist())
    if few < 50:
        more.append(f"The smallest rater has {few} items; the authors of the test ask for 50 to 100.")
    return Section(title, [answer, *more], table)


# Agreement


def _over_clusters(sums: Floats, value_of: Callable[[Floats], Any]) -> tuple[float, float, float]:
    """Return a statistic of sums over clusters, (clusters, k), with its interval by a jackknife over clusters."""
    count, total = len(sums), sums.sum(axis=0)
    value = float(value_of(total[np.newaxis])[0])
    if count < 3 or np.isnan(value):
        return value, np.nan, np.nan
    without = np.asarray(value_of(total - sums), dtype=np.float64)
    error = np.sqrt((count - 1) / count * ((without - without.mean()) ** 2).sum())
    reach = stats.t.ppf(0.975, count - 1) * error
    return value, value - reach, value + reach


def _summed(columns: Floats, clusters: npt.NDArray[Any]) -> Floats:
    """Sum columns, (n, k), over the items of each cluster."""
    codes = np.unique(clusters, return_inverse=True)[1].reshape(-1)
    return np.stack([np.bincount(codes, column) for column in columns.T], axis=1)


def _pearson(sums: Floats) -> Floats:
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((xy - x * y / n) / np.sqrt((xx - x * x / n) * (yy - y * y / n)))


def _correlation(x: Floats, y: Floats, clusters: npt.NDArray[Any]) -> tuple[float, float, float]:
    """Return Pearson's coefficient with an interval on the scale of Fisher's z."""
    x, y = x - x.mean(), y - y.mean()
    sums = _summed(np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1), clusters)
    value = float(_pearson(sums.sum(axis=0)[np.newaxis])[0])
    if not abs(value) < 1 - 1e-9:
        return value, np.nan, np.nan
    _, low, high = _over_clusters(sums, lambda part: np.arctanh(np.clip(_pearson(part), -1 + 1e-9, 1 - 1e-9)))
    return value, float(np.tanh(low)), float(np.tanh(high))


def _joint(one: Floats, other: Floats, categories: Floats) -> Floats:
    """Return for each item a row that is 1 at the pair of its two labels: shape (n, categories^2)."""
    count = len(categories)
    places = np.searchsorted(categories, one) * count + np.searchsorted(categories, other)
    return np.asarray(np.eye(count**2)[places])


def _kappas(joint: Floats, weights: Floats) -> Floats:
    count = len(weights)
    table = joint.reshape(*joint.shape[:-1], count, count)
    table = table / table.sum(axis=(-2, -1), keepdims=True)
    chance = (weights * table.sum(axis=-1)[..., np.newaxis] * table.sum(axis=-2)[..., np.newaxis, :]).sum(axis=(-2, -1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(((weights * table).sum(axis=(-2, -1)) - chance) / (1 - chance))


def _acs(joint: Floats, weights: Floats) -> Floats:
    count = len(weights)
    table = joint.reshape(*joint.shape[:-1], count, count)
    table = table / table.sum(axis=(-2, -1), keepdims=True)
    prevalence = (table.sum(axis=-1) + table.sum(axis=-2)) / 2
    chance = weights.sum() / (count * (count - 1)) * (prevalence * (1 - prevalence)).sum(axis=-1)
    return np.asarray(((weights * table).sum(axis=(-2, -1)) - chance) / (1 - chance))


def _pairs_with_judge(judged: Judged, categories: Floats) -> Iterator[tuple[str, Floats, Floats, npt.NDArray[Any]]]:
    """Yield pairs of raters with their labels of common items: the judge with each, and people with each other."""
    rounded = np.clip(np.floor(judged.judge.to_numpy(np.float64) + 0.5), categories[0], categories[-1])
    people = [judged.people[name].to_numpy(np.float64) for name in judged.people]
    for who, one, other in [
        *(("judge", rounded, labels) for labels in people),
        *(("people", one, other) for one, other in combinations(people, 2)),
    ]:
        both = ~np.isnan(one) & ~np.isnan(other)
        if both.sum() >= _FEWEST:
            yield who, one[both], other[both], judged.clusters[both]


def _agreement(judged: Judged) -> Section:
    there = judged.labelled
    x, y, clusters = judged.judge.to_numpy(np.float64)[there], judged.mean[there], judged.clusters[there]
    rows = [("Pearson with people's mean", *_correlation(x, y, clusters), len(x))]
    rows.append(("Spearman with people's mean", *_correlation(stats.rankdata(x), stats.rankdata(y), clusters), len(x)))
    ceiling = [
        (name, value, len(own))
        for name in judged.people
        for own, rest in [_own_and_rest(judged.people, name)]
        if len(own) >= _FEWEST and not np.isnan(value := _correlation(own, rest, np.arange(len(own)))[0])
    ]
    if ceiling:
        rows.append(
            (
                "Pearson of a rater with the others' mean",
                float(np.mean([v for _, v, _ in ceiling])),
                np.nan,
                np.nan,
                sum(n for *_, n in ceiling),
            )
        )
    categories = judged.categories
    sentences = [
        f"Correlation with people's mean: Pearson {_ends(*rows[0][1:4])}, Spearman {_ends(*rows[1][1:4])} ({len(x)} items)."
    ]
    if ceiling:
        sentences.append(f"A rater correlates with the mean of the others by {rows[2][1]:.2f} on average.")
    if categories is not None:
        weights = category_weights(len(categories), "quadratic")
        joints: dict[str, list[Floats]] = {}
        for who, one, other, of in _pairs_with_judge(judged, categories):
            codes = np.unique(judged.clusters, return_inverse=True)[1].reshape(-1)
            known = {name: code for name, code in zip(judged.clusters, codes, strict=True)}
            places = np.array([known[name] for name in of])
            sums = np.zeros((int(codes.max()) + 1, len(categories) ** 2))
            np.add.at(sums, places, _joint(one, other, categories))
            joints.setdefault(who, []).append(sums)
        for name, measure in (("Weighted kappa", _kappas), ("Gwet's AC2", _acs)):
            for who, label in (("judge", "of the judge with a rater"), ("people", "of two raters")):
                if who in joints:
                    stacked = np.stack(joints[who], axis=1)
                    ends = _over_clusters(stacked, lambda part, measure=measure: measure(part, weights).mean(axis=-1))
                    rows.append((f"{name} {label}", *ends, len(joints[who])))
        of = {what: f"{_ends(*ends)}" for what, *ends, _ in rows}
        kappa, ac = "Weighted kappa of the judge with a rater", "Gwet's AC2 of the judge with a rater"
        if kappa in of:
            beside = [of.get("Weighted kappa of two raters"), of.get("Gwet's AC2 of two raters")]
            people = f"; two raters: {beside[0]} and {beside[1]}" if beside[0] else ""
            sentences.append(f"Quadratic weighted kappa {of[kappa]}, Gwet's AC2 {of[ac]}{people}.")
    if judged.people.shape[1] > 1:
        alpha = krippendorff_alpha(judged.people.to_numpy(np.float64), "interval")
        rows.append(("Krippendorff's alpha of people", alpha, np.nan, np.nan, judged.people.shape[1]))
    return Section("Agreement", sentences, _table(rows))


def _own_and_rest(people: pd.DataFrame, name: Any) -> tuple[Floats, Floats]:  # noqa: ANN401
    own, rest = people[name].to_numpy(np.float64), people.drop(columns=[name]).mean(axis=1).to_numpy(np.float64)
    both = ~np.isnan(own) & ~np.isnan(rest)
    return own[both], rest[both]


# Systems and biases


def _mean_over_clusters(values: Floats, clusters: npt.NDArray[Any]) -> tuple[float, float, float]:
    sums = _summed(np.stack([values, np.ones_like(values)], axis=1), clusters)
    return _over_clusters(sums, lambda part: part[..., 0] / np.where(part[..., 1] > 0, part[..., 1], np.nan))


def _systems(judged: Judged) -> Section:
    title = "Systems"
    if judged.system is None or judged.system.nunique() < 2:
        return Section(title, reason="the items name no two systems")
    there = judged.labelled
    frame = pd.DataFrame(
        {
            "system": judged.system.astype(str).to_numpy(),
            "judge": judged.judge.to_numpy(np.float64),
            "people": judged.mean,
            "cluster": judged.clusters,
        }
    )[there]
    rows = []
    for system, own in frame.groupby("system"):
        apart = (own["judge"] - own["people"]).to_numpy()
        rows.append((f"offset of {system}", *_mean_over_clusters(apart, own["cluster"].to_numpy()), len(own)))
    means = frame.groupby("system")[["judge", "people"]].mean()
    sentences = []
    overall = _mean_over_clusters((frame["judge"] - frame["people"]).to_numpy(), frame["cluster"].to_numpy())
    sentences.append(f"The judge gives {_signed(*overall)} compared with people, over all systems.")
    # Whom it favours: offsets beside the mean offset.
    favoured = [row for row in rows if row[2] > overall[0]]
    harmed = [row for row in rows if row[3] < overall[0]]
    for what, some in (("favours", favoured), ("is hard on", harmed)):
        if some:
            named = ", ".join(
                f"{row[0].removeprefix('offset of ')} ({row[1]:+.2f})"
                for row in sorted(some, key=lambda row: -abs(row[1] - overall[0]))
            )
            sentences.append(f"It {what}: {named}.")
    if len(means) >= 4:
        tau = stats.kendalltau(means["judge"], means["people"])
        swapped = [
            f"{a} and {b}"
            for a, b in combinations(means.index, 2)
            if (means.loc[a, "judge"] - means.loc[b, "judge"]) * (means.loc[a, "people"] - means.loc[b, "people"]) < 0
        ]
        pairs = len(means) * (len(means) - 1) // 2
        rows.append(("Kendall of systems' means", float(tau.statistic), np.nan, np.nan, len(means)))
        some = f": {'; '.join(swapped[:3])}{' …' if len(swapped) > 3 else ''}" if swapped else ""
        sentences.append(
            f"It orders {pairs - len(swapped)} of {pairs} pairs of systems as people do; the other way round {len(swapped)}{some}."
        )
    return Section(title, sentences, _table(rows))


def _biases(judged: Judged) -> Section:
    there = judged.labelled
    apart = judged.judge.to_numpy(np.float64)[there] - judged.mean[there]
    clusters, rows, sentences = judged.clusters[there], [], []
    for what, values, sentence in (
        ("length", judged.length, "longer texts"), ("time", judged.time, "later items"),
    ):  # fmt: skip
        if values is None:
            continue
        x = stats.rankdata(values.to_numpy(np.float64)[there])
        ends = _correlation(x, apart, clusters)
        rows.append((f"correlation of (judge - people) with {what}", *ends, len(x)))
        clear = ends[1] > 0 or ends[2] < 0
        how = (
            f"judged {'higher' if ends[0] > 0 else 'lower'} than by people"
            if clear
            else "not clearly judged otherwise than by people"
        )
        sentences.append(f"{sentence.capitalize()} are {how}: correlation {_ends(*ends)}.")
    labels = judged.judge.to_numpy(np.float64)[there]
    categories = judged.categories
    if categories is not None:
        rounded, people = np.floor(labels + 0.5), np.round(judged.mean[there])
        unused = [f"{value:g}" for value in categories if not (rounded == value).any() and (people == value).any()]
        spread = float(np.std(labels) / np.std(judged.mean[there])) if np.std(judged.mean[there]) > 0 else np.nan
        rows.append(("standard deviation of the judge over that of people's mean", spread, np.nan, np.nan, len(labels)))
        if unused:
            sentences.append(f"It never uses {', '.join(unused)}, which people do.")
        sentences.append(f"Its scores spread {spread:.2f} times as much as people's means.")
    return Section(
        "Bias", sentences, _table(rows) if rows else None, None if sentences else "no lengths, times or categories"
    )


# Corrected numbers


def _estimates(judged: Judged, kept: npt.NDArray[np.bool_]) -> list[tuple[str, Estimate | None]]:
    """Return a mean by the labels alone, by the judge alone and by both, of some items."""
    y, f, clusters = judged.mean, judged.judge.to_numpy(np.float64), judged.clusters
    own, rest = kept & judged.labelled, kept & judged.judge.notna().to_numpy() & np.isnan(y)
    if own.sum() < 3:
        return []
    of = None if judged.cluster is None or len(set(clusters[own])) < 3 else clusters
    given = (None, None) if of is None else (of[own], of[rest])
    judge = f[own | rest]
    alone = Estimate(float(judge.mean()), np.nan, np.nan, np.nan)
    both = corrected_mean(y[own], f[own], f[rest], *given)
    return [("labels alone", classical(y[own], given[0])), ("judge alone", alone), ("corrected", both)]


def _corrected(judged: Judged) -> Section:
    title = "Corrected means"
    if not np.isnan(judged.mean[judged.judge.notna().to_numpy()]).any():
        return Section(title, reason="people labelled all that was judged: their means need no correction")
    everything = np.ones(len(judged.people), dtype=np.bool_)
    groups = [("all", everything)]
    if judged.system is not None and judged.system.nunique() > 1:
        names = judged.system.astype(str).to_numpy()
        groups += [(name, names == name) for name in np.unique(names)]
    rows, sentences = [], []
    for name, kept in groups:
        made = _estimates(judged, kept)
        rows += [
            (f"{name}: {how}", one.value, one.low, one.high, int((kept & judged.labelled).sum()))
            for how, one in made
            if one
        ]
        if made:
            by = {how: one for how, one in made if one}
            alone, both = by["labels alone"], by["corrected"]
            text = f"{name}: {_ends(both.value, both.low, both.high)}; labels alone {_ends(alone.value, alone.low, alone.high)}, judge alone {by['judge alone'].value:.2f}"
            sentences.append(
                f"{text} (interval {both.width / alone.width:.2f} times as wide as without the judge)."
                if alone.width > 0
                else f"{text}."
            )
        else:
            sentences.append(f"{name}: fewer than three labels.")
    return Section(title, sentences, _table(rows) if rows else None)


def _more_labels(judged: Judged) -> Section:
    title = "How many labels more"
    there, total = judged.labelled, int(judged.judge.notna().sum())
    y, f = judged.mean[there], judged.judge.to_numpy(np.float64)[there]
    if total <= len(y):
        return Section(title, reason="all that was judged is labelled")
    correlation = abs(float(np.corrcoef(y, f)[0, 1])) if np.std(y) > 0 and np.std(f) > 0 else 0.0
    residual = y - np.polyval(np.polyfit(f, y, 1), f) if np.std(f) > 0 else y - y.mean()
    effect = max(_design_effect(residual, judged.clusters[there]), 1.0)
    now = _estimates(judged, np.ones(len(judged.people), dtype=np.bool_))[-1][1]
    assert now is not None
    half = now.width / 4
    needed = labels_needed(half, float(np.std(y, ddof=1)), correlation, total, design_effect=effect)
    told = f"about {int(np.ceil(needed))} labels in all" if np.isfinite(needed) else "more labels than there are items"
    sentences = [
        f"For half the interval of the corrected mean (±{half:.2f}) you need {told}, if they are as these {len(y)} are."
    ]
    if judged.system is not None and judged.system.nunique() > 1:
        sentences.append(
            "Draw them at random within each system, equally many of each, so that no system's mean rests on few."
        )
    return Section(title, sentences, _table([("labels for half the interval", needed, np.nan, np.nan, len(y))]))


def _design_effect(residual: Floats, clusters: npt.NDArray[Any]) -> float:
    """Return how much clusters widen a mean's variance: 1 + (mean size - 1) x intraclass correlation (one-way ANOVA)."""
    codes = np.unique(clusters, return_inverse=True)[1].reshape(-1)
    sizes = np.bincount(codes).astype(np.float64)
    count, n = len(sizes), len(residual)
    if count in (1, n):
        return 1.0
    means = np.bincount(codes, residual) / sizes
    between = (sizes * (means - residual.mean()) ** 2).sum() / (count - 1)
    within = ((residual - means[codes]) ** 2).sum() / (n - count)
    size = (n - (sizes**2).sum() / n) / (count - 1)
    correlation = (between - within) / (between + (size - 1) * within) if between + (size - 1) * within > 0 else 0.0
    return float(1 + (n / count - 1) * max(correlation, 0.0))


# Words


def _table(rows: Sequence[tuple[Any, ...]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["what", "value", "low", "high", "n"])


def _row(table: pd.DataFrame | None, what: str) -> dict[str, float] | None:
    if table is None or not (table["what"] == what).any():
        return None
    return table[table["what"] == what].iloc[0].to_dict()


def _ends(value: float, low: float, high: float) -> str:
    return f"{value:.2f}" + ("" if np.isnan(low) else f" [{low:.2f}, {high:.2f}]")


def _with_ends(row: dict[str, float] | None) -> str:
    return "not defined" if row is None or np.isnan(row["value"]) else _ends(row["value"], row["low"], row["high"])


def _signed(value: float, low: float, high: float) -> str:
    ends = "" if np.isnan(low) else f" [{low:+.2f}, {high:+.2f}]"
    return f"{value:+.2f}{ends}"
