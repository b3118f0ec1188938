"""Metrics of likelihood on tiny random models, each against a computation of one string and one token at a time."""

from __future__ import annotations

import math
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import tinymodels
from comperdial.core.errors import ConfigError, FileError, MissingResourceError, SchemaError
from comperdial.metrics import _likelihood, create
from comperdial.metrics._history import fit
from comperdial.metrics._likelihood import most_tokens, unique
from comperdial.metrics.base import Batch
from comperdial.metrics.fed import read_followups
from comperdial.models.trees import halves

pytestmark = pytest.mark.usefixtures("one_thread")

KINDS = ("fed", "gpt2_coherency", "usr_mlm", "bert_nsp")
# (positive, negative) as REFERENCE.md counts them in Mehri and Eskenazi 2020a.
TURN = {
    "interesting": (3, 3), "engaging": (3, 3), "specific": (3, 3), "relevant": (0, 3), "correct": (0, 3),
    "semantically-appropriate": (2, 1), "understandable": (2, 4), "fluent": (2, 3),
}  # fmt: skip
DIALOGUE = {
    "coherent": (0, 3), "error-recovery": (0, 3), "consistent": (0, 2), "diverse": (0, 3), "depth": (0, 2),
    "likeable": (3, 3), "understand": (0, 3), "flexible": (2, 2), "informative": (3, 2), "inquisitive": (2, 2),
}  # fmt: skip

DIALOGUES = [
    (["Hi!", "Hello, how is your day?"], "It's good. It's raining a bit."),
    (["do you like tea ?"], "yes , i like green tea"),
    (["Hi!", "Hello, how is your day?"], "The sea"),
    (["  What  book\ndid you read?  "], " I read  two:\n\n1. “Tea” — 🍵 "),
    (["do you like tea ?"], "yes , i like green tea"),
    (["Hi!", "Good day", "a", "What book is it?", "no"], "'s"),
]


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """Return a folder of a tiny model for each kind of metric."""
    root = tmp_path_factory.mktemp("tiny")
    causal = tinymodels.gpt2(root / "gpt2")
    return {
        "fed": causal, "gpt2_coherency": causal,
        "usr_mlm": tinymodels.roberta(root / "roberta"), "bert_nsp": tinymodels.bert(root / "bert"),
    }  # fmt: skip


DEFAULTS = {
    "fed": {"max_length": 160}, "gpt2_coherency": {"max_length": 160},
    "usr_mlm": {"max_length": 64}, "bert_nsp": {"max_length": 64},
}  # fmt: skip


@pytest.fixture
def make(folders):
    """Return a maker of metrics on the tiny models."""
    return lambda kind, **options: create(kind, model=folders[kind], **{**DEFAULTS[kind], **options})


def score(metric, dialogues=DIALOGUES):
    histories = [[{"speaker": "AB"[i % 2], "text": text} for i, text in enumerate(texts)] for texts, _ in dialogues]
    return metric.score([response for _, response in dialogues], histories=histories)


def log_softmax(logits):
    """Return log-probabilities in double precision, the plain way."""
    values = logits.double().numpy()
    top = values.max()
    return values - top - math.log(np.exp(values - top).sum())


def causal(metric, tokens):
    """Return the log-likelihood of every token after the first, from one run of the whole model on one string."""
    import torch

    with torch.no_grad():
        logits = metric._network(input_ids=torch.tensor([tokens])).logits[0]
    return [log_softmax(logits[place - 1])[tokens[place]] for place in range(1, len(tokens))]


def plain_fed(metric, tokens_of, sets):
    """Return the scores of all qualities by the definition, each follow-up of each quality on its own."""

    def loss(followup):
        found = causal(metric, tokens_of(followup))
        return -sum(found) / len(found)

    def mean(followups):
        return sum(map(loss, followups)) / len(followups) if followups else 0.0

    return {name: mean(each["negative"]) - mean(each["positive"]) for name, each in sets.items()}


# ---- FED


def followups_file():
    from comperdial.metrics import fed

    return fed._FOLLOWUPS


def test_the_sets_are_those_of_the_paper():
    content = yaml.safe_load(followups_file().read_text(encoding="utf-8"))
    for level, expected in (("turn", TURN), ("dialogue", DIALOGUE)):
        found = {name: (len(sets["positive"]), len(sets["negative"])) for name, sets in content[level].items()}
        assert found == expected
        assert list(found) == list(expected)
    assert "Mehri and Eskenazi 2020a" in content["source"]
    assert "Tell me more!" in content["turn"]["engaging"]["positive"]
    assert "Let's change the topic." in content["turn"]["engaging"]["negative"]
    assert "Don't change the topic!" in content["turn"]["relevant"]["negative"]


