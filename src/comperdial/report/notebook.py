"""Run a jupytext notebook and render it as one HTML page that needs nothing from the network."""

from __future__ import annotations

import os
from pathlib import Path

from comperdial.errors import ComperdialError
from comperdial.files import write_text


def execute(source: str | Path, target: str | Path, *, folder: str | Path = ".", timeout: int = 600) -> None:
    """Execute a notebook and write it as HTML.

    Parameters
    ----------
    source
        A jupytext file (``py:percent``).
    target
        The HTML file; it is written only when every cell has run.
    folder
        Where the notebook runs: the repository's root, whose ``results/`` it reads.
    timeout
        Seconds that one cell may take.

    Raises
    ------
    ComperdialError
        When a cell fails; says which one and with what.
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
        timeout=timeout,
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
    exporter = HTMLExporter(
        mathjax_url="",
        require_js_url="",
        jquery_url="",
        mermaid_js_url="",
        mermaid_layout_elk_js_url="",
        exclude_input_prompt=True,
    )
    exporter.exclude_output_prompt = True
    page, _ = exporter.from_notebook_node(notebook, resources={"metadata": {"name": Path(source).stem}})
    write_text(target, page)
