# What is evaluated in detail, and against which ratings; functions only.

from comperdial.judging.scores import slug
from comperdial.scoring import expected_of


def detailed_outputs(dataset):
    """The scores of a data set that get intervals, tests and curves, as metric:output."""
    metrics = {Path(path).stem for path in score_files_of(dataset)}
    judged = [f"{name}:{slug(JUDGED[f'{dataset}/{name}'].variant.form.main)}" for name in judged_by(dataset)]
    named = [name for name in config["evaluation"]["outputs"] if name.partition(":")[0] in metrics]
    return list(dict.fromkeys([*named, *judged]))


def detailed_scores(dataset):
    """The files of these scores."""
    metrics = dict.fromkeys(name.partition(":")[0] for name in detailed_outputs(dataset))
    return [score_file(dataset, metric) for metric in metrics] or score_files_of(dataset)


def sampled_judgements(dataset):
    """Single samples of the judges: of those that were asked several times, curves by their number can be drawn."""
    asked = [name for name in judged_by(dataset) if JUDGED[f"{dataset}/{name}"].samples > 1]
    return [f"results/judgements/{dataset}/{name}.parquet" for name in [*asked, *heard_of(dataset)]]


def sampled_options(dataset):
    """What `comperdial correlate` is told of the ratings of a data set."""
    tables = f"data/tables/{dataset}"
    options = {"turn": "--ratings", "dialogue": "--dialogue-ratings"}
    return [
        *(f"{options[level]}={tables}/{level}_ratings.parquet" for level in rated_levels(dataset)),
        f"--contexts={tables}/contexts.parquet",
        f"--systems={tables}/systems.parquet",
        f"--source={source(dataset)}",
        "--allow-missing",
    ]


def expected_scores(dataset):
    """What a data set's scores take, as JSON: by this the table of correlations says why some are missing."""
    return json.dumps(
        {name: expected_of(METRICS[name]) for name in METRICS if has_scores(dataset, name)}, sort_keys=True
    )


known = {*METRICS, *RECORDED, *ENTRIES, *(task.name for task in JUDGED.values())}


def check_outputs(names):
    """An output that a metric does not have is a mistake; one that a data set has no scores of is not."""
    for name in names:
        kind, _, wanted = name.partition(":")
        if kind in METRICS and wanted not in METRICS[kind].outputs:
            where = "params.yaml, evaluation.outputs, tables.systems or figures"
            error = UnknownNameError(f"output of {kind}", wanted, METRICS[kind].outputs, where=where)
            raise WorkflowError(f"Wrong configuration. {error}")


SHOWN = [name for names in config["figures"].values() if isinstance(names, list) for name in names]
check_outputs([*config["evaluation"]["outputs"], *config["tables"]["systems"], *SHOWN])
for name in [*config["evaluation"]["outputs"], *config["tables"]["systems"]]:
    if name.partition(":")[0] not in known:
        # A metric that was taken out of `metrics` leaves its outputs behind.
        raise WorkflowError(
            f"Wrong configuration. params.yaml, evaluation.outputs or tables.systems: {name}: no metric of that name; take it out, or add "
            "the metric"
        )
# What is made of a data set has its name and one of these after it.
SUFFIXES = ("ceilings", "comparisons", "curves", "power", "correlations", "measures", "systems", "alpha", "judges")
for name in DATASETS:
    first, _, last = name.rpartition("_")
    if first in DATASETS and last in SUFFIXES:
        raise WorkflowError(
            f"Wrong configuration. {name}: results of {first} would have the same names; call it otherwise"
        )
if config["tables"]["benchmark"] not in (all_names := [*OWN_DATA, *config["challenges"], *CATALOGUE.datasets]):
    raise WorkflowError(
        f"Wrong configuration. {UnknownNameError('dataset', config['tables']['benchmark'], all_names, where='tables.benchmark')}"
    )
