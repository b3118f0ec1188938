"""Train DEnsity (Park et al. 2023): dialogues in, a selection model and Gaussians of its features out."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from comperdial import models
from comperdial.core.errors import ConfigError, MissingResourceError
from comperdial.core.files import replacing, sha256, write_json, write_text
from comperdial.data.corpora import Dialogue
from comperdial.models import runtime
from comperdial.training import loop, selection
from comperdial.training.gaussian import Gaussian, Moments
from comperdial.training.loop import Phase, Plan
from comperdial.training.overlap import without_overlap
from comperdial.training.pairs import Negatives, Pairs
from comperdial.training.reading import Lengths, Reader
from comperdial.training.selection import Architecture, Group, SelectionModel, read
from comperdial.training.trained import CARD, FORM, GAUSSIANS, WEIGHTS, packed

if TYPE_CHECKING:
    import numpy.typing as npt

log = logging.getLogger(__name__)

# The right response and nine of other dialogues, as recall@1 is reported.
_CHOICES = Negatives(random=9, near=0, dialogue=0, altered=0)


@dataclass(frozen=True)
class Settings:
    """What a model is trained with: an entry of ``training`` in ``params.yaml``.

    Attributes
    ----------
    encoder
        A model that ``comperdial models`` lists, or a folder.
    attention, feature, attention_bias
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
    attention_bias: float = -6.0
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
    unknown: Sequence[str] = (),
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
    unknown
        Data sets whose texts are not among ``evaluated``: the card names them.

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
    log.info(
        "%d pairs of %d dialogues to train on, %d dialogues held out", len(pairs), len(pairs.dialogues), len(apart)
    )

    architecture = Architecture(settings.attention, settings.feature, settings.attention_bias)
    model = selection.make(encoder, architecture, settings.dropout)
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
            if key not in ("phases", "encoder", "overlap", "negatives", "check_every")
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
        "not checked for overlap": list(unknown),
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
_MOST = 4_000


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
        groups = [Group(pairs.context(pair, facts=key == "facts"), [pairs.response(pair)]) for pair in chosen]
        if len(groups) < 2:
            continue
        moments = Moments(model.size)
        for _, features, _ in tqdm(read(model, groups), f"features, {key}", disable=None):
            moments.add(features)
        found[key] = (moments.gaussian(), moments.count)
    return found


def settings_of(given: Mapping[str, Any]) -> Settings:
    """Return the settings of an entry of ``training``, less its corpora."""
    said = dict(given)
    said["phases"] = tuple(Phase(**phase) for phase in said["phases"])
    said["lengths"] = Lengths(**said["lengths"])
    said["negatives"] = Negatives(**said["negatives"])
    return Settings(**said)


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
    bytes_ = {
        name: {"sha256": sha256(target / name), "bytes": (target / name).stat().st_size}
        for name in (WEIGHTS, GAUSSIANS)
    }
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
    lines += [
        f"- Seed {card['settings']['seed']}, {card['pairs']:,} training pairs, {card['seconds']['training']:,} s."
    ]
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
        lines.append(
            f"- {corpus}: {overlap}; licence: {told.get('licence', 'not stated')}. {told.get('citation', '')}".rstrip()
        )
    lines += ["", "The weights are half precision; the Gaussians are of the features that these rounded weights give."]
    lines += [
        "None of the corpora's texts is in this folder. Whoever passes the weights on should know the licences above:"
    ]
    lines += ["one with NC does not allow commercial use.", ""]
    return "\n".join(lines)
