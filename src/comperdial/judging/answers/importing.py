"""Recorded answers into the ledger, and scores out of it: a judge whose answers others paid for."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.core.errors import ConfigError, SchemaError
from comperdial.core.files import sha256
from comperdial.data.recorded.base import Rated
from comperdial.judges.base import Answer, Completion, Family, Parsed, key
from comperdial.judges.ledger import Ledger
from comperdial.judges.parse import PARSER_VERSION, parse
from comperdial.judging.answers import find
from comperdial.judging.answers.base import AnswerFormat, systems_of

log = logging.getLogger(__name__)

SERVICE = "recorded"
VERSION = 1


@dataclass(frozen=True)
class RecordedJudge:
    """A judge of whom answers are recorded.

    Attributes
    ----------
    name
        Its name in the ledger, and the metric's: never that of a judge that is asked here.
    format
        How the files are laid out: one of :func:`comperdial.judging.answers.formats`.
    model
        The model as the source names it.
    prompt
        The prompt's name.
    paths
        The files, under the format's names for them.
    origins
        Where each file comes from, ``owner/name@commit7/file``; never a machine's path.
    """

    name: str
    format: str
    model: str
    prompt: str
    paths: Mapping[str, Path]
    origins: Mapping[str, str]

    def __post_init__(self) -> None:
        if set(self.paths) != set(self.origins):
            raise ConfigError(
                f"origins are of {', '.join(sorted(self.origins)) or 'nothing'}",
                where=f"recorded judge {self.name!r}",
                expected=f"one of each file: {', '.join(sorted(self.paths))}",
            )
        for text in (self.model, self.prompt, *self.origins.values()):
            if not text.strip() or set(text) & set("|\n\r"):
                raise ConfigError(
                    f"{text!r} cannot stand in a signature",
                    where=f"recorded judge {self.name!r}",
                    expected="one line of text without a bar (|)",
                )

    @cached_property
    def checksums(self) -> dict[str, str]:
        """Return the sha256 of each file."""
        return {name: sha256(path) for name, path in self.paths.items()}

    def signature(self) -> str:
        """Return what a score of this judge depends on.

        Of several files, it has what their origins share up to a slash, and a sha256 over theirs.
        """
        reader = find(self.format)
        origins = sorted(self.origins.values())
        digests = sorted(self.checksums.items())
        if len(digests) == 1:
            (_, digest), (origin,) = digests[0], origins
        else:
            digest = hashlib.sha256("".join(f"{name} {sum}\n" for name, sum in digests).encode()).hexdigest()
            origin = _shared(origins)
        parts = [
            f"format:{self.format}", f"prompt:{self.prompt}", f"model:{self.model}", f"from:{origin}",
            f"sha256:{digest[:12]}", f"samples:{reader.samples}", "mean", f"parser:{PARSER_VERSION}",
            f"v:{VERSION}.{reader.version}",
        ]  # fmt: skip
        return "|".join(["recorded-judge", *parts])


@dataclass(frozen=True)
class Ratings:
    """What recorded answers say.

    Attributes
    ----------
    values
        One row an item and dimension: ``place``, ``item_id``, ``system_id``, ``dimension``, ``value`` (the mean of the
        answers that could be read; NaN where none could), ``answers`` and ``parsed`` (how many), and ``owners`` (the
        mean as those who published the answers read them; NaN where that is not known).
    failures
        One row an answer that could not be read: ``place``, ``dimension``, ``sample``, ``failure``.
    singles
        One row an answer: ``item_id``, ``system_id``, ``dimension``, ``sample``, ``value``, ``failure``.
    """

    values: pd.DataFrame
    failures: pd.DataFrame
    singles: pd.DataFrame


def import_answers(judge: RecordedJudge, ledger: Ledger, dataset: str, rated: Rated | None = None) -> int:
    """Put recorded answers into the ledger, each dimension as a family of its own.

    What is not recorded stays unknown: usage, price, latency, time and the model's version. A second import adds
    nothing.

    Returns
    -------
    int
        How many answers were new.

    Raises
    ------
    FileError, SchemaError
        When a file is not what its format says, or is of something that is in no table.
    """
    reader = find(judge.format)(judge.paths)
    rows = reader.read(rated)
    added = 0
    for dimension, group in rows.groupby("dimension", sort=False):
        family = _family(judge, reader, str(dimension))
        origin = judge.origins.get(str(dimension), next(iter(judge.origins.values())))
        answers = [
            Answer(messages, sample, Completion(text), origin=origin)
            for messages, sample, text in group[["messages", "sample", "answer"]].itertuples(index=False, name=None)
        ]
        with ledger.writing(dataset, family) as shelf:
            before = len(shelf)
            shelf.add(answers)
            added += len(shelf) - before
    log.info("%s, %s: %d recorded answers, %d of them new to the ledger", dataset, judge.name, len(rows), added)
    return added


def ratings(judge: RecordedJudge, ledger: Ledger, dataset: str, rated: Rated | None = None) -> Ratings:
    """Read what a recorded judge's answers in the ledger say of each item.

    Raises
    ------
    SchemaError
        When the ledger lacks one, or holds another text; names it.
    """
    reader = find(judge.format)(judge.paths)
    rows = reader.read(rated)
    parsed: list[float] = []
    owners: list[float] = []
    failures: list[tuple[str, str, int, str]] = []
    reasons: list[str | None] = []
    for dimension, group in rows.groupby("dimension", sort=False):
        family = _family(judge, reader, str(dimension))
        shelf = ledger.shelf(dataset, family)
        form = reader.form(str(dimension))
        known: dict[str, Parsed] = {}
        columns = group[["place", "sample", "messages", "answer"]]
        for place, sample, messages, text in columns.itertuples(index=False, name=None):
            answer = shelf.get(key(family.id, messages, sample))
            if answer is None or answer.completion.text != text:
                state = "lacks the answer" if answer is None else "holds another answer"
                raise SchemaError(
                    f"the ledger {state} to {place}, sample {sample}",
                    where=str(shelf.path),
                    expected="what the file has",
                    hint="Import the answers again",
                )
            found = known.get(text) or known.setdefault(text, parse(text, form))
            parsed.append(found.values.get(form.main, np.nan))
            theirs = reader.owners_reading(text)
            owners.append(np.nan if theirs is None else theirs)
            reasons.append(found.failure)
            if found.failure is not None:
                failures.append((place, str(dimension), sample, found.failure))
    singles = rows.assign(value=parsed, owners=owners, failure=pd.Series(reasons, index=rows.index, dtype=object))
    items = singles.groupby(["place", "item_id", "system_id", "dimension"], sort=False)
    values = items.agg(
        value=("value", "mean"), answers=("value", "size"), parsed=("value", "count"), owners=("owners", "mean")
    ).reset_index()
    return Ratings(
        values,
        pd.DataFrame(failures, columns=["place", "dimension", "sample", "failure"]),
        singles[["item_id", "system_id", "dimension", "sample", "value", "failure"]],
    )


def scores(judge: RecordedJudge, ledger: Ledger, rated: Rated) -> pd.DataFrame:
    """Return a recorded judge's ratings of a data set's responses as table ``scores``, one output a dimension.

    A score is the mean of an item's answers that could be read; an item without any has none. The references are
    left out: they are what the others are held against.

    Raises
    ------
    SchemaError
        When an item is of no response (or dialogue), or rated twice.
    """
    found = ratings(judge, ledger, rated.dataset, rated)
    values = found.values
    _check_items(values, rated, judge)
    kept = values[values["value"].notna() & ~values["system_id"].isin(rated.references)]
    if kept.empty:
        raise SchemaError(
            f"no rating of {judge.name!r} is of a response that is evaluated",
            where=str(next(iter(judge.paths.values()))),
            expected=f"ratings of {rated.dataset!r}",
        )
    log.info(
        "%s: %d scores; %d of %d answers could not be read; left out: %d items without any rating, %d of references",
        judge.name,
        len(kept),
        len(found.failures),
        int(values["answers"].sum()),
        int(values["value"].isna().sum()),
        int(values["system_id"].isin(rated.references).sum()),
    )
    frame = pd.DataFrame(
        {
            "dataset": rated.dataset,
            "level": find(judge.format).level,
            "item_id": kept["item_id"],
            "system_id": kept["system_id"],
            "metric": judge.name,
            "output": kept["dimension"],
            "value": kept["value"].astype("float32"),
            "cut": 0,
            "signature": judge.signature(),
        }
    )
    return schema.validate(frame, "scores", where=f"{judge.name}, as table 'scores'")


def _family(judge: RecordedJudge, reader: AnswerFormat, dimension: str) -> Family:
    name = dimension if dimension in judge.paths else next(iter(judge.paths))
    parameters = {"dimension": dimension, "recorded": judge.checksums[name][:12]}
    return Family(judge.name, SERVICE, judge.model, parameters, judge.prompt, reader.prompt_hash(dimension))


def _check_items(values: pd.DataFrame, rated: Rated, judge: RecordedJudge) -> None:
    if find(judge.format).level == "dialogue":
        what, noun = "dialogue", "dialogue"
        known = {(dialogue, system) for dialogue, names in systems_of(rated).items() for system in names}
    else:
        what, noun = "context", "response"
        known = set(zip(rated.responses["context_id"], rated.responses["system_id"], strict=True))
    seen: dict[tuple[str, str, str], str] = {}
    columns = values[["place", "item_id", "system_id", "dimension"]]
    for place, context, system, dimension in columns.itertuples(index=False, name=None):
        item = f"{what} {context!r}, system {system!r}"
        where = f"{judge.name}, {place}"
        if (context, system) not in known:
            raise SchemaError(f"{item}: no such {noun}", where=where, expected=f"a {noun} of {rated.dataset!r}")
        first = seen.setdefault((context, system, dimension), place)
        if first != place:
            raise SchemaError(f"{item} was rated in {first} already", where=where, expected="each once")


def _shared(origins: list[str]) -> str:
    """Return what all have in common, up to a slash."""
    folders = [origin.split("/")[:-1] for origin in origins]
    shared = []
    for parts in zip(*folders, strict=False):
        if len(set(parts)) > 1:
            break
        shared.append(parts[0])
    if not shared:
        raise ConfigError(f"origins share nothing: {', '.join(origins)}", expected="files of one repository")
    return "/".join(shared)
