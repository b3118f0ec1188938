"""CPD Task 1: dialogues, the runner and its limits, submissions. A wrong agent costs its own submission only."""

import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comperdial import schema
from comperdial.challenge import build, runner
from comperdial.challenge.api import Completion, count_words
from comperdial.challenge.dialogues import Dialogue, items, read_dialogues, to_data
from comperdial.challenge.limits import Limits
from comperdial.challenge.runner import run_agent, run_roster
from comperdial.challenge.submissions import read_submissions, write_submission, writing_submission
from comperdial.challenge.tables import make_tables
from comperdial.core.errors import FileError, SchemaError

DIALOGUES = [
    Dialogue(
        name,
        {"A": ["i am a baker."], "B": ["i am a sailor."]},
        tuple(f"{name} says {'AB'[i % 2]} {i}" for i in range(4)),
    )
    for name in ("d1", "d2", "d3")
]


def test_both_formats_give_the_same_dialogues(tmp_path):
    (tmp_path / "data.json").write_text(json.dumps([to_data(d) for d in DIALOGUES]))
    test_data = [
        {"dialog_id": d.dialogue_id}
        | {
            f"turn_{k}": {
                "persona A": d.personas["A"],
                "persona B": d.personas["B"],
                "dialogue": d.conversation(k)["dialogue"],
                "gold_reference": d.reference(k),
            }
            for k in range(d.turns)
        }
        for d in DIALOGUES
    ]
    (tmp_path / "test.json").write_text(json.dumps(["a header that upstream skips", *test_data]))
    assert read_dialogues(tmp_path / "data.json") == DIALOGUES
    assert read_dialogues(tmp_path / "test.json") == DIALOGUES


def test_numbered_dialogues_keep_their_numbers(tmp_path):
    entry = to_data(replace(DIALOGUES[0], dialogue_id="100001"))
    assert entry["dialogue_id"] == 100001
    (tmp_path / "data.json").write_text(json.dumps([entry]))
    assert read_dialogues(tmp_path / "data.json")[0].dialogue_id == "100001"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda e: e.pop("persona"), "entry 1: no 'persona'"),
        (lambda e: e["dialogue"].pop(), "no list of pairs"),
        (lambda e: e["dialogue"][1].update(persona_id="A"), "utterance 2: speaker 'A'"),
        (lambda e: e["dialogue"][2].update(text=" "), "utterance 3"),
        (lambda e: e["persona"].update(A="i am a baker"), "persona A"),
        (lambda e: e.update(dialogue_id=None), "its name is None"),
    ],
)
def test_a_wrong_dialogue_is_named(tmp_path, change, named):
    entry = to_data(DIALOGUES[0])
    change(entry)
    (tmp_path / "data.json").write_text(json.dumps([entry]))
    with pytest.raises(SchemaError, match=named):
        read_dialogues(tmp_path / "data.json")


def agent_file(tmp_path, body, name="agent"):
    """Write a user's agent whose ``generate_responses`` has this body."""
    lines = "\n".join(f"        {line}" for line in body.split("\n"))
    parameters = "test_data, api_responses" if "api_responses" in body else "test_data"
    path = tmp_path / f"{name}.py"
    path.write_text(
        "import os, sys, time, subprocess\n\n"
        f"class UserAgent:\n    def generate_responses(self, {parameters}):\n{lines}\n"
    )
    return {"file": str(path)}


def test_an_agent_sees_gold_history_and_both_personas_and_no_reference(tmp_path):
    body = "print('noise on standard output')\nimport json\nreturn [json.dumps(d) for d in test_data]"
    run = run_agent("mine", agent_file(tmp_path, body), DIALOGUES)
    assert run.problem is None
    assert list(run.responses) == [(d.dialogue_id, turn) for turn in (0, 1) for d in DIALOGUES]
    seen = json.loads(run.responses["d2", 1])
    assert seen["persona A"] == ["i am a baker."]
    assert seen["persona B"] == ["i am a sailor."]
    assert [u["text"] for u in seen["dialogue"]] == ["d2 says A 0", "d2 says B 1", "d2 says A 2"]
    assert "d2 says B 3" not in run.responses["d2", 1]


