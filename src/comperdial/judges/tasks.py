"""Judges, variants of prompts, and the tasks that combine them, as configured in ``params.yaml``."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from comperdial.config import parameters
from comperdial.config.checking import Lines, checked
from comperdial.core.errors import ComperdialError, ConfigError, UnknownNameError
from comperdial.core.names import PERTURBATIONS, perturbed, unperturbed
from comperdial.judges import prompting, services
from comperdial.judges.answers import AnswerFile
from comperdial.judges.parsing import PARSER_VERSION, Form
from comperdial.judges.prices import FREE, Price, find_price
from comperdial.judges.probabilities import check_labels, scale_labels
from comperdial.judges.prompting import Prompt
from comperdial.judges.requests import canonical, digest
from comperdial.judges.services import Service, address, find

DEFAULT = "default"
"""The entry of all data sets that have none of their own."""
VERSION = 1
"""Raised when a change of the code changes scores made from the same answers."""


class Judge(parameters.Judge):
    """A judge: an entry of ``judges``, or a server without one, whose URL is then part of its identity."""

    name: parameters.JudgeName
    own_server: bool = False
    price: Price | None = None  # overrides the listed price

    @property
    def varies(self) -> bool:
        """Return whether a second answer to the same prompt may differ."""
        return self.mode == "generate" and not find(self.service).deterministic


class Variant(parameters.Variant):
    """A prompt variant: an entry of ``judging.variants``."""

    name: str
    aliases: dict[str, list[str]] | None = None  # alternative names of a dimension in answers
    renamed: tuple[tuple[str, str], ...] = ()  # see `prompting.load`

    @property
    def label_values(self) -> dict[str, float]:
        """Return the value of each label, sorted alphabetically so that requests do not depend on the file's order."""
        return {label.strip(): float(value) for label, value in sorted((self.labels or {}).items())}

    @property
    def implicit(self) -> bool:
        """Return whether its labels are words, such as Yes and No, and not numbers of a scale."""
        return any(label != f"{value:g}" for label, value in self.label_values.items())

    @cached_property
    def form(self) -> Form:
        """Return the expected content of an answer."""
        names = tuple(text.lower() for text in self.dimensions)
        ends = self.label_values.values() or self.scale or (1, 5)
        aliases = {key: tuple(others) for key, others in (self.aliases or {}).items()}
        return Form(names, (self.main or names[-1]).lower(), float(min(ends)), float(max(ends)), aliases)

    def counts(self, judge: Judge) -> tuple[int, ...]:
        """Return the numbers of answers to average, largest first: smaller ones use the first answers."""
        if not judge.varies:
            return (1,)
        return tuple(self.samples) if isinstance(self.samples, list) else (self.samples,)

    def unasked(self, judge: Judge, *, any_role: bool = False) -> str | None:
        """Return a short reason why a judge is not asked about this variant; None if it is."""
        if judge.role is not None and self.roles and judge.role not in self.roles and not any_role:
            return f"it is for the role {' or '.join(self.roles)}"
        if judge.items and self.turns:
            return f"it needs the scores of all turns, and {judge.name} has `items: {judge.items}`"
        if self.labels and judge.mode != "probabilities":
            return f"labels need `mode: probabilities`, and {judge.name} has `mode: {judge.mode}`"
        return None


