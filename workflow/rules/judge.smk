# Judgements: each answer is asked for once and kept in the ledger, a folder that no rule owns, since Snakemake removes what a
# rule makes before it runs again.


rule judge_shard:
    input:
        lambda wildcards: judged_tables(wildcards.judged),
        turns=lambda wildcards: judged_turns(wildcards.judged),
    output:
        scores=temp("results/shards/judged/{judged}/{shard}.parquet"),
        judgements=temp("results/shards/judgements/{judged}/{shard}.parquet"),
    log:
        "logs/judge/{judged}/{shard}.log",
    wildcard_constraints:
        judged=one_of(judged for judged in JUDGED if judged not in NOT_JUDGED),
    threads: lambda wildcards: cores_of("judge_shard", service=JUDGED[wildcards.judged].judge.service)
    params:
        folder=subpath(input[0], parent=True),
        metric=lambda wildcards: JUDGED[wildcards.judged].name,
        sections=lambda wildcards: sections_of(JUDGED[wildcards.judged], config),
        turns=lambda wildcards, input: [f"--turns={path}" for path in input.turns],
        shard=lambda wildcards: shard_option(wildcards.shard),
        made=lambda wildcards: how_judged(wildcards.judged),
    message:
        "Judge {wildcards.judged}, shard {wildcards.shard}"
    shell:
        "comperdial judge score {params.folder:q} --metric {params.metric:q} --sections {params.sections:q} {params.turns:q} "
        "{params.shard:q} --output {output.scores:q} --judgements {output.judgements:q} 2> {log:q}"


rule judge:
    input:
        lambda wildcards: judged_tables(wildcards.judged),
        turns=lambda wildcards: judged_turns(wildcards.judged),
        shards=lambda wildcards: shard_files("judged", wildcards.judged),
        judgements=lambda wildcards: shard_files("judgements", wildcards.judged),
    output:
        scores="results/scores/{judged}.parquet",
        judgements="results/judgements/{judged}.parquet",
    log:
        "logs/judge/{judged}.log",
    wildcard_constraints:
        judged=one_of(judged for judged in JUDGED if judged not in NOT_JUDGED),
    params:
        merge=lambda wildcards, input, output: merging_judged(input.shards, input.judgements, output),
        # As for scores: what decides a shard is said again.
        made=lambda wildcards: how_judged(wildcards.judged),
        code=code("judging.merging"),
    message:
        "Merge what was judged of {wildcards.judged}"
    shell:
        "({params.merge}) 2> {log:q}"


# The same for the study: its data sets' texts are not ours to publish, so what is made of them lies apart.
use rule judge as study_judge with:
    output:
        scores="results/llm_evaluators/judged/{judged}.parquet",
        judgements="results/llm_evaluators/judgements/{judged}.parquet",
    log:
        "logs/study_judge/{judged}.log",
    wildcard_constraints:
        judged=one_of(
            judged for judged in JUDGED if judged not in NOT_JUDGED and judged.split("/")[0] in [*STUDIED, *PAIRED]
        ),
    message:
        "Merge what was judged of {wildcards.judged}"


rule judges_table:
    input:
        judgements=judgement_files,
    output:
        multiext("results/tables/{dataset}_judges", *FORMATS),
        html=report("results/tables/{dataset}_judges.html", caption="../report/judges.rst", category="Tables"),
    log:
        "logs/render/{dataset}_judges.log",
    params:
        stem=subpath(output.html, strip_suffix=".html"),
        labels=lambda wildcards: judge_labels(wildcards.dataset),
        not_run=lambda wildcards: json.dumps(not_judged([wildcards.dataset]), sort_keys=True),
        titles=lambda wildcards: titles([wildcards.dataset]),
        simulated=lambda wildcards: simulated(wildcards.dataset),
        code=code("report.judges"),
    message:
        "Render the judges of {wildcards.dataset}"
    shell:
        "comperdial render judges {input.judgements:q} --output {params.stem:q} --labels {params.labels:q} "
        "--not-run {params.not_run:q} --titles {params.titles:q} {params.simulated:q} --made-from {input:q} --code {params.code:q} 2> {log:q}"
