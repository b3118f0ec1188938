"""Read logs of evaluation tools in their documented JSON formats: each sample's input, response and scores.

Inspect (``inspect log dump``), promptfoo (``promptfoo eval --output results.json``), DeepEval (a saved test run) and
lm-evaluation-harness (``samples_*.jsonl`` of ``--log_samples``).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from comperdial.core.errors import FileError

# Keys that identify a document, or one of its lines, as a log.
_KEYS = {
    "promptfoo": {"evalId", "results"},
    "Inspect": {"eval", "samples"},
    "DeepEval": {"testCases"},
    "lm-evaluation-harness": {"doc_id", "filtered_resps"},
}
# Inspect's grades: correct, incorrect, partially correct and no answer.
_LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}


@dataclass
class Log:
    """The content of a log.

    Attributes
    ----------
    tool
        The tool that wrote it.
    records
        One per sample: ``context_id``, ``system_id``, ``history``, ``response`` and ``references`` if present, and its
        scores by name.
    judges
        The model behind each score, where the log names it.
    notes
        What was not read.
    """

    tool: str
    records: list[dict[str, Any]] = field(default_factory=list)
    judges: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def scores(self) -> list[str]:
        """Return the names of the scores, in order."""
        return list(dict.fromkeys(name for record in self.records for name in record["scores"]))


def tool_of(value: Any) -> str | None:  # noqa: ANN401
    """Return the tool that wrote a document or its first line; None if it is not a log."""
    if isinstance(value, Mapping) and isinstance(value.get("testRunData"), Mapping):
        value = value["testRunData"]
    if not isinstance(value, Mapping):
        return None
    return next((tool for tool, keys in _KEYS.items() if keys <= value.keys()), None)


def read_log(tool: str, value: Any, path: Path) -> Log:  # noqa: ANN401
    """Read a log; ``value`` is its document, or the list of its lines.

    Raises
    ------
    FileError
        If it has no samples, or does not have the tool's documented format.
    """
    readers: Mapping[str, Callable[[Any, Log, Path], Iterator[dict[str, Any]]]] = {
        "promptfoo": _promptfoo,
        "Inspect": _inspect,
        "DeepEval": _deepeval,
        "lm-evaluation-harness": _harness,
    }
    log = Log(tool)
    try:
        log.records = list(readers[tool](value, log, path))
    except (AttributeError, TypeError, KeyError, IndexError, ValueError) as error:
        raise FileError(
            f"a log of {tool} that does not have its documented format ({type(error).__name__}: {error})",
            where=str(path),
            expected="an unmodified log of the tool",
        ) from error
    if not log.records:
        raise FileError(f"a log of {tool} without samples", where=str(path), expected="samples")
    return log


def _record(item: object, system: object, response: Any, history: Any, references: Any = None) -> dict[str, Any]:  # noqa: ANN401
    """Return a sample; the tool's reader adds ``scores``."""
    record: dict[str, Any] = {"context_id": str(item), "system_id": str(system), "response": _text(response)}
    record |= {"history": _history(history), "references": [_text(one) for one in _listed(references) if _text(one)]}
    return record | {"scores": {}}


def _listed(value: Any) -> list[Any]:  # noqa: ANN401
    return [] if value is None or value == "" else list(value) if isinstance(value, list) else [value]


