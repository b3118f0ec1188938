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
from comperdial.metrics import scoring
from comperdial.models import encoder as encoder_module
from comperdial.models.encoder import Vectors
from minidata import mini_items, write_mirror, write_mirror_bytes

RESPONSES = [
    {"context_id": "1", "system_id": "a", "response": "i like tea", "reference": "i like tea"},
    {"context_id": "1", "system_id": "b", "response": "no", "reference": "i like tea"},
    {"context_id": "2", "system_id": "a", "response": "yes it is", "reference": ["yes", "yes it is"]},
    {"context_id": "2", "system_id": "b", "response": "it was", "reference": "yes it is"},
]
MINILM = "all-MiniLM-L6-v2"
RATINGS = "context_id,system_id,rating\n1,a,5\n1,b,1\n2,a,4\n2,b,2\n"


@pytest.fixture
def responses(tmp_path):
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in RESPONSES))
    return path


def fails(capsys, *arguments):
    """Run a command that must fail with one line and no traceback; return the line."""
    assert main([str(a) for a in arguments]) == 1
    error = capsys.readouterr().err.strip()
    assert error.startswith("comperdial: error: ")
    assert "Traceback" not in error
    assert "\n" not in error
    return error


def test_score_then_correlate(tmp_path, responses, capsys):
    scores, ratings = tmp_path / "scores.csv", tmp_path / "ratings.csv"
    ratings.write_text(RATINGS)
    assert main(["score", str(responses), "--metric", "f1", "--output", str(scores)]) == 0
    table = schema.read(scores, "scores")
    assert table[table["output"] == "f1"].set_index(["item_id", "system_id"])["value"].to_dict() == {
        ("1", "a"): 1.0,
        ("1", "b"): 0.0,
        ("2", "a"): 1.0,
        ("2", "b"): pytest.approx(0.4),
    }
    assert main(["correlate", str(scores), "--ratings", str(ratings), "--level", "turn"]) == 0
    table = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert list(table.columns) == schema.table("correlations").columns
    # Three outputs: three coefficients over responses and as many within contexts, and the accuracy of pairs there.
    assert len(table) == 3 * (3 + 7 + 4)
    chosen = table[(table["output"] == "f1") & (table["coefficient"] == "spearman") & (table["grouping"] == "pooled")]
    assert chosen["value"].item() == pytest.approx(0.9486832980505138)
    # Two contexts are too few for an interval.
    assert table["low"].isna().all()
    arguments = ["correlate", str(scores), "--ratings", str(ratings), "--level", "turn", "--resamples", "0"]
    assert main(arguments) == 0
    plain = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert len(plain) == 3 * 3
    assert plain["low"].isna().all()
    assert main([*arguments, "--pairs", str(tmp_path / "pairs.csv")]) == 1
    assert "--resamples: no resamples; expected 2 or more" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_the_same_scores_from_every_format(tmp_path, responses, suffix, capsys):
    rows = [row | {"reference": [row["reference"]]} if isinstance(row["reference"], str) else row for row in RESPONSES]
    frame = pd.DataFrame(rows)
    path = tmp_path / f"other.{suffix}"
    if suffix == "csv":
        frame.assign(reference=frame["reference"].map(json.dumps)).to_csv(path, index=False)
    elif suffix == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_parquet(path)
    main(["score", str(responses), "--metric", "bleu", "--option", "text=raw"])
    expected = capsys.readouterr().out.replace("mine,", "other,")
    assert main(["score", str(path), "--metric", "bleu", "--option", "text=raw"]) == 0
    assert capsys.readouterr().out == expected


def test_a_csv_of_plain_texts(tmp_path, capsys):
    path = tmp_path / "r.csv"
    path.write_text("response,reference\nhello there,[waves] hello there\n")
    assert main(["score", str(path), "--metric", "f1"]) == 0
    assert "0.8" in capsys.readouterr().out


def commands(group, *names):
    """Yield every command below a group, by its names, with its options."""
    for name, below in group.commands.items():
        if hasattr(below, "commands"):
            yield from commands(below, *names, name)
        else:
            yield (*names, name), {option for parameter in below.params for option in parameter.opts}


