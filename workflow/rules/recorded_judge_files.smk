# Answers of judges that others recorded: what params.yaml says of them; functions only.

from comperdial.judging.answers import find as answer_format
from comperdial.judging.answers.entries import read_recorded_judges

try:
    ENTRIES = read_recorded_judges(
        config.get("recorded_judges"),
        taken={*METRICS, *RECORDED, *(task.name for task in JUDGED.values())},
        datasets=[*config["challenges"], *CATALOGUE.datasets],
        catalogue=CATALOGUE,
    )
except ComperdialError as error:
    raise WorkflowError(f"Wrong configuration. {error}") from None

# As <data set>/<name>.
HEARD = {f"{entry.dataset}/{name}": entry for name, entry in ENTRIES.items() if entry.dataset in [*DATASETS, *STUDIED]}


def heard_of(dataset):
    return [entry.name for entry in HEARD.values() if entry.dataset == dataset]


def heard_files(dataset):
    return [score_file(dataset, name) for name in heard_of(dataset)]


def heard_ratings(heard):
    """The ratings that a recorded judge is held against: of its level."""
    return f"{answer_format(HEARD[heard].format).level}_ratings"


def coverage_files(dataset):
    return [f"results/judgements/{dataset}/{name}.csv" for name in heard_of(dataset)]


def heard_options(heard):
    """What `comperdial judge import` is told of a judge."""
    entry = HEARD[heard]
    sources = json.dumps({dimension: file.name for dimension, file in entry.files.items()}, sort_keys=True)
    return [
        f"--name={entry.name}",
        f"--format={entry.format}",
        f"--model={entry.model}",
        f"--prompt={entry.prompt}",
        f"--sources={sources}",
        f"--catalogue={config['catalogue']}",
        f"--ledger={JUDGING.ledger}",
    ]


def heard_names(dataset, attribute):
    """The prompt or the model of each recorded judge, as JSON."""
    entries = (entry for entry in HEARD.values() if entry.dataset == dataset)
    return json.dumps({entry.name: getattr(entry, attribute) for entry in entries}, sort_keys=True)
