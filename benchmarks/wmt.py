"""What the tool of the WMT metrics tasks computes, in plain loops: an oracle for tests, and its input format.

python benchmarks/wmt.py export usr_persona --output DIR   # our tables in the form that mt-metrics-eval reads (its version 2)
python benchmarks/wmt.py check usr_persona usr_topical     # ours beside the loops: the largest difference of each measure

The reference is google-research/mt-metrics-eval, release V2 as of 2024-2025, whose README describes the files. The package
of that name in the registry is another one, so its published formulas are written down here once more, as plainly as
possible: no arrays, no shortcuts. A gold score of None is missing.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from comperdial.stats.design import Design
from comperdial.stats.pairs import replicates, sign_flips
from comperdial.stats.swaps import swapped_differences

ROOT = Path(__file__).resolve().parents[1]
# mt-metrics-eval has languages where we have none: a data set is one "pair" of them.
PAIR = "en-en"
AGREED = 1e-9

Gold = Sequence["float | None"]
Scores = Sequence[float]
Rows = list[list[Any]]
Measure = Callable[[Sequence[float], Sequence[float]], float]
NAN = float("nan")


# Groups: scores are grouped by system, all items of the first, then all of the second


def groups(gold: Gold, metric: Scores, systems: int, by: str) -> Iterator[tuple[list[float], list[float]]]:
    """Yield gold and metric scores of each group, without those whose gold score is missing.

    ``by``: ``none`` is one group of all, ``sys`` one a system, ``item`` one an item.
    """
    items = len(gold) // systems
    if by == "none":
        places = [list(range(len(gold)))]
    elif by == "sys":
        places = [[s * items + i for i in range(items)] for s in range(systems)]
    elif by == "item":
        places = [[s * items + i for s in range(systems)] for i in range(items)]
    else:
        raise ValueError(by)
    for group in places:
        kept = [place for place in group if gold[place] is not None]
        yield [float(gold[place]) for place in kept], [float(metric[place]) for place in kept]  # type: ignore[arg-type]


def average(measure: Measure, gold: Gold, metric: Scores, systems: int, by: str) -> float:
    """Return the mean of a measure over the groups of two or more that have a value; 0 where none has."""
    values = [measure(g, m) for g, m in groups(gold, metric, systems, by) if len(g) > 1]
    values = [value for value in values if not math.isnan(value)]
    return sum(values) / len(values) if values else 0.0


# Pairs of units


def counts(gold: Scores, metric: Scores, epsilon: float = 0.0) -> dict[str, int]:
    """Count pairs that are ordered alike, the other way round, and tied on one side or both.

    Metric scores that differ by epsilon or less are tied.
    """
    result = {"con": 0, "dis": 0, "tie_metric": 0, "tie_gold": 0, "tie_both": 0}
    for i, j in combinations(range(len(gold)), 2):
        of_gold, of_metric = gold[i] - gold[j], metric[i] - metric[j]
        gold_tied, metric_tied = of_gold == 0, abs(of_metric) <= epsilon
        if gold_tied and metric_tied:
            result["tie_both"] += 1
        elif gold_tied:
            result["tie_gold"] += 1
        elif metric_tied:
            result["tie_metric"] += 1
        elif (of_gold > 0) == (of_metric > 0):
            result["con"] += 1
        else:
            result["dis"] += 1
    return result


def tau_b(gold: Scores, metric: Scores) -> float:
    """Return Kendall's tau-b: concordant less discordant, over the root of the pairs untied on either side."""
    n = counts(gold, metric)
    total = sum(n.values())
    metric_untied = total - n["tie_metric"] - n["tie_both"]
    gold_untied = total - n["tie_gold"] - n["tie_both"]
    return (n["con"] - n["dis"]) / math.sqrt(metric_untied * gold_untied) if metric_untied and gold_untied else NAN


