"""Snakemake's records of what made each file, as one small archive: with them a clone knows that nothing is stale.

Snakemake keeps a JSON file an output in ``.snakemake/metadata``: hundreds of files that say much the same. DVC versions
them as one archive, a tenth of their size or less; the Snakefile unpacks it where it is new.
"""

from __future__ import annotations

import base64
import io
import lzma
import tarfile
from pathlib import Path, PurePath, PurePosixPath

from comperdial.config import load_yaml
from comperdial.core.errors import FileError
from comperdial.core.files import replacing, sha256, write_text

ARCHIVE = "provenance.tar.xz"
FOLDER = ".snakemake/metadata"
# Which archive the records were unpacked from, or packed into; Snakemake looks at nothing of that name.
_SEEN = ".snakemake/metadata.sha256"


def pack(root: str | Path = ".") -> Path:
    """Write the records of all that DVC versions below ``root`` into its archive; the same ones give the same bytes.

    A record of something else, fetched data for example, would say in a clone that what lies there is up to date.

    Raises
    ------
    FileError
        When there are none.
    """
    root = Path(root)
    owned = _owned(root)
    paths = [
        path
        for path in sorted((root / FOLDER).rglob("*"))
        if path.is_file() and (name := _output(path.relative_to(root / FOLDER))) and (root / name).exists()
        if any(PurePosixPath(name).is_relative_to(folder) for folder in owned)
    ]
    if not paths:
        raise FileError(
            "no records", where=str(root / FOLDER), expected="those of a run of snakemake, of what DVC versions"
        )
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path in paths:
            content = path.read_bytes()
            member = tarfile.TarInfo(path.relative_to(root / FOLDER).as_posix())
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    with replacing(root / ARCHIVE) as temporary:
        temporary.write_bytes(lzma.compress(packed.getvalue(), preset=6))
    write_text(root / _SEEN, sha256(root / ARCHIVE))
    return root / ARCHIVE


def _owned(root: Path) -> list[PurePosixPath]:
    """Return the files and folders that DVC versions."""
    found = []
    for path in [*root.glob("*.dvc"), *root.glob("results/**/*.dvc"), *root.glob("data/**/*.dvc")]:
        if path.is_file():
            folder = PurePosixPath(path.parent.relative_to(root).as_posix())
            found += [folder / out["path"] for out in load_yaml(path).get("outs", [])]
    return found


def _output(record: PurePath) -> str | None:
    """Return the output that a record is of; None for a name that is none.

    Snakemake names a record by its output in base64, cut into folders that begin with @ where that is long.
    """
    text = "".join(part.removeprefix("@") for part in record.parts)
    try:
        return base64.urlsafe_b64decode(text.encode()).decode()
    except ValueError:
        return None


def unpack(root: str | Path = ".") -> bool:
    """Unpack the archive below ``root`` if there is one that was not unpacked or packed here before.

    Returns
    -------
    bool
        Whether records were written.

    Raises
    ------
    FileError
        When the archive is none, or holds something else than files below the folder of records.
    """
    root = Path(root)
    archive, seen = root / ARCHIVE, root / _SEEN
    if not archive.is_file():
        return False
    digest = sha256(archive)
    if seen.is_file() and seen.read_text(encoding="utf-8").strip() == digest:
        return False
    try:
        with lzma.open(archive) as file, tarfile.open(fileobj=file, mode="r|") as members:
            for member in members:
                name = PurePosixPath(member.name)
                content = members.extractfile(member) if member.isfile() else None
                if content is None or name.is_absolute() or ".." in name.parts:
                    raise FileError(f"holds {member.name!r}", where=str(archive), expected="files of records alone")
                with replacing(root / FOLDER / name) as temporary:
                    temporary.write_bytes(content.read())
    except (lzma.LZMAError, tarfile.TarError, EOFError) as error:
        raise FileError(f"no archive: {error}", where=str(archive), expected="one that `make publish` wrote") from error
    write_text(seen, digest)
    return True
