"""HTML, such as LaTeXML makes of a paper, as plain text: a line for each paragraph, item, cell and listing line."""

from __future__ import annotations

from html.parser import HTMLParser

_BLOCKS = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "br",
        "caption",
        "dd",
        "div",
        "dl",
        "dt",
        "figcaption",
        "figure",
        "footer",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "li",
        "main",
        "ol",
        "p",
        "pre",
        "section",
        "table",
        "tbody",
        "td",
        "th",
        "thead",
        "tr",
        "ul",
    ]
)
_VOID = frozenset(
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"]
)
# LaTeXML makes blocks of spans where HTML allows no paragraph: in a framed box, in a cell.
_BLOCK_CLASSES = frozenset(
    [
        "ltx_block",
        "ltx_break",
        "ltx_item",
        "ltx_listingline",
        "ltx_p",
        "ltx_para",
        "ltx_td",
        "ltx_th",
        "ltx_title",
        "ltx_tr",
    ]
)
_LEFT_OUT = frozenset(["annotation", "annotation-xml", "head", "nav", "script", "style", "template"])
_LEFT_OUT_CLASSES = frozenset(["ltx_listing_data", "ltx_tag_listingline", "ltx_note"])


def to_text(html: str) -> str:
    """Return the text of a page. Contents, footnotes and the second form of each formula are left out."""
    parser = _Text()
    parser.feed(html)
    parser.close()
    return "".join(parser.parts)


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._left_out: str | None = None
        self._depth = 0
        self._verbatim = 0
        self._lists: list[int | None] = []
        self._marker = False  # the next text is an item's number
        self._after_marker = False  # an item's text goes on in the line of its number, whatever paragraphs hold it

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._left_out:
            self._depth += tag == self._left_out
            return
        classes = frozenset((dict(attrs).get("class") or "").split())
        if tag not in _VOID and (tag in _LEFT_OUT or classes & _LEFT_OUT_CLASSES):
            self._left_out, self._depth = tag, 1
            return
        if tag in _BLOCKS or classes & _BLOCK_CLASSES:
            self._break()
        self._verbatim += tag == "pre"
        if tag in ("ol", "ul"):
            self._lists.append(0 if tag == "ol" else None)
        elif tag == "li" and "ltx_item" not in classes:
            self._item()
        elif "ltx_tag_item" in classes:
            self._marker = True

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._left_out:
            self._depth -= tag == self._left_out
            if not self._depth:
                self._left_out = None
            return
        if tag in ("ol", "ul") and self._lists:
            self._lists.pop()
        self._verbatim = max(0, self._verbatim - (tag == "pre"))
        if tag in _BLOCKS:
            self._break()

    def handle_data(self, data: str) -> None:
        if self._left_out:
            return
        if not self._verbatim:
            # One space stays where there was any, so that words in separate elements do not grow together.
            data = " ".join(f"|{data}|".split())[1:-1]
        if data.strip():
            self._after_marker = self._marker
            if self._marker:
                data, self._marker = f"{data} ", False
        self.parts.append(data)

    def _item(self) -> None:
        number = self._lists[-1] if self._lists else None
        if number is None:
            self.parts.append("- ")
        else:
            self._lists[-1] = number + 1
            self.parts.append(f"{number + 1}. ")
        self._after_marker = True

    def _break(self) -> None:
        if not self._after_marker:
            self.parts.append("\n")
