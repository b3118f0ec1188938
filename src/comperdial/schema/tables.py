"""Definitions of the tables: columns, types, keys and constraints; and the validation of a frame.

The rows of each table and the meaning of each column; the reference page is generated from these lists:

Tables
------
systems
    who answered: a dialogue system, a person, or the reference responses
contexts
    a point in a dialogue where a system responds
personas
    a speaker's persona, if the data set has personas
responses
    a system's response to a context
ratings
    one rating of one response (``level`` turn) or one whole dialogue, on one dimension, by one person or judge;
    never averaged. ComperDial's six axes of dialogues (``Fluency``, ``Coherence``, ``Consistency``,
    ``Engagingness``, ``Persona consistency``, ``Humanness``) are 0 if the rater marked a problem and 1 if not.
preferences
    one choice between two dialogues for one question, by one person or judge.
labels
    one label of an item, by one person or judge, without the item's text: for audits of judges.
annotators
    an annotator's role in a dialogue, if the data set states it
continuations
    whether the user continued after a response
scores
    a metric's score for one item; a score that could not be computed is absent. The demo's ``truth.parquet``
    has the same columns: metric ``simulated_truth`` is the truth without the raters' noise.
judgements
    one answer of a judge; scores are means of these.
correlations
    how well an output agrees with the ratings of a dimension
ceilings
    how well one annotator agrees with the mean of the others
pairs
    a paired test of two outputs on one data set; the p-values are not corrected
curves
    correlations on random subsets of the data
power
    the power of a test at 5 % to detect the difference between two metrics, with more or less data
dimension_correlations
    a correlation with the mean rating of each dimension, by source (study ``llm_evaluators``). Ensembles are
    metrics: ``ensemble-dimensions:<metric>``, ``ensemble-models:<name>``.
ratios
    how often a score falls when a response or dialogue is perturbed.
between_dimensions
    how two dimensions agree within one source of ratings or judge, over the items that have all five (study
    ``llm_evaluators``).
overall
    a metric's result on one task of an overall ranking, or on all tasks.
overall_pairs
    the number of pairs of systems in a task over system means, and how many of them include a human.
overall_comparisons
    a paired comparison of two metrics on a task or on all tasks; each pair once.

Columns
-------
dataset
    name of the data set
system_id
    the system
context_id
    the context: a point in a dialogue
dialogue_id
    the dialogue
item_id
    the ``context_id`` at turn level, the ``dialogue_id`` at dialogue level
kind
    ``agent``, ``human``, or ``reference`` (what the others are compared with; never scored)
track
    track of a challenge, if any
description
    description of the system; may be empty
turn
    index of the turn among the dialogue's evaluated turns, from 0
history
    utterances before the response, oldest first, each ``{speaker, text}``
references
    reference responses to compare with; may be empty
facts
    facts or persona sentences that a response may draw on; may be empty
speaker
    ``A`` or ``B``; B is the system under evaluation
sentences
    persona sentences
kinds
    the kind of each sentence: ``profile``; in ComperDial's format ``name``, ``age``, ``family``, ``head``,
    ``characteristic``, ``routine_habit``, ``goal_plan``, ``experience`` or ``other``, by its wording
response
    the text, not empty
annotator_id
    the annotator
position
    the rater's column in the source's files, from 0, if there are columns; it does not identify a person
dimension
    the rated quality, in the source's words
rating
    a number within its scale
scale_min
    lowest rating possible
scale_max
    highest rating possible
source
    source of the ratings: ``human``, the name of a judge, or ``simulated``; sources are never mixed
pair_id
    the pair of dialogues, or of turns of one chat
first_dialogue_id
    the first side's dialogue; if two systems talk to each other, both sides have the same dialogue
first_system_id
    the system judged in the first dialogue
second_dialogue_id
    the other side's dialogue
second_system_id
    the system judged in the second dialogue
question
    the question asked: ``overall``, ``engagingness``, …, in the source's words
choice
    ``first``, ``second`` or ``tie``
left
    the side shown on the left; missing if unknown
control
    for a control pair, the side known to be better
reason
    the annotator's own words
seconds
    how long the annotator took; in ``continuations`` how long until the user's next message
cluster
    group of related items, such as questions about one text or pairs for one instruction
label
    the class, in the source's words, or a whole number
role
    ``interlocutor`` (took part in the dialogue) or ``outsider``
user_id
    the user being answered; a number assigned here, never a name
continued
    1 if the user continued, 0 if not
began
    seconds from the data set's first dialogue to the start of this one
split
    ``train``, ``validation`` or ``test``; each dialogue is in only one
level
    ``turn``, ``dialogue`` or ``system``: level of the scores, or of the rated or perturbed items
against
    level of the ratings: ``turn`` or ``dialogue``
target
    the rated dimension
metric
    the metric's name in ``params.yaml``; for a judge, variant and judge (``cpds-d_rules``); ``human`` for
    turn ratings correlated with dialogue ratings
output
    the metric's output; for a judgement, the rating that ``value`` gives
signature
    everything that determines the score: metric, options, versions
metric_a
    the metric that correlates better
output_a
    its output
metric_b
    the other metric
output_b
    its output
coefficient
    ``pearson``, ``spearman``, ``kendall`` (tau-b); ``tau_c``, ``tau_23``, ``pairwise_pearson``; ``accuracy``,
    ``acc_eq`` and ``spa`` (shares of pairs, 0 to 1); in ``overall`` also ``mean``
grouping
    ``pooled`` (all units, or all system means, together), ``item`` (within each context or dialogue, averaged
    over them), ``system`` (within each system, likewise) or ``agents`` (pooled, without the responses of human
    systems)
value
    the score (single precision for a metric that runs a model or a judge, else 12 significant digits), the
    coefficient, or in ``curves`` its mean over the subsets. Missing if an answer was unreadable, a side does not
    vary or there are too few units; never missing in ``scores``
low
    lower end of the 95 % interval, for pooled coefficients of main outputs; in ``curves`` the 2.5 % quantile
    over the subsets, which overlap, so this is not a confidence interval
high
    its upper end; in ``curves`` the 97.5 % quantile
over
    what the interval treats as a sample: ``systems and contexts``; ``contexts, these systems``, if the systems are
    fixed (two or three, or on request); ``contexts``, if there is one system or the systems are unknown. Missing
    without an interval
loso_value
    the weakest pooled coefficient with one system left out (towards 0 and beyond)
loso_system
    the system left out for ``loso_value``; without a ``loso_value``, the one without which no coefficient can be
    computed
p
    two-sided p-value for independent pairs, as in the papers; in ``pairs``, of the test named in ``test``. Missing
    without a test
p_exact
    for up to eight systems: the share of all their permutations that correlate at least as strongly
p_adjusted
    Holm's correction over the pairs of a task
p_fdr
    Benjamini and Hochberg's correction over the same pairs
p_wmt
    one-sided and uncorrected, as in the WMT metrics tasks
test
    the test, its resamples and seed
n
    number of complete units, systems, items or pairs behind the value; in ``overall``, number of tasks
rank
    cluster of metrics without significant differences by the corrected paired tests; 1 is the best
rank_wmt
    as ``rank``, but by ``p_wmt``
systems
    number of rated systems
pairs
    number of pairs of these systems
with_human
    number of these pairs that include a human
board
    the list of tasks
task
    the statistic and its data sets; ``overall``: the weighted mean of all tasks, 0 to 1
weight
    weight of the task; for ``overall``, the weight of the tasks that the metric has
coverage
    share of the rated units (in ``ratios``: of the pairs) that have a score; references do not count
cut
    tokens of the item's input that did not fit the metric's model; in ``correlations``, the number of scored units that
    lost any
lacking
    what the units without a score lack: ``references``, ``history``, ``facts``. An output without any score has a
    row with ``n`` and ``coverage`` 0
difference
    value of a minus value of b, over units with both
varied
    what the subsets vary in number: ``systems``, ``dialogues``; in ``curves`` also ``annotators``, or
    ``samples`` of a judge
size
    number of them in a subset
agreement
    Kendall's tau-b between the metrics' ranking and that on all data, averaged over the subsets
repeats
    number of subsets drawn
power
    0 to 1, assuming the observed difference; missing where the variance cannot be estimated
sample
    index of the judgement among those averaged in a score, from 0
key
    the first ten characters of the answer's key
tries
    number of answers read: up to the first readable one, or all of them
failure
    why the last answer could not be read
rationale
    the judge's explanation, if one was requested
input_tokens
    total over all tries, as counted by the service
output_tokens
    the same
cost
    total US dollars over all tries, at that day's price
perturbation
    the strategy: see ``comperdial perturbations``
threshold
    by how much the score must fall to count, on a scale from 0 to 1
ratio
    share of pairs whose score falls by more; missing where no pair has both scores
ties
    share of pairs with equal scores
lowest
    the lowest possible score, used to scale drops
highest
    the highest possible score
who
    a source of ratings, or a judge
dimension_a
    a rated dimension
dimension_b
    another one
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from comperdial.core.errors import SchemaError, UnknownNameError
from comperdial.core.names import LEVELS, RATED_LEVELS, plain_name

TEXT = pa.string()
UTTERANCES = pa.list_(pa.struct([("speaker", pa.string()), ("text", pa.string())]))
DTYPES = {pa.string(): "str", pa.int32(): "Int32", pa.float64(): "float64", pa.float32(): "float32"}
"""The types that a table's columns have as a frame; lists are Python objects."""
SYSTEM_KINDS = ("agent", "human", "reference")
# The two sides of a pair; their left or right position on the screen is random.
SIDES = ("first", "second")
SPLITS = ("train", "validation", "test")
# What an interval treats as randomly sampled; the rest is fixed.
OVER = ("systems and contexts", "contexts, these systems", "contexts")
# Upper limit of ratings, so that sums of products do not overflow.
LARGEST_RATING = 1e15


