import json
from contextlib import nullcontext

import pandas as pd
import pytest

from comperdial import schema
from comperdial.cli import main
from comperdial.core.errors import ComperdialError
from comperdial.report import readme
from comperdial.report.summary import summarise
from comperdial.report.tables import READING, correlation_document
from comperdial.studies.usr.frame import usr_document, usr_frame
from making import make

SOURCES = pd.DataFrame({"source": ["p"], "short": ["Paper"], "citation": ["A paper"], "read_from": ["Table 1"]})
ROWS = """rows:
  - {label: M, metric: m, output: o, reported: [p, M]}
  - {label: N, metric: n, output: o}
  - {label: Big, reported: [p, Big], not_run: needs weights}
"""


def correlations(**changes):
    row = {"dataset": "d", "level": "turn", "against": "turn", "target": "Overall", "metric": "m", "output": "o"}
    row |= {"grouping": "pooled", "coefficient": "pearson", "value": 0.25, "low": 0.1, "high": 0.4, "p": 0.2, "n": 90}
    row |= {"loso_value": None, "loso_system": None}
    return pd.DataFrame([row | {"rank": 2, "coverage": 0.9, "cut": 0, "lacking": None, "signature": "m|v:1"} | changes])


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
    assert rows["M"][1:5] == ["Paper", "0.250* [0.10, 0.40] #2", "0.300", "-0.050"]
    assert rows["Big"][2] == "not run"
    notes = "\n".join(document.notes)
    for part in (
        "M: 90.0% of the rated responses of d have a score",
        "No asterisks are known of the values by Paper",
        "not run: N: no lexicon",
        "not run: Big: needs weights",
    ):
        assert part in notes
    assert "(Overall)" in document.caption


CUT = "the input of {} responses of {} did not fit the model and was cut"


def test_a_note_says_whose_inputs_were_cut_and_how_many(tmp_path):
    both = pd.concat([correlations(cut=3, coverage=1.0), correlations(metric="n", dataset="e", cut=12, coverage=1.0)])
    found = frame(tmp_path, correlated=both, datasets=["d", "e"], not_run={})
    cells = found.dropna(subset="ours").set_index(["label", "dataset"])
    assert cells["cut"].to_dict() == {("M", "d"): 3, ("N", "e"): 12}
    document = usr_document(found, {}, SOURCES)
    notes = [note for note in document.notes if "cut" in note]
    assert notes == [f"M: {CUT.format(3, 'd')}", f"N: {CUT.format(12, 'e')}"]
    assert document.tidy["cut"].dropna().tolist() == [3, 12]
    whole = usr_document(frame(tmp_path, correlated=correlations()), {}, SOURCES)
    assert not [note for note in whole.notes if "cut" in note]


def test_the_table_of_all_metrics_names_outputs_of_a_part_and_cut_inputs_once_each():
    both = [
        correlations(coverage=1.0, coefficient=coefficient, level=level, output=output, cut=cut)
        for level in ("turn", "system")
        for coefficient in ("pearson", "spearman", "kendall")
        for output, cut in (("o", 2), ("p", 0))
    ]
    partial = [part.assign(metric="n", cut=0, coverage=0.25, signature="n|v:1") for part in both]
    document = correlation_document(pd.concat([*both, *partial]), "Set D", "Overall", {"z": "no model"})
    assert document.notes[: len(READING)] == list(READING)
    assert document.notes[len(READING) :] == [
        "No system is left out at turn level: fewer than three systems, or it is not known which is which",
        "No system is left out at system level: fewer than five systems",
        "n o: 25.0% of the rated responses of d have a score",
        "n p: 25.0% of the rated responses of d have a score",
        f"m o: {CUT.format(2, 'd')}",
        "not run: z: no model",
        "m is m|v:1",
        "n is n|v:1",
    ]
    for section in document.sections:
        assert [row[0] for row in section.rows] == ["m o", "m p", "n o", "n p"]
    assert document.tidy.groupby(["metric", "output"])["cut"].first().tolist() == [2, 0, 0, 0]


def test_the_table_of_all_metrics_has_each_pair_of_levels_with_interval_and_rank():
    pairs = [("dialogue", "dialogue"), ("system", "dialogue"), ("system", "turn"), ("turn", "turn")]
    parts = [correlations(level=level, against=against) for level, against in pairs]
    grouped = [correlations(grouping="item", p=None, rank=None), correlations(level="system", coefficient="spa")]
    lacking = correlations(level="system", output="p", value=float("nan"), low=None, high=None, p=None, rank=None)
    document = correlation_document(pd.concat([*parts, *grouped, lacking]), "Set D", "Overall", {}, suffix="MADE UP.")
    assert [section.title for section in document.sections] == [
        "Turn level, ratings of turns",
        "Dialogue level, ratings of dialogues",
        "System level, ratings of turns",
        "System level, ratings of dialogues",
    ]
    assert document.sections[0].rows == [["m o", "0.250* [0.10, 0.40] #2", "–", "–"]]
    assert document.sections[2].rows[1] == ["m p", "–", "–", "–"]
    assert len(document.tidy) == len(pairs) + 1, "no correlation by item, no share of pairs"
    assert document.caption.endswith("MADE UP.")
    assert "human" not in document.caption


