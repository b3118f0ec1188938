"""The tables as they are defined: columns, types, keys, and what each value must satisfy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from comperdial.core.errors import UnknownNameError
from comperdial.core.names import LEVELS, RATED_LEVELS
from comperdial.schema.fields import (
    LEAVE_ONE_OUT,
    UTTERANCES,
    Field,
    RowCheck,
    Table,
    coefficient,
    count_field,
    filled,
    is_text,
    list_of_texts,
    name_field,
    number_field,
    one_of,
    optional,
    p_value,
    utterances,
)
from comperdial.schema.studies import STUDIES
from comperdial.stats import MEASURES

SYSTEM_KINDS = ("agent", "human", "reference")
# ``agents``: pooled, without the responses of human systems.
GROUPINGS = ("pooled", "item", "system", "agents")
# The two that a pair compares; which of them a person saw on the left is chance.
SIDES = ("first", "second")
# Whether an annotator took part in the dialogue.
ROLES = ("interlocutor", "outsider")
SPLITS = ("train", "validation", "test")
# No scale of ratings has larger numbers; sums of their products must not overflow.
LARGEST_RATING = 1e15


# What a correlation is of: scores of one level against ratings of one level and one dimension.
_OF_SAMPLE = (name_field("dataset"), one_of("level", LEVELS), one_of("against", RATED_LEVELS), name_field("target"))
_SAMPLE_KEY = ("dataset", "level", "against", "target")
# What an interval is over: what was drawn at random, and what is given.
OVER = ("systems and contexts", "contexts, these systems", "contexts")
_DIFFERENCE = (lambda value: -2.0001 <= value <= 2.0001, "-2 to 2")
# Two outputs, the better first, and the difference of their correlations.
_PAIR = (
    *(name_field(f"{what}_{side}") for side in "ab" for what in ("metric", "output")),
    Field("difference", pa.float64(), False, *_DIFFERENCE),
)
# What subsampling makes less of.
VARIED = ("systems", "dialogues", "annotators", "samples")

TABLES: Mapping[str, Table] = {
    table.name: table
    for table in (
        Table(
            "systems",
            (
                name_field("dataset"),
                name_field("system_id"),
                one_of("kind", SYSTEM_KINDS),
                optional("track", pa.string(), is_text, "a text"),
                Field("description", pa.string(), check=is_text, expected="a text"),
            ),
            key=("dataset", "system_id"),
        ),
        Table(
            "contexts",
            (
                name_field("dataset"),
                name_field("context_id"),
                name_field("dialogue_id"),
                Field("turn", pa.int32(), check=lambda v: v >= 0, expected="a turn counted from 0"),
                Field("history", UTTERANCES, check=utterances, expected="a list of {speaker, text}"),
                list_of_texts("references"),
                list_of_texts("facts"),
            ),
            key=("dataset", "context_id"),
        ),
        Table(
            "personas",
            (
                name_field("dataset"),
                name_field("dialogue_id"),
                name_field("speaker"),
                list_of_texts("sentences"),
                list_of_texts("kinds"),
            ),
            key=("dataset", "dialogue_id", "speaker"),
            row_check=RowCheck(
                holds=lambda frame: frame["sentences"].map(len) == frame["kinds"].map(len),
                problem=lambda row: f"{len(row['sentences'])} sentences and {len(row['kinds'])} kinds",
                expected=lambda _row: "one kind a sentence",
            ),
        ),
        Table(
            "responses",
            (
                name_field("dataset"),
                name_field("context_id"),
                name_field("system_id"),
                Field("response", pa.string(), check=filled, expected="a response that is not empty"),
            ),
            key=("dataset", "context_id", "system_id"),
        ),
        Table(
            "ratings",
            (
                name_field("dataset"),
                one_of("level", RATED_LEVELS),
                name_field("item_id"),
                name_field("system_id"),
                name_field("annotator_id"),
                optional("position", pa.int32(), lambda value: value >= 0, "a whole number of 0 or more"),
                name_field("dimension"),
                number_field("rating", LARGEST_RATING),
                number_field("scale_min", LARGEST_RATING),
                number_field("scale_max", LARGEST_RATING),
                name_field("source"),
            ),
            key=("dataset", "level", "item_id", "system_id", "annotator_id", "dimension"),
            row_check=RowCheck(
                holds=lambda frame: frame["rating"].between(frame["scale_min"], frame["scale_max"]),
                problem=lambda row: f"rating {row['rating']:g} is outside its scale",
                expected=lambda row: f"{row['scale_min']:g} to {row['scale_max']:g}",
            ),
        ),
        Table(
            "preferences",
            (
                name_field("dataset"),
                name_field("pair_id"),
                *(name_field(f"{side}_{what}") for side in SIDES for what in ("dialogue_id", "system_id")),
                name_field("annotator_id"),
                name_field("question"),
                one_of("choice", (*SIDES, "tie")),
                optional("left", pa.string(), SIDES.__contains__, "first or second"),
                optional("control", pa.string(), SIDES.__contains__, "first or second"),
                optional("reason", pa.string(), filled, "a text that is not empty"),
                optional("seconds", pa.float64(), lambda value: 0 <= value < math.inf, "seconds, 0 or more"),
                name_field("source"),
            ),
            key=("dataset", "pair_id", "annotator_id", "question"),
            row_check=RowCheck(
                holds=lambda frame: (
                    (frame["first_dialogue_id"] != frame["second_dialogue_id"])
                    | (frame["first_system_id"] != frame["second_system_id"])
                ),
                problem=lambda row: (
                    f"{row['first_system_id']!r} in dialogue {row['first_dialogue_id']!r} is compared with itself"
                ),
                expected=lambda _row: "another system or another dialogue",
            ),
        ),
        Table(
            "annotators",
            (name_field("dataset"), name_field("annotator_id"), one_of("role", ROLES)),
            key=("dataset", "annotator_id"),
        ),
        Table(
            "continuations",
            (
                name_field("dataset"),
                name_field("context_id"),
                name_field("system_id"),
                name_field("user_id"),
                Field("continued", pa.int32(), check=(0, 1).__contains__, expected="0 or 1"),
                optional("seconds", pa.float64(), lambda value: 0 <= value < math.inf, "seconds, 0 or more"),
                optional("began", pa.float64(), math.isfinite, "a finite number of seconds"),
                one_of("split", SPLITS),
            ),
            key=("dataset", "context_id", "system_id"),
        ),
        Table(
            "scores",
            (
                name_field("dataset"),
                one_of("level", LEVELS),
                name_field("item_id"),
                name_field("system_id"),
                name_field("metric"),
                name_field("output"),
                number_field("value"),
                count_field("cut", default=0),
                name_field("signature"),
            ),
            key=("dataset", "level", "item_id", "system_id", "metric", "output"),
        ),
        Table(
            "judgements",
            (
                name_field("dataset"),
                one_of("level", LEVELS),
                name_field("item_id"),
                name_field("system_id"),
                name_field("metric"),
                name_field("output"),
                count_field("sample"),
                optional("key", pa.string(), is_text, "a text"),
                count_field("tries"),
                optional("value", pa.float32(), math.isfinite, "a finite number"),
                optional("failure", pa.string(), filled, "a text that is not empty"),
                optional("rationale", pa.string(), filled, "a text that is not empty"),
                optional("input_tokens", pa.int32(), lambda value: value >= 0, "a count"),
                optional("output_tokens", pa.int32(), lambda value: value >= 0, "a count"),
                optional("cost", pa.float64(), lambda value: value >= 0, "US dollars"),
            ),
            key=("dataset", "level", "item_id", "system_id", "metric", "output", "sample"),
            row_check=RowCheck(
                holds=lambda frame: frame["value"].isna() != frame["failure"].isna(),
                problem=lambda row: f"value {row['value']} and failure {row['failure']!r}",
                expected=lambda _row: "either a value or why there is none",
            ),
        ),
        Table(
            "correlations",
            (
                *_OF_SAMPLE,
                name_field("metric"),
                name_field("output"),
                one_of("grouping", GROUPINGS),
                one_of("coefficient", MEASURES),
                coefficient("value"),
                coefficient("low"),
                coefficient("high"),
                # Not in tables written before 0.14.
                Field("over", pa.string(), True, OVER.__contains__, "one of " + "; ".join(OVER), may_lack=True),
                *LEAVE_ONE_OUT,
                p_value("p"),
                replace(p_value("p_exact"), may_lack=True),
                count_field("n"),
                Field("coverage", pa.float64(), check=lambda v: 0 <= v <= 1, expected="0 to 1"),
                count_field("cut"),
                optional("lacking", pa.string(), filled, "what is missing"),
                name_field("signature"),
            ),
            key=("dataset", "level", "against", "target", "metric", "output", "grouping", "coefficient"),
        ),
        Table(
            "ceilings",
            (
                *_OF_SAMPLE,
                one_of("grouping", GROUPINGS),
                one_of("coefficient", MEASURES),
                name_field("annotator_id"),
                coefficient("value"),
                count_field("n"),
            ),
            key=("dataset", "level", "against", "target", "grouping", "coefficient", "annotator_id"),
        ),
        Table(
            "pairs",
            (
                *_OF_SAMPLE,
                one_of("grouping", GROUPINGS),
                one_of("coefficient", MEASURES),
                *_PAIR,
                *(optional(name, pa.float64(), *_DIFFERENCE) for name in ("low", "high")),
                optional("over", pa.string(), OVER.__contains__, "one of " + "; ".join(OVER)),
                *(p_value(name) for name in ("p", "p_wmt", "p_perm_both", "p_williams")),
                count_field("n"),
                name_field("test"),
            ),
            key=(*_SAMPLE_KEY, "grouping", "coefficient", "metric_a", "output_a", "metric_b", "output_b"),
        ),
        Table(
            "curves",
            (
                *_OF_SAMPLE,
                one_of("coefficient", MEASURES),
                one_of("varied", VARIED),
                count_field("size"),
                name_field("metric"),
                name_field("output"),
                coefficient("value"),
                coefficient("low"),
                coefficient("high"),
                coefficient("agreement"),
                count_field("repeats"),
            ),
            key=(*_SAMPLE_KEY, "coefficient", "varied", "size", "metric", "output"),
        ),
        Table(
            "power",
            (
                *_OF_SAMPLE,
                one_of("grouping", GROUPINGS),
                one_of("coefficient", MEASURES),
                one_of("varied", VARIED),
                count_field("size"),
                *_PAIR,
                p_value("power"),
            ),
            key=(
                *_SAMPLE_KEY,
                "grouping",
                "coefficient",
                "varied",
                "size",
                "metric_a",
                "output_a",
                "metric_b",
                "output_b",
            ),
        ),
        *STUDIES,
    )
}


def table(name: str) -> Table:
    """Return a table by name, or raise :class:`UnknownNameError` with the nearest names."""
    if name not in TABLES:
        raise UnknownNameError("table", name, TABLES)
    return TABLES[name]
