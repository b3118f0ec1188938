"""Letters and names of an SVG: words that recur are kept once, what is referred to gets a short name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from xml.etree.ElementTree import Element, SubElement

from comperdial.report.svg_paths import short

_SVG = "{http://www.w3.org/2000/svg}"
XLINK = "{http://www.w3.org/1999/xlink}href"
_MOVED = re.compile(r"translate\((\S+) (\S+)\)")
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def used_names(root: Element) -> set[str]:
    """Return the ids that something refers to."""
    return {name for element in root.iter() for _, name in _references(element)}


def _references(element: Element) -> Iterator[tuple[str, str]]:
    for attribute, value in element.attrib.items():
        if attribute in ("href", XLINK) and value.startswith("#"):
            yield attribute, value[1:]
        elif value.startswith("url(#"):
            yield attribute, value[5:-1]


def keep_words_once(root: Element, glyphs: set[str]) -> None:
    """Leave out letters that draw nothing, and keep words that recur once."""
    empty = {e.get("id") for e in root.iter() if e.get("id") in glyphs and not e.get("d", "").strip()}
    runs: list[tuple[Element, list[list[tuple[str, float]]]]] = []
    for line in root.iter(f"{_SVG}g"):
        letters = [_letter(child, glyphs) for child in line]
        if not letters or None in letters:
            continue
        words: list[list[tuple[str, float]]] = [[]]
        for letter in letters:
            if letter is None or letter[0] in empty:
                words.append([])
            else:
                words[-1].append(letter)
        runs.append((line, [word for word in words if word]))
    often = Counter(_pattern(word) for _, words in runs for word in words)
    place = root.find(f"{_SVG}defs")
    if place is None:
        return
    names: dict[tuple[tuple[str, str], ...], str] = {}
    for line, words in runs:
        for child in list(line):
            line.remove(child)
        for word in words:
            pattern = _pattern(word)
            if often[pattern] > 1 and len(pattern) > 1:
                if pattern not in names:
                    names[pattern] = f"word-{len(names)}"
                    kept = SubElement(place, f"{_SVG}g", {"id": names[pattern]})
                    for glyph, x in pattern:
                        _draw(kept, glyph, x)
                _draw(line, names[pattern], short(word[0][1], 0))
            else:
                for glyph, at in word:
                    _draw(line, glyph, short(at, 0))
    for child in [child for child in place if child.get("id") in empty]:
        place.remove(child)


def _letter(use: Element, glyphs: set[str]) -> tuple[str, float] | None:
    """Return a letter of a line and where it stands, None for anything else."""
    name = use.get("href", "")[1:]
    moved = _MOVED.fullmatch(use.get("transform", "translate(0 0)"))
    known = set(use.attrib) <= {"href", "transform"} and use.tag == f"{_SVG}use"
    if not known or name not in glyphs or not moved or float(moved[2]):
        return None
    return name, float(moved[1])


def _pattern(word: list[tuple[str, float]]) -> tuple[tuple[str, str], ...]:
    return tuple((glyph, short(at - word[0][1], 0)) for glyph, at in word)


def _draw(parent: Element, name: str, x: str) -> None:
    SubElement(parent, f"{_SVG}use", {"href": f"#{name}"} | ({"x": x} if x != "0" else {}))


def rename(root: Element) -> None:
    """Name what is referred to by letters, the most used by one letter."""
    often = Counter(name for element in root.iter() for _, name in _references(element))
    kept = {element.get("id") for element in root.iter()} - set(often)
    free = (name for name in _names() if name not in kept)
    # Sorted before, so that names do not hang on the order of a set.
    names = {name: next(free) for name in sorted(often, key=lambda name: (-often[name], name))}
    for element in root.iter():
        if element.get("id") in names:
            element.set("id", names[element.get("id", "")])
        for attribute, name in list(_references(element)):
            value = element.attrib[attribute]
            element.attrib[attribute] = value.replace(f"#{name}", f"#{names[name]}")


def _names() -> Iterator[str]:
    yield from _LETTERS
    for first in _LETTERS:
        for second in _LETTERS + "0123456789":
            yield first + second
    for place in range(10**6):
        yield f"n{place}"