def test_batches_are_no_larger_than_the_limit(tmp_path):
    run = run_agent(
        "mine", agent_file(tmp_path, "return [str(len(test_data))] * len(test_data)"), DIALOGUES, limits=Limits(batch=2)
    )
    assert [run.responses[d, 0] for d in ("d1", "d2", "d3")] == ["2", "2", "1"]


FAULTS = {
    "raises": ("raise ValueError('no idea')", "raised ValueError: no idea"),
    "exits": ("sys.exit(3)", "raised SystemExit"),
    "dies": ("os._exit(3)", "its process ended"),
    "hangs": ("time.sleep(60)", "no answer within"),
    "few": ("return ['a']", "1 responses for 3 conversations"),
    "many": ("return ['a'] * 4", "4 responses for 3"),
    "number": ("return [1] * 3", "response 1 is 1 (int), not a text"),
    "object": ("return ['a', object(), 'b']", "response 2 is a object, not a text"),
    "none": ("return None", "returned None (NoneType), not a list"),
    "empty": ("return ['a', ' ', 'b']", "response 2 is empty"),
    "surrogate": ("return ['a', '\\ud800', 'b']", "response 2 holds half of a surrogate"),
    "bytes": ("return [b'a'] * 3", "response 1 is a bytes, not a text"),
    "huge": ("return ['x' * 23_000_000] * 3", "more than 64 MiB"),
    "syntax": ("return (", "raised SyntaxError"),
    "unprintable": ("raise ValueError('bad \\ud800 thing')", r"raised ValueError: bad \ud800 thing"),
    "wants_api": ("return {'use_api': False, 'final_responses': [api_responses]}", "none was given"),
}


def test_every_fault_costs_its_own_submission_only_and_is_named(tmp_path):
    good = agent_file(tmp_path, "return ['fine'] * len(test_data)", "good")
    roster = [{"id": "good-1", **good}]
    roster += [{"id": name, **agent_file(tmp_path, body, name)} for name, (body, _) in FAULTS.items()]
    roster += [{"id": "no-file", "file": "nowhere.py"}, {"id": "no-kind", "kind": "retrival"}, {"id": "good-2", **good}]
    runs = {run.system_id: run for run in run_roster(roster, DIALOGUES, limits=Limits(run_seconds=4), jobs=4)}
    assert list(runs) == [entry["id"] for entry in roster]
    for name, (_, problem) in FAULTS.items():
        assert problem in runs[name].problem, name
        assert runs[name].responses == {}
    assert "no such file" in runs["no-file"].problem
    assert "Did you mean 'retrieval'" in runs["no-kind"].problem
    for name in ("good-1", "good-2"):
        assert runs[name].problem is None
        assert set(runs[name].responses) == set(items(DIALOGUES))


def test_what_a_stopped_agent_started_is_stopped_too(tmp_path):
    body = (
        f"child = subprocess.Popen(['sleep', '60'])\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))\n"
        "time.sleep(60)"
    )
    run_agent("mine", agent_file(tmp_path, body), DIALOGUES, limits=Limits(run_seconds=2))
    child = int((tmp_path / "pid").read_text())
    for _ in range(50):
        try:
            os.kill(child, 0)
            if Path(f"/proc/{child}/stat").read_text().split()[2] == "Z":
                return
        except (ProcessLookupError, FileNotFoundError):
            return
        time.sleep(0.1)
    pytest.fail("the agent's child still runs")


class CountingApi:
    """A language model that answers with how often it was called."""

    def __init__(self):
        self.prompts = []

    def count(self, messages):
        return sum(count_words(m["content"]) for m in messages)

    def complete(self, messages, max_tokens):
        self.prompts.append(messages)
        text = " ".join(["word"] * min(max_tokens, 5))
        return Completion(text, self.count(messages), count_words(text))


