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
    ("bleu", {"smoothing": "method4"}),
    ("bleu", {"smoothing": "nlg-eval", "text": "raw"}),
    ("rouge", {"stem": True}),
    ("rouge", {"text": "raw", "tokens": "whitespace", "beta": 1.2}),
    ("rouge", {"text": "raw", "tokens": "nlg-eval", "beta": 1.2}),
    ("chrf", {}),
    ("chrf", {"text": "raw", "order": 9, "beta": 3.0}),
    ("meteor", {}),
    ("meteor", {"text": "raw", "alpha": 1.0, "beta": 0.2, "gamma": 1.0}),
]


@pytest.mark.parametrize("kind", ["f1", "bleu", "rouge", "chrf", "meteor"])
def test_scores_are_equal_with_a_small_cache(real_wordnet, root, kind, monkeypatch):
    """What is remembered of texts and pairs is bounded, and changes no score."""
    lines = (root / "data/demo/response_bank.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line)["response"] for line in lines]
    responses = [texts[n % len(texts)] for n in range(40)]
    references = [[texts[n * 7 % len(texts)], texts[n * 11 % len(texts)]] for n in range(40)]
    monkeypatch.setattr(base, "_TEXTS", 3)
    monkeypatch.setattr(base, "_PAIRS", 2)
    assert_equal_to_plain(kind, {}, responses, references)


# m matches in c chunks of a response of h and a reference of r words: P = m/h, R = m/r,
# F = PR / (0.9 P + 0.1 R), penalty = 0.5 (c/m)^3.
@pytest.mark.parametrize(
    ("response", "reference", "matches", "chunks"),
    [
        ("one two nine three", "one two three", 3, 2),
        ("cats", "cat", 1, 1),
        ("auto", "car", 1, 1),
        # nltk looks synonyms up by stem, and WordNet has no "automobil" (docs/reproduction-notes.md).
        ("automobile", "car", 0, 0),
    ],
)
def test_meteor_by_hand(real_wordnet, response, reference, matches, chunks):
    expected = 0.0
    if matches:
        precision, recall = matches / len(response.split()), matches / len(reference.split())
        mean = precision * recall / (0.9 * precision + 0.1 * recall)
        expected = mean * (1 - 0.5 * (chunks / matches) ** 3)
    assert create("meteor").score([response], [reference])["meteor"][0] == pytest.approx(expected, abs=1e-8)
    assert create("meteor").unavailable() is None
    assert "expected WordNet 2.1" in create("meteor", wordnet="2.1").unavailable()


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
