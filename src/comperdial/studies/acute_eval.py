"""The study ACUTE-Eval (Li, Weston and Roller 2019): public preferences, and what the paper reports of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy import stats

from comperdial import schema
from comperdial.core.files import read_table
from comperdial.evaluation.preferences import (
    Votes,
    analyse,
    circles,
    metric_choices,
    significance,
    strongest_first,
    votes_of,
    win_matrix,
)
from comperdial.evaluation.preferences import strengths as strengths_of
from comperdial.report.about import Inputs, Study
from comperdial.report.plots.preferences import matrix_figure, significance_figure, strengths_figure
from comperdial.report.preferences import metrics_section, planner_sentence, preferences_table, section
from comperdial.report.render import Section, Table, count, described, estimate, interval, number
from comperdial.stats.correlation import ALPHA
from comperdial.stats.win_rate import binomial_p, votes_needed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Sizes of the simulated studies: votes, and sessions of workers.
_SIZES, _SESSIONS = (10, 20, 40, 80, 160, 320, 640), (5, 10, 20, 40, 80, 160, 240)
_RATES = (0.55, 0.6, 0.65, 0.7, 0.75, 0.8)
_DRAWS = 1000
_LIKERT = "the same worker's Likert rating"


def _votes(inputs: Inputs, study: Study) -> dict[str, Votes]:
    """Return the votes on the question nearest to overall quality, by title of the data set."""
    sets = {path.parent.name: study["entry"]["sets"][path.parent.name] for path in inputs["votes"]}
    read = {path.parent.name: schema.read(path, "preferences") for path in inputs["votes"]}
    return {entry["title"]: votes_of(read[name], question=entry["question"]) for name, entry in sets.items()}


def preferences(inputs: Inputs, study: Study) -> Table:
    """Show what the preferences of one data set say of the systems that they compare."""
    ((title, votes),) = _votes(inputs, study).items()
    return preferences_table(votes, title, resamples=study["resamples"], seed=study["seed"])[0]


def overview(inputs: Inputs, study: Study) -> Table:
    """Show what public preferences say and, in a section of its own, what the paper reports."""
    rows, planned = [], []
    tests = {"binomial": ("binomial", "p"), "holm": ("Holm", "p_holm"), "dialogue": ("by dialogue", "p_dialogue")}
    for title, votes in _votes(inputs, study).items():
        result = analyse(votes, resamples=study["resamples"], seed=study["seed"])
        matrix, agreed = result.matrix, result.agreement
        rows.append(
            {
                "data": f"{title}, {votes.question}", "votes": len(votes.frame), "ties": int((votes.frame["won"] == 0.5).sum()),
                "systems": len(votes.systems), "pairs": len(matrix),
                **{name: int((matrix[p] < ALPHA).sum()) for name, (_, p) in tests.items()}, "circles": len(circles(matrix)),
                "agree": number(agreed.value) + interval(agreed.low, agreed.high) if agreed.pairs else "judged once",
                "alpha": number(agreed.alpha) + interval(agreed.alpha_low, agreed.alpha_high) if agreed.pairs else "judged once",
            }
        )  # fmt: skip
        planned.append(f"{title}: {planner_sentence(matrix)}")
    frame = pd.DataFrame(rows)
    texts = {
        ("", "Data, question"): frame["data"],
        ("Votes", "all"): frame["votes"].map(count),
        ("Votes", "ties"): frame["ties"].map(count),
        ("", "Systems"): frame["systems"].astype(str),
    }
    for name, (head, _) in tests.items():
        texts["Pairs that differ", head] = frame[name].astype(str) + " of " + frame["pairs"].astype(str)
    texts["", "Circles"] = frame["circles"].astype(str)
    texts |= {("Two annotators", name): frame.pop(name) for name in ("agree", "alpha")}
    needed = [
        {("", "Win rate"): f"{r:.2f}", ("Votes for", "one of the two"): f"{votes_needed(r, power_wanted=0.8):,}"}
        for r in _RATES
    ]
    names = {"what": "What", "value": "Reported", "place": "Section of the paper"}
    reported = read_table(inputs["statements"][0])[[*names]].astype(str).rename(columns=names)
    reported.columns = pd.MultiIndex.from_product([[""], reported.columns])
    sections = [
        Section("Public preferences, analysed here", pd.DataFrame(texts)),
        section("Votes that a study needs", needed),
        Section("Reported by the paper, of its own data", reported),
    ]
    return described(study, frame, sections, *planned)


def metrics(inputs: Inputs, study: Study) -> Table:
    """Show which properties of a dialogue choose as people do, and whether those that correlate also choose."""
    ((title, votes),) = _votes(inputs, study).items()
    dialogues = read_table(inputs["dialogues"][0])
    key = ["dialogue_id", "system_id"]
    properties = [name for name in dialogues if name not in (*key, "annotator_id", "seconds", "likert")]
    scores = dialogues.rename(columns={"likert": _LIKERT}).melt(key, [*properties, _LIKERT], "metric", "value")
    dominant = strongest_first(votes)[0]
    result = metric_choices(
        votes,
        scores.assign(output=scores["metric"]),
        dominant=dominant,
        ratings=dialogues[[*key, "likert"]].rename(columns={"likert": "rating"}),
        resamples=study["resamples"],
        seed=study["seed"],
    )
    about = {"data": title, "dominant": dominant, "tried": len(properties) + 1}
    return described(study, result, [metrics_section(result, dominant)], **about)


def judges(inputs: Inputs, study: Study) -> Table:
    """Show how recorded judges choose, as :func:`comperdial.judges.recorded_pairs.judged_pairs` summarises them."""
    result = pd.concat([pd.read_csv(path) for path in inputs["judges"]], ignore_index=True)
    shares = {"accuracy": "right", "same": "the same in both orders", "chose_first": "first shown"}
    records = [
        {
            ("", "Data"): study["entry"]["sets"][row["dataset"]]["title"],
            ("", "Judge"): row["judge"],
            ("", "Compared with"): row["against"],
            ("Asked", "pairs"): f"{row['pairs']:,}",
            **{("Share of choices", head): estimate(row, name) for name, head in shares.items()},
        }
        for row in result.to_dict("records")
    ]
    return described(study, result, [section("Judges", records)])


def matrices(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw the win matrices."""
    votes = _votes(inputs, study)
    result = {title: win_matrix(one) for title, one in votes.items()}
    return matrix_figure(result, {title: strongest_first(one) for title, one in votes.items()}), _with_data(result)


