"""Published answers of judges as scores, judgements and counts; one :class:`Format` per format."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.core.errors import SchemaError, UnknownNameError
from comperdial.core.files import sha256, write_text
from comperdial.data import sources
from comperdial.data.catalogue import load_catalogue
from comperdial.data.readers._comp import ROUNDS, SHORT, read_rounds
from comperdial.data.readers.base import get, numbered
from comperdial.data.recorded import DIMENSIONS, Rated, origin, read_items
from comperdial.judges.parsing import PARSER_VERSION, Form, parse
from comperdial.stats.correlation import correlate

VERSION = 1
COLUMNS = ("item_id", "system_id", "dimension", "sample", "answer")
"""Of a frame of answers, one row each; ``sample`` numbers the answers to a prompt."""
_ITEM = ["item_id", "system_id", "dimension"]
Row = tuple[str, str, str, int, str]
Paths = Mapping[str, Path]


@dataclass(frozen=True)
class Format:
    """The layout of one judge's answers to one prompt."""

    forms: Mapping[str, Form]  # the expected content of an answer, by rated quality
    files: tuple[str, ...]  # names of the files in an entry; some formats do not need all of them
    samples: int  # answers per item and dimension
    rows: Callable[[Paths, Rated], Iterator[Row]]  # reads the files, given the tables of the rated data set
    level: str = "turn"
    version: int = 1  # raised when a code change affects what is read
    targets: Mapping[str, str] | None = None  # the rated dimension to compare each with, if its name differs
    owners_reading: Callable[[str], float | None] = lambda answer: None  # how the publishers parsed an answer

    def read(self, paths: Paths, rated: Rated) -> pd.DataFrame:
        """Return the answers, with :data:`COLUMNS`.

        Raises
        ------
        FileError, SchemaError, UnknownNameError
            If a file does not have the format, rates an unknown item, or is not one of the format's files.
        """
        for name in paths:
            if name not in self.files:
                raise UnknownNameError("file of recorded answers", name, self.files)
        return pd.DataFrame(list(self.rows(paths, rated)), columns=COLUMNS)


def _chiang2023(paths: Paths, rated: Rated) -> Iterator[Row]:
    """Yield gpt-3.5-turbo's answers on USR-TopicalChat (Chiang and Lee 2023, A Closer Look into Automatic Evaluation).

    An item of ``gpt3.5_<quality>_<prompt>.json`` has UniEval's format, the ``prompt`` sent and ``all_responses``, its 20
    answers. It matches the response with the same dialogue, system and text; a file may lack items. If two systems gave the
    same response in a context, the answers for the second follow those for the first as further samples.
    """
    for dimension, path in paths.items():
        asked = Counter[str]()
        for item in read_items(path, rated):
            prompt = get(item.content, "prompt", str, item.where)
            answers = get(item.content, "all_responses", list, item.where)
            for number, answer in enumerate(answers, asked[prompt]):
                yield item.context_id, item.system_id, dimension, number, answer
            asked[prompt] += len(answers)


def _first_digit(answer: str) -> float | None:
    """Return the first digit after the last "rating:", which reproduces the published correlations to 0.001.

    It reads 0.5 as 0, 2.5 as 2, and the number of a list item as a rating: see docs/judges.md.
    """
    digit = re.search(r"\d", answer.lower().replace("1-3", " ").rpartition("rating:")[2])
    return float(digit[0]) if digit else None


# The prompts' scale: 1 to 3, and 0 to 1 for groundedness.
_STEPS = {
    "naturalness": {"bad": 1, "ok": 2, "good": 3},
    "coherence": {"no": 1, "somewhat": 2, "yes": 3},
    "engagingness": {"dull": 1, "somewhat interesting": 2, "interesting": 3},
    "groundedness": {"no": 0, "yes": 1},
}


