"""The study of interlocutors (Tsuta et al. 2023): which raters metrics agree with, and whether users continue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from comperdial.evaluation.continuing import BASELINES
from comperdial.evaluation.perspective import DIFFERENCE, INTERLOCUTOR, OTHER_EYE, OUTSIDERS, POOLED, WITHIN
from comperdial.report.about import About, Inputs, Study
from comperdial.report.plots import style
from comperdial.report.render import (
    Section,
    Table,
    arranged,
    as_number,
    count,
    described,
    estimate,
    estimates,
    number,
    small_p,
    spread,
)
from comperdial.training.continuity_tasks import ENCODERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Record = Mapping[Any, Any]


def _paper(inputs: Inputs, table: int) -> pd.DataFrame:
    """Return the values of one of the paper's tables: ``table``, ``row``, ``column``, ``value`` and ``place``."""
    reported = pd.read_csv(inputs["paper"][0])
    return reported[reported["table"] == table].reset_index(drop=True)


def _measures(inputs: Inputs) -> pd.DataFrame:
    return pd.read_csv(inputs["measures"][0]).astype({"against": object}).fillna({"against": ""})


def _wide(
    frame: pd.DataFrame, labels: Mapping[str, str], names: Mapping[str, str], group: str = "Ours"
) -> pd.DataFrame:
    """Return the estimates of a frame, one row per label, one column for each of ``names``, by ``measure``."""
    texts = frame.assign(group=group, text=estimates(frame))
    texts["head"] = frame["measure"].map(names)
    return arranged(texts, labels, ["group", "head"], order=[(group, head) for head in names.values()])


def _of_paper(texts: pd.DataFrame, title: str, label: str) -> Section:
    """Return a section of a table of the paper, with a column that explains why ours is missing."""
    wide = arranged(texts.assign(group="Paper, on X"), {"row": label}, ["group", "column"])
    wide.insert(0, ("", "Ours, on X"), "data not obtainable")
    return Section(title, wide)


def _tidy(paper: pd.DataFrame, ours: pd.DataFrame, **names: str) -> pd.DataFrame:
    """Return reported values and ours in one frame; ``names`` maps our columns to the paper's."""
    theirs = paper.rename(columns={"value": "reported", **{theirs: ours for ours, theirs in names.items()}})
    return pd.concat([theirs.assign(source="paper"), ours.assign(source="ours")], ignore_index=True)


def exchanges(inputs: Inputs, study: Study) -> Table:
    """Return Hazumi's counts, next to those used in the paper."""
    titles, known = About.read(inputs["about"]).titles, _paper(inputs, 1).set_index(["row", "column"])["value"]
    rows: list[tuple[Any, ...]] = []
    for path in inputs["exchanges"]:
        dataset, frame = path.name.removesuffix("_exchanges.csv"), pd.read_csv(path, keep_default_na=False)
        for part, kept in (("all", frame), ("with all six scores", frame[frame["lacks"] == ""])):
            ours: dict[Any, float] = {"dialogues": kept["dialogue_id"].nunique(), "exchanges": len(kept)}
            ours |= kept[["wizard_characters", "participant_characters"]].mean().to_dict()
            rows += [(dataset, part, name, value, known[titles[dataset], name]) for name, value in ours.items()]
        counts = frame["lacks"].value_counts().sort_index().drop("", errors="ignore").add_prefix("left out: ")
        counts["kept: the participant is silent"] = (frame["participant_characters"] == 0).sum()
        rows += [(dataset, part, "exchanges", number, None) for part, number in counts.items()]
    tidy = pd.DataFrame(rows, columns=["dataset", "part", "quantity", "value", "reported"]).astype({"value": float})
    shown = tidy.assign(
        title=tidy["dataset"].map(titles), head=tidy["quantity"].str.replace("_", "'s ").str.capitalize()
    )
    digits = shown["quantity"].str.endswith("characters").astype(int)
    for column in ("value", "reported"):
        shown[column] = [number(value, digits=n) for value, n in zip(shown[column], digits, strict=True)]
    compared, labels = tidy["reported"].notna(), {"title": "Hazumi", "part": "Part"}
    cells = {"ours": lambda row: row["value"], "paper": lambda row: row["reported"]}
    left = shown[~compared].assign(text=shown["value"], head="")
    sections = [
        Section("Exchanges", spread(shown[compared], labels, "head", cells)),
        Section("Left out, by missing score", arranged(left, labels, ["head", "quantity"])),
    ]
    return described(study, tidy, sections)


