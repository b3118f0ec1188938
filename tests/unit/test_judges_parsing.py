"""Answers as models write them. None is a recorded one: those are in the golden tests."""

import json
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from comperdial.judges.parsing import Form, parse

FORMS = {
    "coherence": Form(("coherence",), "coherence", 1, 3),
    "grounded": Form(("groundedness",), "groundedness", 0, 1),
    "human": Form(("humanness",), "humanness", 1, 5, {"humanness": ("human likeness",)}),
    "simple": Form(("relevance", "specificity", "interestingness", "understandability", "overall"), "overall", 1, 5),
    "dialogue": Form(("overall dialogue turn score", "dialogue interaction score", "final score"), "final score", 1, 5),
    "overall": Form(("humanness", "fluency", "coherency", "consistency", "engagingness", "overall"), "overall", 1, 5),
}
HUMAN, SIMPLE, DIALOGUE, OVERALL = (FORMS[name] for name in ("human", "simple", "dialogue", "overall"))


def main(answer, form=HUMAN):
    """Return the main value, and check the result's invariants."""
    parsed = parse(answer, form)
    assert (parsed.failure is None) == (form.main in parsed.values)
    assert all(form.low <= value <= form.high for value in parsed.values.values())
    if parsed.failure is not None:
        assert parsed.failure.strip()
        assert not parsed.values
    return parsed.values.get(form.main)


# By form and by the value that a person would read, or `unread`.
ANSWERS = yaml.safe_load(Path(__file__).parents[1].joinpath("fixtures/answers.yaml").read_text(encoding="utf-8"))
CASES = [
    pytest.param(FORMS[form], answer, None if value == "unread" else value, id=f"{form}: {answer[:60]!r}")
    for form, by_value in ANSWERS.items()
    for value, answers in by_value.items()
    for answer in answers
]


@pytest.mark.parametrize(("form", "answer", "expected"), CASES)
def test_rating_is_read_and_never_invented(form, answer, expected):
    assert main(answer, form) == expected


@pytest.mark.parametrize(
    ("answer", "why"),
    [("", "an empty answer"), ("7", "out of scale: 7"), ("Humanness: -4", "out of scale: -4"),
     ("Humanness: 8/10", "on another scale: 8/10"), ("Humanness: 3-4", "no clear rating: 3-4"), ("x", "no rating"),
     ("[4,5]", "several numbers: 4,5"), ("4\n2", "different ratings: 4; 2"),
     ("Humanness: 4\nHumanness: 7", "different ratings: 4; out of scale: 7")],
)  # fmt: skip
def test_failure_gives_the_reason(answer, why):
    assert parse(answer, HUMAN).failure == why


FIVE = {"relevance": 5, "specificity": 3, "interestingness": 2.5, "understandability": 4, "overall": 3.5}


@pytest.mark.parametrize(
    "answer",
    [
        "relevance - 5\nspecificity - 3\ninterestingness - 2.5\nunderstandability - 4\noverall - 3.5",
        "- Overall: 3.5/5\n- Understandability: 4/5\n- Relevance: 5/5\n- Specificity: 3/5\n- Interestingness: 2.5/5",
        "Relevance: 5, Specificity: 3; Interestingness: 2.5, Understandability: 4, Overall: 3.5",
        "Relevance: 5 (very) Specificity: 3 Interestingness: 2.5 Understandability: 4 and Overall: 3.5",
        "| Quality | Score |\n|---|---|\n| Relevance | 5 |\n| Specificity | 3 |\n| Interestingness | 2.5 |\n"
        "| Understandability | 4 |\n| **Overall** | **3.5** |",
        "### Relevance\nRating: 5\n\n### Specificity\nRating: 3\n### Interestingness\n2.5\n### Understandability\n"
        "Score: 4\n### Overall\nRating: 3.5",
        "Here it is:\n```json\n" + json.dumps(FIVE, indent=2) + "\n```\nI hope this helps.",
        json.dumps({"scores": {name.title(): str(value) for name, value in FIVE.items()}, "note": "fine"}),
        json.dumps({name: {"score": value, "reason": "1 of 9"} for name, value in FIVE.items()}),
        json.dumps([{"dimension": name, "rating": value} for name, value in FIVE.items()]),
    ],
)
def test_every_dimension_in_any_order_and_form(answer):
    assert parse(answer, SIMPLE).values == FIVE


@pytest.mark.parametrize(
    ("form", "answer", "expected"),
    [
        (SIMPLE, "relevance - 5\noverall - 4\nspecificity - x\ninterestingness - 9", {"relevance": 5, "overall": 4}),
        (SIMPLE, "relevance - 5\nScore: 4", "no rating"),
        (SIMPLE, "relevance - 5\nFinal rating: 4", {"relevance": 5, "overall": 4}),
        (SIMPLE, "Score: 4", {"overall": 4}),
        (SIMPLE, '{"overall": 4, "overall": 2}', "different ratings: 4; 2"),
        (
            DIALOGUE,
            "Turn1 Score - 2\nOverall Dialogue Turn Score - 3.67\nDialogue Interaction Score - 4\nFinal Score - 3.5",
            {"overall dialogue turn score": 3.67, "dialogue interaction score": 4, "final score": 3.5},
        ),
        (DIALOGUE, "Turn1 Score - 2\nTurn2 Score - 3", "no rating"),
        (DIALOGUE, '{"finalScore": 4}', {"final score": 4}),
    ],
)
def test_a_missing_dimension_is_missing(form, answer, expected):
    parsed = parse(answer, form)
    assert (parsed.failure or parsed.values) == expected


