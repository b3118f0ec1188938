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
"""The five rated dimensions of each level, the overall one last."""

ORIGINAL, PERTURBED = "original", "perturbed"
"""The systems of a pair: a response or dialogue as it was, and made worse."""
