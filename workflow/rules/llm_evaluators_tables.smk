# The study's tables by the paper's numbers, its lists of all numbers, and its figures 3 and 4.


rule llm_data_sets:
    input:
        rated_tables(STUDIED),
        rounds="results/llm_evaluators/rounds.parquet",
        reported="data/paper/llm_evaluators_data_sets.csv",
    output:
        table_of("llm_evaluators_table_1"),
        html=report(
            "results/tables/llm_evaluators_table_1.html",
            caption="../report/llm_evaluators_table_1.rst",
            category="LLM evaluators",
        ),
    log:
        "logs/render/llm_evaluators_table_1.log",
    params:
        stem=subpath(output.html, strip_suffix=".html"),
        folders=folders(STUDIED),
        titles=lambda wildcards: study_titles(STUDIED),
        code=code("report.llm_evaluators.data_sets"),
    message:
        "Render table 1 of LLM evaluators"
    shell:
        "comperdial render llm-data-sets {input.rounds:q} --tables {params.folders:q} --output {params.stem:q} "
        "--titles {params.titles:q} --made-from {input:q} --code {params.code:q} 2> {log:q}"


rule llm_table:
    input:
        correlations="results/llm_evaluators/correlations.parquet",
        reported=lambda wildcards: study_reported(wildcards.number),
    output:
        table_of("llm_evaluators_table_{number}"),
        html=report(
            "results/tables/llm_evaluators_table_{number}.html",
            caption="../report/llm_evaluators_table.rst",
            category="LLM evaluators",
        ),
    log:
        "logs/render/llm_evaluators_table_{number}.log",
    wildcard_constraints:
        number="[2-6]",
    params:
        stem=subpath(output.html, strip_suffix=".html"),
        shared=lambda wildcards: study_shared(),
        recorded=lambda wildcards: recorded_rounds(),
        ensembles=lambda wildcards: study_ensembles(),
        not_run=lambda wildcards: study_not_run(STUDIED),
        not_asked=lambda wildcards: study_not_asked(),
        needs=lambda wildcards: study_needs(),
        titles=lambda wildcards: study_titles(STUDIED),
        code=code("report.llm_evaluators.correlations", "report.llm_evaluators.ensembles"),
    message:
        "Render table {wildcards.number} of LLM evaluators"
    shell:
        "comperdial render llm-table {input.correlations:q} --number {wildcards.number:q} --output {params.stem:q} "
        "{params.shared:q} --recorded {params.recorded:q} --ensembles {params.ensembles:q} --not-run {params.not_run:q} "
        "--not-asked {params.not_asked:q} --needs {params.needs:q} --titles {params.titles:q} --made-from {input:q} --code {params.code:q} 2> {log:q}"


rule llm_correlations:
    input:
        rated_tables(STUDIED),
        correlations="results/llm_evaluators/correlations.parquet",
    output:
        table_of("llm_evaluators_correlations"),
        html=report(
            "results/tables/llm_evaluators_correlations.html",
            caption="../report/llm_evaluators_correlations.rst",
            category="LLM evaluators",
        ),
    log:
        "logs/render/llm_evaluators_correlations.log",
    params:
        stem=subpath(output.html, strip_suffix=".html"),
        folders=folders(STUDIED),
        shared=lambda wildcards: study_shared(),
        recorded=lambda wildcards: recorded_rounds(),
        not_run=lambda wildcards: study_not_run(STUDIED),
        not_asked=lambda wildcards: study_not_asked(),
        needs=lambda wildcards: study_needs(),
        titles=lambda wildcards: study_titles(STUDIED),
        code=code("report.llm_evaluators.listing", "report.llm_evaluators.sampling"),
    message:
        "Render all correlations of LLM evaluators"
    shell:
        "comperdial render llm-correlations {input.correlations:q} --output {params.stem:q} {params.shared:q} --recorded {params.recorded:q} "
        "--not-run {params.not_run:q} --not-asked {params.not_asked:q} --needs {params.needs:q} --tables {params.folders:q} "
        "--titles {params.titles:q} --made-from {input:q} --code {params.code:q} 2> {log:q}"


rule llm_rounds:
    input:
        rated_tables(STUDIED),
        rounds="results/llm_evaluators/rounds.parquet",
    output:
        table_of("llm_evaluators_rounds"),
        html=report(
            "results/tables/llm_evaluators_rounds.html",
            caption="../report/llm_evaluators_rounds.rst",
            category="LLM evaluators",
        ),
    log:
        "logs/render/llm_evaluators_rounds.log",
    params:
        stem=subpath(output.html, strip_suffix=".html"),
        folders=folders(STUDIED),
        titles=lambda wildcards: study_titles(STUDIED),
        code=code("report.llm_evaluators.rounds"),
    message:
        "Render the agreement of rounds"
    shell:
        "comperdial render llm-rounds {input.rounds:q} --tables {params.folders:q} --output {params.stem:q} "
        "--titles {params.titles:q} --made-from {input:q} --code {params.code:q} 2> {log:q}"
