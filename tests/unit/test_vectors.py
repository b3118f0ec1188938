"""The store of token vectors: content-addressed, whole or not at all, damage found."""

import logging
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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


def test_vectors_of_another_shape_are_refused(tmp_path):
    with pytest.raises(ValueError, match="expected"), VectorStore(tmp_path, 5).writer() as writer:
        writer.add("a", encoded(1, dimensions=4))


def test_keys_are_of_the_text_and_nothing_else():
    assert key("tea") == key("tea")
    assert len({key(text) for text in ("tea", "tea ", "Tea", "", "t\u00e9", "te\u0301")}) == 6