def test_ratings_of_dialogues_and_correlations_by_item_leave_the_usr_table_and_the_summary_alone(tmp_path):
    others = [correlations(against="dialogue", value=0.9), correlations(grouping="item", value=0.8)]
    both = pd.concat([correlations(), *others, correlations(level="system", coefficient="acc_eq", value=0.7)])
    pd.testing.assert_frame_equal(frame(tmp_path, correlated=both), frame(tmp_path))
    summarise(pd.concat([both, correlations(level="dialogue", against="dialogue", value=0.5)]), "Overall", tmp_path)
    assert json.loads((tmp_path / "metrics.json").read_text()) == {
        "d": {"dialogue": {"m": {"o": {"pearson": 0.5}}}, "turn": {"m": {"o": {"pearson": 0.25}}}}
    }


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


def test_recorded_scores_are_of_one_data_set_and_the_other_s_cells_say_so(tmp_path):
    both = pd.concat([correlations(metric="r"), correlations(dataset="e")])
    rows = "rows:\n  - {label: R, metric: r, output: o, reported: [p, M]}\n  - {label: M, metric: m, output: o}\n"
    options = {"datasets": ["d", "e"], "not_run": {}, "recorded": {"r": "d"}}
    published = pd.concat([reported(), reported(dataset="e")])
    found = frame(tmp_path, rows=rows, correlated=both, published=published, **options)
    assert found.groupby("label")["recorded"].unique().map(list).to_dict() == {"M": [False], "R": [True]}
    document = usr_document(found, {}, SOURCES)
    cells = {row[0]: row for row in document.sections[0].rows}
    assert cells["R"][1:3] == ["Paper", "0.250* [0.10, 0.40] #2"]
    assert cells["R"][8:10] == ["not recorded", "0.300"]
    assert (cells["M"][2], cells["M"][8]) == ("not run", "0.250* [0.10, 0.40] #2")
    notes = [note for note in document.notes if note.startswith("not r")]
    assert notes == ["not recorded: R: there are recorded scores of d only", "not run: M: no scores of d"]


def test_recorded_scores_of_a_data_set_that_was_not_run(tmp_path):
    rows = "rows:\n  - {label: R, metric: r, output: o}\n  - {label: M, metric: m, output: o}\n"
    document = usr_document(frame(tmp_path, rows=rows, recorded={"r": "e"}), {}, SOURCES)
    assert [row[0] for row in document.sections[0].rows] == ["M"]
    assert "not recorded: R: there are recorded scores of e only" in document.notes


def test_the_page_s_table_has_a_plain_dash_where_there_are_no_scores(tmp_path):
    both = pd.concat([correlations(metric="r"), correlations(dataset="e")])
    rows = "rows:\n  - {label: R, metric: r, output: o}\n"
    found = frame(tmp_path, rows=rows, correlated=both, datasets=["d", "e"], recorded={"r": "d"})
    path = tmp_path / "usr.csv"
    found.to_csv(path, index=False)
    page = tmp_path / "README.md"
    page.write_text("\n".join(readme.MARKS))
    readme.update(page, pd.read_csv(path), {})
    assert page.read_text().splitlines()[3] == r"| R | 0.250\* | – | – | – |"


COVERAGE = "metric,dimension,target,items,answers,unread,why,n,pearson,kendall,owners_pearson,owners_kendall"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (f"{COVERAGE}\na,b,c,300,6000,1,1 empty,300,.5,,.5,\n", None),
        ("metric\na\n", "no column dimension"),
        (f"{COVERAGE}\na,b,c,,6000,1,,300,.5,,.5,\n", "line 2: column 'items' holds ''"),
        (f"{COVERAGE}\na,b,c,1,6000,1,,300,high,,.5,\n", "column 'pearson' holds 'high'"),
        ("", "the file is empty"),
    ],
)
def test_counts_of_recorded_answers_are_checked(tmp_path, root, content, message):
    (tmp_path / "in.csv").write_text(content)
    reported = root / "src/comperdial/judges/recorded/chiang2023_reported.csv"
    inputs = {"coverage": [tmp_path / "in.csv"], "reported": reported}
    with pytest.raises(ComperdialError, match=message) if message else nullcontext():
        make("report.of_dataset:recorded_judges", tmp_path / "made", inputs, title="T", prompts={}, models={})


def test_the_table_of_a_page_is_checked(tmp_path, root, capsys):
    (tmp_path / "in.csv").write_text("level,label\n")
    page = tmp_path / "README.md"
    page.write_text("\n".join(readme.MARKS))
    arguments = ["readme", tmp_path / "in.csv", "--output", page, "--catalogue", root / "data/sources.yaml"]
    assert main([*map(str, arguments)]) == 1
    assert "no column dataset" in capsys.readouterr().err


def test_agreement_of_no_ratings_is_an_error(tmp_path, root):
    schema.write(tmp_path / "ratings.parquet", schema.empty("ratings"), "ratings")
    inputs = {"ratings": [tmp_path / "ratings.parquet"], "reported": root / "src/comperdial/studies/usr/agreement.csv"}
    with pytest.raises(ComperdialError, match=r"ratings\.parquet: no ratings; expected"):
        make("studies.usr.tables:usr_agreement", tmp_path / "a", inputs, titles={})


@pytest.mark.parametrize(
    ("sources", "message"), [(SOURCES[:0], "no source 'p'"), (pd.concat([SOURCES, SOURCES]), "a source stands twice")]
)
def test_each_source_of_a_number_is_cited_once(tmp_path, sources, message):
    with pytest.raises(ComperdialError, match=f"sources.csv: {message}"):
        usr_document(frame(tmp_path), {}, sources)
