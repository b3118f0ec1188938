# Results of single studies besides correlations: by dimension, perturbations, preferences, continuity, and the overall ranking.


def resampling(study):
    return {key: S.studies[study][key] for key in ("resamples", "seed") if study in S.studies}


PREFERRED = preference_sets(S.catalogue)
CONTINUITY = "results/studies/continuity"
HAZUMI = [name for name in ("hazumi1902", "hazumi1911") if name in S.catalogue.datasets]
CHATS = [*PACKAGED, *(name for name in ["convai2"] if name in S.catalogue.datasets)]
MODELS = {"minilm": "all-MiniLM-L6-v2", "smollm2": "smollm2-135m-instruct"}
ENCODERS = [name for name, model in MODELS.items() if missing(model) is None]
VECTORS = "data/training/continuity/{dataset}_{encoder}.safetensors"
RESAMPLING = "--resamples {params.resamples} --seed {params.seed}"
PERSPECTIVE = {
    **dict.fromkeys(HAZUMI, "--tokens characters --dimension 'user impression'"),
    "ieval_dial": "--dimension overall --outsiders gpt-4 --ieval data/tables/ieval/rated_dialogues.parquet",
    "fed_dial": "--dimension overall --outsiders human",
    "fed_turn": "--dimension overall --outsiders human",
}


rule read_preferences:
    output:
        "data/tables/{dataset}/preferences.parquet",
    log:
        "logs/read_preferences/{dataset}.log",
    wildcard_constraints:
        dataset=one_of(PREFERRED),
    params:
        checksums=lambda wildcards: [source.sha256 for source in S.catalogue.dataset(wildcards.dataset).files.values()],
        code=lambda wildcards: code(
            f"data/readers/{S.catalogue.dataset(wildcards.dataset).reader}.py", "data/readers/base.py"
        ),
    shell:
        "comperdial read {wildcards.dataset} --output data/tables/{wildcards.dataset} > {log} 2>&1"


rule rated_dialogues:
    output:
        "data/tables/ieval/rated_dialogues.parquet",
    log:
        "logs/rated_dialogues.log",
    params:
        code=code("evaluation/preferences.py", "data/readers/ieval.py"),
    shell:
        "comperdial rated-dialogues ieval --output {output} > {log} 2>&1"


rule recorded_pairs:
    output:
        "results/studies/acute_eval/{dataset}_judges.csv",
    log:
        "logs/recorded_pairs/{dataset}.log",
    params:
        code=code("judges/recorded_pairs.py"),
    shell:
        "comperdial recorded-pairs {wildcards.dataset} --output {output} > {log} 2>&1"


rule exchanges:
    output:
        annotators="data/tables/{dataset}/annotators.parquet",
        exchanges=f"{CONTINUITY}/{{dataset}}_exchanges.csv",
    log:
        "logs/exchanges/{dataset}.log",
    wildcard_constraints:
        dataset=one_of(HAZUMI),
    params:
        code=code("data/readers/hazumi.py"),
    shell:
        "comperdial continuity exchanges {wildcards.dataset} --annotators {output.annotators} --output {output.exchanges}"
        " > {log} 2>&1"


rule predict_scores:
    input:
        [tables(name, "contexts", "responses", "ratings", "annotators") for name in HAZUMI],
    output:
        values=f"{CONTINUITY}/score_prediction.csv",
        differences=f"{CONTINUITY}/score_prediction_differences.csv",
    log:
        "logs/predict_scores.log",
    params:
        **resampling("continuity"),
        folders=[f"data/tables/{name}" for name in HAZUMI],
        code=code_of("evaluation/perspective.py"),
    shell:
        f"comperdial continuity predict {{params.folders}} --output {{output.values}} --differences {{output.differences}} {RESAMPLING}"
        " > {log} 2>&1"


