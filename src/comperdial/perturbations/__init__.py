"""Make responses and dialogues worse on purpose, to see which metrics notice (Zhang et al. 2024)."""

from comperdial.perturbations.corpus import Corpus, Dialogue, Line, Turn
from comperdial.perturbations.make import Count, Perturbed, generator, perturb
from comperdial.perturbations.strategies import PERTURBATIONS, Perturbation, generated, require

__all__ = [
    "PERTURBATIONS",
    "Corpus",
    "Count",
    "Dialogue",
    "Line",
    "Perturbation",
    "Perturbed",
    "Turn",
    "generated",
    "generator",
    "perturb",
    "require",
]
