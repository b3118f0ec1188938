"""Word-overlap metrics against the plain loop over nltk and rouge-score: time, memory, and whether they are equal.

Prints a Markdown table. Each measurement has a process of its own, so that neither side finds what the other has read;
imports, reading WordNet's index and the clearing up after them count for neither.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
# The plain loop is the tests' oracle.
sys.path.insert(0, str(ROOT / "tests"))

METRICS: dict[str, tuple[str, dict[str, Any]]] = {
    "F1": ("f1", {}),
    "BLEU-1 to 4": ("bleu", {}),
    "ROUGE, stemmed": ("rouge", {"stem": True}),
    "ROUGE": ("rouge", {}),
    "METEOR": ("meteor", {}),
    "chrF": ("chrf", {}),
}
WARM_UP = 20

Pairs = tuple[list[str], list[list[str]]]


class Measured(NamedTuple):
    seconds: float
    """Of the processor, which other people's processes move less than the clock's."""
    memory: float
    """MiB that the process grew by, results not counted."""
    scores: np.ndarray[Any, np.dtype[np.float64]]
    """Outputs by responses."""


def read_pairs(tables: Path, repeat: int, distinct: bool) -> Pairs:
    """Return responses and references; the k-th copy has each response's first k words moved to its end."""
    import pandas as pd

    rows = pd.read_parquet(tables / "responses.parquet")
    contexts = pd.read_parquet(tables / "contexts.parquet").set_index("context_id")
    answered = [tuple(references) for references in contexts["references"][rows["context_id"]]]
    pairs = [
        (_rotated(response, copy), references)
        for copy in range(repeat)
        for response, references in zip(rows["response"], answered, strict=True)
    ]
    if distinct:
        pairs = list(dict.fromkeys(pairs))
    return [response for response, _ in pairs], [list(references) for _, references in pairs]


def _rotated(text: str, count: int) -> str:
    words = text.split()
    return " ".join(words[count % len(words) :] + words[: count % len(words)])


def _resident() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def measure(side: str, name: str, options: argparse.Namespace) -> Measured:
    """Score all responses in chunks, by our metric or by the plain loop."""
    from comperdial.metrics import create
    from plain_metrics import plain

    kind, fields = METRICS[name]
    metric = create(kind, **fields)
    responses, references = read_pairs(options.tables, options.repeat, options.distinct)
    scores = np.zeros((len(metric.outputs), len(responses)))
    # Written to, so that these pages count as there already.
    scores[:] = np.nan
    if kind == "meteor" and side == "plain":
        from nltk.corpus import wordnet

        wordnet.ensure_loaded()

    def score(part: slice) -> None:
        given = responses[part], references[part]
        found = metric.score(*given) if side == "ours" else plain(kind, *given, **fields)
        scores[:, part] = [found[output] for output in metric.outputs]

    score(slice(WARM_UP))
    gc.collect()
    before = most = _resident()
    seconds = 0.0
    for first in range(0, len(responses), options.chunk):
        start = time.process_time()
        score(slice(first, first + options.chunk))
        seconds += time.process_time() - start
        most = max(most, _resident())
    return Measured(seconds, most - before, scores)


def in_own_process(side: str, name: str, options: argparse.Namespace) -> Measured:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
        return executor.submit(measure, side, name, options).result()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=Path, default=ROOT / "data/tables/demo", help="a data set's tables")
    parser.add_argument("--repeat", type=int, default=1, help="take the responses so many times, each time reordered")
    parser.add_argument("--distinct", action="store_true", help="leave out pairs that come again")
    parser.add_argument("--chunk", type=int, default=4096, help="responses that are scored at once")
    parser.add_argument("--metrics", nargs="*", choices=METRICS, default=list(METRICS), metavar="METRIC")
    parser.add_argument("--only-ours", action="store_true", help="leave the plain loop out")
    options = parser.parse_args()

    pairs = read_pairs(options.tables, options.repeat, options.distinct)
    distinct = len({(response, *references) for response, references in zip(*pairs, strict=True)})
    print(f"{len(pairs[0])} responses, {distinct} distinct pairs, chunks of {options.chunk}\n")
    print("| metric | plain s | ours s | ratio | max abs difference | bit-identical | ours, MiB more |")
    print("|---|---|---|---|---|---|---|")
    totals = {"plain": 0.0, "ours": 0.0}
    for name in options.metrics:
        ours = in_own_process("ours", name, options)
        totals["ours"] += ours.seconds
        cells = [name, "", f"{ours.seconds:.2f}", "", "", "", f"{ours.memory:.0f}"]
        if not options.only_ours:
            plain = in_own_process("plain", name, options)
            totals["plain"] += plain.seconds
            same = (plain.scores == ours.scores).all(axis=0)
            cells[1] = f"{plain.seconds:.2f}"
            cells[3] = f"{plain.seconds / ours.seconds:.1f}"
            cells[4] = f"{np.abs(plain.scores - ours.scores).max():.0e}"
            cells[5] = f"{same.sum()} of {same.size}"
        print("| " + " | ".join(cells) + " |", flush=True)
    slow, fast = totals["plain"], totals["ours"]
    print(f"| all | {f'{slow:.2f}' if slow else ''} | {fast:.2f} | {f'{slow / fast:.1f}' if slow else ''} | | | |")


if __name__ == "__main__":
    main()
