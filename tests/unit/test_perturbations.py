"""Strategies one by one: golden examples by hand, and what must hold of any text."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comperdial.core.closure import code_digests
from comperdial.core.errors import ConfigError, MissingResourceError, UnknownNameError
from comperdial.data import wordnet
from comperdial.perturbations import (
    PERTURBATIONS,
    Dialogue,
    Line,
    Pool,
    Turn,
    TurnStrategy,
    create,
    generated,
    generator,
    make,
    modules,
    perturbation,
)
from comperdial.perturbations.strategies.paraphrase import rarest
from comperdial.perturbations.strategies.pronouns import rewritten
from comperdial.perturbations.text import join, split
from comperdial.schema.evaluated import DIMENSIONS

POOL = Pool(
    {"d1": ["I like tea."], "d2": ["We saw Oslo with Tessa in May.", "My boat is red."], "d3": ["He left on Friday."]},
    {"d1": ["Do you like tea?", "Hello."]},
)
TURNS = [name for name in generated() if PERTURBATIONS[name].level == "turn" and name != "paraphrase"]
DIALOGUES = [name for name in generated() if PERTURBATIONS[name].level == "dialogue"]


class Fixed:
    """A generator whose draws are given: the index of each choice, and shares."""

    def __init__(self, *draws):
        self.draws = list(draws)

    def integers(self, low, high=None):
        return self.draws.pop(0)

    def random(self):
        return self.draws.pop(0)


def turned(name, text, *draws, history=("Do you like tea?",), pool=POOL):
    lines = tuple(Line("AB"[place % 2], said) for place, said in enumerate(history))
    return create(name).change(Turn("d1", lines, text), pool, Fixed(*draws) if draws else np.random.default_rng(0))


def test_registry_has_the_paper_s_fourteen_and_four_recorded():
    assert sum(entry.paper for entry in PERTURBATIONS.values()) == 14
    assert len(PERTURBATIONS) == 18
    assert [n for n, p in PERTURBATIONS.items() if p.paper and n not in generated()] == ["self_contradiction"]
    assert perturbation("random_response").threshold == 0.3
    assert perturbation("dullness").dimensions == ("interestingness", "specificity")
    for name, entry in PERTURBATIONS.items():
        assert entry.name == name and entry.about
        if name in generated():
            assert isinstance(create(name), TurnStrategy) == (entry.level == "turn")


def test_unknown_names_are_named_with_the_nearest():
    with pytest.raises(UnknownNameError, match="'pronouns'"):
        create("pronoun")
    with pytest.raises(UnknownNameError, match="'dullness'"):
        perturbation("dulness")
    with pytest.raises(UnknownNameError, match="unknown strategy"):
        create("self_contradiction")


def test_modules_of_strategies_can_be_watched():
    assert modules(["dullness", "entities", "dullness"]) == [
        *("perturbations.strategies.dullness", "perturbations.strategies.entities"),
    ]
    assert modules() == modules(None) == [f"perturbations.strategies.{name}" for name in generated()]
    files = code_digests(*modules(["paraphrase"]), root=Path(__file__).parents[2] / "src")
    names = {Path(file).name for file in files}
    assert {"paraphrase.py", "text.py", "wordnet.py"} <= names and "dullness.py" not in names
    with pytest.raises(UnknownNameError, match="'dullness'"):
        modules(["dulness"])


def test_qualities_that_no_table_has_are_refused():
    entry = PERTURBATIONS["dullness"]
    with pytest.raises(ConfigError, match=r"'dullness' of level 'turn' aims at 'fluency'.*relevance.*informativeness"):
        dataclasses.replace(entry, dimensions=("specificity", "fluency"))
    with pytest.raises(ConfigError, match="aims at 'coherence'"):
        dataclasses.replace(entry, dimensions=("coherence",))
    with pytest.raises(ConfigError, match="aims at no quality"):
        dataclasses.replace(entry, dimensions=())
    with pytest.raises(ConfigError, match="level 'word'"):
        dataclasses.replace(entry, level="word")


def test_a_strategy_of_another_level_than_its_entry_s_is_refused(monkeypatch):
    wrong = dataclasses.replace(PERTURBATIONS["dullness"], level="dialogue", dimensions=("coherence",))
    monkeypatch.setattr(make, "perturbation", lambda name: wrong)
    with pytest.raises(ConfigError, match=r"'dullness': Dullness is a TurnStrategy; expected .*DialogueStrategy"):
        create("dullness")

    def two_classes(*_arguments, **_options):
        raise TypeError("x must define exactly one public subclass")

    monkeypatch.setattr(make, "load_class", two_classes)
    with pytest.raises(ConfigError, match="'dullness': x must define exactly one"):
        create("dullness")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I like dogs.", "I don't like dogs."),
        ("She likes dogs, and I do too.", "She doesn't like dogs, and I do too."),
        ("He has gone.", "He hasn't gone."),
        ("I had a cat.", "I didn't have a cat."),
        ("I had landed.", "I hadn't landed."),
        ("We tried it and stopped.", "We didn't try it and stopped."),
        ("I went home. It was late!", "I didn't go home. It wasn't late!"),
        ("The shops are open.", "The shops aren't open."),
        ("I'm tired.", "I'm not tired."),
        ("It's fine, I'll pay.", "It's not fine, I'll pay."),
        ("I'd love that.", "I wouldn't love that."),
        ("I’ve seen it.", "I haven't seen it."),
        ("I don't know.", "I do know."),
        ("We can't come.", "We can come."),
        ("i wo n't go .", "i will go ."),
        ("i 'll go .", "i wo n't go ."),
        ("i cant swim", "i can swim"),
        ("It is not far.", "It is far."),
        ("I've never been there.", "I've always been there."),
        ("If you like it, I will stay.", "If you like it, I won't stay."),
        ("Are you sure? I really enjoy it.", "Are you sure? I really don't enjoy it."),
        ("Let's see who it is.", "Let's see who it isn't."),
        # What is one form of a verb, several, or none.
        ("I dug it up.", "I didn't dig it up."),
        ("He read it.", "He didn't read it."),
        ("I read a lot.", "I don't read a lot."),
        ("I quit my job.", "I didn't quit my job."),
        ("I'd put it there.", "I wouldn't put it there."),
        ("She misses me.", "She doesn't miss me."),
        ("I homeschooled them.", "I didn't homeschool them."),
        ("I sure hope we can come.", "I sure hope we can't come."),
        ("We guys indeed.", "We guys indeed."),
        ("May I come in?", "May I come in?"),
        ("Nice day!", "Nice day!"),
        # A second negation would contradict nothing.
        ("There's no need.", "There's some need."),
        ("It's no secret, I left.", "It's a secret, I left."),
        ("He is no expert.", "He is an expert."),
        ("I have nothing to say.", "I have something to say."),
        ("I've got no cats at all.", "I've got no cats at all."),
        ("I've got no cats.", "I've got some cats."),
        ("They are no heroes.", "They are heroes."),
        ("Nobody is here.", "Somebody is here."),
        ("no one is here", "someone is here"),
        ("Nothing.", "Nothing."),
        ("It's nothing bad.", "It's something bad."),
        ("Nothing wrong with that, I like it.", "Nothing wrong with that, I don't like it."),
        ("There is none left.", "There is some left."),
        ("We went nowhere.", "We went somewhere."),
        ("I think I never saw it.", "I think I always saw it."),
        ("If nothing happens, I stay.", "If nothing happens, I don't stay."),
        ("No, I like it.", "No, I don't like it."),
        ("No I like it.", "No I don't like it."),
        ("It was no longer fun.", "It was no longer fun."),
        ("The answer is no.", "The answer is no."),
        ("I can hardly wait.", "I can hardly wait."),
        ("I can hardly wait, but it is late.", "I can hardly wait, but it isn't late."),
        ("We are neither rich nor poor.", "We are neither rich nor poor."),
        ("I read nothing but books.", "I read nothing but books."),
    ],
)
def test_contradiction(text, expected):
    assert turned("contradiction", text) == expected


@pytest.mark.parametrize(
    ("targets", "text", "expected"),
    [
        ({"she": "it"}, "She's late, I saw her and her dog.", "It's late, I saw it and its dog."),
        ({"he": "they", "it": "he"}, "He doesn't know. It was his.", "They don't know. He was theirs."),
        ({"i": "we", "it": "they"}, "I'm sure it has my name.", "We're sure they have our name."),
        ({"they": "it"}, "This is yours? Are they here?", "These are yours? Is it here?"),
        ({"i": "you"}, "I wasn't there, ask me yourself.", "You weren't there, ask you yourself."),
        ({"you": "i"}, "You aren't late.", "I am not late."),
        ({"i": "he"}, "i 've told my son", "he 's told his son"),
        ({"you": "i", "i": "you"}, "How are you? I'll help you.", "How am I? You'll help me."),
        ({"we": "i"}, "people in the us know us", "people in the us know me"),
        ({"she": "they"}, "She's tired, she's eaten, she's done it.", "They're tired, they've eaten, they've done it."),
        ({"he": "she"}, "HE said it's his, not mine.", "SHE said it's hers, not mine."),
    ],
)
def test_pronouns(targets, text, expected):
    assert rewritten(text, targets, points=True) == expected


def test_pronouns_need_some():
    assert turned("pronouns", "Nice weather!") is None
    assert turned("pronouns", "I fish.", 1, *[1] * 7) in {"You fish.", "He fish.", "We fish."}


def test_entities():
    text = "We went to Paris in May with Tessa, 25 of us."
    assert [(e.text, e.kind) for e in POOL.finder.find(text)] == [
        ("Paris", "place"),
        ("May", "month"),
        ("Tessa", "name"),
        ("25", "number"),
    ]
    new = turned("entities", text, 0.9, *[2] * 20)
    assert new.startswith("We went to ") and "Paris" not in new and "Tessa" not in new and " 25 " not in new
    assert [p.gap for p in split(new)][-4:] == [p.gap for p in split(text)][-4:]
    assert turned("entities", "i met anna in rome", 0.9, 0, 0) == "i met alice in africa"
    # Of the same kind twice the same; a number never becomes a name.
    assert turned("entities", "7 of 7", 0.1, 3) == "3 of 3"
    assert turned("entities", "you may march") is None
    assert turned("entities", "I read u2 and the 1st") is None


def test_repetition():
    # The start, the most words, how often.
    assert turned("repetition", "I like red wine, you know.", 2, 2, 2) == "I like red wine red wine red wine, you know."
    assert turned("repetition", "Yes!", 0, 1, 3) == "Yes yes yes yes!"
    assert turned("repetition", "i do n't know .", 1, 1, 2) == "i do n't do n't do n't know ."
    assert turned("repetition", "1 + 1") is None


def test_dullness_and_random_response():
    history = ("Hi.", "I fish.", "Do you like it?")
    assert turned("dullness", "i love it .", 0.9, 1, history=history) == "maybe ."
    assert turned("dullness", "It is great.", 0, history=("Nice.",)) == "I see."
    lines = ("I fish.", "So?")
    assert turned("dullness", "It is great.", 0.1, 0, history=lines) == "I fish."
    assert turned("random_response", "It is great.", 0.1, 1, history=lines) == "So?"
    # "I like tea." is of this dialogue.
    assert turned("random_response", "Yes.", 0.9, 1, 2) == "My boat is red."


@pytest.mark.parametrize(
    ("word", "synonym"),
    [
        *(("dreamed", "stargazed"), ("years", "twelvemonths"), ("helps", "assists"), ("tables", None)),
        *(("know", "cognise"), ("sports", "athletics"), ("animals", "brutes"), ("older", None)),
    ],
)
def test_rarest_synonym(real_wordnet, word, synonym):
    assert rarest(word) == synonym


def test_paraphrase(real_wordnet):
    assert turned("paraphrase", "He was a teacher.", 0.1, pool=POOL) == "He was an instructor."
    assert turned("paraphrase", "Do you know?", 0.1) == "Do you cognise?"
    assert turned("paraphrase", "who are you") is None


def test_paraphrase_needs_wordnet(monkeypatch):
    monkeypatch.setattr(wordnet, "locate", lambda: None)
    with pytest.raises(MissingResourceError, match="WordNet"):
        create("paraphrase").prepare()


def talk(*texts, fixed=False):
    lines = tuple(Line("UB"[place % 2], text, chatbot=place % 2 == 1) for place, text in enumerate(texts))
    return Dialogue("d1", lines, fixed)


TALK = (
    "Do you fish?",
    "Yes, I often fish in the big river.",
    "Lovely! Near Oslo?",
    "No. I drive for hours, to Bergen.",
)


def test_content_reduction():
    assert create("content_reduction").change(talk(*TALK), POOL, np.random.default_rng(0)) == [
        *("Do you fish?", "Yes, I often fish.", "Lovely! Near Oslo?", "I drive for hours."),
    ]
    assert create("content_reduction").change(talk("Hi.", "I see."), POOL, np.random.default_rng(0)) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Sounds like an excellent idea.", "Sounds like an idea."),
        ("It was a really early start!", "It was an early start."),
        ("I saw a big owl.", "I saw an owl."),
        ("My left foot hurts.", "My foot hurts."),
        ("My back hurts.", "My back hurts."),
        ("The game ended too soon.", "The game ended soon."),
        ("I read a few books.", "I read a few books."),
    ],
)
def test_what_content_reduction_leaves_out(text, expected):
    reduced = create("content_reduction").change(talk("Hi.", f"{text} " + "So it goes. " * 9), POOL, Fixed())
    assert reduced == ["Hi.", expected]


def test_repeating_others_quotes_and_duplication_appends():
    new = create("repeating_others").change(talk(*TALK), POOL, Fixed(0, 0, 1, 4))
    assert new[1] == 'You said "Do you fish". Yes, I often fish in the big river.'
    assert new[3] == 'As you said, "Near Oslo". No. I drive for hours, to Bergen.'

    class Half:
        def uniform(self, low, high):
            return 0.5

    assert create("duplication").change(talk(*TALK), POOL, Half())[1] == (
        "Yes, I often fish in the big river. in the big river."
    )


def test_fixed_histories_keep_what_others_say():
    for name in DIALOGUES:
        new = create(name).change(talk(*TALK, fixed=True), POOL, np.random.default_rng(3))
        assert [new[0], new[2]] == [TALK[0], TALK[2]], name


VOCABULARY = """
I you he she it they don't do n't 'm is are was not never like likes went dog dogs red 7 Paris rome May , . ? ! this
because if so the a " ( ) … 12:30 $ ' naïve 漢字 she's I'm you're can't won't REALLY
"""
WORDS = st.sampled_from(VOCABULARY.split())
TEXTS = st.lists(WORDS, min_size=1, max_size=12).map(" ".join)
SEEDS = st.integers(0, 2**32)


@pytest.mark.parametrize("name", TURNS)
@settings(max_examples=40, deadline=None)
@given(text=TEXTS, seed=SEEDS)
def test_any_turn(name, text, seed):
    turn = Turn("d1", (Line("A", "Hello."), Line("B", "Do you like tea?")), text)
    new, again = (create(name).change(turn, POOL, generator(seed, name, "c", "s")) for _ in range(2))
    assert new == again
    assert new is None or (new.strip() and new == new.strip() and "  " not in new)


@pytest.mark.parametrize("name", DIALOGUES)
@settings(max_examples=25, deadline=None)
@given(texts=st.lists(TEXTS, min_size=2, max_size=7), seed=SEEDS, fixed=st.booleans())
def test_any_dialogue(name, texts, seed, fixed):
    dialogue = talk(*texts, fixed=fixed)
    new, again = (create(name).change(dialogue, POOL, generator(seed, name, "d", "s")) for _ in range(2))
    assert new == again
    if new is not None:
        assert len(new) == len(texts) and all(text.strip() for text in new)
        if name == "order_shuffle":
            assert sorted(new) == sorted(texts) and new != texts
        if name == "utterance_replacement":
            assert sum(a != b for a, b in zip(new, texts, strict=True)) == 1


@settings(deadline=None)
@given(st.text())
def test_pieces_are_lossless(text):
    assert join(split(text)) == text.strip()


def test_examples_of_the_page_are_what_the_code_makes(real_wordnet):
    page = Path(__file__, "../../../docs/perturbations.md").resolve().read_text(encoding="utf-8")
    cells = [line.strip("| \n").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    examples = {row[0].strip("`"): row[1:] for row in cells if len(row) == 3 and row[0][0] == "`"}
    assert list(examples) == [name for name in generated() if PERTURBATIONS[name].level == "turn"]
    pool = Pool({str(number): [original] for number, (original, _) in enumerate(examples.values())})
    for name, (original, perturbed) in examples.items():
        turn = Turn("example", (Line("A", "Do you ever dress up for anything?"),), original)
        assert create(name).change(turn, pool, generator(2024, name, original)) == perturbed
    talks = {row[0].strip("`"): row[1:] for row in cells if len(row) == 5}
    first = talks["original"]
    dialogue = Dialogue("example", tuple(Line("AB"[k % 2], text, k % 2 == 1) for k, text in enumerate(first)), False)
    for name in DIALOGUES:
        shown = [old if new == "(as it was)" else new for old, new in zip(first, talks[name], strict=True)]
        assert create(name).change(dialogue, pool, generator(2024, name, first[1])) == shown
    rules = [row[0].strip("`") for row in cells if len(row) == 2 and row[0][0] == "`"]
    assert rules == list(generated())
    qualities = {row[0]: tuple(row[1].split(", ")) for row in cells if len(row) == 2 and row[0] in DIMENSIONS}
    assert qualities == dict(DIMENSIONS)
