"""The command that compares metrics on a file of rated responses."""

from __future__ import annotations

import argparse
import logging
import re
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from comperdial.cli.common import add_analysis, add_rated_file, analysis_of, output_file, rated_file_options
from comperdial.cli.evaluate import add_params, keep_embeddings, say_not_run
from comperdial.core.errors import ConfigError, UnknownNameError
from comperdial.core.names import LEVELS, Output, output_name
from comperdial.stats import COEFFICIENTS, OF_SYSTEMS

if TYPE_CHECKING:
    import pandas as pd

    from comperdial.evaluation.rated_data import RatedData
    from comperdial.evaluation.samples import Sample
    from comperdial.metrics import Metric

log = logging.getLogger(__name__)

_FORMATS = ("text", "markdown", "latex", "csv")


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's command."""
    command = commands.add_parser("compare", help="which of several metrics agrees best with the ratings of a file")
    command.add_argument(
        "input", type=Path, nargs="?", help="JSONL, CSV or Parquet with `response`, `rating`, …; or a folder of tables"
    )
    command.add_argument(
        "--metrics",
        nargs="+",
        default=[],
        metavar="METRIC[:OUTPUT]",
        help="kinds or names of params.yaml (`comperdial metrics`), with options as in bleu,text=raw; columns of the input; "
        "default, without --scores: those of params.yaml with `main` that run here in up to three minutes each",
    )
    command.add_argument(
        "--against",
        metavar="METRIC[:OUTPUT]",
        help="compare this metric with each other one, and no others with each other: fewer tests to correct for",
    )
    add_params(command)
    command.add_argument(
        "--scores",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="scores of any program: context_id, system_id, value",
    )
    add_rated_file(command)
    command.add_argument(
        "--ratings", type=Path, action="append", default=[],
        help="ratings of responses or dialogues, if the input has none; may be given several times",
    )  # fmt: skip
    command.add_argument("--contexts", type=Path, help="which dialogue a context belongs to")
    command.add_argument("--source", help="whose ratings; default: human, or the one that there is")
    command.add_argument("--target", nargs="+", metavar="DIMENSION", help="rated dimensions; default: all")
    command.add_argument("--level", nargs="+", choices=LEVELS, help="default: all")
    command.add_argument(
        "--coefficient", nargs="+", choices=(*COEFFICIENTS, *OF_SYSTEMS), default=["spearman", "pearson"],
        help="one or more (default: spearman pearson); the last five are of pairs of systems, at system level",
    )  # fmt: skip
    add_analysis(command)
    command.add_argument(
        "--systems", choices=("sampled", "fixed"), default="sampled",
        help="fixed: intervals and tests are over contexts, these systems; two or three always count so",
    )  # fmt: skip
    command.add_argument("--resamples", type=int, default=1000, help="for intervals and tests (default: 1000)")
    command.add_argument("--seed", type=int, default=2024, help="of all that is drawn (default: 2024)")
    command.add_argument("--embeddings", type=Path, metavar="FOLDER", help="keep vectors there (default: nowhere)")
    command.add_argument("--format", choices=_FORMATS, help="default: by the suffix of --output, else text")
    command.add_argument("--output", type=output_file, help="a .txt, .md, .tex or .csv file; default: standard output")
    command.set_defaults(run=_compare)


