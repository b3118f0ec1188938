"""Commands for judges: estimate costs, ask, import and export answers, list prompts."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, BadParameter, Exit, Option, confirm

from comperdial.cli import options as o
from comperdial.core.errors import ConfigError, FileError, UnknownNameError
from comperdial.core.terminal import harmless, money

if TYPE_CHECKING:
    from comperdial.judges.pairs import Choices, Pairs
    from comperdial.judges.tasks import Judge, Judging, Task
    from comperdial.stats.proportions import Share

judge = o.group("Rate responses and dialogues with a language model (or with rules).")
o.app.add_typer(judge, name="judge")


def _parameter(text: str) -> tuple[str, Any]:
    """Parse a name and a value, as JSON if valid and as text otherwise."""
    name, _, value = text.partition("=")
    if not name or not value:
        raise BadParameter(f"{text!r}; expected NAME=VALUE, such as max_completion_tokens=4000")
    with suppress(ValueError):
        return name, json.loads(value)
    return name, value


# Selection of tasks.
Tables = Annotated[o.Files, Argument(help="Folders of tables; default: the data sets of params.yaml.")]
Metrics = Annotated[o.Names, Option("--metric", help="VARIANT_JUDGE, several allowed; default: all.")]
Params = Annotated[o.File, Option(help="Configuration; default: params.yaml if it exists.")]
# The judge of a file.
_SERVER = "openai, azure, ollama, vllm, llama.cpp, a URL, or rules."
Server = Annotated[o.Name, o.option("NAME|URL", _SERVER)]
Model = Annotated[o.Name, Option(help="The server's name for the model.")]
Configured = Annotated[o.Name, Option("--judge", help="A judge of params.yaml, instead of a server.")]
Key = Annotated[o.Name, o.option("VARIABLE", "Environment variable with the key; default: the server's usual one.")]
Price = Annotated[o.Range, o.option("IN OUT", "US dollars per million tokens; default: from data/prices.yaml.")]
_PARAMETER = "Sent with each request, such as temperature=0 or max_completion_tokens=4000; repeatable."
Parameters = Annotated[list[tuple] | None, o.option("NAME=VALUE", _PARAMETER, parser=_parameter)]
_OF_JUDGE = ("model", "price", "parameter", "name", "key", "concurrency", "timeout")
# The budget, and the file of answers.
Budget = Annotated[float | None, Option(min=0, help="Limit in US dollars for all answers in the file.")]
AskAgain = Annotated[bool, Option("--ask-again", help="Retry refusals and answers without a rating.")]
Answers = Annotated[o.File, Option(help="An SQLite file of answers or its folder; default: data/ledger.")]
Reasons = Annotated[o.File, o.written("Single judgements, with rationales.")]
_TEXTS = "Include answers in words, which may quote texts of the data."
_PROMPT = "A rubric from `comperdial prompts`, or a template file."
_NAMES = "For a template: names of the ratings; default: those in its form, or `rating`."


@o.command("plan", of=judge)
def plan(tables: Tables = None, metric: Metrics = None, params: Params = None, answers: Answers = None) -> None:
    """Estimate the number, tokens and cost of unanswered requests, without asking."""
    from comperdial.judges.answers import AnswerFile
    from comperdial.judges.judging import estimate, table_items
    from comperdial.judges.requests import MissingAnswersError

    judging, chosen = _chosen(tables, metric, params, {"ledger": answers})
    cost = worst = 0.0
    for folder, task in chosen:
        why = task.unavailable(folder.name)
        text = "not counted: its turns are not all judged yet"
        if task.known_signature is None:
            text, why = f"not run: {why}", None
        else:
            with suppress(MissingAnswersError):
                planned = estimate(task, table_items(task, folder, folder.name), dataset=folder.name)
                text, cost, worst = str(planned), cost + planned.cost, worst + planned.worst
        print(f"{folder.name}  {task.name}: {text}{f'; not run: {why}' if why else ''}")
    for name in dict.fromkeys(task.judge.name for _, task in chosen):
        for variant in judging.variants.values():
            if why := variant.unasked(judging.judges[name]):
                print(f"{name} is not asked {variant.name}: {why}")
    with AnswerFile(judging.ledger) as kept:
        spent = f"{money(kept.spent)} are spent of a budget of {money(judging.budget)}"
    print(f"All together: {money(cost)}, at most {money(worst)}; {spent}. Prices: {judging.prices}")


@o.command("run", of=judge)
def run(
    tables: Tables = None,
    metric: Metrics = None,
    budget: Budget = None,
    ask_again: AskAgain = False,
    output: Annotated[o.File, o.written("Scores of one data set and metric.")] = None,
    judgements: Reasons = None,
    params: Params = None,
    answers: Answers = None,
) -> None:
    """Ask all unanswered requests, within the budget."""
    from comperdial.judges.judging import judge_tables
    from comperdial.judges.requests import MissingAnswersError

    _, chosen = _chosen(tables, metric, params, {"ledger": answers, "budget": budget})
    writing = output or judgements
    if writing and len(chosen) != 1:
        raise ConfigError(f"{len(chosen)} metrics", where="--output", expected="one data set and one --metric")
    ran = not chosen
    for folder, task in chosen:
        try:
            judged = judge_tables(task, folder, dataset=folder.name, ask_again=ask_again)
            o.write(output, judged.scores, "scores")
            o.write(judgements, judged.judgements, "judgements")
            outcome, ran = str(judged), True
        except MissingAnswersError as error:
            if writing:
                raise
            outcome = f"not run: {error.hint or error.problem}"
        print(harmless(f"{folder.name}  {task.name}: {outcome}"), flush=True)
    if not ran:
        problem = f"none of {len(chosen)} tasks ran, for the reasons above"
        raise ConfigError(problem, expected="a judge that can be reached, and a budget for paid ones (judging.budget)")


@o.command("file", of=judge)
def file_(
    file: Annotated[Path, Argument(help="Responses in any common format.")],
    output: o.Output,
    prompt: Annotated[str, o.option("RUBRIC|FILE", _PROMPT)] = "cpds-d",
    server: Server = None,
    model: Model = None,
    judge: Configured = None,
    price: Price = None,
    budget: Budget = None,
    yes: Annotated[bool, Option("--yes", help="Spend up to the estimated maximum without confirmation.")] = False,
    parameter: Parameters = None,
    samples: Annotated[int | None, Option(min=1, help="Answers averaged per score; default: the rubric's.")] = None,
    ratings: Annotated[o.Names, Option(help=_NAMES)] = None,
    scale: Annotated[o.Range, o.option("LOW HIGH", "For a template: the scale; default: the one it states.")] = None,
    explain: Annotated[bool, Option("--explain", help="Also ask for a rationale.")] = False,
    columns: o.Columns = None,
    sheet: o.Sheet = None,
    judgements: Reasons = None,
    ask_again: AskAgain = False,
    name: Annotated[o.Name, Option(help="Name of the judge in the output; default: the model's.")] = None,
    key: Key = None,
    concurrency: Annotated[int | None, Option(min=1, help="Concurrent requests; default: 16.")] = None,
    timeout: Annotated[float | None, Option(min=0.001, help="Timeout per answer in seconds; default: 300.")] = None,
    params: Params = None,
    answers: Answers = None,
) -> None:
    """Rate a file of responses; show the cost before spending anything."""
    settings = o.given(locals(), ("server", *_OF_JUDGE))
    from comperdial.judges.judging import estimate, judge_items
    from comperdial.judges.own import allowed, own_task, read_own

    judging = _configured(params, {"ledger": answers})[0]
    who = _who(judging, judge, settings)
    if explain:
        who = who.model_copy(update={"explain": True})
    read = read_own(file, columns, sheet)
    task, items = own_task(judging, who, read, prompt, ratings=ratings or (), scale=scale, samples=samples)
    planned = estimate(task, items, dataset=read.dataset, ask_again=ask_again)
    form = task.variant.form
    print(harmless(f"{file}  {task.name}: {', '.join(form.dimensions)} from {form.low:g} to {form.high:g}; {planned}"))
    if not (planned.free or planned.unpriced or yes or judging.budget or budget is not None) and sys.stdin.isatty():
        yes = confirm(f"Spend about {money(planned.cost)}?") if planned.requests else True
        if not yes:
            raise Exit(1)
    task = allowed(task, planned, budget, yes=yes)
    judged = judge_items(task, items, dataset=read.dataset, ask_again=ask_again)
    o.write(output, judged.scores, "scores")
    o.write(judgements, judged.judgements, "judgements")
    print(harmless(f"{judged}\nscores: {output}, answers: {judging.ledger}"))


@o.command("preferences", of=judge)
def preferences(
    output: o.Output,
    question: Annotated[str, Option(help="A question in your own words, or the name of one.")],
    dialogues: Annotated[o.File, Argument(help="Dialogues (JSON Lines).")] = None,
    pairs: Annotated[o.File, Argument(help="Pairs, or table `preferences`.")] = None,
    data: Annotated[o.Name, Option(help="Public preferences, such as llmfao, instead of files.")] = None,
    server: Server = None,
    model: Model = None,
    judge: Configured = None,
    price: Price = None,
    budget: Budget = None,
    parameter: Parameters = None,
    ask_again: AskAgain = False,
    key: Key = None,
    params: Params = None,
    answers: Answers = None,
) -> None:
    """Compare pairs of dialogues, each in both orders."""
    settings = o.given(locals(), ("server", *_OF_JUDGE))
    from comperdial.challenge.pairs import read_dialogues
    from comperdial.data import preferences as public
    from comperdial.judges.pairs import judge_pairs, of_votes, read_pairs

    judging = _configured(params, {"ledger": answers, "budget": budget})[0]
    who = _who(judging, judge, settings)
    if (data is None) != (pairs is not None) or (pairs is not None and dialogues is None):
        problem = "--data and files" if data else "no pairs to compare"
        expected = "either a file of dialogues and one of pairs, or --data NAME"
        raise ConfigError(problem, where="judge preferences", expected=expected)
    if dialogues is not None and pairs is not None:
        known, compared = read_dialogues(dialogues), read_pairs(pairs)
    else:
        compared = of_votes(public.read_preferences(str(data), catalogue=o.CATALOGUE), str(data))
        known = {one.key: one for one in public.read_dialogues(str(data), catalogue=o.CATALOGUE)}
    choices = judge_pairs(judging, who, known, compared, question, ask_again=ask_again)
    o.write(output, choices.preferences, "preferences")
    print(harmless(f"{data or pairs}  {who.name}: {choices.report or 'nothing was asked'}"))
    print(harmless("\n".join(_outcome(choices, compared, question))))
    print(f"preferences: {output}, answers: {judging.ledger}")


@o.command("import", of=judge)
def import_(
    tables: Annotated[Path, Argument(help="Folder of a data set's tables.")],
    metric: Annotated[str, Option(help="An entry of `recorded_judges`.")],
    output: o.Output,
    judgements: o.Output,
    coverage: Annotated[Path, o.written("CSV file of readable answers and agreement.", o.output_file)],
    params: Params = None,
) -> None:
    """Make tables from a judge's recorded answers."""
    from comperdial.config import load_yaml
    from comperdial.config.studies import params_file, with_studies
    from comperdial.judges.recorded import take_answers

    path = params_file(params)
    entries = with_studies(load_yaml(path)).get("recorded_judges") or {}
    if metric not in entries:
        raise UnknownNameError("recorded judge", metric, entries, where=str(path))
    to = {"scores_to": output, "judgements_to": judgements, "coverage_to": coverage}
    take_answers(metric, entries[metric], tables, catalogue=o.CATALOGUE, **to)


