# What our own figures show of which data set, and the files they need; functions only.

from comperdial.judging.answers import find as answer_format

FIGURES = config["figures"]


def outputs_of(figure, dataset):
    """The outputs that a figure shows: those that `figures` names for it, as far as there are scores, or the main ones."""
    metrics = {Path(path).stem for path in score_files_of(dataset)}
    named = [name for name in FIGURES.get(figure, []) if name.partition(":")[0] in metrics]
    return named or detailed_outputs(dataset)


def figure_scores(dataset, outputs):
    """The files with scores of some outputs."""
    metrics = {name.partition(":")[0] for name in outputs}
    return [path for path in score_files_of(dataset) if Path(path).stem in metrics]


def scores_for(figure):
    """An input function: the files with scores of the outputs that a figure shows."""
    return lambda wildcards: (
        figure_scores(wildcards.dataset, outputs_of(figure, wildcards.dataset)) or score_files_of(wildcards.dataset)
    )


def judge_outputs(dataset):
    """The outputs of judges of turns: the main one of each prompt asked here, every one that others recorded."""
    tasks = [JUDGED[f"{dataset}/{name}"] for name in judged_by(dataset)]
    asked = [f"{task.name}:{slug(task.variant.form.main)}" for task in tasks if not task.variant.turns]
    entries = [entry for entry in HEARD.values() if entry.dataset == dataset]
    heard = [entry for entry in entries if answer_format(entry.format).level == "turn"]
    return asked + [f"{entry.name}:{dimension}" for entry in heard for dimension in entry.files]


def agreement_metrics(dataset):
    """The outputs beside the judges'."""
    judges = {name.partition(":")[0] for name in judge_outputs(dataset)}
    return [
        name
        for name in outputs_of("judge_agreement", dataset)
        if name.partition(":")[0] not in {*judges, *judged_by(dataset)}
    ]


def agreement_scores(wildcards):
    return figure_scores(wildcards.dataset, judge_outputs(wildcards.dataset) + agreement_metrics(wildcards.dataset))


def turn_judgements(dataset):
    """The single answers of a data set's judges of turns."""
    judges = {name.partition(":")[0] for name in judge_outputs(dataset)}
    names = [name for name in [*judged_by(dataset), *heard_of(dataset)] if name in judges]
    return [f"results/judgements/{dataset}/{name}.parquet" for name in names]


def figure_tables(dataset):
    tables = [f"data/tables/{dataset}/{table}.parquet" for table in ("contexts", "responses", "systems")]
    return tables + rating_files(dataset)


def plot_options(figure, dataset):
    """What every drawing is told."""
    # Not from the rule's output: Snakemake would not notice that a title or a label changed.
    there = {Path(path).stem for path in score_files_of(dataset)}
    named = {name: label for name, label in FIGURES.get("labels", {}).items() if name.partition(":")[0] in there}
    labels = json.loads(judge_labels(dataset)) | named
    said = {
        "--output": f"results/figures/{dataset}_{figure}",
        "--title": title(dataset),
        "--labels": json.dumps(labels, sort_keys=True),
    }
    return [*(f"{option}={value}" for option, value in said.items()), *target(dataset)]


def rating_options(dataset):
    return [f"--tables=data/tables/{dataset}", f"--source={source(dataset)}", "--rated", *rated_levels(dataset)]


def drawn_options():
    """How many resamples intervals are made of that only a figure shows, and their seed."""
    return [f"--resamples={FIGURES['resamples']}", f"--seed={config['evaluation']['seed']}"]


def plots_of(dataset):
    """The figures that a rated data set has what it needs for."""
    kinds = ["heatmap", *(["scatter", "length_bias"] if dataset in BY_TURN else []), "slope", "curves"]
    kinds += ["judge_agreement"] if judge_outputs(dataset) and dataset in BY_TURN else []
    return [f"results/figures/{dataset}_{kind}.png" for kind in kinds]
