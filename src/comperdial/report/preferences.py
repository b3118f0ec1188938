"""What preferences say, as sections of a table: who wins, how strong each is, how sure that is, which metrics choose alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from comperdial.core.errors import SchemaError
from comperdial.evaluation.preferences import Analysis, Unit, Votes, analyse, circles
from comperdial.report.document import Document, Section, interval, number, number_of
from comperdial.report.tables import over_tests
from comperdial.stats.correlation import ALPHA
from comperdial.stats.win_rate import binomial_p, power, votes_needed

# A square table of more systems would be wider than a page; so many pairs fit on one.
MOST_SYSTEMS, MOST_PAIRS = 12, 45
STARS = (
    "Stars: * the binomial test is significant at 5 %, ** also after Holm's correction, *** also after it with votes "
    "that share a dialogue standing or falling together"
)
TESTS = {"p": "binomial", "p_dialogue": "by dialogue", "p_annotator": "by annotator"}


def stars(pair: Mapping[Any, Any]) -> str:
    """Return the stars of a row of the win matrix (:data:`STARS`)."""
    marks = [pair["p"] < ALPHA, pair["p_holm"] < ALPHA, pair["p_dialogue_holm"] < ALPHA]
    return "*" * (3 if all(marks) else 2 if all(marks[:2]) else int(marks[0]))


def probability(p: float) -> str:
    """Write a p-value with three digits, or that it is smaller."""
    return "–" if pd.isna(p) else "< 0.001" if p < 0.0005 else number(p)


def preferences_document(
    votes: Votes,
    title: str,
    *,
    by: Unit | None = None,
    metrics: pd.DataFrame | None = None,
    resamples: int = 1000,
    seed: int = 2024,
) -> tuple[Document, Analysis]:
    """Return the table of some votes, and the analysis that it shows.

    Parameters
    ----------
    votes
        On one question, by one source.
    title
        What the data set is called.
    by, resamples, seed
        As in :func:`comperdial.evaluation.preferences.analyse`.
    metrics
        As :func:`comperdial.evaluation.preferences.metric_choices` returns it.
    """
    whole = analyse(votes, by=by, resamples=resamples, seed=seed)
    rest = without_dominant(whole, by=by, resamples=resamples, seed=seed)
    sections = [
        *([matrix_section(whole)] if len(votes.systems) <= MOST_SYSTEMS else []),
        *([pairs_section(whole.matrix)] if len(whole.matrix) <= MOST_PAIRS else []),
        strengths_section(whole, rest),
        summary_section(whole, rest),
        *([metrics_section(metrics, whole.dominant)] if metrics is not None else []),
    ]
    caption = (
        f"{title}: question {votes.question!r}, source {votes.source}; {number_of(len(votes.frame), 'vote')} of "
        f"{number_of(votes.frame['annotator_id'].nunique(), 'annotator')} on {number_of(len(votes.systems), 'system')}."
    )
    return Document(f"Preferences: {title}", caption, sections, whole.matrix, notes(whole)), whole


def without_dominant(
    whole: Analysis, *, by: Unit | None = None, resamples: int = 1000, seed: int = 2024
) -> Analysis | None:
    """Return the analysis of the votes without the strongest system; None where no two compared systems are left."""
    rest = whole.votes.without(whole.dominant)
    if rest.frame.empty or (rest.frame["a"] == rest.frame["b"]).all():
        return None
    try:
        return analyse(rest, by=by, resamples=resamples, seed=seed)
    except SchemaError:
        # What only it linked has no common scale.
        return None


def matrix_section(analysis: Analysis) -> Section:
    """Return how often the row is preferred to the column, ties left out; the strongest system first."""
    names = list(analysis.strengths["system"])
    cells: dict[tuple[str, str], str] = {}
    for row in analysis.matrix.to_dict("records"):
        marks = stars(row)
        cells[row["a"], row["b"]] = f"{number(row['win_rate'], digits=2)}{marks}"
        cells[row["b"], row["a"]] = f"{number(1 - row['win_rate'], digits=2)}{marks}"
    rows = [[one, *(cells.get((one, other), "–") for other in names)] for one in names]
    columns = [("", "Preferred"), *(("to", name) for name in names)]
    return Section("How often the row is preferred to the column", columns, rows)


def pairs_section(matrix: pd.DataFrame) -> Section:
    """Return each pair of systems with its votes, win rate and p-values."""
    groups = {"p": "p, binomial", "p_dialogue": "p, by dialogue", "p_annotator": "p, by annotator"}
    rows = [
        [
            row["a"],
            row["b"],
            *(f"{row[name]:,}" for name in ("wins", "losses", "ties")),
            number(row["win_rate"]) + interval(row["low"], row["high"]),
            *(probability(row[f"{name}{end}"]) for name in TESTS for end in ("", "_holm")),
        ]
        for row in matrix.to_dict("records")
    ]
    columns = [
        ("", "A"),
        ("", "B"),
        *(("Votes for", name) for name in ("A", "B", "tie")),
        ("Win rate of A", "ties left out"),
        *((group, name) for group in groups.values() for name in ("plain", "Holm")),
    ]
    return Section("Pairs of systems", columns, rows)


def strengths_section(whole: Analysis, rest: Analysis | None) -> Section:
    """Return the systems' strengths, with and without the strongest of them."""
    others = {} if rest is None else {row["system"]: row for row in rest.strengths.to_dict("records")}
    rows = [
        [
            row["system"],
            f"{row['votes']:,}",
            number(row["won"]),
            *_strength(row),
            *([] if rest is None else _strength(others.get(row["system"]))),
        ]
        for row in whole.strengths.to_dict("records")
    ]
    columns = [("", "System"), *(("All", name) for name in ("votes", "won", "strength", "rank"))]
    if rest is not None:
        columns += [(f"Without {whole.dominant}", name) for name in ("strength", "rank")]
    return Section("Bradley-Terry strengths", columns, rows)


