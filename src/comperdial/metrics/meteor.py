"""METEOR as computed by nltk, with WordNet's synonyms."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import SimpleNamespace
from typing import ClassVar

from comperdial.core.errors import MissingResourceError
from comperdial.data import wordnet
from comperdial.metrics._overlap import ReferenceMetric
from comperdial.metrics._stems import stem
from comperdial.metrics.base import Batch, Bounds, Scores, check_number


@dataclass(frozen=True, kw_only=True)
class Meteor(ReferenceMetric):
    """nltk's METEOR on tokens split at white space, for the best reference; 0 to 1.

    Words match if they are equal, have equal stems or are WordNet synonyms. Score = (1 - gamma (chunks / matches)^beta)
    P R / (alpha P + (1 - alpha) R). Source: Banerjee and Lavie 2005, not the Java METEOR 1.5 that USR and Yeh et al. 2021
    report; docs/reproduction-notes.md measures the difference. ``wordnet`` is the required version; ``comperdial wordnet``
    fetches it.
    """

    kind: ClassVar[str] = "meteor"
    libraries: ClassVar[tuple[str, ...]] = ("nltk",)
    limits: ClassVar[Bounds | None] = (0.0, 1.0)

    alpha: float = 0.9
    beta: float = 3.0
    gamma: float = 0.5
    wordnet: str = "3.0"
    """The version of WordNet that must be at hand: scores differ between versions."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number(self, "alpha", 0.0, 1.0)
        check_number(self, "beta", 0.0, 1000.0)
        check_number(self, "gamma", 0.0, 1.0)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the name of the only output."""
        return ("meteor",)

    def unavailable(self) -> str | None:
        """Return why the required WordNet is unavailable, or None."""
        try:
            wordnet.require(self.wordnet)
        except MissingResourceError as error:
            # Omit the path: this text goes into tables, which should not differ between machines.
            return f"{error.problem}; expected {error.expected}"
        return None

    def compute(self, batch: Batch) -> Scores:
        """Score each response after checking that WordNet is available."""
        wordnet.require(self.wordnet)
        return super().compute(batch)

    @cached_property
    def _words(self) -> SimpleNamespace:
        return _words(wordnet.require(self.wordnet).path)

    def prepare(self, text: str) -> list[str]:
        """Return the text's words."""
        return text.split()

    def pair(self, hypothesis: list[str], reference: list[str]) -> Sequence[float]:
        """Return the score of one pair."""
        from nltk.translate.meteor_score import single_meteor_score

        weights = {"alpha": self.alpha, "beta": self.beta, "gamma": self.gamma}
        return (single_meteor_score(reference, hypothesis, stemmer=_STEMMER, wordnet=self._words, **weights),)


# nltk would stem each word again for each pair.
_STEMMER = SimpleNamespace(stem=stem)


@lru_cache(maxsize=1)
def _words(path: str) -> SimpleNamespace:
    """Return the part of nltk's WordNet interface that METEOR uses, from a folder or zip archive, with cached synsets."""
    from nltk.corpus.reader import WordNetCorpusReader
    from nltk.data import ZipFilePathPointer

    try:
        with warnings.catch_warnings():
            # nltk warns that other languages are missing.
            warnings.simplefilter("ignore")
            reader = WordNetCorpusReader(ZipFilePathPointer(path, "wordnet/") if path.endswith(".zip") else path, None)
    # A damaged file or archive can make nltk raise any exception.
    except Exception as error:
        hint = "Remove it and run `comperdial wordnet`"
        raise MissingResourceError(f"WordNet cannot be read ({error})", where=path, hint=hint) from error
    return SimpleNamespace(synsets=lru_cache(maxsize=16_384)(reader.synsets))
