"""Reading the data set that a command is about: its folder of tables, and the ratings that count."""

from __future__ import annotations

import argparse
from typing import Any

from comperdial.cli.common import suffix


def table_of(options: argparse.Namespace, name: str) -> Any:  # noqa: ANN401
    """Return a table of the folder ``--tables``."""
    from comperdial import schema

    return schema.read(options.tables / f"{name}.parquet", name)


def read_ratings(options: argparse.Namespace, level: str) -> Any:  # noqa: ANN401
    """Return the ratings of a level by the source in question, or None when it rated nothing there."""
    if level not in rated_levels(options):
        return None
    found = table_of(options, f"{level}_ratings")
    found = found[found["source"] == options.source]
    return None if found.empty else found


def rated_levels(options: argparse.Namespace) -> list[str]:
    """Return the levels that have ratings: those said to, so that files of an earlier run are not taken for them."""
    if options.rated is not None:
        return list(options.rated)
    return [level for level in ("turn", "dialogue") if (options.tables / f"{level}_ratings.parquet").is_file()]


def suffix_of(options: argparse.Namespace) -> str:
    """Return what a caption ends with; ratings that say that they are simulated are believed without the option."""
    import pyarrow.parquet

    from comperdial.report.document import SIMULATED
    from comperdial.schema.parquet import readable
    from comperdial.simulation import SOURCE

    for level in rated_levels(options):
        path = options.tables / f"{level}_ratings.parquet"
        # The one column: reading and checking the whole tables takes longer than making a page.
        with readable(path, f"{level}_ratings"):
            found = pyarrow.parquet.read_table(path, columns=["source"])
        if any(SOURCE in map(str, column.unique()) for column in found.columns):
            return SIMULATED
    return suffix(options)