rule perspective:
    input:
        tables("{dataset}", "contexts", "responses", "ratings"),
        lambda wildcards: tables(wildcards.dataset, "annotators") if wildcards.dataset in HAZUMI else [],
        lambda wildcards: "data/tables/ieval/rated_dialogues.parquet" if wildcards.dataset == "ieval_dial" else [],
    output:
        f"{CONTINUITY}/perspective_{{dataset}}.csv",
    log:
        "logs/perspective/{dataset}.log",
    wildcard_constraints:
        dataset=one_of(PERSPECTIVE),
    params:
        **resampling("continuity"),
        options=lambda wildcards: PERSPECTIVE[wildcards.dataset],
        code=code_of("evaluation/perspective.py"),
    shell:
        f"comperdial continuity perspective data/tables/{{wildcards.dataset}} {{params.options}} --output {{output}} {RESAMPLING}"
        " > {log} 2>&1"


rule vectors:
    output:
        VECTORS,
    log:
        "logs/vectors/{dataset}_{encoder}.log",
    wildcard_constraints:
        dataset=one_of([*CHATS, "topical_chat"]),
        encoder=one_of(ENCODERS),
    threads: workflow.cores
    params:
        model=lambda wildcards: label(MODELS[wildcards.encoder]),
        code=code("training/continuity_tasks.py", "data/continuations.py"),
    shell:
        "comperdial continuity vectors {wildcards.dataset} --encoder {wildcards.encoder} --output {output} > {log} 2>&1"


rule continuity_baselines:
    output:
        f"{CONTINUITY}/dcp_{{dataset}}_baselines.parquet",
    log:
        "logs/continuity_baselines/{dataset}.log",
    threads: workflow.cores
    params:
        code=code("evaluation/continuing.py", "data/continuations.py"),
    shell:
        "comperdial continuity baselines {wildcards.dataset} --output {output} > {log} 2>&1"


rule continuity_models:
    input:
        vectors=expand(VECTORS, encoder=ENCODERS, allow_missing=True),
        baselines=f"{CONTINUITY}/dcp_{{dataset}}_baselines.parquet" if ENCODERS else [],
    output:
        measures=f"{CONTINUITY}/dcp_{{dataset}}.parquet",
        scores=f"{CONTINUITY}/dcp_{{dataset}}_scores.parquet",
        continuations=f"{CONTINUITY}/dcp_{{dataset}}_continuations.parquet",
    log:
        "logs/continuity_models/{dataset}.log",
    wildcard_constraints:
        dataset=one_of(CHATS),
    params:
        code=code_of("evaluation/continuing.py"),
    shell:
        "comperdial continuity models {wildcards.dataset} --vectors {input.vectors} --baselines {input.baselines}"
        " --output {output.measures} --scores {output.scores} --continuations {output.continuations} > {log} 2>&1"


rule liking:
    input:
        measures=expand(f"{CONTINUITY}/dcp_{{dataset}}.parquet", dataset=CHATS),
        vectors=expand(VECTORS, dataset=CHATS, encoder=ENCODERS),
        rated=expand(VECTORS, dataset="topical_chat", encoder=[name for name in ENCODERS if name == "minilm"]),
    output:
        joined=f"{CONTINUITY}/dcp.csv",
        liking=f"{CONTINUITY}/dcp_liking.csv",
        scores=f"{CONTINUITY}/dcp_liking_scores.parquet",
    log:
        "logs/liking.log",
    params:
        code=code_of("evaluation/continuing.py"),
    shell:
        "comperdial continuity liking --measures {input.measures} --vectors {input.vectors} {input.rated} --joined {output.joined}"
        " --output {output.liking} --scores {output.scores} > {log} 2>&1"


BOARDS = load_yaml("studies/overall/boards.yaml")["boards"]


def on_board(wildcards):
    """Return the data sets of a board."""
    return list(dict.fromkeys(name for task in BOARDS[wildcards.board]["tasks"] for name in task["datasets"]))


def ranked(wildcards):
    """Return the scores of a board's metrics."""
    metrics = {row["metric"] for row in BOARDS[wildcards.board]["outputs"]}
    return [path for name in on_board(wildcards) for path in scores(name, metrics)]


