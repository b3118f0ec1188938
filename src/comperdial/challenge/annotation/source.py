"""The responses that people rate or compare, out of a folder of tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from comperdial import schema
from comperdial.core.errors import SchemaError, UnknownNameError


def read_responses(folder: Path, systems: Sequence[str] | None = None) -> pd.DataFrame:
    """Return the responses of some systems, each with its context, in the order of dialogues, systems and turns.

    Parameters
    ----------
    folder
        Holds ``systems``, ``contexts`` and ``responses``.
    systems
        Their names. Default: all but the references.

    Returns
    -------
    pandas.DataFrame
        Columns of ``responses``; ``dialogue_id``, ``turn``, ``history`` and ``facts`` of the context; and ``turns``, how many
        turns the dialogue has.

    Raises
    ------
    ComperdialError
        When a table is missing or wrong, a system does not exist, or a response is by a system or to a context that is in
        no table.
    """
    known, contexts, responses = (
        schema.read(folder / f"{name}.parquet", name) for name in ("systems", "contexts", "responses")
    )
    for kind, table in (("context", contexts), ("system", known)):
        keys = ["dataset", f"{kind}_id"]
        given = pd.MultiIndex.from_frame(responses[keys])
        if len(unknown := given[~given.isin(pd.MultiIndex.from_frame(table[keys]))]):
            raise SchemaError(
                f"{kind}_id {unknown[0][1]!r} of dataset {unknown[0][0]!r} is not in {kind}s.parquet",
                where=str(folder / "responses.parquet"),
                expected=f"a {kind} of that table",
                hint="Make the tables anew, so that they belong together",
            )
    for name in systems or ():
        if name not in {*known["system_id"]}:
            raise UnknownNameError("system", name, {*known["system_id"]}, where=str(folder / "systems.parquet"))
    chosen = known[known["system_id"].isin(systems) if systems else known["kind"] != "reference"]
    contexts["turns"] = contexts.groupby(["dataset", "dialogue_id"])["turn"].transform("nunique")
    shown = contexts[["dataset", "context_id", "dialogue_id", "turn", "turns", "history", "facts"]]
    joined = responses.merge(shown).merge(chosen[["dataset", "system_id"]])
    return joined.sort_values(["dataset", "dialogue_id", "system_id", "turn", "context_id"], ignore_index=True)


def is_whole(responses: pd.DataFrame) -> bool:
    """Return whether a system's responses in one dialogue answer all of its turns."""
    return bool(responses["turn"].nunique() == responses["turns"].iloc[0])
