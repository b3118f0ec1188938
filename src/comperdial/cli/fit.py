"""The commands that fit the learned metric `local`, and measure what each of its parts contributes."""

from __future__ import annotations

import argparse
import logging
from datetime import UTC, datetime

from comperdial import schema
from comperdial.core.errors import UnknownNameError
from comperdial.core.files import write_json
from comperdial.evaluation import fitting
from comperdial.evaluation.fitting import FittedSet, Protocol
from comperdial.metrics.local import COEFFICIENTS, FEATURES, Coefficients, Features

log = logging.getLogger(__name__)


def fit(options: argparse.Namespace) -> None:
    """Fit the coefficients to people's ratings, and write them."""
    settings, output = options.features or FEATURES, options.output or COEFFICIENTS
    features, protocol = Features.read(settings), Protocol.read(settings)
    if unknown := [part for part in options.leave_out if part not in features.parts]:
        raise UnknownNameError("part", unknown[0], features.parts, where="--leave-out")
    features = features.without(*options.leave_out)
    sets = _sets(options, features, protocol)
    coefficients = fitting.train(sets, features, protocol.penalties, date=datetime.now(UTC).date().isoformat())
    write_json(output, coefficients)
    log.info("%s: %d fits on %d data sets", output, len(coefficients["fits"]), len(sets))


def ablate(options: argparse.Namespace) -> None:
    """Write correlations of the metric without each of its parts and with each alone."""
    features = Features.read(options.features) if options.features else Coefficients.read(COEFFICIENTS).features
    protocol = Protocol.read(options.features or FEATURES)
    sets = _sets(options, features, protocol)
    tables = {name: options.tables / name for name in protocol.targets}
    drawing = {"resamples": options.resamples, "seed": options.seed}
    correlations, pairs = fitting.ablation(sets, tables, features, protocol, **drawing)
    schema.write(options.output, correlations, "correlations")
    schema.write(options.pairs, pairs, "pairs")


def _sets(options: argparse.Namespace, features: Features, protocol: Protocol) -> list[FittedSet]:
    sets = []
    for name, target in protocol.targets.items():
        scores = {metric: options.scores / name / "scores" / f"{metric}.parquet" for metric in features.metrics}
        table = options.tables / name
        sets.append(FittedSet.read(table, scores, features, target=target, group=protocol.groups[name]))
    return sets
