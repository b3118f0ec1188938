"""Areas that an SVG cuts its parts to: those that cut nothing away are left out."""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element

from comperdial.report.svg_letters import used_names
from comperdial.report.svg_paths import bounds

_SVG = "{http://www.w3.org/2000/svg}"
Box = tuple[float, float, float, float]


def drop(root: Element) -> None:
    """Take off what cuts nothing away: the area holds all that is drawn."""
    named = {element.get("id"): element for element in root.iter() if element.get("id")}
    areas = {name: _area(element) for name, element in named.items() if element.tag == f"{_SVG}clipPath"}
    for element in root.iter():
        area = areas.get(element.get("clip-path", "")[5:-1])
        box = _box(element, named) if area else None
        if area and box and _holds(area, box):
            del element.attrib["clip-path"]
    used = used_names(root)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == f"{_SVG}clipPath" and child.get("id") not in used:
                parent.remove(child)


def _area(clip: Element) -> Box | None:
    if len(clip) != 1 or clip[0].tag != f"{_SVG}rect":
        return None
    x, y, width, height = (float(clip[0].get(name, "0")) for name in ("x", "y", "width", "height"))
    return x, y, x + width, y + height


def _holds(area: Box, box: Box) -> bool:
    slack = 0.01
    return (
        box[0] >= area[0] - slack
        and box[1] >= area[1] - slack
        and box[2] <= area[2] + slack
        and box[3] <= area[3] + slack
    )


def _box(element: Element, named: dict[str | None, Element]) -> Box | None:
    """Return where something draws, with the width of its line; None where that is not known."""
    if element.get("transform"):
        return None
    if element.tag == f"{_SVG}g":
        found = [_box(child, named) for child in element]
        known = [box for box in found if box]
        if not known or len(known) < len(found):
            return None
        return (
            min(box[0] for box in known), min(box[1] for box in known),
            max(box[2] for box in known), max(box[3] for box in known),
        )  # fmt: skip
    shape, x, y = element, 0.0, 0.0
    if element.tag == f"{_SVG}use":
        shape = named.get(element.get("href", "")[1:], element)
        x, y = float(element.get("x", "0")), float(element.get("y", "0"))
    box = bounds(shape.get("d", "")) if not shape.get("transform") else None
    if not box:
        return None
    style = element.get("style", "") + ";" + shape.get("style", "")
    # A mitre reaches further than half the width.
    across = along = 0.0
    if "stroke:" in style and "stroke:none" not in style:
        width = max([float(found) for found in re.findall(r"stroke-width:([\d.]+)", style)] or [1.0])
        margin = width / 2 if "miter" not in style else 2 * width
        # A straight line ends where its points do.
        is_flat = "linecap" not in style
        across = 0.0 if is_flat and box[1] == box[3] else margin
        along = 0.0 if is_flat and box[0] == box[2] else margin
    return box[0] + x - across, box[1] + y - along, box[2] + x + across, box[3] + y + along
