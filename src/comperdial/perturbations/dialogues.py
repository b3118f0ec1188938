"""Strategies that degrade a dialogue; each returns the texts of all lines, or None if it does not apply."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from comperdial.perturbations import text as t
from comperdial.perturbations.corpus import Corpus, Dialogue, Line
from comperdial.perturbations.text import STOP_WORDS, WORDS, Piece
from comperdial.perturbations.turns import generic

_MOST_QUOTED = 12
_LEAST_WORDS = 3
_W = t.words("content_reduction")


def _rewrite(dialogue: Dialogue, new: Callable[[int, Line], str]) -> list[str]:
    """Return the texts of a dialogue with the chatbot's replaced."""
    return [new(place, line) if line.chatbot else line.text for place, line in enumerate(dialogue.lines)]


def _begun(text: str, model: str) -> str:
    """Capitalize the start of a text, unless another text is not capitalized."""
    return text if model == model.lower() else t.capitalised(text)


def order_shuffle(dialogue: Dialogue, random: np.random.Generator, corpus: Corpus) -> list[str] | None:
    """Shuffle all utterances, or only the chatbot's if the others are fixed; speakers keep their turns."""
    texts, places = dialogue.texts, dialogue.movable
    for _ in range(20 if len({texts[place] for place in places}) > 1 else 0):
        shuffled = list(texts)
        for place, source in zip(places, random.permutation(places), strict=True):
            shuffled[place] = texts[source]
        if shuffled != texts:
            return shuffled
    return None


def utterance_replacement(dialogue: Dialogue, random: np.random.Generator, corpus: Corpus) -> list[str] | None:
    """Replace one utterance except the first by one of another dialogue; only the chatbot's if the others are fixed."""
    texts, places = dialogue.texts, [place for place in dialogue.movable if place > 0]
    if not places:
        return None
    place = places[random.integers(len(places))]
    new = corpus.elsewhere(dialogue.dialogue_id, random, corpus.utterances, texts[place])
    return None if new is None else [*texts[:place], new, *texts[place + 1 :]]


def duplication(dialogue: Dialogue, random: np.random.Generator, corpus: Corpus) -> list[str] | None:
    """Repeat the end of each chatbot utterance: from three tenths of its words to all."""

    def new(_place: int, line: Line) -> str:
        pieces = t.split(line.text)
        starts = [place for place, piece in enumerate(pieces) if piece.is_word or piece.text[0].isdigit()]
        share = random.uniform(0.3, 1.0)
        start = starts[len(starts) - max(1, round(share * len(starts)))] if starts else 0
        return f"{line.text.strip()} {t.join(pieces[start:])}"

    return _rewrite(dialogue, new)


def repeating_others(dialogue: Dialogue, random: np.random.Generator, corpus: Corpus) -> list[str] | None:
    """Prepend to each chatbot utterance a sentence, at most twelve words, of the other's last utterance."""

    def new(place: int, line: Line) -> str:
        before = dialogue.lines[place - 1] if place else line
        groups = t.sentences(t.split(before.text)) if before.speaker != line.speaker else []
        groups = [group for group in groups if any(piece.is_word for piece in group)]
        if not groups:
            return line.text
        part = [piece for piece in groups[random.integers(len(groups))] if piece.text not in '"“”']
        places = [place for place, piece in enumerate(part) if piece.is_word][:_MOST_QUOTED]
        quote = t.join(part[: places[-1] + 1] if len(places) == _MOST_QUOTED else part).strip(".!?;,… ")
        frames = WORDS["quotations"]
        frame = t.dressed(frames[random.integers(len(frames))], line.text)
        opening = _begun(frame.format('"' + quote + '"'), line.text)
        return f"{opening} {line.text.strip()}"

    return _rewrite(dialogue, new)


def generic_utterances(dialogue: Dialogue, random: np.random.Generator, corpus: Corpus) -> list[str] | None:
    """Replace each chatbot utterance by a generic answer or remark, without repetition while possible."""
    used: set[str] = set()

    def new(place: int, line: Line) -> str:
        text = generic(dialogue.lines[place - 1].text if place else None, random, frozenset(used))
        used.add(text)
        return t.dressed(text, line.text)

    return _rewrite(dialogue, new)


