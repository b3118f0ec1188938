"""Persona profiles: the graph's layouts, the rules of ComperDial 3.1 and A.3, and what each must keep."""

import json
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comperdial.challenge import personas
from comperdial.challenge.personas.contradictions import age_contradiction, family_contradiction
from comperdial.challenge.personas.graph import ASPECTS, aspect_of
from comperdial.challenge.personas.rules import read_constraints
from comperdial.core.errors import ConfigError, SchemaError


@pytest.fixture(scope="module")
def graph(root):
    return personas.read_graph(root / "data/demo/peacok_kg.json")


@pytest.fixture(scope="module")
def constraints(root):
    return read_constraints(root / "data/personas")


# One small graph in each of the published layouts.
HEADS = {
    "i am a rancher": {
        "routine_habit": ["tends to cattle"],
        "goal_plan_relationship": ["pass my ranch down to my children"],
        "experience": ["rode a horse for the first time"],
    },
    "i am a bodyguard": {"characteristic": ["strength"]},
}


def current(relation="relation"):
    return {
        head: {
            "head_third": f"PersonX {head[2:]}",
            "head_person": f"{head}.",
            "attributes": {
                tail: {"attr_third": f"they {tail}", "attr_person": tail, relation: aspect}
                for aspect, tails in aspects.items()
                for tail in tails
            },
        }
        for head, aspects in HEADS.items()
    }


def older():
    return {
        head.removeprefix("i am "): {
            "phrases": {
                tail: {
                    "final": {
                        "majority": [
                            aspect.removesuffix("_relationship"),
                            "relationship" if aspect.endswith("_relationship") else "self",
                            "distinct",
                        ]
                    },
                    "source_relation": "characteristic",
                }
                for aspect, tails in aspects.items()
                for tail in tails
            }
        }
        for head, aspects in HEADS.items()
    }


def triples():
    return [f"{h}\t{aspect}\t{t}" for h, aspects in HEADS.items() for aspect, tails in aspects.items() for t in tails]


@pytest.mark.parametrize("content", [current(), current("main_relation"), older(), triples()])
def test_every_layout_gives_the_same_graph(tmp_path, content):
    path = tmp_path / "peacok_kg.json"
    path.write_text(json.dumps(content))
    assert personas.read_graph(path).heads == HEADS


def test_triples_as_text(tmp_path):
    (tmp_path / "kg.txt").write_text("\n".join(triples()) + "\n")
    found = personas.read_graph(tmp_path / "kg.txt")
    assert found.heads == HEADS
    assert found.report["tails"] == 4


def test_the_relation_s_field_is_reported_and_votes_against_a_tail_leave_it_out(tmp_path):
    content = older()
    content["bodyguard" if "bodyguard" in content else "a bodyguard"]["phrases"]["strength"]["final"]["majority"] = [
        "not sure"
    ]
    (tmp_path / "kg.json").write_text(json.dumps(content))
    found = personas.read_graph(tmp_path / "kg.json")
    assert found.report["relation"] == "final.majority.0 with final.majority.1"
    assert found.report["left_out"] == {"not sure": 1}
    assert found.heads["i am a bodyguard"] == {}


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ({"a rancher": {"attributes": {"tends": {"attr_person": "tend", "colour": "blue"}}}}, "colour: blue"),
        ({"a rancher": {"edges": {}}}, "not a layout"),
        ({"a rancher": {"attributes": {"tends": 3}}}, "head 'a rancher'"),
        (
            {"a rancher": {"attributes": {"tends": {"attr_person": ["tend"], "relation": "routine_habit"}}}},
            r"head 'a rancher', attribute 'tends': `attr_person` is \['tend'\]; expected a text",
        ),
        (
            {"a rancher": {"head_person": 3, "attributes": {"tends": {"relation": "routine_habit"}}}},
            "head 'a rancher': `head_person` is 3; expected a text",
        ),
        (["a rancher\troutine_habit"], "line 1"),
        ([], "no head with a tail"),
    ],
)
def test_an_unknown_layout_is_one_clear_message(tmp_path, content, named):
    (tmp_path / "kg.json").write_text(json.dumps(content))
    with pytest.raises(SchemaError, match=named):
        personas.read_graph(tmp_path / "kg.json")


