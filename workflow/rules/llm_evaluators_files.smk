# The study of LLMs as dialogue evaluators: its data sets, what scores them, and what its rules are told; functions only.

from comperdial.judging.groups import PERTURBATIONS as RECORDED_SETS, perturbed, unperturbed
from comperdial.perturbations import generated, modules as strategy_modules
from comperdial.wordnet import locate

STUDY = config.get("llm_evaluators") or {}
# All tables of a data set, with something in them or not.
ALL_TABLES = ("systems", "contexts", "personas", "responses", "turn_ratings", "dialogue_ratings")


def study_options(name):
    """A metric of the study as it says, or as `metrics` does where the study says nothing."""
    if (options := STUDY["metrics"][name] or config["metrics"].get(name)) is None:
        raise UnknownNameError("metric", name, config["metrics"], where="params.yaml, llm_evaluators.metrics")
    return without(options, "datasets")


try:
    STUDIED = {name: CATALOGUE.dataset(name) for name in STUDY.get("datasets", [])}
    # Pairs of an original and a perturbed version: those that others recorded, and those made here, which go by their data set.
    RECORDED_PAIRS = {name: CATALOGUE.dataset(name) for name in RECORDED_SETS} if STUDY else {}
    STUDY_METRICS = {
        name: create((options := study_options(name))["kind"], **without(options, "kind"))
        for name in STUDY.get("metrics", {})
    }
    if (STRATEGIES := (STUDY.get("perturbed") or {}).get("strategies", "all")) == "all":
        STRATEGIES = list(generated())
    for name in STRATEGIES:
        if name not in generated():
            raise UnknownNameError("strategy", name, generated(), where="params.yaml, llm_evaluators.perturbed")
    for name in (STUDY.get("perturbed") or {}).get("datasets", []):
        if name not in (known := [*DATASETS, *STUDIED]):
            raise UnknownNameError("data set", name, known, where="params.yaml, llm_evaluators.perturbed")
except ComperdialError as error:
    raise WorkflowError(f"Wrong configuration. {error}") from None

# What is read with the catalogue's readers: the data sets that were chosen, and the study's.
READ = {**PUBLIC, **STUDIED, **RECORDED_PAIRS}
STUDY_ABSENT = {name: why for name, metric in STUDY_METRICS.items() if (why := metric.unavailable())}
STUDY_HERE = [name for name in STUDY_METRICS if name not in STUDY_ABSENT]
PERTURBED = [perturbed(name) for name in (STUDY.get("perturbed") or {}).get("datasets", [])]
# Any data set can be perturbed when it is asked for.
PERTURBABLE = list(dict.fromkeys([*DATASETS, *STUDIED])) if STUDY else []
PAIRED = [*RECORDED_PAIRS, *map(perturbed, PERTURBABLE)]


def study_tables(dataset, *names):
    return expand("data/tables/{dataset}/{table}.parquet", dataset=dataset, table=names)


def rated_tables(datasets):
    """The tables that correlations are made of; a catalogue's reader writes all of them."""
    return [path for name in datasets for path in study_tables(name, *ALL_TABLES)]


def folders(datasets):
    return [f"data/tables/{name}" for name in datasets]


def perturbed_inputs(dataset):
    return study_tables(dataset, "systems", "contexts", "responses") + (
        study_tables(dataset, "turn_ratings", "dialogue_ratings") if dataset in READ else rating_files(dataset)
    )


def wordnet_here():
    """The WordNet on this machine, which decides what is paraphrased; None if there is none."""
    return found.version if (found := locate()) else None


def strategy_options():
    """The strategies by name; without names, those that cannot run here are left out."""
    chosen = (STUDY.get("perturbed") or {}).get("strategies", "all")
    return [] if chosen == "all" else [part for name in chosen for part in ("--strategy", name)]


def study_metrics():
    """The metrics that run here, with kind and options, as JSON."""
    return json.dumps({name: study_options(name) for name in STUDY_HERE}, sort_keys=True)


def study_outputs():
    """The outputs that stand for metrics, of those that run here."""
    return [name for name in STUDY.get("outputs", []) if name.partition(":")[0] in STUDY_HERE]


def study_code():
    return code("scoring", *metric_modules(STUDY_METRICS[name] for name in STUDY_HERE))


def study_titles(datasets):
    """The titles of data sets, as JSON; perturbed ones have their data set's."""
    bases = {name: unperturbed(name) for name in datasets}
    return json.dumps(
        {name: READ[base].title if base in READ else title(base) for name, base in bases.items()}, sort_keys=True
    )


JUDGED_HERE = "results/llm_evaluators/judged"


def study_judges(dataset):
    """The judges of a data set that there are or can be scores of."""
    return [
        task for judged, task in JUDGED.items() if judged.split("/")[0] == dataset and is_judged(judged, JUDGED_HERE)
    ]


def study_score_files(dataset):
    """The scores of a data set of the study: by its metrics, by judges, and as recorded."""
    judges = [task.name for task in study_judges(dataset)] + heard_of(dataset)
    return [
        f"results/llm_evaluators/scores/{dataset}.parquet",
        *(f"{JUDGED_HERE}/{dataset}/{name}.parquet" for name in judges),
    ]
