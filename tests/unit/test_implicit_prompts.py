"""The study's prompts and questions, ours and the paper's."""

import argparse

import pytest
import yaml

from comperdial.cli import prompts as command
from comperdial.core.errors import ConfigError, MissingResourceError, UnknownNameError
from comperdial.judges.prompting import STUDY, find_question, load, names, questions, render

TURN = ("relevance", "specificity", "interestingness", "understandability", "overall")
DIALOGUE = ("coherence", "engagingness", "diversity", "informativeness", "overall")
HISTORY = [{"speaker": "A", "text": "Seen my kite?"}]
TALK = [*HISTORY, {"speaker": "B", "text": "It flew over the hill. Was it new?"}]
VALUES = {"history": HISTORY, "response": "By the {{ mill }}.", "dialogue": TALK}


# ---- prompts


def test_the_study_s_prompts_have_their_fields_and_levels():
    assert names()[-6:] == STUDY
    found = {name: (load(name).fields, load(name).level) for name in STUDY}
    assert found == {
        "explicit_turn": ({"history", "response"}, "turn"),
        "explicit_dialogue": ({"dialogue"}, "dialogue"),
        "implicit_turn": ({"history", "response", "question"}, "turn"),
        "implicit_dialogue": ({"dialogue", "question"}, "dialogue"),
        "rating_turn": ({"history", "response", "question"}, "turn"),
        "rating_dialogue": ({"dialogue", "question"}, "dialogue"),
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
