# What the tables and figures of the study of LLMs as dialogue evaluators are told; functions only.

from comperdial.schema.evaluated import DIMENSIONS
from comperdial.judging.groups import as_one
from comperdial.judging.scores import slug


def study_bounds(*datasets):
    """The lowest and highest score of each output that has them, as JSON; of judges, their scale."""
    metrics = {
        name: {output: ends for output, ends in STUDY_METRICS[name].bounds.items() if ends} for name in STUDY_HERE
    }
    judges = {
        task.name: {
            slug(dimension): (task.variant.form.low, task.variant.form.high)
            for dimension in task.variant.form.dimensions
        }
        for dataset in datasets
        for task in study_judges(dataset)
    }
    return json.dumps(metrics | judges, sort_keys=True)


def study_groups(*datasets):
    """The judges that are a metric for each dimension, with these, of some data sets or of all."""
    return as_one([task for dataset in datasets or STUDIED for task in study_judges(dataset)])


def study_ensembles():
    """The ensembles whose members there are scores of, as JSON."""
    there = {*STUDY_HERE, *(task.name for dataset in STUDIED for task in study_judges(dataset))}
    there |= {name for dataset in STUDIED for name in heard_of(dataset)}
    wanted = STUDY.get("ensembles") or {}
    return json.dumps(
        {
            "dimensions": [
                *(name for name in wanted.get("dimensions", []) if name in there),
                *({name: outputs} for name, outputs in study_groups().items()),
            ],
            "models": {
                name: members
                for name, members in wanted.get("models", {}).items()
                if {member.partition(":")[0] for member in members} <= there
            },
        },
        sort_keys=True,
    )


def study_needs():
    """What each metric needs of a response, as JSON: where a data set lacks it, there is no row."""
    # This one's sum has no value without facts, and its other outputs have.
    grounded = {name: ["facts"] for name, metric in STUDY_METRICS.items() if metric.kind == "grounded_cosine"}
    return json.dumps({name: list(STUDY_METRICS[name].needs) for name in STUDY_HERE} | grounded, sort_keys=True)


def study_not_asked():
    """What no judge of the configuration was asked."""
    asked = any(JUDGED[judged].variant.labels for judged in JUDGED if judged.split("/")[0] in STUDIED)
    return [] if asked else ["implicit scoring: no judge of params.yaml gives probabilities (mode: probabilities)"]


def study_not_run(datasets):
    """The metrics and judges without scores, with the reason, as JSON."""
    missing = {
        JUDGED[judged].name: why
        for judged, why in NOT_JUDGED.items()
        if judged.split("/")[0] in datasets and not is_judged(judged, JUDGED_HERE)
    }
    return json.dumps(STUDY_ABSENT | missing, sort_keys=True)


# Which data set the paper's figures of dimensions are of.
FIGURE_OF = {number: name for number, name in {"3": "fed_dial", "4": "fed_turn"}.items() if name in STUDIED}


def recorded_rounds():
    """The metrics that are GPT-4's recorded rounds."""
    return [entry.name for entry in ENTRIES.values() if entry.dataset in STUDIED and entry.format == "gpt4_rounds"]


def study_labels():
    judges = {task.name: task for dataset in STUDIED for task in study_judges(dataset)}
    programs = {name: f"{task.label}, a program" for name, task in judges.items() if task.judge.service == "rules"}
    groups = {name: f"Implicit by {name.removeprefix('implicit_')}" for name in study_groups()}
    # One row a judge, whose questions are a metric each.
    implicit = {name: f"Implicit by {task.judge.name}" for name, task in judges.items() if task.variant.labels}
    asked = {name: task.label for name, task in judges.items()} | programs | implicit
    recorded = dict.fromkeys(recorded_rounds(), "GPT-4 (recorded)")
    named = config["figures"].get("labels", {}) | STUDY.get("labels", {})
    return {name: label for name, label in named.items() if name in study_outputs()} | asked | recorded | groups


def study_shared():
    """What the study's tables are told alike."""
    return ["--outputs", *study_outputs(), f"--labels={json.dumps(study_labels())}"]


def study_reported(number):
    return f"data/paper/llm_evaluators_{'rankings' if number == '4' else 'correlations'}.csv"


def panel_judges(dataset):
    """The judges that rate all dimensions of a data set."""
    return [task.name for task in study_judges(dataset) if len(task.variant.form.dimensions) > 1]


def panel_files(dataset):
    apart = [output.partition(":")[0] for outputs in study_groups(dataset).values() for output in outputs]
    return [f"{JUDGED_HERE}/{dataset}/{name}.parquet" for name in [*panel_judges(dataset), *apart]]


def panel_options(dataset):
    """What a figure of dimensions is told."""
    panels = [*panel_judges(dataset), *(f"{name}={','.join(of)}" for name, of in study_groups(dataset).items())]
    missing = [] if dataset == "fed_dial" else ["GPT-4's ratings of this set were not published."]
    return [
        f"--tables=data/tables/{dataset}",
        "--metrics",
        *panels,
        "--missing",
        *missing,
        f"--labels={json.dumps(study_labels())}",
        f"--title={READ[dataset].title}",
    ]


def check_study_names():
    """Refuse names of scores that nothing makes: a typing error must not pass for a metric that was not run."""
    judges = {f"{variant}_{judge}" for variant in JUDGING.variants for judge in JUDGING.judges}
    known = {*STUDY_METRICS, *judges, *ENTRIES}
    ensembles = STUDY.get("ensembles") or {}
    members = [member for names in ensembles.get("models", {}).values() for member in names]
    places = {"outputs": STUDY.get("outputs", []), "ensembles": [*ensembles.get("dimensions", []), *members]}
    for place, names in places.items():
        for name in names:
            metric, _, output = name.partition(":")
            if metric not in known:
                raise UnknownNameError("metric or judge", metric, known, where=f"params.yaml, llm_evaluators.{place}")
            if output and metric in STUDY_METRICS and output not in STUDY_METRICS[metric].outputs:
                raise UnknownNameError(
                    "output", name, STUDY_METRICS[metric].outputs, where=f"params.yaml, llm_evaluators.{place}"
                )
    if both := {*STUDY_METRICS} & {*judges, *ENTRIES}:
        raise ConfigError(f"{', '.join(both)}: both a metric and a judge", where="params.yaml, llm_evaluators.metrics")


try:
    check_study_names()
except ComperdialError as error:
    raise WorkflowError(f"Wrong configuration. {error}") from None
