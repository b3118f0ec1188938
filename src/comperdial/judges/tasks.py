"""Who is asked what: judges, variants of asking, and the tasks that these make, as ``params.yaml`` says it."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from comperdial.config import parameters
from comperdial.config.checking import Lines, checked
from comperdial.core.errors import ComperdialError, ConfigError, UnknownNameError
from comperdial.core.names import PERTURBATIONS, perturbed, unperturbed
from comperdial.judges import prompting
from comperdial.judges.answers import AnswerFile
from comperdial.judges.parsing import PARSER_VERSION, Form
from comperdial.judges.probabilities import check_labels, scale_labels
from comperdial.judges.prompting import Prompt
from comperdial.judges.requests import Family, canonical
from comperdial.judges.services import Service, address, find, services

ANY_ROLE = "any"
DEFAULT = "default"
"""The entry of all data sets that have none of their own."""


@dataclass(frozen=True)
class Judge:
    """Who answers: an entry of ``judges`` in ``params.yaml``.

    Attributes
    ----------
    mode
        ``generate``: the rating is read out of the answer's text. ``probabilities``: it is the expected value over the
        probabilities of the scale's tokens (G-Eval's weighting).
    parameters
        What is sent with each request: temperature, max_tokens, ….
    items
        Of how many responses or dialogues of a data set it is asked; None: of all.
    connection
        How it is reached and how fast: nothing that an answer depends on.
    identity
        What else its answers depend on, and is not sent: the URL of a judge without an entry in ``params.yaml``.
    """

    name: str
    service: str
    model: str
    role: str
    mode: str
    parameters: Mapping[str, Any]
    explain: bool | None
    connection: Mapping[str, Any]
    items: int | None = None
    identity: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Variant:
    """One way of asking: an entry of ``judging.variants``.

    Attributes
    ----------
    prompt
        The name of a prompt of ours, or the path of a template.
    fields
        What the prompt is given; stated, so that a template that takes something else is an error.
    samples
        How many answers a score is the mean of. The first is what the variant is; each other one makes a
        score of its own from the same answers.
    retries
        How many fresh samples to draw for an answer that cannot be read.
    turns
        Of a variant at dialogue level: the variant whose scores the prompt is given, turn by turn.
    roles
        Which roles ask it; empty for all.
    labels
        Of a variant whose answer is one of some words (Yes, No): what each counts for. Its value is their mean, weighted
        by the probabilities of the labels; only a judge in mode ``probabilities`` is asked. Empty: an answer holds
        ratings.
    question
        Of a prompt with a place for one: a question's name or text.
    """

    name: str
    label: str
    prompt: str
    fields: tuple[str, ...]
    form: Form
    samples: tuple[int, ...]
    retries: int
    turns: str | None
    roles: tuple[str, ...]
    explain: bool
    labels: Mapping[str, float] = field(default_factory=dict)
    question: str | None = None

    @property
    def level(self) -> str:
        """Return ``dialogue`` for a variant that sees all responses of a dialogue, else ``turn``."""
        return "dialogue" if self.turns or "dialogue" in self.fields else "turn"

    @property
    def implicit(self) -> bool:
        """Return whether its labels are words, such as Yes and No, and not the numbers of a scale."""
        return any(label != f"{value:g}" for label, value in self.labels.items())


@dataclass(frozen=True)
class Task:
    """What makes one metric: a variant asked of a judge, and how many answers a score is the mean of."""

    judge: Judge
    variant: Variant
    samples: int

    @property
    def name(self) -> str:
        """Return the metric's name: ``cpds-d-ref_gpt-4``, and ``cpds-d-ref-once_gpt-4`` of a single answer."""
        suffix = "" if self.samples == self.wanted[0] else "-once" if self.samples == 1 else f"-of{self.samples}"
        return f"{self.variant.name}{suffix}_{self.judge.name}"

    @property
    def wanted(self) -> tuple[int, ...]:
        """Return the sample counts of this variant with this judge: one, if its answers do not vary."""
        return sample_counts(self.variant, self.judge)

    @property
    def stride(self) -> int:
        """Return how far apart the samples of one judgement lie: scores of fewer answers are made of the same ones."""
        return self.wanted[0]

    @property
    def retries(self) -> int:
        """Return how many fresh samples to draw: none of a judge that would say the same again."""
        same = self.judge.mode == "probabilities" or find(self.judge.service).deterministic
        return 0 if same else self.variant.retries

    @property
    def turns(self) -> str | None:
        """Return the metric whose turn scores the prompt is given: of the same judge."""
        return f"{self.variant.turns}_{self.judge.name}" if self.variant.turns else None

    @property
    def explain(self) -> bool:
        """Return whether a rationale is asked for: never beside a label, which is all of the answer."""
        if self.variant.labels:
            return False
        return self.variant.explain if self.judge.explain is None else self.judge.explain

    @property
    def label(self) -> str:
        """Return the row's name in tables: the variant and who judged."""
        once = " (once)" if self.samples == 1 and len(self.wanted) > 1 else ""
        return f"{self.variant.label} by {self.judge.name}{once}"


