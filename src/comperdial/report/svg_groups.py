"""Groups of an SVG: fewer of those that say nothing, one for neighbours that look alike."""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element

_SVG = "{http://www.w3.org/2000/svg}"


def unwrap(parent: Element) -> None:
    """Put what stands in groups without attributes in their place; drop groups and definitions that hold nothing."""
    for child in list(parent):
        unwrap(child)
        if child.tag in (f"{_SVG}g", f"{_SVG}defs") and not len(child) and not child.get("id"):
            parent.remove(child)
        elif child.tag == f"{_SVG}g" and not child.attrib:
            place = list(parent).index(child)
            parent.remove(child)
            for offset, inner in enumerate(list(child)):
                parent.insert(place + offset, inner)
        elif child.tag == f"{_SVG}g" and len(child) == 1 and child[0].tag == f"{_SVG}use":
            # A line of one word, which needs no group.
            inner = child[0]
            if set(inner.attrib) == {"href"} and "clip-path" not in child.attrib and "id" not in child.attrib:
                inner.attrib.update(child.attrib)
                place = list(parent).index(child)
                parent.remove(child)
                parent.insert(place, inner)


# What a group hands down to what stands in it, or does to it as to each of its parts.
_SHARED = ("style", "fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-dashoffset", "clip-path",
           "stroke-linecap", "stroke-linejoin", "fill-opacity", "stroke-opacity")  # fmt: skip
_DRAWN = (f"{_SVG}path", f"{_SVG}use", f"{_SVG}g")


def share(parent: Element) -> None:
    """Put neighbours that look alike in one group that says how."""
    for child in parent:
        if child.tag != f"{_SVG}defs":
            share(child)
    run: list[Element] = []
    for child in [*parent, None]:
        if child is not None and run and _look(child) and _look(child) == _look(run[0]):
            run.append(child)
            continue
        _group(parent, run)
        run = [child] if child is not None else []


def _look(element: Element) -> dict[str, str]:
    """Return what an element would hand to a group; nothing where that would change the picture."""
    look = {name: value for name, value in element.attrib.items() if name in _SHARED}
    # What moves an element moves its area too; half-transparent parts add up where they overlap, a group does not.
    if element.tag not in _DRAWN or ("transform" in element.attrib and "clip-path" in look):
        return {}
    if element.tag == f"{_SVG}g" and "clip-path" in look:
        return {}
    return {} if re.search(r"(?<!-)\bopacity", look.get("style", "")) else look


def _group(parent: Element, run: list[Element]) -> None:
    if len(run) < 2:
        return
    look = _look(run[0])
    for child in run:
        for name in look:
            del child.attrib[name]
    whole = parent.tag == f"{_SVG}g" and len(run) == len(parent) and not set(look) & set(parent.attrib)
    if whole and "style" not in parent.attrib:
        parent.attrib.update(look)
        return
    place = list(parent).index(run[0])
    group = Element(f"{_SVG}g", look)
    for child in run:
        parent.remove(child)
        group.append(child)
    parent.insert(place, group)
