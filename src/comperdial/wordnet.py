"""WordNet: find it, or set it up once where nltk looks for it, and read its files (format: manual page wndb(5WN)).

nltk reads corpora from its data roots only, so a set-up ends with a proper ``<root>/corpora/wordnet``. The root we
write to is ``<sys.prefix>/nltk_data``: inside the virtual environment, gone with it.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from comperdial.errors import MissingResourceError
from comperdial.files import read_json, write_json, write_text

log = logging.getLogger(__name__)

DEBIAN = Path("/usr/share/wordnet")
PACKAGES = ("wordnet-base", "wordnet-sense-index")
_FILES = (
    *(f"{part}.{word_class}" for part in ("data", "index") for word_class in ("noun", "verb", "adj", "adv")),
    *("index.sense", "cntlist.rev", "noun.exc", "verb.exc", "adj.exc", "adv.exc"),
)
_NOTE = "comperdial-wordnet.json"

# WordNet's lexicographer files in order, by syntactic category: manual page lexnames(5WN). Debian ships only the page.
_LEXNAMES = {
    3: "adj.all adj.pert",
    4: "adv.all",
    1: "noun.Tops noun.act noun.animal noun.artifact noun.attribute noun.body noun.cognition noun.communication "
    "noun.event noun.feeling noun.food noun.group noun.location noun.motive noun.object noun.person noun.phenomenon "
    "noun.plant noun.possession noun.process noun.quantity noun.relation noun.shape noun.state noun.substance "
    "noun.time",
    2: "verb.body verb.change verb.cognition verb.communication verb.competition verb.consumption verb.contact "
    "verb.creation verb.emotion verb.motion verb.perception verb.possession verb.social verb.stative verb.weather",
}
_LAST_LEXNAME = ("adj.ppl", 3)


@dataclass(frozen=True)
class WordNet:
    """A WordNet that nltk can read: where, which version, and where it came from."""

    path: str
    version: str
    source: str


def roots() -> list[Path]:
    """Return nltk's data roots in its own order, without the second that importing nltk takes (a test compares)."""
    given = [Path(p) for p in os.environ.get("NLTK_DATA", "").split(os.pathsep) if p]
    prefix = Path(sys.prefix)
    system = [Path(base, "nltk_data") for base in ("/usr/share", "/usr/local/share", "/usr/lib", "/usr/local/lib")]
    home = Path("~/nltk_data").expanduser()
    return [*given, home, prefix / "nltk_data", prefix / "share/nltk_data", prefix / "lib/nltk_data", *system]


def own_root() -> Path:
    """Return the root that a set-up writes to."""
    return Path(sys.prefix) / "nltk_data"


def locate() -> WordNet | None:
    """Return the WordNet that nltk would load, or None when there is none."""
    for root in roots():
        folder, archive = root / "corpora" / "wordnet", root / "corpora" / "wordnet.zip"
        if (folder / "data.noun").is_file() and (folder / "lexnames").is_file():
            with (folder / "data.noun").open("rb") as file:
                return WordNet(str(folder), _version(file.read(2048)), _origin(folder))
        if zipfile.is_zipfile(archive):
            try:
                return WordNet(str(archive), _version(_zipped(archive, "data.noun", 2048)), _origin(archive))
            except MissingResourceError as error:
                log.debug("%s", error)
    return None


def _version(head: bytes) -> str:
    match = re.search(rb"WordNet (\d+\.\d+)", head)
    return match.group(1).decode() if match else "unknown"


def _origin(place: Path) -> str:
    """Return where a WordNet came from, as our set-up noted it beside it."""
    note = place.parent / _NOTE
    noted = read_json(note) if note.is_file() else {}
    return str(noted["source"]) if noted.get("name") == place.name else "found in nltk's data path"


def lexnames() -> str:
    """Return the text of the ``lexnames`` file that nltk wants: number, name and syntactic category, 45 lines."""
    pairs = [(name, category) for category, names in _LEXNAMES.items() for name in names.split()]
    pairs.append(_LAST_LEXNAME)
    return "".join(f"{number:02d}\t{name}\t{category}\n" for number, (name, category) in enumerate(pairs))


def set_up() -> WordNet:
    """Return the WordNet at hand, or get one: from nltk's server, Debian's files on this machine, or Debian's packages.

    Raises
    ------
    MissingResourceError
        When no road leads to one; says what each of them answered.
    """
    found = locate()
    if found:
        return found
    roads: tuple[tuple[str, Callable[[], str | None]], ...] = (
        ("nltk download", _from_nltk),
        (f"Debian's files in {DEBIAN}", _from_debian_files),
        ("Debian's packages " + " and ".join(PACKAGES), _from_debian_packages),
    )
    answers = []
    for name, road in roads:
        try:
            failure = road()
            found = locate() if failure is None else None
            if found:
                place = Path(found.path)
                write_json(place.parent / _NOTE, {"name": place.name, "source": name, "version": found.version})
                return replace(found, source=name)
        except OSError as error:
            failure = f"{error.strerror or error} ({error.filename})"
        answers.append(f"{name}: {failure or 'brought no WordNet'}")
        log.info(answers[-1])
    raise MissingResourceError(
        "WordNet is not on this machine and could not be brought (" + "; ".join(answers) + ")",
        expected="nltk's corpora/wordnet under one of " + ", ".join(map(str, roots()[:3])),
        hint="Copy it there, or install Debian's " + " and ".join(PACKAGES) + " and run `comperdial wordnet` again",
    )


