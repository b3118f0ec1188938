"""A ledger to which several processes write at once, each a shard: nothing is lost, and nothing is there twice."""

from __future__ import annotations

import fcntl
import itertools
import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from comperdial.judges._journal import left
from hypothesis import given, settings
from hypothesis import strategies as st

from comperdial.core.errors import FileError
from comperdial.core.sharding import WHOLE, Shard
from comperdial.judges import _content, _folding, _journal, _parts, base
from comperdial.judges.base import Answer, Completion, Family, encode_messages
from comperdial.judges.ledger import Ledger

FAMILY = Family("cpdscore", "rules", "rules-1", {"temperature": 0.0, "rules": 1}, "cpds_detail", "ab" * 32)

CHILD = """
import logging, os, sys, time
from comperdial.judges.base import Answer, Completion, Family, encode_messages
from comperdial.judges.ledger import Ledger
from comperdial.core.sharding import WHOLE, Shard
logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stdout)
family = Family("cpdscore", "rules", "rules-1", {"temperature": 0.0, "rules": 1}, "cpds_detail", "ab" * 32)
ledger = Ledger(sys.argv[1])
def answer(number, sample=0):
    text = encode_messages([{"role": "user", "content": f"{number}?"}])
    return Answer(text, sample, Completion(str(os.getpid())), cost=0.5)
def of(shard, total):
    return [answer(n) for n in range(total) if shard.holds(answer(n).messages)]
def say(text):
    print(text, flush=True)
"""


def child(root, code):
    return subprocess.Popen(
        [sys.executable, "-c", CHILD + code, str(root)], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    )


def answer(number, sample=0, text="4"):
    messages = encode_messages([{"role": "user", "content": f"{number}?"}])
    return Answer(messages, sample, Completion(text), cost=0.5)


def key(found):
    return base.key(FAMILY.id, found.messages, found.sample)


def of(shard, total):
    return [answer(number) for number in range(total) if shard.holds(answer(number).messages)]


def kinds(shelf):
    return sorted(path.name.split("-")[0] for path in shelf.path.iterdir())


def rows(shelf):
    return sum(_parts.read_part(path).num_rows for path in shelf.path.glob("part-*"))


@settings(max_examples=30, deadline=None)
@given(
    numbers=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 2)), max_size=60),
    count=st.integers(1, 7),
    cut=st.integers(0, 60),
)
def test_the_shelves_of_all_shards_are_the_whole_one(tmp_path_factory, numbers, count, cut):
    """Parts, journals and what was just added; a row group holds four rows."""
    ledger = Ledger(tmp_path_factory.mktemp("ledger"))
    answers = [answer(number, sample) for number, sample in dict.fromkeys(numbers)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(_folding._LAYOUT, "row_group_size", 4)
        with ledger.writing("demo", FAMILY) as shelf:
            shelf.add(answers[:cut])
    with ledger.writing("demo", FAMILY) as shelf:
        shelf.add(answers[cut:])
        found = {}
        for number in range(1, count + 1):
            shard = Shard(number, count)
            part = ledger.shelf("demo", FAMILY, shard)
            for each in answers:
                if shard.holds(each.messages):
                    assert part.get(key(each)) == each
                    found[key(each)] = each
                else:
                    assert key(each) not in part
            frame = part.frame()
            assert len(frame) == len(part)
            assert all(map(shard.holds, frame["messages"]))
            # Not the texts of others either: they are most of the memory.
            assert all(map(shard.holds, frame["messages"].cat.categories))
        assert len(found) == len(answers)


def test_shards_are_written_at_the_same_time(tmp_path):
    ledger = Ledger(tmp_path)
    with ledger.writing("demo", FAMILY) as shelf:
        shelf.add([answer(number) for number in range(10)])
    code = """
shard = Shard({number}, 4)
with ledger.writing("demo", family, shard) as shelf:
    say(len(shelf))
    sys.stdin.readline()
    for one in of(shard, 200):
        shelf.add([one])
"""
    processes = [child(tmp_path, code.format(number=number)) for number in range(1, 5)]
    held = [int(process.stdout.readline()) for process in processes]
    assert sum(held) == 10
    assert held == [len(of(Shard(number, 4), 10)) for number in range(1, 5)]
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    seen = 10
    while any(process.poll() is None for process in processes):
        # Readers take no lock, and never see an answer vanish.
        found = len(ledger.shelf("demo", FAMILY))
        assert found >= seen
        assert 0.5 * found <= ledger.spent()
        seen = found
    for process in processes:
        assert process.communicate()[0] == ""
        assert process.returncode == 0
    shelf = ledger.shelf("demo", FAMILY)
    assert len(shelf) == rows(shelf) == 200
    assert kinds(shelf) == ["family.json"] + ["part"] * 5
    assert [path.name.split("-")[1] for path in _parts.listing(shelf.path).parts] == [
        "0001",
        "0002",
        "0003",
        "0004",
        "0005",
    ]
    assert ledger.spent() == 100.0


@pytest.mark.parametrize(
    ("ours", "theirs", "waits"),
    [
        ("1/4", "2/4", False),
        ("1/4", "4/4", False),
        ("1/4", "1/4", True),
        ("1/4", "1/3", True),
        ("1/4", "1/1", True),
        ("1/1", "1/4", True),
        ("1/1", "1/1", True),
    ],
)
def test_who_waits_for_whom(tmp_path, ours, theirs, waits):
    code = f"""
with ledger.writing("demo", family, Shard.parse("{theirs}")) as shelf:
    say("in")
"""
    with Ledger(tmp_path).writing("demo", FAMILY, Shard.parse(ours)):
        process = child(tmp_path, code)
        said = process.stdout.readline()
        assert ("another process is judging this; waiting" in said) is waits
        assert (said == "in\n") is not waits
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "in\n" if waits else "")


