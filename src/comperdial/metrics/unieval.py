"""UniEval for dialogue: yes-or-no questions for a T5 model trained to answer them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from comperdial import models
from comperdial.core.errors import ConfigError, FileError
from comperdial.core.files import read_json
from comperdial.metrics import _sentences
from comperdial.metrics._model import ModelMetric
from comperdial.metrics._unieval_inputs import DIMENSIONS, Input, ask, encode, fact_text, history_text
from comperdial.metrics.base import Batch, Bounds, Scores, check_choice, check_number

_NO_FACT = "_nofact"


@dataclass(frozen=True, kw_only=True)
class UniEval(ModelMetric):
    """UniEval's five dimensions of a dialogue response and their mean (Zhong et al. 2022), on raw text.

    The input is ``question: Q </s> response: R </s> dialogue history: H </s> fact: F``, with the fields that the dimension
    needs; the score is p(Yes) / (p(Yes) + p(No)) at the first decoding step, using the first token of each word.
    Naturalness and understandability need R; coherence R and H; groundedness R and F; engagingness all three.
    Engagingness is computed for each sentence of the response and **summed**: it ranges from 0 to the number of sentences.
    The others range from 0 to 1. ``overall``, the mean of the five, can exceed 1 too.

    H is the utterances without speakers, F the facts, one per line. Which fact ComperDial used is not known; here it is
    the persona of speaker B. A response without history has no coherence, engagingness and overall score, a response
    without facts no groundedness, engagingness and overall score. ``without_facts: _nofact`` uses the placeholder that the
    published data have for contexts without a fact. ``sentences: punkt`` requires nltk's data (``python -m nltk.downloader
    punkt_tab``); ``untrained`` requires none, but splits sentences at abbreviations.

    If an input exceeds ``max_length`` tokens, the oldest tokens of its history are cut; question, response and fact are
    kept. The published code cuts the end of the input instead, including the fact. An input that is still too long
    without its history is cut at the end. ``cut`` is the largest number of tokens cut from an input of the response.
    """

    kind: ClassVar[str] = "unieval"
    libraries: ClassVar[tuple[str, ...]] = ("torch", "transformers", "nltk")
    architecture: ClassVar[str] = "AutoModelForSeq2SeqLM"
    needs: ClassVar[tuple[str, ...]] = ()

    model: str = "unieval-dialog"
    sentences: Literal["punkt", "untrained"] = "punkt"
    """``punkt``: nltk's English model ``punkt_tab``, as published; ``untrained``: the same algorithm without a model,
    which needs no data and takes the full stop of an abbreviation for the end of a sentence."""
    without_facts: Literal["missing", "_nofact"] = "missing"
    """What a response without facts gets: no score, or the fact ``_nofact``, as the published scores of USR-Topical
    have it (where USR's file says so)."""
    max_length: int = 1024

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self, "sentences", ("punkt", "untrained"))
        check_choice(self, "without_facts", ("missing", _NO_FACT))
        check_number(self, "max_length", 8, 8192)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the names of the mean and the five dimensions."""
        return ("overall", *DIMENSIONS)

    def needed_by(self, output: str) -> tuple[str, ...]:
        """Return the fields that a dimension needs; the mean needs those of all dimensions."""
        asked = list(DIMENSIONS.values()) if output == "overall" else [DIMENSIONS[output]]
        history = any(dimension.history for dimension in asked)
        facts = any(dimension.fact for dimension in asked) and self.without_facts != _NO_FACT
        return (*(["histories"] if history else []), *(["facts"] if facts else []))

    @property
    def bounds(self) -> Mapping[str, Bounds | None]:
        """Return 0 to 1 for most dimensions; sums over sentences have no fixed maximum."""
        summed = {name for name, dimension in DIMENSIONS.items() if dimension.by_sentence} | {"overall"}
        return {name: None if name in summed else (0.0, 1.0) for name in self.outputs}

    def unavailable(self) -> str | None:
        """Return why a package, the model or the sentence splitter's data is unavailable, or None."""
        return super().unavailable() or (_sentences.missing() if self.sentences == "punkt" else None)

    def signed(self, option: str) -> object:
        """Return the sentence splitter's name with the checksum of its data."""
        if option == "sentences" and self.sentences == "punkt":
            return f"punkt@{_sentences.checksum()}"
        return super().signed(option)

    @cached_property
    def _network(self) -> Any:  # noqa: ANN401
        network = super()._network
        folder = models.find(self.model).path
        apart = read_json(folder / "config.json").get("tie_word_embeddings") is False
        # If the file lacks the output embeddings, transformers 5 silently uses the input embeddings.
        if apart and network.lm_head.weight.data_ptr() == network.shared.weight.data_ptr():
            raise FileError(
                "the weights lack lm_head.weight",
                where=str(folder),
                expected="one, since config.json has tie_word_embeddings false",
            )
        return network

    def compute(self, batch: Batch) -> Scores:
        """Score every dimension for which a response has the fields; identical inputs are run once."""
        split = _sentences.splitter(self.sentences)
        inputs: dict[Input, int] = {}
        asked: dict[str, list[list[int]]] = {name: [] for name in DIMENSIONS}
        for response, utterances, facts in zip(batch.responses, batch.histories, batch.facts, strict=True):
            text, history = response.strip(), history_text(utterances)
            fact = fact_text(facts or ([_NO_FACT] if self.without_facts == _NO_FACT else []))
            for name, dimension in DIMENSIONS.items():
                parts = split(text) if dimension.by_sentence else [text]
                questions = [question for part in parts if (question := ask(dimension, part, history, fact))]
                asked[name].append([inputs.setdefault(question, len(inputs)) for question in questions])
        answers, lost = self._answers(list(inputs))
        values = {
            name: np.array([answers[rows].sum() if rows else np.nan for rows in column], dtype=np.float64)
            for name, column in asked.items()
        }
        cut = np.zeros(len(batch), dtype=np.int32)
        for column in asked.values():
            cut = np.maximum(cut, [lost[rows].max() if rows else 0 for rows in column]).astype(np.int32)
        overall = np.mean([values[name] for name in DIMENSIONS], axis=0)
        return Scores({"overall": overall, **values}, cut)

    def _answers(self, inputs: Sequence[Input]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int32]]:
        """Return p(Yes) / (p(Yes) + p(No)) of each input, and the number of tokens cut from it."""
        margins = np.zeros(len(inputs), dtype=np.float64)
        if not inputs:
            return margins, np.zeros(0, dtype=np.int32)
        import torch
        from scipy.special import expit
        from torch.nn.utils.rnn import pad_sequence

        tokens, cut = encode(self._tokenizer, inputs, self.max_length, self._progress)
        words, network = self._words(), self._network
        for rows in self._batches([len(ids) for ids in tokens]):
            padded = pad_sequence(
                [torch.from_numpy(tokens[row]) for row in rows],
                batch_first=True,
                padding_value=self._tokenizer.pad_token_id,
            )
            lengths = torch.tensor([len(tokens[row]) for row in rows])
            mask = torch.arange(padded.shape[1])[None, :] < lengths[:, None]
            with torch.inference_mode():
                logits = network(
                    input_ids=padded.to(network.device),
                    attention_mask=mask.long().to(network.device),
                    decoder_input_ids=torch.full(
                        (len(rows), 1), network.config.decoder_start_token_id, device=network.device
                    ),
                    use_cache=False,
                ).logits[:, 0, words]
            yes, no = logits.float().cpu().numpy().astype(np.float64).T
            margins[rows] = yes - no
        # The softmax normaliser cancels, which leaves the logistic function of the difference of logits.
        return expit(margins), cut

    def _words(self) -> list[int]:
        """Return the first tokens of Yes and No."""
        yes, no = (self._tokenizer(word)["input_ids"][0] for word in ("Yes", "No"))
        if yes == no or self._tokenizer.unk_token_id in (yes, no):
            raise ConfigError(
                f"model {self.model!r} has no tokens that tell Yes from No", expected="a T5 that was trained as UniEval"
            )
        return [yes, no]
