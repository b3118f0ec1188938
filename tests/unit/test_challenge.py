"""CPD Task 1: dialogues, agents and their limits, submissions, self-chats, and the commands that users call."""

import gzip
import json
import re
from dataclasses import replace

import pytest

from comperdial import schema
from comperdial.challenge.agents import Completion, Limits, faults, load, read_training, run_agent, self_chat
from comperdial.challenge.dialogues import Dialogue, dialogues_of, read_dialogues, to_data
from comperdial.challenge.pairs import Dialogue as Chat
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


def test_both_formats_give_the_same_dialogues(here):
    turns = [
        {"dialog_id": d.dialogue_id}
        | {f"turn_{k}": {**d.conversation(k), "gold_reference": d.reference(k)} for k in range(d.turns)}
        for d in DIALOGUES
    ]
    (here / "test.json").write_text(json.dumps(["a header that upstream skips", *turns]))
    assert read_dialogues(here / "dialogues.json") == read_dialogues(here / "test.json") == DIALOGUES
    turns[0]["turn_1"]["dialogue"][1]["text"] = "an answer of a system"
    (here / "test.json").write_text(json.dumps(turns))
    with pytest.raises(SchemaError, match="entry 1, turn_1: the history is not the gold one"):
        read_dialogues(here / "test.json")
    del turns[0]["turn_0"]
    (here / "test.json").write_text(json.dumps(turns))
    with pytest.raises(SchemaError, match="entry 1: dialogue_id is missing"):
        read_dialogues(here / "test.json")


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
    parameters = "test_data, api_responses" if "api_responses" in body else "test_data"
    code = f"import sys, time\n\nclass UserAgent:\n    def generate_responses(self, {parameters}):\n{lines}\n"
    (folder / f"{name}.py").write_text(code)
    return f"{folder / name}.py"


def run(path, **options):
    return run_agent(load(str(path)), DIALOGUES, **options)


def test_an_agent_sees_gold_history_and_both_personas_and_no_reference(tmp_path):
    responses = run(agent_file(tmp_path, "import json\nreturn [json.dumps(d) for d in test_data]"))
    assert list(responses) == [(d.dialogue_id, turn) for turn in (0, 1) for d in DIALOGUES]
    shown = json.loads(responses["d2", 1])
    assert (shown["persona A"], shown["persona B"]) == (["i am a baker."], ["i am a sailor."])
    assert [u["text"] for u in shown["dialogue"]] == ["d2 says A 0", "d2 says B 1", "d2 says A 2"]


def test_batches_are_no_larger_than_the_limit(tmp_path):
    path = agent_file(tmp_path, "return [str(len(test_data))] * len(test_data)")
    responses = run(path, limits=Limits(batch=2))
    assert [responses[d, 0] for d in ("d1", "d2", "d3")] == ["2", "2", "1"]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("raise ValueError('no idea')", "turn 0 of 3 conversations from 'd1': raised ValueError: no idea"),
        ("sys.exit(3)", "raised SystemExit"),
        ("time.sleep(0.2)\nreturn ['late'] * 3", " s; expected at most 0.1 s"),
        ("return ['a']", "gave 1 for 3 conversations"),
        ("return ['a', 1, 'b']", "1 is 1; expected a valid string"),
        ("return None", "is None; expected a valid list"),
        ("return ['a', ' ', 'b']", "1 is ' '; expected a text that is not empty"),
        ("return ['a', '\\ud800', 'b']", "surrogates not allowed"),
        ("return {'use_api': False, 'final_responses': [api_responses]}", "wants a language model"),
        ("return (", "loading: raised SyntaxError"),
    ],
)
def test_what_an_agent_does_wrong_is_named(tmp_path, body, problem):
    with pytest.raises(ComperdialError, match=re.escape(problem)):
        run(agent_file(tmp_path, body), limits=Limits(run_seconds=0.1))


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


class CountingModel:
    """A language model that answers with five words."""

    def __init__(self):
        self.calls = 0

    def count(self, messages):
        return sum(len(m["content"].split()) for m in messages)

    def complete(self, messages, max_tokens):
        self.calls += 1
        text = " ".join(["word"] * min(max_tokens, 5))
        return Completion(text, self.count(messages), len(text.split()))


def api_agent(folder, calls, words=3, tokens=5):
    return agent_file(
        folder,
        f"""if api_responses is None: self.made = 0
if self.made < {calls}:
    self.made += 1
    return {{'use_api': True, 'prompts': [[{{'role': 'user', 'content': 'x ' * {words}}}] for _ in test_data],
            'max_generated_tokens': [{tokens}] * len(test_data), 'final_responses': []}}
final = [r + str(sorted(d)) for r, d in zip(api_responses, test_data)]
return {{'use_api': False, 'final_responses': final}}""",
    )


def test_an_agent_of_the_api_track_gets_its_answers_and_sees_persona_b_only(tmp_path):
    model = CountingModel()
    responses = run(api_agent(tmp_path, 2), model=model)
    assert responses["d1", 0] == "word word word word word['dialogue', 'persona B']"
    assert model.calls == 2 * len(ITEMS)


