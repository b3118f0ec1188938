"""One producer of results: what it computes for main outputs, for what studies show, and how tables rank it."""

import shutil

import numpy as np
import pandas as pd
import pytest

from comperdial import schema
from comperdial.cli import main
from comperdial.evaluation.expected import Expected
from comperdial.evaluation.results import correlate
from comperdial.evaluation.samples import Tables
from comperdial.report.about import label
from comperdial.report.ranking import contrasts, of_outputs, with_ranks
from comperdial.stats.correlation import correlate as of_pairs
from comperdial.stats.multiple import holm
from ratedtables import rating_rows, score_rows

SYSTEMS, DIALOGUES = ("a", "b", "c", "d", "human"), 12
OUTPUTS = {"good": 0.5, "fair": 1.0, "poor": 3.0, "shown": 1.5, "unseen": 2.0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder of tables, and beside it a file of scores."""
    root = tmp_path_factory.mktemp("set")
    rng = np.random.default_rng(5)
    units = [(f"c{d}", system) for d in range(DIALOGUES) for system in SYSTEMS]
    truth = rng.normal(size=len(units)) + np.tile(np.arange(len(SYSTEMS)), DIALOGUES) / 2
    kinds = ["human" if name == "human" else "agent" for name in SYSTEMS]
    contexts = [("mine", f"c{d}", f"c{d}", 0, [{"speaker": "u", "text": "Hello"}], [], []) for d in range(DIALOGUES)]
    ratings = [
        rating_rows(units, truth + rng.normal(size=len(units)), name, source=source, dataset="mine")
        for name, source in (("r1", "human"), ("r2", "human"), ("g", "gpt-4"))
    ]
    scores = [
        score_rows(units, truth + noise * rng.normal(size=len(units)), name, output="score", dataset="mine")
        for name, noise in OUTPUTS.items()
    ]
    tables = {
        "systems": pd.DataFrame(
            {"dataset": "mine", "system_id": SYSTEMS, "kind": kinds, "track": None, "description": ""}
        ),
        "contexts": pd.DataFrame(contexts, columns=schema.table("contexts").columns),
        "ratings": pd.concat(ratings),
    }
    (root / "tables").mkdir()
    for name, frame in tables.items():
        schema.write(root / f"tables/{name}.parquet", frame, name)
    schema.write(root / "scores.parquet", pd.concat(scores), "scores")
    return root / "tables"


@pytest.fixture(scope="module")
def found(folder):
    expected = {"lost": {"signature": "lost", "outputs": {"score": ["references"]}}}
    return correlate(
        Tables.read(folder, [folder.parent / "scores.parquet"]), outputs=["good:score", "fair:score", "poor:score"],
        compared=["shown:score", "gpt-4_recorded:mean"], restricted=["shown:score"], raters=["gpt-4"], resamples=200,
        main_target="overall", expected=Expected.of(expected, schema.read(folder / "contexts.parquet", "contexts")),
    )  # fmt: skip


def rows(frame, level="turn", grouping="pooled", **values):
    kept = (frame["level"] == level) & (frame["grouping"] == grouping)
    for name, value in values.items():
        kept &= frame[name] == value
    return frame[kept]


def test_all_outputs_have_values_and_only_some_intervals(found):
    of = rows(found.correlations, coefficient="pearson").set_index("metric")
    assert set(of.index) == {*OUTPUTS, "gpt-4_recorded", "lost"}
    assert of["value"].drop("lost").notna().all()
    assert set(of.index[of["low"].notna()]) == {"good", "fair", "poor", "shown", "gpt-4_recorded"}
    assert (of.loc["lost", "coverage"], of.loc["lost", "lacking"]) == (0, "references")
    kendall = rows(found.correlations, coefficient="kendall").set_index("metric")
    assert set(kendall.index[kendall["low"].notna()]) == {"good", "fair", "poor"}
    # What studies show has its interval where people rated; an exact p where there are few systems.
    few = rows(found.correlations, level="system", coefficient="spearman").set_index("metric")
    assert pd.isna(few.loc["shown", "low"])
    assert few["p_exact"].drop("lost").notna().all()


def test_pairs_of_main_outputs_have_all_tests_and_the_others_two(found):
    pairs = found.pairs
    shown = (pairs["metric_a"] == "shown") | (pairs["metric_b"] == "shown")
    assert set(pairs.loc[shown, "coefficient"]) == {"pearson", "spearman"}
    assert set(pairs.loc[shown, "level"]) == {"turn"}
    assert {"kendall", "acc_eq"} <= set(pairs.loc[~shown, "coefficient"])
    turn = rows(pairs, coefficient="spearman")
    assert len(turn) == 10
    # The interval leaves out 0 just where the test rejects.
    assert (((turn["low"] > 0) | (turn["high"] < 0)) == (turn["p"] < 0.05)).all()


def test_restricted_outputs_are_also_correlated_within_systems_and_without_people(found, folder):
    scores = (
        schema.read(folder.parent / "scores.parquet", "scores")
        .query("metric == 'shown'")
        .set_index(["item_id", "system_id"])
    )
    ratings = schema.read(folder / "ratings.parquet", "ratings").query("source == 'human'")
    means = ratings.groupby(["item_id", "system_id"])["rating"].mean()
    both = pd.DataFrame({"score": scores["value"], "rating": means}).reset_index()
    by_system = [of_pairs(one["score"], one["rating"], "spearman").value for _, one in both.groupby("system_id")]
    (within,) = rows(found.correlations, grouping="system", metric="shown", coefficient="spearman")["value"]
    assert within == pytest.approx(np.mean(by_system), abs=1e-12)
    agents = both[both["system_id"] != "human"]
    (row,) = rows(found.correlations, grouping="agents", metric="shown", coefficient="pearson").to_dict("records")
    assert row["value"] == pytest.approx(of_pairs(agents["score"], agents["rating"], "pearson").value, abs=1e-12)
    assert row["low"] < row["value"] < row["high"]
    assert row["n"] == len(agents)


def test_ranks_are_corrected_over_the_rows_that_are_given(found):
    main = of_outputs(found.correlations, ["good:score", "fair:score", "poor:score"])
    ranked = rows(with_ranks(main, found.pairs), coefficient="pearson")
    assert set(ranked["tests"]) == {3}
    assert ranked.set_index("metric")["rank"]["good"] == 1
    every = rows(with_ranks(found.correlations, found.pairs), coefficient="pearson").set_index("metric")
    assert set(every["tests"].dropna()) == {10}
    assert every.loc[["unseen", "lost"], "rank"].isna().all()


def test_planned_contrasts_are_signed_and_corrected_over_themselves(found):
    planned = [
        {"metric": "poor:score", "against": "good:score", "datasets": ["mine"]},
        {"metric": "good:score", "against": "shown:score", "datasets": ["mine", "other"]},
    ]
    made = contrasts(found.pairs[found.pairs["level"] == "turn"], planned)
    pearson = made[made["coefficient"] == "pearson"]
    assert list(pearson["dataset"]) == ["mine", "mine", "other"]
    assert pearson["difference"].iloc[0] < 0 and pearson["low"].iloc[0] < pearson["high"].iloc[0]
    np.testing.assert_allclose(pearson["p_adjusted"][:2], holm(pearson["p"].to_numpy()[:2]))
    assert set(pearson["tests"]) == {2}
    assert pearson["p"].isna().to_list() == [False, False, True]


def test_the_command_writes_the_three_tables_of_a_folder(found, folder, tmp_path):
    command = [
        "correlate",
        folder,
        "--scores",
        folder.parent / "scores.parquet",
        "--outputs",
        "good:score",
        "fair:score",
    ]
    command += ["--compared", "shown:score", "--resamples", "200"]
    for name in ("output", "pairs", "ceilings"):
        command += [f"--{name}", tmp_path / f"{name}.parquet"]
    assert main([str(part) for part in command]) == 0
    made = schema.read(tmp_path / "output.parquet", "correlations")
    one, other = (rows(frame, metric="good", coefficient="pearson").iloc[0] for frame in (made, found.correlations))
    assert (one["value"], one["low"]) == (other["value"], other["low"])
    assert len(rows(schema.read(tmp_path / "pairs.parquet", "pairs"), coefficient="pearson")) == 3
    pd.testing.assert_frame_equal(
        schema.read(tmp_path / "ceilings.parquet", "ceilings"),
        found.ceilings.sort_values(list(schema.table("ceilings").key), ignore_index=True),
    )


def test_a_few_dialogues_give_no_interval_and_no_test(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "few")
    contexts = schema.read(folder / "contexts.parquet", "contexts")
    kept = contexts.loc[contexts["dialogue_id"].isin(sorted(contexts["dialogue_id"].unique())[:3]), "context_id"]
    ratings = schema.read(folder / "ratings.parquet", "ratings")
    schema.write(tmp_path / "few/ratings.parquet", ratings[ratings["item_id"].isin(kept)], "ratings")
    few = correlate(Tables.read(tmp_path / "few", [folder.parent / "scores.parquet"]), resamples=50)
    assert rows(few.correlations, coefficient="pearson")["value"].notna().any()
    assert few.correlations["low"].isna().all() and few.correlations["over"].isna().all()
    assert len(few.pairs) and few.pairs[["p", "low"]].isna().all(axis=None)


@pytest.mark.parametrize(
    ("output", "labels", "called"),
    [
        (("chrf", "chrf"), {}, "chrf"),
        (("chrf_raw", "chrf"), {"chrf_raw": "chrF (raw text)"}, "chrF (raw text)"),
        (("bleu", "bleu-2"), {}, "bleu-2"),
        (("f1", "recall"), {"f1": "Word F1", "f1:f1": "Word F1"}, "Word F1, recall"),
        (("f1", "f1"), {"f1": "Word F1", "f1:f1": "Word F1"}, "Word F1"),
        (("m", "o"), {}, "m o"),
    ],
)
def test_an_output_has_one_name(output, labels, called):
    assert label(output, labels) == called
