"""Functions for study tables with their own layout; ``studies/NAME/study.yaml`` declares them."""
