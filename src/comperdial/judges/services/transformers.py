"""A causal language model on this machine, by what it writes or by how probable it finds each label of a scale.

The parameters are OpenAI's (``temperature``, ``top_p``, ``max_tokens``), with some more:

- ``labels`` (mode ``probabilities``): the labels, as texts. The answer is the most probable one, and ``logprobs`` has each
  label's log probability over the model's whole vocabulary. A label of several tokens has the product of their
  probabilities; its spellings (with and without a space before it; for words, the usual cases) are summed.
- ``prefix``: how the answer begins, such as ``- Overall:``.
- ``chat_template_kwargs``: what the model's chat template is given, such as ``{"enable_thinking": false}``.
- ``seed`` (mode ``generate``): the same prompt and seed have the same answer.

A prompt is written with the tokenizer's chat template if it has one, else as plain text with a blank line between
messages. Texts in it that the tokenizer would read as one of its special tokens are broken up with a space. Requests
that wait at the same time go through the model as one batch, and each is answered as it would be alone.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from comperdial import models
from comperdial.core.errors import ComperdialError, ConfigError
from comperdial.judges.requests import Answer, JudgeError, Message, RefusedError
from comperdial.judges.services import Service
from comperdial.models import runtime

if TYPE_CHECKING:
    import torch

    from comperdial.judges.tasks import Judge

VERSION = 1
"""Goes up with every change that can change an answer."""

MAX_TOKENS = 512
"""How long an answer may be where a request does not say and the model has room."""
# Stands for a probability of 0, whose logarithm JSON cannot hold; OpenAI uses the same number.
_LEAST = -9999.0
_COMMON = {"temperature", "seed", "prefix", "chat_template_kwargs", "max_tokens", "max_completion_tokens", "dtype"}
_KNOWN = {"generate": _COMMON | {"top_p"}, "probabilities": _COMMON | {"labels"}}
# Tokens depend on what precedes them, and on no more than this many characters of it.
_TAIL = 200
# Seconds in which more requests may come before a batch is begun.
_PAUSE = 0.003

Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Continuation:
    """A prompt to be continued by at most ``most`` tokens; ``seed`` is what the draws come from."""

    tokens: Tokens
    most: int
    temperature: float
    top_p: float
    seed: int


@dataclass(frozen=True)
class Choice:
    """A prompt, and for each label the runs of tokens that may come next and mean it."""

    tokens: Tokens
    labels: Mapping[str, frozenset[Tokens]]
    most: int = 0

    @property
    def paths(self) -> list[Tokens]:
        """Return what has to follow the prompt in the model's input, so that all labels' tokens are predicted."""
        starts = {way[:-1] for ways in self.labels.values() for way in ways}
        return sorted(start for start in starts if not any(_begins(start, other) for other in starts))


class Transformers(Service):
    """A model of the registry or of a folder; ``dtype`` is one of the judge's parameters."""

    needs_seed = True

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        self.dtype = judge.parameters.get("dtype", "fp32")
        if not judge.model:
            raise ConfigError("the judge names no model", expected="a model's name, or a folder such as ./my-model")
        if self.dtype not in runtime.DTYPES:
            raise ConfigError(f"dtype is {self.dtype!r}", expected=" or ".join(runtime.DTYPES))
        if unknown := sorted(judge.parameters.keys() - _KNOWN[judge.mode]):
            known = ", ".join(sorted(_KNOWN[judge.mode]))
            raise ConfigError(f"a local model in mode {judge.mode} takes no parameter {unknown[0]!r}", expected=known)
        self._waiting: list[tuple[Continuation | Choice, asyncio.Future[Any]]] = []
        self._worker: asyncio.Task[None] | None = None

    def identity(self) -> dict[str, Any]:
        """Return the model's checksum, the mode and the precision.

        Of a model that is not here and whose checksum the registry knows, these are known all the same: answers that
        were published can be used without the model.
        """
        pinned = models.pinned(self.judge.model) if models.missing(self.judge.model) else None
        model = None if pinned else models.find(self.judge.model)
        found = {
            "checksum": model.digest if model else pinned,
            "mode": self.judge.mode,
            "dtype": self.dtype,
            "transformers": VERSION,
        }
        # Not part of a model's checksum, since most of what runs a model does not read it.
        if model and (template := model.path / "chat_template.jinja").is_file():
            found["template"] = hashlib.sha256(template.read_bytes()).hexdigest()[:12]
        return found

    def weighting(self, labels: Sequence[str]) -> dict[str, Any]:
        """Return what asks for the probabilities of these labels."""
        return {"labels": list(labels)}

    def unavailable(self) -> str | None:
        """Return that a package or the model is not on this machine."""
        return runtime.missing_packages() or models.missing(self.judge.model)

    async def complete(self, chat: Sequence[Message], parameters: Mapping[str, Any]) -> Answer:
        """Answer a request, together with those that wait at the same time."""
        task = self._task(chat, parameters)
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((task, future))
        if self._worker is None:
            self._worker = asyncio.create_task(self._work())
        found = await future
        version, size = self._causal.version, len(task.tokens)
        if isinstance(task, Choice):
            ranked = dict(sorted(found.items(), key=lambda pair: -pair[1]))
            return Answer(next(iter(ranked)), "stop", size, 1, version, ranked)
        tokens, finish = found
        text = _prefix(parameters) + self._causal.tokenizer.decode(tokens, skip_special_tokens=True)
        return Answer(text, finish, size, len(tokens), version)

    async def _work(self) -> None:
        """Answer what waits, in a thread, so that the event loop goes on."""
        try:
            while self._waiting:
                await asyncio.sleep(_PAUSE)
                waiting, self._waiting = self._waiting, []
                waiting = [(task, future) for task, future in waiting if not future.done()]
                try:
                    found = await asyncio.to_thread(self._causal.run, [task for task, _ in waiting])
                except Exception as error:
                    # It belongs to those who wait, and is raised there.
                    found = [error] * len(waiting)
                for (_, future), value in zip(waiting, found, strict=True):
                    if not future.done():
                        future.set_exception(value) if isinstance(value, Exception) else future.set_result(value)
        finally:
            self._worker = None

    @cached_property
    def _causal(self) -> Causal:
        try:
            return _loaded(models.verified(self.judge.model), self.dtype)
        except (ComperdialError, ImportError, OSError, RuntimeError, ValueError) as error:
            raise JudgeError(f"the model cannot be loaded: {error}") from error

    def _task(self, chat: Sequence[Message], parameters: Mapping[str, Any]) -> Continuation | Choice:
        text = prompt_text(self._causal.tokenizer, chat, parameters)
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise RefusedError("the prompt holds half of a character")
        tokens = self._encode(text, whole=True)
        if not tokens:
            raise RefusedError("the prompt is empty")
        room = self._causal.most_tokens
        if self.judge.mode == "probabilities":
            task: Continuation | Choice = Choice(tokens, self._ways(text, parameters["labels"]))
            needed = len(tokens) + max(map(len, task.paths))  # type: ignore[union-attr]
        else:
            task = _continuation(tokens, text, parameters, room)
            needed = len(tokens) + task.most
        if room is not None and needed > room:
            raise RefusedError(f"the prompt is too long: {needed:,} tokens with the answer, {room:,} allowed")
        return task

    def _encode(self, text: str, *, whole: bool = False) -> Tokens:
        tokenizer = self._causal.tokenizer
        # A chat template writes the special token at the start itself.
        marks = whole and not tokenizer.chat_template
        found = tokenizer(text, add_special_tokens=marks)["input_ids"]
        return tuple(found[:-1] if marks and found and found[-1] == tokenizer.eos_token_id else found)

    def _ways(self, text: str, labels: Sequence[str]) -> dict[str, frozenset[Tokens]]:
        """Return the tokens that may follow the prompt and mean a label."""
        tail = text[-_TAIL:]
        before = self._encode(tail)
        ways: dict[str, frozenset[Tokens]] = {}
        for label in labels:
            wholes = {self._encode(tail + way) for way in spellings(label)}
            found = {whole[len(before) :] for whole in wholes if whole[: len(before)] == before}
            # Where the prompt's last token would swallow the label, the label stands alone.
            ways[label] = frozenset(filter(None, found)) or frozenset(filter(None, [self._encode(label)]))
            taken = next((other for other in ways if other != label and ways[other] & ways[label]), None)
            if taken or not ways[label]:
                problem = f"does not tell {taken!r} and {label!r} apart" if taken else f"has no token for {label!r}"
                raise ConfigError(f"the tokenizer {problem}", where=self.judge.model, expected="other labels")
        return ways


