"""Writing systems: detect the script of a text, and split texts in scripts without spaces into words."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

# Unicode blocks of scripts without spaces between words: Thai, Lao, Tibetan, Myanmar, Khmer, Han, kana, Bopomofo.
_WITHOUT_SPACES = (
    (0x0E01, 0x0E3A), (0x0E40, 0x0E5B), (0x0E81, 0x0EFF), (0x0F00, 0x0FFF), (0x1000, 0x109F), (0x1780, 0x17FF),
    (0x19E0, 0x19FF), (0x2E80, 0x2FDF), (0x3005, 0x3007), (0x3021, 0x302F), (0x3031, 0x303C), (0x3041, 0x312F),
    (0x31A0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xA9E0, 0xA9FF), (0xAA60, 0xAA7F), (0xF900, 0xFAFF),
    (0xFF66, 0xFF9F), (0x1AFF0, 0x1B16F), (0x20000, 0x323AF),
)  # fmt: skip
# Punctuation of these scripts, which has no spaces around it either.
_PUNCTUATION = (
    (0x3001, 0x3003), (0x3008, 0x3020), (0x3030, 0x3030), (0x303D, 0x303F), (0xFF01, 0xFF0F), (0xFF1A, 0xFF20),
    (0xFF3B, 0xFF40), (0xFF5B, 0xFF65),
)  # fmt: skip
_ASCII_WORD = re.compile("[a-z0-9]+")
# Emoji parts: skin tones modify the preceding emoji, and a joiner connects two.
_SKIN_TONES = ("\U0001f3fb", "\U0001f3ff")
_JOINER = "\u200d"
JAPANESE = "Japanese (Hiragana, Katakana, Han)"
LATIN = "Latin"
_KANA = ("Hiragana", "Katakana")
# Characters whose Unicode name does not begin with their script.
_NAMED = {"Cjk": "Han", "Kangxi": "Han", "Ideographic": "Han"}
_NO_SCRIPT = frozenset(
    {"Modifier", "Mathematical", "Double", "Micro", "Feminine", "Masculine", "Script", "Blackletter"}
)


def _set_of(*ranges: tuple[int, int], marks: bool) -> str:
    """Return a regular-expression character class of ranges: only combining marks, or only other characters."""
    codes = (code for low, high in ranges for code in range(low, high + 1))
    return "".join(re.escape(chr(code)) for code in codes if (unicodedata.category(chr(code))[0] == "M") == marks)


@lru_cache(maxsize=1)
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns that find a single-character word, and that split a word containing some."""
    small = [pair for pair in _WITHOUT_SPACES if pair[1] - pair[0] < 1024]
    large = "".join(f"{chr(low)}-{chr(high)}" for low, high in _WITHOUT_SPACES if high - low >= 1024)
    letters = _set_of(*small, marks=False) + large
    marks = _set_of(*small, marks=True) + "\ufe00-\ufe0f"
    own = letters + _set_of(*_PUNCTUATION, marks=False)
    return re.compile(f"[{letters}]"), re.compile(f"[{own}][{marks}]*|[^{own}]+")


def has_no_spaces(text: str) -> bool:
    """Return whether a text contains characters of a script without spaces between words."""
    return not text.isascii() and _patterns()[0].search(text) is not None


def words(text: str) -> list[str]:
    """Split a text at white space, and into characters where the script has no spaces.

    These scripts are Han, Hiragana, Katakana, Bopomofo, Thai, Lao, Khmer, Myanmar and Tibetan. A combining mark stays with its
    character; their punctuation marks are separate words. Hangul has spaces. Text is normalized to NFC, so composed and
    decomposed letters (``é``) are equal.
    """
    if text.isascii():
        return text.split()
    text = unicodedata.normalize("NFC", text)
    if not has_no_spaces(text):
        return text.split()
    split = _patterns()[1]
    return [part for word in text.split() for part in split.findall(word)]


