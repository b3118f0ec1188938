"""Names that tables, settings and commands share: the levels, and how an output of a metric is written."""

from __future__ import annotations

import math
import re
from numbers import Integral, Real

from comperdial.core.errors import ConfigError

LEVELS = ("turn", "dialogue", "system")
RATED_LEVELS = ("turn", "dialogue")
Output = tuple[str, str]

PERTURBATIONS = ("turn_perturbations", "dialogue_perturbations")
"""The recorded perturbations, which a study with `perturbed` judges too."""
PERTURBED = "_perturbed"
"""How the name of a data set's generated perturbations ends."""


def perturbed(dataset: str) -> str:
    """Return what the generated perturbations of a data set are called."""
    return dataset + PERTURBED


def unperturbed(dataset: str) -> str:
    """Return the data set that generated perturbations are of; of any other data set, its own name."""
    return dataset.removesuffix(PERTURBED)


def output_name(text: str, default: str | None = None, *, where: str | None = None) -> Output:
    """Return metric and output that ``METRIC:OUTPUT`` names; a metric's name may hold colons, an output's none.

    ``default`` is the output of ``METRIC`` alone, which is an error without it; ``where`` the text is from, for that.

    Raises
    ------
    ConfigError
        When there is nothing on a side of the colon.
    """
    metric, colon, output = text.rpartition(":")
    if text and not colon and default is not None:
        return text, default
    if not metric or not output:
        raise ConfigError(f"output {text!r}", where=where, expected="METRIC:OUTPUT")
    return metric, output


def plain_name(value: object) -> object:
    """Return a name of a system, context, dialogue or annotator as every table spells it.

    Names are texts. Programs that take them for numbers add and drop ``.0``: ``1``, ``1.0`` and the number 1 are the same
    name; ``007`` and ``1.50`` stay as they are. White space around a name is dropped. What can be no name is returned as it is.
    """
    if isinstance(value, str):
        text = value.strip() or value
        return text.partition(".")[0] if re.fullmatch(r"-?\d+\.0+", text) else text
    if isinstance(value, bool) or not isinstance(value, Real):
        return value
    # First, since a whole number may be too large for a float.
    if isinstance(value, Integral):
        return str(int(value))
    if not math.isfinite(value):
        return value
    real = float(value)
    return str(int(real)) if real.is_integer() else repr(real)
