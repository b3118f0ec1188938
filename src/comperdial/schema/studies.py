"""Tables that a study of judges adds: correlations by rated dimension and source, robustness, agreement of rounds."""

from __future__ import annotations

import pyarrow as pa

from comperdial.core.names import RATED_LEVELS
from comperdial.schema.fields import (
    LEAVE_ONE_OUT,
    Field,
    RowCheck,
    Table,
    coefficient,
    count_field,
    name_field,
    one_of,
    p_value,
)
from comperdial.stats import COEFFICIENTS


def _share(name: str) -> Field:
    return Field(name, pa.float64(), check=lambda value: 0 <= value <= 1, expected="0 to 1")


STUDIES = (
    Table(
        "dimension_correlations",
        (
            name_field("dataset"),
            name_field("source"),
            one_of("level", RATED_LEVELS),
            name_field("dimension"),
            name_field("metric"),
            name_field("output"),
            one_of("coefficient", COEFFICIENTS),
            coefficient("value"),
            coefficient("low"),
            coefficient("high"),
            *LEAVE_ONE_OUT,
            p_value("p"),
            count_field("n"),
            _share("coverage"),
            name_field("signature"),
        ),
        key=("dataset", "source", "dimension", "metric", "output", "coefficient"),
    ),
    Table(
        "ratios",
        (
            name_field("dataset"),
            name_field("perturbation"),
            one_of("level", RATED_LEVELS),
            name_field("dimension"),
            name_field("metric"),
            name_field("output"),
            Field("threshold", pa.float64(), check=lambda value: 0 <= value <= 1, expected="0 to 1"),
            p_value("ratio"),
            p_value("low"),
            p_value("high"),
            p_value("ties"),
            count_field("n"),
            _share("coverage"),
            name_field("signature"),
        ),
        key=("dataset", "perturbation", "dimension", "metric", "output", "threshold"),
        row_check=RowCheck(
            holds=lambda frame: (frame["n"] == 0) | frame["ratio"].notna(),
            problem=lambda row: f"no ratio of {row['n']} pairs",
            expected=lambda _row: "a ratio, or no pairs",
        ),
    ),
    Table(
        "rounds",
        (
            name_field("dataset"),
            name_field("source"),
            name_field("dimension"),
            name_field("annotator_a"),
            name_field("annotator_b"),
            coefficient("pearson"),
            coefficient("spearman"),
            count_field("n"),
        ),
        key=("dataset", "source", "dimension", "annotator_a", "annotator_b"),
    ),
)
