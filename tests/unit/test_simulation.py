"""The simulated raters: reproducible, marked as simulated, and a truth that statistics recover."""

import copy

import krippendorff
import numpy as np
import pandas as pd
import pytest
import yaml

from comperdial import schema
from comperdial.challenge.dialogues import Dialogue, make_tables
from comperdial.challenge.simulation import Raters, rate_tables, read_raters, simulate
from comperdial.challenge.submissions import read_challenge
from comperdial.cli import main
from comperdial.core.errors import ConfigError
from comperdial.schema.dimensions import AXES, OVERALL

MODEL = {
    "skill": {"good": 0.9, "fair": 0.5, "poor": 0.1},
    "turn": {
        "skill_weight": 1.0, "relevance_weight": 0.3, "dialogue_noise": 0.2, "system_dialogue_noise": 0.2,
        "turn_noise": 0.4, "short_words": 4, "short_turn": -0.5, "long_words": 40, "long_turn": -0.2,
    },
    "dialogue": {"long": -0.9, "dull": -0.6, "same_opening": -0.7, "noise": 0.3, "spread": 1.1},
    "thresholds": [-1.5, -0.5, 0.5, 1.5],
    "raters": [
        {"id": "ann", "slope": 1.0, "bias": 0.0, "turn_noise": 0.5, "dialogue_noise": 0.5, "mark": 0.6},
        {"id": "bob", "slope": 0.9, "bias": -0.3, "turn_noise": 0.6, "dialogue_noise": 0.6, "mark": 0.9},
    ],
}  # fmt: skip
DULL = {"turn": dict.fromkeys(MODEL["turn"], 0.0), "dialogue": dict.fromkeys(MODEL["dialogue"], 0.0)}


def still(**parts):
    """Return a model of which nothing moves the truth but the given weights."""
    model = copy.deepcopy(MODEL | DULL)
    model["turn"] |= {"short_words": 4, "long_words": 40} | parts.get("turn", {})
    model["dialogue"] |= {"spread": 1.0} | parts.get("dialogue", {})
    return Raters(**model)


def tables_of(answers, dialogues=4, turns=3):
    """Return contexts and responses of an invented set: system -> its response at a turn."""
    talks = [
        Dialogue(
            f"d{n}",
            {"A": ["i am a baker."], "B": ["i am a sailor.", "i intend to cross the ocean in the future."]},
            tuple(f"utterance number {i} of talk {n} about trains" for i in range(2 * turns)),
        )
        for n in range(dialogues)
    ]
    responses = {
        s: {(d.dialogue_id, t): answer(t) for d in talks for t in range(turns)} for s, answer in answers.items()
    }
    systems = {system: {"kind": "agent", "track": None, "description": ""} for system in answers}
    tables = make_tables("mini", talks, systems, responses, where="test")
    return tables["contexts"], tables["responses"]


def plain(turn):
    """Six words, no habit."""
    return f"so {'abcdefgh'[turn] * 3} answer that of dialogue"


MINI = tables_of(
    {"good": lambda t: f"{'xyz'[t]} i cross the ocean on trains", "fair": plain, "poor": lambda _: "no", "other": plain}
)


def test_the_same_seed_gives_the_same_ratings_whatever_the_order_of_the_rows():
    contexts, responses = MINI
    model = Raters(**MODEL)
    one = simulate(contexts, responses, model, seed=7)
    two = simulate(contexts.sample(frac=1, random_state=1), responses.sample(frac=1, random_state=2), model, seed=7)
    for here, there in zip(one, two, strict=True):
        pd.testing.assert_frame_equal(here, there)
    assert not simulate(contexts, responses, model, seed=8)[0].equals(one[0])


def test_a_system_without_a_skill_is_not_rated_and_changes_nothing():
    contexts, responses = MINI
    with_it = simulate(contexts, responses, Raters(**MODEL), seed=7)
    without = simulate(contexts, responses[responses["system_id"] != "other"], Raters(**MODEL), seed=7)
    for here, there in zip(with_it, without, strict=True):
        assert {*here["system_id"]} == {*MODEL["skill"]}
        pd.testing.assert_frame_equal(here, there)
    with pytest.raises(ConfigError, match="no system that has responses has a skill"):
        simulate(contexts, responses[responses["system_id"] == "other"], Raters(**MODEL), seed=7)


