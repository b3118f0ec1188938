"""Build the website: Markdown becomes HTML, results are copied, every link leads to a page of the site or is plain text."""

from __future__ import annotations

import html
import posixpath
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from comperdial.core.errors import FileError, MissingResourceError
from comperdial.core.files import read_text
from comperdial.report.render import SIMULATED

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

# How a folder is known as a site that may be replaced.
_GENERATOR = "comperdial site"
_MARKDOWN = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md")
_PICTURES = (".jpg", ".png", ".svg")
_DOCS = "docs/index.html"
_TITLE = re.compile(r"<title>([^<]*)</title>", re.IGNORECASE)
_HEADING = re.compile(r"<h1[^>]*>([^<]*)")
# A table's caption says it; a notebook may show simulated data among others.
_SIMULATED = re.compile(rf"</h1>\s*<p>[^<]*{re.escape(SIMULATED)}")
_BODY = re.compile(r"<body[^>]*>", re.IGNORECASE)
_POLICY = "Content-Security-Policy"


@dataclass(frozen=True)
class _Kind:
    """Results of one kind, as they are copied and listed."""

    name: str
    patterns: tuple[str, ...]
    about: str

    @property
    def index(self) -> str:
        return f"results/{self.name.lower().replace(' ', '_')}.html"

    @property
    def are_pictures(self) -> bool:
        return self.patterns[0].endswith(_PICTURES)


_RESULTS = (
    _Kind(
        "Tables",
        ("studies/*/tables/*.html", "*/tables/*.html"),
        "ours next to the reported values; what was not run is named",
    ),
    _Kind(
        "Figures",
        ("studies/*/figures/*.png", "*/figures/*.png"),
        "correlations, ranks, length bias, agreement of judges",
    ),
    _Kind("Data sets", ("*/report.html",), "pages to browse a data set, dialogue by dialogue"),
    _Kind("Notebooks", ("notebooks/*.html",), "executed, with their output"),
)


@dataclass(frozen=True)
class Website:
    """What was built: where, how many pages were made of Markdown, and how many results of each kind were copied."""

    path: Path
    pages: int
    results: Mapping[str, int]


@dataclass(frozen=True)
class _Site:
    root: Path
    # From paths in the repository to paths in the site, for everything that has a page or a file there.
    targets: Mapping[str, str]
    menu: Sequence[tuple[str, str]]
    made: dict[str, str] = field(default_factory=dict)

    def add(self, path: str, title: str, content: str, **more: Any) -> None:  # noqa: ANN401 - the template's values
        """Keep a page of the site in its frame."""
        from jinja2 import Environment
        from markupsafe import Markup

        template = Environment(autoescape=True).from_string(_part("page.html"))
        self.made[path] = template.render(
            title=title,
            content=Markup(content),  # noqa: S704 - made from the repository's own pages
            generator=_GENERATOR,
            menu=[(name, _relative(to, path), to == path) for name, to in self.menu],
            top="../" * path.count("/"),
            **more,
        )


