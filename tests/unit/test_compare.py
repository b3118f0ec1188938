"""`comperdial compare`, and metrics by the names of params.yaml in `score`."""

import io
import json
import re
import shlex

import numpy as np
import pandas as pd
import pytest

from comperdial import evaluation, schema
from comperdial.api import default_metrics
from comperdial.cli import main
from comperdial.config import load_yaml
from comperdial.config.registry import completed
from comperdial.evaluation import aggregate
from comperdial.metrics import scoring
from comperdial.metrics.local import Local
from comperdial.metrics.named import metric_named, read_entries
from comperdial.report.compared import sentence
from comperdial.stats.multiple import benjamini_hochberg, holm
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


# Context, reference, and the responses of three systems rated 5, 3 and 1.
LANGUAGES = {
    "Han": [
        ("周末做什么？", "我和家人去爬山。", "我和家人一起去爬山。", "山很高。", "不知道。"),
        ("你喜欢咖啡吗？", "喜欢，我每天早上喝咖啡。", "我每天早上喝。", "咖啡很苦。", "算了。"),
    ],
    "Arabic": [
        ("ماذا تفعل غدا؟", "سأذهب مع عائلتي إلى الجبل", "سأذهب مع عائلتي إلى البحر", "الجبل عال", "لا أعرف"),
        ("هل تحب القهوة؟", "نعم أشرب القهوة كل صباح", "أشرب القهوة كل صباح", "القهوة مرة", "ربما"),
    ],
    "Cyrillic": [
        ("что делаешь завтра?", "я иду с семьёй в горы", "я иду с семьёй на море", "горы высокие", "не знаю"),
        ("ты любишь кофе?", "да, я пью кофе каждое утро", "я пью кофе каждое утро", "кофе горький", "может быть"),
    ],
    "mixed": [
        ("what will you do?", "i will go to the mountains", "i will go to the sea", "mountains are high", "who knows"),
        ("how was it?", "it was nice and sunny", "it was nice", "sunny indeed", "no idea"),
        ("do you like coffee?", "yes i drink it every day", "i drink it every day", "it is bitter", "maybe"),
        ("你喜欢咖啡吗？", "喜欢，我每天早上喝咖啡。", "我每天早上喝。", "咖啡很苦。", "算了。"),
    ],
}


def write_language(path, rows):
    lines = ["history,reference,system,response,rating"]
    for history, reference, *answers in rows:
        lines += [f'{history},"{reference}",{name},{said},{rating}' for (name, rating), said in
                  zip((("good", 5), ("fair", 3), ("poor", 1)), answers, strict=True)]  # fmt: skip
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.parametrize("script", LANGUAGES)
def test_a_file_of_another_script(script, tmp_path, root, capsys, caplog, monkeypatch, real_wordnet):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_text((root / "params.yaml").read_text())
    write_language(tmp_path / "mine.csv", LANGUAGES[script])
    validated = " ".join(run(capsys, "validate", "mine.csv").out.split())
    english, split = script == "mixed", script in ("Han", "mixed")
    assert (
        "scripts of responses: Latin 75 %, Han 25 %" if english else f"scripts of responses: {script} 100 %"
    ) in validated
    assert ("not run: meteor, meteor_raw, bertscore-minilm" in validated) != english
    assert ("into characters" in validated) == split
    metrics = ("f1", "bleu:bleu-1", "rouge:rouge1-f", "distinct", "chrf", "meteor", "pmi")
    names = ["f1", "bleu", "rouge", "distinct", "chrf", "meteor"]
    run(capsys, "score", "mine.csv", "--metrics", *names, "--output", "s.csv")
    scores = pd.read_csv("s.csv").set_index(["metric", "output", "system_id"])["value"].sort_index()
    signatures = set(pd.read_csv("s.csv")["signature"])
    assert ("meteor: not run: English only" in caplog.text) != english
    assert all(
        ("split:characters" in text) == split for text in signatures if text.startswith(("f1", "bleu", "rouge", "dis"))
    )
    assert any("|tokens:unicode|" in text for text in signatures)
    for name in ("f1:f1", "bleu:bleu-1", "rouge:rouge1-f", "chrf:chrf"):
        metric, output = name.split(":")
        good, fair, poor = (scores[metric, output, system].mean() for system in ("good", "fair", "poor"))
        assert good > fair > poor and good < 1, name
    assert (scores["distinct", "distinct-1"] > 0.6).all()
    if not english:
        found = run(capsys, "compare", "mine.csv", "--metrics", *metrics, "--resamples", "10").out
        (line,) = (line for line in found.splitlines() if line.startswith("- Not run: "))
        assert "meteor: English only, and the responses are in other scripts" in line
        assert "pmi: English only" in line and "\nchrf" in found


