"""Dialogue continuity prediction: what a sample is, that splits leak nothing, what users are, and the measures."""

import json
import math
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow.parquet
import pytest
from scipy.stats import pearsonr
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score

from comperdial.core.errors import ConfigError, MissingResourceError, SchemaError
from comperdial.data import readers
from comperdial.data.continuations import Conversation, Message, merged, samples, splits
from comperdial.data.readers import chitchat
from comperdial.data.readers.chitchat import ChitChat
from comperdial.evaluation import continuing
from comperdial.stats import classification
from comperdial.training import continuity, continuity_tasks
from comperdial.training.continuity import Features, Histories

BEGIN = datetime(2018, 5, 1, tzinfo=UTC)


def sent(sender, text, minutes):
    return {"sender": sender, "text": text, "timestamp": (BEGIN + timedelta(minutes=minutes)).isoformat()}


def write_chats(folder, chats):
    path = folder / "chats.json"
    path.write_text(json.dumps({f"key-{n}": {"messages": [[m] for m in chat]} for n, chat in enumerate(chats)}))
    return {"conversations": path}


CHAT = [
    sent("secret-ada", "hello", 0),
    sent("secret-bob", "hi", 1),
    sent("secret-bob", "how are you?", 2),
    sent("secret-ada", "fine", 33),
    sent("secret-bob", "  ", 34),
    sent("secret-ada", "still there?", 35),
    sent("secret-bob", "yes", 36),
]


def talks(count, speakers=("a", "b"), gap=3600.0):
    """Return conversations of five utterances; every other one ends with a question that nobody answers."""
    found = []
    for number in range(count):
        one, other = (f"{name}{number % 3}" for name in speakers)
        said = [(one, "hello"), (other, "hi"), (one, "nice day"), (other, "tell me more please")]
        said.append((one, "bye now") if number % 2 else (one, "bye then"))
        texts = merged(Message(speaker, text) for speaker, text in said)
        users = {one: str(1 + number % 3), other: str(11 + number % 3)}
        systems = dict.fromkeys((one, other), "person")
        found.append(Conversation(f"t-{number:03d}", number * gap, texts, users=users, systems=systems))
    return found


def test_a_reply_is_positive_when_its_user_goes_on_in_time_and_the_last_is_negative(tmp_path):
    (conversation,) = ChitChat("mini", write_chats(tmp_path, [CHAT])).conversations()
    # Bob's two messages are one utterance, the empty one is gone, and ada's two then become one.
    assert [said.text for said in conversation.utterances] == ["hello", "hi how are you?", "fine still there?", "yes"]
    found = [(sample.turn, sample.user_id, sample.continued, sample.seconds) for sample in samples([conversation])]
    # Nobody asks about the first; ada took 31 minutes, bob one; nothing follows the last.
    assert found == [(1, "1", False, 31 * 60), (2, "2", True, 60), (3, "1", False, None)]


@pytest.mark.parametrize(("minutes", "continued"), [(30, 1), (30.1, 0)])
def test_half_an_hour_is_the_limit(tmp_path, minutes, continued):
    chat = [sent("x", "a", 0), sent("y", "b", 1), sent("x", "c", 1 + minutes)]
    first = next(samples(ChitChat("mini", write_chats(tmp_path, [chat])).conversations()))
    assert first.continued == continued


def test_only_conversations_of_two_speakers_count_in_the_order_of_time(tmp_path):
    alone, three = [sent("x", "a", 0)], [sent(name, "a", 0) for name in "xyz"]
    late = [sent("x", "late", 90), sent("y", "b", 91)]
    found = ChitChat("mini", write_chats(tmp_path, [late, alone, CHAT, three])).conversations()
    assert [(c.id, c.began, c.utterances[0].text) for c in found] == [
        ("mini-0001", 0.0, "hello"),
        ("mini-0002", 90 * 60.0, "late"),
    ]
    assert [sorted(c.users.values()) for c in found] == [["1", "2"], ["3", "4"]]


def test_the_tables_name_no_user_and_keep_the_rule(tmp_path):
    chats = [[{**m, "timestamp": sent("", "", 60 * n)["timestamp"]} for m in CHAT] for n in range(10)]
    tables = readers.read("chitchat", "mini", write_chats(tmp_path, chats))
    assert "secret" not in "".join(frame.to_json() for frame in tables.values())
    went = tables["continuations"]
    assert went.groupby("split")["context_id"].count().to_dict() == {"train": 21, "validation": 3, "test": 6}
    assert set(went["user_id"]) == {"1", "2"}
    assert len(tables["responses"]) == len(tables["contexts"]) == len(went)
    last = went.loc[went["context_id"].str.endswith("-003")]
    assert not last["continued"].any()
    history = tables["contexts"].set_index("context_id")["history"]["mini-0001-002"]
    assert history == [{"speaker": "B", "text": "hello"}, {"speaker": "A", "text": "hi how are you?"}]


