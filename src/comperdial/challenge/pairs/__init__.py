"""Pairs of dialogues that are compared: the dialogues, which pairs are shown to whom, and how the choices come back."""
