"""The simulated raters: reproducible, marked as simulated, and a truth that statistics find again."""

import copy
from collections.abc import Callable

import krippendorff
import numpy as np
import pandas as pd
import pytest
import yaml

from comperdial import schema
from comperdial.challenge import simulation
from comperdial.challenge.dialogues import Dialogue, read_dialogues
from comperdial.challenge.raters import Raters
from comperdial.challenge.roster import read_roster
from comperdial.challenge.runner import run_agent
from comperdial.challenge.submissions import read_submissions
from comperdial.challenge.tables import make_tables
from comperdial.challenge.worker import load
from comperdial.core.errors import ConfigError, FileError, SchemaError
from comperdial.evaluation import ratings
from comperdial.schema.dimensions import AXES, OVERALL

MODEL = {
    "skill": {},
    "turn": {
        "skill_weight": 1.0,
        "relevance_weight": 0.3,
        "dialogue_noise": 0.2,
        "system_dialogue_noise": 0.2,
        "turn_noise": 0.4,
        "short_words": 4,
        "short_turn": -0.5,
        "long_words": 40,
        "long_turn": -0.2,
    },
    "dialogue": {"long": -0.9, "dull": -0.6, "same_opening": -0.7, "noise": 0.3, "spread": 1.1},
    "thresholds": [-1.5, -0.5, 0.5, 1.5],
    "raters": [
        {"id": "ann", "slope": 1.0, "bias": 0.0, "turn_noise": 0.5, "dialogue_noise": 0.5, "mark": 0.6},
        {"id": "bob", "slope": 0.9, "bias": -0.3, "turn_noise": 0.6, "dialogue_noise": 0.6, "mark": 0.9},
    ],
}
SKILL = {"good": 0.9, "fair": 0.5, "poor": 0.1}
NOISES = ("dialogue_noise", "system_dialogue_noise", "turn_noise")


def changed(**parts):
    """Return the small model with parts replaced: turn and dialogue by parameter, the others whole."""
    model = copy.deepcopy(MODEL)
    for part, value in parts.items():
        model[part] = model[part] | value if isinstance(value, dict) else value
    return Raters(**model)


def still(**parts):
    """Return a model of which nothing moves the truth but what is given."""
    model = copy.deepcopy(MODEL)
    model["turn"] = dict.fromkeys(model["turn"], 0.0) | {"short_words": 4, "long_words": 40} | parts.get("turn", {})
    model["dialogue"] = dict.fromkeys(model["dialogue"], 0.0) | {"spread": 1.0} | parts.get("dialogue", {})
    return Raters(**model | {"raters": parts.get("raters", model["raters"])})


def tables_of(answers: dict[str, Callable[[str, int], str]], dialogues: int = 4, turns: int = 3):
    """Return contexts and responses of an invented set: system -> what it says at a dialogue and turn."""
    talks = [
        Dialogue(
            f"d{n}",
            {"A": ["i am a baker."], "B": ["i am a sailor.", "i intend to cross the ocean in the future."]},
            tuple(f"utterance number {i} of talk {n} about trains" for i in range(2 * turns)),
        )
        for n in range(dialogues)
    ]
    responses = {
        system: {(d.dialogue_id, turn): say(d.dialogue_id, turn) for d in talks for turn in range(turns)}
        for system, say in answers.items()
    }
    systems = {system: {"kind": "agent", "track": None, "description": ""} for system in answers}
    tables = make_tables("mini", talks, systems, responses, where="test")
    return tables["contexts"], tables["responses"]


def plain(dialogue: str, turn: int) -> str:
    """Six words, no habit; the first word is always the same, the second never."""
    return f"so {'abcdefgh'[turn] * 3} answer that of dialogue"


MINI = tables_of(
    {
        "good": lambda d, t: f"{'xyz'[t]} i cross the ocean on trains",
        "fair": plain,
        "poor": lambda d, t: "no",
        "unknown": plain,
    }
)


def truth(tables, level):
    found = tables["truth"]
    return found[found["level"] == level].set_index(["item_id", "system_id"])["value"].astype(float)


