"""BLEURT: a BERT model trained to rate a candidate against a reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from comperdial import models
from comperdial.core.errors import ConfigError
from comperdial.metrics._bleurt_model import Pieces, load_network, load_pieces, missing_package
from comperdial.metrics._model import ModelMetric
from comperdial.metrics.base import Batch, Scores, check_choice, check_number
from comperdial.metrics.text import clean


@dataclass(frozen=True, kw_only=True)
class Bleurt(ModelMetric):
    """BLEURT of a response and its best reference (Sellam et al. 2020; BLEURT-20: Pu et al. 2021).

    The input is ``[CLS] reference [SEP] response [SEP]``, with the first three parts in segment 0 and the rest in
    segment 1. A linear layer maps the pooled output to one number, for BLEURT-20 mostly between 0 and 1 but unbounded. A
    pair of more than ``max_length`` tokens loses tokens from the end of its longer side, or of the response if both are
    equally long, as in the published code; ``cut`` counts the tokens cut from the pair that counts.

    The weights are lucadiliello/BLEURT-20, a third-party PyTorch conversion that uses exact GELU, whereas Google's
    repository uses the tanh approximation. That the papers normalised the text is inferred. Yeh et al. and DEnsity used
    the checkpoint BLEURT-tiny.
    """

    kind: ClassVar[str] = "bleurt"
    libraries: ClassVar[tuple[str, ...]] = ("torch", "transformers", "sentencepiece")

    model: str = "BLEURT-20"
    text: Literal["normalised", "raw"] = "normalised"
    """``normalised`` as in ComperDial's Table 14, or ``raw``: the text as it is."""
    max_length: int = 512

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self, "text", ("normalised", "raw"))
        check_number(self, "max_length", 4, 512)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the name of the only output."""
        return ("bleurt",)

    def unavailable(self) -> str | None:
        """Return why the package or model is unavailable, or None."""
        return super().unavailable() or missing_package(models.find(self.model).path)

    @cached_property
    def _network(self) -> Any:  # noqa: ANN401
        network = load_network(models.verified(self.model), self.dtype)
        most = network.config.max_position_embeddings
        if self.max_length > most:
            raise ConfigError(
                f"option 'max_length' of metric 'bleurt' is {self.max_length}",
                expected=f"at most {most}, which model {self.model!r} was made for",
            )
        return network

    @cached_property
    def _tokenizer(self) -> Pieces:
        return load_pieces(models.verified(self.model))

    def compute(self, batch: Batch) -> Scores:
        """Score each distinct pair of texts once."""
        pairs: dict[tuple[str, str], int] = {}
        rows = [
            [
                pairs.setdefault((clean(reference, self.text), clean(response, self.text)), len(pairs))
                for reference in references
            ]
            for response, references in zip(batch.responses, batch.references, strict=True)
        ]
        scores, lost = self._pair_scores(list(pairs))
        best = np.array([max(row, key=lambda pair: scores[pair]) for row in rows], dtype=np.int64)
        return Scores({"bleurt": scores[best]}, lost[best])

    def _pair_scores(self, pairs: Sequence[tuple[str, str]]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int32]]:
        """Return the score of each pair, and the number of tokens cut from it."""
        scores, cut = np.zeros(len(pairs), dtype=np.float64), np.zeros(len(pairs), dtype=np.int32)
        if not pairs:
            return scores, cut
        import torch

        pieces, network = self._tokenizer, self._network
        encoded = {text: pieces.encode(text) for text in dict.fromkeys(text for pair in pairs for text in pair)}
        sides = [tuple(encoded[text] for text in pair) for pair in pairs]
        room = self.max_length - 3
        kept = [fitting(len(reference), len(response), room) for reference, response in sides]
        for number, (reference, response) in enumerate(sides):
            cut[number] = len(reference) + len(response) - sum(kept[number])
        for group in self._batches([sum(lengths) + 3 for lengths in kept]):
            width = max(sum(kept[number]) for number in group) + 3
            ids, segments, mask = (torch.zeros((len(group), width), dtype=torch.long) for _ in range(3))
            for row, number in enumerate(group):
                (first, second), (reference, response) = kept[number], sides[number]
                line = [pieces.start, *reference[:first], pieces.separator, *response[:second], pieces.separator]
                ids[row, : len(line)] = torch.tensor(line)
                segments[row, first + 2 : len(line)] = 1
                mask[row, : len(line)] = 1
            with torch.inference_mode():
                logits = network(
                    input_ids=ids.to(network.device),
                    token_type_ids=segments.to(network.device),
                    attention_mask=mask.to(network.device),
                ).logits[:, 0]
            scores[group] = logits.float().cpu().numpy()
        return scores, cut


def fitting(reference: int, response: int, room: int) -> tuple[int, int]:
    """Return the tokens to keep of each side: they are removed one by one from the longer side, in a tie the response."""
    while reference + response > room:
        if reference > response:
            reference -= 1
        else:
            response -= 1
    return reference, response
