"""The word-overlap metrics are the plain loop over the libraries, to the last bit."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from comperdial.metrics import base, create
from plain_metrics import plain

# Few words, so that they repeat and match: inflections, irregular forms and synonyms of one another, articles and
# punctuation that normalisation leaves nothing of, letters outside ASCII, and some whose lower case is odd.
WORDS = [
    *("the", "a", "...", "—", "it's", "Car", "cars", "auto", "run", "runs", "running", "ran", "go", "goes", "went"),
    *("happy", "happily", "glad", "men", "man", "women", "churches", "better", "good", "big", "large", "bigger"),
    *("street", "10", "3rd", "naïve", "İstanbul", "straße", "日本", "ﬁne", "x_y", "“quoted”", "dying", "die", "skies"),
]  # fmt: skip
SPACES = [" ", " ", " ", "  ", "\t", "\n", "\xa0", "\u2028", "\x1c", "\x1f"]


@st.composite
def sentences(draw):
    words = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=14))
    spaces = draw(st.lists(st.sampled_from(SPACES), min_size=len(words), max_size=len(words)))
    return "".join(itertools.chain(*zip(words, spaces, strict=True)))


texts = sentences() | st.text(min_size=1, max_size=40).filter(str.strip)
batches = st.lists(st.tuples(texts, st.lists(texts, min_size=1, max_size=3)), min_size=1, max_size=4)

CASES = [
    ("f1", {}),
    ("f1", {"text": "raw", "unit": "character"}),
    ("bleu", {}),
    ("bleu", {"text": "raw", "epsilon": 0.1}),
    ("bleu", {"epsilon": 5e-324}),
    ("bleu", {"smoothing": "method4"}),
    ("bleu", {"smoothing": "nlg-eval", "text": "raw"}),
    ("rouge", {"stem": True}),
    ("rouge", {"text": "raw", "stem": True, "beta": 0.0}),
    ("rouge", {"text": "raw", "tokens": "whitespace", "beta": 1.2}),
    ("rouge", {"text": "raw", "tokens": "nlg-eval", "beta": 1.2}),
    ("rouge", {"tokens": "nlg-eval"}),
    ("chrf", {}),
    ("chrf", {"text": "raw", "order": 9, "beta": 3.0}),
    ("chrf", {"order": 2, "beta": 0.0}),
    ("meteor", {}),
    ("meteor", {"text": "raw", "alpha": 1.0, "beta": 0.2, "gamma": 1.0}),
]
every_case = pytest.mark.parametrize(("kind", "options"), CASES, ids=str)


def assert_equal_to_plain(kind, options, responses, references):
    scores = create(kind, **options).score(responses, references)
    expected = plain(kind, responses, references, **options)
    assert scores.keys() == expected.keys()
    for output, values in expected.items():
        np.testing.assert_array_equal(scores[output], values, err_msg=output)


@every_case
@settings(max_examples=15)
@given(batches)
# Nothing is left of one side or of both.
@example([("the", ["a"]), ("...", ["go on"]), ("go on", ["the"]), ("日本", ["—"])])
# Words that repeat; the second reference matches better.
@example([("run run run", ["run", "run run running runs"]), ("auto car auto", ["car car cars auto"])])
# rouge-score does not stem three letters.
@example([("was", ["wa"]), ("skies", ["sky"])])
# The same text as a response and as a reference, and a pair that comes again.
@example([("go", ["went"]), ("went", ["go"]), ("go", ["went"])])
# More tokens than a machine word has bits.
@example([("a b c d " * 20, ["d c b a " * 20, "c a " * 40])])
def test_equal_to_the_plain_loop(real_wordnet, kind, options, batch):
    assert_equal_to_plain(kind, options, [response for response, _ in batch], [several for _, several in batch])


@pytest.fixture(scope="module")
def demo(root):
    """Return 100 responses of the demo, each with two utterances as references."""
    lines = (root / "data/demo/response_bank.jsonl").read_text(encoding="utf-8").splitlines()
    bank = [json.loads(line)["response"] for line in lines]
    dialogues = json.loads((root / "data/demo/dialogues.json").read_text(encoding="utf-8"))
    spoken = [turn["text"] for dialogue in dialogues for turn in dialogue["dialogue"]]
    references = [[spoken[n % len(spoken)], spoken[n * 7 % len(spoken)]] for n in range(100)]
    return [bank[n % len(bank)] for n in range(100)], references


@every_case
def test_equal_on_the_demo_with_a_small_memory_too(real_wordnet, demo, kind, options, monkeypatch):
    """What is remembered of texts and pairs is bounded, and changes no score."""
    monkeypatch.setattr(base, "_TEXTS", 3)
    monkeypatch.setattr(base, "_PAIRS", 2)
    assert_equal_to_plain(kind, options, *demo)
