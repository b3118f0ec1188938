"""Commands for models: fetch, train and fit them."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument

from comperdial.cli import options as o
from comperdial.core.errors import MissingResourceError, UnknownNameError

log = logging.getLogger(__name__)

models = o.group("List and fetch models of metrics.", "models")

_Features = Annotated[o.File, o.option("FILE", "Features and data sets; default: the built-in local_features.yaml.")]
_Tables = Annotated[Path, o.option("FOLDER", "Tables of the data sets.")]
_Scores = Annotated[Path, o.option("FOLDER", "Folder with DATASET/scores/METRIC.parquet.")]


@models.callback(invoke_without_command=True, no_args_is_help=False)
def list_models(context: typer.Context) -> None:
    """List and fetch models of metrics."""
    from comperdial.models import registry, store

    for name in () if context.invoked_subcommand else registry.names():
        entry, problem = registry.entry(name), store.missing(name)
        state = "present" if problem is None else "altered" if "altered" in problem else "not present"
        print(f"{state:11}  {entry.size:>8}  {name}: {entry.about} ({entry.origin})")


@o.command("fetch", of=models)
def fetch_models(names: Annotated[list[str], Argument(help="Names from `comperdial models`.")]) -> None:
    """Fetch models from the Hugging Face hub."""
    from comperdial.models import fetch

    for name in names:
        model = fetch.fetch(name)
        print(f"{name}@{model.digest} in {model.path}")


@o.command()
def train(
    name: Annotated[str, Argument(help="An entry of `training` in params.yaml.")],
    params: Annotated[Path, o.option("FILE", "Configuration with the entry.")] = Path("params.yaml"),
    output: Annotated[o.File, o.written("The trained model; default: data/models/NAME.", o.output_folder)] = None,
) -> None:
    """Train a model of a learned metric (docs/density.md).

    Interrupted training resumes from checkpoints in data/training.
    """
    from comperdial.config import load_yaml
    from comperdial.config.checking import Lines
    from comperdial.config.parameters import read_parameters
    from comperdial.core.files import sha256
    from comperdial.data import corpora, sources
    from comperdial.data.catalogue import load_catalogue
    from comperdial.data.evaluated import evaluation_texts
    from comperdial.models import runtime
    from comperdial.training.trained import TRAINED

    parameters = read_parameters(load_yaml(params), lines=Lines(params))
    if name not in parameters.training:
        raise UnknownNameError("trained model", name, parameters.training, where=f"{params}: training")
    if lacking := runtime.missing_packages():
        raise MissingResourceError(lacking)
    from comperdial.training import density

    settings = parameters.training[name]
    catalogue = load_catalogue(parameters.catalogue)
    dialogues, origin = [], {}
    for title, corpus in settings.corpora.items():
        path = Path(str(corpus.path))
        if corpus.source:
            source = catalogue.file(corpus.source)
            path = sources.raw_path(source)
            sources.fetch(source, path)
            origin[title] = {"sha256": source.sha256, "licence": source.licence, "citation": source.citation}
        elif path.is_file():
            origin[title] = {"sha256": sha256(path)}
        dialogues += corpora.read_corpus(title, corpus.format, path)
    evaluated, unknown = evaluation_texts(catalogue)
    target = output or TRAINED / name
    card = density.train(
        name, settings, dialogues, evaluated, Path("data/training"), target, origin=origin, unknown=unknown
    )
    held_out = "recall@1 {recall_at_1:.3f}, MRR {mrr:.3f} on {n} held-out dialogues"
    print(f"{target}: {held_out.format(**card['held-out']['all'])}")


@o.command()
def fit(
    features: _Features = None,
    tables: _Tables = Path("data/tables"),
    scores: _Scores = Path("results"),
    leave_out: Annotated[o.Names, o.option("PART", "Parts to omit.")] = None,
    output: Annotated[o.File, o.written("A .json file; default: the built-in one.", o.output_file)] = None,
) -> None:
    """Fit the learned metric `local` to human ratings.

    Uses the scores from `snakemake local_metrics` to fit the coefficients (docs/local-metric.md).
    """
    from datetime import UTC, datetime

    from comperdial.config import load_yaml
    from comperdial.core.files import write_json
    from comperdial.evaluation import fitting
    from comperdial.metrics.local import COEFFICIENTS, FEATURES, Features

    settings, target = features or FEATURES, output or COEFFICIENTS
    parts = Features.read(settings)
    if unknown := [part for part in leave_out or () if part not in parts.parts]:
        raise UnknownNameError("part", unknown[0], parts.parts, where="--leave-out")
    parts = parts.without(*leave_out or ())
    sets = fitting.read_sets(settings, parts, tables, scores)
    date = datetime.now(UTC).date().isoformat()
    coefficients = fitting.train(sets, parts, load_yaml(settings)["penalties"], date=date)
    write_json(target, coefficients)
    log.info("%s: %d fits on %d data sets", target, len(coefficients["fits"]), len(sets))


@o.command()
def ablate(
    output: Annotated[Path, o.written("Table `correlations`.")],
    pairs: Annotated[Path, o.written("Table `pairs`.")],
    features: _Features = None,
    tables: _Tables = Path("data/tables"),
    scores: _Scores = Path("results"),
    resamples: o.Resamples = 1000,
    seed: o.Seed = 2024,
) -> None:
    """Correlate `local` without each part, and each part alone.

    Uses held-out scores and human ratings.
    """
    from comperdial import schema
    from comperdial.config import load_yaml
    from comperdial.evaluation import fitting
    from comperdial.metrics.local import COEFFICIENTS, FEATURES, Coefficients, Features

    settings = features or FEATURES
    parts = Features.read(settings) if features else Coefficients.read(COEFFICIENTS).features
    sets = fitting.read_sets(settings, parts, tables, scores)
    drawing = {"resamples": resamples, "seed": seed}
    made = fitting.ablation(sets, tables, parts, load_yaml(settings)["penalties"], **drawing)
    schema.write(output, made[0], "correlations")
    schema.write(pairs, made[1], "pairs")
