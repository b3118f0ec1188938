"""Run a jupytext notebook and render it as a self-contained HTML page."""

from __future__ import annotations

import html
import os
import re
import sys
from pathlib import Path
from string import Template
from typing import Any

from comperdial.core.errors import ComperdialError
from comperdial.core.files import read_text

# Code is folded: the page is for readers of text and tables.
_TEMPLATE = """
{%- extends 'basic/index.html.j2' -%}
{% block input_group -%}
<details class="code"{% if "shown" in cell.metadata.get("tags", []) %} open{% endif %}><summary>code</summary>
{{ cell.source | highlight_code(metadata=cell.metadata) }}</details>
{%- endblock input_group %}
"""

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title><style>
$style</style></head><body><main>
$body
</main></body></html>
"""
# Timeout of a cell in seconds.
_SECONDS = 600
# Code tokens without a style, which contain no others.
_PLAIN = re.compile(r'<span(?: class="(?:n|o|p|w|nb|nn|nf|bp)")?>([^<]*)</span>')


def execute(source: str | Path, *, folder: str | Path = ".") -> str:
    """Execute a jupytext file (``py:percent``) in a folder, the repository's root, and return it as HTML.

    Raises a ComperdialError if a cell fails, with the cell and its error.
    """
    import jupytext
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError
    from nbconvert import HTMLExporter

    notebook = jupytext.read(source)
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(notebook, timeout=_SECONDS, kernel_name="python3", resources=resources, record_timing=False)
    try:
        client.execute()
    except CellExecutionError as error:
        number = sum(cell.cell_type == "code" and bool(cell.execution_count) for cell in notebook.cells)
        problem, where = f"{error.ename}: {error.evalue}", f"{source}, code cell {number}"
        raise ComperdialError(problem, where=where, expected="a notebook that runs through") from error
    # Random ids and the kernel's version would make equal pages differ.
    notebook.metadata.pop("language_info", None)
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
        for output in [one for one in cell.get("outputs", []) if one.get("name") == "stderr"]:
            # Shown only in the terminal, since it contains local paths.
            sys.stderr.write(output["text"])
            cell["outputs"].remove(output)
    exporter: Any = HTMLExporter(raw_template=_TEMPLATE, exclude_input_prompt=True, exclude_output_prompt=True)
    body, _ = exporter.from_notebook_node(notebook)
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    heading = re.search(r"^# (.+)$", text, re.MULTILINE)
    return Template(_PAGE).substitute(
        title=html.escape(heading[1] if heading else Path(source).stem),
        # A tenth of the size of nbconvert's own.
        style=read_text(Path(__file__).with_name("notebook.css")),
        body=_PLAIN.sub(r"\1", body).strip(),
    )
