# Judges and what they are asked; functions only.

from comperdial.judging.config import read_judging
from comperdial.judging.groups import groups_of, judged_levels
from comperdial.judging.sections import SETTINGS_VARIABLE, connections, sections_of
from comperdial.judging.tasks import known_signature, signature, unavailable

try:
    JUDGING = read_judging(
        config.get("judges"),
        config.get("judging"),
        datasets=[*config["challenges"], *CATALOGUE.datasets, *PAIRED],
        groups=groups_of(config),
        lines=LINES,
    )
    # As <data set>/<metric>: a judge is asked of the data sets that name it.
    JUDGED = {
        f"{dataset}/{name}": task
        for dataset in dict.fromkeys([*DATASETS, *STUDIED, *PAIRED])
        for name, task in JUDGING.tasks(
            dataset,
            **judged_levels(dataset, None if dataset in CHALLENGES or dataset not in READ else READ[dataset].levels),
        ).items()
    }
    if both := {task.name for task in JUDGED.values()} & {*METRICS, *RECORDED}:
        raise WorkflowError(f"Wrong configuration. params.yaml: {', '.join(both)}: both a metric and a judge's variant")
    NOT_JUDGED = {
        judged: why for judged, task in JUDGED.items() if (why := unavailable(JUDGING, task, judged.split("/")[0]))
    }
except ComperdialError as error:
    raise WorkflowError(f"Wrong configuration. {error}") from None

# How a judge is reached, and what it may cost: nothing that a score depends on, so no parameter of a rule.
os.environ[SETTINGS_VARIABLE] = connections(config.get("judges"), config.get("judging"))


def is_judged(judged, folder="results/scores"):
    """Whether there are or can be scores: the judge can answer, or fitting scores made elsewhere were pulled."""
    if judged not in NOT_JUDGED:
        return True
    # Of a model that is not here nothing is known that scores could be held against.
    said = known_signature(JUDGING, JUDGED[judged])
    return said is not None and fits(f"{folder}/{judged}.parquet", said)


def judged_by(dataset):
    """The metrics of judges that a data set has scores of."""
    return [task.name for judged, task in JUDGED.items() if judged.split("/")[0] == dataset and is_judged(judged)]


def judged_files(dataset):
    return [score_file(dataset, name) for name in judged_by(dataset)]


def judgement_files(wildcards):
    return [f"results/judgements/{wildcards.dataset}/{name}.parquet" for name in judged_by(wildcards.dataset)]


def not_judged(datasets):
    """The judges' metrics without scores, with the reason."""
    return {
        JUDGED[judged].name: why
        for judged, why in NOT_JUDGED.items()
        if judged.split("/")[0] in datasets and not is_judged(judged)
    }


def judged_tables(judged):
    names = ("systems", "contexts", "responses")
    return [f"data/tables/{judged.split('/')[0]}/{table}.parquet" for table in names]


def judged_turns(judged):
    """The scores of the turns that a judge of dialogues is given."""
    dataset, task = judged.split("/")[0], JUDGED[judged]
    return [score_file(dataset, task.turns)] if task.turns else []


def judge_labels(dataset):
    """What tables call the metrics of a data set's judges, as JSON."""
    return json.dumps({task.name: task.label for judged, task in JUDGED.items() if judged.split("/")[0] == dataset})


def judge_code(judged):
    """The package files that judging runs; the words that `rules` goes by are no module."""
    service = JUDGED[judged].judge.service
    words = [str(path) for path in Path("src/comperdial/judges/services").glob(f"_{service}*.yaml")]
    return code("judging.running", f"judges.services.{service}", *words)


def how_judged(judged):
    """All that decides what is asked and how it is read: with the prompt's hash, and the version of a service of ours."""
    task = JUDGED[judged]
    return [sections_of(task, config), signature(JUDGING, task), judge_code(judged)]
