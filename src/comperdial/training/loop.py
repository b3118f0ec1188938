"""Train a selection model: phases, checkpoints, and a run that goes on where it was interrupted.

What a step does depends on the settings, the seed and the step's number alone, so that a run that is taken up again
at any step gives the weights of one that was never interrupted: a checkpoint holds weights, the optimiser's state and
the number of the next step. A phase is named by a hash of all settings up to its end: two models that begin alike
share the phases that they have in common.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from comperdial.core.files import read_json, replacing, write_json, write_text
from comperdial.training.pairs import Nearest, Negatives, Pairs
from comperdial.training.selection import Group, SelectionModel, batches, load

if TYPE_CHECKING:
    import torch

log = logging.getLogger(__name__)

VERSION = 1
"""Raised when a change of this code changes what training gives."""

# Batches that are drawn at once and put in order of length, so that little of a batch is padding.
_BLOCK = 16
_STREAMS = {"order": 0, "batch": 1, "head": 2, "held out": 3}


@dataclass(frozen=True)
class Phase:
    """A stretch of training with its own loss, optimiser and learning rate.

    Attributes
    ----------
    loss
        ``in-batch``: vectors of contexts and responses, read alone, each context's own response among those of its
        batch. ``selection``: DEnsity's equation 1.
    steps, batch
        Steps, and contexts a step.
    learning_rate, head_learning_rate
        Of the encoder, and of the head on it; they rise over ``warmup`` steps, then fall to 0 in a line.
    temperature
        Of the in-batch loss, or of the contrastive one.
    contrastive
        What the supervised contrastive loss (equation 4) counts beside selection; 0 leaves it out.
    """

    loss: Literal["in-batch", "selection"]
    steps: int
    batch: int
    learning_rate: float
    head_learning_rate: float = 1e-4
    warmup: int = 100
    temperature: float = 0.1
    contrastive: float = 0.0


@dataclass(frozen=True)
class Plan:
    """How to train: all that decides the weights, beside the pairs and the encoder."""

    phases: tuple[Phase, ...]
    negatives: Negatives
    seed: int
    facts: float
    """The share of pairs that are read with their facts, among those that have any."""
    dtype: Literal["fp32", "bf16"]
    check_every: int
    """After how many steps the model is tried on held-out dialogues."""
    save_every: int = 100


@dataclass(frozen=True)
class Recalled:
    """How a model selects the right one of ten responses: recall@1 and mean reciprocal rank, both 0 to 1."""

    recall_at_1: float
    mrr: float


def train(
    model: SelectionModel,
    pairs: Pairs,
    held_out: Sequence[Group],
    plan: Plan,
    folder: Path,
    *,
    settled: Mapping[str, Any],
    stop: Callable[[int, int], bool] | None = None,
) -> list[dict[str, Any]]:
    """Train a model through all phases; it ends with the weights of the last phase's best check.

    Parameters
    ----------
    model
        What to train; its encoder has its first weights.
    pairs
        What to train on.
    held_out
        Contexts of other dialogues, each with the right response first.
    plan
        How to train.
    folder
        Where checkpoints and the log of each phase are kept; a phase that is done there is not trained again.
    settled
        What else decides the weights, such as corpora and encoder, for the names of the phases' folders.
    stop
        Asked before each step, with the phase and the step, whether to stop here as if interrupted; for tests.

    Returns
    -------
    list of dict
        Of each phase: its settings and log.
    """
    model.start(_number(plan.seed, "head"))
    near = None
    done: list[dict[str, Any]] = []
    name = json.dumps({"version": VERSION, **settled}, sort_keys=True)
    for number, phase in enumerate(plan.phases):
        # The best of the checks is what a phase ends with.
        told = (
            asdict(phase)
            | {"check_every": plan.check_every}
            | ({"negatives": asdict(plan.negatives)} if phase.loss == "selection" else {})
        )
        name = _digest(f"{name} {json.dumps(told, sort_keys=True)}")
        place = folder / f"{number}-{phase.loss}-{name}"
        if not (place / "done.json").is_file():
            if near is None and phase.loss == "selection" and plan.negatives.near:
                table = model.encoder.get_input_embeddings().weight.detach().float().cpu().numpy()
                near = Nearest(pairs, table, plan.seed)
            if not _Run(model, pairs, held_out, plan, number, near, place).run(stop):
                return done
        else:
            load(model, place / "best.safetensors")
        done.append({"folder": place.name, **asdict(phase), **read_json(place / "done.json")})
    return done


class _Run:
    """One phase, from its start or from its last checkpoint to its end."""

    def __init__(
        self,
        model: SelectionModel,
        pairs: Pairs,
        held_out: Sequence[Group],
        plan: Plan,
        number: int,
        near: Nearest | None,
        folder: Path,
    ) -> None:
        import torch

        self.model, self.pairs, self.held_out, self.plan, self.near, self.folder = (
            model, pairs, held_out, plan, near, folder,
        )  # fmt: skip
        self.number = number
        self.phase = plan.phases[number]
        self.weights = model.trained()
        self.exact = {name: weight.detach().clone() for name, weight in self.weights.items()}
        sets = [
            {
                "params": [w for n, w in self.exact.items() if n.startswith(f"{part}.") and (w.ndim < 2) == plain],
                "lr": rate,
                "weight_decay": 0.0 if plain else 0.01,
            }
            for part, rate in (("encoder", self.phase.learning_rate), ("head", self.phase.head_learning_rate))
            for plain in (False, True)
        ]
        # The encoder runs in bfloat16 from end to end, on roundings of exact weights that the optimiser changes.
        self.kept = {name: weight.detach().clone() for name, weight in model.encoder.named_parameters()}
        if plan.dtype == "bf16":
            model.encoder.to(torch.bfloat16)
        self.optimizer = torch.optim.AdamW([entry for entry in sets if entry["params"]])
        self.rates = [entry["lr"] for entry in self.optimizer.param_groups]
        self.step = 0
        self.log: list[dict[str, Any]] = []
        self.seconds = 0.0
        self.best = -math.inf

    def run(self, stop: Callable[[int, int], bool] | None) -> bool:
        """Train to the end; False when ``stop`` said so before."""
        from tqdm import tqdm

        self.folder.mkdir(parents=True, exist_ok=True)
        if (self.folder / "state.safetensors").is_file():
            self._resume()
            self._round()
        losses: list[float] = []
        total = self.phase.steps
        if self.step == 0:
            self._check(losses)
        bar = tqdm(total=total, initial=self.step, desc=f"phase {self.number + 1}, {self.phase.loss}", disable=None)
        before = time.monotonic()
        while self.step < total:
            if stop and stop(self.number, self.step):
                return False
            losses.append(self._train())
            self.step += 1
            bar.update()
            bar.set_postfix(loss=f"{losses[-1]:.3f}")
            checked = self.step % self.plan.check_every == 0 or self.step == total
            if checked or self.step % self.plan.save_every == 0:
                now = time.monotonic()
                self.seconds += now - before
                before = now
                if checked:
                    self._check(losses)
                    losses = []
                self._save()
        bar.close()
        write_json(self.folder / "done.json", {"seconds": round(self.seconds), "log": self.log})
        (self.folder / "state.safetensors").unlink()
        self._end()
        return True

    def _train(self) -> float:
        import torch

        rate = self._rate()
        for entry, full in zip(self.optimizer.param_groups, self.rates, strict=True):
            entry["lr"] = full * rate
        # Dropout too depends on the step alone.
        torch.manual_seed(_number(self.plan.seed, "batch", self.number, self.step))
        self.model.network.train()
        loss = self._loss()
        if not torch.isfinite(loss):
            raise FloatingPointError(f"the loss is {loss.item()} in step {self.step}")
        loss.backward()
        for name, weight in self.weights.items():
            self.exact[name].grad = None if weight.grad is None else weight.grad.float()
            weight.grad = None
        torch.nn.utils.clip_grad_norm_(self.exact.values(), 1.0)
        self.optimizer.step()
        self._round()
        return loss.item()

    def _round(self) -> None:
        """Give the network the exact weights, rounded if it runs in bfloat16."""
        import torch

        with torch.no_grad():
            for name, weight in self.weights.items():
                weight.copy_(self.exact[name])

    def _end(self) -> None:
        """Give the encoder back in float32, with the weights of the best check."""
        import torch

        with torch.no_grad():
            self.model.encoder.float()
            for name, weight in self.model.encoder.named_parameters():
                weight.copy_(self.kept[name])
        load(self.model, self.folder / "best.safetensors")

    def _rate(self) -> float:
        if self.step < self.phase.warmup:
            return (self.step + 1) / self.phase.warmup
        return (self.phase.steps - self.step) / max(1, self.phase.steps - self.phase.warmup)

    def _batch(self) -> npt.NDArray[np.intp]:
        """Return the pairs of this step: of a block of batches in an order of its own, those of about one length."""
        block, place = divmod(self.step, _BLOCK)
        size = _BLOCK * self.phase.batch
        wanted = range(block * size, (block + 1) * size)
        chosen: list[int] = []
        for epoch in range(wanted[0] // len(self.pairs), wanted[-1] // len(self.pairs) + 1):
            order = self._order(epoch)
            start = epoch * len(self.pairs)
            chosen += order[max(0, wanted[0] - start) : max(0, wanted[-1] + 1 - start)].tolist()
        chosen.sort(key=lambda pair: (self.pairs.tokens(pair), pair))
        turn = self._random("order", block).permutation(_BLOCK)[place]
        return np.array(chosen[turn * self.phase.batch : (turn + 1) * self.phase.batch])

    def _order(self, epoch: int) -> npt.NDArray[np.intp]:
        if getattr(self, "_epoch", None) != epoch:
            self._epoch = epoch
            self._shuffled = self._random("order", 1_000_000 + epoch).permutation(len(self.pairs))
        return self._shuffled

    def _random(self, stream: str, step: int) -> np.random.Generator:
        return np.random.default_rng([self.plan.seed, _STREAMS[stream], self.number, step])

    def _loss(self) -> torch.Tensor:
        random = self._random("batch", self.step)
        batch = self._batch()
        told = random.random(len(batch)) < self.plan.facts
        if self.phase.loss == "in-batch":
            contexts = [self.pairs.context(pair, facts=bool(f)) for pair, f in zip(batch, told, strict=True)]
            responses = [self.pairs.response(pair) for pair in batch]
            u = self.model.vectors(contexts)
            v = self.model.vectors(responses, [len(context) for context in contexts])
            return in_batch_loss(u, v, responses, self.phase.temperature)
        groups = [
            self.pairs.group(pair, self.plan.negatives, random, facts=bool(f), near=self.near)
            for pair, f in zip(batch, told, strict=True)
        ]
        features, scores = self.model.read(groups)
        loss = selection_loss(scores, [len(group.candidates) for group in groups])
        if self.phase.contrastive:
            right = _rights(groups).to(features.device)
            loss = loss + self.phase.contrastive * contrastive_loss(features, right, self.phase.temperature)
        return loss

    def _check(self, losses: Sequence[float]) -> None:
        """Try the model on the held-out dialogues; keep its weights if it is the best so far."""
        found = recall(self.model, self.held_out, cosine=self.phase.loss == "in-batch")
        entry = {
            "step": self.step,
            "loss": round(float(np.mean(losses)), 4) if losses else None,
            **{name: round(value, 4) for name, value in asdict(found).items()},
            "seconds": round(self.seconds),
        }
        self.log.append(entry)
        log.info("%s: %s", self.folder.name, json.dumps(entry))
        # Untrained weights are not what a phase is for.
        if self.step and found.recall_at_1 > self.best:
            self.best = found.recall_at_1
            save(self.exact, self.folder / "best.safetensors")
        write_text(self.folder / "log.jsonl", "".join(f"{json.dumps(line)}\n" for line in self.log))

    def _save(self) -> None:
        """Keep all that the next step depends on, whole or not at all."""
        import torch
        from safetensors.torch import save_file

        tensors = {f"weight {name}": weight.contiguous() for name, weight in self.exact.items()}
        names = {id(weight): name for name, weight in self.exact.items()}
        for weight, state in self.optimizer.state.items():
            for key, value in state.items():
                tensors[f"{key} {names[id(weight)]}"] = torch.as_tensor(value).contiguous()
        told = json.dumps({"step": self.step, "seconds": self.seconds, "best": self.best, "log": self.log})
        with replacing(self.folder / "state.safetensors") as temporary:
            save_file(tensors, temporary, metadata={"state": told})

    def _resume(self) -> None:
        from safetensors import safe_open

        states: dict[str, dict[str, torch.Tensor]] = {}
        with safe_open(self.folder / "state.safetensors", framework="pt") as file:
            told = json.loads(file.metadata()["state"])
            for entry in file.keys():  # noqa: SIM118 - no mapping
                key, _, name = entry.partition(" ")
                tensor = file.get_tensor(entry)
                if key == "weight":
                    self.exact[name].copy_(tensor)
                else:
                    states.setdefault(name, {})[key] = tensor
        for name, state in states.items():
            self.optimizer.state[self.exact[name]] = {
                key: value if key == "step" else value.to(self.exact[name].device) for key, value in state.items()
            }
        self.step, self.seconds, self.best, self.log = (told[key] for key in ("step", "seconds", "best", "log"))
        log.info("%s: taken up at step %d of %d", self.folder.name, self.step, self.phase.steps)


def in_batch_loss(u: torch.Tensor, v: torch.Tensor, responses: Sequence[Sequence[int]], temperature: float) -> Any:  # noqa: ANN401
    """Return the loss of finding each context's response among those of the batch, and the other way round."""
    import torch
    from torch.nn import functional

    cosines = functional.normalize(u, dim=1) @ functional.normalize(v, dim=1).T / temperature
    # The same words twice in a batch: neither is a wrong answer.
    same = torch.tensor([[a == b for b in responses] for a in responses], device=u.device)
    same.fill_diagonal_(fill_value=False)
    cosines = cosines.masked_fill(same, -torch.inf)
    right = torch.arange(len(u), device=u.device)
    return (functional.cross_entropy(cosines, right) + functional.cross_entropy(cosines.T, right)) / 2


