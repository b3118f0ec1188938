"""Strategies that degrade a response; each returns the changed response, or None if it does not apply."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from comperdial.perturbations import text as t
from comperdial.perturbations.corpus import NAMES, Corpus, Turn
from comperdial.perturbations.text import STOP_WORDS, WORDS, Piece

# With fewer names of a kind, the same would recur too often.
_FEWEST_NAMES = 5
_SPELLED = {name.lower(): name for names in NAMES.values() for name in names}
# lemminflect's part of speech -> WordNet's, and the forms to look for, by Penn Treebank tag.
_PARTS = {
    "NOUN": ("n", ("NN", "NNS")),
    "VERB": ("v", ("VB", "VBD", "VBN", "VBG", "VBZ")),
    "ADJ": ("a", ("JJ",)),
    "ADV": ("r", ("RB",)),
}


def random_response(turn: Turn, random: np.random.Generator, corpus: Corpus) -> str | None:
    """Use a response of another dialogue in three out of four cases, otherwise an utterance of the history."""
    earlier = [line.text for line in turn.history if not t.same(line.text, turn.response)]
    if earlier and random.random() < 0.25:
        return earlier[random.integers(len(earlier))]
    return corpus.elsewhere(turn.dialogue_id, random, corpus.responses, turn.response)


def dullness(turn: Turn, random: np.random.Generator, corpus: Corpus) -> str | None:
    """Use a generic answer or remark; in a third of cases the speaker's own earlier words."""
    other = turn.history[-1] if turn.history else None
    own = [line.text for line in turn.history if other and line.speaker != other.speaker]
    own = [text for text in own if not t.same(text, turn.response)]
    if own and random.random() < 1 / 3:
        return own[random.integers(len(own))]
    return t.dressed(generic(other.text if other else None, random), turn.response)


def generic(last: str | None, random: np.random.Generator, used: frozenset[str] = frozenset()) -> str:
    """Return a generic answer if the last utterance is a question, otherwise a remark; prefer unused ones."""
    texts: list[str] = WORDS["answers" if last is not None and last.rstrip().endswith("?") else "remarks"]
    fresh = [text for text in texts if text not in used] or texts
    return fresh[random.integers(len(fresh))]


def repetition(turn: Turn, random: np.random.Generator, corpus: Corpus) -> str | None:
    """Repeat one to four words between two punctuation marks, three to six times in total."""
    pieces = t.split(turn.response)
    starts = [place for place, piece in enumerate(pieces) if piece.is_word]
    if not starts:
        return None
    start = starts[random.integers(len(starts))]
    end, length = start + 1, random.integers(1, 5)
    while (
        end < len(pieces)
        and (pieces[end].is_word or pieces[end].low == "n't" or pieces[end].is_clitic)
        and sum(piece.is_word for piece in pieces[start : end + 1]) <= length
    ):
        end += 1
    first = pieces[start].text
    # A repeated first word of a sentence loses its capital.
    if (start == 0 or pieces[start - 1].text in ".!?…") and first.istitle() and first != "I":
        first = first.lower()
    again = [Piece(" ", first), *pieces[start + 1 : end]] * int(random.integers(2, 6))
    return t.join([*pieces[:end], *again, *pieces[end:]])


# Entities


def entities(turn: Turn, random: np.random.Generator, corpus: Corpus) -> str | None:
    """Replace each entity by another of its kind; in half of the responses, names by those of another kind.

    Replacements come from the data set, or from the lists if it has too few. Equal entities get equal replacements. Numbers
    stay numbers: a name in place of a number would break the sentence instead of changing an entity.
    """
    there = corpus.entities(turn.response)
    if not there:
        return None
    other_kind = random.random() < 0.5
    pieces, small = t.split(turn.response), turn.response == turn.response.lower()
    chosen: dict[str, str] = {}
    for entity in there:
        key, kind = entity.text.lower(), entity.kind
        if key in chosen:
            continue
        if other_kind and kind != "number":
            kinds = sorted(NAMES.keys() - {kind, "number"})
            kind = kinds[random.integers(len(kinds))]
        new = _other(entity.text, kind, corpus, random)
        if new is None:
            return None
        chosen[key] = new.lower() if small or kind == "number" else _SPELLED.get(new.lower(), new)
    # Backwards, so that earlier positions stay valid.
    for entity in reversed(there):
        new = chosen[entity.text.lower()]
        pieces[entity.start].text = t.like(new, entity.text) if entity.kind == "number" else new
        del pieces[entity.start + 1 : entity.end]
    text = t.join(pieces)
    return t.capitalised(text) if not small and turn.response[:1].isupper() else text


