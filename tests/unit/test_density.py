"""DEnsity on a tiny random BERT: pairs, training that is taken up again, the Gaussian, the metric."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.spatial.distance import mahalanobis

import tinymodels
from comperdial import models, schema
from comperdial.cli import main
from comperdial.config import load_yaml
from comperdial.config.parameters import read_parameters
from comperdial.config.registry import completed
from comperdial.core.errors import ConfigError, FileError, MissingResourceError, SchemaError, UnknownNameError
from comperdial.data.corpora import Dialogue, read_corpus
from comperdial.metrics import create
from comperdial.models import runtime
from comperdial.training import density, loop, selection
from comperdial.training import trained as models_here
from comperdial.training.gaussian import RCOND, Gaussian, Moments
from comperdial.training.overlap import without_overlap
from comperdial.training.pairs import Nearest, Negatives, Pairs
from comperdial.training.reading import Lengths, Reader
from comperdial.training.selection import Architecture, Group

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.usefixtures("one_thread")

WORDS = ["i", "like", "green", "tea", "no", "yes", "the", "sea", "book", "read", "what", "do", "you", "day", "rain"]
LENGTHS = Lengths(history=24, facts=10, response=8)
KINDS = Negatives(random=2, near=1, dialogue=1, altered=1)


def dialogues(count: int, *, corpus: str = "talk", facts: bool = True) -> list[Dialogue]:
    random = np.random.default_rng(len(corpus))
    found = []
    for number in range(count):
        texts = tuple(" ".join(random.choice(WORDS, random.integers(2, 7))) for _ in range(random.integers(2, 6)))
        speakers = tuple("AB"[place % 2] for place in range(len(texts)))
        told = {"B": (" ".join(random.choice(WORDS, 3)),)} if facts and number % 2 else {}
        found.append(Dialogue(corpus, str(number), speakers, texts, told))
    return found


@pytest.fixture(scope="session")
def bert(tmp_path_factory):
    return tinymodels.bert(tmp_path_factory.mktemp("tiny") / "bert")


@pytest.fixture(scope="session")
def pairs(bert):
    reader = Reader(runtime.load_tokenizer(models.find(str(bert))), LENGTHS)
    return Pairs([*dialogues(12), *dialogues(12, corpus="other")], reader)


def settings(bert: Path, **said) -> density.Settings:
    phases = (
        loop.Phase("in-batch", 3, 4, 0.001, warmup=1),
        loop.Phase("selection", 4, 3, 0.001, warmup=1),
        loop.Phase("selection", 5, 3, 0.001, warmup=2, contrastive=1.0),
    )
    told = {"phases": phases, "encoder": str(bert), "lengths": LENGTHS, "negatives": KINDS, "held_out": 6}
    return density.Settings(**{**told, "check_every": 2, **said})


@pytest.fixture(scope="session")
def trained(bert, tmp_path_factory):
    """Return a trained model's folder."""
    root = tmp_path_factory.mktemp("trained")
    given = [*dialogues(20), *dialogues(10, corpus="other", facts=False)]
    card = density.train("tiny", settings(bert), given, [given[3].texts], root / "runs", root / "tiny", origin={})
    assert card["corpora"]["talk"]["removed for overlap"] >= 0
    return root / "tiny"


# Pairs


def test_a_pair_is_an_utterance_and_all_before_it(pairs):
    first = pairs.dialogues[0]
    assert len(pairs) == sum(len(dialogue.texts) - 1 for dialogue in pairs.dialogues)
    ids = [pairs.reader.encode([text])[0] for text in first.texts]
    begin, end = pairs.reader.tokenizer.cls_token_id, pairs.reader.tokenizer.sep_token_id
    assert pairs.context(0, facts=False) == [begin, *ids[0], end]
    assert pairs.response(0) == [*ids[1][: LENGTHS.response - 1], end]


