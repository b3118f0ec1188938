import shutil
import zipfile
from pathlib import Path

import pytest

from comperdial.core.errors import MissingResourceError
from comperdial.data import wordnet
from comperdial.metrics import create

HEAD = "  1 This software and database is being provided to you\n  2 WordNet {} Copyright\n"
PARTS = ("noun", "verb", "adj", "adv")


def fake(folder, version="3.0", lexnames=True):
    """Write files with the names of WordNet's."""
    folder.mkdir(parents=True)
    names = [f"{kind}.{part}" for kind in ("data", "index") for part in PARTS]
    names += [f"{part}.exc" for part in PARTS] + ["index.sense", "cntlist.rev"]
    for name in names:
        (folder / name).write_text(HEAD.format(version) if name == "data.noun" else "x\n")
    if lexnames:
        (folder / "lexnames").write_text(wordnet.lexnames())
    return folder


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """Return a machine's folder without WordNet anywhere and without a network or apt."""

    def no_network():
        raise OSError("no network")

    monkeypatch.setattr(wordnet, "own_root", lambda: tmp_path / "nltk_data")
    monkeypatch.setattr(wordnet, "roots", lambda: [tmp_path / "nltk_data"])
    monkeypatch.setattr(wordnet, "DEBIAN", tmp_path / "debian")
    monkeypatch.setattr(wordnet, "_from_nltk", no_network)
    monkeypatch.setattr("shutil.which", lambda name: None)
    return tmp_path


def archive(bare, members):
    path = bare / "nltk_data/corpora/wordnet.zip"
    path.parent.mkdir(parents=True)
    with zipfile.ZipFile(path, "w") as content:
        for name, text in members.items():
            content.writestr(f"wordnet/{name}", text)
    return path


def test_lexnames_agrees_with_the_data(real_wordnet):
    """Every synset of the data files names its lexicographer file by number; the category must be the file's own."""
    lines = [line.split("\t") for line in wordnet.lexnames().splitlines()]
    assert [int(number) for number, _, _ in lines] == list(range(45))
    if not Path(real_wordnet.path).is_dir():
        pytest.skip("this WordNet is zipped")
    categories = {int(number): category for number, _, category in lines}
    for category, part in enumerate(PARTS, start=1):
        with (Path(real_wordnet.path) / f"data.{part}").open(encoding="utf-8") as file:
            used = {int(line.split()[1]) for line in file if not line.startswith("  ")}
        assert {categories[number] for number in used} == {str(category)}


def test_wordnet_known_to_nltk_is_used_as_folder_or_zip(bare):
    path = fake(bare / "nltk_data/corpora/wordnet", "3.1")
    assert wordnet.set_up() == wordnet.WordNet(str(path), "3.1", "found in nltk's data path")
    members = {file.name: file.read_text() for file in path.iterdir()}
    shutil.rmtree(bare / "nltk_data")
    archive(bare, members)
    assert wordnet.locate().version == "3.1"


def test_other_zip_is_ignored_and_damaged_zip_is_reported(bare):
    path = archive(bare, {"readme": "no WordNet"})
    assert wordnet.locate() is None
    path.write_bytes(b"PK\x03\x04 cut short")
    with pytest.raises(MissingResourceError, match="WordNet is not on this machine"):
        wordnet.require("3.0")
    shutil.rmtree(bare / "nltk_data")
    archive(bare, {"data.noun": HEAD.format("3.0"), "lexnames": wordnet.lexnames()})
    with pytest.raises(MissingResourceError, match=r"wordnet\.zip: WordNet cannot be read .*Remove it and run"):
        create("meteor").score(["a car"], ["an auto"])


def test_debian_files_become_a_corpus(bare):
    fake(bare / "debian", lexnames=False)
    found = wordnet.set_up()
    assert (found.version, found.source) == ("3.0", f"Debian's files in {bare / 'debian'}")
    assert (Path(found.path) / "lexnames").read_text() == wordnet.lexnames()
    assert wordnet.set_up() == found, "the second time it is found, with its origin on record"


def test_error_lists_every_way_to_get_wordnet(bare, monkeypatch):
    (fake(bare / "debian", lexnames=False) / "index.sense").unlink()
    with pytest.raises(MissingResourceError) as caught:
        wordnet.set_up()
    for part in ("nltk download: no network", "lacks index.sense", "no apt-get on this machine", "comperdial wordnet"):
        assert part in str(caught.value)
