"""The page of results and dialogues: what it carries is what the tables hold, and it runs in a browser."""

from __future__ import annotations

import dataclasses
import html
import math
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from comperdial.core.errors import FileError
from comperdial.core.files import write_json
from comperdial.report.render import SIMULATED, number
from comperdial.report.site import contents
from comperdial.report.site.packing import Packer, Unpacked, decimals_of
from comperdial.report.site.page import data_of, of_dataset, page

BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
EVIL = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\"> & “ok”"
SYSTEMS = ["a (p = 0.3)", "b", "c"]


def _correlation(metric, output, level, value, **other):
    row = {
        "dataset": "toy", "level": level, "against": "turn", "target": "Overall", "metric": metric, "output": output,
        "grouping": "pooled", "coefficient": "spearman", "value": value, "low": value - 0.1, "high": value + 0.1,
        "loso_value": None, "loso_system": None, "p": 0.0496, "n": 12, "rank": 1.0, "tests": 3, "rank_wmt": None,
        "coverage": 1.0, "cut": 0, "lacking": None, "signature": f"{metric}|v1",
    }  # fmt: skip
    return row | other


@pytest.fixture
def tables():
    """Two dialogues of two turns, three systems; c is a reference without scores; b and a say the same once."""
    random = np.random.default_rng(5)
    contexts = pd.DataFrame(
        [
            {
                "dataset": "toy", "context_id": f"d{d}-t{t}", "dialogue_id": f"d{d}", "turn": t,
                "history": [{"speaker": "A", "text": f"question {t} <b>of</b> {d}"}],
                "references": [f"reference {d}{t}"],
                "facts": ["a fact"] if d else [],
            }
            for d in range(2)
            for t in range(2)
        ]
    )  # fmt: skip
    cells = [(c, s) for c in contexts["context_id"] for s in SYSTEMS]
    responses = pd.DataFrame(
        [
            {
                "dataset": "toy",
                "context_id": c,
                "system_id": s,
                "response": EVIL if (c, s) == ("d1-t1", "b") else f"{c} {s[0]}",
            }
            for c, s in cells
        ]
    )
    responses.loc[responses["context_id"] == "d0-t0", "response"] = "the same"
    scores = [
        {
            "dataset": "toy", "level": "turn", "item_id": c, "system_id": s, "metric": metric, "output": output,
            "value": np.float32(0.5 if c == "d0-t0" else scale * random.random()), "cut": 0,
            "signature": f"{metric}|v1",
        }
        for metric, output, scale in (("m", "one", 1), ("m", "two", 1e-4), ("n", "big", 300))
        for c, s in cells
        if s != "c" and (c, s, metric) != ("d1-t0", "b", "n")
    ]  # fmt: skip
    ratings = [
        {
            "dataset": "toy", "level": "turn", "item_id": c, "system_id": s, "annotator_id": rater, "position": None,
            "dimension": name, "rating": float(random.integers(1, 6)), "scale_min": 1.0, "scale_max": 5.0,
            "source": "human",
        }
        for c, s in cells
        for rater in ("r1", "r2")
        for name in ("Overall", "Fluent")
        if (c, rater) != ("d1-t1", "r2")
    ]  # fmt: skip
    judged = pd.DataFrame(
        [
            {
                "dataset": "toy", "level": "turn", "item_id": c, "system_id": s, "metric": "n", "output": "big",
                "sample": 0, "key": None, "tries": 1, "value": None if s == "b" else 3.0,
                "failure": "no number" if s == "b" else None,
                "rationale": None if s == "b" else f"because {c}", "input_tokens": 1, "output_tokens": 1, "cost": 0.0,
            }
            for c, s in cells
        ]
    )  # fmt: skip
    found = [
        _correlation("m", "one", "turn", 0.25),
        _correlation("m", "two", "turn", -0.5, p=0.04996),
        _correlation("n", "big", "turn", 0.75, rank=np.nan, coverage=0.9, p=0.2, loso_value=0.3, loso_system="b"),
        _correlation("m", "one", "system", np.nan, low=np.nan, high=np.nan, p=np.nan, rank=np.nan),
    ]
    compared = {
        "dataset": "toy", "level": "turn", "against": "turn", "target": "Overall", "grouping": "pooled",
        "coefficient": "spearman", "metric_a": "n", "output_a": "big", "metric_b": "m", "output_b": "one",
        "difference": 0.5, "p": 0.001,
        "p_adjusted": 0.003, "p_fdr": 0.002, "p_wmt": 0.005, "p_perm_both": 0.01, "p_williams": 0.01, "n": 12, "test": "a test",
    }  # fmt: skip
    other = {"metric_b": "n", "output_b": "x", "p": 0.03, "p_adjusted": 0.06}
    ceiling = {
        "dataset": "toy", "level": "turn", "against": "turn", "target": "Overall", "grouping": "pooled",
        "coefficient": "spearman", "n": 12,
    }  # fmt: skip
    persona = {"dataset": "toy", "dialogue_id": "d0", "speaker": "A", "sentences": ["i am <i>A</i>."], "kinds": ["x"]}
    return contents.Tables(
        systems=pd.DataFrame(
            {"dataset": "toy", "system_id": SYSTEMS, "kind": ["agent", "human", "reference"], "track": None}
            | {"description": ""}
        ),
        contexts=contexts,
        responses=responses,
        scores=pd.DataFrame(scores),
        correlations=pd.DataFrame(found),
        comparisons=pd.DataFrame([compared, compared | other]),
        ceilings=pd.DataFrame([ceiling | {"annotator_id": f"r{n}", "value": 0.8 + n / 10} for n in range(2)]),
        personas=pd.DataFrame([persona]),
        ratings=pd.DataFrame(ratings),
        judgements=[judged],
    )  # fmt: skip


