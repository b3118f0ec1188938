"""Names in ``params.yaml`` that stand for several data sets: who judges a study, and what is asked of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from comperdial.core.errors import ConfigError
from comperdial.schema.evaluated import DIMENSIONS

if TYPE_CHECKING:
    from comperdial.judging.base import Task

DEFAULT = "default"
"""The entry of all data sets that have none of their own."""
PERTURBATIONS = ("turn_perturbations", "dialogue_perturbations")
"""The recorded perturbations, which a study with `perturbed` judges too."""
PERTURBED = "_perturbed"
"""How the name of a data set's generated perturbations ends."""


def perturbed(dataset: str) -> str:
    """Return what the generated perturbations of a data set are called."""
    return dataset + PERTURBED


def unperturbed(dataset: str) -> str:
    """Return the data set that generated perturbations are of; of any other data set, its own name."""
    return dataset.removesuffix(PERTURBED)


def groups_of(config: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return each study with its data sets in a configuration, perturbed ones included."""
    groups: dict[str, tuple[str, ...]] = {}
    for name, study in (config.get("studies") or {}).items():
        spoiled = study.get("perturbed") or {}
        generated = [perturbed(name) for name in spoiled.get("datasets") or ()]
        groups[name] = (*(study.get("datasets") or ()), *(PERTURBATIONS if spoiled else ()), *generated)
    return groups


def judged_levels(dataset: str, levels: Collection[str] | None) -> dict[str, bool]:
    """Return at which levels a data set is judged, as :meth:`~comperdial.judging.base.Judging.tasks` takes it.

    Parameters
    ----------
    dataset
        Its name.
    levels
        What the catalogue says is rated; None of a data set that is not in it, which is judged at both levels.
    """
    if dataset in PERTURBATIONS:
        return {"turns": dataset.startswith("turn_"), "dialogues": dataset.startswith("dialogue_")}
    return {"turns": levels is None or "turn" in levels, "dialogues": levels is None or "dialogue" in levels}


def as_one(tasks: Iterable[Task]) -> dict[str, list[str]]:
    """Return judges that are asked a question a dimension, whose metrics are one judge together.

    Parameters
    ----------
    tasks
        Of any data sets; those with labels count. Of a level's dimensions ``overall`` may be missing; a level where
        another is missing is left out.

    Returns
    -------
    dict
        ``implicit_<judge>``: METRIC:OUTPUT of each dimension, level by level.

    Raises
    ------
    ConfigError
        When two variants ask a judge for one dimension.
    """
    asked: dict[str, dict[tuple[str, str], Task]] = {}
    for task in tasks:
        if task.variant.labels:
            of = asked.setdefault(f"implicit_{task.judge.name}", {})
            first = of.setdefault((task.variant.level, task.variant.form.main), task)
            if first.name != task.name:
                raise ConfigError(
                    f"{first.variant.name} and {task.variant.name} ask {task.judge.name} for {task.variant.form.main}",
                    where="params.yaml, judging.asks",
                    expected="one question a dimension",
                )
    found: dict[str, list[str]] = {}
    for name, of in asked.items():
        for level, rated in DIMENSIONS.items():
            there = [dimension for dimension in rated if (level, dimension) in of]
            if {*there, "overall"} >= set(rated) and set(there) - {"overall"}:
                found.setdefault(name, []).extend(f"{of[level, one].name}:{one}" for one in there)
    return found


def spread(
    entries: Mapping[str, Collection[str]], groups: Mapping[str, Collection[str]], where: str
) -> dict[str, tuple[str, ...]]:
    """Return lists by data set, of entries by data set, by group, and for all others.

    A data set's own entry goes before that of its group.

    Raises
    ------
    ConfigError
        When a data set has no entry of its own, and is in two groups whose entries differ.
    """
    found: dict[str, tuple[str, ...]] = {}
    by: dict[str, str] = {}
    for group in (name for name in entries if name in groups and name != DEFAULT):
        for dataset in groups[group]:
            if dataset in entries:
                continue
            if dataset in by and found[dataset] != tuple(entries[group]):
                raise ConfigError(
                    f"{dataset} is of {by[dataset]} and of {group}, whose entries differ",
                    where=where,
                    expected=f"an entry `{dataset}` that settles it",
                )
            found[dataset], by[dataset] = tuple(entries[group]), group
    return found | {name: tuple(names) for name, names in entries.items() if name not in groups}
