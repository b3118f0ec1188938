"""benchmarks/scale.py: the grown demo is like the demo, and growth is computed from what commands took."""

import importlib
import json
import subprocess
import sys
from collections import Counter

import pytest

from conftest import ROOT


@pytest.fixture
def scale(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    yield importlib.import_module("scale")
    sys.modules.pop("scale")


def test_words_become_words_as_long_and_a_text_never_stays_the_same(scale):
    words = ["tea", "ink", "owl", "bread", "salty", "I'm", "hum"]
    texts = scale.Texts(Counter({word.lower(): n for n, word in enumerate(words, start=1)}), 2, seed=1)
    text = "Tea, bread & salty ink: I'm an owl!"
    assert texts.dialogue_map(0) == {}
    made = {scale.mapped(text, texts.dialogue_map(1))}
    for dialogue in (0, 1):
        base = scale.mapped(text, texts.dialogue_map(dialogue))
        made.add(scale.changed(base, texts.system_map(dialogue, 1), texts.any_map(dialogue, 1)))
    assert len(made) == 3 and text not in made
    lengths = [len(word) for word in text.split()]
    assert all([len(word) for word in one.split()] == lengths for one in made)
    assert scale.changed("owl", {}, {"owl": "ink"}) == "ink"


def test_the_grown_demo_is_like_the_demo(scale, tmp_path):
    if not (scale.DEMO / "responses.parquet").exists():
        pytest.skip("the demo's tables have not been made")
    one, four = (scale.grow(tmp_path / str(times), times) for times in (1, 4))
    assert (four["responses"], four["dialogues"]) == (4 * one["responses"], 2 * one["dialogues"])
    assert four["distinct"] == pytest.approx(one["distinct"], rel=0.01)
    assert (four["words"], four["letters"]) == (pytest.approx(one["words"]), pytest.approx(one["letters"]))
    assert four["vocabulary"] > 1.3 * one["vocabulary"]
    names = {path.name for path in (tmp_path / "4/submissions").iterdir()}
    assert len(names) == 2 * 99 + 1 and {"human-1.jsonl", "human-1-x1.jsonl", "systems.csv"} <= names
    assert len(json.loads((tmp_path / "4/dialogues.json").read_text())) == 30
    with pytest.raises(SystemExit, match="not a square"):
        scale.grow(tmp_path / "3", 3)


def measured(cpu, mb):
    sizes = {times: 10_000 * times or 40 for times in (0, 1, 4, 16, 64)}
    return {times: {"responses": n, "cpu": cpu(n), "mb": mb(n), "bytes": 2 * n} for times, n in sizes.items()}


@pytest.mark.parametrize(("power", "ratio"), [(1.0, 1.0), (1.2, 64**0.2)])
def test_growth_is_compared_with_linear_time(scale, power, ratio):
    fitted = scale.fit(measured(lambda n: 1.5 + 1e-4 * n**power * (n > 40), lambda n: 150 + 3e-4 * n))
    assert fitted["ratio"] == pytest.approx(ratio, rel=0.01)
    assert (fitted["b"], fitted["c"]) == (pytest.approx(150), pytest.approx(300))


def test_seven_million_responses_are_computed_from_the_largest_size(scale):
    # The 40 responses of the start are part of its cost.
    sizes = measured(lambda n: 2 + 1e-3 * n, lambda n: 200.0)
    assert scale.seconds(sizes, 107) == pytest.approx(107 * 2.04 + 7_000_000 * 1e-3)


def test_what_was_measured_is_kept_and_not_measured_again(scale, tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(scale, "run", lambda *_args, **_options: calls.append(1) or {"cpu": 2, "mb": 3})
    scale.Work(tmp_path).keep("texts", 16, responses=40)
    for _ in range(2):
        work = scale.Work(tmp_path)
        work.measure("f1", 16)
    assert len(calls) == 1
    assert work.sizes()["f1"][16].items() >= {"responses": 40, "cpu": 2, "mb": 3, "bytes": 0}.items()


def test_the_memory_of_a_command_is_its_own(scale, tmp_path):
    # From a process as small as the benchmark's: memory of the parent counts for its children.
    start = (
        "import json, pathlib, sys, scale; command = [sys.executable, '-c', 'x = bytearray(200_000_000)']; "
        "print(json.dumps(scale.run([command], pathlib.Path(sys.argv[1]), threads=1)))"
    )
    command = [sys.executable, "-c", start, tmp_path / "log"]
    done = subprocess.run(command, cwd=ROOT / "benchmarks", capture_output=True, check=True, text=True)
    cost = json.loads(done.stdout)
    assert 190 < cost["mb"] < 400 and cost["cpu"] > 0
    with pytest.raises(SystemExit, match="ended with 3"):
        scale.run([[sys.executable, "-c", "raise SystemExit(3)"]], tmp_path / "log", threads=1)
