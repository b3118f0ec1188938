"""The audit sections on which systems a judge favours, and on its other biases."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from comperdial.auditing.agreement import rounded
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

SYSTEMS, BIAS = "Systems", "Bias"
Ends = tuple[float, float, float]
# Maker of a model, by the prefix of its name.
_FAMILIES = {
    "OpenAI": "gpt|chatgpt|o1|o3|o4|davinci|openai", "Anthropic": "claude", "Google": "gemini|gemma|palm|bard",
    "Meta": "llama|vicuna|alpaca", "Mistral": "mistral|mixtral", "Alibaba": "qwen", "DeepSeek": "deepseek",
}  # fmt: skip


def _side(ends: tuple[float, float, float], codes: Integers, there: Flags, tests: int) -> int:
    """Return the sign of a difference that is significant after Bonferroni correction for ``tests``; otherwise 0."""
    value, low, _ = ends
    freedom = len(np.unique(codes[there])) - 1
    reach = (value - low) * stats.t.ppf(1 - 0.025 / tests, freedom) / stats.t.ppf(0.975, freedom)
    return int(value > reach) - int(value < -reach)


def systems(judged: Judged) -> Section:
    """Return which systems the judge favours, and whether it ranks systems as people do."""
    if judged.names is not None:
        return Section(SYSTEMS, reason="labels without an order have no mean")
    if judged.sides is None:
        return Section(SYSTEMS, reason="the file names no two systems")
    if not judged.is_on_scale:
        return Section(SYSTEMS, reason="the judge's scores are not on people's scale (--judge-scale)")
    there, codes, y, f = judged.labelled, judged.cluster_codes, judged.mean, judged.scores
    apart = f - y
    whole = mean_of(apart[there], codes[there])
    groups = [(name, mask & there, np.where(turned, -1.0, 1.0), turned) for name, mask, turned in judged.groups()]
    groups = [group for group in groups if group[1].sum() >= FEWEST_CLUSTERS]
    if len(groups) < 2:
        return Section(SYSTEMS, reason="fewer than two systems have three labels")
    rows: list[Row] = []
    lines: list[tuple[Any, ...]] = []
    favoured: dict[int, list[tuple[str, Ends, Ends]]] = {1: [], -1: []}
    for name, kept, sign, turned in groups:
        own = mean_of((apart * sign)[kept], codes[kept])
        rows.append((f"offset of {name}", *own, int(kept.sum())))
        # In pairs, one system's gain is another's loss; for responses, compare each system with the others.
        beside = own if judged.of_pairs else difference_of(apart, kept, there & ~kept, codes)
        rows += [] if judged.of_pairs else [(f"offset of {name} beside the others", *beside, int(kept.sum()))]
        if side := _side(beside, codes, there, len(groups)):
            favoured[side].append((name, beside, own))
        people, judge = (np.where(turned, 1 - values, values)[kept].mean() for values in (y, f))
        lines.append((name, people, judge, own))
    sentences = []
    if not judged.of_pairs:
        rows.append(("offset over all systems", *whole, int(there.sum())))
        sentences.append(f"Judge minus people, over all: {written(whole, sign=True)}.")
    measure = "win rate" if judged.of_pairs else "offset beside the others"
    for side, words in ((1, "It favours"), (-1, "It is hard on")):
        if some := sorted(favoured[side], key=lambda one: -abs(one[1][0])):
            names = [f"{name} {written(ends, sign=True)}" for name, ends, _ in some]
            if not judged.of_pairs:
                names = [f"{text} (by itself {own[0]:+.2f})" for text, (_, _, own) in zip(names, some, strict=True)]
            sentences.append(f"{words} {listed(names)} ({measure}).")
    if not any(favoured.values()):
        sentences.append(
            f"It neither favours nor penalises any system significantly ({measure}, corrected for {len(groups)} systems)."
        )
    pairs = list(combinations(lines, 2))
    swapped = [f"{a[0]} and {b[0]}" for a, b in pairs if (a[1] - b[1]) * (a[2] - b[2]) < 0]
    if len(lines) >= 3:
        rows.append(("pairs of systems in people's order", len(pairs) - len(swapped), np.nan, np.nan, len(pairs)))
        others = f"; the other way round: {listed(swapped)}" if swapped else ""
        sentences.append(
            f"It orders {len(pairs) - len(swapped)} of {len(pairs)} pairs of systems as people do{others}."
        )
    frame = pd.DataFrame(
        [[name, f"{people:.2f}", f"{judge:.2f}", written(own, sign=True)] for name, people, judge, own in lines],
        columns=["System", "people", "judge", "judge − people"],
    )
    return Section(SYSTEMS, sentences, tidy(rows), frames={"Systems on the labelled items": frame})


def bias(judged: Judged) -> Section:
    """Return the judge's other biases: length, position, unused labels, its own model family, drift."""
    there, codes = judged.labelled, judged.cluster_codes[judged.labelled]
    if judged.names is not None:
        return _shares_of_labels(judged, judged.names)
    x, y = judged.scores[there], judged.mean[there]
    apart = x - y
    rows: list[Row] = []
    sentences, lacking = [], []
    if judged.lengths is None:
        lacking.append("no texts, whose length could matter")
    else:
        of_length, sentence = _length(judged, judged.lengths.to_numpy(np.float64)[there], x, y, codes)
        rows += of_length
        sentences += [sentence] if judged.is_on_scale else []
    if judged.of_pairs:
        shares = [("judge", mean_of(x, codes)), ("people", mean_of(y, codes))]
        difference = mean_of(apart, codes)
        rows += [(f"share for the first, {who}", *ends, len(x)) for who, ends in shares]
        rows.append(("share for the first, judge − people", *difference, len(x)))
        clear = difference[1] > 0 or difference[2] < 0
        sentences.append(
            f"Position: it prefers the first in {shares[0][1][0]:.2f}, people in {shares[1][1][0]:.2f}; difference "
            f"{written(difference, sign=True)}{'' if clear else ', not clear'}."
        )
        both = _both_orders(judged)
        if len(both):
            rows.append(("same answer in both orders", float(both.mean()), np.nan, np.nan, len(both)))
            sentences.append(f"Shown in both orders, {len(both)} pairs get the same answer in {both.mean():.2f}.")
        else:
            lacking.append("no pair in both orders")
    elif (categories := judged.categories) is not None and judged.is_on_scale:
        used = np.unique(rounded(judged, categories)[there])
        unused = [
            f"{value:g}" for place, value in enumerate(categories) if place not in used and (np.round(y) == value).any()
        ]
        spread = float(np.std(x) / np.std(y)) if np.std(y) > 0 else np.nan
        rows.append(("standard deviation, judge over people's mean", spread, np.nan, np.nan, len(x)))
        never = f"It never says {listed(unused)}, which people do; its" if unused else "Its"
        sentences.append(f"{never} labels spread {spread:.2f} times as much as people's means.")
    for made in (_family(judged), _drift(judged)):
        if isinstance(made, str):
            lacking.append(made)
        else:
            rows += made[1]
            sentences.append(made[0])
    return Section(BIAS, [*sentences, *([f"Not checked: {'; '.join(lacking)}."] if lacking else [])], tidy(rows))


