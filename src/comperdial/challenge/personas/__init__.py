"""Persona profiles from a knowledge graph (ComperDial, 3.1 and A.3): PeaCoK in, persona sentences out."""

from comperdial.challenge.personas.generate import Persona, generate, write_personas
from comperdial.challenge.personas.graph import Graph, read_graph
from comperdial.challenge.personas.rules import Constraints, read_constraints

__all__ = ["Constraints", "Graph", "Persona", "generate", "read_constraints", "read_graph", "write_personas"]
