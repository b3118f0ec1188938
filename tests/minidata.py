"""A small invented data set in the format of USR's files: none of it is real."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import yaml

TOPICS = ["tea", "trains", "gardens", "chess", "the sea", "old maps"]
SYSTEMS = ["Original Ground Truth", "Copier", "Dull", "Wanderer", "New Human Generated"]
DIMENSIONS = {
    "Understandable": (0, 1),
    "Natural": (1, 3),
    "Maintains Context": (1, 3),
    "Engaging": (1, 3),
    "Uses Knowledge": (0, 1),
    "Overall": (1, 5),
}
REPOSITORY = "invented/mini"
PATH = "data/ratings.json"


def mini_items() -> list[dict[str, Any]]:
    """Six contexts, five systems, three raters: quality falls from the last system to the third."""
    items = []
    for number, topic in enumerate(TOPICS):
        texts = {
            "Original Ground Truth": f"yes , i have loved {topic} since i was a child .",
            "Copier": f"i love {topic} too , tell me more about {topic} number {number}",
            "Dull": "i do not know .",
            "Wanderer": f"my {number} cats sleep while the bus is late in august",
            "New Human Generated": f"oh yes , {topic} has been my joy since i was a small child",
        }
        quality = {"Original Ground Truth": 4, "Copier": 3, "Dull": 1, "Wanderer": 2, "New Human Generated": 5}
        responses = []
        for system in SYSTEMS:
            ratings = {}
            for dimension, (low, high) in DIMENSIONS.items():
                level = low + (quality[system] - 1) * (high - low) / 4
                shifted = [round(level), round(level + (number % 2) / 2), round(level - (number % 3) / 3)]
                ratings[dimension] = [min(high, max(low, value)) for value in shifted]
            responses.append({"response": texts[system] + "\n", "model": system, **ratings})
        items.append(
            {
                "context": f"hello , how are you ?\ni am well , and you ?\ndo you like {topic} ?\n",
                "fact": f"your persona: i like {topic}.\nyour persona: i am number {number}.\n",
                "annotators": ["ann", "bob", "cat" if number % 2 else "dan"],
                "responses": responses,
            }
        )
    return items


def write_mirror(folder: Path, items: Any) -> Path:
    """Write the file into ``folder/mirror`` and a catalogue that pins it; return the catalogue's path."""
    content = json.dumps(items).encode()
    return write_mirror_bytes(folder, content)


def write_mirror_bytes(folder: Path, content: bytes) -> Path:
    """Do the same with any bytes, so that a broken file can be pinned too."""
    target = folder / "mirror" / REPOSITORY / PATH
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    commit = "0" * 40
    catalogue = {
        "files": {
            "mini_ratings": {
                "repository": REPOSITORY,
                "commit": commit,
                "path": PATH,
                "url": f"https://example.invalid/{commit}/{PATH}",
                "sha256": hashlib.sha256(content).hexdigest(),
                "bytes": len(content),
                "licence": "invented for tests",
                "citation": "none",
            }
        },
        "datasets": {
            name: {"reader": "usr", "title": f"Mini {name}", "files": {"ratings": "mini_ratings"}}
            for name in ("usr_persona", "usr_topical")
        },
    }
    path = folder / "sources.yaml"
    path.write_text(yaml.safe_dump(catalogue))
    return path