def overall(tables, level):
    found = tables["ratings"]
    return found[(found["level"] == level) & (found["dimension"] == OVERALL)]


# --- what comes out ------------------------------------------------------------------------------------------------


def written(tables, folder):
    for name, frame in tables.items():
        schema.write(folder / f"{name}.parquet", frame, "scores" if name == "truth" else name)
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_the_same_seed_gives_the_same_files_whatever_the_order_of_the_rows(tmp_path):
    contexts, responses = MINI
    found = []
    for number, (c, r, seed) in enumerate(
        [
            (contexts, responses, 7),
            (contexts, responses, 7),
            (contexts.sample(frac=1, random_state=1), responses.sample(frac=1, random_state=2), 7),
            (contexts, responses, 8),
        ]
    ):
        (tmp_path / str(number)).mkdir()
        found.append(written(simulation.simulate(c, r, SKILL, Raters(**MODEL), seed=seed), tmp_path / str(number)))
    assert found[0] == found[1] == found[2]
    assert all(found[0][name] != found[3][name] for name in found[0])


@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_parts_of_any_size_make_the_same_tables(tmp_path, rows):
    contexts, responses = MINI
    parts = [responses[start : start + rows] for start in range(0, len(responses), rows)]
    rated = simulation.rate(contexts, parts, SKILL, Raters(**MODEL), seed=7)
    assert rated.unrated == ("unknown",)
    whole = simulation.simulate(contexts, responses, SKILL, Raters(**MODEL), seed=7)
    for name in simulation.RATED:
        found = list(rated.parts(name, rows))
        # At least what all raters say of one item.
        assert max(map(len, found)) <= max(rows, len(MODEL["raters"]) * (1 + len(AXES)))
        pd.testing.assert_frame_equal(pd.concat(found, ignore_index=True), whole[name])
        table = "scores" if name == "truth" else name
        assert list(whole[name].sort_values(list(schema.table(table).key), kind="stable").index) == list(
            range(len(whole[name]))
        )


def test_whose_ratings_a_table_holds_is_told_without_reading_it_whole(tmp_path):
    rated = simulation.simulate(*MINI, SKILL, Raters(**MODEL), seed=7)["ratings"].query("level == 'turn'")
    mixed = rated.assign(source=["human", *rated["source"][1:]])
    schema.write(tmp_path / "ratings.parquet", mixed, "ratings")
    assert simulation.sources(tmp_path / "ratings.parquet") == {"human", "simulated"}
    mixed.drop(columns="source").to_parquet(tmp_path / "ratings.parquet")
    with pytest.raises(SchemaError, match=r"ratings\.parquet: no column 'source'"):
        simulation.sources(tmp_path / "ratings.parquet")
    (tmp_path / "ratings.parquet").write_text("no Parquet")
    with pytest.raises(FileError, match="not a readable Parquet file"):
        simulation.sources(tmp_path / "ratings.parquet")


def test_a_system_without_a_skill_is_not_rated_and_changes_nothing():
    contexts, responses = MINI
    with_it = simulation.simulate(contexts, responses, SKILL, Raters(**MODEL), seed=7)
    without = simulation.simulate(
        contexts, responses[responses["system_id"] != "unknown"], SKILL, Raters(**MODEL), seed=7
    )
    for name, frame in with_it.items():
        assert set(frame["system_id"]) == set(SKILL)
        pd.testing.assert_frame_equal(frame, without[name])


def test_no_system_with_a_skill_is_one_clear_message():
    with pytest.raises(ConfigError, match="no system that has responses has a skill"):
        simulation.simulate(*MINI, {"another": 0.5}, Raters(**MODEL), seed=7)


