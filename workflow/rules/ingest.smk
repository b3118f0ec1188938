wildcard_constraints:
    dataset=one_of(DATASETS),
    challenge=one_of(CHALLENGES),
    # Scores of a metric that cannot run here are no rule's output: pulled ones are taken as they are.
    metric=one_of(name for name in METRICS if name not in UNAVAILABLE),
    file=one_of(path.removeprefix("data/raw/") for path in RAW),


rule fetch:
    output:
        "data/raw/{file}",
    log:
        "logs/fetch/{file}.log",
    params:
        # Of wildcards alone: what Snakemake derives from outputs makes nothing stale when it changes.
        name=lambda wildcards: RAW[f"data/raw/{wildcards.file}"].name,
        sha256=lambda wildcards: RAW[f"data/raw/{wildcards.file}"].sha256,
        catalogue=config["catalogue"],
    message:
        "Fetch {wildcards.file}"
    shell:
        "comperdial fetch {params.name:q} --catalogue {params.catalogue:q} 2> {log:q}"


rule ingest:
    input:
        raw=lambda wildcards: [str(raw_path(f)) for f in READ[wildcards.dataset].files.values()],
    output:
        multiext(
            "data/tables/{dataset}/",
            "systems.parquet",
            "contexts.parquet",
            "personas.parquet",
            "responses.parquet",
            "turn_ratings.parquet",
            "dialogue_ratings.parquet",
        ),
    log:
        "logs/ingest/{dataset}.log",
    wildcard_constraints:
        dataset=one_of(READ),
    params:
        folder=subpath(output[0], parent=True),
        catalogue=config["catalogue"],
        sha256=lambda wildcards: [f.sha256 for f in READ[wildcards.dataset].files.values()],
        options=lambda wildcards: reader_options(wildcards.dataset),
        code=lambda wildcards: code("datasets", f"datasets.{READ[wildcards.dataset].reader}"),
    message:
        "Read {wildcards.dataset} into tables"
    shell:
        "comperdial ingest {wildcards.dataset:q} --output {params.folder:q} --catalogue {params.catalogue:q} "
        "--options {params.options:q} 2> {log:q}"


rule read_own_data:
    input:
        lambda wildcards: OWN[wildcards.dataset]["file"],
    output:
        multiext(
            "data/tables/{dataset}/",
            "systems.parquet",
            "contexts.parquet",
            "personas.parquet",
            "responses.parquet",
            "turn_ratings.parquet",
            "dialogue_ratings.parquet",
        ),
    log:
        "logs/ingest/{dataset}.log",
    wildcard_constraints:
        dataset=one_of(OWN),
    params:
        folder=subpath(output[0], parent=True),
        options=lambda wildcards: json.dumps(own_options(wildcards.dataset), sort_keys=True),
        code=code("datasets.table"),
    message:
        "Read {input} into tables"
    shell:
        "comperdial ingest {input:q} --name {wildcards.dataset:q} --options {params.options:q} --output {params.folder:q} "
        "2> {log:q}"
