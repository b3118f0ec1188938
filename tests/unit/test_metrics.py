"""Metrics of words: values worked out by hand, scripts, bounds, options, and metrics that combine them."""

import math
import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import comperdial
from comperdial.core.errors import ConfigError, MissingResourceError, SchemaError, UnknownNameError
from comperdial.core.scripts import JAPANESE, script_of
from comperdial.metrics import create, kinds
from comperdial.metrics.text import normalise

NLG_EVAL = {"text": "raw", "tokens": "nlg-eval"}


def score(kind, response, references, **options):
    scores = create(kind, **options).score([response], [references])
    return {name: float(values[0]) for name, values in scores.items()}


# Each line worked out by hand from the metric's definition.
@pytest.mark.parametrize(
    ("kind", "options", "response", "references", "output", "expected"),
    [
        ("f1", {}, "I like tea!", ["i like green tea"], "f1", 6 / 7),
        ("f1", {}, "I like tea!", ["i like green tea"], "precision", 1.0),
        ("f1", {}, "the", ["a", "tea"], "f1", 0.0),
        ("f1", {}, "yes", ["no", "oh yes"], "f1", 2 / 3),
        ("f1", {"text": "raw", "unit": "character"}, "ab c", ["abd"], "f1", 4 / 7),
        ("bleu", {}, "one two six", ["one two three"], "bleu-2", math.sqrt(2 / 3 * 1 / 2)),
        # A reference of which normalisation leaves nothing does not switch off the brevity penalty.
        ("bleu", {}, "one two", ["...", "one two three four"], "bleu-1", math.exp(1 - 4 / 2)),
        # method1: the empty orders count epsilon; 3 words have no 4-gram, whose denominator nltk takes as 1.
        ("bleu", {"epsilon": 0.5}, "one two three", ["one two three"], "bleu-4", 0.5**0.25),
        # nlg-eval: 1e-15 above the line and 1e-9 below, also in an order that the text has no n-grams of.
        ("bleu", {"smoothing": "nlg-eval"}, "one two three", ["one two three"], "bleu-4", 1e-6**0.25),
        ("bleu", {"smoothing": "nlg-eval"}, "one two", ["one two three four", "?!"], "bleu-1", math.exp(1 - 4 / 2)),
        ("rouge", {}, "one two four", ["one two three four"], "rouge2-f", 2 / 5),
        ("rouge", {}, "four two one", ["one two three four"], "rougeL-p", 1 / 3),
        ("rouge", {"beta": 1.2}, "one two four", ["one two three four"], "rougeL-f", 2.44 * 0.75 / (0.75 + 1.44)),
        ("rouge", {"tokens": "whitespace", "text": "raw"}, "Do it .", ["do it ."], "rouge1-f", 2 / 3),
        # nlg-eval: a double space holds an empty token; precision and recall are each of the best reference.
        ("rouge", NLG_EVAL, "a  b", ["a b", "a  c  d"], "rougeL-f", 2 * 2 / 3 / (2 / 3 + 1)),
        ("chrf", {"order": 2, "beta": 1.0}, "abc", ["abd"], "chrf", (2 / 3 + 1 / 2) / 2),
        ("chrf", {"order": 1, "beta": 2.0}, "ab", ["abcd"], "chrf", 5 * 1 * 0.5 / (4 * 1 + 0.5)),
    ],
)
def test_by_hand(kind, options, response, references, output, expected):
    assert score(kind, response, references, **options)[output] == pytest.approx(expected, abs=1e-8)


# Counts by hand: different words and pairs over words (Li et al. 2016).
@pytest.mark.parametrize(
    ("response", "options", "expected"),
    [
        ("so so good so so good", {}, (2 / 6, 3 / 6)),
        ("The tea, the tea!", {}, (1 / 2, 1 / 2)),
        ("The tea, the tea!", {"text": "raw"}, (1.0, 3 / 4)),
        ("yes", {}, (1.0, 0.0)),
        ("the", {}, (math.nan, math.nan)),
        ("so so good so so good", {"over": "ngrams"}, (2 / 6, 3 / 5)),
        ("yes", {"over": "ngrams"}, (1.0, math.nan)),
    ],
)
def test_distinct_by_hand(response, options, expected):
    scores = create("distinct", **options).score([response])
    for output, value in zip(("distinct-1", "distinct-2"), expected, strict=True):
        assert scores[output][0] == pytest.approx(value, abs=1e-12, nan_ok=True)


