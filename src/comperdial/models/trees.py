"""Inputs of a causal language model that begin alike, as one tree of tokens: what they share is computed once.

Every token has its position in its own input and sees only what is before it there, so that each input's tokens are
predicted as they would be alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from comperdial.core.errors import ConfigError

if TYPE_CHECKING:
    import torch

CPU_TOKENS = 4096
"""Tokens of a batch on a cpu: a model's weights are read once a batch, and four times as fast as with 512."""
# Tokens of a tree: attention grows with the square of a row's length.
_MOST = 1024

Tokens = Sequence[int]


@dataclass(frozen=True)
class Tree:
    """Inputs that begin alike, their tokens once each, a token after those before it.

    Attributes
    ----------
    tokens
        The tokens.
    places
        Their positions in their inputs.
    chains
        Runs of tokens (first, last + 1), each with the token that it follows.
    paths
        For each input, by its place among all: where its tokens are.
    """

    tokens: list[int]
    places: list[int]
    chains: list[tuple[int | None, int, int]]
    paths: dict[int, list[int]]

    def __len__(self) -> int:
        return len(self.tokens)


def grow(inputs: Sequence[Tokens], most: int = _MOST) -> Iterator[Tree]:
    """Yield trees of inputs of which neighbours in the order of tokens have half of their tokens in common.

    Parameters
    ----------
    inputs
        Of one token or more each.
    most
        The most tokens of a tree that holds more than one input.
    """
    tree, path = Tree([], [], [], {}), list[int]()
    before: Tokens = ()
    for place in sorted(range(len(inputs)), key=lambda place: tuple(inputs[place])):
        tokens = inputs[place]
        alike = _alike(before, tokens)
        if tree.paths and (2 * alike < len(tokens) or len(tree) + len(tokens) - alike > most):
            yield tree
            tree, alike = Tree([], [], [], {}), 0
        first, last = len(tree), len(tree) + len(tokens) - alike
        if last > first:
            tree.chains.append((path[alike - 1] if alike else None, first, last))
        tree.tokens.extend(tokens[alike:])
        tree.places.extend(range(alike, len(tokens)))
        path = [*path[:alike], *range(first, last)]
        tree.paths[place], before = path, tokens
    if tree.paths:
        yield tree


def _alike(one: Tokens, other: Tokens) -> int:
    """Return how many tokens two inputs begin with alike."""
    pairs = zip(one, other, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def arguments(trees: Sequence[Tree], network: Any, fill: int = 0) -> dict[str, torch.Tensor]:  # noqa: ANN401
    """Return what a model takes of trees, a row each, filled up on the right."""
    import torch

    width = max(map(len, trees))
    tokens, places = np.full((len(trees), width), fill), np.zeros((len(trees), width), int)
    # Padding sees itself, and nothing sees it.
    seen = np.repeat(np.eye(width, dtype=bool)[None], len(trees), axis=0)
    for row, tree in enumerate(trees):
        tokens[row, : len(tree)], places[row, : len(tree)] = tree.tokens, tree.places
        for above, first, last in tree.chains:
            if above is not None:
                seen[row, first:last] |= seen[row, above]
            seen[row, first:last, first:last] |= np.tri(last - first, dtype=bool)
    device, dtype = network.device, network.dtype
    mask = torch.zeros(seen.shape, dtype=dtype).masked_fill_(~torch.from_numpy(seen), torch.finfo(dtype).min)
    return {
        "input_ids": torch.from_numpy(tokens).to(device),
        "position_ids": torch.from_numpy(places).to(device),
        "attention_mask": mask[:, None].to(device),
    }


def halves(network: Any) -> tuple[Any, Any]:  # noqa: ANN401
    """Return the part of a language model that gives hidden states, and the part that turns those into logits.

    With both at hand, logits are made only where they are asked for, some rows at a time.

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
