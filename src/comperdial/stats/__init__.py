"""Statistics: arrays in, numbers out; imports nothing of ours."""

from typing import Literal

Coefficient = Literal["pearson", "spearman", "kendall"]
COEFFICIENTS: tuple[Coefficient, ...] = ("pearson", "spearman", "kendall")
# Of pairs of units: other forms of Kendall's tau, Pearson's r of the differences, and shares from 0 to 1: right order with
# ties as they are, with calibrated ties, and soft (comperdial.stats.pairs says what each is, and whose).
PairMeasure = Literal["tau_c", "tau_23", "pairwise_pearson", "accuracy", "acc_eq", "spa"]
PAIR_MEASURES: tuple[PairMeasure, ...] = ("tau_c", "tau_23", "pairwise_pearson", "accuracy", "acc_eq", "spa")
# Those that are of systems: a pair is one of two systems.
OF_SYSTEMS: tuple[PairMeasure, ...] = ("tau_c", "tau_23", "accuracy", "acc_eq", "spa")
# Of these, accuracy and SPA are tested without being asked for where there are so many systems or fewer. Tests of many systems
# take minutes, and Kendall's tau answers the same question.
TESTED_OF_FEW: tuple[PairMeasure, ...] = ("accuracy", "spa")
FEW_SYSTEMS = 12
Measure = Coefficient | PairMeasure
MEASURES: tuple[Measure, ...] = (*COEFFICIENTS, *PAIR_MEASURES)
