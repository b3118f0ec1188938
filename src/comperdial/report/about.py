"""``about.json``, written by ``comperdial describe``: the configuration of a data set that tables and figures need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from comperdial.core.errors import UnknownNameError
from comperdial.core.files import read_json
from comperdial.core.names import Output
from comperdial.schema.dimensions import chosen_dimension

Inputs = Mapping[str, Sequence[Path]]
"""The files that a table or figure is made of, by what they hold."""
Study = Mapping[str, Any]
"""A checked ``study.yaml``, with ``name``, ``entry`` (the table's or figure's own) and ``datasets``."""
HUMAN = ("human", "turns")
"""The output that is people's own ratings of the turns of a dialogue."""


@dataclass(frozen=True)
class About:
    """Titles, labels, sources, and metrics and judges that were not run, of several data sets."""

    sets: Mapping[str, Mapping[str, Any]]

    @classmethod
    def read(cls, paths: Iterable[str | Path]) -> About:
        """Read the files of several data sets."""
        return cls({one["dataset"]: one for one in map(read_json, paths)})

    def __getitem__(self, dataset: str) -> Mapping[str, Any]:
        """Return the information on one data set."""
        return self.sets[dataset]

    @property
    def only(self) -> Mapping[str, Any]:
        """Return the information on the only data set."""
        (one,) = self.sets.values()
        return one

    @property
    def titles(self) -> dict[str, str]:
        """Return the titles by data set."""
        return {name: one["title"] for name, one in self.sets.items()}

    @property
    def labels(self) -> dict[str, str]:
        """Return the labels of outputs, by METRIC:OUTPUT or METRIC, over all data sets."""
        return {name: text for one in self.sets.values() for name, text in one["labels"].items()}

    @property
    def not_run(self) -> dict[str, str]:
        """Return the metrics and judges without scores of a data set, with the reason."""
        return {name: why for one in self.sets.values() for name, why in one["not_run"].items()}

    @property
    def simulated(self) -> bool:
        """Return whether any data set's ratings are simulated."""
        return any(one["source"] == "simulated" for one in self.sets.values())

    def dimension(self, dataset: str, rated: Iterable[str]) -> str:
        """Return the rated dimension that a data set's tables show; raise UnknownNameError if it was not rated."""
        one, known = self.sets[dataset], {*rated}
        target = chosen_dimension(one["target"], one["main_target"], known)
        if known and target not in known:
            raise UnknownNameError("dimension", target, known)
        return target


def label(output: Output, labels: Mapping[str, str]) -> str:
    """Return the label of an output, by ``METRIC:OUTPUT`` or ``METRIC`` in ``labels``.

    Default: the metric's name and the output's, only once if they are similar.
    """
    metric, name = output
    if known := labels.get(f"{metric}:{name}"):
        return known
    if output == HUMAN:
        return "People, turn by turn"
    # Avoid the repetition in `chrf_raw chrf` and `f1 f1`.
    alike = metric == name or metric.startswith((f"{name}_", f"{name}-"))
    if (called := labels.get(metric)) is not None:
        return called if alike else f"{called}, {name}"
    return metric if alike else name if name.startswith(metric) else f"{metric} {name}"
