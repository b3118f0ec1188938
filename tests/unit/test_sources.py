"""Public files from a mirror or over HTTPS: checked, and recorded if their checksum is not known yet."""

import hashlib
import io
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import requests
import yaml

from comperdial.cli import main
from comperdial.core.errors import ComperdialError, SourceError
from comperdial.data import sources
from comperdial.data.catalogue import load_catalogue, lock_path, read_lock

CONTENT = bytes(range(256)) * 2000
SHA256 = hashlib.sha256(CONTENT).hexdigest()
COMMIT = "a" * 40
PINNED = {
    "repository": "own/repo", "commit": COMMIT, "path": "data/thing.bin", "url": f"https://example.org/{COMMIT}/thing.bin",
    "sha256": SHA256, "bytes": len(CONTENT), "licence": "none", "citation": "none",
}  # fmt: skip
UNPINNED = {
    name: {"repository": "own/repo", "revision": "main", "path": f"{name}.json", "licence": "CC0", "citation": "Somebody",
           "url": f"https://example.org/resolve/{{revision}}/{name}.json"}
    for name in ("one", "two")
}  # fmt: skip
DATASET = {"reader": "usr", "title": "X", "files": {"ratings": "thing"}}


class Server:
    """A loopback server that follows a script, one entry a request (a status, "cut" or "serve"), then serves its content."""

    def __init__(self):
        self.content, self.script, self.asked, self.states_size = CONTENT, [], [], True
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *args):
                pass

            def do_GET(self):
                outer.asked.append(self.path)
                act = outer.script.pop(0) if outer.script else "serve"
                status, body = (act, b"") if isinstance(act, int) else (200, outer.content)
                self.send_response(status)
                self.send_header("Retry-After", "0")
                self.send_header("X-Repo-Commit", COMMIT)
                if outer.states_size:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[:-5] if act == "cut" else body)

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.http.server_port}"


@pytest.fixture
def server(monkeypatch):
    monkeypatch.delenv(sources.MIRROR_VARIABLE, raising=False)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    made = Server()
    yield made
    made.http.shutdown()
    made.http.server_close()


@pytest.fixture(autouse=True)
def catalogue(tmp_path, monkeypatch):
    """Work in a folder with a catalogue of one pinned file, and of two that are known by a revision only."""
    monkeypatch.chdir(tmp_path)
    return write_catalogue(tmp_path, {"thing": PINNED, **UNPINNED})


def write_catalogue(folder, files, datasets=None):
    path = folder / "data/sources.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump({"files": files, "datasets": datasets or {}}))
    return path


def source_of(catalogue, server, name="thing", **changes):
    """Return an entry of the catalogue, which takes HTTPS only, with the server's address."""
    source = load_catalogue(catalogue).files[name]
    changes = {"url": f"{server.url}/{source.commit or source.revision}/{source.path}"} | changes
    return source.model_copy(update=changes)


def made_in(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != "data")


# A file whose checksum is known


def test_a_file_is_downloaded_once(catalogue, server, tmp_path):
    for _ in range(2):
        sources.fetch(source_of(catalogue, server), tmp_path / "thing.bin")
    assert (tmp_path / "thing.bin").read_bytes() == CONTENT
    assert (len(server.asked), made_in(tmp_path)) == (1, ["thing.bin"])


def test_archive_member(catalogue, server, tmp_path):
    source, packed = source_of(catalogue, server, member="inside/thing.txt"), io.BytesIO()
    with pytest.raises(SourceError, match=r"is not in the archive.*expected a zip archive with inside/thing\.txt"):
        sources.fetch(source, tmp_path / "thing.bin")
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inside/thing.txt", CONTENT)
    server.content = packed.getvalue()
    sources.fetch(source, tmp_path / "thing.bin")
    assert (tmp_path / "thing.bin").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("script", "content", "requests_made", "message"),
    [
        (["cut", 429, "serve"], CONTENT, 3, None),
        (["cut", 503, "cut", 503, "cut"], CONTENT, 5, "could not be downloaded in 5 attempts"),
        ([404], CONTENT, 1, "answers 404.*COMPERDIAL_MIRROR"),
        ([], CONTENT[:-1] + b"x", 1, "sha256 [0-9a-f]{64} .*expected sha256 .*not the one pinned"),
    ],
)
def test_only_complete_and_unchanged_files_are_accepted(
    catalogue, server, tmp_path, script, content, requests_made, message
):
    server.script, server.content = script, content
    with pytest.raises(SourceError, match=message) if message else nullcontext():
        sources.fetch(source_of(catalogue, server), tmp_path / "thing.bin")
    assert (len(server.asked), made_in(tmp_path)) == (requests_made, [] if message else ["thing.bin"])


@pytest.mark.parametrize("name", ["thing", "one"])
def test_https_never_redirects_to_http(catalogue, server, tmp_path, monkeypatch, name):
    real = requests.adapters.HTTPAdapter.send

    def send(self, request, **options):
        if request.url.startswith("http:"):
            return real(self, request, **options)
        answer = requests.Response()
        answer.status_code, answer.request, answer.url, answer.raw = 302, request, request.url, io.BytesIO()
        answer.headers["Location"] = server.url + request.path_url
        return answer

    monkeypatch.setattr(requests.adapters.HTTPAdapter, "send", send)
    with pytest.raises(SourceError, match=rf"source '{name}': the server redirects .*; expected only HTTPS"):
        sources.fetch(load_catalogue(catalogue).files[name], tmp_path / "x", lock_file=lock_path(catalogue))
    assert server.asked == [] and made_in(tmp_path) == []


