"""Read logs of evaluation tools in their documented JSON formats: each sample's input, response and scores.

Inspect (``inspect log dump``), promptfoo (``promptfoo eval --output results.json``), DeepEval (a saved test run) and
lm-evaluation-harness (``samples_*.jsonl`` of ``--log_samples``).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from comperdial.core.errors import FileError
from comperdial.data.own_files import number

# Scores in words, and Inspect's grades: correct, incorrect, partially correct and no answer.
_WORDS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, "true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}


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
    return next((tool for tool, (keys, _) in _TOOLS.items() if keys <= value.keys()), None)


def read_log(tool: str, value: Any, path: Path) -> Log:  # noqa: ANN401
    """Read a log; ``value`` is its document, or the list of its lines.

    Raises
    ------
    FileError
        If it has no samples, or does not have the tool's documented format.
    """
    log, (_, reader) = Log(tool), _TOOLS[tool]
    try:
        log.records = list(reader(value, log, path))
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
    listed = references if isinstance(references, list) else [references]
    return {
        "context_id": str(item),
        "system_id": str(system),
        "response": _text(response),
        "history": _history(history),
        "references": [text for one in listed if (text := _text(one))],
        "scores": {},
    }


def _at(node: Any, *paths: str) -> Any:  # noqa: ANN401
    """Return the first value that is not empty at a path such as ``prompt.label``; None if there is none."""
    for path in paths:
        value = node
        for key in path.split("."):
            value = (value or {}).get(key)
        if value not in (None, "", [], {}):
            return value
    return None


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
        with suppress(ValueError):
            value = json.loads(value)
    if isinstance(value, list) and all(isinstance(one, Mapping) and "content" in one for one in value):
        turns = [{"speaker": str(one.get("role", "?")), "text": _text(one["content"])} for one in value]
        return [turn for turn in turns if turn["text"].strip()]
    return [value] if isinstance(value, str) and value.strip() else []


def _add(log: Log, record: dict[str, Any], name: str, value: Any, judge: Any = None) -> None:  # noqa: ANN401
    """Add a numeric score; otherwise add a note."""
    if isinstance(value, Mapping):
        for key, one in value.items():
            _add(log, record, f"{name}:{key}", one, judge)
        return
    score = _WORDS.get(value, _WORDS.get(value.lower(), value)) if isinstance(value, str) else value
    score = float(score) if isinstance(score, bool) else number(score)
    note = f"score {name!r} is no number in some samples: left out there"
    if isinstance(score, float):
        record["scores"][name] = score
        log.judges |= {name: str(judge)} if judge else {}
    elif value is not None and note not in log.notes:
        log.notes.append(note)


def _inspect(document: Mapping[str, Any], log: Log, path: Path) -> Iterator[dict[str, Any]]:
    samples = document["samples"] or []
    judges = {one["name"]: _at(one, "options.model") for one in _at(document, "eval.scorers") or []}
    several = any(sample.get("epoch", 1) != 1 for sample in samples)
    for sample in samples:
        choices = _at(sample, "output.choices") or [{}]
        response = _at(sample, "output.completion") or _at(choices[0], "message.content")
        item = f"{sample['id']}/{sample['epoch']}" if several else sample["id"]
        model = _at(document, "eval.model") or _at(sample, "output.model") or path.stem
        record = _record(item, model, response, sample.get("input"), sample.get("target"))
        for name, score in (sample.get("scores") or {}).items():
            _add(log, record, name, score["value"], judges.get(name))
        yield record


def _promptfoo(document: Mapping[str, Any], log: Log, path: Path) -> Iterator[dict[str, Any]]:
    rows = document["results"]["results"]
    prompts: dict[str, set[Any]] = {}
    for row in rows:
        prompts.setdefault(_provider(row.get("provider")), set()).add(row.get("promptIdx"))
    tests: dict[str, int] = {}
    copies: Counter[tuple[str, str]] = Counter()
    for row in rows:
        provider = _provider(row.get("provider"))
        system = provider or path.stem
        if len(prompts[provider]) > 1:
            system += f" ({_at(row, 'prompt.label') or row.get('promptIdx')})"
        asked = _at(row, "vars", "testCase.vars") or {}
        place = row.get("testIdx")
        if place is None:
            place = tests.setdefault(json.dumps(asked, sort_keys=True), len(tests) + 1)
        copies[str(place), system] += 1
        # A test may be repeated.
        copy = copies[str(place), system]
        item = str(place) if copy == 1 else f"{place} ({copy})"
        variables = [_text(one) if len(asked) == 1 else f"{name}: {_text(one)}" for name, one in asked.items()]
        record = _record(item, system, _at(row, "response.output"), _at(row, "prompt.raw") or "\n".join(variables))
        _add(log, record, "promptfoo", row.get("score"))
        for name, value in (_at(row, "namedScores", "gradingResult.namedScores") or {}).items():
            _add(log, record, name, value)
        used: Counter[str] = Counter()
        for one in _at(row, "gradingResult.componentResults") or []:
            name = _at(one, "assertion.metric", "assertion.type")
            if name and name not in record["scores"]:
                used[name] += 1
                numbered = name if used[name] == 1 else f"{name} {used[name]}"
                _add(log, record, numbered, one.get("score"), _provider(_at(one, "assertion.provider")))
        yield record


def _provider(value: Any) -> str:  # noqa: ANN401
    return str(_at(value, "label", "id") or "") if isinstance(value, Mapping) else str(value or "")


def _deepeval(document: Mapping[str, Any], log: Log, path: Path) -> Iterator[dict[str, Any]]:
    run = document.get("testRunData") or document
    settings = run.get("hyperparameters")
    model = (settings.get("model") if isinstance(settings, Mapping) else None) or path.stem
    if conversations := run.get("conversationalTestCases"):
        log.notes.append(f"{len(conversations)} conversations are not read: their scores are of no single response")
    names = Counter(case.get("name") for case in run["testCases"])
    for order, case in enumerate(run["testCases"], start=1):
        name = case.get("name")
        item = name if name and names[name] == 1 else case.get("order", order)
        record = _record(item, model, case.get("actualOutput"), case.get("input"), case.get("expectedOutput"))
        for metric in case.get("metricsData") or []:
            _add(log, record, metric["name"], metric.get("score"), metric.get("evaluationModel"))
        yield record


def _harness(lines: Sequence[Mapping[str, Any]], log: Log, path: Path) -> Iterator[dict[str, Any]]:
    # The tool writes `output/MODEL__NAME/samples_TASK_TIME.jsonl`.
    folder = path.absolute().parent.name
    system = folder.replace("__", "/") if "__" in folder else path.stem
    several = len({line.get("filter") for line in lines}) > 1
    records: dict[str, dict[str, Any]] = {}
    for line in lines:
        item, answers = str(line["doc_id"]), line.get("resps") or line["filtered_resps"]
        outer = answers
        while isinstance(outer, list) and outer and isinstance(outer[0], list):
            outer = outer[0]
        # A log-likelihood and whether it is the greedy answer, instead of a text.
        is_likelihood = isinstance(outer, list) and len(outer) == 2 and str(outer[1]) in ("True", "False")
        text = _innermost(answers)
        generated = text if isinstance(text, str) and not is_likelihood else None
        arguments = line.get("arguments")
        first = next(iter(arguments.values())) if isinstance(arguments, Mapping) and arguments else arguments
        prompt = _innermost(first.get("arg_0") if isinstance(first, Mapping) else first)
        target = line.get("target") if generated else None
        record = records.setdefault(item, _record(item, system, generated, prompt, target))
        scored = [
            name for name, one in line.items() if name not in ("doc_id", "target") and isinstance(one, int | float)
        ]
        for name in line.get("metrics") or scored:
            _add(log, record, f"{name},{line['filter']}" if several else name, line.get(name))
    yield from records.values()


def _innermost(value: Any) -> Any:  # noqa: ANN401
    """Return the first entry of a nested list."""
    while isinstance(value, list) and value:
        value = value[0]
    return value


# Keys that identify a document, or one of its lines, as a log; and how to read it.
_TOOLS: Mapping[str, tuple[set[str], Callable[[Any, Log, Path], Iterator[dict[str, Any]]]]] = {
    "promptfoo": ({"evalId", "results"}, _promptfoo),
    "Inspect": ({"eval", "samples"}, _inspect),
    "DeepEval": ({"testCases"}, _deepeval),
    "lm-evaluation-harness": ({"doc_id", "filtered_resps"}, _harness),
}
