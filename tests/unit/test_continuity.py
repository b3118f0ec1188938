"""The study of interlocutors: predictions of their scores, whose eye, whether users go on, and what is shown."""

import json
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from scipy.stats import pearsonr
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score

from comperdial.cli import main
from comperdial.config import load_yaml
from comperdial.core.errors import ConfigError, SchemaError
from comperdial.data.continuations import Conversation, Message, merged, samples, splits
from comperdial.data.readers import chitchat
from comperdial.evaluation import continuing
from comperdial.evaluation.perspective import by_person, in_whose_eye, simple_scores
from comperdial.stats import classification
from comperdial.studies import continuity as study_tables
from comperdial.training import continuity, continuity_tasks
from comperdial.training.continuity import Features, Histories
from comperdial.training.score_prediction import personal_means, predict, rated_exchanges, split_in_time, text_features

BEGIN = datetime(2018, 5, 1, tzinfo=UTC)


# Conversations


def sent(sender, text, minutes):
    return {"sender": sender, "text": text, "timestamp": (BEGIN + timedelta(minutes=minutes)).isoformat()}


CHAT = [
    sent("secret-ada", "hello", 0),
    sent("secret-bob", "hi", 1),
    sent("secret-bob", "how are you?", 2),
    sent("secret-ada", "fine", 33),
    sent("secret-bob", "  ", 34),
    sent("secret-ada", "still there?", 35),
    sent("secret-bob", "yes", 36),
]


def chats_file(folder, chats):
    path = folder / "chats.json"
    path.write_text(json.dumps({f"key-{n}": {"messages": [[m] for m in chat]} for n, chat in enumerate(chats)}))
    return {"conversations": path}


def talks(count, speakers=("a", "b"), gap=3600.0):
    """Return conversations of five utterances; every other one ends with a question that nobody answers."""
    result = []
    for number in range(count):
        one, other = (f"{name}{number % 3}" for name in speakers)
        messages = [(one, "hello"), (other, "hi"), (one, "nice day"), (other, "tell me more please")]
        messages.append((one, "bye now") if number % 2 else (one, "bye then"))
        users = {one: str(1 + number % 3), other: str(11 + number % 3)}
        systems = dict.fromkeys((one, other), "person")
        texts = merged(Message(speaker, text) for speaker, text in messages)
        result.append(Conversation(f"t-{number:03d}", number * gap, texts, users=users, systems=systems))
    return result


def test_a_reply_is_positive_if_its_user_goes_on_within_half_an_hour(tmp_path):
    asked = list(samples(chitchat.conversations("m", chats_file(tmp_path, [CHAT]))))
    assert [(one.reply.text, one.continued) for one in asked] == [
        ("hi how are you?", False),
        ("fine still there?", True),
        ("yes", False),
    ]


@pytest.mark.parametrize("waves", [False, True])
def test_splits_follow_time_and_balanced_samples_are_balanced_in_each(waves):
    conversations = talks(20) + [
        Conversation(f"u-{n}", 1e8 + n, one.utterances, one.users, one.systems) for n, one in enumerate(talks(20))
    ]
    split = splits(conversations, waves=waves)
    assert [*split.values()].count("train") == 28
    assert (split["u-0"] == "train") is waves or not waves
    drawn = continuity_tasks.balanced(list(samples(conversations)), split, 7)
    for part in ("train", "validation", "test"):
        went = [sample.continued for sample in drawn if split[sample.conversation.id] == part]
        assert 0 < sum(went) == len(went) / 2
    with pytest.raises(ConfigError, match="enough for three splits"):
        splits(talks(2))


def test_a_history_leaves_out_the_conversation_that_is_asked_about_and_knows_no_stranger():
    known = list(samples(talks(30)))
    first = known[0]
    own = [s for s in known if (s.user_id, s.conversation.id) == (first.user_id, first.conversation.id)]
    other = [s for s in known if s.user_id == first.user_id and s not in own]
    # What this user did in this conversation is reversed: the features of other samples change, those of its own do not.
    turned = [type(s)(s.conversation, s.turn, s.user_id, not s.continued, s.seconds) if s in own else s for s in known]
    before, after = Histories(known), Histories(turned)
    after.rate = before.rate
    np.testing.assert_array_equal(before.features(own)[0], after.features(own)[0])
    assert (before.features(other)[0] != after.features(other)[0]).any()
    stranger = [type(first)(first.conversation, first.turn, "99", True, None)]
    assert not before.features(stranger)[0].any() and before.conversations("99") == 0