def _strength(row: Mapping[Any, Any] | None) -> list[str]:
    if row is None:
        return ["–", "–"]
    rank = "–" if pd.isna(row["rank"]) else f"#{row['rank']}"
    return [number(row["strength"], sign=True) + interval(row["low"], row["high"]), rank]


def summary_section(whole: Analysis, rest: Analysis | None) -> Section:
    """Return what is said of all votes, with and without the strongest system."""
    analyses = [whole, *([] if rest is None else [rest])]
    columns = [("", ""), ("", "All"), *([] if rest is None else [("", f"Without {whole.dominant}")])]
    told = [_summary(analysis) for analysis in analyses]
    return Section("In short", columns, [[name, *(one[name] for one in told)] for name in told[0]])


def _summary(analysis: Analysis) -> dict[str, str]:
    matrix, found = analysis.matrix, analysis.agreement
    pairs = len(matrix)
    unbalanced = (binomial_p(matrix["left"], matrix["sided"]) < ALPHA).sum()
    sided = bool(matrix["sided"].sum())
    return {
        "votes, of them ties": f"{len(analysis.votes.frame):,}, {int((analysis.votes.frame['won'] == 0.5).sum()):,}",
        **{
            f"pairs that differ, {name}": f"{(matrix[p] < ALPHA).sum()} of {pairs}; "
            f"after Holm {(matrix[f'{p}_holm'] < ALPHA).sum()}"
            for p, name in TESTS.items()
        },
        "circles (A beats B beats C beats A)": f"{len(circles(matrix)):,}; of significant wins "
        f"{len(circles(matrix, significant=True)):,}",
        "left is preferred": _share(
            analysis.left.value, analysis.left.low, analysis.left.high, "what was left is not known"
        ),
        "pairs with unbalanced left and right": f"{unbalanced} of {pairs}" if sided else "what was left is not known",
        "agreement of two annotators": _share(found.value, found.low, found.high, "no pair was judged twice"),
        "Krippendorff's alpha, nominal": _share(
            found.alpha, found.alpha_low, found.alpha_high, "no pair was judged twice"
        ),
    }


