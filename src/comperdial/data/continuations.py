"""Conversations between two speakers, and whether the user went on after each reply (docs/continuity-prediction.md)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from comperdial.core.errors import ConfigError
from comperdial.core.plugins import load_class
from comperdial.data import sources
from comperdial.data.catalogue import CATALOGUE, load_catalogue
from comperdial.data.readers.base import Reader, Tables

PATIENCE = 30 * 60
"""Seconds within which a user who goes on begins, as in section 4.2 of the paper."""
SHARES = (0.7, 0.1)
"""Of conversations in the order of their beginning: to train and to validate; the rest are the test."""
_WAVE = 14 * 24 * 3600
_DIMENSION = "Overall"
_TABLES = ("systems", "contexts", "personas", "responses", "ratings", "annotators", "continuations")


@dataclass(frozen=True)
class Message:
    """What was sent at once; ``rating`` is what the other speaker said of it, ``seconds`` when, both where it is known."""

    speaker: str
    text: str
    seconds: float | None = None
    rating: float | None = None


@dataclass(frozen=True)
class Utterance:
    """What a speaker said in a row: when it began and ended, and the last rating of its messages."""

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
        What the user said of the whole conversation.
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
        said = conversation.utterances
        for turn in range(1, len(said)):
            reply, user = said[turn], said[turn - 1].speaker
            if user not in conversation.users:
                continue
            after = said[turn + 1] if turn + 1 < len(said) else None
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


class ConversationReader(Reader):
    """Turns upstream files into conversations of two speakers, and these into tables."""

    history: ClassVar[int | None] = None
    """How many utterances before a reply table ``contexts`` holds, the last ones; None for all."""
    scales: ClassVar[Mapping[str, tuple[int, int]]] = {}
    """Lowest and highest rating of a ``turn`` and of a ``dialogue``, where users rated them."""

    @abstractmethod
    def conversations(self) -> list[Conversation]:
        """Return the conversations, in the order of their beginning."""

    def read(self) -> Tables:
        """Return a context for each reply that a user can answer, the reply, and whether the user went on."""
        found = self.conversations()
        split = splits(found)
        systems: dict[str, dict[str, Any]] = {}
        rows: dict[str, list[dict[str, Any]]] = {name: [] for name in _TABLES}
        for conversation in found:
            asked = list(samples([conversation]))
            for sample in asked:
                kind = "human" if sample.reply.speaker in conversation.users else "agent"
                system_id = conversation.systems[sample.reply.speaker]
                systems[system_id] = {"system_id": system_id, "kind": kind, "track": None, "description": ""}
                item = {"context_id": sample.id, "system_id": system_id}
                rows["contexts"].append(self._context(sample))
                rows["responses"].append({**item, "response": sample.reply.text})
                came = {"continued": int(sample.continued), "seconds": sample.seconds}
                when = {"began": conversation.began, "split": split[conversation.id]}
                rows["continuations"].append({**item, "user_id": sample.user_id, **came, **when})
                if sample.reply.rating is not None:
                    rows["ratings"].append(self._rated("turn", sample.id, system_id, sample, sample.reply.rating))
            if not asked or len(conversation.users) > 1:
                continue
            # One who is under evaluation and one who judges: whose profile and whose rating it is is plain.
            system_id = conversation.systems[asked[0].reply.speaker]
            if conversation.rating is not None:
                rating = self._rated("dialogue", conversation.id, system_id, asked[0], conversation.rating)
                rows["ratings"].append(rating)
            for speaker, sentences in conversation.profiles.items():
                side = "A" if speaker in conversation.users else "B"
                told = {"sentences": list(sentences), "kinds": ["profile"] * len(sentences)}
                rows["personas"].append({"dialogue_id": conversation.id, "speaker": side, **told})
        rows["systems"] = [systems[name] for name in sorted(systems)]
        raters = dict.fromkeys(row["annotator_id"] for row in rows["ratings"])
        rows["annotators"] = [{"annotator_id": name, "role": "interlocutor"} for name in raters]
        origin = next(iter(self.files.values()), Path(self.dataset))
        return {name: self.frame(name, content, origin) for name, content in rows.items()}

    def _context(self, sample: Sample) -> dict[str, Any]:
        said = sample.conversation.utterances
        start = 0 if self.history is None else max(0, sample.turn - self.history)
        return {
            "context_id": sample.id,
            "dialogue_id": sample.conversation.id,
            "turn": sample.turn,
            "history": [
                {"speaker": "B" if before.speaker == sample.reply.speaker else "A", "text": before.text}
                for before in said[start : sample.turn]
            ],
            "references": [],
            "facts": [],
        }

    def _rated(self, level: str, item: str, system_id: str, sample: Sample, rating: float) -> dict[str, Any]:
        low, high = self.scales[level]
        return {
            "level": level,
            "item_id": item,
            "system_id": system_id,
            "annotator_id": sample.user_id,
            "position": None,
            "dimension": _DIMENSION,
            "rating": rating,
            "scale_min": low,
            "scale_max": high,
            "source": "human",
        }


RATED = "topical_chat"
"""Human replies with the partner's ratings, read from :data:`RATED_FILES` of the catalogue."""
RATED_FILES = ("topical_chat_valid_freq", "topical_chat_valid_rare")


def read_conversations(dataset: str, catalogue: str | Path = CATALOGUE) -> list[Conversation]:
    """Read the conversations of ``chitchat`` (a package), ``convai2`` or ``topical_chat``; missing files are fetched.

    Raises
    ------
    ComperdialError
        When the package is not installed, a file cannot be fetched or breaks its format.
    """
    known = load_catalogue(catalogue)
    wanted = {
        "chitchat": lambda: {},
        "convai2": lambda: known.dataset(dataset).files,
        RATED: lambda: {name: known.file(name) for name in RATED_FILES},
    }[dataset]()
    files = {role: sources.raw_path(source) for role, source in wanted.items()}
    for role, source in wanted.items():
        sources.fetch(source, files[role])
    kind: type[ConversationReader] = ConversationReader  # type: ignore[type-abstract]
    reader = load_class("comperdial.data.readers", dataset, kind, kind="reader", helpers=frozenset({"base"}))
    return reader(dataset, files).conversations()
