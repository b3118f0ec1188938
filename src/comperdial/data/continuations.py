"""Conversations between two speakers, and whether the user went on after each reply (docs/continuity-prediction.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
    """One message; ``rating`` is the other speaker's, ``seconds`` its time, both if known."""

    speaker: str
    text: str
    seconds: float | None = None
    rating: float | None = None


@dataclass(frozen=True)
class Utterance:
    """A speaker's messages in a row: when they began and ended, and the last rating of its messages."""

    speaker: str
    text: str
    began: float | None = None
    ended: float | None = None
    rating: float | None = None


@dataclass(frozen=True)
class Conversation:
    """A conversation of two speakers.

    Attributes
    ----------
    id
        A number of ours, in the order of beginning.
    began
        Seconds since the data set's first conversation began.
    utterances
        By two speakers who take turns.
    users
        Speakers who are users, with their numbers: nobody asks whether a bot goes on.
    systems
        What a table calls each speaker as the one who replies.
    profiles
        Profile sentences by speaker.
    rating
        The user's rating of the whole conversation.
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
    """A reply that a user can answer: the utterance ``turn`` of a conversation, and what came of it."""

    conversation: Conversation
    turn: int
    user_id: str
    continued: bool
    seconds: float | None

    @property
    def id(self) -> str:
        """Return the name of the reply's context."""
        return f"{self.conversation.id}-{self.turn:03d}"

    @property
    def reply(self) -> Utterance:
        """Return the reply."""
        return self.conversation.utterances[self.turn]


def merged(messages: Iterable[Message]) -> tuple[Utterance, ...]:
    """Make one utterance of what a speaker says in a row; empty messages are dropped."""
    found: list[Utterance] = []
    for message in messages:
        text = " ".join(message.text.split())
        if not text:
            continue
        if found and found[-1].speaker == message.speaker:
            last = found[-1]
            rating = last.rating if message.rating is None else message.rating
            found[-1] = Utterance(last.speaker, f"{last.text} {text}", last.began, message.seconds, rating)
        else:
            found.append(Utterance(message.speaker, text, message.seconds, message.seconds, message.rating))
    return tuple(found)


def samples(conversations: Iterable[Conversation]) -> Iterator[Sample]:
    """Yield the replies of conversations that a user can answer, in their order.

    The first utterance is none: in a conversation of two speakers somebody always answers it.
    """
    for conversation in conversations:
        utterances = conversation.utterances
        for turn in range(1, len(utterances)):
            reply, user = utterances[turn], utterances[turn - 1].speaker
            if user not in conversation.users:
                continue
            after = utterances[turn + 1] if turn + 1 < len(utterances) else None
            seconds = None
            if after and after.began is not None and reply.ended is not None:
                seconds = after.began - reply.ended
            continued = after is not None and (seconds is None or seconds <= PATIENCE)
            yield Sample(conversation, turn, conversation.users[user], continued, seconds)


def splits(conversations: Sequence[Conversation], *, waves: bool = False) -> dict[str, str]:
    """Say of each conversation whether it is to train, to validate or to test, by time.

    Parameters
    ----------
    conversations
        All of a data set.
    waves
        Whether each wave is split by itself; a wave begins after 14 days without a conversation.

    Raises
    ------
    ConfigError
        When there are too few conversations for three splits.
    """
    order = sorted(conversations, key=lambda conversation: (conversation.began, conversation.id))
    parts: list[list[str]] = [[]]
    before = order[0].began if order else 0.0
    for conversation in order:
        if waves and conversation.began - before > _WAVE:
            parts.append([])
        parts[-1].append(conversation.id)
        before = conversation.began
    found = {}
    for part in parts:
        first, second = (round(len(part) * share) for share in (SHARES[0], sum(SHARES)))
        for place, name in enumerate(part):
            found[name] = "train" if place < first else "validation" if place < second else "test"
    if set(found.values()) != {"train", "validation", "test"}:
        raise ConfigError(f"{len(found)} conversations", expected="enough for three splits: ten or more")
    return found


def conversation_tables(
    dataset: str,
    files: Files,
    conversations: Sequence[Conversation],
    scales: Mapping[str, base.Scale],
    *,
    history: int | None = None,
) -> Tables:
    """Make a context for each reply that a user can answer, the reply, and whether the user went on.

    Parameters
    ----------
    dataset, files
        As a reader gets them.
    conversations
        All of the data set.
    scales
        Lowest and highest rating of a ``turn`` and of a ``dialogue``, where users rated them.
    history
        How many utterances before a reply table ``contexts`` holds, the last ones; None for all.
    """
    split = splits(conversations)
    systems: dict[str, Row] = {}
    rows: dict[str, list[Row]] = {
        name: [] for name in ("contexts", "personas", "responses", "ratings", "continuations")
    }
    for conversation in conversations:
        utterances, asked = conversation.utterances, list(samples([conversation]))
        for sample in asked:
            speaker = sample.reply.speaker
            system = conversation.systems[speaker]
            systems[system] = base.system(system, "human" if speaker in conversation.users else "agent")
            start = 0 if history is None else max(0, sample.turn - history)
            before = [
                {"speaker": base.CHATBOT if one.speaker == speaker else base.PERSON, "text": one.text}
                for one in utterances[start : sample.turn]
            ]
            rows["contexts"].append(base.context(sample.id, conversation.id, sample.turn, before))
            rows["responses"].append(base.response(sample.id, system, sample.reply.text))
            rows["continuations"].append(
                {
                    "context_id": sample.id,
                    "system_id": system,
                    "user_id": sample.user_id,
                    "continued": int(sample.continued),
                    "seconds": sample.seconds,
                    "began": conversation.began,
                    "split": split[conversation.id],
                }
            )
            if sample.reply.rating is not None:
                item = ("turn", sample.id, system, sample.user_id)
                rows["ratings"].append(base.rating(*item, _DIMENSION, sample.reply.rating, scales["turn"]))
        if not asked or len(conversation.users) > 1:
            continue
        # One who is under evaluation and one who judges: whose profile and whose rating it is is plain.
        if conversation.rating is not None:
            item = ("dialogue", conversation.id, conversation.systems[asked[0].reply.speaker], asked[0].user_id)
            rows["ratings"].append(base.rating(*item, _DIMENSION, conversation.rating, scales["dialogue"]))
        rows["personas"] += [
            base.persona(conversation.id, base.PERSON if speaker in conversation.users else base.CHATBOT, sentences)
            for speaker, sentences in conversation.profiles.items()
        ]
    raters = dict.fromkeys(row["annotator_id"] for row in rows["ratings"])
    annotators = [{"annotator_id": name, "role": "interlocutor"} for name in raters]
    return base.tables(dataset, files, systems=systems.values(), annotators=annotators, **rows)


RATED = "topical_chat"
"""Human replies with the partner's ratings, read from :data:`RATED_FILES` of the catalogue."""
RATED_FILES = ("topical_chat_valid_freq", "topical_chat_valid_rare")


def read_conversations(dataset: str, catalogue: str | Path = CATALOGUE) -> list[Conversation]:
    """Read the conversations of ``chitchat`` (a package), ``convai2`` or ``topical_chat``; missing files are fetched.

    Raises
    ------
    ComperdialError
        When the package is not installed, or a file cannot be fetched.
    """
    known = load_catalogue(catalogue)
    wanted: Mapping[str, Source] = {}
    if dataset == RATED:
        wanted = {name: known.file(name) for name in RATED_FILES}
    elif dataset != "chitchat":
        wanted = known.dataset(dataset).files
    found: list[Conversation] = readers.find(dataset).conversations(dataset, sources.require_all(wanted))
    return found