def test_features_do_not_see_what_follows():
    train = list(samples(talks(12)))
    sample, talk = train[0], train[0].conversation
    cut = Conversation(talk.id, 0.0, talk.utterances[: sample.turn + 1], talk.users, talk.systems)
    for context in ("form", "tfidf"):
        features = Features(train, context, "token+history", histories=Histories(train))
        np.testing.assert_array_equal(features([sample]).toarray(), features([next(samples([cut]))]).toarray())


def test_the_model_learns_who_says_goodbye():
    task = continuity_tasks.Task.of(talks(60), "time")
    model = continuity.fit(Features(task.train, "tfidf"), task.train, task.validation)
    chances = model.probabilities(task.test)
    assert roc_auc_score([sample.continued for sample in task.test], chances) == 1
    # At another rate, odds change by one factor.
    rare = model.probabilities(task.test, rate=0.9)
    np.testing.assert_allclose(rare / (1 - rare), 9 * chances / (1 - chances), rtol=1e-9)
    lasting = [sample for sample in task.train if sample.continued]
    with pytest.raises(ConfigError, match="of 1 class"):
        continuity.fit(Features(lasting, "form"), lasting, lasting)


def test_measures_are_those_of_scikit_learn_and_scipy():
    rng = np.random.default_rng(5)
    truth, scores, weights = rng.integers(0, 2, 50), rng.integers(0, 9, 50) / 8, rng.integers(0, 4, 50).astype(float)
    called, rows = (scores > 0.5).astype(int), np.repeat(np.arange(50), weights.astype(int))
    assert classification.accuracy(truth, called, weights) == pytest.approx(accuracy_score(truth[rows], called[rows]))
    macro = f1_score(truth[rows], called[rows], average="macro")
    assert classification.macro_f1(truth, called, weights) == pytest.approx(macro)
    assert classification.auc(truth, scores, weights) == pytest.approx(roc_auc_score(truth[rows], scores[rows]))
    assert classification.correlation(truth, scores, weights) == pytest.approx(pearsonr(truth[rows], scores[rows])[0])


def test_an_evaluation_compares_every_model_with_none_and_with_the_majorities():
    turns = pd.DataFrame(
        [{"item_id": s.id, "baseline": "selection", "value": float(s.turn)} for s in samples(talks(60))]
    )
    result, scores = continuing.evaluate("convai2", talks(60), {}, turns, resamples=50)
    whole = result.query("group == 'all' and rate == 'balanced'").set_index(["model", "user", "measure", "against"])[
        "value"
    ]
    assert whole["global majority", "none", "accuracy", ""] == 0.5
    assert whole["tfidf", "none", "accuracy", ""] == 1
    assert whole["tfidf", "none", "accuracy", "global majority"] == 0.5
    difference = whole["form", "token", "auc", ""] - whole["form", "none", "auc", ""]
    assert whole["form", "token", "auc", "none"] == pytest.approx(difference)
    assert ("selection", "none", "auc", "") in whole.index
    assert set(scores["rate"]) == {"balanced", "natural"}
    assert result["low"].le(result["value"] + 1e-12).all() and result["value"].le(result["high"] + 1e-12).all()


