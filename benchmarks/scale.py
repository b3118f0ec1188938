"""How time and memory grow: the demo at 1, 4, 16 and 64 times its size (665,280 responses). SIMULATED.

python benchmarks/scale.py                            half an hour on two cores; goes on where it was stopped
python benchmarks/scale.py --sizes 1 4 --only bleu    a part of it
python benchmarks/scale.py --print                    the tables of what was measured

Every measurement is the command that a rule of the workflow runs, in a process of its own: seconds of the processor
(the measure that counts: a machine does other things too), wall time and peak memory. Size 0, two dialogues of three
systems, tells what a start costs.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
SIZES = (1, 4, 16, 64)
NGRAM = ("f1", "bleu", "rouge", "meteor", "chrf")
# As params.yaml has them. The second finds the first's vectors, as in the workflow.
MODEL = {
    "bertscore": {"model": "all-MiniLM-L6-v2", "layer": 6},
    "sentence_cosine": {"model": "all-MiniLM-L6-v2", "pooling": "mean"},
}
MOST = {**dict.fromkeys(MODEL, 16), "robustness": 16}
SHARDS = 16
SHARDED = "bleu"
DETAILS = ("f1:f1", "bleu:bleu-4", "rouge:rougeL-f", "meteor:meteor", "chrf:chrf")
STATISTICS = ("correlate", "robustness")
STAGES = ("tables", "ratings", *NGRAM, *MODEL, "shards", "merge", *STATISTICS)
SCORING = ("tables", *NGRAM, *MODEL, "shards", "merge")
# What the issue asks for.
RATIO, MEMORY = 1.1, 1500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=list(SIZES), metavar="N", help="squares")
    parser.add_argument("--only", nargs="*", choices=STAGES, default=list(STAGES), metavar="STAGE")
    parser.add_argument("--metrics", nargs="*", choices=[*NGRAM, *MODEL], metavar="METRIC", help="these metrics alone")
    parser.add_argument("--work", type=Path, default=ROOT / "data/scale", help="a folder to go on in")
    parser.add_argument("--again", action="store_true", help="measure again what was measured")
    parser.add_argument("--print", action="store_true", help="measure nothing")
    parser.add_argument("--make", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        from grown import grow

        print(json.dumps(grow(Path(options.make[0]), int(options.make[1]))))
        return
    work = Work(options.work)
    if not options.print:
        for times in [0, *options.sizes]:
            for stage in STAGES:
                unwanted = options.metrics is not None and stage in (*NGRAM, *MODEL) and stage not in options.metrics
                if stage in options.only and not unwanted and times <= MOST.get(stage, times):
                    work.measure(times, stage, again=options.again)
    report(work.best(), work.texts())


class Work:
    """A folder that holds the grown data sets, what commands make of them, and a line for each measurement."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.file = folder / "measured.jsonl"
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        self.lines = [json.loads(line) for line in lines]

    def _keep(self, line: dict[str, object]) -> None:
        self.lines.append(line)
        with self.file.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def measured(self, times: int, stage: str) -> list[dict[str, float]]:
        return [line for line in self.lines if (line["times"], line["stage"]) == (times, stage)]

    def measure(self, times: int, stage: str, *, again: bool) -> None:
        """Measure a stage as often as its size wants: small ones are short, and vary more."""
        folder = self.folder / str(times)
        if not self.measured(times, "texts"):
            shutil.rmtree(folder, ignore_errors=True)
            # Elsewhere: memory that this process once took would count for the commands it starts.
            made = subprocess.run(
                [sys.executable, __file__, "--make", str(folder), str(times)],
                check=True,
                capture_output=True,
                text=True,
            )
            self._keep({"times": times, "stage": "texts", **json.loads(made.stdout)})
        result = [] if again else self.measured(times, stage)
        for _ in range(repeats(times, stage) - len(result)):
            if stage == "bertscore":
                shutil.rmtree(folder / "vectors", ignore_errors=True)
            cost = run(commands(folder, stage), folder / f"{stage}.log", threads=2 if stage in MODEL else 1)
            size = sum(path.stat().st_size for path in made_by(folder, stage))
            self._keep(
                {"times": times, "stage": stage, "responses": self.texts()[times]["responses"], "bytes": size, **cost}
            )
            print(times, stage, cost, flush=True)
        if stage == "merge":
            one, other = (folder / name for name in (f"{SHARDED}.parquet", f"{SHARDED}_merged.parquet"))
            if one.exists() and one.read_bytes() != other.read_bytes():
                raise SystemExit(f"{other}: {SHARDS} shards give other bytes than one process")

    def best(self) -> dict[str, dict[int, dict[str, float]]]:
        """Return the median of the measurements of each stage and size."""
        result: dict[str, dict[int, dict[str, float]]] = {}
        for stage in STAGES:
            for times in sorted({line["times"] for line in self.lines}):
                if lines := self.measured(times, stage):
                    # Measured again: the last count.
                    lines = lines[-repeats(times, stage) :]
                    names = ("responses", "wall", "cpu", "mb", "bytes")
                    median = {name: statistics.median(line[name] for line in lines) for name in names}
                    result.setdefault(stage, {})[times] = median
        return result

    def texts(self) -> dict[int, dict[str, float]]:
        return {line["times"]: line for line in self.lines if line["stage"] == "texts"}


