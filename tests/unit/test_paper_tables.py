"""Tables of statistics of a data set: documents made of small frames."""

import re

import pandas as pd

from comperdial.report import comparison_tables


def test_a_pair_without_power_stays_in_the_wide_frame():
    of = {"level": "turn", "against": "turn", "coefficient": "pearson", "varied": "systems", "difference": 0.1}
    rows = [
        of | {"a": "x", "b": b, "size": size, "power": power}
        for b, power in (("y", 0.5), ("z", float("nan")))
        for size in (2, 4)
    ]
    frame = pd.DataFrame(rows).astype({"a": "category", "b": "category", "level": "category"})
    found = comparison_tables.wide_power(frame)
    assert found[["a", "b"]].to_numpy().tolist() == [["x", "y"], ["x", "z"]]
    assert found["power_4"].isna().tolist() == [False, True]
    assert comparison_tables.wide_power(frame.iloc[:0]).empty


def test_the_page_lists_each_table_once(root):
    rows = re.findall(r"^\| (\d+) [^|]+\| `table_(\d\d)` \|", (root / "docs/paper-tables.md").read_text(), flags=re.M)
    assert [(int(row[0]), int(row[1])) for row in rows] == [(number, number) for number in range(1, 17)]


WHAT = {"dataset": "d", "level": "turn", "against": "turn", "target": "Overall", "coefficient": "spearman"}
WHAT |= {"grouping": "pooled"}


def pair(a, b, difference, adjusted, **changes):
    names = {"metric_a": a, "output_a": "o", "metric_b": b, "output_b": "o", "difference": difference}
    tests = {
        "p": adjusted / 2,
        "p_adjusted": adjusted,
        "p_fdr": adjusted,
        "p_wmt": 0.15,
        "p_perm_both": 0.3,
        "p_williams": 0.01,
    }
    return WHAT | names | tests | {"n": 9, "test": "a test"} | changes


def test_the_matrix_of_comparisons():
    pairs = [pair("a", "b", 0.1, 0.01), pair("a", "c", 0.2, 0.02), pair("b", "c", 0.1, 0.06)]
    lacking = pair("a", "e", 0.3, float("nan"), p=None, p_perm_both=None, p_williams=None)
    found = comparison_tables.comparisons_document(pd.DataFrame([*pairs, lacking]), "D", "Overall", suffix="MADE UP.")
    counts, matrix = found.sections
    assert counts.rows == [["Turn level, ratings of turns, Spearman", "4", "3", "2", "2", "0", "0", "3"]]
    assert matrix.rows == [
        ["1", "a o", "2", "0", "0", "", "+", "+", "–"],
        ["2", "b o", "0", "1", "1", "−", "", "o", "–"],
        ["3", "c o", "0", "1", "1", "−", "o", "", "–"],
        ["4", "e o", "0", "0", "0", "–", "–", "–", ""],
    ]
    assert any(note.startswith("Our test: a test;") for note in found.notes)
    assert found.caption.endswith("MADE UP.")


def test_power_says_from_which_size_on_it_is_enough():
    names = {"metric_a": "a", "output_a": "o", "output_b": "o"}
    rows = [
        WHAT | names | {"varied": "dialogues", "size": size, "metric_b": b, "difference": difference, "power": power}
        for b, difference, powers in (("b", 0.03, (0.2, 0.85)), ("c", 0.005, (0.05, 0.1)))
        for size, power in zip((5, 15), powers, strict=True)
    ]
    found = comparison_tables.power_document(pd.DataFrame(rows), "D", "Overall")
    by_difference, best = found.sections
    assert by_difference.rows == [["0 to 0.01", "1", "0.05", "0.10"], ["0.02 to 0.05", "1", "0.20", "0.85"]]
    assert best.rows == [["c o", "0.005", "0.05", "0.10", "–"], ["b o", "0.030", "0.20", "0.85", "15"]]
    assert found.tidy[["b", "power_5", "power_15"]].to_numpy().tolist() == [["b o", 0.2, 0.85], ["c o", 0.05, 0.1]]


def test_curves_show_agreement_and_the_width_of_the_band():
    rows = [
        WHAT
        | {"varied": "systems", "size": size, "metric": metric, "output": "o", "value": 0.5}
        | {"low": 0.5 - width, "high": 0.5 + width, "agreement": 0.25 * size, "repeats": 7}
        for size in (2, 4)
        for metric, width in (("a", 0.1), ("b", 0.2), ("c", 0.4))
    ]
    found = comparison_tables.curves_document(pd.DataFrame(rows), "D", "Overall")
    assert found.sections[0].rows == [
        ["Turn level, ratings of turns, Spearman", "0.50", "1.00", "0.40", "0.40"],
    ]
    assert found.notes[-1] == "Parts drawn of each size: 7"


def test_comparisons_in_one_row_a_pair():
    what = {"level": "turn", "against": "turn", "p": 0.01234}
    rows = [
        what | {"coefficient": "spearman", "a": "y", "b": "x", "difference": 0.2},
        what | {"coefficient": "pearson", "a": "x", "b": "y", "difference": 0.1},
        what | {"coefficient": "pearson", "a": "x", "b": "z", "difference": 0.3},
    ]
    found = comparison_tables.wide_comparisons(pd.DataFrame(rows), ["p"], ["pearson", "spearman"])
    assert found[["a", "b"]].to_numpy().tolist() == [["x", "y"], ["x", "z"]]
    assert found["spearman_difference"].tolist()[0] == -0.2
    assert found["spearman_difference"].isna().tolist() == [False, True]
    assert found["pearson_p"].tolist() == [0.012, 0.012]
    assert comparison_tables.wide_comparisons(pd.DataFrame(rows).iloc[:0], ["p"], ["pearson"]).empty
