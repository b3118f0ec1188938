"""Commands that have a user's own file judged: responses, or pairs of dialogues."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comperdial.cli.common import add_catalogue, output_table, seconds, whole
from comperdial.core.terminal import harmless

if TYPE_CHECKING:
    from comperdial.judges.pairs import Dialogues, Judged, Pairs
    from comperdial.judges.tasks import Judge, Judging
    from comperdial.stats.proportions import Share

_REACHED = ("key", "free", "concurrency", "timeout")
_SERVER = ("base_url", "name", "temperature", "max_tokens", "parameter", *_REACHED)
# Either may limit an answer; models that think take the second one alone.
_LIMITS = ("max_tokens", "max_completion_tokens")


def add_kinds(what: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's commands below ``judge``."""
    kind = what.add_parser("file", help="have a file of responses rated, as `comperdial score` scores one")
    kind.add_argument("file", type=Path, help="JSONL, CSV or Parquet with `response`, `history`, …")
    kind.add_argument("--variant", required=True, help="what is asked: a variant at turn level (see `judge list`)")
    _add_who(kind)
    kind.add_argument("--output", type=output_table, required=True, help="the scores: a .jsonl, .csv or .parquet file")
    kind.add_argument("--judgements", type=output_table, help="how each score came about, with rationales: likewise")
    kind.set_defaults(run=_file)
    kind = what.add_parser("preferences", help="have pairs of dialogues compared, each in both orders")
    kind.add_argument("dialogues", type=Path, nargs="?", help="a file of dialogues (JSON Lines)")
    kind.add_argument("pairs", type=Path, nargs="?", help="CSV, JSONL or Parquet: pairs, or table `preferences`")
    kind.add_argument(
        "--data", metavar="NAME", help="instead of files: public preferences of the catalogue, such as llmfao"
    )
    kind.add_argument("--question", required=True, help="what is asked: in your own words, or the name of a question")
    _add_who(kind)
    kind.add_argument(
        "--output", type=output_table, required=True, help="table `preferences`: .jsonl, .csv or .parquet"
    )
    add_catalogue(kind)
    kind.set_defaults(run=_preferences)
    kind = what.add_parser("recorded-preferences", help="what judges chose elsewhere, and how well they did")
    kind.add_argument("datasets", nargs="*", metavar="NAME", help="default: all that have recorded judges")
    kind.add_argument("--output", type=output_table, help="table `preferences`: a .jsonl, .csv or .parquet file")
    add_catalogue(kind)
    kind.set_defaults(run=_recorded)


def add_asking(kind: argparse.ArgumentParser) -> None:
    """Add what may be spent, and what is asked again."""
    kind.add_argument("--budget", type=_from_zero, help="US dollars that all answers may cost; default: params.yaml's")
    kind.add_argument(
        "--ask-again",
        nargs="+",
        choices=("refused", "unreadable"),
        default=[],
        help="ask too what was refused, or has no rating",
    )
    kind.add_argument(
        "--accept-refused", action="store_true", help="keep refusals however many there are, instead of stopping"
    )


def _add_who(kind: argparse.ArgumentParser) -> None:
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
        help="whether it costs nothing; default: if it is on this machine",
    )
    server.add_argument("--temperature", type=_from_zero, metavar="T", help="default: the server's")
    server.add_argument("--max-tokens", type=whole(1), metavar="N", help="of an answer; default: 512")
    server.add_argument(
        "--parameter", type=_parameter, action="append", metavar="NAME=VALUE",
        help="anything else that is sent with each request, such as max_completion_tokens=4000; may be given again",
    )  # fmt: skip
    server.add_argument("--concurrency", type=whole(1), metavar="N", help="requests at a time; default: 16")
    server.add_argument("--timeout", type=seconds, metavar="SECONDS", help="for one answer; default: 300")
    kind.add_argument("--params", type=Path, help="default: params.yaml, or the repository's if there is none")
    kind.add_argument(
        "--answers", type=Path, help="where answers are: an SQLite file or its folder; default: params.yaml's"
    )
    add_asking(kind)