def test_another_cut_waits_for_the_last_of_them(tmp_path):
    ledger = Ledger(tmp_path)
    with ledger.writing("demo", FAMILY, Shard(1, 3)):
        with ledger.writing("demo", FAMILY, Shard(2, 3)):
            process = child(tmp_path, 'with ledger.writing("demo", family, Shard(1, 2)):\n    say("in")\n')
            assert "waiting" in process.stdout.readline()
        # While it waits, one of the same cut comes in all the same.
        with ledger.writing("demo", FAMILY, Shard(3, 3)):
            assert process.poll() is None
    assert process.communicate(timeout=60)[0] == "in\n"


@pytest.mark.parametrize("other", [Shard(1, 3), Shard(1, 2), WHOLE])
def test_one_process_that_would_wait_for_itself_is_told(tmp_path, other):
    ledger = Ledger(tmp_path)
    with ledger.writing("demo", FAMILY, Shard(1, 3)) as shelf:
        with pytest.raises(RuntimeError, match="this process"), ledger.writing("demo", FAMILY, other):
            pytest.fail("somebody holds it")
        with ledger.writing("demo", FAMILY, Shard(2, 3)):
            pass
        shelf.add(of(Shard(1, 3), 9))
    assert len(ledger.shelf("demo", FAMILY)) == len(of(Shard(1, 3), 9))


def test_a_shard_keeps_no_request_of_another(tmp_path):
    shard = Shard(1, 2)
    mine, other = of(shard, 20)[0], of(Shard(2, 2), 20)[0]
    with Ledger(tmp_path).writing("demo", FAMILY, shard) as shelf:
        with pytest.raises(RuntimeError, match="another shard than 1/2"):
            shelf.add([mine, other])
        assert len(shelf) == 0
    assert not [*shelf.path.glob("journal-*")]


