"""The command line: files in, files out, and one message for any error."""

import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys

import pandas as pd
import pytest
import typer

from comperdial import schema
from comperdial.cli import main
from comperdial.cli.options import app
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
    run("metrics")
    out = capsys.readouterr().out
    assert "unit:word" in out and "far: bleurt|" in out


def test_incompatible_scores_are_refused(capsys):
    run("score", "mine.jsonl", "--metric", "bleu", "--output", "one.csv")
    run("score", "mine.jsonl", "--metric", "bleu", "--option", "text=raw", "--output", "two.csv")
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
def test_unwritable_output_is_refused_before_any_work(here, capsys, names):
    message = fails(capsys, *names, "--output", here / "mine.jsonl/below.jsonl")
    assert f"{here / 'mine.jsonl'}: is not a folder; expected" in message


def test_full_disk_leaves_no_files(here, capsys):
    (here / "folder.csv").mkdir()
    (here / "full.csv").symlink_to("/dev/full")
    before = sorted(here.iterdir())
    for place in ("folder.csv", "full.csv"):
        fails(capsys, "score", "mine.jsonl", "--metric", "f1", "--output", place)
    assert sorted(here.iterdir()) == before


PAIRS = '{"response": "x", "reference": "y"}\n{"response": "x", "reference": [" "]}\n'
MISTAKES = [
    ("score mine.jsonl --metric f1 --option txt=raw", "Did you mean 'text'?"),
    ("score mine.jsonl --metric bleu --option epsilon=abc", "'epsilon' of metric 'bleu' is 'abc'; expected a number"),
    ("score mine.jsonl --metric f2", "Did you mean 'f1'"),
    ("score mine.jsonl --metric bertscore --option model=./tiny", "model folder './tiny' is not present"),
    ("score pairs.jsonl --metric f1", "pairs.jsonl, record 2: one of its references is ' '"),
    ("score lone.csv --metric f1", "f1: no response has references"),
    ("score '\udcff.csv'", r"\\udcff\.csv: not UTF-8; rename the file"),
    ("validate mine.jsonl --table response", "Did you mean 'responses'"),
    ("preferences missing.csv --output mine.jsonl", "mine.jsonl: is not a folder; expected a new or existing output"),
    ("table nowhere systems --output x", "unknown study 'nowhere'"),
    ("table dataset system --dataset mine --output x", "Did you mean 'systems'?"),
    ("table dataset alpha --dataset mine --output x", "results/mine/about.json: no such file"),
    ("annotate exprt", "No such command 'exprt'. Did you mean 'export'?"),
    ("correlate x --level dialog", "'--level': unknown choice 'dialog'; .*Did you mean 'dialogue'"),
    ("personas x --count 0", "'--count': Input should be greater than or equal to 1"),
    ("validate .", "a folder; expected a file; folders of tables"),
    ("""read x --columns '{"a": 1, "a": 2}'""", "'--columns': .*the key 'a' is given twice"),
    # As a shell's variable that is not set makes it; as a path "" would be the folder in which the command runs.
    ("perturb x --dataset y --output ''", "an argument: is empty"),
]


@pytest.mark.parametrize(("command", "message"), MISTAKES)
def test_invalid_command_gives_one_message_and_writes_nothing(here, capsys, command, message):
    (here / "pairs.jsonl").write_text(PAIRS)
    (here / "lone.csv").write_text("response\nx\n")
    before = {path.name for path in here.iterdir()}
    try:
        status = main(shlex.split(command))
    except SystemExit as ended:
        status = ended.code
    error = capsys.readouterr().err
    assert status in (1, 2) and re.search(message, error, re.DOTALL) and "Traceback" not in error
    assert {path.name for path in here.iterdir()} == before


# Interrupts and unexpected errors


def test_ctrl_c_is_one_line_and_status_130_and_leaves_no_half_file(here, monkeypatch, capsys):
    script = """
import importlib.abc, os, signal, sys
class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == 'pandas': os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
from comperdial.cli import main
assert not {"numpy", "pandas", "nltk"} & sys.modules.keys(), "what takes its time is imported where Ctrl-C is expected"
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


def test_unexpected_error_is_one_line_and_debug_shows_traceback(monkeypatch, capsys):
    def broken(*arguments, **options):
        raise KeyError("nobody\nknew")

    monkeypatch.setattr("comperdial.api.score", broken)
    error = fails(capsys, "score", "mine.jsonl", "--metric", "f1")
    assert "unexpected KeyError" in error and "--debug" in error
    with pytest.raises(KeyError):
        main(["--debug", "score", "mine.jsonl", "--metric", "f1"])


def test_closed_pipe_is_not_an_error():
    command = f"{sys.executable} -m comperdial.cli score mine.jsonl --metric f1 | head -1"
    assert subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stderr == ""


@pytest.mark.parametrize(
    ("module", "command"), [("torch", "pip install 'comperdial[neural]'"), ("xyz", "pip install xyz")]
)
def test_missing_package_message_gives_install_command(module, command, capsys, monkeypatch):
    def missing(*_):
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)

    monkeypatch.setattr("comperdial.metrics.named.read_entries", missing)
    assert fails(capsys, "doctor") == f"comperdial: error: not installed: {module}; expected {command}"


def test_doctor_lists_installed_and_missing_parts(capsys, monkeypatch):
    monkeypatch.setattr("comperdial.core.versions.installed", lambda package: "absent" if package == "torch" else "1.0")
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    run("doctor")
    shown = capsys.readouterr().out
    assert "not installed: torch\n  to install: pip install 'comperdial[neural]'" in shown
    assert "keys in the environment: OPENAI_API_KEY" in shown and "secret" not in shown


# Data sets


def test_fetch_read_and_score_a_data_set(here, monkeypatch, capsys):
    monkeypatch.setenv("COMPERDIAL_MIRROR", str(here / "mirror"))
    catalogue = write_mirror(here, mini_items())
    (here / "params.yaml").write_text(f"catalogue: {catalogue}\n")
    run("fetch", "usr_persona", "--catalogue", catalogue)
    assert "Did you mean 'usr_persona'" in fails(capsys, "read", "usr_person")
    run("read", "usr_persona")
    run("score", "data/tables/usr_persona", "--metric", "f1", "--output", "f1.parquet")
    scores = schema.read("f1.parquet", "scores")
    assert "Original Ground Truth" not in set(scores["system_id"]), "a reference is not scored against itself"
    assert len(scores) == 6 * 4 * 3
    write_mirror_bytes(here, b"[{}]")
    run("fetch", "usr_persona", "--catalogue", catalogue)
    assert "KeyError ('responses') while reading" in fails(capsys, "read", "usr_persona", "--output", "none")
    assert not (here / "none").exists()
    (here / "params.yaml").write_text("challenges: {mine: {dialogues: dialogues.json}}\n")
    (here / "mine.csv").write_text("context_id,system_id,response,rating\n1,a,hi,3\n1,b,yes,4\n")
    assert "the data set 'mine' exists" in fails(capsys, "read", "mine.csv")
