"""Rates by rules, without a model: the same answer to the same prompt, on any machine.

It reads the same prompt as any model would. Its ratings are no language model's: they count features of words, not of
meaning. The words and what each feature counts for are in ``rules.yaml``.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from operator import eq, itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from comperdial.config import load_yaml
from comperdial.judges.requests import Answer, Message
from comperdial.judges.services import Service

VERSION = 1
"""Goes up with every change that can change an answer."""
PAIRS_VERSION = 1
"""The same of answers to pairs."""


class Rules(Service):
    """The rule-based judge."""

    deterministic = True
    concurrency = 512

    def identity(self) -> dict[str, Any]:
        """Return the version of the rules."""
        return {"rules": VERSION}

    async def complete(self, chat: Sequence[Message], parameters: Mapping[str, Any]) -> Answer:
        """Answer as a chat model would, with words and marks counted as tokens."""
        return respond(chat)


class PairRules(Rules):
    """The same judge of pairs: it chooses the conversation that it rates higher all in all, of equal ones the first."""

    def identity(self) -> dict[str, Any]:
        """Return the versions of the rules."""
        return {"rules": VERSION, "rules_pairs": PAIRS_VERSION}

    async def complete(self, chat: Sequence[Message], parameters: Mapping[str, Any]) -> Answer:
        """Answer 1 or 2, or say in a sentence without a number why not."""
        prompt = "\n".join(message["content"] for message in chat)
        conversations = dict(_PAIR.findall(prompt))
        try:
            first, second = (_overall(conversations.get(number, ""), f"Speaker {number}") for number in "12")
            answer = "2" if second > first else "1"
        except UnreadableError as error:
            answer = f"This prompt cannot be answered: {error}."
        return Answer(answer, "stop", count_tokens(prompt), count_tokens(answer), f"rules-{VERSION}")


# A text under judgement is one line that begins with its speaker, so that it cannot be taken for a header.
_PAIR = re.compile(r"^### Conversation ([12]):\n(.*?)(?=^### )", re.MULTILINE | re.DOTALL)
_FORM = "### Output Format:\noverall - x\n### Instruction:\nRate it from 1 (worst) to 5 (best).\n"


def _overall(conversation: str, judged: str) -> float:
    """Return how the rules rate whoever is judged, from 1 to 5."""
    lines = conversation.rstrip("\n").split("\n")
    # The rules rate the last speaker: what follows the judged one's last line is no part of that.
    while lines and not lines[-1].startswith(f"{judged}: "):
        lines.pop()
    if not lines:
        raise UnreadableError(f"{judged.replace('1', 'one').replace('2', 'two')} says nothing")
    return rate(read("\n".join(["### Conversation:", *lines, _FORM])))[0]["overall"]


def respond(messages: Sequence[Message]) -> Answer:
    """Return the form of a prompt filled in, or a sentence without a number that says why it cannot be rated."""
    prompt = "\n".join([message["content"] for message in messages])
    try:
        request = read(prompt)
        ratings, why = rate(request)
    except UnreadableError as error:
        answer = f"This prompt cannot be rated: {error}."
    else:
        form = request.instructions.form
        if len(form) == 1:
            answer = f"{ratings[form[0].lower()]:g}"
        else:
            answer = "\n".join([f"{name} - {ratings[name.lower()]:g}" for name in form if name.lower() in ratings])
        if request.instructions.rationale:
            answer = f"{answer}\nRationale: {why}"
    return Answer(answer, "stop", count_tokens(prompt), count_tokens(answer), f"rules-{VERSION}")


def rate(request: Request) -> tuple[dict[str, float], str]:
    """Return ratings by dimension, in lower case, on the scale asked for; and a rationale, if one is asked for.

    A dimension that the rules do not know is left out, never guessed.

    Raises
    ------
    UnreadableError
        When the rules know none of the dimensions, or a dialogue's turn scores are missing or invalid.
    """
    sections, names = request.sections, request.instructions.names
    if sections.get("responses"):
        rated, why = _rate_dialogue(request)
    elif sections.get("conversation") and "response" not in sections:
        rated, why = _rate_conversation(request)
    else:
        rated, why = _rate_response(request)
    ratings = {name: rated[name] for name in names if name in rated}
    if not ratings:
        raise UnreadableError(f"the rules know nothing about {', '.join(names)}")
    return ratings, why


# ---- What a prompt says. A section starts with its header alone on a line. Texts under judgement cannot start
# one: they are one line each, and what renders them keeps them from looking like a header. The first line that is not
# blank after the header of a response or reference is that text; every line under the header of a history, of facts, of
# turn scores, of responses or of a conversation is data (of the last, with its speaker). What the form asks for, on
# which scale, is read from the remaining lines alone.

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
_SECTIONS = {
    mark + header: name
    for name, headers in _HEADERS.items()
    for header in headers
    for mark in ("", "# ", "## ", "### ")
}
# With a mark only: nothing keeps a text under judgement from being that word and a colon.
_SECTIONS |= {f"{mark} Conversation:": "conversation" for mark in ("#", "##", "###")}
_ONE_LINE = frozenset({"response", "reference"})
# What precedes the text in a line of data.
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


class UnreadableError(Exception):
    """A prompt lacks a part that the rules need."""


class Instructions(NamedTuple):
    """A prompt without the texts under judgement, and what it asks for."""

    text: str
    form: tuple[str, ...]  # the dimensions, as the form writes them
    names: tuple[str, ...]  # the same in lower case
    low: int
    high: int
    rationale: bool


class Request(NamedTuple):
    """What a prompt says."""

    instructions: Instructions
    sections: dict[str, tuple[str, ...]]  # the texts under judgement, by section


def read(prompt: str) -> Request:
    """Find the sections of a prompt.

    Raises
    ------
    UnreadableError
        When the form, its scale or what is to be judged is missing.
    """
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
    sections = {name: _section(name, part) for name, part in lines.items()}
    if not (sections.get("response") or sections.get("responses") or sections.get("conversation")):
        raise UnreadableError("it has no response to rate")
    return Request(instructions, sections)


def _section(name: str, lines: list[str]) -> tuple[str, ...]:
    """Return the texts of a section without their prefixes; a response may be the empty text."""
    if name in _ONE_LINE:
        return ("\n".join(lines),)
    return tuple([_PREFIXES[name].sub("", line) for line in lines if line not in ("", "(none)")])


@lru_cache(maxsize=64)
def _instructions(text: str) -> Instructions:
    form: list[str] = []
    inside = False
    for line in text.split("\n"):
        if line in _SECTIONS:
            inside = _SECTIONS[line] == "form"
        elif line.startswith("#"):
            inside = False
        elif inside and (match := _FORM_LINE.fullmatch(line.strip())) and match[1] != "Rationale":
            form.append(match[1])
    if not form:
        raise UnreadableError("it has no form that says which ratings to give")
    scale = _SCALE.search(text)
    low, high = (int(scale[1]), int(scale[2])) if scale else (0, 0)
    if not low < high:
        raise UnreadableError("it does not say on which scale to rate")
    names = tuple(name.lower() for name in form)
    return Instructions(text, tuple(form), names, low, high, "Rationale:" in text)


def count_tokens(text: str) -> int:
    """Return the number of words and marks of a text, the rules' measure of usage."""
    return len(_TOKENS.findall(text))


