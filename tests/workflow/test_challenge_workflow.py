"""The DAG on challenges: from agents and submissions to tables, whatever the ratings come from."""

import json
import shutil

import pandas as pd
import pytest

from comperdial import schema
from minichallenge import DIALOGUES, write_challenge
from workdir import copied, copy_repository, planned

TABLES = ("systems", "contexts", "personas", "responses", "turn_ratings", "dialogue_ratings")


@pytest.fixture(scope="session")
def _challenge(root, tmp_path_factory):
    workdir = copy_repository(root, tmp_path_factory.mktemp("challenge") / "repository")
    write_challenge(workdir, root)
    workdir.snakemake()
    return workdir


@pytest.fixture
def challenge(_challenge, tmp_path):
    return copied(_challenge, tmp_path / "challenge")


def table(workdir, name):
    return schema.read(workdir.path / f"data/tables/mini/{name}.parquet", name)


def test_agents_and_submissions_become_rated_tables(challenge):
    systems = table(challenge, "systems").set_index("system_id")
    assert list(systems.index) == ["echo", "generic", "human-1", "human-2", "template"]
    assert list(systems["kind"]) == ["agent", "agent", "human", "human", "agent"]
    assert len(table(challenge, "responses")) == len(systems) * DIALOGUES * 7
    ratings = table(challenge, "turn_ratings")
    assert len(ratings) == len(systems) * DIALOGUES * 7 * 6
    assert set(ratings["source"]) == {"simulated"}
    truth = schema.read(challenge.path / "data/tables/mini/truth.parquet", "scores")
    assert set(truth["level"]) == {"turn", "dialogue"}


def test_a_failing_agent_costs_its_own_submission_and_is_named(challenge):
    for suffix in ("md", "html", "tex"):
        page = (challenge.path / f"results/tables/mini_systems.{suffix}").read_text()
        assert "failing has no valid submission and was left out" in page
        assert "raised ValueError: out of ideas" in page
    assert "failing" not in set(pd.read_csv(challenge.path / "results/tables/mini_systems.csv")["system_id"])


def test_every_page_made_of_simulated_data_says_so(challenge):
    """Each table, figure and page with a record, but those that are made of no data set."""
    results = challenge.path / "results"
    said = "SIMULATED: the systems, the raters and their ratings are programs"
    of_none = {f"table_{number}" for number in ("01", "07", "09", "10", "11", "14")}
    folders = ("tables", "figures", "notebooks", "report")
    records = [path for folder in folders for path in (results / folder).glob("*.provenance.json")]
    stems = {path.with_name(path.name.removesuffix(".provenance.json")) for path in records}
    kinds = ("systems", "alpha", "correlations", "judges", "measures", "comparisons", "power", "curves")
    numbered = {f"table_{number}" for number in ("02", "03", "04", "05", "08", "12", "13", "15")}
    found = {stem.name for stem in stems if stem.parent.name == "tables"}
    assert found - of_none == numbered | {f"mini_{kind}" for kind in kinds}
    assert {stem.name for stem in stems} >= of_none
    for stem in sorted(stem for stem in stems if stem.name not in of_none):
        pages = [stem.with_name(f"{stem.name}.{suffix}") for suffix in ("md", "tex", "html")]
        there = [page for page in pages if page.exists()]
        assert len(there) == (3 if stem.parent.name == "tables" else 0 if stem.parent.name == "figures" else 1)
        for page in there:
            assert said in page.read_text(), page.name
        assert json.loads(stem.with_name(f"{stem.name}.provenance.json").read_text())["parameters"].get(
            "simulated", stem.parent.name == "notebooks"
        ), stem.name
    for name in of_none:
        for page in results.rglob(f"{name}.md"):
            assert said not in page.read_text(), page.name