@pytest.mark.parametrize(
    ("relation", "aspect"),
    [
        ("characteristic", "characteristic"),
        ("Routine or Habit", "routine_habit"),
        ("routine_habit_relationship", "routine_habit_relationship"),
        ("GoalPlanRelationship", "goal_plan_relationship"),
        ("experience without relationship", "experience"),
        ("Goal or Plan (relationship)", "goal_plan_relationship"),
        ("none of these", None),
        ("", None),
    ],
)
def test_relations_by_any_of_their_names(relation, aspect):
    assert aspect_of(relation) == aspect


def test_negative_heads_are_exactly_those_we_wrote_as_such(graph, constraints):
    negative = {head for head in graph.heads if constraints.is_negative(head)}
    assert negative == {
        f"i am a {w}" for w in ("forger", "con artist", "bully", "shoplifter", "burglar", "habitual liar")
    }
    assert len(graph.heads) - len(negative) >= 60
    assert constraints.is_negative("i am a dishonest person") == "dishonest"
    assert constraints.is_negative("i am a detective who catches thieves and burglars") is None


@pytest.mark.parametrize(
    ("text", "neutral"),
    [
        ("i am a policeman.", "i am a police officer."),
        ("i trained with the other firemen in the past.", "i trained with the other firefighters in the past."),
        ("i am an actress.", "i am an actor."),
        ("i am a man who cooks.", "i am a person who cooks."),
        ("i thank her for her help.", "i thank them for their help."),
        ("i call my boss when she is late.", "i call my boss when they are late."),
        ("i am a king in a stage play.", "i am a king in a stage play."),
        ("i manage human resources.", "i manage human resources."),
        ("i saw an usherette and a waitress.", "i saw an usherette and a server."),
    ],
)
def test_gendered_words_become_neutral(constraints, text, neutral):
    assert constraints.neutralise(text)[0] == neutral


def test_what_was_neutralised_is_told(constraints):
    assert constraints.neutralise("a king and a salesman")[1] == ["king (no neutral word)", "salesman -> salesperson"]


@pytest.mark.parametrize(
    ("sentence", "age", "goal", "rule"),
    [
        ("i worked for a company for 20 years in the past.", 25, False, "more years than lived"),
        ("i worked for a company for 20 years in the past.", 34, False, None),
        ("i turned 60 with a cake in the past.", 41, False, "an age not reached"),
        ("i retired from the navy in the past.", 25, False, "retired"),
        ("i am a grandparent of three.", 30, False, "grandparent"),
        ("my character trait: a proud grandparent of three.", 24, False, "grandparent"),
        ("my character trait: a proud grandparent of three.", 38, False, None),
        ("i intend to celebrate my 18th birthday in the future.", 33, True, "already older"),
        ("i intend to celebrate my 18th birthday in the future.", 17, True, None),
        ("i intend to work for 20 years in the future.", 20, True, None),
        ("i baked 300 loaves in the past.", 20, False, None),
    ],
)
def test_contradictions_with_the_age(sentence, age, goal, rule):
    found = age_contradiction(sentence, age, goal=goal)
    assert (found is None) if rule is None else rule in found.rule


@pytest.mark.parametrize(
    ("sentence", "family", "contradicts"),
    [
        ("i regularly or consistently cook for my roommate.", "I live on my own.", True),
        ("i intend to visit my sister in the future.", "I am an only child.", True),
        ("i intend to welcome my first child in the future.", "I have two sons.", True),
        ("i regularly or consistently swim.", "I live on my own.", False),
    ],
)
def test_contradictions_with_the_family(sentence, family, contradicts):
    assert bool(family_contradiction(sentence, family)) == contradicts


