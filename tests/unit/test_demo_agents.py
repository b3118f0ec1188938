"""The simulated agents of the embedded benchmark: a whole roster, reproducible answers, parameters that work."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml

from comperdial.challenge.agent import MAX_BATCH, Agent, ApiAgent, Conversation, takes_api_responses
from comperdial.challenge.agents import create, kinds
from comperdial.core.errors import ComperdialError, ConfigError, FileError, UnknownNameError

ROOT = Path(__file__).resolve().parents[2]
ROSTER = yaml.safe_load((ROOT / "data/demo/agents.yaml").read_text(encoding="utf-8"))["agents"]
CORPUS = "data/demo/corpus.jsonl"
PAIRS = [json.loads(line) for line in (ROOT / CORPUS).read_text(encoding="utf-8").splitlines()]

PERSONA = [
    "my name is Kristy.",
    "i'm 25 years old.",
    "my sister is living in the usa.",
    "i am a bodyguard.",
    "i served in the military in the past.",
    "my character trait: strength.",
    "i regularly or consistently have a black belt in karate.",
    "i have lived in three countries.. in the past..",
    "i intend to protect my clients in the future.",
]
TALK = [
    "hello! how are you today?",
    "hi, i'm fine. my name is kristy.",
    "nice! i just came back from work. what do you do for a living?",
    "i am a bodyguard, so i look after people.",
    "that sounds dangerous. do you have any plans for the future?",
]
# The fragments of texts by which a test can tell where an answer comes from.
WRITTEN = "straight from the bank"
# Bases of the wrapping kinds: one that always says the same, and two that hang on the context alone or nearly so.
PLAIN = {"base": "generic", "options": {"variety": 1, "seed": 0}}
TEMPLATE = {"base": "persona_template", "options": {"relevance": 1.0, "question": 0.0, "seed": 7}}
RETRIEVAL = {"base": "retrieval", "options": {"corpus": CORPUS, "seed": 7}}


def conversation(*texts: str, persona: list[str] = PERSONA) -> Conversation:
    dialogue = [{"persona_id": "AB"[i % 2], "text": text} for i, text in enumerate(texts)]
    return {"persona B": persona, "dialogue": dialogue}


THREE = [conversation(*TALK[:n]) for n in (1, 3, 5)]
# A hundred different contexts, so that a probability shows as a share.
MANY = [conversation(*TALK[:4], pair["context"]) for pair in PAIRS[::3][:100]]


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths in options are relative to the repository root."""
    monkeypatch.chdir(ROOT)


