"""Train DEnsity (Park et al. 2023): dialogues in, a selection model and Gaussians of its features out.

A trained model is a folder: ``weights.safetensors``, the weights that training changed, in half precision;
``gaussians.safetensors``, mean and covariance in double precision; ``card.json``, what it was made of and how well it
selects, and ``README.md``, the same to read. The rest of the encoder is the model that the card names.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from comperdial import models
from comperdial.core.errors import ConfigError, FileError, MissingResourceError
from comperdial.core.files import read_json, replacing, sha256, write_json, write_text
from comperdial.data.corpora import Dialogue
from comperdial.models import runtime
from comperdial.training import loop
from comperdial.training.gaussian import Gaussian, Moments
from comperdial.training.loop import Phase, Plan
from comperdial.training.overlap import without_overlap
from comperdial.training.pairs import Lengths, Negatives, Pairs, Reader
from comperdial.training.selection import Architecture, Group, SelectionModel

if TYPE_CHECKING:
    import numpy.typing as npt

log = logging.getLogger(__name__)

WEIGHTS, GAUSSIANS, CARD = "weights.safetensors", "gaussians.safetensors", "card.json"
TRAINED = Path("data/models")
FORM = 1
"""Raised when a trained model's folder takes another form."""

# The right response and nine of other dialogues, as recall@1 is reported.
_CHOICES = Negatives(random=9, near=0, dialogue=0, altered=0)


@dataclass(frozen=True)
class Settings:
    """What a model is trained with: an entry of ``training`` in ``params.yaml``.

    Attributes
    ----------
    encoder
        A model that ``comperdial models`` lists, or a folder.
    attention, feature
        As :class:`~comperdial.training.selection.Architecture` has them.
    seed
        Of all that is drawn.
    held_out
        Dialogues that are kept from training, to choose the best checkpoint by.
    overlap
        Words of the n-grams by which dialogues of evaluation data are found.
    facts
        The share of pairs that are read with their facts, among those that have any.
    dropout
        Of the encoder while it is trained.
    """

    phases: tuple[Phase, ...]
    encoder: str = "all-MiniLM-L6-v2"
    attention: Literal["shared", "full"] = "shared"
    feature: Literal["pair", "cls"] = "pair"
    lengths: Lengths = field(default_factory=Lengths)
    negatives: Negatives = field(default_factory=Negatives)
    seed: int = 2024
    held_out: int = 400
    overlap: int = 13
    facts: float = 0.5
    dropout: float = 0.0
    dtype: Literal["fp32", "bf16"] = "bf16"
    check_every: int = 250


