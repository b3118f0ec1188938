import json
import math
import re
import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comperdial.core.errors import ConfigError, FileError, MissingResourceError
from comperdial.metrics import _sentences, create
from comperdial.metrics._bleurt_model import load_pieces
from comperdial.metrics._unieval_inputs import DIMENSIONS, Input, ask, encode, fact_text, history_text
from comperdial.metrics.bleurt import fitting
from comperdial.models import Model
from tinyseq import BLEURT_SIZES, bleurt_weights, write_bleurt, write_sentencepiece, write_t5

pytest.importorskip("torch")
pytest.importorskip("transformers")

HISTORY = [{"speaker": "A", "text": "do you like tea ?"}, {"speaker": "B", "text": "i do . "}]
ANSWER = {
    "naturalness": "question: Is this a natural response in the dialogue? </s> response: {r}",
    "coherence": "question: Is this a coherent response given the dialogue history? </s> response: {r}"
    " </s> dialogue history: {h}",
    "engagingness": "question: Is this an engaging and informative response according to the dialogue history and fact?"
    " </s> response: {r} </s> dialogue history: {h} </s> fact: {f}",
    "groundedness": "question: Is this response consistent with knowledge in the fact? </s> response: {r}"
    " </s> fact: {f}",
    "understandability": "question: Is this an understandable response in the dialogue? </s> response: {r}",
}


@pytest.fixture(scope="module")
def t5(tmp_path_factory):
    return str(write_t5(tmp_path_factory.mktemp("t5")))


@pytest.fixture(scope="module")
def bleurt(tmp_path_factory):
    return str(write_bleurt(tmp_path_factory.mktemp("bleurt")))


@pytest.fixture(autouse=True)
def here(request, tmp_path_factory, monkeypatch):
    monkeypatch.setenv("COMPERDIAL_DEVICE", "cpu")
    if "as_its_page_has_it" not in request.node.name:
        monkeypatch.setenv("COMPERDIAL_MODELS", str(tmp_path_factory.getbasetemp() / "models"))


def unieval(model, **options):
    return create("unieval", model=model, **{"sentences": "untrained", **options})


def asked_one_by_one(model, text):
    """p(Yes) over p(Yes) and p(No) of the first generated token, by transformers' own generation."""
    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    network = AutoModelForSeq2SeqLM.from_pretrained(model).eval()
    made = network.generate(
        **tokenizer(text, return_tensors="pt"),
        max_new_tokens=1,
        do_sample=False,
        output_logits=True,
        return_dict_in_generate=True,
    )
    logits = made.logits[0][0].double()
    shares = torch.exp(logits - logits.max())
    shares /= shares.sum()
    yes, no = (float(shares[tokenizer(word)["input_ids"][0]]) for word in ("Yes", "No"))
    return yes / (yes + no)


def test_unieval_is_the_share_of_yes_for_each_question(t5):
    response, facts = "i like cats . do you ?", ["my name is tom", "i like tea ."]
    found = unieval(t5).score([response], histories=[HISTORY], facts=[facts])
    fields = {"h": "do you like tea ? \n i do . \n\n", "f": "my name is tom\ni like tea .\n"}
    expected = {
        name: asked_one_by_one(t5, ANSWER[name].format(r=response, **fields))
        for name in ("naturalness", "coherence", "groundedness", "understandability")
    }
    sentences = [
        asked_one_by_one(t5, ANSWER["engagingness"].format(r=sentence, **fields))
        for sentence in ("i like cats .", "do you ?")
    ]
    expected["engagingness"] = sum(sentences)
    expected["overall"] = sum(expected.values()) / 5
    assert list(found) == ["overall", *DIMENSIONS]
    assert {name: float(values[0]) for name, values in found.items()} == pytest.approx(expected, abs=1e-6)
    # Not all alike, or the test would compare nothing.
    assert np.std([expected[name] for name in DIMENSIONS]) > 0.01
    assert found.cut.tolist() == [0]


def test_engagingness_is_summed_and_can_pass_1(t5):
    one, many = "i like tea .", "i like tea . " * 12
    found = unieval(t5).score([one, many], histories=[HISTORY] * 2, facts=[["my name is tom"]] * 2)
    single = found["engagingness"][0]
    assert found["engagingness"][1] == pytest.approx(12 * single, rel=1e-5)
    assert found["engagingness"][1] > 1
    assert 0 < single < 1


