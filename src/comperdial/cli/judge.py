"""Commands of judges: what they would cost, asking them, their scores, and what they answered."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comperdial.cli.common import add_catalogue, output_file, output_table, seconds, whole
from comperdial.core.terminal import harmless, money

if TYPE_CHECKING:
    from comperdial.judges.pairs import Choices, Dialogues, Pairs
    from comperdial.judges.tasks import Judging, Task
    from comperdial.stats.proportions import Share

_CONNECTION = ("key", "free", "concurrency", "timeout")


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's command."""
    command = commands.add_parser("judge", help="have responses and dialogues rated by a language model (or by rules)")
    what = command.add_subparsers(title="what", metavar="WHAT", required=True)

    def add(name: str, run: Any, help_text: str) -> argparse.ArgumentParser:  # noqa: ANN401
        kind: argparse.ArgumentParser = what.add_parser(name, help=help_text)
        kind.set_defaults(run=run)
        return kind

    kind = add("list", _list, "judges and variants of params.yaml, and which can run here")
    _add_choice(kind)
    kind = add("plan", _plan, "calls, tokens and money of what has no answer yet; asks nothing")
    _add_choice(kind)
    kind = add("run", _run, "ask for what has no answer yet, within the budget; with --output, write scores")
    _add_choice(kind)
    _add_asking(kind)
    kind.add_argument("--output", type=output_table, help="table `scores` of one data set and metric")
    kind.add_argument("--judgements", type=output_table, help="table `judgements`: how each score came about")
    kind.add_argument("--turns", type=Path, help="the scores of the turns, for a dialogue; default: of the answers")
    kind = add("show", _show, "a dialogue of a system with its scores and rationales")
    kind.add_argument("tables", type=Path, help="a data set's folder of tables")
    kind.add_argument("system")
    kind.add_argument("dialogue")
    kind.add_argument("--metrics", nargs="*", help="default: all that judges made")
    kind = add("file", _file, "have a file of responses rated, as `comperdial score` scores one")
    kind.add_argument("file", type=Path, help="JSONL, CSV or Parquet with `response`, `history`, …")
    kind.add_argument("--variant", required=True, help="what is asked: a variant at turn level (see `judge list`)")
    _add_who(kind)
    kind.add_argument("--output", type=output_table, required=True, help="the scores: a .jsonl, .csv or .parquet file")
    kind.add_argument("--judgements", type=output_table, help="how each score came about, with rationales: likewise")
    kind = add("preferences", _preferences, "have pairs of dialogues compared, each in both orders")
    kind.add_argument("dialogues", type=Path, nargs="?", help="a file of dialogues (JSON Lines)")
    kind.add_argument("pairs", type=Path, nargs="?", help="CSV, JSONL or Parquet: pairs, or table `preferences`")
    kind.add_argument(
        "--data", metavar="NAME", help="instead of files: public preferences of the catalogue, such as llmfao"
    )
    kind.add_argument("--question", required=True, help="what is asked: in your own words, or the name of a question")
    _add_who(kind)
    kind.add_argument("--output", type=output_table, required=True, help="table `preferences`: likewise")
    add_catalogue(kind)
    kind = add("import", _import, "make tables of a judge's answers that others recorded")
    kind.add_argument("tables", type=Path, help="a data set's folder of tables")
    kind.add_argument("--metric", required=True, help="an entry of `recorded_judges`")
    kind.add_argument("--output", type=output_table, required=True, help="table `scores`")
    kind.add_argument("--judgements", type=output_table, required=True, help="table `judgements`")
    kind.add_argument(
        "--coverage", type=output_file, required=True, help="CSV: answers that can be read, and agreement"
    )
    kind.add_argument("--params", type=Path, help="default: params.yaml")
    add_catalogue(kind)
    kind = add("export-answers", _export_answers, "write answers to a Parquet file without their prompts: for DVC")
    kind.add_argument("file", type=output_file)
    kind.add_argument("--texts", action="store_true", help="answers in words too, which may repeat a data set's texts")
    kind.add_argument("--dataset", help="about one data set; default: about all")
    _add_answers(kind, Path("data/ledger"))
    kind = add("import-answers", _import_answers, "take over the answers of another file")
    kind.add_argument("file", type=Path, help="Parquet or SQLite")
    _add_answers(kind, Path("data/ledger"))


def _add_answers(kind: argparse.ArgumentParser, default: Path | None = None) -> None:
    text = f"where answers are: an SQLite file or its folder; default: {default or 'as params.yaml has it'}"
    kind.add_argument("--answers", type=Path, default=default, help=text)


