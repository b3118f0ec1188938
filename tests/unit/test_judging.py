"""Variants and judges of params.yaml: what is asked of whom, what a score is made of, what is done without asking."""

import copy
import json
import math

import pandas as pd
import pytest
import yaml

from comperdial import schema
from comperdial.cli import main
from comperdial.core.errors import ComperdialError, ConfigError, UnknownNameError
from comperdial.judges.base import Answer, Completion
from comperdial.judges.items import turn_items
from comperdial.judges.ledger import Ledger
from comperdial.judges.scores import MissingJudgementsError, ask, items_of, judge, judged_turns
from comperdial.judges.tasks import (
    SETTINGS_VARIABLE,
    connections,
    family_of,
    read_judging,
    read_sections,
    reader,
    sections_of,
    signature,
    unavailable,
)


@pytest.fixture(scope="module")
def sections(root):
    content = yaml.safe_load((root / "params.yaml").read_text())
    return content["judges"], content["judging"]


@pytest.fixture
def changed(sections):
    """Return the two sections, read, after a change to copies of them."""

    def read(change=lambda judges, judging: None):
        judges, judging = copy.deepcopy(sections)
        change(judges, judging)
        return read_judging(judges, judging)

    return read


def write_tables(folder, *, reference=True):
    """Two dialogues of two turns, answered by two systems that say the same in one place."""
    contexts, responses = [], []
    for dialogue in ("d1", "d2"):
        for turn in range(2):
            context = f"{dialogue}-t{turn}"
            heard = [{"speaker": "A", "text": f"Do you like the sea, {context}?"}]
            contexts.append(
                {
                    "dataset": "mine", "context_id": context, "dialogue_id": dialogue, "turn": turn, "history": heard,
                    "references": ["I love the sea."] if reference or dialogue == "d1" else [], "facts": ["i swim."],
                }
            )  # fmt: skip
            responses += [("one", context, f"I swim in the sea every day, {context}!"), ("two", context, "Well. Yes.")]
    folder.mkdir()
    systems = [
        {"dataset": "mine", "system_id": s, "kind": "agent", "track": None, "description": ""} for s in ("one", "two")
    ]
    answered = [{"dataset": "mine", "system_id": s, "context_id": c, "response": r} for s, c, r in responses]
    for name, rows in (("systems", systems), ("contexts", contexts), ("responses", answered)):
        schema.write(folder / f"{name}.parquet", pd.DataFrame(rows), name)
    return folder


@pytest.fixture
def tables(tmp_path):
    return write_tables(tmp_path / "mine")


@pytest.fixture
def by_rules(changed, tmp_path):
    """Return the repository's own variants, all asked of `rules`, with a ledger of their own."""

    def change(judges, judging):
        judging["judges"] = {"default": ["rules"]}
        judging["ledger"] = str(tmp_path / "ledger")

    return changed(change)


def test_the_variants_cover_every_row_of_the_papers_tables(changed):
    """Tables 3 to 6, 15 and 16: each prompt with both models, the mean of three and once, the dialogues by model."""
    names = set(changed().tasks("somebody's"))
    turn = {
        f"{v}{once}_{j}"
        for v in ("cpds-s-ref", "cpds-s", "cpds-d-ref", "cpds-d")
        for once in ("", "-once")
        for j in ("gpt-3.5", "gpt-4")
    }
    original = {f"{v}_{j}" for v in ("original-s", "original-d") for j in ("gpt-3.5", "gpt-4")}
    assert names == turn | original | {"cpds-dial-ref_gpt-3.5", "cpds-dial_gpt-4"}


def test_a_judge_that_does_not_vary_is_asked_once_and_plays_each_role(changed):
    tasks = changed().tasks("demo")
    assert {task.samples for task in tasks.values()} == {1}
    assert set(tasks) == {
        f"{v}_rules"
        for v in (
            "cpds-s-ref",
            "cpds-s",
            "cpds-d-ref",
            "cpds-d",
            "original-s",
            "original-d",
            "cpds-dial-ref",
            "cpds-dial",
        )
    }
    assert "cpds-dial_rules" not in changed().tasks("demo", dialogues=False)


