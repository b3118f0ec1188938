import json
import logging

import pandas as pd
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from comperdial import schema
from comperdial.cli import main
from comperdial.core.errors import ComperdialError, SchemaError
from comperdial.core.files import sha256
from comperdial.data import readers
from comperdial.data.catalogue import load_catalogue
from comperdial.data.recorded import import_scores, origin, read_entries, signature
from comperdial.metrics import create, scoring
from comperdial.selection import Selection
from minidata import mini_items, write_mirror

REFERENCE = "Original Ground Truth"
OURS = {
    "naturalness": "Natural",
    "coherence": "Maintains Context",
    "engagingness": "Engaging",
    "groundedness": "Uses Knowledge",
    "understandability": "Understandable",
    "overall": "Overall",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return tables of the invented set: six contexts, four systems and the references."""
    root = tmp_path_factory.mktemp("mini")
    path = root / "ratings.json"
    path.write_text(json.dumps(mini_items()))
    for name, frame in readers.read("usr", "mini", {"ratings": path}).items():
        schema.write(root / f"{name}.parquet", frame, name)
    return root


def unieval_items():
    """Return the invented set as UniEval's file has it; each score says of which item and dimension it is."""
    items = []
    for item in mini_items():
        for answer in item["responses"]:
            number = len(items)
            items.append(
                {
                    "source": item["context"],
                    "system_id": answer["model"],
                    "system_output": answer["response"],
                    "context": item["fact"],
                    "predict_scores": {name: number + rank / 10 for rank, name in enumerate(OURS)},
                }
            )
    return items


def take(folder, content, format="unieval", suffix="json", **options):
    path = folder / f"scores.{suffix}"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    given = {"format": format, "origin": path.name, "about": "a test", "ratings": folder / "ratings.parquet"}
    return import_scores("theirs", folder, path, **given | options)


def values(frame):
    return frame.set_index(["item_id", "system_id", "output"])["value"].sort_index()


def test_the_signature_says_where_scores_come_from(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("a\n")
    made = signature(path, format="table", origin="own/repo@abcdef0/scores.csv", about="us, with care")
    digits = sha256(path)[:12]
    assert made == f"recorded|format:table|from:own/repo@abcdef0/scores.csv|sha256:{digits}|about:us, with care|v:1"


@pytest.mark.parametrize("options", [{"about": "a|b"}, {"about": " "}, {"about": "a\nb"}, {"origin": "a|b.csv"}])
def test_what_would_break_a_signature_is_refused(tmp_path, options):
    path = tmp_path / "scores.csv"
    path.write_text("a\n")
    with pytest.raises(ComperdialError, match=r"of recorded scores is .* expected one line of text without a bar"):
        signature(path, **{"format": "table", "origin": "a.csv", "about": "us"} | options)


def test_unieval_s_predictions_become_scores(folder, caplog):
    caplog.set_level(logging.INFO, "comperdial")
    found = take(folder, unieval_items())
    assert len(found) == 6 * 4 * 6
    assert REFERENCE not in set(found["system_id"])
    assert set(found["metric"]) == {"theirs"}
    assert set(found["cut"]) == {0}
    # The eighth item is the third response, Dull's, to the second context.
    scored = values(found)["mini-001", "Dull"]
    assert scored.to_dict() == pytest.approx({name: 7 + rank / 10 for rank, name in enumerate(OURS)}, abs=1e-6)
    assert "scores of 24 of the 24 evaluated responses of mini, 24 of them rated; left out: 6" in caplog.text


@settings(max_examples=15)
@given(order=st.permutations(range(30)))
def test_the_order_of_items_does_not_count(folder, order):
    items = unieval_items()
    expected = values(take(folder, items))
    assert values(take(folder, [items[place] for place in order])).equals(expected)


def test_padding_and_line_ends_do_not_count(folder):
    items = unieval_items()
    padded = [
        item
        | {
            "source": "\n".join(f" {line} " for line in item["source"].strip().split("\n")) + " \n\n",
            "system_output": f"  {item['system_output'].strip()} ",
        }
        for item in items
    ]
    assert values(take(folder, padded)).equals(values(take(folder, items)))


def test_items_that_are_not_there_leave_responses_without_a_score(folder):
    found = take(folder, unieval_items()[:10])
    assert {(c, s) for c, s, _ in values(found).index} == {
        (f"mini-00{number}", system)
        for number in (0, 1)
        for system in ("Copier", "Dull", "Wanderer", "New Human Generated")
    }


def altered(number, **fields):
    items = unieval_items()
    items[number] |= fields
    return items


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ({}, "scores.json: no list of items; expected a JSON list"),
        ([7], "item 0: holds int; expected a JSON object"),
        (
            altered(3, system_output="not said"),
            "item 3: no response of 'mini' by 'Wanderer' with this dialogue and text",
        ),
        (altered(3, source="hello ?\n"), "item 3: no response .* The dialogue ends in 'hello \\?'"),
        (altered(3, system_id="Dull"), "item 3: no response of 'mini' by 'Dull'"),
        (altered(3, system_id=4), "item 3: field 'system_id' holds 4; expected a str"),
        (
            [*unieval_items(), unieval_items()[3]],
            "item 30: context 'mini-000', system 'Wanderer': output 'naturalness' was scored in item 3 already",
        ),
        (altered(3, predict_scores=dict.fromkeys(OURS, "2")), "item 3: the score is '2'; expected a finite number"),
        (altered(3, predict_scores=dict.fromkeys(OURS, True)), "item 3: the score is True"),
        ([item for item in unieval_items() if item["system_id"] == REFERENCE], "no score of a response that is eval"),
    ],
)
def test_wrong_items_are_named(folder, items, message):
    with pytest.raises(ComperdialError, match=message):
        take(folder, items)


