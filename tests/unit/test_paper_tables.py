"""The paper's numbered tables: reported values as printed, rows as data, documents made of small frames."""

import os
import re
from pathlib import Path

import pandas as pd
import pytest
import yaml

from comperdial import schema
from comperdial.config.registry import completed
from comperdial.core.errors import ComperdialError
from comperdial.core.files import read_table
from comperdial.jobs.plan import ABOUT
from comperdial.metrics import create
from comperdial.report import comparison_tables, document
from comperdial.report.inputs import REPORTED_COLUMNS, read_reported
from comperdial.studies.comperdial.numbered import CEILING, expand, paper_document, paper_frame, read_layout
from comperdial.studies.comperdial.short import benchmarks_short, example_short, outputs_document
from making import make

NUMBERS = ("03", "04", "05", "06", "15", "16")
STUDIES = Path("src/comperdial/studies")
STUDY = STUDIES / "comperdial"
ROWS = STUDY / "rows.yaml"
JUDGES = {
    "v_gpt-4": {"variant": "v", "judge": "gpt-4", "label": "V by gpt-4", "output": "o", "main": True, "once": False},
    "v-once_gpt-4": {"variant": "v", "judge": "gpt-4", "label": "V", "output": "o", "main": False, "once": True},
    "v_rules": {"variant": "v", "judge": "rules", "label": "V by rules", "output": "o", "main": True, "once": True},
    "heard": {"judge": "heard", "label": "heard"},
}
SMALL = """
source: p
reported: reported.csv
judges: {gpt-3.5: GPT-3.5, gpt-4: GPT-4}
tables:
  "04":
    title: A table
    caption: What it is.
    levels: {turn: turn, system: turn}
    coefficients: [pearson]
    recorded: true
    sections:
      - section: Baselines
        rows:
          - {label: M, metric: m, output: o, reported: M, note: a note on M}
          - {label: Big, metric: big, output: o, reported: Big}
          - {label: Gone, reported: Gone, not_run: needs weights}
      - section: Judged
        judged:
          - {label: V, variant: v}
          - {label: V, variant: v, output: step, name: first step, judges: [gpt-4]}
      - section: Further
        further:
          - {label: Extra, metric: extra, output: o}
          - {label: Absent, metric: absent, output: o}
"""


def correlation(metric, value, **changes):
    row = {"dataset": "d", "level": "turn", "against": "turn", "target": "Overall", "metric": metric, "output": "o"}
    row |= {"grouping": "pooled", "coefficient": "pearson", "value": value, "low": value - 0.1, "high": value + 0.1}
    row |= {"loso_value": None, "loso_system": None}
    return (
        row
        | {
            "p": 0.01,
            "n": 90,
            "rank": 1,
            "tests": 3,
            "rank_wmt": None,
            "coverage": 1.0,
            "cut": 0,
            "lacking": None,
            "signature": f"{metric}|v:1",
        }
        | changes
    )


def correlations(*more, m=0.25):
    rows = [correlation("m", m, p=0.2, rank=2), correlation("m", 0.5, level="system", n=3, rank=None)]
    rows += [correlation("v_rules", 0.4), correlation("v_rules", 0.3, output="step"), correlation("heard", 0.6)]
    return pd.DataFrame([*rows, correlation("extra", 0.35, coverage=0.5), *more])


def ceilings():
    row = {"dataset": "d", "level": "turn", "against": "turn", "target": "Overall", "grouping": "pooled", "n": 9}
    values = {"r1": 0.7, "r2": 0.9, "r3": float("nan")}
    return pd.DataFrame([row | {"coefficient": "pearson", "annotator_id": r, "value": v} for r, v in values.items()])


def reported(of="comperdial", **changes):
    row = {"source": "p", "place": "Table 4", "dataset": of, "level": "turn", "against": "turn", "target": "Overall"}
    row |= {"coefficient": "pearson", "starred": False} | changes
    names = {"M": 0.3, "Big": 0.55, "Gone": 0.65, "V (GPT-3.5)": 0.75, "V (GPT-4)": 0.85, "V (GPT-4), first step": 0.81}
    return pd.DataFrame([row | {"metric": metric, "value": value} for metric, value in names.items()])


@pytest.fixture
def layout(tmp_path):
    path = tmp_path / "rows.yaml"
    path.write_text(SMALL)
    return read_layout(path, "04")


