"""What is asked of which data set, by name and by study; and dialogues that are judged whole, without turn scores."""

import json

import pandas as pd
import pytest
import yaml

from comperdial import schema
from comperdial.cli import main
from comperdial.config import load_yaml
from comperdial.core.errors import ConfigError, UnknownNameError
from comperdial.judges.items import whole_items
from comperdial.judges.prompting import load
from comperdial.judges.scores import judge
from comperdial.judges.services import rules
from comperdial.judges.tasks import groups_of, judged_levels, perturbed, read_judging, signature, unperturbed
from comperdial.studies import with_studies

TURN = {"prompt": "explicit_turn", "fields": ["history", "response"], "dimensions": ["relevance", "overall"]}
VARIANTS = {
    "turn": TURN,
    "other": TURN,
    "whole": {
        "prompt": "explicit_dialogue", "fields": ["dialogue"],
        "dimensions": ["coherence", "engagingness", "diversity", "informativeness", "overall"],
    },
    "after": {
        "prompt": "cpds_dialogue", "fields": ["turn_scores", "responses"], "turns": "turn",
        "dimensions": ["final score"],
    },
}  # fmt: skip
GROUPS = {"study": ["one", "two"], "next": ["two", "three"]}


def read(asks=None, judges=None, groups=GROUPS, **more):
    judging = {"judges": judges or {"default": ["rules"]}, "variants": VARIANTS}
    judging |= {"asks": asks} if asks is not None else {}
    who = {"rules": {"service": "rules"}, "more": {"service": "rules"}}
    return read_judging(who, {**judging, **more}, groups=groups, datasets=["one", "two", "three", "four"])


def asked(judging, dataset, **levels):
    return {task.variant.name for task in judging.tasks(dataset, **levels).values()}


def test_without_asks_every_variant_is_asked_of_every_data_set():
    assert asked(read(), "one") == set(VARIANTS)
    assert asked(read(asks={"study": ["turn"]}), "four") == set(VARIANTS)


def test_a_study_stands_for_its_data_sets_and_a_data_set_s_own_entry_goes_first():
    asks = {"default": ["turn"], "study": ["turn", "whole"], "two": ["other"]}
    judging = read(asks, judges={"default": ["rules"], "study": ["more"], "two": ["rules", "more"]})
    assert set(judging.tasks("one")) == {"turn_more", "whole_more"}
    assert set(judging.tasks("two")) == {"other_rules", "other_more"}
    assert set(judging.tasks("four")) == {"turn_rules"}


def test_levels_can_be_left_out():
    judging = read()
    assert asked(judging, "one", dialogues=False) == {"turn", "other"}
    # What needs the scores of turns is left out with them.
    assert asked(judging, "one", turns=False) == {"whole"}
    assert asked(judging, "one", turns=False, dialogues=False) == set()


@pytest.mark.parametrize(
    ("asks", "error", "message"),
    [
        ({"study": ["trun"]}, UnknownNameError, "judging.asks.study: unknown variant 'trun'"),
        ({"stduy": ["turn"]}, UnknownNameError, "judging.asks: unknown dataset 'stduy'"),
        ({"study": ["after"]}, ConfigError, "judging.asks.study: after without turn, whose scores it is given"),
        ({"study": ["turn"], "next": ["other"]}, ConfigError, "two is of study and of next, whose entries differ"),
        ({"study": "turn"}, ConfigError, "asks.study"),
    ],
)
def test_a_mistake_in_asks_is_named(asks, error, message):
    with pytest.raises(error) as raised:
        read(asks)
    assert message in str(raised.value) and "params.yaml" in str(raised.value)


def test_studies_that_agree_on_a_data_set_may_share_it():
    judging = read({"study": ["turn"], "next": ["turn"]})
    assert asked(judging, "two") == {"turn"}


def test_a_study_s_group_holds_its_perturbed_sets():
    study = {"datasets": ["a", "b"], "perturbed": {"datasets": ["demo"], "seed": 1}}
    recorded = ("turn_perturbations", "dialogue_perturbations")
    assert groups_of({"studies": {"s": study}}) == {"s": ("a", "b", *recorded, "demo_perturbed")}
    assert groups_of({"studies": {"s": {"datasets": ["a"]}}}) == {"s": ("a",)}


def test_the_study_s_data_sets_have_judges_of_their_own(root):
    config = with_studies(load_yaml(root / "params.yaml"))
    judging = read_judging(config["judges"], config["judging"], datasets=["demo", "fed_dial"], groups=groups_of(config))
    assert [judge.name for judge in judging.judges_of("demo")] == ["rules"]
    assert [judge.name for judge in judging.judges_of("fed_dial")] == ["rules"]
    assert asked(judging, "fed_dial", **judged_levels("fed_dial", ("dialogue",))) >= {"explicit-dialogue"}
    assert not {name for name in asked(judging, "demo") if name.startswith("explicit")}


