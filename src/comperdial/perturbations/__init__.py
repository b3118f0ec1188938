"""Perturb responses and dialogues to see which metrics notice (Zhang et al. 2024)."""

from comperdial.perturbations.corpus import Corpus, Dialogue, Line, Turn
from comperdial.perturbations.make import PERTURBATIONS, Perturbation, generated, generator, perturb, require

__all__ = [
    "PERTURBATIONS",
    "Corpus",
    "Dialogue",
    "Line",
    "Perturbation",
    "Turn",
    "generated",
    "generator",
    "perturb",
    "require",
]
