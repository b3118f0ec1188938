"""Files whose checksum nobody has seen: recorded at the first download, held to at every later one."""

import dataclasses
import hashlib
import io
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest
import yaml

from comperdial import locking, sources
from comperdial.catalogue import load_catalogue, lock_path, read_lock
from comperdial.cli import main
from comperdial.errors import ConfigError, SourceError

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CONTENT = {"one.json": b'["one"]\n', "two.json": b'["two"]\n' * 1000}


class Hub(BaseHTTPRequestHandler):
    """A hub in miniature: /<owner>/<name>/resolve/<revision>/<file>, with the commit in a header."""

    requested: ClassVar[list[str]] = []
    fail = 0
    name_commit = True
    name_size = True
    cut = False

    def do_GET(self):
        Hub.requested.append(self.path)
        revision, file = self.path.split("/")[-2:]
        if Hub.fail:
            Hub.fail -= 1
            return self._answer(503, b"")
        if file not in CONTENT or revision not in ("main", COMMIT):
            return self._answer(404, b"")
        return self._answer(200, CONTENT[file])

    def _answer(self, status, body):
        self.send_response(status)
        if Hub.name_size:
            self.send_header("Content-Length", str(len(body)))
        if Hub.name_commit:
            self.send_header("X-Repo-Commit", COMMIT)
        self.end_headers()
        self.wfile.write(body[:-3] if Hub.cut and body else body)

    def log_message(self, *_):
        pass


@pytest.fixture
def hub():
    Hub.requested, Hub.fail, Hub.name_commit, Hub.name_size, Hub.cut = [], 0, True, True, False
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/owner/name/resolve"
    server.shutdown()
    server.server_close()


