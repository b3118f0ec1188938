"""`comperdial compare`, and metrics by the names of params.yaml in `score`."""

import io
import json
import re
import shlex

import pandas as pd
import pytest

from comperdial import evaluation, schema
from comperdial.cli import main
from comperdial.config import load_yaml
from comperdial.evaluation import aggregate
from comperdial.metrics import scoring
from comperdial.metrics.named import metric_named, read_entries
from comperdial.report.compared import sentence
from minidata import mini_items, write_mirror


def run(capsys, *arguments):
    assert main([str(argument) for argument in arguments]) == 0, capsys.readouterr().err
    return capsys.readouterr()


def fails(capsys, *arguments):
    assert main([str(argument) for argument in arguments]) == 1
    return capsys.readouterr().err


def compared(capsys, *arguments):
    """Return the CSV that the command writes."""
    return pd.read_csv(io.StringIO(run(capsys, "compare", *arguments, "--format", "csv").out), keep_default_na=False)


def page(root):
    """Return the blocks of the page's section, by language."""
    text = (root / "docs/command-line.md").read_text()
    section = text[text.index("## Compare metrics on your own file") : text.index("## Score a file")]
    return dict(re.findall(r"```(\w+)\n(.*?)```", section, flags=re.DOTALL))


@pytest.fixture
def mine(tmp_path, root, monkeypatch):
    """Return the page's file in a folder with a params.yaml of few metrics, where there are no models."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMPERDIAL_MODELS", str(tmp_path / "models"))
    (tmp_path / "mine.csv").write_text(page(root)["csv"])
    (tmp_path / "params.yaml").write_text(
        "metrics:\n  plain: {kind: bleu, text: raw}\n  f1: {kind: f1, text: raw, unit: character}\n"
        "  far: {kind: bleurt}\n"
    )
    return tmp_path / "mine.csv"


def test_the_page_s_example_runs_as_it_stands(tmp_path, root, capsys, monkeypatch):
    blocks = page(root)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.csv").write_text(blocks["csv"])
    (tmp_path / "params.yaml").write_text((root / "params.yaml").read_text())
    program, *arguments = shlex.split(blocks["sh"])
    assert program == "comperdial"
    assert blocks["text"] in run(capsys, *arguments).out


def test_usr_persona_gives_what_the_workflow_gives(usr_tables, tmp_path, root, capsys, monkeypatch):
    """The bar: values, intervals and p are those of `results/correlations`, made as the rules make them."""
    monkeypatch.setenv("COMPERDIAL_EMBEDDINGS", str(tmp_path / "vectors"))
    folder = tmp_path / "usr_persona"
    for name, frame in usr_tables["usr_persona"].items():
        schema.write(folder / f"{name}.parquet", frame, name)
    params = load_yaml(root / "params.yaml")
    entries = read_entries(root / "params.yaml")
    settings = params["evaluation"]
    # With one more output than is compared: p does not depend on it.
    names = {"bleu_raw": "bleu-4", "grounded-cosine-minilm": "sum", "f1_raw": "f1"}
    for name in names:
        scoring.write_scores(metric_named(name, entries), name, folder, tmp_path / f"{name}.parquet")
    samples = list(
        evaluation.samples(
            aggregate.read_scores([tmp_path / f"{name}.parquet" for name in names]),
            aggregate.read_ratings(folder / "turn_ratings.parquet"),
            contexts=aggregate.read_contexts(folder / "contexts.parquet"),
            systems=schema.read(folder / "systems.parquet", "systems"),
            source=settings["source"],
            levels=settings["levels"],
        )
    )
    detail = evaluation.Detail(list(names.items()), [settings["target"]], settings["resamples"], settings["seed"])
    values = evaluation.correlations(samples, detail=detail)
    tests = evaluation.comparisons(samples, detail=detail)

    found = compared(
        capsys, folder, "--params", root / "params.yaml", "--metrics", "bleu_raw", "grounded-cosine-minilm",
        "--target", settings["target"], "--coefficient", "pearson", "spearman", "kendall",
    )  # fmt: skip
    assert set(found["level"]) == {"turn", "system"}
    checked = 0
    for row in found.to_dict("records"):
        at = ["level", "target", "coefficient"]
        if row["minus"]:
            table, a, b = tests, row["metric"].split(":"), row["minus"].split(":")
            chosen = (table["metric_a"] == a[0]) & (table["metric_b"] == b[0])
        else:
            table = values[values["grouping"] == "pooled"]
            chosen = (table["metric"] + ":" + table["output"]) == row["metric"]
        for column in at:
            chosen &= table[column] == row[column]
        expected = table[chosen].iloc[0]
        pairs = {"value": "difference" if row["minus"] else "value", "p": "p"}
        pairs |= {} if row["minus"] else {"low": "low", "high": "high"}
        for ours, theirs in pairs.items():
            value = expected[theirs]
            assert (row[ours] == "" and pd.isna(value)) or float(row[ours]) == pytest.approx(value, rel=2e-5, abs=1e-6)
            checked += 1
    assert checked == 2 * 3 * (2 * 4 + 2)


def test_every_level_and_dimension_is_a_block_and_a_folder_has_its_own_ratings(tmp_path, capsys, monkeypatch):
    catalogue = write_mirror(tmp_path, mini_items())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMPERDIAL_MIRROR", str(tmp_path / "mirror"))
    main(["fetch", "usr_persona", "--catalogue", str(catalogue)])
    main(["ingest", "usr_persona", "--catalogue", str(catalogue)])
    text = run(capsys, "compare", "data/tables/usr_persona", "--metrics", "f1", "chrf", "distinct").out
    for dimension in ("Overall", "Natural"):
        assert f"{dimension}: Turn level, ratings of turns\n" in text
        assert f"{dimension}: System level, ratings of turns, pairs\n" in text
    assert "(one rater)" in text
    assert "Holm" in text
    some = compared(
        capsys, "data/tables/usr_persona", "--metrics", "f1", "--target", "Overall", "--level", "turn",
        "--coefficient", "kendall",
    )  # fmt: skip
    assert len(some) == 1
    assert some["n"].item() == 24


def test_ratings_in_one_file_or_in_two_and_scores_made_before(mine, tmp_path, capsys):
    together = compared(capsys, mine, "--metrics", "f1", "bleu")
    frame = pd.read_csv(mine)
    frame[["context_id", "system_id", "rating"]].to_csv(tmp_path / "ratings.csv", index=False)
    frame.drop(columns="rating").to_csv(mine, index=False)
    assert compared(capsys, mine, "--metrics", "f1", "bleu", "--ratings", "ratings.csv").equals(together)
    run(capsys, "score", mine, "--metrics", "f1", "bleu", "--output", "scores.parquet")
    before = ["--scores", "scores.parquet", "--ratings", "ratings.csv"]
    assert compared(capsys, "--metrics", "f1", "bleu", *before).equals(together)
    both = compared(capsys, mine, *before, "--metrics", "bleu", "chrf")
    assert set(both["metric"]) == {"bleu:bleu-4", "chrf:chrf"}
    assert "no column 'rating'" in fails(capsys, "compare", mine, "--metrics", "f1")
    assert "--scores has: bleu, f1" in fails(capsys, "compare", "--metrics", "f2", *before)
    assert "nothing to score with 'chrf'" in fails(capsys, "compare", "--metrics", "chrf", *before)


def rated_rows(systems=("a", "b", "c"), contexts=8):
    """Return ratings by context and system, and a score that agrees with most of them."""
    return [
        {
            "context_id": f"c{item}",
            "system_id": system,
            "rating": 1 + (item * 3 + place * 2) % 5,
            "value": (item + place * 3) % 7,
        }
        for item in range(contexts)
        for place, system in enumerate(systems)
    ]


def test_scores_of_any_program_are_compared(tmp_path, capsys, monkeypatch):
    """The docs' file of three columns; more columns, fewer, other names of files and empty values change nothing."""
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(rated_rows())
    frame[["context_id", "system_id", "rating"]].to_csv("ratings.csv", index=False)
    scores = frame[["context_id", "system_id", "value"]]
    scores.to_csv("theirs.csv", index=False)
    plain = compared(capsys, "--scores", "theirs.csv", "--ratings", "ratings.csv")
    assert set(plain["metric"]) == {"theirs:score"} and set(plain.loc[plain["level"] == "turn", "n"]) == {24}
    assert set(plain["dataset"]) == {"ratings"}
    mixed = scores.rename(columns={"context_id": "Item ID", "system_id": "System", "value": "Value"})
    mixed = mixed.assign(metric="theirs", level="turn", output="", seconds=1.5, prompt="x")
    mixed.sample(frac=1, random_state=1).to_csv("mixed.csv", index=False, sep=";")
    assert compared(capsys, "--scores", "mixed.csv", "--ratings", "ratings.csv").equals(plain)
    scores.assign(metric="theirs").to_parquet("other.parquet")
    assert compared(capsys, "--scores", "other.parquet", "--ratings", "ratings.csv").equals(plain)
    (tmp_path / "theirs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in scores.to_dict("records")))
    assert compared(capsys, "--scores", "theirs.jsonl", "--ratings", "ratings.csv", "--metrics", "theirs").equals(plain)
    gaps = scores.assign(value=scores["value"].astype(object).where(scores["value"] != 3, ""))
    gaps.to_csv("theirs.csv", index=False)
    some = compared(capsys, "--scores", "theirs.csv", "--ratings", "ratings.csv", "--level", "turn")
    assert set(some["n"]) == {24 - (scores["value"] == 3).sum()}


def test_names_that_look_like_numbers_join_all_rows(tmp_path, capsys, monkeypatch):
    """`score` and other programs write 1.0, 1 or the number."""
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(rated_rows(systems=("1.0", "1.5", "2.0", "007")))
    frame["response"] = [f"tea {'green ' * n}" for n in frame["value"]]
    frame["reference"] = "green tea green tea"
    frame["context_id"] = frame["context_id"].str[1:] + ".0"
    frame.drop(columns="value").to_csv("mine.csv", index=False)
    frame[["context_id", "system_id", "rating"]].to_csv("ratings.csv", index=False)
    run(capsys, "score", "mine.csv", "--metrics", "f1", "--output", "f1.csv")
    whole = compared(capsys, "mine.csv", "--metrics", "f1")
    assert set(whole.loc[whole["level"] == "turn", "n"]) == {32}
    numbers = {
        "context_id": frame["context_id"].astype(float),
        "system_id": frame["system_id"].replace({"1.0": 1, "2.0": 2.0}),
    }
    scored = pd.read_csv("f1.csv", dtype=str)
    scored.assign(item_id=scored["item_id"] + ".0").to_json("f1.jsonl", orient="records", lines=True)
    frame[["rating"]].assign(**numbers).to_json("ratings.jsonl", orient="records", lines=True)
    for scores in ("f1.csv", "f1.jsonl"):
        for ratings in ("ratings.csv", "ratings.jsonl"):
            found = compared(capsys, "--scores", scores, "--ratings", ratings)
            assert found[["value", "n"]].equals(whole[["value", "n"]]), (scores, ratings)


def test_the_docs_commands_on_scores_of_other_programs_run_as_they_stand(root, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (root / "docs/recorded-scores.md").read_text()
    section = text[text.index("## Compare without the workflow") : text.index("## What is checked")]
    blocks = re.findall(r"```(\w+)\n(.*?)```", section, flags=re.DOTALL)
    commands = [line for language, block in blocks if language == "sh" for line in block.splitlines()]
    (tmp_path / "judged.csv").write_text(next(block for language, block in blocks if language == "csv"))
    frame = pd.DataFrame(rated_rows())
    frame[["context_id", "system_id", "rating"]].to_csv("ratings.csv", index=False)
    frame.assign(response="green tea", reference="tea").drop(columns="value").to_csv("mine.csv", index=False)
    scores = frame[["context_id", "system_id", "value"]]
    scores.to_csv("theirs.csv", index=False)
    for command, names in zip(commands, (["theirs"], ["theirs", "f1"], ["gpt4_score", "f1"]), strict=True):
        program, *arguments = shlex.split(command, comments=True)
        assert program == "comperdial"
        said = run(capsys, *arguments, "--resamples", "50").out
        assert all(name in said for name in names), command


def test_what_scores_of_other_programs_lack_is_one_clear_error(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(rated_rows())
    frame[["context_id", "system_id", "rating"]].to_csv("ratings.csv", index=False)
    scores = frame[["context_id", "system_id", "value"]]
    for made, message in (
        (scores.drop(columns="context_id"), "theirs.csv: no column 'context_id'"),
        (scores.drop(columns="value"), "theirs.csv: no column 'value'"),
        (scores.assign(value="high"), "theirs.csv, record 1, column 'value': holds 'high'; expected a number"),
        (scores.assign(value="1e308"), "record 1, column 'value': holds '1e308'"),
        (scores.assign(value=""), "theirs.csv: no scores"),
        (scores.assign(context_id="x"), "the same key a second time"),
        (
            scores.assign(context_id="x-" + scores["context_id"]),
            "none of the 24 scores of 'theirs' is of something rated: the first is of 'x-c0', system 'a'; expected the names",
        ),
    ):
        made.to_csv("theirs.csv", index=False)
        assert message in fails(capsys, "compare", "--scores", "theirs.csv", "--ratings", "ratings.csv")
    scores.to_csv("theirs.csv", index=False)
    for name in ("their", "f1"):
        said = fails(capsys, "compare", "--scores", "theirs.csv", "--ratings", "ratings.csv", "--metrics", name)
        assert said.count("error:") == 1 and "--scores has: theirs" in said


def test_a_judge_s_column_is_compared_and_is_no_rating(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(rated_rows()).rename(columns={"value": "gpt4_score"})
    frame["response"] = frame["system_id"] + frame["context_id"] + " tea"
    frame["reference"] = "tea"
    frame.to_csv("mine.csv", index=False)
    found = compared(
        capsys, "mine.csv", "--metrics", "gpt4_score", "f1", "--level", "turn", "--coefficient", "spearman"
    )
    assert {"gpt4_score:score", "f1:f1"} <= set(found["metric"])
    value = found.loc[(found["metric"] == "gpt4_score:score") & (found["minus"] == ""), "value"].astype(float).item()
    assert value == pytest.approx(frame["gpt4_score"].corr(frame["rating"], method="spearman"))
    assert "columns of the file that may be compared: gpt4_score" in fails(
        capsys, "compare", "mine.csv", "--metrics", "gpt5_score"
    )
    twice = pd.concat([frame.assign(annotator="x"), frame.assign(annotator="y")])
    twice.to_csv("twice.csv", index=False)
    assert "gpt4_score:score" in set(compared(capsys, "twice.csv", "--metrics", "gpt4_score")["metric"])
    twice["gpt4_score"] = range(len(twice))
    twice.to_csv("twice.csv", index=False)
    assert "record 25, column 'gpt4_score': holds 24, and 0 in record 1 of the same response" in fails(
        capsys, "compare", "twice.csv", "--metrics", "gpt4_score"
    )
    frame.assign(gpt4_score="good").to_csv("words.csv", index=False)
    assert "record 1, column 'gpt4_score': holds 'good'" in fails(
        capsys, "compare", "words.csv", "--metrics", "gpt4_score"
    )
    others = frame.assign(Claude=1, llm_judge=2, BLEU_4=0.5, bertscore=0.1).rename(columns={"rating": "stars"})
    others.to_csv("others.csv", index=False)
    assert '"rating": "stars"' in fails(capsys, "validate", "others.csv")
    others.drop(columns="stars").to_csv("others.csv", index=False)
    assert '"rating": "???"' in fails(capsys, "validate", "others.csv")
    chosen = json.dumps({"rating": "llm_judge"})
    assert main(["validate", "others.csv", "--columns", chosen, "--scale", "1", "5"]) == 0


def test_several_raters_and_dimensions_in_one_file(mine, capsys):
    frame = pd.read_csv(mine)
    rows = [
        row | {"annotator_id": rater, "dimension": dimension, "rating": max(1, row["rating"] - (rater == "x") * shift)}
        for row in frame.to_dict("records")
        for rater in ("x", "y")
        for dimension, shift in (("warmth", row["context_id"] % 2), ("sense", 1))
    ]
    pd.DataFrame(rows).to_csv(mine, index=False)
    text = run(capsys, "compare", mine, "--metrics", "f1").out
    assert text.index("sense: Turn level") < text.index("warmth: Turn level")
    assert "(one rater)" in text
    assert "ratings of turns, pairs" not in text


def test_what_cannot_be_run_is_named_and_the_rest_goes_on(mine, capsys):
    frame = pd.read_csv(mine)
    frame.loc[frame["context_id"] == 2, "reference"] = ""
    frame.to_csv(mine, index=False)
    out, error = run(capsys, "compare", mine, "--metrics", "f1", "far", "distinct", "grounded_cosine")
    for said in (out, error):
        assert "far: not run: model 'BLEURT-20' is not present" in said
        assert "grounded_cosine: not run: no response has history" in said
    assert re.search(r"f1 .* 9 +75%", out)
    assert re.search(r"distinct .* 12 +100%", out)
    assert "no metric could be run" in fails(capsys, "compare", mine, "--metrics", "grounded_cosine")


def test_score_takes_several_metrics_by_either_kind_of_name(mine, capsys, caplog):
    frame = pd.read_csv(mine)
    frame.loc[0, "reference"] = ""
    frame.to_csv(mine, index=False)
    names = ["bleu,text=raw", "plain", "f1", "far", "chrf"]
    error = run(capsys, "score", mine, "--metrics", *names, "--output", "scores.csv").err
    assert "far: not run: " in error
    assert "chrf: 1 of 12 responses have no references" in caplog.text
    scores = schema.read("scores.csv", "scores")
    assert set(scores["metric"]) == {*names} - {"far"}
    signatures = scores.drop_duplicates("metric").set_index("metric")["signature"]
    assert signatures["plain"] == signatures["bleu,text=raw"]
    # A name of params.yaml goes before a kind of the same name; with --options NAME is a kind, as the workflow needs.
    assert "unit:character" in signatures["f1"]
    assert "unit:word" in run(capsys, "score", mine, "--metric", "f1", "--options", "{}").out
    assert "unit:word" in run(capsys, "score", mine, "--metric", "f1", "--option", "unit=word").out
    assert "Did you mean 'plain'?" in fails(capsys, "score", mine, "--metrics", "f1", "plan")
    assert "far: bleurt|" in run(capsys, "metrics").out


@pytest.mark.parametrize("suffix", ["md", "tex", "csv", "txt"])
def test_a_file_s_suffix_says_its_form(mine, tmp_path, capsys, suffix):
    path = tmp_path / f"out.{suffix}"
    run(capsys, "compare", mine, "--metrics", "f1", "chrf", "--output", path)
    form = {"md": "markdown", "tex": "latex", "csv": "csv", "txt": "text"}[suffix]
    assert path.read_text() == run(capsys, "compare", mine, "--metrics", "f1", "chrf", "--format", form).out


def test_mistakes_are_named_before_anything_is_scored(mine, capsys):
    assert "Did you mean 'bleu-4'" in fails(capsys, "compare", mine, "--metrics", "bleu:bleu-5")
    assert "no metrics" in fails(capsys, "compare", mine)
    assert "out.xyz: unknown kind of file" in fails(capsys, "compare", mine, "--metrics", "f1", "--output", "out.xyz")
    assert "unknown dimension 'warm'" in fails(capsys, "compare", mine, "--metrics", "f1", "--target", "warm")
    mine.with_name("params.yaml").write_text(json.dumps({"metrics": {"x": {"text": "raw"}}}))
    assert "params.yaml: metric 'x' is" in fails(capsys, "compare", mine, "--metrics", "f1")


@pytest.mark.parametrize(
    ("p", "adjusted", "pairs", "said"),
    [
        (0.003, 0.003, 1, "a correlates better than b: +0.11 [0.04, 0.19], p = 0.003"),
        (0.0001, 0.0003, 3, "a correlates better than b: +0.11 [0.04, 0.19], p < 0.001 (Holm: < 0.001)"),
        (0.03, 0.09, 3, "a correlates better than b: +0.11 [0.04, 0.19], p = 0.030 (Holm: 0.090, not significant)"),
        (0.04999, 0.04999, 1, "a correlates better than b: +0.11 [0.04, 0.19], p = 0.049990"),
        (0.05, 0.05, 1, "no significant difference between a and b: +0.11 [0.04, 0.19], p = 0.050"),
        (0.5, 1.0, 3, "no significant difference between a and b: +0.11 [0.04, 0.19], p = 0.500 (Holm: 1.000)"),
        (float("nan"), float("nan"), 1, "no test of a and b: +0.11 [0.04, 0.19], n = 7"),
    ],
)
def test_a_sentence_claims_no_more_than_its_p(p, adjusted, pairs, said):
    pair = {"difference": 0.11, "low": 0.04, "high": 0.19, "p": p, "p_adjusted": adjusted, "n": 7}
    assert sentence(pair, "a", "b", pairs) == said
