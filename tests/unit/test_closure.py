"""What makes a result stale: the statements of the code that a job runs, and nothing else about it."""

import re

import pytest

from comperdial.core.closure import code_digests, code_version, digest_of, names_of_version
from comperdial.core.errors import FileError

MODULE = '''"""What it is for."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from comperdial import b

if TYPE_CHECKING:
    from comperdial.types import T

LIMIT = 3


@cache
def f(x: T, y: int = 2) -> float:
    """Return a number."""
    if x > LIMIT:
        raise ValueError("too large, {}".format(x))
    return b.g(x) * y  # why
'''
WORDS = "src/comperdial/words.yaml"


@pytest.fixture
def version(tmp_path, monkeypatch):
    """Return a function that writes a package in a folder of its own and returns the version of its module ``a``."""
    folders = (tmp_path / str(number) for number in range(99))

    def write(**changed):
        files = {"a": MODULE, "b": "def g(x): return x\n", "types": "T = int\n", "other": "", "words.yaml": "x: 1\n"}
        folder = next(folders)
        for name, text in {**files, **changed}.items():
            path = folder / "src/comperdial" / (name if "." in name else f"{name}.py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        monkeypatch.chdir(folder)
        return code_version("a", WORDS)

    return write


def edited(old, new):
    assert old in MODULE
    return MODULE.replace(old, new)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(edited("  # why", ""), id="comment"),
        pytest.param("# More.\n" + edited("LIMIT = 3", "\n\nLIMIT = 3\n"), id="blank lines"),
        pytest.param(edited('"""Return a number."""', '"""Return a product."""'), id="docstring of a function"),
        pytest.param(edited('    """Return a number."""\n', ""), id="no docstring of a function"),
        pytest.param(edited('"""What it is for."""', ""), id="no docstring of the module"),
        pytest.param(edited("(x: T, y: int = 2)", "(\n    x: T,\n    y: int = 2,\n)"), id="lines broken"),
        pytest.param(edited('"too large, {}"', "('too ' 'large, {}')"), id="quotes and parentheses"),
        pytest.param(edited("comperdial.types import T", "comperdial.other import U as T"), id="import for types"),
    ],
)
def test_what_does_not_run_changes_no_version(version, text):
    assert version(a=text) == version()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(edited("* y", "+ y"), id="operator"),
        pytest.param(edited("LIMIT = 3", "LIMIT = 3.0"), id="type of a constant"),
        pytest.param(edited("y: int = 2", "y: int = 1"), id="default"),
        pytest.param(edited("@cache\n", ""), id="decorator"),
        pytest.param(edited("raise ValueError", "raise TypeError"), id="type of an error"),
        pytest.param(edited("too large", "too big"), id="message"),
        pytest.param(edited("        raise", "        pass\n    raise"), id="indentation"),
        pytest.param(MODULE + "LIMIT = 3\n", id="statement more"),
        pytest.param(MODULE + "f(\n", id="not Python"),
    ],
)
def test_what_runs_changes_the_version(version, text):
    assert version(a=text) != version()


def test_a_version_is_of_the_modules_that_are_imported_and_of_files_by_their_bytes(version):
    first = version()
    assert re.fullmatch(rf"a,{re.escape(WORDS)}@[0-9a-f]{{12}}", first)
    assert version(types="T = str\n", other="x = 1\n") == first
    imported, file = version(b="def g(x): return -x\n"), version(**{"words.yaml": "x: 1  # one\n"})
    followed = version(b="from comperdial.other import x\ndef g(x): return x\n")
    assert len({first, imported, file, followed}) == 4
    assert names_of_version(followed) == ["a", WORDS]
    assert sorted(code_digests("a", WORDS)) == [
        f"src/comperdial/{name}" for name in ("a.py", "b.py", "other.py", "words.yaml")
    ]
    with pytest.raises(FileError, match="names no code"):
        names_of_version("0123456789ab")
    with pytest.raises(FileError, match=r"no module comperdial\.nope"):
        code_digests("nope")
    with pytest.raises(FileError, match="no function nope"):
        code_digests("a:nope")


