import io
import lzma
import tarfile

import pytest

from comperdial.errors import FileError
from comperdial.records import ARCHIVE, FOLDER, pack, unpack


def write_records(root, **content):
    for name, text in content.items():
        path = root / FOLDER / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def read_records(root):
    folder = root / FOLDER
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_what_was_packed_comes_out_elsewhere_once(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    write_records(here, a="1", b__c="2")
    packed = pack(here).read_bytes()
    assert pack(here).read_bytes() == packed
    assert unpack(here) is False, "what was packed here is here"
    there.mkdir()
    assert unpack(there) is False, "no archive"
    (there / ARCHIVE).write_bytes(packed)
    assert unpack(there) is True
    assert read_records(there) == {"a": "1", "b/c": "2"}
    write_records(there, a="a run of one's own")
    assert unpack(there) is False, "the same archive does not undo what was run since"
    assert read_records(there)["a"] == "a run of one's own"
    write_records(here, a="3")
    pack(here)
    (there / ARCHIVE).write_bytes((here / ARCHIVE).read_bytes())
    assert unpack(there) is True
    assert read_records(there)["a"] == "3"


def test_nothing_to_pack(tmp_path):
    with pytest.raises(FileError, match="no records"):
        pack(tmp_path)


@pytest.mark.parametrize("content", [b"", b"nothing", lzma.compress(b"nothing")])
def test_what_is_no_archive(tmp_path, content):
    (tmp_path / ARCHIVE).write_bytes(content)
    with pytest.raises(FileError, match="make publish"):
        unpack(tmp_path)
    assert not (tmp_path / FOLDER).exists()


@pytest.mark.parametrize("name", ["../../Snakefile", "/tmp/x", "a/../../b"])
def test_nothing_is_written_elsewhere(tmp_path, name):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        member = tarfile.TarInfo(name)
        member.size = 1
        archive.addfile(member, io.BytesIO(b"x"))
    (tmp_path / ARCHIVE).write_bytes(lzma.compress(raw.getvalue()))
    with pytest.raises(FileError, match="files of records alone"):
        unpack(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {ARCHIVE}
