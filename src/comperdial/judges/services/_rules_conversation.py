"""How the rules rate a whole conversation, from its text alone: surface features of what the last speaker says in it.

A feature is counted for each of that speaker's utterances, from 0 to 1, and the mean is taken; those of diversity are
counted over all of them together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from comperdial.judges.services._rules_reading import Text
from comperdial.judges.services._rules_scoring import FIT, LONG, SPECIFIC, text

BASE = {"coherence": 2.5, "engagingness": 2.0, "diversity": 1.0, "informativeness": 1.5}
"""Where a dimension starts, on a scale from 1 to 5. Overall is the mean of the four."""

WEIGHTS: Mapping[str, Mapping[str, float]] = {
    "coherence": {
        "on_topic": 2.5,  # it takes up words of the other's last two utterances
        "answers": 1.0,  # it gives content to a question
        "evades": -1.5,  # a question is left without
        "again": -2.5,  # said by the same speaker before
        "copied": -2.0,  # said by the other before
    },
    "engagingness": {
        "asks": 1.5,  # a question keeps the other talking
        "specific": 2.5,  # there is something to take up
        "fit_length": 1.0,  # as long as people's turns in a chat are
        "bland": -1.0,  # nothing to take up
        "long": -1.5,  # few read to the end
        "again": -2.5,
        "copied": -2.0,
    },
    "diversity": {
        "words": 1.5,  # different words among all
        "pairs": 1.0,  # different pairs of words among all
        "vocabulary": 1.0,  # many different words of content
        "varied_length": 0.5,  # some utterances short, some not
        "again": -2.0,
    },
    "informativeness": {
        "specific": 2.5,
        "new": 2.0,  # words of content that nobody has used yet
        "bland": -1.0,
        "copied": -2.0,
        "again": -1.5,
    },
}
"""What a feature of 1 adds to a dimension, in points of a scale from 1 to 5. Set by hand; no rating was looked at."""

PHRASES = {
    "on_topic": "it takes up what the other says",
    "answers": "questions are answered",
    "evades": "questions are left unanswered",
    "again": "the speaker repeats what they said before",
    "copied": "the speaker repeats what the other said",
    "asks": "it asks questions back",
    "specific": "it says specific things",
    "fit_length": "its turns are as long as in a chat",
    "bland": "much of it would fit anything",
    "long": "its turns are too long for a chat",
    "words": "its words vary",
    "pairs": "its phrases vary",
    "vocabulary": "it has many words",
    "varied_length": "its turns vary in length",
    "new": "it brings up new things",
}
# Different words of content in a whole conversation that make a vocabulary full.
_VOCABULARY = 40
# Shares of different words, and of different pairs, at which they count for nothing and fully: nobody repeats none.
_WORDS, _PAIRS = (0.4, 0.9), (0.7, 1.0)
# Words among which distinct ones are counted, so that a long conversation is not poor for its length.
_WINDOW = 50


@dataclass(frozen=True)
class Heard:
    """Unrounded ratings on a scale from 1 to 5, and the features they come from; none where nothing was said."""

    ratings: Mapping[str, float]
    features: Mapping[str, float]


def judge_conversation(lines: Sequence[str]) -> Heard:
    """Rate a conversation of any number of lines ``speaker: text``, by what the speaker of the last line says in it."""
    said = [(speaker.removesuffix(":"), text(said)) for speaker, _, said in (line.partition(": ") for line in lines)]
    own = [number for number, (speaker, _) in enumerate(said) if speaker == said[-1][0]]
    if not any(said[number][1].words for number in own):
        return Heard(dict.fromkeys((*BASE, "overall"), 1.0), {})
    features = _means(_of_utterances(said, frozenset(own))) | _of_all([said[number][1] for number in own])
    ratings = {
        name: min(5.0, max(1.0, start + math.fsum(weight * features[key] for key, weight in WEIGHTS[name].items())))
        for name, start in BASE.items()
    }
    return Heard(ratings | {"overall": math.fsum(ratings.values()) / len(ratings)}, features)


def conversation_rationale(heard: Heard) -> str:
    """Say in a sentence which features moved the ratings most."""
    if not heard.features:
        return "The last speaker says nothing."
    effects = {
        feature: math.fsum(weights.get(feature, 0.0) for weights in WEIGHTS.values()) * value
        for feature, value in heard.features.items()
    }
    ranked = sorted((name for name in effects if abs(effects[name]) >= 0.25), key=lambda name: -abs(effects[name]))
    good = [PHRASES[name] for name in ranked if effects[name] > 0][:2]
    bad = [PHRASES[name] for name in ranked if effects[name] < 0][:2]
    sentence = ", but ".join(" and ".join(found) for found in (good, bad) if found)
    return f"{sentence[0].upper()}{sentence[1:]}." if sentence else "Nothing about the conversation stands out."


def _of_utterances(said: Sequence[tuple[str, Text]], own: frozenset[int]) -> list[dict[str, float]]:
    """Return the features of each of the last speaker's utterances, given what came before it."""
    found: list[dict[str, float]] = []
    mine: set[tuple[str, ...]] = set()
    theirs: set[tuple[str, ...]] = set()
    used: set[str] = set()
    heard: list[Text] = []
    for number, (_, utterance) in enumerate(said):
        runs, content = _runs(utterance), utterance.content
        if number in own:
            recent = frozenset[str]().union(*(other.content for other in heard[-2:]))
            asked = number > 0 and number - 1 not in own and said[number - 1][1].asks
            count = len(utterance.words)
            found.append(
                {
                    "on_topic": min(1.0, len(content & recent) / 2),
                    "answers": float(asked and len(content) >= 2),
                    "evades": float(asked and len(content) < 2),
                    "again": _share(runs, mine),
                    "copied": _share(runs, theirs),
                    "asks": float(utterance.asks),
                    "specific": min(1.0, len(content) / SPECIFIC),
                    "fit_length": float(FIT[0] <= count <= FIT[1]),
                    "bland": float(len(content) < 2),
                    "long": min(1.0, max(0, count - LONG) / 40),
                    "new": min(1.0, len(content - used) / (SPECIFIC / 2)),
                }
            )
        else:
            heard.append(utterance)
        (mine if number in own else theirs).update(runs)
        used |= content
    return found