@o.command("export-answers", of=judge)
def export_answers(
    file: Annotated[Path, Argument(parser=o.output_file, metavar="FILE")],
    texts: Annotated[bool, Option("--texts", help=_TEXTS)] = False,
    dataset: Annotated[o.Name, Option(help="Only this data set; default: all.")] = None,
    answers: Answers = Path("data/ledger"),
) -> None:
    """Export answers to a Parquet file without their prompts, for DVC."""
    from comperdial.judges.answers import AnswerFile

    with AnswerFile(answers or Path("data/ledger")) as kept:
        print(f"{file}: {kept.export(file, texts=texts, dataset=dataset):,} answers")


@o.command("import-answers", of=judge)
def import_answers(
    file: Annotated[Path, Argument(help="Output of `judge export-answers`.")],
    answers: Answers = Path("data/ledger"),
) -> None:
    """Import answers from another file."""
    from comperdial.judges.answers import AnswerFile

    if not file.is_file():
        raise FileError("no such file", where=str(file), expected="the output of `comperdial judge export-answers`")
    with AnswerFile(answers or Path("data/ledger")) as kept:
        print(f"{kept.path}: {kept.add(file):,} new answers")


@o.command("prompts")
def prompts(
    name: Annotated[o.Name, Argument(help="A prompt or rubric to print, or your own template.")] = None,
    explain: Annotated[bool, Option("--explain", help="Include the block that asks for a rationale.")] = False,
) -> None:
    """List the judges' rubrics and prompts, or print one."""
    from comperdial.judges import own, prompting

    rubrics = own.rubrics()
    if name:
        prompt = prompting.load(rubrics[name].prompt if name in rubrics else name, explain=explain)
        print(prompt.template.removesuffix("\n"))
        return
    print(f"{'rubric':14}  {'prompt':17}  {'level':8}  ratings")
    for variant in rubrics.values():
        form = variant.form
        ratings = f"{', '.join(form.dimensions)} from {form.low:g} to {form.high:g}"
        print(f"{variant.name:14}  {variant.prompt:17}  {variant.level:8}  {ratings}")
    print(f"\n{'prompt':17}  {'hash':16}  {'level':8}  shows")
    for one in (*prompting.NAMES, *prompting.STUDY):
        prompt = prompting.load(one)
        fields = ", ".join(field for field in (*prompting.FIELDS, "question") if field in prompt.fields)
        print(f"{one:17}  {prompt.hash[:16]}  {prompt.level:8}  {fields}")
    for level, texts in prompting.questions().items():
        print(f"{'questions':17}  {'':16}  {level:8}  {', '.join(texts)}")