SETTINGS = contents.Settings(
    title="Toy <set>", main=["m:one"], not_run={"z": "no <model>"}, figures=["../figures/toy_x.png"]
)


def test_columns_come_back_as_they_are_shown():
    random = np.random.default_rng(1)
    packer = Packer()
    columns = [
        (random.random(5000).astype(np.float32).astype(np.float64), 3),
        (np.array([0.0005, 0.0015, 0.0625, -0.0005, 1.0005, np.nan]), 3),
        (random.normal(0, 1e5, 300), 2),
        (np.array([np.nan, np.nan]), 3),
        (np.array([]), 0),
        (np.arange(254.0), 0),
        (np.arange(255.0), 0),
        (np.arange(256.0), 0),
    ]
    specs = [packer.numbers(values, decimals) for values, decimals in columns]
    words = packer.texts(["b", None, "a", "b", "ü </script>"])
    found = Unpacked(packer.text({"specs": specs, "words": words}))
    for (values, decimals), spec in zip(columns, found.content["specs"], strict=True):
        shown = [number(value, digits=decimals) for value in found.numbers(spec)]
        assert shown == [number(value, digits=decimals) for value in values]
    assert [spec["width"] for spec in specs[-3:]] == [1, 1, 2]
    assert found.texts(found.content["words"]) == ["b", None, "a", "b", "ü </script>"]


@pytest.mark.parametrize(
    ("values", "decimals"),
    [([0.12345, 0.9], 3), ([4.5, 1.0], 1), ([1, 5], 0), ([1.234, 9.9], 3), ([12.345], 2), ([345.678], 1),
     ([12345.6], 0), ([0.0123456], 4), ([0.00001234], 6), ([0, 0], 0), ([], 0), ([np.nan, 0.5], 1)],
)  # fmt: skip
def test_as_many_decimals_as_say_something(values, decimals):
    assert decimals_of(np.array(values, dtype=np.float64)) == decimals


def test_not_packed_data_is_named():
    with pytest.raises(FileError, match="not packed data"):
        Unpacked("bm9uZQ==")
    with pytest.raises(FileError, match="no packed data"):
        data_of("<html></html>")