def test_agreement_with_ratings_is_pooled_and_within():
    rng = np.random.default_rng(11)
    users = np.repeat(np.arange(30), 10)
    level, own = np.repeat(rng.normal(size=30), 10), rng.normal(size=300)
    rows = continuing.agreement(level + 0.1 * own, level + rng.normal(size=300), users, within=users, resamples=200)
    by = {row["measure"]: row for row in rows}
    assert by["r"]["low"] > 0.4 and by["r_within"]["high"] < 0.3 and by["r"]["groups"] == 30
    scores, thumbs, talk = [0.9, 0.1, 0.5, 0.4, 0.3], [1, 0, 0, 1, 1], list("aabbc")
    by = {row["measure"]: row for row in continuing.agreement(scores, thumbs, talk, within=talk, resamples=50)}
    assert by["auc"]["value"] == pytest.approx(roc_auc_score(thumbs, scores))
    # One pair in each of two conversations, one in the right order.
    assert (by["auc_within"]["value"], by["auc_within"]["n"]) == (0.5, 2)


def test_cross_fitting_leaves_a_conversation_out_of_its_own_model(monkeypatch):
    seen, fit = [], continuity.fit
    monkeypatch.setattr(
        continuity, "fit", lambda features, train, *rest: seen.append(train) or fit(features, train, *rest)
    )
    result = continuing.crossfitted(talks(30), "form", "none", 1.0, {})
    assert set(result) == {sample.id for sample in samples(talks(30))}
    assert [len({sample.conversation.id for sample in train}) for train in seen] == [24] * 5


def test_files_hold_no_text_and_no_name(tmp_path, monkeypatch):
    chats = [[{**m, "timestamp": sent("", "", 60 * n)["timestamp"]} for m in CHAT] for n in range(20)]
    result = chitchat.conversations("chitchat", chats_file(tmp_path, chats))
    monkeypatch.setattr("comperdial.data.continuations.read_conversations", lambda *_: result)
    paths = {name: str(tmp_path / f"{name}.parquet") for name in ("output", "scores", "continuations")}
    options = [text for name, path in paths.items() for text in (f"--{name}", path)]
    assert main(["continuity", "models", "chitchat", "--vectors", "--baselines", "--resamples", "10", *options]) == 0
    for path in paths.values():
        values = {str(value) for column in pd.read_parquet(path).to_dict("list").values() for value in column}
        assert values and not any(text in value for value in values for text in ("hello", "secret", "key-"))
    vectors = {"hello": np.ones(2, np.float32)}
    continuity_tasks.write_vectors(tmp_path / "chitchat_minilm.safetensors", vectors)
    assert b"hello" not in (tmp_path / "chitchat_minilm.safetensors").read_bytes()
    known = continuity_tasks.read_vectors([tmp_path / "chitchat_minilm.safetensors"])["chitchat"]["minilm"]
    assert known["hello"].tolist() == [1, 1] and "bye" not in known


# Interlocutors and outsiders


def exchanges(persons=12, turns=60, seed=7):
    """Invent scores: a person's level, a word that pleases everybody, and some noise."""
    rng = np.random.default_rng(seed)
    made = []
    for person in range(persons):
        level = rng.normal(4, 1)
        for turn in range(turns):
            nice = int(rng.integers(2))
            texts = {"response": "すてきですね" if nice else "つぎにいきます", "last": "はい", "earlier": ""}
            scores = {"interlocutor": level + nice + rng.normal(0, 0.3), "outsiders": 4 + nice + rng.normal(0, 0.3)}
            about = {"dataset": "mini", "dialogue_id": f"d{person:02d}", "turn": turn, "person": f"person-{person:02d}"}
            made.append(about | texts | scores)
    frame = pd.DataFrame(made)
    return frame.assign(split=split_in_time(frame["dialogue_id"]))


def test_the_split_runs_along_each_dialogue():
    split = split_in_time(pd.Series(["a"] * 10 + ["c"] * 3))
    # 2.4 and 2.7, rounded.
    assert split.tolist() == ["train"] * 8 + ["validation", "test"] + ["train", "train", "validation"]


