"""Convert weights to safetensors: pickles, of which only tensors are read, and GGUF files of Llama models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from comperdial.core.errors import FileError, MissingResourceError, SourceError
from comperdial.core.files import replacing


def convert_pickles(folder: Path) -> None:
    """Replace ``pytorch_model*.bin``, one file or shards, by ``model.safetensors``.

    torch reads them with ``weights_only``, so none of their code runs. Shared tensors are copied, since safetensors cannot
    represent sharing; transformers ties them again. A pickle with anything but named tensors raises a :class:`SourceError`.
    """
    import torch
    from safetensors.torch import save_file

    pickles = sorted(folder.glob("pytorch_model*.bin"))
    tensors: dict[str, Any] = {}
    for path in pickles:
        reason, content = "more than tensors by name", None
        try:
            content = torch.load(path, map_location="cpu", weights_only=True)
        except Exception as error:
            # The class is pickle's, zipfile's or torch's, depending on the fault.
            reason = next(iter(str(error).splitlines()), type(error).__name__)
        if not isinstance(content, dict) or not all(isinstance(value, torch.Tensor) for value in content.values()):
            problem, hint = f"the pickle cannot be read ({reason})", "None of its code was run"
            raise SourceError(problem, where=str(path), expected="named tensors and nothing else", hint=hint)
        tensors |= {name: tensor.clone(memory_format=torch.contiguous_format) for name, tensor in content.items()}
    if tensors:
        with replacing(folder / "model.safetensors") as temporary:
            save_file(tensors, temporary, metadata={"format": "pt"})
    for path in pickles:
        path.unlink()


def convert_gguf(file: Path, folder: Path) -> None:
    """Write a Llama model with SmolLM's tokenizer in transformers' format: configuration, tokenizer, 32-bit weights.

    transformers can read GGUF, but needs accelerate for the weights and omits a step of the tokenizer.

    Raises
    ------
    MissingResourceError
        If the package gguf is not installed.
    FileError
        If it is not a GGUF file, or has another architecture or tokenizer.
    """
    try:
        import gguf
    except ImportError as error:
        raise MissingResourceError("not installed: gguf", expected="pip install 'comperdial[neural]'") from error
    import numpy as np
    import torch
    import transformers
    from safetensors.numpy import save_file
    from tokenizers import pre_tokenizers

    try:
        reader = gguf.GGUFReader(file)
    except (OSError, ValueError) as error:
        raise FileError(f"not a GGUF file ({error})", where=str(file), expected="a whole GGUF file") from error
    for key, wanted in (("general.architecture", "llama"), ("tokenizer.ggml.pre", "smollm")):
        if (field := reader.get_field(key)) is None or field.contents() != wanted:
            raise FileError(f"{key} is {field and field.contents()!r}", where=str(file), expected=repr(wanted))

    config = transformers.AutoConfig.from_pretrained(file.parent, gguf_file=file.name)
    with torch.device("meta"):
        shapes = transformers.AutoModelForCausalLM.from_config(config).state_dict()
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    weights = {}
    for name, shape in ((name, tuple(value.shape)) for name, value in shapes.items()):
        source = names.get_name(name, try_suffixes=(".weight",)) or name
        if source not in tensors and name == "lm_head.weight":
            continue  # tied to the embeddings
        values = gguf.quants.dequantize(tensors[source].data, tensors[source].tensor_type).astype(np.float32)
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            # llama.cpp stores the two halves of each head's rotation interleaved.
            values = values.reshape(-1, config.head_dim // 2, 2, shape[1]).swapaxes(1, 2)
        weights[name] = np.ascontiguousarray(values.reshape(shape))
    config.architectures, config.dtype = ["LlamaForCausalLM"], "float32"
    config.tie_word_embeddings = "lm_head.weight" not in weights
    config.save_pretrained(folder)
    with replacing(folder / "model.safetensors") as temporary:
        save_file(weights, temporary, metadata={"format": "pt"})

    tokenizer = transformers.AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    end = tokenizer.convert_ids_to_tokens(config.eos_token_id)
    # The template goes into tokenizer_config.json, which is in the manifest.
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer.backend_tokenizer,
        eos_token=end,
        pad_token=end,
        model_max_length=config.max_position_embeddings,
        chat_template=tokenizer.chat_template,
    ).save_pretrained(folder, save_jinja_files=False)