def _gpt4_rounds(paths: Paths, rated: Rated) -> Iterator[Row]:
    """Yield GPT-4's ratings of whole dialogues in five rounds (Zhang et al. 2024, A Comprehensive Analysis, AAAI).

    Only the numbers were published, not the answers or prompts: an answer here is a number as text. The meaning of the five
    short names is inferred, and so is the scale, 1 to 5. In two files (ConTurE, HEval) some numbers are not integers; they look
    imputed, and are used unchanged.

    Files and tables (reader ``comp_dialogues``) identify a dialogue by its line in the data set's text file, from 0; the system
    is the one whose responses the dialogue contains.
    """
    rounds = read_rounds(paths["rounds"])
    joined = rated.responses.merge(rated.contexts[["context_id", "dialogue_id"]], on="context_id")
    systems = joined.groupby("dialogue_id")["system_id"].unique()
    names = []
    for place, line in enumerate(rounds.lines):
        dialogue = numbered(rated.dataset, line)
        known = [*systems.get(dialogue, [])]
        if len(known) != 1:
            raise SchemaError(
                f"dialogue {dialogue!r} has responses of {', '.join(map(repr, known)) or 'no system'}",
                where=f"{paths['rounds']}, entry {place}",
                expected=f"a dialogue of {rated.dataset!r} with one system",
            )
        names.append((dialogue, known[0]))
    for (dimension, number), values in rounds.numbers.items():
        for (dialogue, system), value in zip(names, values, strict=True):
            yield dialogue, system, dimension, number, repr(value)


