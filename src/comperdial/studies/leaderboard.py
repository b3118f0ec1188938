"""Where a metric of one's own ranks: its scores, checked against what was rated, among the metrics of a board."""

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
from comperdial.evaluation.overall import BOARDS, OVERALL, Board, Missing, board_of, overall, read_boards, read_samples
from comperdial.evaluation.samples import Tables
from comperdial.report.render import Section, Table
from comperdial.schema.dimensions import chosen_dimension
from comperdial.studies.overall import MEASURES, WITHIN, overall_table

KEY = ["dataset", "item_id", "system_id"]
_MAKE = '`snakemake overall` makes all of them, `make reproduce DATASETS="usr_persona usr_topical"` some'


@dataclass(frozen=True)
class Leaderboard:
    """A board, and those of its data sets that are here.

    ``catalogue`` has titles of data sets and which rated dimension counts; ``boards`` is the file of boards.
    """

    name: str
    catalogue: Catalogue
    tables: Path = Path("data/tables")
    results: Path = Path("results")
    boards: Path = BOARDS

    @cached_property
    def board(self) -> dict[str, Any]:
        """Return the board as the file of boards has it."""
        return board_of(self.name, read_boards(self.boards))

    @property
    def level(self) -> str:
        """Return what was rated: ``turn`` or ``dialogue``."""
        return str(self.board["level"])

    @cached_property
    def datasets(self) -> list[str]:
        """Return the data sets of the board, here or not."""
        return Board.of(self.name, self.board["tasks"]).datasets

    @cached_property
    def items(self) -> dict[str, pd.Series]:
        """Return what can be scored of each data set that is here: whether it was rated, by item and system.

        Raises
        ------
        MissingResourceError
            When none is here.
        """
        result = {name: items for name in self.datasets if (items := self._items(name)) is not None}
        if not result:
            raise MissingResourceError(
                f"none of the data sets of board {self.name!r} is here",
                where=str(self.tables),
                expected=f"tables of {', '.join(self.datasets)}",
                hint=f"In the repository's root, {_MAKE}",
            )
        return result

    def _items(self, dataset: str) -> pd.Series | None:
        folder, source = self.tables / dataset, self.board["source"]
        if not folder.is_dir():
            return None
        tables = Tables.read(folder, (), source)
        result = tables.ratings[(tables.ratings["level"] == self.level) & (tables.ratings["source"] == source)]
        if result.empty:
            return None
        target = chosen_dimension(self._targets.get(dataset), None, result["dimension"])
        rated = tables.rated(self.level, [target]).assign(rated=True)
        both = pd.concat([rated, self._answers(dataset).assign(rated=False)])
        return both.drop_duplicates(KEY).set_index(KEY[1:])["rated"].sort_index()

    @property
    def _targets(self) -> dict[str, str | None]:
        return {name: entry.target for name, entry in self.catalogue.datasets.items()}

    def template(self) -> pd.DataFrame:
        """Return a file of scores without values: every rated item of every data set that is here."""
        rated = pd.concat({name: items[items] for name, items in self.items.items()}, names=["dataset"])
        return rated.index.to_frame(index=False).assign(level=self.level, value=None)

    def texts(self) -> pd.DataFrame:
        """Return what there is to score: of dialogues, a record for each response."""
        result = pd.concat([self._answers(name) for name in self.items]).sort_values("turn", kind="stable")
        columns = [*KEY, "level", "context_id", "turn", "history", "response", "references", "facts"]
        return self.template().drop(columns="value").merge(result, on=KEY, how="left")[columns]

    def _answers(self, dataset: str) -> pd.DataFrame:
        folder = self.tables / dataset
        contexts = schema.read(folder / "contexts.parquet", "contexts")
        result = schema.read(folder / "responses.parquet", "responses").merge(contexts, on=["dataset", "context_id"])
        return result.assign(item_id=result["context_id" if self.level == "turn" else "dialogue_id"])

    def read(self, paths: Sequence[Path]) -> pd.DataFrame:
        """Read and check files of scores: table ``scores`` of the items that were rated.

        Raises
        ------
        SchemaError, UnknownNameError, MissingResourceError
            When a file cannot be read, names what is not here, or has nothing that was rated.
        """
        scores = read_scores(paths)
        where = ", ".join(map(str, paths))
        if (other := scores["level"] != self.level).any():
            level = scores.loc[other, "level"].iloc[0]
            raise SchemaError(f"scores of level {level!r}", where=where, expected=f"{self.level!r}, the board's")
        for dataset, own in scores.groupby("dataset"):
            self._check_items(str(dataset), own, where)
        ranked = {row["metric"] for row in self.board["outputs"]}
        for metric, own in scores.groupby("metric"):
            if metric in ranked:
                raise ConfigError(f"{metric!r} is a metric of the board", where=where, expected="a name of its own")
            if own["output"].nunique() > 1:
                raise SchemaError(f"several outputs of {metric!r}", where=where, expected="the rows of one output")
        rated = pd.concat({name: items[items] for name, items in self.items.items()}).index
        kept = scores[pd.MultiIndex.from_frame(scores[KEY]).isin(rated)]
        if kept.empty:
            raise SchemaError("no score of an item that was rated", where=where, expected="what --template prints")
        return kept.reset_index(drop=True)

    def _check_items(self, dataset: str, scores: pd.DataFrame, where: str) -> None:
        if dataset not in self.datasets:
            raise UnknownNameError("data set", dataset, self.datasets, where=where)
        if dataset not in self.items:
            raise MissingResourceError(
                f"data set {dataset!r} is not here",
                where=where,
                expected=f"one of {', '.join(self.items)}, or its tables in {self.tables}",
                hint=f"In the repository's root, {_MAKE}",
            )
        known = self.items[dataset].index
        unknown = scores[~pd.MultiIndex.from_frame(scores[KEY[1:]]).isin(known)]
        if unknown.empty:
            return
        item, system = unknown.iloc[0][["item_id", "system_id"]]
        systems = known[known.get_level_values("item_id") == item].get_level_values("system_id")
        if len(systems):
            expected = f"one of {', '.join(systems)}"
        else:
            names = known.get_level_values("item_id").unique()
            expected = f"such as {difflib.get_close_matches(item, names, n=1, cutoff=0)[0]!r}"
        text = f"{len(unknown):,} scores of unknown items of {dataset!r}, the first: {item!r}, {system!r}"
        raise SchemaError(text, where=where, expected=expected)

    def coverage(self, scores: pd.DataFrame) -> tuple[Section, bool]:
        """Return how much of each data set a metric scored, with the tasks that it counts in, and whether that is all."""
        counts = scores.groupby("dataset").size()
        rows, whole = [], True
        for name in self.datasets:
            tasks = [
                MEASURES[task["measure"]] + WITHIN.get(task.get("grouping", ""), "")
                for task in self.board["tasks"]
                if name in task["datasets"]
            ]
            cells = ("not here", "", "")
            if name in self.items:
                scored, rated = int(counts.get(name, 0)), int(self.items[name].sum())
                whole &= scored == rated
                # Rounded down: never "100 %" for less than all.
                cells = f"{rated:,}", f"{scored:,}", f"{100 * scored // rated} %" if scored else "missing"
            rows.append((name, *cells, ", ".join(tasks)))
        frame = pd.DataFrame(rows, columns=["Data set", "rated", "scored", "coverage", "tasks"])
        return Section(f"Scores of {scores['metric'].iloc[0]}", frame.set_index("Data set")), whole

    def ranking(self, scores: pd.DataFrame, *, resamples: int, seed: int, missing: Missing | None = None) -> Table:
        """Rank the board's metrics that have scores here, and those of ``scores``, over the data sets that are here.

        Raises
        ------
        MissingResourceError
            When nothing has scores.
        """
        ours: list[Output] = [(row["metric"], row["output"]) for row in self.board["outputs"]]
        metrics = dict.fromkeys(metric for metric, _ in ours)
        paths = [self.results / name / "scores" / f"{metric}.parquet" for name in self.items for metric in metrics]
        paths = [path for path in paths if path.is_file()]
        own = sorted({*zip(scores["metric"], scores["output"], strict=True)})
        names = [*ours, *own]
        result = read_samples(
            {name: self.tables / name for name in self.items},
            pd.concat([scores, *(schema.read(path, "scores") for path in paths)], ignore_index=True),
            names,
            level=self.level,
            source=self.board["source"],
            targets=self._targets,
        )
        # A data set with scores of the files alone has nothing to rank them among.
        result = {name: sample for name, sample in result.items() if set(ours) & set(sample.names)} or result
        names = [name for name in names if any(name in sample.names for sample in result.values())]
        if not names:
            raise MissingResourceError(
                "no metric has scores", where=str(self.results), hint=f"In the repository's root, {_MAKE}"
            )
        parts = [{**t, "datasets": [name for name in t["datasets"] if name in result]} for t in self.board["tasks"]]
        tasks = [task for task in parts if task["datasets"]]
        frame, tests = overall(
            Board.of(self.name, tasks),
            result,
            names,
            resamples=resamples,
            seed=seed,
            missing=missing or self.board["missing"],
        )
        labels = [*self.board["outputs"], *({"label": f"{m} (yours)", "metric": m, "output": o} for m, o in own)]
        titles = {name: entry.title for name, entry in self.catalogue.datasets.items()}
        table = overall_table({self.name: {**self.board, "tasks": tasks, "outputs": labels}}, titles, frame, tests)
        mine = frame[(frame["task"] == OVERALL) & frame["metric"].isin([metric for metric, _ in own])]
        notes = [
            f"{row['metric']} (yours): {int(100 * row['coverage'] + 1e-6)} % of the rated items, tasks weighted as in the "
            f"overall score; {row['signature']}"
            for row in mine.to_dict("records")
        ]
        if lost := [name for name in self.datasets if name not in result]:
            here = f"Over {len(result)} of the board's {len(self.datasets)} data sets"
            notes.append(f"{here}: no ratings, or no scores of the board's metrics, here of {', '.join(lost)}")
        if gone := [row["label"] for row in labels if (row["metric"], row["output"]) not in names]:
            notes.append(f"No scores here of: {', '.join(gone)}")
        return replace(table, notes=[*notes, *table.notes])
