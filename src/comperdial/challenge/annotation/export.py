"""Tables in, Label Studio projects out: tasks in which nothing says which system answered."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from comperdial.challenge.annotation.labeling import config, flow_html, history_html, response_html
from comperdial.challenge.annotation.source import Source
from comperdial.challenge.annotation.terms import LEVELS, Level, get_level
from comperdial.core.errors import ConfigError, FileError, SchemaError
from comperdial.core.files import write_json, write_table, write_text

log = logging.getLogger(__name__)

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
    levels: Iterable[str] = tuple(LEVELS),
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
        When tables are missing or do not fit together, an option is wrong, nothing is left to rate, or ``output``
        holds a key already.
    """
    chosen_levels = [get_level(name) for name in dict.fromkeys(levels)]
    if seed < 0:
        raise ConfigError(f"seed is {seed}", expected="a whole number of 0 or more")
    folder, output = Path(folder), Path(output)
    _check_free(output, chosen_levels)
    source = Source(folder)
    items = _select(source, source.chosen(systems), sample, seed)
    # All is made before the first file is written.
    projects = {level: _items(level, source, items) for level in chosen_levels}
    for level, found in projects.items():
        if not found:
            raise SchemaError(f"nothing to rate at level {level.name!r}", where=str(folder), expected="responses")
    for level, found in projects.items():
        _write(output / level.name, level, found, seed)
        log.info("%s: %d tasks", output / level.name, len(found))
    names = " and ".join(f"`{level.name}/`" for level in chosen_levels)
    write_text(output / "README.md", _README.format(levels=names))
    return {level.name: len(found) for level, found in projects.items()}


def _check_free(output: Path, levels: Iterable[Level]) -> None:
    """Refuse a folder in which the export would write over a key, or over what is none of its own files."""
    for level in levels:
        if (output / level.name / "key.csv").exists():
            raise FileError(
                "there is a key already",
                where=str(output / level.name / "key.csv"),
                expected="a folder without one",
                hint="Export into another folder: without this key the ratings of its tasks cannot be read",
            )
    readme, ours = output / "README.md", _README.partition("\n")[0].encode()
    others = [output / level.name / name for level in levels for name in ("tasks.json", "guidelines.md", "config.xml")]
    # An earlier export, of another level, has left its README.
    if not readme.is_file() or not readme.read_bytes().startswith(ours):
        others.append(readme)
    for path in others:
        if path.exists():
            raise FileError(
                "is no file of an export",
                where=str(path),
                expected="a folder without it",
                hint="Export into another folder: this file would be written over",
            )


def _select(source: Source, systems: Collection[tuple[str, str]], sample: int | None, seed: int) -> pd.DataFrame:
    """Return the responses to rate, with the dialogue that each belongs to, in the order of their ids."""
    responses = source.responses
    answered = zip(responses["dataset"], responses["system_id"], strict=True)
    responses = responses[[key in systems for key in answered]].sort_values(
        ["dataset", "context_id", "system_id"], kind="stable"
    )
    keys = zip(responses["dataset"], responses["context_id"], strict=True)
    responses = responses.assign(dialogue_id=[source.contexts[key]["dialogue_id"] for key in keys])
    if sample is None:
        return responses
    dialogues = sorted(set(zip(responses["dataset"], responses["dialogue_id"], strict=True)))
    if not 1 <= sample <= len(dialogues):
        raise ConfigError(
            f"a sample of {sample} dialogues",
            where=str(source.folder),
            expected=f"1 to {len(dialogues)}, as many as the chosen systems answered",
        )
    drawn = _generator(seed, "sample").choice(len(dialogues), size=sample, replace=False)
    wanted = {dialogues[number] for number in drawn}
    keys = zip(responses["dataset"], responses["dialogue_id"], strict=True)
    return responses[[key in wanted for key in keys]]


def _generator(seed: int, use: str) -> np.random.Generator:
    """Make a generator for one use, so that what is drawn for one does not depend on the others."""
    return np.random.default_rng([seed, *use.encode()])


def _items(level: Level, source: Source, responses: pd.DataFrame) -> list[_Item]:
    make = _turns if level.name == "turn" else _dialogues
    return list(make(source, responses))


def _turns(source: Source, responses: pd.DataFrame) -> Iterator[_Item]:
    for row in responses.to_dict("records"):
        context = source.contexts[row["dataset"], row["context_id"]]
        personas = source.shown_personas(row["dataset"], row["dialogue_id"], context["facts"])
        shown = {
            "personas": personas,
            "history": history_html(context["history"]),
            "response": response_html(row["response"]),
        }
        yield _Item(row["dataset"], row["context_id"], row["system_id"], shown)


def _dialogues(source: Source, responses: pd.DataFrame) -> Iterator[_Item]:
    answers: dict[tuple[str, str, str], dict[str, str]] = {}
    for row in responses.to_dict("records"):
        key = (row["dataset"], row["dialogue_id"], row["system_id"])
        answers.setdefault(key, {})[row["context_id"]] = row["response"]
    incomplete = []
    for (dataset, dialogue, system), texts in sorted(answers.items()):
        turns = {context["turn"] for context in source.dialogues[dataset, dialogue]}
        # A turn has further contexts where a system answered it several times.
        contexts = [context for context in source.dialogues[dataset, dialogue] if context["context_id"] in texts]
        if {context["turn"] for context in contexts} < turns:
            incomplete.append(f"{dialogue} by {system}")
            continue
        facts = dict.fromkeys(fact for context in contexts for fact in context["facts"])
        flows = [
            flow_html(number, len(contexts), context["history"], texts[context["context_id"]])
            for number, context in enumerate(contexts, start=1)
        ]
        personas = source.shown_personas(dataset, dialogue, facts)
        yield _Item(dataset, dialogue, system, {"personas": personas, "flows": "".join(flows)})
    if incomplete:
        log.warning(
            "%s: %d dialogues left out, because responses to some of their turns are missing (the first: %s)",
            source.folder,
            len(incomplete),
            incomplete[0],
        )


def _write(folder: Path, level: Level, items: list[_Item], seed: int) -> None:
    order = _generator(seed, level.name).permutation(len(items)).tolist()
    names = [_name(level, items[i], seed) for i in order]
    if len(set(names)) < len(names):
        raise ConfigError(f"two items get the same name with seed {seed}", hint="Choose another seed")
    rows = [(name, items[i].dataset, items[i].id, items[i].system_id) for name, i in zip(names, order, strict=True)]
    tasks = [{"data": {"item": name, **items[i].data}} for name, i in zip(names, order, strict=True)]
    # The key comes first: tasks without their key would be rated in vain. Its order is by name, not that of the tasks.
    write_table(folder / "key.csv", pd.DataFrame(sorted(rows), columns=level.key))
    write_text(folder / "guidelines.md", level.guidelines())
    write_text(folder / "config.xml", config(level))
    write_json(folder / "tasks.json", tasks)


def _name(level: Level, item: _Item, seed: int) -> str:
    ids = json.dumps([level.name, item.dataset, item.id, item.system_id, seed])
    return hashlib.sha256(ids.encode()).hexdigest()[:12]