rule rank:
    input:
        lambda wildcards: [
            path for name in on_board(wildcards) for path in tables(name, "contexts", "systems", "ratings")
        ],
        boards="studies/overall/boards.yaml",
        scores=ranked,
    output:
        ranking="results/studies/overall/{board}.parquet",
        comparisons="results/studies/overall/{board}_comparisons.parquet",
        pairs="results/studies/overall/{board}_pairs.parquet",
    log:
        "logs/rank/{board}.log",
    wildcard_constraints:
        board=one_of(BOARDS),
    resources:
        mem_mb=8000,
    params:
        **resampling("overall"),
        folders=lambda wildcards: [f"data/tables/{name}" for name in on_board(wildcards)],
        code=code_of("evaluation/overall.py"),
    shell:
        f"comperdial rank {{input.boards}} {{wildcards.board}} --tables {{params.folders}} --scores {{input.scores}} {RESAMPLING}"
        " --output {output.ranking} --comparisons {output.comparisons} --pairs {output.pairs} > {log} 2>&1"


# The study of LLMs as evaluators: correlations by rated dimension and source, and how often scores fall.
EVALUATORS = S.studies.get("llm_evaluators", {})


def compared_metrics(wildcards):
    return [name for name in EVALUATORS.get("metrics", {}) if S.scored_by(wildcards.dataset, name)]


def compared_scores(wildcards):
    """Return the study's scores of a data set: by its metrics, judges and recorded judges."""
    names = [*compared_metrics(wildcards), *judged(wildcards.dataset), *S.recorded_judges_of(wildcards.dataset)]
    return [score_file(wildcards.dataset, name) for name in names]


rule dimensions:
    input:
        tables("{dataset}", "contexts", "systems", "ratings"),
        scores=compared_scores,
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
        **resampling("llm_evaluators"),
        outputs=lambda wildcards: [
            output for name in compared_metrics(wildcards) for output in S.main_outputs(name, wildcards.dataset)[:1]
        ],
        code=code_of("evaluation/dimensions.py"),
    shell:
        "comperdial dimensions {input.scores} --tables data/tables/{wildcards.dataset} --study {input.study}"
        f" --outputs {{params.outputs}} {RESAMPLING}"
        " --between {output.between} --output {output.correlations} > {log} 2>&1"


rule ratios:
    input:
        tables("{dataset}", "contexts", "responses"),
        scores=compared_scores,
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
        code=code_of("evaluation/ratios.py"),
    shell:
        "comperdial ratios {input.scores} --tables data/tables/{wildcards.dataset} --about {input.about}"
        " --output {output} > {log} 2>&1"


DENSITY = [name for name in ("density-selection", "density", "grounded-cosine-minilm") if name in S.metrics]


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
        metrics=DENSITY,
        signatures=[S.metrics[name].signature() for name in DENSITY],
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
        [path for name in LOCAL for path in scores(name, FEATURES)],
    output:
        ablation="results/studies/local_metrics/ablation.parquet",
        pairs="results/studies/local_metrics/ablation_pairs.parquet",
    log:
        "logs/ablate.log",
    params:
        **resampling("local_metrics"),
        code=code_of("evaluation/fitting.py"),
    shell:
        f"comperdial ablate --tables data/tables --scores results {RESAMPLING}"
        " --output {output.ablation} --pairs {output.pairs} > {log} 2>&1"


# Data that could not be fetched get a row with a note: retry with `--forcerun audit_recorded`.
rule audit_recorded:
    output:
        expand("results/studies/judge_audit/{name}.csv", name=["alternative_test", "agreement", "audits", "corrected"]),
    log:
        "logs/audit_recorded.log",
    resources:
        mem_mb=4000,
    params:
        folder=lambda wildcards, output: str(Path(output[0]).parent),
        sets=SPECS.get("judge_audit", {}).get("tables", {}).get("alternative_test", {}).get("sets"),
        recorded=digest(S.config.get("recorded_judges")),
        checksums=digest({name: source.sha256 for name, source in S.catalogue.files.items()}),
        code=code(*modules_of("auditing/recorded.py"), "judges/recorded", "data/readers", "data/recorded.py"),
    shell:
        "comperdial audit-recorded --output {params.folder} > {log} 2>&1"
