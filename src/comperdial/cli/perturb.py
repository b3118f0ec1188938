"""The commands that make responses and dialogues worse on purpose, and score some of them."""

from __future__ import annotations

import argparse
import re

import numpy as np

from comperdial import schema
from comperdial.cli.score import name_not_run
from comperdial.core.errors import ConfigError, MissingResourceError
from comperdial.core.files import write_table
from comperdial.evaluation.ratios import drawn, ratios, read_pairs
from comperdial.metrics import scoring
from comperdial.metrics.named import metric_named, read_entries
from comperdial.perturbations import PERTURBATIONS, perturb, require


def list_perturbations(_: argparse.Namespace) -> None:
    """List the perturbations, and which cannot run here."""
    for name, entry in PERTURBATIONS.items():
        ours = "" if entry.paper else ", not in the paper's tables"
        print(f"{name} ({entry.short}, {entry.title}{ours})")
        print(f"    {entry.level}: lowers {', '.join(entry.dimensions)} by more than {entry.threshold:g}")
        print(f"    {entry.about}" + ("" if entry.change else "; recorded pairs only"))
        try:
            require(name)
        except MissingResourceError as error:
            print(f"    cannot run here: {error.problem}; expected {error.expected}")


def make_pairs(options: argparse.Namespace) -> None:
    """Write the tables of a data set's pairs, and say what there are."""
    folder, output, dataset = options.folder, options.output, options.dataset
    if not re.fullmatch("[A-Za-z0-9_-]+", dataset):
        raise ConfigError(f"data set name {dataset!r}", expected='letters (a to z), digits, "_" and "-" only')
    # The tables that are read, or another data set's, would be lost.
    there = output / "systems.parquet"
    others = set(schema.read(there, "systems")["dataset"]) - {dataset} if there.is_file() else set()
    if output.resolve() == folder.resolve() or others:
        whose = f"of {', '.join(sorted(others))}" if others else "that are perturbed"
        problem, expected = f"{output} holds the tables {whose}", "a folder of its own for the pairs"
        raise ConfigError(problem, where="--output", expected=expected)
    made = perturb(folder, dataset, options.strategy, options.sample, options.seed, good=not options.all_items)
    # All tables are made and checked before the first is written.
    for name, frame in made.tables.items():
        schema.write(output / f"{name}.parquet", frame, name)
    write_table(output / "pairs.csv", made.pairs)
    for name, count in made.counts.items():
        print(f"{name}: {count.pairs} pairs, drawn from {count.items} items; {count.unchanged} tried cannot be changed")
    for name, why in made.left_out.items():
        print(f"{name}: left out: {why}")


def score_sample(options: argparse.Namespace) -> None:
    """Score a sample of pairs with the metrics that run here."""
    entries = read_entries()
    metrics = {name: metric_named(name, entries) for name in options.metrics}
    contexts, pairs = read_pairs(options.tables)
    contexts = drawn(contexts, options.kinds, options.sample, np.random.default_rng(options.seed))
    parts = []
    for responses, batch in scoring.batches(options.tables):
        kept = responses["context_id"].isin(contexts["context_id"]).to_numpy()
        parts.append((responses[kept], batch.only(kept)))
    scores, not_run = scoring.score_many(metrics, parts)
    name_not_run(not_run)
    schema.write(options.output, scores, "scores")
    pairs = pairs[pairs.index.isin(contexts["dialogue_id"])]
    result = ratios(contexts, pairs, scores, PERTURBATIONS) if len(scores) else schema.empty("ratios")
    schema.write(options.ratios, result, "ratios")
