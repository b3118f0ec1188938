"""Errors, files, names and the code hash. Imports no other part of the package."""
