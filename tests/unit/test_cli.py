"""The command line: files in, files out, and one message for whatever is wrong."""

import importlib.metadata
import io
import json
import os
import re
import signal
import subprocess
import sys

import pandas as pd
import pytest
import typer

import tinymodels
from comperdial import schema
from comperdial.cli import main
from comperdial.cli.options import app
from comperdial.models.encoder import Vectors
from minidata import mini_items, write_mirror, write_mirror_bytes

RESPONSES = [
    {"context_id": "1", "system_id": "a", "response": "i like tea", "reference": ["i like tea"]},
    {"context_id": "1", "system_id": "b", "response": "no", "reference": ["i like tea"]},
    {"context_id": "2", "system_id": "a", "response": "yes it is", "reference": ["yes", "yes it is"]},
    {"context_id": "2", "system_id": "b", "response": "it was", "reference": ["yes", "yes it is"]},
]
RATINGS = "context_id,system_id,rating\n1,a,5\n1,b,1\n2,a,4\n2,b,2\n"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Work in a folder with a file of responses and one of ratings; vectors are kept nowhere unless a test says where."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMPERDIAL_EMBEDDINGS", "")
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in RESPONSES))
    (tmp_path / "ratings.csv").write_text(RATINGS)
    return tmp_path


@pytest.fixture
def mirror(here, monkeypatch):
    """Return a function that puts bytes into a mirror, with a catalogue that pins them, and fetches them."""
    monkeypatch.setenv("COMPERDIAL_MIRROR", str(here / "mirror"))

    def fetch(content=None):
        catalogue = write_mirror_bytes(here, content) if content is not None else write_mirror(here, mini_items())
        (here / "params.yaml").write_text(f"catalogue: {catalogue}\n")
        run("fetch", "usr_persona", "--catalogue", catalogue)
        return catalogue

    return fetch


@pytest.fixture
def tables(here, mirror):
    """Return a folder of tables of the small invented set."""
    mirror()
    run("read", "usr_persona")
    return here / "data/tables/usr_persona"


def run(*arguments):
    assert main([str(argument) for argument in arguments]) == 0


def fails(capsys, *arguments):
    """Run a command that must fail with one line and no traceback; return the line."""
    assert main([str(argument) for argument in arguments]) == 1
    error = capsys.readouterr().err.strip()
    assert error.startswith("comperdial: error: ") and "Traceback" not in error and "\n" not in error
    return error


def test_score_then_correlate(capsys, caplog):
    run("score", "mine.jsonl", "--metric", "f1", "--output", "scores.csv")
    scores = schema.read("scores.csv", "scores").query("output == 'f1'").set_index(["item_id", "system_id"])["value"]
    assert scores.to_dict() == {("1", "a"): 1.0, ("1", "b"): 0.0, ("2", "a"): 1.0, ("2", "b"): pytest.approx(0.4)}
    run("correlate", "scores.csv", "--ratings", "ratings.csv", "--level", "turn")
    table = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert list(table.columns) == schema.table("correlations").columns
    chosen = table.query("output == 'f1' and coefficient == 'spearman' and grouping == 'pooled'")
    assert chosen["value"].item() == pytest.approx(0.9486832980505138)
    assert table["low"].isna().all(), "two contexts are too few for an interval"
    assert "ratings.csv: no columns scale_min and scale_max: the scale is taken to be the range" in caplog.text
    pd.read_csv("ratings.csv").iloc[:3].to_csv("some.csv", index=False)
    run("correlate", "scores.csv", "--ratings", "some.csv")
    assert "1 of 4 scores belong to no rated response" in caplog.text


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_same_scores_from_every_format(suffix, capsys):
    frame = pd.DataFrame(RESPONSES)
    if suffix == "csv":
        frame.assign(reference=frame["reference"].map(json.dumps)).to_csv("other.csv", index=False)
    else:
        frame.to_parquet("other.parquet")
    run("score", "mine.jsonl", "--metric", "bleu", "--option", "text=raw")
    expected = capsys.readouterr().out.replace("mine,", "other,")
    run("score", f"other.{suffix}", "--metric", "bleu", "--option", "text=raw")
    assert capsys.readouterr().out == expected


