"""Commands that perturb responses and dialogues, and measure whether scores fall."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from comperdial.cli import options as o
from comperdial.core.errors import ConfigError, MissingResourceError, UnknownNameError


@o.command("perturbations")
def list_perturbations() -> None:
    """List the perturbations and the dimensions they should lower."""
    from comperdial.perturbations import PERTURBATIONS, require

    for name, entry in PERTURBATIONS.items():
        ours = "" if entry.paper else ", not in the paper's tables"
        print(f"{name} ({entry.short}, {entry.title}{ours})")
        print(f"    {entry.level}: lowers {', '.join(entry.dimensions)} by more than {entry.threshold:g}")
        print(f"    {entry.about}" + ("" if entry.change else "; recorded pairs only"))
        try:
            require(name)
        except MissingResourceError as error:
            print(f"    cannot run here: {error.problem}; expected {error.expected}")


@o.command("perturb")
def make_pairs(
    folder: Annotated[Path, Argument(help="Folder with systems, contexts, responses (and ratings) as Parquet.")],
    dataset: Annotated[str, o.option("NAME", "Name of the new data set.")],
    output: Annotated[Path, o.written("Output folder.", o.output_folder)],
    strategy: Annotated[o.Names, o.option("NAME", "Strategies from `comperdial perturbations`; default: all.")] = None,
    sample: Annotated[int, Option(min=1, help="Pairs per strategy.")] = 200,
    seed: o.Seed = 0,
    all_items: Annotated[bool, Option("--all-items", help="Include items rated below the median.")] = False,
) -> None:
    """Make pairs of original and perturbed items from a data set."""
    from comperdial import schema
    from comperdial.core.files import write_table
    from comperdial.perturbations import perturb

    if not re.fullmatch("[A-Za-z0-9_-]+", dataset):
        raise ConfigError(f"data set name {dataset!r}", expected='letters (a to z), digits, "_" and "-" only')
    # Do not overwrite the input tables or those of another data set.
    there = output / "systems.parquet"
    others = set(schema.read(there, "systems")["dataset"]) - {dataset} if there.is_file() else set()
    if output.resolve() == folder.resolve() or others:
        whose = f"of {', '.join(sorted(others))}" if others else "that are perturbed"
        problem, expected = f"{output} holds the tables {whose}", "a folder of its own for the pairs"
        raise ConfigError(problem, where="--output", expected=expected)
    made = perturb(folder, dataset, strategy, sample, seed, good=not all_items)
    # Make and validate all tables before writing the first.
    for name, frame in made.tables.items():
        schema.write(output / f"{name}.parquet", frame, name)
    write_table(output / "pairs.csv", made.pairs)
    for name, count in made.counts.items():
        print(f"{name}: {count.pairs} pairs, drawn from {count.items} items; {count.unchanged} tried cannot be changed")
    for name, why in made.left_out.items():
        print(f"{name}: left out: {why}")


@o.command("score-pairs")
def score_sample(
    tables: Annotated[Path, Argument(help="A folder of pairs from `comperdial perturb`.")],
    metrics: Annotated[list[str], Option(help="Metrics; those that cannot run here are skipped.")],
    kinds: Annotated[list[str], Option(help="Perturbations.")],
    output: Annotated[Path, o.written("Table `scores`, .parquet.")],
    ratios: Annotated[Path, o.written("Table `ratios`.")],
    sample: Annotated[int, Option(min=1, help="Maximum pairs per perturbation.")] = 400,
    seed: o.Seed = 2024,
) -> None:
    """Score a sample of pairs, and count how often the original's score is higher."""
    import numpy as np

    from comperdial import schema
    from comperdial.api import name_not_run
    from comperdial.evaluation import ratios as counting
    from comperdial.metrics import scoring
    from comperdial.metrics.named import metric_named, read_entries
    from comperdial.perturbations import PERTURBATIONS

    entries = read_entries()
    chosen = {name: metric_named(name, entries) for name in metrics}
    contexts, pairs = counting.read_pairs(tables)
    contexts = counting.drawn(contexts, kinds, sample, np.random.default_rng(seed))
    parts = []
    for responses, batch in scoring.batches(tables):
        kept = responses["context_id"].isin(contexts["context_id"]).to_numpy()
        parts.append((responses[kept], batch.only(kept)))
    scores, not_run = scoring.score_many(chosen, parts)
    name_not_run(not_run)
    schema.write(output, scores, "scores")
    pairs = pairs[pairs.index.isin(contexts["dialogue_id"])]
    made = counting.ratios(contexts, pairs, scores, PERTURBATIONS) if len(scores) else schema.empty("ratios")
    schema.write(ratios, made, "ratios")


_BOUNDS = "The lowest and highest score, {METRIC: {OUTPUT: [LOW, HIGH]}}; without it only threshold 0."


@o.command()
def ratios(
    scores: Annotated[list[Path], Argument(help="Tables `scores` of one data set.")],
    tables: Annotated[Path, o.option("FOLDER", "Tables of the data set.")],
    output: Annotated[Path, o.written("Table `ratios`: a .parquet, .csv or .jsonl file.")],
    bounds: Annotated[dict | None, o.a_json(_BOUNDS)] = None,
    about: Annotated[o.File, o.option("FILE", "The data set's about.json, for the bounds.")] = None,
) -> None:
    """Count how often scores fall for perturbed responses."""
    from comperdial import schema
    from comperdial.core.files import read_json
    from comperdial.evaluation.aggregate import read_scores
    from comperdial.evaluation.ratios import bounds_of, ratios, read_pairs
    from comperdial.perturbations import PERTURBATIONS

    limits = bounds_of(bounds or (read_json(about)["bounds"] if about else {}))
    contexts, pairs = read_pairs(tables)
    made = read_scores(scores)
    known = {*zip(made["metric"], made["output"], strict=True)}
    if bounds and (unknown := sorted(":".join(name) for name in limits.keys() - known)):
        raise UnknownNameError("output", unknown[0], sorted(map(":".join, known)), where="--bounds")
    schema.write(output, ratios(contexts, pairs, made, PERTURBATIONS, bounds=limits), "ratios")