def _other(text: str, kind: str, corpus: Corpus, random: np.random.Generator) -> str | None:
    """Return another name of a kind, or a number with other digits in the same positions."""
    if kind == "number" and text[0].isdigit():
        for _ in range(20):
            digits = [str(random.integers(1 if place == 0 and text != "0" else 0, 10)) for place in range(len(text))]
            new = "".join(digit if old.isdigit() else old for old, digit in zip(text, digits, strict=True))
            if new != text:
                return new
        return None
    known = [name for name in corpus.names.get(kind, ()) if not name[0].isdigit()]
    for names in (known, NAMES.get(kind, ()), NAMES["person"]):
        others = sorted({name.lower(): name for name in names if name.lower() != text.lower()}.items())
        if len(others) >= _FEWEST_NAMES:
            return others[random.integers(len(others))][1]
    return None


# Paraphrase


def paraphrase(turn: Turn, random: np.random.Generator, corpus: Corpus) -> str | None:
    """Replace half of the words that have a synonym, at least one, by their rarest synonym; keep stop words and names."""
    pieces = t.split(turn.response)
    names = {place for entity in corpus.entities(turn.response) for place in range(entity.start, entity.end)}
    new = {}
    for place, piece in enumerate(pieces):
        plain = piece.is_word and len(piece.text) > 2 and piece.low not in STOP_WORDS and place not in names
        if plain and (synonym := rarest(piece.low)):
            new[place] = t.like(synonym, piece.text)
    if not new:
        return None
    for place in [place for place in new if random.random() < 0.5] or [list(new)[random.integers(len(new))]]:
        pieces[place].text = new[place]
        if place:
            pieces[place - 1].text = t.article(pieces[place - 1].text, new[place])
    return t.join(pieces)


@lru_cache(maxsize=16_384)
def rarest(word: str) -> str | None:
    """Return the least common synonym of a lower-case word, with the same inflection; None if it has none.

    The word is read as its most common part of speech: noun, verb, adjective or adverb. Candidates are the synonyms in its most
    common sense that are a single lower-case word, rarer than the word, and not a spelling or extension of it. The one least
    used in WordNet's tagged texts is chosen; if equal, the longest, then the first alphabetically.
    """
    # Prefer nouns if no tagged text shows the usual part of speech.
    readings = [(_uses(base, part), -list(_PARTS).index(part), part, base, tag) for part, base, tag in _readings(word)]
    if not readings:
        return None
    most, _, part, base, tag = max(readings)
    sense = _senses(base, part)[0].synset()
    # WordNet marks slang and insults.
    slang = any(item.usage_domains() for item in (sense, *sense.lemmas()))
    synonyms = {}
    for name in [] if slang else sense.lemma_names():
        plain = name.isalpha() and name.islower() and name not in STOP_WORDS and not _alike(name, base)
        if plain and _uses(name, part) <= max(most - 1, 0):
            form = t.forms(name, tag)[0]
            # Some words have no plural ("plumage").
            if tag != "NNS" or form != name or name.endswith("s"):
                synonyms[name] = form
    return synonyms[min(synonyms, key=lambda name: (_uses(name, part), -len(name), name))] if synonyms else None


def _readings(word: str) -> Iterator[tuple[str, str, str]]:
    """Yield part of speech, lemma and tag of a word's possible readings."""
    for part, bases in t.lemmas(word).items():
        tags = _PARTS[part][1] if part in _PARTS and _senses(bases[0], part) else ()
        if tag := next((tag for tag in tags if word in t.forms(bases[0], tag)), None):
            yield part, bases[0], tag


@lru_cache(maxsize=16_384)
def _senses(base: str, part: str) -> list[Any]:
    """Return a word's senses in WordNet, most common first."""
    from nltk.corpus import wordnet

    return list(wordnet.lemmas(base, _PARTS[part][0]))


@lru_cache(maxsize=16_384)
def _uses(base: str, part: str) -> int:
    """Return a word's frequency in WordNet's tagged texts."""
    return sum(lemma.count() for lemma in _senses(base, part))


def _alike(one: str, other: str) -> bool:
    """Return whether one word is another spelling of the other ("colour", "color") or extends it ("floor", "flooring")."""
    first, second = (word.replace("z", "s").replace("our", "or").replace("ll", "l") for word in (one, other))
    return first.startswith(second) or second.startswith(first) or first.removesuffix("e") == second.removesuffix("e")