def test_names_keep_their_zeros(here, capsys):
    (here / "r.csv").write_text("context_id,system_id,response,reference\n01,007,a b c,b c\n1,1e5,x,y\n02,007,q,q\n")
    run("score", "r.csv", "--metric", "f1", "--output", "s.csv")
    (here / "h.csv").write_text("context_id,system_id,rating\n01,007,3\n1,1e5,1\n02,007,5\n")
    run("correlate", "s.csv", "--ratings", "h.csv")
    assert ",3,1.0,0," in capsys.readouterr().out


def test_several_metrics_and_their_options(here, capsys, caplog, monkeypatch):
    monkeypatch.setenv("COMPERDIAL_MODELS", str(here / "models"))
    (here / "params.yaml").write_text(
        "metrics:\n  plain: {kind: bleu, text: raw}\n  f1: {kind: f1, unit: character}\n  far: {kind: bleurt}\n"
    )
    names = ["bleu,text=raw", "plain", "f1", "far"]
    run("score", "mine.jsonl", "--metrics", *names, "--output", "scores.csv")
    assert "far: not run: " in caplog.text
    signatures = schema.read("scores.csv", "scores").drop_duplicates("metric").set_index("metric")["signature"]
    assert {*signatures.index} == {*names} - {"far"} and signatures["plain"] == signatures["bleu,text=raw"]
    # A name of params.yaml goes before a kind of the same name; with an option NAME is a kind.
    assert "unit:character" in signatures["f1"]
    run("score", "mine.jsonl", "--metric", "f1", "--option", "unit=word")
    run("score", "mine.jsonl", "--metric", "rouge", "--option", "stem=yes", "--option", "beta=2")
    run("metrics")
    out = capsys.readouterr().out
    assert "unit:word" in out and "stem:yes|beta:2|" in out and "far: bleurt|" in out


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("m.jsonl", '{"response": "x"}\n', "", "f1: no response has references"),
        ("m.jsonl", '{"text": 1}\n', "", "no column is clearly the response"),
        ("m.jsonl", '{"response": "", "reference": "x"}\n', "", "record 1 (context_id=1, system_id=m): column 'response'"),
        ("m.jsonl", '{"response": "x", "reference": "y"}\n{"response": "x", "reference": [" "]}\n', "",
         "m.jsonl, record 2: one of its references is ' '"),
        ("m.jsonl", '{"response": "x", "reference": 7}\n', "", "record 1, column 'references': holds 7"),
        ("m.jsonl", '{"response": "x"\n', "", "line 1, column 17: not valid JSON"),
        ("m.jsonl", '{"response": "a", "references": ["a"]}\n{"response": "b", "reference": "b"}\n', "",
         "columns 'reference' and 'references'"),
        ("m.csv", "response,reference\nx,a,b\ny,d,e\n", "", "line 2: 3 cells; expected 2, as in the header"),
        ("m.csv", 'response,references\nx,"[1, 2]"\n', "", "record 1: one of its references is 1; expected a text"),
        ("m.csv", "response,refernce\nx,y\n", "", "unknown column 'refernce'"),
        ("m.csv", "response,reference\n", "", "no records"),
        ("m.csv", "response,reference\nx,y\n", "--option txt=raw", "Did you mean 'text'?"),
        ("m.csv", "response,reference\nx,y\n", "--option raw", "--option: option 'raw'; expected NAME=VALUE"),
        ("m.csv", "response,reference\nx,y\n", "--output /nowhere.xyz", "expected a name ending in .jsonl"),
    ],
)  # fmt: skip
def test_bad_input_to_score(here, capsys, name, content, options, message):
    (here / name).write_text(content)
    assert message in fails(capsys, "score", name, "--metric", "f1", *options.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            "score mine.jsonl --metric bleu --option epsilon=abc",
            "'epsilon' of metric 'bleu' is 'abc'; expected a number",
        ),
        ("score mine.jsonl --metric bleu --option epsilon=0", "a number above 0 and up to 1"),
        ("score mine.jsonl --metric bleu --option smoothing=method6", "expected one of 'method0'"),
        ("score mine.jsonl --metric f2", "Did you mean 'f1'"),
        ("score mine.jsonl --metric bertscore --option layr=6", "Did you mean 'layer'?"),
        ("score mine.jsonl --metric bertscore --option model=all-MiniLM", "Did you mean 'all-MiniLM-L6-v2'?"),
        ("score mine.jsonl --metric bertscore --option model=./tiny", "model folder './tiny' is not present"),
        ("validate mine.jsonl --table response", "Did you mean 'responses'"),
        ("fetch usr_person", "data/sources.yaml: "),
        (
            "preferences missing.csv --output mine.jsonl",
            "mine.jsonl: is not a folder; expected a new or existing output folder",
        ),
        ("table nowhere systems --output x", "unknown study 'nowhere'"),
        ("table dataset system --dataset mine --output x", "Did you mean 'systems'?"),
        ("figure dataset heatmp --dataset mine --output x", "Did you mean 'heatmap'?"),
        ("table dataset systems --output x", "no --dataset"),
        ("table dataset alpha --dataset mine --output x", "results/mine/about.json: no such file"),
    ],
)
def test_names_and_values_that_do_not_exist(here, capsys, arguments, message):
    before = {path.name for path in here.iterdir()}
    assert message in fails(capsys, *arguments.split(" "))
    assert {path.name for path in here.iterdir()} == before


