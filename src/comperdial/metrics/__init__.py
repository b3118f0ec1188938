"""Registry of metrics by name: each public module of this package defines the metric of the same name."""

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
    """Create a metric from its name and options.

    Raises
    ------
    UnknownNameError
        If the metric or option does not exist; the message suggests the nearest names.
    ConfigError
        If an option has an invalid value.
    """
    # The base class is abstract, so type checkers reject it as type[Metric]; the classes loaded here are concrete.
    found = load_class(__name__, kind, Metric, kind="metric", helpers=_HELPERS)  # type: ignore[type-abstract]
    return found(**read_options(found, options))
