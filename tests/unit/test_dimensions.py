"""Correlations by rated dimension, against plain pandas and scipy; what is made of them; the command."""

import argparse
import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from comperdial import schema
from comperdial.cli import dimensions as command
from comperdial.core.errors import ComperdialError, ConfigError, SchemaError, UnknownNameError
from comperdial.evaluation.dimensions import dimension_correlations, rank_deviation
from comperdial.evaluation.ensembles import Ensembles, standing_for
from comperdial.evaluation.interdimensional import interdimensional
from comperdial.evaluation.rated import RatedSet, read_scores_by_dataset
from comperdial.evaluation.rounds import rounds
from comperdial.schema.evaluated import DIMENSIONS

PLAIN = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}


def table(name, rows):
    return schema.validate(pd.DataFrame(rows, columns=schema.table(name).columns), name)


def score(dataset, level, item, system, metric, output, value):
    return (dataset, level, item, system, metric, output, np.float32(value), 0, f"{metric}|v:1")


def rating(dataset, level, item, system, who, dimension, value, source):
    return (dataset, level, item, system, who, None, dimension, float(value), -9.0, 9.0, source)


@pytest.fixture(scope="module")
def turns():
    """Twelve contexts of six dialogues, five systems; people rate relevance and overall, gpt-4 the others."""
    rng = np.random.default_rng(3)
    ratings, scores, contexts = [], [], []
    for c in range(12):
        contexts.append(("t", f"c{c}", f"d{c // 2}"))
        for s in range(5):
            truth = rng.normal()
            for dimension in DIMENSIONS["turn"]:
                source = "human" if dimension in ("relevance", "overall") else "gpt-4"
                for who in ("a", "b", "c"):
                    value = np.clip(np.round(truth + rng.normal()), -9, 9)
                    ratings.append(rating("t", "turn", f"c{c}", f"s{s}", f"{source}-{who}", dimension, value, source))
                scores.append(score("t", "turn", f"c{c}", f"s{s}", "judge", dimension, np.round(truth + rng.normal())))
            if c:
                scores.append(score("t", "turn", f"c{c}", f"s{s}", "bleu", "mean", 100 * rng.random()))
    contexts = pd.DataFrame(contexts, columns=["dataset", "context_id", "dialogue_id"])
    return RatedSet("t", "turn", table("ratings", ratings), contexts), table("scores", scores)


@pytest.fixture(scope="module")
def dialogues():
    """Thirty dialogues of one system, rated by people and in two rounds by gpt-4; scores of turns and of dialogues."""
    rng = np.random.default_rng(4)
    ratings, scores, contexts = [], [], []
    for d in range(30):
        truth = rng.normal()
        for dimension in DIMENSIONS["dialogue"]:
            for source, people in (("human", ("ann", "bob")), ("gpt-4", ("round-1", "round-2"))):
                for who in people:
                    value = np.clip(np.round(2 * truth + rng.normal()), -9, 9)
                    ratings.append(rating("d", "dialogue", f"d{d}", "bot", who, dimension, value, source))
            scores.append(score("d", "dialogue", f"d{d}", "bot", "judge", dimension, truth + rng.normal()))
        for t in range(2 + d % 3):
            contexts.append(("d", f"d{d}t{t}", f"d{d}"))
            # The last turn has no score of it.
            if t <= 1:
                scores.append(score("d", "turn", f"d{d}t{t}", "bot", "words", "mean", truth + rng.normal()))
    contexts = pd.DataFrame(contexts, columns=["dataset", "context_id", "dialogue_id"])
    return RatedSet("d", "dialogue", table("ratings", ratings), contexts), table("scores", scores)


@pytest.fixture(scope="module")
def found(turns, dialogues):
    scores = {"t": turns[1], "d": dialogues[1]}
    return dimension_correlations([turns[0], dialogues[0]], scores, outputs={("words", "mean")}, resamples=60, seed=1)


def rows(frame, **which):
    for column, value in which.items():
        frame = frame[frame[column] == value]
    return frame


def one(frame, **which):
    chosen = rows(frame, **which)
    assert len(chosen) == 1
    return chosen.iloc[0]


def mean_ratings(rated, source, dimension):
    return rows(rated.ratings, source=source, dimension=dimension).groupby(["item_id", "system_id"])["rating"].mean()


