"""Training and test samples of continuity prediction, and the texts to encode (docs/continuity.md).

Separate from the models, so that changing those does not make the slow vectors stale.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from comperdial import models
from comperdial.core.files import replacing
from comperdial.data.continuations import RATED, Conversation, Sample, samples, splits
from comperdial.models import runtime
from comperdial.models.vectors import text_hash

Vector = npt.NDArray[np.float32]
SEED = 2024
SPLITS = {"chitchat": ("time", "waves"), "convai2": ("time",)}
ENCODERS = {"minilm": "all-MiniLM-L6-v2", "smollm2": "smollm2-135m-instruct"}
MOST_TOKENS = {"minilm": 64, "smollm2": 48}
# Maximum rated replies of Topical-Chat, and maximum test replies evaluated at their natural rate.
_MOST_RATED, _MOST_NATURAL = 3_000, 4_000
# Samples for SmolLM2, drawn from the balanced ones.
_FEW = {"train": 2_000, "validation": 400, "test": 1_000}
# Utterances averaged per user.
_PER_USER = 10


class Task(NamedTuple):
    """The samples of one way to split a data set, ``time`` or ``waves``.

    ``train``, ``validation`` and ``test`` are balanced, ``known`` is the whole training split, ``natural`` the unbalanced test
    split.
    """

    name: str
    train: list[Sample]
    validation: list[Sample]
    test: list[Sample]
    known: list[Sample]
    natural: list[Sample]

    @classmethod
    def of(cls, conversations: Sequence[Conversation], name: str) -> Task:
        """Split conversations and draw the balanced samples."""
        split = splits(conversations, waves=name == "waves")
        every = list(samples(conversations))
        parts: dict[str, list[list[Sample]]] = {part: [[], []] for part in _FEW}
        for number, given in enumerate((balanced(every, split, SEED), every)):
            for one in given:
                parts[split[one.conversation.id]][number].append(one)
        train, validation, test = (parts[part][0] for part in _FEW)
        return cls(name, train, validation, test, parts["train"][1], some(parts["test"][1], _MOST_NATURAL))

    def few(self, part: str) -> list[Sample]:
        """Return the samples of a part for SmolLM2."""
        return some(getattr(self, part), _FEW[part])


def tasks(conversations: Sequence[Conversation], names: Sequence[str]) -> list[Task]:
    """Return the tasks of a data set."""
    return [Task.of(conversations, name) for name in names]


def some(samples: Sequence[Sample], most: int) -> list[Sample]:
    """Return at most ``most`` random samples, in order."""
    places = np.random.default_rng(SEED).permutation(len(samples))[:most]
    return [samples[place] for place in sorted(places.tolist())]


def balanced(samples: Sequence[Sample], split: Mapping[str, str], seed: int) -> list[Sample]:
    """Return all negatives and, in each split, the same number of random positives, in the given order.

    One shuffle orders all positives, so that two ways to split share most of them.
    """
    room = Counter(split[sample.conversation.id] for sample in samples if not sample.continued)
    chosen = {place for place, sample in enumerate(samples) if not sample.continued}
    for place in np.random.default_rng(seed).permutation(len(samples)).tolist():
        part = split[samples[place].conversation.id]
        if samples[place].continued and room[part] > 0:
            room[part] -= 1
            chosen.add(place)
    return [samples[place] for place in sorted(chosen)]


def rated_replies(conversations: Sequence[Conversation]) -> list[Sample]:
    """Return random rated replies."""
    return some([sample for sample in samples(conversations) if sample.reply.rating is not None], _MOST_RATED)


# Texts


def reply(sample: Sample) -> str:
    """Return the text of the reply."""
    return sample.reply.text


def before(sample: Sample) -> str:
    """Return the user's last utterance before the reply."""
    return sample.conversation.utterances[sample.turn - 1].text


def talk(sample: Sample) -> str:
    """Return the language model's input: the last two utterances and the reply, with B as the reply's speaker."""
    turns = sample.conversation.utterances[max(0, sample.turn - 2) : sample.turn + 1]
    return "\n".join(f"{'B' if one.speaker == sample.reply.speaker else 'A'}: {one.text}" for one in turns)


def profile(sample: Sample) -> str:
    """Return the user's profile text; empty if there is none."""
    conversation = sample.conversation
    user = next(name for name, number in conversation.users.items() if number == sample.user_id)
    return " ".join(conversation.profiles.get(user, ()))


