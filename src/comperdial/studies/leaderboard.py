"""A leaderboard of one's own: scores of a metric, checked against what was rated, and ranked among a board's metrics."""

from __future__ import annotations

import difflib
import hashlib
import re
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial import schema
from comperdial.core.errors import ConfigError, MissingResourceError, SchemaError, UnknownNameError
from comperdial.core.files import check_columns, read_text
from comperdial.core.names import Output
from comperdial.data.catalogue import Catalogue
from comperdial.data.own_files import number, read_columns, shown
from comperdial.evaluation.options import Tables
from comperdial.evaluation.overall import BOARDS, OVERALL, Board, Missing, board_of, overall, read_boards, read_samples
from comperdial.metrics import kinds
from comperdial.report.render import Section, Table
from comperdial.schema.dimensions import chosen_dimension
from comperdial.studies.overall import MEASURES, WITHIN, overall_table

KEY = ["dataset", "item_id", "system_id"]
COLUMNS = (*KEY, "value")
OUTPUT = "score"
# Columns that `comperdial score` writes are allowed, too.
_KNOWN = (*COLUMNS, "level", "metric", "output", "cut", "signature")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_MAKE = '`snakemake overall` makes all of them, `make reproduce DATASETS="usr_persona usr_topical"` some'


@dataclass(frozen=True)
class Leaderboard:
    """A board, those of its data sets that are here, and the metrics that were submitted to it.

    ``catalogue`` has titles of data sets and which rated dimension counts; ``entries`` is the folder of submitted metrics, with a
    folder for each board; ``boards`` the file of boards.
    """

    name: str
    catalogue: Catalogue
    tables: Path = Path("data/tables")
    results: Path = Path("results")
    entries: Path = Path("leaderboard")
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

        Raises MissingResourceError when none is here.
        """
        found = {name: items for name in self.datasets if (items := self._items(name)) is not None}
        if not found:
            raise MissingResourceError(
                f"none of the data sets of board {self.name!r} is here",
                where=str(self.tables),
                expected=f"tables of {', '.join(self.datasets)}",
                hint=f"In the repository's root, {_MAKE}",
            )
        return found

    def _items(self, dataset: str) -> pd.Series | None:
        folder, source = self.tables / dataset, self.board["source"]
        if not folder.is_dir():
            return None
        tables = Tables.read(folder, (), source)
        found = tables.ratings[(tables.ratings["level"] == self.level) & (tables.ratings["source"] == source)]
        if found.empty:
            return None
        target = chosen_dimension(self._targets.get(dataset), None, found["dimension"])
        rated = tables.rated(self.level, [target]).assign(rated=True)
        both = pd.concat([rated, self._answers(dataset).assign(rated=False)])
        return both.drop_duplicates(KEY).set_index(KEY[1:])["rated"].sort_index()

    @property
    def _targets(self) -> dict[str, str | None]:
        return {name: entry.target for name, entry in self.catalogue.datasets.items()}

    def template(self) -> pd.DataFrame:
        """Return the records of a submission, without values: every rated item of every data set that is here."""
        rated = pd.concat({name: items[items] for name, items in self.items.items()}, names=["dataset"])
        return rated.index.to_frame(index=False).assign(value=None)

    def texts(self) -> pd.DataFrame:
        """Return what there is to score: of dialogues, a record for each response."""
        found = pd.concat([self._answers(name) for name in self.items]).sort_values("turn", kind="stable")
        columns = [*KEY, "context_id", "turn", "history", "response", "references", "facts"]
        return self.template().drop(columns="value").merge(found, on=KEY, how="left")[columns]

    def _answers(self, dataset: str) -> pd.DataFrame:
        folder = self.tables / dataset
        contexts = schema.read(folder / "contexts.parquet", "contexts")
        found = schema.read(folder / "responses.parquet", "responses").merge(contexts, on=["dataset", "context_id"])
        return found.assign(item_id=found["context_id" if self.level == "turn" else "dialogue_id"])

    # Submissions

    def read(self, path: Path, name: str, about: str) -> tuple[pd.DataFrame, int]:
        """Read and check a file of scores: table ``scores`` of the items that count, and how many scores are of others.

        Raises ComperdialError when a check fails: names file and line.
        """
        self._check_name(name, about)
        frame = check_columns(read_columns(path, _KNOWN, COLUMNS), _KNOWN, path)
        seen: dict[tuple[str, ...], str] = {}
        scored = []
        for place, record in zip(_places(path, frame), frame.to_dict("records"), strict=True):
            where, key = f"{path}, {place}", tuple(str(record[column]) for column in KEY)
            self._check_key(*key, where=where)
            if record.get("level", self.level) != self.level:
                raise SchemaError(f"level {record['level']!r}", where=where, expected=f"{self.level!r}, the board's")
            if key in seen:
                text = f"{key[1]!r}, {key[2]!r} was scored in {seen[key]} already"
                raise SchemaError(text, where=where, hint="Of a metric with several outputs, keep the rows of one")
            seen[key] = place
            if (value := _value(record["value"], where)) is not None:
                scored.append((*key, value))
        rated = {(name, *key) for name, items in self.items.items() for key in items.index[items]}
        kept = sorted(row for row in scored if row[:3] in rated)
        if not kept:
            raise SchemaError("no score of an item that was rated", where=str(path), expected="what --template prints")
        scores = pd.DataFrame(kept, columns=list(COLUMNS))
        for dataset, values in scores.groupby("dataset")["value"]:
            if len(values) > 1 and values.nunique() == 1:
                raise SchemaError(
                    f"all {len(values):,} scores of {dataset!r} are {values.iloc[0]:g}",
                    where=str(path),
                    expected="scores that vary: a constant ranks nothing",
                )
        digest = hashlib.sha256("".join("\t".join(map(str, row)) + "\n" for row in kept).encode()).hexdigest()
        signature = f"submitted|name:{name}|board:{self.name}|about:{about}|sha256:{digest[:12]}|v:1"
        scores = scores.assign(level=self.level, metric=name, output=OUTPUT, cut=0, signature=signature)
        columns = schema.table("scores").columns
        return schema.validate(scores[columns], "scores", where=str(path)), len(scored) - len(kept)

    def _check_name(self, name: str, about: str) -> None:
        if not _NAME.fullmatch(name):
            raise ConfigError(f"{name!r}", where="--name", expected="letters, digits, dots, hyphens and underscores")
        ranked = {row["metric"] for entry in read_boards(self.boards).values() for row in entry["outputs"]}
        if name in {*kinds(), *ranked}:
            raise ConfigError(f"{name!r} is a metric of this package", where="--name", expected="a name of its own")
        if not about.strip() or set(about) & set("|\n\r"):
            raise ConfigError(f"{about!r}", where="--about", expected="one line of text without a bar (|)")

    def _check_key(self, dataset: str, item: str, system: str, *, where: str) -> None:
        if dataset not in self.datasets:
            raise UnknownNameError("data set", dataset, self.datasets, where=where)
        if dataset not in self.items:
            expected = f"one of {', '.join(self.items)}, or its tables in {self.tables}"
            text, hint = f"data set {dataset!r} is not here", f"In the repository's root, {_MAKE}"
            raise MissingResourceError(text, where=where, expected=expected, hint=hint)
        known = self.items[dataset].index
        for column, name in (("item_id", item), ("system_id", system)):
            if name not in (names := known.get_level_values(column)):
                near = difflib.get_close_matches(name, names.unique(), n=1, cutoff=0)
                text = f"{column} {name!r} is not in {dataset!r}"
                raise SchemaError(text, where=where, hint=f"The nearest is {near[0]!r}")
        if (item, system) not in known:
            answered = ", ".join(known[known.get_level_values("item_id") == item].get_level_values("system_id"))
            raise SchemaError(f"{system!r} has no response in {item!r}", where=where, expected=f"one of {answered}")

    def coverage(self, scores: pd.DataFrame) -> tuple[Section, bool]:
        """Return how much of each data set has scores, with the tasks that it counts in, and whether that is all."""
        counts, rows, whole = scores.groupby("dataset").size(), [], True
        for name in self.datasets:
            tasks = [task for task in self.board["tasks"] if name in task["datasets"]]
            measures = ", ".join(MEASURES[task["measure"]] + WITHIN.get(task.get("grouping", ""), "") for task in tasks)
            cells = ("not here", "", "")
            if name in self.items:
                scored, rated = int(counts.get(name, 0)), int(self.items[name].sum())
                whole &= scored == rated
                # Rounded down: never "100 %" for less than all.
                cells = f"{rated:,}", f"{scored:,}", f"{100 * scored // rated} %" if scored else "missing"
            rows.append((name, *cells, measures))
        frame = pd.DataFrame(rows, columns=["Data set", "rated", "scored", "coverage", "tasks"])
        return Section(f"Scores for board {self.name!r}", frame.set_index("Data set")), whole

    def add(self, scores: pd.DataFrame, *, replace: bool = False) -> Path:
        """Keep checked scores as an entry, and return its file.

        Raises ConfigError when the name has other scores, or another description, and they are not to be replaced.
        """
        path = self.entries / self.name / f"{scores['metric'].iloc[0]}.parquet"
        if path.is_file() and not replace:
            before = schema.read(path, "scores")["signature"].iloc[0]
            if before != scores["signature"].iloc[0]:
                text = f"there is another entry of this name: {before}"
                raise ConfigError(text, where=str(path), hint="Add --replace")
        schema.write(path, scores, "scores")
        return path

    def remove(self, name: str) -> Path:
        """Delete an entry, and return the path of its file."""
        if name not in (known := self.submitted()):
            raise UnknownNameError("entry", name, known, where=str(self.entries / self.name))
        known[name].unlink()
        return known[name]

    def submitted(self) -> dict[str, Path]:
        """Return the files of entries by name."""
        return {path.stem: path for path in sorted((self.entries / self.name).glob("*.parquet"))}

    # The ranking

    def ranking(self, *, resamples: int, seed: int, missing: Missing | None = None) -> Table:
        """Rank the board's metrics that have scores here, and the submitted ones, over the data sets that are here.

        Raises MissingResourceError when nothing has scores.
        """
        entries = self.submitted()
        for name, path in entries.items():
            if set(schema.read(path, "scores")["metric"]) != {name}:
                raise SchemaError("scores of another metric", where=str(path), expected=f"those of {name!r} alone")
        ours: list[Output] = [(row["metric"], row["output"]) for row in self.board["outputs"]]
        names = [*ours, *((name, OUTPUT) for name in entries)]
        found = read_samples(
            {name: self.tables / name for name in self.items},
            [*(path for name in self.items for path in self._scores(name)), *entries.values()],
            names,
            level=self.level,
            source=self.board["source"],
            targets=self._targets,
        )
        # A data set with scores of submitted metrics alone has nothing to rank them among.
        found = {name: sample for name, sample in found.items() if set(ours) & set(sample.names)} or found
        names = [name for name in names if any(name in sample.names for sample in found.values())]
        if not names:
            hint = f"In the repository's root, {_MAKE}"
            raise MissingResourceError("no metric has scores", where=str(self.results), hint=hint)
        parts = [{**t, "datasets": [name for name in t["datasets"] if name in found]} for t in self.board["tasks"]]
        tasks = [task for task in parts if task["datasets"]]
        how: dict[str, Any] = {"resamples": resamples, "seed": seed, "missing": missing or self.board["missing"]}
        frame, tests = overall(Board.of(self.name, tasks), found, names, **how)
        submitted = [{"label": f"{name} (submitted)", "metric": name, "output": OUTPUT} for name in entries]
        labels = [*self.board["outputs"], *submitted]
        titles = {name: entry.title for name, entry in self.catalogue.datasets.items()}
        table = overall_table({self.name: {**self.board, "tasks": tasks, "outputs": labels}}, titles, frame, tests)
        whole = frame[(frame["task"] == OVERALL) & frame["metric"].isin(list(entries))]
        notes = [
            f"{row['metric']} (submitted): {int(100 * row['coverage'] + 1e-6)} % of the rated items, tasks weighted as in the "
            f"overall score; {row['signature']}"
            for row in whole.to_dict("records")
        ]
        if lost := [name for name in self.datasets if name not in found]:
            here = f"Over {len(found)} of the board's {len(self.datasets)} data sets"
            notes.append(f"{here}: no ratings, or no scores of the board's metrics, here of {', '.join(lost)}")
        if gone := [row["label"] for row in labels if (row["metric"], row["output"]) not in names]:
            notes.append(f"No scores here of: {', '.join(gone)}")
        return replace(table, notes=[*notes, *table.notes])

    def _scores(self, dataset: str) -> list[Path]:
        metrics = dict.fromkeys(row["metric"] for row in self.board["outputs"])
        paths = [self.results / dataset / "scores" / f"{metric}.parquet" for metric in metrics]
        return [path for path in paths if path.is_file()]


def _value(cell: object, where: str) -> float | None:
    """Return a score, or None for an empty cell of a CSV: elsewhere NaN may be a computation that failed."""
    if isinstance(cell, str) and not cell.strip():
        return None
    value = number(cell)
    if isinstance(value, float):
        return value
    hint = "An item without a score has no record"
    raise SchemaError(f"value {shown(cell)}", where=where, expected="a finite number", hint=hint)


def _places(path: Path, frame: pd.DataFrame) -> list[str]:
    """Return where each record of a file is: its line, where records are lines."""
    records = [f"record {row}" for row in range(1, len(frame) + 1)]
    if path.suffix == ".parquet" or frame.map(lambda cell: isinstance(cell, str) and "\n" in cell).any(axis=None):
        return records
    lines = [row for row, line in enumerate(read_text(path).split("\n"), start=1) if line.strip()]
    lines = lines[path.suffix == ".csv" :][: len(frame)]
    return [f"line {row}" for row in lines] if len(lines) == len(frame) else records
