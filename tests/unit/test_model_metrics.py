"""Metrics that run a model, on tiny random ones: each against its definition, one text at a time, and common behaviour."""

import csv
import json
import math
import shutil
import warnings
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
import yaml

import tinymodels
from comperdial.core.errors import ConfigError, FileError, MissingResourceError
from comperdial.metrics import _likelihood, create, fed
from comperdial.metrics.bertscore import BertScore
from comperdial.metrics.pmi import prompt
from comperdial.models import runtime
from comperdial.models.encoder import STORE_VARIABLE
from tinyseq import BLEURT_SIZES, bleurt_weights, write_bleurt, write_sentencepiece, write_t5

pytestmark = pytest.mark.usefixtures("one_thread")

# Which tiny model, and the options that it needs.
KINDS = {
    "bertscore": ("bert", {"layer": 2, "max_length": 64}),
    "embedding": ("bert", {"max_length": 64}),
    "sentence_cosine": ("bert", {"pooling": "pooler", "max_length": 64}),
    "grounded_cosine": ("bert", {"max_length": 64}),
    "fed": ("gpt2", {"max_length": 160}),
    "gpt2_coherency": ("gpt2", {"max_length": 160}),
    "pmi": ("gpt2", {"max_length": 160}),
    "usr_mlm": ("roberta", {"max_length": 64}),
    "bert_nsp": ("bert", {"max_length": 64}),
    "unieval": ("t5", {"sentences": "untrained"}),
    "bleurt": ("bleurt", {}),
}
EMBEDDINGS, CAUSAL = list(KINDS)[:4], ["fed", "gpt2_coherency", "pmi"]
# History, response, reference, facts; the second comes again.
ITEMS = [
    (["Hi!", "Hello, how is your day?"], "It's good. It's raining a bit.", "It's raining", ["i like tea ."]),
    (["do you like tea ?"], "yes , i like green tea", "i like tea", ["my name is tom"]),
    (["Hi!", "Hello, how is your day?"], "The sea", "the sea ! so much", ["tea", "cats are nice"]),
    (["  What  book\ndid you read?  "], " I read  two:\n\n1. “Tea” — 🍵 ", "a book about tea", ["tea " * 9]),
    (["do you like tea ?"], "yes , i like green tea", "i like tea", ["my name is tom"]),
    (["Hi!", "Good day", "a", "What book is it?", "no"], "do you", "hello there " * 5, ["i do"]),
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("tiny")
    made = {name: getattr(tinymodels, name)(root / name) for name in ("bert", "gpt2", "roberta")}
    return made | {"t5": str(write_t5(root / "t5")), "bleurt": str(write_bleurt(root / "bleurt"))}


@pytest.fixture
def make(folders, tmp_path, monkeypatch):
    """Return a maker of metrics on the tiny models, with a cache of vectors of their own."""
    monkeypatch.setenv(STORE_VARIABLE, str(tmp_path / "vectors"))
    monkeypatch.setenv("COMPERDIAL_DEVICE", "cpu")

    def make(kind, **options):
        model, needed = KINDS[kind]
        return create(kind, **{"model": folders[model], **needed, **options})

    return make


def talk(texts):
    return [{"speaker": "AB"[place % 2], "text": text} for place, text in enumerate(texts)]


def run(metric, items=ITEMS):
    histories, responses, references, facts = map(list, zip(*items, strict=True))
    return metric.score(responses, references, list(map(talk, histories)), facts)


def of(response, history=("hello",), reference="tea", facts=("tea",)):
    return [(list(history), response, reference, list(facts))]


@cache
def loaded(folder, architecture="AutoModel"):
    network = getattr(transformers, architecture).from_pretrained(folder).eval()
    return transformers.AutoTokenizer.from_pretrained(folder), network


def log_softmax(logits):
    values = logits.double().numpy()
    return values - np.logaddexp.reduce(values)


def causal(folder, tokens):
    """Return the log-likelihood of every token after the first, from one run of the whole model on one string."""
    with torch.no_grad():
        logits = loaded(folder, "AutoModelForCausalLM")[1](input_ids=torch.tensor([tokens])).logits[0]
    return [log_softmax(logits[place - 1])[tokens[place]] for place in range(1, len(tokens))]


def cosine(a, b):
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


# ---- All metrics


@pytest.mark.parametrize("kind", KINDS)
def test_batches_and_order_do_not_matter_and_bf16_matters_little(make, kind, tmp_path, monkeypatch):
    metric = make(kind)
    straight = run(metric)
    assert not straight.cut.any()
    for values in straight.values():
        assert np.isfinite(values).all()
    order = np.random.default_rng(0).permutation(len(ITEMS))
    monkeypatch.setattr(_likelihood, "_ROWS", 3)
    monkeypatch.setenv(runtime.TOKENS_VARIABLE, "150")
    monkeypatch.setenv(STORE_VARIABLE, str(tmp_path / "other"))
    shuffled = run(metric, [ITEMS[place] for place in order])
    for name in metric.outputs:
        np.testing.assert_allclose(shuffled[name], straight[name][order], atol=2e-5)
    main = metric.outputs[0]
    rough = run(make(kind, dtype="bf16"))[main]
    np.testing.assert_allclose(rough, straight[main], atol=0.25 if kind != "pmi" else 1)
    assert (rough != straight[main]).any()


@pytest.mark.parametrize("kind", KINDS)
def test_missing_model_is_reported(make, kind, tmp_path, monkeypatch):
    assert all(len(values) == 0 for values in make(kind).score([], [], [], []).values())
    monkeypatch.setenv("COMPERDIAL_MODELS", str(tmp_path))
    options = {name: value for name, value in KINDS[kind][1].items() if name == "sentences"}
    metric = create(kind, model="gpt2", **options)
    assert "gpt2" in metric.unavailable()
    assert "|model:gpt2@absent|" in metric.signature()
    with pytest.raises(MissingResourceError, match="gpt2"):
        run(metric)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("bertscore", {"layer": 3}, "layer 3"),
        ("bertscore", {"max_length": 65}, "max_length 65; expected at most 64"),
        ("fed", {"max_length": 161}, "'max_length' of metric 'fed' is 161; expected a number from [0-9]+ to 160"),
        ("gpt2_coherency", {"separator": "tab"}, "'tab'; expected one of 'space'"),
        ("bleurt", {"max_length": 513}, "is 513; expected a number from 4 to 512"),
    ],
)
def test_wrong_options(make, kind, options, message):
    with pytest.raises(ConfigError, match=message):
        run(make(kind, **options))


