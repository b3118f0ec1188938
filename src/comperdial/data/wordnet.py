"""WordNet: find it, or set it up where nltk looks for it.

nltk reads corpora only from its data roots, so WordNet is installed in ``<sys.prefix>/nltk_data/corpora/wordnet``, inside the
virtual environment, and is deleted with it.
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
from dataclasses import dataclass, replace
from pathlib import Path

from comperdial.core.errors import MissingResourceError
from comperdial.core.files import read_json, write_json, write_text

log = logging.getLogger(__name__)

DEBIAN = Path("/usr/share/wordnet")
PACKAGES = ("wordnet-base", "wordnet-sense-index")
_CLASSES = ("noun", "verb", "adj", "adv")
_FILES = (
    *(f"{part}.{word_class}" for part in ("data", "index") for word_class in _CLASSES),
    *(f"{word_class}.exc" for word_class in _CLASSES),
    *("index.sense", "cntlist.rev"),
)
# Provenance file next to a WordNet that we set up.
_NOTE = "comperdial-wordnet.json"
# WordNet's lexicographer files in order, with their syntactic categories, from the manual page lexnames(5WN), which is all
# Debian ships.
_LEXNAMES = (
    ("adj.all adj.pert", 3),
    ("adv.all", 4),
    (
        "noun.Tops noun.act noun.animal noun.artifact noun.attribute noun.body noun.cognition noun.communication "
        "noun.event noun.feeling noun.food noun.group noun.location noun.motive noun.object noun.person "
        "noun.phenomenon noun.plant noun.possession noun.process noun.quantity noun.relation noun.shape noun.state "
        "noun.substance noun.time",
        1,
    ),
    (
        "verb.body verb.change verb.cognition verb.communication verb.competition verb.consumption verb.contact "
        "verb.creation verb.emotion verb.motion verb.perception verb.possession verb.social verb.stative verb.weather",
        2,
    ),
    ("adj.ppl", 3),
)


@dataclass(frozen=True)
class WordNet:
    """A WordNet that nltk can read: its path, version and origin."""

    path: str
    version: str
    source: str


def roots() -> list[Path]:
    """Return nltk's data roots in its order, without importing nltk, which takes a second (a test compares the two)."""
    given = [Path(p) for p in os.environ.get("NLTK_DATA", "").split(os.pathsep) if p]
    prefix, home = Path(sys.prefix), Path("~/nltk_data").expanduser()
    system = [Path(base, "nltk_data") for base in ("/usr/share", "/usr/local/share", "/usr/lib", "/usr/local/lib")]
    return [*given, home, prefix / "nltk_data", prefix / "share/nltk_data", prefix / "lib/nltk_data", *system]


def own_root() -> Path:
    """Return the data root for the set-up."""
    return Path(sys.prefix) / "nltk_data"