def made(layout, found=None, published=None, *, suffix="", rated=None, **options):
    given = {"datasets": ["d"], "target": "Overall", "not_run": {"big": "no model"}, "judges": JUDGES} | options
    frame = paper_frame(
        layout,
        correlations() if found is None else found,
        ceilings() if rated is None else rated,
        reported() if published is None else published,
        **given,
    )
    return paper_document(frame, layout, {"d": "Set D"}, "Overall", suffix=suffix)


def test_a_table_of_another_data_set_than_the_paper_s(layout):
    found = made(layout, suffix="SIMULATED: made up.")
    assert found.title == "Table 4. A table: Set D"
    assert "of its own data: not to be compared with ours. SIMULATED: made up." in found.caption
    turn, system = found.sections
    assert turn.columns == [("", "Part"), ("", "Metric"), ("Pearson", "ours"), ("Pearson", "paper, on ComperDial")]
    assert turn.rows == [
        ["Baselines", "M", "0.250* [0.15, 0.35] #2", "0.300"],
        ["Baselines", "Big", "not run", "0.550"],
        ["Baselines", "Gone", "not run", "0.650"],
        ["Judged", "V (GPT-3.5)", "not run", "0.750"],
        ["Judged", "V (GPT-4)", "not run", "0.850"],
        ["Judged", "V (GPT-4), first step", "not run", "0.810"],
        ["CPDScore, judged by rules", "V by rules", "0.400 [0.30, 0.50] #1", "–"],
        ["CPDScore, judged by rules", "V by rules, first step", "0.300 [0.20, 0.40] #1", "–"],
        ["Recorded answers", "heard, o", "0.600 [0.50, 0.70] #1", "–"],
        ["Further", "Extra", "0.350 [0.25, 0.45] #1", "–"],
        ["Raters", CEILING, "0.800", "–"],
    ]
    assert system.rows[0] == ["Baselines", "M", "0.50 (n 3) [0.40, 0.60]", "–"]
    assert "Raters" not in {row[0] for row in system.rows}
    assert found.tidy["difference"].isna().all(), "values of two data sets are not compared"


def test_rows_without_scores_are_named_with_the_reason(layout):
    notes = made(layout).notes
    for note in (
        "not run: Big: no model",
        "not run: Gone: needs weights",
        "not run: V (GPT-3.5): params.yaml has no judge 'gpt-3.5' that is asked 'v'",
        "not run: V (GPT-4); V (GPT-4), first step: gpt-4 is no judge of d (params.yaml, judging.judges)",
        "M: a note on M",
        "Extra: 50.0% of the rated responses of d have a score",
        f"{CEILING}, Set D, turn level, ratings of turns: mean of 2 raters; the lowest and the highest of them: "
        "Pearson 0.700 to 0.900",
    ):
        assert note in notes
    assert not any("Absent" in note for note in notes)
    asked = made(layout, not_run={"big": "no model", "v_gpt-4": "not asked: it costs money"}).notes
    assert "not run: V (GPT-4); V (GPT-4), first step: not asked: it costs money" in asked


def test_two_rows_called_alike_keep_their_values(tmp_path):
    more = "          - {label: Extra, metric: extra, output: o}\n"
    path = tmp_path / "rows.yaml"
    path.write_text(SMALL.replace(more, f"{more}          - {{label: Extra, metric: twin, output: o}}\n"))
    found = made(read_layout(path, "04"), found=correlations(correlation("twin", 0.45)))
    shown = [row[2][:5] for row in found.sections[0].rows if row[1] == "Extra"]
    assert shown == ["0.350", "0.450"]


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


def test_the_same_data_set_has_differences_and_reported_asterisks(layout):
    found = made(layout, published=reported(of="d", starred=True))
    assert found.sections[0].columns[2:] == [("Pearson", "ours"), ("Pearson", "paper"), ("Pearson", "difference")]
    assert found.sections[0].rows[0] == ["Baselines", "M", "0.250* [0.15, 0.35] #2", "0.300*", "-0.050"]
    assert "not to be compared" not in found.caption


def numbers_of(found):
    rows = [row for section in found.sections for row in section.rows]
    return [text for row in rows for cell in row[2:] for text in re.findall(r"-?\d\.\d+", cell)]


def test_every_number_is_an_input_and_a_changed_input_changes_the_table(layout):
    found = made(layout)
    given = pd.concat([correlations()[["value", "low", "high"]].stack(), reported()["value"], pd.Series([0.8])])
    known = {f"{value:.{digits}f}" for value in given for digits in (2, 3)}
    assert set(numbers_of(found)) <= known
    changed = made(layout, found=correlations(m=0.26))
    assert [row for row in changed.sections[0].rows if row not in found.sections[0].rows] == [
        ["Baselines", "M", "0.260* [0.16, 0.36] #2", "0.300"]
    ]
    assert document.markdown(changed) != document.markdown(found)
    assert document.markdown(made(layout)) == document.markdown(found)
    other = ceilings().assign(value=[0.7, 0.8, 0.9])
    assert made(layout, rated=other).sections[0].rows[-1][2] == "0.800"
    assert made(layout, rated=other).notes != found.notes


