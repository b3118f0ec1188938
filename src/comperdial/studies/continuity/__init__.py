"""Whose eye: interlocutors and outsiders (Tsuta et al. 2023)."""
