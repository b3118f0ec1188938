import re

import pytest

from comperdial import closure
from comperdial.closure import code_version, files_of_version, source_files
from comperdial.errors import FileError


def test_lazy_and_plain_imports_are_followed(tmp_path):
    package = tmp_path / "comperdial"
    (package / "sub").mkdir(parents=True)
    (package / "__init__.py").write_text("from comperdial.other import x\n")
    (package / "a.py").write_text(
        "import json\nfrom comperdial import b\n\ndef f():\n    from comperdial.sub.c import g\n"
    )
    (package / "b.py").write_text("import comperdial.sub\n")
    (package / "sub/__init__.py").write_text("")
    (package / "sub/c.py").write_text("from comperdial.a import f\n")
    (package / "other.py").write_text("")
    found = source_files("a", root=tmp_path)
    assert [path.removeprefix(f"{package}/") for path in found] == ["a.py", "b.py", "sub/__init__.py", "sub/c.py"]
    with pytest.raises(FileError, match=r"no module comperdial\.nope"):
        source_files("nope", root=tmp_path)


def test_a_metric_is_not_watched_for_another_s_sake(root):
    found = source_files("scoring", "metrics.bleu", root=root / "src")
    names = {path.split("comperdial/")[-1] for path in found}
    assert {"scoring.py", "metrics/bleu.py", "metrics/base.py", "schema/io.py", "files.py"} <= names
    assert not {"metrics/rouge.py", "aggregate.py", "sources.py", "wordnet.py"} & names
    assert any(path.endswith("wordnet.py") for path in source_files("metrics.meteor", root=root / "src"))


def write_package(folder):
    package = folder / "comperdial"
    package.mkdir(parents=True)
    (package / "a.py").write_text("from comperdial import b\n")
    (package / "b.py").write_text("")
    (package / "other.py").write_text("")
    (package / "words.yaml").write_text("x: 1\n")
    return package


@pytest.fixture
def forget():
    """Return a function that forgets which files were read, and call it after the test."""

    def clear():
        for kept in (closure._digest, closure._imports):
            kept.cache_clear()

    yield clear
    clear()


def test_a_version_of_code_changes_with_what_is_run_and_with_nothing_else(tmp_path, monkeypatch, forget):
    def version(name, changed=None):
        """Return the version in a folder of its own, as another process would."""
        package = write_package(tmp_path / name / "src")
        if changed:
            (package / changed).write_text("# changed\n")
        monkeypatch.chdir(tmp_path / name)
        forget()
        return code_version("a", "src/comperdial/words.yaml")

    first = version("first")
    assert re.fullmatch(r"a,src/comperdial/words\.yaml@[0-9a-f]{12}", first)
    assert version("same") == version("without", "other.py")
    assert len({first, version("imported", "b.py"), version("file", "words.yaml")}) == 3


def test_a_version_says_which_files_it_is_about(tmp_path, monkeypatch):
    write_package(tmp_path / "src")
    monkeypatch.chdir(tmp_path)
    files = ["src/comperdial/a.py", "src/comperdial/b.py", "src/comperdial/words.yaml"]
    assert files_of_version("a,src/comperdial/words.yaml@0123456789ab") == files
    with pytest.raises(FileError, match="names no code"):
        files_of_version("0123456789ab")