def build(root: Path, output: Path, *, studies: Mapping[str, str] | None = None) -> Website:
    """Write the website of a repository into a folder, which it replaces if it is an earlier one.

    Parameters
    ----------
    root
        The repository: ``README.md``, ``docs/``, ``results/``.
    output
        The folder.
    studies
        Titles of studies by name, under which tables and figures are listed; in this order.

    Raises
    ------
    FileError
        When there is no README, or the folder holds something else.
    MissingResourceError
        When the Markdown parser is not installed.
    """
    _check_output(output)
    sources = _markdown_sources(root)
    # What is not published (your own data, texts of others) stays here.
    published = [path.with_suffix("") for path in (root / "results").rglob("*.dvc")]
    results = {
        kind: [
            path
            for one in kind.patterns
            for path in sorted((root / "results").glob(one))
            if any(path.is_relative_to(folder) for folder in published)
        ]
        for kind in _RESULTS
    }
    results = {kind: found for kind, found in results.items() if found}
    pictures = sorted(p for p in (root / "docs").rglob("*") if p.suffix in _PICTURES)
    copied = [path.relative_to(root).as_posix() for found in (pictures, *results.values()) for path in found]
    targets = {name: _page_of(name) for name in sources} | {name: name for name in copied} | {"docs": _DOCS}
    menu = [("ComperDial Bench", "index.html"), ("Documentation", _DOCS), *((k.name, k.index) for k in results)]
    menu += [("Changes", targets["CHANGELOG.md"])] if "CHANGELOG.md" in targets else []
    site = _Site(root, targets, menu)

    listed = [("Documentation", _DOCS, "how to use it, what each number means, how it is built")]
    listed += [(k.name, k.index, f"{len(found)}, {k.about}") for k, found in results.items()]
    parser = _parser()
    docs = []
    for name in sources:
        title, content, headings = _converted(parser, site, name)
        site.add(targets[name], title, content, headings=headings, listed=listed if name == "README.md" else [])
        if name.startswith("docs/"):
            docs.append((title, _relative(targets[name], _DOCS)))
    site.add(_DOCS, "Documentation", "<h1>Documentation</h1>", groups=[("", sorted(docs, key=lambda d: d[0].lower()))])
    for kind, found in results.items():
        groups = _grouped(root, kind, found, studies or {})
        site.add(kind.index, kind.name, f"<h1>{kind.name}</h1>", groups=groups, pictures=kind.are_pictures)
    _write(site, output, copied)
    return Website(output, len(sources), {kind.name.lower(): len(results.get(kind, ())) for kind in _RESULTS})


def _check_output(output: Path) -> None:
    expected = "a new folder, or a website that this command has made"
    if output.is_symlink() or (output.exists() and not output.is_dir()):
        raise FileError("is not a folder", where=str(output), expected=expected)
    if output.is_dir() and any(output.iterdir()):
        index = output / "index.html"
        if not index.is_file() or f'content="{_GENERATOR}"' not in read_text(index):
            raise FileError("holds something else", where=str(output), expected=expected)


def _markdown_sources(root: Path) -> list[str]:
    if not (root / "README.md").is_file():
        raise FileError(
            "no such file",
            where=str(root / "README.md"),
            expected="the repository's README, docs and results",
            hint="Run this in the repository's root",
        )
    docs = sorted(path.relative_to(root).as_posix() for path in (root / "docs").rglob("*.md"))
    return [name for name in _MARKDOWN if (root / name).is_file()] + docs


def _page_of(name: str) -> str:
    """Return the page's path that a Markdown file becomes."""
    folder, file = posixpath.split(name)
    stem = file.removesuffix(".md")
    return posixpath.join(folder, "index.html" if stem == "README" else f"{stem.lower()}.html")


def _relative(target: str, page: str) -> str:
    return posixpath.relpath(target, posixpath.dirname(page) or ".")


