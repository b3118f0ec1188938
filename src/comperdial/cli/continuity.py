"""The commands of the study of interlocutors: whose eye, and whether users go on."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from comperdial.cli.common import add_catalogue, output_file, output_table, whole


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's commands."""
    group = commands.add_parser("continuity", help="interlocutors and outsiders, and whether users go on")
    parts = group.add_subparsers(title="commands", metavar="COMMAND", required=True)

    command = parts.add_parser("exchanges", help="Hazumi's annotators with their roles, and its exchanges")
    command.add_argument("dataset", choices=["hazumi1902", "hazumi1911"])
    command.add_argument("--annotators", type=output_table, required=True, help="table `annotators` to write")
    command.add_argument(
        "--output", type=output_table, required=True, help="lengths and missing scores of exchanges, to write"
    )
    add_catalogue(command)
    command.set_defaults(run=_exchanges)

    command = parts.add_parser("predict", help="predict the score that the interlocutor gives an exchange")
    command.add_argument("tables", type=Path, nargs="+", help="folders of tables with turn ratings and annotators")
    command.add_argument("--encoder", help="a sentence encoder, instead of TF-IDF of characters")
    command.add_argument("--output", type=output_table, required=True, help="correlations with the score, to write")
    command.add_argument("--differences", type=output_table, required=True, help="differences of these, to write")
    _add_drawing(command)
    command.set_defaults(run=_predict)

    command = parts.add_parser(
        "perspective", help="simple metrics, compared with interlocutors' and with outsiders' ratings"
    )
    command.add_argument("tables", type=Path, help="a folder of tables")
    command.add_argument("--dimension", required=True, help="the rated dimension")
    command.add_argument("--tokens", choices=["words", "characters"], default="words", help="default: words")
    command.add_argument(
        "--outsiders", metavar="SOURCE", help="whose ratings are outsiders'; default: table `annotators` says"
    )
    command.add_argument(
        "--ieval", type=Path, help="of ieval_dial: what `rated-dialogues ieval` wrote, the interlocutors' ratings"
    )
    command.add_argument("--output", type=output_table, required=True, help="a .csv, .jsonl or .parquet file")
    _add_drawing(command)
    command.set_defaults(run=_perspective)

    command = parts.add_parser("vectors", help="encode the texts that continuity prediction reads")
    _add_conversations(command, "chitchat", "convai2", "topical_chat")
    command.add_argument("--encoder", choices=["minilm", "smollm2"], required=True)
    command.add_argument("--output", type=output_file, required=True, help="DATASET_ENCODER.safetensors")
    command.set_defaults(run=_vectors)

    command = parts.add_parser("baselines", help="score replies by metrics that know nothing of continuing")
    _add_conversations(command, "chitchat", "convai2")
    command.add_argument("--output", type=output_table, required=True, help="a .csv, .jsonl or .parquet file")
    command.set_defaults(run=_baselines)

    command = parts.add_parser("models", help="predict whether users go on, by trained models and by baselines")
    _add_conversations(command, "chitchat", "convai2")
    command.add_argument("--vectors", type=Path, nargs="*", default=[], help="what `vectors` wrote for the data set")
    command.add_argument("--baselines", type=Path, help="what `baselines` wrote")
    command.add_argument("--output", type=output_table, required=True, help="how good the predictions are, to write")
    command.add_argument("--scores", type=output_table, required=True, help="the predictions, to write")
    command.add_argument("--continuations", type=output_table, required=True, help="table `continuations`, to write")
    command.add_argument("--resamples", type=whole(2), default=1000, help="for intervals (default: 1000)")
    command.set_defaults(run=_models)

    command = parts.add_parser("liking", help="compare predicted continuing with what users liked")
    command.add_argument(
        "--measures", type=Path, nargs="+", required=True, help="what `models` wrote, for convai2 and others"
    )
    command.add_argument("--vectors", type=Path, nargs="*", default=[], help="what `vectors` wrote, for all data sets")
    command.add_argument("--joined", type=output_table, required=True, help="all measures, to write")
    command.add_argument("--output", type=output_table, required=True, help="agreement with ratings, to write")
    command.add_argument("--scores", type=output_table, required=True, help="the log-odds of each reply, to write")
    command.add_argument("--resamples", type=whole(2), default=1000, help="for intervals (default: 1000)")
    add_catalogue(command)
    command.set_defaults(run=_liking)