# ---- Words, and what features count for


class _Table(NamedTuple):
    base: dict[str, float]
    weights: dict[str, dict[str, float]]
    phrases: dict[str, str]

    def rating(self, name: str, features: Mapping[str, float], base: float | None = None) -> float:
        start = self.base[name] if base is None else base
        return _clip(start + math.fsum([weight * features[key] for key, weight in self.weights[name].items()]))

    def rationale(self, effects: Mapping[str, float], subject: str) -> str:
        """Say in a sentence which features moved the ratings most."""
        ranked = [(abs(effect), effect > 0, name) for name, effect in effects.items() if abs(effect) >= 0.25]
        ranked.sort(key=itemgetter(0), reverse=True)
        good = [self.phrases[name] for _, positive, name in ranked if positive][:2]
        bad = [self.phrases[name] for _, positive, name in ranked if not positive][:2]
        sentence = ", but ".join([" and ".join(part) for part in (good, bad) if part])
        return f"{sentence[0].upper()}{sentence[1:]}." if sentence else f"Nothing about the {subject} stands out."


_RULES = load_yaml(Path(__file__).with_name("rules.yaml"))
_RESPONSE, _DIALOGUE, _CONVERSATION = (_Table(**_RULES[name]) for name in ("response", "dialogue", "conversation"))
_COMMON, _ANSWERS, _OPEN = (frozenset(_RULES[name].split()) for name in ("common", "answers", "open"))
_IMPERSONAL = [f" {phrase} " for phrase in _RULES["impersonal"]]
_LAST = frozenset(phrase.split()[-1] for phrase in _IMPERSONAL)
_WORDS = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_MARK = re.compile(r"[^\w\s]|_")
_STEM = 5  # letters that a word's forms are taken to share: a plural, an -ed or an -ing mostly lies behind them
_LONG = 20  # words over which a response is too long (the criterion of CPDScore-Dialogue)
_FIT = (8, 25)  # words of a turn that is as long as people's are
_SPECIFIC = 8  # different words of content that make a text fully specific

