"""Will the user go on? Dialogue continuity prediction (Tsuta et al. 2023), as docs/continuity-prediction.md has it.

Samples (:mod:`comperdial.data.continuations`) become blocks of features, of the context and of the user, and a logistic
regression is fitted to them, its penalty chosen on validation samples.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from comperdial.core.errors import ConfigError
from comperdial.data.continuations import Sample
from comperdial.training.continuity_tasks import before, profile, remembered, talk

if TYPE_CHECKING:
    from scipy import sparse

Floats = npt.NDArray[np.float64]
Vectors = Mapping[str, npt.NDArray[np.float32]]

CONTEXTS = ("form", "tfidf", "minilm", "smollm2")
PERSONAL = ("none", "token", "profile", "token+profile", "history", "token+history")
PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0)
# Replies at the global rate that a user's own are added to.
_PSEUDO = 20


# Vectors


def stacked(vectors: Vectors, texts: Sequence[str]) -> Floats:
    """Return the vectors of texts as rows; of an empty text a row of zeros."""
    size = len(next(iter(vectors.values()))) if vectors else 0
    return np.array([vectors[text] if text else np.zeros(size) for text in texts], dtype=np.float64).reshape(-1, size)


# What a user did in the training split


@dataclass
class _Part:
    """A user's part in one conversation."""

    read: int = 0
    continued: int = 0
    said: int = 0
    words: float = 0.0
    length: int = 0
    vectors: Floats | None = None
    remembered: int = 0


class Histories:
    """What users did in the conversations of the training split; of a sample's own conversation nothing counts.

    Parameters
    ----------
    samples
        All samples of the training split, at their natural rate.
    vectors
        Vectors of utterances; of those that it holds, a user's history has the mean.
    """

    def __init__(self, samples: Sequence[Sample], vectors: Vectors | None = None) -> None:
        self.parts: dict[str, dict[str, _Part]] = defaultdict(dict)
        self.size = len(next(iter(vectors.values()))) if vectors else 0
        self.rate = np.mean([sample.continued for sample in samples]) if samples else 0.5
        for sample in samples:
            part = self.parts[sample.user_id].setdefault(sample.conversation.id, _Part())
            part.read += 1
            part.continued += sample.continued
        chosen = {(speaker, text) for speaker, text in remembered(samples)}
        for conversation in {sample.conversation.id: sample.conversation for sample in samples}.values():
            for speaker, number in conversation.users.items():
                part = self.parts[number].setdefault(conversation.id, _Part())
                texts = [said.text for said in conversation.utterances if said.speaker == speaker]
                part.said = len(texts)
                part.words = sum(math.log1p(len(text.split())) for text in texts)
                part.length = len(conversation.utterances)
                known = [vectors[text] for text in texts if vectors and (number, text) in chosen and text in vectors]
                if known:
                    part.vectors, part.remembered = np.sum(known, axis=0, dtype=np.float64), len(known)

    def conversations(self, user: str) -> int:
        """Return in how many conversations of the training split a user was."""
        return len(self.parts.get(user, {}))

    def features(self, samples: Sequence[Sample]) -> tuple[Floats, Floats]:
        """Return, for each sample, five numbers of its user's behaviour, and the mean vector of what the user said."""
        numbers, means = np.zeros((len(samples), 5)), np.zeros((len(samples), self.size))
        for row, sample in enumerate(samples):
            own = self.parts.get(sample.user_id, {})
            parts = [part for name, part in own.items() if name != sample.conversation.id]
            if not parts:
                continue
            read, continued = sum(part.read for part in parts), sum(part.continued for part in parts)
            rate = (continued + _PSEUDO * self.rate) / (read + _PSEUDO)
            rate = min(max(rate, 1e-6), 1 - 1e-6)
            said = sum(part.said for part in parts)
            numbers[row] = (
                math.log1p(read),
                math.log(rate / (1 - rate)) - math.log(self.rate / (1 - self.rate)) if 0 < self.rate < 1 else 0.0,
                sum(part.words for part in parts) / max(1, said),
                sum(math.log(max(1, part.length)) for part in parts) / len(parts),
                1.0,
            )
            if count := sum(part.remembered for part in parts):
                means[row] = sum(part.vectors for part in parts if part.vectors is not None) / count
        return numbers, means


