"""Rank a user's metric among the metrics of a board, after validating its scores."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial import schema
from comperdial.core.errors import ConfigError, MissingResourceError, SchemaError, UnknownNameError
from comperdial.core.names import Output
from comperdial.data.catalogue import Catalogue
from comperdial.evaluation.aggregate import read_scores
from comperdial.evaluation.overall import BOARDS, OVERALL, Board, board_of, overall, read_boards, read_samples
from comperdial.evaluation.samples import Tables
from comperdial.report.render import Table
from comperdial.schema.dimensions import chosen_dimension
from comperdial.studies.overall import overall_table

KEY = ["dataset", "item_id", "system_id"]
TABLES, RESULTS = Path("data/tables"), Path("results")
_HINT = (
    "In the repository's root, `snakemake overall` makes all of them, "
    '`make reproduce DATASETS="usr_persona usr_topical"` some'
)


@dataclass(frozen=True)
class Leaderboard:
    """A board of ``studies/overall/boards.yaml``, with its data sets in ``data/tables``.

    ``catalogue`` has titles and main rated dimensions of data sets.
    """

    name: str
    catalogue: Catalogue

    @cached_property
    def board(self) -> dict[str, Any]:
        """Return the board's entry in the file of boards."""
        return board_of(self.name, read_boards(BOARDS))

    @cached_property
    def datasets(self) -> list[str]:
        """Return the data sets of the board, whether available or not."""
        return Board.of(self.name, self.board["tasks"]).datasets

    @cached_property
    def targets(self) -> dict[str, str | None]:
        """Return the rated dimension of each data set, from the catalogue."""
        return {name: entry.target for name, entry in self.catalogue.datasets.items()}

    @cached_property
    def responses(self) -> pd.DataFrame:
        """Return the responses of the available data sets with contexts, ``item_id``, and whether the item was rated.

        Raises MissingResourceError if no data set is available.
        """
        parts = []
        level, source = self.board["level"], self.board["source"]
        for name in self.datasets:
            if not (folder := TABLES / name).is_dir():
                continue
            tables = Tables.read(folder, (), source)
            ratings = tables.ratings.query("level == @level and source == @source")
            if ratings.empty:
                continue
            target = chosen_dimension(self.targets.get(name), None, ratings["dimension"])
            contexts, responses = (schema.read(folder / f"{one}.parquet", one) for one in ("contexts", "responses"))
            frame = responses.merge(contexts, on=["dataset", "context_id"])
            frame["item_id"] = frame["context_id" if level == "turn" else "dialogue_id"]
            frame = frame.merge(tables.rated(level, [target]).assign(rated=True), on=KEY, how="left")
            parts.append(frame.sort_values([*KEY, "turn"]))
        if not parts:
            text = f"none of the data sets of board {self.name!r} is here"
            expected = f"tables of {', '.join(self.datasets)}"
            raise MissingResourceError(text, where=str(TABLES), expected=expected, hint=_HINT)
        return pd.concat(parts, ignore_index=True).assign(level=level)

    @property
    def rated(self) -> pd.DataFrame:
        """Return the keys of the rated items."""
        return self.responses[self.responses["rated"].eq(True)].drop_duplicates(KEY)[[*KEY, "level"]]

    def template(self) -> pd.DataFrame:
        """Return a file of scores without values: every rated item of every available data set."""
        return self.rated.assign(value=None)

    def texts(self) -> pd.DataFrame:
        """Return the texts to score: for dialogues, one record per response."""
        columns = [*KEY, "level", "context_id", "turn", "history", "response", "references", "facts"]
        return self.responses.merge(self.rated, on=[*KEY, "level"])[columns]

    def read(self, paths: Sequence[Path]) -> pd.DataFrame:
        """Read and validate files of scores: table ``scores`` of the rated items.

        Raises
        ------
        SchemaError, UnknownNameError, MissingResourceError, ConfigError
            If a file cannot be read, refers to something unknown or unavailable, or has no rated items.
        """
        scores, where = read_scores(paths), ", ".join(map(str, paths))
        if (other := scores["level"] != self.board["level"]).any():
            level, expected = scores.loc[other, "level"].iloc[0], f"{self.board['level']!r}, the board's"
            raise SchemaError(f"scores of level {level!r}", where=where, expected=expected)
        for metric in {row["metric"] for row in self.board["outputs"]} & {*scores["metric"]}:
            raise ConfigError(f"{metric!r} is a metric of the board", where=where, expected="a name of its own")
        unknown = scores[~pd.MultiIndex.from_frame(scores[KEY]).isin(pd.MultiIndex.from_frame(self.responses[KEY]))]
        if len(unknown):
            dataset, item, system = unknown.iloc[0][KEY]
            known = self.responses[self.responses["dataset"] == dataset]
            if dataset not in self.datasets:
                raise UnknownNameError("data set", dataset, self.datasets, where=where)
            if known.empty:
                expected = f"one of {', '.join(self.responses['dataset'].unique())}, or its tables in {TABLES}"
                raise MissingResourceError(
                    f"data set {dataset!r} is not here", where=where, expected=expected, hint=_HINT
                )
            near = difflib.get_close_matches(item, known["item_id"].unique(), n=1, cutoff=0)[0]
            systems = ", ".join(known.loc[known["item_id"] == near, "system_id"].unique())
            text = f"{len(unknown):,} scores of unknown items of {dataset!r}, the first: {item!r}, {system!r}"
            raise SchemaError(text, where=where, expected=f"such as {near!r} of one of {systems}")
        kept = scores.merge(self.rated[KEY], on=KEY)
        if kept.empty:
            raise SchemaError("no score of an item that was rated", where=where, expected="what --template prints")
        return kept

    def ranking(self, scores: pd.DataFrame, *, resamples: int, seed: int) -> Table:
        """Rank the board's available metrics, and those of ``scores``, over the available data sets.

        Raises MissingResourceError if nothing has scores.
        """
        here = list(self.responses["dataset"].unique())
        ours: list[Output] = [(row["metric"], row["output"]) for row in self.board["outputs"]]
        own = sorted({*zip(scores["metric"], scores["output"], strict=True)})
        paths = [RESULTS / name / "scores" / f"{metric}.parquet" for name in here for metric in dict(ours)]
        read = [schema.read(path, "scores") for path in paths if path.is_file()]
        samples = read_samples(
            {name: TABLES / name for name in here},
            pd.concat([scores, *read], ignore_index=True),
            [*ours, *own],
            level=self.board["level"],
            source=self.board["source"],
            targets=self.targets,
        )
        # Without other metrics' scores, a data set cannot rank the user's.
        samples = {name: sample for name, sample in samples.items() if set(ours) & set(sample.names)} or samples
        names = [name for name in [*ours, *own] if any(name in sample.names for sample in samples.values())]
        if not names:
            raise MissingResourceError("no metric has scores", where=str(RESULTS), hint=_HINT)
        tasks = [{**task, "datasets": [n for n in task["datasets"] if n in samples]} for task in self.board["tasks"]]
        tasks = [task for task in tasks if task["datasets"]]
        frame, tests = overall(Board.of(self.name, tasks), samples, names, resamples=resamples, seed=seed)
        outputs = pd.DataFrame(own, columns=["metric", "output"])
        several = outputs["metric"].duplicated(keep=False)
        outputs["label"] = outputs["metric"] + (" " + outputs["output"]).where(several, "") + " (yours)"
        yours = outputs.to_dict("records")
        board = {**self.board, "tasks": tasks, "outputs": [*self.board["outputs"], *yours]}
        titles = {name: entry.title for name, entry in self.catalogue.datasets.items()}
        table = overall_table({self.name: board}, titles, frame, tests)
        mine = table.frame[
            (table.frame["task"] == OVERALL) & table.frame["label"].isin([one["label"] for one in yours])
        ]
        # Rounded down, so that incomplete is never "100 %".
        notes = [
            f"{row['label']}: {int(100 * row['coverage'] + 1e-6)} % of the rated items have a score, tasks weighted as in "
            "the overall score"
            for row in mine.to_dict("records")
        ]
        if lost := [name for name in self.datasets if name not in samples]:
            few = f"Over {len(samples)} of the board's {len(self.datasets)} data sets"
            notes.append(f"{few}: no ratings, or no scores of the board's metrics, here of {', '.join(lost)}")
        if gone := [row["label"] for row in board["outputs"] if (row["metric"], row["output"]) not in names]:
            notes.append(f"No scores here of: {', '.join(gone)}")
        return replace(table, notes=[*notes, *table.notes])
