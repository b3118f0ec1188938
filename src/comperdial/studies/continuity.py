"""The study of interlocutors (Tsuta et al. 2023): whose eye a metric agrees with, and whether users go on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from comperdial.evaluation.continuing import BASELINES
from comperdial.evaluation.perspective import DIFFERENCE, INTERLOCUTOR, OTHER_EYE, OUTSIDERS, POOLED, SIMPLE, WITHIN
from comperdial.report.about import About, Inputs, Study
from comperdial.report.plots.style import INK, QUIET, SERIES, drawing, figure_and_axes, lines_behind, titled
from comperdial.report.preferences import probability, with_interval
from comperdial.report.render import Section, Table, count, described, number, spread
from comperdial.training.continuity_tasks import ENCODERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NOT_OBTAINABLE = "data not obtainable"
_CHATS: Mapping[Any, str] = {"chitchat": "Chit-Chat", "convai2": "ConvAI2", "topical_chat": "Topical-Chat"}
_LENGTHS = {"wizard_characters": "Wizard's characters", "participant_characters": "Participant's characters"}
_LACKING = {
    "interlocutor": "no score of the interlocutor",
    "outsider": "no score of an outsider",
    "interlocutor+outsider": "no score of the interlocutor and of an outsider",
}


def _paper(inputs: Inputs, table: int) -> pd.DataFrame:
    """Return the values of a table of the paper: ``table``, ``row``, ``column``, ``value`` and ``place``."""
    reported = pd.read_csv(inputs["paper"][0])
    return reported[reported["table"] == table].reset_index(drop=True)


def _read(paths: Sequence[Path]) -> pd.DataFrame:
    found = pd.concat([pd.read_csv(path) for path in paths], ignore_index=True)
    return found.assign(against=found["against"].astype(object).fillna("")) if "against" in found else found


def _wide(
    frame: pd.DataFrame,
    rows: Sequence[str],
    column: str,
    names: Mapping[Any, str],
    write: Callable[[Mapping[Any, Any]], str] = with_interval,
) -> pd.DataFrame:
    """Return the records of a frame as texts: a row for each value of ``rows``, in order, a column for each of ``names``."""
    written = frame.assign(text=[write(record) for record in frame.to_dict("records")])
    order = frame.drop_duplicates([*rows]).set_index([*rows]).index
    return (
        written.pivot(index=[*rows], columns=column, values="text")
        .reindex(order, columns=[*names])
        .rename(columns=names)
    )


def _of_paper(paper: pd.DataFrame, label: str, names: Mapping[str, str], write: Any = number) -> pd.DataFrame:  # noqa: ANN401
    """Return a table of the paper, beside a column that says why there is none of ours."""
    wide = _wide(paper, ["row"], "column", names, lambda record: write(record["value"])).rename_axis(label)
    wide = pd.concat({"Paper, on X": wide}, axis=1)
    wide.insert(0, ("", "Ours, on X"), _NOT_OBTAINABLE)
    return wide


def exchanges(inputs: Inputs, study: Study) -> Table:
    """Show what Hazumi holds, next to what the paper used of it."""
    titles = About.read(inputs["about"]).titles
    known = _paper(inputs, 1).set_index(["row", "column"])["value"]
    records, dropped = [], []
    for path in inputs["exchanges"]:
        dataset = path.name.removesuffix("_exchanges.csv")
        title, frame = titles[dataset], pd.read_csv(path, keep_default_na=False)
        for part, kept in (("all", frame), ("with all six scores", frame[frame["lacks"] == ""])):
            ours: dict[str, float] = {"dialogues": kept["dialogue_id"].nunique(), "exchanges": len(kept)}
            ours |= {name: kept[name].mean() for name in _LENGTHS}
            about = {"dataset": dataset, "part": part}
            records += [
                about | {"quantity": name, "value": value, "reported": known[title, name]}
                for name, value in ours.items()
            ]
        for lacks, some in frame.loc[frame["lacks"] != "", "lacks"].value_counts().sort_index().items():
            dropped.append((title, _LACKING[str(lacks)], str(some)))
            records.append({"dataset": dataset, "part": f"left out: {lacks}", "quantity": "exchanges", "value": some})
        dropped.append((title, "kept: the participant says nothing", str((frame["participant_characters"] == 0).sum())))
    tidy = pd.DataFrame(records).astype({"value": float})
    counted = tidy[tidy["reported"].notna()]
    shown = counted.assign(
        row=counted["dataset"].map(titles) + ", " + counted["part"],
        head=counted["quantity"].map(_LENGTHS).fillna(counted["quantity"].str.capitalize()),
        digits=counted["quantity"].isin([*_LENGTHS]).astype(int),
    )
    cells = {
        "ours": lambda record: number(record["value"], digits=record["digits"]),
        "paper": lambda record: number(record["reported"], digits=record["digits"]),
    }
    left = pd.DataFrame(dropped, columns=["Hazumi", "Why", "Exchanges left out"])
    sections = [
        Section("Exchanges", spread(shown, {"row": "Hazumi"}, "head", cells)),
        Section("Left out, by reason", left.set_index(["Hazumi", "Why"])),
    ]
    return described(study, tidy, sections)


def prediction(inputs: Inputs, study: Study) -> Table:
    """Show what predicts the interlocutor's score, over all exchanges and within persons."""
    entry, values = study["entry"], _with_reported(inputs)
    rows = pd.DataFrame(entry["rows"]).set_index("name")
    pooled = values[values["measure"] == POOLED].set_index("prediction").reindex(rows.index)
    shown = _wide(values, ["prediction"], "measure", {POOLED: "ours", WITHIN: "within persons"}).reindex(rows.index)
    shown.insert(1, "paper", pooled["reported"].map(number))
    body = pd.concat({"Pearson": shown}, axis=1)
    body["Ridge", "penalty"] = pooled["penalty"].map("{:g}".format, na_action="ignore")
    labels = [rows["label"], rows["person"].fillna("–")]
    body = body.set_index(pd.MultiIndex.from_arrays(labels, names=["Trained on", "Knows who"]))
    compared = pd.DataFrame(entry["compared"], columns=["prediction", "other"])
    apart = compared.merge(pd.read_csv(inputs["differences"][0]), on=["prediction", "other"])
    named = _labels(entry["rows"])
    apart = apart.assign(
        one=apart["prediction"].map(named),
        minus=apart["other"].map(named),
        group=apart["measure"].map({POOLED: "Pooled", WITHIN: "Within persons"}),
    )
    cells = {
        "difference": lambda record: with_interval(record, "difference", sign=True),
        "p": lambda record: probability(record["p"]),
    }
    differences = spread(apart, {"one": "Prediction", "minus": "minus"}, "group", cells)
    sizes = {name: f"{values[name].iloc[0]:,.0f}" for name in ("n", "persons", "train", "validation")}
    sections = [Section("Pearson's r", body), Section("Differences", differences)]
    return described(study, values, sections, models=rows["person"].notna().sum(), **sizes)


