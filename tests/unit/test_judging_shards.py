"""Judging in shards: any number of them gives the same bytes, asks each request once, and fails alone. And dialogues."""

import dataclasses
import json
from collections import Counter

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from comperdial import schema
from comperdial.cli import main
from comperdial.core.errors import ComperdialError, SchemaError
from comperdial.core.sharding import WHOLE, Shard
from comperdial.judges.base import JudgeError
from comperdial.judges.items import items_of
from comperdial.judges.ledger import Ledger
from comperdial.judges.scores import merge_judged, write_judged
from comperdial.judges.services.rules import Rules, respond
from comperdial.judges.tasks import family_of, read_judging
from minijudging import count_requests, judged, write_tables

VARIANTS = {
    "turn": {"prompt": "explicit_turn", "fields": ["history", "response"], "dimensions": ["relevance", "overall"]},
    "ref": {
        "prompt": "cpds_detail_ref", "fields": ["history", "fact", "reference", "response"],
        "dimensions": ["humanness"],
    },
    "whole": {"prompt": "explicit_dialogue", "fields": ["dialogue"], "dimensions": ["coherence", "overall"]},
    "after": {
        "prompt": "cpds_dialogue", "fields": ["turn_scores", "responses"], "turns": "turn",
        "dimensions": ["final score"],
    },
}  # fmt: skip
SYSTEMS = ("one", "two", "three", "gold")


def sections(ledger):
    judging = {"judges": {"default": ["rules"]}, "variants": VARIANTS, "ledger": str(ledger)}
    return {"judges": {"rules": {"service": "rules"}}, "judging": judging}


def read(ledger):
    return read_judging(*sections(ledger).values())


def task_of(judging, name):
    return judging.tasks("mine")[f"{name}_rules"]


def dialogues(folder, count, turns, said, order=lambda number: f"c{number:02}"):
    """Write dialogues that each system answers at each turn; ``said`` returns None where it did not."""
    return write_tables(
        folder,
        [
            {
                "dialogue": f"d{d}", "turn": t, "context": order(d * turns + t),
                "history": [f"{'AB'[n % 2]}: Do you like the sea, {d}-{n}?" for n in range(t + 1)],
                "references": ["I love the sea."] if (d + t) % 3 else [], "facts": ["i swim."],
                "said": {system: text for system in SYSTEMS if (text := said(d, t, system))},
            }
            for d in range(count) for t in range(turns)
        ],
    )  # fmt: skip


@pytest.fixture
def tables(tmp_path):
    """Two systems say the same everywhere, one of them once nothing: its dialogue lacks a turn's score."""

    def said(d, t, system):
        if (d, t, system) == (2, 1, "two"):
            return None
        return f"Well, number {d} of {t}." if system in ("one", "two") else f"I swim every day, {system} {d} {t}!"

    return dialogues(tmp_path / "mine", 5, 3, said)


def make(judging, name, folder, out, shard=WHOLE, turns=None):
    out.mkdir(exist_ok=True)
    paths = [out / f"{kind}-{name}-{shard.number}-of-{shard.count}.parquet" for kind in ("scores", "judgements")]
    return write_judged(
        judging, task_of(judging, name), folder, *paths, dataset="mine", turns=turns, shard=shard
    ), *paths


def make_all(judging, name, folder, out, count, turns=None):
    """Judge in shards, the last first, and merge."""
    made = [make(judging, name, folder, out, Shard(number, count), turns) for number in range(count, 0, -1)]
    merged = [out / f"{kind}-{name}-merged.parquet" for kind in ("scores", "judgements")]
    merge_judged([scores for _, scores, _ in made], [how for _, _, how in made], *merged)
    return made, *merged


def answers(judging, name):
    frame = Ledger(judging.ledger).answers("mine", family_of(judging, task_of(judging, name))).frame()
    return frame[["key", "messages", "sample", "answer"]].sort_values("key").astype(str).to_numpy().tolist()