def _add_choice(kind: argparse.ArgumentParser) -> None:
    """Add the options that choose data sets, judges and variants."""
    kind.add_argument("tables", type=Path, nargs="*", help="folders of tables; default: of params.yaml's data sets")
    kind.add_argument("--metric", nargs="+", help="VARIANT_JUDGE; default: all that judge a data set")
    kind.add_argument("--judges", nargs="+", help="default: all")
    kind.add_argument("--variants", nargs="+", help="default: all")
    _add_params(kind)


def _add_params(kind: argparse.ArgumentParser) -> None:
    kind.add_argument("--params", type=Path, help="default: params.yaml, or the repository's if there is none")
    _add_answers(kind)


def _add_asking(kind: argparse.ArgumentParser) -> None:
    """Add what may be spent, and what is asked again."""
    kind.add_argument("--budget", type=_from_zero, help="US dollars that all answers may cost; default: params.yaml's")
    kind.add_argument("--ask-again", action="store_true", help="ask again what was refused, or has no rating")


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
    server.add_argument(
        "--parameter", type=_parameter, action="append", metavar="NAME=VALUE",
        help="sent with each request, such as temperature=0 or max_completion_tokens=4000; default: max_tokens=512",
    )  # fmt: skip
    server.add_argument("--concurrency", type=whole(1), metavar="N", help="requests at a time; default: 16")
    server.add_argument("--timeout", type=seconds, metavar="SECONDS", help="for one answer; default: 300")
    _add_params(kind)
    _add_asking(kind)


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
    name, _, value = text.partition("=")
    if not name or not value:
        raise argparse.ArgumentTypeError(f"{text!r}; expected NAME=VALUE, such as max_completion_tokens=4000")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


# --- who is asked what -----------------------------------------------------------------------------------------------


def _read_config(options: argparse.Namespace) -> tuple[Judging, dict[str, Any]]:
    """Return the judges of the configuration, with the options' budget and answers, and the whole configuration."""
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


def _chosen(options: argparse.Namespace) -> tuple[Judging, list[tuple[Path, Task]]]:
    """Return the configuration, and the tasks that are chosen, each with its folder of tables."""
    from comperdial.core.errors import ConfigError, FileError, UnknownNameError

    judging, config = _read_config(options)
    folders = options.tables or [Path("data/tables", name) for name in config.get("datasets") or []]
    if not folders:
        raise ConfigError("no data set is named", where="judge", expected="folders of tables, such as data/tables/demo")
    for folder in folders:
        if not (folder / "responses.parquet").is_file():
            hint = f"Make them: snakemake {folder}/responses.parquet --config 'datasets=[{folder.name}]'"
            raise FileError("no tables of a data set", where=str(folder), expected="responses.parquet", hint=hint)
    every = judging.every_task()
    for kind, given, known in (
        ("judge", options.judges, judging.judges),
        ("variant", options.variants, judging.variants),
        ("metric of a judge", options.metric, every),
    ):
        for name in given or ():
            if name not in known:
                raise UnknownNameError(kind, name, known)
    if options.metric:
        return judging, [(folder, every[name]) for folder in folders for name in options.metric]
    return judging, [(folder, task) for folder in folders for task in _tasks(options, judging, config, folder)]


def _tasks(options: argparse.Namespace, judging: Judging, config: dict[str, Any], folder: Path) -> list[Task]:
    """Return what is asked about a data set, turns before dialogues."""
    from comperdial import schema
    from comperdial.data.catalogue import load_catalogue
    from comperdial.judges.tasks import judged_levels

    dataset = folder.name
    # A judge or a variant that is named is asked, whatever the configuration says of the data set.
    judges = {dataset: tuple(options.judges)} if options.judges else {}
    asks = {dataset: tuple(options.variants)} if options.variants else {}
    judging = dataclasses.replace(judging, by_dataset={**judging.by_dataset, **judges}, asks={**judging.asks, **asks})
    catalogue = Path(config.get("catalogue") or "")
    entry = load_catalogue(catalogue).datasets.get(dataset) if catalogue.is_file() else None
    levels = judged_levels(dataset, entry.levels if entry else None)
    if entry is None or options.variants:
        contexts = schema.read(folder / "contexts.parquet", "contexts")
        levels = {"turns": True, "dialogues": bool(contexts["dialogue_id"].duplicated().any())}
    # Scores of fewer samples are made of the same answers.
    tasks = [task for task in judging.tasks(dataset, **levels).values() if task.samples == task.wanted[0]]
    return sorted(tasks, key=lambda task: task.variant.level == "dialogue")


