"""Commands that correlate scores with ratings, measure robustness to less data, and rank metrics over data sets."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from comperdial.cli import options as o
from comperdial.core.errors import ConfigError
from comperdial.core.names import LEVELS, output_name
from comperdial.stats import OF_SYSTEMS, Coefficient

if TYPE_CHECKING:
    from comperdial.evaluation.samples import Tables

_Input = Annotated[
    list[Path], Argument(help="A folder of tables (with --scores), or tables `scores` (with --ratings).")
]
_Scores = Annotated[o.Files, o.option("FILE", "Scores for a folder of tables.")]
_Systems = Annotated[o.File, o.option("FILE", "Table `systems`, to exclude ratings of references.")]
_TARGETS = "Dimensions with full detail; default: all, or that of the data set in params.yaml."
_Targets = Annotated[o.Names, o.option("DIMENSION", _TARGETS)]
_Outputs = Annotated[o.Names, o.option("METRIC:OUTPUT", "Scores with full detail; default: all.")]
_RESTRICTED = "Scores to correlate also within systems, and without human systems."
_TESTS = "Also test these over systems; accuracy and spa are always tested if there are few systems."


@o.command()
def correlate(
    input: _Input,
    scores: _Scores = None,
    ratings: o.Ratings = None,
    contexts: o.Contexts = None,
    systems: _Systems = None,
    source: o.Source = None,
    level: o.Levels = None,
    detail_target: _Targets = None,
    outputs: _Outputs = None,
    compared: Annotated[o.Names, o.option("METRIC:OUTPUT", "Further scores with intervals and tests.")] = None,
    restricted: Annotated[o.Names, o.option("METRIC:OUTPUT", _RESTRICTED)] = None,
    raters: Annotated[o.Names, o.option("SOURCE", "Sources whose mean ratings are used as scores.")] = None,
    systems_given: Annotated[
        bool, Option("--systems-given", help="Systems are fixed: intervals and tests are over contexts.")
    ] = False,
    subset: o.Subset = None,
    missing: o.Missing = "left-out",
    resamples: Annotated[int, Option(min=0, help="Resamples for intervals and tests; 0: only values and p.")] = 1000,
    seed: o.Seed = 2024,
    tests: Annotated[o.Names, o.one_or_more(OF_SYSTEMS, _TESTS)] = None,
    ceilings: Annotated[o.File, o.written("Agreement of one annotator with the others.")] = None,
    pairs: Annotated[o.File, o.written("Uncorrected tests of pairs.")] = None,
    output: o.OutputTable = None,
) -> None:
    """Correlate scores with human ratings."""
    from comperdial import schema
    from comperdial.evaluation import results
    from comperdial.evaluation.expected import Expected
    from comperdial.evaluation.options import Options, parsed_subset

    if pairs and not resamples:
        raise ConfigError("no resamples", where="--resamples", expected="2 or more, for tests of pairs")
    tables, known = _read(input, scores, ratings, contexts, systems, source)
    folder, expected = input[0], known.get("expected")
    made = results.correlate(
        tables,
        outputs=known.get("outputs") if outputs is None else outputs,
        compared=compared or (),
        restricted=restricted or (),
        raters=raters or (),
        targets=detail_target or _target(known),
        main_target=known.get("main_target"),
        levels=level or LEVELS,
        expected=Expected.of(expected, schema.read(folder / "contexts.parquet", "contexts")) if expected else None,
        options=Options(parsed_subset(subset or ()), missing, "fixed" if systems_given else "sampled"),
        allow_missing=folder.is_dir(),
        tests=tests or (),  # type: ignore[arg-type]  # typer takes no lists of literals
        resamples=resamples,
        seed=seed,
    )
    for note in made.notes:
        print(note, file=sys.stderr)
    o.write(pairs, made.pairs, "pairs")
    o.write(ceilings, made.ceilings, "ceilings")
    o.write(output, made.correlations, "correlations", shown=True)


def _read(
    files: list[Path], scores: o.Files, ratings: o.Files, contexts: o.File, systems: o.File, source: str | None
) -> tuple[Tables, Mapping[str, Any]]:
    """Return the tables of a folder or of files, and the folder's settings in params.yaml."""
    from comperdial import schema
    from comperdial.config.studies import params_file
    from comperdial.evaluation import aggregate
    from comperdial.evaluation.samples import Tables
    from comperdial.selection import Selection, describe

    first, *more = files
    if not first.is_dir():
        if scores:
            expected = f"a folder of tables; for a file with ratings: comperdial compare {first} --scores {scores[0]}"
            raise ConfigError("--scores with a file", where=str(first), expected=expected)
        if not ratings:
            expected = f"--ratings FILE; for a file with ratings: comperdial compare {first}"
            raise ConfigError("no ratings", where=str(first), expected=expected)
        table = aggregate.read_scores(files)
        names = table["dataset"].unique()
        dataset = names[0] if len(names) == 1 else None
        rated = aggregate.read_ratings_of(ratings, dataset=dataset)
        places = aggregate.read_contexts(contexts, dataset=dataset) if contexts else None
        kinds = schema.read(systems, "systems") if systems else None
        return Tables(table, rated, places, kinds, source or "human"), {}
    others = {"a further input": more, "--ratings": ratings, "--contexts": contexts, "--systems": systems}
    if given := [name for name, value in others.items() if value]:
        expected = "only the folder and --scores FILE …"
        raise ConfigError(f"{given[0]} with a folder of tables", where=str(first), expected=expected)
    known: dict[str, Any] = {}
    if params_file().is_file() and first.name in (selection := Selection.read()).datasets:
        known = {**describe(selection, first.name), "expected": selection.expected(first.name)}
    return Tables.read(first, scores or [], source or known.get("source", "human")), known


