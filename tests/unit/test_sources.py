import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from comperdial import sources
from comperdial.catalogue import Source, load_catalogue
from comperdial.errors import ConfigError, SourceError, UnknownNameError

CONTENT = bytes(range(256)) * 4000
COMMIT = "a" * 40


def make_source(url, content=CONTENT):
    return Source(
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
        self.content, self.script, self.seen, self.encodings = content, [], [], []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *args):
                pass

            def do_GET(self):
                outer.seen.append(self.headers.get("Range"))
                act = outer.script.pop(0) if outer.script else "serve"
                if isinstance(act, int):
                    self.send_response(act)
                    self.send_header("Retry-After", "0")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                start = 0
                if self.headers.get("Range") and act != "ignore range":
                    start = int(self.headers["Range"].removeprefix("bytes=").removesuffix("-"))
                body = outer.content[start:]
                outer.encodings.append(self.headers.get("Accept-Encoding"))
                if start >= len(outer.content):
                    self.send_response(416)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                self.send_response(206 if start else 200)
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


def debris(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


def test_download(server, tmp_path):
    target = tmp_path / "raw" / "thing.bin"
    sources.fetch(make_source(server.url), target)
    assert target.read_bytes() == CONTENT
    assert debris(target.parent) == []
    sources.fetch(make_source(server.url), target)
    assert len(server.seen) == 1, "a file that is there is not asked for again"


def test_an_interrupted_download_goes_on_where_it_stopped(server, tmp_path):
    server.script = ["cut", 503, "serve"]
    sources.fetch(make_source(server.url), tmp_path / "thing.bin")
    assert (tmp_path / "thing.bin").read_bytes() == CONTENT
    first, *later = server.seen
    assert first is None
    assert all(r is not None and int(r[6:-1]) > 0 for r in later)


def test_a_server_without_ranges_starts_over(server, tmp_path):
    server.script = ["cut", "ignore range"]
    sources.fetch(make_source(server.url), tmp_path / "thing.bin")
    assert (tmp_path / "thing.bin").read_bytes() == CONTENT


def test_the_next_run_resumes_too(server, tmp_path):
    server.script = ["cut"]
    with pytest.raises(SourceError, match="could not be downloaded in 1 attempts"):
        sources.fetch(make_source(server.url), tmp_path / "thing.bin", attempts=1)
    assert not (tmp_path / "thing.bin").exists()
    sources.fetch(make_source(server.url), tmp_path / "thing.bin", attempts=1)
    assert (tmp_path / "thing.bin").read_bytes() == CONTENT
    assert server.seen[-1] is not None


def test_a_download_is_asked_for_uncompressed(server, tmp_path):
    sources.fetch(make_source(server.url), tmp_path / "thing.bin")
    assert server.encodings == ["identity"], "a range counts the bytes that travel"


def test_a_half_file_beyond_the_server_s_is_thrown_away(server, tmp_path):
    source = make_source(server.url)
    (tmp_path / f".thing.bin-{source.sha256[:12]}.part").write_bytes(CONTENT[:500_000])
    server.content = CONTENT[:400_000]
    with pytest.raises(SourceError):
        sources.fetch(source, tmp_path / "thing.bin", attempts=2)
    server.content = CONTENT
    sources.fetch(source, tmp_path / "thing.bin")
    assert (tmp_path / "thing.bin").read_bytes() == CONTENT


def test_only_fitting_bytes_are_used(tmp_path):
    source = make_source("https://example.invalid")
    with pytest.raises(SourceError, match=r"is missing.*Run `comperdial fetch thing`"):
        sources.require(source, tmp_path)
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
    assert len(server.seen) == 1


def test_no_network_names_the_mirror(tmp_path, monkeypatch):
    monkeypatch.delenv(sources.MIRROR_VARIABLE, raising=False)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    with pytest.raises(SourceError, match=r"2 attempts .*own/repo/data/thing\.bin"):
        sources.fetch(make_source("http://127.0.0.1:9/x"), tmp_path / "thing.bin", attempts=2)


def test_a_mirror_goes_before_the_network(server, tmp_path, monkeypatch):
    place = tmp_path / "mirror/own/repo/data/thing.bin"
    place.parent.mkdir(parents=True)
    place.write_bytes(CONTENT)
    monkeypatch.setenv(sources.MIRROR_VARIABLE, str(tmp_path / "mirror"))
    sources.fetch(make_source(server.url), tmp_path / "thing.bin")
    assert (tmp_path / "thing.bin").read_bytes() == CONTENT
    assert server.seen == []


@pytest.mark.parametrize(
    ("content", "message"), [(None, "the mirror has no source"), (b"other", "mirror's copy is alter")]
)
def test_a_mirror_that_lacks_or_altered_a_file_is_an_error(server, tmp_path, content, message):
    place = tmp_path / "mirror/own/repo/data/thing.bin"
    place.parent.mkdir(parents=True)
    if content:
        place.write_bytes(content)
    with pytest.raises(SourceError, match=message):
        sources.fetch(make_source(server.url), tmp_path / "out" / "thing.bin", mirror=tmp_path / "mirror")
    assert server.seen == [], "the network is not a silent second choice"
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
        ({"extra": 1}, "files.x: unknown key 'extra'"),
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
        load_catalogue.cache_clear()
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
    assert all(source.commit in source.url for source in catalogue.files.values())
