"""Scores and answers that others recorded, on an invented set: by dialogue and text, by name, and by line."""

import json
import logging

import pandas as pd
import pytest

from comperdial import schema
from comperdial.cli import main
from comperdial.core.errors import ComperdialError, SchemaError, UnknownNameError
from comperdial.core.files import sha256
from comperdial.data import readers
from comperdial.data.catalogue import load_catalogue
from comperdial.data.recorded import Rated, import_scores, read_entries
from comperdial.judges.parsing import PARSER_VERSION
from comperdial.judges.recorded import Recorded, signature
from comperdial.metrics import create, scoring
from minidata import mini_items, write_mirror

REFERENCE = "Original Ground Truth"
OURS = {
    "naturalness": "Natural", "coherence": "Maintains Context", "engagingness": "Engaging",
    "groundedness": "Uses Knowledge", "understandability": "Understandable", "overall": "Overall",
}  # fmt: skip


def write_tables(folder, items):
    """Write the tables of items in USR's format; return the folder."""
    path = folder / "ratings.json"
    path.write_text(json.dumps(items))
    for name, frame in readers.read("usr", "mini", {"ratings": path}).items():
        schema.write(folder / f"{name}.parquet", frame, name)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return tables of the invented set: six contexts, four systems and the references."""
    return write_tables(tmp_path_factory.mktemp("mini"), mini_items())


def unieval_items():
    """Return the invented set as UniEval's file has it; each score says of which item and dimension it is."""
    items = []
    for item in mini_items():
        for answer in item["responses"]:
            scores = {name: len(items) + rank / 10 for rank, name in enumerate(OURS)}
            texts = {"source": item["context"], "system_output": answer["response"], "context": item["fact"]}
            items.append(texts | {"system_id": answer["model"], "predict_scores": scores})
    return items


def take(folder, content, format="unieval", suffix="json", **options):
    path = folder / f"scores.{suffix}"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    given = {"format": format, "origin": path.name, "about": "a test", "ratings": folder / "ratings.parquet"}
    return import_scores("theirs", folder, path, **given | options)


def values(frame):
    return frame.set_index(["item_id", "system_id", "output"])["value"].sort_index()


# ---- UniEval's predictions, by dialogue and text


def test_predictions_become_scores_in_any_order_and_padding(folder, caplog):
    caplog.set_level(logging.INFO, "comperdial")
    items = unieval_items()
    scores = take(folder, items)
    assert len(scores) == 6 * 4 * 6
    assert REFERENCE not in set(scores["system_id"])
    # The eighth item is the third response, Dull's, to the second context.
    expected = {name: 7 + rank / 10 for rank, name in enumerate(OURS)}
    assert values(scores)["mini-001", "Dull"].to_dict() == pytest.approx(expected, abs=1e-6)
    assert "scores of 24 of the 24 evaluated responses of mini, 24 of them rated; left out: 6" in caplog.text
    for item in items:
        item["source"] = "\n".join(f" {line} " for line in item["source"].strip().split("\n")) + " \n\n"
        item["system_output"] = f"  {item['system_output'].strip()} "
    assert values(take(folder, items[::-1])).equals(values(scores))
    # Items that are missing leave responses without a score.
    assert {item for item, *_ in values(take(folder, unieval_items()[:10])).index} == {"mini-000", "mini-001"}


# ---- Tables of scores, by name


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_comperdial_score_output_is_read_as_scores(folder, tmp_path, suffix):
    scores = scoring.score_tables(create("bleu"), "bleu", folder)
    scores.loc[3, "cut"] = 12
    path = tmp_path / f"scores.{suffix}"
    schema.write(path, scores, "scores")
    taken = import_scores("theirs", folder, path, format="table", origin="o/r@abcdef0/a.csv", about="us, with care")
    assert values(taken).equals(values(scores))
    assert taken["cut"].sum() == 12
    assert set(taken["metric"]) == {"theirs"}
    expected = f"recorded|format:table|from:o/r@abcdef0/a.csv|sha256:{sha256(path)[:12]}|about:us, with care|v:1"
    assert set(taken["signature"]) == {expected}
    with pytest.raises(ComperdialError, match=r"of recorded scores is .* expected one line of text without a bar"):
        import_scores("theirs", folder, path, format="table", origin="a.csv", about="a|b")


