"""Can I trust my judge, with the labels I have? Agreement with people, systems, biases, and means corrected by labels."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from comperdial.core.errors import ConfigError, SchemaError
from comperdial.evaluation.judged import FEWEST, Judged
from comperdial.stats.agreement import krippendorff_alpha
from comperdial.stats.alternative_test import EPSILONS, FEWEST_ITEMS, AlternativeTest, alternative_test
from comperdial.stats.chance_agreement import category_weights
from comperdial.stats.corrected_means import (
    Estimate,
    classical,
    corrected_difference,
    corrected_mean,
    labels_needed,
    rogan_gladen,
)

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]
Row = tuple[str, float, float, float, float]
VERDICT, AGREEMENT, CONSTANT, SYSTEMS, BIAS, CORRECTED, LABELS, BASELINE = (
    "Verdict", "Agreement", "A constant judge", "Systems", "Bias", "Corrected numbers", "How many labels more",
    "Against the baseline",
)  # fmt: skip
KNOWN = Path(__file__).with_name("human_agreement.csv")
"""Correlation of one rater with the mean of the others on public data sets (benchmarks/human_agreement.py)."""
PEARSON = "Pearson with people's mean"
# So many names fit in a sentence, and so many lines on a screen.
_MOST_NAMES, _MOST_LINES = 3, 12
_FEWEST_CLUSTERS = 3
# Who made a model, by what its name begins with.
_FAMILIES = {
    "OpenAI": "gpt|chatgpt|o1|o3|o4|davinci|openai", "Anthropic": "claude", "Google": "gemini|gemma|palm|bard",
    "Meta": "llama|vicuna|alpaca", "Mistral": "mistral|mixtral", "Alibaba": "qwen", "DeepSeek": "deepseek",
}  # fmt: skip


@dataclass(frozen=True)
class Section:
    """One part of an audit: sentences and the numbers behind them (what, value, low, high, n); ``reason`` says why there are none.

    ``lines`` are for text alone; a page has ``frames`` instead, tables by what they show.
    """

    title: str
    sentences: Sequence[str] = ()
    numbers: pd.DataFrame | None = None
    reason: str = ""
    lines: Sequence[str] = ()
    frames: Mapping[str, pd.DataFrame] = field(default_factory=dict)

    def number(self, what: str) -> dict[str, float]:
        """Return value, low, high and n of one number; all NaN if there is none."""
        rows = pd.DataFrame(columns=["what"]) if self.numbers is None else self.numbers[self.numbers["what"] == what]
        return dict(rows.iloc[0][1:]) if len(rows) else dict.fromkeys(("value", "low", "high", "n"), np.nan)


@dataclass(frozen=True)
class Audit:
    """What an audit shows of a judge.

    Attributes
    ----------
    judged
        The labels.
    sections
        In the order of reading; the first is the verdict.
    alternative
        The alternative annotator test; None with fewer than two raters of 30 common items.
    others
        Verdicts on other judges and dimensions of the same data, in short, by name.
    """

    judged: Judged
    sections: Sequence[Section]
    alternative: AlternativeTest | None
    others: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()

    @property
    def title(self) -> str:
        """Return what was audited."""
        return f"{self.judged.judge_name} as a judge of {self.judged.dimension}"

    @property
    def verdict(self) -> str:
        """Return the verdict, in a sentence or two."""
        return " ".join(self.sections[0].sentences)

    @property
    def table(self) -> pd.DataFrame:
        """Return all numbers, one row each: section, what, value, low, high, n."""
        columns = ["section", "what", "value", "low", "high", "n"]
        parts = [one.numbers.assign(section=one.title) for one in self.sections if one.numbers is not None]
        return pd.concat(parts, ignore_index=True).reindex(columns=columns) if parts else pd.DataFrame(columns=columns)

    @property
    def in_short(self) -> str:
        """Return the verdict in a few words, with its correlation."""
        answer, test = self.verdict.split(maxsplit=1)[0].strip(","), self.alternative
        pearson = f"Pearson {_ends(self.section(AGREEMENT).number(PEARSON))}"
        if test is None:
            return f"not tested; {pearson}"
        words = "yes" if answer == "Yes" else "not shown"
        constant = self.sections[0].number("winning rate of a constant judge")["value"] * len(test.annotators)
        beside = f", a constant judge against {constant:.0f}" if constant == constant else ""
        return f"{words}: wins against {_wins(test)}{beside}; advantage {test.average_advantage:.2f}; {pearson}"

    def section(self, title: str) -> Section:
        """Return a section by its title."""
        return next(one for one in self.sections if one.title == title)

    def failures(self, requirements: Sequence[str]) -> list[str]:
        """Return a sentence for each requirement that is not met.

        ``alt-test``; ``pearson=0.5``, ``spearman=0.5`` or ``kappa=0.4``, which the lower end of the interval must reach; with a
        baseline ``no-shift`` (the interval of the shift includes 0) and ``flips=0.1`` (its upper end is at most that).
        """
        return [text for requirement in requirements if (text := _failure(self, requirement))]

    def to_json(self) -> str:
        """Return the audit as JSON, for machines."""
        test = self.alternative
        made = {
            "judge": self.judged.judge_name, "dimension": self.judged.dimension, "verdict": self.verdict,
            "alternative_test": None if test is None else {
                "passed": test.passed, "winning_rate": test.winning_rate, "average_advantage": test.average_advantage,
                "epsilon": test.epsilon, "raters": len(test.annotators), "left_out": len(test.left_out),
            },
            "sections": [
                {"title": one.title, "sentences": list(one.sentences), "reason": one.reason or None,
                 "numbers": [] if one.numbers is None else json.loads(one.numbers.to_json(orient="records"))}
                for one in self.sections
            ],
            "others": dict(self.others), "notes": list(self.notes),
        }  # fmt: skip
        return json.dumps(made, indent=1, ensure_ascii=False) + "\n"

    def to_html(self) -> str:
        """Return the audit as one page that needs nothing from the network."""
        from comperdial.report import render
        from comperdial.report.audit import document

        return render.page(document(self))

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        """Return the audit as text, on one screen."""
        from comperdial.report.audit import text

        return text(self)

    def next_labels(self, count: int, seed: int = 2024) -> pd.DataFrame:
        """Return which items people should label next: drawn at random, of each system in proportion to what it has unlabelled.

        The next audit's corrected means stay unbiased; labels of items that were chosen because judge and people differ there,
        or seem to, would not be.
        """
        judged = self.judged
        unlabelled = judged.people.index[np.isnan(judged.mean)]
        frame = unlabelled.to_frame(index=False)
        if not len(frame):
            raise ConfigError("all items are labelled", where="--next", expected="items that only the judge labelled")
        rng = np.random.default_rng(seed)
        order = frame.assign(draw=rng.random(len(frame)))
        by = judged.sides.loc[unlabelled].iloc[:, 0].astype(str).to_numpy() if judged.sides is not None else np.zeros(len(frame))
        # Each system's items in random order, spread evenly: any beginning of this list has the systems' shares.
        place = order.groupby(by)["draw"].rank() - rng.random()
        size = order.groupby(by)["draw"].transform("size")
        drawn = order.assign(place=place / size).sort_values("place", kind="stable")[[*frame]][:count]
        drawn = drawn if judged.texts is None else drawn.assign(response=judged.texts[unlabelled].to_numpy()[drawn.index])
        return drawn.reset_index(drop=True)


def audit(judged: Judged, *, raters: str = "crowd", before: Judged | None = None, half_width: float | None = None) -> Audit:
    """Audit a judge.

    Parameters
    ----------
    judged
        The labels.
    raters
        Who the people are, which decides how much worse than one of them a judge may be: ``experts``, ``trained``, ``crowd``.
    before
        The same judge's labels at an earlier time, of the same items or some of them.
    half_width
        Half the width of the interval of the corrected mean that is wanted; default: half of what it is.

    Raises
    ------
    SchemaError
        When fewer than ten items have labels of both, or the judge's labels of these are all the same.
    """
    judged.check()
    agreement = _agreement(judged)
    test, reason = _alternative(judged, judged.scores, EPSILONS[raters])
    together = None
    if test is not None and judged.clusters is not None and len(set(judged.cluster_codes)) < len(judged.people):
        together, _ = _alternative(judged, judged.scores, EPSILONS[raters], judged.cluster_codes)
    common, constant_test = _constant_test(judged, EPSILONS[raters])
    sections = [
        _verdict(judged, (test, together, constant_test), agreement, reason, raters),
        agreement,
        _constant(judged, common, constant_test, test),
        _systems(judged),
        _bias(judged),
        _corrected(judged),
        _more_labels(judged, half_width),
    ]
    if before is not None:
        sections.append(_changes(judged, before))
    return Audit(judged, sections, test)


# The verdict


def _alternative(
    judged: Judged, labels: Floats, epsilon: float, clusters: Integers | None = None
) -> tuple[AlternativeTest | None, str]:
    """Return the alternative annotator test of labels; or None and why there is none."""
    if not judged.is_on_scale:
        low, high = judged.judge.min(), judged.judge.max()
        own = f"the judge's scores ({low:g} to {high:g}) are not on people's scale ({judged.scale[0]:g} to {judged.scale[1]:g})"
        return None, f"{own}: --judge-scale LOW HIGH maps them"
    several = (judged.people.notna().sum(axis=1).to_numpy() >= 2) & ~np.isnan(labels)
    if several.sum() < FEWEST_ITEMS:
        return None, f"{int(several.sum())} {judged.noun} have labels of two people; the test needs {FEWEST_ITEMS}"
    kept = judged.people[several]
    people = {str(name): kept[name].to_numpy(np.float64) for name in kept if kept[name].notna().sum() >= 1}
    categories = judged.categories
    scoring = "accuracy" if judged.of_pairs or (categories is not None and len(categories) == 2) else "rmse"
    groups = None if clusters is None else clusters[several]
    test = alternative_test(labels[several], people, epsilon=epsilon, scoring=scoring, clusters=groups)  # type: ignore[arg-type]
    if not len(test.annotators):
        return None, f"no rater has {FEWEST_ITEMS} {judged.noun} with another rater's label"
    return test, ""


def _constant_test(judged: Judged, epsilon: float) -> tuple[float, AlternativeTest | None]:
    """Return the commonest label of people, and the test of a judge that always gives it."""
    values, counts = np.unique(judged.people.to_numpy(np.float64)[judged.labelled], return_counts=True)
    counts = counts[~np.isnan(values)]
    common = float(values[~np.isnan(values)][counts.argmax()])
    labels = np.where(np.isnan(judged.scores), np.nan, common)
    return common, _alternative(judged, labels, epsilon)[0] if judged.is_on_scale else None


def _wins(test: AlternativeTest) -> str:
    return f"{int(test.rejected.sum())} of {len(test.annotators)}"


def _verdict(
    judged: Judged,
    tests: tuple[AlternativeTest | None, AlternativeTest | None, AlternativeTest | None],
    agreement: Section,
    reason: str,
    raters: str,
) -> Section:
    test, together, constant = tests
    name, pearson = judged.judge_name, agreement.number(PEARSON)
    shown = f"its correlation with people's mean is {_ends(pearson)}"
    if test is None:
        sentences = [f"Whether {name} may stand in for a rater cannot be tested: {reason}.", f"What there is: {shown}."]
        if not judged.of_pairs:
            known = pd.read_csv(KNOWN).sort_values("pearson")
            low, high = (f"{known.iloc[place]['pearson']:.2f} ({known.iloc[place]['dataset']})" for place in (0, -1))
            sentences.append(f"For comparison: on {len(known)} public sets one rater correlates with the others' mean by {low} to {high}.")
        return Section(VERDICT, sentences)
    rows: list[Row] = [
        (what, value, np.nan, np.nan, len(one.annotators))
        for what, one, value in (
            ("winning rate", test, test.winning_rate),
            ("average advantage probability", test, test.average_advantage),
            *([("winning rate over clusters", together, together.winning_rate)] if together else []),
            *([("winning rate of a constant judge", constant, constant.winning_rate)] if constant else []),
        )
    ]
    wins = f"it wins against {_wins(test)} raters (average advantage probability {test.average_advantage:.2f})"
    no = f"Not shown that {name} may stand in for one of your raters"
    if not test.passed:
        answer = f"{no}: in the alternative annotator test {wins}."
    elif together is not None and not together.passed:
        answer = f"{no}: {wins}, but only {_wins(together)} where {judged.noun} of one cluster count as one."
    elif constant is not None and constant.passed:
        answer = f"{no}: {wins}, but a judge that always gives the commonest label does so against {_wins(constant)}."
    elif not pearson["low"] > 0:
        answer = f"{no}: {wins}, but {shown}."
    else:
        answer = f"Yes, {name} may stand in for one of your raters: in the alternative annotator test {wins}; a constant judge fails it."
    advice = {"crowd": "crowd workers", "trained": "trained raters", "experts": "experts"}
    sentences = [
        answer,
        f"To win is to be at most epsilon = {test.epsilon:g} worse than a rater, the authors' value beside {advice[raters]} "
        f"(--raters {' | '.join(EPSILONS)}); half of the raters are needed.",
    ]
    if (few := min(test.n.tolist())) < 50 or len(test.annotators) < 3:
        counts = f"{len(test.annotators)} raters, {few} {judged.noun} of the one with fewest"
        sentences.append(f"The authors ask for three raters and 50 to 100 items; here: {counts}.")
    return Section(VERDICT, sentences, _numbers(rows))


# Agreement


def _over_clusters(sums: Floats, value_of: Callable[[Floats], Any]) -> tuple[float, float, float]:
    """Return a statistic of sums over clusters, (clusters, k), with its interval by a jackknife over clusters."""
    sums = sums[sums.any(axis=1)]
    count, total = len(sums), sums.sum(axis=0)
    value = float(value_of(total[np.newaxis])[0])
    without = np.asarray(value_of(total - sums), dtype=np.float64)
    if count < _FEWEST_CLUSTERS or np.isnan(value) or np.isnan(without).any():
        return value, np.nan, np.nan
    error = np.sqrt((count - 1) / count * ((without - without.mean()) ** 2).sum())
    reach = stats.t.ppf(0.975, count - 1) * error
    return value, value - reach, value + reach


def _summed(columns: Floats, codes: Integers) -> Floats:
    """Sum columns, (n, k), over the items of each cluster."""
    return np.stack([np.bincount(codes, column) for column in columns.T], axis=1)


def _pearson(sums: Floats) -> Floats:
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((xy - x * y / n) / np.sqrt((xx - x * x / n) * (yy - y * y / n)))


def _correlation(x: Floats, y: Floats, codes: Integers) -> tuple[float, float, float]:
    """Return Pearson's coefficient with an interval on the scale of Fisher's z."""
    x, y = x - x.mean(), y - y.mean()
    sums = _summed(np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1), codes)
    value = float(_pearson(sums.sum(axis=0)[np.newaxis])[0])
    if not abs(value) < 1 - 1e-9:
        return value, np.nan, np.nan
    _, low, high = _over_clusters(sums, lambda part: np.arctanh(np.clip(_pearson(part), -1 + 1e-9, 1 - 1e-9)))
    return value, float(np.tanh(low)), float(np.tanh(high))


def _beyond_chance(joint: Floats, weights: Floats, *, gwet: bool) -> Floats:
    """Return weighted kappa, or Gwet's AC, of tables of counts: shape (…, categories squared)."""
    count = len(weights)
    table = joint.reshape(*joint.shape[:-1], count, count)
    with np.errstate(invalid="ignore", divide="ignore"):
        table = table / table.sum(axis=(-2, -1), keepdims=True)
        rows, columns = table.sum(axis=-1), table.sum(axis=-2)
        if gwet:
            prevalence = (rows + columns) / 2
            chance = weights.sum() / (count * (count - 1)) * (prevalence * (1 - prevalence)).sum(axis=-1)
        else:
            chance = (weights * rows[..., np.newaxis] * columns[..., np.newaxis, :]).sum(axis=(-2, -1))
        return np.asarray(((weights * table).sum(axis=(-2, -1)) - chance) / (1 - chance))


