import math
import unicodedata
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import comperdial
from comperdial.core.errors import ConfigError, MissingResourceError, SchemaError, UnknownNameError
from comperdial.core.scripts import JAPANESE, alphanumeric_words, is_beyond_ascii, script_of
from comperdial.metrics import create
from comperdial.metrics.text import normalise

words = (
    st.lists(st.sampled_from(["the", "cat", "sat", "on", "a", "mat", "dogs", "bark", "it's"]), min_size=1, max_size=12)
    .map(" ".join)
    .filter(normalise)
)
WITHOUT_WORDNET = ["bleu", "chrf", "f1", "rouge"]


def score(kind, response, references, **options):
    metric = create(kind, **options)
    return {name: float(values[0]) for name, values in metric.score([response], [references]).items()}


# Each line worked out by hand from the metric's definition.
@pytest.mark.parametrize(
    ("kind", "options", "response", "references", "output", "expected"),
    [
        ("f1", {}, "I like tea!", ["i like green tea"], "f1", 6 / 7),
        ("f1", {}, "I like tea!", ["i like green tea"], "precision", 1.0),
        ("f1", {}, "I like tea!", ["i like green tea"], "recall", 0.75),
        ("f1", {}, "tea tea tea", ["tea cup"], "f1", 0.4),
        ("f1", {}, "the", ["a", "tea"], "f1", 0.0),
        ("f1", {}, "yes", ["no", "oh yes"], "f1", 2 / 3),
        ("f1", {"text": "raw"}, "Tea", ["tea"], "f1", 0.0),
        ("f1", {"text": "raw", "unit": "character"}, "ab c", ["abd"], "f1", 4 / 7),
        ("bleu", {}, "one two three four", ["one two three four"], "bleu-4", 1.0),
        ("bleu", {}, "one two six", ["one two three"], "bleu-1", 2 / 3),
        ("bleu", {}, "one two six", ["one two three"], "bleu-2", math.sqrt(2 / 3 * 1 / 2)),
        ("bleu", {}, "one two", ["one two three four"], "bleu-1", math.exp(1 - 4 / 2)),
        ("bleu", {}, "one two", ["six seven"], "bleu-4", 0.0),
        # A reference of which normalisation leaves nothing does not switch off the brevity penalty.
        ("bleu", {}, "one two", ["...", "one two three four"], "bleu-1", math.exp(1 - 4 / 2)),
        ("bleu", {"smoothing": "nlg-eval"}, "one two", ["one two three four", "?!"], "bleu-1", math.exp(1 - 4 / 2)),
        # method1: the empty orders count epsilon; 3 words have no 4-gram, whose denominator nltk takes as 1.
        ("bleu", {}, "one two three", ["one two three"], "bleu-4", 1e-12**0.25),
        ("bleu", {"epsilon": 0.5}, "one two three", ["one two three"], "bleu-4", 0.5**0.25),
        # nlg-eval: 1e-15 above the line and 1e-9 below, also in an order that the text has no n-grams of.
        ("bleu", {"smoothing": "nlg-eval"}, "one two six", ["one two three"], "bleu-2", math.sqrt(2 / 3 * 1 / 2)),
        ("bleu", {"smoothing": "nlg-eval"}, "one two three", ["one two three"], "bleu-4", 1e-6**0.25),
        ("bleu", {"smoothing": "nlg-eval"}, "one two", ["one two three four"], "bleu-1", math.exp(1 - 4 / 2)),
        # The brevity penalty takes the closest length, here 3.
        ("bleu", {}, "one two six", ["one two three", "one two three four five"], "bleu-1", 2 / 3),
        ("rouge", {}, "one two four", ["one two three four"], "rouge1-f", 6 / 7),
        ("rouge", {}, "one two four", ["one two three four"], "rouge2-f", 2 / 5),
        ("rouge", {}, "one two four", ["one two three four"], "rougeL-r", 3 / 4),
        ("rouge", {}, "four two one", ["one two three four"], "rougeL-p", 1 / 3),
        ("rouge", {"beta": 1.2}, "one two four", ["one two three four"], "rougeL-f", 2.44 * 0.75 / (0.75 + 1.44)),
        ("rouge", {"stem": True}, "cats sleeping", ["cat sleeps"], "rouge1-f", 1.0),
        ("rouge", {"tokens": "whitespace", "text": "raw"}, "do n't", ["do n't"], "rouge1-f", 1.0),
        ("rouge", {"text": "raw", "tokens": "whitespace"}, "Do it .", ["do it ."], "rouge1-f", 2 / 3),
        # nlg-eval: a double space holds an empty token; precision and recall are each of the best reference.
        ("rouge", {"text": "raw", "tokens": "nlg-eval"}, "a  b", ["a b", "a  c  d"], "rougeL-p", 2 / 3),
        ("rouge", {"text": "raw", "tokens": "nlg-eval"}, "a  b", ["a b", "a  c  d"], "rougeL-r", 1.0),
        (
            "rouge",
            {"text": "raw", "tokens": "nlg-eval"},
            "a  b",
            ["a b", "a  c  d"],
            "rougeL-f",
            2 * 2 / 3 / (2 / 3 + 1),
        ),
        ("chrf", {"order": 1, "beta": 1.0}, "ab c", ["abd"], "chrf", 2 / 3),
        ("chrf", {"order": 2, "beta": 1.0}, "abc", ["abd"], "chrf", (2 / 3 + 1 / 2) / 2),
        ("chrf", {"order": 1, "beta": 2.0}, "ab", ["abcd"], "chrf", 5 * 1 * 0.5 / (4 * 1 + 0.5)),
    ],
)
def test_by_hand(kind, options, response, references, output, expected):
    assert score(kind, response, references, **options)[output] == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("kind", WITHOUT_WORDNET)