def repeats(times: int, stage: str) -> int:
    """Return how often to measure. Of the metric that finds vectors, once: a second time it would find its own."""
    if stage in ("sentence_cosine", "shards"):
        return 1
    # What takes longer varies less.
    often = {0: 2, 1: 2} if stage in (*MODEL, *STATISTICS) else {0: 5, 1: 5, 4: 2}
    return often.get(times, 1)


def commands(folder: Path, stage: str) -> list[list[str]]:
    """Return the commands of a stage, as the workflow's rules have them."""
    tables, scores = folder / "tables", [folder / f"{metric}.parquet" for metric in NGRAM]
    sampled = [
        "--ratings", tables / "ratings.parquet", "--contexts", tables / "contexts.parquet",
        "--systems", tables / "systems.parquet", "--source", "simulated", "--level", "turn",
        "--level", "dialogue", "--level", "system", "--detail-target", "Overall",
    ]  # fmt: skip
    score = ["score", tables, "--metric", stage, "--name", stage, "--output", folder / f"{stage}.parquet"]
    shard = ["score", tables, "--metric", SHARDED, "--name", SHARDED]
    parts = [folder / f"shards/{number}-of-{SHARDS}.parquet" for number in range(1, SHARDS + 1)]
    made: dict[str, list[list[object]]] = {
        "tables": [
            ["challenge", "tables", folder / "dialogues.json", "--submissions", folder / "submissions", "--name",
             "demo", "--output", tables],
        ],
        "ratings": [["simulate", tables, "--raters", folder / "raters.yaml", "--seed", "2024"]],
        "shards": [
            [*shard, "--part", f"{number}-of-{SHARDS}", "--output", part] for number, part in enumerate(parts, start=1)
        ],
        "merge": [["merge", *parts, "--output", folder / f"{SHARDED}_merged.parquet"]],
        "correlate": [
            ["correlate", *scores, *sampled, "--resamples", "1000", "--seed", "2024", "--ceilings",
             folder / "ceilings.parquet", "--pairs", folder / "pairs.parquet", "--output",
             folder / "correlations.parquet", "--outputs", *DETAILS],
        ],
        "robustness": [
            ["robustness", *scores, *sampled, "--repeats", "100", "--curves", folder / "curves.parquet", "--power",
             folder / "power.parquet", "--outputs", *DETAILS],
        ],
    }  # fmt: skip
    if stage in MODEL:
        score += ["--options", json.dumps(MODEL[stage]), "--embeddings", folder / "vectors"]
    start = [sys.executable, "-m", "comperdial.cli"]
    return [[*start, *map(str, command)] for command in made.get(stage, [score])]


def made_by(folder: Path, stage: str) -> list[Path]:
    """Return the files whose size tells how much disk a stage takes."""
    if stage == "bertscore":
        return [folder / "bertscore.parquet", *filter(Path.is_file, (folder / "vectors").rglob("*"))]
    names = {
        "tables": "tables/responses.parquet",
        "ratings": "tables/ratings.parquet",
        "shards": "shards/*.parquet",
    }
    return list(folder.glob(names.get(stage, f"{stage}.*")))


