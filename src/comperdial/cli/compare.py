"""The command that compares metrics on a file of rated responses."""

from __future__ import annotations

import argparse
import logging
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd

from comperdial import evaluation, schema
from comperdial.challenge.simulation import SOURCE
from comperdial.cli.common import analysis_of, rated_file_options
from comperdial.cli.score import keep_embeddings, name_not_run, score_with
from comperdial.core.errors import ConfigError, UnknownNameError
from comperdial.core.files import write_text
from comperdial.core.names import LEVELS, Output, output_name
from comperdial.data.own_files import plain
from comperdial.evaluation.aggregate import UNNAMED, read_scores
from comperdial.evaluation.correlations import FEWEST_DIALOGUES, is_narrow
from comperdial.evaluation.options import analysed
from comperdial.evaluation.rated_data import UNIT, Responses, column_scores, read_rated
from comperdial.evaluation.samples import Tables
from comperdial.metrics import Metric, create, kinds
from comperdial.metrics.named import Entries, metric_named, read_entries
from comperdial.report.compared import comparison_document
from comperdial.report.ranking import against, corrected, with_ranks
from comperdial.report.render import FORMATS, SIMULATED, rendered
from comperdial.stats import COEFFICIENTS, OF_SYSTEMS
from comperdial.stats.design import FEWEST_SAMPLED

log = logging.getLogger(__name__)

COSTS = Path(__file__).parents[1] / "metrics/local_costs.csv"
# Processor time that one metric may take without being named.
_MOST_SECONDS = 180


def compare(options: argparse.Namespace) -> None:
    """Write how well metrics agree with the ratings, and which of them differ."""
    form = _form(options)
    if not options.metrics and not options.scores and not options.input:
        raise ConfigError("no metrics", expected="a file or folder of responses, --scores or both")
    ready = read_scores(options.scores, unnamed=True) if options.scores else schema.empty("scores")
    datasets = {*ready["dataset"]} - {UNNAMED}
    tables, responses = read_rated(
        options.input, ratings=options.ratings, contexts=options.contexts,
        dataset=datasets.pop() if len(datasets) == 1 else None, options=rated_file_options(options),
    )  # fmt: skip
    metrics, columns, called = _chosen(options, ready, tables, responses)
    scores, not_run = _scores(options, metrics, columns, ready, tables, responses)
    there = set(zip(scores["metric"], scores["output"], strict=True))
    for name, text in called.items():
        if name not in there and output_name(text, "")[0] not in not_run:
            not_run[text] = "no response has a score"
    labels = {name: label for name, label in called.items() if name in there}
    # The metric that the others are compared with comes first.
    contrasted = next(iter(called)) if options.against else None
    if contrasted and contrasted not in labels:
        why = not_run.get(options.against) or not_run.get(contrasted[0]) or "no response has a score"
        raise ConfigError(f"{options.against}: {why}", where="--against", expected="a metric that has scores")
    if contrasted and len(labels) < 2:
        problem = f"no other metric than {options.against} has scores"
        raise ConfigError(problem, where="--against", expected="others: --metrics, --scores or both")
    sources = {*tables.sources}
    source = options.source or (sources.pop() if len(sources) == 1 else "human")
    scores = scores[pd.MultiIndex.from_frame(scores[["metric", "output"]]).isin([*labels])]
    samples, notes = _samples(options, replace(tables, scores=scores, source=source))
    detail = evaluation.Detail.named(None, None, options.resamples, options.seed, only=options.coefficient)
    values, tests = evaluation.evaluate(samples, detail=detail)
    # Ranks are of all pairs.
    pairs = tests.iloc[:0] if contrasted else tests
    document = comparison_document(
        with_ranks(values, pairs, options.correction),
        corrected(against(tests, contrasted) if contrasted else tests, options.correction),
        evaluation.ceilings(samples),
        labels,
        options.coefficient,
        caption=_caption(options, source),
        notes=[*(f"{name}: not run: {why}" for name, why in not_run.items()), *notes],
        correction=options.correction,
        contrasted=contrasted,
    )
    content = rendered(document, form, label="tab:compared")
    if options.output:
        write_text(options.output, content)
    else:
        sys.stdout.write(content)


