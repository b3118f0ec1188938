"""The sentence that answers an evaluation never says more than the tests allow."""

from typing import Any

import pandas as pd
import pytest

from comperdial.report.headline import headline, not_run

_OF = {"level": "turn", "against": "turn", "target": "Overall", "grouping": "pooled", "coefficient": "spearman"}
_ROW = {"low": 0.3, "high": 0.5, "over": None, "loso_value": None, "loso_system": None, "p": 0.001}
_ROW |= {"p_exact": None, "n": 240, "coverage": 1.0}


def _rows(**values: Any) -> pd.DataFrame:
    """Return correlations: of each metric a value, or what differs from the usual row."""
    rows = [
        _OF | _ROW | {"metric": m, "output": m} | (v if isinstance(v, dict) else {"value": v})
        for m, v in values.items()
    ]
    return pd.DataFrame(rows).astype({"value": "float64", "low": "float64"})


def _pairs(*tests: tuple[str, str, float, float | None]) -> pd.DataFrame:
    names = ["metric_a", "metric_b", "difference", "p_adjusted"]
    frame = pd.DataFrame(tests, columns=names).assign(**_OF)
    frame[["output_a", "output_b"]] = frame[["metric_a", "metric_b"]]
    return frame.astype({"p_adjusted": "float64"})


_THREE = _rows(a=0.4, b=0.3, c=0.2)


@pytest.mark.parametrize(
    ("correlations", "pairs", "expected"),
    [
        (_THREE, [("a", "b", 0.1, 0.3), ("a", "c", 0.2, 0.2), ("b", "c", 0.1, 0.01)],
         "none of the 2 others can be separated from it (Holm-corrected paired tests at 0.05)."),
        (_THREE, [("a", "b", 0.1, 0.01), ("c", "a", -0.2, 0.01)], "it is significantly better than all 2 others"),
        (_THREE, [("b", "a", -0.1, 0.3), ("a", "c", 0.2, 0.01)],
         "1 of the 2 others cannot be separated from it, 1 correlates significantly worse"),
        (_THREE, [("a", "b", 0.1, None), ("a", "c", 0.2, 0.01)], "1 correlates significantly worse, 1 was not tested"),
        (_THREE, [("a", "b", -0.1, 0.01), ("a", "c", 0.2, 0.2)], "1 correlates better where both have scores"),
        (_THREE, [("a", "b", 0.1, 0.01)], "it is significantly better than the other ("),
        (_THREE, [("b", "c", 0.1, 0.2)], "Over 240 responses, of the 2 metrics that were tested, b has the highest correlation"),
        (_THREE, [("b", "c", 0.1, 0.2)], "; higher, but not tested: a with 0.400."),
        (_rows(a=0.4), [], "no other metric was compared with it."),
        (_rows(human=0.9, a=0.4), [], "Over 240 responses, a has the highest correlation"),
        (_rows(a={"value": 0.4, "low": -0.1}), [], "Spearman's ρ 0.400 [-0.10, 0.50], an interval that includes 0;"),
        (_rows(a={"value": 0.4, "low": None, "p": 0.2}), [], "0.400, not significant;"),
        (_rows(a={"value": -0.2, "low": -0.3, "high": -0.1}), [], "none correlates positively"),
        (_rows(a={"value": 0.4, "loso_system": "Human", "loso_value": 0.1}), [], "(without Human: 0.100)"),
        (_rows(a={"value": 0.4, "loso_system": "Human", "loso_value": 0.3}), [], "[0.30, 0.50]; no other"),
        (_rows(a={"value": 0.4, "over": "contexts, these systems"}), [], ", for these systems only;"),
        (_rows(a={"value": 0.4, "coverage": 0.62}), [], "Over 240 responses (62 % of those rated), a has"),
        (_rows(a={"value": 0.8, "n": 4, "level": "system"}), [], "Over 4 systems, a has"),
        (_rows(a={"value": 0.8, "n": 4, "level": "system"}), [], "Spearman's ρ 0.80 ["),
        (_rows(a={"value": 0.4, "coefficient": "kendall"}), [], "Kendall's τ 0.400"),
        (_rows(a=None), [], "No metric has a correlation with people's ratings."),
    ],
)  # fmt: skip
def test_the_sentence_says_what_the_tests_allow(correlations: pd.DataFrame, pairs: list[Any], expected: str) -> None:
    assert expected in headline(correlations, _pairs(*pairs))


@pytest.mark.parametrize(
    ("source", "expected"),
    [("human", "with people's ratings"), ("simulated", "with SIMULATED ratings"), ("gpt", "with gpt's (no person's) ratings")],
)  # fmt: skip
def test_the_sentence_names_who_rated(source: str, expected: str) -> None:
    assert expected in headline(_THREE, _pairs(), source=source)


def test_the_finest_level_and_the_name_of_an_output_are_used() -> None:
    both = pd.concat([_rows(a={"value": 0.9, "level": "system", "n": 4}), _THREE])
    assert headline(both, _pairs(), {"a:a": "BLEU-4"}).startswith("Over 240 responses, BLEU-4 has")


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        ({}, ""),
        ({"bleu": "no references"}, "Not run: bleu: no references"),
        ({"a": "model 'x' is not present", "b": "model 'y' is not present", "c": "takes 3 minutes"},
         "Not run: 3 metrics and judges: 2 (their model is not on this machine), 1 (takes 3 minutes)"),
        ({"a": "w" * 100, "b": "v" * 200}, "Not run: 2 metrics and judges: 2 (other reasons)"),
    ],
)  # fmt: skip
def test_what_was_not_run_is_counted_by_reason(reasons: dict[str, str], expected: str) -> None:
    assert not_run(reasons) == expected
