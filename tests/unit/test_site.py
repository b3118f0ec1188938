"""The page of results and dialogues: its content matches the tables, and it runs in a browser."""

import base64
import html
import itertools
import json
import re
import shutil
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from comperdial import schema
from comperdial.core.files import write_json
from comperdial.report.page import contents, page
from comperdial.report.render import number
from ratedtables import rating_rows, score_rows
from resulttables import correlation, pair, write_rows

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
EVIL = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\"> & “ok”"
SYSTEMS = {"a (p = 0.3)": "agent", "b": "human", "c": "reference"}
UNIT = ["item_id", "system_id"]


def put(path, rows, name):
    schema.write(path, pd.DataFrame(rows).reindex(columns=list(schema.table(name).columns)), name)


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """Two dialogues of two turns, three systems; c is a reference without scores; in the first context all say the same."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(5)
    places = [(f"d{d}-t{t}", f"d{d}", t) for d in range(2) for t in range(2)]
    cells = [(c, s) for c, _, _ in places for s in SYSTEMS]
    texts = {cell: "the same" if cell[0] == "d0-t0" else f"{cell[0]} {cell[1][0]}" for cell in cells}
    texts["d1-t1", "b"] = EVIL
    scores = []
    for metric, output, scale in (("m", "one", 1), ("m", "two", 1e-4), ("n", "big", 300)):
        kept = [cell for cell in cells if cell[1] != "c" and (*cell, metric) != ("d1-t0", "b", "n")]
        values = [0.5 if c == "d0-t0" else scale * random.random() for c, _ in kept]
        scores.append(score_rows(kept, np.float32(values), metric, output=output, dataset="toy"))
    ratings = []
    for rater, name in itertools.product(("r1", "r2"), ("Overall", "Fluent")):
        units = [cell for cell in cells if (cell[0], rater) != ("d1-t1", "r2")]
        same = {"dataset": "toy", "dimension": name, "scale_min": 1.0, "scale_max": 5.0}
        ratings.append(rating_rows(units, random.integers(1, 6, len(units)).astype(float), rater, **same))
    tables = {
        "systems": [("toy", name, kind, None, "-") for name, kind in SYSTEMS.items()],
        "contexts": [
            ("toy", c, d, t, [{"speaker": "A", "text": f"question <b>of</b> {c}"}], [f"reference {c}"], []) for c, d, t in places
        ],
        "responses": [("toy", *cell, text) for cell, text in texts.items()],
        "personas": [],
    }  # fmt: skip
    Path("data/tables/toy").mkdir(parents=True)
    write_rows(Path("data/tables/toy"), **tables)
    put("data/tables/toy/ratings.parquet", pd.concat(ratings), "ratings")
    of = {"target": "Overall", "coefficient": "spearman", "n": 12}
    unit = {"dataset": "toy", "level": "turn", "metric": "n", "output": "big", "sample": 0, "tries": 1, "cost": 0.0}
    unit |= {"input_tokens": 1, "output_tokens": 1}
    results = {
        "correlations": [
            correlation("toy", "m", "one", 0.25, **of), correlation("toy", "m", "two", -0.5, **of | {"p": 0.04996}),
            correlation("toy", "n", "big", 0.75, coverage=0.9, loso_value=0.3, loso_system="b", **of),
        ],
        "pairs": [pair("toy", "n:big", "m:one", 0.5, 0.001, **of), pair("toy", "n:big", "m:two", 1.25, 0.03, **of)],
        "ceilings": [correlation("toy", "", "", 0.8 + n / 10, **of) | {"annotator_id": f"r{n}"} for n in range(2)],
        "judgements/n": [
            unit | {"item_id": c, "system_id": s, "key": f"{c}{s}"}
            | ({"failure": "no number"} if s == "b" else {"value": 3.0, "rationale": f"because {c}" + " x" * 600})
            for c, s in cells
        ],
    }  # fmt: skip
    for name, rows in results.items():
        put(f"results/toy/{name}.parquet", rows, name.partition("/")[0])
    every = pd.concat(scores)
    for name in ("m", "n"):
        put(f"results/toy/scores/{name}.parquet", every[every["metric"] == name], "scores")
    for folder in ("tables", "figures"):
        Path(f"results/toy/{folder}").mkdir()
    alpha = "level,dimension,annotator_id,statistic,value,low,high\nturn,Overall,,alpha_ordinal,0.57232,0.5,\n"
    Path("results/toy/tables/alpha.csv").write_text(alpha)
    Path("results/toy/figures/heatmap.png").touch()
    about = {"dataset": "toy", "title": "Toy <set>", "source": "human", "target": None, "main_target": "Overall"}
    about |= {"levels": ["turn"], "scorers": ["m", "n"], "apart": [], "judged": ["n"], "systems_outputs": ["m:one"]}
    about |= {"outputs": ["m:one", "m:two", "n:big"], "not_run": {"z": "no <model>"}, "labels": {"m:two": "Two"}}
    write_json(Path("results/toy/about.json"), about)
    responses = {cell: texts[cell] for cell in cells}
    return {"ratings": pd.concat(ratings), "responses": responses, "scores": every, "about": about}


def test_scores_ratings_and_texts_match_the_tables(toy):
    text = page("toy", "results/toy/report.html")
    (packed,) = re.findall(r'<script type="text/plain" id="data">([^<]*)</script>', text)
    b = json.loads(zlib.decompress(base64.b64decode(packed)))["browser"]
    keys = [(context["id"], system) for context in b["contexts"] for system in b["systems"]]

    def known(values):
        return {key: value for key, value in zip(keys, values, strict=True) if value is not None}

    for score in b["scores"]:
        rows = toy["scores"].query("metric == @score['metric'] and output == @score['output']")
        expected = rows.set_index(UNIT)["value"].to_dict()
        places, shown = score["of"]["decimals"], known(score["of"]["values"])
        assert {key: number(value, digits=places) for key, value in shown.items()} == {
            key: number(value, digits=places) for key, value in expected.items()
        }
        # Equal values count half.
        every = [*shown.values()]
        for key, percent in known(score["percent"]["values"]).items():
            share = (sum(one < shown[key] for one in every) + every.count(shown[key]) / 2) / len(every)
            assert percent == pytest.approx(100 * share, abs=0.051)
    assert known(b["response"]) == toy["responses"]
    assert [entry["dimension"] for entry in b["ratings"]] == ["Overall", "Fluent"]
    for entry in b["ratings"]:
        for rater in entry["annotators"]:
            rows = toy["ratings"].query("dimension == @entry['dimension'] and annotator_id == @rater['id']")
            assert known(rater["of"]["values"]) == rows.set_index(UNIT)["rating"].to_dict()
    (judged,) = b["judgements"]
    assert {*judged["failure"]} == {None, "no number"}
    assert {len(text) for text in judged["rationale"] if text} == {b["cut"]} == {1000}


def test_statistics_match_the_tables(toy):
    found = contents("toy", "results/local/toy.html")
    rows = {(row["metric"], row["output"]): row for row in found["correlations"]}
    assert (rows["m", "two"]["value"], rows["m", "two"]["starred"]) == (-0.5, False)
    shown = {"value": 0.75, "starred": True, "loso_system": "b", "loso_value": 0.3, "loso_halved": True}
    assert {name: rows["n", "big"][name] for name in shown} == shown
    assert found["ceilings"][0]["value"] == 0.85
    assert [row["significant"] for row in found["comparisons"]] == [True, True]
    assert found["alpha"] == [{"level": "turn", "dimension": "Overall", "value": 0.572, "low": 0.5, "high": None}]
    assert found["called"]["m:two"] == "Two" and found["called"]["n:big"] == "n big"
    mean = toy["scores"].query("output == 'one'").groupby("system_id")["value"].mean()
    assert {row["system_id"]: number(row["m:one"]) for row in found["systems"]["rows"]} == mean.map(number).to_dict()
    assert found["figures"] == [{"name": "heatmap", "src": "../toy/figures/heatmap.png"}]


def test_page_is_one_self_contained_file(toy):
    write_json(Path("results/toy/about.json"), toy["about"] | {"source": "simulated", "levels": []})
    text = page("toy", "results/toy/report.html")
    assert text == page("toy", "results/toy/report.html")
    assert "Toy &lt;set&gt;" in text and "Toy <set>" not in text and "SIMULATED" in text
    assert text.count("</script>") == 2
    assert "default-src 'none'" in text and "unsafe" not in text
    assert not re.search(r"\bon[a-z]+=\"|https?://|\bimport\b|innerHTML|insertAdjacentHTML|\beval\(", text)


def dom(text, tmp_path, view):
    (tmp_path / "toy.html").write_text(text, encoding="utf-8")
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", f"--user-data-dir={tmp_path / 'browser'}",
        "--virtual-time-budget=4000", "--dump-dom", f"file://{tmp_path}/toy.html#{view}",
    ]  # fmt: skip
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "data-ready=" in found.stdout, found.stdout[-2000:] + found.stderr[-2000:]
    return found.stdout


def first_column(found, table):
    body = re.search(rf'<table[^>]* id="table-{table}".*?</table>', found, re.S).group()
    rows = re.findall(r'<tr[^>]*><th[^>]*scope="row"[^>]*>(.*?)</th>', body, re.S)
    return [html.unescape(re.sub(r"<[^>]*>", "", row)).strip() for row in rows]


@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
def test_in_a_browser(toy, tmp_path):
    text = page("toy", tmp_path / "toy.html")
    every = dom(text, tmp_path, "outputs=all&sort.metrics=turn.spearman")
    ceiling = "Ceiling: one rater against the others"
    assert first_column(every, "metrics") == [ceiling, "Two", "m one", "n big"] and "no &lt;model&gt;" in every
    # A response is text, whatever it looks like.
    evil = dom(text, tmp_path, "dialogue=d1&turn=1&system=b&system=c")
    assert "<title>Dialogues: Toy &lt;set&gt;</title>" in evil
    assert "&lt;/script&gt;&lt;script&gt;" in evil and "<img" not in evil
    row = re.search(r'data-score="m:one".*?</tr>', evil, re.S).group()
    score = toy["scores"].query("item_id == 'd1-t1' and system_id == 'b' and output == 'one'")["value"].item()
    assert re.findall(r'<span class="number">(.*?)</span>', row) == [number(score), "–"]
