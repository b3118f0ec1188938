"""Claim: intervals of corrected means cover 93 to 97 %, clusters included, and are narrower than those of the labels alone.

Real data where people labelled everything: the truth is the mean of all labels. A draw takes whole clusters with replacement;
some keep people's labels, of the others only the judge's are used. Prints Markdown.

    COMPERDIAL_MIRROR=… python benchmarks/corrected_means.py --draws 2000
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial.data import catalogue, readers, recorded, sources
from comperdial.stats.corrected_means import classical, corrected_mean

Floats = npt.NDArray[np.float64]
SEED = 7


def tables_of(name: str) -> dict[str, pd.DataFrame]:
    """Return the tables of a data set of the catalogue."""
    entry = catalogue.load_catalogue("data/sources.yaml").dataset(name)
    return readers.read(entry.reader, name, sources.require_all(entry.files))


def data_sets() -> Iterator[tuple[str, Floats, Floats, npt.NDArray[np.intp]]]:
    """Yield people's labels, the judge's and the clusters of each data set."""
    known = catalogue.load_catalogue("data/sources.yaml")
    votes = tables_of("pandalm")["preferences"]
    value = votes["choice"].map({"first": 1.0, "tie": 0.5, "second": 0.0})
    people = value[votes["source"] == "human"].groupby(votes["pair_id"], sort=False).mean()
    cluster = votes.drop_duplicates("pair_id").set_index("pair_id")["first_dialogue_id"].str.extract(r"^(\d+)")[0]
    for judge in (name for name in votes["source"].unique() if name != "human"):
        labels = value[votes["source"] == judge].groupby(votes["pair_id"]).mean().reindex(people.index).fillna(0.5)
        yield f"PandaLM, win rate, {judge}", *_arrays(people, labels, cluster.reindex(people.index))
    face = tables_of("face")
    rated = recorded.Rated(face["contexts"], face["responses"], face["systems"])
    run = known.file("face_run")
    scores = recorded.FORMATS["face"](sources.require_all({"scores": run})["scores"], rated).set_index(
        ["item_id", "system_id"]
    )
    dialogues = face["contexts"].set_index("context_id")["dialogue_id"]
    for dimension in ("relevance", "interestingness", "dialogue_overall"):
        own = face["ratings"].query("dimension == @dimension").set_index(["item_id", "system_id"])["rating"]
        both = pd.concat(
            [own, scores[scores["output"] == dimension]["value"].astype(float)], axis=1, join="inner"
        ).dropna()
        items = pd.Series(both.index.get_level_values(0))
        yield (
            f"FACE, {dimension}",
            *_arrays(both["rating"], both["value"], dialogues.reindex(items).reset_index(drop=True).fillna(items)),
        )
    for name in ("usr_persona", "usr_topical"):
        rated = tables_of(name)["ratings"].query("dimension == 'Overall'")
        wide = rated.pivot_table("rating", ["item_id", "system_id"], "annotator_id", observed=True)
        wide = wide.apply(lambda row: pd.Series(row.dropna().to_numpy()[:3]), axis=1)
        yield (
            f"{name}, one rater as the judge",
            *_arrays(wide[[1, 2]].mean(axis=1), wide[0], pd.Series(wide.index.get_level_values(0))),
        )


def _arrays(people: pd.Series, judge: pd.Series, cluster: pd.Series) -> tuple[Floats, Floats, npt.NDArray[np.intp]]:
    return people.to_numpy(np.float64), judge.to_numpy(np.float64), pd.factorize(cluster.to_numpy())[0]


def drawn(
    clusters: npt.NDArray[np.intp], count: int, rng: np.random.Generator
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Draw whole clusters with replacement; return the items, and a new number for the cluster of each."""
    order = np.argsort(clusters, kind="stable")
    starts = np.searchsorted(clusters[order], np.arange(clusters.max() + 2))
    chosen = rng.integers(0, clusters.max() + 1, count)
    items = [order[starts[one] : starts[one + 1]] for one in chosen]
    return np.concatenate(items), np.repeat(np.arange(count), list(map(len, items)))


def coverage(y: Floats, f: Floats, clusters: npt.NDArray[np.intp], labels: int, draws: int) -> dict[str, float]:
    """Return the coverage of 95 % intervals in %, and the width of the corrected mean's beside that of labels alone."""
    truth, total = y.mean(), int(clusters.max()) + 1
    labelled = round(labels / len(y) * total)
    inside: dict[str, list[bool]] = {}
    ratios = []
    for draw in range(draws):
        rng = np.random.default_rng([SEED, draw])
        own, of_own = drawn(clusters, labelled, rng)
        rest, of_rest = drawn(clusters, total - labelled, rng)
        grouped = None if total == len(y) else of_own, None if total == len(y) else of_rest + labelled
        made = {
            "ppi-python's": corrected_mean(y[own], f[own], f[rest], normal=True),
            "corrected": corrected_mean(y[own], f[own], f[rest], *grouped),
            "labels alone": classical(y[own], grouped[0]),
        }
        for name, one in made.items():
            inside.setdefault(name, []).append(one.low <= truth <= one.high)
        ratios.append(made["corrected"].width / made["labels alone"].width)
    return {
        **{name: 100 * np.mean(of) for name, of in inside.items()},
        "width": float(np.mean(ratios)),
        "clusters": labelled,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2000)
    draws = parser.parse_args().draws
    print("| data | clusters | labels (clusters) | ppi-python's | **corrected** | labels alone | width |")
    print("|:--|:--|--:|--:|--:|--:|--:|")
    for name, y, f, clusters in data_sets():
        for how, codes in (("counted", clusters), ("none", np.arange(len(y)))):
            if how == "counted" and clusters.max() + 1 == len(y):
                continue
            for labels in (100, 200):
                of = coverage(y, f, codes, labels, draws)
                cells = [f"{of[key]:.1f}" for key in ("ppi-python's", "corrected", "labels alone")]
                print(
                    f"| {name} | {how} | {labels} ({of['clusters']}) | {' | '.join(cells)} | {of['width']:.2f} |",
                    flush=True,
                )