def _rounded(judged: Judged, categories: Floats) -> Integers:
    """Return the place of the judge's labels, rounded half up, in the scale; -1 where it gave none."""
    step = categories[1] - categories[0]
    places = np.clip(np.floor((judged.scores - categories[0]) / step + 0.5), 0, len(categories) - 1)
    return np.where(np.isnan(places), -1, places).astype(np.intp)


def _counts(judged: Judged, categories: Floats) -> tuple[Floats, Floats]:
    """Return how often each label was given to each item by people, and by the judge: shape (items, categories)."""
    people = np.stack([(judged.people == value).sum(axis=1).to_numpy(np.float64) for value in categories], axis=1)
    rounded = _rounded(judged, categories)
    return people, np.asarray((rounded[:, np.newaxis] == np.arange(len(categories))), dtype=np.float64)


def _agreement(judged: Judged) -> Section:
    there, codes = judged.labelled, judged.cluster_codes
    x, y = judged.scores[there], judged.mean[there]
    rows: list[Row] = [(PEARSON, *_correlation(x, y, codes[there]), len(x))]
    rows.append(("Spearman with people's mean", *_correlation(stats.rankdata(x), stats.rankdata(y), codes[there]), len(x)))
    sentences = [f"With people's mean of {len(x):,} {judged.noun}: Pearson {_ends(rows[0])}, Spearman {_ends(rows[1])}."]
    frames = {}
    own, rest, items = own_and_rest(np.where(there[:, np.newaxis], judged.people.to_numpy(np.float64), np.nan))
    if len(own) >= FEWEST:
        judge = ("Pearson of the judge with all raters but one", *_correlation(judged.scores[items], rest, codes[items]), len(own))
        rater = ("Pearson of that rater with the same", *_correlation(own, rest, codes[items]), len(own))
        rows += [judge, rater]
        sentences.append(f"With the mean of all raters but one: Pearson {_ends(judge)}; the one rater {_ends(rater)}.")
    if (categories := judged.categories) is not None and judged.is_on_scale:
        made, texts, confusion = _of_categories(judged, categories)
        rows += made
        sentences += texts
        frames = {"People's labels (rows) and the judge's": confusion}
    if judged.people.shape[1] > 1:
        alpha = krippendorff_alpha(judged.people.to_numpy(np.float64), "interval")
        rows.append(("Krippendorff's alpha of people (interval)", alpha, np.nan, np.nan, judged.people.shape[1]))
    return Section(AGREEMENT, sentences, _numbers(rows), frames=frames)


