"""What the figures of a data set are drawn of: which outputs, of the ratings by whom, in which dimension."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial import schema
from comperdial.core.errors import NothingToShowError
from comperdial.core.names import Output, output_name
from comperdial.evaluation.options import Tables
from comperdial.evaluation.samples import FEWEST_SYSTEMS, Sample
from comperdial.report.about import About, label

log = logging.getLogger(__name__)


class Shown:
    """One data set, and the outputs that ``params.yaml`` names for a figure.

    Parameters
    ----------
    inputs
        Files by what they hold: ``about``; for :meth:`sample` ``scores`` and ``contexts`` too.
    study
        Its ``entry`` has the figure's name.
    """

    def __init__(self, inputs: Mapping[str, Sequence[Path]], study: Mapping[str, Any]) -> None:
        self.inputs, self._about = inputs, About.read(inputs["about"])
        self.about = self._about.only
        names = self.about["figure_outputs"].get(study["entry"]["name"], [])
        self.outputs: list[Output] = list(dict.fromkeys(map(output_name, names)))
        self.title, self.source = str(self.about["title"]), str(self.about["source"])
        self.simulated = self.source == "simulated"

    def label(self, output: tuple[Any, ...]) -> str:
        """Return what an output, (metric, output), is called."""
        metric, name = output
        return label((metric, name), self.about["labels"])

    def dimension(self, rated: Iterable[str]) -> str:
        """Return the dimension that is drawn, of those that were rated."""
        return self._about.dimension(self.about["dataset"], rated)

    def read(self, name: str) -> pd.DataFrame:
        """Return a result table of the dimension that is drawn."""
        found = schema.read(self.inputs[name][0], name)
        if found.empty and name == "correlations":
            raise NothingToShowError("there are no ratings that scores could be correlated with")
        return found[found["target"] == self.dimension(found["target"])] if len(found) else found

    def chosen(self, known: Iterable[Output]) -> list[Output]:
        """Return those of the figure's outputs that are known; all that are known if none of them is."""
        there = sorted(set(known))
        if not there:
            raise NothingToShowError("no output has numbers")
        if self.outputs and set(self.outputs).isdisjoint(there):
            names = ", ".join(map(":".join, self.outputs[:5]))
            log.warning("none of the outputs that were asked for has numbers (%s): all are shown", names)
        return [name for name in self.outputs if name in there] or there

    @cached_property
    def human(self) -> set[str]:
        """The systems that are people."""
        systems = schema.read(self.inputs["systems"][0], "systems")
        return set(systems.loc[systems["kind"] == "human", "system_id"])

    def tables(self, outputs: Sequence[Output]) -> Tables:
        """Return ratings, contexts, systems and the scores of some outputs; all scores if no outputs are named."""
        metrics = {metric for metric, _ in outputs}
        paths = [path for path in self.inputs["scores"] if path.stem in metrics] or list(self.inputs["scores"])
        found = Tables.read(self.inputs["contexts"][0].parent, paths, self.source)
        kept = found.scores[pd.MultiIndex.from_frame(found.scores[["metric", "output"]]).isin(list(outputs))]
        if found.scores.empty:
            raise NothingToShowError("no response has a score")
        return replace(found, scores=kept) if len(kept) else found

    def sample(self, level: str, tables: Tables | None = None) -> Sample:
        """Return scores beside ratings at a level; systems by their dialogues if these were rated."""
        tables = tables or self.tables(self.outputs)
        rated = tables.ratings[tables.ratings["source"] == self.source]
        target = self.dimension(rated["dimension"])
        against = "dialogue" if level != "turn" and (rated["level"] == "dialogue").any() else "turn"
        for sample in tables.samples([level], [target], allow_missing=True):
            if sample.against == against and sample.names:
                return sample
        few = level == "system" and tables.scores["system_id"].nunique() < FEWEST_SYSTEMS
        raise NothingToShowError(
            f"there are fewer than {FEWEST_SYSTEMS} systems"
            if few
            else f"at {level} level no score belongs to a rating of {target} by {self.source}"
        )