def check_ratings(tables):
    assert set(tables["ratings"]["source"]) == {"simulated"}
    for level in ("turn", "dialogue"):
        rated = overall(tables, level)
        assert set(rated["rating"]) <= {1.0, 2.0, 3.0, 4.0, 5.0}
        assert set(zip(rated["scale_min"], rated["scale_max"], strict=True)) == {(1.0, 5.0)}
        assert not rated.duplicated(["item_id", "system_id", "annotator_id"]).any()
    assert set(tables["ratings"].query("level == 'turn'")["dimension"]) == {OVERALL}
    assert set(tables["ratings"].query("level == 'dialogue'")["dimension"]) == {OVERALL, *AXES}
    marks = tables["ratings"].query("dimension != @OVERALL")
    assert set(marks["rating"]) == {0.0, 1.0}
    keys = ["item_id", "system_id", "annotator_id"]
    marked = marks[marks["rating"] == 0].merge(overall(tables, "dialogue"), on=keys, suffixes=("", "_overall"))
    assert len(marked) == (marks["rating"] == 0).sum()
    assert marked["rating_overall"].max() <= 3
    assert set(marked["dimension"]) == set(AXES)


def test_ratings_and_marks_are_as_raters_give_them():
    contexts, responses = tables_of(dict.fromkeys(SKILL, plain), dialogues=40)
    check_ratings(simulation.simulate(contexts, responses, SKILL, Raters(**MODEL), seed=7))


def test_who_never_marks_has_no_marks():
    model = changed(raters=[MODEL["raters"][0] | {"mark": 0.0}])
    found = simulation.simulate(*MINI, SKILL, model, seed=7)["ratings"].query("level == 'dialogue'")
    assert set(found.loc[found["dimension"] != OVERALL, "rating"]) == {1.0}


def test_the_noise_of_raters_comes_of_the_seed_too():
    one, other = (
        simulation.simulate(*MINI, SKILL, still(), seed=seed)["ratings"].query("level == 'turn'") for seed in (7, 8)
    )
    assert list(one["rating"]) != list(other["rating"])


def test_a_context_without_history_can_be_rated():
    contexts, responses = MINI
    simulation.simulate(contexts.assign(history=[[]] * len(contexts)), responses, SKILL, Raters(**MODEL), seed=7)


# --- each weight ----------------------------------------------------------------------------------------------------


def test_with_every_weight_0_the_truth_is_0():
    found = simulation.simulate(*MINI, SKILL, still(), seed=7)["truth"]
    assert set(found["value"]) == {0.0}


# What each parameter alone does to the truths of two systems, "a" whose text has the habit and "b" whose has not.
LONG = "word " * 41
HABITS = {
    "skill_weight": ("turn", plain, 1.5, (1.5 * 0.6, 1.5 * -0.6)),
    "relevance_weight": ("turn", lambda d, t: "ocean trains utterance", 0.5, (0.5, -0.5)),
    "short_turn": ("turn", lambda d, t: f"{'xyz'[t]} no thanks", -0.4, (-0.4, 0.0)),
    "long_turn": ("turn", lambda d, t: f"{'xyz'[t]} {LONG}", -0.3, (-0.3, 0.0)),
    "long": ("dialogue", lambda d, t: f"{'xyz'[t]} {LONG}", -0.9, (-0.9, 0.0)),
    "dull": ("dialogue", lambda d, t: f"{'xyz'[t]} say no more thanks", -0.6, (-0.6, 0.0)),
    # By two words; and the first of three turns cannot begin like an earlier one.
    "same_opening": ("dialogue", lambda d, t: f"to that {'xyz'[t]} say always this", -0.7, (-0.7 * 2 / 3, 0.0)),
}


@pytest.mark.parametrize("name", HABITS)
def test_a_weight_does_what_it_says_and_0_removes_it(name):
    level, say, weight, expected = HABITS[name]
    contexts, responses = tables_of({"a": say, "b": plain})
    skill = {"a": 0.8, "b": 0.2}
    for value, (a, b) in ((weight, expected), (0.0, (0.0, 0.0))):
        found = simulation.simulate(contexts, responses, skill, still(**{level: {name: value}}), seed=7)
        means = truth(found, level).groupby("system_id").mean()
        assert means["a"] == pytest.approx(a, abs=1e-6)
        assert means["b"] == pytest.approx(b, abs=1e-6)
        if level == "dialogue":
            assert set(truth(found, "turn")) == {0.0}


