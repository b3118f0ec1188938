# Data sets, their scorers, and the input files of results: lists and functions, no rules.

import atexit
import hashlib
import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path

from comperdial.config import load_yaml
from comperdial.config.checking import Lines
from comperdial.config.studies import DATASET, VARIABLE, entry_of, function_of, inputs_of, read_study, shown_outputs
from comperdial.config import records
from comperdial.core.code import code, keep, modules_of
from comperdial.core.errors import ComperdialError
from comperdial.core.files import sha256, write_text
from comperdial.data import wordnet
from comperdial.data.preferences import preference_sets
from comperdial.data.sources import MIRROR_VARIABLE
from comperdial.models.store import label, missing
from comperdial.selection import Selection, agent_file, check_targets, describe, score_file

# Snakemake's metadata of pulled results; without it, all of them would be rebuilt.
try:
    records.unpack()
except OSError as error:
    print(f"Snakemake's records of pulled results could not be unpacked: {error}", file=sys.stderr)

if workflow.is_main_process:
    atexit.register(keep)

try:
    # Our own loader gives the line of an error and rejects duplicate keys.
    for path in ["params.yaml", *workflow.configfiles]:
        load_yaml(path)
    # The selected data sets and scorers: see src/comperdial/selection.py.
    S = Selection(config, lines=Lines("params.yaml", *workflow.overwrite_configfiles))
    if workflow.is_main_process:
        check_targets(S, sys.argv[1:])
except ComperdialError as error:
    # A WorkflowError would be shown with lines of our code.
    raise SystemExit(f"Error: {error}") from None

# Commands read params.yaml, or a merged copy if the command line changed something.
if config != load_yaml("params.yaml"):
    if workflow.is_main_process:
        # Not sorted: tables follow the order of the entries.
        write_text(".snakemake/params.json", json.dumps(config))
    os.environ[VARIABLE] = ".snakemake/params.json"
if config["mirror"]:
    os.environ.setdefault(MIRROR_VARIABLE, config["mirror"])
os.environ.setdefault("COMPERDIAL_EMBEDDINGS", "data/embeddings")

EVALUATION = config["evaluation"]
TABLES = ("systems", "contexts", "personas", "responses", "ratings")
WORDNET = found.version if (found := wordnet.locate()) else "none"
# Conversations in a Python package.
PACKAGED = ["chitchat"] if find_spec("chitchat_dataset") else []
PAIRED = [*S.recorded_pairs, *S.perturbed]
# Data sets by how their tables are made.
READ = [*S.public, *S.recorded_pairs, *S.own, *S.imported]
WITH_AGENTS = [name for name in S.made if "agents" in S.challenges[name]]
RATED_BY_FILE = [name for name in S.made if name not in S.simulated]
# Number of parts for scoring a data set.
SHARDS = config.get("shards") or {}
PARTS = {name: int(SHARDS.get(name, SHARDS.get("default", 1))) for name in [*S.datasets, *PAIRED]}
SPECS = {**S.studies, DATASET: read_study(DATASET)}
STUDIES = list(S.studies)


def digest(*values):
    """Return a hash of the values that determine a result, in order, to keep the output of `snakemake -n` short."""
    return hashlib.sha256(json.dumps(values, default=str).encode()).hexdigest()[:12]


def code_of(*modules):
    """Return a hash of the modules that a command calls, and of those they import (see `modules_of`)."""
    return code(*modules_of(*modules))


def one_of(names):
    """Return a wildcard constraint that matches exactly these names."""
    return "|".join(names) or "(?!)"


def tables(dataset, *names):
    return [f"data/tables/{dataset}/{name}.parquet" for name in names or TABLES]


def responses(wildcards):
    """Return the tables with a data set's responses."""
    return tables(wildcards.dataset, "systems", "contexts", "responses")


# Tables


def read_from(wildcards):
    """Return the user's files behind a data set; `comperdial read` fetches those of the catalogue to data/raw."""
    if wildcards.dataset in S.own:
        return S.own[wildcards.dataset]["file"]
    if wildcards.dataset in S.imported:
        folder = Path(S.challenges[wildcards.dataset]["comperdial"])
        return sorted(str(path) for path in folder.iterdir() if path.is_file())
    return []


