"""The challenge: dialogues, agents, submissions, self-chats, personas, simulated raters, and the demo that ships."""

import copy
import gzip
import json
import re
from dataclasses import replace

import krippendorff
import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from comperdial import schema
from comperdial.challenge.agents import load, run_agent
from comperdial.challenge.dialogues import Dialogue, dialogues_of, make_tables, read_dialogues, to_data
from comperdial.challenge.pairs import read_dialogues as read_chats
from comperdial.challenge.personas import ASPECTS, fitting_age, generate, read_constraints, read_graph
from comperdial.challenge.simulation import Raters, read_raters, simulate
from comperdial.challenge.submissions import read_challenge, read_submissions, write_submission
from comperdial.cli import main
from comperdial.core.errors import ComperdialError, ConfigError, SchemaError
from comperdial.schema.dimensions import AXES, OVERALL
from conftest import ROOT

PERSONAS = {"A": ["i am a baker."], "B": ["i am a sailor."]}
DIALOGUES = [
    Dialogue(name, PERSONAS, tuple(f"{name} says {'AB'[i % 2]} {i}" for i in range(4))) for name in ("d1", "d2", "d3")
]
ITEMS = [(d.dialogue_id, turn) for d in DIALOGUES for turn in range(2)]
DEMO = ROOT / "data/demo"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Return the working directory, which has three dialogues."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dialogues.json").write_text(json.dumps([to_data(d) for d in DIALOGUES]))
    return tmp_path


def call(*arguments):
    return main([str(argument) for argument in arguments])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda e: e.pop("persona"), "entry 1: persona is missing"),
        (lambda e: e["dialogue"].pop(), "the speakers are A, B, A; expected A and B in turn, B last"),
        (lambda e: e["dialogue"][2].update(text=" "), "dialogue.2.text is ' '; expected a text that is not empty"),
        (lambda e: e.update(dialogue_id=None), "dialogue_id"),
    ],
)
def test_invalid_dialogue_is_reported(here, change, message):
    entry = to_data(replace(DIALOGUES[0], dialogue_id="100001"))
    assert entry["dialogue_id"] == 100001, "a number stays one"
    change(entry)
    (here / "data.json").write_text(json.dumps([entry]))
    with pytest.raises(SchemaError, match=re.escape(message)):
        read_dialogues(here / "data.json")


# Agents


def agent_file(folder, body):
    """Write a user's agent whose ``generate_responses`` has this body, and return its path."""
    lines = "\n".join(f"        {line}" for line in body.split("\n"))
    code = f"import json, sys\n\nclass UserAgent:\n    def generate_responses(self, test_data):\n{lines}\n"
    (folder / "agent.py").write_text(code)
    return f"{folder}/agent.py"


def test_an_agent_sees_the_gold_history_and_both_personas_of_at_most_50_conversations(tmp_path):
    responses = run_agent(load(agent_file(tmp_path, "return [json.dumps(d) for d in test_data]")), DIALOGUES)
    assert list(responses) == [(d.dialogue_id, turn) for turn in (0, 1) for d in DIALOGUES]
    shown = json.loads(responses["d2", 1])
    assert (shown["persona A"], shown["persona B"]) == (["i am a baker."], ["i am a sailor."])
    assert [u["text"] for u in shown["dialogue"]] == ["d2 says A 0", "d2 says B 1", "d2 says A 2"], "no reference"
    agent = load(agent_file(tmp_path, "return [str(len(test_data))] * len(test_data)"))
    responses = run_agent(agent, [replace(DIALOGUES[0], dialogue_id=str(number)) for number in range(51)])
    assert [responses[name, 0] for name in ("0", "49", "50")] == ["50", "50", "1"]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("raise ValueError('no idea')", "turn 0 of 3 conversations from 'd1': raised ValueError: no idea"),
        ("sys.exit(3)", "raised SystemExit"),
        ("return ['a']", "gave 1 for 3 conversations"),
        ("return ['a', '\\ud800', 'b']", "surrogates not allowed"),
        ("return (", "loading: raised SyntaxError"),
    ],
)
def test_agent_mistakes_are_reported(tmp_path, body, problem):
    with pytest.raises(ComperdialError, match=re.escape(problem)):
        run_agent(load(agent_file(tmp_path, body)), DIALOGUES)