# ---- Embeddings


@pytest.mark.parametrize(("model", "layer", "prefix"), [("bert", 1, True), ("roberta", 2, False)])
def test_bertscore_equals_the_package_one_pair_at_a_time(make, folders, tmp_path, model, layer, prefix):
    """Given several pairs at once, padding moves the package's scores."""
    from bert_score import BERTScorer

    folder = Path(shutil.copytree(folders[model], tmp_path / "same"))
    config = json.loads((folder / "tokenizer_config.json").read_text())
    # The package cuts there; and transformers 5 ignores what it asks of RoBERTa's tokenizer.
    config |= {"model_max_length": 64, "add_prefix_space": prefix}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    scores = run(make("bertscore", model=folders[model], layer=layer, text="raw", prefix_space=prefix))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scorer = BERTScorer(model_type=str(folder), num_layers=layer, device="cpu")
        rows = [scorer.score([response], [reference]) for _, response, reference, _ in ITEMS]
    for place, output in enumerate(("precision", "recall", "f1")):
        np.testing.assert_allclose(scores[output], [float(row[place][0]) for row in rows], atol=1e-5)


def test_cosines_by_their_definitions(make, folders):
    tokenizer, network = loaded(folders["bert"])

    def states(text):
        with torch.no_grad():
            output = network(**tokenizer(text, return_tensors="pt"))
        return output.last_hidden_state[0].double().numpy(), output.pooler_output[0].double().numpy()

    def far(vectors):
        return np.array([max(column, key=abs) for column in vectors.T])

    (a, pooled_a), (b, pooled_b) = map(states, ("i like tea", "do you read ?"))
    for pooling, pair in {"pooler": (pooled_a, pooled_b), "cls": (a[0], b[0]), "mean": (a.mean(0), b.mean(0))}.items():
        scores = run(make("sentence_cosine", pooling=pooling), of("i like tea", reference="do you read ?"))
        assert scores["cosine"][0] == pytest.approx(cosine(*pair), abs=1e-5)
    own_a, own_b = a[1:-1], b[1:-1]
    greedy = [np.mean([max(cosine(v, w) for w in y) for v in x]) for x, y in ((own_a, own_b), (own_b, own_a))]
    expected = {"average": cosine(own_a.mean(0), own_b.mean(0)), "extrema": cosine(far(own_a), far(own_b))}
    scores = run(make("embedding", text="raw"), of("i like tea", reference="do you read ?"))
    for output, value in (expected | {"greedy": np.mean(greedy)}).items():
        assert scores[output][0] == pytest.approx(value, abs=1e-5)
    # Of the context the last two utterances.
    history = ["hello", "i read a book ", " what book ?"]
    scores = run(make("grounded_cosine", utterances=2), of("the sea", history, facts=["i like tea", "i read"]) * 2)
    response, context, fact = (
        states(t)[0].mean(0) for t in ("the sea", "i read a book what book ?", "i like tea i read")
    )
    expected = cosine(response, context), cosine(response, fact)
    for output, value in zip(("context", "fact", "sum"), (*expected, sum(expected)), strict=True):
        assert scores[output] == pytest.approx([value] * 2, abs=1e-5)
    # Without facts there is no sum: half of it is not the whole.
    scores = run(make("grounded_cosine"), of("the sea", facts=[]))
    assert np.isnan([scores["fact"][0], scores["sum"][0]]).all()