def _shares_of_labels(judged: Judged, names: Mapping[float, str]) -> Section:
    """Return which labels the judge gives more or less often than people do."""
    there = judged.labelled
    codes, people = judged.cluster_codes[there], judged.people.to_numpy(np.float64)[there]
    given = (~np.isnan(people)).sum(axis=1)
    rows: list[Row] = []
    sides: dict[int, list[str]] = {1: [], -1: []}
    for value, name in names.items():
        judge = (judged.scores[there] == value).astype(np.float64)
        ends = mean_of(judge - (people == value).sum(axis=1) / given, codes)
        rows.append((f"share of {name}, judge − people", *ends, len(judge)))
        if side := _side(ends, codes, np.ones(len(codes), dtype=np.bool_), len(names)):
            sides[side].append(f"{name} {written(ends, sign=True)}")
    words = {1: "It says more often than people", -1: "It says less often"}
    sentences = [f"{words[side]}: {listed(some)}." for side, some in sides.items() if some]
    return Section(
        BIAS, sentences or ["It gives no label significantly more or less often than people do."], tidy(rows)
    )


def _length(judged: Judged, length: Floats, x: Floats, y: Floats, codes: Integers) -> tuple[list[Row], str]:
    """Correlate judge, people and their difference with length; for pairs, also count wins of the longer answer."""
    ends = [correlation_of(length, values, codes) for values in (x - y, x, y)]
    rows: list[Row] = [
        (f"correlation of length with {what}", *row, len(x))
        for what, row in zip(("judge − people", "the judge", "people"), ends, strict=True)
    ]
    how = "no clear difference"
    if ends[0][1] > 0 or ends[0][2] < 0:
        how = f"it likes them {'more' if ends[0][0] > 0 else 'less'} than people do"
    size = f"correlation of judge − people with length {written(ends[0])}; people's own {written(ends[2])}"
    if not judged.of_pairs:
        return rows, f"Longer {judged.noun}: {how} ({size})."
    unequal = length != 0
    wins = [mean_of(np.where(length > 0, values, 1 - values)[unequal], codes[unequal]) for values in (x, y)]
    rows += [
        (f"win rate of the longer, {who}", *row, int(unequal.sum()))
        for who, row in zip(("judge", "people"), wins, strict=True)
    ]
    return rows, f"Longer answers: {how} ({size}); they win in {wins[0][0]:.2f}, with people in {wins[1][0]:.2f}."