@dataclass(frozen=True)
class Judging:
    """Validated judges and variants; the judges of each data set, and its variants (all if empty)."""

    judges: Mapping[str, Judge]
    variants: Mapping[str, Variant]
    by_dataset: Mapping[str, tuple[str, ...]]
    ledger: Path
    prices: Path
    budget: float
    asks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def tasks(self, dataset: str, *, dialogues: bool = True, turns: bool = True) -> dict[str, Task]:
        """Return the tasks of a data set by metric name.

        A judge restricted to some items skips perturbation pairs, which need both versions. Without turn-level tasks, no
        dialogue prompt can use turn scores.
        """
        paired = dataset in PERTURBATIONS or unperturbed(dataset) != dataset
        judges = [self.judges[name] for name in self.by_dataset.get(dataset, self.by_dataset[DEFAULT])]
        asked = self.asks.get(dataset, self.asks.get(DEFAULT, tuple(self.variants)))
        variants = [
            variant
            for name, variant in self.variants.items()
            if name in asked and (dialogues if variant.level == "dialogue" else turns) and (turns or not variant.turns)
        ]
        return self._tasks(
            (judge, variant)
            for judge in judges
            for variant in variants
            if not (paired and judge.items) and variant.unasked(judge) is None
        )

    def every_task(self) -> dict[str, Task]:
        """Return the tasks of every variant and judge, for any data set."""
        return self._tasks((judge, variant) for judge in self.judges.values() for variant in self.variants.values())

    def _tasks(self, asked: Iterable[tuple[Judge, Variant]]) -> dict[str, Task]:
        tasks = (Task(self, judge, variant, count) for judge, variant in asked for count in variant.counts(judge))
        return {task.name: task for task in tasks}


