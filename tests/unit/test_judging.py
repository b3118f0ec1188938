"""Variants and judges of params.yaml: what is asked of whom, what a score is made of, what is done without asking."""

import copy
import json
import math

import pandas as pd
import pytest
import yaml

from comperdial import schema
from comperdial.cli import main
from comperdial.config import load_yaml
from comperdial.config.registry import completed
from comperdial.core.errors import ComperdialError, ConfigError, UnknownNameError
from comperdial.judges.base import Answer, Completion
from comperdial.judges.items import items_of
from comperdial.judges.ledger import Ledger
from comperdial.judges.scores import MissingJudgementsError
from comperdial.judges.services.rules import Rules
from comperdial.judges.tasks import (
    SETTINGS_VARIABLE,
    connections,
    family_of,
    groups_of,
    judged_levels,
    read_judging,
    read_sections,
    reader,
    sections_of,
    signature,
    unavailable,
)
from comperdial.studies import with_studies
from minijudging import count_requests, judged, write_tables


@pytest.fixture(scope="module")
def sections(root):
    content = completed(yaml.safe_load((root / "params.yaml").read_text()))
    return content["judges"], content["judging"]


@pytest.fixture
def changed(sections, tmp_path):
    """Return the two sections, read, after a change to copies of them, with a ledger of their own."""

    def read(change=lambda judges, judging: None):
        judges, judging = copy.deepcopy(sections)
        judging["ledger"] = str(tmp_path / "ledger")
        change(judges, judging)
        return read_judging(judges, judging)

    return read


def two_dialogues(folder, **more):
    """Two dialogues of two turns, answered by two systems, of which one always says the same."""
    return write_tables(
        folder,
        [
            {
                "dialogue": dialogue, "turn": turn, "context": f"{dialogue}-t{turn}",
                "history": [f"A: Do you like the sea, {dialogue}-t{turn}?"],
                "references": ["I love the sea.", "Another."], "facts": ["i swim."],
                "said": {"one": f"I swim in the sea every day, {dialogue}-t{turn}!", "two": "Well. Yes."},
            } | more.get(dialogue, {})
            for dialogue in ("d1", "d2") for turn in range(2)
        ],
    )  # fmt: skip


@pytest.fixture
def tables(tmp_path):
    return two_dialogues(tmp_path / "mine")


@pytest.fixture
def by_rules(changed):
    """Return the repository's own variants, all asked of `rules`."""
    return changed(lambda judges, judging: judging.update(judges={"default": ["rules"]}))


# ---- who is asked what


def test_the_variants_cover_every_row_of_the_papers_tables(changed):
    """Tables 3 to 6, 15 and 16: each prompt with both models, the mean of three and once, the dialogues by model."""
    turn = {
        f"{v}{once}_{j}"
        for v in ("cpds-s-ref", "cpds-s", "cpds-d-ref", "cpds-d")
        for once in ("", "-once")
        for j in ("gpt-3.5", "gpt-4")
    }
    original = {f"{v}_{j}" for v in ("original-s", "original-d") for j in ("gpt-3.5", "gpt-4")}
    assert set(changed().tasks("somebody's")) == turn | original | {"cpds-dial-ref_gpt-3.5", "cpds-dial_gpt-4"}


def test_a_judge_that_does_not_vary_is_asked_once_and_plays_each_role(changed, sections):
    tasks = changed().tasks("demo")
    assert {task.samples for task in tasks.values()} == {1}
    assert set(tasks) == {f"{name}_rules" for name in sections[1]["asks"]["default"]}


VARIANTS = {
    "turn": {"prompt": "explicit_turn", "fields": ["history", "response"], "dimensions": ["relevance", "overall"]},
    "whole": {"prompt": "explicit_dialogue", "fields": ["dialogue"], "dimensions": ["coherence", "overall"]},
    "after": {
        "prompt": "cpds_dialogue", "fields": ["turn_scores", "responses"], "turns": "turn",
        "dimensions": ["final score"],
    },
}  # fmt: skip
VARIANTS["other"] = VARIANTS["turn"]
GROUPS = {"study": ["one", "two"], "next": ["two", "three"]}


