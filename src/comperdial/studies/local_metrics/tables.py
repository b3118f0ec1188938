"""The table of local metrics with its figure, and the ablation of `local`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comperdial.config import load_yaml
from comperdial.core.artifact import figure, files, table
from comperdial.core.errors import ConfigError, UnknownNameError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from comperdial.evaluation.fitting import FittedSet
    from comperdial.jobs.plan import Plan
    from comperdial.report.document import Document

_NAME = "local_metrics"
_FOLDER = "src/comperdial/studies/local_metrics"
_RESULTS = f"results/studies/{_NAME}"
FEATURES = Path(__file__).parents[2] / "metrics/local_features.yaml"
_COEFFICIENTS = "src/comperdial/metrics/local_coefficients.json"


def read_rows(path: str | Path) -> list[dict[str, Any]]:
    """Read ``rows.yaml``: label, metric and output of each row, and whether the figure shows it."""
    rows = load_yaml(path).get("rows") or []
    for count, row in enumerate(rows, start=1):
        if not {"label", "metric", "output"} <= {*row} <= {"label", "metric", "output", "figure"}:
            raise ConfigError(
                f"the row is {row!r}", where=f"{path}, row {count}", expected="`label`, `metric`, `output`, `figure`"
            )
    return rows


def _datasets(plan: Plan) -> list[str]:
    return plan.sets_of.get(_NAME, [])


def _once(plan: Plan) -> list[dict[str, str]]:
    return [{}] if _datasets(plan) else []


def _drawn(plan: Plan) -> dict[str, Any]:
    return {key: plan.config["studies"][_NAME][key] for key in ("resamples", "seed")}


def _tables(plan: Plan, dataset: str) -> list[str]:
    names = ("contexts", "responses", "systems", "ratings")
    return list(plan.tables(dataset, *names).values())


def _shown() -> list[str]:
    return [f"{row['metric']}:{row['output']}" for row in read_rows(Path(__file__).with_name("rows.yaml"))]


def _contrasts(plan: Plan) -> list[dict[str, Any]]:
    """Return the planned contrasts of the study, whose names are checked."""
    datasets = _datasets(plan)
    found: list[dict[str, Any]] = plan.config["studies"][_NAME].get("planned_contrasts") or [] if datasets else []
    for entry in found:
        where = f"study {_NAME}, planned_contrasts"
        for dataset in entry["datasets"]:
            if dataset not in datasets:
                raise UnknownNameError("dataset", dataset, datasets, where=where)
        for name in (entry["metric"], entry["against"]):
            if name not in _shown():
                raise UnknownNameError("row", name, _shown(), where=where)
    return found


def _pairs(plan: Plan, dataset: str) -> list[list[str]]:
    return [[entry["metric"], entry["against"]] for entry in _contrasts(plan) if dataset in entry["datasets"]]


@files(
    {"contrasts": f"{_RESULTS}/{{dataset}}_contrasts.parquet"},
    of=lambda plan: [dataset for dataset in _datasets(plan) if _pairs(plan, dataset)],
    inputs=lambda plan, dataset: {
        "tables": _tables(plan, dataset),
        "scores": plan.scores(dataset, [name for pair in _pairs(plan, dataset) for name in pair]),
    },
    settings=lambda plan, dataset: {**_drawn(plan), **plan.target(dataset), "pairs": _pairs(plan, dataset)},
    libraries=("scipy",),
)
def local_contrasts(
    *,
    outputs: Mapping[str, Path],
    tables: Sequence[Path],
    scores: Sequence[Path],
    pairs: Sequence[tuple[str, str]],
    resamples: int,
    seed: int,
    target: str | None = None,
    main_target: str | None = None,
) -> None:
    """Test the planned contrasts of a data set."""
    import pandas as pd

    from comperdial import schema
    from comperdial.core.names import output_name
    from comperdial.studies.local_metrics.frame import contrasts

    known = [schema.read(path, "scores") for path in scores]
    found = contrasts(
        tables[0].parent,
        pd.concat(known, ignore_index=True) if known else schema.empty("scores"),
        [(output_name(one), output_name(other)) for one, other in pairs],
        target=target,
        main_target=main_target,
        resamples=resamples,
        seed=seed,
    )
    schema.write(outputs["contrasts"], found, "contrasts")


@files(
    {
        "correlations": f"{_RESULTS}/{{dataset}}.parquet",
        # Of `local`: within systems, and without the responses of human systems.
        "restricted": f"{_RESULTS}/restricted/{{dataset}}.parquet",
    },
    of=_datasets,
    inputs=lambda plan, dataset: {
        "tables": _tables(plan, dataset),
        # What `local` looks at is scored even where its coefficients are still to be fitted.
        "scores": plan.scores(dataset, [*_shown(), *load_yaml(FEATURES)["metrics"]]),
    },
    settings=lambda plan, dataset: {**_drawn(plan), **plan.target(dataset), "names": _shown()},
    libraries=("scipy",),
)
def local_correlations(
    *,
    outputs: Mapping[str, Path],
    tables: Sequence[Path],
    scores: Sequence[Path],
    names: Sequence[str],
    resamples: int,
    seed: int,
    target: str | None = None,
    main_target: str | None = None,
) -> None:
    """Correlate the scores of the table's rows with a data set's ratings, with intervals and ranks."""
    import pandas as pd

    from comperdial import schema
    from comperdial.core.names import output_name
    from comperdial.studies.local_metrics.frame import evaluate, restricted

    read = pd.concat([schema.read(path, "scores") for path in scores], ignore_index=True)
    shown = [output_name(name) for name in names]
    how: dict[str, Any] = {"target": target, "main_target": main_target, "resamples": resamples, "seed": seed}
    schema.write(outputs["correlations"], evaluate(tables[0].parent, read, shown, **how), "correlations")
    own = [output for output in shown if output[0] == "local"]
    schema.write(outputs["restricted"], restricted(tables[0].parent, read, own, **how), "correlations")


def _inputs(plan: Plan) -> dict[str, Any]:
    return {
        "correlations": [f"{_RESULTS}/{dataset}.parquet" for dataset in _datasets(plan)],
        "restricted": [f"{_RESULTS}/restricted/{dataset}.parquet" for dataset in _datasets(plan)],
        "rows": f"{_FOLDER}/rows.yaml",
        "costs": f"{_FOLDER}/costs.csv",
    }


def _frame(
    correlations: Sequence[Path], restricted: Sequence[Path], rows: Path, costs: Path, datasets: Sequence[str]
) -> pd.DataFrame:
    from comperdial.report.inputs import read_correlations, read_reported
    from comperdial.studies.local_metrics.frame import local_frame

    known = read_reported(costs, ("metric", "how", "machine", "date"), ("seconds", "usd"))
    return local_frame(read_correlations(correlations), read_rows(rows), known, datasets, read_correlations(restricted))


def _contrast_files(plan: Plan) -> list[str]:
    return [f"{_RESULTS}/{dataset}_contrasts.parquet" for dataset in _datasets(plan) if _pairs(plan, dataset)]


def _contrast_frame(contrasts: Sequence[Path], planned: Sequence[Mapping[str, Any]], rows: Path) -> pd.DataFrame:
    import pandas as pd

    from comperdial import schema
    from comperdial.studies.local_metrics.frame import contrast_frame

    labels = {(row["metric"], row["output"]): row["label"] for row in read_rows(rows)}
    found = pd.concat([schema.read(path, "contrasts") for path in contrasts], ignore_index=True)
    return contrast_frame(found, planned, labels)


@table(
    "studies/local_metrics/tables/local_contrasts",
    of=lambda plan: [{}] if _contrasts(plan) else [],
    inputs=lambda plan: {"contrasts": _contrast_files(plan), "rows": f"{_FOLDER}/rows.yaml"},
    settings=lambda plan: {"titles": plan.titles(_datasets(plan)), "planned": _contrasts(plan)},
    caption="Planned contrasts of metrics that run here and recorded judges: which of two agrees better with people.",
    category="Tables",
)
def local_contrasts_table(
    *, contrasts: Sequence[Path], rows: Path, titles: Mapping[str, str], planned: Sequence[Mapping[str, Any]]
) -> Document:
    """Show the planned contrasts, corrected over these alone."""
    from comperdial.studies.local_metrics.show import contrasts_document

    return contrasts_document(_contrast_frame(contrasts, planned, rows), planned, titles)


@table(
    "studies/local_metrics/tables/local_metrics",
    of=_once,
    inputs=lambda plan: {**_inputs(plan), "contrasts": _contrast_files(plan)},
    settings=lambda plan: {
        "titles": plan.titles(_datasets(plan)),
        "not_run": plan.not_run(_datasets(plan)),
        "planned": _contrasts(plan),
    },
    caption="Every metric that runs here on every real set that people rated response by response, next to recorded judges.",
    category="Tables",
)
def local_metrics(
    *,
    correlations: Sequence[Path],
    restricted: Sequence[Path],
    rows: Path,
    costs: Path,
    titles: Mapping[str, str],
    not_run: Mapping[str, str],
    contrasts: Sequence[Path] = (),
    planned: Sequence[Mapping[str, Any]] = (),
) -> Document:
    """Show how well metrics that run here agree with people, and what they cost."""
    from comperdial.report.inputs import read_reported
    from comperdial.studies.local_metrics.show import local_document, with_contrasts

    said = read_reported(costs, ("metric", "how", "machine", "date"), ("seconds", "usd"))
    frame = _frame(correlations, restricted, rows, costs, list(titles))
    document = local_document(frame, read_rows(rows), titles, not_run, said)
    return with_contrasts(document, _contrast_frame(contrasts, planned, rows), planned, titles) if planned else document


@figure(
    "studies/local_metrics/figures/local_metrics",
    of=_once,
    inputs=_inputs,
    settings=lambda plan: {"titles": plan.titles(_datasets(plan))},
    caption="Spearman's correlation of metrics that run here, and of recorded judges, with people's ratings.",
    category="Figures",
)
def local_metrics_figure(
    *, correlations: Sequence[Path], restricted: Sequence[Path], rows: Path, costs: Path, titles: Mapping[str, str]
) -> tuple[Figure, pd.DataFrame]:
    """Draw the table of local metrics, with intervals."""
    from comperdial.studies.local_metrics.show import local_figure

    frame = _frame(correlations, restricted, rows, costs, list(titles))
    return local_figure(frame, titles)


def _parts(plan: Plan) -> list[str]:
    """Return the metrics that `local` looks at; none if it cannot run here, or a data set or a metric's scores lack."""
    if not {*load_yaml(FEATURES)["fitted_on"]} <= {*_datasets(plan)}:
        return []
    parts = list(plan.combined.get("local", ()))
    there = all(
        name in plan.metrics and plan.has_scores(dataset, name) for name in parts for dataset in _datasets(plan)
    )
    return parts if there else []


