"""DEnsity on a tiny random BERT: pairs, training that is interrupted and resumed, the Gaussian, the metric, the command."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.numpy import load_file

import tinymodels
from comperdial import models, schema
from comperdial.cli import main
from comperdial.config import load_yaml
from comperdial.config.parameters import Training, TrainingLengths, read_parameters
from comperdial.config.registry import completed
from comperdial.core.errors import ConfigError, FileError, MissingResourceError, SchemaError, UnknownNameError
from comperdial.data.corpora import Dialogue, read_corpus
from comperdial.metrics import create
from comperdial.models import runtime
from comperdial.training import density
from comperdial.training import trained as trained_models
from comperdial.training.pairs import Pairs, Reader
from comperdial.training.selection import Group, SelectionModel
from comperdial.training.trained import Gaussian

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.usefixtures("one_thread")

WORDS = ["i", "like", "green", "tea", "no", "yes", "the", "sea", "book", "read", "what", "do", "you", "day", "rain"]
LENGTHS = {"history": 24, "facts": 10, "response": 8}
PHASES = [
    {"loss": "in-batch", "steps": 3, "batch": 4, "learning_rate": 0.001, "warmup": 1},
    {"loss": "selection", "steps": 4, "batch": 3, "learning_rate": 0.001, "warmup": 1},
    {"loss": "selection", "steps": 5, "batch": 3, "learning_rate": 0.001, "warmup": 2, "contrastive": 1},
]


def dialogues(count: int, *, corpus: str = "talk", facts: bool = True) -> list[Dialogue]:
    random = np.random.default_rng(len(corpus))
    made = []
    for number in range(count):
        texts = tuple(" ".join(random.choice(WORDS, random.integers(2, 7))) for _ in range(random.integers(2, 6)))
        speakers = tuple("AB"[place % 2] for place in range(len(texts)))
        known = {"B": (" ".join(random.choice(WORDS, 3)),)} if facts and number % 2 else {}
        made.append(Dialogue(corpus, str(number), speakers, texts, known))
    return made


@pytest.fixture(scope="session")
def bert(tmp_path_factory):
    return tinymodels.bert(tmp_path_factory.mktemp("tiny") / "bert")


@pytest.fixture(scope="session")
def pairs(bert):
    reader = Reader(runtime.load_tokenizer(models.find(str(bert))), TrainingLengths(**LENGTHS))
    return Pairs([*dialogues(12), *dialogues(12, corpus="other")], reader)


def settings(bert: Path, **changed) -> Training:
    corpora = {"mine": {"format": "jsonl", "path": "mine.jsonl"}}
    entry = {"encoder": str(bert), "corpora": corpora, "phases": PHASES, "lengths": LENGTHS, "negatives": 4}
    return Training(**entry | {"held_out": 6, "check_every": 2} | changed)


def train(bert: Path, folder: Path, **changed) -> Path:
    """Train on invented dialogues; return the model's folder."""
    given = [*dialogues(20), *dialogues(10, corpus="other", facts=False)]
    density.train(
        "tiny", settings(bert, **changed), given, [given[3].texts], folder / "runs", folder / "tiny", origin={}
    )
    return folder / "tiny"


@pytest.fixture(scope="session")
def trained(bert, tmp_path_factory):
    return train(bert, tmp_path_factory.mktemp("trained"))


# Pairs


def test_a_pair_is_an_utterance_and_all_before_it(pairs):
    first, reader = dialogues(12)[0], pairs.reader
    assert len(pairs) == sum(len(one.texts) - 1 for one in [*dialogues(12), *dialogues(12, corpus="other")])
    ids = reader.encode(first.texts)
    begin, end = reader.tokenizer.cls_token_id, reader.tokenizer.sep_token_id
    assert pairs.context(pairs[0], facts=False) == [begin, *ids[0], end]
    assert pairs.response(pairs[0]) == [*ids[1][:7], end]
    context, cut = reader.context([[5] * 20, [6] * 20], [[7] * 8, [8] * 8])
    assert context == [begin, *[7] * 8, 8, 8, end, 5, 5, end, *[6] * 20, end]
    assert cut == 18 + 6


def test_negatives_are_each_once_and_of_other_dialogues_of_the_corpus(pairs):
    for number, pair in enumerate(pairs):
        group = pairs.group(pair, 5, np.random.default_rng(number), facts=False)
        assert group == pairs.group(pair, 5, np.random.default_rng(number), facts=False)
        assert group.candidates[0] == pairs.response(pair)
        assert len(group.candidates) == 6
        others = [one for one in pairs if one.corpus == pair.corpus and one.dialogue != pair.dialogue]
        spoken = [tokens for one in others for tokens in (*one.history, one.answer)]
        allowed = {tuple(pairs.reader.response(tokens)[0]) for tokens in spoken}
        assert {tuple(candidate) for candidate in group.candidates[1:]} <= allowed