def test_a_text_that_was_said_twice_is_not_guessed_at(tmp_path):
    """Two contexts with the same dialogue, and a system that said the same in both."""
    twice = mini_items()[:2]
    twice[1]["context"] = twice[0]["context"]
    path = tmp_path / "ratings.json"
    path.write_text(json.dumps(twice))
    for name, frame in readers.read("usr", "mini", {"ratings": path}).items():
        schema.write(tmp_path / f"{name}.parquet", frame, name)
    with pytest.raises(ComperdialError, match="item 2: 2 responses of 'mini' by 'Dull' with this dialogue and text"):
        take(tmp_path, unieval_items()[:5])


TABLE = pd.DataFrame(
    {
        "context_id": ["mini-000", "mini-001", "mini-001", "mini-002"],
        "system_id": ["Dull", "Dull", REFERENCE, "Copier"],
        "value": [0.5, 0.25, 1.0, float("nan")],
    }
)


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_a_table_of_scores_in_every_kind_of_file(folder, tmp_path, suffix, caplog):
    caplog.set_level(logging.INFO, "comperdial")
    path = tmp_path / f"scores.{suffix}"
    write = {"csv": TABLE.to_csv, "parquet": TABLE.to_parquet, "jsonl": TABLE.to_json}[suffix]
    write(path, **({"orient": "records", "lines": True} if suffix == "jsonl" else {"index": False}))
    found = import_scores("theirs", folder, path, format="table", origin=path.name, about="us")
    assert values(found).to_dict() == {("mini-000", "Dull", "score"): 0.5, ("mini-001", "Dull", "score"): 0.25}
    assert (
        "scores of 2 of the 24 evaluated responses of mini; left out: 1 responses of references, 1 empty" in caplog.text
    )


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_what_comperdial_score_writes_is_a_table_of_scores(folder, tmp_path, suffix):
    scores = scoring.score_tables(create("bleu"), "bleu", folder)
    scores.loc[3, "cut"] = 12
    path = tmp_path / f"scores.{suffix}"
    schema.write(path, scores, "scores")
    found = import_scores("theirs", folder, path, format="table", origin=path.name, about="us")
    assert values(found).equals(values(scores))
    assert found["cut"].sum() == 12
    assert set(found["metric"]) == {"theirs"}
    assert all(s.startswith(f"recorded|format:table|from:scores.{suffix}|") for s in found["signature"])


