# Agreement of scores with ratings: results/{dataset}/*.parquet.


rule correlate:
    input:
        tables("{dataset}", "contexts", "systems", "ratings"),
        scores=lambda wildcards: scores(wildcards.dataset),
    output:
        correlations="results/{dataset}/correlations.parquet",
        pairs="results/{dataset}/pairs.parquet",
        ceilings="results/{dataset}/ceilings.parquet",
    log:
        "logs/correlate/{dataset}.log",
    wildcard_constraints:
        dataset=one_of(S.rated),
    resources:
        mem_mb=8000,
        runtime=120,
    params:
        evaluation=lambda wildcards: evaluation_of(wildcards.dataset),
        options=lambda wildcards: correlate_options(wildcards.dataset),
        code=code_of("evaluation/results.py"),
    shell:
        "comperdial correlate data/tables/{wildcards.dataset} --scores {input.scores} {params.options:q}"
        " --output {output.correlations} --pairs {output.pairs} --ceilings {output.ceilings} > {log} 2>&1"


rule robustness:
    input:
        tables("{dataset}", "contexts", "systems", "ratings"),
        scores=lambda wildcards: scores(wildcards.dataset, main_metrics(wildcards.dataset)),
        judgements=lambda wildcards: [
            f"results/{wildcards.dataset}/judgements/{name}.parquet" for name in S.sampled(wildcards.dataset)
        ],
    output:
        curves="results/{dataset}/curves.parquet",
        power="results/{dataset}/power.parquet",
    log:
        "logs/robustness/{dataset}.log",
    wildcard_constraints:
        dataset=one_of(S.rated),
    resources:
        mem_mb=8000,
        runtime=120,
    params:
        **EVALUATION["curves"],
        evaluation=lambda wildcards: evaluation_of(wildcards.dataset),
        seed=EVALUATION["seed"],
        levels=" ".join(f"--level {level}" for level in EVALUATION["levels"]),
        code=code_of("evaluation/robustness.py", "evaluation/results.py"),
    shell:
        "comperdial robustness data/tables/{wildcards.dataset} --scores {input.scores} --judgements {input.judgements}"
        " {params.levels} --seed {params.seed} --coefficient {params.coefficient} --repeats {params.repeats}"
        " --curves {output.curves} --power {output.power} > {log} 2>&1"
