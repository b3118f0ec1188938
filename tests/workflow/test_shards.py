"""Scores and judgements in shards: the same bytes however many there are, and one that fails is made again alone."""

import json
import os

import pytest
import yaml

from workdir import Workdir, copied

MERGED = [
    *(f"results/usr_persona/scores/{name}.parquet" for name in ("f1", "cpds-d_rules")),
    "results/usr_persona/judgements/cpds-d_rules.parquet",
]
# Fails for one shard of one metric as long as a file is there; else it is the command itself.
WRAPPER = """#!/bin/sh
case "$*" in *'"outputs":{{"scores":"results/shards/scores/usr_persona/f1/2-of-3.parquet"}}'*)
  if [ -e {fault} ]; then echo 'this node is gone' >&2; exit 1; fi;;
esac
echo "$*" >> {calls}
exec {command} "$@"
"""


@pytest.fixture
def whole(fresh) -> Workdir:
    """Return a copy in which everything was made in one shard."""
    fresh.snakemake(*MERGED)
    return fresh


def test_three_shards_give_the_bytes_of_one_and_one_that_fails_is_made_again_alone(whole, tmp_path):
    there = copied(whole, tmp_path / "three")
    config = yaml.safe_load((there.path / "params.yaml").read_text())
    (there.path / "params.yaml").write_text(yaml.safe_dump(config | {"shards": {"default": 1, "usr_persona": 3}}))
    fault, calls, wrapper = tmp_path / "fault", tmp_path / "calls", tmp_path / "bin/comperdial"
    fault.touch()
    wrapper.parent.mkdir()
    command = there.run("sh", "-c", "command -v comperdial").stdout.strip()
    wrapper.write_text(WRAPPER.format(fault=fault, calls=calls, command=command))
    wrapper.chmod(0o755)
    path = f"{wrapper.parent}{os.pathsep}{os.environ['PATH']}"
    said = there.run("snakemake", "--cores", "2", "--keep-going", *MERGED, check=False, PATH=path).stdout
    assert "this node is gone" in said
    kept = {file.name for file in there.path.glob("results/shards/scores/usr_persona/f1/*.parquet")}
    assert kept == {"1-of-3.parquet", "3-of-3.parquet"}
    fault.unlink()
    calls.write_text("")
    there.run("snakemake", "--cores", "2", *MERGED, PATH=path)
    made = [json.loads(line.removeprefix("do "))["outputs"] for line in calls.read_text().splitlines()]
    of_f1 = [outputs["scores"] for outputs in made if "/f1" in outputs["scores"]]
    assert of_f1 == ["results/shards/scores/usr_persona/f1/2-of-3.parquet", MERGED[0]]
    assert not list(there.path.glob("results/shards/**/*.parquet")), "shards are gone once they are merged"
    for name in MERGED:
        assert (there.path / name).read_bytes() == (whole.path / name).read_bytes(), name
    assert "Nothing to be done" in there.snakemake("-n", *MERGED)
