"""The cache of token vectors: what goes in comes out, whoever writes beside, and damage costs the cache only."""

import logging
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comperdial.core.errors import FileError
from comperdial.models import vectors
from comperdial.models.vectors import Encoded, VectorStore


def encoded(seed, rows=3, dimensions=4):
    numbers = np.random.default_rng(seed).normal(size=(rows, dimensions)).astype(np.float32)
    return Encoded(numbers, np.array([True] + [False] * (rows - 1)), seed)


def filled(path, texts):
    store = VectorStore(path, 4)
    with store.writer() as writer:
        for number, text in enumerate(texts):
            writer.add(text, encoded(number, rows=1 + number % 5))
    return store


def assert_holds(store, texts):
    for number, text in enumerate(texts):
        found, expected = store.get(text), encoded(number, rows=1 + number % 5)
        assert found.vectors.tobytes() == expected.vectors.tobytes()
        assert found.special.tolist() == expected.special.tolist()
        assert found.cut == number


@pytest.fixture
def path(tmp_path):
    return tmp_path / "embeddings/encoder.sqlite"


@settings(max_examples=25, deadline=None)
@given(texts=st.lists(st.text(st.characters(), max_size=20), unique=True, max_size=30))
def test_what_goes_in_comes_out(texts, tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "encoder.sqlite"
    filled(path, texts)
    for store in (VectorStore(path, 4), filled(None, texts)):
        assert len(store) == len(texts)
        assert_holds(store, texts)
        assert store.get("not there " * 9) is None
        assert list(store.missing([*texts, "not there " * 9, *texts, "not there " * 9])) == ["not there " * 9]


def test_texts_that_differ_at_all_are_different_texts(path):
    texts = ["tea", "tea ", "Tea", "", "t\u00e9", "te\u0301", "\ud800"]
    filled(path, texts)
    assert_holds(VectorStore(path, 4), texts)


def test_missing_texts_come_in_their_order_however_many(path):
    store = filled(path, [f"text {number}" for number in range(0, 2000, 2)])
    texts = [f"text {number}" for number in range(2000)]
    assert list(store.missing(iter(texts + texts))) == texts[1::2]


def test_what_was_written_before_an_error_is_kept(path):
    store = VectorStore(path, 4)
    with pytest.raises(RuntimeError), store.writer() as writer:
        writer.add("a", encoded(0, rows=1))
        raise RuntimeError
    assert_holds(VectorStore(path, 4), ["a"])


def test_of_two_copies_the_newest_counts(path):
    for seed in range(3):
        with VectorStore(path, 4).writer() as writer:
            writer.add("a", encoded(seed))
    assert len(VectorStore(path, 4)) == 1
    assert VectorStore(path, 4).get("a").cut == 2


def test_vectors_of_another_shape_are_refused(path):
    with pytest.raises(ValueError, match="expected"), VectorStore(path, 5).writer() as writer:
        writer.add("a", encoded(1))


WRITES = """
import sys
from pathlib import Path
import numpy as np
from comperdial.models.vectors import Encoded, VectorStore
store = VectorStore(Path(sys.argv[1]), 4)
for number in range(100):
    for name in ("all", sys.argv[2]):
        with store.writer() as writer:
            writer.add(f"{name} {number}", Encoded(np.full((3, 4), number, np.float32), np.zeros(3, bool), number))
store.close()
"""


def test_several_processes_write_at_once(path):
    started = [subprocess.Popen([sys.executable, "-c", WRITES, path, name]) for name in "xyz"]
    assert [process.wait() for process in started] == [0, 0, 0]
    store = VectorStore(path, 4)
    assert len(store) == 400
    for name in ("all", *"xyz"):
        for number in range(100):
            assert (store.get(f"{name} {number}").vectors == number).all()
    store.close()
    assert list(path.parent.iterdir()) == [path]


KILLED = """
import os, signal, sys
from pathlib import Path
import numpy as np
from comperdial.models import vectors
path, rows = Path(sys.argv[1]), [(b"%016d" % n, 0, bytes(1 << 16), 0) for n in range(100)]
store = vectors.VectorStore(path, 4)
store._connection.execute("BEGIN IMMEDIATE")
store._connection.execute("UPDATE vectors SET cut = 99")
# More than SQLite keeps in memory.
store._connection.executemany("INSERT INTO vectors VALUES (?, ?, ?, ?)", rows)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_was_writing_is_undone(path, caplog):
    filled(path, ["a", "b"]).close()
    assert subprocess.run([sys.executable, "-c", KILLED, path]).returncode == -signal.SIGKILL
    assert path.with_name("encoder.sqlite-journal").stat().st_size
    store = VectorStore(path, 4)
    assert_holds(store, ["a", "b"])
    assert len(store) == 2 and not caplog.text


@pytest.mark.parametrize("content", [b"", b"nothing", b"SQLite format 3\0" + bytes(4000)])
def test_a_file_that_is_no_cache_is_begun_anew(path, content, caplog):
    path.parent.mkdir()
    path.write_bytes(content)
    with caplog.at_level(logging.WARNING):
        filled(path, ["a", "b"])
    assert caplog.text.count("encoded anew") == (1 if content else 0)
    assert_holds(VectorStore(path, 4), ["a", "b"])


@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
def test_a_truncated_file_is_begun_anew(path, share, caplog):
    texts = [f"text {number}" for number in range(3000)]
    filled(path, texts).close()
    os.truncate(path, int(share * path.stat().st_size))
    store = VectorStore(path, 4)
    assert None in [store.get(text) for text in texts]
    filled(path, texts)
    assert caplog.text.count("encoded anew") == 1
    assert_holds(VectorStore(path, 4), texts)


def test_whichever_byte_changes_no_answer_is_wrong(path, caplog):
    texts = ["a", "b", "c"]
    filled(path, texts).close()
    whole = path.read_bytes()
    # Where pages begin and end: between, they are empty.
    used = [place for place in range(len(whole)) if place % 32768 < 200 or any(whole[place - 8 : place + 8])]
    for place in used[::3]:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        store = VectorStore(path, 4)
        for number, text in enumerate(texts):
            found, expected = store.get(text), encoded(number, rows=1 + number % 5)
            if found is not None:
                assert found.vectors.tobytes() == expected.vectors.tobytes()
                assert found.special.tolist() == expected.special.tolist()
                assert found.cut == expected.cut, f"byte {place}"
        with store.writer() as writer:
            writer.add("d", encoded(7))
        assert store.get("d").cut == 7
        store.close()
    assert caplog.text.count("encoded anew") > len(used) / 30


def test_two_that_find_the_damage_begin_one_file_anew(path, caplog):
    filled(path, ["a", "b"]).close()
    one, other = VectorStore(path, 4), VectorStore(path, 4)
    place = path.read_bytes().index(encoded(1, rows=2).vectors.tobytes())
    with path.open("r+b") as file:
        file.seek(place)
        file.write(b"damage")
    assert one.get("b") is None
    with one.writer() as writer:
        writer.add("b", encoded(1, rows=2))
    assert other.get("b") is None or other.get("b").cut == 1
    assert VectorStore(path, 4).get("b").cut == 1, "what the first wrote since is not lost"


def test_a_full_disk_is_one_message_and_no_damage(path):
    store = filled(path, ["a"])
    store._connection.execute(f"PRAGMA max_page_count = {path.stat().st_size // 32768}")
    with pytest.raises(FileError, match=r"encoder\.sqlite: .*\(database or disk is full\)"), store.writer() as writer:
        writer.add("large", encoded(1, rows=10_000))
    assert_holds(VectorStore(path, 4), ["a"])


def test_much_is_written_in_parts(path, monkeypatch):
    monkeypatch.setattr(vectors, "_BUFFER", 100)
    store, beside = VectorStore(path, 4), VectorStore(path, 4)
    with store.writer() as writer:
        for number in range(3):
            writer.add(f"text {number}", encoded(number))
        assert len(beside) == 2, "for others to read, and little of it in memory"
    assert len(beside) == 3