def own_and_rest(people: Floats) -> tuple[Floats, Floats, Integers]:
    """Return each label of a person, the mean of the others' of the same item, and the item's row; ``people`` is items x raters."""
    given = ~np.isnan(people)
    count, total = given.sum(axis=1), np.nansum(people, axis=1)
    items, who = np.nonzero(given & (count >= 2)[:, np.newaxis])
    own = people[items, who]
    return own, (total[items] - own) / (count[items] - 1), items


def _of_categories(judged: Judged, categories: Floats) -> tuple[list[Row], list[str], pd.DataFrame]:
    people, judge = _counts(judged, categories)
    size, codes = len(categories), judged.cluster_codes
    joint = {
        "of the judge with a rater": np.einsum("ia,ib->iab", people, judge).reshape(len(people), -1),
        "of two raters": (
            np.einsum("ia,ib->iab", people, people) - np.einsum("ia,ab->iab", people, np.eye(size))
        ).reshape(len(people), -1)[:, :],
    }
    joint["of two raters"] = joint["of two raters"] * judge.any(axis=1)[:, np.newaxis]
    weights = category_weights(size, "quadratic")
    rows: list[Row] = []
    for measure, value_of in (
        ("Exact agreement", lambda part: _share(part, np.eye(size))),
        ("Weighted kappa", lambda part: _beyond_chance(part, weights, gwet=False)),
        ("Gwet's AC2", lambda part: _beyond_chance(part, weights, gwet=True)),
    ):
        for who, table in joint.items():
            if table.any():
                rows.append((f"{measure} {who}", *_over_clusters(_summed(table, codes), value_of), int(table.sum())))
    of = {row[0]: _ends(row) for row in rows}
    sentences = []
    for who, words in (("of the judge with a rater", "A label of the judge and of a rater"), ("of two raters", "Of two raters")):
        if f"Exact agreement {who}" in of:
            exact, kappa, gwet = (of[f"{name} {who}"] for name in ("Exact agreement", "Weighted kappa", "Gwet's AC2"))
            text = f"{words}: equal in {exact}, quadratic weighted kappa {kappa}, Gwet's AC2 {gwet}."
            sentences.append(text)
    names = [f"{value:g}" for value in categories]
    table = joint["of the judge with a rater"].sum(axis=0).reshape(size, size).astype(int)
    return rows, sentences, pd.DataFrame(table, index=pd.Index(names, name="people"), columns=names)


