"""Base classes of metrics. To add a metric, add a module with one subclass to this package (docs/adding-a-metric.md)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import compress
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from comperdial.core import versions
from comperdial.core.errors import ConfigError, ItemError, SchemaError
from comperdial.metrics.text import clean

Utterance = Mapping[str, str]
Bounds = tuple[float, float]

# Number of prepared texts, and of scored responses with their references, that an overlap metric caches.
_TEXTS = 1024
_PAIRS = 16_384


class Scores(dict[str, npt.NDArray[np.float64]]):
    """The result of a metric: for each output, one float64 value per response, NaN if it could not be scored.

    ``cut`` counts, for each response, the tokens removed because its input did not fit the model; None means that
    nothing was cut. It is written to the tables with the scores, so that no truncation goes unreported.
    """

    def __init__(self, values: Mapping[str, npt.NDArray[np.float64]], cut: npt.NDArray[np.int32] | None = None) -> None:
        super().__init__(values)
        self.cut = cut


@dataclass(frozen=True)
class Batch:
    """Responses to score, with their contexts; all lists have one entry per response.

    Attributes
    ----------
    responses
        The texts to score.
    references
        For each response, the texts to compare it with; may be empty.
    histories
        For each response, the utterances before it, oldest first, as ``{"speaker": …, "text": …}``.
    facts
        For each response, the facts or persona sentences that it can use.
    """

    responses: Sequence[str]
    references: Sequence[Sequence[str]]
    histories: Sequence[Sequence[Utterance]]
    facts: Sequence[Sequence[str]]

    def __len__(self) -> int:
        return len(self.responses)

    @classmethod
    def checked(
        cls,
        responses: Sequence[str],
        references: Sequence[str | Sequence[str]] | None = None,
        histories: Sequence[Sequence[Utterance | str]] | None = None,
        facts: Sequence[Sequence[str]] | None = None,
    ) -> Batch:
        """Return a batch from the arguments of :meth:`Metric.score`; raises the same SchemaError."""
        if isinstance(responses, str) or isinstance(references, str):
            raise SchemaError("a single text", expected="a list of responses and a list of as many references")
        several = None if references is None else [[r] if isinstance(r, str) else r for r in references]
        count = len(responses)
        batch = cls(
            responses,
            _column("references", several, count),
            [_utterances(history) for history in _column("histories", histories, count)],
            _column("facts", facts, count),
        )
        for index, response in enumerate(responses):
            if not _is_filled(response):
                raise ItemError(index, f"the response is {response!r}", expected="a text that is not empty")
        return batch

    def has(self, need: str) -> npt.NDArray[np.bool_]:
        """Return for each response whether it has any ``references``, ``histories`` or ``facts``."""
        return np.array([len(entry) > 0 for entry in getattr(self, need)], dtype=np.bool_)

    def only(self, chosen: npt.NDArray[np.bool_]) -> Batch:
        """Return the batch with the chosen responses only."""
        return Batch(
            list(compress(self.responses, chosen)),
            list(compress(self.references, chosen)),
            list(compress(self.histories, chosen)),
            list(compress(self.facts, chosen)),
        )


@dataclass(frozen=True, kw_only=True)
class Metric(ABC):
    """A metric of responses; its options are the fields of the subclass, a frozen dataclass.

    Subclasses set the class variables and implement :meth:`compute`. Scores are float64; NaN means that the response
    could not be scored. Such scores are left out of the tables and counted as missing coverage, never imputed.
    """

    kind: ClassVar[str]
    """The metric's name in ``params.yaml``: the name of its module."""
    version: ClassVar[int] = 1
    """Raised when a change of the code changes scores."""
    libraries: ClassVar[tuple[str, ...]] = ()
    """Packages whose version can change the scores."""
    needs: ClassVar[tuple[str, ...]] = ("references",)
    """The fields of a :class:`Batch`, beside the responses, that must not be empty."""
    limits: ClassVar[Bounds | None] = None
    """The least and the greatest value of every output; None where there are none, or :attr:`bounds` knows better."""

    @property
    @abstractmethod
    def outputs(self) -> tuple[str, ...]:
        """Return the names of the outputs, the main one first."""

    def needed_by(self, output: str) -> tuple[str, ...]:
        """Return the fields of a :class:`Batch` that a response must have to get this output."""
        return self.needs

    @property
    def bounds(self) -> Mapping[str, Bounds | None]:
        """Return the minimum and maximum of each output, or None if it is unbounded."""
        return dict.fromkeys(self.outputs, self.limits)

    @property
    def runs_model(self) -> bool:
        """Return whether the metric runs a model, and so should get all cores of a machine."""
        return False

    @property
    def keeps_vectors(self) -> bool:
        """Return whether the metric encodes texts, so that other metrics can reuse the vectors."""
        return False

    @property
    def modules(self) -> tuple[str, ...]:
        """Return the modules of this package that the metric runs, besides those that they import."""
        return (self.kind,)

    @abstractmethod
    def compute(self, batch: Batch) -> Scores:
        """Score a checked batch: for each output a float64 array of ``len(batch)`` values, and the cut tokens."""

    def unavailable(self) -> str | None:
        """Return why the metric cannot run on this machine, or None if it can."""
        return None

    def score(
        self,
        responses: Sequence[str],
        references: Sequence[str | Sequence[str]] | None = None,
        histories: Sequence[Sequence[Utterance | str]] | None = None,
        facts: Sequence[Sequence[str]] | None = None,
    ) -> Scores:
        """Score responses.

        Parameters
        ----------
        responses
            n texts to score.
        references
            n references, each a text or several texts.
        histories
            n lists of utterances, oldest first: ``{"speaker": …, "text": …}``, or texts of two alternating speakers.
        facts
            n lists of texts.

        Returns
        -------
        Scores
            For each of :attr:`outputs`, n float64 values; NaN where a response could not be scored.

        Raises
        ------
        SchemaError
            If the lists differ in length, a response is empty or something that the metric needs is missing.
        MissingResourceError
            If the metric cannot run on this machine.
        """
        batch = Batch.checked(responses, references, histories, facts)
        given = {"references": references, "histories": histories, "facts": facts}
        for need in self.needs:
            if given[need] is None and len(batch):
                raise SchemaError(f"metric {self.kind!r} needs {need}", expected=f"{need}, one entry a response")
            lacking = np.flatnonzero(~batch.has(need))
            if len(lacking):
                problem = f"metric {self.kind!r} needs {need}"
                raise ItemError(int(lacking[0]), problem, expected=f"{need} that are not empty")
        return self.compute(batch)

    def signed(self, option: str) -> object:
        """Return an option's value as it appears in the signature."""
        return getattr(self, option)

    def signature(self) -> str:
        """Return all that determines a score in sacrebleu's style, such as ``bleu|text:raw|…|nltk:3.10.4|v:1``."""
        options = [f"{field.name}:{_short(self.signed(field.name))}" for field in fields(self)]
        libraries = [f"{name}:{versions.installed(name)}" for name in self.libraries]
        return "|".join([self.kind, *options, *libraries, f"v:{self.version}"])


