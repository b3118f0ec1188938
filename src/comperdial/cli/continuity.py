"""The commands of the study of interlocutors: whose eye, and whether users go on."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from comperdial.cli import common
from comperdial.cli.common import Commands, Run, output_file, output_table, whole
from comperdial.core.errors import MissingResourceError
from comperdial.core.files import read_table, write_table

_SEVERAL: Any = {"type": Path, "nargs": "*", "default": []}


def add_commands(commands: Commands) -> None:
    """Add this module's commands."""
    group = commands.add_parser("continuity", help="interlocutors and outsiders, and whether users go on")
    parts = group.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(run: Run, about: str, **outputs: str) -> ArgumentParser:
        """Add the command that a function is named after, with the tables that it writes."""
        made = common.add_command(parts, run.__name__.removeprefix("_"), run, about)
        for option, text in outputs.items():
            made.add_argument(f"--{option}", type=output_table, required=True, help=f"{text}, to write")
        return made

    about = "Hazumi's annotators with their roles, and its exchanges"
    exchanges = command(_exchanges, about, annotators="table `annotators`", output="lengths and missing scores")
    exchanges.add_argument("dataset", choices=["hazumi1902", "hazumi1911"])

    about = "predict the score that the interlocutor gives an exchange"
    predict = command(_predict, about, output="correlations with the score", differences="differences of these")
    predict.add_argument("tables", type=Path, nargs="+", help="folders of tables with turn ratings and annotators")

    about = "simple metrics, compared with interlocutors' and with outsiders' ratings"
    perspective = command(_perspective, about, output="correlations")
    add = perspective.add_argument
    add("tables", type=Path, help="a folder of tables")
    add("--dimension", required=True, help="the rated dimension")
    add("--tokens", choices=["words", "characters"], default="words", help="default: words")
    add("--outsiders", metavar="SOURCE", help="whose ratings are outsiders'; default: as in table `annotators`")
    what = "of ieval_dial: what `rated-dialogues ieval` wrote, the interlocutors' ratings"
    add("--ieval", type=Path, help=what)

    vectors = command(_vectors, "encode the texts that continuity prediction reads")
    vectors.add_argument("dataset", choices=["chitchat", "convai2", "topical_chat"])
    vectors.add_argument("--encoder", choices=["minilm", "smollm2"], required=True)
    vectors.add_argument("--output", type=output_file, required=True, help="DATASET_ENCODER.safetensors")

    baselines = command(_baselines, "score replies by metrics that know nothing of continuing", output="the scores")
    baselines.add_argument("dataset", choices=["chitchat", "convai2"])

    about = "predict whether users go on, by trained models and by baselines"
    outputs = {"output": "how good the predictions are", "scores": "the predictions"}
    models = command(_models, about, **outputs, continuations="table `continuations`")
    models.add_argument("dataset", choices=["chitchat", "convai2"])
    models.add_argument("--vectors", **_SEVERAL, help="what `vectors` wrote for the data set")
    models.add_argument("--baselines", type=Path, nargs="?", help="what `baselines` wrote, if anything")

    outputs = {"joined": "all measures", "output": "agreement with ratings", "scores": "the log-odds of each reply"}
    liking = command(_liking, "compare predicted continuing with what users liked", **outputs)
    what = "what `models` wrote, for convai2 and others"
    liking.add_argument("--measures", type=Path, nargs="+", required=True, help=what)
    liking.add_argument("--vectors", **_SEVERAL, help="what `vectors` wrote, for all data sets")

    for one in (predict, perspective, models, liking):
        one.add_argument("--resamples", type=whole(2), default=1000, help="for intervals (default: 1000)")
    for one in (predict, perspective):
        one.add_argument("--seed", type=whole(0), default=2024, help="of the resamples (default: 2024)")
    for one in (exchanges, vectors, baselines, models, liking):
        common.add_catalogue(one)


def _exchanges(options: Namespace) -> None:
    import pandas as pd

    from comperdial import schema
    from comperdial.data import catalogue, sources
    from comperdial.data.readers.hazumi import annotators, exchanges

    files = sources.require_all(catalogue.load_catalogue(options.catalogue).dataset(options.dataset).files)
    there = exchanges(options.dataset, files)
    rows = [(one.dialogue_id, one.turn, len(one.wizard), len(one.participant), "+".join(one.lacks)) for one in there]
    columns = ["dialogue_id", "turn", "wizard_characters", "participant_characters", "lacks"]
    schema.write(options.annotators, annotators(options.dataset, there), "annotators")
    write_table(options.output, pd.DataFrame(rows, columns=columns))


def _predict(options: Namespace) -> None:
    from comperdial.evaluation.perspective import score_prediction

    values, differences = score_prediction(options.tables, resamples=options.resamples, seed=options.seed)
    write_table(options.output, values)
    write_table(options.differences, differences)


def _perspective(options: Namespace) -> None:
    from comperdial.evaluation.perspective import in_whose_eye, rated_items

    ieval = read_table(options.ieval) if options.ieval else None
    items = rated_items(options.tables, options.dimension, options.tokens, outsiders=options.outsiders, ieval=ieval)
    values = in_whose_eye(items, resamples=options.resamples, seed=options.seed)
    write_table(options.output, values.assign(dataset=options.tables.name, level=items["level"].iloc[0]))


def _vectors(options: Namespace) -> None:
    from comperdial.data.continuations import read_conversations
    from comperdial.training import continuity_tasks as tasks

    name, conversations = options.encoder, read_conversations(options.dataset, options.catalogue)
    texts = tasks.texts(options.dataset, conversations, name)
    vectors = tasks.embed(tasks.ENCODERS[name], texts, tasks.MOST_TOKENS[name], end=name == "smollm2")
    tasks.write_vectors(options.output, vectors)


def _baselines(options: Namespace) -> None:
    from comperdial.data.continuations import read_conversations
    from comperdial.evaluation.continuing import BASELINES, baseline_scores, baselines_here

    if not (names := baselines_here()):
        where = f"that of {' or '.join(BASELINES)}"
        raise MissingResourceError("no baseline's model is on this machine", expected=where)
    conversations = read_conversations(options.dataset, options.catalogue)
    write_table(options.output, baseline_scores(options.dataset, conversations, names))


def _models(options: Namespace) -> None:
    from comperdial import schema
    from comperdial.data.continuations import read_conversations
    from comperdial.evaluation.continuing import continuations, evaluate
    from comperdial.training.continuity_tasks import read_vectors

    conversations = read_conversations(options.dataset, options.catalogue)
    vectors = read_vectors(options.vectors).get(options.dataset, {})
    baselines = read_table(options.baselines) if options.baselines else None
    measures, scores = evaluate(options.dataset, conversations, vectors, baselines, resamples=options.resamples)
    write_table(options.output, measures)
    write_table(options.scores, scores)
    schema.write(options.continuations, continuations(options.dataset, conversations), "continuations")


def _liking(options: Namespace) -> None:
    import pandas as pd

    from comperdial.data.continuations import RATED, read_conversations
    from comperdial.evaluation.continuing import liking
    from comperdial.training.continuity_tasks import read_vectors

    measures = pd.concat([read_table(path) for path in options.measures], ignore_index=True)
    vectors = read_vectors(options.vectors)
    names = [*measures["dataset"].unique(), *([RATED] if RATED in vectors else [])]
    conversations = {name: read_conversations(name, options.catalogue) for name in names}
    agreement, scores = liking(conversations, vectors, measures, resamples=options.resamples)
    write_table(options.joined, measures)
    write_table(options.output, agreement)
    write_table(options.scores, scores)
