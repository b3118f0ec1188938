"""Recorded pairs, in small files written by hand."""

import json
import logging

import pytest

from comperdial.core.errors import SchemaError, UnknownNameError
from comperdial.data import readers

ORIGINALS = [["Hi!", "Hello.", "How are you?", "Fine.", "Good."], ["Oh", "Yes?", "No."]]


def text(lines):
    return "".join("\t".join(line) + "\n" for line in lines)


def read(folder, **contents):
    files = {}
    for role, content in contents.items():
        files[role] = folder / f"{role}.txt"
        files[role].write_text(json.dumps(content) if role == "originals" else text(content), encoding="utf-8")
    return readers.read("comp_perturbations", "mini", files)


def said(tables, context_id):
    history = tables["contexts"].set_index("context_id")["history"][context_id]
    return [(u["speaker"], u["text"]) for u in history]


def labelled(name, texts, chatbot="model"):
    return (name, *(f"{('human', chatbot)[place % 2]}: {text}" for place, text in enumerate(texts)))


def test_pairs_of_responses_are_joined_by_line(tmp_path, caplog):
    caplog.set_level(logging.INFO, "comperdial")
    tables = read(
        tmp_path,
        pronouns_original=[("pronoun-0000", "Hi!", "Hello.", "Where is she?"), ("pronoun-0001", "alone")],
        pronouns=[("contra-7", "Hi!", "Hello.", "Where are we?"), ("pronoun-0001", "alone")],
        dullness_original=[("dull-0000", "a", "b")],
        dullness=[("dull-0000", "a", "Ok.")],
    )
    responses = tables["responses"]
    assert responses["system_id"].tolist() == ["original", "perturbed"] * 3
    assert responses["response"].tolist() == ["Where is she?", "Where are we?", "alone", "alone", "b", "Ok."]
    contexts = tables["contexts"].set_index("context_id")
    assert contexts["dialogue_id"].tolist() == [
        name for name in ("pronouns-0000", "pronouns-0001", "dullness-0000") for _ in range(2)
    ]
    assert contexts.index[0] == "pronouns-0000-original-1"
    assert said(tables, "pronouns-0000-perturbed-1") == [("B", "Hi!"), ("A", "Hello.")]
    assert said(tables, "pronouns-0001-original-0") == []
    assert tables["ratings"].empty
    assert "mini, pronouns: 2 pairs, 1 of them equal up to the last turn" in caplog.text


def test_a_response_that_a_tab_split_is_rejoined(tmp_path):
    tables = read(
        tmp_path,
        entities_original=[("ner-0", "Hi!", "I am in Canada ?")],
        entities=[("ner-0", "Hi!", "I am in", "utah ?")],
    )
    assert tables["responses"]["response"].tolist() == ["I am in Canada ?", "I am in utah ?"]
    assert said(tables, tables["contexts"]["context_id"].iloc[1]) == [("A", "Hi!")]


def test_dialogues_are_joined_with_what_they_were_made_of(tmp_path):
    first, second = ORIGINALS
    tables = read(
        tmp_path,
        originals=ORIGINALS,
        order_shuffle=[
            labelled("order_shuffle_00", first[::-1]),
            labelled("order_shuffle_00", [*first[1:], first[0]]),
            labelled("order_shuffle_01", second[::-1]),
            labelled("order_shuffle_01", [*second[1:], second[0]]),
        ],
        # In rounds: all originals, then all of them again; the ids say nothing.
        duplication=[
            labelled("self_repeat_08", ["Hi!", "Hello. lo.", "How are you?", "Fine. Fine.", "Good."]),
            labelled("self_repeat_08", ["Oh", "Yes? s?", "No."]),
            labelled("self_repeat_08", ["Hi!", "Hello. Hello.", "How are you?", "Fine. ne.", "Good."]),
            labelled("self_repeat_08", ["Oh", "Yes? Yes?", "No."]),
        ],
        generic_utterances=[
            labelled("disengage_00", ["Hi!", "Ok.", "How are you?", "Ok."], "chatbot"),
            labelled("disengage_01", ["Oh", "Ok.", "No.", "", "Why?", "I see."], "chatbot"),
        ],
    )
    found = {
        (dialogue, system): group["response"].tolist()
        for (dialogue, system), group in tables["responses"]
        .merge(tables["contexts"], on="context_id")
        .groupby(["dialogue_id", "system_id"])
    }
    assert found["order_shuffle-0000", "original"] == ["Hello.", "Fine."]
    assert found["order_shuffle-0001", "perturbed"] == ["How are you?", "Good."]
    assert found["order_shuffle-0002", "original"] == ["Yes?"]
    assert found["duplication-0001", "original"] == found["duplication-0003", "original"] == ["Yes?"]
    assert found["duplication-0002", "perturbed"] == ["Hello. Hello.", "Fine. ne."]
    # A turn without a text is counted, and left out.
    assert found["generic_utterances-0001", "perturbed"] == ["Ok.", "I see."]
    assert [text for _, text in said(tables, "generic_utterances-0001-perturbed-2")] == ["Oh", "Ok.", "No.", "Why?"]


