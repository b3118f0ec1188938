"""Pairs of an original and its perturbed version, as their tables give them."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial import schema
from comperdial.errors import FileError, SchemaError
from comperdial.evaluation._frames import NAME, check_scores
from comperdial.evaluation._rated import dataset_of
from comperdial.schema.evaluated import ORIGINAL, PERTURBED

log = logging.getLogger(__name__)

Floats = npt.NDArray[np.float64]
Name = tuple[str, str]


@dataclass(frozen=True)
class PairSet:
    """Pairs of an original and its perturbed version, of one data set.

    Attributes
    ----------
    dataset
        Its name, as in the tables.
    pairs
        One row a pair (index: dialogue_id): ``perturbation``, and ``original``, which is the same for pairs that were
        made of the same text.
    pair_of
        The pair (dialogue_id) of each context.
    """

    dataset: str
    pairs: pd.DataFrame
    pair_of: pd.Series

    @classmethod
    def read(cls, folder: str | Path) -> PairSet:
        """Read a folder of tables: ``contexts`` and ``responses``.

        Raises
        ------
        FileError
            When there is no such folder.
        SchemaError
            When it holds several data sets, or a pair is not one: a dialogue with responses of the systems ``original``
            and ``perturbed``, called ``<perturbation>-<number>``.
        """
        folder = Path(folder)
        if not folder.is_dir():
            raise FileError("no such folder", where=str(folder), expected="a folder of one data set's tables")
        contexts = schema.read(folder / "contexts.parquet", "contexts")
        responses = schema.read(folder / "responses.parquet", "responses")
        return cls.of(dataset_of(folder, contexts, responses), contexts, responses)

    @classmethod
    def of(cls, dataset: str, contexts: pd.DataFrame, responses: pd.DataFrame) -> PairSet:
        """Return the pairs of one data set's tables; errors as :meth:`read`."""
        where = f"dataset {dataset!r}"
        rows = responses.merge(contexts[["context_id", "dialogue_id", "turn", "history"]], on="context_id")
        if len(rows) < len(responses):
            lost = responses.loc[~responses["context_id"].isin(contexts["context_id"]), "context_id"].iloc[0]
            raise SchemaError(f"context {lost!r} is not in the table", where=where, expected="a context each response")
        systems: dict[str, set[str]] = {}
        for dialogue, system in rows[["dialogue_id", "system_id"]].drop_duplicates().itertuples(index=False, name=None):
            systems.setdefault(dialogue, set()).add(system)
        for dialogue, found in sorted(systems.items()):
            if found != {ORIGINAL, PERTURBED}:
                raise SchemaError(
                    f"dialogue {dialogue!r} has responses of {', '.join(sorted(found))}",
                    where=where,
                    expected=f"a pair: the systems {ORIGINAL} and {PERTURBED}",
                )
            if not dialogue.rpartition("-")[0]:
                raise SchemaError(f"dialogue {dialogue!r}", where=where, expected="<perturbation>-<number>")
        # The last response and what went before it are the whole text.
        last = rows[rows["system_id"] == ORIGINAL].sort_values("turn", kind="stable").drop_duplicates(
            "dialogue_id", keep="last"
        )  # fmt: skip
        parts = zip(last["dialogue_id"], last["history"], last["response"], strict=True)
        text = {
            dialogue: (*((one["speaker"], one["text"]) for one in history), response)
            for dialogue, history, response in parts
        }
        index = pd.Index(sorted(systems), name="dialogue_id")
        pairs = pd.DataFrame(
            {
                "perturbation": [name.rpartition("-")[0] for name in index],
                "original": pd.factorize(pd.Series([text[name] for name in index], dtype=object))[0],
            },
            index=index,
        )
        return cls(dataset, pairs, contexts.set_index("context_id")["dialogue_id"])

    def scored(self, scores: pd.DataFrame) -> tuple[list[Name], Floats, Floats]:
        """Return outputs and the scores of originals and perturbed versions: shapes (outputs, pairs), NaN where none.

        A pair's score is the mean over its responses that have a score, or the score of the dialogue.
        """
        check_scores(scores, self.dataset)
        turns, wholes = (scores[scores["level"] == level] for level in ("turn", "dialogue"))
        pair = np.concatenate([self.pair_of.reindex(turns["item_id"]).to_numpy(), wholes["item_id"].to_numpy()])
        frame = pd.concat([turns, wholes], ignore_index=True).assign(pair=pair)
        here = frame["pair"].isin(self.pairs.index) & frame["system_id"].isin([ORIGINAL, PERTURBED])
        for metric in sorted(frame["metric"].unique()):
            mine = here[frame["metric"] == metric]
            if not mine.any():
                raise SchemaError(
                    f"no score of metric {metric!r} belongs to a pair",
                    where=f"dataset {self.dataset!r}",
                    expected="the same dataset, item and system_id in scores and tables",
                )
            if lost := int((~mine).sum()):
                log.warning("%s: %d of %d scores belong to no pair", metric, lost, len(mine))
        frame = frame[here]
        columns = self.pairs.index.get_indexer(pd.Index(frame["pair"]))
        outputs = pd.MultiIndex.from_frame(frame[NAME])
        names = sorted({(str(name[0]), str(name[1])) for name in outputs.unique()})
        cells = pd.MultiIndex.from_tuples(names).get_indexer(outputs) * len(self.pairs) + columns
        sides = []
        for system in (ORIGINAL, PERTURBED):
            mine = (frame["system_id"] == system).to_numpy()
            values = frame["value"].to_numpy(dtype=np.float64)[mine]
            size = len(names) * len(self.pairs)
            counts = np.bincount(cells[mine], minlength=size)
            sums = np.bincount(cells[mine], weights=values, minlength=size)
            means = np.divide(sums, counts, out=np.full(size, np.nan), where=counts > 0)
            sides.append(means.reshape(len(names), len(self.pairs)))
        return names, sides[0], sides[1]