@pytest.fixture(scope="session")
def bank(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A response bank that knows the contexts of this file, in both styles."""
    path = tmp_path_factory.mktemp("bank") / "bank.jsonl"
    utterances = {talk["dialogue"][-1]["text"] for talk in (*THREE, *MANY)}
    records = [
        # Written otherwise than it is said, to show that the look-up normalises.
        {"last_utterance": f" {text.upper()} ", "style": style, "response": f"{WRITTEN}, {style}."}
        for text in sorted(utterances)
        for style in ("concise", "verbose")
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return str(path)


def with_bank(options: dict[str, object], bank: str) -> dict[str, object]:
    """Return the options with every response bank replaced, also that of an agent inside."""
    found = {key: with_bank(value, bank) if isinstance(value, dict) else value for key, value in options.items()}
    return {**found, "bank": bank} if "bank" in found else found


def answers(agent: Agent, conversations: list[Conversation]) -> list[str]:
    """Return the final responses; to an agent of the API track the model always gives the same texts."""
    if not takes_api_responses(agent):
        return agent.generate_responses(conversations)
    assert isinstance(agent, ApiAgent)
    texts = ["i am a bodyguard, and you?", "  \n", "only\n two\tlines"][: len(conversations)]
    turn = agent.generate_responses(conversations, None)
    for _ in range(2):
        assert turn["use_api"] and len(turn["prompts"]) == len(turn["max_generated_tokens"]) == len(conversations)
        turn = agent.generate_responses(conversations, texts)
        if not turn["use_api"]:
            break
    return turn["final_responses"]


def test_the_roster_holds_97_different_agents() -> None:
    assert len(ROSTER) == 97
    assert len({entry["id"] for entry in ROSTER}) == 97
    assert len({entry["options"]["seed"] for entry in ROSTER}) == 97
    assert len({json.dumps([e["kind"], {**e["options"], "seed": 0}]) for e in ROSTER}) == 97
    assert {entry["kind"] for entry in ROSTER} == set(kinds())


@pytest.mark.parametrize("entry", ROSTER, ids=lambda entry: entry["id"])
def test_a_roster_entry_answers(entry: dict, bank: str) -> None:
    assert set(entry) == {"id", "kind", "track", "skill", "description", "options"}
    assert re.fullmatch(r"[a-z0-9-]+", entry["id"])
    assert entry["description"].strip() and 0 <= entry["skill"] <= 1
    options = with_bank(entry["options"], bank)
    agent = create(entry["kind"], **options)
    assert entry["track"] == ("api" if takes_api_responses(agent) else "gpu")
    found = answers(agent, THREE)
    assert len(found) == 3
    for text in found:
        assert text.strip() == text != ""
        assert text == text.lower() and "\n" not in text and "{" not in text
    # The same seed gives the same answers, in a new agent as in a used one.
    assert answers(agent, THREE) == found == answers(create(entry["kind"], **options), THREE)
    if entry["track"] == "gpu":
        assert agent.generate_responses(THREE[::-1]) == found[::-1]
        assert [agent.generate_responses([talk])[0] for talk in THREE] == found


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("retrieval", {"corpus": CORPUS, "share": 0.5}),
        ("retrieval", {"corpus": CORPUS, "noise": 0.5}),
        ("persona_template", {}),
        ("ngram", {"corpus": CORPUS}),
        ("rules", {"rules": 0.5}),
        ("generic", {}),
        ("echo", {"share": 0.3}),
        ("contradicting", TEMPLATE),
        ("shuffling", TEMPLATE),
        ("forgetful", TEMPLATE),
        ("offtopic", {**TEMPLATE, "corpus": CORPUS}),
        ("truncating", {"base": "persona_template"}),  # through the seed of the agent inside
    ],
)
def test_another_seed_gives_other_answers(kind: str, options: dict) -> None:
    one, two = (create(kind, **options, seed=seed).generate_responses(MANY) for seed in (1001, 1002))
    assert one != two


@pytest.mark.parametrize("kind", kinds())
def test_an_answer_is_never_empty(kind: str, bank: str) -> None:
    """Not even without a persona, a word or an earlier utterance."""
    options = next(e["options"] for e in ROSTER if e["kind"] == kind)
    agent = create(kind, **with_bank(options, bank))
    odd = [
        conversation("?!", persona=[]),
        conversation("{said} %s", persona=["...", "i."]),
        conversation("", persona=[]),
    ]
    assert all(text.strip() for text in answers(agent, odd))


# --- what each parameter moves ---------------------------------------------------------------------------------------


def share_of(test: Callable[[str], object]) -> Callable[[list[str]], float]:
    return lambda found: float(np.mean([bool(test(text)) for text in found]))


def own_response(found: list[str]) -> float:
    """How often the corpus' own response to the context was found."""
    own = {pair["context"]: pair["response"] for pair in PAIRS}
    return float(np.mean([own[c["dialogue"][-1]["text"]] == text for c, text in zip(MANY, found, strict=True)]))


def mean_words(found: list[str]) -> float:
    return float(np.mean([len(text.split()) for text in found]))


def different(found: list[str]) -> float:
    return len(set(found))


def tokens(text: str) -> list[str]:
    return re.findall(r"[\w']+|[^\w\s]", text)


def known_trigrams(found: list[str]) -> float:
    """Share of the three-token stretches that stand in the corpus."""
    seen = {gram for pair in PAIRS for gram in zip(*(tokens(pair["response"])[i:] for i in range(3)), strict=False)}
    grams = [gram for text in found for gram in zip(*(tokens(text)[i:] for i in range(3)), strict=False)]
    return float(np.mean([gram in seen for gram in grams]))


def in_base_order(found: list[str]) -> float:
    base = create("persona_template", relevance=1.0, question=0.0, seed=7).generate_responses(MANY)
    pairs = [(a, b) for x, y in zip(base, found, strict=True) for a, b in zip(x.split(), y.split(), strict=True)]
    return float(np.mean([a == b for a, b in pairs]))


def as_base(base: dict) -> Callable[[list[str]], float]:
    """Return how often the answer is the base's own."""

    def share(found: list[str]) -> float:
        expected = create(base["base"], **base["options"]).generate_responses(MANY)
        return float(np.mean([a == b for a, b in zip(expected, found, strict=True)]))

    return share


JOB = [conversation("hi.", f"hello, {word}.", "what do you do for a living?") for word in string.ascii_lowercase]
DENIAL = re.compile(r"\b(not|never|don't|can't)\b")

# kind, parameter, other options, (low, high) values, what is measured, bounds of it at low, bounds of it at high
EFFECTS = [
    ("scripted", "strength", {"bank": "BANK"}, (0.0, 1.0), share_of(lambda t: WRITTEN in t), (0, 0), (1, 1)),
    ("scripted", "strength", {"bank": "BANK"}, (0.3, 0.7), share_of(lambda t: WRITTEN in t), (0.1, 0.5), (0.5, 0.9)),
    ("scripted", "style", {"bank": "BANK", "strength": 1.0}, ("concise", "verbose"), share_of(lambda t: "verbose" in t),
     (0, 0), (1, 1)),
    ("retrieval", "noise", {"corpus": CORPUS}, (0.0, 1.0), own_response, (0.99, 1), (0, 0.05)),
    ("retrieval", "noise", {"corpus": CORPUS, "scoring": "tfidf"}, (0.0, 1.0), own_response, (0.99, 1), (0, 0.05)),
    ("retrieval", "share", {"corpus": CORPUS}, (0.2, 0.8), own_response, (0.1, 0.3), (0.7, 0.9)),
    ("retrieval", "window", {"corpus": CORPUS}, (1, 5), own_response, (0.99, 1), (0, 0.9)),
    ("persona_template", "question", {}, (0.0, 1.0), share_of(lambda t: t.endswith("?")), (0, 0), (0.95, 1)),
    ("ngram", "order", {"corpus": CORPUS}, (1, 2), known_trigrams, (0, 0.1), (0.1, 0.8)),
    ("ngram", "order", {"corpus": CORPUS}, (2, 4), known_trigrams, (0.1, 0.8), (0.85, 1)),
    ("ngram", "temperature", {"corpus": CORPUS, "order": 2}, (0.2, 5.0), different, (1, 90), (95, 100)),
    ("rules", "rules", {}, (0.0, 1.0), different, (2, 4), (25, 100)),
    ("rules", "rules", {}, (0.2, 0.8), different, (4, 40), (20, 100)),
    ("generic", "variety", {}, (1, 10), different, (1, 1), (10, 10)),
    ("echo", "share", {}, (0.0, 1.0), mean_words, (1, 1), (5, 9)),
    ("contradicting", "rate", TEMPLATE, (0.0, 1.0), as_base(TEMPLATE), (1, 1), (0, 0)),
    ("contradicting", "rate", RETRIEVAL, (0.0, 1.0), share_of(DENIAL.search), (0, 0.3), (0.95, 1)),
    ("truncating", "keep", PLAIN, (0.0, 1.0), mean_words, (1, 1), (2, 12)),
    ("truncating", "keep", TEMPLATE, (0.5, 1.0), as_base(TEMPLATE), (0, 0), (1, 1)),
    ("verbose", "sentences", TEMPLATE, (0, 4), mean_words, (6, 15), (25, 60)),
    ("shuffling", "rate", TEMPLATE, (0.0, 1.0), in_base_order, (1, 1), (0, 0.3)),
    ("shuffling", "rate", TEMPLATE, (0.1, 0.5), in_base_order, (0.7, 0.95), (0.2, 0.6)),
    ("forgetful", "rate", TEMPLATE, (0.0, 1.0), as_base(TEMPLATE), (1, 1), (0, 0.1)),
    ("forgetful", "rate", TEMPLATE, (0.2, 0.8), as_base(TEMPLATE), (0.65, 0.95), (0.05, 0.4)),
    ("offtopic", "rate", {**RETRIEVAL, "corpus": CORPUS}, (0.0, 1.0), as_base(RETRIEVAL), (1, 1), (0, 0.1)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "parameter", "others", "values", "measure", "low", "high"),
    EFFECTS,
    ids=[f"{row[0]}-{row[1]}-{row[3]}" for row in EFFECTS],
)
def test_a_parameter_moves_what_it_should(kind, parameter, others, values, measure, low, high, bank) -> None:
    for value, (least, most) in zip(values, (low, high), strict=True):
        agent = create(kind, **with_bank({**others, parameter: value, "seed": 5}, bank))
        assert least <= measure(agent.generate_responses(MANY)) <= most, f"{parameter}={value}"


def test_every_kind_has_an_effect_that_is_checked() -> None:
    assert {row[0] for row in EFFECTS} | {"prompted"} == set(kinds())


def test_relevance_chooses_the_sentence_that_was_asked_for() -> None:
    on_the_job = {
        relevance: np.mean(
            [
                "bodyguard" in text
                for text in create("persona_template", relevance=relevance, seed=3).generate_responses(JOB)
            ]
        )
        for relevance in (0.0, 1.0)
    }
    assert on_the_job[1.0] == 1 and on_the_job[0.0] < 0.4


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("do you have any siblings?", "my sister is living in the usa"),
        ("what are your plans?", "i'm planning to protect my clients"),
        ("how old are you?", "i'm 25 years old"),
        ("hey! nice to meet you.", "i'm kristy"),
        ("have you ever lived in other countries?", "i have lived in three countries"),
        ("do you know karate?", "i have a black belt in karate"),
    ],
)
def test_a_persona_sentence_is_found_and_said_as_a_person_would(asked: str, told: str) -> None:
    answer = create("persona_template", relevance=1.0, seed=1).generate_responses([conversation(asked)])[0]
    assert told in answer
    assert "regularly or consistently" not in answer and "in the past" not in answer and ".." not in answer


