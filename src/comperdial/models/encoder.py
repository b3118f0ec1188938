"""Texts to token vectors, each text once: from the cache, or by the model."""

from __future__ import annotations

import logging
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from comperdial.core import versions
from comperdial.core.errors import ConfigError, FileError
from comperdial.core.files import read_json
from comperdial.models import runtime
from comperdial.models.store import Model, find, verified
from comperdial.models.vectors import Encoded, VectorStore

log = logging.getLogger(__name__)

_T = TypeVar("_T")

STORE_VARIABLE = "COMPERDIAL_EMBEDDINGS"
VERSION = 2
"""Raised when a change of this code changes vectors."""

# Texts that are tokenised, and that are written, at once; batches that are given to a thread at once.
_BLOCK, _WRITTEN, _AT_ONCE = 4096, 64, 16
# Tokens of a batch. All batches of one length have one shape, the last one is filled up: of 4,096 demo responses
# and their references that adds 6 % of tokens at 128, 23 % at 256 and 63 % at 512.
_CPU_TOKENS, _OTHER_TOKENS = 128, 2048
# Models whose tokenisers are of RoBERTa's kind.
_BYTE_LEVEL = frozenset({"roberta", "longformer", "deberta"})
_CONFIG = ("hidden_size", "num_hidden_layers", "max_position_embeddings", "model_type")


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
        The most tokens of a text, the model's own included; the rest is cut off, and counted.
    pooler
        Whether the model's pooled output is one more row, the last one, marked special.
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
        """Return the name of the cache's file; raise ConfigError if the model lacks the layer or the positions."""
        model, config = find(self.model), self.config
        layers = config["num_hidden_layers"]
        if not -layers - 1 <= self.layer <= layers:
            raise ConfigError(f"layer {self.layer}", where=self.model, expected=f"0 to {layers}")
        # RoBERTa counts positions from the padding's on.
        room = config["max_position_embeddings"] - (2 if "roberta" in config["model_type"] else 0)
        if self.max_length > room:
            raise ConfigError(f"max_length {self.max_length}", where=self.model, expected=f"at most {room}")
        parts = [model.digest, f"layer{self.layer % (layers + 1)}", self.dtype, f"{self.max_length}{self.keep}"]
        parts += ["pooler"] * self.pooler + ["prefix"] * self.adds_space
        parts += [f"{package}{versions.installed(package)}" for package in runtime.PACKAGES]
        return "-".join([*parts, f"v{VERSION}"])

    @property
    def config(self) -> Mapping[str, Any]:
        """Return the model's configuration."""
        path = find(self.model).path / "config.json"
        config: dict[str, Any] = read_json(path)
        if missing := [key for key in _CONFIG if key not in config]:
            raise ConfigError(f"no {', '.join(missing)}", where=str(path), expected="a model of BERT's kind")
        return config

    @property
    def adds_space(self) -> bool:
        """Return whether ``prefix_space`` makes a difference for the model."""
        return self.prefix_space and self.config["model_type"] in _BYTE_LEVEL

    def vectors(self) -> Vectors:
        """Return this encoder's vectors, the same object for all who share its cache in this process."""
        root = os.environ.get(STORE_VARIABLE) or None
        key = (self.model, self.namespace(), root)
        if key not in _open:
            _open[key] = Vectors(self, Path(root) if root else None)
        return _open[key]


_open: dict[tuple[str, str, str | None], Vectors] = {}