@pytest.mark.parametrize("coefficient", PLAIN)
@pytest.mark.parametrize(("metric", "output"), [("judge", "relevance"), ("judge", "overall"), ("bleu", "mean")])
def test_of_turns_as_scipy_has_it(turns, found, coefficient, metric, output):
    rated, scores = turns
    own = rows(scores, metric=metric, output=output).set_index(["item_id", "system_id"])["value"].astype(float)
    for dimension, source in (("relevance", "human"), ("specificity", "gpt-4")):
        means = mean_ratings(rated, source, dimension).reindex(own.index)
        statistic, p = PLAIN[coefficient](own, means)
        row = one(found, dataset="t", dimension=dimension, metric=metric, output=output, coefficient=coefficient)
        assert (row["source"], row["level"], row["n"]) == (source, "turn", len(own))
        assert row["coverage"] == pytest.approx(len(own) / 60)
        assert row["value"] == pytest.approx(statistic, abs=1e-12)
        assert row["p"] == pytest.approx(p, rel=1e-8)


@pytest.mark.parametrize("source", ["human", "gpt-4"])
def test_of_dialogues_turn_scores_are_averaged_and_sources_kept_apart(dialogues, found, source):
    rated, scores = dialogues
    dialogue_of = rated.contexts.set_index("context_id")["dialogue_id"]
    words = rows(scores, metric="words").astype({"value": float})
    expected = {
        "words": words.groupby(words["item_id"].map(dialogue_of))["value"].mean(),
        "judge": rows(scores, metric="judge", output="coherence").set_index("item_id")["value"].astype(float),
    }
    means = mean_ratings(rated, source, "coherence").droplevel(1)
    for metric, own in expected.items():
        output = "mean" if metric == "words" else "coherence"
        row = one(
            found, dataset="d", source=source, dimension="coherence", metric=metric, output=output,
            coefficient="pearson",
        )  # fmt: skip
        assert row["value"] == pytest.approx(stats.pearsonr(own, means.reindex(own.index)).statistic, abs=1e-12)
        assert (row["n"], row["coverage"], row["level"]) == (30, 1.0, "dialogue")


def test_only_what_is_named_and_what_is_called_as_the_dimension_has_an_interval(found):
    has = found["low"].notna()
    named = (found["metric"] == "words") | (found["output"] == found["dimension"])
    assert (has == named).all()
    inside = found[has]
    assert ((inside["low"] < inside["value"]) & (inside["value"] < inside["high"])).all()


def test_what_is_resampled_follows_from_how_systems_and_dialogues_meet(dialogues, turns):
    def counts(rated, scores):
        design = rated.samples(scores, "human")[0].design
        return design.systems.max() + 1, design.dialogues.max() + 1

    rated, scores = turns
    assert counts(*dialogues) == (1, 30)
    assert counts(rated, scores) == (5, 6)
    few = RatedSet("t", "turn", rated.ratings[rated.ratings["system_id"] < "s3"], rated.contexts)
    assert counts(few, scores) == (1, 6)
    # Each dialogue of one system.
    kept = rated.ratings["item_id"].str[1:].astype(int) // 2 % 4 == rated.ratings["system_id"].str[1:].astype(int)
    assert counts(RatedSet("t", "turn", rated.ratings[kept], rated.contexts), scores) == (4, 1)


def test_a_judge_is_not_held_against_its_own_ratings(dialogues):
    rated, scores = dialogues
    ensembles = Ensembles.of(
        {"dimensions": ["judge"], "models": {"with": ["judge", "words:mean"], "without": ["words:mean"]}}
    )
    kept = {
        own: dimension_correlations(
            [rated], {"d": scores}, ensembles=ensembles, own={"judge": "gpt-4"} if own else None, resamples=0
        )
        for own in (False, True)
    }
    its = kept[False]["metric"].isin(["judge", "ensemble-dimensions:judge", "ensemble-models:with"])
    assert its.any()
    lost = its & (kept[False]["source"] == "gpt-4")
    pd.testing.assert_frame_equal(kept[True], kept[False][~lost].reset_index(drop=True))
    with pytest.raises(UnknownNameError, match="metric 'jugde'"):
        dimension_correlations([rated], {"d": scores}, own={"jugde": "gpt-4"}, resamples=0)
    with pytest.raises(UnknownNameError, match="source of ratings 'gpt4'"):
        dimension_correlations([rated], {"d": scores}, own={"judge": "gpt4"}, resamples=0)


