"""The figures of a data set: their numbers compared with plain computations, and the same bytes on every run."""

import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from comperdial import schema
from comperdial.config.studies import DATASET, read_study
from comperdial.core.errors import SchemaError
from comperdial.core.files import write_json
from comperdial.report.plots import dataset
from comperdial.studies.making import write_figure
from ratedtables import rating_rows, score_rows
from resulttables import correlation, write_rows

VALUES = {"bleu": 0.3, "f1": 0.5, "j": 0.1}


CEILINGS = [("a", 0.6), ("b", 0.8)]
OF = {"target": "Overall", "coefficient": "spearman", "n": 30}
ABOUT = {
    "dataset": "d", "title": "Set D", "source": "human", "target": None, "main_target": "Overall", "labels": {"f1": "F1"},
    "figure_outputs": {}, "judge_outputs": ["j:o"], "judged": ["j"], "resamples": 40, "seed": 1, "coefficient": "spearman",
}  # fmt: skip


def study(kind):
    return {"entry": {"name": kind, **read_study(DATASET)["figures"][kind]}}


@pytest.fixture
def made(tmp_path):
    """Six systems, five dialogues of one turn; ``bleu`` follows the ratings, ``f1`` the length, ``j`` is a judge."""
    rng = np.random.default_rng(1)
    units = [(f"d{d}", f"s{s}") for d in range(5) for s in range(6)]
    single = rng.integers(1, 6, size=(3, 30)).astype(float)
    rated = pd.DataFrame(units, columns=["item_id", "system_id"])
    rated = rated.assign(rating=single.mean(axis=0), words=rng.integers(1, 20, 30))
    noise = rng.normal(size=(3, 30)).astype("float32")
    rated = rated.assign(bleu=rated["rating"] + noise[0], f1=rated["words"] + noise[1], j=noise[2])
    rated.loc[:2, "bleu"] = np.nan
    rated = rated.astype(dict.fromkeys(VALUES, "float32"))
    frames = {
        "ratings": pd.concat(
            rating_rows(units, one, who, scale_min=1.0, scale_max=5.0) for who, one in zip("abc", single, strict=True)
        ),
        "correlations": pd.DataFrame(
            correlation("d", metric, "o", value + shift, **OF | {"coefficient": name, "level": level, "against": against})
            for level, against in (("turn", "turn"), ("dialogue", "dialogue"), ("system", "turn"))
            for name, shift in (("pearson", 0.0), ("spearman", 0.05), ("kendall", -0.1)) for metric, value in VALUES.items()
        ),
        "ceilings": pd.DataFrame(correlation("d", "", "", value, **OF) | {"annotator_id": who} for who, value in CEILINGS),
    }  # fmt: skip
    words = [" ".join("w" * n) for n in rated["words"]]
    paths = write_rows(
        tmp_path,
        systems=[("d", f"s{n}", "human" if n == 1 else "agent", None, "-") for n in range(6)],
        contexts=[("d", f"d{n}", f"d{n}", 0, [], [], []) for n in range(5)],
        responses=[("d", *unit, text) for unit, text in zip(units, words, strict=True)],
    )
    for name, frame in frames.items():
        paths[name] = tmp_path / f"{name}.parquet"
        schema.write(paths[name], frame.reindex(columns=list(schema.table(name).columns)), name)
    inputs = {name: [path] for name, path in paths.items()} | {"about": [tmp_path / "about.json"]}
    inputs["scores"] = [tmp_path / f"scores/{name}.parquet" for name in VALUES]
    for name, path in zip(VALUES, inputs["scores"], strict=True):
        schema.write(path, score_rows(units, rated[name], name).dropna(subset="value"), "scores")

    def draw(kind, *outputs, **more):
        write_json(tmp_path / "about.json", ABOUT | {"figure_outputs": {kind: outputs}} | more)
        return getattr(dataset, kind)(inputs, study(kind))[1]

    return SimpleNamespace(folder=tmp_path, inputs=inputs, rated=rated, draw=draw)


def test_figure_is_reproducible_and_marked_as_simulated(made):
    write_json(made.folder / "about.json", ABOUT | {"source": "simulated", "figure_outputs": {"scatter": ["j:o"]}})
    ratings = schema.read(made.folder / "ratings.parquet", "ratings").assign(source="simulated")
    schema.write(made.folder / "ratings.parquet", ratings, "ratings")
    for run in ("one", "two"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            write_figure(dataset.scatter, made.inputs, study("scatter"), made.folder / run)
    for suffix in ("pdf", "png", "svg", "csv"):
        assert (made.folder / f"one.{suffix}").read_bytes() == (made.folder / f"two.{suffix}").read_bytes(), suffix
    assert b"Type3" not in (made.folder / "one.pdf").read_bytes()
    assert "SIMULATED" in (made.folder / "one.svg").read_text()
    assert pd.read_csv(made.folder / "one.csv")["simulated"].all()


def test_heatmap_has_the_ceiling_first_then_the_best_metric(made):
    frame = made.draw("heatmap")
    assert list(dict.fromkeys(frame["metric"])) == ["ceiling", "f1", "bleu", "j"]
    assert (frame["value"].iloc[0], len(frame)) == (pytest.approx(0.7), 1 + 3 * 3 * 3)


def test_scatter_shows_means_of_complete_pairs_and_slope_their_ranks(made):
    frame = made.draw("scatter", "bleu:o")
    rows = frame[frame["kind"] != "all"].set_index("system_id")
    means = made.rated.dropna(subset="bleu").groupby("system_id")[["bleu", "rating"]].mean()
    np.testing.assert_allclose(rows[["score", "rating"]], means.loc[rows.index], rtol=1e-6)
    whole = frame[frame["kind"] == "all"].iloc[0]
    assert (rows.loc["s1", "kind"], whole["n"], whole["value"]) == ("human", 27, pytest.approx(0.35))
    found = made.draw("slope", "f1:o").set_index("system_id")
    means = made.rated.groupby("system_id")[["f1", "rating"]].mean()
    for column, name in (("score", "f1"), ("rating", "rating")):
        assert found.loc[means.index, f"{column}_rank"].tolist() == stats.rankdata(-means[name].round(12)).tolist()


def test_length_bias_matches_scipy_and_partial_formula(made):
    found = made.draw("length_bias").set_index(["metric", "measure"])["value"]
    for metric, value in VALUES.items():
        units = made.rated.dropna(subset=metric)
        length, rated, both = (
            stats.spearmanr(units[a], units[b]).statistic
            for a, b in ((metric, "words"), (metric, "rating"), ("rating", "words"))
        )
        partial = (rated - length * both) / np.sqrt((1 - length**2) * (1 - both**2))
        shown = [found[metric, measure] for measure in ("length", "ratings", "ratings given length")]
        assert shown == pytest.approx([length, value + 0.05, partial], abs=1e-12)
    assert found["people", "length"] == pytest.approx(both)


def test_judge_agreement_has_each_pair_once(made):
    pairs = made.draw("judge_agreement", "bleu:o", "f1:o").set_index(["metric_a", "metric_b"])
    assert len(pairs) == 4 * 3 // 2
    units = made.rated.rename(columns={"rating": "people"})[["people", "bleu"]].dropna()
    assert pairs.loc[("people", "bleu"), "value"] == pytest.approx(stats.spearmanr(*units.to_numpy().T).statistic)
    assert pairs.loc[("people", "bleu"), "n"] == len(units)
    with pytest.raises(SchemaError, match="no judge has scores"):
        made.draw("judge_agreement", "bleu:o", judge_outputs=["absent:x"])
