"""Models from the Hugging Face hub, or from a mirror of it: every file by its checksum, all of one commit.

What the bytes should be is known from a lock file, or from the manifest of an earlier fetch. Where nobody knows, the
first fetch records it. A model's manifest is written last: a fetch that was interrupted has left no model, and goes on.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from comperdial import locking, sources
from comperdial.catalogue import Source, read_lock
from comperdial.errors import ConfigError, FileError, MissingResourceError, SourceError
from comperdial.files import write_text
from comperdial.models import digests, hub, manifest, registry, runtime, store, weights
from comperdial.models.convert import convert
from comperdial.models.digests import Checksum
from comperdial.models.registry import Hosted

log = logging.getLogger(__name__)

# What is known of the files of a fetch that was interrupted.
_PARTIAL = ".fetch.lock.yaml"
_HEAD = (
    "# Written by `comperdial models fetch` at the first fetch of a model; commit it. Later fetches are held to it.\n"
    "# To take newer files of a model, delete its entries and its folder in the store, and fetch it again.\n"
)

Pins = dict[str, dict[str, Any]]


def check(name: str, *, allow_pickle: bool = False) -> Hosted:
    """Return what the registry says of a model that can be fetched.

    Raises
    ------
    UnknownNameError
        When the registry does not have it.
    ConfigError
        When it comes with a package, or has a pickle for weights and pickles are not allowed.
    MissingResourceError
        When torch is needed to convert it and is not there.
    """
    entry = registry.entry(name)
    if not isinstance(entry, Hosted):
        raise ConfigError(f"model {name!r} comes with a package and is not fetched", hint=entry.remedy)
    if entry.weights == "pickle":
        if not allow_pickle:
            raise ConfigError(
                f"the weights of model {name!r} are a pickle, a format that can run code when it is read",
                expected="--allow-pickle",
                hint=f"With it, nothing but tensors is read of what {entry.repository} has; they are written as "
                "safetensors, and the pickle is deleted",
            )
        if lacking := runtime.missing_packages():
            raise MissingResourceError(lacking)
    return entry


def fetch(
    name: str, *, lock_file: Path | None = None, allow_pickle: bool = False, mirror: str | Path | None = None
) -> store.Model:
    """Bring a model into the store, checked; change nothing when it is there already.

    Parameters
    ----------
    name
        A name in the registry.
    lock_file
        What everybody's files should be. A model that it does not have yet is added.
    allow_pickle
        Take weights that are a pickle, and convert them to safetensors.
    mirror
        A folder laid out ``<owner>/<repository>/<path>``; default: the environment variable ``COMPERDIAL_MIRROR``.

    Raises
    ------
    UnknownNameError, ConfigError, MissingResourceError
        As :func:`check`; or when the lock file speaks of another repository or commit than the registry.
    SourceError
        When a file cannot be had, or its bytes are not the ones known.
    """
    entry = check(name, allow_pickle=allow_pickle)
    folder = store.home() / name
    locked = _locked(entry, lock_file)
    pins = _recorded(entry, folder)
    if pins and (not locked or _bytes(locked) == _bytes(pins)) and store.audit(name)[0] == "present":
        log.info("%s: there already, in %s", name, folder)
    else:
        partial = {key.removeprefix(f"{name}/"): pin for key, pin in read_lock(folder / _PARTIAL).items()}
        job = _Fetch(entry, folder, locked or pins or partial, mirror or os.environ.get(sources.MIRROR_VARIABLE))
        with _for_models():
            job.run()
        pins = job.taken
    if lock_file and set(locked) != set(pins):
        others = {key: pin for key, pin in read_lock(lock_file).items() if not key.startswith(f"{name}/")}
        _write_lock(lock_file, {**others, **{f"{name}/{file}": pin for file, pin in pins.items()}})
    return store.find(name)


@dataclass
class _Fetch:
    """One model's fetch: what is known of its files, and what has been taken so far."""

    entry: Hosted
    folder: Path
    pins: Pins
    mirror: str | Path | None
    taken: Pins = field(default_factory=dict)
    commit: str | None = None

    def __post_init__(self) -> None:
        # Nobody knows which commit a mirror's file is of.
        self.commit = next((pin["commit"] for pin in self.pins.values()), None if self.mirror else self.entry.commit)
        # With everything needed known, an optional file that is not known is one that the repository lacks.
        self._complete = set(self.entry.files) <= set(self.pins) and any(map(weights.is_weights, self.pins))

    def run(self) -> None:
        """Take all files, convert what is to be converted, and write the manifest."""
        for file in self.entry.files:
            self._take(file)
        for file in self.entry.optional:
            self._take(file, optional=True)
        self._take_weights()
        for file in set(digests.counted(self.folder)) - set(self.taken):
            # Of an earlier fetch. transformers would read it.
            (self.folder / file).unlink()
        converted = convert(self.folder) if self.entry.weights == "pickle" else {}
        taken = {file: Checksum(pin["sha256"], pin["bytes"]) for file, pin in self.taken.items()}
        counted = digests.counted(self.folder)
        manifest.Manifest(
            name=self.entry.name,
            repository=self.entry.repository,
            revision=self.entry.revision,
            commit=self.commit,
            files={file: taken.get(file) or digests.checksum(self.folder / file) for file in counted},
            converted=converted,
        ).write(self.folder)
        for path in (*map(self.folder.joinpath, (*converted, _PARTIAL)), *self.folder.glob(".*.part")):
            path.unlink(missing_ok=True)

    def _take_weights(self) -> None:
        """Take the weights: one file, or an index and its shards."""
        kind = self.entry.weights
        whole, index = weights.WHOLE[kind], weights.INDEX[kind]
        if index not in self.pins and self._take(whole, optional=True):
            return
        if not self._take(index, optional=True):
            raise SourceError(
                f"{self.entry.repository} has neither {whole} nor {index}",
                where=self._source(whole, {}).url,
                expected=f"weights as {kind}",
            )
        for shard in sorted(set(weights.shards(self.folder / index, kind).values())):
            self._take(shard)

    def _take(self, file: str, *, optional: bool = False) -> bool:
        """Bring one file into the folder; return False for an optional one that the repository does not have."""
        source = self._source(file, self.pins.get(file, {}))
        if not source.pinned:
            if optional and self._complete:
                return False
            offer = hub.offer(source, self.mirror, optional=optional)
            if offer is None:
                return False
            # From the first answer on, everything is of one commit.
            self.commit = self.commit or offer.commit
            source = self._source(file, {"sha256": offer.sha256, "bytes": offer.bytes})
        target = self.folder / file
        if source.pinned:
            sources.fetch(source, target, mirror=self.mirror)
        else:
            source = locking.lock(source, target, self.folder / _PARTIAL, mirror=self.mirror)
        self.taken[file] = {
            "repository": source.repository,
            "commit": self.commit,
            "sha256": source.sha256,
            "bytes": source.bytes,
        }
        return True

    def _source(self, file: str, pin: Mapping[str, Any]) -> Source:
        return Source(
            name=f"{self.entry.name}/{file}",
            repository=self.entry.repository,
            commit=self.commit or "",
            path=file,
            url=hub.url(self.entry.repository, self.commit or self.entry.revision, file),
            sha256=pin.get("sha256", ""),
            bytes=pin.get("bytes", 0),
            licence=self.entry.licence,
            citation="",
        )


