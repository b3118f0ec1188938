"""Implicit scoring, on tiny random models against one token of one prompt at a time, and through an endpoint."""

import json
import math

import numpy as np
import pytest
import yaml

import tinymodels
from comperdial.cli import main
from comperdial.core.errors import ComperdialError, ConfigError
from comperdial.judges.base import Answer, Completion
from comperdial.judges.files import file_task
from comperdial.judges.items import items_of
from comperdial.judges.ledger import PUBLISHED, Ledger
from comperdial.judges.plan import plan
from comperdial.judges.tasks import (
    family_of,
    known_signature,
    read_judging,
    read_sections,
    sections_of,
    signature,
    unavailable,
)
from faultserver import FaultServer
from minijudging import judged, write_tables

pytestmark = pytest.mark.usefixtures("one_thread")

TEMPLATE = (
    "{% for message in messages %}[{{ message.role }}] {{ message.content }}<|endoftext|>{% endfor %}"
    "{% if add_generation_prompt %}[assistant]\n{% endif %}"
)
YES_NO = {"Yes": 1, "No": 0}
VARIANTS = {
    "relevance": {
        "prompt": "implicit_turn", "question": "relevance", "fields": ["history", "response"],
        "dimensions": ["relevance"], "labels": YES_NO,
    },
    "coherence": {
        "prompt": "implicit_dialogue", "question": "coherence", "fields": ["dialogue"], "dimensions": ["coherence"],
        "labels": YES_NO,
    },
    "explicit": {"prompt": "explicit_turn", "fields": ["history", "response"], "dimensions": ["relevance", "overall"]},
}  # fmt: skip


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Return models by what their tokenizer makes of Yes and No, and whether there is a chat template."""
    import transformers

    made = {}
    with pytest.MonkeyPatch.context() as patch:
        for kind, corpus in (("split", tinymodels._CORPUS), ("whole", ["Yes Yes Yes No No No\nYes\nNo\n" * 30])):
            patch.setattr(tinymodels, "_CORPUS", corpus)
            made[kind, False] = tinymodels.gpt2(tmp_path_factory.mktemp("tiny") / kind, positions=1024)
            made[kind, True] = tinymodels.gpt2(tmp_path_factory.mktemp("tiny") / kind, positions=1024)
            tokenizer = transformers.AutoTokenizer.from_pretrained(made[kind, True])
            tokenizer.chat_template = TEMPLATE
            tokenizer.save_pretrained(made[kind, True])
    return made


@pytest.fixture
def tables(tmp_path):
    """Return a folder of two dialogues of two turns, answered by two systems in contexts of their own."""
    rows = []
    for dialogue in ("d1", "d2"):
        for system in ("one", "two"):
            history = []
            for turn in range(2):
                history = [*history, f"User: Do you like tea, {dialogue}, {turn}?"]
                text = f"I like {'green ' * turn}tea." if system == "one" else "Well."
                context = f"{dialogue}-{system}-{turn}"
                rows.append(
                    {
                        "dialogue": dialogue, "turn": turn, "context": context, "history": history,
                        "said": {system: text},
                    }
                )  # fmt: skip
                history = [*history, f"Bot: {text}"]
    return write_tables(tmp_path / "mine", rows)


def sections(tmp_path, entry, **judging):
    base = {"judges": {"default": ["tiny"]}, "variants": VARIANTS, "ledger": str(tmp_path / "ledger")}
    return {"tiny": entry}, {**base, **judging}


def local(tmp_path, model, **judging):
    return sections(tmp_path, {"service": "transformers", "model": model, "mode": "probabilities"}, **judging)


def loaded(folder):
    import transformers as library

    return library.AutoTokenizer.from_pretrained(folder), library.AutoModelForCausalLM.from_pretrained(folder).eval()


def direct(model, text):
    """Return p(Yes) / (p(Yes) + p(No)), each the sum over its spellings, token by token on one string."""
    import torch

    tokenizer, network = loaded(model)

    def probability(way):
        tokens, log = list(tokenizer(text, add_special_tokens=False)["input_ids"]), 0.0
        for token in tokenizer(way, add_special_tokens=False)["input_ids"]:
            with torch.no_grad():
                logits = network(input_ids=torch.tensor([tokens])).logits[0, -1].double().numpy()
            log += logits[token] - np.logaddexp.reduce(logits)
            tokens.append(token)
        return math.exp(log)

    yes, no = (
        sum(probability(space + way) for space in ("", " ") for way in (word, word.lower(), word.upper()))
        for word in ("Yes", "No")
    )
    return yes / (yes + no), 1 - yes - no


@pytest.mark.parametrize("chat", [False, True])
@pytest.mark.parametrize("words", ["split", "whole"])
def test_a_score_is_what_the_models_logits_say(folders, tables, tmp_path, words, chat):
    model = folders[words, chat]
    judging = read_judging(*local(tmp_path, model))
    tokenizer, _ = loaded(model)
    assert {len(tokenizer(word)["input_ids"]) for word in YES_NO} == ({2} if words == "split" else {1})
    for name in ("relevance", "coherence"):
        task = judging.tasks("mine")[f"{name}_tiny"]
        scores, _, _ = judged(judging, task, tables)
        found = scores.pivot(index=["item_id", "system_id"], columns="output", values="value")
        assert len(found) == (8 if name == "relevance" else 4) and set(found) == {name, "outside"}
        assert set(scores["level"]) == {task.variant.level}
        for item in list(items_of(judging, task, tables))[::3]:
            prompt = json.loads(item.messages)[0]["content"]
            text = f"[user] {prompt}<|endoftext|>[assistant]\n" if chat else prompt
            value, outside = direct(model, text)
            row = found.loc[(item.item_id, item.system_id)]
            assert row[name] == pytest.approx(value, abs=1e-6) and 0 < row[name] < 1
            assert row["outside"] == pytest.approx(outside, abs=1e-6)
    assert found[name].nunique() > 1


def reply(*tops):
    """Return an endpoint's answer whose first token has these log probabilities."""
    ranked = [{"token": token, "logprob": math.log(value), "bytes": None} for token, value in tops]
    choice = {
        "index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": tops[0][0]},
        "logprobs": {"content": [{**ranked[0], "top_logprobs": ranked}]},
    }  # fmt: skip
    content = {"id": "c", "object": "chat.completion", "created": 1, "model": "m-1", "choices": [choice]}
    return json.dumps(content).encode()


