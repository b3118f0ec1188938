"""Writes what an artifact's function returned: a table, a figure or a page in all forms, with the record of what made it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from comperdial.core import provenance
from comperdial.core.artifact import Artifact
from comperdial.core.closure import code_digests, names_of_version
from comperdial.core.errors import NothingToShowError
from comperdial.core.files import write_text
from comperdial.report import document, nothing


def render(artifact: Artifact, job: Mapping[str, Any], inputs: Mapping[str, Path | list[Path]]) -> None:
    """Make one table, figure or page; where the data lack what it shows, one that says so.

    Parameters
    ----------
    artifact
        What to make.
    job
        What its job is told.
    inputs
        Its files by name.
    """
    stem, settings = job["outputs"]["stem"], job["settings"]
    simulated = settings.get("source") == "simulated"
    try:
        made = artifact.make(**inputs, **settings)
    except NothingToShowError as error:
        title = settings.get("title") or ", ".join(settings.get("titles", {}).values())
        write = nothing.write_figure if artifact.kind == "figure" else nothing.write_table
        write(stem, title, str(error), simulated=simulated)
    else:
        if artifact.kind == "table":
            document.write(made, stem)
        elif artifact.kind == "figure":
            from comperdial.report.plots.style import finish

            drawing, frame = made
            finish(drawing, frame, stem, simulated=simulated)
        else:
            write_text(f"{stem}.html", made)
    paths = [path for found in inputs.values() for path in (found if isinstance(found, list) else [found])]
    code = code_digests(*names_of_version(job["code"])) if "code" in job else {}
    provenance.write(f"{stem}.html", artifact.name, settings, paths, code)