def test_agent_class_with_custom_name_options_and_imports(tmp_path):
    (tmp_path / "words.py").write_text("WORD = 'well'\n")
    # Named as a module of Python's own, which it must not replace.
    (tmp_path / "json.py").write_text(
        "from words import WORD\nclass Other:\n    def __init__(self, n): self.n = n\n"
        "    def generate_responses(self, test_data): return [WORD * self.n] * 3\n"
    )
    responses = run_agent(load(f"{tmp_path}/json.py:Other", {"n": 2}), DIALOGUES)
    assert set(responses.values()) == {"wellwell"} and json.dumps(1) == "1"
    with pytest.raises(ConfigError, match="no class 'UserAgent'"):
        load(f"{tmp_path}/json.py")


# Submissions


def lines_of(answers, **more):
    records = [more | {"dialogue_id": d, "turn": turn, "response": text} for (d, turn), text in answers.items()]
    return "".join(json.dumps(record) + "\n" for record in records)


GOOD = {item: f"to {item[0]} at {item[1]}" for item in ITEMS}


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("bra{ce}.jsonl", "{}", "letters, digits"),
        ("short.jsonl", lines_of({ITEMS[0]: "a"}), "5 of 6 responses are missing, the first: dialogue 'd1', turn 1"),
        ("twice.jsonl", lines_of(GOOD) * 2, "line 7: dialogue 'd1', turn 0 a second time"),
        ("empty.jsonl", lines_of(GOOD | {ITEMS[2]: " "}), "line 3: response is ' '"),
        ("some.jsonl", lines_of(GOOD) + lines_of(GOOD, system_id="x"), "system_id in some lines only"),
        ("good.jsonl", lines_of(GOOD), "'good' a second time"),
        ("cut.jsonl.gz", "no gzip", "cannot be read"),
    ],
)
def test_invalid_submission_is_reported_and_others_accepted(here, name, text, problem):
    write_submission(here / "good.jsonl", GOOD)
    (here / "more").mkdir()
    (here / "more" / name).write_text(text)
    read = read_submissions([here / "good.jsonl", here / "more"], DIALOGUES)
    assert list(read.responses) == ["good"]
    (result,) = read.problems.values()
    assert problem in result


def test_a_challenge_becomes_tables(here):
    folder = here / "submissions"
    write_submission(folder / "one.jsonl", GOOD)
    many = lines_of(GOOD, system_id="two") + lines_of({ITEMS[0]: "a"}, system_id="bad")
    (folder / "many.jsonl.gz").write_bytes(gzip.compress(many.encode()))
    (folder / "systems.csv").write_text("system_id,kind,track,description\ntwo,human,,a person\n")
    failed = read_challenge("mini", here / "dialogues.json", [folder], here / "out")
    assert json.loads((here / "out/submissions.json").read_text()) == {"failed": failed, "systems": 2}
    names = ("contexts", "personas", "responses", "systems")
    contexts, personas, responses, systems = (schema.read(here / f"out/{name}.parquet", name) for name in names)
    assert list(failed) == ["bad"] and dialogues_of(contexts, personas) == DIALOGUES
    context = contexts.set_index("context_id").loc["d2-t1"]
    assert (context["references"], context["facts"]) == (["d2 says B 3"], ["i am a sailor."])
    assert responses.query("context_id == 'd2-t1'")["response"].tolist() == ["to d2 at 1"] * 2
    assert systems[["system_id", "kind", "description"]].to_numpy().tolist() == [
        ["one", "agent", ""],
        ["two", "human", "a person"],
    ]
    with pytest.raises(SchemaError, match="no submission that is complete"):
        read_challenge("mini", here / "dialogues.json", [folder / "systems.csv"], here / "out")


