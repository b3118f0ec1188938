"""Public files from a mirror or over HTTPS: checked, and recorded where nobody has seen their checksum yet."""

import hashlib
import io
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
import yaml

from comperdial.cli import main
from comperdial.core.errors import ConfigError, SourceError, UnknownNameError
from comperdial.data import sources
from comperdial.data.catalogue import Source, load_catalogue, lock_path, read_lock

CONTENT = bytes(range(256)) * 4000
COMMIT = "a" * 40


def make_source(url, content=CONTENT):
    # Not checked, so that it can have the address of a server here.
    return Source.model_construct(
        name="thing",
        repository="own/repo",
        commit=COMMIT,
        path="data/thing.bin",
        url=url,
        sha256=hashlib.sha256(content).hexdigest(),
        bytes=len(content),
        licence="none",
        citation="none",
    )


class Server:
    """A loopback server that follows a script: one entry a request, then the plain file."""

    def __init__(self, content=CONTENT):
        self.content, self.script, self.asked = content, [], 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *args):
                pass

            def do_GET(self):
                outer.asked += 1
                act = outer.script.pop(0) if outer.script else "serve"
                status, body = (act, b"") if isinstance(act, int) else (200, outer.content)
                self.send_response(status)
                self.send_header("Retry-After", "0")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[:300_000] if act == "cut" else body)

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.http.server_port}/{COMMIT}/thing.bin"


@pytest.fixture
def server(monkeypatch):
    monkeypatch.delenv(sources.MIRROR_VARIABLE, raising=False)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    made = Server()
    yield made
    made.http.shutdown()
    made.http.server_close()


def replace(source, **changes):
    return source.model_copy(update=changes)


def debris(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


def test_download(server, tmp_path):
    target = tmp_path / "raw" / "thing.bin"
    sources.fetch(make_source(server.url), target)
    assert target.read_bytes() == CONTENT
    assert debris(target.parent) == []
    sources.fetch(make_source(server.url), target)
    assert server.asked == 1, "a file that is there is not asked for again"


def test_a_member_of_an_archive(server, tmp_path):
    source = replace(make_source(server.url), member="inside/thing.txt")
    target = tmp_path / "thing.bin"
    with pytest.raises(SourceError, match=r"is not in the archive.*expected a zip archive with inside/thing\.txt"):
        sources.fetch(source, target)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inside/thing.txt", CONTENT)
    server.content = packed.getvalue()
    sources.fetch(source, target)
    assert target.read_bytes() == CONTENT
    assert [path.name for path in tmp_path.iterdir()] == ["thing.bin"]


def test_an_interrupted_download_is_begun_again_and_never_taken_for_whole(server, tmp_path):
    server.script = ["cut", 503, "cut", 503, "cut"]
    with pytest.raises(SourceError, match="could not be downloaded in 5 attempts"):
        sources.fetch(make_source(server.url), tmp_path / "thing.bin")
    assert list(tmp_path.iterdir()) == []
    server.script = ["cut", 429, "serve"]
    sources.fetch(make_source(server.url), tmp_path / "thing.bin")
    assert (tmp_path / "thing.bin").read_bytes() == CONTENT


def test_only_fitting_bytes_are_used(tmp_path):
    source = make_source("https://example.invalid")
    path = tmp_path / "own/repo/data/thing.bin"
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT[::-1])
    with pytest.raises(SourceError, match="is altered"):
        sources.require(source, tmp_path)
    path.write_bytes(CONTENT)
    assert sources.require(source, tmp_path) == path


def test_altered_upstream_is_refused_and_leaves_nothing(server, tmp_path):
    server.content = CONTENT[:-1] + b"x"
    with pytest.raises(SourceError, match=r"sha256 [0-9a-f]{64} .*expected sha256 .*not the one pinned"):
        sources.fetch(make_source(server.url), tmp_path / "thing.bin")
    assert list(tmp_path.iterdir()) == []


def test_a_longer_file_is_refused(server, tmp_path):
    server.content = CONTENT + b"more"
    with pytest.raises(SourceError, match="expected sha256"):
        sources.fetch(make_source(server.url), tmp_path / "thing.bin")


