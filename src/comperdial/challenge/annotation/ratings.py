"""Ratings by people: tables in, Label Studio projects out, and its exports back into table ``ratings``.

The procedure is the paper's (sections 3.2.3, A.7.1 and A.7.2); ``docs/annotation.md`` is the page for who organises it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.challenge.annotation import label_studio as ls
from comperdial.challenge.annotation.source import is_whole, read_responses
from comperdial.core.errors import ConfigError, SchemaError
from comperdial.core.files import write_json, write_table, write_text
from comperdial.core.names import RATED_LEVELS
from comperdial.schema.dimensions import AXES, AXIS_SCALE, OVERALL, OVERALL_SCALE

log = logging.getLogger(__name__)

# The points of the overall score, in the words beside the buttons (paper, section A.7.1).
SCORES = {1: "very bad", 2: "rather bad", 3: "in between", 4: "rather good", 5: "very good"}
# The names of the tags, which the export repeats.
_OVERALL, _REASONS = "overall", "reasons"
_SHOWN = {
    "turn": {
        "personas": "The speakers",
        "history": "The conversation so far",
        "response": "The response to rate",
    },
    "dialogue": {"personas": "The speakers", "flows": "The dialogue to rate"},
}
_MARKED = "; padding: .4em; border-left: 4px solid #4a7"

_Item = tuple[tuple[str, str, str], dict[str, str]]
"""Data set, context or dialogue, and system, which the organiser keeps; and what the annotator sees."""
_Personas = dict[tuple[str, str], dict[str, list[str]]]
"""Data set and dialogue -> speaker -> sentences."""

_README = """\
# Tasks for human raters

One folder a level, each a Label Studio project. For each of them:

1. Create one project an annotator, all on the same server: in one shared project annotators can see, and change, what
   the others gave. Under *Settings, Labeling Interface, Code*, paste `config.xml`.
2. Import `tasks.json` into each.
3. Give the annotators `guidelines.md` (the same text unfolds above every task). Who cannot judge a task skips it.
4. Export each project as JSON or JSON-MIN, the same for all, and turn them into one table of ratings:

   `comperdial annotate import EXPORT.json ... --key LEVEL/key.csv --level LEVEL --output LEVEL_ratings.parquet`

