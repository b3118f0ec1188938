"""Supports docs/cluster.md: CPU time and memory for the demo at 1, 4, 16 and 64 times its size, and for 7 million responses.

python benchmarks/scale.py                            half an hour on two cores; resumes where it stopped
python benchmarks/scale.py --sizes 1 4 --only bleu    only a part; --print: only the tables of earlier measurements

SIMULATED: k times the systems and dialogues. Each copy has its own texts, so that caches have no advantage: each word is
replaced by one that is as long and about as frequent. Each measurement runs a rule's command in its own process. Size 0 is the
startup cost.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from comperdial import schema
from comperdial.challenge.dialogues import Dialogue, dialogues_of, to_data
from comperdial.challenge.simulation import read_raters

ROOT = Path(__file__).resolve().parents[1]
DEMO = ROOT / "data/tables/demo"
NGRAM = {"f1": "f1", "bleu": "bleu-4", "rouge": "rougeL-f", "meteor": "meteor", "chrf": "chrf"}
# As in params.yaml. The second reuses the first's vectors, as in the workflow.
MODEL = {
    "bertscore": {"model": "all-MiniLM-L6-v2", "layer": 6},
    "sentence_cosine": {"model": "all-MiniLM-L6-v2", "pooling": "mean"},
}
MOST = dict.fromkeys(MODEL, 16)
SHARDS, SHARDED = 16, "bleu"
STAGES = ("tables", "ratings", *NGRAM, *MODEL, "shards", "merge", "correlate")
# On n nodes of two cores. The last number: seconds to replay a judgement (7.5 for 124,740).
RESPONSES, SHARD, CORES, NODES, REPLAY = 7_000_000, 65_536, 2, (1, 4, 16, 64), 7.5 / 124_740
ALONE = ("tables", "ratings", "correlate")
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
Map = dict[str, str]
Sizes = dict[int, dict[str, float]]


class Words:
    """The demo's words by length and frequency, and their replacements in copies."""

    def __init__(self, texts: Iterable[str]) -> None:
        counts = Counter(word.lower() for text in texts for word in _WORD.findall(text))
        by_length = sorted(counts, key=lambda word: (len(word), -counts[word], word))
        alike = (list(group) for _, group in groupby(by_length, len))
        self.runs = [group[first : first + 32] for group in alike for first in range(0, len(group), 32)]

    def map(self, *copy: int) -> Map:
        """Return the word that each word becomes in a copy, numbered by its dialogue and system; 0, 0 is the demo itself."""
        if not any(copy):
            return {}
        rng, result = np.random.default_rng([2024, *copy]), {}
        for run in self.runs:
            # Around a random ring, so no word stays the same.
            order = rng.permutation(len(run))
            result |= {run[a]: run[b] for a, b in zip(order, np.roll(order, 1), strict=True)}
        return result


def mapped(text: str, words: Map) -> str:
    """Return a text with its words replaced."""
    return _WORD.sub(lambda match: words.get(match[0].lower(), match[0]), text) if words else text


def name_of(name: str, copy: int) -> str:
    return f"{name}-x{copy}" if copy else name