@pytest.mark.parametrize(
    ("ratings", "message"),
    [
        ("context_id,rating\n1,2\n", "no column 'system_id'"),
        ("context_id,system_id,rating\n1,a,good\n", "record 1, column 'rating': holds 'good'; expected a number"),
        ("context_id,system_id,rating\n1,a,5\n1,a,4\n", "expected a column `annotator_id`"),
    ],
)
def test_bad_ratings_to_correlate(here, capsys, ratings, message):
    run("score", "mine.jsonl", "--metric", "f1", "--output", "scores.parquet")
    (here / "ratings.csv").write_text(ratings)
    assert message in fails(capsys, "correlate", "scores.parquet", "--ratings", "ratings.csv")


def test_scores_that_do_not_go_together(capsys):
    run("score", "mine.jsonl", "--metric", "bleu", "--output", "one.csv")
    run("score", "mine.jsonl", "--metric", "bleu", "--option", "text=raw", "--output", "two.csv")
    assert "the same key a second time" in fails(capsys, "correlate", "one.csv", "one.csv", "--ratings", "ratings.csv")
    error = fails(capsys, "correlate", "one.csv", "two.csv", "--ratings", "ratings.csv")
    assert "metric 'bleu' was made in 2 ways" in error and "under another --name" in error


def commands(group, *names):
    """Yield every command below a group, by its names, with its options."""
    for name, below in group.commands.items():
        if hasattr(below, "commands"):
            yield from commands(below, *names, name)
        else:
            yield (*names, name), {option for parameter in below.params for option in parameter.opts}


