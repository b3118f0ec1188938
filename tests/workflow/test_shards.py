"""Scores and judgements in shards: the same bytes however many there are, and one that fails is made again alone."""

import json
import os
import shlex
import stat
import subprocess
from types import SimpleNamespace

import pytest
import yaml

from comperdial import schema
from minidata import TOPICS, mini_items, write_mirror
from workdir import Workdir, copied

BLOCK = 256
METRICS = ("f1", "sentence-cosine-minilm")
JUDGED = "cpds-d_rules"
MERGED = [
    *(f"results/scores/usr_persona/{name}.parquet" for name in (*METRICS, JUDGED)),
    f"results/judgements/usr_persona/{JUDGED}.parquet",
]
# Fails for one shard of one metric as long as a file is there; else it is the command itself.
WRAPPER = """#!/bin/sh
case "$*" in *"--shard 2/3"*"--output results/shards/scores/usr_persona/f1/"*)
  if [ -e {fault} ]; then echo 'this node is gone' >&2; exit 1; fi;;
esac
echo "$*" >> {calls}
exec {command} "$@"
"""


def items():
    """More than four blocks of responses, all of them different."""
    many = []
    for number in range(4 * BLOCK // 30 + 1):
        for item in mini_items():
            text = json.dumps(item)
            for topic in TOPICS:
                text = text.replace(topic, f"{topic} of year {1000 + number}")
            many.append(json.loads(text))
    return many


@pytest.fixture(scope="module")
def large(root, tmp_path_factory) -> Workdir:
    """Return a copy of the repository with a data set of several blocks, its tables made."""
    from workdir import copy_repository

    workdir = copy_repository(root, tmp_path_factory.mktemp("shards") / "repository")
    write_mirror(workdir.path, items()).rename(workdir.path / "data/sources.yaml")
    path = workdir.path / "params.yaml"
    params = yaml.safe_load(path.read_text())
    params["metrics"] = {
        "f1": {"kind": "f1"},
        "sentence-cosine-minilm": {"kind": "sentence_cosine", "model": "all-MiniLM-L6-v2", "pooling": "mean"},
    }
    params["evaluation"]["outputs"] = params["tables"]["systems"] = ["f1:f1"]
    params["judging"]["variants"]["cpds-d"]["samples"] = 1
    path.write_text(yaml.safe_dump(params))
    workdir.snakemake("data/tables/usr_persona/responses.parquet")
    return workdir


@pytest.fixture(scope="module")
def whole(large, tmp_path_factory) -> Workdir:
    """Return a copy in which everything was made in one shard."""
    workdir = copied(large, tmp_path_factory.mktemp("whole") / "repository")
    workdir.snakemake(*MERGED)
    return workdir


def test_three_shards_and_one_give_the_same_bytes(large, whole, tmp_path):
    there = copied(large, tmp_path / "three")
    params = there.path / "params.yaml"
    params.write_text(params.read_text() + "\nsharding: {size: 400}\n")
    said = there.snakemake(*MERGED)
    assert "3-of-3" in said
    assert json.loads((there.path / "results/scores/usr_persona/shards.json").read_text())["shards"] == 3
    assert json.loads((whole.path / "results/scores/usr_persona/shards.json").read_text())["shards"] == 1
    for name in MERGED:
        assert (there.path / name).read_bytes() == (whole.path / name).read_bytes(), name
    count = len(schema.read(there.path / MERGED[0], "scores"))
    # Systems of kind reference are not scored.
    assert count > 2 * BLOCK
    assert not list(there.path.glob("results/shards/**/*.parquet")), "shards are gone once they are merged"
    assert "Nothing to be done" in there.snakemake(*MERGED)
    before = there.outputs()
    for name in ("systems", "contexts", "responses"):
        (there.path / f"data/tables/usr_persona/{name}.parquet").touch()
    assert "Nothing to be done" in there.snakemake("-n", *MERGED)
    assert there.rewritten({name: entry for name, entry in before.items() if "shards" not in name}) <= {
        f"data/tables/usr_persona/{name}.parquet" for name in ("systems", "contexts", "responses")
    } | {name for name in before if "shards" in name}


def test_a_shard_that_fails_is_made_again_alone(large, whole, tmp_path):
    there = copied(large, tmp_path / "failing")
    params = there.path / "params.yaml"
    params.write_text(params.read_text() + "\nsharding: {size: 400}\n")
    fault, calls = tmp_path / "fault", tmp_path / "calls"
    fault.touch()
    command = there.run("sh", "-c", "command -v comperdial").stdout.strip()
    wrapper = tmp_path / "bin" / "comperdial"
    wrapper.parent.mkdir()
    wrapper.write_text(WRAPPER.format(fault=fault, calls=calls, command=command))
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    path = there.run("sh", "-c", f"echo {wrapper.parent}:$PATH").stdout.strip()
    said = there.run("snakemake", "--cores", "2", "--keep-going", MERGED[0], check=False, PATH=path).stdout
    assert "this node is gone" in said
    assert not (there.path / MERGED[0]).exists()
    kept = sorted(file.name for file in there.path.glob("results/shards/scores/usr_persona/f1/*.parquet"))
    assert kept == ["1-of-3.parquet", "3-of-3.parquet"]
    fault.unlink()
    calls.write_text("")
    there.run("snakemake", "--cores", "2", MERGED[0], PATH=path)
    made = calls.read_text().splitlines()
    assert [line.split()[0] for line in made] == ["score", "merge"], made
    assert "--shard 2/3" in made[0]
    assert (there.path / MERGED[0]).read_bytes() == (whole.path / MERGED[0]).read_bytes()


def test_a_command_that_merges_thousands_of_shards_is_short_and_names_each(root, tmp_path):
    """One argument, as the shell gets a command, is 128 KiB at most."""
    functions = {"config": {}, "os": os, "shlex": shlex}
    exec((root / "workflow/rules/shard_files.smk").read_text(), functions)
    scores, judgements = (
        [f"{tmp_path}/a b/{kind}/{number}-of-4000.parquet" for number in range(1, 4001)] for kind in ("judged", "said")
    )

    def ran(command):
        assert len(command) < 1000
        shell = f"comperdial() {{ printf '%s\\n' \"$@\"; }}; {command}"
        return subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=True).stdout.splitlines()

    assert ran(functions["merging"](scores, "out.parquet")) == [*("merge", *scores, "--output", "out.parquet")]
    output = SimpleNamespace(scores="scores.parquet", judgements="judgements.parquet")
    assert ran(functions["merging_judged"](scores, judgements, output)) == [
        *("judge", "merge", "--scores", *scores, "--judgements", *judgements),
        *("--output", "scores.parquet", "--output-judgements", "judgements.parquet"),
    ]


