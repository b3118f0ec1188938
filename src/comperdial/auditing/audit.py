"""Audit a judge with the available labels: agreement, systems, biases, and corrected means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from comperdial.auditing.agreement import TITLE as AGREEMENT
from comperdial.auditing.agreement import agreement
from comperdial.auditing.corrections import corrected, more_labels
from comperdial.auditing.judged import FEWEST, Judged, places_of
from comperdial.auditing.numbers import (
    FEWEST_CLUSTERS,
    KAPPA,
    KAPPA_NOMINAL,
    PEARSON,
    Floats,
    Integers,
    Row,
    Section,
    listed,
    mean_of,
    tidy,
    written,
)
from comperdial.auditing.systems import bias, systems
from comperdial.core.errors import ConfigError, SchemaError
from comperdial.stats.alternative_test import EPSILONS, FEWEST_ITEMS, AlternativeTest, alternative_test

VERDICT, CONSTANT, BASELINE = "Verdict", "A constant judge", "Against the baseline"
KNOWN = Path(__file__).with_name("human_agreement.csv")
"""Correlation of one rater with the mean of the others on public data sets (benchmarks/human_agreement.py)."""


@dataclass(frozen=True)
class Result:
    """The result of an audit.

    Attributes
    ----------
    judged
        The labels.
    sections
        In reading order; the verdict comes first.
    alternative
        The alternative annotator test; None without two raters who share 30 items.
    """

    judged: Judged
    sections: Sequence[Section]
    alternative: AlternativeTest | None

    @property
    def title(self) -> str:
        """Return the title of the audit."""
        return f"{self.judged.judge_name} as a judge of {self.judged.dimension}"

    @property
    def verdict(self) -> str:
        """Return the verdict in a sentence or two."""
        return " ".join(self.sections[0].sentences)

    @property
    def table(self) -> pd.DataFrame:
        """Return all numbers, one per row: section, what, value, low, high, n."""
        columns = ["section", "what", "value", "low", "high", "n"]
        parts = [one.numbers.assign(section=one.title) for one in self.sections if one.numbers is not None]
        return pd.concat(parts, ignore_index=True).reindex(columns=columns) if parts else pd.DataFrame(columns=columns)

    @property
    def agreement(self) -> float:
        """Return the correlation with the human mean (or kappa), used to sort judges; -1 if undefined."""
        value = self.section(AGREEMENT).number(main_number(self.judged))["value"]
        return -1.0 if np.isnan(value) else value

    @property
    def in_short(self) -> str:
        """Return the verdict in a few words, with the correlation."""
        answer, test = self.verdict.split(maxsplit=1)[0].strip(","), self.alternative
        main = main_number(self.judged)
        pearson = f"{'Pearson' if main == PEARSON else 'kappa'} {written(self.section(AGREEMENT).number(main))}"
        if test is None:
            return f"not tested; {pearson}"
        words = "yes" if answer == "Yes" else "not shown"
        constant = self.sections[0].number("winning rate of a constant judge")["value"] * len(test.annotators)
        beside = f", a constant judge against {constant:.0f}" if constant == constant else ""
        return f"{words}: wins against {_wins(test)}{beside}; advantage {test.average_advantage:.2f}; {pearson}"

    def section(self, title: str) -> Section:
        """Return a section by title."""
        return next(one for one in self.sections if one.title == title)

    def failures(self, requirements: Sequence[str]) -> list[str]:
        """Return one sentence for each requirement that is not met.

        Requirements: ``alt-test``; ``pearson=0.5``, ``spearman=0.5`` or ``kappa=0.4``, a minimum for the lower end of the
        interval; with a baseline ``no-shift`` (the interval of the shift includes 0) and ``flips=0.1`` (a maximum for its upper
        end).
        """
        return [text for requirement in requirements if (text := _failure(self, requirement))]

    def next_labels(self, count: int, seed: int = 2024) -> pd.DataFrame:
        """Return the items to label next: a random sample, stratified by system in proportion to its unlabelled items.

        Labels chosen this way keep the corrected means unbiased; labels chosen by disagreement between judge and people would
        not.
        """
        judged = self.judged
        unlabelled = judged.people.index[np.isnan(judged.mean)]
        frame = unlabelled.to_frame(index=False)
        if not len(frame):
            raise ConfigError("all items are labelled", where="--next", expected="items that only the judge labelled")
        rng = np.random.default_rng(seed)
        order = frame.assign(draw=rng.random(len(frame)))
        by = (
            judged.sides.loc[unlabelled].iloc[:, 0].astype(str).to_numpy()
            if judged.sides is not None
            else np.zeros(len(frame))
        )
        # Spread each system's randomly ordered items evenly, so that every prefix of the list has the systems' shares.
        place = order.groupby(by)["draw"].rank() - rng.random()
        size = order.groupby(by)["draw"].transform("size")
        drawn = order.assign(place=place / size).sort_values("place", kind="stable")[[*frame]][:count]
        drawn = (
            drawn if judged.texts is None else drawn.assign(response=judged.texts[unlabelled].to_numpy()[drawn.index])
        )
        return drawn.reset_index(drop=True)


def main_number(judged: Judged) -> str:
    """Return the headline measure of agreement: kappa for labels without an order."""
    return PEARSON if judged.names is None else KAPPA_NOMINAL


def audit(
    judged: Judged, *, raters: str = "crowd", before: Judged | None = None, half_width: float | None = None
) -> Result:
    """Audit a judge.

    Parameters
    ----------
    judged
        The labels.
    raters
        Kind of raters (``experts``, ``trained`` or ``crowd``), which sets how much worse than one of them a judge may be.
    before
        The same judge's earlier labels for all or some of the items.
    half_width
        Target half-width of the interval around the corrected mean; default: half the current one.

    Raises
    ------
    SchemaError
        If fewer than ten items have both labels, or the judge's labels of these are all equal.
    """
    judged.check()
    first, test = verdict(judged, raters)
    sections = [*first, systems(judged), bias(judged), corrected(judged), more_labels(judged, half_width)]
    if before is not None:
        sections.append(_changes(judged, before))
    return Result(judged, sections, test)


# The verdict


def verdict(judged: Judged, raters: str) -> tuple[list[Section], AlternativeTest | None]:
    """Return the verdict, agreement with people and the comparison with a constant judge; and the alternative annotator test."""
    of_people = agreement(judged)
    test, reason = _alternative(judged, judged.scores, EPSILONS[raters])
    together = None
    if test is not None and judged.clusters is not None and len(set(judged.cluster_codes)) < len(judged.people):
        together, _ = _alternative(judged, judged.scores, EPSILONS[raters], judged.cluster_codes)
    label, constant_test = _constant_test(judged, EPSILONS[raters])
    sections = [
        _verdict(judged, (test, together, constant_test), label, of_people, reason, raters),
        of_people,
        _constant(judged, label, constant_test, test),
    ]
    return sections, test


def _alternative(
    judged: Judged, labels: Floats, epsilon: float, clusters: Integers | None = None
) -> tuple[AlternativeTest | None, str]:
    """Return the alternative annotator test, or None and the reason."""
    if not judged.is_on_scale:
        low, high = judged.judge.min(), judged.judge.max()
        own = f"the judge's scores ({low:g} to {high:g}) are not on people's scale ({judged.scale[0]:g} to {judged.scale[1]:g})"
        return None, f"{own}: --scale LOW HIGH says what people's is, --judge-scale LOW HIGH maps the judge's to it"
    several = (judged.people.notna().sum(axis=1).to_numpy() >= 2) & ~np.isnan(labels)
    if several.sum() < FEWEST_ITEMS:
        return None, f"{int(several.sum())} {judged.noun} have labels of two people; the test needs {FEWEST_ITEMS}"
    kept = judged.people[several]
    people = {str(name): kept[name].to_numpy(np.float64) for name in kept if kept[name].notna().sum() >= 1}
    categories = judged.categories
    scoring = (
        "accuracy" if judged.of_pairs or judged.names or (categories is not None and len(categories) == 2) else "rmse"
    )
    groups = None if clusters is None else clusters[several]
    test = alternative_test(labels[several], people, epsilon=epsilon, scoring=scoring, clusters=groups)  # type: ignore[arg-type]
    if not len(test.annotators):
        return None, f"no rater has {FEWEST_ITEMS} {judged.noun} with another rater's label"
    return test, ""


def _constant_test(judged: Judged, epsilon: float) -> tuple[float, AlternativeTest | None]:
    """Return the constant label with the highest winning rate, and its test.

    Candidates are the most common label and, for ordered labels, the human mean, which can be nearer to most ratings than any
    label.
    """
    people = judged.people.to_numpy(np.float64)[judged.labelled]
    values, counts = np.unique(people[~np.isnan(people)], return_counts=True)
    common = float(values[counts.argmax()])
    if not judged.is_on_scale:
        return common, None
    mean = (
        []
        if judged.of_pairs or judged.names or (judged.categories is not None and len(judged.categories) == 2)
        else [np.nanmean(people)]
    )
    made = []
    for label in (common, *mean):
        test, _ = _alternative(judged, np.where(np.isnan(judged.scores), np.nan, label), epsilon)
        made.append((float(label), test))
    return max(made, key=lambda one: one[1].winning_rate if one[1] else -1.0)


def _wins(test: AlternativeTest) -> str:
    return f"{int(test.rejected.sum())} of {len(test.annotators)}"


def _verdict(
    judged: Judged,
    tests: tuple[AlternativeTest | None, AlternativeTest | None, AlternativeTest | None],
    label: float,
    of_people: Section,
    reason: str,
    raters: str,
) -> Section:
    test, together, constant = tests
    name, pearson = judged.judge_name, of_people.number(main_number(judged))
    what = "correlation with people's mean" if judged.names is None else "kappa with a rater"
    shown = f"its {what} is {written(pearson)}"
    if test is None:
        sentences = [
            f"Whether {name} may stand in for a rater cannot be tested: {reason}.",
            f"What can be computed: {shown}.",
        ]
        if not judged.of_pairs and judged.names is None:
            known = pd.read_csv(KNOWN).sort_values("pearson")
            low, high = (f"{known.iloc[place]['pearson']:.2f} ({known.iloc[place]['dataset']})" for place in (0, -1))
            sentences.append(
                f"For comparison: on {len(known)} public sets one rater correlates with the others' mean by {low} to {high}."
            )
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
        answer = f"{no}: {wins}, but always saying {_label(judged, label)} wins against {_wins(constant)}."
    elif not pearson["low"] > 0:
        answer = f"{no}: {wins}, but {shown}."
    else:
        answer = f"Yes, {name} may stand in for one of your raters: in the alternative annotator test {wins}; "
        answer += "a constant judge fails it."
    advice = {"crowd": "crowd workers", "trained": "trained raters", "experts": "experts"}
    sentences = [
        answer,
        f"It wins against a rater if it is significantly less than epsilon = {test.epsilon:g} worse, corrected for the number of "
        f"raters; epsilon is the authors' value for {advice[raters]} (--raters {' | '.join(EPSILONS)}). Half of the raters are "
        "needed. Advantage probability: how often it agrees with the other raters at least as well as the rater does.",
    ]
    if (few := min(test.n.tolist())) < 50 or len(test.annotators) < 3:
        counts = f"{len(test.annotators)} raters, the one with fewest has {few} {judged.noun}"
        sentences.append(f"The authors ask for three raters and 50 to 100 items; here: {counts}.")
    return Section(VERDICT, sentences, tidy(rows))


def _label(judged: Judged, label: float) -> str:
    if judged.names is not None:
        return judged.names[label]
    return {0.0: "the second", 0.5: "a tie", 1.0: "the first"}[label] if judged.of_pairs else f"{label:.3g}"


def _constant(judged: Judged, label: float, constant: AlternativeTest | None, test: AlternativeTest | None) -> Section:
    """Report what a judge that always gives one label achieves on the same measures."""
    people = judged.people.to_numpy(np.float64)[judged.labelled]
    values, counts = np.unique(people[~np.isnan(people)], return_counts=True)
    exact, count = float(counts.max() / counts.sum()), int(counts.sum())
    rows: list[Row] = [("Exact agreement of a constant judge with a rater", exact, np.nan, np.nan, count)]
    common = _label(judged, float(values[counts.argmax()]))
    zero = "correlation is not defined and its kappa 0" if judged.names is None else "kappa is 0"
    sentences = [f"Always saying {common} matches a rater's label in {exact:.2f}; its {zero}."]
    if constant is not None and test is not None:
        rows.append(
            ("average advantage probability of a constant judge", constant.average_advantage, np.nan, np.nan, np.nan)
        )
        passes = "passes the test" if constant.passed else "does not pass the test"
        advantage = f"average advantage probability {constant.average_advantage:.2f}"
        ours = f"this judge: {_wins(test)}, {test.average_advantage:.2f}"
        sentences.append(
            f"Always saying {_label(judged, label)} {passes}: {_wins(constant)} raters, {advantage} ({ours})."
        )
    return Section(CONSTANT, sentences, tidy(rows))


# A baseline


def _changes(judged: Judged, before: Judged) -> Section:
    """Compare a judge's labels with its earlier labels of the same items."""
    if judged.texts is None or before.texts is None:
        old = before.judge.reindex(judged.judge.index).to_numpy(np.float64)
    else:
        place = places_of(_responses(judged), _responses(before))
        old = np.where(place >= 0, before.scores[place], np.nan)
    both = ~np.isnan(old) & ~np.isnan(judged.scores)
    if both.sum() < FEWEST:
        problem = f"{int(both.sum())} {judged.noun} are in the baseline too"
        raise SchemaError(problem, where="--baseline", expected=f"{FEWEST} or more with the same context and system")
    x, y, codes = judged.scores[both], old[both], judged.cluster_codes[both]
    categories = judged.categories
    far = 0.1 * (judged.scale[1] - judged.scale[0])
    flipped = (
        x != y if judged.names else np.abs(x - y) > (far if categories is None else (categories[1] - categories[0]) / 2)
    )
    flips = mean_of(flipped.astype(np.float64), codes)
    if judged.names:
        text = f"Of {int(both.sum()):,} {judged.noun} judged before, {written(flips)} got another label."
        return Section(BASELINE, [text], tidy([("flip rate", *flips, int(both.sum()))]))
    shift = mean_of(x - y, codes)
    rows: list[Row] = [("flip rate", *flips, int(both.sum())), ("shift", *shift, int(both.sum()))]
    how = "another label" if categories is not None else f"a label more than {far:.2g} apart"
    sentences = [
        f"Of {int(both.sum()):,} {judged.noun} judged before, {written(flips)} got {how}; shift {written(shift, sign=True)}."
    ]
    moved = []
    for name, mask, turned in judged.groups():
        kept = mask & both
        if kept.sum() >= FEWEST_CLUSTERS:
            sign = np.where(turned, -1.0, 1.0)[kept]
            own = mean_of((judged.scores - old)[kept] * sign, judged.cluster_codes[kept])
            rows.append((f"shift of {name}", *own, int(kept.sum())))
            moved += [f"{name} {written(own, sign=True)}"] if own[1] > 0 or own[2] < 0 else []
    sentences.append(f"Systems that moved: {listed(moved)}." if moved else "No system moved significantly.")
    return Section(BASELINE, sentences, tidy(rows))