def test_one_call_takes_the_scores_of_one_call(tmp_path):
    content = yaml.safe_load(SMALL)
    content["tables"]["04"]["once"] = True
    path = tmp_path / "rows.yaml"
    path.write_text(yaml.safe_dump(content))
    rows = expand(read_layout(path, "04"), correlations(), JUDGES)
    assert [row.metric for row in rows if row.judge == "gpt-4"] == ["v-once_gpt-4", "v-once_gpt-4"]
    assert [row.metric for row in rows if row.judge == "rules"] == ["v_rules", "v_rules"]


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("metric: m, output: o, reported", "metric: m, reported", "is half defined"),
        ("variant: v}", "varant: v}", "unknown setting 'varant'"),
        ("section: Further\n        further", "section: Further\n        futher", "the section is half defined"),
        ("recorded: true", "recoded: true", "Did you mean 'recorded'"),
        ("recorded: true", "recorded: true\n    judges: [gpt-5]", "unknown judge 'gpt-5'"),
        ("source: p", "sources: p", "no `source`"),
    ],
)
def test_wrong_rows(tmp_path, before, after, message):
    path = tmp_path / "rows.yaml"
    assert before in SMALL
    path.write_text(SMALL.replace(before, after))
    with pytest.raises(ComperdialError, match=message):
        read_layout(path, "04")


def test_no_such_table_dimension_or_data_set(tmp_path, layout):
    path = tmp_path / "rows.yaml"
    with pytest.raises(ComperdialError, match="unknown table '05'"):
        read_layout(path, "05")
    with pytest.raises(ComperdialError, match="unknown dataset 'e'"):
        made(layout, datasets=["e"])
    with pytest.raises(ComperdialError, match="Did you mean 'Overall'"):
        made(layout, target="Overal")
    with pytest.raises(ComperdialError, match="two reported values"):
        made(layout, published=pd.concat([reported(), reported()]))


def printed(root, file="comperdial/correlations.csv"):
    frame = read_table(root / STUDIES / file)
    return frame[frame["source"] == "comperdial2024"]


@pytest.mark.parametrize("number", [n for n in NUMBERS if n not in ("06", "16")])
def test_every_reported_value_of_a_table_stands_in_it_once(root, number):
    layout = read_layout(root / ROWS, number)
    datasets = ["usr_topical", "usr_persona"] if number in ("06", "16") else ["demo"]
    known = [correlation("f1", 0.5, dataset=name, output="f1", coverage=1.0) for name in datasets]
    variants = {row["variant"] for section in layout.sections for row in section.get("judged", [])}
    judges = {
        f"{variant}_{judge}": {
            "variant": variant,
            "judge": judge,
            "label": variant,
            "output": "x",
            "main": True,
            "once": True,
        }
        for variant in variants
        for judge in ("gpt-3.5", "gpt-4")
    }
    found = paper_frame(
        layout,
        pd.DataFrame(known),
        pd.DataFrame(),
        read_reported(root / STUDIES / layout.reported, REPORTED_COLUMNS, given=["value"]),
        datasets=datasets,
        target="Overall",
        not_run={},
        judges=judges,
    )
    shown = found[found["reported"].notna()]
    theirs = printed(root, layout.reported)
    if "place" in theirs:
        place = rf"Tables? (?:\d+ and )?{int(number)}\b"
        theirs = theirs[theirs["place"].str.contains(place)]
    elif number == "06":
        theirs = theirs[~theirs["metric"].str.contains("GPT-3.5", regex=False)]
    assert sorted(shown["reported"]) == sorted(pd.to_numeric(theirs["value"]))
    assert not shown.duplicated(["label", "dataset", "level", "against", "coefficient"]).any()
    # No row but those marked as not in the paper lacks what it says is reported.
    named = found[found["section"].isin(["Baselines", "CPDScore", "Original prompts", "CPDScore of dialogues"])]
    assert named["reported"].notna().all()


