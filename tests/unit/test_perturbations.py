"""Perturbations: golden examples of the strategies, invariants, data sets of pairs, and commands."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comperdial import schema
from comperdial.cli import main
from comperdial.core.errors import SchemaError, UnknownNameError
from comperdial.data import wordnet
from comperdial.perturbations import PERTURBATIONS, Corpus, Dialogue, Line, Turn, generated, generator, perturb
from comperdial.perturbations.pronouns import replaced
from resulttables import write_rows

TEXTS_OF = {"d1": {"I like tea.", "Do you like tea?"}, "d2": {"We saw Oslo with Tessa in May.", "My boat is red."}}
RESPONSES = sorted({"I like tea.", *TEXTS_OF["d2"]})
CORPUS = Corpus(TEXTS_OF, RESPONSES, sorted({*RESPONSES, "Do you like tea?"}))
OFFLINE = [name for name in generated() if name != "paraphrase"]
TALK = (
    "Do you fish?",
    "Yes, I often fish in the big river.",
    "Lovely! Near Oslo?",
    "No. I drive for hours, to Bergen.",
)


def turned(name, text, history=("Do you like tea?",), seed=0):
    lines = tuple(Line("AB"[place % 2], said) for place, said in enumerate(history))
    return PERTURBATIONS[name].change(Turn("d1", lines, text), np.random.default_rng(seed), CORPUS)


def talk(texts, fixed=False):
    return Dialogue("d1", tuple(Line("UB"[k % 2], text, chatbot=k % 2 == 1) for k, text in enumerate(texts)), fixed)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("She likes dogs, and I do too.", "She doesn't like dogs, and I do too."),
        ("He has gone.", "He hasn't gone."),
        ("I had a cat.", "I didn't have a cat."),
        ("I went home. It was late!", "I didn't go home. It wasn't late!"),
        ("I’ve seen it.", "I haven't seen it."),
        ("i wo n't go .", "i will go ."),
        ("i cant swim", "i can swim"),
        ("If you like it, I will stay.", "If you like it, I won't stay."),
        ("Are you sure? I really enjoy it.", "Are you sure? I really don't enjoy it."),
        ("I read a lot.", "I don't read a lot."),
        ("I'd put it there.", "I wouldn't put it there."),
        ("Nice day!", "Nice day!"),
        # A second negation would contradict nothing.
        ("It's no secret, I left.", "It's a secret, I left."),
        ("I have nothing to say.", "I have something to say."),
        ("I've got no cats at all.", "I've got no cats at all."),
        ("I can hardly wait, but it is late.", "I can hardly wait, but it isn't late."),
    ],
)
def test_contradiction(text, expected):
    assert turned("contradiction", text) == expected


@pytest.mark.parametrize(
    ("targets", "text", "expected"),
    [
        ({"she": "it"}, "She's late, I saw her and her dog.", "It's late, I saw it and its dog."),
        ({"they": "it"}, "This is yours? Are they here?", "These are yours? Is it here?"),
        ({"i": "he"}, "i 've told my son", "he 's told his son"),
        ({"you": "i", "i": "you"}, "How are you? I'll help you.", "How am I? You'll help me."),
        ({"we": "i"}, "people in the us know us", "people in the us know me"),
        ({"she": "they"}, "She's tired, she's eaten, she's done it.", "They're tired, they've eaten, they've done it."),
    ],
)
def test_pronouns(targets, text, expected):
    assert replaced(text, targets, points=True) == expected
    assert turned("pronouns", "Nice weather!") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Sounds like an excellent idea.", "Sounds like an idea."),
        ("I saw a big owl.", "I saw an owl."),
        ("My back hurts.", "My back hurts."),
        ("The game ended too soon.", "The game ended soon."),
    ],
)
def test_content_reduction(text, expected):
    dialogue = talk(["Hi.", f"{text} " + "So it goes. " * 9])
    assert PERTURBATIONS["content_reduction"].change(dialogue, None, CORPUS) == ["Hi.", expected]
    assert PERTURBATIONS["content_reduction"].change(talk(["Hi.", "I see."]), None, CORPUS) is None


def test_entities():
    text = "We went to Paris in May with Tessa, 25 of us."
    found = [("Paris", "place"), ("May", "month"), ("Tessa", "name"), ("25", "number")]
    assert [(entity.text, entity.kind) for entity in CORPUS.entities(text)] == found
    for seed in range(5):
        new = turned("entities", text, seed=seed)
        assert new.startswith("We went to ") and not any(name in new for name, _ in found)
    assert turned("entities", "you may march") is None


WORDS = """
I you he she it they don't do n't 'm is are was not never like likes went dog dogs red 7 Paris rome May , . ? ! this
because if so the a " ( ) … 12:30 $ ' naïve 漢字 she's I'm you're can't won't REALLY
"""
TEXTS = st.lists(st.sampled_from(WORDS.split()), min_size=1, max_size=12).map(" ".join)


@pytest.mark.parametrize("name", OFFLINE)
@settings(max_examples=20, deadline=None)
@given(texts=st.lists(TEXTS, min_size=2, max_size=7), seed=st.integers(0, 2**32), fixed=st.booleans())
def test_any_text(name, texts, seed, fixed):
    of = PERTURBATIONS[name]
    item = talk(texts, fixed)
    if of.level == "turn":
        item = Turn("d1", item.lines[:-1], texts[-1])
    new, again = (of.change(item, generator(seed, name, "c", "s"), CORPUS) for _ in range(2))
    assert new == again
    if of.level == "turn":
        assert new is None or (new.strip() and new == new.strip())
    elif new is not None:
        assert len(new) == len(texts) and all(text.strip() for text in new)
        assert not fixed or new[::2] == texts[::2]
        assert name != "order_shuffle" or (sorted(new) == sorted(texts) and new != texts)


def cells_of(path):
    """Return the cells of a page's tables."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.strip("| \n").split(" | ") for line in lines if line.startswith("| ")]