def test_through_an_endpoint_that_returns_log_probabilities(tables, tmp_path):
    def script(_, body):
        assert body["logprobs"] is True and body["top_logprobs"] == 20
        text = body["messages"][0]["content"]
        if "d2, 0" in text and "d2, 1" not in text and "Well." in text:
            return reply(("It", 0.9), ("maybe", 0.05))
        if "d2" in text:
            return reply(("Sure", 0.7), (" yes", 0.1))
        return reply(("Yes", 0.4), ("\u0120no", 0.25), (" No", 0.05), ("YES", 0.1), ("Well", 0.1))

    with FaultServer(script=script) as server:
        entry = {"service": "openai", "model": "m", "mode": "probabilities", "base_url": server.url, "timeout": 30}
        judging = read_judging(*sections(tmp_path, entry))
        scores, judgements, _ = judged(judging, judging.tasks("mine")["relevance_tiny"], tables)
    found = scores.pivot(index=["item_id", "system_id"], columns="output", values="value")
    first = found[found.index.get_level_values(0).str.startswith("d1")]
    assert first["relevance"].tolist() == pytest.approx([0.5 / 0.8] * 4)
    assert first["outside"].tolist() == pytest.approx([0.2] * 4)
    # A label that is not among the twenty counts as outside; with neither there is no score, and never a default.
    assert found.loc[("d2-one-0", "one")].tolist() == pytest.approx([0.9, 1.0])
    unread = judgements[judgements["failure"].notna()]
    assert unread["item_id"].tolist() == ["d2-two-0"]
    assert ("d2-two-0", "two") not in found.index and len(found) == 7