def api_agent(tmp_path, calls, words=3, tokens=5):
    body = f"""self.n = getattr(self, 'n', 0) if api_responses is None else self.n
if api_responses is None: self.made = 0
if self.made < {calls}:
    self.made += 1
    return {{'use_api': True, 'prompts': [[{{'role': 'user', 'content': 'x ' * {words}}}] for _ in test_data],
            'max_generated_tokens': [{tokens}] * len(test_data), 'final_responses': []}}
final = [r + str(sorted(d)) for r, d in zip(api_responses, test_data)]
return {{'use_api': False, 'final_responses': final}}"""
    return agent_file(tmp_path, body)


def test_an_agent_of_the_api_track_gets_its_answers_and_sees_persona_b_only(tmp_path):
    api = CountingApi()
    run = run_agent("mine", api_agent(tmp_path, 2), DIALOGUES, api=api)
    assert run.problem is None
    assert run.responses["d1", 0] == "word word word word word['dialogue', 'persona B']"
    assert (run.calls, run.input_tokens, run.output_tokens) == (12, 36, 60) == (len(api.prompts), 12 * 3, 12 * 5)


@pytest.mark.parametrize(
    ("agent", "limits", "problem"),
    [
        ({"calls": 3}, Limits(), "more than 2 calls an utterance"),
        ({"calls": 1, "words": 8}, Limits(input_tokens=15), "more than 15 input tokens in one dialogue"),
        ({"calls": 1, "words": 8}, Limits(input_tokens=16), None),
        ({"calls": 1, "tokens": 5}, Limits(output_tokens=9), "more than 9 output tokens in one dialogue"),
        ({"calls": 1, "tokens": 5}, Limits(output_tokens=10), None),
        ({"calls": 1, "tokens": 0}, Limits(), "not one a conversation"),
    ],
)
def test_the_limits_of_the_api_track(tmp_path, agent, limits, problem):
    run = run_agent("mine", api_agent(tmp_path, **agent), DIALOGUES, limits=limits, api=CountingApi())
    assert (run.problem is None) if problem is None else problem in run.problem
    assert bool(run.responses) == (problem is None)


def test_a_call_beyond_the_input_limit_is_never_made(tmp_path):
    api = CountingApi()
    run_agent("mine", api_agent(tmp_path, 1, words=20), DIALOGUES, limits=Limits(input_tokens=10), api=api)
    assert api.prompts == []


def answers(text="hello"):
    return {item: f"{text} {item[0]} {item[1]}" for item in items(DIALOGUES)}


def test_a_folder_of_submissions(tmp_path):
    write_submission(tmp_path / "mine.jsonl", {"mine": answers()})
    write_submission(tmp_path / "runs.jsonl", {"one": answers("one"), "two": answers("two")})
    (tmp_path / "systems.csv").write_text("system_id,kind,track,description\nmine,human,,a colleague\n")
    found = read_submissions([tmp_path], DIALOGUES)
    assert set(found.responses) == {"mine", "one", "two"}
    assert found.responses["one"] == answers("one")
    assert found.systems["mine"] == {"kind": "human", "track": None, "description": "a colleague"}
    assert found.systems["two"]["kind"] == "agent"
    assert found.problems == {}