def tau_c(gold: Scores, metric: Scores) -> float:
    """Return Stuart's tau-c, with the smaller number of distinct values as m."""
    n, m = counts(gold, metric), min(len(set(gold)), len(set(metric)))
    return 2 * (n["con"] - n["dis"]) / (len(gold) ** 2 * (m - 1) / m) if m > 1 else NAN


def tau_23(gold: Scores, metric: Scores, epsilon: float = 0.0) -> float:
    """Return the share of pairs that are right less the share that are wrong, right and wrong ties among them."""
    n = counts(gold, metric, epsilon)
    right = n["con"] + n["tie_both"]
    return (right - (n["dis"] + n["tie_metric"] + n["tie_gold"])) / sum(n.values())


def acc_23(gold: Scores, metric: Scores, epsilon: float = 0.0) -> float:
    """Return the share of pairs that are right: ordered alike, or tied on both sides."""
    n = counts(gold, metric, epsilon)
    return (n["con"] + n["tie_both"]) / sum(n.values())


def agreement(gold: Gold, metric: Scores) -> tuple[int, int]:
    """Return how many pairs have differences of one sign, and how many pairs there are."""
    agree = pairs = 0
    for i, j in combinations(range(len(gold)), 2):
        one, other = gold[i], gold[j]
        if one is None or other is None:
            continue
        pairs += 1
        agree += _sign(one - other) == _sign(metric[i] - metric[j])
    return agree, pairs


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def pooled_accuracy(sets: Sequence[tuple[Gold, Scores]]) -> float:
    """Return the accuracy over pairs of systems of one set each, all sets' pairs counting alike."""
    result = [agreement(gold, metric) for gold, metric in sets]
    return sum(agree for agree, _ in result) / sum(pairs for _, pairs in result)


def best_epsilon(
    gold: Gold, metric: Scores, systems: int, by: str, measure: Callable[[Scores, Scores, float], float] = acc_23
) -> tuple[float, float]:
    """Return the highest average over groups that one epsilon reaches, and the smallest epsilon that reaches it."""
    parts = [part for part in groups(gold, metric, systems, by) if len(part[0]) > 1]
    tried = {0.0} | {abs(m[i] - m[j]) for _, m in parts for i, j in combinations(range(len(m)), 2)}
    best, chosen = -math.inf, 0.0
    for epsilon in sorted(tried):
        value = sum(measure(g, m, epsilon) for g, m in parts) / len(parts)
        if value > best + 1e-12:
            best, chosen = value, epsilon
    return best, chosen


# Correlation coefficients


def pearson(gold: Scores, metric: Scores) -> float:
    """Return Pearson's r."""
    n = len(gold)
    mean_gold, mean_metric = math.fsum(gold) / n, math.fsum(metric) / n
    across = math.fsum((g - mean_gold) * (m - mean_metric) for g, m in zip(gold, metric, strict=True))
    spread = math.fsum((g - mean_gold) ** 2 for g in gold) * math.fsum((m - mean_metric) ** 2 for m in metric)
    constant = len(set(gold)) == 1 or len(set(metric)) == 1
    return NAN if constant else across / math.sqrt(spread)


def spearman(gold: Scores, metric: Scores) -> float:
    """Return Pearson's r of the ranks, tied values having the mean of theirs."""
    return pearson(_ranks(gold), _ranks(metric))


def _ranks(values: Scores) -> list[float]:
    return [sum(o < v for o in values) + (sum(o == v for o in values) + 1) / 2 for v in values]


def pairwise_pearson(gold: Scores, metric: Scores) -> float:
    """Return Pearson's r of all differences, each pair both ways round, about 0."""
    pairs = [(gold[i] - gold[j], metric[i] - metric[j]) for i in range(len(gold)) for j in range(len(gold)) if i != j]
    across = math.fsum(g * m for g, m in pairs)
    spread = math.fsum(g * g for g, _ in pairs) * math.fsum(m * m for _, m in pairs)
    return across / math.sqrt(spread) if spread else NAN


