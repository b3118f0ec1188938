"""The library: read, score, correlate and compare, on frames; judges in the data are compared without being named."""

from __future__ import annotations

import doctest
import html

import pandas as pd
import pytest

import comperdial
from comperdial import api
from comperdial.core.errors import ComperdialError

RATINGS = [5, 3, 1, 4, 2, 2, 5, 4, 1] * 2


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Work as after a plain install: without params.yaml, and without models."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMPERDIAL_MODELS", str(tmp_path / "models"))


def mine(**columns) -> pd.DataFrame:
    """Return three systems' responses to six contexts with ratings, and further columns."""
    texts = ["i like green tea", "tea is", "what a day"]
    frame = pd.DataFrame({
        "context_id": [item for item in range(6) for _ in "abc"], "system": list("abc") * 6, "response": texts * 6,
        "reference": "i like tea", "rating": RATINGS,
    })  # fmt: skip
    return frame.assign(**columns)


def spearman(found: comperdial.api.Comparison) -> dict[tuple[str, str], float]:
    """Return the coefficients of a comparison by dimension and metric."""
    table = found.table[(found.table["coefficient"] == "spearman") & (found.table["level"] == "turn")]
    return {(row.target, row.label): round(row.value, 3) for row in table.itertuples()}


def test_the_docstrings_examples_run():
    for module in (comperdial, api):
        assert doctest.testmod(module).failed == 0


JUDGED = mine(gpt4_score=RATINGS, note="x")
BOTH = pd.concat([mine(source="human"), mine(source="gpt-4", rating=[6 - value for value in RATINGS])])
BY_DIMENSION = pd.concat(
    mine(dimension=dimension, source=source, rating=[sign * value for value in RATINGS])
    for dimension, signs in (("A", (1, 1)), ("B", (1, -1)))
    for source, sign in zip(("human", "gpt-4"), signs, strict=True)
)


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (JUDGED, {("rating", "gpt4_score"): 1.0}),
        (mine(BLEU=RATINGS), {("rating", "BLEU"): 1.0}),
        (BOTH, {("rating", "gpt-4"): -1.0}),
        (pd.concat([mine(rater="ann"), mine(rater="gpt-4o")]), {("rating", "gpt-4o"): 1.0}),
        (BY_DIMENSION, {("A", "gpt-4"): 1.0, ("B", "gpt-4"): -1.0}),
        # The judge rated one thing: it is compared with each that people rated.
        (pd.concat([BY_DIMENSION[BY_DIMENSION["source"] == "human"], mine(dimension="C", source="gpt-4")]),
         {("A", "gpt-4"): 1.0, ("B", "gpt-4"): 1.0}),
        # A column that differs between the dimensions of a response holds a score for each.
        (pd.concat([mine(dimension="A", gpt4=RATINGS), mine(dimension="B", gpt4=[-value for value in RATINGS])]),
         {("A", "gpt4"): 1.0, ("B", "gpt4"): -1.0}),
        (pd.concat([mine(rater="x", gpt4=RATINGS), mine(rater="y", gpt4=[2 * value for value in RATINGS])]),
         {("rating", "gpt4"): 1.0}),
    ],
)  # fmt: skip
def test_judges_in_the_data_are_rows_without_being_named(frame, expected):
    found = comperdial.compare(frame.reset_index(drop=True), "f1", resamples=20)
    values = spearman(found)
    assert {name: value for name, value in values.items() if name[1] != "f1"} == expected
    assert {target for target, label in values if label == "f1"} == {target for target, _ in expected}


def test_nothing_of_the_file_is_dropped_silently():
    found = comperdial.compare(JUDGED, "f1", resamples=20)
    assert "columns not used: note" in found.notes
    frame = pd.concat([mine(source="human"), mine(source="gpt-4", context_id=99)]).reset_index(drop=True)
    assert "gpt-4: rated nothing that human rated" in comperdial.compare(frame[:21], "f1", resamples=20).notes[0]


