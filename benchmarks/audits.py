"""Supports docs/validation.md, "Corrected means": what the intervals of an audit cover, with few labels that come in clusters.

python benchmarks/audits.py             corrected means, and their width relative to that of the labels alone
python benchmarks/audits.py agreement   agreement and offsets

The data (COMPERDIAL_MIRROR, or fetched) are labelled throughout, so the truth is the value of all labels. A draw takes whole
clusters with replacement: the table's number of labels, and for means the judge's labels of the rest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
import simulated
from simulated import Floats, table

from comperdial.auditing.agreement import agreement
from comperdial.auditing.judged import Judged, from_votes
from comperdial.auditing.systems import bias, systems
from comperdial.data import catalogue, readers, recorded, sources
from comperdial.stats.corrected_means import classical, corrected_mean

KNOWN = catalogue.load_catalogue(simulated.ROOT / "data/sources.yaml")
FACE = {"relevance": 2.0, "interestingness": 2.0, "dialogue_overall": 4.0}
"""Dimensions, and the top of their scales."""
SHOWN = {
    "Pearson with people's mean": "Pearson", "Spearman with people's mean": "Spearman",
    "Exact agreement of the judge with a rater": "exact", "Weighted kappa of the judge with a rater": "kappa",
    "Gwet's AC2 of the judge with a rater": "AC2", "offset over all systems": "offset",
    "share for the first, judge − people": "offset",
}  # fmt: skip


def tables_of(name: str) -> dict[str, pd.DataFrame]:
    """Return a catalogue data set's tables."""
    entry = KNOWN.dataset(name)
    return readers.read(entry.reader, name, sources.require_all(entry.files))


def judges() -> Iterator[Judged]:
    """Yield the judges of PandaLM's pairs, of FACE's turns and dialogues, and one rater of USR."""
    for one in from_votes(tables_of("pandalm")["preferences"]):
        yield replace(one, judge_name=f"PandaLM; {one.judge_name}")
    face = tables_of("face")
    rated = recorded.Rated(face["contexts"], face["responses"], face["systems"])
    scores = recorded.FORMATS["face"](sources.require_all({"scores": KNOWN.file("face_run")})["scores"], rated)
    unit, dialogues = ["item_id", "system_id"], face["contexts"].set_index("context_id")["dialogue_id"]
    for dimension, top in FACE.items():
        own = face["ratings"].query("dimension == @dimension").set_index(unit)["rating"]
        judge = scores.query("output == @dimension").set_index(unit)["value"].astype(float)
        both = pd.concat([own, judge], axis=1, join="inner").dropna()
        items = both.index.get_level_values(0)
        clusters = pd.Series(dialogues.reindex(items).fillna(pd.Series(items, items)).to_numpy(), both.index)
        sides = pd.DataFrame({"system": both.index.get_level_values(1)}, index=both.index)
        yield Judged(both[["rating"]], both["value"], f"FACE; {dimension}", dimension, (0.0, top), sides, clusters)
    for name in ("usr_persona", "usr_topical"):
        ratings = tables_of(name)["ratings"].query("dimension == 'Overall'")
        wide = ratings.pivot_table("rating", ["item_id", "system_id"], "annotator_id", observed=True)
        wide = wide.apply(lambda row: pd.Series(row.dropna().to_numpy()[:3]), axis=1)
        clusters = pd.Series(wide.index.get_level_values(0), wide.index)
        yield Judged(wide[[1, 2]], wide[0], f"{name}; a rater", "Overall", (1.0, 5.0), None, clusters)


def part(one: Judged, rows: np.ndarray, codes: np.ndarray) -> Judged:
    """Select some of a judge's items by row, with new clusters."""
    index = pd.RangeIndex(len(rows))
    people, judge, sides = (
        None if frame is None else frame.iloc[rows].set_axis(index) for frame in (one.people, one.judge, one.sides)
    )
    clusters = pd.Series(codes, index)
    return Judged(people, judge, one.judge_name, one.dimension, one.scale, sides, clusters, noun=one.noun)


