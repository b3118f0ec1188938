"""Vectors: a text's own, to the last bit, in any company, order and number of threads; and the cache that keeps them."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tinymodels
from comperdial.core.errors import FileError
from comperdial.models import find, runtime
from comperdial.models.encoder import Encoder, Vectors
from comperdial.models.vectors import Encoded, VectorStore

MINILM = "all-MiniLM-L6-v2"
# Of many lengths: 3 to 40 tokens, more than one of most, and one that is cut.
WORDS = ["i", "read", "a", "book", "about", "the", "sea", "and", "like", "green", "tea"]
TEXTS = [
    " ".join(WORDS[(start + place) % len(WORDS)] for place in range(1 + (7 * start) % 38)) for start in range(90)
] + ["the sea ! " * 300]


@pytest.fixture(scope="module")
def encoders(tmp_path_factory):
    """Four heads: attention computes them alike for all texts of a batch."""
    folder = Path(tinymodels.bert(tmp_path_factory.mktemp("models") / "bert"))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"num_attention_heads": 4}))
    return {
        "minilm": Encoder(MINILM, max_length=64),
        "bf16": Encoder(MINILM, max_length=64, dtype="bf16"),
        "tiny": Encoder(str(folder), 2, max_length=64, pooler=True),
    }


@pytest.fixture(autouse=True)
def cpu(monkeypatch):
    monkeypatch.setenv(runtime.DEVICE_VARIABLE, "cpu")
    monkeypatch.delenv(runtime.TOKENS_VARIABLE, raising=False)
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def encode(encoder, root, texts):
    vectors = Vectors(encoder, root)
    vectors.add(texts)
    return {text: vectors[text] for text in texts}


def assert_same(one, other):
    for text in other:
        np.testing.assert_array_equal(one[text].vectors, other[text].vectors)
        np.testing.assert_array_equal(one[text].special, other[text].special)
        assert one[text].cut == other[text].cut


@pytest.mark.parametrize("name", ["minilm", "bf16", "tiny"])
def test_a_text_s_vectors_are_the_same_in_any_company(encoders, tmp_path, name):
    encoder = encoders[name]
    together = encode(encoder, tmp_path / "together", TEXTS)
    alone = Vectors(encoder)
    assert_same(together, {text: alone[text] for text in TEXTS[::9] + TEXTS[-1:]})
    shuffled = [TEXTS[place] for place in np.random.default_rng(1).permutation(len(TEXTS))]
    # What the cache has already is missing from the batches.
    half = Vectors(encoder, tmp_path / "half")
    assert [half.add(texts) for texts in (shuffled[:40] * 2, TEXTS, TEXTS)] == [40, len(TEXTS) - 40, 0]
    assert_same(together, {text: half[text] for text in TEXTS})


@pytest.mark.parametrize("name", ["minilm", "tiny"])
@pytest.mark.parametrize("threads", [1, 3])
def test_threads_change_nothing_and_stay_as_they_were(encoders, name, threads):
    torch.set_num_threads(threads)
    found = encode(encoders[name], None, TEXTS)
    later = []
    thread = threading.Thread(target=lambda: later.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert [torch.get_num_threads(), *later] == [threads, threads]
    torch.set_num_threads(2)
    assert_same(found, encode(encoders[name], None, TEXTS))


@pytest.mark.parametrize("name", ["minilm", "tiny"])
def test_vectors_are_the_model_s_own(encoders, name):
    """Against transformers, one text at a time."""
    encoder = encoders[name]
    network, tokenizer = runtime.load(find(encoder.model)), runtime.load_tokenizer(find(encoder.model))
    found = encode(encoder, None, TEXTS)
    for text in TEXTS:
        with torch.inference_mode():
            expected = network(**tokenizer(text, truncation=True, max_length=64, return_tensors="pt"))
        rows = expected.last_hidden_state[0].numpy()
        if encoder.pooler:
            rows = np.vstack([rows, expected.pooler_output.numpy()])
        np.testing.assert_allclose(found[text].vectors, rows, atol=1e-5)
    assert [found[text].cut > 0 for text in TEXTS] == [False] * (len(TEXTS) - 1) + [True]


def test_published_vectors():
    """Of the version that made the published scores, on an Intel Xeon; another processor rounds differently."""
    found = Vectors(Encoder(MINILM, 6))["I love green tea , do you ?"]
    assert found.vectors.shape == (10, 384) and found.special.tolist() == [True, *[False] * 8, True]
    np.testing.assert_allclose(found.vectors[[0, 4, 9], :2], GOLDEN, atol=1e-5)


GOLDEN = [[-0.2625990, 0.0620823], [-0.2698928, -0.5493827], [-0.2458093, 0.0583327]]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_ends_all_threads_and_what_was_encoded_is_kept(tmp_path, monkeypatch, error):
    encoder, forward = Encoder(MINILM, max_length=64), Vectors._forward

    def failing(self, batch):
        assert torch.get_num_threads() == 1
        if len(batch[0].ids) < 8:
            raise error("here")
        return forward(self, batch)

    before, vectors = torch.get_num_threads(), Vectors(encoder, tmp_path)
    with monkeypatch.context() as patch, pytest.raises(error, match="here"):
        patch.setattr(Vectors, "_forward", failing)
        vectors.add(TEXTS)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("batches")]
    assert torch.get_num_threads() == before
    assert 0 < vectors.add(TEXTS) < len(set(TEXTS))


# --- the cache


def encoded(seed, rows=3):
    numbers = np.random.default_rng(seed).normal(size=(rows, 4)).astype(np.float32)
    return Encoded(numbers, np.array([True] + [False] * (rows - 1)), seed)


def filled(path, texts):
    store = VectorStore(path, 4)
    store.put((text, encoded(number, rows=1 + number % 5)) for number, text in enumerate(texts))
    return store


def assert_holds(store, texts):
    for number, text in enumerate(texts):
        found, expected = store.get(text), encoded(number, rows=1 + number % 5)
        assert found.vectors.tobytes() == expected.vectors.tobytes()
        assert found.special.tolist() == expected.special.tolist()
        assert found.cut == number


@settings(max_examples=25, deadline=None)
@given(texts=st.lists(st.text(st.characters(), max_size=20), unique=True, max_size=30))
def test_what_goes_in_comes_out(texts, tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "encoder.sqlite"
    filled(path, texts)
    new = [f"not there {'x' * 20} {number}" for number in range(600)]
    for store in (VectorStore(path, 4), filled(None, texts)):
        assert_holds(store, texts)
        assert store.get(new[0]) is None
        assert store.missing([*texts, *new, *texts, *new]) == new
    store.put([("a", encoded(1)), ("a", encoded(2))])
    assert store.get("a").cut == 2


def test_texts_that_differ_at_all_are_different_texts(tmp_path):
    texts = ["tea", "tea ", "Tea", "", "t\u00e9", "te\u0301", "\ud800"]
    filled(tmp_path / "a.sqlite", texts)
    assert_holds(VectorStore(tmp_path / "a.sqlite", 4), texts)


WRITES = """
import sys
from pathlib import Path
import numpy as np
from comperdial.models.vectors import Encoded, VectorStore
store = VectorStore(Path(sys.argv[1]), 4)
for number in range(100):
    for name in ("all", sys.argv[2]):
        store.put([(f"{name} {number}", Encoded(np.full((3, 4), number, np.float32), np.zeros(3, bool), number))])