def test_dialogues_in_evaluation_data_are_removed():
    given = [
        Dialogue("a", "0", ("A", "B"), ("we went to the old harbour and watched the boats come in all night", "nice")),
        Dialogue("a", "1", ("A", "B"), ("hello", "how are you")),
        Dialogue("b", "0", ("A", "B"), ("don't you know that we can't", "see the boats come in from here at night")),
    ]
    # Cut, tokenised and spelt otherwise, and across two utterances.
    evaluated = [
        ["We went to the old harbour", "and watched the boats , come in all night !"],
        ["do n't you know that we can 't see the boats come in from here"],
    ]
    assert [dialogue.id for dialogue in density.without_overlap(given, evaluated, 10)] == ["1"]
    assert density.without_overlap(given, evaluated, 20) == given


# Training


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_a_resumed_training_gives_the_weights_of_an_uninterrupted_one(bert, tmp_path, monkeypatch, dtype):
    whole = train(bert, tmp_path / "whole", dtype=dtype, dropout=0.1)
    calls, stops = 0, {1, 4, 6, 9, 14, 17}
    plain = torch.optim.AdamW.step

    def interrupted(*arguments):
        nonlocal calls
        calls += 1
        if calls in stops:
            raise KeyboardInterrupt
        return plain(*arguments)

    monkeypatch.setattr(torch.optim.AdamW, "step", interrupted)
    for _ in stops:
        with pytest.raises(KeyboardInterrupt):
            train(bert, tmp_path / "parts", dtype=dtype, dropout=0.1)
    parts = train(bert, tmp_path / "parts", dtype=dtype, dropout=0.1)
    assert (parts / "weights.safetensors").read_bytes() == (whole / "weights.safetensors").read_bytes()
    logs = [
        [
            [{key: value for key, value in row.items() if key != "seconds"} for row in phase["log"]]
            for phase in json.loads((folder / "card.json").read_text())["phases"]
        ]
        for folder in (whole, parts)
    ]
    assert logs[0] == logs[1]
    assert [row["step"] for row in logs[0][2]] == [2, 4, 5]


def test_a_killed_training_is_resumed(bert, trained, tmp_path):
    """The process ends without any clean-up in the third phase, as when the machine stops."""
    killed = f"""
import os, sys, torch
sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
from test_density import train
torch.set_num_threads(1)
plain, calls = torch.optim.AdamW.step, []
def step(*arguments):
    calls.append(1)
    return os._exit(9) if len(calls) == 11 else plain(*arguments)
torch.optim.AdamW.step = step
train({str(bert)!r}, Path({str(tmp_path)!r}))
"""
    assert subprocess.run([sys.executable, "-c", killed], check=False, cwd=ROOT / "tests").returncode == 9
    assert len(list((tmp_path / "runs").glob("*.pt"))) == 3
    assert not (tmp_path / "tiny").exists()
    resumed = train(bert, tmp_path)
    assert (resumed / "weights.safetensors").read_bytes() == (trained / "weights.safetensors").read_bytes()


def test_models_that_begin_alike_share_their_phases(bert, tmp_path):
    train(bert, tmp_path)
    train(bert, tmp_path, phases=[*PHASES[:2], {**PHASES[2], "contrastive": 0}])
    assert len(list((tmp_path / "runs").iterdir())) == 4


def test_training_changes_the_layers_and_not_the_tables(bert, trained):
    weights = load_file(trained / "weights.safetensors")
    start = dict(SelectionModel(models.find(str(bert))).named_parameters())
    assert not [name for name in weights if "word_embeddings" in name or "position_embeddings" in name]
    changed = [name for name, value in weights.items() if not np.allclose(start[name].detach(), value, atol=1e-4)]
    assert any(name.startswith("encoder.encoder.layer.0.") for name in changed)


@pytest.mark.parametrize("loss", ["in_batch_loss", "selection_loss"])
def test_a_loss_that_is_not_finite_stops_training(bert, tmp_path, monkeypatch, loss):
    plain = getattr(density, loss)
    monkeypatch.setattr(density, loss, lambda *arguments: plain(*arguments) * torch.nan)
    with pytest.raises(FloatingPointError, match="the loss is nan in step 0"):
        train(bert, tmp_path)


