"""Base classes of metrics that need a model: options, availability, signature, and the loaded model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeVar

from comperdial import models
from comperdial.metrics.base import Metric, check_choice
from comperdial.models import runtime

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class NeedsModel(Metric):
    """A metric that needs a model, which it runs itself or whose vectors it uses."""

    libraries: ClassVar[tuple[str, ...]] = ("torch", "transformers")

    model: str
    """A name that ``comperdial models`` lists, or a folder with config.json, a tokenizer and safetensors."""
    dtype: Literal["fp32", "bf16"] = "fp32"

    def __post_init__(self) -> None:
        check_choice(self, "dtype", runtime.DTYPES)

    @property
    def runs_model(self) -> bool:
        """Return True."""
        return True

    def unavailable(self) -> str | None:
        """Return why the package or model is unavailable, or None."""
        return runtime.missing_packages() or models.missing(self.model)

    def signed(self, option: str) -> object:
        """Return the model's name with its checksum."""
        return models.label(self.model) if option == "model" else super().signed(option)

    def _progress(self, items: Iterable[T], total: int) -> Iterable[T]:
        """Show a progress bar on a terminal if it takes longer than two seconds."""
        from tqdm import tqdm

        return tqdm(items, self.kind, total=total, delay=2, disable=None)


@dataclass(frozen=True, kw_only=True)
class ModelMetric(NeedsModel):
    """A metric that runs a transformers model; subclasses set the default of ``model``.

    The device and batch size are configured per machine (``COMPERDIAL_DEVICE``, ``COMPERDIAL_BATCH_TOKENS``): they
    change scores only by rounding and are not part of the signature.
    """

    architecture: ClassVar[str] = "AutoModel"
    """The class of transformers that the model is loaded as."""
    cpu_tokens: ClassVar[int] = 512
    """The most tokens of a batch on a cpu: few for encoders, whose cache then holds it."""

    @cached_property
    def _network(self) -> Any:  # noqa: ANN401
        return runtime.load(models.verified(self.model), self.architecture, self.dtype)

    @cached_property
    def _tokenizer(self) -> Any:  # noqa: ANN401
        return runtime.load_tokenizer(models.find(self.model))

    def _batches(self, lengths: Sequence[int]) -> Iterable[list[int]]:
        """Group items by length, with a progress bar."""
        groups = list(runtime.batches(lengths, runtime.batch_tokens(self.cpu_tokens)))
        return self._progress(groups, len(groups))