def train(
    name: str,
    settings: Settings,
    dialogues: Sequence[Dialogue],
    evaluated: Iterable[Sequence[str]],
    folder: Path,
    target: Path,
    *,
    origin: Mapping[str, Any],
) -> dict[str, Any]:
    """Train a model and write its folder.

    Parameters
    ----------
    name
        What the model is called.
    settings
        How to train.
    dialogues
        What to train on.
    evaluated
        The texts of all data that metrics are evaluated on: dialogues that share an n-gram with them are left out.
    folder
        Where checkpoints are kept: what is interrupted goes on from there.
    target
        The trained model's folder.
    origin
        What the card says of the corpora: licences, checksums, by corpus.

    Returns
    -------
    dict
        The card.

    Raises
    ------
    ConfigError
        When too few dialogues are left.
    MissingResourceError
        When the encoder is not on this machine.
    """
    began = time.monotonic()
    if lacking := runtime.missing_packages():
        raise MissingResourceError(lacking)
    encoder = models.verified(settings.encoder)
    given = Counter(dialogue.corpus for dialogue in dialogues)
    kept, removed = without_overlap(dialogues, evaluated, settings.overlap)
    for corpus, count in given.items():
        log.info("%s: %d of %d dialogues overlap with evaluation data and are left out", corpus, removed[corpus], count)
    if len(kept) < settings.held_out + 2:
        raise ConfigError(
            f"{len(kept)} dialogues are left to train on",
            expected=f"more than the {settings.held_out} that are held out (`held_out`)",
        )
    order = np.random.default_rng([settings.seed, 3]).permutation(len(kept))
    apart = set(order[: settings.held_out].tolist())
    reader = Reader(runtime.load_tokenizer(encoder), settings.lengths)
    pairs = Pairs([dialogue for place, dialogue in enumerate(kept) if place not in apart], reader)
    tried = Pairs([kept[place] for place in sorted(apart)], reader)
    log.info("%d pairs of %d dialogues to train on, %d dialogues held out", len(pairs), len(pairs.dialogues), len(apart))

    model = make(settings, encoder)
    plan = Plan(
        settings.phases,
        settings.negatives,
        settings.seed,
        settings.facts,
        settings.dtype,
        settings.check_every,
    )
    settled = {
        "dialogues": _digest(kept),
        "encoder": f"{encoder.name}@{encoder.digest}",
        **{
            key: value
            for key, value in asdict(settings).items()
            if key not in ("phases", "encoder", "overlap", "check_every")
        },
    }
    done = loop.train(model, pairs, choices(tried, settings.seed), plan, folder, settled=settled)
    # What is shipped is what the Gaussian is of.
    weights = rounded(model)
    card = {
        "form": FORM,
        "name": name,
        "encoder": settled["encoder"],
        "settings": json.loads(json.dumps(asdict(settings))),
        "corpora": {
            corpus: {
                **origin.get(corpus, {}),
                "dialogues": count,
                "removed for overlap": removed[corpus],
            }
            for corpus, count in given.items()
        },
        "pairs": len(pairs),
        "held-out dialogues": len(apart),
        "held-out": _figures(model, tried, settings.seed),
        "phases": done,
    }
    gaussians = fit(model, pairs, settings.seed)
    card["features"] = {key: moments[1] for key, moments in gaussians.items()}
    card["seconds"] = {
        "training": sum(phase["seconds"] for phase in done),
        "this run": round(time.monotonic() - began),
    }
    write(target, card, weights, {key: moments[0] for key, moments in gaussians.items()})
    return card


def make(settings: Settings, encoder: models.Model) -> SelectionModel:
    """Return a selection model on an encoder, with the head not yet trained."""
    import torch

    # On a CPU the plain form of attention is faster: heads are small, and masks differ from row to row.
    network = runtime.load(encoder, attn_implementation="eager")
    network.config.attention_probs_dropout_prob = settings.dropout
    for part in network.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = settings.dropout
        if hasattr(part, "dropout_prob"):
            part.dropout_prob = settings.dropout
    return SelectionModel(network, Architecture(settings.attention, settings.feature))


def choices(pairs: Pairs, seed: int) -> list[Group]:
    """Return one context of each dialogue, with its response first and nine of other dialogues after it."""
    random = np.random.default_rng([seed, 4])
    answers = pairs.owner[pairs.answers]
    chosen = [int(random.choice(np.flatnonzero(answers == dialogue))) for dialogue in np.unique(answers)]
    return [pairs.group(pair, _CHOICES, random, facts=False) for pair in chosen]


def _figures(model: SelectionModel, tried: Pairs, seed: int) -> dict[str, dict[str, float]]:
    """Return recall@1 and MRR on held-out dialogues, of all and of each corpus, with the weights as they are shipped."""
    groups = choices(tried, seed)
    corpora = [dialogue.corpus for dialogue in tried.dialogues]
    found = {}
    for corpus in ("all", *sorted(set(corpora))):
        chosen = [group for group, of in zip(groups, corpora, strict=True) if corpus in ("all", of)]
        figures = asdict(loop.recall(model, chosen))
        found[corpus] = {"n": len(chosen), **{key: round(value, 4) for key, value in figures.items()}}
    return found