def _share(value: float, low: float, high: float, otherwise: str) -> str:
    return otherwise if np.isnan(value) else number(value) + interval(low, high)


def metrics_section(found: pd.DataFrame, dominant: str) -> Section:
    """Return how often each metric's higher score is preferred, next to its correlation with ratings."""
    pairs = list(dict.fromkeys(zip(*(found.loc[found["of"] == "pair", side] for side in ("a", "b")), strict=True)))
    rows = []
    for (metric, output), group in found.groupby(["metric", "output"], sort=False):
        cells = {(row["of"], row["a"], row["b"]): row for row in group.to_dict("records")}
        name = str(metric) if metric == output else f"{metric}:{output}"
        row = [name]
        for of in ("all", "others"):
            cell = cells[of, "", ""]
            row += [number(cell["value"]) + interval(cell["low"], cell["high"]), number(cell["spearman"], sign=True)]
        rows.append([*row, *(number(cells["pair", a, b]["value"], digits=2) for a, b in pairs)])
    columns = [
        ("", "Metric"),
        *((group, name) for group in ("All", f"Without {dominant}") for name in ("chooses", "Spearman")),
        *(("Chooses, by pair", f"{a}, {b}") for a, b in pairs),
    ]
    if len(pairs) > MOST_PAIRS // 3:
        columns, rows = columns[:5], [row[:5] for row in rows]
    return Section("How often the higher score is preferred", columns, rows)


def notes(analysis: Analysis) -> list[str]:
    """Return how to read the table, and how many votes a study like this needs."""
    matrix, first = analysis.matrix, analysis.strengths.iloc[0]
    tested = {name: int(matrix[p].notna().sum()) for p, name in TESTS.items()}
    made = [
        *([STARS] if len(analysis.votes.systems) <= MOST_SYSTEMS else []),
        f"Holm's correction of each p is over all pairs that have it: {over_tests(tested)}",
        "Win rates leave ties out; their intervals know which votes share a dialogue. Strengths are logarithms with a mean "
        "of 0, a tie is half a "
        f"win; intervals are 95 %, of the likelihood, by {first['by']}; systems of different ranks all differ significantly "
        "from each other, by the tests of these pairs (binomial and by "
        f"{first['by']}) after Holm's correction",
        planner_sentence(matrix),
    ]
    if first["prior"]:
        made.append(
            "Some systems only ever win or lose against the rest, so that plain strengths are infinite: "
            f"{first['prior']:g} ties were added to each pair that was compared"
        )
    if analysis.votes.controls:
        made.append(f"{analysis.votes.controls:,} votes on control pairs take no part")
    return made


def planner_sentence(matrix: pd.DataFrame, *, win_rate: float = 0.6, wanted: float = 0.8) -> str:
    """Return how many votes a win rate needs, and which one the pairs of a win matrix were enough for."""
    needed = votes_needed(win_rate, power_wanted=wanted)
    ties = matrix["ties"].sum() / matrix["votes"].sum()
    if ties == 1:
        return "All votes are ties: how many votes a study needs cannot be told from them"
    middle = int((matrix["wins"] + matrix["losses"]).median())
    rates = np.arange(0.51, 1, 0.01)
    found = [rate for rate in rates if power(float(rate), middle) >= wanted]
    text = (
        f"To find a win rate of {win_rate:.2f} with a power of {wanted:.0%} takes {needed:,} votes for one of the two, "
        f"{int(np.ceil(needed / (1 - ties))):,} with as many ties as here ({ties:.0%}), if votes are independent; "
        f"the median pair has {middle:,}"
    )
    return text + (f", enough for {found[0]:.2f}" if found else ", enough for none")