FORMATS = {
    "chiang2023": Format(
        {name: Form((name,), name, min(of.values()), max(of.values()), words=of) for name, of in _STEPS.items()},
        tuple(_STEPS), 20, _chiang2023, targets=DIMENSIONS, owners_reading=_first_digit,
    ),
    "gpt4_rounds": Format(
        {name: Form((name,), name, 1, 5) for name in SHORT}, ("rounds",), ROUNDS, _gpt4_rounds, "dialogue", version=2
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Recorded:
    """The parsed answers of a recorded judge.

    ``answers`` has one row per answer: :data:`COLUMNS`, ``value`` and ``owners`` (our parsed value and the publishers', or
    NaN), and ``failure``, the reason if there is no value.
    """

    name: str  # name of the judge and metric
    format: Format
    rated: Rated
    answers: pd.DataFrame

    @classmethod
    def read(cls, name: str, format_name: str, paths: Paths, rated: Rated) -> Recorded:
        """Read a judge's answers; raises the same errors as :meth:`Format.read`."""
        form = FORMATS[format_name]
        rows = form.read(paths, rated)

        @cache
        def read(dimension: str, text: str) -> tuple[float, float, str | None]:
            parsed, owners = parse(text, form.forms[dimension]), form.owners_reading(text)
            return parsed.values.get(dimension, np.nan), np.nan if owners is None else owners, parsed.failure

        readings = [read(dimension, text) for dimension, text in zip(rows["dimension"], rows["answer"], strict=True)]
        columns = pd.DataFrame(readings, columns=["value", "owners", "failure"], index=rows.index)
        return cls(name, form, rated, rows.join(columns.astype({"failure": object})))

    @property
    def means(self) -> pd.DataFrame:
        """Return the means of ``value`` and ``owners`` and the numbers of ``answers`` and ``parsed`` per item and dimension."""
        means = self.answers.groupby(_ITEM, sort=False).agg(
            value=("value", "mean"), answers=("value", "size"), parsed=("value", "count"), owners=("owners", "mean")
        )
        return means.reset_index()

    def scores(self, signature: str) -> pd.DataFrame:
        """Return table ``scores`` with one output per dimension: means of the readable answers.

        Items without any have no score. References are left out.
        """
        return self._table("scores", self.means.dropna(subset="value"), cut=0, signature=signature)

    def judgements(self) -> pd.DataFrame:
        """Return single answers as table ``judgements``, without those about references."""
        return self._table("judgements", self.answers, tries=1)

    def _table(self, name: str, rows: pd.DataFrame, **columns: Any) -> pd.DataFrame:  # noqa: ANN401
        rows = rows[~rows["system_id"].isin(self.rated.references)]
        shared = {"dataset": self.rated.dataset, "level": self.format.level, "metric": self.name}
        table = rows.rename(columns={"dimension": "output"}).astype({"value": "float32"}).assign(**shared, **columns)
        return schema.validate(table.reindex(columns=schema.table(name).columns), name, where=self.name)

    def coverage(self) -> pd.DataFrame:
        """Count the answers, and correlate their means with the mean human ratings: one row per dimension.

        References are included, as in the studies that published the answers. ``why`` counts the reasons for unreadable
        answers. ``pearson`` pools all items; ``kendall`` is tau-b within each context, averaged over the contexts where it is
        defined, as in Chiang and Lee 2023; ``owners_…`` are the same for the publishers' parsed values. If people rated
        nothing, ``n`` is 0.

        Raises
        ------
        UnknownNameError
            If there are human ratings, but not of a dimension's counterpart.
        """
        ratings = self.rated.ratings
        people = ratings[(ratings["source"] == "human") & (ratings["level"] == self.format.level)]  # type: ignore[index]
        human = people.groupby(_ITEM)["rating"].mean()
        known = sorted(people["dimension"].unique())
        rows = []
        for dimension, group in self.means.groupby("dimension", sort=False):
            target = (self.format.targets or {}).get(str(dimension), str(dimension))
            if known and target not in known:
                raise UnknownNameError("rated dimension", target, known, where=f"{self.name}, {dimension}")
            keys = pd.MultiIndex.from_frame(group[_ITEM].assign(dimension=target))
            pairs = group.assign(people=human.reindex(keys).to_numpy()).dropna(subset="people")
            reasons = self.answers.loc[self.answers["dimension"] == dimension, "failure"].value_counts()
            rows.append(
                {
                    "metric": self.name,
                    "dimension": dimension,
                    "target": target,
                    "items": len(group),
                    "answers": int(group["answers"].sum()),
                    "unread": int(group["answers"].sum() - group["parsed"].sum()),
                    "why": "; ".join(f"{count} {why}" for why, count in reasons.items()),
                    "n": int(pairs["value"].count()),
                    **_agreement(pairs, "value", ""),
                    **_agreement(pairs, "owners", "owners_"),
                }
            )
        return pd.DataFrame(rows)


def _agreement(pairs: pd.DataFrame, column: str, prefix: str) -> dict[str, float]:
    pairs = pairs.dropna(subset=column)
    within = [correlate(part[column], part["people"], "kendall").value for _, part in pairs.groupby("item_id")]
    return {
        f"{prefix}pearson": correlate(pairs[column], pairs["people"], "pearson").value,
        f"{prefix}kendall": float(pd.Series(within, dtype="float64").mean()),
    }


def signature(entry: Mapping[str, str], paths: Paths, origins: Mapping[str, str]) -> str:
    """Return the signature of a recorded judge's scores.

    For several files it has the common prefix of their origins (``owner/name@commit7/file``) up to a slash, and a joint sha256.
    """
    form = FORMATS[entry["format"]]
    digests = {name: sha256(path) for name, path in sorted(paths.items())}
    if len(digests) == 1:
        (digest,), (source,) = digests.values(), origins.values()
    else:
        digest = hashlib.sha256("".join(f"{name} {sum}\n" for name, sum in digests.items()).encode()).hexdigest()
        source = posixpath.commonpath(map(posixpath.dirname, origins.values()))
    return (
        f"recorded-judge|format:{entry['format']}|prompt:{entry['prompt']}|model:{entry['model']}|from:{source}"
        f"|sha256:{digest[:12]}|samples:{form.samples}|mean|parser:{PARSER_VERSION}|v:{VERSION}.{form.version}"
    )


def take_answers(
    name: str,
    entry: Mapping[str, Any],
    folder: Path,
    *,
    catalogue: Path,
    scores_to: Path,
    judgements_to: Path,
    coverage_to: Path,
) -> None:
    """Write tables ``scores`` and ``judgements`` and a CSV of :meth:`Recorded.coverage` for an entry of ``recorded_judges``."""
    known = load_catalogue(catalogue)
    files = {file: known.file(source) for file, source in entry["sources"].items()}
    paths = {file: sources.require(files[file]) for file in FORMATS[entry["format"]].files if file in files}
    names = ("contexts", "responses", "systems", "ratings")
    rated = Rated(**{table: schema.read(folder / f"{table}.parquet", table) for table in names})
    judge = Recorded.read(name, entry["format"], paths, rated)
    origins = {file: origin(source) for file, source in files.items()}
    schema.write(scores_to, judge.scores(signature(entry, paths, origins)), "scores")
    schema.write(judgements_to, judge.judgements(), "judgements")
    write_text(coverage_to, judge.coverage().to_csv(index=False, float_format="%.6g", lineterminator="\n"))
