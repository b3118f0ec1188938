"""A causal language model on this machine, by what it writes or by how probable it finds each label of the scale.

A request is one of OpenAI's, with some fields more:

- ``labels`` (mode ``probabilities``): what the scale's labels are, as texts. The answer is the most probable one, and
  ``logprobs`` has each label's log probability over the model's whole vocabulary, so that what is outside the scale is
  known exactly. A label of several tokens has the product of their probabilities; a label's spellings (with and
  without a space before it; for words, the usual cases) are summed.
- ``prefix``: how the answer begins, such as ``- Overall:``.
- ``chat_template_kwargs``: what the model's chat template is given, such as ``{"enable_thinking": false}``.
- ``seed`` (mode ``generate``, needed above temperature 0): the same prompt and seed have the same answer.

A prompt is written with the tokenizer's chat template if it has one, else as plain text with a blank line between
messages. Texts in it that the tokenizer would read as one of its special tokens are broken up with a space. A prompt
that is too long for the model is refused: a part of a prompt is another prompt.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import httpx2

from comperdial import models
from comperdial.core.errors import ConfigError
from comperdial.judges.base import Completion, Message
from comperdial.judges.services._causal import Causal, Choosing, Task, TooLargeError, Writing
from comperdial.judges.services._chat import ChatTransport, Unanswerable
from comperdial.judges.services._gathering import Gathering
from comperdial.judges.services.base import Connection, Service
from comperdial.models import runtime

VERSION = 1
"""Goes up with every change that can change an answer."""

MODES = ("generate", "probabilities")
MAX_TOKENS = 512
"""How long an answer may be where a request does not say and the model has room."""

_TEMPLATE = "chat_template.jinja"
_COMMON = {"model", "messages", "n", "stream", "temperature", "seed", "prefix", "chat_template_kwargs"}
_KNOWN = {
    "generate": _COMMON | {"top_p", "max_tokens", "max_completion_tokens"},
    "probabilities": _COMMON | {"labels", "logprobs", "top_logprobs", "max_tokens", "max_completion_tokens"},
}
# Tokens depend on what stands just before them, and on no more than this many characters of it.
_TAIL = 200


class Transformers(Service):
    """A model of the registry or of a folder; ``mode`` and ``dtype`` are options of the connection."""

    name: ClassVar[str] = "transformers"
    needs_seed: ClassVar[bool] = True
    """A request carries a seed of its own, made from its key, so that a second run writes the same."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.mode = connection.options.get("mode", "generate")
        self.dtype = connection.options.get("dtype", "fp32")
        if not connection.model:
            raise ConfigError("the judge names no model", expected="a model's name, or a folder such as ./my-model")
        for option, value, choices in (("mode", self.mode, MODES), ("dtype", self.dtype, runtime.DTYPES)):
            if value not in choices:
                raise ConfigError(f"{option} is {value!r}", expected=" or ".join(choices))

    def identity(self) -> dict[str, Any]:
        """Return the model's checksum, the mode and the precision."""
        model = models.find(self.connection.model)
        found = {"checksum": model.digest, "mode": self.mode, "dtype": self.dtype, "transformers": VERSION}
        # No part of a model's checksum, since most of what runs a model does not read it.
        template = model.path / _TEMPLATE
        if template.is_file():
            found["template"] = hashlib.sha256(template.read_bytes()).hexdigest()[:12]
        return found

    def weighting(self, labels: Sequence[str]) -> dict[str, Any]:
        """Return what asks for the probabilities of these labels."""
        return {"labels": list(labels)}

    def unavailable(self) -> str | None:
        """Say so when a package or the model is not on this machine."""
        return runtime.missing_packages() or models.missing(self.connection.model)

    def transport(self) -> httpx2.AsyncBaseTransport:
        """Load the model and return what serves it; concurrent requests are answered together."""
        gathering = Gathering(self._causal.run)

        async def answer(messages: list[Message], body: Mapping[str, Any]) -> Completion:
            task = self._task(messages, body)
            try:
                found = await gathering.ask(task)
            except TooLargeError as error:
                raise Unanswerable(str(error)) from error
            return self._completion(task, found, body)

        return ChatTransport(answer)

    @cached_property
    def _model(self) -> models.Model:
        return models.verified(self.connection.model)

    @cached_property
    def _causal(self) -> Causal:
        return _loaded(self._model, self.dtype)

    def _task(self, messages: Sequence[Message], body: Mapping[str, Any]) -> Task:
        if unknown := sorted(set(body) - _KNOWN[self.mode]):
            raise ConfigError(
                f"a local model in mode {self.mode} takes no parameter {unknown[0]!r}",
                expected=", ".join(sorted(_KNOWN[self.mode] - {"messages", "model"})),
            )
        text = prompt_text(self._causal.tokenizer, messages, body)
        tokens = self._encode(text, whole=True)
        most = self._causal.most_tokens
        if self.mode == "probabilities":
            choosing = Choosing(tokens, self._ways(text, _labels(body)))
            task: Task = choosing
            needed = len(tokens) + max(map(len, choosing.paths))
        else:
            task = _writing(tokens, text, body, most)
            needed = task.size
        if most is not None and needed > most:
            answer = f", {needed - len(tokens)} of them for the answer" if needed > len(tokens) else ""
            raise Unanswerable(f"the prompt is too long: {needed:,} tokens needed{answer}, {most:,} allowed")
        return task

    def _encode(self, text: str, *, whole: bool = False) -> tuple[int, ...]:
        tokenizer = self._causal.tokenizer
        # A chat template writes the special token at the start itself.
        marks = whole and not tokenizer.chat_template
        found = tokenizer(text, add_special_tokens=marks)["input_ids"]
        if marks and found and found[-1] == tokenizer.eos_token_id:
            found = found[:-1]
        if whole and not found:
            raise Unanswerable("the prompt is empty")
        return tuple(found)

    def _ways(self, text: str, labels: Sequence[str]) -> dict[str, frozenset[tuple[int, ...]]]:
        """Return the tokens that may follow the prompt and mean a label."""
        tail = text[-_TAIL:]
        before = self._encode(tail)
        ways: dict[str, frozenset[tuple[int, ...]]] = {}
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

    def _completion(self, task: Task, found: Any, body: Mapping[str, Any]) -> Completion:  # noqa: ANN401
        version = f"{self._model.name}@{self._model.digest}"
        if isinstance(task, Choosing):
            best = max(found, key=found.__getitem__)
            return Completion(best, "stop", len(task.tokens), 1, version, found)
        text = self._causal.tokenizer.decode(found.tokens, skip_special_tokens=True)
        finish = "stop" if found.ended else "length"
        return Completion(_prefix(body) + text, finish, len(task.tokens), len(found.tokens), version)


