"""The training loop of the selection model, with its losses.

What a step does depends only on the settings, the seed and the number of the step, so a run that is resumed from a
checkpoint ends with the weights of an uninterrupted run.
"""

from __future__ import annotations

import copy
import hashlib
import json
import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from tqdm import tqdm

from comperdial.config.parameters import Training, TrainingPhase
from comperdial.core.files import replacing
from comperdial.training.pairs import Pairs
from comperdial.training.selection import Group, SelectionModel, batches

log = logging.getLogger(__name__)

# Batches that are drawn at once and sorted by length, so that little of a batch is padding.
_BLOCK = 16
_ORDER, _BATCH, _HEAD = 0, 1, 2


def train(
    model: SelectionModel,
    pairs: Pairs,
    held_out: Sequence[Group],
    settings: Training,
    folder: Path,
    *,
    data: Mapping[str, str],
) -> list[dict[str, Any]]:
    """Train a model through all phases of its settings; each ends with the weights of its best check.

    Parameters
    ----------
    model
        What to train; its encoder has its first weights.
    pairs
        What to train on.
    held_out
        Contexts of other dialogues, each with the right response first.
    settings
        How to train: an entry of ``training`` in ``params.yaml``.
    folder
        Keeps a checkpoint of each phase. Models that begin with the same settings share their first phases.
    data
        Names the encoder and the dialogues: a checkpoint of others is not used.

    Returns
    -------
    list of dict
        Of each phase: its settings, how long it took, and a log of its checks.
    """
    model.start(int(_random(settings.seed, _HEAD).integers(2**62)))
    shared = settings.model_dump(mode="json", exclude={"corpora", "encoder", "overlap", "phases"}) | dict(data)
    reports = []
    for number, phase in enumerate(settings.phases):
        decisive = [shared, [one.model_dump() for one in settings.phases[: number + 1]]]
        digest = hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:12]
        path = folder / f"{number}-{phase.loss}-{digest}.pt"
        report = _train_phase(model, pairs, held_out, settings, number, path)
        reports.append(phase.model_dump() | report)
    return reports