def _compare(options: argparse.Namespace) -> None:
    from comperdial import evaluation
    from comperdial.core.files import write_text
    from comperdial.evaluation.aggregate import read_scores
    from comperdial.evaluation.correlations import FEWEST_DIALOGUES, is_narrow
    from comperdial.evaluation.rated_data import read_rated
    from comperdial.report.compared import comparison_document
    from comperdial.report.ranking import against, corrected, with_ranks
    from comperdial.report.render import rendered

    form = _format(options)
    if not options.metrics and not options.scores and not options.input:
        raise ConfigError("no metrics", expected="a file or folder of responses, --scores or both")
    ready = read_scores(options.scores, unnamed=True) if options.scores else None
    data = read_rated(
        options.input, ratings=options.ratings, contexts=options.contexts, dataset=_only(ready),
        options=rated_file_options(options),
    )  # fmt: skip
    texts = options.metrics if options.metrics or options.scores else _default(options, data)
    chosen = _chosen(options, texts, ready, data)
    scores, not_run = _scores(options, chosen, ready, data)
    there = set(zip(scores["metric"], scores["output"], strict=True))
    for name, text in chosen.labels.items():
        if name not in there and output_name(text, "")[0] not in not_run:
            not_run[text] = "no response has a score"
    labels = {name: label for name, label in chosen.labels.items() if name in there}
    # The metric that the others are compared with comes first.
    contrasted = next(iter(chosen.labels)) if options.against else None
    if contrasted:
        _check_against(options.against, contrasted, labels, not_run)
    source = options.source or _source(data)
    samples, notes = _samples(options, scores, labels, data, source)
    notes = [*(f"{name}: not run: {why}" for name, why in not_run.items()), *notes]
    if any(map(is_narrow, samples)):
        notes.append(
            f"No interval and no test of a difference where there are fewer than {FEWEST_DIALOGUES} dialogues or contexts"
        )
    detail = evaluation.Detail.named(None, None, options.resamples, options.seed, only=options.coefficient)
    tests = evaluation.differences(samples, detail=detail, coefficients=options.coefficient)
    # Ranks are of all pairs.
    pairs = tests.iloc[:0] if contrasted else tests
    document = comparison_document(
        with_ranks(evaluation.correlations(samples, detail=detail), pairs, options.correction),
        corrected(against(tests, contrasted) if contrasted else tests, options.correction),
        evaluation.ceilings(samples),
        labels,
        options.coefficient,
        caption=_caption(options, source),
        notes=notes,
        correction=options.correction,
        contrasted=contrasted,
    )
    content = rendered(document, form, label="tab:compared")
    if options.output:
        write_text(options.output, content)
    else:
        sys.stdout.write(content)


class _Chosen(NamedTuple):
    """What is compared: metrics to run, columns of the file, and by (metric, output) what a person called it."""

    metrics: dict[str, Metric]
    columns: list[str]
    labels: dict[Output, str]


def _chosen(options: argparse.Namespace, texts: Sequence[str], ready: pd.DataFrame | None, data: RatedData) -> _Chosen:
    """Find what names stand for: metrics of ``--scores``, kinds of metrics, names of params.yaml, columns of the file."""
    from comperdial.metrics.named import metric_named, read_entries

    entries = read_entries(options.params)
    known = {} if ready is None else {str(name): rows for name, rows in ready.groupby("metric", sort=True)}
    spelled = {_plain(column): column for column in data.columns}
    first = [options.against] if options.against else []
    metrics: dict[str, Metric] = {}
    columns: dict[str, str] = {}
    for name in dict.fromkeys(output_name(text, "")[0] for text in [*texts, *first]):
        if name in known:
            continue
        try:
            metrics[name] = metric_named(name, entries)
        except UnknownNameError as error:
            if _plain(name) not in spelled:
                raise _with_tables(error, known, data.columns) from None
            columns[name] = spelled[_plain(name)]
    if metrics and options.input is None:
        raise ConfigError(
            f"nothing to score with {next(iter(metrics))!r}",
            expected="a file or folder of responses",
            hint=f"--scores has: {', '.join(sorted(known))}",
        )
    # Whoever names no metric of --scores wants all of them.
    every = [] if {output_name(text, "")[0] for text in texts} & set(known) else known
    labels: dict[Output, str] = {}
    for text in [*first, *texts, *every]:
        name, output = (text, "") if text in known else output_name(text, "")
        if name in known:
            outputs = sorted(known[name]["output"].unique())
        elif name in metrics:
            outputs = list(metrics[name].outputs)
        else:
            # A column may be named with the output that notes call it by: gpt4_score:score.
            name = text = columns[name]
            outputs = ["score"]
        if output and output not in outputs:
            raise UnknownNameError(f"output of metric {name!r}:", output, outputs)
        labels.setdefault((name, output or (_main(known[name]) if name in known else outputs[0])), text)
    return _Chosen(metrics, list(dict.fromkeys(columns.values())), labels)


def _main(scores: pd.DataFrame) -> str:
    """Return the main output of a metric in a table of scores."""
    from comperdial.metrics import create, kinds

    there = sorted(scores["output"].unique())
    kind = str(scores["signature"].iloc[0]).partition("|")[0]
    first = create(kind).outputs[0] if kind in kinds() else there[0]
    if first not in there or (kind not in kinds() and len(there) > 1):
        raise ConfigError(
            f"metric {scores['metric'].iloc[0]!r} has the outputs {', '.join(there)}",
            where="--scores",
            expected="the ones to compare, as --metrics METRIC:OUTPUT",
        )
    return str(first)