def grow(folder: Path, times: int) -> int:
    """Write the demo enlarged so many ``times`` (a square, or 0): dialogues, submissions, raters; return the responses."""
    copies = math.isqrt(times) or 1
    if times and copies**2 != times:
        raise SystemExit(f"{times} times: not a square")
    names = ("contexts", "personas", "responses", "systems")
    contexts, personas, responses, systems = (schema.read(DEMO / f"{name}.parquet", name) for name in names)
    dialogues = dialogues_of(contexts, personas)
    if not times:
        systems, dialogues = systems.head(3), dialogues[:2]
    responses = responses.merge(contexts[["context_id", "dialogue_id", "turn"]], on="context_id")
    kept = responses["dialogue_id"].isin([d.dialogue_id for d in dialogues])
    responses = responses[kept & responses["system_id"].isin(systems["system_id"])]
    sentences = [s for d in dialogues for persona in d.personas.values() for s in persona]
    words = Words([*responses["response"], *sentences, *(text for d in dialogues for text in d.texts)])
    (folder / "submissions").mkdir(parents=True, exist_ok=True)
    grown = []
    for copy in range(copies):
        own = words.map(copy, 0)
        for d in dialogues:
            persona_texts = {who: [mapped(s, own) for s in sentences] for who, sentences in d.personas.items()}
            texts = tuple(mapped(text, own) for text in d.texts)
            grown.append(to_data(Dialogue(name_of(d.dialogue_id, copy), persona_texts, texts)))
    (folder / "dialogues.json").write_text(json.dumps(grown, ensure_ascii=False), encoding="utf-8")
    write_systems(folder, systems, copies)
    for system in range(copies):
        maps = [words.map(copy, system) for copy in range(copies)]
        for name, rows in responses.groupby("system_id"):
            lines = [
                {"dialogue_id": name_of(of, copy), "turn": int(turn), "response": mapped(text, own)}
                for copy, own in enumerate(maps)
                for of, turn, text in zip(rows["dialogue_id"], rows["turn"], rows["response"], strict=True)
            ]
            path = folder / f"submissions/{name_of(str(name), system)}.jsonl"
            path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    return len(responses) * copies**2


def write_systems(folder: Path, systems: pd.DataFrame, copies: int) -> None:
    """Write the systems and the raters, who rate a copy about as high as its original."""
    model, rng = read_raters(ROOT / "data/demo/raters.yaml").model_dump(), np.random.default_rng(2024)
    copied = pd.concat([systems.assign(copy=copy) for copy in range(copies)])
    noise = rng.normal(0, 0.05, len(copied)) * (copied["copy"] > 0)
    skills = (copied["system_id"].map(model["skill"]) + noise).clip(0, 1).tolist()
    names = [*map(name_of, copied["system_id"], copied["copy"])]
    columns = ["system_id", "kind", "track", "description"]
    copied.assign(system_id=names)[columns].to_csv(folder / "submissions/systems.csv", index=False)
    raters = yaml.safe_dump(model | {"skill": dict(zip(names, skills, strict=True))}, sort_keys=False)
    (folder / "raters.yaml").write_text(raters, encoding="utf-8")


