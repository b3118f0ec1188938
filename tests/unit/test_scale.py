"""The benchmark of scale: what it grows is like the demo, and what it says of growth is so."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def scale(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import grown
    import on_paper
    import scale

    yield scale, grown, on_paper
    for name in ("scale", "grown", "on_paper"):
        sys.modules.pop(name, None)


def test_words_trade_places_with_words_as_long_and_a_text_never_stays(scale):
    _, grown, _ = scale
    words = ["tea", "ink", "owl", "bread", "salty", "I'm", "hum"]
    texts = grown.Texts(grown.Counter({word.lower(): n for n, word in enumerate(words, start=1)}), 2, seed=1)
    said = "Tea, bread & salty ink: I'm an owl!"
    assert texts.dialogue_map(0) == {}
    found = {grown.told(said, texts.dialogue_map(1))}
    for dialogue in (0, 1):
        base = grown.told(said, texts.dialogue_map(dialogue))
        found.add(grown.retold(base, texts.system_map(dialogue, 1), texts.any_map(dialogue, 1)))
    assert len(found) == 3
    assert said not in found
    for text in found:
        assert [len(word) for word in text.split()] == [len(word) for word in said.split()]
    # A text of which the map changes nothing is told otherwise all the same.
    assert grown.retold("owl", {}, {"owl": "ink"}) == "ink"
    again = grown.Texts(texts.counts, 2, seed=1)
    assert again.system_map(1, 1) == texts.system_map(1, 1)


def test_the_grown_demo_is_like_the_demo(scale, tmp_path):
    _, grown, _ = scale
    if not (grown.DEMO / "responses.parquet").exists():
        pytest.skip("the demo's tables have not been made")
    one, four = (grown.grow(tmp_path / str(times), times) for times in (1, 4))
    assert four["responses"] == 4 * one["responses"]
    assert four["dialogues"] == 2 * one["dialogues"]
    assert four["distinct"] == pytest.approx(one["distinct"], rel=0.01)
    assert (four["words"], four["letters"]) == (pytest.approx(one["words"]), pytest.approx(one["letters"]))
    assert four["vocabulary"] > 1.3 * one["vocabulary"]
    names = {path.name for path in (tmp_path / "4/submissions").iterdir()}
    assert len(names) == 2 * 99 + 1
    assert {"human-1.jsonl", "human-1-x1.jsonl", "systems.csv"} <= names
    assert len(json.loads((tmp_path / "4/dialogues.json").read_text())) == 30
    with pytest.raises(SystemExit, match="no square"):
        grown.grow(tmp_path / "3", 3)


def measured(cpu, mb):
    sizes = {times: 10_000 * times or 40 for times in (0, 1, 4, 16, 64)}
    return {t: {"responses": n, "cpu": cpu(n), "mb": mb(n), "wall": 0, "bytes": 2 * n} for t, n in sizes.items()}


@pytest.mark.parametrize(("power", "ratio"), [(1.0, 1.0), (1.2, 64**0.2)])
def test_growth_is_fitted(scale, power, ratio):
    bench, _, _ = scale
    found = bench.fit(measured(lambda n: 1.5 + 1e-4 * n**power * (n > 40), lambda n: 150 + 3e-4 * n))
    assert found["a"] == pytest.approx(power, rel=0.01)
    assert found["ratio"] == pytest.approx(ratio, rel=0.01)
    assert (found["b"], found["c"]) == (pytest.approx(150), pytest.approx(300))


def test_what_was_measured_grows_to_seven_million(scale):
    _, _, paper = scale
    found = measured(lambda n: 2 + 1e-3 * n, lambda n: 200.0)
    # The start's 40 responses are part of its cost.
    assert paper.seconds(found, 107) == pytest.approx(107 * 2.04 + 7_000_000 * 1e-3)


def test_what_was_measured_is_kept_and_not_measured_again(scale, tmp_path, monkeypatch):
    bench, _, _ = scale
    calls = []
    monkeypatch.setattr(bench, "run", lambda *_args, **_options: calls.append(1) or {"wall": 1, "cpu": 2, "mb": 3})
    work = bench.Work(tmp_path)
    work._keep({"times": 16, "stage": "texts", "responses": 40})
    work.measure(16, "f1", again=False)
    work = bench.Work(tmp_path)
    work.measure(16, "f1", again=False)
    assert len(calls) == 1
    assert work.best()["f1"][16] == {"responses": 40, "wall": 1, "cpu": 2, "mb": 3, "bytes": 0}
    work.measure(16, "f1", again=True)
    assert len(calls) == 2


def test_the_memory_and_the_time_of_a_command_are_its_own(scale, tmp_path):
    bench, _, _ = scale
    code = "x = bytearray(200_000_000); print(len(x))"
    # From a process as small as the benchmark's: what a process takes before it starts another counts for that one.
    start = (
        "import json, pathlib, sys, scale; command = [sys.executable, '-c', sys.argv[2]]; "
        "print(json.dumps(scale.run([command], pathlib.Path(sys.argv[1]), threads=1)))"
    )
    said = subprocess.run(
        [sys.executable, "-c", start, tmp_path / "log", code],
        cwd=BENCHMARKS,
        capture_output=True,
        check=True,
        text=True,
    )
    found = json.loads(said.stdout)
    assert 190 < found["mb"] < 400
    assert found["cpu"] > 0
    with pytest.raises(SystemExit, match="ended with 3"):
        bench.run([[sys.executable, "-c", "raise SystemExit(3)"]], tmp_path / "log", threads=1)
    assert np.isfinite(found["wall"])