def test_scores_are_made_of_what_the_judge_said(by_rules, tables):
    task = by_rules.tasks("mine")["cpds-d-ref_rules"]
    made = judge(by_rules, task, tables, dataset="mine")
    assert set(made.scores["output"]) == {"humanness"} and len(made.scores) == 8
    assert made.scores["value"].between(1, 5).all()
    assert set(made.scores["signature"]) == {signature(by_rules, task)}
    assert "judge:rules" in signature(by_rules, task) and "cpds_detail_ref@" in signature(by_rules, task)
    both = made.scores.merge(made.judgements, on=["item_id", "system_id"])
    assert (both["value_x"] == both["value_y"]).all()
    # `rules` explains (params.yaml), and each judgement names its answer in the ledger.
    assert made.judgements["rationale"].notna().all()
    shelf = Ledger(by_rules.ledger).shelf("mine", family_of(by_rules, task))
    assert len(shelf) == made.judgements["key"].nunique() == 8


def test_the_same_words_are_asked_about_once(by_rules, tables):
    task = by_rules.tasks("mine")["cpds-d_rules"]
    responses = schema.read(tables / "responses.parquet", "responses")
    responses["response"] = "Well. Yes."
    schema.write(tables / "responses.parquet", responses, "responses")
    made = judge(by_rules, task, tables, dataset="mine")
    assert len(made.scores) == 8 and made.judgements["key"].nunique() == 4


def test_a_dialogue_is_judged_after_its_turns(by_rules, tables):
    tasks = by_rules.tasks("mine")
    with pytest.raises(ConfigError, match="scores of cpds-d_rules"):
        judge(by_rules, tasks["cpds-dial_rules"], tables, dataset="mine")
    turns = judge(by_rules, tasks["cpds-d_rules"], tables, dataset="mine").scores
    made = judge(by_rules, tasks["cpds-dial_rules"], tables, dataset="mine", turns=turns)
    assert set(made.scores["level"]) == {"dialogue"}
    assert set(made.scores["output"]) == {"overall-dialogue-turn-score", "dialogue-interaction-score", "final-score"}
    intermediate = made.scores[made.scores["output"] == "overall-dialogue-turn-score"].set_index(
        ["item_id", "system_id"]
    )
    turns["dialogue_id"] = turns["item_id"].str[:2]
    means = turns.groupby(["dialogue_id", "system_id"])["value"].mean()
    assert (intermediate["value"] - means.reindex(intermediate.index)).abs().max() <= 0.051
    known = judged_turns(by_rules, tasks["cpds-dial_rules"], tables, dataset="mine")
    assert known["value"].equals(turns["value"])


def test_a_dialogue_with_a_turn_without_a_score_is_left_out_and_counted(by_rules, tables):
    tasks = by_rules.tasks("mine")
    turns = judge(by_rules, tasks["cpds-d_rules"], tables, dataset="mine").scores
    turns = turns[(turns["item_id"] != "d1-t0") | (turns["system_id"] != "one")]
    made = judge(by_rules, tasks["cpds-dial_rules"], tables, dataset="mine", turns=turns)
    assert made.lacking == {"1 turns without a score": 1}
    assert set(zip(made.scores["item_id"], made.scores["system_id"], strict=True)) == {
        ("d1", "two"),
        ("d2", "one"),
        ("d2", "two"),
    }


