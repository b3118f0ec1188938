"""Print a page that links all tables, figures, pages of data sets and notebooks in results/: results/index.html."""

import html
import re
import sys
from pathlib import Path

KINDS = {
    "Pages of data sets": "report.html",
    "Tables": "tables/*.html",
    "Figures": "figures/*.svg",
    "Notebooks": "*.html",
}
results = Path("results")


def title(path: Path) -> str:
    """Return a page's heading or title; of a figure, its name."""
    text = path.read_text(encoding="utf-8") if path.suffix == ".html" else ""
    result = re.search(r"<h1[^>]*>([^<]*)", text) or re.search(r"<title>([^<]*)", text)
    return result[1] if result else html.escape(path.stem)


lines = [
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>ComperDial Bench: results</title>',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    "<style>:root { color-scheme: light dark; } body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem; }</style>",
    "</head><body><h1>ComperDial Bench: results</h1>",
]
# What results/local holds is not ours to publish.
for folder in sorted({*results.glob("*/"), *results.glob("studies/*/")} - {results / "local", results / "studies"}):
    for kind, pattern in KINDS.items():
        result = sorted(folder.glob(pattern)) if kind != "Notebooks" or folder.name == "notebooks" else []
        if result:
            links = [f'<li><a href="{path.relative_to(results)}">{title(path)}</a></li>' for path in result]
            lines.append(
                f"<h2>{folder.relative_to(results)}: {kind.lower()}</h2>\n<ul>\n" + "\n".join(links) + "\n</ul>"
            )
sys.stdout.write("\n".join([*lines, "</body></html>\n"]))