def prompt_text(tokenizer: Any, messages: Sequence[Message], parameters: Mapping[str, Any]) -> str:  # noqa: ANN401
    """Return the text that a model continues."""
    harmless = [{**message, "content": without_special_tokens(tokenizer, message["content"])} for message in messages]
    # A space before the answer would be a token of its own, where models expect one that starts with a space.
    prefix = _prefix(parameters).rstrip(" ")
    if not tokenizer.chat_template:
        text = "\n\n".join(message["content"] for message in harmless)
        return f"{text}\n{prefix}" if prefix else text.rstrip(" ")
    import jinja2

    options = parameters.get("chat_template_kwargs", {})
    try:
        text = tokenizer.apply_chat_template(harmless, tokenize=False, add_generation_prompt=True, **options)
    except (jinja2.TemplateError, TypeError) as error:
        raise ConfigError(
            f"the model's chat template does not take the messages ({error})", expected="one that does, or none"
        ) from error
    return str(text) + prefix


def without_special_tokens(tokenizer: Any, text: str) -> str:  # noqa: ANN401
    """Return a text in which nothing is read as one of the tokenizer's special tokens, such as the end of a turn."""
    added = tokenizer.added_tokens_decoder.values()
    special = {token.content for token in added if token.special or re.fullmatch(r"<.+>|\[.+\]", token.content)}
    special = {token.strip() for token in {*special, *tokenizer.all_special_tokens}}
    while found := next((token for token in special if token and token in text), None):
        text = text.replace(found, f"{found[0]} {found[1:]}" if len(found) > 1 else " ")
    return text