# Tests: shares of random swaps, without the observed one


def z_scored(scores: Scores) -> list[float]:
    """Return scores with mean 0 and (population) standard deviation 1."""
    mean = math.fsum(scores) / len(scores)
    spread = math.sqrt(math.fsum((score - mean) ** 2 for score in scores) / len(scores))
    return [(score - mean) / spread for score in scores]


def perm_both(
    measure: Measure, gold: Gold, better: Scores, other: Scores, systems: int, by: str, draws: int, rng: random.Random
) -> tuple[float, list[tuple[float, float]]]:
    """Return the one-sided p of "the first metric correlates better", and both values after each draw.

    The scores of each metric are standardised over all units with a gold score; each draw swaps each unit with
    probability 1/2.
    """
    kept = [place for place, value in enumerate(gold) if value is not None]
    one, two = list(map(float, better)), list(map(float, other))
    for scores in (one, two):
        for place, value in zip(kept, z_scored([scores[place] for place in kept]), strict=True):
            scores[place] = value
    observed = average(measure, gold, one, systems, by) - average(measure, gold, two, systems, by)
    drawn = []
    for _ in range(draws):
        a, b = list(one), list(two)
        for place in kept:
            if rng.random() < 0.5:
                a[place], b[place] = b[place], a[place]
        drawn.append((average(measure, gold, a, systems, by), average(measure, gold, b, systems, by)))
    return sum(a - b >= observed for a, b in drawn) / draws, drawn


def exchanged(one: Rows, two: Rows, rng: random.Random) -> list[Rows]:
    """Return both with each place exchanged with probability 1/2."""
    a, b = [list(row) for row in one], [list(row) for row in two]
    for x, y in zip(a, b, strict=True):
        for place in range(len(x)):
            if rng.random() < 0.5:
                x[place], y[place] = y[place], x[place]
    return [a, b]


def perm_pairs(
    gold: Gold, better: Scores, other: Scores, systems: int, by: str, draws: int, rng: random.Random
) -> tuple[float, float]:
    """Return the difference of the calibrated accuracies, and the p of a test that swaps results of pairs.

    Each metric keeps its own epsilon; a draw swaps, with probability 1/2, what the two metrics said of a pair.
    """
    results = []
    for scores in (better, other):
        epsilon = best_epsilon(gold, scores, systems, by)[1]
        parts = [part for part in groups(gold, scores, systems, by) if len(part[0]) > 1]
        results.append([_right(g, m, epsilon) for g, m in parts])
    one, two = results

    def mean(part: list[list[int]]) -> float:
        return sum(sum(right) / len(right) for right in part) / len(part)

    observed = mean(one) - mean(two)
    extreme = 0
    for _ in range(draws):
        a, b = exchanged(one, two, rng)
        extreme += mean(a) - mean(b) >= observed
    return observed, extreme / draws


def _right(gold: Scores, metric: Scores, epsilon: float) -> list[int]:
    result = []
    for i, j in combinations(range(len(gold)), 2):
        apart = metric[i] - metric[j]
        result.append(int(_sign(gold[i] - gold[j]) == (0 if abs(apart) <= epsilon else _sign(apart))))
    return result


# Soft pairwise accuracy


def better_p(one: Scores, other: Scores, signs: Sequence[Sequence[float]]) -> float:
    """Return the share of sign flips whose sum of differences reaches the sum observed."""
    apart = [a - b for a, b in zip(one, other, strict=True)]
    observed = sum(apart)
    slack = 1e-11 * sum(map(abs, apart))
    return sum(sum(s * d for s, d in zip(flip, apart, strict=True)) >= observed - slack for flip in signs) / len(signs)


