"""How the study's tables and its figure look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from comperdial.evaluation.continuity import POOLED, WITHIN
from comperdial.evaluation.perspective import DIFFERENCE, INTERLOCUTOR, OTHER_EYE, OUTSIDERS, SIMPLE
from comperdial.report.document import Document, Section, interval, number
from comperdial.report.preferences import probability

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOT_OBTAINABLE = "data not obtainable"
_OF_X = (
    "The paper's conversations are of X (Twitter), published as post ids only: their rows have the "
    "reported value and none of ours"
)
_CHATS = {"chitchat": "Chit-Chat", "convai2": "ConvAI2", "topical_chat": "Topical-Chat"}
_LACKING = {
    "interlocutor": "no score of the interlocutor",
    "outsider": "no score of an outsider",
    "interlocutor+outsider": "no score of the interlocutor and of an outsider",
}
_INTERVALS = "In brackets the 95 % interval, persons resampled; it can be had of what varies within persons only"


def reported_of(reported: pd.DataFrame, table: str) -> dict[tuple[str, str], float]:
    """Return the values of one of the paper's tables by row and column."""
    part = reported[reported["table"] == table]
    return dict(zip(zip(part["row"], part["column"], strict=True), part["value"], strict=True))


def _chat(dataset: object) -> str:
    return _CHATS.get(str(dataset), str(dataset))


def table_1(exchanges: Mapping[str, pd.DataFrame], reported: pd.DataFrame, titles: Mapping[str, str]) -> Document:
    """Render what Hazumi holds, next to what the paper used of it."""
    known = reported_of(reported, "1")
    rows, tidy, dropped = [], [], []
    for dataset, frame in exchanges.items():
        kept = frame[frame["lacks"] == ""]
        for label, part in (("all", frame), ("with all six scores", kept)):
            ours = {
                "dialogues": part["dialogue_id"].nunique(),
                "exchanges": len(part),
                "wizard_characters": part["wizard_characters"].mean(),
                "participant_characters": part["participant_characters"].mean(),
            }
            cells = []
            for name, value in ours.items():
                digits = 0 if name in ("dialogues", "exchanges") else 1
                paper = known[titles[dataset], name]
                cells += [number(value, digits=digits), number(paper, digits=digits)]
                tidy.append(
                    {"dataset": dataset, "part": label, "quantity": name, "value": float(value), "reported": paper}
                )
            rows.append([f"{titles[dataset]}, {label}", *cells])
        for lacks, count in frame.loc[frame["lacks"] != "", "lacks"].value_counts().sort_index().items():
            dropped.append([titles[dataset], _LACKING[str(lacks)], str(count)])
            tidy.append(
                {"dataset": dataset, "part": f"left out: {lacks}", "quantity": "exchanges", "value": float(count)}
            )
        empty = int((frame["participant_characters"] == 0).sum())
        dropped.append([titles[dataset], "kept: the participant says nothing", str(empty)])
    heads = ["dialogues", "exchanges", "wizard's characters", "participant's characters"]
    columns = [("", "Hazumi"), *((head.capitalize(), side) for head in heads for side in ("ours", "paper"))]
    left = [("", "Hazumi"), ("", "Why"), ("Exchanges", "left out")]
    return Document(
        "Hazumi: exchanges and lengths",
        "Dialogues of a wizard in a system's place with a participant, as the files have them and as they "
        "are evaluated, next to "
        "Table 1 of Tsuta et al. 2023.",
        [Section("Exchanges", columns, rows), Section("Left out, by reason", left, dropped)],
        pd.DataFrame(tidy),
        notes=[
            "The paper leaves out 37 and 35 exchanges and says that none has an empty utterance; leaving out "
            "every exchange in which "
            "the participant says nothing would leave 2,209 and 2,538, and lengths unlike the reported ones. "
            "Requiring all six scores "
            "leaves 3 and 4 exchanges more than the paper has; what these lack is not known",
            "Lengths are mean characters of an utterance, the transcript's marks taken off",
        ],
    )


