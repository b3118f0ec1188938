"""Tiny random models for tests: a T5 as UniEval has it, and a folder laid out like BLEURT's PyTorch weights."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np

_TEXT = """
question: response: dialogue history: fact: Is this a an natural coherent engaging and informative response in the
dialogue given according to history fact? fact consistent with knowledge understandable dialogue? history? Yes No
i like tea . ! ? do you cats are nice hello there so much my name is tom
"""
WORDS = list(dict.fromkeys(_TEXT.split()))
BLEURT_SIZES = {
    "vocab_size": 120,
    "embedding_size": 12,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "hidden_act": "gelu",
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
}


def write_t5(folder: Path, seed: int = 0) -> Path:
    """Write a T5 v1.1 of two layers with a tokenizer of the words above, single characters and ``</s>``."""
    import torch
    from safetensors.numpy import load_file, save_file
    from transformers import T5Config, T5ForConditionalGeneration, T5Tokenizer

    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", -20.0), ("▁", -4.0)]
    pieces += [(f"▁{word}", -3.0) for word in WORDS]
    pieces += [(character, -8.0) for character in "abcdefghijklmnopqrstuvwxyz:?.,'!_"]
    T5Tokenizer(vocab=pieces, extra_ids=0).save_pretrained(folder)
    torch.manual_seed(seed)
    config = T5Config(
        vocab_size=len(pieces), d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, dropout_rate=0.1,
        feed_forward_proj="gated-gelu", tie_word_embeddings=False, decoder_start_token_id=0, pad_token_id=0,
        eos_token_id=1,
    )  # fmt: skip
    T5ForConditionalGeneration(config).save_pretrained(folder)
    # transformers 5 always makes one of the two tables of words; UniEval's files hold two, and its config.json says so.
    written = json.loads((folder / "config.json").read_text())
    del written["scale_decoder_outputs"]
    (folder / "config.json").write_text(json.dumps(written | {"tie_word_embeddings": False}))
    weights = load_file(folder / "model.safetensors")
    shape = weights["shared.weight"].shape
    # Small, so that its answers are between yes and no, and not at the ends where nothing moves them.
    weights["lm_head.weight"] = np.random.default_rng(seed).normal(0, 0.2, shape).astype(np.float32)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def bleurt_weights(seed: int = 0, **sizes: int | None) -> dict[str, np.ndarray]:
    """Return random weights under the names of ``lucadiliello/BLEURT-20``."""
    size = BLEURT_SIZES | sizes
    hidden, inner, narrow = size["hidden_size"], size["intermediate_size"], size["embedding_size"]
    width = narrow or hidden
    shapes: dict[str, tuple[int, ...]] = {}

    def linear(name: str, out: int, into: int) -> None:
        shapes[f"{name}.weight"], shapes[f"{name}.bias"] = (out, into), (out,)

    def norm(name: str, over: int) -> None:
        shapes[f"{name}.weight"], shapes[f"{name}.bias"] = (over,), (over,)

    shapes["bleurt.embeddings.word_embeddings.weight"] = (size["vocab_size"], width)
    shapes["bleurt.embeddings.position_embeddings.weight"] = (size["max_position_embeddings"], width)
    shapes["bleurt.embeddings.token_type_embeddings.weight"] = (size["type_vocab_size"], width)
    norm("bleurt.embeddings.LayerNorm", width)
    if narrow:
        linear("bleurt.encoder.embedding_projection", hidden, narrow)
    for layer in range(size["num_hidden_layers"]):
        name = f"bleurt.encoder.layer.{layer}"
        for part in ("query", "key", "value"):
            linear(f"{name}.attention.self.{part}", hidden, hidden)
        linear(f"{name}.attention.output.dense", hidden, hidden)
        norm(f"{name}.attention.output.LayerNorm", hidden)
        linear(f"{name}.intermediate.dense", inner, hidden)
        linear(f"{name}.output.dense", hidden, inner)
        norm(f"{name}.output.LayerNorm", hidden)
    linear("bleurt.pooler.dense", hidden, hidden)
    linear("classifier", 1, hidden)
    random = np.random.default_rng(seed)
    return {
        name: (random.normal(0, 0.4, shape) + (1 if name.endswith("LayerNorm.weight") else 0)).astype(np.float32)
        for name, shape in shapes.items()
    }


def write_bleurt(folder: Path, weights: dict[str, np.ndarray] | None = None, **sizes: int | None) -> Path:
    """Write a folder like BLEURT's; its tokenizer takes words at white space."""
    from safetensors.numpy import save_file
    from tokenizers import Tokenizer, models, pre_tokenizers

    folder.mkdir(parents=True, exist_ok=True)
    config = {"model_type": "bleurt", "pad_token_id": 0, **BLEURT_SIZES, **sizes}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    save_file(bleurt_weights(**sizes) if weights is None else weights, folder / "model.safetensors")
    vocabulary = {word: n for n, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def write_sentencepiece(path: Path) -> list[str]:
    """Write a SentencePiece unigram model in its protobuf form; return its pieces in the order of their numbers."""

    def field(number: int, content: bytes) -> bytes:
        return bytes([number << 3 | 2]) + _varint(len(content)) + content

    def number_field(number: int, value: int) -> bytes:
        return _varint(number << 3) + _varint(value)

    unknown, control, normal = 2, 3, 1
    kinds = {"<unk>": unknown, "[CLS]": control, "[SEP]": control}
    pieces = [*kinds, "▁", *(f"▁{word}" for word in WORDS)]
    model = b"".join(
        field(
            1, field(1, piece.encode()) + b"\x15" + struct.pack("<f", -1.0) + number_field(3, kinds.get(piece, normal))
        )
        for piece in pieces
    )
    unigram, no_number = 1, 2**64 - 1
    model += field(2, number_field(3, unigram) + number_field(40, 0) + number_field(41, no_number)
                   + number_field(42, no_number) + number_field(43, no_number))  # fmt: skip
    model += field(3, field(1, b"identity") + number_field(3, 1) + number_field(4, 1) + number_field(5, 1))
    path.write_bytes(model)
    return pieces


def _varint(value: int) -> bytes:
    out = bytearray()
    while True:
        value, low = value >> 7, value & 0x7F
        out.append(low | (0x80 if value else 0))
        if not value:
            return bytes(out)
