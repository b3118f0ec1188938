"""What continuity prediction is trained and tested on, and what its encoders read (docs/continuity-prediction.md).

Apart from the models, so that a change of these does not make vectors stale, which take minutes.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from comperdial import models
from comperdial.core.files import replacing
from comperdial.data.continuations import RATED, Conversation, Sample, samples, splits
from comperdial.models import runtime

SEED = 2024
SPLITS = {"chitchat": ("time", "waves"), "convai2": ("time",)}
MOST_RATED = 3_000
"""Rated replies of Topical-Chat that are read."""
MOST_NATURAL = 4_000
"""Replies of the test split that are evaluated at their natural rate."""
FEW = {"train": 2_000, "validation": 400, "test": 1_000}
"""Samples that SmolLM2 reads, drawn from the balanced ones."""
ENCODERS = {"minilm": "all-MiniLM-L6-v2", "smollm2": "smollm2-135m-instruct"}
MOST_TOKENS = {"minilm": 64, "smollm2": 48}
# Utterances of a user whose vectors are averaged.
_REMEMBERED = 10


@dataclass(frozen=True)
class Task:
    """What is trained on, chosen by and tested on.

    Attributes
    ----------
    name
        How conversations were split: ``time`` or ``waves``.
    train, validation, test
        The balanced samples.
    known
        All samples of the training split.
    natural
        Samples of the test split as they come.
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
        asked = list(samples(conversations))
        drawn: dict[str, list[Sample]] = defaultdict(list)
        for sample in balanced(asked, split, SEED):
            drawn[split[sample.conversation.id]].append(sample)
        natural = [sample for sample in asked if split[sample.conversation.id] == "test"]
        return cls(
            name,
            drawn["train"],
            drawn["validation"],
            drawn["test"],
            [sample for sample in asked if split[sample.conversation.id] == "train"],
            some(natural, MOST_NATURAL),
        )

    def few(self, part: str) -> list[Sample]:
        """Return the samples of a part that SmolLM2 reads."""
        return some(getattr(self, part), FEW[part])

    def texts(self, encoder: str) -> Iterator[str]:
        """Yield what an encoder reads for this task."""
        if encoder == "smollm2":
            for part in ("train", "validation", "test"):
                yield from (talk(sample) for sample in self.few(part))
            return
        for sample in [*self.train, *self.validation, *self.test, *self.natural]:
            yield from (sample.reply.text, before(sample))
            if text := profile(sample):
                yield text
        yield from (text for _, text in remembered(self.known))


def some(found: Sequence[Sample], most: int) -> list[Sample]:
    """Return at most so many samples, drawn at random, in their order."""
    places = np.random.default_rng(SEED).permutation(len(found))[:most]
    return [found[place] for place in sorted(places.tolist())]


def tasks(conversations: Sequence[Conversation], names: Sequence[str]) -> list[Task]:
    """Return the tasks of a data set."""
    return [Task.of(conversations, name) for name in names]


# Samples


def balanced(samples: Sequence[Sample], split: Mapping[str, str], seed: int) -> list[Sample]:
    """Return all negatives and, in each split, as many positives, drawn at random; in the order given.

    One draw orders all positives, so that two ways to split share most of them.
    """
    order = np.random.default_rng(seed).permutation(len(samples))
    room = Counter(split[sample.conversation.id] for sample in samples if not sample.continued)
    chosen = {place for place, sample in enumerate(samples) if not sample.continued}
    for place in order.tolist():
        of = split[samples[place].conversation.id]
        if samples[place].continued and room[of] > 0:
            room[of] -= 1
            chosen.add(place)
    return [samples[place] for place in sorted(chosen)]


def before(sample: Sample) -> str:
    """Return the user's last utterance before the reply."""
    return sample.conversation.utterances[sample.turn - 1].text


def talk(sample: Sample) -> str:
    """Return the last two utterances and the reply, the reply's speaker being B: what the language model reads."""
    said = sample.conversation.utterances[max(0, sample.turn - 2) : sample.turn + 1]
    lines = [f"{'B' if one.speaker == sample.reply.speaker else 'A'}: {one.text}" for one in said]
    return "\n".join(lines)


def profile(sample: Sample) -> str:
    """Return the profile text of the user; empty where there is none."""
    conversation = sample.conversation
    user = next(name for name, number in conversation.users.items() if number == sample.user_id)
    return " ".join(conversation.profiles.get(user, ()))


def remembered(samples: Sequence[Sample], seed: int = 2024) -> list[tuple[str, str]]:
    """Return the users' utterances whose vectors their histories hold: (user, text), of each some drawn at random."""
    said: dict[str, dict[str, None]] = defaultdict(dict)
    for conversation in {sample.conversation.id: sample.conversation for sample in samples}.values():
        for utterance in conversation.utterances:
            if number := conversation.users.get(utterance.speaker):
                said[number][utterance.text] = None
    random = np.random.default_rng(seed)
    found = []
    for user in sorted(said, key=lambda number: (len(number), number)):
        texts = list(said[user])
        found += [(user, texts[place]) for place in sorted(random.permutation(len(texts))[:_REMEMBERED].tolist())]
    return found