@pytest.mark.parametrize(
    ("dimension", "expected"),
    [(name, text.format(r="hi", h="hello \n\n", f="tea\n")) for name, text in ANSWER.items()],
)
def test_inputs_as_published(dimension, expected):
    found = ask(DIMENSIONS[dimension], "hi", "hello \n\n", "tea\n")
    assert found.text == expected
    assert found.text[found.start : found.stop] == ("hello \n\n" if DIMENSIONS[dimension].history else "")


def test_history_and_facts_as_published():
    # The example of UniEval's README.
    history = [{"speaker": "A", "text": "hi , do you know ?"}, {"speaker": "B", "text": "i know a lot ."}]
    assert history_text(history) == "hi , do you know ? \n i know a lot . \n\n"
    assert history_text([]) == ""
    assert fact_text(["one ", "two"]) == "one\ntwo\n"
    assert fact_text([]) == ""


@pytest.mark.parametrize(
    ("history", "facts", "options", "missing"),
    [
        (HISTORY, ["tea"], {}, set()),
        (HISTORY, [], {}, {"engagingness", "groundedness", "overall"}),
        ([], ["tea"], {}, {"coherence", "engagingness", "overall"}),
        ([], [], {}, {"coherence", "engagingness", "groundedness", "overall"}),
        (HISTORY, [], {"without_facts": "_nofact"}, set()),
        ([], [], {"without_facts": "_nofact"}, {"coherence", "engagingness", "overall"}),
    ],
)
def test_what_unieval_cannot_ask_is_missing(t5, history, facts, options, missing):
    found = unieval(t5, **options).score(["i like cats ."], histories=[history], facts=[facts])
    assert {name for name, values in found.items() if math.isnan(values[0])} == missing


def test_nofact_is_asked_as_published(t5):
    found = unieval(t5, without_facts="_nofact").score(["i do ."], histories=[HISTORY], facts=[[]])
    expected = asked_one_by_one(t5, ANSWER["groundedness"].format(r="i do .", f="_nofact\n"))
    assert found["groundedness"][0] == pytest.approx(expected, abs=1e-6)


def tokens_of(metric, entry, limit):
    tokens, cut = encode(metric._tokenizer, [entry], limit)
    return metric._tokenizer.convert_ids_to_tokens(tokens[0]), int(cut[0])


def test_the_oldest_of_the_history_is_cut_and_nothing_else(t5):
    metric = unieval(t5)
    entry = ask(
        DIMENSIONS["engagingness"], "i like cats .", "hello there \n do you like tea ? \n\n", "my name is tom\n"
    )
    whole, cut = tokens_of(metric, entry, 1024)
    assert cut == 0
    place = whole.index("▁hello")
    for gone in range(1, 8):
        kept, cut = tokens_of(metric, entry, len(whole) - gone)
        assert (kept, cut) == ([*whole[:place], *whole[place + gone :]], gone)
    # No history is left: from here on the end goes, but for the closing token.
    assert whole[place + 7] == "</s>"
    kept, cut = tokens_of(metric, entry, len(whole) - 9)
    assert (kept, cut) == ([*whole[:place], *whole[place + 7 : -3], "</s>"], 9)


def test_an_input_without_history_is_cut_at_its_end(t5):
    metric = unieval(t5)
    entry = ask(DIMENSIONS["naturalness"], "i like cats . " * 5, "", "")
    whole, _ = tokens_of(metric, entry, 1024)
    assert tokens_of(metric, entry, 12) == ([*whole[:11], "</s>"], len(whole) - 12)


@given(st.lists(st.sampled_from(["hello", "there", "i", "like", "xyz", "\n"]), max_size=30), st.integers(8, 60))
def test_an_input_never_passes_the_limit(t5_tokenizer, words, limit):
    text = ask(DIMENSIONS["coherence"], "i do .", " ".join(words) + " \n\n", "")
    (whole,), _ = encode(t5_tokenizer, [text], 4096)
    (kept,), (cut,) = encode(t5_tokenizer, [text], limit)
    assert len(kept) == min(limit, len(whole))
    assert cut == len(whole) - len(kept)
    assert kept[-1] == whole[-1]
    assert [*encode(t5_tokenizer, [Input(text.text)], limit)[0][0][:3]] == [*whole[:3]]


@pytest.fixture(scope="module")
def t5_tokenizer(t5):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(t5)


