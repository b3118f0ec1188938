"""A small challenge of the first dialogues of the demo, for the workflow tests: submissions, one wrong, and an agent."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

from workdir import Workdir

DIALOGUES = 3
HUMANS = ("human-1", "human-2")
SYSTEMS = ("echo-01", "generic-02", "persona-template-07")
AGENT = """from words import WORDS


class UserAgent:
    def generate_responses(self, test_data):
        return [f"{WORDS} {conversation['persona B'][0]}" for conversation in test_data]
"""


def write_challenge(workdir: Workdir, root: Path) -> None:
    """Put the challenge's files and its params.yaml into a copy of the repository."""
    demo, folder = root / "data/demo", workdir.path / "data/mini"
    (folder / "submissions").mkdir(parents=True)
    chosen = json.loads((demo / "dialogues.json").read_text())[:DIALOGUES]
    names = {dialogue["dialogue_id"] for dialogue in chosen}
    (folder / "dialogues.json").write_text(json.dumps(chosen))
    agents = gzip.decompress((demo / "submissions/agents.jsonl.gz").read_bytes()).decode().splitlines(keepends=True)
    files = {human: (demo / f"submissions/{human}.jsonl").read_text().splitlines(keepends=True) for human in HUMANS}
    files["agents"] = [line for line in agents if json.loads(line)["system_id"] in SYSTEMS]
    files["unfinished"] = files["human-1"][:1]
    for name, lines in files.items():
        kept = [line for line in lines if json.loads(line)["dialogue_id"] in names]
        (folder / f"submissions/{name}.jsonl").write_text("".join(kept))
    shutil.copy(demo / "submissions/systems.csv", folder / "submissions/systems.csv")
    (folder / "agent.py").write_text(AGENT)
    (folder / "words.py").write_text("WORDS = 'guess what:'\n")
    shutil.copy(root / "tests/configs/challenge.yaml", workdir.path / "params.yaml")
