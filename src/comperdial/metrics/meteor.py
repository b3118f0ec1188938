"""METEOR as nltk computes it, with WordNet's synonyms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from comperdial.core.errors import MissingResourceError
from comperdial.data import wordnet
from comperdial.metrics._alignment import Words, align, chunks
from comperdial.metrics._overlap import ReferenceMetric
from comperdial.metrics._synonyms import Thesaurus, thesaurus
from comperdial.metrics.base import Batch, Bounds, Scores, check_number


@dataclass(frozen=True, kw_only=True)
class Meteor(ReferenceMetric):
    """nltk's ``meteor_score`` on white-space tokens, best reference; 0 to 1.

    This is the METEOR of Banerjee and Lavie 2005 (matches of words, stems and synonyms), not the Java METEOR 1.5 that
    USR and Yeh et al. 2021 report; docs/reproduction-notes.md measures the difference.
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
        """Return the one score."""
        return ("meteor",)

    def unavailable(self) -> str | None:
        """Say so when the wanted WordNet is not on this machine."""
        try:
            wordnet.require(self.wordnet)
        except MissingResourceError as error:
            # Without the place: this goes into tables, which must not differ between machines more than they have to.
            return f"{error.problem}; expected {error.expected}"
        return None

    def compute(self, batch: Batch) -> Scores:
        """Score every response in turn, once WordNet is known to be there."""
        wordnet.require(self.wordnet)
        return super().compute(batch)

    @cached_property
    def _thesaurus(self) -> Thesaurus:
        return thesaurus(wordnet.require(self.wordnet).path)

    def prepare(self, text: str) -> Words:
        """Return the text's words with their stems."""
        return Words(text.split())

    def pair(self, hypothesis: Words, reference: Words) -> Sequence[float]:
        """Return the score of one pair, by nltk's operations in nltk's order."""
        aligned = align(hypothesis, reference, self._thesaurus.synonyms)
        if not aligned:
            return (0.0,)
        matches = len(aligned)
        precision, recall = matches / len(hypothesis), matches / len(reference)
        mean = (precision * recall) / (self.alpha * precision + (1 - self.alpha) * recall)
        penalty = self.gamma * (chunks(aligned) / matches) ** self.beta
        return ((1 - penalty) * mean,)
