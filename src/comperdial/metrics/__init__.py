"""Metrics by name. The files of this package are the registry: module ``bleu`` holds the metric ``bleu``."""

from __future__ import annotations

from comperdial.core.plugins import load_class, module_names
from comperdial.metrics.base import Batch, Metric, OverlapMetric, Scores
from comperdial.metrics.options import read_options

__all__ = ["Batch", "Metric", "OverlapMetric", "Scores", "create", "kinds"]

_HELPERS = frozenset({"base", "named", "options", "score_files", "scoring", "text"})


def kinds() -> tuple[str, ...]:
    """Return the names of all metrics."""
    return module_names(__name__, _HELPERS)


def create(kind: str, /, **options: object) -> Metric:
    """Make a metric from its name and options.

    Raises
    ------
    UnknownNameError
        When there is no such metric or option; names the nearest ones.
    ConfigError
        When an option has a value that it cannot have.
    """
    # The base class is abstract, which a checker holds against type[Metric]; the ones found are concrete.
    found = load_class(__name__, kind, Metric, kind="metric", helpers=_HELPERS)  # type: ignore[type-abstract]
    return found(**read_options(found, options))
