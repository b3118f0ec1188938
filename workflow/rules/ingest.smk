wildcard_constraints:
    dataset="[a-z0-9_]+",
    metric="[a-z0-9_]+",


rule fetch:
    output:
        "data/raw/{file}",
    log:
        "logs/fetch/{file}.log",
    params:
        name=lambda wildcards, output: RAW[output[0]].name,
        sha256=lambda wildcards, output: RAW[output[0]].sha256,
        catalogue=config["catalogue"],
    shell:
        "comperdial fetch {params.name} --catalogue {params.catalogue} 2> {log}"


rule ingest:
    input:
        raw=lambda wildcards: [str(raw_path(f)) for f in DATASETS[wildcards.dataset].files.values()],
        code=lambda wildcards: code("schema/tables", "datasets/base", f"datasets/{DATASETS[wildcards.dataset].reader}"),
    output:
        multiext(
            "data/tables/{dataset}/",
            "systems.parquet",
            "contexts.parquet",
            "personas.parquet",
            "responses.parquet",
            "turn_ratings.parquet",
        ),
    log:
        "logs/ingest/{dataset}.log",
    params:
        folder=subpath(output[0], parent=True),
        catalogue=config["catalogue"],
    shell:
        "comperdial ingest {wildcards.dataset} --output {params.folder} --catalogue {params.catalogue} 2> {log}"
