"""What ``params.yaml`` may hold: a model for each section, and the JSON schema that editors use."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from comperdial.config.checking import (
    AboveZero,
    Count,
    DatasetName,
    Distinct,
    Expected,
    Flag,
    FromZero,
    Lines,
    Maybe,
    Number,
    Section,
    Seed,
    Share,
    Strict,
    Text,
    checked,
    rule,
    unknown,
)
from comperdial.config.registry import REGISTRIES, completed
from comperdial.config.secrets import secret_in

# Snakemake reads braces in the name of a file as a pattern, a command a dash as an option.
_PATH = r"[^-{}\x00-\x1f\x7f][^{}\x00-\x1f\x7f]*"
_KINDS = "csv|tsv|txt|jsonl|ndjson|json|parquet|xlsx|xlsm"
_TABLE = f"{_PATH}[.]({_KINDS}|{_KINDS.upper()})"
_SUFFIXES = "a file .csv, .tsv, .jsonl, .json, .parquet or .xlsx"

FilePath = Annotated[
    str, Expected("a path without braces or control characters that does not begin with a dash", f"^{_PATH}$")
]
TableFile = Annotated[str, Expected(f"{_SUFFIXES}, without braces", f"^{_TABLE}$")]
Chosen = Annotated[
    str,
    Expected(
        f"the name of a data set (lower-case letters, digits, underscores), or {_SUFFIXES}",
        f"^[a-z0-9_]+$|^{_TABLE}$",
    ),
]
MetricName = Annotated[str, Expected("lower-case letters, digits, underscores and hyphens", "^[a-z0-9_][a-z0-9_-]*$")]
JudgeName = Annotated[str, Expected("lower-case letters, digits, dots and hyphens", "^[a-z0-9][a-z0-9.-]*$")]
VariantName = Annotated[str, Expected("lower-case letters, digits and hyphens", "^[a-z0-9][a-z0-9-]*$")]
RecordedJudgeName = Annotated[
    str, Expected("lower-case letters, digits, underscores, dots and hyphens", "^[a-z0-9_][a-z0-9_.-]*$")
]
SystemName = Annotated[str, Expected("letters, digits, dots, hyphens and underscores", "^[A-Za-z0-9][A-Za-z0-9._-]*$")]
VariableName = Annotated[
    str,
    Expected(
        "the name of an environment variable, in capitals, digits and underscores; the key itself belongs into that "
        "variable, never here",
        "^[A-Z_][A-Z0-9_]*$",
        hidden=True,
    ),
]
Output = Annotated[str, Expected("a metric, or metric:output", "^[^:-][^:]*(:[^:]+)?$")]
FullOutput = Annotated[str, Expected("METRIC:OUTPUT", "^[^:-][^:]*:[^:]+$")]
OutputName = Annotated[str, Expected("the name of an output", "^[^:]+$")]
# Part of signatures, whose parts are separated by bars.
Signed = Annotated[str, Expected("one line of text without a bar (|)", r"^[^|\r\n]*[^|\s][^|\r\n]*$")]
Resamples = Annotated[int, Field(ge=100), Expected("a whole number of resamples, 100 or more")]
Columns = Annotated[dict[str, Any], Field(description="our name of a column: the file's")]


class Ratings(Strict):
    """Files of ratings of a challenge."""

    turn: FilePath
    dialogue: Maybe[FilePath] = None


class SimulatedRatings(Strict):
    """Ratings by programs."""

    raters: FilePath
    seed: Seed


class Challenge(Strict):
    """A data set made of dialogues and submissions, or read from a folder in ComperDial's own form.

    Attributes
    ----------
    title
        its name in tables
    dialogues
        a file in the form of ComperDial_data.json
    submissions
        .jsonl files, or folders of them
    agents
        agents to run here, by the system's name: FILE or FILE:CLASS
    ratings
        files of ratings; without them there are scores and no correlations
    simulated
        ratings by programs, as in the demo
    comperdial
        a folder that `comperdial export` wrote, alone
    source
        whose ratings to use, if not those of `evaluation.source`
    target
        the rated dimension of tables and figures
    """

    title: Text
    dialogues: Maybe[FilePath] = None
    submissions: Maybe[Annotated[list[FilePath], Field(min_length=1)]] = None
    agents: Maybe[dict[SystemName, FilePath]] = None
    ratings: Maybe[Ratings] = None
    simulated: Maybe[SimulatedRatings] = None
    comperdial: Maybe[FilePath] = None
    source: Maybe[Text] = None
    target: Maybe[Text] = None

    @model_validator(mode="after")
    def _is_one_kind(self) -> Self:
        made: list[str] = [
            name for name in ("dialogues", "submissions", "agents", "ratings") if name in self.model_fields_set
        ]
        runs = "dialogues" in made and bool({"submissions", "agents"} & {*made})
        if bool(self.comperdial) == runs or (self.comperdial and made):
            given = ", ".join(["comperdial"] * bool(self.comperdial) + made) or "neither"
            raise rule(
                f"it has {given}", "`dialogues` with `submissions` or `agents`, or `comperdial` (a folder) alone"
            )
        return self


class OwnData(Strict):
    """The user's own rated responses.

    Attributes
    ----------
    file
        CSV, TSV, JSONL, JSON, Parquet or Excel
    title
        its name in tables; default: the entry's name
    columns
        our name of a column: the file's
    scale
        [low, high], or one for each dimension; default: what the file says or holds
    source
        whose ratings to use
    target
        the rated dimension of tables and figures
    """

    file: TableFile
    title: Maybe[Text] = None
    columns: Maybe[Columns] = None
    scale: Maybe[Annotated[list[Any] | dict[str, Any], Expected("[low, high], or that for each dimension")]] = None
    source: Maybe[Text] = None
    target: Maybe[Text] = None


class Personas(Strict):
    """Personas from a knowledge graph.

    Attributes
    ----------
    graph
        a file in PeaCoK's layout
    constraints
        the folder of names, families, ages and negative words
    count
        how many to draw
    seed
        another seed draws other personas
    default_ages
        the range of ages of heads without one
    """

    graph: FilePath
    constraints: FilePath
    count: Count
    seed: Seed
    default_ages: Annotated[list[int], Field(min_length=2, max_length=2), Expected("two ages")]


class ComperdialColumns(Strict):
    """How the two rated files call things."""

    turn: Columns
    dialogue: Columns


class Comperdial(Strict):
    """Sony/ComperDial's own files, and what the paper counts.

    Attributes
    ----------
    columns
        the names of fields in the two rated files
    counts
        what the paper counts; a difference is reported
    """

    columns: ComperdialColumns
    counts: dict[Literal["systems", "dialogues", "turns", "rated_dialogues"], Seed]


class Shows(Strict):
    """The outputs that represent scores in tables and figures, and their labels.

    Attributes
    ----------
    main
        the output, or outputs, with intervals, tests and ranks
    label
        the label of the main output, or of each output
    """

    main: Maybe[OutputName | Annotated[Distinct[OutputName], Field(min_length=1)]] = None
    label: Maybe[Text | dict[OutputName, Text]] = None


class Metric(Shows):
    """A metric: its kind, and the kind's options, which :func:`comperdial.metrics.create` checks.

    Attributes
    ----------
    kind
        the module in `comperdial.metrics`
    main
        the output, or outputs, with intervals, tests and ranks
    label
        the label of the main output, or of each output
    datasets
        only these data sets
    skip
        not these data sets
    apart
        true: in no general table, only where it is named
    """

    model_config = ConfigDict(extra="allow")

    kind: Text
    datasets: Maybe[Distinct[Text]] = None
    skip: Maybe[Distinct[Text]] = None
    apart: bool = False

    @property
    def options(self) -> dict[str, Any]:
        """Return what the metric is made with."""
        return dict(self.model_extra or {})


def _sendable(parameters: dict[str, Any]) -> dict[str, Any]:
    if name := secret_in(parameters):
        raise rule(
            f"{name!r} looks like a secret",
            "a parameter that anybody may read: it is in the ledger and in tables; a key belongs into an environment "
            "variable, which the judge's `key` names",
        )
    if empty := [name for name, value in parameters.items() if value is None]:
        raise rule("got null", "a value, or no such parameter", empty[0])
    return parameters


class Judge(Strict):
    """Who judges.

    Answers depend on `model`, `mode`, `parameters` and `explain`; the other keys make nothing stale.

    Attributes
    ----------
    service
        `openai` (OpenAI, or with `base_url` any server that speaks its protocol), `transformers` (a local causal
        model) or `rules` (a program that counts words)
    model
        the service's name of the model; a folder for `transformers`
    role
        which of a study's roles it plays, such as the paper's smaller and larger model; default: each
    mode
        `probabilities` takes the expected value over the probabilities of the scale's tokens instead of a written
        answer
    parameters
        sent with each request; `dtype`, `prefix` and `chat_template_kwargs` for `transformers`
    explain
        ask for a rationale too
    items
        only so many responses or dialogues of each data set: those with the smallest hashes, the same ones
        everywhere
    base_url
        the server
    key
        the environment variable with the key; default for OpenAI: OPENAI_API_KEY
    free
        whether it costs nothing; default: true for a server on this machine
    concurrency
        requests at a time
    requests_per_minute
        the rate limit
    timeout
        seconds
    attempts
        how often a request is tried after a fault
    """

    service: Text
    model: Maybe[Text] = None
    role: Maybe[Text] = None
    mode: Literal["generate", "probabilities"] = "generate"
    parameters: Annotated[dict[str, Any], AfterValidator(_sendable)] = {}
    explain: Maybe[Flag] = None
    items: Maybe[Count] = None
    base_url: Maybe[Annotated[str, Expected("http://… or https://…", "^https?://", hidden=True)]] = None
    key: Maybe[VariableName] = None
    free: Maybe[Flag] = None
    concurrency: Maybe[Count] = None
    requests_per_minute: Maybe[AboveZero] = None
    timeout: Maybe[AboveZero] = None
    attempts: Maybe[Count] = None


def _counts(counts: int | list[int]) -> int | list[int]:
    several = counts if isinstance(counts, list) else [counts]
    if len(set(several)) < len(several) or max(several) != several[0]:
        raise rule(f"got {counts}", "different counts, the largest first: the others use its answers")
    return counts


_LABEL = Annotated[
    str, Expected('texts, such as {"Yes": 1, "No": 0}: without quotes, YAML reads Yes as true, No as false')
]
_FIELDS = {"turn": ["fact", "history", "reference", "response"], "dialogue": ["dialogue", "responses", "turn_scores"]}


class Variant(Strict):
    """One way of asking a judge.

    Attributes
    ----------
    prompt
        a prompt of the package, or a file
    fields
        what the template uses: history, response, reference, fact; for dialogues turn_scores and responses, or
        dialogue
    dimensions
        the ratings in an answer
    label
        its name in tables
    main
        the rating with intervals, tests and ranks
    scale
        [low, high]
    samples
        how many answers are averaged; of a list, the largest first, each makes a score
    retries
        fresh samples after an answer that cannot be read
    turns
        the variant whose turn scores the dialogue prompt gets
    roles
        the judges' roles that are asked
    explain
        ask for a rationale too
    labels
        values of answers, such as {"Yes": 1, "No": 0}: the score is their mean, weighted by their probabilities
    question
        a dimension with a question of the package, or a text
    """

    prompt: Text
    fields: Annotated[Distinct[Text], Field(min_length=1)]
    dimensions: Annotated[Distinct[Text], Field(min_length=1)]
    label: Maybe[Text] = None
    main: Maybe[Text] = None
    scale: Maybe[Annotated[list[Number], Field(min_length=2, max_length=2), Expected("the two ends of the scale")]] = (
        None
    )
    samples: Annotated[
        Count | Annotated[list[Count], Field(min_length=1)],
        Expected("a whole number of 1 or more, or a list of such"),
        AfterValidator(_counts),
    ] = 1
    retries: Seed = 3
    turns: Maybe[Text] = None
    roles: Distinct[Text] = []
    explain: Flag = False
    labels: Maybe[Annotated[dict[_LABEL, Number], Field(min_length=2)]] = None
    question: Maybe[Text] = None

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        dimensions = [name.lower() for name in self.dimensions]
        if self.main is not None and self.main.lower() not in dimensions:
            raise unknown("dimension", self.main.lower(), dimensions, "main")
        if self.scale is not None and self.scale[0] >= self.scale[1]:
            raise rule(f"`scale` is {self.scale[0]} to {self.scale[1]}", "the lower end first", "scale")
        for key in ("scale", "explain", "samples", "retries") if self.labels else ():
            if key in self.model_fields_set and getattr(self, key):
                raise rule(f"`{key}` beside `labels`", "labels alone: they are the scale and the answer", key)
        if self.labels and len(dimensions) > 1:
            raise rule(f"labels for {len(dimensions)} dimensions", "one dimension", "labels")
        if (self.turns is not None) != ("turn_scores" in self.fields):
            raise rule("`turns` without the field `turn_scores`, or it without `turns`", "both, or neither", "fields")
        others = _FIELDS["turn" if self.level == "dialogue" else "dialogue"]
        if wrong := [field for field in self.fields if field in others]:
            expected = ", ".join(_FIELDS[self.level]) + "; `turns` makes a variant one of dialogues"
            raise rule(f"the field {wrong[0]!r} at {self.level} level", expected, "fields")
        return self

    @property
    def level(self) -> str:
        """Return ``dialogue`` for a variant that sees all responses of a dialogue, else ``turn``."""
        return "dialogue" if self.turns is not None or "dialogue" in self.fields else "turn"


class Judging(Strict):
    """What judges are asked.

    Attributes
    ----------
    judges
        who judges which data set; `default` for data sets that are not named
    variants
        from the registry, or entries of your own
    asks
        which variants are asked on which data set; default: all
    ledger
        the folder of the answers
    prices
        US dollars per million tokens
    budget
        the most that all answers in the ledger together may cost, in US dollars; 0 asks no paid service
    """

    judges: dict[str, Distinct[Text]]
    variants: dict[VariantName, Variant]
    asks: dict[str, Distinct[Text]] = {}
    ledger: Text = "data/ledger"
    prices: Text = "data/prices.yaml"
    budget: Annotated[int | float, Field(ge=0), Expected("US dollars, 0 or more")] = 0

    @model_validator(mode="after")
    def _for_the_others(self) -> Self:
        if "default" not in self.judges:
            raise rule("no 'default'", "a list `default`, of data sets that are not named", "judges")
        return self


class JudgingSections(Strict):
    """Who judges, and what: both sections, whose entries name each other."""

    judges: Section[dict[JudgeName, Judge]] = {}
    judging: Judging | None = None

    @model_validator(mode="after")
    def _name_each_other(self) -> Self:
        if self.judging is None:
            return self
        variants = self.judging.variants
        for section, kind, known in (("judges", "judge", self.judges), ("asks", "variant", variants)):
            for dataset, names in getattr(self.judging, section).items():
                if missing := [name for name in names if name not in known]:
                    raise unknown(kind, missing[0], known, "judging", section, dataset)
        asked = {role for variant in variants.values() for role in variant.roles}
        # A judge without a role plays each.
        played = {judge.role for judge in self.judges.values()}
        for name, judge in self.judges.items():
            if asked and judge.role is not None and judge.role not in asked:
                raise unknown("role", judge.role, asked, "judges", name)
        for name, variant in variants.items():
            at = ("judging", "variants", name)
            if played and None not in played and (unplayed := {*variant.roles} - played):
                raise unknown("role", min(unplayed), filter(None, played), *at)
            turns = variants.get(variant.turns or "")
            if variant.turns and not turns:
                raise unknown("variant", variant.turns, variants, *at, "turns")
            if turns and turns.level != "turn":
                raise rule(f"`turns` is {variant.turns!r}", "a variant at turn level", *at, "turns")
            if turns and turns.roles and {*turns.roles} != {*variant.roles}:
                problem = f"`turns` is {variant.turns!r}, which other roles ask"
                raise rule(problem, "the same roles in both", *at, "turns")
        for dataset, names in self.judging.asks.items():
            for name in names:
                if (given := variants[name].turns) and given not in names:
                    problem = f"{name} without {given}, whose scores it is given"
                    raise rule(problem, "both, or neither", "judging", "asks", dataset)
        return self


class _Placed(Strict):
    source: Maybe[Text] = None
    path: Maybe[FilePath] = None

    @model_validator(mode="after")
    def _has_one_file(self) -> Self:
        if (self.source is None) == (self.path is None):
            given = "both" if self.path else "neither"
            raise rule(f"{given} of `source` and `path`", "`source` (a file of the catalogue) or `path` (a local file)")
        return self


class Recorded(_Placed, Shows):
    """Scores computed elsewhere.

    Attributes
    ----------
    dataset
        the data set that they are of
    format
        the reader; `table` for a file with context_id, system_id and value
    about
        who computed them, with what; part of the signature
    source
        a file of the catalogue
    path
        a local file
    """

    dataset: Text
    format: Text
    about: Signed


class RecordedJudge(Shows):
    """Answers of a language model that others recorded.

    Attributes
    ----------
    dataset
        the data set that they are of
    format
        the reader
    model
        the model that answered
    prompt
        the prompt it was given
    sources
        files of the catalogue, by the reader's names
    """

    dataset: Text
    format: Text
    model: Signed
    prompt: Signed
    sources: Annotated[dict[str, Text], Field(min_length=1)]


class Corpus(_Placed):
    """Dialogues to train on: a file and its format."""

    format: Text


class TrainingPhase(Strict):
    """A stretch of training with its own loss and learning rate."""

    loss: Literal["in-batch", "selection"]
    steps: Count
    batch: Annotated[int, Field(ge=2), Expected("a whole number of contexts, 2 or more")]
    learning_rate: AboveZero
    head_learning_rate: AboveZero = 0.0001
    warmup: Count = 100
    temperature: AboveZero = 0.1
    contrastive: FromZero = 0

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.contrastive and self.loss != "selection":
            raise rule("`contrastive` beside the in-batch loss", "it in a phase with the selection loss", "contrastive")
        return self


class TrainingLengths(Strict):
    """The most tokens of each part of an input."""

    history: Count = 72
    facts: Count = 56
    response: Annotated[int, Field(ge=2), Expected("a whole number of 2 or more")] = 40


class Training(Strict):
    """How a learned metric is trained (`comperdial train`)."""

    encoder: Text
    corpora: Annotated[dict[DatasetName, Corpus], Field(min_length=1)]
    phases: Annotated[list[TrainingPhase], Field(min_length=1)]
    attention_bias: Number = -6
    lengths: TrainingLengths = TrainingLengths()
    negatives: Count = 8
    seed: Seed = 2024
    held_out: Count = 400
    overlap: Count = 13
    facts: Share = 0.5
    dropout: Share = 0
    dtype: Literal["fp32", "bf16"] = "bf16"
    check_every: Count = 250

    @model_validator(mode="after")
    def _ends_with_selection(self) -> Self:
        if self.phases[-1].loss != "selection":
            raise rule("the last phase trains no selection", "`loss: selection` in it", "phases")
        return self


class Curves(Strict):
    """Learning curves and power."""

    coefficient: Literal["pearson", "spearman", "kendall"]
    repeats: Annotated[int, Field(ge=1), Expected("a whole number of subsets of a size, 1 or more")]


class Agreement(Strict):
    """How often to resample, and the seed; of the section `agreement`: for Krippendorff's alpha."""

    resamples: Resamples
    seed: Seed


