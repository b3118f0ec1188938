"""Records of what tables and figures are made of, `comperdial why`, and the files that hold the same in fewer bytes."""

import json
import re
import shutil
from xml.etree import ElementTree

import nbformat
import numpy as np
import pandas as pd
import pytest

from comperdial import provenance, schema
from comperdial.cli import main
from comperdial.errors import FileError
from comperdial.report import figures
from comperdial.report.notebook import page
from comperdial.report.plots import style

CODE = "src/comperdial/report/personas.py"


@pytest.fixture
def place(tmp_path, monkeypatch, root):
    """Return a folder to render in, with a file to render and a file of the package."""
    monkeypatch.chdir(tmp_path)
    for name in ("data/personas/names.csv", CODE):
        (tmp_path / name).parent.mkdir(parents=True)
        shutil.copy(root / name, tmp_path / name)
    return tmp_path


def render(*made_from, output="results/tables/names"):
    files = [str(file) for file in made_from or ("data/personas/names.csv", CODE)]
    assert main(["render", "names", "data/personas/names.csv", "--output", str(output), "--made-from", *files]) == 0
    return provenance.read(f"{output}.provenance.json")


def why(capsys, *arguments):
    capsys.readouterr()
    status = main(["why", *arguments])
    said = capsys.readouterr()
    return said.out if status == 0 else said.err


def test_a_record_holds_what_a_table_was_made_of(place):
    record = render()
    assert record["command"] == "render names"
    assert set(record["inputs"]) == {"data/personas/names.csv"}
    found = record["inputs"]["data/personas/names.csv"]
    assert re.fullmatch("[0-9a-f]{16}", found["sha256"])
    assert found["size"] == (place / "data/personas/names.csv").stat().st_size
    assert set(record["code"]["files"]) == {CODE}
    assert set(record["outputs"]) == {".csv", ".html", ".md", ".tex"}
    assert {"python", "comperdial", "numpy", "pandas", "scipy", "pyarrow", "matplotlib"} <= set(record["versions"])


def test_a_name_may_hold_points(place, capsys):
    record = render(output="results/gpt-3.5_set_alpha")
    forms = [".csv", ".html", ".md", ".tex"]
    names = {f"gpt-3.5_set_alpha{form}" for form in [*forms, ".provenance.json"]}
    assert {path.name for path in (place / "results").iterdir()} == names
    assert sorted(record["outputs"]) == forms
    for name in ("gpt-3.5_set_alpha", "gpt-3.5_set_alpha.html"):
        assert "render names" in why(capsys, f"results/{name}")
    assert main(["render", "names", "data/personas/names.csv", "--output", "results/page.html"]) == 0
    assert (place / "results/page.md").is_file()


def test_a_figure_s_name_may_hold_points(tmp_path):
    figure, _ = style.figure_and_axes(1, 1, (2, 2))
    style.finish(figure, pd.DataFrame({"a": [1.0]}), tmp_path / "gpt-3.5_slope")
    names = {f"gpt-3.5_slope.{form}" for form in ("pdf", "png", "svg", "csv")}
    assert {path.name for path in tmp_path.iterdir()} == names


def test_the_same_inputs_give_the_same_bytes(place):
    render()
    first = (place / "results/tables/names.provenance.json").read_bytes()
    render(CODE, "data/personas/names.csv")
    assert (place / "results/tables/names.provenance.json").read_bytes() == first


def test_without_made_from_there_is_no_record(place):
    assert main(["render", "names", "data/personas/names.csv", "--output", "names"]) == 0
    assert not list(place.glob("*.json"))


def test_a_changed_input_or_file_of_code_has_another_hash(place):
    before = render()
    (place / "data/personas/names.csv").open("a").write("2018,0,female,Zoe,paper\n")
    (place / CODE).open("a").write("more = 1\n")
    after = render()
    assert before["inputs"] != after["inputs"]
    assert before["code"]["sha256"] != after["code"]["sha256"]


def test_a_missing_input_is_named(place, capsys):
    arguments = ["--output", "names", "--made-from", "nowhere.csv"]
    assert main(["render", "names", "data/personas/names.csv", *arguments]) == 1
    assert "nowhere.csv: no such file" in capsys.readouterr().err


