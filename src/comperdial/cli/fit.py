"""Commands that fit the learned metric `local` and measure what each of its parts contributes."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import Any

from comperdial.cli.common import output_file, output_table

log = logging.getLogger(__name__)


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's commands."""
    fit = commands.add_parser(
        "fit",
        help="fit the learned metric `local` to people's ratings",
        description="Fits the coefficients of `local` (docs/local-metric.md) to the scores that `snakemake local_metrics` made.",
    )
    ablate = commands.add_parser(
        "ablate",
        help="correlate `local` without each of its parts and with each alone, held out, with people's ratings",
    )
    for command in (fit, ablate):
        command.add_argument(
            "--features", type=Path, help="features and data sets; default: the package's local_features.yaml"
        )
        command.add_argument("--tables", type=Path, default=Path("data/tables"), help="default: data/tables")
        command.add_argument(
            "--scores",
            type=Path,
            default=Path("results"),
            help="holds DATASET/scores/METRIC.parquet; default: results",
        )
    fit.add_argument("--leave-out", action="append", default=[], metavar="PART", help="omit a part; may be repeated")
    fit.add_argument("--output", type=output_file, help="a .json file; default: the one that the package ships")
    fit.set_defaults(run=_fit)
    ablate.add_argument("--resamples", type=int, default=1000, help="for intervals and tests (default: 1000)")
    ablate.add_argument("--seed", type=int, default=2024, help="of all that is drawn (default: 2024)")
    ablate.add_argument("--output", type=output_table, required=True, help="table `correlations` to write")
    ablate.add_argument("--pairs", type=output_table, required=True, help="table `pairs` to write")
    ablate.set_defaults(run=_ablate)


def _fit(options: argparse.Namespace) -> None:
    import datetime

    from comperdial.core.errors import UnknownNameError
    from comperdial.core.files import write_json
    from comperdial.evaluation.fitting import Protocol, train
    from comperdial.metrics.local import COEFFICIENTS, FEATURES, Features

    settings = options.features or FEATURES
    features, protocol = Features.read(settings), Protocol.read(settings)
    for part in options.leave_out:
        if part not in features.parts:
            raise UnknownNameError("part", part, features.parts, where="--leave-out")
    features = features.without(*options.leave_out)
    sets = _sets(options, features, protocol)
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    coefficients = train(sets, features, protocol.penalties, date=today)
    output = options.output or COEFFICIENTS
    write_json(output, coefficients)
    log.info("%s: %d fits on %d data sets", output, len(coefficients["fits"]), len(sets))


def _ablate(options: argparse.Namespace) -> None:
    from comperdial import schema
    from comperdial.evaluation.fitting import Protocol, ablation
    from comperdial.metrics.local import COEFFICIENTS, FEATURES, Coefficients, Features

    features = Features.read(options.features) if options.features else Coefficients.read(COEFFICIENTS).features
    protocol = Protocol.read(options.features or FEATURES)
    sets = _sets(options, features, protocol)
    tables = {name: options.tables / name for name in protocol.targets}
    drawing = {"resamples": options.resamples, "seed": options.seed}
    correlations, pairs = ablation(sets, tables, features, protocol, **drawing)
    schema.write(options.output, correlations, "correlations")
    schema.write(options.pairs, pairs, "pairs")


def _sets(options: argparse.Namespace, features: Any, protocol: Any) -> list[Any]:  # noqa: ANN401 - Features, Protocol
    from comperdial.evaluation.fitting import FittedSet

    sets = []
    for name, target in protocol.targets.items():
        scores = {metric: options.scores / name / "scores" / f"{metric}.parquet" for metric in features.metrics}
        table = options.tables / name
        sets.append(FittedSet.read(table, scores, features, target=target, group=protocol.groups[name]))
    return sets
