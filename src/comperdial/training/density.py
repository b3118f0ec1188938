"""Train DEnsity (Park et al. 2023): from dialogues to a selection model, the Gaussians of its features, and a card."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import torch
from safetensors.numpy import save_file
from tqdm import tqdm

from comperdial import models
from comperdial.config.parameters import Training
from comperdial.core.errors import ConfigError
from comperdial.core.files import replacing, sha256, write_json, write_text
from comperdial.data.corpora import Dialogue
from comperdial.models import runtime
from comperdial.training import loop
from comperdial.training.pairs import Pairs, Reader
from comperdial.training.selection import Group, SelectionModel, batches
from comperdial.training.trained import ARCHITECTURE, CARD, FORM, GAUSSIANS, WEIGHTS, Gaussian, packed

log = logging.getLogger(__name__)

# Pairs that a Gaussian is fitted to: far more than a feature has dimensions.
_MOST_PAIRS = 4_000
# Wrong responses beside the right one when recall@1 is measured.
_WRONG = 9


def train(
    name: str,
    settings: Training,
    dialogues: Sequence[Dialogue],
    evaluated: Iterable[Sequence[str]],
    folder: Path,
    target: Path,
    *,
    origin: Mapping[str, Mapping[str, Any]],
    unknown: Sequence[str] = (),
) -> dict[str, Any]:
    """Train a model, write its folder and return its card.

    Parameters
    ----------
    name
        What the model is called.
    settings
        How to train: an entry of ``training`` in ``params.yaml``.
    dialogues
        What to train on.
    evaluated
        The texts of all data that metrics are evaluated on: dialogues that share an n-gram with them are left out.
    folder
        Keeps checkpoints: an interrupted training is resumed from there.
    target
        The trained model's folder.
    origin
        What the card says of each corpus: licence, checksum.
    unknown
        Data sets whose texts are not among ``evaluated``: the card names them.

    Raises
    ------
    ConfigError
        If too few dialogues are left.
    MissingResourceError
        If the encoder is not on this machine.
    """
    encoder = models.verified(settings.encoder)
    given = Counter(dialogue.corpus for dialogue in dialogues)
    kept = without_overlap(dialogues, evaluated, settings.overlap)
    removed = given - Counter(dialogue.corpus for dialogue in kept)
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
    held_out = Pairs([kept[place] for place in sorted(apart)], reader)
    log.info("%d pairs to train on, %d dialogues held out", len(pairs), len(apart))

    as_json = settings.model_dump(mode="json", exclude={"corpora"})
    model = SelectionModel(encoder, **{key: as_json[key] for key in ARCHITECTURE}, dropout=settings.dropout)
    data = {"encoder": f"{encoder.name}@{encoder.digest}", "dialogues": _digest(kept)}
    groups = choices(held_out, settings.seed)
    phases = loop.train(model, pairs, groups, settings, folder, data=data)

    # The Gaussian is fitted with the weights as they are shipped.
    weights = {weight: value.detach().half() for weight, value in model.trained().items()}
    model.load_state_dict(weights, strict=False)
    gaussians = fit(model, pairs, settings.seed)
    target.mkdir(parents=True, exist_ok=True)
    arrays = {f"{key}.mean": gaussian.mean for key, (gaussian, _) in gaussians.items()}
    arrays |= {f"{key}.covariance": packed(gaussian.covariance) for key, (gaussian, _) in gaussians.items()}
    with replacing(target / WEIGHTS) as temporary:
        save_file({weight: value.cpu().numpy() for weight, value in weights.items()}, temporary)
    with replacing(target / GAUSSIANS) as temporary:
        save_file(arrays, temporary)
    corpora = [dialogue.corpus for dialogue in held_out.dialogues]
    recalls = {}
    for corpus in ("all", *sorted(set(corpora))):
        chosen = [group for group, of in zip(groups, corpora, strict=True) if corpus in ("all", of)]
        measured = loop.recall(model, chosen)
        recalls[corpus] = {"n": len(chosen), **{key: round(value, 4) for key, value in measured.items()}}
    card = {
        "form": FORM,
        "name": name,
        "encoder": data["encoder"],
        "settings": as_json,
        "corpora": {
            corpus: {**origin.get(corpus, {}), "dialogues": count, "removed for overlap": removed[corpus]}
            for corpus, count in given.items()
        },
        "not checked for overlap": list(unknown),
        "pairs": len(pairs),
        "held-out dialogues": len(apart),
        "held-out": recalls,
        "phases": phases,
        "features": {key: count for key, (_, count) in gaussians.items()},
        "seconds": {"training": sum(phase["seconds"] for phase in phases)},
        "files": {
            file: {"sha256": sha256(target / file), "bytes": (target / file).stat().st_size}
            for file in (WEIGHTS, GAUSSIANS)
        },
    }
    write_json(target / CARD, card)
    template = jinja2.Template(Path(__file__).with_name("card.md").read_text(), keep_trailing_newline=True)
    write_text(target / "README.md", template.render(card, held_out=recalls))
    return card


def without_overlap(dialogues: Sequence[Dialogue], evaluated: Iterable[Sequence[str]], size: int) -> list[Dialogue]:
    """Return the dialogues that share no n-gram of ``size`` words with evaluation data, a list of utterances each.

    N-grams may span utterances, as data sets cut dialogues differently.
    """
    known = {ngram for texts in evaluated for ngram in _ngrams(texts, size)}
    return [dialogue for dialogue in dialogues if known.isdisjoint(_ngrams(dialogue.texts, size))]


def _ngrams(texts: Iterable[str], size: int) -> set[tuple[str, ...]]:
    """Return n-grams of words as all data sets spell them: lower case, no punctuation, contractions in one piece."""
    words = []
    for text in texts:
        joined = re.sub(r"\s+n\s*['\u2019]\s*t\b", "nt", text.lower())
        words += re.findall(r"[^\W_]+", re.sub(r"\s*['\u2019]\s*", "", joined))
    return {tuple(words[start : start + size]) for start in range(len(words) - size + 1)}


def choices(pairs: Pairs, seed: int) -> list[Group]:
    """Return one context of each dialogue, with its response first and nine of other dialogues after it."""
    random = np.random.default_rng([seed, 4])
    owners = pairs.dialogue_of[pairs.answers]
    chosen = [int(random.choice(np.flatnonzero(owners == dialogue))) for dialogue in np.unique(owners)]
    return [pairs.group(pair, _WRONG, random, facts=False) for pair in chosen]


def fit(model: SelectionModel, pairs: Pairs, seed: int) -> dict[str, tuple[Gaussian, int]]:
    """Fit Gaussians (equation 2) to features of training pairs.

    Returns
    -------
    dict
        Under ``plain`` and, if pairs have facts, ``facts``: the Gaussian, and the number of pairs it is fitted to.
    """
    order = np.random.default_rng([seed, 5]).permutation(len(pairs)).tolist()
    fitted = {}
    for key, chosen in (("plain", order), ("facts", [pair for pair in order if pairs.has_facts(pair)])):
        groups = [Group(pairs.context(p, facts=key == "facts"), [pairs.response(p)]) for p in chosen[:_MOST_PAIRS]]
        if len(groups) < 2:
            continue
        read = []
        model.eval()
        for items in tqdm(batches(groups), f"features, {key}", disable=None):
            with torch.inference_mode():
                read.append(model([groups[item] for item in items])[0].cpu())
        features = torch.cat(read).double().numpy()
        fitted[key] = Gaussian(features.mean(axis=0), np.cov(features, rowvar=False, bias=True)), len(groups)
    return fitted


def _digest(dialogues: Sequence[Dialogue]) -> str:
    rows = [[one.corpus, one.id, one.speakers, one.texts, dict(sorted(one.facts.items()))] for one in dialogues]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16]