def test_a_dropped_in_submission_is_scored_beside_the_others(challenge):
    before = challenge.outputs()
    mine = challenge.path / "data/mini/submissions/mine.jsonl"
    mine.write_text((challenge.path / "data/mini/submissions/human-1.jsonl").read_text())
    challenge.snakemake("results/tables/mini_systems.md")
    frame = pd.read_csv(challenge.path / "results/tables/mini_systems.csv").set_index("system_id")
    assert frame.loc["mine", "f1:f1"] == frame.loc["human-1", "f1:f1"]
    assert (
        "| mine | agent | – | 21 | not rated | not rated |"
        in (challenge.path / "results/tables/mini_systems.md").read_text()
    )
    assert "data/runs/mini/runs.jsonl" not in {*challenge.rewritten(before)}
    assert (challenge.path / "data/runs/mini/runs.jsonl").exists()


@pytest.mark.parametrize(
    ("file", "old", "new", "stale", "fresh_still"),
    [
        ("params.yaml", "count: 5, seed: 1", "count: 5, seed: 2", "results/personas/personas.json", "results/tables/"),
        (
            "params.yaml",
            "raters.yaml, seed: 1",
            "raters.yaml, seed: 2",
            "data/tables/mini/turn_ratings.parquet",
            "results/scores/",
        ),
        (
            "data/mini/agents.yaml",
            "variety: 5",
            "variety: 6",
            "results/scores/mini/f1.parquet",
            "results/tables/table_09",
        ),
        ("data/personas/names.csv", "Liam", "Luca", "results/tables/table_09.html", "data/tables/"),
        (
            "src/comperdial/simulation.py",
            "SOURCE =",
            "changed = 1\nSOURCE =",
            "results/tables/mini_alpha.html",
            "results/scores",
        ),
        (
            "src/comperdial/challenge/agents/echo.py",
            "class ",
            "changed = 1\nclass ",
            "data/tables/mini/responses.parquet",
            "results/personas",
        ),
    ],
)
def test_a_change_reruns_what_depends_on_it(challenge, file, old, new, stale, fresh_still):
    text = (challenge.path / file).read_text()
    (challenge.path / file).write_text(text.replace(old, new, 1))
    assert (challenge.path / file).read_text() != text
    found = planned(challenge)
    assert stale in found
    assert not [name for name in found if name.startswith(fresh_still)]


def test_odd_submissions_and_another_reason_for_failing_are_noticed_and_named(challenge):
    """Of an agent that fails otherwise, the responses stay as they are; what is said of it does not."""
    challenge.edit("data/mini/failing.py", "out of ideas", "too tired")
    folder = challenge.path / "data/mini/submissions"
    (folder / "bra{ce}.jsonl").write_text("{}")
    (folder / "short.jsonl").write_text((folder / "human-1.jsonl").read_text().splitlines()[0] + "\n")
    (folder / "echo.jsonl").write_text((folder / "human-1.jsonl").read_text())
    said = challenge.snakemake("results/tables/mini_systems.md")
    page = (challenge.path / "results/tables/mini_systems.md").read_text()
    for name, why in (("bra{ce}", "letters, digits"), ("short", "are missing"), ("echo (echo.jsonl)", "a second time")):
        assert f"{name}: left out: " in said
        line = next(line for line in page.splitlines() if line.startswith(f"- {name} has no valid submission"))
        assert why in line
    assert "raised ValueError: too tired" in page and "out of ideas" not in page
    assert "| template | agent |" in page


def test_ratings_of_an_earlier_run_are_not_taken_for_ratings(challenge):
    challenge.edit("params.yaml", "    simulated: {raters: data/demo/raters.yaml, seed: 1}\n", "")
    challenge.snakemake("results/tables/mini_systems.md")
    assert (challenge.path / "data/tables/mini/turn_ratings.parquet").exists()
    page = (challenge.path / "results/tables/mini_systems.md").read_text()
    assert "| echo | agent | gpu | 21 | not rated | not rated |" in page


