"""ACUTE-Eval (Li, Weston and Roller 2019): dialogues compared in pairs, on public preferences (docs/preferences.md)."""
