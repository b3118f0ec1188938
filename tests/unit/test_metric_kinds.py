"""Metrics that do without references: a metric with the context in the reference's place, and distinct n-grams."""

import json
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comperdial.core.errors import ConfigError, SchemaError, UnknownNameError
from comperdial.metrics import create, kinds
from comperdial.metrics._embedding import EmbeddingMetric
from comperdial.metrics._model import NeedsModel
from comperdial.metrics.options import read_options
from comperdial.metrics.with_context import WithContext

RESPONSES = ["I like green tea!", "no", "what did you say about the sea ?", "tea tea tea"]
HISTORIES = [
    [{"speaker": "A", "text": " Do you like tea ? "}],
    ["hello there", "are you at home ?", " no way"],
    ["The sea is cold.", "It is said that the sea is deep ."],
    ["tea", "tea cup"],
]
LAST = ["Do you like tea ?", "no way", "It is said that the sea is deep .", "tea cup"]
WHOLE = ["Do you like tea ?", "hello there are you at home ? no way", f"The sea is cold. {LAST[2]}", "tea tea cup"]
INNER = [
    ("f1", {}),
    ("f1", {"text": "raw", "unit": "character"}),
    ("bleu", {"epsilon": 0.1}),
    ("rouge", {"stem": True, "beta": 1.2}),
    ("chrf", {"order": 3}),
    ("bertscore", {"model": "all-MiniLM-L6-v2", "layer": 6}),
    ("embedding", {"model": "all-MiniLM-L6-v2", "layer": 6}),
    ("sentence_cosine", {"model": "all-MiniLM-L6-v2", "pooling": "mean"}),
]


@pytest.mark.parametrize(("of", "texts"), [("last", LAST), ("history", WHOLE)])
@pytest.mark.parametrize(("kind", "options"), INNER, ids=[kind for kind, _ in INNER])
def test_the_context_stands_in_the_reference_s_place(kind, options, of, texts):
    metric = create("with_context", metric=kind, options=options, of=of)
    inner = create(kind, **options)
    expected = inner.score(RESPONSES, texts)
    # What is there of references is not looked at.
    found = metric.score(RESPONSES, references=[["else"]] * 4, histories=HISTORIES)
    assert tuple(found) == metric.outputs == inner.outputs
    for output, values in expected.items():
        np.testing.assert_array_equal(found[output], values)
    np.testing.assert_array_equal(found.cut, expected.cut)
    assert metric.bounds == inner.bounds
    assert (metric.runs_model, metric.keeps_vectors) == (inner.runs_model, inner.keeps_vectors)
    assert metric.modules == ("with_context", kind)


def test_meteor_with_the_context(real_wordnet):
    found = create("with_context", metric="meteor").score(RESPONSES, histories=HISTORIES)
    expected = create("meteor").score(RESPONSES, LAST)
    np.testing.assert_array_equal(found["meteor"], expected["meteor"])


def test_f1_with_the_context_by_hand():
    found = create("with_context", metric="f1").score(RESPONSES[:1], histories=HISTORIES[:1])
    # "i like green tea" and "do you like tea": 2 shared words of 4 and 4.
    assert found["f1"].tolist() == [0.5]


def test_only_the_context_is_needed():
    metric = create("with_context")
    assert metric.score(["tea"], histories=[["tea"]])["f1"].tolist() == [1.0]
    with pytest.raises(SchemaError, match="response 1: metric 'with_context' needs histories"):
        metric.score(["tea"], [["tea"]], histories=[[]])


def test_signature_holds_the_inner_one_and_tells_all_apart():
    plain = create("with_context", metric="f1")
    assert plain.signature() == "with_context|of:last|metric:(f1|text:normalised|unit:word|v:1)|v:1"
    made = [create("with_context", metric=kind, options=o, of=of) for kind, o in INNER for of in ("last", "history")]
    assert len({metric.signature() for metric in made}) == len(made)
    for metric in made:
        assert f"metric:({metric.inner.signature()})" in metric.signature()


