"""English verbs as lemminflect knows them: which word is a form of which."""

from __future__ import annotations

from functools import lru_cache

from lemminflect import getAllLemmas, getInflection, getLemma


@lru_cache(maxsize=4096)
def base_of(word: str, tag: str) -> str | None:
    """Return the base of the verb of which a word is a form, or None when it is none.

    Parameters
    ----------
    word
        In lower case. Of a word that may be of two verbs ("found"), it is the commoner.
    tag
        The form, by its tag in the Penn Treebank: ``VB``, ``VBD``, ``VBN``, ``VBZ``.
    """
    # A word that the dictionary does not have at all may be a verb that it misses.
    bases = getLemma(word, "VERB", lemmatize_oov=not getAllLemmas(word))
    return next((base for base in bases[:1] if base and word in getInflection(base, tag)), None)


def is_participle(word: str) -> bool:
    """Say whether a lower-case word may be a past participle, "showed" and "got" among them."""
    return bool(base_of(word, "VBN") or base_of(word, "VBD"))
