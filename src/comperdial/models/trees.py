"""Batch inputs of a causal language model as token trees, so that shared prefixes are computed once.

Each token keeps its position and sees only its own prefix, so predictions equal those of the single input.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy as np

from comperdial.core.errors import ConfigError

if TYPE_CHECKING:
    import torch

CPU_TOKENS = 4096
"""Tokens of a batch on a cpu: a model's weights are read once a batch, and four times as fast as with 512."""
# Tokens per tree: attention is quadratic in the length of a row.
_MOST = 1024

Tokens = Sequence[int]


@dataclass(frozen=True)
class Tree:
    """Inputs with a common prefix: their tokens, shared ones once, and the token positions of each input by index."""

    tokens: list[int] = field(default_factory=list)
    paths: dict[int, list[int]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.tokens)


def grow(inputs: Sequence[Tokens], most: int = _MOST) -> Iterator[Tree]:
    """Yield trees of non-empty inputs; neighbours in sorted order share half of their tokens.

    A tree with more than one input has at most ``most`` tokens.
    """
    tree, path = Tree(), list[int]()
    before: Tokens = ()
    for index in sorted(range(len(inputs)), key=lambda index: tuple(inputs[index])):
        tokens = inputs[index]
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, tokens, strict=False)))
        if tree.paths and (2 * shared < len(tokens) or len(tree) + len(tokens) - shared > most):
            yield tree
            tree, shared = Tree(), 0
        path = [*path[:shared], *range(len(tree), len(tree) + len(tokens) - shared)]
        tree.tokens.extend(tokens[shared:])
        tree.paths[index], before = path, tokens
    if tree.paths:
        yield tree


def arguments(trees: Sequence[Tree], network: Any) -> dict[str, torch.Tensor]:  # noqa: ANN401
    """Return the model's arguments for trees, one per row, padded on the right."""
    import torch

    width = max(map(len, trees))
    tokens, places = np.zeros((2, len(trees), width), int)
    # Padding attends to itself and is attended to by nothing.
    seen = np.repeat(np.eye(width, dtype=bool)[None], len(trees), axis=0)
    for row, tree in enumerate(trees):
        tokens[row, : len(tree)] = tree.tokens
        for path in tree.paths.values():
            places[row, path] = range(len(path))
            seen[row][np.ix_(path, path)] |= np.tri(len(path), dtype=bool)
    device, dtype = network.device, network.dtype
    mask = torch.zeros(seen.shape, dtype=dtype).masked_fill_(~torch.from_numpy(seen), torch.finfo(dtype).min)
    return {
        "input_ids": torch.from_numpy(tokens).to(device),
        "position_ids": torch.from_numpy(places).to(device),
        "attention_mask": mask[:, None].to(device),
    }


def halves(network: Any) -> tuple[Any, Any]:  # noqa: ANN401
    """Split a language model into the part that returns hidden states and the part that computes logits from some of them.

    Raises ConfigError if the two do not reproduce the model's logits.
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