def paper_text():
    folder = os.environ.get("COMPERDIAL_PAPERS")
    mirror = os.environ.get("COMPERDIAL_MIRROR")
    places = [Path(folder)] if folder else [Path(mirror).parent / "papers"] if mirror else []
    found = [path for place in places if (path := place / "comperdial.txt").is_file()]
    if not found:
        pytest.skip("the paper's text is not at hand: set COMPERDIAL_PAPERS to its folder")
    return found[0].read_text(encoding="utf-8").splitlines()


def cells_of(lines, start, *, until):
    """Return label and cells of the rows between two lines of the text, given by their beginnings."""
    first = next(place for place, line in enumerate(lines) if line.startswith(start))
    rows = []
    for line in lines[first + 1 :]:
        if line.startswith(until):
            break
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) > 3 and re.match(r"-?\d", cells[1]):
            rows.append((re.sub(r" \[\d+\]$", "", cells[0]), [cell for cell in cells[1:] if cell]))
    return rows


TEXT = {
    "04": ("Methods | Turn-level score", "Methods | Dialogue-level score"),
    "05": ("Methods | Dialogue-level score", "6.2"),
    "03": ("Methods | Turn-level | System-level", "4 CPDScore"),
    "06": ("Methods | USR-Topical", "6.4"),
    "15": ("C.3 Additional", "Methods | USR-Topical"),
}


@pytest.mark.parametrize("number", [n for n in TEXT if n != "06"])
def test_reported_values_are_the_paper_s(root, number):
    lines = paper_text()
    if number == "16":
        after = next(place for place, line in enumerate(lines) if line.startswith("C.3 Additional"))
        rows = cells_of(lines[after:], "Methods | USR-Topical", until="no such line")
    else:
        rows = cells_of(lines, TEXT[number][0], until=TEXT[number][1])
    layout = read_layout(root / ROWS, number)
    theirs = printed(root, layout.reported)
    if "place" in theirs:
        theirs = theirs[theirs["place"].str.contains(rf"Tables? (?:\d+ and )?{int(number)}\b")]
        datasets = ["comperdial"]
    else:
        wanted = ~theirs["metric"].str.contains("GPT-3.5", regex=False) if number == "06" else theirs["metric"] != ""
        theirs, datasets = theirs[wanted], ["usr_topical", "usr_persona"]
    by_row = {}
    for metric, group in theirs.groupby("metric", sort=False):
        order = [
            group[(group["dataset"] == name) & (group["level"] == level) & (group["coefficient"] == coefficient)]
            for level in layout.levels
            for name in datasets
            for coefficient in layout.coefficients
        ]
        assert all(len(cell) == 1 for cell in order), metric
        by_row[metric] = [
            cell["value"].iloc[0] + ("∗" if str(cell["starred"].iloc[0]).lower() == "true" else "") for cell in order
        ]
    expected = {}
    for label, cells in rows:
        name = {"FEDEn": "FED En", "FEDRel": "FED Rel"}.get(label, label)
        name = {"Simple": "Original simple", "Detail": "Original detail"}.get(name, name)
        if name == "Intermediate score":
            name = f"{list(expected)[-1]}, intermediate score"
        if number in ("03", "06") and name.startswith(("CPDS", "Original")):
            name += " (GPT-4)"
        if number in ("03", "15") and name.startswith("CPDS"):
            name += ", once"
        expected[name] = cells
    assert by_row == expected


def test_table_1_is_the_part_of_table_7_that_it_prints(root):
    found = benchmarks_short(read_table(root / "src/comperdial/studies/comperdial/benchmarks.csv"))
    assert [row[1] for row in found.sections[0].rows] == [
        "Dialogue models", "Humans", "Turn level", "Dialogue level, interactive", "Dialogue level, static",
    ]  # fmt: skip
    assert len(found.sections) == 1


def test_table_2_is_the_beginning_of_table_12():
    said = [{"speaker": "AB"[turn % 2], "text": f"said {turn}"} for turn in range(8)]
    context = {"dialogue_id": "x", "context_id": "x-1", "turn": 4, "history": said, "references": ["the gold answer"]}
    people = [{"dialogue_id": "x", "speaker": s, "sentences": [f"{s} is {n}" for n in range(7)]} for s in "AB"]
    found = example_short(pd.DataFrame([context]), pd.DataFrame(people), "x", "SIMULATED.")
    assert found.caption.endswith("SIMULATED.")
    assert len(found.sections) == 1
    assert found.tidy.groupby("part")["number"].max().to_dict() == {"persona": 5, "utterance": 5}
    shown = {cell for row in found.sections[0].rows for cell in row[1:] if cell not in ("", "…")}
    assert shown == set(found.tidy["text"])


