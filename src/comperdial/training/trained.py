"""Trained models: write, find, identify and load them.

A trained model is a folder: ``weights.safetensors``, the trained weights in half precision; ``gaussians.safetensors``, mean and
covariance (its lower triangle, row by row) in double precision; ``card.json``, training settings and selection accuracy; and
``README.md``, the same for readers. The rest of the encoder comes from the model named in the card.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from comperdial import models
from comperdial.config.parameters import TrainingLengths
from comperdial.core.errors import FileError, MissingResourceError
from comperdial.core.files import read_json, replacing, sha256, write_json, write_text
from comperdial.models import runtime

if TYPE_CHECKING:
    import torch

    from comperdial.training.pairs import Reader
    from comperdial.training.selection import SelectionModel

Floats = npt.NDArray[np.float64]
WEIGHTS, GAUSSIANS, CARD = "weights.safetensors", "gaussians.safetensors", "card.json"
TRAINED = Path("data/models")
# Format version of a trained model's folder.
_FORM = 1
# Settings in older cards that now have a single value; part of the names of published models.
_ARCHITECTURE = {"attention": "shared", "feature": "pair"}
# Directions with a smaller share of the largest eigenvalue count as empty: features are float32, so variation below a
# hundred-thousandth of their spread is rounding.
_RCOND = 1e-10


@dataclass(frozen=True, eq=False)
class Gaussian:
    """Mean and covariance of features."""

    mean: Floats
    covariance: Floats

    @cached_property
    def inverse(self) -> Floats:
        """Return the pseudo-inverse of the covariance, defined even if features do not span their space."""
        return np.asarray(np.linalg.pinv(self.covariance, rcond=_RCOND, hermitian=True), dtype=np.float64)

    def mahalanobis(self, features: npt.ArrayLike) -> Floats:
        """Return the Mahalanobis distance of n features (n x size) from the mean.

        It is the square root of DEnsity's equation 3 (section 4.3), without its sign.
        """
        shift = np.asarray(features, dtype=np.float64) - self.mean
        return np.sqrt(np.maximum(np.einsum("ij,ij->i", shift @ self.inverse, shift), 0.0))

    def euclidean(self, features: npt.ArrayLike) -> Floats:
        """Return the Euclidean distance of n features from the mean."""
        shift = np.asarray(features, dtype=np.float64) - self.mean
        return np.sqrt(np.einsum("ij,ij->i", shift, shift))


@dataclass(frozen=True)
class Trained:
    """A trained model for contexts and responses, with Gaussians of pairs without (``plain``) and with ``facts``."""

    network: SelectionModel
    reader: Reader
    gaussians: Mapping[str, Gaussian]


def save(
    folder: Path, weights: Mapping[str, torch.Tensor], gaussians: Mapping[str, Gaussian], card: dict[str, Any]
) -> dict[str, Any]:
    """Write a trained model and return its card with the checksums of its files."""
    import jinja2
    from safetensors.numpy import save_file

    arrays: dict[str, Floats] = {}
    for key, gaussian in gaussians.items():
        triangle = gaussian.covariance[np.tril_indices(len(gaussian.mean))]
        arrays |= {f"{key}.mean": gaussian.mean, f"{key}.covariance": np.ascontiguousarray(triangle)}
    files = {}
    for name, content in ((WEIGHTS, {key: value.cpu().numpy() for key, value in weights.items()}), (GAUSSIANS, arrays)):
        with replacing(folder / name) as temporary:
            save_file(content, temporary)
        files[name] = {"sha256": sha256(folder / name), "bytes": (folder / name).stat().st_size}
    card = {"form": _FORM, **card, "files": files}
    write_json(folder / CARD, card)
    template = jinja2.Template(Path(__file__).with_name("card.md").read_text(), keep_trailing_newline=True)
    write_text(folder / "README.md", template.render(card, held_out=card["held-out"]))
    return card


def _folder(trained: str) -> Path:
    """Return the given folder, or the one of that name in ``data/models`` here or of this repository."""
    if "/" in trained or trained.startswith((".", "~")):
        return Path(trained).expanduser()
    here = TRAINED / trained
    shipped = Path(__file__).parents[3] / here
    return shipped if shipped.is_dir() and not here.is_dir() else here


def _read_card(trained: str) -> dict[str, Any]:
    path = _folder(trained) / CARD
    if not path.is_file():
        fetch = "`dvc pull` fetches it, or `comperdial train` makes it"
        problem = f"trained model {trained!r} is not present in {path.parent}; {fetch}"
        expected = f"a folder with {CARD}, {WEIGHTS} and {GAUSSIANS}"
        raise MissingResourceError(problem, where=str(path.parent), expected=expected, hint="docs/density.md")
    card: dict[str, Any] = read_json(path)
    needed = {"form", "name", "encoder", "settings", "features", "files"}
    if not isinstance(card, dict) or not needed <= card.keys() or card["form"] != _FORM:
        expected = f"what `comperdial train` writes (form {_FORM})"
        raise FileError("not the card of a trained model", where=str(path), expected=expected)
    return card


def missing(trained: str, *, facts: bool = False) -> str | None:
    """Return why a trained model cannot be used on this machine; None if it can."""
    try:
        card = _read_card(trained)
        encoder = models.find(card["settings"]["encoder"])
    except MissingResourceError as error:
        return error.problem
    for key, value in _ARCHITECTURE.items():
        if (other := card["settings"].get(key, value)) != value:
            return f"trained model {trained!r} has {key} {other!r}, which only older versions run; train it anew"
    if facts and "facts" not in card["features"]:
        return f"trained model {trained!r} was trained without facts"
    if f"{encoder.name}@{encoder.digest}" != card["encoder"]:
        return f"trained model {trained!r} is of {card['encoder']}, and {encoder.name}@{encoder.digest} is here"
    for name in (WEIGHTS, GAUSSIANS):
        path = _folder(trained) / name
        if not path.is_file() or path.stat().st_size != card["files"][name]["bytes"]:
            return f"{name} of trained model {trained!r} is {'altered' if path.is_file() else 'not present'}"
    return None


def label(trained: str) -> str:
    """Return a trained model's name in signatures, by its checksum and encoder; ``…@absent`` if missing."""
    try:
        card = _read_card(trained)
    except MissingResourceError:
        return f"{Path(trained).name}@absent"
    decisive = {name: card["files"][name]["sha256"] for name in (WEIGHTS, GAUSSIANS)}
    decisive |= {key: card["settings"][key] for key in ("attention_bias", "lengths")} | _ARCHITECTURE
    digest = hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:12]
    return f"{card['name']}@{digest},encoder:{card['encoder']}"


