"""BERTScore and its kin: ours beside the package bert-score, fp32 beside bf16, and memory; ratios of one run.

python benchmarks/embeddings.py                      speed and agreement on the demo's responses (or --sample of them)
python benchmarks/embeddings.py --memory             peak memory of 10,395 and of 103,950 responses
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.metrics import Batch, create
from comperdial.metrics.scoring import parts, write_scores
from comperdial.metrics.text import clean
from comperdial.models import find
from comperdial.models.encoder import STORE_VARIABLE

if TYPE_CHECKING:
    from bert_score import BERTScorer

MODEL = "all-MiniLM-L6-v2"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=Path, default=Path("data/tables/demo"))
    parser.add_argument("--sample", type=int, help="so many responses, drawn with a fixed seed; default: all")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--times", type=int, default=10, help="with --memory: how many times the responses")
    parser.add_argument("--peak-of", nargs=2, metavar=("METRIC", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak_of:
        peak_of(*options.peak_of)
    elif options.memory:
        memory(options.tables, options.times)
    else:
        speed(options.tables, options.sample, options.repeats)


def read(tables: Path, sample: int | None) -> Batch:
    frames = [pd.concat([r.reset_index(drop=True), c.reset_index(drop=True)], axis=1) for r, c in parts(tables)]
    frame = pd.concat(frames, ignore_index=True)
    if sample:
        frame = frame.iloc[np.sort(np.random.default_rng(0).choice(len(frame), sample, replace=False))]
    return Batch(*(list(frame[name]) for name in ("response", "references", "history", "facts")))


def speed(tables: Path, sample: int | None, repeats: int) -> None:
    """Time each way with its model loaded before; CPU seconds of all threads, since a machine does other things too."""
    warnings.simplefilter("ignore")
    batch = read(tables, sample)
    print(f"{len(batch)} responses, {len(set(batch.responses))} of them different, {os.cpu_count()} cores\n")
    fp32, bf16 = (create("bertscore", model=MODEL, layer=6, dtype=dtype) for dtype in ("fp32", "bf16"))
    scorer = package()
    runs = {
        "bert-score": lambda: scorer.score(*texts(batch))[2].numpy(),
        "ours, fp32": lambda: fp32.compute(batch)["f1"],
        "ours, bf16": lambda: bf16.compute(batch)["f1"],
        "ours, texts encoded before": lambda: fp32.compute(batch)["f1"],
    }
    found, cpu, wall = {}, dict.fromkeys(runs, math.inf), dict.fromkeys(runs, math.inf)
    # In turns, and the best of them: what else the machine does falls on all alike, and counts for none.
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as store:
            os.environ[STORE_VARIABLE] = store
            for metric in (fp32, bf16):
                metric.score(["warm up"], ["warm up"])
            for name, run in runs.items():
                start = time.process_time(), time.perf_counter()
                found[name] = run()
                cpu[name] = min(cpu[name], time.process_time() - start[0])
                wall[name] = min(wall[name], time.perf_counter() - start[1])
    truth = found["ours, fp32"]
    print("| BERTScore F1 on MiniLM | CPU s | wall s | bert-score / this | largest difference from fp32 | Spearman |")
    print("|:--|--:|--:|--:|--:|--:|")
    for name, values in found.items():
        both = ~(np.isnan(values) | np.isnan(truth))
        rank = pd.Series(values[both]).corr(pd.Series(truth[both]), method="spearman")
        print(
            f"| {name} | {cpu[name]:.1f} | {wall[name]:.1f} | {cpu['bert-score'] / cpu[name]:.2f} "
            f"| {np.abs(values - truth)[both].max():.2g} | {rank:.6f} |"
        )
    print(f"\nbf16 beside our fp32: {cpu['ours, fp32'] / cpu['ours, bf16']:.2f} times as fast")
    alone = one_at_a_time(batch, 200)
    rows = np.flatnonzero(~np.isnan(alone))
    print(
        f"bert-score one pair at a time, {len(rows)} pairs: largest difference {np.abs(alone - truth)[rows].max():.2g}"
    )
    print("\n| other outputs, bf16 beside fp32 | largest difference | Spearman |\n|:--|--:|--:|")
    for kind, extra in (("embedding", {}), ("sentence_cosine", {"pooling": "mean"}), ("grounded_cosine", {})):
        scores = [create(kind, model=MODEL, dtype=dtype, **extra).compute(batch) for dtype in ("fp32", "bf16")]
        for output in scores[0]:
            one, other = (pd.Series(s[output]) for s in scores)
            print(f"| {kind} {output} | {(one - other).abs().max():.2g} | {one.corr(other, method='spearman'):.6f} |")


def texts(batch: Batch) -> tuple[list[str], list[str]]:
    one = [clean(text, "normalised") for text in batch.responses]
    # The package fails on an empty text; a full stop keeps it going, and its score is not compared.
    return [t or "." for t in one], [clean(r[0], "normalised") or "." for r in batch.references]


def package() -> BERTScorer:
    from bert_score import BERTScorer

    return BERTScorer(model_type=str(find(MODEL).path), num_layers=6, device="cpu")


def one_at_a_time(batch: Batch, count: int) -> np.ndarray:
    scorer, pairs = package(), texts(batch)
    found = np.full(len(batch), np.nan)
    for row in np.random.default_rng(1).choice(len(batch), min(count, len(batch)), replace=False):
        if clean(batch.responses[row], "normalised"):
            found[row] = float(scorer.score([pairs[0][row]], [pairs[1][row]])[2][0])
    return found


def memory(tables: Path, times: int) -> None:
    names = {"bleu": {}, "meteor": {}, "bertscore": {"model": MODEL, "layer": 6, "dtype": "bf16"}}
    names["grounded_cosine"] = {"dtype": "bf16"}
    print(f"| metric | MB at once | MB at {times} times the responses | ratio |\n|:--|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        many = Path(folder) / "many"
        many.mkdir()
        enlarge(tables, many, times)
        for kind, extra in names.items():
            name = json.dumps({"kind": kind, **extra})
            peaks = [peak(name, place) for place in (tables, many)]
            print(f"| {kind} | {peaks[0]:.0f} | {peaks[1]:.0f} | {peaks[1] / peaks[0]:.2f} |", flush=True)


def enlarge(tables: Path, target: Path, times: int) -> None:
    """Write the same contexts with several times the systems; every copy's responses are texts of their own."""
    systems = schema.read(tables / "systems.parquet", "systems")
    responses = schema.read(tables / "responses.parquet", "responses")
    schema.write(target / "contexts.parquet", schema.read(tables / "contexts.parquet", "contexts"), "contexts")
    for name, frame in (("systems", systems), ("responses", responses)):
        copies = []
        for number in range(times):
            copy = frame.assign(system_id=frame["system_id"] + f"-{number}")
            if number and name == "responses":
                copy["response"] = f"{number} " + copy["response"]
            copies.append(copy)
        schema.write(target / f"{name}.parquet", pd.concat(copies, ignore_index=True), name)


def peak(metric: str, folder: Path) -> float:
    """Return the peak memory, in MB, of a process that scores a folder with vectors already in the store or not."""
    command = [sys.executable, __file__, "--peak-of", metric, str(folder)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def peak_of(metric: str, folder: str) -> None:
    options = json.loads(metric)
    with tempfile.TemporaryDirectory() as place:
        os.environ[STORE_VARIABLE] = place
        write_scores(create(options.pop("kind"), **options), "metric", folder, Path(place) / "scores.parquet")
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


if __name__ == "__main__":
    main()
