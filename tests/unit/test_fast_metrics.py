"""The word-overlap metrics are the plain loop over the libraries, to the last bit."""

import itertools
import json
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from comperdial.metrics import OverlapMetric, base, create
from comperdial.metrics._ngrams import Ngrams, longest_common_subsequence, matches
from comperdial.metrics._stems import stem
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


def batches(texts):
    return st.lists(st.tuples(texts, st.lists(texts, min_size=1, max_size=3)), min_size=1, max_size=4)


any_text = st.text(min_size=1, max_size=40).filter(str.strip)

CASES = [
    ("f1", {}),
    ("f1", {"text": "raw"}),
    ("f1", {"text": "raw", "unit": "character"}),
    ("bleu", {}),
    ("bleu", {"text": "raw", "epsilon": 0.1}),
    ("bleu", {"epsilon": 5e-324}),
    ("bleu", {"smoothing": "method2"}),
    ("bleu", {"smoothing": "method4"}),
    ("bleu", {"smoothing": "nlg-eval", "text": "raw"}),
    ("bleu", {"smoothing": "nlg-eval"}),
    ("rouge", {}),
    ("rouge", {"stem": True}),
    ("rouge", {"text": "raw", "stem": True, "beta": 0.0}),
    ("rouge", {"text": "raw", "tokens": "whitespace", "beta": 1.2}),
    ("rouge", {"text": "raw", "tokens": "nlg-eval", "beta": 1.2}),
    ("rouge", {"tokens": "nlg-eval"}),
    ("chrf", {}),
    ("chrf", {"text": "raw", "order": 9, "beta": 3.0}),
    ("chrf", {"order": 2, "beta": 0.0}),
]
METEOR_OPTIONS = [{}, {"text": "raw"}, {"alpha": 1.0, "beta": 0.2, "gamma": 1.0}]
every_case = pytest.mark.parametrize(("kind", "options"), CASES, ids=str)
every_meteor = pytest.mark.parametrize("options", METEOR_OPTIONS, ids=str)


def random_batches(test):
    examples = [
        # Nothing is left of one side or of both.
        [("the", ["a"]), ("...", ["go on"]), ("go on", ["the"]), ("日本", ["—"])],
        # Words that repeat; the second reference matches better.
        [("run run run", ["run", "run run running runs"]), ("auto car auto", ["car car cars auto"])],
        # rouge-score does not stem three letters.
        [("was", ["wa"]), ("skies", ["sky"])],
        # The same text as a response and as a reference, and a pair that comes again.
        [("go", ["went"]), ("went", ["go"]), ("go", ["went"])],
    ]
    for batch in examples:
        test = example(batch=batch)(test)
    return settings(max_examples=60)(given(batch=batches(sentences()) | batches(any_text))(test))


def assert_equal_to_plain(kind, options, responses, references):
    found = create(kind, **options).score(responses, references)
    expected = plain(kind, responses, references, **options)
    assert found.keys() == expected.keys()
    for output, values in expected.items():
        np.testing.assert_array_equal(found[output], values, err_msg=output)


@every_case
@random_batches
def test_equal_to_the_plain_loop(kind, options, batch):
    assert_equal_to_plain(kind, options, [response for response, _ in batch], [several for _, several in batch])


@every_meteor
@random_batches
def test_meteor_equal_to_the_plain_loop(real_wordnet, options, batch):
    assert_equal_to_plain("meteor", options, [response for response, _ in batch], [several for _, several in batch])


@pytest.fixture(scope="module")
def demo_pairs(root):
    """Return some 500 responses of the demo with their references: of its tables or, without those, of its files."""
    tables = root / "data/tables/demo"
    if (tables / "responses.parquet").is_file():
        rows = pd.read_parquet(tables / "responses.parquet").iloc[::20]
        contexts = pd.read_parquet(tables / "contexts.parquet").set_index("context_id")
        return list(rows["response"]), [list(several) for several in contexts["references"][rows["context_id"]]]
    lines = (root / "data/demo/response_bank.jsonl").read_text(encoding="utf-8").splitlines()
    bank = [json.loads(line)["response"] for line in lines]
    dialogues = json.loads((root / "data/demo/dialogues.json").read_text(encoding="utf-8"))
    said = [turn["text"] for dialogue in dialogues for turn in dialogue["dialogue"]]
    pairs = [(bank[i % len(bank)], [said[i % len(said)], said[i * 7 % len(said)]]) for i in range(500)]
    return [response for response, _ in pairs], [several for _, several in pairs]


@every_case
def test_equal_on_the_demo(demo_pairs, kind, options):
    assert_equal_to_plain(kind, options, *demo_pairs)


@every_meteor
def test_meteor_equal_on_the_demo(real_wordnet, demo_pairs, options):
    assert_equal_to_plain("meteor", options, *demo_pairs)


def longest_by_table(left, right):
    rows = [[0] * (len(right) + 1)]
    for token in left:
        row = [0]
        for place, other in enumerate(right):
            row.append(rows[-1][place] + 1 if token == other else max(rows[-1][place + 1], row[place]))
        rows.append(row)
    return rows[-1][-1]


@given(st.text("abcd", max_size=80), st.text("abce", max_size=80))
@example("", "")
@example("abcd" * 20, "dcba" * 20)
def test_longest_common_subsequence(left, right):
    assert longest_common_subsequence(Ngrams(left), Ngrams(right)) == longest_by_table(left, right)


@given(st.text("ab ", max_size=12), st.lists(st.text("ab ", max_size=12), min_size=1, max_size=3))
def test_matches_are_clipped_counts(hypothesis, references):
    found = matches(Ngrams(hypothesis), [Ngrams(text) for text in references], 5)
    for order in range(1, 6):
        counts = [
            Counter(text[i : i + order] for i in range(len(text) - order + 1)) for text in (hypothesis, *references)
        ]
        most = Counter()
        for one in counts[1:]:
            most |= one
        assert found[order - 1] == (counts[0] & most).total()


@dataclass(frozen=True, kw_only=True)
class Counting(OverlapMetric):
    """Notes what it is asked."""

    kind = "counting"
    prepared: list = field(default_factory=list)
    compared: list = field(default_factory=list)

    @property
    def outputs(self):
        return ("length",)

    def prepare(self, text):
        self.prepared.append(text)
        return text

    def pair(self, hypothesis, reference):
        self.compared.append((hypothesis, reference))
        return (len(hypothesis) - len(reference),)


def test_each_text_and_each_pair_is_looked_at_once():
    metric = Counting(text="raw")
    responses = ["one", "three", "one", "one"]
    references = [["two", "seven"], ["two", "seven"], ["two", "seven"], ["two"]]
    assert metric.score(responses, references)["length"].tolist() == [0, 2, 0, 0]
    assert sorted(metric.prepared) == ["one", "seven", "three", "two"]
    assert len(metric.compared) == 5


def test_what_is_remembered_is_bounded(monkeypatch, demo_pairs):
    expected = create("rouge").score(*demo_pairs)
    monkeypatch.setattr(base, "_TEXTS", 3)
    monkeypatch.setattr(base, "_PAIRS", 2)
    metric = Counting(text="raw")
    metric.score(list("abcdeabcde"), ["x"] * 10)
    # Of five texts that come twice, none is still there the second time; the reference, asked for each time, stays.
    assert metric.prepared == [*"axbcde", *"abcde"]
    for output, values in create("rouge").score(*demo_pairs).items():
        np.testing.assert_array_equal(values, expected[output])
    assert stem.cache_info().maxsize is not None
