"""The commands that list, fetch and train models."""

from __future__ import annotations

import argparse
from pathlib import Path

from comperdial.config import load_yaml
from comperdial.config.checking import Lines
from comperdial.config.parameters import read_parameters
from comperdial.core.errors import MissingResourceError, UnknownNameError
from comperdial.core.files import sha256
from comperdial.data import corpora, sources
from comperdial.data.catalogue import load_catalogue
from comperdial.models import fetch, registry, runtime, store


def list_models(_: argparse.Namespace) -> None:
    """List the models."""
    for name in registry.names():
        entry, problem = registry.entry(name), store.missing(name)
        state = "present" if problem is None else "altered" if "altered" in problem else "not present"
        print(f"{state:11}  {entry.size:>8}  {name}: {entry.about} ({entry.origin})")


def fetch_models(options: argparse.Namespace) -> None:
    """Fetch models."""
    for name in options.names:
        model = fetch.fetch(name)
        print(f"{name}@{model.digest} in {model.path}")


def train(options: argparse.Namespace) -> None:
    """Train the model of a learned metric."""
    from comperdial.data.evaluated import evaluation_texts
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
