"""Make a data set of pairs, original and perturbed, from another data set's tables."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.core.errors import ConfigError, MissingResourceError, UnknownNameError
from comperdial.core.plugins import load_class, module_names
from comperdial.perturbations.base import DialogueStrategy, Line, Strategy, TurnStrategy
from comperdial.perturbations.items import Context, Item, Source
from comperdial.perturbations.pool import Pool
from comperdial.perturbations.registry import PERTURBATIONS, perturbation
from comperdial.perturbations.text import same, tidy
from comperdial.schema.evaluated import ORIGINAL, PERTURBED

log = logging.getLogger(__name__)

_STRATEGIES = "comperdial.perturbations.strategies"
_NONE: frozenset[str] = frozenset()
_NAME = re.compile("[A-Za-z0-9_-]+")
_BASES = {"turn": TurnStrategy, "dialogue": DialogueStrategy}


def generated() -> tuple[str, ...]:
    """Return the names of the perturbations that can be generated here, in the registry's order."""
    modules = module_names(_STRATEGIES, _NONE)
    return tuple(name for name in PERTURBATIONS if name in modules)


def create(name: str) -> Strategy:
    """Return a strategy by name.

    Raises
    ------
    UnknownNameError
        When there is no such strategy; names the nearest ones.
    ConfigError
        When its module does not define one strategy of the level that its entry in the registry has.
    """
    _check_known(name)
    level = perturbation(name).level
    wanted = f"one public subclass of {_BASES[level].__name__}, for its level in the registry is {level!r}"
    try:
        kind = load_class(_STRATEGIES, name, Strategy, kind="strategy", helpers=_NONE)
    except TypeError as error:
        raise ConfigError(f"strategy {name!r}: {error}", expected=wanted) from error
    if not issubclass(kind, _BASES[level]):
        raise ConfigError(f"strategy {name!r}: {kind.__name__} is a {kind.__base__.__name__}", expected=wanted)
    return kind()


def modules(names: Sequence[str] | None = None) -> list[str]:
    """Return the modules of strategies, named from below the package, for whoever watches the code that makes pairs.

    Parameters
    ----------
    names
        Names of strategies; default: all, as for :func:`perturb`.

    Returns
    -------
    list of str
        Names with dots (``perturbations.strategies.dullness``), each once, in the order given.

    Raises
    ------
    UnknownNameError
        When there is no such strategy.
    """
    chosen = list(dict.fromkeys(names or generated()))
    for name in chosen:
        _check_known(name)
    return [f"{_STRATEGIES.partition('.')[2]}.{name}" for name in chosen]


def _check_known(name: str) -> None:
    if name not in generated():
        raise UnknownNameError("strategy", name, generated())


def generator(seed: int, strategy: str, *item: str) -> np.random.Generator:
    """Return where chance comes from for one item: another for each seed, strategy and item, the same in each run."""
    digest = hashlib.sha256("\0".join((strategy, *item)).encode()).digest()
    words = np.frombuffer(digest, dtype="<u4").tolist()
    return np.random.default_rng(np.random.SeedSequence([seed, *words]))


@dataclass(frozen=True)
class Count:
    """How a strategy fared: pairs made, items tried in vain, items that there were to draw from."""

    pairs: int
    unchanged: int
    items: int


@dataclass
class Perturbed:
    """What :func:`perturb` makes.

    Attributes
    ----------
    tables
        ``systems``, ``contexts``, ``responses``, ``personas``, and ``ratings`` without rows.
    pairs
        For each pair its ``dialogue_id`` in the tables and what it was made of: ``perturbation``, ``source_dataset``,
        ``source_dialogue_id``, ``source_context_id`` (turn level), ``source_system_id``.
    counts
        How each strategy fared.
    left_out
        Strategies that cannot run here, and why.
    """

    tables: dict[str, pd.DataFrame]
    pairs: pd.DataFrame
    counts: dict[str, Count] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


