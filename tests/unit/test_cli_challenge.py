"""The commands that make a benchmark, called as users call them."""

import json
import os
import re
import subprocess
import sys

import pandas as pd
import pytest

from comperdial import schema
from comperdial.challenge.dialogues import Dialogue, read_dialogues, to_data
from comperdial.cli import main

DIALOGUES = [
    Dialogue(
        name,
        {"A": ["my name is ann.", "i am a baker."], "B": ["my name is bob.", "i am a sailor."]},
        tuple(f"{name} says {'AB'[i % 2]} {i}" for i in range(4)),
    )
    for name in ("d1", "d2")
]
ITEMS = [(d.dialogue_id, turn) for d in DIALOGUES for turn in range(2)]
START = "class UserAgent:\n    def generate_responses(self, test_data):\n        "
GOOD = f"{START}return ['fine, and you?'] * len(test_data)\n"
BAD = f"{START}raise ValueError('no idea')\n"
OTHER = (
    "class Other:\n    def __init__(self, word='well'):\n        self.word = word\n"
    "    def generate_responses(self, test_data):\n        return [self.word] * len(test_data)\n"
)
RATERS = """
skill: {human: 0.9}
turn:
  {skill_weight: 1.0, relevance_weight: 0.2, dialogue_noise: 0.2, system_dialogue_noise: 0.3, turn_noise: 0.5,
   short_words: 4, short_turn: -0.6, long_words: 40, long_turn: -0.15}
dialogue: {long: -0.9, dull: -0.6, same_opening: -0.7, noise: 0.3, spread: 1.1}
thresholds: [-1.35, -0.45, 0.45, 1.35]
raters:
  - {id: r1, slope: 1.0, bias: 0.0, turn_noise: 0.7, dialogue_noise: 0.6, mark: 0.5}
  - {id: r2, slope: 1.1, bias: 0.3, turn_noise: 0.7, dialogue_noise: 0.5, mark: 0.4}
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Return an empty working directory with two dialogues in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dialogues.json").write_text(json.dumps([to_data(d) for d in DIALOGUES]))
    return tmp_path


def run(*arguments):
    return main([str(argument) for argument in arguments])


def fails(capsys, *arguments):
    """Run a command that must fail with one line and no traceback; return the line."""
    assert run(*arguments) == 1
    error = capsys.readouterr().err.strip()
    assert error.startswith("comperdial: error: ")
    assert "Traceback" not in error
    assert "\n" not in error
    return error


def misused(capsys, *arguments):
    """Run a command whose arguments are wrong; return the message."""
    with pytest.raises(SystemExit) as caught:
        run(*arguments)
    assert caught.value.code == 2
    return capsys.readouterr().err


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def submission(answer="fine", system=None, skip=0):
    name = {"system_id": system} if system else {}
    records = [name | {"dialogue_id": d, "turn": t, "response": f"{answer} {d} {t}"} for d, t in ITEMS[skip:]]
    return "".join(json.dumps(record) + "\n" for record in records)


# --- personas --------------------------------------------------------------------------------------------------------


def test_personas(root, here, capsys):
    base = ["personas", root / "data/demo/peacok_kg.json", "--constraints", root / "data/personas", "--seed", 2024]
    assert run(*base, "--count", 3, "--output", "three.json") == 0
    assert run(*base, "--count", 2, "--output", "two.json") == 0
    three, two = (json.loads((here / name).read_text()) for name in ("three.json", "two.json"))
    assert set(three) == {"personas", "report"}
    assert three["personas"][:2] == two["personas"]
    assert three["report"]["personas"] == 3
    first = read_dialogues(root / "data/demo/dialogues.json")[0]
    assert [p["sentences"] for p in two["personas"]] == [first.personas["A"], first.personas["B"]]


def test_default_ages_of_personas(here, capsys):
    heads = {"i am a nurse": "worked", "i am an unheard of thing": "ran", "i am another such thing": "swam"}
    (here / "kg.json").write_text(json.dumps([f"{head}\texperience\t{tail}" for head, tail in heads.items()]))
    (here / "rules").mkdir()
    for name, text in {
        "names": "generation,gender,name\n30,male,Bob\n30,female,Ann\n",
        "family": "family_info,start_age,end_age\nI have a dog.,0,99\n",
        "ages": "head,start_age,end_age\na nurse,20,50\n",
        "negative": "word,kind\nthief,noun\n",
        "gender_neutral": "gendered,neutral\npoliceman,police officer\n",
        "opposites": "one,other\nshy,outgoing\n",
    }.items():
        (here / f"rules/{name}.csv").write_text(text)
    base = ["personas", "kg.json", "--constraints", "rules", "--seed", 1, "--count", 20, "--output", "p.json"]
    assert run(*base, "--default-ages", 30, 33) == 0
    found = json.loads((here / "p.json").read_text())
    assert {p["age"] for p in found["personas"]} <= {30, 31, 32, 33}
    assert found["report"]["heads_without_an_age_range"] == ["i am an unheard of thing", "i am another such thing"]
    assert "ages 40 30; expected the younger age first" in fails(capsys, *base, "--default-ages", 40, 30)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--count", 0, "--seed", 1], "--count: '0'; expected a whole number from 1 up"),
        (["--count", -3, "--seed", 1], "--count"),
        (["--count", 1, "--seed", -1], "--seed"),
        (["--count", 1, "--seed", "x"], "--seed: 'x'; expected a whole number from 0 up"),
        (["--count", 1], "required: --seed"),
    ],
)
def test_wrong_options_of_personas(here, capsys, options, message):
    assert message in misused(capsys, "personas", "kg.json", *options, "--output", "p.json")


def test_personas_without_a_graph_or_constraints(root, here, capsys):
    rest = ["--count", 1, "--seed", 1, "--output", "p.json"]
    assert "kg.json" in fails(capsys, "personas", "kg.json", "--constraints", root / "data/personas", *rest)
    graph = root / "data/demo/peacok_kg.json"
    assert "nowhere" in fails(capsys, "personas", graph, "--constraints", "nowhere", *rest)
    assert not (here / "p.json").exists()


# --- challenge run ---------------------------------------------------------------------------------------------------


def test_one_agent(here, capsys):
    (here / "agent.py").write_text(GOOD)
    output, report = here / "made/mine.jsonl", here / "report.json"
    base = ["challenge", "run", "dialogues.json", "--agent", "agent.py", "--output", output, "--report", report]
    assert run(*base) == 0
    assert "1 of 1 agents" in capsys.readouterr().out
    assert sorted((r["dialogue_id"], r["turn"], r["response"]) for r in lines(output)) == [
        (*item, "fine, and you?") for item in ITEMS
    ]
    assert all(set(r) == {"dialogue_id", "turn", "response"} for r in lines(output)), "the file's name is the system's"
    [agent] = json.loads(report.read_text())["agents"]
    assert agent["system_id"] == "mine"
    assert agent["responses"] == 4
    assert agent["problem"] is None
    assert "seconds" not in agent


def test_one_agent_by_its_class_and_with_options(here):
    (here / "agent.py").write_text(GOOD + OTHER)
    base = ["challenge", "run", "dialogues.json", "--agent", "agent.py:Other", "--output"]
    assert run(*base, "a.jsonl") == run(*base, "b.jsonl", "--options", '{"word": "ahoy"}') == 0
    assert {r["response"] for r in lines(here / "a.jsonl")} == {"well"}
    assert {r["response"] for r in lines(here / "b.jsonl")} == {"ahoy"}


@pytest.mark.parametrize(
    ("agent", "problem"),
    [
        ("bad.py", "raised ValueError: no idea"),
        ("agent.py:Nobody", "no class 'Nobody'"),
        ("nowhere.py", "no such file"),
    ],
)
def test_one_agent_that_fails(here, capsys, agent, problem):
    (here / "bad.py").write_text(BAD)
    (here / "agent.py").write_text(GOOD)
    base = ["challenge", "run", "dialogues.json", "--agent", agent, "--output", "mine.jsonl", "--report", "r.json"]
    assert run(*base) == 1
    out = capsys.readouterr().out
    assert "mine: no submission: " in out
    assert problem in out
    assert "0 of 1 agents" in out
    assert problem in json.loads((here / "r.json").read_text())["agents"][0]["problem"]
    assert not (here / "mine.jsonl").exists()


def test_ctrl_c_ends_agents_that_are_at_work(here):
    """The agents have sessions of their own, which Ctrl-C does not reach; their threads wait for them."""
    (here / "slow.py").write_text(
        f"import os, pathlib, signal, time\n\n{START}"
        "pathlib.Path(f'{os.getpid()}.pid').touch()\n"
        "        os.kill(os.getppid(), signal.SIGINT)\n"
        "        time.sleep(1000)\n"
    )
    (here / "roster.yaml").write_text(
        "agents:\n" + "".join(f"- {{id: a{number}, file: slow.py}}\n" for number in range(8))
    )
    command = ["challenge", "run", "dialogues.json", "--roster", "roster.yaml", "--output", "runs.jsonl"]
    done = subprocess.run([sys.executable, "-m", "comperdial.cli", *command], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "comperdial: interrupted\n")
    assert {path.suffix for path in here.iterdir() if path.name != "__pycache__"} == {".py", ".yaml", ".json", ".pid"}
    [agent] = here.glob("*.pid")
    with pytest.raises(ProcessLookupError):
        os.kill(int(agent.stem), 0)


def test_a_roster_with_an_agent_that_fails(here, capsys):
    (here / "good.py").write_text(GOOD)
    (here / "bad.py").write_text(BAD)
    (here / "roster.yaml").write_text(
        "agents:\n- {id: one, file: good.py}\n- {id: two, file: bad.py}\n- {id: three, kind: echo}\n"
    )
    base = ["challenge", "run", "dialogues.json", "--roster", "roster.yaml", "--jobs", 2, "--report", "report.json"]
    assert run(*base, "--output", "runs.jsonl") == 0
    out = capsys.readouterr().out
    assert "two: no submission: turn 0 of 2 conversations from 'd1': raised ValueError: no idea" in out
    assert "2 of 3 agents" in out
    found = lines(here / "runs.jsonl")
    assert {r["system_id"] for r in found} == {"one", "three"}
    assert len(found) == 8
    agents = json.loads((here / "report.json").read_text())["agents"]
    assert [(a["system_id"], a["problem"] is None) for a in agents] == [("one", True), ("two", False), ("three", True)]
    # The failure is told again where the submissions become tables.
    assert run("challenge", "tables", "dialogues.json", "--submissions", "runs.jsonl", "--runs", "report.json",
               "--roster", "roster.yaml", "--name", "mini", "--output", "tables") == 0  # fmt: skip
    told = json.loads((here / "tables/submissions.json").read_text())
    assert told["systems"] == 2
    assert "no idea" in told["failed"]["two"]


def test_a_roster_of_which_no_agent_is_left(here, capsys):
    (here / "bad.py").write_text(BAD)
    (here / "roster.yaml").write_text("agents: [{id: one, file: bad.py}]\n")
    assert run("challenge", "run", "dialogues.json", "--roster", "roster.yaml", "--output", "runs.jsonl") == 1
    assert "0 of 1 agents" in capsys.readouterr().out


def test_limits_can_be_set(here, capsys):
    (here / "agent.py").write_text(f"{START}return [str(len(test_data))] * len(test_data)\n")
    base = ["challenge", "run", "dialogues.json", "--agent", "agent.py", "--output", "mine.jsonl"]
    assert run(*base, "--batch", 1) == 0
    assert {r["response"] for r in lines(here / "mine.jsonl")} == {"1"}
    (here / "agent.py").write_text("import time\ntime.sleep(60)\n")
    assert run(*base, "--load-seconds", 0.5) == 1
    assert "loading: no answer within" in capsys.readouterr().out


AGENT = ["challenge", "run", "dialogues.json", "--agent", "agent.py", "--output", "mine.jsonl"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--batch", 51], "--batch: a batch of 51; expected 1 to 50"),
        (["--output", "my system.jsonl"], "--output: the name 'my system.jsonl'; expected letters"),
        (["--output", "mine.json"], "--output: the name 'mine.json'"),
        (["--output", "folder"], "--output: the name 'folder'"),
        (["--api", "nowhere.py:Model"], "nowhere.py: no such file"),
        (["--api", "agent.py:Nobody"], "no class 'Nobody'"),
        (["--api", "agent.py"], "--api agent.py: no method count"),
        (["--api", "wrong.py"], "--api wrong.py: it raised SyntaxError"),
    ],
)
def test_wrong_options_are_told_before_an_agent_runs(here, capsys, options, message):
    (here / "agent.py").write_text(GOOD)
    (here / "wrong.py").write_text("class Model(\n")
    assert message in fails(capsys, *AGENT, *options)
    assert not (here / "mine.jsonl").exists()


def test_options_do_not_go_with_a_roster(here, capsys):
    (here / "roster.yaml").write_text("agents: [{id: one, kind: echo}]\n")
    base = ["challenge", "run", "dialogues.json", "--roster", "roster.yaml", "--output", "runs.jsonl"]
    assert "--options: given with --roster" in fails(capsys, *base, "--options", '{"seed": 1}')


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--batch", 0], "--batch: '0'; expected a whole number from 1 up"),
        (["--jobs", 0], "--jobs"),
        (["--jobs", "two"], "--jobs"),
        (["--calls", -1], "--calls"),
        (["--input-tokens", 1.5], "--input-tokens"),
        (["--output-tokens", -1], "--output-tokens"),
        (["--run-seconds", 0], "--run-seconds: '0'; expected a number of seconds above 0"),
        (["--load-seconds", "nan"], "--load-seconds"),
        (["--options", "[1]"], "expected a JSON object"),
        (["--roster", "roster.yaml"], "not allowed with"),
    ],
)
def test_options_that_are_wrong_usage(here, capsys, options, message):
    assert message in misused(capsys, *AGENT, *options)


@pytest.mark.parametrize("text", ["", "{}", "[]", '[{"dialogue_id": 1}]'])
def test_dialogues_that_are_none(here, capsys, text):
    (here / "agent.py").write_text(GOOD)
    (here / "dialogues.json").write_text(text)
    assert "dialogues.json" in fails(capsys, *AGENT)


# --- challenge tables ------------------------------------------------------------------------------------------------

TABLES = ["challenge", "tables", "dialogues.json", "--submissions", "subs", "--name", "mini", "--output", "tables"]


@pytest.fixture
def made(here):
    """Return a folder with the tables of three systems, and a submission that is wrong."""
    subs = here / "subs"
    subs.mkdir()
    (subs / "mine.jsonl").write_text(submission("mine"))
    (subs / "human.jsonl").write_text(submission("a person"))
    (subs / "short.jsonl").write_text(submission("short", skip=1))
    (subs / "runs.jsonl").write_text(submission("one", "one"))
    (subs / "systems.csv").write_text("system_id,kind,track,description\nhuman,human,,somebody\n")
    (here / "roster.yaml").write_text(
        "agents:\n- {id: one, kind: echo, track: gpu, skill: 0.4, description: repeats}\n- {id: two, kind: echo}\n"
    )
    assert run(*TABLES, "--roster", "roster.yaml") == 0
    return here


def test_tables_with_a_submission_that_is_wrong(made):
    told = json.loads((made / "tables/submissions.json").read_text())
    assert told["systems"] == 3
    assert list(told["failed"]) == ["short"]
    assert "1 of 4 responses are missing" in told["failed"]["short"]
    tables = {
        name: schema.read(made / f"tables/{name}.parquet", name)
        for name in ("systems", "contexts", "personas", "responses")
    }
    assert {frame["dataset"].iloc[0] for frame in tables.values()} == {"mini"}
    systems = tables["systems"].set_index("system_id")
    assert systems["kind"].to_dict() == {"human": "human", "mine": "agent", "one": "agent"}
    assert systems.loc["one", ["track", "description"]].tolist() == ["gpu", "repeats"]
    assert systems.loc["human", "description"] == "somebody"
    assert len(tables["responses"]) == 3 * 4
    assert list(tables["contexts"]["context_id"]) == ["d1-t0", "d1-t1", "d2-t0", "d2-t1"]
    assert [len(r) for r in tables["contexts"]["references"]] == [1] * 4


def test_the_tables_are_the_same_bytes_again(made):
    before = {path.name: path.read_bytes() for path in (made / "tables").iterdir()}
    assert run(*TABLES, "--roster", "roster.yaml") == 0
    assert {path.name: path.read_bytes() for path in (made / "tables").iterdir()} == before


def test_no_submission_is_complete(here, capsys):
    (here / "subs").mkdir()
    (here / "subs/short.jsonl").write_text(submission(skip=1))
    error = fails(capsys, *TABLES)
    assert "no submission that is complete" in error
    assert "1 of 4 responses are missing" in error
    assert not (here / "tables").exists()


def test_submissions_that_are_not_there(here, capsys):
    assert "subs: no such file or folder" in fails(capsys, *TABLES)


# --- challenge ratings -----------------------------------------------------------------------------------------------


def ratings_of_dialogues(system="mine"):
    return pd.DataFrame(
        {
            "dataset": "mini",
            "level": "dialogue",
            "item_id": ["d1", "d2"],
            "system_id": system,
            "annotator_id": "ann",
            "position": None,
            "dimension": "Overall",
            "rating": [4.0, 2.0],
            "scale_min": 1.0,
            "scale_max": 5.0,
            "source": "human",
        }
    )


def test_ratings_are_put_beside_the_tables(made):
    (made / "turns.csv").write_text("context_id,system_id,rating\nd1-t0,mine,4\nd1-t1,one,2\n")
    schema.write(made / "dialogues.csv", ratings_of_dialogues(), "ratings")
    assert run("challenge", "ratings", "tables", "--turn", "turns.csv", "--dialogue", "dialogues.csv") == 0
    found = schema.read(made / "tables/ratings.parquet", "ratings")
    turn = found[found["level"] == "turn"]
    assert turn.set_index("item_id")["rating"].to_dict() == {"d1-t0": 4.0, "d1-t1": 2.0}
    assert set(turn["dataset"]) == {"mini"}
    assert set(turn["source"]) == {"human"}
    assert len(found) == 4
    assert run("challenge", "ratings", "tables", "--turn", "turns.csv") == 0
    assert len(schema.read(made / "tables/ratings.parquet", "ratings")) == 2


@pytest.mark.parametrize(
    ("turns", "system", "message"),
    [
        ("d9-t0,mine,4\n", "mine", "turns.csv: 1 rated items are in no table, the first: mini, d9-t0, mine"),
        ("d1-t0,nobody,4\nd1-t1,nobody,4\n", "mine", "turns.csv: 2 rated items are in no table"),
        ("d1-t0,mine,4\n", "gone", "dialogues.csv: 2 rated items are in no table, the first: mini, d1, gone"),
    ],
)
def test_ratings_of_an_unknown_item(made, capsys, turns, system, message):
    (made / "turns.csv").write_text("context_id,system_id,rating\n" + turns)
    schema.write(made / "dialogues.csv", ratings_of_dialogues(system), "ratings")
    error = fails(capsys, "challenge", "ratings", "tables", "--turn", "turns.csv", "--dialogue", "dialogues.csv")
    assert message in error
    assert "of tables" in error
    assert not (made / "tables/ratings.parquet").exists()


@pytest.mark.parametrize("report", ["[]", "{}", '{"failed": ["short"]}'])
def test_a_report_of_submissions_that_is_none(made, capsys, report):
    (made / "turns.csv").write_text("context_id,system_id,rating\nd1-t0,mine,3\n")
    (made / "tables/submissions.json").write_text(report)
    assert "submissions.json: no mapping `failed`" in fails(
        capsys, "challenge", "ratings", "tables", "--turn", "turns.csv"
    )


def test_ratings_of_a_submission_that_was_left_out_are_left_out_too(made, caplog):
    assert "short" in json.loads((made / "tables/submissions.json").read_text())["failed"]
    (made / "turns.csv").write_text("context_id,system_id,rating\nd1-t0,short,4\nd1-t0,mine,3\n")
    schema.write(made / "dialogues.csv", ratings_of_dialogues("short"), "ratings")
    assert run("challenge", "ratings", "tables", "--turn", "turns.csv", "--dialogue", "dialogues.csv") == 0
    found = schema.read(made / "tables/ratings.parquet", "ratings")
    assert list(found["system_id"]) == ["mine"]
    assert found.iloc[0][["dimension", "scale_min", "scale_max", "source"]].to_list() == ["Overall", 1, 5, "human"]
    assert "turns.csv: 1 ratings are of submissions that were left out" in caplog.text


def test_people_s_ratings_are_not_simulated_away(made, capsys):
    (made / "turns.csv").write_text("context_id,system_id,rating\nd1-t0,mine,3\n")
    assert run("challenge", "ratings", "tables", "--turn", "turns.csv") == 0
    (made / "raters.yaml").write_text(RATERS)
    error = fails(capsys, "simulate", "tables", "--raters", "raters.yaml", "--roster", "roster.yaml", "--seed", "1")
    assert "it holds ratings by human" in error


def test_tables_without_ratings_can_be_exported(made):
    assert run("export", "tables", "--output", "shared") == 0
    assert run("import", "shared", "--name", "mini", "--output", "again") == 0
    for name in ("systems", "responses"):
        assert (made / f"again/{name}.parquet").read_bytes() == (made / f"tables/{name}.parquet").read_bytes()
    assert schema.read(made / "again/ratings.parquet", "ratings").empty


# --- simulate --------------------------------------------------------------------------------------------------------


def test_simulate(made, caplog):
    (made / "raters.yaml").write_text(RATERS)
    base = ["simulate", "tables", "--raters", "raters.yaml", "--roster", "roster.yaml", "--seed"]
    assert run(*base, 1) == 0
    assert "not rated, for want of a skill: mine" in caplog.text
    names = {"ratings": "ratings", "truth": "scores"}
    found = {name: schema.read(made / f"tables/{name}.parquet", table) for name, table in names.items()}
    assert all(set(frame["system_id"]) == {"human", "one"} for frame in found.values())
    assert set(found["ratings"]["source"]) == {"simulated"}
    assert len(found["ratings"].query("level == 'turn'")) == 2 * 4 * 2
    assert set(found["truth"]["metric"]) == {"simulated_truth"}
    before = {name: (made / f"tables/{name}.parquet").read_bytes() for name in names}
    assert run(*base, 1) == 0
    assert {name: (made / f"tables/{name}.parquet").read_bytes() for name in names} == before
    assert run(*base, 2) == 0
    assert (made / "tables/truth.parquet").read_bytes() != before["truth"]


def test_simulate_without_a_roster_rates_those_of_the_raters_file(made):
    (made / "raters.yaml").write_text(RATERS)
    assert run("simulate", "tables", "--raters", "raters.yaml", "--seed", 1) == 0
    assert set(schema.read(made / "tables/truth.parquet", "scores")["system_id"]) == {"human"}


def test_mistakes_of_simulate(made, capsys):
    (made / "raters.yaml").write_text(RATERS.replace("human: 0.9", "nobody: 0.9"))
    base = ["simulate", "tables", "--raters", "raters.yaml"]
    assert "no system that has responses has a skill" in fails(capsys, *base, "--seed", 1)
    (made / "raters.yaml").write_text(RATERS.replace("spread: 1.1", "sprad: 1.1"))
    assert "raters.yaml, line 6, dialogue: unknown key 'sprad'" in fails(capsys, *base, "--seed", 1)
    assert "--seed" in misused(capsys, *base, "--seed", -1)
    (made / "raters.yaml").write_text(RATERS)
    assert "nowhere" in fails(capsys, "simulate", "nowhere", "--raters", "raters.yaml", "--seed", 1)


# --- docs/adding-a-system.md, followed -------------------------------------------------------------------------------


def test_the_agents_of_adding_a_system(root, here, capsys):
    page = (root / "docs/adding-a-system.md").read_text()
    # Each example stands under the text that names its file.
    named = re.findall(r"`(my_\w+\.(?:py|yaml))`[^`]*\n\n```(?:python|yaml)\n(.*?)```", page, flags=re.DOTALL)
    assert [name for name, _ in named] == ["my_agent.py", "my_prompted_agent.py", "my_roster.yaml", "my_model.py"]
    for name, text in named:
        (here / name).write_text(text)
    (here / "data").symlink_to(root / "data")
    commands = [
        line.split() for block in re.findall(r"```sh\n(.*?)```", page, flags=re.DOTALL) for line in block.splitlines()
    ]
    assert [c[:3] for c in commands] == [["comperdial", "challenge", "run"]] * 3
    made = here / "submissions"
    for command in commands:
        assert command[-2] == "--output"
        folder, name = command[-1].rsplit("/", 1)
        assert folder == "data/demo/submissions"
        assert run(*command[1:-1], made / name) == 0, capsys.readouterr()
    example = json.loads(page.split("```json\n")[1].split("```")[0])
    assert set(example) == {"dialogue_id", "turn", "response"}
    people = root / "data/demo/submissions"
    assert run("challenge", "tables", "data/demo/dialogues.json", "--submissions", made, people, "--roster",
               "my_roster.yaml", "--name", "demo", "--output", "tables") == 0  # fmt: skip
    told = json.loads((here / "tables/submissions.json").read_text())
    assert told == {"systems": 5, "failed": {}}
    systems = schema.read(here / "tables/systems.parquet", "systems").set_index("system_id")
    assert set(systems.index) == {"human-1", "human-2", "my_system", "my_prompted_system", "my_other_system"}
    assert systems.loc["my_prompted_system", "track"] == "api"
    responses = schema.read(here / "tables/responses.parquet", "responses").set_index(["system_id", "context_id"])
    assert responses.loc[("my_system", "demo-01-t0"), "response"].startswith("you said: Sorry, is this seat free?")
    # On the demo they are scored and not rated.
    roster = root / "data/demo/agents.yaml"
    assert run("simulate", "tables", "--raters", root / "data/demo/raters.yaml", "--roster", roster, "--seed", 1) == 0
    rated = schema.read(here / "tables/ratings.parquet", "ratings")
    assert set(rated["system_id"]) == {"human-1", "human-2"}
    capsys.readouterr()
    assert run("score", "tables", "--metric", "f1", "--output", "scores.csv") == 0
    assert set(schema.read(here / "scores.csv", "scores")["system_id"]) == set(systems.index)


def test_the_limits_that_adding_a_system_names(root):
    from comperdial.challenge.limits import Limits

    page = (root / "docs/adding-a-system.md").read_text()
    said = {
        name.replace("-", "_"): float(number.replace(",", ""))
        for number, name in re.findall(r"\| ([\d,]+)(?: s)? \| `--([a-z-]+)`", page)
    }
    assert said == {name: float(value) for name, value in vars(Limits()).items()}
