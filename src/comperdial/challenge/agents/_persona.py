"""Persona sentences: what they are about, how a person would say them, and an answer made of one."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from comperdial.challenge.agent import Conversation
from comperdial.challenge.agents._base import chance, pick
from comperdial.challenge.agents._text import last_utterance, said_by_b, stems, words

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
    for topic, pattern, said in _FORMS:
        if match := re.fullmatch(pattern, plain):
            return Fact(topic, match.expand(said))
    return Fact("other", plain)


def best_fact(conversation: Conversation, known: list[Fact], rng: np.random.Generator) -> Fact:
    """Return the fact that matches the last utterance best and has not been told yet; ties are broken at random."""
    utterance = last_utterance(conversation).lower()
    wanted, told = stems(utterance), stems(" ".join(said_by_b(conversation)))
    asked = {topic for topic, cue in _CUES.items() if re.search(cue, utterance)}

    def score(fact: Fact) -> float:
        own = stems(fact.text)
        repeated = len(own & told) / max(len(own), 1)
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
