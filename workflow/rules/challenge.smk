# From personas, dialogues, agents and submissions to tables.


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
    return sorted({value for value in values if os.path.isfile(value)})


def run_files(challenge):
    return [f"data/runs/{challenge}/runs.jsonl"] if "agents" in CHALLENGES[challenge] else []


def submission_files(challenge):
    """The submissions of a challenge: what agents made here, and the files that lie in its folders."""
    found = run_files(challenge)
    for path in map(Path, CHALLENGES[challenge].get("submissions", [])):
        found += sorted(map(str, [*path.glob("*.jsonl"), *path.glob("systems.csv")])) if path.is_dir() else [str(path)]
    return found


def table_options(challenge):
    if "agents" not in CHALLENGES[challenge]:
        return ""
    roster = shlex.quote(CHALLENGES[challenge]["agents"])
    return f"--roster {roster} --runs data/runs/{challenge}/report.json"


rule personas:
    input:
        graph=config["personas"]["graph"],
        constraints=multiext(
            config["personas"]["constraints"] + "/",
            "names.csv",
            "family.csv",
            "ages.csv",
            "negative.csv",
            "gender_neutral.csv",
            "opposites.csv",
        ),
        code=code("personas"),
    output:
        "results/personas/personas.json",
    log:
        "logs/personas.log",
    params:
        constraints=config["personas"]["constraints"],
        how_many=config["personas"]["count"],
        seed=config["personas"]["seed"],
        ages=config["personas"]["default_ages"],
        numpy=version("numpy"),
    message:
        "Draw personas"
    shell:
        "comperdial personas {input.graph:q} --constraints {params.constraints:q} --count {params.how_many} "
        "--seed {params.seed} --default-ages {params.ages} --output {output} 2> {log}"


rule run_agents:
    input:
        dialogues=lambda wildcards: CHALLENGES[wildcards.challenge]["dialogues"],
        roster=lambda wildcards: CHALLENGES[wildcards.challenge]["agents"],
        resources=lambda wildcards: roster_files(wildcards.challenge),
        code=code("challenge.runner", "challenge.worker", "challenge.roster", *agent_modules()),
    output:
        runs="data/runs/{challenge}/runs.jsonl",
        report="data/runs/{challenge}/report.json",
    log:
        "logs/challenge/{challenge}_agents.log",
    threads: 2
    params:
        numpy=version("numpy"),
    message:
        "Run the agents of {wildcards.challenge}"
    shell:
        "comperdial challenge run {input.dialogues:q} --roster {input.roster:q} --jobs {threads} "
        "--output {output.runs} --report {output.report} > {log} 2>&1"


rule challenge_tables:
    input:
        dialogues=lambda wildcards: CHALLENGES[wildcards.challenge]["dialogues"],
        roster=lambda wildcards: CHALLENGES[wildcards.challenge].get("agents", []),
        submissions=lambda wildcards: submission_files(wildcards.challenge),
        code=code("challenge.build"),
    output:
        multiext(
            "data/tables/{challenge}/",
            "systems.parquet",
            "contexts.parquet",
            "personas.parquet",
            "responses.parquet",
        ),
        report="data/tables/{challenge}/submissions.json",
    log:
        "logs/challenge/{challenge}_tables.log",
    wildcard_constraints:
        challenge=one_of(MADE),
    params:
        folder=subpath(output[0], parent=True),
        runs=lambda wildcards, input: table_options(wildcards.challenge),
    message:
        "Turn the submissions of {wildcards.challenge} into tables"
    shell:
        "comperdial challenge tables {input.dialogues:q} --submissions {input.submissions:q} {params.runs} "
        "--name {wildcards.challenge} --output {params.folder:q} 2> {log}"