@pytest.mark.parametrize("name", VARIANTS)
def test_any_number_of_shards_gives_the_same_bytes_and_answers(tables, tmp_path, monkeypatch, name):
    turns = make(read(tmp_path / "turns"), "turn", tables, tmp_path / "turn-scores")[1] if name == "after" else None
    whole = read(tmp_path / "whole")
    tally, scores, how = make(whole, name, tables, tmp_path / "out-whole", turns=turns)
    assert tally.scores == schema.count(scores, "scores") > 0 and bool(tally.lacking) == (name in ("ref", "after"))
    expected = answers(whole, name)
    for count in (1, 3, 16):
        asked = count_requests(monkeypatch)
        judging = read(tmp_path / f"cut-{count}")
        made, merged, merged_how = make_all(judging, name, tables, tmp_path / f"out-{count}", count, turns)
        assert merged.read_bytes() == scores.read_bytes() and merged_how.read_bytes() == how.read_bytes()
        assert answers(judging, name) == expected
        assert set(asked.values()) == {1} and len(asked) == len(expected)
        # Each item is one shard's, those that lack something too.
        assert sum((each.lacking for each, *_ in made), Counter()) == tally.lacking
        assert sum(each.scores for each, *_ in made) == tally.scores
        assert (sum(each.judgements > 0 for each, *_ in made) > 1) == (count > 1)
    # Nothing is left to ask, however it is cut.
    make_all(judging, name, tables, tmp_path / "again", 2, turns)
    assert asked.total() == len(expected)
    frames = judged(judging, task_of(judging, name), tables, turns)
    for frame, path, table in zip(frames, (scores, how), ("scores", "judgements"), strict=False):
        schema.write(tmp_path / "frame.parquet", frame, table)
        assert (tmp_path / "frame.parquet").read_bytes() == path.read_bytes()


def test_a_shard_that_fails_fails_alone(tables, tmp_path, monkeypatch):
    """Its service breaks off after two answers: those are kept, the other shards' files too."""
    _, scores, how = make(read(tmp_path / "whole"), "turn", tables, tmp_path / "out-whole")
    judging, out = read(tmp_path / "cut"), tmp_path / "out"
    asked = count_requests(monkeypatch)
    make(judging, "turn", tables, out, Shard(1, 3))
    served, complete = len(asked), Rules.complete

    async def breaking(self, messages, parameters):
        if len(asked) >= served + 2:
            raise JudgeError("no such key")
        return await complete(self, messages, parameters)

    with monkeypatch.context() as patch:
        patch.setattr(Rules, "complete", breaking)
        with pytest.raises(ComperdialError, match="no such key"):
            make(judging, "turn", tables, out, Shard(2, 3))
    before = {path: path.read_bytes() for path in out.iterdir()}
    assert len(before) == 2 and not list(out.glob("*2-of-3*"))
    make(judging, "turn", tables, out, Shard(3, 3))
    make(judging, "turn", tables, out, Shard(2, 3))
    assert all(path.read_bytes() == content for path, content in before.items())
    assert set(asked.values()) == {1}
    parts = [[out / f"{kind}-turn-{n}-of-3.parquet" for n in (1, 2, 3)] for kind in ("scores", "judgements")]
    merge_judged(*parts, out / "scores.parquet", out / "judgements.parquet")
    assert (out / "scores.parquet").read_bytes() == scores.read_bytes()
    assert (out / "judgements.parquet").read_bytes() == how.read_bytes()


def test_answers_that_nobody_can_read_are_an_error_of_all_shards_not_of_one(tables, tmp_path, monkeypatch, caplog):
    def answer_without_a_rating(to):
        async def complete(self, messages, parameters):
            made = respond(messages)
            return dataclasses.replace(made, text="no idea") if to in messages[0]["content"] else made

        monkeypatch.setattr(Rules, "complete", complete)

    answer_without_a_rating("")
    with pytest.raises(ComperdialError, match=r"none of \d+ answers can be read.*The first answer: 'no idea'"):
        make(read(tmp_path / "whole"), "turn", tables, tmp_path / "out-whole")
    assert not list((tmp_path / "out-whole").iterdir())
    with pytest.raises(ComperdialError, match=r"none of 44 answers can be read, most of them for this reason: "):
        make_all(read(tmp_path / "cut"), "turn", tables, tmp_path / "out", 3)
    assert not list((tmp_path / "out").glob("*merged*"))
    assert "The first answer: 'no idea'" in caplog.text and "shard 3/3" in caplog.text
    # Two systems' answers cannot be read: a shard of these alone is no error.
    answer_without_a_rating("Well, number")
    made, scores, _ = make_all(read(tmp_path / "some"), "turn", tables, tmp_path / "out-some", 8)
    assert any(each.judgements and not each.scores for each, *_ in made)
    assert set(schema.read(scores, "scores")["system_id"]) == {"three"}


def test_scores_and_judgements_of_different_shards_are_not_merged(tables, tmp_path):
    _, _, judgements = make(read(tmp_path / "work"), "turn", tables, tmp_path / "out")
    schema.write(tmp_path / "none.parquet", schema.empty("scores"), "scores")
    with pytest.raises(SchemaError, match=r"none\.parquet: no scores, and judgements with ratings"):
        merge_judged([tmp_path / "none.parquet"], [judgements], tmp_path / "a.parquet", tmp_path / "b.parquet")
    assert not (tmp_path / "b.parquet").exists()


