"""A causal language model of transformers that answers many prompts at a time as it would each alone.

Rows of a batch are filled up on the left, with a mask and with positions that start at each prompt's first token.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from comperdial.models import Model, runtime

if TYPE_CHECKING:
    import torch

Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Writing:
    """A prompt to be continued.

    Attributes
    ----------
    tokens
        The prompt.
    most
        How many tokens to write at most.
    temperature
        0 takes the most probable token each time.
    top_p
        Of the most probable tokens, as many are drawn from as have this probability in all.
    seed
        What the draws come from.
    """

    tokens: Tokens
    most: int
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0

    @property
    def size(self) -> int:
        """Return how many tokens of a batch it takes."""
        return len(self.tokens) + self.most


@dataclass(frozen=True)
class Choosing:
    """A prompt, and for each label the tokens that may come next and mean it."""

    tokens: Tokens
    labels: Mapping[str, frozenset[Tokens]]

    @property
    def paths(self) -> list[Tokens]:
        """Return what has to follow the prompt in the model's input, so that all labels' tokens are predicted."""
        starts = {way[:place] for ways in self.labels.values() for way in ways for place in range(len(way))}
        return sorted(start for start in starts if not any(_begins(start, other) for other in starts))

    @property
    def size(self) -> int:
        """Return how many tokens of a batch it takes."""
        return sum(len(self.tokens) + len(path) for path in self.paths)


Task = Writing | Choosing


@dataclass(frozen=True)
class Written:
    """New tokens, without the one that ends them; and whether there was such a one."""

    tokens: Tokens
    ended: bool


class TooLargeError(Exception):
    """A prompt that the device's memory does not hold, even alone."""


