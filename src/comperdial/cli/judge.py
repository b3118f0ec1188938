"""Commands of judges: what they would cost, asking them, their scores, and what they answered."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comperdial.cli import judge_file
from comperdial.cli.common import add_catalogue, output_file, output_table
from comperdial.core.terminal import harmless, money

if TYPE_CHECKING:
    from comperdial.judges.scores import Judged
    from comperdial.judges.tasks import Judging, Task

_TABLES = Path("data/tables")


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
    kind.add_argument("--signatures", action="store_true", help="all that determines the scores of each")
    kind = add("plan", _plan, "calls, tokens and money of what has no answer yet; asks nothing")
    _add_choice(kind)
    kind = add("run", _run, "ask for what has no answer yet, within the budget; with --output, write scores")
    _add_choice(kind)
    judge_file.add_asking(kind)
    kind.add_argument("--output", type=output_table, help="table `scores` of one data set and metric")
    kind.add_argument("--judgements", type=output_table, help="table `judgements`: how each score came about")
    kind.add_argument("--turns", type=Path, help="the scores of the turns, for a dialogue; default: of the answers")
    kind = add("show", _show, "a dialogue of a system with its scores and rationales")
    kind.add_argument("tables", type=Path, help="a data set's folder of tables")
    kind.add_argument("system")
    kind.add_argument("dialogue")
    kind.add_argument("--metrics", nargs="*", help="default: all that judges made")
    kind.add_argument("--results", type=Path, default=Path("results"), help="default: results")
    kind = add("import", _import, "make tables of a judge's answers that others recorded")
    kind.add_argument("tables", type=Path, help="a data set's folder of tables")
    kind.add_argument("--metric", required=True, help="an entry of `recorded_judges`")
    kind.add_argument("--output", type=output_table, required=True, help="table `scores`")
    kind.add_argument("--judgements", type=output_table, required=True, help="table `judgements`")
    kind.add_argument(
        "--coverage", type=output_file, required=True, help="CSV: how many answers can be read, and how they agree"
    )
    kind.add_argument("--params", type=Path, help="default: params.yaml")
    add_catalogue(kind)
    kind = add("export-answers", _export_answers, "write answers to a Parquet file without their prompts: for DVC")
    kind.add_argument("file", type=output_file)
    kind.add_argument("--texts", action="store_true", help="answers in words too, which may repeat a data set's texts")
    kind.add_argument("--dataset", help="about one data set; default: about all")
    _add_answers(kind)
    kind = add("import-answers", _import_answers, "take over answers of a Parquet file or of an older ledger")
    kind.add_argument("file", type=Path, help="Parquet; or ledger.sqlite or data/ledger/DATASET of version 0.14")
    _add_answers(kind)
    judge_file.add_kinds(what)


def _add_answers(kind: argparse.ArgumentParser) -> None:
    kind.add_argument(
        "--answers", type=Path, default=Path("data/ledger"), help="an SQLite file, or its folder; default: data/ledger"
    )


def _add_choice(kind: argparse.ArgumentParser) -> None:
    """Add the options that choose data sets, judges and variants."""
    kind.add_argument("tables", type=Path, nargs="*", help="folders of tables; default: of params.yaml's data sets")
    kind.add_argument("--metric", nargs="+", help="VARIANT_JUDGE; default: all that judge a data set")
    kind.add_argument("--judges", nargs="+", help="default: all")
    kind.add_argument("--variants", nargs="+", help="default: all")
    kind.add_argument("--params", type=Path, help="default: params.yaml, or the repository's if there is none")
    kind.add_argument(
        "--answers", type=Path, help="where answers are: an SQLite file or its folder; default: params.yaml's"
    )


def _chosen(options: argparse.Namespace) -> tuple[Judging, list[tuple[Path, Task]]]:
    """Return the configuration, and the tasks that are chosen, each with its folder of tables."""
    from comperdial.core.errors import ConfigError, FileError

    judging, config = judge_file.read_config(options)
    folders = options.tables or [_TABLES / name for name in config.get("datasets") or []]
    if not folders:
        raise ConfigError("no data set is named", where="judge", expected="folders of tables, such as data/tables/demo")
    found: list[tuple[Path, Task]] = []
    for folder in folders:
        if not (folder / "responses.parquet").is_file():
            hint = f"Make them: snakemake {folder}/responses.parquet --config 'datasets=[{folder.name}]'"
            raise FileError("no tables of a data set", where=str(folder), expected="responses.parquet", hint=hint)
        found += [(folder, task) for task in _tasks(options, judging, config, folder)]
    return judging, found


def _tasks(options: argparse.Namespace, judging: Judging, config: dict[str, Any], folder: Path) -> Iterator[Task]:
    """Yield the tasks that are chosen of a data set, turns before dialogues."""
    import dataclasses

    from comperdial import schema
    from comperdial.core.errors import UnknownNameError
    from comperdial.data.catalogue import load_catalogue
    from comperdial.judges.tasks import Task, judged_levels, sample_counts

    dataset = folder.name
    for given, known, kind in (
        (options.judges, judging.judges, "judge"),
        (options.variants, judging.variants, "variant"),
    ):
        for name in given or ():
            if name not in known:
                raise UnknownNameError(kind, name, known)
    if options.metric:
        every = {
            task.name: task
            for judge in judging.judges.values()
            for variant in judging.variants.values()
            for task in (Task(judge, variant, count) for count in sample_counts(variant, judge))
        }
        for name in options.metric:
            if name not in every:
                raise UnknownNameError("metric of a judge", name, every)
            yield every[name]
        return
    # A judge or a variant that is named is asked, whatever the configuration says of the data set.
    given = {dataset: tuple(options.judges)} if options.judges else {}
    asks = {dataset: tuple(options.variants)} if options.variants else {}
    judging = dataclasses.replace(judging, by_dataset={**judging.by_dataset, **given}, asks={**judging.asks, **asks})
    catalogue = Path(config.get("catalogue") or "")
    entry = load_catalogue(catalogue).datasets.get(dataset) if catalogue.is_file() else None
    levels = judged_levels(dataset, entry.levels if entry else None)
    if entry is None or options.variants:
        contexts = schema.read(folder / "contexts.parquet", "contexts")
        levels = {"turns": True, "dialogues": bool(contexts["dialogue_id"].duplicated().any())}
    tasks = judging.tasks(dataset, **levels).values()
    # Scores of fewer samples are made of the same answers.
    yield from sorted(
        (task for task in tasks if task.samples == task.wanted[0]), key=lambda task: task.variant.level == "dialogue"
    )


def _list(options: argparse.Namespace) -> None:
    from comperdial.judges.tasks import known_signature, unasked, unavailable

    judging, chosen = _chosen(options)
    for folder, task in chosen:
        why = unavailable(judging, task, folder.name)
        print(f"{folder.name}  {task.name}: {'not run: ' + why if why else 'ready'}")
        if options.signatures:
            print(f"    {known_signature(judging, task) or 'no signature is known here'}")
    names = {task.judge.name for _, task in chosen}
    for name in names:
        reasons = {unasked(variant, judging.judges[name]): variant.name for variant in judging.variants.values()}
        for why, variant in reasons.items():
            if why:
                print(f"{name} is not asked {variant} and the like: {why}")
    if idle := [name for name in judging.judges if name not in names]:
        print(f"Not asked of these data sets: {', '.join(idle)}. See them with --judges NAME.")


def _plan(options: argparse.Namespace) -> None:
    from comperdial.judges.answers import AnswerFile
    from comperdial.judges.plan import as_text, plan
    from comperdial.judges.tasks import known_signature, unavailable

    judging, chosen = _chosen(options)
    plans, skipped = [], []
    for folder, task in chosen:
        if known_signature(judging, task) is None:
            skipped.append(f"{folder.name}  {task.name}: not counted: {unavailable(judging, task, folder.name)}")
        else:
            plans.append(plan(judging, task, folder, dataset=folder.name))
    print("\n".join([*([as_text(plans)] if plans else []), *skipped]))
    with AnswerFile(judging.ledger) as answers:
        print(f"\nAll answers have cost {money(answers.spent)} so far; the budget is {money(judging.budget)}.")
        for why, dollars in answers.charges().items():
            print(f"    of this, without an answer: {money(dollars, 4)} ({harmless(why)})")
    print("At most: a token a byte in, and answers as long as `max_tokens` allows: what the budget sets aside.")
    print(f"Tokens are estimates, without a model's own tokenizer. Prices and their dates: {judging.prices}")


def _run(options: argparse.Namespace) -> None:
    from comperdial.core.errors import ConfigError
    from comperdial.judges.requests import MissingAnswersError
    from comperdial.judges.scores import write_judged

    judging, chosen = _chosen(options)
    writing = options.output or options.judgements
    if writing and len(chosen) != 1:
        raise ConfigError(f"{len(chosen)} metrics", where="--output", expected="one data set and one --metric")
    skipped: list[str] = []
    for folder, task in chosen:
        try:
            judged = write_judged(
                judging,
                task,
                folder,
                options.output,
                options.judgements,
                dataset=folder.name,
                turns=options.turns,
                ask_again=options.ask_again,
                accept_refused=options.accept_refused,
            )
        except MissingAnswersError as error:
            if writing:
                raise
            skipped.append(f"{folder.name}  {task.name}: not run: {error.hint or error.problem}")
            print(harmless(skipped[-1]), flush=True)
            continue
        print(harmless(f"{folder.name}  {task.name}: {outcome(judged)}"), flush=True)
    if skipped and len(skipped) == len(chosen):
        raise ConfigError(
            f"nothing could be asked: none of {len(skipped)} tasks can run here", expected="a judge that can be reached"
        )


def outcome(judged: Judged) -> str:
    """Return what came of a task: what was asked, how many items have a score, and why others have none."""
    items = ["item_id", "system_id"]
    asked, scored = (len(table[items].drop_duplicates()) for table in (judged.judgements, judged.scores))
    parts = [f"{scored:,} of {asked + judged.lacking.total():,} items have scores"]
    parts += [f"{count:,} were not judged: {lacks}" for lacks, count in judged.lacking.items()]
    if judged.failures:
        reasons = "; ".join(f"{count:,} x {why}" for why, count in judged.failures.most_common(3))
        parts.append(f"judgements without a rating: {reasons} (asked for again with --ask-again)")
    return f"{judged.report or 'nothing was asked'}; {', '.join(parts)}"


def _show(options: argparse.Namespace) -> None:
    from comperdial.core.errors import FileError, UnknownNameError
    from comperdial.judges.show import show

    results = options.results / options.tables.name
    known = {path.stem: path for path in sorted((results / "judgements").glob("*.parquet"))}
    if not known:
        raise FileError(
            "no judgements have been made of this data set",
            where=str(results / "judgements"),
            expected="METRIC.parquet for each metric of a judge",
            hint="`judge run --output … --judgements …` or `snakemake` makes them",
        )
    for name in options.metrics or ():
        if name not in known:
            raise UnknownNameError("metric", name, known, where=str(results))
    chosen = options.metrics or [name for name in known if "-once_" not in name]
    scores = [results / "scores" / f"{name}.parquet" for name in chosen]
    made = [known[name] for name in chosen]
    print(harmless(show(options.tables, scores, made, system=options.system, dialogue=options.dialogue)))


def _import(options: argparse.Namespace) -> None:
    from comperdial.config import load_yaml
    from comperdial.config.studies import params_file, with_studies
    from comperdial.core.errors import UnknownNameError
    from comperdial.judges.recorded.taking import take_answers

    path = params_file(options.params)
    entries = with_studies(load_yaml(path)).get("recorded_judges") or {}
    if options.metric not in entries:
        raise UnknownNameError("recorded judge", options.metric, entries, where=str(path))
    entry = entries[options.metric]
    take_answers(
        {"name": options.metric, **{name: entry[name] for name in ("format", "model", "prompt")}},
        entry["sources"],
        options.tables,
        options.output,
        catalogue=options.catalogue,
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
