"""LLMs as dialogue evaluators (Zhang et al. 2024): twelve data sets, ensembles, perturbations."""