def test_a_context_outside_the_bank_gets_the_persona(bank: str) -> None:
    unknown = conversation("so, what is your opinion of lighthouses?")
    agent = create("scripted", bank=bank, strength=1.0)
    answer = agent.generate_responses([unknown])[0]
    assert WRITTEN not in answer
    assert WRITTEN in agent.generate_responses(THREE[:1])[0]


def test_a_forgetful_agent_repeats_itself() -> None:
    agent = create("forgetful", rate=1.0, **TEMPLATE, seed=2)
    inside = create("persona_template", **TEMPLATE["options"])
    earlier = set(inside.generate_responses(THREE[:2]))
    repeated = np.mean([text in earlier for text in agent.generate_responses(MANY)])
    assert 0.3 < repeated < 0.7


def test_a_wrapping_agent_and_its_base_draw_apart() -> None:
    """With one random stream for both, a base that fails on a conversation would always be spoilt there too."""
    wrapper = create("contradicting", base="persona_template", rate=0.5, options={"relevance": 0.5}, seed=4)
    draws = [(wrapper.rng(talk).random() < 0.5, wrapper.base.rng(talk).random() < 0.5) for talk in MANY]
    assert abs(np.corrcoef(np.array(draws).T)[0, 1]) < 0.3


def test_a_wrapping_agent_can_wrap_another() -> None:
    inside = {"base": "truncating", "options": {"keep": 0.5, **PLAIN}}
    once, twice = create("truncating", keep=0.5, **PLAIN), create("truncating", keep=0.5, **inside)
    assert mean_words(twice.generate_responses(THREE)) < mean_words(once.generate_responses(THREE))


