import json
import os
import socket

import pandas as pd
import pytest

from comperdial import schema
from comperdial.config import load_yaml
from comperdial.core.errors import FileError
from comperdial.core.files import (
    read_json,
    read_jsonl,
    read_table,
    read_text,
    replacing,
    sha256,
    write_json,
    write_table,
    write_text,
)


def test_a_failed_write_leaves_the_old_file_and_no_debris(tmp_path):
    target = tmp_path / "result.csv"
    target.write_text("old")
    with pytest.raises(RuntimeError), replacing(target) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["result.csv"]


def test_a_written_file_is_readable_by_others(tmp_path):
    write_text(tmp_path / "a.txt", "x\n")
    umask = os.umask(0)
    os.umask(umask)
    assert (tmp_path / "a.txt").stat().st_mode & 0o777 == 0o666 & ~umask


def test_json_is_sorted_and_ends_with_a_newline(tmp_path):
    write_json(tmp_path / "a.json", {"b": 1, "a": "ü"})
    assert (tmp_path / "a.json").read_text(encoding="utf-8") == '{\n "a": "ü",\n "b": 1\n}\n'


def test_a_byte_that_is_not_utf8_is_named_by_line(tmp_path):
    path = tmp_path / "bad.txt"
    path.write_bytes(b"one\ntwo\nth\xffree\n")
    with pytest.raises(FileError, match=r"bad\.txt, line 3: byte 10 \(0xff\) is not UTF-8; expected UTF-8"):
        read_text(path)


@pytest.mark.parametrize("end", ['{"b": ', '{"b": "te', "tr", "nul", "-", "[", "1,", '{"b"'])
def test_truncated_json_is_called_truncated(tmp_path, end):
    path = tmp_path / "cut.json"
    path.write_text('[{"a": 1},\n ' + end)
    with pytest.raises(FileError, match=r"cut\.json, line 2.*truncated"):
        read_json(path)


def test_a_json_key_that_is_given_twice_is_refused_by_name_and_line(tmp_path):
    # The same key in other objects, and as a value, is none that is given twice.
    path = tmp_path / "twice.json"
    path.write_text('[{"a": "a", "b": {"a": "{\\"a\\":"}},\n {"a": [{"a": 1}],\n  "\\u0061": 2}]')
    with pytest.raises(FileError, match=r"twice\.json: the key 'a' is given twice"):
        read_json(path)
    path.write_text('{"a": 1}\n{"rating": 1, "rating": 5}\n')
    with pytest.raises(FileError, match=r"twice\.json, line 2: the key 'rating' is given twice"):
        list(read_jsonl(path))


def test_wrong_json_is_named_by_line_and_column(tmp_path):
    path = tmp_path / "bad.json"
    path.write_text("[1,\n 2 3]")
    with pytest.raises(FileError, match="line 2, column 4"):
        read_json(path)


def test_a_missing_file_is_no_traceback(tmp_path):
    with pytest.raises(FileError, match="No such file"):
        read_text(tmp_path / "none")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1}\nnot json\n', "line 2, column 1: not valid JSON"),
        ('{"a": 1}\n[1]\n', "line 2: a JSON list; expected one JSON object per line"),
        ("\n\n", "no records"),
    ],
)
def test_bad_jsonl(tmp_path, text, message):
    path = tmp_path / "a.jsonl"
    path.write_text(text)
    with pytest.raises(FileError, match=message):
        read_table(path)


def test_jsonl_is_read_line_by_line(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}\r\n\n{"a": 2}\n{"a": "\xff"}\n')
    records = read_jsonl(path)
    assert [next(records), next(records)] == [(1, {"a": 1}), (3, {"a": 2})]
    with pytest.raises(FileError, match=r"a\.jsonl, line 4: byte 30 \(0xff\) is not UTF-8"):
        next(records)


def test_jsonl_lines_may_hold_exotic_line_separators(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": "x\u2028y"}\n', encoding="utf-8")
    assert read_table(path)["a"].tolist() == ["x\u2028y"]


def test_csv_keeps_words_that_pandas_takes_for_missing(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('response,n\nNA,1\n"",2\nnull,3\n')
    assert read_table(path)["response"].tolist() == ["NA", "", "null"]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_tables_come_back(tmp_path, suffix):
    frame = pd.DataFrame({"a": ["x, y", 'say "hi"'], "b": [1, 2]})
    write_table(tmp_path / f"t{suffix}", frame)
    expected = frame.astype("str") if suffix == ".csv" else frame
    pd.testing.assert_frame_equal(read_table(tmp_path / f"t{suffix}"), expected)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n1,2,3\n", "line 3: 3 cells; expected 2, as in the header"),
        ("a,b\n1\n", "line 2: 1 cells; expected 2"),
        ("a,a\n1,2\n", "line 1: two columns have one name"),
        ("", "the file is empty"),
        ('a,b\n"1,2\n', "line 2: not valid CSV"),
    ],
)
def test_bad_csv_is_named_by_line(tmp_path, content, message):
    path = tmp_path / "bad.csv"
    path.write_text(content)
    with pytest.raises(FileError, match=message) as caught:
        read_table(path)
    assert "\n" not in str(caught.value)


