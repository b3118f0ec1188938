"""Pack Snakemake's metadata into one small archive, so that a fresh clone knows that nothing is stale.

Snakemake keeps a JSON file per output in ``.snakemake/metadata``: hundreds of almost identical files. DVC versions them as
one archive, at most a tenth of their size; the Snakefile unpacks a new one.
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
# Checksum of the archive last packed or unpacked here; Snakemake ignores this file.
_SEEN = ".snakemake/metadata.sha256"


def pack(root: str | Path = ".") -> Path:
    """Pack the metadata of all files that DVC versions below ``root``; the same records give the same bytes.

    Records of other files, such as downloads, are left out: they would make a clone treat its own file as up to date.

    Raises
    ------
    FileError
        If there are no records.
    """
    root = Path(root)
    versions = [*root.glob("*.dvc"), *root.glob("results/**/*.dvc"), *root.glob("data/**/*.dvc")]
    files = [path for path in versions if path.is_file()]
    owned = [path.parent / out["path"] for path in files for out in load_yaml(path).get("outs", [])]
    with replacing(root / ARCHIVE) as temporary, tarfile.open(temporary, "w:xz", preset=6) as archive:
        for path in sorted(path for path in (root / FOLDER).rglob("*") if path.is_file()):
            name = path.relative_to(root / FOLDER)
            # Snakemake names a record by its output path in base64, split into folders that begin with @ if it is long.
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
            expected = "records of a snakemake run for files that DVC versions"
            raise FileError("no records", where=str(root / FOLDER), expected=expected)
    write_text(root / _SEEN, sha256(root / ARCHIVE))
    return root / ARCHIVE


def unpack(root: str | Path = ".") -> bool:
    """Unpack the archive below ``root`` unless it was packed or unpacked here before; return whether it was unpacked.

    Raises
    ------
    FileError
        If the archive cannot be read, or contains a path outside the metadata folder.
    """
    root = Path(root)
    archive, seen = root / ARCHIVE, root / _SEEN
    if not archive.is_file() or (seen.is_file() and seen.read_text(encoding="utf-8").strip() == sha256(archive)):
        return False
    try:
        with tarfile.open(archive, "r:xz") as members:
            members.extractall(root / FOLDER, filter="data")
    except (lzma.LZMAError, tarfile.TarError, EOFError) as error:
        raise FileError(
            f"no archive: {error}", where=str(archive), expected="an archive written by `make publish`"
        ) from error
    write_text(seen, sha256(archive))
    return True