@dataclass(frozen=True)
class Judging:
    """Both sections, checked.

    ``by_dataset`` has the judges of each data set, and under :data:`DEFAULT` those of all others; ``asks`` likewise the
    variants, where it is empty all of them everywhere.
    """

    judges: Mapping[str, Judge]
    variants: Mapping[str, Variant]
    by_dataset: Mapping[str, tuple[str, ...]]
    prompts: str
    ledger: Path
    prices: Path
    budget: float
    asks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def judges_of(self, dataset: str) -> tuple[Judge, ...]:
        """Return who judges a data set; pairs nobody who is asked of some items only, since both of a pair are needed."""
        judges = [self.judges[name] for name in self.by_dataset.get(dataset, self.by_dataset[DEFAULT])]
        paired = dataset in PERTURBATIONS or unperturbed(dataset) != dataset
        return tuple(judge for judge in judges if not (paired and judge.items))

    def variants_of(self, dataset: str) -> tuple[Variant, ...]:
        """Return what is asked of a data set, in the order of ``variants``."""
        asked = self.asks.get(dataset, self.asks.get(DEFAULT, tuple(self.variants)))
        return tuple(variant for name, variant in self.variants.items() if name in asked)

    def tasks(self, dataset: str, *, dialogues: bool = True, turns: bool = True) -> dict[str, Task]:
        """Return the tasks of a data set by metric name.

        A variant that a judge cannot be asked (see :func:`unasked`) is none. Where turns are not judged, no dialogue can
        be judged after its turns either.
        """
        found: dict[str, Task] = {}
        for judge in self.judges_of(dataset):
            for variant in self.variants_of(dataset):
                level = dialogues if variant.level == "dialogue" else turns
                if level and (turns or variant.turns is None) and unasked(variant, judge) is None:
                    tasks = [Task(judge, variant, samples) for samples in sample_counts(variant, judge)]
                    found |= {task.name: task for task in tasks}
        return found

    def prompt(self, task: Task) -> Prompt:
        """Load the prompt of a task, and hold it against the fields that the variant states."""
        variant = task.variant
        prompt = prompting.load(variant.prompt, self.prompts, explain=task.explain, question=variant.question)
        if prompt.fields != set(variant.fields):
            asks = "question" in prompt.fields
            raise ConfigError(
                f"the prompt {prompt.name} ({prompt.source}) takes {', '.join(sorted(prompt.fields))}",
                where=f"params.yaml, judging.variants.{variant.name}",
                expected="`question`: one of its names, or a text"
                if asks
                else f"`fields` to say so; it says {', '.join(variant.fields)}",
            )
        return prompt


def slug(dimension: str) -> str:
    """Return a rating's name as the output of a metric: ``final score`` is ``final-score``."""
    return dimension.replace(" ", "-")


def unasked(variant: Variant, judge: Judge) -> str | None:
    """Say why a variant is not asked of a judge, in a few words; None if it is."""
    if judge.role != ANY_ROLE and variant.roles and judge.role not in variant.roles:
        return f"it is for the role {' or '.join(variant.roles)}"
    if judge.items and variant.turns:
        return f"it needs the scores of all turns, and {judge.name} has `items: {judge.items}`"
    if variant.labels and judge.mode != "probabilities":
        return f"labels need `mode: probabilities`, and {judge.name} has `mode: {judge.mode}`"
    return None


def sample_counts(variant: Variant, judge: Judge) -> tuple[int, ...]:
    """Return how many answers the scores of a variant are means of, with this judge."""
    return (1,) if judge.mode == "probabilities" or find(judge.service).deterministic else variant.samples


# What a judge's answers do not depend on: how it is reached, and how fast.
CONNECTION = (
    "base_url", "key", "free", "concurrency", "requests_per_minute", "timeout", "attempts",
)  # fmt: skip


