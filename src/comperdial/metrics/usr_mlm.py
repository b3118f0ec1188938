"""USR-MLM: the likelihood of each token of a response under a masked language model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from comperdial.metrics._history import SCOPES, fit, utterances
from comperdial.metrics._likelihood import encode, log_likelihoods, most_tokens, pad, special_token, unique
from comperdial.metrics._model import ModelMetric
from comperdial.metrics.base import Batch, Scores, check_choice, check_number
from comperdial.models.trees import halves

# Markers in the released code: between utterances, after the context, and after the response.
_BETWEEN, _BEFORE, _AFTER = " _eos ", " _eos _go", " _eos"


class _Input(NamedTuple):
    tokens: tuple[int, ...]
    start: int
    """The masked tokens are those from ``start`` to before ``stop``, one at a time."""
    stop: int


@dataclass(frozen=True, kw_only=True)
class UsrMlm(ModelMetric):
    """The mean log-likelihood, in nats, of a response's tokens, each masked in turn; higher (nearer 0) is better.

    The input is "context _eos _go response _eos" in lower case, as in the released code of Mehri and Eskenazi 2020b
    (USR). That code also masks the context and markers (``masked: all``); Park et al. 2023 (DEnsity) describe masking only
    the response's tokens, given the context (``masked: response``). The authors also tokenised their data with spaCy,
    which is not done here. With ``history: all``, utterances are joined by ``_eos``, which is inferred.

    USR-MLM is a RoBERTa model fine-tuned on Topical-Chat by its authors, whose weights are not on the hub. The default
    weights are a third-party upload (adamlin/usr-topicalchat-roberta_ft) that could not be verified. With other weights,
    the formula is the same but the metric is not USR-MLM: name such results after the model. If the input exceeds
    ``max_length``, the context is cut from the left.
    """

    kind: ClassVar[str] = "usr_mlm"
    needs: ClassVar[tuple[str, ...]] = ("histories",)
    architecture: ClassVar[str] = "AutoModelForMaskedLM"

    model: str = "usr-mlm"
    history: Literal["all", "last"] = "last"
    """The last utterance before the response, as in the released data, or all."""
    masked: Literal["response", "all"] = "response"
    """Whose tokens are masked and counted: the response's, or those of the whole input."""
    lowercase: bool = True
    max_length: int = 512
    """The most tokens of an input. What is over is cut from the context's left."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self, "history", SCOPES)
        check_choice(self, "masked", ("response", "all"))
        check_number(self, "max_length", 3, 1_000_000)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the name of the only output."""
        return ("usr-mlm",)

    def compute(self, batch: Batch) -> Scores:
        """Score each distinct input once, with one copy per masked token."""
        import torch

        made, cut = self._inputs(batch)
        body, head = halves(self._network)
        mask_token, fill = (special_token(self._tokenizer, name) for name in ("mask", "pad"))
        firsts, inverse = unique(made)
        inputs = [made[first] for first in firsts]
        counts = np.array([item.stop - item.start for item in inputs], dtype=int)
        owners = np.repeat(np.arange(len(inputs)), counts)
        places = np.concatenate([np.empty(0, int), *(np.arange(item.start, item.stop) for item in inputs)])
        found = np.empty(len(owners))
        for items in self._batches([len(inputs[owner].tokens) for owner in owners]):
            tokens, mask = pad([inputs[owner].tokens for owner in owners[items]], fill, self._network.device)
            rows = torch.arange(len(items), device=tokens.device)
            columns = torch.from_numpy(places[items]).to(tokens.device)
            targets = tokens[rows, columns]
            tokens[rows, columns] = mask_token
            with torch.inference_mode():
                hidden = body(input_ids=tokens, attention_mask=mask).last_hidden_state
                found[items] = log_likelihoods(head, hidden[rows, columns], targets)
        sums = np.bincount(owners, weights=found, minlength=len(inputs))
        means = np.divide(sums, counts, out=np.full(len(inputs), np.nan), where=counts > 0)
        return Scores({"usr-mlm": means[inverse]}, cut=cut)

    def _inputs(self, batch: Batch) -> tuple[list[_Input], npt.NDArray[np.int32]]:
        contexts = [self._clean(_BETWEEN.join(utterances(history, self.history))) for history in batch.histories]
        responses = [" " + self._clean(response) for response in batch.responses]
        found = encode(self._tokenizer, [*contexts, *responses, _BEFORE, _AFTER])
        before, after = found[_BEFORE], found[_AFTER]
        first, last = (special_token(self._tokenizer, name) for name in ("cls", "sep"))
        fixed = 2 + len(before) + len(after)
        check_number(self, "max_length", fixed + 1, most_tokens(self._network))
        inputs = []
        cut = np.zeros(len(batch), dtype=np.int32)
        for index, (context, response) in enumerate(zip(contexts, responses, strict=True)):
            left, right, cut[index] = fit(found[context], found[response], self.max_length - fixed)
            tokens = (first, *left, *before, *right, *after, last)
            start = 1 + len(left) + len(before)
            whole = self.masked == "all"
            inputs.append(_Input(tokens, *((1, len(tokens) - 1) if whole else (start, start + len(right)))))
        return inputs, cut

    def _clean(self, text: str) -> str:
        return " ".join((text.lower() if self.lowercase else text).split())
