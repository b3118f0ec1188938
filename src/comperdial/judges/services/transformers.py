"""A causal language model on this machine, by what it writes or by how probable it finds each label of the scale.

The parameters are OpenAI's (``temperature``, ``top_p``, ``max_tokens``), with some more:

- ``labels`` (mode ``probabilities``): the scale's labels, as texts. The answer is the most probable one, and
  ``logprobs`` has each label's log probability over the model's whole vocabulary, so that what is outside the scale is
  known exactly. A label of several tokens has the product of their probabilities; a label's spellings (with and
  without a space before it; for words, the usual cases) are summed.
- ``prefix``: how the answer begins, such as ``- Overall:``.
- ``chat_template_kwargs``: what the model's chat template is given, such as ``{"enable_thinking": false}``.
- ``seed`` (mode ``generate``, needed above temperature 0): the same prompt and seed have the same answer.

A prompt is written with the tokenizer's chat template if it has one, else as plain text with a blank line between
messages. Texts in it that the tokenizer would read as one of its special tokens are broken up with a space. A prompt
that is too long for the model is refused: a part of a prompt is another prompt.

Requests that wait at the same time go through the model as one batch, and each is answered as it would be alone: rows
are padded on the left, with a mask and with positions that start at each prompt's first token. In mode ``probabilities``
prompts that begin alike, such as questions about one response, are one row: a tree of tokens, each of which sees only
those before it in its own prompts. What prompts share goes through the model once.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import logging
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from comperdial import models
from comperdial.core.errors import ComperdialError, ConfigError
from comperdial.judges.base import Completion, JudgeError, Message, Refused
from comperdial.judges.services.base import Connection, Service
from comperdial.models import runtime, trees

if TYPE_CHECKING:
    import torch

log = logging.getLogger(__name__)

VERSION = 1
"""Goes up with every change that can change an answer."""

MODES = ("generate", "probabilities")
MAX_TOKENS = 512
"""How long an answer may be where a request does not say and the model has room."""
LEAST = -9999.0
"""Stands for a probability of 0, which JSON has no logarithm for; OpenAI uses the same number."""

_TEMPLATE = "chat_template.jinja"
_COMMON = {"temperature", "seed", "prefix", "chat_template_kwargs", "max_tokens", "max_completion_tokens"}
_KNOWN = {"generate": _COMMON | {"top_p"}, "probabilities": _COMMON | {"labels", "logprobs", "top_logprobs"}}
# Tokens depend on what stands just before them, and on no more than this many characters of it.
_TAIL = 200
# Seconds in which more requests may come before a batch is begun.
_PAUSE = 0.003
# Prompts whose probabilities over the whole vocabulary are in memory at once.
_HEADS = 128

Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Continuation:
    """A prompt to be continued by at most ``most`` tokens; ``seed`` is what the draws come from."""

    tokens: Tokens
    most: int
    temperature: float
    top_p: float
    seed: int

    @property
    def size(self) -> int:
        """Return how many tokens of a batch it takes."""
        return len(self.tokens) + self.most


@dataclass(frozen=True)
class Choice:
    """A prompt, and for each label the tokens that may come next and mean it."""

    tokens: Tokens
    labels: Mapping[str, frozenset[Tokens]]

    @cached_property
    def paths(self) -> list[Tokens]:
        """Return what has to follow the prompt in the model's input, so that all labels' tokens are predicted."""
        starts = {way[:-1] for ways in self.labels.values() for way in ways}
        return sorted(start for start in starts if not any(_begins(start, other) for other in starts))

    @property
    def size(self) -> int:
        """Return how many tokens of a batch it takes."""
        return sum(len(self.tokens) + len(path) for path in self.paths)


Task = Continuation | Choice


class Transformers(Service):
    """A model of the registry or of a folder; ``mode`` and ``dtype`` are options of the connection."""

    name: ClassVar[str] = "transformers"
    needs_seed: ClassVar[bool] = True

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.mode = connection.options.get("mode", "generate")
        self.dtype = connection.options.get("dtype", "fp32")
        if not connection.model:
            raise ConfigError("the judge names no model", expected="a model's name, or a folder such as ./my-model")
        for option, value, choices in (("mode", self.mode, MODES), ("dtype", self.dtype, runtime.DTYPES)):
            if value not in choices:
                raise ConfigError(f"{option} is {value!r}", expected=" or ".join(choices))
        self.shares_prompts = self.mode == "probabilities"
        self._waiting: list[tuple[Task, asyncio.Future[Any]]] = []
        self._worker: asyncio.Task[None] | None = None

    def identity(self) -> dict[str, Any]:
        """Return the model's checksum, the mode and the precision.

        Of a model that is not here and whose checksum the registry knows, these are known all the same: what the ledger
        holds of it can be used.
        """
        pinned = models.pinned(self.connection.model) if models.missing(self.connection.model) else None
        model = None if pinned else models.find(self.connection.model)
        found = {
            "checksum": model.digest if model else pinned,
            "mode": self.mode,
            "dtype": self.dtype,
            "transformers": VERSION,
        }
        # Not part of a model's checksum, since most of what runs a model does not read it.
        if model and (template := model.path / _TEMPLATE).is_file():
            found["template"] = hashlib.sha256(template.read_bytes()).hexdigest()[:12]
        return found

    def weighting(self, labels: Sequence[str]) -> dict[str, Any]:
        """Return what asks for the probabilities of these labels."""
        return {"labels": list(labels)}

    def unavailable(self) -> str | None:
        """Say so when a package or the model is not on this machine."""
        return runtime.missing_packages() or models.missing(self.connection.model)

    async def __aenter__(self) -> Self:
        """Load the model."""
        _ = self._causal
        return self

    async def complete(self, messages: Sequence[Message], parameters: Mapping[str, Any]) -> Completion:
        """Answer a request, together with those that wait at the same time.

        Raises
        ------
        Refused
            When the prompt is empty, too long for the model or too large for the device's memory.
        ConfigError
            When a parameter is wrong.
        JudgeError
            When the model cannot be loaded.
        """
        task = self._task(messages, parameters)
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((task, future))
        if self._worker is None:
            self._worker = asyncio.create_task(self._answer())
        found = await future
        version, size = self._causal.version, len(task.tokens)
        if isinstance(task, Choice):
            ranked = dict(sorted(found.items(), key=lambda pair: -pair[1]))
            return Completion(next(iter(ranked)), "stop", size, 1, version, ranked)
        tokens, finish = found
        text = _prefix(parameters) + self._causal.tokenizer.decode(tokens, skip_special_tokens=True)
        return Completion(text, finish, size, len(tokens), version)

    async def _answer(self) -> None:
        """Answer what waits, batch by batch, in a thread, so that the event loop goes on."""
        try:
            while self._waiting:
                before = 0
                while len(self._waiting) > before:
                    before = len(self._waiting)
                    await asyncio.sleep(_PAUSE)
                # Without those given up meanwhile.
                batch = [pair for pair in self._waiting if not pair[1].done()]
                try:
                    if self.mode == "generate":
                        groups = runtime.batches([task.size for task, _ in batch])
                        # The one that the oldest request is in.
                        batch = [batch[place] for place in sorted(next((group for group in groups if 0 in group), []))]
                    found = await asyncio.to_thread(self._causal.run, [task for task, _ in batch])
                except Exception as error:
                    # It belongs to those who wait, and is raised there.
                    found = [error] * len(batch)
                for (_, future), value in zip(batch, found, strict=True):
                    if not future.done():
                        future.set_exception(value) if isinstance(value, Exception) else future.set_result(value)
                self._waiting = [pair for pair in self._waiting if not pair[1].done()]
        finally:
            self._worker = None

    @cached_property
    def _causal(self) -> Causal:
        try:
            return _loaded(models.verified(self.connection.model), self.dtype)
        except (ComperdialError, ImportError, OSError, RuntimeError, ValueError) as error:
            raise JudgeError(f"the model cannot be loaded: {error}") from error

    def _task(self, messages: Sequence[Message], parameters: Mapping[str, Any]) -> Task:
        if unknown := sorted(set(parameters) - _KNOWN[self.mode]):
            raise ConfigError(
                f"a local model in mode {self.mode} takes no parameter {unknown[0]!r}",
                expected=", ".join(sorted(_KNOWN[self.mode])),
            )
        text = prompt_text(self._causal.tokenizer, messages, parameters)
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise Refused("not Unicode", "the prompt holds half of a character")
        tokens = self._encode(text, whole=True)
        if not tokens:
            raise Refused("400", "the prompt is empty")
        room = self._causal.most_tokens
        if self.mode == "probabilities":
            task: Task = (choice := Choice(tokens, self._ways(text, _labels(parameters))))
            needed = len(tokens) + max(map(len, choice.paths))
        else:
            task = _continuation(tokens, text, parameters, room)
            needed = task.size
        if room is not None and needed > room:
            answer = f", {needed - len(tokens)} of them for the answer" if needed > len(tokens) else ""
            raise Refused("400", f"the prompt is too long: {needed:,} tokens needed{answer}, {room:,} allowed")
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
                raise ConfigError(f"the tokenizer {problem}", where=self.connection.model, expected="other labels")
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


def _labels(parameters: Mapping[str, Any]) -> list[str]:
    labels = parameters.get("labels")
    if not isinstance(labels, list) or not all(isinstance(label, str) and label.strip() for label in labels):
        raise ConfigError(f"`labels` is {labels!r}", expected="the scale's labels, as texts")
    if len({label.strip().casefold() for label in labels}) < max(2, len(labels)):
        raise ConfigError(f"`labels` is {labels!r}", expected="two labels or more, all different")
    return [label.strip() for label in labels]


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

    def run(self, tasks: Sequence[Any]) -> list[Any]:
        """Do tasks of one kind together; fewer at a time where memory or the model's positions do not do.

        Returns
        -------
        list
            For each task the new tokens and why they end, or log probabilities by label; or a :class:`Refused`.
        """
        import torch

        if not tasks:
            return []
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
            return [Refused("400", f"the device's memory does not hold a prompt of {len(tasks[0].tokens):,} tokens")]
        half = len(tasks) // 2
        return [*self.run(tasks[:half]), *self.run(tasks[half:])]

    def _choose(self, tasks: Sequence[Choice]) -> list[dict[str, float]]:
        """Return the log probability of each label, over the whole vocabulary."""
        rows = [(place, path) for place, task in enumerate(tasks) for path in task.paths]
        known: list[dict[Tokens, float]] = [{} for _ in tasks]
        inputs = [((*tasks[place].tokens, *path), 1 + len(path)) for place, path in rows]
        for row, at in (self._branches if self._is_tree else self._rows)(inputs):
            place, path = rows[row]
            every = (way for ways in tasks[place].labels.values() for way in ways)
            ways = [way for way in every if path[: len(way) - 1] == way[:-1]]
            wanted = sorted({token for way in ways for token in way})
            # In the precision of the sum, which for a wide vocabulary has to be double.
            logs = (at[:, wanted] - at.logsumexp(1, keepdim=True)).tolist()
            by_token = [dict(zip(wanted, row_logs, strict=True)) for row_logs in logs]
            for way in ways:
                known[place][way] = sum(by_token[step][token] for step, token in enumerate(way))
        return [_label_logs(task.labels, found) for task, found in zip(tasks, known, strict=True)]

    def _rows(self, inputs: Sequence[tuple[Tokens, int]]) -> Iterator[tuple[int, torch.Tensor]]:
        """Yield the place of each input with the logits at its last places, as many as it says: a row an input."""
        for group in runtime.batches([len(tokens) for tokens, _ in inputs]):
            keep = max(inputs[place][1] for place in group)
            for place, values in zip(group, self._logits([inputs[place][0] for place in group], keep), strict=True):
                yield place, values[keep - inputs[place][1] :]

    def _branches(self, inputs: Sequence[tuple[Tokens, int]]) -> Iterator[tuple[int, torch.Tensor]]:
        """Do as :meth:`_rows`, with a row a tree of inputs that begin alike."""
        import torch

        grown = list(trees.grow([tokens for tokens, _ in inputs]))
        body, head = self._halves
        for group in runtime.batches([len(tree) for tree in grown], runtime.batch_tokens(trees.CPU_TOKENS)):
            chosen, start = [grown[place] for place in group], time.monotonic()
            paths = [(row, place, path) for row, tree in enumerate(chosen) for place, path in tree.paths.items()]
            with torch.inference_mode():
                hidden = body(**trees.arguments(chosen, self._network, self._fill), use_cache=False).last_hidden_state
            for some in (paths[first : first + _HEADS] for first in range(0, len(paths), _HEADS)):
                ends = [path[-inputs[place][1] :] for _, place, path in some]
                rows = [row for (row, _, _), end in zip(some, ends, strict=True) for _ in end]
                with torch.inference_mode():
                    logits = head(hidden[rows, [token for end in ends for token in end]])
                    logits = logits.to(_precise(logits))
                yield from zip((place for _, place, _ in some), logits.split([len(end) for end in ends]), strict=True)
            log.info(
                "%d prompts of %d tokens, %d of them through the model, in %.1f s",
                *(len(paths), sum(len(path) for _, _, path in paths), sum(map(len, chosen))),
                time.monotonic() - start,
            )

    @cached_property
    def _halves(self) -> tuple[Any, Any]:
        return trees.halves(self._network)

    @cached_property
    def _is_tree(self) -> bool:
        """Say whether the model takes a tree: positions and who sees whom as given, which is tried on a small one."""
        import torch

        config = self._network.config.get_text_config()
        if getattr(config, "sliding_window", None) and getattr(config, "use_sliding_window", True):
            return False
        if "position_ids" not in inspect.signature(self._network.base_model.forward).parameters:
            return False
        size = min(config.vocab_size, 8) - 1
        stem = [token % size for token in (1, 2, 3, 4)]
        probe = [((*stem, token % size, 5 % size), 2) for token in (5, 6)] + [((*stem[:2], 6 % size), 1)]
        try:
            plain, shared = dict(self._rows(probe)), dict(self._branches(probe))
        except (ConfigError, RuntimeError, TypeError, ValueError):
            return False
        close = 1e-3 if self._network.dtype == torch.float32 else 0.1
        return all(torch.allclose(shared[place], plain[place], rtol=close, atol=close) for place in plain)

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


def _label_logs(labels: Mapping[str, Iterable[Tokens]], every: Mapping[Tokens, float]) -> dict[str, float]:
    """Return the log probability that an answer begins with a label, and with no longer one.

    Where ``1`` and ``10`` are labels, and ``10`` is two tokens, an answer that begins with ``10`` is not a ``1``.
    """
    own: dict[Tokens, float] = {}
    for way in sorted(every, key=len, reverse=True):
        # Relative to the way itself; a probability too small for a float is left at the smallest log there is.
        rest = 1 - sum(float(np.exp(own[other] - every[way])) for other in own if _begins(way, other))
        own[way] = every[way] + float(np.log(rest)) if rest > 0 else -np.inf
    found = {label: float(np.logaddexp.reduce([own[way] for way in ways])) for label, ways in labels.items()}
    return {label: max(log, LEAST) for label, log in found.items()}