def test_several_responses_of_a_system_to_one_turn_are_no_further_turns(by_rules, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(
        "context_id,dialogue_id,turn,history,system,response,rating\n"
        "c1,d,0,Hi!,one,Hello you.,1\nc1,d,0,Hi!,one,Hi.,2\nc1,d,0,Hi!,two,What?,3\n"
        "c2,d,1,Bye!,one,Good bye.,4\nc2,d,1,Bye!,two,See you.,5\n"
    )
    assert main(["ingest", str(path), "--output", str(tmp_path / "own")]) == 0
    tasks, tables = by_rules.tasks("mine"), tmp_path / "own"
    turns = judge(by_rules, tasks["cpds-d_rules"], tables, dataset="mine").scores
    assert set(turns["item_id"]) == {"c1", "c1 (2)", "c2"}
    made = judge(by_rules, tasks["cpds-dial_rules"], tables, dataset="mine", turns=turns)
    assert (set(made.scores["system_id"]), made.lacking) == ({"one", "two"}, {})


def test_a_context_without_reference_is_not_judged_with_one(by_rules, tmp_path):
    folder = write_tables(tmp_path / "mine", reference=False)
    tasks = by_rules.tasks("mine")
    made = judge(by_rules, tasks["cpds-s-ref_rules"], folder, dataset="mine")
    assert made.lacking == {"no reference": 4} and set(made.scores["item_id"]) == {"d1-t0", "d1-t1"}
    assert len(judge(by_rules, tasks["cpds-s_rules"], folder, dataset="mine").scores) == 8 * 6


@pytest.fixture
def recorded(changed, tables, tmp_path):
    """Return a paid judge with a ledger, and what puts answers there: three to each of eight items."""

    def change(judges, judging):
        judges["gpt-4"]["parameters"]["max_tokens"] = 9
        judging["judges"] = {"default": ["gpt-4"]}
        judging["ledger"] = str(tmp_path / "ledger")

    judging = changed(change)

    def add(name, texts, skip=()):
        task = judging.tasks("mine")[name]
        items = list(items_of(judging, task, tables))
        with Ledger(judging.ledger).writing("mine", family_of(judging, task)) as shelf:
            answers = [
                Answer(
                    item.messages, sample, Completion(text, model="gpt-4-x", input_tokens=9, output_tokens=1), cost=0.5
                )
                for n, item in enumerate(items)
                for sample, text in enumerate(texts)
                if (n, sample) not in skip
            ]
            shelf.add(answers)
        return task

    return judging, add


def test_a_score_is_the_mean_of_its_samples(recorded, tables):
    judging, add = recorded
    task = add("cpds-d_gpt-4", ["3", "4", "- Humanness: 4/5"])
    made = judge(judging, task, tables, dataset="mine")
    assert made.scores["value"].tolist() == pytest.approx([11 / 3] * 8)
    assert made.judgements["cost"].sum() == 12
    once = judge(judging, judging.tasks("mine")["cpds-d-once_gpt-4"], tables, dataset="mine")
    assert once.scores["value"].tolist() == [3] * 8 and once.scores["metric"].unique() == ["cpds-d-once_gpt-4"]


def test_an_answer_that_cannot_be_read_gives_way_to_a_fresh_sample(recorded, tables):
    """The tries of the first of three are the samples 0, 3, 6 and 9; those of the second are 1, 4, 7 and 10."""
    judging, add = recorded
    task = add("cpds-d_gpt-4", ["no idea", "2", "3", "4", "unused"])
    made = judge(judging, task, tables, dataset="mine")
    assert made.scores["value"].tolist() == [3] * 8
    assert made.judgements.groupby("sample")["tries"].unique().map(list).to_dict() == {0: [2], 1: [1], 2: [1]}


def test_what_never_can_be_read_is_missing_and_counted_never_a_default(recorded, tables):
    judging, add = recorded
    task = add("cpds-d_gpt-4", ["no idea", "2", "9", "no", "no", "no", "no", "no", "no", "no", "no", "no"])
    made = judge(judging, task, tables, dataset="mine")
    assert made.scores["value"].tolist() == [2] * 8
    unread = made.judgements[made.judgements["failure"].notna()]
    assert len(unread) == 16 and set(unread["tries"]) == {4} and unread["value"].isna().all()
    task = add("cpds-d-ref_gpt-4", ["no idea"] * 12)
    with pytest.raises(ComperdialError, match=r"none of 24 answers can be read.*The first answer: 'no idea'"):
        judge(judging, task, tables, dataset="mine")


def test_without_a_budget_the_ledger_must_hold_everything(recorded, tables):
    judging, add = recorded
    task = add("cpds-d_gpt-4", ["3", "4", "5"], skip={(2, 1), (5, 0)})
    with pytest.raises(
        MissingJudgementsError, match=r"2 judgements are missing, the first: \S+, \w+, sample 1"
    ) as error:
        judge(judging, task, tables, dataset="mine")
    assert "judge plan" in str(error.value)
    with pytest.raises(ConfigError, match="the budget is 0"):
        ask(judging, task, tables, dataset="mine")


def test_a_paid_judge_without_budget_is_named_as_not_run_whatever_key_there_is(recorded, tables, monkeypatch):
    judging, add = recorded
    task = judging.tasks("mine")["cpds-d_gpt-4"]
    reasons = set()
    for key in (None, "sk-something"):
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        if key:
            monkeypatch.setenv("OPENAI_API_KEY", key)
        reasons.add(unavailable(judging, task, "mine"))
    assert len(reasons) == 1 and "budget is 0" in reasons.pop()
    add("cpds-d_gpt-4", ["3"] * 3)
    assert unavailable(judging, task, "mine") is None


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda j, g: j["rules"].update(servise="x"), UnknownNameError, "servise"),
        (lambda j, g: j["rules"].update(service="ruler"), UnknownNameError, "Did you mean 'rules'"),
        (lambda j, g: g["judges"].update(demo=["ruls"]), UnknownNameError, "judging.judges.demo: unknown judge 'ruls'"),
        (lambda j, g: g["variants"]["cpds-s"].update(main="all"), ConfigError, "`main` is 'all'"),
        (lambda j, g: g["variants"]["cpds-s"].update(scale=[5, 1]), ConfigError, "lower end first"),
        (lambda j, g: g["variants"]["cpds-s"].update(samples=[1, 3]), ConfigError, "largest first"),
        (
            lambda j, g: g["variants"]["cpds-s"].update(turns="cpds-d"),
            ConfigError,
            "'history' is not known",
        ),
        (lambda j, g: g["variants"]["cpds-dial"].pop("turns"), ConfigError, "'turn_scores' is not known"),
        (lambda j, g: g["variants"]["cpds-dial"].update(fields=["responses"]), ConfigError, "go together"),
        (
            lambda j, g: g["variants"]["cpds-s"].update(aliases={"al": ["x"]}),
            UnknownNameError,
            "dimension 'al'",
        ),
        (
            lambda j, g: g["variants"]["cpds-s"].pop("dimensions"),
            ConfigError,
            "judging.variants.cpds-s: no 'dimensions'",
        ),
        (lambda j, g: g["variants"]["cpds-s"].update(samples=0), ConfigError, "variants.cpds-s.samples"),
        (lambda j, g: j["gpt-4"].update(parameters={"max_tokens": "9"}), ConfigError, "parameters.max_tokens"),
        (lambda j, g: j["gpt-4"].update(timeout="60"), ConfigError, "judges.gpt-4.timeout"),
        (lambda j, g: g.update(budget="ten"), ConfigError, "judging.budget"),
        (lambda j, g: g.update(bugdet=5), ConfigError, "bugdet"),
        (lambda j, g: g["variants"]["cpds-dial"].update(turns="cpds"), UnknownNameError, "unknown variant 'cpds'"),
        (lambda j, g: g["variants"]["cpds-dial"].update(turns="cpds-dial-ref"), ConfigError, "variant at turn level"),
        (
            lambda j, g: g["variants"]["cpds-dial"].update(roles=["tiny"]),
            UnknownNameError,
            "unknown role 'large'",
        ),
        (lambda j, g: j["gpt-3.5"].update(role="smal"), UnknownNameError, "judges.gpt-3.5: unknown role 'smal'"),
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


