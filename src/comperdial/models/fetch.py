"""Models from the Hugging Face hub, or from a mirror of it: every file by its checksum, all of one commit.

A model that an installed package carries as GGUF is converted from there, and nothing is downloaded.

huggingface_hub downloads. What the bytes should be is known from a lock file, or from the manifest of an earlier fetch;
where nobody knows, the first fetch records it. A model's manifest is written last: a fetch that was interrupted has
left no model.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from filelock import FileLock

from comperdial.core.errors import ConfigError, FileError, MissingResourceError, SourceError
from comperdial.core.files import replacing
from comperdial.data.catalogue import updating_lock
from comperdial.data.sources import MIRROR_VARIABLE
from comperdial.models import contents, registry, runtime, store
from comperdial.models.contents import Checksum
from comperdial.models.convert import convert
from comperdial.models.gguf import convert_gguf
from comperdial.models.registry import Hosted, Packaged, Quantised

log = logging.getLogger(__name__)

_HEAD = (
    "# Written by `comperdial models fetch` at the first fetch of a model; commit it. Later fetches are held to it.\n"
    "# To take newer files of a model, delete its entries and its folder in the store, and fetch it again.\n"
)
# What huggingface_hub keeps in a folder that it downloads to.
_ITS_OWN = ".cache"

Pins = dict[str, dict[str, Any]]


def check(name: str, *, allow_pickle: bool = False) -> Hosted | Quantised:
    """Return what the registry says of a model that can be fetched.

    Raises
    ------
    UnknownNameError
        When the registry does not have it.
    ConfigError
        When it comes with a package, or has a pickle for weights and pickles are not allowed.
    MissingResourceError
        When torch is needed to convert it and is not there; or when the package with its GGUF file is not.
    """
    entry = registry.entry(name)
    if isinstance(entry, Packaged):
        raise ConfigError(f"model {name!r} comes with a package and is not fetched", hint=entry.remedy)
    if isinstance(entry, Quantised):
        _gguf(entry)
    elif entry.weights == "pickle":
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
        A folder laid out ``<owner>/<repository>/<path>``; default: the environment variable ``COMPERDIAL_MIRROR``. With
        a mirror the network is never tried.

    Raises
    ------
    UnknownNameError, ConfigError, MissingResourceError
        As :func:`check`; or when the lock file speaks of another repository or commit than the registry; or when
        huggingface_hub is needed and not there.
    SourceError
        When a file cannot be had, or its bytes are not the ones known.
    """
    entry = check(name, allow_pickle=allow_pickle)
    if isinstance(entry, Quantised):
        return _converted(entry)
    mirror = mirror or os.environ.get(MIRROR_VARIABLE) or None
    folder = store.home() / name
    folder.mkdir(parents=True, exist_ok=True)
    # One process at a time fetches a model, and writes down what it is.
    shared: AbstractContextManager[Pins] = updating_lock(lock_file, _HEAD) if lock_file else nullcontext({})
    with FileLock(store.home() / f".{name}.lock"), shared as everybodys:
        locked = _locked(entry, everybodys, lock_file)
        pins = _recorded(entry, folder)
        if pins and (not locked or _bytes(locked) == _bytes(pins)) and store.audit(name)[0] == "present":
            log.info("%s: there already, in %s", name, folder)
        else:
            pins = _Fetch(entry, folder, locked or pins, mirror).run()
        if set(locked) != set(pins):
            for file in locked:
                del everybodys[f"{name}/{file}"]
            everybodys.update({f"{name}/{file}": pin for file, pin in pins.items()})
    return store.find(name)


def _gguf(entry: Quantised) -> Path:
    """Return where the GGUF file of an installed package lies; the package is found, never imported."""
    spec = find_spec(entry.package)
    file = Path(spec.origin).parent / entry.gguf if spec and spec.origin else None
    if file is None or not file.is_file():
        package = entry.package.replace("_", "-")
        raise MissingResourceError(
            f"model {entry.name!r} needs the package {package}, which is not installed", hint=entry.remedy
        )
    return file


def _converted(entry: Quantised) -> store.Model:
    folder = store.home() / entry.name
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(store.home() / f".{entry.name}.lock"):
        if store.audit(entry.name)[0] == "present":
            log.info("%s: there already, in %s", entry.name, folder)
            return store.find(entry.name)
        file = _gguf(entry)
        if (found := contents.checksum(file)) != entry.pin:
            raise SourceError(
                f"{entry.gguf} has sha256 {found.sha256} ({found.bytes} bytes)",
                where=str(file),
                expected=f"sha256 {entry.pin.sha256} ({entry.pin.bytes} bytes)",
                hint=entry.remedy,
            )
        for left in contents.counted(folder):
            (folder / left).unlink()
        convert_gguf(file, folder)
        contents.Manifest(
            name=entry.name,
            revision=store.CONVERSION,
            files=contents.fresh(folder),
            converted={entry.gguf: entry.pin},
        ).write(folder)
    return store.find(entry.name)