class Evaluation(Agreement):
    """What is correlated with what.

    Attributes
    ----------
    source
        whose ratings: human, or the name of a judge; never mixed
    target
        the rated dimension of tables and figures; if nobody rated it, the only one or the first by name
    levels
        which levels to evaluate
    systems
        `fixed`: intervals and tests are over contexts only, as they always are with two or three systems
    tests
        statistics over systems to test besides the default ones
    curves
        learning curves and power
    resamples
        resamples of intervals, tests and soft pairwise accuracies
    seed
        the seed of all that is drawn
    """

    source: Text
    target: Text
    levels: Annotated[Distinct[Literal["turn", "dialogue", "system"]], Field(min_length=1)]
    systems: Literal["sampled", "fixed"] = "sampled"
    tests: Distinct[Literal["tau_c", "tau_23", "accuracy", "acc_eq", "spa"]] = []
    curves: Curves


class Figures(Strict):
    """Figures of each data set: the outputs that each shows instead of the main ones.

    Attributes
    ----------
    resamples
        resamples of intervals that only figures show
    """

    resamples: Resamples
    heatmap: Maybe[list[Output]] = None
    scatter: Maybe[list[Output]] = None
    slope: Maybe[list[Output]] = None
    length_bias: Maybe[list[Output]] = None
    judge_agreement: Maybe[list[Output]] = None
    curves: Maybe[list[Output]] = None