def test_another_seed_draws_other_personas(challenge):
    before = challenge.outputs()
    first = json.loads((challenge.path / "results/personas/personas.json").read_text())["personas"]
    challenge.edit("params.yaml", "count: 5, seed: 1", "count: 5, seed: 2")
    challenge.snakemake("results/personas/personas.json")
    assert challenge.rewritten(before) == {"results/personas/personas.json"}
    second = json.loads((challenge.path / "results/personas/personas.json").read_text())["personas"]
    assert [p["sentences"] for p in first] != [p["sentences"] for p in second]


def test_two_copies_give_the_same_bytes(challenge, root, tmp_path):
    other = copy_repository(root, tmp_path / "other")
    write_challenge(other, root)
    targets = [f"data/tables/mini/{name}.parquet" for name in (*TABLES, "truth")]
    other.snakemake(*targets, "results/personas/personas.json", "results/tables/mini_alpha.csv")
    theirs = other.outputs()
    assert set(targets) <= set(theirs)
    assert {name for name, (_, content) in theirs.items() if content != challenge.outputs()[name][1]} == set()


def test_challenges_of_every_make(challenge):
    """Brought ratings, no ratings, and ComperDial's own form, side by side; only what is simulated is called so."""
    for level in ("turn", "dialogue"):
        frame = table(challenge, f"{level}_ratings")
        kept = frame[frame["system_id"].str.startswith("human")]
        schema.write(
            challenge.path / f"data/mini/{level}_ratings.csv",
            kept.assign(dataset="rated", source="human"),
            f"{level}_ratings",
        )
    challenge.run("comperdial", "export", "data/tables/mini", "--output", "data/mini/exported")
    challenge.edit("params.yaml", "datasets: [mini]", "datasets: [rated, unrated, read]")
    names = [f"data/tables/read/{name}.parquet" for name in TABLES]
    challenge.snakemake(*names, *(f"results/tables/{d}_systems.md" for d in ("rated", "read")))
    pages = {d: (challenge.path / f"results/tables/{d}_systems.md").read_text() for d in ("rated", "read")}
    assert "SIMULATED: " in pages["read"], "a simulated set that comes back from its exported form says so"
    assert "SIMULATED:" not in pages["rated"]
    assert "not rated" not in pages["rated"]
    for name in TABLES:
        ours = table(challenge, name)
        theirs = schema.read(challenge.path / f"data/tables/read/{name}.parquet", name)
        pd.testing.assert_frame_equal(theirs.assign(dataset="mini"), ours)
    plan = challenge.snakemake("--summary")
    assert "results/tables/unrated_systems.md" in plan
    assert "rated_correlations" in plan
    assert "results/tables/rated_table_13.md" in plan
    assert "results/tables/unrated_table_13.md" not in plan
    assert "results/report/unrated.html" in plan
    assert "unrated_correlations" not in plan


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "dialogues: data/mini/dialogues.json",
            "dialogs: data/mini/dialogues.json",
            "challenges.mini: unknown key 'dialogs'",
        ),
        ("datasets: [mini]", "datasets: [comperdial]", "Run `comperdial fetch comperdial` once"),
        ("\n  mini:\n", "\n  usr_persona:\n", "two data sets are called 'usr_persona'"),
        ("data/mini/agents.yaml", "data/mini/agent.yaml", "data/mini/agent.yaml: no such file or folder"),
        ("datasets: [mini]", "datasets: [mino]", "params.yaml: unknown dataset 'mino'"),
        (
            "agents: data/mini/agents.yaml",
            "agents: data/prices.yaml",
            "prices.yaml, line 5: unknown key 'gpt-3.5-turbo-0125'",
        ),
    ],
)
def test_a_wrong_configuration_is_one_message(challenge, root, old, new, message):
    shutil.copy(root / "data/sources.yaml", challenge.path / "data/sources.yaml")
    text = (challenge.path / "params.yaml").read_text()
    (challenge.path / "params.yaml").write_text(text.replace(old, new, 1))
    said = challenge.snakemake("-n", check=False)
    assert message in said
    assert "Traceback" not in said
