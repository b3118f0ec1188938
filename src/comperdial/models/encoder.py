"""Texts to token vectors, each text once: by the model where needed, else from the store."""

from __future__ import annotations

import logging
import os
from collections import OrderedDict, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from comperdial.core import versions
from comperdial.core.errors import ConfigError, FileError
from comperdial.core.files import read_json
from comperdial.models import runtime
from comperdial.models.store import Model, find, verified
from comperdial.models.vectors import Encoded, VectorStore

log = logging.getLogger(__name__)

STORE_VARIABLE = "COMPERDIAL_EMBEDDINGS"
VERSION = 2
"""Raised when a change of this code changes vectors."""

# Texts that are tokenised at once: few enough to keep memory flat.
_BLOCK = 4096
# Tokens of a batch. All batches of one length are of one shape, the last one filled up: of 4,096 demo responses
# and their references that adds 6 % of tokens at 128, 23 % at 256 and 63 % at 512; at 2,048 three times as many.
_CPU_TOKENS, _OTHER_TOKENS = 128, 2048
# Batches that are computed or wait for it, for each thread: one more than it works at, so that it never waits.
_AHEAD = 2
# Vectors kept at hand: references and contexts are asked for again and again.
_RECENT = 512
# Models whose tokenisers are of RoBERTa's kind.
_BYTE_LEVEL = frozenset({"roberta", "longformer", "deberta"})


@dataclass(frozen=True)
class Encoder:
    """A model's layer in one precision: all that a vector depends on.

    Attributes
    ----------
    model
        As :func:`comperdial.models.find` takes it.
    layer
        Which hidden states: 0 for the embeddings, 1 for the first layer, …; negative ones count from the last.
    dtype
        ``fp32``, or ``bf16``: matrix products in bfloat16, the rest in float32.
    max_length
        The most tokens of a text, the model's own included; what is beyond is cut off, and counted.
    pooler
        Whether the model's pooled output is stored as one more row, the last one, marked special.
    keep
        Which end of a text that is too long is kept: ``start`` or ``end``.
    prefix_space
        Whether tokenisers of RoBERTa's kind see a text's first word as they see the same word later on.
    """

    model: str
    layer: int = -1
    dtype: str = "fp32"
    max_length: int = 512
    pooler: bool = False
    keep: Literal["start", "end"] = "start"
    prefix_space: bool = False

    def namespace(self) -> str:
        """Return the name of the file that holds the vectors: model checksum, layer, precision, code version."""
        model = find(self.model)
        config = _config(model.path)
        layers = config["num_hidden_layers"]
        if not -layers - 1 <= self.layer <= layers:
            raise ConfigError(f"layer {self.layer}", where=self.model, expected=f"0 to {layers}")
        # RoBERTa counts positions from the padding's on.
        room = config["max_position_embeddings"] - (2 if "roberta" in config["model_type"] else 0)
        if self.max_length > room:
            raise ConfigError(f"max_length {self.max_length}", where=self.model, expected=f"at most {room}")
        parts = [model.digest, f"layer{self.layer % (layers + 1)}", self.dtype, f"{self.max_length}{self.keep}"]
        parts += ["pooler"] * self.pooler + ["prefix"] * self.prefixes(config)
        parts += [f"{package}{versions.installed(package)}" for package in runtime.PACKAGES]
        return "-".join([*parts, f"v{VERSION}"])

    def prefixes(self, config: Mapping[str, Any]) -> bool:
        """Say whether ``prefix_space`` makes a difference for a model."""
        return self.prefix_space and config["model_type"] in _BYTE_LEVEL

    def vectors(self) -> Vectors:
        """Return access to this encoder's vectors, the same for all who ask for them in this process."""
        namespace, config = self.namespace(), _config(find(self.model).path)
        # However they say it: layer -1 of six is layer 6, and most tokenisers know no prefix space.
        layer = self.layer % (config["num_hidden_layers"] + 1)
        same = replace(self, layer=layer, prefix_space=self.prefixes(config))
        return _vectors(same, namespace, os.environ.get(STORE_VARIABLE) or None)


@cache
def _vectors(encoder: Encoder, namespace: str, root: str | None) -> Vectors:
    # By namespace too: a folder may hold another model than the last time.
    return Vectors(encoder, Path(root) if root else None)


