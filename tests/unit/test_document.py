import dataclasses
import shutil
import subprocess

import pandas as pd
import pytest

from comperdial.report import document
from comperdial.report.document import Document, Section, html_page, latex, markdown, number, write

DOCUMENT = Document(
    title="A <title>",
    caption="50% of a & b_c",
    sections=[Section("Part", [("", "Metric"), ("Set A", "P"), ("Set A", "S")], [["x|y", "0.1*", "–"]])],
    tidy=pd.DataFrame({"a": [1 / 3], "b": [None]}),
    notes=["a note with 100% & more"],
)


@pytest.mark.parametrize(
    ("value", "options", "text"),
    [
        (0.12345, {}, "0.123"),
        (-0.0001, {}, "0.000"),
        (-0.0001, {"sign": True}, "0.000"),
        (0.0123, {"sign": True}, "+0.012"),
        (-0.5, {"sign": True}, "-0.500"),
        (None, {}, "–"),
        (float("nan"), {"sign": True}, "–"),
        (1, {"digits": 1}, "1.0"),
    ],
)
def test_numbers(value, options, text):
    assert number(value, **options) == text


def test_a_csv_has_the_digits_that_hold_on_any_processor(tmp_path):
    tidy = pd.DataFrame(
        {"ours": [0.12345678], "p": [1.83917e-24], "spearman_p": [0.0499612], "difference": [4.57693e-05]}
    )
    # What another processor's arithmetic makes of them.
    other = pd.DataFrame(
        {"ours": [0.12345682], "p": [1.83812e-24], "spearman_p": [0.0499608], "difference": [4.58e-05]}
    )
    for name, frame in (("a", tidy), ("b", other)):
        write(dataclasses.replace(DOCUMENT, tidy=frame), tmp_path / name)
    assert (tmp_path / "a.csv").read_text() == "ours,p,spearman_p,difference\n0.123457,1.8e-24,0.05,4.6e-05\n"
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()


def test_markdown():
    assert markdown(DOCUMENT) == (
        "# A <title>\n\n50% of a & b_c\n\n## Part\n\n| Metric | Set A P | Set A S |\n|:--|--:|--:|\n"
        "| x\\|y | 0.1\\* | – |\n\n- a note with 100% & more\n"
    )


def test_latex_is_escaped_and_uses_booktabs():
    text = latex(DOCUMENT, label="tab:x")
    assert r"50\% of a \& b\_c" in text
    assert r"\multicolumn{2}{c}{Set A}" in text
    assert r"\cmidrule(lr){2-3}" in text
    assert text.count("rule") >= 4
    assert text.count("{") == text.count("}")


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX on this machine")
def test_latex_compiles(tmp_path):
    body = latex(DOCUMENT, label="tab:x")
    (tmp_path / "t.tex").write_text(
        "\\documentclass{article}\\usepackage{booktabs,graphicx}\\begin{document}\n" + body + "\\end{document}\n"
    )
    subprocess.run(["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"], cwd=tmp_path, check=True)


def test_html_is_escaped_and_offline():
    page = html_page(DOCUMENT)
    assert "A &lt;title&gt;" in page
    assert "<script" not in page
    assert "http" not in page
    assert '<th colspan="2" class="group">Set A</th>' in page


def test_four_forms_of_one_content(tmp_path):
    write(DOCUMENT, tmp_path / "t")
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".csv", ".html", ".md", ".tex"]
    assert (tmp_path / "t.csv").read_text() == "a,b\n0.333333,\n"


def test_a_pivot_has_a_row_for_each_key_and_a_dash_where_there_is_no_record():
    frame = pd.DataFrame(
        [("a", "d", 0.5, 1200), ("a", "e", None, 3), ("b", "e", -0.25, None)], columns=["metric", "set", "value", "n"]
    )
    columns = [document.Column("Pearson", name, document.value_of("value"), (name,)) for name in "de"]
    columns.append(document.Column("Count", "n", document.count_of("n"), ("d",)))
    cells = document.records_by(frame, ["metric", "set"])
    rows = {("b",): ["B"], ("c",): ["C"], ("a",): ["A"]}
    made = document.pivot("Title", cells, rows, ["Metric"], columns, first=[["", "x", "y", "z"]], empty="–")
    assert made.columns == [("", "Metric"), ("Pearson", "d"), ("Pearson", "e"), ("Count", "n")]
    assert made.rows == [["", "x", "y", "z"], ["B", "–", "-0.250", "–"], ["A", "0.500", "–", "1,200"]]
    assert len(document.pivot("Title", cells, rows, ["Metric"], columns).rows) == 3