def lines(change):
    records = [{"dialogue_id": d, "turn": t, "response": r} for (d, t), r in answers().items()]
    change(records)
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (lines(lambda r: r.pop()), "1 of 6 responses are missing, the first: dialogue 'd3', turn 1"),
        (lines(lambda r: r.append(r[0])), "record 7: dialogue 'd1', turn 0 a second time"),
        (lines(lambda r: r[2].update(turn=9)), "record 3: dialogue 'd2', turn 9"),
        (lines(lambda r: r[2].update(turn="0")), "record 3"),
        (lines(lambda r: r[2].update(turn=9)).replace('"turn": 9', '"turn": 1e400'), "turn inf"),
        (lines(lambda r: r[2].update(dialogue_id="../../etc/passwd")), "dialogue '../../etc/passwd'"),
        (lines(lambda r: r[1].update(response=7)), "record 2: the response is 7"),
        (lines(lambda r: r[1].update(response="")), "record 2: the response is ''"),
        (lines(lambda r: [x.update(system_id="../up") for x in r]), "system_id '../up'"),
        (lines(lambda r: r[1].update(system_id="bad")), "record 1: no system_id"),
        (lines(lambda r: [x.update(system_id="bad") for x in r[:5]]), "record 6: no system_id"),
        (lines(lambda r: r[4].pop("turn")), "record 5: dialogue 'd3', turn None"),
        (lines(lambda r: r[4].pop("response")), "record 5: the response is None"),
        (lines(lambda r: r[2].update(turn=1.5)), "record 3: dialogue 'd2', turn 1.5"),
        (lines(lambda r: r[2].update(turn=True)), "record 3: dialogue 'd2', turn True"),
        (lines(lambda r: None) + "[1]\n", "line 7"),
        ("{", "not valid JSON"),
        ("", "no records"),
        ('{"dialogue_id": "d1"}\n', "no field turn, response"),
    ],
)
def test_a_wrong_submission_is_left_out_by_name_and_the_others_stand(tmp_path, text, problem):
    write_submission(tmp_path / "good.jsonl", {"good": answers()})
    (tmp_path / "bad.jsonl").write_text(text)
    found = read_submissions([tmp_path], DIALOGUES)
    assert set(found.responses) == {"good"}
    assert problem in found.problems["bad"]


def test_a_system_that_is_wrong_costs_no_other_of_its_file(tmp_path):
    write_submission(tmp_path / "runs.jsonl", {"one": answers("one"), "two": answers("two")})
    given_lines = (tmp_path / "runs.jsonl").read_text().splitlines()
    # Lines of both in turn, and one of the second twice.
    mixed = [line for pair in zip(given_lines[:6], given_lines[6:], strict=True) for line in pair]
    (tmp_path / "runs.jsonl").write_text("\n".join([*mixed, mixed[3]]))
    found = read_submissions([tmp_path], DIALOGUES)
    assert found.responses == {"one": answers("one")}
    assert set(found.problems) == {"two"}
    assert "record 13: dialogue 'd1', turn 1 a second time" in found.problems["two"]


def test_responses_are_read_again_in_parts_and_the_tables_are_the_same(tmp_path, monkeypatch):
    (tmp_path / "dialogues.json").write_text(json.dumps([to_data(d) for d in DIALOGUES]))
    given_texts = {name: answers(name) for name in ("one", "two", "Three")}
    backwards = {name: dict(reversed(texts.items())) for name, texts in given_texts.items()}
    write_submission(tmp_path / "files/runs.jsonl", {"two": backwards["two"], "one": backwards["one"]})
    write_submission(tmp_path / "files/Three.jsonl", {"Three": backwards["Three"]})
    (tmp_path / "files/bad.jsonl").write_text(lines(lambda r: r.pop()))
    for name, size in (("whole", 1000), ("parts", 4)):
        monkeypatch.setattr(build, "_PART", size)
        failed = build.build("mine", tmp_path / "dialogues.json", [tmp_path / "files"], tmp_path / name)
        assert set(failed) == {"bad"}
    about = {name: {"kind": "agent", "track": None, "description": ""} for name in given_texts}
    for name, frame in make_tables("mine", DIALOGUES, about, given_texts, where="test").items():
        schema.write(tmp_path / f"plain/{name}.parquet", frame, name)
        plain, *others = (
            (tmp_path / folder / f"{name}.parquet").read_bytes() for folder in ("plain", "whole", "parts")
        )
        assert others == [plain, plain]


