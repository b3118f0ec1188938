"""The page itself: one HTML file with its style, its code and its data inside, allowed to load nothing but figures."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from importlib.resources import files
from string import Template

from comperdial.core.errors import FileError

# In the order in which they are run: each uses those before it.
SCRIPTS = ("dom.js", "data.js", "grid.js", "overview.js", "lists.js", "browser.js", "compare.js", "main.js")
_DATA = re.compile(r'<script type="text/plain" id="data">([^<]*)</script>')


def page(title: str, data: str, *, note: str = "") -> str:
    """Return a page that shows what was packed.

    Parameters
    ----------
    title
        The data set's title.
    data
        What :func:`comperdial.report.site.contents.pack` returned.
    note
        What is to be said of the data in a line that is always in view.
    """
    code = '"use strict";\n(() => {\n' + "\n".join(map(_part, SCRIPTS)) + "\n})();\n"
    style = _part("style.css")
    return Template(_part("page.html")).substitute(
        title=html.escape(title),
        note=f'<p class="note" role="note">{html.escape(note)}</p>' if note else "",
        policy=f"default-src 'none'; script-src {_hash(code)}; style-src {_hash(style)}; img-src 'self' file: data:; "
        "base-uri 'none'; form-action 'none'",
        style=style,
        script=code,
        data=data,
    )


def data_of(text: str) -> str:
    """Return the packed data of a page, or raise :class:`FileError` when it has none."""
    if not (found := _DATA.search(text)):
        raise FileError("no packed data in the page", expected="a page that `comperdial render site` wrote")
    return found.group(1)


def _part(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
