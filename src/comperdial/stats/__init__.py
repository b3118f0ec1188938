"""Statistics: arrays in, numbers out; imports nothing of ours."""

from typing import Literal

Coefficient = Literal["pearson", "spearman", "kendall"]
COEFFICIENTS: tuple[Coefficient, ...] = ("pearson", "spearman", "kendall")
