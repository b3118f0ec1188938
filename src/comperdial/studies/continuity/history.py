"""The figure of continuity prediction by the amount of the user's history."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from comperdial.report.plots.style import QUIET, SERIES, drawing, figure_and_axes, lines_behind, titled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Conversations of the user in training; those of none are cold.
GROUPS = ("0", "1", "2-4", "5-9", "10+")
# Of fewer replies an accuracy says nothing.
FEWEST = 20
_USERS = {"none": "text alone", "token": "and user token", "history": "and history", "profile": "and profile"}
_PANELS = {
    ("chitchat", "time"): "Chit-Chat, by time",
    ("chitchat", "waves"): "Chit-Chat, within waves",
    ("convai2", "time"): "ConvAI2, by time",
}


def by_history(measures: pd.DataFrame) -> pd.DataFrame:
    """Take the balanced accuracy of TF-IDF by group of users from the study's measures.

    Returns
    -------
    DataFrame
        ``panel``, ``group`` (:data:`GROUPS`), ``user``, ``value``, ``low``, ``high``, ``n`` replies, ``users``.
    """
    chosen = measures[
        (measures["rate"] == "balanced")
        & (measures["model"] == "tfidf")
        & (measures["measure"] == "accuracy")
        & measures["against"].isna()
        & measures["group"].isin(GROUPS)
        & measures["user"].isin(_USERS)
        & measures["value"].notna()
    ]
    keys = zip(chosen["dataset"], chosen["split"], strict=True)
    named = chosen.assign(panel=pd.Series([_PANELS.get(key, "") for key in keys], index=chosen.index, dtype="str"))
    columns = ["panel", "group", "user", "value", "low", "high", "n", "users"]
    return named.loc[(named["panel"] != "") & (named["n"] >= FEWEST), columns].reset_index(drop=True)


def draw(measures: pd.DataFrame) -> tuple[Figure, pd.DataFrame]:
    """Draw accuracy against the number of the user's conversations in training."""
    from matplotlib.lines import Line2D

    shown = by_history(measures)
    panels = [title for title in _PANELS.values() if title in set(shown["panel"])]
    users = [user for user in _USERS if user in set(shown["user"])]
    with drawing():
        figure, axes = figure_and_axes(1, len(panels), (7.6, 2.6), sharey=True)
        for ax, panel in zip(axes.flat, panels, strict=True):
            part = shown[shown["panel"] == panel]
            groups = [group for group in GROUPS if group in set(part["group"])]
            lines_behind(ax, "y")
            ax.axhline(0.5, color=QUIET, lw=0.8, zorder=1)
            for at, user in enumerate(users):
                line = part[part["user"] == user].set_index("group").reindex(groups)
                places = np.arange(len(groups)) + (at - (len(users) - 1) / 2) * 0.17
                colour, mark, _ = SERIES[at]
                ax.vlines(places, line["low"], line["high"], color=colour, lw=1.1, zorder=2)
                ax.plot(places, line["value"], mark, color=colour, ms=4, zorder=3)
            sizes = part.drop_duplicates("group").set_index("group")["n"]
            ax.set_xticks(np.arange(len(groups)), [f"{group}\n{int(sizes[group]):,}" for group in groups])
            ax.set_ylim(0.35, 1.02)
            ax.set_xlim(-0.6, len(groups) - 0.4)
            ax.set_title(panel, loc="left", fontweight="bold")
            ax.set_xlabel("The user's conversations in training\nReplies")
        axes.flat[0].set_ylabel("Accuracy")
        handles = [
            Line2D([], [], color=SERIES[at][0], marker=SERIES[at][1], ls="-", ms=4, label=_USERS[user])
            for at, user in enumerate(users)
        ]
        titled(
            figure,
            "Will the user go on",
            "accuracy by the amount of the user's history",
            "Balanced test replies, TF-IDF; lines are 95 % intervals, users resampled. 0: cold users, of whom training knows "
            "nothing. Under each group the number of its replies; groups of fewer than "
            f"{FEWEST} are left out. The line at 0.5 is chance.",
            handles=handles,
        )
    return figure, shown
