"""The commands that fit the learned metric `local`, and measure what each of its parts contributes."""

from __future__ import annotations

import argparse
import logging
from datetime import UTC, datetime

from comperdial import schema
from comperdial.config import load_yaml
from comperdial.core.errors import UnknownNameError
from comperdial.core.files import write_json
from comperdial.evaluation import fitting
from comperdial.metrics.local import COEFFICIENTS, FEATURES, Coefficients, Features

log = logging.getLogger(__name__)


def fit(options: argparse.Namespace) -> None:
    """Fit the coefficients to people's ratings, and write them."""
    settings, output = options.features or FEATURES, options.output or COEFFICIENTS
    features = Features.read(settings)
    if unknown := [part for part in options.leave_out if part not in features.parts]:
        raise UnknownNameError("part", unknown[0], features.parts, where="--leave-out")
    features = features.without(*options.leave_out)
    sets = fitting.read_sets(settings, features, options.tables, options.scores)
    date = datetime.now(UTC).date().isoformat()
    coefficients = fitting.train(sets, features, load_yaml(settings)["penalties"], date=date)
    write_json(output, coefficients)
    log.info("%s: %d fits on %d data sets", output, len(coefficients["fits"]), len(sets))


def ablate(options: argparse.Namespace) -> None:
    """Write correlations of the metric without each of its parts and with each alone."""
    settings = options.features or FEATURES
    features = Features.read(settings) if options.features else Coefficients.read(COEFFICIENTS).features
    sets = fitting.read_sets(settings, features, options.tables, options.scores)
    drawing = {"resamples": options.resamples, "seed": options.seed}
    made = fitting.ablation(sets, options.tables, features, load_yaml(settings)["penalties"], **drawing)
    for path, frame, name in zip((options.output, options.pairs), made, ("correlations", "pairs"), strict=True):
        schema.write(path, frame, name)
