# What every table and figure of correlations is made of: one job a data set for values, intervals and tests, one for robustness.


rule correlate:
    input:
        lambda wildcards: rating_files(wildcards.dataset),
        scores=score_files,
        tables=multiext("data/tables/{dataset}/", "contexts.parquet", "systems.parquet"),
    output:
        correlations="results/correlations/{dataset}.parquet",
        ceilings="results/correlations/{dataset}_ceilings.parquet",
        comparisons="results/correlations/{dataset}_comparisons.parquet",
    log:
        "logs/correlate/{dataset}.log",
    params:
        ratings=lambda wildcards: sampled_options(wildcards.dataset),
        levels=[f"--level={level}" for level in config["evaluation"]["levels"]],
        target=lambda wildcards: target(wildcards.dataset, "detail-target"),
        outputs=lambda wildcards: detailed_outputs(wildcards.dataset),
        expected=lambda wildcards: expected_scores(wildcards.dataset),
        resamples=config["evaluation"]["resamples"],
        seed=config["evaluation"]["seed"],
        scipy=version("scipy"),
        code=code("evaluation"),
    message:
        "Correlate {wildcards.dataset}"
    shell:
        "comperdial correlate {input.scores:q} {params.ratings:q} {params.levels:q} {params.target:q} "
        "--resamples {params.resamples:q} --seed {params.seed:q} --expected {params.expected:q} --ceilings {output.ceilings:q} "
        "--comparisons {output.comparisons:q} --output {output.correlations:q} --outputs {params.outputs:q} 2> {log:q}"


rule robustness:
    input:
        lambda wildcards: rating_files(wildcards.dataset),
        scores=lambda wildcards: detailed_scores(wildcards.dataset),
        judgements=lambda wildcards: sampled_judgements(wildcards.dataset),
        tables=multiext("data/tables/{dataset}/", "contexts.parquet", "systems.parquet"),
    output:
        curves="results/correlations/{dataset}_curves.parquet",
        power="results/correlations/{dataset}_power.parquet",
    log:
        "logs/robustness/{dataset}.log",
    params:
        ratings=lambda wildcards: sampled_options(wildcards.dataset),
        levels=[f"--level={level}" for level in config["evaluation"]["levels"]],
        target=lambda wildcards: target(wildcards.dataset, "detail-target"),
        outputs=lambda wildcards: detailed_outputs(wildcards.dataset),
        coefficient=config["evaluation"]["curves"]["coefficient"],
        repeats=config["evaluation"]["curves"]["repeats"],
        seed=config["evaluation"]["seed"],
        judgements=lambda wildcards, input: ["--judgements", *input.judgements] if input.judgements else [],
        scipy=version("scipy"),
        code=code("evaluation"),
    message:
        "Subsample {wildcards.dataset}"
    shell:
        "comperdial robustness {input.scores:q} {params.ratings:q} {params.levels:q} {params.target:q} "
        "{params.judgements:q} --coefficient {params.coefficient:q} --repeats {params.repeats:q} --seed {params.seed:q} "
        "--curves {output.curves:q} --power {output.power:q} --outputs {params.outputs:q} 2> {log:q}"
