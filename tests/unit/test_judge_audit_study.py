"""The study of recorded judges: rows of small tables, and what is missing is a row."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pandas as pd
import pytest

from comperdial.auditing import recorded as recorded_audits
from comperdial.auditing.judged import Judged
from comperdial.cli import main
from comperdial.config.studies import read_study
from comperdial.core.errors import NothingToShowError, SourceError
from comperdial.data.labels import Labels
from comperdial.report.render import markdown
from comperdial.studies import judge_audit

SETS = {
    "good": {"title": "Good", "scoring": "rmse", "epsilon": 0.1},
    "words": {"title": "Words", "scoring": "accuracy", "epsilon": 0.1},
    "gone": {"title": "Gone", "scoring": "accuracy", "epsilon": 0.1},
}


def labels(values: dict[str, list[Any]], column: str) -> pd.DataFrame:
    rows = [(f"{n:03}__q", "c", name, value) for name, given in values.items() for n, value in enumerate(given)]
    return pd.DataFrame(rows, columns=["item", "cluster", column, "label"])


def read(name: str) -> Labels:
    truth = np.random.default_rng(1).integers(1, 6, 80)
    people = {str(n): np.clip(truth + np.random.default_rng(n).integers(-1, 2, 80), 1, 5) for n in range(4)}
    words = np.array(["", "a", "b", "c", "d", "e"])
    if name == "alt_test_good":
        return Labels(labels(people, "rater"), labels({"judge": truth, "wrong": 6 - truth}, "judge"))
    if name == "alt_test_words":
        texts = {rater: words[given] for rater, given in people.items()}
        return Labels(labels(texts, "rater"), labels({"judge": np.full(80, "none")}, "judge"))
    raise SourceError("the mirror has no source", where="somewhere")


@pytest.fixture
def tests():
    return pd.DataFrame(recorded_audits.alternative_tests(SETS, read))


def test_a_judge_that_knows_the_truth_passes_and_a_missing_set_is_a_row(tests):
    frame = tests.set_index(["set", "judge"])
    assert frame.loc[("good", "judge"), ["wins", "annotators", "passed"]].tolist() == [4, 4, True]
    assert frame.loc[("good", "wrong"), ["wins", "passed"]].tolist() == [0, False]
    assert {judge for name, judge in frame.index if name == "good"} > {"always the mean"}
    # A label that no person gave matches nobody.
    assert frame.loc[("words", "judge"), "rho"] < 0.7 and not frame.loc[("words", "judge"), "passed"]
    assert tests[tests["set"] == "gone"]["note"].tolist() == ["not here: the mirror has no source"]


def test_one_question_is_chosen_by_the_end_of_the_items_names():
    def two(name):
        people, judges = read("alt_test_good")
        other = people.assign(item=people["item"].str.replace("__q", "__other"))
        return Labels(
            pd.concat([people, other]),
            pd.concat([judges, judges.assign(item=judges["item"].str.replace("__q", "__other"))]),
        )

    asked = recorded_audits.alternative_tests({"x": {**SETS["good"], "data": "good", "question": "q"}}, two)
    assert [one["rho"] for one in asked] == [
        one["rho"] for one in recorded_audits.alternative_tests({"good": SETS["good"]}, read)
    ]


def test_the_table_has_theirs_next_to_ours_and_says_what_is_missing(tests, tmp_path):
    tests.to_csv(tmp_path / "result.csv", index=False)
    ours = tests.iloc[0]
    rows = [
        ("x", "y", "alternative_test", "good", ours["judge"], "wins", 4),
        ("x", "y", "alternative_test", "good", ours["judge"], "rho", 0.1),
    ]
    columns = ["source", "place", "table", "dataset", "subject", "measure", "value"]
    pd.DataFrame(rows, columns=columns).to_csv(tmp_path / "reported.csv", index=False)
    inputs = {"result": [tmp_path / "result.csv"], "reported": [tmp_path / "reported.csv"]}
    text = markdown(judge_audit.alternative_test(inputs, {"entry": {"title": "T", "caption": "C", "sets": SETS}}))
    assert "| judge | 4 of 4 | 4 of 4 |" in text
    assert "in 0 of 1 cells" in text
    assert "- gone: not here: the mirror has no source" in text


def test_measures_of_two_raters_are_of_the_items_of_both():
    both = [[0, 1, 2, 2, np.nan], [0, 1, 2, 1, 2]]
    made = recorded_audits.measures(both, [0, 1, 2])
    assert made == recorded_audits.measures([row[:4] for row in both], [0, 1, 2])
    assert made["kappa"] == pytest.approx((0.75 - 0.3125) / (1 - 0.3125))
    assert "kappa" not in recorded_audits.measures([*both, both[0]], [0, 1, 2])


def judged(people: pd.DataFrame, judge: Any) -> Judged:
    return Judged(
        people=people,
        judge=pd.Series(judge, people.index, dtype=float),
        judge_name="j",
        dimension="d",
        scale=(0.0, 4.0),
    )


def test_a_pass_that_the_mean_reaches_too_says_so_and_one_rater_cannot_be_tested():
    rng = np.random.default_rng(2)
    truth = rng.choice([0, 4], 100)
    noisy = {name: np.where(rng.random(100) < 0.4, 4 - truth, truth) for name in "abcde"}
    row = recorded_audits._audited("x", "", judged(pd.DataFrame(noisy), truth * 0.1 + 1.8))
    assert row["verdict"] == "not shown" and row["constant_wins"] == 5
    assert row["note"].startswith("always saying") and row["note"].endswith("wins against 5 of 5")
    alone = recorded_audits._audited("x", "", judged(pd.DataFrame({"a": noisy["a"]}), truth))
    assert alone["verdict"] == "cannot be tested" and "labels of two people" in alone["note"]
    constant = recorded_audits._audited("x", "", judged(pd.DataFrame(noisy), np.full(100, 2)))
    assert "verdict" not in constant and "the same label" in constant["note"]


def test_without_any_data_each_table_says_that_there_is_nothing_to_show(root, tmp_path, monkeypatch, capsys):
    shutil.copytree(root / "studies/judge_audit", tmp_path / "studies/judge_audit")
    (tmp_path / "data").mkdir()
    (tmp_path / "mirror").mkdir()
    shutil.copy(root / "data/sources.yaml", tmp_path / "data/sources.yaml")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMPERDIAL_MIRROR", str(tmp_path / "mirror"))
    assert main(["audit-recorded", "--output", "results/studies/judge_audit"]) == 0
    for name, entry in read_study("judge_audit")["tables"].items():
        frame = pd.read_csv(f"results/studies/judge_audit/{name}.csv")
        assert frame["note"].str.startswith("not here: the mirror has no source").all()
        assert str(tmp_path) not in frame.to_csv()
        with pytest.raises(NothingToShowError, match="not here"):
            function = getattr(judge_audit, entry["function"])
            function({key: [tmp_path / path] for key, path in entry["inputs"].items()}, {"entry": entry})
    assert main(["table", "judge_audit", "audits", "--output", "audits"]) == 0
    assert "Nothing to show" in (tmp_path / "audits.md").read_text()
    assert main(["figure", "judge_audit", "audits", "--output", "figure"]) == 0
