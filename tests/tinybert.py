"""A model small enough for a test, as a folder: a random BERT of two layers with a tokenizer of a few words."""

from pathlib import Path

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "i", "like", "green", "tea", "##s", "no"]


def write_bert(folder: Path, *, seed: int = 0, weights: str = "safetensors", shard: str = "1GB") -> Path:
    """Write the model; ``weights`` is safetensors or pickle, ``shard`` the most that one file of them may hold."""
    import torch
    from safetensors.torch import load_file
    from transformers import BertConfig, BertModel, BertTokenizer
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    torch.manual_seed(seed)
    sizes = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    config = BertConfig(vocab_size=len(WORDS), max_position_embeddings=16, **sizes)
    BertModel(config).save_pretrained(folder, max_shard_size=shard)
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    BertTokenizer(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    if weights == "pickle":
        for path in sorted(folder.glob("*.safetensors")):
            torch.save(
                load_file(path), path.with_name(path.name.replace("model", "pytorch_model", 1)).with_suffix(".bin")
            )
            path.unlink()
        index = folder / "model.safetensors.index.json"
        if index.is_file():
            text = index.read_text().replace("model-", "pytorch_model-").replace(".safetensors", ".bin")
            (folder / "pytorch_model.bin.index.json").write_text(text)
            index.unlink()
    return folder


def answer(folder: Path):
    """Return what the model makes of a sentence, as nested lists."""
    from comperdial.models import runtime, verified

    model = verified(str(folder))
    tokens = runtime.load_tokenizer(model)("i like teas", return_tensors="pt")
    return runtime.load(model)(**tokens.to(runtime.device())).last_hidden_state.tolist()