def read(asks=None, judges=None):
    judging = {"judges": judges or {"default": ["rules"]}, "variants": VARIANTS} | ({"asks": asks} if asks else {})
    who = {"rules": {"service": "rules"}, "more": {"service": "rules"}}
    return read_judging(who, judging, groups=GROUPS, datasets=["one", "two", "three", "four"])


def test_a_study_stands_for_its_data_sets_and_a_data_set_s_own_entry_goes_first():
    asks = {"default": ["turn"], "study": ["turn", "whole"], "two": ["other"]}
    judging = read(asks, judges={"default": ["rules"], "study": ["more"], "two": ["rules", "more"]})
    assert set(judging.tasks("one")) == {"turn_more", "whole_more"}
    assert set(judging.tasks("two")) == {"other_rules", "other_more"}
    assert set(judging.tasks("four")) == {"turn_rules"}
    assert set(read({"study": ["turn"]}).tasks("four")) == {f"{name}_rules" for name in VARIANTS}
    # Studies that agree on a data set may share it.
    assert set(read({"study": ["turn"], "next": ["turn"]}).tasks("two")) == {"turn_rules"}


def test_levels_can_be_left_out_and_what_needs_the_scores_of_turns_with_them():
    assert set(read().tasks("one", dialogues=False)) == {"turn_rules", "other_rules"}
    assert set(read().tasks("one", turns=False)) == {"whole_rules"}


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


def test_the_study_s_data_sets_have_judges_and_variants_of_their_own(root):
    config = with_studies(completed(load_yaml(root / "params.yaml")))
    judging = read_judging(config["judges"], config["judging"], datasets=["demo", "fed_dial"], groups=groups_of(config))
    tasks = judging.tasks("fed_dial", **judged_levels("fed_dial", ("dialogue",)))
    assert "explicit-dialogue_rules" in tasks and {task.judge.name for task in tasks.values()} == {"rules", "smollm2"}
    assert not [name for name in judging.tasks("demo") if name.startswith("explicit")]
    study = {"datasets": ["a", "b"], "perturbed": {"datasets": ["demo"], "seed": 1}}
    recorded = ("turn_perturbations", "dialogue_perturbations")
    assert groups_of({"studies": {"s": study}}) == {"s": ("a", "b", *recorded, "demo_perturbed")}


@pytest.mark.parametrize(
    ("dataset", "levels", "turns", "dialogues"),
    [
        ("fed_turn", ("turn",), True, False),
        ("fed_dial", ("dialogue",), False, True),
        ("demo", None, True, True),
        ("turn_perturbations", (), True, False),
        ("dialogue_perturbations", (), False, True),
    ],
)
def test_what_is_rated_is_judged(dataset, levels, turns, dialogues):
    assert judged_levels(dataset, levels) == {"turns": turns, "dialogues": dialogues}


