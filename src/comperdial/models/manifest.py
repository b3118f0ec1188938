"""``comperdial-model.json``: what a fetched model's files are and where they came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from comperdial.errors import FileError
from comperdial.files import read_json, write_json
from comperdial.models.digests import Checksum, counts
from comperdial.models.weights import is_weights

NAME = "comperdial-model.json"


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What lies in a model's folder.

    Attributes
    ----------
    name, repository, revision
        As the registry has them; empty for a folder of a user's own.
    commit
        The commit that the files are of; None when they came from a mirror.
    files
        The files that count, and what their bytes are.
    converted
        The pickles that the weights among them were made from.
    """

    name: str
    repository: str = ""
    revision: str = ""
    commit: str | None = None
    files: Mapping[str, Checksum]
    converted: Mapping[str, Checksum] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        """Write the manifest into the model's folder."""
        write_json(folder / NAME, asdict(self))


def read(folder: Path) -> Manifest | None:
    """Read a folder's manifest; None when there is none.

    Raises
    ------
    FileError
        When it is there and is no manifest.
    """
    path = folder / NAME
    if not path.is_file():
        return None
    content = read_json(path)
    try:
        parts = {part: {f: Checksum(**pin) for f, pin in content[part].items()} for part in ("files", "converted")}
        found = Manifest(**{**content, **parts})
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise FileError("no manifest of a model", where=str(path), expected="what `models fetch` writes") from error
    if not all(map(counts, found.files)) or not all(map(is_weights, found.converted)):
        raise FileError("a file that no model has", where=str(path), expected="what `models fetch` writes")
    return found
