"""Comparing metrics on one's own data: the library's functions on frames, and `comperdial compare` on files."""

import doctest
import html
import io

import numpy as np
import pandas as pd
import pytest

import comperdial
from comperdial import api
from comperdial.cli import main
from comperdial.core.errors import ComperdialError
from comperdial.metrics.local import Local
from comperdial.report.compared import sentence
from comperdial.stats.multiple import benjamini_hochberg, holm

RATINGS = [5, 3, 1, 4, 2, 2, 5, 4, 1] * 2


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Work as after a plain install: without params.yaml, and without models."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMPERDIAL_MODELS", str(tmp_path / "models"))


def mine(**columns):
    """Return three systems' responses to six contexts with ratings, and further columns."""
    frame = pd.DataFrame({
        "context_id": [f"c{item}" for item in range(6) for _ in "abc"], "system": list("abc") * 6,
        "response": ["i like green tea", "tea is", "what a day"] * 6, "reference": "i like tea", "rating": RATINGS,
    })  # fmt: skip
    return frame.assign(**columns)


def run(capsys, *arguments, resamples=20):
    chosen = ("--resamples", resamples) if arguments[0] == "compare" else ()
    assert main([str(argument) for argument in (*arguments, *chosen)]) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def compared(capsys, *arguments, **options):
    """Return the table that the command writes as CSV."""
    out = run(capsys, "compare", *arguments, "--format", "csv", **options)
    return pd.read_csv(io.StringIO(out), keep_default_na=False)


def fails(capsys, *arguments):
    assert main(["compare", *map(str, arguments)]) == 1
    return capsys.readouterr().err


def test_docstring_examples_run():
    for module in (comperdial, api):
        assert doctest.testmod(module).failed == 0


# Judges in the data

BY_DIMENSION = pd.concat(
    mine(dimension=dimension, source=source, rating=[sign * value for value in RATINGS])
    for dimension, signs in (("A", (1, 1)), ("B", (1, -1)))
    for source, sign in zip(("human", "gpt-4"), signs, strict=True)
)


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (mine(gpt4_score=RATINGS, note="x"), {("rating", "gpt4_score"): 1.0}),
        (pd.concat([mine(rater="ann"), mine(rater="gpt-4o")]), {("rating", "gpt-4o"): 1.0}),
        (BY_DIMENSION, {("A", "gpt-4"): 1.0, ("B", "gpt-4"): -1.0}),
        # The judge rated one thing: it is compared with each that people rated.
        (pd.concat([BY_DIMENSION[BY_DIMENSION["source"] == "human"], mine(dimension="C", source="gpt-4")]),
         {("A", "gpt-4"): 1.0, ("B", "gpt-4"): 1.0}),
        # A column that differs between the dimensions of a response holds a score for each.
        (pd.concat([mine(dimension="A", gpt4=RATINGS), mine(dimension="B", gpt4=[-value for value in RATINGS])]),
         {("A", "gpt4"): 1.0, ("B", "gpt4"): -1.0}),
    ],
)  # fmt: skip
def test_judges_in_the_data_are_compared_without_being_named(frame, expected):
    found = comperdial.compare(frame.reset_index(drop=True), "f1", resamples=2)
    table = found.table[(found.table["coefficient"] == "spearman") & (found.table["level"] == "turn")]
    values = {(row.target, row.label): round(row.value, 3) for row in table.itertuples() if row.label != "f1"}
    assert values == expected
    assert ("note" not in frame) or "columns not used: note" in found.notes


@pytest.mark.parametrize(
    ("frame", "answer"),
    [
        (mine()[lambda frame: frame["system"] == "a"].assign(response=list("abcdei")), "Over 6 responses, f1 has"),
        (mine().drop(columns="system"), "Over 18 responses"),
        (mine(rating=3), "No metric has a correlation"),
        (mine(source="simulated"), "SIMULATED ratings"),
    ],
)
def test_headline_is_true_for_small_and_odd_data(frame, answer):
    found = comperdial.compare(frame.reset_index(drop=True), "f1", resamples=2)
    assert answer in found.headline and found.headline in found.to_markdown()
    assert html.escape(found.headline) in found._repr_html_()


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (mine().drop(columns="rating"), "no column contains human ratings"),
        (mine().drop(columns="reference"), "no metric could be run: f1: no response has references"),
        (mine(source=["crowd", "experts"] * 9), "ratings by crowd, experts"),
    ],
)
def test_missing_input_gives_one_error(frame, message):
    with pytest.raises(ComperdialError, match=message):
        comperdial.compare(frame, "f1")