def test_it_does_not_change_and_can_be_a_key():
    options = {"unit": "character", "text": "raw"}
    one = create("with_context", options=options)
    other = create("with_context", options=dict(reversed(options.items())))
    options["text"] = "normalised"
    assert one == other
    assert hash(one) == hash(other)
    assert one.inner == create("f1", unit="character", text="raw")
    assert create("with_context", options='{"unit": "character"}').inner == create("f1", unit="character")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"metric": "blue"}, UnknownNameError, "unknown metric 'blue'.*Did you mean 'bleu'"),
        ({"metric": "with_context"}, ConfigError, "'metric' of metric 'with_context' is 'with_context'; expected a"),
        ({"metric": "distinct"}, ConfigError, "is 'distinct'; expected a metric that compares"),
        ({"of": "all"}, ConfigError, "'all'; expected one of 'last', 'history'"),
        ({"options": {"unti": "word"}}, UnknownNameError, "option of metric 'f1'.*Did you mean 'unit'"),
        ({"options": {"unit": ["word"]}}, ConfigError, "'options' of metric 'with_context'.*expected a mapping"),
        ({"options": ["unit"]}, ConfigError, "expected a mapping of names to texts, numbers, yes or no"),
        ({"options": "{unit"}, ConfigError, "expected a mapping"),
        ({"options": {1: "word"}}, ConfigError, "expected a mapping"),
        ({"metric": "chrf", "options": {"order": "x"}}, ConfigError, "'order' of metric 'chrf' is 'x'"),
    ],
)
def test_wrong_options(options, error, message):
    with pytest.raises(error, match=message):
        create("with_context", **options)


def test_what_the_inner_metric_lacks_is_said(monkeypatch, tmp_path):
    metric = create("with_context", metric="bertscore", options={"model": str(tmp_path / "absent")})
    assert metric.unavailable() == metric.inner.unavailable() is not None


def test_options_stay_as_they_are_read():
    assert read_options(WithContext, {"options": {"b": 1.5, "a": True}}) == {"options": (("a", True), ("b", 1.5))}
    json.dumps(create("with_context", options={"unit": "word"}).signature())


