"""Fetch models into the store: from the Hugging Face hub, or from an installed package's GGUF file."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from filelock import FileLock

from comperdial.core.errors import ConfigError, MissingResourceError, SourceError
from comperdial.core.files import write_json
from comperdial.models import registry, store
from comperdial.models.convert import convert_gguf, convert_pickles
from comperdial.models.registry import Entry

_WEIGHTS = {
    "safetensors": ("model.safetensors", "model.safetensors.index.json", "model-*-of-*.safetensors"),
    "pickle": ("pytorch_model.bin", "pytorch_model-*-of-*.bin"),
}


def fetch(name: str) -> store.Model:
    """Fetch a model of the registry into the store; do nothing if it is present and intact.

    Pickled weights are converted to safetensors without running their code.

    Raises
    ------
    UnknownNameError, ConfigError
        If it is not in the registry, or its package contains it ready to use.
    MissingResourceError
        If a required package is not installed.
    SourceError
        If a file cannot be fetched, or does not match its checksum.
    """
    entry, folder = registry.entry(name), store.home() / name
    if entry.ready:
        raise ConfigError(f"model {name!r} comes with a package and is not fetched", hint=entry.remedy(name))
    store.home().mkdir(parents=True, exist_ok=True)
    with FileLock(store.home() / f".{name}.lock"):
        try:
            return store.verified(name)
        except MissingResourceError:
            # The manifest is written last: a folder without one is an interrupted fetch, which is resumed.
            if (folder / store.MANIFEST).exists():
                shutil.rmtree(folder)
        folder.mkdir(exist_ok=True)
        if entry.package:
            convert_gguf(_package_file(name, entry), folder)
        else:
            _download(name, entry, folder)
        repository, revision = store.origin(entry)
        manifest = store.Manifest(repository=repository, revision=revision, files=store.pins_of(folder))
        write_json(folder / store.MANIFEST, manifest.model_dump())
    return store.find(name)


def _package_file(name: str, entry: Entry) -> Path:
    """Return a package's GGUF file after verifying it."""
    [(file, pin)] = entry.pins.items()
    path = (store.package_folder(entry) or Path(entry.package)) / file
    if not path.is_file():
        raise MissingResourceError(f"{file} of the package {entry.package} is missing", hint=entry.remedy(name))
    if (actual := store.pin_of(path)) != pin:
        expected = f"sha256 {pin.sha256}"
        raise SourceError(f"{path} has sha256 {actual.sha256}", expected=expected, hint=entry.remedy(name))
    return path


def _download(name: str, entry: Entry, folder: Path) -> None:
    """Download a model's files and verify them with the hub's checksums."""
    if not find_spec("huggingface_hub"):
        raise MissingResourceError("not installed: huggingface_hub", expected="pip install 'comperdial[neural]'")
    import httpx2
    from huggingface_hub import HfApi

    hub, where = HfApi(), f"{entry.repository} at {entry.revision}"
    at: dict[str, Any] = {"repo_id": entry.repository, "revision": entry.revision, "local_dir": folder}
    try:
        hub.snapshot_download(**at, allow_patterns=[*entry.files, *_WEIGHTS[entry.weights]])
        wrong = hub.verify_repo_checksums(**at).mismatches
    except (httpx2.HTTPError, OSError) as error:
        reason = next(iter(str(error).splitlines()), "")
        hint = f"Without a network, copy {store.home() / name} from a machine that has it"
        problem = f"model {name!r} cannot be fetched ({type(error).__name__}: {reason})"
        raise SourceError(problem, where=where, hint=hint) from error
    if wrong:
        shutil.rmtree(folder)
        problem = "{path} has {algorithm} {actual}".format(**wrong[0])
        raise SourceError(problem, where=where, expected=wrong[0]["expected"], hint="Run the command again")
    shutil.rmtree(folder / ".cache", ignore_errors=True)
    if entry.weights == "pickle":
        convert_pickles(folder)
    if not (folder / "config.json").is_file() or not store.weight_files(folder):
        raise SourceError("the repository has no config.json or no weights", where=where)