def test_the_commands_run_and_self_chat(here, capsys):
    body = "return [f\"{c['persona B'][0]} to {c['persona A'][0]} {len(c['dialogue'])}\" for c in test_data]"
    path = agent_file(here, body)
    run_it = ("challenge", "run", "dialogues.json", "--agent", path)
    assert call(*run_it, "--output", "mine.jsonl") == 0
    assert read_submissions([here / "mine.jsonl"], DIALOGUES).responses.keys() == {"mine"}
    chat = ("challenge", "self-chat", "--agent", path, "--openings", "dialogues.json", "--turns", 2)
    assert call(*chat, "--dialogues", 2, "--output", "chats.jsonl") == 0
    chats = read_chats(here / "chats.jsonl")
    assert list(chats) == [("d1", "chats"), ("d2", "chats")] and chats["d1", "chats"].judged == "B"
    # The agent answers as B each time.
    b, a = "i am a sailor. to i am a baker.", "i am a baker. to i am a sailor."
    assert chats["d1", "chats"].utterances == (("A", "d1 says A 0"), ("B", f"{b} 1"), ("A", f"{a} 2"), ("B", f"{b} 3"))
    capsys.readouterr()
    assert call(*run_it, "--output", "mine.json") == call(*chat, "--dialogues", 4, "--output", "c.jsonl") == 1
    error = capsys.readouterr().err
    assert "letters, digits, dots, - and _ that ends in .jsonl" in error and "at most 3, one per opening" in error


# Personas


@pytest.fixture(scope="module")
def graph():
    return read_graph(DEMO / "peacok_kg.json")


@pytest.fixture(scope="module")
def constraints():
    return read_constraints(ROOT / "data/personas")


def graph_of(folder, habit, experience):
    """Read a graph of one head whose two tails have these relations."""
    tails = {"tends to cattle": habit, "rode a horse": experience}
    attributes = {tail: {"attr_person": tail, **relation} for tail, relation in tails.items()}
    (folder / "kg.json").write_text(json.dumps({"i am a rancher": {"attributes": attributes}}))
    return read_graph(folder / "kg.json")


def test_graph_is_read_with_any_relation_names(tmp_path):
    heads = {"i am a rancher": {"routine_habit": ["tends to cattle"], "experience": ["rode a horse"]}}
    assert graph_of(tmp_path, {"relation": "routine_habit"}, {"relation": "experience"}) == heads
    habit, experience = ["Routine or Habit", "distinct"], ["experience without relationship", "distinct"]
    assert graph_of(tmp_path, {"main": habit}, {"main": experience}) == heads
    with pytest.raises(SchemaError, match="The texts in the places of relations are: blue"):
        graph_of(tmp_path, {"colour": "blue"}, {"colour": "blue"})


def test_negative_heads_and_gendered_words(graph, constraints):
    negative = ("forger", "con artist", "bully", "shoplifter", "burglar", "habitual liar")
    assert {head for head in graph if constraints.is_negative(head)} == {f"i am a {word}" for word in negative}
    assert not constraints.is_negative("i am a detective who catches thieves and burglars")
    for text, neutral in (
        ("i am a policeman.", "i am a police officer."),
        ("i am a man who cooks.", "i am a person who cooks."),
        ("i thank her for her help.", "i thank them for their help."),
        ("i call my boss when she is late.", "i call my boss when they are late."),
        ("i am a king in a stage play.", "i am a king in a stage play."),
        ("i manage human resources.", "i manage human resources."),
        ("i saw an usherette and a waitress.", "i saw an usherette and a server."),
    ):
        assert constraints.neutralise(text) == neutral