def _scores(found, level=""):
    """Return what the page shows: (context, system, metric:output) to a number, read as the page's code reads it."""
    b = found.content["browser"]
    unit = found.numbers(b["unit"])
    out = {}
    for score in b["scores"]:
        values = found.numbers(score["of"])
        for c, context in enumerate(b["contexts"]):
            for s, system in enumerate(b["systems"]):
                place = b["starts"][c] + int(unit[c * len(b["systems"]) + s])
                out[context["id"], system, f"{score['metric']}:{score['output']}"] = (
                    values[place],
                    score["of"]["decimals"],
                )
    return out


def test_every_score_rating_and_text_is_that_of_the_tables(tables):
    found = Unpacked(contents.pack(tables, SETTINGS))
    b = found.content["browser"]
    shown = _scores(found)
    assert len({key for key, (value, _) in shown.items() if not math.isnan(value)}) == len(tables.scores)
    for row in tables.scores.to_dict("records"):
        value, decimals = shown[row["item_id"], row["system_id"], f"{row['metric']}:{row['output']}"]
        assert number(value, digits=decimals) == number(row["value"], digits=decimals)
    unit, response = found.numbers(b["unit"]), found.texts(b["response"])
    said = {}
    for c, context in enumerate(b["contexts"]):
        for s, system in enumerate(b["systems"]):
            said[context["id"], system] = response[b["starts"][c] + int(unit[c * 3 + s])]
    assert said == dict(tables.responses.set_index(["context_id", "system_id"])["response"].items())
    # In the first context all said the same: a and b have equal scores, the reference none.
    assert len(response) == 4 * 3
    assert [entry["dimension"] for entry in b["ratings"]] == ["Overall", "Fluent"]
    for entry in b["ratings"]:
        for rater in entry["annotators"]:
            values = found.numbers(rater["of"])
            of_it = tables.ratings.query("dimension == @entry['dimension'] and annotator_id == @rater['id']")
            wanted = of_it.set_index(["item_id", "system_id"])["rating"]
            keys = [(c["id"], s) for c in b["contexts"] for s in b["systems"]]
            np.testing.assert_array_equal(values, wanted.reindex(pd.MultiIndex.from_tuples(keys)).to_numpy())
    (judged,) = b["judgements"]
    assert set(found.texts(judged["failure"])) == {None, "no number"}
    assert "because d1-t1" in found.texts(judged["rationale"])


def test_systems_that_said_the_same_share_what_was_said_of_it():
    keys = [(c, s) for c in "xy" for s in "abc"]
    units = contents.Units(keys, {"r": ["1", "1", "2", "3", None, "3"], "v": [1.0, 1.0, 1.0, 2.0, np.nan, 2.5]})
    assert units.starts == [0, 2]
    assert units.of.tolist() == [0, 0, 1, *[units.of[3], units.of[4], units.of[5]]]
    assert len({*units.of[3:].tolist()}) == 3
    assert [keys[row][0] for row in units.rows] == ["x", "x", "y", "y", "y"]


