"""Answers that others recorded, of invented judges on invented data, as scores."""

import json

import pandas as pd
import pytest

from comperdial.core.errors import SchemaError, UnknownNameError
from comperdial.core.files import sha256
from comperdial.data import readers
from comperdial.data.recorded import Rated
from comperdial.judges.parsing import PARSER_VERSION
from comperdial.judges.recorded import Recorded, signature
from minidata import mini_items

REFERENCE = "Original Ground Truth"
OURS = {"naturalness": "Natural", "coherence": "Maintains Context"}


@pytest.fixture(scope="module")
def rated(tmp_path_factory):
    path = tmp_path_factory.mktemp("mini") / "ratings.json"
    path.write_text(json.dumps(mini_items()))
    return Rated(**{name: readers.read("usr", "mini", {"ratings": path})[name] for name in Rated.__annotations__})


def items():
    """Return the invented set as Chiang and Lee's files have it: 20 answers an item, the last one without a rating."""
    made = []
    for item in mini_items():
        for response in item["responses"]:
            text = response["response"]
            made.append(
                {
                    "source": item["context"],
                    "system_id": response["model"],
                    "system_output": text,
                    "context": item["fact"],
                    "scores": {name: round(sum(response[ours]) / 3, 10) for name, ours in OURS.items()},
                    "prompt": f"Rate it.\n{item['context']}\nFact:\n{item['fact']}\nResponse:\n{text}\n- Naturalness:\n",
                    "all_responses": [*[f"- Naturalness: {1 + len(made) % 3}"] * 18, "Rating: 2.5", "I cannot say."],
                }
            )
    return made


def recorded(tmp_path, rated, content=None, format_name="chiang2023", file="naturalness"):
    path = tmp_path / "answers.json"
    path.write_text(json.dumps(items() if content is None else content))
    return Recorded.read("judge", format_name, {file: path}, rated)


def test_answers_become_scores_judgements_and_counts(tmp_path, rated):
    judge = recorded(tmp_path, rated)
    scores = judge.scores("s")
    assert len(scores) == 6 * 4 and REFERENCE not in set(scores["system_id"])
    assert (set(scores["metric"]), set(scores["output"])) == ({"judge"}, {"naturalness"})
    # The eighth item is the third response, Dull's, to the second context.
    value = scores.set_index(["item_id", "system_id"])["value"]["mini-001", "Dull"]
    assert value == pytest.approx((18 * (1 + 7 % 3) + 2.5) / 19)
    single = judge.judgements()
    assert len(single) == 24 * 20 and single["failure"].notna().sum() == 24
    counted = judge.coverage().iloc[0]
    assert (counted["items"], counted["answers"], counted["unread"], counted["n"]) == (30, 600, 30, 30)
    assert counted["why"] == "30 no rating" and counted["target"] == "Natural"


def test_equal_responses_of_two_systems_keep_their_own_answers(tmp_path, rated):
    """Their prompts are the same text; the answers to the second are further samples of it."""
    responses, content = rated.responses.copy(), items()
    content[3] |= {name: content[2][name] for name in ("system_output", "prompt")}
    responses.loc[(responses["context_id"] == "mini-000") & (responses["system_id"] == "Wanderer"), "response"] = (
        content[3]["system_output"]
    )
    twins = Rated(rated.contexts, responses, rated.systems, None)
    judge = recorded(tmp_path, twins, content)
    values = judge.scores("s").set_index(["item_id", "system_id"])["value"]
    assert values["mini-000", "Dull"] == pytest.approx((18 * 3 + 2.5) / 19)
    assert values["mini-000", "Wanderer"] == pytest.approx((18 * 1 + 2.5) / 19)
    assert judge.judgements().query("item_id == 'mini-000' and system_id == 'Wanderer'")["sample"].min() == 20


def test_an_item_without_any_rating_has_no_score_and_items_may_be_missing(tmp_path, rated):
    content = items()[4:1:-1]
    expected = {item["system_id"] for item in content[1:]} - {REFERENCE}
    content[0]["all_responses"] = ["N/A"] * 20
    assert set(recorded(tmp_path, rated, content).scores("s")["system_id"]) == expected


def test_a_signature_names_the_files(tmp_path, rated):
    path = tmp_path / "n.json"
    path.write_text("[]")
    entry = {"format": "chiang2023", "prompt": "geval", "model": "gpt-3.5-turbo"}
    one = signature(entry, {"naturalness": path}, {"naturalness": "o/r@abcdef0/a/n.json"})
    assert one == (
        f"recorded-judge|format:chiang2023|prompt:geval|model:gpt-3.5-turbo|from:o/r@abcdef0/a/n.json|sha256:"
        f"{sha256(path)[:12]}|samples:20|mean|parser:{PARSER_VERSION}|v:1.1"
    )
    origins = {"naturalness": "o/r@abcdef0/a/n.json", "coherence": "o/r@abcdef0/a/c.json"}
    assert "|from:o/r@abcdef0/a|" in signature(entry, dict.fromkeys(origins, path), origins)


def without(item, field):
    return {name: value for name, value in item.items() if name != field}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda judge: {}, "no list of items"),
        (lambda judge: [judge[0], without(judge[1], "prompt")], "item 1: no field 'prompt'"),
        (lambda judge: [{**judge[0], "system_output": "another text"}], "item 0: no response of 'mini'"),
    ],
)
def test_what_is_not_such_a_file_is_refused(tmp_path, rated, change, message):
    with pytest.raises(SchemaError, match=message):
        recorded(tmp_path, rated, change(items())).scores("s")


def test_names_that_do_not_exist(tmp_path, rated):
    with pytest.raises(UnknownNameError, match="unknown file of recorded answers 'humour'"):
        recorded(tmp_path, rated, file="humour")


# --- GPT-4's rounds ---------------------------------------------------------------------------------------------------


def rounds(count=4, **changes):
    """Return a file of five rounds; the number depends on the dimension and the dialogue."""
    names = enumerate(["coh", "div", "eng", "inf", "ovr"])
    made = {
        f"{short}_{n}": [float(1 + (rank + at) % 5) for at in range(count)]
        for rank, short in names
        for n in range(1, 6)
    }
    return made | changes


@pytest.fixture
def dialogues():
    names = [f"mini-{line:04d}" for line in (0, 3, 12, 40)]
    contexts = pd.DataFrame({"dataset": "mini", "context_id": names, "dialogue_id": names})
    responses = pd.DataFrame({"context_id": names, "system_id": ["a", "b", "a", "b"]})
    return Rated(contexts, responses, pd.DataFrame({"system_id": ["a", "b"], "kind": "agent"}))


def test_rounds_are_read_by_line(tmp_path, dialogues):
    content = rounds(coh_5=[2.5, 2.0, 3.0, 7.0], indices=[12, 3, 40, 0])
    judge = recorded(tmp_path, dialogues, content, "gpt4_rounds", "rounds")
    scores = judge.scores("s").set_index(["output", "item_id"])
    assert scores["value"]["coherence", "mini-0012"] == pytest.approx((4 * 1 + 2.5) / 5)
    assert scores["value"]["coherence", "mini-0000"] == 4 and set(scores["level"]) == {"dialogue"}
    single = judge.judgements()
    assert len(single) == 100 and single["failure"].dropna().tolist() == ["out of scale: 7"]


def test_a_dialogue_that_is_in_no_table_is_refused(tmp_path, dialogues):
    with pytest.raises(SchemaError, match="dialogue 'mini-0001' has responses of no system"):
        recorded(tmp_path, dialogues, rounds(indices=[1, 2, 3, 4]), "gpt4_rounds", "rounds")