def _part(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _parser() -> MarkdownIt:
    try:
        from markdown_it import MarkdownIt
        from mdit_py_plugins.anchors import anchors_plugin
    except ImportError as error:
        raise MissingResourceError(
            f"not installed: {error.name}", expected="markdown-it-py", hint="pip install 'comperdial[workflow]'"
        ) from error
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    return parser.use(anchors_plugin, max_level=4)


def _converted(parser: MarkdownIt, site: _Site, name: str) -> tuple[str, str, list[tuple[str, str]]]:
    """Return a Markdown file's title, its HTML, and its headings of the second level as anchor and text."""
    tokens = parser.parse(read_text(site.root / name))
    title, headings = name, []
    for opening, inline in pairwise(tokens):
        if inline.type == "inline" and inline.children:
            text = "".join(token.content for token in inline.children)
            if opening.tag == "h1" and title == name:
                title = text
            elif opening.tag == "h2":
                headings.append((str(opening.attrGet("id") or ""), text))
            inline.children = list(_linked(inline.children, site, name))
    content = parser.renderer.render(tokens, parser.options, {})
    # A wide table scrolls by itself, not with the page.
    content = content.replace("<table>", '<div class="scroll" tabindex="0"><table>')
    content = content.replace("</table>", "</table></div>")
    return title, content, headings


def _linked(tokens: Sequence[Token], site: _Site, name: str) -> Iterator[Token]:
    """Yield a paragraph's tokens with links as the site has them; what is not on the site stays as text."""
    from markdown_it.token import Token

    page = site.targets[name]
    # Whether each link that is open was kept.
    kept: list[bool] = []
    for token in tokens:
        if token.type == "link_open":
            found = _href(str(token.attrGet("href") or ""), site, name)
            kept.append(found is not None)
            if found is None:
                continue
            token.attrSet("href", found)
        elif token.type == "link_close":
            if not kept.pop():
                continue
        elif token.type == "image":
            token.attrSet("src", _href(str(token.attrGet("src") or ""), site, name) or "")
        elif token.type == "code_inline" and token.content in site.targets and not kept:
            # Pages name results by their path.
            href = html.escape(_relative(site.targets[token.content], page))
            text = html.escape(token.content)
            token = Token("html_inline", "", 0, content=f'<a href="{href}"><code>{text}</code></a>')
        yield token


def _href(href: str, site: _Site, name: str) -> str | None:
    """Return a link as the page of ``name`` has it; None where the site has nothing that it leads to."""
    if not href or href.startswith("#") or re.match(r"[a-z][a-z0-9+.-]*:", href, re.IGNORECASE):
        return href
    path, mark, fragment = href.partition("#")
    found = site.targets.get(posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(path))))
    return None if found is None else _relative(found, site.targets[name]) + mark + fragment


def _grouped(
    root: Path, kind: _Kind, found: Sequence[Path], studies: Mapping[str, str]
) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return names and links of results: those of each study under its title, then those of any data set."""
    groups: dict[str, list[tuple[str, str]]] = {title: [] for title in (*studies.values(), "")}
    for path in found:
        study = path.parts[-3] if path.parts[-4:-3] == ("studies",) else ""
        link = _relative(path.relative_to(root).as_posix(), kind.index)
        groups.setdefault(studies.get(study, study), []).append((_title(path), link))
    rest = groups.pop("")
    filled = [(title, entries) for title, entries in groups.items() if entries]
    return [*filled, ("Of each data set" if filled else "", rest)] if rest else filled


def _title(path: Path) -> str:
    """Return what a result is called: its own title if it has one; what is simulated says so."""
    if path.suffix in _PICTURES:
        title, simulated = f"{path.parent.parent.name}: {path.stem}", _is_simulated(path.with_suffix(".svg"))
    else:
        text = read_text(path)
        found = _HEADING.search(text) or _TITLE.search(text)
        title, simulated = html.unescape(found[1]).strip() if found else path.stem, bool(_SIMULATED.search(text))
    return f"{title} (SIMULATED)" if simulated and "SIMULATED" not in title else title


def _is_simulated(drawing: Path) -> bool:
    return drawing.is_file() and "SIMULATED" in read_text(drawing)


def _write(site: _Site, output: Path, copied: Sequence[str]) -> None:
    """Write all files beside the folder, and put them in its place when they are complete."""
    output.parent.mkdir(parents=True, exist_ok=True)
    new = output.with_name(f".{output.name}-{secrets.token_hex(4)}")
    try:
        for name, text in site.made.items():
            _put(new / name, text)
        _put(new / "style.css", _part("style.css") + _part("menu.css"))
        for name in copied:
            if name.endswith(".html"):
                _put(new / name, _with_menu(read_text(site.root / name), site, name))
            else:
                (new / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(site.root / name, new / name)
        if output.exists():
            shutil.rmtree(output)
        new.rename(output)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _with_menu(text: str, site: _Site, name: str) -> str:
    """Return a result's page with the site's menu on top."""
    # A page that allows only the style it came with shows the menu in that.
    style = "" if _POLICY in text else f"<style>{_part('menu.css')}</style>"
    links = "".join(f'<a href="{_relative(to, name)}">{html.escape(title)}</a>\n' for title, to in site.menu)
    menu = f'{style}<nav class="website" aria-label="Website">\n{links}</nav>\n'
    return _BODY.sub(lambda found: f"{found[0]}\n{menu}", text, count=1)