# Features


def form(samples: Sequence[Sample]) -> Floats:
    """Return five numbers of each sample: how far the conversation is, how long reply and utterance are, who asks."""
    return np.array(
        [
            (
                math.log1p(sample.turn),
                math.log1p(len(sample.reply.text.split())),
                math.log1p(len(before(sample).split())),
                float("?" in sample.reply.text),
                float("?" in before(sample)),
            )
            for sample in samples
        ],
        dtype=np.float64,
    ).reshape(-1, 5)


class Features:
    """Blocks of features, fitted to training samples.

    Parameters
    ----------
    train
        The samples that the model is trained on.
    context
        One of :data:`CONTEXTS`.
    personal
        One of :data:`PERSONAL`.
    vectors
        Vectors by encoder and text.
    histories
        For ``history``.
    """

    def __init__(
        self,
        train: Sequence[Sample],
        context: str,
        personal: str = "none",
        *,
        vectors: Mapping[str, Vectors] | None = None,
        histories: Histories | None = None,
    ) -> None:
        for name, known, kind in ((context, CONTEXTS, "context"), (personal, PERSONAL, "kind of user")):
            if name not in known:
                raise ConfigError(f"{kind} {name!r}", expected=f"one of {', '.join(known)}")
        self.context, self.parts = context, personal.split("+")
        self.vectors, self.histories = vectors or {}, histories
        self.users = {name: place for place, name in enumerate(sorted({sample.user_id for sample in train}))}
        self._words = [self._fitted([text(sample) for sample in train]) for text in (_reply, before)]
        self._moments: list[tuple[Floats, Floats]] = []
        self._scales: list[float] = []
        self._make(train, fit=True)

    def __call__(self, samples: Sequence[Sample]) -> sparse.csr_matrix:
        """Return the features of samples, a row each."""
        return self._make(samples, fit=False)

    def _fitted(self, texts: list[str]) -> Any:  # noqa: ANN401 - scikit-learn's
        if self.context != "tfidf":
            return None
        from sklearn.feature_extraction.text import TfidfVectorizer

        pattern = r"(?u)\b\w+(?:'\w+)?\b|[?!]"
        made = TfidfVectorizer(ngram_range=(1, 2), min_df=min(2, len(texts)), sublinear_tf=True, token_pattern=pattern)
        return made.fit(texts)

    def _make(self, samples: Sequence[Sample], *, fit: bool) -> sparse.csr_matrix:
        from scipy import sparse

        dense = [form(samples)]
        blocks: list[Any] = []
        if self.context == "tfidf":
            pairs = zip(self._words, (_reply, before), strict=True)
            blocks.append(sparse.hstack([made.transform([text(s) for s in samples]) for made, text in pairs]).tocsr())
        elif self.context == "minilm":
            known = self.vectors["minilm"]
            dense.append(np.hstack([stacked(known, [text(s) for s in samples]) for text in (_reply, before)]))
        elif self.context == "smollm2":
            dense.append(stacked(self.vectors["smollm2"], [talk(sample) for sample in samples]))
        if "token" in self.parts:
            rows = [(row, self.users[s.user_id]) for row, s in enumerate(samples) if s.user_id in self.users]
            at = np.array(rows, dtype=int).reshape(-1, 2)
            shape = (len(samples), len(self.users))
            blocks.append(sparse.csr_matrix((np.ones(len(at)), (at[:, 0], at[:, 1])), shape=shape))
        if "profile" in self.parts:
            dense.append(stacked(self.vectors["minilm"], [profile(sample) for sample in samples]))
        if "history" in self.parts:
            if self.histories is None:
                raise ConfigError("no histories", expected="histories of the training split, for 'history'")
            dense += self.histories.features(samples)
        if fit:
            self._moments = [(block.mean(axis=0), block.std(axis=0)) for block in dense]
        moments = zip(dense, self._moments, strict=True)
        blocks = [sparse.csr_matrix((b - mean) / np.where(std > 1e-9, std, 1)) for b, (mean, std) in moments] + blocks
        if fit:
            norms = [float(block.multiply(block).sum()) / max(1, len(samples)) for block in blocks]
            self._scales = [1 / math.sqrt(norm) if norm > 0 else 0.0 for norm in norms]
        scaled = [block * scale for block, scale in zip(blocks, self._scales, strict=True)]
        return sparse.hstack(scaled).tocsr()


