# Which scores there are, and how they come about; functions only.

import re


def kept(metric):
    """The option that names where vectors are kept: a cache, and no output, which Snakemake would remove before a job."""
    return "--embeddings=data/embeddings" if METRICS[metric].keeps_vectors else ""


def how_scored(metric):
    """All that decides a metric's scores: kind and options, versions of libraries and of the metric itself, the code."""
    made = METRICS[metric]
    return [made.kind, metric_options(metric), made.signature(), code("scoring", *metric_modules([made]))]


def score_file(dataset, metric):
    return f"results/scores/{dataset}/{metric}.parquet"


def fits(path, signature):
    """Whether a file holds scores made in the way of a signature: pulled ones can stand for ones not made here."""
    if not os.path.exists(path):
        return False
    import pyarrow.parquet

    made = pyarrow.parquet.read_table(path, columns=["signature"])["signature"].unique().to_pylist()
    # Of a model that is not here the checksum is not known: the one that the scores were made with stands in the tables.
    fitting = re.escape(signature).replace("@absent", "@[0-9a-f]{12}")
    return len(made) == 1 and re.fullmatch(fitting, made[0]) is not None


def is_wanted(dataset, metric):
    """Whether a data set is scored with a metric: all are, unless the metric's entry names some."""
    return dataset in config["metrics"][metric].get("datasets", [dataset])


def has_scores(dataset, metric):
    """Whether there are or can be scores: the metric runs here, or fitting scores made elsewhere were pulled."""
    can = metric not in UNAVAILABLE or fits(score_file(dataset, metric), METRICS[metric].signature())
    return can and is_wanted(dataset, metric)


def score_files_of(dataset):
    made = [score_file(dataset, metric) for metric in METRICS if has_scores(dataset, metric)]
    return made + recorded_files(dataset) + judged_files(dataset) + heard_files(dataset)


def score_files(wildcards):
    return score_files_of(wildcards.dataset)


def not_run(datasets):
    """The metrics without scores, with the reason, as JSON."""
    missing = {
        metric: why
        for metric, why in UNAVAILABLE.items()
        if not all(has_scores(dataset, metric) for dataset in datasets if is_wanted(dataset, metric))
    }
    return json.dumps(missing | not_judged(datasets), sort_keys=True)
