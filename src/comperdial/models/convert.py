"""From a pickle of weights to safetensors. Only here is one read, and only for tensors: torch runs none of its code."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

from comperdial.core.errors import ConfigError, MissingResourceError, SourceError
from comperdial.core.files import replacing, write_json
from comperdial.models import contents, runtime
from comperdial.models.contents import Checksum

log = logging.getLogger(__name__)


def convert_folder(folder: Path) -> contents.Manifest:
    """Convert the weights of a user's folder, and record both checksums in its ``comperdial-model.json``.

    Raises
    ------
    ConfigError
        When the folder has safetensors already.
    MissingResourceError, SourceError
        As :func:`convert`; or when torch is not there.
    """
    if lacking := runtime.missing_packages():
        raise MissingResourceError(lacking)
    if contents.weights(folder, "safetensors"):
        raise ConfigError("the folder has safetensors already", where=str(folder), expected="a pickle of weights only")
    converted = convert(folder)
    made = contents.Manifest(name=folder.resolve().name, files=contents.fresh(folder), converted=converted)
    made.write(folder)
    return made


def convert(folder: Path) -> dict[str, Checksum]:
    """Write the weights of a folder, ``pytorch_model.bin`` or its shards, as safetensors beside them.

    Tensors that share memory become tensors of their own: a file of safetensors cannot say that they are one, and
    transformers ties again what its architecture ties. The pickles stay; the caller asked the user before.

    Returns
    -------
    dict
        The pickles that were read, and what their bytes are.

    Raises
    ------
    MissingResourceError
        When the folder has no pickle of weights, or lacks a shard of it.
    SourceError
        When a pickle holds anything but tensors by name.
    """
    pickles = contents.weights(folder, "pickle")
    for name in pickles or [contents.WHOLE["pickle"]]:
        if not (folder / name).is_file():
            raise MissingResourceError(f"no {name}", where=str(folder), expected="weights that torch saved")
    converted = {}
    for name in pickles:
        log.info("%s: reading its tensors, to write them as %s", folder / name, _renamed(name))
        _save(_load(folder / name), folder / _renamed(name))
        converted[name] = contents.checksum(folder / name)
    index = folder / contents.INDEX["pickle"]
    if pickles != [contents.WHOLE["pickle"]]:
        places = {tensor: _renamed(file) for tensor, file in contents.shards(index, "pickle").items()}
        write_json(folder / contents.INDEX["safetensors"], {"metadata": {}, "weight_map": places})
        converted[index.name] = contents.checksum(index)
    return converted


def _renamed(name: str) -> str:
    """Return the name that transformers looks for: ``model-00001-of-00002.safetensors`` for the first of two shards."""
    return re.sub(r"^pytorch_model", "model", name.removesuffix(".bin")) + ".safetensors"


def _load(path: Path) -> dict[str, Any]:
    import torch

    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, MemoryError):
        raise
    except Exception as error:
        # The class is pickle's own, or zipfile's, or torch's, by what is wrong with the file.
        wanted = re.search(r"GLOBAL (\S+)", str(error))
        raise _refused(
            path, f"asks for {wanted[1]}" if wanted else f"cannot be read ({type(error).__name__})"
        ) from error
    if not isinstance(found, dict):
        raise _refused(path, f"holds one {type(found).__name__}")
    for name, value in found.items():
        if not isinstance(name, str) or not isinstance(value, torch.Tensor):
            raise _refused(path, f"holds a {type(value).__name__} under {name!r}")
    return found


def _refused(path: Path, problem: str) -> SourceError:
    return SourceError(
        f"the pickle {problem}",
        where=str(path),
        expected="tensors by name and nothing else",
        hint="Nothing in it was run. Get the weights as safetensors, or from elsewhere",
    )


def _save(tensors: dict[str, Any], target: Path) -> None:
    import torch
    from safetensors.torch import save_file

    places: set[int] = set()
    for name, tensor in tensors.items():
        place = tensor.untyped_storage().data_ptr()
        shared = place in places
        tensors[name] = tensor.clone(memory_format=torch.contiguous_format) if shared else tensor.contiguous()
        places.add(place)
    with replacing(target) as temporary:
        save_file(tensors, temporary, metadata={"format": "pt"})
