"""Run models: device, precision and batches. Only this module loads networks and tokenizers."""

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
    """Return the missing packages that models need, as text; None if all are installed."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    return f"not installed: {', '.join(missing)}; expected pip install 'comperdial[neural]'" if missing else None


def device() -> torch.device:
    """Return the device ``COMPERDIAL_DEVICE``, or the first available of cuda, mps and cpu."""
    import torch

    there = (("cuda", torch.cuda.is_available), ("mps", torch.backends.mps.is_available))
    chosen = os.environ.get(DEVICE_VARIABLE) or next((name for name, present in there if present()), "cpu")
    try:
        return torch.device(chosen)
    except RuntimeError as error:
        expected = "cpu, cuda, cuda:1, mps …"
        raise ConfigError(f"device {chosen!r}", where=DEVICE_VARIABLE, expected=expected) from error


def load(
    model: Model,
    architecture: str = "AutoModel",
    dtype: str = "fp32",
    unused: tuple[str, ...] = (),
    **options: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """Load a network for inference, only from safetensors; raise FileError if weights are missing or unreadable.

    Parameters
    ----------
    model
        The result of :func:`comperdial.models.verified`.
    architecture
        A transformers class with ``from_pretrained``, which receives ``options``.
    dtype
        ``fp32`` or ``bf16``.
    unused
        Name prefixes of weights that may be missing.
    """
    import safetensors
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    where = str(model.path)
    try:
        network, report = getattr(transformers, architecture).from_pretrained(
            model.path,
            output_loading_info=True,
            dtype={"fp32": torch.float32, "bf16": torch.bfloat16}[dtype],
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            **options,
        )
    except safetensors.SafetensorError as error:
        raise FileError(f"the weights cannot be read ({error})", where=where, expected="whole safetensors") from error
    # transformers initializes missing weights randomly and only logs it.
    missing = sorted(map(str, {*report["missing_keys"], *report["mismatched_keys"]}))
    if missing := [name for name in missing if not name.startswith(unused)]:
        problem = f"the weights lack {len(missing)} parts, the first: {missing[0]}"
        raise FileError(problem, where=where, expected=f"the weights of a {architecture}")
    return network.eval().requires_grad_(requires_grad=False).to(device())


def load_tokenizer(model: Model, **options: Any) -> Any:  # noqa: ANN401
    """Load a model's tokenizer; raise FileError if it cannot be read, or has only special tokens."""
    import transformers

    transformers.logging.set_verbosity_error()
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            model.path, local_files_only=True, trust_remote_code=False, **options
        )
        # transformers creates an empty one if the vocabulary is missing.
        problem = None if set(tokenizer.get_vocab()) - set(tokenizer.all_special_tokens) else "has no vocabulary"
    except (ValueError, OSError) as error:
        problem = f"cannot be read ({str(error).strip().splitlines()[0]})"
    if problem:
        raise FileError(f"its tokenizer {problem}", where=str(model.path), expected="the files of its tokenizer")
    return tokenizer


def batch_tokens(cpu: int = 512, elsewhere: int = 65536) -> int:
    """Return the maximum tokens of a batch: ``COMPERDIAL_BATCH_TOKENS``, or a default for the device."""
    chosen = os.environ.get(TOKENS_VARIABLE)
    if chosen and not (chosen.isdigit() and int(chosen)):
        raise ConfigError(f"{chosen!r}", where=TOKENS_VARIABLE, expected="a whole number of tokens above 0")
    return int(chosen) if chosen else cpu if device().type == "cpu" else elsewhere


def batches(lengths: Sequence[int], tokens: int | None = None) -> Iterator[list[int]]:
    """Group items of similar length (in tokens) and yield their indices, longest first to fail early if memory is short.

    A batch has at most ``tokens`` tokens including padding (default: :func:`batch_tokens`), and at least one item.
    """
    tokens = batch_tokens() if tokens is None else tokens
    order = sorted(range(len(lengths)), key=lambda item: -lengths[item])
    start = 0
    while start < len(order):
        size = max(1, tokens // max(1, lengths[order[start]]))
        yield order[start : start + size]
        start += size
