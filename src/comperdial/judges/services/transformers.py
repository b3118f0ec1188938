"""A local causal language model as judge, from the probability of each label of a scale.

The parameters are ``prefix`` (the beginning of the answer), ``chat_template_kwargs`` and ``dtype``; see docs/judges.md. The
probability of a label is the product over its tokens, summed over its spellings.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import re
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from comperdial import models
from comperdial.core.errors import ComperdialError, ConfigError
from comperdial.judges.requests import Answer, JudgeError, Message, RefusedError
from comperdial.judges.services import Service
from comperdial.models import runtime

if TYPE_CHECKING:
    from comperdial.judges.tasks import Judge

VERSION = 1
"""Goes up with every change that can change an answer."""
# Stands for the log of probability 0, which JSON cannot represent; OpenAI uses the same number.
_LEAST = -9999.0
_KNOWN = ("chat_template_kwargs", "dtype", "prefix")
# Tokenization depends on at most this many preceding characters.
_TAIL = 200

Tokens = tuple[int, ...]


class Choice(NamedTuple):
    """A prompt, and for each label the token sequences that express it."""

    tokens: Tokens
    labels: Mapping[str, frozenset[Tokens]]

    @property
    def paths(self) -> list[Tokens]:
        """Return the sequences to append to the prompt, so that all tokens of labels are predicted."""
        starts = {way[:-1] for ways in self.labels.values() for way in ways}
        return sorted(start for start in starts if not any(_begins(start, other) for other in starts))


class Transformers(Service):
    """A model from the registry or a folder."""

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        self.dtype = judge.parameters.get("dtype", "fp32")
        if not judge.model:
            raise ConfigError("the judge names no model", expected="a model's name, or a folder such as ./my-model")
        self.model: str = judge.model
        if self.dtype not in runtime.DTYPES:
            raise ConfigError(f"dtype is {self.dtype!r}", expected=" or ".join(runtime.DTYPES))
        if judge.mode != "probabilities":
            hint = "For one that writes its answers, start a server (vLLM, llama.cpp, Ollama): `service: openai`"
            raise ConfigError(f"a local model in mode {judge.mode}", expected="mode: probabilities", hint=hint)
        if unknown := sorted(judge.parameters.keys() - {*_KNOWN}):
            raise ConfigError(f"a local model takes no parameter {unknown[0]!r}", expected=", ".join(_KNOWN))
        # One prompt at a time.
        self._busy = asyncio.Lock()

    def identity(self) -> dict[str, Any]:
        """Return the model's checksum, the mode and the precision.

        The registry knows the checksums of some missing models, so that published answers can be used without the model.
        """
        pinned = models.pinned(self.model) if models.missing(self.model) else None
        model = None if pinned else models.find(self.model)
        identity = {
            "checksum": model.digest if model else pinned,
            "mode": self.judge.mode,
            "dtype": self.dtype,
            "transformers": VERSION,
        }
        # Not in a model's checksum, since most uses of a model ignore it.
        if model and (template := model.path / "chat_template.jinja").is_file():
            identity["template"] = hashlib.sha256(template.read_bytes()).hexdigest()[:12]
        return identity

    def weighting(self, labels: Sequence[str]) -> dict[str, Any]:
        """Return the parameters that request the probabilities of these labels."""
        return {"labels": list(labels)}

    def unavailable(self) -> str | None:
        """Return the missing package or model, as a message."""
        return runtime.missing_packages() or models.missing(self.model)

    async def complete(self, chat: Sequence[Message], parameters: Mapping[str, Any]) -> Answer:
        """Answer a request."""
        tokenizer, network, version = self._loaded
        text = _prompt_text(tokenizer, chat, parameters)
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise RefusedError("the prompt holds half of a character")
        tokens = _encode(tokenizer, text, whole=True)
        if not tokens:
            raise RefusedError("the prompt is empty")
        room = getattr(network.config.get_text_config(), "max_position_embeddings", None)
        choice = Choice(tokens, _ways(tokenizer, self.model, text, parameters["labels"]))
        needed = len(tokens) + max(map(len, choice.paths))
        if room is not None and needed > room:
            raise RefusedError(f"the prompt is too long: {needed:,} tokens with the answer, {room:,} allowed")
        async with self._busy:
            logs = await asyncio.to_thread(_probabilities, network, choice)
        ranked = dict(sorted(logs.items(), key=lambda pair: -pair[1]))
        return Answer(next(iter(ranked)), "stop", len(tokens), 1, version, ranked)

    async def close(self) -> None:
        """Drop the reference to the event loop."""
        self._busy = asyncio.Lock()

    @cached_property
    def _loaded(self) -> tuple[Any, Any, str]:
        """Return tokenizer, network, and the model's name and checksum."""
        try:
            model = models.verified(self.model)
            return *_load(model, self.dtype), f"{model.name}@{model.digest}"
        except (ComperdialError, ImportError, OSError, RuntimeError, ValueError) as error:
            raise JudgeError(f"the model cannot be loaded: {error}") from error


@lru_cache(maxsize=1)
def _load(model: models.Model, dtype: str) -> tuple[Any, Any]:
    """Load a model once for all variants of a run."""
    return runtime.load_tokenizer(model), runtime.load(model, "AutoModelForCausalLM", dtype)