"""


def test_several_processes_write_at_once(tmp_path):
    path = tmp_path / "encoder.sqlite"
    started = [subprocess.Popen([sys.executable, "-c", WRITES, path, name]) for name in "xyz"]
    assert [process.wait() for process in started] == [0, 0, 0]
    store = VectorStore(path, 4)
    assert all((store.get(f"{name} {n}").vectors == n).all() for name in ("all", *"xyz") for n in range(100))


KILLED = """
import os, signal, sys
import numpy as np
from pathlib import Path
from comperdial.models.vectors import Encoded, VectorStore
def rows():
    # More than SQLite keeps in memory.
    yield from ((f"{n}", Encoded(np.zeros((4000, 4), np.float32), np.zeros(4000, bool), 0)) for n in range(2000))
store = VectorStore(Path(sys.argv[1]), 4)
store._connection.set_progress_handler(lambda: os.kill(os.getpid(), signal.SIGKILL), 20_000)
store.put(rows())
"""


def test_what_a_killed_process_was_writing_is_undone(tmp_path):
    path = tmp_path / "encoder.sqlite"
    filled(path, ["a", "b"])
    assert subprocess.run([sys.executable, "-c", KILLED, path]).returncode == -signal.SIGKILL
    assert path.with_name("encoder.sqlite-journal").stat().st_size
    store = VectorStore(path, 4)
    assert_holds(store, ["a", "b"])
    assert store.missing(["a", "b", "0", "1999"]) == ["0", "1999"]


def test_damage_costs_the_cache_and_no_vector_is_wrong(tmp_path):
    path = tmp_path / f"{Encoder(MINILM, max_length=64).namespace()}.sqlite"
    right = encode(Encoder(MINILM, max_length=64), tmp_path, TEXTS[:5])
    whole = path.read_bytes()
    for content in (b"nothing " * 99, whole[: len(whole) // 2], bytes(byte ^ 1 for byte in whole)):
        path.write_bytes(content)
        with pytest.raises(FileError, match="It is a cache: delete the file"):
            encode(Encoder(MINILM, max_length=64), tmp_path, TEXTS[:5])
    path.unlink()
    assert_same(encode(Encoder(MINILM, max_length=64), tmp_path, TEXTS[:5]), right)
    if os.getuid():
        path.chmod(0o400)
        with pytest.raises(FileError, match="readonly"):
            encode(Encoder(MINILM, max_length=64), tmp_path, ["new"])