def _column(name: str, values: Sequence[Sequence[Any]] | None, count: int) -> Sequence[Sequence[Any]]:
    """Check one list of a batch; None means that it was not given."""
    if values is None:
        return [()] * count
    if len(values) != count:
        raise SchemaError(f"{len(values)} {name} for {count} responses", expected="one entry a response")
    for index, value in enumerate(values):
        if not isinstance(value, list | tuple):
            raise ItemError(index, f"{name} is {value!r}", expected="a list")
        for entry in value:
            text = entry.get("text") if isinstance(entry, Mapping) else entry
            if not _is_filled(text):
                raise ItemError(index, f"one of its {name} is {entry!r}", expected="a text that is not empty")
    return values


def _utterances(history: Sequence[Utterance | str]) -> list[Utterance]:
    """Add speakers to plain texts: A and B alternate, and A speaks last, before the response."""
    last = len(history) - 1
    return [
        {"speaker": "AB"[(last - place) % 2], "text": said} if isinstance(said, str) else said
        for place, said in enumerate(history)
    ]


def _is_filled(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _short(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        # All digits: different values must not share a signature.
        return repr(value).removesuffix(".0")
    return str(value)


@dataclass(frozen=True, kw_only=True)
class OverlapMetric(Metric):
    """A metric that compares each response with its references, on normalised or raw text.

    With several references, the best main output counts, unless a subclass overrides :meth:`best`.
    """

    text: Literal["normalised", "raw"] = "normalised"
    """``normalised`` as in ComperDial's Table 14, or ``raw``: the text as it is."""

    def __post_init__(self) -> None:
        check_choice(self, "text", ("normalised", "raw"))

    def prepare(self, text: str) -> Any:  # noqa: ANN401
        """Return what :meth:`pair` needs of a text, such as its tokens; by default the text itself.

        It is called once per text, not once per pair, so do slow work that does not depend on the pair here.
        """
        return text

    @abstractmethod
    def pair(self, hypothesis: Any, reference: Any) -> Sequence[float]:  # noqa: ANN401
        """Return the outputs for one response and one reference, both as :meth:`prepare` returns them."""

    def best(self, hypothesis: Any, references: Sequence[Any]) -> Sequence[float]:  # noqa: ANN401
        """Return the outputs for one response: by default those for its best reference."""
        return max((self.pair(hypothesis, reference) for reference in references), key=lambda values: values[0])

    def compute(self, batch: Batch) -> Scores:
        """Score each response, with a progress bar on a terminal if it takes longer than two seconds."""
        from tqdm import tqdm

        # Systems often repeat responses. The cache is bounded, so that memory does not grow with the batch.
        @lru_cache(maxsize=_TEXTS)
        def read(text: str) -> Any:  # noqa: ANN401
            return self.prepare(clean(text, self.text))

        @lru_cache(maxsize=_PAIRS)
        def row(response: str, references: tuple[str, ...]) -> Sequence[float]:
            return self.best(read(response), [read(reference) for reference in references])

        pairs = zip(batch.responses, batch.references, strict=True)
        rows = [
            row(response, tuple(references))
            for response, references in tqdm(pairs, self.kind, total=len(batch), delay=2, disable=None)
        ]
        values = np.array(rows, dtype=np.float64).reshape(len(rows), len(self.outputs))
        return Scores({name: values[:, column] for column, name in enumerate(self.outputs)})


def check_choice(metric: Metric, option: str, choices: tuple[object, ...]) -> None:
    """Raise :class:`ConfigError` if the value of an option is not one of its choices."""
    value = getattr(metric, option)
    if value not in choices:
        raise ConfigError(
            f"option {option!r} of metric {metric.kind!r} is {value!r}",
            expected="one of " + ", ".join(repr(choice) for choice in choices),
        )


def check_number(metric: Metric, option: str, low: float, high: float, *, above: bool = False) -> None:
    """Raise :class:`ConfigError` if an option is outside ``low`` (exclusive if ``above``) to ``high``."""
    value = getattr(metric, option)
    if not (low < value <= high if above else low <= value <= high):
        raise ConfigError(
            f"option {option!r} of metric {metric.kind!r} is {value!r}",
            expected=f"a number {'above' if above else 'from'} {low:g} {'and up ' if above else ''}to {high:g}",
        )