@lru_cache(maxsize=1)
def _loaded(model: models.Model, dtype: str) -> Causal:
    """Load a model once for all variants that are asked of it in one run."""
    return Causal(model, dtype)


def prompt_text(tokenizer: Any, messages: Sequence[Message], body: Mapping[str, Any]) -> str:  # noqa: ANN401
    """Return the text that a model continues."""
    harmless = [{**message, "content": without_special_tokens(tokenizer, message["content"])} for message in messages]
    # A space before the answer would be a token of its own, where models expect one that starts with a space.
    prefix = _prefix(body).rstrip(" ")
    if not tokenizer.chat_template:
        text = "\n\n".join(message["content"] for message in harmless)
        return f"{text}\n{prefix}" if prefix else text.rstrip(" ")
    import jinja2

    options = body.get("chat_template_kwargs", {})
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


def _prefix(body: Mapping[str, Any]) -> str:
    prefix = body.get("prefix", "")
    if not isinstance(prefix, str):
        raise ConfigError(f"`prefix` is {prefix!r}", expected="a text")
    return prefix


def _labels(body: Mapping[str, Any]) -> list[str]:
    labels = body.get("labels")
    if not isinstance(labels, list) or not all(isinstance(label, str) and label.strip() for label in labels):
        raise ConfigError(f"`labels` is {labels!r}", expected="the scale's labels, as texts")
    if len({label.strip().casefold() for label in labels}) < max(2, len(labels)):
        raise ConfigError(f"`labels` is {labels!r}", expected="two labels or more, all different")
    return [label.strip() for label in labels]


def _writing(tokens: tuple[int, ...], text: str, body: Mapping[str, Any], room: int | None) -> Writing:
    temperature = _number(body, "temperature", 1.0, 0, 100)
    default = MAX_TOKENS if room is None else max(1, min(MAX_TOKENS, room - len(tokens)))
    limit = "max_completion_tokens" if "max_completion_tokens" in body else "max_tokens"
    most = _number(body, limit, default, 1, 1_000_000)
    if most != int(most):
        raise ConfigError(f"`{limit}` is {most!r}", expected="a whole number")
    seed = body.get("seed")
    if temperature and not isinstance(seed, int):
        raise ConfigError("the request has no seed", expected="a whole number, or temperature 0")
    own = int.from_bytes(hashlib.sha256(f"{seed}\0{text}".encode()).digest()[:8], "big")
    return Writing(tokens, int(most), temperature, _number(body, "top_p", 1.0, 0, 1), own)


def _number(body: Mapping[str, Any], name: str, default: float, low: float, high: float) -> float:
    value = body.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ConfigError(f"`{name}` is {value!r}", expected=f"a number from {low} to {high}")
    return value
