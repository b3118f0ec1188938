"""Persona profiles: the graph, the rules of ComperDial 3.1 and A.3, and what each must keep."""

import json
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comperdial.challenge.personas import (
    ASPECTS,
    aspect_of,
    fitting_age,
    generate,
    read_constraints,
    read_graph,
)
from comperdial.cli import main
from comperdial.core.errors import ConfigError, SchemaError


@pytest.fixture(scope="module")
def graph(root):
    return read_graph(root / "data/demo/peacok_kg.json")


@pytest.fixture(scope="module")
def constraints(root):
    return read_constraints(root / "data/personas")


HEADS = {
    "i am a rancher": {
        "routine_habit": ["tends to cattle"],
        "goal_plan_relationship": ["pass my ranch down to my children"],
        "experience": ["rode a horse for the first time"],
    },
    "i am a bodyguard": {"characteristic": ["strength"]},
}


def peacok(relation):
    """A small graph in PeaCoK's layout; ``relation`` makes the fields that hold an aspect."""
    return {
        head: {
            "head_third": f"PersonX {head[2:]}",
            "head_person": f"{head}.",
            "attributes": {
                tail: {"attr_third": f"they {tail}", "attr_person": tail, **relation(aspect)}
                for aspect, tails in aspects.items()
                for tail in tails
            },
        }
        for head, aspects in HEADS.items()
    }


@pytest.mark.parametrize("relation", [lambda a: {"relation": a}, lambda a: {"main": [a, "distinct"]}])
def test_a_relation_is_read_from_any_field(tmp_path, relation):
    path = tmp_path / "peacok_kg.json"
    path.write_text(json.dumps(peacok(relation)))
    assert read_graph(path) == HEADS


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (
            {"a rancher": {"attributes": {"tends": {"attr_person": "tend", "colour": "blue"}}}},
            "The texts in the places of relations are: blue",
        ),
        ({"a rancher": {"edges": {}}}, "a rancher.attributes is missing"),
        ({"a rancher": {"attributes": {"tends": 3}}}, "a rancher.attributes.tends is 3"),
        (
            {"a rancher": {"attributes": {"tends": {"attr_person": ["tend"], "relation": "routine_habit"}}}},
            r"head 'a rancher', attribute 'tends', attr_person: it is \['tend'\]; expected a valid string",
        ),
        (
            {"a rancher": {"head_person": 3, "attributes": {"tends": {"relation": "routine_habit"}}}},
            "a rancher.head_person is 3",
        ),
        (["a rancher\troutine_habit\ttends"], "it is .*; expected a valid dictionary"),
        ({}, "no head with a tail"),
    ],
)
def test_an_unknown_layout_is_one_clear_message(tmp_path, content, named):
    (tmp_path / "kg.json").write_text(json.dumps(content))
    with pytest.raises(SchemaError, match=named):
        read_graph(tmp_path / "kg.json")


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
    negative = {head for head in graph if constraints.is_negative(head)}
    assert negative == {
        f"i am a {w}" for w in ("forger", "con artist", "bully", "shoplifter", "burglar", "habitual liar")
    }
    assert len(graph) - len(negative) >= 60
    assert constraints.is_negative("i am a dishonest person")
    assert not constraints.is_negative("i am a detective who catches thieves and burglars")


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
    assert constraints.neutralise(text) == neutral