def test_facts_are_the_speaker_s_own_and_history_loses_its_beginning(pairs):
    reader = pairs.reader
    context, cut = reader.context([[5] * 20, [6] * 20], [[7] * 8, [8] * 8])
    end = reader.tokenizer.sep_token_id
    assert context == [reader.tokenizer.cls_token_id, *[7] * 8, 8, 8, end, 5, 5, end, *[6] * 20, end]
    assert cut == 18 + 6
    told = [pair for pair in range(len(pairs)) if pairs.has_facts(pair)]
    for pair in told:
        dialogue = pairs.dialogues[pairs.owner[pairs.answers[pair]]]
        place = pairs.answers[pair] - np.flatnonzero(pairs.owner == pairs.owner[pairs.answers[pair]])[0]
        assert dialogue.speakers[place] in dialogue.facts
    assert told


@pytest.mark.parametrize("kinds", [KINDS, Negatives(random=6, near=0, dialogue=0, altered=0)])
def test_negatives_are_others_and_each_once(pairs, bert, kinds):
    model = selection.make(models.find(str(bert)), Architecture())
    table = model.encoder.get_input_embeddings().weight.detach().numpy()
    near = Nearest(pairs, table, 1)
    for pair in range(len(pairs)):
        group = pairs.group(pair, kinds, np.random.default_rng(pair), facts=False, near=near)
        again = pairs.group(pair, kinds, np.random.default_rng(pair), facts=False, near=near)
        assert group == again
        assert group.candidates[0] == pairs.response(pair)
        assert len(group.candidates) == 1 + kinds.total
        assert max(map(len, group.candidates)) <= LENGTHS.response


def test_random_negatives_are_of_other_dialogues_of_the_corpus(pairs):
    kinds = Negatives(random=3, near=0, dialogue=0, altered=0)
    for pair in range(len(pairs)):
        answer = pairs.answers[pair]
        allowed = {
            tuple(pairs.reader.response(pairs.utterances[other])[0])
            for other in pairs.peers(answer)
            if pairs.owner[other] != pairs.owner[answer]
        }
        group = pairs.group(pair, kinds, np.random.default_rng(pair), facts=False)
        assert {tuple(candidate) for candidate in group.candidates[1:]} <= allowed


def test_dialogues_in_evaluation_data_are_removed():
    long = "we went to the old harbour and watched the boats come in all night"
    given = [
        Dialogue("a", "0", ("A", "B"), (long, "nice")),
        Dialogue("a", "1", ("A", "B"), ("hello", "how are you")),
        Dialogue("b", "0", ("A", "B"), ("don't you know that we can't", "see the boats come in from here at night")),
    ]
    # Cut, tokenised and spelt otherwise, and across two utterances.
    evaluated = [
        ["We went to the old harbour", "and watched the boats , come in all night !"],
        ["do n't you know that we can 't see the boats come in from here"],
    ]
    left, removed = without_overlap(given, evaluated, 10)
    assert [dialogue.id for dialogue in left] == ["1"]
    assert removed == {"a": 1, "b": 1}
    assert without_overlap(given, evaluated, 20)[1] == {}


# Training


def run(bert, folder, stops=(), **said):
    """Train a model, interrupted and taken up again at some steps; return its weights."""
    told = settings(bert, **said)
    plan = loop.Plan(told.phases, told.negatives, told.seed, told.facts, told.dtype, told.check_every, save_every=2)
    reader = Reader(runtime.load_tokenizer(models.find(str(bert))), LENGTHS)
    made = Pairs(dialogues(15), reader)
    for stop in (*stops, None):
        model = selection.make(models.find(str(bert)), Architecture(), told.dropout)
        done = loop.train(
            model, made, density.choices(made, 1), plan, folder, settled={},
            stop=lambda phase, step, at=stop: (phase, step) == at,
        )  # fmt: skip
        assert len(done) == (3 if stop is None else stop[0])
    return {name: weight.detach().clone() for name, weight in model.trained().items()}, done


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_interrupted_and_taken_up_again_gives_the_same_weights(bert, tmp_path, dtype):
    whole, log = run(bert, tmp_path / "whole", dtype=dtype, dropout=0.1)
    stops = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 3), (2, 1), (2, 4)]
    parts, _ = run(bert, tmp_path / "parts", stops, dtype=dtype, dropout=0.1)
    assert whole.keys() == parts.keys()
    for name, weight in whole.items():
        assert torch.equal(weight, parts[name]), name
    assert [phase["loss"] for phase in log] == ["in-batch", "selection", "selection"]
    assert log[-1]["log"][-1]["step"] == 5