def spa(gold: Sequence[Scores], metric: Sequence[Scores], signs: Sequence[Sequence[float]]) -> float:
    """Return 1 less the mean distance of people's p and the metric's, over pairs of systems (rows of scores by item)."""
    pairs = list(combinations(range(len(gold)), 2))
    apart = [abs(better_p(gold[i], gold[j], signs) - better_p(metric[i], metric[j], signs)) for i, j in pairs]
    return 1 - sum(apart) / len(pairs)


def spa_test(
    gold: Sequence[Scores],
    better: Sequence[Scores],
    other: Sequence[Scores],
    signs: Sequence[Sequence[float]],
    draws: int,
    rng: random.Random,
) -> tuple[float, float]:
    """Return the difference of two soft accuracies, and the p of a test that swaps the metrics' standardised scores."""
    one, two = ([*map(list, _rows(z_scored(_flat(rows)), len(rows)))] for rows in (better, other))
    observed = spa(gold, one, signs) - spa(gold, two, signs)
    extreme = 0
    for _ in range(draws):
        a, b = exchanged(one, two, rng)
        extreme += spa(gold, a, signs) - spa(gold, b, signs) >= observed
    return observed, extreme / draws


def _flat(rows: Sequence[Scores]) -> list[float]:
    return [value for row in rows for value in row]


def _rows(values: Scores, count: int) -> list[Scores]:
    width = len(values) // count
    return [values[start : start + width] for start in range(0, len(values), width)]


# Ranks, and averages over tasks


def assign_ranks(p: Sequence[Sequence[float]], alpha: float = 0.05) -> list[int]:
    """Return ranks of metrics sorted by value: a cluster ends before the first that one of its members beats.

    ``p[i][j]``, i < j, is the p of "i is better than j".
    """
    ranks, rank, first = [], 1, 0
    for metric in range(len(p)):
        if any(p[member][metric] <= alpha for member in range(first, metric)):
            rank, first = rank + 1, metric
        ranks.append(rank)
    return ranks


def assign_weights(tasks: Sequence[Mapping[str, str]], attributes: Sequence[str], total: float = 1.0) -> list[float]:
    """Return the weight of each task: shared evenly by the values of the first attribute, and so on within each."""
    if not attributes:
        return [total / len(tasks)] * len(tasks)
    values = list(dict.fromkeys(task[attributes[0]] for task in tasks))
    weights = [0.0] * len(tasks)
    for value in values:
        places = [place for place, task in enumerate(tasks) if task[attributes[0]] == value]
        part = assign_weights([tasks[place] for place in places], attributes[1:], total / len(values))
        for place, weight in zip(places, part, strict=True):
            weights[place] = weight
    return weights


def average_values(
    values: Sequence[Mapping[str, float]], accuracies: Sequence[bool], weights: Sequence[float]
) -> dict[str, float]:
    """Return the weighted mean of each metric that all tasks have, correlations being mapped to 0 to 1; best first."""
    shared = [metric for metric in values[0] if all(metric in task for task in values)]
    result = {
        metric: sum(
            weight * (task[metric] if accuracy else (task[metric] + 1) / 2)
            for task, accuracy, weight in zip(values, accuracies, weights, strict=True)
        )
        for metric in shared
    }
    return dict(sorted(result.items(), key=lambda entry: -entry[1]))


def average_p(
    observed: float,
    draws: Sequence[Sequence[tuple[float, float]]],
    accuracies: Sequence[bool],
    weights: Sequence[float],
) -> float:
    """Return the p of a difference of averages from the draws of each task's test, shorter lists of them repeated."""
    longest = max(len(task) for task in draws)
    extreme = 0
    for draw in range(longest):
        null = 0.0
        for task, accuracy, weight in zip(draws, accuracies, weights, strict=True):
            one, other = task[draw % len(task)]
            null += weight * (one - other) * (1 if accuracy else 0.5)
        extreme += null >= observed
    return extreme / longest


# Our tables in the tool's form


