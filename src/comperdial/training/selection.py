"""The selection model: an encoder that reads a context with its candidate responses, and a head that scores them.

The candidates follow the context in one sequence. The context attends to itself; each candidate attends to the context and
itself, at the positions right after the context. So the context, the longest part, is encoded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from comperdial.models import Model, runtime

Tokens = Sequence[int]
# Embedding tables that are not trained (half of a small encoder's weights), and the unused pooler.
_FROZEN = ("word_embeddings", "position_embeddings", "pooler.")


@dataclass(frozen=True)
class Group:
    """A context and its candidate responses, as tokens with the encoder's special ones."""

    context: Tokens
    candidates: Sequence[Tokens]

    @property
    def tokens(self) -> int:
        """Return the group's number of tokens."""
        return len(self.context) + sum(map(len, self.candidates))


class SelectionModel(nn.Module):
    """An encoder with a head.

    The feature of a context and a response is u, v, |u - v| and u * v of the normalized mean vectors u of the context and v of
    the response, mapped to the encoder's size by a dense layer and tanh.

    Parameters
    ----------
    encoder
        The result of :func:`comperdial.models.verified`.
    attention_bias
        Added to the attention scores of a candidate's tokens for the context, which is longer and would otherwise dominate
        early in training.
    dropout
        Dropout of the encoder during training.
    """

    def __init__(self, encoder: Model, attention_bias: float = -6.0, dropout: float = 0.0) -> None:
        super().__init__()
        self.attention_bias = attention_bias
        # On a CPU, plain attention is faster: heads are small, and masks differ between rows.
        self.encoder = runtime.load(encoder, attn_implementation="eager")
        self.encoder.config.attention_probs_dropout_prob = dropout
        for part in self.encoder.modules():
            if isinstance(part, nn.Dropout):
                part.p = dropout
            if hasattr(part, "dropout_prob"):
                part.dropout_prob = dropout
        for name, weight in self.encoder.named_parameters():
            weight.requires_grad_(not any(part in name for part in _FROZEN))
        self.size: int = self.encoder.config.hidden_size
        self.head = nn.ModuleDict({"score": nn.Linear(self.size, 1), "dense": nn.Linear(4 * self.size, self.size)})
        self.head.to(self.encoder.device)

    def start(self, seed: int) -> None:
        """Initialize the head.

        The initial score is 20 times the cosine of u and v, plus noise, which already ranks well if the encoder was trained
        in-batch.
        """
        generator = torch.Generator().manual_seed(seed)
        weights = dict(sorted(self.head.named_parameters()))
        with torch.no_grad():
            for name, weight in weights.items():
                drawn = torch.randn(weight.shape, generator=generator) if name.endswith("weight") else torch.zeros(1)
                weight.copy_(drawn * 0.02)
            signs = torch.randn(self.size, generator=generator).sign().to(self.encoder.device)
            # u * v sums to `size` times the cosine; each feature is tanh of twice the cosine.
            weights["dense.weight"][:, 3 * self.size :] += signs[:, None] * 2 / self.size
            weights["score.weight"].copy_(signs[None] * 10 / self.size)

    def trained(self) -> dict[str, nn.Parameter]:
        """Return the trainable weights by name."""
        return {name: weight for name, weight in self.named_parameters() if weight.requires_grad}

    def forward(self, groups: Sequence[Group]) -> tuple[Tensor, Tensor]:
        """Return the features (n x size) and the scores (n) of all n candidates, group by group."""
        rows = []
        for group in groups:
            row = [(token, place, 0) for place, token in enumerate(group.context)]
            for number, candidate in enumerate(group.candidates, start=1):
                row += [(token, place, number) for place, token in enumerate(candidate, start=len(group.context))]
            rows.append(row)
        hidden, owners = self._encode(rows)
        parts = torch.arange(int(owners.max()) + 1, device=hidden.device)
        # Unit vectors, whose product is the cosine of the in-batch loss, scaled to entries of about 1.
        chosen = (owners[:, None, :] == parts[None, :, None]).to(hidden.dtype)
        counts = chosen.sum(dim=2, keepdim=True)
        means = nn.functional.normalize((chosen @ hidden) / counts.clamp(min=1), dim=2) * self.size**0.5
        there = counts[:, 1:, 0] > 0
        u, v = means[:, :1].expand_as(means[:, 1:])[there], means[:, 1:][there]
        features = torch.tanh(self.head["dense"](torch.cat([u, v, (u - v).abs(), u * v], dim=1)))
        return features, self.head["score"](features)[:, 0]

    def vectors(self, rows: Sequence[Tokens], starts: Sequence[int] | None = None) -> Tensor:
        """Return the mean vector of each separately encoded row: contexts, or responses that begin at ``starts``."""
        owner = int(starts is not None)
        placed = zip(rows, starts or [0] * len(rows), strict=True)
        hidden, owners = self._encode([[(token, k, owner) for k, token in enumerate(row, at)] for row, at in placed])
        weights = (owners >= 0)[:, :, None].to(hidden.dtype)
        return (hidden * weights).sum(dim=1) / weights.sum(dim=1)

    def _encode(self, rows: Sequence[Sequence[tuple[int, int, int]]]) -> tuple[Tensor, Tensor]:
        """Run the encoder on rows of (token, position, owner): 0 for the context, k for candidate k.

        Returns hidden states (float32) and owners, with -1 for padding.
        """
        packed = pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=-1)
        tokens, positions, owners = packed.to(self.encoder.device).unbind(dim=2)
        seen = (owners[:, None, :] == owners[:, :, None]) | (owners[:, None, :] == 0)
        mask = torch.zeros(seen.shape, dtype=self.encoder.dtype, device=seen.device)
        mask = mask.masked_fill_(~seen, torch.finfo(mask.dtype).min)
        across = (owners[:, None, :] == 0) & (owners[:, :, None] > 0)
        mask = mask.masked_fill_(across, self.attention_bias)
        positions = positions.clamp(min=0)
        # RoBERTa counts positions from the one after its padding index.
        table = getattr(getattr(self.encoder, "embeddings", None), "position_embeddings", None)
        if (padding := getattr(table, "padding_idx", None)) is not None:
            positions = positions + padding + 1
        inputs = {"input_ids": tokens.clamp(min=0), "position_ids": positions, "attention_mask": mask[:, None]}
        if getattr(self.encoder.config, "type_vocab_size", 0) > 1:
            inputs["token_type_ids"] = (owners > 0).long()
        return self.encoder(**inputs).last_hidden_state.float(), owners