# ---- mistakes


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda j, g: j["rules"].update(service="ruler"), UnknownNameError, "Did you mean 'rules'"),
        (lambda j, g: j["gpt-4"].update(base_url="http://[::1/v1"), ConfigError, "judges.gpt-4: base_url is not a"),
        (lambda j, g: j["gpt-3.5"].update(role="smal"), UnknownNameError, "judges.gpt-3.5: unknown role 'smal'"),
        (lambda j, g: g["judges"].update(demo=["ruls"]), UnknownNameError, "judging.judges.demo: unknown judge 'ruls'"),
        (lambda j, g: g["variants"]["cpds-s"].update(main="all"), ConfigError, "`main` is 'all'"),
        (lambda j, g: g["variants"]["cpds-s"].update(scale=[5, 1]), ConfigError, "lower end first"),
        (lambda j, g: g["variants"]["cpds-s"].update(turns="cpds-d"), ConfigError, "'history' is not known"),
        (lambda j, g: g["variants"]["cpds-dial"].pop("turns"), ConfigError, "'turn_scores' is not known"),
        (lambda j, g: g["variants"]["cpds-dial"].update(fields=["responses"]), ConfigError, "go together"),
        (lambda j, g: g["variants"]["cpds-s"].update(aliases={"al": ["x"]}), UnknownNameError, "dimension 'al'"),
        (lambda j, g: g["variants"]["cpds-s"].pop("dimensions"), ConfigError, "variants.cpds-s: no 'dimensions'"),
        (lambda j, g: g["variants"]["cpds-dial"].update(turns="cpds"), UnknownNameError, "unknown variant 'cpds'"),
        (lambda j, g: g["variants"]["cpds-dial"].update(turns="cpds-dial-ref"), ConfigError, "variant at turn level"),
        (lambda j, g: g["variants"]["cpds-dial"].update(roles=["tiny"]), UnknownNameError, "unknown role 'large'"),
    ],
)
def test_a_mistake_in_the_configuration_is_named(changed, change, error, message):
    with pytest.raises(error) as raised:
        changed(change)
    assert message in str(raised.value) and "params.yaml" in str(raised.value)


def test_a_judge_of_a_data_set_that_there_is_not_is_named(sections):
    judges, judging = copy.deepcopy(sections)
    judging["judges"]["dmeo"] = ["rules"]
    with pytest.raises(UnknownNameError, match=r"unknown dataset 'dmeo'.*Did you mean 'demo'"):
        read_judging(judges, judging, datasets=["demo"], groups={"llm_evaluators": []})


def test_parameters_that_only_sound_like_secrets_are_kept(changed):
    known = {"max_tokens": 9, "stop_token_ids": [1], "chat_template_kwargs": {"bos_token": ""}, "stop": ["task-force"]}
    judging = changed(lambda judges, judging: judges["gpt-4"].update(parameters=known))
    assert judging.judges["gpt-4"].parameters == known


def test_fields_that_the_template_does_not_take_are_an_error(changed):
    judging = changed(lambda j, g: g["variants"]["cpds-s"].update(fields=["history", "fact"]))
    with pytest.raises(ConfigError, match="takes history, response"):
        judging.prompt(judging.tasks("demo")["cpds-s_rules"])


# ---- what a score depends on


def test_the_workflow_hands_a_job_all_that_it_needs_and_nothing_that_it_does_not(sections, monkeypatch):
    judges, judging = copy.deepcopy(sections)
    config = {"judges": judges, "judging": judging}
    task = read_judging(judges, judging).tasks("x")["cpds-dial_gpt-4"]
    given = sections_of(task, config)
    judges["gpt-4"] |= {"concurrency": 3, "timeout": 9, "base_url": "http://localhost:9/v1", "key": "MY_KEY"}
    judging |= {"budget": 7, "ledger": "elsewhere"}
    # How a judge is reached, what it may cost, roles and a label make nothing stale.
    judging["variants"]["cpds-dial"] |= {"label": "Another", "roles": ["large", "small"]}
    assert sections_of(task, config) == given
    monkeypatch.setenv(SETTINGS_VARIABLE, connections(judges, judging))
    again = read_sections(given)
    assert again.tasks("x")["cpds-dial_gpt-4"].judge.connection["concurrency"] == 3
    assert (again.budget, str(again.ledger)) == (7, "elsewhere")
    assert signature(again, again.tasks("x")["cpds-dial_gpt-4"]) == signature(read_judging(judges, judging), task)
    judges["gpt-4"]["parameters"] = {"temperature": 0}
    assert sections_of(task, config) != given


def test_a_whole_number_is_the_same_however_it_is_written(changed):
    families = [
        family_of(j, j.tasks("x")["cpds-d_gpt-4"]).id
        for j in (changed(lambda j, g, t=t: j["gpt-4"].update(parameters={"temperature": t})) for t in (1, 1.0, 0.5))
    ]
    assert families[0] == families[1] != families[2]