def test_cut_is_the_most_that_an_input_of_the_response_lost(t5):
    metric = unieval(t5, max_length=48)
    long = [{"speaker": "A", "text": "do you like tea ? " * 6}]
    found = metric.score(["i do .", "i do ."], histories=[HISTORY, long], facts=[["tea"]] * 2)
    lengths = [
        len(metric._tokenizer(ANSWER[name].format(r="i do .", h=history_text(long), f="tea\n"))["input_ids"])
        for name in ANSWER
    ]
    assert found.cut.tolist() == [0, max(lengths) - 48]
    assert found.cut.dtype == np.int32
    assert not np.isnan(found["overall"]).any()


def test_equal_questions_are_run_once(t5, monkeypatch):
    metric = unieval(t5)
    seen = []
    inner = type(metric)._answers
    monkeypatch.setattr(type(metric), "_answers", lambda self, inputs: seen.append(len(inputs)) or inner(self, inputs))
    found = metric.score(["i do ."] * 3, histories=[HISTORY, HISTORY, []], facts=[["tea"], ["tea"], ["tea"]])
    assert seen == [5]
    assert found["naturalness"][0] == found["naturalness"][2]


@pytest.mark.parametrize("kind", ["unieval", "bleurt"])
def test_neither_padding_nor_order_moves_a_score(kind, t5, bleurt, monkeypatch):
    responses = ["i like tea .", "no", "do you like cats ? so do i . " * 3, "hello there", "i like tea ."]
    histories = [HISTORY, HISTORY * 4, HISTORY[:1], HISTORY, HISTORY]
    facts, references = [["my name is tom"], ["tea"] * 9, ["cats"], ["tea"], ["cats are nice"]], [
        ["i like tea"], ["do you"], ["no", "hello there so much"], ["cats are nice " * 4], ["tea"],
    ]  # fmt: skip
    order = [3, 0, 4, 2, 1]

    def run(tokens, places):
        monkeypatch.setenv("COMPERDIAL_BATCH_TOKENS", str(tokens))
        metric = unieval(t5) if kind == "unieval" else create("bleurt", model=bleurt)
        found = metric.score(*([column[i] for i in places] for column in (responses, references, histories, facts)))
        return np.array([found[name] for name in metric.outputs])

    alone = run(1, range(5))
    assert np.isfinite(alone).all()
    assert alone[0].std() > 1e-3
    np.testing.assert_allclose(run(100_000, range(5)), alone, atol=1e-5)
    np.testing.assert_allclose(run(150, order), alone[:, order], atol=1e-5)


@pytest.mark.parametrize("kind", ["unieval", "bleurt"])
def test_bf16_moves_a_score_a_little(kind, t5, bleurt):
    model = t5 if kind == "unieval" else bleurt
    options = {"sentences": "untrained"} if kind == "unieval" else {}
    arguments = (["i like tea .", "hello there"], ["do you like tea", "cats"], [HISTORY] * 2, [["tea"]] * 2)
    exact = create(kind, model=model, **options).score(*arguments)
    rough = create(kind, model=model, dtype="bf16", **options).score(*arguments)
    for name, values in exact.items():
        np.testing.assert_allclose(rough[name], values, atol=0.1)
    assert any((rough[name] != values).any() for name, values in exact.items())


def write_punkt(root, abbreviations):
    folder = root / "tokenizers/punkt_tab/english"
    folder.mkdir(parents=True)
    for name in ("collocations.tab", "sent_starters.txt", "ortho_context.tab"):
        (folder / name).write_text("")
    (folder / "abbrev_types.txt").write_text("\n".join(abbreviations))


@pytest.fixture
def nltk_root(tmp_path, monkeypatch):
    """Return the one folder that nltk looks for data in."""
    import nltk

    root = tmp_path / "nltk_data"
    root.mkdir(mode=0o755)
    monkeypatch.setattr("comperdial.data.wordnet.roots", lambda: [root])
    monkeypatch.setattr(nltk.data, "path", [str(root)])
    return root


def pack_punkt(root):
    """Make an archive of what is unpacked, as nltk's downloader leaves it in a user's home."""
    shutil.make_archive(str(root / "tokenizers/punkt_tab"), "zip", root / "tokenizers", "punkt_tab")
    shutil.rmtree(root / "tokenizers/punkt_tab")


