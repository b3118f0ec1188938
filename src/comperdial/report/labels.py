"""What tables, figures and notebooks call an output of a metric: one name everywhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from comperdial.report.about import HUMAN, label

__all__ = ["HUMAN", "label", "metrics_not_run", "not_run_notes"]


def not_run_notes(reasons: Iterable[tuple[str, str]]) -> list[str]:
    """Return a note for each reason why something could not run, given names with their reasons."""
    names: dict[str, list[str]] = {}
    for name, why in reasons:
        names.setdefault(why, []).append(name)
    return [f"not run: {'; '.join(dict.fromkeys(of_one))}: {why}" for why, of_one in names.items()]


def metrics_not_run(not_run: Mapping[str, str], labels: Mapping[str, str]) -> list[str]:
    """Return :func:`not_run_notes` of metrics, by the names that tables give them."""
    return not_run_notes((labels.get(name, name), why) for name, why in sorted(not_run.items()))