def _chosen_judge(options: argparse.Namespace) -> tuple[Judging, str]:
    """Return the configuration, with the judge that the command line describes in it, and the name of who is asked."""
    from comperdial.core.errors import ConfigError
    from comperdial.judges.tasks import server_judge

    judging, _ = _read_config(options)
    described = ("base_url", "name", "parameter", *_CONNECTION)
    given = {name: value for name in described if (value := getattr(options, name)) is not None}
    if options.judge:
        for name in given:
            expected = "--model, for a server without an entry in params.yaml"
            raise ConfigError("given with --judge", where=f"--{name.replace('_', '-')}", expected=expected)
        return judging, options.judge
    if "base_url" not in given:
        expected = "the server's URL, such as http://localhost:8000/v1"
        raise ConfigError("--model without --base-url", where="--model", expected=expected)
    parameters = dict(given.pop("parameter", ()))
    # Either may limit an answer; models that think take the second one alone.
    if "max_tokens" not in parameters and "max_completion_tokens" not in parameters:
        parameters["max_tokens"] = 512
    # A model on a machine of one's own may have many requests before this one.
    judge = server_judge(model=options.model, parameters=parameters, **{"timeout": 300.0, **given})
    if judge.name in judging.judges:
        raise ConfigError(f"{judge.name!r} is a judge of params.yaml", where="--name", expected="another name")
    return dataclasses.replace(judging, judges={**judging.judges, judge.name: judge}), judge.name


# --- what is done ----------------------------------------------------------------------------------------------------


def _list(options: argparse.Namespace) -> None:
    judging, chosen = _chosen(options)
    for folder, task in chosen:
        why = task.unavailable(folder.name)
        print(f"{folder.name}  {task.name}: {'not run: ' + why if why else 'ready'}")
    asked = {task.judge.name for _, task in chosen}
    for name in asked:
        for variant in judging.variants.values():
            if why := variant.unasked(judging.judges[name]):
                print(f"{name} is not asked {variant.name}: {why}")
    if idle := [name for name in judging.judges if name not in asked]:
        print(f"Not asked of these data sets: {', '.join(idle)}. See them with --judges NAME.")


def _plan(options: argparse.Namespace) -> None:
    from comperdial.judges.answers import AnswerFile
    from comperdial.judges.plan import as_text, plan

    judging, chosen = _chosen(options)
    plans, skipped = [], []
    for folder, task in chosen:
        if task.known_signature is None:
            skipped.append(f"{folder.name}  {task.name}: not counted: {task.unavailable(folder.name)}")
        else:
            plans.append(plan(task, folder, dataset=folder.name))
    print("\n".join([*([as_text(plans)] if plans else []), *skipped]))
    with AnswerFile(judging.ledger) as answers:
        print(f"\nAll answers have cost {money(answers.spent)} so far; the budget is {money(judging.budget)}.")
        for why, dollars in answers.charges().items():
            print(f"    of this, without an answer: {money(dollars, 4)} ({harmless(why)})")
    print("At most: a token a byte in, and answers as long as `max_tokens` allows: what the budget sets aside.")
    print(f"Tokens are estimates, without a model's own tokenizer. Prices and their dates: {judging.prices}")


def _run(options: argparse.Namespace) -> None:
    from comperdial import schema
    from comperdial.core.errors import ConfigError
    from comperdial.judges.judging import judge_tables
    from comperdial.judges.requests import MissingAnswersError

    _, chosen = _chosen(options)
    writing = options.output or options.judgements
    if writing and len(chosen) != 1:
        raise ConfigError(f"{len(chosen)} metrics", where="--output", expected="one data set and one --metric")
    turns = schema.read(options.turns, "scores") if options.turns else None
    ran = not chosen
    for folder, task in chosen:
        try:
            judged = judge_tables(task, folder, dataset=folder.name, turns=turns, ask_again=options.ask_again)
            _write(options, judged)
            outcome, ran = str(judged), True
        except MissingAnswersError as error:
            if writing:
                raise
            outcome = f"not run: {error.hint or error.problem}"
        print(harmless(f"{folder.name}  {task.name}: {outcome}"), flush=True)
    if not ran:
        problem = f"nothing could be asked: none of {len(chosen)} tasks can run here"
        raise ConfigError(problem, expected="a judge that can be reached")


