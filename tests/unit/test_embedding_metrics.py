"""Metrics of embeddings: against the package bert-score, against plain Python, and independent of batches and order."""

import json
import math
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

import comperdial
import tinymodels
from comperdial.encoding import encode_tables, encoder_of
from comperdial.errors import ConfigError
from comperdial.models import runtime
from comperdial.models.encoder import STORE_VARIABLE, Encoder, Vectors

MINILM = "all-MiniLM-L6-v2"
RESPONSES = [
    "i like tea",
    "do you like green tea ?",
    "Yes , tea .",
    "it's a good book, isn't it?",
    "the sea ! " * 12,
    "no",
]
REFERENCES = ["i like green tea", "what book did you read", "tea", "I read a book about the sea.", "the sea", "yes"]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    made = {"bert": tinymodels.bert(folder / "bert"), "roberta": tinymodels.roberta(folder / "roberta")}
    for path in map(Path, made.values()):
        # The package cuts there, and knows no other place.
        config = json.loads((path / "tokenizer_config.json").read_text())
        (path / "tokenizer_config.json").write_text(json.dumps(config | {"model_max_length": 64}))
    # The same model with a tokeniser that does what the package asks of it, as it did before transformers 5.
    made["prefixing"] = str(shutil.copytree(made["roberta"], folder / "prefixing"))
    prefixing = json.dumps(config | {"model_max_length": 64, "add_prefix_space": True})
    (folder / "prefixing" / "tokenizer_config.json").write_text(prefixing)
    return made


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    monkeypatch.setenv(STORE_VARIABLE, str(tmp_path / "embeddings"))
    return tmp_path / "embeddings"


def package_scores(model, layer, pairs):
    """Score with the package bert-score, one pair at a time: given several at once, padding moves its scores."""
    from bert_score import BERTScorer

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scorer = BERTScorer(model_type=str(model), num_layers=layer, device="cpu")
        rows = [scorer.score([hypothesis], [reference]) for hypothesis, reference in pairs]
    return np.array([[float(part[0]) for part in row] for row in rows])


@pytest.mark.parametrize(
    ("name", "same_as", "layer", "prefix"),
    [
        ("bert", "bert", 2, True),
        ("bert", "bert", 1, True),
        ("roberta", "roberta", 2, False),
        ("roberta", "roberta", 1, False),
        ("roberta", "prefixing", 1, True),
        ("roberta", "prefixing", 2, True),
    ],
)
def test_bertscore_equals_the_package_one_pair_at_a_time(models, name, same_as, layer, prefix):
    options = {"text": "raw", "max_length": 64, "prefix_space": prefix}
    found = comperdial.metric("bertscore", model=models[name], layer=layer, **options).score(RESPONSES, REFERENCES)
    expected = package_scores(models[same_as], layer, zip(RESPONSES, REFERENCES, strict=True))
    for column, output in enumerate(("precision", "recall", "f1")):
        np.testing.assert_allclose(found[output], expected[:, column], atol=1e-5)


def test_bertscore_on_minilm_equals_the_package():
    from comperdial.models import find

    found = comperdial.metric("bertscore", model=MINILM, layer=6, text="raw").score(RESPONSES, REFERENCES)
    expected = package_scores(find(MINILM).path, 6, zip(RESPONSES, REFERENCES, strict=True))
    np.testing.assert_allclose(found["f1"], expected[:, 2], atol=1e-5)


def test_bertscore_token_by_token(models):
    """The definition, in plain Python from the vectors of two texts."""
    metric = comperdial.metric("bertscore", model=models["bert"], layer=2, text="raw", max_length=64)
    vectors = metric.encoder.vectors()
    hypothesis, reference = vectors["i like tea"], vectors["do you like tea ?"]

    def cos(a, b):
        dot = sum(x * y for x, y in zip(a.tolist(), b.tolist(), strict=True))
        return dot / math.sqrt(sum(x * x for x in a.tolist()) * sum(y * y for y in b.tolist()))

    def mean_best(one, other):
        best = [max(cos(v, w) for w in other.vectors) for v, s in zip(one.vectors, one.special, strict=True) if not s]
        return sum(best) / len(best)

    precision, recall = mean_best(hypothesis, reference), mean_best(reference, hypothesis)
    found = metric.score(["i like tea"], ["do you like tea ?"])
    assert found["precision"][0] == pytest.approx(precision, abs=1e-6)
    assert found["recall"][0] == pytest.approx(recall, abs=1e-6)
    assert found["f1"][0] == pytest.approx(2 * precision * recall / (precision + recall), abs=1e-6)