def test_no_score_if_normalisation_leaves_nothing_of_all_references(kind):
    found = create(kind).score(["tea", "tea", "tea"], [["!!!", "the"], ["tea", "-"], ["tea"]])
    for values in found.values():
        assert np.isnan(values[0])
        assert values[1] == values[2] > 0 or math.isclose(values[1], values[2], abs_tol=1e-9)


@pytest.mark.parametrize("options", [{}, {"stem": True}, {"beta": 2.0}, {"tokens": "whitespace"}], ids=str)
def test_each_rouge_takes_its_own_best_reference_whatever_their_order(options):
    # The first is best for ROUGE-1, the second for ROUGE-2 and ROUGE-L.
    response, references = "one two three four", ["four three two one", "one two nine nine nine"]
    for several in (references, references[::-1]):
        found = score("rouge", response, several, **options)
        alone = [score("rouge", response, [reference], **options) for reference in references]
        assert found["rouge1-f"] == alone[0]["rouge1-f"] > alone[1]["rouge1-f"]
        assert found["rouge2-f"] == alone[1]["rouge2-f"] > alone[0]["rouge2-f"]
        assert found["rougeL-f"] == alone[1]["rougeL-f"] > alone[0]["rougeL-f"]
        # What has the same F as another one, but another precision.
        tied = ["one nine", "one two nine nine nine nine nine nine"]
        assert score("rouge", response, tied, **options) == score("rouge", response, tied[::-1], **options)


# The same sentence in scripts with and without spaces, which is like itself and unlike the next.
SENTENCES = {
    "Japanese": ("緑茶がとても好きです。", "昨日コーヒーを飲んだ"),
    "Chinese": ("我很喜欢绿茶", "昨天下雨了"),
    "Thai": ("ผมชอบชาเขียว", "เมื่อวานฝนตก"),
    "Khmer": ("ខ្ញុំចូលចិត្តតែ", "ភ្លៀងធ្លាក់"),
    "Korean": ("저는 녹차를 아주 좋아해요", "어제 비가 왔어요"),
    "Arabic": ("أحب الشاي الأخضر كثيرا", "هطل المطر أمس"),
    "Russian": ("я очень люблю зелёный чай", "вчера шёл дождь"),
    "Hindi": ("मुझे हरी चाय बहुत पसंद है", "कल बारिश हुई"),
    "Greek": ("μου αρέσει πολύ το τσάι", "χθες έβρεξε"),
    "German": ("ich mag schönen grünen Tee sehr", "übermäßiger Ärger"),
    "emoji": ("👍🏽 👩\u200d👩\u200d👧 ❤️ ☕", "😀 🌧️"),
}


@pytest.mark.parametrize("language", SENTENCES)
@pytest.mark.parametrize("form", ["normalised", "raw"])
def test_a_text_of_any_script_is_like_itself(language, form):
    same, other = SENTENCES[language]
    for kind, options in (("f1", {}), ("bleu", {}), ("rouge", {}), ("rouge", {"tokens": "whitespace"}), ("chrf", {})):
        main = create(kind).outputs[0]
        copied = score(kind, same, [same], text=form, **options)[main]
        assert copied == pytest.approx(1.0), kind
        assert score(kind, same, [other], text=form, **options)[main] < 0.4, kind


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
def test_a_letter_written_as_two_characters_is_the_same_letter(kind, text):
    composed, decomposed = unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)
    assert composed != decomposed
    assert score(kind, composed, [decomposed])[create(kind).outputs[0]] == 1.0