def test_the_command_line_has_a_folder_of_tables_judged(folders, tables, tmp_path, capsys):
    judges, judging = local(tmp_path, folders["split", True])
    params = tmp_path / "params.yaml"
    params.write_text(yaml.safe_dump({"datasets": ["mine"], "judges": judges, "judging": judging}))
    where = ["--params", str(params), "--tables", str(tmp_path), "--variants", "relevance", "coherence"]
    assert main(["judge", "plan", *where]) == 0
    planned = capsys.readouterr().out.splitlines()
    assert [line.split()[3] for line in planned[1:3]] == ["8", "4"]
    assert main(["judge", "run", *where]) == 0
    given = read_judging(judges, judging)
    for name in ("relevance", "coherence"):
        task = given.tasks("mine")[f"{name}_tiny"]
        said = sections_of(task, {"judges": judges, "judging": judging})
        again = read_sections(said)
        assert signature(again, again.tasks("mine")[task.name]) == signature(given, task)
        values, _, tally = judged(given, task, tables)
        values = values[values["output"] == name]["value"]
        assert values.between(0, 1, inclusive="neither").all() and len(values) == (8 if name == "relevance" else 4)
        assert (tally.report.asked, tally.report.from_ledger) == (0, len(values))


BOTH = {"relevance": VARIANTS["relevance"], "other": {**VARIANTS["relevance"], "question": "overall"}}


def test_several_questions_are_asked_together_and_answered_as_alone(folders, tables, tmp_path, capsys):
    found = []
    for place, chosen in (("one", [["relevance", "other"]]), ("two", [["relevance"], ["other"]])):
        judges, judging = local(tmp_path / place, folders["split", True], variants=BOTH)
        params = tmp_path / f"{place}.yaml"
        params.write_text(yaml.safe_dump({"datasets": ["mine"], "judges": judges, "judging": judging}))
        for names in chosen:
            where = ["--params", str(params), "--tables", str(tmp_path), "--variants", *names]
            assert main(["judge", "run", *where]) == 0
        said = capsys.readouterr().out
        assert ("2 questions to tiny together: 16 new answers" in said) == (place == "one")
        given = read_judging(judges, judging)
        found.append([judged(given, task, tables) for task in given.tasks("mine").values()])
    for one, two in zip(*found, strict=True):
        assert one[0]["value"].tolist() == pytest.approx(two[0]["value"].tolist(), abs=1e-6)
        assert one[2].report.asked == 0


def test_a_judge_is_asked_about_some_items_and_with_more_of_them_about_the_same(folders, tables, tmp_path):
    samples = []
    for count in (2, 5, 100):
        entry = {"service": "transformers", "model": folders["split", True], "mode": "probabilities", "items": count}
        judging = read_judging(*sections(tmp_path, entry, variants=BOTH))
        tasks = judging.tasks("mine")
        names = [
            [(item.item_id, item.system_id) for item in items_of(judging, task, tables)] for task in tasks.values()
        ]
        # The same ones, whatever is asked, in the order of the tables.
        assert names[0] == names[1] == sorted(names[0]) and len(names[0]) == min(count, 8)
        samples.append(set(names[0]))
        assert f"|items:{count}|" in signature(judging, tasks["relevance_tiny"])
    assert samples[0] < samples[1] < samples[2]
    # A pair needs both of its versions.
    assert not judging.tasks("turn_perturbations") and not judging.tasks("mine_perturbed")
    with pytest.raises(ConfigError, match=r"judges\.tiny\.items"):
        read_judging(*sections(tmp_path, entry | {"items": 0}))


def test_answers_that_are_published_need_no_model_and_hold_no_text(tables, tmp_path, monkeypatch):
    monkeypatch.setenv("COMPERDIAL_MODELS", str(tmp_path))
    judging = read_judging(*local(tmp_path, "smollm2-135m-instruct"))
    task = judging.tasks("mine")["relevance_tiny"]
    assert unavailable(judging, task, "mine") == "model 'smollm2-135m-instruct' is not present"
    answers = [
        Answer(item.messages, 0, Completion("Yes", logprobs={"Yes": math.log(0.1 + 0.05 * n), "No": math.log(0.4)}))
        for n, item in enumerate(items_of(judging, task, tables))
    ]
    theirs = Ledger(tmp_path / "theirs")
    theirs.add("mine", family_of(judging, task), answers)
    theirs.export()
    assert theirs.publish() == theirs.publish() == 8
    (tmp_path / "ledger").mkdir()
    published = (tmp_path / "theirs" / PUBLISHED).rename(tmp_path / "ledger" / PUBLISHED)
    assert not any(word in str(rows_of(published)) for word in ("tea", "Well", "User"))
    assert unavailable(judging, task, "mine") is None
    assert "is not present" in unavailable(judging, task, "another")
    scores, judgements, tally = judged(judging, task, tables)
    values = scores[scores["output"] == "relevance"]["value"]
    assert sorted(values) == pytest.approx([(p := 0.1 + 0.05 * n) / (p + 0.4) for n in range(8)])
    assert tally.report is None and judgements["key"].nunique() == 8