def table_2(
    values: pd.DataFrame, differences: pd.DataFrame, reported: pd.DataFrame, rows: Mapping[str, Any]
) -> Document:
    """Render what predicts the interlocutor's score."""
    known = {name: value for (name, _), value in reported_of(reported, "2").items()}
    cells = {(row["prediction"], row["measure"]): row for row in values.to_dict("records")}
    named = [*rows["models"], *rows["without_text"]]

    def shown(name: str, measure: str) -> str:
        row = cells[name, measure]
        return number(row["value"]) + interval(row["low"], row["high"])

    body = []
    for entry in named:
        name = entry["name"]
        penalty = cells[name, POOLED]["penalty"]
        with_identity = {True: "yes", False: "no"}.get(entry.get("identity"), "–")
        body.append(
            [
                entry["label"],
                with_identity,
                shown(name, POOLED),
                number(known.get(name)),
                shown(name, WITHIN),
                "–" if pd.isna(penalty) else f"{penalty:g}",
            ]
        )
    columns = [
        ("", "Trained on"), ("", "Knows who"), ("Pearson", "ours"), ("Pearson", "paper"), ("Pearson", "within persons"),
        ("Ridge", "penalty"),
    ]  # fmt: skip
    labels = {entry["name"]: entry["label"] + _identity(entry) for entry in named}
    asked = [
        ("interlocutor-identity", "interlocutor"),
        ("interlocutor-identity", "personal-mean"),
        ("interlocutor", "outsiders"),
        ("interlocutor-identity", "outsiders-score"),
    ]
    by_pair = {(r["prediction"], r["other"], r["measure"]): r for r in differences.to_dict("records")}
    compared = []
    for one, other in asked:
        line = [labels[one], labels[other]]
        for measure in (POOLED, WITHIN):
            row = by_pair[one, other, measure]
            apart = number(row["difference"], sign=True) + interval(row["low"], row["high"])
            line += [apart, probability(row["p"])]
        compared.append(line)
    heads = [
        ("", "Prediction"), ("", "less"), ("Pooled", "difference"), ("Pooled", "p"), ("Within persons", "difference"),
        ("Within persons", "p"),
    ]  # fmt: skip
    first = values.iloc[0]
    tidy = values.assign(reported=values["prediction"].map(known).where(values["measure"] == POOLED))
    return Document(
        "Predicting the interlocutor's score on Hazumi",
        f"Pearson's r with the interlocutor's own score over {first['n']:,.0f} test exchanges of "
        f"{first['persons']:.0f} persons (trained on "
        f"{first['train']:,.0f}, penalty chosen on {first['validation']:,.0f}), next to Table 2 of Tsuta et al. 2023.",
        [Section("Pearson's r", columns, body), Section("Differences", heads, compared)],
        tidy,
        notes=[
            "Ours is ridge regression on TF-IDF of characters; the paper fine-tuned a Japanese BERT, on a split "
            "of the same shares whose "
            "exact items are not known. The differences from its values are therefore not one of metrics alone",
            "Within persons: both sides minus the person's mean over their test exchanges. A prediction that "
            "says the same of all "
            "exchanges of a person has no such correlation",
            _INTERVALS,
            "p is two-sided, of Student's t with persons left out one by one, not corrected for the number of "
            "differences",
            f"Variants tried: {len(rows['models'])} models, {len(rows['penalties'])} penalties each; the protocol "
            "was fixed before test "
            "results were seen (docs/continuity.md)",
            "Which of the paper's rows knows who the interlocutor is, is not marked in its text's conversion; it "
            "follows from the text",
        ],
    )


def _identity(entry: Mapping[str, Any]) -> str:
    return {True: ", knows who", False: ""}.get(entry.get("identity", False), "")


