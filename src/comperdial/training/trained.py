"""Trained models: find them, name them by their bytes, load them.

A trained model is a folder: ``weights.safetensors``, the weights that training changed, in half precision;
``gaussians.safetensors``, mean and covariance in double precision; ``card.json``, what it was made of and how well it
selects, and ``README.md``, the same to read. The rest of the encoder is the model that the card names.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from comperdial import models
from comperdial.core.errors import FileError, MissingResourceError
from comperdial.core.files import read_json, sha256
from comperdial.models import runtime
from comperdial.training import selection
from comperdial.training.gaussian import Gaussian
from comperdial.training.reading import Lengths, Reader
from comperdial.training.selection import Architecture, SelectionModel

WEIGHTS, GAUSSIANS, CARD = "weights.safetensors", "gaussians.safetensors", "card.json"
TRAINED = Path("data/models")
FORM = 1
"""Raised when a trained model's folder takes another form."""


@dataclass(frozen=True)
class Trained:
    """A trained model, ready to read contexts and responses."""

    network: SelectionModel
    reader: Reader
    gaussians: Mapping[str, Gaussian]
    where: Path

    def gaussian(self, *, facts: bool) -> Gaussian:
        """Return the Gaussian of pairs with or without facts."""
        return self.gaussians["facts" if facts else "plain"]


def folder_of(trained: str) -> Path:
    """Return the folder of a trained model: itself, or of that name below ``data/models`` here or where this package is."""
    if "/" in trained or trained.startswith((".", "~")):
        return Path(trained).expanduser()
    here = TRAINED / trained
    shipped = Path(__file__).parents[3] / here
    return shipped if shipped.is_dir() and not here.is_dir() else here


def read_card(trained: str) -> dict[str, Any]:
    """Read the card of a trained model.

    Raises
    ------
    MissingResourceError
        When it is not there.
    FileError
        When it is no such card.
    """
    path = folder_of(trained) / CARD
    if not path.is_file():
        raise MissingResourceError(
            f"trained model {trained!r} is not present in {path.parent}; `dvc pull` fetches it, or `comperdial train` makes "
            "it",
            where=str(path.parent),
            expected=f"a folder with {CARD}, {WEIGHTS} and {GAUSSIANS}",
            hint="docs/density.md",
        )
    card = read_json(path)
    try:
        if card["form"] != FORM:
            raise FileError(f"form {card['form']}", where=str(path), expected=f"form {FORM}: train the model anew")
        # Asked for now: a card that lacks something should say so before a model is loaded.
        _how(card)
        _ = card["encoder"] + card["name"], [card["files"][name]["sha256"] for name in (WEIGHTS, GAUSSIANS)]
        _ = [card["files"][name]["bytes"] + 1 for name in (WEIGHTS, GAUSSIANS)], set(card["features"])
    except (TypeError, KeyError, AttributeError) as error:
        raise FileError(
            "no card of a trained model", where=str(path), expected="what `comperdial train` writes"
        ) from error
    return card


def _how(card: Mapping[str, Any]) -> tuple[str, Architecture, Lengths]:
    """Return a trained model's encoder, as it was named, and how it reads."""
    said = card["settings"]
    architecture = Architecture(said["attention"], said["feature"], said["attention_bias"])
    return said["encoder"], architecture, Lengths(**said["lengths"])


def missing(trained: str, *, facts: bool = False) -> str | None:
    """Say why a trained model cannot be used on this machine; None when it can."""
    try:
        card = read_card(trained)
        if facts and "facts" not in card["features"]:
            return f"trained model {trained!r} has seen no facts"
        found = models.find(_how(card)[0])
    except MissingResourceError as error:
        return error.problem
    if f"{found.name}@{found.digest}" != card["encoder"]:
        return f"trained model {trained!r} is of {card['encoder']}, and {found.name}@{found.digest} is here"
    for name in (WEIGHTS, GAUSSIANS):
        path = folder_of(trained) / name
        if not path.is_file() or path.stat().st_size != card["files"][name]["bytes"]:
            return f"{name} of trained model {trained!r} is {'altered' if path.is_file() else 'not present'}"
    return None


def label(trained: str) -> str:
    """Return how a signature names a trained model: by its bytes and its encoder; ``…@absent`` where it is not."""
    try:
        card = read_card(trained)
    except MissingResourceError:
        return f"{Path(trained).name}@absent"
    told = {name: card["files"][name]["sha256"] for name in (WEIGHTS, GAUSSIANS)}
    told |= {key: card["settings"][key] for key in ("attention", "feature", "attention_bias", "lengths")}
    digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:12]
    return f"{card['name']}@{digest},encoder:{card['encoder']}"


def load(trained: str, dtype: str = "fp32") -> Trained:
    """Load a trained model, with every byte of it checked.

    Raises
    ------
    MissingResourceError
        When it, or its encoder, is not there or altered.
    """
    import torch
    from safetensors.numpy import load_file

    if problem := missing(trained):
        raise MissingResourceError(problem, where=str(folder_of(trained)), hint="docs/density.md says how to get it")
    card, folder = read_card(trained), folder_of(trained)
    for name in (WEIGHTS, GAUSSIANS):
        if (found := sha256(folder / name)) != card["files"][name]["sha256"]:
            raise MissingResourceError(
                f"{name} of trained model {trained!r} is altered: sha256 {found}",
                where=str(folder),
                expected=card["files"][name]["sha256"],
                hint="Run `dvc pull --force`, or train it anew",
            )
    name, architecture, lengths = _how(card)
    encoder = models.verified(name)
    model = selection.make(encoder, architecture)
    selection.load(model, folder / WEIGHTS)
    model.network.requires_grad_(requires_grad=False)
    if dtype == "bf16":
        model.encoder.to(torch.bfloat16)
    arrays = load_file(folder / GAUSSIANS)
    gaussians = {
        key: Gaussian(arrays[f"{key}.mean"], unpacked(arrays[f"{key}.covariance"])) for key in card["features"]
    }
    return Trained(model, Reader(runtime.load_tokenizer(encoder), lengths), gaussians, folder)


def packed(covariance: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the lower triangle of a symmetric matrix, row by row."""
    return np.ascontiguousarray(covariance[np.tril_indices(len(covariance))])


def unpacked(triangle: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the symmetric matrix of :func:`packed`."""
    size = (math.isqrt(8 * len(triangle) + 1) - 1) // 2
    matrix = np.zeros((size, size))
    matrix[np.tril_indices(size)] = triangle
    return np.tril(matrix) + np.tril(matrix, -1).T