def rows_of(path):
    import pyarrow.parquet

    return pyarrow.parquet.read_table(path).to_pylist()


def test_the_signature_says_the_labels_and_the_question(folders, tmp_path):
    def tried(**changes):
        variants = {"relevance": {**VARIANTS["relevance"], **changes}}
        judging = read_judging(*local(tmp_path, folders["split", False], variants=variants))
        task = judging.tasks("x")["relevance_tiny"]
        return signature(judging, task), family_of(judging, task).id

    said, family = tried()
    assert "|labels:No=0,Yes=1|" in said and "relevance of 1, 0-1" in said and "implicit_turn@" in said
    others = [
        tried(labels={"Yes": 2, "No": 0}),
        tried(labels={"Good": 1, "Bad": 0}),
        tried(question="specificity"),
        tried(question="Does it fit?"),
    ]
    assert len({said, *(other for other, _ in others)}) == 5
    # What a label is worth is no part of what is asked: its answers are the same.
    assert others[0][1] == family and family not in {other for _, other in others[1:]}


def test_labels_are_worth_what_the_variant_says(folders, tables, tmp_path):
    values = []
    for labels in (YES_NO, {"Yes": 5, "No": 1}):
        variants = {"relevance": {**VARIANTS["relevance"], "labels": labels}}
        judging = read_judging(*local(tmp_path, folders["whole", False], variants=variants))
        scores, _, _ = judged(judging, judging.tasks("mine")["relevance_tiny"], tables)
        values.append(scores[scores["output"] == "relevance"]["value"].to_numpy())
    assert values[1] == pytest.approx(1 + 4 * values[0], abs=1e-5)


def test_a_judge_that_writes_is_not_asked_for_labels(tmp_path, tables, capsys):
    judges, judging = sections(tmp_path, {"service": "rules", "explain": True})
    given = read_judging(judges, judging)
    assert set(given.tasks("mine")) == {"explicit_tiny"}
    params = tmp_path / "params.yaml"
    params.write_text(yaml.safe_dump({"datasets": ["mine"], "judges": judges, "judging": judging}))
    assert main(["judge", "list", "--params", str(params), "--tables", str(tmp_path)]) == 0
    assert "tiny is not asked coherence, relevance: labels need `mode: probabilities`" in capsys.readouterr().out
    with pytest.raises(ConfigError, match=r"answered by a label.*tiny has `mode: generate`"):
        file_task(given, "relevance", "tiny")


def test_a_service_without_probabilities_is_named_as_not_run(tmp_path):
    judging = read_judging(*sections(tmp_path, {"service": "rules", "mode": "probabilities"}))
    why = unavailable(judging, judging.tasks("mine")["relevance_tiny"], "mine")
    assert "gives no probabilities" in why
    assert known_signature(judging, judging.tasks("mine")["relevance_tiny"]) is None


def test_several_ratings_are_not_asked_of_a_judge_of_probabilities(folders, tmp_path):
    judging = read_judging(*local(tmp_path, folders["split", False]))
    tasks = judging.tasks("mine")
    assert "asks for 2 ratings at once" in unavailable(judging, tasks["explicit_tiny"], "mine")
    assert known_signature(judging, tasks["explicit_tiny"]) is None
    assert known_signature(judging, tasks["relevance_tiny"]) == signature(judging, tasks["relevance_tiny"])


def test_no_rationale_is_asked_for_beside_a_label(folders, tmp_path):
    entry = {"service": "transformers", "model": folders["split", False], "mode": "probabilities", "explain": True}
    judging = read_judging(*sections(tmp_path, entry))
    tasks = judging.tasks("mine")
    assert not tasks["relevance_tiny"].explain and tasks["explicit_tiny"].explain
    assert judging.prompt(tasks["relevance_tiny"]).template.rstrip().endswith("### Answer:")


