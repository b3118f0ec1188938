"""The ledger: nothing that was said to be kept is ever lost or there twice, whoever is killed and whenever."""

from __future__ import annotations

import dataclasses
import errno
import fcntl
import hashlib
import io
import json
import logging
import os
import random
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comperdial.core.errors import ComperdialError, ConfigError, FileError, SchemaError
from comperdial.core.files import printable, read_table
from comperdial.judges import _folding, _parts, base
from comperdial.judges.base import Answer, Completion, Family, encode_messages
from comperdial.judges.ledger import Ledger, Shelf

FAMILY = Family("cpdscore", "rules", "rules-1", {"temperature": 0.0, "rules": 1}, "cpds_detail", "ab" * 32)

CHILD = """
import logging, sys
from comperdial.judges.base import Answer, Completion, Family, encode_messages
from comperdial.judges.ledger import Ledger
logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stdout)
family = Family("cpdscore", "rules", "rules-1", {"temperature": 0.0, "rules": 1}, "cpds_detail", "ab" * 32)
def answer(number):
    return Answer(encode_messages([{"role": "user", "content": f"{number}?"}]), 0, Completion("4"), cost=0.5)
def say(text):
    print(text, flush=True)
"""


def answer(number: int, sample: int = 0, *, model: str | None = None, text: str = "4", cost: float | None = 0.5):
    messages = encode_messages([{"role": "user", "content": f"{number}?"}])
    return Answer(messages, sample, Completion(text, model=model), cost=cost)


def key(found: Answer) -> str:
    return base.key(FAMILY.id, found.messages, found.sample)


def write(root: Path, *answers: Answer) -> Shelf:
    with Ledger(root).writing("demo", FAMILY) as shelf:
        shelf.add(answers)
    return shelf


def read(root: Path) -> Shelf:
    return Ledger(root).shelf("demo", FAMILY)


def files(root: Path) -> list[str]:
    """Return the kinds of files of the family, sorted."""
    return sorted(path.name.split("-")[0] for path in read(root).path.iterdir() if path.name != ".lock")


def journal(root: Path, *answers: Answer) -> Path:
    """Leave the journal of a process that was killed."""
    write(root)
    with Ledger(root).writing("demo", FAMILY) as shelf:
        shelf.add(answers)
        (path,) = shelf.path.glob("journal-*")
        content = path.read_bytes()
        parts = [*shelf.path.glob("part-*")]
    for part in {*shelf.path.glob("part-*")} - {*parts}:
        part.unlink()
    path.write_bytes(content)
    return path


def child(root: Path, code: str) -> subprocess.Popen[str]:
    program = CHILD + f"ledger = Ledger({str(root)!r})\n" + code
    return subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)


# Keeping


def test_answers_are_there_at_once_after_the_end_and_for_others(tmp_path):
    full = Answer(
        encode_messages([{"role": "system", "content": "Rate."}, {"role": "user", "content": "Hello\n### Response:"}]),
        2,
        Completion("- Humanness: 4", "stop", 700, 6, "judge-2024", {"4": -0.25, "5": -1.5, "\ud83d": -30.0}),
        0.00718,
        812,
        1_760_000_000,
        "owner/repository@c0ffee:answers.json",
    )
    bare = answer(1, cost=None)
    ledger = Ledger(tmp_path)
    with ledger.writing("demo", FAMILY) as shelf:
        assert key(full) not in shelf
        assert shelf.get(key(full)) is None
        shelf.add([full, bare])
        for found in (shelf, read(tmp_path)):
            assert len(found) == 2
            assert key(full) in found
            assert found.get(key(full)) == full
    assert files(tmp_path) == ["family.json", "part"]
    for found in (shelf, read(tmp_path)):
        assert (len(found), found.get(key(full)), found.get(key(bare))) == (2, full, bare)
        assert "0" * 32 not in found
    assert ledger.families() == ledger.families("demo") == [("demo", FAMILY)]
    assert ledger.families("other") == []


def texts():
    return st.text(st.characters(exclude_categories=()), max_size=30)


def whole(most: int = 2**63 - 1):
    return st.none() | st.integers(0, most)