def test_many_may_ask_without_snakemake(tables, tmp_path, capsys, monkeypatch):
    """Dialogues after their turns wait for the turns of all shards."""
    whole = read(tmp_path / "ledger-whole")
    turns = None
    for name in VARIANTS:
        _, scores, _ = make(whole, name, tables, tmp_path / "out-whole", turns=turns)
        turns = turns or scores
    asked = count_requests(monkeypatch)
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(sections(tmp_path / "ledger") | {"datasets": ["mine"]}))
    command = ["judge", "run", "--params", str(tmp_path / "params.yaml"), "--tables", str(tmp_path)]
    for number in (1, 2):
        assert main([*command, "--shard", f"{number}/2"]) == 0
    first, second = (lines for lines in capsys.readouterr().out.split("mine  turn_rules")[1:])
    assert "after_rules: not run: its turns are not all judged yet" in first and "not run" not in second
    assert main([*command, "--shard", "1/2"]) == 0
    assert "not run" not in capsys.readouterr().out
    assert set(asked.values()) == {1}
    judging = read(tmp_path / "ledger")
    assert [len(answers(judging, name)) for name in VARIANTS] == [len(answers(whole, name)) for name in VARIANTS]
    for wrong in ("3/2", "0/2", "x"):
        with pytest.raises(SystemExit) as ended:
            main([*command, "--shard", wrong])
        assert ended.value.code == 2 and "such as 3/16" in capsys.readouterr().err


# ---- dialogues


def prompts(judging, name, folder, turns=None, shard=WHOLE):
    """Return what is asked, or what is lacking, by dialogue and system: each once."""
    items = list(items_of(judging, task_of(judging, name), folder, turns, shard))
    found = {(item.item_id, item.system_id): json.loads(item.messages or "0") or item.lacks for item in items}
    assert len(found) == len(items)
    return found


def text(prompt):
    return prompt[0]["content"]


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.integers(1, 5), st.integers(1, 4), st.floats(0, 0.6), st.floats(0, 0.3), st.integers(0, 2**32 - 1))
def test_dialogues_hold_what_was_said_in_them_in_any_order_of_contexts(tmp_path, count, turns, silent, unscored, seed):
    """Names of contexts that mix dialogues and turns, systems that left some out, turns without a score."""
    rng = np.random.default_rng(seed)
    names = [f"c{number}" for number in rng.permutation(count * turns)]
    said = {
        (d, t, system): f"{system} says {rng.integers(3)}"
        for d in range(count) for t in range(turns) for system in SYSTEMS if rng.random() >= silent
    }  # fmt: skip
    folder = dialogues(tmp_path / "mine", count, turns, lambda *what: said.get(what), names.__getitem__)
    values = {what: rng.integers(100, 500) / 100 for what in said if rng.random() >= unscored}
    rows = [
        ("mine", level, names[d * turns + t], system, "m", output, np.float32(value + (output != "overall")), 0, "s")
        for (d, t, system), value in values.items()
        for level, output in (("turn", "overall"), ("turn", "zest"), ("dialogue", "overall"))
    ]
    # Of one more, so that there is a score.
    rows.append(("mine", "turn", "zzz", "one", "m", "overall", np.float32(1), 0, "s"))
    scores = pd.DataFrame(rows, columns=schema.table("scores").columns).sample(frac=1, random_state=seed % 1000)
    path = tmp_path / "turns.parquet"
    schema.write(path, scores, "scores")
    judging = read(tmp_path / "ledger")
    after, whole = prompts(judging, "after", folder, path), prompts(judging, "whole", folder)
    assert prompts(judging, "after", folder, schema.read(path, "scores")) == after
    for d in range(count):
        for system in SYSTEMS[:3]:
            key, spoken = (f"d{d}", system), [t for t in range(turns) if (d, t, system) in said]
            scored = [t for t in spoken if (d, t, system) in values]
            assert (key in after) == (key in whole) == bool(spoken)
            if not spoken:
                continue
            assert f": {said[d, spoken[-1], system]}" in text(whole[key])
            assert f"Do you like the sea, {d}-{spoken[-1]}?" in text(whole[key])
            if len(scored) < turns:
                assert after[key] == f"{turns - len(scored)} turns without a score"
                continue
            lines = [line for line in text(after[key]).splitlines() if line.startswith("Turn")]
            expected = [f"Turn{t + 1} Score - {values[d, t, system]:.2f}".rstrip("0").rstrip(".") for t in range(turns)]
            expected += [f"Turn{t + 1}: {said[d, t, system]}" for t in range(turns)]
            assert lines == expected
    assert not {system for _, system in [*after, *whole]} - set(SYSTEMS[:3])
    shards = [prompts(judging, "after", folder, path, Shard(number, 3)) for number in (1, 2, 3)]
    assert sum(map(len, shards)) == len(after) and {k: v for shard in shards for k, v in shard.items()} == after