def test_ascii_text_has_rouge_score_s_tokens():
    text = "It's 3rd-rate, isn't_it? [OK] <b>x</b>"
    from rouge_score.tokenizers import DefaultTokenizer

    assert alphanumeric_words(text) == DefaultTokenizer(False).tokenize(text)
    # Curly quotes and dashes of English text change nothing, in the signature either.
    assert alphanumeric_words("it’s “fine” — yes…") == ["it", "s", "fine", "yes"]
    assert not is_beyond_ascii("it’s “fine” — yes…")


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("green tea", "Latin"), ("naïve façade", "Latin"), ("?! 12", None), ("👍", None), ("Привет, GPT", "Cyrillic"),
        ("お茶", JAPANESE), ("コーヒー", JAPANESE), ("绿茶", "Han"), ("我喜欢GPT", "Han"), ("مرحبا", "Arabic"),
        ("안녕", "Hangul"), ("ชา", "Thai"), ("चाय", "Devanagari"), ("ＡＢＣ", "Latin"), ("I say 茶", "Latin"),
    ],
)  # fmt: skip
def test_script_of(text, script):
    assert script_of(text) == script


# m matches in c chunks of a response of h and a reference of r words: P = m/h, R = m/r,
# F = PR / (0.9 P + 0.1 R), penalty = 0.5 (c/m)^3.
@pytest.mark.parametrize(
    ("response", "reference", "matches", "chunks"),
    [
        ("one two three", "one two three", 3, 1),
        ("one two nine three", "one two three", 3, 2),
        ("cats", "cat", 1, 1),
        ("auto", "car", 1, 1),
        # nltk looks synonyms up by stem, and WordNet has no "automobil" (docs/reproduction-notes.md).
        ("automobile", "car", 0, 0),
        ("green", "blue", 0, 0),
    ],
)
def test_meteor_by_hand(real_wordnet, response, reference, matches, chunks):
    expected = 0.0
    if matches:
        precision, recall = matches / len(response.split()), matches / len(reference.split())
        mean = precision * recall / (0.9 * precision + 0.1 * recall)
        expected = mean * (1 - 0.5 * (chunks / matches) ** 3)
    assert score("meteor", response, [reference])["meteor"] == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It's THE end.", "it s end"),
        ("a-b_c", "b c"),
        ("another theme", "another theme"),
        ("  spaces\tand\nlines ", "spaces and lines"),
        ("“curly” — stays", "“curly” — stays"),
        ("".join(chr(c) for c in range(33, 48)), ""),
    ],
)
def test_normalise(text, expected):
    assert normalise(text) == expected


@given(st.text())
def test_normalise_twice_is_once(text):
    # An article can only appear where punctuation stood inside a word ("t.he" has none), so once is enough.
    once = normalise(text)
    assert normalise(once) == once
    assert once == " ".join(once.split())


@given(words, words)
def test_scores_lie_between_0_and_1_and_a_copy_is_best(response, reference):
    for kind in WITHOUT_WORDNET:
        found = score(kind, response, [reference])
        copied = score(kind, reference, [reference])
        main = create(kind).outputs[0]
        assert all(-1e-12 <= value <= 1 + 1e-12 for value in found.values())
        assert found[main] <= copied[main] + 1e-9


@given(words, st.lists(words, min_size=1, max_size=4))
def test_a_further_reference_never_lowers_the_best(response, references):
    for kind in ("f1", "rouge", "chrf"):
        main = create(kind).outputs[0]
        alone = [score(kind, response, [reference])[main] for reference in references]
        assert score(kind, response, references)[main] == pytest.approx(max(alone))


@given(words, words)
def test_f1_is_the_harmonic_mean(response, reference):
    found = score("f1", response, [reference])
    common = Counter(normalise(response).split()) & Counter(normalise(reference).split())
    assert (found["f1"] == 0) == (not common)
    if common:
        p, r = found["precision"], found["recall"]
        assert found["f1"] == pytest.approx(2 * p * r / (p + r), abs=1e-12)


@given(st.permutations(range(5)))
@settings(max_examples=10)
def test_order_does_not_matter(order):
    responses = ["i like tea", "no", "the cat sat", "who knows", "tea"]
    references = ["tea is nice", "yes", "a cat sat here", "nobody knows", "tea"]
    for kind in WITHOUT_WORDNET:
        straight = create(kind).score(responses, references)
        shuffled = create(kind).score([responses[i] for i in order], [references[i] for i in order])
        for name, values in straight.items():
            np.testing.assert_array_equal(values[list(order)], shuffled[name])


def test_three_lines_of_library():
    metric = comperdial.metric("bleu", text="raw")
    scores = metric.score(["i like tea", "no"], references=["i like tea", "yes"])
    assert scores["bleu-1"].tolist() == [1.0, 0.0]


