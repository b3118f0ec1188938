"""The study of interlocutors: predictions of their scores, correlation within persons, whose eye, and what is shown."""

import numpy as np
import pandas as pd
import pytest

from comperdial import models, schema
from comperdial.core.errors import SchemaError
from comperdial.evaluation.continuity import by_person
from comperdial.evaluation.perspective import in_whose_eye, simple_scores
from comperdial.report.inputs import read_reported
from comperdial.studies.continuity import documents
from comperdial.studies.continuity.results import rows
from comperdial.training.score_prediction import (
    personal_means,
    predict,
    rated_exchanges,
    split_in_time,
    text_features,
)


def exchanges(persons=12, turns=20, seed=7):
    """Invent scores of a person's level, a word that pleases everybody and some noise."""
    rng = np.random.default_rng(seed)
    made = []
    for person in range(persons):
        level = rng.normal(4, 1)
        for turn in range(turns):
            nice = int(rng.integers(2))
            made.append(
                {
                    "dataset": "mini",
                    "dialogue_id": f"d{person:02d}",
                    "turn": turn,
                    "person": f"interlocutor-{person:02d}",
                    "response": "すてきですね" if nice else "つぎにいきます",
                    "last": "はい" * int(rng.integers(1, 4)),
                    "earlier": "",
                    "interlocutor": level + nice + rng.normal(0, 0.3),
                    "outsiders": 4 + nice + rng.normal(0, 0.3),
                }
            )
    frame = pd.DataFrame(made)
    return frame.assign(split=split_in_time(frame["dialogue_id"]))


def test_the_split_runs_along_each_dialogue():
    dialogues = pd.Series(["a"] * 10 + ["b"] * 20 + ["c"] * 3)
    split = split_in_time(dialogues)
    assert split[dialogues == "a"].tolist() == ["train"] * 8 + ["validation", "test"]
    assert split[dialogues == "b"].value_counts().to_dict() == {"train": 16, "validation": 2, "test": 2}
    # 2.4 and 2.7, rounded.
    assert split[dialogues == "c"].tolist() == ["train", "train", "validation"]


def tables(rated=(("interlocutor-1", 5), ("outsider-1", 3), ("outsider-2", 4))):
    history = [{"speaker": "B", "text": "a" * 600}, {"speaker": "A", "text": "yes"}]
    contexts = pd.DataFrame(
        [
            {
                "dataset": "m",
                "context_id": "d-0",
                "dialogue_id": "d",
                "turn": 0,
                "history": history,
                "references": [],
                "facts": [],
            }
        ]
    )
    responses = pd.DataFrame([{"dataset": "m", "context_id": "d-0", "system_id": "w", "response": "so"}])
    ratings = pd.DataFrame(
        [
            {"dataset": "m", "context_id": "d-0", "system_id": "w", "annotator_id": name, "rating": float(rating)}
            for name, rating in rated
        ]
    )
    names = ("interlocutor-1", "outsider-1", "outsider-2")
    annotators = pd.DataFrame([{"dataset": "m", "annotator_id": n, "role": n.rpartition("-")[0]} for n in names])
    return contexts, responses, ratings, annotators


def test_an_exchange_has_both_scores_and_what_was_said_before():
    frame = rated_exchanges(*tables())
    row = frame.iloc[0]
    assert (row["interlocutor"], row["outsiders"], row["person"]) == (5, 3.5, "interlocutor-1")
    assert (row["last"], row["earlier"]) == ("yes", "a" * 512)


@pytest.mark.parametrize(
    ("rated", "message"),
    [
        ((("interlocutor-1", 5), ("outsider-1", 3)), "no response was rated by its interlocutor and by all outsiders"),
        ((("outsider-1", 3), ("outsider-2", 3)), "no response was rated by its interlocutor"),
        ((("interlocutor-1", 5), ("stranger", 3)), "annotator 'stranger' has no role"),
    ],
)
def test_an_exchange_that_somebody_did_not_score_is_left_out(rated, message):
    with pytest.raises(SchemaError, match=message):
        rated_exchanges(*tables(rated))


