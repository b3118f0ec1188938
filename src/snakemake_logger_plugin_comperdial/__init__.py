"""The logger of ``snakemake --logger comperdial``: a line for each finished step, and about how long the rest will take.

Snakemake finds a logger by the name of its package. Warnings and errors are Snakemake's own, in full; its lines about cores,
shells and selected jobs are left out.
"""

from __future__ import annotations

import json
import logging
import math
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent


def earlier_runs(folder: Path = Path(".snakemake/metadata")) -> dict[str, dict[str, float]]:
    """Return the seconds that each job took when it last ran, by rule and log file, from Snakemake's records.

    Pulled results come with records too: of the machine where they were made.
    """
    times: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for path in folder.rglob("*"):
        try:
            record = json.loads(path.read_bytes())
            # A job has a record for each of its outputs.
            times[record["rule"]][record["log"][0]] += [float(record["starttime"]), float(record["endtime"])]
        except (OSError, ValueError, LookupError, TypeError):
            continue
    return {rule: {log: max(ends) - min(ends) for log, ends in logs.items()} for rule, logs in times.items()}


class Progress:
    """How far a run is that ``began`` at a time in seconds, and how long the rest of its ``steps`` (jobs by rule) will take.

    A job is expected to take what it took ``earlier``, else what jobs of its rule did, else what all did; without records, as
    long as those that are done. The rest goes at the pace of this run, since machines differ and jobs run side by side.
    """

    def __init__(self, steps: Mapping[str, int], earlier: Mapping[str, Mapping[str, float]], began: float) -> None:
        self.total, self.done, self.began = sum(steps.values()), 0, began
        self._waiting = dict(steps)
        self._earlier = {rule: dict(logs) for rule, logs in earlier.items()}
        self._of_rule = {rule: _mean(logs.values()) for rule, logs in earlier.items()}
        self._of_all = _mean(seconds for logs in earlier.values() for seconds in logs.values())
        # Of running jobs: what is expected, when they started; of finished ones: what was expected, what it took.
        self._running: dict[object, tuple[float | None, float]] = {}
        self._finished: list[tuple[float | None, float]] = []

    def start(self, job: object, rule: str, log: str, now: float) -> None:
        """Note that a job has started."""
        self._waiting[rule] = max(0, self._waiting.get(rule, 0) - 1)
        self._running[job] = self._earlier.get(rule, {}).pop(log, self._of_rule.get(rule, self._of_all)), now

    def finish(self, job: object, now: float) -> None:
        """Note that a job has finished."""
        self.done += 1
        expected, started = self._running.pop(job, (None, now))
        self._finished.append((expected, now - started))

    def left(self, now: float) -> float | None:
        """Return the seconds that the rest will take; None where nothing is known yet."""
        usual = _mean(took for _, took in self._finished) if self._of_all is None else self._of_all
        if usual is None:
            return None
        spent, rest = sum(usual if known is None else known for known, _ in self._finished), 0.0
        for known, started in self._running.values():
            expected = usual if known is None else known
            spent, rest = spent + min(expected, now - started), rest + max(0.0, expected - (now - started))
        for rule, count in self._waiting.items():
            # Records of jobs that have started are gone from these.
            mean = _mean(self._earlier.get(rule, {}).values())
            rest += count * (mean if mean is not None else self._of_rule.get(rule) or usual)
        return rest * (now - self.began) / spent if spent else rest

    def line(self, what: str, now: float) -> str:
        """Return the line of a step that has just finished."""
        left = self.left(now) if self.done < self.total else None
        times = f"{clock(now - self.began)} elapsed" + ("" if left is None else f", {about(left)} left")
        return f"[{self.done:>{len(str(self.total))}}/{self.total}] {times:<33} {what}"


def _mean(values: Iterable[float]) -> float | None:
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else None


def clock(seconds: float) -> str:
    """Return a duration as a clock shows it: 1:12 or 2:03:40."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def about(seconds: float) -> str:
    """Return a duration in round numbers."""
    if seconds < 55:
        return f"about {math.ceil(seconds / 10) * 10} s" if seconds > 10 else "a few seconds"
    return f"about {round(seconds / 60)} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"


class LogHandler(LogHandlerBase):
    """Writes a line for each finished step, and Snakemake's warnings and errors as they are."""

    writes_to_stream = True
    writes_to_file = has_filter = has_formatter = needs_rulegraph = False

    def __post_init__(self) -> None:
        """Begin with no job known."""
        self.progress, self.failed = Progress({}, {}, time.monotonic()), False
        self.jobs: dict[object, str] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Write the message for a record, if it has one."""
        try:
            if text := self.message(record, time.monotonic()):
                print(text, file=sys.stdout if self.common_settings.stdout else sys.stderr, flush=True)
        except Exception:
            self.handleError(record)

    def message(self, record: logging.LogRecord, now: float) -> str | None:
        """Return what to write for a record; None if it is of no interest to a user."""
        event, fields = getattr(record, "event", None), vars(record)
        self.failed |= record.levelno >= logging.ERROR
        if record.levelno >= logging.WARNING or self.common_settings.dryrun:
            return self.format(record)
        if event == LogEvent.RUN_INFO:
            steps = {rule: count for rule, count in fields["stats"].items() if rule != "total"}
            self.progress = Progress(steps, earlier_runs(), now)
            left = self.progress.left(now)
            total = f"{self.progress.total} step{'' if self.progress.total == 1 else 's'}"
            return total + (f"; one after the other they took {about(left)}" if left else "")
        if event == LogEvent.JOB_INFO:
            wildcards = (fields.get("wildcards") or {}).values()
            self.jobs[fields["jobid"]] = fields["rule_msg"] or " ".join([fields["rule_name"], *map(str, wildcards)])
            self.progress.start(fields["jobid"], fields["rule_name"], (fields["log"] or [""])[0], now)
        elif event == LogEvent.JOB_FINISHED:
            self.progress.finish(fields["job_id"], now)
            return self.progress.line(self.jobs.pop(fields["job_id"], ""), now)
        elif event is None and record.getMessage().startswith(("Nothing to be done", *["Complete log"] * self.failed)):
            return record.getMessage()
        return None
