"""Conversations between two speakers, and whether the user continued after each reply (docs/continuity.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from pathlib import Path

from comperdial.core.errors import ConfigError
from comperdial.data import readers, sources
from comperdial.data.catalogue import CATALOGUE, Source, load_catalogue
from comperdial.data.readers import base
from comperdial.data.readers.base import Files, Row, Tables

PATIENCE = 30 * 60
"""Seconds within which a user who goes on begins, as in section 4.2 of the paper."""
SHARES = (0.7, 0.1)
"""Of conversations in the order of their beginning: to train and to validate; the rest are the test."""
_WAVE = 14 * 24 * 3600
_DIMENSION = "Overall"


@dataclass(frozen=True)
class Message:
    """A message; ``rating`` is by the other speaker, ``seconds`` its time, both optional."""

    speaker: str
    text: str
    seconds: float | None = None
    rating: float | None = None


@dataclass(frozen=True)
class Utterance:
    """Consecutive messages of one speaker: their start and end, and the last rating among them."""

    speaker: str
    text: str
    began: float | None = None
    ended: float | None = None
    rating: float | None = None


@dataclass(frozen=True)
class Conversation:
    """A conversation of two alternating speakers.

    Attributes
    ----------
    id, began
        Our number, by start time; seconds since the data set's first conversation.
    utterances
        Their utterances.
    users
        The speakers who are users, with their numbers; bots have no continuation to predict.
    systems
        The system name of each speaker when it replies.
    profiles, rating
        Profile sentences by speaker; the user's rating of the conversation.
    """

    id: str
    began: float
    utterances: tuple[Utterance, ...]
    users: Mapping[str, str]
    systems: Mapping[str, str]
    profiles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rating: float | None = None


@dataclass(frozen=True)
class Sample:
    """A reply that a user can answer: utterance ``turn`` of a conversation, and whether the user continued."""

    conversation: Conversation
    turn: int
    user_id: str
    continued: bool
    seconds: float | None

    @property
    def id(self) -> str:
        """Return the id of the reply's context."""
        return f"{self.conversation.id}-{self.turn:03d}"

    @property
    def reply(self) -> Utterance:
        """Return the reply."""
        return self.conversation.utterances[self.turn]


def merged(messages: Iterable[Message]) -> tuple[Utterance, ...]:
    """Merge consecutive messages of a speaker into utterances; drop empty messages."""
    result = []
    filled = (message for message in messages if message.text.strip())
    for speaker, group in groupby(filled, key=lambda message: message.speaker):
        parts = list(group)
        text = " ".join(word for part in parts for word in part.text.split())
        ratings = [part.rating for part in parts if part.rating is not None]
        result.append(Utterance(speaker, text, parts[0].seconds, parts[-1].seconds, ratings[-1] if ratings else None))
    return tuple(result)


def samples(conversations: Iterable[Conversation]) -> Iterator[Sample]:
    """Yield the replies of conversations that a user can answer, in order.

    The first utterance is skipped: in a conversation of two speakers somebody always answers it.
    """
    for one in conversations:
        for turn, (before, reply) in enumerate(pairwise(one.utterances), start=1):
            if before.speaker not in one.users:
                continue
            after = one.utterances[turn + 1] if turn + 1 < len(one.utterances) else None
            seconds = None
            if after and after.began is not None and reply.ended is not None:
                seconds = after.began - reply.ended
            continued = after is not None and (seconds is None or seconds <= PATIENCE)
            yield Sample(one, turn, one.users[before.speaker], continued, seconds)