@pytest.mark.parametrize(
    ("sentence", "age", "goal", "fitting"),
    [
        ("i worked for a company for 20 years in the past.", 25, False, 34),
        ("i turned 60 with a cake in the past.", 41, False, 60),
        ("i retired from the navy in the past.", 25, False, 40),
        ("my character trait: a proud grandparent of three.", 38, False, 38),
        ("i intend to celebrate my 18th birthday in the future.", 33, True, 17),
        ("i intend to work for 20 years in the future.", 20, True, 20),
        ("i baked 300 loaves in the past.", 20, False, 20),
    ],
)
def test_ages_that_agree_with_a_sentence(sentence, age, goal, fitting):
    assert fitting_age(sentence, age, goal=goal) == fitting


def check(persona, constraints):
    """Check one persona against every constraint of the paper (3.1, A.3), reading its sentences."""
    name, age, family, *profile = persona.sentences
    years = int(age.removeprefix("i'm ").removesuffix(" years old."))
    assert persona.kinds[:3] == ["name", "age", "family"] and years == persona.age
    for head in persona.heads:
        assert years in constraints.ages_of(head) and not constraints.is_negative(head)
    first_name = name.removeprefix("my name is ").removesuffix(".")
    assert first_name in [n.lower() for n in constraints.names[min(years // 10 * 10, 50), persona.gender]]
    families = [info.lower() for info, ages in constraints.family.items() if years in ages]
    assert family in {info.replace("<n>", n) for info in families for n in ("two", "three")}
    assert persona.kinds.count("head") == 2 and set(persona.kinds[3:]) <= {"head", *ASPECTS} and len(profile) >= 10
    for sentence, kind in zip(profile, persona.kinds[3:], strict=True):
        assert constraints.neutralise(sentence) == sentence == sentence.lower()
        assert fitting_age(sentence, years, goal=kind.startswith("goal")) == years
        assert sentence.endswith(".") and ".." not in sentence


@settings(max_examples=4)
@given(seed=st.integers(0, 2**32))
def test_personas_keep_every_constraint_and_depend_on_the_seed_alone(graph, constraints, seed):
    drawn = generate(graph, constraints, count=30, seed=seed)
    for persona in drawn:
        check(persona, constraints)
    assert generate(graph, constraints, count=40, seed=seed)[:30] == drawn, "more leave the first as they were"
    other = generate(graph, constraints, count=30, seed=seed + 1)
    assert [p.sentences for p in other] != [p.sentences for p in drawn]


def test_sentence_overrides_age_and_too_few_heads_are_an_error(constraints):
    runner = {"i am a marathon runner": {"experience": ["ran"]}}
    heads = runner | {"i am a nurse": {"experience": ["worked nights for 30 years"]}}
    assert all(persona.age >= 44 for persona in generate(heads, constraints, count=10, seed=1))
    with pytest.raises(ConfigError, match="none of 1 heads fit together"):
        generate(runner | {"i am a forger": {"experience": ["forged"]}}, constraints, count=1, seed=1)


def test_the_command_personas(tmp_path, capsys):
    command = (
        f"personas {DEMO}/peacok_kg.json --constraints {ROOT}/data/personas --count 2 --seed 2024 --output".split()
    )
    assert call(*command, tmp_path / "p.json") == 0
    assert [p["persona_id"] for p in json.loads((tmp_path / "p.json").read_text())["personas"]] == ["P0001", "P0002"]
    assert call(*command, tmp_path / "q.json", "--default-ages", "50", "20") == 1
    assert "--default-ages: ages 50 20; expected the younger age first" in capsys.readouterr().err


# Simulated raters

MODEL = {
    "skill": {"good": 0.9, "fair": 0.5, "poor": 0.1},
    "turn": {
        "skill_weight": 1.0, "relevance_weight": 0.3, "dialogue_noise": 0.2, "system_dialogue_noise": 0.2,
        "turn_noise": 0.4, "short_words": 4, "short_turn": -0.5, "long_words": 40, "long_turn": -0.2,
    },
    "dialogue": {"long": -0.9, "dull": -0.6, "same_opening": -0.7, "noise": 0.3, "spread": 1.1},
    "thresholds": [-1.5, -0.5, 0.5, 1.5],
    "raters": [
        {"id": "ann", "slope": 1.0, "bias": 0.0, "turn_noise": 0.5, "dialogue_noise": 0.5, "mark": 0.6},
        {"id": "bob", "slope": 0.9, "bias": -0.3, "turn_noise": 0.6, "dialogue_noise": 0.6, "mark": 0.9},
    ],
}  # fmt: skip


def still(turn=None, dialogue=None):
    """Return a model in which only the given weights affect the truth."""
    model = copy.deepcopy(MODEL)
    model["turn"] = dict.fromkeys(MODEL["turn"], 0.0) | {"short_words": 4, "long_words": 40} | (turn or {})
    model["dialogue"] = dict.fromkeys(MODEL["dialogue"], 0.0) | {"spread": 1.0} | (dialogue or {})
    return Raters(**model)


def tables_of(answers):
    """Return contexts and responses of four invented dialogues: system -> its response at a turn."""
    personas = {"A": ["i am a baker."], "B": ["i am a sailor.", "i intend to cross the ocean in the future."]}
    texts = {f"d{n}": tuple(f"utterance number {i} of talk {n} about trains" for i in range(6)) for n in range(4)}
    talks = [Dialogue(name, personas, said) for name, said in texts.items()]
    responses = {
        s: {(name, turn): answer(turn) for name in texts for turn in range(3)} for s, answer in answers.items()
    }
    systems = {system: {"kind": "agent", "track": None, "description": ""} for system in answers}
    tables = make_tables("mini", talks, systems, responses, where="test")
    return tables["contexts"], tables["responses"]


def plain(turn):
    """Six words, no habit."""
    return f"so {'abcdefgh'[turn] * 3} answer that of dialogue"


MINI = tables_of(
    {"good": lambda t: f"{'xyz'[t]} i cross the ocean on trains", "fair": plain, "poor": lambda _: "no", "other": plain}
)


def test_ratings_depend_on_the_seed_and_not_on_the_order_or_on_systems_without_a_skill():
    contexts, responses = MINI
    model = Raters(**MODEL)
    one = simulate(contexts, responses, model, seed=7)
    shuffled = responses[responses["system_id"] != "other"].sample(frac=1, random_state=2)
    for here, there in zip(one, simulate(contexts.sample(frac=1), shuffled, model, seed=7), strict=True):
        assert {*here["system_id"]} == {*MODEL["skill"]}
        pd.testing.assert_frame_equal(here, there)
    assert not simulate(contexts, responses, model, seed=8)[0].equals(one[0])
    with pytest.raises(ConfigError, match="no system that has responses has a skill"):
        simulate(contexts, responses[responses["system_id"] == "other"], model, seed=7)


def test_ratings_are_marked_as_simulated_and_marks_come_with_low_scores():
    ratings, truth = simulate(*MINI, Raters(**MODEL), seed=7)
    assert {*ratings["source"]} == {"simulated"} and {*truth["signature"]} == {"simulated_truth|seed:7"}
    assert {*ratings.query("level == 'turn'")["dimension"]} == {OVERALL}
    assert {*ratings.query("level == 'dialogue'")["dimension"]} == {OVERALL, *AXES}
    marks, overall = ratings.query("dimension != @OVERALL and rating == 0"), ratings.query("dimension == @OVERALL")
    both = marks.merge(overall, on=["level", "item_id", "system_id", "annotator_id"], suffixes=("", "_overall"))
    assert len(both) == len(marks) > 0 and both["rating_overall"].max() <= 3


@pytest.mark.parametrize(
    ("parts", "level", "better", "worse"),
    [
        ({"turn": {"skill_weight": 1.0}}, "turn", "good", "poor"),
        ({"turn": {"relevance_weight": 1.0}}, "turn", "good", "fair"),
        ({"turn": {"short_turn": -1.0}}, "turn", "fair", "poor"),
        ({"turn": {"long_words": 5, "long_turn": -1.0}}, "turn", "poor", "good"),
        ({"dialogue": {"dull": -1.0}}, "dialogue", "fair", "poor"),
        ({"dialogue": {"same_opening": -1.0}}, "dialogue", "fair", "poor"),
        ({"dialogue": {"long": -1.0}, "turn": {"long_words": 5}}, "dialogue", "poor", "fair"),
    ],
)
def test_each_weight_has_its_effect_and_zero_removes_it(parts, level, better, worse):
    truth = simulate(*MINI, still(**parts), seed=1)[1].query("level == @level").groupby("system_id")["value"].mean()
    assert truth[better] > truth[worse]
    assert (simulate(*MINI, still(), seed=1)[1]["value"] == 0).all()


def test_the_command_replaces_simulated_ratings_and_no_others(tmp_path, capsys):
    for name, frame in zip(("contexts", "responses"), MINI, strict=True):
        schema.write(tmp_path / f"{name}.parquet", frame, name)
    (tmp_path / "raters.yaml").write_text(yaml.safe_dump(MODEL))
    command = ["simulate", tmp_path, "--raters", tmp_path / "raters.yaml", "--seed", "7"]
    assert call(*command) == call(*command) == 0
    ratings = schema.ratings_in(tmp_path)
    schema.write(tmp_path / "ratings.parquet", ratings.assign(source=["human", *ratings["source"][1:]]), "ratings")
    assert call(*command) == 1 and "it holds ratings by human" in capsys.readouterr().err


# The demo


@pytest.fixture(scope="module")
def demo():
    """Return the demo's dialogues and submissions."""
    dialogues = read_dialogues(DEMO / "dialogues.json")
    return dialogues, read_submissions([DEMO / "submissions"], dialogues)


def test_simulated_ratings_recover_the_truth(demo):
    """Mean ratings of systems, and Krippendorff's alpha of the six raters, in five of the demo's dialogues."""
    dialogues, submissions = demo
    names = {dialogue.dialogue_id for dialogue in dialogues[:5]}
    responses = {
        s: {item: text for item, text in r.items() if item[0] in names} for s, r in submissions.responses.items()
    }
    tables = make_tables("demo", dialogues[:5], submissions.systems, responses, where="demo")
    rated = simulate(tables["contexts"], tables["responses"], read_raters(DEMO / "raters.yaml"), seed=2024)
    for level, count, r, alpha in (("turn", 3465, 0.996, 0.585), ("dialogue", 495, 0.989, 0.681)):
        ratings, truth = (frame[frame["level"] == level] for frame in rated)
        overall = ratings[ratings["dimension"] == OVERALL]
        table = overall.pivot(index="annotator_id", columns=["item_id", "system_id"], values="rating")
        assert table.shape == (6, count)
        means = [frame.groupby("system_id")[column].mean() for frame, column in ((overall, "rating"), (truth, "value"))]
        assert np.corrcoef(*means)[0, 1] == pytest.approx(r, abs=5e-4)
        assert krippendorff.alpha(table.to_numpy(), level_of_measurement="interval") == pytest.approx(alpha, abs=5e-3)


def test_demo_has_comperdial_shape_and_pipeline_personas(demo, graph, constraints):
    dialogues, submissions = demo
    assert [dialogue.turns for dialogue in dialogues] == [7] * 15
    kinds = [about["kind"] for about in submissions.systems.values()]
    assert (kinds.count("agent"), kinds.count("human"), submissions.problems) == (97, 2, {})
    assert {*read_raters(DEMO / "raters.yaml").skill} == {*submissions.responses}
    drawn = [persona.sentences for persona in generate(graph, constraints, count=30, seed=2024)]
    assert [dialogue.personas[speaker] for dialogue in dialogues for speaker in "AB"] == drawn
    references = {dialogue.reference(turn) for dialogue in dialogues for turn in range(dialogue.turns)}
    for system in ("human-1", "human-2"):
        assert not references & {*submissions.responses[system].values()}