def drawn(clusters: np.ndarray, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw whole clusters with replacement; return the items, and a new number for the cluster of each."""
    members = np.split(np.argsort(clusters, kind="stable"), np.cumsum(np.bincount(clusters))[:-1])
    items = [members[code] for code in rng.integers(0, len(members), count)]
    return np.concatenate(items), np.repeat(np.arange(count), list(map(len, items)))


def means(y: Floats, f: Floats, clusters: np.ndarray, labelled: int, draws: int, seed: int) -> list[str]:
    """Return the coverage of each interval in %, and the width of the corrected one relative to that of labels alone."""
    total, inside, widths = int(clusters.max()) + 1, [], []
    for draw in range(draws):
        rng = np.random.default_rng([seed, draw])
        own, of_own = drawn(clusters, labelled, rng)
        rest, of_rest = drawn(clusters, total - labelled, rng)
        grouped = (of_own, of_rest + labelled) if total < len(y) else (None, None)
        made = (
            corrected_mean(y[own], f[own], f[rest], normal=True),
            corrected_mean(y[own], f[own], f[rest], *grouped),
            classical(y[own], grouped[0]),
        )
        inside.append([one.low <= y.mean() <= one.high for one in made])
        widths.append(made[1].width / made[2].width)
    return [*(f"{100 * share:.1f}" for share in np.mean(inside, axis=0)), f"{np.mean(widths):.2f}"]


def numbers(one: Judged) -> pd.DataFrame:
    """Return an audit's numbers that have intervals, by quantity."""
    frames = [section.numbers for section in (agreement(one), systems(one), bias(one)) if section.numbers is not None]
    return pd.concat(frames).drop_duplicates("what").set_index("what")[["value", "low", "high"]]


def agreements(one: Judged, labelled: int, draws: int, seed: int) -> list[str]:
    """Return the coverage of each kind of interval in %."""
    truth, inside = numbers(one)["value"], defaultdict(list)
    for draw in range(draws):
        rows, codes = drawn(one.cluster_codes, labelled, np.random.default_rng([seed, 1, draw]))
        for what, row in numbers(part(one, rows, codes)).dropna().iterrows():
            of_system = what.startswith("offset of ") and not what.endswith("beside the others")
            name = SHOWN.get(what, "offset of a system" if of_system else "")
            if what in truth:
                inside[name].append(row["low"] <= truth[what] <= row["high"])
    names = dict.fromkeys([*SHOWN.values(), "offset of a system"])
    return [f"{100 * np.mean(inside[name]):.1f}" if inside[name] else "–" for name in names]


def main() -> None:
    options = simulated.options(__doc__, ["means", "agreement"], draws=1000, seed=7)
    rows = []
    for one in judges():
        if options.case == "agreement":
            if one.sides is not None:
                if one.noun == "pairs":
                    one = part(one, np.flatnonzero(one.labelled), one.cluster_codes[one.labelled])
                for number in (100, 200):
                    labelled = round(number / len(one.people) * (one.cluster_codes.max() + 1))
                    rows.append([one.judge_name, f"{number}", *agreements(one, labelled, options.draws, options.seed)])
            continue
        # A vote that could not be read counts as a tie.
        y, f, each = one.mean, one.judge.fillna(0.5).to_numpy(), np.arange(len(one.people))
        # Copies of a PandaLM instruction share its number.
        codes = pd.factorize(one.clusters.str.extract(r"^(\d+)")[0] if one.noun == "pairs" else one.clusters)[0]
        for how, of in {"counted": codes, "none": each}.items():
            for number in (100, 200) if how == "none" or of.max() < each.max() else ():
                labelled = round(number / len(of) * (of.max() + 1))
                cells = means(y, f, of, labelled, options.draws, options.seed)
                rows.append([one.judge_name, how, f"{number} ({labelled})", *cells])
    kinds = ["clusters", "labels (clusters)", "as ppi-python", "corrected", "labels alone", "width"]
    kinds = kinds if options.case == "means" else ["labels", *dict.fromkeys(SHOWN.values()), "offset of a system"]
    table(["data; judge", *kinds], rows)


if __name__ == "__main__":
    main()
