import pandas as pd
import pytest

from comperdial.errors import ComperdialError
from comperdial.report.usr import usr_document, usr_frame

SOURCES = pd.DataFrame({"source": ["p"], "short": ["Paper"], "citation": ["A paper"], "read_from": ["Table 1"]})
ROWS = """rows:
  - {label: M, metric: m, output: o, reported: [p, M]}
  - {label: N, metric: n, output: o}
  - {label: Big, reported: [p, Big], not_run: needs weights}
"""


def correlations(**changes):
    row = {"dataset": "d", "level": "turn", "target": "Overall", "metric": "m", "output": "o", "coefficient": "pearson"}
    return pd.DataFrame([row | {"value": 0.25, "p": 0.2, "n": 9, "coverage": 0.9, "signature": "m|v:1"} | changes])


def reported(**changes):
    row = {
        "source": "p",
        "dataset": "d",
        "level": "turn",
        "target": "Overall",
        "coefficient": "pearson",
        "starred": None,
    }
    return pd.DataFrame([row | {"metric": m, "value": v} | changes for m, v in (("M", 0.3), ("Big", 0.5))])


def frame(tmp_path, rows=ROWS, correlated=None, published=None, **options):
    path = tmp_path / "rows.yaml"
    path.write_text(rows)
    given = {"datasets": ["d"], "target": "Overall", "not_run": {"n": "no lexicon"}} | options
    return usr_frame(
        correlations() if correlated is None else correlated,
        reported() if published is None else published,
        path,
        **given,
    )


def test_ours_beside_theirs(tmp_path):
    found = frame(tmp_path).query("level == 'turn' and coefficient == 'pearson'").set_index("label")
    assert found.loc["M", ["ours", "reported", "difference"]].tolist() == pytest.approx([0.25, 0.3, -0.05])
    assert found.loc["N", "not_run"] == "no lexicon"
    assert found.loc["Big", "not_run"] == "needs weights"
    assert pd.isna(found.loc["Big", "ours"])


def test_the_document_names_what_is_partial_unmarked_or_not_run(tmp_path):
    document = usr_document(frame(tmp_path), {"d": "Set D"}, SOURCES)
    rows = {row[0]: row for row in document.sections[0].rows}
    assert rows["M"][1:5] == ["Paper", "0.250*", "0.300", "-0.050"]
    assert rows["Big"][2] == "not run"
    notes = "\n".join(document.notes)
    for part in (
        "M: 90.0% of the rated responses of d have a score",
        "No asterisks are known of the values by Paper",
        "N: not run: no lexicon",
        "Big: not run: needs weights",
    ):
        assert part in notes
    assert "(Overall)" in document.caption


def test_another_dimension_is_not_held_against_overall(tmp_path):
    found = frame(tmp_path, correlated=correlations(target="Engaging"), target="Engaging")
    assert found["reported"].isna().all()


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ("rows: 3\n", {}, "no list `rows`"),
        ("rows:\n  - {metric: m, output: o}\n", {}, "row 1: the row is"),
        ("rows:\n  - {label: M, metric: m}\n", {}, "row 'M' is half defined"),
        ("rows:\n  - {label: M, metric: m, output: o, colour: red}\n", {}, "row 1: the row is"),
        (ROWS, {"datasets": ["e"]}, "unknown dataset 'e'"),
        (ROWS, {"target": "Overal"}, "Did you mean 'Overall'"),
    ],
)
def test_wrong_rows_and_names(tmp_path, rows, options, message):
    with pytest.raises(ComperdialError, match=message):
        frame(tmp_path, rows=rows, **options)


def test_an_output_that_the_metric_does_not_have(tmp_path):
    found = frame(tmp_path, rows="rows:\n  - {label: M, metric: m, output: q}\n")
    assert set(found["not_run"]) == {"metric 'm' has no output 'q'"}