def test_an_exchange_needs_both_scores():
    history = [{"speaker": "B", "text": "a" * 600}, {"speaker": "A", "text": "yes"}]
    contexts = pd.DataFrame([{"dataset": "m", "context_id": "d-0", "dialogue_id": "d", "turn": 0, "history": history}])
    responses = pd.DataFrame([{"dataset": "m", "context_id": "d-0", "system_id": "w", "response": "so"}])
    names = ["interlocutor-1", "outsider-1", "outsider-2"]
    annotators = pd.DataFrame([{"annotator_id": name, "role": name.rpartition("-")[0]} for name in names])
    ratings = responses.merge(pd.DataFrame({"annotator_id": names, "rating": [5.0, 3.0, 4.0]}), how="cross")
    row = rated_exchanges(contexts, responses, ratings.drop(columns="response"), annotators).iloc[0]
    assert (row["interlocutor"], row["outsiders"], row["last"], row["earlier"]) == (5, 3.5, "yes", "a" * 512)
    with pytest.raises(SchemaError, match="no response was rated by its interlocutor and by all outsiders"):
        rated_exchanges(contexts, responses, ratings.drop(columns="response")[:2], annotators)


def test_identity_gives_the_level_and_text_what_is_within_persons():
    frame = exchanges()
    test = (frame["split"] == "test").to_numpy()
    changed = frame.copy()
    changed.loc[test, ["interlocutor", "outsiders"]] = 1.0
    made = {"level": personal_means(frame)[test]}
    for name, identity in (("text", False), ("both", True)):
        one, other = (
            predict(f, text_features(f), target="interlocutor", identity=identity, penalties=[0.1, 1, 10])
            for f in (frame, changed)
        )
        # The test part has no influence on a prediction.
        np.testing.assert_array_equal(one.values, other.values)
        made[name] = one.values[test]
    result = by_person(made, frame["interlocutor"][test], frame["person"][test], resamples=200, seed=1)[0]
    value = result.set_index(["prediction", "measure"])["value"]
    assert value["both", "pooled"] > 0.9 > value["text", "pooled"] + 0.2
    assert min(value["text", "within"], value["both", "within"]) > 0.7
    # The same for all of a person's exchanges: it does not correlate.
    assert np.isnan(value["level", "within"])


def test_by_person_agrees_with_numpy():
    rng = np.random.default_rng(3)
    persons = np.repeat(np.arange(15), 8)
    scores = rng.normal(size=15)[persons] + rng.normal(size=120)
    one, other = scores + rng.normal(size=120), rng.normal(size=120)
    values, differences = by_person({"one": one, "other": other}, scores, persons, resamples=300, seed=2)
    value = values.set_index(["prediction", "measure"])["value"]
    assert value["one", "pooled"] == pytest.approx(np.corrcoef(one, scores)[0, 1])
    centred = [x - pd.Series(x).groupby(persons).transform("mean").to_numpy() for x in (one, scores)]
    assert value["one", "within"] == pytest.approx(np.corrcoef(*centred)[0, 1])
    apart = differences.query("prediction == 'one' and measure == 'pooled'").iloc[0]
    assert apart["difference"] == pytest.approx(value["one", "pooled"] - value["other", "pooled"])
    assert apart["low"] < apart["difference"] < apart["high"] and apart["p"] < 0.01


def responses_of(texts, histories):
    ids = [f"d{n}" for n in range(len(texts))]
    spoken = [[{"speaker": "A", "text": text} for text in history] for history in histories]
    contexts = pd.DataFrame({"context_id": ids, "dialogue_id": ids, "turn": range(len(texts)), "history": spoken})
    return pd.DataFrame({"context_id": ids, "system_id": "s", "response": texts}), contexts


def test_simple_scores_count_words_or_characters():
    words = simple_scores(*responses_of(["Tea, or tea?", "No."], [["I like tea", "more tea"], []]), "words")
    assert words.loc[0, ["length", "question"]].tolist() == [3, 1]
    # "tea or tea" and "more tea": one word in common, 2 * 1 / (3 + 2).
    assert words.loc[0, "overlap-last"] == pytest.approx(0.4)
    assert words.loc[1, ["overlap-last", "overlap-history"]].isna().all()
    letters = simple_scores(*responses_of(["ああい"], [["いう"]]), "characters").iloc[0]
    assert (letters["length"], letters["overlap-last"]) == (3, pytest.approx(0.4))


