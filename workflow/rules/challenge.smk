# From personas, dialogues, agents and submissions to tables.


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
    output:
        "results/personas/personas.json",
    log:
        "logs/personas.log",
    params:
        constraints=lambda wildcards, input: os.path.dirname(input.constraints[0]),
        how_many=config["personas"]["count"],
        seed=config["personas"]["seed"],
        ages=config["personas"]["default_ages"],
        numpy=version("numpy"),
        code=code("personas"),
    message:
        "Draw personas"
    shell:
        "comperdial personas {input.graph:q} --constraints {params.constraints:q} --count {params.how_many:q} "
        "--seed {params.seed:q} --default-ages {params.ages:q} --output {output:q} 2> {log:q}"


rule run_agents:
    input:
        dialogues=lambda wildcards: CHALLENGES[wildcards.challenge]["dialogues"],
        roster=lambda wildcards: CHALLENGES[wildcards.challenge]["agents"],
        resources=lambda wildcards: roster_files(wildcards.challenge),
    output:
        runs="data/runs/{challenge}/runs.jsonl",
        report="data/runs/{challenge}/report.json",
    log:
        "logs/challenge/{challenge}_agents.log",
    threads: 2
    params:
        numpy=version("numpy"),
        code=code("challenge.runner", "challenge.worker", "challenge.roster", "challenge.submissions", *agent_modules()),
    message:
        "Run the agents of {wildcards.challenge}"
    shell:
        "comperdial challenge run {input.dialogues:q} --roster {input.roster:q} --jobs {threads} "
        "--output {output.runs:q} --report {output.report:q} > {log:q} 2>&1"


rule challenge_tables:
    input:
        dialogues=lambda wildcards: CHALLENGES[wildcards.challenge]["dialogues"],
        roster=lambda wildcards: CHALLENGES[wildcards.challenge].get("agents", []),
        submissions=lambda wildcards: submission_files(wildcards.challenge),
        # Not only the responses: why an agent failed is told again.
        failed=lambda wildcards: run_reports(wildcards.challenge),
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
        roster=lambda wildcards: roster_options(wildcards.challenge),
        # Folders, so that every file in them is read or reported.
        submissions=lambda wildcards: [
            *run_files(wildcards.challenge),
            *CHALLENGES[wildcards.challenge].get("submissions", []),
        ],
        # By name, so that a new file is noticed whatever it is called.
        names=lambda wildcards: submission_names(wildcards.challenge),
        code=code("challenge.build"),
    message:
        "Turn the submissions of {wildcards.challenge} into tables"
    shell:
        "comperdial challenge tables {input.dialogues:q} --submissions {params.submissions:q} {params.roster:q} "
        "--name {wildcards.challenge:q} --output {params.folder:q} 2> {log:q}"