@pytest.fixture
def talks(folder, tmp_path):
    """Return the tables of the same set, as three dialogues of two contexts each, rated as dialogues too."""
    tables = {name: schema.read(folder / f"{name}.parquet", name) for name in ("contexts", "responses", "systems")}
    tables["contexts"]["dialogue_id"] = [f"talk-{number // 2}" for number in range(len(tables["contexts"]))]
    rated = schema.read(folder / "ratings.parquet", "ratings")
    whole = rated[rated["item_id"] == "mini-000"].assign(level="dialogue", item_id="talk-0")
    for name, frame in (tables | {"ratings": pd.concat([rated, whole])}).items():
        schema.write(tmp_path / f"{name}.parquet", frame, name)
    return tmp_path


@pytest.mark.parametrize(
    ("content", "expected", "log"),
    [
        (f"context_id,system_id,value\nmini-000,Dull,0.5\nmini-001,{REFERENCE},1\nmini-002,Copier,\n",
         {("turn", "mini-000", "Dull", "score"): 0.5},
         "scores of 1 of the 24 evaluated responses of mini, 1 of them rated; left out: 1 responses of references"),
        ("level,item_id,system_id,output,value\nturn,mini-000,Dull,fit,0.5\ndialogue,talk-0,Dull,flow,0.25\n",
         {("turn", "mini-000", "Dull", "fit"): 0.5, ("dialogue", "talk-0", "Dull", "flow"): 0.25},
         "scores of 1 of the 12 evaluated dialogues of mini, 1 of them rated"),
    ],
)  # fmt: skip
def test_turn_and_dialogue_scores(talks, caplog, content, expected, log):
    caplog.set_level(logging.INFO, "comperdial")
    scores = take(talks, content, "table", "csv").set_index(["level", "item_id", "system_id", "output"])["value"]
    assert scores.to_dict() == expected
    assert log in caplog.text


def altered(**fields):
    """Return items of which the fourth is changed."""
    items = unieval_items()
    return [*items[:3], items[3] | fields, *items[4:]]


HEAD = "context_id,system_id,value"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (altered(system_output="else"), "item 3: no response of 'mini' by 'Wanderer' with this dialogue and text"),
        (altered(source="hello ?\n"), "item 3: no response .* The dialogue ends in 'hello \\?'"),
        (altered(predict_scores=dict.fromkeys(OURS, "2")), "item 3: the score is '2'; expected a finite number"),
        ([*unieval_items(), unieval_items()[3]], "item 30: .*: output 'naturalness' was scored in item 3 already"),
        ("context_id,value\nmini-000,1\n", "no column 'system_id'; expected at least context_id, system_id, value"),
        ("context_id,system_id,valu\nmini-000,Dull,1\n", "unknown column 'valu'.* Did you mean 'value'"),
        (f"{HEAD}\nmini-000,Dull,1\nmini-9,Dull,1\n", "record 2: context 'mini-9', system 'Dull': no such response"),
        (
            "item_id,level,system_id,value\nmini-000,turn,Dull,1\ntalk-0,dialogue,Dull,1\n",
            "'score' is of turns and of dia",
        ),
    ],
)
def test_invalid_scores_are_reported(talks, content, message):
    how = ("table", "csv") if isinstance(content, str) else ()
    with pytest.raises(ComperdialError, match=message):
        take(talks, content, *how)


def test_repeated_text_is_not_matched_by_guess(tmp_path):
    twice = mini_items()[:2]
    twice[1]["context"] = twice[0]["context"]
    with pytest.raises(ComperdialError, match="item 2: 2 responses of 'mini' by 'Dull' with this dialogue and text"):
        take(write_tables(tmp_path, twice), unieval_items()[:5])