def alphanumeric_words(text: str) -> list[str]:
    """Return the lower-case words of a text without punctuation; for ASCII text the same as rouge-score's ``[a-z0-9]+``.

    A word is a run of letters, digits and their marks in any script, or a single character in a script without spaces. An emoji
    or other pictorial symbol is a word.
    """
    lower = text.lower()
    if lower.isascii():
        return _ASCII_WORD.findall(lower)
    lower = unicodedata.normalize("NFC", lower)
    alone = _patterns()[0]
    tokens: list[str] = []
    # Whether letters, or only marks, can extend the last word.
    open_, markable = False, False
    for character in lower:
        category = unicodedata.category(character)
        if category[0] == "M" or character == _JOINER or _SKIN_TONES[0] <= character <= _SKIN_TONES[1]:
            if markable:
                tokens[-1] += character
        elif category[0] in "LN":
            own = alone.match(character) is not None
            if open_ and not own:
                tokens[-1] += character
            else:
                tokens.append(character)
            open_, markable = not own, True
        elif category == "So":
            if markable and tokens[-1].endswith(_JOINER):
                tokens[-1] += character
            else:
                tokens.append(character)
            open_, markable = False, True
        else:
            open_, markable = False, False
    return tokens


def is_beyond_ascii(text: str) -> bool:
    """Return whether a text has words that rouge-score, which reads only ASCII letters and digits, would lose or cut."""
    return not text.isascii() and alphanumeric_words(text) != _ASCII_WORD.findall(text.lower())


@lru_cache(maxsize=4096)
def _script(character: str) -> str | None:
    """Return the script of a letter from its Unicode name; None for other characters."""
    if not character.isalpha():
        return None
    first, *rest = unicodedata.name(character, "UNKNOWN").title().replace("-", " ").split()
    if first in ("Halfwidth", "Fullwidth") and rest:
        first = rest[0]
    return None if first in _NO_SCRIPT else _NAMED.get(first, first)


def script_of(text: str) -> str | None:
    """Return the script of most words of a text; None if it has no letters.

    In a script without spaces, each character counts as a word. Text with kana is Japanese, including its Han characters.
    """
    if text.isascii():
        return LATIN if any(map(str.isalpha, text)) else None
    counts: Counter[str] = Counter()
    letters: Counter[str] = Counter()
    for word in words(text):
        inside = Counter(script for character in word if (script := _script(character)))
        letters += inside
        if inside:
            counts[inside.most_common(1)[0][0]] += 1
    if any(name in counts for name in _KANA):
        for counted in (counts, letters):
            counted[JAPANESE] = sum(counted.pop(name, 0) for name in (*_KANA, "Han"))
    return max(counts, key=lambda name: (counts[name], letters[name])) if counts else None


@dataclass(frozen=True)
class Writing:
    """How the texts of a data set are written.

    Attributes
    ----------
    scripts
        Scripts of the responses, most frequent first, with their share of the responses that have letters.
    without_spaces
        Whether any response or reference has characters of a script without spaces.
    beyond_ascii
        Whether any has words that rouge-score would lose or cut.
    """

    scripts: dict[str, float]
    without_spaces: bool
    beyond_ascii: bool

    @classmethod
    def of(cls, responses: Iterable[str], others: Iterable[str] = ()) -> Writing:
        """Describe the writing of responses and of the texts they are compared with."""
        counts: Counter[str] = Counter()
        without_spaces = beyond_ascii = False
        for text in responses:
            if script := script_of(text):
                counts[script] += 1
            without_spaces = without_spaces or has_no_spaces(text)
            beyond_ascii = beyond_ascii or is_beyond_ascii(text)
        for text in others:
            without_spaces = without_spaces or has_no_spaces(text)
            beyond_ascii = beyond_ascii or is_beyond_ascii(text)
        total = counts.total()
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        return cls({name: count / total for name, count in ordered}, without_spaces, beyond_ascii)

    @property
    def other_script(self) -> str | None:
        """Return the most frequent non-Latin script, if at least half of the responses are not in Latin script."""
        others = [name for name in self.scripts if name != LATIN]
        return others[0] if others and self.scripts.get(LATIN, 0.0) <= 0.5 else None

    def __str__(self) -> str:
        shares = ", ".join(f"{name} {share:.0%}".replace("%", " %") for name, share in self.scripts.items())
        return shares or "no letters"
