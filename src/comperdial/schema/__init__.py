"""The tables that everything flows through: tidy, one row a fact, checked on every write and every read.

A table is described once (:mod:`comperdial.schema.tables`); the Parquet types and the pandera checks both come from it.
``docs/data-model.md`` explains the tables to their users, and a test holds that page to this package.
"""

from comperdial.schema.check import validate
from comperdial.schema.io import empty, parse_cells, read, write
from comperdial.schema.parts import count, read_parts, writing_parts
from comperdial.schema.tables import TABLES, table

__all__ = [
    "TABLES",
    "count",
    "empty",
    "parse_cells",
    "read",
    "read_parts",
    "table",
    "validate",
    "write",
    "writing_parts",
]