def _scores(
    options: argparse.Namespace, chosen: _Chosen, ready: pd.DataFrame | None, data: RatedData
) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return all scores, those of metrics that are run here among them, and why others are not run."""
    import pandas as pd

    from comperdial.metrics.named import suited_to
    from comperdial.metrics.scoring import batches, score_many

    frames = [None if ready is None else _matched(ready, data), data.scores(chosen.columns)]
    not_run: dict[str, str] = {}
    if chosen.metrics:
        keep_embeddings(options)
        parts = data.parts if isinstance(data.parts, list) else batches(options.input)
        suited, unsuited = suited_to(chosen.metrics, (batch for _, batch in parts))
        scored, not_run = score_many(suited, data.parts)
        not_run |= unsuited
        if not options.scores and not chosen.columns:
            say_not_run(not_run, chosen.metrics, options.input)
        frames.append(scored)
    made = [frame for frame in frames if frame is not None and len(frame)]
    if not made:
        raise ConfigError("no response has a score", where=str(options.input), expected="one that a metric can score")
    scores = pd.concat(made, ignore_index=True)
    rated = set(data.ratings["dataset"])
    if lost := sorted(set(scores["dataset"]) - rated):
        raise ConfigError(
            f"there are scores of the data set {lost[0]!r}",
            where="--scores",
            expected=f"scores of what was rated: {', '.join(sorted(rated))}",
            hint="The column `dataset` of the scores says which it is",
        )
    return scores, not_run


def _samples(
    options: argparse.Namespace, scores: pd.DataFrame, labels: Collection[Output], data: RatedData, source: str
) -> tuple[list[Sample], list[str]]:
    """Return the samples of what is compared, and notes on what was left out of them."""
    import pandas as pd

    from comperdial.evaluation.options import Tables, analysed

    chosen = pd.MultiIndex.from_frame(scores[["metric", "output"]]).isin(list(labels))
    samples, notes = analysed(
        Tables(scores[chosen], data.ratings, data.contexts, data.systems, source),
        replace(analysis_of(options), systems=options.systems),
        attributes=data.attributes() if options.subset else (),
        levels=options.level or LEVELS,
        targets=options.target,
    )
    if not options.level:
        samples, more = _tellable(samples)
        notes += more
    samples, more = _with_coefficients(samples, options.coefficient)
    return samples, [*notes, *more]


def _check_against(text: str, name: Output, labels: Mapping[Output, str], not_run: Mapping[str, str]) -> None:
    """Refuse a metric that nothing can be compared with."""
    if name not in labels:
        why = not_run.get(text) or not_run.get(name[0]) or "no response has a score"
        raise ConfigError(f"{text}: {why}", where="--against", expected="a metric that has scores")
    if len(labels) < 2:
        raise ConfigError(
            f"no other metric than {text} has scores", where="--against", expected="others: --metrics, --scores or both"
        )


def _default(options: argparse.Namespace, data: RatedData) -> list[str]:
    """Return the metrics that are compared where none is named, and say which of params.yaml would take long."""
    from comperdial import schema
    from comperdial.cli.compare_default import default_metrics
    from comperdial.metrics.named import read_entries

    if options.input.is_dir():
        responses = schema.count(options.input / "responses.parquet", "responses")
    else:
        responses = sum(len(some) for some, _ in data.parts)
    names, lines = default_metrics(read_entries(options.params), responses)
    for line in lines:
        print(line, file=sys.stderr)
    if not names:
        raise ConfigError(
            "no metrics: none of params.yaml with `main` runs here", expected="--metrics, --scores or both"
        )
    return names


def _matched(scores: pd.DataFrame, data: RatedData) -> pd.DataFrame:
    """Return the scores of ``--scores`` that are of the file's contexts and dialogues.

    Scores that name no data set are those of the only one that was rated. A metric without a score of something rated is an
    error.
    """
    import pandas as pd

    from comperdial.evaluation.aggregate import UNNAMED

    datasets = sorted(set(data.ratings["dataset"]))
    if UNNAMED in set(scores["dataset"]):
        if len(datasets) != 1:
            raise ConfigError(
                f"scores without a column 'dataset', and ratings of {', '.join(datasets)}",
                where="--scores",
                expected="the column, where several data sets were rated",
            )
        scores = scores.assign(dataset=scores["dataset"].replace(UNNAMED, datasets[0]))
    unit = ["item_id", "system_id"]
    rated = data.ratings[unit]
    if data.contexts is not None:
        # A score may be of the dialogue of a rated response.
        dialogue_of = dict(zip(data.contexts["context_id"], data.contexts["dialogue_id"], strict=True))
        rated = pd.concat([rated, rated.assign(item_id=rated["item_id"].map(lambda item: dialogue_of.get(item, item)))])
    matched = pd.MultiIndex.from_frame(scores[unit]).isin(pd.MultiIndex.from_frame(rated))
    for metric, rows in scores.assign(matched=matched).groupby("metric", sort=True):
        if not rows["matched"].any():
            (item, system), (known, by) = rows[unit].iloc[0], rated.sort_values(unit).iloc[0]
            raise ConfigError(
                f"none of the {len(rows):,} scores of {metric!r} is of something rated: the first is of {item!r}, "
                f"system {system!r}",
                where="--scores",
                expected=f"the names of the ratings, such as {known!r}, system {by!r}",
            )
    if data.contexts is None:
        return scores
    kept = scores[scores["item_id"].isin({*data.contexts["context_id"], *data.contexts["dialogue_id"]})]
    if lost := len(scores) - len(kept):
        log.warning("%d of %d scores are of contexts that are not rated, and are left out", lost, len(scores))
    return kept


def _format(options: argparse.Namespace) -> str:
    """Return the form to write: what was asked for, or what the suffix of the output says."""
    from comperdial.report.render import FORMATS

    if options.format or not options.output:
        return options.format or "text"
    by_suffix = {suffix: form for form, suffix in FORMATS.items()}
    if options.output.suffix not in by_suffix:
        raise ConfigError(
            f"{options.output}: unknown kind of file", where="--output", expected=f"{', '.join(by_suffix)}, or --format"
        )
    return by_suffix[options.output.suffix]


def _with_tables(
    error: UnknownNameError, known: Iterable[str], columns: Sequence[str]
) -> UnknownNameError | ConfigError:
    """Add to the error of a name that is no metric what the tables of scores and the file's own columns are called."""
    names_of = [("--scores has", sorted(known)), ("columns of the file that may be compared", columns)]
    more = [f"{what}: {', '.join(names)}" for what, names in names_of if names]
    if not more:
        return error
    return ConfigError(
        error.problem, expected=error.expected, hint=" ".join([error.hint or "", "; ".join(more)]).strip()
    )


