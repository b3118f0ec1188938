"""Snakemake's records of what made each file, as one small archive: with them a clone knows that nothing is stale.

Snakemake keeps a JSON file for each output in ``.snakemake/metadata``: hundreds of files that are nearly the same. DVC
versions them as one archive, a tenth of their size or less; the Snakefile unpacks it when it is new.
"""

from __future__ import annotations

import base64
import lzma
import tarfile
from pathlib import Path

from comperdial.config import load_yaml
from comperdial.core.errors import FileError
from comperdial.core.files import replacing, sha256, write_text

ARCHIVE = "provenance.tar.xz"
FOLDER = ".snakemake/metadata"
# The checksum of the archive that was last unpacked or packed here; Snakemake looks at nothing of that name.
_SEEN = ".snakemake/metadata.sha256"


def pack(root: str | Path = ".") -> Path:
    """Write the records of all that DVC versions below ``root`` into its archive; the same ones give the same bytes.

    A record of something else, such as fetched data, would make a clone take its own file for up to date.

    Raises
    ------
    FileError
        When there are none.
    """
    root = Path(root)
    versions = [*root.glob("*.dvc"), *root.glob("results/**/*.dvc"), *root.glob("data/**/*.dvc")]
    files = [path for path in versions if path.is_file()]
    owned = [path.parent / out["path"] for path in files for out in load_yaml(path).get("outs", [])]
    with replacing(root / ARCHIVE) as temporary, tarfile.open(temporary, "w:xz", preset=6) as archive:
        for path in sorted(path for path in (root / FOLDER).rglob("*") if path.is_file()):
            name = path.relative_to(root / FOLDER)
            # Snakemake names a record by its output in base64, cut into folders that begin with @ if that is long.
            text = "".join(part.removeprefix("@") for part in name.parts)
            try:
                output = root / base64.urlsafe_b64decode(text.encode()).decode()
            except ValueError:
                continue
            if output.exists() and any(output.is_relative_to(folder) for folder in owned):
                member = tarfile.TarInfo(name.as_posix())
                member.size = path.stat().st_size
                with path.open("rb") as content:
                    archive.addfile(member, content)
        if not archive.getmembers():
            expected = "those of a run of snakemake, of what DVC versions"
            raise FileError("no records", where=str(root / FOLDER), expected=expected)
    write_text(root / _SEEN, sha256(root / ARCHIVE))
    return root / ARCHIVE


def unpack(root: str | Path = ".") -> bool:
    """Unpack the archive below ``root`` if there is one that was not unpacked or packed here before; say whether.

    Raises
    ------
    FileError
        When the archive cannot be read, or holds something else than files below the folder of records.
    """
    root = Path(root)
    archive, seen = root / ARCHIVE, root / _SEEN
    if not archive.is_file() or (seen.is_file() and seen.read_text(encoding="utf-8").strip() == sha256(archive)):
        return False
    try:
        with tarfile.open(archive, "r:xz") as members:
            members.extractall(root / FOLDER, filter="data")
    except (lzma.LZMAError, tarfile.TarError, EOFError) as error:
        raise FileError(f"no archive: {error}", where=str(archive), expected="one that `make publish` wrote") from error
    write_text(seen, sha256(archive))
    return True
