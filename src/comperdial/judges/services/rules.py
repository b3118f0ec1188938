"""A rule-based judge: the same answer to the same prompt, on any machine.

It reads the same prompts as a model. Its ratings come from features of words, not of meaning, and say nothing about language
models. ``rules.yaml`` has the word lists and the weights of the features.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from comperdial.config import load_yaml
from comperdial.judges.requests import Answer, Message
from comperdial.judges.services import Service

VERSION = 1
"""Goes up with every change that can change an answer."""
PAIRS_VERSION = 1
"""The same of answers to pairs."""

Rated = tuple[dict[str, float], str]
"""Ratings by dimension, in lower case; and a rationale, empty if none is asked for."""


class UnreadableError(Exception):
    """A prompt lacks a part that the rules need."""


class Rules(Service):
    """The rule-based judge, for pairs if the parameter ``rules_pairs`` is set."""

    deterministic = True
    concurrency = 512

    def identity(self) -> dict[str, Any]:
        """Return the version of the rules."""
        return {"rules": VERSION}

    async def complete(self, chat: Sequence[Message], parameters: Mapping[str, Any]) -> Answer:
        """Answer like a chat model, or state the problem in a sentence without numbers; tokens are words and punctuation."""
        prompt = "\n".join([message["content"] for message in chat])
        pairs = "rules_pairs" in parameters
        try:
            answer = choose(prompt) if pairs else respond(prompt)
        except UnreadableError as error:
            answer = f"This prompt cannot be {'answered' if pairs else 'rated'}: {error}."
        read, written = (len(_TOKENS.findall(text)) for text in (prompt, answer))
        return Answer(answer, "stop", read, written, f"rules-{VERSION}")


def respond(prompt: str) -> str:
    """Return the completed form of a prompt."""
    request = read(prompt)
    ratings, why = rate(request)
    form = request.instructions.form
    if len(form) == 1:
        answer = f"{ratings[form[0].lower()]:g}"
    else:
        answer = "\n".join([f"{name} - {ratings[name.lower()]:g}" for name in form if name.lower() in ratings])
    return f"{answer}\nRationale: {why}" if request.instructions.rationale else answer


def choose(prompt: str) -> str:
    """Return the number of the conversation with the higher overall rating; in a tie the first."""
    conversations = dict(_PAIR.findall(prompt))
    first, second = (_overall(conversations.get(number, ""), f"Speaker {number}") for number in "12")
    return "2" if second > first else "1"


# A judged text is one line that begins with its speaker, so that it cannot be mistaken for a header.
_PAIR = re.compile(r"^### Conversation ([12]):\n(.*?)(?=^### )", re.MULTILINE | re.DOTALL)
_FORM = "### Output Format:\noverall - x\n### Instruction:\nRate it from 1 (worst) to 5 (best).\n"


def _overall(conversation: str, judged: str) -> float:
    """Return the overall rating of the judged speaker, from 1 to 5."""
    lines = conversation.rstrip("\n").split("\n")
    # The rules rate the last speaker, so drop what follows the judged speaker's last line.
    while lines and not lines[-1].startswith(f"{judged}: "):
        lines.pop()
    if not lines:
        raise UnreadableError(f"{judged.replace('1', 'one').replace('2', 'two')} says nothing")
    return rate(read("\n".join(["### Conversation:", *lines, _FORM])))[0]["overall"]


# Prompt structure. A section starts with its header alone on a line; judged texts are single lines that do not look like
# headers. The first non-blank line after the header of a response or reference is that text; in a section with a prefix, every
# line is data. The rest gives the requested ratings and the scale.

_HEADERS = {
    "history": ("Context:", "Conversation History:"),
    "reference": ("Reference response:", "Corresponding Reference Response:"),
    "facts": ("Corresponding Fact:",),
    "response": ("Response:",),
    "turn scores": ("Dialogue Turn Scores:",),
    "responses": ("Responses:",),
    "form": ("Output Format:", "Evaluation Form:", "Evaluation Form (scores ONLY):"),
    "": ("After the Scores:",),
}
_MARKS = ("# ", "## ", "### ")
_SECTIONS = {mark + header: name for name, headers in _HEADERS.items() for header in headers for mark in ("", *_MARKS)}
# The mark is required: a judged text could consist of this word and a colon.
_SECTIONS |= {f"{mark}Conversation:": "conversation" for mark in _MARKS}
_ONE_LINE = frozenset({"response", "reference"})
# Prefix of a line of data.
_PREFIXES = {
    "history": re.compile(r"^[^:]*: ?"),
    "facts": re.compile(r"^- ?"),
    "turn scores": re.compile(r"^Turn ?\d+ Score - ?"),
    "responses": re.compile(r"^Turn ?\d+: ?"),
    "conversation": re.compile(""),
}
_FORM_LINE = re.compile(r"(?:- )?([A-Za-z][A-Za-z ]*?) ?(?:- [xX]|:)")
_SCALE = re.compile(r"(?:of |from |between |\()(\d{1,2})(?: \([^)]*\))?(?: ?[-–] ?| to | and )(\d{1,2})\b")
_TOKENS = re.compile(r"\w+|[^\w\s]")


class Instructions(NamedTuple):
    """A prompt without the judged texts, and what it requests."""

    text: str
    form: tuple[str, ...]  # the dimensions, as written in the form
    low: int
    high: int
    rationale: bool

    @property
    def names(self) -> tuple[str, ...]:
        """Return the dimensions in lower case."""
        return tuple([name.lower() for name in self.form])


class Request(NamedTuple):
    """A parsed prompt."""

    instructions: Instructions
    sections: dict[str, tuple[str, ...]]  # the judged texts, by section


def read(prompt: str) -> Request:
    """Parse the sections of a prompt; raise UnreadableError if the form, its scale or the judged text is missing."""
    frame: list[str] = []
    lines: dict[str, list[str]] = {}
    name, part = "", frame
    for line in prompt.split("\n"):
        if line in _SECTIONS or line[:1] == "#":
            name = _SECTIONS.get(line.rstrip(), "")
            part = lines.setdefault(name, []) if name in _ONE_LINE or name in _PREFIXES else frame
            frame.append(line)
        elif name not in _ONE_LINE:
            part.append(line)
        elif line:
            (frame if part else part).append(line)
    instructions = _instructions("\n".join(frame))
    # A response may be empty.
    sections = {
        name: ("\n".join(part),)
        if name in _ONE_LINE
        else tuple([_PREFIXES[name].sub("", line) for line in part if line not in ("", "(none)")])
        for name, part in lines.items()
    }
    if not (sections.get("response") or sections.get("responses") or sections.get("conversation")):
        raise UnreadableError("it has no response to rate")
    return Request(instructions, sections)


def form_of(text: str) -> list[str]:
    """Return the names of the ratings in the form of a prompt or template, as written there."""
    form: list[str] = []
    inside = False
    for line in text.split("\n"):
        if line in _SECTIONS or line.startswith("#"):
            inside = _SECTIONS.get(line) == "form"
        elif inside and (match := _FORM_LINE.fullmatch(line.strip())) and match[1] != "Rationale":
            form.append(match[1])
    return form


@lru_cache(maxsize=64)
def _instructions(text: str) -> Instructions:
    form, scale = form_of(text), _SCALE.search(text)
    if not form:
        raise UnreadableError("it has no form that says which ratings to give")
    low, high = (int(scale[1]), int(scale[2])) if scale else (0, 0)
    if not low < high:
        raise UnreadableError("it does not say on which scale to rate")
    return Instructions(text, tuple(form), low, high, "Rationale:" in text)


def rate(request: Request) -> Rated:
    """Return ratings on the requested scale, and a rationale. Unknown dimensions are left out.

    Raises
    ------
    UnreadableError
        If all dimensions are unknown, or a dialogue's turn scores are missing or invalid.
    """
    sections, asked = request.sections, request.instructions
    if sections.get("responses"):
        rated, why = _rate_dialogue(sections)
    else:
        whole = bool(sections.get("conversation")) and "response" not in sections
        rated, why = _rate_conversation(request) if whole else _rate_response(request)
        # Convert from a scale of 1 to 5 to the requested one.
        size, steps = asked.high - asked.low, 10 if whole else 2
        rated = {name: _round(asked.low + (value - 1) / 4 * size, steps) for name, value in rated.items()}
    ratings = {name: rated[name] for name in asked.names if name in rated}
    if not ratings:
        raise UnreadableError(f"the rules know nothing about {', '.join(asked.names)}")
    return ratings, why


class _Table(NamedTuple):
    """Weights of features; a part of ``rules.yaml``."""

    base: dict[str, float]
    weights: dict[str, dict[str, float]]
    phrases: dict[str, str]

    def rating(self, name: str, features: Mapping[str, float], base: float | None = None) -> float:
        start = self.base[name] if base is None else base
        return _clip(start + math.fsum([weight * features[key] for key, weight in self.weights[name].items()]))

    def rationale(self, effects: Mapping[str, float], subject: str) -> str:
        """Describe in a sentence which features affected the ratings most."""
        ranked = sorted((name for name in effects if abs(effects[name]) >= 0.25), key=lambda name: -abs(effects[name]))
        good = [self.phrases[name] for name in ranked if effects[name] > 0][:2]
        bad = [self.phrases[name] for name in ranked if effects[name] <= 0][:2]
        sentence = ", but ".join([" and ".join(part) for part in (good, bad) if part])
        return f"{sentence[0].upper()}{sentence[1:]}." if sentence else f"Nothing about the {subject} stands out."


_RULES = load_yaml(Path(__file__).with_name("rules.yaml"))
_RESPONSE, _DIALOGUE, _CONVERSATION = (_Table(**_RULES[name]) for name in ("response", "dialogue", "conversation"))
_COMMON, _ANSWERS, _OPEN = (frozenset(_RULES[name].split()) for name in ("common", "answers", "open"))
_IMPERSONAL = [f" {phrase} " for phrase in _RULES["impersonal"]]
_LAST = frozenset(phrase.split()[-1] for phrase in _IMPERSONAL)
_WORDS = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_MARK = re.compile(r"[^\w\s]|_")
_STEM = 5  # shared letters of the forms of a word, usually followed by plural, -ed or -ing
_LONG = 20  # words above which a response is too long (the criterion of CPDScore-Dialogue)
_FIT = (8, 25)  # words of a turn with human-like length
_SPECIFIC = 8  # distinct content words of a fully specific text

_Run = tuple[str, ...]


class Text:
    """A text, its words in lower case, and the stems of its content words."""

    __slots__ = ("asks", "content", "text", "trigrams", "words")

    def __init__(self, text: str) -> None:
        self.text = text
        self.words: _Run = tuple(_WORDS.findall(text.lower().replace("’", "'")))
        self.content = frozenset([word[:_STEM] for word in {*self.words} - _COMMON if len(word) > 1])
        self.trigrams: Sequence[_Run] = [*zip(self.words, self.words[1:], self.words[2:], strict=False)]
        self.asks = "?" in text or "？" in text or "؟" in text

    def features(self) -> dict[str, float]:
        """Return the context-independent features of a text."""
        count = len(self.words)
        return {
            "asks": float(self.asks),
            "specific": min(1.0, len(self.content) / _SPECIFIC),
            "fit_length": float(_FIT[0] <= count <= _FIT[1]),
            "bland": float(len(self.content) < 2),
            "long": min(1.0, max(0, count - _LONG) / 40),
        }


_text = lru_cache(maxsize=4096)(Text)


def _clip(value: float, low: float = 1.0, high: float = 5.0) -> float:
    return min(high, max(low, value))


def _round(value: float, steps: int) -> float:
    """Round to halves (2 steps) or tenths (10); ties go up."""
    return math.floor(round(value * steps, 6) + 0.5) / steps


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _share(runs: Collection[_Run], known: Collection[_Run]) -> float:
    return sum(map(known.__contains__, runs)) / len(runs) if runs else 0.0


def _variation(counts: Sequence[int]) -> float:
    """Return how much lengths vary, from 0 to 1."""
    mean = _mean(counts)
    return min(1.0, 2 * math.sqrt(_mean([(count - mean) ** 2 for count in counts])) / mean) if mean else 0.0


# One response

# Dimensions of the original prompts that correspond to ours under another name.
_ORIGINAL = {"relevance": "coherency", "interestingness": "engagingness", "understandability": "fluency"}
_PARTS = ("fluency", "coherency", "consistency", "engagingness")
# Components of the overall rating; True if specificity is requested, as in the original prompt.
_OVERALL = {False: ("humanness", *_PARTS), True: ("coherency", "specificity", "engagingness", "fluency")}
# Points by which a reference changes the overall rating and humanness: no common word, and a word F1 of `_SAME` or more.
_UNLIKE, _ALIKE, _SAME = -0.5, 1.0, 0.5


def _rate_response(request: Request) -> Rated:
    sections, asked = request.sections, request.instructions
    response = _text(sections.get("response", ("",))[0])
    if not response.words:
        return dict.fromkeys((*_RESPONSE.weights, *_ORIGINAL, "overall"), 1.0), "The response is empty."
    history, facts = (tuple(map(_text, sections.get(name, ()))) for name in ("history", "facts"))
    features = _features(response, history, facts)
    ratings = {name: _RESPONSE.rating(name, features) for name in _RESPONSE.base}
    ratings["humanness"] = _RESPONSE.rating("humanness", features, _mean([ratings[name] for name in _PARTS]))
    ratings["overall"] = _mean([ratings[name] for name in _OVERALL["specificity" in asked.names]])
    effects: defaultdict[str, float] = defaultdict(float)
    if reference := sections.get("reference", ("",))[0]:
        words = _text(reference).words
        f1 = 2 * (Counter(response.words) & Counter(words)).total() / (len(response.words) + len(words))
        shift = _UNLIKE + (_ALIKE - _UNLIKE) * min(1.0, f1 / _SAME)
        effects["alike" if shift > 0 else "unlike"] = shift
        for name in ("overall", "humanness"):
            ratings[name] = _clip(ratings[name] + shift)
    ratings |= {name: ratings[ours] for name, ours in _ORIGINAL.items()}
    if not asked.rationale:
        return ratings, ""
    names = {_ORIGINAL.get(name, name) for name in asked.names}
    # In this order, since floating-point sums and ties depend on it.
    for name in sorted(_RESPONSE.weights):
        if name in names or "overall" in names or "humanness" in names:
            for feature, weight in _RESPONSE.weights[name].items():
                effects[feature] += weight * features[feature]
    return ratings, _RESPONSE.rationale(effects, "response")


def _features(response: Text, history: Sequence[Text], facts: Sequence[Text]) -> dict[str, float]:
    words, content, trigrams = response.words, response.content, response.trigrams
    asked = bool(history) and history[-1].asks
    last, before = (history[-place].content if len(history) >= place else frozenset[str]() for place in (1, 2))
    # Facts about the speaker: given facts, and the speaker's own earlier utterances.
    known = frozenset[str]().union(*(text.content for text in (*facts, *history[-2::-2])))
    answers = len(content) >= 2 or words[0] in _ANSWERS
    doubled = sum(one == other for one, other in pairwise(words)) / len(words)
    # Most texts contain no last word of a phrase, so skip the search for phrases.
    impersonal = not _LAST.isdisjoint(words) and any(phrase in f" {' '.join(words)} " for phrase in _IMPERSONAL)
    return response.features() | {
        "brief": float(len(words) < 3),
        "repeated": max(doubled, 1 - len({*trigrams}) / len(trigrams)) if trigrams else doubled,
        "noisy": _noise(response.text),
        "unfinished": float(words[-1] in _OPEN and response.text.rstrip()[-1:].isalnum()),
        "on_topic": min(1.0, (len(content & last) + 0.5 * len(content & before - last)) / 2),
        "answers": float(asked and answers),
        "evades": float(asked and not answers),
        "copied": _share(trigrams, {run for text in history for run in text.trigrams}),
        "grounded": min(1.0, len(content & known) / 3),
        "impersonal": float(impersonal),
    }


def _noise(text: str) -> float:
    """Return 1 for shouting, else the share of punctuation, scaled from a tenth (0) to a half (1)."""
    letters = [*filter(str.isalpha, text)]
    if len(letters) > 10 and sum(map(str.isupper, letters)) > len(letters) / 2:
        return 1.0
    return _clip((len(_MARK.findall(text)) / len(text) - 0.1) / 0.4, 0.0, 1.0)


# A dialogue, from its turn scores and responses: the second step of CPDScore-Dialogue, including its branches


def _rate_dialogue(sections: Mapping[str, Sequence[str]]) -> Rated:
    scores = [_turn_score(score) for score in sections.get("turn scores", ())]
    if not scores:
        raise UnreadableError("it has no turn scores")
    overall = _round(_mean(scores), 10)
    features = _of_responses([_text(line) for line in sections["responses"]])
    effects = {name: weight * features[name] for name, weight in _DIALOGUE.weights["interaction"].items()}
    total = _DIALOGUE.base["interaction"] + math.fsum(effects.values())
    interaction, without_length = (_round(_clip(value), 10) for value in (total, total - effects["long"]))
    final = _round((overall + interaction) / 2, 10)
    if overall < 4:
        reason = "the turn scores are below four, so both scores count"
    elif interaction < 3 <= without_length:  # low, but not because of the length of responses
        reason = "responses are so long that the interaction score counts too"
    else:
        final, reason = overall, "the turn scores are four or higher, so they alone count"
    most = max(effects, key=lambda name: abs(effects[name]))
    first = _DIALOGUE.phrases[most] if abs(effects[most]) >= 0.25 else "nothing about the responses stands out"
    names = ("overall dialogue turn score", "dialogue interaction score", "final score")
    return dict(zip(names, (overall, interaction, final), strict=True)), f"{first.capitalize()}; {reason}."


def _turn_score(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 1 <= value <= 5:
        raise UnreadableError("a turn score is no number from 1 to 5")
    return value


def _of_responses(responses: Sequence[Text]) -> dict[str, float]:
    counts = [len(response.words) for response in responses]
    excess = [max(0, count - _LONG) for count in counts]
    stems = [stem for response in responses for stem in response.content]
    sets = [(response.words[:3], frozenset(response.words)) for response in responses]
    # Similarity of two responses: 1 if their first three words are equal, else the share of common words.
    alike = [1.0 if a == b else len(one & other) / len(one | other) for (a, one), (b, other) in combinations(sets, 2)]
    return {
        "patterned": _mean(alike) if alike else 0.0,
        # Any excess counts at least 0.4; a mean excess of twenty words counts 1.
        "long": 0.4 + 0.6 * min(1.0, _mean(excess) / _LONG) if any(excess) else 0.0,
        "varied_length": _variation(counts),
        "vocabulary": len(set(stems)) / len(stems) if stems else 0.0,
    }


# A whole conversation, from the last speaker's utterances: features are means over them; diversity is computed over all of them
# together

_VOCABULARY = 40  # distinct content words of a full vocabulary in a whole conversation
_WINDOW = 50  # window for counting distinct words, so that long conversations are not penalized


def _rate_conversation(request: Request) -> Rated:
    lines = [line.partition(": ") for line in request.sections["conversation"]]
    speakers = [speaker.removesuffix(":") for speaker, _, _ in lines]
    spoken = [(speaker == speakers[-1], _text(text)) for speaker, (_, _, text) in zip(speakers, lines, strict=True)]
    own = [text for ours, text in spoken if ours]
    if not any(text.words for text in own):
        return dict.fromkeys((*_CONVERSATION.base, "overall"), 1.0), "The last speaker says nothing."
    each = _of_utterances(spoken)
    words = [word for text in own for word in text.words]
    pairs = [pair for text in own for pair in pairwise(text.words)]
    features = {name: _mean([one[name] for one in each]) for name in each[0]} | {
        # The shares of distinct units that map to 0 and 1; some repetition is normal.
        "words": _different(words, 0.4, 0.9),
        "pairs": _different(pairs, 0.7, 1.0) if pairs else 0.0,
        "vocabulary": min(1.0, len({stem for text in own for stem in text.content}) / _VOCABULARY),
        "varied_length": _variation([len(text.words) for text in own]),
    }
    ratings = {name: _CONVERSATION.rating(name, features) for name in _CONVERSATION.base}
    ratings["overall"] = _mean(list(ratings.values()))
    weights = _CONVERSATION.weights.values()
    effects = {key: math.fsum([one.get(key, 0.0) for one in weights]) * value for key, value in features.items()}
    return ratings, _CONVERSATION.rationale(effects, "conversation") if request.instructions.rationale else ""


def _of_utterances(spoken: Sequence[tuple[bool, Text]]) -> list[dict[str, float]]:
    """Return the features of each of the last speaker's utterances, given the preceding text."""
    features: list[dict[str, float]] = []
    known: dict[bool, set[_Run]] = {True: set(), False: set()}
    used: set[str] = set()
    theirs: list[frozenset[str]] = []
    asked = False
    for ours, text in spoken:
        content = text.content
        runs = text.trigrams or (
            [text.words] if text.words else []
        )  # the whole text for utterances of one or two words
        if ours:
            follows_on = {
                "on_topic": min(1.0, len(content & frozenset[str]().union(*theirs[-2:])) / 2),
                "answers": float(asked and len(content) >= 2),
                "evades": float(asked and len(content) < 2),
                "again": _share(runs, known[True]),
                "copied": _share(runs, known[False]),
            }
            features.append(follows_on | text.features() | {"new": min(1.0, len(content - used) / (_SPECIFIC / 2))})
        else:
            theirs.append(content)
        asked = text.asks and not ours
        known[ours].update(runs)
        used |= content
    return features


def _different(units: Sequence[object], low: float, high: float) -> float:
    """Return the mean share of distinct units per window, scaled from 0 (low) to 1 (high); the last window is full too."""
    end = max(0, len(units) - _WINDOW)
    windows = [units[start : start + _WINDOW] for start in dict.fromkeys([*range(0, max(1, end), _WINDOW), end])]
    share = _mean([len(set(window)) / len(window) for window in windows])
    return _clip((share - low) / (high - low), 0.0, 1.0)
