"""Tables of correlations: the rows of a study beside the values that a paper reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from comperdial import schema
from comperdial.core.errors import ComperdialError
from comperdial.report import correlations, render

ROWS = [
    {"label": "Chr", "metric": "chrf", "output": "chrf", "reported": "chrF", "source": "a2020", "note": "a note"},
    {"label": "F1 (word)", "metric": "f1", "output": "f1"},
    {"label": "BLEURT", "metric": "bleurt", "output": "bleurt"},
    {"label": "Judge (recorded)", "metric": "judge", "output": "mean"},
    {"label": "GRADE", "reported": "GRADE", "source": "b2021", "not_run": "no weights"},
]
REPORTED = """source,place,dataset,level,dimension,metric,output,coefficient,value,starred,note
a2020,Table 1,one,turn,Overall,chrF,,pearson,0.3,false,
b2021,Table 2,one,turn,Overall,GRADE,,pearson,0.5,true,
b2021,Table 2,one,turn,Fluency,chrF,,pearson,0.9,true,
"""
COLUMNS = {name: list(schema.table(name).columns) for name in ("correlations", "pairs")}


def result(dataset: str, metric: str, level: str, value: float | None, **more: Any) -> dict[str, Any]:
    return {
        "dataset": dataset, "level": level, "against": "turn", "target": "Overall", "metric": metric, "output": metric,
        "grouping": "pooled", "coefficient": "pearson", "value": value, "p": 0.01, "n": 300 if level == "turn" else 4,
        "coverage": 1.0, "cut": 0, "signature": f"{metric}|model:m@1|v:1",
    } | more  # fmt: skip


PAIR = {"metric_a": "chrf", "output_a": "chrf", "metric_b": "f1", "output_b": "f1", "difference": 0.12, "p": 0.001}
RESULTS = {
    "one": [
        result("one", "chrf", "turn", 0.33, low=0.2, high=0.4, loso_value=0.1, loso_system="s"),
        result("one", "f1", "turn", 0.21, low=0.1, high=0.3, p=0.2, coverage=0.5, cut=3),
        result("one", "chrf", "system", 0.8, p=0.2),
        result("one", "f1", "turn", 0.9, target="Fluency"),
        result("one", "f1", "turn", 0.7, grouping="item"),
    ],
    "two": [
        result("two", "f1", "turn", 0.4),
        result("two", "chrf", "turn", None, coverage=0.0, lacking="references", n=0),
    ],
}


@pytest.fixture
def made(tmp_path: Path) -> Any:
    def put(name: str, records: list[dict[str, Any]], of: str) -> Path:
        frame = pd.DataFrame(records).reindex(columns=COLUMNS[of])
        schema.write(tmp_path / name, schema.validate(frame, of), of)
        return tmp_path / name

    def make(rows: Any = ROWS, reported: str = REPORTED, simulated: bool = False, **entry: Any) -> render.Table:
        inputs: dict[str, list[Path]] = {"correlations": [], "pairs": [], "about": [], "reported": []}
        for name, records in RESULTS.items():
            inputs["correlations"].append(put(f"{name}.parquet", records, "correlations"))
            pairs = [result(name, "", "turn", None, test="t", **PAIR)] if name == "one" else []
            inputs["pairs"].append(put(f"{name}-pairs.parquet", pairs, "pairs"))
            about = {
                "dataset": name, "title": name.title(), "source": "simulated" if simulated else "human", "target": None,
                "main_target": "Overall", "not_run": {"bleurt": "no model"}, "recorded_of": {"judge": "one"}, "metrics": [],
                "labels": {}, "outputs": ["chrf:chrf", "f1:f1"], "judges": {},
            }  # fmt: skip
            (tmp_path / f"{name}.json").write_text(json.dumps(about))
            inputs["about"].append(tmp_path / f"{name}.json")
        (tmp_path / "reported.csv").write_text(reported)
        inputs["reported"].append(tmp_path / "reported.csv")
        entry = {
            "caption": "Correlations.", "rows": rows, "coefficients": ["pearson"], "levels": {"turn": "turn", "system": "turn"},
            "sources": {"a2020": "A"},
        } | entry  # fmt: skip
        study = {"name": "mine", "title": "Mine", "entry": entry, "datasets": ["one", "two"]}
        return correlations.correlations(inputs, study)

    return make


def test_ours_stand_beside_reported_values_and_empty_rows_and_columns_are_left_out(made: Any) -> None:
    table = made()
    lines = render.markdown(table).splitlines()
    assert "| Metric | Reported by | One ours | One reported | One difference | Two ours |" in lines
    assert r"| Chr | A | **0.330‡ [0.20, 0.40] #1** | 0.300 | +0.030 | not run |" in lines
    assert r"| F1 (word) | – | 0.210\* [0.10, 0.30] #2 | – | – | 0.400 |" in lines
    assert lines.index("<details><summary>1 more with reported values, not run here</summary>") < lines.index(
        r"| GRADE | b2021 | 0.500\* |"
    )
    assert r"| Chr | A | 0.80\* (n 4) |" in lines
    assert not any(line.startswith("| BLEURT") for line in lines)
    assert "Rated: One: Overall, 300 responses, 4 systems; Two: Overall, 300 responses." in table.caption


def test_notes_name_what_is_partial_cut_or_not_run(made: Any) -> None:
    notes, lost = made().notes, made().not_run
    for note in (
        "Ranks are corrected over all pairs of main outputs of a data set, shown here or not: 1 test",
        "F1 (word): 50.0% of the rated responses of one have a score",
        "F1 (word): the input of 3 responses of one did not fit the model and was cut",
        "Chr: a note",
        "Not run: Chr: two has no references where Overall was rated",
        "Chr; F1 (word): computed with the model m@1",
    ):
        assert note in notes
    why = {"BLEURT": "no model", "GRADE": "no weights"}
    assert {name: lost[name] for name in why} == why
    assert "there are recorded scores of one only" in lost["Judge (recorded)"]


def test_the_csv_has_every_cell(made: Any) -> None:
    frame = made().frame.set_index(["label", "dataset", "level"])
    assert len(frame) == len(ROWS) * 2 * 2
    cell = frame.loc[("Chr", "one", "turn")]
    assert (cell["ours"], cell["reported"], cell["source"], cell["loso_halved"]) == (0.33, 0.3, "a2020", True)
    assert cell["difference"] == pytest.approx(0.03)


def test_rows_are_sorted_and_sections_are_by_data_set_if_asked(made: Any) -> None:
    sections = made(rows=ROWS[1::-1], sort="pearson", section_by="dataset").sections
    assert [section.title for section in sections] == ["One", "Two"]
    assert [*sections[0].frame.index.get_level_values(0)] == ["Chr", "F1 (word)"]


def test_values_that_are_reported_of_another_data_set_have_no_difference(made: Any) -> None:
    table = made(reported_of="one")
    frame = table.frame.set_index(["label", "dataset", "level"])
    assert frame.loc[("GRADE", "two", "turn"), ["reported", "reported_of"]].tolist() == [0.5, "one"]
    assert frame["difference"].notna().sum() == 1
    assert "The reported values are of one: no difference is given" in table.notes


def test_reported_values_do_not_stand_beside_simulated_ones(made: Any) -> None:
    table = made(simulated=True)
    assert table.caption.endswith(render.SIMULATED) and "reported" not in table.frame
    assert "| Metric | One | Two |" in render.markdown(table)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": [{"label": "x", "metric": "f1"}]}, "study mine, rows: the row is"),
        ({"rows": [{"label": "x", "metric": "f1", "output": "f1", "colour": "red"}]}, "known keys: section, label"),
        ({"reported": REPORTED.replace("0.3,", "much,")}, "line 2: value is 'much'; expected a number"),
        ({"reported": REPORTED + REPORTED.splitlines()[1] + "\n"}, "line 5: the row is there twice"),
    ],
)
def test_wrong_rows_and_values_are_named(made: Any, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ComperdialError, match=message):
        made(**change)
