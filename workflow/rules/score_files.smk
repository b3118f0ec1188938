# Which scores there are, and how they come about; functions only.

import re

from comperdial.encoding import encoder_of
from comperdial.metrics._model import ModelMetric

# Metrics that compare vectors, by what makes the vectors: each text is encoded once for all of them.
ENCODERS = {}
for name, metric in METRICS.items():
    if name not in UNAVAILABLE and (encoder := encoder_of(metric)):
        ENCODERS.setdefault(encoder, []).append(name)


def encoded(dataset, metric):
    """What says that a data set is encoded for a metric; nothing for one that compares no vectors."""
    return [f"data/embeddings/{encoder}/{dataset}.json" for encoder, metrics in ENCODERS.items() if metric in metrics]


def kept(dataset, metric):
    """The option that names where vectors are kept: a cache, and no output, which Snakemake would remove before a job."""
    return [f"--embeddings {Path(path).parent.parent}" for path in encoded(dataset, metric)]


def runs_model(metric):
    """Whether a metric runs a model itself: with all cores, where the others run side by side."""
    return isinstance(METRICS[metric], ModelMetric) and not any(metric in metrics for metrics in ENCODERS.values())


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
    # Of a model that is not here the checksum is not known: the one that the scores were made with stands in the tables.
    fitting = re.escape(METRICS[metric].signature()).replace("@absent", "@[0-9a-f]{12}")
    return len(made) == 1 and re.fullmatch(fitting, made[0]) is not None


def score_files(wildcards):
    made = [score_file(wildcards.dataset, metric) for metric in METRICS if has_scores(wildcards.dataset, metric)]
    return made + recorded_files(wildcards.dataset)


def not_run(datasets):
    """The metrics without scores, with the reason, as JSON."""
    missing = {
        metric: why
        for metric, why in UNAVAILABLE.items()
        if not all(has_scores(dataset, metric) for dataset in datasets)
    }
    return json.dumps(missing, sort_keys=True)