@dataclass(frozen=True)
class Field:
    """A column: its type, its constraint (``check``, or a numeric range), and a description of valid values."""

    expected: str
    type: pa.DataType = TEXT
    check: Callable[[Any], bool] = lambda value: isinstance(value, str)
    low: float = -1e100
    high: float = 1e100
    name: str = ""
    # Values may be missing, and so may the column.
    nullable: bool = False
    # Whole numbers are converted to text.
    identifier: bool = False
    # Fills a missing column.
    default: int | None = None

    @property
    def is_number(self) -> bool:
        """Return whether values are numbers."""
        return not (pa.types.is_string(self.type) or pa.types.is_list(self.type))


@dataclass(frozen=True)
class Table:
    """A table: its columns in order, and its key.

    ``rule`` checks several columns of a row: a function that returns the valid rows, the problem, and what is expected.
    """

    name: str
    fields: tuple[Field, ...]
    key: tuple[str, ...]
    rule: tuple[Callable[[pd.DataFrame], pd.Series], str, str] | None = None

    @property
    def columns(self) -> list[str]:
        """Return the names of the columns in order."""
        return [field.name for field in self.fields]

    def arrow(self) -> pa.Schema:
        """Return the Parquet schema."""
        return pa.schema([pa.field(field.name, field.type) for field in self.fields])