def _text(value: Any) -> str:  # noqa: ANN401
    """Return a text, or the joined text parts of a message; anything else as JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list) and value and all(isinstance(one, Mapping) and "type" in one for one in value):
        return " ".join(str(one["text"]) for one in value if isinstance(one.get("text"), str))
    return json.dumps(value, ensure_ascii=False)


def _history(value: Any) -> list[Any]:  # noqa: ANN401
    """Return a prompt or a list of messages as a history."""
    if isinstance(value, str) and value.lstrip().startswith("[") and '"role"' in value:
        try:
            value = json.loads(value)
        except ValueError:
            return [value]
    if isinstance(value, list) and all(isinstance(one, Mapping) and "content" in one for one in value):
        turns = [{"speaker": str(one.get("role", "?")), "text": _text(one["content"])} for one in value]
        return [turn for turn in turns if turn["text"].strip()]
    return [value] if isinstance(value, str) and value.strip() else []


def _number(value: Any) -> float | None:  # noqa: ANN401
    """Return a score as a number; None if it is not one."""
    if isinstance(value, str):
        if value in _LETTERS:
            return _LETTERS[value]
        try:
            return float(value)
        except ValueError:
            return {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}.get(value.lower())
    return float(value) if isinstance(value, int | float) else None


def _add(log: Log, record: dict[str, Any], name: str, value: Any, judge: Any = None) -> None:  # noqa: ANN401
    """Add a numeric score; otherwise add a note."""
    if isinstance(value, Mapping):
        for key, one in value.items():
            _add(log, record, f"{name}:{key}", one, judge)
        return
    score = _number(value)
    if score is not None and score == score and abs(score) <= 1e15:
        record["scores"][name] = score
        if judge:
            log.judges[name] = str(judge)
    elif (
        value is not None and (note := f"score {name!r} is no number in some samples: left out there") not in log.notes
    ):
        log.notes.append(note)


def _inspect(document: Mapping[str, Any], log: Log, path: Path) -> Iterator[dict[str, Any]]:
    about = document["eval"]
    samples = document["samples"] or []
    scorers = {one["name"]: (one.get("options") or {}).get("model") for one in about.get("scorers") or []}
    several = any(sample.get("epoch", 1) != 1 for sample in samples)
    for sample in samples:
        output = sample.get("output") or {}
        choices = output.get("choices") or [{}]
        response = output.get("completion") or (choices[0].get("message") or {}).get("content")
        item = f"{sample['id']}/{sample['epoch']}" if several else sample["id"]
        model = about.get("model") or output.get("model") or path.stem
        record = _record(item, model, response, sample.get("input"), sample.get("target"))
        for name, score in (sample.get("scores") or {}).items():
            _add(log, record, name, score["value"], scorers.get(name))
        yield record


def _promptfoo(document: Mapping[str, Any], log: Log, path: Path) -> Iterator[dict[str, Any]]:
    results = document["results"]
    rows = results["results"]
    providers: dict[str, set[Any]] = {}
    for row in rows:
        providers.setdefault(_provider(row.get("provider")), set()).add(row.get("promptIdx"))
    tests: dict[str, int] = {}
    copies: Counter[tuple[str, str]] = Counter()
    for row in rows:
        system = _provider(row.get("provider")) or path.stem
        if len(providers[_provider(row.get("provider"))]) > 1:
            prompt = row.get("prompt") or {}
            system += f" ({prompt.get('label') or row.get('promptIdx')})"
        asked = row.get("vars") or (row.get("testCase") or {}).get("vars") or {}
        number = row.get("testIdx")
        item = str(
            number if number is not None else tests.setdefault(json.dumps(asked, sort_keys=True), len(tests) + 1)
        )
        copies[item, system] += 1
        if copies[item, system] > 1:
            # The same test is repeated.
            item = f"{item} ({copies[item, system]})"
        prompt = (row.get("prompt") or {}).get("raw")
        record = _record(item, system, (row.get("response") or {}).get("output"), prompt or _asked(asked))
        _add(log, record, "promptfoo", row.get("score"))
        graded = row.get("gradingResult") or {}
        for name, value in (row.get("namedScores") or graded.get("namedScores") or {}).items():
            _add(log, record, name, value)
        used: Counter[str] = Counter()
        for one in graded.get("componentResults") or []:
            assertion = (one or {}).get("assertion") or {}
            name = assertion.get("metric") or assertion.get("type")
            if name and name not in record["scores"]:
                used[name] += 1
                _add(
                    log,
                    record,
                    name if used[name] == 1 else f"{name} {used[name]}",
                    one.get("score"),
                    _provider(assertion.get("provider")),
                )
        yield record


def _provider(value: Any) -> str:  # noqa: ANN401
    return str(value.get("label") or value.get("id") or "") if isinstance(value, Mapping) else str(value or "")


def _asked(variables: Mapping[str, Any]) -> str:
    """Return a prompt's only variable, or all of them."""
    if len(variables) == 1:
        return _text(next(iter(variables.values())))
    return "\n".join(f"{name}: {_text(value)}" for name, value in variables.items())


def _deepeval(document: Mapping[str, Any], log: Log, path: Path) -> Iterator[dict[str, Any]]:
    run = document.get("testRunData") or document
    settings = run.get("hyperparameters") or {}
    model = settings.get("model") if isinstance(settings, Mapping) else None
    if conversations := run.get("conversationalTestCases"):
        log.notes.append(f"{len(conversations)} conversations are not read: their scores are of no single response")
    names = Counter(case.get("name") for case in run["testCases"])
    for number, case in enumerate(run["testCases"], start=1):
        name = case.get("name")
        item = name if name and names[name] == 1 else case.get("order", number)
        record = _record(
            item, model or path.stem, case.get("actualOutput"), case.get("input"), case.get("expectedOutput")
        )
        for metric in case.get("metricsData") or []:
            _add(log, record, metric["name"], metric.get("score"), metric.get("evaluationModel"))
        yield record


def _harness(lines: Sequence[Mapping[str, Any]], log: Log, path: Path) -> Iterator[dict[str, Any]]:
    # The tool writes `output/MODEL__NAME/samples_TASK_TIME.jsonl`.
    folder = path.absolute().parent.name
    system = folder.replace("__", "/") if "__" in folder else path.stem
    filters = {line.get("filter") for line in lines}
    records: dict[str, dict[str, Any]] = {}
    for line in lines:
        item = str(line["doc_id"])
        given = line.get("resps") or line["filtered_resps"]
        text = given
        while isinstance(text, list) and text:
            text = text[0]
        generated = text if isinstance(text, str) and not _is_likelihood(given) else None
        arguments = line.get("arguments")
        first = next(iter(arguments.values())) if isinstance(arguments, Mapping) and arguments else arguments
        prompt = first.get("arg_0") if isinstance(first, Mapping) else first
        while isinstance(prompt, list) and prompt:
            prompt = prompt[0]
        target = line.get("target")
        record = records.setdefault(item, _record(item, system, generated, prompt, target if generated else None))
        names = line.get("metrics") or [
            name for name, value in line.items() if name not in _HARNESS and _is_score(value)
        ]
        for name in names:
            suffix = f",{line['filter']}" if len(filters) > 1 else ""
            _add(log, record, f"{name}{suffix}", line.get(name))
    yield from records.values()


_HARNESS = frozenset(
    {
        "doc_id",
        "doc",
        "target",
        "arguments",
        "resps",
        "filtered_resps",
        "filter",
        "doc_hash",
        "prompt_hash",
        "target_hash",
    }
)


def _is_score(value: Any) -> bool:  # noqa: ANN401
    return isinstance(value, int | float)


def _is_likelihood(given: Any) -> bool:  # noqa: ANN401
    """Return whether answers are log-likelihoods and not texts."""
    while isinstance(given, list) and given and isinstance(given[0], list):
        given = given[0]
    return isinstance(given, list) and len(given) == 2 and str(given[1]) in ("True", "False")