def test_punkt_knows_abbreviations_and_is_never_replaced(t5, nltk_root):
    metric = create("unieval", model=t5)
    assert "punkt_tab, which splits sentences, is not on this machine" in (metric.unavailable() or "")
    with pytest.raises(MissingResourceError, match="sentences: untrained"):
        metric.score(["i like tea ."])
    assert unieval(t5).unavailable() is None
    write_punkt(nltk_root, ["dr"])
    assert metric.unavailable() is None
    text = "i like dr. tom. do you?"
    assert list(_sentences.splitter("punkt")(text)) == ["i like dr. tom.", "do you?"]
    assert list(_sentences.splitter("untrained")(text)) == ["i like dr.", "tom.", "do you?"]
    pack_punkt(nltk_root)
    assert metric.unavailable() is None
    assert list(_sentences.splitter("punkt")(text)) == ["i like dr. tom.", "do you?"]


def test_the_signature_names_punkts_bytes(t5, nltk_root):
    metric = create("unieval", model=t5)
    assert metric.signed("sentences") == "punkt@absent"
    assert unieval(t5).signed("sentences") == "untrained"
    write_punkt(nltk_root, ["dr"])
    label = metric.signed("sentences")
    assert re.fullmatch("punkt@[0-9a-f]{12}", label)
    assert f"|sentences:{label}|" in metric.signature()
    (nltk_root / "tokenizers/punkt_tab/english/README").write_text("nothing that nltk reads")
    assert metric.signed("sentences") == label
    pack_punkt(nltk_root)
    assert metric.signed("sentences") == label, "the same bytes, packed"
    write_punkt(nltk_root, ["dr", "mr"])
    labels = {label, metric.signed("sentences")}
    for name in ("collocations.tab", "sent_starters.txt", "ortho_context.tab"):
        (nltk_root / "tokenizers/punkt_tab/english" / name).write_text("a\tb")
        labels.add(metric.signed("sentences"))
    assert len(labels) == 5
    (nltk_root / "tokenizers/punkt_tab/english/sent_starters.txt").unlink()
    assert metric.signed("sentences") == "punkt@absent"
    assert "punkt_tab" in (metric.unavailable() or "")