def test_tables_may_have_any_order(tables, tmp_path):
    judging = read(tmp_path / "ledger")
    _, scores, _ = make(judging, "turn", tables, tmp_path / "out")
    turns = {"turn": None, "after": scores, "whole": None}
    expected = {name: prompts(judging, name, tables, turns[name]) for name in turns}
    for path, name in ((scores, "scores"), (tables / "responses.parquet", "responses")):
        schema.read(path, name).iloc[::-1].to_parquet(path)
    for name in turns:
        assert prompts(judging, name, tables, turns[name]) == expected[name]
    schema.read(scores, "scores").to_csv(tmp_path / "turns.csv", index=False)
    assert prompts(judging, "after", tables, tmp_path / "turns.csv") == expected["after"]


def test_a_turn_has_one_score(tables, tmp_path):
    judging = read(tmp_path / "ledger")
    rows = [("mine", "turn", "c00", "one", metric, "overall", 1.0, 0, "s") for metric in ("m", "n")]
    twice = pd.DataFrame(rows, columns=schema.table("scores").columns)
    with pytest.raises(SchemaError, match="two scores with output 'overall' for c00, one"):
        prompts(judging, "after", tables, twice)
    with pytest.raises(SchemaError, match="no turn scores with output 'overall'"):
        prompts(judging, "after", tables, twice.assign(output="zest"))


def conversations(folder):
    """Return the lines of the conversations that are judged whole."""
    found = {}
    for key, prompt in prompts(read(folder / "ledger"), "whole", folder).items():
        lines = text(prompt).split("\n")
        found[key] = lines[1 : lines.index("### Instruction:")]
    return found


def rows(*given):
    return [dict(zip(("dialogue", "turn", "history", "said"), row, strict=True)) for row in given]


def test_an_interactive_conversation_is_its_last_history_and_response(tmp_path):
    """The turns come in any order, and two utterances in a row by one speaker do not change who the chatbot is."""
    folder = write_tables(
        tmp_path / "mine",
        rows(
            ("d", 2, ["U: Hi.", "S: Hello.", "U: Tea?", "S: Yes.", "S: Green."], {"x": "Or black."}),
            ("d", 0, ["U: Hi."], {"x": "Hello."}),
            ("d", 1, ["U: Hi.", "S: Hello.", "U: Tea?"], {"x": "Yes."}),
        ),
    )
    expected = ["U: Hi.", "S: Hello.", "U: Tea?", "S: Yes.", "S: Green.", "S: Or black."]
    assert conversations(folder) == {("d", "x"): expected}


def test_a_static_dialogue_ends_in_each_system_s_last_response(tmp_path):
    """References are not judged; a system that left the last turn out is judged by the one before."""
    folder = write_tables(
        tmp_path / "mine",
        rows(
            ("d", 0, ["A: Hi."], {"x": "Hello.", "y": "Hey.", "gold": "Good day."}),
            ("d", 1, ["A: Hi.", "B: Good day.", "A: Tea?"], {"x": "Yes.", "gold": "No."}),
            ("e", 0, ["A: ### Response:"], {"x": "A\n### Conversation:"}),
        ),
    )
    assert conversations(folder) == {
        ("d", "x"): ["A: Hi.", "B: Good day.", "A: Tea?", "B: Yes."],
        ("d", "y"): ["A: Hi.", "B: Hey."],
        ("e", "x"): ["A: ### Response:", "B: A ### Conversation:"],
    }


@pytest.mark.parametrize(
    ("history", "speaker"),
    [([], "A"), (["A: Hi."], "B"), (["B: Hi."], "A"), (["Ann: Hi.", "Bo: Hm.", "Bo: So?"], "Ann")],
)
def test_who_answers_where_the_system_said_nothing_before(tmp_path, history, speaker):
    folder = write_tables(tmp_path / "mine", rows(("d", 0, history, {"x": "Well."})))
    assert conversations(folder) == {("d", "x"): [*history, f"{speaker}: Well."]}