def test_not_found_is_final_and_says_what_to_do(server, tmp_path):
    server.script = [404] * 9
    with pytest.raises(SourceError, match=r"answers 404.*COMPERDIAL_MIRROR"):
        sources.fetch(make_source(server.url), tmp_path / "thing.bin")
    assert server.asked == 1


def test_no_network_names_the_mirror(tmp_path, monkeypatch):
    monkeypatch.delenv(sources.MIRROR_VARIABLE, raising=False)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    with pytest.raises(SourceError, match=r"5 attempts .*own/repo/data/thing\.bin"):
        sources.fetch(make_source("http://127.0.0.1:9/x"), tmp_path / "thing.bin")


def test_a_mirror_goes_before_the_network(server, tmp_path, monkeypatch):
    place = tmp_path / "mirror/own/repo/data/thing.bin"
    place.parent.mkdir(parents=True)
    place.write_bytes(CONTENT)
    monkeypatch.setenv(sources.MIRROR_VARIABLE, str(tmp_path / "mirror"))
    sources.fetch(make_source(server.url), tmp_path / "thing.bin")
    assert (tmp_path / "thing.bin").read_bytes() == CONTENT
    assert server.asked == 0


@pytest.mark.parametrize(
    ("content", "message"), [(None, "the mirror has no source"), (b"other", "mirror's copy is alter")]
)
def test_a_mirror_that_lacks_or_altered_a_file_is_an_error(server, tmp_path, monkeypatch, content, message):
    place = tmp_path / "mirror/own/repo/data/thing.bin"
    place.parent.mkdir(parents=True)
    if content:
        place.write_bytes(content)
    monkeypatch.setenv(sources.MIRROR_VARIABLE, str(tmp_path / "mirror"))
    with pytest.raises(SourceError, match=message):
        sources.fetch(make_source(server.url), tmp_path / "out" / "thing.bin")
    assert server.asked == 0, "the network is not a silent second choice"
    assert not (tmp_path / "out").exists() or list((tmp_path / "out").iterdir()) == []


def test_status(tmp_path):
    source = make_source("https://example.invalid")
    assert sources.status(source, tmp_path / "x") == "missing"
    (tmp_path / "x").write_bytes(CONTENT)
    assert sources.status(source, tmp_path / "x") == "present"
    (tmp_path / "x").write_bytes(CONTENT[::-1])
    assert sources.status(source, tmp_path / "x") == "altered"


ENTRY = {
    "repository": "own/repo",
    "commit": COMMIT,
    "path": "data/x.json",
    "url": f"https://example.invalid/{COMMIT}/x.json",
    "sha256": "b" * 64,
    "bytes": 3,
    "licence": "none",
    "citation": "none",
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sha256": "short"}, "files.x.sha256: got 'short'"),
        ({"url": "http://example.invalid"}, "files.x.url: got"),
        ({"url": "https://example.invalid/main/x.json"}, "does not name the commit"),
        ({"path": "../../etc/passwd"}, "leaves its folder"),
        ({"path": "/etc/passwd"}, "leaves its folder"),
        ({"repository": "../x"}, "files.x.repository: got"),
        ({"extra": 1}, "files.x.extra: unknown key 'extra'"),
        ({"bytes": 0}, "files.x.bytes: got 0"),
        ({"path": None}, "files.x.path: got null"),
        ({"path": "data/{x}.json"}, "files.x.path: got 'data/{x}.json'"),
        ({"commit": 10**39}, "files.x.commit: got 1"),
        ({"licence": ["MIT"]}, "files.x.licence: got a list"),
    ],
)
def test_a_wrong_catalogue_is_refused(tmp_path, change, message):
    path = tmp_path / "sources.yaml"
    path.write_text(yaml.safe_dump({"files": {"x": ENTRY | change}, "datasets": {}}))
    with pytest.raises(ConfigError, match=message):
        load_catalogue(path)


@pytest.mark.parametrize("name", ["--help", "a b", "$(touch x)", "{x}", "a/b", "", "é"])
def test_names_in_the_catalogue_are_fit_for_files_and_commands(tmp_path, name):
    """They become names of files, patterns of Snakemake's, and words of commands."""
    path = tmp_path / "sources.yaml"
    dataset = {"reader": "usr", "title": "X", "files": {"ratings": "x"}}
    for content in ({"files": {name: ENTRY}, "datasets": {}}, {"files": {"x": ENTRY}, "datasets": {name: dataset}}):
        path.write_text(yaml.safe_dump(content))
        with pytest.raises(ConfigError, match="the name"):
            load_catalogue(path)


