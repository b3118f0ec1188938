"""A judge with one metric a dimension, as one judge of the study: its panel, and what makes it one."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from comperdial import schema
from comperdial.core.errors import ConfigError, UnknownNameError
from comperdial.evaluation.ensembles import Ensembles
from comperdial.evaluation.interdimensional import interdimensional
from comperdial.evaluation.rated import RatedSet
from comperdial.judges.tasks import as_one, read_judging
from comperdial.schema.evaluated import DIMENSIONS

DIALOGUE = DIMENSIONS["dialogue"]
OUTPUTS = [f"i-{dimension}:{dimension}" for dimension in DIALOGUE]


def table(name, rows):
    return schema.validate(pd.DataFrame(rows, columns=schema.table(name).columns), name)


@pytest.fixture(scope="module")
def rated():
    """Return twenty dialogues, rated; a judge of five outputs, and one of five metrics that says the same."""
    rng = np.random.default_rng(8)
    ratings, scores, contexts = [], [], []
    for d in range(20):
        contexts.append(("d", f"d{d}-0", f"d{d}"))
        for dimension in DIALOGUE:
            value = float(rng.integers(1, 6))
            ratings.append(("d", "dialogue", f"d{d}", "bot", "ann", None, dimension, value, 1.0, 5.0, "human"))
            said = np.float32(rng.random())
            of = [("judge", dimension, said), (f"i-{dimension}", dimension, said), (f"i-{dimension}", "outside", 0.5)]
            scores += [("d", "dialogue", f"d{d}", "bot", *one, 0, f"{one[0]}|v:1") for one in of]
    contexts = pd.DataFrame(contexts, columns=["dataset", "context_id", "dialogue_id"])
    return RatedSet("d", "dialogue", table("ratings", ratings), contexts), table("scores", scores)


def panel(found, who):
    return found[found["who"] == who].drop(columns="who").reset_index(drop=True)


@pytest.mark.parametrize(
    "metrics",
    [
        ["judge", f"implicit_mine={','.join(reversed(OUTPUTS))}"],
        {"judge": [f"judge:{name}" for name in DIALOGUE], "implicit_mine": OUTPUTS},
    ],
)
def test_metrics_of_one_judge_have_a_panel_together(rated, metrics):
    found = interdimensional(*rated, metrics=metrics)
    assert list(dict.fromkeys(found["who"])) == ["human", "judge", "implicit_mine"]
    pd.testing.assert_frame_equal(panel(found, "implicit_mine"), panel(found, "judge"))


def test_a_group_that_lacks_a_dimension_has_no_panel(rated):
    assert set(interdimensional(*rated, metrics={"i": OUTPUTS[:-1]})["who"]) == {"human"}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("i=i-coherence:coherense", "unknown output 'i-coherence:coherense'.*Did you mean 'i-coherence:coherence'"),
        ("i=i-coherence", "output 'i-coherence'; expected METRIC:OUTPUT"),
        ("i=", "output ''; expected METRIC:OUTPUT"),
        ("=i-coherence:coherence", "a group of metrics without a name"),
        ("i=i-coherence:coherence,judge:coherence", "i: two outputs for coherence"),
        ("human=" + ",".join(OUTPUTS), "human is a source of ratings"),
    ],
)
def test_what_is_no_group_is_refused(rated, entry, message):
    with pytest.raises(ConfigError, match=message):
        interdimensional(*rated, metrics=[entry])
    with pytest.raises(UnknownNameError, match="unknown metric 'jugde'"):
        interdimensional(*rated, metrics=["jugde"])


def question(dimension, level="turn", **more):
    fields = ["dialogue"] if level == "dialogue" else ["history", "response"]
    entry = {"prompt": f"implicit_{level}", "question": dimension, "fields": fields, "dimensions": [dimension]}
    return entry | {"labels": {"Yes": 1, "No": 0}} | more


def tasks(variants):
    judges = {name: {"service": "rules", "mode": mode} for name, mode in (("mine", "probabilities"), ("r", "generate"))}
    explicit = {"prompt": "explicit_turn", "fields": ["history", "response"], "dimensions": ["relevance", "overall"]}
    judging = {"judges": {"default": list(judges)}, "variants": variants | {"explicit": explicit}}
    return read_judging(judges, judging).tasks("x").values()


def test_the_questions_that_a_judge_is_asked_make_one_of_each_judge():
    variants = {f"q-{name}": question(name) for name in DIMENSIONS["turn"]}
    variants |= {f"q-{name}": question(name, "dialogue") for name in DIALOGUE if name != "overall"}
    # A rating by the probabilities of numbers is no question of these.
    variants["rating"] = question("overall", labels={"1": 1, "2": 2})
    found = as_one(tasks(variants))
    assert found == {"implicit_mine": [f"q-{name}_mine:{name}" for name in (*DIMENSIONS["turn"], *DIALOGUE[:-1])]}
    assert Ensembles.of({"dimensions": [found]}).direct == {"q-overall_mine": "implicit_mine"}
    # A level of which a dimension is not asked is left out, and with it a judge that has no other.
    del variants["q-coherence"]
    assert as_one(tasks(variants))["implicit_mine"][-1] == "q-overall_mine:overall"
    del variants["q-relevance"]
    assert as_one(tasks(variants)) == {}


def test_two_questions_of_one_dimension_are_refused():
    variants = {f"q-{name}": question(name) for name in DIMENSIONS["turn"]} | {"other": question("relevance")}
    with pytest.raises(ConfigError, match="q-relevance and other ask mine for relevance"):
        as_one(tasks(variants))
    # The same task of several data sets is one.
    del variants["other"]
    assert as_one([*tasks(variants), *map(dataclasses.replace, tasks(variants))])