@pytest.mark.parametrize(
    ("sentence", "age", "goal", "fitting"),
    [
        ("i worked for a company for 20 years in the past.", 25, False, 34),
        ("i worked for a company for 20 years in the past.", 34, False, 34),
        ("i turned 60 with a cake in the past.", 41, False, 60),
        ("i retired from the navy in the past.", 25, False, 40),
        ("i am a grandparent of three.", 30, False, 38),
        ("my character trait: a proud grandparent of three.", 38, False, 38),
        ("i intend to celebrate my 18th birthday in the future.", 33, True, 17),
        ("i intend to celebrate my 18th birthday in the future.", 17, True, 17),
        ("i intend to work for 20 years in the future.", 20, True, 20),
        ("i baked 300 loaves in the past.", 20, False, 20),
    ],
)
def test_ages_that_agree_with_a_sentence(sentence, age, goal, fitting):
    assert fitting_age(sentence, age, goal=goal) == fitting


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
        assert constraints.neutralise(sentence) == sentence
        assert fitting_age(sentence, years, goal=kind.startswith("goal")) == years
        assert sentence == sentence.lower()
        assert sentence.endswith(".") and ".." not in sentence


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32))
def test_a_thousand_personas_keep_every_constraint(graph, constraints, seed):
    drawn = generate(graph, constraints, count=50, seed=seed)
    for persona in drawn:
        check(persona, graph, constraints)
    assert generate(graph, constraints, count=50, seed=seed) == drawn
    other = generate(graph, constraints, count=50, seed=seed + 1)
    assert [p.sentences for p in other] != [p.sentences for p in drawn]


def test_more_personas_leave_the_first_as_they_were(graph, constraints):
    few = generate(graph, constraints, count=3, seed=7)
    assert generate(graph, constraints, count=9, seed=7)[:3] == few


def test_an_age_gives_way_to_a_sentence(constraints):
    heads = {
        "i am a nurse": {"experience": ["worked nights for 30 years"]},
        "i am a marathon runner": {"experience": ["ran"]},
    }
    assert all(persona.age >= 44 for persona in generate(heads, constraints, count=30, seed=1))


def test_too_few_usable_heads(constraints):
    heads = {"i am a forger": {"experience": ["forged"]}, "i am a nurse": {"experience": ["nursed"]}}
    with pytest.raises(ConfigError, match="none of 1 heads fit together"):
        generate(heads, constraints, count=1, seed=1)


@pytest.mark.parametrize(
    ("file", "text", "named"),
    [
        ("names.csv", "generation,gender,name\n10,x,Liam\n", "line 2: gender is 'x'"),
        ("names.csv", "generation,gender,name\n", "no names"),
        ("family.csv", "family_info,start_age,end_age\nI have a dog.,50,20\n", "line 2.*ages from 50 to 20"),
        ("ages.csv", "who,start_age,end_age\na nurse,10,20\n", "line 2: head is missing"),
        ("ages.csv", "head,start_age,end_age\na nurse,young,20\n", "line 2: start_age is 'young'"),
        ("ages.csv", "head,start\na nurse,20\n", "start_age is missing"),
        ("gender_neutral.csv", "gendered,neutral\n,person\n", "line 2: gendered is ''"),
    ],
)
def test_a_wrong_constraint_is_named_by_line(root, tmp_path, file, text, named):
    shutil.copytree(root / "data/personas", tmp_path / "personas")
    (tmp_path / "personas" / file).write_text(text)
    with pytest.raises(SchemaError, match=named):
        read_constraints(tmp_path / "personas")


def test_a_list_of_no_words_forbids_and_replaces_nothing(root, tmp_path):
    shutil.copytree(root / "data/personas", tmp_path / "personas")
    (tmp_path / "personas/gender_neutral.csv").write_text("gendered,neutral\n")
    (tmp_path / "personas/negative.csv").write_text("word,kind\n")
    result = read_constraints(tmp_path / "personas")
    assert result.neutralise("i am a policeman") == "i am a policeman"
    assert not result.is_negative("i am a thief")


def test_the_command(root, tmp_path, capsys):
    graph, constraints = str(root / "data/demo/peacok_kg.json"), str(root / "data/personas")
    command = ["personas", graph, "--constraints", constraints, "--count", "2", "--seed", "2024"]
    assert main([*command, "--output", str(tmp_path / "p.json")]) == 0
    assert [p["persona_id"] for p in json.loads((tmp_path / "p.json").read_text())["personas"]] == ["P0001", "P0002"]
    assert main([*command, "--default-ages", "50", "20", "--output", str(tmp_path / "q.json")]) == 1
    assert "--default-ages: ages 50 20; expected the younger age first" in capsys.readouterr().err