def run(lines: list[list[str]], log: Path, *, threads: int) -> dict[str, float]:
    """Run commands one after the other; return seconds of all, and the memory of the one that took most."""
    cost = {"wall": 0.0, "cpu": 0.0, "mb": 0.0}
    env = os.environ | {name: str(threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    with log.open("w") as output:
        for line in lines:
            start = time.monotonic()
            process = subprocess.Popen(line, env=env, stdout=output, stderr=subprocess.STDOUT, cwd=ROOT)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                raise SystemExit(f"{' '.join(line)}\nended with {process.returncode}: {log.read_text()[-2000:]}")
            cost["wall"] += time.monotonic() - start
            cost["cpu"] += usage.ru_utime + usage.ru_stime
            cost["mb"] = max(cost["mb"], usage.ru_maxrss / 1024)
    return {name: round(value, 2) for name, value in cost.items()}


def fit(sizes: dict[int, dict[str, float]]) -> dict[str, float]:
    """Fit time without the start ~ n^a over the sizes, and memory = b + c n; and how the largest exceeds linear."""
    start = sizes.get(0, {"cpu": 0.0, "responses": 0.0})
    grown = {times: size for times, size in sizes.items() if times}
    n = np.array([size["responses"] for size in grown.values()])
    cpu = np.array([max(size["cpu"] - start["cpu"], 1e-3) for size in grown.values()])
    mb = np.array([size["mb"] for size in grown.values()])
    result = {"start": start["cpu"]}
    if len(grown) > 1:
        result["a"] = float(np.polyfit(np.log(n), np.log(cpu), 1)[0])
        result["c"], result["b"] = (float(v) for v in np.polyfit(n / 1e6, mb, 1))
        net = n - start["responses"]
        result["ratio"] = float((cpu[-1] / net[-1]) / (cpu[0] / net[0]))
        result["last"] = float((cpu[-1] / net[-1]) / (cpu[-2] / net[-2]))
    return result


def report(result: dict[str, dict[int, dict[str, float]]], texts: dict[int, dict[str, float]]) -> None:
    """Print what was measured, how it grows, and whether the bars hold."""
    print("SIMULATED: systems, texts and raters are programs; only times and sizes mean anything.\n")
    print("| size | responses | dialogues | distinct texts | words a response | letters | vocabulary |")
    print("|--:|--:|--:|--:|--:|--:|--:|")
    for times, line in sorted(texts.items()):
        print(
            f"| {times or 'start'} | {line['responses']:,} | {line['dialogues']} | {line['distinct']:.1%} "
            f"| {line['words']:.2f} | {line['letters']:.1f} | {line['vocabulary']:,} |"
        )
    sizes = sorted({times for stage in result.values() for times in stage})
    head = " | ".join(f"{times or 'start'}" for times in sizes)
    for name, title, form in (
        ("cpu", "seconds of the processor", ".1f"), ("wall", "wall seconds", ".1f"), ("mb", "peak MB", ".0f"),
        ("bytes", "MB on disk", ".1f"),
    ):  # fmt: skip
        print(f"\n| {title} | {head} |\n|:--|{'--:|' * len(sizes)}")
        for stage, measured in result.items():
            scale = 1e-6 if name == "bytes" else 1
            cells = [f"{measured[t][name] * scale:{form}}" if t in measured else "" for t in sizes]
            print(f"| {stage} | {' | '.join(cells)} |")
    print("\n| growth | time ~ n^a | largest / linear | last step / linear | memory, MB + MB a million responses |")
    print("|:--|--:|--:|--:|--:|")
    fits = {stage: fit(measured) for stage, measured in result.items()}
    for stage, line in fits.items():
        if "a" in line:
            memory = f"{line['b']:.0f} + {line['c']:.0f} n"
            print(f"| {stage} | {line['a']:.3f} | {line['ratio']:.2f} | {line['last']:.2f} | {memory} |")
    bars(result, fits)


def bars(result: dict[str, dict[int, dict[str, float]]], fits: dict[str, dict[str, float]]) -> None:
    """Say of each bar whether it holds."""
    slow = {stage: line["ratio"] for stage, line in fits.items() if line.get("ratio", 0) > RATIO}
    over = ", ".join(f"{stage} {ratio:.2f}" for stage, ratio in slow.items())
    print(f"\ntime at most {RATIO} times linear, from size 1 to the largest, starts not counted: {over or 'holds'}")
    peak = max((size["mb"], stage, times) for stage in SCORING for times, size in result.get(stage, {}).items())
    held = "holds" if peak[0] < MEMORY else "DOES NOT HOLD"
    print(f"peak memory of scoring under {MEMORY} MB: {peak[0]:.0f} MB ({peak[1]} at {peak[2]}x): {held}")


if __name__ == "__main__":
    main()