def _write(options: argparse.Namespace, judged: Any) -> None:  # noqa: ANN401 - imported late
    from comperdial import schema

    if options.output:
        schema.write(options.output, judged.scores, "scores")
    if options.judgements:
        schema.write(options.judgements, judged.judgements, "judgements")


def _show(options: argparse.Namespace) -> None:
    from comperdial.judges.show import show

    print(harmless(show(options.tables, Path("results"), options.system, options.dialogue, options.metrics)))


def _file(options: argparse.Namespace) -> None:
    from comperdial.judges.items import file_items
    from comperdial.judges.judging import judge_items
    from comperdial.judges.tasks import file_task

    judging, judge = _chosen_judge(options)
    task = file_task(judging, options.variant, judge)
    items = file_items(task, options.file)
    judged = judge_items(task, items, dataset=items[0].dataset, ask_again=options.ask_again)
    _write(options, judged)
    print(harmless(f"{options.file}  {task.name}: {judged}"))
    print(f"scores: {options.output}, answers: {judging.ledger}")


def _preferences(options: argparse.Namespace) -> None:
    from comperdial import schema
    from comperdial.judges.pairs import judge_pairs

    judging, judge = _chosen_judge(options)
    dialogues, pairs = _read_pairs(options)
    choices = judge_pairs(judging, judge, dialogues, pairs, options.question, ask_again=options.ask_again)
    schema.write(options.output, choices.preferences, "preferences")
    print(harmless(f"{options.data or options.pairs}  {judge}: {choices.report or 'nothing was asked'}"))
    print(harmless("\n".join(_pairs_outcome(choices, pairs, options.question))))
    print(f"preferences: {options.output}, answers: {judging.ledger}")


def _read_pairs(options: argparse.Namespace) -> tuple[Dialogues, Pairs]:
    """Return the dialogues and the pairs that the options name."""
    from comperdial.challenge.pairs import read_dialogues
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


def _pairs_outcome(choices: Choices, pairs: Pairs, question: str) -> list[str]:
    """Return what came of comparing pairs, line by line."""
    from comperdial.judges.pairs import agreement

    lines = [
        f"{choices.pairs:,} pairs, each asked about in both orders",
        f"    with a preference: {len(choices.preferences) - choices.flipped:,}",
        f"    ties, because the choice flipped with the order: {choices.flipped:,}",
        f"    left out, because an answer cannot be read: {choices.unread:,}",
        *(f"        {count:,} answers: {why}" for why, count in choices.failures.most_common()),
        f"the same choice in both orders: {_percent(choices.same)} of pairs",
        f"the one shown first was chosen: {_percent(choices.chose_first)} of answers",
    ]
    if pairs.votes is not None:
        for (asked, source), votes in pairs.votes.groupby(["question", "source"]):
            if asked == question or pairs.votes["question"].nunique() == 1:
                agreed = agreement(choices.preferences, votes)
                text = f"agreement with {source} on {asked!r}, a tie of the judge counted as half: {_percent(agreed)}"
                lines.append(f"{text} of {agreed.n:,} choices")
    return lines


def _percent(share: Share) -> str:
    return f"{share.value:.1%} [{share.low:.1%}, {share.high:.1%}]" if share.n else "not known"


def _import(options: argparse.Namespace) -> None:
    from comperdial.config import load_yaml
    from comperdial.config.studies import params_file, with_studies
    from comperdial.core.errors import UnknownNameError
    from comperdial.judges.recorded import take_answers

    path = params_file(options.params)
    entries = with_studies(load_yaml(path)).get("recorded_judges") or {}
    if options.metric not in entries:
        raise UnknownNameError("recorded judge", options.metric, entries, where=str(path))
    take_answers(
        options.metric,
        entries[options.metric],
        options.tables,
        catalogue=options.catalogue,
        scores_to=options.output,
        judgements_to=options.judgements,
        coverage_to=options.coverage,
    )


def _export_answers(options: argparse.Namespace) -> None:
    from comperdial.judges.answers import AnswerFile

    with AnswerFile(options.answers) as answers:
        print(f"{options.file}: {answers.export(options.file, texts=options.texts, dataset=options.dataset):,} answers")


def _import_answers(options: argparse.Namespace) -> None:
    from comperdial.judges.answers import AnswerFile

    with AnswerFile(options.answers) as answers:
        print(f"{answers.path}: {answers.add(options.file):,} new answers")