class Tables(Strict):
    """Tables of the papers.

    Attributes
    ----------
    benchmark
        the data set whose numbered tables are in results/studies/comperdial
    systems
        the scores in the table of systems
    level_differences
        how many dialogues to show that are rated lower as a whole than by turn (ComperDial's Table 13 shows three)
    """

    benchmark: Text
    systems: Annotated[list[Output], Field(min_length=1)]
    level_differences: Annotated[int, Field(ge=1), Expected("a whole number of dialogues, 1 or more")]


class Ensembles(Strict):
    """Scores that are taken together."""

    dimensions: Distinct[Text]
    models: dict[str, Annotated[Distinct[Text], Field(min_length=2)]]


class Perturbed(Strict):
    """Data sets of which responses or dialogues are made worse."""

    datasets: Distinct[Text]
    strategies: Annotated[
        Literal["all"] | Annotated[Distinct[Text], Field(min_length=1)],
        Expected("`all`, or a list of different strategies"),
    ]
    sample: Annotated[int, Field(ge=1), Expected("a whole number of pairs a strategy, 1 or more")]
    seed: Seed


class Contrast(Strict):
    """A planned comparison: two outputs of metrics, on some of a study's data sets."""

    metric: FullOutput
    against: FullOutput
    datasets: Annotated[Distinct[Text], Field(min_length=1)]
    note: Maybe[Text] = None