COMMANDS = dict(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("names", [names for names, options in COMMANDS.items() if "--output" in options], ids=" ".join)
def test_an_output_that_cannot_be_written_is_refused_before_any_work(here, capsys, names):
    message = fails(capsys, *names, "--output", here / "mine.jsonl/below.jsonl")
    assert f"{here / 'mine.jsonl'}: is not a folder; expected" in message


def test_a_full_disk_leaves_nothing_behind(here, capsys):
    (here / "folder.csv").mkdir()
    (here / "full.csv").symlink_to("/dev/full")
    before = sorted(here.iterdir())
    for place in ("folder.csv", "full.csv"):
        fails(capsys, "score", "mine.jsonl", "--metric", "f1", "--output", place)
    assert sorted(here.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["annotate", "exprt"], "No such command 'exprt'. Did you mean 'export'?"),
        (["annotate", "import", "x", "--level", "dialog"], "'--level': 'dialog' is not one of 'turn', 'dialogue', 'pair'"),
        (["correlate", "x", "--level", "dialog"], "'--level': unknown choice 'dialog'; .*Did you mean 'dialogue'"),
        (["correlate", "x", "--lvel", "turn"], "comperdial correlate .*No such option: --lvel .*--level"),
        (["personas", "x", "--count", "0"], "'--count': Input should be greater than or equal to 1"),
        (["read", "x", "--columns", '{"a": 1, "a": 2}'], "'--columns': .*the key 'a' is given twice"),
        (["score", "\udcff.csv"], r"\\udcff\.csv: not UTF-8; rename the file"),
        (["correlate", "x", "--no\x1b[31m" + "y" * 5000], r"No such option: --no\\x1b\[31my{500,2000} … "),
        # As a shell's variable that is not set makes it; as a path "" would be the folder in which the command runs.
        (["perturb", "x", "--dataset", "y", "--output", ""], "an argument: is empty"),
        (["perturb", "x", "--dataset", "y", "--output="], "--output: is empty"),
    ],
)  # fmt: skip
def test_a_wrong_command_line_is_one_message(capsys, arguments, message):
    try:
        status = main(arguments)
    except SystemExit as ended:
        status = ended.code
    assert status == 2 and re.search(message, capsys.readouterr().err, re.DOTALL)


# Interrupts and errors that no check foresaw


def test_ctrl_c_is_one_line_and_status_130_and_leaves_no_half_file(here, monkeypatch, capsys):
    script = """
import importlib.abc, os, signal, sys
class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == 'pandas': os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
from comperdial.cli import main
assert "numpy" not in sys.modules, "what takes its time is imported where Ctrl-C is expected"
sys.exit(main())
"""
    command = [sys.executable, "-c", script, "score", "mine.jsonl", "--metric", "f1"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "comperdial: interrupted\n")

    def interrupted(frame, path, **options):
        path.write_text("half a table")
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(pd.DataFrame, "to_csv", interrupted)
    assert main(["score", "mine.jsonl", "--metric", "f1", "--output", "made/scores.csv"]) == 130
    assert list((here / "made").iterdir()) == []


def test_an_unforeseen_error_is_one_line_and_debug_shows_the_traceback(monkeypatch, capsys):
    def broken(*arguments, **options):
        raise KeyError("nobody\nknew")

    monkeypatch.setattr("comperdial.api.score", broken)
    error = fails(capsys, "score", "mine.jsonl", "--metric", "f1")
    assert "unexpected KeyError" in error and "--debug" in error
    with pytest.raises(KeyError):
        main(["--debug", "score", "mine.jsonl", "--metric", "f1"])


def test_a_closed_pipe_is_no_error_and_starting_up_loads_nothing_heavy():
    command = f"{sys.executable} -m comperdial.cli score mine.jsonl --metric rouge | head -1"
    assert subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stderr == ""
    code = "import sys, comperdial.cli; sys.exit(bool({'pandas', 'nltk', 'matplotlib', 'torch'} & sys.modules.keys()))"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("module", "command"),
    [
        ("torch", "pip install 'comperdial[neural]'"),
        ("openai.types", "pip install 'comperdial[judge]'"),
        ("sklearn.linear_model", "pip install 'comperdial[workflow]'"),
        ("xyz", "pip install xyz"),
    ],
)
def test_a_missing_package_is_one_line_that_installs_it(module, command, capsys, monkeypatch):
    def missing(*_):
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)

    monkeypatch.setattr("comperdial.metrics.named.read_entries", missing)
    assert fails(capsys, "doctor") == f"comperdial: error: not installed: {module}; expected {command}"


def test_doctor_lists_what_is_installed_and_how_to_get_the_rest(capsys, monkeypatch):
    monkeypatch.setattr("comperdial.core.versions.installed", lambda package: "absent" if package == "torch" else "1.0")
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    run("doctor")
    shown = capsys.readouterr().out
    assert f"comperdial {importlib.metadata.version('comperdial')}" in shown
    assert "not installed: torch\n  to install: pip install 'comperdial[neural]'" in shown
    assert "keys in the environment: OPENAI_API_KEY" in shown and "secret" not in shown