def test_weights_are_shares_of_each_set():
    sets = read_followups(followups_file())
    assert sets.names == (*TURN, *DIALOGUE)
    assert len(set(sets.texts)) == len(sets.texts)
    for row, (positive, negative) in zip(sets.weights, [*TURN.values(), *DIALOGUE.values()], strict=True):
        assert row[row > 0].sum() == pytest.approx(1)
        assert row[row < 0].sum() == pytest.approx(-1 if positive else 0)
        assert ((row > 0).sum(), (row < 0).sum()) == (negative, positive)


@pytest.mark.parametrize(("spaces", "checked"), [("kept", [0, 3]), ("stripped", [2, 3])])
def test_fed_is_its_definition(make, spaces, checked):
    metric = make("fed", spaces=spaces)
    content = yaml.safe_load(followups_file().read_text(encoding="utf-8"))
    sets = {**content["turn"], **content["dialogue"]}
    found = score(metric)
    assert metric.outputs == ("fed", *sets)
    gap = " " if spaces == "kept" else ""
    for index in checked:
        texts, response = DIALOGUES[index]
        spoken = [text.strip() for text in (*texts, response)]

        def tokens_of(followup, spoken=spoken):
            whole = f"{gap}<|endoftext|>{gap}".join(["", *spoken, followup]).removeprefix(gap)
            return metric._tokenizer(whole)["input_ids"]

        expected = plain_fed(metric, tokens_of, sets)
        for name in sets:
            assert found[name][index] == pytest.approx(expected[name], abs=1e-5)
        assert found["fed"][index] == pytest.approx(sum(expected.values()) / 18, abs=1e-5)
    assert not found.cut.any()
    assert len({round(value, 4) for value in found["fed"]}) == 5


def test_the_loss_is_that_of_transformers(make):
    import torch

    metric = make("fed")
    text = "<|endoftext|> Hi! <|endoftext|> yes <|endoftext|>"
    start, end, both = (metric._tokenizer(part)["input_ids"] for part in (text, " no!", f"{text} no!"))
    whole = torch.tensor([both])
    loss = float(metric._network(input_ids=whole, labels=whole).loss)
    assert both == start + end
    assert metric._losses([start], [end]) == pytest.approx(loss, abs=1e-5)


def write_sets(path, **levels):
    path.write_text(yaml.safe_dump({"source": "invented", **levels}), encoding="utf-8")
    return str(path)


def test_empty_sets_count_nothing(make, tmp_path):
    praise, blame = {"positive": ["Cool!"], "negative": []}, {"positive": [], "negative": ["Cool!", "no"]}
    both = {"positive": ["no"], "negative": ["no"]}
    path = write_sets(tmp_path / "mine.yaml", turn={"praise": praise}, dialogue={"blame": blame, "same": both})
    metric = make("fed", followups=path)
    assert metric.outputs == ("fed", "praise", "blame", "same")
    found = score(metric)
    cool, no = [], []
    for texts, response in DIALOGUES:
        start = "<|endoftext|> " + " <|endoftext|> ".join(text.strip() for text in (*texts, response))
        for text, losses in (("Cool!", cool), ("no", no)):
            losses.append(-np.mean(causal(metric, metric._tokenizer(f"{start} <|endoftext|> {text}")["input_ids"])))
    np.testing.assert_allclose(found["praise"], -np.array(cool), atol=1e-5)
    np.testing.assert_allclose(found["blame"], (np.array(cool) + no) / 2, atol=1e-5)
    np.testing.assert_allclose(found["same"], 0, atol=1e-12)
    np.testing.assert_allclose(found["fed"], (found["praise"] + found["blame"]) / 3, atol=1e-12)