def content_reduction(dialogue: Dialogue, random: np.random.Generator, corpus: Corpus) -> list[str] | None:
    """Cut each chatbot utterance to its first clause and drop adjectives before nouns, adverbs, numbers and names.

    Returns None if the chatbot's utterances get shorter by less than a tenth of their words.
    """
    new = _rewrite(dialogue, lambda _place, line: _reduced(line.text, corpus))
    before, after = (
        sum(len(text.split()) for text, line in zip(texts, dialogue.lines, strict=True) if line.chatbot)
        for texts in (dialogue.texts, new)
    )
    return new if after <= 0.9 * before else None


def _reduced(text: str, corpus: Corpus) -> str:
    groups = t.sentences(t.split(text))
    if not groups:
        return text
    sentence, clause = groups[0], _clause(groups[0])
    if len(groups) > 1 and not any(piece.is_word and piece.low not in _W.empty for piece in clause):
        sentence, clause = groups[1], _clause(groups[1])
    kept = _without(clause, {place for place, piece in enumerate(clause) if piece.text in _W.marks})
    plain = _plain(kept, corpus)
    short = plain if sum(piece.is_word for piece in plain) > 1 else kept
    gap = " " if text.rstrip()[-2:] in {" .", " !", " ?"} else ""
    end = "?" if any(piece.text == "?" for piece in sentence) else "."
    return _begun(t.join([*short, Piece(gap, end)]), text)


def _clause(sentence: list[Piece]) -> list[Piece]:
    count = 0
    for place, piece in enumerate(sentence):
        ends = piece.low in _W.links or piece.text in _W.breaks
        if (count >= _LEAST_WORDS and ends) or (count > _LEAST_WORDS and piece.low in _W.prepositions):
            return sentence[:place]
        count += piece.is_word
    return sentence


def _without(pieces: list[Piece], drop: set[int]) -> list[Piece]:
    """Drop some pieces; the next one gets their white space, and the article before them is adjusted."""
    kept: list[Piece] = []
    gap = ""
    for place, piece in enumerate(pieces):
        gap = gap or piece.gap
        if place not in drop:
            if place - 1 in drop and kept:
                kept[-1].text = t.article(kept[-1].text, piece.text)
            kept.append(Piece(gap, piece.text))
            gap = ""
    return kept


def _plain(pieces: list[Piece], corpus: Corpus) -> list[Piece]:
    """Return the pieces without adjectives, adverbs, numbers and names that precede a word."""
    entities = [entity for entity in corpus.entities(t.join(pieces)) if entity.end < len(pieces)]
    named = {place for entity in entities for place in range(entity.start, entity.end)}
    drop = set()
    for place, piece in enumerate(pieces[:-1]):
        low, follows = piece.low, pieces[place + 1]
        if not follows.is_word or (follows.low in STOP_WORDS and place not in named):
            continue
        kinds = t.lemmas(low)
        adverb = low in _W.adverbs or (low.endswith("ly") and "ADV" in kinds and "ADJ" not in kinds)
        determined = place > 0 and pieces[place - 1].low in _W.before_adjective
        if place in named or adverb or (determined and low not in STOP_WORDS and _describes(low, follows.low)):
            drop.add(place)
    return _without(pieces, drop)


def _describes(word: str, follows: str) -> bool:
    """Return whether a word after a determiner seems to be an adjective before a noun."""
    kinds, after = t.lemmas(word), t.lemmas(follows)
    if "ADJ" not in kinds or (after and "NOUN" not in after and ("ADJ" not in after or "ADV" in after)):
        return False
    # "Your kind words", but "my back hurts": a word without a comparative is the noun.
    return "NOUN" not in kinds or bool(t.forms(word, "JJR", guess=False)) or not t.verb_of(follows, "VBZ")
