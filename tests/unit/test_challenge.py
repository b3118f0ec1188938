"""CPD Task 1: dialogues, agents, submissions, self-chats, and the commands that users call."""

import gzip
import json
import re
from dataclasses import replace

import pytest

from comperdial import schema
from comperdial.challenge.agents import load, run_agent, self_chat
from comperdial.challenge.dialogues import Dialogue, dialogues_of, read_dialogues, to_data
from comperdial.challenge.pairs import read_dialogues as read_chats
from comperdial.challenge.submissions import read_challenge, read_submissions, write_submission
from comperdial.cli import main
from comperdial.core.errors import ComperdialError, ConfigError, SchemaError

DIALOGUES = [
    Dialogue(
        name,
        {"A": ["i am a baker."], "B": ["i am a sailor."]},
        tuple(f"{name} says {'AB'[i % 2]} {i}" for i in range(4)),
    )
    for name in ("d1", "d2", "d3")
]
ITEMS = [(d.dialogue_id, turn) for d in DIALOGUES for turn in range(2)]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Return the working directory, which has three dialogues."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dialogues.json").write_text(json.dumps([to_data(d) for d in DIALOGUES]))
    return tmp_path


# Dialogues


def test_numbered_dialogues_keep_their_numbers(here):
    entry = to_data(replace(DIALOGUES[0], dialogue_id="100001"))
    assert entry["dialogue_id"] == 100001
    (here / "data.json").write_text(json.dumps([entry]))
    assert read_dialogues(here / "data.json")[0].dialogue_id == "100001"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda e: e.pop("persona"), "entry 1: persona is missing"),
        (lambda e: e["dialogue"].pop(), "the speakers are A, B, A; expected A and B in turn, B last"),
        (lambda e: e["dialogue"][1].update(persona_id="A"), "the speakers are A, A, A, B"),
        (lambda e: e["dialogue"][2].update(text=" "), "dialogue.2.text is ' '; expected a text that is not empty"),
        (lambda e: e["persona"].update(A="i am a baker"), "persona.A is 'i am a baker'; expected a valid list"),
        (lambda e: e.update(dialogue_id=None), "dialogue_id"),
    ],
)
def test_a_wrong_dialogue_is_named(here, change, message):
    entry = to_data(DIALOGUES[0])
    change(entry)
    (here / "data.json").write_text(json.dumps([entry]))
    with pytest.raises(SchemaError, match=re.escape(message)):
        read_dialogues(here / "data.json")


# Agents


def agent_file(folder, body, name="agent"):
    """Write a user's agent whose ``generate_responses`` has this body, and return its path."""
    lines = "\n".join(f"        {line}" for line in body.split("\n"))
    code = f"import sys\n\nclass UserAgent:\n    def generate_responses(self, test_data):\n{lines}\n"
    (folder / f"{name}.py").write_text(code)
    return f"{folder / name}.py"


def run(path):
    return run_agent(load(str(path)), DIALOGUES)


def test_an_agent_sees_gold_history_and_both_personas_and_no_reference(tmp_path):
    responses = run(agent_file(tmp_path, "import json\nreturn [json.dumps(d) for d in test_data]"))
    assert list(responses) == [(d.dialogue_id, turn) for turn in (0, 1) for d in DIALOGUES]
    shown = json.loads(responses["d2", 1])
    assert (shown["persona A"], shown["persona B"]) == (["i am a baker."], ["i am a sailor."])
    assert [u["text"] for u in shown["dialogue"]] == ["d2 says A 0", "d2 says B 1", "d2 says A 2"]


def test_an_agent_is_shown_at_most_50_conversations_at_a_time(tmp_path):
    agent = load(agent_file(tmp_path, "return [str(len(test_data))] * len(test_data)"))
    responses = run_agent(agent, [replace(DIALOGUES[0], dialogue_id=str(number)) for number in range(51)])
    assert [responses[name, 0] for name in ("0", "49", "50")] == ["50", "50", "1"]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("raise ValueError('no idea')", "turn 0 of 3 conversations from 'd1': raised ValueError: no idea"),
        ("sys.exit(3)", "raised SystemExit"),
        ("return ['a']", "gave 1 for 3 conversations"),
        ("return ['a', 1, 'b']", "1 is 1; expected a valid string"),
        ("return None", "is None; expected a valid list"),
        ("return ['a', ' ', 'b']", "1 is ' '; expected a text that is not empty"),
        ("return ['a', '\\ud800', 'b']", "surrogates not allowed"),
        ("return (", "loading: raised SyntaxError"),
    ],
)
def test_what_an_agent_does_wrong_is_named(tmp_path, body, problem):
    with pytest.raises(ComperdialError, match=re.escape(problem)):
        run(agent_file(tmp_path, body))


