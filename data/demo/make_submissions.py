"""Make the demo's submissions: 97 SIMULATED systems answer the demo's dialogues (docs/demo.md).

    python data/demo/make_submissions.py

writes ``data/demo/submissions/agents.jsonl.gz``. The systems are no dialogue systems that anybody should use: each fails in a
known way and by a known amount, so that metrics and statistics have something to rank. ``agents.yaml`` lists them with their
options. No system is shown a reference. Each class is a ``UserAgent`` in the challenge's form (docs/adding-a-system.md), so
`comperdial challenge run` and `self-chat` run it too; the API track's model is simulated, and called directly.
"""

# ruff: noqa: ANN401, S105

from __future__ import annotations

import gzip
import json
import math
import re
import string
import zlib
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml

HERE = Path(__file__).parent
BANK, CORPUS = HERE / "response_bank.jsonl", HERE / "corpus.jsonl"
Conversation = dict[str, Any]
"""``persona B`` (sentences) and ``dialogue`` (a list of {persona_id, text}), of which the last utterance is by A."""


# Words, and views of a conversation

_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")
_STOP_TEXT = """
a about after all also am an and any are aren't as at be been being but by can can't could did didn't do does doesn't
doing don't every for from get go going got had has have haven't he her him his how i i'd i'll i'm i've if in into is
isn't it it's its just kind know like lot lots make many me more most much my no not now of off oh ok on one or our out
over quite really she should so some sound sounds such take than that that's the their them then there they thing things
think this those to too up us very want was wasn't we well were what what's when where which while who why will with
would yeah yes you you'd you'll you're you've your
"""
_STOP = frozenset(_WORD.findall(_STOP_TEXT))


def words(text: str) -> list[str]:
    """Return the words in lower case; a contraction is one word, punctuation is none."""
    return _WORD.findall(text.lower().replace("’", "'"))


def stems(text: str) -> set[str]:
    """Return the content words, each by its first five letters: enough to find "protect" in "protecting"."""
    return {word[:5] for word in words(text) if word not in _STOP}


def normalised(text: str) -> str:
    """Return the words joined by spaces: the key under which an utterance is looked up."""
    return " ".join(words(text))


def sentences(text: str) -> list[str]:
    """Split at full stops, question and exclamation marks, which stay."""
    return [part.strip() for part in re.findall(r"[^.!?]+[.!?]*", text) if part.strip()]


def last_utterance(conversation: Conversation) -> str:
    """Return the last utterance, which is by A."""
    return conversation["dialogue"][-1]["text"]


def utterances_of_b(conversation: Conversation) -> list[str]:
    """Return the utterances of B so far, in order."""
    return [utterance["text"] for utterance in conversation["dialogue"] if utterance["persona_id"] == "B"]