def test_identity_gives_the_level_and_text_what_is_within_persons():
    frame = exchanges(turns=60)
    features = text_features(frame)
    test = (frame["split"] == "test").to_numpy()
    own = frame["interlocutor"].to_numpy()
    penalties = [0.1, 1, 10]
    made = {
        name: predict(frame, features, target="interlocutor", identity=identity, penalties=penalties).values[test]
        for name, identity in (("text", False), ("both", True))
    }
    made["level"] = personal_means(frame)[test]
    found = by_person(made, own[test], frame["person"][test], resamples=200, seed=1).values.set_index(
        ["prediction", "measure"]
    )
    value = found["value"]
    assert value["both", "pooled"] > 0.9 > value["text", "pooled"] + 0.2
    assert value["level", "pooled"] > value["text", "pooled"]
    assert min(value["text", "within"], value["both", "within"]) > 0.7
    # The same for all of a person's exchanges: nothing to correlate.
    assert np.isnan(value["level", "within"])
    assert (found["low"] <= found["value"])[value.notna()].all() and found["persons"].eq(12).all()


def test_the_test_part_has_no_say_in_a_prediction():
    frame = exchanges()
    changed = frame.copy()
    later = changed["split"] == "test"
    changed.loc[later, ["interlocutor", "outsiders"]] = 1.0
    for target in ("interlocutor", "outsiders"):
        one, other = (
            predict(f, text_features(f), target=target, identity=True, penalties=[0.3, 3]) for f in (frame, changed)
        )
        assert one.penalty == other.penalty
        np.testing.assert_array_equal(one.values, other.values)
    np.testing.assert_array_equal(personal_means(frame), personal_means(changed))


def test_any_encoder_takes_the_place_of_counted_characters():
    if models.missing("all-MiniLM-L6-v2") is not None:
        pytest.skip("MiniLM is not on this machine")
    frame = exchanges(persons=2, turns=10).assign(response="how nice", last=["tea", ""] * 10)
    features = text_features(frame, "all-MiniLM-L6-v2")
    lengths = np.linalg.norm(features.reshape(20, 3, -1), axis=2)
    # A text that says nothing is no vector.
    np.testing.assert_allclose(lengths, [[1, 1, 0], [1, 0, 0]] * 10, atol=1e-6)
    made = predict(frame, features, target="interlocutor", identity=True, penalties=[1])
    assert made.penalty == 1 and np.isfinite(made.values).all()


def test_by_person_agrees_with_numpy():
    rng = np.random.default_rng(3)
    persons = np.repeat(np.arange(15), 8)
    scores = rng.normal(size=15)[persons] + rng.normal(size=120)
    one, other = scores + rng.normal(size=120), rng.normal(size=120)
    found = by_person({"one": one, "other": other}, scores, persons, resamples=300, seed=2)
    value = found.values.set_index(["prediction", "measure"])["value"]
    assert value["one", "pooled"] == pytest.approx(np.corrcoef(one, scores)[0, 1])
    centred = [x - pd.Series(x).groupby(persons).transform("mean").to_numpy() for x in (one, scores)]
    assert value["one", "within"] == pytest.approx(np.corrcoef(*centred)[0, 1])
    apart = found.differences.query("prediction == 'one' and other == 'other' and measure == 'pooled'").iloc[0]
    assert apart["difference"] == pytest.approx(value["one", "pooled"] - value["other", "pooled"])
    assert apart["low"] < apart["difference"] < apart["high"] and apart["p"] < 0.01


def test_a_missing_prediction_is_left_out_of_all_and_a_missing_score_is_an_error():
    values = np.arange(10.0)
    there = {"one": np.where(values == 3, np.nan, values), "other": values[::-1]}
    found = by_person(there, values, np.repeat([0, 1], 5), resamples=100, seed=1).values
    assert found["n"].eq(9).all()
    with pytest.raises(ValueError, match="a score for each item"):
        by_person({"one": values}, np.where(values == 3, np.nan, values), values, resamples=100, seed=1)


