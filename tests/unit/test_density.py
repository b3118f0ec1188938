"""DEnsity on a tiny random BERT: training that is interrupted and resumed, the Gaussian, the metric, and the study."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import tinymodels
from comperdial import models, schema
from comperdial.cli import main
from comperdial.config import load_yaml
from comperdial.config.parameters import Training, TrainingLengths
from comperdial.config.registry import completed
from comperdial.core.errors import (
    FileError,
    MissingResourceError,
)
from comperdial.data.corpora import Dialogue, read_corpus
from comperdial.metrics import create
from comperdial.models import runtime
from comperdial.report import render
from comperdial.studies import density as study_tables
from comperdial.training import density
from comperdial.training import trained as trained_models
from comperdial.training.pairs import Pairs, Reader
from comperdial.training.selection import Group
from resulttables import write_rows

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.usefixtures("one_thread")

WORDS = ["i", "like", "green", "tea", "no", "yes", "the", "sea", "book", "read", "what", "do", "you", "day", "rain"]
LENGTHS = {"history": 24, "facts": 10, "response": 8}
PHASES = [
    {"loss": "in-batch", "steps": 3, "batch": 4, "learning_rate": 0.001, "warmup": 1},
    {"loss": "selection", "steps": 4, "batch": 3, "learning_rate": 0.001, "warmup": 1},
    {"loss": "selection", "steps": 5, "batch": 3, "learning_rate": 0.001, "warmup": 2, "contrastive": 1},
]


def dialogues(count, *, corpus="talk", facts=True):
    random = np.random.default_rng(len(corpus))
    made = []
    for number in range(count):
        texts = tuple(" ".join(random.choice(WORDS, random.integers(2, 7))) for _ in range(random.integers(2, 6)))
        known = {"B": (" ".join(random.choice(WORDS, 3)),)} if facts and number % 2 else {}
        made.append(Dialogue(corpus, str(number), tuple("ABABAB"[: len(texts)]), texts, known))
    return made


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return tinymodels.bert(tmp_path_factory.mktemp("tiny") / "bert")


@pytest.fixture(scope="module")
def pairs(bert):
    reader = Reader(runtime.load_tokenizer(models.find(str(bert))), TrainingLengths(**LENGTHS))
    return Pairs([*dialogues(12), *dialogues(12, corpus="other")], reader)


def settings(bert, **changed):
    corpora = {"mine": {"format": "jsonl", "path": "mine.jsonl"}}
    entry = {"encoder": str(bert), "corpora": corpora, "phases": PHASES, "lengths": LENGTHS, "negatives": 4}
    return Training(**entry | {"held_out": 6, "check_every": 2} | changed)


def train(bert, folder, **changed):
    """Train on invented dialogues and return the model folder."""
    given = [*dialogues(20), *dialogues(10, corpus="other", facts=False)]
    output = folder / "tiny"
    density.train("tiny", settings(bert, **changed), given, [given[3].texts], folder / "runs", output, origin={})
    return output


@pytest.fixture(scope="module")
def trained(bert, tmp_path_factory):
    return train(bert, tmp_path_factory.mktemp("trained"))


# ---- Training


def test_pair_is_an_utterance_and_its_history(pairs):
    first, reader = dialogues(12)[0], pairs.reader
    ids = reader.encode(first.texts)
    begin, end = reader.tokenizer.cls_token_id, reader.tokenizer.sep_token_id
    assert pairs.context(pairs[0], facts=False) == [begin, *ids[0], end]
    assert pairs.response(pairs[0]) == [*ids[1][:7], end]
    context, cut = reader.context([[5] * 20, [6] * 20], [[7] * 8, [8] * 8])
    assert context == [begin, *[7] * 8, 8, 8, end, 5, 5, end, *[6] * 20, end]
    assert cut == 18 + 6


def test_negatives_come_from_other_dialogues(pairs):
    for number, own in enumerate(pairs):
        group = pairs.group(own, 5, np.random.default_rng(number), facts=False)
        assert group.candidates[0] == pairs.response(own)
        assert len(group.candidates) == 6
        others = [one for one in pairs if one.corpus == own.corpus and one.dialogue != own.dialogue]
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


def test_resumed_training_gives_the_same_weights(bert, tmp_path, monkeypatch):
    options = {"dtype": "bf16", "dropout": 0.1}
    whole = train(bert, tmp_path / "whole", **options)
    step, stops, calls = torch.optim.AdamW.step, {4, 10}, []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) in stops:
            raise KeyboardInterrupt
        return step(*arguments)

    monkeypatch.setattr(torch.optim.AdamW, "step", interrupted)
    for _ in stops:
        with pytest.raises(KeyboardInterrupt):
            train(bert, tmp_path / "parts", **options)
    parts = train(bert, tmp_path / "parts", **options)
    assert (parts / "weights.safetensors").read_bytes() == (whole / "weights.safetensors").read_bytes()
    logs = []
    for folder in (whole, parts):
        phases = json.loads((folder / "card.json").read_text())["phases"]
        logs.append([[row | {"seconds": 0} for row in phase["log"]] for phase in phases])
    assert logs[0] == logs[1]
    assert [row["step"] for row in logs[0][2]] == [2, 4, 5]


@pytest.mark.parametrize("loss", ["in_batch_loss", "selection_loss"])
def test_non_finite_loss_stops_training(bert, tmp_path, monkeypatch, loss):
    plain = getattr(density, loss)
    monkeypatch.setattr(density, loss, lambda *arguments: plain(*arguments) * torch.nan)
    with pytest.raises(FloatingPointError, match="the loss is nan in step 0"):
        train(bert, tmp_path)


def test_losses_match_equations_1_and_4():
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
    loss = density.contrastive_loss(torch.tensor(features), torch.tensor(right), 0.1)
    assert loss.item() == pytest.approx(np.mean(terms))


def test_in_batch_loss_ranks_responses_except_copies():
    u, v = np.random.default_rng(2).normal(size=(2, 4, 3))
    responses = [[7, 8], [9], [7, 8], [5]]
    cosines = (u / np.linalg.norm(u, axis=1, keepdims=True)) @ (v / np.linalg.norm(v, axis=1, keepdims=True)).T / 0.2
    terms = []
    for i in range(4):
        others = [j for j in range(4) if j == i or responses[j] != responses[i]]
        both = cosines[i, others], cosines[others, i]
        terms += [np.log(np.exp(among).sum()) - cosines[i, i] for among in both]
    loss = density.in_batch_loss(torch.tensor(u), torch.tensor(v), responses, 0.2)
    assert loss.item() == pytest.approx(np.mean(terms))


# ---- The metric


@pytest.mark.parametrize("facts", [False, True])
def test_metric_matches_plain_computation(trained, pairs, facts):
    """The distance of a pair's feature from training pairs, by numpy."""
    key = "facts" if facts else "plain"
    items = [("i like tea", ["hello you", "what do you like"], "green tea"), ("good day", ["i read"], "red book")]
    responses, histories, known = zip(*items, strict=True)
    scores = create("density", trained=str(trained), facts=facts).score(
        responses, histories=histories, facts=[[one] for one in known] if facts else None
    )
    model = trained_models.load(str(trained))
    gaussian, tokenizer = model.gaussians[key], model.reader.tokenizer
    inverse = np.linalg.pinv(gaussian.covariance, rcond=1e-10, hermitian=True)

    def ids(*texts):
        return [n for text in texts for n in (*tokenizer(text, add_special_tokens=False)["input_ids"], end)]

    end = tokenizer.sep_token_id
    for row, (response, history, fact) in enumerate(items):
        context = [tokenizer.cls_token_id, *ids(*([fact] if facts else []), *history)]
        with torch.inference_mode():
            feature, score = model.network.eval()([Group(context, [ids(response)])])
        shift = feature[0].numpy().astype(float) - gaussian.mean
        # The covariance of so few pairs is nearly singular, so that rounding moves the distance.
        assert scores["density"][row] == pytest.approx(-np.sqrt(shift @ inverse @ shift), rel=1e-2)
        assert scores["euclidean"][row] == pytest.approx(-np.linalg.norm(shift), rel=1e-3)
        assert scores["classifier"][row] == pytest.approx(score.item(), rel=1e-3, abs=1e-5)
    gaussian, count = density.fit(model.network, pairs, 1)[key]
    kept = [pair for pair in pairs if pair.facts or not facts]
    rows = [Group(pairs.context(pair, facts=facts), [pairs.response(pair)]) for pair in kept]
    with torch.inference_mode():
        features = torch.cat([model.network([row])[0] for row in rows]).double().numpy()
    assert count == len(kept)
    np.testing.assert_allclose(gaussian.mean, features.mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(gaussian.covariance, np.cov(features, rowvar=False, bias=True), atol=1e-5)


def test_trained_model_has_a_card(trained, bert):
    metric = create("density", trained=str(trained))
    assert f"trained:{trained_models.label(str(trained))}|facts:no|dtype:fp32" in metric.signature()
    assert f"encoder:{models.find(str(bert)).name}@{models.find(str(bert)).digest}" in metric.signature()
    assert metric.score(["tea " * 20], histories=[["sea " * 40]]).cut.tolist() == [20 - 7 + 41 - 24]
    card = json.loads((trained / "card.json").read_text())
    assert card["corpora"]["talk"]["dialogues"] == 20
    assert set(card["held-out"]) == {"all", "talk", "other"}


def test_an_altered_model_is_refused(trained, tmp_path):
    folder = shutil.copytree(trained, tmp_path / "copy")
    weights, card = folder / "weights.safetensors", folder / "card.json"
    content = json.loads(card.read_text())
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    with pytest.raises(MissingResourceError, match=r"weights\.safetensors of trained model .* is altered"):
        trained_models.load(str(folder))
    card.write_text(json.dumps(content | {"settings": content["settings"] | {"attention": "full"}}))
    assert "has attention 'full', which only older versions run" in create("density", trained=str(folder)).unavailable()
    card.write_text('{"form": 1}')
    with pytest.raises(FileError, match="not the card of a trained model"):
        create("density", trained=str(folder)).unavailable()


# ---- Corpora


@pytest.mark.parametrize(
    ("format", "text", "speakers", "texts", "facts"),
    [
        ("dailydialog", "Hi . __eou__ Good day . __eou__\n", "A B", ("Hi .", "Good day ."), {}),
        (
            "synthetic_persona_chat",
            "user 1 personas,user 2 personas,Best Generated Conversation\n"
            '"I fish.\nI sail.",I cook.,"User 1: Hi\nUser 2: Hello\nthere"\n'
            'I fish.,I cook.,"User 1: Hi [name]\nUser 2: Hello"\n',
            "User_1 User_2",
            ("Hi", "Hello there"),
            {"User 1": ("I fish.", "I sail."), "User 2": ("I cook.",)},
        ),
        (
            "topical_chat",
            '{"t1": {"content": [{"agent": "agent_1", "message": "Hi"}, {"agent": "agent_1", "message": "you"}, '
            '{"agent": "agent_2", "message": "Yes"}]}}',
            "agent_1 agent_2",
            ("Hi you", "Yes"),
            {},
        ),
        ("jsonl", '{"utterances": ["Hi", "Yes"], "facts": {"B": ["Tea."]}}\n', "A B", ("Hi", "Yes"), {"B": ("Tea.",)}),
        ("csv", "dialogue_id,speaker,text\n1,x,Hi\n2,x,No\n1,y,Yes\n", "x y", ("Hi", "Yes"), {}),
    ],
)
def test_corpora(tmp_path, format, text, speakers, texts, facts):
    path = tmp_path / f"corpus.{format}"
    path.write_text(text)
    (dialogue,) = read_corpus("c", format, path)
    assert [name.replace(" ", "_") for name in dialogue.speakers] == speakers.split()
    assert (dialogue.texts, dict(dialogue.facts)) == (texts, facts)


def test_data_set_tables_make_a_corpus(tmp_path):
    lines = [{"speaker": "A", "text": "Hi"}, {"speaker": "B", "text": "Hello"}, {"speaker": "A", "text": "Tea?"}]
    rows = [("mine", "1", "d", 0, lines[:1], ["Hello"], []), ("mine", "2", "d", 1, lines, ["Yes"], ["I like tea."])]
    write_rows(tmp_path, contexts=rows)
    (dialogue,) = read_corpus("c", "tables", tmp_path)
    assert (dialogue.texts, dialogue.speakers) == (("Hi", "Hello", "Tea?", "Yes"), ("A", "B", "A", "B"))
    assert dialogue.facts == {"B": ("I like tea.",)}


# ---- The command


def test_train_trains_an_entry_of_params(bert, tmp_path, monkeypatch, capsys):
    def train(name, **changed):
        entry = settings(bert, phases=[{**PHASES[1], "steps": 2}]).model_dump(exclude_none=True) | changed
        params = completed(load_yaml(ROOT / "params.yaml")) | {"training": {"mine": entry}}
        Path("params.yaml").write_text(json.dumps(params))
        return main(["train", name])

    monkeypatch.chdir(tmp_path)
    Path("mine.jsonl").write_text("\n".join(json.dumps({"utterances": one.texts}) for one in dialogues(20)))
    Path("data").mkdir()
    Path("data/sources.yaml").write_text("files: {}\ndatasets: {}\n")
    assert "mine@absent" in create("density", trained="mine").signature()
    assert train("mine") == 0
    assert create("density", trained="mine").unavailable() is None
    assert train("mien") == 1
    assert "Did you mean 'mine'" in capsys.readouterr().err
    assert train("mine", held_out=20) == 1
    assert "20 dialogues are left to train on; expected more than the 20" in capsys.readouterr().err


# ---- The study


def test_pairs_are_scored_and_counted(tmp_path):
    texts = {
        "repetition-1": ("I like tea.", "I like like like tea."),
        "repetition-2": ("Go on.", "Go on on on."),
        "speaker-1": ("No no.", "Yes."),
    }
    tables = {"contexts": [], "responses": []}
    for name, both in texts.items():
        for side, text in zip(("original", "perturbed"), both, strict=True):
            tables["contexts"].append(("p", f"{name}-{side}-0", name, 0, [], [], []))
            tables["responses"].append(("p", f"{name}-{side}-0", side, text))
    write_rows(tmp_path, **tables, systems=[("p", side, "agent", None, "") for side in ("original", "perturbed")])
    scores, ratios = tmp_path / "scores.parquet", tmp_path / "ratios.parquet"
    command = ["score-pairs", tmp_path, "--metrics", "distinct", "--kinds", "repetition", "speaker", "--sample", 9]
    assert main([*map(str, [*command, "--seed", 1, "--output", scores, "--ratios", ratios])]) == 0
    found = schema.read(ratios, "ratios").query("output == 'distinct-1'").set_index("perturbation")
    assert found["ratio"].to_dict() == {"repetition": 1.0, "speaker": 0.0}
    entry = {"outputs": {"distinct:distinct-1": "Distinct"}, "title": "T", "notes": "", "panels": {"made": "Made"}}
    entry |= {"kinds": {"repetition": "Repetition", "speaker": "Speaker"}, "bins": 7}
    _, shown = study_tables.adversarial({"ratios": [ratios]}, {"entry": entry})
    assert shown[["kind", "accuracy", "n"]].to_numpy().tolist() == [["Repetition", 1.0, 2], ["Speaker", 0.0, 1]]


def test_examples_have_normalised_scores_and_ranks(tmp_path):
    units = [("c1", "a"), ("c1", "b"), ("c2", "a"), ("c2", "b")]
    ratings = [
        ("one", "turn", *unit, who, None, "overall", float(place + up), 0.0, 9.0, "human")
        for place, unit in enumerate(units)
        for who, up in (("x", 0), ("y", 1))
    ]
    values = zip(units, [0.2, 0.2, 0.4, 0.3], strict=True)
    inputs = write_rows(
        tmp_path,
        ratings=ratings,
        scores=[("one", "turn", *unit, "f1", "f1", value, 0, "f1") for unit, value in values],
    )
    about = {"dataset": "one", "title": "One", "source": "human", "target": None, "main_target": None, "not_run": {}}
    inputs |= {"about": tmp_path / "about.json", "reported": tmp_path / "reported.csv"}
    inputs["about"].write_text(json.dumps(about))
    columns = "source,place,example,context_id,system_id,metric,score,rank\n"
    inputs["reported"].write_text(f"{columns}p,Table 3,1,c1,b,Human,0.3,0.4\np,Table 3,1,c1,b,F1,0.1,\n")
    rows = [{"label": "People", "reported": "Human"}]
    rows.append({"label": "Word F1", "metric": "f1", "output": "f1", "reported": "F1"})
    study = {"datasets": ["one"], "entry": {"title": "T", "caption": "Of {title}.", "rows": rows}}
    table = study_tables.examples({name: [path] for name, path in inputs.items()}, study)
    lines = render.markdown(table).splitlines()
    assert "| People | 0.30 | 0.40 | 0.33 | 0.50 |" in lines
    assert "| Word F1 | 0.10 | – | 0.00 | 0.38 |" in lines
