"""The tables of any data set, made of small frames."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from comperdial import schema
from comperdial.config.studies import DATASET, read_study
from comperdial.core.errors import NothingToShowError
from comperdial.report import dataset, render

KEY = {"dataset": "d", "level": "turn", "against": "turn", "target": "Overall", "grouping": "pooled"}


class Made:
    """A folder of inputs."""

    def __init__(self, folder: Path, **about: Any) -> None:
        self.folder = folder
        self.inputs: dict[str, list[Path]] = {"about": [folder / "about.json"]}
        known = {
            "dataset": "d", "title": "D", "source": "human", "target": None, "main_target": "Overall",
            "not_run": {"gone": "no model"},
            "recorded_of": {}, "metrics": [], "labels": {"a": "A"}, "outputs": ["a:o", "b:o", "c:o"], "judges": {}, "apart": [],
            "systems_outputs": ["a:o"], "agreement": {"seed": 1, "resamples": 20},
        }  # fmt: skip
        (folder / "about.json").write_text(json.dumps(known | about))

    def put(self, name: str, records: list[dict[str, Any]], key: str | None = None) -> None:
        columns = list(schema.table(name).columns)
        frame = pd.DataFrame(records, columns=None if records else columns).reindex(columns=columns)
        schema.write(self.folder / f"{name}.parquet", frame, name)
        self.inputs[key or name] = [self.folder / f"{name}.parquet"]

    def lines(self, name: str) -> list[str]:
        return render.markdown(self.table(name)).splitlines()

    def table(self, name: str) -> render.Table:
        entry = {"name": name, **read_study(DATASET)["tables"][name]}
        made: render.Table = getattr(dataset, entry["function"])(self.inputs, {"entry": entry, "datasets": ["d"]})
        return made


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path)


def result(metric: str, value: float | None, coefficient: str = "spearman", **more: Any) -> dict[str, Any]:
    names = {"metric": metric, "output": "o", "coefficient": coefficient, "value": value, "p": 0.01, "n": 50}
    return KEY | names | {"coverage": 1.0, "cut": 0, "signature": f"{metric}|v:1"} | more


def pair(a: str, b: str, p: float, difference: float = 0.1, **more: Any) -> dict[str, Any]:
    names = {"metric_a": a, "output_a": "o", "metric_b": b, "output_b": "o", "coefficient": "spearman"}
    return KEY | names | {"p": p, "n": 9, "test": "a test", "difference": difference} | more


PAIRS = [pair("a", "b", 0.01), pair("a", "c", 0.001, 0.2), pair("b", "c", 0.6)]


def test_all_correlations_the_best_first(made: Made) -> None:
    made.put(
        "correlations", [result("b", 0.2), result("a", 0.4, low=0.3, high=0.5), result("c", None, coverage=0.0, n=0)]
    )
    made.put("pairs", PAIRS)
    lines = made.lines("correlations")
    at = lines.index("## Turn level, ratings of turns")
    assert lines[at + 2 : at + 6] == [
        "| Metric | Spearman value |",
        "|:--|--:|",
        "| A, o | **0.400 [0.30, 0.50] #1** |",
        r"| b o | 0.200 #2 |",
    ]
    table = made.table("correlations")
    assert table.headline.startswith(
        "Over 50 responses, A, o has the highest correlation with people's ratings of turns"
    )
    assert "it is significantly better than the other (Holm" in table.headline
    assert table.not_run == {"c o": "no rated response of d has a score", "gone": "no model"}
    assert "A (a) is a|v:1" in table.notes
    assert "signature" not in table.frame and len(table.frame) == 3


def test_local_has_its_value_within_systems(made: Made) -> None:
    rows = [result("local", 0.6), result("local", 0.25, grouping="system"), result("a", 0.5)]
    made.put("correlations", rows)
    made.put("pairs", [])
    assert made.table("correlations").frame.set_index("metric").loc["local", "within_systems"] == 0.25
    assert any(line.startswith("| local o |") and line.endswith("| 0.250 |") for line in made.lines("correlations"))


def test_other_measures_beside_pooled_correlations(made: Made) -> None:
    rows = [result("a", 0.4), result("a", 0.3, grouping="item", low=0.2, high=0.4, p=None), result("b", 0.9)]
    made.put("correlations", rows)
    made.put("pairs", [])
    lines = made.lines("measures")
    assert (
        "| Metric | Spearman pooled | Spearman by item |" in lines and "| A, o | 0.400 | 0.300 [0.20, 0.40] |" in lines
    )
    assert not any(line.startswith("| b o") for line in lines)


def test_the_matrix_of_comparisons(made: Made) -> None:
    made.put("pairs", PAIRS)
    lines = made.lines("comparisons")
    assert "| Turn level, ratings of turns, Spearman | 3 | 2 | 2 | 2 |" in lines
    assert "| 1 | A, o | 2 | 0 | 0 |  | + | + |" in lines and "| 2 | b o | 0 | 1 | 1 | − |  | o |" in lines
    frame = made.table("comparisons").frame
    assert frame[["a", "b", "spearman_difference"]].to_numpy().tolist()[0] == ["A, o", "b o", 0.1]


def test_power_says_from_which_size_on_it_is_enough(made: Made) -> None:
    names = {"metric_a": "a", "output_a": "o", "metric_b": "b", "output_b": "o", "coefficient": "spearman"}
    sizes = {10: 0.3, 30: 0.85, 100: 0.9}
    rows = [KEY | names | {"varied": "systems", "size": n, "power": p, "difference": 0.04} for n, p in sizes.items()]
    made.put("power", rows)
    lines = made.lines("power")
    assert "| b o | 0.040 | 0.30 | 0.85 | 0.90 | 30 |" in lines and "| 0.02 to 0.05 | 1 | 0.30 | 0.85 | 0.90 |" in lines
    assert made.table("power").frame["power_30"].tolist() == [0.85]


def test_curves_show_agreement_and_the_width_of_the_band(made: Made) -> None:
    rows = [
        KEY | {"metric": metric, "output": "o", "coefficient": "spearman", "varied": "dialogues", "size": 10, "agreement": 0.7}
        | {"value": 0.4, "low": 0.1, "high": high, "repeats": 100}
        for metric, high in (("a", 0.3), ("b", 0.5))
    ]  # fmt: skip
    made.put("curves", rows)
    assert "| Turn level, ratings of turns, Spearman | 0.70 | 0.30 |" in made.lines("curves")


@pytest.mark.parametrize("name", ["comparisons", "power", "curves"])
def test_nothing_to_compare_is_said(made: Made, name: str) -> None:
    made.put("pairs" if name == "comparisons" else name, [])
    with pytest.raises(NothingToShowError, match="it takes two metrics"):
        made.table(name)


def test_systems_and_agreement_of_raters(made: Made) -> None:
    rated = [
        {"dataset": "d", "level": "turn", "item_id": item, "system_id": system, "annotator_id": who, "dimension": "Overall"}
        | {"rating": rating, "scale_min": 1.0, "scale_max": 5.0, "source": "human"}
        for item, system, who, rating in (
            ("c1", "bot", "x", 2.0), ("c1", "bot", "y", 4.0), ("c2", "bot", "x", 5.0), ("c2", "bot", "y", 5.0),
            ("c1", "man", "x", 5.0),
        )
    ]  # fmt: skip
    score = {"dataset": "d", "level": "turn", "metric": "a", "output": "o", "cut": 2, "signature": "a|v:1"}
    made.put("ratings", rated)
    system, answer = {"dataset": "d", "description": "-"}, {"dataset": "d", "response": "x"}
    made.put("systems", [system | {"system_id": s, "kind": k} for s, k in (("bot", "agent"), ("man", "human"))])
    cells = [("c1", "bot"), ("c1", "man"), ("c2", "bot"), ("c2", "man")]
    made.put("responses", [answer | {"context_id": c, "system_id": s} for c, s in cells])
    made.put("scores", [score | {"item_id": "c1", "system_id": "bot", "value": 0.5}])
    (made.folder / "scores.parquet").rename(made.folder / "a.parquet")
    made.inputs["scores"] = [made.folder / "a.parquet"]
    context = {"dataset": "d", "turn": 0, "history": [], "references": [], "facts": []}
    contexts = [context | {"context_id": c, "dialogue_id": c} for c in ("c1", "c2")]
    made.put("contexts", contexts)
    lines = made.lines("systems")
    assert lines.index("| man | human | – | 2 | 5.000 | not rated | – |") < lines.index(
        "| bot | agent | – | 2 | 4.000 [1.00, 5.00] | not rated | 0.500 |"
    )
    assert "- A, o: 1 of 4 responses have a score" in lines
    frame = made.table("alpha").frame
    assert set(frame["statistic"]) >= {"alpha_ordinal", "bias", "spearman"}
    assert "| Turn level | Overall | x | 2 | 3.500 | -1.000 |" in "\n".join(made.lines("alpha"))


def test_judges_are_counted_once_per_answer(tmp_path: Path) -> None:
    made = Made(tmp_path, judges={"v_j": {"label": "V by j"}}, not_run={"v_k": "no key", "gone": "no model"})
    base = {"dataset": "d", "level": "turn", "metric": "v_j", "output": "o", "tries": 1, "sample": 0, "cost": 0.01}
    base |= {"item_id": "c1", "input_tokens": 10, "output_tokens": 2}
    answers = (("s", "k1", 3.0, None), ("t", "k1", 3.0, None), ("u", "k2", None, "no rating"))
    rows = [base | dict(zip(("system_id", "key", "value", "failure"), one, strict=True)) for one in answers]
    made.put("judgements", rows)
    assert "| V by j | 3 | 2 | 1 | 0 | 1 | 20 | 4 | 0.02 |" in made.lines("judges")
    assert "V by j: not readable: no rating" in made.table("judges").notes