# --- prompts and labels as tokens ------------------------------------------------------------------------------------


def _prompt_text(tokenizer: Any, messages: Sequence[Message], parameters: Mapping[str, Any]) -> str:  # noqa: ANN401
    """Return the model's input text: by its chat template, or plain with blank lines between messages."""
    harmless = [{**message, "content": _defused(tokenizer, message["content"])} for message in messages]
    # A trailing space would be its own token, whereas models expect an answer token that begins with a space.
    prefix = parameters.get("prefix", "").rstrip(" ")
    if not tokenizer.chat_template:
        text = "\n\n".join(message["content"] for message in harmless)
        return f"{text}\n{prefix}" if prefix else text.rstrip(" ")
    import jinja2

    options = parameters.get("chat_template_kwargs", {})
    try:
        text = tokenizer.apply_chat_template(harmless, tokenize=False, add_generation_prompt=True, **options)
    except (jinja2.TemplateError, TypeError) as error:
        problem = f"the model's chat template does not take the messages ({error})"
        raise ConfigError(problem, expected="one that does, or none") from error
    return str(text) + prefix


def _defused(tokenizer: Any, text: str) -> str:  # noqa: ANN401
    """Return a text without special tokens of the tokenizer, such as an end of turn."""
    added = tokenizer.added_tokens_decoder.values()
    special = {token.content for token in added if token.special or re.fullmatch(r"<.+>|\[.+\]", token.content)}
    special = {token.strip() for token in {*special, *tokenizer.all_special_tokens}}
    while token := next((token for token in special if token and token in text), None):
        text = text.replace(token, f"{token[0]} {token[1:]}" if len(token) > 1 else " ")
    return text


def _encode(tokenizer: Any, text: str, *, whole: bool = False) -> Tokens:  # noqa: ANN401
    # A chat template adds the start token itself.
    marks = whole and not tokenizer.chat_template
    tokens = tokenizer(text, add_special_tokens=marks)["input_ids"]
    return tuple(tokens[:-1] if marks and tokens and tokens[-1] == tokenizer.eos_token_id else tokens)


def _ways(tokenizer: Any, model: str, text: str, labels: Sequence[str]) -> dict[str, frozenset[Tokens]]:  # noqa: ANN401
    """Return the tokens that express each label after the prompt: with and without a leading space, in common cases."""
    tail = text[-_TAIL:]
    before = _encode(tokenizer, tail)
    ways: dict[str, frozenset[Tokens]] = {}
    for label in labels:
        cases = {label, label.lower(), label.upper(), label.capitalize()}
        wholes = {_encode(tokenizer, tail + space + case) for case in cases for space in ("", " ")}
        after = {whole[len(before) :] for whole in wholes if whole[: len(before)] == before}
        # If the prompt's last token would merge with the label, encode the label alone.
        ways[label] = frozenset(filter(None, after)) or frozenset(filter(None, [_encode(tokenizer, label)]))
        taken = next((other for other in ways if other != label and ways[other] & ways[label]), None)
        if taken or not ways[label]:
            problem = f"has the same tokens for {taken!r} and {label!r}" if taken else f"has no token for {label!r}"
            raise ConfigError(f"the tokenizer {problem}", where=model, expected="other labels")
    return ways


# --- the model -------------------------------------------------------------------------------------------------------


def _probabilities(network: Any, choice: Choice) -> dict[str, float]:  # noqa: ANN401
    """Return the log probability of each label, over the whole vocabulary."""
    import torch

    known: dict[Tokens, float] = {}
    for path in choice.paths:
        tokens, keep = torch.tensor([[*choice.tokens, *path]], device=network.device), 1 + len(path)
        accepted = inspect.signature(network.forward).parameters
        extra = {"logits_to_keep": keep} if "logits_to_keep" in accepted else {}
        with torch.inference_mode():
            logits = network(input_ids=tokens, use_cache=False, **extra).logits[0, -keep:]
        logits = logits.to(torch.float32 if logits.device.type == "mps" else torch.float64)
        logs = logits - logits.logsumexp(1, keepdim=True)
        for way in (way for ways in choice.labels.values() for way in ways):
            if path[: len(way) - 1] == way[:-1]:
                known[way] = sum(float(logs[step, token]) for step, token in enumerate(way))
    return _label_logs(choice.labels, known)


def _begins(start: Tokens, other: Tokens) -> bool:
    """Return whether a token sequence is a proper prefix of another."""
    return len(start) < len(other) and other[: len(start)] == start


def _label_logs(labels: Mapping[str, frozenset[Tokens]], every: Mapping[Tokens, float]) -> dict[str, float]:
    """Return the log probability that an answer begins with a label, and not with a longer one.

    If ``1`` and ``10`` are labels, and ``10`` is two tokens, an answer that begins with ``10`` is not a ``1``.
    """
    own: dict[Tokens, float] = {}
    for way in sorted(every, key=len, reverse=True):
        # Relative to this sequence; probabilities too small for a float get the smallest log.
        rest = 1 - sum(float(np.exp(own[other] - every[way])) for other in own if _begins(way, other))
        own[way] = every[way] + float(np.log(rest)) if rest > 0 else -np.inf
    logs = {label: float(np.logaddexp.reduce([own[way] for way in ways])) for label, ways in labels.items()}
    return {label: max(log, _LEAST) for label, log in logs.items()}