def test_tables_of_words_and_positions_stay_as_they_are(bert, tmp_path):
    trained, _ = run(bert, tmp_path)
    assert not [name for name in trained if "word_embeddings" in name or "position_embeddings" in name]
    model = selection.make(models.find(str(bert)), Architecture())
    changed = [name for name, weight in model.trained().items() if not torch.equal(weight, trained[name])]
    assert any(name.startswith("encoder.encoder.layer.0.") for name in changed)


@pytest.mark.parametrize("phase", [0, 1])
def test_a_loss_that_is_no_number_stops_training(bert, tmp_path, monkeypatch, phase):
    name = ("in_batch_loss", "selection_loss")[phase]
    plain = getattr(loop, name)
    monkeypatch.setattr(loop, name, lambda *args: plain(*args) * torch.nan)
    with pytest.raises(FloatingPointError, match="the loss is nan in step 0"):
        run(bert, tmp_path)


def test_models_that_begin_alike_share_their_phases(bert, tmp_path):
    run(bert, tmp_path)
    before = sorted(path.name for path in tmp_path.iterdir())
    phases = settings(bert).phases
    run(bert, tmp_path, phases=(*phases[:2], replace(phases[2], contrastive=0.0)))
    after = sorted(path.name for path in tmp_path.iterdir())
    assert len(before) == 3
    assert len(after) == 4


def test_the_losses_are_equations_1_and_4():
    scores = torch.tensor([2.0, 1.0, 0.5, -1.0, 3.0])
    by_hand = -np.log(np.exp(2) / np.exp([2, 1, 0.5]).sum()), -np.log(np.exp(-1) / np.exp([-1, 3]).sum())
    assert loop.selection_loss(scores, [3, 2]).item() == pytest.approx(np.mean(by_hand))
    random = np.random.default_rng(1)
    features = random.normal(size=(6, 4))
    right = np.array([True, False, True, False, True, False])
    z = features / np.linalg.norm(features, axis=1, keepdims=True)
    terms = []
    for i in np.flatnonzero(right):
        others = [a for a in range(6) if a != i]
        total = sum(np.exp(z[i] @ z[a] / 0.1) for a in others)
        positives = [p for p in others if right[p]]
        terms.append(-np.mean([np.log(np.exp(z[i] @ z[p] / 0.1) / total) for p in positives]))
    found = loop.contrastive_loss(torch.tensor(features), torch.tensor(right), 0.1)
    assert found.item() == pytest.approx(np.mean(terms))