@files(
    {"correlations": f"{_RESULTS}/ablation.parquet"},
    of=lambda plan: [{}] if _parts(plan) else [],
    inputs=lambda plan: {
        "tables": [path for dataset in _datasets(plan) for path in _tables(plan, dataset)],
        "scores": [plan.score_file(dataset, name) for dataset in _datasets(plan) for name in _parts(plan)],
        "known": _COEFFICIENTS,
    },
    settings=_drawn,
    libraries=("scipy",),
)
def local_ablation_correlations(
    *,
    outputs: Mapping[str, Path],
    tables: Sequence[Path],
    scores: Sequence[Path],
    known: Path,
    resamples: int,
    seed: int,
) -> None:
    """Fit `local` without each of its parts, and with each alone, and correlate what it says held out."""
    import pandas as pd

    from comperdial import schema
    from comperdial.evaluation.fitting import Protocol
    from comperdial.metrics.local import Coefficients
    from comperdial.studies.local_metrics.frame import ablation_scores, evaluate

    features, protocol = Coefficients.read(known).features, Protocol.read()
    sets = _sets(tables, scores, known)
    made = ablation_scores(sets, features, protocol.penalties)
    folders = {path.parent.name: path.parent for path in tables}
    found = [
        evaluate(
            folders[dataset],
            frame,
            [("local", str(name)) for name in frame["output"].unique()],
            target=protocol.targets[dataset],
            main_target=None,
            resamples=resamples,
            seed=seed,
        )
        for dataset, frame in made.items()
    ]
    schema.write(outputs["correlations"], pd.concat(found, ignore_index=True), "correlations")