def check(persona, graph, constraints):
    """Hold one persona to every constraint, reading its sentences and not what the generator says of them."""
    name, age, family, *profile = persona.sentences
    assert persona.kinds[:3] == ["name", "age", "family"]
    years = int(age.removeprefix("i'm ").removesuffix(" years old."))
    assert years == persona.age
    for head in persona.heads:
        assert years in constraints.ages_of(head)
        assert not constraints.is_negative(head)
    first_name = name.removeprefix("my name is ").removesuffix(".")
    assert first_name in [n.lower() for n in constraints.names[min(years // 10 * 10, 50), persona.gender]]
    spelled = [
        info.lower().replace("<n>", n)
        for info, ages in constraints.family.items()
        if years in ages
        for n in ("two", "three")
    ]
    assert family in spelled
    assert persona.kinds.count("head") == 2
    assert set(persona.kinds[3:]) <= {"head", *ASPECTS}
    assert len(profile) == len(persona.kinds) - 3 >= 2 + 2 * 4
    for sentence, kind in zip(profile, persona.kinds[3:], strict=True):
        assert not constraints.gendered_words(sentence)
        assert age_contradiction(sentence, years, goal=kind.startswith("goal")) is None
        assert family_contradiction(sentence, family) is None
        assert sentence == sentence.lower()
        assert sentence.endswith(".") and ".." not in sentence


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32))
def test_a_thousand_personas_keep_every_constraint(graph, constraints, seed):
    drawn = personas.generate(graph, constraints, count=50, seed=seed)
    for persona in drawn.personas:
        check(persona, graph, constraints)
    again = personas.generate(graph, constraints, count=50, seed=seed)
    assert again.personas == drawn.personas
    other = personas.generate(graph, constraints, count=50, seed=seed + 1)
    assert [p.sentences for p in other.personas] != [p.sentences for p in drawn.personas]


def test_more_personas_leave_the_first_as_they_were(graph, constraints):
    few = personas.generate(graph, constraints, count=3, seed=7).personas
    assert personas.generate(graph, constraints, count=9, seed=7).personas[:3] == few


def test_a_contradiction_is_resolved_and_reported(constraints):
    head, other = "i am a nurse", "i am a marathon runner"
    graph = personas.Graph({head: {"experience": ["worked nights for 30 years"]}, other: {"experience": ["ran"]}})
    drawn = personas.generate(graph, constraints, count=30, seed=1)
    assert all(p.age >= 44 for p in drawn.personas)
    found = drawn.report()["contradictions"]
    assert found
    assert {c["done"] for c in found} == {"the age became 44"}


def test_too_few_usable_heads(constraints):
    graph = personas.Graph({"i am a forger": {"experience": ["forged"]}, "i am a nurse": {"experience": ["nursed"]}})
    with pytest.raises(ConfigError, match="1 of 2 heads are usable"):
        personas.generate(graph, constraints, count=1, seed=1)


@pytest.mark.parametrize(
    ("file", "text", "named"),
    [
        ("names.csv", "generation,gender,name\n10,x,Liam\n", "line 2: gender 'x'"),
        ("family.csv", "family_info,start_age,end_age\nI have a dog.,50,20\n", "line 2: ages 50 to 20"),
        ("ages.csv", "head,start_age,end_age\na nurse,young,20\n", "line 2: age 'young'"),
        ("ages.csv", "head,start\na nurse,20\n", "start_age"),
    ],
)
def test_a_wrong_constraint_is_named_by_line(root, tmp_path, file, text, named):
    for path in (root / "data/personas").glob("*.csv"):
        (tmp_path / path.name).write_text(path.read_text())
    (tmp_path / file).write_text(text)
    with pytest.raises(SchemaError, match=named):
        read_constraints(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("names.csv", "generation,gender,name\n", "names.csv: no names"),
        ("gender_neutral.csv", "gendered,neutral\n,person\n", "line 2: no value in column 'gendered'"),
    ],
)
def test_constraints_that_are_none(root, tmp_path, name, content, message):
    shutil.copytree(root / "data/personas", tmp_path / "personas")
    (tmp_path / "personas" / name).write_text(content)
    with pytest.raises(SchemaError, match=message):
        read_constraints(tmp_path / "personas")


def test_a_list_of_no_words_forbids_and_replaces_nothing(root, tmp_path):
    shutil.copytree(root / "data/personas", tmp_path / "personas")
    (tmp_path / "personas/gender_neutral.csv").write_text("gendered,neutral\n")
    (tmp_path / "personas/negative.csv").write_text("word,kind\n")
    found = read_constraints(tmp_path / "personas")
    assert found.neutralise("i am a policeman") == ("i am a policeman", [])
    assert found.is_negative("i am a thief") is None
