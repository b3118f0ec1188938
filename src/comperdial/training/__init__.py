"""Shared by learned metrics: training pairs, the training loop, the Gaussian of features (docs/density.md)."""
