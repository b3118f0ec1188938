"""The command that has a user's own file judged."""

from __future__ import annotations

import argparse
import math
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comperdial.cli.common import output_table, seconds
from comperdial.cli.judge_choice import add_paying, refusals
from comperdial.core.terminal import harmless

if TYPE_CHECKING:
    import pandas as pd

    from comperdial.judges.scores import Tally
    from comperdial.judges.tasks import Judge, Judging

_PARAMS = Path("params.yaml")
_REACHED = ("key", "free", "concurrency", "timeout")
_SERVER = ("base_url", "name", "temperature", "max_tokens", "parameter", *_REACHED)
# Either may limit an answer; models that think take the second one alone.
_LIMITS = ("max_tokens", "max_completion_tokens")
_MAX_TOKENS = 512
# Reasons for answers that cannot be read, of which a run tells.
_REASONS = 3
# A model on a machine of one's own may have many requests before this one.
_TIMEOUT = 300.0


def add_kinds(what: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's command below ``judge``."""
    kind = what.add_parser("file", help="have a file of responses rated, as `comperdial score` scores one")
    kind.add_argument("file", type=Path, help="JSONL, CSV or Parquet with `response`, `history`, …")
    kind.add_argument("--variant", required=True, help="what is asked: a variant at turn level (see `judge list`)")
    add_who(kind)
    kind.add_argument("--output", type=output_table, required=True, help="the scores: a .jsonl, .csv or .parquet file")
    kind.add_argument("--judgements", type=output_table, help="how each score came about, with rationales: likewise")
    kind.set_defaults(run=_file)


def add_who(kind: argparse.ArgumentParser) -> None:
    """Add the options that say who is asked, where answers are kept and what may be spent."""
    who = kind.add_mutually_exclusive_group(required=True)
    who.add_argument("--judge", help="who is asked: a judge of params.yaml")
    who.add_argument("--model", help="who is asked: a model of the server at --base-url, as the server calls it")
    server = kind.add_argument_group("a server of your own (vLLM, Ollama, llama.cpp, …), which needs no params.yaml")
    server.add_argument("--base-url", metavar="URL", help="where it listens: http://localhost:8000/v1")
    server.add_argument("--name", help="what to call the judge in the output; default: made of the model's name")
    server.add_argument("--key", metavar="NAME", help="the environment variable that holds the server's key")
    server.add_argument(
        "--free",
        action=argparse.BooleanOptionalAction,
        help="whether its answers cost nothing; default: only if it is on this machine",
    )
    server.add_argument("--temperature", type=_from_zero, metavar="T", help="default: the server's")
    server.add_argument("--max-tokens", type=_count, metavar="N", help=f"of an answer; default: {_MAX_TOKENS}")
    server.add_argument(
        "--parameter",
        type=_parameter,
        action="append",
        metavar="NAME=VALUE",
        help="anything else that is sent with each request, such as max_completion_tokens=4000; may be given again",
    )
    server.add_argument("--concurrency", type=_count, metavar="N", help="requests at a time; default: 16")
    server.add_argument("--timeout", type=seconds, metavar="SECONDS", help=f"for one answer; default: {_TIMEOUT:g}")
    kind.add_argument("--params", type=Path, help="default: params.yaml, or where there is none the repository's")
    kind.add_argument("--ledger", type=Path, help="where answers are kept; default: params.yaml's")
    add_paying(kind)


def _from_zero(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r}; expected a number from 0 up")
    return value


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}; expected a whole number from 1 up")
    return int(text)


def _parameter(text: str) -> tuple[str, Any]:
    """Return a name and a value; what is JSON is read as such, anything else is a text."""
    import json

    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier() or not value:
        raise argparse.ArgumentTypeError(f"{text!r}; expected NAME=VALUE, such as max_completion_tokens=4000")
    try:
        found = json.loads(value)
        # Infinity and NaN, which Python reads, are no JSON.
        json.dumps(found, allow_nan=False)
    except (ValueError, RecursionError):
        found = value
    if name in _LIMITS and (type(found) is not int or found < 1):
        raise argparse.ArgumentTypeError(f"{text!r}; expected a whole number from 1 up")
    return name, found


def _file(options: argparse.Namespace) -> None:
    from comperdial import schema
    from comperdial.judges.files import file_task, judge_file, why_silent

    judging, judge = chosen_judge(options)
    task = file_task(judging, options.variant, judge)
    scores, judgements, tally = judge_file(judging, task, options.file, refusals(options))
    schema.write(options.output, scores, "scores")
    if options.judgements:
        schema.write(options.judgements, judgements, "judgements")
    asked = tally.report or f"all from the ledger; nothing was asked: {why_silent(judging, task)}"
    print(harmless(f"{options.file}  {task.name}: {asked}"))
    outcome = f"{_outcome(scores, judgements, tally)}; scores: {options.output}, answers: {judging.ledger}"
    print(harmless(f"{options.file}  {task.name}: {outcome}"))