def _plain(name: str) -> str:
    """Return a name of a column as columns are compared: case, spaces, hyphens and underscores do not matter."""
    return re.sub(r"[\s_-]+", "_", name.strip().lower())


def _only(scores: pd.DataFrame | None) -> str | None:
    from comperdial.evaluation.aggregate import UNNAMED

    names = set() if scores is None else {str(name) for name in scores["dataset"]} - {UNNAMED}
    return names.pop() if len(names) == 1 else None


def _source(data: RatedData) -> str:
    """Return whose ratings count if nobody says: people's, or those of the only source there is."""
    sources = set(data.ratings["source"])
    return sources.pop() if len(sources) == 1 else "human"


def _tellable(samples: list[Sample]) -> tuple[list[Sample], list[str]]:
    """Leave out means of systems where they are too few for any test or interval, and say so."""
    from comperdial.stats.design import FEWEST_SAMPLED

    few = [sample for sample in samples if sample.level == "system" and len(sample.systems) < FEWEST_SAMPLED]
    rest = [sample for sample in samples if sample not in few]
    if not few or not rest:
        return samples, []
    count = len(few[0].systems)
    return rest, [
        f"System level is left out: {count} system{'s' * (count > 1)}, and nothing can be tested below {FEWEST_SAMPLED}"
    ]


def _with_coefficients(samples: list[Sample], wanted: Sequence[str]) -> tuple[list[Sample], list[str]]:
    """Leave out levels that have none of the coefficients, and say which of them are of systems alone."""
    of_systems = [name for name in wanted if name in OF_SYSTEMS]
    kept = [sample for sample in samples if sample.design.average or len(of_systems) < len(wanted)]
    if not kept:
        raise ConfigError(
            f"{', '.join(of_systems)}: no system level",
            where="--coefficient",
            expected="three systems or more, and the level `system`, or one of " + ", ".join(COEFFICIENTS),
        )
    if not of_systems:
        return kept, []
    here = any(sample.design.average for sample in kept)
    return kept, [
        f"{', '.join(of_systems)}: of pairs of systems, {'at system level alone' if here else 'which is not here'}"
    ]


def _caption(options: argparse.Namespace, source: str) -> str:
    from comperdial.challenge.simulation import SOURCE
    from comperdial.report.render import SIMULATED

    what = (f" on {options.input}" if options.input else "") + "".join(f", {text}" for text in options.subset)
    whose = "mean human rating" if source == "human" else f"mean rating ({source})"
    text = f"Correlation of metrics with the {whose}{what}. {options.resamples} resamples, seed {options.seed}."
    return f"{text} {SIMULATED}" if source == SOURCE else text
