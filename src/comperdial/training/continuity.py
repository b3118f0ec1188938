"""Dialogue continuity prediction, i.e. whether the user will continue (Tsuta et al. 2023; see docs/continuity.md).

Samples (:mod:`comperdial.data.continuations`) become feature blocks of context and user; a logistic regression is fitted to
them, with the penalty chosen on validation samples.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from comperdial.core.errors import ConfigError
from comperdial.data.continuations import Sample
from comperdial.training.continuity_tasks import before, of_users, profile, reply, talk

if TYPE_CHECKING:
    from scipy import sparse

Floats = npt.NDArray[np.float64]
Vectors = Mapping[str, npt.NDArray[np.float32]]

CONTEXTS = ("form", "tfidf", "minilm", "smollm2")
PERSONAL = ("none", "token", "profile", "token+profile", "history", "token+history")
PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0)
# Pseudo-replies at the global rate, added to a user's own.
_PSEUDO = 20


def stacked(vectors: Vectors, texts: Sequence[str]) -> Floats:
    """Return the vectors of texts as rows; zeros for an empty text."""
    size = len(next(iter(vectors.values()))) if vectors else 0
    return np.array([vectors[text] if text else np.zeros(size) for text in texts], dtype=np.float64).reshape(-1, size)


class Histories:
    """Users' behaviour in the training split, excluding the sample's own conversation.

    ``samples`` are the whole training split at its natural rate. With ``vectors`` of utterances, a history includes the mean
    vector of the user's utterances.
    """

    def __init__(self, samples: Sequence[Sample], vectors: Vectors | None = None) -> None:
        vectors = vectors or {}
        self.size = len(next(iter(vectors.values()))) if vectors else 0
        self.rate = natural_rate(samples) if samples else 0.5
        # By user and conversation: replies read, of these continued, utterances, their log words, log length of the
        # conversation, 1, utterances with a vector, and the sum of their vectors.
        self._parts: dict[str, dict[str, Floats]] = defaultdict(lambda: defaultdict(lambda: np.zeros(7 + self.size)))
        for sample in samples:
            self._parts[sample.user_id][sample.conversation.id][:2] += 1, sample.continued
        chosen = set(of_users(samples)) if vectors else set()
        for conversation in {sample.conversation.id: sample.conversation for sample in samples}.values():
            for speaker, user in conversation.users.items():
                part = self._parts[user][conversation.id]
                texts = [one.text for one in conversation.utterances if one.speaker == speaker]
                words = sum(math.log1p(len(text.split())) for text in texts)
                part[2:6] = len(texts), words, math.log(max(1, len(conversation.utterances))), 1
                if held := [vectors[text] for text in texts if (user, text) in chosen and text in vectors]:
                    part[6], part[7:] = len(held), np.sum(held, axis=0, dtype=np.float64)

    def conversations(self, user: str) -> int:
        """Return the number of a user's conversations in the training split."""
        return len(self._parts.get(user, ()))

    def features(self, samples: Sequence[Sample]) -> tuple[Floats, Floats]:
        """Return, per sample, five numbers on its user's behaviour, and the mean vector of the user's utterances."""
        numbers, means = np.zeros((len(samples), 5)), np.zeros((len(samples), self.size))
        for row, sample in enumerate(samples):
            own = self._parts.get(sample.user_id, {})
            if parts := [part for name, part in own.items() if name != sample.conversation.id]:
                total = np.asarray(sum(parts))
                read, continued, utterances, words, length, count, with_vector = total[:7]
                rate = (continued + _PSEUDO * self.rate) / (read + _PSEUDO)
                usual = logit(rate) - logit(self.rate) if 0 < self.rate < 1 else 0.0
                numbers[row] = math.log1p(read), usual, words / max(1, utterances), length / count, 1
                means[row] = total[7:] / max(1, with_vector)
        return numbers, means


def form(samples: Sequence[Sample]) -> Floats:
    """Return five numbers per sample: turn, lengths of reply and utterance, and whether each contains a question."""
    rows = []
    for sample in samples:
        texts = reply(sample), before(sample)
        lengths = [math.log1p(len(text.split())) for text in texts]
        rows.append((math.log1p(sample.turn), *lengths, *("?" in text for text in texts)))
    return np.array(rows, dtype=np.float64).reshape(-1, 5)


