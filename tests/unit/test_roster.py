"""Rosters, the simulated language model, the agents' files, and the texts of the embedded benchmark."""

import copy
import json
from collections import Counter

import pytest
import yaml

from comperdial.challenge import personas
from comperdial.challenge.agent import takes_api_responses
from comperdial.challenge.agents import kinds
from comperdial.challenge.agents._text import normalised
from comperdial.challenge.api import SimulatedApi, count_words
from comperdial.challenge.dialogues import Dialogue, items, read_dialogues
from comperdial.challenge.roster import read_roster
from comperdial.challenge.runner import run_agent, run_roster
from comperdial.challenge.submissions import read_submissions, write_submission
from comperdial.core.errors import ConfigError, FileError

BANK = [
    {"last_utterance": "Do you like tea?", "style": "concise", "response": "yes, i love tea, and you?"},
    {"last_utterance": "Do you like tea?", "style": "verbose", "response": "oh yes, i do love a good cup of tea!"},
]
ROSTER = {
    "api": {"bank": "bank.jsonl", "strength": 1.0, "seed": 3},
    "agents": [
        {"id": "one", "kind": "echo", "track": "gpu", "skill": 0.2, "description": "repeats", "options": {"seed": 1}},
        {"id": "two", "file": "mine.py", "class": "Mine"},
    ],
}
DIALOGUES = [
    Dialogue("d1", {"A": ["i am a baker."], "B": ["i am a sailor."]}, ("Do you like tea?", "i do.", "why?", "so."))
]


@pytest.fixture
def bank(tmp_path):
    path = tmp_path / "bank.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in BANK))
    return path


@pytest.fixture
def written(tmp_path, bank, monkeypatch):
    """Return a function that changes the small roster and writes it; paths in it are relative to its folder."""
    monkeypatch.chdir(tmp_path)

    def write(change=lambda roster: None):
        roster = copy.deepcopy(ROSTER)
        change(roster)
        (tmp_path / "roster.yaml").write_text(yaml.safe_dump(roster))
        return "roster.yaml"

    return write


# --- the file --------------------------------------------------------------------------------------------------------


def test_a_roster_is_what_it_says(written):
    roster = read_roster(written())
    assert [entry["id"] for entry in roster.agents] == ["one", "two"]
    assert roster.skills == {"one": 0.2}
    assert roster.systems == {
        "one": {"kind": "agent", "track": "gpu", "description": "repeats"},
        "two": {"kind": "agent", "track": None, "description": ""},
    }
    assert roster.api.complete([{"role": "user", "content": "do you like tea"}], 50).text == BANK[0]["response"]
    assert read_roster(written(lambda r: r.pop("api"))).api is None


def first(**values):
    return lambda roster: roster["agents"][0].update(values)


def without(key):
    return lambda roster: roster["agents"][0].pop(key)


def api(**values):
    return lambda roster: roster["api"].update(values)


MISTAKES = [
    (lambda r: r.pop("agents"), "no 'agents'"),
    (lambda r: r.update(agents={"one": 1}), "agents: got a mapping; expected a list"),
    (lambda r: r.update(agent=[]), "unknown key 'agent'; expected one of agents, api. Did you mean 'agents'"),
    (lambda r: r["agents"].append("three"), "agents[2]: got a text; expected a mapping"),
    (first(colour="blue"), "agents[0]: unknown key 'colour'"),
    (first(file="mine.py"), "agents[0]: both `kind` and `file`; expected one of the two"),
    (without("kind"), "agents[0]: no `kind` and no `file`"),
    (without("id"), "agents[0]: no 'id'"),
    (first(id=7), "agents[0].id: got 7"),
    (first(id="../up"), "agents[0].id: got '../up'"),
    (first(id="two words"), "agents[0].id: got 'two words'"),
    (lambda r: r["agents"][1].update(id="one"), "agents[1].id: agent 'one' is there already"),
    (first(track="cpu"), "agents[0].track: got 'cpu'; expected 'gpu' or 'api'"),
    (first(skill=1.1), "agents[0].skill: got 1.1; expected a number from 0 to 1"),
    (first(skill=float("inf")), "agents[0].skill: got inf"),
    (first(skill=True), "agents[0].skill: got True"),
    (first(skill=None), "agents[0].skill: got null"),
    (first(options=[1]), "agents[0].options: got a list; expected a mapping"),
    (first(kind=3), "agents[0].kind: got 3; expected a text"),
    (first(description=None), "agents[0].description: got null; expected a text"),
    (lambda r: r["agents"][1].update({"class": 5}), "agents[1].class: got 5; expected a text"),
    (lambda r: r["api"].pop("seed"), "api: no 'seed'"),
    (api(model="gpt"), "api: unknown key 'model'"),
    (api(strength=1.5), "api.strength: got 1.5; expected a number from 0 to 1"),
    (api(seed=-1), "api.seed: got -1; expected a whole number of 0 or more"),
]