@pytest.mark.parametrize("key", ["gsk_SECRETSECRET123", "sk-abc", "hf_abcdef"])
def test_a_key_written_where_its_variable_belongs_is_never_shown(changed, key):
    with pytest.raises(ConfigError, match="expected the name of an environment variable") as error:
        changed(lambda j, g: j["gpt-4"].update(key=key))
    assert key not in str(error.value)


def test_fields_that_the_template_does_not_take_are_an_error(changed):
    judging = changed(lambda j, g: g["variants"]["cpds-s"].update(fields=["history", "fact"]))
    with pytest.raises(ConfigError, match="takes history, response"):
        judging.prompt(judging.tasks("demo")["cpds-s_rules"])


def test_probabilities_need_one_rating_a_prompt(changed):
    judging = changed(lambda j, g: j["rules"].update(mode="probabilities"))
    with pytest.raises(ComperdialError, match="asks for 6 ratings at once"):
        signature(judging, judging.tasks("demo")["cpds-s_rules"])


def test_the_workflow_hands_a_job_all_that_it_needs_and_nothing_that_it_does_not(sections, monkeypatch):
    judges, judging = copy.deepcopy(sections)
    config = {"judges": judges, "judging": judging}
    task = read_judging(judges, judging).tasks("x")["cpds-dial_gpt-4"]
    said = sections_of(task, config)
    judges["gpt-4"] |= {"concurrency": 3, "timeout": 9, "base_url": "http://localhost:9/v1", "key": "MY_KEY"}
    judging |= {"budget": 7, "ledger": "elsewhere"}
    # How a judge is reached and what it may cost is no parameter of a job: it makes nothing stale.
    assert sections_of(task, config) == said
    monkeypatch.setenv(SETTINGS_VARIABLE, connections(judges, judging))
    again = read_sections(said)
    assert again.tasks("x")["cpds-dial_gpt-4"].judge.connection["concurrency"] == 3
    assert (again.budget, str(again.ledger)) == (7, "elsewhere")
    assert signature(again, again.tasks("x")["cpds-dial_gpt-4"]) == signature(read_judging(judges, judging), task)
    judges["gpt-4"]["parameters"] = {"temperature": 0}
    assert sections_of(task, config) != said