def strengths(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw the systems' strengths."""
    result = {title: strengths_of(one) for title, one in _votes(inputs, study).items()}
    return strengths_figure(result), _with_data(result)


def _with_data(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    return pd.concat([frame.assign(data=title) for title, frame in frames.items()], ignore_index=True)


def hours(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw the probability that a study finds a difference against person-hours, as the paper's figure does."""
    (title, ranked), *others = _votes(inputs, study).items()
    dialogues, seed = read_table(inputs["dialogues"][0]), study["seed"]
    panels = {
        f"{title}: {a}, {b}": likert_curves(ranked, dialogues, a, b, seed=seed) for a, b in study["entry"]["close"]
    }
    panels |= {other: pairwise_curves(votes, seed=seed) for other, votes in others}
    curves = _with_data(panels).rename(columns={"data": "panel"})
    return significance_figure(curves, study["entry"]["title"], study["entry"]["notes"]), curves


def pairwise_curves(votes: Votes, *, seed: int) -> pd.DataFrame:
    """Return how likely studies of several sizes are to find a difference, the mean over all pairs of systems."""
    pairs = votes.frame.loc[votes.frame["a"] != votes.frame["b"], ["a", "b"]].drop_duplicates()
    result = [
        significance(votes, a, b, _SIZES, draws=_DRAWS, seed=seed) for a, b in pairs.itertuples(index=False, name=None)
    ]
    return pd.concat(result).groupby("votes", as_index=False)[["hours", "probability"]].mean().assign(line="pairwise")


def likert_curves(votes: Votes, ratings: pd.DataFrame, a: str, b: str, *, seed: int) -> pd.DataFrame:
    """Return how likely studies with the same workers are to find a difference by rankings, and by Likert ratings.

    Whole sessions of workers are drawn with replacement. Rankings: binomial test over votes for one of the two. Likert: paired
    t-test over conversations of the difference of ``likert``. Returns ``line``, ``hours`` and ``probability``.
    """
    frame = votes.frame[(votes.frame["a"] == a) & (votes.frame["b"] == b)]
    wide = ratings.pivot(index=["annotator_id", "dialogue_id"], columns="system_id", values="likert")
    apart = (wide[a] - wide[b]).rename("sum").reset_index("dialogue_id", drop=True).to_frame()
    apart = apart.assign(square=apart["sum"] ** 2, n=1.0).groupby(level=0).sum()
    won = frame.groupby("annotator_id")["won"]
    sessions = apart.assign(
        wins=won.apply(lambda one: (one == 1).sum()), losses=won.apply(lambda one: (one == 0).sum())
    )
    sessions = sessions.loc[sorted(frame["annotator_id"].unique())]
    seconds = ratings.groupby("annotator_id")["seconds"].first().median()
    rng = np.random.default_rng(seed)
    rows = []
    for size in _SESSIONS:
        drawn = rng.integers(len(sessions), size=(_DRAWS, size))
        total, square, n, wins, losses = (sessions[name].to_numpy()[drawn].sum(axis=1) for name in sessions)
        spread = np.sqrt(np.maximum(square - total**2 / n, 0) / (n - 1) / n)
        with np.errstate(divide="ignore", invalid="ignore"):
            p = 2 * stats.t.sf(np.abs(total / n) / spread, n - 1)
        for line, hit in (("pairwise", binomial_p(wins, wins + losses) <= ALPHA), ("Likert", p <= ALPHA)):
            rows.append({"line": line, "hours": size * seconds / 3600, "probability": float(np.mean(hit))})
    return pd.DataFrame(rows)