def _add_drawing(command: argparse.ArgumentParser) -> None:
    command.add_argument("--resamples", type=whole(2), default=1000, help="for intervals (default: 1000)")
    command.add_argument("--seed", type=whole(0), default=2024, help="of the resamples (default: 2024)")


def _add_conversations(command: argparse.ArgumentParser, *datasets: str) -> None:
    command.add_argument("dataset", choices=datasets)
    add_catalogue(command)


def _exchanges(options: argparse.Namespace) -> None:
    import pandas as pd

    from comperdial import schema
    from comperdial.core.files import write_table
    from comperdial.data import sources
    from comperdial.data.catalogue import load_catalogue
    from comperdial.data.readers.hazumi import Hazumi

    files = load_catalogue(options.catalogue).dataset(options.dataset).files
    reader = Hazumi(options.dataset, {role: sources.require(source) for role, source in files.items()})
    found = [
        {
            "dialogue_id": one.dialogue_id,
            "turn": one.turn,
            "wizard_characters": len(one.wizard),
            "participant_characters": len(one.participant),
            "lacks": "+".join(one.lacks),
        }
        for one in reader.exchanges
    ]
    schema.write(options.annotators, reader.annotators(), "annotators")
    write_table(options.output, pd.DataFrame(found))


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
    found = in_whose_eye(items.scores, items.ratings, items.clusters, **drawing)
    write_table(options.output, found.assign(dataset=options.tables.name, level=items.level))


def _vectors(options: argparse.Namespace) -> None:
    from comperdial.data.continuations import read_conversations
    from comperdial.training import continuity_tasks

    found = read_conversations(options.dataset, options.catalogue)
    texts = continuity_tasks.texts(options.dataset, found, options.encoder)
    continuity_tasks.write_vectors(options.output, continuity_tasks.embed(options.encoder, texts))


def _baselines(options: argparse.Namespace) -> None:
    from comperdial.core.errors import MissingResourceError
    from comperdial.core.files import write_table
    from comperdial.data.continuations import read_conversations
    from comperdial.evaluation.continuing import BASELINES, baseline_scores, baselines_here

    if not (names := baselines_here()):
        raise MissingResourceError(
            "no baseline's model is on this machine", expected=f"that of {' or '.join(BASELINES)}"
        )
    found = read_conversations(options.dataset, options.catalogue)
    write_table(options.output, baseline_scores(options.dataset, found, names))


def _models(options: argparse.Namespace) -> None:
    from comperdial import schema
    from comperdial.core.files import read_table, write_table
    from comperdial.data.continuations import read_conversations
    from comperdial.evaluation.continuing import continuations, evaluate
    from comperdial.training.continuity_tasks import read_vectors

    found = read_conversations(options.dataset, options.catalogue)
    vectors = read_vectors(options.vectors).get(options.dataset, {})
    baselines = None if options.baselines is None else read_table(options.baselines)
    measures, scores = evaluate(options.dataset, found, vectors, baselines, resamples=options.resamples)
    went_on = schema.validate(continuations(options.dataset, found), "continuations", where=options.dataset)
    write_table(options.output, measures)
    write_table(options.scores, scores)
    schema.write(options.continuations, went_on, "continuations")


def _liking(options: argparse.Namespace) -> None:
    import pandas as pd

    from comperdial.core.files import read_table, write_table
    from comperdial.data.continuations import RATED, read_conversations
    from comperdial.evaluation.continuing import liking
    from comperdial.training.continuity_tasks import read_vectors

    measures = pd.concat([read_table(path) for path in options.measures], ignore_index=True)
    vectors = read_vectors(options.vectors)
    rated = [RATED] if RATED in vectors else []
    there = {name: read_conversations(name, options.catalogue) for name in [*measures["dataset"].unique(), *rated]}
    found, scores = liking(there, vectors, measures, resamples=options.resamples)
    write_table(options.joined, measures)
    write_table(options.output, found)
    write_table(options.scores, scores)
