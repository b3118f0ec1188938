"""A small challenge of the first dialogues of the demo, for the workflow tests: four agents, one of which fails."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import yaml

from workdir import Workdir

DIALOGUES = 3
FAILING = "class UserAgent:\n    def generate_responses(self, test_data):\n        raise ValueError('out of ideas')\n"


def write_challenge(workdir: Workdir, root: Path) -> None:
    """Put the challenge's files and its params.yaml into a copy of the repository."""
    folder = workdir.path / "data/mini"
    (folder / "submissions").mkdir(parents=True)
    chosen = json.loads((root / "data/demo/dialogues.json").read_text())[:DIALOGUES]
    names = {dialogue["dialogue_id"] for dialogue in chosen}
    (folder / "dialogues.json").write_text(json.dumps(chosen))
    for human in ("human-1", "human-2"):
        lines = (root / f"data/demo/submissions/{human}.jsonl").read_text().splitlines(keepends=True)
        kept = [line for line in lines if json.loads(line)["dialogue_id"] in names]
        (folder / f"submissions/{human}.jsonl").write_text("".join(kept))
    shutil.copy(root / "data/demo/submissions/systems.csv", folder / "submissions/systems.csv")
    agents = [
        {"id": "echo", "kind": "echo", "track": "gpu", "skill": 0.1, "options": {"share": 0.5, "seed": 1}},
        {"id": "generic", "kind": "generic", "track": "gpu", "skill": 0.3, "options": {"variety": 5, "seed": 2}},
        {"id": "template", "kind": "persona_template", "skill": 0.6, "options": {"relevance": 0.9, "seed": 3}},
        {"id": "failing", "file": "data/mini/failing.py", "skill": 0.9},
    ]
    (folder / "agents.yaml").write_text(yaml.safe_dump({"agents": agents}))
    (folder / "failing.py").write_text(FAILING)
    shutil.copy(root / "tests/configs/challenge.yaml", workdir.path / "params.yaml")