def test_the_losses_are_equations_1_and_4():
    scores = torch.tensor([2.0, 1.0, 0.5, -1.0, 3.0])
    by_hand = -np.log(np.exp(2) / np.exp([2, 1, 0.5]).sum()), -np.log(np.exp(-1) / np.exp([-1, 3]).sum())
    assert density.selection_loss(scores, [3, 2]).item() == pytest.approx(np.mean(by_hand))
    features = np.random.default_rng(1).normal(size=(6, 4))
    right = np.array([True, False, True, False, True, False])
    z = features / np.linalg.norm(features, axis=1, keepdims=True)
    terms = []
    for i in np.flatnonzero(right):
        others = [a for a in range(6) if a != i]
        total = sum(np.exp(z[i] @ z[a] / 0.1) for a in others)
        terms.append(-np.mean([np.log(np.exp(z[i] @ z[p] / 0.1) / total) for p in others if right[p]]))
    found = density.contrastive_loss(torch.tensor(features), torch.tensor(right), 0.1)
    assert found.item() == pytest.approx(np.mean(terms))


def test_candidates_read_together_are_as_read_alone(bert, pairs):
    model = SelectionModel(models.find(str(bert)))
    model.start(1)
    model.eval()
    groups = [pairs.group(pair, 4, np.random.default_rng(1), facts=True) for pair in pairs[:4]]
    with torch.inference_mode():
        features, scores = model(groups)
        alone = [model([Group(group.context, [candidate])]) for group in groups for candidate in group.candidates]
    torch.testing.assert_close(features, torch.cat([found for found, _ in alone]), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(scores, torch.cat([found for _, found in alone]), rtol=1e-4, atol=1e-5)


# The metric

HISTORIES = [["hello you", "what do you like"], ["hello you", "what do you like"], ["the sea"], ["i read"]]
RESPONSES = ["i like tea", "no book today", "i like tea", "good day"]
FACTS = [["green tea"], ["green tea"], [], ["red book", "rain"]]


def distances(features: np.ndarray, gaussian: Gaussian) -> tuple[float, float]:
    shift = features.astype(float) - gaussian.mean
    inverse = np.linalg.pinv(gaussian.covariance, rcond=1e-10, hermitian=True)
    return float(np.sqrt(shift @ inverse @ shift)), float(np.linalg.norm(shift))


@pytest.mark.parametrize("facts", [False, True])
def test_the_metric_is_the_plain_computation_of_each_item(trained, facts):
    kept = [0, 1, 3] if facts else [0, 1, 2, 3]
    found = create("density", trained=str(trained), facts=facts).score(
        [RESPONSES[item] for item in kept], histories=[HISTORIES[item] for item in kept],
        facts=[FACTS[item] for item in kept] if facts else None,
    )  # fmt: skip
    model = trained_models.load(str(trained))
    gaussian, tokenizer = model.gaussians["facts" if facts else "plain"], model.reader.tokenizer
    end = [tokenizer.sep_token_id]

    def ids(texts):
        return [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]

    for row, item in enumerate(kept):
        pieces = [*([*ids(FACTS[item]), end] if facts else []), *(tokens + end for tokens in ids(HISTORIES[item]))]
        context = [tokenizer.cls_token_id, *(token for tokens in pieces for token in tokens)]
        with torch.inference_mode():
            feature, score = model.network.eval()([Group(context, [ids([RESPONSES[item]])[0] + end])])
        far, near = distances(feature[0].numpy(), gaussian)
        assert found["density"][row] == pytest.approx(-far, rel=1e-3)
        assert found["euclidean"][row] == pytest.approx(-near, rel=1e-3)
        assert found["classifier"][row] == pytest.approx(score.item(), rel=1e-3, abs=1e-5)


def test_the_gaussian_is_numpy_s_and_survives_its_file(bert, pairs, trained):
    model = trained_models.load(str(trained))
    (gaussian, count) = density.fit(model.network, pairs, 1)["plain"]
    assert count == len(pairs)
    rows = [Group(pairs.context(pair, facts=False), [pairs.response(pair)]) for pair in pairs]
    with torch.inference_mode():
        features = torch.cat([model.network([row])[0] for row in rows]).double().numpy()
    np.testing.assert_allclose(gaussian.mean, features.mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(gaussian.covariance, np.cov(features, rowvar=False, bias=True), atol=1e-5)
    saved = load_file(trained / "gaussians.safetensors")["plain.covariance"]
    np.testing.assert_array_equal(saved, model.gaussians["plain"].covariance[np.tril_indices(len(gaussian.mean))])
    assert (gaussian.mahalanobis(features[:1])[0], gaussian.euclidean(features[:1])[0]) == pytest.approx(
        distances(features[0], gaussian)
    )


def test_the_signature_names_model_and_encoder(trained, bert):
    signature = create("density", trained=str(trained)).signature()
    assert f"trained:{trained_models.label(str(trained))}|facts:no|dtype:fp32" in signature
    assert f"encoder:{models.find(str(bert)).name}@{models.find(str(bert)).digest}" in signature


def test_what_is_cut_is_counted(trained):
    found = create("density", trained=str(trained)).score(["tea " * 20], histories=[["sea " * 40]])
    assert found.cut.tolist() == [20 - 7 + 41 - 24]


def test_the_card_names_corpora_recall_and_licences(trained):
    card = json.loads((trained / "card.json").read_text())
    assert card["corpora"]["talk"]["dialogues"] == 20
    assert set(card["held-out"]) == {"all", "talk", "other"}
    assert card["features"].keys() == {"plain", "facts"}
    assert [phase["loss"] for phase in card["phases"]] == ["in-batch", "selection", "selection"]
    text = (trained / "README.md").read_text()
    assert "Recall@1" in text
    assert "licence: not stated" in text


def test_a_model_is_found_here_or_in_the_repository(trained, tmp_path, monkeypatch):
    repository, elsewhere = tmp_path / "repository", tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setattr(trained_models, "__file__", str(repository / "src/comperdial/training/trained.py"))
    assert "not present in data/models/mine" in create("density", trained="mine").unavailable()
    assert "mine@absent" in create("density", trained="mine").signature()
    shutil.copytree(trained, repository / "data/models/mine")
    assert create("density", trained="mine").unavailable() is None
    # One of that name in the current folder goes first.
    (elsewhere / "data/models/mine").mkdir(parents=True)
    assert "not present in data/models/mine" in create("density", trained="mine").unavailable()


def test_an_altered_model_is_refused(trained, tmp_path):
    folder = shutil.copytree(trained, tmp_path / "copy")
    weights = folder / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    with pytest.raises(MissingResourceError, match=r"weights\.safetensors of trained model .* is altered"):
        trained_models.load(str(folder))
    weights.write_bytes(b"")
    assert "is altered" in create("density", trained=str(folder)).unavailable()
    card = json.loads((folder / "card.json").read_text())
    card["settings"]["attention"] = "full"
    (folder / "card.json").write_text(json.dumps(card))
    assert "has attention 'full', which only older versions run" in create("density", trained=str(folder)).unavailable()
    with pytest.raises(MissingResourceError, match="attention 'full'"):
        trained_models.load(str(folder))
    (folder / "card.json").write_text('{"form": 1}')
    with pytest.raises(FileError, match="not the card of a trained model"):
        create("density", trained=str(folder)).unavailable()


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
        ("jsonl", '{"turns": []}', SchemaError, "line 1: utterances is missing"),
        ("jsonl", '{"utterances": ["a", "b"], "facts": ["c"]}', SchemaError, r"line 1: facts is \['c'\]"),
        ("csv", "speaker,text\nA,Hi\n", SchemaError, "record 1: no 'dialogue_id'"),
        ("dailydialog", "Hi . __eou__\n", FileError, "no dialogue of two utterances"),
        (
            "topical_chat",
            '{"t1": {}}',
            SchemaError,
            r"KeyError .'content'. while reading; expected the format 'topical_chat'",
        ),
        ("daily", "", UnknownNameError, "Did you mean 'dailydialog'"),
    ],
)
def test_what_is_no_corpus_is_refused(tmp_path, format, text, error, message):
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(error, match=message):
        read_corpus("c", format, path)


