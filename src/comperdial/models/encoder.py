"""Encode texts as token vectors, each text once, with a cache."""

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

# Texts tokenized at once, texts written at once, and batches given to a thread at once.
_BLOCK, _WRITTEN, _AT_ONCE = 4096, 64, 16
# Tokens per batch. All batches of a length have one shape, and the last one is padded with copies: for 4,096 demo responses and
# their references that adds 6 % of tokens at 128, 23 % at 256 and 63 % at 512.
_CPU_TOKENS, _OTHER_TOKENS = 128, 2048
# Models with RoBERTa-like tokenizers.
_BYTE_LEVEL = frozenset({"roberta", "longformer", "deberta"})
_CONFIG = ("hidden_size", "num_hidden_layers", "max_position_embeddings", "model_type")


@dataclass(frozen=True)
class Encoder:
    """A model's layer in one precision: everything that a vector depends on.

    Attributes
    ----------
    model
        As in :func:`comperdial.models.find`.
    layer
        The hidden states: 0 for the embeddings, 1 for the first layer, …; negative ones count from the last.
    dtype
        ``fp32``, or ``bf16``: matrix products in bfloat16, the rest in float32.
    max_length
        Maximum tokens of a text, including special ones; longer texts are cut, and the cut tokens counted.
    pooler
        Append the model's pooled output as a last row, marked special.
    keep
        The end of a long text to keep: ``start`` or ``end``.
    prefix_space
        Make RoBERTa-like tokenizers treat a text's first word like later ones.
    """

    model: str
    layer: int = -1
    dtype: str = "fp32"
    max_length: int = 512
    pooler: bool = False
    keep: Literal["start", "end"] = "start"
    prefix_space: bool = False

    def namespace(self) -> str:
        """Return the name of the cache file; raise ConfigError if the model lacks the layer or the positions."""
        model, config = find(self.model), self.config
        layers = config["num_hidden_layers"]
        if not -layers - 1 <= self.layer <= layers:
            raise ConfigError(f"layer {self.layer}", where=self.model, expected=f"0 to {layers}")
        # RoBERTa counts positions after the padding index.
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
        """Return whether ``prefix_space`` affects this model."""
        return self.prefix_space and self.config["model_type"] in _BYTE_LEVEL

    def vectors(self) -> Vectors:
        """Return this encoder's vectors, one shared object per cache and process."""
        root = os.environ.get(STORE_VARIABLE) or None
        key = (self.model, self.namespace(), root)
        if key not in _open:
            _open[key] = Vectors(self, Path(root) if root else None)
        return _open[key]


_open: dict[tuple[str, str, str | None], Vectors] = {}


class Vectors:
    """The vectors of an encoder, from the cache or the model.

    A text's vectors depend on the text alone, to the last bit: not on other texts, their order or the number of threads. The
    last digits of a matrix product depend on its shape and on the threads that share it, so a batch contains a fixed number of
    texts of equal length and is processed by one thread. This holds for one machine and device, one
    ``COMPERDIAL_BATCH_TOKENS``, and models whose number of heads is a multiple of 4: MKL's products of 5, 7, 9 and 11 tokens
    differ in the last digits if they do not begin at a multiple of 16 bytes.

    ``root`` is the folder of the cache; without one, vectors are kept until the process ends.
    """

    def __init__(self, encoder: Encoder, root: Path | None = None) -> None:
        self.encoder = encoder
        self._namespace = encoder.namespace()
        path = root / f"{self._namespace}.sqlite" if root else None
        self._store = VectorStore(path, int(encoder.config["hidden_size"]))
        # References and contexts are requested repeatedly.
        self._get = lru_cache(maxsize=512)(self._read)

    def add(self, texts: Iterable[str]) -> int:
        """Encode the texts missing from the cache; return their number."""
        new = self._store.missing(texts)
        if new:
            for rows in _batched(self._encode(new), _WRITTEN):
                self._store.put(rows)
            log.info("%s: %d texts encoded", self.encoder.model, len(new))
        return len(new)

    def __getitem__(self, text: str) -> Encoded:
        """Return the vectors of a text; encode it if it is not in the cache."""
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
        """Yield texts and vectors in another order; on a CPU, each torch thread runs its own batch."""
        import torch
        from tqdm import tqdm

        threads = torch.get_num_threads()
        count = threads if self._network.device.type == "cpu" else 1
        # New threads inherit this number.
        torch.set_num_threads(1)
        pool = ThreadPoolExecutor(count, "batches", initializer=torch.set_num_threads, initargs=(1,))
        try:
            with tqdm(total=len(texts), desc="encode", delay=2, disable=None) as bar:
                for some in _batched(self._batches(texts), _AT_ONCE * count):
                    for batch, outputs in zip(some, pool.map(self._forward, some), strict=True):
                        # By text, since a batch may be padded with copies.
                        encoded = dict(zip((row.text for row in batch), outputs, strict=True))
                        yield from encoded.items()
                        bar.update(len(encoded))
        finally:
            pool.shutdown(cancel_futures=True)
            torch.set_num_threads(threads)

    def _batches(self, texts: list[str]) -> Iterator[list[_Row]]:
        """Yield batches of texts of equal length, longest first, to fail early if memory is short.

        All batches of a length have the same number of rows: the last one is padded with copies of its last text.
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
            # A view would keep the whole batch in memory.
            Encoded(vectors.copy(), np.array([*row.special, *extra], dtype=np.bool_), row.cut)
            for row, vectors in zip(batch, states.cpu().numpy(), strict=True)
        ]


class _Row(NamedTuple):
    """A text's tokens, a mask of special ones, and the number cut."""

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
    """Load a network up to a layer; shared by encoders that differ in other settings."""
    import torch

    # On a CPU, torch's fused attention is slower than the plain one for utterance-length texts.
    plain = {"attn_implementation": "eager"} if device == "cpu" else {}
    network = runtime.load(model, unused=() if pooler else ("pooler.",), **plain)
    stack = getattr(getattr(network, "encoder", None), "layer", None)
    if stack is None or len(stack) != network.config.num_hidden_layers:
        raise ConfigError("no encoder.layer", where=model.name, expected="a model of BERT's kind")
    if pooler and layer != len(stack):
        raise ConfigError("pooled output of a lower layer", where=model.name, expected="the last layer")
    # Skip the unused upper layers.
    network.encoder.layer = stack[:layer]
    network.config.num_hidden_layers = layer
    if dtype == "bf16":
        # Convert weights once; autocast would do it for every batch.
        for module in network.modules():
            if isinstance(module, torch.nn.Linear):
                module.to(torch.bfloat16)
    return network