def _configured(params: o.File, changes: Mapping[str, Any]) -> tuple[Judging, dict[str, Any]]:
    """Return the configured judges with the given overrides, and the whole configuration; no judges without a file."""
    from comperdial.config import load_yaml
    from comperdial.config.checking import Lines
    from comperdial.config.studies import params_file, with_studies
    from comperdial.judges.own import NO_JUDGES
    from comperdial.judges.tasks import groups_of, read_judging

    path, judging, config = params_file(params), NO_JUDGES, dict[str, Any]()
    if params or path.is_file():
        config = with_studies(load_yaml(path))
        judging = read_judging(config.get("judges"), config.get("judging"), groups=groups_of(config), lines=Lines(path))
    return replace(judging, **{name: value for name, value in changes.items() if value is not None}), config


def _chosen(
    tables: o.Files, metrics: o.Names, params: o.File, changes: Mapping[str, Any]
) -> tuple[Judging, list[tuple[Path, Task]]]:
    """Return the configured judges, and the selected tasks with their folders of tables."""
    judging, config = _configured(params, changes)
    folders = tables or [Path("data/tables", name) for name in config.get("datasets") or []]
    if not folders:
        raise ConfigError("no data set given", where="judge", expected="folders of tables, such as data/tables/demo")
    for folder in folders:
        if not (folder / "responses.parquet").is_file():
            hint = f"Make them: snakemake {folder}/responses.parquet --config 'datasets=[{folder.name}]'"
            raise FileError("no tables of a data set", where=str(folder), expected="responses.parquet", hint=hint)
    every = judging.every_task()
    if unknown := [name for name in metrics or () if name not in every]:
        raise UnknownNameError("metric of a judge", unknown[0], every)
    if metrics:
        return judging, [(folder, every[name]) for folder in folders for name in metrics]
    return judging, [(folder, task) for folder in folders for task in _tasks(judging, config, folder)]


