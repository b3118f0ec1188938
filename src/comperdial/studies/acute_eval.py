"""The study ACUTE-Eval (Li, Weston and Roller 2019): public preferences, and the paper's reported results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import stats

from comperdial import schema
from comperdial.core.files import read_table
from comperdial.evaluation.preferences import analyse, analyses, metric_choices, votes_of, win_matrix
from comperdial.evaluation.preferences import strengths as strengths_of
from comperdial.report.about import Inputs, Study
from comperdial.report.plots.preferences import matrix_figure, significance_figure, strengths_figure
from comperdial.report.preferences import metrics_section, planner_sentence, preferences_table
from comperdial.report.render import Section, Table, count, described, estimates
from comperdial.stats.correlation import ALPHA
from comperdial.stats.win_rate import binomial_p, votes_needed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LIKERT = "the same worker's Likert rating"


def _votes(inputs: Inputs, study: Study) -> dict[str, pd.DataFrame]:
    """Return the votes on the question closest to overall quality, by title of the data set."""
    votes = {}
    for path in inputs["votes"]:
        entry = study["entry"]["sets"][path.parent.name]
        votes[entry["title"]] = votes_of(schema.read(path, "preferences"), question=entry["question"])
    return votes


def _how(study: Study) -> dict[str, int]:
    return {name: study[name] for name in ("resamples", "seed")}


def preferences(inputs: Inputs, study: Study) -> Table:
    """Return the analysis of one data set's preferences between systems."""
    ((title, votes),) = _votes(inputs, study).items()
    return preferences_table(title, analyses(votes, **_how(study)))


def overview(inputs: Inputs, study: Study) -> Table:
    """Return the results on public preferences and, in a separate section, the paper's."""
    entry, rows, planned = study["entry"], [], []
    for title, votes in _votes(inputs, study).items():
        result = analyse(votes, **_how(study))
        row: dict[str, Any] = {"data": f"{title}, {votes['question'].iloc[0]}"}
        rows.append(row | result.summary)
        planned.append(f"{title}: {planner_sentence(result.matrix)}")
    texts = {("", "Data, question"): [row["data"] for row in rows]}
    texts |= {tuple(head): [count(row[name]) for row in rows] for name, head in entry["counts"].items()}
    for name, head in {"agreement": "agree", "alpha": "alpha"}.items():
        texts["Two annotators", head] = estimates(pd.DataFrame(rows), name)
    rates = {f"{rate:.2f}": count(votes_needed(rate)) for rate in entry["win_rates"]}
    names = {"what": "What", "value": "Reported", "place": "Section of the paper"}
    reported = read_table(inputs["statements"][0])[[*names]].astype(str).rename(columns=names)
    sections = [
        Section("Public preferences, analysed here", pd.DataFrame(texts)),
        Section(
            "Votes that a study needs", pd.DataFrame(rates.items(), columns=["Win rate", "Votes for one of the two"])
        ),
        Section("Reported by the paper, of its own data", reported),
    ]
    frame = pd.DataFrame(rows)[["data", *entry["counts"]]]
    return described(study, frame.rename(columns=entry["named"]), sections, *planned)


def metrics(inputs: Inputs, study: Study) -> Table:
    """Return which properties of a dialogue predict human choices, and whether those that correlate also do."""
    ((title, votes),) = _votes(inputs, study).items()
    dialogues, key = read_table(inputs["dialogues"][0]), ["dialogue_id", "system_id"]
    known = dialogues.drop(columns=["annotator_id", "seconds", "likert"]).assign(**{_LIKERT: dialogues["likert"]})
    scores = known.melt(key, var_name="metric")
    dominant = str(strengths_of(votes)["system"].iloc[0])
    result = metric_choices(
        votes,
        scores.assign(output=scores["metric"]),
        dominant=dominant,
        ratings=dialogues[[*key, "likert"]].rename(columns={"likert": "rating"}),
        **_how(study),
    )
    about: dict[str, Any] = {"data": title, "dominant": dominant, "tried": result["metric"].nunique()}
    return described(study, result, [metrics_section(result, dominant)], **about)


def judges(inputs: Inputs, study: Study) -> Table:
    """Return the choices of recorded judges, as summarized by :func:`comperdial.judges.recorded_pairs.judged_pairs`."""
    result = pd.concat([pd.read_csv(path) for path in inputs["judges"]], ignore_index=True)
    shares = {"accuracy": "Right", "same": "The same in both orders", "chose_first": "First shown"}
    titles = {name: one["title"] for name, one in study["entry"]["sets"].items()}
    columns: dict[str, Any] = {
        "Data": result["dataset"].map(titles),
        "Judge": result["judge"],
        "Compared with": result["against"],
        "Pairs": result["pairs"].map(count),
    }
    columns |= {head: estimates(result, name) for name, head in shares.items()}
    return described(study, result, [Section("Judges", pd.DataFrame(columns))])


