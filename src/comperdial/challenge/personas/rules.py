"""The rules of profiles: negative heads skipped, gendered words neutralised, the constraints of Tables 9-11."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import NonNegativeInt, create_model

from comperdial.challenge.personas.graph import head_sentence
from comperdial.challenge.records import Filled, checked
from comperdial.core.errors import SchemaError
from comperdial.core.files import read_table

GENDERS = ("female", "male")
# A noun phrase ends where one of these begins: "a lawyer who fights fraudsters" is no fraudster.
_PHRASE_END = re.compile(r"\b(?:who|that|which|with|in|on|at|for|of|from|to|and|,)\b.*")
# After "her", these say that it was an object and not a possessive: "help her with", "thank her".
_NOT_OWNED = {
    "", "with", "to", "in", "on", "at", "for", "of", "from", "and", "or", "but", "as", "when", "how", "every", "by",
    "a", "the", "about", "into", "up", "out", "through", "before", "after", "during", "each", "again", "home", "while",
}  # fmt: skip


@dataclass(frozen=True)
class Constraints:
    """What a persona may hold; each attribute is one file of ``data/personas``.

    Attributes
    ----------
    names
        Generation (0, 10, … 50, the age of who was named in that decade) and gender -> names (Table 9).
    family
        Sentence, with ``<n>`` for a number -> ages (Table 10).
    ages
        Head persona -> ages (Table 11).
    negative
        Nouns and adjectives of heads that give a negative impression -> which of the two.
    neutral
        Gendered word -> neutral word, or "" if there is none.
    opposites
        Pairs of phrases that cannot both be true of one persona.
    default_ages
        The ages of a head that ``ages`` lacks.
    """

    names: Mapping[tuple[int, str], list[str]]
    family: Mapping[str, range]
    ages: Mapping[str, range]
    negative: Mapping[str, str]
    neutral: Mapping[str, str]
    opposites: list[tuple[str, str]]
    default_ages: range = range(20, 51)

    def names_for(self, age: int, gender: str) -> list[str]:
        """Return the names of this age and gender; people older than the oldest generation get its names."""
        oldest = max(generation for generation, _ in self.names)
        return self.names.get((min(age // 10 * 10, oldest), gender), [])

    def ages_of(self, head: str) -> range:
        """Return the ages of a head persona, given as "i am …"."""
        return self.ages.get(head, self.default_ages)

    def is_negative(self, head: str) -> str | None:
        """Return the word that makes a head negative, or None."""
        adjective, noun = self._negative_words
        match = adjective.search(head.lower()) or noun.search(_PHRASE_END.sub("", head.lower()).strip())
        return match.group(1) if match else None

    @cached_property
    def _negative_words(self) -> tuple[re.Pattern[str], re.Pattern[str]]:
        adjectives = _any_of(word for word, kind in self.negative.items() if kind == "adjective")
        nouns = _any_of(word for word, kind in self.negative.items() if kind == "noun")
        return re.compile(rf"\b({adjectives})\b"), re.compile(rf"\b({nouns})s?$")

    def neutralise(self, text: str) -> tuple[str, list[str]]:
        """Put neutral words for gendered ones.

        Returns
        -------
        str
            The text; a word without a neutral alternative stays.
        list of str
            What was replaced, as "policeman -> police officer", and what could not be, as "king (no neutral word)".
        """
        done: list[str] = []

        def replace(match: re.Match[str]) -> str:
            word = match.group().lower()
            neutral = self.neutral[word]
            if word == "her":
                following = re.match(r"\s+([a-z'-]+)", text[match.end() :].lower())
                neutral = "them" if (following.group(1) if following else "") in _NOT_OWNED else neutral
            done.append(f"{word} -> {neutral}" if neutral else f"{word} (no neutral word)")
            return neutral or match.group()

        result = self._gendered.sub(replace, text)
        if any(item.split(" ")[0] in ("he", "she") for item in done):
            for wrong, right in (("is", "are"), ("was", "were"), ("has", "have"), ("does", "do")):
                result = re.sub(rf"\bthey {wrong}\b", f"they {right}", result)
        if any("->" in item for item in done):
            result = re.sub(r"\ba (?=[aeio])", "an ", re.sub(r"\ban (?=[^aeiou\W])", "a ", result))
        return result, done

    @cached_property
    def _gendered(self) -> re.Pattern[str]:
        longest_first = sorted(self.neutral, key=len, reverse=True)
        return re.compile(rf"\b(?:{_any_of(longest_first)})\b", re.IGNORECASE)

    @cached_property
    def opposite_patterns(self) -> list[tuple[re.Pattern[str], re.Pattern[str]]]:
        """The pairs of opposites, each in both orders, as patterns that match from the start of a word."""
        pairs = [tuple(re.compile(rf"\b{re.escape(phrase)}") for phrase in pair) for pair in self.opposites]
        return [(a, b) for one, two in pairs for a, b in ((one, two), (two, one))]


def read_constraints(folder: str | Path, *, default_ages: tuple[int, int] = (20, 50)) -> Constraints:
    """Read ``names``, ``family``, ``ages``, ``negative``, ``gender_neutral`` and ``opposites`` (CSV) from a folder.

    Raises
    ------
    FileError, SchemaError
        When a file or a column is missing, or an age or gender is not one.
    """
    folder = Path(folder)
    names: dict[tuple[int, str], list[str]] = {}
    for row in _rows(folder / "names.csv", generation=int, gender=Literal[GENDERS], name=Filled):
        names.setdefault((row["generation"], row["gender"]), []).append(row["name"])
    if not names:
        raise SchemaError("no names", where=str(folder / "names.csv"), expected="a row for each name")
    return Constraints(
        names=names,
        family=_ages(folder / "family.csv", "family_info"),
        ages={head_sentence(head): ages for head, ages in _ages(folder / "ages.csv", "head").items()},
        negative={row["word"]: row["kind"] for row in _rows(folder / "negative.csv", word=Filled, kind=str)},
        neutral={
            row["gendered"]: row["neutral"]
            for row in _rows(folder / "gender_neutral.csv", gendered=Filled, neutral=str)
        },
        opposites=[(row["one"], row["other"]) for row in _rows(folder / "opposites.csv", one=Filled, other=str)],
        default_ages=range(default_ages[0], default_ages[1] + 1),
    )


def _ages(path: Path, name: str) -> dict[str, range]:
    """Return the ages, both ends included, of each sentence or head in a file."""
    ages = {}
    for line, row in enumerate(_rows(path, **{name: Filled}, start_age=NonNegativeInt, end_age=int), start=2):
        if row["start_age"] > row["end_age"]:
            problem = f"ages {row['start_age']} to {row['end_age']}"
            raise SchemaError(problem, where=f"{path}, line {line}", expected="start_age <= end_age")
        ages[row[name]] = range(row["start_age"], row["end_age"] + 1)
    return ages


def _rows(path: Path, **columns: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401
    """Yield the rows of a CSV, checked: each of these columns holds its type."""
    fields: dict[str, Any] = {name: (kind, ...) for name, kind in columns.items()}
    row_type = create_model(path.stem, **fields)
    for line, row in enumerate(read_table(path).to_dict("records"), start=2):
        yield checked(row_type, row, f"{path}, line {line}").model_dump()


def _any_of(words: Iterable[str]) -> str:
    """Return a pattern for any of some words; of none, one that never matches, where an empty one always would."""
    return "|".join(map(re.escape, words)) or "(?!)"
