"""Tables of preferences: who wins, how strong each system is, how sure that is, which metrics choose alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd

from comperdial.core.errors import SchemaError
from comperdial.evaluation.preferences import Analysis, Unit, Votes, analyse, circles
from comperdial.report.render import NOTES, Section, Table, count, estimate, interval, number
from comperdial.stats.correlation import ALPHA
from comperdial.stats.win_rate import binomial_p, power, votes_needed

# A page is too narrow for a matrix of more systems, and too short for more pairs.
MOST_SYSTEMS, MOST_PAIRS = 12, 45
STARS = NOTES["stars"]
TESTS = {"p": "binomial", "p_dialogue": "by dialogue", "p_annotator": "by annotator"}


def section(title: str, records: Sequence[Mapping[tuple[str, str], str]]) -> Section:
    """Return a section with a row for each record: texts by group and name of the column."""
    return Section(title, pd.DataFrame(records).set_axis(pd.MultiIndex.from_tuples(records[0]), axis=1))


def stars(pair: Mapping[Any, Any]) -> str:
    """Return the stars of a row of the win matrix (:data:`STARS`)."""
    marks = [pair["p"] < ALPHA, pair["p_holm"] < ALPHA, pair["p_dialogue_holm"] < ALPHA]
    return "*" * (3 if all(marks) else 2 if all(marks[:2]) else int(marks[0]))


def probability(p: float) -> str:
    """Write a p-value with three digits, or that it is smaller."""
    return "–" if pd.isna(p) else "< 0.001" if p < 0.0005 else number(p)


def preferences_table(
    votes: Votes,
    title: str,
    *,
    by: Unit | None = None,
    metrics: pd.DataFrame | None = None,
    resamples: int = 1000,
    seed: int = 2024,
) -> tuple[Table, Analysis]:
    """Return the table of votes on one question, by one source, and the analysis that it shows.

    ``title`` is the data set's; ``metrics`` is what :func:`comperdial.evaluation.preferences.metric_choices` returns; the rest
    is :func:`comperdial.evaluation.preferences.analyse`'s.
    """
    whole = analyse(votes, by=by, resamples=resamples, seed=seed)
    analyses = {"All": whole}
    rest = votes.without(whole.dominant)
    if (rest.frame["a"] != rest.frame["b"]).any():
        # Without a common scale the strongest system was the only link between the others.
        with suppress(SchemaError):
            analyses[f"Without {whole.dominant}"] = analyse(rest, by=by, resamples=resamples, seed=seed)
    few_systems, few_pairs = len(votes.systems) <= MOST_SYSTEMS, len(whole.matrix) <= MOST_PAIRS
    sections = [
        *([_matrix(whole)] if few_systems else []),
        *([_pairs(whole.matrix)] if few_pairs else []),
        _strengths(analyses),
        _summary(analyses),
        *([metrics_section(metrics, whole.dominant)] if metrics is not None else []),
    ]
    caption = (
        f"{title}: question {votes.question!r}, source {votes.source}; {count(len(votes.frame), 'vote')} of "
        f"{count(votes.frame['annotator_id'].nunique(), 'annotator')} on {count(len(votes.systems), 'system')}."
    )
    return Table(f"Preferences: {title}", caption, whole.matrix, sections, _notes(whole, few_systems)), whole


def _matrix(analysis: Analysis) -> Section:
    names = list(analysis.strengths["system"])
    cells = {}
    for row in analysis.matrix.to_dict("records"):
        cells[row["a"], row["b"]] = number(row["win_rate"], digits=2) + stars(row)
        cells[row["b"], row["a"]] = number(1 - row["win_rate"], digits=2) + stars(row)
    records = [
        {("", "Preferred"): one} | {("to", other): cells.get((one, other), "–") for other in names} for one in names
    ]
    return section("How often the row is preferred to the column", records)


def _pairs(matrix: pd.DataFrame) -> Section:
    records = []
    for row in matrix.to_dict("records"):
        record = {("", "A"): row["a"], ("", "B"): row["b"]}
        for head, name in {"A": "wins", "B": "losses", "tie": "ties"}.items():
            record["Votes for", head] = f"{row[name]:,}"
        record["Win rate of A", "ties left out"] = estimate(row, "win_rate")
        for p, test in TESTS.items():
            record |= {
                (f"p, {test}", "plain"): probability(row[p]),
                (f"p, {test}", "Holm"): probability(row[f"{p}_holm"]),
            }
        records.append(record)
    return section("Pairs of systems", records)


def _strengths(analyses: Mapping[str, Analysis]) -> Section:
    whole = analyses["All"].strengths.set_index("system")
    texts = {
        ("", "System"): whole.index,
        ("All", "votes"): whole["votes"].map(count),
        ("All", "won"): whole["won"].map(number),
    }
    for group, one in analyses.items():
        own = one.strengths.set_index("system")
        strengths = [estimate(row, "strength", sign=True) for row in own.to_dict("records")]
        ranks = ["–" if pd.isna(rank) else f"#{rank}" for rank in own["rank"]]
        texts[group, "strength"] = pd.Series(strengths, own.index)
        texts[group, "rank"] = pd.Series(ranks, own.index)
    return Section(
        "Bradley-Terry strengths", pd.DataFrame(texts, index=whole.index.rename(None)).reset_index(drop=True)
    )


def _summary(analyses: Mapping[str, Analysis]) -> Section:
    parts = {("", group): _in_short(analysis) for group, analysis in analyses.items()}
    lines = list(next(iter(parts.values())))
    return section("In short", [{("", ""): line} | {group: of[line] for group, of in parts.items()} for line in lines])


def _in_short(analysis: Analysis) -> dict[str, str]:
    matrix, left, agreed = analysis.matrix, analysis.left, analysis.agreement
    unbalanced = (binomial_p(matrix["left"], matrix["sided"]) < ALPHA).sum()
    unknown = "which side was left is not known"

    def share(value: float, low: float, high: float, otherwise: str = "no pair was judged twice") -> str:
        return otherwise if np.isnan(value) else number(value) + interval(low, high)

    return {
        "votes, of them ties": f"{len(analysis.votes.frame):,}, {(analysis.votes.frame['won'] == 0.5).sum():,}",
        **{
            f"pairs that differ, {name}": f"{(matrix[p] < ALPHA).sum()} of {len(matrix)}; after Holm "
            f"{(matrix[f'{p}_holm'] < ALPHA).sum()}"
            for p, name in TESTS.items()
        },
        "circles (A beats B beats C beats A)": f"{len(circles(matrix)):,}; of significant wins "
        f"{len(circles(matrix, significant=True)):,}",
        "left is preferred": share(left.value, left.low, left.high, unknown),
        "pairs with unbalanced left and right": f"{unbalanced} of {len(matrix)}" if matrix["sided"].sum() else unknown,
        "agreement of two annotators": share(agreed.value, agreed.low, agreed.high),
        "Krippendorff's alpha, nominal": share(agreed.alpha, agreed.alpha_low, agreed.alpha_high),
    }


def metrics_section(choices: pd.DataFrame, dominant: str) -> Section:
    """Return how often each metric's higher score is preferred, next to its correlation with ratings."""
    pairs = choices.loc[choices["of"] == "pair", ["a", "b"]].drop_duplicates().itertuples(index=False, name=None)
    by_pair = list(pairs)
    records = []
    for (metric, output), part in choices.groupby(["metric", "output"], sort=False):
        cells = {(row["of"], row["a"], row["b"]): row for row in part.to_dict("records")}
        record = {("", "Metric"): str(metric) if metric == output else f"{metric}:{output}"}
        for of, group in (("all", "All"), ("others", f"Without {dominant}")):
            record[group, "chooses"] = estimate(cells[of, "", ""])
            record[group, "Spearman"] = number(cells[of, "", ""]["spearman"], sign=True)
        if len(by_pair) <= MOST_PAIRS // 3:
            record |= {
                ("Chooses, by pair", f"{a}, {b}"): number(cells["pair", a, b]["value"], digits=2) for a, b in by_pair
            }
        records.append(record)
    return section("How often the higher score is preferred", records)