# Data sets


def test_fetch_read_and_score_a_data_set(here, mirror, capsys):
    catalogue = mirror()
    run("sources", "--catalogue", catalogue)
    assert capsys.readouterr().out.startswith("present")
    assert "Did you mean 'usr_persona'" in fails(capsys, "read", "usr_person")
    run("read", "usr_persona")
    run("score", "data/tables/usr_persona", "--metric", "f1", "--output", "f1.parquet")
    scores = schema.read("f1.parquet", "scores")
    assert "Original Ground Truth" not in set(scores["system_id"]), "a reference is not scored against itself"
    assert len(scores) == 6 * 4 * 3
    (here / "data/raw/invented/mini/data/ratings.json").write_text("changed")
    assert main(["sources", "--catalogue", str(catalogue)]) == 1
    assert capsys.readouterr().out.startswith("altered")
    (here / "params.yaml").write_text("challenges: {mine: {dialogues: dialogues.json}}\n")
    (here / "mine.csv").write_text("context_id,system_id,response,rating\n1,a,hi,3\n1,b,yes,4\n")
    assert "the data set 'mine' exists" in fails(capsys, "read", "mine.csv")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (json.dumps(mini_items()).encode()[:-500], "truncated"),
        (b'[{"context": "caf\xe9"}]', "is not UTF-8"),
        (b"[{}]", "KeyError ('responses') while reading"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_a_broken_file_writes_no_table(here, mirror, capsys, content, message):
    mirror(content)
    assert message in fails(capsys, "read", "usr_persona")
    assert not (here / "data/tables").exists()


def test_tables_give_the_same_scores_in_every_format_and_a_fault_keeps_the_earlier_ones(here, tables, capsys):
    frames = {}
    for suffix in ("parquet", "csv", "jsonl"):
        run("score", tables, "--metric", "rouge", "--name", "mine", "--output", f"out/mine.{suffix}")
        frames[suffix] = schema.read(f"out/mine.{suffix}", "scores")
        pd.testing.assert_frame_equal(frames[suffix], frames["parquet"])
    assert len(frames["parquet"]) == 6 * 4 * 9 and set(frames["parquet"]["metric"]) == {"mine"}
    before = {path.name: path.read_bytes() for path in (here / "out").iterdir()}
    path = tables / "responses.parquet"
    frame = pd.read_parquet(path)
    frame.assign(context_id=frame["context_id"].replace(frame["context_id"].iloc[-1], "far")).to_parquet(path)
    command = ["score", tables, "--metric", "f1", "--output", "out/mine.parquet"]
    assert "5 responses name context_id 'far', which is in no table" in fails(capsys, *command)
    assert {path.name: path.read_bytes() for path in (here / "out").iterdir()} == before


def test_what_one_command_encoded_the_next_one_finds_and_cuts_reach_the_correlations(here, tables, monkeypatch):
    options = ["--option", f"model={tinymodels.bert(here / 'tiny')}", "max_length=40", "layer=2"]
    command = ["score", tables, "--metric", "bertscore", *options, "--output", "s.parquet"]
    run(*command, "--embeddings", "kept")
    table = schema.read("s.parquet", "scores")
    of_f1 = table.query("output == 'f1'")
    assert 0 < (of_f1["cut"] > 0).sum() < len(of_f1), "some of the responses are longer"
    monkeypatch.setattr(Vectors, "_encode", None)
    run(*command, "--embeddings", "kept")
    pd.testing.assert_frame_equal(schema.read("s.parquet", "scores"), table, rtol=1e-5)
    run("correlate", "s.parquet", "--ratings", tables / "ratings.parquet", "--resamples", 0, "--output", "c.parquet")
    assert set(schema.read("c.parquet", "correlations")["cut"]) == {(of_f1["cut"] > 0).sum()}