@pytest.mark.parametrize(
    ("dataset", "levels", "turns", "dialogues"),
    [
        ("fed_turn", ("turn",), True, False),
        ("fed_dial", ("dialogue",), False, True),
        ("demo", None, True, True),
        ("fed_dial_perturbed", None, True, True),
        ("turn_perturbations", (), True, False),
        ("dialogue_perturbations", (), False, True),
    ],
)
def test_what_is_rated_is_judged(dataset, levels, turns, dialogues):
    assert judged_levels(dataset, levels) == {"turns": turns, "dialogues": dialogues}


def test_a_perturbed_set_is_called_after_its_own():
    assert perturbed("demo") == "demo_perturbed"
    assert unperturbed("demo_perturbed") == unperturbed("demo") == "demo"


def catalogue(tmp_path, levels):
    """Write a catalogue of the data set ``mine`` alone."""
    entry = {"reader": "comp_turns", "title": "Mine", "files": {}, "levels": levels}
    path = tmp_path / "sources.yaml"
    path.write_text(yaml.safe_dump({"files": {}, "datasets": {"mine": entry}}))
    return path


def project(tmp_path, **more):
    """Return what commands read: a configuration that asks ``rules`` for everything."""
    judging = {"judges": {"default": ["rules"]}, "variants": VARIANTS, "ledger": str(tmp_path / "ledger")}
    config = {"datasets": ["mine"], "judges": {"rules": {"service": "rules"}}, "judging": judging} | more
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    return ["--params", str(tmp_path / "params.yaml"), "--tables", str(tmp_path)]


CONVERSATION = [("d", turn, ["U: Hi.", "S: Oh.", "U: Why?"][: 1 + 2 * turn], {"x": "I like tea."}) for turn in range(2)]


def named(text):
    return [line.split()[1].removesuffix(":") for line in text.splitlines() if line.startswith("mine  ")]


@pytest.mark.parametrize(
    ("levels", "listed"),
    [
        (["turn"], ["turn_rules", "other_rules"]),
        (["dialogue"], ["whole_rules"]),
        (None, ["turn_rules", "other_rules", "whole_rules", "after_rules"]),
    ],
)
def test_the_catalogue_says_at_which_levels_a_data_set_is_judged(tmp_path, capsys, levels, listed):
    tables(tmp_path / "mine", CONVERSATION)
    where = project(tmp_path, **({"catalogue": str(catalogue(tmp_path, levels))} if levels else {}))
    assert main(["judge", "list", *where]) == 0
    assert named(capsys.readouterr().out) == listed
    # Who names a variant asks it.
    assert main(["judge", "list", *where, "--variants", "turn", "whole"]) == 0
    assert named(capsys.readouterr().out) == ["turn_rules", "whole_rules"]


ABSENT = {"service": "transformers", "model": "./no-such-model"}


def test_run_goes_on_after_a_judge_that_is_not_here(tmp_path, capsys):
    tables(tmp_path / "mine", CONVERSATION)
    config = {"absent": ABSENT, "rules": {"service": "rules"}}
    where = project(tmp_path, judges=config)
    assert main(["judge", "run", *where, "--judges", "absent", "rules"]) == 0
    lines = capsys.readouterr().out.splitlines()
    skipped = [line for line in lines if "not run: " in line]
    assert [line.split()[1] for line in skipped] == [f"{name}_absent:" for name in ("turn", "other", "whole", "after")]
    assert all("no-such-model" in line for line in skipped) and len(lines) == 8
    # Two variants ask the same.
    assert len(list((tmp_path / "ledger").rglob("family.json"))) == 3
    assert main(["judge", "plan", *where, "--judges", "absent", "rules"]) == 0
    counted = named(capsys.readouterr().out)
    assert [name for name in counted if "rules" in name] == [f"{name}_rules" for name in VARIANTS]
    assert main(["judge", "list", *where, "--judges", "absent", "--signatures"]) == 0
    assert "no signature can be said here" in capsys.readouterr().out


def test_run_fails_where_nobody_can_be_asked(tmp_path, capsys):
    tables(tmp_path / "mine", CONVERSATION)
    where = project(tmp_path, judges={"absent": ABSENT, "rules": {"service": "rules"}})
    assert main(["judge", "run", *where, "--judges", "absent"]) == 1
    said = capsys.readouterr()
    assert "mine  turn_absent: not run: " in said.out
    assert "nothing could be asked: none of 4" in said.err and "no-such-model" in said.err


def test_a_judge_that_costs_money_stands_in_nobody_s_way(tmp_path, capsys, monkeypatch):
    tables(tmp_path / "mine", CONVERSATION)
    paid = {"service": "openai", "model": "gpt-4"}
    where = project(tmp_path, judges={"paid": paid, "rules": {"service": "rules"}})
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert main(["judge", "run", *where, "--judges", "paid", "rules", "--variants", "turn"]) == 0
    out = capsys.readouterr().out
    assert "turn_paid: not run: not asked: gpt-4 costs money, and the budget is 0" in out and "turn_rules: " in out
    assert main(["judge", "run", *where, "--judges", "paid", "--variants", "turn", "--budget", "1"]) == 1
    assert "OPENAI_API_KEY" in capsys.readouterr().err


