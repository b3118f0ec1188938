"""Many metrics of a data set in one process, beside one process a metric; the processor's seconds, ratios of one run.

python benchmarks/llm_evaluators.py                            all sets in data/tables, but for large ones
python benchmarks/llm_evaluators.py --sets fed_turn fed_dial   these
python benchmarks/llm_evaluators.py --only-together            without the processes a metric, which take long
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq

MINILM = {"model": "all-MiniLM-L6-v2"}
INNER = {
    "f1": {"kind": "f1"},
    "bleu": {"kind": "bleu"},
    "rouge": {"kind": "rouge"},
    "meteor": {"kind": "meteor"},
    "chrf": {"kind": "chrf"},
    "bertscore-minilm": {"kind": "bertscore", "layer": 6, **MINILM},
    "embedding-minilm": {"kind": "embedding", **MINILM},
    "sentence-cosine-minilm": {"kind": "sentence_cosine", "pooling": "mean", **MINILM},
}
WORDS = {name: entry for name, entry in INNER.items() if "model" not in entry}
LARGE = 20_000


def with_context(metrics: dict[str, dict[str, object]]) -> dict[str, dict[str, object]]:
    found = {}
    for name, entry in metrics.items():
        options = {option: value for option, value in entry.items() if option != "kind"}
        found[f"{name}-context"] = {"kind": "with_context", "metric": entry["kind"], "options": options}
    return found


VECTORS = {name: entry for name, entry in INNER.items() if "model" in entry}
FAMILIES = {
    "words": WORDS | {"distinct": {"kind": "distinct"}},
    "words, context": with_context(WORDS),
    "vectors": VECTORS | {"grounded-cosine-minilm": {"kind": "grounded_cosine", **MINILM}},
    "vectors, context": with_context(VECTORS),
}
ALL = {name: entry for family in FAMILIES.values() for name, entry in family.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=Path, default=Path("data/tables"))
    parser.add_argument("--sets", nargs="*")
    parser.add_argument("--only-together", action="store_true")
    parser.add_argument("--inside", nargs=4, metavar=("FOLDER", "JSON", "OUTPUT", "VECTORS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        inside(*options.inside)
        return
    sizes = {path.parent.name: pq.read_metadata(path).num_rows for path in options.tables.glob("*/responses.parquet")}
    sets = options.sets or sorted(name for name, size in sizes.items() if size < LARGE)
    print(f"{len(ALL)} metrics, {os.cpu_count()} cores\n")
    print(f"| set | responses | {' | '.join(FAMILIES)} | all, one process | a process a metric | ratio |")
    print("|:--|" + "--:|" * (len(FAMILIES) + 4))
    totals = [0.0, 0.0]
    for name in sets:
        # Vectors that one of the ways has made would be a gift to the others.
        families = [seconds(options.tables / name, [family]) for family in FAMILIES.values()]
        together = seconds(options.tables / name, [ALL])
        apart = None if options.only_together else seconds(options.tables / name, [{m: e} for m, e in ALL.items()])
        totals = [totals[0] + together, totals[1] + (apart or 0.0)]
        cells = [f"{value:.1f}" for value in (*families, together)]
        cells += ["–", "–"] if apart is None else [f"{apart:.1f}", f"{apart / together:.1f}"]
        print(f"| {name} | {sizes[name]} | {' | '.join(cells)} |", flush=True)
    blank = " | " * len(FAMILIES)
    last = "– | –" if options.only_together else f"{totals[1]:.1f} | {totals[1] / totals[0]:.1f}"
    print(f"| all | {sum(sizes[name] for name in sets)} |{blank}| {totals[0]:.1f} | {last} |")


def seconds(folder: Path, groups: list[dict[str, dict[str, object]]]) -> float:
    """Return the seconds of a process for each group of metrics; they share vectors, from none at the start."""
    with tempfile.TemporaryDirectory() as place:
        start = spent()
        for number, group in enumerate(groups):
            output = Path(place) / f"{number}.parquet"
            command = [sys.executable, __file__, "--inside", str(folder), json.dumps(group), str(output), f"{place}/v"]
            subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        return spent() - start


def spent() -> float:
    """Return the processor's seconds of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def inside(folder: str, metrics: str, output: str, vectors: str) -> None:
    from comperdial.metrics import create
    from comperdial.metrics.scoring import score_all

    entries = {name: dict(entry) for name, entry in json.loads(metrics).items()}
    score_all({name: create(entry.pop("kind"), **entry) for name, entry in entries.items()}, folder, output, vectors)


if __name__ == "__main__":
    main()
