"""Expected scores from the probabilities of a scale's tokens: G-Eval's weighting, and yes or no.

The probabilities are those of the first token of an answer. A service of ours gives them for all labels of the scale;
OpenAI and its likes give the 20 most probable tokens at most, so that a label which is not among them counts as
outside the scale, and ``outside`` is too large by what that label would have had. A token with which such a label may begin
(``1``, of ``10``) is neither: there is no score, unless next to nothing of the probability is at stake.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from comperdial.core.errors import ComperdialError, ConfigError

YES_NO: Mapping[str, float] = {"yes": 1.0, "no": 0.0}
"""The labels of a question whose value is p(yes) / (p(yes) + p(no))."""

Labels = Sequence[float] | Mapping[str, float]

# What OpenAI's interface says instead of a log probability that is too small to tell.
_UNSEEN = -9999.0
# Services round; a sum of probabilities may come out a little above 1.
_ROUNDING = 1e-3
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
# How SentencePiece and GPT-2's vocabulary write the space before a word, where a server shows raw tokens.
RAW_SPACES = "\u2581\u0120"
# The share of the labels' probability that may be of another label.
_AT_STAKE = 0.01


class UnweightedError(ComperdialError):
    """The probabilities of an answer's first token give no score."""


@dataclass(frozen=True)
class Weighted:
    """An expected score.

    Attributes
    ----------
    value
        The sum of score times probability over the scale's tokens, these probabilities made to sum to 1.
    outside
        The probability of all other tokens, as far as the service's answer tells (see the module).
    """

    value: float
    outside: float


def expected_score(probabilities: Mapping[str, float], labels: Labels) -> Weighted:
    """Return the expected score under the probabilities of an answer's first token.

    Tokens that differ in spaces around them, in case or in the form of their digits (``" 4"``, ``"4"``, ``"4.0"``,
    ``"４"``) mean the same label, and their probabilities are summed.

    Parameters
    ----------
    probabilities
        Token to probability; other tokens than the scale's may be among them.
    labels
        The scale, such as ``(1, 2, 3, 4, 5)``; or what each label is worth, such as :data:`YES_NO`.

    Raises
    ------
    UnweightedError
        When no token of the scale is among them, or they are no probabilities.
    ConfigError
        When two labels are the same text.
    """
    for token, value in probabilities.items():
        if not -_ROUNDING <= value <= 1 + _ROUNDING:
            raise UnweightedError(f"the probability of the token {token!r} is {value}", expected="0 to 1")
    logs = {token: math.log(value) if value > 0 else -math.inf for token, value in probabilities.items()}
    return expected_score_of_logs(logs, labels)


def expected_score_of_logs(logprobs: Mapping[str, float], labels: Labels) -> Weighted:
    """Do as :func:`expected_score`, given natural logarithms of probabilities.

    Raises
    ------
    UnweightedError, ConfigError
        As :func:`expected_score`.
    """
    worth = _worth(labels)
    found: list[tuple[float, float]] = []
    begun: dict[tuple[str, str], float] = {}
    known, missing = {_bare(token) for token in logprobs}, worth.keys() - {_label(token) for token in logprobs}
    for token, log in logprobs.items():
        if math.isnan(log) or log > _ROUNDING:
            raise UnweightedError(f"the log probability of the token {token!r} is {log}", expected="0 or below")
        if (label := _label(token)) in worth and log > _UNSEEN:
            found.append((worth[label], log))
        # A space says that the token is the whole word.
        if log > _UNSEEN and label and not token[-1].isspace():
            # Of words each spelling has tokens of its own: YES may begin with Y where Yes is one.
            open_ends = missing if label in worth else {way for each in worth for way in _cases(each)} - known
            start = label if label in worth else _bare(token)
            begun |= {(token, longer): log for longer in open_ends if longer.startswith(start) and longer != start}
    _check_begun(begun, [log for _, log in found])
    if not found:
        raise UnweightedError(
            f"no token of the scale is among the {len(logprobs)} whose probabilities are known",
            expected=" or ".join(worth),
        )
    # Relative to the largest, so that probabilities too small for a float still have a ratio.
    top = max(log for _, log in found)
    weights = [math.exp(log - top) for _, log in found]
    total = math.fsum(weights)
    if (log_mass := top + math.log(total)) > _ROUNDING:
        raise UnweightedError(f"the probabilities of the scale's tokens sum to {math.exp(log_mass):.4f}", expected="1")
    value = math.fsum(score * weight / total for (score, _), weight in zip(found, weights, strict=True))
    scores = [score for score, _ in found]
    # Not above the scale's top by a rounding error.
    return Weighted(min(max(value, min(scores)), max(scores)), max(0.0, 1 - math.exp(log_mass)))


def _check_begun(begun: Mapping[tuple[str, str], float], known: Sequence[float]) -> None:
    """Refuse tokens with which labels may begin whose own probability is not known."""
    at_stake = math.fsum({token: math.exp(min(log, 0.0)) for (token, _), log in begun.items()}.values())
    if at_stake > _AT_STAKE * (at_stake + math.fsum(math.exp(min(log, 0.0)) for log in known)):
        token, longer = max(begun, key=lambda pair: begun[pair])
        raise UnweightedError(
            f"the token {token!r} may be the beginning of {longer!r}, whose probability is not known",
            expected="labels that are one token each, or an answer that holds them whole",
        )


def check_labels(labels: Labels) -> None:
    """Raise ConfigError unless labels are two or more, all different, and not all worth the same."""
    worth = _worth(labels)
    if "" in worth or len(worth) < 2 or len(set(worth.values())) < 2:
        raise ConfigError(
            f"the labels are {', '.join(f'{label!r} ({value:g})' for label, value in worth.items())}",
            expected="two texts or more, not all worth the same",
        )


def scale_labels(low: float, high: float) -> tuple[str, ...]:
    """Return the labels of a scale of whole numbers: ``("1", "2", "3", "4", "5")`` for 1 to 5.

    Raises
    ------
    ConfigError
        When an end is no whole number, so that no single tokens make up the scale.
    """
    if low != int(low) or high != int(high) or low >= high:
        raise ConfigError(f"a scale from {low:g} to {high:g}", expected="two whole numbers, the lower one first")
    return tuple(str(number) for number in range(int(low), int(high) + 1))


def _worth(labels: Labels) -> dict[str, float]:
    pairs = labels.items() if isinstance(labels, Mapping) else [(f"{score:.15g}", score) for score in labels]
    worth: dict[str, float] = {}
    for text, score in pairs:
        if (label := _label(text)) in worth:
            raise ConfigError(f"the label {text!r} stands twice in the scale", expected="different labels")
        worth[label] = float(score)
    return worth


def _bare(token: str) -> str:
    return unicodedata.normalize("NFKC", token).strip().strip(RAW_SPACES).strip()


def _cases(label: str) -> set[str]:
    return {label, label.upper(), label.capitalize()}


def _label(token: str) -> str:
    """Return the one way of writing a token that all its spellings come to."""
    text = _bare(token).casefold()
    return f"{float(text):.15g}" if _NUMBER.fullmatch(text) else text
