"""The study of LLMs as dialogue evaluators: correlations by dimension, ensembles, robustness ratios, and its tables."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from comperdial import schema
from comperdial.core.errors import ConfigError, SchemaError, UnknownNameError
from comperdial.evaluation.dimensions import between_dimensions, dimension_correlations
from comperdial.evaluation.ensembles import Ensembles, averaged
from comperdial.evaluation.ratios import bounds_of, pairs_of, ratios
from comperdial.evaluation.samples import Tables
from comperdial.schema.evaluated import DIMENSIONS
from comperdial.studies import llm_evaluators
from ratedtables import rating_rows, score_rows

DIALOGUE = DIMENSIONS["dialogue"]
JUDGE, ASKED = "explicit-dialogue_rules", [f"implicit-{name}_lm" for name in DIALOGUE[:4]]
VARIANTS = {f"implicit-{name}": {"labels": {"Yes": 1, "No": 0}, "dimensions": [name]} for name in DIALOGUE[:4]}
STUDY = {
    "ensembles": {"dimensions": [JUDGE], "models": {"two": [JUDGE, "words:mean"], "none": ["lost:mean", JUDGE]}},
    "variants": VARIANTS,
}


def table(name, rows):
    return schema.validate(pd.DataFrame(rows, columns=schema.table(name).columns), name)


@pytest.fixture(scope="module")
def rated():
    """Twenty dialogues of one system, rated by people and in two rounds by gpt-4; scores of turns and of dialogues."""
    rng, units = np.random.default_rng(4), [(f"d{d}", "bot") for d in range(20)]
    truth = rng.normal(size=20)
    raters = [("ann", "human"), ("bob", "human"), ("round-1", "gpt-4"), ("round-2", "gpt-4")]
    ratings = [
        rating_rows(
            units, np.round(2 * truth + rng.normal(size=20)), who, "dialogue", dimension=dimension, source=source
        )
        for dimension in DIALOGUE
        for who, source in raters
    ]
    outputs = [(metric, name) for name in DIALOGUE for metric in (JUDGE, f"implicit-{name}_lm", "gpt-4_d")]
    outputs.remove(("implicit-overall_lm", "overall"))
    scores = [
        score_rows(
            units, truth + rng.normal(size=20), metric, "dialogue", output=name, signature=f"{metric}|service:rules|v:1"
        )
        for metric, name in outputs
    ]
    turns = [(f"d{d}t{t}", "bot") for d in range(20) for t in range(2)]
    scores.append(score_rows(turns, np.repeat(truth, 2) + rng.normal(size=40), "words", output="mean"))
    contexts = pd.DataFrame([("d", turn, turn.partition("t")[0]) for turn, _ in turns])
    contexts.columns = ["dataset", "context_id", "dialogue_id"]
    return Tables(pd.concat(scores), pd.concat(ratings), contexts)


@pytest.fixture(scope="module")
def found(rated):
    ensembles = Ensembles.of(STUDY["ensembles"], sorted(rated.scores["metric"].unique()), VARIANTS)
    return dimension_correlations(
        rated, ensembles=ensembles, outputs={("words", "mean")}, own={"gpt-4_d": "gpt-4"}, resamples=20, seed=1
    )


def one(frame, **which):
    for column, value in which.items():
        frame = frame[frame[column] == value]
    assert len(frame) == 1
    return frame.iloc[0]


def means(rated, source, dimension):
    chosen = rated.ratings[(rated.ratings["source"] == source) & (rated.ratings["dimension"] == dimension)]
    return chosen.groupby("item_id")["rating"].mean()


@pytest.mark.parametrize("source", ["human", "gpt-4"])
def test_correlations_match_scipy_for_each_source(rated, found, source):
    words = rated.scores[rated.scores["metric"] == "words"]
    own = words.groupby(words["item_id"].str.partition("t")[0])["value"].mean()
    for name, of in {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}.items():
        row = one(found, source=source, dimension="coherence", metric="words", coefficient=name)
        expected = of(own, means(rated, source, "coherence").reindex(own.index))
        assert (row["value"], row["p"]) == (pytest.approx(expected[0]), pytest.approx(expected[1]))
        assert (row["n"], row["coverage"], row["level"]) == (20, 1.0, "dialogue")
        assert row["low"] < row["value"] < row["high"]


def test_ensembles_are_averages_and_a_judge_is_not_compared_with_its_own_ratings(rated, found):
    scores = rated.scores
    wide = scores[scores["level"] == "dialogue"].pivot(index="item_id", columns=["metric", "output"], values="value")
    ratings = means(rated, "human", "overall").reindex(wide.index)
    expected = {
        f"ensemble-dimensions:{JUDGE}": wide[JUDGE][list(DIALOGUE[:4])].mean(axis=1),
        "ensemble-dimensions:implicit_lm": wide[ASKED].mean(axis=1),
    }
    for metric, values in expected.items():
        row = one(found, source="human", dimension="overall", metric=metric, coefficient="pearson")
        assert row["value"] == pytest.approx(values.corr(ratings)) and "|scale:plain|" in row["signature"]
    of_models = found[found["metric"] == "ensemble-models:two"]
    assert {*of_models["output"]} == {*DIALOGUE} and not (found["metric"] == "ensemble-models:none").any()
    assert {*found.loc[found["metric"] == "gpt-4_d", "source"]} == {"human"}
    both = averaged(np.array([[1.0, 2.0, 3.0, np.nan], [5.0, 5.0, 5.0, 5.0]]), standardise=True)
    np.testing.assert_allclose(both, [*(stats.zscore([1, 2, 3]) / 2), np.nan])


def test_dimension_correlations_match_pandas(rated):
    scores = rated.scores
    others = replace(rated, scores=scores[scores["metric"] != "gpt-4_d"])
    frame = between_dimensions(others, Ensembles.of({}, ASKED, VARIANTS))
    assert {*frame["who"]} == {"human", "gpt-4", JUDGE}, "implicit scoring lacks the overall score"
    expected = means(rated, "gpt-4", "diversity").corr(means(rated, "gpt-4", "coherence"))
    row = one(frame, who="gpt-4", dimension_a="diversity", dimension_b="coherence")
    assert (row["value"], row["n"]) == (pytest.approx(expected), 20)


# Robustness


AIMS = {"dullness": SimpleNamespace(level="turn", dimensions=("interestingness", "specificity"), threshold=0.2)}
BOUNDS = {("judge", "specificity"): (1.0, 5.0), ("len", "o"): (0.0, 10.0)}


def fallen(drops, texts=None, bounds=BOUNDS, turns=1):
    """Return the ratios of pairs whose judge and whose metric `len` fall from 4 and from 8 by some number."""
    contexts, responses, scores = [], [], []
    for k, drop in enumerate(drops):
        for system in ("original", "perturbed"):
            for t in range(turns):
                item, text = f"dullness-{k:04d}-{system}-{t}", texts[k] if texts else f"text {k}"
                contexts.append(("p", item, f"dullness-{k:04d}", t, [{"speaker": "A", "text": text}], [], []))
                responses.append(("p", item, system, "yes"))
                for name, start in ((("judge", "specificity"), 4.0), (("len", "o"), 8.0)):
                    value = start - (0 if system == "original" else drop)
                    scores.append(("p", "turn", item, system, *name, value, 0, f"{name[0]}|v:1"))
    tables = (table("contexts", contexts), table("responses", responses))
    return ratios(tables[0], pairs_of(*tables), table("scores", scores), AIMS, bounds=bounds)


def test_ratio_is_share_of_falling_pairs_with_wilson_interval():
    # On a scale of 1 to 5 a drop of 0.8 is just the threshold of 0.2: no drop of more.
    frame = fallen([0, 0, -1, 0.4, 0.8, 1, 2], turns=2)
    any_drop = one(frame, metric="judge", dimension="specificity", threshold=0.0)
    assert (any_drop["ratio"], any_drop["ties"], any_drop["n"]) == (pytest.approx(4 / 7), pytest.approx(2 / 7), 7)
    wilson = stats.binomtest(4, 7).proportion_ci(method="wilson")
    assert (any_drop["low"], any_drop["high"]) == (pytest.approx(wilson.low), pytest.approx(wilson.high))
    row = one(frame, metric="judge", dimension="specificity", threshold=0.2)
    assert (row["ratio"], row["lowest"], row["highest"]) == (pytest.approx(2 / 7), 1.0, 5.0)
    assert {*fallen([1, 0], bounds={})["threshold"]} == {0.0}


def test_pairs_from_one_original_are_not_independent():
    drops = [1, 1, 1, 1, 1, 0, 0, 0, 0, 0] * 4
    alone, together = (
        one(fallen(drops, texts), metric="len", dimension="specificity", threshold=0.0)
        for texts in (None, [f"t{k // 5}" for k in range(40)])
    )
    assert alone["ratio"] == together["ratio"] == 0.5
    assert together["high"] - together["low"] > 1.5 * (alone["high"] - alone["low"])


def test_incomparable_data_is_refused():
    contexts = table("contexts", [("p", "c", "dullness-1", 0, [], [], [])])
    responses = table("responses", [("p", "c", "original", "a"), ("p", "c", "perturbed", "b")])
    with pytest.raises(SchemaError, match="a score of 8, outside its bounds"):
        fallen([1, 0], bounds={("len", "o"): (0.0, 5.0)})
    with pytest.raises(UnknownNameError, match="perturbation 'dullness'"):
        ratios(contexts, pairs_of(contexts, responses), schema.empty("scores"), {})
    with pytest.raises(SchemaError, match="dialogue 'dullness-1' has responses of original; expected a pair"):
        pairs_of(contexts, responses[:1])
    with pytest.raises(ConfigError, match="bounds, f1"):
        bounds_of({"f1": {"f1": [1, 0]}})


# Tables


REPORTED = """source,place,dataset,level,dimension,metric,output,coefficient,value,starred,note,perturbation
z,Table 2,,dialogue,coherence,M,direct,pearson,0.5,,,
z,Table 4,d,dialogue,coherence,M,pearson,pearson,0.5,,,
"""


@pytest.fixture
def shown(found, tmp_path):
    """Return a function that makes a table of the study from the small results."""
    asked = {"judge": "lm", "service": "x", "implicit": True, "asked": True}
    judged = {JUDGE: {"judge": "rules", "service": "rules", "implicit": False, "variant": "explicit", "asked": True}}
    about = {
        "dataset": "d", "title": "D (rated by gpt-4)", "source": "gpt-4", "judges": judged | dict.fromkeys(ASKED, asked),
        "mains": {"words": ["mean"], "f1": ["f1"], "lost": ["mean"]},
        "labels": {JUDGE: "Explicit by rules", "words": "Words"}, "not_run": {"lost": "no model", "other": "no model"},
    }  # fmt: skip
    (tmp_path / "about.json").write_text(json.dumps(about))
    (tmp_path / "reported.csv").write_text(REPORTED)
    schema.write(tmp_path / "correlations.parquet", found, "dimension_correlations")
    study = STUDY | {"metrics": dict.fromkeys(("words", "f1", "lost")), "datasets": ["d"]}
    study["recorded_judges"] = {"gpt-4_d": {"model": "gpt-4"}}

    def make(function, **entry):
        paths = [tmp_path / name for name in ("correlations.parquet", "about.json", "reported.csv")]
        entry = {"title": "T", "caption": "C", "reported_by": "human or gpt-4", **entry}
        return getattr(llm_evaluators, function)({path.stem: [path] for path in paths}, study | {"entry": entry})

    return make


def value(found, **which):
    return one(found, coefficient="pearson", **which)["value"]


def test_means_are_per_source_and_missing_runs_are_reported(shown, found):
    made = shown("means", place="Table 2", of="evaluators")
    titles = ["ours, against ratings by people", "ours, against ratings by GPT-4"]
    titles.append("reported, against ratings by people or GPT-4")
    assert [section.title.partition(", ")[2] for section in made.sections] == titles
    expected = value(found, source="human", dimension="overall", metric="words")
    people, judge = (section.frame for section in made.sections[:2])
    assert people.loc["Words", ("Dialogue level", "Ovr")] == f"{expected:.3f}"
    assert "GPT-4 (recorded)" in people.index and "GPT-4 (recorded)" not in judge.index
    # One row for the variants of implicit scoring, without an average: no overall score was asked for.
    assert [*people.columns[people.loc["Implicit by lm"].isna()].get_level_values(1)] == ["Ovr", "Avg"]
    assert "Not run: lost: no model" in made.notes, "what other tables show is not named"


def test_rankings_are_compared_between_people_and_the_judge(shown, found):
    made = shown("rankings", place="Table 4")
    kept = found[(found["coefficient"] == "pearson") & (found["dimension"] == "coherence")]
    both = kept[
        kept["metric"].isin(["words", "implicit-coherence_lm"])
        | ((kept["metric"] == JUDGE) & (kept["output"] == "coherence"))
    ]
    wide = both.pivot(index="metric", columns="source", values="value")
    row = one(made.frame, dimension="coherence")
    assert (row["evaluators"], row["ours"]) == (3, pytest.approx(wide.corr(method="spearman").loc["human", "gpt-4"]))
