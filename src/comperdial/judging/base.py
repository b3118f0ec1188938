"""Judges, variants and tasks: what ``params.yaml`` says of judging, as objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from comperdial.core.errors import ConfigError
from comperdial.judges import prompting
from comperdial.judges.base import Form
from comperdial.judges.prompting import Prompt
from comperdial.judges.services import find
from comperdial.judging.groups import DEFAULT

ANY_ROLE = "any"


@dataclass(frozen=True)
class Judge:
    """One judge.

    Attributes
    ----------
    name
        Its name in ``params.yaml``.
    service
        The module of :mod:`comperdial.judges.services` that answers.
    model
        The model that is asked for; empty where a service has one only.
    role
        Which of the study's roles it plays (the paper's two models are ``small`` and ``large``); ``any`` plays each.
    mode
        ``generate``: the rating is read out of the answer's text. ``probabilities``: it is the expected value over the
        probabilities of the scale's tokens (G-Eval's weighting).
    parameters
        What is sent with each request: temperature, max_tokens, ….
    explain
        Whether it is asked for rationales, whatever a variant says; None leaves it to the variant.
    connection
        How it is reached and how fast: nothing that an answer depends on.
    identity
        What else its answers depend on, and is not sent: the URL of a judge without an entry in ``params.yaml``, whose
        name is no promise that it is the same one.
    """

    name: str
    service: str
    model: str
    role: str
    mode: str
    parameters: Mapping[str, Any]
    explain: bool | None
    connection: Mapping[str, Any]
    identity: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Variant:
    """One way of asking: a prompt, what its answer must hold, and how often to ask.

    Attributes
    ----------
    name, label
        In ``params.yaml``, and in tables.
    prompt
        The name of a prompt of ours, or the path of a template.
    fields
        What the prompt is given; stated, so that a template that asks for something else is an error.
    form
        The ratings an answer must hold.
    samples
        How many answers a score is the mean of. The first is what the variant stands for; each other one makes a
        score of its own from the same answers.
    retries
        How many fresh samples to draw for an answer that cannot be parsed.
    turns
        Of a variant at dialogue level: the variant whose scores the prompt is given, turn by turn.
    roles
        Which roles ask it; empty for all.
    explain
        Whether rationales are asked for.
    labels
        Of a variant whose answer is one of some words (Yes, No): what each is worth. Its value is their mean, weighted
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
        """Return who judges a data set."""
        return tuple(self.judges[name] for name in self.by_dataset.get(dataset, self.by_dataset[DEFAULT]))

    def variants_of(self, dataset: str) -> tuple[Variant, ...]:
        """Return what is asked of a data set, in the order of ``variants``."""
        asked = self.asks.get(dataset, self.asks.get(DEFAULT, tuple(self.variants)))
        return tuple(variant for name, variant in self.variants.items() if name in asked)

    def tasks(self, dataset: str, *, dialogues: bool = True, turns: bool = True) -> dict[str, Task]:
        """Return the tasks of a data set by metric name.

        A variant that a judge cannot be asked (see :func:`unasked`) is none.

        Parameters
        ----------
        dataset
            Its name.
        dialogues
            Whether its dialogues are judged.
        turns
            Whether its turns are; without, no dialogue can be judged after its turns either.
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
        if prompt.fields != set(task.variant.fields):
            raise ConfigError(
                f"the prompt {prompt.name} ({prompt.source}) takes {', '.join(sorted(prompt.fields))}",
                where=f"params.yaml, judging.variants.{variant.name}",
                expected=_expected(prompt, variant),
            )
        return prompt


def _expected(prompt: Prompt, variant: Variant) -> str:
    if "question" in prompt.fields:
        return "`question`: one of its names, or a text"
    return f"`fields` to say so; it says {', '.join(variant.fields)}"


def unasked(variant: Variant, judge: Judge) -> str | None:
    """Say why a variant is not asked of a judge, in a few words; None if it is."""
    if judge.role != ANY_ROLE and variant.roles and judge.role not in variant.roles:
        return f"it is for the role {' or '.join(variant.roles)}"
    if variant.labels and judge.mode != "probabilities":
        return f"labels need `mode: probabilities`, and {judge.name} has `mode: {judge.mode}`"
    return None


def sample_counts(variant: Variant, judge: Judge) -> tuple[int, ...]:
    """Return how many answers the scores of a variant are means of, with this judge."""
    return (1,) if judge.mode == "probabilities" or find(judge.service).deterministic else variant.samples