def read_judging(
    judges: Mapping[str, Any] | None,
    judging: Mapping[str, Any] | None,
    *,
    datasets: Collection[str] | None = None,
    groups: Mapping[str, Collection[str]] | None = None,
    lines: Lines | None = None,
) -> Judging:
    """Check both sections of ``params.yaml``, as the file has them; None for no such section.

    Parameters
    ----------
    datasets
        The names of all data sets there can be; None where that is not known.
    groups
        Names that stand for several data sets in ``judging.judges`` and ``judging.asks``: see :func:`groups_of`.
    lines
        Where settings are looked up, for messages.

    Raises
    ------
    ConfigError
        Names the entry at fault.
    UnknownNameError
        When a judge, variant, service, role or data set is named that there is not.
    """
    given = {"judges": judges, "judging": judging}
    sections, groups = checked(parameters.JudgingSections, given, lines=lines), groups or {}

    def place(*keys: str) -> str:
        value: Any = given
        for key in keys:
            value = value[key]
        return lines.place(keys, value) if lines else f"params.yaml, {'.'.join(keys)}"

    told = sections.judging or parameters.Judging(judges={DEFAULT: []}, variants={})
    for section in ("judges", "asks"):
        for name in getattr(told, section):
            if datasets is not None and name not in (DEFAULT, *datasets, *groups):
                raise UnknownNameError("dataset", name, (*datasets, *groups), where=place("judging", section))
    return Judging(
        judges={name: _judge(name, entry, place) for name, entry in sections.judges.items()},
        variants={name: _variant(name, entry, place) for name, entry in told.variants.items()},
        by_dataset={DEFAULT: ()} | spread(told.judges, groups, "params.yaml, judging.judges"),
        asks=spread(told.asks, groups, "params.yaml, judging.asks"),
        prompts=told.prompts,
        ledger=Path(told.ledger),
        prices=Path(told.prices),
        budget=float(told.budget),
    )


@contextmanager
def _at(place: Callable[[], str]) -> Iterator[None]:
    """Say of a mistake where it stands."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(error.problem, where=place(), expected=error.expected) from error


def _judge(name: str, entry: parameters.Judge, place: Callable[..., str]) -> Judge:
    if entry.service not in services():
        raise UnknownNameError("service", entry.service, services(), where=place("judges", name, "service"))
    if entry.base_url is not None:
        with _at(lambda: place("judges", name)):
            address(entry.base_url)
    return Judge(
        name=name,
        service=entry.service,
        model=entry.model or "",
        role=entry.role or ANY_ROLE,
        mode=entry.mode,
        parameters=entry.parameters,
        explain=entry.explain,
        items=entry.items,
        connection={key: value for key in CONNECTION if (value := getattr(entry, key)) is not None},
    )


def _variant(name: str, entry: parameters.Variant, place: Callable[..., str]) -> Variant:
    dimensions = tuple(text.lower() for text in entry.dimensions)
    # In order of the alphabet: a mapping has none of its own, and what is asked must not depend on it.
    labels = {label.strip(): float(value) for label, value in sorted((entry.labels or {}).items())}
    if labels:
        with _at(lambda: place("judging", "variants", name, "labels")):
            check_labels(labels)
    low, high = (min(labels.values()), max(labels.values())) if labels else entry.scale or (1, 5)
    aliases = {key.lower(): tuple(names) for key, names in (entry.aliases or {}).items()}
    return Variant(
        name=name,
        label=entry.label or name,
        prompt=entry.prompt,
        fields=tuple(entry.fields),
        form=Form(dimensions, (entry.main or dimensions[-1]).lower(), float(low), float(high), aliases),
        samples=tuple(entry.samples) if isinstance(entry.samples, list) else (entry.samples,),
        retries=entry.retries,
        turns=entry.turns,
        roles=tuple(entry.roles),
        explain=entry.explain,
        labels=labels,
        question=entry.question,
    )


def groups_of(config: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return each study with its data sets in a configuration, perturbed ones included."""
    groups: dict[str, tuple[str, ...]] = {}
    for name, study in (config.get("studies") or {}).items():
        spoiled = study.get("perturbed") or {}
        generated = [perturbed(name) for name in spoiled.get("datasets") or ()]
        groups[name] = (*(study.get("datasets") or ()), *(PERTURBATIONS if spoiled else ()), *generated)
    return groups


def judged_levels(dataset: str, levels: Collection[str] | None) -> dict[str, bool]:
    """Return at which levels a data set is judged, as :meth:`Judging.tasks` takes it.

    ``levels`` are those that the catalogue says are rated; None of a data set that is not in it, which is judged at both.
    """
    if dataset in PERTURBATIONS:
        return {"turns": dataset.startswith("turn_"), "dialogues": dataset.startswith("dialogue_")}
    return {"turns": levels is None or "turn" in levels, "dialogues": levels is None or "dialogue" in levels}


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


VERSION = 1
"""Raised when a change of the code changes scores made from the same answers."""


def service_of(task: Task) -> Service:
    """Make the service that answers a task."""
    return find(task.judge.service)(task.judge)


