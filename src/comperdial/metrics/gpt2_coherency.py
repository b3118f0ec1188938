"""GPT-2 coherency: the likelihood of a response after its context under a language model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from comperdial.metrics._history import SCOPES, fit, utterances
from comperdial.metrics._likelihood import encode, log_likelihoods, most_tokens, pad, special_token, unique
from comperdial.metrics._model import ModelMetric
from comperdial.metrics.base import Batch, Scores, check_choice, check_number
from comperdial.models.trees import halves


@dataclass(frozen=True, kw_only=True)
class Gpt2Coherency(ModelMetric):
    """The log-likelihood of a response given its context, in nats; higher (nearer 0) is better.

    ``gpt2-coherency`` is the mean over the response's tokens (minus the logarithm of its perplexity), as Park et al. 2023
    (DEnsity) describe the context coherence of Pang et al. 2020; ``gpt2-coherency-sum`` is the sum, as in the code of
    Pang et al. Their last step (raise scores below the data set's 5th percentile to it, then divide all scores by it) is
    left out, so a score does not depend on other responses. Both papers fine-tune GPT-2 on dialogues; the default here is
    GPT-2 as published. The way utterances are joined (``separator``) is inferred. If the input exceeds ``max_length``,
    the context is cut from the left.
    """

    kind: ClassVar[str] = "gpt2_coherency"
    needs: ClassVar[tuple[str, ...]] = ("histories",)
    architecture: ClassVar[str] = "AutoModelForCausalLM"

    model: str = "gpt2"
    history: Literal["all", "last"] = "all"
    """All utterances before the response, or the last one."""
    separator: Literal["space", "newline", "eos"] = "space"
    """What stands between utterances: a space as in Pang et al.'s code, a line end, or the end-of-text token, as
    DialoGPT was trained."""
    max_length: int = 1024
    """The most tokens of context and response. What is over is cut from the context's left."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self, "history", SCOPES)
        check_choice(self, "separator", ("space", "newline", "eos"))
        check_number(self, "max_length", 2, 1_000_000)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the names of the mean and the sum over the response's tokens."""
        return ("gpt2-coherency", "gpt2-coherency-sum")

    def compute(self, batch: Batch) -> Scores:
        """Score each distinct pair of context and response once."""
        import torch

        check_number(self, "max_length", 2, most_tokens(self._network))
        body, head = halves(self._network)
        inputs = []
        cut = np.zeros(len(batch), dtype=np.int32)
        for index, (context, response) in enumerate(self._tokens(batch)):
            # Scoring the first token of the response requires a token before it.
            context, response, cut[index] = fit(context, response, self.max_length, least=1)
            inputs.append((tuple(context), tuple(response)))
        firsts, inverse = unique(inputs)
        pairs = [inputs[first] for first in firsts]
        values = np.full((2, len(pairs)), np.nan)
        # Some tokenizers return no tokens for some texts; the score is missing if the response or the context is empty.
        whole = [item for item, pair in enumerate(pairs) if all(pair)]
        for group in self._batches([sum(map(len, pairs[item])) for item in whole]):
            items = [whole[place] for place in group]
            tokens, mask = pad([[*pairs[item][0], *pairs[item][1]] for item in items], 0, self._network.device)
            rows = [row for row, item in enumerate(items) for _ in pairs[item][1]]
            places = [len(pairs[item][0]) + place for item in items for place in range(len(pairs[item][1]))]
            with torch.inference_mode():
                hidden = body(input_ids=tokens, attention_mask=mask, use_cache=False).last_hidden_state
                before = [place - 1 for place in places]
                found = log_likelihoods(head, hidden[rows, before], tokens[rows, places])
            bounds = np.cumsum([len(pairs[item][1]) for item in items])[:-1]
            for item, parts in zip(items, np.split(found, bounds), strict=True):
                values[:, item] = parts.mean(), parts.sum()
        return Scores(dict(zip(self.outputs, values[:, inverse], strict=True)), cut=cut)

    def _tokens(self, batch: Batch) -> list[tuple[list[int], list[int]]]:
        """Return the tokens of each context, including its end marker, and of each response."""
        dialogues = [
            [*utterances(history, self.history), response.strip()]
            for history, response in zip(batch.histories, batch.responses, strict=True)
        ]
        # GPT-2 attaches a space to the token after it, so the parts give the same tokens as the joined text.
        lead = " " if self.separator == "space" else ""
        pieces = [[texts[0], *(lead + text for text in texts[1:])] for texts in dialogues]
        found = encode(self._tokenizer, (piece for texts in pieces for piece in texts))
        between = self._between()
        return [
            ([token for piece in texts[:-1] for token in (*found[piece], *between)], found[texts[-1]])
            for texts in pieces
        ]

    def _between(self) -> Sequence[int]:
        if self.separator == "eos":
            return [special_token(self._tokenizer, "eos")]
        return encode(self._tokenizer, ["\n"])["\n"] if self.separator == "newline" else []
