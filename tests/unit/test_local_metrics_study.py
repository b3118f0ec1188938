"""The study of local metrics: its tables and figure from results of data sets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from comperdial import schema
from comperdial.config.studies import read_study
from comperdial.core.errors import UnknownNameError
from comperdial.report import render
from comperdial.studies import local_metrics

ROWS = [
    {"label": "local", "metric": "local", "output": "local", "figure": True},
    {"label": "METEOR", "metric": "meteor", "output": "meteor"},
    {"label": "GPT-4 (recorded)", "metric": "gpt-4_recorded", "output": "mean", "figure": True},
    {"label": "DEnsity", "metric": "density", "output": "density"},
]
PLANNED = {
    "metric": "gpt-4_recorded:mean",
    "against": "local:local",
    "datasets": ["two", "one"],
    "note": "named afterwards",
}


def result(dataset: str, metric: str, value: float, **more: Any) -> dict[str, Any]:
    return dict.fromkeys(schema.table("correlations").columns) | {
        "dataset": dataset, "level": "turn", "against": "turn", "target": "overall", "metric": metric,
        "output": "mean" if metric == "gpt-4_recorded" else metric, "grouping": "pooled", "coefficient": "spearman",
        "value": value, "low": value - 0.2, "high": value + 0.2, "p": 0.01, "n": 24, "coverage": 1.0, "cut": 0,
        "signature": metric,
    } | more  # fmt: skip


def pair(dataset: str, a: str, b: str, difference: float, p: float) -> dict[str, Any]:
    outputs = {"gpt-4_recorded": "mean"}
    return dict.fromkeys(schema.table("pairs").columns) | {
        "dataset": dataset, "level": "turn", "against": "turn", "target": "overall", "grouping": "pooled",
        "coefficient": "spearman", "metric_a": a, "output_a": outputs.get(a, a), "metric_b": b,
        "output_b": outputs.get(b, b), "difference": difference, "low": difference - 0.1, "high": difference + 0.1, "p": p,
        "n": 24, "test": "jackknife",
    }  # fmt: skip


@pytest.fixture
def made(tmp_path: Path) -> tuple[dict[str, list[Path]], dict[str, Any]]:
    results = [
        result("one", "local", 0.5, loso_value=0.4, loso_system="x"),
        result("one", "local", 0.25, grouping="system", n=2, p=np.nan, low=np.nan, high=np.nan),
        result("one", "local", 0.35, grouping="agents", n=20),
        result("one", "meteor", 0.2),
        result("one", "f1", 0.7),
        result("one", "density", np.nan, n=0, coverage=0.0, low=np.nan, high=np.nan),
        result("two", "local", 0.3, loso_value=0.1, loso_system="y"),
        result("two", "gpt-4_recorded", 0.6),
        result("two", "local", 0.7, target="style"),
        result("two", "local", 0.7, level="system"),
    ]
    pairs = [pair("one", "local", "meteor", 0.3, 0.001), pair("one", "f1", "local", 0.4, 0.9)]
    pairs += [pair("two", "gpt-4_recorded", "local", 0.3, 0.04)]
    inputs: dict[str, list[Path]] = {"correlations": [], "pairs": [], "about": [], "costs": [tmp_path / "costs.csv"]}
    for dataset in ("one", "two"):
        about = {
            "dataset": dataset,
            "title": f"Set {dataset}",
            "source": "human",
            "target": "overall",
            "main_target": None,
        }
        about |= {"labels": {}, "not_run": {"density": "no weights"}}
        (tmp_path / f"{dataset}.json").write_text(json.dumps(about))
        inputs["about"].append(tmp_path / f"{dataset}.json")
        for name, rows in (("correlations", results), ("pairs", pairs)):
            path = tmp_path / f"{dataset}_{name}.parquet"
            schema.write(path, pd.DataFrame([row for row in rows if row["dataset"] == dataset]), name)
            inputs[name].append(path)
    inputs["costs"][0].write_text("metric,seconds,usd,how,machine,date\nlocal,12.3,0,measured,a laptop,2026-01-01\n")
    entry = {"name": "local_metrics", "rows": ROWS, "title": "T", "caption": "C."}
    entry["columns"] = read_study("local_metrics")["tables"]["local_metrics"]["columns"]
    study = {"name": "local_metrics", "datasets": ["one", "two"], "planned_contrasts": [PLANNED], "entry": entry}
    return inputs, study | {"tables": {"local_metrics": entry}}


def test_rows_have_values_ranks_and_restrictions_below_them(made, tmp_path):
    inputs, study = made
    table = local_metrics.table(inputs, study)
    page = render.markdown(table)
    assert "| local | 0.400 | **0.500 [0.30, 0.70] #1** | 0.300‡ [0.10, 0.50] #2 |" in page
    assert "| local, within systems | – | 0.250 | – |" in page
    assert "| local, without human responses | – | 0.350 [0.15, 0.55] | – |" in page
    # No mean over some of the sets, which would look like one over all; another metric's pairs are not corrected for.
    assert "| METEOR | – | 0.200 [0.00, 0.40] #2 | – |" in page
    assert "over all pairs of its rows: 1 test" in page
    assert "Not run: density: no weights" in page
    assert "| local | 12.3 | 0.00 | measured |" in page
    frame = table.frame.set_index(["label", "dataset"])
    # Within systems n counts responses, as in the row above.
    assert frame.loc[("local, within systems", "one"), "n"] == 24
    assert frame.loc[("local, without human responses", "one"), "n"] == 20
    assert set(frame["target"]) == {"overall"}
    assert set(frame["level"]) == {"turn"}


def test_planned_contrasts_are_signed_and_corrected_over_themselves(made):
    inputs, study = made
    table = local_metrics.contrasts(inputs, study)
    of = table.frame.set_index("dataset")
    assert of.loc["two", "difference"] == pytest.approx(0.3)
    assert of.loc["two", "p_adjusted"] == pytest.approx(0.04)
    assert pd.isna(of.loc["one", "p"])
    page = render.markdown(table)
    assert "| GPT-4 (recorded) minus local | Set two | +0.300 [0.200, 0.400] | 0.040 | 0.040 |" in page
    assert "not tested on Set one" in page
    assert "named afterwards" in page


@pytest.mark.parametrize(
    ("change", "message"), [({"against": "local:locl"}, "local:local"), ({"datasets": ["tow"]}, "two")]
)
def test_a_contrast_names_rows_and_data_sets_of_the_study(made, change, message):
    inputs, study = made
    with pytest.raises(UnknownNameError, match=f"Did you mean '{message}'"):
        local_metrics.contrasts(inputs, study | {"planned_contrasts": [PLANNED | change]})


def test_the_figure_shows_the_rows_that_are_marked_for_it(made):
    inputs, study = made
    figure, frame = local_metrics.figure(inputs, study | {"entry": {"title": "T", "notes": "N"}})
    assert frame["label"].tolist() == ["local", "local", "GPT-4 (recorded)"]
    assert [ax.get_title(loc="left") for ax in figure.axes[:2]] == ["Set one", "Set two"]
