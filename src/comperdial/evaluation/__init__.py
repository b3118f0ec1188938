"""Meta-evaluation: how well metrics agree with ratings, with what precision, and whether they differ."""

from comperdial.core.names import LEVELS
from comperdial.evaluation.ceilings import ceilings
from comperdial.evaluation.comparisons import evaluate, pairs
from comperdial.evaluation.correlations import Detail, correlations
from comperdial.evaluation.expected import Expected
from comperdial.evaluation.robustness import Subsampling, curves, power
from comperdial.evaluation.samples import HUMAN, Sample, Tables, samples
from comperdial.stats import COEFFICIENTS

__all__ = [
    "COEFFICIENTS",
    "HUMAN",
    "LEVELS",
    "Detail",
    "Expected",
    "Sample",
    "Subsampling",
    "Tables",
    "ceilings",
    "correlations",
    "curves",
    "evaluate",
    "pairs",
    "power",
    "samples",
]
