"""One file a strategy, under the name that :mod:`comperdial.perturbations.registry` knows it by."""