class Work:
    """A folder with the grown data sets, the commands' outputs, and a line for each measurement."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.file = folder, folder / "measured.jsonl"
        folder.mkdir(parents=True, exist_ok=True)
        lines = map(json.loads, self.file.read_text().splitlines()) if self.file.exists() else ()
        self.measured = {(line["stage"], line["times"]): line for line in lines}

    def keep(self, stage: str, times: int, **measured: float) -> None:
        line = {"stage": stage, "times": times, **measured}
        self.measured[stage, times] = line
        with self.file.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def measure(self, stage: str, times: int) -> None:
        """Measure a stage, unless already done."""
        folder = self.folder / str(times)
        if ("texts", times) not in self.measured:
            # Elsewhere, since this process's peak memory would count for the commands it starts.
            command = [sys.executable, __file__, "--make", str(folder), str(times)]
            made = subprocess.run(command, check=True, capture_output=True, text=True)
            self.keep("texts", times, responses=int(made.stdout))
        if (stage, times) not in self.measured:
            cost = run(commands(folder, stage), folder / f"{stage}.log", threads=2 if stage in MODEL else 1)
            size = sum(path.stat().st_size for path in made_by(folder, stage))
            self.keep(stage, times, responses=self.measured["texts", times]["responses"], bytes=size, **cost)
            print(times, stage, cost, flush=True)

    def sizes(self) -> dict[str, Sizes]:
        """Return the measurements of each stage by size."""
        result = {
            stage: {times: line for (of, times), line in self.measured.items() if of == stage} for stage in STAGES
        }
        return {stage: dict(sorted(of.items())) for stage, of in result.items() if of}


def commands(folder: Path, stage: str) -> list[list[str]]:
    """Return the commands of a stage, as the workflow's rules have them."""
    tables, output = folder / "tables", folder / f"{stage}.parquet"
    score = ["score", tables, "--metric", stage, "--name", stage, "--output", output]
    if stage in MODEL:
        options = [f"--option={name}={value}" for name, value in MODEL[stage].items()]
        score += [*options, "--embeddings", folder / "vectors"]
    shard = ["score", tables, "--metric", SHARDED, "--name", SHARDED]
    parts = {f"{number}-of-{SHARDS}": folder / f"shards/{number}.parquet" for number in range(1, SHARDS + 1)}
    submissions = ["--submissions", folder / "submissions", "--name", "demo", "--output", tables]
    given = [
        "--ratings", tables / "ratings.parquet", "--contexts", tables / "contexts.parquet", "--systems",
        tables / "systems.parquet", "--source", "simulated", "--level", "turn", "--level", "dialogue", "--level", "system",
        "--detail-target", "Overall", "--resamples", "1000", "--seed", "2024", "--ceilings", folder / "ceilings.parquet",
        "--pairs", folder / "pairs.parquet", "--output", output, "--outputs", *(f"{m}:{of}" for m, of in NGRAM.items()),
    ]  # fmt: skip
    made: dict[str, list[list[object]]] = {
        "tables": [["challenge", "tables", folder / "dialogues.json", *submissions]],
        "ratings": [["simulate", tables, "--raters", folder / "raters.yaml", "--seed", "2024"]],
        "shards": [[*shard, "--part", part, "--output", path] for part, path in parts.items()],
        "merge": [["merge", *parts.values(), "--output", output]],
        "correlate": [["correlate", *(folder / f"{metric}.parquet" for metric in NGRAM), *given]],
    }
    start = [sys.executable, "-m", "comperdial.cli"]
    return [[*start, *map(str, command)] for command in made.get(stage, [score])]


def made_by(folder: Path, stage: str) -> list[Path]:
    """Return the files that make up a stage's disk use."""
    names = {"tables": "tables/responses.parquet", "ratings": "tables/ratings.parquet", "shards": "shards/*.parquet"}
    vectors = [*filter(Path.is_file, (folder / "vectors").rglob("*"))] if stage == "bertscore" else []
    return [*folder.glob(names.get(stage, f"{stage}.parquet")), *vectors]


