# Scores: results/{dataset}/scores/{metric}.parquet. Depending on the metric, the rule is score (in parts: score_part and gather_scores),
# score_combined, import_scores, or judge or import_answers (judges.smk); Selection rejects a name used by two of these.

WHOLE = one_of(name for name, count in PARTS.items() if count == 1)
CUT = one_of(name for name, count in PARTS.items() if count > 1)
SINGLE = one_of(name for name in RUNNABLE if name not in S.combined)


rule score:
    input:
        responses,
    output:
        "results/{dataset}/scores/{metric}.parquet",
    log:
        "logs/score/{dataset}/{metric}.log",
    wildcard_constraints:
        dataset=WHOLE,
        metric=SINGLE,
    threads: metric_threads
    resources:
        mem_mb=3000,
        runtime=60,
    params:
        part=lambda wildcards: f"--part {wildcards.scatteritem}" if "scatteritem" in wildcards.keys() else "",
        options=metric_options,
        code=metric_code,
    shell:
        "comperdial score data/tables/{wildcards.dataset} --metric {wildcards.metric} {params.part} --output {output}"
        " > {log} 2>&1"


use rule score as score_part with:
    output:
        temp("results/{dataset}/parts/{metric}/{scatteritem}.parquet"),
    log:
        "logs/score_part/{dataset}/{metric}/{scatteritem}.log",
    wildcard_constraints:
        dataset=CUT,
        metric=SINGLE,


scattergather:
    **{name: count for name, count in PARTS.items() if count > 1},


rule gather_scores:
    input:
        lambda wildcards: getattr(gather, wildcards.dataset)(
            f"results/{wildcards.dataset}/parts/{wildcards.metric}/{{scatteritem}}.parquet"
        ),
    output:
        "results/{dataset}/scores/{metric}.parquet",
    log:
        "logs/gather_scores/{dataset}/{metric}.log",
    wildcard_constraints:
        dataset=CUT,
        metric=SINGLE,
    params:
        # The parts are deleted afterwards, so this depends on the same parameters.
        options=metric_options,
        code=metric_code,
    shell:
        "comperdial merge {input} --output {output} > {log} 2>&1"


rule score_combined:
    input:
        responses,
        parts=lambda wildcards: list(components(wildcards).values()),
    output:
        "results/{dataset}/scores/{metric}.parquet",
    log:
        "logs/score_combined/{dataset}/{metric}.log",
    wildcard_constraints:
        dataset=one_of(PARTS),
        metric=one_of(S.combined),
    threads: workflow.cores
    resources:
        mem_mb=3000,
        runtime=240,
    params:
        options=metric_options,
        parts=lambda wildcards: [f"{name}={path}" for name, path in components(wildcards).items()],
        code=metric_code,
    shell:
        "comperdial score data/tables/{wildcards.dataset} --metric {wildcards.metric} --parts {params.parts}"
        " --output {output} > {log} 2>&1"


rule import_scores:
    input:
        tables("{dataset}"),
        file=lambda wildcards: (entry.file if isinstance((entry := S.recorded[wildcards.metric]).file, Path) else []),
    output:
        "results/{dataset}/scores/{metric}.parquet",
    log:
        "logs/import_scores/{dataset}/{metric}.log",
    wildcard_constraints:
        dataset=one_of({entry.dataset for entry in S.recorded.values()}),
        metric=one_of(S.recorded),
    params:
        file=lambda wildcards, input: (
            ["--path", input.file] if input.file else ["--source", S.recorded[wildcards.metric].file.name]
        ),
        format=lambda wildcards: S.recorded[wildcards.metric].format,
        about=lambda wildcards: S.recorded[wildcards.metric].about,
        origin=lambda wildcards: S.recorded[wildcards.metric].origin,
        code=code("data/recorded.py"),
    shell:
        "comperdial recorded data/tables/{wildcards.dataset} --name {wildcards.metric} --format {params.format}"
        " {params.file:q} --about {params.about:q} --ratings data/tables/{wildcards.dataset}/ratings.parquet"
        " --output {output} > {log} 2>&1"
