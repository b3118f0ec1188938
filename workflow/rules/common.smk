# Checks of the configuration and the functions that rules share; no rules here.

import json
import os
from importlib.metadata import version

from snakemake.exceptions import WorkflowError

from comperdial.catalogue import load_catalogue
from comperdial.closure import source_files
from comperdial.config import check
from comperdial.errors import ComperdialError
from comperdial.metrics import create
from comperdial.sources import MIRROR_VARIABLE, raw_path


def metric_options(name):
    return {key: value for key, value in config["metrics"][name].items() if key != "kind"}


try:
    check(config, workflow.source_path("../schemas/params.schema.yaml"))
    CATALOGUE = load_catalogue(config["catalogue"])
    DATASETS = {name: CATALOGUE.dataset(name) for name in config["datasets"]}
    USR = [CATALOGUE.dataset(name).name for name in config["tables"]["usr"]["datasets"]]
    METRICS = {name: create(options["kind"], **metric_options(name)) for name, options in config["metrics"].items()}
except ComperdialError as error:
    raise WorkflowError(f"Wrong configuration. {error}") from None

# A mirror changes where bytes come from, never what they are: it is no parameter of a rule.
if config["mirror"]:
    os.environ.setdefault(MIRROR_VARIABLE, config["mirror"])

USR = [name for name in USR if name in DATASETS]
RAW = {str(raw_path(source)): source for source in CATALOGUE.files.values()}
UNAVAILABLE = {name: why for name, why in ((n, m.unavailable()) for n, m in METRICS.items()) if why}


def code(*modules):
    """The package files that a job runs, as inputs, so that an edit to them makes its output stale.

    The command line is left out: it passes arguments on, and those are parameters.
    """
    return source_files(*modules)


def titles(datasets):
    """The titles of data sets, as JSON."""
    return json.dumps({name: DATASETS[name].title for name in datasets}, sort_keys=True)


def score_file(dataset, metric):
    return f"results/scores/{dataset}/{metric}.parquet"


def has_scores(dataset, metric):
    """Whether there are or can be scores: the metric runs here, or fitting scores made elsewhere were pulled."""
    path = score_file(dataset, metric)
    if metric not in UNAVAILABLE:
        return True
    if not os.path.exists(path):
        return False
    import pyarrow.parquet

    made = pyarrow.parquet.read_table(path, columns=["signature"])["signature"].unique().to_pylist()
    return made == [METRICS[metric].signature()]


def score_files(wildcards):
    return [score_file(wildcards.dataset, metric) for metric in METRICS if has_scores(wildcards.dataset, metric)]


def not_run(datasets):
    """The metrics without scores, with the reason, as JSON."""
    missing = {
        metric: why
        for metric, why in UNAVAILABLE.items()
        if not all(has_scores(dataset, metric) for dataset in datasets)
    }
    return json.dumps(missing, sort_keys=True)


def one_of(names):
    """A constraint of a wildcard: one of these names and nothing else."""
    return "|".join(map(re.escape, names)) or "(?!)"