def test_parameters_are_recorded_and_no_path_of_the_machine(place, root, capsys):
    paper = root / "data/paper"
    table = ["render", "benchmarks", "--paper", str(paper), "--output", str(place / "tables/table_07")]
    assert main([*table, "--made-from", str(paper / "benchmarks.csv"), str(place / CODE)]) == 0
    text = (place / "tables/table_07.provenance.json").read_text()
    record = json.loads(text)
    assert record["parameters"] == {"paper": "paper"}
    assert set(record["inputs"]) == {"benchmarks.csv"}
    assert set(record["code"]["files"]) == {CODE}
    assert set(record["outputs"]) == {".csv", ".html", ".md", ".tex"}
    assert str(place) not in text
    assert str(root) not in text
    assert not re.search(r'"/', text)


def test_signatures_tests_and_seeds_come_from_the_inputs(place):
    scores = pd.DataFrame({
        "dataset": "d", "level": "turn", "item_id": ["a", "b"], "system_id": "s", "metric": ["f1", "judge"],
        "output": "o", "value": 1.0, "cut": 0, "signature": ["f1|v:1", "judge|model:m@12ab|seed:7|v:1"],
    })  # fmt: skip
    schema.write(place / "scores.parquet", scores, "scores")
    pd.DataFrame({"metric_a": ["f1"], "test": ["paired|seed:3"]}).to_parquet(place / "comparisons.parquet")
    pd.DataFrame({"label": ["F1"], "signature": ["f1|v:2"]}).to_csv(place / "usr.csv")
    files = ["scores.parquet", "comparisons.parquet", "usr.csv"]
    record = provenance.read(provenance.write("made", "render x", {"seed": 5, "resamples": 10}, files))
    assert record["signatures"] == {"F1": ["f1|v:2"], "f1": ["f1|v:1"], "judge": ["judge|model:m@12ab|seed:7|v:1"]}
    assert record["tests"] == ["paired|seed:3"]
    assert record["seeds"] == {"seed": [5], "signatures": [3, 7]}
    assert record["parameters"] == {"resamples": 10, "seed": 5}


@pytest.mark.parametrize("form", ["names", "names.csv", "names.html", "names.provenance.json"])
def test_why_tells_what_a_table_was_made_of_from_any_form(place, capsys, form):
    render()
    said = why(capsys, f"results/tables/{form}")
    assert said.startswith("results/tables/names\nmade by comperdial render names\n")
    assert "  same      data/personas/names.csv" in said
    assert "inputs (the same now)" in said
    assert "  numpy " in said


def test_why_tells_what_is_no_longer_so(place, capsys):
    render()
    (place / "data/personas/names.csv").open("a").write("2018,0,female,Zoe,paper\n")
    (place / CODE).unlink()
    (place / "results/tables/names.md").write_text("edited")
    said = why(capsys, "results/tables/names.csv")
    assert "  changed   data/personas/names.csv" in said
    assert f"  not here  {CODE}" in said
    assert "  changed   names.md" in said
    assert "  same      names.csv" in said


def test_a_comment_changes_no_code_and_a_statement_does(place, capsys):
    render()
    (place / CODE).open("a").write("# more\n")
    assert "(the same now)" in why(capsys, "results/tables/names").partition("\ncode")[2]
    (place / CODE).open("a").write("more = 1\n")
    assert f"(1 changed)\n  changed   {CODE}" in why(capsys, "results/tables/names").partition("\ncode")[2]


def test_why_finds_the_inputs_from_another_folder(place, capsys, monkeypatch):
    render()
    monkeypatch.chdir(place / "results/tables")
    assert "inputs (the same now)" in why(capsys, "names.csv")


def test_why_follows_an_input_that_has_a_record(place, capsys):
    render()
    provenance.write("results/page.html", "render notebook", {}, ["results/tables/names.csv"])
    assert "made by comperdial render names; its inputs: the same now" in why(capsys, "results/page.html")
    (place / "data/personas/names.csv").open("a").write("2018,0,female,Zoe,paper\n")
    assert "its inputs: 1 changed; its code: the same now" in why(capsys, "results/page.html")


def test_why_shows_the_signatures_of_the_table_and_says_simulated(place, capsys):
    pd.DataFrame({"metric": ["f1", "bleu"], "signature": ["f1|v:1", "bleu|v:1"]}).to_csv(place / "all.csv")
    pd.DataFrame({"metric": ["f1"]}).to_csv(place / "made.csv")
    provenance.write("made", "render x", {"simulated": True, "long": dict.fromkeys("abcdef", 1)}, ["all.csv"])
    said = why(capsys, "made.csv")
    assert "metrics\n  f1: f1|v:1\n" in said
    assert "bleu|v:1" not in said
    assert "SIMULATED: " in said
    assert "6 entries, see --json" in said


