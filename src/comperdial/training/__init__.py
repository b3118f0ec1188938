"""What learned metrics share: training pairs, the loop, the Gaussian of features (docs/density.md)."""