# A file whose checksum is recorded at the first download


def test_the_first_download_is_recorded_and_later_ones_must_match(catalogue, server, tmp_path):
    server.content = b'["one"]\n'
    target, lock = tmp_path / "one.json", lock_path(catalogue)
    with pytest.raises(SourceError, match="not pinned"):
        sources.fetch(source_of(catalogue, server, "one"), target)
    sources.fetch(source_of(catalogue, server, "one"), target, lock_file=lock)
    digest = hashlib.sha256(server.content).hexdigest()
    assert read_lock(lock) == {"one": {"repository": "own/repo", "commit": COMMIT, "sha256": digest, "bytes": 8}}
    again = load_catalogue(catalogue).files["one"]
    assert (again.sha256, again.url) == (digest, f"https://example.org/resolve/{COMMIT}/one.json")
    assert sources.status(again, target) == "present"
    # Files of one repository are taken at one commit.
    sources.fetch(source_of(catalogue, server, "two"), tmp_path / "two.json", lock_file=lock)
    assert [path.split("/")[1] for path in server.asked] == ["main", COMMIT]
    target.unlink()
    server.content = b'["ene"]\n'
    with pytest.raises(SourceError, match="has sha256"):
        sources.fetch(source_of(catalogue, server, "one"), target)
    assert not target.exists()


def test_concurrent_first_downloads_are_all_recorded(catalogue, server, tmp_path):
    one, names = source_of(catalogue, server, "one"), [f"copy-{number}" for number in range(6)]
    with ThreadPoolExecutor(len(names)) as pool:
        for name in names:
            pool.submit(
                sources.fetch, one.model_copy(update={"name": name}), tmp_path / name, lock_file=lock_path(catalogue)
            )
    assert sorted(read_lock(lock_path(catalogue))) == names


@pytest.mark.parametrize("states_size", [True, False])
def test_file_of_unknown_size_has_a_limit(catalogue, server, tmp_path, monkeypatch, states_size):
    """Otherwise a hijacked address could fill the disk."""
    server.states_size = states_size
    monkeypatch.setattr(sources, "_LIMIT", len(CONTENT) - 1)
    with pytest.raises(SourceError, match=r"'two' has more than .*limit for a file of unknown size"):
        sources.fetch(source_of(catalogue, server, "two"), tmp_path / "x", lock_file=lock_path(catalogue))
    assert (len(server.asked), made_in(tmp_path), lock_path(catalogue).exists()) == (1, [], False)


def test_the_commands_with_a_mirror(catalogue, tmp_path, monkeypatch, capsys):
    mirror = tmp_path / "data/mirror/own/repo"
    (mirror / "data").mkdir(parents=True)
    (mirror / "one.json").write_bytes(b'["one"]\n')
    (mirror / "data/thing.bin").write_bytes(CONTENT)
    monkeypatch.setenv(sources.MIRROR_VARIABLE, str(tmp_path / "data/mirror"))
    assert main(["sources"]) == 0 and capsys.readouterr().out.count("unpinned") == 2
    assert main(["fetch"]) == 0 and not lock_path(catalogue).exists(), "without a name, nothing unpinned is fetched"
    assert main(["fetch", "one"]) == 0 and read_lock(lock_path(catalogue))["one"]["commit"] is None
    assert main(["fetch", "two"]) == 1 and "the mirror has no source 'two'" in capsys.readouterr().err
    (mirror / "data/thing.bin").write_bytes(b"other")
    (tmp_path / "data/raw/own/repo/data/thing.bin").write_bytes(CONTENT[::-1])
    assert main(["sources"]) == 1 and "altered" in capsys.readouterr().out
    with pytest.raises(SourceError, match="is altered"):
        sources.require(load_catalogue(catalogue).files["thing"])
    assert main(["fetch", "thing"]) == 1 and "The mirror's copy is altered" in capsys.readouterr().err


# The catalogue


@pytest.mark.parametrize(
    ("files", "datasets", "message"),
    [
        ({"thing": PINNED | {"url": "http://example.invalid"}}, {}, "files.thing.url: got"),
        ({"thing": PINNED | {"url": "https://example.invalid/main/x.json"}}, {}, "does not name the commit"),
        ({"thing": PINNED | {"path": "../../etc/passwd"}}, {}, "leaves its folder"),
        ({"thing": PINNED | {"repository": "../x"}}, {}, "files.thing.repository: got"),
        ({"--help": PINNED}, {}, "the name"),
        ({"thing": PINNED}, {"$(touch x)": DATASET}, "the name"),
        ({"thing": PINNED}, {"x": DATASET | {"files": {"ratings": "things"}}},
         r"x\.files\.ratings: unknown source 'things'.*Did you mean 'thing'"),
        ({"thing": PINNED}, {"x": DATASET | {"levels": ["system"]}}, r"datasets\.x\.levels.*: got"),
    ],
)  # fmt: skip
def test_invalid_catalogue_is_refused(tmp_path, files, datasets, message):
    with pytest.raises(ComperdialError, match=message):
        load_catalogue(write_catalogue(tmp_path, files, datasets))


def test_repository_catalogue(root):
    catalogue = load_catalogue(root / "data/sources.yaml")
    assert all((source.commit or str(source.revision)) in source.url for source in catalogue.files.values())
    levels = {"comperdial": ("turn", "dialogue"), "usr_topical": ("turn",), "fed_dial": ("dialogue",)}
    assert {name: catalogue.datasets[name].levels for name in levels} == levels
