"""ComperDial's numbered tables."""

import json

import pandas as pd
import pytest

from comperdial import schema
from comperdial.config import load_yaml
from comperdial.core.errors import NothingToShowError
from comperdial.report import render
from comperdial.studies import comperdial as study
from resulttables import correlation, write_rows


def rating(level, item, system, annotator, value, dimension="Overall", low=1.0, high=5.0, source="human"):
    return ("one", level, item, system, annotator, None, dimension, value, low, high, source)


TURNS = [rating("turn", f"d1-{turn}", system, who, 4.0) for turn in "01" for system in ("bot", "gold") for who in "ab"]
RATINGS = [
    *TURNS,
    *(rating("dialogue", "d1", "bot", who, 2.0) for who in "ab"),
    rating("dialogue", "d1", "bot", "a", 0.0, "Fluency", 0.0, 1.0),
    rating("turn", "d1-0", "bot", "judge", 1.0, source="gpt-4"),
]


@pytest.fixture
def inputs(tmp_path, root):
    lines = [{"speaker": "A", "text": "Hi"}, {"speaker": "B", "text": "Ho"}, {"speaker": "A", "text": "A long word"}]
    paths = write_rows(
        tmp_path,
        systems=[("one", name, kind, None, "-") for name, kind in (("bot", "agent"), ("gold", "reference"))],
        contexts=[("one", f"d1-{turn}", "d1", turn, lines[: 1 + 2 * turn], ["Ho"], []) for turn in (0, 1)],
        responses=[("one", f"d1-{turn}", "bot", "Hm") for turn in (0, 1)],
        ratings=RATINGS,
    )
    known = {"variant": "cpds-s", "output": "overall", "main": True, "once": False}
    judges = {
        f"cpds-s_{judge}": known | {"judge": judge, "label": f"CPDS-S by {judge}"} for judge in ("gpt-4", "llama")
    }
    judges["noted"] = {"judge": "noted", "label": "Noted, {output}"}
    about = {
        "dataset": "one", "title": "One", "source": "human", "target": None, "main_target": "Overall", "not_run": {},
        "recorded_of": {"noted": "one"}, "metrics": [], "labels": {}, "outputs": ["f1:f1", "v_llama:x"],
        "level_differences": 1, "judges": judges,
    }  # fmt: skip
    (tmp_path / "about.json").write_text(json.dumps(about))
    found = {name: [path] for name, path in paths.items()}
    return found | {"about": [tmp_path / "about.json"], "layout": [root / "studies/comperdial/study.yaml"]}


def entry(root, number):
    name = f"table_{number}"
    return {"name": name, **load_yaml(root / "studies/comperdial/study.yaml")["tables"][name]}


def test_references_and_other_raters_are_not_counted(inputs, root):
    inputs["reported"] = [root / "studies/comperdial/annotation_counts.csv"]
    made = study.counts(inputs, {"entry": entry(root, "08")})
    assert "| One | – | One | – | 2 | – | – | 1 | – | – | 1 | – |" in render.markdown(made)
    assert "One: 2 rated references are not in our count of turns" in made.notes


def test_a_dialogue_rated_lower_as_a_whole(inputs, root, tmp_path):
    made = study.level_differences(inputs, {"entry": entry(root, "13")})
    lines = render.markdown(made).splitlines()
    assert "| (a) | d1 | bot | 4.00 | 2.00 | -2.00 | 1 of 1 |" in lines
    assert "| 2 | B | (a) | Hm | 4.00 |" in lines
    assert made.frame["marks_Fluency"].dropna().unique().tolist() == [1]
    write_rows(tmp_path, ratings=TURNS)
    with pytest.raises(NothingToShowError):
        study.level_differences(inputs, {"entry": entry(root, "13")})


def test_judges_have_rows_next_to_paper_values_and_a_ceiling(inputs, root, tmp_path):
    values = {("f1", "f1"): 0.2, ("cpds-s_llama", "overall"): 0.3, ("noted", "mean"): 0.4}
    results = [correlation("one", *names, value, target="Overall") for names, value in values.items()]
    ceiling = {name: results[0].get(name) for name in schema.table("ceilings").columns}
    ceiling |= {"rater": "a", "annotator_id": "a", "value": 0.7, "n": 100}
    frames = {"correlations": pd.DataFrame(results), "pairs": schema.empty("pairs")}
    frames["ceilings"] = pd.DataFrame([ceiling])[schema.table("ceilings").columns]
    for name, frame in frames.items():
        inputs[name] = [tmp_path / f"{name}.parquet"]
        schema.write(inputs[name][0], frame, name)
    inputs["reported"] = [root / "studies/comperdial/reported.csv"]
    made = study.numbered(inputs, {"entry": entry(root, "04"), "datasets": ["one"], "name": "dataset"})
    assert made.title == "Table 4. Metrics against turn ratings: One"
    cells = made.frame.set_index("label").query("level == 'turn' and coefficient == 'pearson'")
    assert cells.loc["F1", ["ours", "reported_of"]].tolist() == [0.2, "comperdial"]
    assert pd.isna(cells.loc["F1", "difference"])
    assert cells.loc["CPDS-S w/o ref (GPT-4)", "not_run"] == "gpt-4 is no judge of one (params.yaml, judging.judges)"
    assert cells.loc["CPDS-S by llama", ["section", "ours"]].tolist() == ["CPDScore, judged by llama", 0.3]
    assert cells.loc[["Noted, mean", study.CEILING], "ours"].tolist() == [0.4, 0.7]
    # Rows that are not in the paper are shown only with scores.
    assert "chrF" not in cells.index