def test_long_context_keeps_newest_words_and_fact_keeps_first(make):
    def scores(context, fact):
        # Of each text, six words fit with [CLS] and [SEP].
        result = run(make("grounded_cosine", max_length=8), of("i like tea", context, facts=[fact]))
        return float(result["context"][0]), float(result["fact"][0]), int(result.cut[0])

    context, fact, cut = scores(["like a book about", "green tea"], "i read a book about tea")
    assert cut == 0
    same = (pytest.approx(context, abs=1e-5), pytest.approx(fact, abs=1e-5), 3 + 1)
    assert scores(["no no", "you like a book about", "green tea"], "i read a book about tea sea") == same
    assert run(make("grounded_cosine", max_length=8), of("tea " * 10, ["sea"], facts=["tea"])).cut.tolist() == [4]


@pytest.mark.parametrize(
    ("response", "references", "best", "cut"),
    [
        # Only the one that loses was cut; only the one that wins; both and the response.
        ("green tea", ["book " * 9, "green tea"], 1, 0),
        ("tea tea tea tea tea tea", ["tea " * 10, "a book"], 0, 4),
        ("tea " * 8, ["book " * 9, "tea " * 10], 1, 2 + 4),
    ],
)
@pytest.mark.parametrize("kind", ["bertscore", "sentence_cosine", "embedding"])
def test_best_reference_counts_with_its_truncation(make, kind, response, references, best, cut):
    metric = make(kind, text="raw", max_length=8)
    main = metric.outputs[0]
    alone = metric.score([response] * 2, references)[main]
    scores = metric.score([response], [references])
    assert int(np.argmax(alone)) == best
    assert scores[main][0] == pytest.approx(alone[best], abs=1e-5)
    assert scores.cut.tolist() == [cut]


def test_text_with_no_tokens_has_no_score(make):
    for kind in ("bertscore", "embedding"):
        for values in make(kind).score(["...", "tea"], ["tea", ["...", "tea"]]).values():
            assert np.isnan(values[0])
            assert values[1] == pytest.approx(1, abs=1e-6)


def test_rescaling_subtracts_package_baseline(make, monkeypatch):
    path = Path(find_spec("bert_score").origin).parent / "rescale_baseline/en/roberta-large.tsv"
    rows = {int(row["LAYER"]): row for row in csv.DictReader(path.open(encoding="utf-8"))}
    letters = {"f1": "F", "precision": "P", "recall": "R"}
    for output, (low, high) in create("bertscore", layer=17, rescale=True).bounds.items():
        base = float(rows[17][letters[output]])
        assert (low, high) == (pytest.approx((-1 - base) / (1 - base), rel=1e-6), 1.0)
    base = {output: float(rows[0][letter]) for output, letter in letters.items()}
    monkeypatch.setattr(BertScore, "_baseline", lambda self: np.array(list(base.values())))
    plain, scaled = run(make("bertscore")), run(make("bertscore", rescale=True))
    for output, value in base.items():
        np.testing.assert_allclose(scaled[output], (plain[output] - value) / (1 - value), atol=1e-6)
    monkeypatch.undo()
    with pytest.raises(ConfigError, match=r"no baseline of model .*, layer 25"):
        create("bertscore", rescale=True, layer=25)


