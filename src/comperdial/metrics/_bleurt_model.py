"""Load BLEURT's PyTorch weights and tokenizer from a folder with the layout of ``lucadiliello/BLEURT-20``.

The folder contains ``config.json`` (``model_type`` ``bleurt``), ``model.safetensors`` (names that start with
``bleurt.``, and ``classifier``) and ``spm.model``, or ``tokenizer.json`` for the WordPiece models of 2020. The network
is RemBERT: BERT whose embeddings are narrower than its layers, with a projection in between. Models without the
projection are plain BERT. So transformers' own classes run it, and only the weights are renamed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from comperdial.core.errors import ConfigError, FileError, MissingResourceError
from comperdial.core.files import read_json
from comperdial.models import Model, runtime
from comperdial.models.store import weight_files

SENTENCEPIECE = "spm.model"
TOKENIZER = "tokenizer.json"
_FIELDS = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "hidden_act",
    "max_position_embeddings",
    "type_vocab_size",
    "layer_norm_eps",
)
# The indices 0, 1, 2 …, which older versions of transformers saved with the weights.
_NO_WEIGHTS = "embeddings.position_ids"


@dataclass(frozen=True)
class Pieces:
    """BLEURT's tokenizer: a function from text to token ids, and the ids of [CLS] and [SEP]."""

    encode: Callable[[str], list[int]]
    start: int
    separator: int


def missing_package(folder: Path) -> str | None:
    """Return a message if the folder's tokenizer needs a package that is not installed, else None."""
    if (folder / SENTENCEPIECE).is_file() and find_spec("sentencepiece") is None:
        return "not installed: sentencepiece; expected pip install sentencepiece"
    return None


def load_pieces(model: Model) -> Pieces:
    """Load ``spm.model`` with sentencepiece, as BLEURT's own code does, or ``tokenizer.json`` if it is missing."""
    place = model.path / SENTENCEPIECE
    encode: Callable[[str], list[int]]
    if place.is_file():
        if problem := missing_package(model.path):
            raise MissingResourceError(problem, where=str(place))
        # Imported by name: the package is optional and has no type hints.
        processor = import_module("sentencepiece").SentencePieceProcessor(model_file=str(place))
        encode, number, piece = processor.encode, processor.piece_to_id, processor.id_to_piece
    else:
        place = model.path / TOKENIZER
        if not place.is_file():
            raise MissingResourceError(
                "no tokenizer", where=str(model.path), expected=f"{SENTENCEPIECE} (BLEURT-20) or {TOKENIZER}"
            )
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(place))
        tokenizer.no_truncation()
        tokenizer.no_padding()

        def encode(text: str) -> list[int]:
            ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
            return ids

        number, piece = tokenizer.token_to_id, tokenizer.id_to_token
    special = []
    for token in ("[CLS]", "[SEP]"):
        found = number(token)
        # sentencepiece returns the id of the unknown token instead of raising an error.
        if found is None or piece(found) != token:
            raise FileError(f"no token {token}", where=str(place), expected="the tokenizer of a BLEURT model")
        special.append(found)
    return Pieces(encode, *special)


def load_network(model: Model, dtype: str) -> Any:  # noqa: ANN401
    """Load the weights into transformers' RemBERT (or BERT) with a linear head of one output.

    Raises
    ------
    ConfigError
        If ``config.json`` does not describe a BLEURT model.
    FileError
        If weights are missing, unexpected or of the wrong shape, so that no weight is left randomly initialised.
    """
    import torch
    import transformers
    from safetensors.torch import load_file

    fields, width = _read_config(model.path / "config.json")
    name = "RemBert" if width else "Bert"
    extra = {"input_embedding_size": width, "output_embedding_size": width} if width else {}
    # RemBERT's default ids for these two exceed smaller vocabularies; BLEURT uses neither.
    config = getattr(transformers, f"{name}Config")(
        **fields, **extra, num_labels=1, bos_token_id=None, eos_token_id=None
    )
    renamed = {"bleurt.": f"{name.lower()}.", "encoder.embedding_projection.": "encoder.embedding_hidden_mapping_in."}
    state = {
        _rename(key, renamed): tensor
        for file in weight_files(model.path)
        for key, tensor in load_file(str(model.path / file)).items()
        if not key.endswith(_NO_WEIGHTS)
    }
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    network, report = getattr(transformers, f"{name}ForSequenceClassification").from_pretrained(
        None,
        config=config,
        state_dict=state,
        dtype={"fp32": torch.float32, "bf16": torch.bfloat16}[dtype],
        output_loading_info=True,
        ignore_mismatched_sizes=True,
    )
    back = {new: old for old, new in renamed.items()}
    problems = [
        f"{problem} {_some(_rename(key if isinstance(key, str) else key[0], back) for key in report[keys])}"
        for keys, problem in (
            ("missing_keys", "lacks"),
            ("unexpected_keys", "has unexpected"),
            ("mismatched_keys", "has in another shape"),
        )
        if report[keys]
    ]
    if problems:
        raise FileError(
            "the file of weights " + "; it ".join(problems),
            where=str(model.path),
            expected="the weights that config.json describes",
        )
    return network.eval().requires_grad_(requires_grad=False).to(runtime.device())


def _read_config(path: Path) -> tuple[dict[str, Any], int | None]:
    """Return the fields that define the network, and the width of its embeddings if it differs from the layers'."""
    config = read_json(path)
    if not isinstance(config, dict) or config.get("model_type") != "bleurt":
        kind = config.get("model_type") if isinstance(config, dict) else config
        raise ConfigError(f"model_type is {kind!r}", where=str(path), expected="'bleurt'")
    absent = [field for field in _FIELDS if field not in config]
    if absent:
        raise ConfigError(f"lacks {', '.join(absent)}", where=str(path), expected="the configuration of a BLEURT model")
    return {field: config[field] for field in _FIELDS}, config.get("embedding_size")


def _rename(key: str, names: dict[str, str]) -> str:
    for old, new in names.items():
        key = key.replace(old, new)
    return key


def _some(names: Iterable[str], most: int = 8) -> str:
    listed = sorted(names)
    return ", ".join(listed[:most]) + (f" and {len(listed) - most} more" if len(listed) > most else "")
