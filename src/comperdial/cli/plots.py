"""Commands that render our own figures."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from comperdial.cli.common import add_kind, add_simulated, add_target, json_object, read_target


def add_kinds(kinds: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's kinds."""
    kind = add_kind(kinds, "plot-heatmap", _heatmap, "a data set's correlations as a heat map", inputs="correlations")
    kind.add_argument("--ceilings", type=Path, help="the table `ceilings`")
    kind.add_argument("--order", help="LEVEL:AGAINST:COEFFICIENT to order the metrics by")
    _shared(kind)
    kind = add_kind(kinds, "plot-scatter", _scatter, "scores against ratings, one panel an output", inputs="scores")
    kind.add_argument("--correlations", type=Path, required=True, help="the table `correlations`")
    _ratings(kind)
    _shared(kind)
    kind = add_kind(kinds, "plot-slope", _slope, "systems ranked by people and by metrics", inputs="scores")
    kind.add_argument("--count", type=int, default=6, help="how many of the largest differences to name (default: 6)")
    _ratings(kind)
    _shared(kind)
    kind = add_kind(kinds, "plot-length-bias", _length_bias, "how scores depend on length", inputs="scores")
    kind.add_argument("--resamples", type=int, default=1000, help="for the intervals (default: 1000)")
    kind.add_argument("--seed", type=int, required=True)
    _ratings(kind)
    _shared(kind)
    kind = add_kind(
        kinds, "plot-judge-agreement", _judge_agreement, "agreement of judges, metrics and people", inputs="scores"
    )
    kind.add_argument("--judges", nargs="+", required=True, metavar="METRIC:OUTPUT", help="which outputs are judges'")
    kind.add_argument("--judgements", type=Path, nargs="*", default=[], help="tables `judgements`, for single answers")
    kind.add_argument("--resamples", type=int, default=1000, help="for the intervals (default: 1000)")
    kind.add_argument("--seed", type=int, required=True)
    _ratings(kind)
    _shared(kind)
    kind = add_kind(kinds, "plot-curves", _curves, "learning curves, and the power of comparisons", inputs="curves")
    kind.add_argument("--power", type=Path, help="the table `power`")
    kind.add_argument("--level", choices=["turn", "dialogue", "system"], help="of the values (default: turn)")
    kind.add_argument("--against", choices=["turn", "dialogue"], help="level of the ratings")
    kind.add_argument("--coefficient", choices=["pearson", "spearman", "kendall"], default="spearman")
    _shared(kind)


def _ratings(kind: argparse.ArgumentParser) -> None:
    kind.add_argument("--tables", type=Path, required=True, help="the data set's folder of tables")
    kind.add_argument("--source", default="human", help="whose ratings (default: human)")
    kind.add_argument(
        "--rated",
        nargs="*",
        choices=["turn", "dialogue"],
        help="at which levels there are ratings; default: what lies there",
    )


def _shared(kind: argparse.ArgumentParser) -> None:
    kind.add_argument(
        "--outputs", nargs="*", metavar="METRIC:OUTPUT", help="which to draw, as far as there are; default: all"
    )
    kind.add_argument("--labels", type=json_object, default={}, metavar="JSON", help="a name for METRIC:OUTPUT")
    kind.add_argument("--title", required=True, help="the data set's title")
    add_target(kind)
    add_simulated(kind)


def _drawn(options: argparse.Namespace) -> dict[str, Any]:
    """Return what every drawing is told."""
    return {"title": options.title, "labels": options.labels, "simulated": options.simulated}


def _outputs(options: argparse.Namespace) -> Any:  # noqa: ANN401
    from comperdial.report.plots.style import parse_outputs

    return parse_outputs(options.outputs) if options.outputs else None


def _heatmap(options: argparse.Namespace) -> None:
    from comperdial import schema
    from comperdial.report.plots import heatmap
    from comperdial.report.plots.style import finish
    from comperdial.report.tables import read_correlations

    found = read_correlations(options.inputs)
    target = read_target(options, found["target"])
    frame = heatmap.heatmap_frame(
        found,
        schema.read(options.ceilings, "ceilings") if options.ceilings else None,
        target=target,
        outputs=_outputs(options),
        order=options.order.split(":") if options.order else None,
    )
    figure = heatmap.heatmap_figure(frame, target=target, **_drawn(options))
    finish(figure, frame, options.output, simulated=options.simulated)