def test_labels_and_roles_make_nothing_stale(sections):
    judges, judging = copy.deepcopy(sections)
    config = {"judges": judges, "judging": judging}
    task = read_judging(judges, judging).tasks("x")["cpds-d_gpt-4"]
    said = sections_of(task, config)
    judging["variants"]["cpds-d"] |= {"label": "Another", "roles": ["large"]}
    judges["gpt-4"]["role"] = "any"
    assert sections_of(task, config) == said


def test_a_whole_number_is_the_same_however_it_is_written(changed):
    families = [
        family_of(j, j.tasks("x")["cpds-d_gpt-4"]).id
        for j in (changed(lambda j, g, t=t: j["gpt-4"].update(parameters={"temperature": t})) for t in (1, 1.0, 0.5))
    ]
    assert families[0] == families[1] != families[2]


def test_a_prompt_holds_the_history_by_line_and_the_response(changed, tables):
    judging = changed()
    task = judging.tasks("demo")["cpds-d-ref_rules"]
    item = next(iter(turn_items(tables, judging.prompt(task))))
    (message,) = json.loads(item.messages)
    lines = message["content"].splitlines()
    assert message["role"] == "user"
    for line in (
        "A: Do you like the sea, d1-t0?",
        "I love the sea.",
        "- i swim.",
        "I swim in the sea every day, d1-t0!",
    ):
        assert line in lines


@pytest.fixture
def project(tmp_path, sections, tables):
    """Return what commands read: a params.yaml with the repository's judges, and tables."""
    judges, judging = copy.deepcopy(sections)
    judging |= {
        "judges": {"default": ["rules"]},
        "ledger": str(tmp_path / "ledger"),
        "prices": str(tmp_path / "prices.yaml"),
    }
    (tmp_path / "prices.yaml").write_text(
        "gpt-4-turbo-2024-04-09:\n- {from: 2024-04-09, input: 10, output: 30, source: a test}\n"
    )
    params = tmp_path / "params.yaml"
    params.write_text(yaml.safe_dump({"datasets": ["mine"], "judges": judges, "judging": judging}))
    return ["--params", str(params), "--tables", str(tmp_path)]


