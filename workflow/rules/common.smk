# Checks of the configuration and the functions that rules share; no rules here.

import json
import os
import re
import shlex
import sys
from importlib.metadata import version
from pathlib import Path

from snakemake.exceptions import WorkflowError

from comperdial.catalogue import load_catalogue
from comperdial.challenge.agents import kinds as agent_kinds
from comperdial.challenge.roster import read_roster
from comperdial.closure import code_version
from comperdial.config import load_yaml
from comperdial.config.checking import Lines
from comperdial.config.parameters import read_parameters
from comperdial.errors import ComperdialError, ConfigError, UnknownNameError
from comperdial.files import TABLE_SUFFIXES
from comperdial.metrics import create
from comperdial.records import unpack
from comperdial.sources import MIRROR_VARIABLE, raw_path


def without(options, *keys):
    return {key: value for key, value in options.items() if key not in keys}


def own_data():
    """The user's own rated files by name: the entries of `own_data`, and the files that `datasets` names themselves."""
    found = dict(config.get("own_data") or {})
    for place, path in enumerate(map(Path, config["datasets"])):
        if path.suffix in TABLE_SUFFIXES:
            name = re.sub("[^a-z0-9_]+", "_", path.stem.lower())
            if name in {*found, *config["challenges"], *CATALOGUE.datasets}:
                raise ConfigError(f"{path}: there is a data set {name!r} already", hint="Rename the file")
            found[name] = {"file": str(path), "title": path.stem}
            config["datasets"][place] = name
    return found


def metric_options(name):
    """What a metric is made with: the entry, less what says of which data sets."""
    return without(config["metrics"][name], "kind", "datasets")


try:
    # The records that came with pulled results: without them all of these would be made again.
    try:
        unpack()
    except OSError as error:
        print(f"Snakemake's records of pulled results could not be unpacked: {error}", file=sys.stderr)
    LINES = Lines("params.yaml", *workflow.overwrite_configfiles)
    read_parameters(config, lines=LINES)
    CATALOGUE = load_catalogue(config["catalogue"])
    OWN_DATA = own_data()
    names = [*OWN_DATA, *config["challenges"], *CATALOGUE.datasets]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ConfigError(f"two data sets are called {twice[0]!r}", where="params.yaml and the catalogue")
    for name in config["datasets"]:
        if name not in names:
            raise UnknownNameError("dataset", name, names, where="params.yaml")
    CHALLENGES = {name: config["challenges"][name] for name in config["datasets"] if name in config["challenges"]}
    OWN = {name: OWN_DATA[name] for name in config["datasets"] if name in OWN_DATA}
    PUBLIC = {name: CATALOGUE.dataset(name) for name in config["datasets"] if name not in {**CHALLENGES, **OWN}}
    USR = [CATALOGUE.dataset(name).name for name in config["tables"]["usr"]["datasets"]]
    METRICS = {}
    UNAVAILABLE = {}
    for name, options in config["metrics"].items():
        METRICS[name] = create(options["kind"], **metric_options(name))
        if why := METRICS[name].unavailable():
            UNAVAILABLE[name] = why
except ComperdialError as error:
    raise WorkflowError(f"Wrong configuration. {error}") from None

# Snakemake's own error, which follows where both make or read the same file, takes a paragraph and says less.
if workflow.is_main_process and "--unlock" not in sys.argv and any(Path(".snakemake/locks").glob("*.lock")):
    print(
        "Another run holds this folder: should this one be refused a lock, wait until the other has ended, or, if it "
        "was killed, free the folder with `snakemake --unlock`.",
        file=sys.stderr,
    )

# A mirror changes where bytes come from, never what they are: it is no parameter of a rule.
if config["mirror"]:
    os.environ.setdefault(MIRROR_VARIABLE, config["mirror"])

named = [path for challenge in CHALLENGES.values() for path in challenge_paths(challenge)]
named += [entry["file"] for entry in OWN.values()]
for path in [*named, config["personas"]["graph"], config["personas"]["constraints"]]:
    # Without this, a wrong name would go unnoticed where results of an earlier run lie.
    if not os.path.exists(path):
        raise WorkflowError(f"Wrong configuration. params.yaml: {path}: no such file or folder")
