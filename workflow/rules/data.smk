# Tables of data sets: data/tables/{dataset}/{table}.parquet.


rule read:
    input:
        read_from,
    output:
        tables("{dataset}"),
    log:
        "logs/read/{dataset}.log",
    wildcard_constraints:
        dataset=one_of(READ),
    params:
        how=read_how,
        code=lambda wildcards: code(f"data/readers/{reader_of(wildcards.dataset)}.py", "data/readers/base.py"),
    shell:
        "comperdial read {wildcards.dataset} --output data/tables/{wildcards.dataset} > {log} 2>&1"


rule personas:
    input:
        graph=config["personas"]["graph"],
        constraints=[
            f"{config['personas']['constraints']}/{name}.csv"
            for name in ("names", "family", "ages", "negative", "gender_neutral")
        ],
    output:
        "results/personas/personas.json",
    log:
        "logs/personas.log",
    params:
        number=config["personas"]["count"],
        seed=config["personas"]["seed"],
        constraints=lambda wildcards, input: str(Path(input.constraints[0]).parent),
        ages=config["personas"]["default_ages"],
        code=code("challenge/personas.py"),
    shell:
        "comperdial personas {input.graph:q} --constraints {params.constraints:q} --count {params.number} --seed {params.seed}"
        " --default-ages {params.ages} --output {output} > {log} 2>&1"


rule run_agent:
    input:
        agent_files,
        dialogues=lambda wildcards: challenge(wildcards)["dialogues"],
    output:
        "data/runs/{dataset}/{agent}.jsonl",
    log:
        "logs/run_agent/{dataset}/{agent}.log",
    wildcard_constraints:
        dataset=one_of(WITH_AGENTS),
    resources:
        runtime=60,
    params:
        agent=lambda wildcards: challenge(wildcards)["agents"][wildcards.agent],
        code=code("challenge/agents.py", "challenge/dialogues.py"),
    shell:
        "comperdial challenge run {input.dialogues:q} --agent {params.agent:q} --output {output} > {log} 2>&1"


rule read_challenge:
    input:
        runs,
        lambda wildcards: S.submissions(wildcards.dataset),
        dialogues=lambda wildcards: challenge(wildcards)["dialogues"],
    output:
        tables("{dataset}", "systems", "contexts", "personas", "responses"),
        report="data/tables/{dataset}/submissions.json",
    log:
        "logs/read_challenge/{dataset}.log",
    wildcard_constraints:
        dataset=one_of(S.made),
    params:
        submissions=lambda wildcards: [*runs(wildcards), *challenge(wildcards).get("submissions", [])],
        code=code("challenge/dialogues.py", "challenge/submissions.py"),
    shell:
        "comperdial challenge tables {input.dialogues:q} --submissions {params.submissions:q}"
        " --name {wildcards.dataset} --output data/tables/{wildcards.dataset} > {log} 2>&1"


rule read_ratings:
    input:
        tables("{dataset}", "contexts", "responses"),
        lambda wildcards: list(challenge(wildcards).get("ratings", {}).values()),
    output:
        tables("{dataset}", "ratings"),
    log:
        "logs/read_ratings/{dataset}.log",
    wildcard_constraints:
        dataset=one_of(RATED_BY_FILE),
    params:
        files=lambda wildcards: [
            part for level, path in challenge(wildcards).get("ratings", {}).items() for part in (f"--{level}", path)
        ],
        code=code("schema"),
    shell:
        "comperdial challenge ratings data/tables/{wildcards.dataset} {params.files:q} > {log} 2>&1"


rule simulate_ratings:
    input:
        tables("{dataset}", "contexts", "responses"),
        raters=lambda wildcards: challenge(wildcards)["simulated"]["raters"],
    output:
        tables("{dataset}", "ratings", "truth"),
    log:
        "logs/simulate_ratings/{dataset}.log",
    wildcard_constraints:
        dataset=one_of(S.simulated),
    params:
        seed=lambda wildcards: challenge(wildcards)["simulated"]["seed"],
        code=code("challenge/simulation.py"),
    shell:
        "comperdial simulate data/tables/{wildcards.dataset} --raters {input.raters:q} --seed {params.seed}"
        " > {log} 2>&1"


rule perturb:
    input:
        tables("{dataset}"),
    output:
        tables("{dataset}_perturbed"),
        pairs="data/tables/{dataset}_perturbed/pairs.csv",
    log:
        "logs/perturb/{dataset}.log",
    wildcard_constraints:
        dataset=one_of(S.datasets),
    resources:
        runtime=60,
    params:
        options=perturb_options,
        wordnet=WORDNET,
        code=code("perturbations"),
    shell:
        "comperdial perturb data/tables/{wildcards.dataset} --dataset {wildcards.dataset}_perturbed {params.options}"
        " --output data/tables/{wildcards.dataset}_perturbed > {log} 2>&1"


rule describe:
    output:
        "results/{dataset}/about.json",
    log:
        "logs/describe/{dataset}.log",
    wildcard_constraints:
        dataset=one_of([*S.datasets, *PAIRED]),
    params:
        about=lambda wildcards: digest(describe(S, wildcards.dataset)),
    shell:
        "comperdial describe {wildcards.dataset} --output {output} > {log} 2>&1"