class Shown(BaseModel):
    """A table or figure of a study; any other key is a setting of its function.

    Attributes
    ----------
    title
        its heading
    caption
        the text below it
    function
        a function in `comperdial.studies.<study>`; default: the table of correlations
    datasets
        default: the study's
    inputs
        the files that it reads, by name; `{dataset}`, `{scorer}`, `{judge}` and `{recorded_judge}` stand for each
        one
    """

    model_config = ConfigDict(extra="allow")

    title: Maybe[Text] = None
    caption: Maybe[Text] = None
    function: Maybe[Text] = None
    datasets: Maybe[Distinct[Text]] = None
    inputs: dict[str, str | list[str]] = {}


class Study(Strict):
    """What a study needs and shows: ``studies/NAME/study.yaml``.

    Attributes
    ----------
    title
        its heading
    datasets
        what to run
    metrics
        metrics to run on these data sets besides those of params.yaml, with their changes
    judges
        who judges these data sets
    variants
        what they are asked
    recorded_judges
        recorded answers to import
    ensembles
        scores that are averaged
    perturbed
        data sets whose responses are made worse
    planned_contrasts
        comparisons fixed before the results were seen
    own_metrics_only
        data sets of such studies alone are scored only with the metrics that these list
    restricted
        outputs that are also correlated within systems and without human systems
    raters
        other sources of ratings, whose mean rating of a response is taken as a score
    tables
        tables by name
    figures
        figures by name
    resamples
        instead of those in params.yaml
    seed
        instead of that in params.yaml
    """

    title: Text
    datasets: Distinct[Text] = []
    metrics: Section[dict[MetricName, Metric | None]] = {}
    judges: Distinct[Text] = []
    variants: Section[dict[VariantName, Variant]] = {}
    recorded_judges: Section[dict[RecordedJudgeName, RecordedJudge]] = {}
    ensembles: Ensembles | None = None
    perturbed: Perturbed | None = None
    planned_contrasts: list[Contrast] = []
    own_metrics_only: bool = False
    restricted: Distinct[Output] = []
    raters: Distinct[Text] = []
    tables: Section[dict[str, Shown]] = {}
    figures: Section[dict[str, Shown]] = {}
    resamples: Maybe[Seed] = None
    seed: Maybe[Seed] = None


