"""What the study's tables and figures are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from comperdial.challenge.pairs.dialogues import Dialogue
from comperdial.evaluation.preferences import Analysis, Votes, circles, metric_choices, significance, strongest_first
from comperdial.metrics.text import normalise
from comperdial.report.document import Document, Section, interval, number
from comperdial.report.preferences import metrics_section, planner_sentence
from comperdial.stats.correlation import ALPHA
from comperdial.stats.win_rate import binomial_p, votes_needed

_SIZES = (10, 20, 40, 80, 160, 320, 640)
_RATES = (0.55, 0.6, 0.65, 0.7, 0.75, 0.8)
_DRAWS = 1000


def overview_document(reported: pd.DataFrame, found: Mapping[str, Analysis]) -> Document:
    """Return what the paper's text reports and, under headings of their own, what public preferences say."""
    ours = [_row(title, one) for title, one in found.items()]
    columns = [
        ("", "Data, question"),
        *(("Votes", name) for name in ("all", "ties")),
        ("", "Systems"),
        *(("Pairs that differ", name) for name in ("binomial", "Holm", "by dialogue")),
        ("", "Circles"),
        ("Two annotators", "agree"),
        ("Two annotators", "alpha"),
    ]
    rows = [
        [
            row["data"],
            f"{row['votes']:,}",
            f"{row['ties']:,}",
            str(row["systems"]),
            *(f"{row[name]} of {row['pairs']}" for name in ("binomial", "holm", "dialogue")),
            str(row["circles"]),
            row["agree"],
            row["alpha"],
        ]
        for row in ours
    ]
    paper = reported.to_dict("records")
    return Document(
        "ACUTE-Eval: what the paper reports, and public preferences",
        "Li, Weston and Roller 2019 asked which of two dialogues is better. Their annotations are not public: what their text "
        "prints stands alone, and the other sections are of other data, other questions and other annotators.",
        [
            Section("Public preferences, analysed here", columns, rows),
            Section(
                "Votes that a study needs",
                [("", "Win rate"), ("Votes for", "one of the two")],
                [[f"{rate:.2f}", f"{votes_needed(rate, power_wanted=0.8):,}"] for rate in _RATES],
            ),
            Section(
                "Reported by the paper, of its own data",
                [("", "What"), ("", "Reported"), ("", "Section of the paper")],
                [[str(row["what"]), str(row["value"]), str(row["place"])] for row in paper],
            ),
        ],
        pd.DataFrame([{key: row[key] for key in row if key not in ("agree", "alpha")} for row in ours]),
        [
            "Spot the Bot: a side is preferred that was taken for a person rather than unsure or a bot, or unsure rather than a "
            "bot; most judgements are ties",
            "Pairs that differ: of all pairs of systems in the row's data, over which Holm's correction runs",
            "Votes that a study needs: with a power of 80 %, for the two-sided binomial test at 5 %, if votes are independent",
            "Two annotators agree: the share of pairs of annotators of the same pair that chose alike, a tie being a choice; "
            "alpha is Krippendorff's, nominal, where 0 is chance",
            *(f"{title}: {planner_sentence(one.matrix)}" for title, one in found.items()),
        ],
    )


def _row(title: str, one: Analysis) -> dict[str, Any]:
    matrix, agreed = one.matrix, one.agreement
    return {
        "data": f"{title}, {one.votes.question}",
        "votes": len(one.votes.frame),
        "ties": int((one.votes.frame["won"] == 0.5).sum()),
        "systems": len(one.votes.systems),
        "pairs": len(matrix),
        "binomial": int((matrix["p"] < ALPHA).sum()),
        "holm": int((matrix["p_holm"] < ALPHA).sum()),
        "dialogue": int((matrix["p_dialogue"] < ALPHA).sum()),
        "circles": len(circles(matrix)),
        "agree": number(agreed.value) + interval(agreed.low, agreed.high) if agreed.pairs else "judged once",
        "alpha": number(agreed.alpha) + interval(agreed.alpha_low, agreed.alpha_high)
        if agreed.pairs
        else "judged once",
    }


def pairwise_curves(votes: Votes, *, seed: int) -> pd.DataFrame:
    """Return how likely studies are to find a difference, the mean over all pairs of systems.

    Returns
    -------
    DataFrame
        ``line``, ``hours`` and ``probability``.
    """
    found = [
        significance(votes, a, b, _SIZES, draws=_DRAWS, seed=seed)
        for a, b in votes.frame[["a", "b"]].drop_duplicates().itertuples(index=False, name=None)
        if a != b
    ]
    made = (
        pd.concat(found)
        .groupby("votes", as_index=False)
        .agg(hours=("hours", "mean"), probability=("probability", "mean"))
    )
    return made.assign(line="pairwise")