def test_ratings_and_marks_are_as_raters_give_them():
    ratings, truth = simulate(*MINI, Raters(**MODEL), seed=7)
    assert {*ratings["source"]} == {"simulated"}
    assert {*truth["signature"]} == {"simulated_truth|seed:7"}
    assert {*ratings.query("level == 'turn'")["dimension"]} == {OVERALL}
    assert {*ratings.query("level == 'dialogue'")["dimension"]} == {OVERALL, *AXES}
    marks = ratings[(ratings["dimension"] != OVERALL) & (ratings["rating"] == 0)]
    overall = ratings[ratings["dimension"] == OVERALL]
    marked = marks.merge(overall, on=["level", "item_id", "system_id", "annotator_id"], suffixes=("", "_overall"))
    assert len(marked) == len(marks) > 0
    assert marked["rating_overall"].max() <= 3


@pytest.mark.parametrize(
    ("parts", "level", "better", "worse"),
    [
        ({"turn": {"skill_weight": 1.0}}, "turn", "good", "poor"),
        ({"turn": {"relevance_weight": 1.0}}, "turn", "good", "fair"),
        ({"turn": {"short_turn": -1.0}}, "turn", "fair", "poor"),
        ({"turn": {"long_words": 5, "long_turn": -1.0}}, "turn", "poor", "good"),
        ({"dialogue": {"dull": -1.0}}, "dialogue", "fair", "poor"),
        ({"dialogue": {"same_opening": -1.0}}, "dialogue", "fair", "poor"),
        ({"dialogue": {"long": -1.0}, "turn": {"long_words": 5}}, "dialogue", "poor", "fair"),
    ],
)
def test_each_weight_does_what_it_says_and_zero_removes_its_effect(parts, level, better, worse):
    truth = simulate(*MINI, still(**parts), seed=1)[1].query("level == @level").groupby("system_id")["value"].mean()
    assert truth[better] > truth[worse]
    flat = simulate(*MINI, still(), seed=1)[1]["value"]
    assert (flat == 0).all()


@pytest.fixture(scope="module")
def demo(root, tmp_path_factory):
    """The demo at full size: its ratings and their truth."""
    folder = tmp_path_factory.mktemp("demo")
    read_challenge("demo", root / "data/demo/dialogues.json", [root / "data/demo/submissions"], folder)
    rate_tables(folder, root / "data/demo/raters.yaml", seed=2024)
    return schema.ratings_in(folder), schema.read(folder / "truth.parquet", "scores")


@pytest.mark.parametrize(
    ("level", "count", "r", "alpha"), [("turn", 10_395, 0.998, 0.58), ("dialogue", 1_485, 0.992, 0.66)]
)
def test_the_demo_recovers_its_truth(demo, level, count, r, alpha):
    """Mean ratings of systems, and Krippendorff's alpha of the six raters; docs/demo.md has these numbers."""
    ratings, truth = (frame[frame["level"] == level] for frame in demo)
    overall = ratings[ratings["dimension"] == OVERALL]
    table = overall.pivot(index="annotator_id", columns=["item_id", "system_id"], values="rating")
    assert table.shape == (6, count)
    means = [frame.groupby("system_id")[column].mean() for frame, column in ((overall, "rating"), (truth, "value"))]
    assert np.corrcoef(*means)[0, 1] == pytest.approx(r, abs=5e-4)
    assert krippendorff.alpha(table.to_numpy(), level_of_measurement="interval") == pytest.approx(alpha, abs=5e-3)


def test_the_command_replaces_simulated_ratings_and_no_others(tmp_path, capsys):
    for name, frame in zip(("contexts", "responses"), MINI, strict=True):
        schema.write(tmp_path / f"{name}.parquet", frame, name)
    (tmp_path / "raters.yaml").write_text(yaml.safe_dump(MODEL))
    command = ["simulate", str(tmp_path), "--raters", str(tmp_path / "raters.yaml"), "--seed", "7"]
    assert main(command) == main(command) == 0
    ratings = schema.ratings_in(tmp_path)
    schema.write(tmp_path / "ratings.parquet", ratings.assign(source=["human", *ratings["source"][1:]]), "ratings")
    assert main(command) == 1
    assert "it holds ratings by human" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.pop("thresholds"), "no 'thresholds'"),
        (lambda m: m["turn"].update(noise=1), "unknown key 'noise'.*turn_noise"),
        (lambda m: m["skill"].update(good=1.2), "skill.good: got 1.2; expected a number from 0 to 1"),
        (lambda m: m.update(thresholds=[1, 0, 2, 3]), "four rising numbers"),
        (lambda m: m["raters"].append(m["raters"][0]), "two raters have the same id"),
    ],
)
def test_a_wrong_parameter_is_named(tmp_path, change, message):
    model = copy.deepcopy(MODEL)
    change(model)
    (tmp_path / "raters.yaml").write_text(yaml.safe_dump(model))
    with pytest.raises(ConfigError, match=message):
        read_raters(tmp_path / "raters.yaml")
