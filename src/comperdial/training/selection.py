"""The selection model: an encoder that reads a context with its candidate responses, and a head that scores them.

The candidates of a context follow it in one sequence. The context sees itself, and each candidate sees the context and
itself, at the positions right after the context: the context, which is the long part, goes through the encoder once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from comperdial.models import Model, runtime

Tokens = Sequence[int]
# Tables of vectors that training leaves as they are (half of a small encoder's weights), and a pooler that is not used.
_FROZEN = ("word_embeddings", "position_embeddings", "pooler.")


@dataclass(frozen=True)
class Group:
    """A context and its candidate responses, as tokens with the encoder's special ones."""

    context: Tokens
    candidates: Sequence[Tokens]

    @property
    def tokens(self) -> int:
        """Return how many tokens the group has."""
        return len(self.context) + sum(map(len, self.candidates))


class SelectionModel(nn.Module):
    """An encoder with a head.

    The feature of a context and a response is u, v, |u - v| and u * v of the mean vectors u of the context and v of the
    response, normalised, which a dense layer and tanh turn into a vector of the encoder's size.

    Parameters
    ----------
    encoder
        What :func:`comperdial.models.verified` returns.
    attention_bias
        Added to the attention scores of a candidate's tokens for the context's: the context
        is longer, and would drown the candidate before training has taught it what to look at.
    dropout
        Of the encoder while it is trained.
    """

    def __init__(self, encoder: Model, attention_bias: float = -6.0, dropout: float = 0.0) -> None:
        super().__init__()
        self.attention_bias = attention_bias
        # On a CPU the plain form of attention is faster: heads are small, and masks differ from row to row.
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
        """Draw the head's first weights.

        The score starts as 20 times the cosine of u and v, plus noise: an encoder that was trained in batch selects the
        right response by it.
        """
        generator = torch.Generator().manual_seed(seed)
        weights = dict(sorted(self.head.named_parameters()))
        with torch.no_grad():
            for name, weight in weights.items():
                drawn = torch.randn(weight.shape, generator=generator) if name.endswith("weight") else torch.zeros(1)
                weight.copy_(drawn * 0.02)
            signs = torch.randn(self.size, generator=generator).sign().to(self.encoder.device)
            # u * v sums to `size` times the cosine; each of the features has tanh of twice the cosine.
            weights["dense.weight"][:, 3 * self.size :] += signs[:, None] * 2 / self.size
            weights["score.weight"].copy_(signs[None] * 10 / self.size)

    def trained(self) -> dict[str, nn.Parameter]:
        """Return the weights that training changes, by name."""
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
        """Return the mean vector of each row, read alone: of contexts, or of responses that begin at ``starts``."""
        owner = int(starts is not None)
        placed = zip(rows, starts or [0] * len(rows), strict=True)
        hidden, owners = self._encode([[(token, k, owner) for k, token in enumerate(row, at)] for row, at in placed])
        weights = (owners >= 0)[:, :, None].to(hidden.dtype)
        return (hidden * weights).sum(dim=1) / weights.sum(dim=1)

    def _encode(self, rows: Sequence[Sequence[tuple[int, int, int]]]) -> tuple[Tensor, Tensor]:
        """Run the encoder on rows of (token, position, owner): 0 the context, k the k-th candidate.

        Returns hidden states (float32) and owners, in which padding is -1.
        """
        packed = pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=-1)
        tokens, positions, owners = packed.to(self.encoder.device).unbind(dim=2)
        seen = (owners[:, None, :] == owners[:, :, None]) | (owners[:, None, :] == 0)
        mask = torch.zeros(seen.shape, dtype=self.encoder.dtype, device=seen.device)
        mask = mask.masked_fill_(~seen, torch.finfo(mask.dtype).min)
        across = (owners[:, None, :] == 0) & (owners[:, :, None] > 0)
        mask = mask.masked_fill_(across, self.attention_bias)
        positions = positions.clamp(min=0)
        # RoBERTa counts positions from the one after its padding's.
        table = getattr(getattr(self.encoder, "embeddings", None), "position_embeddings", None)
        if (padding := getattr(table, "padding_idx", None)) is not None:
            positions = positions + padding + 1
        inputs = {"input_ids": tokens.clamp(min=0), "position_ids": positions, "attention_mask": mask[:, None]}
        if getattr(self.encoder.config, "type_vocab_size", 0) > 1:
            inputs["token_type_ids"] = (owners > 0).long()
        return self.encoder(**inputs).last_hidden_state.float(), owners
