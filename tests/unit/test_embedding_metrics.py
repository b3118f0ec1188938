"""Metrics of embeddings: against the package bert-score, against plain Python, and independent of batches and order."""

import csv
import json
import math
import shutil
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import comperdial
import tinymodels
from comperdial.core import versions
from comperdial.core.errors import ConfigError, FileError
from comperdial.metrics._embedding import cosine, unit
from comperdial.metrics.bertscore import BertScore
from comperdial.models import runtime
from comperdial.models.encoder import STORE_VARIABLE, Encoder, Vectors
from comperdial.models.vectors import Encoded

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
        texts = list(texts)
        encoded.extend((self.encoder.keep, text) for text in texts)
        return forward(self, texts)

    monkeypatch.setattr(Vectors, "_encode", counting)
    for kind, options in (METRICS[0], METRICS[1], METRICS[3]):
        metric = comperdial.metric(kind, model=models["bert"], max_length=64, **options)
        metric.score(RESPONSES * 2, REFERENCES * 2, histories=[[{"speaker": "A", "text": "tea"}]] * 12)
    # Contexts are kept from their other end, and so are another encoder's.
    starts = {("start", text.strip()) for text in RESPONSES + REFERENCES}
    assert sorted(encoded) == sorted(starts | {("end", "tea")})


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


def test_what_does_not_fit_is_cut_and_counted(models):
    metric = comperdial.metric("bertscore", model=models["bert"], layer=2, text="raw", max_length=8)
    scores = metric.score(["tea tea tea", "tea " * 10], ["tea", "read " * 7])
    # Ten words and seven, of which six fit beside [CLS] and [SEP].
    assert scores.cut.tolist() == [0, 4 + 1]
    whole = comperdial.metric("bertscore", model=models["bert"], layer=2, text="raw", max_length=8)
    assert whole.score(["tea " * 6], ["read " * 6])["f1"][0] == pytest.approx(scores["f1"][1])


@pytest.mark.parametrize(
    ("response", "context", "facts", "cut"),
    [
        (6, [6], [6], 0),
        (10, [2], [2], 4),
        (2, [4, 5], [2], 3),
        (2, [2], [3, 5], 2),
        (10, [4, 5], [], 4 + 3),
        (10, [4, 5], [3, 5], 4 + 3 + 2),
    ],
)
def test_grounded_cosine_counts_what_each_text_loses(models, response, context, facts, cut):
    # Of each text, six words fit beside [CLS] and [SEP].
    metric = comperdial.metric("grounded_cosine", model=models["bert"], max_length=8)
    history = [{"speaker": "A", "text": "read " * words} for words in context]
    scores = metric.score(["tea " * response], histories=[history], facts=[["book " * words for words in facts]])
    assert scores.cut.tolist() == [cut]
    assert scores.cut.dtype == np.int32


def test_a_long_context_keeps_its_newest_words_and_a_fact_its_first():
    # Six words fit beside [CLS] and [SEP]; each of these is one token.
    metric = comperdial.metric("grounded_cosine", model=MINILM, max_length=8)

    def run(context, fact):
        history = [{"speaker": "A", "text": text} for text in context]
        scores = metric.score(["i like tea"], histories=[history], facts=[[fact]])
        return float(scores["context"][0]), float(scores["fact"][0]), int(scores.cut[0])

    context, fact, cut = run(["like a book about", "green tea"], "i read a book about tea")
    assert cut == 0
    whole = (pytest.approx(context, abs=1e-5), pytest.approx(fact, abs=1e-5), 4 + 1)
    # Other oldest words, and other last words of the fact: the same is left.
    assert run(["no no no", "you like a book about", "green tea"], "i read a book about tea today") == whole
    assert run(["the sea is", "you like a book about", "green tea"], "i read a book about tea again") == whole
    # Another last utterance, and another first word of the fact, are others.
    newest = run(["no no no", "you like a book about", "green sea"], "we read a book about tea today")
    assert abs(newest[0] - context) > 1e-3
    assert abs(newest[1] - fact) > 1e-3


