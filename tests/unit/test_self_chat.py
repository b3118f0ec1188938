"""Agents that talk to themselves, the faults that are counted, and the page that shows a whole round."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from comperdial.challenge.dialogues import Dialogue as Gold
from comperdial.challenge.dialogues import to_data
from comperdial.challenge.pairs.dialogues import Dialogue, read_dialogues
from comperdial.challenge.self_chat import faults, read_training, self_chat
from comperdial.cli import main
from comperdial.core.errors import SchemaError

OPENINGS = [
    Gold(name, {"A": [f"ann of {name}"], "B": [f"bob of {name}"]}, (f"hi from {name}", "gold", "gold", "gold"))
    for name in ("d1", "d2")
]
# Says what it was shown: whose persona it has, who spoke last, and how much was said.
MIRROR = """
class UserAgent:
    def generate_responses(self, test_data):
        assert all(c["dialogue"][-1]["persona_id"] == "A" for c in test_data)
        assert all(one["persona_id"] != two["persona_id"]
                   for c in test_data for one, two in zip(c["dialogue"], c["dialogue"][1:]))
        return [f"{c['persona B'][0]} to {c['persona A'][0]} after {len(c['dialogue'])}" for c in test_data]
"""


def entry(folder, code, name="mirror"):
    path = folder / f"{name}_agent.py"
    path.write_text(code)
    return {"id": name, "file": str(path)}


def chat(*texts):
    return Dialogue("d", "s", "B", tuple(("AB"[i % 2], text) for i, text in enumerate(texts)))


def test_an_agent_speaks_for_both_and_answers_as_b_each_time(tmp_path):
    found = self_chat(entry(tmp_path, MIRROR), OPENINGS, 2)
    assert found.problem is None
    assert [dialogue.key for dialogue in found.dialogues] == [("d1", "mirror"), ("d2", "mirror")]
    assert found.dialogues[0] == Dialogue(
        "d1", "mirror", "B",
        (("A", "hi from d1"), ("B", "bob of d1 to ann of d1 after 1"), ("A", "ann of d1 to bob of d1 after 2"),
         ("B", "bob of d1 to ann of d1 after 3")),
    )  # fmt: skip


def test_an_agent_that_fails_has_no_self_chats(tmp_path):
    code = MIRROR.replace("return [", "return [] if len(test_data[0]['dialogue']) > 2 else [")
    found = self_chat(entry(tmp_path, code), OPENINGS, 2)
    assert found.dialogues == []
    assert found.problem == "utterance 4 of 2 self-chats from 'd1': returned 0 responses for 2 conversations"


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
    found = faults([chat(*texts), chat("x", "y")])
    assert (found.dialogues, found.utterances, found.repeated) == (2, len(texts), repeated)
    assert (found.repeating, found.looping) == (int(repeated > 0), int(loops))
    assert found.known_pairs is None


@pytest.mark.parametrize("form", ["corpus.jsonl", "dialogues.jsonl", "comperdial.json"])
def test_copies_of_the_training_text(form, tmp_path):
    path = tmp_path / form
    if form == "corpus.jsonl":
        path.write_text('{"context": "hi", "response": "Ho  ho"}\n{"context": "ho ho", "response": "he"}\n')
    elif form == "dialogues.jsonl":
        path.write_text(json.dumps({"utterances": [{"text": "hi"}, {"text": "Ho  ho"}, {"text": "he"}]}) + "\n")
    else:
        path.write_text(json.dumps([to_data(Gold("d", {"A": [], "B": []}, ("hi", "ho ho", "he", "he he")))]))
    training = read_training(path)
    # The opening was given, so it is no copy; "hi" is one when the agent says it.
    found = faults([chat("hi", "ho ho", "new", "hi"), chat("else", "ho ho", "he")], training)
    assert (found.utterances, found.known_utterances, found.known_pairs) == (5, 4, 2)


def test_a_training_text_that_is_none(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"text": "hi"}\n')
    with pytest.raises(SchemaError, match=r"t\.jsonl, line 1: no dialogue; expected context and response"):
        read_training(tmp_path / "t.jsonl")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "openings.json").write_text(json.dumps([to_data(d) for d in OPENINGS]))
    entry(tmp_path, MIRROR)
    entry(tmp_path, "raise ValueError('no')\n", "broken")
    (tmp_path / "roster.yaml").write_text(
        "agents:\n- {id: mirror, file: mirror_agent.py}\n- {id: broken, file: broken_agent.py}\n"
    )
    return tmp_path


def run(*arguments):
    return main(["challenge", "self-chat", "roster.yaml", "--openings", "openings.json", *map(str, arguments)])


def test_the_command_writes_what_worked_and_names_what_did_not(here, capsys):
    assert run("--turns", 2, "--output", "chats.jsonl") == 0
    said = capsys.readouterr().out
    assert re.search(r"^mirror +2 +0 +0 +0\.0% +- +-$", said, flags=re.M)
    assert "broken: no self-chats: loading: raised ValueError: no" in said
    assert "chats.jsonl: 2 self-chats of 1 agents" in said
    assert len(read_dialogues(here / "chats.jsonl")) == 2
    assert run("--turns", 2, "--agents", "broken", "--output", "none.jsonl") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--agents", "miror"), "unknown agent 'miror'; expected one of broken, mirror. Did you mean 'mirror'?"),
        (("--dialogues", 3), "--dialogues: 3 dialogues; expected at most 2, one for each opening"),
    ],
)
def test_wrong_arguments(arguments, message, here, capsys):
    assert run("--turns", 1, "--output", "chats.jsonl", *arguments) == 1
    assert message in capsys.readouterr().err


# --- docs/collecting-preferences.md, followed ------------------------------------------------------------------------


def test_the_whole_round_of_the_page(root, tmp_path):
    page = (root / "docs/collecting-preferences.md").read_text()
    commands = page.split("```sh\n")[1].split("```")[0]
    printed = page.split("```text\n")[1].split("```")[0]
    (tmp_path / "data").symlink_to(root / "data")
    environment = os.environ | {"PYTHONPATH": str(root / "src")}
    tool = Path(sys.executable).with_name("comperdial")
    if not tool.exists():
        pytest.skip("comperdial is not installed")
    done = subprocess.run(["bash", "-ec", commands], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == printed