# --- the API track ---------------------------------------------------------------------------------------------------


def test_a_prompted_agent_sends_persona_and_history() -> None:
    agent = create("prompted", max_generated_tokens=33)
    turn = agent.generate_responses(THREE, None)
    assert turn["max_generated_tokens"] == [33, 33, 33] and turn["final_responses"] == []
    system, *history = turn["prompts"][2]
    assert system["role"] == "system" and all(sentence in system["content"] for sentence in PERSONA)
    assert [message["content"] for message in history] == TALK
    assert [message["role"] for message in history] == ["user", "assistant", "user", "assistant", "user"]


@pytest.mark.parametrize(("window", "sent"), [(None, 5), (1, 1), (3, 3), (9, 5)])
def test_a_prompted_agent_trims_the_history(window: int | None, sent: int) -> None:
    turn = create("prompted", window=window).generate_responses(THREE, None)
    assert [message["content"] for message in turn["prompts"][2][1:]] == TALK[-sent:]


def test_a_prompted_agent_revises_its_draft_and_starts_again_on_the_next_turn() -> None:
    agent = create("prompted", calls=2)
    for talk in THREE[:2]:
        assert agent.generate_responses([talk], None)["use_api"]
        second = agent.generate_responses([talk], ["a draft"])
        assert second["use_api"]
        assert {"role": "assistant", "content": "a draft"} in second["prompts"][0]
        assert second["prompts"][0][-1]["role"] == "user"
        last = agent.generate_responses([talk], ["  Better\nnow. "])
        assert not last["use_api"] and last["final_responses"] == ["Better now."]