# Counts by hand: different words and pairs over words (Li et al. 2016).
@pytest.mark.parametrize(
    ("response", "options", "expected"),
    [
        ("one two three four", {}, (1.0, 3 / 4)),
        ("no no no no", {}, (1 / 4, 1 / 4)),
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
    found = create("distinct", **options).score([response, "other words", response])
    for output, value in zip(("distinct-1", "distinct-2"), expected, strict=True):
        assert found[output][[0, 2]] == pytest.approx([value, value], abs=1e-12, nan_ok=True)


def test_distinct_says_what_it_is():
    assert create("distinct").signature() == "distinct|text:normalised|over:words|v:1"
    with pytest.raises(ConfigError, match="'tokens'; expected one of 'words', 'ngrams'"):
        create("distinct", over="tokens")


texts = st.one_of(
    st.text(min_size=1).filter(str.strip),
    st.lists(st.sampled_from(["the", "tea", "teas", "tea cup", "it's", "I", "!", "a"]), min_size=1).map(" ".join),
)
WORDS = [
    ("f1", {"text": "raw"}),
    ("f1", {"unit": "character"}),
    ("bleu", {"text": "raw"}),
    ("bleu", {"epsilon": 1.0}),
    *(("bleu", {"smoothing": f"method{number}"}) for number in (0, 2, 3, 4, 5, 7)),
    ("bleu", {"smoothing": "nlg-eval"}),
    ("rouge", {"beta": 1.2}),
    ("rouge", {"text": "raw", "tokens": "whitespace"}),
    ("rouge", {"text": "raw", "tokens": "nlg-eval"}),
    ("chrf", {"beta": 0.3}),
    ("chrf", {"text": "raw"}),
    ("meteor", {"alpha": 0.1, "gamma": 1.0}),
    ("distinct", {}),
    ("distinct", {"text": "raw", "over": "ngrams"}),
]


@pytest.mark.parametrize(("kind", "options"), WORDS, ids=[f"{kind} {list(o.values())}" for kind, o in WORDS])
@settings(max_examples=30)
@given(response=texts, references=st.lists(texts, min_size=1, max_size=3))
def test_scores_of_words_lie_within_their_bounds(real_wordnet, kind, options, response, references):
    metric = create(kind, **options)
    # With themselves too: the upper bounds are met.
    found = metric.score([response, response], [references, [response]])
    assert list(metric.bounds) == list(metric.outputs)
    for output, limits in metric.bounds.items():
        if limits:
            assert all(math.isnan(value) or limits[0] <= value <= limits[1] for value in found[output])


def test_the_bounds_of_words_are_met():
    """Bounds that are too wide would make every difference small."""
    for kind in ("f1", "bleu", "rouge", "chrf"):
        metric = create(kind)
        found = metric.score(["one two three four", "x"], ["one two three four", "y"])
        for output, limits in metric.bounds.items():
            assert found[output] == pytest.approx(limits[::-1], abs=1e-12)
    for smoothing in ("method5", "method7"):
        metric = create("bleu", smoothing=smoothing)
        assert metric.score(["one two"], ["one two"])["bleu-1"][0] > 1, "so it has no bounds"
        assert set(metric.bounds.values()) == {None}


vectors = st.integers(0, 2**32 - 1).map(np.random.default_rng)


@given(vectors)
@settings(max_examples=30)
def test_cosines_lie_within_their_bounds(random):
    """Of any vectors, also such that no model gives."""
    from comperdial.models.vectors import Encoded

    def encoded(rows):
        made = random.normal(random.normal(), 1, (rows, 3)).astype(np.float32)
        return Encoded(made, np.array([True, *[False] * (rows - 2), True]), 0)

    one, other = encoded(int(random.integers(3, 9))), encoded(int(random.integers(3, 9)))
    model = "all-MiniLM-L6-v2"
    for kind in ("bertscore", "embedding", "sentence_cosine"):
        metric = create(kind, model=model, layer=6)
        for pair in ((one, other), (one, one)):
            found = dict(zip(metric.outputs, metric.pair(*pair), strict=True))
            if kind == "bertscore" and found["precision"] * found["recall"] < 0:
                # The one exception that its docstring names.
                del found["f1"]
            for output, value in found.items():
                low, high = metric.bounds[output]
                assert low <= value <= high


def test_bounds_of_models():
    bounds = {kind: create(kind).bounds for kind in kinds()}
    assert bounds["grounded_cosine"] == {"sum": (-2, 2), "context": (-1, 1), "fact": (-1, 1)}
    assert bounds["bert_nsp"] == {"bert-nsp": (0, 1), "bert-nsp-log-odds": None}
    assert {o for o, limits in bounds["unieval"].items() if limits is None} == {"overall", "engagingness"}
    for kind in ("bleurt", "fed", "gpt2_coherency", "usr_mlm", "density"):
        assert set(bounds[kind].values()) == {None}
    for kind, found in bounds.items():
        assert tuple(found) == create(kind).outputs


def test_bounds_follow_a_rescaling():
    pytest.importorskip("bert_score")
    metric = create("bertscore", rescale=True)
    for name, (low, high) in metric.bounds.items():
        baseline = dict(zip(metric.outputs, metric._baseline(), strict=True))[name]
        assert high == 1.0
        assert low * (1 - baseline) + baseline == pytest.approx(-1.0)


def test_what_runs_a_model_says_so():
    found = Counter()
    for kind in kinds():
        metric = create(kind)
        if kind != "with_context":
            # `density` names a trained model, which names its encoder; `local` has metrics that do.
            assert metric.runs_model == (isinstance(metric, NeedsModel) or kind in ("density", "local"))
            assert metric.keeps_vectors == (isinstance(metric, EmbeddingMetric) or kind == "local")
            # `local` runs the code of its parts too.
            assert metric.modules[:1] == (kind,) and (len(metric.modules) == 1 or kind == "local")
            found[metric.runs_model, metric.keeps_vectors] += 1
    assert set(found) == {(False, False), (True, False), (True, True)}
