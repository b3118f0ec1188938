# Which files challenges are made of; functions only.

from comperdial.files import printable, read_json


def levels_of_file(path, options):
    from comperdial.datasets.table import rated_levels

    return rated_levels(path, options)


def agent_modules():
    return [f"challenge.agents.{kind}" for kind in agent_kinds()]


def roster_files(challenge):
    """The files that a roster's entries name: agents, and what they read."""
    roster = load_yaml(CHALLENGES[challenge]["agents"])
    parts = [roster.get("api") or {}, *roster["agents"], *(agent.get("options", {}) for agent in roster["agents"])]
    values = [value for part in parts for value in part.values() if isinstance(value, str)]
    # An agent that wraps another one has that one's options inside its own.
    inner = [part["options"] for part in parts if isinstance(part.get("options"), dict)]
    values += [value for part in inner for value in part.values() if isinstance(value, str)]
    # What lies beside an agent's own file can be imported by it.
    beside = [
        str(path) for agent in roster["agents"] if "file" in agent for path in Path(agent["file"]).parent.glob("*.py")
    ]
    found = sorted({*beside, *(value for value in values if os.path.isfile(value))})
    for path in found:
        if set("{}") & set(path):
            raise WorkflowError(f"{CHALLENGES[challenge]['agents']}: {path}: a name without braces is needed here")
    return found


def run_files(challenge):
    return [f"data/runs/{challenge}/runs.jsonl"] if "agents" in CHALLENGES[challenge] else []


def run_reports(challenge):
    return [f"data/runs/{challenge}/report.json"] if "agents" in CHALLENGES[challenge] else []


def submission_names(challenge):
    """The submissions that lie in a challenge's folders, and what else there looks like one."""
    found = []
    for path in map(Path, CHALLENGES[challenge].get("submissions", [])):
        found += sorted(map(str, [*path.glob("*.jsonl"), *path.glob("systems.csv")])) if path.is_dir() else [str(path)]
    return found


def submission_files(challenge):
    """The submissions of a challenge as inputs of a rule: what agents made here, and the files that were handed in.

    A name that Snakemake would read as a pattern, or cannot write into its records, is left out here; the command reads whole
    folders and reports it.
    """
    names = [name for name in submission_names(challenge) if not set("{}") & set(name) and printable(name) == name]
    return run_files(challenge) + names


def submission_report(dataset):
    return [f"data/tables/{dataset}/submissions.json"] if dataset in MADE else []


def levels_of(dataset):
    """The levels at which a data set is rated: as the catalogue, the file or the challenge's entry says."""
    if dataset in PUBLIC:
        return list(PUBLIC[dataset].levels)
    if dataset in OWN:
        return list(levels_of_file(OWN[dataset]["file"], own_options(dataset)))
    if dataset in [*SIMULATED, *IMPORTED]:
        return ["turn", "dialogue"]
    return list(CHALLENGES[dataset].get("ratings", {}))


def own_options(dataset):
    """How a file of the user's is read."""
    return {key: OWN[dataset][key] for key in ("columns", "scale") if key in OWN[dataset]}


def rated_levels(dataset):
    return LEVELS[dataset]


def rating_files(dataset):
    """The ratings of a data set, if it has any."""
    return [f"data/tables/{dataset}/{level}_ratings.parquet" for level in rated_levels(dataset)]


def challenge_paths(challenge):
    """The files and folders that a challenge's entry names."""
    keys = ("dialogues", "agents", "comperdial")
    return [
        *(challenge[key] for key in keys if key in challenge),
        *challenge.get("submissions", []),
        *challenge.get("ratings", {}).values(),
        *([challenge["simulated"]["raters"]] if "simulated" in challenge else []),
    ]


def exported_source(dataset):
    """Whose ratings a folder in ComperDial's form says that it holds; None if it does not say."""
    if dataset not in IMPORTED:
        return None
    path = Path(CHALLENGES[dataset]["comperdial"]) / "ComperDial_systems.json"
    return read_json(path).get("source") if path.is_file() else None


def roster_options(challenge):
    """The options of `challenge tables` for a challenge whose agents run here."""
    if "agents" not in CHALLENGES[challenge]:
        return []
    return ["--roster", CHALLENGES[challenge]["agents"], "--runs", *run_reports(challenge)]
