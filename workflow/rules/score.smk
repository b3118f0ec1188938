rule score:
    input:
        multiext(
            "data/tables/{dataset}/",
            "systems.parquet",
            "contexts.parquet",
            "responses.parquet",
        ),
    output:
        "results/scores/{dataset}/{metric}.parquet",
    log:
        "logs/score/{dataset}/{metric}.log",
    threads: lambda wildcards: workflow.cores if runs_model(wildcards.metric) else 1
    params:
        folder=subpath(input[0], parent=True),
        kind=lambda wildcards: METRICS[wildcards.metric].kind,
        options=lambda wildcards: json.dumps(metric_options(wildcards.metric), sort_keys=True),
        # What determines a score beyond the options: versions of libraries and of the metric itself.
        signature=lambda wildcards: METRICS[wildcards.metric].signature(),
        embeddings=lambda wildcards: kept(wildcards.metric),
        code=lambda wildcards: code("scoring", *metric_modules([METRICS[wildcards.metric]])),
    message:
        "Score {wildcards.dataset} with {wildcards.metric}"
    shell:
        "comperdial score {params.folder:q} --metric {params.kind} --name {wildcards.metric} "
        "--options {params.options:q} {params.embeddings} --output {output} 2> {log}"