# ---- FED

SETS = yaml.safe_load(Path(fed.__file__).with_name("fed_followups.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("options", "index"), [({}, 0), ({"spaces": "stripped"}, 3), ({"scored": "follow-up"}, 1)])
def test_fed_matches_definition(make, folders, options, index):
    metric = make("fed", **options)
    scores = run(metric)
    sets = {**SETS["turn"], **SETS["dialogue"]}
    assert metric.outputs == ("fed", *sets)
    gap = "" if options.get("spaces") == "stripped" else " "
    tokenizer = loaded(folders["gpt2"])[0]
    texts, response, *_ = ITEMS[index]
    spoken = [text.strip() for text in (*texts, response)]

    def loss(followup, spoken=spoken):
        whole = f"{gap}<|endoftext|>{gap}".join(["", *spoken, followup]).removeprefix(gap)
        logs = causal(folders["gpt2"], tokenizer(whole)["input_ids"])
        own = len(tokenizer(gap + followup)["input_ids"]) if options.get("scored") else len(logs)
        return -np.mean(logs[-own:])

    means = {
        (name, sign): np.mean([loss(text) for text in texts]) if texts else 0.0
        for name, each in sets.items()
        for sign, texts in each.items()
    }
    expected = {name: means[name, "negative"] - means[name, "positive"] for name in sets}
    assert {name: scores[name][index] for name in sets} == pytest.approx(expected, abs=1e-5)
    assert scores["fed"][index] == pytest.approx(np.mean(list(expected.values())), abs=1e-5)
    assert len({round(value, 4) for value in scores["fed"]}) == 5


def write_sets(path, **levels):
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump({"source": "invented", **levels}), encoding="utf-8")
    return str(path)


def test_wrong_followups(tmp_path):
    path = tmp_path / "sets.yaml"
    with pytest.raises(FileError, match="cannot be read"):
        create("fed", followups=str(path))
    path.write_text("turn: {good: {positive: [a]}}", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"turn\.good: 'negative' is None; expected a list"):
        create("fed", followups=str(path))


@pytest.mark.parametrize("over", [1, 100])
def test_fed_truncates_left_and_keeps_first_marker(make, folders, tmp_path, over):
    path = write_sets(tmp_path / "mine.yaml", turn={"blame": {"positive": [], "negative": ["no", "Cool! yes no"]}})
    tokenizer = loaded(folders["gpt2"])[0]
    texts, response, *_ = ITEMS[0]
    start = tokenizer("<|endoftext|> " + " <|endoftext|> ".join([*texts, response, ""]).rstrip())["input_ids"]
    ends = [tokenizer(" " + text)["input_ids"] for text in ("no", "Cool! yes no")]
    over = min(over, len(start) - 2)
    scores = run(make("fed", followups=path, max_length=len(start) + max(map(len, ends)) - over), ITEMS[:1])
    kept = start[:1] + start[1 + over :]
    expected = np.mean([-np.mean(causal(folders["gpt2"], kept + end)) for end in ends])
    assert scores["blame"][0] == pytest.approx(expected, abs=1e-5)
    assert scores.cut.tolist() == [over]


# ---- Coherency, PMI, USR-MLM, next sentence


@pytest.mark.parametrize(
    ("options", "gap", "end"),
    [
        ({}, " ", ""),
        ({"separator": "newline"}, "\n", "\n"),
        ({"separator": "eos"}, "<|endoftext|>", "<|endoftext|>"),
        ({"history": "last"}, " ", ""),
    ],
)
def test_coherency_matches_definition(make, folders, options, gap, end):
    scores = run(make("gpt2_coherency", **options))
    for index, (texts, response, *_) in enumerate(ITEMS):
        kept = texts[-1:] if options.get("history") == "last" else texts
        context = gap.join(text.strip() for text in kept) + end
        whole = context + ("" if end else " ") + response.strip()
        tokens = loaded(folders["gpt2"])[0](whole, return_offsets_mapping=True)
        # The tokens of the response are those that begin where the context has ended (a space belongs to its word).
        count = sum(start >= len(context) for start, _ in tokens["offset_mapping"])
        expected = causal(folders["gpt2"], tokens["input_ids"])[-count:]
        assert scores["gpt2-coherency"][index] == pytest.approx(np.mean(expected), abs=1e-5)
        assert scores["gpt2-coherency-sum"][index] == pytest.approx(sum(expected), abs=1e-4)


@pytest.mark.parametrize("room", [2, 9, 21])
def test_coherency_with_a_cut_context(make, folders, room):
    texts, response, *_ = ITEMS[0]
    tokenizer = loaded(folders["gpt2"])[0]
    context, spoken = (tokenizer(text)["input_ids"] for text in (" ".join(texts), " " + response))
    kept = spoken[: room - 1]
    before = context[-max(1, room - len(kept)) :]
    scores = run(make("gpt2_coherency", max_length=room), ITEMS[:1])
    expected = causal(folders["gpt2"], before + kept)[-len(kept) :]
    assert scores["gpt2-coherency-sum"][0] == pytest.approx(sum(expected), abs=1e-4)
    assert scores.cut.tolist() == [len(context) + len(spoken) - len(before) - len(kept)]


def test_pmi_matches_definition(make, folders):
    items = [*ITEMS[:2], (*ITEMS[2][:3], [])]
    scores = run(make("pmi"), items)

    def log(start, end):
        first, then = (loaded(folders["gpt2"])[0](text)["input_ids"] for text in (start, end))
        return sum(causal(folders["gpt2"], first + then)[-len(then) :]), len(then)

    for row, (texts, response, _, facts) in enumerate(items):
        (given, size), (context, _), (bare, _) = (
            log(start, f" {response}") for start in (prompt(talk(texts), facts), prompt(talk(texts), []), "B:")
        )
        expected = [given - bare, (given - bare) / size, (given - bare) / size**0.5, given, given / size]
        names = ("pmi", "pmi-mean", "pmi-root", "likelihood", "likelihood-mean")
        assert [scores[name][row] for name in names] == pytest.approx(expected, abs=1e-3)
        assert scores["facts"][row] == pytest.approx(given - context if facts else np.nan, abs=1e-3, nan_ok=True)
    assert prompt(talk(["one", " two ", "three"]), ["f", "g"]) == "Facts: f g\n\nA: one\nB: two\nA: three\nB:"
    last, three = (run(make("pmi", utterances=1), of("yes", texts)) for texts in (["three"], ["one", "two", "three"]))
    assert three["pmi"] == pytest.approx(last["pmi"])
    assert run(make("pmi", max_length=40), of("i am fine", ["word " * 100])).cut[0] > 0


@pytest.mark.parametrize(
    "options", [{}, {"history": "all"}, {"masked": "all", "history": "all"}, {"lowercase": False}], ids=str
)
def test_usr_mlm_matches_definition(make, folders, options):
    tokenizer, network = loaded(folders["roberta"], "AutoModelForMaskedLM")
    scores = run(make("usr_mlm", **options))
    for index, (texts, response, *_) in enumerate(ITEMS):
        context = " _eos ".join(texts if options.get("history") == "all" else texts[-1:])
        fold = str if options.get("lowercase") is False else str.lower
        context, response = (" ".join(fold(text).split()) for text in (context, response))
        made = tokenizer(f"{context} _eos _go {response} _eos", return_offsets_mapping=True)
        tokens, spans = made["input_ids"], made["offset_mapping"]
        low, high = len(f"{context} _eos _go"), len(f"{context} _eos _go {response}")
        whole = options.get("masked") == "all"
        places = [n for n in range(1, len(tokens) - 1) if whole or (spans[n][0] >= low and spans[n][1] <= high)]
        rows = torch.tensor([[*tokens[:n], tokenizer.mask_token_id, *tokens[n + 1 :]] for n in places])
        with torch.no_grad():
            logits = network(input_ids=rows).logits
        expected = [log_softmax(logits[row, n])[tokens[n]] for row, n in enumerate(places)]
        assert scores["usr-mlm"][index] == pytest.approx(np.mean(expected), abs=1e-5)


@pytest.mark.parametrize(("room", "words"), [(64, 3), (20, 3), (16, 30)])
def test_usr_mlm_cuts_the_context_first(make, folders, room, words):
    tokenizer = loaded(folders["roberta"])[0]

    def size(text):
        return len(tokenizer(text, add_special_tokens=False)["input_ids"])

    context, spoken, fixed = size("tea" + " tea" * 11), size(" tea" * words), 2 + size(" _eos _go _eos")
    scores = run(make("usr_mlm", max_length=room), of("tea " * words, ["tea " * 12]))
    assert scores.cut.tolist() == [max(0, context + spoken + fixed - room)]
    other = run(make("usr_mlm", max_length=room), of("tea " * words, ["sea " + "tea " * 11]))
    assert (scores["usr-mlm"] == other["usr-mlm"]).all() == (room < context + spoken + fixed)


@pytest.mark.parametrize("history", ["all", "last"])
def test_next_sentence_matches_definition(make, folders, history):
    tokenizer, network = loaded(folders["bert"], "AutoModelForNextSentencePrediction")
    scores = run(make("bert_nsp", history=history))
    for index, (texts, response, *_) in enumerate(ITEMS):
        context = " ".join(text.strip() for text in (texts if history == "all" else texts[-1:]))
        with torch.no_grad():
            logits = network(**tokenizer(context, response, return_tensors="pt")).logits[0]
        assert scores["bert-nsp"][index] == pytest.approx(math.exp(log_softmax(logits)[0]), abs=1e-5)
        assert scores["bert-nsp-log-odds"][index] == pytest.approx(float(logits[0] - logits[1]), abs=1e-5)
    assert len({round(value, 6) for value in scores["bert-nsp"]}) == 5
    cut = run(make("bert_nsp", max_length=9), of("h i", ["a b c", "d e f g"]))
    by_hand = run(make("bert_nsp"), of("h i", ["d e f g"]))
    assert cut["bert-nsp"][0] == pytest.approx(by_hand["bert-nsp"][0], abs=1e-6)
    assert cut.cut.tolist() == [3]


# ---- UniEval

HISTORY = ["do you like tea ?", "i do . "]
QUESTIONS = {
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
def yes(folders):
    """Return p(Yes) over p(Yes) and p(No) of the first token that transformers generates after a question."""
    tokenizer, network = loaded(folders["t5"], "AutoModelForSeq2SeqLM")

    def share(name, **texts):
        inputs = tokenizer(QUESTIONS[name].format(**texts), return_tensors="pt")
        options = {"do_sample": False, "output_logits": True, "return_dict_in_generate": True}
        logs = log_softmax(network.generate(**inputs, max_new_tokens=1, **options).logits[0][0])
        yes, no = (math.exp(logs[tokenizer(word)["input_ids"][0]]) for word in ("Yes", "No"))
        return yes / (yes + no)

    return share


def test_unieval_is_the_share_of_yes_for_each_question(make, yes):
    response, sentences = "i like cats . do you ?", ["i like cats .", "do you ?"]
    scores = run(make("unieval"), of(response, HISTORY, facts=["my name is tom", "i like tea ."]))
    # As UniEval's code joins them.
    texts = {"h": "do you like tea ? \n i do . \n\n", "f": "my name is tom\ni like tea .\n"}
    expected = {name: yes(name, r=response, **texts) for name in QUESTIONS}
    expected["engagingness"] = sum(yes("engagingness", r=sentence, **texts) for sentence in sentences)
    expected["overall"] = sum(expected.values()) / 5
    assert list(scores) == ["overall", *QUESTIONS]
    assert {name: float(values[0]) for name, values in scores.items()} == pytest.approx(expected, abs=1e-6)
    assert np.std([expected[name] for name in QUESTIONS]) > 0.01


@pytest.mark.parametrize(
    ("history", "facts", "options", "missing"),
    [
        (HISTORY, [], {}, {"engagingness", "groundedness", "overall"}),
        ([], ["tea"], {}, {"coherence", "engagingness", "overall"}),
        (HISTORY, [], {"without_facts": "_nofact"}, set()),
    ],
)
def test_unieval_without_needed_input_is_missing(make, yes, history, facts, options, missing):
    scores = run(make("unieval", **options), of("i like cats .", history, facts=facts))
    assert {name for name, values in scores.items() if math.isnan(values[0])} == missing
    if options:
        expected = yes("groundedness", r="i like cats .", f="_nofact\n")
        assert scores["groundedness"][0] == pytest.approx(expected, abs=1e-6)


def test_unieval_truncates_oldest_history(make, folders):
    def scores(history):
        return run(make("unieval", max_length=48), of("i do .", [history], facts=["tea"]))

    middle = "do you like tea ? " * 4
    one, other, newest = map(scores, (f"hello there {middle} tea", f"so much {middle} tea", f"so much {middle} cats"))
    whole = QUESTIONS["engagingness"].format(r="i do .", h=f"hello there {middle} tea\n\n", f="tea\n")
    assert one.cut.tolist() == other.cut.tolist() == [len(loaded(folders["t5"])[0](whole)["input_ids"]) - 48]
    assert one.cut[0] >= 2
    assert one["engagingness"] == other["engagingness"] != newest["engagingness"]
    # Without a history, the end is cut.
    ends = [run(make("unieval", max_length=20), of("i like cats . " * 9 + last, [])) for last in ("tea", "cats")]
    assert ends[0]["naturalness"] == ends[1]["naturalness"]


def test_punkt_splits_sentences_and_is_named_by_its_bytes(make, yes, tmp_path, monkeypatch):
    import nltk

    root = tmp_path / "nltk_data"
    folder = root / "tokenizers/punkt_tab/english"
    monkeypatch.setattr("comperdial.data.wordnet.roots", lambda: [root])
    monkeypatch.setattr(nltk.data, "path", [str(root)])
    metric = make("unieval", sentences="punkt")
    assert "|sentences:punkt@absent|" in metric.signature()
    with pytest.raises(MissingResourceError, match="sentences: untrained"):
        run(metric)
    folder.mkdir(parents=True)
    for name in ("collocations.tab", "sent_starters.txt", "ortho_context.tab"):
        (folder / name).write_text("")
    (folder / "abbrev_types.txt").write_text("dr")
    item, texts = of("i like dr. tom. do you?", HISTORY), {"h": "do you like tea ? \n i do . \n\n", "f": "tea\n"}
    expected = sum(yes("engagingness", r=sentence, **texts) for sentence in ("i like dr. tom.", "do you?"))
    assert run(metric, item)["engagingness"][0] == pytest.approx(expected, abs=1e-6)
    signature = metric.signature()
    (folder / "abbrev_types.txt").write_text("dr\nmr")
    assert metric.signature() != signature


# ---- BLEURT


def numpy_bleurt(weights, ids, segments, heads):
    """Compute the network by its formulas, one unpadded line at a time."""

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
    vocabulary = json.loads((Path(folder) / "tokenizer.json").read_text())["model"]["vocab"]
    first, second = ([vocabulary.get(word, 1) for word in text.split()] for text in (reference, response))
    segments = [0] * (len(first) + 2) + [1] * (len(second) + 1)
    return numpy_bleurt(weights, [2, *first, 3, *second, 3], segments, BLEURT_SIZES["num_attention_heads"])


@pytest.mark.parametrize("width", [12, None])
def test_bleurt_matches_formulas(tmp_path, width):
    weights = bleurt_weights(seed=3, embedding_size=width)
    folder = write_bleurt(tmp_path, weights, embedding_size=width)
    references, responses = ["i like tea .", "cats are nice", "what"], ["do you like tea ?", "cats are nice", "i do"]
    scores = create("bleurt", model=str(folder), text="raw").score(responses, references)
    expected = [expected_bleurt(folder, weights, *pair) for pair in zip(references, responses, strict=True)]
    np.testing.assert_allclose(scores["bleurt"], expected, atol=2e-5)
    assert np.std(expected) > 0.05


def test_bleurt_normalises_takes_the_best_reference_and_counts_what_it_cuts(make, folders):
    def expected(reference, response):
        return expected_bleurt(folders["bleurt"], bleurt_weights(), reference, response)

    each = [expected(text, "do you like tea") for text in ("i like tea", "cats nice", "hello there")]
    raw = ["I like the tea!", "a cats, nice", "hello there"]
    scores = make("bleurt").score(["Do you like TEA?"] * 2 + ["!!!"], [raw, raw[:1], ["hello there"]])
    assert scores["bleurt"] == pytest.approx([max(each), each[0], expected("hello there", "")], abs=2e-5)
    long = "i like tea so much my name is tom"
    scores = make("bleurt", text="raw", max_length=9).score(
        [long, "cats", "i like"], [["tea"], [long], ["do you", long]]
    )
    both = [expected(text, "i like") for text in ("do you", "i like tea so")]
    kept = [expected("tea", "i like tea so much"), expected("i like tea so much", "cats"), max(both)]
    assert scores["bleurt"] == pytest.approx(kept, abs=2e-5)
    assert scores.cut.tolist() == [4, 4, (0, 5)[int(np.argmax(both))]]


def test_bleurt_refuses_mismatched_weights(make, tmp_path):
    weights = bleurt_weights()
    weights["classifier.weight"] = np.ones((3, 16), np.float32)
    with pytest.raises(FileError, match=r"in another shape classifier.weight"):
        run(make("bleurt", model=str(write_bleurt(tmp_path, weights))))


def test_bleurt_splits_text_with_sentencepiece_if_there_is_a_model(make, tmp_path, monkeypatch):
    pytest.importorskip("sentencepiece")
    pieces = write_sentencepiece(write_bleurt(tmp_path) / "spm.model")
    metric = make("bleurt", model=str(tmp_path), text="raw")
    ids = [2, 7, 4, 3, 8, 3]
    known = {number: pieces.index(f"▁{word}") for number, word in ((7, "i"), (4, "like"), (8, "tea"))}
    line = [known.get(n, pieces.index({2: "[CLS]", 3: "[SEP]"}.get(n, "▁"))) for n in ids]
    expected = numpy_bleurt(bleurt_weights(), line, [0, 0, 0, 0, 1, 1], BLEURT_SIZES["num_attention_heads"])
    assert metric.score(["tea"], ["i  like"])["bleurt"][0] == pytest.approx(expected, abs=2e-5)
    # Without the package, the tokenizer.json next to it is not used: what splits must not depend on what is installed.
    monkeypatch.setattr("comperdial.metrics._bleurt_model.find_spec", lambda name: None)
    assert "not installed: sentencepiece" in metric.unavailable()


# ---- Values on the models' pages, if the weights are present


def test_bleurt_20_matches_model_page():
    metric = create("bleurt", text="raw")
    if problem := metric.unavailable():
        pytest.skip(problem)
    pairs = ["a bird chirps by the window", "this is a random sentence"]
    scores = metric.score([pairs[0], "this looks like a random sentence"], pairs)
    assert scores["bleurt"] == pytest.approx([0.99905, 0.79302], abs=1e-3)


def test_unieval_dialog_matches_model_page():
    metric = create("unieval", sentences="untrained")
    if problem := metric.unavailable():
        pytest.skip(problem)
    history = ["hi , do you know much about the internet ?"]
    history += ["i know a lot about different sites and some website design , how about you ?"]
    fact = "the 3 horizontal line menu on apps and websites is called a hamburger button ."
    response = (
        "i do too . did you know the 3 horizontal line menu on apps and websites is called the hamburger button ?"
    )
    scores = run(metric, of(response, history, facts=[fact]))
    assert {name: float(values[0]) for name, values in scores.items()} == pytest.approx(
        {"overall": 1.123923, "naturalness": 0.950218, "coherence": 0.973135, "engagingness": 1.750486,
         "groundedness": 0.999566, "understandability": 0.946209}, abs=1e-3,
    )  # fmt: skip


# (positive, negative) of each quality in Mehri and Eskenazi 2020a.
COUNTS = {
    "turn": [(3, 3), (3, 3), (3, 3), (0, 3), (0, 3), (2, 1), (2, 4), (2, 3)],
    "dialogue": [(0, 3), (0, 3), (0, 2), (0, 3), (0, 2), (3, 3), (0, 3), (2, 2), (3, 2), (2, 2)],
}


def test_fed_sets_match_paper_sizes():
    for level, expected in COUNTS.items():
        assert [(len(sets["positive"]), len(sets["negative"])) for sets in SETS[level].values()] == expected
    assert "Tell me more!" in SETS["turn"]["engaging"]["positive"]
    assert "Let's change the topic." in SETS["turn"]["engaging"]["negative"]