def test_who_contradicts_is_the_one_evaluated(tmp_path):
    before = ("consistent-00", "human: I have a dog.", "chatbot: Nice.", "human: Yes.")
    after = ("contradiction-00", *before[1:], "chatbot: Its name?", "human: I have no dog.")
    tables = read(tmp_path, self_contradiction_original=[before], self_contradiction=[after])
    responses = tables["responses"].set_index("context_id")["response"].to_dict()
    assert responses == {
        "self_contradiction-0000-original-0": "I have a dog.",
        "self_contradiction-0000-original-1": "Yes.",
        "self_contradiction-0000-perturbed-0": "I have a dog.",
        "self_contradiction-0000-perturbed-1": "Yes.",
        "self_contradiction-0000-perturbed-2": "I have no dog.",
    }
    assert [speaker for speaker, _ in said(tables, "self_contradiction-0000-perturbed-2")] == list("BABA")


PAIR = {"pronouns_original": [("p-0", "a", "b", "c")]}
SHUFFLED = [labelled("order_shuffle_00", ORIGINALS[0][::-1]), labelled("order_shuffle_01", ORIGINALS[1][::-1])]
ONE = [labelled("rand_00", ["Hi!", "Hello.", "What?", "No.", "Good."]), labelled("rand_01", ORIGINALS[1])]
DECODE = {"self_contradiction_original": [("c-0", "human: a", "chatbot: b")]}


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ({**PAIR, "pronouns": [("p-0", "a", "x", "d")]}, "line 1: another context, or no response"),
        ({**PAIR, "pronouns": [("p-0", "a", "b")]}, "line 1: another context, or no response"),
        ({**PAIR, "pronouns": [("p-0", "a", "b", "c")] * 2}, "2 lines; expected 1, as in the originals"),
        ({"pronouns": [("p-0", "a", "b")]}, "no file 'pronouns_original'"),
        ({"order_shuffle": SHUFFLED}, "no file 'originals'"),
        ({"originals": {}, "order_shuffle": SHUFFLED}, "no dialogues; expected a JSON list of lists"),
        ({"originals": [["a"], [""]], "order_shuffle": SHUFFLED}, "no dialogues"),
        ({"originals": ORIGINALS, "order_shuffle": SHUFFLED[:1]}, "1 lines; expected a multiple of 2"),
        (
            {"originals": ORIGINALS, "order_shuffle": SHUFFLED[::-1]},
            "line 1: the id is 'order_shuffle_01'; expected one",
        ),
        (
            {"originals": ORIGINALS, "order_shuffle": [labelled("order_shuffle_00", ORIGINALS[1]), SHUFFLED[1]]},
            "line 1: the texts are not made by order_shuffle; expected of original 0",
        ),
        (
            {"originals": ORIGINALS, "utterance_replacement": ONE},
            "line 1: the texts are not made by utterance_replacement",
        ),
        ({"originals": ORIGINALS, "duplication": SHUFFLED}, "line 1: the texts are not made by duplication"),
        (
            {"originals": ORIGINALS, "content_reduction": [("disengage_00", "Hi!")] * 2},
            "line 1: utterance 1 begins 'Hi!'",
        ),
        (
            {
                "originals": ORIGINALS,
                "content_reduction": [labelled("d_00", ["Hi!", ""]), labelled("d_01", ["a", "b"])],
            },
            "nothing to score in pair 0, perturbed",
        ),
        ({**DECODE, "self_contradiction": [("c-0", "human: a", "chatbot: b", "human: c")]}, "does not go on by two"),
        (
            {**DECODE, "self_contradiction": [("c-0", "human: a", "chatbot: x", "human: c", "chatbot: d")]},
            "line 1: the original does not go on by two utterances",
        ),
    ],
)
def test_what_are_no_such_pairs_is_refused(tmp_path, contents, message):
    with pytest.raises(SchemaError, match=message):
        read(tmp_path, **contents)


def test_two_replaced_utterances_are_two_at_most(tmp_path):
    tables = read(tmp_path, originals=ORIGINALS, two_utterances=ONE)
    assert len(tables["contexts"]["dialogue_id"].unique()) == 2


def test_an_unknown_file_is_refused(tmp_path):
    with pytest.raises(UnknownNameError, match=r"unknown file of perturbations 'pronoun'.*Did you mean 'pronouns'"):
        read(tmp_path, pronoun=[("p-0", "a", "b")])
