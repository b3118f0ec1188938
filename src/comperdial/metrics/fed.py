"""FED: the likelihood, under DialoGPT, that the next speaker complains about a response or praises it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from comperdial.config import load_yaml
from comperdial.core.errors import ConfigError
from comperdial.core.names import RATED_LEVELS
from comperdial.metrics._history import utterances
from comperdial.metrics._likelihood import encode, most_tokens, special_token, tails, unique
from comperdial.metrics._model import ModelMetric
from comperdial.metrics.base import Batch, Scores, check_choice, check_number
from comperdial.models.trees import CPU_TOKENS

_FOLLOWUPS = Path(__file__).with_name("fed_followups.yaml")
# Number of dialogues whose follow-ups are in memory at once.
_STARTS = 256
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


class FollowUps(NamedTuple):
    """Follow-up utterances and their weights: quality scores are ``weights @ L``."""

    names: tuple[str, ...]
    texts: tuple[str, ...]
    weights: npt.NDArray[np.float64]
    """Qualities x texts: the share of a text in the mean over the negative ones, less that over the positive ones."""
    label: str


@dataclass(frozen=True, kw_only=True)
class Fed(ModelMetric):
    """FED of Mehri and Eskenazi 2020a: 18 qualities of a turn or dialogue, and their mean; higher is better.

    L is the mean negative log-likelihood, in nats per token, of the whole string
    ``<|endoftext|> u1 <|endoftext|> … <|endoftext|> response <|endoftext|> follow-up``. A quality's score is the mean of L
    over its negative follow-ups minus the mean over its positive ones. An empty set counts as 0, so a quality without
    positive follow-ups always scores above 0: only compare scores between responses. ``fed`` is the mean of all
    qualities, as in the code of Yeh et al. 2021. ComperDial reports ``engaging`` and ``relevant``, which is inferred from
    the names FEDEn and FEDRel. The follow-ups are those released by the authors.

    ``spaces: kept`` keeps the spaces around the marker as tokens, as transformers 5 does; ``stripped`` removes them, as
    older versions did and as in DialoGPT's training. ``scored: follow-up`` averages over the follow-up alone, given
    everything before it, and works with any causal model. With ``scored: whole``, keep ``dtype: fp32``. A dialogue over
    ``max_length`` tokens is cut from the left, at token boundaries, but keeps the first marker.
    """

    kind: ClassVar[str] = "fed"
    needs: ClassVar[tuple[str, ...]] = ("histories",)
    architecture: ClassVar[str] = "AutoModelForCausalLM"
    cpu_tokens: ClassVar[int] = CPU_TOKENS

    model: str = "DialoGPT-large"
    followups: str = ""
    """Another file in the form of ``fed_followups.yaml``."""
    spaces: Literal["kept", "stripped"] = "kept"
    """The spaces around <|endoftext|>: ``kept`` as the string has them, or ``stripped``, as early
    tokenizers of transformers did unasked, and as DialoGPT was trained."""
    scored: Literal["whole", "follow-up"] = "whole"
    """Whose likelihood L is: the ``whole`` string's, as in the paper's code, or the ``follow-up``'s alone, given all before."""
    max_length: int = 1024
    """The most tokens of a string. What is over is cut from the left of the dialogue, but for the first marker."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self, "spaces", ("kept", "stripped"))
        check_choice(self, "scored", ("whole", "follow-up"))
        check_number(self, "max_length", 3, 1_000_000)
        # Read the file now, so that errors in it surface before a model is loaded.
        _ = self._sets

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the names of the mean, the turn-level qualities and the dialogue-level qualities."""
        return ("fed", *self._sets.names)

    def signed(self, option: str) -> object:
        """Return the file name and checksum of the follow-ups."""
        return self._sets.label if option == "followups" else super().signed(option)

    @cached_property
    def _sets(self) -> FollowUps:
        return read_followups(Path(self.followups) if self.followups else _FOLLOWUPS)

    def compute(self, batch: Batch) -> Scores:
        """Score each distinct dialogue once, with all follow-ups together."""
        dialogues = [
            [*utterances(history, "all"), response.strip()]
            for history, response in zip(batch.histories, batch.responses, strict=True)
        ]
        around = ("{}", "{}") if self.spaces == "stripped" else (" {} ", " {}")
        segments = encode(self._tokenizer, (around[0].format(text) for texts in dialogues for text in texts))
        ends = [*encode(self._tokenizer, (around[1].format(text) for text in self._sets.texts)).values()]
        marker = special_token(self._tokenizer, "eos")
        longest = max(map(len, ends))
        check_number(self, "max_length", longest + 2, most_tokens(self._network))

        starts = []
        cut = np.zeros(len(batch), dtype=np.int32)
        for index, texts in enumerate(dialogues):
            tokens = [token for text in texts for token in (*segments[around[0].format(text)], marker)]
            cut[index] = over = max(0, 1 + len(tokens) + longest - self.max_length)
            starts.append((marker, *tokens[over:]))
        firsts, inverse = unique(starts)
        losses = self._losses([starts[first] for first in firsts], ends)
        values = losses[inverse] @ self._sets.weights.T
        columns = {name: values[:, place] for place, name in enumerate(self._sets.names)}
        return Scores({"fed": values.mean(axis=1), **columns}, cut=cut)

    def _losses(self, starts: Sequence[Sequence[int]], ends: Sequence[Sequence[int]]) -> npt.NDArray[np.float64]:
        """Return L of each start with each end, as an array of shape starts x ends."""
        losses = np.empty((len(starts), len(ends)))
        # Sort starts so that shared prefixes meet in one chunk: each end is a separate input until the tree is built.
        order = sorted(range(len(starts)), key=lambda start: tuple(starts[start]))
        for some in (order[first : first + _STARTS] for first in range(0, len(order), _STARTS)):
            inputs = [
                ((*starts[start], *end), len(end) + (len(starts[start]) - 1 if self.scored == "whole" else 0))
                for start in some
                for end in ends
            ]
            values = tails(self._network, inputs, self._batches)
            losses[some] = -np.array([found.mean() for found in values]).reshape(len(some), len(ends))
        return losses