def cleaned(found: Answer) -> Answer:
    """Return an answer with each half of a surrogate pair spelled out, but for the tokens, whose JSON can say it."""
    completion = found.completion
    model, finish = (text and printable(text) for text in (completion.model, completion.finish))
    completion = dataclasses.replace(completion, text=printable(completion.text), model=model, finish=finish)
    origin = found.origin and printable(found.origin)
    return dataclasses.replace(found, messages=printable(found.messages), completion=completion, origin=origin)


ANSWERS = st.builds(
    Answer,
    texts().map(lambda text: encode_messages([{"role": "user", "content": text}])),
    st.integers(0, 5),
    st.builds(
        Completion,
        texts(),
        st.none() | texts(),
        whole(),
        whole(),
        st.none() | texts(),
        st.none() | st.dictionaries(texts(), st.floats(allow_nan=False), max_size=3),
    ),
    st.none() | st.floats(0, 1e6),
    whole(),
    whole(),
    st.none() | texts(),
)


@settings(max_examples=25)
@given(st.lists(ANSWERS, max_size=8), st.integers(0, 8))
def test_any_answer_comes_back_as_it_was_from_journal_and_part(answers, cut):
    wanted = {}
    for found in map(cleaned, answers):
        wanted.setdefault(key(found), found)
    with tempfile.TemporaryDirectory() as root:
        write(Path(root), *answers[:cut])
        with Ledger(root).writing("demo", FAMILY) as shelf:
            shelf.add(answers[cut:])
            assert {name: shelf.get(name) for name in wanted} == wanted
            frame = shelf.frame()
        again = read(Path(root))
        assert {name: again.get(name) for name in wanted} == wanted
        assert len(again) == len(shelf) == len(wanted) == len(frame)
        assert Ledger(root).spent() == pytest.approx(sum(found.cost or 0 for found in wanted.values()))


def test_the_first_answer_to_a_request_stays(tmp_path):
    with Ledger(tmp_path).writing("demo", FAMILY) as shelf:
        shelf.add([answer(1, text="first"), answer(1, text="second")])
        shelf.add([answer(1, text="third")])
        assert len(shelf) == 1
    before = [path.read_bytes() for path in shelf.path.glob("part-*")]
    write(tmp_path, answer(1, text="fourth"))
    assert [path.read_bytes() for path in shelf.path.glob("part-*")] == before
    assert read(tmp_path).get(key(answer(1))).completion.text == "first"


def test_runs_append_parts_and_never_touch_those_before(tmp_path):
    kept = {}
    for run in range(3):
        shelf = write(tmp_path, *(answer(number, run) for number in range(3)))
        parts = {path.name: path.read_bytes() for path in sorted(shelf.path.glob("part-*"))}
        assert parts.items() >= kept.items()
        kept = parts
    assert [name[:10] for name in kept] == ["part-0001-", "part-0002-", "part-0003-"]
    assert all(hashlib.sha256(data).hexdigest()[:8] == name[10:18] for name, data in kept.items())
    assert all(key(answer(number, run)) in read(tmp_path) for number in range(3) for run in range(3))


def test_the_bytes_of_a_part_do_not_depend_on_the_order_of_answers(tmp_path):
    answers = [answer(number, sample) for number in range(20) for sample in range(3)]
    found = []
    for seed in range(3):
        random.Random(seed).shuffle(answers)
        with Ledger(tmp_path / str(seed)).writing("demo", FAMILY) as shelf:
            for place in range(0, 60, 1 + 7 * seed):
                shelf.add(answers[place : place + 1 + 7 * seed])
        (part,) = shelf.path.glob("part-*")
        found.append((part.name, part.read_bytes()))
    assert found[0] == found[1] == found[2]


def test_a_long_prompt_that_others_share_takes_little_space(tmp_path):
    letters = random.Random(0).choices("abcdefgh ", k=3000)
    prompts = [encode_messages([{"role": "user", "content": "".join(letters) + str(number)}]) for number in range(700)]
    answers = [Answer(text, sample, Completion("- Humanness: 4")) for text in prompts for sample in range(3)]
    shelf = write(tmp_path, *answers)
    (part,) = shelf.path.glob("part-*")
    assert part.stat().st_size < 9_000 < sum(map(len, prompts)) / 200


