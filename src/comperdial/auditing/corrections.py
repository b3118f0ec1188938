"""The audit sections that estimate human means of all judged items, and how many more labels are needed."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from comperdial.auditing.judged import FEWEST, Judged
from comperdial.auditing.numbers import (
    FEWEST_CLUSTERS,
    Flags,
    Floats,
    Integers,
    Row,
    Section,
    correlation_of,
    difference_of,
    listed,
    mean_of,
    tidy,
    written,
)
from comperdial.stats.corrected_means import (
    Estimate,
    classical,
    corrected_difference,
    corrected_mean,
    labels_needed,
    rogan_gladen,
)

CORRECTED, LABELS = "Corrected numbers", "How many labels more"
_MOST_LINES = 12


def _filled(judged: Judged) -> Floats:
    """Return the judge's labels, with one code for missing ones; dropping items would change the mean's population."""
    code = 0.5 if judged.of_pairs else np.nanmean(judged.scores)
    return np.where(np.isnan(judged.scores), code, judged.scores)


def _parts(judged: Judged, kept: Flags, turned: Flags) -> tuple[Any, ...]:
    """Return the arguments of :func:`corrected_mean` for selected items, with the labels in ``turned`` reversed."""
    y, f = (np.where(turned, 1 - values, values) for values in (judged.mean, _filled(judged)))
    own, rest = kept & ~np.isnan(y), kept & np.isnan(y)
    codes = judged.cluster_codes
    return y[own], f[own], f[rest], codes[own], codes[rest]


def _means(parts: tuple[Any, ...]) -> dict[str, Estimate]:
    """Return the mean of one group of items from the labels only, from the judge only, and from both."""
    y, f, rest, own, outer = parts
    codes = np.concatenate([own, outer])
    clustered = len(np.unique(codes)) < len(codes) and len(np.unique(own)) >= FEWEST_CLUSTERS
    groups = (own, outer) if clustered else (None, None)
    judge = mean_of(np.concatenate([f, rest]), codes)
    made = {
        "labels alone": classical(y, groups[0]),
        "judge alone": Estimate(judge[0], np.nan, judge[1], judge[2]),
        "corrected": corrected_mean(y, f, rest, *groups),
    }
    if {*np.unique(y)} == {0.0, 1.0} == {*np.unique(np.concatenate([f, rest]))} and (rogan := rogan_gladen(y, f, rest)):
        made["Rogan-Gladen"] = rogan
    return made


def corrected(judged: Judged) -> Section:
    """Estimate the human means or win rates: from labels only, from the judge only, and from both."""
    if judged.names is not None:
        return Section(CORRECTED, reason="labels without an order have no mean")
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
        cells = [written((one.value, one.low, one.high)) for one in (both, alone, made["judge alone"])]
        lines.append(
            f"{name}: {cells[0]} (labels alone {cells[1]}, judge alone {made['judge alone'].value:.2f}{narrower})"
        )
        frame.append([name, *cells, len(part[0]), len(part[2])])
    if not lines:
        return Section(CORRECTED, reason=f"fewer than {FEWEST} labels of each system")
    what = "win rate" if judged.of_pairs else "mean"
    sentences = [
        f"The {what} that people would give to all that was judged (width: of the interval, beside that of labels alone)."
    ]
    sentences += [f"Fewer than {FEWEST} labels: {listed(few)}."] * bool(few)
    rows_of_pairs, text = differences(
        judged, {name: part for name, part in parts.items() if name not in few and name != "all"}
    )
    if text:
        rows += rows_of_pairs
        sentences.append(text)
    sentences.append(_randomness(judged))
    if lost := int(np.isnan(judged.scores).sum()):
        code = "a tie" if judged.of_pairs else "its mean"
        sentences.append(
            f"{lost} {judged.noun} have no label of the judge: each counts as {code}, since dropping them would bias the rest."
        )
    columns = ["", "corrected", "labels alone", "judge alone", "labelled", "others"]
    shown = [*lines[:_MOST_LINES], *[f"… and {len(lines) - _MOST_LINES} more systems"] * (len(lines) > _MOST_LINES)]
    frames = {"With 95 % intervals": pd.DataFrame(frame, columns=columns)}
    return Section(CORRECTED, sentences, tidy(rows), lines=shown, frames=frames)


def differences(judged: Judged, parts: Mapping[str, tuple[Any, ...]]) -> tuple[list[Row], str]:
    """Return the difference between each pair of systems, or the win rates, and a summary."""
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
                apart = corrected_difference(own, outer, weight=weight)
                rows.append(
                    (f"{one} − {other}: {how}", apart.value, apart.low, apart.high, min(len(own[0]), len(outer[0])))
                )
                shown[how] += apart.low > 0 or apart.high < 0
        count, what = len(rows) // 2, "has the higher mean"
    if not count:
        return [], ""
    alone = f"labels alone: {shown['labels alone']}"
    return rows, f"In {shown['corrected']} of {count} pairs of systems one {what}, by an interval of its own ({alone})."


def _randomness(judged: Judged) -> str:
    """Describe what the correction assumes, and whether labelled and other items get similar judge scores."""
    labelled, f = ~np.isnan(judged.mean), _filled(judged)
    codes = judged.cluster_codes
    text = "This holds if the labelled are a random sample of what was judged"
    ends = difference_of(f, labelled, ~labelled, codes)
    if ends[1] > 0 or ends[2] < 0:
        return f"{text}, which they do not seem to be: the judge gives them {written(ends, sign=True)} compared with the others."
    first = np.flatnonzero(labelled)
    if len(first) and first[-1] == len(first) - 1 and len(first) < len(labelled):
        return f"{text}; they are the first {len(first)} of the file, so make sure that its order is random."
    return f"{text}."


def more_labels(judged: Judged, half_width: float | None) -> Section:
    """Return how many labels an interval of a given half-width needs; default: half the current width."""
    if judged.names is not None:
        return Section(LABELS, reason="labels without an order have no mean")
    there, total = judged.labelled, int((~np.isnan(judged.scores)).sum())
    y, f = judged.mean[there], judged.scores[there]
    given = int((~np.isnan(judged.mean)).sum())
    if total <= len(y):
        return Section(LABELS, reason="everything that was judged is labelled")
    if not np.std(y) > 0:
        return Section(LABELS, reason="people gave all the same label")
    codes = judged.cluster_codes[there]
    _, low, high = correlation_of(f, y, codes)
    correlation = abs(float(np.corrcoef(y, f)[0, 1]))
    ends = sorted(np.clip([abs(low), abs(high)] if low * high > 0 else [0.0, max(abs(low), abs(high))], 0, 1))
    effect = max(_design_effect(y - np.polyval(np.polyfit(f, y, 1), f), codes), 1.0)
    everything = np.ones(len(judged.people), dtype=np.bool_)
    now = _means(_parts(judged, everything, np.zeros_like(everything)))["corrected"]
    half = half_width or now.width / 4
    spread = float(np.std(y, ddof=1))
    needed = [
        labels_needed(half, spread, float(one), total, design_effect=effect) for one in (correlation, ends[1], ends[0])
    ]
    alone = effect * (stats.norm.ppf(0.975) * spread / half) ** 2
    rows: list[Row] = [
        (f"labels for a half width of {half:.3g}", needed[0], needed[1], needed[2], len(y)),
        ("the same without a judge", alone, np.nan, np.nan, len(y)),
    ]
    what = "an interval" if half_width else "half the interval"
    goal = f"For {what} of the mean over all (±{half:.2g})"
    if not np.isfinite(needed[0]):
        sentences = [f"{goal}, the {total:,} {judged.noun} do not suffice: labels of new ones are needed."]
    else:
        to = f"{int(np.ceil(needed[2])):,}" if np.isfinite(needed[2]) else "more than there are"
        between = f"{int(np.ceil(needed[1])):,} to {to}, by how sure the correlation is"
        sentences = [f"{goal}: about {int(np.ceil(needed[0])):,} labels in all ({between}); there are {given:,}."]
    sentences.append(f"Without the judge it would take {int(np.ceil(alone)):,}.")
    if effect > 1.05:
        sentences.append(f"Clusters are counted: they widen the variance {effect:.2f} times.")
    sentences.append("Which ones: --next FILE draws them at random within each system.")
    return Section(LABELS, sentences, tidy(rows), frames=_furthest(judged))


def _furthest(judged: Judged) -> dict[str, pd.DataFrame]:
    """Return the labelled items with the largest disagreement: for reading, not for sampling more labels."""
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
    """Return the design effect of clusters: 1 + (mean size - 1) x intraclass correlation (one-way ANOVA)."""
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
