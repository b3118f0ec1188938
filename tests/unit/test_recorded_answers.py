"""Recorded answers of invented judges on the invented set, as scores."""

import json
import logging

import pytest

from comperdial.core.errors import ConfigError, FileError, SchemaError, UnknownNameError
from comperdial.core.files import sha256
from comperdial.data import readers
from comperdial.data.recorded import Rated
from comperdial.judges.parsing import PARSER_VERSION
from comperdial.judges.recorded import find, formats
from comperdial.judges.recorded.taking import RecordedJudge, ratings, scores
from minidata import mini_items

REFERENCE = "Original Ground Truth"
OURS = {"naturalness": "Natural", "coherence": "Maintains Context"}


@pytest.fixture(scope="module")
def rated(tmp_path_factory):
    path = tmp_path_factory.mktemp("mini") / "ratings.json"
    path.write_text(json.dumps(mini_items()))
    tables = readers.read("usr", "mini", {"ratings": path})
    return Rated(tables["contexts"], tables["responses"], tables["systems"], tables["ratings"])


def items():
    """Return the invented set as Chiang and Lee's files have it: 20 answers an item, the last one without a rating."""
    made = []
    for item in mini_items():
        for response in item["responses"]:
            rating = 1 + len(made) % 3
            prompt = (
                f"Rate it from 1 to 3.\n\nHistory:\n{item['context']}\nFact:\n{item['fact']}\n\n"
                f"Response:\n{response['response']}\n\nForm:\n- Naturalness:\n"
            )
            made.append(
                {
                    "source": item["context"],
                    "system_id": response["model"],
                    "system_output": response["response"],
                    "context": item["fact"],
                    "scores": {name: round(sum(response[ours]) / 3, 10) for name, ours in OURS.items()},
                    "prompt": prompt,
                    "all_responses": [*[f"- Naturalness: {rating}"] * 18, "Rating: 2.5", "I cannot say."],
                }
            )
    return made


def judge(tmp_path, content=None, **changes):
    path = tmp_path / "gpt3.5_nat_geval.json"
    path.write_text(json.dumps(items() if content is None else content))
    given = {
        "name": "gpt-3.5-turbo_geval",
        "format": "chiang2023",
        "model": "gpt-3.5-turbo",
        "prompt": "chiang2023/geval",
        "paths": {"naturalness": path},
        "origins": {"naturalness": "own/repo@abcdef0/results/gpt3.5_nat_geval.json"},
    }
    return RecordedJudge(**given | changes)


def scores_of(recorded, rated):
    return scores(recorded, ratings(recorded, rated), rated)


def test_the_formats_are_the_files_of_the_package():
    assert formats() == ("chiang2023", "gpt4_rounds")
    with pytest.raises(UnknownNameError, match=r"unknown answer format 'chiang'.* Did you mean 'chiang2023'"):
        find("chiang")


def test_answers_become_scores(tmp_path, rated, caplog):
    caplog.set_level(logging.INFO, "comperdial")
    recorded = judge(tmp_path)
    found = scores_of(recorded, rated)
    assert len(found) == 6 * 4
    assert REFERENCE not in set(found["system_id"])
    assert (set(found["metric"]), set(found["output"])) == ({"gpt-3.5-turbo_geval"}, {"naturalness"})
    # The eighth item is the third response, Dull's, to the second context.
    value = found.set_index(["item_id", "system_id"])["value"]["mini-001", "Dull"]
    assert value == pytest.approx((18 * (1 + 7 % 3) + 2.5) / 19)
    assert (
        "24 scores; 30 of 600 answers could not be read; left out: 0 items without any rating, 6 of ref" in caplog.text
    )


def test_equal_responses_of_two_systems_keep_their_own_answers(tmp_path):
    """Their prompts are the same text; the answers to the second are further samples of it."""
    source = mini_items()
    source[0]["responses"][3]["response"] = source[0]["responses"][2]["response"]
    path = tmp_path / "ratings.json"
    path.write_text(json.dumps(source))
    tables = readers.read("usr", "mini", {"ratings": path})
    twins = Rated(tables["contexts"], tables["responses"], tables["systems"], None)
    content = items()
    content[3] |= {name: content[2][name] for name in ("system_output", "prompt")}
    recorded = judge(tmp_path, content)
    found = scores_of(recorded, twins).set_index(["item_id", "system_id"])["value"]
    assert found["mini-000", "Dull"] == pytest.approx((18 * 3 + 2.5) / 19)
    assert found["mini-000", "Wanderer"] == pytest.approx((18 * 1 + 2.5) / 19)


def test_items_may_be_missing_and_in_any_order(tmp_path, rated):
    expected = items()[4:1:-1]
    recorded = judge(tmp_path, expected)
    found = scores_of(recorded, rated)
    assert set(found["system_id"]) == {item["system_id"] for item in expected}


def test_an_item_without_any_rating_has_no_score(tmp_path, rated):
    content = items()
    content[1]["all_responses"] = ["N/A"] * 20
    recorded = judge(tmp_path, content)
    found = scores_of(recorded, rated)
    assert len(found) == 23
    said = ratings(recorded, rated)
    assert said.values["parsed"].min() == 0
    assert said.values["answers"].unique().tolist() == [20]
    assert len(said.failures) == 20 + 29
    assert set(said.failures["failure"]) == {"no rating"}