try:
    for challenge in CHALLENGES.values():
        if "agents" in challenge:
            read_roster(challenge["agents"])
except ComperdialError as error:
    raise WorkflowError(f"Wrong configuration. {error}") from None
for name, dataset in PUBLIC.items():
    if unpinned := [source.name for source in dataset.files.values() if not source.pinned]:
        raise WorkflowError(
            f"{name}: the checksum of {', '.join(unpinned)} is not known. Run `comperdial fetch {name}` once: it "
            "downloads the files and records what came, which every later download is held to."
        )

DATASETS = [*PUBLIC, *CHALLENGES, *OWN]
USR = [name for name in USR if name in PUBLIC]
# What a challenge is made of decides which rules make its tables.
MADE = [name for name, challenge in CHALLENGES.items() if "dialogues" in challenge]
IMPORTED = [name for name, challenge in CHALLENGES.items() if "comperdial" in challenge]
SIMULATED = [name for name, challenge in CHALLENGES.items() if "simulated" in challenge]
try:
    LEVELS = {name: levels_of(name) for name in DATASETS}
except ComperdialError as error:
    raise WorkflowError(f"Wrong configuration. {error}") from None
RATED = [name for name in DATASETS if LEVELS[name]]
BY_TURN, BY_DIALOGUE = ([name for name in DATASETS if level in LEVELS[name]] for level in ("turn", "dialogue"))
RAW = {str(raw_path(source)): source for source in CATALOGUE.files.values()}

# A table's forms beside its HTML, a figure's beside its PNG, each with the record of what it was made of.
FORMATS = (".md", ".tex", ".csv", ".provenance.json")
FIGURE_FORMATS = (".pdf", ".svg", ".provenance.json")


def code(*names):
    """The package files that a job runs, named and hashed: a parameter of its rule, so that an edit makes its output stale.

    The command line is left out: it passes arguments on, and those are parameters.
    """
    return code_version(*names)


def entry_of_data(dataset):
    """What params.yaml says of a data set of the user's; of one of the catalogue nothing."""
    return CHALLENGES.get(dataset) or OWN.get(dataset) or {}


def title(dataset):
    if dataset not in DATASETS:
        raise WorkflowError(f"{dataset} is not among `datasets`: add it in params.yaml, or with --config")
    said = PUBLIC[dataset].title if dataset in PUBLIC else entry_of_data(dataset).get("title", dataset)
    return said if source(dataset) in ("human", "simulated") else f"{said} (rated by {source(dataset)})"


def metric_modules(metrics):
    """The package's modules that metrics are made of, in one order."""
    return sorted({f"metrics.{name}" for metric in metrics for name in metric.modules})


def titles(datasets):
    """The titles of data sets, as JSON."""
    return json.dumps({name: title(name) for name in datasets}, sort_keys=True)


def source(dataset):
    """Whose ratings a data set is evaluated against: what its entry says, or its files, or the configuration."""
    said = PUBLIC[dataset].source if dataset in PUBLIC else entry_of_data(dataset).get("source")
    said = said or ("simulated" if dataset in SIMULATED else exported_source(dataset))
    return said or config["evaluation"]["source"]


def simulated(dataset):
    """The option that makes every caption say that the ratings are no people's."""
    said = source(dataset)
    return [] if said == "human" else ["--simulated"] if said == "simulated" else [f"--rated-by={said}"]


def target(dataset, option="target"):
    """The option that names the rated dimension of tables and figures: the data set's, or the one that most have."""
    said = PUBLIC[dataset].target if dataset in PUBLIC else entry_of_data(dataset).get("target")
    return [f"--{option}={said}" if said else f"--main-target={config['evaluation']['target']}"]


def reader_options(dataset):
    """The settings of a catalogue's reader, as JSON: the section of params.yaml that has its name."""
    return json.dumps(config.get(READ[dataset].reader, {}), sort_keys=True)


def one_of(names):
    """A constraint of a wildcard: one of these names and nothing else."""
    return "|".join(map(re.escape, names)) or "(?!)"


def table_of(stem):
    """The other forms of a table beside its HTML."""
    return multiext(f"results/tables/{stem}", *FORMATS)


def figure_of(stem):
    """The other forms of a figure beside its PNG."""
    return multiext(f"results/figures/{stem}", *FIGURE_FORMATS)
