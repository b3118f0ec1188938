"""Log-likelihoods of tokens under a language model, for the metrics built on them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from comperdial.core.errors import ConfigError
from comperdial.models import trees

if TYPE_CHECKING:
    import torch

# Rows whose vocabulary-wide probabilities are in memory at once: 100 MB for GPT-2's 50,257 tokens.
_ROWS = 512


def unique(keys: Iterable[Hashable]) -> tuple[list[int], npt.NDArray[np.intp]]:
    """Find duplicates, so that each value is computed once.

    Returns
    -------
    tuple
        The positions of first occurrences, and for each key the index of its first occurrence in that list.
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
    """Return the id of a special token (``eos``, ``mask`` …); raise ConfigError if the tokenizer has none."""
    found: int | None = getattr(tokenizer, f"{name}_token_id", None)
    if found is None:
        raise ConfigError(f"the model's tokenizer has no {name} token", expected="a model of the kind the metric names")
    return found


def encode(tokenizer: Any, texts: Iterable[str]) -> dict[str, list[int]]:  # noqa: ANN401
    """Tokenise each distinct text once, without special tokens at its ends."""
    distinct = list(dict.fromkeys(texts))
    if not distinct:
        return {}
    return dict(zip(distinct, tokenizer(distinct, add_special_tokens=False)["input_ids"], strict=True))


def pad(rows: Sequence[Sequence[int]], fill: int, device: Any) -> tuple[torch.Tensor, torch.Tensor]:  # noqa: ANN401
    """Return rows of tokens as one tensor, padded on the right, and the attention mask."""
    import torch

    width = max(map(len, rows))
    tokens = torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows], device=device)
    lengths = torch.tensor([len(row) for row in rows], device=device)
    return tokens, (torch.arange(width, device=device) < lengths[:, None]).long()


def most_tokens(network: Any) -> int:  # noqa: ANN401
    """Return the length of the longest input that a model has position embeddings for."""
    most: int = getattr(network.config, "max_position_embeddings", 1_000_000)
    embedding = getattr(getattr(network.base_model, "embeddings", None), "position_embeddings", None)
    padding = getattr(embedding, "padding_idx", None)
    # RoBERTa's positions start after the padding index.
    return most if padding is None else most - padding - 1


def log_likelihoods(head: Any, hidden: torch.Tensor, targets: torch.Tensor) -> npt.NDArray[np.float64]:  # noqa: ANN401
    """Return the log-likelihood of each target token, in nats.

    Parameters
    ----------
    head
        Layer that maps hidden states to logits.
    hidden
        n x size: the hidden state that predicts each target.
    targets
        The n target tokens.
    """
    import torch

    found = [np.empty(0)]
    for start in range(0, len(targets), _ROWS):
        logits = head(hidden[start : start + _ROWS]).to(torch.float32)
        picked = logits.gather(1, targets[start : start + _ROWS, None])[:, 0]
        found.append((picked - logits.logsumexp(dim=1)).cpu().numpy())
    return np.concatenate(found).astype(np.float64)


def tails(
    network: Any,  # noqa: ANN401
    inputs: Sequence[tuple[Sequence[int], int]],
    batched: Callable[[Sequence[int]], Iterable[list[int]]],
) -> list[npt.NDArray[np.float64]]:
    """Return the log-likelihood of each of the last tokens of an input, given all tokens before it.

    Parameters
    ----------
    network
        A causal language model. Prefixes that inputs share go through it once.
    inputs
        Tokens, and the number of last tokens to score; the first token cannot be scored.
    batched
        Groups lengths into batches: yields the positions of the items that are run together.

    Returns
    -------
    list
        For each input, the log-likelihoods of its scored tokens, in nats.
    """
    import torch

    body, head = trees.halves(network)
    made = list(trees.grow([tokens for tokens, _ in inputs]))
    found = [np.empty(0)] * len(inputs)
    for group in batched([len(tree) for tree in made]):
        chosen = [made[place] for place in group]
        width = max(map(len, chosen))
        # Score each token once, however many inputs share it: index of the token before it, or -1 if not scored.
        before = np.full((len(chosen), width), -1)
        for row, tree in enumerate(chosen):
            for place, path in tree.paths.items():
                start = len(path) - inputs[place][1]
                before[row, path[start:]] = path[start - 1 : -1]
        rows, columns = np.nonzero(before >= 0)
        targets = [chosen[row].tokens[column] for row, column in zip(rows, columns, strict=True)]
        with torch.inference_mode():
            hidden = body(**trees.arguments(chosen, network), use_cache=False).last_hidden_state
            wanted = torch.tensor(targets, dtype=torch.long, device=hidden.device)
            values = np.full(before.shape, np.nan)
            values[rows, columns] = log_likelihoods(head, hidden[rows, before[rows, columns]], wanted)
        for row, tree in enumerate(chosen):
            for place, path in tree.paths.items():
                found[place] = values[row, path[len(path) - inputs[place][1] :]]
    return found
