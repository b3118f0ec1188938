"""Run a model: where it runs, in which precision, in which batches. Only here are torch and transformers imported."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from comperdial.core.errors import ConfigError, FileError
from comperdial.models.store import Model

if TYPE_CHECKING:
    import torch

DTYPES = ("fp32", "bf16")
DEVICE_VARIABLE = "COMPERDIAL_DEVICE"
TOKENS_VARIABLE = "COMPERDIAL_BATCH_TOKENS"
PACKAGES = ("torch", "transformers")


def missing_packages() -> str | None:
    """Say which of the packages that models need are not installed; None when all are."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    return f"not installed: {', '.join(missing)}; expected pip install 'comperdial[neural]'" if missing else None


def device() -> torch.device:
    """Return where models run: what ``COMPERDIAL_DEVICE`` names, or cuda, mps, cpu, whichever is there first."""
    import torch

    if chosen := os.environ.get(DEVICE_VARIABLE):
        try:
            return torch.device(chosen)
        except RuntimeError as error:
            raise ConfigError(
                f"device {chosen!r}", where=DEVICE_VARIABLE, expected="cpu, cuda, cuda:1, mps …"
            ) from error
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def load(
    model: Model,
    architecture: str = "AutoModel",
    dtype: str = "fp32",
    unused: tuple[str, ...] = (),
    **options: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """Load a network for inference, from safetensors and nothing else.

    Parameters
    ----------
    model
        As :func:`comperdial.models.find` returns it.
    architecture
        A class of transformers with ``from_pretrained``.
    dtype
        ``fp32`` or ``bf16``.
    unused
        How the names of parts start that will not be used, and may be missing from the file.
    options
        More of what ``from_pretrained`` takes.

    Raises
    ------
    FileError
        When the file lacks weights that the architecture has.
    """
    import safetensors
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    try:
        network, found = getattr(transformers, architecture).from_pretrained(
            model.path,
            output_loading_info=True,
            dtype={"fp32": torch.float32, "bf16": torch.bfloat16}[dtype],
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            **options,
        )
    except safetensors.SafetensorError as error:
        raise FileError(
            f"the weights cannot be read ({error})", where=str(model.path), expected="whole safetensors"
        ) from error
    # transformers makes up what a file lacks, at random, and says so only in a log.
    lacking = sorted(map(str, {*found["missing_keys"], *found["mismatched_keys"]}))
    if lacking := [name for name in lacking if not name.startswith(unused)]:
        raise FileError(
            f"the weights lack {len(lacking)} parts, the first: {lacking[0]}",
            where=str(model.path),
            expected=f"the weights of a {architecture}",
        )
    return network.eval().requires_grad_(requires_grad=False).to(device())


def load_tokenizer(model: Model, **options: Any) -> Any:  # noqa: ANN401
    """Load a model's tokenizer from its folder.

    Raises
    ------
    FileError
        When it knows nothing but special tokens: transformers makes such a one where the vocabulary is missing.
    """
    import transformers

    transformers.logging.set_verbosity_error()
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            model.path, local_files_only=True, trust_remote_code=False, **options
        )
    except (ValueError, OSError) as error:
        reason = str(error).strip().splitlines()[0]
        raise FileError(
            f"its tokenizer cannot be read ({reason})", where=str(model.path), expected="the files of its tokenizer"
        ) from error
    if not set(tokenizer.get_vocab()) - set(tokenizer.all_special_tokens):
        raise FileError("its tokenizer has no vocabulary", where=str(model.path), expected="the files of its tokenizer")
    return tokenizer


def batch_tokens(cpu: int = 512, elsewhere: int = 65536) -> int:
    """Return the most tokens of a batch: what ``COMPERDIAL_BATCH_TOKENS`` says, else what suits the device."""
    said = os.environ.get(TOKENS_VARIABLE)
    if said and not (said.isdigit() and int(said)):
        raise ConfigError(f"{said!r}", where=TOKENS_VARIABLE, expected="a whole number of tokens above 0")
    return int(said) if said else cpu if device().type == "cpu" else elsewhere


def batches(lengths: Sequence[int], tokens: int | None = None) -> Iterator[list[int]]:
    """Group items into batches of similar length, the longest first, so that a lack of memory shows at once.

    Parameters
    ----------
    lengths
        The number of tokens of each item.
    tokens
        The most tokens a batch may have, padding included (at least one item goes into each); default: the environment
        variable ``COMPERDIAL_BATCH_TOKENS``, or 512 on a cpu, whose cache then holds a batch, and 65,536 elsewhere.

    Yields
    ------
    list of int
        Positions of items; each item is in one batch.
    """
    tokens = batch_tokens() if tokens is None else tokens
    order = sorted(range(len(lengths)), key=lambda item: (-lengths[item], item))
    start = 0
    while start < len(order):
        size = max(1, tokens // max(1, lengths[order[start]]))
        yield order[start : start + size]
        start += size