@pytest.fixture
def catalogue(tmp_path, monkeypatch):
    """Write a catalogue of two files known by a revision only."""
    monkeypatch.delenv(sources.MIRROR_VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    files = {
        name: {
            "repository": "owner/name",
            "revision": "main",
            "path": f"{name}.json",
            "url": f"https://example.org/resolve/{{revision}}/{name}.json",
            "licence": "CC0",
            "citation": "Somebody",
        }
        for name in ("one", "two")
    }
    path = tmp_path / "data/sources.yaml"
    path.parent.mkdir()
    path.write_text(yaml.safe_dump({"files": files, "datasets": {}}))
    return path


def load(path):
    load_catalogue.cache_clear()
    return load_catalogue(path)


def at(source, hub):
    """Return the source with the hub's address: the catalogue takes https only, and the hub here has none."""
    revision = source.commit or source.revision
    return dataclasses.replace(source, url=f"{hub}/{revision}/{source.path}")


def test_the_first_download_is_recorded_and_held_to(catalogue, hub, tmp_path):
    source = at(load(catalogue).files["one"], hub)
    assert not source.pinned
    target = tmp_path / "raw/one.json"
    pinned = locking.lock(source, target, lock_path(catalogue))
    assert target.read_bytes() == CONTENT["one.json"]
    digest = hashlib.sha256(CONTENT["one.json"]).hexdigest()
    entry = {"repository": "owner/name", "commit": COMMIT, "sha256": digest, "bytes": 8}
    assert read_lock(lock_path(catalogue)) == {"one": entry}
    again = load(catalogue).files["one"]
    assert (again.sha256, again.commit, again.bytes) == (digest, COMMIT, 8) == (pinned.sha256, pinned.commit, 8)
    assert again.url == f"https://example.org/resolve/{COMMIT}/one.json"
    assert sources.status(again, target) == "present"
    target.unlink()
    sources.fetch(at(again, hub), target)
    assert Hub.requested[-1].endswith(f"/{COMMIT}/one.json"), "a later download asks for the recorded commit"


def test_a_changed_file_is_refused_later(catalogue, hub, tmp_path, monkeypatch):
    locking.lock(at(load(catalogue).files["one"], hub), tmp_path / "one.json", lock_path(catalogue))
    monkeypatch.setitem(CONTENT, "one.json", b'["ene"]\n')
    (tmp_path / "one.json").unlink()
    with pytest.raises(SourceError, match="has sha256"):
        sources.fetch(at(load(catalogue).files["one"], hub), tmp_path / "one.json")
    assert not (tmp_path / "one.json").exists()


def test_files_of_one_repository_are_taken_at_one_commit(catalogue, hub, tmp_path):
    files = load(catalogue).files
    for name in ("one", "two"):
        locking.lock(at(files[name], hub), tmp_path / f"{name}.json", lock_path(catalogue))
    assert [path.split("/")[-2] for path in Hub.requested] == ["main", COMMIT]


def test_a_slow_start_is_waited_for_and_a_cut_answer_is_no_file(catalogue, hub, tmp_path, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: None)
    source = at(load(catalogue).files["two"], hub)
    Hub.fail = 2
    locking.lock(source, tmp_path / "two.json", lock_path(catalogue))
    lock_path(catalogue).unlink()
    (tmp_path / "two.json").unlink()
    Hub.cut = True
    with pytest.raises(SourceError, match="could not be downloaded in 2 attempts"):
        locking.lock(source, tmp_path / "two.json", lock_path(catalogue), attempts=2)
    assert not (tmp_path / "two.json").exists()
    assert not lock_path(catalogue).exists()


def test_a_missing_file_is_one_message(catalogue, hub, tmp_path):
    import dataclasses

    source = dataclasses.replace(load(catalogue).files["one"], url=f"{hub}/main/three.json")
    with pytest.raises(SourceError, match="the server answers 404"):
        locking.lock(source, tmp_path / "one.json", lock_path(catalogue))


def test_a_mirror_is_recorded_too_and_the_network_not_tried(catalogue, tmp_path, monkeypatch, capsys):
    mirror = tmp_path / "mirror/owner/name"
    mirror.mkdir(parents=True)
    (mirror / "one.json").write_bytes(CONTENT["one.json"])
    monkeypatch.setenv(sources.MIRROR_VARIABLE, str(tmp_path / "mirror"))
    load_catalogue.cache_clear()
    assert main(["sources"]) == 0
    assert capsys.readouterr().out.count("unpinned") == 2
    assert main(["fetch"]) == 0, "without a name, nothing unpinned is fetched"
    assert not lock_path(catalogue).exists()
    assert main(["fetch", "one"]) == 0
    assert read_lock(lock_path(catalogue))["one"]["commit"] is None
    load_catalogue.cache_clear()
    assert main(["fetch", "one"]) == 0
    assert main(["fetch", "two"]) == 1
    assert "the mirror has no source 'two'" in capsys.readouterr().err
    (tmp_path / "data/raw/owner/name/one.json").write_bytes(b"[]")
    assert main(["sources"]) == 1
    load_catalogue.cache_clear()


def test_an_unpinned_file_is_neither_fetched_nor_read(catalogue, tmp_path):
    source = load(catalogue).files["one"]
    with pytest.raises(SourceError, match="not pinned"):
        sources.fetch(source, tmp_path / "one.json")
    with pytest.raises(SourceError, match="Run `comperdial fetch one`"):
        sources.require(source)


@pytest.mark.parametrize(
    ("lock", "message"),
    [
        ("one: {commit: null, sha256: abc, bytes: 3, repository: a/b}", "one.sha256: got 'abc'"),
        ("one: {sha256: abc}", "one: no 'repository'"),
    ],
)
def test_a_broken_lock_file_is_named(catalogue, lock, message):
    lock_path(catalogue).write_text(lock)
    with pytest.raises(ConfigError, match=message):
        load(catalogue)


def test_a_revision_needs_its_place_in_the_url(catalogue):
    catalogue.write_text(catalogue.read_text().replace("{revision}", "main"))
    with pytest.raises(ConfigError, match=r"no \{revision\}"):
        load(catalogue)


@pytest.mark.parametrize("name_size", [True, False])
def test_a_file_of_unknown_size_has_a_limit(catalogue, hub, tmp_path, monkeypatch, name_size):
    """Else an address that was taken over fills the disk."""
    Hub.name_size = name_size
    source = at(load(catalogue).files["two"], hub)
    size = len(CONTENT["two.json"])
    monkeypatch.setenv("COMPERDIAL_MAX_DOWNLOAD", f"{(size - 1) / 2**30!r}")
    with pytest.raises(SourceError, match=r"'two' has more than .*limit.*Set COMPERDIAL_MAX_DOWNLOAD"):
        locking.lock(source, tmp_path / "two.json", lock_path(catalogue))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]
    assert len(Hub.requested) == 1, "no further attempt would change it"
    monkeypatch.setenv("COMPERDIAL_MAX_DOWNLOAD", f"{size / 2**30!r}")
    locking.lock(source, tmp_path / "two.json", lock_path(catalogue))
    monkeypatch.setenv("COMPERDIAL_MAX_DOWNLOAD", "much")
    with pytest.raises(ConfigError, match="COMPERDIAL_MAX_DOWNLOAD: 'much'; expected a number of GiB"):
        locking.lock(source, tmp_path / "two.json", lock_path(catalogue))


@pytest.fixture
def redirecting(hub, monkeypatch):
    """Have every address in HTTPS lead to the hub, which has none."""
    import requests

    real = requests.adapters.HTTPAdapter.send

    def send(self, request, **options):
        if request.url.startswith("http:"):
            return real(self, request, **options)
        answer = requests.Response()
        answer.status_code, answer.request, answer.url, answer.raw = 302, request, request.url, io.BytesIO()
        answer.headers["Location"] = hub.rpartition("/owner")[0] + request.path_url
        return answer

    monkeypatch.setattr(requests.adapters.HTTPAdapter, "send", send)


@pytest.mark.parametrize("pinned", [True, False])
def test_https_never_leads_to_http(catalogue, redirecting, tmp_path, pinned):
    source = load(catalogue).files["one"]
    with pytest.raises(SourceError, match=r"source 'one': the server redirects .*; expected HTTPS"):
        if pinned:
            digest = hashlib.sha256(CONTENT["one.json"]).hexdigest()
            sources.fetch(dataclasses.replace(source, sha256=digest, bytes=8), tmp_path / "one.json")
        else:
            locking.lock(source, tmp_path / "one.json", lock_path(catalogue))
    assert Hub.requested == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]