def test_the_page_s_japanese_example_runs_as_it_stands(tmp_path, root, capsys, caplog, monkeypatch):
    """docs/adding-a-dataset.md, its section on languages."""
    page = (root / "docs/adding-a-dataset.md").read_text().split("### Languages other than English")[1]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_text((root / "params.yaml").read_text())
    (tmp_path / "japanese.csv").write_text(page.split("```csv\n")[1].split("```")[0])
    commands = page.split("```sh\n")[1].split("```")[0].splitlines()
    said = [run(capsys, *command.split()[1:]) for command in commands]
    assert [command.split()[1] for command in commands] == ["validate", "score", "compare"]
    assert "Japanese (Hiragana, Katakana, Han) 100 %" in said[0].out
    scores = pd.read_csv(io.StringIO(said[1].out)).set_index(["metric", "output", "system_id"])["value"].sort_index()
    # 家族と山に登る予定です。 and 家族と山へ行く予定です。 share 9 of 12 characters each, one of them the full stop.
    assert scores["f1", "f1", "tanuki"].min() == pytest.approx(9 / 12)
    assert scores["rouge", "rouge1-f", "tanuki"].min() == pytest.approx(8 / 11)
    assert "meteor: not run: English only" in caplog.text
    assert "- Not run: meteor: English only" in said[2].out
    assert re.search(r"^(f1|bleu:bleu-1|rouge|chrf) .*", said[2].out, re.MULTILINE)


def test_the_page_s_example_runs_as_it_stands(tmp_path, root, capsys, monkeypatch):
    blocks = page(root)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.csv").write_text(blocks["csv"])
    (tmp_path / "params.yaml").write_text((root / "params.yaml").read_text())
    program, *arguments = shlex.split(blocks["sh"])
    assert program == "comperdial"
    assert blocks["text"] in run(capsys, *arguments).out


def test_the_page_s_command_on_two_systems_takes_them_as_given(tmp_path, root, capsys, monkeypatch):
    blocks = page(root)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_text((root / "params.yaml").read_text())
    frame = pd.read_csv(io.StringIO(blocks["csv"]))
    _, *arguments = shlex.split(blocks["sh"])
    tests = []
    for systems in (["a", "b"], ["a", "c"]):
        frame[frame["system_id"].isin(systems)].to_csv("mine.csv", index=False)
        said = run(capsys, *arguments).out
        assert "Turn level, ratings of turns (over contexts, these systems)\n" in said
        assert "- Over contexts, these systems: the systems count as given" in said
        found = pd.read_csv(io.StringIO(run(capsys, *arguments, "--format", "csv").out))
        assert set(found["over"]) == {"contexts, these systems"}
        metrics, pairs = found[found["minus"].isna()], found[found["minus"].notna()]
        assert metrics[["low", "high"]].abs().max(axis=None) <= 1
        assert pairs[["low", "high"]].abs().max(axis=None) < 2
        tests += pairs["p"].tolist()
    assert len(set(tests)) == 4


def test_systems_are_fixed_if_asked_for(mine, capsys):
    frame = pd.read_csv(mine)
    more = frame.assign(system_id=frame["system_id"] + "2", rating=6 - frame["rating"])
    pd.concat([frame, more]).to_csv(mine, index=False)
    plain = compared(capsys, mine, "--metrics", "f1", "chrf")
    fixed = compared(capsys, mine, "--metrics", "f1", "chrf", "--systems", "fixed")
    assert set(plain["over"]) == {"systems and contexts"}
    assert set(fixed["over"]) <= {"contexts, these systems", ""}
    assert fixed["value"].tolist() == pytest.approx(plain["value"].tolist(), abs=1e-12)
    said = run(capsys, "compare", mine, "--metrics", "f1", "chrf", "--systems", "fixed").out
    assert "System level, ratings of turns (over contexts, these systems)" in said
    assert "systems:fixed" in said


