"""Claim: the intervals of an audit (agreement, offsets) cover what they should, with few labels in clusters.

Real data where people labelled everything: the truth is the audit of all of it. A draw takes whole clusters with replacement.
Prints Markdown.

    COMPERDIAL_MIRROR=… python benchmarks/audit_intervals.py --draws 1000
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
import pandas as pd
from corrected_means import SEED, drawn, tables_of

from comperdial.auditing.agreement import agreement
from comperdial.auditing.judged import Judged, from_votes
from comperdial.auditing.systems import bias, systems
from comperdial.data import recorded, sources
from comperdial.data.catalogue import load_catalogue

SHOWN = {
    "Pearson with people's mean": "Pearson", "Spearman with people's mean": "Spearman",
    "Exact agreement of the judge with a rater": "exact", "Weighted kappa of the judge with a rater": "kappa",
    "Gwet's AC2 of the judge with a rater": "AC2", "offset over all systems": "offset",
    "share for the first, judge − people": "offset",
}  # fmt: skip
COLUMNS = ["Pearson", "Spearman", "exact", "kappa", "AC2", "offset", "offset of a system"]


def judges() -> Iterator[tuple[str, Judged]]:
    """Yield the judges of PandaLM's pairs, FACE's dialogues and turns, and a rater of USR."""
    for one in from_votes(tables_of("pandalm")["preferences"]):
        kept = one.labelled
        yield f"PandaLM; {one.judge_name}", part(one, np.flatnonzero(kept), one.cluster_codes[kept])
    face, known = tables_of("face"), load_catalogue("data/sources.yaml")
    rated = recorded.Rated(face["contexts"], face["responses"], face["systems"])
    path = sources.require_all({"scores": known.file("face_run")})["scores"]
    scores = recorded.FORMATS["face"](path, rated).set_index(["item_id", "system_id"])
    dialogues = face["contexts"].set_index("context_id")["dialogue_id"]
    for dimension, top in (("relevance", 2.0), ("dialogue_overall", 4.0)):
        own = face["ratings"].query("dimension == @dimension").set_index(["item_id", "system_id"])["rating"]
        both = pd.concat(
            [own, scores[scores["output"] == dimension]["value"].astype(float)], axis=1, join="inner"
        ).dropna()
        items = both.index.get_level_values(0)
        yield f"FACE; {dimension}", Judged(
            both[["rating"]], both["value"], "FACE", dimension, (0.0, top),
            pd.DataFrame({"system": both.index.get_level_values(1)}, index=both.index),
            pd.Series(dialogues.reindex(items).fillna(pd.Series(items, items)).to_numpy(), both.index),
        )  # fmt: skip


def part(one: Judged, rows: np.ndarray, codes: np.ndarray) -> Judged:
    """Return some items of a judge, by their rows, with new clusters."""
    index = pd.RangeIndex(len(rows))
    sides = None if one.sides is None else one.sides.iloc[rows].set_axis(index)
    people, judge = one.people.iloc[rows].set_axis(index), one.judge.iloc[rows].set_axis(index)
    of = one.judge_name, one.dimension, one.scale
    return Judged(people, judge, *of, sides, pd.Series(codes, index), noun=one.noun)


def numbers(one: Judged) -> pd.DataFrame:
    """Return the numbers of an audit that have intervals, by what they are of."""
    frames = [section.numbers for section in (agreement(one), systems(one), bias(one)) if section.numbers is not None]
    return pd.concat(frames).drop_duplicates("what").set_index("what")[["value", "low", "high"]]


def coverage(one: Judged, labels: int, draws: int) -> dict[str, float]:
    """Return the coverage of each kind of interval in %."""
    truth = numbers(one)["value"]
    total = int(one.cluster_codes.max()) + 1
    inside: dict[str, list[bool]] = {}
    for draw in range(draws):
        rows, codes = drawn(
            one.cluster_codes, round(labels / len(one.people) * total), np.random.default_rng([SEED, 1, draw])
        )
        for what, row in numbers(part(one, rows, codes)).dropna().iterrows():
            of_system = what.startswith("offset of ") and not what.endswith("beside the others")
            name = SHOWN.get(what, "offset of a system" if of_system else "")
            if name and what in truth:
                inside.setdefault(name, []).append(row["low"] <= truth[what] <= row["high"])
    return {name: 100 * float(np.mean(of)) for name, of in inside.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1000)
    draws = parser.parse_args().draws
    print(f"| data; judge | labels | {' | '.join(COLUMNS)} |")
    print(f"|:--|--:|{'--:|' * len(COLUMNS)}")
    for name, one in judges():
        for labels in (100, 200):
            of = coverage(one, labels, draws)
            print(
                f"| {name} | {labels} | {' | '.join(f'{of[key]:.1f}' if key in of else '–' for key in COLUMNS)} |",
                flush=True,
            )