def convai(number, texts, mark=None, thumbs=()):
    dialog = [
        {
            "id": at,
            "sender": "participant1" if who == "u" else "participant2",
            "text": text,
            "sender_class": "Human" if who == "u" else "Bot",
            "evaluation_score": dict(thumbs).get(at),
        }
        for at, (who, text) in enumerate(texts)
    ]
    return {
        "dialog": dialog,
        "start_time": f"2018-07-{number:02d} 10:00:00",
        "bot_profile": ["i am a bot."],
        "user_profile": ["i like tea.", " "],
        "eval_score": mark,
        "participant1_id": {"class": "User", "user_id": f"User secret {number % 2}"},
        "participant2_id": {"class": "Bot", "user_id": "Bot 1"},
    }


def test_of_a_bot_s_conversation_only_the_person_goes_on_and_what_the_person_rated_is_read(tmp_path):
    said = [("b", "yo"), ("u", "hi"), ("b", "tea?"), ("u", "yes"), ("b", "ok")]
    records = [convai(n, said, mark=4, thumbs=[(2, 1), (4, 0)]) for n in range(1, 11)]
    records.append(convai(11, [("u", "hello?")], mark=1))
    path = tmp_path / "chats.json"
    path.write_text(json.dumps(records))
    tables = readers.read("convai2", "mini", {"any": path})
    went = tables["continuations"].query("context_id.str.startswith('mini-0001')")
    # The bot's first message is answered whatever it is.
    assert went["context_id"].tolist() == ["mini-0001-002", "mini-0001-004"]
    assert went["continued"].tolist() == [1, 0]
    assert went["seconds"].isna().all()
    assert tables["ratings"].query("level == 'turn'")["rating"].tolist() == [1, 0] * 10
    assert tables["ratings"].query("level == 'dialogue'")["rating"].tolist() == [4] * 10
    assert set(tables["annotators"]["role"]) == {"interlocutor"}
    assert sorted(set(went["user_id"])) == ["1"]
    assert set(tables["continuations"]["user_id"]) == {"1", "2"}
    personas = tables["personas"].query("dialogue_id == 'mini-0001'").set_index("speaker")["sentences"].to_dict()
    assert personas == {"A": ["i like tea."], "B": ["i am a bot."]}
    assert "secret" not in "".join(frame.to_json() for frame in tables.values())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"eval_score": 6}, "item 1: eval_score is 6"),
        ({"start_time": "soon"}, "item 1: start_time is 'soon'"),
        ({"dialog": [{"sender": "x", "text": "a"}]}, "item 1, message 1: sender is neither speaker"),
        ({"participant1_id": {"class": "Bot", "user_id": "Bot 2"}}, "expected a User and a Bot"),
    ],
)
def test_a_wrong_record_is_named(tmp_path, change, message):
    path = tmp_path / "chats.json"
    path.write_text(json.dumps([{**convai(1, [("u", "a"), ("b", "c")]), **change}]))
    with pytest.raises(SchemaError, match=message):
        readers.read("convai2", "mini", {"any": path})


def test_a_message_without_a_time_is_named_but_not_quoted(tmp_path):
    with pytest.raises(SchemaError, match="conversation 1, message 2: timestamp is 'noon'") as error:
        ChitChat("m", write_chats(tmp_path, [[CHAT[0], {**CHAT[1], "timestamp": "noon"}]])).conversations()
    assert "secret" not in str(error.value)


def test_topical_chat_s_ratings_are_the_partner_s(tmp_path):
    messages = [
        ("agent_1", "hi", "Good"),
        ("agent_2", "yo", "Poor"),
        ("agent_1", "so", ""),
        ("agent_1", "?", "Excellent"),
    ]
    content = [{"agent": a, "message": m, "turn_rating": r} for a, m, r in messages]
    path = tmp_path / "chats.json"
    path.write_text(json.dumps({"t": {"content": content}}))
    reader = continuing_reader("topical_chat", path)
    assert [(s.user_id, s.reply.text, s.reply.rating) for s in samples(reader)] == [
        ("1-1", "yo", 1),
        ("1-2", "so ?", 5),
    ]
    path.write_text(json.dumps({"t": {"content": [{**content[0], "turn_rating": "Superb"}]}}))
    with pytest.raises(SchemaError, match="message 1: turn_rating is 'Superb'"):
        continuing_reader("topical_chat", path)


