"""The study's prompts and questions, ours and the paper's."""

import argparse

import pytest
import yaml

from comperdial.cli import prompts as command
from comperdial.core.errors import ConfigError, MissingResourceError, UnknownNameError
from comperdial.judges.base import Form
from comperdial.judges.parse import parse
from comperdial.judges.prompting import STUDY, find_question, load, names, questions, render

TURN = ("relevance", "specificity", "interestingness", "understandability", "overall")
DIALOGUE = ("coherence", "engagingness", "diversity", "informativeness", "overall")
HISTORY = [{"speaker": "A", "text": "Seen my kite?"}]
TALK = [*HISTORY, {"speaker": "B", "text": "It flew over the hill. Was it new?"}]
VALUES = {"history": HISTORY, "response": "By the {{ mill }}.", "dialogue": TALK}


# ---- prompts


def test_the_study_s_prompts_have_their_fields_and_levels():
    assert names()[-4:] == STUDY
    found = {name: (load(name).fields, load(name).level) for name in STUDY}
    assert found == {
        "explicit_turn": ({"history", "response"}, "turn"),
        "explicit_dialogue": ({"dialogue"}, "dialogue"),
        "implicit_turn": ({"history", "response", "question"}, "turn"),
        "implicit_dialogue": ({"dialogue", "question"}, "dialogue"),
    }


@pytest.mark.parametrize(("name", "dimensions"), [("implicit_turn", TURN), ("implicit_dialogue", DIALOGUE)])
def test_each_dimension_has_a_question_that_is_part_of_the_hash(name, dimensions):
    prompts = [load(name, question=dimension) for dimension in dimensions]
    assert len({prompt.hash for prompt in [load(name), *prompts]}) == 6
    for dimension, prompt in zip(dimensions, prompts, strict=True):
        text = render(prompt, VALUES)
        asked = find_question(dimension, prompt.level)
        assert text.endswith(f"### Question:\n{asked}\n### Answer:") and asked.endswith("?")
        assert prompt.source == "ours" and "question" not in prompt.fields


def test_a_question_of_ones_own_is_text_and_nothing_else():
    prompt = load("implicit_turn", question="Is {{ this }} {% it %}?\n### Response:")
    assert "### Question:\nIs {{ this }} {% it %}? ### Response:\n### Answer:" in render(prompt, VALUES)
    with pytest.raises(UnknownNameError, match=r"unknown question at dialogue level 'relevance'"):
        load("implicit_dialogue", question="relevance")
    with pytest.raises(ConfigError, match="no place for it"):
        load("explicit_turn", question="relevance")
    with pytest.raises(ConfigError, match="no value for `question`"):
        render(load("implicit_turn"), VALUES)


def test_a_template_of_ones_own_has_a_place_for_a_question(tmp_path):
    path = tmp_path / "mine.md"
    path.write_text("{{ response }}\n{{question}} Good or bad?")
    prompt = load(str(path), question="Is it kind to people?")
    assert render(prompt, {"response": "No."}) == "No.\nIs it kind to people? Good or bad?"
    assert prompt.source == str(path)


# ---- a paper's own questions


@pytest.fixture
def folder(tmp_path):
    """Return a folder with questions of a paper."""
    made = {level: {name: f"Is it {name}, {level}?" for name in known} for level, known in questions().items()}
    (tmp_path / "questions.yaml").write_text(yaml.safe_dump(made))
    return tmp_path


def test_the_questions_of_a_folder_are_asked_in_our_frame(folder, capsys):
    theirs = load("implicit_turn", str(folder), question="relevance")
    ours = load("implicit_turn", question="relevance")
    assert theirs.source == str(folder / "questions.yaml") and theirs.hash != ours.hash
    assert theirs.template == ours.template.replace(questions()["turn"]["relevance"], "Is it relevance, turn?")
    assert load("explicit_turn", str(folder)) == load("explicit_turn")
    assert load("implicit_turn", str(folder), question="Is it mine?").source == "ours"
    parser = argparse.ArgumentParser()
    command.add_commands(parser.add_subparsers())
    options = parser.parse_args(["prompts", "show", "implicit_turn", "--question", "overall", "--prompts", str(folder)])
    options.run(options)
    assert "### Question:\nIs it overall, turn?\n" in capsys.readouterr().out


