"""Files of requests for the Batch API, and beside each one what has become of it.

``<root>/<judge>/<name>.jsonl`` holds requests, ``<name>.json`` their state. A request's messages stand in its line; its
sample index is the one with which its key comes out.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comperdial.core.errors import FileError
from comperdial.core.files import read_json, replacing, sha256
from comperdial.judges._disk import make_folder, write_durably, writing_errors
from comperdial.judges._locks import locked
from comperdial.judges.base import Family, encode_messages, key
from comperdial.judges.batch_lines import MOST_BYTES, MOST_REQUESTS

if TYPE_CHECKING:
    from comperdial.judges.ledger import Ledger

BATCHES = Path("data/batches")

WRITTEN, SUBMITTING, SUBMITTED, COLLECTED = "written", "submitting", "submitted", "collected"
_STATUSES = (WRITTEN, SUBMITTING, SUBMITTED, COLLECTED)


@dataclass(frozen=True)
class State:
    """A file of requests.

    Attributes
    ----------
    path
        Of the state's file.
    status
        ``written``: nobody was asked. ``submitting``: maybe somebody was. ``submitted``: answers will come.
        ``collected``: they are in the ledger.
    dataset, variant, family
        What is asked about, in which way, and what the answers depend on.
    samples
        Sample indices of its requests are below this.
    requests, bytes, sha256
        Of the file.
    worst
        US dollars that its answers can cost at most; None where that is not known.
    time
        When its status became what it is: seconds since 1970, UTC.
    input, batch
        The service's names of the uploaded file and the batch.
    outcome
        What came of it, once it is collected.
    """

    path: Path
    status: str
    dataset: str
    variant: str
    family: Family
    samples: int
    requests: int
    bytes: int
    sha256: str
    worst: float | None
    time: int
    input: str | None = None
    batch: str | None = None
    outcome: Mapping[str, Any] | None = None

    @property
    def name(self) -> str:
        """Return the judge and the file's name, without suffix: what users are told."""
        return f"{self.family.judge}/{self.path.stem}"

    @property
    def open(self) -> bool:
        """Return whether somebody may have been asked and the ledger does not know the answers."""
        return self.status in (SUBMITTING, SUBMITTED)

    def file(self, suffix: str = ".jsonl") -> Path:
        """Return the file of requests, or another that belongs to it."""
        return self.path.parent / (self.path.stem + suffix)

    def save(self) -> None:
        """Write it down; it is on the disk when this returns."""
        content = {name: getattr(self, name) for name in _FIELDS}
        content["family"] = dataclasses.asdict(self.family)
        write_durably(self.path, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())

    def slots(self) -> dict[str, tuple[str, int]]:
        """Return its requests: key -> messages (encoded) and sample index.

        Raises
        ------
        FileError
            When the file is not what was written.
        """
        path = self.file()
        self.check()
        found: dict[str, tuple[str, int]] = {}
        for name, messages in _requests(path):
            sample = next((n for n in range(self.samples) if key(self.family.id, messages, n) == name), None)
            if sample is None:
                raise FileError(f"request {name} is of another family", where=str(path))
            found[name] = (messages, sample)
        return found

    def keys(self) -> set[str]:
        """Return the keys of its requests."""
        self.check()
        return {name for name, _ in _requests(self.file())}

    def check(self) -> None:
        """Hold the file against its checksum."""
        path = self.file()
        if not path.is_file() or sha256(path) != self.sha256:
            origin = f"; the service keeps it as {self.input}" if self.input else ""
            raise FileError(
                "the file of requests is missing" if not path.is_file() else "the file of requests was altered",
                where=str(path),
                expected=f"the file that was written, with sha256 {self.sha256}{origin}",
                hint="Restore it" if self.open else f"Delete {self.path.name} beside it, and write it again",
            )


_FIELDS = [field.name for field in dataclasses.fields(State) if field.name != "path"]
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "status": str, "dataset": str, "variant": str, "family": dict, "samples": int, "requests": int, "bytes": int,
    "sha256": str, "worst": (float, int, type(None)), "time": int, "input": (str, type(None)),
    "batch": (str, type(None)), "outcome": (dict, type(None)),
}  # fmt: skip


def read_states(root: Path = BATCHES) -> list[State]:
    """Return the states of all files of requests below a folder, sorted.

    Raises
    ------
    FileError
        When one cannot be read.
    """
    return [read_state(path) for path in sorted(root.glob("*/*.json")) if not path.name.startswith(".")]


def read_state(path: Path) -> State:
    """Read one state."""
    content = read_json(path)
    right = isinstance(content, dict) and content.keys() == set(_FIELDS)
    if not right or not all(isinstance(content[name], kind) for name, kind in _TYPES.items()):
        raise FileError("not the state of a file of requests", where=str(path), expected="as it was written")
    if content["status"] not in _STATUSES or content["family"].keys() != {f.name for f in dataclasses.fields(Family)}:
        raise FileError("a state that there is not", where=str(path), expected=", ".join(_STATUSES))
    return State(path, **{**content, "family": Family(**content["family"])})


def open_cost(states: Iterable[State]) -> float:
    """Return what batches that are under way can cost at most, in US dollars."""
    return fsum(state.worst or 0.0 for state in states if state.open)


def committed(ledger: Ledger, root: Path = BATCHES) -> float:
    """Return what is spent, and what batches that are under way can cost at most, in US dollars.

    The batches are read first: what is collected meanwhile counts twice then, rather than not at all.
    """
    waiting = open_cost(read_states(root))
    return waiting + ledger.spent()


def holding(root: Path) -> AbstractContextManager[None]:
    """Let one process at a time change the states below a folder; another one waits."""
    return locked(root / ".lock", f"{root}: another process writes, submits or collects batches; waiting")


def save_file(path: Path, content: bytes) -> None:
    """Write a file that belongs to a batch; it is on the disk when this returns."""
    write_durably(path, content)


def write_requests(
    folder: Path, stem: str, requests: Iterator[tuple[bytes, float | None]], first: int
) -> Iterator[tuple[Path, int, int, float | None]]:
    """Write requests to files ``<stem>_<number>.jsonl``, as many as the service takes in one.

    Parameters
    ----------
    requests
        The line of each, and what its answer can cost at most.
    first
        The first file's number.

    Yields
    ------
    path, requests, bytes, worst
        Of each file, when it is written.
    """
    make_folder(folder)
    pending = next(requests, None)
    number = first
    while pending is not None:
        path = folder / f"{stem}_{number:03d}.jsonl"
        count, size = 0, 0
        costs: list[float | None] = []
        with writing_errors(path), replacing(path) as temporary, temporary.open("wb") as file:
            while pending is not None and count < MOST_REQUESTS and (not count or size + len(pending[0]) <= MOST_BYTES):
                file.write(pending[0])
                count, size = count + 1, size + len(pending[0])
                costs.append(pending[1])
                pending = next(requests, None)
            file.flush()
            os.fsync(file.fileno())
        known = [cost for cost in costs if cost is not None]
        yield path, count, size, fsum(known) if len(known) == count else None
        number += 1


def _requests(path: Path) -> Iterator[tuple[str, str]]:
    """Yield key and messages (encoded) of each request."""
    with path.open("rb") as file:
        for line in file:
            content = json.loads(line)
            yield content["custom_id"], encode_messages(content["body"]["messages"])