def _train_phase(
    model: SelectionModel, pairs: Pairs, held_out: Sequence[Group], settings: Training, number: int, path: Path
) -> dict[str, Any]:
    phase = settings.phases[number]
    exact = model.trained()
    # With bf16 the encoder computes in bfloat16, on roundings of the float32 weights that the optimiser changes.
    network = model
    if settings.dtype == "bf16":
        network = copy.deepcopy(model)
        network.encoder.to(torch.bfloat16)
    computed = network.trained()
    optimizer = torch.optim.AdamW(
        [
            {
                "params": [w for name, w in exact.items() if name.startswith(part) and (w.ndim < 2) == is_bias],
                "weight_decay": 0.0 if is_bias else 0.01,
                "full_lr": rate,
            }
            for part, rate in (("encoder", phase.learning_rate), ("head", phase.head_learning_rate))
            for is_bias in (False, True)
        ]
    )
    state: dict[str, Any] = {"step": 0, "best": {}, "recall": -1.0, "seconds": 0.0, "log": []}
    if path.is_file():
        state = torch.load(path, map_location="cpu", weights_only=True)
        if state["step"] < phase.steps:
            log.info("%s: resumed at step %d of %d", path.stem, state["step"], phase.steps)
            _copy(state.pop("weights"), exact)
            _copy(exact, computed)
            optimizer.load_state_dict(state.pop("optimizer"))
    losses: list[float] = []
    begin = time.monotonic() - state["seconds"]
    progress = tqdm(total=phase.steps, initial=state["step"], desc=f"phase {number + 1}, {phase.loss}", disable=None)
    while (step := state["step"]) < phase.steps:
        for group in optimizer.param_groups:
            group["lr"] = group["full_lr"] * _rate(step, phase)
        # Dropout too depends only on the number of the step.
        torch.manual_seed(int(_random(settings.seed, _BATCH, number, step).integers(2**62)))
        network.train()
        loss = _loss(network, pairs, settings, number, step)
        if not torch.isfinite(loss):
            raise FloatingPointError(f"the loss is {loss.item()} in step {step}")
        loss.backward()
        if network is not model:
            for name, weight in computed.items():
                exact[name].grad = None if weight.grad is None else weight.grad.float()
                weight.grad = None
        torch.nn.utils.clip_grad_norm_(exact.values(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if network is not model:
            _copy(exact, computed)
        losses.append(loss.item())
        state["step"] = step + 1
        progress.update()
        if state["step"] % settings.check_every and state["step"] < phase.steps:
            continue
        measured = recall(network, held_out, cosine=phase.loss == "in-batch")
        if measured["recall_at_1"] > state["recall"]:
            state["recall"] = measured["recall_at_1"]
            state["best"] = {name: weight.detach().clone() for name, weight in exact.items()}
        state["seconds"] = time.monotonic() - begin
        row = {"loss": np.mean(losses), **measured, "seconds": state["seconds"]}
        state["log"].append({"step": state["step"], **{key: round(float(value), 4) for key, value in row.items()}})
        log.info("%s: %s", path.stem, state["log"][-1])
        losses = []
        unfinished = {
            "weights": {name: weight.detach() for name, weight in exact.items()},
            "optimizer": optimizer.state_dict(),
        }
        with replacing(path) as temporary:
            torch.save(state | (unfinished if state["step"] < phase.steps else {}), temporary)
    progress.close()
    _copy(state["best"], exact)
    return {"seconds": round(state["seconds"]), "log": state["log"]}


def _copy(source: Mapping[str, Tensor], target: Mapping[str, Tensor]) -> None:
    with torch.no_grad():
        for name, weight in target.items():
            weight.copy_(source[name])


def _random(seed: int, *stream: int) -> np.random.Generator:
    return np.random.default_rng([seed, *stream])


def _rate(step: int, phase: TrainingPhase) -> float:
    """Return the share of the learning rate: it rises during the warm-up, then falls linearly to 0."""
    if step < phase.warmup:
        return (step + 1) / phase.warmup
    return (phase.steps - step) / max(1, phase.steps - phase.warmup)


def _batch(pairs: Pairs, phase: TrainingPhase, seed: int, number: int, step: int) -> list[int]:
    """Return the pairs of a step: of about one length, from a block of batches that is cut from shuffled epochs."""
    block, place = divmod(step, _BLOCK)
    start, end = block * _BLOCK * phase.batch, (block + 1) * _BLOCK * phase.batch
    chosen: list[int] = []
    for epoch in range(start // len(pairs), (end - 1) // len(pairs) + 1):
        order = _random(seed, _ORDER, number, 1_000_000 + epoch).permutation(len(pairs))
        before = epoch * len(pairs)
        chosen += order[max(0, start - before) : end - before].tolist()
    chosen.sort(key=lambda pair: (pairs.length(pair), pair))
    first = int(_random(seed, _ORDER, number, block).permutation(_BLOCK)[place]) * phase.batch
    return chosen[first : first + phase.batch]


def _loss(model: SelectionModel, pairs: Pairs, settings: Training, number: int, step: int) -> Tensor:
    phase, random = settings.phases[number], _random(settings.seed, _BATCH, number, step)
    batch = _batch(pairs, phase, settings.seed, number, step)
    with_facts = (random.random(len(batch)) < settings.facts).tolist()
    if phase.loss == "in-batch":
        contexts = [pairs.context(pair, facts=facts) for pair, facts in zip(batch, with_facts, strict=True)]
        responses = [pairs.response(pair) for pair in batch]
        u, v = model.vectors(contexts), model.vectors(responses, [len(context) for context in contexts])
        return in_batch_loss(u, v, responses, phase.temperature)
    groups = [
        pairs.group(pair, settings.negatives, random, facts=facts)
        for pair, facts in zip(batch, with_facts, strict=True)
    ]
    features, scores = model(groups)
    sizes = [len(group.candidates) for group in groups]
    loss = selection_loss(scores, sizes)
    if phase.contrastive:
        right = torch.tensor([place == 0 for size in sizes for place in range(size)], device=features.device)
        loss = loss + phase.contrastive * contrastive_loss(features, right, phase.temperature)
    return loss


def in_batch_loss(u: Tensor, v: Tensor, responses: Sequence[Sequence[int]], temperature: float) -> Tensor:
    """Return the loss of finding each context's response among those of the batch, and the other way round."""
    cosines = functional.normalize(u, dim=1) @ functional.normalize(v, dim=1).T / temperature
    # The same words twice in a batch: neither is a wrong answer.
    same = torch.tensor([[a == b for b in responses] for a in responses], device=u.device)
    cosines = cosines.masked_fill(same.fill_diagonal_(fill_value=False), -torch.inf)
    right = torch.arange(len(u), device=u.device)
    return (functional.cross_entropy(cosines, right) + functional.cross_entropy(cosines.T, right)) / 2


def selection_loss(scores: Tensor, sizes: Sequence[int]) -> Tensor:
    """Return DEnsity's equation 1, the mean over contexts; each one's first candidate is the right one."""
    return torch.stack([group.logsumexp(dim=0) - group[0] for group in scores.split(list(sizes))]).mean()


def contrastive_loss(features: Tensor, right: Tensor, temperature: float) -> Tensor:
    """Return DEnsity's equation 4, the mean over right pairs: all of them are one class.

    Parameters
    ----------
    features
        n x size, of all pairs of a context and a candidate in the batch.
    right
        Of each, whether it is a context with its own response.
    temperature
        What cosines are divided by.
    """
    z = functional.normalize(features, dim=1)
    own = torch.nonzero(right)[:, 0]
    rows = z[own] @ z.T / temperature
    itself = functional.one_hot(own, len(z)).bool()
    likelihoods = rows - rows.masked_fill(itself, -torch.inf).logsumexp(dim=1, keepdim=True)
    others = right & ~itself
    return -(likelihoods.masked_fill(~others, 0.0).sum(dim=1) / others.sum(dim=1).clamp(min=1)).mean()


def recall(model: SelectionModel, groups: Sequence[Group], *, cosine: bool = False) -> dict[str, float]:
    """Return recall@1 and mean reciprocal rank of each group's first candidate; equal scores count against it.

    ``cosine``: by the cosine of the vectors of context and response, read alone.
    """
    ranks = np.empty(len(groups))
    model.eval()
    for items in batches(groups):
        chosen = [groups[item] for item in items]
        sizes = [len(group.candidates) for group in chosen]
        with torch.inference_mode():
            if cosine:
                owners = np.repeat(np.arange(len(chosen)), sizes).tolist()
                u = model.vectors([group.context for group in chosen])
                candidates = [candidate for group in chosen for candidate in group.candidates]
                v = model.vectors(candidates, [len(chosen[owner].context) for owner in owners])
                scores = functional.cosine_similarity(u[owners], v, dim=1)
            else:
                scores = model(chosen)[1]
        ranks[items] = [int((values >= values[0]).sum()) for values in scores.split(sizes)]
    return {"recall_at_1": float((ranks == 1).mean()), "mrr": float((1 / ranks).mean())}
