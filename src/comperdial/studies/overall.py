"""The overall ranking: a section per board, sorted by value, with the tasks next to the overall score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from comperdial import schema
from comperdial.core.errors import NothingToShowError
from comperdial.evaluation.overall import OVERALL, Board, Task, read_boards
from comperdial.report.about import About, Inputs, Study
from comperdial.report.correlations import MEASURES
from comperdial.report.plots import style
from comperdial.report.render import NOTES, Section, Table, count, estimate, number
from comperdial.stats.correlation import ALPHA

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WITHIN = {"item": " within contexts", "system": " within systems"}
_KEY = ["board", "metric", "output"]


def overall(inputs: Inputs, study: Study) -> Table:
    """Return each board: the overall ranking, and every task."""
    names = {"ranking": OVERALL, "comparisons": "overall_comparisons", "pairs": "overall_pairs"}
    frames = {name: _read(inputs, name, table) for name, table in names.items()}
    return overall_table(read_boards(inputs["boards"][0]), About.read(inputs["about"]).titles, **frames)


def _read(inputs: Inputs, name: str, table: str) -> pd.DataFrame:
    return pd.concat([schema.read(path, table) for path in inputs[name]], ignore_index=True)


def _labelled(ranking: pd.DataFrame, boards: Mapping[str, Any]) -> pd.DataFrame:
    """Add the labels of outputs as the first column."""
    rows = [{"board": board, **row} for board, entry in boards.items() for row in entry["outputs"]]
    result = ranking.merge(pd.DataFrame(rows)[[*_KEY, "label"]], on=_KEY, validate="many_to_one")
    return result[["label", *ranking]].drop(columns="signature")


def _in_order(boards: Mapping[str, Any], ranking: pd.DataFrame) -> list[str]:
    """Return the names of the ranked boards, human-rated ones first, then by number of tasks."""
    tasks = ranking.groupby("board")["task"].nunique()
    return sorted(
        tasks.index, key=lambda name: (boards[name]["source"] != "human", -tasks[name], [*boards].index(name))
    )


def overall_table(
    boards: Mapping[str, Any],
    titles: Mapping[str, str],
    ranking: pd.DataFrame,
    comparisons: pd.DataFrame,
    pairs: pd.DataFrame | None = None,
) -> Table:
    """Return tables ``overall`` and ``overall_comparisons`` of some boards, with notes on the counts in ``overall_pairs``."""
    tidy, sections, notes = _labelled(ranking, boards), [], list(NOTES["overall"])
    for name in _in_order(boards, ranking):
        board, title = Board.of(name, boards[name]["tasks"]), boards[name]["title"]
        part = tidy[tidy["board"] == name]
        sections.append(Section(title, _section(part, board, titles)))
        if pairs is not None:
            notes += [f"{title}: {note}" for note in _pair_notes(board, pairs[pairs["board"] == name], titles)]
        tests = comparisons[(comparisons["board"] == name) & (comparisons["task"] == OVERALL)]
        ours, fdr, wmt = ((tests[p] <= ALPHA).sum() for p in ("p_adjusted", "p_fdr", "p_wmt"))
        notes.append(
            f"{title}: of {len(tests)} pairs of metrics {ours} differ by our test (Holm over "
            f"{count(tests['p'].count(), 'test')}), {fdr} at a false discovery rate of {ALPHA:.0%}"
            + (f", {wmt} by WMT's" if tests["p_wmt"].notna().any() else "")
        )
        lacking = part[(part["task"] == OVERALL) & part["lacking"].notna()]
        notes += [f"{row['label']}: {row['lacking']}" for row in lacking.to_dict("records")]
    caption = "Metrics that run here, ranked over many data sets as in a shared task."
    return Table("Metrics over all data sets", caption, tidy, sections, notes)


def _section(part: pd.DataFrame, board: Board, titles: Mapping[str, str]) -> pd.DataFrame:
    whole = part[part["task"] == OVERALL].sort_values("value", ascending=False, na_position="last", kind="stable")
    whole = whole.set_index("label").rename_axis("Metric")
    scores = [estimate(row) if pd.notna(row["value"]) else "left out" for row in whole.to_dict("records")]
    columns: dict[tuple[str, str], Any] = {("Overall", "score"): scores}
    for name, head in (("rank", "cluster"), ("rank_wmt", "WMT's")):
        columns["Overall", head] = ["" if pd.isna(rank) else f"#{rank}" for rank in whole[name]]
    for task in board.tasks:
        values = part[part["task"] == task.name].set_index("label")["value"]
        columns[_head(task, titles)] = [number(values[label]) for label in whole.index]
    return pd.DataFrame(columns, index=whole.index)


def _head(task: Task, titles: Mapping[str, str]) -> tuple[str, str]:
    # A data set's title may name its rater, which the board's title already does.
    name = titles.get(task.datasets[0], task.datasets[0]).split(" (rated by")[0]
    return MEASURES[task.measure] + _WITHIN.get(task.grouping or "", ""), name if len(task.datasets) == 1 else "pooled"


def _pair_notes(board: Board, pairs: pd.DataFrame, titles: Mapping[str, str]) -> list[str]:
    """Note how few pairs of systems a task has, and how many of them include a person."""
    notes = []
    for task in board.tasks:
        part = pairs[pairs["task"] == task.name]
        each = ", ".join(f"{titles.get(d, d)} {n}" for d, n in zip(part["dataset"], part["pairs"], strict=True))
        note = (
            f"{task.weight:.0%} of the weight is on {MEASURES[task.measure]} for "
            f"{count(part['pairs'].sum(), 'pair')} of systems ({each}), of which {part['with_human'].sum()} include a human"
        )
        notes += [note] if len(part) else []
    return notes


def overall_figure(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw the overall score of the metrics of each human-rated board, with intervals, best first."""
    boards, entry = read_boards(inputs["boards"][0]), study["entry"]
    ranking = _labelled(_read(inputs, "ranking", OVERALL), boards)
    chosen = [name for name in _in_order(boards, ranking) if boards[name]["source"] == "human"]
    shown = ranking[(ranking["task"] == OVERALL) & ranking["board"].isin(chosen) & ranking["value"].notna()]
    shown = shown.sort_values(["board", "value"], kind="stable")
    if shown.empty:
        raise NothingToShowError("no metric has an overall score on a board that people rated")
    labels = {name: list(shown.loc[shown["board"] == name, "label"])[::-1] for name in chosen}
    rows = [max(1, len(of)) for of in labels.values()]
    with style.drawing():
        size = (7.0, 0.21 * sum(rows) + 0.6 * len(chosen))
        drawn, axes = style.figure_and_axes(len(chosen), 1, size, sharex=True, height_ratios=rows)
        for ax, name in zip(axes.flat, chosen, strict=True):
            part = shown[shown["board"] == name]
            style.forest(ax, part.assign(style=(part["rank"] == 1).fillna(False).astype(int)), labels[name], chance=0.5)
            ax.set_title(f"{boards[name]['title']} ({len(boards[name]['tasks'][0]['datasets'])} sets)", loc="left")
        style.titled(drawn, entry["title"], "about 0.5 is chance, 1 is perfect agreement with people", entry["notes"])
    return drawn, shown
