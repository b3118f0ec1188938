"""The word-overlap metrics as a plain loop over the libraries: slow, but the reference for ours."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from comperdial.core.scripts import alphanumeric_words, has_no_spaces, words
from comperdial.metrics import create
from comperdial.metrics.text import normalise

Row = Sequence[float]


class _Tokens:
    """White space of any kind separates; with ``single``, each single space does."""

    def __init__(self, single):
        self.single = single

    def tokenize(self, text):
        return text.split(" ") if self.single and text and not has_no_spaces(text) else words(text)


class _BeyondAscii:
    """rouge-score's own tokens on text that is ASCII."""

    def __init__(self, stem):
        from rouge_score.tokenizers import DefaultTokenizer

        self.own = DefaultTokenizer(stem)

    def tokenize(self, text):
        if text.isascii():
            return self.own.tokenize(text)
        return [token for word in alphanumeric_words(text) for token in self._of(word)]

    def _of(self, word):
        return self.own.tokenize(word) if word.isascii() else [word]


def _f1(unit: str = "word") -> Callable[[str, list[str]], Row]:
    def pair(hypothesis, reference):
        tokens = [text if unit == "character" else words(text) for text in (hypothesis, reference)]
        common = sum((Counter(tokens[0]) & Counter(tokens[1])).values())
        if not common:
            return 0.0, 0.0, 0.0
        lengths = [len(text) for text in tokens]
        return 2 * common / sum(lengths), common / lengths[0], common / lengths[1]

    return _best(pair)


def _bleu(smoothing: str = "method1", epsilon: float = 1e-12) -> Callable[[str, list[str]], Row]:
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

    if smoothing == "nlg-eval":
        return _bleu_of_nlg_eval
    smooth = getattr(SmoothingFunction(epsilon=epsilon), smoothing)
    weights = [(1 / order,) * order for order in (4, 3, 2, 1)]

    def row(hypothesis, references):
        tokens = [words(reference) for reference in references]
        return sentence_bleu(tokens, words(hypothesis), weights, smoothing_function=smooth)

    return row


def _bleu_of_nlg_eval(hypothesis: str, references: list[str]) -> Row:
    """Every n-gram looked up in every reference, as pycocoevalcap's formula is written down."""
    own, others = words(hypothesis), [words(reference) for reference in references]
    closest = min(map(len, others), key=lambda length: (abs(length - len(own)), length))
    ratio = (len(own) + 1e-15) / (closest + 1e-9)
    product, row = 1.0, []
    for order in (1, 2, 3, 4):
        grams, *theirs = ([tuple(text[i : i + order]) for i in range(len(text) - order + 1)] for text in (own, *others))
        correct = sum(min(grams.count(gram), max(other.count(gram) for other in theirs)) for gram in set(grams))
        product *= (correct + 1e-15) / (len(grams) + 1e-9)
        score = product ** (1 / order)
        if ratio < 1:
            score *= math.exp(1 - 1 / ratio)
        row.insert(0, score)
    return row


def _rouge(tokens: str = "rouge-score", stem: bool = False, beta: float = 1.0) -> Callable[[str, list[str]], Row]:
    from rouge_score.rouge_scorer import RougeScorer

    names = ("rougeL", "rouge1", "rouge2")
    tokenizer = _BeyondAscii(stem) if tokens == "rouge-score" else _Tokens(tokens == "nlg-eval")
    scorer = RougeScorer(names, stem, tokenizer=tokenizer)

    def parts(p, r):
        weight = beta**2
        return [(1 + weight) * p * r / (r + weight * p) if p or r else 0.0, p, r]

    def pair(hypothesis, reference):
        scores = scorer.score(reference, hypothesis)
        return [parts(scores[name].precision, scores[name].recall) for name in names]

    def each(hypothesis, references):
        rows = [pair(hypothesis, reference) for reference in references]
        return [number for place in range(len(names)) for number in max(row[place] for row in rows)]

    def apart(hypothesis, references):
        found = [scorer.score(reference, hypothesis) for reference in references]
        best = [[max(getattr(s[name], part) for s in found) for part in ("precision", "recall")] for name in names]
        return [number for p, r in best for number in parts(p, r)]

    return apart if tokens == "nlg-eval" else each


def _meteor(alpha: float = 0.9, beta: float = 3.0, gamma: float = 0.5) -> Callable[[str, list[str]], Row]:
    from nltk.translate.meteor_score import meteor_score

    def row(hypothesis, references):
        tokens = [reference.split() for reference in references]
        return (meteor_score(tokens, hypothesis.split(), alpha=alpha, beta=beta, gamma=gamma),)

    return row


def _chrf(order: int = 6, beta: float = 2.0) -> Callable[[str, list[str]], Row]:
    from nltk.translate.chrf_score import sentence_chrf

    return _best(lambda hypothesis, reference: (sentence_chrf(reference, hypothesis, max_len=order, beta=beta),))


def _best(pair: Callable[[str, str], Row]) -> Callable[[str, list[str]], Row]:
    def row(hypothesis, references):
        return max(tuple(pair(hypothesis, reference)) for reference in references)

    return row


_KINDS = {"f1": _f1, "bleu": _bleu, "rouge": _rouge, "meteor": _meteor, "chrf": _chrf}


def plain(
    kind: str, responses: Sequence[str], references: Sequence[Sequence[str]], text: str = "normalised", **options
) -> dict[str, np.ndarray]:
    """Return what ``create(kind, text=text, **options).score(responses, references)`` must return."""
    prepare = normalise if text == "normalised" else str.strip
    row = _KINDS[kind](**options)
    outputs = create(kind).outputs
    # A reference of which normalisation leaves nothing is ignored.
    filled = [[text for text in map(prepare, several) if text] for several in references]
    rows = [
        row(prepare(h), several) if several else [np.nan] * len(outputs)
        for h, several in zip(responses, filled, strict=True)
    ]
    values = np.array(rows, dtype=np.float64).reshape(len(rows), -1)
    return dict(zip(outputs, values.T, strict=True))
