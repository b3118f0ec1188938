"""Supports "bad files get one clear message": 500 malformed files of ratings and votes, no traceback and no hang."""

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
    "system",
    "model_a",
    "model_b",
    "winner",
    "response",
    "answer_a",
    "answer_b",
    "score_a",
    "score_b",
    "rating",
    "Rating (1-5)",
]
NAMES += [
    "annotator1",
    "annotator2",
    "rater",
    "source",
    "history",
    "messages",
    "reference",
    "id",
    "context_id",
    "turn",
    "label",
    "",
]
CELLS = [
    "",
    " ",
    "1",
    "2.5",
    "3,5",
    "-1e400",
    "NaN",
    "yes",
    "No",
    "model_a",
    "tie",
    "a text of words",
    "[1, 2]",
    '["a", "b"]',
    "['a'",
]
CELLS += ["{}", '{"a": {"b": []}}', "\x00", "\ud800", "é" * 50, "<p>x</p>", "=1+1", "true", "x" * 2000]
SUFFIXES = [".csv", ".tsv", ".json", ".jsonl", ".parquet", ".xlsx", ".CSV", ".txt"]


def cell(random: random.Random) -> object:
    """Return a cell, a nested one now and then."""
    if random.random() < 0.15:
        return random.choice(
            [None, 1, 2.5, True, 10**400, [], {}, [1, "a"], {"a": 1}, [{"a": 1}, {"b": [2]}], {"x": {"y": {"z": "t"}}}]
        )
    return random.choice(CELLS)


def content(random: random.Random, suffix: str) -> bytes:
    """Return the bytes of a file that is nearly one of ratings, and then damaged."""
    core = random.choice(
        [[], ["system", "response", "rating"], ["model_a", "model_b", "winner"], ["response", "score"]]
    )
    others = [name for name in NAMES if name not in core]
    names = core + random.sample(others, random.randint(0 if core else 1, 5))
    good = {"response": "a text of words", "winner": "model_a"}
    rows = [
        [good.get(name, str(place)) if name in core and random.random() < 0.9 else cell(random) for name in names]
        for place in range(random.randint(0, 8))
    ]
    if suffix in (".json", ".jsonl") or random.random() < 0.2:
        records = [dict(zip(names, row, strict=True)) for row in rows]
        text = json.dumps(records) if random.random() < 0.5 else "\n".join(map(json.dumps, records))
    else:
        separator = random.choice(",;\t")
        text = "\n".join(separator.join(str(one).replace("\n", " ") for one in row) for row in [names, *rows])
    data = text.encode("utf-8", "surrogatepass")
    for _ in range(random.choice([0, 0, 1, 3])):
        at = random.randrange(len(data) + 1)
        data = (
            data[:at]
            + bytes(
                random.choice([b"", b"\xff", b"\x00", b'"', b"}", b"PK\x03\x04", b"\n\n", string.printable.encode()])
            )
            + data[at + random.randrange(4) :]
        )
    return data


def main() -> int:
    """Read the files, and print how each kind of them ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=500)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--show", action="store_true")
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
            except ComperdialError as error:
                if options.show:
                    print(str(error).replace(str(path), "")[:140])
                ends["refused with a message"] += 1
            except Exception:
                ends["traceback"] += 1
                print(path.read_bytes()[:300], file=sys.stderr)
                traceback.print_exc(limit=-3)
            slowest = max(slowest, time.perf_counter() - began)
    print(f"{options.files} files, seed {options.seed}: {dict(ends)}; the slowest took {slowest:.2f} s")
    return int(bool(ends["traceback"]))


if __name__ == "__main__":
    sys.exit(main())