def _of_all(own: Sequence[Text]) -> dict[str, float]:
    """Return the features of all of a speaker's utterances together."""
    words = [word for utterance in own for word in utterance.words]
    pairs = [pair for utterance in own for pair in zip(utterance.words, utterance.words[1:], strict=False)]
    counts = [len(utterance.words) for utterance in own]
    mean = math.fsum(counts) / len(counts)
    spread = math.sqrt(math.fsum((count - mean) ** 2 for count in counts) / len(counts))
    return {
        "words": _between(_distinct(words), *_WORDS),
        "pairs": _between(_distinct(pairs), *_PAIRS) if pairs else 0.0,
        "vocabulary": min(1.0, len(frozenset().union(*(utterance.content for utterance in own))) / _VOCABULARY),
        "varied_length": min(1.0, 2 * spread / mean),
    }


def _between(value: float, low: float, high: float) -> float:
    return min(1.0, max(0.0, (value - low) / (high - low)))


def _distinct(units: Sequence[object]) -> float:
    """Return the mean share of different ones among each ``_WINDOW`` in a row; the last window is as long."""
    starts = [*range(0, max(1, len(units) - _WINDOW), _WINDOW), max(0, len(units) - _WINDOW)]
    windows = [units[start : start + _WINDOW] for start in dict.fromkeys(starts)]
    return math.fsum(len(set(window)) / len(window) for window in windows if window) / len(windows)


def _runs(utterance: Text) -> tuple[tuple[str, ...], ...]:
    """Return the runs of three words; of a shorter utterance, the whole."""
    return utterance.trigrams or ((utterance.words,) if utterance.words else ())


def _share(runs: Sequence[tuple[str, ...]], known: set[tuple[str, ...]]) -> float:
    return sum(run in known for run in runs) / len(runs) if runs else 0.0


def _means(features: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: math.fsum(each[name] for each in features) / len(features) for name in features[0]}
