"""What each perturbation is called, what it should lower, and by how much at least."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from comperdial.core.errors import ConfigError, UnknownNameError
from comperdial.schema.evaluated import DIMENSIONS

Level = Literal["turn", "dialogue"]


@dataclass(frozen=True, kw_only=True)
class Perturbation:
    """One way to make a response or a dialogue worse.

    Attributes
    ----------
    name
        How code, tables and the command line call it.
    short, title
        How a table's heading and its text call it (Zhang et al. 2024, Tables 7 and 11, where ``paper``).
    level
        What is changed: one response, or the chatbot's utterances of a dialogue.
    dimensions
        The qualities that it should lower, of :data:`DIMENSIONS` of its level.
    threshold
        By how much a score from 0 to 1 must drop to count (Zhang et al. 2024, Table 7; else as the nearest strategy).
    paper
        Whether the paper's tables have it.
    about
        What is done, in one clause.

    Raises
    ------
    ConfigError
        When the level is none, or a quality is none of its level's.
    """

    name: str
    short: str
    title: str
    level: Level
    dimensions: tuple[str, ...]
    threshold: float
    paper: bool = True
    about: str = ""

    def __post_init__(self) -> None:
        """Refuse qualities that no table has."""
        if self.level not in DIMENSIONS:
            raise ConfigError(f"perturbation {self.name!r} has level {self.level!r}", expected="turn or dialogue")
        wrong = [name for name in self.dimensions if name not in DIMENSIONS[self.level]]
        if wrong or not self.dimensions:
            known = "; ".join(f"level {level}: {', '.join(names)}" for level, names in DIMENSIONS.items())
            aims = f"aims at {', '.join(map(repr, wrong))}" if wrong else "aims at no quality"
            raise ConfigError(
                f"perturbation {self.name!r} of level {self.level!r} {aims}",
                expected=f"qualities of its level ({known})",
            )


_ALL = (
    Perturbation(
        name="random_response",
        short="RR",
        title="Random Response",
        level="turn",
        dimensions=("relevance",),
        threshold=0.3,
        about="the response gives way to one of another dialogue, or to an utterance of the history",
    ),
    Perturbation(
        name="pronouns",
        short="RP",
        title="Replace Pronoun",
        level="turn",
        dimensions=("relevance",),
        threshold=0.2,
        about="pronouns change gender, number or person",
    ),
    Perturbation(
        name="entities",
        short="RNE",
        title="Replace Named Entity",
        level="turn",
        dimensions=("relevance",),
        threshold=0.2,
        about="names, places, languages, dates and numbers give way to others of the data set",
    ),
    Perturbation(
        name="contradiction",
        short="Con",
        title="Contradiction",
        level="turn",
        dimensions=("relevance",),
        threshold=0.2,
        about="each statement's first verb is negated, or its negation removed",
    ),
    Perturbation(
        name="repetition",
        short="Rep",
        title="Repetition",
        level="turn",
        dimensions=("understandability",),
        threshold=0.2,
        about="a few words in a row are said several times",
    ),
    Perturbation(
        name="paraphrase",
        short="UP",
        title="Unnatural Paraphrase",
        level="turn",
        dimensions=("understandability",),
        threshold=0.2,
        about="words give way to their least common synonym in WordNet",
    ),
    Perturbation(
        name="dullness",
        short="Dul",
        title="Dullness",
        level="turn",
        dimensions=("interestingness", "specificity"),
        threshold=0.2,
        about="the response gives way to a generic one, or to what the speaker said before",
    ),
    Perturbation(
        name="order_shuffle",
        short="OS",
        title="Order Shuffle",
        level="dialogue",
        dimensions=("coherence",),
        threshold=0.2,
        about="the utterances come in another order",
    ),
    Perturbation(
        name="utterance_replacement",
        short="UR",
        title="Utterance Replacement",
        level="dialogue",
        dimensions=("coherence",),
        threshold=0.1,
        about="one utterance gives way to one of another dialogue",
    ),
    Perturbation(
        name="self_contradiction",
        short="SC",
        title="Self-Contradiction",
        level="dialogue",
        dimensions=("engagingness",),
        threshold=0.1,
        about="people wrote an utterance that contradicts an earlier one",
    ),
    Perturbation(
        name="duplication",
        short="UD",
        title="Utterance Duplication",
        level="dialogue",
        dimensions=("engagingness",),
        threshold=0.1,
        about="each chatbot utterance says its last part again",
    ),
    Perturbation(
        name="repeating_others",
        short="RO",
        title="Repeating Others",
        level="dialogue",
        dimensions=("engagingness",),
        threshold=0.1,
        about="each chatbot utterance first quotes a part of the other speaker's",
    ),
    Perturbation(
        name="generic_utterances",
        short="GU",
        title="Generic Utterance",
        level="dialogue",
        dimensions=("engagingness", "informativeness"),
        threshold=0.2,
        about="each chatbot utterance gives way to a generic one",
    ),
    Perturbation(
        name="content_reduction",
        short="CR",
        title="Content Reduction",
        level="dialogue",
        dimensions=("informativeness",),
        threshold=0.2,
        about="each chatbot utterance is cut to its first clause, without what describes, counts or names",
    ),
    Perturbation(
        name="speaker",
        short="Spk",
        title="Speaker",
        level="turn",
        dimensions=("relevance",),
        threshold=0.2,
        paper=False,
        about="the speaker of the response is changed",
    ),
    Perturbation(
        name="entrainment",
        short="Ent",
        title="Entrainment",
        level="turn",
        dimensions=("understandability",),
        threshold=0.2,
        paper=False,
        about="the response no longer takes up the other's words",
    ),
    Perturbation(
        name="two_utterances",
        short="2U",
        title="Two Utterances Replaced",
        level="dialogue",
        dimensions=("coherence",),
        threshold=0.1,
        paper=False,
        about="two utterances give way to others",
    ),
    Perturbation(
        name="three_utterances",
        short="3U",
        title="Three Utterances Replaced",
        level="dialogue",
        dimensions=("coherence",),
        threshold=0.1,
        paper=False,
        about="three utterances give way to others",
    ),
)

PERTURBATIONS: Mapping[str, Perturbation] = MappingProxyType({entry.name: entry for entry in _ALL})
"""All perturbations by name, in the paper's order; those with a module in ``strategies`` can be generated here."""


def perturbation(name: str) -> Perturbation:
    """Return a perturbation by name, or raise :class:`UnknownNameError` with the nearest names."""
    if name not in PERTURBATIONS:
        raise UnknownNameError("perturbation", name, PERTURBATIONS)
    return PERTURBATIONS[name]