_Run = tuple[str, ...]


class Text:
    """A text, its words in lower case, and the stems of those that are about something."""

    __slots__ = ("asks", "content", "text", "trigrams", "words")

    def __init__(self, text: str) -> None:
        self.text = text
        self.words: _Run = tuple(_WORDS.findall(text.lower().replace("’", "'")))
        self.content = frozenset([word[:_STEM] for word in {*self.words} - _COMMON if len(word) > 1])
        self.trigrams: Sequence[_Run] = [*zip(self.words, self.words[1:], self.words[2:], strict=False)]
        self.asks = "?" in text or "？" in text or "؟" in text

    def features(self) -> dict[str, float]:
        """Return the features of a text by itself, whatever it follows on."""
        count = len(self.words)
        return {
            "asks": float(self.asks),
            "specific": min(1.0, len(self.content) / _SPECIFIC),
            "fit_length": float(_FIT[0] <= count <= _FIT[1]),
            "bland": float(len(self.content) < 2),
            "long": min(1.0, max(0, count - _LONG) / 40),
        }


_text = lru_cache(maxsize=4096)(Text)


def _clip(value: float) -> float:
    return 1.0 if value < 1 else 5.0 if value > 5 else value


def _round(value: float, steps: int) -> float:
    """Round to a half (2 steps) or a tenth (10), upwards between two."""
    return math.floor(round(value * steps, 6) + 0.5) / steps


def _scaled(ratings: Mapping[str, float], asked: Instructions, steps: int) -> dict[str, float]:
    """Return the ratings asked for, from a scale of 1 to 5 on the one asked for, rounded."""
    low, size = asked.low, asked.high - asked.low
    return {name: _round(low + (ratings[name] - 1) / 4 * size, steps) for name in asked.names if name in ratings}


def _share(runs: Collection[_Run], known: Collection[_Run]) -> float:
    return sum(map(known.__contains__, runs)) / len(runs) if runs else 0.0


def _variation(counts: Sequence[int]) -> float:
    """Return from 0 to 1 how much lengths vary."""
    mean = math.fsum(counts) / len(counts)
    spread = math.sqrt(math.fsum((count - mean) ** 2 for count in counts) / len(counts))
    return min(1.0, 2 * spread / mean) if mean else 0.0


# ---- One response

# The dimensions of the original prompts that are others of ours by another name.
_ORIGINAL = {"relevance": "coherency", "interestingness": "engagingness", "understandability": "fluency"}
_PARTS = ("fluency", "coherency", "consistency", "engagingness")
# What the overall rating is the mean of; True where specificity is asked for, which the original prompt does.
_OVERALL = {False: ("humanness", *_PARTS), True: ("coherency", "specificity", "engagingness", "fluency")}
# Points that a reference moves overall and humanness by: no word in common, and a word F1 of `_SAME` or more.
_UNLIKE, _ALIKE, _SAME = -0.5, 1.0, 0.5