def rounded(model: SelectionModel) -> dict[str, npt.NDArray[np.float16]]:
    """Round a model's trained weights to half precision, and return them."""
    import torch

    found = {}
    with torch.no_grad():
        for name, weight in model.trained().items():
            weight.copy_(weight.half().float())
            found[name] = weight.half().cpu().numpy()
    return found


# Pairs that a Gaussian is of: far more than a feature has dimensions.
_MOST = 12_000


def fit(model: SelectionModel, pairs: Pairs, seed: int) -> dict[str, tuple[Gaussian, int]]:
    """Fit the Gaussians of the features of training pairs: without facts, and with them if there are any.

    Returns
    -------
    dict
        Under ``plain`` and ``facts``: the Gaussian, and of how many pairs it is.
    """
    from tqdm import tqdm

    order = np.random.default_rng([seed, 5]).permutation(len(pairs))
    with_facts = [int(pair) for pair in order if pairs.has_facts(pair)][:_MOST]
    found = {}
    for key, chosen in (("plain", [int(pair) for pair in order[:_MOST]]), ("facts", with_facts)):
        groups = [
            Group(pairs.context(pair, facts=key == "facts"), [pairs.response(pair)]) for pair in chosen
        ]
        if len(groups) < 2:
            continue
        moments = Moments(model.size)
        for _, features, _ in tqdm(read(model, groups), f"features, {key}", disable=None):
            moments.add(features)
        found[key] = (moments.gaussian(), moments.count)
    return found


def read(model: SelectionModel, groups: Sequence[Group]) -> Any:  # noqa: ANN401
    """Yield, a batch at a time, which groups it holds, and the features and scores of their candidates, in order."""
    import torch

    model.network.eval()
    for items in loop.batches(groups):
        with torch.inference_mode():
            features, scores = model.read([groups[item] for item in items])
        yield items, features.float().cpu().numpy(), scores.float().cpu().numpy()


def write(
    target: Path,
    card: Mapping[str, Any],
    weights: Mapping[str, npt.NDArray[np.float16]],
    gaussians: Mapping[str, Gaussian],
) -> None:
    """Write a trained model's folder."""
    from safetensors.numpy import save_file

    target.mkdir(parents=True, exist_ok=True)
    with replacing(target / WEIGHTS) as temporary:
        save_file({name: np.ascontiguousarray(array) for name, array in weights.items()}, temporary)
    arrays: dict[str, npt.NDArray[np.float64]] = {}
    for key, gaussian in gaussians.items():
        arrays |= {f"{key}.mean": gaussian.mean, f"{key}.covariance": packed(gaussian.covariance)}
    with replacing(target / GAUSSIANS) as temporary:
        save_file(arrays, temporary)
    bytes_ = {name: {"sha256": sha256(target / name), "bytes": (target / name).stat().st_size} for name in (WEIGHTS, GAUSSIANS)}
    write_json(target / CARD, {**card, "files": bytes_})
    write_text(target / "README.md", readable({**card, "files": bytes_}))


def _digest(dialogues: Sequence[Dialogue]) -> str:
    state = hashlib.sha256()
    for dialogue in dialogues:
        told = [dialogue.corpus, dialogue.id, dialogue.speakers, dialogue.texts, dict(sorted(dialogue.facts.items()))]
        state.update(json.dumps(told).encode())
    return state.hexdigest()[:16]