def test_why_prints_the_record_itself(place, capsys):
    render()
    assert why(capsys, "results/tables/names", "--json") == (place / "results/tables/names.provenance.json").read_text(
        encoding="utf-8"
    )


def test_why_without_a_record_names_the_nearest(place, capsys):
    render()
    said = why(capsys, "results/tables/nams.csv")
    assert said.startswith("comperdial: error: results/tables/nams.csv: no such table or figure")
    assert "Did you mean results/tables/names?" in said
    assert "--made-from" in said
    (place / "mine.csv").write_text("a\n")
    assert "mine.csv: no record of what it was made of" in why(capsys, "mine.csv")


def test_a_record_of_another_form_is_refused(place):
    (place / "x.provenance.json").write_text('{"format": 99}')
    with pytest.raises(FileError, match="not a record of provenance"):
        provenance.read(place / "x.provenance.json")


def test_a_damaged_record_is_called_damaged(place, capsys):
    (place / "x.provenance.json").write_text(f'{{"format": {provenance.FORMAT}, "parameters": []}}')
    assert "x.provenance.json: the record is damaged; expected what `comperdial render` writes" in why(capsys, "x")


def drawing():
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(4, 3))
    ax.plot(np.arange(50), np.sqrt(np.arange(50)), "o", label="a line")
    ax.scatter(np.arange(50), np.arange(50) % 7, rasterized=True)
    ax.text(10, 5, "Label, $x^2$", fontweight="bold")
    ax.legend()
    return figure


def test_a_figure_has_the_same_bytes_on_every_run_and_a_palette(tmp_path):
    from PIL import Image

    for name in ("a", "b"):
        figures.save(drawing(), tmp_path / name)
    for suffix in ("pdf", "png", "svg"):
        assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes(), suffix
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.mode == "P"
        assert picture.convert("RGB").getpixel((0, 0)) == (255, 255, 255)
        assert round(picture.info["dpi"][0]) == figures.DPI


def test_an_svg_holds_text_in_a_font_with_a_fallback_and_says_nothing_of_the_machine(tmp_path):
    figures.save(drawing(), tmp_path / "a")
    text = (tmp_path / "a.svg").read_text()
    said = [
        "".join(element.itertext()) for element in ElementTree.fromstring(text).iter() if element.tag.endswith("}text")
    ]
    assert "a line" in said
    assert "'DejaVu Sans', sans-serif" in text
    assert "<metadata" not in text


def test_figures_say_what_was_saved(tmp_path):
    with figures.saving() as stems:
        figures.save(drawing(), tmp_path / "one")
    figures.save(drawing(), tmp_path / "two")
    assert stems == [tmp_path / "one"]


def test_a_notebook_s_page_is_small_and_needs_no_network():
    table = '<div>\n<style scoped>\n.dataframe {x: y}\n</style>\n<table border="1" class="dataframe"></table></div>'
    output = nbformat.v4.new_output("execute_result", data={"text/html": table, "text/plain": "t"}, execution_count=1)
    cells = [
        nbformat.v4.new_markdown_cell("# Title & more\n\nText.", id="a"),
        nbformat.v4.new_code_cell("x = 'a<b'", outputs=[output], id="b"),
    ]
    made = page(nbformat.v4.new_notebook(cells=cells), "name")
    assert "<title>Title &amp; more</title>" in made
    assert '<details class="code">' in made
    assert "a&lt;b" in made
    assert 'class="dataframe"' in made
    assert "style scoped" not in made
    assert "http" not in made
    assert "<script" not in made
    assert len(made) < 6000


@pytest.mark.parametrize("rows", [1, 3000])
def test_parquet_is_small_and_keeps_every_value(tmp_path, rows):
    rng = np.random.default_rng(1)
    scores = pd.DataFrame({
        "dataset": "d", "level": "turn", "item_id": [f"item-{i:05d}" for i in range(rows)], "system_id": "s",
        "metric": "f1", "output": "o", "value": rng.normal(size=rows), "cut": 0, "signature": "f1|v:1",
    })  # fmt: skip
    for name in ("a", "b"):
        schema.write(tmp_path / f"{name}.parquet", scores, "scores")
    expected = schema.validate(scores, "scores")
    pd.testing.assert_frame_equal(schema.read(tmp_path / "a.parquet", "scores"), expected)
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "a.parquet")[["value"]], expected[["value"]])
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    scores.to_parquet(tmp_path / "plain.parquet", index=False, compression="zstd")
    assert (tmp_path / "a.parquet").stat().st_size < (tmp_path / "plain.parquet").stat().st_size