def responses_of(texts, histories):
    ids = [f"d{n}" for n in range(len(texts))]
    contexts = pd.DataFrame(
        {
            "context_id": ids,
            "dialogue_id": ids,
            "turn": range(len(texts)),
            "history": [[{"speaker": "A", "text": text} for text in history] for history in histories],
        }
    )
    return pd.DataFrame({"context_id": ids, "system_id": "s", "response": texts}), contexts


def test_simple_scores_count_words_or_characters():
    words = simple_scores(*responses_of(["Tea, or tea?", "No."], [["I like tea", "more tea"], []]), "words").set_index(
        "context_id"
    )
    assert words.loc["d0", ["length", "question"]].tolist() == [3, 1]
    # "tea or tea" and "more tea": one word in common, 2 * 1 / (3 + 2).
    assert words.loc["d0", "overlap-last"] == pytest.approx(0.4)
    assert words.loc["d0", "overlap-history"] == pytest.approx(2 * 2 / (3 + 5))
    assert words.loc["d1", ["overlap-last", "overlap-history"]].isna().all()
    letters = simple_scores(*responses_of(["ああい"], [["いう"]]), "characters").iloc[0]
    assert (letters["length"], letters["overlap-last"]) == (3, pytest.approx(0.4))
    assert letters["distinct-2"] == pytest.approx(2 / 3)


def test_whose_eye_ranks_metrics_by_role():
    rng = np.random.default_rng(5)
    scores = pd.DataFrame({"length": rng.normal(size=200), "question": rng.normal(size=200)})
    eyes = {
        "interlocutor": scores["length"] + rng.normal(size=200),
        "outsiders": scores["question"] + rng.normal(size=200),
    }
    found = in_whose_eye(
        scores, eyes, np.repeat(np.arange(20), 10), metrics=("length", "question"), resamples=200, seed=1
    )
    rank = found.set_index(["metric", "role"])["rank"]
    assert (rank["length", "interlocutor"], rank["length", "outsiders"]) == (1, 2)
    apart = found.set_index(["metric", "role"]).loc[("length", "difference")]
    assert apart["value"] > 0.3 and apart["low"] > 0 and apart["p"] < 0.01
    one = in_whose_eye(
        scores, {"outsiders": eyes["outsiders"]}, np.arange(200), metrics=("length",), resamples=200, seed=1
    )
    assert set(one["role"]) == {"outsiders"}


@pytest.fixture(scope="module")
def reported(root):
    found = read_reported(
        root / "src/comperdial/studies/continuity/reported.csv", ("table", "row", "column", "place"), given=("value",)
    )
    return found.assign(table=found["table"].astype(str))


def test_reported_values_are_those_of_the_paper(reported):
    assert reported.groupby("table").size().to_dict() == {"1": 8, "2": 4, "3": 15, "4": 24, "5": 40}
    known = documents.reported_of(reported, "5")
    assert known["BERT-NSP", "annotator_2_human"] == -0.028
    assert known["+ profile", "annotator_1_human"] == 0.754
    # What the paper says in words: 5301 exchanges; the token beats each user's majority.
    first, fourth = documents.reported_of(reported, "1"), documents.reported_of(reported, "4")
    assert first["Hazumi1902", "exchanges"] + first["Hazumi1911", "exchanges"] == 5301
    assert fourth["+ user token", "accuracy"] > fourth["Private majority", "accuracy"]


def test_rows_on_x_say_that_the_data_cannot_be_had(reported):
    for document in (documents.table_3(reported), documents.table_4(None, reported), documents.table_5(None, reported)):
        assert all(documents.NOT_OBTAINABLE in row for row in document.sections[0].rows)
    assert any("no results" in note for note in documents.table_4(None, reported).notes)