@pytest.mark.parametrize(
    ("name", "same"),
    [("dialogue_noise", ["dialogue"]), ("system_dialogue_noise", ["dialogue", "system_id"]), ("turn_noise", None)],
)
def test_each_noise_belongs_to_what_it_is_named_after(name, same):
    contexts, responses = tables_of({"a": plain, "b": plain}, dialogues=300)
    found = simulation.simulate(contexts, responses, {"a": 0.5, "b": 0.5}, still(turn={name: 0.7}), seed=7)
    values = truth(found, "turn").reset_index().assign(dialogue=lambda f: f["item_id"].str.split("-").str[0])
    keys = same or ["item_id", "system_id"]
    assert set(values.groupby(keys)["value"].nunique()) == {1}
    drawn = values.groupby(keys)["value"].first()
    assert drawn.nunique() == len(drawn)
    assert drawn.std() == pytest.approx(0.7, rel=0.12)


def test_noise_and_spread_of_dialogues():
    contexts, responses = tables_of({"a": plain, "b": plain}, dialogues=300)
    skill = {"a": 1.0, "b": 0.0}
    model = still(turn={"skill_weight": 1.0}, dialogue={"noise": 0.5, "spread": 2.0})
    found = truth(simulation.simulate(contexts, responses, skill, model, seed=7), "dialogue").unstack()
    assert found.mean().to_dict() == {"a": pytest.approx(2.0, abs=0.1), "b": pytest.approx(-2.0, abs=0.1)}
    assert found.std().mean() == pytest.approx(0.5, rel=0.12)


@pytest.mark.parametrize(("slope", "bias", "expected"), [(1.0, 0.0, (4, 2)), (0.0, 0.6, (4, 4)), (2.0, 0.0, (5, 1))])
def test_slope_and_bias_of_a_rater(slope, bias, expected):
    rater = {"id": "ann", "slope": slope, "bias": bias, "turn_noise": 0.0, "dialogue_noise": 0.0, "mark": 0.0}
    model = still(turn={"skill_weight": 1.0}, raters=[rater])
    contexts, responses = tables_of({"a": plain, "b": plain})
    found = simulation.simulate(contexts, responses, {"a": 1.0, "b": 0.0}, model, seed=7)
    for level in ("turn", "dialogue"):
        means = overall(found, level).groupby("system_id")["rating"].mean()
        assert (means["a"], means["b"]) == expected


# --- the embedded benchmark at its full size -------------------------------------------------------------------------


def answers_of(entry, dialogues, api):
    """Return what an agent says, without a process of its own where it needs no runner: 97 of them take their time."""
    if entry["track"] == "api":
        return run_agent(entry["id"], entry, dialogues, api=api).responses
    agent = load(entry)
    return {
        (dialogue.dialogue_id, turn): text
        for turn in range(7)
        for dialogue, text in zip(
            dialogues, agent.generate_responses([d.conversation(turn) for d in dialogues]), strict=True
        )
    }


