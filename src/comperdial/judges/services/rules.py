"""Rates by rules, without a model: the same answer to the same prompt, on any machine.

It reads the same prompt as any model would. Its ratings are no language model's: they count features of words, not of
meaning. The words and what each feature counts for are in ``rules.yaml``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from operator import eq
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from comperdial.config import load_yaml
from comperdial.judges.base import Completion, Message
from comperdial.judges.services.base import Service

VERSION = 1
"""Goes up with every change that can change an answer."""
MODEL = f"rules-{VERSION}"


class Rules(Service):
    """The rule-based judge."""

    name: ClassVar[str] = "rules"
    deterministic: ClassVar[bool] = True
    concurrency: ClassVar[int] = 512

    def identity(self) -> dict[str, Any]:
        """Return the version of the rules."""
        return {"rules": VERSION}

    async def complete(self, messages: Sequence[Message], parameters: Mapping[str, Any]) -> Completion:
        """Answer as a chat model would, with words and marks counted as tokens."""
        return respond(messages)


def respond(messages: Sequence[Message]) -> Completion:
    """Return the form of a prompt filled in, or a sentence without a number that says why it cannot be."""
    prompt = "\n".join([message["content"] for message in messages])
    try:
        request = read(prompt)
        answer, tokens = _fill_in(request), request.tokens
    except UnreadableError as error:
        answer, tokens = f"This prompt cannot be rated: {error}.", count_tokens(prompt)
    return Completion(answer, "stop", tokens, count_tokens(answer), MODEL)


def rate(request: Request) -> tuple[dict[str, float], str]:
    """Return the ratings asked for by name in lower case, on the scale asked for, and the rationale if one is wanted.

    A dimension that the rules do not know is left out, never guessed.

    Raises
    ------
    UnreadableError
        When the rules know none of the dimensions, or a dialogue lacks valid turn scores.
    """
    if request.sections.get("responses"):
        found, why = _rate_dialogue(request)
    elif request.sections.get("conversation") and "response" not in request.sections:
        found, why = _rate_conversation(request)
    else:
        found, why = _rate_response(request)
    names = request.instructions.names
    ratings = {name: found[name] for name in names if name in found}
    if not ratings:
        raise UnreadableError(f"the rules know nothing about {', '.join(names)}")
    return ratings, why


def _fill_in(request: Request) -> str:
    ratings, why = rate(request)
    form = request.instructions.form
    if len(form) == 1:
        answer = f"{ratings[form[0].lower()]:g}"
    else:
        answer = "\n".join([f"{name} - {ratings[name.lower()]:g}" for name in form if name.lower() in ratings])
    return f"{answer}\nRationale: {why}" if request.instructions.rationale else answer


# ---- What a prompt says. A section starts where its header stands alone on a line. Texts under judgement cannot start
# one: they are one line each, and what renders them keeps them from looking like a header. The first line that is not
# blank after the header of a response or reference is that text; every line under the header of a history, of facts, of
# turn scores, of responses or of a conversation is data (of the last, with its speaker). What the form asks for, on
# which scale, is read from the remaining lines alone.

_HEADERS = {
    "Context:": "history",
    "Conversation History:": "history",
    "Reference response:": "reference",
    "Corresponding Reference Response:": "reference",
    "Corresponding Fact:": "facts",
    "Response:": "response",
    "Dialogue Turn Scores:": "turn scores",
    "Responses:": "responses",
    "Output Format:": "form",
    "Evaluation Form:": "form",
    "Evaluation Form (scores ONLY):": "form",
    "After the Scores:": "",
}
_SECTIONS = {mark + header: name for header, name in _HEADERS.items() for mark in ("", "# ", "## ", "### ")}
# With a mark only: nothing keeps a text under judgement from being that word and a colon.
_SECTIONS |= {f"{mark} Conversation:": "conversation" for mark in ("#", "##", "###")}
_ONE_LINE = frozenset({"response", "reference"})
# What stands before the text in a line of data.
_MARKS = {
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
    """A prompt in which a part that the rules need was not found."""


class Instructions(NamedTuple):
    """A prompt without the texts under judgement, and what it asks for."""

    text: str
    form: tuple[str, ...]
    """The dimensions, as the form writes them."""
    names: tuple[str, ...]
    """The same in lower case."""
    low: int
    high: int
    rationale: bool
    """Whether a rationale is asked for."""
    tokens: int


class Request(NamedTuple):
    """What a prompt says, before anything is judged."""

    instructions: Instructions
    sections: dict[str, tuple[str, ...]]
    """The lines of the texts under judgement, without the marks before them, by section."""
    tokens: int
    """Words and marks of the whole prompt."""


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
            part = lines.setdefault(name, []) if name in _ONE_LINE or name in _MARKS else frame
            frame.append(line)
        elif name not in _ONE_LINE:
            part.append(line)
        elif line:
            (frame if part else part).append(line)
    instructions = _instructions("\n".join(frame))
    # Cached a part at a time: histories and facts are the same for every system.
    sections, tokens = {}, instructions.tokens
    for name, part in lines.items():
        sections[name], count = _section(name, "\n".join(part))
        tokens += count
    if not (sections.get("response") or sections.get("responses") or sections.get("conversation")):
        raise UnreadableError("it has no response to rate")
    return Request(instructions, sections, tokens)


@lru_cache(maxsize=4096)
def _section(name: str, block: str) -> tuple[tuple[str, ...], int]:
    """Return the texts of a section without the marks before them, and its tokens; a response may be empty."""
    if name in _ONE_LINE:
        return (block,), count_tokens(block)
    lines = [line for line in block.split("\n") if line not in ("", "(none)")]
    return tuple([_MARKS[name].sub("", line, count=1) for line in lines]), count_tokens(block)


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
    return Instructions(text, tuple(form), names, low, high, "Rationale:" in text, count_tokens(text))


def count_tokens(text: str) -> int:
    """Return the number of words and marks of a text, the rules' measure of usage."""
    return len(_TOKENS.findall(text))