FUNCTIONS = """from comperdial.core.artifact import table
from comperdial import b, other
from comperdial.deep.star import *


RATE = 2


def twice(f):
    return lambda x: f(f(x))


@twice
def half(x):
    return x / RATE


@table("first", caption="One.")
def first(*, second=1):
    from comperdial.types import T
    return half(b.g(T)) + second + sum(third for third in range(3))


@table("second", caption="Two.")
def second():
    return other.f


def third():
    return RATE
"""


@pytest.mark.parametrize(
    ("old", "new", "stale"),
    [
        ("RATE = 2", "RATE = 3", True),
        ("x / RATE", "x // RATE", True),
        ("half(b.g(T))", "b.g(T)", True),
        ("@twice\n", "", True),
        ("f(f(x))", "f(x)", True),
        ("return other.f", "return 1", False),
        # An argument or a variable of a function is no use of what has its name.
        ("return RATE", "return 1", False),
        # What a decorator says reaches the job as settings, inputs and caption.
        ('"One."', '"Another."', False),
    ],
)
def test_of_a_function_s_module_counts_what_it_uses(version, old, new, stale):
    digests = []
    for text in (FUNCTIONS, FUNCTIONS.replace(old, new)):
        version(a=text, **{"artifact": "def table(*a, **b): pass\n", "deep/star.py": "x = 1\n"})
        digests.append(code_digests("a:first"))
    assert sorted(digests[0]) == [
        f"src/comperdial/{name}" for name in ("a.py:first", "b.py", "deep/star.py", "types.py")
    ]
    assert (digests[0] != digests[1]) == stale


def test_packages_and_lazy_imports_are_followed(version):
    lazily = "def f():\n    import comperdial.sub\n    from comperdial.sub.c import g\n"
    files = {
        "__init__.py": "from comperdial import other\n",
        "sub/__init__.py": "from .d import x\n",
        "sub/d.py": "x = 1",
    }
    version(a=lazily, **files, **{"sub/c.py": "from . import e\nfrom ..b import g\n", "sub/e.py": ""})
    found = sorted(f"src/comperdial/{name}.py" for name in ("a", "b", "sub/__init__", "sub/c", "sub/d", "sub/e"))
    assert sorted(code_digests("a")) == found


@pytest.mark.parametrize("damage", [None, "", '{"x": 1}', "[[", '{"x": ["y"]}'])
def test_what_was_parsed_is_kept_in_snakemake_s_folder_and_may_be_damaged(version, tmp_path, damage):
    kept = tmp_path / "0/.snakemake/code.json"
    kept.parent.mkdir(parents=True)
    if damage is not None:
        kept.write_text(damage)
    assert version() == version()
    assert kept.read_text() != damage
    assert not (tmp_path / "1/.snakemake").exists()


def test_a_metric_is_not_watched_for_another_s_sake(root):
    names = {
        path.split("comperdial/")[-1] for path in code_digests("metrics.scoring", "metrics.bleu", root=root / "src")
    }
    assert {"metrics/scoring.py", "metrics/bleu.py", "metrics/base.py", "core/scripts.py"} <= names
    others = ("rouge.py", "evaluation/", "data/", "models/", "config/", "schema/", "core/files.py")
    assert not [name for name in names for other in others if other in name]
    assert any(path.endswith("wordnet.py") for path in code_digests("metrics.meteor", root=root / "src"))


def test_nothing_of_the_package_runs_on_a_docstring(root):
    # An edited docstring makes nothing stale: text that a result depends on stands elsewhere.
    reading = [path.name for path in (root / "src").rglob("*.py") if re.search(r"__doc__|getdoc", path.read_text())]
    assert reading == ["artifact.py"], "what it reads is shown by Snakemake and `comperdial render`, and in no result"


def test_a_file_has_the_digest_of_what_it_says(tmp_path):
    names = ["a.py", "b.py", "a.yaml", "b.yaml"]
    for name in names:
        (tmp_path / name).write_text("x = 1\n" if name.startswith("a") else "x = 1  # one\n")
    digests = [digest_of(name, tmp_path) for name in names]
    assert digests[0] == digests[1] and len(set(digests)) == 3
    assert digest_of("gone.py", tmp_path) is None and digest_of("a.py:gone", tmp_path) is None
