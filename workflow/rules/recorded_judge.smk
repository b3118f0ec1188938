# Judges whose answers others recorded (docs/judges.md): into the ledger, and out of it as scores.


rule recorded_judge:
    input:
        lambda wildcards: expand(
            "data/tables/{dataset}/{table}.parquet",
            dataset=HEARD[wildcards.heard].dataset,
            table=["systems", "contexts", "responses", heard_ratings(wildcards.heard)],
        ),
        files=lambda wildcards: [str(raw_path(file)) for file in HEARD[wildcards.heard].files.values()],
    output:
        scores="results/scores/{heard}.parquet",
        judgements="results/judgements/{heard}.parquet",
        coverage="results/judgements/{heard}.csv",
    log:
        "logs/recorded_judge/{heard}.log",
    wildcard_constraints:
        heard=one_of(HEARD),
    params:
        folder=subpath(input[0], parent=True),
        options=lambda wildcards: heard_options(wildcards.heard),
        code=lambda wildcards: code(
            "judging.answers.coverage", "judging.answers.singles", f"judging.answers.{HEARD[wildcards.heard].format}"
        ),
    message:
        "Take the recorded answers {wildcards.heard}"
    shell:
        "comperdial judge import {params.folder:q} {params.options:q} --output {output.scores:q} "
        "--judgements {output.judgements:q} --coverage {output.coverage:q} 2> {log:q}"


use rule recorded_judge as study_recorded_judge with:
    output:
        scores="results/llm_evaluators/judged/{heard}.parquet",
        judgements="results/llm_evaluators/judgements/{heard}.parquet",
        coverage="results/llm_evaluators/judgements/{heard}.csv",
    log:
        "logs/study_recorded_judge/{heard}.log",
    wildcard_constraints:
        heard=one_of(heard for heard, entry in HEARD.items() if entry.dataset in STUDIED),
    message:
        "Take the recorded answers {wildcards.heard}"


rule recorded_judges_table:
    input:
        coverage=lambda wildcards: coverage_files(wildcards.dataset),
        reported="data/paper/recorded_judges.csv",
    output:
        multiext("results/tables/{dataset}_recorded_judges", *FORMATS),
        html=report(
            "results/tables/{dataset}_recorded_judges.html", caption="../report/recorded_judges.rst", category="Tables"
        ),
    log:
        "logs/render/{dataset}_recorded_judges.log",
    params:
        stem=subpath(output.html, strip_suffix=".html"),
        prompts=lambda wildcards: heard_names(wildcards.dataset, "prompt"),
        models=lambda wildcards: heard_names(wildcards.dataset, "model"),
        titles=lambda wildcards: titles([wildcards.dataset]),
        code=code("report.recorded_judges"),
    message:
        "Render the recorded judges of {wildcards.dataset}"
    shell:
        "comperdial render recorded-judges {input.coverage:q} --output {params.stem:q} --prompts {params.prompts:q} "
        "--models {params.models:q} --titles {params.titles:q} --made-from {input:q} --code {params.code:q} 2> {log:q}"
