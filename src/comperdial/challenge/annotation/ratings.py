"""Ratings by people: tables in, Label Studio projects out, and its exports back into table ``ratings``.

The procedure is the paper's (sections 3.2.3, A.7.1 and A.7.2); ``docs/annotation.md`` is the page for who organises it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.challenge.annotation import label_studio as ls
from comperdial.challenge.annotation.source import Source
from comperdial.core.errors import ConfigError, FileError, SchemaError
from comperdial.core.files import write_json, write_table, write_text
from comperdial.core.names import RATED_LEVELS
from comperdial.schema.dimensions import AXES, AXIS_SCALE, OVERALL, OVERALL_SCALE

log = logging.getLogger(__name__)

# The points of the overall score, in the words beside the buttons (paper, section A.7.1).
SCORES = {1: "very bad", 2: "rather bad", 3: "in between", 4: "rather good", 5: "very good"}
# The names of the tags, which the export repeats.
_OVERALL, _REASONS = "overall", "reasons"
_ITEM = {"turn": "context_id", "dialogue": "dialogue_id"}
_SHOWN = {
    "turn": {
        "personas": "The speakers",
        "history": "The conversation so far",
        "response": "The response to rate",
    },
    "dialogue": {"personas": "The speakers", "flows": "The dialogue to rate"},
}
_MARKED = "; padding: .4em; border-left: 4px solid #4a7"

_README = """\
# Tasks for human raters

One folder a level, each a Label Studio project: {levels}. For each of them:

1. Create one project an annotator, all on the same server: in one shared project annotators can see, and change, what
   the others gave. Under *Settings, Labeling Interface, Code*, paste `config.xml`.
2. Import `tasks.json` into each.
3. Give the annotators `guidelines.md` (the same text unfolds above every task). Who cannot judge a task skips it.
4. Export each project as JSON or JSON-MIN, the same for all, and turn them into one table of ratings:

   `comperdial annotate import EXPORT.json ... --key LEVEL/key.csv --level LEVEL --output LEVEL_ratings.parquet`

Keep `key.csv` and the seed of the export to yourself: `key.csv` says which system an item is by, and with the seed
anyone who has the tables can work it out. Without `key.csv` the ratings cannot be read.
"""


@dataclass(frozen=True)
class _Item:
    """One thing to rate: the ids that the organiser keeps, and what the annotator sees."""

    dataset: str
    id: str
    system_id: str
    data: dict[str, str]


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
        Gets ``LEVEL/config.xml``, ``tasks.json``, ``key.csv`` and ``guidelines.md``, and a ``README.md``.
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
        When tables are missing or do not fit together, nothing is left to rate, or ``output`` holds files already.
    """
    folder, output, levels = Path(folder), Path(output), list(dict.fromkeys(levels))
    for level in levels:
        ls.refuse_key(output / level / "key.csv")
    # An earlier export, of another level, has left its README.
    readme, ours = output / "README.md", _README.partition("\n")[0].encode()
    others = [output / level / name for level in levels for name in ("tasks.json", "guidelines.md", "config.xml")]
    for path in [*others, *([] if readme.is_file() and readme.read_bytes().startswith(ours) else [readme])]:
        if path.exists():
            raise FileError("would be overwritten", where=str(path), expected="a folder without it")
    source = Source(folder)
    responses = _select(source, source.chosen(systems), sample, seed)
    # All is made before the first file is written.
    projects = {level: list((_turns if level == "turn" else _dialogues)(source, responses)) for level in levels}
    for level, items in projects.items():
        if not items:
            raise SchemaError(f"nothing to rate at level {level!r}", where=str(folder), expected="responses")
    for level, items in projects.items():
        _write(output / level, level, items, seed)
    write_text(readme, _README.format(levels=" and ".join(f"`{level}/`" for level in levels)))
    return {level: len(items) for level, items in projects.items()}


def _select(source: Source, systems: Collection[tuple[str, str]], sample: int | None, seed: int) -> pd.DataFrame:
    """Return the responses to rate, with the dialogue of each, in the order of their ids."""
    responses = source.responses
    answered = zip(responses["dataset"], responses["system_id"], strict=True)
    responses = responses[[key in systems for key in answered]].sort_values(
        ["dataset", "context_id", "system_id"], kind="stable"
    )
    if sample is None:
        return responses
    keys = list(zip(responses["dataset"], responses["dialogue_id"], strict=True))
    dialogues = sorted(set(keys))
    if not 1 <= sample <= len(dialogues):
        expected = f"1 to {len(dialogues)}, as many as the chosen systems answered"
        raise ConfigError(f"a sample of {sample} dialogues", where=str(source.folder), expected=expected)
    drawn = _generator(seed, "sample").choice(len(dialogues), size=sample, replace=False)
    wanted = {dialogues[number] for number in drawn}
    return responses[[key in wanted for key in keys]]