def prediction(inputs: Inputs, study: Study) -> Table:
    """Return which predictors agree with the interlocutor's score, over all exchanges and within persons."""
    entry, values = study["entry"], _with_reported(inputs)
    rows = pd.DataFrame(entry["rows"]).set_index("name")
    pooled, within = (
        values[values["measure"] == name].set_index("prediction").loc[rows.index] for name in (POOLED, WITHIN)
    )
    body = pd.DataFrame(
        {
            ("", "Trained on"): rows["label"],
            ("", "Knows who"): rows["person"],
            ("Pearson", "ours"): estimates(pooled),
            ("Pearson", "paper"): pooled["reported"].map(number),
            ("Pearson", "within persons"): estimates(within),
            ("Ridge", "penalty"): pooled["penalty"].map("{:g}".format, na_action="ignore"),
        }
    )
    named = _labels(entry["rows"])
    apart = pd.DataFrame(entry["compared"], columns=["prediction", "other"])
    apart = apart.merge(pd.read_csv(inputs["differences"][0]), on=["prediction", "other"])
    apart = apart.assign(
        one=apart["prediction"].map(named),
        minus=apart["other"].map(named),
        group=apart["measure"].map({POOLED: "Pooled", WITHIN: "Within persons"}),
    )
    cells = {"difference": lambda record: estimate(record, "difference", sign=True), "p": small_p()}
    differences = spread(apart, {"one": "Prediction", "minus": "minus"}, "group", cells)
    sizes = {name: f"{values[name].iloc[0]:,.0f}" for name in ("n", "persons", "train", "validation")}
    sections = [Section("Pearson's r", body.reset_index(drop=True)), Section("Differences", differences)]
    return described(study, values, sections, models=rows["person"].notna().sum(), **sizes)


def _with_reported(inputs: Inputs) -> pd.DataFrame:
    """Return the values of score prediction, with the paper's values over all exchanges."""
    values, known = pd.read_csv(inputs["values"][0]), _paper(inputs, 2).set_index("row")["value"]
    return values.assign(reported=values["prediction"].map(known).where(values["measure"] == POOLED))


def _labels(rows: list[Record]) -> dict[str, str]:
    return {row["name"]: row["label"] + (", knows who" if row.get("person") == "yes" else "") for row in rows}