@pytest.mark.parametrize(("change", "message"), MISTAKES, ids=[f"{n}-{m}" for n, (_, m) in enumerate(MISTAKES)])
def test_a_mistake_in_a_roster_is_named(written, change, message):
    with pytest.raises(ConfigError) as caught:
        read_roster(written(change))
    assert message in str(caught.value)
    assert "roster.yaml, line " in str(caught.value)


def test_a_roster_whose_bank_is_not_there(written):
    with pytest.raises(FileError, match=r"nowhere\.jsonl"):
        read_roster(written(api(bank="nowhere.jsonl")))


def test_no_roster_and_no_yaml(tmp_path):
    (tmp_path / "broken.yaml").write_text("agents: [\n")
    with pytest.raises(FileError, match=r"broken\.yaml, line 2"):
        read_roster(tmp_path / "broken.yaml")
    with pytest.raises(FileError):
        read_roster(tmp_path / "nothing.yaml")


# --- the simulated language model ------------------------------------------------------------------------------------


def chat(*contents, persona="- i am a sailor.\n- i have a dog."):
    roles = ["user", "assistant"] * 3
    return [{"role": "system", "content": f"About you:\n{persona}"}] + [
        {"role": roles[number], "content": content} for number, content in enumerate(contents)
    ]


def test_the_simulated_api_is_deterministic(bank):
    one, same, other = (SimulatedApi(bank, strength=0.5, seed=seed) for seed in (1, 1, 2))
    prompts = [chat(f"what about number {n}?") for n in range(20)]
    found = [one.complete(prompt, 50) for prompt in prompts]
    assert [same.complete(prompt, 50) for prompt in reversed(prompts)] == found[::-1]
    assert [one.complete(prompt, 50) for prompt in prompts] == found
    assert [other.complete(prompt, 50) for prompt in prompts] != found
    assert len({completion.text for completion in found}) > 5


@pytest.mark.parametrize("strength", [0.0, 0.5, 1.0])
def test_its_strength_is_how_often_it_has_a_written_answer(bank, strength):
    model = SimulatedApi(bank, strength=strength, seed=1)
    found = [
        model.complete(chat("Do you like tea?", persona=f"- number {n}."), 50).text == BANK[0]["response"]
        for n in range(200)
    ]
    assert sum(found) / 200 == pytest.approx(strength, abs=0.1 if strength == 0.5 else 0)


@pytest.mark.parametrize("strength", [0.0, 1.0])
@pytest.mark.parametrize("most", [1, 3, 6, 50])
def test_max_tokens_is_respected_and_tokens_are_charged(bank, strength, most):
    model = SimulatedApi(bank, strength=strength, seed=1)
    prompt = chat("Do you like tea?", "yes.", "Do you like tea?")
    whole = model.complete(prompt, 1000)
    found = model.complete(prompt, most)
    assert found.output_tokens == count_words(found.text) == min(most, whole.output_tokens)
    assert whole.text.startswith(found.text)
    assert found.input_tokens == model.count(prompt) == sum(count_words(m["content"]) for m in prompt)


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("  \n", 0), ("tea", 1), ("i'm fine, thanks!", 7), ("a-b", 3)])
def test_tokens_are_words_and_marks(text, tokens):
    assert count_words(text) == tokens


