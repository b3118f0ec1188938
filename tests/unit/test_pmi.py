"""PMI: equal to the plain loop, one text at a time; what has no facts, and what is cut."""

import numpy as np
import pytest
import torch
import transformers

import tinymodels
from comperdial.metrics import create
from comperdial.metrics.pmi import prompt


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tinymodels.gpt2(tmp_path_factory.mktemp("gpt2"), positions=200)


def plain(folder, start, end):
    """Return log p(end | start), alone in the model."""
    network = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    first, then = (tokenizer(text, add_special_tokens=False)["input_ids"] for text in (start, end))
    with torch.inference_mode():
        logs = network(input_ids=torch.tensor([first + then])).logits[0].log_softmax(-1)
    return sum(float(logs[len(first) - 1 + place, token]) for place, token in enumerate(then)), len(then)


HISTORIES = [["Hi there", "Hello you"], ["Hi there", "Hello you"], ["Hello"], ["Hi there", "Hello you"]]
RESPONSES = ["I am fine, and you?", "no", "I am fine, and you?", "I like the sea"]
FACTS = [["i like the sea", "i am old"], ["i like the sea", "i am old"], [], ["i am old"]]


def test_shared_prompts_give_what_each_text_alone_gives(folder):
    found = create("pmi", model=folder, max_length=200).score(RESPONSES, histories=HISTORIES, facts=FACTS)
    for row, (texts, response, facts) in enumerate(zip(HISTORIES, RESPONSES, FACTS, strict=True)):
        history = [{"text": text} for text in texts]
        given, size = plain(folder, prompt(history, facts), f" {response}")
        talk, _ = plain(folder, prompt(history, []), f" {response}")
        bare, _ = plain(folder, "B:", f" {response}")
        expected = [given - bare, (given - bare) / size, (given - bare) / size**0.5, given, given / size]
        names = ("pmi", "pmi-mean", "pmi-root", "likelihood", "likelihood-mean")
        assert [found[name][row] for name in names] == pytest.approx(expected, abs=1e-3)
        assert found["facts"][row] == pytest.approx(given - talk, abs=1e-3) if facts else np.isnan(found["facts"][row])


def test_the_prompt_ends_with_b_and_shows_the_last_utterances(folder):
    texts = [{"text": text} for text in ("one", " two ", "three")]
    assert prompt(texts, ["f", "g"]) == "Facts: f g\n\nA: one\nB: two\nA: three\nB:"
    assert prompt(texts[:2], []) == "B: one\nA: two\nB:" and prompt([], []) == "B:"
    metric = create("pmi", model=folder, utterances=1, max_length=200)
    short = metric.score(["yes"], histories=[["three"]])
    assert metric.score(["yes"], histories=[["one", "two", "three"]])["pmi"] == pytest.approx(short["pmi"])


def test_a_long_prompt_is_cut_from_its_left(folder):
    metric = create("pmi", model=folder, max_length=40)
    found = metric.score(["I am fine"], histories=[["word " * 100]])
    assert found.cut[0] > 0 and np.isfinite(found["pmi"][0])