def test_followups_are_named_by_content(make, tmp_path):
    shipped = make("fed").signature()
    assert "|followups:fed_followups@" in shipped
    texts = {"praise": {"positive": ["Cool!"], "negative": []}}
    (tmp_path / "elsewhere").mkdir()
    one = make("fed", followups=write_sets(tmp_path / "mine.yaml", turn=texts)).signature()
    two = make("fed", followups=write_sets(tmp_path / "elsewhere" / "mine.yaml", turn=texts)).signature()
    other = make("fed", followups=write_sets(tmp_path / "elsewhere" / "mine.yaml", dialogue=texts)).signature()
    assert one == two
    assert len({shipped, one, other}) == 3
    assert str(tmp_path) not in one.replace(make("fed").model, "")


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ("turn: {good: {positive: [a]}}", ConfigError, r"turn\.good: 'negative' is None; expected a list"),
        ("turn: {good: {positive: [1], negative: []}}", ConfigError, r"'positive' is \[1\]"),
        ("turn: {good: {positive: [' '], negative: []}}", ConfigError, "'positive' is"),
        ("turn: {good: {positive: [], negative: []}}", ConfigError, r"turn\.good: no follow-ups"),
        ("turn: {good: [a]}", ConfigError, r"turn\.good: holds \['a'\]; expected a mapping"),
        ("turn: [good]", ConfigError, "turn: holds"),
        ("turn: {Very Good: {positive: [a], negative: []}}", ConfigError, "not a name for a quality"),
        ("turn: {fed: {positive: [a], negative: []}}", ConfigError, "not a name for a quality"),
        (
            "turn: {a: {positive: [a], negative: []}}\ndialogue: {a: {positive: [a], negative: []}}",
            ConfigError,
            r"dialogue\.a: not a name",
        ),
        ("source: nobody", ConfigError, "no qualities; expected some under 'turn' or 'dialogue'"),
        ("turn: {", FileError, "not valid YAML"),
    ],
)
def test_wrong_followups(tmp_path, content, error, message):
    path = tmp_path / "sets.yaml"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(error, match=message):
        create("fed", followups=str(path))


def test_followups_that_are_not_there(tmp_path):
    with pytest.raises(FileError, match=r"none\.yaml: cannot be read"):
        create("fed", followups=str(tmp_path / "none.yaml"))


@pytest.mark.parametrize("over", [0, 1, 4, 9, 100])
def test_fed_cuts_the_dialogue_from_the_left_and_says_how_much(make, tmp_path, over):
    path = write_sets(tmp_path / "mine.yaml", turn={"blame": {"positive": [], "negative": ["no", "Cool! yes no"]}})
    wide = make("fed", followups=path)
    texts, response = DIALOGUES[0]
    start = wide._tokenizer("<|endoftext|> " + " <|endoftext|> ".join([*texts, response, ""]).rstrip())["input_ids"]
    ends = [wide._tokenizer(" " + text)["input_ids"] for text in ("no", "Cool! yes no")]
    longest = max(map(len, ends))
    # At least the first marker and the last stay.
    over = min(over, len(start) - 2)
    narrow = make("fed", followups=path, max_length=len(start) + longest - over)
    found = score(narrow, [DIALOGUES[0]])
    kept = start[:1] + start[1 + over :]
    expected = np.mean([-np.mean(causal(wide, kept + end)) for end in ends])
    assert found["blame"][0] == pytest.approx(expected, abs=1e-5)
    assert found.cut.tolist() == [over]
    assert found.cut.dtype == np.int32


# ---- GPT-2 coherency


@pytest.mark.parametrize(
    ("options", "gap", "end"),
    [
        ({}, " ", ""),
        ({"separator": "newline"}, "\n", "\n"),
        ({"separator": "eos"}, "<|endoftext|>", "<|endoftext|>"),
        ({"history": "last"}, " ", ""),
    ],
)
def test_coherency_is_its_definition(make, options, gap, end):
    metric = make("gpt2_coherency", **options)
    found = score(metric)
    for index, (texts, response) in enumerate(DIALOGUES):
        kept = texts[-1:] if options.get("history") == "last" else texts
        context = gap.join(text.strip() for text in kept) + end
        whole = context + ("" if end else " ") + response.strip()
        read = metric._tokenizer(whole, return_offsets_mapping=True)
        # The tokens of the response are those that begin where the context has ended (a space belongs to its word).
        count = sum(start >= len(context) for start, _ in read["offset_mapping"])
        expected = causal(metric, read["input_ids"])[-count:]
        assert found["gpt2-coherency"][index] == pytest.approx(np.mean(expected), abs=1e-5)
        assert found["gpt2-coherency-sum"][index] == pytest.approx(sum(expected), abs=1e-4)
    assert not found.cut.any()


