# Scores: made in shards, which any machine can make alone, and merged in the order of the table.


checkpoint shards:
    input:
        "data/tables/{sharded}/responses.parquet",
    output:
        "results/scores/{sharded}/shards.json",
    log:
        "logs/shards/{sharded}.log",
    wildcard_constraints:
        sharded=one_of(dict.fromkeys([*DATASETS, *STUDIED, *PAIRED])),
    params:
        folder=subpath(input[0], parent=True),
        size=SHARD_SIZE,
        code=code("sharding"),
    message:
        "Cut the responses of {wildcards.sharded} into shards"
    shell:
        "comperdial shards {params.folder:q} --size {params.size:q} --output {output:q} 2> {log:q}"


rule score_shard:
    input:
        multiext(
            "data/tables/{dataset}/",
            "systems.parquet",
            "contexts.parquet",
            "responses.parquet",
        ),
    output:
        temp("results/shards/scores/{dataset}/{metric}/{shard}.parquet"),
    log:
        "logs/score/{dataset}/{metric}/{shard}.log",
    threads: lambda wildcards: cores_of("score_shard", wildcards.metric)
    params:
        folder=subpath(input[0], parent=True),
        kind=lambda wildcards: METRICS[wildcards.metric].kind,
        options=lambda wildcards: json.dumps(metric_options(wildcards.metric), sort_keys=True),
        embeddings=lambda wildcards: kept(wildcards.metric),
        shard=lambda wildcards: shard_option(wildcards.shard),
        made=lambda wildcards: how_scored(wildcards.metric),
    message:
        "Score {wildcards.dataset} with {wildcards.metric}, shard {wildcards.shard}"
    shell:
        "comperdial score {params.folder:q} --metric {params.kind:q} --name {wildcards.metric:q} "
        "--options {params.options:q} {params.embeddings:q} {params.shard:q} --output {output:q} 2> {log:q}"


rule score:
    input:
        rules.score_shard.input,
        shards=lambda wildcards: shard_files("scores", f"{wildcards.dataset}/{wildcards.metric}"),
    output:
        "results/scores/{dataset}/{metric}.parquet",
    log:
        "logs/score/{dataset}/{metric}.log",
    params:
        merge=lambda wildcards, input, output: merging(input.shards, output[0]),
        # Shards are gone once they are merged: what decides their scores is said again, so that a change makes these stale.
        made=lambda wildcards: how_scored(wildcards.metric),
        code=code("schema.parquet"),
    message:
        "Merge the scores of {wildcards.dataset} with {wildcards.metric}"
    shell:
        "{params.merge} 2> {log:q}"