def test_a_journal_whose_process_lives_is_left_alone(tmp_path):
    ledger = Ledger(tmp_path)
    shard, other = Shard(1, 2), Shard(2, 2)
    process = child(
        tmp_path,
        """
with ledger.writing("demo", family, Shard(2, 2)) as shelf:
    shelf.add(of(Shard(2, 2), 40)[:5])
    say("ready")
    sys.stdin.readline()
    shelf.add(of(Shard(2, 2), 40)[5:])
    say(len(shelf))
""",
    )
    assert process.stdout.readline() == "ready\n"
    for turn in range(3):
        with ledger.writing("demo", FAMILY, shard) as shelf:
            shelf.add(of(shard, 30)[turn::3])
    assert len([*shelf.path.glob("journal-*")]) == 1
    assert len([*shelf.path.glob("part-*")]) == 3
    process.stdin.write("\n")
    process.stdin.flush()
    assert int(process.stdout.readline()) == len(of(other, 40))
    assert process.wait(60) == 0
    process.communicate()
    whole = ledger.shelf("demo", FAMILY)
    assert len(whole) == rows(whole) == len(of(shard, 30)) + len(of(other, 40))
    assert kinds(whole) == ["family.json"] + ["part"] * 4


KILLED = """
shard = Shard({number}, {count})
with ledger.writing("demo", family, shard) as shelf:
    shelf.add(of(shard, {total})[:{most}])
    say("ready")
    time.sleep(600)
"""


def killed(root, code):
    """Have a process add answers and then killed."""
    process = child(root, code)
    assert process.stdout.readline() == "ready\n"
    process.kill()
    process.communicate()


def test_a_killed_shard_is_run_again_alone_and_asks_only_what_was_in_flight(tmp_path):
    ledger = Ledger(tmp_path)
    shard = Shard(2, 3)
    with ledger.writing("demo", FAMILY, Shard(1, 3)) as beside:
        killed(tmp_path, KILLED.format(number=2, count=3, total=90, most=11))
        with ledger.writing("demo", FAMILY, shard) as shelf:
            # What was on the disk is there, and is not asked again.
            assert len(shelf) == 11
            shelf.add(of(shard, 90))
        assert kinds(shelf) == ["family.json", "part"]
        assert len(shelf) == rows(shelf) == len(of(shard, 90))
        beside.add(of(Shard(1, 3), 90))
    whole = ledger.shelf("demo", FAMILY)
    assert len(whole) == rows(whole) == len(of(shard, 90)) + len(of(Shard(1, 3), 90))
    assert ledger.spent() == 0.5 * len(whole)


@pytest.mark.parametrize("other", [Shard(1, 3), Shard(1, 2), WHOLE])
def test_what_a_killed_process_left_becomes_a_part_once_whoever_ends_next(tmp_path, other):
    """Also when its end came after its part and before its journal went: the part's rows are not written again."""
    ledger = Ledger(tmp_path)
    killed(tmp_path, KILLED.format(number=2, count=3, total=60, most=60))
    (rest,) = ledger.shelf("demo", FAMILY).path.glob("journal-*")
    content = rest.read_bytes()
    with ledger.writing("demo", FAMILY, other):
        pass
    shelf = ledger.shelf("demo", FAMILY)
    total = len(of(Shard(2, 3), 60))
    assert kinds(shelf) == ["family.json", "part"]
    assert len(shelf) == rows(shelf) == total
    rest.write_bytes(content)
    assert ledger.spent() == 0.5 * total
    with ledger.writing("demo", FAMILY, other):
        pass
    assert kinds(shelf) == ["family.json", "part"]
    assert rows(shelf) == total


def test_many_that_end_at_once_make_one_part_of_what_was_left(tmp_path):
    ledger = Ledger(tmp_path)
    for number in (1, 2):
        killed(tmp_path, KILLED.format(number=number, count=4, total=400, most=400))
    assert len([*ledger.shelf("demo", FAMILY).path.glob("journal-*")]) == 2
    code = """
with ledger.writing("demo", family, Shard({number}, 4)) as shelf:
    say("ready")
    sys.stdin.readline()
    shelf.add(of(Shard({number}, 4), 400))
"""
    processes = [child(tmp_path, code.format(number=number)) for number in range(1, 5)]
    assert [process.stdout.readline() for process in processes] == ["ready\n"] * 4
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        process.communicate(timeout=60)
        assert process.returncode == 0
    shelf = ledger.shelf("demo", FAMILY)
    assert "journal" not in kinds(shelf)
    assert len(shelf) == rows(shelf) == 400
    assert ledger.spent() == 200.0