def spellings(label: str) -> set[str]:
    """Return the ways to write a label that count as it: with and without a space before, words in the usual cases."""
    cases = {label, label.lower(), label.upper(), label.capitalize()}
    return cases | {f" {way}" for way in cases}


def _prefix(parameters: Mapping[str, Any]) -> str:
    prefix = parameters.get("prefix", "")
    if not isinstance(prefix, str):
        raise ConfigError(f"`prefix` is {prefix!r}", expected="a text")
    return prefix


def _continuation(tokens: Tokens, text: str, parameters: Mapping[str, Any], room: int | None) -> Continuation:
    def number(name: str, default: float, low: float, high: float) -> float:
        value = parameters.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise ConfigError(f"`{name}` is {value!r}", expected=f"a number from {low} to {high}")
        return value

    temperature = number("temperature", 1.0, 0, 100)
    limit = "max_completion_tokens" if "max_completion_tokens" in parameters else "max_tokens"
    most = number(limit, MAX_TOKENS if room is None else max(1, min(MAX_TOKENS, room - len(tokens))), 1, 1_000_000)
    if most != int(most):
        raise ConfigError(f"`{limit}` is {most!r}", expected="a whole number")
    seed = parameters.get("seed")
    if temperature and not isinstance(seed, int):
        raise ConfigError("the request has no seed", expected="a whole number, or temperature 0")
    own = int.from_bytes(hashlib.sha256(f"{seed}\0{text}".encode()).digest()[:8], "big")
    return Continuation(tokens, int(most), temperature, number("top_p", 1.0, 0, 1), own)


@lru_cache(maxsize=1)
def _loaded(model: models.Model, dtype: str) -> Causal:
    """Load a model once for all variants that are asked of it in one run."""
    return Causal(model, dtype)


