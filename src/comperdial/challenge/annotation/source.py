"""The tables that tasks are made of, joined by their ids."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial import schema
from comperdial.core.errors import SchemaError, UnknownNameError


class Source:
    """The tables of a folder.

    Attributes
    ----------
    systems, responses
        The tables; each response with its ``dialogue_id``.
    contexts
        (dataset, context_id) -> the context.
    dialogues
        (dataset, dialogue_id) -> its contexts in the order of their turns.
    personas
        (dataset, dialogue_id) -> speaker -> sentences.

    Raises
    ------
    ComperdialError
        When a table is missing or wrong, or a response is by a system or to a context that is in no table.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.systems = schema.read(folder / "systems.parquet", "systems")
        contexts = schema.read(folder / "contexts.parquet", "contexts")
        responses = schema.read(folder / "responses.parquet", "responses")
        for kind, table in (("context", contexts), ("system", self.systems)):
            known = pd.MultiIndex.from_frame(table[["dataset", f"{kind}_id"]])
            given = pd.MultiIndex.from_frame(responses[["dataset", f"{kind}_id"]])
            if len(unknown := given[~given.isin(known)]):
                raise SchemaError(
                    f"{kind}_id {unknown[0][1]!r} of dataset {unknown[0][0]!r} is not in {kind}s.parquet",
                    where=str(folder / "responses.parquet"),
                    expected=f"a {kind} of that table",
                    hint="Make the tables anew, so that they belong together",
                )
        self.responses = responses.merge(contexts[["dataset", "context_id", "dialogue_id"]])
        self.contexts: dict[tuple[str, str], dict[Any, Any]] = {}
        self.dialogues: dict[tuple[str, str], list[dict[Any, Any]]] = {}
        for context in contexts.sort_values(["turn", "context_id"], kind="stable").to_dict("records"):
            self.contexts[context["dataset"], context["context_id"]] = context
            self.dialogues.setdefault((context["dataset"], context["dialogue_id"]), []).append(context)
        self.personas: dict[tuple[str, str], dict[str, list[str]]] = {}
        if (folder / "personas.parquet").exists():
            for persona in schema.read(folder / "personas.parquet", "personas").to_dict("records"):
                speakers = self.personas.setdefault((persona["dataset"], persona["dialogue_id"]), {})
                speakers[persona["speaker"]] = persona["sentences"]

    def chosen(self, names: Sequence[str] | None) -> set[tuple[str, str]]:
        """Return dataset and name of the systems to rate: those named, or all but references, which are not scored."""
        known = {*self.systems["system_id"]}
        for name in names or ():
            if name not in known:
                raise UnknownNameError("system", name, known, where=str(self.folder / "systems.parquet"))
        wanted = self.systems["system_id"].isin(names) if names else self.systems["kind"] != "reference"
        chosen = self.systems[wanted]
        return set(zip(chosen["dataset"], chosen["system_id"], strict=True))

    def answered(self, dataset: str, dialogue: str, context_ids: Collection[str]) -> list[dict[Any, Any]] | None:
        """Return those contexts of a dialogue that were answered, or None if a turn was not."""
        contexts = self.dialogues[dataset, dialogue]
        # A turn has further contexts if a system answered it several times.
        answered = [context for context in contexts if context["context_id"] in {*context_ids}]
        turns = {context["turn"] for context in contexts}
        return answered if {context["turn"] for context in answered} == turns else None