def read_records(path: Path) -> list[dict[str, str]]:
    """Return the records of a JSONL file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


def pick(rng: np.random.Generator, items: Any) -> Any:
    """Return one of the items, all equally likely."""
    return items[int(rng.integers(len(items)))]


def chance(rng: np.random.Generator, probability: float) -> bool:
    """Return True with a probability; takes one number from ``rng`` whatever the probability."""
    return bool(rng.random() < probability)


# Persona sentences: what they are about, how a person would say them, and an answer made of one

_RELATIVES = (
    r"\b(sister|brother|mother|father|mom|dad|parents?|wife|husband|son|daughter|kids?|child|children|family)\b"
)

# (topic, pattern of the whole sentence, how a person would say it); the first that fits counts.
_FORMS = (
    ("name", r"my name is (.+)", r"i'm \1"),
    ("age", r"i(?:'m| am) (\d+)(?: years old)?", r"i'm \1 years old"),
    ("trait", r"my character trait: (.+)", r"if i had to describe myself, i'd say \1"),
    ("plan", r"i (?:intend|want|plan|hope) to (.+?)(?: in the future)?", r"i'm planning to \1"),
    ("plan", r"(.+) in the future", r"\1 one day"),
    ("habit", r"i regularly or consistently (.+)", r"i \1"),
    ("past", r"(.+) in the past", r"\1"),
    ("family", rf"(.*{_RELATIVES}.*)", r"\1"),
    ("job", r"i(?:'m| am) (an? .+)", r"i'm \1"),
    ("job", r"(i work .+)", r"\1"),
    ("other", r"(.+)", r"\1"),
)

_GREETING = r"(?:hi|hello|hey)\b"
_FAREWELL = r"\bbye\b|goodbye|nice (?:talking|chatting|to chat|to talk)|take care"

# What an utterance asks for.
_CUES = {
    "name": rf"^{_GREETING}|your name|who are you|call you|introduce",
    "age": r"how old|your age|birthday",
    "trait": r"personality|character|describe yourself|what kind of person|good at|strength",
    "plan": r"\bplan|future|dream|goal|someday|one day|hoping|next year|going to do",
    "habit": r"hobb|free time|spare time|for fun|weekend|usually|often|every day|routine|interests?\b",
    "past": r"used to|in the past|before|how did you|have you ever|have you always|studied|growing up|when you were",
    "family": _RELATIVES + r"|siblings|married|where do you live|come from",
    "job": r"for a living|your job|your work|do you work|what do you do\b|career|profession|occupation",
}

# {} is the fact. One of them is taken at random.
_FRAMES = {
    "name": ("{}, by the way. nice to meet you!", "{}, pleased to meet you."),
    "age": ("{}, so i've seen a few things.", "{}, though i feel younger on most days."),
    "trait": ("{}. at least that's what my friends tell me.", "{}, and it helps me more than you'd think."),
    "plan": ("{}, that is the dream at least.", "{}, so i'm putting in the hours now.", "these days {}."),
    "habit": ("{}, it keeps me going.", "{} and i wouldn't miss it.", "for me it's simple: {}."),
    "past": ("{}, and i learned a lot from it.", "{} a while ago, and i still think about it.", "you know, {}."),
    "family": ("{}, and we are pretty close.", "{}, so there is always something to talk about."),
    "job": ("{}, so my days are never boring.", "{}, so i meet all kinds of people.", "{} and i like it a lot."),
    "other": ("{}, that's just how i am.", "{}, since you mention it.", "as for me, {}."),
}
_QUESTIONS = {
    "name": ("what should i call you?", "and you are?"),
    "age": ("how about you?", "can i ask how old you are?"),
    "trait": ("how would your friends describe you?", "are you like that too?"),
    "plan": ("do you have any plans like that?", "what are you hoping to do?"),
    "habit": ("what do you do in your free time?", "have you ever tried it?"),
    "past": ("have you done anything like that?", "what did you do before?"),
    "family": ("do you have a big family?", "are you close to your family?"),
    "job": ("what do you do for work?", "do you like your job?"),
    "other": ("what about you?", "is it the same for you?"),
}
_AFTER_QUESTION = ("", "", "well, ", "good question. ")
_AFTER_GREETING = ("hi! ", "hello there, ", "hi, i'm doing fine, thanks. ")
_AFTER_STATEMENT = ("", "that's great. ", "oh, nice! ", "i get that. ", "sounds good. ")
_FAREWELLS = (
    "it was nice talking to you too, take care!",
    "likewise, have a good one!",
    "thanks for the chat, bye!",
)
_WITHOUT_PERSONA = (
    "i'm not sure what to say about that, what about you?",
    "i would have to think about it, to be honest.",
    "i don't really know, tell me more about yourself.",
    "that's hard to say for me, how about you?",
)


class Fact(NamedTuple):
    """A persona sentence: its topic (a key of the tables above) and a clause that a person would say."""

    topic: str
    text: str


def facts(conversation: Conversation) -> list[Fact]:
    """Return B's persona, in order; sentences without a word are left out."""
    return [read_fact(sentence) for sentence in conversation.get("persona B", []) if words(sentence)]


def read_fact(sentence: str) -> Fact:
    """Return a persona sentence as a fact; it may have stray capitals and full stops."""
    plain = re.sub(r"\.+(?=\s|$)", "", " ".join(sentence.lower().split())).strip()
    for topic, pattern, form in _FORMS:
        if match := re.fullmatch(pattern, plain):
            return Fact(topic, match.expand(form))
    return Fact("other", plain)


def best_fact(conversation: Conversation, known: list[Fact], rng: np.random.Generator) -> Fact:
    """Return the fact that matches the last utterance best and B has not used yet; ties are broken at random."""
    utterance = last_utterance(conversation).lower()
    wanted, used = stems(utterance), stems(" ".join(utterances_of_b(conversation)))
    asked = {topic for topic, cue in _CUES.items() if re.search(cue, utterance)}

    def score(fact: Fact) -> float:
        own = stems(fact.text)
        repeated = len(own & used) / max(len(own), 1)
        # A name or an age is no answer unless it is asked for.
        unasked = fact.topic in ("name", "age") and fact.topic not in asked
        return 2.0 * (fact.topic in asked) + len(own & wanted) - 1.5 * repeated - 2.0 * unasked

    scores = np.array([score(fact) for fact in known])
    return known[int(rng.choice(np.flatnonzero(scores == scores.max())))]