HEAD = "context_id,system_id,value"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("context_id,value\nmini-000,1\n", "no column 'system_id'; expected at least context_id, system_id, value"),
        ("system_id,value\nDull,1\n", "no column 'context_id'"),
        (
            "context_id,item_id,system_id,value\na,a,b,1\n",
            "columns 'context_id' and 'item_id'; expected one of context_id, dialogue_id, item_id",
        ),
        ("context_id,system_id,valu\nmini-000,Dull,1\n", "unknown column 'valu'.* Did you mean 'value'"),
        (f"{HEAD}\nmini-000,Dull,1\nmini-9,Dull,1\n", "record 2: context 'mini-9', system 'Dull': no such response"),
        (f"{HEAD}\nmini-000,dull,1\n", "record 1: context 'mini-000', system 'dull': no such response; expected names"),
        (f"{HEAD}\nmini-000,Dull,good\n", "record 1: the score is 'good'; expected a finite number"),
        (f"{HEAD}\nmini-000,Dull,inf\n", "record 1: the score is inf; expected a finite number"),
        (f"{HEAD}\nmini-000,Dull,1\nmini-000,Dull,2\n", "record 2: .* output 'score' was scored in record 1 already"),
        (f"{HEAD},dataset\nmini-000,Dull,1,maxi\n", "record 1: column 'dataset' holds 'maxi'; expected 'mini', or no"),
        (f"{HEAD},level\nmini-000,Dull,1,dialogue\n", "record 1: column 'level' holds 'dialogue'; expected 'turn'"),
        (f"{HEAD},level\nmini-000,Dull,1,system\n", "record 1: column 'level' holds 'system'; expected 'turn'"),
        (f"{HEAD},metric\nmini-000,Dull,1,a\nmini-001,Dull,1,b\n", "column 'metric' holds 'a', 'b'; expected the sc"),
        (f"{HEAD},cut\nmini-000,Dull,1,-1\n", "column 'cut' holds -1; expected a whole number of 0 or more"),
        (f"{HEAD}\nmini-000,Dull,\n", "no score of a response that is evaluated; expected scores of 'mini'"),
        (f"{HEAD}\n", "no score of a response that is evaluated"),
    ],
)
def test_wrong_tables_are_named(folder, content, message):
    with pytest.raises(ComperdialError, match=message):
        take(folder, content, format="table", suffix="csv")


@pytest.fixture
def talks(folder, tmp_path):
    """Return the tables of the same set, as three dialogues of two contexts each, rated as dialogues too."""
    for name in ("contexts", "responses", "systems", "ratings"):
        frame = schema.read(folder / f"{name}.parquet", name)
        if name == "contexts":
            frame["dialogue_id"] = [f"talk-{number // 2}" for number in range(len(frame))]
        schema.write(tmp_path / f"{name}.parquet", frame, name)
    rated = schema.read(folder / "ratings.parquet", "ratings")
    whole = rated[rated["item_id"] == "mini-000"].assign(level="dialogue", item_id="talk-0")
    schema.write(tmp_path / "ratings.parquet", pd.concat([rated, whole]), "ratings")
    return tmp_path


def test_face_s_scores_of_turns_and_dialogues(tmp_path):
    whole = {"understanding": 1, "task_completion": 1, "interest_arousal": 1, "efficiency": 1, "dialogue_overall": 3,
             "preference_elicitation": 1, "explanation": 1}  # fmt: skip
    turns = [
        {"turn_ind": 0, "role": "USER", "utterance": "hi"},
        {"turn_ind": 1, "role": "ASST", "utterance": "yo", "turn_level_aggregated": {"relevance": 1}},
    ]
    names = [f"{system}_{session}" for session in ("s", "t") for system in ("kb", "gpt")]
    made = [{"conv_id": name, "dialogue": turns, "dial_level_aggregated": whole} for name in names]
    path = tmp_path / "dialogues.json"
    path.write_text(json.dumps(made))
    for name, frame in readers.read("face", "mini", {"dialogues": path}).items():
        schema.write(tmp_path / f"{name}.parquet", frame, name)
    run = [{"conv_id": name, "turns": [{"turn_ind": 1, "turn_level_pred": {"relevance": n / 4}}],
            "dial_level_pred": {"dialogue_overall": float(n)} if n else {}} for n, name in enumerate(names)]  # fmt: skip
    found = take(tmp_path, run, format="face")
    assert values(found[found["level"] == "dialogue"]).to_dict() == {
        ("mini-gpt-001", "gpt", "dialogue_overall"): 1,
        ("mini-gpt-002", "gpt", "dialogue_overall"): 3,
        ("mini-kb-002", "kb", "dialogue_overall"): 2,
    }
    assert values(found)["mini-kb-002-01", "kb", "relevance"] == 0.5
    with pytest.raises(SchemaError, match=r"3 dialogues, .*'mini'.*expected its 4, in the same order"):
        take(tmp_path, run[1:], format="face")
    with pytest.raises(SchemaError, match=r"scores.json, item 2: no field 'dial_level_pred'"):
        take(tmp_path, [*run[:2], {"conv_id": "kb_t"}, run[3]], format="face")