# The command


def write_params(bert: Path, **changed) -> None:
    entry = settings(bert, phases=[{**PHASES[1], "steps": 2}]).model_dump(exclude_none=True) | changed
    params = completed(load_yaml(ROOT / "params.yaml")) | {"training": {"mine": entry}}
    Path("params.yaml").write_text(json.dumps(params))


def test_train_trains_an_entry_of_params(bert, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps({"utterances": one.texts, "facts": one.facts}) for one in dialogues(20)]
    Path("mine.jsonl").write_text("\n".join(lines))
    Path("data").mkdir()
    Path("data/sources.yaml").write_text("files: {}\ndatasets: {}\n")
    write_params(bert)
    assert main(["train", "mine"]) == 0
    assert "data/models/mine: recall@1" in capsys.readouterr().out
    assert create("density", trained="mine").unavailable() is None
    assert main(["train", "mien"]) == 1
    assert "Did you mean 'mine'" in capsys.readouterr().err
    write_params(bert, held_out=20)
    assert main(["train", "mine"]) == 1
    assert "20 dialogues are left to train on; expected more than the 20" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"phases": [{"loss": "in-batch", "steps": 1, "batch": 2, "learning_rate": 1}]}, "trains no selection"),
        ({"corpora": {"a": {"format": "csv"}}}, "neither of `source` and `path`"),
        ({"negatives": 0}, "negatives"),
    ],
)
def test_wrong_settings_are_refused(change, message):
    params = completed(load_yaml(ROOT / "params.yaml"))
    params["training"] = {"density": {**params["training"]["density"], **change}}
    with pytest.raises(ConfigError, match=message):
        read_parameters(params)
