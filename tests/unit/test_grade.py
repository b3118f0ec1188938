"""GRADE's form: one file of ratings, three files of lines a model."""

import json

import pytest

from comperdial.core.errors import SchemaError
from comperdial.data import readers

# Set, model, context, response, ratings; the first context is rated twice for one model.
RATED = [
    ("other_EVAL", "ranker", "hello .|||who is  it ?", "nobody .", "[1]"),
    ("mine_EVAL", "ranker", "hi .|||how are you ?", "fine .", "[3, 5, 1]"),
    ("mine_EVAL", "ranker", "tea ?|||no .", "why  not ?", "[2, 2]"),
    ("mine_EVAL", "ranker", "hi .|||how are you ?", "fine .", "[4, 4]"),
    ("mine_EVAL", "writer", "hi .|||how are you ?", "so so .", "[1, 2, 3]"),
]
REFERENCES = {"hi .|||how are you ?": "i am well .", "tea ?|||no .": "a pity ."}


def write(folder, rated=RATED, lines=RATED):
    entries = [
        {"ID": number, "Dataset": of, "DialogModel": model, "Context": said, "Response": text, "HumanScores": ratings}
        for number, (of, model, said, text, ratings) in enumerate(rated)
    ]
    files = {"ratings": folder / "ratings.json"}
    files["ratings"].write_text(json.dumps(entries))
    for model in ("ranker", "writer"):
        rows = [(said, text, REFERENCES[said]) for of, m, said, text, _ in lines if (of, m) == ("mine_EVAL", model)]
        for column, part in enumerate(("contexts", "responses", "references")):
            files[f"{model}_{part}"] = folder / f"{model}_{part}.txt"
            files[f"{model}_{part}"].write_text("".join(f"{row[column]}\n" for row in rows))
    return files


def test_texts_stay_as_they_are_and_every_rating_apart(tmp_path):
    tables = readers.read("grade", "mini", write(tmp_path))
    assert tables["systems"]["system_id"].tolist() == ["ranker", "writer"]
    contexts = tables["contexts"].set_index("context_id")
    assert contexts["dialogue_id"].to_dict() == {
        "mini-0000": "mini-0000",
        "mini-0001": "mini-0001",
        "mini-0000-2": "mini-0000",
    }
    assert contexts["references"]["mini-0001"] == ["a pity ."]
    assert contexts["history"]["mini-0000"] == [
        {"speaker": "B", "text": "hi ."},
        {"speaker": "A", "text": "how are you ?"},
    ]
    responses = tables["responses"].set_index(["context_id", "system_id"])["response"]
    assert responses["mini-0001", "ranker"] == "why  not ?"
    assert responses["mini-0000", "writer"] == "so so ."
    ratings = tables["ratings"].groupby(["item_id", "system_id"])["rating"].agg(list)
    assert ratings.to_dict() == {
        ("mini-0000", "ranker"): [3, 5, 1],
        ("mini-0000-2", "ranker"): [4, 4],
        ("mini-0001", "ranker"): [2, 2],
        ("mini-0000", "writer"): [1, 2, 3],
    }


def replaced(place, **fields):
    names = ("of", "model", "context", "response", "ratings")
    row = tuple(fields.get(name, value) for name, value in zip(names, RATED[place], strict=True))
    return [*RATED[:place], row, *RATED[place + 1 :]]


@pytest.mark.parametrize(
    "ratings", ["[3, 6]", "[]", "[3.5]", "3", "[1, 2", "__import__('os').getpid()", "[" * 9000, "[[1]]", "[11]"]
)
def test_ratings_that_are_no_list_of_ratings(tmp_path, ratings):
    with pytest.raises(SchemaError, match=r"ratings\.json, item 1: HumanScores is .*from 1 to 5"):
        readers.read("grade", "mini", write(tmp_path, replaced(1, ratings=ratings)))


@pytest.mark.parametrize(
    ("rated", "lines", "message"),
    [
        (replaced(2, response="why not ?"), RATED, r"ranker_responses.txt, line 2: the text is 'why  not \?'.*item 2"),
        (replaced(3, context="tea ?|||no ."), RATED, r"ranker_contexts.txt, line 3: .*item 3 has"),
        (RATED, RATED[:3] + RATED[4:], "ranker_contexts.txt: 2 lines; expected 3"),
        (replaced(4, response="other"), RATED, "no set in which the entries of 'writer' begin with"),
        ([], RATED, "no list of ratings"),
    ],
)
def test_files_that_do_not_belong_together(tmp_path, rated, lines, message):
    with pytest.raises(SchemaError, match=message):
        readers.read("grade", "mini", write(tmp_path, rated, lines))


def test_a_model_without_references(tmp_path):
    files = write(tmp_path)
    del files["writer_references"]
    with pytest.raises(SchemaError, match="expected ratings, and MODEL_contexts, MODEL_responses and MODEL_references"):
        readers.read("grade", "mini", files)
