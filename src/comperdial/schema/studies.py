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
    filled,
    name_field,
    one_of,
    optional,
    p_value,
    rank,
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
            *(Field(name, pa.float64(), nullable=True, may_lack=True) for name in ("lowest", "highest")),
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
        "between_dimensions",
        (
            name_field("dataset"),
            name_field("who"),
            name_field("dimension_a"),
            name_field("dimension_b"),
            coefficient("value"),
            count_field("n"),
            optional("signature", pa.string(), filled, "a signature"),
        ),
        key=("dataset", "who", "dimension_a", "dimension_b"),
    ),
    Table(
        "overall",
        (
            name_field("board"),
            name_field("task"),
            name_field("coefficient"),
            name_field("metric"),
            name_field("output"),
            coefficient("value"),
            coefficient("low"),
            coefficient("high"),
            count_field("n"),
            _share("weight"),
            _share("coverage"),
            rank("rank"),
            rank("rank_wmt"),
            optional("lacking", pa.string(), filled, "what is missing"),
            name_field("signature"),
        ),
        key=("board", "task", "metric", "output"),
    ),
    Table(
        "overall_pairs",
        (
            name_field("board"),
            name_field("task"),
            name_field("dataset"),
            count_field("systems"),
            count_field("pairs"),
            count_field("with_human"),
        ),
        key=("board", "task", "dataset"),
    ),
    Table(
        "overall_comparisons",
        (
            name_field("board"),
            name_field("task"),
            name_field("metric_a"),
            name_field("output_a"),
            name_field("metric_b"),
            name_field("output_b"),
            Field("difference", pa.float64(), check=lambda v: -2.0001 <= v <= 2.0001, expected="-2 to 2"),
            p_value("p"),
            p_value("p_adjusted"),
            p_value("p_fdr"),
            p_value("p_wmt"),
            name_field("test"),
        ),
        key=("board", "task", "metric_a", "output_a", "metric_b", "output_b"),
    ),
)