@pytest.mark.parametrize("messages", [[{"role": "system", "content": "- i am a sailor."}], []])
def test_it_answers_without_a_user(bank, messages):
    assert SimulatedApi(bank, strength=1.0, seed=1).complete(messages, 20).text.strip()


# --- the agents' files -----------------------------------------------------------------------------------------------


def run_file(tmp_path, text, name="mine.py", **options):
    (tmp_path / name).write_text(text)
    return run_agent("mine", {"file": str(tmp_path / name)}, DIALOGUES, **options)


ECHO = "return [d['dialogue'][-1]['text'] for d in test_data]"


def test_a_file_with_dataclasses_and_its_neighbours(tmp_path):
    (tmp_path / "neighbour.py").write_text("WORD = 'ahoy'\n")
    text = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\nimport neighbour\n\n"
        "@dataclass\nclass Reply:\n    text: str\n\n"
        "class UserAgent:\n    def generate_responses(self, test_data):\n"
        "        return [Reply(neighbour.WORD).text for _ in test_data]\n"
    )
    found = run_file(tmp_path, text)
    assert found.problem is None
    assert set(found.responses.values()) == {"ahoy"}


def test_a_file_named_as_a_module_of_pythons_own(tmp_path):
    text = f"import random\nclass UserAgent:\n    def generate_responses(self, test_data):\n        {ECHO}\n"
    assert run_file(tmp_path, text, name="json.py").problem is None


@pytest.mark.parametrize("name", ["mine.txt", "mine"])
def test_a_file_that_is_not_python_is_named(tmp_path, name):
    assert "expected a Python file" in run_file(tmp_path, "hello", name=name).problem


@pytest.mark.parametrize(
    ("parameters", "second"),
    [
        ("test_data", False),
        ("test_data, api_responses", True),
        ("test_data, api_responses=None", True),
        ("test_data, answers", True),
        ("test_data, temperature=0.7", False),
        ("test_data, **options", False),
        ("test_data, *rest", False),
    ],
)
def test_the_generations_are_told_apart(parameters, second):
    space = {}
    exec(f"class Agent:\n    def generate_responses(self, {parameters}): ...", space)
    assert takes_api_responses(space["Agent"]()) == second


@pytest.mark.parametrize("answer", ["5", "[]", "{}", "null", "[" * 100_000])
def test_an_agent_that_speaks_over_the_runners_channel_costs_itself_only(tmp_path, answer):
    text = (
        f"import gc, io\nfor f in gc.get_objects():\n"
        "    if isinstance(f, io.TextIOWrapper) and f.fileno() > 2 and f.writable():\n"
        f"        f.write({answer!r} + chr(10)); f.flush()\n"
    )
    text += f"class UserAgent:\n    def generate_responses(self, test_data):\n        {ECHO}\n"
    assert "loading: " in run_file(tmp_path, text).problem


class BrokenApi:
    """A language model whose service is down."""

    def count(self, messages):
        return 1

    def complete(self, messages, max_tokens):
        raise TimeoutError("the service is down")


CALLER = """class UserAgent:
    def generate_responses(self, test_data, api_responses):
        if api_responses is None:
            prompts = [[{"role": "user", "content": "hi"}] for _ in test_data]
            return {"use_api": True, "prompts": prompts, "max_generated_tokens": [5] * len(test_data)}
        return {"use_api": False, "final_responses": api_responses}
"""


def test_a_language_model_that_fails_costs_those_who_call_it_only(tmp_path):
    (tmp_path / "caller.py").write_text(CALLER)
    roster = [{"id": "caller", "file": str(tmp_path / "caller.py")}, {"id": "other", "kind": "echo"}]
    caller, other = run_roster(roster, DIALOGUES, api=BrokenApi())
    assert "the language model failed: TimeoutError: the service is down" in caller.problem
    assert "turn 0" in caller.problem
    assert other.problem is None


def test_a_broken_file_of_a_system_that_is_known_already(tmp_path):
    answers = dict.fromkeys(items(DIALOGUES), "hello")
    write_submission(tmp_path / "all.jsonl", {"mine": answers, "other": answers})
    (tmp_path / "mine.jsonl").write_text("{")
    found = read_submissions([tmp_path], DIALOGUES)
    assert set(found.responses) == {"mine", "other"}
    assert list(found.problems) == ["mine (mine.jsonl)"]