def test_unknown_names_in_the_catalogue(tmp_path):
    path = tmp_path / "sources.yaml"
    path.write_text(yaml.safe_dump({"files": {"x_ratings": ENTRY}, "datasets": {}}))
    with pytest.raises(UnknownNameError, match="Did you mean 'x_ratings'"):
        load_catalogue(path).file("x_rating")
    entry = {"reader": "usr", "title": "X", "files": {"ratings": "y"}}
    path = tmp_path / "other.yaml"
    path.write_text(yaml.safe_dump({"files": {"x_ratings": ENTRY}, "datasets": {"x": entry}}))
    with pytest.raises(UnknownNameError, match=r"datasets\.x\.files\.ratings: unknown source 'y'"):
        load_catalogue(path)


def test_the_repository_s_own_catalogue_is_right(root):
    catalogue = load_catalogue(root / "data/sources.yaml")
    assert set(catalogue.datasets) >= {"usr_persona", "usr_topical"}
    assert all((source.commit or str(source.revision)) in source.url for source in catalogue.files.values())


def test_a_data_set_may_say_what_is_rated(tmp_path, root):
    known = load_catalogue(root / "data/sources.yaml").datasets
    assert known["comperdial"].levels == ("turn", "dialogue")
    assert known["usr_topical"].levels == ("turn",)
    assert known["fed_dial"].levels == ("dialogue",)
    assert known["fed_turn"].levels == ("turn",)
    assert known["turn_perturbations"].levels == ()
    path = tmp_path / "sources.yaml"
    for wrong in ("turn", ["system"], ["dialogue", "turn"], ["turn", "turn"], None):
        entry = {"reader": "usr", "title": "X", "files": {}, "levels": wrong}
        path.with_name(f"{wrong}.yaml").write_text(yaml.safe_dump({"files": {}, "datasets": {"x": entry}}))
        with pytest.raises(ConfigError, match=r"datasets\.x\.levels.*: got"):
            load_catalogue(path.with_name(f"{wrong}.yaml"))


# --- files whose checksum nobody has seen: recorded at the first download, held to at every later one

FILES = {"one.json": b'["one"]\n', "two.json": b'["two"]\n' * 1000}


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
        if file not in FILES or revision not in ("main", COMMIT):
            return self._answer(404, b"")
        return self._answer(200, FILES[file])

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
    return load_catalogue(path)


def at(source, hub):
    """Return the source with the hub's address: the catalogue takes https only, and the hub here has none."""
    revision = source.commit or source.revision
    return replace(source, url=f"{hub}/{revision}/{source.path}")


def test_the_first_download_is_recorded_and_held_to(catalogue, hub, tmp_path):
    source = at(load(catalogue).files["one"], hub)
    assert not source.pinned
    target = tmp_path / "raw/one.json"
    pinned = sources.fetch(source, target, lock_file=lock_path(catalogue))
    assert target.read_bytes() == FILES["one.json"]
    digest = hashlib.sha256(FILES["one.json"]).hexdigest()
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
    sources.fetch(at(load(catalogue).files["one"], hub), tmp_path / "one.json", lock_file=lock_path(catalogue))
    monkeypatch.setitem(FILES, "one.json", b'["ene"]\n')
    (tmp_path / "one.json").unlink()
    with pytest.raises(SourceError, match="has sha256"):
        sources.fetch(at(load(catalogue).files["one"], hub), tmp_path / "one.json")
    assert not (tmp_path / "one.json").exists()


def test_files_of_one_repository_are_taken_at_one_commit(catalogue, hub, tmp_path):
    files = load(catalogue).files
    for name in ("one", "two"):
        sources.fetch(at(files[name], hub), tmp_path / f"{name}.json", lock_file=lock_path(catalogue))
    assert [path.split("/")[-2] for path in Hub.requested] == ["main", COMMIT]