def of_users(samples: Sequence[Sample], seed: int = SEED) -> list[tuple[str, str]]:
    """Return (user, text) of the utterances behind users' history vectors: a few random ones per user."""
    texts: dict[str, dict[str, None]] = defaultdict(dict)
    for conversation in {sample.conversation.id: sample.conversation for sample in samples}.values():
        for utterance in conversation.utterances:
            if number := conversation.users.get(utterance.speaker):
                texts[number][utterance.text] = None
    random = np.random.default_rng(seed)
    chosen = []
    for user in sorted(texts, key=lambda number: (len(number), number)):
        own = list(texts[user])
        chosen += [(user, own[place]) for place in sorted(random.permutation(len(own))[:_PER_USER].tolist())]
    return chosen


def texts(dataset: str, conversations: Sequence[Conversation], encoder: str) -> Iterator[str]:
    """Yield the texts of a data set for an encoder; may repeat, or be empty."""
    if dataset != RATED and encoder == "smollm2":
        # Slow, so only for the first split.
        task = Task.of(conversations, SPLITS[dataset][0])
        yield from (talk(sample) for part in _FEW for sample in task.few(part))
        return
    # Samples to encode, and samples whose users' histories are encoded.
    parts: list[tuple[list[Sample], list[Sample]]] = [
        ([*task.train, *task.validation, *task.test, *task.natural], task.known)
        for task in tasks(conversations, SPLITS.get(dataset, ()))
    ]
    if dataset == "convai2":
        # Every reply, for cross-fitting.
        parts.append((every := list(samples(conversations)), every))
    elif dataset == RATED:
        parts.append((rated_replies(conversations), []))
    for read, known in parts:
        yield from (text(sample) for sample in read for text in (reply, before, profile))
        yield from (text for _, text in of_users(known))


# Vectors


class Vectors(dict[str, Vector]):
    """Vectors by text, read from a file that contains only hashes of texts."""

    def __init__(self, path: Path) -> None:
        from safetensors.numpy import load_file

        held = load_file(path)
        super().__init__({key.tobytes().hex(): row for key, row in zip(held["keys"], held["vectors"], strict=True)})

    def __getitem__(self, text: str) -> Vector:
        return super().__getitem__(text_hash(text).hex())

    def __contains__(self, text: object) -> bool:
        return super().__contains__(text_hash(str(text)).hex())


def read_vectors(paths: Sequence[Path]) -> dict[str, dict[str, Vectors]]:
    """Read files DATASET_ENCODER.safetensors; return vectors by data set and encoder."""
    read: dict[str, dict[str, Vectors]] = defaultdict(dict)
    for path in paths:
        dataset, _, encoder = path.stem.rpartition("_")
        read[dataset][encoder] = Vectors(path)
    return dict(read)


def write_vectors(path: Path, vectors: Mapping[str, Vector]) -> None:
    """Write vectors by text for :class:`Vectors`."""
    from safetensors.numpy import save_file

    keys = np.frombuffer(b"".join(map(text_hash, vectors)), dtype=np.uint8).reshape(-1, 16)
    with replacing(path) as temporary:
        save_file({"keys": keys.copy(), "vectors": np.stack(list(vectors.values()))}, temporary)


def embed(encoder: str, texts: Iterable[str], most: int, *, end: bool = False) -> dict[str, Vector]:
    """Return the mean of a model's last hidden states over the tokens of each non-empty text, in bfloat16.

    At most ``most`` tokens are read; with ``end`` the last ones, without special tokens, for language models. Raises
    MissingResourceError if ``encoder``, a model of ``comperdial.models``, is not on this machine.
    """
    import torch
    from torch.nn.utils.rnn import pad_sequence
    from tqdm import tqdm

    model = models.verified(encoder)
    tokenizer = runtime.load_tokenizer(model)
    distinct = [text for text in dict.fromkeys(texts) if text]
    ids = tokenizer(distinct, add_special_tokens=not end, verbose=False)["input_ids"] if distinct else []
    rows = [row if len(row) <= most else row[-most:] if end else [*row[: most - 1], row[-1]] for row in ids]
    network = runtime.load(model, dtype="bf16", unused=("pooler.",))
    vectors: dict[str, Vector] = {}
    with tqdm(total=len(rows), desc=f"vectors, {encoder}", delay=2, disable=None) as progress:
        for group in runtime.batches([len(row) for row in rows], runtime.batch_tokens(2048)):
            tokens = [torch.tensor(rows[place], device=network.device) for place in group]
            inputs = pad_sequence(tokens, batch_first=True)
            mask = pad_sequence([torch.ones_like(row) for row in tokens], batch_first=True)
            with torch.inference_mode():
                states = network(input_ids=inputs, attention_mask=mask).last_hidden_state.float()
            means = (states * mask[..., None]).sum(dim=1) / mask.sum(dim=1, keepdim=True)
            vectors |= zip([distinct[place] for place in group], means.cpu().numpy(), strict=True)
            progress.update(len(group))
    return vectors