def chosen_judge(options: argparse.Namespace) -> tuple[Judging, str]:
    """Return the configuration, with the judge that the command line describes in it, and the name of who is asked."""
    import dataclasses

    from comperdial.config import load_yaml
    from comperdial.config.checking import Lines
    from comperdial.judges.tasks import groups_of, read_judging
    from comperdial.studies import with_studies

    path = _params(options)
    # A study's variants too.
    config = with_studies(load_yaml(path))
    judging = read_judging(config.get("judges"), config.get("judging"), groups=groups_of(config), lines=Lines(path))
    given = {name: getattr(options, name) for name in ("ledger", "budget") if getattr(options, name) is not None}
    judging = dataclasses.replace(judging, **given)
    if server := _server(options, judging.judges):
        judging = dataclasses.replace(judging, judges={**judging.judges, server.name: server})
    return judging, server.name if server else options.judge


def _params(options: argparse.Namespace) -> Path:
    """Return the configuration to read: the user's own, or the repository's where there is none here."""
    from comperdial.core.errors import FileError

    shipped = Path(__file__).parents[3] / _PARAMS.name
    for path in (options.params,) if options.params else (_PARAMS, shipped):
        if options.params or path.is_file():
            return Path(path)
    raise FileError(
        "no such file here, and the package was installed without its repository",
        where=str(_PARAMS),
        expected="a configuration with the variants to choose from",
        hint="Run this in the repository, or name its params.yaml by --params",
    )


def _server(options: argparse.Namespace, known: Collection[str]) -> Judge | None:
    """Return the judge that the command line describes, if it does."""
    from comperdial.core.errors import ConfigError
    from comperdial.judges.files import server_judge

    given = [name for name in _SERVER if getattr(options, name) is not None]
    if options.judge:
        if given:
            raise ConfigError(
                "given with --judge",
                where=f"--{given[0].replace('_', '-')}",
                expected="--model, for a server without an entry in params.yaml; one of params.yaml says this there",
            )
        return None
    if not options.base_url:
        raise ConfigError(
            "--model without --base-url",
            where="--model",
            expected="the server's URL, such as http://localhost:8000/v1",
        )
    parameters = _parameters(options)
    connection = {"timeout": _TIMEOUT} | {name: getattr(options, name) for name in _REACHED if name in given}
    try:
        judge = server_judge(
            options.base_url, options.model, name=options.name, parameters=parameters, connection=connection
        )
    except ConfigError as error:
        raise ConfigError(error.problem, where=error.where or "--base-url", expected=error.expected) from error
    if judge.name in known:
        raise ConfigError(f"{judge.name!r} is a judge of params.yaml", where="--name", expected="another name")
    return judge


def _parameters(options: argparse.Namespace) -> dict[str, Any]:
    """Return what is sent with each request, from the options that say so."""
    from comperdial.core.errors import ConfigError

    options_of_their_own = ("max_tokens", "temperature")
    found = {name: value for name in options_of_their_own if (value := getattr(options, name)) is not None}
    for name, value in options.parameter or ():
        if name in found:
            raise ConfigError(f"{name} is given twice", where="--parameter", expected="one value")
        found[name] = value
    limits = [name for name in _LIMITS if name in found]
    if len(limits) > 1:
        raise ConfigError(f"{' and '.join(limits)}", where="--parameter", expected="one limit of an answer's length")
    return found if limits else {"max_tokens": _MAX_TOKENS, **found}


def _outcome(scores: pd.DataFrame, judgements: pd.DataFrame, tally: Tally) -> str:
    """Say how many responses have a score, and why others have none."""
    item = ["item_id", "system_id"]
    judged, scored = (len(table[item].drop_duplicates()) for table in (judgements, scores))
    lacking = [f"{count:,} not judged: {lacks}" for lacks, count in tally.lacking.items()]
    failed = [f"{judged - scored:,} failed: no answer could be read"] if judged > scored else []
    unread = [f"{count:,} x {why}" for why, count in tally.failures.most_common(_REASONS)]
    unread = [f"judgements without a rating: {'; '.join(unread)}"] if unread else []
    return ", ".join([f"{scored:,} of {judged + tally.lacking.total():,} responses scored", *failed, *lacking, *unread])