def _from_zero(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r}; expected a number from 0 up")
    return value


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


def read_config(options: argparse.Namespace) -> tuple[Judging, dict[str, Any]]:
    """Return what the configuration says of judges, with the options' budget and answers, and the whole configuration."""
    import dataclasses

    from comperdial.config import load_yaml
    from comperdial.config.checking import Lines
    from comperdial.config.studies import params_file, with_studies
    from comperdial.core.errors import FileError
    from comperdial.judges.tasks import groups_of, read_judging

    shipped = Path(__file__).parents[3] / "params.yaml"
    path = options.params or next((path for path in (params_file(), shipped) if path.is_file()), None)
    if path is None:
        raise FileError(
            "no such file here, and the package was installed without its repository",
            where="params.yaml",
            expected="a configuration with the variants to choose from",
            hint="Run this in the repository, or name its params.yaml by --params",
        )
    config = with_studies(load_yaml(path))
    judging = read_judging(config.get("judges"), config.get("judging"), groups=groups_of(config), lines=Lines(path))
    given = {"ledger": options.answers, "budget": getattr(options, "budget", None)}
    return dataclasses.replace(judging, **{name: value for name, value in given.items() if value is not None}), config


def _chosen_judge(options: argparse.Namespace) -> tuple[Judging, str]:
    """Return the configuration, with the judge that the command line describes in it, and the name of who is asked."""
    import dataclasses

    judging, _ = read_config(options)
    if server := _server(options, judging):
        judging = dataclasses.replace(judging, judges={**judging.judges, server.name: server})
    return judging, server.name if server else options.judge


def _server(options: argparse.Namespace, judging: Judging) -> Judge | None:
    """Return the judge that the command line describes, if it does."""
    from comperdial.core.errors import ConfigError
    from comperdial.judges.files import server_judge

    given = [name for name in _SERVER if getattr(options, name) is not None]
    if options.judge:
        if given:
            expected = "--model, for a server without an entry in params.yaml"
            raise ConfigError("given with --judge", where=f"--{given[0].replace('_', '-')}", expected=expected)
        return None
    if not options.base_url:
        expected = "the server's URL, such as http://localhost:8000/v1"
        raise ConfigError("--model without --base-url", where="--model", expected=expected)
    pairs = [(name, getattr(options, name)) for name in ("max_tokens", "temperature")]
    pairs = [pair for pair in pairs if pair[1] is not None] + (options.parameter or [])
    parameters = dict(pairs)
    if len(parameters) < len(pairs) or len(limits := [name for name in _LIMITS if name in parameters]) > 1:
        raise ConfigError(
            "a parameter is given twice", where="--parameter", expected="one value, and one limit of length"
        )
    parameters = parameters if limits else {"max_tokens": 512, **parameters}
    # A model on a machine of one's own may have many requests before this one.
    connection = {"timeout": 300.0} | {name: getattr(options, name) for name in _REACHED if name in given}
    judge = server_judge(
        options.base_url, options.model, name=options.name, parameters=parameters, connection=connection
    )
    if judge.name in judging.judges:
        raise ConfigError(f"{judge.name!r} is a judge of params.yaml", where="--name", expected="another name")
    return judge


def _file(options: argparse.Namespace) -> None:
    from comperdial import schema
    from comperdial.cli.judge import outcome
    from comperdial.judges.files import file_task, judge_file

    judging, judge = _chosen_judge(options)
    task = file_task(judging, options.variant, judge)
    found = judge_file(judging, task, options.file, ask_again=options.ask_again, accept_refused=options.accept_refused)
    schema.write(options.output, found.scores, "scores")
    if options.judgements:
        schema.write(options.judgements, found.judgements, "judgements")
    print(harmless(f"{options.file}  {task.name}: {outcome(found)}"))
    print(f"scores: {options.output}, answers: {judging.ledger}")


