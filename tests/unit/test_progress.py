"""The lines of a run: its steps and the time that is left."""

import json

import pytest

from snakemake_logger_plugin_comperdial import Progress, about, clock, earlier_runs


def run(progress, *jobs):
    """Run jobs of (rule, log, start, end) one after the other; return the line of each."""
    lines = []
    for number, (rule, log, start, end) in enumerate(jobs):
        progress.start(number, rule, log, start)
        progress.finish(number, end)
        lines.append(progress.line(f"{rule} {log}", end))
    return lines


def test_a_line_says_what_is_done_and_what_is_left():
    progress = Progress({"score": 2, "table": 8}, {"score": {"a": 100, "b": 200}, "table": {"x": 10}}, 0)
    # Twice as fast as before; 200 s of scoring and 80 s of tables are left.
    assert run(progress, ("score", "a", 0, 50)) == ["[ 1/10] 0:50 elapsed, about 2 min left    score a"]
    assert run(progress, ("score", "b", 50, 150)) == ["[ 2/10] 2:30 elapsed, about 40 s left     score b"]


def test_the_last_step_leaves_nothing():
    assert run(Progress({"all": 1}, {}, 0), ("all", "", 0, 3725)) == ["[1/1] 1:02:05 elapsed                   all "]


def test_without_records_steps_are_counted():
    progress = Progress({"score": 4, "table": 6}, {}, 0)
    assert progress.left(0) is None
    run(progress, ("score", "a", 0, 10), ("score", "b", 10, 20))
    assert progress.left(20) == pytest.approx(80)


def test_what_a_running_job_has_done_counts():
    progress = Progress({"score": 2}, {"score": {"long": 300, "short": 30}}, 0)
    progress.start(1, "score", "long", 0)
    progress.start(2, "score", "short", 0)
    progress.finish(2, 30)
    # 60 s of 330 in 30 s: two at a time.
    assert progress.left(30) == pytest.approx(270 / 2)
    assert progress.left(600) == 0, "a job that takes longer than before"


def test_a_job_without_a_record_takes_what_its_rule_does():
    progress = Progress({"score": 1, "page": 1}, {"score": {"a": 100, "b": 200}, "table": {"x": 15}}, 0)
    assert progress.left(0) == pytest.approx(150 + 105)


def test_records_of_earlier_runs(tmp_path):
    def record(name, **entries):
        (tmp_path / name).write_text(json.dumps({"rule": "score", "log": ["a.log"], **entries}))

    record("one", starttime=10.0, endtime=20.0)
    record("two", starttime=10.0, endtime=25.0)
    record("none", starttime=None, endtime=None)
    record("logless", log=[], starttime=1.0, endtime=2.0)
    (tmp_path / "half").write_text('{"rule": ')
    assert earlier_runs(tmp_path) == {"score": {"a.log": 15.0}}
    assert earlier_runs(tmp_path / "missing") == {}


@pytest.mark.parametrize(
    ("seconds", "shown", "rounded"),
    [
        (3, "0:03", "a few seconds"),
        (31, "0:31", "about 40 s"),
        (354, "5:54", "about 6 min"),
        (9000, "2:30:00", "about 2.5 h"),
    ],
)
def test_durations(seconds, shown, rounded):
    assert clock(seconds) == shown
    assert about(seconds) == rounded