def table_2_figure(
    values: pd.DataFrame, rows: Mapping[str, Any], reported: pd.DataFrame
) -> tuple[Figure, pd.DataFrame]:
    """Draw Table 2: pooled and within persons, with intervals, and the paper's values."""
    from comperdial.report.plots.style import INK, QUIET, SERIES, drawing, figure_and_axes, lines_behind, titled

    known = {name: value for (name, _), value in reported_of(reported, "2").items()}
    named = [*rows["models"], *rows["without_text"]]
    labels = [entry["label"] + _identity(entry) for entry in named]
    with drawing():
        drawn, axes = figure_and_axes(1, 2, (7.6, 0.3 * len(named) + 0.7), sharex=True, sharey=True)
        for place, (measure, title) in enumerate(((POOLED, "Over all exchanges"), (WITHIN, "Within persons"))):
            ax = axes[0][place]
            ax.axvline(0, color=QUIET, lw=0.8, zorder=1)
            lines_behind(ax, "x")
            part = values[values["measure"] == measure].set_index("prediction")
            for at, entry in enumerate(named):
                row, y = part.loc[entry["name"]], len(named) - 1 - at
                colour, mark, _ = SERIES[2 if entry in rows["without_text"] else 1 if entry["identity"] else 0]
                if pd.isna(row["value"]):
                    ax.text(
                        0.01, y, "the same for all of a person's exchanges", va="center", fontsize=6.5, color="#555555"
                    )
                    continue
                if pd.notna(row["low"]):
                    ax.plot([row["low"], row["high"]], [y, y], color=colour, lw=1.2, zorder=2)
                ax.plot([row["value"]], [y], mark, color=colour, ms=4.5, zorder=3)
                if measure == POOLED and entry["name"] in known:
                    ax.plot([known[entry["name"]]], [y], "o", mfc="none", mec=INK, ms=5.5, zorder=4)
            ax.set_title(title, loc="left", fontweight="bold")
            ax.set_yticks(range(len(named)), labels[::-1])
            ax.set_ylim(-0.7, len(named) - 0.3)
            ax.set_xlabel("Pearson's r with the interlocutor's score")
        titled(
            drawn,
            "Who is asked",
            "predicting the interlocutor's score on Hazumi",
            "Lines are 95 % intervals, persons resampled. Circles: text alone; squares: text and who the "
            "interlocutor is; triangles: without "
            "text. Open circles: what Tsuta et al. 2023 report of a Japanese BERT.",
        )
    return drawn, values.assign(reported=values["prediction"].map(known).where(values["measure"] == POOLED))


def table_3(reported: pd.DataFrame) -> Document:
    """Render the paper's statistics of its conversations on X."""
    known = reported_of(reported, "3")
    parts = ("train", "validation", "test")
    names = dict.fromkeys(row for row, _ in known)
    body = [[name, NOT_OBTAINABLE, *(f"{known[name, part]:,.10g}" for part in parts)] for name in names]
    columns = [("", "Conversations on X"), ("", "Ours"), *(("Paper", part) for part in parts)]
    return Document(
        "The paper's conversations on X",
        "Table 3 of Tsuta et al. 2023. The data cannot be had; what takes their place is in "
        "docs/continuity-prediction.md.",
        [Section("Conversations", columns, body)],
        reported[reported["table"] == "3"].reset_index(drop=True),
        notes=[_OF_X],
    )


# What of ours is of the paper's kind: data of other people in another language, so that no difference is given.
_ALIKE_4 = {
    "Global majority": ("global majority", "none"),
    "Private majority": ("private majority", "none"),
    "BERT-NSP": ("BERT-NSP", "none"),
    "BERT-RUBER": ("selection", "none"),
    "Deep-AM": ("cosine", "none"),
    "Deep-FM": ("likelihood", "none"),
    "FED": ("FED", "none"),
    "BERT-DCP": ("tfidf", "none"),
    "+ user token": ("tfidf", "token"),
    "+ profile": ("tfidf", "profile"),
    "+ both": ("tfidf", "token+profile"),
}


