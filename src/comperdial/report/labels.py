"""What tables, figures and notebooks call an output of a metric: one name everywhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from comperdial.core.names import Output

HUMAN = ("human", "turns")
"""The output that stands for people's own ratings of the turns of a dialogue."""


def label(output: Output, labels: Mapping[str, str]) -> str:
    """Return what an output is called.

    Parameters
    ----------
    output
        Metric and output.
    labels
        The names that ``params.yaml`` and the metrics' entries give, for ``METRIC:OUTPUT`` or for ``METRIC``
        (``Plan.labels``). Where there is none, the metric's name and the output's; one name where they are the same.
    """
    metric, name = output
    if found := labels.get(f"{metric}:{name}"):
        return found
    if output == HUMAN:
        return "People, turn by turn"
    # `chrf_raw chrf` and `f1 f1` say a name twice.
    alike = metric == name or metric.startswith((f"{name}_", f"{name}-"))
    if (called := labels.get(metric)) is not None:
        return called if alike else f"{called}, {name}"
    return metric if alike else name if name.startswith(metric) else f"{metric} {name}"


def not_run_notes(reasons: Iterable[tuple[str, str]]) -> list[str]:
    """Return a note for each reason why something could not run, given names with their reasons."""
    names: dict[str, list[str]] = {}
    for name, why in reasons:
        names.setdefault(why, []).append(name)
    return [f"not run: {'; '.join(dict.fromkeys(of_one))}: {why}" for why, of_one in names.items()]


def metrics_not_run(not_run: Mapping[str, str], labels: Mapping[str, str]) -> list[str]:
    """Return :func:`not_run_notes` of metrics, by the names that tables give them."""
    return not_run_notes((labels.get(name, name), why) for name, why in sorted(not_run.items()))