def _from_nltk() -> str | None:
    import io
    import socket
    from contextlib import redirect_stderr, redirect_stdout

    import nltk

    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(20)
    said = io.StringIO()
    try:
        with redirect_stdout(said), redirect_stderr(said):
            done = nltk.download("wordnet", download_dir=str(own_root()), quiet=True, print_error_to=said)
    except OSError as error:
        return str(error)
    finally:
        socket.setdefaulttimeout(before)
    log.debug("%s", said.getvalue())
    return None if done else "no answer from nltk's server"


def _from_debian_files() -> str | None:
    return _copy_from(DEBIAN)


def _copy_from(folder: Path) -> str | None:
    missing = [name for name in _FILES if not (folder / name).is_file()]
    if missing:
        return f"{folder} lacks {', '.join(missing[:3])}" if len(missing) < len(_FILES) else "not there"
    target = own_root() / "corpora" / "wordnet"
    target.mkdir(parents=True, exist_ok=True)
    for name in _FILES:
        shutil.copyfile(folder / name, target / name)
    # Last: locate() takes the folder for complete once this file is there.
    write_text(target / "lexnames", lexnames())
    return None


def _from_debian_packages() -> str | None:
    """Download the packages with apt (which checks their signatures) and unpack them; nothing is installed."""
    apt, dpkg = shutil.which("apt-get"), shutil.which("dpkg-deb")
    if not apt or not dpkg:
        return "no apt-get on this machine"
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        download = [apt, "-q", "download", *PACKAGES]
        if failure := _run(download, folder):
            # Package lists may be absent or old: fetch private ones, which needs no root.
            (folder / "lists" / "partial").mkdir(parents=True)
            private = ["-o", f"Dir::State::Lists={folder / 'lists'}"]
            failure = _run([apt, "-q", *private, "update"], folder) or _run([*download, *private], folder)
            if failure:
                return failure
        for package in folder.glob("*.deb"):
            if failure := _run([dpkg, "-x", str(package), str(folder / "unpacked")], folder):
                return failure
        return _copy_from(folder / "unpacked" / DEBIAN.relative_to("/"))


def _run(command: list[str], folder: Path) -> str | None:
    try:
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if result.returncode == 0:
        return None
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    return lines[-1] if lines else f"exit status {result.returncode}"


def require(version: str) -> WordNet:
    """Return the WordNet at hand if it has the wanted version, else raise :class:`MissingResourceError`."""
    found = locate()
    if found is None:
        raise MissingResourceError(
            "WordNet is not on this machine",
            expected=f"WordNet {version}",
            hint="Run `comperdial wordnet` to set it up, or take the metric out of params.yaml",
        )
    if found.version != version:
        raise MissingResourceError(
            f"this is WordNet {found.version}",
            where=found.path,
            expected=f"WordNet {version}",
            hint="Set the metric's option `wordnet`, or put the other version first in nltk's data path",
        )
    return found


def read_files(path: str | Path, names: Iterable[str]) -> dict[str, bytes]:
    """Return what files of a WordNet hold, by name.

    Parameters
    ----------
    path
        A folder with WordNet's files, or a zip archive of one.
    names
        The files' names: ``data.noun``.

    Raises
    ------
    MissingResourceError
        When an archive lacks one of them or is damaged.
    """
    place = Path(path)
    if place.suffix == ".zip":
        return {name: _zipped(place, name) for name in names}
    return {name: (place / name).read_bytes() for name in names}


def _zipped(archive: Path, name: str, size: int = -1) -> bytes:
    """Return the first bytes of a file in a zipped WordNet, or all of it."""
    try:
        with zipfile.ZipFile(archive) as content, content.open(f"wordnet/{name}") as member:
            return member.read(size)
    except KeyError:
        problem = f"no file wordnet/{name} in it"
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        # RuntimeError: encrypted, or compressed in a way that Python does not know.
        problem = f"wordnet/{name} cannot be read: {error}"
    raise MissingResourceError(
        problem, where=str(archive), expected="nltk's wordnet.zip", hint="Remove it and run `comperdial wordnet`"
    )


def entries(content: bytes) -> list[str]:
    """Return the lines of one of WordNet's files, without the licence, which stands before them, indented."""
    return [line for line in content.decode().split("\n") if line and not line.startswith(" ")]


def offsets(entry: str) -> list[int]:
    """Return where a word's synsets begin in its file, commonest first, by what follows the word in the index."""
    # The number of synsets comes second, their offsets last.
    fields = entry.split()
    return [int(offset) for offset in fields[-int(fields[1]) :]]


def synset(data: bytes, offset: int) -> str:
    """Return the line of a data file that begins at an offset."""
    return data[offset : data.index(b"\n", offset)].decode()


def synset_names(line: str) -> list[str]:
    """Return the names in a synset, a data file's line; those of several words have "_" between them."""
    fields = line.split()
    # Fourth the number of names, in hexadecimal digits; then each with a number. Adjectives may end in "(p)".
    return [name.partition("(")[0] for name in fields[4 : 4 + 2 * int(fields[3], 16) : 2]]
