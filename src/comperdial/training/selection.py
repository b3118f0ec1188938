"""The selection model: an encoder that reads a context and its candidate responses, and what scores them.

The candidates of a context are read in one row, one after another, behind the context (``attention: shared``): the
context sees itself, each candidate sees the context and itself, at the positions right after the context. The context,
the long part, so goes through the encoder once, not once a candidate. With ``attention: full`` each candidate has a
row of its own in which the context sees it too, as in the paper.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from comperdial.core.errors import ConfigError, FileError
from comperdial.models import Model, runtime

if TYPE_CHECKING:
    import torch

Tokens = Sequence[int]
# Tables of vectors that training leaves as they are: half of a small encoder's weights.
_FROZEN = ("word_embeddings", "position_embeddings")


@dataclass(frozen=True)
class Group:
    """A context and its candidate responses, as tokens with the encoder's special ones."""

    context: Tokens
    candidates: Sequence[Tokens]

    @property
    def tokens(self) -> int:
        """Return how many tokens its row has."""
        return len(self.context) + sum(map(len, self.candidates))


@dataclass(frozen=True)
class Architecture:
    """What a selection model is made of, beside its encoder.

    Attributes
    ----------
    attention
        ``shared`` or ``full``, as this module says.
    feature
        Of a context and a response: ``cls``, the encoder's first vector (with ``attention: full``), as in the paper; or
        ``pair``: u, v, |u - v| and u * v of the mean vectors u of the context and v of the response, brought to one
        length, which a dense layer and tanh make a vector of the encoder's size.
    attention_bias
        With ``attention: shared``, what is added to the attention scores of a candidate's tokens for the context's: the
        context is longer, and would drown the candidate before training has taught it what to look at.
    """

    attention: Literal["shared", "full"] = "shared"
    feature: Literal["pair", "cls"] = "pair"
    attention_bias: float = -6.0

    def __post_init__(self) -> None:
        if self.feature == "cls" and self.attention == "shared":
            raise ConfigError(
                "feature 'cls' with attention 'shared'",
                expected="attention 'full': else the first vector has not seen the response",
            )