def prediction_figure(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw the predictors of the interlocutor's score, with intervals, and the paper's values."""
    values, entry = _with_reported(inputs), study["entry"]
    labels, marks = _labels(entry["rows"]), {"no": 0, "yes": 1}
    kinds = {row["name"]: marks.get(row.get("person", ""), 2) for row in entry["rows"]}
    shown = values.assign(label=values["prediction"], style=values["prediction"].map(kinds))
    with style.drawing():
        titles = {POOLED: "Over all exchanges", WITHIN: "Within persons"}
        drawn, axes = style.panels(titles.values(), 2, 3.8, 0.3 * len(labels) + 0.7, sharex=True, sharey=True)
        for ax, measure in zip(axes, titles, strict=True):
            own = shown[shown["measure"] == measure]
            y = style.forest(ax, own, list(labels))
            for height in y[own["value"].isna()]:
                text = "the same for all of a person's exchanges"
                ax.text(0.01, height, text, va="center", fontsize=6.5, color="#555555")
            ax.plot(own["reported"], y, "o", mfc="none", mec=style.INK, ms=5.5, zorder=4)
            ax.set_yticks(range(len(labels)), [*labels.values()][::-1])
            ax.set_xlabel("Pearson's r with the interlocutor's score")
        style.titled(drawn, entry["title"], entry["of"], entry["reading"])
    return drawn, values


def conversations(inputs: Inputs, study: Study) -> Table:
    """Return the paper's statistics of its conversations on X."""
    paper = _paper(inputs, 3)
    texts = paper.assign(text=paper["value"].map("{:,.10g}".format))
    return described(study, paper, [_of_paper(texts, "Conversations", "Conversations on X")])


def continuing(inputs: Inputs, study: Study) -> Table:
    """Return the accuracy of continuity prediction: ours on other chats, and the paper's on X."""
    entry, paper, measures = study["entry"], _paper(inputs, 4), _measures(inputs).assign(note="")
    titles = entry["titles"]
    absent = []
    for dataset, part in measures.groupby("dataset", sort=False):
        lacking = [name for name in (*ENCODERS, *BASELINES) if name not in set(part["model"])]
        reasons = entry["not_run"] | dict.fromkeys(lacking, "not run: its model is not on this machine")
        about = {"dataset": dataset, "split": "time", "rate": "balanced", "group": "all", "user": "none", "against": ""}
        absent += [about | {"model": name, "note": why} for name, why in reasons.items()]
    shown = pd.concat([measures[(measures["group"] == "all") & (measures["against"] == "")], pd.DataFrame(absent)])
    alike: dict[Any, str] = {tuple(pair): name for name, pair in entry["alike"].items()}
    names = {"accuracy": "accuracy", "macro_f1": "macro-F1", "auc": "area"}
    texts = paper.assign(text=paper["value"].map(number), column=paper["column"].map(names))
    sections = [_of_paper(texts, "X (Twitter)", "Evaluator")]
    for (chat, split, rate), part in shown.groupby(["dataset", "split", "rate"], sort=False):
        first = part.drop_duplicates(["model", "user"])
        wide = _wide(part, {"model": "Model", "user": "User"}, names)
        wide.insert(0, ("", "The paper's kind"), [alike.get(key) for key in wide.index])
        wide["Of", "replies"] = ["not run" if pd.isna(n) else count(n) for n in first["n"]]
        wide["Of", "users"] = list(first["users"].map(count))
        sections.append(Section(f"{titles[chat]}, split by {split}, {rate} rate", wide))
    notes = [f"{titles[dataset]}: no results" for dataset in entry["chats"] if dataset not in {*measures["dataset"]}]
    notes += [f"{titles[row['dataset']]}, {row['model']}: {row['note']}" for row in absent]
    return described(study, _tidy(paper, shown, model="row", measure="column"), sections, *notes)


def liking(inputs: Inputs, study: Study) -> Table:
    """Return whether predicted continuing agrees with interlocutors' ratings."""
    paper, ours = _paper(inputs, 5), pd.read_csv(inputs["liking"][0])
    heads = paper["column"].str.replace(r"annotator_(\d)_", r"annotator \1, ", regex=True)
    texts = paper.assign(text=paper["value"].map(number), column=heads)
    sections = [_of_paper(texts, "X (Twitter), Pearson's r", "Evaluator")]
    measures = {"r": "r", "r_within": "r within", "auc": "area", "auc_within": "area within"}
    for (dataset, replies, of), part in ours.groupby(["dataset", "replies", "of"], sort=False):
        wide = _wide(part, {"predictor": "Predictor"}, measures)
        wide["Ours", "items"] = list(part.drop_duplicates("predictor")["n"].map(count))
        sections.append(Section(f"{study['entry']['titles'][dataset]}, replies of a {replies}, {of}", wide))
    return described(study, _tidy(paper, ours, predictor="row", measure="column"), sections)


def perspective(inputs: Inputs, study: Study) -> Table:
    """Return the ranks of model-free metrics by the interlocutor's ratings and by outsiders'."""
    titles: Mapping[Any, str] = About.read(inputs["about"]).titles
    values = pd.concat([pd.read_csv(path) for path in inputs["values"]], ignore_index=True)
    sections, notes = [], []
    for dataset, part in values.groupby("dataset", sort=False):
        shown = part[part["metric"] != OTHER_EYE]
        shown = shown.assign(label=shown["metric"].map(study["entry"]["metrics"]), group=shown["role"].str.capitalize())
        roles = {role: shown[shown["role"] == role] for role in (INTERLOCUTOR, OUTSIDERS, DIFFERENCE)}
        by_role: dict[str, Any] = {"Spearman": estimate, "rank": as_number("rank", digits=0)}
        apart = {"Spearman": lambda record: estimate(record, sign=True), "p": small_p()}
        parts = [
            spread(own, {"label": "Metric"}, "group", apart if role == DIFFERENCE else by_role)
            for role, own in roles.items()
            if len(own)
        ]
        wide = pd.concat(parts, axis=1).reindex(pd.Index(study["entry"]["metrics"].values(), name="Metric"))
        items = "responses" if part["level"].iloc[0] == "turn" else "dialogues"
        sections.append(Section(f"{titles[dataset]}: {count(shown['n'].max())} {items}", wide))
        notes += [
            f"{titles[dataset]}: the interlocutor's rating and the outsiders' mean correlate at {estimate(row)}"
            for row in part[part["metric"] == OTHER_EYE].to_dict("records")
        ]
    return described(study, values, sections, *notes)


def history(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw the accuracy against the number of the user's conversations in training."""
    entry = study["entry"]
    groups, kinds, fewest = entry["groups"], entry["users"], entry["fewest"]
    wanted = "rate == 'balanced' and model == 'tfidf' and measure == 'accuracy' and against == '' and value == value"
    wanted += " and group in @groups and user in @kinds and n >= @fewest"
    panels = pd.DataFrame(entry["panels"]).rename(columns={"title": "panel"})
    shown = _measures(inputs).query(wanted).merge(panels, on=["dataset", "split"])
    shown = shown[["panel", "group", "user", "value", "low", "high", "n", "users"]]
    titles = [title for title in panels["panel"] if title in {*shown["panel"]}]
    users = [user for user in kinds if user in {*shown["user"]}]
    with style.drawing():
        figure, axes = style.panels(titles, len(titles), 7.6 / len(titles), 2.6, sharey=True)
        for ax, title in zip(axes, titles, strict=True):
            part = shown[shown["panel"] == title]
            sizes = part.drop_duplicates("group").set_index("group")["n"].reindex(groups).dropna()
            ax.grid(axis="y")
            ax.axhline(0.5, color=style.QUIET, lw=0.8, zorder=1)
            for at, (user, look) in enumerate(zip(users, style.SERIES, strict=False)):
                line = part[part["user"] == user].set_index("group").reindex(sizes.index)
                places = np.arange(len(sizes)) + (at - (len(users) - 1) / 2) * 0.17
                style.columns_of_marks(ax, places, line, **look | {"ls": ""})
            ax.set_xticks(np.arange(len(sizes)), [f"{group}\n{count(n)}" for group, n in sizes.items()])
            ax.set_ylim(0.35, 1.02)
            ax.set_xlim(-0.6, len(sizes) - 0.4)
            ax.set_xlabel("The user's conversations in training\nReplies")
        axes[0].set_ylabel("Accuracy")
        handles = [
            style.handle(kinds[user], **look | {"ls": "-"}) for user, look in zip(users, style.SERIES, strict=False)
        ]
        style.titled(figure, entry["title"], entry["of"], entry["reading"].format(few=fewest), handles=handles)
    return figure, shown