def test_ours_on_other_chats_stand_apart_from_the_paper_s_on_x(reported):
    row = {"dataset": "convai2", "split": "time", "rate": "balanced", "group": "all", "model": "tfidf", "user": "token"}
    measured = row | {"measure": "accuracy", "value": 0.61, "low": 0.55, "high": 0.66, "n": 312, "users": 90}
    less = measured | {"against": "none", "value": -0.07}
    cold = measured | {"group": "cold", "value": 0.5}
    not_run = {"dataset": "chitchat", "note": "not run: no package"}
    absent = row | {"model": "FED", "user": "none", "note": "not run: cost"}
    fourth = documents.table_4(pd.DataFrame([measured, less, cold, absent, not_run]), reported)
    line, other = fourth.sections[1].rows
    assert line == ["tfidf", "token", "+ user token", "0.610 [0.55, 0.66]", "–", "–", "312", "90"]
    assert other == ["FED", "none", "FED", "–", "–", "–", "not run", "–"]
    assert "Chit-Chat: not run: no package" in fourth.notes
    liked = {"dataset": "convai2", "replies": "system", "of": "thumbs", "predictor": "tfidf", "measure": "auc"}
    fifth = documents.table_5(
        pd.DataFrame([liked | {"value": 0.45, "low": 0.42, "high": 0.48, "n": 9, "groups": 3}]), reported
    )
    assert fifth.sections[1].title == "ConvAI2, replies of a system, thumbs"
    assert fifth.sections[1].rows == [["tfidf", "–", "–", "0.450 [0.42, 0.48]", "–", "9"]]


def test_table_2_shows_both_measures_and_no_difference_that_cannot_be_had(reported):
    said = rows()["prediction"]
    frame = exchanges()
    test = (frame["split"] == "test").to_numpy()
    names = [row["name"] for row in (*said["models"], *said["without_text"])]
    made = {name: np.random.default_rng(at).normal(size=len(frame)) for at, name in enumerate(names)}
    made["personal-mean"] = personal_means(frame)
    found = by_person(
        {name: values[test] for name, values in made.items()},
        frame.loc[test, "interlocutor"],
        frame.loc[test, "person"],
        resamples=100,
        seed=1,
    )
    values = found.values.assign(penalty=np.nan, train=192, validation=24)
    document = documents.table_2(values, found.differences, reported, said)
    by_label = {tuple(row[:2]): row for row in document.sections[0].rows}
    assert by_label["Interlocutor", "yes"][3] == "0.496"
    assert by_label["No text: the person's mean in training", "–"][4] == "–"
    assert by_label["No text: the person's mean in training", "–"][2] != "–"
    drawn, shown = documents.table_2_figure(values, said, reported)
    assert len(shown) == 2 * len(names) and drawn.axes[0].get_title(loc="left") == "Over all exchanges"


def test_numbers_alone_are_published(root):
    """No table of the study holds a text of a dialogue, nor who said it."""
    texts = {field.name for name in ("contexts", "responses") for field in schema.table(name).fields} - {
        "dataset", "context_id", "dialogue_id", "system_id", "turn",
    }  # fmt: skip
    assert {"history", "response"} <= texts
    for path in (root / "results/continuity").glob("*.csv"):
        assert not texts & set(pd.read_csv(path, nrows=1).columns)


def test_the_curve_by_history_takes_the_balanced_accuracy_alone():
    from comperdial.studies.continuity.history import GROUPS, by_history, draw

    rows = [
        {
            "dataset": dataset, "split": split, "rate": rate, "group": group, "model": model, "user": user,
            "measure": measure, "against": None, "value": 0.6, "low": 0.5, "high": 0.7, "users": 4.0,
            "n": 3.0 if group == "1" else 40.0,
        }
        for dataset, split in (("chitchat", "time"), ("convai2", "time"))
        for rate in ("balanced", "natural")
        for group in (*GROUPS, "all", "cold")
        for model in ("tfidf", "minilm")
        for user in ("none", "token")
        for measure in ("accuracy", "auc")
    ]  # fmt: skip
    shown = by_history(pd.DataFrame(rows))
    assert len(shown) == 2 * (len(GROUPS) - 1) * 2
    assert set(shown["panel"]) == {"Chit-Chat, by time", "ConvAI2, by time"}
    figure, _ = draw(pd.DataFrame(rows))
    assert len(figure.axes) == 2