def test_a_class_of_another_name_with_options_and_neighbours(tmp_path):
    (tmp_path / "words.py").write_text("WORD = 'well'\n")
    # Named as a module of Python's own, which it must not replace.
    code = "from words import WORD\nclass Other:\n    def __init__(self, n): self.n = n\n"
    (tmp_path / "json.py").write_text(
        f"{code}    def generate_responses(self, test_data): return [WORD * self.n] * 3\n"
    )
    responses = run_agent(load(f"{tmp_path}/json.py:Other", {"n": 2}), DIALOGUES)
    assert set(responses.values()) == {"wellwell"}
    assert json.dumps(1) == "1"
    with pytest.raises(ConfigError, match="no class 'UserAgent'"):
        load(f"{tmp_path}/json.py")
    with pytest.raises(ConfigError, match="no such file"):
        load("nowhere.py")


# Self-chats

OPENINGS = [
    Dialogue(name, {"A": [f"ann of {name}"], "B": [f"bob of {name}"]}, (f"hi from {name}", "gold", "gold", "gold"))
    for name in ("d1", "d2")
]
# Says what it was shown: whose persona it has, who spoke last, and how much was spoken.
MIRROR = """assert all(c["dialogue"][-1]["persona_id"] == "A" for c in test_data)
return [f"{c['persona B'][0]} to {c['persona A'][0]} after {len(c['dialogue'])}" for c in test_data]"""


def test_an_agent_speaks_for_both_and_answers_as_b_each_time(tmp_path):
    chats = self_chat(load(agent_file(tmp_path, MIRROR)), "mirror", OPENINGS, 2)
    assert [dialogue.key for dialogue in chats] == [("d1", "mirror"), ("d2", "mirror")]
    assert chats[0].judged == "B"
    assert chats[0].utterances == (
        ("A", "hi from d1"), ("B", "bob of d1 to ann of d1 after 1"), ("A", "ann of d1 to bob of d1 after 2"),
        ("B", "bob of d1 to ann of d1 after 3"),
    )  # fmt: skip


# Submissions


def lines_of(answers, **more):
    records = [more | {"dialogue_id": d, "turn": turn, "response": text} for (d, turn), text in answers.items()]
    return "".join(json.dumps(record) + "\n" for record in records)


GOOD = {item: f"to {item[0]} at {item[1]}" for item in ITEMS}


def test_submissions_of_every_form(here):
    folder = here / "submissions"
    write_submission(folder / "one.jsonl", GOOD)
    many = lines_of(GOOD, system_id="two") + lines_of(GOOD, system_id="three")
    (folder / "many.jsonl.gz").write_bytes(gzip.compress(many.encode()))
    (folder / "systems.csv").write_text("system_id,kind,track,description\ntwo,human,,a person\n")
    read = read_submissions([folder], DIALOGUES)
    assert read.responses == {"two": GOOD, "three": GOOD, "one": GOOD}
    assert read.systems["two"] == {"kind": "human", "track": None, "description": "a person"}
    assert read.systems["one"]["kind"] == "agent"
    assert read.problems == {}


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("bra{ce}.jsonl", "{}", "letters, digits"),
        ("short.jsonl", lines_of({ITEMS[0]: "a"}), "5 of 6 responses are missing, the first: dialogue 'd1', turn 1"),
        ("twice.jsonl", lines_of(GOOD) * 2, "line 7: dialogue 'd1', turn 0 a second time"),
        ("other.jsonl", lines_of(GOOD | {("d9", 0): "a"}), "line 7: dialogue 'd9', turn 0"),
        ("empty.jsonl", lines_of(GOOD | {ITEMS[2]: " "}), "line 3: response is ' '"),
        ("number.jsonl", lines_of(GOOD | {ITEMS[2]: 7}), "line 3: response is 7"),
        ("fields.jsonl", '{"dialogue_id": "d1", "turn": 0, "text": "a"}\n', "line 1: response is missing"),
        ("json.jsonl", lines_of(GOOD) + "{", "line 7"),
        ("none.jsonl", "\n", "no records"),
        ("list.jsonl", "[]\n", "valid dictionary"),
        ("some.jsonl", lines_of(GOOD) + lines_of(GOOD, system_id="x"), "system_id in some lines only"),
        ("good.jsonl", lines_of(GOOD), "'good' a second time"),
        ("cut.jsonl.gz", "no gzip", "cannot be read"),
    ],
)
def test_a_wrong_submission_is_left_out_and_named_and_the_others_are_taken(here, name, text, problem):
    write_submission(here / "good.jsonl", GOOD)
    (here / "more").mkdir()
    (here / "more" / name).write_text(text)
    read = read_submissions([here / "good.jsonl", here / "more"], DIALOGUES)
    assert list(read.responses) == ["good"]
    (result,) = read.problems.values()
    assert problem in result


