"""UniEval's own recorded predictions on USR-TopicalChat: what its authors publish of them, and what we make of them."""

import json
from itertools import product

import pytest
from scipy import stats

from comperdial import evaluation, schema
from comperdial.core.errors import SchemaError
from comperdial.data.recorded import DIMENSIONS, import_scores

# Of all 360 responses, the references among them: Pearson, Spearman, Kendall, each with the people's rating of the
# dimension of the same name.
PUBLISHED = {
    "naturalness": (0.443666, 0.513986, 0.373973),
    "coherence": (0.595143, 0.612942, 0.465915),
    "engagingness": (0.556510, 0.604739, 0.455941),
    "groundedness": (0.536209, 0.574954, 0.451533),
    "understandability": (0.380038, 0.467807, 0.360741),
    "overall": (0.632796, 0.662583, 0.487272),
}
# Of the 300 that are evaluated here: with the rating of the same dimension, and with Overall.
OURS = {
    "naturalness": ((0.4022, 0.4548, 0.3300), (0.3061, 0.4096, 0.2874)),
    "coherence": ((0.5685, 0.6023, 0.4551), (0.4520, 0.4917, 0.3531)),
    "engagingness": ((0.5471, 0.5733, 0.4303), (0.5551, 0.5420, 0.3933)),
    "groundedness": ((0.5195, 0.5769, 0.4533), (0.2723, 0.3988, 0.2811)),
    "understandability": ((0.3254, 0.3778, 0.2888), (0.3093, 0.4203, 0.2958)),
    "overall": ((0.5931, 0.6041, 0.4425), (0.5931, 0.6041, 0.4425)),
}
COEFFICIENTS = ("pearson", "spearman", "kendall")


def correlated(*tables, **choice):
    return evaluation.correlations(evaluation.samples(*tables, **choice))


@pytest.fixture(scope="module")
def folder(usr_tables, tmp_path_factory):
    folder = tmp_path_factory.mktemp("usr_topical")
    for name, frame in usr_tables["usr_topical"].items():
        schema.write(folder / f"{name}.parquet", frame, name)
    return folder


def take(folder, path, **options):
    given = {"format": "unieval", "origin": "maszhongming/UniEval@d33e7b6/topical_chat_result.json", "about": "theirs"}
    given["ratings"] = folder / "ratings.parquet"
    return import_scores("unieval_recorded", folder, path, **given | options)


@pytest.fixture(scope="module")
def scores(folder, unieval_predictions):
    return take(folder, unieval_predictions)


@pytest.fixture(scope="module")
def correlations(scores, usr_tables):
    tables = usr_tables["usr_topical"]
    found = correlated(scores, tables["ratings"], systems=tables["systems"])
    return found.set_index(["level", "target", "output", "coefficient"])


@pytest.mark.parametrize(("output", "published"), [*PUBLISHED.items()])
def test_the_file_gives_what_its_authors_publish(unieval_predictions, output, published):
    items = json.loads(unieval_predictions.read_text())
    assert len(items) == 360
    theirs, people = ([item[field][output] for item in items] for field in ("predict_scores", "scores"))
    found = [measure(theirs, people)[0] for measure in (stats.pearsonr, stats.spearmanr, stats.kendalltau)]
    assert found == pytest.approx(published, abs=5.1e-7)


@pytest.mark.parametrize(("output", "published"), [*PUBLISHED.items()])
def test_so_do_our_ratings_with_the_references_left_in(folder, unieval_predictions, usr_tables, output, published):
    """The join by text, held to the published digits: with no system called a reference, all 360 are taken."""
    everyone = schema.read(folder / "systems.parquet", "systems").assign(kind="agent")
    other = folder.with_name(f"all_{output}")
    other.mkdir()
    schema.write(other / "systems.parquet", everyone, "systems")
    for name in ("contexts", "responses", "ratings"):
        (other / f"{name}.parquet").write_bytes((folder / f"{name}.parquet").read_bytes())
    scores = take(other, unieval_predictions, ratings=other / "ratings.parquet")
    scores = scores[scores["output"] == output]
    target = DIMENSIONS[output]
    found = correlated(scores, usr_tables["usr_topical"]["ratings"], targets=[target], levels=["turn"])
    assert set(found["n"]) == {360}
    values = found.set_index("coefficient")["value"]
    # Scores are kept as float32, in which a few that differ in the eighth digit are ties.
    assert [values[c] for c in COEFFICIENTS] == pytest.approx(published, abs=5e-6)


@pytest.mark.parametrize(("output", "expected"), [*OURS.items()])
def test_what_we_measure_on_the_evaluated_responses(correlations, output, expected):
    for target, values in zip((DIMENSIONS[output], "Overall"), expected, strict=True):
        for coefficient, value in zip(COEFFICIENTS, values, strict=True):
            found = correlations.loc[("turn", target, output, coefficient)]
            assert found["value"] == pytest.approx(value, abs=5.1e-5)
            assert (found["n"], found["coverage"]) == (300, 1.0)


def test_every_evaluated_response_has_all_six(scores):
    assert len(scores) == 300 * 6
    assert set(scores["output"]) == set(PUBLISHED)
    assert "Original Ground Truth" not in set(scores["system_id"])
    assert set(scores["signature"]) == {
        "recorded|format:unieval|from:maszhongming/UniEval@d33e7b6/topical_chat_result.json|sha256:e1c28ffea885"
        "|about:theirs|v:1"
    }


def test_overall_is_the_mean_of_the_five(scores):
    values = scores.pivot(index=["item_id", "system_id"], columns="output", values="value").astype("float64")
    assert (values.drop(columns="overall").mean(axis=1) - values["overall"]).abs().max() < 1e-6


def test_the_order_of_the_systems(scores):
    """Why Spearman is low at system level: people put Argmax first among the models, UniEval last."""
    means = scores[scores["output"] == "overall"].groupby("system_id")["value"].mean().sort_values()
    assert list(means.index) == [
        "Argmax Decoding", "Nucleus Decoding (p = 0.3)", "Nucleus Decoding (p = 0.5)", "Nucleus Decoding (p = 0.7)",
        "New Human Generated",
    ]  # fmt: skip


def test_items_are_matched_by_text_not_by_place(folder, unieval_predictions, scores, tmp_path):
    items = json.loads(unieval_predictions.read_text())
    turned = tmp_path / "turned.json"
    turned.write_text(json.dumps(items[::-1]))
    key = ["item_id", "system_id", "output"]
    expected, found = (frame.set_index(key)["value"].sort_index() for frame in (scores, take(folder, turned)))
    assert found.equals(expected)


@pytest.mark.parametrize(("field", "number"), [*product(["system_output", "source"], [0, 217])])
def test_swapped_texts_are_noticed(folder, unieval_predictions, tmp_path, field, number):
    items = json.loads(unieval_predictions.read_text())
    items[number][field] = items[(number + 7) % 360][field]
    altered = tmp_path / "altered.json"
    altered.write_text(json.dumps(items))
    with pytest.raises(SchemaError, match=f"item {number}: no r"):
        take(folder, altered)