def test_the_statistics_are_those_of_the_tables(tables):
    found = Unpacked(contents.pack(tables, SETTINGS))
    table = found.content["correlations"]
    rows = {
        key: (value, starred)
        for *key_, value, starred in zip(
            *(found.texts(table[name]) for name in ("level", "metric", "output")),
            found.numbers(table["value"]), found.numbers(table["starred"]), strict=True,
        )
        if (key := tuple(key_))
    }  # fmt: skip
    assert rows["turn", "m", "two"] == (-0.5, 0.0)
    assert rows["turn", "n", "big"] == (0.75, 1.0)
    at = list(zip(found.texts(table["metric"]), found.texts(table["output"]), strict=True)).index(("n", "big"))
    assert found.texts(table["loso_system"])[at] == "b"
    assert (found.numbers(table["loso_value"])[at], found.numbers(table["loso_halved"])[at]) == (0.3, 1.0)
    assert found.numbers(table["loso_halved"]).sum() == 1
    assert math.isnan(rows["system", "m", "one"][0])
    assert rows["system", "m", "one"][1] == 1.0, "no p to be had is marked as everywhere else"
    assert found.numbers(found.content["ceilings"]["value"]).tolist() == [0.85]
    assert found.numbers(found.content["comparisons"]["told"]).tolist() == [2.0, 1.0]
    assert found.content["signatures"] == {"m": "m|v1", "n": "n|v1"}
    systems = found.content["systems"]
    assert found.texts(systems["system_id"]) != [] and "c" not in found.texts(systems["system_id"])
    mean = tables.scores.query("metric == 'm' and output == 'one'").groupby("system_id")["value"].mean()
    shown = dict(zip(found.texts(systems["system_id"]), found.numbers(systems["scores"][0]["of"]), strict=True))
    assert {name: number(value) for name, value in shown.items()} == {
        name: number(value) for name, value in mean.items()
    }


def test_outputs_can_be_chosen_as_far_as_they_have_scores(tables):
    chosen = contents.chosen_outputs(tables.scores, ["m:two", "absent:x"])
    assert chosen == [("turn", "m", "two")]


def test_long_rationales_are_cut(monkeypatch, tables):
    monkeypatch.setattr(contents, "MOST_CHARACTERS", 500)
    judged = tables.judgements[0].assign(rationale=[f"{n} " * 150 for n in range(12)], failure=None, value=1.0)
    keys = [(c, s) for c in tables.contexts["context_id"] for s in SYSTEMS]
    entries, cut = contents.judgements([judged], "turn", keys)
    assert cut == 0 and "rationale" not in entries[0]
    monkeypatch.setattr(contents, "MOST_CHARACTERS", 1300)
    entries, cut = contents.judgements([judged], "turn", keys)
    assert cut == 100 and {len(text) for text in entries[0]["rationale"]} == {101}


def test_several_samples_are_shown_with_their_values(tables):
    judged = tables.judgements[0]
    twice = pd.concat([judged, judged.assign(sample=1, value=4.5, failure=None)], ignore_index=True)
    found = Unpacked(contents.pack(dataclasses.replace(tables, judgements=[twice]), SETTINGS))
    first, second = found.content["browser"]["judgements"]
    assert (first["sample"], second["sample"], second["output"]) == (0, 1, "big")
    assert set(found.numbers(second["value"])) == {4.5} and "failure" not in second


def test_the_page_is_one_file_without_a_way_in_or_out(tables):
    text = page("Toy <set>", contents.pack(tables, SETTINGS), note=SIMULATED)
    assert text == page("Toy <set>", contents.pack(tables, SETTINGS), note=SIMULATED)
    assert "Toy &lt;set&gt;" in text and "Toy <set>" not in text
    assert text.count("</script>") == 2
    assert "default-src 'none'" in text and "unsafe" not in text
    assert not re.search(r"\bon[a-z]+=\"|https?://|\bimport\b|innerHTML|insertAdjacentHTML|\beval\(", text)
    assert SIMULATED.replace("'", "&#x27;") in text


def _dom(path: Path, tmp_path: Path, *hashes: str) -> list[str]:
    if BROWSER is None:
        pytest.skip("no Chromium here")
    out = []
    for hash_ in hashes:
        command = [
            BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
            f"--user-data-dir={tmp_path / 'browser'}",
            "--virtual-time-budget=4000", "--dump-dom", f"file://{path}#{hash_}",
        ]  # fmt: skip
        found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        out.append(found.stdout)
        assert "data-ready=" in found.stdout, found.stdout[-2000:] + found.stderr[-2000:]
    return out