def test_a_dialogue_s_scores_name_how_its_turns_were_judged(changed):
    """Another prompt, explanation or number of samples of the turns gives other turn scores: other dialogue scores."""
    before = changed()
    task = before.tasks("x")["cpds-dial_gpt-4"]
    for variant, change in (
        ("cpds-d", {"samples": [5, 1]}),
        ("cpds-d", {"explain": True}),
        ("cpds-d", {"retries": 0}),
        ("cpds-dial", {"aliases": {"final score": ["end"]}}),
        ("cpds-dial", {"retries": 1}),
    ):
        after = changed(lambda j, g, variant=variant, change=change: g["variants"][variant].update(change))
        assert signature(after, after.tasks("x")["cpds-dial_gpt-4"]) != signature(before, task)


# ---- prompts


def lines_of(items, *names):
    item = next(item for item in items if not names or (item.item_id, item.system_id) == names)
    (message,) = json.loads(item.messages)
    assert message["role"] == "user"
    return message["content"].splitlines()


def test_a_prompt_holds_the_history_by_line_the_response_and_the_first_reference(changed, tables):
    judging = changed()
    lines = lines_of(items_of(judging, judging.tasks("demo")["cpds-d-ref_rules"], tables), "d1-t0", "one")
    assert "A: Do you like the sea, d1-t0?" in lines and "I swim in the sea every day, d1-t0!" in lines
    assert "I love the sea." in lines and "- i swim." in lines and "Another." not in "\n".join(lines)


def test_turns_stand_in_a_dialogue_s_prompt_in_their_order(changed, tables):
    contexts = schema.read(tables / "contexts.parquet", "contexts")
    scored = pd.DataFrame(
        {
            "dataset": "mine", "level": "turn", "item_id": c, "system_id": s, "metric": "m", "output": "humanness",
            "value": 1.25 + t, "cut": 0, "signature": "x",
        }
        for c, t in zip(contexts["context_id"], contexts["turn"], strict=True) for s in ("one", "two")
    )  # fmt: skip
    judging = changed()
    lines = lines_of(items_of(judging, judging.tasks("x")["cpds-dial_gpt-4"], tables, scored), "d1", "one")
    for turn, score in ((0, 1.25), (1, 2.25)):
        assert f"Turn{turn + 1} Score - {score}" in lines
        assert f"Turn{turn + 1}: I swim in the sea every day, d1-t{turn}!" in lines


# ---- scores


def test_scores_are_made_of_what_the_judge_said(by_rules, tables):
    task = by_rules.tasks("mine")["cpds-d-ref_rules"]
    scores, judgements, _ = judged(by_rules, task, tables)
    assert set(scores["output"]) == {"humanness"} and len(scores) == 8 and scores["value"].between(1, 5).all()
    assert set(scores["signature"]) == {signature(by_rules, task)}
    assert "judge:rules" in signature(by_rules, task) and "cpds_detail_ref@" in signature(by_rules, task)
    both = scores.merge(judgements, on=["item_id", "system_id"])
    assert (both["value_x"] == both["value_y"]).all()
    # `rules` explains (params.yaml), and each judgement names its answer in the ledger.
    assert judgements["rationale"].notna().all() and judgements["key"].nunique() == 8
    keys = Ledger(by_rules.ledger).answers("mine", family_of(by_rules, task)).frame()["key"]
    assert {key[:10] for key in keys} == set(judgements["key"])


def test_the_same_words_are_asked_about_once(by_rules, tmp_path, monkeypatch):
    asked = count_requests(monkeypatch)
    same = {"said": {"one": "Well. Yes.", "two": "Well. Yes."}}
    folder = two_dialogues(tmp_path / "mine", d1=same, d2=same)
    scores, judgements, _ = judged(by_rules, by_rules.tasks("mine")["cpds-d_rules"], folder)
    assert len(scores) == 8 and judgements["key"].nunique() == asked.total() == 4