@pytest.mark.parametrize(
    ("frame", "answer"),
    [
        (mine()[lambda frame: frame["system"] == "a"].assign(response=list("abcdei")), "Over 6 responses, f1 has"),
        (mine()[lambda frame: frame["system"] != "c"], "for these systems only"),
        (mine()[:3], "Over 3 responses"),
        (mine().drop(columns="system"), "Over 18 responses"),
        (mine(rating=3), "No metric has a correlation"),
        (mine(rating=[6 - value for value in RATINGS]), "none correlates positively"),
        (mine(source="gpt-4"), "gpt-4's (no person's) ratings"),
        (mine(source="simulated"), "SIMULATED ratings"),
    ],
)
def test_small_and_odd_data_have_a_true_headline(frame, answer):
    found = comperdial.compare(frame.reset_index(drop=True), ["f1", "chrf"], resamples=20)
    assert answer in found.headline
    assert str(found).startswith(found.headline) and found.headline in found.to_markdown()
    assert html.escape(found.headline) in found._repr_html_()


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (mine().drop(columns="rating"), "no column contains human ratings"),
        (mine().drop(columns="reference"), "no metric could be run: f1: no response has references"),
        (mine(source="crowd").assign(source=["crowd", "experts"] * 9), "ratings by crowd, experts"),
    ],
)
def test_what_is_missing_is_one_error(frame, message):
    with pytest.raises(ComperdialError, match=message):
        comperdial.compare(frame, "f1")


def test_without_names_all_that_can_run_is_compared_and_the_rest_is_one_line():
    found = comperdial.compare(mine(), resamples=20)
    assert {"f1", "bleu", "rouge", "chrf"} <= {*found.table["label"]}
    assert found.notes[0].startswith("Not run: ") and "their model is not on this machine" in found.notes[0]
    assert sum("Not run" in note for note in found.notes) == 1


def test_the_table_is_sorted_and_systems_have_intervals():
    found = comperdial.compare(mine(gpt4_score=RATINGS), ["f1", "chrf"], resamples=20)
    for _, rows in found.table.groupby(["level", "coefficient"], sort=False):
        assert rows["value"].round(9).is_monotonic_decreasing
    assert found.table["level"].iloc[0] == "turn" and found.table["coefficient"].iloc[0] == "spearman"
    systems = found.systems.set_index("system_id")
    assert list(systems.index) == ["a", "b", "c"]
    a = mine().loc[lambda frame: frame["system"] == "a", "rating"]
    assert systems.loc["a", "rating"] == pytest.approx(a.mean())
    # One response a context: the interval is Student's t.
    assert a.mean() - systems.loc["a", "low"] == pytest.approx(2.5706 * a.std() / 6**0.5, rel=1e-4)
    # It ends where the scale does.
    assert systems.loc["a", "high"] == 5
    assert systems.loc["a", "gpt4_score"] == pytest.approx(a.mean())
    assert set(found.pairs["tests"]) == {3}


def test_systems_of_several_dimensions_are_in_the_order_of_the_first():
    frame = mine().rename(columns={"rating": "helpfulness"}).assign(fluency=RATINGS[::-1])
    text = str(comperdial.compare(frame, "f1", resamples=20))
    table = text.partition("Systems, the best by fluency first")[2].splitlines()
    assert [line[0] for line in table if line[:2] in ("a ", "b ", "c ")] == ["c", "b", "a"]


def test_scores_and_ratings_may_be_frames_or_files(tmp_path):
    (tmp_path / "data").mkdir()  # a folder's name is not taken for the frame's
    data = comperdial.read(mine(), scale=[1, 5])
    assert data.ratings["scale_max"].unique().tolist() == [5.0]
    scores = comperdial.score(mine().drop(columns="rating"), ["f1"])
    names = {"context_id": mine()["context_id"], "system_id": mine()["system"]}
    rated, valued = pd.DataFrame({**names, "rating": RATINGS}), pd.DataFrame({**names, "value": range(18)})
    rated.to_csv(tmp_path / "ratings.csv", index=False)
    ours = comperdial.score(data, ["f1"])
    expected = comperdial.compare(mine(), "f1", resamples=20).table["value"].tolist()
    for found in (
        comperdial.compare(data, scores=ours, resamples=20),
        comperdial.compare(scores=ours, ratings=rated, resamples=20),
        comperdial.compare(mine().drop(columns="rating"), "f1", ratings="ratings.csv", resamples=20),
    ):
        assert found.table["value"].tolist() == pytest.approx(expected)
    assert scores.drop(columns="dataset").equals(ours.drop(columns="dataset"))
    table = comperdial.correlate(valued, rated, level=["turn"], resamples=0)
    assert table["value"].iloc[0] == pytest.approx(pd.Series(range(18)).corr(pd.Series(RATINGS)))
