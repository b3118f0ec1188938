"""The command that compares metrics on a file of rated responses."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comperdial.cli.common import add_analysis, add_rated_file, analysis_of, output_file, rated_file_options
from comperdial.cli.evaluate import add_params, keep_embeddings, say_not_run
from comperdial.core.errors import ConfigError, UnknownNameError
from comperdial.core.names import LEVELS, output_name
from comperdial.stats import COEFFICIENTS

if TYPE_CHECKING:
    import pandas as pd

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
        help="kinds or names of params.yaml (`comperdial metrics`); options follow, as in bleu,text=raw",
    )
    add_params(command)
    command.add_argument(
        "--scores", type=Path, nargs="+", default=[], metavar="FILE", help="ready-made tables `scores`"
    )
    add_rated_file(command)
    command.add_argument("--ratings", type=Path, help="ratings of responses, if the input has none")
    command.add_argument("--dialogue-ratings", type=Path, help="table `dialogue_ratings`: ratings of whole dialogues")
    command.add_argument("--contexts", type=Path, help="which dialogue a context belongs to")
    command.add_argument("--source", help="whose ratings; default: human, or the one that there is")
    command.add_argument("--target", nargs="+", metavar="DIMENSION", help="rated dimensions; default: all")
    command.add_argument("--level", nargs="+", choices=LEVELS, help="default: all")
    command.add_argument(
        "--coefficient", nargs="+", choices=COEFFICIENTS, default=["spearman", "pearson"],
        help="one or more (default: spearman pearson)",
    )  # fmt: skip
    add_analysis(command)
    command.add_argument("--resamples", type=int, default=1000, help="for intervals and tests (default: 1000)")
    command.add_argument("--seed", type=int, default=2024, help="of all that is drawn (default: 2024)")
    command.add_argument("--embeddings", type=Path, metavar="FOLDER", help="keep vectors there (default: nowhere)")
    command.add_argument("--format", choices=_FORMATS, help="default: by the suffix of --output, else text")
    command.add_argument("--output", type=output_file, help="a .txt, .md, .tex or .csv file; default: standard output")
    command.set_defaults(run=_compare)


def _compare(options: argparse.Namespace) -> None:
    import pandas as pd

    from comperdial import evaluation
    from comperdial.core.files import write_text
    from comperdial.evaluation import aggregate
    from comperdial.evaluation.options import Tables, analysed, corrected
    from comperdial.evaluation.rated_data import own_columns, read_rated
    from comperdial.metrics.named import metric_named, read_entries, suited_to
    from comperdial.metrics.scoring import batches, score_many
    from comperdial.report import few
    from comperdial.report.compared import comparison_document
    from comperdial.report.document import rendered

    form = _format(options)
    analysis = analysis_of(options)
    if not options.metrics and not options.scores:
        raise ConfigError("no metrics", expected="--metrics, --scores or both")
    ready = aggregate.read_scores(options.scores) if options.scores else None
    known = set() if ready is None else set(ready["metric"])
    names = list(dict.fromkeys(output_name(text, "")[0] for text in options.metrics))
    entries = read_entries(options.params)
    try:
        metrics = {name: metric_named(name, entries) for name in names if name not in known}
    except UnknownNameError as error:
        raise _with_tables(error, known) if known else error from None
    if metrics and options.input is None:
        raise ConfigError(f"nothing to score with {next(iter(metrics))!r}", expected="a file or folder of responses")
    wanted = _wanted(options.metrics, metrics, ready)
    data = read_rated(
        options.input,
        ratings=options.ratings,
        dialogue_ratings=options.dialogue_ratings,
        contexts=options.contexts,
        dataset=_only(ready),
        options=rated_file_options(options),
    )
    keep_embeddings(options)
    scores: pd.DataFrame | None = None
    not_run: dict[str, str] = {}
    if metrics:
        parts = data.parts if isinstance(data.parts, list) else batches(options.input)
        metrics, unsuited = suited_to(metrics, (batch for _, batch in parts))
        scores, not_run = score_many(metrics, data.parts)
        not_run |= unsuited
    if ready is None:
        say_not_run(not_run, {**metrics, **not_run}, options.input)
    found = [frame for frame in (ready, scores) if frame is not None and len(frame)]
    if not found:
        raise ConfigError("no response has a score", where=str(options.input), expected="one that a metric can score")
    scores = pd.concat(found, ignore_index=True)
    _check_datasets(scores, data)
    there = set(zip(scores["metric"], scores["output"], strict=True))
    none = {text: "no response has a score" for name, text in wanted.items() if name not in there}
    not_run |= {text: why for text, why in none.items() if output_name(text, "")[0] not in not_run}
    labels = {name: label for name, label in wanted.items() if name in there}
    chosen = pd.MultiIndex.from_frame(scores[["metric", "output"]]).isin(list(labels))
    source = options.source or _source(data)
    attributes = (
        own_columns(options.input, data, rated_file_options(options)) if options.input and options.subset else ()
    )
    tables = Tables(scores[chosen], data.ratings, data.contexts, data.dialogue_ratings, data.systems, source)
    samples, said = analysed(
        tables, analysis, attributes=attributes, levels=options.level or LEVELS, targets=options.target
    )
    notes = [*said, *(f"{name}: not run: {why}" for name, why in not_run.items())]
    if not options.level:
        samples, more = _tellable(samples)
        notes += more
    detail = evaluation.Detail.named(None, None, options.resamples, options.seed)
    differences = evaluation.differences(samples, detail=detail, coefficients=options.coefficient)
    differences = corrected(differences, options.correction)
    ranked = evaluation.ranked(evaluation.correlations(samples, detail=detail), differences)
    document = comparison_document(
        few.with_p(ranked, few.exact_of(sample for sample in samples if sample.level == "system")),
        differences,
        evaluation.ceilings(samples),
        labels,
        options.coefficient,
        caption=_caption(options, source),
        notes=notes,
        correction=options.correction,
    )
    content = rendered(document, form, label="tab:compared")
    if options.output:
        write_text(options.output, content)
    else:
        sys.stdout.write(content)


def _check_datasets(scores: pd.DataFrame, data: Any) -> None:  # noqa: ANN401
    """Refuse scores of a data set that nobody rated: they would be left out without a word."""
    tables = [table for table in (data.ratings, data.dialogue_ratings) if table is not None]
    rated = {str(name) for table in tables for name in table["dataset"].unique()}
    if lost := sorted({str(name) for name in scores["dataset"].unique()} - rated):
        raise ConfigError(
            f"there are scores of the data set {lost[0]!r}",
            where="--scores",
            expected=f"scores of what was rated: {', '.join(sorted(rated))}",
            hint="The column `dataset` of the scores says which it is",
        )


def _format(options: argparse.Namespace) -> str:
    """Return the form to write: what was asked for, or what the suffix of the output says."""
    from comperdial.report.document import FORMATS

    if options.format or not options.output:
        return options.format or "text"
    by_suffix = {suffix: form for form, suffix in FORMATS.items()}
    if options.output.suffix not in by_suffix:
        raise ConfigError(
            f"{options.output}: unknown kind of file", where="--output", expected=f"{', '.join(by_suffix)}, or --format"
        )
    return by_suffix[options.output.suffix]


def _with_tables(error: UnknownNameError, known: set[str]) -> ConfigError:
    """Say of a name that is no metric which ones the tables of scores have."""
    found = ", ".join(sorted(known))
    return ConfigError(error.problem, expected=error.expected, hint=f"{error.hint or ''} --scores has: {found}".strip())


def _only(scores: pd.DataFrame | None) -> str | None:
    names = set() if scores is None else {str(name) for name in scores["dataset"]}
    return names.pop() if len(names) == 1 else None


def _wanted(texts: list[str], metrics: dict[str, Any], ready: pd.DataFrame | None) -> dict[tuple[str, str], str]:
    """Return (metric, output) of what is compared, with the name that a person gave it."""
    outputs = {name: metric.outputs for name, metric in metrics.items()}
    if ready is not None:
        for name, frame in ready.groupby("metric", sort=True):
            outputs.setdefault(str(name), _ordered(frame))
        # Whoever names none of them did not choose among them.
        if not {output_name(text, "")[0] for text in texts} & set(ready["metric"]):
            texts = [*texts, *(name for name in outputs if name not in metrics)]
    found: dict[tuple[str, str], str] = {}
    for text in texts:
        name, output = output_name(text, "")
        if output and output not in outputs[name]:
            raise UnknownNameError(f"output of metric {name!r}:", output, outputs[name])
        found.setdefault((name, output or outputs[name][0]), text)
    return found


def _ordered(scores: pd.DataFrame) -> tuple[str, ...]:
    """Return the outputs of a metric in a table of scores, the main one first where its kind says which that is."""
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
    return (first, *(name for name in there if name != first))


def _source(data: Any) -> str:  # noqa: ANN401
    """Return whose ratings count if nobody says: people's, or those of the only source there is."""
    tables = [table for table in (data.ratings, data.dialogue_ratings) if table is not None]
    sources = {str(name) for table in tables for name in table["source"].unique()}
    return sources.pop() if len(sources) == 1 else "human"


def _tellable(samples: list[Any]) -> tuple[list[Any], list[str]]:
    """Leave out means of systems where they are too few for any test or interval, and say so."""
    from comperdial.stats.comparison import FEWEST

    few = [sample for sample in samples if sample.level == "system" and len(sample.systems) < FEWEST]
    rest = [sample for sample in samples if sample not in few]
    if not few or not rest:
        return samples, []
    count = len(few[0].systems)
    return rest, [
        f"System level is left out: {count} system{'s' * (count > 1)}, and nothing can be tested below {FEWEST}"
    ]


def _caption(options: argparse.Namespace, source: str) -> str:
    from comperdial.challenge.simulation import SOURCE
    from comperdial.report.captions import SIMULATED, with_suffix

    what = (f" on {options.input}" if options.input else "") + "".join(f", {text}" for text in options.subset)
    whose = "mean human rating" if source == "human" else f"mean rating ({source})"
    text = f"Correlation of metrics with the {whose}{what}. {options.resamples} resamples, seed {options.seed}."
    return with_suffix(text, SIMULATED if source == SOURCE else "")
