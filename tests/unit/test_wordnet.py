import sys
import zipfile
from pathlib import Path

import pytest

from comperdial.core.errors import MissingResourceError
from comperdial.data import wordnet
from comperdial.metrics import create

HEAD = "  1 This software and database is being provided to you\n  2 WordNet {} Copyright\n"


def fake(folder: Path, version="3.0", lexnames=True) -> Path:
    folder.mkdir(parents=True)
    for name in wordnet._FILES:
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


def test_roots_are_nltk_s_own():
    import nltk.data

    assert [str(path) for path in wordnet.roots()] == nltk.data.path
    assert wordnet.own_root() == Path(sys.prefix) / "nltk_data"
    assert wordnet.own_root() in wordnet.roots()


def test_lexnames_has_the_45_files_in_order():
    lines = [line.split("\t") for line in wordnet.lexnames().splitlines()]
    assert [int(number) for number, _, _ in lines] == list(range(45))
    assert lines[3] == ["03", "noun.Tops", "1"]
    assert lines[29] == ["29", "verb.body", "2"]
    assert lines[44] == ["44", "adj.ppl", "3"]
    for _, name, category in lines:
        assert {"noun": "1", "verb": "2", "adj": "3", "adv": "4"}[name.split(".")[0]] == category


def test_lexnames_agrees_with_the_data(real_wordnet):
    """Every synset of the data files names its lexicographer file by number; the category must be the file's own."""
    if not Path(real_wordnet.path).is_dir():
        pytest.skip("this WordNet is zipped")
    categories = {int(n): c for n, _, c in (line.split("\t") for line in wordnet.lexnames().splitlines())}
    for part, category in (("noun", "1"), ("verb", "2"), ("adj", "3"), ("adv", "4")):
        with (Path(real_wordnet.path) / f"data.{part}").open(encoding="utf-8") as file:
            used = {int(line.split()[1]) for line in file if not line.startswith("  ")}
        assert {categories[number] for number in used} == {category}


def test_one_found_by_nltk_is_used_as_it_is(bare):
    fake(bare / "nltk_data/corpora/wordnet", "3.1")
    assert wordnet.set_up() == wordnet.WordNet(
        str(bare / "nltk_data/corpora/wordnet"), "3.1", "found in nltk's data path"
    )


def test_a_zipped_one_counts(bare):
    folder = fake(bare / "elsewhere/wordnet")
    archive = bare / "nltk_data/corpora/wordnet.zip"
    archive.parent.mkdir(parents=True)
    with zipfile.ZipFile(archive, "w") as content:
        for path in folder.iterdir():
            content.write(path, f"wordnet/{path.name}")
    found = wordnet.locate()
    assert found is not None
    assert found.version == "3.0"


def test_a_broken_zip_is_none(bare):
    archive = bare / "nltk_data/corpora/wordnet.zip"
    archive.parent.mkdir(parents=True)
    archive.write_bytes(b"PK\x03\x04 cut short")
    assert wordnet.locate() is None


def zipped(bare, **members):
    archive = bare / "nltk_data/corpora/wordnet.zip"
    archive.parent.mkdir(parents=True)
    with zipfile.ZipFile(archive, "w") as content:
        for name, text in members.items():
            content.writestr(f"wordnet/{name.replace('_', '.')}", text)
    return archive


def test_a_zip_of_something_else_is_none(bare):
    zipped(bare, readme="no WordNet")
    assert wordnet.locate() is None
    with pytest.raises(MissingResourceError, match="WordNet is not on this machine"):
        wordnet.require("3.0")


def test_a_zip_without_a_file_that_is_needed_is_named(bare):
    archive = zipped(bare, data_noun=HEAD.format("3.0"), lexnames=wordnet.lexnames())
    assert wordnet.require("3.0").path == str(archive)
    with pytest.raises(MissingResourceError, match=r"wordnet\.zip: WordNet cannot be read .*Remove it and run"):
        create("meteor").score(["a car"], ["an auto"])


def test_a_place_that_cannot_be_written_to_is_an_answer(bare, monkeypatch):
    fake(bare / "debian", lexnames=False)
    (bare / "file").touch()
    monkeypatch.setattr(wordnet, "own_root", lambda: bare / "file")
    with pytest.raises(MissingResourceError, match=r"Debian's files in .*Not a directory|File exists"):
        wordnet.set_up()


def test_debian_s_files_become_a_proper_corpus(bare):
    fake(bare / "debian", lexnames=False)
    found = wordnet.set_up()
    assert found.version == "3.0"
    assert found.source == f"Debian's files in {bare / 'debian'}"
    assert wordnet.set_up() == found, "the second time it is found, with its origin on record"
    assert (Path(found.path) / "lexnames").read_text() == wordnet.lexnames()


def test_half_of_debian_s_files_are_none(bare):
    folder = fake(bare / "debian", lexnames=False)
    (folder / "index.sense").unlink()
    with pytest.raises(MissingResourceError, match=r"lacks index\.sense"):
        wordnet.set_up()
    assert wordnet.locate() is None


def test_with_none_to_be_had_every_road_is_named(bare):
    with pytest.raises(MissingResourceError) as caught:
        wordnet.set_up()
    for part in ("nltk download: no network", "Debian's files", "no apt-get on this machine", "comperdial wordnet"):
        assert part in str(caught.value)


def test_a_broken_apt_is_an_answer_not_a_crash(bare, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: "/bin/false")
    with pytest.raises(MissingResourceError, match="exit status 1"):
        wordnet.set_up()