@pytest.mark.parametrize("room", [2, 5, 9, 14, 21])
def test_coherency_with_a_cut_context(make, room):
    wide, narrow = make("gpt2_coherency"), make("gpt2_coherency", max_length=room)
    texts, response = DIALOGUES[0]
    context = wide._tokenizer(" ".join(texts))["input_ids"]
    spoken = wide._tokenizer(" " + response)["input_ids"]
    kept = spoken[: room - 1]
    before = context[-max(1, room - len(kept)) :]
    found = score(narrow, [DIALOGUES[0]])
    expected = causal(wide, before + kept)[-len(kept) :]
    assert found["gpt2-coherency-sum"][0] == pytest.approx(sum(expected), abs=1e-4)
    assert found.cut.tolist() == [len(context) + len(spoken) - len(before) - len(kept)]


@pytest.mark.parametrize("batch", [None, "1"])
def test_coherency_of_no_tokens_is_no_score(make, monkeypatch, batch):
    if batch:
        monkeypatch.setenv("COMPERDIAL_BATCH_TOKENS", batch)
    metric = make("gpt2_coherency")
    plain = score(metric)
    real = metric._tokenizer
    empty = ("\u200b", " \u200b")

    class Dropping:
        """A tokenizer that makes nothing of some characters, as those of other models do."""

        def __call__(self, texts, **options):
            found = real(texts, **options)["input_ids"]
            return {"input_ids": [[] if text in empty else ids for text, ids in zip(texts, found, strict=True)]}

    metric.__dict__["_tokenizer"] = Dropping()
    dialogues = [(["Hi!"], "\u200b"), DIALOGUES[0], (["\u200b"], "yes"), DIALOGUES[1], (["\u200b"], "\u200b")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = score(metric, dialogues)
        alone = score(metric, dialogues[:1])
    for name in metric.outputs:
        np.testing.assert_array_equal(np.isnan(found[name]), [True, False, True, False, True])
        np.testing.assert_allclose(found[name][[1, 3]], plain[name][:2], atol=1e-5)
        assert np.isnan(alone[name]).all()
    assert not found.cut.any()


# ---- USR-MLM


@pytest.mark.parametrize(
    "options", [{}, {"history": "all"}, {"masked": "all"}, {"masked": "all", "history": "all"}, {"lowercase": False}]
)
def test_usr_mlm_is_its_definition(make, options):
    import torch

    metric = make("usr_mlm", **options)
    found = score(metric)
    for index, (texts, response) in enumerate(DIALOGUES):
        context = " _eos ".join(texts if options.get("history") == "all" else texts[-1:])
        fold = str if options.get("lowercase") is False else str.lower
        context, response = (" ".join(fold(text).split()) for text in (context, response))
        whole = f"{context} _eos _go {response} _eos"
        read = metric._tokenizer(whole, return_offsets_mapping=True)
        tokens, spans = read["input_ids"], read["offset_mapping"]
        assert (tokens[0], tokens[-1]) == (metric._tokenizer.cls_token_id, metric._tokenizer.sep_token_id)
        low, high = len(f"{context} _eos _go"), len(f"{context} _eos _go {response}")
        places = [
            place
            for place in range(1, len(tokens) - 1)
            if options.get("masked") == "all" or (spans[place][0] >= low and spans[place][1] <= high)
        ]
        expected = []
        for place in places:
            masked = [*tokens[:place], metric._tokenizer.mask_token_id, *tokens[place + 1 :]]
            with torch.no_grad():
                logits = metric._network(input_ids=torch.tensor([masked])).logits[0, place]
            expected.append(log_softmax(logits)[tokens[place]])
        assert found["usr-mlm"][index] == pytest.approx(np.mean(expected), abs=1e-5)
    assert not found.cut.any()


@pytest.mark.parametrize(("room", "words"), [(64, 3), (27, 3), (20, 3), (16, 30)])
def test_usr_mlm_cuts_the_context_first(make, room, words):
    metric = make("usr_mlm", max_length=room)
    texts, response = ["tea " * 12], "tea " * words
    context = metric._tokenizer("tea" + " tea" * 11, add_special_tokens=False)["input_ids"]
    spoken = metric._tokenizer(" tea" * words, add_special_tokens=False)["input_ids"]
    fixed = 2 + len(metric._tokenizer(" _eos _go _eos", add_special_tokens=False)["input_ids"])
    assert score(metric, [(texts, response)]).cut.tolist() == [max(0, len(context) + len(spoken) + fixed - room)]
    inputs, _ = metric._inputs(Batch([response], [[]], [[{"text": texts[0]}]], [[]]))
    assert len(inputs[0].tokens) == min(room, len(context) + len(spoken) + fixed)
    assert list(inputs[0].tokens[inputs[0].start : inputs[0].stop]) == spoken[: room - fixed]


# ---- BERT next sentence


@pytest.mark.parametrize("history", ["all", "last"])
def test_next_sentence_is_its_definition(make, history):
    import torch

    metric = make("bert_nsp", history=history)
    found = score(metric)
    for index, (texts, response) in enumerate(DIALOGUES):
        context = " ".join(text.strip() for text in (texts if history == "all" else texts[-1:]))
        read = metric._tokenizer(context, response, return_tensors="pt")
        with torch.no_grad():
            logits = metric._network(**read).logits[0]
        assert found["bert-nsp"][index] == pytest.approx(math.exp(log_softmax(logits)[0]), abs=1e-5)
        assert found["bert-nsp-log-odds"][index] == pytest.approx(float(logits[0] - logits[1]), abs=1e-5)
    assert not found.cut.any()
    assert len({round(value, 6) for value in found["bert-nsp"]}) == 5


def test_next_sentence_cuts_the_context_from_the_left(make):
    texts, response = ["a b c", "d e f g"], "h i"
    full = score(make("bert_nsp", max_length=12), [(texts, response)])
    cut = score(make("bert_nsp", max_length=9), [(texts, response)])
    by_hand = score(make("bert_nsp", max_length=12), [(["d e f g"], response)])
    assert (full.cut.tolist(), cut.cut.tolist()) == ([0], [3])
    assert cut["bert-nsp"][0] == pytest.approx(by_hand["bert-nsp"][0], abs=1e-6)
    assert full["bert-nsp"][0] != pytest.approx(by_hand["bert-nsp"][0], abs=1e-4)


def test_a_sure_next_sentence_is_not_tied(make, monkeypatch):
    import torch

    metric = make("bert_nsp")
    logits = torch.tensor([[20.0, 0.0], [21.0, 0.0], [0.0, 800.0]])
    monkeypatch.setattr(type(metric._network), "forward", lambda *_, **__: SimpleNamespace(logits=logits))
    found = score(metric, [DIALOGUES[0], DIALOGUES[2], (["a b c"], "d e")])["bert-nsp"]
    assert max(found) < 1
    assert len(set(found)) == 3
    assert min(found) == 0


# ---- all of them


@pytest.mark.parametrize("kind", KINDS)
def test_neither_batches_nor_order_matter(make, monkeypatch, kind):
    metric = make(kind)
    straight = score(metric)
    for seed, tokens in enumerate((1, 70, 300, 100_000)):
        order = np.random.default_rng(seed).permutation(len(DIALOGUES))
        monkeypatch.setenv("COMPERDIAL_BATCH_TOKENS", str(tokens))
        shuffled = score(metric, [DIALOGUES[place] for place in order])
        for name in metric.outputs:
            np.testing.assert_allclose(shuffled[name], straight[name][order], atol=1e-5)
    assert all(straight[name].dtype == np.float64 for name in metric.outputs)
    assert straight.cut.dtype == np.int32


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_asked_twice_has_one_answer(make, kind):
    found = score(make(kind))
    for name, values in found.items():
        assert values[1] == pytest.approx(values[4], rel=1e-12), name
        assert np.isfinite(values).all()


@pytest.mark.parametrize("kind", ["fed", "gpt2_coherency", "usr_mlm"])
def test_slices_of_the_vocabulary_do_not_matter(make, kind, monkeypatch):
    whole = score(make(kind))
    monkeypatch.setattr(_likelihood, "_ROWS", 3)
    for name, values in score(make(kind)).items():
        np.testing.assert_allclose(values, whole[name], atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_bf16_is_near(make, kind):
    exact, rough = score(make(kind)), score(make(kind, dtype="bf16"))
    main = make(kind).outputs[0]
    np.testing.assert_allclose(rough[main], exact[main], atol=0.25)
    assert (rough[main] != exact[main]).any()


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_to_score_gives_nothing(make, kind):
    found = make(kind).score([], histories=[])
    assert {name: values.shape for name, values in found.items()} == dict.fromkeys(make(kind).outputs, (0,))
    assert found.cut.shape == (0,)


@pytest.mark.parametrize(
    ("kind", "model"),
    [("fed", "DialoGPT-large"), ("gpt2_coherency", "gpt2"), ("usr_mlm", "usr-mlm"), ("bert_nsp", "bert-base-uncased")],
)
def test_an_absent_model_is_named(kind, model, tmp_path, monkeypatch):
    monkeypatch.setenv("COMPERDIAL_MODELS", str(tmp_path))
    metric = create(kind)
    assert model in (metric.unavailable() or "")
    assert f"|model:{model}@absent|" in metric.signature()
    with pytest.raises(MissingResourceError, match=model):
        score(metric)


@pytest.mark.parametrize("kind", KINDS)
def test_histories_are_needed(make, kind):
    with pytest.raises(SchemaError, match="needs histories"):
        make(kind).score(["yes"])


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("fed", {"spaces": "some"}, "'some'; expected one of 'kept', 'stripped'"),
        ("fed", {"max_length": 161}, "'max_length' of metric 'fed' is 161; expected a number from [0-9]+ to 160"),
        ("fed", {"max_length": 9}, "is 9; expected a number from [0-9]+ to 160"),
        ("gpt2_coherency", {"max_length": 161}, "is 161; expected a number from 2 to 160"),
        ("gpt2_coherency", {"max_length": 1}, "is 1; expected a number from 2"),
        ("gpt2_coherency", {"separator": "tab"}, "'tab'; expected one of 'space'"),
        ("gpt2_coherency", {"history": "some"}, "'some'; expected one of 'all', 'last'"),
        ("usr_mlm", {"max_length": 65}, "is 65; expected a number from [0-9]+ to 64"),
        ("usr_mlm", {"max_length": 8}, "is 8; expected a number from [0-9]+ to 64"),
        ("usr_mlm", {"masked": "half"}, "'half'; expected one of 'response', 'all'"),
        ("bert_nsp", {"max_length": 65}, "is 65; expected a number from 5 to 64"),
        ("bert_nsp", {"history": "none"}, "'none'; expected one of"),
        ("bert_nsp", {"dtype": "int8"}, "'int8'; expected one of"),
    ],
)
def test_wrong_options(make, kind, options, message):
    with pytest.raises(ConfigError, match=message):
        score(make(kind, **options))