@pytest.mark.parametrize("feature", ["pair", "cls"])
def test_candidates_read_together_are_as_read_alone(bert, pairs, feature):
    attention = "shared" if feature == "pair" else "full"
    model = selection.make(models.find(str(bert)), Architecture(attention, feature))
    model.start(1)
    model.network.eval()
    groups = [pairs.group(pair, KINDS, np.random.default_rng(pair), facts=True) for pair in range(4)]
    with torch.inference_mode():
        features, scores = model.read(groups)
        alone = [model.read([Group(group.context, [candidate])]) for group in groups for candidate in group.candidates]
    torch.testing.assert_close(features, torch.cat([found for found, _ in alone]), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(scores, torch.cat([found for _, found in alone]), rtol=1e-4, atol=1e-5)


# Gaussian


@pytest.mark.parametrize("rank", [7, 3])
def test_moments_and_distances_are_numpy_s_and_scipy_s(rank):
    random = np.random.default_rng(rank)
    features = random.normal(size=(200, rank)) @ random.normal(size=(rank, 7)) + 1000
    moments = Moments(7)
    for part in np.split(features, [1, 50, 50, 173]):
        moments.add(part)
    found = moments.gaussian()
    np.testing.assert_allclose(found.mean, features.mean(axis=0), rtol=1e-10)
    expected = np.cov(features, rowvar=False, bias=True)
    np.testing.assert_allclose(found.covariance, expected, rtol=0, atol=1e-10 * np.abs(expected).max())
    inverse = np.linalg.pinv(found.covariance, rcond=RCOND, hermitian=True)
    asked = features[:9] + random.normal(size=(9, rank)) @ np.linalg.svd(features - found.mean)[2][:rank]
    expected = [mahalanobis(row, found.mean, inverse) for row in asked]
    np.testing.assert_allclose(found.mahalanobis(asked), expected, rtol=1e-8)
    np.testing.assert_allclose(found.euclidean(asked), np.linalg.norm(asked - found.mean, axis=1), rtol=1e-8)
    np.testing.assert_array_equal(models_here.unpacked(models_here.packed(found.covariance)), found.covariance)


def test_one_feature_has_no_covariance():
    moments = Moments(3)
    moments.add(np.ones((1, 3)))
    with pytest.raises(ConfigError, match="1 features; expected two or more"):
        moments.gaussian()


# The metric

HISTORIES = [["hello you", "what do you like"], ["hello you", "what do you like"], ["the sea"], ["i read"]]
RESPONSES = ["i like tea", "no book today", "i like tea", "good day"]
FACTS = [["green tea"], ["green tea"], [], ["red book", "rain"]]


@pytest.mark.parametrize("facts", [False, True])
def test_the_metric_is_the_plain_computation_of_each_item(trained, facts):
    metric = create("density", trained=str(trained), facts=facts)
    given = FACTS if facts else None
    kept = [0, 1, 3] if facts else [0, 1, 2, 3]
    found = metric.score(
        [RESPONSES[item] for item in kept], histories=[HISTORIES[item] for item in kept],
        facts=[given[item] for item in kept] if given else None,
    )  # fmt: skip
    model = models_here.load(str(trained))
    gaussian: Gaussian = model.gaussians["facts" if facts else "plain"]
    tokenizer = model.reader.tokenizer
    for row, item in enumerate(kept):

        def ids(text):
            return tokenizer(text, add_special_tokens=False)["input_ids"]

        end = tokenizer.sep_token_id
        context = [tokenizer.cls_token_id]
        if facts:
            context += [token for fact in FACTS[item] for token in ids(fact)] + [end]
        for text in HISTORIES[item]:
            context += [*ids(text), end]
        with torch.inference_mode():
            model.network.network.eval()
            feature, score = model.network.read([Group(context, [[*ids(RESPONSES[item]), end]])])
        shift = feature[0].double().numpy() - gaussian.mean
        inverse = np.linalg.pinv(gaussian.covariance, rcond=RCOND, hermitian=True)
        assert found["density"][row] == pytest.approx(-np.sqrt(shift @ inverse @ shift), rel=1e-3)
        assert found["euclidean"][row] == pytest.approx(-np.linalg.norm(shift), rel=1e-3)
        assert found["classifier"][row] == pytest.approx(score.item(), rel=1e-3, abs=1e-5)


def test_the_signature_names_model_and_encoder(trained, bert):
    metric = create("density", trained=str(trained))
    assert f"trained:{models_here.label(str(trained))}|facts:no|dtype:fp32" in metric.signature()
    assert f"encoder:{models.find(str(bert)).name}@{models.find(str(bert)).digest}" in metric.signature()


def test_what_is_cut_is_counted(trained):
    found = create("density", trained=str(trained)).score(["tea " * 20], histories=[["sea " * 40]])
    assert found.cut.tolist() == [20 - 7 + 41 - 24]


def test_the_card_says_what_it_is_made_of(trained):
    card = json.loads((trained / "card.json").read_text())
    assert {"encoder", "settings", "corpora", "pairs", "held-out", "phases", "features", "seconds", "files"} <= set(
        card
    )
    assert card["corpora"]["talk"]["dialogues"] == 20
    assert set(card["held-out"]) == {"all", "talk", "other"}
    assert card["features"].keys() == {"plain", "facts"}
    text = (trained / "README.md").read_text()
    assert "Recall@1" in text
    assert "licence: not stated" in text


def test_a_model_that_is_not_there_is_not_run(trained, tmp_path):
    absent = create("density", trained=str(tmp_path / "absent"))
    assert "is not present" in absent.unavailable()
    assert "absent@absent" in absent.signature()
    assert create("density", trained=str(trained)).unavailable() is None


def test_a_model_is_found_here_or_in_the_repository(trained, tmp_path, monkeypatch):
    repository, elsewhere = tmp_path / "repository", tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setattr(models_here, "__file__", str(repository / "src/comperdial/training/trained.py"))
    assert "not present in data/models/mine" in create("density", trained="mine").unavailable()
    shutil.copytree(trained, repository / "data/models/mine")
    assert create("density", trained="mine").unavailable() is None
    # One of that name in the current folder goes first.
    (elsewhere / "data/models/mine").mkdir(parents=True)
    assert "not present in data/models/mine" in create("density", trained="mine").unavailable()


def test_an_altered_model_is_refused(trained, tmp_path):
    for path in trained.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    weights = tmp_path / models_here.WEIGHTS
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    with pytest.raises(MissingResourceError, match=r"weights\.safetensors of trained model .* is altered"):
        models_here.load(str(tmp_path))
    weights.write_bytes(b"")
    assert "is altered" in create("density", trained=str(tmp_path)).unavailable()
    (tmp_path / "card.json").write_text('{"form": 1}')
    with pytest.raises(FileError, match="no card of a trained model"):
        create("density", trained=str(tmp_path)).unavailable()


# Corpora


@pytest.mark.parametrize(
    ("format", "name", "text", "expected"),
    [
        ("dailydialog", "a.txt", "Hi . __eou__ Good day . __eou__\n", [(("A", "B"), ("Hi .", "Good day ."), {})]),
        (
            "synthetic_persona_chat", "a.csv",
            'user 1 personas,user 2 personas,Best Generated Conversation\n'
            '"I fish.\nI sail.",I cook.,"User 1: Hi\nUser 2: Hello\nthere"\n'
            'I fish.,I cook.,"User 1: Hi [name]\nUser 2: Hello"\n',
            [(("User 1", "User 2"), ("Hi", "Hello there"), {"User 1": ("I fish.", "I sail."), "User 2": ("I cook.",)})],
        ),
        (
            "topical_chat", "a.json",
            '{"t1": {"content": [{"agent": "agent_1", "message": "Hi"}, {"agent": "agent_1", "message": "you"}, '
            '{"agent": "agent_2", "message": "Yes"}]}}',
            [(("agent_1", "agent_2"), ("Hi you", "Yes"), {})],
        ),
        (
            "jsonl", "a.jsonl", '{"utterances": ["Hi", "Yes"], "facts": {"B": ["I cook."]}}\n\n'
            '{"utterances": [{"speaker": "x", "text": "Hi"}, {"speaker": "y", "text": "Yes"}]}\n',
            [(("A", "B"), ("Hi", "Yes"), {"B": ("I cook.",)}), (("x", "y"), ("Hi", "Yes"), {})],
        ),
        ("csv", "a.csv", "dialogue_id,speaker,text\n1,x,Hi\n2,x,No\n1,y,Yes\n", [(("x", "y"), ("Hi", "Yes"), {})]),
    ],
)  # fmt: skip
def test_corpora(tmp_path, format, name, text, expected):
    (tmp_path / name).write_text(text)
    found = read_corpus("c", format, tmp_path / name)
    assert [(dialogue.speakers, dialogue.texts, dict(dialogue.facts)) for dialogue in found] == expected


def test_tables_of_a_data_set_are_a_corpus(tmp_path):
    said = [{"speaker": "A", "text": "Hi"}, {"speaker": "B", "text": "Hello"}, {"speaker": "A", "text": "Tea?"}]
    rows = [("1", "d", 0, said[:1], ["Hello"], []), ("2", "d", 1, said, ["Yes"], ["I like tea."])]
    columns = ["context_id", "dialogue_id", "turn", "history", "references", "facts"]
    frame = pd.DataFrame(rows, columns=columns).assign(dataset="mine")
    schema.write(tmp_path / "contexts.parquet", frame, "contexts")
    (found,) = read_corpus("c", "tables", tmp_path)
    assert found.texts == ("Hi", "Hello", "Tea?", "Yes")
    assert found.speakers == ("A", "B", "A", "B")
    assert found.facts == {"B": ("I like tea.",)}


@pytest.mark.parametrize(
    ("format", "text", "error", "message"),
    [
        ("jsonl", '{"turns": []}', SchemaError, "line 1: no list of utterances"),
        ("jsonl", '{"utterances": ["a", "b"], "facts": ["c"]}', SchemaError, "line 1: facts are"),
        ("csv", "speaker,text\nA,Hi\n", SchemaError, "record 1: no 'dialogue_id'"),
        ("dailydialog", "Hi . __eou__\n", FileError, "no dialogue of two utterances"),
        ("topical_chat", '{"t1": {}}', SchemaError, "t1: no conversation"),
        ("daily", "", UnknownNameError, "Did you mean 'dailydialog'"),
    ],
)
def test_what_is_no_corpus_is_refused(tmp_path, format, text, error, message):
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(error, match=message):
        read_corpus("c", format, path)


def test_too_few_dialogues_are_refused(bert, tmp_path):
    with pytest.raises(ConfigError, match="5 dialogues are left to train on; expected more than the 6"):
        density.train("x", settings(bert), dialogues(5), [], tmp_path, tmp_path / "x", origin={})


# The command


def test_train_trains_an_entry_of_params(bert, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps({"utterances": dialogue.texts, "facts": dialogue.facts}) for dialogue in dialogues(20)]
    Path("mine.jsonl").write_text("\n".join(lines))
    (tmp_path / "data").mkdir()
    Path("data/sources.yaml").write_text("files: {}\ndatasets: {}\n")
    entry = {
        "encoder": str(bert), "corpora": {"mine": {"format": "jsonl", "path": "mine.jsonl"}}, "held_out": 5,
        "lengths": {"history": 24, "facts": 10, "response": 8}, "negatives": {"random": 2, "near": 0},
        "phases": [{"loss": "selection", "steps": 2, "batch": 2, "learning_rate": 0.001}],
    }  # fmt: skip
    params = completed(load_yaml(ROOT / "params.yaml")) | {"training": {"mine": entry}}
    Path("params.yaml").write_text(json.dumps(params))
    assert main(["train", "mine"]) == 0
    assert "data/models/mine: recall@1" in capsys.readouterr().out
    metric = create("density", trained="mine")
    assert metric.unavailable() is None
    assert main(["train", "mien"]) == 1
    assert "Did you mean 'mine'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"phases": [{"loss": "in-batch", "steps": 1, "batch": 2, "learning_rate": 1}]}, "trains no selection"),
        ({"feature": "cls"}, "expected attention 'full'"),
        ({"corpora": {"a": {"format": "csv"}}}, "neither of `source` and `path`"),
        ({"negatives": {"random": 0, "near": 0, "dialogue": 0, "altered": 0}}, "no negative responses"),
    ],
)
def test_wrong_settings_are_refused(change, message):
    params = completed(load_yaml(ROOT / "params.yaml"))
    params["training"] = {"density": {**params["training"]["density"], **change}}
    with pytest.raises(ConfigError, match=message):
        read_parameters(params)