@pytest.mark.parametrize("entry", [e for e in ROSTER if e["kind"] == "prompted"], ids=lambda e: e["id"])
def test_a_prompted_entry_keeps_to_the_challenge_limits(entry: dict) -> None:
    """At most 2 calls an utterance and 1,000 tokens of output a dialogue of 7 turns; a batch holds up to 50."""
    agent = create(entry["kind"], **entry["options"])
    assert agent.calls * agent.max_generated_tokens * 7 <= 1000
    assert len(agent.generate_responses([THREE[0]] * MAX_BATCH, None)["prompts"]) == MAX_BATCH


# --- mistakes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", kinds())
def test_an_unknown_option_names_itself_the_kind_and_what_there_is(kind: str) -> None:
    with pytest.raises(ConfigError) as caught:
        create(kind, sed=3)
    assert all(f"{name!r}" in str(caught.value) for name in ("sed", kind, "seed"))
    options = next(e["options"] for e in ROSTER if e["kind"] == kind)
    assert all(name in caught.value.expected for name in options)


WRONG = [
    ("retrieval", {}, ConfigError, "'corpus'"),
    ("echo", {"share": 1.5}, ConfigError, "'share' of agent kind 'echo' is 1.5; expected a number from 0 to 1"),
    ("echo", {"share": True}, ConfigError, "'share'"),
    ("echo", {"seed": -1}, ConfigError, "'seed'"),
    ("generic", {"variety": 99}, ConfigError, "a whole number from 1 to 24"),
    ("verbose", {"base": "generic", "sentences": 1.5}, ConfigError, "a whole number from 0 up"),
    ("ngram", {"corpus": CORPUS, "temperature": 0}, ConfigError, "a number above 0"),
    ("retrieval", {"corpus": CORPUS, "scoring": "bm26"}, ConfigError, "one of bm25, tfidf"),
    ("truncating", {"base": "ecko"}, UnknownNameError, "'echo'"),
    ("truncating", {"base": "echo", "options": {"shar": 1}}, UnknownNameError, "'shar'"),
    ("truncating", {"base": "echo", "options": [1]}, ConfigError, "a mapping"),
    ("truncating", {"base": "prompted"}, ConfigError, "API track"),
    ("retrieval", {"corpus": "no/such/file.jsonl"}, FileError, "no/such/file.jsonl"),
    ("no-such-kind", {}, UnknownNameError, "agent kind"),
]


@pytest.mark.parametrize(("kind", "options", "error", "said"), WRONG, ids=[f"{r[0]}-{i}" for i, r in enumerate(WRONG)])
def test_a_mistake_is_named(kind: str, options: dict, error: type[ComperdialError], said: str) -> None:
    with pytest.raises(error) as caught:
        create(kind, **options)
    assert said in str(caught.value)


@pytest.mark.parametrize("line", ["{", "[]", '{"context": "hi."}', '{"context": "hi.", "response": " "}'])
def test_a_broken_corpus_is_named_by_line(line: str, tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text(f"{json.dumps(PAIRS[0])}\n\n{line}\n", encoding="utf-8")
    with pytest.raises(FileError, match=r"corpus\.jsonl, line 3"):
        create("retrieval", corpus=str(path))


def test_the_corpus_is_as_it_says() -> None:
    assert 300 <= len(PAIRS) <= 350
    assert len({pair["context"] for pair in PAIRS}) == len({pair["response"] for pair in PAIRS}) == len(PAIRS)
    for pair in PAIRS:
        assert set(pair) == {"context", "response"} and 4 <= len(pair["response"].split()) <= 25
        assert pair["context"] + pair["response"] == (pair["context"] + pair["response"]).lower()