def _share(joint: Floats, weights: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((joint * weights.ravel()).sum(axis=-1) / joint.sum(axis=-1))


def _constant(judged: Judged, common: float, constant: AlternativeTest | None, test: AlternativeTest | None) -> Section:
    """Say what a judge that always gives the commonest label reaches by the same measures."""
    people = judged.people.to_numpy(np.float64)[judged.labelled]
    given = ~np.isnan(people)
    exact = float((people == common).sum() / given.sum())
    rows: list[Row] = [("Exact agreement of a constant judge with a rater", exact, np.nan, np.nan, int(given.sum()))]
    label = {0.0: "the second", 0.5: "a tie", 1.0: "the first"}[common] if judged.of_pairs else f"{common:g}"
    text = f"One that always says {label} equals a rater's label in {exact:.2f}; its correlation and kappa are not defined or 0"
    if constant is None or test is None:
        return Section(CONSTANT, [f"{text}."], _numbers(rows))
    rows.append(("average advantage probability of a constant judge", constant.average_advantage, np.nan, np.nan, np.nan))
    passes = "passes the test" if constant.passed else "does not pass the test"
    sentence = (
        f"{text}. It {passes}: {_wins(constant)} raters, average advantage probability {constant.average_advantage:.2f} (this judge: "
        f"{_wins(test)}, {test.average_advantage:.2f})."
    )
    return Section(CONSTANT, [sentence], _numbers(rows))


# Systems and biases


def _mean_over_clusters(values: Floats, codes: Integers) -> tuple[float, float, float]:
    if not len(values):
        return np.nan, np.nan, np.nan
    sums = _summed(np.stack([np.ones_like(values), values], axis=1), codes)
    with np.errstate(invalid="ignore", divide="ignore"):
        return _over_clusters(sums, lambda part: part[..., 1] / part[..., 0])


def _difference(values: Floats, one: Flags, other: Flags, codes: Integers) -> tuple[float, float, float]:
    """Return the mean of some items less that of others."""
    kept = one | other
    columns = np.stack([one, one * values, other, other * values], axis=1)[kept].astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        return _over_clusters(_summed(columns, codes[kept]), lambda sums: sums[..., 1] / sums[..., 0] - sums[..., 3] / sums[..., 2])


def _side(ends: tuple[float, float, float], codes: Integers, there: Flags, tests: int) -> int:
    """Return whether a difference is above (1) or below (-1) 0 when corrected for so many tests (Bonferroni); else 0."""
    value, low, _ = ends
    freedom = len(np.unique(codes[there])) - 1
    reach = (value - low) * stats.t.ppf(1 - 0.025 / tests, freedom) / stats.t.ppf(0.975, freedom)
    return int(value > reach) - int(value < -reach)


def _systems(judged: Judged) -> Section:
    if judged.sides is None:
        return Section(SYSTEMS, reason="the file names no two systems")
    if not judged.is_on_scale:
        return Section(SYSTEMS, reason="the judge's scores are not on people's scale (--judge-scale)")
    there, codes, y, f = judged.labelled, judged.cluster_codes, judged.mean, judged.scores
    apart = f - y
    whole = _mean_over_clusters(apart[there], codes[there])
    groups = [(name, mask & there, np.where(turned, -1.0, 1.0), turned) for name, mask, turned in judged.groups()]
    groups = [group for group in groups if group[1].sum() >= _FEWEST_CLUSTERS]
    if len(groups) < 2:
        return Section(SYSTEMS, reason="fewer than two systems have three labels")
    rows: list[Row] = []
    lines, favoured = [], {1: [], -1: []}
    for name, kept, sign, turned in groups:
        own = _mean_over_clusters((apart * sign)[kept], codes[kept])
        rows.append((f"offset of {name}", *own, int(kept.sum())))
        # Of pairs an offset is another's loss; of responses each system is set beside the others.
        beside = own if judged.of_pairs else _difference(apart, kept, there & ~kept, codes)
        rows += [] if judged.of_pairs else [(f"offset of {name} beside the others", *beside, int(kept.sum()))]
        if side := _side(beside, codes, there, len(groups)):
            favoured[side].append((name, beside))
        people, judge = (np.where(turned, 1 - values, values)[kept].mean() for values in (y, f))
        lines.append((name, people, judge, own))
    sentences = []
    if not judged.of_pairs:
        rows.append(("offset over all systems", *whole, int(there.sum())))
        sentences.append(f"Judge minus people, over all: {_ends(whole, sign=True)}.")
    measure = "win rate" if judged.of_pairs else "offset beside the others"
    for side, words in ((1, "It favours"), (-1, "It is hard on")):
        if some := sorted(favoured[side], key=lambda one: -abs(one[1][0])):
            sentences.append(f"{words} {_listed([f'{name} {_ends(ends, sign=True)}' for name, ends in some])} ({measure}).")
    if not any(favoured.values()):
        sentences.append(f"It favours no system, and is hard on none, significantly ({measure}, corrected for {len(groups)} systems).")
    pairs = list(combinations(lines, 2))
    swapped = [f"{a[0]} and {b[0]}" for a, b in pairs if (a[1] - b[1]) * (a[2] - b[2]) < 0]
    if len(lines) >= 3:
        rows.append(("pairs of systems in people's order", len(pairs) - len(swapped), np.nan, np.nan, len(pairs)))
        some = f"; the other way round: {_listed(swapped)}" if swapped else ""
        sentences.append(f"It orders {len(pairs) - len(swapped)} of {len(pairs)} pairs of systems as people do{some}.")
    frame = pd.DataFrame(
        [[name, f"{people:.2f}", f"{judge:.2f}", _ends(own, sign=True)] for name, people, judge, own in lines],
        columns=["System", "people", "judge", "judge − people"],
    )
    return Section(SYSTEMS, sentences, _numbers(rows), frames={"Systems on the labelled items": frame})


def _bias(judged: Judged) -> Section:
    there, codes = judged.labelled, judged.cluster_codes[judged.labelled]
    x, y = judged.scores[there], judged.mean[there]
    apart = x - y
    rows: list[Row] = []
    sentences, lacking = [], []
    if judged.texts is None:
        lacking.append("no texts, whose length could matter")
    else:
        length = stats.rankdata(judged.texts[there].str.len())
        ends = [_correlation(length, values, codes) for values in (apart, x, y)]
        for what, row in zip(("judge − people", "the judge", "people"), ends, strict=True):
            rows.append((f"rank correlation of length with {what}", *row, len(x)))
        if judged.is_on_scale:
            how = "it likes them more than people do" if ends[0][1] > 0 else "it likes them less than people do" if ends[0][2] < 0 else "no clear difference"
            text = f"Longer {judged.noun}: {how} (correlation of judge − people with length {_ends(ends[0])}; people's own {_ends(ends[2])})."
            sentences.append(text)
    if judged.of_pairs:
        shares = [("judge", _mean_over_clusters(x, codes)), ("people", _mean_over_clusters(y, codes))]
        difference = _mean_over_clusters(apart, codes)
        rows += [(f"share for the first, {who}", *ends, len(x)) for who, ends in shares]
        rows.append(("share for the first, judge − people", *difference, len(x)))
        clear = difference[1] > 0 or difference[2] < 0
        sentences.append(
            f"Position: it prefers the first in {shares[0][1][0]:.2f}, people in {shares[1][1][0]:.2f}; difference "
            f"{_ends(difference, sign=True)}{'' if clear else ', not clear'}."
        )
        both = _both_orders(judged)
        if len(both):
            rows.append(("same answer in both orders", float(both.mean()), np.nan, np.nan, len(both)))
            sentences.append(f"Shown in both orders, {len(both)} pairs get the same answer in {both.mean():.2f}.")
        else:
            lacking.append("no pair in both orders")
    elif (categories := judged.categories) is not None and judged.is_on_scale:
        used = np.unique(_rounded(judged, categories)[there])
        unused = [f"{value:g}" for place, value in enumerate(categories) if place not in used and (np.round(y) == value).any()]
        spread = float(np.std(x) / np.std(y)) if np.std(y) > 0 else np.nan
        rows.append(("standard deviation, judge over people's mean", spread, np.nan, np.nan, len(x)))
        never = f"It never says {_listed(unused)}, which people do; its" if unused else "Its"
        sentences.append(f"{never} labels spread {spread:.2f} times as much as people's means.")
    for made in (_family(judged), _drift(judged)):
        if isinstance(made, str):
            lacking.append(made)
        else:
            rows += made[1]
            sentences.append(made[0])
    return Section(BIAS, [*sentences, *([f"Not seen here: {'; '.join(lacking)}."] if lacking else [])], _numbers(rows))


def _both_orders(judged: Judged) -> Flags:
    """Return of each pair that the judge saw in both orders whether it chose the same answer."""
    assert judged.sides is not None
    sides = judged.sides.astype(str).to_numpy()
    frame = pd.DataFrame({"cluster": judged.cluster_codes, "one": sides.min(axis=1) if len(sides) else [], "two": sides.max(axis=1)})
    frame = frame.assign(turned=sides[:, 0] != frame["one"].to_numpy(), value=judged.scores).dropna()
    frame["value"] = np.where(frame["turned"], 1 - frame["value"], frame["value"])
    by = frame.groupby(["cluster", "one", "two"]).agg(n=("value", "size"), orders=("turned", "nunique"), kinds=("value", "nunique"))
    by = by[(by["orders"] == 2) & (by["n"] == 2)]
    return (by["kinds"] == 1).to_numpy()


def _maker(name: str) -> str:
    return next((maker for maker, names in _FAMILIES.items() if re.match(rf"(?:{names})(?![a-z])", name.lower())), "")


def _family(judged: Judged) -> tuple[str, list[Row]] | str:
    """Say whether a judge favours systems of its maker."""
    maker = _maker(judged.judge_name)
    if judged.sides is None or not maker or not judged.is_on_scale:
        return "the judge's maker or the systems are not known"
    sides = judged.sides.astype(str).map(lambda name: _maker(name) == maker).to_numpy()
    own = sides[:, 0] if not judged.of_pairs else sides[:, 0] ^ sides[:, 1]
    there = judged.labelled
    if own[there].sum() < FEWEST or (not judged.of_pairs and (~own)[there].sum() < FEWEST):
        return f"no system of {maker}, the judge's maker, beside others"
    apart, codes = judged.scores - judged.mean, judged.cluster_codes
    if judged.of_pairs:
        kept = there & own
        ends = _mean_over_clusters((apart * np.where(sides[:, 0], 1, -1))[kept], codes[kept])
    else:
        ends = _difference(apart, own & there, ~own & there, codes)
    clear = "favours them" if ends[1] > 0 else "is harder on them" if ends[2] < 0 else "no clear difference"
    text = f"Systems of {maker}, the judge's maker: {clear} (offset beside the others' {_ends(ends, sign=True)})."
    return text, [("offset of the judge's own family", *ends, int(own[there].sum()))]


def _drift(judged: Judged) -> tuple[str, list[Row]] | str:
    """Say whether the judge changes with time or between versions."""
    if judged.time is None:
        return "no column of times or versions"
    if not judged.is_on_scale:
        return "drift, since the judge's scores are not on people's scale"
    there, codes = judged.labelled, judged.cluster_codes
    apart = judged.scores - judged.mean
    if judged.time.dtype.kind == "f":
        when = stats.rankdata(judged.time.to_numpy(np.float64)[there])
        ends = _correlation(when, apart[there], codes[there])
        how = "rises" if ends[1] > 0 else "falls" if ends[2] < 0 else "no clear change"
        row = ("rank correlation of time with judge − people", *ends, int(there.sum()))
        return f"Over time, judge − people: {how} (correlation {_ends(ends)}).", [row]
    names = judged.time.astype(str).to_numpy()
    rows: list[Row] = []
    for name in dict.fromkeys(names[there]):
        kept = there & (names == name)
        rows.append((f"offset in {name}", *_mean_over_clusters(apart[kept], codes[kept]), int(kept.sum())))
    return f"Judge − people by version: {_listed([f'{row[0][10:]} {_ends(row, sign=True)}' for row in rows])}.", rows


# Corrected numbers


def _filled(judged: Judged) -> Floats:
    """Return the judge's labels; where it gave none, one code for all: dropping them would change what the mean is of."""
    code = 0.5 if judged.of_pairs else np.nanmean(judged.scores)
    return np.where(np.isnan(judged.scores), code, judged.scores)


def _parts(judged: Judged, kept: Flags, turned: Flags) -> tuple[Any, ...]:
    """Return the arguments of :func:`corrected_mean` for some items, some of whose labels are turned round."""
    y, f = (np.where(turned, 1 - values, values) for values in (judged.mean, _filled(judged)))
    own, rest = kept & ~np.isnan(y), kept & np.isnan(y)
    codes = judged.cluster_codes
    return y[own], f[own], f[rest], codes[own], codes[rest]


def _means(parts: tuple[Any, ...]) -> dict[str, Estimate]:
    """Return the mean by the labels alone, by the judge alone and by both, of one group of items."""
    y, f, rest, own, outer = parts
    codes = np.concatenate([own, outer])
    clustered = len(np.unique(codes)) < len(codes) and len(np.unique(own)) >= _FEWEST_CLUSTERS
    groups = (own, outer) if clustered else (None, None)
    judge = _mean_over_clusters(np.concatenate([f, rest]), codes)
    made = {
        "labels alone": classical(y, groups[0]),
        "judge alone": Estimate(judge[0], np.nan, judge[1], judge[2]),
        "corrected": corrected_mean(y, f, rest, *groups),
    }
    if {*np.unique(y)} == {0.0, 1.0} == {*np.unique(np.concatenate([f, rest]))} and (rogan := rogan_gladen(y, f, rest)):
        made["Rogan-Gladen"] = rogan
    return made


def _corrected(judged: Judged) -> Section:
    unlabelled = np.isnan(judged.mean)
    if not unlabelled.any():
        return Section(CORRECTED, reason="people labelled everything that was judged: their means need no correction")
    everything = np.ones(len(judged.people), dtype=np.bool_)
    groups = [] if judged.of_pairs else [("all", everything, np.zeros_like(everything))]
    parts = {name: _parts(judged, mask, turned) for name, mask, turned in [*groups, *judged.groups()]}
    rows: list[Row] = []
    lines, frame = [], []
    few = [name for name, part in parts.items() if len(part[0]) < FEWEST]
    for name, part in parts.items():
        if name in few:
            continue
        made = _means(part)
        rows += [(f"{name}: {how}", one.value, one.low, one.high, len(part[0])) for how, one in made.items()]
        alone, both = made["labels alone"], made["corrected"]
        narrower = f"; width × {both.width / alone.width:.2f}" if alone.width > 0 else ""
        cells = [_ends((one.value, one.low, one.high)) for one in (both, alone, made["judge alone"])]
        lines.append(f"{name}: {cells[0]} (labels alone {cells[1]}, judge alone {made['judge alone'].value:.2f}{narrower})")
        frame.append([name, *cells, len(part[0]), len(part[2])])
    if not lines:
        return Section(CORRECTED, reason=f"fewer than {FEWEST} labels of each system")
    what = "win rate" if judged.of_pairs else "mean"
    sentences = [f"The {what} that people would give to all that was judged (width: of the interval, beside that of labels alone)."]
    sentences += [f"Fewer than {FEWEST} labels: {_listed(few)}."] * bool(few)
    differences, text = _differences(judged, {name: part for name, part in parts.items() if name not in few and name != "all"})
    if text:
        rows += differences
        sentences.append(text)
    sentences.append(_randomness(judged))
    if lost := int(np.isnan(judged.scores).sum()):
        sentences.append(f"{lost} {judged.noun} without a label of the judge count with one code, not as missing.")
    columns = ["", "corrected", "labels alone", "judge alone", "labelled", "others"]
    shown = [*lines[:_MOST_LINES], *[f"… and {len(lines) - _MOST_LINES} more systems"] * (len(lines) > _MOST_LINES)]
    frames = {"With 95 % intervals": pd.DataFrame(frame, columns=columns)}
    return Section(CORRECTED, sentences, _numbers(rows), lines=shown, frames=frames)


def _differences(judged: Judged, parts: Mapping[str, tuple[Any, ...]]) -> tuple[list[Row], str]:
    """Return the difference of each pair of systems, or how often one of two wins, and what these show."""
    rows: list[Row] = []
    shown = {"corrected": 0, "labels alone": 0}
    if judged.of_pairs:
        pairs = {name: _parts(judged, mask, turned) for name, mask, turned in judged.groups(each_pair=True)}
        for name, part in pairs.items():
            if len(part[0]) >= FEWEST:
                made = _means(part)
                rows += [(f"{name}: {how}", one.value, one.low, one.high, len(part[0])) for how, one in made.items()]
                for how in shown:
                    shown[how] += made[how].low > 0.5 or made[how].high < 0.5
        count = len({row[0].partition(": ")[0] for row in rows})
        what = "wins against the other"
    else:
        for (one, own), (other, outer) in combinations(parts.items(), 2):
            for how, weight in (("corrected", None), ("labels alone", 0.0)):
                made = corrected_difference(own, outer, weight=weight)
                rows.append((f"{one} − {other}: {how}", made.value, made.low, made.high, min(len(own[0]), len(outer[0]))))
                shown[how] += made.low > 0 or made.high < 0
        count, what = len(rows) // 2, "has the higher mean"
    if not count:
        return [], ""
    text = f"In {shown['corrected']} of {count} pairs of systems one {what}, by an interval of its own (labels alone: {shown['labels alone']})."
    return rows, text


def _randomness(judged: Judged) -> str:
    """Say what the correction rests on, and whether the labelled items look like the others to the judge."""
    labelled, f = ~np.isnan(judged.mean), _filled(judged)
    codes = judged.cluster_codes
    text = "This holds if the labelled are a random sample of what was judged"
    ends = _difference(f, labelled, ~labelled, codes)
    if ends[1] > 0 or ends[2] < 0:
        return f"{text}, which they do not seem to be: the judge gives them {_ends(ends, sign=True)} compared with the others."
    first = np.flatnonzero(labelled)
    if len(first) and first[-1] == len(first) - 1 and len(first) < len(labelled):
        return f"{text}; they are the first {len(first)} of the file, so make sure that its order is random."
    return f"{text}."


def _more_labels(judged: Judged, half_width: float | None) -> Section:
    there, total = judged.labelled, int((~np.isnan(judged.scores)).sum())
    y, f = judged.mean[there], judged.scores[there]
    if total <= len(y):
        return Section(LABELS, reason="everything that was judged is labelled")
    if not np.std(y) > 0:
        return Section(LABELS, reason="people gave all the same label")
    codes = judged.cluster_codes[there]
    _, low, high = _correlation(f, y, codes)
    correlation = abs(float(np.corrcoef(y, f)[0, 1]))
    ends = sorted(np.clip([abs(low), abs(high)] if low * high > 0 else [0.0, max(abs(low), abs(high))], 0, 1))
    effect = max(_design_effect(y - np.polyval(np.polyfit(f, y, 1), f), codes), 1.0)
    everything = np.ones(len(judged.people), dtype=np.bool_)
    now = _means(_parts(judged, everything, np.zeros_like(everything)))["corrected"]
    half = half_width or now.width / 4
    spread = float(np.std(y, ddof=1))
    needed = [labels_needed(half, spread, float(one), total, design_effect=effect) for one in (correlation, ends[1], ends[0])]
    alone = effect * (stats.norm.ppf(0.975) * spread / half) ** 2
    rows: list[Row] = [(f"labels for a half width of {half:.3g}", *needed, len(y)), ("the same without a judge", alone, np.nan, np.nan, len(y))]
    what = "an interval" if half_width else "half the interval"
    goal = f"For {what} of the mean over all (±{half:.2g})"
    if not np.isfinite(needed[0]):
        sentences = [f"{goal}, the {total:,} {judged.noun} do not suffice: labels of new ones are needed."]
    else:
        to = f"{int(np.ceil(needed[2])):,}" if np.isfinite(needed[2]) else "more than there are"
        between = f"{int(np.ceil(needed[1])):,} to {to}, by how sure the correlation is"
        sentences = [f"{goal}: about {int(np.ceil(needed[0])):,} labels in all ({between}); {len(y):,} there are."]
    sentences.append(f"Without the judge it would take {int(np.ceil(alone)):,}.")
    if effect > 1.05:
        sentences.append(f"Clusters are counted: they widen the variance {effect:.2f} times.")
    sentences.append("`--next FILE` draws which: at random within each system.")
    return Section(LABELS, sentences, _numbers(rows), frames=_furthest(judged))


def _furthest(judged: Judged) -> dict[str, pd.DataFrame]:
    """Return the labelled items on which the judge and people differ most: to read, not to label more of."""
    if not judged.is_on_scale:
        return {}
    apart = pd.Series(np.where(judged.labelled, judged.scores - judged.mean, 0.0), index=judged.people.index)
    worst = apart.reindex(apart.abs().sort_values(ascending=False, kind="stable").index)[:10]
    frame = worst.index.to_frame(index=False).astype(str)
    if judged.texts is not None:
        frame["response"] = [textwrap.shorten(str(text), 80) for text in judged.texts.loc[worst.index]]
    frame["people"] = [f"{value:.2f}" for value in pd.Series(judged.mean, index=apart.index).loc[worst.index]]
    frame["judge"] = [f"{value:.2f}" for value in judged.judge.loc[worst.index]]
    return {"Where judge and people differ most (to read; more labels are drawn at random)": frame}


def _design_effect(residual: Floats, codes: Integers) -> float:
    """Return how much clusters widen a mean's variance: 1 + (mean size - 1) x intraclass correlation (one-way ANOVA)."""
    codes = np.unique(codes, return_inverse=True)[1].reshape(-1)
    sizes = np.bincount(codes).astype(np.float64)
    count, n = len(sizes), len(residual)
    if count in (1, n):
        return 1.0
    means = np.bincount(codes, residual) / sizes
    between = (sizes * (means - residual.mean()) ** 2).sum() / (count - 1)
    within = ((residual - means[codes]) ** 2).sum() / (n - count)
    size = (n - (sizes**2).sum() / n) / (count - 1)
    total = between + (size - 1) * within
    return float(1 + (n / count - 1) * max((between - within) / total, 0.0)) if total > 0 else 1.0


# A baseline


def _changes(judged: Judged, before: Judged) -> Section:
    """Compare a judge's labels with its earlier ones of the same items."""
    old = before.judge.reindex(judged.judge.index).to_numpy(np.float64)
    both = ~np.isnan(old) & ~np.isnan(judged.scores)
    if both.sum() < FEWEST:
        problem = f"{int(both.sum())} {judged.noun} are in the baseline too"
        raise SchemaError(problem, where="--baseline", expected=f"{FEWEST} or more with the same context and system")
    x, y, codes = judged.scores[both], old[both], judged.cluster_codes[both]
    categories = judged.categories
    far = 0.1 * (judged.scale[1] - judged.scale[0])
    flipped = np.abs(x - y) > (far if categories is None else (categories[1] - categories[0]) / 2)
    flips = _mean_over_clusters(flipped.astype(np.float64), codes)
    shift = _mean_over_clusters(x - y, codes)
    rows: list[Row] = [("flip rate", *flips, int(both.sum())), ("shift", *shift, int(both.sum()))]
    how = "another label" if categories is not None else f"a label more than {far:.2g} apart"
    sentences = [f"Of {int(both.sum()):,} {judged.noun} judged before, {_ends(flips)} got {how}; shift {_ends(shift, sign=True)}."]
    moved = []
    for name, mask, turned in judged.groups():
        kept = mask & both
        if kept.sum() >= _FEWEST_CLUSTERS:
            sign = np.where(turned, -1.0, 1.0)[kept]
            own = _mean_over_clusters((judged.scores - old)[kept] * sign, judged.cluster_codes[kept])
            rows.append((f"shift of {name}", *own, int(kept.sum())))
            moved += [f"{name} {_ends(own, sign=True)}"] if own[1] > 0 or own[2] < 0 else []
    sentences.append(f"Systems that moved: {_listed(moved)}." if moved else "No system moved significantly.")
    return Section(BASELINE, sentences, _numbers(rows))


def _failure(made: Audit, requirement: str) -> str | None:
    name, _, text = requirement.partition("=")
    known = {"pearson": (PEARSON, AGREEMENT), "spearman": ("Spearman with people's mean", AGREEMENT)}
    known |= {"kappa": ("Weighted kappa of the judge with a rater", AGREEMENT)}
    forms = "alt-test, pearson=VALUE, spearman=VALUE, kappa=VALUE, no-shift or flips=VALUE"
    if name == "alt-test" and not text:
        return None if made.verdict.startswith("Yes") else made.verdict
    there = {one.title for one in made.sections}
    if name in ("no-shift", "flips") and BASELINE not in there:
        raise ConfigError(requirement, where="--require", expected="a --baseline, too")
    if name == "no-shift" and not text:
        shift = made.section(BASELINE).number("shift")
        return f"The judge has shifted: {_ends(shift, sign=True)}." if shift["low"] > 0 or shift["high"] < 0 else None
    try:
        bound = float(text)
    except ValueError:
        raise ConfigError(repr(requirement), where="--require", expected=forms) from None
    if name == "flips":
        flips = made.section(BASELINE).number("flip rate")
        return None if flips["high"] <= bound else f"The flip rate may be above {bound:g}: {_ends(flips)}."
    if name not in known:
        raise ConfigError(repr(requirement), where="--require", expected=forms)
    what, title = known[name]
    row = made.section(title).number(what)
    return None if row["low"] >= bound else f"{what} is not shown to reach {bound:g}: {_ends(row)}."


def with_others(made: Audit, others: Sequence[Audit], notes: Sequence[str]) -> Audit:
    """Return an audit with the verdicts on other judges and dimensions, and notes on how the data were read."""
    return replace(made, others={f"{one.judged.judge_name}, {one.judged.dimension}": one.in_short for one in others}, notes=tuple(notes))


# Words


def _numbers(rows: Sequence[Row]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["what", "value", "low", "high", "n"])


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _ends(row: Mapping[str, float] | Sequence[Any], *, sign: bool = False) -> str:
    """Write a value with its interval: of a row of numbers, or of (value, low, high)."""
    if isinstance(row, Mapping):
        value, low, high = row["value"], row["low"], row["high"]
    else:
        value, low, high = row[1:4] if isinstance(row[0], str) else row[:3]
    if np.isnan(value):
        return "not defined"
    plus = "+" if sign else ""
    return f"{value:{plus}.2f}" + ("" if np.isnan(low) else f" [{low:{plus}.2f}, {high:{plus}.2f}]")