def test_first_downloads_at_the_same_time_are_all_recorded(catalogue, hub, tmp_path):
    one = at(load(catalogue).files["one"], hub)
    names = [f"copy-{number}" for number in range(8)]
    with ThreadPoolExecutor(len(names)) as pool:
        for name in names:
            source = replace(one, name=name)
            pool.submit(sources.fetch, source, tmp_path / name, lock_file=lock_path(catalogue))
    assert sorted(read_lock(lock_path(catalogue))) == names


def test_a_slow_start_is_waited_for_and_a_cut_answer_is_no_file(catalogue, hub, tmp_path, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: None)
    source = at(load(catalogue).files["two"], hub)
    Hub.fail = 2
    sources.fetch(source, tmp_path / "two.json", lock_file=lock_path(catalogue))
    lock_path(catalogue).unlink()
    (tmp_path / "two.json").unlink()
    Hub.cut = True
    with pytest.raises(SourceError, match="could not be downloaded in 5 attempts"):
        sources.fetch(source, tmp_path / "two.json", lock_file=lock_path(catalogue))
    assert not (tmp_path / "two.json").exists()
    assert not lock_path(catalogue).exists()


def test_a_missing_file_is_one_message(catalogue, hub, tmp_path):
    source = replace(load(catalogue).files["one"], url=f"{hub}/main/three.json")
    with pytest.raises(SourceError, match="the server answers 404"):
        sources.fetch(source, tmp_path / "one.json", lock_file=lock_path(catalogue))


def test_a_mirror_is_recorded_too_and_the_network_not_tried(catalogue, tmp_path, monkeypatch, capsys):
    mirror = tmp_path / "mirror/owner/name"
    mirror.mkdir(parents=True)
    (mirror / "one.json").write_bytes(FILES["one.json"])
    monkeypatch.setenv(sources.MIRROR_VARIABLE, str(tmp_path / "mirror"))
    assert main(["sources"]) == 0
    assert capsys.readouterr().out.count("unpinned") == 2
    assert main(["fetch"]) == 0, "without a name, nothing unpinned is fetched"
    assert not lock_path(catalogue).exists()
    assert main(["fetch", "one"]) == 0
    assert read_lock(lock_path(catalogue))["one"]["commit"] is None
    assert main(["fetch", "one"]) == 0
    assert main(["fetch", "two"]) == 1
    assert "the mirror has no source 'two'" in capsys.readouterr().err
    (tmp_path / "data/raw/owner/name/one.json").write_bytes(b"[]")
    assert main(["sources"]) == 1


def test_an_unpinned_file_is_neither_fetched_nor_read(catalogue, tmp_path):
    source = load(catalogue).files["one"]
    with pytest.raises(SourceError, match="not pinned"):
        sources.fetch(source, tmp_path / "one.json")
    with pytest.raises(SourceError, match="Run `comperdial fetch one`"):
        sources.require(source)


@pytest.mark.parametrize(
    ("lock", "message"),
    [
        ("one: {commit: null, sha256: abc, bytes: 3, repository: a/b}", r"line 1, one\.sha256: got 'abc'"),
        ("one: {sha256: abc}", "line 1, one: no 'repository'"),
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
    monkeypatch.setattr(sources, "_LIMIT", len(FILES["two.json"]) - 1)
    with pytest.raises(SourceError, match=r"'two' has more than .*limit for a file of unknown size"):
        sources.fetch(source, tmp_path / "two.json", lock_file=lock_path(catalogue))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]
    assert len(Hub.requested) == 1, "no further attempt would change it"


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
            digest = hashlib.sha256(FILES["one.json"]).hexdigest()
            sources.fetch(replace(source, sha256=digest, bytes=8), tmp_path / "one.json")
        else:
            sources.fetch(source, tmp_path / "one.json", lock_file=lock_path(catalogue))
    assert Hub.requested == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]


def test_a_relative_catalogue_is_that_of_the_folder(tmp_path, monkeypatch):
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "sources.yaml").write_text(f"files: {{}}\ndatasets: {{}}\n# {name}\n")
    monkeypatch.chdir(tmp_path / "one")
    one = load_catalogue("sources.yaml")
    monkeypatch.chdir(tmp_path / "other")
    assert load_catalogue("sources.yaml") is not one
    monkeypatch.chdir(tmp_path / "one")
    assert load_catalogue("sources.yaml") is one, "read once"