COMMANDS = dict(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("names", [names for names, options in COMMANDS.items() if "--output" in options], ids=" ".join)
def test_an_output_that_cannot_be_written_is_refused_before_any_work(tmp_path, capsys, names):
    (tmp_path / "file").touch()
    message = fails(capsys, *names, "--output", tmp_path / "file/below.jsonl")
    assert f"{tmp_path / 'file'}: is not a folder; expected a new or existing output folder" in message


def test_preferences_go_to_a_folder(tmp_path, capsys):
    (tmp_path / "there.md").touch()
    message = fails(capsys, "preferences", tmp_path / "missing.csv", "--output", tmp_path / "there.md")
    assert "there.md: is not a folder; expected a new or existing output folder" in message


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ('{"response": "x"}\n', [], "f1: no response has references"),
        ('{"text": 1}\n', [], "no column is clearly the response"),
        ('{"response": "", "reference": "x"}\n', [], "record 1 (context_id=1, system_id=mine): column 'response'"),
        (
            '{"response": "x", "reference": "y"}\n{"response": "x", "reference": [" "]}\n',
            [],
            "mine.jsonl, record 2: one of its references is ' '",
        ),
        ('{"response": "x", "reference": 7}\n', [], "record 1, column 'references': holds 7"),
        ('{"response": "x"\n', [], "line 1, column 17: not valid JSON"),
        ('{"response": "x", "reference": "y"}\n', ["--option", "txt=raw"], "Did you mean 'text'?"),
        ('{"response": "x", "reference": "y"}\n', ["--option", "raw"], "--option: option 'raw'; expected NAME=VALUE"),
        ('{"response": "x", "reference": "y"}\n', ["--output", "/nowhere.xyz"], "expected a name ending in .jsonl"),
    ],
)
def test_bad_input_to_score(tmp_path, capsys, content, options, message):
    path = tmp_path / "mine.jsonl"
    path.write_text(content)
    assert message in fails(capsys, "score", path, "--metric", "f1", *options)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("response,reference\nx,a,b\ny,d,e\n", "line 2: 3 cells; expected 2, as in the header"),
        ("response,reference,references\nx,a,b\n", "columns 'reference' and 'references'; expected one of the two"),
        (
            "response,reference\nx,  \n",
            "no metric could be run: f1: no response has references",
        ),
        ('response,references\nx,"[1, 2]"\n', "record 1: one of its references is 1; expected a text"),
        ("response,refernce\nx,y\n", "unknown column 'refernce'"),
        ("response,reference\n", "no records"),
    ],
)
def test_bad_csv_to_score(tmp_path, capsys, content, message):
    path = tmp_path / "mine.csv"
    path.write_text(content)
    assert message in fails(capsys, "score", path, "--metric", "f1")


def test_two_names_for_one_column_in_different_records(tmp_path, capsys):
    path = tmp_path / "mine.jsonl"
    path.write_text('{"response": "a", "references": ["a"]}\n{"response": "b", "reference": "b"}\n')
    assert "columns 'reference' and 'references'" in fails(capsys, "score", path, "--metric", "f1")


def test_a_place_that_cannot_be_written_to(tmp_path, capsys, responses):
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "full.csv").symlink_to("/dev/full")
    for place in (responses / "x.csv", tmp_path / "folder.csv", tmp_path / "full.csv"):
        fails(capsys, "score", responses, "--metric", "f1", "--output", place)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.csv", "full.csv", "mine.jsonl"], "no debris"


def ends(arguments):
    """Run a command, and return its exit status."""
    try:
        return main(list(map(str, arguments)))
    except SystemExit as ended:
        return ended.code


INTERRUPTS = {
    "in an import": "if name == 'pandas': os.kill(os.getpid(), signal.SIGINT)",
    "in an import that makes another error of it": """
        if name == 'pandas':
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except KeyboardInterrupt:
                pass
            raise ImportError('pandas is broken')""",
}


@pytest.mark.parametrize("place", INTERRUPTS.values(), ids=INTERRUPTS)
def test_ctrl_c_is_one_line_and_status_130(responses, place):
    script = f"""
import importlib.abc, os, signal, sys
class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        {place}
sys.meta_path.insert(0, Finder())
from comperdial.cli import main
assert "numpy" not in sys.modules, "what takes its time is imported where Ctrl-C is expected"
sys.exit(main())
"""
    command = ["score", responses, "--metric", "f1", "--output", responses.parent / "scores.csv"]
    done = subprocess.run([sys.executable, "-c", script, *command], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "comperdial: interrupted\n")