def matrices(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw the win matrices."""
    votes = _votes(inputs, study)
    result = {title: win_matrix(one) for title, one in votes.items()}
    orders = {title: list(strengths_of(one)["system"]) for title, one in votes.items()}
    return matrix_figure(result, orders), _joined(result, "data")


def strengths(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw the systems' strengths."""
    result = {title: strengths_of(one) for title, one in _votes(inputs, study).items()}
    return strengths_figure(result), _joined(result, "data")


def _joined(frames: Mapping[str, pd.DataFrame], column: str) -> pd.DataFrame:
    return pd.concat([frame.assign(**{column: title}) for title, frame in frames.items()], ignore_index=True)


def hours(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw the probability that a study finds a difference against person-hours, as in the paper's figure."""
    (title, ranked), *others = _votes(inputs, study).items()
    dialogues, entry = read_table(inputs["dialogues"][0]), study["entry"]
    drawing = {"draws": entry["draws"], "seed": study["seed"]}
    panels = {
        f"{title}: {a}, {b}": likert_curves(ranked, dialogues, a, b, entry["sessions"], **drawing)
        for a, b in entry["close"]
    }
    panels |= {other: pairwise_curves(votes, entry["votes"], **drawing) for other, votes in others}
    curves = _joined(panels, "panel")
    return significance_figure(curves, entry["title"], entry["notes"]), curves


def pairwise_curves(votes: pd.DataFrame, sizes: Sequence[int], *, draws: int, seed: int) -> pd.DataFrame:
    """Return the probability that studies of several sizes find a difference, averaged over all pairs of systems.

    Votes, including ties, are drawn with replacement from those on a pair; each takes their median time. Binomial test over
    votes for one of the two. Returns ``votes``, ``hours``, ``probability`` and ``line``.
    """
    rows = []
    for _, frame in votes.groupby(["a", "b"], sort=False):
        shares = [float((frame["won"] == code).mean()) for code in (1.0, 0.0, 0.5)]
        rng, seconds = np.random.default_rng(seed), float(frame["seconds"].median())
        for size in sizes:
            wins, losses, _ = rng.multinomial(size, shares, size=draws).T
            significant = float((binomial_p(wins, wins + losses) <= ALPHA).mean())
            rows.append({"votes": size, "hours": size * seconds / 3600, "probability": significant})
    return pd.DataFrame(rows).groupby("votes", as_index=False).mean().assign(line="pairwise")


def likert_curves(
    votes: pd.DataFrame, ratings: pd.DataFrame, a: str, b: str, sizes: Sequence[int], *, draws: int, seed: int
) -> pd.DataFrame:
    """Return the probability that studies with the same workers find a difference by rankings, and by Likert ratings.

    Whole sessions of workers are drawn with replacement. Rankings: binomial test over votes for one of the two. Likert: paired
    t-test over conversations of the difference of ``likert``. Returns ``line``, ``hours`` and ``probability``.
    """
    frame = votes[(votes["a"] == a) & (votes["b"] == b)]
    wide = ratings.pivot(index=["annotator_id", "dialogue_id"], columns="system_id", values="likert")
    apart = (wide[a] - wide[b]).rename("sum").to_frame()
    sessions = apart.assign(square=apart["sum"] ** 2, n=1.0).groupby("annotator_id").sum()
    for name, code in (("wins", 1), ("losses", 0)):
        sessions[name] = (frame["won"] == code).groupby(frame["annotator_id"]).sum()
    sessions = sessions.loc[sorted(frame["annotator_id"].unique())]
    seconds = ratings.groupby("annotator_id")["seconds"].first().median()
    rng = np.random.default_rng(seed)
    rows = []
    for size in sizes:
        drawn = rng.integers(len(sessions), size=(draws, size))
        total, square, n, wins, losses = (sessions[name].to_numpy()[drawn].sum(axis=1) for name in sessions)
        spread = np.sqrt(np.maximum(square - total**2 / n, 0) / (n - 1) / n)
        with np.errstate(divide="ignore", invalid="ignore"):
            p = 2 * stats.t.sf(np.abs(total / n) / spread, n - 1)
        for line, hit in (("pairwise", binomial_p(wins, wins + losses) <= ALPHA), ("Likert", p <= ALPHA)):
            rows.append({"line": line, "hours": size * seconds / 3600, "probability": float(np.mean(hit))})
    return pd.DataFrame(rows)
