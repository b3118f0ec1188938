"""The agreement section of an audit: between judge and people, and among people."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from comperdial.auditing.judged import FEWEST, Judged
from comperdial.auditing.numbers import (
    PEARSON,
    Floats,
    Integers,
    Row,
    Section,
    correlation_of,
    over_clusters,
    summed,
    tidy,
    written,
)
from comperdial.stats.agreement import krippendorff_alpha
from comperdial.stats.chance_agreement import category_weights

TITLE = "Agreement"


def _beyond_chance(joint: Floats, weights: Floats, *, gwet: bool) -> Floats:
    """Return weighted kappa, or Gwet's AC, from contingency tables of shape (…, categories squared)."""
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


def rounded(judged: Judged, categories: Floats) -> Integers:
    """Return the category index of the judge's labels, rounded half up; -1 if missing."""
    step = categories[1] - categories[0]
    places = np.clip(np.floor((judged.scores - categories[0]) / step + 0.5), 0, len(categories) - 1)
    return np.where(np.isnan(places), -1, places).astype(np.intp)


def _counts(judged: Judged, categories: Floats) -> tuple[Floats, Floats]:
    """Count each label per item, for people and for the judge: shape (items, categories)."""
    people = np.stack([(judged.people == value).sum(axis=1).to_numpy(np.float64) for value in categories], axis=1)
    places = rounded(judged, categories)
    return people, np.asarray(places[:, np.newaxis] == np.arange(len(categories)), dtype=np.float64)


def agreement(judged: Judged) -> Section:
    """Return how well the judge agrees with people, and people with each other."""
    there, codes = judged.labelled, judged.cluster_codes
    if judged.names is not None:
        made, texts, confusion = _of_categories(judged, np.array(sorted(judged.names)))
        if judged.people.shape[1] > 1:
            alpha = krippendorff_alpha(judged.people.to_numpy(np.float64), "nominal")
            made.append(("Krippendorff's alpha of people (nominal)", alpha, np.nan, np.nan, judged.people.shape[1]))
        return Section(TITLE, texts, tidy(made), frames={"People's labels (rows) and the judge's": confusion})
    x, y = judged.scores[there], judged.mean[there]
    rows: list[Row] = [(PEARSON, *correlation_of(x, y, codes[there]), len(x))]
    rows.append(
        ("Spearman with people's mean", *correlation_of(stats.rankdata(x), stats.rankdata(y), codes[there]), len(x))
    )
    sentences = [
        f"With people's mean of {len(x):,} {judged.noun}: Pearson {written(rows[0])}, Spearman {written(rows[1])}."
    ]
    frames = {}
    own, rest, items = own_and_rest(np.where(there[:, np.newaxis], judged.people.to_numpy(np.float64), np.nan))
    if len(own) >= FEWEST:
        judge = (
            "Pearson of the judge with all raters but one",
            *correlation_of(judged.scores[items], rest, codes[items]),
            len(own),
        )
        rater = ("Pearson of that rater with the same", *correlation_of(own, rest, codes[items]), len(own))
        rows += [judge, rater]
        sentences.append(
            f"With the mean of all raters but one: Pearson {written(judge)}; the one rater {written(rater)}."
        )
    if (categories := judged.categories) is not None and judged.is_on_scale:
        made, texts, confusion = _of_categories(judged, categories)
        rows += made
        sentences += texts
        frames = {"People's labels (rows) and the judge's": confusion}
    if judged.people.shape[1] > 1:
        alpha = krippendorff_alpha(judged.people.to_numpy(np.float64), "interval")
        rows.append(("Krippendorff's alpha of people (interval)", alpha, np.nan, np.nan, judged.people.shape[1]))
    return Section(TITLE, sentences, tidy(rows), frames=frames)


def own_and_rest(people: Floats) -> tuple[Floats, Floats, Integers]:
    """Return each human label, the mean of the other raters' labels of the item, and the item's row.

    ``people`` has shape (items, raters), NaN where a label is missing.
    """
    given = ~np.isnan(people)
    count, total = given.sum(axis=1), np.nansum(people, axis=1)
    items, who = np.nonzero(given & (count >= 2)[:, np.newaxis])
    own = people[items, who]
    return own, (total[items] - own) / (count[items] - 1), items


def _of_categories(judged: Judged, categories: Floats) -> tuple[list[Row], list[str], pd.DataFrame]:
    people, judge = _counts(judged, categories)
    size, codes = len(categories), judged.cluster_codes
    # Count pairs of labels: judge with each rater, and raters with each other on the items the judge labelled.
    raters = people * judge.sum(axis=1, keepdims=True)
    two = np.einsum("ia,ib->iab", raters, people) - np.einsum("ia,ab->iab", raters, np.eye(size))
    joint = {
        "of the judge with a rater": np.einsum("ia,ib->iab", people, judge).reshape(len(people), -1),
        "of two raters": two.reshape(len(people), -1),
    }
    ordered = judged.names is None
    weights = category_weights(size, "quadratic" if ordered else "identity")
    kappas, gwets = ("Weighted kappa", "Gwet's AC2") if ordered else ("Cohen's kappa", "Gwet's AC1")
    rows: list[Row] = []
    for measure, value_of in (
        ("Exact agreement", lambda part: _share(part, np.eye(size))),
        (kappas, lambda part: _beyond_chance(part, weights, gwet=False)),
        (gwets, lambda part: _beyond_chance(part, weights, gwet=True)),
    ):
        for who, table in joint.items():
            if table.any():
                value, low, high = over_clusters(summed(table, codes), value_of)
                least = 0.0 if measure.startswith("Exact") else -1.0
                rows.append((f"{measure} {who}", value, max(low, least), min(high, 1.0), int(table.sum())))
    of = {row[0]: written(row) for row in rows}
    sentences = []
    for who, words in (
        ("of the judge with a rater", "A label of the judge and of a rater"),
        ("of two raters", "Of two raters"),
    ):
        if f"Exact agreement {who}" in of:
            exact, kappa, gwet = (of[f"{name} {who}"] for name in ("Exact agreement", kappas, gwets))
            sort = "quadratic weighted kappa" if ordered else kappas
            sentences.append(f"{words}: equal in {exact}, {sort} {kappa}, {gwets} {gwet}.")
    names = (
        [f"{value:g}" for value in categories] if judged.names is None else [judged.names[one] for one in categories]
    )
    table = joint["of the judge with a rater"].sum(axis=0).reshape(size, size).astype(int)
    return rows, sentences, pd.DataFrame(table, index=pd.Index(names, name="people"), columns=names)


def _share(joint: Floats, weights: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((joint * weights.ravel()).sum(axis=-1) / joint.sum(axis=-1))