def perturb(
    folder: str | Path,
    dataset: str,
    strategies: Sequence[str] | None = None,
    sample: int = 200,
    seed: int = 0,
    *,
    good: bool = True,
) -> Perturbed:
    """Draw items of a data set, perturb them, and return both as the tables of a new data set.

    Parameters
    ----------
    folder
        Holds the data set's tables as Parquet.
    dataset
        The name of the new data set: letters, digits, "_" and "-".
    strategies
        Names of strategies; default: all that can run here (``left_out`` names the others).
    sample
        How many pairs to make for each strategy; fewer where the data set does not have so many items to change.
    seed
        A whole number of 0 or more, which decides what is drawn and how it is changed.
    good
        Draw among items rated above the median of ``overall`` only, where the data set has such ratings; random texts
        come from such responses too, and from histories and references.

    Raises
    ------
    UnknownNameError
        When there is no such strategy.
    MissingResourceError
        When a strategy that was named needs something that is not on this machine (``paraphrase``: WordNet).
    ConfigError
        When ``sample`` or ``seed`` is negative, ``sample`` is 0, the name has other characters, or a strategy is not
        what the registry says or does not return what it should; names the strategy.
    SchemaError
        When a table is empty, or no system is there whose responses can be perturbed.
    """
    if not _NAME.fullmatch(dataset):
        raise ConfigError(f"data set name {dataset!r}", expected='letters (a to z), digits, "_" and "-" only')
    if sample < 1 or seed < 0:
        raise ConfigError(f"sample {sample}, seed {seed}", expected="a sample of at least 1, a seed of at least 0")
    made = {name: create(name) for name in dict.fromkeys(strategies or generated())}
    left_out: dict[str, str] = {}
    for name, strategy in made.items():
        try:
            strategy.prepare()
        except MissingResourceError as error:
            if strategies:
                raise
            log.warning("%s is left out: %s", name, error)
            left_out[name] = str(error)
    for name in left_out:
        del made[name]
    source = Source(folder)
    pool = source.pool(good=good)
    rows = _Rows(source, dataset)
    counts = {}
    for name, strategy in made.items():
        level = perturbation(name).level
        items = _drawn(source, level, good)
        found, counts[name] = _pairs(name, strategy, items, pool, sample, seed)
        for number, (key, new) in enumerate(found, start=1):
            rows.add(name, number, items[key], new, turn=isinstance(strategy, TurnStrategy))
        log.debug("%s: %d pairs; %d items cannot be changed; %d to draw from", name, *vars(counts[name]).values())
    return Perturbed(rows.tables(), rows.pairs(), counts, left_out)


def _drawn(source: Source, level: str, good: bool) -> Mapping[tuple[str, str], Item]:
    items = source.turns() if level == "turn" else source.dialogues()
    best = source.good(level) if good else None
    return items if best is None else {key: item for key, item in items.items() if key in best}


def _pairs(
    name: str, strategy: Strategy, items: Mapping[tuple[str, str], Item], pool: Pool, sample: int, seed: int
) -> tuple[list[tuple[tuple[str, str], list[str]]], Count]:
    """Try items in random order until there are enough that can be changed; return them sorted, with the new texts."""
    keys = list(items)
    order = generator(seed, name).permutation(len(keys))
    found: list[tuple[tuple[str, str], list[str]]] = []
    tried = 0
    for place in order:
        if len(found) == sample:
            break
        tried += 1
        key = keys[place]
        new = _changed(name, strategy, items[key], pool, generator(seed, name, *key))
        if new is not None:
            found.append((key, new))
    return sorted(found), Count(len(found), tried - len(found), len(items))


def _changed(name: str, strategy: Strategy, item: Item, pool: Pool, random: np.random.Generator) -> list[str] | None:
    """Return new texts, tidied: the response, or all lines of the dialogue; None where nothing changed."""
    if isinstance(strategy, TurnStrategy):
        text = strategy.change(item.turn, pool, random)
        made, old = (None if text is None else [text]), [item.responses[0]]
    elif isinstance(strategy, DialogueStrategy):
        dialogue = item.dialogue
        made, old = strategy.change(dialogue, pool, random), [line.text for line in dialogue.lines]
    if made is None:
        return None
    _check_texts(name, made, item, len(old))
    new = [tidy(text) for text in made]
    if not all(new) or all(same(a, b) for a, b in zip(new, old, strict=True)):
        return None
    return new


def _check_texts(name: str, made: object, item: Item, wanted: int) -> None:
    """Refuse what an author's strategy must not return: no list, other things than texts, too few or too many."""
    if isinstance(made, list) and len(made) == wanted and all(isinstance(text, str) for text in made):
        return
    texts = f"{len(made)} texts" if isinstance(made, list) else type(made).__name__
    others = [type(text).__name__ for text in made if not isinstance(text, str)] if isinstance(made, list) else []
    raise ConfigError(
        f"strategy {name!r} returned {others[0] if others else texts}",
        where=f"{item.contexts[0].context_id}, {item.system_id}",
        expected="one text or None" if len(item.contexts) == 1 else f"a list of {wanted} texts (one a line) or None",
    )