@lru_cache(maxsize=2)
def _load(model: Model, layer: int, dtype: str, pooler: bool, device: str) -> Any:  # noqa: ANN401
    """Load a network up to a layer; two at a time, since encoders that differ in other ways share one."""
    import torch

    # On a cpu, the fused attention of torch takes longer than the plain one for texts as short as an utterance.
    plain = {"attn_implementation": "eager"} if device == "cpu" else {}
    network = runtime.load(model, unused=() if pooler else ("pooler.",), **plain)
    layers = network.config.num_hidden_layers
    stack = getattr(getattr(network, "encoder", None), "layer", None)
    if stack is None or len(stack) != layers:
        raise ConfigError("no encoder.layer", where=model.name, expected="a model of BERT's kind")
    wanted = layer % (layers + 1)
    if not pooler:
        # The layers above the wanted one would be computed for nothing.
        network.encoder.layer = stack[:wanted]
        network.config.num_hidden_layers = wanted
    elif wanted != layers:
        raise ConfigError("pooled output of a lower layer", where=model.name, expected="the last layer")
    if dtype == "bf16":
        # What autocast would otherwise do to all weights again for each batch.
        for module in network.modules():
            if isinstance(module, torch.nn.Linear):
                module.to(torch.bfloat16)
    return network


class _Row(NamedTuple):
    """A text's tokens, which of them the model adds, and how many did not fit."""

    text: str
    ids: list[int]
    special: list[int]
    cut: int


class Vectors:
    """The vectors of an encoder: from the store, and from the model for texts that it does not hold yet.

    A text's vectors depend on the text and on nothing else, to the last bit: not on the texts that it is encoded with,
    their order, the number of threads or what the store held before. The last digits of a matrix product depend on its
    shape and on how many threads share it, since both decide in which order numbers are added. So texts of equal length
    make a batch, always as many of them, and each batch is one thread's. That holds for one machine and device, one
    ``COMPERDIAL_BATCH_TOKENS``, and models whose number of heads is a multiple of 4: MKL's products of 5, 7, 9 and 11
    tokens have other last digits where they do not begin at a multiple of 16 bytes, and of other models some do not.

    Parameters
    ----------
    encoder
        What makes the vectors.
    root
        The folder that vectors are kept in, a file an encoder; default: they are kept until the process ends.
    """

    def __init__(self, encoder: Encoder, root: Path | None = None) -> None:
        self.encoder = encoder
        self._namespace = encoder.namespace()
        path = root / f"{self._namespace}.sqlite" if root else None
        self.store = VectorStore(path, int(self._config["hidden_size"]))
        self._recent: OrderedDict[str, Encoded] = OrderedDict()

    def add(self, texts: Iterable[str]) -> int:
        """Encode the texts that the store does not hold, each once; return how many those were."""
        waiting = self.store.missing(texts)
        first = next(waiting, None)
        if first is None:
            return 0
        added = 0
        with self.store.writer() as writer, closing(self._encode(chain([first], waiting))) as made:
            # Closed on an error too: threads are at work.
            for text, encoded in made:
                writer.add(text, encoded)
                added += 1
        log.info("%s: %d texts encoded", self.encoder.model, added)
        return added

    def __getitem__(self, text: str) -> Encoded:
        """Return the vectors of a text; one that is not in the store is encoded."""
        if text in self._recent:
            self._recent.move_to_end(text)
            return self._recent[text]
        found = self.store.get(text)
        if found is None:
            with self.store.writer() as writer:
                for _, encoded in self._encode([text]):
                    writer.add(text, encoded)
            found = encoded
        self._recent[text] = found
        if len(self._recent) > _RECENT:
            self._recent.popitem(last=False)
        return found

    @cached_property
    def _config(self) -> dict[str, Any]:
        return _config(find(self.encoder.model).path)

    @cached_property
    def _tokenizer(self) -> Any:  # noqa: ANN401
        options = {"add_prefix_space": True} if self.encoder.prefixes(self._config) else {}
        return runtime.load_tokenizer(find(self.encoder.model), **options)

    @cached_property
    def _network(self) -> Any:  # noqa: ANN401
        model = verified(self.encoder.model)
        if not self._namespace.startswith(model.digest):
            raise FileError("the model changed while it was in use", where=str(model.path), expected="the same files")
        place = str(runtime.device())
        return _load(model, self.encoder.layer, self.encoder.dtype, self.encoder.pooler, place)

    def _encode(self, texts: Iterable[str]) -> Generator[tuple[str, Encoded]]:
        """Yield texts and what the model makes of them, in another order."""
        from tqdm import tqdm

        tokens = runtime.batch_tokens(_CPU_TOKENS, _OTHER_TOKENS)
        # Loaded here: two threads would do it twice.
        _ = self._network
        with tqdm(total=0, desc="encode", delay=2, disable=None) as bar:
            batches = _of_one_length(self._rows(texts, bar), tokens)
            for group, (states, pooled) in _side_by_side(lambda group: self._forward(group, tokens), batches):
                for place, row in enumerate(group):
                    # Copied: a part would keep the whole batch in memory.
                    vectors, marks = states[place].copy(), np.array(row.special, dtype=np.bool_)
                    if pooled is not None:
                        vectors, marks = np.vstack([vectors, pooled[place]]), np.append(marks, True)
                    yield row.text, Encoded(vectors, marks, row.cut)
                bar.update(len(group))

    def _rows(self, texts: Iterable[str], bar: Any) -> Iterator[list[_Row]]:  # noqa: ANN401
        """Yield the texts' tokens, some thousand texts at a time."""
        remaining = iter(texts)
        while block := list(islice(remaining, _BLOCK)):
            bar.total += len(block)
            # No padding and no truncation here: what was cut is to be counted.
            found = self._tokenizer([text.strip() for text in block], return_special_tokens_mask=True, verbose=False)
            made = []
            for text, ids, special in zip(block, found["input_ids"], found["special_tokens_mask"], strict=True):
                if excess := max(0, len(ids) - self.encoder.max_length):
                    ids, special = _shorten(ids, special, excess, self.encoder.keep)
                made.append(_Row(text, ids, special, excess))
            yield made

    def _forward(self, group: Sequence[_Row], tokens: int) -> tuple[Any, Any]:
        """Run one batch; return its hidden states and, if wanted, its pooled outputs, as float32."""
        import torch

        lacking = _batch_size(group[0], tokens) - len(group)
        place = next(self._network.parameters()).device
        inputs = torch.tensor([row.ids for row in (*group, *[group[-1]] * lacking)], device=place)
        with (
            torch.inference_mode(),
            torch.autocast(place.type, torch.bfloat16, enabled=self.encoder.dtype == "bf16"),
        ):
            found = self._network(input_ids=inputs, attention_mask=torch.ones_like(inputs))
        pooled = found.pooler_output.float().cpu().numpy() if self.encoder.pooler else None
        return found.last_hidden_state.float().cpu().numpy(), pooled


