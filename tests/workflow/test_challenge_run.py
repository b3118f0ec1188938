"""A challenge run whole: from agents and submissions to rated tables, whatever comes in."""

import pandas as pd
import pytest

from comperdial import schema
from minichallenge import DIALOGUES, write_challenge
from workdir import copy_repository

SYSTEMS = "results/mini/tables/systems"


@pytest.fixture(scope="module")
def challenge(root, tmp_path_factory):
    workdir = copy_repository(root, tmp_path_factory.mktemp("challenge") / "repository")
    write_challenge(workdir, root)
    workdir.snakemake(f"{SYSTEMS}.html", "results/mini/tables/correlations.html")
    return workdir


def table(workdir, name):
    return schema.read(workdir.path / f"data/tables/mini/{name}.parquet", name)


def test_agents_and_submissions_become_rated_tables(challenge):
    systems = table(challenge, "systems").set_index("system_id")
    assert systems["kind"].to_dict() == {
        "echo": "agent", "generic": "agent", "human-1": "human", "human-2": "human", "template": "agent",
    }  # fmt: skip
    assert len(table(challenge, "responses")) == len(systems) * DIALOGUES * 7
    ratings = table(challenge, "ratings").query("level == 'turn'")
    assert len(ratings) == len(systems) * DIALOGUES * 7 * 6
    assert set(ratings["source"]) == {"simulated"}
    for name in ("systems", "correlations"):
        for suffix in ("md", "html", "tex"):
            page = (challenge.path / f"results/mini/tables/{name}.{suffix}").read_text()
            assert "SIMULATED: the systems, the raters and their ratings are programs" in page


def test_a_failing_agent_costs_its_own_submission_and_is_named(challenge):
    page = (challenge.path / f"{SYSTEMS}.md").read_text()
    assert "failing has no valid submission and was left out" in page
    assert "raised ValueError: out of ideas" in page
    assert "failing" not in set(pd.read_csv(challenge.path / f"{SYSTEMS}.csv")["system_id"])


def test_submissions_dropped_in_are_scored_or_named_and_no_agent_runs_again(challenge):
    """And ratings of an earlier run are not taken for ratings, where params.yaml names none any more."""
    before = challenge.outputs()
    runs = challenge.path / "data/runs/mini/runs.jsonl"
    ran = runs.stat().st_mtime_ns
    folder = challenge.path / "data/mini/submissions"
    text = (folder / "human-1.jsonl").read_text()
    (folder / "mine.jsonl").write_text(text)
    (folder / "bra{ce}.jsonl").write_text("{}")
    (folder / "short.jsonl").write_text(text.splitlines()[0] + "\n")
    (folder / "echo.jsonl").write_text(text)
    challenge.edit("params.yaml", "    simulated: {raters: data/demo/raters.yaml, seed: 1}\n", "")
    said = challenge.snakemake(f"{SYSTEMS}.html")
    assert runs.stat().st_mtime_ns == ran
    assert "results/mini/scores/f1.parquet" in challenge.rewritten(before)
    page = (challenge.path / f"{SYSTEMS}.md").read_text()
    for name, why in (("bra{ce}", "letters, digits"), ("short", "are missing"), ("echo (echo.jsonl)", "a second time")):
        line = next(line for line in page.splitlines() if line.startswith(f"- {name} has no valid submission"))
        assert why in line, said
    frame = pd.read_csv(challenge.path / f"{SYSTEMS}.csv").set_index("system_id")
    assert frame.loc["mine", "f1:f1"] == frame.loc["human-1", "f1:f1"]
    assert (challenge.path / "data/tables/mini/ratings.parquet").exists()
    assert "| mine | agent | – | 21 | not rated | not rated |" in page
    assert "| echo | agent | gpu | 21 | not rated | not rated |" in page