def test_a_folder_whose_questions_are_missing_or_incomplete_is_named(folder):
    (folder / "questions.yaml").write_text("turn:\n  relevance: Is it?\n")
    with pytest.raises(ConfigError, match=r"questions\.yaml: no questions at dialogue level"):
        load("implicit_turn", str(folder), question="relevance")
    (folder / "questions.yaml").unlink()
    with pytest.raises(MissingResourceError, match=r"questions\.yaml: there is no 'questions\.yaml' in the folder"):
        load("implicit_turn", str(folder), question="relevance")


# ---- rules


def said(*texts, prompt="explicit_dialogue"):
    """Return what `rules` rates a conversation whose lines A and B take turns in; B speaks last."""
    talk = [{"speaker": "AB"[(len(texts) - place) % 2], "text": text} for place, text in enumerate(texts, 1)]
    return decide(read(render(load(prompt), {"dialogue": [t | {"speaker": "BA"[t["speaker"] == "B"]} for t in talk]})))


GOOD = (
    "Do you like the sea?",
    "I swim in the harbour every morning, the water is warm until October.",
    "Which harbour is that?",
    "The old one of Chania, behind the lighthouse. Have you been to Crete?",
)


    for name, dimensions in (("explicit_turn", TURN), ("explicit_dialogue", DIALOGUE)):
        for explain in (False, True):
            text = render(load(name, explain=explain), VALUES)
            answer = respond([{"role": "user", "content": text}])
            parsed = parse(answer.text, Form(dimensions, "overall"))
            assert parsed.failure is None and tuple(parsed.values) == dimensions
            assert bool(parsed.rationale) is explain
            assert answer == respond([{"role": "user", "content": text}])
            assert parsed.values == decide(read(text))


def test_the_words_for_a_turn_are_rated_as_those_of_the_prompt_they_stand_for():
    """The answers to prompts of before stay what they were, so the version does."""
    assert VERSION == 1
    assert decide(read(render(load("explicit_turn"), VALUES))) == decide(read(render(load("original_simple"), VALUES)))


def test_a_worse_conversation_is_rated_lower_where_it_is_worse():
    good = said(*GOOD)
    same = said(GOOD[0], GOOD[1], GOOD[2], GOOD[1])
    assert same["diversity"] < good["diversity"] and same["coherence"] < good["coherence"]
    echo = said(GOOD[0], GOOD[0], GOOD[2], GOOD[2])
    assert echo["engagingness"] < good["engagingness"] and echo["informativeness"] < good["informativeness"]
    dull = said(GOOD[0], "Yes.", GOOD[2], "I do not know.")
    assert all(dull[name] < good[name] for name in ("coherence", "engagingness", "informativeness", "overall"))
    assert said("Hm.", "", "So?", "...") == dict.fromkeys(DIALOGUE, 1)
    assert said("Hi.") == said("Hi.") and all(1 <= value <= 5 for value in said("Hi.").values())


def test_only_the_last_speaker_is_rated():
    """What the other says matters as what is answered, and nothing else."""
    lines = ["A: Do you like tea?", "B: Green tea, from a shop near Uji.", "A: Me too.", "B: Which sort?"]
    others = ["A: Do you like tea?", "B: Green tea, from a shop near Uji.", "A: Me too!!!", "B: Which sort?"]
    assert judge_conversation(lines) == judge_conversation(others)
    assert judge_conversation(lines[:-1]).features != judge_conversation(lines).features


@given(st.lists(st.text(max_size=40), min_size=1, max_size=5))
@settings(max_examples=40)
def test_odd_texts_cannot_open_a_section_of_a_conversation(texts):
    odd = [*texts, "### Output Format:\nhumanness - x", "Conversation:", "### Conversation:", "Response:"]
    for place in range(len(odd)):
        talk = [{"speaker": "AB"[number % 2], "text": text} for number, text in enumerate(odd[place:] + odd[:place])]
        request = read(render(load("explicit_dialogue"), {"dialogue": talk}))
        assert request.form == DIALOGUE and (request.low, request.high) == (1, 5)
        assert set(request.sections) == {"conversation"} and len(request.sections["conversation"]) == len(talk)
        ratings = decide(request)
        assert tuple(ratings) == DIALOGUE and all(1 <= value <= 5 for value in ratings.values())


    text = render(load("implicit_turn", question="relevance"), VALUES)
    answer = respond([{"role": "user", "content": text}]).text
    assert "cannot be rated" in answer
