# Judges and what they are asked; functions only.

from comperdial.judging.config import read_judging
from comperdial.judging.sections import SETTINGS_VARIABLE, connections, sections_of
from comperdial.judging.tasks import signature, unavailable

try:
    JUDGING = read_judging(
        config.get("judges"), config.get("judging"), datasets=[*config["challenges"], *CATALOGUE.datasets]
    )
    # As <data set>/<metric>: a judge is asked of the data sets that name it.
    JUDGED = {
        f"{dataset}/{name}": task
        for dataset in DATASETS
        for name, task in JUDGING.tasks(dataset, dialogues=dataset in [*CHALLENGES, *BY_DIALOGUE]).items()
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


def is_judged(judged):
    """Whether there are or can be scores: the judge can answer, or fitting scores made elsewhere were pulled."""
    return judged not in NOT_JUDGED or fits(f"results/scores/{judged}.parquet", signature(JUDGING, JUDGED[judged]))


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