def test_meteor_without_wordnet(monkeypatch):
    monkeypatch.setattr("comperdial.data.wordnet.roots", list)
    assert "WordNet is not on this machine" in create("meteor").unavailable()
    with pytest.raises(MissingResourceError, match="Run `comperdial wordnet`"):
        create("meteor").score(["a"], ["b"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It's THE end.", "it s end"),
        ("a-b_c", "b c"),
        ("another theme", "another theme"),
        ("  spaces\tand\nlines ", "spaces and lines"),
        ("“curly” — stays", "“curly” — stays"),
    ],
)
def test_normalise(text, expected):
    assert normalise(text) == expected


@pytest.mark.parametrize(
    ("response", "reference", "shared", "lengths"),
    [
        ("私は茶が好き", "私は犬が好き", 5, (6, 6)),
        ("我用GPT", "我不用GPT", 3, (3, 4)),
        # A vowel sign stays with its consonant.
        ("กินข้าว", "กินน้ำ", 2, (5, 4)),
        ("나는 차가 좋다", "나는 개가 좋다", 2, (3, 3)),
    ],
)
def test_scripts_without_spaces_are_split_into_characters(response, reference, shared, lengths):
    expected = 2 * shared / sum(lengths)
    assert score("f1", response, [reference])["f1"] == pytest.approx(expected)
    assert score("rouge", response, [reference])["rouge1-f"] == pytest.approx(expected)
    assert create("distinct").score([response])["distinct-1"][0] == 1.0


@pytest.mark.parametrize("kind", ["f1", "rouge"])
@pytest.mark.parametrize("text", ["naïve café", "がっこう", "안녕"])
def test_decomposed_letters_equal_composed_ones(kind, text):
    composed, decomposed = unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)
    assert composed != decomposed
    assert score(kind, composed, [decomposed])[create(kind).outputs[0]] == 1.0


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("naïve façade", "Latin"), ("?! 12", None), ("👍", None), ("Привет, GPT", "Cyrillic"), ("お茶", JAPANESE),
        ("コーヒー", JAPANESE), ("我喜欢GPT", "Han"), ("안녕", "Hangul"), ("ＡＢＣ", "Latin"), ("I say 茶", "Latin"),
    ],
)  # fmt: skip
def test_script_of(text, script):
    assert script_of(text) == script


texts = st.one_of(
    st.text(min_size=1).filter(str.strip),
    st.lists(st.sampled_from(["the", "tea", "teas", "tea cup", "it's", "I", "!", "a"]), min_size=1).map(" ".join),
)
MADE = [
    ("f1", {"unit": "character"}),
    ("bleu", {"epsilon": 1.0}),
    *(("bleu", {"smoothing": f"method{number}"}) for number in (0, 2, 3, 4, 5, 7)),
    ("bleu", {"smoothing": "nlg-eval"}),
    ("rouge", {"beta": 1.2}),
    ("rouge", NLG_EVAL),
    ("chrf", {"beta": 0.3}),
    ("distinct", {"text": "raw", "over": "ngrams"}),
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("kind", "options"), MADE, ids=str)
@settings(max_examples=20)
@given(response=texts, references=st.lists(texts, min_size=1, max_size=3))
def test_scores_are_within_their_bounds_and_a_copy_is_best(kind, options, response, references):
    metric = create(kind, **options)
    pairs = [(response, references), (response, [response]), *((response, [one]) for one in references)]
    scores = metric.score(*map(list, zip(*pairs, strict=True)))
    for output, limits in metric.bounds.items():
        known = scores[output][~np.isnan(scores[output])]
        assert limits is None or ((known >= limits[0]) & (known <= limits[1])).all()
    main = scores[metric.outputs[0]]
    if kind in ("f1", "rouge", "chrf") and not np.isnan(main).any():
        assert main[0] <= main[1] + 1e-9 or not normalise(response)
        if options is not NLG_EVAL:
            assert main[0] == pytest.approx(max(main[2:])), "a further reference never lowers the best"


def test_bounds_are_not_too_wide():
    """Bounds that are too wide would make every difference small."""
    for kind in ("bleu", "chrf", "f1", "rouge"):
        metric = create(kind)
        scores = metric.score(["one two three four", "x"], ["one two three four", "y"])
        for output, limits in metric.bounds.items():
            assert scores[output] == pytest.approx(limits[::-1], abs=1e-12)
    bounds = {kind: create(kind).bounds for kind in kinds()}
    assert bounds["grounded_cosine"] == {"sum": (-2, 2), "context": (-1, 1), "fact": (-1, 1)}
    assert bounds["bert_nsp"] == {"bert-nsp": (0, 1), "bert-nsp-log-odds": None}
    assert {o for o, limits in bounds["unieval"].items() if limits is None} == {"overall", "engagingness"}
    assert set(bounds["fed"].values()) == set(create("bleu", smoothing="method5").bounds.values()) == {None}


