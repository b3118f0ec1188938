"""Vectors: bit-identical for any batch, order and number of threads; and their cache."""

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

import tinymodels
from comperdial.core import versions
from comperdial.core.errors import FileError
from comperdial.models import find, runtime
from comperdial.models.encoder import Encoder, Vectors
from comperdial.models.vectors import Encoded, VectorStore

MINILM = "all-MiniLM-L6-v2"
# Of many lengths: 3 to 40 tokens, more than one of most, and one that is cut.
WORDS = ["i", "read", "a", "book", "about", "the", "sea", "and", "like", "green", "tea"]
TEXTS = [" ".join(WORDS[(n + place) % len(WORDS)] for place in range(1 + (7 * n) % 38)) for n in range(90)]
TEXTS.append("the sea ! " * 300)


@pytest.fixture(scope="module")
def encoders(tmp_path_factory):
    """Four heads: attention computes them alike for all texts of a batch."""
    folder = Path(tinymodels.bert(tmp_path_factory.mktemp("models") / "bert"))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"num_attention_heads": 4}))
    return {
        "minilm": Encoder(MINILM, max_length=64),
        "bf16": Encoder(str(folder), 2, max_length=64, dtype="bf16"),
        "tiny": Encoder(str(folder), 2, max_length=64, pooler=True),
    }


@pytest.fixture(autouse=True)
def threads(monkeypatch):
    monkeypatch.setenv(runtime.DEVICE_VARIABLE, "cpu")
    monkeypatch.delenv(runtime.TOKENS_VARIABLE, raising=False)
    before = torch.get_num_threads()
    yield torch.set_num_threads
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
def test_vectors_do_not_depend_on_other_texts(encoders, tmp_path, name, threads):
    """Bit-identical for any other texts, order, cache and number of threads."""
    encoder, texts = encoders[name], TEXTS[::18] if name == "minilm" else TEXTS
    threads(1)
    together = encode(encoder, tmp_path / "together", texts)
    alone = Vectors(encoder)
    assert_same(together, {text: alone[text] for text in texts[::3] + texts[-1:]})
    threads(3)
    shuffled = [texts[place] for place in np.random.default_rng(1).permutation(len(texts))]
    half = Vectors(encoder, tmp_path / "half")
    assert [half.add(some) for some in (shuffled[:5] * 2, texts, texts)] == [5, len(texts) - 5, 0]
    assert torch.get_num_threads() == 3
    assert_same(together, {text: half[text] for text in texts})
    model = find(encoder.model)
    network, tokenizer = runtime.load(model), runtime.load_tokenizer(model)
    for text in texts:
        with torch.inference_mode():
            expected = network(**tokenizer(text, truncation=True, max_length=64, return_tensors="pt"))
        rows = expected.last_hidden_state[0].numpy()
        rows = np.vstack([rows, expected.pooler_output.numpy()]) if encoder.pooler else rows
        np.testing.assert_allclose(together[text].vectors, rows, atol=0.2 if name == "bf16" else 1e-5)
        assert together[text].cut == len(tokenizer(text)["input_ids"]) - len(rows) + encoder.pooler


def test_published_vectors():
    """Of the version that made the published scores, on an Intel Xeon; another processor rounds differently."""
    encoded = Vectors(Encoder(MINILM, 6))["I love green tea , do you ?"]
    assert encoded.special.tolist() == [True, *[False] * 8, True]
    golden = [[-0.2625990, 0.0620823], [-0.2698928, -0.5493827], [-0.2458093, 0.0583327]]
    np.testing.assert_allclose(encoded.vectors[[0, 4, 9], :2], golden, atol=1e-5)


def test_each_encoder_has_its_own_vectors(encoders, monkeypatch):
    tiny = encoders["tiny"].model
    base = Encoder(tiny, 2, "fp32", 64)
    assert base.namespace() == Encoder(tiny, -1, "fp32", 64).namespace()
    changes = ({"layer": 1}, {"dtype": "bf16"}, {"max_length": 32}, {"pooler": True}, {"keep": "end"})
    others = [Encoder(**{"model": tiny, "layer": 2, "max_length": 64} | change) for change in changes]
    assert len({encoder.namespace() for encoder in [base, *others]}) == 6
    installed, before = versions.installed, base.namespace()
    for package, same in (("torch", False), ("transformers", False), ("numpy", True)):
        monkeypatch.setattr(versions, "installed", lambda name, p=package: "99.0" if name == p else installed(name))
        assert (base.namespace() == before) is same


def test_error_ends_all_threads_and_keeps_encoded_texts(encoders, tmp_path, monkeypatch):
    forward = Vectors._forward

    def failing(self, batch):
        if len(batch[0].ids) < 8:
            raise KeyboardInterrupt
        return forward(self, batch)

    before, vectors = torch.get_num_threads(), Vectors(encoders["tiny"], tmp_path)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Vectors, "_forward", failing)
        vectors.add(TEXTS)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("batches")]
    assert torch.get_num_threads() == before
    assert 0 < vectors.add(TEXTS) < len(TEXTS)


def encoded(seed):
    rows = 1 + seed % 5
    numbers = np.random.default_rng(seed).normal(size=(rows, 4)).astype(np.float32)
    return Encoded(numbers, np.array([True] + [False] * (rows - 1)), seed)


@pytest.mark.parametrize("kept", ["on disk", "in memory"])
def test_cache_returns_stored_vectors(tmp_path, kept):
    path = tmp_path / "encoder.sqlite" if kept == "on disk" else None
    # Texts that differ at all are different texts.
    texts = ["tea", "tea ", "Tea", "", "t\u00e9", "te\u0301", "\ud800", "\0", "'\"", "茶" * 99]
    new = [f"not there {number}" for number in range(600)]
    store = VectorStore(path, 4)
    store.put((text, encoded(number)) for number, text in enumerate(texts))
    for again in (store, VectorStore(path, 4)) if path else (store,):
        for number, text in enumerate(texts):
            one, expected = again.get(text), encoded(number)
            assert one.vectors.tobytes() == expected.vectors.tobytes()
            assert (one.special.tolist(), one.cut) == (expected.special.tolist(), number)
        assert again.get(new[0]) is None
        assert again.missing([*texts, *new, *texts, *new]) == new


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


def test_a_damaged_cache_is_an_error_and_no_vector_is_wrong(encoders, tmp_path):
    path = tmp_path / f"{encoders['tiny'].namespace()}.sqlite"
    right = encode(encoders["tiny"], tmp_path, TEXTS[:5])
    whole = path.read_bytes()
    for content in (b"nothing " * 99, whole[: len(whole) // 2], bytes(byte ^ 1 for byte in whole)):
        path.write_bytes(content)
        with pytest.raises(FileError, match="It is a cache: delete the file"):
            encode(encoders["tiny"], tmp_path, TEXTS[:5])
    path.unlink()
    assert_same(encode(encoders["tiny"], tmp_path, TEXTS[:5]), right)


def test_killed_process_leaves_no_files(tmp_path):
    path = tmp_path / "encoder.sqlite"
    VectorStore(path, 4).put([("kept", encoded(1))])
    assert subprocess.run([sys.executable, "-c", KILLED, path], check=False).returncode == -signal.SIGKILL
    assert path.with_name("encoder.sqlite-journal").stat().st_size
    assert VectorStore(path, 4).missing(["kept", "0", "1999"]) == ["0", "1999"]