def test_a_byte_order_mark_is_no_text(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbfresponse\nhi\n")
    assert list(read_table(tmp_path / "a.csv").columns) == ["response"]


@pytest.mark.parametrize("content", ["[" * 100_000, "1" * 5000, '"\\ud800"'])
def test_json_beyond_python_s_limits_is_an_error_of_the_file(tmp_path, content):
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(FileError, match=r"cannot be read \(|lone surrogate"):
        read_json(tmp_path / "a.json")


def test_missing_tables_are_called_missing(tmp_path):
    with pytest.raises(FileError, match="no such file"):
        read_table(tmp_path / "none.parquet")


def test_an_unknown_suffix_is_refused(tmp_path):
    with pytest.raises(FileError, match=r"expected a name ending in \.jsonl"):
        read_table(tmp_path / "a.xlsx")
    with pytest.raises(FileError, match=r"expected a name ending in \.jsonl"):
        write_table(tmp_path / "a.xlsx", pd.DataFrame())


def test_sha256_of_nothing(tmp_path):
    (tmp_path / "empty").touch()
    assert sha256(tmp_path / "empty") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.fixture
def odd(tmp_path):
    """Name what is there and is no regular file."""
    os.mkfifo(tmp_path / "fifo.csv")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    (tmp_path / "device.csv").symlink_to("/dev/full")
    (tmp_path / "pipe.csv").symlink_to("fifo.csv")
    with socket.socket(socket.AF_UNIX) as served:
        served.bind(str(tmp_path / "socket.csv"))
    return tmp_path


ODD = [
    ("fifo", "is a pipe"),
    ("pipe", "is a pipe"),
    ("folder", "is a folder"),
    ("device", "is a pipe, a device or a socket"),
    ("socket", "is a pipe, a device or a socket"),
    ("loop", "Too many levels of symbolic links"),
]


@pytest.mark.parametrize(("name", "message"), ODD)
def test_only_a_regular_file_is_replaced(odd, name, message):
    before = {path.name: path.lstat() for path in odd.iterdir()}
    with pytest.raises(FileError, match=rf"{name}\.csv: .*{message}"):
        write_text(odd / f"{name}.csv", "x")
    assert {path.name: path.lstat() for path in odd.iterdir()} == before


@pytest.mark.parametrize(("name", "message"), ODD)
@pytest.mark.parametrize(
    "read",
    [read_text, read_json, read_table, sha256, load_yaml, lambda path: list(read_jsonl(path))],
    ids=["text", "json", "csv", "sha256", "yaml", "jsonl"],
)
def test_only_a_regular_file_is_read(odd, name, message, read):
    with pytest.raises(FileError, match=rf"{name}\.csv: .*{message}"):
        read(odd / f"{name}.csv")


@pytest.mark.parametrize(
    "read", [read_table, lambda path: schema.read(path, "scores"), lambda path: schema.count(path, "scores")]
)
def test_a_pipe_is_no_table(tmp_path, read):
    os.mkfifo(tmp_path / "fifo.parquet")
    with pytest.raises(FileError, match=r"fifo\.parquet: is a pipe, a device or a socket; expected a file"):
        read(tmp_path / "fifo.parquet")


def test_a_link_is_written_through(tmp_path):
    there, links = tmp_path / "there", tmp_path / "links"
    there.mkdir()
    links.mkdir()
    (there / "a.json").write_text("old")
    (links / "a.json").symlink_to(there / "a.json")
    (links / "b.json").symlink_to("a.json")
    (links / "new.json").symlink_to("../there/new.json")
    write_json(links / "b.json", 1)
    write_json(links / "new.json", 2)
    assert [json.loads((there / name).read_text()) for name in ("a.json", "new.json")] == [1, 2]
    assert all(path.is_symlink() for path in links.iterdir())
    assert len(list(links.iterdir())) == 3
    assert len(list(there.iterdir())) == 2


def test_a_link_into_a_read_only_store_is_not_written_through(tmp_path):
    (tmp_path / "cached").write_text("others count on it")
    (tmp_path / "cached").chmod(0o444)
    (tmp_path / "a.csv").symlink_to("cached")
    with pytest.raises(FileError, match=r"a\.csv: is a link to a read-only file; .*Remove the link"):
        write_text(tmp_path / "a.csv", "x")
    assert (tmp_path / "cached").read_text() == "others count on it"