def _scatter(options: argparse.Namespace) -> None:
    from comperdial.report.plots import data, scatter
    from comperdial.report.plots.style import finish
    from comperdial.report.tables import read_correlations

    outputs = _outputs(options)
    tables = data.read_tables(options.tables, options.rated, options.source)
    scores = data.read_scores_of(options.inputs, outputs)
    target = read_target(options, tables.dimensions(options.source))
    sample = data.one_sample(scores, tables, level="turn", target=target, source=options.source)
    frame = scatter.scatter_frame(
        sample, read_correlations([options.correlations]), outputs=outputs, human=data.human_systems(tables.systems)
    )
    finish(scatter.scatter_figure(frame, sample, **_drawn(options)), frame, options.output, simulated=options.simulated)


def _slope(options: argparse.Namespace) -> None:
    from comperdial.report.plots import data, slope
    from comperdial.report.plots.style import finish

    outputs = _outputs(options)
    tables = data.read_tables(options.tables, options.rated, options.source)
    scores = data.read_scores_of(options.inputs, outputs)
    target = read_target(options, tables.dimensions(options.source))
    sample = data.one_sample(scores, tables, level="system", target=target, source=options.source)
    frame = slope.slope_frame(sample, outputs=outputs, human=data.human_systems(tables.systems), count=options.count)
    figure = slope.slope_figure(frame, target=target, against=sample.against, **_drawn(options))
    finish(figure, frame, options.output, simulated=options.simulated)


def _length_bias(options: argparse.Namespace) -> None:
    from comperdial.report.plots import data, length_bias
    from comperdial.report.plots.style import finish

    outputs = _outputs(options)
    tables = data.read_tables(options.tables, options.rated, options.source)
    scores = length_bias.with_lengths(data.read_scores_of(options.inputs, outputs), tables.responses)
    target = read_target(options, tables.dimensions(options.source))
    sample = data.one_sample(scores, tables, level="turn", target=target, source=options.source)
    frame = length_bias.length_bias_frame(sample, outputs=outputs, resamples=options.resamples, seed=options.seed)
    figure = length_bias.length_bias_figure(frame, target=target, **_drawn(options))
    finish(figure, frame, options.output, simulated=options.simulated)


def _judge_agreement(options: argparse.Namespace) -> None:
    from comperdial.report.plots import data, judge_agreement
    from comperdial.report.plots.style import finish, parse_outputs

    judges = parse_outputs(options.judges)
    metrics = parse_outputs(options.outputs or [])
    tables = data.read_tables(options.tables, options.rated, options.source)
    scores = data.read_scores_of(options.inputs, [*judges, *metrics])
    samples = data.turn_samples(scores, tables, source=options.source)
    frame = judge_agreement.judge_agreement_frame(samples, judges=judges, metrics=metrics)
    alphas = judge_agreement.alpha_frame(
        samples,
        data.read_answers(options.judgements, judges, tables.contexts),
        judges=judges,
        resamples=options.resamples,
        seed=options.seed,
    )
    figure = judge_agreement.judge_agreement_figure(frame, alphas, **_drawn(options))
    finish(figure, judge_agreement.joined(frame, alphas), options.output, simulated=options.simulated)


def _curves(options: argparse.Namespace) -> None:
    from comperdial import schema
    from comperdial.report.plots import curves
    from comperdial.report.plots.style import finish

    found = schema.read(options.inputs[0], "curves")
    target = read_target(options, found["target"])
    frame = curves.curves_frame(
        found,
        schema.read(options.power, "power") if options.power else None,
        target=target,
        outputs=_outputs(options),
        level=options.level,
        against=options.against,
        coefficient=options.coefficient,
    )
    figure = curves.curves_figure(frame, target=target, coefficient=options.coefficient, **_drawn(options))
    finish(figure, frame, options.output, simulated=options.simulated)