def test_an_error_that_no_check_foresaw_is_one_line_too(responses, monkeypatch, capsys):
    def broken(*arguments, **options):
        raise KeyError("nobody\nknew")

    monkeypatch.setattr("comperdial.api.score", broken)
    error = fails(capsys, "score", responses, "--metric", "f1")
    assert "unexpected KeyError" in error
    assert "--debug" in error
    with pytest.raises(KeyError):
        main(["--debug", "score", str(responses), "--metric", "f1"])


def test_ctrl_c_leaves_no_half_written_file(responses, monkeypatch, capsys):
    def interrupted(frame, path, **options):
        path.write_text("half a table")
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(pd.DataFrame, "to_csv", interrupted)
    output = responses.parent / "made" / "scores.csv"
    assert main(["score", str(responses), "--metric", "f1", "--output", str(output)]) == 130
    assert capsys.readouterr().err == "comperdial: interrupted\n"
    assert list(output.parent.iterdir()) == []


def test_names_keep_their_zeros(tmp_path, capsys):
    path, scores, ratings = tmp_path / "r.csv", tmp_path / "s.csv", tmp_path / "h.csv"
    path.write_text("context_id,system_id,response,reference\n01,007,a b c,b c\n1,1e5,x,y\n02,007,q,q\n")
    main(["score", str(path), "--metric", "f1", "--output", str(scores)])
    assert sorted(set(schema.read(scores, "scores")["item_id"])) == ["01", "02", "1"]
    ratings.write_text("context_id,system_id,rating\n01,007,3\n1,1e5,1\n02,007,5\n")
    assert main(["correlate", str(scores), "--ratings", str(ratings)]) == 0
    assert ",3,1.0,0," in capsys.readouterr().out


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("epsilon=abc", "'epsilon' of metric 'bleu' is 'abc'; expected a number"),
        ("epsilon=0", "a number above 0 and up to 1"),
        ("smoothing=method6", "expected one of 'method0'"),
        ("kind=f1", "unknown option of metric 'bleu': 'kind'"),
    ],
)
def test_wrong_options_on_the_command_line(capsys, responses, option, message):
    assert message in fails(capsys, "score", responses, "--metric", "bleu", "--option", option)


def test_options_on_the_command_line_have_their_types(capsys, responses):
    assert main(["score", str(responses), "--metric", "bleu", "--option", "epsilon=1e-12"]) == 0
    assert "epsilon:1e-12" in capsys.readouterr().out
    assert main(["score", str(responses), "--metric", "rouge", "--option", "stem=yes", "--option", "beta=2"]) == 0
    assert "stem:yes|beta:2|" in capsys.readouterr().out


