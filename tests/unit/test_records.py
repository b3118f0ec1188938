import base64
import io
import lzma
import tarfile

import pytest

from comperdial.config.records import ARCHIVE, FOLDER, pack, unpack
from comperdial.core.errors import FileError


def record_name(output):
    """Name a record as Snakemake does."""
    text = base64.urlsafe_b64encode(output.encode()).decode()
    parts = [text[n : n + 254] for n in range(0, len(text), 254)]
    return "/".join([*(f"@{part}" for part in parts[:-1]), parts[-1]])


def write_records(root, **content):
    """Write outputs and their records; DVC versions what lies in results/made."""
    (root / "results").mkdir(parents=True, exist_ok=True)
    (root / "results/made.dvc").write_text("outs:\n- path: made\n")
    for name, text in content.items():
        output = name.replace("__", "/")
        (root / output).parent.mkdir(parents=True, exist_ok=True)
        (root / output).write_text("made")
        path = root / FOLDER / record_name(output)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def read_records(root):
    folder = root / FOLDER
    records = (path for path in folder.rglob("*") if path.is_file())
    names = {path: "".join(part.removeprefix("@") for part in path.relative_to(folder).parts) for path in records}
    return {base64.urlsafe_b64decode(name).decode(): path.read_text() for path, name in names.items()}


def test_what_was_packed_comes_out_elsewhere_once(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    long = "results__made__" + "x" * 200 + "__" + "y" * 200
    write_records(here, **{"results__made__a": "1", long: "2", "data__raw__b": "3", "results__local__c": "4"})
    packed = pack(here).read_bytes()
    assert pack(here).read_bytes() == packed
    assert unpack(here) is False, "what was packed here is here"
    there.mkdir()
    assert unpack(there) is False, "no archive"
    (there / ARCHIVE).write_bytes(packed)
    assert unpack(there) is True
    assert read_records(there) == {"results/made/a": "1", long.replace("__", "/"): "2"}, "what DVC does not own stays"
    write_records(there, results__made__a="a run of one's own", data__raw__b="fetched here")
    assert unpack(there) is False, "the same archive does not undo what was run since"
    assert read_records(there)["results/made/a"] == "a run of one's own"
    write_records(here, results__made__a="3")
    pack(here)
    (there / ARCHIVE).write_bytes((here / ARCHIVE).read_bytes())
    assert unpack(there) is True
    assert read_records(there)["results/made/a"] == "3"
    assert read_records(there)["data/raw/b"] == "fetched here"


def test_nothing_to_pack(tmp_path):
    with pytest.raises(FileError, match="no records"):
        pack(tmp_path)


@pytest.mark.parametrize("content", [b"", b"nothing", lzma.compress(b"nothing")])
def test_what_is_no_archive(tmp_path, content):
    (tmp_path / ARCHIVE).write_bytes(content)
    with pytest.raises(FileError, match="make publish"):
        unpack(tmp_path)
    assert not (tmp_path / FOLDER).exists()


@pytest.mark.parametrize("name", ["../../Snakefile", "a/../../b"])
def test_nothing_is_written_elsewhere(tmp_path, name):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        member = tarfile.TarInfo(name)
        member.size = 1
        archive.addfile(member, io.BytesIO(b"x"))
    (tmp_path / ARCHIVE).write_bytes(lzma.compress(raw.getvalue()))
    with pytest.raises(FileError, match="make publish"):
        unpack(tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.name != ARCHIVE]