class _Fetch:
    """One model's fetch, from the hub or from a mirror, held to what is known of its files."""

    def __init__(self, entry: Hosted, folder: Path, known: Pins, mirror: str | Path | None) -> None:
        self.entry = entry
        self.folder = folder
        self.known = {file: Checksum(pin["sha256"], pin["bytes"]) for file, pin in known.items()}
        self.place = Path(mirror) / entry.repository if mirror else None
        # Nobody knows which commit a mirror's file is of.
        self.commit = next((pin["commit"] for pin in known.values()), None if mirror else entry.commit)
        self.taken: dict[str, Checksum] = {}

    def run(self) -> Pins:
        """Take all files, convert what is to be converted, write the manifest; return what was taken."""
        offered = self._offered()
        kind = self.entry.weights
        whole, index = contents.WHOLE[kind], contents.INDEX[kind]
        for file in (*self.entry.files, *(file for file in self.entry.optional if file in offered)):
            self._take(file, offered)
        first = whole if whole in offered else index
        if first not in offered:
            raise SourceError(
                f"{self.entry.repository} has neither {whole} nor {index}",
                where=self._where(),
                expected=f"weights as {kind}",
            )
        self._take(first, offered)
        if first == index:
            for shard in sorted(set(contents.shards(self.folder / index, kind).values())):
                self._take(shard, offered)
        for file in set(contents.counted(self.folder)) - set(self.taken):
            # Of an earlier fetch. transformers would read it.
            (self.folder / file).unlink()
        converted = convert(self.folder) if kind == "pickle" else {}
        contents.Manifest(
            name=self.entry.name,
            repository=self.entry.repository,
            revision=self.entry.revision,
            commit=self.commit,
            files={
                file: self.taken.get(file) or contents.checksum(self.folder / file)
                for file in contents.counted(self.folder)
            },
            converted=converted,
        ).write(self.folder)
        for file in converted:
            (self.folder / file).unlink()
        shutil.rmtree(self.folder / _ITS_OWN, ignore_errors=True)
        return _pins(self.entry.repository, self.commit, self.taken)

    def _offered(self) -> Mapping[str, Checksum | None]:
        """Return the files that there are and, of large ones, what the hub says of their bytes."""
        kind = self.entry.weights
        if set(self.entry.files) <= set(self.known) and {contents.WHOLE[kind], contents.INDEX[kind]} & set(self.known):
            # An optional file that is not known is one that the repository lacks.
            return self.known
        if self.place:
            return {path.name: None for path in self.place.glob("*")}
        with self._hub():
            from huggingface_hub import HfApi

            revision = self.commit or self.entry.revision
            found = HfApi().model_info(self.entry.repository, revision=revision, files_metadata=True, timeout=60)
        self.commit = found.sha
        files = found.siblings or []
        return {file.rfilename: Checksum(file.lfs.sha256, file.lfs.size) if file.lfs else None for file in files}

    def _take(self, file: str, offered: Mapping[str, Checksum | None]) -> None:
        """Bring one file into the folder, if it is not there; check it."""
        path, expected = self.folder / file, self.known.get(file) or offered.get(file)
        if path.is_file():
            if expected and contents.checksum(path) == expected:
                self.taken[file] = expected
                return
            # Else huggingface_hub would be content with it when the hub does not answer.
            path.unlink()
        if file not in offered or (self.place and not (self.place / file).is_file()):
            raise SourceError(
                f"{self.entry.repository} has no {file}",
                where=self._where(file),
                expected=f"a file of model {self.entry.name!r}",
                hint=f"Copy it there, or unset {MIRROR_VARIABLE} to download it" if self.place else None,
            )
        if self.place:
            with replacing(path) as temporary:
                shutil.copyfile(self.place / file, temporary)
        else:
            with self._hub():
                from huggingface_hub import hf_hub_download

                hf_hub_download(
                    self.entry.repository, file, revision=self.commit or self.entry.revision, local_dir=self.folder
                )
        found = contents.checksum(path)
        if expected and found != expected:
            path.unlink()
            raise SourceError(
                f"{file} of model {self.entry.name!r} has sha256 {found.sha256} ({found.bytes} bytes)",
                where=self._where(file),
                expected=f"sha256 {expected.sha256} ({expected.bytes} bytes)",
                hint="The mirror's copy is altered or incomplete: copy it anew"
                if self.place
                else "The file upstream is not the one that the lock file or an earlier fetch recorded",
            )
        self.taken[file] = found

    @contextmanager
    def _hub(self) -> Iterator[None]:
        """Say in one message what huggingface_hub could not do."""
        if not find_spec("huggingface_hub"):
            raise MissingResourceError("not installed: huggingface_hub", expected="pip install 'comperdial[neural]'")
        import httpx2

        try:
            yield
        # Also of a connection that is down, or that the environment forbids.
        except (httpx2.HTTPError, OSError) as error:
            cause = error.__cause__ or error
            reason = next(iter(str(cause).splitlines()), "")
            raise SourceError(
                f"model {self.entry.name!r} cannot be fetched ({type(cause).__name__}: {reason})",
                where=self._where(),
                expected="the model on the Hugging Face hub",
                hint=f"Without a network, set {MIRROR_VARIABLE} to a folder that holds "
                f"{self.entry.repository}/{self.entry.files[0]}",
            ) from error

    def _where(self, file: str = "") -> str:
        if self.place:
            return str(self.place / file)
        return f"{self.entry.repository} at {self.commit or self.entry.revision}"


def _recorded(entry: Hosted, folder: Path) -> Pins:
    """Return what an earlier fetch of the same repository and commit took, by its manifest."""
    try:
        found = contents.read_manifest(folder)
    except FileError:
        return {}
    if found is None or found.repository != entry.repository or found.commit not in _commits(entry, found.commit):
        return {}
    fetched = {file: pin for file, pin in found.files.items() if not (found.converted and contents.is_weights(file))}
    return _pins(found.repository, found.commit, {**fetched, **found.converted})


def _pins(repository: str, commit: str | None, files: Mapping[str, Checksum]) -> Pins:
    return {
        file: {"repository": repository, "commit": commit, "sha256": found.sha256, "bytes": found.bytes}
        for file, found in files.items()
    }


def _locked(entry: Hosted, locked: Pins, lock_file: Path | None) -> Pins:
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
