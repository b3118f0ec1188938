rule correlate:
    input:
        scores=score_files,
        ratings="data/tables/{dataset}/turn_ratings.parquet",
        code=code("aggregate", "stats/correlation"),
    output:
        "results/correlations/{dataset}.parquet",
    log:
        "logs/correlate/{dataset}.log",
    params:
        source=config["evaluation"]["source"],
        levels=[f"--level {level}" for level in config["evaluation"]["levels"]],
    shell:
        "comperdial correlate {input.scores} --ratings {input.ratings} --source {params.source:q} {params.levels} "
        "--output {output} 2> {log}"