class Causal:
    """The model, loaded."""

    def __init__(self, model: Model, dtype: str) -> None:
        from transformers import GenerationConfig

        self.tokenizer = runtime.load_tokenizer(model)
        self._network = runtime.load(model, "AutoModelForCausalLM", dtype)
        ends = self._network.generation_config.eos_token_id
        ends = [] if ends is None else [ends] if isinstance(ends, int) else list(ends)
        if (end := self.tokenizer.eos_token_id) is not None and end not in ends:
            ends.append(end)
        self._ends = ends
        self._fill = self.tokenizer.pad_token_id
        if self._fill is None:
            self._fill = ends[0] if ends else 0
        # A model may bring a temperature or penalties of its own; an answer depends on the request alone.
        self._network.generation_config = GenerationConfig(eos_token_id=ends or None, pad_token_id=self._fill)

    @cached_property
    def most_tokens(self) -> int | None:
        """Return how many tokens the model has positions for; None where there is no limit."""
        return getattr(self._network.config.get_text_config(), "max_position_embeddings", None)

    def run(self, tasks: Sequence[Any]) -> list[Any]:
        """Do tasks of one kind together; fewer at a time where memory does not do.

        Returns
        -------
        list
            For each task a :class:`Written`, or log probabilities by label; or a :class:`TooLargeError`.
        """
        import torch

        try:
            return self._choose(tasks) if isinstance(tasks[0], Choosing) else self._write(tasks)
        except torch.OutOfMemoryError:
            pass  # What it holds is free only after this block.
        if len(tasks) == 1:
            return [TooLargeError(f"the device's memory does not hold a prompt of {len(tasks[0].tokens):,} tokens")]
        half = len(tasks) // 2
        return [*self.run(tasks[:half]), *self.run(tasks[half:])]

    def _choose(self, tasks: Sequence[Choosing]) -> list[dict[str, float]]:
        """Return the log probability of each label, over the whole vocabulary."""
        rows = [(place, path) for place, task in enumerate(tasks) for path in task.paths]
        inputs = [(*tasks[place].tokens, *path) for place, path in rows]
        known: list[dict[Tokens, dict[int, float]]] = [{} for _ in tasks]
        for group in runtime.batches([len(row) for row in inputs]):
            keep = 1 + max(len(rows[row][1]) for row in group)
            logits = self._logits([inputs[row] for row in group], keep)
            for row, values in zip(group, logits, strict=True):
                place, path = rows[row]
                for length in range(len(path) + 1):
                    start = path[:length]
                    wanted = _next(tasks[place].labels, start)
                    at = values[keep - 1 - len(path) + length]
                    # In the precision of the sum, which for a wide vocabulary has to be double.
                    logs = (at[wanted] - at.logsumexp(0)).tolist()
                    known[place][start] = dict(zip(wanted, logs, strict=True))
        return [_label_logs(task.labels, found) for task, found in zip(tasks, known, strict=True)]

    def _logits(self, rows: Sequence[Sequence[int]], keep: int) -> torch.Tensor:
        """Return the logits at the last ``keep`` places of each row."""
        import torch

        tokens, mask = self._pad(rows)
        accepted = inspect.signature(self._network.forward).parameters
        extra: dict[str, Any] = {"logits_to_keep": keep} if "logits_to_keep" in accepted else {}
        if "position_ids" in accepted:
            extra["position_ids"] = (mask.cumsum(1) - 1).clamp(min=0)
        with torch.inference_mode():
            logits = self._network(input_ids=tokens, attention_mask=mask, use_cache=False, **extra).logits
            return logits[:, -keep:].to(_precise(logits))

    def _write(self, tasks: Sequence[Writing]) -> list[Written]:
        import torch
        from transformers import GenerationConfig

        tokens, mask = self._pad([task.tokens for task in tasks])
        settings = GenerationConfig(do_sample=False, num_beams=1, max_new_tokens=max(task.most for task in tasks))
        with torch.inference_mode():
            rows = self._network.generate(
                input_ids=tokens, attention_mask=mask, generation_config=settings, logits_processor=[_Drawing(tasks)]
            )
        found = rows[:, tokens.shape[1] :].tolist()
        return [self._until_end(row[: task.most]) for task, row in zip(tasks, found, strict=True)]

    def _until_end(self, row: Sequence[int]) -> Written:
        end = next((place for place, token in enumerate(row) if token in self._ends), None)
        return Written(tuple(row[:end]), ended=end is not None)

    def _pad(self, rows: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        import torch

        width = max(map(len, rows))
        tokens = torch.tensor([[*[self._fill] * (width - len(row)), *row] for row in rows])
        lengths = torch.tensor([len(row) for row in rows])
        mask = (torch.arange(width) >= width - lengths[:, None]).long()
        return tokens.to(self._network.device), mask.to(self._network.device)


class _Drawing:
    """Leaves each row one token: the most probable one, or one drawn with the row's own random numbers."""

    def __init__(self, tasks: Sequence[Writing]) -> None:
        self._tasks = tasks
        self._random = [np.random.default_rng(task.seed) for task in tasks]

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        import torch

        chosen = scores.argmax(dim=1)
        for row, task in enumerate(self._tasks):
            if task.temperature > 0:
                logits = scores[row].to(_precise(scores))
                chosen[row] = draw(logits / task.temperature, task.top_p, self._random[row].random())
        return torch.full_like(scores, -torch.inf).scatter_(1, chosen[:, None], 0)


def draw(logits: torch.Tensor, top_p: float, at: float) -> torch.Tensor:
    """Return the token at a place between 0 and 1 of all probability, tokens in the order of the vocabulary."""
    import torch

    probabilities = logits.softmax(0)
    if top_p < 1:
        ranked, places = probabilities.sort(descending=True, stable=True)
        probabilities[places[ranked.cumsum(0) - ranked >= top_p]] = 0
    sums = probabilities.cumsum(0)
    return torch.searchsorted(sums, sums[-1:] * at, right=True)[0].clamp(max=len(sums) - 1)


def _precise(values: torch.Tensor) -> torch.dtype:
    import torch

    return torch.float32 if values.device.type == "mps" else torch.float64


def _begins(start: Tokens, other: Tokens) -> bool:
    """Return whether a run of tokens begins another, longer one."""
    return len(start) < len(other) and other[: len(start)] == start


def _next(labels: Mapping[str, frozenset[Tokens]], start: Tokens) -> list[int]:
    return sorted({way[len(start)] for ways in labels.values() for way in ways if _begins(start, way)})


def _label_logs(
    labels: Mapping[str, Iterable[Tokens]], known: Mapping[Tokens, Mapping[int, float]]
) -> dict[str, float]:
    """Return the log probability that an answer begins with a label, and with no longer one.

    Where ``1`` and ``10`` are labels, and ``10`` is two tokens, an answer that begins with ``10`` is not a ``1``.
    """
    every = {
        way: sum(known[way[:place]][token] for place, token in enumerate(way))
        for ways in labels.values()
        for way in ways
    }
    own = {}
    for way, log in every.items():
        longer = [other for other in every if _begins(way, other)]
        direct = [other for other in longer if not any(_begins(between, other) for between in longer)]
        # Relative to the way itself; a probability too small for a float is left at the smallest log there is.
        rest = 1 - float(np.exp([every[other] - log for other in direct]).sum())
        own[way] = log + float(np.log(rest)) if rest > 0 else -np.inf
    found = {label: float(np.logaddexp.reduce([own[way] for way in ways])) for label, ways in labels.items()}
    return {label: max(log, LEAST) for label, log in found.items()}


LEAST = -9999.0
"""Stands for a probability of 0, which JSON has no logarithm for; OpenAI uses the same number."""