def test_pandas_reads_parts_and_the_shelf_gives_a_frame(tmp_path):
    shelf = write(tmp_path, answer(2, 1), answer(2, model="m-1", cost=None), answer(1))
    (part,) = shelf.path.glob("part-*")
    frame = pd.read_parquet(part)
    assert [*frame] == [
        "messages", "sample", "answer", "finish", "input_tokens", "output_tokens", "model", "logprobs", "cost",
        "latency", "time", "origin",
    ]  # fmt: skip
    assert frame["messages"].tolist() == [answer(1).messages, answer(2).messages, answer(2).messages]
    assert frame["sample"].tolist() == [0, 0, 1]
    assert frame["model"].fillna("none").tolist() == ["none", "m-1", "none"]
    assert frame["cost"].isna().tolist() == [False, True, False]
    assert isinstance(frame["messages"].iloc[0], str)
    with Ledger(tmp_path).writing("demo", FAMILY) as shelf:
        shelf.add([answer(9)])
        assert shelf.frame()["messages"].tolist() == [*frame["messages"], answer(9).messages]
    assert read(tmp_path / "none").frame().columns.tolist() == ["key", *frame]


def test_keys_are_those_of_requests(tmp_path):
    answers = [answer(number, sample) for number in range(3) for sample in (0, 1, 12)]
    table = _parts.to_table(map(_flat, answers))
    assert sorted(_parts.keys(FAMILY.id, table)) == sorted(map(key, answers))


def _flat(found: Answer) -> dict:
    from comperdial.judges._journal import flatten

    return flatten(found)


@pytest.mark.parametrize(
    ("change", "problem"),
    [({"sample": 1.0}, "sample is 1.0"), ({"latency": 2**63}, "too many digits"), ({"messages": None}, "messages")],
)
def test_a_value_that_no_part_could_hold_never_gets_into_a_journal(tmp_path, change, problem):
    with Ledger(tmp_path).writing("demo", FAMILY) as shelf, pytest.raises(SchemaError, match=problem):
        shelf.add([answer(0), dataclasses.replace(answer(1), **change)])
    assert len(read(tmp_path)) == 0


def test_only_who_holds_the_lock_may_add(tmp_path):
    shelf = write(tmp_path, answer(1))
    for closed in (shelf, read(tmp_path)):
        with pytest.raises(RuntimeError, match="open for reading"):
            closed.add([answer(2)])


# Being killed


def test_an_answer_is_on_the_disk_before_anyone_sees_it(tmp_path, monkeypatch):
    real = os.fsync
    synced: list[tuple[str, int]] = []
    seen: list[int] = []

    def spy(handle):
        name = Path(f"/proc/self/fd/{handle}").readlink().name
        synced.append((name.split("-")[0], os.fstat(handle).st_size))
        seen.append(len(shelf))
        real(handle)

    with Ledger(tmp_path).writing("demo", FAMILY) as shelf:
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", spy)
            shelf.add([answer(number) for number in range(5)])
            shelf.add([answer(number) for number in range(5, 9)])
        (path,) = shelf.path.glob("journal-*")
        lines = path.read_bytes().splitlines(keepends=True)
        # The folder once, as a new name is as easily lost; then every batch whole.
        assert [name for name, _ in synced] == [FAMILY.id, "journal", "journal"]
        assert seen == [0, 0, 5]
        assert [size for _, size in synced[1:]] == [len(b"".join(lines[:5])), len(b"".join(lines))]