@pytest.mark.filterwarnings("error")
def test_bleu_without_smoothing_is_quiet():
    assert score("bleu", "one two", ["one six"], smoothing="method0")["bleu-4"] < 1e-9


def test_nothing_to_score_gives_nothing():
    assert {name: len(v) for name, v in create("bleu").score([], []).items()} == dict.fromkeys(
        create("bleu").outputs, 0
    )


def test_signatures_say_all():
    assert create("f1").signature() == "f1|text:normalised|unit:word|v:1"
    assert create("bleu", text="raw").signature().startswith("bleu|text:raw|smoothing:method1|epsilon:1e-12|nltk:")
    assert (
        create("bleu", smoothing="nlg-eval")
        .signature()
        .startswith("bleu|text:normalised|smoothing:nlg-eval|epsilon:none|")
    )
    distinct = {create("rouge", **o).signature() for o in ({}, {"stem": True}, {"beta": 1.2}, {"text": "raw"})}
    assert len(distinct) == 4
    assert create("chrf", beta=2) == create("chrf", beta="2.0")
    assert create("chrf", beta=1.2000001).signature() != create("chrf", beta=1.2).signature()


@pytest.mark.parametrize(
    ("kind", "options", "error", "message"),
    [
        ("blue", {}, UnknownNameError, "unknown metric 'blue'.*Did you mean 'bleu'"),
        ("base", {}, UnknownNameError, "unknown metric 'base'"),
        (
            "bleu",
            {"smooth": "method1"},
            UnknownNameError,
            "option of metric 'bleu'.*'smooth'.*Did you mean 'smoothing'",
        ),
        ("bleu", {"smoothing": "method9"}, ConfigError, "'method9'; expected one of 'method0'"),
        ("bleu", {"epsilon": "tiny"}, ConfigError, "'epsilon' of metric 'bleu' is 'tiny'; expected a number"),
        (
            "bleu",
            {"smoothing": "method2", "epsilon": 0.1},
            ConfigError,
            "'epsilon' of metric 'bleu' is 0.1; expected one",
        ),
        (
            "bleu",
            {"smoothing": "nlg-eval", "epsilon": 0.1},
            ConfigError,
            "'epsilon' of metric 'bleu' is 0.1; expected one",
        ),
        ("bleu", {"epsilon": True}, ConfigError, "is True; expected a number"),
        ("chrf", {"order": 1.5}, ConfigError, "is 1.5; expected a whole number"),
        ("rouge", {"stem": 1}, ConfigError, "is 1; expected yes or no"),
        ("meteor", {"wordnet": 3.0}, ConfigError, "is 3.0; expected a text"),
        ("f1", {"text": "Raw"}, ConfigError, "'Raw'; expected one of 'normalised', 'raw'"),
        ("chrf", {"order": 0}, ConfigError, "a number from 1"),
        ("rouge", {"stem": True, "tokens": "whitespace"}, ConfigError, "'stem'"),
        ("rouge", {"stem": True, "tokens": "nlg-eval"}, ConfigError, "'stem'"),
    ],
)
def test_wrong_names_and_options(kind, options, error, message):
    with pytest.raises(error, match=message):
        create(kind, **options)


@pytest.mark.parametrize(
    ("responses", "references", "message"),
    [
        (["x"], None, "metric 'f1' needs references"),
        (["x", "y"], ["x"], "1 references for 2 responses"),
        (["x", " "], ["x", "y"], "response 2: the response is ' '; expected a text that is not empty"),
        (["x", None], ["x", "y"], "response 2: the response is None"),
        (["x", "y"], ["x", []], "response 2: metric 'f1' needs references"),
        (["x", "y"], ["x", ["y", " "]], "response 2: one of its references is ' '"),
        (["x"], [[None]], "response 1: one of its references is None"),
        (["x"], [3], "response 1: references is 3; expected a list"),
        ("xy", ["x", "y"], "a single text; expected a list of responses"),
        (["x", "y"], "xy", "a single text"),
    ],
)
def test_wrong_input(responses, references, message):
    with pytest.raises(SchemaError, match=message):
        create("f1").score(responses, references)


def test_without_wordnet_meteor_says_so(monkeypatch):
    monkeypatch.setattr("comperdial.data.wordnet.roots", list)
    assert "WordNet is not on this machine" in (create("meteor").unavailable() or "")
    with pytest.raises(MissingResourceError, match="Run `comperdial wordnet`"):
        create("meteor").score(["a"], ["b"])


def test_meteor_wants_its_version_of_wordnet(real_wordnet):
    assert create("meteor").unavailable() is None
    assert "expected WordNet 2.1" in (create("meteor", wordnet="2.1").unavailable() or "")