def _filled(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_utterance(value: object) -> bool:
    return isinstance(value, dict) and value.keys() == {"speaker", "text"} and all(map(_filled, value.values()))


def _list_of(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _one_of(*values: str) -> Field:
    return Field("one of " + ", ".join(values), check=values.__contains__)


_NAME = Field("a name that is not empty", check=_filled, identifier=True)
_FILLED = Field("a text that is not empty", check=_filled)
_TEXTS = Field("a list of texts, none of them empty", pa.list_(pa.string()), _list_of(_filled))
_NUMBER = Field("a finite number", pa.float64())
_COUNT = Field("a whole number of 0 or more", pa.int32(), low=0, high=2**31 - 1)
_RATING = Field(
    f"a finite number from {-LARGEST_RATING:g} to {LARGEST_RATING:g}",
    pa.float64(),
    low=-LARGEST_RATING,
    high=LARGEST_RATING,
)

# Fields shared by all tables; columns not listed here are names.
_COLUMNS: Mapping[str, Field] = {
    name: field
    for names, field in (
        ("track description key", Field("a text")),
        ("reason failure rationale over loso_system lacking", _FILLED),
        ("response", Field("a response that is not empty", check=_filled)),
        ("references facts sentences kinds", _TEXTS),
        ("history", Field("a list of {speaker, text}", UTTERANCES, _list_of(_is_utterance))),
        ("level", _one_of(*LEVELS)),
        ("kind", _one_of(*SYSTEM_KINDS)),
        ("choice", _one_of(*SIDES, "tie")),
        ("left control", _one_of(*SIDES)),
        ("role", _one_of("interlocutor", "outsider")),
        ("split", _one_of(*SPLITS)),
        ("rating scale_min scale_max", _RATING),
        ("seconds cost", Field("a number of 0 or more", pa.float64(), low=0)),
        ("continued", Field("0 or 1", pa.int32(), low=0, high=1)),
        ("turn position cut sample tries input_tokens output_tokens n size repeats rank rank_wmt", _COUNT),
        ("systems pairs with_human", _COUNT),
        ("began value low high loso_value p p_exact coverage difference p_wmt", _NUMBER),
        ("agreement power threshold ratio ties lowest highest weight p_adjusted p_fdr", _NUMBER),
    )
    for name in names.split()
}


def _table(name: str, columns: str, rule: Any = None, **own: Field) -> Table:  # noqa: ANN401
    """Define a table: ``*`` marks key columns, ``?`` nullable ones; ``own`` overrides shared fields."""
    plain = [column.rstrip("*?") for column in columns.split()]
    fields = [own.get(column) or _COLUMNS.get(column, _NAME) for column in plain]
    named = (
        replace(field, name=column, nullable=f"{column}?" in columns.split())
        for field, column in zip(fields, plain, strict=True)
    )
    return Table(name, tuple(named), tuple(c.rstrip("*") for c in columns.split() if c.endswith("*")), rule)


_SAMPLE = "dataset* level* against* target*"
_PAIR = "metric_a* output_a* metric_b* output_b* difference"
_SCORED = "dataset* level* item_id* system_id* metric* output*"

TABLES: Mapping[str, Table] = {
    table.name: table
    for table in (
        _table("systems", "dataset* system_id* kind track? description"),
        _table("contexts", "dataset* context_id* dialogue_id turn history references facts"),
        _table(
            "personas",
            "dataset* dialogue_id* speaker* sentences kinds",
            (
                lambda frame: frame["sentences"].map(len) == frame["kinds"].map(len),
                "sentences and kinds of different numbers",
                "one kind a sentence",
            ),
        ),
        _table("responses", "dataset* context_id* system_id* response"),
        _table(
            "ratings",
            "dataset* level* item_id* system_id* annotator_id* position? dimension* rating scale_min scale_max source",
            (
                lambda frame: frame["rating"].between(frame["scale_min"], frame["scale_max"]),
                "rating {rating:g} is outside its scale",
                "{scale_min:g} to {scale_max:g}",
            ),
            level=_one_of(*RATED_LEVELS),
        ),
        _table(
            "preferences",
            "dataset* pair_id* first_dialogue_id first_system_id second_dialogue_id second_system_id annotator_id*"
            " question* choice left? control? reason? seconds? source",
            (
                lambda frame: (
                    (frame["first_dialogue_id"] != frame["second_dialogue_id"])
                    | (frame["first_system_id"] != frame["second_system_id"])
                ),
                "{first_system_id!r} in dialogue {first_dialogue_id!r} is compared with itself",
                "another system or another dialogue",
            ),
        ),
        _table("labels", "dataset* item_id* cluster annotator_id* label source"),
        _table("annotators", "dataset* annotator_id* role"),
        _table("continuations", "dataset* context_id* system_id* user_id continued seconds? began? split"),
        _table("scores", f"{_SCORED} value cut signature", cut=replace(_COUNT, default=0)),
        _table(
            "judgements",
            f"{_SCORED} sample* key? tries value? failure? rationale? input_tokens? output_tokens? cost?",
            value=replace(_NUMBER, type=pa.float32()),
        ),
        _table(
            "correlations",
            f"{_SAMPLE} metric* output* grouping* coefficient* value? low? high? over? loso_value? loso_system? p?"
            " p_exact? n coverage cut lacking? signature",
        ),
        _table("ceilings", f"{_SAMPLE} grouping* coefficient* annotator_id* value? n"),
        _table(
            "pairs",
            f"{_SAMPLE} grouping* coefficient* {_PAIR} low? high? over? p? n test",
        ),
        _table(
            "curves",
            f"{_SAMPLE} coefficient* varied* size* metric* output* value? low? high? agreement? repeats",
        ),
        _table("power", f"{_SAMPLE} grouping* coefficient* varied* size* {_PAIR} power?"),
        _table(
            "dimension_correlations",
            "dataset* source* level dimension* metric* output* coefficient* value? low? high? loso_value? loso_system?"
            " p? n coverage signature",
        ),
        _table(
            "ratios",
            "dataset* perturbation* level dimension* metric* output* threshold* ratio? low? high? ties? n coverage"
            " lowest? highest? signature",
        ),
        _table("between_dimensions", "dataset* who* dimension_a* dimension_b* value? n signature?"),
        _table(
            "overall",
            "board* task* coefficient metric* output* value? low? high? n weight coverage rank? rank_wmt? lacking?"
            " signature",
        ),
        _table("overall_pairs", "board* task* dataset* systems pairs with_human"),
        _table(
            "overall_comparisons",
            "board* task* metric_a* output_a* metric_b* output_b* difference p? p_adjusted? p_fdr? p_wmt? test",
        ),
    )
}


def table(name: str) -> Table:
    """Return a table by name; raise :class:`UnknownNameError` with the closest names."""
    if name not in TABLES:
        raise UnknownNameError("table", name, TABLES)
    return TABLES[name]


def validate(frame: pd.DataFrame, name: str, *, where: str | None = None) -> pd.DataFrame:
    """Validate a frame and return it with the table's types and column order.

    Raises
    ------
    SchemaError
        Gives the first invalid record (1-based, with its key), the column, the value, what was expected, and the number of
        further errors.
    """
    spec = table(name)
    where = where or f"table {name}"
    frame = _with_columns(frame, spec, where)
    if frame.empty:
        return spec.arrow().empty_table().to_pandas()

    def refuse(wrong: npt.NDArray[np.bool_], problem: str, expected: str) -> None:
        row, count = int(wrong.argmax()), int(wrong.sum())
        key = ", ".join(f"{column}={frame[column].iloc[row]}" for column in spec.key if column != "dataset")
        hint = f"{count} records in all have this fault" if count > 1 else None
        raise SchemaError(problem, where=f"{where}, record {row + 1} ({key})", expected=expected, hint=hint)

    for field in spec.fields:
        given = frame[field.name]
        frame[field.name] = values = _converted(given, field)
        wrong = np.where(given.isna(), not field.nullable, ~_good(values, field))
        if wrong.any():
            value = given.tolist()[int(wrong.argmax())]
            missing = value is None or (not isinstance(value, list) and pd.isna(value))
            column = f"column {field.name!r}"
            refuse(wrong, f"no value in {column}" if missing else f"{column} holds {value!r}", field.expected)
    frame = frame.astype({field.name: DTYPES[field.type] for field in spec.fields if field.type in DTYPES})
    if spec.rule:
        holds, problem, expected = spec.rule
        wrong = ~holds(frame).to_numpy(dtype=bool)
        if wrong.any():
            row = dict(zip(spec.columns, frame.iloc[int(wrong.argmax())], strict=True))
            refuse(wrong, problem.format(**row), expected.format(**row))
    wrong = frame.duplicated(list(spec.key)).to_numpy()
    if wrong.any():
        refuse(wrong, "the same key a second time", f"each ({', '.join(spec.key)}) once")
    return frame


def _with_columns(frame: pd.DataFrame, spec: Table, where: str) -> pd.DataFrame:
    """Return a frame with the table's columns in order, and defaults filled in."""
    left_out = [field for field in spec.fields if field.name not in frame]
    frame = frame.assign(**{f.name: f.default for f in left_out if f.default is not None or f.nullable})
    if missing := [name for name in spec.columns if name not in frame]:
        raise SchemaError(
            f"no column {', '.join(map(repr, missing))}",
            where=where,
            expected=f"the columns of table {spec.name!r}: {', '.join(spec.columns)}",
            hint=f"It has: {', '.join(map(str, frame.columns)) or '(none)'}",
        )
    if not frame.columns.is_unique:
        raise SchemaError("two columns have one name", where=where, expected="each name once")
    if unknown := [str(column) for column in frame if column not in spec.columns]:
        raise UnknownNameError(f"column of table {spec.name!r}:", unknown[0], spec.columns, where=where)
    return frame[spec.columns].reset_index(drop=True)


def _converted(column: pd.Series, field: Field) -> pd.Series:
    """Normalize names and convert numbers; anything else in a numeric column becomes missing."""
    if field.identifier:
        return _mapped(column, plain_name)
    if field.is_number and not pd.api.types.is_numeric_dtype(column):
        lists = column.map(lambda value: isinstance(value, list | dict))
        return pd.to_numeric(column.mask(lists), errors="coerce")
    return column


def _good(column: pd.Series, field: Field) -> npt.NDArray[np.bool_]:
    """Return which values satisfy their column's constraints."""
    if not field.is_number:
        return _mapped(column, field.check).to_numpy(dtype=bool)
    numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    good: npt.NDArray[np.bool_] = (numbers >= field.low) & (numbers <= field.high)
    return good & (numbers == np.floor(numbers)) if field.type == pa.int32() else good


def _mapped(column: pd.Series, function: Callable[[Any], object]) -> pd.Series:
    """Apply a function to each value, calling it once per distinct text."""
    try:
        codes, distinct = pd.factorize(column)
    except TypeError:
        # Lists.
        return column.map(function)
    # Missing values have code -1.
    made = np.array([*map(function, distinct), function(None)], dtype=object)
    return pd.Series(made[codes], index=column.index)