@pytest.mark.parametrize(
    ("response", "references", "best", "cut"),
    [
        # Only the one that loses was cut.
        ("green tea", ["book " * 9, "green tea"], 1, 0),
        ("green tea", ["green tea", "book " * 9], 0, 0),
        # Only the one that wins was cut.
        ("tea tea tea tea tea tea", ["a book", "tea " * 10], 1, 4),
        ("tea tea tea tea tea tea", ["tea " * 10, "a book"], 0, 4),
        # Both were, and the response too.
        ("tea " * 8, ["book " * 9, "tea " * 10], 1, 2 + 4),
    ],
)
@pytest.mark.parametrize("kind", ["bertscore", "sentence_cosine", "embedding"])
def test_cut_is_of_the_reference_that_counts(models, kind, response, references, best, cut):
    options = {"layer": 2} if kind == "bertscore" else {}
    metric = comperdial.metric(kind, model=models["bert"], text="raw", max_length=8, **options)
    alone = metric.score([response] * 2, references)[metric.outputs[0]]
    assert int(np.argmax(alone)) == best
    scores = metric.score([response], [references])
    assert scores[metric.outputs[0]][0] == pytest.approx(alone[best], abs=1e-5)
    assert scores.cut.tolist() == [cut]


def test_a_model_without_a_pooler_has_no_pooled_output(models, tmp_path):
    from safetensors.numpy import load_file, save_file

    folder = Path(shutil.copytree(models["bert"], tmp_path / "headless"))
    weights = load_file(folder / "model.safetensors")
    kept = {name: value for name, value in weights.items() if "pooler" not in name}
    assert len(kept) == len(weights) - 2
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})

    def run(model, kind, **options):
        metric = comperdial.metric(kind, model=str(model), max_length=64, **options)
        return metric.score(["i like tea"], ["do you read ?"])[metric.outputs[0]][0]

    with pytest.raises(FileError, match=r"the weights lack 2 parts, the first: pooler\.dense\.bias"):
        run(folder, "sentence_cosine", pooling="pooler")
    for kind, options in (("sentence_cosine", {"pooling": "mean"}), ("bertscore", {"layer": 2})):
        assert run(folder, kind, **options) == pytest.approx(run(models["bert"], kind, **options), abs=1e-6)


def test_other_weights_in_the_same_folder_are_another_model(tmp_path, monkeypatch):
    here = tmp_path / "mine"

    def run(folder):
        metrics = [
            comperdial.metric(kind, model=str(folder), max_length=64, **options)
            for kind, options in (*METRICS, ("bert_nsp", {}))
        ]
        histories = [[{"speaker": "A", "text": "what book ?"}]]
        scores = [m.score(["i like tea"], ["do you read ?"], histories, [["the sea"]]) for m in metrics]
        values = [float(found[name][0]) for m, found in zip(metrics, scores, strict=True) for name in m.outputs]
        return values, [metric.signature() for metric in metrics]

    tinymodels.bert(here, seed=1)
    first, signatures = run(here)
    tinymodels.bert(here, seed=2)
    second, others = run(here)
    assert not set(signatures) & set(others)
    assert np.abs(np.subtract(first, second)).min() > 1e-4
    # And they are those that it gets where nothing else was ever scored.
    monkeypatch.setenv(STORE_VARIABLE, str(tmp_path / "fresh"))
    shutil.copytree(here, tmp_path / "elsewhere/mine")
    expected, labels = run(tmp_path / "elsewhere/mine")
    assert second == pytest.approx(expected, abs=1e-6)
    assert others == labels
    # The first model is found again, too.
    monkeypatch.undo()
    tinymodels.bert(here, seed=1)
    third, again = run(here)
    assert (third, again) == (pytest.approx(first, abs=1e-6), signatures)


def test_a_cosine_does_not_pass_1():
    rows = np.random.default_rng(0).normal(size=(200, 16)).astype(np.float32)
    # Rounding takes some of them beyond, or the test would say nothing.
    assert max(float(np.dot(unit(row), unit(row))) for row in rows) > 1
    similarity = [cosine(row, other) for row in rows for other in (row, -row)]
    assert (max(similarity), min(similarity)) == (1, -1)
    for row in rows:
        same, other = (Encoded(np.stack([part] * 3), np.zeros(3, dtype=bool), 0) for part in (row, -row))
        assert max(BertScore().pair(same, same)) <= 1
        assert min(BertScore().pair(same, other)[1:]) >= -1


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


def package_baseline(layer):
    """Return the baseline of roberta-large at a layer, by the letters that the package's file has."""
    path = Path(find_spec("bert_score").origin).parent / "rescale_baseline/en/roberta-large.tsv"
    with path.open(newline="", encoding="utf-8") as file:
        (row,) = (row for row in csv.DictReader(file) if row["LAYER"] == str(layer))
    return {letter: float(row[letter]) for letter in "PRF"}


