"""`comperdial audit --nominal`: labels that are names without an order."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score

import comperdial
from comperdial.core.errors import ComperdialError

KINDS = ["complaint", "praise", "question"]


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(1)
    true = rng.choice(KINDS, 120)

    def labels(right):
        return np.where(rng.random(120) < right, true, rng.choice(KINDS, 120))

    columns = {"rater_1": labels(0.8), "rater_2": labels(0.8), "gpt4_label": labels(0.9)}
    return pd.DataFrame({"post_id": [f"p{n}" for n in range(120)], "system": rng.choice(["a", "b"], 120), **columns})


def test_labels_are_compared_as_names(frame):
    audit = comperdial.audit(frame, nominal=True)
    numbers = audit.section("Agreement").numbers.set_index("what")["value"]
    raters = pd.concat([frame["rater_1"], frame["rater_2"]])
    judge = pd.concat([frame["gpt4_label"]] * 2)
    assert numbers["Exact agreement of the judge with a rater"] == pytest.approx((raters == judge).mean())
    assert numbers["Cohen's kappa of the judge with a rater"] == pytest.approx(cohen_kappa_score(raters, judge))
    shares = audit.section("Bias").numbers.set_index("what")["value"]
    for kind in KINDS:
        difference = (frame["gpt4_label"] == kind).mean() - (raters == kind).mean()
        assert shares[f"share of {kind}, judge − people"] == pytest.approx(difference)
    assert "Pearson" not in str(audit)
    assert not audit.failures(["kappa=0.4"])
    assert audit.failures(["kappa=0.9"])


def test_other_names_change_nothing(frame):
    renamed = frame.replace({"complaint": "z", "praise": "question", "question": "praise"})
    one, other = (comperdial.audit(labels, nominal=True).table["value"].dropna() for labels in (frame, renamed))
    np.testing.assert_allclose(sorted(one), sorted(other))


def test_a_message_names_the_option(frame, tmp_path):
    path = tmp_path / "labels.csv"
    frame.drop(columns="gpt4_label").to_csv(path, index=False)
    with pytest.raises(ComperdialError, match="--nominal"):
        comperdial.audit(path)


def test_no_labels_are_an_error():
    frame = pd.DataFrame({"post_id": [f"p{n}" for n in range(40)]})
    with pytest.raises(ComperdialError, match="no column of labels"):
        comperdial.audit(frame, nominal=True)


@pytest.mark.parametrize("names", [("rater_1", "rater_2"), ("ann_label", "ben_label"), ("ann", "ben")])
def test_columns_of_the_same_labels_are_raters(frame, names):
    named = frame.rename(columns=dict(zip(("rater_1", "rater_2"), names, strict=True)))
    made, known = (comperdial.audit(labels, nominal=True).table["value"].dropna() for labels in (named, frame))
    np.testing.assert_allclose(made, known)


@pytest.mark.parametrize(
    ("human", "columns", "raters"),
    [
        ("rater_1", ("rater_1", "rater_2"), 1), ("rater_1,rater_2", ("rater_1", "rater_2"), 2),
        ("rater_2,rater_1", ("fluency", "rating"), 0), ("fluency", ("rating", "fluency"), 1),
        ("rating", ("rating", "fluency"), 1), ("ann", ("ann", "ben"), 1),
    ],
)  # fmt: skip
def test_human_names_a_column_or_the_columns_of_raters(human, columns, raters):
    rng = np.random.default_rng(2)
    values = {name: rng.integers(1, 6, 40) for name in (*columns, "gpt4_score")}
    data = pd.DataFrame({"response": [f"text {n}" for n in range(40)], "system": ["a", "b"] * 20} | values)
    if not raters:
        with pytest.raises(ComperdialError, match="--human"):
            comperdial.audit(data, human=human, scale=[1, 5])
        return
    audit = comperdial.audit(data, human=human, scale=[1, 5])
    assert audit.judged.people.shape[1] == raters
    people = data[human.split(",")].mean(axis=1)
    found = audit.section("Agreement").numbers.set_index("what")["value"]["Pearson with people's mean"]
    assert found == pytest.approx(np.corrcoef(people, data["gpt4_score"])[0, 1])
