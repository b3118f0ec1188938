"""Turn a language model's GGUF file, as llama.cpp runs it, into a folder that transformers loads.

transformers reads GGUF by itself, but leaves out part of the tokenizer (the step that takes digits apart) and refuses to
write what it read. Weights are dequantised by the ``gguf`` package, to 32 bits: nothing is lost beyond what the file's own
quantisation lost.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from comperdial.core.errors import FileError, MissingResourceError
from comperdial.core.files import replacing, write_json

_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_OUTSIDE = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
# Of a token's kinds: one that text never has.
_CONTROL = 3


def convert_gguf(file: str | Path, folder: str | Path) -> None:
    """Write configuration, tokenizer and weights (safetensors, 32 bits) of a Llama with GPT-2's kind of tokenizer.

    Raises
    ------
    MissingResourceError
        When the package ``gguf`` is not installed.
    FileError
        When the file is not GGUF, or of another architecture or tokenizer.
    """
    try:
        import gguf
    except ImportError as error:
        raise MissingResourceError("not installed: gguf", expected="pip install 'comperdial[neural]'") from error
    import numpy as np
    from safetensors.numpy import save_file

    file, folder = Path(file), Path(folder)
    try:
        reader = gguf.GGUFReader(file)
    except (OSError, ValueError) as error:
        raise FileError(f"not a GGUF file ({error})", where=str(file), expected="a whole GGUF file") from error
    known = {name: field.contents() for name, field in reader.fields.items()}
    _check(known, file)
    heads, few = known["llama.attention.head_count"], known["llama.attention.head_count_kv"]
    weights = {}
    for tensor in reader.tensors:
        name = _name(tensor.name, file)
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        if (part := name.rpartition(".weight")[0]).endswith(("q_proj", "k_proj")):
            # llama.cpp has the two halves of each head's rotation side by side.
            count = heads if part.endswith("q_proj") else few
            size = values.shape[0] // count // 2
            values = values.reshape(count, size, 2, -1).swapaxes(1, 2).reshape(values.shape)
        weights[name] = np.ascontiguousarray(values)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", _config(known, tied="lm_head.weight" not in weights))
    _write_tokenizer(known, folder)
    with replacing(folder / "model.safetensors") as temporary:
        save_file(weights, temporary, metadata={"format": "pt"})


def _check(known: Mapping[str, Any], file: Path) -> None:
    for name, wanted in (
        ("general.architecture", "llama"),
        ("tokenizer.ggml.model", "gpt2"),
        ("tokenizer.ggml.pre", "smollm"),
    ):
        if known.get(name) != wanted:
            raise FileError(f"{name} is {known.get(name)!r}", where=str(file), expected=repr(wanted))


def _name(name: str, file: Path) -> str:
    if name in _OUTSIDE:
        return _OUTSIDE[name]
    found = re.fullmatch(r"blk\.(\d+)\.(\w+)\.weight", name)
    if not found or found[2] not in _LAYER:
        raise FileError(f"tensor {name!r}", where=str(file), expected="those of a Llama")
    return f"model.layers.{found[1]}.{_LAYER[found[2]]}.weight"


def _config(known: Mapping[str, Any], *, tied: bool) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": known["llama.embedding_length"],
        "intermediate_size": known["llama.feed_forward_length"],
        "num_hidden_layers": known["llama.block_count"],
        "num_attention_heads": known["llama.attention.head_count"],
        "num_key_value_heads": known["llama.attention.head_count_kv"],
        "max_position_embeddings": known["llama.context_length"],
        "rms_norm_eps": round(known["llama.attention.layer_norm_rms_epsilon"], 9),
        "rope_theta": known["llama.rope.freq_base"],
        "vocab_size": known["llama.vocab_size"],
        "hidden_act": "silu",
        "tie_word_embeddings": tied,
        "bos_token_id": known["tokenizer.ggml.bos_token_id"],
        "eos_token_id": known["tokenizer.ggml.eos_token_id"],
        "pad_token_id": known["tokenizer.ggml.padding_token_id"],
        "torch_dtype": "float32",
    }


def _write_tokenizer(known: Mapping[str, Any], folder: Path) -> None:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    tokens = known["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ", 1)) for merge in known["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE(vocab={token: place for place, token in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    kinds = known["tokenizer.ggml.token_type"]
    special = [token for token, kind in zip(tokens, kinds, strict=True) if kind == _CONTROL]
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in special])
    with replacing(folder / "tokenizer.json") as temporary:
        tokenizer.save(str(temporary))
    end = tokens[known["tokenizer.ggml.eos_token_id"]]
    content = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": end,
        "pad_token": end,
        "model_max_length": known["llama.context_length"],
        "clean_up_tokenization_spaces": False,
        "chat_template": known["tokenizer.chat_template"],
    }
    write_json(folder / "tokenizer_config.json", content)