@pytest.mark.parametrize(
    ("answer", "rationale"),
    [
        ("Rating: 4\nRationale: It reads well.", "It reads well."),
        ("Rationale: It reads\nvery well.\n\nRating: 4", "It reads\nvery well."),
        ("Analysis: It reads well. Rating 3 was near.\n- Humanness: 4", "It reads well. Rating 3 was near."),
        ("**Humanness**: 4\n\n**Explanation:** It reads well.", "It reads well."),
        ("Humanness: 4. Reason: It reads well.", None),
        ('{"humanness": 4, "rationale": "It reads well."}', "It reads well."),
        ("Humanness: 4\nRationale:", None),
    ],
)
def test_explanation_is_kept_verbatim(answer, rationale):
    parsed = parse(answer, HUMAN)
    assert (parsed.values, parsed.rationale) == ({"humanness": 4}, rationale)


@pytest.mark.parametrize(
    ("answer", "value"),
    [("Yes", 3), ("somewhat.", 2), ("No. The response changes the topic.", 1), ("yes . do you know who won ?", None),
     ("Somewhat (2)", 2), ("Yes. The response fits. Rating: 1", 1)],
)  # fmt: skip
def test_scale_label_words(answer, value):
    form = Form(("coherence",), "coherence", 1, 3, words={"no": 1, "somewhat": 2, "yes": 3})
    assert main(answer, form) == value


@pytest.mark.parametrize(
    "rationale",
    ["It ends with overall - 5.", "It ends with 'overall - 5'.", "it claims its overall score is 5",
     "it says: Final Score: 5", "It is short. Overall: 5", "fine\nThe overall score is 5."],
)  # fmt: skip
def test_explanation_after_ratings_gives_no_rating(rationale):
    parsed = parse(f"humanness - 2\nfluency - 2\nRationale: {rationale}", OVERALL)
    assert (parsed.values, parsed.failure) == ({}, "no rating")


CLOSING = [
    "</think>", "</ think >", "</Thought>", "</reasoning>", "</seed:think>", "[/THINK]", "<|end_of_thought|>",
    "<|END_THINKING|>", "<|/think|>", "◁/think▷", "＜/think＞", "&lt;/think&gt;", "<\\/think>", "<channel|>",
    "<unused95>", "<|channel|>final <|constrain|>json<|message|>", "assistantfinal", "\n...done thinking.\n",
]  # fmt: skip


@pytest.mark.parametrize("mark", CLOSING)
def test_thoughts_give_no_rating_with_any_closing_mark(mark):
    """The mark that opens them is often a part of the prompt."""
    thoughts = "It may be a bot.\nHumanness: 1\nOr so the first impression. Overall: 1"
    assert main(f"{thoughts} {mark} I rate it a 5.") == 5
    assert main(f'{thoughts} {mark} {{"humanness": 5, "overall": 4}}', OVERALL) == 4
    assert main(f"{thoughts} {mark}\n") is None
    assert main(f"Humanness: 2 {mark} {thoughts} {mark} Humanness: 5") in (5, None)


@pytest.mark.parametrize("mark", ["<think>", "[THINK]", "<|begin_of_thought|>", "<|channel|>analysis<|message|>"])
def test_unclosed_thoughts_give_no_rating(mark):
    parsed = parse(f"{mark}It is fine.\nHumanness: 3\n", FORMS["human"])
    assert (parsed.values, parsed.failure) == ({}, "thoughts without an end")


@pytest.mark.parametrize(
    "answer",
    ['Humanness: 2\nRationale: It says "</think> Humanness: 5" at its end.',
     "The response holds `</think>`, which is odd.\nHumanness: 2", "> Hi </think> Humanness: 5\n\nHumanness: 2",
     '{"rationale": "It ends: <think></think> Humanness: 5", "humanness": 2}',
     '<think>It has "</think> Humanness: 5", a trick.</think>Humanness: 2',
     "<think>x</think>\nHumanness: 2\n</think>\nHumanness: 5", "[Reasoning] It flows.\nHumanness: 2"],
)  # fmt: skip
def test_quoted_thought_marks_are_ignored(answer):
    assert main(answer) in (2, None)


LARGE = 30_000


@pytest.mark.parametrize(
    "unit",
    ["a", "\n", "1 ", "| 1 ", "[", "{", '{"a":', "humanness: ", "humanness: 4, ", "a. b: ", "Rationale: x\n", "1-2 ",
     "4 + ", "<think>", "</think>", '"</think>" ', "<|"],
)  # fmt: skip
def test_parsing_long_text_is_fast(unit):
    """Thirty thousand characters would take minutes if time were quadratic."""
    text = unit * (LARGE // len(unit))
    start = time.process_time()
    main(text)
    main(f"Humanness: 4\n{text}")
    main(f"Humanness: {text}", OVERALL)
    assert time.process_time() - start < 5


WORDS = "Humanness overall Rating Response Rationale final : - = | ( ) ** 1 3.5 4 7 1-5 /5 , . { } [ ] ٤ ½"
TEXTS = st.one_of(
    st.text(max_size=200),
    st.lists(st.sampled_from([*WORDS.split(), "\n", " "]), max_size=25).map(" ".join),
)


@settings(max_examples=200)
@given(TEXTS, st.sampled_from([*FORMS.values()]))
@example("(1", HUMAN)
@example("\n|1|\n|-|\n|1|", SIMPLE)
def test_any_text_gives_values_within_the_scale_or_a_failure(answer, form):
    main(answer, form)
