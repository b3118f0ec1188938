"""The project's website: the README, the documentation and the published results as linked pages."""