def rated_replies(conversations: Sequence[Conversation]) -> list[Sample]:
    """Return some of the replies that were rated, drawn at random."""
    return some([sample for sample in samples(conversations) if sample.reply.rating is not None], MOST_RATED)


# Vectors


def texts(dataset: str, conversations: Sequence[Conversation], encoder: str) -> Iterator[str]:
    """Yield the texts of a data set that an encoder reads."""
    if dataset == RATED:
        for sample in rated_replies(conversations):
            yield from (sample.reply.text, before(sample))
        return
    # SmolLM2 is slow, and reads the first split alone.
    for task in tasks(conversations, SPLITS[dataset][:1] if encoder == "smollm2" else SPLITS[dataset]):
        yield from task.texts(encoder)
    if dataset == "convai2" and encoder == "minilm":
        # Every reply, for cross-fitting.
        every = list(samples(conversations))
        for sample in every:
            yield from filter(None, (sample.reply.text, before(sample), profile(sample)))
        yield from (text for _, text in remembered(every))


class Known(dict[str, npt.NDArray[np.float32]]):
    """Vectors by text, read from a file that holds hashes of texts and no text."""

    def __init__(self, path: Path) -> None:
        from safetensors.numpy import load_file

        held = load_file(path)
        super().__init__({key.tobytes().hex(): row for key, row in zip(held["keys"], held["vectors"], strict=True)})

    def __getitem__(self, text: str) -> npt.NDArray[np.float32]:
        return super().__getitem__(_key(text).hex())

    def __contains__(self, text: object) -> bool:
        return super().__contains__(_key(str(text)).hex())


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def read_vectors(paths: Sequence[Path]) -> dict[str, dict[str, Known]]:
    """Return the vectors of files DATASET_ENCODER.safetensors by data set and encoder."""
    found: dict[str, dict[str, Known]] = {}
    for path in paths:
        dataset, _, encoder = path.stem.rpartition("_")
        found.setdefault(dataset, {})[encoder] = Known(path)
    return found


def write_vectors(path: Path, vectors: Mapping[str, npt.NDArray[np.float32]]) -> None:
    """Write vectors by text as :class:`Known` reads them."""
    from safetensors.numpy import save_file

    keys = np.frombuffer(b"".join(map(_key, vectors)), dtype=np.uint8).reshape(-1, 16)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        save_file({"keys": keys.copy(), "vectors": np.stack(list(vectors.values()))}, temporary)


def embed(name: str, texts: Iterable[str]) -> dict[str, npt.NDArray[np.float32]]:
    """Return the mean of a model's last hidden states over a text's last tokens, each text once.

    Parameters
    ----------
    name
        One of :data:`ENCODERS`, of which :data:`MOST_TOKENS` says how many tokens are read: MiniLM reads a text's first ones.

    Raises
    ------
    MissingResourceError
        When the model is not on this machine.
    """
    import torch
    from tqdm import tqdm

    model = models.verified(ENCODERS[name])
    tokenizer = runtime.load_tokenizer(model)
    most, causal = MOST_TOKENS[name], name == "smollm2"
    distinct = [text for text in dict.fromkeys(texts) if text]
    if not distinct:
        return {}
    ids = tokenizer(distinct, add_special_tokens=not causal, verbose=False)["input_ids"]
    rows = [row[-most:] if causal else [*row[: most - 1], row[-1]] if len(row) > most else row for row in ids]
    network = runtime.load(model, dtype="bf16", unused=("pooler.",))
    found: dict[str, npt.NDArray[np.float32]] = {}
    bar = tqdm(total=len(rows), desc=f"vectors, {name}", delay=2, disable=None)
    for group in runtime.batches([len(row) for row in rows], runtime.batch_tokens(2048)):
        width = max(len(rows[place]) for place in group)
        tokens = torch.zeros((len(group), width), dtype=torch.long, device=network.device)
        mask = torch.zeros_like(tokens)
        for line, place in enumerate(group):
            tokens[line, : len(rows[place])] = torch.tensor(rows[place])
            mask[line, : len(rows[place])] = 1
        with torch.inference_mode():
            states = network(input_ids=tokens, attention_mask=mask).last_hidden_state.float()
        means = (states * mask[..., None]).sum(dim=1) / mask.sum(dim=1, keepdim=True)
        for place, vector in zip(group, means.cpu().numpy(), strict=True):
            found[distinct[place]] = vector
        bar.update(len(group))
    bar.close()
    return found