def test_one_wrong_system_of_a_file_costs_itself_only(here):
    (here / "all.jsonl").write_text(lines_of(GOOD, system_id="good") + lines_of({ITEMS[0]: "a"}, system_id="bad"))
    read = read_submissions([here / "all.jsonl"], DIALOGUES)
    assert list(read.responses) == ["good"]
    assert list(read.problems) == ["bad"]


def test_a_challenge_becomes_tables(here):
    write_submission(here / "submissions/mine.jsonl", GOOD)
    (here / "submissions/bad.jsonl").write_text("{}\n")
    failed = read_challenge("mini", here / "dialogues.json", [here / "submissions"], here / "out")
    assert list(failed) == ["bad"]
    assert json.loads((here / "out/submissions.json").read_text()) == {"failed": failed, "systems": 1}
    tables = {name: schema.read(here / f"out/{name}.parquet", name) for name in ("contexts", "personas", "responses")}
    assert dialogues_of(tables["contexts"], tables["personas"]) == DIALOGUES
    context = tables["contexts"].set_index("context_id").loc["d2-t1"]
    assert context["references"] == ["d2 says B 3"]
    assert context["facts"] == ["i am a sailor."]
    assert tables["responses"].set_index("context_id").loc["d2-t1", "response"] == "to d2 at 1"
    with pytest.raises(SchemaError, match="no submission that is complete"):
        read_challenge("mini", here / "dialogues.json", [here / "submissions/bad.jsonl"], here / "out")


# Commands


def call(*arguments):
    return main([str(argument) for argument in arguments])


def test_run_and_self_chat(here, capsys):
    path = agent_file(here, "return ['fine, and you?'] * len(test_data)")
    run_it = ("challenge", "run", "dialogues.json", "--agent", path)
    assert call(*run_it, "--output", "mine.jsonl") == 0
    assert "mine.jsonl: 6 responses" in capsys.readouterr().out
    assert read_submissions([here / "mine.jsonl"], DIALOGUES).responses.keys() == {"mine"}
    chat = ("challenge", "self-chat", "--agent", path, "--openings", "dialogues.json", "--turns", 2)
    assert call(*chat, "--dialogues", 2, "--output", "chats.jsonl") == 0
    assert "chats.jsonl: 2 self-chats" in capsys.readouterr().out
    assert list(read_chats(here / "chats.jsonl")) == [("d1", "chats"), ("d2", "chats")]
    for arguments, message in (
        ((*run_it, "--output", "mine.json"), "letters, digits, dots, - and _, and .jsonl at the end"),
        ((*chat, "--dialogues", 4, "--output", "c.jsonl"), "at most 3, one for each opening"),
    ):
        assert call(*arguments) == 1
        assert message in capsys.readouterr().err


def test_the_agents_of_adding_a_system(root, here, capsys):
    """The page's files and commands, to the letter."""
    page = (root / "docs/adding-a-system.md").read_text()
    (here / "data/demo/submissions").mkdir(parents=True)
    dialogues = json.loads((root / "data/demo/dialogues.json").read_text())[:2]
    (here / "data/demo/dialogues.json").write_text(json.dumps(dialogues))
    for name, code in re.findall(r"`(my_\w+\.py)`:\n\n```python\n(.*?)```", page, re.DOTALL):
        (here / name).write_text(code)
    commands = re.findall(r"^comperdial (challenge run .*)$", page, re.MULTILINE)
    assert len(commands) == 1
    for command in commands:
        assert call(*command.split()) == 0, capsys.readouterr().err
    read = read_submissions([here / "data/demo/submissions"], read_dialogues(here / "data/demo/dialogues.json"))
    assert len(read.responses) == 1
    assert not read.problems