def test_default_metrics_are_those_that_run_in_a_minute(monkeypatch):
    entries = {
        name: {"kind": kind, "main": kind} for name, kind in (("local", "local"), ("f1", "f1"), ("far", "bleurt"))
    }
    entries |= {"no_main": {"kind": "f1"}, "elsewhere": {"kind": "f1", "main": "f1", "datasets": ["other"]}}
    names, lacking, slow = api.default_metrics(entries, 100)
    assert names == ["f1"] and {*lacking} == {"local", "far"} and not slow
    monkeypatch.setattr(Local, "unavailable", lambda _: None)
    assert api.default_metrics(entries, 100)[0] == ["f1", "local"]
    assert api.default_metrics(entries, 20_000)[2] == {"local": "about 181 min"}


def test_the_table_is_sorted_and_systems_have_intervals():
    found = comperdial.compare(mine(gpt4_score=RATINGS), ["f1", "chrf"], resamples=2)
    for _, rows in found.table.groupby(["level", "coefficient"], sort=False):
        assert rows["value"].round(9).is_monotonic_decreasing
    systems = found.systems.set_index("system_id")
    a = mine().loc[lambda frame: frame["system"] == "a", "rating"]
    assert systems.loc["a", "rating"] == systems.loc["a", "gpt4_score"] == pytest.approx(a.mean())
    # One response a context: the interval is Student's t, and ends where the scale does.
    assert a.mean() - systems.loc["a", "low"] == pytest.approx(2.5706 * a.std() / 6**0.5, rel=1e-4)
    assert systems.loc["a", "high"] == 5 and set(found.pairs["tests"]) == {3}


# Frames and files of scores and ratings


def test_scores_and_ratings_as_frames_or_files(capsys):
    whole = mine()
    texts, rated = whole.drop(columns="rating"), whole[["context_id", "system", "rating"]]
    texts.to_csv("texts.csv", index=False)
    rated.to_csv("ratings.csv", index=False)
    data = comperdial.read(whole, scale=[1, 5])
    assert data.ratings["scale_max"].unique().tolist() == [5.0]
    scores = comperdial.score(data, ["f1"])
    expected = comperdial.compare(whole, "f1", resamples=2).table["value"].tolist()
    ours = rated.rename(columns={"system": "system_id"})
    for found in (
        comperdial.compare(scores=scores, ratings=ours, resamples=2),
        comperdial.compare(texts, "f1", ratings="ratings.csv", resamples=2),
    ):
        assert found.table["value"].tolist() == pytest.approx(expected)
    run(capsys, "score", "texts.csv", "--metrics", "f1", "--output", "scores.parquet")
    before = ["--scores", "scores.parquet", "--ratings", "ratings.csv"]
    both = compared(capsys, "texts.csv", *before, "--metrics", "f1", "chrf").query("minus == ''")
    values = both.loc[both["metric"] == "f1:f1", "value"].astype(float)
    assert sorted(values) == pytest.approx(sorted(expected), abs=1e-5) and len(both) == 2 * len(values)
    assert "--scores has: f1" in fails(capsys, "--metrics", "f2", *before)
    assert "nothing to score with 'chrf'" in fails(capsys, "--metrics", "chrf", *before)


def theirs(**columns):
    frame = mine(value=[(item + place * 3) % 7 for item in range(6) for place in range(3)])
    return frame.rename(columns={"system": "system_id"})[["context_id", "system_id", "value"]].assign(**columns)


MIXED = theirs(metric="theirs", level="turn", output="", seconds=1.5, prompt="x").rename(
    columns={"context_id": "Item ID", "system_id": "System", "value": "Value"}
)


def test_scores_from_any_program_are_compared(capsys):
    """Extra columns, order, names and file types change nothing; empty values are ignored."""
    mine()[["context_id", "system", "rating"]].to_csv("ratings.csv", index=False)
    theirs().to_csv("theirs.csv", index=False)
    given = ["--ratings", "ratings.csv", "--level", "turn", "--scores"]
    plain = compared(capsys, *given, "theirs.csv")
    assert set(plain["metric"]) == {"theirs:score"} and set(plain["n"]) == {18}
    MIXED.sample(frac=1, random_state=1).to_csv("mixed.csv", index=False, sep=";")
    assert compared(capsys, *given, "mixed.csv").equals(plain)
    values = theirs()["value"].astype(object)
    theirs().assign(value=values.where(values != 3, "")).to_csv("theirs.csv", index=False)
    assert set(compared(capsys, *given, "theirs.csv")["n"]) == {18 - (values == 3).sum()}