def test_a_dialogue_s_scores_name_how_its_turns_were_judged(changed):
    """Another prompt, explanation or number of samples of the turns gives other turn scores: other dialogue scores."""
    before = changed()
    task = before.tasks("x")["cpds-dial_gpt-4"]
    for change in (
        lambda j, g: g["variants"]["cpds-d"].update(samples=[5, 1]),
        lambda j, g: g["variants"]["cpds-d"].update(explain=True),
        lambda j, g: g["variants"]["cpds-d"].update(retries=0),
        lambda j, g: g["variants"]["cpds-dial"].update(aliases={"final score": ["end"]}),
        lambda j, g: g["variants"]["cpds-dial"].update(retries=1),
    ):
        after = changed(change)
        assert signature(after, after.tasks("x")["cpds-dial_gpt-4"]) != signature(before, task)


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
    task = judging.tasks("x")["cpds-dial_gpt-4"]
    item = next(i for i in items_of(judging, task, tables, scored) if (i.item_id, i.system_id) == ("d1", "one"))
    lines = json.loads(item.messages)[0]["content"].splitlines()
    assert "Turn1 Score - 1.25" in lines and "Turn2 Score - 2.25" in lines
    assert (
        "Turn1: I swim in the sea every day, d1-t0!" in lines and "Turn2: I swim in the sea every day, d1-t1!" in lines
    )


def test_the_first_reference_is_the_one(changed, tables):
    contexts = schema.read(tables / "contexts.parquet", "contexts")
    contexts["references"] = [["The first.", "The second."]] * len(contexts)
    schema.write(tables / "contexts.parquet", contexts, "contexts")
    judging = changed()
    item = next(iter(items_of(judging, judging.tasks("x")["cpds-s-ref_gpt-4"], tables)))
    text = json.loads(item.messages)[0]["content"]
    assert "The first." in text and "The second." not in text


def test_answers_read_for_nothing_are_counted_and_paid(recorded, tables):
    judging, add = recorded
    task = add("cpds-d_gpt-4", ["no idea", "2", "3", "4"])
    made = judge(judging, task, tables, dataset="mine")
    first = made.judgements[made.judgements["sample"] == 0]
    assert set(first["cost"]) == {1.0} and set(first["input_tokens"]) == {18} and set(first["output_tokens"]) == {2}


def test_a_score_of_fewer_answers_is_made_of_the_same_ones(recorded, tables):
    """The first of three could not be read: its fresh sample is the fourth, for the single answer too."""
    judging, add = recorded
    add("cpds-d_gpt-4", ["no idea", "2", "3", "5"])
    once = judge(judging, judging.tasks("mine")["cpds-d-once_gpt-4"], tables, dataset="mine")
    assert once.scores["value"].tolist() == [5] * 8


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


