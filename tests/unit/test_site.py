"""The page of results and dialogues: what it carries is what the tables hold, and it runs in a browser."""

from __future__ import annotations

import base64
import html
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
from comperdial.report.page import contents, decimals_of, page
from comperdial.report.render import number

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
EVIL = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\"> & “ok”"
SYSTEMS = ["a (p = 0.3)", "b", "c"]
KEY = {"dataset": "toy", "level": "turn", "against": "turn", "target": "Overall", "grouping": "pooled"}
OF = KEY | {"coefficient": "spearman", "n": 12}


def data_of(text):
    """Return the data in a page."""
    packed = re.search(r'<script type="text/plain" id="data">([^<]*)</script>', text)[1]
    return json.loads(zlib.decompress(base64.b64decode(packed)))


def correlation(metric, output, value, **other):
    row = OF | {
        "metric": metric,
        "output": output,
        "value": value,
        "low": value - 0.1,
        "high": value + 0.1,
        "p": 0.0496,
    }
    return row | {"coverage": 1.0, "cut": 0, "signature": f"{metric}|v1"} | other


def pair(a, b, difference, p):
    names = {"metric_a": a[0], "output_a": a[1], "metric_b": b[0], "output_b": b[1], "difference": difference, "p": p}
    return OF | names | {"test": "a test"}


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """Two dialogues of two turns, three systems; c is a reference without scores; in the first context all say the same."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(5)
    contexts = [
        {
            "dataset": "toy",
            "context_id": f"d{d}-t{t}",
            "dialogue_id": f"d{d}",
            "turn": t,
            "references": [f"reference {d}{t}"],
        }
        | {"history": [{"speaker": "A", "text": f"question {t} <b>of</b> {d}"}], "facts": ["a fact"] if d else []}
        for d in range(2)
        for t in range(2)
    ]
    cells = [(row["context_id"], s) for row in contexts for s in SYSTEMS]
    texts = {
        (c, s): "the same" if c == "d0-t0" else EVIL if (c, s) == ("d1-t1", "b") else f"{c} {s[0]}" for c, s in cells
    }
    responses = [{"dataset": "toy", "context_id": c, "system_id": s, "response": texts[c, s]} for c, s in cells]
    score = {"dataset": "toy", "level": "turn", "cut": 0}
    scores = pd.DataFrame(
        [
            score | {"item_id": c, "system_id": s, "metric": metric, "output": output, "signature": f"{metric}|v1"}
            | {"value": np.float32(0.5 if c == "d0-t0" else scale * random.random())}
            for metric, output, scale in (("m", "one", 1), ("m", "two", 1e-4), ("n", "big", 300))
            for c, s in cells
            if s != "c" and (c, s, metric) != ("d1-t0", "b", "n")
        ]
    )  # fmt: skip
    ratings = [
        {"dataset": "toy", "level": "turn", "item_id": c, "system_id": s, "annotator_id": rater, "dimension": name}
        | {"rating": float(random.integers(1, 6)), "scale_min": 1.0, "scale_max": 5.0, "source": "human"}
        for c, s in cells
        for rater in ("r1", "r2")
        for name in ("Overall", "Fluent")
        if (c, rater) != ("d1-t1", "r2")
    ]
    judged = [
        {"dataset": "toy", "level": "turn", "item_id": c, "system_id": s, "metric": "n", "output": "big", "sample": 0}
        | {"tries": 1, "input_tokens": 1, "output_tokens": 1, "cost": 0.0, "key": f"{c}{s}"}
        | ({"failure": "no number"} if s == "b" else {"value": 3.0, "rationale": f"because {c}"})
        for c, s in cells
    ]
    found = [
        correlation("m", "one", 0.25),
        correlation("m", "two", -0.5, p=0.04996),
        correlation("n", "big", 0.75, coverage=0.9, p=0.2, loso_value=0.3, loso_system="b"),
    ]
    kinds = zip(SYSTEMS, ["agent", "human", "reference"], strict=True)
    tables = {
        "systems": [{"dataset": "toy", "system_id": s, "kind": kind, "description": "-"} for s, kind in kinds],
        "contexts": contexts,
        "responses": responses,
        "ratings": ratings,
        "personas": [
            {"dataset": "toy", "dialogue_id": "d0", "speaker": "A", "sentences": ["i am <i>A</i>."], "kinds": ["x"]}
        ],
    }
    results = {
        "correlations": found,
        "pairs": [pair(("n", "big"), ("m", "one"), 0.5, 0.001), pair(("n", "big"), ("m", "two"), 1.25, 0.03)],
        "ceilings": [OF | {"annotator_id": f"r{n}", "value": 0.8 + n / 10} for n in range(2)],
    }
    for folder, kind in (("data/tables/toy", tables), ("results/toy", results)):
        for name, rows in kind.items():
            put(f"{folder}/{name}.parquet", rows, name)
    for name in ("m", "n"):
        schema.write(f"results/toy/scores/{name}.parquet", scores[scores["metric"] == name], "scores")
    put("results/toy/judgements/n.parquet", judged, "judgements")
    Path("results/toy/tables").mkdir()
    Path("results/toy/tables/alpha.csv").write_text(
        "level,dimension,annotator_id,statistic,value,low,high\nturn,Overall,,alpha_ordinal,0.57232,0.5,\n"
        "turn,Overall,r1,mean,3.0,,\n"
    )
    Path("results/toy/figures").mkdir()
    Path("results/toy/figures/heatmap.png").touch()
    about = {"dataset": "toy", "title": "Toy <set>", "source": "human", "target": None, "main_target": "Overall"}
    about |= {"levels": ["turn"], "scorers": ["m", "n"], "apart": [], "judged": ["n"], "systems_outputs": ["m:one"]}
    about |= {"outputs": ["m:one", "m:two", "n:big"], "not_run": {"z": "no <model>"}, "labels": {"m:two": "Two"}}
    about |= {"judges": {"n": {"output": "big"}}, "recorded_judges": []}
    write_json(Path("results/toy/about.json"), about)
    return {**{name: pd.DataFrame(rows) for name, rows in tables.items()}, "scores": scores, "about": about}


def put(path, rows, name):
    schema.write(path, pd.DataFrame(rows).reindex(columns=list(schema.table(name).columns)), name)


@pytest.mark.parametrize(
    ("values", "decimals"),
    [([0.12345, 0.9], 3), ([4.5, 1.0], 1), ([1, 5], 0), ([1.234, 9.9], 3), ([12.345], 2), ([345.678], 1),
     ([12345.6], 0), ([0.0123456], 4), ([0.00001234], 6), ([0, 0], 0), ([], 0), ([np.nan, 0.5], 1)],
)  # fmt: skip
def test_as_many_decimals_as_say_something(values, decimals):
    assert decimals_of(np.array(values, dtype=np.float64)) == decimals


def test_every_score_rating_and_text_is_that_of_the_tables(toy):
    b = data_of(page("toy", "results/toy/report.html"))["browser"]
    keys = [(context["id"], system) for context in b["contexts"] for system in b["systems"]]
    shown = {
        (*key, score["metric"], score["output"]): number(value, digits=score["of"]["decimals"])
        for score in b["scores"]
        for key, value in zip(keys, score["of"]["values"], strict=True)
        if value is not None
    }
    decimals = {(score["metric"], score["output"]): score["of"]["decimals"] for score in b["scores"]}
    names = ["item_id", "system_id", "metric", "output"]
    values = toy["scores"].set_index(names)["value"]
    assert shown == {key: number(value, digits=decimals[key[2:]]) for key, value in values.items()}
    assert (
        dict(zip(keys, b["response"], strict=True))
        == toy["responses"].set_index(["context_id", "system_id"])["response"].to_dict()
    )
    assert [entry["dimension"] for entry in b["ratings"]] == ["Overall", "Fluent"]
    for entry in b["ratings"]:
        for rater in entry["annotators"]:
            rows = toy["ratings"].query("dimension == @entry['dimension'] and annotator_id == @rater['id']")
            found = dict(zip(keys, rater["of"]["values"], strict=True))
            assert {key: value for key, value in found.items() if value is not None} == rows.set_index(names[:2])[
                "rating"
            ].to_dict()
    (judged,) = b["judgements"]
    assert {*judged["failure"]} == {None, "no number"} and "because d1-t1" in judged["rationale"]


def test_percentiles_count_equal_values_half(toy):
    b = data_of(page("toy", "results/toy/report.html"))["browser"]
    (score,) = (one for one in b["scores"] if one["output"] == "one")
    known = [value for value in score["of"]["values"] if value is not None]
    for value, percent in zip(score["of"]["values"], score["percent"]["values"], strict=True):
        if value is not None:
            share = (sum(one < value for one in known) + known.count(value) / 2) / len(known)
            assert percent == pytest.approx(100 * share, abs=0.051)


def test_the_statistics_are_those_of_the_tables(toy):
    found = contents("toy", "results/local/toy.html")
    rows = {(row["metric"], row["output"]): row for row in found["correlations"]}
    assert (rows["m", "two"]["value"], rows["m", "two"]["starred"]) == (-0.5, False)
    big = rows["n", "big"]
    shown = {"value": 0.75, "starred": True, "loso_system": "b", "loso_value": 0.3, "loso_halved": True}
    assert {name: big[name] for name in shown} == shown
    assert found["ceilings"][0]["value"] == 0.85
    assert [row["significant"] for row in found["comparisons"]] == [True, True]
    assert found["signatures"] == {"m": "m|v1", "n": "n|v1"}
    assert found["alpha"] == [{"level": "turn", "dimension": "Overall", "value": 0.572, "low": 0.5, "high": None}]
    assert found["called"]["m:two"] == "Two" and found["called"]["n:big"] == "n big"
    mean = toy["scores"].query("output == 'one'").groupby("system_id")["value"].mean()
    assert {row["system_id"]: number(row["m:one"]) for row in found["systems"]["rows"]} == mean.map(number).to_dict()
    assert found["figures"] == [{"name": "heatmap", "src": "../toy/figures/heatmap.png"}]


def test_only_main_outputs_are_shown_of_a_response(toy):
    write_json(Path("results/toy/about.json"), toy["about"] | {"outputs": ["m:two", "absent:x"]})
    (score,) = contents("toy", "x.html")["browser"]["scores"]
    assert score["output"] == "two"


def test_long_rationales_are_cut(toy):
    path = "results/toy/judgements/n.parquet"
    judged = schema.read(path, "judgements").assign(rationale="x" * 1200, failure=None, value=1.0)
    schema.write(path, judged, "judgements")
    b = contents("toy", "x.html")["browser"]
    assert {len(text) for text in b["judgements"][0]["rationale"]} == {b["cut"]} == {1000}


def test_several_samples_are_shown_with_their_values(toy):
    path = "results/toy/judgements/n.parquet"
    judged = schema.read(path, "judgements")
    again = judged.assign(sample=1, value=4.5, failure=None, key=judged["key"] + "2")
    schema.write(path, pd.concat([judged, again], ignore_index=True), "judgements")
    first, second = contents("toy", "x.html")["browser"]["judgements"]
    assert (first["sample"], second["sample"], second["output"]) == (0, 1, "big")
    assert {*second["value"]["values"]} == {4.5} and "failure" not in second


def test_the_page_is_one_file_without_a_way_in_or_out(toy):
    write_json(Path("results/toy/about.json"), toy["about"] | {"source": "simulated", "levels": []})
    text = page("toy", "results/toy/report.html")
    assert text == page("toy", "results/toy/report.html")
    assert "Toy &lt;set&gt;" in text and "Toy <set>" not in text and "SIMULATED" in text
    assert text.count("</script>") == 2
    assert "default-src 'none'" in text and "unsafe" not in text
    assert not re.search(r"\bon[a-z]+=\"|https?://|\bimport\b|innerHTML|insertAdjacentHTML|\beval\(", text)


def dom(text, tmp_path, *hashes):
    if BROWSER is None:
        pytest.skip("no Chromium here")
    (tmp_path / "toy.html").write_text(text, encoding="utf-8")
    for view in hashes:
        command = [
            BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", f"--user-data-dir={tmp_path / 'browser'}",
            "--virtual-time-budget=4000", "--dump-dom", f"file://{tmp_path}/toy.html#{view}",
        ]  # fmt: skip
        found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert "data-ready=" in found.stdout, found.stdout[-2000:] + found.stderr[-2000:]
        yield found.stdout


def first_column(found, table):
    body = re.search(rf'<table[^>]* id="table-{table}".*?</table>', found, re.S).group()
    rows = re.findall(r'<tr[^>]*><th[^>]*scope="row"[^>]*>(.*?)</th>', body, re.S)
    return [html.unescape(re.sub(r"<[^>]*>", "", row)).strip() for row in rows]


def test_in_a_browser(toy, tmp_path):
    write_json(Path("results/toy/about.json"), toy["about"] | {"outputs": ["m:one", "n:big"]})
    views = (
        "",
        "outputs=all&sort.metrics=turn.spearman",
        "dialogue=d1&turn=1&system=b&system=c",
        "view=pairs",
        "view=figures",
    )
    best, worst, evil, pairs, figures = dom(page("toy", tmp_path / "toy.html"), tmp_path, *views)
    ceiling = "Ceiling: one rater against the others"
    # The main outputs, and with a toggle all.
    assert first_column(best, "metrics") == [ceiling, "n big", "m one"]
    assert first_column(worst, "metrics") == [ceiling, "Two", "m one", "n big"]
    assert "no &lt;model&gt;" in best and "0.572 [0.500, –]" in best
    # A response is text, whatever it looks like.
    assert "<title>Dialogues: Toy &lt;set&gt;</title>" in evil
    assert "&lt;/script&gt;&lt;script&gt;" in evil and "<img" not in evil
    side = re.search(r'<table[^>]* id="table-side".*?</table>', evil, re.S).group()
    score = toy["scores"].query("item_id == 'd1-t1' and system_id == 'b' and output == 'one'")["value"].item()
    row = re.search(r'data-score="m:one".*?</tr>', side, re.S).group()
    assert re.findall(r'<span class="number">(.*?)</span>', row) == [number(score), "–"]
    assert "no rating: no number" in side and "because d1-t1" in side
    assert "1 of 1 pairs differ significantly" in pairs and "Corrected by Holm over 1 test." in pairs
    assert first_column(pairs, "pairs") == ["n big"]
    assert "results/toy/figures/heatmap.png" in figures
    put("data/tables/toy/ratings.parquet", [], "ratings")
    write_json(Path("results/toy/about.json"), toy["about"] | {"levels": [], "outputs": [], "judged": []})
    overview, browsed = dom(page("toy", tmp_path / "toy.html"), tmp_path, "", "view=dialogues&scope=all&find=d1-t0")
    assert "No correlations" in overview
    assert "3 responses of the whole data set" in browsed
