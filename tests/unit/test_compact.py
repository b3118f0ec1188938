"""Small SVG files: the same points, letters and looks as matplotlib's."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import matplotlib as mpl
import pandas as pd
import pytest

from comperdial.report import compact
from comperdial.report.svg_paths import bounds, joined, short, shortened, steps
from comperdial.report.wide import wide_comparisons

mpl.use("agg")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("M 0 10 L 20 10 L 20 30 L 0 30 L 0 10 z", "M0 10h20v20h-20z"),
        ("M 1.04 2.04 L 1.08 2.08", "M1 2l.1 .1"),
        ("M 0 0 Q 1 2 3 4 C 1 1 2 2 -5.5 0 M 7 7 L 8 9", "M0 0q1 2 3 4c-2-3-1-2-8.5-4m12.5 7l1 2"),
        ("M 0 0 A 1 1 0 0 0 2 2", "M 0 0 A 1 1 0 0 0 2 2"),
    ],
)  # fmt: skip
def test_a_path_in_few_characters(path, expected):
    assert shortened(path, 1) == expected
    assert shortened(expected, 1) == expected


def test_rounding_does_not_add_up():
    points = [(n * 0.34, n * 0.17) for n in range(200)]
    path = "M" + "L".join(f"{x} {y} " for x, y in points)
    found = [point for _, point in steps(shortened(path, 1)) or []]
    # A point that falls on the one before is left out.
    assert found[-1] == pytest.approx(points[-1], abs=0.051)
    assert bounds(path) == pytest.approx(bounds(shortened(path, 1)), abs=0.051)


def test_numbers_and_letters():
    assert [short(value, 1) for value in (0.04, -0.04, -0.5, 12.0, 100.0)] == ["0", "0", "-.5", "12", "100"]
    assert joined(["M", "1", "-2", "l", ".5", "3"]) == "M1-2l.5 3"


def drawn():
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots()
    ax.plot([0, 1, 2], [0, 1, 0], marker="o", gid="line", color="#aabbcc")
    ax.set_xlim(0, 1.5)
    ax.set_title("again and again and again", gid="heading")
    return figure


def test_a_file_of_its_own_has_every_letter_once_and_short_names(tmp_path):
    from io import StringIO

    texts = []
    for _ in range(2):
        with mpl.rc_context({"svg.hashsalt": "x"}):
            file = StringIO()
            drawn().savefig(file, format="svg", metadata={"Date": None})
        texts.append(file.getvalue())
    plain, made = texts[0], compact.svg(texts[0], alone=True)
    assert made == compact.svg(texts[1], alone=True)
    assert len(made) < 0.6 * len(plain)
    root = ElementTree.fromstring(made)
    named = {element.get("id"): element for element in root.iter() if element.get("id")}
    assert {"line", "heading"} <= set(named)
    referred = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', made))
    assert {one or other for one, other in referred} <= set(named)

    def letters(element):
        """How many glyphs are drawn below an element, those of words that are kept once counted each time."""
        if element.tag == f"{SVG}use":
            return letters(named[element.get("href")[1:]])
        if element.tag == f"{SVG}path":
            return 1
        return sum(letters(child) for child in element)

    heading = named["heading"]
    assert letters(heading) == len("againandagainandagain")
    # The line leaves the axes: it must stay cut.
    assert "clip-path" in made


def test_comparisons_in_one_row_a_pair():
    what = {"level": "turn", "against": "turn", "p": 0.01234}
    rows = [
        what | {"coefficient": "spearman", "a": "y", "b": "x", "difference": 0.2},
        what | {"coefficient": "pearson", "a": "x", "b": "y", "difference": 0.1},
        what | {"coefficient": "pearson", "a": "x", "b": "z", "difference": 0.3},
    ]
    found = wide_comparisons(pd.DataFrame(rows), ["p"], ["pearson", "spearman"])
    assert found[["a", "b"]].to_numpy().tolist() == [["x", "y"], ["x", "z"]]
    assert found["spearman_difference"].tolist()[0] == -0.2
    assert found["spearman_difference"].isna().tolist() == [False, True]
    assert found["pearson_p"].tolist() == [0.012, 0.012]
    assert wide_comparisons(pd.DataFrame(rows).iloc[:0], ["p"], ["pearson"]).empty