def test_plan_of_several_models(project, capsys):
    assert main(["judge", "plan", *project, "--variants", "cpds-d", "--judges", "gpt-4", "gpt-3.5", "rules"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("all ") for line in lines) == 3 and any("no price" in line for line in lines)


def test_plan_counts_what_the_ledger_lacks_and_prices_it(project, capsys):
    assert main(["judge", "plan", *project, "--variants", "cpds-d", "cpds-dial", "--judges", "gpt-4"]) == 0
    turn, dialogue, total = (line.split() for line in capsys.readouterr().out.splitlines()[1:4])
    assert turn[:6] == ["mine", "cpds-d_gpt-4", "gpt-4-turbo-2024-04-09", "24", "0", "24"]
    # What `two` says is the same in both dialogues: three prompts for four dialogues.
    assert dialogue[3] == "9" and total[2] == "33"
    expected = (int(turn[6].replace(",", "")) * 10 + int(turn[7].replace(",", "")) * 30) / 1e6
    assert float(turn[8]) == pytest.approx(expected, abs=0.006)


def test_run_asks_and_a_second_run_asks_nothing(project, capsys, monkeypatch):
    assert main(["judge", "run", *project]) == 0
    assert main(["judge", "plan", *project]) == 0
    for line in capsys.readouterr().out.splitlines():
        if line.startswith("mine  cpds"):
            pass
    from comperdial.judges.services import rules

    def refuse(*_):
        raise AssertionError("a request was made")

    monkeypatch.setattr(rules, "respond", refuse)
    assert main(["judge", "run", *project]) == 0


def test_dialogues_are_not_judged_by_turn_scores_that_nobody_gave(project, tmp_path, capsys):
    """`plan` counts with stand-ins for turns that are not judged yet; `run` refuses."""
    assert main(["judge", "run", *project, "--variants", "cpds-dial"]) == 1
    assert "judgements are missing" in capsys.readouterr().err
    assert not list((tmp_path / "ledger").rglob("*.parquet"))
    assert main(["judge", "run", *project, "--variants", "cpds-d", "cpds-dial"]) == 0


def test_show_prints_a_dialogue_with_scores_and_rationales(project, tmp_path, tables, by_rules, capsys):
    tasks = by_rules.tasks("mine")
    turns = judge(by_rules, tasks["cpds-d_rules"], tables, dataset="mine").scores
    for name in ("cpds-d_rules", "cpds-dial_rules"):
        made = judge(by_rules, tasks[name], tables, dataset="mine", turns=turns)
        schema.write(tmp_path / f"results/scores/mine/{name}.parquet", made.scores, "scores")
        schema.write(tmp_path / f"results/judgements/mine/{name}.parquet", made.judgements, "judgements")
    where = ["--dataset", "mine", "--results", str(tmp_path / "results"), "--tables", str(tmp_path)]
    assert main(["judge", "show", "one", "d1", *where]) == 0
    shown = capsys.readouterr().out
    assert ">> I swim in the sea every day, d1-t1!" in shown and "A: Do you like the sea, d1-t0?" in shown
    assert shown.count("cpds-d_rules: humanness ") == 2 and shown.count("cpds-dial_rules: ") == 1
    assert shown.count("rationale: ") == 3
    assert main(["judge", "show", "three", "d1", *where]) == 1
    assert "unknown system 'three'" in capsys.readouterr().err
    assert main(["judge", "show", "one", "d7", *where]) == 1


@pytest.mark.parametrize("parameters", [{"token": "abc"}, {"user": "sk-abcdefgh"}, {"extra_headers": {"X-Org": "abc"}}])
def test_a_secret_among_the_parameters_is_refused_before_a_signature_shows_it(changed, parameters):
    with pytest.raises(ConfigError, match=r"judges\.gpt-4\.parameters: .* looks like a secret") as error:
        changed(lambda judges, judging: judges["gpt-4"].update(parameters=parameters))
    assert "abc" not in str(error.value)


def test_parameters_that_only_sound_like_secrets_are_kept(changed):
    known = {"max_tokens": 9, "stop_token_ids": [1], "chat_template_kwargs": {"bos_token": ""}, "stop": ["task-force"]}
    judging = changed(lambda judges, judging: judges["gpt-4"].update(parameters=known))
    assert judging.judges["gpt-4"].parameters == known


def test_a_url_that_is_none_is_named_with_its_judge(changed):
    with pytest.raises(ConfigError, match=r"params.yaml, judges\.gpt-4: base_url is not a valid URL"):
        changed(lambda judges, judging: judges["gpt-4"].update(base_url="http://[::1/v1"))


def test_a_data_set_without_tables_is_made_if_it_is_known_and_else_a_mistake(root, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(root)
    for command in ("list", "plan", "run"):
        assert main(["judge", command, "--datasets", "usr_topicl", "--tables", str(tmp_path)]) == 1
        error = capsys.readouterr().err
        assert "unknown data set 'usr_topicl'" in error and "Did you mean 'usr_topical'" in error
        assert "snakemake" not in error
    assert main(["judge", "plan", "--datasets", "usr_topical", "--tables", str(tmp_path)]) == 1
    assert "Make them: snakemake" in capsys.readouterr().err