@pytest.mark.parametrize("name", ["0" * 16, "f" * 16])
def test_what_the_disk_does_not_confirm_is_not_used(tmp_path, monkeypatch, name):
    real, names = secrets.token_hex, ["8" * 16, name]
    # Of eight bytes: a journal's. Temporary files have shorter ones.
    monkeypatch.setattr(secrets, "token_hex", lambda size: names.pop() if size == 8 else real(size))

    def failing(handle):
        raise OSError(errno.EIO, "Input/output error")

    with Ledger(tmp_path).writing("demo", FAMILY) as shelf:
        shelf.add([answer(0)])
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", failing)
            with pytest.raises(FileError, match="Input/output error"):
                shelf.add([answer(1, text="unsure"), answer(2, text="unsure")])
        assert key(answer(1)) not in shelf
        shelf.add([answer(1, text="used")])
        assert len(shelf) == 2
    # What was paid for and arrived all the same is kept, but never in place of what was used.
    kept = read(tmp_path)
    assert [kept.get(key(answer(number))).completion.text for number in range(3)] == ["4", "used", "unsure"]


def test_what_was_said_to_be_kept_survives_kill_9(tmp_path):
    code = """
with ledger.writing("demo", family) as shelf:
    for number in range(10**9):
        shelf.add([answer(3 * number + offset) for offset in range(3)])
        say(number)
"""
    process = child(tmp_path, code)
    for _ in range(200):
        process.stdout.readline()
    process.kill()
    said = 200 + len([line for line in process.stdout if line.endswith("\n")])
    process.communicate()
    kept = read(tmp_path)
    assert all(key(answer(number)) in kept for number in range(3 * said))
    assert 3 * said <= len(kept) <= 3 * said + 3
    assert files(tmp_path) == ["family.json", "journal"]
    assert Ledger(tmp_path).spent() == 0.5 * len(kept)
    # The next run makes it a part, with its own.
    assert len(write(tmp_path, answer(-1))) == len(kept) + 1
    assert files(tmp_path) == ["family.json", "part"]


def test_half_a_last_line_is_ignored_with_one_warning(tmp_path, caplog):
    path = journal(tmp_path, answer(1), answer(2))
    path.write_bytes(path.read_bytes()[:-9])
    with caplog.at_level(logging.WARNING), Ledger(tmp_path).writing("demo", FAMILY) as shelf:
        assert (key(answer(1)) in shelf, key(answer(2)) in shelf) == (True, False)
        shelf.add([answer(2)])
    assert [record.message for record in caplog.records] == [
        f"{path}, line 2: ignored, as it ends in the middle: its process was stopped, or writes it now"
    ]
    assert len(read(tmp_path)) == 2
    assert not path.exists()


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        (b'{"messages": "[]", "sam\n', "the line is broken"),
        (b"\xff\xfe\n", "the line is broken"),
        (b"\0\0\0\n", "the line is broken"),
        (b'{"messages": "[]"}\n', "the line is no answer"),
        (b"[]\n", "the line is no answer"),
        (json.dumps({**_flat(answer(1)), "sample": "0"}).encode() + b"\n", "sample is '0', which is no int"),
    ],
)
def test_a_broken_line_in_the_middle_is_an_error_that_names_it(tmp_path, broken, problem):
    path = journal(tmp_path, answer(1), answer(2))
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + broken + second)
    with pytest.raises(FileError, match=problem) as error:
        read(tmp_path)
    assert error.value.where == f"{path}, line 2"
    with pytest.raises(FileError, match=problem), Ledger(tmp_path).writing("demo", FAMILY):
        pytest.fail("nothing may be asked before the ledger is whole")
    assert path.exists()


def test_an_end_between_writing_the_part_and_deleting_the_journals_costs_nothing(tmp_path):
    ledger = Ledger(tmp_path)
    with ledger.writing("demo", FAMILY) as shelf:
        shelf.add([answer(1), answer(2)])
        (path,) = shelf.path.glob("journal-*")
        content = path.read_bytes()
    path.write_bytes(content)
    (shelf.path / ".part-0002-rest.parquet").write_bytes(b"PAR1")
    assert len(read(tmp_path)) == 2
    assert ledger.spent() == 1.0
    assert sum(read(tmp_path).versions.values()) == 0
    write(tmp_path)
    assert files(tmp_path) == ["family.json", "part"]
    assert len(read(tmp_path)) == 2


