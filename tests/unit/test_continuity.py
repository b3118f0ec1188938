"""The study of interlocutors: predicted scores, rankings by role, whether users continue, and results."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from scipy.stats import pearsonr
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score

from comperdial.cli import main
from comperdial.core.errors import ConfigError
from comperdial.data.continuations import Conversation, Message, merged, samples, splits
from comperdial.data.readers import chitchat
from comperdial.evaluation import continuing
from comperdial.evaluation.perspective import by_person, in_whose_eye, simple_scores
from comperdial.stats import classification
from comperdial.training import continuity, continuity_tasks
from comperdial.training.continuity import Features, Histories
from comperdial.training.score_prediction import predict, split_in_time, text_features


def sent(sender, text, minutes):
    time = datetime(2018, 5, 1, tzinfo=UTC) + timedelta(minutes=minutes)
    return {"sender": f"secret-{sender}", "text": text, "timestamp": time.isoformat()}


CHAT = [sent("ada", "hello", 0), sent("bob", "hi", 1), sent("bob", "how are you?", 2), sent("ada", "fine", 33)]
CHAT += [sent("bob", "  ", 34), sent("ada", "still there?", 35), sent("bob", "yes", 36)]


def chats_file(folder, chats):
    path = folder / "chats.json"
    path.write_text(json.dumps({f"key-{n}": {"messages": [[m] for m in chat]} for n, chat in enumerate(chats)}))
    return {"conversations": path}


def talks(count, name="t", start=0.0):
    """Return conversations of five utterances; every other one ends with a question that nobody answers."""
    result = []
    for number in range(count):
        one, other = (f"{speaker}{number % 3}" for speaker in "ab")
        texts = ["hello", "hi", "nice day", "tell me more please", "bye now" if number % 2 else "bye then"]
        utterances = merged(Message((one, other)[turn % 2], text) for turn, text in enumerate(texts))
        users = {one: str(1 + number % 3), other: str(11 + number % 3)}
        systems = dict.fromkeys((one, other), "person")
        made = Conversation(f"{name}-{number:03d}", start + number * 3600, utterances, users=users, systems=systems)
        result.append(made)
    return result


def test_reply_is_positive_if_user_continues_within_half_an_hour(tmp_path):
    asked = samples(chitchat.conversations("m", chats_file(tmp_path, [CHAT])))
    expected = [("hi how are you?", False), ("fine still there?", True), ("yes", False)]
    assert [(one.reply.text, one.continued) for one in asked] == expected


@pytest.mark.parametrize("waves", [False, True])
def test_splits_follow_time_and_are_each_balanced(waves):
    conversations = talks(20) + talks(20, "u", 1e8)
    split = splits(conversations, waves=waves)
    assert [*split.values()].count("train") == 28
    assert (split["u-000"] == "train") is waves or not waves
    chosen = continuity_tasks.balanced(list(samples(conversations)), split, 7)
    for part in ("train", "validation", "test"):
        went = [sample.continued for sample in chosen if split[sample.conversation.id] == part]
        assert 0 < sum(went) == len(went) / 2
    with pytest.raises(ConfigError, match="enough for three splits"):
        splits(talks(2))


def test_history_excludes_current_conversation_and_other_users():
    known = list(samples(talks(30)))
    first = known[0]
    own = [s for s in known if (s.user_id, s.conversation.id) == (first.user_id, first.conversation.id)]
    other = [s for s in known if s.user_id == first.user_id and s not in own]
    # What this user did in this conversation is reversed: only the features of other samples change.
    turned = [replace(s, continued=not s.continued) if s in own else s for s in known]
    before, after = Histories(known), Histories(turned)
    after.rate = before.rate
    np.testing.assert_array_equal(before.features(own)[0], after.features(own)[0])
    assert (before.features(other)[0] != after.features(other)[0]).any()
    assert not before.features([replace(first, user_id="99")])[0].any()
    assert before.conversations("99") == 0


@pytest.mark.parametrize("context", ["form", "tfidf"])
def test_features_do_not_see_what_follows(context):
    train = list(samples(talks(12)))
    sample, talk = train[0], train[0].conversation
    cut = replace(talk, utterances=talk.utterances[: sample.turn + 1])
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


def test_measures_match_scikit_learn_and_scipy():
    rng = np.random.default_rng(5)
    truth, scores, weights = rng.integers(0, 2, 50), rng.integers(0, 9, 50) / 8, rng.integers(0, 4, 50).astype(float)
    called, rows = (scores > 0.5).astype(int), np.repeat(np.arange(50), weights.astype(int))
    macro = f1_score(truth[rows], called[rows], average="macro")
    assert classification.accuracy(truth, called, weights) == pytest.approx(accuracy_score(truth[rows], called[rows]))
    assert classification.macro_f1(truth, called, weights) == pytest.approx(macro)
    assert classification.auc(truth, scores, weights) == pytest.approx(roc_auc_score(truth[rows], scores[rows]))
    assert classification.correlation(truth, scores, weights) == pytest.approx(pearsonr(truth[rows], scores[rows])[0])


def test_every_model_is_compared_with_none_and_with_majorities():
    turns = pd.DataFrame([(s.id, "selection", float(s.turn)) for s in samples(talks(60))])
    turns.columns = ["item_id", "baseline", "value"]
    result, scores = continuing.evaluate("convai2", talks(60), {}, turns, resamples=50)
    whole = result.query("group == 'all' and rate == 'balanced'")
    value = whole.set_index(["model", "user", "measure", "against"])["value"]
    assert value["global majority", "none", "accuracy", ""] == 0.5
    assert value["tfidf", "none", "accuracy", ""] == 1
    assert value["tfidf", "none", "accuracy", "global majority"] == 0.5
    difference = value["form", "token", "auc", ""] - value["form", "none", "auc", ""]
    assert value["form", "token", "auc", "none"] == pytest.approx(difference)
    assert ("selection", "none", "auc", "") in value.index
    assert set(scores["rate"]) == {"balanced", "natural"}
    assert (result["low"].le(result["value"] + 1e-12) & result["value"].le(result["high"] + 1e-12)).all()


def test_agreement_with_ratings_is_pooled_and_within():
    rng = np.random.default_rng(11)
    users = np.repeat(np.arange(30), 10)
    level, own = np.repeat(rng.normal(size=30), 10), rng.normal(size=300)
    rows = continuing.agreement(level + 0.1 * own, level + rng.normal(size=300), users, within=users, resamples=200)
    by = {row["measure"]: row for row in rows}
    assert by["r"]["low"] > 0.4 > 0.3 > by["r_within"]["high"]
    assert by["r"]["groups"] == 30
    scores, thumbs, talk = [0.9, 0.1, 0.5, 0.4, 0.3], [1, 0, 0, 1, 1], list("aabbc")
    by = {row["measure"]: row for row in continuing.agreement(scores, thumbs, talk, within=talk, resamples=50)}
    assert by["auc"]["value"] == pytest.approx(roc_auc_score(thumbs, scores))
    # One pair in each of two conversations, one in the right order.
    assert (by["auc_within"]["value"], by["auc_within"]["n"]) == (0.5, 2)


def test_files_contain_no_text_and_no_names(tmp_path, monkeypatch):
    chats = [[{**m, "timestamp": sent("", "", 60 * n)["timestamp"]} for m in CHAT] for n in range(20)]
    result = chitchat.conversations("chitchat", chats_file(tmp_path, chats))
    monkeypatch.setattr("comperdial.data.continuations.read_conversations", lambda *_: result)
    paths = {name: str(tmp_path / f"{name}.parquet") for name in ("output", "scores", "continuations")}
    options = [text for name, path in paths.items() for text in (f"--{name}", path)]
    assert main(["continuity", "models", "chitchat", "--vectors", "--baselines", "--resamples", "10", *options]) == 0
    for path in paths.values():
        values = {str(value) for column in pd.read_parquet(path).to_dict("list").values() for value in column}
        assert values
        assert not any(text in value for value in values for text in ("hello", "secret", "key-"))
    path = tmp_path / "chitchat_minilm.safetensors"
    continuity_tasks.write_vectors(path, {"hello": np.ones(2, np.float32)})
    assert b"hello" not in path.read_bytes()
    assert continuity_tasks.read_vectors([path])["chitchat"]["minilm"]["hello"].tolist() == [1, 1]


def test_the_split_runs_along_each_dialogue():
    split = split_in_time(pd.Series(["a"] * 10 + ["c"] * 3))
    # 2.4 and 2.7, rounded.
    assert split.tolist() == ["train"] * 8 + ["validation", "test"] + ["train", "train", "validation"]


def test_identity_predicts_level_and_text_predicts_variation_within_persons():
    """Of invented scores: a person's level, a word that pleases everybody, and some noise."""
    rng, rows = np.random.default_rng(7), []
    for person, level in enumerate(rng.normal(4, 1, 12)):
        for turn in range(60):
            nice = int(rng.integers(2))
            text = "すてきですね" if nice else "つぎにいきます"
            score = level + nice + rng.normal(0, 0.3)
            rows.append(("mini", f"d{person:02d}", turn, f"person-{person:02d}", text, "はい", "", score))
    columns = ["dataset", "dialogue_id", "turn", "person", "response", "last", "earlier", "interlocutor"]
    frame = pd.DataFrame(rows, columns=columns).assign(outsiders=4.0)
    frame["split"] = split_in_time(frame["dialogue_id"])
    test = (frame["split"] == "test").to_numpy()
    changed = frame.assign(interlocutor=frame["interlocutor"].where(~test, 1.0))
    made = {}
    for name, identity in (("text", False), ("both", True)):
        options = {"target": "interlocutor", "identity": identity, "penalties": [0.1, 1, 10]}
        one, other = (predict(f, text_features(f), **options) for f in (frame, changed))
        # The test part has no influence on a prediction.
        np.testing.assert_array_equal(one.values, other.values)
        made[name] = one.values[test]
    result = by_person(made, frame["interlocutor"][test], frame["person"][test], resamples=200, seed=1)[0]
    value = result.set_index(["prediction", "measure"])["value"]
    assert value["both", "pooled"] > 0.9 > value["text", "pooled"] + 0.2
    assert min(value["text", "within"], value["both", "within"]) > 0.7


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
    assert apart["low"] < apart["difference"] < apart["high"]
    assert apart["p"] < 0.01


