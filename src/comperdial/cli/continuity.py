"""Commands for the study of interlocutors and outsiders, and for continuity prediction."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from comperdial.cli import options as o
from comperdial.core.errors import MissingResourceError

continuity = o.group("Ratings by interlocutors and outsiders, and continuity prediction.", "continuity")

_Chat = Annotated[Literal["chitchat", "convai2"], Argument(help="Conversations.")]
_Vectors = Annotated[o.Files, o.option("FILE", "Output of `vectors`.")]


@o.command(of=continuity)
def exchanges(
    dataset: Annotated[Literal["hazumi1902", "hazumi1911"], Argument(help="Corpus.")],
    annotators: Annotated[Path, o.written("Table `annotators`.")],
    output: Annotated[Path, o.written("Lengths and missing scores.")],
) -> None:
    """Write Hazumi's annotators with their roles, and its exchanges."""
    import pandas as pd

    from comperdial import schema
    from comperdial.core.files import write_table
    from comperdial.data import sources
    from comperdial.data.catalogue import load_catalogue
    from comperdial.data.readers import hazumi

    there = hazumi.exchanges(dataset, sources.require_all(load_catalogue(o.CATALOGUE).dataset(dataset).files))
    rows = [(one.dialogue_id, one.turn, len(one.wizard), len(one.participant), "+".join(one.lacks)) for one in there]
    columns = ["dialogue_id", "turn", "wizard_characters", "participant_characters", "lacks"]
    schema.write(annotators, hazumi.annotators(dataset, there), "annotators")
    write_table(output, pd.DataFrame(rows, columns=columns))


@o.command(of=continuity)
def predict(
    tables: Annotated[list[Path], Argument(help="Folders of tables with turn ratings and annotators.")],
    output: Annotated[Path, o.written("Correlations with the score.")],
    differences: Annotated[Path, o.written("Differences between these.")],
    resamples: o.Resamples = 1000,
    seed: o.Seed = 2024,
) -> None:
    """Predict the score that the interlocutor gives an exchange."""
    from comperdial.core.files import write_table
    from comperdial.evaluation.perspective import score_prediction

    values, between = score_prediction(tables, resamples=resamples, seed=seed)
    write_table(output, values)
    write_table(differences, between)


@o.command(of=continuity)
def perspective(
    tables: Annotated[Path, Argument(help="A folder of tables.")],
    dimension: Annotated[str, Option(help="The rated dimension.")],
    output: Annotated[Path, o.written("Correlations.")],
    tokens: Annotated[Literal["words", "characters"], Option(help="Units that texts are split into.")] = "words",
    outsiders: Annotated[
        o.Name, o.option("SOURCE", "Source of the outsiders' ratings; default: from table `annotators`.")
    ] = None,
    ieval: Annotated[
        o.File,
        o.option("FILE", "For ieval_dial: interlocutors' ratings, from `rated-dialogues ieval`."),
    ] = None,
    resamples: o.Resamples = 1000,
    seed: o.Seed = 2024,
) -> None:
    """Compare simple metrics with interlocutors' and outsiders' ratings."""
    from comperdial.core.files import read_table, write_table
    from comperdial.evaluation.perspective import in_whose_eye, rated_items

    rated = read_table(ieval) if ieval else None
    items = rated_items(tables, dimension, tokens, outsiders=outsiders, ieval=rated)
    values = in_whose_eye(items, resamples=resamples, seed=seed)
    write_table(output, values.assign(dataset=tables.name, level=items["level"].iloc[0]))


@o.command(of=continuity)
def vectors(
    dataset: Annotated[Literal["chitchat", "convai2", "topical_chat"], Argument(help="Conversations.")],
    encoder: Annotated[Literal["minilm", "smollm2"], Option(help="Model.")],
    output: Annotated[Path, o.written("DATASET_ENCODER.safetensors.", o.output_file)],
) -> None:
    """Encode the texts for continuity prediction."""
    from comperdial.data.continuations import read_conversations
    from comperdial.training import continuity_tasks as tasks

    texts = tasks.texts(dataset, read_conversations(dataset), encoder)
    made = tasks.embed(tasks.ENCODERS[encoder], texts, tasks.MOST_TOKENS[encoder], end=encoder == "smollm2")
    tasks.write_vectors(output, made)


@o.command(of=continuity)
def baselines(dataset: _Chat, output: Annotated[Path, o.written("The scores.")]) -> None:
    """Score replies with metrics unrelated to continuing."""
    from comperdial.core.files import write_table
    from comperdial.data.continuations import read_conversations
    from comperdial.evaluation.continuing import BASELINES, baseline_scores, baselines_here

    if not (names := baselines_here()):
        where = f"that of {' or '.join(BASELINES)}"
        raise MissingResourceError("no baseline's model is on this machine", expected=where)
    write_table(output, baseline_scores(dataset, read_conversations(dataset), names))


@o.command(of=continuity)
def models(
    dataset: _Chat,
    output: Annotated[Path, o.written("Accuracy of the predictions.")],
    scores: Annotated[Path, o.written("The predictions.")],
    continuations: Annotated[Path, o.written("Table `continuations`.")],
    vectors: _Vectors = None,
    baselines: Annotated[o.Files, o.option("FILE", "Output of `baselines`.")] = None,
    resamples: o.Resamples = 1000,
) -> None:
    """Predict whether users continue, with trained models and baselines."""
    import pandas as pd

    from comperdial import schema
    from comperdial.core.files import read_table, write_table
    from comperdial.data.continuations import read_conversations
    from comperdial.evaluation import continuing
    from comperdial.training.continuity_tasks import read_vectors

    conversations = read_conversations(dataset)
    encoded = read_vectors(vectors or []).get(dataset, {})
    others = pd.concat(map(read_table, baselines), ignore_index=True) if baselines else None
    measures, predicted = continuing.evaluate(dataset, conversations, encoded, others, resamples=resamples)
    write_table(output, measures)
    write_table(scores, predicted)
    schema.write(continuations, continuing.continuations(dataset, conversations), "continuations")


@o.command(of=continuity)
def liking(
    measures: Annotated[list[Path], o.option("FILE", "Output of `models` for convai2 and others.")],
    joined: Annotated[Path, o.written("All measures.")],
    output: Annotated[Path, o.written("Agreement with ratings.")],
    scores: Annotated[Path, o.written("The log-odds of each reply.")],
    vectors: _Vectors = None,
    resamples: o.Resamples = 1000,
) -> None:
    """Compare predicted continuation with user ratings."""
    import pandas as pd

    from comperdial.core.files import read_table, write_table
    from comperdial.data.continuations import RATED, read_conversations
    from comperdial.evaluation import continuing
    from comperdial.training.continuity_tasks import read_vectors

    every = pd.concat(map(read_table, measures), ignore_index=True)
    encoded = read_vectors(vectors or [])
    names = [*every["dataset"].unique(), *([RATED] if RATED in encoded else [])]
    conversations = {name: read_conversations(name) for name in names}
    agreement, predicted = continuing.liking(conversations, encoded, every, resamples=resamples)
    write_table(joined, every)
    write_table(output, agreement)
    write_table(scores, predicted)