def continuing_reader(name, path):
    from comperdial.studies.continuity.dcp import conversations

    return conversations(name, ["file"], [path])


def test_without_the_package_the_reader_says_how_to_get_it_and_holds_it_to_its_checksum(monkeypatch, tmp_path):
    monkeypatch.setattr(chitchat, "located", lambda: None)
    with pytest.raises(MissingResourceError, match=r"pip install --no-deps chitchat-dataset==0\.9\.0"):
        ChitChat("chitchat", {}).conversations()
    other = tmp_path / "dataset.json"
    other.write_text("{}")
    monkeypatch.setattr(chitchat, "located", lambda: other)
    with pytest.raises(MissingResourceError, match=f"expected {chitchat.SHA256}"):
        ChitChat("chitchat", {}).conversations()


def test_the_package_is_found_and_not_imported(monkeypatch, tmp_path):
    package = tmp_path / "chitchat_dataset"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    assert chitchat.located() is None
    (package / "dataset.json").write_text("{}")
    assert chitchat.located() == package / "dataset.json"


# Splits


@pytest.mark.parametrize("waves", [False, True])
def test_splits_follow_time_and_no_conversation_is_in_two(waves):
    conversations = talks(40)
    split = splits(conversations[::-1], waves=waves)
    assert [split[c.id] for c in conversations] == ["train"] * 28 + ["validation"] * 4 + ["test"] * 8


def test_each_wave_is_split_by_itself():
    early = talks(20)
    late = [Conversation(f"u-{n}", 5e6 + c.began, c.utterances, c.users, c.systems) for n, c in enumerate(talks(10))]
    whole, waves = splits([*early, *late]), splits([*early, *late], waves=True)
    assert {whole[c.id] for c in early} == {"train"}
    assert [list(waves.values()).count(part) for part in ("train", "validation", "test")] == [21, 3, 6]
    assert waves["t-019"] == "test"
    assert waves["u-0"] == "train"


def test_too_few_conversations_are_refused():
    with pytest.raises(ConfigError, match="3 conversations"):
        splits(talks(3))


def test_the_balanced_version_is_balanced_in_each_split_and_the_same_each_time():
    conversations = talks(40)
    asked, split = list(samples(conversations)), splits(conversations)
    drawn = continuity_tasks.balanced(asked, split, 7)
    for part in ("train", "validation", "test"):
        went = [sample.continued for sample in drawn if split[sample.conversation.id] == part]
        assert 0 < sum(went) == len(went) / 2
    assert {s.id for s in asked if not s.continued} <= {s.id for s in drawn}
    assert [s.id for s in drawn] == [s.id for s in continuity_tasks.balanced(asked, split, 7)]
    assert [s.id for s in drawn] != [s.id for s in continuity_tasks.balanced(asked, split, 8)]


# Leaks


def test_a_user_s_history_leaves_out_the_conversation_that_is_asked_about():
    known = list(samples(talks(30)))
    one, conversation = known[0].user_id, known[0].conversation.id
    # All that this user did in this conversation is turned round: the features of its samples stay, others' change.
    turned = [
        type(s)(s.conversation, s.turn, s.user_id, not s.continued, s.seconds)
        if (s.user_id, s.conversation.id) == (one, conversation)
        else s
        for s in known
    ]
    own = [s for s in known if (s.user_id, s.conversation.id) == (one, conversation)]
    other = [s for s in known if s.user_id == one and s.conversation.id != conversation]
    rate = sum(s.continued for s in known) / len(known)
    before, after = Histories(known), Histories(turned)
    after.rate = before.rate = rate
    np.testing.assert_array_equal(before.features(own)[0], after.features(own)[0])
    assert (before.features(other)[0] != after.features(other)[0]).any()


def test_of_a_stranger_a_history_says_nothing_and_a_token_neither():
    train = list(samples(talks(12)))
    stranger = list(samples(talks(3, speakers=("c", "d"))))[:1]
    stranger = [type(s)(s.conversation, s.turn, "99", s.continued, s.seconds) for s in stranger]
    histories = Histories(train)
    assert not histories.features(stranger)[0].any()
    assert histories.conversations("99") == 0
    assert histories.conversations("1") == 4
    plain, token = Features(train, "form"), Features(train, "form", "token")
    assert token(stranger).shape[1] == plain(stranger).shape[1] + 6
    assert token(stranger).toarray()[:, 5:].sum() == 0
    assert token(train).toarray()[:, 5:].astype(bool).sum(axis=1).tolist() == [1] * len(train)