def test_one_example_per_strategy(root, real_wordnet):
    cells = cells_of(root / "tests/fixtures/perturbations.md")
    examples = {row[0].strip("`"): row[1:] for row in cells if len(row) == 3 and row[0][0] == "`"}
    originals = {str(number): {original} for number, (original, _) in enumerate(examples.values())}
    texts = sorted(set().union(*originals.values()))
    corpus = Corpus(originals, texts, texts)
    talks = {row[0].strip("`"): row[1:] for row in cells if len(row) == 5}
    first = talks["original"]
    dialogue = Dialogue("example", tuple(Line("AB"[k % 2], text, k % 2 == 1) for k, text in enumerate(first)), False)
    for name in generated():
        change = PERTURBATIONS[name].change
        if PERTURBATIONS[name].level == "turn":
            original, expected = examples[name]
            turn = Turn("example", (Line("A", "Do you ever dress up for anything?"),), original)
            assert change(turn, generator(2024, name, original), corpus) == expected
        else:
            expected = [old if new == "(as it was)" else new for old, new in zip(first, talks[name], strict=True)]
            assert change(dialogue, generator(2024, name, first[1]), corpus) == expected


BOTS = {"bot-a": TALK[1::2], "bot-b": ("No, I don't like water.", "In Rome, with two cats in May.")}


def write(folder, *, own=True):
    """Write four dialogues of two systems (``own`` histories) or of these and a reference, whose histories they share."""
    contexts, responses, rated = {}, [], []
    for number, (system, texts) in itertools.product(range(4), (*BOTS.items(), ("gold", ("Gold says.", "More gold.")))):
        if own and system == "gold":
            continue
        dialogue = f"d{number}-{system if own else 'all'}"
        lines = [("U", TALK[0]), ("B", f"{texts[0]} {number}" if own else "Gold says."), ("U", TALK[2])]
        history = [{"speaker": speaker, "text": text} for speaker, text in lines]
        for turn in range(2):
            context, shown = f"{dialogue}-{turn}", history[: 2 * turn + 1]
            gold = [f"Gold {number} says {turn}."]
            contexts[context] = ("made", context, dialogue, turn, shown, gold, [f"fact {turn}"])
            responses.append(("made", context, system, f"{texts[turn]} {number}"))
            score = float(number**2 + (system == "bot-a"))
            rated.append(("made", "turn", context, system, "a", None, "Overall", score, 0.0, 10.0, "human"))
    kinds = {"bot-a": "agent", "bot-b": "human", "gold": "reference"}
    systems = [("made", system, kind, None, "") for system, kind in kinds.items()]
    write_rows(folder, contexts=contexts.values(), responses=responses, ratings=rated, systems=systems)
    return folder