@pytest.fixture(scope="module")
def demo(root):
    """Return contexts, skills, model and the simulated tables of the embedded benchmark, made by the library."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        dialogues = read_dialogues("data/demo/dialogues.json")
        roster = read_roster("data/demo/agents.yaml")
        said = {entry["id"]: answers_of(entry, dialogues, roster.api) for entry in roster.agents}
        people = read_submissions(["data/demo/submissions"], dialogues)
        model = simulation.read_raters("data/demo/raters.yaml")
    responses = said | people.responses
    tables = make_tables("demo", dialogues, roster.systems | people.systems, responses, where="test")
    skill = roster.skills | model.skill
    rated = simulation.simulate(tables["contexts"], tables["responses"], skill, model, seed=2024)
    return tables | rated | {"skill": skill, "model": model}


def test_the_demo_has_comperdials_size(demo):
    assert len(demo["systems"]) == 99
    assert len(demo["responses"]) == len(demo["ratings"].query("level == 'turn'")) / 6 == 10_395
    assert len(overall(demo, "dialogue")) / 6 == 1_485
    assert (
        demo["ratings"].query("level == 'turn'")["annotator_id"].nunique()
        == demo["ratings"].query("level == 'dialogue'")["annotator_id"].nunique()
        == 6
    )
    assert demo["truth"]["level"].value_counts().to_dict() == {"turn": 10_395, "dialogue": 1_485}
    check_ratings(demo)
    for level in ("turn", "dialogue"):
        shares = overall(demo, level)["rating"].value_counts(normalize=True)
        assert shares.min() > 0.05, "no rating is hardly ever given"


def test_mean_ratings_of_systems_find_the_truth_and_the_truth_is_not_the_skill_alone(demo):
    # Measured over seeds 1 to 3 and 2024: 0.998 (turns) and 0.990 to 0.992 (dialogues) with the truth, 0.962 to 0.974
    # and 0.894 to 0.915 with the skill.
    for level, least, skills in (("turn", 0.99, (0.94, 0.99)), ("dialogue", 0.98, (0.85, 0.95))):
        means = overall(demo, level).groupby("system_id")["rating"].mean()
        assert means.corr(truth(demo, level).groupby("system_id").mean()) > least
        assert skills[0] < means.corr(pd.Series(demo["skill"])) < skills[1]


def test_annotator_bias_ranks_the_raters_by_their_bias(demo):
    # At turn level only: the mean truth of dialogues is below 0, where a flat slope looks like a kind rater.
    found = ratings.annotator_bias(demo["ratings"].query("level == 'turn'"), source="simulated").set_index(
        "annotator_id"
    )["bias"]
    true = {rater.id: rater.bias for rater in demo["model"].raters}
    assert list(found.sort_values().index) == sorted(true, key=true.__getitem__)


def test_noisier_raters_agree_less_with_the_others(demo):
    found = ratings.annotator_bias(demo["ratings"].query("level == 'turn'"), source="simulated").set_index(
        "annotator_id"
    )["spearman"]
    noise = {rater.id: rater.turn_noise / rater.slope for rater in demo["model"].raters}
    assert list(found.sort_values(ascending=False).index) == sorted(noise, key=noise.__getitem__)


def alpha(tables, contexts, level):
    found = ratings.alphas(tables["ratings"], contexts, seed=1, resamples=1, source="simulated")
    chosen = (found["level"] == level) & (found["dimension"] == OVERALL) & (found["metric"] == "interval")
    return float(found.loc[chosen, "value"].iloc[0])


@pytest.mark.parametrize("level", ["turn", "dialogue"])
def test_alpha_lies_where_the_noise_says(demo, level):
    """Other draws, another rounding and another implementation of alpha, from the kept truth and the parameters."""
    rng = np.random.default_rng(99)
    values = truth(demo, level).to_numpy()
    rows = []
    for rater in demo["model"].raters:
        seen = rng.normal(rater.slope * values + rater.bias, getattr(rater, f"{level}_noise"))
        rows.append(1 + sum((seen > t).astype(int) for t in demo["model"].thresholds))
    expected = krippendorff.alpha(reliability_data=np.array(rows), level_of_measurement="interval")
    assert alpha(demo, demo["contexts"], level) == pytest.approx(expected, abs=0.02)
    assert 0.5 < expected < 0.7


@pytest.mark.parametrize(("noise", "least", "most"), [(0.0, 1.0, 1.0), (1.0, 0.4, 0.7), (1000.0, -0.05, 0.05)])
def test_identical_raters_agree_as_far_as_noise_lets_them(noise, least, most):
    rater = {"slope": 1.0, "bias": 0.0, "turn_noise": noise, "dialogue_noise": noise, "mark": 0.5}
    model = changed(turn={"skill_weight": 2.0}, raters=[rater | {"id": f"r{n}"} for n in range(6)])
    contexts, responses = tables_of(dict.fromkeys(SKILL, plain), dialogues=60)
    found = simulation.simulate(contexts, responses, SKILL, model, seed=7)
    for level in ("turn", "dialogue"):
        assert least - 1e-9 <= alpha(found, contexts, level) <= most + 1e-9


def test_habits_lower_a_dialogue_below_its_turns(demo):
    turns, dialogues = truth(demo, "turn").groupby("system_id").mean(), truth(demo, "dialogue")
    spread = demo["model"].dialogue.spread
    lowered = dialogues.groupby("system_id").mean() - spread * turns
    kinds = lowered.groupby(lowered.index.str.replace(r"-?\d+$", "", regex=True)).mean()
    # Measured: verbose -0.70 (long turns), rules -0.68 and generic -0.56 (dull, same openings), human 0.05.
    for kind in ("verbose", "generic", "rules"):
        assert kinds[kind] < -0.3
    assert abs(kinds["human"]) < 0.15


# --- mistakes in the file of raters ----------------------------------------------------------------------------------


def rater(**values):
    return lambda m: m["raters"][1].update(values)


MISTAKES = [
    (lambda m: m.pop("thresholds"), "no 'thresholds'"),
    (lambda m: m.update(colour=1), "unknown key 'colour'"),
    (lambda m: m["turn"].pop("long_turn"), "turn: no 'long_turn'"),
    (lambda m: m["turn"].update(wit=1), "turn: unknown key 'wit'"),
    (lambda m: m.update(turn=None), "turn: got null; expected a mapping"),
    (lambda m: m["turn"].update(turn_noise=-0.1), "turn.turn_noise: got -0.1; expected a number of 0 or more"),
    (lambda m: m["turn"].update(skill_weight="1"), "turn.skill_weight: got '1'; expected a finite number"),
    (lambda m: m["turn"].update(skill_weight=float("inf")), "turn.skill_weight: got inf"),
    (lambda m: m.update(thresholds=[0, -1, 1, 2]), "thresholds: got [0, -1, 1, 2]; expected four rising numbers"),
    (lambda m: m.update(thresholds=[0, 0, 1, 2]), "thresholds: got [0, 0, 1, 2]"),
    (lambda m: m.update(thresholds=[0, 1, 2]), "thresholds: got [0, 1, 2]"),
    (lambda m: m.update(raters=[]), "raters: got an empty list"),
    (lambda m: m["raters"].append("carl"), "raters[2]: got a text; expected a mapping"),
    (lambda m: m["raters"][1].pop("slope"), "raters[1]: no 'slope'"),
    (rater(mood=1), "raters[1]: unknown key 'mood'"),
    (rater(mark=1.5), "raters[1].mark: got 1.5; expected a number from 0 to 1"),
    (rater(id=""), "raters[1].id: got ''"),
    (rater(id="ann"), "raters[1].id: got 'ann'; expected a name that no other rater has"),
    (lambda m: m.update(skill={"human-1": 1.2}), "skill.human-1: got 1.2; expected a number from 0 to 1"),
    (lambda m: m.update(skill={"human-1": True}), "skill.human-1: got True"),
    (lambda m: m.update(skill=[0.3]), "skill: got a list; expected a mapping"),
]


@pytest.mark.parametrize(("change", "message"), MISTAKES, ids=[message for _, message in MISTAKES])
def test_a_mistake_in_the_file_of_raters_is_named(tmp_path, change, message):
    model = copy.deepcopy(MODEL)
    change(model)
    path = tmp_path / "raters.yaml"
    path.write_text(yaml.safe_dump(model))
    with pytest.raises(ConfigError) as caught:
        simulation.read_raters(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_right_file_of_raters_is_what_it_says(tmp_path, root):
    (tmp_path / "raters.yaml").write_text(yaml.safe_dump(MODEL))
    assert simulation.read_raters(tmp_path / "raters.yaml") == Raters(**MODEL)
    assert len(simulation.read_raters(root / "data/demo/raters.yaml").raters) == 6