def test_features_are_those_of_the_reply_and_before_and_never_of_what_follows():
    train = list(samples(talks(12)))
    sample = train[0]
    said = sample.conversation.utterances
    cut = Conversation(
        sample.conversation.id, 0.0, said[: sample.turn + 1], sample.conversation.users, sample.conversation.systems
    )
    seen = next(samples([cut]))
    for context in ("form", "tfidf"):
        features = Features(train, context, "token+history", histories=Histories(train))
        np.testing.assert_array_equal(features([sample]).toarray(), features([seen]).toarray())
    assert continuity_tasks.talk(sample) == continuity_tasks.talk(seen)


# Models


def test_the_model_learns_who_says_goodbye_and_its_penalty_is_chosen_on_validation_samples():
    task = continuity_tasks.Task.of(talks(60), "time")
    model = continuity.fit(Features(task.train, "tfidf"), task.train, task.validation)
    chances = model.probabilities(task.test)
    truth = np.array([sample.continued for sample in task.test])
    assert classification.auc(truth, chances, np.ones(len(truth))) == 1
    losses = [
        continuity.fit(Features(task.train, "tfidf"), task.train, task.validation, (c,)).loss
        for c in (0.01, model.penalty)
    ]
    assert model.loss == losses[1] <= losses[0]
    # At another rate, odds change by one factor.
    rare = model.probabilities(task.test, rate=0.9)
    np.testing.assert_allclose(rare / (1 - rare), 9 * chances / (1 - chances), rtol=1e-9)


def test_one_class_cannot_be_learnt():
    lasting = [sample for sample in samples(talks(12)) if sample.continued]
    with pytest.raises(ConfigError, match="of 1 class"):
        continuity.fit(Features(lasting, "form"), lasting, lasting)
    with pytest.raises(ConfigError, match="kind of user 'name'"):
        Features(lasting, "form", "name")


def test_majorities():
    train = [s for s in samples(talks(12)) if s.user_id != "2" or s.continued]
    # User 1 is asked three times a conversation ... the counts decide, strangers get the global class.
    counts = {user: [s.continued for s in train if s.user_id == user] for user in ("1", "2", "11")}
    asked = [type(train[0])(train[0].conversation, 1, user, True, None) for user in ("1", "2", "11", "99")]
    overall = int(2 * sum(s.continued for s in train) >= len(train))
    expected = [int(2 * sum(went) >= len(went)) for went in counts.values()]
    assert continuity.majority(train, asked, private=True).tolist() == [*expected, overall]
    assert continuity.majority(train, asked, private=False).tolist() == [overall] * 4


def test_the_cut_is_at_the_validation_s_share():
    scores = np.linspace(0, 1, 101)
    assert continuing.cut(scores, scores, 0.25).mean() == pytest.approx(0.25, abs=0.02)


# Measures


def test_measures_are_scikit_learn_s_and_weights_are_repeated_rows():
    random = np.random.default_rng(3)
    truth, scores = random.integers(0, 2, 80), random.integers(0, 12, 80) / 12
    called = (scores > 0.4).astype(int)
    weights = random.integers(0, 4, (5, 80)).astype(float)
    for row in weights:
        at = np.repeat(np.arange(80), row.astype(int))
        wanted = accuracy_score(truth[at], called[at]), f1_score(truth[at], called[at], average="macro")
        assert classification.accuracy(truth, called, row) == pytest.approx(wanted[0])
        assert classification.macro_f1(truth, called, row) == pytest.approx(wanted[1])
        assert classification.auc(truth, scores, row) == pytest.approx(roc_auc_score(truth[at], scores[at]))
        assert classification.correlation(truth, scores, row) == pytest.approx(pearsonr(truth[at], scores[at])[0])
    assert classification.auc(truth, scores, weights).shape == (5,)
    assert math.isnan(classification.auc(np.ones(3), np.arange(3.0), np.ones(3)))


def test_intervals_are_over_users_and_so_wider_than_over_samples():
    random = np.random.default_rng(5)
    users = np.repeat(np.arange(40), 25)
    right = np.repeat(random.integers(0, 2, 40), 25)
    measure = {"accuracy": lambda w: classification.accuracy(right, np.ones(1000), w)}
    widths = []
    for clusters in (users, np.arange(1000)):
        weights = classification.cluster_weights(clusters, 500, np.random.default_rng(1))
        assert (weights.reshape(500, 40, 25).std(axis=2) == 0).all() == (clusters is users)
        value, drawn = classification.estimated(measure, weights)["accuracy"]
        low, high = classification.interval(drawn)
        assert low < value < high
        widths.append(high - low)
    # Of 25 equal samples each, an interval is five times as wide.
    assert widths[0] / widths[1] == pytest.approx(5, rel=0.2)
    assert widths[0] == pytest.approx(2 * 1.96 * math.sqrt(right.mean() * (1 - right.mean()) / 40), rel=0.15)