def _target(known: Mapping[str, Any]) -> o.Names:
    return [known["target"]] if known.get("target") else None


@o.command()
def robustness(
    input: _Input,
    curves: Annotated[Path, o.written("Learning curves.")],
    power: Annotated[Path, o.written("Power of a test at 5 %.")],
    scores: _Scores = None,
    ratings: o.Ratings = None,
    contexts: o.Contexts = None,
    systems: _Systems = None,
    source: o.Source = None,
    level: o.Levels = None,
    detail_target: _Targets = None,
    outputs: _Outputs = None,
    judgements: Annotated[o.Files, o.option("FILE", "Tables `judgements`: single samples.")] = None,
    coefficient: Annotated[Coefficient, Option(help="Coefficient computed on each subset.")] = "spearman",
    repeats: Annotated[int, Option(min=1, help="Subsets per size.")] = 100,
    seed: o.Seed = 2024,
) -> None:
    """Measure how ranks change with less data."""
    import pandas as pd

    from comperdial import evaluation, schema
    from comperdial.evaluation import results

    tables, known = _read(input, scores, ratings, contexts, systems, source)
    has_gaps = input[0].is_dir()
    samples = tables.samples(level or LEVELS, allow_missing=has_gaps)
    chosen = known.get("outputs") if outputs is None else outputs
    detail = results.detail_of(samples, chosen, detail_target or _target(known), known.get("main_target"), seed=seed)
    detail.check(samples, allow_missing=has_gaps)
    subsampling = evaluation.Subsampling(coefficient, repeats, seed)
    every = [schema.read(path, "judgements") for path in judgements or ()]
    single = pd.concat(every, ignore_index=True) if every else None
    made = evaluation.curves(samples, detail=detail, subsampling=subsampling, judgements=single)
    schema.write(curves, made, "curves")
    schema.write(power, evaluation.power(samples, detail=detail, subsampling=subsampling), "power")