# ---- Words and weights


class _Table:
    """What features count for."""

    def __init__(self, base: dict[str, float], weights: dict[str, dict[str, float]], phrases: dict[str, str]) -> None:
        self.base, self.weights, self.phrases = base, weights, phrases

    def rating(self, name: str, features: Mapping[str, float], base: float | None = None) -> float:
        """Return a rating from 1 to 5."""
        start = self.base[name] if base is None else base
        return _clip(start + math.fsum([weight * features[key] for key, weight in self.weights[name].items()]))

    def rationale(self, effects: Mapping[str, float], subject: str) -> str:
        """Say in a sentence which features moved the ratings most."""
        ranked = sorted((name for name in effects if abs(effects[name]) >= 0.25), key=lambda name: -abs(effects[name]))
        good = [self.phrases[name] for name in ranked if effects[name] > 0][:2]
        bad = [self.phrases[name] for name in ranked if effects[name] < 0][:2]
        sentence = ", but ".join(" and ".join(found) for found in (good, bad) if found)
        return f"{sentence[0].upper()}{sentence[1:]}." if sentence else f"Nothing about the {subject} stands out."


_RULES = load_yaml(Path(__file__).with_name("rules.yaml"))
_RESPONSE, _DIALOGUE, _CONVERSATION = (_Table(**_RULES[name]) for name in ("response", "dialogue", "conversation"))
_COMMON, _ANSWERS, _OPEN = (frozenset(_RULES[name].split()) for name in ("common", "answers", "open"))
_IMPERSONAL = [f" {phrase} " for phrase in _RULES["impersonal"]]
# Most texts have none of these words, and need not be searched for the phrases.
_IMPERSONAL_ENDS = frozenset(phrase.split()[-1] for phrase in _IMPERSONAL)

LONG = 20
"""Words over which a response is too long (the criterion of CPDScore-Dialogue)."""
SPECIFIC = 8
"""Different words of content that make a text fully specific."""
FIT = (8, 25)
"""Words of a turn that is as long as people's are."""
_STEM = 5
"""Letters that a word's forms are taken to share: a plural, an -ed or an -ing mostly lies behind them."""
_WORDS = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_MARK = re.compile(r"[^\w\s]|_")

Trigram = tuple[str, str, str]


class Text:
    """A text, its words in lower case, and the stems of those that are about something."""

    __slots__ = ("content", "text", "words")

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = tuple(_WORDS.findall(text.lower().replace("’", "'")))
        self.content = frozenset([word[:_STEM] for word in {*self.words} - _COMMON if len(word) > 1])

    @property
    def trigrams(self) -> list[Trigram]:
        """Return the runs of three words."""
        return list(zip(self.words, self.words[1:], self.words[2:], strict=False))

    @property
    def asks(self) -> bool:
        """Return whether there is a question mark, of whatever script."""
        return "?" in self.text or "？" in self.text or "؟" in self.text


_text = lru_cache(maxsize=4096)(Text)


