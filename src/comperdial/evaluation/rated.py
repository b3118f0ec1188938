"""One data set as a study of judges takes it: rated at one level, in several dimensions, by people or by a judge."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from comperdial.core.errors import FileError, SchemaError
from comperdial.evaluation.options import Tables
from comperdial.evaluation.samples import Sample, single_ratings
from comperdial.stats.design import FEWEST_SAMPLED, Design


@dataclass(frozen=True)
class RatedSet:
    """One data set, rated at ``level`` by any number of sources; ratings of references (``systems``) do not count."""

    dataset: str
    level: str
    ratings: pd.DataFrame
    contexts: pd.DataFrame | None
    systems: pd.DataFrame | None = None

    @classmethod
    def read(cls, folder: str | Path) -> RatedSet:
        """Read a folder of tables, which must have ratings of one level and one data set."""
        folder = Path(folder)
        if not folder.is_dir():
            raise FileError("no such folder", where=str(folder), expected="a folder of one data set's tables")
        tables = Tables.read(folder, ())
        levels, names = tables.ratings["level"].unique(), tables.ratings["dataset"].unique()
        if len(levels) != 1 or len(names) != 1:
            of = ", ".join(sorted({*levels, *names}))
            raise SchemaError(
                f"ratings of {of}" if of else "no ratings",
                where=str(folder),
                expected="ratings of one level and one data set",
            )
        return cls(str(names[0]), str(levels[0]), tables.ratings, tables.contexts, tables.systems)

    @property
    def sources(self) -> list[str]:
        """Return who rated, in order."""
        return sorted(self.ratings["source"].unique())

    def single(self, source: str) -> pd.DataFrame | None:
        """Return single ratings: one row an item, system and dimension, one column an annotator."""
        return single_ratings(self.ratings, self.level, self.systems, source)

    def samples(self, scores: pd.DataFrame, source: str) -> list[Sample]:
        """Pair this data set's scores with the mean ratings of a source, one sample a dimension.

        At dialogue level a score of turns becomes its mean over the dialogue's scored turns. ``coverage`` is the share
        of rated items with a score. The design is what an interval resamples: systems and dialogues, where the
        systems have dialogues (or contexts) in common; systems, where each dialogue is of one system, as what dialogues
        vary is in the systems then, and 98 % of intervals of both would cover; dialogues, where there are fewer than
        four systems or it is not known which system a dialogue is of. Items of one dialogue are drawn together.
        """
        tables = Tables(scores, self.ratings, self.contexts, self.systems, source)
        made = []
        for sample in tables.samples((self.level,)):
            design = sample.design
            if len(sample.systems) < FEWEST_SAMPLED:
                design = Design(np.zeros_like(design.systems), design.dialogues)
            elif design.cells.max() == design.dialogues.max():
                design = Design(design.systems, np.zeros_like(design.dialogues))
            coverage = tuple(float(share) for share in (~np.isnan(sample.scores)).mean(axis=1))
            made.append(replace(sample, design=design, coverage=coverage))
        return made