def _of_one_length(blocks: Iterable[list[_Row]], tokens: int) -> Iterator[list[_Row]]:
    """Group texts of one length into full batches; only the last batch of a length may lack some.

    Of each block the longest come first, so that a lack of memory shows early.
    """
    waiting: dict[int, list[_Row]] = {}
    for block in blocks:
        for row in sorted(block, key=lambda row: len(row.ids), reverse=True):
            group = waiting.setdefault(len(row.ids), [])
            group.append(row)
            if len(group) == _batch_size(row, tokens):
                yield waiting.pop(len(row.ids))
    for length in sorted(waiting, reverse=True):
        yield waiting[length]


def _batch_size(row: _Row, tokens: int) -> int:
    return max(1, tokens // max(1, len(row.ids)))


def _side_by_side(
    function: Callable[[list[_Row]], tuple[Any, Any]], batches: Iterable[list[_Row]]
) -> Iterator[tuple[list[_Row], tuple[Any, Any]]]:
    """Yield batches and what a function makes of them, in their order.

    On a cpu as many are computed at the same time as torch would use threads, each by one thread, and some few wait.
    Any other device gets one after the other.
    """
    if runtime.device().type != "cpu":
        for batch in batches:
            yield batch, function(batch)
        return
    import torch

    count = torch.get_num_threads()
    # Also what threads begin with that start from here on: the pool's.
    torch.set_num_threads(1)
    pool = ThreadPoolExecutor(count, "batches", initializer=torch.set_num_threads, initargs=(1,))
    waiting: deque[tuple[list[_Row], Future[tuple[Any, Any]]]] = deque()
    try:
        for batch in batches:
            waiting.append((batch, pool.submit(function, batch)))
            if len(waiting) >= _AHEAD * count:
                first, found = waiting.popleft()
                yield first, found.result()
        while waiting:
            first, found = waiting.popleft()
            yield first, found.result()
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(count)


def _config(folder: Path) -> dict[str, Any]:
    config: dict[str, Any] = read_json(folder / "config.json")
    if missing := {"hidden_size", "num_hidden_layers", "max_position_embeddings", "model_type"} - set(config):
        raise ConfigError(
            f"no {', '.join(sorted(missing))}", where=str(folder / "config.json"), expected="a model of BERT's kind"
        )
    return config


def _shorten(ids: list[int], special: list[int], excess: int, keep: str) -> tuple[list[int], list[int]]:
    """Leave out some of a text's own tokens, at its beginning or end; the ones that the model adds stay."""
    own = [place for place, is_special in enumerate(special) if not is_special]
    if excess > len(own):
        raise ConfigError("max_length", expected="room for the tokens that the model adds")
    left_out = set(own[:excess] if keep == "end" else own[len(own) - excess :])
    places = [place for place in range(len(ids)) if place not in left_out]
    return [ids[place] for place in places], [special[place] for place in places]