def test_no_resamples_means_no_intervals_and_the_order_of_rows_does_not_matter(dialogues):
    rated, scores = dialogues
    plain = dimension_correlations([rated], {"d": scores}, resamples=0)
    assert plain["low"].isna().all()
    again = dimension_correlations([rated], {"d": scores.sample(frac=1, random_state=1)}, resamples=0)
    pd.testing.assert_frame_equal(plain, again)


def test_what_stands_for_a_dimension():
    frame = pd.DataFrame(
        [("a", "relevance", "relevance"), ("a", "overall", "relevance"), ("b", "mean", "relevance")],
        columns=["metric", "output", "dimension"],
    )
    chosen = standing_for(frame, ["a:overall", "b:mean"])
    assert list(zip(chosen["metric"], chosen["output"], strict=True)) == [("a", "relevance"), ("b", "mean")]
    assert standing_for(frame, []).index.tolist() == [0]


def test_rank_deviation_is_spearmans_between_two_lists_of_correlations():
    rng = np.random.default_rng(5)
    lists = {"human": rng.normal(size=6) / 9, "gpt-4": rng.normal(size=6) / 9}
    made = [
        (
            "d",
            source,
            "dialogue",
            "coherence",
            f"m{k}",
            "o",
            "pearson",
            values[k],
            np.nan,
            np.nan,
            np.nan,
            None,
            0.5,
            9,
            1.0,
            "s",
        )
        for source, values in lists.items()
        for k in range(6)
        if (source, k) != ("human", 5)
    ]
    frame = table("dimension_correlations", made)
    row = one(rank_deviation(frame, [f"m{k}:o" for k in range(6)]), dimension="coherence")
    assert row["n"] == 5
    assert row["value"] == pytest.approx(stats.spearmanr(lists["human"][:5], lists["gpt-4"][:5]).statistic)
    assert one(rank_deviation(frame, [f"m{k}:o" for k in range(6)], leave_out=["m0"]))["n"] == 4


def test_rounds_are_correlated_two_by_two(dialogues):
    rated, _ = dialogues
    found = rounds([rated])
    assert len(found) == 10
    row = one(found, source="gpt-4", dimension="overall")
    assert (row["annotator_a"], row["annotator_b"], row["n"]) == ("round-1", "round-2", 30)
    wide = rows(rated.ratings, source="gpt-4", dimension="overall").pivot(
        index="item_id", columns="annotator_id", values="rating"
    )
    assert row["pearson"] == pytest.approx(wide.corr().iloc[0, 1])
    assert row["spearman"] == pytest.approx(wide.corr("spearman").iloc[0, 1])


def test_interdimensional_is_pandas_corr_for_each_who(dialogues):
    rated, scores = dialogues
    found = interdimensional(rated, scores, metrics=["judge"])
    assert set(found["who"]) == {"human", "gpt-4", "judge"}
    assert len(found) == 3 * 25
    order = list(DIMENSIONS["dialogue"])
    wide = rows(scores, metric="judge").pivot(index="item_id", columns="output", values="value").astype(float)
    matrix = rows(found, who="judge").pivot(index="dimension_a", columns="dimension_b", values="value")
    np.testing.assert_allclose(matrix.loc[order, order], wide[order].corr(), atol=1e-12)
    with pytest.raises(UnknownNameError, match=r"metric 'jugde'.*Did you mean 'judge'"):
        interdimensional(rated, scores, metrics=["jugde"])


def test_who_lacks_a_dimension_has_no_matrix(turns):
    assert interdimensional(turns[0])["who"].tolist() == []


def written(folder, rated, scores):
    folder.mkdir()
    contexts = rated.contexts.assign(turn=0, history=[[]] * len(rated.contexts))
    contexts = contexts.assign(references=[[]] * len(contexts), facts=[[]] * len(contexts))
    schema.write(folder / "contexts.parquet", contexts, "contexts")
    schema.write(folder / "ratings.parquet", rated.ratings, "ratings")
    path = folder.parent / f"{folder.name}.parquet"
    schema.write(path, scores, "scores")
    return folder, path


def called(*arguments):
    parser = argparse.ArgumentParser()
    command.add_commands(parser.add_subparsers())
    options = parser.parse_args([str(argument) for argument in arguments])
    options.run(options)