# --- the embedded benchmark ------------------------------------------------------------------------------------------


@pytest.fixture
def at_root(root, monkeypatch):
    """Paths of the embedded roster are relative to the repository's root."""
    monkeypatch.chdir(root)
    return root


@pytest.fixture(scope="module")
def dialogues(root):
    return read_dialogues(root / "data/demo/dialogues.json")


def records(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_the_embedded_roster_is_valid_and_its_language_model_answers(at_root, dialogues):
    roster = read_roster("data/demo/agents.yaml")
    assert len(roster.agents) == len(roster.skills) == len(roster.systems) == 97
    assert {entry["kind"] for entry in roster.agents} == set(kinds())
    assert all("SIMULATED" in line for line in [(at_root / "data/demo/agents.yaml").read_text().splitlines()[0]])
    assert Counter(entry["track"] for entry in roster.agents) == {"gpu": 91, "api": 6}
    prompted = next(entry for entry in roster.agents if entry["track"] == "api")
    run = run_agent(prompted["id"], prompted, dialogues[:2], api=roster.api)
    assert run.problem is None
    assert len(run.responses) == 14
    assert run.calls >= 14
    assert run.output_tokens > 0


def test_the_embedded_dialogues_have_comperdials_shape(dialogues):
    assert [d.dialogue_id for d in dialogues] == [f"demo-{n:02d}" for n in range(1, 16)]
    assert {len(d.texts) for d in dialogues} == {14}
    assert len(list(items(dialogues))) == 105


def test_their_personas_are_those_that_the_pipeline_draws(root, dialogues):
    graph = personas.read_graph(root / "data/demo/peacok_kg.json")
    constraints = personas.read_constraints(root / "data/personas")
    drawn = personas.generate(graph, constraints, count=30, seed=2024).personas
    sentences = [persona.sentences for persona in drawn]
    assert [d.personas[speaker] for d in dialogues for speaker in "AB"] == sentences
    assert {len(s) for s in sentences} == {19, 20, 21}


def test_the_bank_knows_every_context_in_both_styles(root, dialogues):
    bank = records(root / "data/demo/response_bank.jsonl")
    said = {normalised(d.history(turn)[-1]["text"]) for d in dialogues for turn in range(d.turns)}
    assert len(said) == 105, "each last utterance tells its context"
    assert len(bank) == 210
    for style in ("concise", "verbose"):
        assert {normalised(r["last_utterance"]) for r in bank if r["style"] == style} == said


def test_the_simulated_people_answered_everything(root, dialogues):
    found = read_submissions([root / "data/demo/submissions"], dialogues)
    assert found.problems == {}
    assert set(found.responses) == {"human-1", "human-2"}
    assert all(len(answers) == 105 for answers in found.responses.values())
    assert all(found.systems[name]["kind"] == "human" for name in found.responses)
    assert all("SIMULATED" in found.systems[name]["description"] for name in found.responses)


def test_no_written_response_is_a_reference(root, dialogues):
    gold = {normalised(d.reference(turn)) for d in dialogues for turn in range(d.turns)}
    files = [root / "data/demo" / name for name in ("response_bank.jsonl", "corpus.jsonl")]
    files += sorted((root / "data/demo/submissions").glob("human-*.jsonl"))
    assert len(files) == 4
    for path in files:
        assert not [r["response"] for r in records(path) if normalised(r["response"]) in gold], path.name


def test_no_agent_is_shown_a_reference(dialogues):
    for dialogue in dialogues:
        for turn in range(dialogue.turns):
            for persona_a in (True, False):
                shown = json.dumps(dialogue.conversation(turn, persona_a=persona_a))
                assert json.dumps(dialogue.reference(turn)) not in shown
                assert len(dialogue.conversation(turn)["dialogue"]) == 2 * turn + 1


def test_all_embedded_texts_are_ascii(root):
    for path in sorted((root / "data/demo").rglob("*")):
        if path.is_file():
            assert path.read_bytes().isascii(), path