def test_numeric_names_join_all_rows(capsys):
    """Programs write 1.0, 1 or the number."""
    frame = mine(system=["1.0", "1.5", "007"] * 6)
    frame["context_id"] = frame["context_id"].str[1:]
    texts = frame[["context_id", "system"]]
    scored = texts.rename(columns={"system": "system_id"}).assign(
        context_id=texts["context_id"] + ".0", value=range(18)
    )
    scored.to_csv("s.csv", index=False)
    rated = texts.assign(context_id=texts["context_id"].astype(float), system=texts["system"].replace("1.0", 1))
    rated.assign(rating=RATINGS).to_json("r.jsonl", orient="records", lines=True)
    found = compared(capsys, "--scores", "s.csv", "--ratings", "r.jsonl", "--level", "turn")
    assert set(found["n"]) == {18}


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (theirs().drop(columns="value"), "theirs.csv: no column 'value'"),
        (theirs(value="1e308"), "theirs.csv, record 1, column 'value': holds '1e308'"),
        (theirs(value=""), "theirs.csv: no scores"),
        (theirs(context_id="x"), "the same key a second time"),
        (theirs(context_id=[f"x{n}" for n in range(18)]), "no score of metric 'theirs' belongs to a rated response; the first"),
    ],
)  # fmt: skip
def test_mistakes_in_external_scores_are_reported(capsys, scores, message):
    mine()[["context_id", "system", "rating"]].to_csv("ratings.csv", index=False)
    scores.to_csv("theirs.csv", index=False)
    assert message in fails(capsys, "--scores", "theirs.csv", "--ratings", "ratings.csv")


def test_judge_column_spelling_is_free_and_extra_contexts_are_ignored(capsys, caplog):
    frame = mine(**{"GPT4 Score": [value % 4 for value in RATINGS]})
    frame.to_csv("mine.csv", index=False)
    more = pd.concat([theirs(), theirs(context_id="other").drop_duplicates(["context_id", "system_id"])])
    more.to_csv("theirs.csv", index=False)
    more = ["--scores", "theirs.csv", "--level", "turn", "--coefficient", "spearman"]
    found = compared(capsys, "mine.csv", "--metrics", "gpt4-score", *more)
    expected = frame["GPT4 Score"].corr(frame["rating"], method="spearman")
    values = found[found["minus"] == ""].set_index("metric")["value"]
    assert values["GPT4 Score:score"] == pytest.approx(expected, abs=1e-5)
    assert "3 of 21 scores belong to no rated response" in caplog.text


# What is compared, and how


@pytest.fixture
def four():
    """Return a file of 20 contexts answered by five systems, and scores of four metrics; the first is the best by far."""
    rng = np.random.default_rng(3)
    truth = rng.normal(size=(20, 5)) + np.arange(5) / 2
    keys = pd.DataFrame([{"context_id": f"c{c}", "system_id": f"s{s}"} for c in range(20) for s in range(5)])
    keys.assign(response="yes", rating=truth.ravel()).to_csv("mine.csv", index=False)
    noise = {"w": 0.5, "x": 0.9, "y": 1.1, "z": 1.3}
    pd.concat(
        keys.assign(metric=metric, output="o", value=truth.ravel() + scale * rng.normal(size=100))
        for metric, scale in noise.items()
    ).to_csv("scores.csv", index=False)
    return ["mine.csv", "--scores", "scores.csv", "--level", "turn", "--coefficient", "spearman"]


def test_against_corrects_only_over_comparisons_with_that_metric(four, capsys):
    every = compared(capsys, *four)
    every = every[every["minus"] != ""].set_index(["metric", "minus"])
    assert set(every["tests"].astype(float)) == {6}
    for correction, adjust in (("holm", holm), ("fdr", benjamini_hochberg)):
        found = compared(capsys, *four, "--against", "x", "--correction", correction)
        pairs = found[found["minus"] != ""].set_index(["metric", "minus"])
        assert set(pairs.index) == {("w:o", "x:o"), ("x:o", "y:o"), ("x:o", "z:o")}
        assert set(pairs["tests"].astype(float)) == {3} and set(found["rank"]) == {""}
        assert pairs["p"].equals(every.loc[pairs.index, "p"])
        np.testing.assert_allclose(pairs["p_adjusted"].astype(float), adjust(pairs["p"].astype(float)), rtol=1e-4)
    assert "unknown metric 'v'" in fails(capsys, *four, "--against", "v")


def test_systems_are_fixed_on_request():
    many = pd.concat([mine(), mine().assign(system=lambda frame: frame["system"] + "2")], ignore_index=True)
    assert "|systems:fixed" in str(comperdial.compare(many, "f1", resamples=2, systems="fixed"))