def test_embedding_cosines_in_plain_python(models):
    metric = comperdial.metric("embedding", model=models["bert"], text="raw", max_length=64)
    one, other = (metric.encoder.vectors()[text].vectors[1:-1].astype(float) for text in ("i like tea", "yes , tea"))

    def cos(a, b):
        return float(a @ b / np.sqrt((a @ a) * (b @ b)))

    def far(vectors):
        return np.array([max(column, key=abs) for column in vectors.T])

    greedy = [np.mean([max(cos(v, w) for w in y) for v in x]) for x, y in ((one, other), (other, one))]
    found = metric.score(["i like tea"], ["yes , tea"])
    assert found["average"][0] == pytest.approx(cos(one.mean(axis=0), other.mean(axis=0)), abs=1e-6)
    assert found["extrema"][0] == pytest.approx(cos(far(one), far(other)), abs=1e-6)
    assert found["greedy"][0] == pytest.approx(np.mean(greedy), abs=1e-6)


def test_sentence_cosine_takes_the_pooled_output_as_transformers_gives_it(models):
    import torch
    import transformers

    folder = models["bert"]
    network = transformers.AutoModel.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        a, b = (network(**tokenizer(t, return_tensors="pt")) for t in ("i like tea", "do you read ?"))
    expected = {
        "pooler": torch.cosine_similarity(a.pooler_output, b.pooler_output),
        "cls": torch.cosine_similarity(a.last_hidden_state[:, 0], b.last_hidden_state[:, 0]),
        "mean": torch.cosine_similarity(a.last_hidden_state.mean(dim=1), b.last_hidden_state.mean(dim=1)),
    }
    for pooling, value in expected.items():
        metric = comperdial.metric("sentence_cosine", model=folder, pooling=pooling, max_length=64)
        assert metric.score(["i like tea"], ["do you read ?"])["cosine"][0] == pytest.approx(float(value), abs=1e-5)


def test_grounded_cosine_by_hand(models):
    metric = comperdial.metric("grounded_cosine", model=models["bert"], utterances=2, max_length=64)
    vectors = metric.encoder.vectors()

    def cos(a, b):
        a, b = (vectors[text].vectors.mean(axis=0) for text in (a, b))
        return float(a @ b / np.sqrt((a @ a) * (b @ b)))

    history = [
        {"speaker": s, "text": t} for s, t in zip("ABA", ["hello", "i read a book ", " what book ?"], strict=True)
    ]
    found = metric.score(["the sea"] * 2, histories=[history] * 2, facts=[["i like tea", "i read"], []])
    context, fact = cos("the sea", "i read a book what book ?"), cos("the sea", "i like tea i read")
    assert found["context"] == pytest.approx([context, context], abs=1e-6)
    assert found["fact"][0] == pytest.approx(fact, abs=1e-6)
    assert found["sum"][0] == pytest.approx(context + fact, abs=1e-6)
    # Without facts there is no sum: half of it is not the whole.
    assert np.isnan([found["fact"][1], found["sum"][1]]).all()


METRICS = [
    ("bertscore", {"layer": 2, "text": "raw"}),
    ("embedding", {"text": "raw"}),
    ("sentence_cosine", {"pooling": "pooler"}),
    ("grounded_cosine", {}),
]


@pytest.mark.parametrize(("kind", "options"), METRICS)
def test_neither_batches_nor_order_move_a_score(models, kind, options, tmp_path, monkeypatch):
    metric = comperdial.metric(kind, model=models["bert"], max_length=64, **options)
    histories = [[{"speaker": "A", "text": text}] for text in REFERENCES]
    found = {}
    for tokens, order in (("1", 1), ("4096", 1), ("40", -1)):
        monkeypatch.setenv(runtime.TOKENS_VARIABLE, tokens)
        monkeypatch.setenv(STORE_VARIABLE, str(tmp_path / f"{tokens}{order}"))
        lists = (values[::order] for values in (RESPONSES, REFERENCES, histories, [[r] for r in REFERENCES]))
        scores = metric.score(*lists)
        found[tokens] = np.array([scores[output][::order] for output in metric.outputs])
    np.testing.assert_allclose(found["1"], found["4096"], atol=1e-5)
    np.testing.assert_allclose(found["1"], found["40"], atol=1e-5)


def test_each_text_is_encoded_once_for_all_metrics(models, monkeypatch):
    encoded = []
    forward = Vectors._encode

    def counting(self, texts):
        encoded.extend(texts)
        return forward(self, texts)

    monkeypatch.setattr(Vectors, "_encode", counting)
    for kind, options in (METRICS[0], METRICS[1], METRICS[3]):
        metric = comperdial.metric(kind, model=models["bert"], max_length=64, **options)
        metric.score(RESPONSES * 2, REFERENCES * 2, histories=[[{"speaker": "A", "text": "tea"}]] * 12)
    assert sorted(encoded) == sorted({text.strip() for text in RESPONSES} | set(REFERENCES))


def test_another_process_reads_what_was_encoded(models, store, monkeypatch):
    metric = comperdial.metric("bertscore", model=models["bert"], layer=2, text="raw", max_length=64)
    first = metric.score(RESPONSES, REFERENCES)
    vectors = Vectors(metric.encoder, store)
    monkeypatch.setattr(Vectors, "_encode", None)
    assert vectors.add([*RESPONSES[:4], *REFERENCES]) == 0
    again = metric.compare(metric_batch(RESPONSES[:4], REFERENCES[:4]), vectors)
    np.testing.assert_array_equal(again["f1"], first["f1"][:4])