def _both_orders(judged: Judged) -> Flags:
    """Return, for each pair judged in both orders, whether the judge chose the same answer."""
    sides = pd.DataFrame(judged.sides).astype(str).to_numpy()
    frame = pd.DataFrame(
        {"cluster": judged.cluster_codes, "one": sides.min(axis=1) if len(sides) else [], "two": sides.max(axis=1)}
    )
    frame = frame.assign(turned=sides[:, 0] != frame["one"].to_numpy(), value=judged.scores).dropna()
    frame["value"] = np.where(frame["turned"], 1 - frame["value"], frame["value"])
    by = frame.groupby(["cluster", "one", "two"]).agg(
        n=("value", "size"), orders=("turned", "nunique"), kinds=("value", "nunique")
    )
    by = by[(by["orders"] == 2) & (by["n"] == 2)]
    return (by["kinds"] == 1).to_numpy()


def _maker(name: str) -> str:
    return next((maker for maker, names in _FAMILIES.items() if re.match(rf"(?:{names})(?![a-z])", name.lower())), "")


def _family(judged: Judged) -> tuple[str, list[Row]] | str:
    """Report whether a judge favours systems by its own maker."""
    maker = _maker(judged.judge_name)
    if judged.sides is None or not maker:
        return "the judge's maker or the systems are not known"
    if not judged.is_on_scale:
        return "the judge's maker, since its scores are not on people's scale"
    sides = judged.sides.astype(str).map(lambda name: _maker(name) == maker).to_numpy()
    own = sides[:, 0] if not judged.of_pairs else sides[:, 0] ^ sides[:, 1]
    there = judged.labelled
    if own[there].sum() < FEWEST or (not judged.of_pairs and (~own)[there].sum() < FEWEST):
        return f"no system of {maker}, the judge's maker, beside others"
    apart, codes = judged.scores - judged.mean, judged.cluster_codes
    if judged.of_pairs:
        kept = there & own
        ends = mean_of((apart * np.where(sides[:, 0], 1, -1))[kept], codes[kept])
    else:
        ends = difference_of(apart, own & there, ~own & there, codes)
    clear = "favours them" if ends[1] > 0 else "is harder on them" if ends[2] < 0 else "no clear difference"
    text = f"Systems of {maker}, the judge's maker: {clear} (offset beside the others' {written(ends, sign=True)})."
    return text, [("offset of the judge's own family", *ends, int(own[there].sum()))]


def _drift(judged: Judged) -> tuple[str, list[Row]] | str:
    """Report whether the judge changes over time or between versions."""
    if judged.time is None:
        return "no column of times or versions"
    if not judged.is_on_scale:
        return "drift, since the judge's scores are not on people's scale"
    there, codes = judged.labelled, judged.cluster_codes
    apart = judged.scores - judged.mean
    if judged.time.dtype.kind == "f":
        when = stats.rankdata(judged.time.to_numpy(np.float64)[there])
        ends = correlation_of(when, apart[there], codes[there])
        how = "rises" if ends[1] > 0 else "falls" if ends[2] < 0 else "no clear change"
        row = ("rank correlation of time with judge − people", *ends, int(there.sum()))
        return f"Over time, judge − people: {how} (correlation {written(ends)}).", [row]
    names = judged.time.astype(str).to_numpy()
    rows: list[Row] = []
    for name in dict.fromkeys(names[there]):
        kept = there & (names == name)
        rows.append((f"offset in {name}", *mean_of(apart[kept], codes[kept]), int(kept.sum())))
    return f"Judge − people by version: {listed([f'{row[0][10:]} {written(row, sign=True)}' for row in rows])}.", rows
