"""Statistics: arrays in, numbers out; imports no other part of the package."""

from typing import Literal

Coefficient = Literal["pearson", "spearman", "kendall"]
COEFFICIENTS: tuple[Coefficient, ...] = ("pearson", "spearman", "kendall")
# Statistics over pairs of units: other forms of Kendall's tau, Pearson's r of the differences, and accuracies from 0 to 1: with
# ties as they are, with calibrated ties, and soft (comperdial.stats.pairs gives definitions and sources).
PairMeasure = Literal["tau_c", "tau_23", "pairwise_pearson", "accuracy", "acc_eq", "spa"]
PAIR_MEASURES: tuple[PairMeasure, ...] = ("tau_c", "tau_23", "pairwise_pearson", "accuracy", "acc_eq", "spa")
# Those defined over pairs of systems.
OF_SYSTEMS: tuple[PairMeasure, ...] = ("tau_c", "tau_23", "accuracy", "acc_eq", "spa")
# Accuracy and SPA are tested by default with up to this many systems. Tests of more systems take minutes, and Kendall's tau
# answers the same question.
TESTED_OF_FEW: tuple[PairMeasure, ...] = ("accuracy", "spa")
FEW_SYSTEMS = 12
Measure = Coefficient | PairMeasure
MEASURES: tuple[Measure, ...] = (*COEFFICIENTS, *PAIR_MEASURES)