def metric_batch(responses, references):
    from comperdial.metrics import Batch

    nothing = [[] for _ in responses]
    return Batch(responses, [[r] for r in references], nothing, nothing)


def test_a_damaged_vector_is_made_anew(models, store):
    metric = comperdial.metric("bertscore", model=models["bert"], layer=2, text="raw", max_length=64)
    first = metric.score(["i like tea"], ["tea"])
    for path in store.rglob("*.vectors"):
        path.write_bytes(bytes(byte ^ 1 for byte in path.read_bytes()))
    vectors = Vectors(metric.encoder, store)
    again = metric.compare(metric_batch(["i like tea"], ["tea"]), vectors)
    np.testing.assert_allclose(again["f1"], first["f1"], atol=1e-6)


def test_what_does_not_fit_is_cut_and_counted(models):
    metric = comperdial.metric("bertscore", model=models["bert"], layer=2, text="raw", max_length=8)
    scores = metric.score(["tea tea tea", "tea " * 10], ["tea", "read " * 7])
    # Ten words and seven, of which six fit beside [CLS] and [SEP].
    assert scores.cut.tolist() == [0, 4 + 1]
    whole = comperdial.metric("bertscore", model=models["bert"], layer=2, text="raw", max_length=8)
    assert whole.score(["tea " * 6], ["read " * 6])["f1"][0] == pytest.approx(scores["f1"][1])


def test_a_text_of_which_nothing_is_left_has_no_score(models):
    for kind in ("bertscore", "embedding"):
        options = {"layer": 2} if kind == "bertscore" else {}
        scores = comperdial.metric(kind, model=models["bert"], max_length=64, **options).score(
            ["...", "tea"], ["tea", "tea"]
        )
        for output in scores.values():
            assert np.isnan(output[0])
            assert output[1] == pytest.approx(1, abs=1e-6)


def test_the_best_reference_counts(models):
    metric = comperdial.metric("bertscore", model=models["bert"], layer=2, max_length=64)
    one, other = metric.score(["green tea"] * 2, ["a book", "tea"])["f1"]
    assert metric.score(["green tea"], [["a book", "...", "tea"]])["f1"][0] == max(one, other)


def test_rescaling_is_the_packages(monkeypatch):
    metric = comperdial.metric("bertscore", rescale=True)
    # roberta-large's baseline at layer 17, as the package's file has it.
    assert metric._baseline() == pytest.approx([0.83122575, 0.8315757, 0.83122575], abs=6e-4)
    with pytest.raises(ConfigError, match="no baseline of model 'all-MiniLM-L6-v2'"):
        comperdial.metric("bertscore", model=MINILM, layer=6, rescale=True)


@pytest.mark.parametrize(
    ("options", "problem"),
    [({"layer": 3}, "layer 3"), ({"layer": -4}, "layer -4"), ({"layer": 2, "max_length": 65}, "max_length 65")],
)
def test_what_the_model_does_not_have_is_said(models, options, problem):
    with pytest.raises(ConfigError, match=problem):
        comperdial.metric("bertscore", model=models["bert"], **{"max_length": 64} | options).score(["tea"], ["tea"])


def test_encoders_are_told_apart(models):
    folder = models["bert"]
    base = Encoder(folder, 2, "fp32", 64)
    assert base.namespace() == Encoder(folder, -1, "fp32", 64).namespace()
    others = [Encoder(folder, 1, "fp32", 64), Encoder(folder, 2, "bf16", 64), Encoder(folder, 2, "fp32", 32)]
    others += [Encoder(folder, 2, "fp32", 64, pooler=True), Encoder(models["roberta"], 2, "fp32", 64)]
    assert len({encoder.namespace() for encoder in [base, *others]}) == 6


def test_bf16_is_near(models):
    scores = {
        dtype: comperdial.metric("bertscore", model=MINILM, layer=6, dtype=dtype).score(RESPONSES, REFERENCES)["f1"]
        for dtype in ("fp32", "bf16")
    }
    assert np.abs(scores["fp32"] - scores["bf16"]).max() < 0.01
    assert (scores["fp32"] != scores["bf16"]).any()


def test_metrics_of_several_encoders_are_not_encoded_together(models, tmp_path):
    one = comperdial.metric("bertscore", model=models["bert"], layer=1, max_length=64)
    other = comperdial.metric("bertscore", model=models["bert"], layer=2, max_length=64)
    for metrics in ([one, other], [comperdial.metric("bleu")]):
        with pytest.raises(ConfigError, match="one and the same encoder"):
            encode_tables(metrics, tmp_path)
    assert encoder_of(comperdial.metric("bleu")) is None