def test_table_14_asks_the_metrics_themselves(root):
    metrics = completed(yaml.safe_load((root / "params.yaml").read_text()))["metrics"]
    for entry in metrics.values():
        for key in ABOUT:
            entry.pop(key, None)
    reported_outputs = read_table(root / "src/comperdial/studies/comperdial/metric_outputs.csv")
    found = outputs_document(reported_outputs, metrics)
    paper, ours = ({row[0]: row for row in section.rows} for section in found.sections)
    assert list(ours) == list(metrics)
    assert paper["BLEU"][1:] == ["bleu", "Score", ", ".join(create("bleu").outputs), "yes", "yes"]
    assert paper["FED"][-2:] == ["no", "no"]
    assert all(row[4] == row[5] for row in paper.values()), "we normalise what the paper normalises"
    assert ours["bleu_raw"][-1] == "no"
    without = outputs_document(reported_outputs, {"bleu": {"kind": "bleu", "text": "raw"}})
    assert {row[0]: row[5] for row in without.sections[0].rows}["BLEU"] == "no"
    assert "FED: params.yaml has no metric 'fed'" in without.notes


def test_table_14_is_the_paper_s(root):
    lines = paper_text()
    start = next(place for place, line in enumerate(lines) if line.startswith("Metrics | Output | Normalize"))
    rows = [[cell.strip() for cell in line.split("|")] for line in lines[start + 2 :][:8]]
    theirs = read_table(root / "src/comperdial/studies/comperdial/metric_outputs.csv")
    ours = theirs[["metric", "outputs"]].assign(mark=theirs["normalised"].map({"yes": "✓", "no": ""}))
    assert ours.to_numpy().tolist() == [row[:3] for row in rows]


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


def test_measures_stand_beside_pooled_correlations():
    found = comparison_tables.measures_document(
        pd.DataFrame(
            [
                correlation("m", 0.4, coefficient="spearman"),
                correlation("m", 0.3, coefficient="spearman", grouping="item", p=None, rank=None),
                correlation("m", 0.6, level="system", coefficient="kendall", p=0.5),
                correlation("m", 0.7, level="system", coefficient="acc_eq", p=None),
                correlation("m", 0.8, level="system", coefficient="spa", p=None),
            ]
        ),
        "D",
        "Overall",
    )
    turn, system = found.sections
    assert turn.columns[1:] == [("Spearman", "pooled"), ("Spearman", "by item")]
    assert turn.rows == [["m o", "0.400", "0.300 [0.20, 0.40]"]]
    assert system.rows == [["m o", "0.600*", "0.700 [0.60, 0.80] #1", "0.800 [0.70, 0.90] #1"]]
    assert len(found.tidy) == 3


@pytest.mark.parametrize("name", ["comparisons", "power", "curves"])
def test_tables_of_nothing_to_compare_say_so(tmp_path, name):
    empty = pd.DataFrame({column: [] for column in schema.table(name).columns})
    schema.write(tmp_path / "x.parquet", empty, name)
    said = {"kind": name, "title": "D", "source": "human", "main_target": "Overall"}
    make("report.of_dataset:statistics", tmp_path / "t", {"found": tmp_path / "x.parquet"}, **said)
    assert "it takes two metrics with scores" in (tmp_path / "t.md").read_text()


def test_a_numbered_table_says_that_data_are_simulated(tmp_path, root):
    found = correlations().astype({"rank": "Int32", "rank_wmt": "Int32"})
    schema.write(tmp_path / "c.parquet", found.assign(dataset="demo"), "correlations")
    schema.write(tmp_path / "h.parquet", ceilings().assign(dataset="demo"), "ceilings")
    out = tmp_path / "table_04"
    inputs = {"correlations": [tmp_path / "c.parquet"], "ceilings": [tmp_path / "h.parquet"]}
    inputs |= {"reported": root / STUDY / "correlations.csv", "rows": root / ROWS}
    said = {"number": "04", "titles": {"demo": "Demo"}, "order": ["demo"], "not_run": {}, "judges": {}}
    said |= {"source": "simulated", "main_target": "Overall"}
    make("studies.comperdial.tables:numbered", out, inputs, **said)
    for suffix in ("md", "tex", "html"):
        text = out.with_suffix(f".{suffix}").read_text()
        assert "SIMULATED" in text
        assert "docs/reproduction-notes.md" in text
        assert "paper, on" not in text
    tidy = pd.read_csv(out.with_suffix(".csv"))
    assert tidy["simulated"].all()
    assert "reported" not in tidy, "what a paper reports does not stand next to simulated values"


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