def test_face_turn_and_dialogue_scores(tmp_path):
    names = (
        "understanding task_completion interest_arousal efficiency dialogue_overall preference_elicitation explanation"
    )
    turns = [
        {"turn_ind": 0, "role": "USER", "utterance": "hi"},
        {"turn_ind": 1, "role": "ASST", "utterance": "yo", "turn_level_aggregated": {"relevance": 1}},
    ]
    same = {"dialogue": turns, "dial_level_aggregated": dict.fromkeys(names.split(), 1)}
    talks = [f"{system}_{session}" for session in ("s", "t") for system in ("kb", "gpt")]
    path = tmp_path / "dialogues.json"
    path.write_text(json.dumps([{"conv_id": name, **same} for name in talks]))
    for name, frame in readers.read("face", "mini", {"dialogues": path}).items():
        schema.write(tmp_path / f"{name}.parquet", frame, name)
    run = [
        {"conv_id": name, "turns": [{"turn_ind": 1, "turn_level_pred": {"relevance": n / 4}}]}
        | {"dial_level_pred": {"dialogue_overall": float(n)} if n else {}}
        for n, name in enumerate(talks)
    ]
    assert values(take(tmp_path, run, format="face")).to_dict() == {
        ("mini-kb-001-01", "kb", "relevance"): 0, ("mini-gpt-001-01", "gpt", "relevance"): 0.25,
        ("mini-kb-002-01", "kb", "relevance"): 0.5, ("mini-gpt-002-01", "gpt", "relevance"): 0.75,
        ("mini-gpt-001", "gpt", "dialogue_overall"): 1, ("mini-kb-002", "kb", "dialogue_overall"): 2,
        ("mini-gpt-002", "gpt", "dialogue_overall"): 3,
    }  # fmt: skip
    with pytest.raises(SchemaError, match=r"3 dialogues, .*'mini'.*expected its 4, in the same order"):
        take(tmp_path, run[1:], format="face")


# ---- Configuration and command


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("f1", {}, r"params.yaml, recorded.f1: 'f1' is the name of a metric .* Call it f1_recorded"),
        ("m", {"format": "tabel"}, "params.yaml, recorded.m: unknown format 'tabel'.* Did you mean 'table'"),
        ("m", {"source": "mini_rating"}, "unknown source 'mini_rating'.* Did you mean 'mini_ratings'"),
    ],
)
def test_configuration_entries(tmp_path, name, changes, message):
    catalogue = load_catalogue(write_mirror(tmp_path, mini_items()))
    table = {"dataset": "demo", "format": "table", "path": "some/folder/scores.csv", "about": "us"}
    theirs = {"dataset": "usr_persona", "format": "unieval", "source": "mini_ratings", "about": "them"}
    known = {"taken": {"f1", "bleu"}, "datasets": ["demo", *catalogue.datasets], "catalogue": catalogue}
    origins = {key: entry.origin for key, entry in read_entries({"a": table, "b": theirs}, **known).items()}
    assert origins == {"a": "scores.csv", "b": "invented/mini@0000000/ratings.json"}
    with pytest.raises(ComperdialError, match=message):
        read_entries({name: table | changes}, **known)


def test_command_accepts_only_fetched_files(folder, mini_mirror, monkeypatch, capsys):
    catalogue = write_mirror(mini_mirror, unieval_items())
    monkeypatch.chdir(mini_mirror)
    monkeypatch.setenv("COMPERDIAL_MIRROR", "mirror")
    given = ["recorded", str(folder), "--name", "m", "--format", "unieval", "--source", "mini_ratings", "--about", "us"]
    given += ["--catalogue", str(catalogue), "--ratings", str(folder / "ratings.parquet"), "--output", "out.csv"]
    assert main(given) == 0
    signatures = schema.read("out.csv", "scores")["signature"]
    assert {one.split("|")[2] for one in signatures} == {"from:invented/mini@0000000/ratings.json"}
    raw = mini_mirror / "data/raw/invented/mini/data/ratings.json"
    raw.write_text(raw.read_text() + " ")
    assert main(given) == 1
    assert "source 'mini_ratings' is altered" in capsys.readouterr().err


# ---- Answers of judges


@pytest.fixture(scope="module")
def rated(folder):
    return Rated(**{name: schema.read(folder / f"{name}.parquet", name) for name in Rated.__annotations__})


def chiang_items():
    """Return the invented set as Chiang and Lee's files have it: 20 answers an item, the last one without a rating."""
    made = []
    for item in mini_items():
        for response in item["responses"]:
            text = response["response"]
            names = {"source": item["context"], "system_id": response["model"], "system_output": text}
            scores = {name: round(sum(response[OURS[name]]) / 3, 10) for name in ("naturalness", "coherence")}
            prompt = f"Rate it.\n{item['context']}\nFact:\n{item['fact']}\nResponse:\n{text}\n- Naturalness:\n"
            answers = [*[f"- Naturalness: {1 + len(made) % 3}"] * 18, "Rating: 2.5", "I cannot say."]
            made.append(names | {"context": item["fact"], "scores": scores, "prompt": prompt, "all_responses": answers})
    return made


def recorded(tmp_path, rated, content, format_name="chiang2023", file="naturalness"):
    path = tmp_path / "answers.json"
    path.write_text(json.dumps(content))
    return Recorded.read("judge", format_name, {file: path}, rated)


