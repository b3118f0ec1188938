"""Judges: language models, and one rule-based program, that rate responses and dialogues from a prompt."""