def read(dataset: str, tables: Path) -> dict[str, pd.DataFrame]:
    """Return a data set's tables."""
    folder = tables / dataset
    names = ("systems", "contexts", "responses", "ratings")
    return {name: pd.read_parquet(folder / f"{name}.parquet") for name in names}


def export(dataset: str, output: Path, *, tables: Path, scores: Path) -> list[str]:
    """Write a data set as one test set; return what could not be written, a line each.

    Items are contexts, in the order of their dialogues, and a dialogue is a document. A response, a rating or a score
    is missing where a system did not answer a context: an empty line, or None. The tool takes no missing score of a
    metric, so such metrics are left out.
    """
    result, left_out = read(dataset, tables), []
    kinds = result["systems"].set_index("system_id")["kind"]
    contexts = result["contexts"].sort_values(["dialogue_id", "turn", "context_id"], kind="stable")
    responses = result["responses"].set_index(["context_id", "system_id"])["response"]
    agents = [system for system in kinds.index if kinds[system] != "reference"]
    names = dict(zip(kinds.index, _names(kinds.index), strict=True))
    items = contexts["context_id"].tolist()
    last = [_line(history[-1]["text"]) if len(history) else "" for history in contexts["history"]]
    _write(output / dataset / "sources" / f"{PAIR}.txt", last)
    documents = [f"{dataset} {_name(dialogue)}" for dialogue in contexts["dialogue_id"]]
    _write(output / dataset / "documents" / f"{PAIR}.docs", documents)
    references = [_line(texts[0]) if len(texts) else "" for texts in contexts["references"]]
    _write(output / dataset / "references" / f"{PAIR}.ref.txt", references)
    for system in agents:
        texts = [_line(responses.get((item, system), "")) for item in items]
        _write(output / dataset / "system-outputs" / PAIR / f"{names[system]}.txt", texts)
    ratings = result["ratings"]
    ratings = ratings[(ratings["level"] == "turn") & (ratings["source"] == "human")]
    for dimension, group in ratings.groupby("dimension"):
        means = group.groupby(["item_id", "system_id"])["rating"].mean().to_dict()
        _write_scores(output / dataset / "human-scores", f"{PAIR}.{_name(dimension)}", means, agents, names, items)
    for path in sorted((scores / dataset).glob("*.parquet")):
        frame = pd.read_parquet(path)
        frame = frame[frame["level"] == "turn"]
        for (metric, name), group in frame.groupby(["metric", "output"], observed=True):
            given = group.set_index(["item_id", "system_id"])["value"].astype(float).to_dict()
            if lost := sum((item, system) not in given for item in items for system in agents):
                left_out.append(f"{metric}:{name}: {lost} of {len(items) * len(agents)} responses have no score")
                continue
            folder = output / dataset / "metric-scores" / PAIR
            # The tool reads behind the last hyphen which reference was used; src: none that it knows of.
            _write_scores(folder, f"{_name(f'{metric}.{name}')}-src", given, agents, names, items)
    return left_out