def locate() -> WordNet | None:
    """Return the WordNet that nltk would load; None if there is none."""
    folders = [root / "corpora" / "wordnet" for root in roots()]
    # Same order as nltk: unpacked folders of any root come first.
    for place in (*folders, *(folder.with_suffix(".zip") for folder in folders)):
        try:
            folder = zipfile.Path(place, "wordnet/") if place.suffix == ".zip" else place
            with folder.joinpath("lexnames").open("rb") as names, folder.joinpath("data.noun").open("rb") as data:
                names.read(1)
                version = re.search(rb"WordNet (\d+\.\d+)", data.read(2048))
        # RuntimeError: encrypted, or an unsupported compression method.
        except (OSError, KeyError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
            log.debug("%s: no WordNet (%s)", place, error)
        else:
            note = place.parent / _NOTE
            noted = read_json(note) if note.is_file() else {}
            source = noted["source"] if noted.get("name") == place.name else "found in nltk's data path"
            return WordNet(str(place), version.group(1).decode() if version else "unknown", source)
    return None


def require(version: str) -> WordNet:
    """Return the installed WordNet if it has the given version, else raise :class:`MissingResourceError`."""
    corpus = locate()
    if corpus and corpus.version == version:
        return corpus
    problem, hint = "WordNet is not on this machine", "Run `comperdial wordnet`, or remove the metric from params.yaml"
    if corpus:
        problem = f"this is WordNet {corpus.version}"
        hint = "Set the metric's option `wordnet`, or put the other version first in nltk's data path"
    where = corpus.path if corpus else None
    raise MissingResourceError(problem, where=where, expected=f"WordNet {version}", hint=hint)


def lexnames() -> str:
    """Return the content of the ``lexnames`` file that nltk requires: number, name and syntactic category, 45 lines."""
    pairs = [(name, category) for names, category in _LEXNAMES for name in names.split()]
    return "".join(f"{number:02d}\t{name}\t{category}\n" for number, (name, category) in enumerate(pairs))


def set_up() -> WordNet:
    """Return this machine's WordNet, or install it from nltk's server, Debian's files or Debian's packages.

    Raises
    ------
    MissingResourceError
        If every method fails; lists each failure.
    """
    if corpus := locate():
        return corpus
    ways = {
        "nltk download": _from_nltk,
        f"Debian's files in {DEBIAN}": lambda: _copy_from(DEBIAN),
        f"Debian's packages {' and '.join(PACKAGES)}": _from_debian_packages,
    }
    failures = []
    for name, bring in ways.items():
        problem = "brought no WordNet"
        try:
            bring()
        except subprocess.CalledProcessError as error:
            problem = next(filter(str.strip, reversed(error.stderr.splitlines())), f"exit status {error.returncode}")
        except (OSError, subprocess.TimeoutExpired) as error:
            problem = str(error)
        if corpus := locate():
            place = Path(corpus.path)
            write_json(place.parent / _NOTE, {"name": place.name, "source": name, "version": corpus.version})
            return replace(corpus, source=name)
        failures.append(f"{name}: {problem}")
    raise MissingResourceError(
        f"WordNet is not on this machine and could not be fetched ({'; '.join(failures)})",
        expected="nltk's corpora/wordnet under one of " + ", ".join(map(str, roots()[:3])),
        hint=f"Copy it there, or install Debian's {' and '.join(PACKAGES)} and run `comperdial wordnet` again",
    )


def _from_nltk() -> None:
    import io
    import socket

    import nltk

    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(20)
    try:
        if not nltk.download("wordnet", download_dir=str(own_root()), quiet=True, print_error_to=io.StringIO()):
            raise OSError("no answer from nltk's server")
    finally:
        socket.setdefaulttimeout(before)


def _copy_from(folder: Path) -> None:
    if missing := [name for name in _FILES if not (folder / name).is_file()]:
        raise FileNotFoundError(f"{folder} lacks {', '.join(missing[:3])}" if folder.is_dir() else "not there")
    target = own_root() / "corpora" / "wordnet"
    target.mkdir(parents=True, exist_ok=True)
    for name in _FILES:
        shutil.copyfile(folder / name, target / name)
    # Last: locate() treats the folder as complete once this file exists.
    write_text(target / "lexnames", lexnames())


def _from_debian_packages() -> None:
    """Download the packages with apt, which verifies signatures, and unpack them without installing."""
    apt, dpkg = shutil.which("apt-get"), shutil.which("dpkg-deb")
    if not apt or not dpkg:
        raise FileNotFoundError("no apt-get on this machine")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)

        def run(*command: str) -> None:
            subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=300)  # noqa: S603

        # Package lists may be missing or old: fetch private ones, which does not require root.
        (folder / "lists" / "partial").mkdir(parents=True)
        private = ("-o", f"Dir::State::Lists={folder / 'lists'}")
        run(apt, "-q", *private, "update")
        run(apt, "-q", "download", *PACKAGES, *private)
        for package in folder.glob("*.deb"):
            run(dpkg, "-x", str(package), str(folder / "unpacked"))
        _copy_from(folder / "unpacked" / DEBIAN.relative_to("/"))