def _notes(analysis: Analysis, with_stars: bool) -> list[str]:
    matrix, first, controls = analysis.matrix, analysis.strengths.iloc[0], analysis.votes.controls
    tested = "; ".join(f"{name} {matrix[p].notna().sum()}" for p, name in TESTS.items())
    notes = [STARS] if with_stars else []
    notes += [
        f"Each p is corrected by Holm's method over all pairs that have it ({tested})",
        NOTES["win_rates"].format(by=first["by"]),
        planner_sentence(matrix),
        *([NOTES["prior"].format(prior=first["prior"])] if first["prior"] else []),
    ]
    return [*notes, f"{controls:,} votes on control pairs are left out"] if controls else notes


def planner_sentence(matrix: pd.DataFrame) -> str:
    """Return how many votes a win rate of 0.6 needs, and which one the pairs of a win matrix were enough for."""
    win_rate, wanted = 0.6, 0.8
    needed = votes_needed(win_rate, power_wanted=wanted)
    ties = matrix["ties"].sum() / matrix["votes"].sum()
    if ties == 1:
        return "All votes are ties: they do not say how many votes a study needs"
    middle = int((matrix["wins"] + matrix["losses"]).median())
    enough = [rate for rate in np.arange(0.51, 1, 0.01) if power(float(rate), middle) >= wanted]
    return (
        f"To detect a win rate of {win_rate:.2f} with a power of {wanted:.0%} takes {needed:,} votes for one of the two, "
        f"{int(np.ceil(needed / (1 - ties))):,} with as many ties as here ({ties:.0%}), if votes are independent; "
        f"the median pair has {middle:,}, enough for {f'{enough[0]:.2f}' if enough else 'none'}"
    )