def _responses(judged: Judged) -> pd.DataFrame:
    names = judged.people.index.to_frame(index=False).set_axis(["item", "system"], axis=1)
    return names.assign(response=pd.Series(judged.texts).to_numpy()).astype(str)


def _failure(made: Result, requirement: str) -> str | None:
    name, _, text = requirement.partition("=")
    known = {"pearson": (PEARSON, AGREEMENT), "spearman": ("Spearman with people's mean", AGREEMENT)}
    known |= {"kappa": (KAPPA if made.judged.names is None else KAPPA_NOMINAL, AGREEMENT)}
    forms = "alt-test, pearson=VALUE, spearman=VALUE, kappa=VALUE, no-shift or flips=VALUE"
    if name == "alt-test" and not text:
        return None if made.verdict.startswith("Yes") else made.verdict
    there = {one.title for one in made.sections}
    if name in ("no-shift", "flips") and BASELINE not in there:
        raise ConfigError(requirement, where="--require", expected="a --baseline, too")
    if name == "no-shift" and not text:
        shift = made.section(BASELINE).number("shift")
        return f"The judge has shifted: {written(shift, sign=True)}." if shift["low"] > 0 or shift["high"] < 0 else None
    try:
        bound = float(text)
    except ValueError:
        raise ConfigError(repr(requirement), where="--require", expected=forms) from None
    if name == "flips":
        flips = made.section(BASELINE).number("flip rate")
        return None if flips["high"] <= bound else f"The flip rate may be above {bound:g}: {written(flips)}."
    if name not in known:
        raise ConfigError(repr(requirement), where="--require", expected=forms)
    what, title = known[name]
    row = made.section(title).number(what)
    return None if row["low"] >= bound else f"{what} is not shown to reach {bound:g}: {written(row)}."
