"""A Gaussian of features: mean and covariance in one pass, and distances from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from comperdial.core.errors import ConfigError

Array = npt.NDArray[np.float64]


RCOND = 1e-10
"""The share of the largest eigenvalue below which a direction counts as empty: features are float32, and what varies
less than by a hundred-thousandth of their spread is rounding."""


class Moments:
    """Mean and covariance of features that come in pieces, in float64, each feature seen once.

    The covariance of equation 2 of DEnsity: divided by the number of features, not by one less. Pieces are merged by
    their own means (Chan et al. 1979), so that a mean far from 0 costs no digits.
    """

    def __init__(self, size: int) -> None:
        self.count = 0
        self._mean = np.zeros(size)
        self._scatter = np.zeros((size, size))

    def add(self, features: npt.ArrayLike) -> None:
        """Add n features, n x size."""
        given = np.asarray(features, dtype=np.float64)
        if not len(given):
            return
        mean = given.mean(axis=0)
        centred = given - mean
        total = self.count + len(given)
        shift = mean - self._mean
        self._scatter += centred.T @ centred + np.outer(shift, shift) * (self.count * len(given) / total)
        self._mean += shift * (len(given) / total)
        self.count = total

    def gaussian(self) -> Gaussian:
        """Return the Gaussian of all features so far.

        Raises
        ------
        ConfigError
            When there are fewer than two.
        """
        if self.count < 2:
            raise ConfigError(f"{self.count} features", expected="two or more, to have a covariance")
        return Gaussian(self._mean.copy(), self._scatter / self.count)


@dataclass(frozen=True, eq=False)
class Gaussian:
    """Mean and covariance of features, float64."""

    mean: Array
    covariance: Array

    @cached_property
    def inverse(self) -> Array:
        """Return the pseudo-inverse of the covariance, which has one even where features do not fill their space."""
        return np.asarray(np.linalg.pinv(self.covariance, rcond=RCOND, hermitian=True), dtype=np.float64)

    def mahalanobis(self, features: npt.ArrayLike) -> Array:
        """Return the Mahalanobis distance of each of n features, n x size, from the mean.

        It is the square root of DEnsity's equation 3 (section 4.3), without its sign.
        """
        shift = np.asarray(features, dtype=np.float64) - self.mean
        return np.sqrt(np.maximum(np.einsum("ij,ij->i", shift @ self.inverse, shift), 0.0))

    def euclidean(self, features: npt.ArrayLike) -> Array:
        """Return the Euclidean distance of each of n features from the mean."""
        shift = np.asarray(features, dtype=np.float64) - self.mean
        return np.sqrt(np.einsum("ij,ij->i", shift, shift))
