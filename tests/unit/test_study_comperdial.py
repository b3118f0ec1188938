"""ComperDial's numbered tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from comperdial import schema
from comperdial.config import load_yaml
from comperdial.core.errors import NothingToShowError
from comperdial.report import render
from comperdial.studies import comperdial as study
from comperdial.studies.making import make

UNRATED = {"position": None, "scale_min": 1.0, "scale_max": 5.0, "source": "human"}


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("01", ["| Response collection | Dialogue models | 4(3) | 6 | 7 | 2 | 97 |"]),
        (
            "07",
            [
                "| Group | Property | USR | Zhao et al. | RADE | FED | ComperDial |",
                "| Evaluation technique | Dialogue level, static | – | – | – | – | yes |",
                "| Human workers who wrote the dialogues, in pairs | section 3.2.1 | 40 |",
            ],
        ),
        ("09", ["| Decade | Age | Male | Female |"]),
        ("10", ["| Family information | Age from | Age to |"]),
        ("11", ["| Head persona | Age from | Age to |"]),
        ("14", ["| Word F1 | f1 | Precision, Recall, F1 | f1, precision, recall | yes | yes |"]),
    ],
)
def test_tables_of_reported_facts(name: str, lines: list[str], tmp_path: Path, root: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(root)
    make("table", "comperdial", f"table_{name}", tmp_path / "table")
    text = (tmp_path / "table.md").read_text().splitlines()
    assert [line for line in lines if line not in text] == []


def rating(
    level: str, item: str, system: str, annotator: str, value: float, dimension: str = "Overall"
) -> dict[str, Any]:
    names = {"level": level, "item_id": item, "system_id": system, "annotator_id": annotator, "dimension": dimension}
    return {"dataset": "one", **names, "rating": value, **UNRATED}


RATINGS = [
    *(rating("turn", f"d1-{turn}", system, who, 4.0) for turn in "01" for system in ("bot", "gold") for who in "ab"),
    *(rating("dialogue", "d1", "bot", who, 2.0) for who in "ab"),
    rating("dialogue", "d1", "bot", "a", 0.0, "Fluency") | {"scale_min": 0.0, "scale_max": 1.0},
    rating("turn", "d1-0", "bot", "judge", 1.0) | {"source": "gpt-4"},
]


@pytest.fixture
def inputs(tmp_path: Path, root: Path) -> dict[str, list[Path]]:
    history = [[{"speaker": "A", "text": "Hi"}], [{"speaker": "A", "text": "Hi"}, {"speaker": "B", "text": "Ho"}]]
    history[1].append({"speaker": "A", "text": "A long word " * 12})
    tables = {
        "systems": [
            {"system_id": "bot", "kind": "agent", "description": "-"},
            {"system_id": "gold", "kind": "reference", "description": "-"},
        ],
        "contexts": [
            {
                "context_id": f"d1-{turn}",
                "dialogue_id": "d1",
                "turn": turn,
                "history": history[turn],
                "references": ["Ho"],
            }
            for turn in (0, 1)
        ],
        "responses": [{"context_id": f"d1-{turn}", "system_id": "bot", "response": "Hm"} for turn in (0, 1)],
        "personas": [
            {"dialogue_id": "d1", "speaker": who, "sentences": ["I am."] * 6, "kinds": ["head"] * 6} for who in "AB"
        ],
        "ratings": RATINGS,
    }
    found = {}
    for name, records in tables.items():
        frame = pd.DataFrame(records).assign(dataset="one").reindex(columns=list(schema.table(name).columns))
        if name == "contexts":
            frame["facts"] = [[] for _ in range(len(frame))]
        schema.write(tmp_path / f"{name}.parquet", frame, name)
        found[name] = [tmp_path / f"{name}.parquet"]
    about = {
        "dataset": "one", "title": "One", "source": "human", "target": None, "main_target": "Overall", "not_run": {},
        "recorded_of": {"noted": "one"}, "metrics": [], "labels": {}, "outputs": ["f1:f1", "v_llama:x"], "level_differences": 1,
        "judges": {
            **{
                f"cpds-s_{judge}": {"variant": "cpds-s", "judge": judge, "label": f"CPDS-S by {judge}", "output": "overall"}
                | {"main": True, "once": False}
                for judge in ("gpt-4", "llama")
            },
            "noted": {"judge": "noted", "label": "Noted, {output}"},
        },
    }  # fmt: skip
    (tmp_path / "about.json").write_text(json.dumps(about))
    return found | {"about": [tmp_path / "about.json"], "layout": [root / "studies/comperdial/study.yaml"]}


def entry(root: Path, number: str) -> dict[str, Any]:
    name = f"table_{number}"
    return {"name": name, **load_yaml(root / "studies/comperdial/study.yaml")["tables"][name]}


def test_references_and_other_raters_are_not_counted(inputs: Any, root: Path) -> None:
    inputs["reported"] = [root / "studies/comperdial/annotation_counts.csv"]
    made = study.counts(inputs, {"entry": entry(root, "08")})
    assert "| One | – | One | – | 2 | – | – | 1 | – | – | 1 | – |" in render.markdown(made)
    assert "One: 4 rated references are not in our count of turns" not in made.notes
    assert "One: 2 rated references are not in our count of turns" in made.notes


def test_a_dialogue_rated_lower_as_a_whole(inputs: Any, root: Path) -> None:
    made = study.level_differences(inputs, {"entry": entry(root, "13")})
    lines = render.markdown(made).splitlines()
    assert "| (a) | d1 | bot | 4.00 | 2.00 | -2.00 | 1 of 1 |" in lines
    assert "| 2 | B | (a) | Hm | 4.00 |" in lines
    assert made.frame["marks_Fluency"].dropna().unique().tolist() == [1]
    turns = pd.DataFrame(RATINGS)[lambda frame: frame["level"] == "turn"]
    schema.write(inputs["ratings"][0], turns.reindex(columns=list(schema.table("ratings").columns)), "ratings")
    with pytest.raises(NothingToShowError):
        study.level_differences(inputs, {"entry": entry(root, "13")})


def test_judges_have_rows_beside_the_papers_values_and_a_ceiling(inputs: Any, root: Path, tmp_path: Path) -> None:
    def result(metric: str, output: str, value: float) -> dict[str, Any]:
        return {
            "dataset": "one", "level": "turn", "against": "turn", "target": "Overall", "metric": metric, "output": output,
            "grouping": "pooled", "coefficient": "pearson", "value": value, "p": 0.01, "n": 100, "coverage": 1.0, "cut": 0,
            "signature": metric,
        }  # fmt: skip

    results = [result("f1", "f1", 0.2), result("cpds-s_llama", "overall", 0.3), result("noted", "mean", 0.4)]
    ceiling = {"rater": "a", "value": 0.7, "n": 100}
    key = {name: results[0][name] for name in ("dataset", "level", "against", "target", "grouping", "coefficient")}
    frames = {"correlations": results, "pairs": [], "ceilings": [key | ceiling]}
    for name, records in frames.items():
        frame = pd.DataFrame(records).reindex(columns=list(schema.table(name).columns))
        frame = frame.assign(annotator_id="a") if "annotator_id" in frame else frame
        schema.write(tmp_path / f"{name}.parquet", frame if len(records) else schema.empty(name), name)
        inputs[name] = [tmp_path / f"{name}.parquet"]
    inputs["reported"] = [root / "studies/comperdial/reported.csv"]
    made = study.numbered(inputs, {"entry": entry(root, "04"), "datasets": ["one"], "name": "dataset"})
    assert made.title == "Table 4. Metrics against ratings of turns: One"
    cells = made.frame.set_index("label").query("level == 'turn' and coefficient == 'pearson'")
    assert cells.loc["F1", ["ours", "reported_of"]].tolist() == [0.2, "comperdial"] and pd.isna(
        cells.loc["F1", "difference"]
    )
    assert cells.loc["CPDS-S w/o ref (GPT-4)", "not_run"] == "gpt-4 is no judge of one (params.yaml, judging.judges)"
    assert cells.loc["CPDS-S by llama", ["section", "ours"]].tolist() == ["CPDScore, judged by llama", 0.3]
    assert cells.loc["Noted, mean", "ours"] == 0.4 and cells.loc[study.CEILING, "ours"] == 0.7
    # Rows that are not in the paper are shown only with scores.
    assert "chrF" not in cells.index
