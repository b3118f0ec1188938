"""Run a jupytext notebook and render it as one HTML page that needs nothing from the network."""

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

# Code is folded away: the page is for who reads the text and the tables.
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
# Seconds that one cell may take.
_SECONDS = 600
# Marks of code that the style below says nothing of; they hold no others.
_PLAIN = re.compile(r'<span(?: class="(?:n|o|p|w|nb|nn|nf|bp)")?>([^<]*)</span>')


def execute(source: str | Path, *, folder: str | Path = ".") -> str:
    """Execute a jupytext file (``py:percent``) in a folder, the repository's root, and return it as HTML.

    Raises ComperdialError when a cell fails; says which one and with what.
    """
    import jupytext
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError
    from nbconvert import HTMLExporter

    notebook = jupytext.read(source)
    nbformat.validator.normalize(notebook)
    # Random ids would make equal notebooks differ.
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    client = NotebookClient(
        notebook,
        timeout=_SECONDS,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        record_timing=False,
    )
    try:
        client.execute()
    except CellExecutionError as error:
        number = sum(cell.cell_type == "code" and bool(cell.execution_count) for cell in notebook.cells)
        raise ComperdialError(
            f"{error.ename}: {error.evalue}",
            where=f"{source}, code cell {number}",
            expected="a notebook that runs through",
        ) from error
    # The kernel's version would make the page differ between machines that compute the same.
    notebook.metadata.pop("language_info", None)
    for cell in notebook.cells:
        outputs = cell.get("outputs", [])
        for output in outputs:
            if output.get("name") == "stderr":
                # For who runs the notebook: it names files of this machine.
                sys.stderr.write(output["text"])
            elif "text/html" in (result := output.get("data", {})):
                # pandas puts a style sheet before every table.
                result["text/html"] = re.sub(r"<style scoped>.*?</style>\s*", "", result["text/html"], flags=re.DOTALL)
        if outputs:
            cell["outputs"] = [output for output in outputs if output.get("name") != "stderr"]
    name = Path(source).stem
    exporter: Any = HTMLExporter(raw_template=_TEMPLATE, exclude_input_prompt=True, exclude_output_prompt=True)
    body, _ = exporter.from_notebook_node(notebook, resources={"metadata": {"name": name}})
    heading = re.search(r"^# (.+)$", "\n".join(c.source for c in notebook.cells if c.cell_type == "markdown"), re.M)
    return Template(_PAGE).substitute(
        title=html.escape(heading[1] if heading else name),
        # A tenth of the size of nbconvert's own.
        style=read_text(Path(__file__).with_name("notebook.css")),
        body=_PLAIN.sub(r"\1", body).strip(),
    )