HISTORIES = [
    [{"speaker": "A", "text": " Do you like tea ? "}],
    ["hello there", "are you at home ?", " no way"],
    ["tea", "tea cup"],
]


@pytest.mark.parametrize(
    ("of", "contexts"),
    [
        ("last", ["Do you like tea ?", "no way", "tea cup"]),
        ("history", ["Do you like tea ?", "hello there are you at home ? no way", "tea tea cup"]),
    ],
)
def test_with_context(of, contexts):
    responses, options = ["I like green tea!", "no", "tea tea tea"], {"stem": True, "beta": 1.2}
    metric, inner = create("with_context", metric="rouge", options=options, of=of), create("rouge", **options)
    expected = inner.score(responses, contexts)
    scores = metric.score(responses, references=[["else"]] * 3, histories=HISTORIES)
    assert tuple(scores) == metric.outputs == inner.outputs
    for output, values in expected.items():
        np.testing.assert_array_equal(scores[output], values)
    assert metric.signature() == f"with_context|of:{of}|metric:({inner.signature()})|v:1"
    assert metric == create("with_context", metric="rouge", options='{"stem": true, "beta": 1.2}', of=of)
    with pytest.raises(SchemaError, match="response 1: metric 'with_context' needs histories"):
        metric.score(["tea"], [["tea"]], histories=[[]])


@pytest.mark.parametrize(
    ("kind", "options", "error", "message"),
    [
        ("blue", {}, UnknownNameError, "unknown metric 'blue'.*Did you mean 'bleu'"),
        ("bleu", {"smooth": "a"}, UnknownNameError, "option of metric 'bleu'.*'smooth'.*Did you mean 'smoothing'"),
        ("bleu", {"smoothing": "method9"}, ConfigError, "'method9'; expected one of 'method0'"),
        ("bleu", {"epsilon": "tiny"}, ConfigError, "'epsilon' of metric 'bleu' is 'tiny'; expected a number"),
        ("bleu", {"smoothing": "method2", "epsilon": 0.1}, ConfigError, "'epsilon' of metric 'bleu' is 0.1"),
        ("bleu", {"epsilon": True}, ConfigError, "is True; expected a number"),
        ("chrf", {"order": 1.5}, ConfigError, "is 1.5; expected a whole number"),
        ("chrf", {"order": 0}, ConfigError, "a number from 1"),
        ("rouge", {"stem": 1}, ConfigError, "is 1; expected yes or no"),
        ("rouge", {"stem": True, "tokens": "whitespace"}, ConfigError, "'stem'"),
        ("meteor", {"wordnet": 3.0}, ConfigError, "is 3.0; expected a text"),
        ("with_context", {"metric": "distinct"}, ConfigError, "is 'distinct'; expected a metric that compares"),
        ("with_context", {"options": {"unti": "word"}}, UnknownNameError, "metric 'f1'.*Did you mean 'unit'"),
        ("with_context", {"options": "{unit"}, ConfigError, "expected a mapping"),
    ],
)
def test_wrong_options(kind, options, error, message):
    with pytest.raises(error, match=message):
        create(kind, **options)


@pytest.mark.parametrize(
    ("responses", "references", "message"),
    [
        (["x"], None, "metric 'f1' needs references"),
        (["x", "y"], ["x"], "1 references for 2 responses"),
        (["x", " "], ["x", "y"], "response 2: the response is ' '; expected a text that is not empty"),
        (["x", "y"], ["x", []], "response 2: metric 'f1' needs references"),
        (["x", "y"], ["x", ["y", " "]], "response 2: one of its references is ' '"),
        (["x"], [3], "response 1: references is 3; expected a list"),
        ("xy", ["x", "y"], "a single text; expected a list of responses"),
    ],
)
def test_wrong_input(responses, references, message):
    with pytest.raises(SchemaError, match=message):
        create("f1").score(responses, references)


def test_signatures_are_complete():
    assert create("f1").signature() == "f1|text:normalised|unit:word|v:1"
    assert create("bleu", text="raw").signature().startswith("bleu|text:raw|smoothing:method1|epsilon:1e-12|nltk:")
    changed = ({}, {"stem": True}, {"beta": 1.2}, {"beta": 1.2000001}, {"text": "raw"})
    assert len({create("rouge", **options).signature() for options in changed}) == len(changed)
    assert create("chrf", beta=2) == create("chrf", beta="2.0")


def test_the_library_in_three_lines():
    metric = comperdial.metric("bleu", text="raw")
    scores = metric.score(["i like tea", "no"], references=["i like tea", "yes"])
    assert scores["bleu-1"].tolist() == [1.0, 0.0]
    assert all(len(values) == 0 for values in metric.score([], []).values())