def template_answer(conversation: Conversation, rng: np.random.Generator, *, relevance: float, question: float) -> str:
    """Return an answer made of one persona sentence: the one that fits with probability ``relevance``, else any.

    With probability ``question`` a question back follows. Without a persona the answer says nothing.
    """
    known = facts(conversation)
    if not known:
        return pick(rng, _WITHOUT_PERSONA)
    fitting = chance(rng, relevance)
    utterance = last_utterance(conversation).lower()
    if fitting and re.search(_FAREWELL, utterance):
        return pick(rng, _FAREWELLS)
    fact = best_fact(conversation, known, rng) if fitting else pick(rng, known)
    answer = pick(rng, _openings(utterance)) + pick(rng, _FRAMES[fact.topic]).format(fact.text)
    return f"{answer} {pick(rng, _QUESTIONS[fact.topic])}" if chance(rng, question) else answer


def _openings(utterance: str) -> tuple[str, ...]:
    if re.match(_GREETING, utterance):
        return _AFTER_GREETING
    return _AFTER_QUESTION if "?" in utterance else _AFTER_STATEMENT


# The systems


class Agent:
    """A system that answers each conversation by itself, with randomness from its seed and the conversation alone."""

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed

    def generate_responses(self, test_data: list[Conversation]) -> list[str]:
        """Return one response by persona B for each conversation: lower case, on one line, never empty."""
        return [self.respond(conversation) for conversation in test_data]

    def respond(self, conversation: Conversation) -> str:
        """Return the answer in lower case on one line, or a filler."""
        texts = "\n".join(utterance["text"] for utterance in conversation["dialogue"])
        rng = np.random.default_rng([self.seed, zlib.crc32(texts.encode())])
        return " ".join(self.answer(conversation, rng).lower().split()) or "i see."

    def answer(self, conversation: Conversation, rng: np.random.Generator) -> str:
        """Return what persona B says next; all that is random in it comes from ``rng``."""
        raise NotImplementedError


class ScriptedAgent(Agent):
    """A stand-in for a strong model: with probability ``strength`` an answer that was written for this very context."""

    def __init__(self, *, strength: float = 0.8, style: str = "concise", seed: int = 0) -> None:
        super().__init__(seed=seed)
        self.strength = strength
        self._written = defaultdict(list)
        for record in read_records(BANK):
            if record["style"] == style:
                self._written[normalised(record["last_utterance"])].append(record["response"])

    def answer(self, conversation: Conversation, rng: np.random.Generator) -> str:
        """Return a response of the bank, or a persona sentence made into an answer."""
        written = self._written.get(normalised(last_utterance(conversation)))
        if chance(rng, self.strength) and written:
            return str(pick(rng, written))
        return template_answer(conversation, rng, relevance=0.8, question=0.3)


_SYSTEM = (
    "You are chatting with a stranger whom you have just met. Answer as the person described below, in one or two "
    "short, casual sentences. Stay in character, react to what was said last, and do not list facts.\n\nAbout you:\n{}"
)
_REVISE = (
    "Rewrite your reply so that it fits the last message, agrees with everything above and sounds like a person. "
    "Return the reply alone."
)


class PromptedAgent(Agent):
    """The API track: one call of a simulated language model, or two (a draft and its revision).

    ``window`` is how many of the last utterances the model is shown (None: all), ``max_generated_tokens`` cuts sentences.
    """

    def __init__(
        self, *, window: int | None = None, calls: int = 1, max_generated_tokens: int = 60, seed: int = 0
    ) -> None:
        super().__init__(seed=seed)
        self.window, self.calls, self.most = window, calls, max_generated_tokens

    def respond(self, conversation: Conversation) -> str:
        """Return the model's text as it is."""
        about = "\n".join(f"- {sentence}" for sentence in conversation["persona B"])
        history = conversation["dialogue"][-self.window :] if self.window else conversation["dialogue"]
        messages = [("system", _SYSTEM.format(about))]
        messages += [({"A": "user", "B": "assistant"}[one["persona_id"]], one["text"]) for one in history]
        text = " ".join(complete(messages, self.most).split())
        if self.calls > 1:
            text = " ".join(complete([*messages, ("assistant", text), ("user", _REVISE)], self.most).split())
        return text