def _write(path: Path, lines: Sequence[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _write_scores(
    folder: Path,
    stem: str,
    values: Mapping[tuple[str, str], float],
    systems: Sequence[str],
    names: Mapping[str, str],
    items: Sequence[str],
) -> None:
    """Write the scores of all items by system, and beside them each system's mean."""
    lines, means = [], []
    for system in systems:
        own = [values.get((item, system)) for item in items]
        lines += [f"{names[system]}\t{'None' if value is None else repr(float(value))}" for value in own]
        known = [value for value in own if value is not None]
        means.append(f"{names[system]}\t{repr(math.fsum(known) / len(known)) if known else 'None'}")
    _write(folder / f"{stem}.seg.score", lines)
    _write(folder / f"{stem}.sys.score", means)


def _line(text: str) -> str:
    return " ".join(text.split())


def _name(text: str) -> str:
    """Return a name without the blanks at which the tool splits lines, and without slashes."""
    return re.sub(r"[\s/]+", "_", str(text).strip())


def _names(texts: Sequence[str]) -> list[str]:
    names = [_name(text) for text in texts]
    if len(set(names)) < len(names):
        raise SystemExit(f"two systems would have one name: {', '.join(sorted(names))}")
    return names


# Ours beside the loops


def vectors(
    dataset: str, *, tables: Path, scores: Path, target: str, limit: int
) -> tuple[list[tuple[str, Gold, Scores]], int]:
    """Return metrics that scored everything that was rated, as mt-metrics-eval holds them, and how many systems there are."""
    data = read(dataset, tables)
    kinds, ratings = data["systems"].set_index("system_id")["kind"], data["ratings"]
    of_people = (ratings["level"] == "turn") & (ratings["source"] == "human")
    ratings = ratings[of_people & (ratings["dimension"] == target)]
    ratings = ratings[ratings["system_id"].map(kinds) != "reference"]
    gold_of = ratings.groupby(["item_id", "system_id"])["rating"].mean()
    columns: dict[str, pd.Series] = {}
    for path in sorted((scores / dataset).glob("*.parquet")):
        frame = pd.read_parquet(path)
        for (metric, name), group in frame[frame["level"] == "turn"].groupby(["metric", "output"], observed=True):
            series = group.set_index(["item_id", "system_id"])["value"].astype(float)
            columns[f"{metric}:{name}"] = series.reindex(gold_of.index)
    columns = {name: series for name, series in columns.items() if series.notna().all()}
    chosen = dict(list(columns.items())[:limit])
    if not chosen:
        raise SystemExit(f"{dataset}: no metric has a score of everything that was rated as {target}")
    wide = gold_of.unstack("item_id")
    systems, items = list(wide.index), list(wide.columns)
    cells = pd.MultiIndex.from_product([systems, items], names=["system_id", "item_id"])

    def vector(series: pd.Series) -> list[float | None]:
        values = series.swaplevel().reindex(cells)
        return [None if pd.isna(value) else float(value) for value in values]

    gold = vector(gold_of)
    result = []
    for name, series in chosen.items():
        metric = [0.0 if value is None else value for value in vector(series.rename_axis(gold_of.index.names))]
        result.append((name, gold, metric))
    return result, len(systems)


def compared(
    metrics: Sequence[tuple[str, Gold, Scores]], systems: int, *, resamples: int = 200, seed: int = 2024
) -> list[tuple[str, float, float, float]]:
    """Compare ours with the loops on vectors grouped by system."""
    apart: dict[str, list[float]] = {}
    plain_s: dict[str, float] = {}
    ours_s: dict[str, float] = {}
    for _, _, ours in MEASURES:
        # Imports and first calls count for neither side.
        ours(*metrics[0][1:], systems, resamples, seed)
    for _, gold, metric in metrics:
        for name, plain, ours in MEASURES:
            started = time.process_time()
            expected = plain(gold, metric, systems, resamples, seed)
            middle = time.process_time()
            value = ours(gold, metric, systems, resamples, seed)
            ended = time.process_time()
            same = math.isnan(expected) and math.isnan(value)
            apart.setdefault(name, []).append(0.0 if same else abs(expected - value))
            plain_s[name] = plain_s.get(name, 0.0) + middle - started
            ours_s[name] = ours_s.get(name, 0.0) + ended - middle
    return [(name, max(values), plain_s[name], ours_s[name]) for name, values in apart.items()]


def _arrays(gold: Gold, metric: Scores, systems: int) -> tuple[np.ndarray, ...]:
    """Return scores, ratings, and the system and item of each, as ours are called; a missing rating is NaN."""
    items = len(gold) // systems
    y = np.array([NAN if value is None else value for value in gold], dtype=np.float64)
    return (
        np.array(metric, dtype=np.float64),
        y,
        np.repeat(np.arange(systems), items),
        np.tile(np.arange(items), systems),
    )


def _means(gold: Gold, metric: Scores, systems: int) -> tuple[list[float], list[float]]:
    """Return systems' means over the units with a gold score."""
    sides = ([], [])
    for g, m in groups(gold, metric, systems, "sys"):
        sides[0].append(math.fsum(g) / len(g))
        sides[1].append(math.fsum(m) / len(m))
    return sides


def _ours(measure: str, grouping: str) -> Callable[..., float]:
    def value(gold: Gold, metric: Scores, systems: int, resamples: int, seed: int) -> float:
        x, y, of_system, items = _arrays(gold, metric, systems)
        there = ~np.isnan(y)
        design = Design(of_system[there], np.unique(items[there], return_inverse=True)[1])
        result = replicates(
            x[np.newaxis, there],
            y[there],
            design,
            design.dialogues,
            [measure],
            grouping,
            resamples=resamples,
            seed=seed,
        )[measure]  # type: ignore[arg-type]
        return float(result.values[0])

    return value


def _plain(measure: Measure, by: str) -> Callable[..., float]:
    def value(gold: Gold, metric: Scores, systems: int, _resamples: int, _seed: int) -> float:
        if by == "none":
            return measure(*_means(gold, metric, systems))
        return average(measure, gold, metric, systems, by)

    return value


def _plain_acc_eq(by: str) -> Callable[..., float]:
    def value(gold: Gold, metric: Scores, systems: int, _resamples: int, _seed: int) -> float:
        sides = _means(gold, metric, systems) if by == "none" else (gold, metric)
        return best_epsilon(*sides, systems, by)[0]

    return value


def _plain_accuracy(gold: Gold, metric: Scores, systems: int, _resamples: int, _seed: int) -> float:
    return pooled_accuracy([_means(gold, metric, systems)])


def _plain_spa(gold: Gold, metric: Scores, systems: int, resamples: int, seed: int) -> float:
    if None in gold:
        return NAN
    width = len(gold) // systems
    rows = [[float(value) for value in row] for row in _rows(gold, systems)]  # type: ignore[arg-type]
    return spa(rows, _rows(metric, systems), sign_flips(width, resamples, seed).tolist())


# (Name, plain loop, ours), both taking gold, metric, systems, resamples and seed.
MEASURES: list[tuple[str, Callable[..., float], Callable[..., float]]] = [
    *(
        (f"{name}, average by {grouping}", _plain(plain, by), _ours(measure, grouping))
        for grouping, by in (("item", "item"), ("system", "sys"))
        for name, plain, measure in (
            ("Pearson", pearson, "pearson"),
            ("Spearman", spearman, "spearman"),
            ("tau-b", tau_b, "kendall"),
            ("tau-c", tau_c, "tau_c"),
            ("tau-23", tau_23, "tau_23"),
            ("accuracy with ties", acc_23, "accuracy"),
        )
    ),
    ("acc_eq, average by item", _plain_acc_eq("item"), _ours("acc_eq", "item")),
    ("acc_eq, average by system", _plain_acc_eq("sys"), _ours("acc_eq", "system")),
    ("acc_eq of systems", _plain_acc_eq("none"), _ours("acc_eq", "pooled")),
    ("tau-b of systems", _plain(tau_b, "none"), _ours("kendall", "pooled")),
    ("tau-c of systems", _plain(tau_c, "none"), _ours("tau_c", "pooled")),
    (
        "Pearson of pairwise differences of systems",
        _plain(pairwise_pearson, "none"),
        _ours("pairwise_pearson", "pooled"),
    ),
    ("pairwise accuracy of systems", _plain_accuracy, _ours("accuracy", "pooled")),
    ("soft pairwise accuracy", _plain_spa, _ours("spa", "pooled")),
]


def tests(first: Scores, second: Scores, gold: Gold, systems: int, draws: int) -> Iterator[tuple[str, float, float]]:
    """Yield the name of a test, p by plain loops and ours, of "the first metric is better"."""
    rng, ours_rng = random.Random(1), np.random.default_rng(1)  # noqa: S311
    x, y, of_system, items = _arrays(gold, first, systems)
    other = np.array(second, dtype=np.float64)
    there = ~np.isnan(y)
    design = Design(of_system[there], np.unique(items[there], return_inverse=True)[1])

    def ours(measure: str, grouping: str | None) -> float:
        sides = np.stack([x[there], other[there]])
        if grouping is None:
            values = np.array([pearson(y[there], side) for side in sides])
        else:
            values = replicates(sides, y[there], design, design.dialogues, [measure], grouping, resamples=1000)[
                measure
            ].values  # type: ignore[arg-type]
        drawn = swapped_differences(
            sides, y[there], design, design.dialogues, measure, grouping, resamples=draws, rng=ours_rng
        )  # type: ignore[arg-type]
        # Swapping everything turns the sign of a difference, so what is as far out on either side counts half.
        p = float(np.mean(~(np.abs(drawn) < abs(values[0] - values[1]) - 1e-12)) / 2)
        return p if values[0] >= values[1] else 1 - p

    yield (
        "PERM-BOTH, Pearson over all units",
        perm_both(pearson, gold, first, second, systems, "none", draws, rng)[0],
        ours("pearson", None),
    )
    yield (
        "pairs swapped, acc_eq by item",
        perm_pairs(gold, first, second, systems, "item", draws, rng)[1],
        ours("acc_eq", "item"),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("export", "check"):
        command = commands.add_parser(name)
        command.add_argument("datasets", nargs="+")
        command.add_argument("--tables", type=Path, default=ROOT / "data/tables")
        command.add_argument("--scores", type=Path, default=ROOT / "results")
        if name == "export":
            command.add_argument("--output", type=Path, required=True)
        else:
            command.add_argument("--target", default="Overall", help="a rated dimension")
            command.add_argument("--draws", type=int, default=0, help="swaps of the tests whose p is compared; 0: none")
            command.add_argument("--metrics", type=int, default=5, help="how many metrics to look at, the first ones")
    options = parser.parse_args()
    places = {"tables": options.tables, "scores": options.scores}
    if options.command == "export":
        for dataset in options.datasets:
            for line in export(dataset, options.output, **places):
                print(f"{dataset}: left out, {line}")
        return 0
    print("| data set | measure | largest difference | loops, s | ours, s | ratio |\n|:--|:--|--:|--:|--:|--:|")
    worst = 0.0
    p_rows = []
    for dataset in options.datasets:
        metrics, systems = vectors(dataset, **places, target=options.target, limit=options.metrics)
        if options.draws:
            (first, gold, one), (second, _, two) = metrics[0], metrics[-1]
            for name, plain_p, our_p in tests(one, two, gold, systems, options.draws):
                error = math.sqrt(max(plain_p * (1 - plain_p), 1 / options.draws) * 2 / options.draws)
                p_rows.append(
                    f"| {dataset}, {first} and {second} | {name} | {plain_p:.4f} | {our_p:.4f} | {error:.4f} |"
                )
                worst = max(worst, 0.0 if abs(plain_p - our_p) <= 4 * error else 1.0)
        for name, apart, plain, ours in compared(metrics, systems):
            ratio = f"{plain / ours:.1f}" if ours else "–"
            print(f"| {dataset} | {name} | {apart:.1e} | {plain:.3f} | {ours:.3f} | {ratio} |")
            worst = max(worst, apart)
    if p_rows:
        print(
            f"\n| data set | test | p by loops | ours | Monte Carlo error, {options.draws} draws |\n|:--|:--|--:|--:|--:|"
        )
        print("\n".join(p_rows))
    return int(not worst <= AGREED)


if __name__ == "__main__":
    sys.exit(main())
