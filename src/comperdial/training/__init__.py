"""Training of learned metrics: pairs, the training loop, the Gaussian of features (docs/density.md)."""