def complete(messages: list[tuple[str, str]], max_tokens: int) -> str:
    """Answer as the simulated model: with probability 0.6 as written for the last user's message that the bank knows."""
    bank = {normalised(r["last_utterance"]): r["response"] for r in read_records(BANK) if r["style"] == "concise"}
    everything = "\n".join(content for _, content in messages)
    rng = np.random.default_rng([1, zlib.crc32(everything.encode())])
    asked = [content for role, content in messages if role == "user"]
    written = next((bank[normalised(text)] for text in reversed(asked) if normalised(text) in bank), None)
    if written is not None and rng.random() < 0.6:
        text = written
    else:
        persona = [line[2:] for line in everything.splitlines() if line.startswith("- ")]
        last = {"persona B": persona, "dialogue": [{"persona_id": "A", "text": asked[-1] if asked else ""}]}
        text = template_answer(last, rng, relevance=0.8, question=0.3)
    ends = [match.end() for match in re.finditer(r"\w+|[^\w\s]", text)][:max_tokens]
    return text[: ends[-1]]


class RetrievalAgent(Agent):
    """The response of the corpus whose context is most similar, or with probability ``noise`` any.

    It has a ``share`` of the corpus; the last ``window`` utterances are the query; ``scoring`` is bm25 or tfidf (cosine).
    """

    def __init__(
        self, *, share: float = 1.0, noise: float = 0.0, scoring: str = "bm25", window: int = 1, seed: int = 0
    ) -> None:
        super().__init__(seed=seed)
        self.noise, self.window = noise, window
        pairs = read_records(CORPUS)
        kept = np.random.default_rng(seed).permutation(len(pairs))[: max(1, round(share * len(pairs)))]
        self._pairs = [pairs[i] for i in sorted(kept)]
        index = {"bm25": bm25, "tfidf": tfidf}[scoring]
        self._documents = index([Counter(words(pair["context"])) for pair in self._pairs])

    def answer(self, conversation: Conversation, rng: np.random.Generator) -> str:
        """Return the best response, or any."""
        if chance(rng, self.noise):
            return str(pick(rng, self._pairs)["response"])
        query = words(" ".join(utterance["text"] for utterance in conversation["dialogue"][-self.window :]))
        scores = [sum(document.get(word, 0.0) for word in query) for document in self._documents]
        return self._pairs[int(np.argmax(scores))]["response"]


def bm25(documents: list[Counter[str]]) -> list[dict[str, float]]:
    """Return what each word of each document adds to its BM25 score when a query holds the word."""
    k1, b = 1.2, 0.75  # the usual values of Okapi BM25
    mean = sum(document.total() for document in documents) / len(documents)
    frequency = Counter(word for document in documents for word in document)

    def weight(document: Counter[str], word: str) -> float:
        rarity = math.log(1 + (len(documents) - frequency[word] + 0.5) / (frequency[word] + 0.5))
        length = k1 * (1 - b + b * document.total() / mean)
        return rarity * document[word] * (k1 + 1) / (document[word] + length)

    return [{word: weight(document, word) for word in document} for document in documents]


def tfidf(documents: list[Counter[str]]) -> list[dict[str, float]]:
    """Return what each word adds to the cosine of TF-IDF vectors, up to the query's length, which moves no rank."""
    frequency = Counter(word for document in documents for word in document)
    rarity = {word: math.log((1 + len(documents)) / (1 + n)) + 1 for word, n in frequency.items()}
    weights = []
    for document in documents:
        norm = math.sqrt(sum((n * rarity[word]) ** 2 for word, n in document.items())) or 1.0
        weights.append({word: n * rarity[word] ** 2 / norm for word, n in document.items()})
    return weights


class PersonaTemplateAgent(Agent):
    """A persona sentence in a frame: the one that fits best with probability ``relevance``, else any."""

    def __init__(self, *, relevance: float = 1.0, question: float = 0.3, seed: int = 0) -> None:
        super().__init__(seed=seed)
        self.relevance, self.question = relevance, question

    def answer(self, conversation: Conversation, rng: np.random.Generator) -> str:
        """Return a framed persona sentence."""
        return template_answer(conversation, rng, relevance=self.relevance, question=self.question)


Counts = dict[tuple[str, ...], Counter[str]]


