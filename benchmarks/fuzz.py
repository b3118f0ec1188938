"""Supports "a bad file gets one clear message": malformed files of ratings and votes give no traceback and do not hang.

`python benchmarks/fuzz.py --files 500` prints how many files ended in which way.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import string
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

from comperdial.core.errors import ComperdialError
from comperdial.data.columns import lay_out
from comperdial.data.files import read_file
from comperdial.data.readers import table
from comperdial.data.votes import are_votes, read_votes

NAMES = [
    "system", "model_a", "model_b", "winner", "response", "answer_a", "answer_b", "score_a", "score_b", "rating", "label",
    "annotator1", "annotator2", "rater", "source", "history", "messages", "reference", "id", "context_id", "turn",
    "Rating (1-5)", "",
]  # fmt: skip
CELLS = [
    "1", "2.5", "3,5", "-1e400", "NaN", "yes", "No", "model_a", "tie", "a text of words", "", " ", "[1, 2]", "['a'",
    '["a", "b"]', "{}", '{"a": {"b": []}}', "\x00", "\ud800", "é" * 50, "<p>x</p>", "=1+1", "true", "x" * 2000,
]  # fmt: skip
NESTED = [None, 1, 2.5, True, 10**400, [], {}, [1, "a"], {"a": 1}, [{"a": 1}, {"b": [2]}], {"x": {"y": {"z": "t"}}}]
CORES = [[], ["system", "response", "rating"], ["model_a", "model_b", "winner"], ["response", "score"]]
SUFFIXES = [".csv", ".tsv", ".json", ".jsonl", ".parquet", ".xlsx", ".CSV", ".txt"]
DAMAGE = [b"", b"\xff", b"\x00", b'"', b"}", b"PK\x03\x04", b"\n\n", string.printable.encode()]


def content(chance: random.Random, suffix: str) -> bytes:
    """Return the bytes of a file that is nearly one of ratings, and then damaged."""
    core = chance.choice(CORES)
    names = core + chance.sample([name for name in NAMES if name not in core], chance.randint(0 if core else 1, 5))
    good = {"response": "a text of words", "winner": "model_a"}

    def cell(name: str, row: int) -> object:
        if name in core and chance.random() < 0.9:
            return good.get(name, str(row))
        return chance.choice(NESTED if chance.random() < 0.15 else CELLS)

    rows = [[cell(name, row) for name in names] for row in range(chance.randint(0, 8))]
    if suffix in (".json", ".jsonl") or chance.random() < 0.2:
        records = [dict(zip(names, row, strict=True)) for row in rows]
        text = json.dumps(records) if chance.random() < 0.5 else "\n".join(map(json.dumps, records))
    else:
        separator = chance.choice(",;\t")
        text = "\n".join(separator.join(str(one).replace("\n", " ") for one in row) for row in [names, *rows])
    data = text.encode("utf-8", "surrogatepass")
    for _ in range(chance.choice([0, 0, 1, 3])):
        at = chance.randrange(len(data) + 1)
        data = data[:at] + chance.choice(DAMAGE) + data[at + chance.randrange(4) :]
    return data


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=500)
    parser.add_argument("--seed", type=int, default=20)
    options = parser.parse_args()
    logging.disable()
    chance, ends, slowest = random.Random(options.seed), Counter[str](), 0.0  # noqa: S311
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.files):
            suffix = chance.choice(SUFFIXES)
            path = Path(folder) / f"file{number}{suffix}"
            path.write_bytes(content(chance, suffix))
            began = time.perf_counter()
            try:
                file = read_file(path)
                if are_votes(file.frame):
                    read_votes(file, path)
                else:
                    lay_out(file, path)
                    table.read_content("mine", path)
                ends["read"] += 1
            except ComperdialError:
                ends["refused with a message"] += 1
            except Exception:
                ends["traceback"] += 1
                traceback.print_exc(limit=-3)
            slowest = max(slowest, time.perf_counter() - began)
    print(f"{options.files} files, seed {options.seed}: {dict(ends)}; the slowest took {slowest:.2f} s")
    return int(bool(ends["traceback"]))


if __name__ == "__main__":
    sys.exit(main())
