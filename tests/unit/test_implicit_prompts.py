"""The study's prompts and questions, ours and the paper's."""

import argparse
import json

import pytest
import yaml

from comperdial.cli import prompts as command
from comperdial.core.errors import ComperdialError, ConfigError, FileError, MissingResourceError, UnknownNameError
from comperdial.judges import questions
from comperdial.judges.paper_questions import extract_questions, holds_questions, import_questions
from comperdial.judges.prompting import STUDY, load, names, render

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
        asked = questions.find(dimension, prompt.level, "ours", None).text
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


# ---- the paper's questions


def page(ours):
    """Return an invented paper with a table like the real one's."""
    rows = ["Dimension-Specific | Question Design |", "Turn Level | |"]
    order = ["interestingness", "understandability", "relevance", "specificity", "overall"]
    rows += [f"{name.capitalize()} | Question: {ours['turn'][name]} |" for name in order]
    rows += ["Dialogue Level | |", *(f"{n.capitalize()} | Question: {ours['dialogue'][n]} |" for n in DIALOGUE)]
    return "\n".join(["A paper", *rows, "Name | Backbone | Question: none? |"])


@pytest.fixture
def invented():
    made = {level: {name: f"Is it {name}, {level}?" for name in known} for level, known in questions.read().items()}
    return made, page(made)


def test_the_paper_s_questions_are_found_in_text_and_html(invented):
    made, text = invented
    assert holds_questions(text) and not holds_questions("Question design is hard.")
    assert extract_questions(text, "paper") == made
    lines = text.replace(" | ", "\n").replace(" |", "")
    assert extract_questions(lines.replace("Is it", "Is\n it"), "paper") == made


@pytest.mark.parametrize("dimension", ["Relevance", "Diversity"])
def test_a_paper_without_a_question_is_refused_whole(invented, tmp_path, dimension):
    path = tmp_path / "paper.txt"
    path.write_text("\n".join(line for line in invented[1].split("\n") if not line.startswith(dimension)))
    with pytest.raises(FileError, match=rf"Table 9: no question for {dimension.lower()} at (turn|dialogue) level"):
        import_questions(path, tmp_path / "made")
    assert not (tmp_path / "made").exists()


def test_imported_questions_are_the_paper_s_and_the_frame_stays_ours(invented, tmp_path, capsys):
    made, text = invented
    paper, folder = tmp_path / "paper.txt", tmp_path / "prompts"
    paper.write_text(text)
    parser = argparse.ArgumentParser()
    command.add_commands(parser.add_subparsers())

    def run(*line):
        options = parser.parse_args(["prompts", *map(str, line)])
        options.run(options)
        return capsys.readouterr().out

    with pytest.raises(MissingResourceError, match="prompts import PAPER"):
        load("implicit_turn", "paper", folder=folder, question="relevance")
    assert "figures 1 and 2" in run("import", paper, "--output", folder)
    assert yaml.safe_load((folder / questions.FILE).read_text()) == made
    assert json.loads((folder / "questions.source.json").read_text())["file"] == "paper.txt"
    theirs = load("implicit_turn", "paper", folder=folder, question="relevance")
    ours = load("implicit_turn", question="relevance")
    assert theirs.source == "paper's question" and theirs.hash != ours.hash
    assert theirs.template == ours.template.replace(questions.read()["turn"]["relevance"], made["turn"]["relevance"])
    assert load("explicit_turn", "paper", folder=folder) == load("explicit_turn")
    assert load("implicit_turn", "paper", folder=folder, question="Is it mine?").source == "ours"
    assert run("show", "implicit_turn", "--question", "relevance") == ours.template
    assert run("list", "--folder", folder).count("questions") == 4


def test_a_file_of_questions_without_a_level_is_refused(tmp_path):
    path = tmp_path / questions.FILE
    path.write_text("turn:\n  relevance: Is it?\n")
    with pytest.raises(ComperdialError, match="no questions at dialogue level"):
        questions.read(path)