def test_the_table_of_answers_is_the_files_own(t5, tmp_path):
    from safetensors.numpy import load_file, save_file

    weights = load_file(f"{t5}/model.safetensors")
    network = unieval(t5)._network
    np.testing.assert_array_equal(network.lm_head.weight.numpy(), weights["lm_head.weight"])
    assert not network.config.scale_decoder_outputs
    del weights["lm_head.weight"]
    save_file(weights, write_t5(tmp_path) / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(FileError, match=r"lack lm_head.weight; expected one, since .* tie_word_embeddings false"):
        unieval(str(tmp_path)).score(["i do ."])


def test_a_model_that_cannot_say_yes_is_refused(t5):
    metric = unieval(t5)
    real = metric._tokenizer

    class Deaf:
        unk_token_id = real.unk_token_id
        pad_token_id = real.pad_token_id

        def __call__(self, text, **options):
            return {"input_ids": [2, 1]} if isinstance(text, str) else real(text, **options)

    metric.__dict__["_tokenizer"] = Deaf()
    with pytest.raises(ConfigError, match="no tokens that tell Yes from No"):
        metric.score(["i do ."])


# BLEURT.


def numpy_bleurt(weights, ids, segments, heads):
    """The network by its formulas, one unpadded line at a time."""

    def linear(x, name):
        return x @ weights[f"{name}.weight"].T.astype(float) + weights[f"{name}.bias"]

    def norm(x, name):
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + BLEURT_SIZES["layer_norm_eps"])
        return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def gelu(x):
        return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))

    x = sum(
        weights[f"bleurt.embeddings.{name}_embeddings.weight"][at].astype(float)
        for name, at in (("word", ids), ("position", range(len(ids))), ("token_type", segments))
    )
    x = norm(x, "bleurt.embeddings.LayerNorm")
    if "bleurt.encoder.embedding_projection.weight" in weights:
        x = linear(x, "bleurt.encoder.embedding_projection")
    for layer in range(BLEURT_SIZES["num_hidden_layers"]):
        name = f"bleurt.encoder.layer.{layer}"
        query, key, value = (
            linear(x, f"{name}.attention.self.{part}").reshape(len(ids), heads, -1)
            for part in ("query", "key", "value")
        )
        logits = np.einsum("ihd,jhd->hij", query, key) / math.sqrt(query.shape[-1])
        shares = np.exp(logits - logits.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        mixed = np.einsum("hij,jhd->ihd", shares, value).reshape(len(ids), -1)
        x = norm(x + linear(mixed, f"{name}.attention.output.dense"), f"{name}.attention.output.LayerNorm")
        inner = gelu(linear(x, f"{name}.intermediate.dense"))
        x = norm(x + linear(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")
    return float(linear(np.tanh(linear(x[0], "bleurt.pooler.dense")), "classifier")[0])


def expected_bleurt(folder, weights, reference, response):
    vocabulary = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    first, second = ([vocabulary.get(word, 1) for word in text.split()] for text in (reference, response))
    ids = [2, *first, 3, *second, 3]
    segments = [0] * (len(first) + 2) + [1] * (len(second) + 1)
    return numpy_bleurt(weights, ids, segments, BLEURT_SIZES["num_attention_heads"])


@pytest.mark.parametrize("width", [12, None])
def test_bleurt_by_its_formulas(tmp_path, width):
    weights = bleurt_weights(seed=3, embedding_size=width)
    folder = write_bleurt(tmp_path, weights, embedding_size=width)
    pairs = [("i like tea .", "do you like tea ?"), ("cats are nice", "cats are nice"), ("what", "i do"), ("so", "so")]
    references, responses = zip(*pairs, strict=True)
    found = create("bleurt", model=str(folder), text="raw").score(list(responses), list(references))
    expected = [expected_bleurt(folder, weights, *pair) for pair in pairs]
    np.testing.assert_allclose(found["bleurt"], expected, atol=2e-5)
    assert np.std(expected) > 0.05
    assert found.cut.tolist() == [0, 0, 0, 0]


def test_bleurt_normalises_and_takes_the_best_reference(bleurt):
    from pathlib import Path

    folder, weights = Path(bleurt), bleurt_weights()
    texts = ["i like tea", "cats nice", "hello there"]
    each = [expected_bleurt(folder, weights, text, "do you like tea") for text in texts]
    raw = ["I like the tea!", "a cats, nice", "hello there"]
    found = create("bleurt", model=bleurt).score(["Do you like TEA?"] * 2, [raw, raw[:1]])
    assert found["bleurt"] == pytest.approx([max(each), each[0]], abs=2e-5)
    # Nothing is left of some responses, and they are rated all the same.
    empty = create("bleurt", model=bleurt).score(["!!!"], ["hello there"])
    assert empty["bleurt"][0] == pytest.approx(expected_bleurt(folder, weights, "hello there", ""), abs=2e-5)


@pytest.mark.parametrize(
    ("reference", "response", "room", "expected"),
    [
        (3, 3, 6, (3, 3)),
        (3, 3, 5, (3, 2)),
        (3, 3, 4, (2, 2)),
        (9, 2, 8, (6, 2)),
        (2, 9, 8, (2, 6)),
        (9, 2, 3, (2, 1)),
        (0, 9, 4, (0, 4)),
    ],
)
def test_the_longer_side_is_cut(reference, response, room, expected):
    assert fitting(reference, response, room) == expected


@given(st.integers(0, 600), st.integers(0, 600), st.integers(1, 509))
def test_cutting_a_pair_fills_the_room(reference, response, room):
    first, second = fitting(reference, response, room)
    assert first + second == min(room, reference + response)
    assert first <= reference and second <= response
    if first + second < reference + response:
        # Only a side that was longer gives way, until both are the same (or one token apart).
        assert abs(first - second) <= 1 or (first, second) in (
            (reference, room - reference),
            (room - response, response),
        )


def test_bleurt_counts_what_it_cuts(tmp_path):
    weights = bleurt_weights()
    folder = write_bleurt(tmp_path, weights)
    metric = create("bleurt", model=str(folder), text="raw", max_length=9)
    long = "i like tea so much my name is tom"
    found = metric.score([long, "cats", "i like"], [["tea"], [long], ["do you", long]])
    kept = [("tea", "i like tea so much"), ("i like tea so much", "cats")]
    assert found["bleurt"][:2] == pytest.approx([expected_bleurt(folder, weights, *pair) for pair in kept], abs=2e-5)
    both = [expected_bleurt(folder, weights, text, "i like") for text in ("do you", "i like tea so")]
    assert found["bleurt"][2] == pytest.approx(max(both), abs=2e-5)
    assert found.cut.tolist() == [4, 4, (0, 5)[int(np.argmax(both))]]
    assert found.cut.dtype == np.int32


def test_equal_pairs_are_run_once(bleurt, monkeypatch):
    metric = create("bleurt", model=bleurt)
    seen = []
    inner = type(metric)._pair_scores
    monkeypatch.setattr(type(metric), "_pair_scores", lambda self, pairs: seen.append(len(pairs)) or inner(self, pairs))
    found = metric.score(["tea", "Tea!", "tea"], [["cats"], ["cats"], ["cats", "i do"]])
    assert seen == [2]
    assert found["bleurt"][0] == found["bleurt"][1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w.pop("classifier.bias"), "lacks classifier.bias"),
        (
            lambda w: w.pop("bleurt.encoder.embedding_projection.weight"),
            "lacks bleurt.encoder.embedding_projection.weight",
        ),
        (
            lambda w: [w.pop(name) for name in list(w) if ".layer.1." in name],
            "lacks bleurt.encoder.layer.1.attention.output.LayerNorm.bias, .* and 8 more",
        ),
        (lambda w: w.update({"bleurt.extra.weight": np.ones(1, np.float32)}), "has unexpected bleurt.extra.weight"),
        (lambda w: w.update({"classifier.weight": np.ones((3, 16), np.float32)}), "in another shape classifier.weight"),
    ],
)
def test_weights_that_do_not_fit_are_refused(tmp_path, change, message):
    weights = bleurt_weights()
    change(weights)
    metric = create("bleurt", model=str(write_bleurt(tmp_path, weights)))
    with pytest.raises(FileError, match=message):
        metric.score(["tea"], ["tea"])


def test_the_numbers_of_positions_are_no_weights(tmp_path, bleurt):
    # transformers 4 saved them; they are 0, 1, 2, ….
    weights = bleurt_weights() | {"bleurt.embeddings.position_ids": np.arange(512)[None, :]}
    old = create("bleurt", model=str(write_bleurt(tmp_path, weights)))
    new = create("bleurt", model=bleurt)
    assert old.score(["tea"], ["i do"])["bleurt"] == pytest.approx(new.score(["tea"], ["i do"])["bleurt"], abs=1e-5)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda f: (f / "config.json").write_text('{"model_type": "bert"}'), ConfigError, "model_type is 'bert'"),
        (lambda f: (f / "config.json").write_text('{"model_type": "bleurt"}'), ConfigError, "lacks vocab_size, hidden"),
        (lambda f: (f / "model.safetensors").unlink(), MissingResourceError, "has no weights"),
        (lambda f: (f / "tokenizer.json").unlink(), MissingResourceError, r"has no tokenizer: none of tokenizer\.json"),
        (
            lambda f: (f / "tokenizer.json").rename(f / "vocab.txt"),
            MissingResourceError,
            "no tokenizer; expected spm.model",
        ),
        (
            lambda f: (f / "tokenizer.json").write_text((f / "tokenizer.json").read_text().replace("[CLS]", "[cls]")),
            FileError,
            r"no token \[CLS\]",
        ),
    ],
)
def test_a_folder_that_is_no_bleurt_is_refused(tmp_path, change, error, message):
    folder = write_bleurt(tmp_path)
    change(folder)
    with pytest.raises(error, match=message):
        create("bleurt", model=str(folder)).score(["tea"], ["tea"])