def _rate_response(request: Request) -> tuple[dict[str, float], str]:
    sections, asked = request.sections, request.instructions
    response = _text(sections.get("response", ("",))[0])
    if not response.words:
        worst = dict.fromkeys((*_RESPONSE.weights, *_ORIGINAL, "overall"), 1.0)
        return _scaled(worst, asked, 2), "The response is empty."
    history, facts = (tuple(map(_text, sections.get(name, ()))) for name in ("history", "facts"))
    features = _features(response, history, facts)
    ratings = {name: _RESPONSE.rating(name, features) for name in _RESPONSE.base}
    start = math.fsum([ratings[name] for name in _PARTS]) / len(_PARTS)
    ratings["humanness"] = _RESPONSE.rating("humanness", features, start)
    parts = _OVERALL["specificity" in asked.names]
    ratings["overall"] = math.fsum([ratings[name] for name in parts]) / len(parts)
    effects: defaultdict[str, float] = defaultdict(float)
    if reference := sections.get("reference", ("",))[0]:
        shift = _UNLIKE + (_ALIKE - _UNLIKE) * min(1.0, _f1(response.words, _text(reference).words) / _SAME)
        effects["alike" if shift > 0 else "unlike"] = shift
        for name in ("overall", "humanness"):
            ratings[name] = _clip(ratings[name] + shift)
    ratings |= {name: ratings[ours] for name, ours in _ORIGINAL.items()}
    if not asked.rationale:
        return _scaled(ratings, asked, 2), ""
    names = {_ORIGINAL.get(name, name) for name in asked.names}
    # In this order, as floating sums and ties depend on it.
    for name in sorted(_RESPONSE.weights):
        if name in names or "overall" in names or "humanness" in names:
            for feature, weight in _RESPONSE.weights[name].items():
                effects[feature] += weight * features[feature]
    return _scaled(ratings, asked, 2), _RESPONSE.rationale(effects, "response")


def _features(response: Text, history: Sequence[Text], facts: Sequence[Text]) -> dict[str, float]:
    words, content, trigrams = response.words, response.content, response.trigrams
    asked = bool(history) and history[-1].asks
    last, before = (history[-place].content if len(history) >= place else frozenset[str]() for place in (1, 2))
    # What is known of the speaker: facts, and the speaker's own utterances, every other one before the last.
    known = frozenset[str]().union(*(text.content for text in (*facts, *history[-2::-2])))
    answers = len(content) >= 2 or words[0] in _ANSWERS
    doubled = sum(map(eq, words, words[1:])) / len(words)
    open_ended = words[-1] in _OPEN and response.text.rstrip()[-1:].isalnum()
    # Most texts have none of the last words, and need not be searched for the phrases.
    impersonal = not _LAST.isdisjoint(words) and any(phrase in f" {' '.join(words)} " for phrase in _IMPERSONAL)
    return response.features() | {
        "brief": float(len(words) < 3),
        "repeated": max(doubled, 1 - len({*trigrams}) / len(trigrams)) if trigrams else doubled,
        "noisy": _noise(response.text),
        "unfinished": float(open_ended),
        "on_topic": min(1.0, (len(content & last) + 0.5 * len(content & before - last)) / 2),
        "answers": float(asked and answers),
        "evades": float(asked and not answers),
        "copied": _share(trigrams, {run for text in history for run in text.trigrams}),
        "grounded": min(1.0, len(content & known) / 3),
        "impersonal": float(impersonal),
    }


def _noise(text: str) -> float:
    """Return 1 for shouting, else how much of the text is marks, from a tenth (0) to a half (1)."""
    if sum(map(str.isupper, text)) > 5:
        letters = [*filter(str.isalpha, text)]
        if len(letters) > 10 and sum(map(str.isupper, letters)) > len(letters) / 2:
            return 1.0
    return min(1.0, max(0.0, (len(_MARK.findall(text)) / len(text) - 0.1) / 0.4))


def _f1(one: _Run, other: _Run) -> float:
    common = sum([min(one.count(word), other.count(word)) for word in {*one} & {*other}])
    return 2 * common / (len(one) + len(other))


# ---- A dialogue, by its turn scores and responses: the second step of CPDScore-Dialogue, its branches included


