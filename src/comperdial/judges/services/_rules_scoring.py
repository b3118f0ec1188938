"""How the rules rate one response: features from 0 to 1, and a table of what each counts for."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import cast

from comperdial.config import load_yaml
from comperdial.judges.services._rules_reading import Request, Text

LONG = 20
"""Words over which a response is too long (the criterion of CPDScore-Dialogue)."""

BASE = {"fluency": 5.0, "coherency": 2.5, "consistency": 3.5, "engagingness": 2.0, "humanness": 0.0, "specificity": 1.0}
"""Where a dimension starts, on a scale from 1 to 5. Humanness is the mean of the first four, less what follows."""

WEIGHTS: Mapping[str, Mapping[str, float]] = {
    "fluency": {
        "brief": -1.0,  # one or two words are hardly a sentence
        "repeated": -4.0,  # words and phrases come again at once
        "noisy": -3.0,  # shouting, rows of marks, signs that belong to no sentence
        "unfinished": -2.5,  # it stops after a word that goes on
        "long": -0.5,  # long sentences read less well
    },
    "coherency": {
        "on_topic": 1.5,  # it takes up words of the last utterances
        "answers": 1.0,  # it gives content, or yes or no, to a question
        "evades": -1.0,  # a question is left without either
        "asks": 0.5,  # a question follows on from what was said
        "bland": -0.5,  # without content it would follow on anything
        "copied": -2.0,  # what was said already does not answer it
    },
    "consistency": {
        "grounded": 1.5,  # it says what is known of the speaker
        "impersonal": -2.0,  # the speaker is a person
        "copied": -3.0,  # words of the history said again
    },
    "engagingness": {
        "asks": 1.0,  # a question keeps the other talking
        "specific": 2.0,  # there is something to take up
        "fit_length": 0.5,  # as long as people's turns in a chat are
        "bland": -1.0,  # nothing to take up
        "long": -2.0,  # few read to the end
        "copied": -1.0,  # nothing new
    },
    "humanness": {
        "long": -2.0,  # people do not chat in paragraphs
        "impersonal": -2.0,  # it says itself that it is none
        "bland": -0.5,  # always fitting, never meant
        "repeated": -2.0,  # a machine's slip
    },
    "specificity": {
        "specific": 4.0,  # words about something
        "bland": -1.0,  # none
    },
}
"""What a feature of 1 adds to a dimension, in points of a scale from 1 to 5. Set by hand; no rating was looked at."""

ORIGINAL = {"relevance": "coherency", "interestingness": "engagingness", "understandability": "fluency"}
"""The dimensions of the original prompts that are others of ours by another name."""
PARTS = ("fluency", "coherency", "consistency", "engagingness")
OVERALL = {
    False: ("humanness", *PARTS),
    True: ("relevance", "specificity", "interestingness", "understandability"),
}
"""What the overall rating is the mean of; True where specificity is asked for, which the original prompt does."""

UNLIKE, ALIKE = -0.5, 1.0
"""Points that a reference moves overall and humanness by: no word in common, and a word F1 of `SAME` or more."""
SAME = 0.5
SPECIFIC = 8
"""Different words of content that make a response fully specific."""
FIT = (8, 25)

PHRASES = {
    "brief": "it has hardly any words",
    "repeated": "it repeats itself",
    "noisy": "its marks or capitals are no sentence's",
    "unfinished": "it breaks off",
    "long": "it is too long for a chat",
    "on_topic": "it takes up what was said last",
    "answers": "it answers the question",
    "evades": "it leaves the question without an answer",
    "asks": "it asks something itself",
    "bland": "it would fit anything",
    "copied": "it repeats the conversation",
    "grounded": "it fits what is known of the speaker",
    "impersonal": "it speaks as a machine does",
    "specific": "it says something specific",
    "fit_length": "its length is usual for a chat",
    "alike": "it is close to the reference",
    "unlike": "it has little in common with the reference",
}


@dataclass(frozen=True)
class Judgement:
    """Unrounded ratings on a scale from 1 to 5, and the features they come from."""

    ratings: Mapping[str, float]
    features: Mapping[str, float]


@dataclass(frozen=True)
class Known:
    """What is derived from a history or a list of facts once and used for every response to it."""

    utterances: tuple[Text, ...]
    trigrams: frozenset[tuple[str, ...]]
    own: frozenset[str]
    """Stems of the next speaker's own utterances; of all lines where they are facts."""
    recent: Mapping[str, float]
    """Stems of the last two utterances: 1 in the last, 0.5 in the one before."""
    asks: bool


@cache
def _words() -> tuple[frozenset[str], frozenset[str], frozenset[str], tuple[str, ...]]:
    """Return common words, first words of answers, words after which a sentence goes on, impersonal phrases."""
    lists = load_yaml(Path(__file__).with_name("_rules_words.yaml"))
    common, answers, unfinished = (frozenset(cast(str, lists[name]).split()) for name in ("common", "answers", "open"))
    return common, answers, unfinished, tuple(cast("list[str]", lists["impersonal"]))


@lru_cache(maxsize=4096)
def text(content: str) -> Text:
    """Return a text whose words are made once."""
    return Text(content, _words()[0])