class Causal:
    """The model, loaded.

    Attributes
    ----------
    tokenizer
        Its tokenizer.
    most_tokens
        How many tokens it has positions for; None where there is no limit.
    version
        Its name and checksum.
    """

    def __init__(self, model: models.Model, dtype: str) -> None:
        from transformers import GenerationConfig

        self.version = f"{model.name}@{model.digest}"
        self.tokenizer = runtime.load_tokenizer(model)
        self._network = runtime.load(model, "AutoModelForCausalLM", dtype)
        self.most_tokens = getattr(self._network.config.get_text_config(), "max_position_embeddings", None)
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

    def run(self, tasks: Sequence[Continuation | Choice]) -> list[Any]:
        """Do tasks together, as many at a time as memory and the model's positions have room for.

        Returns
        -------
        list
            For each task the new tokens and why they end, or log probabilities by label; or a :class:`RefusedError`.
        """
        found: list[Any] = [None] * len(tasks)
        for group in runtime.batches([len(task.tokens) + task.most for task in tasks]):
            for place, value in zip(group, self._batch([tasks[place] for place in group]), strict=True):
                found[place] = value
        return found

    def _batch(self, tasks: Sequence[Any]) -> list[Any]:
        import torch

        try:
            if isinstance(tasks[0], Choice):
                return self._choose(tasks)
            # Every row goes as many steps as the longest answer, and has to have positions for them.
            steps = max(len(task.tokens) for task in tasks) + max(task.most for task in tasks)
            if self.most_tokens is None or steps <= self.most_tokens:
                return self._write(tasks)
        except torch.OutOfMemoryError:
            pass  # What it holds is free only after this block.
        if len(tasks) == 1:
            return [RefusedError(f"the device's memory does not hold a prompt of {len(tasks[0].tokens):,} tokens")]
        half = len(tasks) // 2
        return [*self._batch(tasks[:half]), *self._batch(tasks[half:])]

    def _choose(self, tasks: Sequence[Choice]) -> list[dict[str, float]]:
        """Return the log probability of each label, over the whole vocabulary."""
        rows = [(place, path) for place, task in enumerate(tasks) for path in task.paths]
        keep = 1 + max(len(path) for _, path in rows)
        logits = self._logits([(*tasks[place].tokens, *path) for place, path in rows], keep)
        known: list[dict[Tokens, float]] = [{} for _ in tasks]
        for (place, path), values in zip(rows, logits, strict=True):
            at = values[keep - 1 - len(path) :]
            every = (way for ways in tasks[place].labels.values() for way in ways)
            ways = [way for way in every if path[: len(way) - 1] == way[:-1]]
            logs = at - at.logsumexp(1, keepdim=True)
            for way in ways:
                known[place][way] = sum(float(logs[step, token]) for step, token in enumerate(way))
        return [_label_logs(task.labels, found) for task, found in zip(tasks, known, strict=True)]

    def _logits(self, rows: Sequence[Tokens], keep: int) -> torch.Tensor:
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

    def _write(self, tasks: Sequence[Continuation]) -> list[tuple[Tokens, str]]:
        """Return the new tokens, without the one that ends them, and whether there was such a one."""
        import torch
        from transformers import GenerationConfig

        random = [np.random.default_rng(task.seed) for task in tasks]

        def choose(_: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
            """Leave each row one token: the most probable one, or one drawn with the row's own random numbers."""
            chosen = scores.argmax(dim=1)
            for row, task in enumerate(tasks):
                if task.temperature > 0:
                    logits = scores[row].to(_precise(scores)) / task.temperature
                    chosen[row] = draw(logits, task.top_p, random[row].random())
            return torch.full_like(scores, -torch.inf).scatter_(1, chosen[:, None], 0)

        tokens, mask = self._pad([task.tokens for task in tasks])
        settings = GenerationConfig(do_sample=False, num_beams=1, max_new_tokens=max(task.most for task in tasks))
        with torch.inference_mode():
            rows = self._network.generate(
                input_ids=tokens, attention_mask=mask, generation_config=settings, logits_processor=[choose]
            )
        written = []
        for task, row in zip(tasks, rows[:, tokens.shape[1] :].tolist(), strict=True):
            new = row[: task.most]
            end = next((place for place, token in enumerate(new) if token in self._ends), None)
            written.append((tuple(new[:end]), "length" if end is None else "stop"))
        return written

    def _pad(self, rows: Sequence[Tokens]) -> tuple[torch.Tensor, torch.Tensor]:
        import torch

        width = max(map(len, rows))
        tokens = torch.tensor([[*[self._fill] * (width - len(row)), *row] for row in rows])
        lengths = torch.tensor([len(row) for row in rows])
        mask = (torch.arange(width) >= width - lengths[:, None]).long()
        return tokens.to(self._network.device), mask.to(self._network.device)


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


def _label_logs(labels: Mapping[str, frozenset[Tokens]], every: Mapping[Tokens, float]) -> dict[str, float]:
    """Return the log probability that an answer begins with a label, and with no longer one.

    Where ``1`` and ``10`` are labels, and ``10`` is two tokens, an answer that begins with ``10`` is not a ``1``.
    """
    own: dict[Tokens, float] = {}
    for way in sorted(every, key=len, reverse=True):
        # Relative to the way itself; a probability too small for a float is left at the smallest log there is.
        rest = 1 - sum(float(np.exp(own[other] - every[way])) for other in own if _begins(way, other))
        own[way] = every[way] + float(np.log(rest)) if rest > 0 else -np.inf
    found = {label: float(np.logaddexp.reduce([own[way] for way in ways])) for label, ways in labels.items()}
    return {label: max(log, _LEAST) for label, log in found.items()}