# Numbers inside a mapping that --config gives come as text. A merge names its shards in one argument: Linux takes 128 KiB.
Shards = Annotated[
    int,
    BeforeValidator(lambda given: int(given) if isinstance(given, str) and given.isdecimal() else given),
    Field(ge=1, le=500),
    Expected("a whole number from 1 to 500"),
]


class Parameters(JudgingSections):
    """All of ``params.yaml``.

    Attributes
    ----------
    datasets
        what to run: names of the catalogue, of `own_data` and `challenges`, or files
    own_data
        your own files of ratings
    catalogue
        the file of public files and data sets
    mirror
        a folder <owner>/<repository>/<path> to take public files from; COMPERDIAL_MIRROR takes precedence
    challenges
        data sets made of dialogues and submissions
    personas
        how personas are drawn
    comperdial
        names of fields in Sony/ComperDial
    metrics
        what to run; a name alone is an entry of the registry
    recorded
        scores computed elsewhere
    recorded_judges
        answers that others recorded
    training
        what `comperdial train` trains
    shards
        into how many parts scoring is split, by data set
    evaluation
        what is correlated with what
    agreement
        Krippendorff's alpha: resamples and seed
    figures
        what figures show
    tables
        what tables show
    studies
        settings that replace those of study.yaml
    judges
        who judges
    judging
        what judges are asked
    """

    datasets: Annotated[Distinct[Chosen], Field(min_length=1)]
    own_data: Section[dict[DatasetName, OwnData]] = {}
    catalogue: FilePath
    mirror: Annotated[str | None, Expected("a folder or null")] = None
    challenges: dict[DatasetName, Challenge]
    personas: Personas
    comperdial: Comperdial
    metrics: Annotated[dict[MetricName, Metric], Field(min_length=1)]
    recorded: Section[dict[MetricName, Recorded]] = {}
    recorded_judges: Section[dict[RecordedJudgeName, RecordedJudge]] = {}
    training: Section[dict[MetricName, Training]] = {}
    shards: Section[dict[str, Shards]] = {}
    evaluation: Evaluation
    agreement: Agreement
    figures: Figures
    tables: Tables
    studies: Section[dict[str, dict[str, Any]]] = {}


def read_parameters(mapping: Mapping[str, Any], *, lines: Lines | None = None) -> Parameters:
    """Check the configuration that Snakemake merged, with the package's entries that it names spelled out.

    Parameters
    ----------
    mapping
        Its ``config``.
    lines
        Where settings are looked up for messages: ``Lines("params.yaml", *workflow.configfiles)``. A value that is in
        none of these files was given by ``--config``, and messages say so. None: messages name no line.

    Raises
    ------
    ConfigError, UnknownNameError
        As :func:`~comperdial.config.checking.checked`.
    """
    if lines:
        lines = Lines(*REGISTRIES, *lines.paths, option=lines.option)
    return checked(Parameters, completed(mapping), lines=lines)


def json_schema() -> str:
    """Return the JSON schema of ``params.yaml``, by which editors complete and check it."""
    schema = Parameters.model_json_schema()
    # A name alone is the package's entry, which a mapping without all keys changes.
    for name in ("Metric", "Recorded", "RecordedJudge", "Training", "Variant"):
        del schema["$defs"][name]["required"]
        schema["$defs"][name]["type"] = ["object", "null"]
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
