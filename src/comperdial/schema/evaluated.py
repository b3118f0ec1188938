"""Rated dimensions and names of pairs in studies of evaluators (Zhang et al. 2024)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

DIMENSIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "turn": ("relevance", "specificity", "interestingness", "understandability", "overall"),
        "dialogue": ("coherence", "engagingness", "diversity", "informativeness", "overall"),
    }
)
"""The five rated dimensions of each level, overall last."""

ORIGINAL, PERTURBED = "original", "perturbed"
"""The systems of a pair: the original response or dialogue, and the perturbed one."""