def _clip(value: float) -> float:
    return min(5.0, max(1.0, value))


def _round(value: float, steps: int) -> float:
    """Round to a half, a tenth, …, upwards between two."""
    return math.floor(round(value * steps, 6) + 0.5) / steps


def _scaled(ratings: Mapping[str, float], instructions: Instructions, steps: int) -> dict[str, float]:
    """Return the ratings asked for, from a scale of 1 to 5 on the one asked for, rounded."""
    low, high = instructions.low, instructions.high
    return {
        name: _round(low + (ratings[name] - 1) / 4 * (high - low), steps)
        for name in instructions.names
        if name in ratings
    }


def _variation(counts: Sequence[int]) -> float:
    """Return from 0 to 1 how much lengths vary."""
    mean = math.fsum(counts) / len(counts)
    spread = math.sqrt(math.fsum((count - mean) ** 2 for count in counts) / len(counts))
    return min(1.0, 2 * spread / mean) if mean else 0.0


# ---- One response

ORIGINAL = {"relevance": "coherency", "interestingness": "engagingness", "understandability": "fluency"}
"""The dimensions of the original prompts that are others of ours by another name."""
PARTS = ("fluency", "coherency", "consistency", "engagingness")
OVERALL = {False: ("humanness", *PARTS), True: ("coherency", "specificity", "engagingness", "fluency")}
"""What the overall rating is the mean of; True where specificity is asked for, which the original prompt does."""
UNLIKE, ALIKE = -0.5, 1.0
"""Points that a reference moves overall and humanness by: no word in common, and a word F1 of `SAME` or more."""
SAME = 0.5


class _Known(NamedTuple):
    """What a history or a list of facts holds, found once for every response to it."""

    trigrams: frozenset[Trigram]
    own: frozenset[str]
    """Stems of the next speaker's own utterances; of all lines where they are facts."""
    last: frozenset[str]
    before: frozenset[str]
    """Stems of the last utterance, and those that only the one before it has."""
    asks: bool


@lru_cache(maxsize=2048)
def _known(lines: tuple[str, ...], history: bool) -> _Known:
    texts = [_text(line) for line in lines]
    own = texts[-2::-2] if history else texts
    last, before = (frozenset[str]().union(*(text.content for text in part)) for part in (texts[-1:], texts[-2:-1]))
    return _Known(
        frozenset([trigram for text in texts for trigram in text.trigrams]) if history else frozenset(),
        frozenset([stem for text in own for stem in text.content]),
        last,
        before - last,
        bool(texts) and texts[-1].asks,
    )


def _rate_response(request: Request) -> tuple[dict[str, float], str]:
    sections, instructions = request.sections, request.instructions
    response = _text(sections.get("response", ("",))[0])
    if not response.words:
        known = dict.fromkeys((*_RESPONSE.weights, *ORIGINAL, "overall"), 1.0)
        return _scaled(known, instructions, 2), "The response is empty."
    features = _features(response, _known(sections.get("history", ()), True), _known(sections.get("facts", ()), False))
    ratings = {name: _RESPONSE.rating(name, features) for name in _RESPONSE.base}
    start = math.fsum([ratings[name] for name in PARTS]) / len(PARTS)
    ratings["humanness"] = _RESPONSE.rating("humanness", features, start)
    parts = OVERALL["specificity" in instructions.names]
    ratings["overall"] = math.fsum([ratings[name] for name in parts]) / len(parts)
    reference = sections.get("reference", ("",))[0]
    if reference:
        shift = UNLIKE + (ALIKE - UNLIKE) * min(1.0, _f1(response.words, _text(reference).words) / SAME)
        features["alike" if shift > 0 else "unlike"] = abs(shift)
        for name in ("overall", "humanness"):
            ratings[name] = _clip(ratings[name] + shift)
    ratings |= {name: ratings[ours] for name, ours in ORIGINAL.items()}
    why = _why(features, instructions.names) if instructions.rationale else ""
    return _scaled(ratings, instructions, 2), why


