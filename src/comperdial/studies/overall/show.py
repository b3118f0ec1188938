"""How the overall ranking looks: a section for each board, sorted by value, with the tasks beside the overall score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from comperdial.evaluation.overall import OVERALL, Board, Task
from comperdial.report.document import Document, Section, number, number_of
from comperdial.report.tables import COEFFICIENT_NAMES, interval
from comperdial.stats.correlation import ALPHA

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEASURES = COEFFICIENT_NAMES | {"acc_eq": "acc_eq", "accuracy": "accuracy", "spa": "SPA"}
NOTES = (
    "Overall: the weighted mean of the tasks. Every kind of task weighs the same, and in it every task; a correlation r "
    "counts as (1 + r) / 2, as in the official tables of the WMT metrics tasks. Tasks are shown on their own scales",
    f"#1 is the first cluster by our test at {ALPHA}, corrected for all pairs (Holm): would the difference be there with other "
    "systems and dialogues of their kind? In brackets the 95 % interval for the same question. The next column has WMT's "
    "cluster, one-sided and uncorrected, scores swapped response by response: is the difference chance, given just these "
    "systems and dialogues? It rejects far more often where metrics favour whole systems (docs/validation.md)",
    "acc_eq: of two responses to one context, the share ordered as people order them, ties included, with the threshold of a tie "
    "chosen on the data: the metric's best case. accuracy: the same of pairs of systems' means, all data sets' pairs together; "
    "intervals and our test take systems alone as drawn there, and dialogues as given",
    "A metric without scores on a task is left out of the overall ranking, never given 0",
)


def labels_of(boards: Mapping[str, Any]) -> dict[tuple[str, str, str], str]:
    """Return the label of each output by board, metric and output."""
    return {
        (board, row["metric"], row["output"]): row["label"]
        for board, entry in boards.items()
        for row in entry["outputs"]
    }


def in_order(boards: Mapping[str, Any]) -> list[str]:
    """Return the names of boards, those that people rated first, then those with more tasks."""
    return sorted(
        boards, key=lambda name: (boards[name]["source"] != "human", -len(Board.of(name, boards[name]["tasks"]).tasks))
    )


def _head(task: Task, titles: Mapping[str, str]) -> tuple[str, str]:
    within = {"item": " within contexts", "system": " within systems"}.get(task.grouping or "", "")
    # Who rated is the board's to say: a set's title says whose ratings it has by itself.
    name = (
        titles.get(task.datasets[0], task.datasets[0]).split(" (rated by")[0] if len(task.datasets) == 1 else "pooled"
    )
    return MEASURES[task.measure] + within, name


def _rank(value: int | None) -> str:
    return "" if value is None or pd.isna(value) else f"#{int(value)}"


def _section(
    frame: pd.DataFrame, board: Board, title: str, labels: Mapping[Any, str], titles: Mapping[str, str]
) -> Section:
    value = {(row["task"], row["metric"], row["output"]): row["value"] for row in frame.to_dict("records")}
    whole = frame[frame["task"] == OVERALL].sort_values("value", ascending=False, na_position="last", kind="stable")
    columns = [
        ("", "Metric"), ("Overall", "score"), ("Overall", "cluster"), ("Overall", "WMT's"),
        *(_head(task, titles) for task in board.tasks),
    ]  # fmt: skip
    rows = []
    for row in whole.to_dict("records"):
        name = str(row["metric"]), str(row["output"])
        score = number(row["value"]) + interval(row["low"], row["high"]) if pd.notna(row["value"]) else "left out"
        cells = [number(value[task.name, *name]) for task in board.tasks]
        rows.append([labels[board.name, *name], score, _rank(row["rank"]), _rank(row["rank_wmt"]), *cells])
    return Section(title, columns, rows)


def overall_document(
    frame: pd.DataFrame,
    tests: pd.DataFrame,
    titles: Mapping[str, str],
    boards: Mapping[str, Any],
    pairs: pd.DataFrame | None = None,
) -> Document:
    """Render tables ``overall`` and ``overall_comparisons`` of some boards, and what ``overall_pairs`` says of their tasks."""
    labels = labels_of(boards)
    sections, notes = [], list(NOTES)
    for name in in_order(boards):
        entry = boards[name]
        part, of_tests = frame[frame["board"] == name], tests[(tests["board"] == name) & (tests["task"] == OVERALL)]
        sections.append(_section(part, Board.of(name, entry["tasks"]), entry["title"], labels, titles))
        if pairs is not None:
            notes += _pair_notes(Board.of(name, entry["tasks"]), entry["title"], pairs[pairs["board"] == name], titles)
        tested = number_of(int(of_tests["p"].notna().sum()), "test")
        notes.append(
            f"{entry['title']}: of {len(of_tests)} pairs of metrics {int((of_tests['p_adjusted'] <= ALPHA).sum())} differ by our "
            f"test (Holm over {tested}), {int((of_tests['p_fdr'] <= ALPHA).sum())} at a false discovery rate of {ALPHA:.0%}"
            + (f", {int((of_tests['p_wmt'] <= ALPHA).sum())} by WMT's" if of_tests["p_wmt"].notna().any() else "")
        )
        notes += [
            f"{labels[name, str(row['metric']), str(row['output'])]}: {row['lacking']}"
            for row in part[(part["task"] == OVERALL) & part["lacking"].notna()].to_dict("records")
        ]
    tidy = frame.assign(
        label=[labels[key] for key in zip(frame["board"], frame["metric"], frame["output"], strict=True)]
    ).drop(columns="signature")
    return Document(
        title="Metrics over all data sets",
        caption="One ranking of what runs here over many data sets, each a task or several: the shared-task table for dialogue.",
        sections=sections,
        tidy=tidy[["label", *(column for column in tidy if column != "label")]],
        notes=notes,
    )


def _pair_notes(board: Board, title: str, pairs: pd.DataFrame, titles: Mapping[str, str]) -> list[str]:
    """Say how few pairs of systems a task rests on, and in how many of them one is a person."""
    weights = {task.name: weight for task, weight in zip(board.tasks, board.weights, strict=True)}
    measures = {task.name: MEASURES[task.measure] for task in board.tasks}
    notes = []
    for task, of in pairs.groupby("task", sort=False):
        each = ", ".join(f"{titles[name]} {count}" for name, count in zip(of["dataset"], of["pairs"], strict=True))
        notes.append(
            f"{title}: {weights[str(task)]:.0%} of the weight is that of {measures[str(task)]} on "
            f"{number_of(int(of['pairs'].sum()), 'pair')} of systems ({each}), of which {of['with_human'].sum()} include a human"
        )
    return notes


def draw_overall(frame: pd.DataFrame, boards: Mapping[str, Any]) -> tuple[Figure, pd.DataFrame]:
    """Draw the overall score of the metrics of each board that people rated, with intervals, the best first."""
    from comperdial.report.plots.style import QUIET, SERIES, drawing, figure_and_axes, lines_behind, titled

    labels = labels_of(boards)
    chosen = [name for name in in_order(boards) if boards[name]["source"] == "human"]
    shown = frame[(frame["task"] == OVERALL) & frame["board"].isin(chosen) & frame["value"].notna()]
    named = zip(shown["board"], shown["metric"], shown["output"], strict=True)
    shown = shown.assign(label=[labels[key] for key in named]).sort_values(["board", "value"], kind="stable")
    parts = {name: shown[shown["board"] == name] for name in chosen}
    rows = [max(1, len(part)) for part in parts.values()]
    with drawing():
        size = (7.0, 0.21 * sum(rows) + 0.6 * len(parts))
        drawn, axes = figure_and_axes(len(parts), 1, size, sharex=True, gridspec_kw={"height_ratios": rows})
        for ax, (name, part) in zip(axes.flat, parts.items(), strict=True):
            ax.axvline(0.5, color=QUIET, lw=0.8, zorder=1)
            lines_behind(ax, "both")
            for y, record in enumerate(part.to_dict("records")):
                colour, mark, _ = SERIES[1 if record["rank"] == 1 else 0]
                if pd.notna(record["low"]):
                    ax.plot([record["low"], record["high"]], [y, y], color=colour, lw=1.2, zorder=2)
                ax.plot([record["value"]], [y], mark, color=colour, ms=4.5, zorder=3)
            ax.set_yticks(np.arange(len(part)), list(part["label"]))
            ax.set_ylim(-0.7, len(part) - 0.3)
            ax.set_title(f"{boards[name]['title']} ({len(boards[name]['tasks'][0]['datasets'])} sets)", loc="left")
        titled(
            drawn,
            "One ranking over all data sets",
            "about 0.5 is chance, 1 is perfect agreement with people",
            "Lines are 95 % intervals over other systems and dialogues of their kind. Squares: the first cluster, metrics that "
            "do not differ significantly from one another. Each score is a mean over the tasks of the table `overall`.",
        )
    return drawn, shown.drop(columns="signature")
