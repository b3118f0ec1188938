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
from comperdial.report.plots import style
from comperdial.report.preferences import probability
from comperdial.report.render import Section, Table, as_number, count, described, estimate, number, spread
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
    result = pd.concat([pd.read_csv(path) for path in paths], ignore_index=True)
    return result.assign(against=result["against"].astype(object).fillna("")) if "against" in result else result


def _wide(
    frame: pd.DataFrame,
    rows: Sequence[str],
    column: str,
    names: Mapping[Any, str],
    write: Callable[[Mapping[Any, Any]], str] = estimate,
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
        "difference": lambda record: estimate(record, "difference", sign=True),
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
    order, labels = [row["name"] for row in rows], list(_labels(rows).values())
    kinds = {row["name"]: {"no": 0, "yes": 1}.get(row.get("person", ""), 2) for row in rows}
    shown = values.assign(label=values["prediction"], style=values["prediction"].map(kinds))
    with style.drawing():
        titles = {POOLED: "Over all exchanges", WITHIN: "Within persons"}
        drawn, axes = style.panels(titles.values(), 2, 3.8, 0.3 * len(rows) + 0.7, sharex=True, sharey=True)
        for ax, measure in zip(axes, titles, strict=True):
            own = shown[shown["measure"] == measure]
            style.forest(ax, own, order)
            y = style.heights(own["label"], order)
            for height in y[own["value"].isna()]:
                text = "the same for all of a person's exchanges"
                ax.text(0.01, height, text, va="center", fontsize=6.5, color="#555555")
            ax.plot(own["reported"], y, "o", mfc="none", mec=style.INK, ms=5.5, zorder=4)
            style.row_labels(ax, labels)
            ax.set_xlabel("Pearson's r with the interlocutor's score")
        entry = study["entry"]
        style.titled(drawn, entry["title"], entry["of"], entry["reading"])
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
        cells = {"Spearman": estimate, "rank": as_number("rank", digits=0)}
        wide = spread(roles, {"label": "Metric"}, "group", cells).reindex(rows)
        if roles["role"].nunique() == 2:
            tests = {
                "Spearman": lambda record: estimate(record, sign=True),
                "p": lambda record: probability(record["p"]),
            }
            wide = wide.join(spread(apart, {"label": "Metric"}, "group", tests))
        items = "responses" if part["level"].iloc[0] == "turn" else "dialogues"
        sections.append(Section(f"{titles[dataset]}: {count(shown['n'].max())} {items}", wide))
        notes += [
            f"{titles[dataset]}: the interlocutor's rating and the outsiders' mean correlate by {estimate(row)}"
            for row in part[part["metric"] == OTHER_EYE].to_dict("records")
        ]
    made = described(study, values, sections)
    return replace(made, notes=[*notes, *made.notes])


# Users' conversations in training; those of none are cold. Groups of fewer replies are not drawn.
_GROUPS, _FEWEST = ("0", "1", "2-4", "5-9", "10+"), 20
_USERS = {"none": "text alone", "token": "and user token", "history": "and history", "profile": "and profile"}


def history(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw the accuracy against the number of the user's conversations in training."""
    panels = pd.DataFrame(study["entry"]["panels"]).rename(columns={"title": "panel"})
    wanted = "rate == 'balanced' and model == 'tfidf' and measure == 'accuracy' and against == ''"
    result = _read(inputs["measures"]).query(wanted).merge(panels, on=["dataset", "split"])
    kept = (
        result["group"].isin(_GROUPS) & result["user"].isin(_USERS) & result["value"].notna() & (result["n"] >= _FEWEST)
    )
    shown = result.loc[kept, ["panel", "group", "user", "value", "low", "high", "n", "users"]].reset_index(drop=True)
    titles = [title for title in panels["panel"] if title in {*shown["panel"]}]
    users = [(user, *style.SERIES[at]) for at, user in enumerate(_USERS) if user in {*shown["user"]}]
    with style.drawing():
        figure, axes = style.panels(titles, len(titles), 7.6 / len(titles), 2.6, sharey=True)
        for ax, title in zip(axes, titles, strict=True):
            part = shown[shown["panel"] == title]
            sizes = part.drop_duplicates("group").set_index("group")["n"].reindex(_GROUPS).dropna()
            style.lines_behind(ax, "y")
            ax.axhline(0.5, color=style.QUIET, lw=0.8, zorder=1)
            for at, (user, colour, mark, _) in enumerate(users):
                line = part[part["user"] == user].set_index("group").reindex(sizes.index)
                places = np.arange(len(sizes)) + (at - (len(users) - 1) / 2) * 0.17
                ax.vlines(places, line["low"], line["high"], color=colour, lw=1.1, zorder=2)
                ax.plot(places, line["value"], mark, color=colour, ms=4, zorder=3)
            ax.set_xticks(np.arange(len(sizes)), [f"{group}\n{count(n)}" for group, n in sizes.items()])
            ax.set_ylim(0.35, 1.02)
            ax.set_xlim(-0.6, len(sizes) - 0.4)
            ax.set_xlabel("The user's conversations in training\nReplies")
        axes[0].set_ylabel("Accuracy")
        handles = [style.handle(_USERS[user], color=colour, marker=mark) for user, colour, mark, _ in users]
        entry = study["entry"]
        style.titled(figure, entry["title"], entry["of"], entry["reading"].format(few=_FEWEST), handles=handles)
    return figure, shown