@dataclass(frozen=True, eq=False)
class Task:
    """A metric: a variant, a judge, and the number of answers averaged in a score."""

    judging: Judging = field(repr=False)
    judge: Judge
    variant: Variant
    samples: int

    @property
    def wanted(self) -> tuple[int, ...]:
        """Return the sample counts of this variant and judge, largest first."""
        return self.variant.counts(self.judge)

    @property
    def name(self) -> str:
        """Return the metric's name: ``cpds-d-ref_gpt-4``, or ``cpds-d-ref-once_gpt-4`` for a single answer."""
        suffix = "" if self.samples == self.wanted[0] else "-once" if self.samples == 1 else f"-of{self.samples}"
        return f"{self.variant.name}{suffix}_{self.judge.name}"

    @property
    def label(self) -> str:
        """Return the row label in tables: the variant and the judge."""
        once = " (once)" if self.samples == 1 and len(self.wanted) > 1 else ""
        return f"{self.variant.label or self.variant.name} by {self.judge.name}{once}"

    @property
    def retries(self) -> int:
        """Return how often an unreadable answer is retried with a fresh sample."""
        return self.variant.retries if self.judge.varies else 0

    @property
    def explain(self) -> bool:
        """Return whether to ask for a rationale; never with labels, which are the whole answer."""
        return not self.variant.labels and (self.variant.explain if self.judge.explain is None else self.judge.explain)

    @property
    def turns(self) -> str | None:
        """Return the metric of the same judge whose turn scores the prompt includes."""
        return f"{self.variant.turns}_{self.judge.name}" if self.variant.turns else None

    @cached_property
    def turn_task(self) -> Task:
        """Return the turn-level task behind a dialogue-level one."""
        variant = self.judging.variants[str(self.variant.turns)]
        return Task(self.judging, self.judge, variant, variant.counts(self.judge)[0])

    @cached_property
    def prompt(self) -> Prompt:
        """Return the prompt, which must use the fields that the variant names."""
        variant = self.variant
        prompt = prompting.load(
            variant.prompt, explain=self.explain, question=variant.question, renamed=variant.renamed
        )
        if prompt.fields != set(variant.fields):
            fields = f"`fields` to say so; it says {', '.join(variant.fields)}"
            raise ConfigError(
                f"the prompt {prompt.name} ({prompt.source}) takes {', '.join(sorted(prompt.fields))}",
                where=f"params.yaml, judging.variants.{variant.name}",
                expected="`question`: one of its names, or a text" if "question" in prompt.fields else fields,
            )
        return prompt

    @cached_property
    def service(self) -> Service:
        """Return the service."""
        return find(self.judge.service)(self.judge)

    @cached_property
    def price(self) -> Price:
        """Return the token price; raises a ConfigError as :func:`comperdial.judges.prices.find_price`."""
        if not self.service.paid:
            return FREE
        return self.judge.price or find_price(self.judging.prices, self.judge.model or "")

    @cached_property
    def labels(self) -> dict[str, float]:
        """Return the labels whose probabilities are requested: the variant's, or the integers of its scale."""
        form = self.variant.form
        if self.variant.labels:
            return self.variant.label_values
        if len(form.dimensions) > 1:
            raise ConfigError(
                f"{self.variant.name} asks for {len(form.dimensions)} ratings at once",
                where=f"params.yaml, judges.{self.judge.name}",
                expected="one rating a prompt with `mode: probabilities`",
                hint="Use `mode: generate` for such variants",
            )
        return {label: float(label) for label in scale_labels(form.low, form.high)}

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """Return what answers depend on in addition to model and prompt."""
        asked = self.service.weighting([*self.labels]) if self.judge.mode == "probabilities" else {}
        return {**self.judge.parameters, **self.service.identity(), **asked}

    @cached_property
    def family(self) -> str:
        """Return a hash (16 digits) of everything that answers depend on, except messages and sample."""
        # Services treat 1.0 and 1 alike, so answers must not be paid for twice.
        plain = {
            name: int(value) if isinstance(value, float) and value.is_integer() else value
            for name, value in self.parameters.items()
        }
        content = {"judge": self.judge.name, "model": self.judge.model or "", "parameters": plain}
        return digest(canonical({**content, "prompt_hash": self.prompt.hash}))[:16]

    @cached_property
    def signature(self) -> str:
        """Return the signature of the scores, in sacrebleu's style."""
        judge, prompt, form, labels = self.judge, self.prompt, self.variant.form, self.variant.label_values
        parts: dict[str, Any] = {
            "prompt": f"{prompt.name}@{prompt.hash[:12]}",
            "from": prompt.source,
            "judge": judge.name,
            "service": judge.service,
            "model": judge.model or judge.service,
            **{
                name: ",".join(map(str, value)) if isinstance(value, list) else value
                for name, value in sorted(self.parameters.items())
            },
            "rating": f"{form.main} of {len(form.dimensions)}, {form.low:g}-{form.high:g}",
            "form": digest(canonical(dataclasses.asdict(form)))[:8],
            **({"labels": ",".join(f"{label}={value:g}" for label, value in labels.items())} if labels else {}),
            **({"turns": f"{self.turns}@{digest(self.turn_task.signature)[:8]}"} if self.turns else {}),
            "samples": self.samples,
            "retries": self.retries,
            **({"items": judge.items} if judge.items else {}),
            "parser": PARSER_VERSION,
            "v": VERSION,
        }
        return "|".join(["cpdscore", *(f"{name}:{value}".replace("|", "/") for name, value in parts.items())])

    @property
    def known_signature(self) -> str | None:
        """Return the signature; None if a local model is missing or the judge cannot be asked this."""
        try:
            return self.signature
        except ComperdialError:
            return None

    @property
    def _unpaid(self) -> str | None:
        """Return a message if a paid judge has no budget; None if it is free or has one."""
        if not self.service.paid or self.judging.budget:
            return None
        return f"{self.judge.model} costs money, and the budget is 0"

    @property
    def why_not_asked(self) -> str | None:
        """Return why the judge cannot be asked here, and how to fix it; None if it can."""
        if self._unpaid is None:
            return self.service.unavailable()
        free = "If it costs nothing, say so (`free: true` in params.yaml, --price 0 0); else it"
        needs = f"a price in {self.judging.prices} and a budget (`judging.budget`, --budget)"
        return f"{self._unpaid}. {free if self.judge.base_url else 'It'} needs {needs}"

    def unavailable(self, dataset: str) -> str | None:
        """Return a short reason why there can be no scores here; None if the judge can be asked or answers are stored."""
        try:
            family = self.family
        except ComperdialError as error:
            return str(error)
        if not self.service.paid and self.service.unavailable() is None:
            return None
        with AnswerFile(self.judging.ledger) as answers:
            if answers.has(dataset, family):
                return None
        # Without a budget, the reason must not depend on environment keys, since tables show it.
        return f"not asked: {self._unpaid}" if self._unpaid else self.service.unavailable()


def slug(dimension: str) -> str:
    """Return a rating's name as a metric output: ``final score`` becomes ``final-score``."""
    return dimension.replace(" ", "-")


