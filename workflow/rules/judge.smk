# Judgements: each answer is asked for once and kept in the ledger, a folder that no rule owns, since Snakemake removes what a
# rule makes before it runs again.


rule judge:
    input:
        lambda wildcards: expand(
            "data/tables/{dataset}/{table}.parquet",
            dataset=wildcards.judged.split("/")[0],
            table=["systems", "contexts", "responses"],
        ),
        turns=lambda wildcards: judged_turns(wildcards.judged),
    output:
        scores="results/scores/{judged}.parquet",
        judgements="results/judgements/{judged}.parquet",
    log:
        "logs/judge/{judged}.log",
    wildcard_constraints:
        judged=one_of(judged for judged in JUDGED if judged not in NOT_JUDGED),
    threads: lambda wildcards: workflow.cores if JUDGED[wildcards.judged].judge.service == "transformers" else 1
    params:
        folder=subpath(input[0], parent=True),
        metric=lambda wildcards: JUDGED[wildcards.judged].name,
        # All that decides what is asked and how it is read, with the prompt's hash and the version of a service of ours.
        sections=lambda wildcards: sections_of(JUDGED[wildcards.judged], config),
        signature=lambda wildcards: signature(JUDGING, JUDGED[wildcards.judged]),
        turns=lambda wildcards, input: [f"--turns {path}" for path in input.turns],
        code=lambda wildcards: judge_code(wildcards.judged),
    message:
        "Judge {wildcards.judged}"
    shell:
        "comperdial judge score {params.folder:q} --metric {params.metric} --sections {params.sections:q} {params.turns} "
        "--output {output.scores} --judgements {output.judgements} 2> {log}"


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
        "Judge {wildcards.judged}"


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
        "comperdial render judges {input.judgements} --output {params.stem} --labels {params.labels:q} "
        "--not-run {params.not_run:q} --titles {params.titles:q} {params.simulated} --made-from {input:q} --code {params.code:q} 2> {log}"