def table_4(measures: pd.DataFrame | None, reported: pd.DataFrame) -> Document:
    """Render dialogue continuity prediction: ours on other chats, and the paper's on X."""
    known = reported_of(reported, "4")
    names = list(dict.fromkeys(row for row, _ in known))
    body = [[name, NOT_OBTAINABLE, number(known[name, "accuracy"]), number(known[name, "macro_f1"])] for name in names]
    columns = [("", "Evaluator"), ("", "Ours, on X"), ("Paper, on X", "accuracy"), ("Paper, on X", "macro-F1")]
    sections = [Section("X (Twitter)", columns, body)]
    paper = reported[reported["table"] == "4"].assign(source="paper")
    tidy = [paper.rename(columns={"row": "model", "column": "measure", "value": "reported"})]
    notes = [_OF_X]
    if measures is None:
        notes.append("Ours: no results; `snakemake dcp` makes them")
    else:
        here = measures[measures["group"].eq("all") & measures["against"].fillna("").eq("")]
        alike = {pair: name for name, pair in _ALIKE_4.items()}
        for (dataset, split, rate), part in here.groupby(["dataset", "split", "rate"], sort=False):
            cells = {(r["model"], r["user"], r["measure"]): r for r in part.to_dict("records")}
            lines = []
            for model, user in dict.fromkeys((model, user) for model, user, _ in cells):
                found = [cells.get((model, user, measure)) for measure in ("accuracy", "macro_f1", "auc")]
                texts = ["–" if r is None else number(r["value"]) + interval(r["low"], r["high"]) for r in found]
                some = next((r for r in found if r is not None), None)
                counts = [f"{some[name]:,.0f}" for name in ("n", "users")] if some else ["not run", "–"]
                lines.append([model, user, alike.get((model, user), "–"), *texts, *counts])
            heads = [
                ("", "Model"), ("", "User"), ("", "The paper's kind"),
                *(("Ours", name) for name in ("accuracy", "macro-F1", "area")), ("Of", "replies"), ("Of", "users"),
            ]  # fmt: skip
            sections.append(Section(f"{_chat(dataset)}, split by {split}, {rate} rate", heads, lines))
        tidy.append(here.assign(source="ours"))
        notes += [
            f"{_chat(row['dataset'])}{', ' + row['model'] if isinstance(row['model'], str) else ''}: {row['note']}"
            for row in measures[measures["note"].fillna("") != ""].to_dict("records")
        ]
        notes += [
            "Ours are of other people, in English: the paper's kind of model stands beside a row of ours, and no "
            "difference is given",
            "In brackets the 95 % interval, users resampled; more in docs/continuity-prediction.md",
        ]
    return Document(
        "Dialogue continuity prediction",
        "Will the user go on? Table 4 of Tsuta et al. 2023 on X, and ours on chats that can be had.",
        sections,
        pd.concat(tidy, ignore_index=True),
        notes=notes,
    )


_ANNOTATORS = {
    "annotator_1_human": ("Annotator 1", "human"),
    "annotator_1_system": ("Annotator 1", "system"),
    "annotator_2_human": ("Annotator 2", "human"),
    "annotator_2_system": ("Annotator 2", "system"),
}
_AGREEMENT = {"r": "r", "r_within": "r within", "auc": "area", "auc_within": "area within"}


def table_5(liking: pd.DataFrame | None, reported: pd.DataFrame) -> Document:
    """Render whether continuing is liking: ours on chats that can be had, and the paper's on X."""
    known = reported_of(reported, "5")
    names = list(dict.fromkeys(row for row, _ in known))
    body = [[name, NOT_OBTAINABLE, *(number(known[name, column]) for column in _ANNOTATORS)] for name in names]
    columns = [
        ("", "Evaluator"),
        ("", "Ours, on X"),
        *((f"Paper, {who}", whose) for who, whose in _ANNOTATORS.values()),
    ]
    sections = [Section("X (Twitter), Pearson's r", columns, body)]
    paper = reported[reported["table"] == "5"].assign(source="paper")
    tidy = [paper.rename(columns={"row": "predictor", "column": "measure", "value": "reported"})]
    notes = [_OF_X]
    if liking is None:
        notes.append("Ours: no results; `snakemake dcp` makes them")
    else:
        for (dataset, replies, of), part in liking.groupby(["dataset", "replies", "of"], sort=False):
            cells = {(r["predictor"], r["measure"]): r for r in part.to_dict("records")}
            lines = []
            for predictor in dict.fromkeys(part["predictor"]):
                found = [cells.get((predictor, measure)) for measure in _AGREEMENT]
                texts = ["–" if r is None else number(r["value"]) + interval(r["low"], r["high"]) for r in found]
                lines.append([predictor, *texts, f"{part.loc[part['predictor'] == predictor, 'n'].iloc[0]:,.0f}"])
            heads = [("", "Predictor"), *(("Ours", name) for name in _AGREEMENT.values()), ("Ours", "items")]
            sections.append(Section(f"{_chat(dataset)}, replies of a {replies}, {of}", heads, lines))
        tidy.append(liking.assign(source="ours"))
        notes += [
            "Area: the chance that of two replies the one that was liked has the higher score; .5 is chance",
            "Every predictor that was made is shown; nothing is corrected for their number",
            "Within: within the person who rated (r), within one dialogue (area of thumbs). In brackets the 95 % "
            "interval, users "
            "resampled; of Topical-Chat conversations",
        ]
    return Document(
        "Does continuing mean liking?",
        "Agreement of predicted continuing with what the interlocutor said of replies: Table 5 of Tsuta et "
        "al. 2023 on X (two people), "
        "and ours on chats that can be had.",
        sections,
        pd.concat(tidy, ignore_index=True),
        notes=notes,
    )