def test_a_part_that_cannot_be_written_leaves_the_journals(tmp_path, monkeypatch, caplog):
    def full(folder, lock, rows):
        raise FileError("cannot be written (No space left on device)", where=str(folder))

    with monkeypatch.context() as patch:
        patch.setattr(_folding, "write_part", full)
        with pytest.raises(FileError, match="No space"):
            write(tmp_path, answer(1))
        # An error of the run itself is the one that is raised.
        with pytest.raises(KeyError), Ledger(tmp_path).writing("demo", FAMILY) as shelf:
            shelf.add([answer(2)])
            raise KeyError
        assert "No space" in caplog.text
    assert files(tmp_path) == ["family.json", "journal", "journal"]
    write(tmp_path)
    assert files(tmp_path) == ["family.json", "part"]
    assert all(key(answer(number)) in read(tmp_path) for number in (1, 2))


def test_an_error_of_the_run_still_folds(tmp_path):
    with pytest.raises(KeyboardInterrupt), Ledger(tmp_path).writing("demo", FAMILY) as shelf:
        shelf.add([answer(1)])
        raise KeyboardInterrupt
    assert files(tmp_path) == ["family.json", "part"]


def test_a_full_disk_breaks_no_journal(tmp_path, monkeypatch):
    """Half a line is written, then nothing fits; later there is space again."""
    real = os.write
    left = [150]

    def filling(handle, data):
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        size = real(handle, data[: left[0]])
        left[0] -= size
        return size

    with Ledger(tmp_path).writing("demo", FAMILY) as shelf:
        shelf.add([answer(1)])
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", filling)
            with pytest.raises(FileError, match="No space left"):
                shelf.add([answer(2), answer(3)])
        assert len(shelf) == 1
        assert key(answer(2)) not in shelf
        shelf.add([answer(2), answer(3)])
        assert shelf.get(key(answer(1))) == answer(1)
        assert shelf.get(key(answer(3))) == answer(3)
    assert len(read(tmp_path)) == 3


# Two at once


def test_a_second_process_waits_says_so_once_and_asks_nothing_again(tmp_path):
    code = """
with ledger.writing("demo", family) as shelf:
    say(len(shelf))
    shelf.add([answer(number) for number in range(1, 4)])
"""
    with Ledger(tmp_path).writing("demo", FAMILY) as shelf:
        process = child(tmp_path, code)
        assert process.stdout.readline() == "demo/cpdscore: another process is judging this; waiting\n"
        shelf.add([answer(0, text="ours"), answer(1, text="ours")])
    out, _ = process.communicate(timeout=20)
    assert (process.returncode, out) == (0, "2\n")
    kept = read(tmp_path)
    assert [kept.get(key(answer(number))).completion.text for number in range(4)] == ["ours", "ours", "4", "4"]
    assert len([*kept.path.glob("part-*")]) == 2


def test_two_processes_lose_nothing_and_keep_nothing_twice(tmp_path):
    code = """
for turn in range(4):
    with ledger.writing("demo", family) as shelf:
        for number in range({first} + 10 * turn, {first} + 10 * turn + 20):
            shelf.add([answer(number)])
"""
    processes = [child(tmp_path, code.format(first=first)) for first in (0, 15)]
    # A reader takes no lock, and never sees an answer vanish.
    seen = 0
    while any(process.poll() is None for process in processes):
        found = len(read(tmp_path))
        assert found >= seen
        seen = found
        time.sleep(0.01)
    assert [process.wait() for process in processes] == [0, 0]
    for process in processes:
        process.communicate()
    kept = read(tmp_path)
    assert len(kept) == 65
    assert sum(len(pd.read_parquet(part)) for part in kept.path.glob("part-*")) == 65
    assert all(key(answer(number)) in kept for number in range(65))


def test_a_reader_survives_a_fold_between_listing_and_opening(tmp_path, monkeypatch):
    path = journal(tmp_path, answer(1), answer(2))
    real = _parts.listing
    before = _parts.Listing([], [path])
    write(tmp_path)
    stale = [before]
    monkeypatch.setattr(_parts, "listing", lambda folder: stale.pop() if stale else real(folder))
    assert len(read(tmp_path)) == 2
    stale.append(before)
    assert Ledger(tmp_path).spent() == 1.0