def _form(options: argparse.Namespace) -> str:
    """Return the form to write: the one of --format, or of the output's suffix."""
    by_suffix = {suffix: form for form, suffix in FORMATS.items()}
    if not options.format and options.output and options.output.suffix not in by_suffix:
        expected = f"{', '.join(by_suffix)}, or --format"
        raise ConfigError(f"{options.output}: unknown kind of file", where="--output", expected=expected)
    return options.format or (by_suffix[options.output.suffix] if options.output else "text")


def _caption(options: argparse.Namespace, source: str) -> str:
    what = (f" on {options.input}" if options.input else "") + "".join(f", {text}" for text in options.subset)
    whose = "mean human rating" if source == "human" else f"mean rating ({source})"
    text = f"Correlation of metrics with the {whose}{what}. {options.resamples} resamples, seed {options.seed}."
    return f"{text} {SIMULATED}" if source == SOURCE else text


def _chosen(
    options: argparse.Namespace, ready: pd.DataFrame, tables: Tables, responses: Responses
) -> tuple[dict[str, Metric], list[str], dict[Output, str]]:
    """Look up names of metrics of --scores, kinds of metrics, entries of params.yaml and columns of the file.

    Returns metrics to run, columns to compare, and by (metric, output) what a person called it.
    """
    entries = read_entries(options.params)
    known = {str(name): rows for name, rows in ready.groupby("metric", sort=True)}
    own = [] if tables.attributes is None else [*tables.attributes.columns.drop(UNIT)]
    spelled = {plain(column): column for column in own}
    texts = options.metrics if options.metrics or options.scores else _default(responses, entries)
    named = {text: (text, "") if text in known else output_name(text, "") for text in texts}
    # Whoever names no metric of --scores wants all of them.
    if not {name for name, _ in named.values()} & {*known}:
        texts = [*texts, *known]
    metrics: dict[str, Metric] = {}
    columns: list[str] = []
    labels: dict[Output, str] = {}
    for text in [*([options.against] if options.against else []), *texts]:
        name, output = (text, "") if text in known else output_name(text, "")
        try:
            if name in known:
                outputs = _outputs(known[name], is_named=bool(output))
            else:
                metric = metrics[name] = metrics.get(name) or metric_named(name, entries)
                outputs = list(metric.outputs)
        except UnknownNameError as error:
            if plain(name) not in spelled:
                there = {"--scores has": [*known], "columns of the file that may be compared": own}
                more = "; ".join(f"{what}: {', '.join(names)}" for what, names in there.items() if names)
                hint = f"{error.hint or ''} {more}".strip() or None
                raise ConfigError(error.problem, expected=error.expected, hint=hint) from None
            # A column may be named with the output that notes call it by: gpt4_score:score.
            name = text = spelled[plain(name)]
            outputs = ["score"]
            columns.append(name)
        if output and output not in outputs:
            raise UnknownNameError(f"output of metric {name!r}:", output, outputs)
        labels.setdefault((name, output or outputs[0]), text)
    if metrics and options.input is None:
        problem, hint = f"nothing to score with {next(iter(metrics))!r}", f"--scores has: {', '.join(known)}"
        raise ConfigError(problem, expected="a file or folder of responses", hint=hint)
    return metrics, list(dict.fromkeys(columns)), labels


def _outputs(scores: pd.DataFrame, *, is_named: bool) -> list[str]:
    """Return the outputs of a metric in a table of scores; the main one alone if none is named."""
    there = sorted(scores["output"].unique())
    if is_named:
        return there
    kind = str(scores["signature"].iloc[0]).partition("|")[0]
    main = create(kind).outputs[:1] if kind in kinds() else there
    if len(main) > 1 or main[0] not in there:
        problem = f"metric {scores['metric'].iloc[0]!r} has the outputs {', '.join(there)}"
        raise ConfigError(problem, where="--scores", expected="the ones to compare, as --metrics METRIC:OUTPUT")
    return [*main]


def _default(responses: Responses, entries: Entries) -> list[str]:
    """Return the metrics that are compared if none is named, and say which of params.yaml would take long."""
    if isinstance(responses, Path):
        count = schema.count(responses / "responses.parquet", "responses")
    else:
        count = sum(len(some) for some, _ in responses)
    names, lines = default_metrics(entries, count)
    for line in lines:
        print(line, file=sys.stderr)
    if not names:
        problem = "no metrics: none of params.yaml with `main` runs here"
        raise ConfigError(problem, expected="--metrics, --scores or both")
    return names


