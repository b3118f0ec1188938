"""The commands of judges and of their prompts."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comperdial import schema
from comperdial.config import load_yaml
from comperdial.config.checking import Lines
from comperdial.config.studies import params_file, with_studies
from comperdial.core.errors import ConfigError, FileError, UnknownNameError
from comperdial.core.terminal import harmless, money
from comperdial.data.catalogue import load_catalogue
from comperdial.judges import prompting
from comperdial.judges.answers import AnswerFile
from comperdial.judges.items import file_items
from comperdial.judges.judging import Judged, judge_items, judge_tables
from comperdial.judges.plan import plan
from comperdial.judges.recorded import take_answers
from comperdial.judges.requests import MissingAnswersError
from comperdial.judges.tasks import Judging, Task, file_task, groups_of, judged_levels, read_judging, server_judge

if TYPE_CHECKING:
    from comperdial.judges.pairs import Choices, Dialogues, Pairs
    from comperdial.stats.proportions import Share

# Arguments that describe a server.
_SERVER = ("base_url", "name", "parameter", "key", "free", "concurrency", "timeout")


def _configured(options: argparse.Namespace) -> tuple[Judging, dict[str, Any]]:
    """Return the configured judges, with the options' budget and answers, and the whole configuration."""
    shipped = Path(__file__).parents[3] / "params.yaml"
    path = options.params or next((path for path in (params_file(), shipped) if path.is_file()), None)
    if path is None:
        raise FileError(
            "no such file here, and the package was installed without its repository", where="params.yaml",
            expected="a configuration with the variants to choose from",
            hint="Run this in the repository, or name its params.yaml by --params",
        )  # fmt: skip
    config = with_studies(load_yaml(path))
    judging = read_judging(config.get("judges"), config.get("judging"), groups=groups_of(config), lines=Lines(path))
    given = {"ledger": options.answers, "budget": getattr(options, "budget", None)}
    return replace(judging, **{name: value for name, value in given.items() if value is not None}), config


def _chosen(options: argparse.Namespace) -> tuple[Judging, list[tuple[Path, Task]]]:
    """Return the configured judges, and the tasks that are chosen, each with its folder of tables."""
    judging, config = _configured(options)
    folders = options.tables or [Path("data/tables", name) for name in config.get("datasets") or []]
    if not folders:
        raise ConfigError("no data set is named", where="judge", expected="folders of tables, such as data/tables/demo")
    for folder in folders:
        if not (folder / "responses.parquet").is_file():
            hint = f"Make them: snakemake {folder}/responses.parquet --config 'datasets=[{folder.name}]'"
            raise FileError("no tables of a data set", where=str(folder), expected="responses.parquet", hint=hint)
    every = judging.every_task()
    for kind, given, known in (("judge", options.judges, judging.judges), ("metric of a judge", options.metric, every)):
        if unknown := [name for name in given or () if name not in known]:
            raise UnknownNameError(kind, unknown[0], known)
    if options.metric:
        return judging, [(folder, every[name]) for folder in folders for name in options.metric]
    return judging, [(folder, task) for folder in folders for task in _tasks(options, judging, config, folder)]


def _tasks(options: argparse.Namespace, judging: Judging, config: dict[str, Any], folder: Path) -> list[Task]:
    """Return what is asked about a data set, turns before dialogues."""
    dataset = folder.name
    if options.judges:
        judging = replace(judging, by_dataset={**judging.by_dataset, dataset: tuple(options.judges)})
    catalogue = Path(config.get("catalogue") or "")
    entry = load_catalogue(catalogue).datasets.get(dataset) if catalogue.is_file() else None
    levels = judged_levels(dataset, entry.levels if entry else None)
    if entry is None:
        contexts = schema.read(folder / "contexts.parquet", "contexts")
        levels = {"turns": True, "dialogues": bool(contexts["dialogue_id"].duplicated().any())}
    # Scores of fewer samples are made of the same answers.
    tasks = [task for task in judging.tasks(dataset, **levels).values() if task.samples == task.wanted[0]]
    return sorted(tasks, key=lambda task: task.variant.level == "dialogue")


def _who(options: argparse.Namespace) -> tuple[Judging, str]:
    """Return the configured judges, with the one that the options describe, and the name of who is asked."""
    judging, _ = _configured(options)
    given = {name: value for name in _SERVER if (value := getattr(options, name)) is not None}
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
    return replace(judging, judges={**judging.judges, judge.name: judge}), judge.name