def read_judging(
    judges: Mapping[str, Any] | None,
    judging: Mapping[str, Any] | None,
    *,
    datasets: Collection[str] | None = None,
    groups: Mapping[str, Collection[str]] | None = None,
    lines: Lines | None = None,
) -> Judging:
    """Validate the sections ``judges`` and ``judging`` of ``params.yaml``; None for a missing section.

    Parameters
    ----------
    datasets
        The names of all possible data sets; None if unknown.
    groups
        Names for groups of data sets in ``judging.judges`` and ``judging.asks``: see :func:`groups_of`.
    lines
        Line lookup for messages.

    Raises
    ------
    ConfigError
        If an entry is invalid; the message names it.
    """
    given = {"judges": judges, "judging": judging}
    sections, groups = checked(parameters.JudgingSections, given, lines=lines), groups or {}
    section = sections.judging or parameters.Judging(judges={DEFAULT: []}, variants={})

    def place(*keys: str) -> str:
        value: Any = given
        for key in keys:
            value = value[key]
        return lines.place(keys, value) if lines else f"params.yaml, {'.'.join(keys)}"

    for part, entries in (("judges", section.judges), ("asks", section.asks)):
        for name in entries:
            if datasets is not None and name not in (DEFAULT, *datasets, *groups):
                raise UnknownNameError("dataset", name, (*datasets, *groups), where=place("judging", part))
    for name, judge in sections.judges.items():
        if judge.service not in services.NAMES:
            where = place("judges", name, "service")
            raise UnknownNameError("service", judge.service, services.NAMES, where=where)
        if judge.base_url is not None:
            address(judge.base_url, where=place("judges", name))
    # Already validated; omitted keys must not become null.
    variants = {name: Variant.model_construct(name=name, **dict(entry)) for name, entry in section.variants.items()}
    for name, variant in variants.items():
        if variant.labels:
            check_labels(variant.label_values, where=place("judging", "variants", name, "labels"))
    return Judging(
        judges={name: Judge.model_construct(name=name, **dict(entry)) for name, entry in sections.judges.items()},
        variants=variants,
        by_dataset={DEFAULT: ()} | _by_dataset(section.judges, groups),
        asks=_by_dataset(section.asks, groups),
        ledger=Path(section.ledger),
        prices=Path(section.prices),
        budget=float(section.budget),
    )


def groups_of(config: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return each study with its data sets in a configuration, including perturbed ones."""
    groups: dict[str, tuple[str, ...]] = {}
    for name, study in (config.get("studies") or {}).items():
        changed = study.get("perturbed") or {}
        generated = [perturbed(name) for name in changed.get("datasets") or ()]
        groups[name] = (*(study.get("datasets") or ()), *(PERTURBATIONS if changed else ()), *generated)
    return groups


def judged_levels(dataset: str, levels: Collection[str] | None) -> dict[str, bool]:
    """Return the levels to judge, as arguments of :meth:`Judging.tasks`.

    ``levels`` are the rated levels of the catalogue; None for other data sets, which are judged at both levels.
    """
    if dataset in PERTURBATIONS:
        return {"turns": dataset.startswith("turn_"), "dialogues": dataset.startswith("dialogue_")}
    return {"turns": levels is None or "turn" in levels, "dialogues": levels is None or "dialogue" in levels}


def _by_dataset(
    entries: Mapping[str, Collection[str]], groups: Mapping[str, Collection[str]]
) -> dict[str, tuple[str, ...]]:
    """Expand entries by data set, by group and for all others to lists by data set; a data set's own comes first."""
    grouped: dict[str, Collection[str]] = {}
    for group in (name for name in entries if name != DEFAULT):
        for dataset in (name for name in groups.get(group, ()) if name not in entries):
            if [*grouped.setdefault(dataset, entries[group])] != [*entries[group]]:
                expected = f"an entry `{dataset}` that settles it"
                raise ConfigError(
                    f"{dataset} is in two groups whose entries differ", where="judging", expected=expected
                )
    own = {name: names for name, names in entries.items() if name == DEFAULT or name not in groups}
    return {name: tuple(names) for name, names in {**grouped, **own}.items()}
