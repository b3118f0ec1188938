"""LLMBar (Zeng et al. 2024): two outputs per instruction, with a gold label for the better one."""

from __future__ import annotations

from comperdial.challenge.pairs import Dialogue
from comperdial.core.files import read_json
from comperdial.data.readers import base
from comperdial.data.readers.base import Files, Tables

SYSTEMS = ("output_1", "output_2")
USER, MODEL = "user", "model"


def read(dataset: str, files: Files) -> Tables:
    """Read ``pairs``: items are numbered from 0 in file order; outputs have no system names."""
    votes = [
        base.vote(str(number), str(number), SYSTEMS, "gold", "instruction following", {1: 1, 2: -1}[entry["label"]])
        for number, entry in enumerate(read_json(files["pairs"]))
    ]
    return base.make_tables(dataset, files, preferences=votes)


def dialogues(files: Files) -> list[Dialogue]:
    """Return each output as an answer to its instruction."""
    return [
        Dialogue(
            str(number), system, MODEL, ((USER, entry["input"] or base.EMPTY), (MODEL, entry[system] or base.EMPTY))
        )
        for number, entry in enumerate(read_json(files["pairs"]))
        for system in SYSTEMS
    ]