def _features(response: Text, history: _Known, facts: _Known) -> dict[str, float]:
    """Return the features of a response that has words."""
    words, content, trigrams = response.words, response.content, response.trigrams
    count = len(words)
    answers = len(content) >= 2 or words[0] in _ANSWERS
    return {
        "brief": float(count < 3),
        "repeated": max(sum(map(eq, words, words[1:])) / count, 1 - len(set(trigrams)) / len(trigrams) if trigrams else 0),
        "noisy": _noise(response.text),
        "unfinished": float(words[-1] in _OPEN and response.text.rstrip()[-1:].isalnum()),
        "long": _excess(count),
        "on_topic": min(1.0, (len(content & history.last) + 0.5 * len(content & history.before)) / 2),
        "answers": float(history.asks and answers),
        "evades": float(history.asks and not answers),
        "asks": float(response.asks),
        "bland": float(len(content) < 2),
        "copied": _share(trigrams, history.trigrams),
        "grounded": min(1.0, len((content & facts.own) | (content & history.own)) / 3),
        "impersonal": float(_impersonal(words)),
        "specific": min(1.0, len(content) / SPECIFIC),
        "fit_length": float(FIT[0] <= count <= FIT[1]),
    }


def _why(features: Mapping[str, float], names: Iterable[str]) -> str:
    ours = {ORIGINAL.get(name, name) for name in names}
    if ours & {"overall", "humanness"}:
        ours |= set(_RESPONSE.weights)
    effects = {"alike": features.get("alike", 0.0), "unlike": -features.get("unlike", 0.0)}
    for name in sorted(ours & set(_RESPONSE.weights)):
        for feature, weight in _RESPONSE.weights[name].items():
            effects[feature] = effects.get(feature, 0.0) + weight * features[feature]
    return _RESPONSE.rationale(effects, "response")


def _excess(count: int) -> float:
    return min(1.0, max(0, count - LONG) / 40)


def _share(runs: Collection[object], known: Collection[object]) -> float:
    """Return the share of runs of words that are known."""
    return sum(map(known.__contains__, runs)) / len(runs) if runs else 0.0


def _noise(text: str) -> float:
    """Return 1 for shouting, else how much of the text is marks, from a tenth (0) to a half (1)."""
    if sum(map(str.isupper, text)) > 5:
        letters = [*filter(str.isalpha, text)]
        if len(letters) > 10 and sum(map(str.isupper, letters)) > len(letters) / 2:
            return 1.0
    return min(1.0, max(0.0, (len(_MARK.findall(text)) / len(text) - 0.1) / 0.4))


def _impersonal(words: Sequence[str]) -> bool:
    if _IMPERSONAL_ENDS.isdisjoint(words):
        return False
    text = f" {' '.join(words)} "
    return any(phrase in text for phrase in _IMPERSONAL)


def _f1(one: Sequence[str], other: Sequence[str]) -> float:
    common = sum([min(one.count(word), other.count(word)) for word in {*one} & {*other}])
    return 2 * common / (len(one) + len(other))


# ---- A dialogue, by its turn scores and responses: the second step of CPDScore-Dialogue, its branches included

HIGH = 4.0
"""From here on the overall dialogue turn score alone decides."""
LOW = 3.0
"""An interaction score below this is low."""


def _rate_dialogue(request: Request) -> tuple[dict[str, float], str]:
    scores = [_turn_score(score) for score in request.sections.get("turn scores", ())]
    if not scores:
        raise UnreadableError("it has no turn scores")
    overall = _round(math.fsum(scores) / len(scores), 10)
    features = _of_responses([_text(line) for line in request.sections["responses"]])
    effects = {name: weight * features[name] for name, weight in _DIALOGUE.weights["interaction"].items()}
    total = _DIALOGUE.base["interaction"] + math.fsum(effects.values())
    # Where the score would not be low without the length of responses, length is why it is.
    interaction, without_length = (_round(_clip(value), 10) for value in (total, total - effects["long"]))
    final = _round((overall + interaction) / 2, 10)
    if overall < HIGH:
        reason = "the turn scores are below four, so both scores count"
    elif interaction < LOW <= without_length:
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
    excess = [max(0, count - LONG) for count in counts]
    said = [stem for response in responses for stem in response.content]
    sets = [(response.words[:3], frozenset(response.words)) for response in responses]
    # Likeness of two: 1 for the same first three words, else the share of words in common.
    alike = [1.0 if a == b else len(one & other) / len(one | other) for (a, one), (b, other) in combinations(sets, 2)]
    return {
        "patterned": math.fsum(alike) / len(alike) if alike else 0.0,
        # One is enough to be noticed; from twenty words over in the mean it cannot get worse.
        "long": 0.4 + 0.6 * min(1.0, math.fsum(excess) / len(excess) / LONG) if any(excess) else 0.0,
        "varied_length": _variation(counts),
        "vocabulary": len(set(said)) / len(said) if said else 0.0,
    }