@pytest.mark.parametrize(
    ("agent", "limits", "problem", "calls"),
    [
        ({"calls": 3}, {}, "wants more than 2 calls an utterance", 6),
        ({"calls": 1}, {"input_tokens": 5}, "more than 5 input tokens in one dialogue", 3),
        ({"calls": 1}, {"output_tokens": 9}, "more than 9 output tokens in one dialogue", 4),
        ({"calls": 1, "tokens": 0}, {}, "max_generated_tokens.0 is 0; expected greater than 0", 0),
        ({"calls": 1, "tokens": "'many'"}, {}, "max_generated_tokens.0 is 'many'", 0),
    ],
)
def test_limits_of_the_api_track(tmp_path, agent, limits, problem, calls):
    model = CountingModel()
    with pytest.raises(ComperdialError, match=re.escape(problem)):
        run(api_agent(tmp_path, **agent), model=model, limits=Limits(**limits))
    assert model.calls == calls, "a call that would exceed a limit of input is not made"


def test_a_language_model_that_fails_is_named(tmp_path):
    model = CountingModel()
    model.complete = lambda *_: 1 / 0
    with pytest.raises(ComperdialError, match="language model: raised ZeroDivisionError"):
        run(api_agent(tmp_path, 1), model=model)


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


@pytest.mark.parametrize(
    ("texts", "repeated", "loops"),
    [
        (("hi", "ho", "he", "ha"), 0, False),
        (("hi", "ho", "he", " Ho"), 1, False),
        (("hi", "ho", "ho"), 1, True),
        (("hi", "a", "b", "a", "b"), 2, True),
        (("a", "b", "c", "a", "b", "c"), 3, True),
        (("a", "b", "a", "b", "c"), 2, False),
    ],
)
def test_repetitions_and_cycles(texts, repeated, loops):
    chats = [Chat("d", "s", "B", tuple(("A", text) for text in spoken)) for spoken in (texts, ("x", "y"))]
    result = faults(chats)
    assert (result.dialogues, result.utterances, result.repeated) == (2, len(texts), repeated)
    assert (result.repeating, result.looping) == (int(repeated > 0), int(loops))
    known = faults(chats, [["Hi", texts[1]], ["x", "z"]])
    assert known.known_utterances == sum(t.strip().lower() in ("hi", texts[1], "x", "z") for t in texts[1:])
    assert known.known_pairs == int(texts[0] == "hi")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("corpus.jsonl", '{"context": "hi", "response": "ho"}\n'),
        ("chats.jsonl", '{"utterances": [{"speaker": "A", "text": "hi"}, {"speaker": "B", "text": "ho"}]}\n'),
        ("data.json", json.dumps([to_data(Dialogue("d", {"A": [], "B": []}, ("hi", "ho")))])),
    ],
)
def test_training_texts(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert read_training(tmp_path / name) == [["hi", "ho"]]


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
    out = capsys.readouterr().out
    assert "chats: 2 self-chats, 2 repeat an utterance, 2 end in a loop; of 6 utterances, 66.7% repeated" in out
    assert list(read_chats(here / "chats.jsonl")) == [("d1", "chats"), ("d2", "chats")]
    for arguments, message in (
        ((*run_it, "--output", "mine.json"), "letters, digits, dots, - and _, and .jsonl at the end"),
        ((*run_it, "--batch", 51, "--output", "mine.jsonl"), "--batch: a batch of 51; expected 1 to 50"),
        ((*run_it, "--run-seconds", 1e-9, "--output", "other.jsonl"), "expected at most 1e-09 s"),
        ((*chat, "--dialogues", 4, "--output", "c.jsonl"), "at most 3, one for each opening"),
    ):
        assert call(*arguments) == 1
        assert message in capsys.readouterr().err
    assert not (here / "other.jsonl").exists()


def test_the_agents_of_adding_a_system(root, here, capsys):
    """The page's files and commands, to the letter."""
    page = (root / "docs/adding-a-system.md").read_text()
    (here / "data/demo/submissions").mkdir(parents=True)
    dialogues = json.loads((root / "data/demo/dialogues.json").read_text())[:2]
    (here / "data/demo/dialogues.json").write_text(json.dumps(dialogues))
    for name, code in re.findall(r"`(my_\w+\.py)`:\n\n```python\n(.*?)```", page, re.DOTALL):
        (here / name).write_text(code)
    commands = re.findall(r"^comperdial (challenge run .*)$", page, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        assert call(*command.split()) == 0, capsys.readouterr().err
    read = read_submissions([here / "data/demo/submissions"], read_dialogues(here / "data/demo/dialogues.json"))
    assert len(read.responses) == 2
    assert not read.problems
    # The limits that the page names.
    rows = dict(re.findall(r"^\| [^|]+ \| ([\d,]+)[^|]*\| `--([a-z-]+)`", page, re.MULTILINE))
    named = {name.replace("-", "_"): float(number.replace(",", "")) for number, name in rows.items()}
    assert named == Limits()._asdict()