def test_a_folder_that_never_stays_the_same_is_an_error_not_a_hang(tmp_path, monkeypatch):
    write(tmp_path, answer(1))
    gone = tmp_path / "journal-0.jsonl"
    monkeypatch.setattr(_parts, "listing", lambda folder: _parts.Listing([], [gone]))
    with pytest.raises(FileError, match="keep changing"):
        read(tmp_path)


def test_threads_share_a_shelf(tmp_path):
    with Ledger(tmp_path).writing("demo", FAMILY) as shelf:
        threads = [
            threading.Thread(target=lambda: [shelf.add([answer(number)]) for number in range(20)]) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        (path,) = shelf.path.glob("journal-*")
        assert len(path.read_bytes().splitlines()) == len(shelf) == 20
        assert all(shelf.get(key(answer(number))) == answer(number) for number in range(20))


def test_one_process_that_would_wait_for_itself_is_told(tmp_path):
    ledger = Ledger(tmp_path)
    with (
        ledger.writing("demo", FAMILY),
        pytest.raises(RuntimeError, match="this process"),
        ledger.writing("demo", FAMILY),
    ):
        pytest.fail("the lock is held")
    write(tmp_path, answer(1))


# What is told


def test_a_new_model_version_is_warned_of_once(tmp_path, caplog):
    write(tmp_path, answer(1, model="judge-0613"), answer(2, model="judge-0613"), answer(3))
    assert not caplog.records
    with Ledger(tmp_path).writing("demo", FAMILY) as shelf:
        shelf.add([answer(4, model="judge-0613"), answer(5)])
        assert not caplog.records
        shelf.add([answer(6, model="judge-1106")])
        shelf.add([answer(7, model="judge-1106"), answer(8, model="judge-0125")])
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    for part in ("judge-0613", "judge-1106", "drift"):
        assert part in record.message
    for found in (shelf, read(tmp_path)):
        assert found.versions == {"judge-0613": 3, "judge-1106": 2, "judge-0125": 1}


def test_spent_adds_up_all_families_parts_and_journals(tmp_path):
    other = dataclasses.replace(FAMILY, judge="other", model="rules-2")
    ledger = Ledger(tmp_path)
    assert ledger.spent() == 0
    write(tmp_path, answer(1, cost=0.1), answer(2, cost=None))
    write(tmp_path, answer(3, cost=0.2))
    with ledger.writing("usr", other) as shelf:
        shelf.add([answer(1, cost=2)])
        assert ledger.spent() == pytest.approx(2.3, abs=1e-12)
    assert ledger.spent() == pytest.approx(2.3, abs=1e-12)
    assert ledger.families() == [("demo", FAMILY), ("usr", other)]


def test_what_calls_without_an_answer_may_have_cost_is_kept_and_counted(tmp_path):
    ledger = Ledger(tmp_path)
    with ledger.writing("demo", FAMILY) as shelf:
        shelf.add([answer(1, cost=0.1)])
        shelf.charge(0.25, "timed out")
        assert Ledger(tmp_path).spent() == pytest.approx(0.35)
        shelf.charge(1, "cut")
    assert ledger.spent() == pytest.approx(1.35)
    first, second = map(json.loads, (tmp_path / "charges.jsonl").read_text().splitlines())
    assert abs(first.pop("time") - time.time()) < 60
    assert first == {"dataset": "demo", "family": FAMILY.id, "cost": 0.25, "kind": "timed out"}
    assert (second["cost"], second["kind"]) == (1.0, "cut")
    assert ledger.families() == [("demo", FAMILY)]
    with pytest.raises(RuntimeError, match="open for reading"):
        read(tmp_path).charge(0.25, "cut")


def test_half_a_charge_is_ignored_with_a_warning_and_the_next_one_is_whole(tmp_path, caplog):
    path = tmp_path / "charges.jsonl"
    with Ledger(tmp_path).writing("demo", FAMILY) as shelf:
        shelf.charge(0.25, "timed out")
        shelf.charge(0.5, "cut")
        path.write_bytes(path.read_bytes()[:-5])
        assert Ledger(tmp_path).spent() == 0.25
        (record,) = caplog.records
        assert record.message.startswith(f"{path}, line 2: ignored, as it ends in the middle")
        shelf.charge(2.0, "cut")
    assert Ledger(tmp_path).spent() == 2.25
    assert len(path.read_text().splitlines()) == 2


@pytest.mark.parametrize(
    "broken",
    [b"{\n", b"\xff\n", b"[]\n", b'{"cost": 1.0}\n']
    + [
        json.dumps({"time": 1, "dataset": "d", "family": "f", "cost": cost, "kind": "cut"}).encode() + b"\n"
        for cost in ("1", True, -1.0, float("nan"), None)
    ],
)
def test_a_broken_charge_is_an_error_that_names_it(tmp_path, broken):
    path = tmp_path / "charges.jsonl"
    with Ledger(tmp_path).writing("demo", FAMILY) as shelf:
        shelf.charge(0.25, "timed out")
    path.write_bytes(broken + path.read_bytes())
    with pytest.raises(FileError, match="is no charge") as error:
        Ledger(tmp_path).spent()
    assert error.value.where == f"{path}, line 1"


def test_a_charge_that_the_disk_does_not_confirm_is_an_error(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, "no space left")

    with Ledger(tmp_path).writing("demo", FAMILY) as shelf:
        shelf.charge(0.25, "timed out")
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(FileError, match="no space left"):
            shelf.charge(0.25, "timed out")
        monkeypatch.undo()


def test_charges_are_written_one_after_the_other(tmp_path):
    with Ledger(tmp_path).writing("demo", FAMILY) as shelf:
        shelf.charge(0.25, "cut")
        with (tmp_path / "charges.jsonl").open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            other = threading.Thread(target=shelf.charge, args=(0.5, "cut"))
            other.start()
            other.join(0.1)
            assert other.is_alive()
        other.join(20)
    assert Ledger(tmp_path).spent() == 0.75


def test_charges_of_two_processes_are_all_kept(tmp_path):
    code = """
import dataclasses
family = dataclasses.replace(family, model="other")
with ledger.writing("demo", family) as shelf:
    say("ready")
    for _ in range(100):
        shelf.charge(0.5, "cut")
"""
    process = child(tmp_path, code)
    assert process.stdout.readline() == "ready\n"
    with Ledger(tmp_path).writing("demo", FAMILY) as shelf:
        for _ in range(100):
            shelf.charge(0.25, "cut")
            assert Ledger(tmp_path).spent() > 0
    assert process.wait(timeout=20) == 0
    assert Ledger(tmp_path).spent() == 75


def test_an_altered_part_is_an_error(tmp_path):
    shelf = write(tmp_path, answer(1))
    (part,) = shelf.path.glob("part-*")
    data = part.read_bytes()
    part.write_bytes(data[:-1] + b"2")
    with pytest.raises(FileError, match="altered or cut") as error:
        read(tmp_path)
    assert error.value.where == str(part)


def test_a_part_that_holds_something_else_is_an_error(tmp_path):
    shelf = write(tmp_path, answer(1))
    (part,) = shelf.path.glob("part-*")
    part.unlink()
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"messages": ["[]"], "cost": [1.0]}), sink)
    for data, problem in ((sink.getvalue().to_pybytes(), "holds no answers"), (b"PAR1", "not a readable Parquet")):
        part = shelf.path / f"part-0001-{hashlib.sha256(data).hexdigest()[:8]}.parquet"
        part.write_bytes(data)
        with pytest.raises(FileError, match=problem):
            read(tmp_path)
        part.unlink()


