"""How the rules rate a dialogue: the second step of CPDScore-Dialogue, its branches included."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from comperdial.judges.services._rules_reading import Request, Text, UnreadableError
from comperdial.judges.services._rules_scoring import LONG, text

HIGH = 4.0
"""From here on the overall dialogue turn score alone decides."""
LOW = 3.0
"""An interaction score below this is low."""

BASE = 3.5
WEIGHTS: Mapping[str, float] = {
    "patterned": -3.0,  # responses alike in their words or their beginnings
    "long": -2.5,  # responses of more than twenty words
    "varied_length": 1.0,  # as people's turns are, some short, some not
    "vocabulary": 1.0,  # a word of content is seldom said twice
}
PHRASES = {
    "patterned": "the responses follow a pattern",
    "long": "responses are too long",
    "varied_length": "the responses vary in length",
    "vocabulary": "the responses use many different words",
}


@dataclass(frozen=True)
class DialogueJudgement:
    """The three scores, to a tenth, on a scale from 1 to 5; and what they come from."""

    overall: float
    interaction: float
    final: float
    features: Mapping[str, float]
    reason: str
    """Why the final score is what it is."""

    @property
    def ratings(self) -> dict[str, float]:
        """Return the scores by the names that the form gives them."""
        return {
            "overall dialogue turn score": self.overall,
            "dialogue interaction score": self.interaction,
            "final score": self.final,
        }


def judge_dialogue(request: Request) -> DialogueJudgement:
    """Rate a dialogue of any number of turns from its turn scores and responses.

    Raises
    ------
    UnreadableError
        When turn scores are missing or no numbers.
    """
    scores = [_number(score) for score in request.sections.get("turn scores", ())]
    if not scores:
        raise UnreadableError("it has no turn scores")
    responses = [text(line) for line in request.sections["responses"]]
    features = _features(responses)
    overall = tenth(math.fsum(scores) / len(scores))
    value, unaffected = interaction(features)
    final, reason = decide(overall, value, unaffected)
    return DialogueJudgement(overall, value, final, features, reason)


def interaction(features: Mapping[str, float]) -> tuple[float, float]:
    """Return the interaction score, and what it would be if no response were too long."""
    parts = {name: weight * features[name] for name, weight in WEIGHTS.items()}
    total = BASE + math.fsum(parts.values())
    return _scaled(total), _scaled(total - parts["long"])


def decide(overall: float, value: float, without_length: float) -> tuple[float, str]:
    """Return the final score and why it is so.

    Parameters
    ----------
    overall
        The overall dialogue turn score.
    value
        The dialogue interaction score.
    without_length
        The interaction score if no response were too long: where this is not low, length is why the score is.
    """
    if overall < HIGH:
        return tenth((overall + value) / 2), "the turn scores are below four, so both scores count"
    if value < LOW <= without_length:
        return tenth((overall + value) / 2), "responses are so long that the interaction score counts too"
    return overall, "the turn scores are four or higher, so they alone count"


def dialogue_rationale(judgement: DialogueJudgement) -> str:
    """Say what the interaction score comes from and how the final score was reached."""
    effects = {name: weight * judgement.features[name] for name, weight in WEIGHTS.items()}
    most = max(effects, key=lambda name: abs(effects[name]))
    first = PHRASES[most] if abs(effects[most]) >= 0.25 else "nothing about the responses stands out"
    return f"{first.capitalize()}; {judgement.reason}."


def tenth(value: float) -> float:
    """Round to a tenth, halves up."""
    return math.floor(round(value * 10, 6) + 0.5) / 10


def _scaled(value: float) -> float:
    return tenth(min(5.0, max(1.0, value)))


def _number(content: str) -> float:
    try:
        value = float(content)
    except ValueError:
        value = math.nan
    if not 1 <= value <= 5:
        raise UnreadableError("a turn score is no number from 1 to 5")
    return value


def _features(responses: Sequence[Text]) -> dict[str, float]:
    """Return the features of a dialogue's responses, from 0 to 1."""
    counts = [len(response.words) for response in responses]
    excess = [max(0, count - LONG) for count in counts]
    mean = math.fsum(counts) / len(counts)
    spread = math.sqrt(math.fsum((count - mean) ** 2 for count in counts) / len(counts))
    said = [stem for response in responses for stem in response.content]
    return {
        "patterned": _alike(responses),
        # One is enough to be noticed; from twenty words over in the mean it cannot get worse.
        "long": 0.4 + 0.6 * min(1.0, math.fsum(excess) / len(excess) / LONG) if any(excess) else 0.0,
        "varied_length": min(1.0, 2 * spread / mean) if mean else 0.0,
        "vocabulary": len(set(said)) / len(said) if said else 0.0,
    }


def _alike(responses: Sequence[Text]) -> float:
    """Return the mean likeness of two responses: the share of words in common, 1 for the same first three words."""
    pairs = [
        1.0 if one.words[:3] == other.words[:3] else _shared(frozenset(one.words), frozenset(other.words))
        for one, other in combinations(responses, 2)
    ]
    return math.fsum(pairs) / len(pairs) if pairs else 0.0


def _shared(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one or other else 1.0