def test_a_journal_is_left_to_one_only(tmp_path):
    path = tmp_path / "journal-0.jsonl"
    path.write_text("")
    with left(path) as first, left(path) as second:
        assert (first, second) == (True, False)
    with left(path) as first:
        assert first
        # It becomes a part; who opened it before that is told that there is nothing.
        handle = os.open(path, os.O_RDWR)
        path.unlink()
        os.close(handle)
    with left(path) as gone:
        assert not gone


def test_a_journal_that_went_between_opening_and_locking_it_is_nobodys(tmp_path, monkeypatch):
    path = tmp_path / "journal-0.jsonl"
    path.write_text("")
    real = _journal.take

    def late(handle, path, **options):
        path.unlink()
        path.write_text("another")
        return real(handle, path, **options)

    monkeypatch.setattr(_journal, "take", late)
    with left(path) as ours:
        assert not ours


def test_half_written_files_of_others_are_not_removed_while_they_write(tmp_path):
    ledger = Ledger(tmp_path)
    names = (".part-0001-x.parquet", ".family-1.json", ".journal-1.jsonl")
    with ledger.writing("demo", FAMILY, Shard(1, 2)) as shelf:
        for name in names:
            (shelf.path / name).write_text("half")
        with ledger.writing("demo", FAMILY, Shard(2, 2)):
            pass
        assert all((shelf.path / name).exists() for name in names)
    with ledger.writing("demo", FAMILY, Shard(1, 2)):
        assert not any((shelf.path / name).exists() for name in names)


def test_numbers_of_parts_are_chosen_one_after_the_other(tmp_path):
    with Ledger(tmp_path).writing("demo", FAMILY) as shelf:
        shelf.add([answer(1)])
    lock = next(tmp_path.glob(".running/locks/*/*/*/parts"))
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        flat = [_parts.read_part(path).to_pylist()[0] for path in shelf.path.glob("part-*")]
        other = threading.Thread(target=_folding.write_part, args=(shelf.path, lock, flat))
        other.start()
        other.join(0.2)
        assert other.is_alive()
    other.join(20)
    first, second = _parts.listing(shelf.path).parts
    assert (first.name[:10], second.name[:10]) == ("part-0001-", "part-0002-")
    assert first.read_bytes() == second.read_bytes()


def test_a_shard_knows_that_the_service_answers_others(tmp_path):
    ledger = Ledger(tmp_path)
    with ledger.writing("demo", FAMILY, Shard(1, 2)) as shelf:
        assert not shelf.answered
        with ledger.writing("demo", FAMILY, Shard(2, 2)) as other:
            other.add(of(Shard(2, 2), 9))
            assert (len(shelf), shelf.answered, other.answered) == (0, True, True)
        assert shelf.answered
    assert not ledger.shelf("other", FAMILY, Shard(1, 2)).answered


def test_others_that_fold_all_the_time_keep_nobody_from_reading(tmp_path, monkeypatch):
    """Each look at a file finds that another shard has ended meanwhile; what was read is not read again."""
    ledger = Ledger(tmp_path)
    for number in range(3):
        with ledger.writing("demo", FAMILY) as shelf:
            shelf.add([answer(number)])
    for number in (3, 4, 5):
        killed(tmp_path, KILLED.format(number=number, count=9, total=60, most=60))
    journals = sorted(shelf.path.glob("journal-*"))
    parts, read, made = _parts.listing(shelf.path).parts, Counter(), itertools.count(1000)
    wanted = {key(each) for number in (3, 4, 5) for each in of(Shard(number, 9), 60)}
    wanted |= {key(answer(number)) for number in range(3)}

    def fold(path):
        read[path] += 1
        lock = tmp_path / "lock"
        flat = [_journal.flatten(answer(next(made)))]
        if path == journals[0]:
            flat += _parts.appended([journals[2]], warn=False).values()
            journals[2].unlink()
        _folding.write_part(shelf.path, lock, flat)

    for module, name in ((_parts, "read_part"), (_parts, "read_journal")):
        real = getattr(module, name)

        def also(path, *args, real=real, **options):
            found = real(path, *args, **options)
            if path in (*parts, *journals[:2]):
                fold(path)
            return found

        monkeypatch.setattr(module, name, also)
    assert wanted <= _content.load(shelf.path, FAMILY.id).rows.keys()
    assert read == dict.fromkeys([*parts, *journals[:2]], 1)


