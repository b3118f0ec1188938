"""Records of what tables and figures are made of, `comperdial why`, and the files that hold the same in fewer bytes."""

import json
import re
import shutil
from xml.etree import ElementTree

import nbformat
import numpy as np
import pandas as pd
import pytest

from comperdial import jobs, schema
from comperdial.cli import main
from comperdial.core import provenance
from comperdial.core.closure import code_version
from comperdial.core.errors import FileError
from comperdial.report import figures
from comperdial.report.notebook import page
from comperdial.report.plots import style
from making import make

TABLE = "studies.comperdial.tables:constraints"
MODULE = "studies.comperdial.personas"
CODE = f"src/comperdial/{MODULE.replace('.', '/')}.py"
NAMES = "data/personas/names.csv"
BENCHMARKS = "src/comperdial/studies/comperdial/benchmarks.csv"


@pytest.fixture
def place(tmp_path, monkeypatch, root):
    """Return a folder to render in, with a file to render and a file of the package."""
    monkeypatch.chdir(tmp_path)
    for name in (NAMES, CODE):
        (tmp_path / name).parent.mkdir(parents=True)
        shutil.copy(root / name, tmp_path / name)
    return tmp_path


def render(output="results/tables/names"):
    job = {"make": TABLE, "inputs": {"file": NAMES}, "outputs": {"stem": output}, "settings": {"constraint": "names"}}
    jobs.do(job | {"code": code_version(MODULE)})
    return provenance.read(f"{output}.provenance.json")


def why(capsys, *arguments):
    capsys.readouterr()
    status = main(["why", *arguments])
    said = capsys.readouterr()
    return said.out if status == 0 else said.err


def test_a_record_holds_what_a_table_was_made_of(place):
    record = render()
    assert record["command"] == TABLE
    assert record["parameters"] == {"constraint": "names"}
    assert set(record["inputs"]) == {NAMES}
    found = record["inputs"][NAMES]
    assert re.fullmatch("[0-9a-f]{16}", found["sha256"])
    assert found["size"] == (place / NAMES).stat().st_size
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
        assert f"made by {TABLE}" in why(capsys, f"results/{name}")


def test_a_figure_s_name_may_hold_points(tmp_path):
    figure, _ = style.figure_and_axes(1, 1, (2, 2))
    style.finish(figure, pd.DataFrame({"a": [1.0]}), tmp_path / "gpt-3.5_slope")
    names = {f"gpt-3.5_slope.{form}" for form in ("pdf", "png", "svg", "csv")}
    assert {path.name for path in tmp_path.iterdir()} == names


def test_the_same_inputs_give_the_same_bytes(place):
    render()
    first = (place / "results/tables/names.provenance.json").read_bytes()
    render()
    assert (place / "results/tables/names.provenance.json").read_bytes() == first


def test_the_command_line_leaves_a_record_too(place, capsys):
    assert main(["render", "comperdial/constraints", f"file={NAMES}", "constraint=names", "--output", "mine.html"]) == 0
    assert set(provenance.read("mine.provenance.json")["outputs"]) == {".csv", ".html", ".md", ".tex"}
    assert "code: not recorded" in why(capsys, "mine")


def test_a_changed_input_has_another_hash(place):
    before = render()
    (place / NAMES).open("a").write("2018,0,female,Zoe,paper\n")
    assert before["inputs"] != render()["inputs"]


def test_a_missing_input_is_named(place):
    with pytest.raises(FileError, match=r"nowhere\.csv: no such file"):
        provenance.write("names", TABLE, {}, ["nowhere.csv"], {})


def test_there_is_no_path_of_the_machine_in_a_record(place, root):
    make("studies.comperdial.tables:table_07", place / "table_07", {"benchmarks": root / BENCHMARKS})
    text = (place / "table_07.provenance.json").read_text()
    assert set(json.loads(text)["inputs"]) == {"benchmarks.csv"}
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
    record = provenance.read(provenance.write("made", "x", {"seed": 5, "resamples": 10}, files, {}))
    assert record["signatures"] == {"F1": ["f1|v:2"], "f1": ["f1|v:1"], "judge": ["judge|model:m@12ab|seed:7|v:1"]}
    assert record["tests"] == ["paired|seed:3"]
    assert record["seeds"] == {"seed": [5], "signatures": [3, 7]}
    assert record["parameters"] == {"resamples": 10, "seed": 5}


@pytest.mark.parametrize("form", ["names", "names.csv", "names.html", "names.provenance.json"])
def test_why_tells_what_a_table_was_made_of_from_any_form(place, capsys, form):
    render()
    said = why(capsys, f"results/tables/{form}")
    assert said.startswith("results/tables/names\nmade by studies.comperdial.tables:constraints\n")
    assert "  same      data/personas/names.csv" in said
    assert "inputs (the same now)" in said
    assert "  numpy " in said


def test_why_tells_what_is_no_longer_so(place, capsys):
    render()
    (place / NAMES).open("a").write("2018,0,female,Zoe,paper\n")
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
    provenance.write("results/page.html", "notebook", {}, ["results/tables/names.csv"], {})
    assert f"made by {TABLE}; its inputs: the same now" in why(capsys, "results/page.html")
    (place / NAMES).open("a").write("2018,0,female,Zoe,paper\n")
    assert "its inputs: 1 changed; its code: the same now" in why(capsys, "results/page.html")


def test_why_shows_the_signatures_of_the_table_and_says_simulated(place, capsys):
    pd.DataFrame({"metric": ["f1", "bleu"], "signature": ["f1|v:1", "bleu|v:1"]}).to_csv(place / "all.csv")
    pd.DataFrame({"metric": ["f1"]}).to_csv(place / "made.csv")
    parameters = {"source": "simulated", "long": dict.fromkeys("abcdef", 1)}
    provenance.write("made", "x", parameters, ["all.csv"], {})
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
    assert "`snakemake` and `comperdial render` make tables with their records" in said
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
