"""The notebooks: no hard-coded results, and the values they read and show."""

import ast
import re

import jupytext
import numpy as np
import pandas as pd
import pytest

from comperdial import schema
from comperdial.core.errors import MissingResourceError
from comperdial.report import reading, showing
from conftest import ROOT
from ratedtables import rating_rows

SOURCES = sorted((ROOT / "notebooks").glob("*.py"))


def cells(source, kind):
    return [cell.source for cell in jupytext.read(source).cells if cell.cell_type == kind]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_no_hard_coded_results_and_ipynb_in_sync_without_outputs(source):
    """A result has decimals; text and code have none but in thresholds, which are numbers and not text."""
    for text in cells(source, "markdown"):
        assert not re.search(r"\d\.\d", re.sub(r"`[^`]*`", "", text)), text
    for code in cells(source, "code"):
        values = [node.value for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant)]
        assert not [text for text in values if isinstance(text, str) and re.search(r"\d\.\d\d", text)]
    expected, found = (
        [(cell.cell_type, cell.source, cell.metadata.get("tags")) for cell in jupytext.read(path).cells]
        for path in (source, source.with_suffix(".ipynb"))
    )
    assert found == expected, "`make format` brings it in step"
    assert not any(cell.get("outputs") for cell in jupytext.read(source.with_suffix(".ipynb")).cells)


def test_target_and_source_are_as_chosen_and_missing_result_is_reported(tmp_path, monkeypatch):
    units = [(f"c{n}", "a") for n in range(9)]
    simulated = rating_rows(units, range(9), dataset="demo", source="simulated")
    people = rating_rows(units[:7], range(7), dataset="demo", dimension="Engaging")
    for name in ("systems", "contexts", "responses"):
        schema.write(tmp_path / f"data/tables/demo/{name}.parquet", schema.empty(name), name)
    schema.write(tmp_path / "data/tables/demo/ratings.parquet", pd.concat([simulated, people]), "ratings")
    (tmp_path / "params.yaml").write_text("tables: {benchmark: demo}\n")
    monkeypatch.chdir(tmp_path)
    for name in (reading.TARGET_VARIABLE, reading.SOURCE_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    bench = reading.here("demo")
    assert (bench.target, bench.source, bench.simulated) == ("Overall", "simulated", True)
    monkeypatch.setenv(reading.TARGET_VARIABLE, "Engaging")
    monkeypatch.setenv(reading.SOURCE_VARIABLE, "human")
    assert len(reading.here("demo").ratings()) == 7 and not reading.here("demo").simulated
    missing = r"none/correlations\.parquet is missing.*make reproduce DATASETS=none"
    with pytest.raises(MissingResourceError, match=missing):
        reading.Reading(tmp_path, "none").result()


def test_output_is_escaped_and_missing_values_are_dashes():
    page = showing.show(pd.DataFrame({"text": ["<b>", None], "value": [0.1234, np.nan], "n": [12345, 1]}), index=False)
    assert "&lt;b&gt;" in page and "0.12" in page and "12,345" in page and page.count("–") == 2
    assert showing.quoted("a  b\n<c>") == "a b &lt;c&gt;" and showing.quoted("word " * 100, 20).endswith(" …")