def _column(dom: str, table: str, cell: str = "th") -> list[str]:
    body = re.search(rf'<table[^>]* id="table-{table}".*?</table>', dom, re.S).group()
    rows = re.findall(rf'<tr[^>]*><{cell}[^>]*scope="row"[^>]*>(.*?)</{cell}>', body, re.S)
    return [html.unescape(re.sub(r"<[^>]*>", "", row)).strip() for row in rows]


def test_in_a_browser(tables, tmp_path):
    path = tmp_path / "toy.html"
    path.write_text(page("Toy <set>", contents.pack(tables, SETTINGS)), encoding="utf-8")
    best, worst, evil, pairs, figures = _dom(
        path, tmp_path, "", "sort.metrics=turn.spearman", "dialogue=d1&turn=1&system=b&system=c", "view=pairs",
        "view=figures",
    )  # fmt: skip
    ceiling = "Ceiling: one rater against the others"
    assert _column(best, "metrics") == [ceiling, "n big", "m one", "m two"]
    assert _column(worst, "metrics") == [ceiling, "m two", "m one", "n big"]
    assert "no &lt;model&gt;" in best
    # A response is text, whatever it looks like.
    assert "<title>Dialogues: Toy &lt;set&gt;</title>" in evil
    assert "&lt;/script&gt;&lt;script&gt;" in evil and "<img" not in evil
    side = re.search(r'<table[^>]* id="table-side".*?</table>', evil, re.S).group()
    score = tables.scores.query("item_id == 'd1-t1' and system_id == 'b' and metric == 'm' and output == 'one'")[
        "value"
    ].item()
    row = re.search(r'data-score="m:one".*?</tr>', side, re.S).group()
    assert re.findall(r'<span class="number">(.*?)</span>', row) == [number(score), "–"]
    assert "no rating: no number" in side and "because d1-t1" in side
    assert "1 of 2 pairs are told apart" in pairs
    assert "Corrected by Holm over 2 tests." in pairs
    assert "Not here: ../figures/toy_x.png" in figures


def test_a_page_of_little(tables, tmp_path):
    bare = contents.Tables(tables.systems, tables.contexts, tables.responses, tables.scores, tables.ratings.iloc[:0])
    path = tmp_path / "bare.html"
    path.write_text(page("Bare", contents.pack(bare, contents.Settings("Bare"))), encoding="utf-8")
    overview, browsed = _dom(path, tmp_path, "", "view=dialogues")
    assert "No correlations" in overview
    assert "3 responses to this context" in browsed


def test_alpha_is_read_from_its_table(tmp_path):
    path = tmp_path / "alpha.csv"
    path.write_text(
        "level,dimension,annotator_id,statistic,value,low,high\nturn,Overall,,alpha_ordinal,0.57232,0.5,\n"
        "turn,Overall,r1,mean,3.0,,\n"
    )
    assert contents.alphas(path) == [
        {"level": "turn", "dimension": "Overall", "kind": "ordinal", "value": "0.572", "low": "0.500", "high": "–"}
    ]


def test_the_page_links_its_figures(tables, tmp_path, monkeypatch):
    from comperdial import schema

    monkeypatch.chdir(tmp_path)
    for name in ("systems", "contexts", "responses", "personas", "ratings"):
        schema.write(f"data/tables/toy/{name}.parquet", getattr(tables, name), name)
    schema.write("results/toy/scores/m.parquet", tables.scores.query("metric == 'm'"), "scores")
    about = {
        "dataset": "toy",
        "title": "Toy",
        "source": "human",
        "target": None,
        "main_target": "Overall",
        "levels": [],
    }
    about |= {"scorers": ["m"], "apart": [], "judged": [], "systems_outputs": ["m:one"], "outputs": [], "not_run": {}}
    write_json(Path("results/toy/about.json"), about | {"labels": {}})
    Path("results/toy/figures").mkdir()
    Path("results/toy/figures/heatmap.png").touch()
    made = of_dataset("toy", "results/local/toy.html")
    assert Unpacked(data_of(made)).content["figures"] == [{"name": "heatmap", "src": "../toy/figures/heatmap.png"}]
