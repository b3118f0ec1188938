"""Ratings and choices by people: tasks for Label Studio out of tables and dialogues, and its exports back into tables."""