@pytest.mark.parametrize("name", ["", ".", "..", ".git", "a/b", "/etc", "a b", "demo\n", "démo", "a\\b"])
def test_names_that_could_be_paths_are_refused(tmp_path, name):
    for dataset, judge in ((name, "judge"), ("demo", name)):
        family = dataclasses.replace(FAMILY, judge=judge)
        with pytest.raises(ConfigError, match="cannot name"):
            Ledger(tmp_path).shelf(dataset, family)
        with pytest.raises(ConfigError, match="cannot name"), Ledger(tmp_path).writing(dataset, family):
            pytest.fail("no folder may be made")
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    "parameters",
    [
        {"api_key": "x-1"},
        {"token": "x-1"},
        {"access_token": "x-1"},
        {"extra_headers": {"X-Org": "x-1"}},
        {"extra_body": {"auth": "x-1"}},
        {"user": "sk-proj-x-1"},
        {"stop": ["\n", "Bearer x-12345"]},
        {"extra_body": [{"proxy": "http://me:x-1@proxy.example"}]},
    ],
)
def test_a_secret_is_refused_and_not_told(tmp_path, parameters):
    family = dataclasses.replace(FAMILY, parameters=parameters)
    with pytest.raises(ConfigError, match="looks like a secret") as error, Ledger(tmp_path).writing("demo", family):
        pytest.fail("nothing may be written")
    assert "x-1" not in str(error.value)
    assert not [*tmp_path.iterdir()]


