"""The perturbations: names, what each should lower and by how much, and the function that makes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from comperdial.data import wordnet
from comperdial.perturbations import dialogues, turns
from comperdial.perturbations.contradiction import contradiction
from comperdial.perturbations.paraphrase import paraphrase
from comperdial.perturbations.pronouns import pronouns


class Perturbation(NamedTuple):
    """One way to make a response or a dialogue worse.

    Attributes
    ----------
    name, short, title
        Its names in code, in the headings of tables, and in text (Zhang et al. 2024, Tables 7 and 11).
    level
        What is changed: one response, or the chatbot's utterances of a dialogue.
    dimensions
        The dimensions that it should lower, of :data:`comperdial.schema.evaluated.DIMENSIONS` of its level.
    threshold
        The least drop that counts, of a score from 0 to 1 (the paper's Table 7; ours are as the nearest strategy).
    about
        What is done, in one clause.
    change
        The strategy: takes a :class:`Turn` or :class:`Dialogue`, a seeded generator and the :class:`Corpus` of the data
        set, and returns the new response or the texts of all lines; None if it cannot change the item. Without one,
        there are recorded pairs only.
    paper
        Whether the paper's tables have it.
    """

    name: str
    short: str
    title: str
    level: Literal["turn", "dialogue"]
    dimensions: tuple[str, ...]
    threshold: float
    about: str
    change: Callable[..., Any] | None = None
    paper: bool = True


def generated() -> tuple[str, ...]:
    """Return the names of the perturbations that can be generated here."""
    return tuple(name for name, entry in PERTURBATIONS.items() if entry.change)


def require(name: str) -> None:
    """Raise :class:`MissingResourceError` if a strategy cannot run on this machine: ``paraphrase`` needs WordNet 3.0."""
    if name == "paraphrase":
        # Another version gives other words.
        wordnet.require("3.0")


# fmt: off
_TABLE = (
    Perturbation("random_response", "RR", "Random Response", "turn", ("relevance",), 0.3,
        "the response gives way to one of another dialogue, or to an utterance of the history", turns.random_response),
    Perturbation("pronouns", "RP", "Replace Pronoun", "turn", ("relevance",), 0.2,
        "pronouns change gender, number or person", pronouns),
    Perturbation("entities", "RNE", "Replace Named Entity", "turn", ("relevance",), 0.2,
        "names, places, languages, dates and numbers give way to others of the data set", turns.entities),
    Perturbation("contradiction", "Con", "Contradiction", "turn", ("relevance",), 0.2,
        "each statement's first verb is negated, or its negation removed", contradiction),
    Perturbation("repetition", "Rep", "Repetition", "turn", ("understandability",), 0.2,
        "a few words in a row are said several times", turns.repetition),
    Perturbation("paraphrase", "UP", "Unnatural Paraphrase", "turn", ("understandability",), 0.2,
        "words give way to their least common synonym in WordNet", paraphrase),
    Perturbation("dullness", "Dul", "Dullness", "turn", ("interestingness", "specificity"), 0.2,
        "the response gives way to a generic one, or to what the speaker said before", turns.dullness),
    Perturbation("order_shuffle", "OS", "Order Shuffle", "dialogue", ("coherence",), 0.2,
        "the utterances come in another order", dialogues.order_shuffle),
    Perturbation("utterance_replacement", "UR", "Utterance Replacement", "dialogue", ("coherence",), 0.1,
        "one utterance gives way to one of another dialogue", dialogues.utterance_replacement),
    Perturbation("self_contradiction", "SC", "Self-Contradiction", "dialogue", ("engagingness",), 0.1,
        "people wrote an utterance that contradicts an earlier one"),
    Perturbation("duplication", "UD", "Utterance Duplication", "dialogue", ("engagingness",), 0.1,
        "each chatbot utterance says its last part again", dialogues.duplication),
    Perturbation("repeating_others", "RO", "Repeating Others", "dialogue", ("engagingness",), 0.1,
        "each chatbot utterance first quotes a part of the other speaker's", dialogues.repeating_others),
    Perturbation("generic_utterances", "GU", "Generic Utterance", "dialogue", ("engagingness", "informativeness"), 0.2,
        "each chatbot utterance gives way to a generic one", dialogues.generic_utterances),
    Perturbation("content_reduction", "CR", "Content Reduction", "dialogue", ("informativeness",), 0.2,
        "each chatbot utterance is cut to its first clause, without what describes, counts or names",
        dialogues.content_reduction),
    # Recorded by the authors, not in their tables.
    Perturbation("speaker", "Spk", "Speaker", "turn", ("relevance",), 0.2,
        "the speaker of the response is changed", paper=False),
    Perturbation("entrainment", "Ent", "Entrainment", "turn", ("understandability",), 0.2,
        "the response no longer takes up the other's words", paper=False),
    Perturbation("two_utterances", "2U", "Two Utterances Replaced", "dialogue", ("coherence",), 0.1,
        "two utterances give way to others", paper=False),
    Perturbation("three_utterances", "3U", "Three Utterances Replaced", "dialogue", ("coherence",), 0.1,
        "three utterances give way to others", paper=False),
)
# fmt: on

PERTURBATIONS = {entry.name: entry for entry in _TABLE}
"""All perturbations by name, in the paper's order."""