def plan_tasks(options: argparse.Namespace) -> None:
    """Print who can be asked what here, and what that would cost."""
    judging, chosen = _chosen(options)
    cost = worst = 0.0
    for folder, task in chosen:
        name, why = f"{folder.name}  {task.name}", task.unavailable(folder.name)
        if task.known_signature is None:
            print(f"{name}: not run: {why}")
            continue
        planned = plan(task, folder, dataset=folder.name)
        print(f"{name}: {planned.text}{f'; not run: {why}' if why else ''}")
        cost, worst = cost + planned.cost, worst + planned.worst
    for name in dict.fromkeys(task.judge.name for _, task in chosen):
        for variant in judging.variants.values():
            if why := variant.unasked(judging.judges[name]):
                print(f"{name} is not asked {variant.name}: {why}")
    with AnswerFile(judging.ledger) as answers:
        spent = f"{money(answers.spent)} are spent of a budget of {money(judging.budget)}"
    print(f"All together: {money(cost)}, at most {money(worst)}; {spent}. Prices: {judging.prices}")


def run_tasks(options: argparse.Namespace) -> None:
    """Ask for what has no answer yet, and write the tables of a task."""
    _, chosen = _chosen(options)
    writing = options.output or options.judgements
    if writing and len(chosen) != 1:
        raise ConfigError(f"{len(chosen)} metrics", where="--output", expected="one data set and one --metric")
    ran = not chosen
    for folder, task in chosen:
        try:
            judged = judge_tables(task, folder, dataset=folder.name, ask_again=options.ask_again)
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


def _write(options: argparse.Namespace, judged: Judged) -> None:
    if options.output:
        schema.write(options.output, judged.scores, "scores")
    if options.judgements:
        schema.write(options.judgements, judged.judgements, "judgements")


def judge_file(options: argparse.Namespace) -> None:
    """Have a file of responses judged."""
    judging, judge = _who(options)
    task = file_task(judging, options.variant, judge)
    items = file_items(task, options.file)
    judged = judge_items(task, items, dataset=items[0].dataset, ask_again=options.ask_again)
    _write(options, judged)
    print(harmless(f"{options.file}  {task.name}: {judged}"))
    print(f"scores: {options.output}, answers: {judging.ledger}")


def judge_preferences(options: argparse.Namespace) -> None:
    """Have pairs of dialogues compared."""
    from comperdial.judges.pairs import judge_pairs

    judging, judge = _who(options)
    dialogues, pairs = _read_pairs(options)
    choices = judge_pairs(judging, judge, dialogues, pairs, options.question, ask_again=options.ask_again)
    schema.write(options.output, choices.preferences, "preferences")
    print(harmless(f"{options.data or options.pairs}  {judge}: {choices.report or 'nothing was asked'}"))
    print(harmless("\n".join(_pairs_outcome(choices, pairs, options.question))))
    print(f"preferences: {options.output}, answers: {judging.ledger}")


def _read_pairs(options: argparse.Namespace) -> tuple[Dialogues, Pairs]:
    """Return the dialogues and the pairs that the options name."""
    from comperdial.challenge.pairs import read_dialogues
    from comperdial.data import preferences
    from comperdial.judges.pairs import of_votes, read_pairs

    if (options.data is None) != (options.pairs is not None):
        problem = "--data and files" if options.data else "no pairs to compare"
        expected = "either a file of dialogues and one of pairs, or --data NAME"
        raise ConfigError(problem, where="judge preferences", expected=expected)
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


def take(options: argparse.Namespace) -> None:
    """Make tables of recorded answers."""
    path = params_file(options.params)
    entries = with_studies(load_yaml(path)).get("recorded_judges") or {}
    if options.metric not in entries:
        raise UnknownNameError("recorded judge", options.metric, entries, where=str(path))
    take_answers(
        options.metric, entries[options.metric], options.tables, catalogue=options.catalogue,
        scores_to=options.output, judgements_to=options.judgements, coverage_to=options.coverage,
    )  # fmt: skip


def export_answers(options: argparse.Namespace) -> None:
    """Write answers to a file."""
    with AnswerFile(options.answers) as answers:
        print(f"{options.file}: {answers.export(options.file, texts=options.texts, dataset=options.dataset):,} answers")


def import_answers(options: argparse.Namespace) -> None:
    """Take over the answers of a file."""
    if not options.file.is_file():
        raise FileError(
            "no such file", where=str(options.file), expected="what `comperdial judge export-answers` writes"
        )
    with AnswerFile(options.answers) as answers:
        print(f"{answers.path}: {answers.add(options.file):,} new answers")


def list_prompts(_: argparse.Namespace) -> None:
    """List the prompts, and the questions by dimension."""
    for name in (*prompting.NAMES, *prompting.STUDY):
        prompt = prompting.load(name)
        fields = ", ".join(field for field in (*prompting.FIELDS, "question") if field in prompt.fields)
        print(f"{name:17}  {prompt.hash[:16]}  {prompt.level:8}  {fields}")
    for level, texts in prompting.questions().items():
        print(f"{'questions':17}  {'':16}  {level:8}  {', '.join(texts)}")


def show_prompt(options: argparse.Namespace) -> None:
    """Print a prompt's template."""
    prompt = prompting.load(options.name, explain=options.explain)
    print(prompt.template, end="" if prompt.template.endswith("\n") else "\n")