# ---- A whole conversation, by what the last speaker says in it. A feature is counted for each of that speaker's
# utterances, and the mean is taken; those of diversity are counted over all of them together.

_VOCABULARY = 40
"""Different words of content in a whole conversation that make a vocabulary full."""
_DIFFERENT = {"words": (0.4, 0.9), "pairs": (0.7, 1.0)}
"""Shares of different ones at which they count for nothing and fully: nobody repeats none."""
_WINDOW = 50
"""Words among which different ones are counted, so that a long conversation is not poor for its length."""


def _rate_conversation(request: Request) -> tuple[dict[str, float], str]:
    lines = (line.partition(": ") for line in request.sections["conversation"])
    said = [(speaker.removesuffix(":"), _text(text)) for speaker, _, text in lines]
    own = [speaker == said[-1][0] for speaker, _ in said]
    texts = [text for _, text in said]
    if not any(text.words for text, ours in zip(texts, own, strict=True) if ours):
        known = dict.fromkeys((*_CONVERSATION.base, "overall"), 1.0)
        return _scaled(known, request.instructions, 10), "The last speaker says nothing."
    utterances = _of_utterances(texts, own)
    features = {name: math.fsum(each[name] for each in utterances) / len(utterances) for name in utterances[0]}
    features |= _of_all([text for text, ours in zip(texts, own, strict=True) if ours])
    ratings = {name: _CONVERSATION.rating(name, features) for name in _CONVERSATION.base}
    ratings["overall"] = math.fsum(ratings.values()) / len(ratings)
    why = ""
    if request.instructions.rationale:
        weights = _CONVERSATION.weights.values()
        effects = {key: math.fsum(each.get(key, 0.0) for each in weights) * value for key, value in features.items()}
        why = _CONVERSATION.rationale(effects, "conversation")
    return _scaled(ratings, request.instructions, 10), why


def _of_utterances(texts: Sequence[Text], own: Sequence[bool]) -> list[dict[str, float]]:
    """Return the features of each of the last speaker's utterances, given what came before it."""
    found: list[dict[str, float]] = []
    runs_of: dict[bool, set[tuple[str, ...]]] = {True: set(), False: set()}
    used: set[str] = set()
    others: list[Text] = []
    for number, (text, ours) in enumerate(zip(texts, own, strict=True)):
        content, count = text.content, len(text.words)
        # Of an utterance of fewer than three words, the whole.
        runs: list[tuple[str, ...]] = [*text.trigrams] or ([text.words] if count else [])
        if ours:
            recent = frozenset[str]().union(*(other.content for other in others[-2:]))
            asked = number > 0 and not own[number - 1] and texts[number - 1].asks
            found.append(
                {
                    "on_topic": min(1.0, len(content & recent) / 2),
                    "answers": float(asked and len(content) >= 2),
                    "evades": float(asked and len(content) < 2),
                    "again": _share(runs, runs_of[True]),
                    "copied": _share(runs, runs_of[False]),
                    "asks": float(text.asks),
                    "specific": min(1.0, len(content) / SPECIFIC),
                    "fit_length": float(FIT[0] <= count <= FIT[1]),
                    "bland": float(len(content) < 2),
                    "long": _excess(count),
                    "new": min(1.0, len(content - used) / (SPECIFIC / 2)),
                }
            )
        else:
            others.append(text)
        runs_of[ours].update(runs)
        used |= content
    return found


def _of_all(own: Sequence[Text]) -> dict[str, float]:
    """Return the features of all of a speaker's utterances together."""
    words = [word for text in own for word in text.words]
    pairs = [pair for text in own for pair in zip(text.words, text.words[1:], strict=False)]
    return {
        "words": _different(words, *_DIFFERENT["words"]),
        "pairs": _different(pairs, *_DIFFERENT["pairs"]) if pairs else 0.0,
        "vocabulary": min(1.0, len(frozenset().union(*(text.content for text in own))) / _VOCABULARY),
        "varied_length": _variation([len(text.words) for text in own]),
    }


def _different(units: Sequence[object], low: float, high: float) -> float:
    """Return from 0 (low) to 1 (high) the mean share of different ones among each ``_WINDOW`` in a row.

    The last window is as long as the others.
    """
    end = max(0, len(units) - _WINDOW)
    windows = [units[start : start + _WINDOW] for start in dict.fromkeys([*range(0, max(1, end), _WINDOW), end])]
    share = math.fsum(len(set(window)) / len(window) for window in windows) / len(windows)
    return min(1.0, max(0.0, (share - low) / (high - low)))