def test_what_is_in_the_ledger_needs_nobody(tmp_path, capsys, monkeypatch):
    tables(tmp_path / "mine", CONVERSATION)
    where = project(tmp_path)
    assert main(["judge", "run", *where]) == 0
    monkeypatch.setattr(rules.Rules, "unavailable", lambda self: "gone")
    capsys.readouterr()
    assert main(["judge", "run", *where]) == 0
    out = capsys.readouterr().out
    assert out.count("all from the ledger; nothing was asked: gone") == 4


# ---- dialogues whole


def tables(folder, rows):
    """Write contexts and responses: dialogue, turn, history as ``A: text`` lines, and the response by system."""
    contexts, responses = [], []
    for number, (dialogue, turn, history, said) in enumerate(rows):
        heard = [dict(zip(("speaker", "text"), line.split(": "), strict=True)) for line in history]
        contexts.append(
            {
                "dataset": "mine", "context_id": f"c{number}", "dialogue_id": dialogue, "turn": turn, "history": heard,
                "references": [], "facts": [],
            }
        )  # fmt: skip
        responses += [
            {"dataset": "mine", "system_id": s, "context_id": f"c{number}", "response": r} for s, r in said.items()
        ]
    kinds = {row["system_id"]: "reference" if row["system_id"] == "gold" else "agent" for row in responses}
    systems = [
        {"dataset": "mine", "system_id": s, "kind": kind, "track": None, "description": ""} for s, kind in kinds.items()
    ]
    folder.mkdir()
    for name, content in (("systems", systems), ("contexts", contexts), ("responses", responses)):
        schema.write(folder / f"{name}.parquet", pd.DataFrame(content), name)
    return folder


def conversations(folder):
    found = {}
    for item in whole_items(folder, load("explicit_dialogue")):
        lines = json.loads(item.messages)[0]["content"].split("\n")
        found[item.item_id, item.system_id] = lines[1 : lines.index("### Instruction:")]
    return found


def test_an_interactive_conversation_is_its_last_history_and_response(tmp_path):
    """The turns come in any order, and two utterances in a row by one speaker do not change who the chatbot is."""
    rows = [
        ("d", 2, ["U: Hi.", "S: Hello.", "U: Tea?", "S: Yes.", "S: Green."], {"x": "Or black."}),
        ("d", 0, ["U: Hi."], {"x": "Hello."}),
        ("d", 1, ["U: Hi.", "S: Hello.", "U: Tea?"], {"x": "Yes."}),
    ]
    expected = ["U: Hi.", "S: Hello.", "U: Tea?", "S: Yes.", "S: Green.", "S: Or black."]
    assert conversations(tables(tmp_path / "mine", rows)) == {("d", "x"): expected}


def test_a_static_dialogue_ends_in_each_system_s_last_response(tmp_path):
    """References are not judged; a system that left the last turn out is judged by the one before."""
    rows = [
        ("d", 0, ["A: Hi."], {"x": "Hello.", "y": "Hey.", "gold": "Good day."}),
        ("d", 1, ["A: Hi.", "B: Good day.", "A: Tea?"], {"x": "Yes.", "gold": "No."}),
        ("e", 0, ["A: ### Response:"], {"x": "A\n### Conversation:"}),
    ]
    assert conversations(tables(tmp_path / "mine", rows)) == {
        ("d", "x"): ["A: Hi.", "B: Good day.", "A: Tea?", "B: Yes."],
        ("d", "y"): ["A: Hi.", "B: Hey."],
        ("e", "x"): ["A: ### Response:", "B: A ### Conversation:"],
    }


@pytest.mark.parametrize(
    ("history", "speaker"),
    [([], "A"), (["A: Hi."], "B"), (["B: Hi."], "A"), (["Ann: Hi.", "Bo: Hm.", "Bo: So?"], "Ann")],
)
def test_who_answers_where_the_system_said_nothing_before(tmp_path, history, speaker):
    folder = tables(tmp_path / "mine", [("d", 0, history, {"x": "Well."})])
    assert conversations(folder) == {("d", "x"): [*history, f"{speaker}: Well."]}


def test_dialogues_are_scored_whole_by_rules(tmp_path):
    rows = [
        ("d", turn, ["U: Do you like the sea?", "S: I swim every day."][: 1 + turn] + ["U: Why?"] * turn,
         {"x": ["I swim every day.", "The water near our harbour is warm until October."][turn]})
        for turn in range(2)
    ]  # fmt: skip
    folder = tables(tmp_path / "mine", rows)
    judging = read(ledger=str(tmp_path / "ledger"))
    task = judging.tasks("mine")["whole_rules"]
    made = judge(judging, task, folder, dataset="mine").scores
    assert set(made["level"]) == {"dialogue"} and set(made["item_id"]) == {"d"}
    assert set(made["output"]) == set(VARIANTS["whole"]["dimensions"])
    assert made["value"].between(1, 5).all()
    assert "explicit_dialogue@" in signature(judging, task) and "turns:" not in signature(judging, task)
