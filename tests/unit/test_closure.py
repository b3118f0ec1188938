import pytest

from comperdial.closure import source_files
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
