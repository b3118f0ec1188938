# The study of LLMs as dialogue evaluators: scores of its data sets, correlations by dimension and source, robustness ratios.


rule perturb:
    input:
        lambda wildcards: perturbed_inputs(wildcards.perturbable),
    output:
        multiext("data/tables/{perturbable}_perturbed/", *(f"{name}.parquet" for name in ALL_TABLES)),
        "data/tables/{perturbable}_perturbed/pairs.csv",
    log:
        "logs/perturb/{perturbable}.log",
    wildcard_constraints:
        perturbable=one_of(PERTURBABLE),
    params:
        folder=subpath(input[0], parent=True),
        made=subpath(output[0], parent=True),
        strategies=strategy_options(),
        sample=STUDY.get("perturbed", {}).get("sample"),
        seed=STUDY.get("perturbed", {}).get("seed"),
        # Two strategies' words come from there: with another one, or none, they make other pairs.
        wordnet=wordnet_here(),
        code=code("perturbations", *strategy_modules(STRATEGIES)),
    message:
        "Perturb {wildcards.perturbable}"
    shell:
        "comperdial perturb {params.folder:q} --dataset {wildcards.perturbable:q}_perturbed --output {params.made:q} "
        "{params.strategies:q} --sample {params.sample:q} --seed {params.seed:q} > {log:q} 2>&1"


# All metrics in one process: to start Python with torch for each would take longer than to score.
rule study_scores:
    input:
        multiext("data/tables/{studied}/", "systems.parquet", "contexts.parquet", "responses.parquet"),
    output:
        "results/llm_evaluators/scores/{studied}.parquet",
    log:
        "logs/study_scores/{studied}.log",
    wildcard_constraints:
        studied=one_of([*STUDIED, *PAIRED]),
    params:
        folder=subpath(input[0], parent=True),
        metrics=lambda wildcards: study_metrics(),
        signatures=[STUDY_METRICS[name].signature() for name in STUDY_HERE],
        code=study_code(),
    message:
        "Score {wildcards.studied}"
    shell:
        "OMP_NUM_THREADS={threads} comperdial score-all {params.folder:q} --metrics {params.metrics:q} --embeddings data/embeddings "
        "--output {output:q} 2> {log:q}"


rule study_correlations:
    input:
        rated_tables(STUDIED),
        scores=[path for name in STUDIED for path in study_score_files(name)],
    output:
        correlations="results/llm_evaluators/correlations.parquet",
        rounds="results/llm_evaluators/rounds.parquet",
    log:
        "logs/study_correlations.log",
    params:
        folders=folders(STUDIED),
        outputs=lambda wildcards: study_outputs(),
        ensembles=lambda wildcards: study_ensembles(),
        own=[f"{name}=gpt-4" for name in recorded_rounds()],
        resamples=STUDY.get("resamples"),
        seed=STUDY.get("seed"),
        scipy=version("scipy"),
        code=code("evaluation.dimensions", "evaluation.ensembles", "evaluation.rounds"),
    message:
        "Correlate the study's scores with the ratings of each dimension"
    shell:
        "comperdial dimensions {input.scores:q} --tables {params.folders:q} --outputs {params.outputs:q} "
        "--ensembles {params.ensembles:q} --own {params.own:q} --resamples {params.resamples:q} --seed {params.seed:q} --rounds {output.rounds:q} "
        "--output {output.correlations:q} 2> {log:q}"


rule study_ratios:
    input:
        lambda wildcards: study_tables(wildcards.paired, "systems", "contexts", "responses"),
        scores=lambda wildcards: study_score_files(wildcards.paired),
    output:
        "results/llm_evaluators/{paired}_ratios.parquet",
    log:
        "logs/study_ratios/{paired}.log",
    wildcard_constraints:
        paired=one_of(PAIRED),
    params:
        folder=subpath(input[0], parent=True),
        bounds=lambda wildcards: study_bounds(wildcards.paired),
        scipy=version("scipy"),
        code=code("evaluation.ratios", "perturbations.registry"),
    message:
        "Compare original and perturbed in {wildcards.paired}"
    shell:
        "comperdial ratios {input.scores:q} --tables {params.folder:q} --bounds {params.bounds:q} --output {output:q} 2> {log:q}"