def load(trained: str, dtype: str = "fp32") -> Trained:
    """Load a trained model after verifying its checksums.

    Raises MissingResourceError if it or its encoder is missing or altered, or requires an older version.
    """
    import torch
    from safetensors.torch import load_file

    from comperdial.training.pairs import Reader
    from comperdial.training.selection import SelectionModel

    folder, problem = _folder(trained), missing(trained)
    if problem:
        raise MissingResourceError(problem, where=str(folder), hint="docs/density.md says how to get it")
    card = _read_card(trained)
    for name in (WEIGHTS, GAUSSIANS):
        if (actual := sha256(folder / name)) != (expected := card["files"][name]["sha256"]):
            problem = f"{name} of trained model {trained!r} is altered: sha256 {actual}"
            hint = "Run `dvc pull --force`, or train it anew"
            raise MissingResourceError(problem, where=str(folder), expected=expected, hint=hint)
    settings = card["settings"]
    encoder = models.verified(settings["encoder"])
    model = SelectionModel(encoder, settings["attention_bias"])
    weights = load_file(folder / WEIGHTS)
    if weights.keys() != model.trained().keys():
        where, hint = str(folder / WEIGHTS), "Install the version of transformers that the environment pins"
        raise FileError("does not have this model's weights", where=where, expected="those of its encoder", hint=hint)
    model.load_state_dict(weights, strict=False)
    model.requires_grad_(requires_grad=False)
    if dtype == "bf16":
        model.encoder.to(torch.bfloat16)
    gaussians = {}
    arrays = {key: array.numpy() for key, array in load_file(folder / GAUSSIANS).items()}
    for key in card["features"]:
        triangle = arrays[f"{key}.covariance"]
        size = (math.isqrt(8 * len(triangle) + 1) - 1) // 2
        lower = np.zeros((size, size))
        lower[np.tril_indices(size)] = triangle
        gaussians[key] = Gaussian(arrays[f"{key}.mean"], lower + np.tril(lower, -1).T)
    reader = Reader(runtime.load_tokenizer(encoder), TrainingLengths(**settings["lengths"]))
    return Trained(model, reader, gaussians)