@pytest.mark.parametrize(
    "content",
    [
        f"dialogue_id,system_id,value\ntalk-0,Dull,0.5\ntalk-2,Copier,0.25\ntalk-2,{REFERENCE},1\n",
        "item_id,level,system_id,value\ntalk-0,dialogue,Dull,0.5\ntalk-2,dialogue,Copier,0.25\n",
    ],
)
def test_scores_of_dialogues(talks, content, caplog):
    caplog.set_level(logging.INFO, "comperdial")
    found = take(talks, content, format="table", suffix="csv")
    assert set(found["level"]) == {"dialogue"}
    assert values(found).to_dict() == {("talk-0", "Dull", "score"): 0.5, ("talk-2", "Copier", "score"): 0.25}
    assert "scores of 2 of the 12 evaluated dialogues of mini, 1 of them rated" in caplog.text


def test_scores_of_dialogues_that_nobody_rated_are_taken_with_a_warning(talks, caplog):
    content = "dialogue_id,system_id,value\ntalk-1,Dull,1\n"
    take(talks, content, format="table", suffix="csv")
    assert "none of the 1 scored dialogues was rated" in caplog.text


def test_one_file_holds_scores_of_turns_and_of_dialogues(talks):
    content = "level,item_id,system_id,output,value\nturn,mini-000,Dull,fit,0.5\ndialogue,talk-0,Dull,flow,0.25\n"
    found = take(talks, content, format="table", suffix="csv")
    assert found.set_index("level")[["item_id", "output"]].T.to_dict("list") == {
        "turn": ["mini-000", "fit"],
        "dialogue": ["talk-0", "flow"],
    }


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "dialogue_id,system_id,value\nmini-000,Dull,1\n",
            "record 1: dialogue 'mini-000', system 'Dull': no such",
        ),
        (
            "dialogue_id,system_id,value\ntalk-0,dull,1\n",
            "record 1: dialogue 'talk-0', system 'dull': no such",
        ),
        (
            "dialogue_id,system_id,value\ntalk-0,Dull,1\ntalk-0,Dull,2\n",
            "record 2: dialogue 'talk-0', system 'Dull': output 'score' was scored in record 1 already",
        ),
        (
            "dialogue_id,level,system_id,value\ntalk-0,turn,Dull,1\n",
            "record 1: column 'level' holds 'turn'; expected 'dialogue', or no such column",
        ),
        (
            "item_id,level,system_id,value\nmini-000,turn,Dull,1\ntalk-0,whole,Dull,1\n",
            "record 2: column 'level' holds 'whole'; expected 'turn' or 'dialogue'",
        ),
        (
            "item_id,level,system_id,value\nmini-000,turn,Dull,1\ntalk-0,dialogue,Dull,1\n",
            "output 'score' is of turns and of dialogues; expected one level for each output",
        ),
    ],
)
def test_wrong_scores_of_dialogues_are_named(talks, content, message):
    with pytest.raises(ComperdialError, match=message):
        take(talks, content, format="table", suffix="csv")


@pytest.fixture
def catalogue(tmp_path):
    path = write_mirror(tmp_path, mini_items())
    return load_catalogue(path)


def test_entries_of_the_configuration(catalogue):
    section = {
        "a": {"dataset": "demo", "format": "table", "path": "some/folder/scores.csv", "about": "us"},
        "b": {"dataset": "usr_persona", "format": "unieval", "source": "mini_ratings", "about": "them"},
    }
    known = {"taken": {"f1", "bleu"}, "datasets": ["demo", *catalogue.datasets], "catalogue": catalogue}
    found = read_entries(section, **known)
    assert {name: entry.origin for name, entry in found.items()} == {
        "a": "scores.csv",
        "b": "invented/mini@0000000/ratings.json",
    }
    assert (found["a"].dataset, found["b"].format) == ("demo", "unieval")
    assert read_entries(None, **known) == {}


def test_a_file_from_a_mirror_of_no_known_commit_has_none_in_its_origin(tmp_path):
    path = write_mirror(tmp_path, mini_items())
    content = yaml.safe_load(path.read_text())
    entry = content["files"]["mini_ratings"]
    pins = {
        "repository": entry["repository"],
        "commit": None,
        "sha256": entry.pop("sha256"),
        "bytes": entry.pop("bytes"),
    }
    del entry["commit"]
    path.with_name("sources.lock.yaml").write_text(yaml.safe_dump({"mini_ratings": pins}))
    entry |= {"revision": "main", "url": "https://example.invalid/{revision}/ratings.json"}
    path.with_name("other.yaml").write_text(yaml.safe_dump(content))
    assert origin(load_catalogue(path.with_name("other.yaml")).file("mini_ratings")) == "invented/mini/ratings.json"


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        (
            "f1",
            {},
            r"params.yaml, recorded.f1: 'f1' is the name of a metric that is computed here.* Call it f1_recorded",
        ),
        ("m", {"dataset": "dem"}, "params.yaml, recorded.m: unknown dataset 'dem'.* Did you mean 'demo'"),
        ("m", {"format": "tabel"}, "params.yaml, recorded.m: unknown format 'tabel'.* Did you mean 'table'"),
        ("m", {"source": "mini_rating"}, "unknown source 'mini_rating'.* Did you mean 'mini_ratings'"),
    ],
)
def test_wrong_entries(catalogue, name, changes, message):
    section = {name: {"dataset": "demo", "format": "table", "path": "scores.csv", "about": "us"} | changes}
    with pytest.raises(ComperdialError, match=message):
        read_entries(section, taken={"f1"}, datasets=["demo"], catalogue=catalogue)