@o.command()
def dimensions(
    scores: Annotated[list[Path], Argument(help="Tables `scores` of one data set.")],
    tables: Annotated[Path, o.option("FOLDER", "Tables of the data set.")],
    output: Annotated[Path, o.written("Table `dimension_correlations`: a .parquet, .csv or .jsonl file.")],
    study: Annotated[o.File, o.option("FILE", "A study.yaml, for its ensembles.")] = None,
    outputs: Annotated[
        o.Names, o.option("METRIC:OUTPUT", "Scores with intervals on all dimensions; default: all.")
    ] = None,
    resamples: Annotated[int, Option(min=0, help="Resamples for intervals; 0: no intervals.")] = 1000,
    seed: o.Seed = 2024,
    between: Annotated[o.File, o.written("Correlations between a rater's dimensions.")] = None,
) -> None:
    """Correlate scores with each rated dimension, by source of ratings."""
    from comperdial import schema
    from comperdial.config import load_yaml
    from comperdial.evaluation.dimensions import between_dimensions, dimension_correlations
    from comperdial.evaluation.ensembles import Ensembles
    from comperdial.evaluation.samples import Tables

    settings: dict[str, Any] = load_yaml(study) if study else {}
    read = Tables.read(tables, scores)
    means = Ensembles.of(settings.get("ensembles") or {}, sorted({*read.scores["metric"]}), settings.get("variants"))
    chosen = None if outputs is None else {output_name(name, where="--outputs") for name in outputs}
    # A recorded judge is named like the source of its ratings.
    own = {name: entry["model"] for name, entry in (settings.get("recorded_judges") or {}).items()}
    table = dimension_correlations(read, ensembles=means, outputs=chosen, own=own, resamples=resamples, seed=seed)
    if between:
        others = replace(read, scores=read.scores[~read.scores["metric"].isin(list(own))])
        schema.write(between, between_dimensions(others, means), "between_dimensions")
    schema.write(output, table, "dimension_correlations")


@o.command()
def rank(
    boards: Annotated[Path, Argument(help="A file of boards, such as studies/overall/boards.yaml.")],
    board: Annotated[str, Argument(help="One of its boards.")],
    tables: Annotated[list[Path], o.option("FOLDER", "Tables of the data sets.")],
    scores: Annotated[list[Path], o.option("FILE", "Tables `scores`.")],
    output: Annotated[Path, o.written("The ranking.")],
    comparisons: Annotated[Path, o.written("The tests of pairs of metrics.")],
    pairs: Annotated[Path, o.written("The counts of pairs of systems.")],
    resamples: Annotated[int, Option(min=0, help="Swaps in WMT's test; 0: skip it.")] = 1000,
    seed: o.Seed = 2024,
) -> None:
    """Rank metrics over many data sets, on a board's tasks."""
    import pandas as pd

    from comperdial import schema
    from comperdial.data.catalogue import load_catalogue
    from comperdial.evaluation import overall

    entry = overall.board_of(board, overall.read_boards(boards))
    tasks = overall.Board.of(board, entry["tasks"])
    outputs = [(row["metric"], row["output"]) for row in entry["outputs"]]
    folders = {path.name: path for path in tables if path.name in tasks.datasets}
    known = load_catalogue(o.CATALOGUE).datasets
    targets = {name: known[name].target for name in folders if name in known}
    every = pd.concat([schema.read(path, "scores") for path in scores], ignore_index=True)
    samples = overall.read_samples(
        folders, every, outputs, level=entry["level"], source=entry["source"], targets=targets
    )
    ranking, tests = overall.overall(tasks, samples, outputs, resamples=resamples, seed=seed)
    systems = {name: schema.read(path / "systems.parquet", "systems") for name, path in folders.items()}
    kinds = {name: dict(zip(one["system_id"], one["kind"], strict=True)) for name, one in systems.items()}
    schema.write(output, ranking, "overall")
    schema.write(comparisons, tests, "overall_comparisons")
    schema.write(pairs, overall.pairs_of_systems(tasks, samples, kinds), "overall_pairs")