def test_usr_persona_gives_what_the_workflow_gives(usr_tables, tmp_path, root, capsys, monkeypatch):
    """The bar: values, intervals and p are those of `results/correlations`, made as the rules make them."""
    monkeypatch.setenv("COMPERDIAL_EMBEDDINGS", str(tmp_path / "vectors"))
    folder = tmp_path / "usr_persona"
    for name, frame in usr_tables["usr_persona"].items():
        schema.write(folder / f"{name}.parquet", frame, name)
    params = completed(load_yaml(root / "params.yaml"))
    entries = read_entries(root / "params.yaml")
    settings = params["evaluation"]
    # With one more output than is compared: p does not depend on it.
    names = {"bleu_raw": "bleu-4", "grounded-cosine-minilm": "sum", "f1_raw": "f1"}
    for name in names:
        scoring.write_scores(metric_named(name, entries), name, folder, tmp_path / f"{name}.parquet")
    samples = list(
        evaluation.samples(
            aggregate.read_scores([tmp_path / f"{name}.parquet" for name in names]),
            aggregate.read_ratings(folder / "ratings.parquet"),
            contexts=aggregate.read_contexts(folder / "contexts.parquet"),
            systems=schema.read(folder / "systems.parquet", "systems"),
            source=settings["source"],
            levels=settings["levels"],
        )
    )
    detail = evaluation.Detail(list(names.items()), [settings["target"]], settings["resamples"], settings["seed"])
    values = evaluation.correlations(samples, detail=detail)
    tests = evaluation.pairs(samples, detail=detail)

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
    (tmp_path / "params.yaml").write_text(f"catalogue: {catalogue}\n")
    main(["read", "usr_persona"])
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
    assert "no column contains human ratings" in fails(capsys, "compare", mine, "--metrics", "f1")
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
            "no score of metric 'theirs' belongs to a rated response; the first is of 'x-c0', system 'a'; expected the names",
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
    assert "columns of the file that can be compared: gpt4_score" in fails(
        capsys, "compare", "mine.csv", "--metrics", "gpt5_score"
    )
    twice = pd.concat([frame.assign(annotator="x"), frame.assign(annotator="y")])
    twice.to_csv("twice.csv", index=False)
    assert "gpt4_score:score" in set(compared(capsys, "twice.csv", "--metrics", "gpt4_score")["metric"])
    twice["gpt4_score"] = range(len(twice))
    twice.to_csv("twice.csv", index=False)
    text = run(capsys, "compare", "twice.csv", "--metrics", "f1").out
    assert "- gpt4_score: several values of 24 responses, whose mean counts" in text
    frame.assign(gpt4_score="good").to_csv("words.csv", index=False)
    assert "record 1, column 'gpt4_score': holds 'good'" in fails(
        capsys, "compare", "words.csv", "--metrics", "gpt4_score"
    )
    others = frame.assign(Claude=1, llm_judge=2, BLEU_4=0.5, bertscore=0.1).rename(columns={"rating": "stars"})
    others.to_csv("others.csv", index=False)
    assert '"rating": "stars"' in fails(capsys, "validate", "others.csv")
    others.drop(columns="stars").to_csv("others.csv", index=False)
    text = " ".join(run(capsys, "validate", "others.csv").out.split())
    assert "no column contains human ratings; scores by judges or metrics: gpt4_score" in text
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
    out, _ = run(capsys, "compare", mine, "--metrics", "f1", "far", "distinct", "grounded_cosine")
    (line,) = (line for line in out.splitlines() if line.startswith("- Not run: "))
    assert "far: model 'BLEURT-20' is not present" in line
    assert "grounded_cosine: no response has history" in line
    assert re.search(r"f1 .* 9 +75%", out)
    assert re.search(r"distinct .* 12 +100%", out)
    assert "no metric could be run" in fails(capsys, "compare", mine, "--metrics", "grounded_cosine")


def test_score_takes_several_metrics_by_either_kind_of_name(mine, capsys, caplog):
    frame = pd.read_csv(mine)
    # The responses to one context have its references, in whichever of their rows these are.
    frame.loc[frame["context_id"] == frame["context_id"][0], "reference"] = ""
    frame.to_csv(mine, index=False)
    names = ["bleu,text=raw", "plain", "f1", "far", "chrf"]
    run(capsys, "score", mine, "--metrics", *names, "--output", "scores.csv")
    assert "far: not run: " in caplog.text
    assert "chrf: 3 of 12 responses have no references" in caplog.text
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
    assert "no metric could be run: none was named" in fails(capsys, "compare", mine)
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
        (0.04999, 0.04999, 1, "a correlates better than b: +0.11 [0.04, 0.19], p < 0.050"),
        (0.05, 0.05, 1, "no significant difference between a and b: +0.11 [0.04, 0.19], p = 0.050"),
        (0.5, 1.0, 3, "no significant difference between a and b: +0.11 [0.04, 0.19], p = 0.500 (Holm: 1.000)"),
        (float("nan"), float("nan"), 1, "no test of a and b: +0.11 [0.04, 0.19], n = 7"),
    ],
)
def test_a_sentence_claims_no_more_than_its_p(p, adjusted, pairs, said):
    pair = {"difference": 0.11, "low": 0.04, "high": 0.19, "p": p, "p_adjusted": adjusted, "n": 7}
    assert sentence(pair, "a", "b", pairs) == said