def test_without_sentencepiece_bleurt_says_so(tmp_path, monkeypatch):
    folder = write_bleurt(tmp_path)
    write_sentencepiece(folder / "spm.model")
    monkeypatch.setattr("comperdial.metrics._bleurt_model.find_spec", lambda name: None)
    metric = create("bleurt", model=str(folder))
    assert "not installed: sentencepiece" in (metric.unavailable() or "")
    # Not the tokenizer.json beside it: what splits the text must not depend on what is installed.
    with pytest.raises(MissingResourceError, match="not installed: sentencepiece"):
        metric.score(["tea"], ["tea"])


def test_sentencepiece_splits_the_text(tmp_path):
    pytest.importorskip("sentencepiece", reason="sentencepiece, which reads spm.model, is not installed")
    folder = write_bleurt(tmp_path)
    names = write_sentencepiece(folder / "spm.model")
    pieces = load_pieces(Model("tiny", folder, "0" * 12))
    assert (pieces.start, pieces.separator) == (names.index("[CLS]"), names.index("[SEP]"))
    assert pieces.encode("i like  tea") == [names.index(piece) for piece in ("▁i", "▁like", "▁tea")]
    assert pieces.encode("") == []
    assert np.isfinite(create("bleurt", model=str(folder)).score(["tea"], ["tea"])["bleurt"]).all()


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("unieval", {"sentences": "spacy"}, "'spacy'; expected one of 'punkt', 'untrained'"),
        ("unieval", {"without_facts": "zero"}, "'zero'; expected one of 'missing', '_nofact'"),
        ("unieval", {"max_length": 4}, "'max_length' of metric 'unieval' is 4; expected a number from 8"),
        ("bleurt", {"text": "Raw"}, "'Raw'; expected one of 'normalised', 'raw'"),
        ("bleurt", {"max_length": 513}, "'max_length' of metric 'bleurt' is 513; expected a number from 4 to 512"),
        ("bleurt", {"dtype": "fp16"}, "'fp16'; expected one of 'fp32', 'bf16'"),
    ],
)
def test_wrong_options(kind, options, message):
    with pytest.raises(ConfigError, match=message):
        create(kind, **options)


