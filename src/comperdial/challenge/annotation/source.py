"""The tables that tasks are made of, held together by their ids."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from comperdial import schema
from comperdial.challenge.annotation.labeling import personas_html
from comperdial.core.errors import SchemaError, UnknownNameError

log = logging.getLogger(__name__)


class Source:
    """The tables of a folder; ``dialogues`` has the contexts of each dialogue in the order of their turns.

    Raises
    ------
    ComperdialError
        When a table is missing or wrong, or a response is by a system or to a context that is in no table.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.systems = schema.read(folder / "systems.parquet", "systems")
        contexts = schema.read(folder / "contexts.parquet", "contexts")
        self.contexts: dict[tuple[str, str], dict[Any, Any]] = {}
        self.dialogues: dict[tuple[str, str], list[dict[Any, Any]]] = {}
        for context in contexts.sort_values(["turn", "context_id"], kind="stable").to_dict("records"):
            self.contexts[context["dataset"], context["context_id"]] = context
            self.dialogues.setdefault((context["dataset"], context["dialogue_id"]), []).append(context)
        self.responses = schema.read(folder / "responses.parquet", "responses")
        self.personas: dict[tuple[str, str], dict[str, list[str]]] = {}
        if (folder / "personas.parquet").exists():
            for persona in schema.read(folder / "personas.parquet", "personas").to_dict("records"):
                speakers = self.personas.setdefault((persona["dataset"], persona["dialogue_id"]), {})
                speakers[persona["speaker"]] = persona["sentences"]
        else:
            log.info("%s: no personas.parquet; the tasks show no personas", folder)
        self._check_ids()

    def _check_ids(self) -> None:
        systems = set(zip(self.systems["dataset"], self.systems["system_id"], strict=True))
        contexts = set(self.contexts)
        for number, row in enumerate(self.responses.to_dict("records"), start=1):
            for kind, names in (("context", contexts), ("system", systems)):
                if (row["dataset"], row[f"{kind}_id"]) not in names:
                    raise SchemaError(
                        f"{kind}_id {row[f'{kind}_id']!r} of dataset {row['dataset']!r} is not in {kind}s.parquet",
                        where=f"{self.folder / 'responses.parquet'}, record {number}",
                        expected=f"a {kind} of that table",
                        hint="Make the tables anew, so that they belong together",
                    )

    def chosen(self, names: Sequence[str] | None) -> set[tuple[str, str]]:
        """Return dataset and name of the systems to rate: those named, or all but references, which are not scored."""
        known = set(self.systems["system_id"])
        for name in names or ():
            if name not in known:
                raise UnknownNameError("system", name, known, where=str(self.folder / "systems.parquet"))
        wanted = self.systems["system_id"].isin(names) if names else self.systems["kind"] != "reference"
        chosen = self.systems[wanted]
        return set(zip(chosen["dataset"], chosen["system_id"], strict=True))

    def shown_personas(self, dataset: str, dialogue: str, facts: Iterable[str]) -> str:
        """Return the personas of a dialogue as HTML, with those facts that are not persona sentences anyway."""
        personas = self.personas.get((dataset, dialogue), {})
        said = {sentence for sentences in personas.values() for sentence in sentences}
        return personas_html(personas, [fact for fact in facts if fact not in said])