def rows(made, pair, system):
    tables = made.tables["contexts"].merge(made.tables["responses"], on=["dataset", "context_id"])
    chosen = tables[(tables["dialogue_id"] == pair) & (tables["system_id"] == system)]
    return chosen.sort_values("turn").to_dict("records")


@pytest.mark.parametrize("own", [True, False])
def test_pairs(own, tmp_path):
    made = perturb(write(tmp_path, own=own), "made_perturbed", OFFLINE, 3, 7, good=False)
    for name, frame in made.tables.items():
        schema.validate(frame, name)
    assert {count.pairs for count in made.counts.values()} == {3}
    assert "gold" not in set(made.pairs["source_system_id"])
    for pair, name in zip(made.pairs["dialogue_id"], made.pairs["perturbation"], strict=True):
        old, new = rows(made, pair, "original"), rows(made, pair, "perturbed")
        assert len(old) == len(new) == (1 if PERTURBATIONS[name].level == "turn" else 2)
        assert [row["context_id"] for row in new] == [f"{pair}-perturbed-{row['turn']}" for row in new]
        assert any(
            a["response"] != b["response"] or a["history"] != b["history"] for a, b in zip(old, new, strict=True)
        )
        assert [row["facts"] for row in old] == [row["facts"] for row in new]
        # A reference is never on one side alone.
        assert [row["references"] for row in old] == [row["references"] for row in new]
        if not own:
            assert [row["history"] for row in old] == [row["history"] for row in new]
        elif len(new) > 1:
            # The perturbed dialogue has its own utterances in its histories.
            said = [[*(line["text"] for line in row["history"]), row["response"]] for row in new]
            assert said[1][:2] == said[0]


def test_good_originals_are_drawn(tmp_path):
    # Ratings: the square of the dialogue's number, one more for bot-a; the median is 3, the mean 4.
    made = perturb(write(tmp_path), "x", ["repetition", "duplication"], 100, 1)
    assert {name: count.items for name, count in made.counts.items()} == {"repetition": 8, "duplication": 4}
    assert set(made.pairs["source_dialogue_id"]) == {"d2-bot-a", "d2-bot-b", "d3-bot-a", "d3-bot-b"}
    assert perturb(tmp_path, "x", ["repetition"], 100, 1, good=False).counts["repetition"].items == 16


def test_faults_are_reported(tmp_path, capsys, monkeypatch):
    write(tmp_path, own=False)
    for name, message in (("pronoun", "pronouns"), ("self_contradiction", "unknown strategy")):
        with pytest.raises(UnknownNameError, match=message):
            perturb(tmp_path, "x", [name])
    command = ["perturb", str(tmp_path), "--dataset", "new", "--strategy", "paraphrase", "--output"]
    monkeypatch.setattr(wordnet, "locate", lambda: None)
    for output, message in ((tmp_path / "a", "WordNet is not on this machine"), (tmp_path, "holds the tables of made")):
        assert main([*command, str(output)]) == 1
        assert message in capsys.readouterr().err
    contexts = schema.read(tmp_path / "contexts.parquet", "contexts")
    schema.write(tmp_path / "contexts.parquet", contexts.iloc[1:], "contexts")
    with pytest.raises(SchemaError, match="'d0-all-0'"):
        perturb(tmp_path, "x", ["pronouns"])


def test_item_changes_depend_only_on_seed(tmp_path):
    write(tmp_path)

    def texts(*arguments):
        made = perturb(tmp_path, "x", *arguments)
        pairs = made.pairs[made.pairs["perturbation"] == "repetition"].set_index("dialogue_id")["source_context_id"]
        return {item: rows(made, pair, "perturbed")[0]["response"] for pair, item in pairs.items()}

    alone = texts(["repetition"], 3, 5)
    assert len(alone) == 3
    assert alone.items() <= texts(["pronouns", "repetition"], 6, 5).items()
    assert texts(["repetition"], 6, 5) != texts(["repetition"], 6, 6)