def default_metrics(entries: Entries, responses: int) -> tuple[list[str], list[str]]:
    """Choose metrics for a file of so many responses.

    Returns METRIC or METRIC:OUTPUT of what to compare: main outputs of metrics that score every data set, run here, and take
    up to three minutes of processor time; and a line for each that takes longer or was not timed, or if `local` cannot run.
    """
    costs = pd.read_csv(COSTS).dropna(subset=["seconds"])
    seconds = dict(zip(costs["metric"], costs["seconds"] / 1000, strict=True))
    names, lines = [], []
    for name, entry in entries.items():
        if not entry.get("main") or entry.get("datasets") or entry.get("apart"):
            continue
        metric = metric_named(name, entries)
        each = seconds.get(name) if metric.runs_model else 0.0
        if why := metric.unavailable():
            # The papers' models are not here as a rule; the parts of `local` come with the repository.
            lines += [f"{name}: not run: {why}"] if metric.kind == "local" else []
        elif each is not None and each * responses <= _MOST_SECONDS:
            main = [entry["main"]] if isinstance(entry["main"], str) else entry["main"]
            names += [name if output == metric.outputs[0] else f"{name}:{output}" for output in main]
        else:
            how_long = "nobody has measured how long it takes"
            if each is not None:
                how_long = f"about {each * responses / 60:,.0f} min of processor time for {responses:,} responses"
            lines.append(f"{name}: left out, {how_long}; `--metrics {name}` includes it")
    return names, lines


def _scores(
    options: argparse.Namespace,
    metrics: dict[str, Metric],
    columns: list[str],
    ready: pd.DataFrame,
    tables: Tables,
    responses: Responses,
) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return all scores, and why metrics were not run."""
    frames = [_named(ready, tables.ratings)] if len(ready) else []
    if columns and tables.attributes is not None:
        frames.append(column_scores(tables.attributes, columns, str(options.input)))
    not_run: dict[str, str] = {}
    if metrics:
        keep_embeddings(options.embeddings)
        scored, not_run, unsuited = score_with(metrics, responses)
        not_run |= unsuited
        if not options.scores and not columns:
            name_not_run(not_run, metrics, options.input)
        frames.append(scored)
    made = [frame for frame in frames if len(frame)]
    if not made:
        raise ConfigError("no response has a score", where=str(options.input), expected="one that a metric can score")
    return pd.concat(made, ignore_index=True), not_run


def _named(scores: pd.DataFrame, ratings: pd.DataFrame) -> pd.DataFrame:
    """Return scores with a data set: those that name none are of the only one that was rated."""
    datasets = sorted({*ratings["dataset"]})
    if UNNAMED in {*scores["dataset"]} and len(datasets) > 1:
        problem = f"scores without a column 'dataset', and ratings of {', '.join(datasets)}"
        raise ConfigError(problem, where="--scores", expected="the column, where several data sets were rated")
    return scores.assign(dataset=scores["dataset"].replace(UNNAMED, datasets[0]))


def _samples(options: argparse.Namespace, tables: Tables) -> tuple[list[evaluation.Sample], list[str]]:
    """Return the samples of what is compared, and notes on what was left out of them."""
    samples, notes = analysed(
        tables,
        replace(analysis_of(options), systems=options.systems),
        levels=options.level or LEVELS,
        targets=options.target,
    )
    few = [sample for sample in samples if sample.level == "system" and len(sample.systems) < FEWEST_SAMPLED]
    if few and len(few) < len(samples) and not options.level:
        samples = [sample for sample in samples if sample not in few]
        count = f"{len(few[0].systems)} system{'s' * (len(few[0].systems) > 1)}"
        notes.append(f"System level is left out: {count}, and nothing can be tested below {FEWEST_SAMPLED}")
    of_systems = ", ".join(name for name in options.coefficient if name in OF_SYSTEMS)
    if not set(options.coefficient) - {*OF_SYSTEMS}:
        samples = [sample for sample in samples if sample.design.average]
    if not samples:
        expected = "three systems or more, and the level `system`, or one of " + ", ".join(COEFFICIENTS)
        raise ConfigError(f"{of_systems}: no system level", where="--coefficient", expected=expected)
    if of_systems:
        here = any(sample.design.average for sample in samples)
        notes.append(f"{of_systems}: of pairs of systems, {'at system level alone' if here else 'which is not here'}")
    if any(map(is_narrow, samples)):
        what = f"there are fewer than {FEWEST_DIALOGUES} dialogues or contexts"
        notes.append(f"No interval and no test of a difference where {what}")
    return samples, notes