def _rate_dialogue(request: Request) -> tuple[dict[str, float], str]:
    scores = [_turn_score(score) for score in request.sections.get("turn scores", ())]
    if not scores:
        raise UnreadableError("it has no turn scores")
    overall = _round(math.fsum(scores) / len(scores), 10)
    features = _of_responses([_text(line) for line in request.sections["responses"]])
    effects = {name: weight * features[name] for name, weight in _DIALOGUE.weights["interaction"].items()}
    total = _DIALOGUE.base["interaction"] + math.fsum(effects.values())
    interaction, without_length = (_round(_clip(value), 10) for value in (total, total - effects["long"]))
    final = _round((overall + interaction) / 2, 10)
    if overall < 4:
        reason = "the turn scores are below four, so both scores count"
    elif interaction < 3 <= without_length:  # low, and not without the length of responses
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
    # Likeness of two: 1 for the same first three words, else the share of words in common.
    alike = [1.0 if a == b else len(one & other) / len(one | other) for (a, one), (b, other) in combinations(sets, 2)]
    return {
        "patterned": math.fsum(alike) / len(alike) if alike else 0.0,
        # One is enough to be noticed; from twenty words over in the mean it cannot get worse.
        "long": 0.4 + 0.6 * min(1.0, math.fsum(excess) / len(excess) / _LONG) if any(excess) else 0.0,
        "varied_length": _variation(counts),
        "vocabulary": len(set(stems)) / len(stems) if stems else 0.0,
    }


# ---- A whole conversation, by what the last speaker says in it. A feature is counted for each of that speaker's
# utterances, and the mean is taken; those of diversity are counted over all of them together.

_VOCABULARY = 40  # different words of content in a whole conversation that make a vocabulary full
_WINDOW = 50  # words among which different ones are counted, so that a long conversation is not poor for its length


def _rate_conversation(request: Request) -> tuple[dict[str, float], str]:
    asked, lines = request.instructions, [line.partition(": ") for line in request.sections["conversation"]]
    speakers = [speaker.removesuffix(":") for speaker, _, _ in lines]
    spoken = [(speaker == speakers[-1], _text(text)) for speaker, (_, _, text) in zip(speakers, lines, strict=True)]
    own = [text for ours, text in spoken if ours]
    if not any(text.words for text in own):
        return _scaled(
            dict.fromkeys((*_CONVERSATION.base, "overall"), 1.0), asked, 10
        ), "The last speaker says nothing."
    each = _of_utterances(spoken)
    features = {name: math.fsum([one[name] for one in each]) / len(each) for name in each[0]} | _of_all(own)
    ratings = {name: _CONVERSATION.rating(name, features) for name in _CONVERSATION.base}
    ratings["overall"] = math.fsum(ratings.values()) / len(ratings)
    weights = _CONVERSATION.weights.values()
    effects = {key: math.fsum([one.get(key, 0.0) for one in weights]) * value for key, value in features.items()}
    why = _CONVERSATION.rationale(effects, "conversation") if asked.rationale else ""
    return _scaled(ratings, asked, 10), why


def _of_utterances(spoken: Sequence[tuple[bool, Text]]) -> list[dict[str, float]]:
    """Return the features of each of the last speaker's utterances, given what came before it."""
    features: list[dict[str, float]] = []
    known: dict[bool, set[_Run]] = {True: set(), False: set()}
    used: set[str] = set()
    theirs: list[frozenset[str]] = []
    asked = False
    for ours, text in spoken:
        content = text.content
        runs = text.trigrams or ([text.words] if text.words else [])  # of an utterance of one or two words, the whole
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


def _of_all(own: Sequence[Text]) -> dict[str, float]:
    """Return the features of all of a speaker's utterances together."""
    words = [word for text in own for word in text.words]
    pairs = [pair for text in own for pair in zip(text.words, text.words[1:], strict=False)]
    return {
        # Shares of different ones at which they count for nothing and fully: nobody repeats none.
        "words": _different(words, 0.4, 0.9),
        "pairs": _different(pairs, 0.7, 1.0) if pairs else 0.0,
        "vocabulary": min(1.0, len({stem for text in own for stem in text.content}) / _VOCABULARY),
        "varied_length": _variation([len(text.words) for text in own]),
    }


def _different(units: Sequence[object], low: float, high: float) -> float:
    """Return from 0 (low) to 1 (high) the mean share of different ones in each window; the last is as long."""
    end = max(0, len(units) - _WINDOW)
    windows = [units[start : start + _WINDOW] for start in dict.fromkeys([*range(0, max(1, end), _WINDOW), end])]
    share = math.fsum([len(set(window)) / len(window) for window in windows]) / len(windows)
    return min(1.0, max(0.0, (share - low) / (high - low)))
