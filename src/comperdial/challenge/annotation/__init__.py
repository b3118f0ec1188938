"""Ratings by people: tasks for Label Studio out of tables, and its export back into tables of ratings.

The procedure is the paper's (sections 3.2.3, A.7.1 and A.7.2); ``docs/annotation.md`` is the page for who organises it.
"""

from comperdial.challenge.annotation.export import export
from comperdial.challenge.annotation.importing import read_ratings
from comperdial.challenge.annotation.terms import LEVELS
from comperdial.schema.dimensions import AXES, OVERALL

__all__ = ["AXES", "LEVELS", "OVERALL", "export", "read_ratings"]
