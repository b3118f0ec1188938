"""The questions of Zhang et al. 2024 (Table 9, appendix B), taken from the paper's text or HTML.

The prompts around them (figures 1 and 2) are pictures there, and in no text: the frame stays ours. The licence of the
paper's text is its publisher's: what is imported stays on the user's machine.
"""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from comperdial.core.errors import FileError
from comperdial.core.files import sha256, write_json, write_text
from comperdial.judges import questions
from comperdial.judges.paper_prompts import read_paper

SOURCE = "questions.source.json"
_TITLE = re.compile(r"Dimension-Specific\W+Question\s+Design")
_ROW = re.compile(r"(\w+)\s*\|?\s*Question\s*:\s*([^|?]+\?)")


def holds_questions(text: str) -> bool:
    """Return whether a paper's text has the table of questions."""
    return _TITLE.search(text) is not None


def import_questions(paper: str | Path, folder: str | Path) -> dict[str, dict[str, str]]:
    """Write the paper's ten questions beside the imported prompts; none unless all are found.

    Parameters
    ----------
    paper
        The paper as plain text, or as HTML.
    folder
        Where to write ``questions.yaml``, and beside it the paper's file name and sha256.

    Returns
    -------
    dict
        The questions by level and dimension.

    Raises
    ------
    FileError
        When a question is missing: names level and dimension.
    """
    paper, folder = Path(paper), Path(folder)
    found = extract_questions(read_paper(paper), str(paper))
    write_text(folder / questions.FILE, yaml.safe_dump(found, sort_keys=False, allow_unicode=True))
    write_json(folder / SOURCE, {"file": paper.name, "sha256": sha256(paper)})
    return found


def extract_questions(text: str, where: str) -> dict[str, dict[str, str]]:
    """Return the questions in a paper's text; ``where`` names it in errors."""
    title = _TITLE.search(text)
    rows = [(row[1].lower(), " ".join(row[2].split())) for row in _ROW.finditer(text, title.end() if title else 0)]
    found: dict[str, dict[str, str]] = {}
    for level, wanted in questions.read().items():
        # Turn level comes first, and both have a question for `overall`.
        part, rows = dict(rows[: len(wanted)]), rows[len(wanted) :]
        if missing := [dimension for dimension in wanted if dimension not in part]:
            raise FileError(
                f"no question for {missing[0]} at {level} level",
                where=f"{where}, Table 9",
                expected=f"one for each of {', '.join(wanted)}",
                hint="Give the whole paper, appendices included",
            )
        found[level] = {dimension: part[dimension] for dimension in wanted}
    return found
