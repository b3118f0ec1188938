"""Train DEnsity (Park et al. 2023): from dialogues to a selection model, the Gaussians of its features, and a model card.

A step depends only on the settings, the seed and its number, so that a run resumed from a checkpoint gives the same weights as
an uninterrupted one.
"""

from __future__ import annotations

import copy
import hashlib
import json
import logging
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from tqdm import tqdm

from comperdial import models
from comperdial.config.parameters import Training, TrainingPhase
from comperdial.core.errors import ConfigError
from comperdial.core.files import replacing
from comperdial.data.corpora import Dialogue
from comperdial.models import runtime
from comperdial.training.pairs import Pair, Pairs, Reader
from comperdial.training.selection import Group, SelectionModel
from comperdial.training.trained import Gaussian, save

log = logging.getLogger(__name__)

# Pairs for fitting a Gaussian: far more than a feature has dimensions.
_MOST_PAIRS = 4_000
# Negatives per positive in recall@1.
_WRONG = 9
# Batches drawn together and sorted by length, to reduce padding.
_BLOCK = 16
# Random streams.
_ORDER, _BATCH, _HEAD, _HELD_OUT, _CHOICES, _FITTED = range(6)


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
    name, settings, dialogues
        The model's name; its entry of ``training`` in ``params.yaml``; the training dialogues.
    evaluated
        The texts of all evaluation data: dialogues that share an n-gram with them are left out.
    folder
        Holds a checkpoint per phase, from which an interrupted run resumes. Models with the same initial settings share their
        first phases.
    target
        The trained model's folder.
    origin, unknown
        For the card: each corpus's licence and checksum; data sets missing from ``evaluated``.

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
        expected = f"more than the {settings.held_out} that are held out (`held_out`)"
        raise ConfigError(f"{len(kept)} dialogues are left to train on", expected=expected)
    apart = set(_random(settings.seed, _HELD_OUT).permutation(len(kept))[: settings.held_out].tolist())
    reader = Reader(runtime.load_tokenizer(encoder), settings.lengths)
    pairs = Pairs([dialogue for place, dialogue in enumerate(kept) if place not in apart], reader)
    choices = _choices(Pairs([kept[place] for place in sorted(apart)], reader), settings.seed)
    log.info("%d pairs to train on, %d dialogues held out", len(pairs), len(apart))

    model = SelectionModel(encoder, settings.attention_bias, settings.dropout)
    model.start(int(_random(settings.seed, _HEAD).integers(2**62)))
    # Checkpoints with another encoder, other dialogues or other settings are not reused.
    as_json = settings.model_dump(mode="json", exclude={"corpora"})
    decisive = {key: value for key, value in as_json.items() if key not in ("encoder", "overlap", "phases")}
    texts = [[one.corpus, one.id, one.speakers, one.texts, dict(one.facts)] for one in kept]
    decisive |= {"encoder": f"{encoder.name}@{encoder.digest}", "dialogues": _hash(texts)[:16]}
    phases = []
    for number, phase in enumerate(settings.phases):
        path = folder / f"{number}-{phase.loss}-{_hash([decisive, as_json['phases'][: number + 1]])[:12]}.pt"
        measured = _run_phase(model, pairs, [group for _, group in choices], settings, number, path)
        phases.append(phase.model_dump() | measured)

    # Fit the Gaussian with the weights as published.
    weights = {weight: value.detach().half() for weight, value in model.trained().items()}
    model.load_state_dict(weights, strict=False)
    gaussians = fit(model, pairs, settings.seed)
    recalls = {}
    for corpus in ("all", *sorted({corpus for corpus, _ in choices})):
        chosen = [group for of, group in choices if corpus in ("all", of)]
        recalls[corpus] = {"n": len(chosen), **{key: round(value, 4) for key, value in recall(model, chosen).items()}}
    card = {
        "name": name,
        "encoder": decisive["encoder"],
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
    }
    return save(target, weights, {key: gaussian for key, (gaussian, _) in gaussians.items()}, card)


