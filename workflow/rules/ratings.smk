# Ratings of challenges: simulated, brought along, or read with the whole data set from ComperDial's own form.


rule simulated_ratings:
    input:
        multiext("data/tables/{challenge}/", "contexts.parquet", "responses.parquet"),
        raters=lambda wildcards: CHALLENGES[wildcards.challenge]["simulated"]["raters"],
        roster=lambda wildcards: CHALLENGES[wildcards.challenge]["agents"],
    output:
        multiext(
            "data/tables/{challenge}/",
            "turn_ratings.parquet",
            "dialogue_ratings.parquet",
            "truth.parquet",
        ),
    log:
        "logs/challenge/{challenge}_simulate.log",
    wildcard_constraints:
        challenge=one_of(SIMULATED),
    params:
        folder=subpath(output[0], parent=True),
        seed=lambda wildcards: CHALLENGES[wildcards.challenge]["simulated"]["seed"],
        numpy=version("numpy"),
        code=code("simulation", "challenge.roster", "schema.merging"),
    message:
        "SIMULATE ratings of {wildcards.challenge}"
    shell:
        "comperdial simulate {params.folder:q} --raters {input.raters:q} --roster {input.roster:q} "
        "--seed {params.seed:q} 2> {log:q}"


rule challenge_ratings:
    input:
        multiext("data/tables/{challenge}/", "contexts.parquet", "responses.parquet"),
        ratings=lambda wildcards: list(CHALLENGES[wildcards.challenge]["ratings"].values()),
    output:
        multiext(
            "data/tables/{challenge}/",
            "turn_ratings.parquet",
            "dialogue_ratings.parquet",
        ),
    log:
        "logs/challenge/{challenge}_ratings.log",
    wildcard_constraints:
        challenge=one_of(name for name in MADE if "ratings" in CHALLENGES[name]),
    params:
        folder=subpath(output[0], parent=True),
        files=lambda wildcards: [
            f"--{level}={path}" for level, path in CHALLENGES[wildcards.challenge]["ratings"].items()
        ],
        code=code("aggregate"),
    message:
        "Read the ratings of {wildcards.challenge}"
    shell:
        "comperdial challenge ratings {params.folder:q} {params.files:q} 2> {log:q}"


rule import_comperdial:
    input:
        lambda wildcards: sorted(
            map(str, Path(CHALLENGES[wildcards.challenge]["comperdial"]).glob("ComperDial_*.json"))
        ),
    output:
        multiext(
            "data/tables/{challenge}/",
            "systems.parquet",
            "contexts.parquet",
            "personas.parquet",
            "responses.parquet",
            "turn_ratings.parquet",
            "dialogue_ratings.parquet",
        ),
    log:
        "logs/challenge/{challenge}_import.log",
    wildcard_constraints:
        challenge=one_of(IMPORTED),
    params:
        folder=subpath(output[0], parent=True),
        origin=lambda wildcards: CHALLENGES[wildcards.challenge]["comperdial"],
        columns=lambda wildcards: json.dumps(config["comperdial"]["columns"], sort_keys=True),
        code=code("datasets.comperdial", "export"),
    message:
        "Read {wildcards.challenge} into tables"
    shell:
        "comperdial import {params.origin:q} --name {wildcards.challenge:q} --columns {params.columns:q} "
        "--output {params.folder:q} 2> {log:q}"