def run(lines: list[list[str]], log: Path, *, threads: int) -> dict[str, float]:
    """Run commands one after the other; return their total CPU seconds and the largest peak memory."""
    cpu, mb = 0.0, 0.0
    env = os.environ | {name: str(threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    with log.open("w") as output:
        for line in lines:
            process = subprocess.Popen(line, env=env, stdout=output, stderr=subprocess.STDOUT, cwd=ROOT)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                raise SystemExit(f"{' '.join(line)}\nended with {process.returncode}: {log.read_text()[-2000:]}")
            cpu, mb = cpu + usage.ru_utime + usage.ru_stime, max(mb, usage.ru_maxrss / 1024)
    return {"cpu": round(cpu, 2), "mb": round(mb, 2)}


def fit(sizes: Sizes) -> dict[str, float]:
    """Compare the largest size (``ratio``), and its step (``last``), with linear time; fit memory as b + c n million."""
    grown = [size for times, size in sizes.items() if times]
    each = [(size["cpu"] - sizes[0]["cpu"]) / (size["responses"] - sizes[0]["responses"]) for size in grown]
    slope, base = np.polyfit([size["responses"] / 1e6 for size in grown], [size["mb"] for size in grown], 1)
    return {"ratio": each[-1] / each[0], "last": each[-1] / each[-2], "c": float(slope), "b": float(base)}


def seconds(sizes: Sizes, jobs: int) -> float:
    """Return CPU seconds for 7 million responses: the jobs' startup, and the largest measured size scaled up."""
    start, most = sizes[0], sizes[max(sizes)]
    each = (most["cpu"] - start["cpu"]) / (most["responses"] - start["responses"])
    return jobs * start["cpu"] + RESPONSES * each


def report(result: dict[str, Sizes]) -> None:
    sizes = sorted({times for stage in result.values() for times in stage})
    head = [f"{unit}: {times or 'start'}" for unit in ("s", "MB") for times in sizes]
    print(f"\n| SIMULATED | {' | '.join(head)} | linear | last step | MB ~ | disk |\n|:--|{'--:|' * (len(head) + 4)}")
    for stage, of in result.items():
        cells = [f"{of[times][name]:.1f}" if times in of else "" for name in ("cpu", "mb") for times in sizes]
        fitted = "{ratio:.2f} | {last:.2f} | {b:.0f} + {c:.0f} n".format(**fit(of)) if len(of) > 2 else " | | "
        print(f"| {stage} | {' | '.join(cells)} | {fitted} | {of[max(of)]['bytes'] / 1e6:.1f} |")
    on_nodes({stage: of for stage, of in result.items() if 0 in of and max(of)})


def on_nodes(result: dict[str, Sizes]) -> None:
    """Print what 7 million responses would take, computed from the largest size measured."""
    shards = math.ceil(RESPONSES / SHARD)
    print(f"\n{RESPONSES:,} responses, {shards} shards a metric, nodes of {CORES} cores.\n")
    print("| stage | from size | core-hours | peak MB | disk, MB | parallel |\n|:--|--:|--:|--:|--:|:--|")
    cost = {stage: seconds(of, shards if stage in NGRAM or stage in MODEL else 1) for stage, of in result.items()}
    for stage in cost:
        of = result[stage]
        most, memory = of[max(of)], f"{of[max(of)]['mb']:.0f}"
        if stage in ALONE and len(of) > 2:
            memory = "{:.0f} if it grows on".format(fit(of)["b"] + fit(of)["c"] * RESPONSES / 1e6)
        how = "no" if stage in ALONE else "one per metric" if stage == "merge" else f"{shards} shards"
        disk = most["bytes"] / most["responses"] * RESPONSES / 1e6
        print(f"| {stage} | {max(of)}x | {cost[stage] / 3600:.2f} | {memory} | {disk:.0f} | {how} |")
    print(f"| replay one judge, one sample | 124,740 judgements | {RESPONSES * REPLAY / 3600:.2f} | | | no |")
    print("\n| nodes | scoring, h | merges, h | alone, h | all, h | times as fast |\n|--:|--:|--:|--:|--:|--:|")
    scored = {stage: cost[stage] for stage in (*NGRAM, *MODEL) if stage in cost}
    first, alone = 0.0, sum(cost.get(stage, 0.0) for stage in ALONE)
    for nodes in NODES:
        # A model uses all cores of a node; scoring takes at least one shard of the slowest. A metric's merge is one job.
        longest = max((of / shards / (CORES if stage in MODEL else 1) for stage, of in scored.items()), default=0.0)
        scoring = max(sum(scored.values()) / CORES / nodes, longest)
        parts = [scoring, cost.get("merge", 0.0) * math.ceil(len(scored) / CORES / nodes), alone]
        first = first or sum(parts)
        hours = " | ".join(f"{part / 3600:.2f}" for part in [*parts, sum(parts)])
        print(f"| {nodes} | {hours} | {first / max(sum(parts), 1e-9):.1f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=[1, 4, 16, 64], metavar="N", help="squares")
    parser.add_argument("--only", nargs="*", choices=STAGES, default=list(STAGES), metavar="STAGE")
    parser.add_argument("--work", type=Path, default=ROOT / "data/scale", help="a folder to resume in")
    parser.add_argument("--print", action="store_true", help="measure nothing")
    parser.add_argument("--make", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        print(grow(Path(options.make[0]), int(options.make[1])))
        return
    work = Work(options.work)
    for times in [] if options.print else [0, *options.sizes]:
        for stage in (stage for stage in STAGES if stage in options.only):
            if times <= MOST.get(stage, times):
                work.measure(stage, times)
    report(work.sizes())


if __name__ == "__main__":
    main()
