# Scores computed elsewhere (docs/recorded-scores.md).


rule recorded:
    input:
        lambda wildcards: recorded_tables(wildcards.recorded, "systems", "contexts", "responses"),
        ratings=lambda wildcards: recorded_ratings(wildcards.recorded).values(),
        scores=lambda wildcards: recorded_scores(wildcards.recorded),
    output:
        "results/scores/{recorded}.parquet",
    log:
        "logs/recorded/{recorded}.log",
    wildcard_constraints:
        recorded=one_of(TAKEN),
    params:
        folder=subpath(input[0], parent=True),
        options=lambda wildcards: recorded_options(wildcards.recorded),
        ratings=lambda wildcards: [f"--{name}={path}" for name, path in recorded_ratings(wildcards.recorded).items()],
        # Stands in the signature.
        origin=lambda wildcards: TAKEN[wildcards.recorded].origin,
        code=lambda wildcards: code("recorded.importing", f"recorded.{TAKEN[wildcards.recorded].format}"),
    message:
        "Take the recorded scores {wildcards.recorded}"
    shell:
        "comperdial recorded {params.folder:q} {params.options:q} {params.ratings:q} --output {output:q} 2> {log:q}"