def test_an_evaluation_compares_every_model_with_none_and_with_the_majorities():
    found, scores, models = continuing.evaluate(
        "mini",
        talks(60),
        ["time"],
        contexts=["form", "tfidf"],
        personal=["none", "token"],
        vectors={},
        baselines={"selection": {s.id: float(s.turn) for s in samples(talks(60))}},
        resamples=50,
    )
    assert len(models) == 4
    whole = found.query("group == 'all' and rate == 'balanced'").set_index(["model", "user", "measure", "against"])[
        "value"
    ]
    assert whole["global majority", "none", "accuracy", ""] == 0.5
    assert whole["tfidf", "none", "accuracy", ""] == 1
    assert whole["tfidf", "none", "accuracy", "global majority"] == 0.5
    difference = whole["form", "token", "auc", ""] - whole["form", "none", "auc", ""]
    assert whole["form", "token", "auc", "none"] == pytest.approx(difference)
    assert ("selection", "none", "auc", "") in whole.index
    assert set(scores["rate"]) == {"balanced", "natural"}
    assert (found["low"] <= found["value"] + 1e-12).all()
    assert (found["value"] <= found["high"] + 1e-12).all()


# Continuing and liking


def test_liking_apart_from_the_person_is_seen_within():
    random = np.random.default_rng(11)
    users = np.repeat(np.arange(30), 10)
    level, own = np.repeat(random.normal(size=30), 10), random.normal(size=300)
    rows = continuing.liking(level + 0.1 * own, level + random.normal(size=300), users, within=users, resamples=200)
    by = {row["measure"]: row for row in rows}
    assert by["r"]["low"] > 0.4
    assert by["r_within"]["high"] < 0.3
    assert by["r"]["groups"] == 30
    assert "auc" not in by


def test_thumbs_are_compared_pooled_and_within_a_conversation():
    scores, thumbs = [0.9, 0.1, 0.5, 0.4, 0.3], [1, 0, 0, 1, 1]
    by = {
        row["measure"]: row
        for row in continuing.liking(scores, thumbs, list("aabbc"), within=list("aabbc"), resamples=50)
    }
    assert by["auc"]["value"] == pytest.approx(roc_auc_score(thumbs, scores))
    # One pair in each of two conversations, one right.
    assert by["auc_within"]["value"] == 0.5
    assert by["auc_within"]["n"] == 2


def test_cross_fitting_leaves_a_conversation_out_of_its_own_model(monkeypatch):
    seen = []
    fit = continuity.fit
    monkeypatch.setattr(
        continuity, "fit", lambda features, train, *rest: seen.append(train) or fit(features, train, *rest)
    )
    conversations = talks(30)
    found = continuing.crossfitted(conversations, "form", "none", 1.0, {})
    assert set(found) == {sample.id for sample in samples(conversations)}
    assert len(seen) == 5
    for train in seen:
        assert len({sample.conversation.id for sample in train}) <= 24


# What is published


def test_no_table_of_the_study_holds_a_text_or_a_name(tmp_path):
    from comperdial.studies.continuity import dcp

    chats = [[{**m, "timestamp": sent("", "", 60 * n)["timestamp"]} for m in CHAT] for n in range(20)]
    for chat in chats:
        for place, message in enumerate(chat):
            message["text"] = f"zebra{place}" if message["text"].strip() else ""
    raw = write_chats(tmp_path, chats)["conversations"]
    names = {"measures": "m", "scores": "s", "continuations": "c"}
    outputs = {name: tmp_path / f"{short}.parquet" for name, short in names.items()}
    told = {"dataset": "chitchat", "roles": ["conversations"], "raw": [raw], "sha256": []}
    dcp.dcp_models(outputs=outputs, vectors=[], baselines=[], resamples=10, **told)
    texts = {"zebra", "secret", "key-"}
    for path in outputs.values():
        content = pyarrow.parquet.read_table(path).to_pandas()
        values = {str(value) for column in content for value in content[column]}
        assert values
        assert not {value for value in values for text in texts if text in value}
    assert set(pyarrow.parquet.read_table(outputs["continuations"])["user_id"].to_pylist()) <= {"1", "2"}
