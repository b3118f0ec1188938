rule correlate:
    input:
        scores=score_files,
        ratings="data/tables/{dataset}/turn_ratings.parquet",
        systems="data/tables/{dataset}/systems.parquet",
        code=code("aggregate"),
    output:
        "results/correlations/{dataset}.parquet",
    log:
        "logs/correlate/{dataset}.log",
    params:
        source=lambda wildcards: source(wildcards.dataset),
        levels=[f"--level {level}" for level in config["evaluation"]["levels"]],
        scipy=version("scipy"),
    message:
        "Correlate {wildcards.dataset}"
    shell:
        "comperdial correlate {input.scores} --ratings {input.ratings} --systems {input.systems} "
        "--source {params.source:q} {params.levels} --output {output} 2> {log}"