def selection_loss(scores: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
    """Return DEnsity's equation 1, the mean over contexts; each one's first candidate is the right one."""
    import torch

    groups = torch.split(scores, list(sizes))
    return torch.stack([group.logsumexp(dim=0) - group[0] for group in groups]).mean()


def contrastive_loss(features: torch.Tensor, right: torch.Tensor, temperature: float) -> torch.Tensor:
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
    import torch
    from torch.nn import functional

    z = functional.normalize(features, dim=1)
    rows = z[right] @ z.T / temperature
    own = torch.nonzero(right)[:, 0]
    others = right[None, :].repeat(len(own), 1)
    itself = torch.zeros_like(others)
    itself[torch.arange(len(own)), own] = True
    likelihoods = rows - rows.masked_fill(itself, -torch.inf).logsumexp(dim=1, keepdim=True)
    others &= ~itself
    return -(likelihoods.masked_fill(~others, 0.0).sum(dim=1) / others.sum(dim=1).clamp(min=1)).mean()


def _rights(groups: Sequence[Group]) -> torch.Tensor:
    import torch

    return torch.tensor([place == 0 for group in groups for place in range(len(group.candidates))])


def recall(model: SelectionModel, groups: Sequence[Group], *, cosine: bool = False) -> Recalled:
    """Return how well a model selects each group's first candidate; equal scores count against it.

    ``cosine``: by the cosine of the vectors of context and response, read alone.
    """
    import torch

    ranks = np.empty(len(groups))
    model.network.eval()
    for items in batches(groups):
        chosen = [groups[item] for item in items]
        with torch.inference_mode():
            if cosine:
                u = model.vectors([group.context for group in chosen])
                v = model.vectors(
                    [candidate for group in chosen for candidate in group.candidates],
                    [len(group.context) for group in chosen for _ in group.candidates],
                )
                owners = [place for place, group in enumerate(chosen) for _ in group.candidates]
                scores = torch.nn.functional.cosine_similarity(u[owners], v, dim=1)
            else:
                scores = model.read(chosen)[1]
        split = np.split(scores.float().cpu().numpy(), np.cumsum([len(group.candidates) for group in chosen])[:-1])
        for item, values in zip(items, split, strict=True):
            ranks[item] = (values >= values[0]).sum()
    return Recalled(float((ranks == 1).mean()), float((1 / ranks).mean()))


def save(weights: Mapping[str, torch.Tensor], path: Path) -> None:
    """Write weights as safetensors."""
    from safetensors.torch import save_file

    with replacing(path) as temporary:
        save_file({name: weight.detach().contiguous().cpu() for name, weight in weights.items()}, temporary)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _number(seed: int, stream: str, *more: int) -> int:
    return int(np.random.default_rng([seed, _STREAMS[stream], *more]).integers(2**62))