def test_what_decides_scores_makes_merged_ones_stale(whole, tmp_path):
    there = copied(whole, tmp_path / "changed")
    there.edit("params.yaml", "kind: f1", "kind: f1\n    text: raw")
    said = there.snakemake("-n", *MERGED)
    assert "score_shard" in said
    assert "Score usr_persona with f1" in said
    assert "Score usr_persona with sentence" not in said
    assert "judge_shard" not in said
    there = copied(whole, tmp_path / "edited")
    with (there.path / "src/comperdial/judging/items.py").open("a") as file:
        file.write("changed = 1\n")
    said = there.snakemake("-n", *MERGED)
    assert "judge_shard" in said
    assert "Score usr_persona" not in said
    there = copied(whole, tmp_path / "other_data")
    responses = there.path / "data/tables/usr_persona/responses.parquet"
    frame = schema.read(responses, "responses")
    frame.loc[0, "response"] = "something else altogether"
    schema.write(responses, frame, "responses")
    # Into how many shards, only the new responses tell: a plan ends there.
    said = there.snakemake("-n", *MERGED)
    assert "Merge the scores of usr_persona with f1" in said
    assert f"Merge what was judged of usr_persona/{JUDGED}" in said
    there.snakemake(MERGED[0])
    assert (there.path / MERGED[0]).read_bytes() != (whole.path / MERGED[0]).read_bytes()