def _random(seed: int, *stream: int) -> np.random.Generator:
    return np.random.default_rng([seed, *stream])


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


# Data


def without_overlap(dialogues: Sequence[Dialogue], evaluated: Iterable[Sequence[str]], size: int) -> list[Dialogue]:
    """Return the dialogues that share no n-gram of ``size`` words with the evaluation data, lists of utterances.

    N-grams may span utterances, since data sets cut dialogues differently.
    """
    known = {ngram for texts in evaluated for ngram in _ngrams(texts, size)}
    return [dialogue for dialogue in dialogues if known.isdisjoint(_ngrams(dialogue.texts, size))]


def _ngrams(texts: Iterable[str], size: int) -> set[tuple[str, ...]]:
    """Return n-grams of normalized words: lower case, no punctuation, contractions in one piece."""
    words = []
    for text in texts:
        joined = re.sub(r"\s+n\s*['\u2019]\s*t\b", "nt", text.lower())
        words += re.findall(r"[^\W_]+", re.sub(r"\s*['\u2019]\s*", "", joined))
    return {tuple(words[start : start + size]) for start in range(len(words) - size + 1)}


def _choices(pairs: Pairs, seed: int) -> list[tuple[str, Group]]:
    """Return one context per dialogue, with its response first and nine from other dialogues; and its corpus."""
    random = _random(seed, _CHOICES)
    own: dict[int, list[Pair]] = defaultdict(list)
    for pair in pairs:
        own[pair.dialogue].append(pair)
    chosen = [several[random.choice(len(several))] for several in own.values()]
    return [(pair.corpus, pairs.group(pair, _WRONG, random, facts=False)) for pair in chosen]


