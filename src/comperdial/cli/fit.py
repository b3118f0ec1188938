"""Commands that fit the learned metric, and that say what each of its parts contributes."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import Any

from comperdial.cli.common import output_file, output_table

log = logging.getLogger(__name__)


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's commands."""
    command = commands.add_parser(
        "fit",
        help="fit the learned metric `local` to people's ratings",
        description="Fits the coefficients of `local` (docs/local-metric.md) to the scores that `snakemake local_metrics` made.",
    )
    _inputs(command)
    command.add_argument(
        "--leave-out", action="append", default=[], metavar="PART", help="do without a part; may be repeated"
    )
    command.add_argument(
        "--output", type=output_file, metavar="FILE", help="a .json file; default: the one that the package ships"
    )
    command.set_defaults(run=_fit)

    command = commands.add_parser(
        "ablate",
        help="correlate `local` without each of its parts and with each alone, held out, with people's ratings",
    )
    _inputs(command)
    command.add_argument("--resamples", type=int, default=1000, help="for intervals and tests (default: 1000)")
    command.add_argument("--seed", type=int, default=2024, help="of all that is drawn (default: 2024)")
    command.add_argument("--output", type=output_table, required=True, metavar="FILE", help="table `correlations`")
    command.add_argument("--pairs", type=output_table, required=True, metavar="FILE", help="table `pairs`")
    command.set_defaults(run=_ablate)


def _inputs(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--features",
        type=Path,
        metavar="FILE",
        help="features and data sets, as in the package's local_features.yaml, which is the default",
    )
    command.add_argument(
        "--tables", type=Path, default=Path("data/tables"), metavar="FOLDER", help="default: data/tables"
    )
    command.add_argument(
        "--scores",
        type=Path,
        default=Path("results"),
        metavar="FOLDER",
        help="holds DATASET/scores/METRIC.parquet; default: results",
    )


def _fit(options: argparse.Namespace) -> None:
    import datetime

    from comperdial.core.errors import UnknownNameError
    from comperdial.core.files import write_json
    from comperdial.evaluation.fitting import Protocol, train
    from comperdial.metrics.local import COEFFICIENTS, FEATURES, Features

    said = options.features or FEATURES
    features, protocol = Features.read(said), Protocol.read(said)
    for part in options.leave_out:
        if part not in features.parts:
            raise UnknownNameError("part", part, features.parts, where="--leave-out")
    features = features.without(*options.leave_out)
    sets = _sets(options, features, protocol)
    found = train(sets, features, protocol.penalties, date=datetime.datetime.now(datetime.UTC).date().isoformat())
    output = options.output or COEFFICIENTS
    write_json(output, found)
    log.info("%s: %d fits on %d data sets", output, len(found["fits"]), len(sets))


def _sets(options: argparse.Namespace, features: Any, protocol: Any) -> list[Any]:  # noqa: ANN401 - Features, Protocol
    from comperdial.evaluation.fitting import FittedSet

    return [
        FittedSet.read(
            options.tables / name,
            {metric: options.scores / name / "scores" / f"{metric}.parquet" for metric in features.metrics},
            features,
            target=target,
            group=protocol.groups[name],
        )
        for name, target in protocol.targets.items()
    ]


def _ablate(options: argparse.Namespace) -> None:
    from comperdial import schema
    from comperdial.evaluation.fitting import Protocol, ablation
    from comperdial.metrics.local import COEFFICIENTS, FEATURES, Coefficients, Features

    features = Features.read(options.features) if options.features else Coefficients.read(COEFFICIENTS).features
    protocol = Protocol.read(options.features or FEATURES)
    correlations, pairs = ablation(
        _sets(options, features, protocol),
        {name: options.tables / name for name in protocol.targets},
        features,
        protocol,
        resamples=options.resamples,
        seed=options.seed,
    )
    schema.write(options.output, correlations, "correlations")
    schema.write(options.pairs, pairs, "pairs")