def test_the_command_takes_a_local_file_without_naming_its_place(folder, tmp_path):
    scores, output = tmp_path / "scores.csv", tmp_path / "out.parquet"
    TABLE.to_csv(scores, index=False)
    given = [
        "recorded",
        folder,
        "--name",
        "mine",
        "--format",
        "table",
        "--path",
        scores,
        "--about",
        "us",
        "--output",
        output,
    ]
    assert main([str(part) for part in given]) == 0
    found = schema.read(output, "scores")
    assert set(found["signature"]) == {
        f"recorded|format:table|from:scores.csv|sha256:{sha256(scores)[:12]}|about:us|v:1"
    }
    assert str(tmp_path) not in "".join(found["signature"])


def test_the_command_takes_a_fetched_file_and_no_other(folder, mini_mirror, monkeypatch, capsys):
    content = json.dumps(unieval_items())
    path = mini_mirror / "mirror/invented/mini/data/ratings.json"
    catalogue = write_mirror(mini_mirror, unieval_items())
    assert path.read_text() == content
    monkeypatch.chdir(mini_mirror)
    monkeypatch.setenv("COMPERDIAL_MIRROR", "mirror")
    given = [
        "recorded",
        str(folder),
        "--name",
        "m",
        "--format",
        "unieval",
        "--source",
        "mini_ratings",
        "--about",
        "them",
    ]
    given += ["--catalogue", str(catalogue), "--ratings", str(folder / "ratings.parquet"), "--output", "out.csv"]
    assert main(given) == 0
    found = schema.read("out.csv", "scores")
    assert {s.split("|")[2] for s in found["signature"]} == {"from:invented/mini@0000000/ratings.json"}
    (mini_mirror / "data/raw/invented/mini/data/ratings.json").write_text(content + " ")
    assert main(given) == 1
    assert "source 'mini_ratings' is altered" in capsys.readouterr().err


def test_scores_of_a_data_set_of_ones_own(root, tmp_path, monkeypatch):
    """As the workflow makes them: an entry of `recorded` may name one of `own_data`."""
    monkeypatch.chdir(tmp_path)
    for name in ("src", "notebooks"):
        (tmp_path / name).symlink_to(root / name)
    (tmp_path / "data").mkdir()
    for name in ("sources.yaml", "prices.yaml", "demo", "personas"):
        (tmp_path / "data" / name).symlink_to(root / "data" / name)
    rows = [("c1", "1.0", 3, 0.5), ("c1", "b", 2, 0.25), ("c2", "1.0", 1, 1), ("c2", "b", 5, "")]
    (tmp_path / "mine.csv").write_text(
        "context_id,system,response,rating\n" + "".join(f"{c},{s},tea {r},{r}\n" for c, s, r, _ in rows)
    )
    (tmp_path / "theirs.csv").write_text(
        "context_id,system_id,value\n" + "".join(f"{c},{s.partition('.')[0]},{v}\n" for c, s, _, v in rows)
    )
    config = yaml.safe_load((root / "params.yaml").read_text())
    config |= {
        "datasets": ["mine"],
        "own_data": {"mine": {"file": "mine.csv"}},
    }
    config["recorded"]["theirs"] = {"dataset": "mine", "format": "table", "path": "theirs.csv", "about": "a program"}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(config))
    assert main(["read", "mine"]) == 0
    command = ["recorded", "data/tables/mine", "--name", "theirs", "--format", "table", "--path", "theirs.csv"]
    command += ["--about", "a program", "--ratings", "data/tables/mine/ratings.parquet"]
    assert main([*command, "--output", "theirs.parquet"]) == 0
    scores = schema.read("theirs.parquet", "scores")
    assert scores[["item_id", "system_id", "value"]].to_numpy().tolist() == [
        ["c1", "1", 0.5],
        ["c1", "b", 0.25],
        ["c2", "1", 1.0],
    ]
    assert "theirs" in Selection.read().scorers("mine")