def catalogued(dataset):
    return S.public.get(dataset) or S.recorded_pairs.get(dataset)


def reader_of(dataset):
    entry = catalogued(dataset)
    return entry.reader if entry else "table" if dataset in S.own else "comperdial"


def read_how(wildcards):
    """Return what a data set's tables depend on: checksums of its files, and the reader's options."""
    entry = catalogued(wildcards.dataset)
    if entry:
        checksums = {source.name: source.sha256 for source in entry.files.values()}
        return json.dumps([checksums, config.get(entry.reader, {})], sort_keys=True)
    own = wildcards.dataset in S.own
    options = S.own_options(wildcards.dataset) if own else config["comperdial"]["columns"]
    return json.dumps([checksums_of(read_from(wildcards)), options], sort_keys=True)


def checksums_of(paths):
    """Return the checksums of a user's files, since Snakemake misses a file replaced by an older one."""
    return [sha256(path) for path in ([paths] if isinstance(paths, str) else paths)]


def challenge(wildcards):
    return S.challenges[wildcards.dataset]


def runs(wildcards):
    """Return the submissions of a challenge's local agents."""
    return [f"data/runs/{wildcards.dataset}/{agent}.jsonl" for agent in challenge(wildcards).get("agents", {})]


def agent_files(wildcards):
    """Return an agent's file and the modules next to it, which it may import."""
    return sorted(map(str, Path(agent_file(challenge(wildcards)["agents"][wildcards.agent])).parent.glob("*.py")))


def perturb_options(wildcards):
    """Return a study's options for `comperdial perturb`."""
    entry = next((study["perturbed"] for study in S.studies.values() if study.get("perturbed")), {})
    strategies = entry.get("strategies", "all")
    chosen = [] if strategies == "all" else [f"--strategy {name}" for name in strategies]
    return " ".join([f"--sample {entry.get('sample', 200)} --seed {entry.get('seed', 0)}", *chosen])


# Scores


# Pulled scores of a metric that cannot run here are used unchanged.
RUNNABLE = [name for name in S.metrics if name not in S.unavailable]


def metric_code(wildcards):
    modules = S.metrics[wildcards.metric].modules
    return code("metrics/base.py", "metrics/scoring.py", *(f"metrics/{module}.py" for module in modules))


def metric_options(wildcards):
    """Return what a metric's scores depend on: its entry, and its signature with model checksums."""
    entry = S.config["metrics"][wildcards.metric]
    options = {key: value for key, value in entry.items() if key not in ("datasets", "skip", "apart", "main", "label")}
    return json.dumps([options, S.metric(wildcards.dataset, wildcards.metric).signature()], sort_keys=True)


def metric_threads(wildcards):
    # Run one model at a time: two may not fit into memory.
    return workflow.cores if S.metrics[wildcards.metric].runs_model else 1


def scores(dataset, metrics=None):
    """Return the score files of a data set, by all metrics (including `apart` ones) or by some."""
    names = [name for name in S.scorers(dataset, apart=True) if metrics is None or name in metrics]
    return [score_file(dataset, name) for name in names]


def main_metrics(dataset):
    """Return the metrics of a data set's main outputs; None (meaning all) if it has none."""
    return {output.rpartition(":")[0] for output in S.outputs(dataset)} or None


def components(wildcards):
    """Return the available scores that a combined metric uses."""
    return {name: score_file(wildcards.dataset, name) for name in S.parts_of(wildcards.dataset, wildcards.metric)}


def judged(dataset):
    """Return the judge metrics that can be requested."""
    return [task.name for task in S.judged_by(dataset)]


def turns_of(wildcards):
    """Return the turn scores that a judge of dialogues needs."""
    task = S.tasks[wildcards.dataset][wildcards.metric]
    return score_file(wildcards.dataset, task.turns) if task.turns else []


# Results


def of_studies(dataset, key):
    """Return the values that a data set's studies list under a key."""
    studies = [S.studies[study] for study, names in S.sets_of.items() if dataset in names]
    return list(dict.fromkeys(name for study in studies for name in study.get(key, ())))


