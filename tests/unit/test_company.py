"""A text's vectors are its own: to the last bit the same in any company, order, number of threads, and process."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

import tinymodels
from comperdial.metrics._embedding import cosines
from comperdial.models import runtime
from comperdial.models.encoder import Encoder, Vectors

MINILM = "all-MiniLM-L6-v2"
# Of many lengths: 3 to 40 tokens, more than one of most, and one that is cut.
WORDS = ["i", "read", "a", "book", "about", "the", "sea", "and", "like", "green", "tea"]
TEXTS = [
    " ".join(WORDS[(start + place) % len(WORDS)] for place in range(1 + (7 * start) % 38)) for start in range(90)
] + ["the sea ! " * 300]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """Four heads: attention computes them alike for all texts of a batch."""
    folder = Path(tinymodels.bert(tmp_path_factory.mktemp("models") / "bert"))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"num_attention_heads": 4}))
    return str(folder)


@pytest.fixture(autouse=True)
def cpu(monkeypatch):
    monkeypatch.setenv(runtime.DEVICE_VARIABLE, "cpu")
    monkeypatch.delenv(runtime.TOKENS_VARIABLE, raising=False)
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def encode(encoder, root, texts, *, at_once=True):
    vectors = Vectors(encoder, root)
    for part in [texts] if at_once else [[text] for text in texts]:
        vectors.add(part)
    return {text: vectors[text] for text in texts}


def assert_same(one, other):
    for text in other:
        np.testing.assert_array_equal(one[text].vectors, other[text].vectors)
        np.testing.assert_array_equal(one[text].special, other[text].special)
        assert one[text].cut == other[text].cut


def encoders(folder):
    return {
        "minilm": Encoder(MINILM, max_length=64),
        "bf16": Encoder(MINILM, max_length=64, dtype="bf16"),
        "tiny": Encoder(folder, 2, max_length=64, pooler=True),
    }


@pytest.mark.parametrize("name", ["minilm", "bf16", "tiny"])
def test_a_texts_vectors_are_the_same_in_any_company(tiny, tmp_path, name):
    encoder = encoders(tiny)[name]
    together = encode(encoder, tmp_path / "together", TEXTS)
    some = TEXTS[::9] + TEXTS[-1:]
    assert_same(together, encode(encoder, tmp_path / "alone", some, at_once=False))
    order = np.random.default_rng(1).permutation(len(TEXTS))
    shuffled = [TEXTS[place] for place in order]
    assert_same(together, encode(encoder, tmp_path / "shuffled", shuffled))
    # What the store holds already is missing from the batches.
    half = Vectors(encoder, tmp_path / "half")
    half.add(shuffled[:40])
    half.add(TEXTS)
    assert_same(together, {text: half[text] for text in TEXTS})
    # Without a store: what was just made and not read back.
    new = Vectors(encoder, tmp_path / "new")
    for text in some[:3]:
        assert_same({text: new[text]}, {text: together[text]})


@pytest.mark.parametrize("name", ["minilm", "tiny"])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_change_nothing_and_stay_as_they_were(tiny, tmp_path, name, threads):
    encoder = encoders(tiny)[name]
    torch.set_num_threads(threads)
    found = encode(encoder, tmp_path / "some", TEXTS)
    later = []
    thread = threading.Thread(target=lambda: later.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert [torch.get_num_threads(), *later] == [threads, threads]
    torch.set_num_threads(4)
    assert_same(found, encode(encoder, tmp_path / "four", TEXTS))


PROGRAM = """
import json, sys
from comperdial.models.encoder import Encoder, Vectors
from pathlib import Path
Vectors(Encoder(sys.argv[1], max_length=64), Path(sys.argv[2])).add(json.load(sys.stdin))
"""


@pytest.mark.ci
def test_two_processes_with_one_and_two_threads_make_the_same(tmp_path, monkeypatch):
    parts = {"1": TEXTS[:60], "2": TEXTS[30:]}
    stores = {}
    for threads, texts in parts.items():
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        command = [sys.executable, "-c", PROGRAM, MINILM, str(tmp_path / threads)]
        subprocess.run(command, input=json.dumps(texts), text=True, check=True, capture_output=True)
        stores[threads] = Vectors(Encoder(MINILM, max_length=64), tmp_path / threads)
    whole = encode(Encoder(MINILM, max_length=64), tmp_path / "whole", TEXTS)
    for threads, texts in parts.items():
        monkeypatch.setattr(Vectors, "_encode", None)
        assert_same(whole, {text: stores[threads][text] for text in texts})


@pytest.mark.parametrize("name", ["minilm", "tiny"])
def test_vectors_are_the_models_own(tiny, tmp_path, name):
    """Against transformers, one text at a time, as it comes."""
    from comperdial.models import find

    encoder = encoders(tiny)[name]
    network = runtime.load(find(encoder.model))
    tokenizer = runtime.load_tokenizer(find(encoder.model))
    found = encode(encoder, tmp_path, TEXTS)
    for text in TEXTS:
        tokens = tokenizer(text, truncation=True, max_length=64, return_tensors="pt")
        with torch.inference_mode():
            expected = network(**tokens)
        rows = expected.last_hidden_state[0].numpy()
        if encoder.pooler:
            rows = np.vstack([rows, expected.pooler_output.numpy()])
        np.testing.assert_allclose(found[text].vectors, rows, atol=1e-5)
    assert [found[text].cut > 0 for text in TEXTS] == [False] * (len(TEXTS) - 1) + [True]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_comes_through_and_no_thread_is_left(tmp_path, monkeypatch, error):
    def failing(self, group, tokens):
        assert torch.get_num_threads() == 1
        raise error("here")

    monkeypatch.setattr(Vectors, "_forward", failing)
    before = torch.get_num_threads()
    with pytest.raises(error, match="here"):
        Vectors(Encoder(MINILM, max_length=64), tmp_path).add(TEXTS)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("batches")]
    assert torch.get_num_threads() == before


def test_what_was_encoded_before_an_error_is_kept(tmp_path, monkeypatch):
    encoder, forward = Encoder(MINILM, max_length=64), Vectors._forward

    def failing(self, group, tokens):
        if len(group[0].ids) < 8:
            raise torch.OutOfMemoryError("no more")
        return forward(self, group, tokens)

    vectors = Vectors(encoder, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Vectors, "_forward", failing)
        with pytest.raises(torch.OutOfMemoryError):
            vectors.add(TEXTS)
    assert 0 < len(vectors.store) < len(set(TEXTS))
    vectors.add(TEXTS)
    assert len(vectors.store) == len(set(TEXTS))


def test_cosines_do_not_depend_on_the_threads_of_blas(monkeypatch):
    program = (
        "import hashlib, numpy; from comperdial.metrics._embedding import cosines\n"
        "draw, found = numpy.random.default_rng(0), hashlib.sha256()\n"
        "for _ in range(100):\n"
        "    one, other = (draw.normal(size=(draw.integers(2, 120), 384)).astype('f4') for _ in range(2))\n"
        "    found.update(cosines(one, other).tobytes())\n"
        "print(found.hexdigest())"
    )
    said = set()
    for threads in "12":
        for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            monkeypatch.setenv(variable, threads)
        said.add(subprocess.run([sys.executable, "-c", program], check=True, capture_output=True).stdout)
    assert len(said) == 1


def test_cosines_are_those_of_a_plain_computation():
    one, other = np.random.default_rng(0).normal(size=(2, 7, 5)).astype(np.float32)
    other[3] = 0
    expected = [
        [float(v @ w) / (np.linalg.norm(v) * np.linalg.norm(w)) if w.any() else 0.0 for w in other.astype(float)]
        for v in one.astype(float)
    ]
    np.testing.assert_allclose(cosines(one, other), expected, atol=1e-6)