def test_the_family_is_written_down(tmp_path):
    shelf = write(tmp_path, answer(1))
    assert shelf.path == tmp_path / "demo" / "cpdscore" / FAMILY.id
    found = json.loads((shelf.path / "family.json").read_text("utf-8"))
    assert found == {"id": FAMILY.id, **dataclasses.asdict(FAMILY)}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"model": "rules-2"}, "describes family"),
        ({"judge": "other"}, "describes family"),
        ({"id": "0" * 16}, "describes family"),
        ({"key": 1}, "not the description"),
        ({"parameters": []}, "'parameters' is"),
        (None, "cannot be read"),
    ],
)
def test_a_folder_that_is_not_what_its_name_says_is_an_error(tmp_path, change, problem):
    shelf = write(tmp_path, answer(1))
    path = shelf.path / "family.json"
    content = json.loads(path.read_text("utf-8"))
    path.unlink()
    if change is not None:
        path.write_text(json.dumps({**content, **change}), "utf-8")
    ledger = Ledger(tmp_path)
    for use in (ledger.families, ledger.spent, lambda: read(tmp_path), lambda: write(tmp_path, answer(2))):
        with pytest.raises(ComperdialError, match=problem) as error:
            use()
        assert str(path) in str(error.value)
    renamed = shelf.path.with_name("f" * 16)
    if change is None:
        path.write_text(json.dumps(content), "utf-8")
        shutil.move(shelf.path, renamed)
        with pytest.raises(FileError, match="describes family"):
            ledger.families()


def test_a_folder_that_nobody_wrote_to_is_no_family(tmp_path):
    (tmp_path / "demo" / "cpdscore" / FAMILY.id).mkdir(parents=True)
    assert Ledger(tmp_path).families() == []
    assert len(read(tmp_path)) == 0


def test_no_thread_of_arrow_reads_through_python(tmp_path, monkeypatch):
    """One that still does when the interpreter ends takes it down, after the right output: status 134."""
    strangers = []

    class Watched(io.BufferedReader):
        def read(self, *size):
            strangers.extend([self.name] if threading.current_thread() is not threading.main_thread() else [])
            return super().read(*size)

    def watched(file, mode="r", *more, **options):
        return Watched(io.FileIO(file)) if mode == "rb" else opened(file, mode, *more, **options)

    path = write(tmp_path, answer(1)).path
    table = tmp_path / "mine.parquet"
    pd.DataFrame({"response": ["Yes."]}).to_parquet(table)
    opened = io.open
    monkeypatch.setattr(io, "open", watched)
    monkeypatch.setattr("builtins.open", watched)
    assert len(read(tmp_path)) == 1 and Ledger(tmp_path).spent() >= 0 and len(read_table(table)) == 1
    assert not strangers and any(path.glob("part-*"))


def test_a_lock_that_is_a_link_to_itself_is_an_error_of_the_file(tmp_path):
    write(tmp_path, answer(1))
    locks = [path for path in tmp_path.rglob("*") if path.is_file() and "locks" in path.parts]
    assert locks
    for path in locks:
        path.unlink()
        path.symlink_to(path.name)
    with pytest.raises(FileError, match="Too many levels of symbolic links"):
        write(tmp_path, answer(2))