def test_a_dialogue_is_judged_after_its_turns(by_rules, tables):
    tasks = by_rules.tasks("mine")
    with pytest.raises(ConfigError, match="scores of cpds-d_rules"):
        judged(by_rules, tasks["cpds-dial_rules"], tables)
    turns, _, _ = judged(by_rules, tasks["cpds-d_rules"], tables)
    scores, _, _ = judged(by_rules, tasks["cpds-dial_rules"], tables, turns)
    assert set(scores["level"]) == {"dialogue"}
    assert set(scores["output"]) == {"overall-dialogue-turn-score", "dialogue-interaction-score", "final-score"}
    first = scores[scores["output"] == "overall-dialogue-turn-score"].set_index(["item_id", "system_id"])
    means = turns.assign(dialogue=turns["item_id"].str[:2]).groupby(["dialogue", "system_id"])["value"].mean()
    assert (first["value"] - means.reindex(first.index)).abs().max() <= 0.051
    # A dialogue one of whose turns has no score is left out, and counted.
    scores, _, tally = judged(by_rules, tasks["cpds-dial_rules"], tables, turns.iloc[1:])
    assert tally.lacking == {"1 turns without a score": 1}
    assert len(scores[["item_id", "system_id"]].drop_duplicates()) == 3


def test_several_responses_of_a_system_to_one_turn_are_no_further_turns(by_rules, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(
        "context_id,dialogue_id,turn,history,system,response,rating\n"
        "c1,d,0,Hi!,one,Hello you.,1\nc1,d,0,Hi!,one,Hi.,2\nc1,d,0,Hi!,two,What?,3\n"
        "c2,d,1,Bye!,one,Good bye.,4\nc2,d,1,Bye!,two,See you.,5\n"
    )
    assert main(["ingest", str(path), "--output", str(tmp_path / "own")]) == 0
    tasks, tables = by_rules.tasks("mine"), tmp_path / "own"
    turns, _, _ = judged(by_rules, tasks["cpds-d_rules"], tables)
    assert set(turns["item_id"]) == {"c1", "c1 (2)", "c2"}
    scores, _, tally = judged(by_rules, tasks["cpds-dial_rules"], tables, turns)
    assert (set(scores["system_id"]), tally.lacking) == ({"one", "two"}, {})


def test_a_context_without_reference_is_not_judged_with_one(by_rules, tmp_path):
    folder = two_dialogues(tmp_path / "mine", d2={"references": []})
    tasks = by_rules.tasks("mine")
    scores, _, tally = judged(by_rules, tasks["cpds-s-ref_rules"], folder)
    assert tally.lacking == {"no reference": 4} and set(scores["item_id"]) == {"d1-t0", "d1-t1"}
    assert len(judged(by_rules, tasks["cpds-s_rules"], folder)[0]) == 8 * 6


@pytest.fixture
def recorded(changed, tables):
    """Return a paid judge with a ledger, and what puts answers there: some to each of eight items."""

    def change(judges, judging):
        judges["gpt-4"]["parameters"]["max_tokens"] = 9
        judging["judges"] = {"default": ["gpt-4"]}

    judging = changed(change)

    def add(name, texts, skip=()):
        task = judging.tasks("mine")[name]
        Ledger(judging.ledger).add(
            "mine",
            family_of(judging, task),
            [
                Answer(item.messages, sample, Completion(text, input_tokens=9, output_tokens=1), cost=0.5)
                for n, item in enumerate(items_of(judging, task, tables))
                for sample, text in enumerate(texts)
                if (n, sample) not in skip
            ],
        )
        return task

    return judging, add


def test_a_score_is_the_mean_of_its_samples_and_one_of_fewer_of_the_same_ones(recorded, tables):
    judging, add = recorded
    scores, judgements, _ = judged(judging, add("cpds-d_gpt-4", ["3", "4", "- Humanness: 4/5"]), tables)
    assert scores["value"].tolist() == pytest.approx([11 / 3] * 8) and judgements["cost"].sum() == 12
    once, _, _ = judged(judging, judging.tasks("mine")["cpds-d-once_gpt-4"], tables)
    assert once["value"].tolist() == [3] * 8 and once["metric"].unique() == ["cpds-d-once_gpt-4"]


def test_an_answer_that_cannot_be_read_gives_way_to_a_fresh_sample_and_is_paid_for(recorded, tables):
    """The tries of the first of three are the samples 0, 3, 6 and 9; those of the second are 1, 4, 7 and 10."""
    judging, add = recorded
    scores, judgements, _ = judged(judging, add("cpds-d_gpt-4", ["no idea", "2", "3", "4", "unused"]), tables)
    assert scores["value"].tolist() == [3] * 8
    for _, row in judgements.iterrows():
        tries = 2 if row["sample"] == 0 else 1
        assert tuple(row[["tries", "cost", "input_tokens", "output_tokens"]]) == (tries, tries / 2, 9 * tries, tries)
    # For the single answer too, the fresh sample of the first is the fourth.
    once, _, _ = judged(judging, judging.tasks("mine")["cpds-d-once_gpt-4"], tables)
    assert once["value"].tolist() == [4] * 8


def test_what_never_can_be_read_is_missing_and_counted_never_a_default(recorded, tables):
    judging, add = recorded
    scores, judgements, _ = judged(judging, add("cpds-d_gpt-4", ["no idea", "2", "9", *["no"] * 9]), tables)
    assert scores["value"].tolist() == [2] * 8
    unread = judgements[judgements["failure"].notna()]
    assert len(unread) == 16 and set(unread["tries"]) == {4} and unread["value"].isna().all()
    with pytest.raises(ComperdialError, match=r"none of 24 answers can be read.*The first answer: 'no idea'"):
        judged(judging, add("cpds-d-ref_gpt-4", ["no idea"] * 12), tables)


def test_without_a_budget_the_ledger_must_hold_everything(recorded, tables, monkeypatch):
    judging, add = recorded
    task, reasons = judging.tasks("mine")["cpds-d_gpt-4"], set()
    # The reason stands in tables: it is the same whatever key there is.
    for key in ("", "sk-something"):
        monkeypatch.setenv("OPENAI_API_KEY", key)
        reasons.add(unavailable(judging, task, "mine"))
    assert len(reasons) == 1 and "budget is 0" in reasons.pop()
    add("cpds-d_gpt-4", ["3", "4", "5"], skip={(2, 1), (5, 0)})
    assert unavailable(judging, task, "mine") is None
    message = r"2 judgements are missing, the first: \S+, \w+, sample 1.*judge plan"
    with pytest.raises(MissingJudgementsError, match=message):
        judged(judging, task, tables)


def test_probabilities_outside_the_scale_are_no_rating(changed):
    judging = changed(lambda j, g: j["gpt-4"].update(mode="probabilities"))
    task = judging.tasks("x")["cpds-d_gpt-4"]
    assert family_of(judging, task).parameters["top_logprobs"] == 20 and task.samples == 1 and task.retries == 0
    read = reader(task)
    even = read(Completion("4", logprobs={"4": math.log(0.6), " 5": math.log(0.3), "-": math.log(0.1)}))
    assert even.values["humanness"] == pytest.approx(13 / 3) and even.values["outside"] == pytest.approx(0.1)
    faint = read(Completion("-", logprobs={"-": math.log(0.999), "1": -12.0}))
    assert faint.failure == "100% of the probability is outside the scale" and not faint.values
    assert read(Completion("4")).failure
    with pytest.raises(ComperdialError, match="asks for 6 ratings at once"):
        signature(judging, judging.tasks("x")["cpds-s_gpt-4"])


# ---- commands


@pytest.fixture
def command(tmp_path, sections, tables):
    """Return what runs `judge` on the data set, with the repository's judges or others."""
    (tmp_path / "prices.yaml").write_text(
        "gpt-4-turbo-2024-04-09:\n- {from: 2024-04-09, input: 10, output: 30, source: a test}\n"
    )

    def run(name, *more, judges=None, **changes):
        ours, judging = copy.deepcopy(sections)
        judging |= {"judges": {"default": ["rules"]}, "ledger": str(tmp_path / "ledger")}
        judging |= {"prices": str(tmp_path / "prices.yaml")} | changes.pop("judging", {})
        config = {"datasets": ["mine"], "judges": judges or ours, "judging": judging} | changes
        (tmp_path / "params.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
        return main(["judge", name, "--params", str(tmp_path / "params.yaml"), "--tables", str(tmp_path), *more])

    return run


def test_plan_counts_what_the_ledger_lacks_and_prices_it(command, capsys):
    assert command("plan", "--variants", "cpds-d", "cpds-dial", "--judges", "gpt-4", "gpt-3.5", "rules") == 0
    lines = {
        line.split()[1]: line.split() for line in capsys.readouterr().out.splitlines() if line[:4] in ("mine", "all ")
    }
    turn, dialogue = lines["cpds-d_gpt-4"], lines["cpds-dial_gpt-4"]
    assert turn[:6] == ["mine", "cpds-d_gpt-4", "gpt-4-turbo-2024-04-09", "24", "0", "24"]
    # What `two` says is the same in both dialogues: three prompts for four dialogues.
    assert dialogue[3] == "9" and lines["gpt-4-turbo-2024-04-09"][2] == "33"
    expected = (int(turn[6].replace(",", "")) * 10 + int(turn[7].replace(",", "")) * 30) / 1e6
    assert float(turn[8]) == pytest.approx(expected, abs=0.006) and float(turn[9]) > float(turn[8])
    assert lines["cpds-d_gpt-3.5"][8:] == ["no", "price", "no", "price"] and lines["cpds-d_rules"][8] == "0.00"


def test_a_second_run_asks_nothing_and_needs_nobody(command, capsys, monkeypatch):
    asked = count_requests(monkeypatch)
    assert command("run") == 0
    count = asked.total()
    assert command("run") == 0 and asked.total() == count > 0
    capsys.readouterr()
    monkeypatch.setattr(Rules, "unavailable", lambda self: "gone")
    assert command("run") == 0
    assert capsys.readouterr().out.count("all from the ledger; nothing was asked: gone") == 8


def test_dialogues_are_not_judged_by_turn_scores_that_nobody_gave(command, monkeypatch, capsys):
    """`plan` counts with stand-ins for turns that are not judged yet; `run` refuses."""
    asked = count_requests(monkeypatch)
    assert command("run", "--variants", "cpds-dial") == 1
    assert "judgements are missing" in capsys.readouterr().err and not asked
    assert command("run", "--variants", "cpds-d", "cpds-dial") == 0


def test_run_goes_on_after_answers_that_nobody_can_read(command, monkeypatch, capsys):
    async def complete(self, messages, parameters):
        return Completion("no idea")

    monkeypatch.setattr(Rules, "complete", complete)
    assert command("run", "--variants", "cpds-d", "cpds-s") == 0
    assert capsys.readouterr().out.count("8 judgements have none") == 2


ABSENT = {"absent": {"service": "transformers", "model": "./no-such-model"}, "rules": {"service": "rules"}}


def test_run_goes_on_after_a_judge_that_is_not_here(command, capsys):
    chosen = ["--judges", "absent", "rules", "--variants", "cpds-d", "cpds-dial"]
    assert command("run", *chosen, judges=ABSENT) == 0
    lines = capsys.readouterr().out.splitlines()
    skipped = [line for line in lines if "not run: " in line]
    assert [line.split()[1] for line in skipped] == ["cpds-d_absent:", "cpds-dial_absent:"] and len(lines) == 4
    assert all("no-such-model" in line for line in skipped)
    assert command("plan", *chosen, judges=ABSENT) == 0
    assert "cpds-d_absent: not counted: " in capsys.readouterr().out
    assert command("list", *chosen, "--signatures", judges=ABSENT) == 0
    assert "no signature can be said here" in capsys.readouterr().out
    assert command("run", "--judges", "absent", "--variants", "cpds-d", judges=ABSENT) == 1
    said = capsys.readouterr()
    assert "mine  cpds-d_absent: not run: " in said.out
    assert "nothing could be asked: none of 1" in said.err and "no-such-model" in said.err


def test_a_judge_that_costs_money_stands_in_nobody_s_way(command, capsys, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    chosen = ["--variants", "cpds-d", "--judges", "gpt-4"]
    assert command("run", *chosen, "rules") == 0
    out = capsys.readouterr().out
    assert "not run: not asked: gpt-4-turbo-2024-04-09 costs money, and the budget is 0" in out and "_rules: 8" in out
    assert command("run", *chosen, "--budget", "1") == 1
    assert "OPENAI_API_KEY" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("levels", "listed"), [(["turn"], ["turn"]), (["dialogue"], ["whole"]), (None, ["turn", "whole", "after"])]
)
def test_the_catalogue_says_at_which_levels_a_data_set_is_judged(command, tmp_path, capsys, levels, listed):
    variants = {"asks": {}, "variants": {name: VARIANTS[name] for name in ("turn", "whole", "after")}}
    entry = {"reader": "comp_turns", "title": "Mine", "files": {}, "levels": levels}
    catalogue = tmp_path / f"{levels}.yaml"
    catalogue.write_text(yaml.safe_dump({"files": {}, "datasets": {"mine": entry}}))
    more = {"catalogue": str(catalogue)} if levels else {}
    for chosen, names in (((), listed), (("--variants", "turn", "whole"), ["turn", "whole"])):
        # Who names a variant asks it.
        assert command("list", *chosen, judging=variants, **more) == 0
        found = [line.split()[1] for line in capsys.readouterr().out.splitlines() if line.startswith("mine  ")]
        assert found == [f"{name}_rules:" for name in names]


def test_a_data_set_without_tables_is_made_if_it_is_known_and_else_a_mistake(root, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(root)
    assert main(["judge", "run", "--datasets", "usr_topicl", "--tables", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert "unknown data set 'usr_topicl'" in error and "Did you mean 'usr_topical'" in error
    assert "snakemake" not in error
    assert main(["judge", "plan", "--datasets", "usr_topical", "--tables", str(tmp_path)]) == 1
    assert "Make them: snakemake" in capsys.readouterr().err


def test_show_prints_a_dialogue_with_scores_and_rationales(tmp_path, tables, by_rules, capsys):
    turns = None
    for name in ("cpds-d_rules", "cpds-dial_rules"):
        turns, judgements, _ = judged(by_rules, by_rules.tasks("mine")[name], tables, turns)
        schema.write(tmp_path / f"results/mine/scores/{name}.parquet", turns, "scores")
        schema.write(tmp_path / f"results/mine/judgements/{name}.parquet", judgements, "judgements")
    where = ["--dataset", "mine", "--results", str(tmp_path / "results"), "--tables", str(tmp_path)]
    assert main(["judge", "show", "one", "d1", *where]) == 0
    shown = capsys.readouterr().out
    assert ">> I swim in the sea every day, d1-t1!" in shown and "A: Do you like the sea, d1-t0?" in shown
    assert shown.count("cpds-d_rules: humanness ") == 2 and shown.count("cpds-dial_rules: ") == 1
    assert shown.count("rationale: ") == 3
    assert main(["judge", "show", "three", "d1", *where]) == 1
    assert "unknown system 'three'" in capsys.readouterr().err
    assert main(["judge", "show", "one", "d7", *where]) == 1
