"""Tiny models with random weights, saved as a user's model folder is: for tests of likelihoods without real weights."""

from __future__ import annotations

import json
from pathlib import Path

import tokenizers
import torch
import transformers
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer

_CORPUS = [
    "<unused> Hi! Hello, how is your day? It's good. It's raining a bit, but I am enjoying a good book.",
    "what book did you read ? i read a book about the sea . do you like tea ? yes , i like green tea _eos _go",
    "That's really interesting! That makes no sense! Don't change the topic! You're not understanding me!",
]
# Weights far apart, so that tokens differ much in likelihood and a mistake shows.
_SPREAD = 0.4


def _merges(specials: list[str], size: int) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Train a byte-level BPE; return its vocabulary, special tokens first, and its merges."""
    tokenizer = tokenizers.Tokenizer(BPE())
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    trainer = BpeTrainer(
        vocab_size=size, special_tokens=specials, initial_alphabet=ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(_CORPUS, trainer)
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    return tokenizer.get_vocab(), [tuple(pair) for pair in merges]


def _save(folder: Path, network: type, config: object, tokenizer: object, seed: int) -> str:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = network(config)
        # Biases and norms are made as zeros and ones, which would hide a missing one.
        for parameter in model.parameters():
            if parameter.dim() == 1:
                torch.nn.init.normal_(parameter, mean=0.5, std=_SPREAD)
    transformers.utils.logging.disable_progress_bar()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def gpt2(folder: Path, positions: int = 160, seed: int = 7) -> str:
    """Save a GPT-2 with a byte-level BPE and <|endoftext|>; return its folder."""
    vocab, merges = _merges(["<|endoftext|>"], 340)
    config = transformers.GPT2Config(
        vocab_size=len(vocab), n_positions=positions, n_embd=16, n_layer=2, n_head=2, initializer_range=_SPREAD,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    return _save(folder, transformers.GPT2LMHeadModel, config, transformers.GPT2Tokenizer(vocab, merges), seed)


def roberta(folder: Path, positions: int = 64, seed: int = 8) -> str:
    """Save a RoBERTa with a head for masked tokens that takes ``positions`` tokens; return its folder."""
    vocab, merges = _merges(["<s>", "<pad>", "</s>", "<unk>", "<mask>"], 344)
    config = transformers.RobertaConfig(
        vocab_size=len(vocab), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
        max_position_embeddings=positions + 2, type_vocab_size=1, initializer_range=_SPREAD, pad_token_id=1,
        bos_token_id=0, eos_token_id=2,
    )  # fmt: skip
    return _save(folder, transformers.RobertaForMaskedLM, config, transformers.RobertaTokenizer(vocab, merges), seed)


def bert(folder: Path, positions: int = 64, seed: int = 9) -> str:
    """Save a BERT with a head for the next sentence and a WordPiece vocabulary; return its folder."""
    words = sorted({word for line in _CORPUS for word in line.lower().replace("!", " ! ").split() if word.isalpha()})
    letters = "abcdefghijklmnopqrstuvwxyz0123456789.,!?'-"
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
    vocab = {piece: place for place, piece in enumerate(dict.fromkeys([*pieces, *words]))}
    config = transformers.BertConfig(
        vocab_size=len(vocab), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
        max_position_embeddings=positions, initializer_range=_SPREAD,
    )  # fmt: skip
    tokenizer = transformers.BertTokenizer(vocab, do_lower_case=True)
    return _save(folder, transformers.BertForNextSentencePrediction, config, tokenizer, seed)


def llama(folder: Path, positions: int = 160, seed: int = 10) -> str:
    """Save a Llama with grouped heads, tied embeddings and a byte-level BPE that takes digits apart; return its folder."""
    vocab, merges = _merges(["<|endoftext|>"], 340)
    tokenizer = tokenizers.Tokenizer(BPE(vocab=vocab, merges=merges))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [tokenizers.pre_tokenizers.Digits(individual_digits=True), ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    end = "<|endoftext|>"
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=end, pad_token=end)
    config = transformers.LlamaConfig(
        vocab_size=len(vocab), hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=positions, initializer_range=_SPREAD, tie_word_embeddings=True,
        bos_token_id=0, eos_token_id=0, pad_token_id=0,
    )  # fmt: skip
    return _save(folder, transformers.LlamaForCausalLM, config, fast, seed)
