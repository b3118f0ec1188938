"""Makes an artifact as the workflow does: its function with inputs and settings, the result in all forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from comperdial import jobs


def make(name: str, output: Path, inputs: Mapping[str, Path | Sequence[Path]], **settings: Any) -> None:
    """Make the table, figure or page ``name`` (``module:function``) under a path without suffix."""
    paths = {key: str(path) if isinstance(path, Path) else [*map(str, path)] for key, path in inputs.items()}
    jobs.do({"make": name, "inputs": paths, "outputs": {"stem": str(output)}, "settings": settings})