def test_files_are_read_under_their_dimensions(tmp_path, rated):
    (tmp_path / "other").mkdir()
    two = judge(tmp_path), judge(tmp_path / "other", [{**i, "all_responses": ["3"] * 20} for i in items()])
    paths = {"naturalness": two[0].paths["naturalness"], "coherence": two[1].paths["naturalness"]}
    recorded = judge(
        tmp_path, paths=paths, origins={"naturalness": "o/r@abcdef0/a/n.json", "coherence": "o/r@abcdef0/a/c.json"}
    )
    found = scores_of(recorded, rated)
    assert (found.loc[found["output"] == "coherence", "value"] == 3).all()
    [signature] = found["signature"].unique()
    start = "recorded-judge|format:chiang2023|prompt:chiang2023/geval|model:gpt-3.5-turbo|from:o/r@abcdef0/a|sha256:"
    assert signature.startswith(start)
    assert signature.endswith(f"|samples:20|mean|parser:{PARSER_VERSION}|v:1.1")


def test_the_signature_of_one_file(tmp_path):
    recorded = judge(tmp_path)
    digits = sha256(recorded.paths["naturalness"])[:12]
    assert f"|from:own/repo@abcdef0/results/gpt3.5_nat_geval.json|sha256:{digits}|" in recorded.signature()


def without(item, field):
    return {name: value for name, value in item.items() if name != field}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda found: {}, "no list of items"),
        (lambda found: [], "no list of items"),
        (lambda found: [found[0], without(found[1], "prompt")], "item 1: no field 'prompt'"),
        (lambda found: [{**found[0], "all_responses": ["1"] * 19}], "item 0: `all_responses` holds 19 entries"),
        (lambda found: [{**found[0], "all_responses": [1] * 20}], "expected 20 texts"),
        (lambda found: [found[0], {**found[1], "prompt": "Now: " + found[1]["prompt"]}], "item 1: the prompt is not"),
        (lambda found: [{**found[0], "prompt": "Rate it."}], "does not hold 'source'"),
        (lambda found: [{**found[0], "context": "something else"}], "does not hold 'context'"),
        (lambda found: [{**found[0], "system_output": "another text"}], "item 0: no response of 'mini'"),
    ],
)
def test_what_is_not_such_a_file_is_refused(tmp_path, rated, change, message):
    with pytest.raises(SchemaError, match=message):
        ratings(judge(tmp_path, change(items())), rated)


def test_an_item_rated_twice_is_refused(tmp_path, rated):
    recorded = judge(tmp_path, [*items(), items()[3]])
    with pytest.raises(SchemaError, match=r"item 30: context 'mini-000', system 'Wanderer' was rated in .* item 3 alr"):
        scores_of(recorded, rated)


def test_references_alone_are_no_scores(tmp_path, rated):
    recorded = judge(tmp_path, [item for item in items() if item["system_id"] == REFERENCE])
    with pytest.raises(SchemaError, match=r"no rating of .* is of a response that is evaluated"):
        scores_of(recorded, rated)


def test_wrong_calls_are_errors_that_say_so(tmp_path, rated):
    recorded = judge(tmp_path)
    with pytest.raises(SchemaError, match="no tables to join the items to"):
        ratings(recorded)
    with pytest.raises(UnknownNameError, match="unknown file of recorded answers 'humour'"):
        find("chiang2023")({"humour": tmp_path})
    with pytest.raises(ConfigError, match="no file of recorded answers"):
        find("chiang2023")({})
    with pytest.raises(FileError):
        ratings(judge(tmp_path, paths={"naturalness": tmp_path / "none.json"}), rated)


# GPT-4's rounds


def rounds(count=4, **changes):
    """Return a file of five rounds; the number says of which dimension and dialogue it is."""
    made = {
        f"{short}_{number}": [float(1 + (rank + place) % 5) for place in range(count)]
        for rank, short in enumerate(["coh", "div", "eng", "inf", "ovr"])
        for number in range(1, 6)
    }
    return made | changes


def gpt4(tmp_path, content, origin="own/repo@abcdef0/tiny_gpt4.json"):
    path = tmp_path / "tiny_gpt4.json"
    path.write_text(json.dumps(content))
    return RecordedJudge(
        "gpt-4_rounds", "gpt4_rounds", "gpt-4", "zhang2024/rounds", {"rounds": path}, {"rounds": origin}
    )


def test_rounds_are_read_by_line_without_tables(tmp_path):
    content = rounds(coh_5=[2.5, 2.0, 3.0, 7.0], indices=[12, 3, 40, 0])
    recorded = gpt4(tmp_path, content)
    found = ratings(recorded)
    assert len(found.singles) == 4 * 25
    values = found.values.set_index(["dimension", "item_id"])
    assert values["value"]["coherence", "0012"] == pytest.approx((4 * 1 + 2.5) / 5)
    assert values["value"]["coherence", "0000"] == 4
    assert values["parsed"]["coherence", "0000"] == 4
    assert found.failures[["dimension", "sample", "failure"]].values.tolist() == [["coherence", 4, "out of scale: 7"]]
    assert set(values.index.get_level_values("dimension")) == {
        "coherence", "diversity", "engagingness", "informativeness", "overall",
    }  # fmt: skip
