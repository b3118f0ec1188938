"""Items labelled by people and judges: the real files' counts, and DBDC3's measures of the majority baseline."""

import pandas as pd
import pytest

from comperdial import schema
from comperdial.data.catalogue import load_catalogue
from comperdial.data.labels import read_labels
from comperdial.data.preferences import read_dialogues, read_preferences
from comperdial.data.readers import dbdc3
from comperdial.data.recorded import import_scores
from comperdial.stats import breakdown

JUDGES = ["gemini_flash", "gemini_pro", "gpt-4o", "gpt-4o-mini", "llama-31", "mistral-v03"]


@pytest.fixture
def real(root, real_file):
    """Return a function: a data set and a function that reads it -> what it reads."""
    catalogue = root / "data/sources.yaml"

    def read(name, how):
        files = load_catalogue(catalogue).dataset(name).files
        return how(name, catalogue=catalogue, files={role: real_file(one.name) for role, one in files.items()})

    return read


@pytest.mark.parametrize(
    ("name", "items", "clusters", "raters", "labels", "some"),
    [
        ("wax", 246, 246, 8, 1380, {}),
        ("mtbench", 120, 60, 3, 246, {"model_b": 90, "model_a": 80, "tie": 76}),
        ("framing", 2552, 116, 4, 7656, {"no": 4385, "yes": 3263, "n/a: problem is resolved": 8}),
        ("cebab_aspects", 1008, 940, 10, 4032, {"Positive": 2011, "unknown": 1848, "Negative": 173}),
        ("cebab_stars", 711, 711, 10, 2193, {}),
        ("summeval", 6400, 1600, 3, 19200, {}),
        ("10k_prompts", 1698, 1698, 13, 3844, {}),
    ],
)
def test_alt_test(real, name, items, clusters, raters, labels, some):
    people, judges = real(f"alt_test_{name}", read_labels)
    assert (people["item"].nunique(), people["cluster"].nunique()) == (items, clusters)
    assert (set(people["rater"]), len(people)) == ({str(n + 1) for n in range(raters)}, labels)
    assert judges.groupby("judge").size().to_dict() == dict.fromkeys(JUDGES, items)
    counts = people["label"].value_counts().to_dict()
    if name in ("cebab_stars", "summeval", "10k_prompts"):
        assert set(counts) == set(judges["label"]) == {1, 2, 3, 4, 5}
    else:
        assert counts == (some or counts)


def test_pandalm(real):
    people, judges = real("pandalm", read_labels)
    wide = people.pivot(index="item", columns="rater", values="label")
    assert wide.mode(axis=1)[0].value_counts().to_dict() == {"second": 472, "first": 422, "tie": 105}
    assert (wide.nunique(axis=1) == 1).sum() == 879
    assert people["cluster"].nunique() == 170
    assert judges.groupby(["judge", "label"]).size().to_dict() == {
        ("gpt-3.5-turbo", "first"): 460, ("gpt-3.5-turbo", "second"): 476, ("gpt-3.5-turbo", "tie"): 38,
        ("gpt-3.5-turbo", "garbage"): 25,
        ("pandalm-7b", "first"): 433, ("pandalm-7b", "second"): 459, ("pandalm-7b", "tie"): 107,
    }  # fmt: skip
    votes = real("pandalm", read_preferences)
    assert votes.groupby("source").size().to_dict() == {"human": 2997, "gpt-3.5-turbo": 974, "pandalm-7b": 999}
    sides = ("first", "second")
    voted = {
        key for side in sides for key in zip(votes[f"{side}_dialogue_id"], votes[f"{side}_system_id"], strict=True)
    }
    assert voted == {one.key for one in real("pandalm", read_dialogues)}
    assert len({system for _, system in voted}) == 5


def test_face(real_tables, real_file, tmp_path):
    tables = real_tables("face")
    assert tables["contexts"]["dialogue_id"].nunique() == 467
    assert tables["contexts"]["dialogue_id"].str[-3:].nunique() == 260
    assert (len(tables["responses"]), len(tables["systems"])) == (2235, 9)
    by = tables["ratings"].groupby("dimension")["rating"]
    assert by.get_group("relevance").value_counts().to_dict() == {0: 1343, 1: 327, 2: 560}
    assert by.get_group("interestingness").value_counts().to_dict() == {0: 1069, 1: 467, 2: 699}
    overall = by.get_group("dialogue_overall").value_counts().to_dict()
    assert overall == {0: 208, 1: 129, 2: 62, 3: 57, 4: 11}
    for name, frame in tables.items():
        schema.write(tmp_path / f"{name}.parquet", frame, name)
    how = {"format": "face", "origin": "informagi/face", "about": "theirs"}
    scores = import_scores("face_recorded", tmp_path, real_file("face_run"), **how)
    assert scores.groupby("output").size().to_dict() == {
        **dict.fromkeys(("relevance", "interestingness"), 2220),
        **dict.fromkeys(("understanding", "task_completion", "interest_arousal", "efficiency", "dialogue_overall"), 466),
    }  # fmt: skip


