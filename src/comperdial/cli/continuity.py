"""The commands of the study of interlocutors: whose eye, and whether users go on."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from comperdial.cli.common import add_catalogue, output_file, output_table, whole


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's commands."""
    group = commands.add_parser("continuity", help="interlocutors and outsiders, and whether users go on")
    parts = group.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def add(name: str, run: Callable[[argparse.Namespace], None], help: str, **outputs: str) -> argparse.ArgumentParser:
        command: argparse.ArgumentParser = parts.add_parser(name, help=help)
        for option, text in outputs.items():
            command.add_argument(f"--{option}", type=output_table, required=True, help=text)
        command.set_defaults(run=run)
        return command

    table = "a .csv, .jsonl or .parquet file to write"
    command = add(
        "exchanges", _exchanges, "Hazumi's annotators with their roles, and its exchanges",
        annotators="table `annotators` to write", output="lengths and missing scores of exchanges, to write",
    )  # fmt: skip
    command.add_argument("dataset", choices=["hazumi1902", "hazumi1911"])
    add_catalogue(command)

    predict = add(
        "predict", _predict, "predict the score that the interlocutor gives an exchange",
        output="correlations with the score, to write", differences="differences of these, to write",
    )  # fmt: skip
    predict.add_argument("tables", type=Path, nargs="+", help="folders of tables with turn ratings and annotators")
    predict.add_argument("--encoder", help="a sentence encoder, instead of TF-IDF of characters")

    about = "simple metrics, compared with interlocutors' and with outsiders' ratings"
    perspective = add("perspective", _perspective, about, output=table)
    perspective.add_argument("tables", type=Path, help="a folder of tables")
    perspective.add_argument("--dimension", required=True, help="the rated dimension")
    perspective.add_argument("--tokens", choices=["words", "characters"], default="words", help="default: words")
    whose = "whose ratings are outsiders'; default: as in table `annotators`"
    perspective.add_argument("--outsiders", metavar="SOURCE", help=whose)
    whose = "of ieval_dial: what `rated-dialogues ieval` wrote, the interlocutors' ratings"
    perspective.add_argument("--ieval", type=Path, help=whose)

    vectors = add("vectors", _vectors, "encode the texts that continuity prediction reads")
    vectors.add_argument("dataset", choices=["chitchat", "convai2", "topical_chat"])
    vectors.add_argument("--encoder", choices=["minilm", "smollm2"], required=True)
    vectors.add_argument("--output", type=output_file, required=True, help="DATASET_ENCODER.safetensors")

    baselines = add("baselines", _baselines, "score replies by metrics that know nothing of continuing", output=table)
    models = add(
        "models", _models, "predict whether users go on, by trained models and by baselines",
        output="how good the predictions are, to write", scores="the predictions, to write",
        continuations="table `continuations`, to write",
    )  # fmt: skip
    for command in (baselines, models):
        command.add_argument("dataset", choices=["chitchat", "convai2"])
    models.add_argument("--vectors", type=Path, nargs="*", default=[], help="what `vectors` wrote for the data set")
    models.add_argument("--baselines", type=Path, nargs="?", help="what `baselines` wrote, if anything")

    liking = add(
        "liking", _liking, "compare predicted continuing with what users liked",
        joined="all measures, to write", output="agreement with ratings, to write",
        scores="the log-odds of each reply, to write",
    )  # fmt: skip
    measures = "what `models` wrote, for convai2 and others"
    liking.add_argument("--measures", type=Path, nargs="+", required=True, help=measures)
    liking.add_argument("--vectors", type=Path, nargs="*", default=[], help="what `vectors` wrote, for all data sets")
    for command in (predict, perspective, models, liking):
        command.add_argument("--resamples", type=whole(2), default=1000, help="for intervals (default: 1000)")
    for command in (predict, perspective):
        command.add_argument("--seed", type=whole(0), default=2024, help="of the resamples (default: 2024)")
    for command in (vectors, baselines, models, liking):
        add_catalogue(command)


def _exchanges(options: argparse.Namespace) -> None:
    import pandas as pd

    from comperdial import schema
    from comperdial.core.files import write_table
    from comperdial.data import sources
    from comperdial.data.catalogue import load_catalogue
    from comperdial.data.readers.hazumi import annotators, exchanges

    files = sources.require_all(load_catalogue(options.catalogue).dataset(options.dataset).files)
    there = exchanges(options.dataset, files)
    rows = [(one.dialogue_id, one.turn, len(one.wizard), len(one.participant), "+".join(one.lacks)) for one in there]
    columns = ["dialogue_id", "turn", "wizard_characters", "participant_characters", "lacks"]
    schema.write(options.annotators, annotators(options.dataset, there), "annotators")
    write_table(options.output, pd.DataFrame(rows, columns=columns))


def _predict(options: argparse.Namespace) -> None:
    from comperdial.core.files import write_table
    from comperdial.evaluation.perspective import score_prediction

    drawing = {"resamples": options.resamples, "seed": options.seed}
    values, differences = score_prediction(options.tables, encoder=options.encoder, **drawing)
    write_table(options.output, values)
    write_table(options.differences, differences)


def _perspective(options: argparse.Namespace) -> None:
    from comperdial.core.files import read_table, write_table
    from comperdial.evaluation.perspective import in_whose_eye, rated_items

    ieval = None if options.ieval is None else read_table(options.ieval)
    items = rated_items(options.tables, options.dimension, options.tokens, outsiders=options.outsiders, ieval=ieval)
    drawing = {"resamples": options.resamples, "seed": options.seed}
    values = in_whose_eye(items.scores, items.ratings, items.clusters, **drawing)
    write_table(options.output, values.assign(dataset=options.tables.name, level=items.level))


def _vectors(options: argparse.Namespace) -> None:
    from comperdial.data.continuations import read_conversations
    from comperdial.training import continuity_tasks as tasks

    conversations = read_conversations(options.dataset, options.catalogue)
    texts = tasks.texts(options.dataset, conversations, options.encoder)
    name = options.encoder
    vectors = tasks.embed(tasks.ENCODERS[name], texts, tasks.MOST_TOKENS[name], end=name == "smollm2")
    tasks.write_vectors(options.output, vectors)


def _baselines(options: argparse.Namespace) -> None:
    from comperdial.core.errors import MissingResourceError
    from comperdial.core.files import write_table
    from comperdial.data.continuations import read_conversations
    from comperdial.evaluation.continuing import BASELINES, baseline_scores, baselines_here

    if not (names := baselines_here()):
        raise MissingResourceError(
            "no baseline's model is on this machine", expected=f"that of {' or '.join(BASELINES)}"
        )
    conversations = read_conversations(options.dataset, options.catalogue)
    write_table(options.output, baseline_scores(options.dataset, conversations, names))


def _models(options: argparse.Namespace) -> None:
    from comperdial import schema
    from comperdial.core.files import read_table, write_table
    from comperdial.data.continuations import read_conversations
    from comperdial.evaluation.continuing import continuations, evaluate
    from comperdial.training.continuity_tasks import read_vectors

    conversations = read_conversations(options.dataset, options.catalogue)
    vectors = read_vectors(options.vectors).get(options.dataset, {})
    baselines = None if options.baselines is None else read_table(options.baselines)
    measures, scores = evaluate(options.dataset, conversations, vectors, baselines, resamples=options.resamples)
    write_table(options.output, measures)
    write_table(options.scores, scores)
    schema.write(options.continuations, continuations(options.dataset, conversations), "continuations")


def _liking(options: argparse.Namespace) -> None:
    import pandas as pd

    from comperdial.core.files import read_table, write_table
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