def test_the_command_writes_what_the_library_gives(tmp_path, turns, dialogues):
    folders, paths = zip(*(written(tmp_path / one[0].dataset, *one) for one in (turns, dialogues)), strict=True)
    ensembles = {"dimensions": ["judge"], "models": {"both": ["judge:overall", "words:mean"]}}
    called(
        "dimensions", *paths, "--tables", *folders, "--outputs", "words:mean", "--resamples", 20, "--seed", 7,
        "--ensembles", json.dumps(ensembles), "--output", tmp_path / "out.parquet", "--rounds", tmp_path / "r.csv",
        "--own", "judge=gpt-4",
    )  # fmt: skip
    expected = dimension_correlations(
        [turns[0], dialogues[0]], {"t": turns[1], "d": dialogues[1]}, ensembles=Ensembles.of(ensembles),
        outputs={("words", "mean")}, own={"judge": "gpt-4"}, resamples=20, seed=7,
    )  # fmt: skip
    key = list(schema.table("dimension_correlations").key)
    got = schema.read(tmp_path / "out.parquet", "dimension_correlations")
    pd.testing.assert_frame_equal(got, expected.sort_values(key, kind="stable").reset_index(drop=True))
    assert len(schema.read(tmp_path / "r.csv", "rounds")) == 5 * 3 + 10


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"--outputs": "words:men"}, "unknown output 'words:men'.*Did you mean 'words:mean'"),
        ({"--outputs": "words"}, "output 'words'; expected METRIC:OUTPUT"),
        ({"--resamples": "1"}, "1 resamples"),
        ({"--output": "out.xlsx"}, "out.xlsx: unknown kind of file"),
        ({"--tables": "nowhere"}, "nowhere: no such folder"),
        ({"--ensembles": '{"models": {"x": ["words:men"]}}'}, "ensembles, models, x: unknown output"),
        ({"--ensembles": '{"models": {"x": []}}'}, "ensembles, models, x: no list of members"),
        ({"--own": "jugde=gpt-4"}, "--own: unknown metric 'jugde'"),
        ({"--ensembles": '{"model": {}}'}, "unknown kind of ensemble 'model'"),
    ],
)
def test_a_mistake_gives_one_clear_message(tmp_path, dialogues, change, message):
    folder, path = written(tmp_path / "d", *dialogues)
    options = {"--tables": folder, "--output": tmp_path / "o.csv", "--resamples": "0"} | change
    with pytest.raises(ComperdialError, match=message) as error:
        called("dimensions", path, *(part for pair in options.items() for part in pair))
    assert "\n" not in str(error.value)


def test_scores_and_tables_belong_together(tmp_path, turns, dialogues):
    (d, scores_d), (t, scores_t) = (written(tmp_path / one[0].dataset, *one) for one in (dialogues, turns))
    out = ["--output", tmp_path / "o.csv", "--resamples", 0]
    with pytest.raises(SchemaError, match="scores of data set 't', and no tables"):
        called("dimensions", scores_d, scores_t, "--tables", d, *out)
    with pytest.raises(SchemaError, match="tables of data set 't', and no scores"):
        called("dimensions", scores_d, "--tables", d, t, *out)
    with pytest.raises(SchemaError, match="two folders of data set 'd'"):
        called("dimensions", scores_d, "--tables", d, d, *out)
    with pytest.raises(SchemaError, match=r"dataset 'd': metric '\w+', output '\w+' scores item 'd\w+' twice"):
        read_scores_by_dataset([scores_d, scores_d])
    more = pd.concat([schema.read(t / "ratings.parquet", "ratings"), dialogues[0].ratings.assign(dataset="t")])
    schema.write(t / "ratings.parquet", more, "ratings")
    with pytest.raises(SchemaError, match="ratings of turns and of dialogues"):
        RatedSet.read(t)


def test_one_metric_made_in_two_ways_is_refused(tmp_path, dialogues):
    one, other = dialogues[1], dialogues[1].assign(metric="x", signature="x|v:2")
    other.loc[0, "signature"] = "x|v:3"
    schema.write(tmp_path / "a.parquet", one, "scores")
    schema.write(tmp_path / "b.parquet", other[other["output"] == "coherence"], "scores")
    with pytest.raises(SchemaError, match="dataset 'd': metric 'x' was made in several ways"):
        read_scores_by_dataset([tmp_path / "a.parquet", tmp_path / "b.parquet"])


def test_a_negative_seed_is_refused(dialogues):
    with pytest.raises(ConfigError, match="seed -1"):
        dimension_correlations([dialogues[0]], {"d": dialogues[1]}, seed=-1)