def test_a_rescaled_score_is_a_straight_line_of_the_score(models, monkeypatch):
    # Of layer 0, since there the three differ most.
    base = package_baseline(0)
    assert len({round(value, 5) for value in base.values()}) == 3
    monkeypatch.setattr(BertScore, "_baseline", lambda self: np.array([base["F"], base["P"], base["R"]]))
    options = {"model": models["bert"], "layer": 2, "text": "raw", "max_length": 8}
    plain = comperdial.metric("bertscore", **options).score(RESPONSES, REFERENCES)
    found = comperdial.metric("bertscore", rescale=True, **options).score(RESPONSES, REFERENCES)
    for output, letter in (("precision", "P"), ("recall", "R"), ("f1", "F")):
        expected = (plain[output] - base[letter]) / (1 - base[letter])
        np.testing.assert_allclose(found[output], expected, atol=1e-6)
    assert found.cut.tolist() == plain.cut.tolist()
    assert found.cut.any()


@pytest.mark.parametrize("layer", [17, 0, 24])
def test_the_baseline_is_the_packages(layer):
    base = package_baseline(layer)
    assert len(set(base.values())) == 3
    metric = comperdial.metric("bertscore", layer=layer, rescale=True)
    # In the order of the outputs, which is not the file's.
    assert metric.outputs == ("f1", "precision", "recall")
    assert metric._baseline().tolist() == pytest.approx([base["F"], base["P"], base["R"]], abs=1e-7)


def test_a_model_without_a_baseline_is_not_rescaled():
    with pytest.raises(ConfigError, match="no baseline of model 'all-MiniLM-L6-v2', layer 6"):
        comperdial.metric("bertscore", model=MINILM, layer=6, rescale=True)
    with pytest.raises(ConfigError, match="no baseline of model 'roberta-large', layer 25"):
        comperdial.metric("bertscore", layer=25, rescale=True)


@pytest.mark.parametrize(
    ("options", "problem"),
    [({"layer": 3}, "layer 3"), ({"layer": -4}, "layer -4"), ({"layer": 2, "max_length": 65}, "max_length 65")],
)
def test_what_the_model_does_not_have_is_said(models, options, problem):
    with pytest.raises(ConfigError, match=problem):
        comperdial.metric("bertscore", model=models["bert"], **{"max_length": 64} | options).score(["tea"], ["tea"])


def test_a_layer_that_the_model_lacks_is_said_before_anything_runs(models):
    with pytest.raises(ConfigError, match="layer 17; expected 0 to 6"):
        comperdial.metric("bertscore", model=MINILM, layer=17).unavailable()
    with pytest.raises(ConfigError, match="max_length 65; expected at most 64"):
        comperdial.metric("bertscore", model=models["bert"], layer=2, max_length=65).unavailable()
    assert comperdial.metric("bertscore", model=MINILM, layer=6).unavailable() is None
    # The layers of a model that is not here are not known.
    assert "not present" in comperdial.metric("bertscore", model="./absent", layer=17).unavailable()


@pytest.mark.parametrize("package", ["torch", "transformers"])
def test_vectors_are_of_one_version_of_what_makes_them(models, monkeypatch, package):
    from importlib.metadata import version

    encoder = Encoder(models["bert"], 2, "fp32", 64)
    before = encoder.namespace()
    assert version(package).partition("+")[0] in before
    real = versions.installed
    monkeypatch.setattr(versions, "installed", lambda name: "99.0" if name == package else real(name))
    assert encoder.namespace() != before
    monkeypatch.setattr(versions, "installed", lambda name: "99.0" if name == "numpy" else real(name))
    assert encoder.namespace() == before


def test_encoders_are_told_apart(models):
    folder = models["bert"]
    base = Encoder(folder, 2, "fp32", 64)
    assert base.namespace() == Encoder(folder, -1, "fp32", 64).namespace()
    others = [Encoder(folder, 1, "fp32", 64), Encoder(folder, 2, "bf16", 64), Encoder(folder, 2, "fp32", 32)]
    others += [Encoder(folder, 2, "fp32", 64, pooler=True), Encoder(models["roberta"], 2, "fp32", 64)]
    others += [Encoder(folder, 2, "fp32", 64, keep="end")]
    assert len({encoder.namespace() for encoder in [base, *others]}) == 7


def test_bf16_is_near(models):
    scores = {
        dtype: comperdial.metric("bertscore", model=MINILM, layer=6, dtype=dtype).score(RESPONSES, REFERENCES)["f1"]
        for dtype in ("fp32", "bf16")
    }
    assert np.abs(scores["fp32"] - scores["bf16"]).max() < 0.01
    assert (scores["fp32"] != scores["bf16"]).any()
