"""Persona profiles from a knowledge graph (ComperDial, 3.1 and A.3): PeaCoK in, persona sentences out."""