class NgramAgent(Agent):
    """Babble: each word is drawn after the longest known stretch of words before it, in the corpus and B's persona."""

    def __init__(self, *, order: int = 3, temperature: float = 1.0, seed: int = 0) -> None:
        super().__init__(seed=seed)
        self.order, self.temperature = order, temperature
        self._counts = count_ngrams([pair["response"] for pair in read_records(CORPUS)], order)

    def answer(self, conversation: Conversation, rng: np.random.Generator) -> str:
        """Return a random walk from a start of a sentence to an end, of 4 to 25 words."""
        own = count_ngrams([fact.text + "." for fact in facts(conversation)], self.order)
        tokens = ["<s>"] * (self.order - 1)
        first = len(tokens)
        while len(tokens) - first < 25:
            token = self._draw(tokens, own, rng, may_end=len(tokens) - first >= 4)
            if token == "</s>":
                break
            tokens.append(token)
        # No space before a punctuation mark, and none of them at the beginning.
        return re.sub(r" ([^\w' ])", r"\1", " ".join(tokens[first:])).lstrip(" .,!?;:")

    def _draw(self, tokens: list[str], own: Counts, rng: np.random.Generator, *, may_end: bool) -> str:
        """Return the next word; the context is shortened until a word is known to follow it."""
        for length in range(self.order - 1, -1, -1):
            context = tuple(tokens[len(tokens) - length :])
            counts = self._counts.get(context, Counter()).copy()
            # A dozen persona sentences beside hundreds of responses.
            for word, n in own.get(context, Counter()).items():
                counts[word] += n * 5
            if not may_end:
                del counts["</s>"]
            if counts:
                weights = np.array(list(counts.values()), dtype=float) ** (1 / self.temperature)
                return str(rng.choice(list(counts), p=weights / weights.sum()))
        return "</s>"


def count_ngrams(texts: list[str], order: int) -> Counts:
    """Count which words follow each stretch of up to ``order`` - 1 words."""
    counts: Counts = defaultdict(Counter)
    for text in texts:
        tokens = ["<s>"] * (order - 1) + re.findall(r"[\w']+|[^\w\s]", text.lower()) + ["</s>"]
        for i in range(order - 1, len(tokens)):
            for length in range(order):
                counts[tuple(tokens[i - length : i])][tokens[i]] += 1
    return counts


# (pattern, answers); the first that fits counts. {name}, {age}, {job} and so on are persona sentences of that topic;
# an answer is left out where the persona has none of it. {caught} is what the pattern caught, reflected.
RULES = (
    (r"how old|your age", ("{age}, and you?",)),
    (r"your name|who are you|call you", ("{name}. what's your name?", "{name}, nice to meet you.")),
    (r"for a living|your job|do you work|what do you do\b(?!.* for fun)", ("{job}. how about you?", "{job}.")),
    (r"hobb|free time|for fun|weekend", ("{habit}. do you have any hobbies?", "well, {habit} when i can.")),
    (r"your plans?|in the future|your dream|your goal", ("{plan}. what are your plans?", "{plan}, i think.")),
    (r"siblings|brother|sister|your family|your parents|married", ("{family}. and your family?", "{family}.")),
    (r"have you ever|did you ever|used to", ("{past}, if that counts.", "yes, {past}.", "not that i remember.")),
    (r"what kind of person|describe yourself|your friends say", ("{trait}.", "{trait}, i guess.")),
    (r"how are you|how's it going|how is your day", ("i'm doing well, thanks. how are you?", "pretty good, and you?")),
    (r"^(hi|hello|hey|good (?:morning|evening|afternoon))\b", ("hello! nice to meet you.", "hi there, how are you?")),
    (r"\bmy name is (\w+)", ("nice to meet you, {caught}!", "hello {caught}, how are you today?")),
    (r"i(?:'m| am) (\d+)", ("{caught} is a good age. {age}.", "oh, {caught}? {age}.")),
    (
        r"\bbye\b|nice talking|have a (?:good|nice|great)|take care",
        ("it was nice talking to you too!", "take care, bye!"),
    ),
    (r"thank", ("you're very welcome!", "no problem at all.")),
    (r"do you like ([^.?!,]+)", ("i do like {caught}. do you?", "i don't mind {caught}, why do you ask?")),
    (
        r"would you like to ([^.?!,]+)",
        ("i would love to {caught} one day.", "to {caught}? i would have to think about it."),
    ),
    (r"can you ([^.?!,]+)\?", ("i'm not sure i can {caught}. can you?", "maybe i can {caught}, with some practice.")),
    (r"are you ([^.?!,]+)\?", ("why do you ask if i am {caught}?", "i would not say that i am {caught}.")),
    (r"i (?:love|like|enjoy) ([^.?!,]+)", ("what do you like about {caught}?", "i can see why you enjoy {caught}.")),
    (r"i want to ([^.?!,]+)", ("why do you want to {caught}?", "i hope you get to {caught} soon.")),
    (r"i(?:'m| am) (an? [^.?!,]+)", ("how long have you been {caught}?", "what is it like to be {caught}?")),
    (r"i used to ([^.?!,]+)", ("why did you stop? did you like to {caught}?", "i never got to {caught} myself.")),
    (r"i have ([^.?!,]+)", ("how long have you had {caught}?", "it must be nice to have {caught}.")),
    (
        r"what about you|how about you|and you\?",
        ("for me it is different. {habit}.", "{job}, so it's a bit like that."),
    ),
    (r"^(?:why|how come)\b", ("i never thought about the reason.", "just because i enjoy it, i suppose.")),
    (r"^(?:where)\b", ("not too far from here.", "close to my family, actually.")),
    (r"^(?:when|how long)\b", ("it has been a few years now.", "quite some time ago.")),
    (r"\bsorry\b|\bsad\b|\bhard\b", ("i'm sorry to hear that.", "that must be difficult for you.")),
)
DEFAULTS = ("please go on.", "i see. can you tell me more?", "why do you say that?", "that's interesting.")
_REFLECTIONS = {
    "my": "your", "your": "my", "i": "you", "you": "i", "me": "you", "am": "are", "i'm": "you're",
    "you're": "i'm", "i've": "you've", "mine": "yours", "myself": "yourself", "yours": "mine",
}  # fmt: skip


