"""Table 7: the perturbations, and how many pairs there are of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from comperdial.evaluation.ratios import PairSet
from comperdial.perturbations import Perturbation
from comperdial.report.document import Document, Section
from comperdial.studies.llm_evaluators.common import LEVELS, PAPER, SHORT, titled

PAIR_COLUMNS = ("source", "place", "perturbation", "short", "level", "texts", "dimensions")


def count_pairs(folders: Sequence[Path]) -> pd.DataFrame:
    """Count pairs: columns dataset, perturbation, pairs, originals (different ones)."""
    rows = []
    for folder in folders:
        found = PairSet.read(folder)
        for name, of in found.pairs.groupby("perturbation", sort=True):
            rows.append((found.dataset, str(name), len(of), int(of["original"].nunique())))
    return pd.DataFrame(rows, columns=["dataset", "perturbation", "pairs", "originals"])


def table_7(
    recorded: pd.DataFrame,
    made: pd.DataFrame,
    reported: pd.DataFrame,
    known: Mapping[str, Perturbation],
    *,
    titles: Mapping[str, str],
) -> Document:
    """Render Table 7: the perturbations, how many pairs there are of each, what they aim at, and the drop that counts.

    Parameters
    ----------
    recorded, made
        As :func:`count_pairs` gives them: pairs that others recorded, and pairs that were made here.
    reported
        ``src/comperdial/studies/llm_evaluators/perturbations.csv``.
    known
        The perturbations by name.
    titles
        A title for each data set.
    """
    theirs = {row["perturbation"]: row for row in reported.to_dict("records")}
    here = recorded.groupby("perturbation")[["pairs", "originals"]].sum()
    order = [*theirs, *(name for name in known if name not in theirs)]
    columns = [("", "Perturbation"), ("", "In short"), ("", "Level"), ("", "Texts"), ("", "Aims at")]
    columns += [("Pairs", "ours"), ("Pairs", "reported"), ("Originals", "ours"), ("δ", "ours"), ("δ", "reported")]
    sections: list[Section] = []
    for title, names in (
        ("Recorded, in the paper", [name for name in order if name in theirs]),
        ("Recorded, not in the paper's table", [name for name in order if name not in theirs and name in here.index]),
    ):
        rows = []
        for name in names:
            of, printed = known.get(name), theirs.get(name, {})
            pairs, originals = (f"{here.loc[name, c]:,}" if name in here.index else "–" for c in here.columns)
            rows.append(
                [
                    of.title if of else name,
                    str(printed.get("short") or (of.short if of else "–")),
                    of.level if of else str(printed["level"]),
                    str(printed.get("texts", "–")),
                    _short(of.dimensions if of else str(printed["dimensions"]).split()),
                    pairs,
                    f"{int(printed['pairs']):,}" if printed else "–",
                    originals,
                    (f"{of.threshold:.1f}" + ("" if of.paper else " [ours]")) if of else "–",
                    f"{printed['threshold']:.1f}" if printed else "–",
                ]
            )
        if rows:
            sections.append(Section(title, columns, rows))
    made = made.sort_values(["dataset", "perturbation"])
    sections += _made_here(made, known, titles)
    printed_pairs = reported[["perturbation", "pairs", "threshold"]]
    frame = recorded.merge(printed_pairs, on="perturbation", how="left", suffixes=("", "_reported"))
    frame = frame.rename(columns={"threshold": "threshold_reported"})
    frame = pd.concat([frame.assign(origin="recorded"), made.assign(origin="made here")], ignore_index=True)
    frame = frame.astype({"pairs_reported": "Int32"})
    return Document(
        title="Table 7. Perturbations",
        caption="What makes a response or a dialogue worse, the dimensions it aims at, the pairs of an original and a "
        f"perturbed version, and the drop δ of a score from 0 to 1 that counts, ours beside what {PAPER} report.",
        sections=sections,
        tidy=frame.assign(
            threshold=[known[name].threshold if name in known else float("nan") for name in frame["perturbation"]]
        ),
        notes=[
            "Pairs, ours: what our tables hold of the files that the authors published. Originals: different texts "
            "among these, which is what an interval counts",
            "Texts, as the paper calls them: DD is DailyDialog, PC PersonaChat",
            "[ours]: the paper has no δ of this suite; ours is that of the nearest perturbation",
            *(
                f"{of.title}, as made here: {of.about}"
                for name, of in known.items()
                if name in set(made["perturbation"])
            ),
        ],
    )


def _made_here(made: pd.DataFrame, known: Mapping[str, Perturbation], titles: Mapping[str, str]) -> list[Section]:
    sections = []
    for level, title in LEVELS.items():
        names = [n for n, of in known.items() if of.level == level and n in set(made["perturbation"])]
        of_level = made[made["perturbation"].isin(names)]
        of = of_level.set_index(["dataset", "perturbation"])["pairs"]
        rows = [
            [titled(d, titles), *(f"{of[d, n]:,}" if (d, n) in of.index else "–" for n in names)]
            for d in dict.fromkeys(of_level["dataset"])
        ]
        if rows:
            columns = [("", "Data set"), *(("Pairs", known[name].short) for name in names)]
            sections.append(Section(f"Made here, pairs: {title.lower()}", columns, rows))
    return sections


def _short(dimensions: Sequence[str]) -> str:
    return ", ".join(SHORT[name] for name in dimensions)