def _preferences(options: argparse.Namespace) -> None:
    from comperdial import schema
    from comperdial.judges.pairs import judge_pairs

    judging, judge = _chosen_judge(options)
    dialogues, pairs = _read_pairs(options)
    again = {"ask_again": options.ask_again, "accept_refused": options.accept_refused}
    judged = judge_pairs(judging, judge, dialogues, pairs, options.question, **again)
    schema.write(options.output, judged.preferences, "preferences")
    print(harmless(f"{options.data or options.pairs}  {judge}: {judged.report or 'nothing was asked'}"))
    print(harmless("\n".join(_pairs_outcome(judged, pairs, options.question))))
    print(f"preferences: {options.output}, answers: {judging.ledger}")


def _read_pairs(options: argparse.Namespace) -> tuple[Dialogues, Pairs]:
    """Return the dialogues and the pairs that the options name."""
    from comperdial.challenge.pairs.dialogues import read_dialogues
    from comperdial.core.errors import ConfigError
    from comperdial.data import preferences
    from comperdial.judges.pairs import of_votes, read_pairs

    if (options.data is None) != (options.pairs is not None):
        raise ConfigError(
            "--data and files" if options.data else "no pairs to compare",
            where="judge preferences",
            expected="either a file of dialogues and one of pairs, or --data NAME",
        )
    if options.data is None:
        return read_dialogues(options.dialogues), read_pairs(options.pairs)
    votes = preferences.read_preferences(options.data, catalogue=options.catalogue)
    dialogues = preferences.read_dialogues(options.data, catalogue=options.catalogue)
    return {one.key: one for one in dialogues}, of_votes(votes, options.data)


def _recorded(options: argparse.Namespace) -> None:
    import pandas as pd

    from comperdial import schema
    from comperdial.judges.recorded_pairs import DATASETS, judged_pairs

    found = [judged_pairs(name, catalogue=options.catalogue) for name in options.datasets or DATASETS]
    if options.output:
        schema.write(options.output, pd.concat([made for made, _ in found], ignore_index=True), "preferences")
    summary = pd.concat([made for _, made in found], ignore_index=True)
    shares = {
        name: [
            "" if pd.isna(row[name]) else f"{row[name]:.1%} [{row[f'{name}_low']:.1%}, {row[f'{name}_high']:.1%}]"
            for _, row in summary.iterrows()
        ]
        for name in ("accuracy", "same", "chose_first")
    }
    columns = ["dataset", "judge", "against", "pairs", "unread", "ties", "n"]
    print(summary[columns].assign(**shares).to_string(index=False))


def _pairs_outcome(judged: Judged, pairs: Pairs, question: str) -> list[str]:
    """Return what came of comparing pairs, line by line."""
    from comperdial.judges.pairs import agreement

    lines = [
        f"{judged.pairs:,} pairs, each asked about in both orders",
        f"    with a preference: {len(judged.preferences) - judged.flipped:,}",
        f"    ties, because the choice flipped with the order: {judged.flipped:,}",
        f"    left out, because an answer cannot be read: {judged.unread:,}",
    ]
    lines += [f"        {count:,} answers: {why}" for why, count in judged.failures.most_common()]
    lines.append(f"the same choice in both orders: {_percent(judged.same)} of pairs")
    lines.append(f"the one shown first was chosen: {_percent(judged.chose_first)} of answers")
    if pairs.votes is not None:
        for (asked, source), votes in pairs.votes.groupby(["question", "source"]):
            if asked == question or pairs.votes["question"].nunique() == 1:
                found = agreement(judged.preferences, votes)
                text = f"agreement with {source} on {asked!r}, a tie of the judge counted as half: {_percent(found)}"
                lines.append(f"{text} of {found.n:,} choices")
    return lines


def _percent(found: Share) -> str:
    return f"{found.value:.1%} [{found.low:.1%}, {found.high:.1%}]" if found.n else "not known"
