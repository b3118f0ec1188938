"""Hooks of MkDocs: append the generated parts of pages (reference.py), and let pages link to files outside this folder."""

from __future__ import annotations

import posixpath
import re
from typing import Any

from reference import PAGES, ROOT

RESULTS = {"reports": "report.html", "tables": "tables/*.html", "figures": "figures/*.svg", "notebooks": "*.html"}
LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)")


def published() -> str:
    """List the rendered results that are here; those in results/local quote texts that may not be published."""
    text = ""
    for folder in sorted({*ROOT.glob("results/*/"), *ROOT.glob("results/studies/*/")}):
        for title, pattern in RESULTS.items():
            pages = sorted(folder.glob(pattern)) if folder.name != "local" else []
            if pages and (title != "notebooks" or folder.name == "notebooks"):
                links = [f"- [{path.stem}](../{path.relative_to(ROOT)})" for path in pages]
                text += f"\n## {folder.name}: {title}\n\n" + "\n".join(links) + "\n"
    return text or "\nNo results are here. `dvc pull` fetches those that are published.\n"


GENERATED = {**PAGES, "published.md": published}


def source(uri: str) -> str:
    """Return where in the repository a page of the site is."""
    return f"docs/{uri}" if (ROOT / "docs" / uri).is_file() else uri


def on_files(files: Any, config: Any) -> Any:  # noqa: ANN401
    """Add the files outside this folder that pages link to."""
    from mkdocs.structure.files import File

    texts = {file.src_uri: file.content_string for file in files.documentation_pages()}
    for name, make in GENERATED.items():
        texts[name] = f"{texts[name]}\n{make()}"
    waiting = list(texts)
    while waiting:
        page = waiting.pop()
        for link in LINK.findall(texts[page]):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(source(page)), link))
            if target.startswith(("docs/", "..")) or files.get_file_from_path(target) or not (ROOT / target).is_file():
                continue
            files.append(File.generated(config, target, abs_src_path=str(ROOT / target)))
            if target.endswith(".md"):
                texts[target] = (ROOT / target).read_text(encoding="utf-8")
                waiting.append(target)
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:  # noqa: ANN401
    """Append the generated part, and point links at the places that files have in the site."""
    uri = page.file.src_uri
    if uri in GENERATED:
        markdown = f"{markdown}\n{GENERATED[uri]()}"

    def moved(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source(uri)), match[1]))
        return "](" + posixpath.relpath(target.removeprefix("docs/"), posixpath.dirname(uri) or ".")

    return LINK.sub(moved, markdown)
