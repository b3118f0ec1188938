"""A challenge run whole: from submissions and agents to rated tables, whatever comes in."""

import pandas as pd
import pytest

from comperdial import schema
from minichallenge import DIALOGUES, HUMANS, SYSTEMS, write_challenge
from workdir import copy_repository

SYSTEMS_TABLE = "results/mini/tables/systems"


@pytest.fixture(scope="module")
def challenge(root, tmp_path_factory):
    workdir = copy_repository(root, tmp_path_factory.mktemp("challenge") / "repository")
    write_challenge(workdir, root)
    workdir.snakemake(f"{SYSTEMS_TABLE}.html", "results/mini/tables/correlations.html")
    return workdir


def table(workdir, name):
    return schema.read(workdir.path / f"data/tables/mini/{name}.parquet", name)


def test_submissions_and_agents_become_rated_tables(challenge):
    systems = table(challenge, "systems").set_index("system_id")
    assert systems["kind"].to_dict() == dict.fromkeys([*SYSTEMS, "mine"], "agent") | dict.fromkeys(HUMANS, "human")
    assert len(table(challenge, "responses")) == len(systems) * DIALOGUES * 7
    # The agent has no skill, so the simulated raters do not rate it.
    ratings = table(challenge, "ratings").query("level == 'turn'")
    assert len(ratings) == (len(systems) - 1) * DIALOGUES * 7 * 6
    assert set(ratings["source"]) == {"simulated"}
    for name in ("systems", "correlations"):
        for suffix in ("md", "html", "tex"):
            page = (challenge.path / f"results/mini/tables/{name}.{suffix}").read_text()
            assert "SIMULATED: the systems, the raters and their ratings are programs" in page


def test_a_wrong_submission_is_left_out_and_named(challenge):
    page = (challenge.path / f"{SYSTEMS_TABLE}.md").read_text()
    assert "unfinished has no valid submission and was left out" in page
    assert "20 of 21 responses are missing" in page
    assert "unfinished" not in set(pd.read_csv(challenge.path / f"{SYSTEMS_TABLE}.csv")["system_id"])


def test_submissions_dropped_in_are_scored_or_named_and_no_agent_runs_again(challenge):
    """And ratings of an earlier run are not taken for ratings if params.yaml names none any more."""
    before = challenge.outputs()
    run = challenge.path / "data/runs/mini/mine.jsonl"
    ran = run.stat().st_mtime_ns
    folder = challenge.path / "data/mini/submissions"
    text = (folder / "human-1.jsonl").read_text()
    (folder / "other.jsonl").write_text(text)
    (folder / "bra{ce}.jsonl").write_text("{}")
    (folder / "mine.jsonl").write_text(text)
    challenge.edit("params.yaml", "    simulated: {raters: data/demo/raters.yaml, seed: 1}\n", "")
    spoken = challenge.snakemake(f"{SYSTEMS_TABLE}.html")
    assert run.stat().st_mtime_ns == ran
    assert "results/mini/scores/f1.parquet" in challenge.rewritten(before)
    page = (challenge.path / f"{SYSTEMS_TABLE}.md").read_text()
    for name, why in (("bra{ce}", "letters, digits"), ("mine (mine.jsonl)", "a second time")):
        line = next(line for line in page.splitlines() if line.startswith(f"- {name} has no valid submission"))
        assert why in line, spoken
    frame = pd.read_csv(challenge.path / f"{SYSTEMS_TABLE}.csv").set_index("system_id")
    assert frame.loc["other", "f1:f1"] == frame.loc["human-1", "f1:f1"]
    assert (challenge.path / "data/tables/mini/ratings.parquet").exists()
    assert "| other | agent | – | 21 | not rated | not rated |" in page
    assert "| echo-01 | agent | gpu | 21 | not rated | not rated |" in page


def test_an_agent_that_fails_stops_the_run_with_its_problem(challenge):
    challenge.edit("data/mini/words.py", "WORDS =", "raise ValueError('out of ideas')\nWORDS =")
    spoken = challenge.snakemake(f"{SYSTEMS_TABLE}.html", check=False)
    log = (challenge.path / "logs/run_agent/mini/mine.log").read_text()
    assert "Error in rule run_agent" in spoken
    assert "loading: raised ValueError: out of ideas" in log
    assert "Traceback" not in log
