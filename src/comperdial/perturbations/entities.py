"""Find named entities without a model: by lists, by capitals inside sentences, by digits.

Finds the names, places, languages, weekdays, months and numbers of the lists, with or without capitals; any other
capitalised word inside a sentence that the data set does not also write in lower case (kind ``name``), with capitalised
neighbours as one name; numbers in digits. Misses names that no list has in texts without capitals, and names that only
ever begin a sentence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from comperdial.perturbations.text import STOP_WORDS, Piece, is_lower, split, word_set


def _names(text: str) -> tuple[str, ...]:
    return tuple(" ".join(name.split()) for name in text.split(","))


KINDS = {
    "person": _names("""
        Alice, Andrew, Anna, Anthony, Barbara, Ben, Brian, Carlos, Caroline, Catherine, Charles, Charlie, Christine,
        Daniel, David, Deborah, Dennis, Diana, Edward, Elena, Elizabeth, Emily, Emma, Eric, Ethan, Frank, George,
        Hannah, Harry, Helen, Henry, Jack, Jacob, James, Jane, Jason, Jennifer, Jessica, Jim, Joe, John, Joseph, Josh,
        Joshua, Julia, Karen, Kate, Kevin, Laura, Leo, Liam, Linda, Lisa, Lucas, Lucy, Maria, Martin, Mary, Matthew,
        Max, Michael, Mike, Monica, Nancy, Nathan, Noah, Oliver, Olivia, Patricia, Paul, Peter, Rachel, Richard, Robert,
        Ryan, Sam, Samantha, Sandra, Sarah, Simon, Sophia, Stephen, Steve, Steven, Susan, Thomas, Tim, Tom, Victoria,
        William
    """),
    "place": _names("""
        Africa, Alabama, Alaska, Amsterdam, Arizona, Asia, Athens, Atlanta, Australia, Austria, Baltimore, Barcelona,
        Beijing, Berlin, Boston, Brazil, Britain, California, Cambridge, Canada, Chicago, Chile, China, Colorado, Cuba,
        Dallas, Denver, Detroit, Dublin, Egypt, England, Europe, Finland, Florida, France, Germany, Greece, Hawaii,
        Houston, Iceland, Illinois, India, Ireland, Istanbul, Italy, Japan, Kansas, Kentucky, Kenya, Korea, Las Vegas,
        Lisbon, London, Los Angeles, Louisiana, Madrid, Mexico, Miami, Michigan, Minnesota, Montana, Moscow, Nevada, New
        Jersey, New York, New Zealand, Norway, Ohio, Oklahoma, Oregon, Oxford, Paris, Pennsylvania, Peru, Philadelphia,
        Poland, Portland, Portugal, Rome, Russia, San Diego, San Francisco, Scotland, Seattle, Seoul, Shanghai, Spain,
        Sweden, Switzerland, Sydney, Texas, Thailand, Tokyo, Toronto, Utah, Vermont, Vienna, Vietnam, Virginia,
        Wisconsin
    """),
    "language": _names("""
        African, American, Arabic, Asian, Australian, Brazilian, British, Canadian, Chinese, Dutch, Egyptian, English,
        European, French, German, Greek, Indian, Irish, Italian, Japanese, Korean, Mexican, Norwegian, Polish,
        Portuguese, Russian, Scottish, Spanish, Swedish, Thai, Turkish, Vietnamese
    """),
    "weekday": _names("Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday"),
    "month": _names("January, February, March, April, May, June, July, August, September, October, November, December"),
    "number": _names("""
        two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, fifteen, twenty, thirty, forty, fifty,
        sixty, seventy, eighty, ninety
    """),
}
SPELLED = {name.lower(): name for names in KINDS.values() for name in names}
# Words as well as names: taken for names with a capital only.
_AMBIGUOUS = word_set("may march august april june frank jack mark max grace rose will bill chase josh sam tom polish")
_BREAKS = word_set('. ! ? : ; … " “ ( * - – —')
_KIND_OF = {name.lower(): kind for kind, names in KINDS.items() for name in names}
_LONGEST = max(len(name.split()) for name in _KIND_OF)


class Entity(NamedTuple):
    """A name or number in a text, from the piece ``start`` to before the piece ``end``."""

    start: int
    end: int
    kind: str
    text: str


class Finder:
    """Finds entities; the texts of the data set show which capitalised words are names."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._small: Counter[str] = Counter()
        self._capital: Counter[str] = Counter()
        for text in texts:
            # A text without capitals does not show which words have one.
            pieces = [] if is_lower(text) else split(text)
            for place, piece in enumerate(pieces):
                if piece.text.islower():
                    self._small[piece.low] += 1
                elif piece.text.istitle() and not _begins(pieces, place):
                    self._capital[piece.low] += 1

    def find(self, text: str) -> list[Entity]:
        """Return a text's entities in order."""
        pieces = split(text)
        entities = []
        place = 0
        while place < len(pieces):
            end, kind = _listed(pieces, place) or (place, "name")
            # A text all in capitals shouts.
            while kind == "name" and not text.isupper() and self._goes_on(pieces, place, end):
                end += 1
            if end > place:
                entities.append(Entity(place, end, kind, " ".join(piece.text for piece in pieces[place:end])))
            place = max(end, place + 1)
        return entities

    def _goes_on(self, pieces: list[Piece], start: int, end: int) -> bool:
        """Say whether the name that begins at ``start`` has the piece at ``end`` too."""
        if end == len(pieces) or (end > start and not pieces[end].gap):
            return False
        piece = pieces[end]
        # Titles and names only: a word all in capitals shouts, or is short for something.
        if not piece.text.istitle() or len(piece.text) < 2 or piece.low in STOP_WORDS:
            return False
        if self._small[piece.low] >= max(1, self._capital[piece.low]):
            return False
        return not _begins(pieces, end) or self._capital[piece.low] > 1


def _begins(pieces: list[Piece], place: int) -> bool:
    return place == 0 or pieces[place - 1].text in _BREAKS


def _listed(pieces: list[Piece], start: int) -> tuple[int, str] | None:
    """Return the end and the kind of the number, or the longest name of the lists, that begins at a place."""
    if re.fullmatch(r"\d[\d.,:]*", pieces[start].text):
        # "1st", "3d" and "u2" are no plain numbers.
        before = start > 0 and not pieces[start].gap and pieces[start - 1].is_word
        after = start + 1 < len(pieces) and not pieces[start + 1].gap and pieces[start + 1].is_word
        return None if before or after else (start + 1, "number")
    for end in range(min(start + _LONGEST, len(pieces)), start, -1):
        name = " ".join(piece.low for piece in pieces[start:end])
        as_word = name in _AMBIGUOUS and (_begins(pieces, start) or pieces[start].text.islower())
        if name in _KIND_OF and not as_word:
            return end, _KIND_OF[name]
    return None
