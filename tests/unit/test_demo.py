"""The demo's files: what they hold, and that the script makes the submissions that ship."""

import gzip
import importlib.util
import json

import pytest

from comperdial.challenge.dialogues import read_dialogues
from comperdial.challenge.personas import generate, read_constraints, read_graph
from comperdial.challenge.simulation import read_raters
from comperdial.challenge.submissions import read_submissions


@pytest.fixture(scope="module")
def demo(root):
    return root / "data/demo"


@pytest.fixture(scope="module")
def dialogues(demo):
    return read_dialogues(demo / "dialogues.json")


@pytest.fixture(scope="module")
def submissions(demo, dialogues):
    return read_submissions([demo / "submissions"], dialogues)


def test_the_demo_has_comperdials_shape(dialogues, submissions, demo):
    assert [dialogue.turns for dialogue in dialogues] == [7] * 15
    assert len(submissions.responses) == 99
    assert not submissions.problems
    kinds = [about["kind"] for about in submissions.systems.values()]
    assert (kinds.count("agent"), kinds.count("human")) == (97, 2)
    assert {*read_raters(demo / "raters.yaml").skill} == {*submissions.responses}


def test_the_script_makes_the_submissions_that_ship(demo, tmp_path):
    shipped = gzip.decompress((demo / "submissions/agents.jsonl.gz").read_bytes())
    (tmp_path / "submissions").mkdir()
    for name in ("make_submissions.py", "dialogues.json", "agents.yaml", "response_bank.jsonl", "corpus.jsonl"):
        (tmp_path / name).write_bytes((demo / name).read_bytes())
    spec = importlib.util.spec_from_file_location("make_submissions", tmp_path / "make_submissions.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.main()
    assert gzip.decompress((tmp_path / "submissions/agents.jsonl.gz").read_bytes()) == shipped


def test_personas_are_those_that_the_pipeline_draws(root, demo, dialogues):
    graph, constraints = read_graph(demo / "peacok_kg.json"), read_constraints(root / "data/personas")
    drawn = [persona.sentences for persona in generate(graph, constraints, count=30, seed=2024)]
    assert [dialogue.personas[speaker] for dialogue in dialogues for speaker in "AB"] == drawn


def test_no_written_response_is_a_reference(demo, dialogues, submissions):
    references = {dialogue.reference(turn) for dialogue in dialogues for turn in range(dialogue.turns)}
    for name in ("response_bank.jsonl", "corpus.jsonl"):
        assert not references & {json.loads(line)["response"] for line in (demo / name).read_text().splitlines()}
    for system in ("human-1", "human-2"):
        assert not references & {*submissions.responses[system].values()}
