"""Judging in shards: any number of them gives the same bytes, asks each request once, and fails alone."""

import dataclasses
import json
import weakref
from collections import Counter

import httpx2
import numpy as np
import pandas as pd
import pytest
import yaml
from comperdial.judges._dialogues import Said, gathered, turn_scores
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from comperdial import schema
from comperdial.cli import main
from comperdial.core.errors import ComperdialError, SchemaError
from comperdial.core.sharding import WHOLE, Shard
from comperdial.judges.items import Item, _speaker, dialogue_items, message, of_shard, whole_items
from comperdial.judges.ledger import Ledger
from comperdial.judges.prompting import history_lines, inline, load, render
from comperdial.judges.scores import items_of, judge, merge_judged, write_judged
from comperdial.judges.services import rules
from comperdial.judges.tasks import family_of, read_judging
from comperdial.metrics.scoring import parts

TURN = {"prompt": "explicit_turn", "fields": ["history", "response"], "dimensions": ["relevance", "overall"]}
VARIANTS = {
    "turn": TURN,
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
SECTIONS = {
    "judges": {"rules": {"service": "rules", "concurrency": 2}},
    "judging": {"judges": {"default": ["rules"]}, "variants": VARIANTS},
}
SYSTEMS = ("one", "two", "three", "gold")
COUNTS = [1, 3, 16]


def sections(ledger):
    return {**SECTIONS, "judging": SECTIONS["judging"] | {"ledger": str(ledger)}}


def read(ledger):
    return read_judging(SECTIONS["judges"], sections(ledger)["judging"])


def write_tables(folder, dialogues=5, turns=3, said=lambda d, t, s: f"I swim in the sea, {s}, {d * t}.", order=str):
    """Dialogues that each system answers at each turn; ``said`` returns None where it did not."""
    contexts, responses = [], []
    for d in range(dialogues):
        for t in range(turns):
            name = f"{order(d * turns + t)}"
            heard = [{"speaker": "AB"[n % 2], "text": f"Do you like the sea, {d}-{n}?"} for n in range(t + 1)]
            contexts.append(
                {
                    "dataset": "mine", "context_id": name, "dialogue_id": f"d{d}", "turn": t, "history": heard,
                    "references": ["I love the sea."] if (d + t) % 3 else [], "facts": ["i swim."],
                }
            )  # fmt: skip
            responses += [("mine", name, system, said(d, t, system)) for system in SYSTEMS]
    responses = [dict(zip(schema.table("responses").columns, row, strict=True)) for row in responses if row[-1]]
    kinds = {system: "reference" if system == "gold" else "agent" for system in SYSTEMS}
    systems = [
        {"dataset": "mine", "system_id": s, "kind": kind, "track": None, "description": ""} for s, kind in kinds.items()
    ]
    folder.mkdir(parents=True, exist_ok=True)
    for table, rows in (("systems", systems), ("contexts", contexts), ("responses", responses)):
        schema.write(folder / f"{table}.parquet", pd.DataFrame(rows, columns=schema.table(table).columns), table)
    return folder


@pytest.fixture
def tables(tmp_path):
    """Two systems say the same everywhere, one of them once nothing: its dialogue lacks a turn's score."""

    def said(d, t, system):
        if (d, t, system) == (2, 1, "two"):
            return None
        return f"Well, number {d} of {t}." if system in ("one", "two") else f"I swim every day, {system} {d} {t}!"

    return write_tables(tmp_path / "mine", said=said)


def files(folder, kind, name):
    folder.mkdir(exist_ok=True)
    return folder / f"{kind}-{name}.parquet"


def make(judging, name, folder, out, shard=WHOLE, turns=None):
    task = judging.tasks("mine")[f"{name}_rules"]
    paths = [files(out, kind, f"{name}-{shard.number}-of-{shard.count}") for kind in ("scores", "judgements")]
    return write_judged(judging, task, folder, *paths, dataset="mine", turns=turns, shard=shard), *paths


def make_all(judging, name, folder, out, count, turns=None):
    """Judge in shards, the last first, and merge."""
    made = [make(judging, name, folder, out, Shard(number, count), turns) for number in range(count, 0, -1)]
    merged = [files(out, kind, f"{name}-merged") for kind in ("scores", "judgements")]
    merge_judged([scores for _, scores, _ in made], [how for _, _, how in made], *merged)
    return made, *merged


def answers(judging, name):
    task = judging.tasks("mine")[f"{name}_rules"]
    frame = Ledger(judging.ledger).shelf("mine", family_of(judging, task)).frame()
    return frame[["key", "messages", "sample", "answer"]].sort_values("key").astype(str).to_numpy().tolist()


@pytest.fixture
def asked(monkeypatch):
    """Count the requests that the judge gets."""
    seen = Counter()
    respond = rules.respond
    monkeypatch.setattr(rules, "respond", lambda messages: seen.update([messages[0]["content"]]) or respond(messages))
    return seen


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("name", ["turn", "ref", "whole", "after"])
def test_any_number_of_shards_gives_the_same_bytes_and_answers(tables, tmp_path, asked, name, count):
    turns = None
    if name == "after":
        _, turns, _ = make(read(tmp_path / "turns"), "turn", tables, tmp_path / "turn-scores")
    whole = read(tmp_path / "whole")
    tally, scores, how = make(whole, name, tables, tmp_path / "out-whole", turns=turns)
    asked.clear()
    judging = read(tmp_path / "cut")
    made, merged, merged_how = make_all(judging, name, tables, tmp_path / "out", count, turns)
    assert merged.read_bytes() == scores.read_bytes() and merged_how.read_bytes() == how.read_bytes()
    assert answers(judging, name) == answers(whole, name)
    assert set(asked.values()) == {1} and len(asked) == len(answers(whole, name))
    # Each item is one shard's, those that lack something too.
    assert sum((each.lacking for each, *_ in made), Counter()) == tally.lacking
    assert bool(tally.lacking) == (name in ("ref", "after"))
    assert sum(each.scores for each, *_ in made) == tally.scores == schema.count(scores, "scores") > 0
    if count > 1:
        assert sum(each.judgements > 0 for each, *_ in made) > 1
    # Nothing is left to ask, however it is cut.
    asked.clear()
    make_all(judging, name, tables, tmp_path / "again", 2, turns)
    assert not asked


def test_frames_are_what_is_written(tables, tmp_path):
    judging = read(tmp_path / "ledger")
    task = judging.tasks("mine")["turn_rules"]
    _, scores, how = make(judging, "turn", tables, tmp_path / "out")
    made = judge(judging, task, tables, dataset="mine")
    for frame, path, name in ((made.scores, scores, "scores"), (made.judgements, how, "judgements")):
        schema.write(tmp_path / "frame.parquet", frame, name)
        assert (tmp_path / "frame.parquet").read_bytes() == path.read_bytes()


def test_a_shard_that_fails_fails_alone(tables, tmp_path, asked, monkeypatch):
    """Its service breaks off after two answers: those are kept, the other shards' files too."""
    _, scores, how = make(read(tmp_path / "whole"), "turn", tables, tmp_path / "out-whole")
    judging, out = read(tmp_path / "cut"), tmp_path / "out"
    asked.clear()
    make(judging, "turn", tables, out, Shard(1, 3))
    served = len(asked)
    with monkeypatch.context() as patch:
        transport = rules.Rules.transport

        def breaking(self):
            inner = transport(self)

            async def handle(request):
                if len(asked) >= served + 2:
                    return httpx2.Response(401, json={"error": {"message": "no such key"}})
                return await inner.handle_async_request(request)

            return httpx2.MockTransport(handle)

        patch.setattr(rules.Rules, "transport", breaking)
        with pytest.raises(ComperdialError):
            make(judging, "turn", tables, out, Shard(2, 3))
    assert not list(out.glob("*2-of-3*")) and len(list(out.iterdir())) == 2
    before = {path: path.read_bytes() for path in out.iterdir()}
    make(judging, "turn", tables, out, Shard(3, 3))
    make(judging, "turn", tables, out, Shard(2, 3))
    assert all(path.read_bytes() == content for path, content in before.items())
    assert set(asked.values()) == {1}
    parts = [[files(out, kind, f"turn-{n}-of-3") for n in (1, 2, 3)] for kind in ("scores", "judgements")]
    merge_judged(*parts, out / "scores.parquet", out / "judgements.parquet")
    assert (out / "scores.parquet").read_bytes() == scores.read_bytes()
    assert (out / "judgements.parquet").read_bytes() == how.read_bytes()


def test_answers_that_nobody_can_read_are_an_error_of_all_shards_not_of_one(tables, tmp_path, monkeypatch, caplog):
    answer = rules.respond

    def respond(messages, unread=lambda text: True):
        made = answer(messages)
        return dataclasses.replace(made, text="no idea") if unread(messages[0]["content"]) else made

    monkeypatch.setattr(rules, "respond", respond)
    with pytest.raises(ComperdialError, match=r"none of \d+ answers can be read.*The first answer: 'no idea'"):
        make(read(tmp_path / "whole"), "turn", tables, tmp_path / "out-whole")
    assert not list((tmp_path / "out-whole").iterdir())
    with pytest.raises(ComperdialError, match=r"none of 44 answers can be read, most of them for this reason: "):
        make_all(read(tmp_path / "cut"), "turn", tables, tmp_path / "out", 3)
    assert not list((tmp_path / "out").glob("*merged*"))
    assert "The first answer: 'no idea'" in caplog.text and "shard 3/3" in caplog.text
    # One system's answers cannot be read: a shard of these alone is no error.
    monkeypatch.setattr(rules, "respond", lambda messages: respond(messages, lambda text: "Well, number" in text))
    made, scores, _ = make_all(read(tmp_path / "some"), "turn", tables, tmp_path / "out-some", 8)
    assert any(each.judgements and not each.scores for each, *_ in made)
    assert set(schema.read(scores, "scores")["system_id"]) == {"three"}


def test_the_commands_take_shards(tables, tmp_path, capsys):
    _, scores, how = make(read(tmp_path / "whole"), "ref", tables, tmp_path / "out-whole")
    given = [
        "judge",
        "score",
        str(tables),
        "--metric",
        "ref_rules",
        "--sections",
        json.dumps(sections(tmp_path / "cut")),
    ]
    made = {}
    for number in (1, 2):
        made[number] = [str(tmp_path / f"{kind}{number}.parquet") for kind in ("s", "j")]
        paths = ["--output", made[number][0], "--judgements", made[number][1]]
        assert main([*given, "--shard", f"{number}/2", *paths]) == 0
    merged = [tmp_path / "s.parquet", tmp_path / "j.parquet"]
    shards = ["--scores", made[1][0], made[2][0], "--judgements", made[1][1], made[2][1]]
    assert main(["judge", "merge", *shards, "--output", str(merged[0]), "--output-judgements", str(merged[1])]) == 0
    assert [path.read_bytes() for path in merged] == [scores.read_bytes(), how.read_bytes()]
    for wrong in ("3/2", "0/2", "x"):
        with pytest.raises(SystemExit) as ended:
            main([*given, "--shard", wrong, *paths])
        assert ended.value.code == 2 and "such as 3/16" in capsys.readouterr().err


def test_many_may_ask_without_snakemake(tables, tmp_path, capsys, asked):
    """Dialogues after their turns wait for the turns of all shards."""
    config = sections(tmp_path / "ledger") | {"datasets": ["mine"]}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    command = ["judge", "run", "--params", str(tmp_path / "params.yaml"), "--tables", str(tmp_path)]
    for number in (1, 2):
        assert main([*command, "--shard", f"{number}/2"]) == 0
    first, second = (lines for lines in capsys.readouterr().out.split("mine  turn_rules")[1:])
    assert "after_rules: not run: its turns are not all judged yet" in first and "not run" not in second
    assert main([*command, "--shard", "1/2"]) == 0
    assert "not run" not in capsys.readouterr().out
    assert set(asked.values()) == {1}
    judging = read(tmp_path / "ledger")
    assert {name: len(answers(judging, name)) for name in VARIANTS} == {
        name: len(answers(whole, name)) for whole in [_asked_whole(tables, tmp_path)] for name in VARIANTS
    }


def _asked_whole(tables, tmp_path):
    judging = read(tmp_path / "ledger-whole")
    _, turns, _ = make(judging, "turn", tables, tmp_path / "out-whole")
    for name in VARIANTS:
        make(judging, name, tables, tmp_path / "out-whole", turns=turns)
    return judging


# ---- streaming


def plain_dialogue_items(folder, prompt, turns, output):
    """All in memory: the dialogues with the scores of their turns."""
    scored = turns[(turns["level"] == "turn") & (turns["output"] == output)]
    scores = scored.set_index(["item_id", "system_id"])["value"]
    frames = [r.assign(**{name: c[name].to_numpy() for name in ("dialogue_id", "turn")}) for r, c in parts(folder)]
    if not frames:
        return
    answered = pd.concat(frames, ignore_index=True).sort_values("turn", kind="stable")
    answered["value"] = scores.reindex(pd.MultiIndex.from_frame(answered[["context_id", "system_id"]])).to_numpy()
    expected = schema.read(folder / "contexts.parquet", "contexts")["dialogue_id"].value_counts()
    for names, group in answered.groupby(["dataset", "dialogue_id", "system_id"], sort=True):
        if missing := int(expected[names[1]]) - int(group["value"].notna().sum()):
            yield Item(*names, None, f"{missing} turns without a score")
            continue
        values = {
            "turn_scores": [f"{value:.2f}".rstrip("0").rstrip(".") for value in group["value"]],
            "responses": [inline(text) for text in group["response"]],
        }
        yield Item(*names, message(render(prompt, values)))


def plain_whole_items(folder, prompt):
    """All in memory: the dialogues whole."""
    answered = {}
    for responses, contexts in parts(folder):
        rows = zip(
            *(responses["dataset"], contexts["dialogue_id"], responses["system_id"]),
            *(contexts["turn"], contexts["history"], responses["response"]),
            strict=True,
        )
        for *names, turn, history, response in rows:
            answered.setdefault(tuple(names), []).append((turn, history, response))
    for names, turns in answered.items():
        turns.sort(key=lambda row: row[0])
        _, history, response = turns[-1]
        speaker = _speaker(history, [(len(heard), said) for _, heard, said in turns[:-1]])
        said = [*history, {"speaker": speaker, "text": response}]
        yield Item(*names, message(render(prompt, {"dialogue": history_lines(said)})))


def by_name(items):
    found = list(items)
    assert len({(item.item_id, item.system_id) for item in found}) == len(found)
    return sorted(found, key=lambda item: (item.item_id, item.system_id))


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 5), st.integers(1, 4), st.floats(0, 0.6), st.floats(0, 0.3), st.integers(0, 2**32 - 1))
def test_streamed_dialogues_are_those_of_all_at_once(tmp_path, dialogues, turns, silent, unscored, seed):
    """Contexts whose names mix the dialogues and turns, systems that left some out, turns without a score."""
    rng = np.random.default_rng(seed)
    names = rng.permutation(dialogues * turns)

    def said(d, t, system):
        return None if rng.random() < silent else f"{system} says {rng.integers(3)}"

    folder = write_tables(tmp_path / "mine", dialogues, turns, said, order=lambda n: f"c{names[n]}")
    responses = schema.read(folder / "responses.parquet", "responses")
    rows = [
        ("mine", level, context, system, "m", output, np.float32(rng.random()), 0, "s")
        for context, system in zip(responses["context_id"], responses["system_id"], strict=True)
        for level, output in (("turn", "overall"), ("turn", "zest"), ("dialogue", "overall"))
        if rng.random() >= unscored
    ]
    # Of one more, so that there is a score.
    rows.append(("mine", "turn", "zzz", "one", "m", "overall", np.float32(1), 0, "s"))
    scores = schema.validate(pd.DataFrame(rows, columns=schema.table("scores").columns), "scores")
    path = tmp_path / "turns.parquet"
    schema.write(path, scores, "scores")
    prompt, whole = load("cpds_dialogue"), load("explicit_dialogue")
    expected = by_name(plain_dialogue_items(folder, prompt, scores, "overall"))
    assert by_name(dialogue_items(folder, prompt, path, "overall")) == expected
    shuffled = scores.sample(frac=1, random_state=seed % 1000)
    assert by_name(dialogue_items(folder, prompt, shuffled, "overall")) == expected
    expected_whole = by_name(plain_whole_items(folder, whole))
    assert by_name(whole_items(folder, whole)) == expected_whole
    if silent == 0 and unscored == 0:
        assert len(expected) == len(expected_whole) == 3 * dialogues
    shards = [list(of_shard(dialogue_items(folder, prompt, path, "overall"), Shard(n, 3))) for n in (1, 2, 3)]
    assert by_name(item for shard in shards for item in shard) == expected