def test_answers_become_scores_judgements_and_counts(tmp_path, rated):
    judge = recorded(tmp_path, rated, chiang_items())
    # The eighth item is the third response, Dull's, to the second context.
    expected = (18 * (1 + 7 % 3) + 2.5) / 19
    assert values(judge.scores("s"))["mini-001", "Dull", "naturalness"] == pytest.approx(expected)
    single = judge.judgements()
    assert (len(single), single["failure"].notna().sum()) == (24 * 20, 24)
    counted = judge.coverage().iloc[0][["items", "answers", "unread", "n", "why", "target"]]
    assert counted.tolist() == [30, 600, 30, 30, "30 no rating", "Natural"]


def test_equal_responses_of_two_systems_keep_their_own_answers(tmp_path, rated):
    """Their prompts are the same text; the answers to the second are further samples of it."""
    responses, content = rated.responses.copy(), chiang_items()
    content[3] |= {name: content[2][name] for name in ("system_output", "prompt")}
    second = (responses["context_id"] == "mini-000") & (responses["system_id"] == "Wanderer")
    responses.loc[second, "response"] = content[3]["system_output"]
    judge = recorded(tmp_path, Rated(rated.contexts, responses, rated.systems, None), content)
    value = values(judge.scores("s"))["mini-000"].xs("naturalness", level="output")
    assert value["Dull"] == pytest.approx((18 * 3 + 2.5) / 19)
    assert value["Wanderer"] == pytest.approx((18 * 1 + 2.5) / 19)


def test_unexpected_answer_file_is_refused(tmp_path, rated):
    items = chiang_items()
    for content, message in (
        ([items[0], {n: v for n, v in items[1].items() if n != "prompt"}], "item 1: no field 'prompt'"),
        ([{**items[0], "system_output": "another text"}], "item 0: no response of 'mini'"),
    ):
        with pytest.raises(SchemaError, match=message):
            recorded(tmp_path, rated, content).scores("s")
    with pytest.raises(UnknownNameError, match="unknown file of recorded answers 'humour'"):
        recorded(tmp_path, rated, items, file="humour")


def test_signature_names_the_files(tmp_path):
    path = tmp_path / "n.json"
    path.write_text("[]")
    entry = {"format": "chiang2023", "prompt": "geval", "model": "gpt-3.5-turbo"}
    one = signature(entry, {"naturalness": path}, {"naturalness": "o/r@abcdef0/a/n.json"})
    assert one == (
        f"recorded-judge|format:chiang2023|prompt:geval|model:gpt-3.5-turbo|from:o/r@abcdef0/a/n.json|sha256:"
        f"{sha256(path)[:12]}|samples:20|mean|parser:{PARSER_VERSION}|v:1.1"
    )
    origins = {"naturalness": "o/r@abcdef0/a/n.json", "coherence": "o/r@abcdef0/a/c.json"}
    assert "|from:o/r@abcdef0/a|" in signature(entry, dict.fromkeys(origins, path), origins)


# ---- GPT-4's rounds of whole dialogues

SHORT = {"coherence": "coh", "diversity": "div", "engagingness": "eng", "informativeness": "inf", "overall": "ovr"}


def rounds(count, **changes):
    """Return five rounds; round r of dialogue d has 1 + (d + r) % 5 of every dimension."""
    made = {f"{s}_{n}": [float(1 + (d + n - 1) % 5) for d in range(count)] for s in SHORT.values() for n in range(1, 6)}
    return made | changes


def test_rounds_for_some_lines(tmp_path):
    names = [f"mini-{line:04d}" for line in (0, 3, 12, 40)]
    contexts = pd.DataFrame({"dataset": "mini", "context_id": names, "dialogue_id": names})
    responses = pd.DataFrame({"context_id": names, "system_id": ["a", "b", "a", "b"]})
    rated = Rated(contexts, responses, pd.DataFrame({"system_id": ["a", "b"], "kind": "agent"}))
    content = rounds(4, coh_5=[2.5, 2.0, 3.0, 7.0], indices=[12, 3, 40, 0])
    judge = recorded(tmp_path, rated, content, "gpt4_rounds", "rounds")
    value = judge.scores("s").set_index(["output", "item_id"])["value"]
    assert value["coherence", "mini-0012"] == pytest.approx((1 + 2 + 3 + 4 + 2.5) / 5)
    assert judge.judgements()["failure"].dropna().tolist() == ["out of scale: 7"]