def _recorded(entry: Hosted, folder: Path) -> Pins:
    """Return what an earlier fetch of the same repository and commit took, by its manifest."""
    try:
        found = manifest.read(folder)
    except FileError:
        return {}
    if found is None or found.repository != entry.repository or found.commit not in _commits(entry, found.commit):
        return {}
    fetched = {file: pin for file, pin in found.files.items() if not (found.converted and weights.is_weights(file))}
    return {
        file: {"repository": found.repository, "commit": found.commit, "sha256": pin.sha256, "bytes": pin.bytes}
        for file, pin in {**fetched, **found.converted}.items()
    }


def _locked(entry: Hosted, lock_file: Path | None) -> Pins:
    locked = read_lock(lock_file) if lock_file else {}
    pins = {key.removeprefix(f"{entry.name}/"): pin for key, pin in locked.items() if key.startswith(f"{entry.name}/")}
    for pin in pins.values():
        if pin["repository"] != entry.repository or pin["commit"] not in _commits(entry, pin["commit"]):
            raise ConfigError(
                f"model {entry.name!r} is locked to {pin['repository']}, commit {pin['commit']}",
                where=str(lock_file),
                expected=f"{entry.repository}, {entry.revision}, as the registry has it",
                hint=f"Delete the entries that begin with {entry.name}/, and fetch it again",
            )
    return pins


def _commits(entry: Hosted, found: str | None) -> tuple[str | None, ...]:
    """Return the commits that agree with the registry: the one it names, or any; None stands for a mirror's."""
    return (None, entry.commit) if entry.commit else (found,)


def _bytes(pins: Pins) -> dict[str, str]:
    return {file: pin["sha256"] for file, pin in pins.items()}


def _write_lock(path: Path, locked: Pins) -> None:
    import yaml

    write_text(path, _HEAD + yaml.safe_dump(locked, sort_keys=True))


@contextmanager
def _for_models() -> Iterator[None]:
    """Let errors about files say what to do about models."""
    try:
        yield
    except SourceError as error:
        hint = (error.hint or "").replace("data/sources.yaml", "the registry of models or its lock file")
        raise SourceError(error.problem, where=error.where, expected=error.expected, hint=hint or None) from error