def readable(card: Mapping[str, Any]) -> str:
    """Return a card as Markdown."""
    lines = [f"# {card['name']}", "", "DEnsity (Park et al. 2023), trained by `comperdial train`; docs/density.md."]
    phases = card["phases"]
    lines += ["", f"- Encoder: {card['encoder']}; its tables of words and positions are not trained and not in here."]
    lines += [f"- Seed {card['settings']['seed']}, {card['pairs']:,} training pairs, {card['seconds']['training']:,} s."]
    lines += ["- Recall@1 and MRR on held-out dialogues, the right response among ten:"]
    lines += [
        f"  - {corpus}: {found['recall_at_1']:.3f}, {found['mrr']:.3f} ({found['n']} dialogues)"
        for corpus, found in card["held-out"].items()
    ]
    lines += ["", "## Training", ""]
    lines += [
        f"- {phase['steps']:,} steps of {phase['batch']} contexts, loss {phase['loss']}"
        + (f" with the contrastive loss (weight {phase['contrastive']:g})" if phase["contrastive"] else "")
        + f", learning rate {phase['learning_rate']:g}: {phase['seconds']:,} s"
        for phase in phases
    ]
    lines += ["", "## Corpora", ""]
    for corpus, told in card["corpora"].items():
        overlap = f"{told['dialogues']:,} dialogues, {told['removed for overlap']:,} left out for overlap with evaluation data"
        lines.append(f"- {corpus}: {overlap}; licence: {told.get('licence', 'not stated')}. {told.get('citation', '')}".rstrip())
    lines += ["", "The weights are half precision; the Gaussians are of the features that these rounded weights give."]
    lines += ["The corpora's own licences hold for their texts, none of which is in this folder.", ""]
    return "\n".join(lines)


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
    """Return the folder of a trained model: itself, or of that name below ``data/models``."""
    return Path(trained).expanduser() if "/" in trained or trained.startswith((".", "~")) else TRAINED / trained


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
            f"trained model {trained!r} is not present",
            where=str(path.parent),
            expected=f"a folder with {CARD}, {WEIGHTS} and {GAUSSIANS}",
            hint="Run `dvc pull` for the one that comes with the repository, or `comperdial train` (docs/density.md)",
        )
    card = read_json(path)
    try:
        if card["form"] != FORM:
            raise FileError(f"form {card['form']}", where=str(path), expected=f"form {FORM}: train the model anew")
        settings_of(card)
        _ = card["encoder"].split("@")[0], [card["files"][name]["sha256"] for name in (WEIGHTS, GAUSSIANS)], card["features"]
    except (TypeError, KeyError, AttributeError) as error:
        raise FileError("no card of a trained model", where=str(path), expected="what `comperdial train` writes") from error
    return card  # type: ignore[no-any-return]


def settings_of(card: Mapping[str, Any]) -> Settings:
    """Return the settings that a card records."""
    said = dict(card["settings"])
    said["phases"] = tuple(Phase(**phase) for phase in said["phases"])
    said["lengths"] = Lengths(**said["lengths"])
    said["negatives"] = Negatives(**said["negatives"])
    return Settings(**said)


def missing(trained: str, *, facts: bool = False) -> str | None:
    """Say why a trained model cannot be used on this machine; None when it can."""
    try:
        card = read_card(trained)
        if facts and "facts" not in card["features"]:
            return f"trained model {trained!r} has seen no facts"
        settings = settings_of(card)
        found = models.find(settings.encoder)
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
    told |= {key: card["settings"][key] for key in ("attention", "feature", "lengths")}
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
    settings = settings_of(card)
    encoder = models.verified(settings.encoder)
    model = make(settings, encoder)
    loop.load(model, folder / WEIGHTS)
    model.network.requires_grad_(requires_grad=False)
    if dtype == "bf16":
        model.encoder.to(torch.bfloat16)
    arrays = load_file(folder / GAUSSIANS)
    gaussians = {
        key: Gaussian(arrays[f"{key}.mean"], unpacked(arrays[f"{key}.covariance"])) for key in card["features"]
    }
    return Trained(model, Reader(runtime.load_tokenizer(encoder), settings.lengths), gaussians, folder)


def packed(covariance: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the lower triangle of a symmetric matrix, row by row."""
    return np.ascontiguousarray(covariance[np.tril_indices(len(covariance))])


def unpacked(triangle: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the symmetric matrix of :func:`packed`."""
    size = (math.isqrt(8 * len(triangle) + 1) - 1) // 2
    matrix = np.zeros((size, size))
    matrix[np.tril_indices(size)] = triangle
    return np.tril(matrix) + np.tril(matrix, -1).T