# Training part -> scored part, of a system or of all: label and mean distribution; n and gold labels; accuracy, F1(X),
# F1(T+X); JS and MSE of O, T, X / O, T+X / O+T, X. From the challenge's own eval.py and a second program, both on these files.
DBDC3 = """
en_dev en_eval IRIS X .3287 .2776 .3937 500 196/91/213 .4260 .5975 .8713 .0471 .0314 .0313 .0271 .0356 .0346
en_dev en_eval TKTK X .3512 .2757 .3731 500 281/107/112 .2240 .3660 .7500 .0737 .0508 .0485 .0410 .0609 .0454
en_dev en_eval CIC X .2892 .2976 .4131 500 99/286/115 .2300 .3740 .9848 .0235 .0075 .0155 .0143 .0083 .0184
en_dev en_eval YI T .3481 .3608 .2911 500 180/304/16 .6080 0 .9648 .0130 .0054 .0076 .0074 .0067 .0074
en_dev en_eval all X .3279 .3027 .3694 2000 756/788/456 .2280 .3713 .9002 .0420 .0251 .0269 .0241 .0296 .0278
en_dev en_dev all X .3279 .3027 .3694 4150 1443/978/1729 .4166 .5882 .9076 .0433 .0294 .0264 .0250 .0324 .0302
ja_eval ja_eval DIT X .3212 .2573 .4215 550 179/84/287 .5218 .6858 .8671 .1057 .0894 .0608 .0552 .0848 .0617
ja_eval ja_eval DCM O .4079 .3112 .2808 550 228/179/143 .4145 0 0 .1373 .1077 .0757 .0708 .1065 .0702
ja_eval ja_eval IRS X .3568 .2168 .4264 550 212/74/264 .4800 .6486 .7978 .1472 .1222 .0875 .0772 .1153 .0903
revised_en_dev revised_en_eval CIC T .3163 .4612 .2226 500 133/134/233 .2680 0 .9130 .0607 .0271 .0444 .0367 .0289 .0546
"""


@pytest.mark.parametrize("row", DBDC3.strip().split("\n"))
def test_the_majority_baseline_of_dbdc3(real_tables, row):
    train, scored, system, label, *values = row.split()

    def shares(name):
        ratings = real_tables(f"dbdc3_{name}")["ratings"]
        return dbdc3.shares(ratings if system == "all" else ratings[ratings["system_id"] == system])

    most, mean = breakdown.majority(shares(train))
    result = breakdown.evaluate(shares(scored), most, mean)
    assert (most, str(result.n), "/".join(map(str, result.gold))) == (label, values[3], values[4])
    numbers = [*mean, result.accuracy, result.f1_x, result.f1_tx, *result.js, *result.mse]
    assert [round(float(value), 4) for value in numbers] == list(map(float, values[:3] + values[5:]))


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("dbdc3_en_dev", {"CIC": (9979, 10268, 14253), "IRIS": (9861, 8328, 11811),
                          "TKTK": (10535, 8272, 11193), "YI": (10444, 10823, 8733)}),
        ("dbdc3_en_eval", {"CIC": (4362, 5889, 4749), "IRIS": (5176, 4398, 5426),
                           "TKTK": (6648, 4382, 3970), "YI": (5312, 6047, 3641)}),
        ("dbdc3_ja_eval", {"DCM": (6731, 5135, 4634), "DIT": (5300, 4245, 6955), "IRS": (5888, 3577, 7035)}),
        ("dbdc3_revised_en_dev", {"CIC": (10912, 15910, 7678), "IRIS": (9861, 8328, 11811),
                                  "TKTK": (10535, 8272, 11193), "YI": (9592, 13922, 6486)}),
        ("dbdc3_revised_en_eval", {"CIC": (4341, 4994, 5665), "IRIS": (5176, 4398, 5426),
                                   "TKTK": (6648, 4382, 3970), "YI": (4530, 5153, 5317)}),
    ],
)  # fmt: skip
def test_labels_of_dbdc3(real_tables, name, labels):
    ratings = real_tables(name)["ratings"]
    counts = pd.crosstab(ratings["system_id"], ratings["rating"])[[2.0, 1.0, 0.0]]
    assert {system: tuple(row) for system, row in zip(counts.index, counts.to_numpy().tolist(), strict=True)} == labels
    assert (ratings.groupby("item_id").size() == 30).all()