def _with_reported(inputs: Inputs) -> pd.DataFrame:
    """Return the values of score prediction, with what the paper reports of those over all exchanges."""
    values, known = pd.read_csv(inputs["values"][0]), _paper(inputs, 2).set_index("row")["value"]
    return values.assign(reported=values["prediction"].map(known).where(values["measure"] == POOLED))


def _labels(rows: Sequence[Mapping[str, str]]) -> dict[str, str]:
    return {row["name"]: row["label"] + (", knows who" if row.get("person") == "yes" else "") for row in rows}


def prediction_figure(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw what predicts the interlocutor's score, with intervals, and the paper's values."""
    values, rows = _with_reported(inputs), study["entry"]["rows"]
    places = {row["name"]: len(rows) - 1 - at for at, row in enumerate(rows)}
    style = {row["name"]: SERIES[{"no": 0, "yes": 1}.get(row.get("person", ""), 2)] for row in rows}
    with drawing():
        drawn, axes = figure_and_axes(1, 2, (7.6, 0.3 * len(rows) + 0.7), sharex=True, sharey=True)
        for ax, measure, title in zip(axes[0], (POOLED, WITHIN), ("Over all exchanges", "Within persons"), strict=True):
            ax.axvline(0, color=QUIET, lw=0.8, zorder=1)
            lines_behind(ax, "x")
            for row in values[values["measure"] == measure].to_dict("records"):
                y, (colour, mark, _) = places[row["prediction"]], style[row["prediction"]]
                if pd.isna(row["value"]):
                    text = "the same for all of a person's exchanges"
                    ax.text(0.01, y, text, va="center", fontsize=6.5, color="#555555")
                ax.plot([row["low"], row["high"]], [y, y], color=colour, lw=1.2, zorder=2)
                ax.plot([row["value"]], [y], mark, color=colour, ms=4.5, zorder=3)
                ax.plot([row["reported"]], [y], "o", mfc="none", mec=INK, ms=5.5, zorder=4)
            ax.set_title(title, loc="left", fontweight="bold")
            ax.set_yticks(list(places.values()), list(_labels(rows).values()))
            ax.set_ylim(-0.7, len(rows) - 0.3)
            ax.set_xlabel("Pearson's r with the interlocutor's score")
        titled(
            drawn,
            "Who is asked",
            "predicting the interlocutor's score on Hazumi",
            "Lines are 95 % intervals, persons resampled. Circles: text alone; squares: text and who the interlocutor is; "
            "triangles: without text. Open circles: what Tsuta et al. 2023 report of a Japanese BERT.",
        )
    return drawn, values


def conversations(inputs: Inputs, study: Study) -> Table:
    """Show the paper's statistics of its conversations on X."""
    paper = _paper(inputs, 3)
    names = {name: name for name in ("train", "validation", "test")}
    shown = _of_paper(paper, "Conversations on X", names, "{:,.10g}".format)
    return described(study, paper, [Section("Conversations", shown)])


def continuing(inputs: Inputs, study: Study) -> Table:
    """Show how well it is predicted whether a user goes on: ours on other chats, and the paper's on X."""
    entry, paper, measures = study["entry"], _paper(inputs, 4), _read(inputs["measures"]).assign(note="")
    sections = [Section("X (Twitter)", _of_paper(paper, "Evaluator", {"accuracy": "accuracy", "macro_f1": "macro-F1"}))]
    absent = []
    for dataset, part in measures.groupby("dataset", sort=False):
        lacking = [name for name in (*ENCODERS, *BASELINES) if name not in set(part["model"])]
        reasons = entry["not_run"] | dict.fromkeys(lacking, "not run: its model is not on this machine")
        about = {"dataset": dataset, "split": "time", "rate": "balanced", "group": "all", "user": "none", "against": ""}
        absent += [about | {"model": name, "note": why} for name, why in reasons.items()]
    shown = pd.concat([measures[(measures["group"] == "all") & (measures["against"] == "")], pd.DataFrame(absent)])
    alike: dict[Any, str] = {tuple(pair): name for name, pair in entry["alike"].items()}
    names = {"accuracy": "accuracy", "macro_f1": "macro-F1", "auc": "area"}
    for (chat, split, rate), part in shown.groupby(["dataset", "split", "rate"], sort=False):
        first = part.drop_duplicates(["model", "user"]).set_index(["model", "user"])
        wide = pd.concat({"Ours": _wide(part, ["model", "user"], "measure", names).where(first["n"].notna())}, axis=1)
        wide.insert(0, ("", "The paper's kind"), [alike.get(key) for key in wide.index])
        wide["Of", "replies"] = ["not run" if pd.isna(n) else count(n) for n in first["n"]]
        wide["Of", "users"] = first["users"].map(count)
        wide = wide.rename_axis(["Model", "User"])
        sections.append(Section(f"{_CHATS[chat]}, split by {split}, {rate} rate", wide))
    notes = [f"{_CHATS[dataset]}: no results" for dataset in entry["chats"] if dataset not in {*measures["dataset"]}]
    notes += [f"{_CHATS[row['dataset']]}, {row['model']}: {row['note']}" for row in absent]
    made = described(study, _tidy(paper, shown, model="row", measure="column"), sections)
    return replace(made, notes=[made.notes[0], *notes, *made.notes[1:]])


def _tidy(paper: pd.DataFrame, ours: pd.DataFrame, **names: str) -> pd.DataFrame:
    """Return reported values and ours in one frame; ``names`` gives each of our columns the paper's."""
    theirs = paper.rename(columns={"value": "reported", **{theirs: ours for ours, theirs in names.items()}})
    return pd.concat([theirs.assign(source="paper"), ours.assign(source="ours")], ignore_index=True)


def liking(inputs: Inputs, study: Study) -> Table:
    """Show whether predicted continuing agrees with what interlocutors say."""
    paper, ours = _paper(inputs, 5), pd.read_csv(inputs["liking"][0])
    names = {f"annotator_{n}_{kind}": f"annotator {n}, {kind}" for n in (1, 2) for kind in ("human", "system")}
    sections = [Section("X (Twitter), Pearson's r", _of_paper(paper, "Evaluator", names))]
    measures = {"r": "r", "r_within": "r within", "auc": "area", "auc_within": "area within"}
    for (dataset, replies, of), part in ours.groupby(["dataset", "replies", "of"], sort=False):
        wide = pd.concat({"Ours": _wide(part, ["predictor"], "measure", measures)}, axis=1).rename_axis("Predictor")
        wide["Ours", "items"] = part.drop_duplicates("predictor").set_index("predictor")["n"].map(count)
        sections.append(Section(f"{_CHATS[dataset]}, replies of a {replies}, {of}", wide))
    return described(study, _tidy(paper, ours, predictor="row", measure="column"), sections)


def perspective(inputs: Inputs, study: Study) -> Table:
    """Show how metrics that need no model rank by the interlocutor's ratings and by outsiders'."""
    titles: Mapping[Any, str] = About.read(inputs["about"]).titles
    values = _read(inputs["values"])
    rows = pd.Index(SIMPLE.values(), name="Metric")
    sections, notes = [], []
    for dataset, part in values.groupby("dataset", sort=False):
        shown = part[part["metric"] != OTHER_EYE]
        shown = shown.assign(label=shown["metric"].map(SIMPLE), group=shown["role"].str.capitalize())
        by_role = shown.sort_values("role", key=lambda role: role.map([INTERLOCUTOR, OUTSIDERS, DIFFERENCE].index))
        roles, apart = (by_role[(by_role["role"] == DIFFERENCE) == is_apart] for is_apart in (False, True))
        cells = {"Spearman": with_interval, "rank": lambda record: number(record["rank"], digits=0)}
        wide = spread(roles, {"label": "Metric"}, "group", cells).reindex(rows)
        if roles["role"].nunique() == 2:
            tests = {
                "Spearman": lambda record: with_interval(record, sign=True),
                "p": lambda record: probability(record["p"]),
            }
            wide = wide.join(spread(apart, {"label": "Metric"}, "group", tests))
        items = "responses" if part["level"].iloc[0] == "turn" else "dialogues"
        sections.append(Section(f"{titles[dataset]}: {count(shown['n'].max())} {items}", wide))
        notes += [
            f"{titles[dataset]}: the interlocutor's rating and the outsiders' mean correlate by {with_interval(row)}"
            for row in part[part["metric"] == OTHER_EYE].to_dict("records")
        ]
    made = described(study, values, sections)
    return replace(made, notes=[*notes, *made.notes])


# Users' conversations in training; those of none are cold. Groups of fewer replies are not drawn.
_GROUPS, _FEWEST = ("0", "1", "2-4", "5-9", "10+"), 20
_USERS = {"none": "text alone", "token": "and user token", "history": "and history", "profile": "and profile"}


def history(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw the accuracy against the number of the user's conversations in training."""
    from matplotlib.lines import Line2D

    panels = pd.DataFrame(study["entry"]["panels"]).rename(columns={"title": "panel"})
    wanted = "rate == 'balanced' and model == 'tfidf' and measure == 'accuracy' and against == ''"
    found = _read(inputs["measures"]).query(wanted).merge(panels, on=["dataset", "split"])
    kept = found["group"].isin(_GROUPS) & found["user"].isin(_USERS) & found["value"].notna() & (found["n"] >= _FEWEST)
    shown = found.loc[kept, ["panel", "group", "user", "value", "low", "high", "n", "users"]].reset_index(drop=True)
    titles = [title for title in panels["panel"] if title in {*shown["panel"]}]
    users = {user: (at, label) for at, (user, label) in enumerate(_USERS.items()) if user in {*shown["user"]}}
    with drawing():
        figure, axes = figure_and_axes(1, len(titles), (7.6, 2.6), sharey=True)
        for ax, title in zip(axes.flat, titles, strict=True):
            part = shown[shown["panel"] == title]
            groups = [group for group in _GROUPS if group in {*part["group"]}]
            lines_behind(ax, "y")
            ax.axhline(0.5, color=QUIET, lw=0.8, zorder=1)
            for user, (at, _) in users.items():
                line = part[part["user"] == user].set_index("group").reindex(groups)
                places = np.arange(len(groups)) + (at - (len(users) - 1) / 2) * 0.17
                ax.vlines(places, line["low"], line["high"], color=SERIES[at][0], lw=1.1, zorder=2)
                ax.plot(places, line["value"], SERIES[at][1], color=SERIES[at][0], ms=4, zorder=3)
            sizes = part.drop_duplicates("group").set_index("group")["n"]
            ax.set_xticks(np.arange(len(groups)), [f"{group}\n{count(sizes[group])}" for group in groups])
            ax.set_ylim(0.35, 1.02)
            ax.set_xlim(-0.6, len(groups) - 0.4)
            ax.set_title(title, loc="left", fontweight="bold")
            ax.set_xlabel("The user's conversations in training\nReplies")
        axes.flat[0].set_ylabel("Accuracy")
        titled(
            figure,
            "Will the user go on",
            "accuracy by the amount of the user's history",
            "Balanced test replies, TF-IDF; lines are 95 % intervals, users resampled. 0: cold users, of whom training knows "
            f"nothing. Under each group the number of its replies; groups of fewer than {_FEWEST} are left out. The line at "
            "0.5 is chance.",
            handles=[
                Line2D([], [], color=SERIES[at][0], marker=SERIES[at][1], ls="-", ms=4, label=label)
                for at, label in users.values()
            ],
        )
    return figure, shown