class RulesAgent(Agent):
    """Rules in Eliza's manner: answer by the first that fits, of a share of ``rules``, or ask the other one to go on."""

    def __init__(self, *, rules: float = 1.0, seed: int = 0) -> None:
        super().__init__(seed=seed)
        known = np.random.default_rng(seed).permutation(len(RULES))[: round(rules * len(RULES))]
        self._rules = [RULES[i] for i in sorted(known)]

    def answer(self, conversation: Conversation, rng: np.random.Generator) -> str:
        """Return the answer of a rule with its slots filled, or a default."""
        utterance = last_utterance(conversation).lower()
        slots: dict[str, str] = {}
        for fact in facts(conversation):
            slots.setdefault(fact.topic, fact.text)
        for pattern, answers in self._rules:
            if match := re.search(pattern, utterance):
                caught = next((group for group in match.groups() if group), "")
                slots["caught"] = " ".join(_REFLECTIONS.get(word, word) for word in caught.split())
                usable = [a for a in answers if {n for _, n, _, _ in string.Formatter().parse(a) if n} <= slots.keys()]
                if usable:
                    return str(pick(rng, usable)).format(**slots)
        return str(pick(rng, DEFAULTS))


ANSWERS = (
    "that's nice. tell me more.",
    "i don't know, what do you think?",
    "oh, that's interesting!",
    "yeah, i feel the same way.",
    "sounds good to me.",
    "really? how so?",
    "i see what you mean.",
    "that's cool. what else do you do?",
    "i'm not sure about that, to be honest.",
    "haha, i know what you mean.",
    "it depends, i guess.",
    "wow, that's great to hear!",
    "maybe. i haven't thought about it much.",
    "me too, i think.",
    "that must be a lot of fun.",
    "good for you! how did that come about?",
    "i would say it's pretty normal for me.",
    "that makes sense.",
    "i hope it works out for you.",
    "no way! how was that?",
    "yes, i think so too.",
    "nothing special, just the usual things.",
    "that's a good point. why do you ask?",
    "i can imagine. it can't be easy.",
)


class GenericAgent(Agent):
    """One of ``variety`` things that always fit."""

    def __init__(self, *, variety: int = 12, seed: int = 0) -> None:
        super().__init__(seed=seed)
        self._answers = [ANSWERS[i] for i in np.random.default_rng(seed).permutation(len(ANSWERS))[:variety]]

    def answer(self, conversation: Conversation, rng: np.random.Generator) -> str:
        """Return one of the answers, to anything."""
        return str(pick(rng, self._answers))