@pytest.fixture
def four(tmp_path, monkeypatch):
    """Return a file of 40 contexts answered by five systems, and scores of four metrics; the first is the best by far."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    truth = rng.normal(size=(40, 5)) + np.arange(5) / 2
    keys = [{"context_id": f"c{c}", "system_id": f"s{s}"} for c in range(40) for s in range(5)]
    rated = [key | {"response": "yes", "rating": value} for key, value in zip(keys, truth.flat, strict=True)]
    pd.DataFrame(rated).to_csv("mine.csv", index=False)
    rows = [
        {"dataset": "mine", "level": "turn", "item_id": key["context_id"], "system_id": key["system_id"]}
        | {
            "metric": metric,
            "output": "o",
            "value": value + noise * rng.normal(),
            "cut": 0,
            "signature": f"{metric}|v:1",
        }
        for metric, noise in (("w", 0.5), ("x", 0.9), ("y", 1.1), ("z", 1.3))
        for key, value in zip(keys, truth.flat, strict=True)
    ]
    schema.write(tmp_path / "scores.parquet", pd.DataFrame(rows), "scores")
    return ["mine.csv", "--scores", "scores.parquet", "--level", "turn", "--coefficient", "spearman"]


def test_against_one_metric_corrects_over_the_comparisons_with_it_alone(four, capsys):
    every = compared(capsys, *four)
    every = every[every["minus"] != ""].set_index(["metric", "minus"])
    assert set(every["tests"].astype(float)) == {6}
    found = compared(capsys, *four, "--against", "x")
    pairs = found[found["minus"] != ""].set_index(["metric", "minus"])
    assert set(pairs.index) == {("w:o", "x:o"), ("x:o", "y:o"), ("x:o", "z:o")}
    assert set(pairs["tests"].astype(float)) == {3}
    assert pairs["p"].equals(every.loc[pairs.index, "p"])
    p = pairs["p"].astype(float)
    np.testing.assert_allclose(pairs["p_adjusted"].astype(float), holm(p), rtol=1e-4)
    assert (pairs["p_adjusted"].astype(float) < every.loc[pairs.index, "p_adjusted"].astype(float)).any()
    # Ranks would be of all pairs.
    assert set(found["rank"]) == {""}
    text = run(capsys, "compare", *four, "--against", "x").out
    assert "comparisons with x, and no others, of a block and coefficient: 3 tests" in text
    assert "all pairs of a block and coefficient: 6 tests" in run(capsys, "compare", *four).out
    fdr = compared(capsys, *four, "--against", "x", "--correction", "fdr")
    fdr = fdr[fdr["minus"] != ""]
    np.testing.assert_allclose(fdr["p_adjusted"].astype(float), benjamini_hochberg(fdr["p"].astype(float)), rtol=1e-4)
    assert "No p is corrected" in run(capsys, "compare", *four, "--metrics", "w", "--against", "x").out


def test_against_a_metric_that_is_not_among_the_others_adds_it_and_one_without_scores_is_an_error(four, capsys):
    some = compared(capsys, *four, "--metrics", "y", "z", "--against", "x:o")
    assert set(some.loc[some["minus"] != "", "metric"]) == {"x:o"}
    assert "unknown metric 'v'" in fails(capsys, "compare", *four, "--against", "v")
    assert "no response has references" in fails(capsys, "compare", *four, "--against", "chrf")
    alone = fails(capsys, "compare", *four, "--metrics", "x", "--against", "x")
    assert "only x has scores" in alone


def test_pairs_of_systems_are_compared_where_they_are_asked_for(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(
        [
            {
                "context_id": f"c{c}",
                "system": f"s{s}",
                "response": "tea " * (s + c % 3 + 1),
                "reference": "tea " * 6,
                "rating": 1 + (s + c) % 5,
            }
            for c in range(6)
            for s in range(5)
        ]
    ).to_csv("mine.csv", index=False)
    command = ["mine.csv", "--metrics", "f1", "chrf", "--resamples", "100", "--coefficient"]
    text = run(capsys, "compare", *command, "spearman", "accuracy").out
    turn, system = text[: text.index("System level")], text[text.index("System level") :]
    assert "accuracy" not in turn and "accuracy" in system
    assert "accuracy: of pairs of systems, at system level alone" in text
    rows = compared(capsys, *command, "accuracy", "spa")
    assert set(rows["level"]) == {"system"} and set(rows["coefficient"]) == {"accuracy", "spa"}
    values = rows[rows["minus"] == ""]
    assert pd.to_numeric(values["value"]).between(0, 1).all() and len(values) == 4
    assert "no system level" in fails(capsys, "compare", *command, "accuracy", "--level", "turn")


def test_without_names_the_metrics_of_params_are_compared(mine, capsys):
    (mine.parent / "params.yaml").write_text(
        "metrics:\n  f1: {kind: f1, main: f1}\n  chrf: {kind: chrf, main: chrf}\n  no_main: {kind: bleu}\n"
        "  elsewhere: {kind: f1, main: f1, datasets: [other]}\n  far: {kind: bleurt, main: bleurt}\n"
    )
    assert {name.partition(":")[0] for name in compared(capsys, mine)["metric"]} == {"f1", "chrf"}


def test_what_takes_over_a_minute_is_left_out_with_its_time(root, monkeypatch):
    monkeypatch.setattr(Local, "unavailable", lambda _: None)
    entries = {"local": {"kind": "local", "main": "local"}, "f1": {"kind": "f1", "main": "f1"}}
    assert default_metrics(entries, 100) == (["f1", "local"], {}, {})
    assert default_metrics(entries, 20_000) == (["f1"], {}, {"local": "about 181 min"})
    # Together, not each: of two that take most of a minute the first is run.
    entries["pmi"] = {"kind": "f1", "main": "f1"}
    assert default_metrics(entries, 100)[::2] == (["f1", "pmi"], {"local": "about 1 min"})
    monkeypatch.setattr(Local, "unavailable", lambda _: "its part density: no weights")
    assert default_metrics(entries, 100)[1] == {"local": "its part density: no weights"}
    # The shipped entry is among them, for files that are small enough.
    monkeypatch.setattr(Local, "unavailable", lambda _: None)
    shipped = read_entries(root / "params.yaml")
    assert "local" in default_metrics({"local": shipped["local"]}, 100)[0]


def test_a_column_goes_by_any_spelling_and_scores_of_other_contexts_are_left_out(tmp_path, capsys, caplog, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [
        {
            "context_id": f"c{c}",
            "system": f"s{s}",
            "response": "tea",
            "rating": 1 + (s + c) % 5,
            "GPT4 Score": (s + c) % 4,
        }
        for c in range(8)
        for s in range(4)
    ]
    pd.DataFrame(rows).to_csv("mine.csv", index=False)
    expected = compared(capsys, "mine.csv", "--metrics", "GPT4 Score", "--level", "turn")
    for name in ("gpt4_score", "gpt4-score:score"):
        found = compared(capsys, "mine.csv", "--metrics", name, "--level", "turn")
        assert found["value"].tolist() == expected["value"].tolist()
    more = [{"context_id": f"c{c}", "system_id": f"s{s}", "value": (s * c) % 5} for c in range(9) for s in range(4)]
    pd.DataFrame(more).to_csv("theirs.csv", index=False)
    assert (
        main(["compare", "mine.csv", "--scores", "theirs.csv", "--against", "GPT4 Score:score", "--level", "turn"]) == 0
    )
    assert "4 of 36 scores belong to no rated response" in caplog.text


def test_of_a_few_contexts_there_is_no_interval_and_no_test(tmp_path, capsys, monkeypatch):
    """With two systems and two contexts, leaving out one leaves a correlation of 1 or -1: an interval without width."""
    monkeypatch.chdir(tmp_path)
    rows = [
        {"context_id": c, "system": s, "response": "tea", "rating": rating, "gpt4_score": score}
        for c, s, rating, score in (("1", "a", 5, 4), ("1", "b", 1, 1), ("2", "a", 4, 5), ("2", "b", 1, 2))
    ]
    pd.DataFrame([row | {"claude_score": 6 - row["rating"] % 3} for row in rows]).to_csv("mine.csv", index=False)
    found = compared(capsys, "mine.csv", "--metrics", "gpt4_score", "claude_score")
    assert (found["low"] == "").all() and (found.loc[found["minus"] != "", "p"] == "").all()
    assert (found.loc[found["minus"] == "", "value"] != "").all()
