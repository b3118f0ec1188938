"""Rules in Eliza's manner: patterns of the last utterance, and answers with slots."""

from __future__ import annotations

import re
import string

import numpy as np

from comperdial.challenge.agent import Conversation
from comperdial.challenge.agents._base import SingleAgent, fraction, pick
from comperdial.challenge.agents._persona import facts
from comperdial.challenge.agents._text import last_utterance

# (pattern, answers); the first that fits counts. {name}, {age}, {job} and so on are persona sentences of that topic;
# an answer is left out where the persona has none of it. {said} is what the pattern caught, reflected.
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
    (r"\bmy name is (\w+)", ("nice to meet you, {said}!", "hello {said}, how are you today?")),
    (r"i(?:'m| am) (\d+)", ("{said} is a good age. {age}.", "oh, {said}? {age}.")),
    (
        r"\bbye\b|nice talking|have a (?:good|nice|great)|take care",
        ("it was nice talking to you too!", "take care, bye!"),
    ),
    (r"thank", ("you're very welcome!", "no problem at all.")),
    (r"do you like ([^.?!,]+)", ("i do like {said}. do you?", "i don't mind {said}, why do you ask?")),
    (
        r"would you like to ([^.?!,]+)",
        ("i would love to {said} one day.", "to {said}? i would have to think about it."),
    ),
    (r"can you ([^.?!,]+)\?", ("i'm not sure i can {said}. can you?", "maybe i can {said}, with some practice.")),
    (r"are you ([^.?!,]+)\?", ("why do you ask if i am {said}?", "i would not say that i am {said}.")),
    (r"i (?:love|like|enjoy) ([^.?!,]+)", ("what do you like about {said}?", "i can see why you enjoy {said}.")),
    (r"i want to ([^.?!,]+)", ("why do you want to {said}?", "i hope you get to {said} soon.")),
    (r"i(?:'m| am) (an? [^.?!,]+)", ("how long have you been {said}?", "what is it like to be {said}?")),
    (r"i used to ([^.?!,]+)", ("why did you stop? did you like to {said}?", "i never got to {said} myself.")),
    (r"i have ([^.?!,]+)", ("how long have you had {said}?", "it must be nice to have {said}.")),
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


class RulesAgent(SingleAgent):
    """Answer by the first rule that fits, or ask the other one to go on.

    Parameters
    ----------
    rules
        Fraction of the rules that it knows, drawn with the seed: higher is better.
    """

    def __init__(self, *, rules: float = 1.0, seed: int = 0) -> None:
        super().__init__(seed=seed)
        self.rules = fraction(self, "rules", rules)
        known = np.random.default_rng(self.seed).permutation(len(RULES))[: round(self.rules * len(RULES))]
        self._rules = [RULES[i] for i in sorted(known)]

    def answer(self, conversation: Conversation, rng: np.random.Generator) -> str:
        """Return the answer of a rule with its slots filled, or a default."""
        utterance = last_utterance(conversation).lower()
        slots: dict[str, str] = {}
        for fact in facts(conversation):
            slots.setdefault(fact.topic, fact.text)
        for pattern, answers in self._rules:
            if match := re.search(pattern, utterance):
                slots["said"] = _reflected(next((group for group in match.groups() if group), ""))
                usable = [answer for answer in answers if _slots_of(answer) <= slots.keys()]
                if usable:
                    return pick(rng, usable).format(**slots)
        return pick(rng, DEFAULTS)


def _slots_of(answer: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(answer) if name}


def _reflected(text: str) -> str:
    return " ".join(_REFLECTIONS.get(word, word) for word in text.split())