def unpaid(judging: Judging, task: Task) -> str | None:
    """Return why a judge is not asked for lack of money; None if it is free or there is a budget."""
    if not service_of(task).paid or judging.budget:
        return None
    return f"{task.judge.model} costs money, and the budget is 0"


def to_pay(judging: Judging, task: Task) -> str:
    """Return what to do so that a judge is asked that is taken for one that costs money."""
    priced = f"a price of {task.judge.model} in {judging.prices} and a budget (`judging.budget`, --budget)"
    url = task.judge.connection.get("base_url")
    if url is None or "free" in task.judge.connection:
        return f"It needs {priced}"
    return (
        f"{address(url)} is not on this machine, and may charge: if it is free, say so (`--free` on the command line, "
        f"`free: true` in params.yaml); if not, it needs {priced}"
    )


def silent(judging: Judging, task: Task) -> str | None:
    """Return why a judge cannot be asked here, with what to do about it; None if it can."""
    if why := unpaid(judging, task):
        return f"{why}. {to_pay(judging, task)}"
    return service_of(task).unavailable()


def family_of(judging: Judging, task: Task) -> Family:
    """Return what the answers to a task depend on, beside the messages."""
    judge, service = task.judge, service_of(task)
    prompt = judging.prompt(task)
    parameters = {**judge.parameters, **service.identity()}
    if judge.mode == "probabilities":
        parameters |= service.weighting(tuple(labels(task)))
    return Family(judge.name, judge.service, judge.model, parameters, prompt.name, prompt.hash)


def labels(task: Task) -> dict[str, float]:
    """Return the labels whose probabilities are asked for: a variant's, or the whole numbers of its scale.

    Raises
    ------
    ConfigError
        When a variant asks for several ratings, or its scale is not of whole numbers: one token cannot hold that.
    """
    form = task.variant.form
    if task.variant.labels:
        return dict(task.variant.labels)
    if len(form.dimensions) > 1:
        raise ConfigError(
            f"{task.variant.name} asks for {len(form.dimensions)} ratings at once",
            where=f"params.yaml, judges.{task.judge.name}",
            expected="one rating a prompt with `mode: probabilities`",
            hint="Use `mode: generate` for such variants",
        )
    return {label: float(label) for label in scale_labels(form.low, form.high)}


def signature(judging: Judging, task: Task) -> str:
    """Return all that determines the scores, in sacrebleu's manner."""
    family, form, labelled = family_of(judging, task), task.variant.form, task.variant.labels
    prompt = judging.prompt(task)
    parts = {
        "prompt": f"{prompt.name}@{prompt.hash[:12]}",
        "from": prompt.source,
        "judge": task.judge.name,
        "service": family.service,
        "model": family.model or task.judge.service,
        **{name: _spelled(value) for name, value in sorted(family.parameters.items())},
        "rating": f"{form.main} of {len(form.dimensions)}, {form.low:g}-{form.high:g}",
        "form": _digest(canonical(dataclasses.asdict(form))),
        **({"labels": ",".join(f"{label}={value:g}" for label, value in labelled.items())} if labelled else {}),
        **({"turns": f"{task.turns}@{_digest(signature(judging, step_of(judging, task)))}"} if task.turns else {}),
        "samples": str(task.samples),
        "retries": str(task.retries),
        **({"items": str(task.judge.items)} if task.judge.items else {}),
        "parser": str(PARSER_VERSION),
        "v": str(VERSION),
    }
    return "|".join(["cpdscore", *(f"{name}:{value}".replace("|", "/") for name, value in parts.items())])


def known_signature(judging: Judging, task: Task) -> str | None:
    """Return :func:`signature`, or None if it is not known here: a local model is missing, or cannot be asked this."""
    try:
        return signature(judging, task)
    except ComperdialError:
        return None


def step_of(judging: Judging, task: Task) -> Task:
    """Return the task that judges the turns of a task at dialogue level."""
    variant = judging.variants[str(task.variant.turns)]
    return Task(task.judge, variant, sample_counts(variant, task.judge)[0])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _spelled(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def unavailable(judging: Judging, task: Task, dataset: str) -> str | None:
    """Return why a task cannot run here, in a few words; None if it can.

    A service that costs money is asked within a budget only. Of a judge that cannot be asked here, the answers that
    there are already are used.
    """
    try:
        family = family_of(judging, task)
    except ComperdialError as error:
        return str(error)
    service = service_of(task)
    if not service.paid and service.unavailable() is None:
        return None
    with AnswerFile(judging.ledger) as answers:
        if answers.has(dataset, family.id):
            return None
    # The same wherever there is no budget, whatever keys the environment has: tables show the reason.
    if service.paid and (why := unpaid(judging, task)):
        return f"not asked: {why}"
    return service.unavailable()
