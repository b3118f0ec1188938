"""Tables for readers: the four forms of one table."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from comperdial.report import render
from comperdial.report.render import Section, Table

SPECIAL = "& % _ # ~ ^ < > {braces} − – ‡ “quotes” \"plain\" 'single' $5 \\ | … é τ"


def table(rows: int = 2) -> Table:
    records = pd.DataFrame(
        [
            {"label": f"metric {at}", "by": SPECIAL, "set": of, "value": at / 10, "p": 0.0012345}
            for at in range(rows)
            for of in ("One & two", "Three")
        ]
    )
    cells = {
        "ours": lambda cell: f"{cell['value']:.3f}* #{cell['value'] * 10 + 1:.0f}",
        "reported": lambda cell: render.number(None),
    }
    frame = render.spread(records, {"label": "Metric", "by": "Reported by"}, "set", cells)
    plain = pd.DataFrame({("", "System"): ["bot #1", "bot #2"], ("Rating", "mean"): ["1.0", None]})
    flat = pd.DataFrame({"Name": ["a*b"], "Count": ["12"]})
    sections = [Section("Turn level", frame), Section("50 % <b>", plain), Section("Flat", flat)]
    return Table("A title", SPECIAL, records, sections, [SPECIAL, "a note"])


def test_markdown_has_one_header_row_bold_for_the_best_and_a_dash_for_what_is_missing() -> None:
    lines = render.markdown(table()).splitlines()
    assert lines[4:8] == [
        "## Turn level",
        "",
        "| Metric | Reported by | One & two ours | One & two reported | Three ours | Three reported |",
        "|:--|:--|--:|--:|--:|--:|",
    ]
    assert lines[8].endswith(r"| **0.000\* #1** | – | **0.000\* #1** | – |")
    assert lines[9].endswith(r"| 0.100\* #2 | – | 0.100\* #2 | – |")
    assert r"| a\*b | 12 |" in lines and "| bot #1 | 1.0 |" in lines and lines[-1] == "- a note"
    # Bold says nothing in a column of one rank.
    assert "**" not in render.markdown(table(1))


def test_csv_has_the_tidy_frame_to_the_digits_that_hold() -> None:
    assert render.csv(table(1)).splitlines()[1].endswith("One & two,0,0.0012")
    one = Table("t", render.SIMULATED, pd.DataFrame({"x": [0.12345678], "y_difference": [0.00000012]}), [])
    assert render.csv(one) == "x,y_difference,simulated\n0.123457,0,True\n"


def test_html_is_escaped_and_aligned() -> None:
    page = render.page(table())
    assert "<h1>A title</h1>\n<p>&amp; % _ # ~ ^ &lt; &gt;" in page
    assert "<caption>50 % &lt;b&gt;</caption>" in page and "<td><b>0.000* #1</b></td>" in page
    assert '<tr><th></th><th></th><th colspan="2">One &amp; two</th>' in page
    assert '<tr><th class="words">Name</th><th>Count</th></tr>' in page and '<td class="words">a*b</td>' in page


def test_the_answer_comes_first_and_what_was_not_run_is_folded() -> None:
    rows = pd.DataFrame({"Metric": ["GPT"], "reported": ["0.7"]})
    section = Section("Turns", pd.DataFrame({"Metric": ["F1"], "ours": ["0.3"]}), rows)
    lost = {"A": "model 'a' is not present", "B": "model 'b' is not present"}
    one = Table("t", "A caption.", rows, [section], ["a note"], "F1 is best.", lost)
    line = "- Not run: 2 metrics and judges: 2 (their model is not on this machine)"
    for form in (render.markdown(one), render.page(one), render.text(one), render.latex(one, "x")):
        assert form.index("F1 is best.") < form.index("A caption.") < form.index("0.3") and line[2:] in form
    for form, start in ((render.markdown(one), "- "), (render.page(one), "<li>")):
        assert "<summary>1 more with reported values, not run here</summary>" in form
        assert form.index("<summary>What was not run</summary>") < form.index(f"{start}A: model 'a' is not present")
    assert "GPT" not in render.text(one) + render.latex(one, "x")


def test_text_is_aligned() -> None:
    lines = render.text(table()).splitlines()
    at = lines.index("50 % <b>")
    assert lines[at + 2 : at + 7] == [
        "       Rating",
        "System   mean",
        "------   ----",
        "bot #1    1.0",
        "bot #2      –",
    ]


def test_what_cannot_be_shown_says_why(tmp_path: Path) -> None:
    render.write(render.nothing("USR", "no ratings"), tmp_path / "usr")
    assert (tmp_path / "usr.csv").read_text() == "note\nNothing to show: no ratings\n"
    assert {path.suffix for path in tmp_path.iterdir()} == {".csv", ".md", ".tex", ".html"}


def test_latex_compiles(tmp_path: Path) -> None:
    if shutil.which("pdflatex") is None:
        pytest.skip("there is no LaTeX here")
    for name, one in {"short": table(), "long": table(120)}.items():
        render.write(one, tmp_path / name)
    head = r"\documentclass{article}\usepackage{booktabs,graphicx,longtable}\begin{document}"
    (tmp_path / "all.tex").write_text(rf"{head}\input{{short}}\input{{long}}\end{{document}}")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