class Heard(list):
    """A history that can be watched."""

    __hash__ = object.__hash__


@pytest.mark.parametrize("dialogues", [10, 300])
def test_only_the_dialogues_under_way_are_in_memory(dialogues):
    turns, systems, most = 4, 3, 0
    names = [(f"c{d:04}-{t}", f"d{d}", t) for d in range(dialogues) for t in range(turns)]
    contexts = pd.DataFrame(
        [("mine", *name) for name in names], columns=["dataset", "context_id", "dialogue_id", "turn"]
    )
    alive = weakref.WeakSet()

    def rows():
        for context, dialogue, turn in names:
            for system in range(systems):
                history = Heard()
                alive.add(history)
                yield Said(("mine", context, f"s{system}"), dialogue, turn, history, "yes")
                del history

    count = 0
    for found in gathered(rows(), contexts):
        assert [said.turn for said in found.said] == list(range(turns)) and found.turns == turns
        count += 1
        most = max(most, len(alive))
    assert count == dialogues * systems
    # Those of the dialogue that has ended, and the first of the next.
    assert most <= turns * systems + 2


def test_a_dialogue_without_its_last_answers_ends_with_its_contexts():
    contexts = pd.DataFrame(
        [("mine", "a", "d1", 0), ("mine", "b", "d1", 1), ("mine", "c", "d2", 0)],
        columns=["dataset", "context_id", "dialogue_id", "turn"],
    )
    said = [Said(("mine", "a", "x"), "d1", 0, [], "yes"), Said(("mine", "c", "x"), "d2", 0, [], "no")]
    taken = []
    found = gathered((taken.append(row) or row for row in said), contexts)
    assert next(found).dialogue_id == "d1" and taken == said
    assert [(last.dialogue_id, last.turns, last.said) for last in found] == [("d2", 1, said[1:])]