def test_whose_eye_ranks_metrics_by_role():
    rng = np.random.default_rng(5)
    names = ("length", "question")
    items = pd.DataFrame(rng.normal(size=(200, 2)), columns=names).assign(who=np.repeat(np.arange(20), 10))
    for role, name in zip(("interlocutor", "outsiders"), names, strict=True):
        items[role] = items[name] + rng.normal(size=200)
    result = in_whose_eye(items, metrics=names, resamples=200, seed=1).set_index(["metric", "role"])
    assert result["rank"]["length", "interlocutor"] == result["rank"]["question", "outsiders"] == 1
    apart = result.loc[("length", "difference")]
    assert apart["low"] > 0 and apart["p"] < 0.01


# Tables


@pytest.fixture
def study(root):
    spec = load_yaml(root / "studies/continuity/study.yaml")
    return lambda kind, name: {**spec, "entry": spec[kind][name], "datasets": ["chitchat", "convai2"]}


def test_ours_on_other_chats_are_apart_from_the_paper_s_on_x(root, study, tmp_path):
    keys = {"dataset": "convai2", "split": "time", "rate": "balanced", "against": "", "n": 40, "users": 9}
    numbers = {"value": 0.6, "low": 0.5, "high": 0.7}
    rows = [
        {**keys, **numbers, "model": "tfidf", "user": "none", "measure": "accuracy", "group": g} for g in ("all", "0")
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "dcp.csv", index=False)
    inputs = {"paper": [root / "studies/continuity/paper.csv"], "measures": [tmp_path / "dcp.csv"]}
    table = study_tables.continuing(inputs, study("tables", "continuity_4"))
    paper, ours = (section.frame for section in table.sections)
    assert (paper["", "Ours, on X"] == "data not obtainable").all()
    assert paper.loc["BERT-DCP", ("Paper, on X", "accuracy")] == "0.668"
    assert ours.loc[("tfidf", "none"), ("Ours", "accuracy")] == "0.600 [0.50, 0.70]"
    assert ours.loc[("FED", "none"), ("Of", "replies")] == "not run"
    assert "Chit-Chat: no results" in table.notes
    drawn = study_tables.history(inputs, study("figures", "continuity_history"))[1]
    assert drawn[["panel", "group", "value"]].values.tolist() == [["ConvAI2, by time", "0", 0.6]]


def test_table_2_has_no_difference_of_what_does_not_vary(root, study, tmp_path):
    entry = study("tables", "continuity_2")
    names = [row["name"] for row in entry["entry"]["rows"]]
    values = pd.DataFrame([{"prediction": n, "measure": m, "value": 0.5} for n in names for m in ("pooled", "within")])
    values = values.assign(
        low=0.4, high=0.6, n=500, persons=60, penalty=[3.0] * 8 + [None] * 4, train=4000, validation=500
    )
    values.loc[
        (values["prediction"] == "personal-mean") & (values["measure"] == "within"), ["value", "low", "high"]
    ] = None
    pairs = pd.DataFrame(entry["entry"]["compared"], columns=["prediction", "other"])
    pairs = pairs.merge(
        pd.DataFrame({"measure": ["pooled", "within"], "difference": [0.1, None], "p": [0.01, None]}), how="cross"
    )
    inputs = {
        "paper": [root / "studies/continuity/paper.csv"],
        "values": [tmp_path / "v.csv"],
        "differences": [tmp_path / "d.csv"],
    }
    values.to_csv(inputs["values"][0], index=False)
    pairs.assign(low=pairs["difference"], high=pairs["difference"]).to_csv(inputs["differences"][0], index=False)
    body, apart = (section.frame for section in study_tables.prediction(inputs, entry).sections)
    body = body.drop(columns="")
    assert body.iloc[3].tolist() == ["0.500 [0.40, 0.60]", "0.496", "0.500 [0.40, 0.60]", "3"]
    assert body.iloc[4].tolist()[:3] == ["0.500 [0.40, 0.60]", "–", "–"]
    assert apart.iloc[0].tolist() == ["+0.100 [0.10, 0.10]", "0.010", "–", "–"]
    assert len(study_tables.prediction_figure(inputs, study("figures", "continuity_2"))[1]) == 12
