"""BERT next-sentence prediction: the probability that a response follows its context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from comperdial.metrics._history import SCOPES, fit, utterances
from comperdial.metrics._likelihood import encode, most_tokens, pad, special_token, unique
from comperdial.metrics._model import ModelMetric
from comperdial.metrics.base import Batch, Bounds, Scores, check_choice, check_number


@dataclass(frozen=True, kw_only=True)
class BertNsp(ModelMetric):
    """BERT's probability that the response is the sentence after the context (Devlin et al. 2019); 0 to 1.

    The input is [CLS] context [SEP] response [SEP], segments 0 and 1; the context is all utterances joined by spaces, or
    the last one. The probability is computed in double precision from the difference of the two logits: BERT gives
    almost every pair a probability near 1, and single precision would tie them. The default model is bert-base-uncased
    as published. If the input exceeds ``max_length``, the context is cut from the left.
    """

    kind: ClassVar[str] = "bert_nsp"
    needs: ClassVar[tuple[str, ...]] = ("histories",)
    architecture: ClassVar[str] = "AutoModelForNextSentencePrediction"

    model: str = "bert-base-uncased"
    history: Literal["all", "last"] = "all"
    """All utterances before the response, joined with spaces, or the last one."""
    max_length: int = 512
    """The most tokens of an input. What is over is cut from the context's left."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self, "history", SCOPES)
        check_number(self, "max_length", 5, 1_000_000)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the names of the probability and its log-odds, which still differ where the probability is near 1."""
        return ("bert-nsp", "bert-nsp-log-odds")

    @property
    def bounds(self) -> Mapping[str, Bounds | None]:
        """Return 0 to 1 for the probability; the log-odds are unbounded."""
        return {"bert-nsp": (0.0, 1.0), "bert-nsp-log-odds": None}

    def compute(self, batch: Batch) -> Scores:
        """Score each distinct pair of context and response once."""
        import torch
        from scipy.special import expit

        check_number(self, "max_length", 5, most_tokens(self._network))
        first, end, fill = (special_token(self._tokenizer, name) for name in ("cls", "sep", "pad"))
        contexts = [" ".join(utterances(history, self.history)) for history in batch.histories]
        found = encode(self._tokenizer, [*contexts, *batch.responses])
        made = []
        cut = np.zeros(len(batch), dtype=np.int32)
        for index, (context, response) in enumerate(zip(contexts, batch.responses, strict=True)):
            left, right, cut[index] = fit(found[context], found[response], self.max_length - 3, least=1)
            made.append(((first, *left, end), (*right, end)))
        firsts, inverse = unique(made)
        pairs = [made[position] for position in firsts]
        log_odds = np.empty(len(pairs))
        device = self._network.device
        for items in self._batches([len(left) + len(right) for left, right in pairs]):
            tokens, mask = pad([pairs[item][0] + pairs[item][1] for item in items], fill, device)
            segments, _ = pad([[0] * len(pairs[item][0]) + [1] * len(pairs[item][1]) for item in items], 0, device)
            with torch.inference_mode():
                logits = self._network(input_ids=tokens, attention_mask=mask, token_type_ids=segments).logits
            # transformers puts the logit of "follows" first.
            follows, other = logits.float().cpu().numpy().astype(np.float64).T
            log_odds[items] = follows - other
        values = expit(log_odds), log_odds
        return Scores({name: value[inverse] for name, value in zip(self.outputs, values, strict=True)}, cut=cut)