class Vectors:
    """The vectors of an encoder: from the cache, or from the model.

    A text's vectors depend on the text alone, to the last bit: not on the texts that it is encoded with, their order or
    the number of threads. The last digits of a matrix product depend on its shape and on how many threads share it. So
    texts of equal length make a batch, always as many of them, and each batch is one thread's. That holds for one machine
    and device, one ``COMPERDIAL_BATCH_TOKENS``, and models whose number of heads is a multiple of 4: MKL's products of 5,
    7, 9 and 11 tokens have other last digits if they do not begin at a multiple of 16 bytes.

    ``root`` is the folder of the cache; without one, vectors are kept until the process ends.
    """

    def __init__(self, encoder: Encoder, root: Path | None = None) -> None:
        self.encoder = encoder
        self._namespace = encoder.namespace()
        path = root / f"{self._namespace}.sqlite" if root else None
        self._store = VectorStore(path, int(encoder.config["hidden_size"]))
        # References and contexts are needed again and again.
        self._get = lru_cache(maxsize=512)(self._read)

    def add(self, texts: Iterable[str]) -> int:
        """Encode the texts that are not in the cache, each once; return their number."""
        new = self._store.missing(texts)
        if new:
            for rows in _batched(self._encode(new), _WRITTEN):
                self._store.put(rows)
            log.info("%s: %d texts encoded", self.encoder.model, len(new))
        return len(new)

    def __getitem__(self, text: str) -> Encoded:
        """Return the vectors of a text, which is encoded if it is not in the cache."""
        return self._get(text)

    def _read(self, text: str) -> Encoded:
        self.add([text])
        encoded = self._store.get(text)
        assert encoded  # noqa: S101 - it was just added
        return encoded

    @cached_property
    def _tokenizer(self) -> Any:  # noqa: ANN401
        options = {"add_prefix_space": True} if self.encoder.adds_space else {}
        side = "left" if self.encoder.keep == "end" else "right"
        return runtime.load_tokenizer(find(self.encoder.model), truncation_side=side, **options)

    @cached_property
    def _network(self) -> Any:  # noqa: ANN401
        model, encoder = verified(self.encoder.model), self.encoder
        if not self._namespace.startswith(model.digest):
            raise FileError("the model changed while it was in use", where=str(model.path), expected="the same files")
        layer = encoder.layer % (encoder.config["num_hidden_layers"] + 1)
        return _load(model, layer, encoder.dtype, encoder.pooler, str(runtime.device()))

    def _encode(self, texts: list[str]) -> Iterator[tuple[str, Encoded]]:
        """Yield texts and their vectors, in another order; on a cpu each of torch's threads reads a batch by itself."""
        import torch
        from tqdm import tqdm

        threads = torch.get_num_threads()
        count = threads if self._network.device.type == "cpu" else 1
        # New threads begin with this number, too.
        torch.set_num_threads(1)
        pool = ThreadPoolExecutor(count, "batches", initializer=torch.set_num_threads, initargs=(1,))
        try:
            with tqdm(total=len(texts), desc="encode", delay=2, disable=None) as bar:
                for some in _batched(self._batches(texts), _AT_ONCE * count):
                    for batch, outputs in zip(some, pool.map(self._forward, some), strict=True):
                        # By text: a batch may be filled up.
                        encoded = dict(zip((row.text for row in batch), outputs, strict=True))
                        yield from encoded.items()
                        bar.update(len(encoded))
        finally:
            pool.shutdown(cancel_futures=True)
            torch.set_num_threads(threads)

    def _batches(self, texts: list[str]) -> Iterator[list[_Row]]:
        """Yield batches of texts of one length, the longest first, so that a lack of memory shows early.

        All batches of a length have the same number of rows: the last one is filled up with its last text.
        """
        rows: defaultdict[int, list[_Row]] = defaultdict(list)
        most = {"truncation": True, "max_length": self.encoder.max_length}
        for block in _batched(texts, _BLOCK):
            stripped = [text.strip() for text in block]
            whole = self._tokenizer(stripped, verbose=False)["input_ids"]
            kept = self._tokenizer(stripped, return_special_tokens_mask=True, **most)
            lists = zip(block, kept["input_ids"], kept["special_tokens_mask"], whole, strict=True)
            for text, ids, special, all_ids in lists:
                rows[len(ids)].append(_Row(text, ids, special, len(all_ids) - len(ids)))
        tokens = runtime.batch_tokens(_CPU_TOKENS, _OTHER_TOKENS)
        for length in sorted(rows, reverse=True):
            size = max(1, tokens // max(1, length))
            for batch in _batched(rows[length], size):
                yield [*batch, *[batch[-1]] * (size - len(batch))]

    def _forward(self, batch: list[_Row]) -> list[Encoded]:
        """Run the model on one batch."""
        import torch

        inputs = torch.tensor([row.ids for row in batch], device=self._network.device)
        bf16 = torch.autocast(inputs.device.type, torch.bfloat16, enabled=self.encoder.dtype == "bf16")
        with torch.inference_mode(), bf16:
            output = self._network(input_ids=inputs, attention_mask=torch.ones_like(inputs))
        states = output.last_hidden_state.float()
        if self.encoder.pooler:
            states = torch.cat([states, output.pooler_output.float()[:, None]], dim=1)
        extra = [True] * self.encoder.pooler
        return [
            # Copied: a part would keep the whole batch in memory.
            Encoded(vectors.copy(), np.array([*row.special, *extra], dtype=np.bool_), row.cut)
            for row, vectors in zip(batch, states.cpu().numpy(), strict=True)
        ]


class _Row(NamedTuple):
    """A text's tokens, which of them the model adds, and how many were cut."""

    text: str
    ids: list[int]
    special: list[int]
    cut: int


def _batched(items: Iterable[_T], size: int) -> Iterator[list[_T]]:
    left = iter(items)
    while some := list(islice(left, size)):
        yield some


@lru_cache(maxsize=2)
def _load(model: Model, layer: int, dtype: str, pooler: bool, device: str) -> Any:  # noqa: ANN401
    """Load a network up to a layer; encoders that differ in other ways share it."""
    import torch

    # On a cpu, torch's fused attention is slower than the plain one for texts as short as an utterance.
    plain = {"attn_implementation": "eager"} if device == "cpu" else {}
    network = runtime.load(model, unused=() if pooler else ("pooler.",), **plain)
    stack = getattr(getattr(network, "encoder", None), "layer", None)
    if stack is None or len(stack) != network.config.num_hidden_layers:
        raise ConfigError("no encoder.layer", where=model.name, expected="a model of BERT's kind")
    if pooler and layer != len(stack):
        raise ConfigError("pooled output of a lower layer", where=model.name, expected="the last layer")
    # The layers above would be computed for nothing.
    network.encoder.layer = stack[:layer]
    network.config.num_hidden_layers = layer
    if dtype == "bf16":
        # What autocast would otherwise do to all weights again for each batch.
        for module in network.modules():
            if isinstance(module, torch.nn.Linear):
                module.to(torch.bfloat16)
    return network
