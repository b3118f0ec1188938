"""Strategies that make one response worse; each returns the changed response, or None if it cannot change it."""

from __future__ import annotations

import numpy as np

from comperdial.perturbations.corpus import Corpus, Turn
from comperdial.perturbations.entities import KINDS, SPELLED
from comperdial.perturbations.text import Piece, dressed, is_lower, join, like, same, split

_REMARKS = (
    "I see.",
    "That's nice.",
    "Oh, okay.",
    "That sounds good.",
    "Good to know.",
    "Right, fair enough.",
    "That makes sense.",
    "Well, that's life.",
    "Sure, why not.",
    "Things are like that sometimes.",
    "That's one way to put it.",
    "Fine by me.",
)
_ANSWERS = (
    "I don't know.",
    "Maybe.",
    "It depends.",
    "I'm not really sure.",
    "Hard to say.",
    "I guess so.",
    "Could be, I never thought about it.",
    "More or less.",
    "Not much to say about that.",
    "A bit of everything, I suppose.",
)
# Fewer names of a kind would recur all the time.
_FEWEST_NAMES = 5


def random_response(turn: Turn, random: np.random.Generator, corpus: Corpus) -> str | None:
    """Take a response of another dialogue in three of four cases, else an utterance of the history."""
    earlier = [line.text for line in turn.history if not same(line.text, turn.response)]
    if earlier and random.random() < 0.25:
        return earlier[random.integers(len(earlier))]
    return corpus.elsewhere(turn.dialogue_id, random, corpus.responses, turn.response)


def dullness(turn: Turn, random: np.random.Generator, corpus: Corpus) -> str | None:
    """Take a generic answer to a question, a generic remark else; in a third of cases the speaker's own earlier words."""
    other = turn.history[-1] if turn.history else None
    own = [line.text for line in turn.history if other and line.speaker != other.speaker]
    own = [text for text in own if not same(text, turn.response)]
    if own and random.random() < 1 / 3:
        return own[random.integers(len(own))]
    return dressed(generic(other.text if other else None, random), turn.response)


def generic(last: str | None, random: np.random.Generator, used: frozenset[str] = frozenset()) -> str:
    """Return a generic answer if the last utterance is a question, else a remark; unused ones as long as there are any."""
    texts = _ANSWERS if last is not None and last.rstrip().endswith("?") else _REMARKS
    fresh = [text for text in texts if text not in used] or texts
    return fresh[random.integers(len(fresh))]


def repetition(turn: Turn, random: np.random.Generator, corpus: Corpus) -> str | None:
    """Repeat one to four words between two marks, three to six times in all."""
    pieces = split(turn.response)
    starts = [place for place, piece in enumerate(pieces) if piece.is_word]
    if not starts:
        return None
    start = starts[random.integers(len(starts))]
    end = start + 1
    length = random.integers(1, 5)
    while (
        end < len(pieces)
        and (pieces[end].is_word or pieces[end].low == "n't" or pieces[end].is_clitic)
        and sum(piece.is_word for piece in pieces[start : end + 1]) <= length
    ):
        end += 1
    again = [Piece(piece.gap, piece.text) for piece in pieces[start:end]]
    again[0].gap = " "
    # The first word of a sentence loses its capital when it is repeated.
    if (start == 0 or pieces[start - 1].text in ".!?…") and again[0].text.istitle() and again[0].text != "I":
        again[0].text = again[0].text.lower()
    return join([*pieces[:end], *again * int(random.integers(2, 6)), *pieces[end:]])


def entities(turn: Turn, random: np.random.Generator, corpus: Corpus) -> str | None:
    """Replace each entity by another of its kind; in half of the responses, names by those of another kind.

    The others come from the data set, or from the lists if it has too few. Equal entities get equal replacements.
    Numbers stay numbers: a name in a number's place would be no entity but a broken sentence.
    """
    names = corpus.finder.find(turn.response)
    if not names:
        return None
    other_kind = random.random() < 0.5
    pieces, small = split(turn.response), is_lower(turn.response)
    chosen: dict[str, str] = {}
    for entity in names:
        key, kind = entity.text.lower(), entity.kind
        if key in chosen:
            continue
        if other_kind and kind != "number":
            kinds = sorted(KINDS.keys() - {kind, "number"})
            kind = kinds[random.integers(len(kinds))]
        new = _other(entity.text, kind, corpus, random)
        if new is None:
            return None
        chosen[key] = new.lower() if small or kind == "number" else SPELLED.get(new.lower(), new)
    # From the end, so that earlier places stay valid.
    for entity in reversed(names):
        new = chosen[entity.text.lower()]
        pieces[entity.start].text = like(new, entity.text) if entity.kind == "number" else new
        del pieces[entity.start + 1 : entity.end]
    text = join(pieces)
    return text[:1].upper() + text[1:] if not small and turn.response[:1].isupper() else text


def _other(text: str, kind: str, corpus: Corpus, random: np.random.Generator) -> str | None:
    """Return another name of a kind, or for a number in digits one with other digits in the same places."""
    if kind == "number" and text[0].isdigit():
        for _ in range(20):
            digits = [str(random.integers(1 if place == 0 and text != "0" else 0, 10)) for place in range(len(text))]
            new = "".join(digit if old.isdigit() else old for old, digit in zip(text, digits, strict=True))
            if new != text:
                return new
        return None
    known = [name for name in corpus.entities.get(kind, ()) if not name[0].isdigit()]
    for names in (known, KINDS.get(kind, ()), KINDS["person"]):
        others = sorted({name.lower(): name for name in names if name.lower() != text.lower()}.items())
        if len(others) >= _FEWEST_NAMES:
            return others[random.integers(len(others))][1]
    return None