def test_a_plan_counts_dialogues_whole(folders, tables, tmp_path):
    judging = read_judging(*local(tmp_path, folders["split", False]))
    made = plan(judging, judging.tasks("mine")["coherence_tiny"], tables, dataset="mine")
    assert (made.calls, made.known, made.cost) == (4, 0, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": yaml.safe_load("{Yes: 1, No: 0}")}, "the name True; expected texts, such as"),
        ({"labels": {"Yes": 1}}, "labels"),
        ({"labels": {"Yes": 1, "yes ": 0}}, "stands twice"),
        ({"labels": {"Yes": 1, "No": 1}}, "not all worth the same"),
        ({"labels": {"Yes": "one", "No": 0}}, "labels.Yes"),
        ({"scale": [1, 5]}, "`scale` beside `labels`"),
        ({"explain": True}, "`explain` beside `labels`"),
        ({"dimensions": ["relevance", "overall"]}, "labels for 2 dimensions"),
        ({"fields": ["history", "dialogue"]}, "'history' is not known beside `dialogue`"),
        ({"fields": ["dialogue", "turn_scores"], "turns": "explicit"}, "'dialogue' is not known at dialogue level"),
    ],
)
def test_a_mistake_in_a_labelled_variant_is_named(tmp_path, change, message):
    variants = VARIANTS | {"relevance": VARIANTS["relevance"] | change}
    with pytest.raises(ConfigError) as raised:
        read_judging(*sections(tmp_path, {"service": "rules"}, variants=variants))
    assert message in str(raised.value) and "params.yaml, judging.variants.relevance" in str(raised.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"question": None}, "`question`: one of its names, or a text"),
        ({"question": "coherence"}, "unknown question at turn level 'coherence'"),
        ({"prompt": "explicit_turn"}, "no place for it"),
    ],
)
def test_a_prompt_and_its_question_go_together(tmp_path, folders, change, message):
    variant = {name: value for name, value in (VARIANTS["relevance"] | change).items() if value is not None}
    judging = read_judging(*local(tmp_path, folders["split", False], variants={"relevance": variant}))
    with pytest.raises(ComperdialError) as raised:
        judging.prompt(judging.tasks("mine")["relevance_tiny"])
    assert message in str(raised.value)


def test_ten_is_ten_where_it_is_two_tokens(tables, tmp_path):
    """On a scale to 10, through an endpoint whose tokenizer cuts numbers into digits."""

    def place(*top):
        ranked = [{"token": token, "logprob": math.log(value)} for token, value in top]
        return {**ranked[0], "top_logprobs": ranked}

    def script(_, body):
        text, content = (
            body["messages"][0]["content"],
            [place(("1", 0.95), ("9", 0.05)), place(("0", 0.99), ("1", 0.01))],
        )
        if "d2" in text:
            content = [place(("9", 0.6), ("1", 0.4))]
        answer = "".join(each["token"] for each in content)
        choice = {"message": {"content": answer}, "finish_reason": "length", "logprobs": {"content": content}}
        return json.dumps({"model": "m-1", "choices": [choice]}).encode()

    template = tmp_path / "ten.md"
    template.write_text("Rate it from 1 to 10.\n\n{{ history }}\n\n{{ response }}\n")
    variant = {"prompt": str(template), "fields": ["history", "response"], "dimensions": ["overall"], "scale": [1, 10]}
    with FaultServer(script=script) as server:
        entry = {"service": "openai", "model": "m", "mode": "probabilities", "base_url": server.url, "timeout": 30}
        judging = read_judging(*sections(tmp_path, entry, variants={"ten": variant}))
        scores, judgements, _ = judged(judging, judging.tasks("mine")["ten_tiny"], tables)
    values = scores[scores["output"] == "overall"].set_index("item_id")["value"]
    assert values.filter(like="d1").tolist() == pytest.approx(
        [(0.95 * 0.99 * 10 + 0.05 * 9) / (0.95 * 0.99 + 0.05)] * 4
    )
    assert not len(values.filter(like="d2"))
    unread = judgements[judgements["failure"].notna()]["failure"].unique()
    assert list(unread) == ["the token '1' may be the beginning of '10', whose probability is not known"]
