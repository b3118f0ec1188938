# Checks of the configuration and the functions that rules share; no rules here.

import json
import os

from snakemake.exceptions import WorkflowError

from comperdial.config import check
from comperdial.errors import ComperdialError
from comperdial.metrics import create
from comperdial.sources import MIRROR_VARIABLE, load_catalogue, raw_path

try:
    check(config, workflow.source_path("../schemas/params.schema.yaml"))
    CATALOGUE = load_catalogue(config["catalogue"])
    DATASETS = {name: CATALOGUE.dataset(name) for name in config["datasets"]}
    METRICS = {name: create(**options) for name, options in config["metrics"].items()}
except ComperdialError as error:
    raise WorkflowError(f"Wrong configuration. {error}") from None

# A mirror changes where bytes come from, never what they are: it is no parameter of a rule.
if config["mirror"]:
    os.environ.setdefault(MIRROR_VARIABLE, config["mirror"])

RAW = {str(raw_path(source)): source for source in CATALOGUE.files.values()}
USR = [name for name in config["tables"]["usr"]["datasets"] if name in DATASETS]
NOT_RUN = {name: why for name, why in ((n, m.unavailable()) for n, m in METRICS.items()) if why}


def code(*modules):
    """The package files that a job runs; they are inputs, so that an edit to them makes the results stale."""
    return [f"src/comperdial/{module}.py" for module in modules]


def metric_options(name):
    return {key: value for key, value in config["metrics"][name].items() if key != "kind"}


def score_files(wildcards):
    """The scores of each metric that can run here, or whose scores are here already (pulled, say)."""
    files = {name: f"results/scores/{wildcards.dataset}/{name}.parquet" for name in METRICS}
    return [path for name, path in files.items() if name not in NOT_RUN or os.path.exists(path)]


def not_run(datasets):
    """The metrics without scores, with the reason, as JSON."""
    missing = {
        name: why
        for name, why in NOT_RUN.items()
        if not all(os.path.exists(f"results/scores/{dataset}/{name}.parquet") for dataset in datasets)
    }
    return json.dumps(missing, sort_keys=True)
