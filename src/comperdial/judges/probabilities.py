"""Expected ratings from the probabilities of an answer's first token: G-Eval's weighting, and yes/no questions."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping

from comperdial.core.errors import ConfigError

# OpenAI's API reports this for very small log probabilities.
_UNSEEN = -9999.0
_ROUNDING = 1e-3
# Highest share of the labels' probability that may be ambiguous.
_AT_STAKE = 0.01


def expected_value(logprobs: Mapping[str, float], labels: Mapping[str, float]) -> tuple[float, float]:
    """Return the probability-weighted mean of the labels' values, and the probability of everything else.

    Tokens that differ only in surrounding spaces, case or the form of digits are the same label.

    Parameters
    ----------
    logprobs
        Natural log probabilities by token; may include other tokens.
    labels
        The value of each label.

    Raises
    ------
    ValueError
        If there is no value; the message gives the reason.
    """
    values = {_spelled(label): value for label, value in labels.items()}
    if any(math.isnan(log) or log > _ROUNDING for log in logprobs.values()):
        raise ValueError("a log probability is above 0")
    known = [(token, _spelled(token), log) for token, log in logprobs.items() if log > _UNSEEN]
    weighted = [(values[label], log) for _, label, log in known if label in values]
    if not weighted:
        names = " or ".join(labels)
        raise ValueError(f"no token of the scale ({names}) is among the {len(logprobs)} whose probabilities are known")
    # Relative to the largest, so that probabilities too small for a float keep their ratio.
    top = max(log for _, log in weighted)
    total = math.fsum(math.exp(log - top) for _, log in weighted)
    mass = math.exp(top) * total
    if mass > 1 + _ROUNDING:
        raise ValueError(f"the probabilities of the labels sum to {mass:.4f}")
    missing = values.keys() - {label for _, label, _ in known}
    for token, label, log in known:
        # "1" may be the first token of "10", whose own probability is unknown.
        longer = [other for other in missing if label and other.startswith(label) and other != label]
        if longer and not token[-1].isspace() and math.exp(log) > _AT_STAKE * mass:
            raise ValueError(
                f"the token {token!r} may be the beginning of {longer[0]!r}, whose probability is not known"
            )
    value = math.fsum(value * math.exp(log - top) / total for value, log in weighted)
    # Clip rounding errors at the ends of the scale.
    ends = [value for value, _ in weighted]
    return min(max(value, min(ends)), max(ends)), max(0.0, 1 - mass)


def scale_labels(low: float, high: float) -> tuple[str, ...]:
    """Return the labels of an integer scale: ``("1", "2", "3", "4", "5")`` for 1 to 5."""
    if low != int(low) or high != int(high) or low >= high:
        raise ConfigError(f"a scale from {low:g} to {high:g}", expected="two whole numbers, the lower one first")
    return tuple(map(str, range(int(low), int(high) + 1)))


def check_labels(labels: Mapping[str, float], where: str) -> None:
    """Raise a ConfigError unless there are at least two distinct labels with at least two distinct values."""
    spelled = {_spelled(label) for label in labels}
    if "" in spelled or len(spelled) < max(2, len(labels)) or len(set(labels.values())) < 2:
        problem = f"the labels are {', '.join(map(repr, labels))}"
        raise ConfigError(problem, where=where, expected="two texts or more, not all of one value")


def _spelled(token: str) -> str:
    """Return the canonical spelling of a token."""
    # SentencePiece and GPT-2 mark a leading space this way.
    text = unicodedata.normalize("NFKC", token).strip().strip("\u2581\u0120").strip().casefold()
    return f"{float(text):.15g}" if re.fullmatch(r"[+-]?\d+(\.\d+)?", text) else text
