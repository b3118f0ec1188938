"""Smaller files of the same picture: what matplotlib writes, without what no eye can tell."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

from comperdial.report import svg_areas, svg_groups, svg_letters
from comperdial.report.svg_letters import XLINK, used_names
from comperdial.report.svg_paths import short, shortened

_SVG = "{http://www.w3.org/2000/svg}"
_NAMESPACES = {"": "http://www.w3.org/2000/svg", "xlink": "http://www.w3.org/1999/xlink"}
# Tenths of a point, hundredths within a mark. Outlines of glyphs have their own units, of which a pixel is hundreds.
_DECIMALS = 1
_OF_MARKS = 2
COLOURS = 64
_NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")
# The names that matplotlib gives: axes_1, matplotlib.axis_2. Others were given by who drew the figure.
_NUMBERED = re.compile(r"[A-Za-z][\w.]*_\d+")
_GLYPH = re.compile(r"#DejaVuSans[\w-]*-[0-9a-f]+")
_SCALED = re.compile(r"scale\(([\d.]+)\)")
_EVERYWHERE = re.compile(r"\s*\*\s*\{\s*stroke-linejoin:\s*round;\s*stroke-linecap:\s*butt;?\s*\}\s*")
# More than these are shorter in one attribute.
_MOST_ATTRIBUTES = 3

Element = ElementTree.Element


def png(source: str | Path, target: str | Path, colours: int = COLOURS) -> None:
    """Write a picture anew with a palette of few colours, on white.

    Parameters
    ----------
    source
        A PNG as matplotlib writes it.
    target
        Where to write it; may be the same file.
    colours
        The most that the palette has, at most 256.
    """
    from PIL import Image

    with Image.open(source) as opened:
        resolution = opened.info.get("dpi")
        layered = opened.convert("RGBA")
    picture = Image.new("RGB", layered.size, "white")
    picture.paste(layered, mask=layered.getchannel("A"))
    # One round of k-means: without it, edges of letters get colours that are off.
    reduced = picture.quantize(colours, method=Image.Quantize.MEDIANCUT, kmeans=1, dither=Image.Dither.NONE)
    reduced.save(target, "PNG", optimize=True, **({"dpi": resolution} if resolution else {}))


def svg(text: str, *, alone: bool = False) -> str:
    """Return an SVG of matplotlib's without its remarks, groups that say nothing, and decimals below 0.1 points.

    Parameters
    ----------
    text
        The file's content.
    alone
        Whether the picture is a file of its own. Then glyphs, marks and areas get names of one or two letters, which
        would mean others in another figure of the same page, and words that recur are kept once.
    """
    for prefix, address in _NAMESPACES.items():
        ElementTree.register_namespace(prefix, address)
    root = ElementTree.fromstring(text)  # noqa: S314 - matplotlib's own
    for metadata in root.findall(f"{_SVG}metadata"):
        root.remove(metadata)
    size = {name: root.attrib[name] for name in ("width", "height")}
    used = used_names(root)
    _strip(root, used)
    _hoist_rule(root)
    _gather(root)
    svg_areas.drop(root)
    glyphs = {name[1:] for name in set(_GLYPH.findall(text))}
    if alone and glyphs:
        svg_letters.keep_words_once(root, glyphs)
    for element in root.iter():
        _shorten(element)
    # Rounded, they would scale the picture.
    root.attrib.update(size)
    svg_groups.unwrap(root)
    svg_groups.share(root)
    if alone:
        svg_letters.rename(root)
    body = ElementTree.tostring(root, encoding="unicode").replace(" />", "/>")
    return '<?xml version="1.0" encoding="utf-8"?>\n' + body + "\n"


def _strip(root: Element, used: set[str]) -> None:
    """Drop white space, names that nothing refers to, and what one rule says of all elements."""
    for element in root.iter():
        element.tail = (element.tail or "").strip() or None
        element.text = element.text if (element.text or "").strip() else None
        name = element.get("id", "")
        if name not in used and _NUMBERED.fullmatch(name):
            del element.attrib["id"]
        if XLINK in element.attrib and element.tag == f"{_SVG}use":
            # SVG 2's name of the same, which browsers, Inkscape and librsvg read.
            element.attrib["href"] = element.attrib.pop(XLINK)
        if "style" in element.attrib:
            element.set("style", re.sub(r"\s*([:;])\s*", r"\1", element.attrib["style"]).strip("; "))


def _hoist_rule(root: Element) -> None:
    """Say by inheritance what a rule said of every element, so that groups can say else."""
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == f"{_SVG}style" and _EVERYWHERE.fullmatch(child.text or ""):
                parent.remove(child)
                root.set("stroke-linejoin", "round")


def _gather(root: Element) -> None:
    """Put all definitions in one place, at the start."""
    place = Element(f"{_SVG}defs")
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == f"{_SVG}defs":
                place.extend(list(child))
                parent.remove(child)
    if len(place):
        root.insert(1 if len(root) and root[0].tag == f"{_SVG}desc" else 0, place)


def _shorten(element: Element) -> None:
    attributes = element.attrib
    for name in ("x", "y", "width", "height"):
        if name in attributes:
            attributes[name] = _rounded(attributes[name])
    if element.tag == f"{_SVG}use":
        for name in ("x", "y"):
            if attributes.get(name) == "0":
                del attributes[name]
    if "d" in attributes:
        scaled = _SCALED.fullmatch(attributes.get("transform", ""))
        if scaled and "id" in attributes:
            # A glyph: its outline is in units of the line that it stands in at once.
            del attributes["transform"]
            attributes["d"] = shortened(attributes["d"], _DECIMALS, float(scaled[1]))
        else:
            attributes["d"] = shortened(attributes["d"], _OF_MARKS if "id" in attributes else _DECIMALS)
    if "points" in attributes:
        attributes["points"] = _rounded(attributes["points"]).strip()
    if "transform" in attributes:
        # A scale may be far below 1 and keeps its digits.
        moved = re.sub(r"translate\([^)]*\)", lambda found: _rounded(found[0]), attributes["transform"])
        attributes["transform"] = re.sub(r"(?<![\d.])0\.(?=\d)", ".", moved)
    if "style" in attributes:
        _spread_style(attributes)


def _spread_style(attributes: dict[str, str]) -> None:
    """Write a short style as attributes, and colours with three digits where these say the same."""
    style = re.sub(r"#([0-9a-f])\1([0-9a-f])\2([0-9a-f])\3(?![0-9a-f])", r"#\1\2\3", attributes["style"])
    parts = [part.split(":", 1) for part in style.split(";") if ":" in part]
    own = {"font", "width", "height", "image-rendering"}
    if len(parts) <= _MOST_ATTRIBUTES and not any(name in own or name in attributes for name, _ in parts):
        del attributes["style"]
        attributes.update((name, value) for name, value in parts)
    else:
        attributes["style"] = style


def _rounded(text: str, decimals: int = _DECIMALS) -> str:
    return _NUMBER.sub(lambda found: short(float(found[0]), decimals), text)
