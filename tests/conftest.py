"""Shared fixtures: the repository's root, the real USR files, and a small invented set in USR's format."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import hypothesis
import pytest

from comperdial.core.errors import ComperdialError
from comperdial.data import readers, sources, wordnet
from comperdial.data.catalogue import Source, load_catalogue
from minidata import mini_items, write_mirror

ROOT = Path(__file__).resolve().parents[1]

# No deadline: a first call that imports a library is slow, not wrong. The same examples on every run.
hypothesis.settings.register_profile("here", deadline=None, derandomize=True)
hypothesis.settings.load_profile("here")

# So that the tests find snakemake and dvc when pytest is called without an activated environment.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
# The tests' models are tiny: threads of several processes would only wait for each other. And no test asks the hub.
os.environ |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}

# A shell without job control starts what runs in the background with SIGINT ignored, and processes inherit that: Ctrl-C would
# then end none of those that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Files whose tests share something that takes long to make: all of them run in one of pytest-xdist's processes.
_TOGETHER = {
    "test_runs": "usr", "test_dvc": "usr",
    # nltk's WordNet takes four seconds to read.
    "test_fast_metrics": "meteor", "test_usr": "meteor",
    # 114,460 answers are read once.
    "test_recorded_judges": "recorded",
    # The twelve sets and the perturbations are read once.
    "test_published_sets": "published",
}  # fmt: skip


def pytest_xdist_make_scheduler(config, log):
    """Distribute single tests, except the above. (xdist's own groups have no effect with pytest 9.2.)"""
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _TOGETHER.get(Path(nodeid.split("::")[0]).stem, nodeid)

    return Together(config, log)


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Tiny models are faster on one thread: several wait for each other, especially when other tests run."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


def _lacking(reason: str) -> None:
    """Skip if data is missing; fail if the run should have all data (.ci/run sets the variable)."""
    if os.environ.get("COMPERDIAL_REQUIRE_DATA"):
        pytest.fail(reason)
    pytest.skip(reason)


def _fetched(source: Source, folder: Path) -> Path:
    """Return a real file, fetched like `comperdial fetch` does; skip without it."""
    path = sources.raw_path(source, ROOT / "data/raw")
    if sources.status(source, path) != "present":
        path = sources.raw_path(source, folder)
    try:
        sources.fetch(source, path)
    except ComperdialError as error:
        _lacking(f"the real file cannot be had: {error}")
    return path


@pytest.fixture(scope="session")
def real_file(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function: a source's name in the catalogue -> its real file; it skips without the file."""
    catalogue = load_catalogue(ROOT / "data/sources.yaml")
    folder = tmp_path_factory.mktemp("raw")
    return lambda name: _fetched(catalogue.file(name), folder)


@pytest.fixture(scope="session")
def unieval_predictions(real_file: Callable[[str], Path]) -> Path:
    """Return what UniEval's authors recorded of USR-TopicalChat."""
    return real_file("unieval_topical_predictions")


@pytest.fixture(scope="session")
def real_tables(real_file: Callable[[str], Path]) -> Callable[[str], readers.Tables]:
    """Return a function: a data set of the catalogue -> its tables, fetched like `comperdial fetch` does."""
    catalogue = load_catalogue(ROOT / "data/sources.yaml")

    @cache
    def read(name: str) -> readers.Tables:
        entry = catalogue.dataset(name)
        return readers.read(entry.reader, name, {role: real_file(file.name) for role, file in entry.files.items()})

    return read


@pytest.fixture(scope="session")
def usr_tables(real_tables: Callable[[str], readers.Tables]) -> dict[str, readers.Tables]:
    """Return the tables of both real USR sets."""
    return {name: real_tables(name) for name in ("usr_persona", "usr_topical")}


@pytest.fixture(scope="session")
def real_wordnet() -> Iterator[wordnet.WordNet]:
    """Return WordNet, or skip."""
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    found = wordnet.locate()
    if found is None:
        _lacking("WordNet is not on this machine; `comperdial wordnet` sets it up")
    assert found is not None
    with pytest.MonkeyPatch.context() as patch:
        # A map to other languages' WordNets, which takes more than half of the time that nltk needs to load its own.
        patch.setattr(WordNetCorpusReader, "map_wn", lambda self: None)
        yield found


@pytest.fixture
def mini_mirror(tmp_path: Path) -> Path:
    """Return a folder with a mirror of an invented USR-format file and `sources.yaml` that names it."""
    write_mirror(tmp_path, mini_items())
    return tmp_path