@lru_cache(maxsize=512)
def known(lines: tuple[str, ...], history: bool) -> Known:
    """Return what a history or a list of facts holds."""
    texts = tuple(map(text, lines))
    own = texts[-2::-2] if history else texts
    recent = {
        stem: weight for weight, part in ((0.5, texts[-2:-1]), (1.0, texts[-1:])) for t in part for stem in t.content
    }
    return Known(
        texts,
        frozenset(trigram for t in texts for trigram in t.trigrams),
        frozenset(stem for t in own for stem in t.content),
        recent,
        bool(texts) and texts[-1].asks,
    )


def judge(request: Request) -> Judgement:
    """Rate a response in every dimension that the rules know."""
    response = text(request.one("response") or "")
    history = known(request.sections.get("history", ()), True)
    facts = known(request.sections.get("facts", ()), False)
    features = _features(response, history, facts)
    ratings = {name: _rating(name, features) for name in WEIGHTS if name != "humanness"}
    ratings |= {name: ratings[ours] for name, ours in ORIGINAL.items()}
    start = math.fsum(ratings[name] for name in PARTS) / len(PARTS)
    ratings["humanness"] = _rating("humanness", features, start)
    if not response.words:
        ratings = dict.fromkeys(ratings, 1.0)
    original = any(name.lower() == "specificity" for name in request.form)
    ratings["overall"] = math.fsum(ratings[name] for name in OVERALL[original]) / len(OVERALL[original])
    reference = request.one("reference")
    if reference and response.words:
        shift = UNLIKE + (ALIKE - UNLIKE) * min(1.0, _f1(response.words, text(reference).words) / SAME)
        features["alike" if shift > 0 else "unlike"] = abs(shift)
        for name in ("overall", "humanness"):
            ratings[name] = _clip(ratings[name] + shift)
    return Judgement(ratings, features)


def rationale(judgement: Judgement, dimensions: Sequence[str]) -> str:
    """Say in a sentence which features moved the ratings most."""
    if not judgement.features:
        return "The response is empty."
    names = {ORIGINAL.get(name, name) for name in dimensions}
    if names & {"overall", "humanness"}:
        names |= set(WEIGHTS)
    effects: defaultdict[str, float] = defaultdict(float)
    effects["alike"] = judgement.features.get("alike", 0.0)
    effects["unlike"] = -judgement.features.get("unlike", 0.0)
    for name in sorted(names & set(WEIGHTS)):
        for feature, weight in WEIGHTS[name].items():
            effects[feature] += weight * judgement.features[feature]
    ranked = sorted(
        ((effect, name) for name, effect in effects.items() if abs(effect) >= 0.25), key=lambda p: -abs(p[0])
    )
    good = [PHRASES[name] for effect, name in ranked if effect > 0][:2]
    bad = [PHRASES[name] for effect, name in ranked if effect < 0][:2]
    if not good and not bad:
        return "Nothing about the response stands out."
    sentence = ", but ".join(" and ".join(found) for found in (good, bad) if found)
    return sentence[0].upper() + sentence[1:] + "."


def _features(response: Text, history: Known, facts: Known) -> dict[str, float]:
    """Return the features of a response that has words; none for one that has not."""
    count = len(response.words)
    if not count:
        return {}
    _, answers, unfinished, impersonal = _words()
    content = response.content
    lower = " ".join(response.words)
    content_answer = len(content) >= 2 or response.words[0] in answers
    trigrams = response.trigrams
    return {
        "brief": float(count < 3),
        "repeated": _repeated(response),
        "noisy": _noise(response.text),
        "unfinished": float(response.words[-1] in unfinished and response.text.rstrip()[-1:].isalnum()),
        "long": min(1.0, max(0, count - LONG) / 40),
        "on_topic": min(1.0, math.fsum(history.recent.get(stem, 0.0) for stem in content) / 2),
        "answers": float(history.asks and content_answer),
        "evades": float(history.asks and not content_answer),
        "asks": float(response.asks),
        "bland": float(len(content) < 2),
        "copied": sum(t in history.trigrams for t in trigrams) / len(trigrams) if trigrams else 0.0,
        "grounded": min(1.0, len(content & (facts.own | history.own)) / 3),
        "impersonal": float(any(f" {phrase} " in f" {lower} " for phrase in impersonal)),
        "specific": min(1.0, len(content) / SPECIFIC),
        "fit_length": float(FIT[0] <= count <= FIT[1]),
    }


def _rating(name: str, features: Mapping[str, float], start: float | None = None) -> float:
    base = BASE[name] if start is None else start
    return _clip(base + math.fsum(weight * features.get(feature, 0.0) for feature, weight in WEIGHTS[name].items()))


def _clip(value: float) -> float:
    return min(5.0, max(1.0, value))


def _repeated(response: Text) -> float:
    """Return the share of words that repeat the word before, or of runs of three that came before, if larger."""
    words, trigrams = response.words, response.trigrams
    doubled = sum(a == b for a, b in pairwise(words)) / len(words)
    again = 1 - len(set(trigrams)) / len(trigrams) if trigrams else 0.0
    return max(doubled, again)


def _noise(content: str) -> float:
    """Return 1 for shouting, else how much of the text is marks, from a tenth (0) to a half (1)."""
    letters = [c for c in content if c.isalpha()]
    if len(letters) > 10 and sum(c.isupper() for c in letters) > len(letters) / 2:
        return 1.0
    marks = sum(not (c.isalnum() or c.isspace()) for c in content) / len(content)
    return min(1.0, max(0.0, (marks - 0.1) / 0.4))


def _f1(one: Sequence[str], other: Sequence[str]) -> float:
    common = (Counter(one) & Counter(other)).total()
    return 2 * common / (len(one) + len(other)) if common else 0.0