def unsorted(path, name):
    frame = schema.read(path, name)
    frame.iloc[::-1].to_parquet(path)
    return path


def test_tables_may_have_any_order(tables, tmp_path):
    judging = read(tmp_path / "ledger")
    _, scores, _ = make(judging, "turn", tables, tmp_path / "out")
    tasks = {name: judging.tasks("mine")[f"{name}_rules"] for name in ("turn", "after", "whole")}
    turns = {"turn": None, "after": scores, "whole": None}
    expected = {name: by_name(items_of(judging, tasks[name], tables, turns[name])) for name in tasks}
    unsorted(scores, "scores")
    unsorted(tables / "responses.parquet", "responses")
    for name in tasks:
        assert by_name(items_of(judging, tasks[name], tables, turns[name])) == expected[name]
    frame = schema.read(scores, "scores")
    frame.to_csv(tmp_path / "turns.csv", index=False)
    for turns in (frame, tmp_path / "turns.csv"):
        assert by_name(items_of(judging, tasks["after"], tables, turns)) == expected["after"]


def test_a_turn_with_two_scores_is_named(tables, tmp_path):
    row = ("mine", "turn", "c", "x", "m", "overall", 1.0, 0, "s")
    twice = pd.DataFrame([row, (*row[:4], "n", *row[5:])], columns=schema.table("scores").columns)
    with pytest.raises(SchemaError, match="two scores with output 'overall' for c, x"):
        list(turn_scores(schema.validate(twice, "scores"), "overall"))
    with pytest.raises(SchemaError, match="no turn scores with output 'zest'"):
        list(turn_scores(schema.validate(twice, "scores"), "zest"))


def test_scores_and_judgements_of_different_shards_are_not_merged(tables, tmp_path):
    _, _, judgements = make(read(tmp_path / "work"), "turn", tables, tmp_path / "out")
    schema.write(tmp_path / "none.parquet", schema.empty("scores"), "scores")
    with pytest.raises(SchemaError, match=r"none\.parquet: no scores, and judgements with ratings"):
        merge_judged([tmp_path / "none.parquet"], [judgements], tmp_path / "a.parquet", tmp_path / "b.parquet")
    assert not (tmp_path / "b.parquet").exists()
