"""Texts to token vectors, each text once: by the model where needed, else from the store."""

from __future__ import annotations

import logging
import os
import tempfile
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

from comperdial import versions
from comperdial.errors import ConfigError, FileError
from comperdial.files import read_json
from comperdial.models import runtime
from comperdial.models.store import Model, find, verified
from comperdial.models.vectors import Encoded, VectorStore

log = logging.getLogger(__name__)

STORE_VARIABLE = "COMPERDIAL_EMBEDDINGS"
VERSION = 1
"""Raised when a change of this code changes vectors."""

# Texts that are tokenised at once: enough to sort by length, few enough to keep memory flat.
_BLOCK = 4096
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
        """Return the name of the folder that holds the vectors: model checksum, layer, precision, code version."""
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


class Vectors:
    """The vectors of an encoder: from the store, and from the model for texts that it does not hold yet.

    Parameters
    ----------
    encoder
        What makes the vectors.
    root
        The folder of all stores; default: a temporary one that ends with the process.
    """

    def __init__(self, encoder: Encoder, root: Path | None = None) -> None:
        self.encoder = encoder
        if root is None:
            # Held, since it is removed when nothing refers to it.
            self._temporary = tempfile.TemporaryDirectory(prefix="comperdial-embeddings-")
            root = Path(self._temporary.name)
        self.store = VectorStore(root / encoder.namespace(), int(self._config["hidden_size"]))
        self._recent: OrderedDict[str, Encoded] = OrderedDict()

    def add(self, texts: Iterable[str]) -> int:
        """Encode the texts that the store does not hold, each once; return how many those were."""
        waiting = self.store.missing(texts)
        block = list(islice(waiting, _BLOCK))
        if not block:
            return 0
        added = 0
        with self.store.writer() as writer:
            while block:
                for text, encoded in self._encode(block):
                    writer.add(text, encoded)
                added += len(block)
                block = list(islice(waiting, _BLOCK))
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
        if not self.store.folder.name.startswith(model.digest):
            raise FileError("the model changed while it was in use", where=str(model.path), expected="the same files")
        place = str(runtime.device())
        return _load(model, self.encoder.layer, self.encoder.dtype, self.encoder.pooler, place)

    def _encode(self, texts: list[str]) -> Iterator[tuple[str, Encoded]]:
        from tqdm import tqdm

        # No padding and no truncation here: what was cut is to be counted.
        rows = self._tokenizer([text.strip() for text in texts], return_special_tokens_mask=True, verbose=False)
        ids, special = rows["input_ids"], rows["special_tokens_mask"]
        cut = [max(0, len(row) - self.encoder.max_length) for row in ids]
        for item, excess in enumerate(cut):
            if excess:
                ids[item], special[item] = _shorten(ids[item], special[item], excess, self.encoder.keep)
        with tqdm(total=len(texts), desc="encode", delay=2, disable=None) as bar:
            for group in runtime.batches([len(row) for row in ids]):
                states, pooled = self._forward([ids[item] for item in group])
                for row, item in enumerate(group):
                    vectors, marks = states[row, : len(ids[item])], np.array(special[item], dtype=np.bool_)
                    if pooled is not None:
                        vectors, marks = np.vstack([vectors, pooled[row]]), np.append(marks, True)
                    yield texts[item], Encoded(vectors, marks, cut[item])
                bar.update(len(group))

    def _forward(self, ids: list[list[int]]) -> tuple[Any, Any]:
        """Run one batch; return its hidden states and, if wanted, its pooled outputs, as float32."""
        import torch

        longest = max(map(len, ids))
        pad = self._tokenizer.pad_token_id or 0
        place = next(self._network.parameters()).device
        inputs = torch.tensor([row + [pad] * (longest - len(row)) for row in ids], device=place)
        mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in ids], device=place)
        with (
            torch.inference_mode(),
            torch.autocast(place.type, torch.bfloat16, enabled=self.encoder.dtype == "bf16"),
        ):
            found = self._network(input_ids=inputs, attention_mask=mask)
        pooled = found.pooler_output.float().cpu().numpy() if self.encoder.pooler else None
        return found.last_hidden_state.float().cpu().numpy(), pooled


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