def splits(conversations: Sequence[Conversation], *, waves: bool = False) -> dict[str, str]:
    """Assign each conversation to training, validation or test, by time.

    With ``waves``, each wave is split separately; a new wave starts after 14 days without a conversation.

    Raises
    ------
    ConfigError
        If there are too few conversations for three splits.
    """
    order = sorted(conversations, key=lambda conversation: (conversation.began, conversation.id))
    parts: list[list[Conversation]] = []
    for one in order:
        if not parts or (waves and one.began - parts[-1][-1].began > _WAVE):
            parts.append([])
        parts[-1].append(one)
    result = {}
    for part in parts:
        first, second = (round(len(part) * share) for share in (SHARES[0], sum(SHARES)))
        for place, one in enumerate(part):
            result[one.id] = "train" if place < first else "validation" if place < second else "test"
    if set(result.values()) != {"train", "validation", "test"}:
        raise ConfigError(f"{len(result)} conversations", expected="enough for three splits: ten or more")
    return result


def conversation_tables(
    dataset: str,
    files: Files,
    conversations: Sequence[Conversation],
    scales: Mapping[str, base.Scale],
    *,
    history: int | None = None,
) -> Tables:
    """Make the tables: a context for each reply that a user can answer, the reply, and whether the user continued.

    ``scales`` are the rating scales of a ``turn`` and a ``dialogue``, if users rated them. Contexts keep the last ``history``
    utterances, or all.
    """
    split = splits(conversations)
    systems: dict[str, Row] = {}
    answers, continuations, ratings, personas = [], [], [], []
    for conversation in conversations:
        asked = list(samples([conversation]))
        for sample in asked:
            speaker = sample.reply.speaker
            system = conversation.systems[speaker]
            systems[system] = base.system(system, "human" if speaker in conversation.users else "agent")
            start = 0 if history is None else max(0, sample.turn - history)
            before = [
                {"speaker": base.CHATBOT if one.speaker == speaker else base.PERSON, "text": one.text}
                for one in conversation.utterances[start : sample.turn]
            ]
            answers.append(base.answer(sample.id, conversation.id, sample.turn, before, system, sample.reply.text))
            about = {"user_id": sample.user_id, "continued": int(sample.continued), "seconds": sample.seconds}
            about |= {"began": conversation.began, "split": split[conversation.id]}
            continuations.append({"context_id": sample.id, "system_id": system, **about})
            if sample.reply.rating is not None:
                item = ("turn", sample.id, system)
                ratings.append(base.rating(item, sample.user_id, _DIMENSION, sample.reply.rating, scales["turn"]))
        if not asked or len(conversation.users) > 1:
            continue
        # With one evaluated speaker and one rater, the owners of profile and rating are unambiguous.
        if conversation.rating is not None:
            item = ("dialogue", conversation.id, conversation.systems[asked[0].reply.speaker])
            ratings.append(base.rating(item, asked[0].user_id, _DIMENSION, conversation.rating, scales["dialogue"]))
        personas += [
            base.persona(conversation.id, base.PERSON if speaker in conversation.users else base.CHATBOT, sentences)
            for speaker, sentences in conversation.profiles.items()
        ]
    raters = dict.fromkeys(row["annotator_id"] for row in ratings)
    others = {"annotators": [{"annotator_id": name, "role": "interlocutor"} for name in raters]}
    others["continuations"] = continuations
    return base.tables(dataset, files, systems.values(), answers, ratings, personas, **others)


RATED = "topical_chat"
"""Human replies with the partner's ratings, read from :data:`RATED_FILES` of the catalogue."""
RATED_FILES = ("topical_chat_valid_freq", "topical_chat_valid_rare")


def read_conversations(dataset: str, catalogue: str | Path = CATALOGUE) -> list[Conversation]:
    """Read the conversations of ``chitchat`` (a package), ``convai2`` or ``topical_chat``; download missing files.

    Raises
    ------
    ComperdialError
        If the package is not installed, or a file cannot be downloaded.
    """
    known = load_catalogue(catalogue)
    wanted: Mapping[str, Source] = {}
    if dataset == RATED:
        wanted = {name: known.file(name) for name in RATED_FILES}
    elif dataset != "chitchat":
        wanted = known.dataset(dataset).files
    result: list[Conversation] = readers.find(dataset).conversations(dataset, sources.require_all(wanted))
    return result