def _reply(sample: Sample) -> str:
    return sample.reply.text


# The model


@dataclass(frozen=True)
class Predictor:
    """A fitted model: P(the user goes on).

    Attributes
    ----------
    features
        What it looks at.
    penalty
        The C that was chosen.
    loss
        Its log loss on the validation samples.
    rate
        The share of positives among what it was trained on.
    """

    features: Features
    coefficients: Floats
    intercept: float
    penalty: float
    loss: float
    rate: float

    def logits(self, samples: Sequence[Sample]) -> Floats:
        """Return the log-odds of going on, at the rate of the training samples."""
        return np.asarray(self.features(samples) @ self.coefficients + self.intercept, dtype=np.float64)

    def probabilities(self, samples: Sequence[Sample], rate: float | None = None) -> Floats:
        """Return the probabilities of going on; of another rate than that of training where one is given."""
        shift = 0.0 if rate is None else logit(rate) - logit(self.rate)
        return 1 / (1 + np.exp(-np.clip(self.logits(samples) + shift, -700, 700)))


def logit(rate: float) -> float:
    """Return the log-odds of a rate; one of 0 or 1 is taken as a millionth away from it."""
    kept = min(max(rate, 1e-6), 1 - 1e-6)
    return math.log(kept / (1 - kept))


def fit(
    features: Features, train: Sequence[Sample], validation: Sequence[Sample], penalties: Sequence[float] = PENALTIES
) -> Predictor:
    """Fit a logistic regression for each penalty and return the one with the lowest log loss on validation samples.

    Raises
    ------
    ConfigError
        When the training samples are all of one class, or there is none to validate with.
    """
    from sklearn.linear_model import LogisticRegression

    truth = np.array([sample.continued for sample in train], dtype=int)
    if len(set(truth.tolist())) < 2 or not validation:
        raise ConfigError(
            f"{len(train)} training samples of {len(set(truth.tolist()))} class, {len(validation)} validation samples",
            expected="samples of both classes, and some to validate with",
        )
    asked, known = features(validation), features(train)
    rows: Any = known
    if known.nnz > 0.3 * known.shape[0] * known.shape[1]:
        # As a dense array it is faster.
        rows = known.toarray()
    sought = np.array([sample.continued for sample in validation], dtype=bool)
    best: Predictor | None = None
    for penalty in penalties:
        model = LogisticRegression(C=penalty, max_iter=500).fit(rows, truth)
        values = np.asarray(asked @ model.coef_[0] + model.intercept_[0])
        loss = float(np.mean(np.logaddexp(0, np.where(sought, -values, values))))
        if best is None or loss < best.loss:
            coefficients, intercept = np.asarray(model.coef_[0]), float(model.intercept_[0])
            best = Predictor(features, coefficients, intercept, penalty, loss, float(truth.mean()))
    if best is None:
        raise ConfigError("no penalty", expected="one or more")
    return best


# Majorities


def majority(train: Sequence[Sample], asked: Sequence[Sample], *, private: bool) -> npt.NDArray[np.int64]:
    """Return the majority class of training samples for each one asked, of all or of its user; a tie is positive."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for sample in train:
        counts[sample.user_id][sample.continued] += 1
    total = np.sum(list(counts.values()), axis=0) if counts else np.zeros(2)
    overall = int(total[1] >= total[0])
    found = []
    for sample in asked:
        own = counts.get(sample.user_id) if private else None
        found.append(overall if own is None else int(own[1] >= own[0]))
    return np.array(found, dtype=np.int64)


def natural_rate(samples: Sequence[Sample]) -> float:
    """Return the share of samples whose user went on."""
    return float(np.mean([sample.continued for sample in samples])) if samples else math.nan
