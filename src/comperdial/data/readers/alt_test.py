"""Data of the alternative annotator test (Calderon, Reichart and Dror 2025): labels by people and six judges, no texts."""

from __future__ import annotations

from pathlib import Path

from comperdial.core.errors import SchemaError
from comperdial.core.files import read_json
from comperdial.data.readers import base
from comperdial.data.readers.base import Files, Tables, get


def read(dataset: str, files: Files) -> Tables:
    """Read ``people`` and ``judges`` (each rater -> item -> label) into table ``labels``; people are numbered.

    Items on one text share a ``cluster``: an item's name ends with its question, if other items have the same one.
    """
    people, judges = (_labels(files[role]) for role in ("people", "judges"))
    items = list(dict.fromkeys(item for given in people.values() for item in given))
    for judge, given in judges.items():
        if different := sorted(given.keys() ^ set(items)):
            problem = f"judge {judge!r} {'lacks' if different[0] not in given else 'alone has'} item {different[0]!r}"
            raise SchemaError(problem, where=str(files["judges"]), expected="a label of each item that people labelled")
    questions = {item.rsplit("__", 1)[-1] for item in items}
    clusters = {item: item.rsplit("__", 1)[0] if len(questions) < len(items) else item for item in items}
    numbers = base.worker_numbers(people)
    raters = [(numbers[name], "human", given) for name, given in people.items()]
    raters += [(name, name, given) for name, given in judges.items()]
    rows = [
        {"item_id": item, "cluster": clusters[item], "annotator_id": name, "label": str(label), "source": source}
        for name, source, given in raters
        for item, label in given.items()
    ]
    return base.make_tables(dataset, files, labels=rows)


def _labels(path: Path) -> dict[str, dict[str, str | int]]:
    content = read_json(path)
    return {name: get(content, name, dict, str(path)) for name in content}
