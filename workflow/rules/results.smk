# How well scores agree with people: results/{dataset}/*.parquet.


def drawn_for(study):
    return {key: S.studies[study][key] for key in ("resamples", "seed") if study in S.studies}


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
        evaluated=lambda wildcards: evaluated(wildcards.dataset),
        options=lambda wildcards: correlate_options(wildcards.dataset),
        code=code("evaluation", "stats"),
    shell:
        "comperdial correlate data/tables/{wildcards.dataset} --scores {input.scores} {params.options:q}"
        " --output {output.correlations} --pairs {output.pairs} --ceilings {output.ceilings} > {log} 2>&1"


rule robustness:
    input:
        tables("{dataset}", "contexts", "systems", "ratings"),
        scores=lambda wildcards: scores(wildcards.dataset, S.outputs(wildcards.dataset) or None),
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
        evaluated=lambda wildcards: evaluated(wildcards.dataset),
        seed=EVALUATION["seed"],
        levels=" ".join(f"--level {level}" for level in EVALUATION["levels"]),
        code=code("evaluation", "stats"),
    shell:
        "comperdial robustness data/tables/{wildcards.dataset} --scores {input.scores} --judgements {input.judgements}"
        " {params.levels} --seed {params.seed} --coefficient {params.coefficient} --repeats {params.repeats}"
        " --curves {output.curves} --power {output.power} > {log} 2>&1"


# The study of LLMs as evaluators correlates by rated dimension and by who rated, and counts how often scores fall.
EVALUATORS = S.studies.get("llm_evaluators", {})


def evaluators(dataset):
    """Return what the study compares on a data set: its metrics, judges and recorded judges."""
    metrics = [name for name in EVALUATORS.get("metrics", {}) if S.scored_by(dataset, name)]
    return [*metrics, *judged(dataset), *S.recorded_judges_of(dataset)]


rule dimensions:
    input:
        tables("{dataset}", "contexts", "systems", "ratings"),
        scores=lambda wildcards: [score_file(wildcards.dataset, name) for name in evaluators(wildcards.dataset)],
        study="studies/llm_evaluators/study.yaml",
    output:
        correlations="results/{dataset}/dimensions.parquet",
        between="results/{dataset}/between_dimensions.parquet",
    log:
        "logs/dimensions/{dataset}.log",
    wildcard_constraints:
        dataset=one_of(S.sets_of.get("llm_evaluators", [])),
    resources:
        mem_mb=4000,
        runtime=60,
    params:
        outputs=lambda wildcards: [
            output
            for name in evaluators(wildcards.dataset)
            if name in S.metrics
            for output in S.main_outputs(name, wildcards.dataset)[:1]
        ],
        resamples=EVALUATORS.get("resamples"),
        seed=EVALUATORS.get("seed"),
        code=code("evaluation", "stats"),
    message:
        "{wildcards.dataset}: correlate scores with the ratings of each dimension, by who rated"
    shell:
        "comperdial dimensions {input.scores} --tables data/tables/{wildcards.dataset} --study {input.study}"
        " --outputs {params.outputs} --resamples {params.resamples} --seed {params.seed}"
        " --between {output.between} --output {output.correlations} > {log} 2>&1"


rule ratios:
    input:
        tables("{dataset}", "contexts", "responses"),
        scores=lambda wildcards: [score_file(wildcards.dataset, name) for name in evaluators(wildcards.dataset)],
        about="results/{dataset}/about.json",
    output:
        "results/{dataset}/ratios.parquet",
    log:
        "logs/ratios/{dataset}.log",
    wildcard_constraints:
        dataset=one_of(PAIRED),
    resources:
        mem_mb=4000,
        runtime=60,
    params:
        code=code("evaluation", "stats"),
    message:
        "{wildcards.dataset}: how often scores fall when a text was made worse"
    shell:
        "comperdial ratios {input.scores} --tables data/tables/{wildcards.dataset} --about {input.about}"
        " --output {output} > {log} 2>&1"


rule score_pairs:
    input:
        tables("{dataset}", "systems", "contexts", "responses"),
    output:
        scores="results/studies/density/pairs/{dataset}.parquet",
        ratios="results/studies/density/pairs/{dataset}_ratios.parquet",
    log:
        "logs/score_pairs/{dataset}.log",
    wildcard_constraints:
        dataset=one_of(PAIRED),
    threads: workflow.cores
    params:
        metrics=[name for name in ("density-selection", "density", "grounded-cosine-minilm") if name in S.metrics],
        signatures=[S.metrics[name].signature() for name in ("density-selection", "density") if name in S.metrics],
        code=code("metrics", "evaluation/ratios.py"),
    shell:
        "comperdial score-pairs data/tables/{wildcards.dataset} --metrics {params.metrics}"
        " --kinds random_response repetition speaker contradiction --sample 400 --seed 2024"
        " --output {output.scores} --ratios {output.ratios} > {log} 2>&1"


LOCAL = S.sets_of.get("local_metrics", [])
FEATURES = load_yaml("src/comperdial/metrics/local_features.yaml")["metrics"]


rule ablate:
    input:
        [tables(name, "contexts", "responses", "systems", "ratings") for name in LOCAL],
        [path for name in LOCAL for path in scores(name, [f"{metric}:" for metric in FEATURES])],
    output:
        ablation="results/studies/local_metrics/ablation.parquet",
        pairs="results/studies/local_metrics/ablation_pairs.parquet",
    log:
        "logs/ablate.log",
    params:
        **drawn_for("local_metrics"),
        code=code("evaluation", "stats"),
    shell:
        "comperdial ablate --tables data/tables --scores results --resamples {params.resamples} --seed {params.seed}"
        " --output {output.ablation} --pairs {output.pairs} > {log} 2>&1"
