"""Whether the user goes on, and whose eye a metric has (Tsuta et al. 2023)."""
