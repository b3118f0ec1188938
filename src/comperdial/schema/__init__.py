"""The tables that everything flows through: tidy, one row a fact, checked when written and when foreign.

A table is described once (:mod:`comperdial.schema.tables`); the Parquet types and the checks both come from it.
``docs/data-model.md`` explains the tables to their users, and a test holds that page to this package.
"""

from comperdial.schema.io import (
    WHOLE,
    Part,
    column_names,
    count,
    empty,
    merge,
    parse_cells,
    ratings_in,
    read,
    read_parts,
    write,
    writing,
)
from comperdial.schema.tables import TABLES, table, validate

__all__ = [
    "TABLES",
    "WHOLE",
    "Part",
    "column_names",
    "count",
    "empty",
    "merge",
    "parse_cells",
    "ratings_in",
    "read",
    "read_parts",
    "table",
    "validate",
    "write",
    "writing",
]
