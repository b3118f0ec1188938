# Judgements and scores from judges' answers, which are stored in data/ledger and never requested twice.


rule judge:
    input:
        responses,
        # Judging a dialogue may need the answers about its turns.
        turns=turns_of,
    output:
        scores="results/{dataset}/scores/{metric}.parquet",
        judgements="results/{dataset}/judgements/{metric}.parquet",
    log:
        "logs/judge/{dataset}/{metric}.log",
    wildcard_constraints:
        dataset=one_of(S.tasks),
        metric=one_of({name for tasks in S.tasks.values() for name in tasks}),
    resources:
        # Only one process may ask at a time.
        answers=1,
        mem_mb=4000,
        runtime=720,
    params:
        signature=lambda wildcards: S.tasks[wildcards.dataset][wildcards.metric].signature,
        code=code("judges"),
    shell:
        "comperdial judge run data/tables/{wildcards.dataset} --metric {wildcards.metric}"
        " --output {output.scores} --judgements {output.judgements} > {log} 2>&1"


rule import_answers:
    input:
        tables("{dataset}"),
    output:
        scores="results/{dataset}/scores/{metric}.parquet",
        judgements="results/{dataset}/judgements/{metric}.parquet",
        coverage="results/{dataset}/judgements/{metric}.csv",
    log:
        "logs/import_answers/{dataset}/{metric}.log",
    wildcard_constraints:
        dataset=one_of({entry.dataset for entry in S.recorded_judges.values()}),
        metric=one_of(S.recorded_judges),
    params:
        entry=lambda wildcards: json.dumps(S.config["recorded_judges"][wildcards.metric], sort_keys=True),
        checksums=lambda wildcards: [file.sha256 for file in S.recorded_judges[wildcards.metric].files.values()],
        code=code("judges/recorded"),
    shell:
        "comperdial judge import data/tables/{wildcards.dataset} --metric {wildcards.metric}"
        " --output {output.scores} --judgements {output.judgements} --coverage {output.coverage} > {log} 2>&1"