@pytest.mark.parametrize("kind", KINDS)
def test_options_show_in_the_signature(make, kind):
    changed = {
        "fed": [{"spaces": "stripped"}], "gpt2_coherency": [{"separator": "eos"}, {"history": "last"}],
        "usr_mlm": [{"masked": "all"}, {"history": "all"}, {"lowercase": False}], "bert_nsp": [{"history": "last"}],
    }  # fmt: skip
    all_options = [{}, {"dtype": "bf16"}, {"max_length": 50}, *changed[kind]]
    assert len({make(kind, **options).signature() for options in all_options}) == len(all_options)


def test_a_model_of_another_kind_is_refused(folders):
    with pytest.raises(ConfigError, match="has no cls token"):
        score(create("usr_mlm", model=folders["gpt2_coherency"], max_length=64))


def test_a_model_that_changes_its_logits_is_refused(make):
    network = make("gpt2_coherency")._network
    body, head = halves(network)
    assert body is network.transformer and head is network.lm_head

    class Capped:
        base_model, lm_head, device = network.transformer, network.lm_head, network.device

        def __call__(self, **inputs):
            return SimpleNamespace(logits=30 * (network(**inputs).logits / 30).tanh())

    with pytest.raises(ConfigError, match="Capped is not a body with a head"):
        halves(Capped())


def test_positions(make):
    assert [most_tokens(make(kind)._network) for kind in KINDS] == [160, 160, 64, 64]


@pytest.mark.parametrize(
    ("keys", "firsts", "inverse"),
    [("", [], []), ("aba", [0, 1], [0, 1, 0]), ("aab", [0, 2], [0, 0, 1])],
)
def test_unique(keys, firsts, inverse):
    found = unique(keys)
    assert (found[0], found[1].tolist()) == (firsts, inverse)


@given(st.lists(st.integers(0, 9)), st.lists(st.integers(0, 9), min_size=1), st.integers(2, 30), st.integers(0, 1))
def test_fit(context, response, room, least):
    left, right, cut = fit(context, response, room, least)
    assert len(left) + len(right) + cut == len(context) + len(response)
    assert len(left) + len(right) <= room
    assert context[len(context) - len(left) :] == left and response[: len(right)] == right
    assert cut == max(0, len(context) + len(response) - room)
    assert len(right) == len(response) or len(left) == min(least, len(context))