def read_followups(path: Path) -> FollowUps:
    """Read sets of follow-up utterances.

    Raises
    ------
    FileError, ConfigError
        If the file cannot be read or has the wrong format; the message names the quality.
    """
    content = load_yaml(path)
    qualities: dict[str, dict[str, list[str]]] = {}
    for level in RATED_LEVELS:
        for name, sets in _mapping(content.get(level) or {}, f"{path}: {level}").items():
            where = f"{path}: {level}.{name}"
            if not (isinstance(name, str) and _NAME.fullmatch(name)) or name == "fed" or name in qualities:
                raise ConfigError("not a name for a quality", where=where, expected="a new one, such as error-recovery")
            qualities[name] = {sign: _texts(_mapping(sets, where), sign, where) for sign in ("positive", "negative")}
            if not any(qualities[name].values()):
                raise ConfigError("no follow-ups", where=where, expected="some that are positive or negative")
    if not qualities:
        raise ConfigError("no qualities", where=str(path), expected="some under 'turn' or 'dialogue'")
    texts = tuple(dict.fromkeys(text for sets in qualities.values() for found in sets.values() for text in found))
    weights = np.zeros((len(qualities), len(texts)))
    for row, sets in enumerate(qualities.values()):
        for sign, weight in (("negative", 1.0), ("positive", -1.0)):
            for text in sets[sign]:
                weights[row, texts.index(text)] += weight / len(sets[sign])
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    return FollowUps(tuple(qualities), texts, weights, f"{path.stem}@{digest}")


def _mapping(value: Any, where: str) -> dict[Any, Any]:  # noqa: ANN401
    if not isinstance(value, dict):
        raise ConfigError(f"holds {value!r}", where=where, expected="a mapping, as in fed_followups.yaml")
    return value


def _texts(sets: dict[Any, Any], sign: str, where: str) -> list[str]:
    found = sets.get(sign)
    if not isinstance(found, list) or not all(isinstance(text, str) and text.strip() for text in found):
        raise ConfigError(f"{sign!r} is {found!r}", where=where, expected="a list of utterances, which may be empty")
    return [text.strip() for text in found]