class EchoAgent(Agent):
    """Repeat a stretch of the last utterance, a ``share`` of its words, taken at a random place."""

    def __init__(self, *, share: float = 1.0, seed: int = 0) -> None:
        super().__init__(seed=seed)
        self.share = share

    def answer(self, conversation: Conversation, rng: np.random.Generator) -> str:
        """Return a stretch of at least one word."""
        last = last_utterance(conversation).split()
        length = max(1, round(self.share * len(last)))
        start = int(rng.integers(max(1, len(last) - length + 1)))
        return " ".join(last[start : start + length])


class WrappingAgent(Agent):
    """A system that spoils the answers of another one, which ``base`` and ``options`` describe."""

    def __init__(self, *, base: str, options: dict[str, Any] | None = None, seed: int = 0) -> None:
        super().__init__(seed=seed)
        # Not the same seed: both would read the same random stream, and fail on the same conversations.
        inner_seed = zlib.crc32(f"{seed} {base}".encode())
        self.base = KINDS[base](**{"seed": inner_seed, **(options or {})})


# The first that fits is denied.
_DENIALS = (
    (r"\bi(?:'m| am) (?!not\b)", "i'm not "),
    (r"\bi(?:'ve| have) (?=been\b|had\b|done\b|always\b)", "i have never "),
    (r"\bi have (?=an? |my |two |three |four |some )", "i don't have "),
    (r"\bi (?:really |also )?(?:love|like|enjoy) ", "i can't stand "),
    (r"\bi was ", "i was never "),
    (r"\bi(?:'ll| will| plan to| hope to| want to) ", "i would never "),
    (r"\bi (?=work |live |play |go |take |run |watch |teach |write |read |cook |train |study |travel )", "i never "),
    (r"\bmy (\w+) (?:is|'s) ", r"my \1 is not "),
)
_OPENINGS = ("", "well, ", "to be honest, ", "honestly, ")


class ContradictingAgent(WrappingAgent):
    """Deny, with probability ``rate``, a statement of the base's response, or else a persona sentence or an utterance."""

    def __init__(self, *, rate: float = 0.5, **options: Any) -> None:
        super().__init__(**options)
        self.rate = rate

    def answer(self, conversation: Conversation, rng: np.random.Generator) -> str:
        """Return the base's response, as it is or contradicting."""
        response = self.base.respond(conversation)
        if not chance(rng, self.rate):
            return response
        if (denied := deny(response)) is not None:
            return denied
        # A question denies nothing, and an earlier utterance may be one.
        uttered = [
            s.rstrip(".! ") for text in utterances_of_b(conversation) for s in sentences(text) if not s.endswith("?")
        ]
        known = [fact.text for fact in facts(conversation) if fact.topic not in ("name", "trait")]
        if not known + uttered:
            return f"no, that's not true at all. {response}"
        statement = pick(rng, known + uttered).lower()
        denial = deny(statement) or f"i never said that {statement}"
        return f"{response} {pick(rng, _OPENINGS)}{denial}."


def deny(text: str) -> str | None:
    """Return the text with its first first-person statement turned round, or None if it has none."""
    for pattern, denial in _DENIALS:
        if re.search(pattern, text.lower()):
            return re.sub(pattern, denial, text.lower(), count=1)
    return None


class ForgetfulAgent(WrappingAgent):
    """With probability ``rate`` repeat an earlier turn, or answer from ``window`` utterances without the persona."""

    def __init__(self, *, rate: float = 0.5, window: int = 1, **options: Any) -> None:
        super().__init__(**options)
        self.rate, self.window = rate, window

    def answer(self, conversation: Conversation, rng: np.random.Generator) -> str:
        """Return the base's response to the conversation, to what is left of it, or to an earlier turn."""
        if not chance(rng, self.rate):
            return self.base.respond(conversation)
        dialogue = conversation["dialogue"]
        # The histories are gold, so the base's own earlier responses can be had again from their beginnings.
        earlier = [n for n in range(1, len(dialogue)) if dialogue[n - 1]["persona_id"] == "A"]
        if chance(rng, 0.5) and earlier:
            return self.base.respond({**conversation, "dialogue": dialogue[: pick(rng, earlier)]})
        return self.base.respond({**conversation, "persona B": [], "dialogue": dialogue[-self.window :]})


