"""The store of token vectors: content-addressed, whole or not at all, damage found."""

import logging
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comperdial.models import vectors
from comperdial.models.vectors import Encoded, VectorStore, key


def encoded(seed, rows=3, dimensions=4, cut=0):
    numbers = np.random.default_rng(seed).normal(size=(rows, dimensions)).astype(np.float32)
    return Encoded(numbers, np.array([True] + [False] * (rows - 1)), cut)


def filled(folder, texts, dimensions=4):
    store = VectorStore(folder, dimensions)
    with store.writer() as writer:
        for number, text in enumerate(texts):
            writer.add(text, encoded(number, rows=1 + number % 5, dimensions=dimensions, cut=number))
    return store


@settings(max_examples=25, deadline=None)
@given(texts=st.lists(st.text(max_size=20), unique=True, max_size=30))
def test_what_goes_in_comes_out(texts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    filled(folder, texts)
    again = VectorStore(folder, 4)
    assert len(again) == len(texts)
    for number, text in enumerate(texts):
        found, expected = again.get(text), encoded(number, rows=1 + number % 5, cut=number)
        np.testing.assert_array_equal(found.vectors, expected.vectors)
        np.testing.assert_array_equal(found.special, expected.special)
        assert found.cut == number
    assert list(again.missing([*texts, "not there " * 9, *texts, "not there " * 9])) == ["not there " * 9]


def test_two_writers_do_not_meet(tmp_path):
    one, other = VectorStore(tmp_path, 4), VectorStore(tmp_path, 4)
    with one.writer() as first, other.writer() as second:
        first.add("a", encoded(1))
        second.add("a", encoded(1))
        second.add("b", encoded(2))
    one.refresh()
    assert "b" in one
    np.testing.assert_array_equal(one.get("a").vectors, encoded(1).vectors)
    assert len(list(tmp_path.glob("*.vectors"))) == 2


def test_what_was_written_before_an_error_is_kept(tmp_path):
    store = VectorStore(tmp_path, 4)
    with pytest.raises(RuntimeError), store.writer() as writer:
        writer.add("a", encoded(1))
        raise RuntimeError
    assert "a" in VectorStore(tmp_path, 4)


def test_an_unfinished_shard_does_not_count(tmp_path):
    filled(tmp_path, ["a", "b"])
    next(tmp_path.glob("*.npy")).unlink()
    assert len(VectorStore(tmp_path, 4)) == 0


def test_a_changed_byte_is_found_and_only_its_text_lost(tmp_path, caplog):
    store = filled(tmp_path, ["a", "b"])
    path = next(tmp_path.glob("*.vectors"))
    data = bytearray(path.read_bytes())
    data[3] ^= 1
    path.write_bytes(data)
    with caplog.at_level(logging.WARNING):
        assert store.get("a") is None
    assert "damaged at byte 0" in caplog.text
    assert store.get("b") is not None
    with store.writer() as writer:
        writer.add("a", encoded(0, rows=1))
    np.testing.assert_array_equal(store.get("a").vectors, encoded(0, rows=1).vectors)


def test_a_truncated_shard_is_left_out(tmp_path, caplog):
    filled(tmp_path, ["a", "b"])
    path = next(tmp_path.glob("*.vectors"))
    os.truncate(path, path.stat().st_size - 1)
    with caplog.at_level(logging.WARNING):
        assert len(VectorStore(tmp_path, 4)) == 0
    assert "not whole" in caplog.text


def test_an_index_that_is_no_index_is_left_out(tmp_path, caplog):
    filled(tmp_path, ["a"])
    next(tmp_path.glob("*.npy")).write_bytes(b"nothing")
    with caplog.at_level(logging.WARNING):
        assert len(VectorStore(tmp_path, 4)) == 0
    assert "not readable" in caplog.text


@pytest.mark.filterwarnings("ignore:Data type alias:DeprecationWarning")
def test_whichever_byte_of_an_index_changes_no_answer_is_wrong(tmp_path, caplog):
    caplog.set_level(logging.ERROR)
    texts = ["a", "b", "c"]
    filled(tmp_path, texts).close()
    path = next(tmp_path.glob("*.npy"))
    whole = path.read_bytes()
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        store = VectorStore(tmp_path, 4)
        for number, text in enumerate(texts):
            found, expected = store.get(text), encoded(number, rows=1 + number % 5, cut=number)
            if found is not None:
                np.testing.assert_array_equal(found.vectors, expected.vectors)
                np.testing.assert_array_equal(found.special, expected.special)
                assert found.cut == expected.cut, f"byte {place}"
        store.close()


def test_shards_whose_index_cannot_be_verified_are_made_anew(tmp_path):
    """Until 0.7 the checksums did not cover how many tokens were cut."""
    filled(tmp_path, ["a", "b"]).close()
    path = next(tmp_path.glob("*.npy"))
    index = np.load(path)
    older = index.dtype.descr
    np.save(path, index.astype([("check" if name == "sum" else name, kind) for name, kind in older]))
    store = VectorStore(tmp_path, 4)
    assert list(store.missing(["a", "b"])) == ["a", "b"]
    assert list(tmp_path.iterdir()) == [], "it would lie there for ever"


KILLED = """
import os, signal, sys
from pathlib import Path
import numpy as np
from comperdial.models.vectors import Encoded, VectorStore
store = VectorStore(Path(sys.argv[1]), 4)
with store.writer() as writer:
    writer.add("a", Encoded(np.zeros((3, 4), np.float32), np.zeros(3, bool), 0))
    if sys.argv[2] == "indexed":
        writer.commit()
        next(Path(sys.argv[1]).glob("*.vectors")).with_suffix(".tmp").write_bytes(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(("when", "left"), [("new", []), ("indexed", [".npy", ".vectors"])])
def test_what_a_killed_process_left_is_removed(tmp_path, when, left):
    subprocess.run([sys.executable, "-c", KILLED, tmp_path, when])
    assert len(list(tmp_path.iterdir())) == len(left) + 1
    store = VectorStore(tmp_path, 4)
    assert sorted(path.suffix for path in tmp_path.iterdir()) == left
    assert ("a" in store) == bool(left)


def test_what_another_is_writing_is_not_removed(tmp_path):
    store = VectorStore(tmp_path, 4)
    with store.writer() as writer:
        writer.add("a", encoded(1))
        VectorStore(tmp_path, 4).close()
    assert "a" in VectorStore(tmp_path, 4)


def test_a_shard_that_is_gone_is_encoded_anew(tmp_path, caplog):
    store = filled(tmp_path, ["a"])
    again = VectorStore(tmp_path, 4)
    next(tmp_path.glob("*.vectors")).unlink()
    assert again.get("a") is None
    assert "encoding anew" in caplog.text
    store.close()


def open_files():
    return len(list(Path("/dev/fd").iterdir()))


def test_single_additions_make_one_shard_and_few_open_files(tmp_path):
    before = open_files()
    store = VectorStore(tmp_path, 4)
    for number in range(2000):
        with store.writer() as writer:
            writer.add(f"text {number}", encoded(number, rows=2, cut=number))
        if number % 500 == 0:
            assert store.get(f"text {number}").cut == number
            assert f"text {number + 1}" not in store
    # The shard is written to and read from.
    assert open_files() - before <= 3
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".npy", ".vectors"]
    again = VectorStore(tmp_path, 4)
    assert len(again) == len(store) == 2000
    for number in (0, 1, 999, 1998, 1999):
        for one in (store, again):
            np.testing.assert_array_equal(one.get(f"text {number}").vectors, encoded(number, rows=2).vectors)
            assert one.get(f"text {number}").cut == number
    store.close()
    again.close()
    assert open_files() == before


def test_many_shards_are_read_with_few_open_files(tmp_path):
    for number in range(80):
        filled(tmp_path, [f"text {number}"]).close()
    assert len(list(tmp_path.glob("*.npy"))) == 80
    before = open_files()
    store = VectorStore(tmp_path, 4)
    for _ in range(2):
        for number in range(80):
            np.testing.assert_array_equal(store.get(f"text {number}").vectors, encoded(0, rows=1).vectors)
    assert open_files() - before <= 40


@pytest.mark.parametrize("together", [True, False])
def test_a_large_shard_is_followed_by_another(tmp_path, monkeypatch, together):
    # Each text has 3 rows of 17 bytes, so that a shard is full with its second.
    monkeypatch.setattr(vectors, "_SHARD_BYTES", 100)
    store = VectorStore(tmp_path, 4)
    texts = [f"text {number}" for number in range(7)]
    if together:
        with store.writer() as writer:
            for number, text in enumerate(texts):
                writer.add(text, encoded(number))
    else:
        for number, text in enumerate(texts):
            with store.writer() as writer:
                writer.add(text, encoded(number))
    assert sorted(path.stat().st_size for path in tmp_path.glob("*.vectors")) == [51, 102, 102, 102]
    assert len(list(tmp_path.glob("*.npy"))) == 4
    for one in (store, VectorStore(tmp_path, 4)):
        assert len(one) == 7
        for number, text in enumerate(texts):
            np.testing.assert_array_equal(one.get(text).vectors, encoded(number).vectors)


@pytest.mark.parametrize("limit", [1, 1 << 28])
def test_of_two_copies_the_newest_counts(tmp_path, monkeypatch, limit):
    monkeypatch.setattr(vectors, "_SHARD_BYTES", limit)
    store = VectorStore(tmp_path, 4)
    for seed in range(12):
        with store.writer() as writer:
            writer.add("a", encoded(seed))
        np.testing.assert_array_equal(store.get("a").vectors, encoded(seed).vectors)
    np.testing.assert_array_equal(VectorStore(tmp_path, 4).get("a").vectors, encoded(11).vectors)


def test_vectors_of_another_shape_are_refused(tmp_path):
    with pytest.raises(ValueError, match="expected"), VectorStore(tmp_path, 5).writer() as writer:
        writer.add("a", encoded(1, dimensions=4))


def test_keys_are_of_the_text_and_nothing_else():
    assert key("tea") == key("tea")
    assert len({key(text) for text in ("tea", "tea ", "Tea", "", "t\u00e9", "te\u0301")}) == 6