def _tasks(judging: Judging, config: Mapping[str, Any], folder: Path) -> list[Task]:
    """Return the tasks of a data set, turns before dialogues."""
    from comperdial import schema
    from comperdial.data.catalogue import load_catalogue
    from comperdial.judges.tasks import judged_levels

    dataset = folder.name
    catalogue = Path(config.get("catalogue") or "")
    entry = load_catalogue(catalogue).datasets.get(dataset) if catalogue.is_file() else None
    levels = judged_levels(dataset, entry.levels if entry else None)
    if entry is None:
        contexts = schema.read(folder / "contexts.parquet", "contexts")
        levels = {"turns": True, "dialogues": bool(contexts["dialogue_id"].duplicated().any())}
    # Scores of fewer samples use the same answers.
    tasks = [task for task in judging.tasks(dataset, **levels).values() if task.samples == task.wanted[0]]
    return sorted(tasks, key=lambda task: task.variant.level == "dialogue")


def _who(judging: Judging, name: o.Name, settings: dict[str, Any]) -> Judge:
    """Return the judge named in params.yaml, or the one described by the settings."""
    from comperdial.judges.own import own_judge

    if name:
        for option in settings:
            expected = "--server and --model, for a judge without an entry in params.yaml"
            raise ConfigError("given with --judge", where=f"--{option}", expected=expected)
        if name == "rules" and name not in judging.judges:
            return own_judge("rules", None)
        if name not in judging.judges:
            raise UnknownNameError("judge", name, judging.judges, where="--judge")
        return judging.judges[name]
    if "server" not in settings:
        expected = "--server openai, azure, ollama, vllm, llama.cpp, rules or a URL; or --judge, of params.yaml"
        raise ConfigError("no judge given", where="judge", expected=expected)
    parameters = dict(settings.pop("parameter", ()))
    who = own_judge(settings.pop("server"), settings.pop("model", None), parameters=parameters, **settings)
    if who.service != "rules" and who.name in judging.judges:
        raise ConfigError(f"{who.name!r} is a judge of params.yaml", where="--name", expected="another name")
    return who


def _outcome(choices: Choices, pairs: Pairs, question: str) -> list[str]:
    """Summarize the comparison of pairs, line by line."""
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
