"""Make responses and dialogues worse on purpose, to see which metrics notice (Zhang et al. 2024)."""

from comperdial.perturbations.items import Dialogue, Line, Pool, Turn
from comperdial.perturbations.make import Count, Perturbed, generator, perturb
from comperdial.perturbations.table import PERTURBATIONS, Perturbation, generated

__all__ = [
    "PERTURBATIONS",
    "Count",
    "Dialogue",
    "Line",
    "Perturbation",
    "Perturbed",
    "Pool",
    "Turn",
    "generated",
    "generator",
    "perturb",
]
