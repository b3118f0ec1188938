"""Make responses and dialogues worse on purpose, to see which metrics notice (Zhang et al. 2024)."""

from comperdial.perturbations.base import Dialogue, DialogueStrategy, Line, Strategy, Turn, TurnStrategy
from comperdial.perturbations.make import Count, Perturbed, create, generated, generator, modules, perturb
from comperdial.perturbations.pool import Pool
from comperdial.perturbations.registry import PERTURBATIONS, Perturbation, perturbation

__all__ = [
    "PERTURBATIONS",
    "Count",
    "Dialogue",
    "DialogueStrategy",
    "Line",
    "Perturbation",
    "Perturbed",
    "Pool",
    "Strategy",
    "Turn",
    "TurnStrategy",
    "create",
    "generated",
    "generator",
    "modules",
    "perturb",
    "perturbation",
]
