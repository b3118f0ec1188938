"""Runs of a user's own file and of a challenge, and a configuration that would be hostile to a shell."""

import gzip
import json
import os
import re
import shlex
import shutil

import pandas as pd
import pytest
import yaml

from comperdial import schema
from workdir import copy_repository

# A user's own file

ANSWERS = {"kind": "i am glad that you ask , {} you are lovely", "dull": "no {}", "odd": "fish swim {} in the sea"}
QUESTIONS = ("how are you ?", "do you like tea ?", "and trains ?", "who are you ?", "where do you live ?") * 2


def own_rows():
    """Thirty responses of three systems: no references, no facts, one rater, a dimension that no paper has."""
    for number, question in enumerate(QUESTIONS):
        for system, answer in ANSWERS.items():
            rating = {"kind": 4, "dull": 1, "odd": 2}[system] + (number + len(system)) % 2
            response = answer.format(question.split()[-2] * (1 + number // 5))
            yield {"system": system, "history": f"{question} {number}", "response": response, "warmth": rating}


def test_one_line_gives_the_tables_of_a_file_and_an_edit_reruns_them(fresh):
    """Missing data gives a row with the reason."""
    path = fresh.path / "It's warm.csv"
    pd.DataFrame(own_rows()).to_csv(path, index=False)
    tables = fresh.path / "results/it_s_warm/tables"
    fresh.targets = ("results/it_s_warm/tables/correlations.html", "results/it_s_warm/tables/alpha.html")
    choice = ("--config", 'datasets=["It\'s warm.csv"]')
    fresh.snakemake(*fresh.targets, *choice)
    page = (tables / "correlations.md").read_text()
    assert "It's warm" in page and "warmth" in page
    assert re.search(r"^- .*bleu_raw.*: it_s_warm has no references where warmth was rated", page, re.M)
    found = pd.read_parquet(fresh.path / "results/it_s_warm/correlations.parquet")
    found = found[found["value"].notna() & (found["grouping"] == "pooled")]
    assert dict(zip(found["level"], found["n"], strict=True)) == {"turn": 30, "system": 3}
    assert "no item has two ratings" in (tables / "alpha.md").read_text()
    # Replaced by a file with an older date and as many bytes, as `cp -p` does.
    path.write_text(path.read_text().replace(",5", ",4"))
    os.utime(path, (1e9, 1e9))
    assert "logs/read/it_s_warm.log" in fresh.snakemake("-n", *fresh.targets, *choice)


@pytest.mark.ci
def test_japanese_data_run_without_the_metrics_for_english(root, tmp_path):
    run = copy_repository(root, tmp_path / "repository", shipped=True)
    rows = [("週末は何をしますか。", "家族と山に登る予定です。", "家族と山へ行く予定です。", "わかりません。"),
            ("コーヒーは好きですか。", "はい、毎朝飲みます。", "毎朝飲みます。", "苦いです。")]  # fmt: skip
    table = [
        {"history": history, "reference": reference, "system": system, "response": text, "rating": rating}
        for history, reference, *texts in rows
        for (system, rating), text in zip({"tanuki": 5, "kitsune": 1}.items(), texts, strict=True)
    ]
    pd.DataFrame(table).to_csv(run.path / "japanese.csv", index=False)
    run.snakemake("results/japanese/tables/correlations.html", "--config", "datasets=[japanese.csv]")
    page = (run.path / "results/japanese/tables/correlations.md").read_text()
    assert re.search(r"^- .*METEOR.*: English only, and the responses are in other scripts", page, re.MULTILINE)
    scored = {path.stem for path in (run.path / "results/japanese/scores").glob("*.parquet")}
    assert {"f1", "bleu", "rouge", "chrf"} <= scored and not {"meteor", "bertscore-minilm", "density"} & scored


# A challenge

HUMANS = ("human-1", "human-2")
SYSTEMS = ("echo-01", "generic-02", "persona-template-07")
AGENT = """from words import WORDS


class UserAgent:
    def generate_responses(self, test_data):
        return [f"{WORDS} {conversation['persona B'][0]}" for conversation in test_data]
"""


def write_challenge(run, root):
    """Write a challenge of the demo's first dialogues: submissions, one of them unfinished, and an agent."""
    demo, folder = root / "data/demo", run.path / "data/mini"
    (folder / "submissions").mkdir(parents=True)
    dialogues = json.loads((demo / "dialogues.json").read_text())[:2]
    (folder / "dialogues.json").write_text(json.dumps(dialogues))
    names = {dialogue["dialogue_id"] for dialogue in dialogues}
    agents = gzip.decompress((demo / "submissions/agents.jsonl.gz").read_bytes()).decode().splitlines(keepends=True)
    files = {human: (demo / f"submissions/{human}.jsonl").read_text().splitlines(keepends=True) for human in HUMANS}
    files["agents"] = [line for line in agents if json.loads(line)["system_id"] in SYSTEMS]
    files["unfinished"] = files["human-1"][:1]
    for name, lines in files.items():
        kept = [line for line in lines if json.loads(line)["dialogue_id"] in names]
        (folder / f"submissions/{name}.jsonl").write_text("".join(kept))
    shutil.copy(demo / "submissions/systems.csv", folder / "submissions/systems.csv")
    (folder / "agent.py").write_text(AGENT)
    (folder / "words.py").write_text("WORDS = 'guess what:'\n")
    shutil.copy(root / "tests/configs/challenge.yaml", run.path / "params.yaml")


@pytest.mark.ci
def test_challenge_becomes_rated_tables_and_new_submission_is_handled(root, tmp_path):
    run = copy_repository(root, tmp_path / "repository")
    write_challenge(run, root)
    target = "results/mini/tables/systems"
    run.snakemake(f"{target}.html")
    tables = {name: schema.read(run.path / f"data/tables/mini/{name}.parquet", name) for name in ("systems", "ratings")}
    kinds = tables["systems"].set_index("system_id")["kind"].to_dict()
    assert kinds == dict.fromkeys([*SYSTEMS, "mine"], "agent") | dict.fromkeys(HUMANS, "human")
    # The agent has no skill, so the simulated raters do not rate it.
    ratings = tables["ratings"].query("level == 'turn'")
    assert len(ratings) == (len(kinds) - 1) * 2 * 7 * 6 and set(ratings["source"]) == {"simulated"}
    page = (run.path / f"{target}.md").read_text()
    assert "SIMULATED: the systems, the raters and their ratings are programs" in page
    assert "unfinished has no valid submission and was left out" in page and "13 of 14 responses are missing" in page

    ran = (run.path / "data/runs/mini/mine.jsonl").stat().st_mtime_ns
    folder = run.path / "data/mini/submissions"
    for name in ("other", "mine"):
        shutil.copy(folder / "human-1.jsonl", folder / f"{name}.jsonl")
    (folder / "bra{ce}.jsonl").write_text("{}")
    # Ratings of an earlier run are not taken for ratings if params.yaml names none any more.
    run.edit("params.yaml", "    simulated: {raters: data/demo/raters.yaml, seed: 1}\n", "")
    run.snakemake(f"{target}.html")
    assert (run.path / "data/runs/mini/mine.jsonl").stat().st_mtime_ns == ran, "no agent runs again"
    page = (run.path / f"{target}.md").read_text()
    for name, why in (("bra{ce}", "letters, digits"), ("mine (mine.jsonl)", "a second time")):
        line = next(line for line in page.splitlines() if line.startswith(f"- {name} has no valid submission"))
        assert why in line
    frame = pd.read_csv(run.path / f"{target}.csv").set_index("system_id")
    assert frame.loc["other", "f1:f1"] == frame.loc["human-1", "f1:f1"]
    assert "| other | agent | – | 14 | not rated | not rated |" in page


# Quoting

# An option, what a shell runs, expands or ends a word at, a wildcard of Snakemake, and what Python formats.
HOSTILE = "--help $(touch x) `touch x`; touch x # {wildcards} {dataset} {nothing} 'a' \"b\" \\ * ~ é"
FOLDER, AGENT_FILE = "$(touch x) 'folder'", "agent; touch x.py"
TARGETS = ("tables", "plots", "pages", "results/mine/scores/mine_recorded.parquet", "results/mine/curves.parquet")


def test_configuration_values_reach_commands_as_single_words(fresh):
    params = yaml.safe_load((fresh.path / "params.yaml").read_text())
    (fresh.path / FOLDER).mkdir()
    (fresh.path / AGENT_FILE).write_text("class UserAgent: ...\n")
    params["challenges"]["mine"] = {
        "title": HOSTILE, "target": HOSTILE, "dialogues": "data/demo/dialogues.json", "submissions": [FOLDER],
        "agents": {"mine": AGENT_FILE}, "simulated": {"raters": "data/demo/raters.yaml", "seed": 1},
    }  # fmt: skip
    params["datasets"].append("mine")
    params["recorded"] = {"mine_recorded": {"dataset": "mine", "format": "table", "path": AGENT_FILE, "about": HOSTILE}}
    params["judging"]["variants"]["cpds-d"]["label"] = HOSTILE
    params["evaluation"] |= {"target": HOSTILE, "source": HOSTILE}
    params["metrics"]["f1"]["label"] = HOSTILE
    (fresh.path / "params.yaml").write_text(yaml.safe_dump(params))
    output = fresh.snakemake("-n", "-p", *TARGETS)
    commands = re.findall(r"^Shell command: (.*)$", output, re.MULTILINE)
    assert len(commands) > 10, output[-3000:]
    words = {word for command in commands for word in shlex.split(command)}
    # Split by a shell, no word is a piece of a hostile one.
    assert {HOSTILE, FOLDER, AGENT_FILE} <= words
    assert not {"x", "touch", "x.py", "'folder'", "$(touch", "agent;"} & words
    assert not (fresh.path / "x").exists()
