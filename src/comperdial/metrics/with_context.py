"""Run any metric of a response and a reference with the context in place of the reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import ClassVar, Literal, Self

from comperdial.core.errors import ConfigError
from comperdial.core.scripts import Writing
from comperdial.metrics import create
from comperdial.metrics._history import utterances
from comperdial.metrics._overlap import ReferenceMetric
from comperdial.metrics.base import Batch, Bounds, Metric, Scores, check_choice
from comperdial.metrics.options import Options


@dataclass(frozen=True, kw_only=True)
class WithContext(Metric):
    """Another metric with the context in place of the reference: a baseline without references.

    Higher means more repetition: a copy of the last utterance has the highest score. ``metric`` is a kind that needs only
    references, ``options`` are its options. The context is the last utterance, or with ``of: history`` all utterances
    before the response, joined by spaces. Outputs, bounds and cuts are those of the inner metric, whose signature is part
    of the signature. Models cut a history that is too long at its end, so prefer ``of: last`` with models.
    """

    kind: ClassVar[str] = "with_context"
    needs: ClassVar[tuple[str, ...]] = ("histories",)

    metric: str = "f1"
    """The inner metric's kind: one that needs references and nothing else."""
    options: Options = ()
    """The inner metric's options, as a mapping in ``params.yaml``."""
    of: Literal["last", "history"] = "last"
    """What stands in the reference's place: the last utterance, or all of them."""

    def __post_init__(self) -> None:
        check_choice(self, "of", ("last", "history"))
        if self.inner.needs != ("references",):
            raise ConfigError(
                f"option 'metric' of metric {self.kind!r} is {self.metric!r}",
                expected="a metric that compares a response with references, such as 'f1'",
            )

    @cached_property
    def inner(self) -> Metric:
        """Return the inner metric."""
        return create(self.metric, **dict(self.options))

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the inner metric's outputs."""
        return self.inner.outputs

    @property
    def bounds(self) -> Mapping[str, Bounds | None]:
        """Return the inner metric's bounds."""
        return self.inner.bounds

    @property
    def runs_model(self) -> bool:
        """Return whether the inner metric runs a model."""
        return self.inner.runs_model

    @property
    def keeps_vectors(self) -> bool:
        """Return whether the inner metric encodes texts."""
        return self.inner.keeps_vectors

    @property
    def modules(self) -> tuple[str, ...]:
        """Return this module's name and the inner metric's."""
        return (*super().modules, *self.inner.modules)

    def suited_to(self, writing: Writing) -> Self:
        """Return the metric with the inner one adapted to this writing system."""
        inner = getattr(self.inner, "suited_to", lambda _: self.inner)(writing)
        changed = {
            f.name: value for f in fields(inner) if (value := getattr(inner, f.name)) != getattr(self.inner, f.name)
        }
        return replace(self, options=tuple(sorted({**dict(self.options), **changed}.items()))) if changed else self

    def unavailable(self) -> str | None:
        """Return why the inner metric cannot run, or None."""
        return self.inner.unavailable()

    def signature(self) -> str:
        """Return what is compared, and the inner metric's signature."""
        return f"{self.kind}|of:{self.of}|metric:({self.inner.signature()})|v:{self.version}"

    def compute(self, batch: Batch) -> Scores:
        """Score with the context as the only reference."""
        scope = "last" if self.of == "last" else "all"
        contexts = [[" ".join(utterances(history, scope))] for history in batch.histories]
        batch = replace(batch, references=contexts)
        # Nothing can be repeated from a context without words, so a ReferenceMetric must not skip it as empty.
        return self.inner.compare_all(batch) if isinstance(self.inner, ReferenceMetric) else self.inner.compute(batch)