def _generator(seed: int, use: str) -> np.random.Generator:
    """Make a generator for one use, so that what is drawn for one does not depend on the others."""
    return np.random.default_rng([seed, *use.encode()])


def _turns(source: Source, responses: pd.DataFrame) -> Iterator[_Item]:
    for row in responses.to_dict("records"):
        context = source.contexts[row["dataset"], row["context_id"]]
        shown = {
            "personas": _personas(source, row["dataset"], row["dialogue_id"], context["facts"]),
            "history": _history(context["history"]),
            "response": ls.paragraph(_MARKED, row["response"], "B"),
        }
        yield _Item(row["dataset"], row["context_id"], row["system_id"], shown)


def _dialogues(source: Source, responses: pd.DataFrame) -> Iterator[_Item]:
    incomplete = []
    for (dataset, dialogue, system), rows in responses.groupby(["dataset", "dialogue_id", "system_id"], sort=True):
        contexts = source.answered(str(dataset), str(dialogue), rows["context_id"])
        if contexts is None:
            incomplete.append(f"{dialogue} by {system}")
            continue
        texts = dict(zip(rows["context_id"], rows["response"], strict=True))
        flows = [
            f"<h4>Flow {number} of {len(contexts)}</h4>{_history(context['history'])}"
            + ls.paragraph(_MARKED, texts[context["context_id"]], "B")
            for number, context in enumerate(contexts, start=1)
        ]
        facts = dict.fromkeys(fact for context in contexts for fact in context["facts"])
        personas = _personas(source, str(dataset), str(dialogue), facts)
        yield _Item(str(dataset), str(dialogue), str(system), {"personas": personas, "flows": "".join(flows)})
    if incomplete:
        message = "%s: %d dialogues left out, because responses to some of their turns are missing (the first: %s)"
        log.warning(message, source.folder, len(incomplete), incomplete[0])


def _history(history: Iterable[Mapping[str, str]]) -> str:
    lines = [ls.paragraph("", utterance["text"], utterance["speaker"]) for utterance in history]
    return "".join(lines) or "<p>(Nothing was said before.)</p>"


def _personas(source: Source, dataset: str, dialogue: str, facts: Iterable[str]) -> str:
    """Return the personas by speaker, and those facts that are not persona sentences anyway, as HTML."""
    personas = source.personas.get((dataset, dialogue), {})
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
    names = [ls.item_name(level, item.dataset, item.id, item.system_id, seed) for item in order]
    if len({*names}) < len(names):
        raise ConfigError(f"two items get the same name with seed {seed}", hint="Choose another seed")
    rows = [(name, item.dataset, item.id, item.system_id) for name, item in zip(names, order, strict=True)]
    tasks = [{"data": {"item": name, **item.data}} for name, item in zip(names, order, strict=True)]
    guidelines = (resources.files(__package__) / "guidelines" / f"{level}.md").read_text(encoding="utf-8")
    # The key comes first: tasks without their key would be rated in vain. Its order is by name, not that of the tasks.
    write_table(folder / "key.csv", pd.DataFrame(sorted(rows), columns=_key_columns(level)))
    write_text(folder / "guidelines.md", guidelines)
    write_text(folder / "config.xml", _config(level, guidelines))
    write_json(folder / "tasks.json", tasks)


def _key_columns(level: str) -> list[str]:
    return ["item", "dataset", _ITEM[level], "system_id"]


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
        item = items[annotation.item]
        ids = {
            "dataset": item["dataset"],
            "level": level,
            "item_id": item[_ITEM[level]],
            "system_id": item["system_id"],
        }
        common = {**ids, "annotator_id": annotation.annotator, "position": None, "source": "human"}
        for dimension, rating, scale in _ratings(annotation, level):
            limits = dict(zip(("scale_min", "scale_max"), scale, strict=True))
            rows.append(common | {"dimension": dimension, "rating": rating} | limits)
    return schema.validate(pd.DataFrame(rows, columns=schema.table("ratings").columns), "ratings")


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