def test_a_file_does_not_replace_a_challenge_s_tables(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.csv").write_text("context_id,system_id,response,rating\n1,a,hi,3\n1,b,yes,4\n")
    (tmp_path / "params.yaml").write_text("challenges: {mine: {dialogues: dialogues.json}}\n")
    assert "the data set 'mine' exists" in fails(capsys, "read", "mine.csv")
    assert main(["read", "mine.csv", "--name", "other"]) == 0
    assert {path.name for path in (tmp_path / "data/tables").iterdir()} == {"other"}


def test_names_that_do_not_exist(tmp_path, capsys, responses, monkeypatch):
    assert "Did you mean 'f1'" in fails(capsys, "score", responses, "--metric", "f2")
    catalogue = write_mirror(tmp_path, mini_items())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_text(f"catalogue: {catalogue}\n")
    assert "Did you mean 'usr_persona'" in fails(capsys, "read", "usr_person")
    assert "unknown source" in fails(capsys, "fetch", "mini_rating", "--catalogue", catalogue)
    assert "Did you mean 'responses'" in fails(capsys, "validate", responses, "--table", "response")


def test_debug_shows_the_traceback(responses):
    with pytest.raises(Exception, match="unknown metric"):
        main(["--debug", "score", str(responses), "--metric", "f2"])


def test_bad_ratings(tmp_path, capsys, responses):
    scores, ratings = tmp_path / "scores.parquet", tmp_path / "ratings.csv"
    main(["score", str(responses), "--metric", "f1", "--output", str(scores)])
    ratings.write_text("context_id,rating\n1,2\n")
    assert "no column 'system_id'" in fails(capsys, "correlate", scores, "--ratings", ratings)
    ratings.write_text("context_id,system_id,rating\n1,a,good\n")
    assert "record 1, column 'rating': holds 'good'; expected a number" in fails(
        capsys, "correlate", scores, "--ratings", ratings
    )


def test_a_scale_that_nobody_stated_is_said(tmp_path, capsys, caplog, responses):
    scores, ratings = tmp_path / "scores.csv", tmp_path / "ratings.csv"
    main(["score", str(responses), "--metric", "f1", "--output", str(scores)])
    ratings.write_text(RATINGS.replace("1,a,5", "1,a,55"))
    assert main(["correlate", str(scores), "--ratings", str(ratings)]) == 0
    assert "ratings.csv: no columns scale_min and scale_max: the scale is taken to be the range" in caplog.text
    assert "1 to 55" in caplog.text
    caplog.clear()
    header, *rows = RATINGS.split()
    ratings.write_text("\n".join([f"{header},scale_min,scale_max", *(f"{row},1,5" for row in rows)]) + "\n")
    assert main(["correlate", str(scores), "--ratings", str(ratings)]) == 0
    assert "scale" not in caplog.text


def test_scores_that_do_not_go_together(tmp_path, capsys, responses):
    ratings = tmp_path / "ratings.csv"
    ratings.write_text(RATINGS)
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    main(["score", str(responses), "--metric", "bleu", "--output", str(one)])
    main(["score", str(responses), "--metric", "bleu", "--option", "text=raw", "--output", str(two)])
    assert "the same key a second time" in fails(capsys, "correlate", one, one, "--ratings", ratings)
    error = fails(capsys, "correlate", one, two, "--ratings", ratings)
    assert "metric 'bleu' was made in 2 ways" in error
    assert "under another --name" in error
    ratings.write_text("context_id,system_id,rating\n1,a,5\n1,a,4\n")
    assert "expected a column `annotator_id`" in fails(capsys, "correlate", one, "--ratings", ratings)


def test_scores_without_ratings_are_counted(tmp_path, capsys, caplog, responses):
    scores, ratings = tmp_path / "scores.csv", tmp_path / "ratings.csv"
    main(["score", str(responses), "--metric", "f1", "--output", str(scores)])
    ratings.write_text("context_id,system_id,rating\n1,a,5\n1,b,1\n2,a,3\n")
    assert main(["correlate", str(scores), "--ratings", str(ratings)]) == 0
    assert "1 of 4 scores belong to no rated response" in caplog.text


def test_validate(tmp_path, capsys):
    path = tmp_path / "responses.csv"
    path.write_text("dataset,context_id,system_id,response\nd,1,a,hello\n")
    assert main(["validate", str(path)]) == 0
    assert "1 records of table 'responses', all valid" in capsys.readouterr().out
    path.write_text("dataset,context_id,system_id,response\nd,1,a,hello\nd,2,a,\n")
    assert "record 2 (context_id=2, system_id=a): column 'response' holds ''" in fails(capsys, "validate", path)


def test_fetch_read_score_a_dataset(tmp_path, monkeypatch, capsys):
    catalogue = write_mirror(tmp_path, mini_items())
    (tmp_path / "params.yaml").write_text(f"catalogue: {catalogue}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMPERDIAL_MIRROR", str(tmp_path / "mirror"))
    main(["sources", "--catalogue", str(catalogue)])
    assert capsys.readouterr().out.startswith("missing")
    assert main(["fetch", "usr_persona", "--catalogue", str(catalogue)]) == 0
    assert main(["sources", "--catalogue", str(catalogue)]) == 0
    assert capsys.readouterr().out.startswith("present")
    assert main(["read", "usr_persona"]) == 0
    assert main(["score", "data/tables/usr_persona", "--metric", "f1", "--output", "f1.parquet"]) == 0
    scores = schema.read("f1.parquet", "scores")
    assert "Original Ground Truth" not in set(scores["system_id"]), "a reference is not scored against itself"
    assert len(scores) == 6 * 4 * 3
    (tmp_path / "data/raw/invented/mini/data/ratings.json").write_text("changed")
    assert main(["sources", "--catalogue", str(catalogue)]) == 1
    assert capsys.readouterr().out.startswith("altered")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (json.dumps(mini_items()).encode()[:-500], "truncated"),
        (b'[{"context": "caf\xe9"}]', "is not UTF-8"),
        (b"[{}]", "KeyError ('responses') while reading"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_a_broken_file_writes_no_table(tmp_path, monkeypatch, capsys, content, message):
    catalogue = write_mirror_bytes(tmp_path, content)
    (tmp_path / "params.yaml").write_text(f"catalogue: {catalogue}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMPERDIAL_MIRROR", str(tmp_path / "mirror"))
    main(["fetch", "--catalogue", str(catalogue)])
    assert message in fails(capsys, "read", "usr_persona")
    assert not (tmp_path / "data/tables").exists()


def test_a_checksum_that_differs(tmp_path, monkeypatch, capsys):
    catalogue = write_mirror(tmp_path, mini_items())
    (tmp_path / "mirror/invented/mini/data/ratings.json").write_text("[]")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMPERDIAL_MIRROR", str(tmp_path / "mirror"))
    error = fails(capsys, "fetch", "mini_ratings", "--catalogue", catalogue)
    assert "ratings.json: source 'mini_ratings' has sha256" in error
    assert not list((tmp_path / "data/raw").rglob("*.json"))


@pytest.fixture
def tables(tmp_path, monkeypatch, capsys):
    """Return a folder of tables of the small invented set; vectors are kept nowhere unless a test says where."""
    catalogue = write_mirror(tmp_path, mini_items())
    (tmp_path / "params.yaml").write_text(f"catalogue: {catalogue}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMPERDIAL_MIRROR", str(tmp_path / "mirror"))
    # Set, so that what a command sets is undone after the test.
    monkeypatch.setenv("COMPERDIAL_EMBEDDINGS", "")
    main(["fetch", "usr_persona", "--catalogue", str(catalogue)])
    main(["read", "usr_persona"])
    capsys.readouterr()
    return tmp_path / "data/tables/usr_persona"


def test_a_folder_of_tables_gives_the_same_scores_in_every_format(tables, tmp_path, capsys, monkeypatch):
    """Parquet is written part by part, the others at once."""
    monkeypatch.setattr(scoring, "_PART", 5)
    command = ["score", str(tables), "--metric", "rouge", "--name", "mine"]
    frames = {}
    for suffix in ("parquet", "csv", "jsonl"):
        path = tmp_path / f"mine.{suffix}"
        assert main([*command, "--output", str(path)]) == 0
        frames[suffix] = schema.read(path, "scores")
    assert len(frames["parquet"]) == 6 * 4 * 9
    assert set(frames["parquet"]["metric"]) == {"mine"}
    for frame in frames.values():
        pd.testing.assert_frame_equal(frame, frames["parquet"])
    assert main(command) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(frames["parquet"])


def test_a_fault_in_a_folder_of_tables_keeps_the_earlier_scores(tables, tmp_path, capsys):
    out = tmp_path / "out/f1.parquet"
    command = ["score", tables, "--metric", "f1", "--output", out]
    assert main(list(map(str, command))) == 0
    before = out.read_bytes()
    path = tables / "responses.parquet"
    frame = pd.read_parquet(path)
    frame.assign(context_id=frame["context_id"].replace(frame["context_id"].iloc[-1], "far")).to_parquet(path)
    assert "5 responses name context_id 'far', which is in no table" in fails(capsys, *command)
    path.write_bytes(b"nothing")
    assert "responses.parquet: not a readable Parquet file; expected table 'responses'" in fails(capsys, *command)
    assert [(file.name, file.read_bytes()) for file in out.parent.iterdir()] == [("f1.parquet", before)]


def vectors_in(folder):
    return {path: path.read_bytes() for path in folder.glob("*.sqlite")}


def test_what_one_command_encoded_the_next_one_finds(tables, tmp_path, caplog, monkeypatch):
    model = tinymodels.bert(tmp_path / "tiny")
    # Some of the responses are longer, and all contexts.
    options = {"model": model, "max_length": 40}
    metrics = [{"kind": "bertscore", "layer": 2, **options}, {"kind": "grounded_cosine", **options}]
    kept = tmp_path / "kept"

    def score(metric, *more):
        """Return the scores and how many texts were encoded."""
        # A process of its own would not remember what an earlier command was given, or read.
        monkeypatch.setenv("COMPERDIAL_EMBEDDINGS", "")
        encoder_module._open.clear()
        caplog.clear()
        chosen = {k: v for k, v in metric.items() if k != "kind"}
        command = ["score", str(tables), "--metric", metric["kind"], "--options", json.dumps(chosen), *more]
        assert main([*command, "--output", str(tmp_path / "scores.parquet")]) == 0
        encoded = sum(int(n) for n in re.findall(r"(\d+) texts encoded", caplog.text))
        return schema.read(tmp_path / "scores.parquet", "scores"), encoded

    anew = [score(metric) for metric in metrics]
    assert not kept.exists(), "without --embeddings, vectors are kept nowhere"
    assert score(metrics[0], "--embeddings", str(kept))[1] == anew[0][1] > 0
    assert score(metrics[1], "--embeddings", str(kept))[1] == anew[1][1] > 0, "normalised responses and raw ones"
    of_both = vectors_in(kept)
    assert of_both
    monkeypatch.setattr(Vectors, "_encode", None)
    for metric, (expected, _) in zip(metrics, anew, strict=True):
        table, encoded = score(metric, "--embeddings", str(kept))
        pd.testing.assert_frame_equal(table, expected, rtol=1e-5)
        assert encoded == 0
        assert (table["cut"] > 0).any()
        assert (table["cut"] == 0).any() or metric["kind"] == "grounded_cosine"
    assert vectors_in(kept) == of_both


def test_cuts_reach_the_table_of_correlations(tables, tmp_path):
    scores, ratings = tmp_path / "s.parquet", tables / "ratings.parquet"
    options = json.dumps({"model": tinymodels.bert(tmp_path / "tiny"), "max_length": 40, "layer": 2})
    assert main(["score", str(tables), "--metric", "bertscore", "--options", options, "--output", str(scores)]) == 0
    table = schema.read(scores, "scores").query("output == 'f1'")
    assert 0 < (table["cut"] > 0).sum() < len(table)
    out = tmp_path / "c.parquet"
    assert main(["correlate", str(scores), "--ratings", str(ratings), "--output", str(out)]) == 0
    assert set(schema.read(out, "correlations")["cut"]) == {(table["cut"] > 0).sum()}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("table nowhere systems", "unknown study 'nowhere'"),
        ("table dataset system --dataset mine", "Did you mean 'systems'?"),
        ("figure dataset heatmp --dataset mine", "Did you mean 'heatmap'?"),
        ("table dataset systems", "no --dataset"),
        ("table dataset alpha --dataset mine", "results/mine/about.json: no such file"),
    ],
)
def test_what_cannot_be_made_is_one_message(tmp_path, capsys, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in fails(capsys, *arguments.split(" "), "--output", "x")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layr": 6}, "Did you mean 'layer'?"),
        ({"model": "all-MiniLM"}, "Did you mean 'all-MiniLM-L6-v2'?"),
        ({"model": MINILM, "layer": 7}, "all-MiniLM-L6-v2: layer 7; expected 0 to 6"),
        ({"model": "./tiny"}, "model folder './tiny' is not present"),
    ],
)
def test_what_cannot_be_encoded_is_one_message(tables, tmp_path, capsys, monkeypatch, options, message):
    monkeypatch.setenv("COMPERDIAL_EMBEDDINGS", "")
    kept = tmp_path / "kept"
    command = ["score", tables, "--metric", "bertscore", "--options", json.dumps(options), "--embeddings", kept]
    assert message in fails(capsys, *command, "--output", tmp_path / "scores.parquet")
    assert not kept.exists()
    assert not (tmp_path / "scores.parquet").exists()


def test_metrics_are_listed(capsys):
    assert main(["metrics"]) == 0
    assert "bleu: bleu-4, bleu-3, bleu-2, bleu-1" in capsys.readouterr().out


def test_a_closed_pipe_is_no_error(responses):
    command = f"{sys.executable} -m comperdial.cli score {responses} --metric rouge | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_starting_up_loads_nothing_heavy():
    code = (
        "import sys, comperdial.cli; print([m for m in ('pandas', 'nltk', 'matplotlib', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


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
    assert ends(arguments) == 2
    assert re.search(message, capsys.readouterr().err, re.DOTALL)