def _sets(tables: Sequence[Path], scores: Sequence[Path], known: Path) -> list[FittedSet]:
    from comperdial.evaluation.fitting import FittedSet, Protocol
    from comperdial.metrics.local import Coefficients

    features, protocol = Coefficients.read(known).features, Protocol.read()
    folders = {path.parent.name: path.parent for path in tables}
    files = {(path.parent.parent.name, path.stem): path for path in scores}
    return [
        FittedSet.read(
            folders[dataset],
            {metric: files[dataset, metric] for metric in features.metrics},
            features,
            target=target,
            group=protocol.groups[dataset],
        )
        for dataset, target in protocol.targets.items()
        if dataset in folders
    ]


@table(
    "studies/local_metrics/tables/local_ablation",
    of=lambda plan: [{}] if _parts(plan) else [],
    inputs=lambda plan: {"correlations": f"{_RESULTS}/ablation.parquet", "known": _COEFFICIENTS},
    settings=lambda plan: {"titles": plan.titles(_datasets(plan))},
    caption="The learned metric without each of its parts and with each alone, held out, and the weights of its features.",
    category="Tables",
)
def local_ablation(*, correlations: Path, known: Path, titles: Mapping[str, str]) -> Document:
    """Show what each part of `local` contributes, and the weights of its features."""
    from comperdial.metrics.local import Coefficients
    from comperdial.report.inputs import read_correlations
    from comperdial.studies.local_metrics.show import ablation_document

    return ablation_document(read_correlations([correlations]), Coefficients.read(known), titles)