def test_few_contexts_have_no_interval_and_no_test():
    """With two systems and two contexts, leaving out one leaves a correlation of 1 or -1: an interval without width."""
    frame = mine(gpt4_score=RATINGS, claude_score=[value % 3 for value in RATINGS])[:6].query("system != 'c'")
    found = comperdial.compare(frame.reset_index(drop=True), ["gpt4_score", "claude_score"], resamples=20)
    assert found.table["low"].isna().all() and found.pairs["p"].isna().all() and found.table["value"].notna().any()


def test_unavailable_metrics_are_reported_and_the_rest_run(tmp_path, capsys):
    (tmp_path / "params.yaml").write_text(
        "metrics:\n  far: {kind: bleurt}\n  plain: {kind: bleu, text: raw, main: bleu-4}\n"
    )
    mine(reference=[""] * 3 + ["i like tea"] * 15).to_csv("mine.csv", index=False)
    out = run(capsys, "compare", "mine.csv", "--metrics", "f1", "far", "grounded_cosine")
    (line,) = (line for line in out.splitlines() if line.startswith("- Not run: "))
    assert "far: model 'BLEURT-20' is not present" in line and "grounded_cosine: no response has history" in line
    assert "83%" in out, "the responses that have scores"
    assert {*compared(capsys, "mine.csv")["metric"]} == {"plain:bleu-4"}, "the metrics of params.yaml, if none is named"
    for options, message in (
        (["--metrics", "bleu:bleu-5"], "Did you mean 'bleu-4'"),
        (["--metrics", "f1", "--output", "out.xyz"], "out.xyz: unknown kind of file"),
        (["--metrics", "f1", "--target", "warm"], "unknown dimension 'warm'"),
    ):
        assert message in fails(capsys, "mine.csv", *options)


@pytest.mark.parametrize(
    ("p", "adjusted", "pairs", "claim"),
    [
        (0.0001, 0.0003, 3, "a correlates better than b: +0.11 [0.04, 0.19], p < 0.001 (Holm: < 0.001)"),
        (0.03, 0.09, 3, "a correlates better than b: +0.11 [0.04, 0.19], p = 0.030 (Holm: 0.090, not significant)"),
        (0.04999, 0.04999, 1, "a correlates better than b: +0.11 [0.04, 0.19], p < 0.050"),
        (0.05, 0.05, 1, "no significant difference between a and b: +0.11 [0.04, 0.19], p = 0.050"),
        (float("nan"), float("nan"), 1, "no test of a and b: +0.11 [0.04, 0.19], n = 7"),
    ],
)
def test_sentence_claims_no_more_than_p_value(p, adjusted, pairs, claim):
    pair = {"difference": 0.11, "low": 0.04, "high": 0.19, "p": p, "p_adjusted": adjusted, "n": 7}
    assert sentence(pair, "a", "b", pairs) == claim


# Languages


def test_metrics_match_the_script_of_the_file(capsys, caplog, real_wordnet):
    answers = {"good": "喜欢，我每天早上喝咖啡。", "fair": "我早上喝茶。", "poor": "算了。"}
    frame = pd.DataFrame([{"system": name, "response": text} for name, text in answers.items()])
    frame.assign(history="你喜欢咖啡吗？", reference="我每天早上喝咖啡。", rating=[5, 3, 1]).to_csv(
        "mine.csv", index=False
    )
    validated = " ".join(run(capsys, "validate", "mine.csv").split())
    assert "scripts of responses: Han 100 %" in validated and "into characters" in validated
    metrics = {"f1": "f1", "bleu": "bleu-1", "rouge": "rouge1-f", "chrf": "chrf"}
    run(capsys, "score", "mine.csv", "--metrics", *metrics, "meteor", "--output", "s.csv")
    assert "meteor: not run: English only" in caplog.text
    table = pd.read_csv("s.csv")
    for metric, output in metrics.items():
        chosen = table[(table["metric"] == metric) & (table["output"] == output)].set_index("system_id")
        assert 1 > chosen["value"]["good"] > chosen["value"]["fair"] > chosen["value"]["poor"], metric
        assert chosen["signature"].str.contains("split:characters").all() == (metric != "chrf"), metric


def test_japanese_is_split_into_characters():
    texts = {"reference": "家族と山に登る予定です。", "response": "家族と山へ行く予定です。"}
    scores = comperdial.score(pd.DataFrame([{"system": "tanuki", **texts}]), ["f1", "rouge"])
    values = scores.set_index("output")["value"]
    # They share 9 of 12 characters each, one of them the full stop, which ROUGE leaves out.
    assert values["f1"] == pytest.approx(9 / 12) and values["rouge1-f"] == pytest.approx(8 / 11)
