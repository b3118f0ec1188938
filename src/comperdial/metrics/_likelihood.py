"""Likelihoods of tokens under a language model: what the metrics built on them have in common."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from comperdial.core.errors import ConfigError

if TYPE_CHECKING:
    import torch

# Rows whose probabilities over the whole vocabulary are in memory at once: 100 MB for GPT-2's 50,257 words.
_ROWS = 512


def unique(keys: Iterable[Hashable]) -> tuple[list[int], npt.NDArray[np.intp]]:
    """Find what occurs more than once, so that it is computed once.

    Returns
    -------
    tuple
        The positions of first occurrences, and for each key the place of its first occurrence among them.
    """
    places: dict[Hashable, int] = {}
    firsts: list[int] = []
    inverse = []
    for position, key in enumerate(keys):
        if key not in places:
            places[key] = len(firsts)
            firsts.append(position)
        inverse.append(places[key])
    return firsts, np.array(inverse, dtype=np.intp)


def special_token(tokenizer: Any, name: str) -> int:  # noqa: ANN401
    """Return the id of a special token (``eos``, ``mask`` …), or raise ConfigError when the tokenizer has none."""
    found: int | None = getattr(tokenizer, f"{name}_token_id", None)
    if found is None:
        raise ConfigError(f"the model's tokenizer has no {name} token", expected="a model of the kind the metric names")
    return found


def encode(tokenizer: Any, texts: Iterable[str]) -> dict[str, list[int]]:  # noqa: ANN401
    """Tokenise each distinct text once, without the special tokens that a tokenizer would add at its ends."""
    distinct = list(dict.fromkeys(texts))
    if not distinct:
        return {}
    return dict(zip(distinct, tokenizer(distinct, add_special_tokens=False)["input_ids"], strict=True))


def pad(rows: Sequence[Sequence[int]], fill: int, device: Any) -> tuple[torch.Tensor, torch.Tensor]:  # noqa: ANN401
    """Return rows of tokens as one tensor, filled up on the right, and the mask that is 1 where there is a token."""
    import torch

    width = max(map(len, rows))
    tokens = torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows], device=device)
    lengths = torch.tensor([len(row) for row in rows], device=device)
    return tokens, (torch.arange(width, device=device) < lengths[:, None]).long()


def halves(network: Any) -> tuple[Any, Any]:  # noqa: ANN401
    """Return the part of a language model that gives hidden states, and the part that turns those into logits.

    With both at hand, logits are made only where a likelihood is asked for, some rows at a time.

    Raises
    ------
    ConfigError
        When the model does anything else to its logits, so that the two parts are not the whole.
    """
    import torch

    body = network.base_model
    head = next((part for name in ("lm_head", "cls") if (part := getattr(network, name, None)) is not None), None)
    probe = torch.tensor([[0, 2]], device=network.device)
    with torch.inference_mode():
        same = head is not None and torch.allclose(
            head(body(input_ids=probe).last_hidden_state), network(input_ids=probe).logits, rtol=1e-3, atol=1e-3
        )
    if not same:
        raise ConfigError(
            f"{type(network).__name__} is not a body with a head on its hidden states",
            expected="a language model of the family of GPT-2, RoBERTa or BERT",
        )
    return body, head


def most_tokens(network: Any) -> int:  # noqa: ANN401
    """Return the length of the longest input that a model has positions for."""
    most: int = getattr(network.config, "max_position_embeddings", 1_000_000)
    embedding = getattr(getattr(network.base_model, "embeddings", None), "position_embeddings", None)
    padding = getattr(embedding, "padding_idx", None)
    # RoBERTa counts positions from the one after its padding's.
    return most if padding is None else most - padding - 1


def log_likelihoods(head: Any, hidden: torch.Tensor, targets: torch.Tensor) -> npt.NDArray[np.float64]:  # noqa: ANN401
    """Return the log-likelihood of each target token, in nats.

    Parameters
    ----------
    head
        What makes logits of hidden states.
    hidden
        n x size: the hidden states that predict.
    targets
        The n tokens predicted.
    """
    import torch

    found = [np.empty(0)]
    for start in range(0, len(targets), _ROWS):
        logits = head(hidden[start : start + _ROWS]).to(torch.float32)
        picked = logits.gather(1, targets[start : start + _ROWS, None])[:, 0]
        found.append((picked - logits.logsumexp(dim=1)).cpu().numpy())
    return np.concatenate(found).astype(np.float64)


class Forest:
    """Texts of which each is one input of the model, with all that may follow it side by side at its end.

    Every end has the positions after its start and sees only the start and itself, so its likelihood is what it would be
    alone, and the start, the long part, goes through the model once, not once an end.

    Parameters
    ----------
    starts, ends
        Tokens; to each start, which has one token or more, its ends.

    Attributes
    ----------
    inputs
        What the model takes.
    sources, targets
        Which hidden states predict which tokens: of each start in turn the tokens after its first, then its ends'.
    bounds
        Where the next start's begin.
    """

    def __init__(self, starts: Sequence[Sequence[int]], ends: Sequence[Sequence[Sequence[int]]], network: Any) -> None:  # noqa: ANN401
        import torch

        device = network.device
        tails = [np.concatenate([np.asarray(end, int) for end in own]) for own in ends]
        lengths = [len(start) + len(tail) for start, tail in zip(starts, tails, strict=True)]
        shape = (len(starts), max(lengths))
        # Padding (-1) sees the start and other padding, and nothing sees it.
        tokens, position, branch = np.zeros(shape, int), np.zeros(shape, int), np.full(shape, -1)
        sources, targets = [], []
        for row, (start, own, tail, length) in enumerate(zip(starts, ends, tails, lengths, strict=True)):
            size = len(start)
            offset = np.concatenate([np.arange(len(end)) for end in own])
            tokens[row, :length] = [*start, *tail]
            position[row, :length] = [*range(size), *(size + offset)]
            branch[row, :length] = [*[0] * size, *np.repeat(np.arange(1, len(own) + 1), [len(end) for end in own])]
            before = np.arange(length) - 1
            before[size:][offset == 0] = size - 1
            sources.append(row * shape[1] + before[1:])
            targets.append(tokens[row, 1:length])
        branches = torch.from_numpy(branch).to(device)
        seen = (branches[:, None, :] == 0) | (branches[:, None, :] == branches[:, :, None])
        seen &= torch.ones(shape[1], shape[1], dtype=torch.bool, device=device).tril()
        mask = torch.zeros(seen.shape, dtype=network.dtype, device=device)
        self.inputs: dict[str, torch.Tensor] = {
            "input_ids": torch.from_numpy(tokens).to(device),
            "position_ids": torch.from_numpy(position).to(device),
            "attention_mask": mask.masked_fill_(~seen, torch.finfo(network.dtype).min)[:, None],
        }
        self.sources = torch.from_numpy(np.concatenate(sources)).to(device)
        self.targets = torch.from_numpy(np.concatenate(targets)).to(device)
        self.bounds = np.cumsum([len(found) for found in targets])[:-1]
