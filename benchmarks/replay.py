"""Scores of the demo out of a ledger alone, and all its CPDScore variants judged by `rules` from nothing.

python benchmarks/replay.py replay      10,395 turns x 4 variants x 3 samples, in one process
python benchmarks/replay.py rules       the demo's CPDScore variants by `rules`, two processes; again, warm

It needs the demo's tables: snakemake data/tables/demo/responses.parquet
"""

from __future__ import annotations

import argparse
import copy
import random
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml

from comperdial.config import load_yaml
from comperdial.judges.base import Answer, Completion
from comperdial.judges.items import items_of
from comperdial.judges.ledger import Ledger
from comperdial.judges.scores import Tally, write_judged
from comperdial.judges.tasks import Judging, Task, family_of, read_judging

ROOT = Path(__file__).resolve().parents[1]
TABLES = ROOT / "data/tables/demo"
TURNS = ("cpds-s-ref", "cpds-s", "cpds-d-ref", "cpds-d")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["replay", "rules", "one"])
    parser.add_argument("--params", type=Path, default=ROOT / "params.yaml")
    parser.add_argument("--variants", nargs="*", default=())
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        {"replay": replay, "rules": rules, "one": one}[options.what](Path(folder), options)


def read(params: Path) -> Judging:
    content = load_yaml(params)
    return read_judging(content["judges"], content["judging"])


def changed(folder: Path, **judging: object) -> Path:
    content = copy.deepcopy(load_yaml(ROOT / "params.yaml"))
    content["judging"] |= {"ledger": str(folder / "ledger"), **judging}
    path = folder / "params.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def replay(folder: Path, _: argparse.Namespace) -> None:
    judging = read(changed(folder, judges={"default": ["gpt-4"]}))
    tasks = [judging.tasks("demo")[f"{variant}_gpt-4"] for variant in TURNS]
    rng = random.Random(0)  # noqa: S311
    for task in tasks:
        wanted = {item.messages for item in items_of(judging, task, TABLES) if item.messages}
        answers = [
            Answer(text, sample, Completion(filled(task.variant.form.dimensions, rng), "stop", 700, 9, "gpt-4-x"))
            for text in wanted
            for sample in range(task.samples)
        ]
        Ledger(judging.ledger).add("demo", family_of(judging, task), answers)
    start = time.perf_counter()
    judgements = sum(judge(judging, task, folder).judgements for task in tasks)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"replay: {judgements:,} judgements into scores in {seconds:.1f} s (bar: 10 s); peak memory {peak:,.0f} MiB")


def judge(judging: Judging, task: Task, folder: Path) -> Tally:
    """Judge into the files of a folder, where a dialogue's turns are too."""
    turns = folder / f"{task.turns}.parquet" if task.turns else None
    paths = (folder / f"{task.name}.parquet", folder / f"{task.name}.judgements.parquet")
    return write_judged(judging, task, TABLES, *paths, dataset="demo", turns=turns)


def filled(dimensions: tuple[str, ...], rng: random.Random) -> str:
    if len(dimensions) == 1:
        return str(rng.randint(1, 5))
    return "\n".join(f"{name} - {rng.randint(1, 5)}" for name in dimensions)


def rules(folder: Path, _: argparse.Namespace) -> None:
    """Judge everything as the workflow does: a process a variant, two at a time, dialogues after their turns."""
    params = changed(folder)
    for name in ("cold", "warm"):
        start = time.perf_counter()
        for variants in (TURNS, ("cpds-dial-ref", "cpds-dial")):
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(lambda variant: run_one(params, variant), variants))
        print(f"rules, {name} ledger: {time.perf_counter() - start:.1f} s")
    size = sum(path.stat().st_size for path in (folder / "ledger").rglob("*") if path.is_file())
    print(f"the ledger: {size / 1e6:.2f} MB (bar: 10 MB)")


def run_one(params: Path, variant: str) -> None:
    command = [sys.executable, __file__, "one", "--params", str(params), "--variants", variant]
    subprocess.run(command, check=True)


def one(_: Path, options: argparse.Namespace) -> None:
    judging = read(options.params)
    for name in options.variants:
        task = judging.tasks("demo")[f"{name}_rules"]
        tally = judge(judging, task, options.params.parent)
        print(f"  {task.name}: {tally.scores:,} scores of {tally.judgements:,} judgements")


if __name__ == "__main__":
    main()
