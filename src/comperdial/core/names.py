"""Names shared by tables, settings and commands: levels, and METRIC:OUTPUT."""

from __future__ import annotations

import math
import re
from numbers import Integral, Real

from comperdial.core.errors import ConfigError

LEVELS = ("turn", "dialogue", "system")
RATED_LEVELS = ("turn", "dialogue")
Output = tuple[str, str]

PERTURBATIONS = ("turn_perturbations", "dialogue_perturbations")
"""The recorded perturbations, which are also judged in a study with `perturbed`."""
PERTURBED = "_perturbed"
"""Suffix of a data set's generated perturbations."""


def perturbed(dataset: str) -> str:
    """Return the name of a data set's generated perturbations."""
    return dataset + PERTURBED


def unperturbed(dataset: str) -> str:
    """Return the data set that generated perturbations come from; any other name is returned as it is."""
    return dataset.removesuffix(PERTURBED)


def output_name(text: str, default: str | None = None, *, where: str | None = None) -> Output:
    """Split ``METRIC:OUTPUT``; the metric's name may contain colons, the output's may not.

    ``default`` is the output of a bare ``METRIC``; without it, a bare name is an error that mentions ``where``.

    Raises
    ------
    ConfigError
        If there is nothing on one side of the colon.
    """
    metric, colon, output = text.rpartition(":")
    if text and not colon and default is not None:
        return text, default
    if not metric or not output:
        raise ConfigError(f"output {text!r}", where=where, expected="METRIC:OUTPUT")
    return metric, output


def plain_name(value: object) -> object:
    """Normalize the name of a system, context, dialogue or annotator, so that all tables spell it alike.

    Names are texts. Some programs read them as numbers and add or drop ``.0``, so ``1``, ``1.0`` and the number 1 are the same
    name; ``007`` and ``1.50`` are kept. Surrounding white space is removed. Values that cannot be names are returned unchanged.
    """
    if isinstance(value, str):
        text = value.strip() or value
        return text.partition(".")[0] if re.fullmatch(r"-?\d+\.0+", text) else text
    if isinstance(value, bool) or not isinstance(value, Real):
        return value
    # First, because a large integer may not fit a float.
    if isinstance(value, Integral):
        return str(int(value))
    if not math.isfinite(value):
        return value
    real = float(value)
    return str(int(real)) if real.is_integer() else repr(real)