class Features:
    """Feature blocks fitted to training samples: each is standardized and scaled to a mean squared norm of 1.

    ``context`` is one of :data:`CONTEXTS`, ``personal`` one of :data:`PERSONAL`. ``vectors``, by encoder, may later be replaced
    by those of another data set; ``history`` requires ``histories``.
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
        self.context, self.personal = context, personal.split("+")
        self.vectors, self.histories = vectors or {}, histories
        self.users = {user: column for column, user in enumerate(sorted({sample.user_id for sample in train}))}
        self.tfidf: list[tuple[Any, Any]] = []
        if context == "tfidf":
            from sklearn.feature_extraction.text import TfidfVectorizer

            pattern, fewest = r"(?u)\b\w+(?:'\w+)?\b|[?!]", min(2, len(train))
            for text in (reply, before):
                counted = TfidfVectorizer(ngram_range=(1, 2), min_df=fewest, sublinear_tf=True, token_pattern=pattern)
                self.tfidf.append((text, counted.fit([text(sample) for sample in train])))
        self._moments = [(block.mean(axis=0), block.std(axis=0)) for block in self._dense(train)]
        norms = [float(block.multiply(block).sum()) / max(1, len(train)) for block in self._blocks(train)]
        self._scales = [1 / math.sqrt(norm) if norm > 0 else 0.0 for norm in norms]

    def __call__(self, samples: Sequence[Sample]) -> sparse.csr_matrix:
        """Return the features of samples, one row each."""
        from scipy import sparse

        blocks = zip(self._blocks(samples), self._scales, strict=True)
        return sparse.hstack([block * scale for block, scale in blocks]).tocsr()

    def _dense(self, samples: Sequence[Sample]) -> list[Floats]:
        """Return the numeric blocks, before standardization."""
        blocks = [form(samples)]
        if self.context == "minilm":
            texts = ([text(one) for one in samples] for text in (reply, before))
            blocks.append(np.hstack([stacked(self.vectors["minilm"], own) for own in texts]))
        if self.context == "smollm2":
            blocks.append(stacked(self.vectors["smollm2"], [talk(sample) for sample in samples]))
        if "profile" in self.personal:
            blocks.append(stacked(self.vectors["minilm"], [profile(sample) for sample in samples]))
        if "history" in self.personal and self.histories is not None:
            blocks += self.histories.features(samples)
        return blocks

    def _blocks(self, samples: Sequence[Sample]) -> list[Any]:
        """Return all blocks, standardized: numeric, words and users."""
        from scipy import sparse

        dense = zip(self._dense(samples), self._moments, strict=True)
        blocks = [sparse.csr_matrix((block - mean) / np.where(std > 1e-9, std, 1)) for block, (mean, std) in dense]
        if self.tfidf:
            counts = [made.transform([text(sample) for sample in samples]) for text, made in self.tfidf]
            blocks.append(sparse.hstack(counts).tocsr())
        if "token" in self.personal:
            known_users = [(row, self.users[s.user_id]) for row, s in enumerate(samples) if s.user_id in self.users]
            at = np.array(known_users, dtype=int).reshape(-1, 2).T
            blocks.append(sparse.csr_matrix((np.ones(at.shape[1]), at), shape=(len(samples), len(self.users))))
        return blocks


@dataclass(frozen=True)
class Predictor:
    """A fitted model of P(the user continues): its features, the chosen C, and the share of positives in training."""

    features: Features
    coefficients: Floats
    intercept: float
    penalty: float
    rate: float

    def logits(self, samples: Sequence[Sample]) -> Floats:
        """Return the log-odds of continuing, at the rate of the training samples."""
        return np.asarray(self.features(samples) @ self.coefficients + self.intercept, dtype=np.float64)

    def probabilities(self, samples: Sequence[Sample], rate: float | None = None) -> Floats:
        """Return the probabilities of continuing, at the training rate or a given one."""
        shift = 0.0 if rate is None else logit(rate) - logit(self.rate)
        return 1 / (1 + np.exp(-np.clip(self.logits(samples) + shift, -700, 700)))


def logit(rate: float) -> float:
    """Return the log-odds of a rate, clipped to a millionth from 0 and 1."""
    kept = min(max(rate, 1e-6), 1 - 1e-6)
    return math.log(kept / (1 - kept))


def fit(
    features: Features, train: Sequence[Sample], validation: Sequence[Sample], penalties: Sequence[float] = PENALTIES
) -> Predictor:
    """Fit a logistic regression per penalty and return the one with the lowest log loss on validation samples.

    Raises ConfigError if the training samples are all of one class, or there are no validation samples.
    """
    from sklearn.linear_model import LogisticRegression

    truth = np.array([sample.continued for sample in train], dtype=int)
    if (classes := len(np.unique(truth))) < 2 or not validation:
        problem = f"{len(train)} training samples of {classes} class, {len(validation)} validation samples"
        raise ConfigError(problem, expected="samples of both classes, and some to validate with")
    known, held_out = features(train), features(validation)
    # Dense is faster for a nearly full matrix.
    rows: Any = known.toarray() if known.nnz > 0.3 * known.shape[0] * known.shape[1] else known
    signs = np.where([sample.continued for sample in validation], -1.0, 1.0)
    fitted = [LogisticRegression(C=penalty, max_iter=500).fit(rows, truth) for penalty in penalties]
    losses = [np.logaddexp(0, signs * (held_out @ one.coef_[0] + one.intercept_[0])).mean() for one in fitted]
    best = int(np.argmin(losses))
    chosen = fitted[best]
    return Predictor(features, chosen.coef_[0], float(chosen.intercept_[0]), penalties[best], float(truth.mean()))


def majority(train: Sequence[Sample], asked: Sequence[Sample], *, private: bool) -> npt.NDArray[np.int64]:
    """Return the majority class of the training samples, of all or of the same user, for each sample; ties are positive."""
    lead: Counter[str | None] = Counter({None: 0})
    for sample in train:
        lead.update(dict.fromkeys((None, sample.user_id), 1 if sample.continued else -1))
    return np.array([lead.get(one.user_id if private else None, lead[None]) >= 0 for one in asked], dtype=np.int64)


def natural_rate(samples: Sequence[Sample]) -> float:
    """Return the share of samples whose user continued."""
    return float(np.mean([sample.continued for sample in samples])) if samples else math.nan