def _batch(pairs: Pairs, phase: TrainingPhase, seed: int, number: int, step: int) -> list[Pair]:
    """Return the pairs of a step, of similar length, from a block of batches of shuffled epochs."""
    block, place = divmod(step, _BLOCK)
    start, end = block * _BLOCK * phase.batch, (block + 1) * _BLOCK * phase.batch
    chosen: list[int] = []
    for epoch in range(start // len(pairs), (end - 1) // len(pairs) + 1):
        order = _random(seed, _ORDER, number, 1_000_000 + epoch).permutation(len(pairs))
        before = epoch * len(pairs)
        chosen += order[max(0, start - before) : end - before].tolist()
    most = pairs.reader.lengths.history
    chosen.sort(key=lambda pair: (min(most, sum(map(len, pairs[pair].history))), pair))
    first = int(_random(seed, _ORDER, number, block).permutation(_BLOCK)[place]) * phase.batch
    return [pairs[pair] for pair in chosen[first : first + phase.batch]]


# Training


def _run_phase(
    model: SelectionModel, pairs: Pairs, held_out: Sequence[Group], settings: Training, number: int, path: Path
) -> dict[str, Any]:
    """Run a phase and restore the weights of its best check; return its duration in seconds and a log of its checks."""
    phase = settings.phases[number]
    # With bf16, the encoder uses rounded copies of the float32 weights that the optimizer updates.
    exact, network = model.trained(), copy.deepcopy(model)
    if settings.dtype == "bf16":
        network.encoder.to(torch.bfloat16)
    computed = network.trained()
    rates = {"encoder": phase.learning_rate, "head": phase.head_learning_rate}
    groups = [
        {
            "params": [w for name, w in exact.items() if name.startswith(part) and (w.ndim < 2) == is_bias],
            "weight_decay": 0.0 if is_bias else 0.01,
        }
        for part in rates
        for is_bias in (False, True)
    ]
    optimizer = torch.optim.AdamW(groups)
    state: dict[str, Any] = {"step": 0, "best": {}, "recall": -1.0, "seconds": 0.0, "log": []}
    if path.is_file():
        state = torch.load(path, map_location="cpu", weights_only=True)
    if 0 < state["step"] < phase.steps:
        log.info("%s: resumed at step %d of %d", path.stem, state["step"], phase.steps)
        _copy(state.pop("weights"), exact)
        _copy(exact, computed)
        optimizer.load_state_dict(state.pop("optimizer"))
    losses: list[float] = []
    begin = time.monotonic() - state["seconds"]
    steps = range(state["step"], phase.steps)
    for step in tqdm(steps, f"phase {number + 1}, {phase.loss}", phase.steps, initial=state["step"], disable=None):
        # The rate rises during the warm-up, then falls linearly to 0.
        left = (phase.steps - step) / max(1, phase.steps - phase.warmup)
        share = (step + 1) / phase.warmup if step < phase.warmup else left
        for group, rate in zip(optimizer.param_groups, np.repeat([*rates.values()], 2).tolist(), strict=True):
            group["lr"] = rate * share
        # Dropout also depends only on the step number.
        torch.manual_seed(int(_random(settings.seed, _BATCH, number, step).integers(2**62)))
        network.train()
        loss = _loss(network, pairs, settings, number, step)
        if not torch.isfinite(loss):
            raise FloatingPointError(f"the loss is {loss.item()} in step {step}")
        loss.backward()
        for name, weight in computed.items():
            exact[name].grad = None if weight.grad is None else weight.grad.float()
            weight.grad = None
        torch.nn.utils.clip_grad_norm_(exact.values(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        _copy(exact, computed)
        losses.append(loss.item())
        if (step + 1) % settings.check_every and step + 1 < phase.steps:
            continue
        measured = recall(network, held_out, cosine=phase.loss == "in-batch")
        if measured["recall_at_1"] > state["recall"]:
            best = {name: weight.detach().clone() for name, weight in exact.items()}
            state |= {"recall": measured["recall_at_1"], "best": best}
        state |= {"step": step + 1, "seconds": time.monotonic() - begin}
        row = {"loss": np.mean(losses), **measured, "seconds": state["seconds"]}
        state["log"].append({"step": step + 1, **{key: round(float(value), 4) for key, value in row.items()}})
        log.info("%s: %s", path.stem, state["log"][-1])
        losses = []
        weights = {name: weight.detach() for name, weight in exact.items()}
        unfinished = {"weights": weights, "optimizer": optimizer.state_dict()} if step + 1 < phase.steps else {}
        with replacing(path) as temporary:
            torch.save(state | unfinished, temporary)
    _copy(state["best"], exact)
    return {"seconds": round(state["seconds"]), "log": state["log"]}


def _copy(source: Mapping[str, Tensor], target: Mapping[str, Tensor]) -> None:
    with torch.no_grad():
        for name, weight in target.items():
            weight.copy_(source[name])


def _loss(model: SelectionModel, pairs: Pairs, settings: Training, number: int, step: int) -> Tensor:
    phase, random = settings.phases[number], _random(settings.seed, _BATCH, number, step)
    batch = _batch(pairs, phase, settings.seed, number, step)
    drawn = [(pair, bool(share < settings.facts)) for pair, share in zip(batch, random.random(len(batch)), strict=True)]
    if phase.loss == "in-batch":
        contexts = [pairs.context(pair, facts=facts) for pair, facts in drawn]
        responses = [pairs.response(pair) for pair in batch]
        u, v = model.vectors(contexts), model.vectors(responses, [len(context) for context in contexts])
        return in_batch_loss(u, v, responses, phase.temperature)
    groups = [pairs.group(pair, settings.negatives, random, facts=facts) for pair, facts in drawn]
    features, scores = model(groups)
    sizes = [len(group.candidates) for group in groups]
    loss = selection_loss(scores, sizes)
    if phase.contrastive:
        right = torch.tensor([place == 0 for size in sizes for place in range(size)], device=features.device)
        loss = loss + phase.contrastive * contrastive_loss(features, right, phase.temperature)
    return loss


def in_batch_loss(u: Tensor, v: Tensor, responses: Sequence[Sequence[int]], temperature: float) -> Tensor:
    """Return the symmetric in-batch loss of matching contexts and responses."""
    cosines = functional.normalize(u, dim=1) @ functional.normalize(v, dim=1).T / temperature
    # A copy of the response in the same batch is not a negative.
    same = torch.tensor([[a == b for b in responses] for a in responses], device=u.device)
    cosines = cosines.masked_fill(same.fill_diagonal_(fill_value=False), -torch.inf)
    right = torch.arange(len(u), device=u.device)
    return (functional.cross_entropy(cosines, right) + functional.cross_entropy(cosines.T, right)) / 2


def selection_loss(scores: Tensor, sizes: Sequence[int]) -> Tensor:
    """Return DEnsity's equation 1, averaged over contexts; the first candidate of each is the positive."""
    return torch.stack([group.logsumexp(dim=0) - group[0] for group in scores.split(list(sizes))]).mean()


def contrastive_loss(features: Tensor, right: Tensor, temperature: float) -> Tensor:
    """Return DEnsity's equation 4, averaged over positive pairs, which form one class.

    ``features`` (n x size) are those of all (context, candidate) pairs in the batch; ``right`` marks pairs of a context and its
    own response; cosines are divided by ``temperature``.
    """
    z = functional.normalize(features, dim=1)
    own = torch.nonzero(right)[:, 0]
    rows = z[own] @ z.T / temperature
    itself = functional.one_hot(own, len(z)).bool()
    likelihoods = rows - rows.masked_fill(itself, -torch.inf).logsumexp(dim=1, keepdim=True)
    others = right & ~itself
    return -(likelihoods.masked_fill(~others, 0.0).sum(dim=1) / others.sum(dim=1).clamp(min=1)).mean()


def _read(groups: Sequence[Group], what: str | None = None) -> Iterator[tuple[list[int], list[Group]]]:
    """Yield batches of groups of similar length with their indices, sized for the device."""
    batches = runtime.batches([group.tokens for group in groups], runtime.batch_tokens(cpu=4096))
    for items in tqdm(list(batches), what, disable=None if what else True):
        yield list(items), [groups[item] for item in items]


@torch.inference_mode()
def recall(model: SelectionModel, groups: Sequence[Group], *, cosine: bool = False) -> dict[str, float]:
    """Return recall@1 and mean reciprocal rank of each group's first candidate; ties count against it.

    ``cosine``: rank by the cosine of separately encoded context and response vectors.
    """
    ranks = np.empty(len(groups))
    model.eval()
    for items, chosen in _read(groups):
        sizes = [len(group.candidates) for group in chosen]
        if cosine:
            u = model.vectors([group.context for group in chosen])
            candidates = [candidate for group in chosen for candidate in group.candidates]
            v = model.vectors(candidates, [len(group.context) for group in chosen for _ in group.candidates])
            scores = functional.cosine_similarity(u[np.repeat(np.arange(len(chosen)), sizes).tolist()], v, dim=1)
        else:
            scores = model(chosen)[1]
        ranks[items] = [int((values >= values[0]).sum()) for values in scores.split(sizes)]
    return {"recall_at_1": float((ranks == 1).mean()), "mrr": float((1 / ranks).mean())}


@torch.inference_mode()
def fit(model: SelectionModel, pairs: Pairs, seed: int) -> dict[str, tuple[Gaussian, int]]:
    """Fit Gaussians (equation 2) to features of training pairs.

    Returns ``plain`` and, if pairs have facts, ``facts``: the Gaussian, and its number of pairs.
    """
    order = [pairs[place] for place in _random(seed, _FITTED).permutation(len(pairs)).tolist()]
    fitted = {}
    model.eval()
    for key, chosen in (("plain", order), ("facts", [pair for pair in order if pair.facts])):
        groups = [Group(pairs.context(p, facts=key == "facts"), [pairs.response(p)]) for p in chosen[:_MOST_PAIRS]]
        if len(groups) > 1:
            read = [model(batch)[0].cpu() for _, batch in _read(groups, f"features, {key}")]
            features = torch.cat(read).double().numpy()
            fitted[key] = Gaussian(features.mean(axis=0), np.cov(features, rowvar=False, bias=True)), len(groups)
    return fitted