def test_a_journal_that_becomes_a_part_between_two_looks_is_not_missed(tmp_path, monkeypatch):
    """Its process ends after one kind of files was listed, and before the other was."""
    ledger = Ledger(tmp_path)
    killed(tmp_path, KILLED.format(number=1, count=1, total=9, most=9))
    folder, real, listed = ledger.shelf("demo", FAMILY).path, Path.glob, []

    def glob(path, pattern):
        found = [*real(path, pattern)]
        if pattern.startswith(("part", "journal")):
            listed.append(pattern)
            if len(listed) == 1:
                (rest,) = real(path, "journal-*")
                _folding.write_part(path, tmp_path / "lock", _parts.appended([rest], warn=False).values())
                rest.unlink()
        return found

    monkeypatch.setattr(Path, "glob", glob)
    assert len(_content.load(folder, FAMILY.id).rows) == 9
    assert len(listed) > 1


def test_a_file_system_without_locks_is_an_error(tmp_path, monkeypatch):
    def refuse(handle, kind):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", refuse)
    ledger = Ledger(tmp_path)
    for use in (lambda: ledger.writing("demo", FAMILY), lambda: ledger.account(1.0)):
        with pytest.raises(FileError, match="has no locks") as error, use():
            pytest.fail("nobody would be kept out")
        assert "flock" in str(error.value)
    (tmp_path / "charges.jsonl").write_text("")
    for ask in (ledger.spent, lambda: ledger._charges.add("demo", "x", 1.0, "cut")):
        with pytest.raises(FileError, match="has no locks"):
            ask()


def test_a_journal_that_another_node_folded_is_an_error_that_names_locks(tmp_path):
    gone = pytest.raises(FileError, match="is gone while its process writes it")
    with gone as error, Ledger(tmp_path).writing("demo", FAMILY) as shelf:
        shelf.add([answer(1)])
        (path,) = shelf.path.glob("journal-*")
        path.unlink()
    assert error.value.where == str(path)


def test_nothing_that_runs_leaves_a_file_in_a_data_sets_folder(tmp_path):
    """DVC owns such a folder."""
    ledger = Ledger(tmp_path)
    with ledger.account(1.0), ledger.writing("demo", FAMILY, Shard(1, 2)) as shelf:
        shelf.add(of(Shard(1, 2), 9))
    made = sorted(str(path.relative_to(tmp_path)) for path in (tmp_path / "demo").rglob("*") if path.is_file())
    assert [Path(name).name.split("-")[0] for name in made] == ["family.json", "part"]
    assert ledger.families() == [("demo", FAMILY)]
    assert sorted(path.name for path in tmp_path.iterdir()) == [".running", "demo"]


def test_a_shard_holds_its_portion_in_memory(tmp_path, monkeypatch):
    """Sixteen row groups of long texts: one of sixteen shards holds a row group and its own, not all of them."""
    monkeypatch.setitem(_folding._LAYOUT, "row_group_size", 50)
    ledger = Ledger(tmp_path)
    with ledger.writing("demo", FAMILY) as shelf:
        shelf.add([answer(f"{number} " + "So it goes. " * 500) for number in range(800)])
    del shelf
    held = []
    for shard in (WHOLE, Shard(1, 16)):
        before = pa.total_allocated_bytes()
        part = ledger.shelf("demo", FAMILY, shard)
        held.append(pa.total_allocated_bytes() - before)
        assert 0 < len(part) <= 800
        del part
    assert held[1] < held[0] / 8