def test_bleurt_is_not_made_longer_than_its_positions(tmp_path):
    folder = str(write_bleurt(tmp_path, max_position_embeddings=64))
    assert create("bleurt", model=folder, max_length=64).score(["tea"], ["tea"]).cut.tolist() == [0]
    with pytest.raises(ConfigError, match=r"'max_length' of metric 'bleurt' is 65; expected at most 64"):
        create("bleurt", model=folder, max_length=65).score(["tea"], ["tea"])


def test_signatures_say_all(t5, bleurt):
    signature = unieval(t5).signature()
    assert signature.startswith("unieval|model:")
    assert "|dtype:fp32|sentences:untrained|without_facts:missing|max_length:1024|torch:" in signature
    assert "|nltk:" in signature
    assert "|dtype:fp32|text:normalised|max_length:512|torch:" in create("bleurt", model=bleurt).signature()


@pytest.mark.parametrize("kind", ["unieval", "bleurt"])
def test_an_absent_model_is_named_and_nothing_scores_nothing(kind, tmp_path):
    options = {"sentences": "untrained"} if kind == "unieval" else {}
    assert create(kind).model in (create(kind).unavailable() or "")
    metric = create(kind, model=str(tmp_path / "absent"), **options)
    assert "absent' is not present" in (metric.unavailable() or "")
    with pytest.raises(MissingResourceError, match="absent' is not present"):
        metric.score(["a"], ["b"])
    assert {name: len(values) for name, values in metric.score([], []).items()} == dict.fromkeys(metric.outputs, 0)


# What the models' own pages print. For whoever has the weights: nothing smaller can show that they are the right ones.


@pytest.mark.parametrize(
    ("reference", "response", "expected"),
    [
        ("a bird chirps by the window", "a bird chirps by the window", 0.99905),
        ("this is a random sentence", "this looks like a random sentence", 0.79302),
    ],
)
def test_bleurt_20_as_its_page_has_it(reference, response, expected):
    metric = create("bleurt", text="raw")
    if problem := metric.unavailable():
        pytest.skip(problem)
    assert metric.score([response], [reference])["bleurt"][0] == pytest.approx(expected, abs=1e-3)


def test_unieval_dialog_as_its_page_has_it():
    metric = create("unieval", sentences="untrained")
    if problem := metric.unavailable():
        pytest.skip(problem)
    history = [
        {"speaker": "A", "text": "hi , do you know much about the internet ?"},
        {"speaker": "B", "text": "i know a lot about different sites and some website design , how about you ?"},
    ]
    fact = "the 3 horizontal line menu on apps and websites is called a hamburger button ."
    response = (
        "i do too . did you know the 3 horizontal line menu on apps and websites is called the hamburger button ?"
    )
    found = metric.score([response], histories=[history], facts=[[fact]])
    expected = {
        "overall": 1.123923,
        "naturalness": 0.950218,
        "coherence": 0.973135,
        "engagingness": 1.750486,
        "groundedness": 0.999566,
        "understandability": 0.946209,
    }
    assert {name: float(values[0]) for name, values in found.items()} == pytest.approx(expected, abs=1e-3)