def correlate_options(dataset):
    """Return the options of `correlate`: those of params.yaml, and the outputs that studies show, to be tested too."""
    studies = [S.studies[study] for study, names in S.sets_of.items() if dataset in names]
    compared = sorted({name for study in studies for name in shown_outputs(study)})
    options = {
        "compared": compared,
        "restricted": of_studies(dataset, "restricted"),
        "raters": of_studies(dataset, "raters"),
    }
    return [
        *evaluation_options(),
        *(part for name, values in options.items() if values for part in (f"--{name}", *values)),
    ]


def evaluation_options():
    """Return the options of params.yaml's section `evaluation`."""
    levels = [part for level in EVALUATION["levels"] for part in ("--level", level)]
    tests = ["--tests", *EVALUATION["tests"]] if EVALUATION.get("tests") else []
    given = ["--systems-given"] if EVALUATION.get("systems") == "fixed" else []
    return [*levels, "--resamples", str(EVALUATION["resamples"]), "--seed", str(EVALUATION["seed"]), *given, *tests]


def evaluation_of(dataset):
    """Return what a data set's correlations depend on: source of ratings, dimension, and outputs with detail."""
    about = describe(S, dataset)
    chosen = {key: about[key] for key in ("source", "levels", "target", "main_target", "outputs")}
    return digest(chosen, S.expected(dataset), EVALUATION)


def names_of(dataset, what):
    judges = {"judge": judged, "recorded_judge": S.recorded_judges_of}
    return judges[what](dataset) if what in judges else S.scorers(dataset, apart=True)


def datasets_of(study, entry):
    return entry.get("datasets") or SPECS[study].get("datasets") or []


def shown(kind, study, dataset=None, among=None):
    """Return the names of the tables or figures of a data set or a study; with `among`, only of these data sets."""
    entries = SPECS[study].get(kind) or {}
    if dataset:
        return [
            name
            for name, entry in entries.items()
            if S.has(dataset, entry.get("when", [])) and not entry.get("on_request")
        ]
    known = {*among} if among is not None else {*S.names, *PAIRED, *PACKAGED}
    return [name for name, entry in entries.items() if {*datasets_of(study, entry)} <= known]


def made_of(kind):
    """Return the input function of the rules that make tables and figures."""

    def inputs(wildcards):
        study = wildcards.get("study", DATASET)
        entry = entry_of(SPECS[study], kind.removesuffix("s"), wildcards.name, where=f"study {study}")
        datasets = [wildcards.dataset] if study == DATASET else datasets_of(study, entry)
        return [path for paths in inputs_of(entry, datasets, names_of).values() for path in paths]

    return inputs


def entry_code(kind):
    """Return a function for what a table or figure depends on besides its inputs: its entry and code."""

    def hashed(wildcards):
        study = wildcards.get("study", DATASET)
        entry = SPECS[study][kind][wildcards.name]
        name, _ = function_of(study, kind.removesuffix("s"), entry)
        path = Path(*name.split(".")).with_suffix(".py").as_posix()
        settings = {key: value for key, value in SPECS[study].items() if key not in ("tables", "figures")}
        return digest(
            settings,
            entry,
            code(*modules_of("studies/making.py", path), "report/notes.yaml", "report/table.*"),
        )

    return hashed


def caption(kind):
    return lambda wildcards: SPECS[wildcards.get("study", DATASET)][kind][wildcards.name].get("caption", "")


def dataset_results(dataset):
    """Return the files that plain `snakemake` makes for a data set."""
    results = f"results/{dataset}"
    found = [f"{results}/tables/{name}.html" for name in shown("tables", DATASET, dataset)]
    found += [f"{results}/figures/{name}.png" for name in shown("figures", DATASET, dataset)]
    if dataset in S.rated:
        found.append(f"{results}/summary/metrics.json")
    return [*found, page_of(dataset)]


def study_results(study, among=None):
    """Return the files of a study; with `among`, only those of these data sets."""
    results = f"results/studies/{study}"
    found = [f"{results}/tables/{name}.html" for name in shown("tables", study, among=among)]
    return found + [f"{results}/figures/{name}.png" for name in shown("figures", study, among=among)]


def page_of(dataset):
    """Return a data set's page; with texts of a downloaded data set it may not be published, so it stays in results/local."""
    return f"results/local/{dataset}.html" if dataset in S.public else f"results/{dataset}/report.html"