Keep `key.csv` and the seed of the export to yourself: `key.csv` says which system an item is by, and with the seed
anyone who has the tables can work it out. Without `key.csv` the ratings cannot be read.
"""


def export(
    folder: str | Path,
    output: str | Path,
    *,
    levels: Iterable[str] = RATED_LEVELS,
    systems: Sequence[str] | None = None,
    sample: int | None = None,
    seed: int = 0,
) -> dict[str, int]:
    """Write the tables of ``folder`` as rating tasks into ``output``, one folder a level.

    Parameters
    ----------
    folder
        Holds ``systems``, ``contexts``, ``responses`` and, if any, ``personas`` as Parquet.
    output
        Gets ``LEVEL/config.xml``, ``tasks.json``, ``key.csv`` and ``guidelines.md``, and a ``README.md`` unless it has one.
    levels
        ``turn`` (one task a response), ``dialogue`` (one a system's dialogue), or both.
    systems
        Which to have rated; default: all but the references.
    sample
        How many dialogues to draw. All the chosen systems are rated on the same ones, at both levels (paper, section
        3.2.3: 15 of 250). Default: all.
    seed
        Determines the items' names, the sample and the order. Equal tables and options give equal files.

    Returns
    -------
    dict
        The number of tasks by level.

    Raises
    ------
    ComperdialError
        When tables are missing or do not fit together, nothing is left to rate, or the folder of a level is not empty.
    """
    folder, output, levels = Path(folder), Path(output), list(dict.fromkeys(levels))
    for level in levels:
        ls.refuse_used(output / level)
    responses = _sampled(read_responses(folder, systems), sample, seed, folder)
    personas = _read_personas(folder)
    # All is made before the first file is written.
    projects = {level: (_turns if level == "turn" else _dialogues)(responses, personas) for level in levels}
    for level, items in projects.items():
        if not items:
            raise SchemaError(f"nothing to rate at level {level!r}", where=str(folder), expected="responses")
    for level, items in projects.items():
        _write(output / level, level, items, seed)
    if not (output / "README.md").exists():
        write_text(output / "README.md", _README)
    return {level: len(items) for level, items in projects.items()}


def _sampled(responses: pd.DataFrame, sample: int | None, seed: int, folder: Path) -> pd.DataFrame:
    """Return the responses in a sample of the dialogues."""
    if sample is None:
        return responses
    dialogues = responses[["dataset", "dialogue_id"]].drop_duplicates(ignore_index=True)
    if not 1 <= sample <= len(dialogues):
        expected = f"1 to {len(dialogues)}, as many as the chosen systems answered"
        raise ConfigError(f"a sample of {sample} dialogues", where=str(folder), expected=expected)
    return responses.merge(dialogues.loc[_generator(seed, "sample").choice(len(dialogues), size=sample, replace=False)])


def _generator(seed: int, use: str) -> np.random.Generator:
    """Make a generator for one use, so that what is drawn for one does not depend on the others."""
    return np.random.default_rng([seed, *use.encode()])


def _read_personas(folder: Path) -> _Personas:
    personas: _Personas = {}
    if (folder / "personas.parquet").exists():
        for row in schema.read(folder / "personas.parquet", "personas").to_dict("records"):
            personas.setdefault((row["dataset"], row["dialogue_id"]), {})[row["speaker"]] = row["sentences"]
    return personas


def _turns(responses: pd.DataFrame, personas: _Personas) -> list[_Item]:
    items = []
    for row in responses.sort_values(["dataset", "context_id", "system_id"]).to_dict("records"):
        shown = {
            "personas": _about(personas.get((row["dataset"], row["dialogue_id"]), {}), row["facts"]),
            "history": _history(row["history"]),
            "response": ls.paragraph(_MARKED, row["response"], "B"),
        }
        items.append(((row["dataset"], row["context_id"], row["system_id"]), shown))
    return items


def _dialogues(responses: pd.DataFrame, personas: _Personas) -> list[_Item]:
    items, incomplete = [], []
    for ids, rows in responses.groupby(["dataset", "dialogue_id", "system_id"], sort=True):
        dataset, dialogue, system = map(str, ids)
        if not is_whole(rows):
            incomplete.append(f"{dialogue} by {system}")
            continue
        flows = [
            f"<h4>Flow {number} of {len(rows)}</h4>{_history(history)}{ls.paragraph(_MARKED, response, 'B')}"
            for number, (history, response) in enumerate(zip(rows["history"], rows["response"], strict=True), start=1)
        ]
        facts = dict.fromkeys(fact for facts in rows["facts"] for fact in facts)
        shown = {"personas": _about(personas.get((dataset, dialogue), {}), facts), "flows": "".join(flows)}
        items.append(((dataset, dialogue, system), shown))
    if incomplete:
        message = "%d dialogues left out, because responses to some of their turns are missing (the first: %s)"
        log.warning(message, len(incomplete), incomplete[0])
    return items


def _history(history: Iterable[Mapping[str, str]]) -> str:
    lines = [ls.paragraph("", utterance["text"], utterance["speaker"]) for utterance in history]
    return "".join(lines) or "<p>(Nothing was said before.)</p>"


def _about(personas: Mapping[str, Sequence[str]], facts: Iterable[str]) -> str:
    """Return the personas by speaker, and those facts that are not persona sentences anyway, as HTML."""
    known = {sentence for sentences in personas.values() for sentence in sentences}
    parts = [
        f"<p><b>{ls.html.escape(speaker)}{' (rated)' if speaker == 'B' else ''}</b></p>{ls.bullets(sentences)}"
        for speaker, sentences in sorted(personas.items())
    ]
    if others := [fact for fact in facts if fact not in known]:
        parts.append(f"<p><b>Facts that B may draw on</b></p>{ls.bullets(others)}")
    return "".join(parts) or "<p>Nothing is known about the speakers.</p>"


def _write(folder: Path, level: str, items: list[_Item], seed: int) -> None:
    order = [items[i] for i in _generator(seed, level).permutation(len(items))]
    tasks = [{"data": {"item": ls.item_name(level, *ids, seed), **shown}} for ids, shown in order]
    rows = sorted((task["data"]["item"], *ids) for task, (ids, _) in zip(tasks, order, strict=True))
    if len({row[0] for row in rows}) < len(rows):
        raise ConfigError(f"two items get the same name with seed {seed}", hint="Choose another seed")
    guidelines = (resources.files(__package__) / "guidelines" / f"{level}.md").read_text(encoding="utf-8")
    # The key comes first: tasks without their key would be rated in vain. Its order is by name, not that of the tasks.
    write_table(folder / "key.csv", pd.DataFrame(rows, columns=_key_columns(level)))
    write_text(folder / "guidelines.md", guidelines)
    write_text(folder / "config.xml", _config(level, guidelines))
    write_json(folder / "tasks.json", tasks)


def _key_columns(level: str) -> list[str]:
    return ["item", "dataset", {"turn": "context_id", "dialogue": "dialogue_id"}[level], "system_id"]


def _config(level: str, guidelines: str) -> str:
    """Return the labeling configuration of a level as XML."""
    view = ls.guideline_view(guidelines)
    for name, title in _SHOWN[level].items():
        ls.add_text(view, name, title)
    rated = [*_SHOWN[level]][-1]
    # Choices, not Rating: five stars do not say what they mean, and one click too many on them takes the score back.
    scores = [(f"{score}: {words}", str(score)) for score, words in SCORES.items()]
    message = "Give an overall score from 1 to 5, or skip the task"
    ls.add_choices(view, "Overall score", scores, message, name=_OVERALL, toName=rated, choice="single-radio")
    if level == "dialogue":
        title = 'If the score is low: mark each reason for it ("n")'
        ls.add_choices(view, title, [(axis, None) for axis in AXES], name=_REASONS, toName=rated, choice="multiple")
    return ls.to_xml(view)


def read_ratings(exports: Sequence[str | Path], key: str | Path, level: str) -> pd.DataFrame:
    """Read the ratings in exports of Label Studio.

    Parameters
    ----------
    exports
        Files exported from one or several projects with the same tasks, as JSON or JSON-MIN.
    key
        The ``key.csv`` that was written with the tasks.
    level
        ``turn`` or ``dialogue``.

    Returns
    -------
    pandas.DataFrame
        Table ``ratings``, of one level: the dimension ``Overall`` from 1 to 5 and, for dialogues, the six axes: 0 where
        the annotator marked a problem, 1 where not.

    Raises
    ------
    SchemaError
        Names the task and the annotation at fault.
    """
    items = ls.read_key(key, _key_columns(level))
    rows: list[dict[str, Any]] = []
    for annotation in ls.read_exports(exports, (_OVERALL, _REASONS), items, key):
        _, dataset, item, system = items[annotation.item].values()
        common = {"dataset": dataset, "level": level, "item_id": item, "system_id": system}
        common |= {"annotator_id": annotation.annotator, "source": "human"}
        for dimension, rating, (low, high) in _ratings(annotation, level):
            rows.append(common | {"dimension": dimension, "rating": rating, "scale_min": low, "scale_max": high})
    return schema.validate(pd.DataFrame(rows), "ratings")


def _ratings(annotation: ls.Annotation, level: str) -> Iterator[tuple[str, int, tuple[float, float]]]:
    """Yield dimension, rating and scale of each rating that an annotation gives."""
    where = f"{annotation.where} by annotator {annotation.annotator!r}"
    scores = annotation.choices.get(_OVERALL, [])
    if len(scores) != 1 or scores[0] not in map(str, SCORES):
        problem = f"overall score {', '.join(map(repr, scores))}" if scores else "no overall score"
        hint = "Have the task rated or skipped in Label Studio and export again"
        raise SchemaError(problem, where=where, expected="a score from 1 to 5", hint=hint)
    yield OVERALL, int(scores[0]), OVERALL_SCALE
    if level == "dialogue":
        marked = annotation.choices.get(_REASONS, [])
        if unknown := [axis for axis in marked if axis not in AXES]:
            raise SchemaError(f"reason {unknown[0]!r}", where=where, expected="some of " + ", ".join(AXES))
        for axis in AXES:
            yield axis, int(axis not in marked), AXIS_SCALE