def test_a_submission_without_a_system_is_no_file_and_a_broken_one_leaves_none(tmp_path):
    with writing_submission(tmp_path / "none.jsonl"):
        pass
    with pytest.raises(ZeroDivisionError), writing_submission(tmp_path / "half.jsonl") as add:
        add("half", answers())
        1 / 0  # noqa: B018
    assert list(tmp_path.iterdir()) == []


def test_agents_are_run_as_their_responses_are_taken(monkeypatch):
    started = []

    def run(system_id, *_args, **_options):
        started.append(system_id)
        return runner.Run(system_id)

    monkeypatch.setattr(runner, "run_agent", run)
    runs = run_roster([{"id": str(number)} for number in range(20)], DIALOGUES, jobs=2)
    assert next(runs).system_id == "0"
    # Two at work and two that wait: the others are not begun before someone takes what there is.
    assert len(started) <= 4
    assert [found.system_id for found in runs] == [str(number) for number in range(1, 20)]
    assert sorted(started, key=int) == [str(number) for number in range(20)]


def test_of_the_same_system_in_two_files_the_first_stands(tmp_path):
    write_submission(tmp_path / "one.jsonl", {"one": answers("first")})
    write_submission(tmp_path / "runs.jsonl", {"one": answers("second"), "two": answers()})
    (tmp_path / "two.jsonl").write_text("{")
    found = read_submissions([tmp_path], DIALOGUES)
    assert found.responses["one"] == answers("first")
    assert set(found.responses) == {"one", "two"}
    assert set(found.problems) == {"one (runs.jsonl)", "two (two.jsonl)"}
    assert "system 'one' a second time" in found.problems["one (runs.jsonl)"]


def test_odd_file_names_are_left_out_by_name(tmp_path, caplog):
    write_submission(tmp_path / "one.jsonl", {"one": answers()})
    for name in (b"bra{ce}.jsonl", b"\xff.jsonl", b"mine.json"):
        (tmp_path / os.fsdecode(name)).write_text("{}")
    found = read_submissions([tmp_path], DIALOGUES)
    assert set(found.responses) == {"one"}
    assert set(found.problems) == {"bra{ce}", "\\udcff"}
    assert "mine.json is no submission" in caplog.text
    json.dumps(found.problems, ensure_ascii=False).encode()


def test_a_wrong_systems_csv_is_named_by_line(tmp_path):
    write_submission(tmp_path / "one.jsonl", {"one": answers()})
    (tmp_path / "systems.csv").write_text("system_id,kind,track,description\none,robot,,\n")
    with pytest.raises(SchemaError, match="line 2: kind 'robot'"):
        read_submissions([tmp_path], DIALOGUES)


@given(
    texts=st.lists(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip), min_size=6, max_size=6
    )
)
def test_nothing_in_a_submission_is_executed_or_followed(tmp_path_factory, texts):
    folder = tmp_path_factory.mktemp("submission")
    hostile = [
        "__import__('os').system('touch owned')",
        "{{7*7}}",
        "$(touch owned)",
        "../../../etc/passwd",
        "!!python/x",
    ]
    given_texts = dict(zip(items(DIALOGUES), [*hostile[: len(texts) // 2], *texts][:6], strict=True))
    write_submission(folder / "mine.jsonl", {"mine": given_texts})
    found = read_submissions([folder / "mine.jsonl"], DIALOGUES)
    assert found.responses["mine"] == given_texts
    assert sorted(p.name for p in folder.iterdir()) == ["mine.jsonl"]


def test_a_submission_that_is_no_file(tmp_path):
    with pytest.raises(SchemaError, match="no such file or folder"):
        read_submissions([tmp_path / "nothing.jsonl"], DIALOGUES)
    with pytest.raises(FileError, match=r"cannot be read"):
        read_dialogues(tmp_path / "nothing.json")