def test_simple_scores_count_words_or_characters():
    def scores(unit, response, history):
        shown = [{"speaker": "A", "text": text} for text in history]
        contexts = pd.DataFrame([("c", "d", 0, shown)], columns=["context_id", "dialogue_id", "turn", "history"])
        responses = pd.DataFrame([("c", "s", response)], columns=["context_id", "system_id", "response"])
        return simple_scores(responses, contexts, unit).iloc[0]

    words = scores("words", "Tea, or tea?", ["I like tea", "more tea"])
    # "tea or tea" and "more tea": one word in common, 2 * 1 / (3 + 2).
    assert words[["length", "question", "overlap-last"]].tolist() == [3, 1, pytest.approx(0.4)]
    assert scores("words", "No.", [])[["overlap-last", "overlap-history"]].isna().all()
    assert scores("characters", "ああい", ["いう"])[["length", "overlap-last"]].tolist() == [3, pytest.approx(0.4)]


def test_metrics_are_ranked_by_role():
    rng = np.random.default_rng(5)
    names = ("length", "question")
    items = pd.DataFrame(rng.normal(size=(200, 2)), columns=names).assign(who=np.repeat(np.arange(20), 10))
    for role, name in zip(("interlocutor", "outsiders"), names, strict=True):
        items[role] = items[name] + rng.normal(size=200)
    result = in_whose_eye(items, metrics=names, resamples=200, seed=1).set_index(["metric", "role"])
    assert result["rank"]["length", "interlocutor"] == result["rank"]["question", "outsiders"] == 1
    apart = result.loc[("length", "difference")]
    assert apart["low"] > 0
    assert apart["p"] < 0.01
