"""The ledger: nothing that was kept is lost or there twice, nothing that was paid is forgotten, whoever is killed."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from comperdial.core.errors import ConfigError, FileError, SchemaError
from comperdial.core.sharding import Shard
from comperdial.judges import base, ledger
from comperdial.judges.base import Answer, Completion, Family, encode_messages, refusal
from comperdial.judges.ledger import Broke, Claimed, Ledger, Rates, Wait

FAMILY = Family("cpdscore", "openai", "m", {"temperature": 1.0, "max_tokens": 20}, "cpds_detail", "ab" * 32)
OTHER = Family("another", "openai", "m", {"temperature": 1.0, "max_tokens": 20}, "cpds_detail", "ab" * 32)
HALVES = [Shard(1, 2), Shard(2, 2)]


def request(number):
    return encode_messages([{"role": "user", "content": f"{number}?"}])


def answer(number, sample=0, text="4", cost=0.5, **other):
    return Answer(request(number), sample, Completion(text, **other), cost=cost, time=7)


def key(number, sample=0):
    return base.key(FAMILY.id, request(number), sample)


def opened(root, shard=Shard(), family=FAMILY, **options):  # noqa: B008
    return Ledger(root, shard).open("demo", family, **options)


def write(root, *answers, **options):
    with opened(root, **options) as writer:
        return writer.add(answers)


def content(root):
    """Return all that a ledger says: what was asked and answered, and what is spent."""
    frame = Ledger(root).answers("demo", FAMILY).frame()
    assert frame["key"].is_unique
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return rows, round(Ledger(root).spent(), 9)


def claim(writer, number, worst=0.0, rates=None, **options):
    return writer.transact([(writer.do_claim, (key(number), worst, 1.0, rates), *options)])[0]


def keep(writer, call, kept):
    return writer.transact([(writer.do_keep, (call, kept))])[0]


# --- keeping ---


ODD = [
    answer(1, text='\ud83d half, whole 🙂, \0, \u2028, "quoted", \'; DROP TABLE answers; --'),
    answer(2, 3, text="", cost=0, finish="length", input_tokens=0, output_tokens=2**31, model="m-1"),
    answer(3, cost=None, logprobs={"4": -0.25, " 5": -1e300, "": 0.0}),
    answer(4, text="x" * 1_000_000, cost=1e-12),
    Answer(request("\udc00"), 10**12, Completion("5"), 0.1, 12, 1_700_000_000, "repository@0123:file.json"),
]


def test_any_answer_comes_back_as_it_was_from_sqlite_and_from_parquet(tmp_path):
    write(tmp_path, *ODD)
    for exported in ([5], []):
        read = Ledger(tmp_path).answers("demo", FAMILY)
        for one in ODD:
            found = read.get(base.key(FAMILY.id, one.messages, one.sample))
            assert found.completion.text == one.completion.text.replace("\ud83d", "\\ud83d")
            assert (found.cost, found.completion.logprobs) == (one.cost, one.completion.logprobs)
        assert (len(read), read.models()) == (5, {"m-1"})
        assert found.messages == request("\\udc00").replace("\\\\", "\\")
        before = content(tmp_path)
        assert [new for *_, new in Ledger(tmp_path).export()] == exported
        assert content(tmp_path) == before
    (part,) = tmp_path.glob("demo/cpdscore/*/part-0001-*.parquet")
    assert list(pd.read_parquet(part)["messages"]) == sorted(one["messages"] for one in before[0])


def test_the_bytes_of_a_part_do_not_depend_on_the_order_of_answers(tmp_path):
    answers = [answer(number, sample) for number in range(20) for sample in range(3)]
    for name in ("a", "b"):
        random.Random(name).shuffle(answers)
        write(tmp_path / name, *answers)
        Ledger(tmp_path / name).export()
    first, second = ([path.name for path in (tmp_path / name).glob("demo/*/*/part*")] for name in "ab")
    assert first == second


@pytest.mark.parametrize(
    "wrong",
    [
        answer(1, text=4),
        answer(1, 2**70),
        answer(1, cost=float("nan")),
        answer(1, cost=float("inf")),
        answer(1, cost=1e8),
        answer(1, input_tokens=10**30),
        answer(1, output_tokens=True),
    ],
)
def test_a_value_that_no_file_could_hold_is_an_error_alone(tmp_path, wrong):
    with opened(tmp_path) as writer:
        call = claim(writer, 1, 0.75).call
        group = [answer(0), wrong, answer(2)]
        results = writer.transact([(writer.do_keep, (call if one is wrong else None, one)) for one in group])
        assert [results[0], results[2]] == [True, True]
        assert isinstance(results[1], SchemaError)
        assert (len(writer), writer.spent()) == (2, 1.75)
        with pytest.raises(SchemaError):
            writer.add([wrong, answer(3)])
        assert len(writer) == 3


def test_the_first_answer_to_a_request_stays_and_a_refusal_gives_way(tmp_path):
    with opened(tmp_path) as writer:
        assert writer.add([refusal(request(0), 0, "no", 1), answer(1, text="1"), answer(1, text="2")]) == 2
        assert writer.get(key(0)).completion.finish == "refused"
        assert writer.add([answer(0, text="5"), refusal(request(1), 0, "no", 1)]) == 1
        assert [writer.get(key(number)).completion.text for number in (0, 1)] == ["5", "1"]


@pytest.mark.parametrize("elsewhere", ["exported", "another file"])
def test_a_refusal_that_lies_elsewhere_gives_way_too(tmp_path, elsewhere):
    shard = next(half for half in HALVES if half.holds(request(0)))
    write(tmp_path, refusal(request(0), 0, "no", 1), shard=shard)
    if elsewhere == "exported":
        Ledger(tmp_path).export()
    for text in ("5", "4"):
        with opened(tmp_path) as writer:
            assert writer.add([refusal(request(0), 0, "no", 2)]) == 0
            assert writer.add([answer(0, text=text)]) == (text == "5")
            assert writer.get(key(0)).completion.text == "5"
    for _ in range(2):
        assert [row["answer"] for row in content(tmp_path)[0]] == ["5"]
        Ledger(tmp_path).export()


def test_names_secrets_and_budgets_that_are_refused(tmp_path):
    for name in ("../out", ".hidden", "", "a/b"):
        with pytest.raises(ConfigError, match="cannot name a data set"), Ledger(tmp_path).open(name, FAMILY):
            pass
    secret = Family("j", "openai", "m", {"headers": {"authorization": "Bearer abc"}}, "p", "0" * 64)
    with pytest.raises(ConfigError, match="judge 'j'") as caught, opened(tmp_path, family=secret):
        pass
    assert "abc" not in str(caught.value)
    for budget in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(ConfigError, match="the budget is"), opened(tmp_path, budget=budget):
            pass
    assert not [*tmp_path.rglob("*.sqlite")]


# --- calls ---


def test_a_claim_reserves_and_keeping_the_answer_ends_it(tmp_path):
    with opened(tmp_path, budget=1.0) as ours, opened(tmp_path, budget=1.0) as theirs:
        call = claim(ours, 1, 0.8).call
        assert ours.spent() == Ledger(tmp_path).spent() == 0.8
        assert claim(theirs, 1, 0.1).why == claim(ours, 1, 0.1).why == "busy"
        assert claim(ours, 2, 0.3).why == "own"
        assert claim(theirs, 2, 0.3).why == "money"
        assert keep(ours, call, answer(1, cost=0.5))
        assert claim(theirs, 1, 0.8).completion.text == "4"
        other = claim(theirs, 2, 0.3)
        assert isinstance(other, Claimed)
        theirs.transact([(theirs.do_lose, (other.call, 0.25, "timed out"))])
        # 0.5 for an answer, 0.25 for a call that may have been charged.
        assert claim(ours, 3, 0.3) == Broke(0.75, 1.0)
        assert isinstance(claim(ours, 3, 0.25), Claimed)
        assert Ledger(tmp_path).spent() == 1.0


def test_an_answer_and_the_end_of_its_call_are_one(tmp_path):
    with opened(tmp_path) as writer:
        call = claim(writer, 1, 0.8).call
        with sqlite3.connect(tmp_path / "ledger.sqlite") as other:
            other.execute("CREATE TRIGGER no BEFORE DELETE ON calls BEGIN SELECT RAISE(ABORT, 'power cut'); END")
        with pytest.raises(FileError, match="power cut"):
            keep(writer, call, answer(1))
        assert (len(writer), writer.spent()) == (0, 0.8)


def test_what_is_paid_twice_is_spent_twice_also_when_it_is_exported(tmp_path):
    with opened(tmp_path) as writer:
        for text in ("4", "5"):
            call = claim(writer, text, 0.8).call
            keep(writer, call, answer(1, text=text))
    assert (len(content(tmp_path)[0]), Ledger(tmp_path).spent()) == (1, 1.0)
    Ledger(tmp_path).export()
    assert Ledger(tmp_path).spent() == 1.0


def die(root, requests):
    """Claim some requests, keep every other answer, and end without a word."""
    with opened(root, budget=100.0) as writer:
        calls = [claim(writer, number, 0.8).call for number in range(requests)]
        for number in range(0, requests, 2):
            keep(writer, calls[number], answer(number))
        os.kill(os.getpid(), signal.SIGKILL)


def test_calls_of_a_killed_process_are_charges_and_may_be_asked_again_at_once(tmp_path, processes, monkeypatch):
    process = processes.Process(target=die, args=(tmp_path, 20))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert Ledger(tmp_path).spent() == pytest.approx(10 * 0.5 + 10 * 0.8)
    monkeypatch.setattr(ledger.time, "monotonic", lambda: 5.0)
    with opened(tmp_path, budget=14.0) as writer:
        found = [claim(writer, number, 0.1) for number in range(20)]
        assert [type(one) for one in found] == [Answer, Claimed] * 10
        # 13 dollars are gone, and 10 dimes reserved: the killed ones are waited for by nobody.
        for number in range(1, 20, 2):
            keep(writer, found[number].call, answer(number, cost=0.1))
        assert claim(writer, 99, 0.1) == Broke(14.0, 14.0)


def work(root, numbers, budget, log):
    """Ask for everything in an order of its own: "paying" is a line in a file."""
    order = random.Random(os.getpid()).sample(numbers, len(numbers))
    with opened(root, budget=budget, paid=True) as writer:
        while order:
            found = claim(writer, order[-1], 0.75)
            if isinstance(found, Claimed):
                with Path(log).open("a") as file:
                    file.write(f"{order[-1]}\n")
                keep(writer, found.call, answer(order.pop()))
            elif isinstance(found, Wait):
                order.insert(0, order.pop())
            elif isinstance(found, Broke):
                return
            else:
                order.pop()


@pytest.mark.parametrize(("budget", "count"), [(500.0, 4), (25.0, 2)])
def test_processes_that_are_killed_at_random(tmp_path, processes, budget, count):
    numbers, chance, log = range(80), random.Random(count), tmp_path / "log"
    log.touch()

    def begin():
        process = processes.Process(target=work, args=(tmp_path / "ledger", numbers, budget, log))
        process.start()
        return process

    running, kills = [begin() for _ in range(count)], 0
    while any(process.is_alive() for process in running):
        running[0].join(0.002)
        if kills < 4 and len(log.read_bytes().split()) >= kills * 8 + 5:
            victim = chance.randrange(count)
            running[victim].kill()
            running[victim].join()
            kills += running[victim].exitcode == -signal.SIGKILL
            running[victim] = begin()
    paid, spent = Counter(log.read_text().split()), Ledger(tmp_path / "ledger").spent()
    kept = {int(json.loads(row["messages"])[0]["content"][:-1]) for row in content(tmp_path / "ledger")[0]}
    assert kills == 4
    assert paid.total() - len(kept) <= kills
    assert 0.5 * paid.total() <= spent <= min(budget, 0.5 * len(kept) + 0.75 * kills)
    assert len(kept) == 80 if budget > 100 else spent > budget - 0.75


# --- shards ---


def test_each_shard_has_a_file_of_its_own_and_all_together_are_the_ledger(tmp_path):
    write(tmp_path, answer(99))
    for shard in HALVES:
        mine = [number for number in range(40) if shard.holds(request(number))]
        with opened(tmp_path, shard, budget=10.5, paid=True) as writer:
            writer.add(answer(number, cost=0.1) for number in mine)
            assert key(99) in writer
            # Half of what the others left.
            calls = [claim(writer, f"{shard.number}-{number}", 0.1) for number in range(50)]
            assert sum(isinstance(one, Claimed) for one in calls) == 50 - len(mine)
            writer.transact([(writer.do_lose, (one.call, 0.0, "over")) for one in calls if isinstance(one, Claimed)])
            # While it runs, anyone can read.
            assert len(Ledger(tmp_path).answers("demo", FAMILY)) >= len(mine)
            assert Ledger(tmp_path).spent() >= len(mine) * 0.1
            with opened(tmp_path, family=OTHER) as whole:
                assert len(whole) == 0
            with pytest.raises(RuntimeError, match="another shard"):
                writer.add([answer(next(number for number in range(40) if number not in mine))])
    read = Ledger(tmp_path).answers("demo", FAMILY)
    assert all(key(number) in read for number in [*range(40), 99])
    assert Ledger(tmp_path).families() == [("demo", OTHER), ("demo", FAMILY)]
    # A reader that stays keeps no shard from writing.
    write(tmp_path, shard=HALVES[0])
    assert [new for *_, new in Ledger(tmp_path).export()] == [41]
    assert len(content(tmp_path)[0]) == 41


@pytest.mark.parametrize(
    ("ours", "theirs", "refused"),
    [
        ((Shard(), FAMILY, True), (Shard(), FAMILY, True), False),
        ((Shard(1, 2), FAMILY, True), (Shard(2, 2), FAMILY, True), False),
        ((Shard(1, 2), FAMILY, False), (Shard(), FAMILY, False), True),
        ((Shard(1, 2), FAMILY, True), (Shard(1, 3), OTHER, True), True),
        ((Shard(1, 2), FAMILY, True), (Shard(1, 3), OTHER, False), False),
    ],
)
def test_runs_of_different_counts_do_not_overlap_where_they_share(tmp_path, ours, theirs, refused):
    with opened(tmp_path, ours[0], ours[1], paid=ours[2]):
        if refused:
            with pytest.raises(ConfigError, match="others judge now in 2 shards, and this would be"):
                opened(tmp_path, theirs[0], theirs[1], paid=theirs[2]).__enter__()
        else:
            with opened(tmp_path, theirs[0], theirs[1], paid=theirs[2]):
                pass
    with opened(tmp_path, theirs[0], theirs[1], paid=theirs[2]):
        pass


def test_a_killed_shard_is_read_by_others_and_runs_again(tmp_path, processes):
    process = processes.Process(target=die_in_shard, args=(tmp_path,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert Ledger(tmp_path).spent() == pytest.approx(0.5 + 0.8)
    assert len(content(tmp_path)[0]) == 1
    with opened(tmp_path, HALVES[0], budget=10.0) as writer:
        assert (len(writer), writer.spent()) == (1, pytest.approx(1.3))


def die_in_shard(root):
    mine = next(number for number in range(9) if HALVES[0].holds(request(number)))
    with opened(root, HALVES[0]) as writer:
        writer.add([answer(mine)])
        claim(writer, 98, 0.8)
        # In the middle of a transaction.
        writer._base.execute("BEGIN IMMEDIATE")
        writer._base.execute("DELETE FROM answers")
        os.kill(os.getpid(), signal.SIGKILL)


# --- Parquet ---


def test_what_is_exported_is_not_asked_again_and_further_exports_add(tmp_path):
    write(tmp_path, answer(1), answer(2))
    with opened(tmp_path) as writer:
        claim(writer, 9, 0.25)
    Ledger(tmp_path).export()
    with opened(tmp_path, budget=2.0) as writer:
        assert (len(writer), writer.add([answer(1, text="5"), answer(3)])) == (2, 1)
        assert isinstance(claim(writer, 4, 0.25), Claimed)
        with pytest.raises(ConfigError, match="somebody judges"):
            Ledger(tmp_path).export()
    before = content(tmp_path)
    assert [new for *_, new in Ledger(tmp_path).export()] == [1]
    assert content(tmp_path) == before
    assert before[1] == 2.0
    # Parts are replaced, so that a clone has one.
    assert len([*tmp_path.glob("demo/*/*/*")]) == 2
    shutil.rmtree(tmp_path / ".running")
    for path in tmp_path.glob("ledger.sqlite*"):
        path.unlink()
    assert content(tmp_path) == (before[0], 1.5)


@pytest.mark.parametrize("step", ["_write_part", "write_text", "unlink", "opened"])
def test_an_export_that_is_killed_loses_nothing_and_counts_nothing_twice(tmp_path, monkeypatch, step):
    write(tmp_path, answer(1), answer(2))
    Ledger(tmp_path).export()
    write(tmp_path, answer(0), answer(3, cost=None))
    before = content(tmp_path)

    def killed(*arguments, **options):
        if step in ("_write_part", "write_text") or options.get("write") or "part-0001" in str(arguments[0]):
            raise KeyboardInterrupt
        return real(*arguments, **options)

    place = Path if step == "unlink" else ledger
    real = getattr(place, step)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(place, step, killed)
        Ledger(tmp_path).export()
    rows, spent = content(tmp_path)
    assert rows == before[0]
    # Until it is done, an answer may count in both places, and never in none.
    assert spent >= before[1]
    assert sum(new for *_, new in Ledger(tmp_path).export()) == (0 if step in ("unlink", "opened") else 2)
    assert content(tmp_path) == before
    write(tmp_path, answer(4))
    Ledger(tmp_path).export()
    assert len([*tmp_path.glob("demo/*/*/part-*")]) == 1


def test_what_is_exported_is_on_the_disk_before_it_is_removed_elsewhere(tmp_path, monkeypatch):
    synced = []

    def fsync(handle):
        place = Path(f"/proc/self/fd/{handle}").readlink()
        with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as there:
            synced.append((place, there.execute("SELECT count(*) FROM answers").fetchone()[0]))

    write(tmp_path, answer(1))
    monkeypatch.setattr(os, "fsync", fsync)
    Ledger(tmp_path).export()
    (folder,) = tmp_path.glob("demo/*/*")
    for path in (*folder.iterdir(), folder, folder.parent, tmp_path / "demo", tmp_path):
        assert (path, 1) in synced


def test_only_a_ledger_is_exported(tmp_path):
    with pytest.raises(FileError, match="no such folder"):
        Ledger(tmp_path / "typo").export()
    assert not (tmp_path / "typo").exists()


@pytest.mark.parametrize("shards", [1, 2])
def test_who_is_broke_hears_of_the_whole_budget_and_of_all_that_is_spent(tmp_path, shards):
    write(tmp_path, answer(1, cost=0.6))
    Ledger(tmp_path).export()
    with opened(tmp_path, Shard(1, shards), budget=0.8) as writer:
        assert claim(writer, 2, worst=0.3) == Broke(0.6 / shards, 0.8 / shards)
        assert isinstance(claim(writer, 2, worst=0.1), Claimed)


def test_a_ledger_where_nothing_may_be_written_can_be_read(tmp_path, monkeypatch):
    write(tmp_path, answer(1))
    monkeypatch.setattr(os, "access", lambda *_: False)
    reader = Ledger(tmp_path).answers("demo", FAMILY)
    assert len(reader) == 1
    assert reader.get(key(1)) == answer(1)
    assert not [*tmp_path.glob("ledger.sqlite-*")]
    reader.close()


def version_1(root, *parts, journal=""):
    """Lay out a family as version 1 did."""
    folder = root / "demo" / FAMILY.judge / FAMILY.id
    folder.mkdir(parents=True)
    described = {"id": FAMILY.id, **{name: getattr(FAMILY, name) for name in ledger._FAMILY}}
    (folder / "family.json").write_text(json.dumps(described))
    for number, part in enumerate(parts, start=1):
        rows = [ledger.flatten(one) for one in part]
        ledger._write_part(folder, number, pa.Table.from_pylist(rows, schema=ledger._arrow()))
    if journal:
        (folder / "journal-0123456789abcdef.jsonl").write_text(journal)
    return folder


def test_a_ledger_of_version_1_is_read_and_exported_as_one_of_today(tmp_path):
    line = json.dumps(ledger.flatten(answer(3)))
    version_1(tmp_path, [answer(1)], [answer(1, text="5"), answer(2)], journal=f"{line}\n{line[:20]}")
    (tmp_path / "charges.jsonl").write_text('{"cost": 0.25, "kind": "cut"}\n{"cost": 0.2')
    before = content(tmp_path)
    assert [row["answer"] for row in before[0]] == ["4", "4", "4"]
    # An answer that was paid twice was.
    assert before[1] == 4 * 0.5 + 0.25
    with opened(tmp_path) as writer:
        assert writer.add([answer(number) for number in range(5)]) == 2
    Ledger(tmp_path).export()
    rows, spent = content(tmp_path)
    assert (len(rows), spent) == (5, 6 * 0.5 + 0.25)
    assert sorted(path.name[:4] for path in tmp_path.glob("demo/*/*/*")) == ["fami", "part"]


@pytest.mark.parametrize("line", ["nonsense", "[1]", '{"messages": "x"}'])
def test_a_broken_line_of_version_1_is_an_error_that_names_it(tmp_path, line):
    version_1(tmp_path, [answer(1)], journal=f"{line}\n")
    with pytest.raises(FileError, match=r"journal-0123456789abcdef\.jsonl, line 1: the line is broken"):
        content(tmp_path)


def flip(root):
    (part,) = root.glob("demo/*/*/part-*")
    data = bytearray(part.read_bytes())
    data[len(data) // 2] ^= 1
    part.write_bytes(data)
    return part


def delete(root, name="part-*"):
    (path,) = root.glob(f"demo/*/*/{name}")
    path.unlink()
    return path


def describe(root, **change):
    (path,) = root.glob("demo/*/*/family.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    return path


def other_columns(root):
    part = delete(root)
    table = pa.table({"messages": ["x"]})
    return part.parent / describe(root, parts=[ledger._write_part(part.parent, 1, table)]).parent.name


def version_of_sqlite(root):
    with sqlite3.connect(root / "ledger.sqlite") as other:
        other.execute("PRAGMA user_version = 3")
    return root / "ledger.sqlite"


def damage(root, content=b"SQLite format 3\0" + b"nonsense" * 1000):
    (root / "ledger.sqlite").write_bytes(content)
    return root / "ledger.sqlite"


@pytest.mark.parametrize(
    ("harm", "problem", "hint"),
    [
        (flip, "the file is altered or cut", "dvc checkout"),
        (delete, "the part is missing", "dvc checkout"),
        (lambda root: delete(root, "family.json"), "no such file", "dvc checkout"),
        (lambda root: describe(root, version=3), "the ledger is of version 3", "the version of comperdial"),
        (lambda root: describe(root, judge="x"), "the file describes family x/", "Restore"),
        (lambda root: describe(root, parts=["../../secret.parquet"]), "the parts are not named", ""),
        (lambda root: describe(root, parts=None), "the parts are not named", ""),
        (lambda root: describe(root, cost="much"), "the parts are not named", ""),
        (lambda root: describe(root, parameters=[]), "'parameters' is []", ""),
        (other_columns, "the file holds no answers", ""),
        (version_of_sqlite, "the ledger is of version 3", "the version of comperdial"),
        (damage, "the ledger is damaged", "Restore it from a copy"),
        (lambda root: damage(root, b"nonsense" * 999), "the ledger is damaged", "Restore it from a copy"),
    ],
)
def test_what_is_broken_is_one_clear_error_and_never_asked_again(tmp_path, harm, problem, hint):
    write(tmp_path, answer(1), answer(2))
    Ledger(tmp_path).export()
    write(tmp_path, answer(3))
    path = harm(tmp_path)
    for use in (lambda: content(tmp_path), lambda: write(tmp_path, answer(4)), lambda: Ledger(tmp_path).export()):
        with pytest.raises(FileError) as caught:
            use()
        assert problem in str(caught.value)
        assert hint in str(caught.value)
        assert path.name in str(caught.value)


@pytest.mark.parametrize("content_", [b"", None])
def test_a_file_that_was_never_laid_out_is_an_empty_one(tmp_path, content_):
    """Its process was killed between making it and laying it out, or is about to."""
    if content_ is None:
        sqlite3.connect(tmp_path / "ledger.sqlite").execute("PRAGMA journal_mode = WAL").connection.close()
    else:
        (tmp_path / "ledger.sqlite").write_bytes(content_)
    assert content(tmp_path) == ([], 0.0)
    assert Ledger(tmp_path).families() == []
    assert write(tmp_path, answer(1)) == 1
    assert content(tmp_path)[1] == 0.5


def test_a_full_disk_takes_nothing_that_was_kept(tmp_path):
    with opened(tmp_path, budget=100.0) as writer:
        writer.add([answer(number, text="x" * 3000) for number in range(50)])
        call = claim(writer, 50, 0.75).call
        pages = writer._base.execute("PRAGMA page_count").fetchone()[0]
        writer._base.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(FileError, match=r"full.*\n?.*Free some space") as caught:
            keep(writer, call, answer(50, text="x" * 30_000))
        assert str(tmp_path / "ledger.sqlite") in str(caught.value)
        assert (len(writer), writer.spent()) == (50, 25.75)
        writer._base.execute(f"PRAGMA max_page_count = {pages + 100}")
        assert keep(writer, call, answer(50, text="x" * 30_000))
    assert content(tmp_path)[1] == 25.5


# --- rates and pauses ---


class Clock:
    def __init__(self, monkeypatch):
        self.now = 1e9
        monkeypatch.setattr(ledger.time, "time", lambda: self.now)

    def send(self, rates, writers, seconds):
        """Send what may be sent, first come, first served; return when."""
        sent, end, number = [], self.now + seconds, 0
        while self.now < end:
            waits = []
            for writer in writers:
                number += 1
                found = claim(writer, f"{len(sent)}-{number}-{self.now}", rates=rates)
                if isinstance(found, Claimed):
                    sent.append(self.now)
                else:
                    waits.append(found.seconds)
            self.now += min(waits) if len(waits) == len(writers) else 0.001
        return sent


def most(sent, seconds):
    return max(sum(start <= when < start + seconds for when in sent) for start in sent)


@pytest.mark.parametrize("rates", [Rates("x", requests=120), Rates("x", tokens=120), Rates("x", 120, 10_000)])
def test_processes_keep_one_rate_together_and_use_it(tmp_path, monkeypatch, rates):
    clock = Clock(monkeypatch)
    with opened(tmp_path) as first, opened(tmp_path, family=OTHER) as second:
        sent = clock.send(rates, [first, second], 30)
    assert 58 <= len(sent) <= 62
    assert all(most(sent, seconds) <= 2 * (seconds + 1) for seconds in (1, 5, 20))


def test_a_request_larger_than_the_rate_is_sent_and_paid_off(tmp_path, monkeypatch):
    clock = Clock(monkeypatch)
    with opened(tmp_path) as writer:
        big = (writer.do_claim, (key(0), 0.0, 600.0, Rates("x", tokens=60)))
        assert isinstance(writer.transact([big])[0], Claimed)
        assert claim(writer, 1, rates=Rates("x", tokens=60)).seconds == pytest.approx(600)
        assert isinstance(claim(writer, 2, rates=Rates("y", tokens=60)), Claimed)
        clock.now += 601
        assert isinstance(claim(writer, 1, rates=Rates("x", tokens=60)), Claimed)


def test_a_rate_is_divided_among_shards(tmp_path, monkeypatch):
    clock = Clock(monkeypatch)
    with opened(tmp_path, HALVES[0]) as first:
        assert 28 <= len(clock.send(Rates("x", 120), [first], 30)) <= 31


@pytest.mark.parametrize("back", [5.0, 7200.0])
def test_a_clock_that_is_put_back_stops_nobody_for_long(tmp_path, monkeypatch, back):
    clock, rates = Clock(monkeypatch), Rates("x", 60)
    with opened(tmp_path) as writer:
        clock.send(rates, [writer], 10)
        clock.now -= back
        assert 9 <= len(clock.send(rates, [writer], 10)) <= 11
        for each in (rates, Rates("no rate")):
            writer.transact([(writer.do_hold, (each, 90.0, lambda _: 0.0))])
            clock.now -= back
            wait = claim(writer, f"late {each}", rates=each)
            assert isinstance(wait, Claimed) or wait.seconds <= 90 + 5


def test_a_pause_is_everybodys_and_grows_only_with_new_faults(tmp_path, monkeypatch):
    clock, rates = Clock(monkeypatch), Rates("x")

    def hold(writer, after=None):
        writer.transact([(writer.do_hold, (rates, after, lambda pauses: 2.0**pauses))])

    numbers = iter(range(99))

    def wait(writer):
        found = claim(writer, next(numbers), rates=rates)
        return 0.0 if isinstance(found, Claimed) else found.seconds

    with opened(tmp_path) as first, opened(tmp_path, family=OTHER) as second:
        hold(first)
        # Of those that were on their way already.
        hold(second)
        assert wait(first) == wait(second) == 2.0
        hold(second, after=5.0)
        assert wait(first) == 5.0
        clock.now += 5.0
        assert wait(second) == 0.0
        hold(first)
        assert wait(second) == 4.0
        clock.now += 4.0
        second.transact([(second.do_pass, (rates,))])
        hold(second)
        assert wait(first) == 2.0
        clock.now += 100.0
        hold(first, after=1.0)
        assert wait(second) == 3.0


def test_another_machine_is_refused_while_this_one_judges(tmp_path, monkeypatch):
    """SQLite's shared memory does not cross machines: what two wrote at a time would be lost, and budgets passed."""
    with Ledger(tmp_path).open("demo", FAMILY):
        monkeypatch.setattr("platform.node", lambda: "another")
        with pytest.raises(ConfigError, match=r"another machine judges now.*a shard for each machine"):
            Ledger(tmp_path).open("demo", FAMILY).__enter__()
    with Ledger(tmp_path).open("demo", FAMILY):
        pass