def perspective_document(found: pd.DataFrame, datasets: Sequence[str], titles: Mapping[str, str]) -> Document:
    """Render how metrics that need no model rank in the interlocutor's eye and in outsiders'."""
    sections, notes = [], []
    for dataset in datasets:
        title = titles[dataset]
        part = found[found["dataset"] == dataset]
        cells = {(row["metric"], row["role"]): row for row in part.to_dict("records")}
        roles = [role for role in (INTERLOCUTOR, OUTSIDERS) if role in set(part["role"])]
        lines = [
            [
                label,
                *(text for role in roles for text in _of_role(cells.get((metric, role)))),
                *_apart(cells, metric, roles),
            ]
            for metric, label in SIMPLE.items()
        ]
        heads: list[tuple[str, str]] = [("", "Metric")]
        heads += [(role.capitalize(), name) for role in roles for name in ("Spearman", "rank")]
        heads += [("Difference", "Spearman"), ("Difference", "p")] if len(roles) == 2 else []
        level = part["level"].iloc[0]
        most = part[part["role"] != DIFFERENCE]["n"].max()
        sections.append(
            Section(f"{title}: {most:,.0f} {'responses' if level == 'turn' else 'dialogues'}", heads, lines)
        )
        if (OTHER_EYE, INTERLOCUTOR) in cells:
            row = cells[OTHER_EYE, INTERLOCUTOR]
            notes.append(
                f"{title}: the interlocutor's rating and the outsiders' mean correlate by {number(row['value'])}"
                f"{interval(row['low'], row['high'])}"
            )
    return Document(
        "Whose eye",
        "Spearman's correlation of metrics that need no model and no reference with the rating of the "
        "interlocutor and with that of "
        "outsiders, and their ranks in each eye (1: the highest correlation).",
        sections,
        found,
        notes=[
            *notes,
            "Where both roles rated the same items the difference is one of perspective; data sets differ in "
            "more than that",
            "Outsiders of Hazumi are five people, of FED five people; of iEval GPT-4, as Zhang et al. 2024 "
            "recorded it, which is no person",
            "Hazumi's interlocutor scored how the exchange felt, its answer included; a metric sees what the "
            "wizard said",
            "In brackets the 95 % interval, interlocutors resampled (of FED: dialogues); p is two-sided, of "
            "Student's t, not corrected for "
            "the number of metrics",
        ],
    )


def _of_role(row: Mapping[Any, Any] | None) -> Sequence[str]:
    if row is None:
        return "–", "–"
    return number(row["value"]) + interval(row["low"], row["high"]), "–" if pd.isna(
        row["rank"]
    ) else f"{row['rank']:.0f}"


def _apart(cells: Mapping[tuple[Any, Any], Mapping[Any, Any]], metric: str, roles: Sequence[str]) -> Sequence[str]:
    row = cells.get((metric, DIFFERENCE))
    if len(roles) < 2:
        return ()
    if row is None:
        return "–", "–"
    return number(row["value"], sign=True) + interval(row["low"], row["high"]), probability(row["p"])