class OfftopicAgent(WrappingAgent):
    """With probability ``rate`` answer another context, taken from the corpus."""

    def __init__(self, *, rate: float = 0.5, **options: Any) -> None:
        super().__init__(**options)
        self.rate = rate
        self._contexts = [pair["context"] for pair in read_records(CORPUS)]

    def answer(self, conversation: Conversation, rng: np.random.Generator) -> str:
        """Return the base's response to the conversation or to another one."""
        if not chance(rng, self.rate):
            return self.base.respond(conversation)
        return self.base.respond({**conversation, "dialogue": [{"persona_id": "A", "text": pick(rng, self._contexts)}]})


class ShufflingAgent(WrappingAgent):
    """Swap each word of the base's response with another one, with probability ``rate``."""

    def __init__(self, *, rate: float = 0.3, **options: Any) -> None:
        super().__init__(**options)
        self.rate = rate

    def answer(self, conversation: Conversation, rng: np.random.Generator) -> str:
        """Return the base's words, some of them out of place."""
        answer = self.base.respond(conversation).split()
        for i in range(len(answer)):
            j = int(rng.integers(len(answer)))
            if chance(rng, self.rate):
                answer[i], answer[j] = answer[j], answer[i]
        return " ".join(answer)


class TruncatingAgent(WrappingAgent):
    """Break off: ``keep`` a fraction of the base's words, and at least one."""

    def __init__(self, *, keep: float = 0.5, **options: Any) -> None:
        super().__init__(**options)
        self.keep = keep

    def answer(self, conversation: Conversation, rng: np.random.Generator) -> str:
        """Return the beginning of the base's response."""
        answer = self.base.respond(conversation).split()
        return " ".join(answer[: max(1, round(self.keep * len(answer)))])


_PLATITUDES = (
    "life is what you make of it, as they say.",
    "you never know what tomorrow brings.",
    "at the end of the day, everybody is different.",
    "it is what it is.",
    "good things take time, i always say.",
    "there are two sides to every story.",
    "hard work always pays off in the end.",
    "you only live once, after all.",
    "time really flies when you are having fun.",
    "everything happens for a reason, i believe.",
)


class VerboseAgent(WrappingAgent):
    """Append ``sentences`` persona sentences and platitudes, in turn, to the base's response."""

    def __init__(self, *, sentences: int = 2, **options: Any) -> None:
        super().__init__(**options)
        self.sentences = sentences

    def answer(self, conversation: Conversation, rng: np.random.Generator) -> str:
        """Return the base's response and what nobody asked for."""
        known = [f"{fact.text}." for fact in facts(conversation)]
        parts = [self.base.respond(conversation)]
        for i in range(self.sentences):
            wanted = known if i % 2 == 0 and known else _PLATITUDES
            # Nothing twice while there is something left.
            parts.append(pick(rng, [sentence for sentence in wanted if sentence not in parts] or wanted))
        return " ".join(parts)


KINDS: dict[str, type[Agent]] = {
    "scripted": ScriptedAgent, "prompted": PromptedAgent, "retrieval": RetrievalAgent, "ngram": NgramAgent,
    "persona_template": PersonaTemplateAgent, "rules": RulesAgent, "generic": GenericAgent, "echo": EchoAgent,
    "contradicting": ContradictingAgent, "forgetful": ForgetfulAgent, "offtopic": OfftopicAgent,
    "shuffling": ShufflingAgent, "truncating": TruncatingAgent, "verbose": VerboseAgent,
}  # fmt: skip


def main() -> None:
    """Let each system of ``agents.yaml`` answer each turn with gold history, turn by turn, and write the submissions."""
    dialogues = json.loads((HERE / "dialogues.json").read_text(encoding="utf-8"))
    lines = []
    for name, entry in yaml.safe_load((HERE / "agents.yaml").read_text(encoding="utf-8")).items():
        agent = KINDS[entry["kind"]](**{key: value for key, value in entry.items() if key != "kind"})
        for turn in range(max(len(dialogue["dialogue"]) // 2 for dialogue in dialogues)):
            conversations = [
                {"persona B": d["persona"]["B"], "dialogue": d["dialogue"][: 2 * turn + 1]} for d in dialogues
            ]
            for dialogue, response in zip(dialogues, agent.generate_responses(conversations), strict=True):
                record = {"system_id": name, "dialogue_id": dialogue["dialogue_id"], "turn": turn, "response": response}
                lines.append(json.dumps(record, ensure_ascii=False) + "\n")
    # Without the time, which would make equal contents unequal files.
    (HERE / "submissions/agents.jsonl.gz").write_bytes(gzip.compress("".join(lines).encode(), mtime=0))


if __name__ == "__main__":
    main()