def likert_curves(votes: Votes, ratings: pd.DataFrame, a: str, b: str, *, seed: int) -> pd.DataFrame:
    """Return how likely studies with the same workers are to find a difference by rankings, and by Likert ratings.

    Whole sessions of workers are drawn with replacement. Rankings: binomial test over votes for one of the two. Likert:
    paired t-test over conversations of the difference of ``likert``.

    Returns
    -------
    DataFrame
        ``line`` (pairwise, Likert), ``hours`` and ``probability``.
    """
    frame = votes.frame[(votes.frame["a"] == a) & (votes.frame["b"] == b)]
    workers = sorted(frame["annotator_id"].unique())
    by_worker = frame.groupby("annotator_id")["won"]
    wins = by_worker.apply(lambda won: (won == 1).sum()).reindex(workers).to_numpy()
    losses = by_worker.apply(lambda won: (won == 0).sum()).reindex(workers).to_numpy()
    wide = ratings.pivot(index=["annotator_id", "dialogue_id"], columns="system_id", values="likert")
    apart = wide[a] - wide[b]
    of = apart.index.get_level_values("annotator_id")
    sums, squares = ((apart**power).groupby(of).sum().reindex(workers).to_numpy(float) for power in (1, 2))
    counts = apart.groupby(of).size().reindex(workers).to_numpy(float)
    seconds = ratings.groupby("annotator_id")["seconds"].first().median()
    rng = np.random.default_rng(seed)
    rows = []
    for size in (5, 10, 20, 40, 80, 160, 240):
        drawn = rng.integers(len(workers), size=(_DRAWS, size))
        won, lost = wins[drawn].sum(axis=1), losses[drawn].sum(axis=1)
        n, total, square = (values[drawn].sum(axis=1) for values in (counts, sums, squares))
        spread = np.sqrt(np.maximum(square - total**2 / n, 0) / (n - 1) / n)
        with np.errstate(divide="ignore", invalid="ignore"):
            p = 2 * stats.t.sf(np.abs(total / n) / spread, n - 1)
        for line, hit in (("pairwise", binomial_p(won, won + lost) <= ALPHA), ("Likert", p <= ALPHA)):
            rows.append({"line": line, "hours": size * seconds / 3600, "probability": float(np.mean(hit))})
    return pd.DataFrame(rows)


def _properties(dialogue: Dialogue) -> dict[str, float]:
    """Return what can be counted of the judged speaker."""
    said = dialogue.said_by_judged()
    words = [word for text in said for word in normalise(text).split()]
    heard = {
        word for speaker, text in dialogue.utterances if speaker != dialogue.judged for word in normalise(text).split()
    }
    return {
        "words": sum(len(text.split()) for text in said),
        "words, normalised": len(words),
        "different words": len(set(words)),
        "share of different words": len(set(words)) / len(words) if words else np.nan,
        "share of words the partner said too": sum(word in heard for word in words) / len(words) if words else np.nan,
        "share of utterances with a question": sum("?" in text for text in said) / len(said) if said else np.nan,
        "utterances that are not a repetition": len(set(said)) / len(said) if said else np.nan,
    }


def metrics_document(
    votes: Votes, dialogues: Sequence[Dialogue], ratings: pd.DataFrame, title: str, *, resamples: int, seed: int
) -> Document:
    """Return how often each property's higher value, and people's own Likert rating, is on the preferred dialogue."""
    rows = [
        {"metric": name, "output": name, "dialogue_id": one.dialogue_id, "system_id": one.system_id, "value": value}
        for one in dialogues
        for name, value in _properties(one).items()
    ]
    own = ratings.assign(metric="the same worker's Likert rating", value=ratings["likert"])
    own["output"] = own["metric"]
    scores = pd.concat([pd.DataFrame(rows), own[["metric", "output", "dialogue_id", "system_id", "value"]]])
    dominant = strongest_first(votes)[0]
    rated = ratings.rename(columns={"likert": "rating"})[["dialogue_id", "system_id", "rating"]]
    found = metric_choices(votes, scores, dominant=dominant, ratings=rated, resamples=resamples, seed=seed)
    return Document(
        "Does what correlates also choose?",
        f"{title}: how often the dialogue with the higher value is the one that its interlocutor ranked higher, and Spearman's "
        "correlation of the value with the interlocutor's Likert rating over all dialogues.",
        [metrics_section(found, dominant)],
        found,
        [
            "Rankings that tie take no part; equal values are half a hit; 0.5 is chance. Intervals are 95 %, by worker",
            f"{len(_properties(dialogues[0])) + 1} properties of what the bot said were tried; words an utterance is left out, "
            "since it orders these dialogues as words does. Normalised: in lower case, without articles and punctuation, as all "
            "others are",
            f"{dominant} is preferred to each other bot: a property that tells only it from the "
            "rest does well over all pairs, and no better than chance without it",
        ],
    )


def judges_document(found: pd.DataFrame) -> Document:
    """Return how recorded judges choose, as :func:`comperdial.judges.recorded_pairs.judged_pairs` summarises them."""
    rows = [
        [
            str(row["title"]),
            str(row["judge"]),
            str(row["against"]),
            f"{row['pairs']:,}",
            *(
                number(row[name]) + interval(row[f"{name}_low"], row[f"{name}_high"])
                for name in ("accuracy", "same", "chose_first")
            ),
        ]
        for row in found.to_dict("records")
    ]
    columns = [
        *(("", name) for name in ("Data", "Judge", "Against")),
        ("Asked", "pairs"),
        *(("Share of choices", name) for name in ("right", "the same in both orders", "first shown")),
    ]
    return Document(
        "Judges of pairs, as others recorded them",
        "Language models that chose between two answers: LLMBar (Zeng et al. 2024) in both orders, LLMFAO (Ustalov 2023) in one.",
        [Section("Judges", columns, rows)],
        found.drop(columns="title"),
        [
            "Right: as the gold label, the crowd's single votes or each pair's majority; a choice that flips with the order is a "
            "tie and counts half. Intervals are 95 %, over pairs; a dash: asked in one order",
            "None of these models was run here. `comperdial judge preferences` asks one (docs/judges.md)",
        ],
    )
