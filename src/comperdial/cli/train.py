"""The command that trains a learned metric's model."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from comperdial.cli.common import output_folder


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's commands."""
    command = commands.add_parser("train", help="train a model of a learned metric (docs/density.md)")
    command.add_argument("name", help="an entry of `training` in params.yaml")
    command.add_argument("--params", type=Path, default=Path("params.yaml"), help="default: params.yaml")
    command.add_argument("--output", type=output_folder, help="the trained model's folder; default: data/models/NAME")
    command.add_argument(
        "--working",
        type=Path,
        default=Path("data/training"),
        help="keeps checkpoints, from which an interrupted training is resumed; default: data/training",
    )
    command.set_defaults(run=_train)


def _train(options: argparse.Namespace) -> None:
    from comperdial.config import load_yaml
    from comperdial.config.checking import Lines
    from comperdial.config.parameters import read_parameters
    from comperdial.core.errors import MissingResourceError, UnknownNameError
    from comperdial.core.files import sha256
    from comperdial.data import corpora, sources
    from comperdial.data.catalogue import load_catalogue
    from comperdial.data.evaluated import evaluation_texts
    from comperdial.models import runtime
    from comperdial.training.trained import TRAINED

    parameters = read_parameters(load_yaml(options.params), lines=Lines(options.params))
    if options.name not in parameters.training:
        raise UnknownNameError("trained model", options.name, parameters.training, where=f"{options.params}: training")
    if lacking := runtime.missing_packages():
        raise MissingResourceError(lacking)
    from comperdial.training import density

    settings = parameters.training[options.name]
    catalogue = load_catalogue(parameters.catalogue)
    dialogues, origin = [], {}
    for name, corpus in settings.corpora.items():
        path = Path(str(corpus.path))
        if corpus.source:
            source = catalogue.file(corpus.source)
            path = sources.raw_path(source)
            sources.fetch(source, path)
            origin[name] = {"sha256": source.sha256, "licence": source.licence, "citation": source.citation}
        elif path.is_file():
            origin[name] = {"sha256": sha256(path)}
        dialogues += corpora.read_corpus(name, corpus.format, path)
    evaluated, unknown = evaluation_texts(catalogue)
    target = options.output or TRAINED / options.name
    card = density.train(
        options.name, settings, dialogues, evaluated, options.working, target, origin=origin, unknown=unknown
    )
    held_out = "recall@1 {recall_at_1:.3f}, MRR {mrr:.3f} on {n} held-out dialogues"
    print(f"{target}: {held_out.format(**card['held-out']['all'])}")