class SelectionModel:
    """An encoder with a head; ``encoder``, ``head`` and ``network`` are torch modules."""

    def __init__(self, encoder: Any, architecture: Architecture) -> None:  # noqa: ANN401
        import torch

        self.encoder = encoder
        self.architecture = architecture
        size = encoder.config.hidden_size
        self.size = size
        head: dict[str, torch.nn.Module] = {"score": torch.nn.Linear(size, 1)}
        if architecture.feature == "pair":
            head["dense"] = torch.nn.Linear(4 * size, size)
        self.head = torch.nn.ModuleDict(head).to(encoder.device)
        self.network = torch.nn.ModuleDict({"encoder": encoder, "head": self.head})
        for name, weight in encoder.named_parameters():
            # A pooler is not used.
            weight.requires_grad_(not name.startswith("pooler.") and not any(part in name for part in _FROZEN))

    def start(self, seed: int) -> None:
        """Draw the head's first weights.

        With ``feature: pair`` the score starts as 20 times the cosine of u and v, up to noise: what an encoder that was
        trained in batch finds a right response by.
        """
        import torch

        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for name, weight in sorted(self.head.named_parameters()):
                if name.endswith("bias"):
                    weight.zero_()
                else:
                    weight.copy_(torch.randn(weight.shape, generator=generator) * 0.02)
            if "dense" in self.head:
                signs = torch.randn(self.size, generator=generator).sign().to(weight.device)
                # u * v sums to `size` times the cosine; each of the features has tanh of twice the cosine.
                weights = dict(self.head.named_parameters())
                weights["dense.weight"][:, 3 * self.size :] += signs[:, None] * 2 / self.size
                weights["score.weight"].copy_(signs[None] * 10 / self.size)

    def trained(self) -> dict[str, torch.Tensor]:
        """Return the weights that training changes, by name."""
        return {name: weight for name, weight in self.network.named_parameters() if weight.requires_grad}

    def read(self, groups: Sequence[Group]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the features and scores of all candidates, group by group: n x size and n."""
        import torch

        if self.architecture.attention == "full":
            groups = [Group(group.context, [candidate]) for group in groups for candidate in group.candidates]
        hidden, owners = self._encode(groups)
        if self.architecture.feature == "cls":
            features = hidden[:, 0]
        else:
            features = torch.tanh(self.head["dense"](self._pairs(hidden, owners, groups)))
        return features, self.head["score"](features)[:, 0]

    def _pairs(self, hidden: torch.Tensor, owners: torch.Tensor, groups: Sequence[Group]) -> torch.Tensor:
        """Return u, v, |u - v| and u * v of each candidate, n x 4 sizes."""
        import torch

        most = max(len(group.candidates) for group in groups)
        parts = torch.arange(most + 1, device=hidden.device)
        # Rows x (the context, then the candidates) x tokens: whose token it is.
        chosen = (owners[:, None, :] == parts[None, :, None]).to(hidden.dtype)
        means = (chosen @ hidden) / chosen.sum(dim=2, keepdim=True).clamp(min=1)
        # Unit vectors, as their cosine is what the in-batch loss is of, with entries of about 1.
        means = torch.nn.functional.normalize(means, dim=2) * self.size**0.5
        v = means[:, 1:]
        u = means[:, :1].expand_as(v)
        there = torch.tensor([[place < len(group.candidates) for place in range(most)] for group in groups])
        there = there.to(hidden.device)
        u, v = u[there], v[there]
        return torch.cat([u, v, (u - v).abs(), u * v], dim=1)

    def _encode(self, groups: Sequence[Group]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return hidden states, and whose token each is: 0 the context's, k the k-th candidate's, -1 padding."""
        import torch

        shape = (len(groups), max(group.tokens for group in groups))
        tokens, positions, owners = np.zeros(shape, int), np.zeros(shape, int), np.full(shape, -1)
        for row, group in enumerate(groups):
            place = len(group.context)
            tokens[row, :place] = group.context
            positions[row, :place] = np.arange(place)
            owners[row, :place] = 0
            for number, candidate in enumerate(group.candidates, start=1):
                end = place + len(candidate)
                tokens[row, place:end] = candidate
                positions[row, place:end] = len(group.context) + np.arange(len(candidate))
                owners[row, place:end] = number
                place = end
        device = self.encoder.device
        owner = torch.from_numpy(owners).to(device)
        seen = owner[:, None, :] == owner[:, :, None]
        if self.architecture.attention == "full":
            seen = (owner >= 0)[:, None, :].expand_as(seen)
        else:
            seen = seen | (owner[:, None, :] == 0)
        hidden = self._run(
            torch.from_numpy(tokens).to(device),
            torch.from_numpy(positions).to(device),
            (owner > 0).long(),
            seen[:, None],
            ((owner[:, None, :] == 0) & (owner[:, :, None] > 0))[:, None],
        )
        return hidden, owner

    def vectors(self, rows: Sequence[Tokens], starts: Sequence[int] | None = None) -> torch.Tensor:
        """Return the mean vector of each row of tokens, read alone: a response from position ``starts``, or contexts."""
        import torch

        shape = (len(rows), max(map(len, rows)))
        tokens, there = np.zeros(shape, int), np.zeros(shape, bool)
        for number, row in enumerate(rows):
            tokens[number, : len(row)] = row
            there[number, : len(row)] = True
        device = self.encoder.device
        offsets = np.zeros(len(rows), int) if starts is None else np.asarray(starts)
        positions = np.where(there, np.arange(shape[1])[None, :] + offsets[:, None], 0)
        mask = torch.from_numpy(there).to(device)
        kind = torch.full(shape, int(starts is not None), device=device)
        hidden = self._run(
            torch.from_numpy(tokens).to(device),
            torch.from_numpy(positions).to(device),
            kind,
            mask[:, None, None, :].expand(-1, 1, shape[1], -1),
        )
        weights = mask[:, :, None].to(hidden.dtype)
        return (hidden * weights).sum(dim=1) / weights.sum(dim=1)

    def _run(
        self,
        tokens: torch.Tensor,
        positions: torch.Tensor,
        kinds: torch.Tensor,
        seen: torch.Tensor,
        across: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Run the encoder; hidden states in float32.

        ``seen`` says what sees what, rows x 1 x tokens x tokens; ``across``, where a candidate looks at the context.
        """
        import torch

        mask = torch.zeros(seen.shape, dtype=self.encoder.dtype, device=tokens.device)
        mask = mask.masked_fill_(~seen, torch.finfo(mask.dtype).min)
        if across is not None and self.architecture.attention == "shared":
            mask = mask.masked_fill_(across, self.architecture.attention_bias)
        options = {}
        if getattr(self.encoder.config, "type_vocab_size", 0) > 1:
            options["token_type_ids"] = kinds
        # RoBERTa counts positions from the one after its padding's.
        embeddings = getattr(self.encoder, "embeddings", None)
        padding = getattr(getattr(embeddings, "position_embeddings", None), "padding_idx", None)
        found = self.encoder(
            input_ids=tokens,
            position_ids=positions if padding is None else positions + padding + 1,
            attention_mask=mask,
            **options,
        )
        return found.last_hidden_state.float()


def make(encoder: Model, architecture: Architecture, dropout: float = 0.0) -> SelectionModel:
    """Return a selection model on an encoder, with a head that is not trained yet."""
    import torch

    # On a CPU the plain form of attention is faster: heads are small, and masks differ from row to row.
    network = runtime.load(encoder, attn_implementation="eager")
    network.config.attention_probs_dropout_prob = dropout
    for part in network.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = dropout
        if hasattr(part, "dropout_prob"):
            part.dropout_prob = dropout
    return SelectionModel(network, architecture)


def batches(groups: Sequence[Group]) -> Iterator[list[int]]:
    """Put groups of about one length together, as many as suit the device."""
    yield from runtime.batches([group.tokens for group in groups], runtime.batch_tokens(cpu=4096))


def read(model: SelectionModel, groups: Sequence[Group]) -> Any:  # noqa: ANN401
    """Yield, a batch at a time, which groups it holds, and the features and scores of their candidates, in order."""
    import torch

    model.network.eval()
    for items in batches(groups):
        with torch.inference_mode():
            features, scores = model.read([groups[item] for item in items])
        yield items, features.float().cpu().numpy(), scores.float().cpu().numpy()


def load(model: SelectionModel, path: Path) -> None:
    """Give a model the weights of a file.

    Raises
    ------
    FileError
        When the file cannot be read, or holds other weights than the model has.
    """
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    weights = model.trained()
    try:
        found = load_file(path)
    except (SafetensorError, OSError) as error:
        raise FileError(
            f"the weights cannot be read ({error})", where=str(path), expected="whole safetensors"
        ) from error
    wrong = sorted(set(found) ^ set(weights)) or sorted(n for n in weights if found[n].shape != weights[n].shape)
    if wrong:
        raise FileError(f"not this model's weights ({wrong[0]})", where=str(path), expected="those of its encoder")
    with torch.no_grad():
        for name, weight in weights.items():
            weight.copy_(found[name])