class _Rows:
    """The rows of the new tables."""

    def __init__(self, source: Source, dataset: str) -> None:
        self._source, self._dataset = source, dataset
        self._contexts: list[dict[str, Any]] = []
        self._responses: list[dict[str, Any]] = []
        self._pairs: list[dict[str, Any]] = []

    def add(self, name: str, number: int, item: Item, new: list[str], *, turn: bool) -> None:
        """Add a pair."""
        dialogue_id = f"{name}-{number:04d}"
        self._pairs.append(
            {
                "dialogue_id": dialogue_id,
                "perturbation": name,
                "source_dataset": self._source.dataset,
                "source_dialogue_id": item.dialogue_id,
                "source_context_id": item.contexts[0].context_id if turn else None,
                "source_system_id": item.system_id,
            }
        )
        rows = _turn_rows(item, new[0]) if turn else _dialogue_rows(item, new)
        for place, system_id, context, history, references, response in rows:
            context_id = f"{dialogue_id}-{system_id}-{place}"
            self._contexts.append(
                {
                    "dataset": self._dataset,
                    "context_id": context_id,
                    "dialogue_id": dialogue_id,
                    "turn": place,
                    "history": [{"speaker": line.speaker, "text": line.text} for line in history],
                    "references": list(references),
                    "facts": list(context.facts),
                }
            )
            self._responses.append(
                {"dataset": self._dataset, "context_id": context_id, "system_id": system_id, "response": response}
            )

    def pairs(self) -> pd.DataFrame:
        """Return what the pairs were made of."""
        columns = ["dialogue_id", "perturbation", "source_dataset", "source_dialogue_id", "source_context_id"]
        return pd.DataFrame(self._pairs, columns=[*columns, "source_system_id"])

    def tables(self) -> dict[str, pd.DataFrame]:
        """Return the checked tables."""
        about = {ORIGINAL: f"what systems of {self._source.dataset} said", PERTURBED: "the same, made worse"}
        systems = [
            {"dataset": self._dataset, "system_id": system_id, "kind": "agent", "track": None, "description": text}
            for system_id, text in about.items()
        ]
        personas = self._source.personas().drop(columns="dataset").rename(columns={"dialogue_id": "source_dialogue_id"})
        known = self.pairs()[["dialogue_id", "source_dialogue_id"]].merge(personas, on="source_dialogue_id")
        frames = {
            "systems": pd.DataFrame(systems),
            "contexts": pd.DataFrame(self._contexts, columns=schema.table("contexts").columns),
            "responses": pd.DataFrame(self._responses, columns=schema.table("responses").columns),
            "personas": known.drop(columns="source_dialogue_id").assign(dataset=self._dataset),
        }
        return {
            **{name: schema.validate(frame, name) for name, frame in frames.items()},
            "ratings": schema.empty("ratings"),
        }


_Row = tuple[int, str, Context, Sequence[Line], Sequence[str], str]


def _turn_rows(item: Item, new: str) -> Iterator[_Row]:
    context = item.contexts[0]
    for system_id, text in ((ORIGINAL, tidy(item.responses[0])), (PERTURBED, new)):
        yield context.turn, system_id, context, context.history, context.references, text


def _dialogue_rows(item: Item, new: list[str]) -> Iterator[_Row]:
    """Yield the rows of both dialogues; references stay where the history does, and then in both.

    A perturbed dialogue has histories of its own where the original does; where the histories are a recorded
    dialogue's, they are the same for both.
    """
    dialogue = item.dialogue
    lines = [Line(line.speaker, text, line.chatbot) for line, text in zip(dialogue.lines, new, strict=True)]
    places = [place for place, line in enumerate(dialogue.lines) if line.chatbot]
    for turn, (place, context) in enumerate(zip(places, item.contexts, strict=True)):
        old_history = context.history
        new_history = old_history if dialogue.fixed else tuple(lines[:place])
        kept = [line.text.split() for line in old_history] == [line.text.split() for line in new_history]
        references = context.references if kept else ()
        yield turn, ORIGINAL, context, old_history, references, tidy(dialogue.lines[place].text)
        yield turn, PERTURBED, context, new_history, references, lines[place].text
